/* Links of samples to spans in windows and blocks: their versions, and damage that leaves rows
 * alone. */
#include "base/fs.h"
#include "tests/check.h"
#include "tests/tsdb/town.h"
#include "tsdb/block/block.h"
#include "tsdb/head/keys.h"
#include "tsdb/store/store.h"

#define SPANS 1000u /* 24 bytes each: more than a page */
#define WINDOW_S 10

static const char *const types[] = { "samples/count", NULL };

/* main;f0 .. main;f9, each under a hundred spans; without links each once. */
static struct pprof *linked(struct fixture *f, int64_t ts_s, bool links)
{
	struct pprof_link *spans = arena_array(&f->arena, struct pprof_link, SPANS + 1);
	uint32_t *of = arena_array(&f->arena, uint32_t, SPANS);
	static char text[SPANS][24];
	static const char *lines[SPANS + 1];
	struct pprof *p;

	for (uint32_t i = 0; i < SPANS; i++) {
		snprintf(text[i], sizeof(text[i]), "main;f%u %u", i % 10, 1 + i % 3);
		lines[i] = text[i];
		memcpy(spans[i + 1].trace_id, "trace of a test", 16);
		memcpy(spans[i + 1].span_id, &i, sizeof(i));
		spans[i + 1].span_id[7] = (unsigned char)ts_s;
		of[i] = i + 1;
	}
	lines[links ? SPANS : 10] = NULL;
	p = profile_of(&f->arena, types, lines);
	if (links) {
		p->links = spans;
		p->links_n = SPANS + 1;
		p->sample_links = of;
	}
	return p;
}

static bool open_small(struct fixture *f)
{
	if (!fixture_open(f))
		return false;
	f->o.window_ns = WINDOW_S * SEC;
	f->o.too_old_ns = 0;
	f->o.retention_ns = 0;
	f->o.block_max_ns = WINDOW_S * SEC; /* none are joined */
	f->o.no_compaction = true;
	return fixture_reopen(f);
}

static void append_at(struct fixture *f, struct labels l, int64_t ts_s, bool links)
{
	CHECK_OK(append_wait(f->db, l, (T0 + ts_s) * SEC, SEC, linked(f, ts_s, links), NULL, false,
				 NULL, &f->err),
		&f->err);
}

static void text_of(struct fixture *f, struct labels l, struct buf *out)
{
	buf_clear(out);
	CHECK(rows_text(f->db, l, T0 * SEC, (T0 + WINDOW_S) * SEC, out, &f->err));
}

static void expect(struct fixture *f, bool links, struct buf *out)
{
	buf_clear(out);
	for (int64_t ts = 4; ts <= 8; ts += 4) {
		buf_printf(out, "@%lld\n", (long long)(T0 + ts));
		(links ? profile_samples_text : profile_bare_text)(linked(f, ts, true), out);
	}
}

/* "\"version\":N" of a block's meta.json. */
static int block_version(struct fixture *f, size_t i)
{
	struct buf text = { 0 };
	ptrdiff_t at;
	int version = 0;

	CHECK_OK(
		fs_read_file(arena_printf(&f->arena, "%s/meta.json", block_dir(f->db->blocks[i]->block)),
			1u << 20, &text, &f->err),
		&f->err);
	at = str_find(buf_str(&text), STR("\"version\":"));
	if (at >= 0)
		version = text.ptr[at + 10] - '0';
	buf_release(&text);
	return version;
}

/* Older programs refuse what has links, and nothing else. */
TEST(only_windows_and_blocks_with_links_have_a_new_version)
{
	struct fixture f;
	struct labels l;

	REQUIRE(open_small(&f));
	l = labels_of(&f.arena, "p", "a", "i");
	append_at(&f, l, 4, false);
	append_at(&f, l, 14, true);
	append_at(&f, l, 24, false);
	append_at(&f, l, 34, false);
	for (int again = 0; again < 2; again++) {
		REQUIRE(fixture_reopen(&f));
		REQUIRE(f.db->windows_n == 4);
		CHECK(!f.db->windows[0]->links && f.db->windows[1]->links && !f.db->windows[2]->links);
	}
	append_at(&f, l, 24 + 1000, true);
	REQUIRE_OK(db_compact(f.db, &f.err), &f.err);
	REQUIRE(f.db->blocks_n >= 3);
	CHECK_INT(block_version(&f, 0), 2);
	CHECK_INT(block_version(&f, 1), 3);
	CHECK_INT(block_version(&f, 2), 2);
	CHECK_INT(block_meta(f.db->blocks[1]->block)->links, 1);
	fixture_close(&f);
}

/* Changes a byte of a record and makes its checksum anew: what a disk cannot do, but a fault of
 * ours might. */
static void spoil_record(struct fixture *f, struct labels l, int64_t ts_s)
{
	struct window *w = f->db->windows[0];
	struct series *s = series_find(f->db->series, l);
	struct key key = key_row(s->id, (T0 + ts_s) * SEC);
	struct store_batch *b = store_batch_open();
	struct buf v = { 0 };

	series_release(s);
	REQUIRE_OK(store_get(w->store, key_str(&key), &v, &f->err), &f->err);
	v.ptr[v.len - 1] ^= 1; /* links come last */
	store_batch_set_identity(b, w->identity);
	store_batch_put(b, key_str(&key), &v);
	CHECK_OK(store_write(w->store, b, &f->err), &f->err);
	store_batch_close(b);
	buf_release(&v);
}

static void count_finding(void *ctx, const char *what)
{
	CHECK(strstr(what, "series 0: links of samples to spans: wrong checksum") != NULL);
	++*(int *)ctx;
}

TEST(links_of_a_wrong_checksum_are_a_warning_in_windows_and_blocks)
{
	struct buf got = { 0 }, want = { 0 };
	int findings = 0;
	struct fixture f;
	struct labels l;

	REQUIRE(open_small(&f));
	l = labels_of(&f.arena, "p", "a", "i");
	append_at(&f, l, 4, true);
	append_at(&f, l, 8, true);
	expect(&f, true, &want);
	text_of(&f, l, &got);
	CHECK(str_eq(buf_str(&got), buf_str(&want)));
	spoil_record(&f, l, 4);
	spoil_record(&f, l, 8);
	expect(&f, false, &want);
	buf_printf(&want,
		"warning: rows of the window that starts at %d may be missing: links of samples to spans: "
		"wrong checksum\n",
		T0);
	text_of(&f, l, &got);
	CHECK(str_eq(buf_str(&got), buf_str(&want)));
	append_at(&f, l, 1000, false);
	REQUIRE_OK(db_compact(f.db, &f.err), &f.err);
	REQUIRE(f.db->blocks_n == 1);
	expect(&f, false, &want);
	buf_printf(&want,
		"warning: rows of the block that starts at %d may be missing: links of samples to spans: "
		"wrong checksum\n",
		T0);
	text_of(&f, l, &got);
	CHECK(str_eq(buf_str(&got), buf_str(&want)));
	CHECK_INT(block_verify(f.db->blocks[0]->block, count_finding, &findings, &f.err), ERR_CORRUPT);
	CHECK_INT(findings, 2);
	buf_release(&got);
	buf_release(&want);
	fixture_close(&f);
}

/* A damaged page of links in a block. */
TEST(rows_are_answered_without_their_damaged_links)
{
	struct buf got = { 0 }, want = { 0 }, bytes = { 0 };
	struct fixture f;
	struct labels l;
	const char *path;
	ptrdiff_t at;

	REQUIRE(open_small(&f));
	l = labels_of(&f.arena, "p", "a", "i");
	append_at(&f, l, 4, true);
	append_at(&f, l, 8, true);
	append_at(&f, l, 1000, false);
	REQUIRE_OK(db_compact(f.db, &f.err), &f.err);
	REQUIRE(f.db->blocks_n == 1);
	expect(&f, true, &want);
	text_of(&f, l, &got);
	CHECK(str_eq(buf_str(&got), buf_str(&want)));
	path = arena_printf(&f.arena, "%s/rows.ldb", block_dir(f.db->blocks[0]->block));
	db_close(f.db);
	f.db = NULL;
	REQUIRE_OK(fs_read_file(path, 1u << 20, &bytes, &f.err), &f.err);
	/* Of both rows: in the first and in the last span. */
	at = str_find(buf_str(&bytes), STR("trace of a test"));
	REQUIRE(at > 0);
	bytes.ptr[at] ^= 1;
	bytes.ptr[at + 2 * SPANS * 24] ^= 1;
	REQUIRE_OK(fs_write_file(&fs_posix, path, buf_str(&bytes), &f.err), &f.err);
	REQUIRE(fixture_reopen(&f));
	expect(&f, false, &want);
	text_of(&f, l, &got);
	CHECK(str_has_prefix(buf_str(&got), buf_str(&want)));
	CHECK(str_find(buf_str(&got), STR("warning: rows of the block that starts at")) ==
		(ptrdiff_t)want.len);
	buf_release(&got);
	buf_release(&want);
	buf_release(&bytes);
	fixture_close(&f);
}
