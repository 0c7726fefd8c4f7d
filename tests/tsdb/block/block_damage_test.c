/*
 * Blocks on disks that lie: each byte flipped, files cut off or gone, each call failing while one
 * is written. What is read may be less, and then it is said; it is never something else.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/map.h"
#include "tests/check.h"
#include "tests/tsdb/block/block_world.h"
#include "tests/tsdb/disk.h"

#define ALL_LEVELS ((1u << ROLLUP_LEVELS) - 1)

static const char *const files[] = { "rows.ldb", "rollups.ldb", "spare", "meta.json" };

/* The contents of a block, as hashes in a fixed order. */
struct said {
	uint64_t *v;
	size_t n, cap;
	uint64_t errors, lost;
	uint64_t index_errors; /* of small records, which exist twice */
};

static void say(struct said *s, uint64_t what, const void *p, size_t n)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 256;
		if (!(s->v = realloc(s->v, s->cap * sizeof(*s->v))))
			abort();
	}
	s->v[s->n++] = hash_bytes(p, n, what);
}

static bool is_damage(enum err_code rc)
{
	return rc == ERR_CORRUPT || rc == ERR_IO || rc == ERR_NOT_FOUND;
}

static void note_error(struct said *s, enum err_code rc)
{
	s->errors++;
	if (!is_damage(rc))
		CHECK_FAIL("damage is told as %s", err_code_name(rc));
}

static void read_series(struct block *b, uint32_t id, struct said *s)
{
	struct block_series got = { 0 };
	struct buf text = { 0 };
	struct arena a;
	enum err_code rc;

	arena_init(&a, 0);
	if ((rc = block_series(b, id, &a, &got, NULL))) {
		note_error(s, rc);
		s->index_errors++;
	} else {
		labels_print(&text, got.labels);
		buf_printf(&text, " %u %u %lld %lld %llu %llu", got.slot, got.group,
			(long long)got.first_ns, (long long)got.last_ns, (unsigned long long)got.rows,
			(unsigned long long)got.samples);
		for (uint32_t i = 0; i < got.headers_n; i++)
			buf_printf(&text, " %u", got.headers[i]);
		say(s, id, text.ptr, text.len);
	}
	buf_release(&text);
	arena_release(&a);
}

static void read_chunks(struct block *b, uint32_t id, struct said *s)
{
	struct block_chunks *it;
	struct str bytes;
	int64_t first_ns;
	enum err_code rc;

	if ((rc = block_chunks_open(b, id & 1, &it, NULL))) {
		note_error(s, rc);
		return;
	}
	block_chunks_seek(it, id, INT64_MIN, INT64_MAX);
	while ((rc = block_chunks_next(it, &bytes, &first_ns, NULL)) != ERR_NOT_FOUND) {
		if (rc)
			note_error(s, rc);
		else
			say(s, (uint64_t)first_ns, bytes.ptr, bytes.len);
	}
	block_chunks_close(it);
}

static void read_rollups(struct block *b, enum rollup_kind kind, uint32_t id, struct said *s)
{
	struct block_rollups *it;
	struct str bytes;
	int64_t step_ns;
	enum err_code rc;

	if (block_rollups_open(b, id & 1, &it, NULL))
		abort();
	for (uint32_t level = 0; level < ROLLUP_LEVELS; level++) {
		block_rollups_seek(it, kind, id, level, 0, INT64_MAX);
		while ((rc = block_rollups_next(it, &bytes, &step_ns, NULL)) != ERR_NOT_FOUND) {
			if (rc)
				note_error(s, rc);
			else
				say(s, (uint64_t)step_ns + level + kind, bytes.ptr, bytes.len);
		}
	}
	block_rollups_close(it);
}

static void read_symbols(struct block *b, uint32_t slot, struct said *s)
{
	static const struct symbol_limits limits = { 1 << 20, 1 << 20, 1 << 20, 1 << 28 };
	struct partition *p;
	uint64_t lost = 0;
	enum err_code rc;

	if (partition_open(STR("p"), 1, 0, &limits, &p, NULL))
		abort();
	mutex_lock(&p->lock);
	for (int stage = BLOCK_NAMES; stage <= BLOCK_STACKS; stage++) {
		struct err why = { 0 };

		if ((rc = block_load_symbols(b, slot, p, stage, &lost, &why)))
			note_error(s, rc);
		if (lost && (!why.msg[0] || !atomic_load(&p->damaged)))
			CHECK_FAIL("%d symbols are lost without a reason", (int)lost);
		s->lost += lost;
	}
	mutex_unlock(&p->lock);
	for (uint32_t id = 1; id < sym_strings_n(p); id++)
		if (sym_exists(p, SYM_STRING, id))
			say(s, id, sym_string(p, id).ptr, sym_string(p, id).len);
	for (uint32_t id = 0; id < sym_locations_n(p); id++)
		if (sym_exists(p, SYM_LOCATION, id)) {
			struct sym_location l = sym_location(p, id);

			say(s, id + l.address, &l.mapping, sizeof(l.mapping));
			for (uint32_t i = 0; i < l.lines_n; i++)
				say(s, l.lines[i].function, &l.lines[i].line, sizeof(int64_t));
		}
	for (uint32_t id = 1; id < sym_nodes_n(p); id++)
		if (sym_exists(p, SYM_NODE, id)) {
			struct sym_node n = sym_node(p, id);

			say(s, id, &n, sizeof(n));
		}
	partition_close(p);
}

static bool add_value(void *ctx, struct str name, uint32_t series_n)
{
	say(ctx, series_n, name.ptr, name.len);
	return true;
}

static void read_index(struct block *b, struct said *s)
{
	static const struct {
		enum match_op op;
		const char *name, *value;
	} cases[] = { { MATCH_EQ, "job", "v0" }, { MATCH_RE, "service_name", "v1|" },
		{ MATCH_NE, "instance", "v0" }, { MATCH_NRE, "handler", "v.+" } };
	struct bits out = { 0 };
	uint64_t before = s->errors;
	enum err_code rc;

	for (size_t i = 0; i < 4; i++) {
		struct matcher m;

		if (matcher_init(&m, cases[i].op, str_of(cases[i].name), str_of(cases[i].value), NULL))
			abort();
		if ((rc = block_match(b, &m, 1, NULL, NULL, &out, NULL)))
			note_error(s, rc);
		else
			say(s, i, out.w, out.words * sizeof(*out.w));
		matcher_release(&m);
	}
	bits_release(&out);
	if ((rc = block_label_names(b, add_value, s, NULL)))
		note_error(s, rc);
	if ((rc = block_label_values(b, STR("instance"), add_value, s, NULL)))
		note_error(s, rc);
	s->index_errors += s->errors - before;
}

static void read_all(struct block *b, struct said *s)
{
	const struct block_meta *m = block_meta(b);

	say(s, m->series, &m->rows, sizeof(m->rows));
	for (uint32_t i = 0; i < m->series; i++) {
		read_series(b, i, s);
		read_chunks(b, i, s);
		read_rollups(b, ROLLUP_SERIES, i, s);
	}
	for (uint32_t i = 0; i < m->groups; i++) {
		read_rollups(b, ROLLUP_GROUP, i, s);
		read_rollups(b, ROLLUP_FUNCTIONS, i, s);
	}
	for (uint32_t i = 0; i < m->partitions; i++) {
		const struct block_partition *p = block_partition(b, i);

		say(s, p->id, p->name.ptr, p->name.len);
		read_symbols(b, i, s);
	}
	read_index(b, s);
}

/* `got` is a part of `want`, in this order; if anything is missing, that was reported. */
static bool is_part_of(const struct said *got, const struct said *want, bool told)
{
	size_t at = 0;

	for (size_t i = 0; i < got->n; i++, at++) {
		while (at < want->n && want->v[at] != got->v[i])
			at++;
		if (at == want->n)
			return false;
	}
	return got->n == want->n || got->errors || got->lost || told;
}

struct bed {
	struct world w;
	struct said whole;
	struct buf file[4];
};

static char *path_of(struct bed *t, const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", t->w.block, name);
	return path;
}

static void put_file(struct bed *t, int i, size_t len)
{
	int fd = open(path_of(t, files[i]), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, t->file[i].ptr, len) != (ssize_t)len)
		abort();
	close(fd);
}

static bool bed_open(struct bed *t)
{
	const struct world_options o = { &fs_posix, ALL_LEVELS, true };
	struct block_meta meta;
	struct block *b = NULL;
	struct err err, damaged;

	*t = (struct bed){ 0 };
	if (!world_open(&t->w, 7, 1, 3))
		return false;
	CHECK_OK(world_write(&t->w, &o, &meta, &err), &err);
	CHECK_OK(block_open(t->w.block, NULL, NULL, &b, &damaged, &err), &err);
	if (!b)
		return false;
	read_all(b, &t->whole);
	CHECK_INT(t->whole.errors, 0);
	block_close(b);
	for (int i = 0; i < 4; i++)
		CHECK_OK(fs_read_file(path_of(t, files[i]), 1 << 24, &t->file[i], &err), &err);
	return true;
}

static void bed_close(struct bed *t)
{
	for (int i = 0; i < 4; i++)
		buf_release(&t->file[i]);
	free(t->whole.v);
	world_close(&t->w);
}

/* Opens what is there now and compares. */
static void check_damaged(struct bed *t, const char *file, size_t at, bool verify)
{
	struct said now = { 0 };
	struct block *b = NULL;
	struct err err = { 0 }, damaged;
	enum err_code rc = block_open(t->w.block, NULL, NULL, &b, &damaged, &err);

	if (rc) {
		if (!is_damage(rc))
			CHECK_FAIL("%s, byte %zu: opening gives %s", file, at, err.msg);
		return;
	}
	read_all(b, &now);
	if (!is_part_of(&now, &t->whole, damaged.code != ERR_OK))
		CHECK_FAIL("%s, byte %zu: a wrong answer (%d of %d, %d errors, %d lost)", file, at,
			(int)now.n, (int)t->whole.n, (int)now.errors, (int)now.lost);
	if (now.index_errors)
		CHECK_FAIL("%s, byte %zu: the series index has no copy", file, at);
	if (verify && block_verify(b, NULL, NULL, &err) == ERR_OK)
		CHECK_FAIL("%s, byte %zu: damage is not found", file, at);
	free(now.v);
	block_close(b);
}

/* Every byte of the small files; of the others those that fit into the time of a test. */
TEST(no_flipped_byte_gives_a_wrong_answer)
{
	struct bed t;

	REQUIRE(bed_open(&t));
	for (int i = 0; i < 4; i++) {
		size_t step = 1 + t.file[i].len / (check_is_short() ? 300 : 3000);

		for (size_t at = 0; at < t.file[i].len; at += 1 + world_draw(&t.w, step * 2 - 1)) {
			unsigned char flip = (unsigned char)(1u << world_draw(&t.w, 8));
			int fd = open(path_of(&t, files[i]), O_WRONLY);

			t.file[i].ptr[at] ^= (char)flip;
			if (fd < 0 || pwrite(fd, t.file[i].ptr + at, 1, (off_t)at) != 1)
				abort();
			check_damaged(&t, files[i], at, at % 16 == 0);
			t.file[i].ptr[at] ^= (char)flip;
			if (pwrite(fd, t.file[i].ptr + at, 1, (off_t)at) != 1)
				abort();
			close(fd);
		}
	}
	bed_close(&t);
}

TEST(files_may_be_cut_off_or_gone)
{
	const size_t cuts = check_is_short() ? 40 : 300;
	struct bed t;

	REQUIRE(bed_open(&t));
	for (int i = 0; i < 4; i++) {
		for (size_t len = 0; len < t.file[i].len; len += 1 + t.file[i].len / cuts) {
			put_file(&t, i, len);
			check_damaged(&t, files[i], len, true);
		}
		if (unlink(path_of(&t, files[i])))
			abort();
		check_damaged(&t, files[i], 0, true);
		put_file(&t, i, t.file[i].len);
	}
	bed_close(&t);
}

/* Damage with a second copy: everything is read, and the damage is reported. */
TEST(copies_make_up_for_what_is_damaged)
{
	static const struct {
		int file;
		int at; /* from the end where negative; else cut to nothing */
		bool told; /* when it is opened */
	} cases[] = { { 0, -4, true }, { 1, -4, true }, { 0, -48, true }, { 1, -48, true },
		{ 0, -60, true }, { 1, -60, true }, { 3, 0, true }, { 3, -20, true }, { 2, 0, false } };
	struct bed t;

	REQUIRE(bed_open(&t));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf *f = &t.file[cases[i].file];
		size_t at = cases[i].at < 0 ? f->len - (size_t)-cases[i].at : 0;
		struct said now = { 0 };
		struct block *b = NULL;
		struct err err, damaged;

		f->ptr[at] ^= 4;
		put_file(&t, cases[i].file, cases[i].at ? f->len : 0);
		CHECK_OK(block_open(t.w.block, NULL, NULL, &b, &damaged, &err), &err);
		if (b) {
			read_all(b, &now);
			CHECK_INT(now.n, t.whole.n);
			CHECK_INT(now.errors, 0);
			CHECK(is_part_of(&now, &t.whole, false));
			CHECK_INT(damaged.code != ERR_OK, cases[i].told);
			free(now.v);
		}
		block_close(b);
		f->ptr[at] ^= 4;
		put_file(&t, cases[i].file, f->len);
	}
	bed_close(&t);
}

TEST(rows_that_are_gone_are_told)
{
	struct block *b = NULL;
	struct err err, damaged;
	char want[300];
	struct bed t;

	REQUIRE(bed_open(&t));
	CHECK(!unlink(path_of(&t, "rows.ldb")));
	REQUIRE_OK(block_open(t.w.block, NULL, NULL, &b, &damaged, &err), &err);
	snprintf(want, sizeof(want), "%s: No such file or directory", path_of(&t, "rows.ldb"));
	CHECK_STR(str_of(damaged.msg), want);
	CHECK(!block_has_raw(b));
	CHECK(block_meta(b)->raw);
	block_close(b);
	bed_close(&t);
}

/* ---- faults while it is written ---- */

static bool opens_as_whole(struct world *w, struct err *err)
{
	struct block *b = NULL;
	struct err damaged;
	bool whole;

	if (block_open(w->block, NULL, NULL, &b, &damaged, err))
		return false;
	whole = damaged.code == ERR_OK;
	if (whole && block_verify(b, NULL, NULL, err))
		CHECK_FAIL("a block opens as if whole: %s", err->msg);
	block_close(b);
	return whole;
}

TEST(no_fault_leaves_half_a_block)
{
	struct world w;
	struct err err;

	REQUIRE(world_open(&w, 3, 2, 3));
	for (enum disk_kind kind = 0; kind < DISK_KINDS; kind++)
		for (uint64_t nth = 1;; nth += check_is_short() ? 3 : 1) {
			struct disk *d = disk_open(w.dir);
			const struct world_options o = { disk_fs(d), ALL_LEVELS, true };
			struct block_meta meta;
			uint64_t failed;
			enum err_code rc;

			disk_fail(d, nth, kind, nth & 1 ? DISK_FROM_THEN_ON : DISK_ONCE | DISK_TORN);
			rc = world_write(&w, &o, &meta, &err);
			failed = disk_failed(d);
			disk_close(d);
			if (rc == ERR_OK && failed)
				CHECK_FAIL("%s %d: an error was passed over", disk_kind_names[kind], (int)nth);
			if (rc == ERR_OK)
				CHECK(opens_as_whole(&w, &err));
			else if (opens_as_whole(&w, &err) && kind != DISK_SYNC_DIR)
				CHECK_FAIL("%s %d: it opens as if whole", disk_kind_names[kind], (int)nth);
			CHECK_OK(fs_remove_tree(&fs_posix, w.block, &err), &err);
			if (!failed)
				break;
		}
	world_close(&w);
}

TEST(power_cuts_leave_a_whole_block_or_none)
{
	struct world w;
	struct err err;
	bool cut = true;

	REQUIRE(world_open(&w, 4, 2, 3));
	for (uint64_t nth = 1; cut; nth += CHECK_STEP)
		for (uint64_t seed = 0; seed < 3; seed++) {
			struct disk *d = disk_open(w.dir);
			const struct world_options o = { disk_fs(d), ALL_LEVELS, true };
			struct block_meta meta;

			disk_power_cut_at(d, nth);
			(void)!world_write(&w, &o, &meta, &err);
			cut = disk_is_cut(d);
			disk_power_cut(d);
			disk_restore(d, seed);
			disk_close(d);
			if (fs_exists(w.block))
				(void)opens_as_whole(&w, &err);
			CHECK_OK(fs_remove_tree(&fs_posix, w.block, &err), &err);
		}
	world_close(&w);
}
