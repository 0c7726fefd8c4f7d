/*
 * fuzz: tsdb
 * A segment whose checksums are right and whose records say anything: a follower takes it or
 * refuses it, and answers whatever it is asked then, with a warning or an error at the worst. The
 * input is a list of records: kind, three bytes of its key, length (two bytes), value.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "tests/fuzz/fuzz.h"
#include "tests/scratch.h"
#include "tsdb/db.h"
#include "tsdb/head/follow.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/head/numbers.h"

#define END_NS (300 * NS_PER_S)
#define IDENTITY 7u

static struct db *db;
static char dir[] = SCRATCH "epimetheus-follow-fuzz-XXXXXX", path[sizeof(dir) + 8];

static void remove_dir(void)
{
	db_close(db);
	(void)!fs_remove_tree(&fs_posix, dir, NULL);
}

static void open_once(void)
{
	struct db_options o;

	if (db)
		return;
	log_set((enum log_level)(LOG_ERROR + 1), LOG_LOGFMT); /* damage is what comes */
	db_options_default(&o);
	require(scratch_dir(dir) != NULL);
	snprintf(path, sizeof(path), "%s/packed", dir);
	o.dir = dir;
	o.follower = true;
	o.nodes_max = o.strings_max = o.label_sets_max = 4096;
	require(!db_open(&o, &db, NULL));
	atexit(remove_dir);
}

static struct key key_from(const uint8_t *d)
{
	switch (d[0]) {
	case 'p':
		return key_u32_u32('p', d[1], d[2]);
	case 'y':
	case 't':
		return key_u32_u32_u32((char)d[0], d[1], d[2], d[3]);
	case 'r':
		return key_row(d[1], (d[3] + 1) * NS_PER_S);
	case KEY_NUMBER:
		return key_number(d[1], (d[3] + 1) * NS_PER_S);
	case 's':
	case KEY_NUMBER_SERIES:
		return key_u32((char)d[0], d[1]);
	default:
		return key_of((char)d[0]);
	}
}

static bool add(struct segment_writer *w, struct key key, struct buf *value)
{
	bool ok;

	store_record_seal(key_str(&key), value, key.bytes[0] == 'm' ? 0 : IDENTITY);
	ok = !segment_writer_add(w, key_str(&key), buf_str(value), NULL);
	buf_clear(value);
	return ok;
}

/* The input as a packed segment of one batch. */
static void pack(const struct segment *of, const uint8_t *data, size_t size, struct buf *out)
{
	const struct window_count count = { .seq = of->last, .rows = 1, .max_ns = END_NS };
	struct segment_writer *w;
	struct buf value = { 0 };
	uint64_t bytes;

	require(!segment_writer_open(&fs_posix, path, of, &w, NULL));
	while (size >= 6) {
		size_t n = (size_t)data[4] << 8 | data[5];

		n = n < size - 6 ? n : size - 6;
		buf_add(&value, data + 6, n);
		if (!data[0])
			break;
		require(add(w, key_from(data), &value));
		data += 6 + n;
		size -= 6 + n;
	}
	buf_clear(&value);
	head_encode_count(&count, &value);
	require(add(w, key_of('c'), &value));
	require(!segment_writer_end(w, &bytes, NULL));
	require(!fs_read_file(path, 1u << 30, out, NULL));
	buf_release(&value);
}

static void read_rows(struct db_querier *q, const struct db_series *s, struct arena *a)
{
	const struct db_row *row;
	struct db_rows *rows = NULL;
	struct pprof *profile;

	if (!db_rows_open(q, s, 0, END_NS, &rows, NULL))
		while (!db_rows_next(rows, &row, NULL))
			(void)!db_row_profile(s, row, a, &profile, NULL);
	db_rows_close(rows);
	rows = NULL;
	if (!db_links_open(q, s, 0, END_NS, 1u << 20, &rows, NULL))
		while (!db_rows_next(rows, &row, NULL))
			;
	db_rows_close(rows);
}

static void ask(void)
{
	struct db_querier *q;
	struct profile_type *types;
	struct db_series *v;
	struct str *names;
	struct arena a;
	size_t n, types_n, names_n;
	int64_t *ts;
	double *values;

	arena_init(&a, 1u << 28);
	require(!db_querier_open(db, 0, END_NS, NULL, &q, NULL));
	if (!db_select(q, NULL, 0, &a, &v, &n, NULL))
		for (size_t i = 0; i < n; i++) {
			if (v[i].numeric)
				(void)!db_numbers(q, &v[i], 0, END_NS, &a, &ts, &values, &names_n, NULL);
			else
				read_rows(q, &v[i], &a);
		}
	(void)!db_profile_types(q, &a, &types, &types_n, NULL);
	(void)!db_label_names(q, NULL, 0, 100, &a, &names, &names_n, NULL);
	db_querier_close(q);
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct segment of = { 0, END_NS, IDENTITY, 1, 1, true };
	struct buf bytes = { 0 };
	size_t half = size / 2;

	open_once();
	pack(&of, data, size, &bytes);
	if (!head_follow(db, &of, buf_str(&bytes), (struct str){ 0 }, NULL)) {
		ask();
		/* More of it for a window that is there. */
		of.first = of.last = 2;
		buf_clear(&bytes);
		pack(&of, data + half, size - half, &bytes);
		(void)!head_follow(db, &of, buf_str(&bytes), (struct str){ 0 }, NULL);
		ask();
	}
	head_follow_drop(db, 0, IDENTITY);
	require(!series_n(db->series));
	buf_release(&bytes);
	return 0;
}
