/*
 * The second copy of a window's small records: whatever the order in which they came, they are read
 * by key, and of several with one key the last counts. Compared with a plain search of all.
 */
#include <stdlib.h>

#include "base/map.h"
#include "tests/check.h"
#include "tsdb/head/head_internal.h"

#define START_NS INT64_C(7200000000000)
#define IDENTITY 99
#define RECORDS_MAX 600u

/* A record as the test wrote it. */
struct wrote {
	char key[16];
	size_t key_n;
	char record[12];
	size_t record_n;
	size_t end; /* in the file */
};

struct world {
	struct buf file;
	struct wrote v[RECORDS_MAX];
	size_t n;
	uint64_t seed;
};

static uint32_t drawn(struct world *w, uint32_t below)
{
	w->seed = map_hash_u64(w->seed + 1);
	return (uint32_t)(w->seed >> 20) % below;
}

static struct str key_of_wrote(const struct wrote *r)
{
	return (struct str){ r->key, r->key_n };
}

static void begin(struct world *w)
{
	w->n = 0;
	w->file.len = 0;
	buf_add_char(&w->file, 1);
	buf_add_u64be(&w->file, IDENTITY);
	buf_add_u64be(&w->file, hash_bytes(w->file.ptr, 9, (uint64_t)START_NS));
}

static void write_record(struct world *w, char kind, uint32_t id)
{
	struct wrote *r = &w->v[w->n++];
	struct key key = kind == 'm' ? key_of('m') : key_u32(kind, id);
	struct buf value = { 0 };
	uint64_t seed = hash_bytes(key.bytes, key.len, kind == 'm' ? 0 : IDENTITY);

	memcpy(r->key, key.bytes, r->key_n = key.len);
	buf_add_varint(&value, w->n);
	buf_add_u32be(&value, (uint32_t)hash_bytes(value.ptr, value.len, seed));
	memcpy(r->record, value.ptr, r->record_n = value.len);
	buf_add_lenstr(&w->file, key_str(&key));
	buf_add_lenstr(&w->file, buf_str(&value));
	r->end = w->file.len;
	buf_release(&value);
}

/* The last of the first n with the key. */
static const struct wrote *last_of(const struct world *w, size_t n, struct str key)
{
	const struct wrote *last = NULL;

	for (size_t i = 0; i < n; i++)
		if (str_eq(key_of_wrote(&w->v[i]), key))
			last = &w->v[i];
	return last;
}

static void check_kinds(const struct names_file *f)
{
	static const char kinds[] = "mnpstz";

	for (size_t k = 0; kinds[k]; k++) {
		size_t first = head_names_first(f, kinds[k]);

		CHECK(!first || head_names_at(f, first - 1).key.ptr[0] < kinds[k]);
		CHECK(first == f->n || head_names_at(f, first).key.ptr[0] >= kinds[k]);
	}
}

/* n: so many records are whole in the file's first `len` bytes. */
static void check_read(const struct world *w, size_t len, size_t n)
{
	struct names_file f = { 0 };
	struct head_name one;
	struct err err;
	size_t keys = 0;

	REQUIRE_OK(head_names_parse(START_NS, (struct str){ w->file.ptr, len }, &f, &err), &err);
	CHECK_INT(f.whole, n ? len == w->v[n - 1].end : len == 17);
	for (size_t i = 0; i < n; i++) {
		const struct wrote *want = last_of(w, n, key_of_wrote(&w->v[i]));

		keys += want == &w->v[i];
		CHECK(head_names_find(&f, key_of_wrote(&w->v[i]), &one));
		CHECK(str_eq(one.record, (struct str){ want->record, want->record_n }));
	}
	CHECK_INT(f.n, keys);
	for (size_t i = 1; i < f.n; i++)
		CHECK(str_cmp(head_names_at(&f, i - 1).key, head_names_at(&f, i).key) < 0);
	CHECK(!head_names_find(&f, STR("s"), &one));
	CHECK(!head_names_find(&f, STR("z"), &one));
	check_kinds(&f);
	head_names_release(&f);
}

static void check_cuts(struct world *w)
{
	check_read(w, w->file.len, w->n);
	for (unsigned i = 0; i < 5 && w->n; i++) {
		size_t n = drawn(w, (uint32_t)w->n), begins = n ? w->v[n - 1].end : 17;

		check_read(w, begins, n);
		check_read(w, begins + 1 + drawn(w, (uint32_t)(w->v[n].end - begins - 1)), n);
	}
}

TEST(names_are_read_by_key_whatever_their_order)
{
	struct world *w = calloc(1, sizeof(*w));

	REQUIRE(w != NULL);
	for (uint64_t seed = 1; seed <= 40; seed++) {
		uint32_t n = seed < 4 ? (uint32_t)seed - 1 : 300, spread = seed % 4 == 0 ? n : 0;

		w->seed = seed * 7919;
		begin(w);
		/* Kinds by turns, ids that ascend, nearly ascend, descend or come in any order. */
		for (uint32_t i = 0; i < n; i++) {
			uint32_t id = seed % 4 == 1 ? i : seed % 4 == 2 ? i + drawn(w, 9) : n - i;

			write_record(w, "smtpn"[drawn(w, 5)], spread ? drawn(w, spread) : id);
		}
		/* All of them once more, in order: as when their epoch ended. */
		for (uint32_t i = 0; i < n && seed % 5 == 0; i++)
			write_record(w, 's', i);
		check_cuts(w);
	}
	buf_release(&w->file);
	free(w);
}
