/*
 * Segments: files that grow by batches, torn and damaged at every byte, packed, and snapshots.
 */
#include <fcntl.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/scratch.h"
#include "tsdb/segments/segments.h"

static const struct segment head = { 100, 200, 77, 5, 0, false };
static char dir[] = SCRATCH "segments-test-XXXXXX";
static char from[64], to[64];

static void paths(void)
{
	if (!from[0] && !scratch_dir(dir))
		abort();
	snprintf(from, sizeof(from), "%s/from", dir);
	snprintf(to, sizeof(to), "%s/to", dir);
}

static void remove_paths(void)
{
	struct err err;

	(void)!fs_remove_tree(&fs_posix, dir, &err);
	from[0] = '\0';
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
}

static void add_batch(struct buf *out, uint64_t n, const char *key, struct str record)
{
	struct segment_batch b;

	segment_batch_begin(&b, out, n, n);
	segment_batch_add(&b, str_of(key), record);
	segment_batch_add(&b, STR("c"), STR("count"));
	segment_batch_end(&b);
}

/* Batches 5 to 7; ends: where each ends. */
static void make(struct buf *out, size_t *ends)
{
	segment_encode_head(&head, out);
	add_batch(out, 5, "a", STR("first"));
	ends[0] = out->len;
	add_batch(out, 6, "b", STR(""));
	ends[1] = out->len;
	add_batch(out, 7, "c", STR("third"));
	ends[2] = out->len;
}

static void print(struct segment_reader *r, struct buf *out)
{
	struct segment_frame f;
	struct str key, record;
	struct err err;
	enum err_code rc;

	while (!(rc = segment_reader_next(r, &f, &err))) {
		buf_printf(out, "%d-%d%s:", (int)f.first, (int)f.last, f.more ? "+" : "");
		while (segment_record_next(&f.records, &key, &record))
			buf_printf(out, " " STR_FMT "=" STR_FMT, STR_ARG(key), STR_ARG(record));
		buf_add_char(out, '\n');
	}
	if (rc != ERR_NOT_FOUND)
		buf_printf(out, "%s\n", err.msg);
}

static void check_text(struct str bytes, const char *want)
{
	struct segment_reader *r;
	struct buf got = { 0 };
	struct err err;

	if (segment_reader_open(bytes, &r, &err)) {
		CHECK_STR(str_of(err.msg), want);
		return;
	}
	print(r, &got);
	CHECK_STR(buf_str(&got), want);
	segment_reader_close(r);
	buf_release(&got);
}

#define ALL_TEXT "5-5: a=first c=count\n6-6: b= c=count\n7-7: c=third c=count\n"

TEST(what_was_written_is_read)
{
	struct buf b = { 0 };
	size_t ends[3];

	make(&b, ends);
	check_text(buf_str(&b), ALL_TEXT);
	buf_release(&b);
}

/* Each length and each changed byte: batches before it are whole, and nothing after it is used. */
TEST(whole_batches_are_found_in_torn_and_damaged_files)
{
	struct buf b = { 0 };
	size_t ends[3];

	paths();
	make(&b, ends);
	for (size_t n = 0; n <= 2 * b.len; n++) {
		size_t at = n <= b.len ? n : n - b.len - 1, len = n <= b.len ? n : b.len;
		uint64_t want = at < ends[0] ? 0 : at < ends[1] ? 5 : at < ends[2] ? 6 : 7;
		size_t want_bytes = want ? ends[want - 5] : SEGMENT_HEAD_BYTES;
		struct segment_whole w;
		struct err err;
		enum err_code rc;

		if (n > b.len)
			b.ptr[at] ^= 0x10;
		CHECK_OK(fs_write_file(&fs_posix, from, (struct str){ b.ptr, len }, &err), &err);
		rc = segment_find_whole(from, UINT64_MAX, &w, &err);
		if (at < SEGMENT_HEAD_BYTES) {
			CHECK(rc == ERR_CORRUPT || rc == ERR_UNSUPPORTED);
		} else {
			CHECK_INT(rc, ERR_OK);
			CHECK_INT(w.last, want);
			CHECK_INT(w.bytes, want_bytes);
			CHECK_INT(w.head.first, 5);
		}
		if (n > b.len)
			b.ptr[at] ^= 0x10;
	}
	buf_release(&b);
	remove_paths();
}

static void check_packed(uint64_t last, const char *want)
{
	struct buf packed = { 0 };
	struct segment s;
	struct err err;
	uint64_t bytes;

	CHECK_OK(segment_pack(&fs_posix, from, last, to, &s, &bytes, &err), &err);
	CHECK_OK(fs_read_file(to, 1 << 20, &packed, &err), &err);
	CHECK_INT(packed.len, bytes);
	CHECK_INT(s.last, last);
	check_text(buf_str(&packed), want);
	/* An object cut anywhere, or with a byte changed or added, is refused, or reads the same. */
	for (size_t n = 0; n < packed.len; n++) {
		struct buf got = { 0 };
		struct segment_reader *r;

		if (!segment_reader_open((struct str){ packed.ptr, n }, &r, &err)) {
			print(r, &got);
			CHECK(!str_eq(buf_str(&got), str_of(want)));
			segment_reader_close(r);
		}
		buf_clear(&got);
		packed.ptr[n] ^= 4;
		if (!segment_reader_open(buf_str(&packed), &r, &err)) {
			print(r, &got);
			CHECK(str_eq(buf_str(&got), str_of(want)) || err.code == ERR_CORRUPT);
			segment_reader_close(r);
		}
		packed.ptr[n] ^= 4;
		buf_release(&got);
	}
	buf_add_char(&packed, 'x');
	{
		struct segment_reader *r;
		struct segment_frame f;
		enum err_code rc;

		CHECK_OK(segment_reader_open(buf_str(&packed), &r, &err), &err);
		while (!(rc = segment_reader_next(r, &f, &err)))
			;
		CHECK_INT(rc, ERR_CORRUPT);
		segment_reader_close(r);
	}
	buf_release(&packed);
}

TEST(files_are_packed_up_to_a_batch)
{
	struct buf b = { 0 };
	size_t ends[3];
	struct segment s;
	uint64_t bytes;
	struct err err;

	paths();
	make(&b, ends);
	buf_add_cstr(&b, "half of a frame");
	CHECK_OK(fs_write_file(&fs_posix, from, buf_str(&b), &err), &err);
	check_packed(7, ALL_TEXT);
	check_packed(6, "5-5: a=first c=count\n6-6: b= c=count\n");
	CHECK_INT(segment_pack(&fs_posix, from, 8, to, &s, &bytes, &err), ERR_CORRUPT);
	CHECK(!fs_exists(to) || unlink(to) == 0);
	CHECK_INT(segment_pack(&fs_posix, from, 4, to, &s, &bytes, &err), ERR_INVALID);
	buf_release(&b);
	remove_paths();
}

/* A batch of many frames, some larger than a frame should be. */
TEST(a_snapshot_has_many_frames)
{
	const struct segment s = { 100, 200, 77, 1, 99, true };
	struct segment_writer *w;
	struct segment_reader *r;
	struct segment_frame f;
	struct buf big = { 0 };
	struct str key, record;
	size_t records = 0, frames = 0;
	char name[16];
	uint64_t bytes;
	struct err err;
	enum err_code rc;

	paths();
	CHECK_OK(segment_writer_open(&fs_posix, to, &s, &w, &err), &err);
	for (int i = 0; i < 3000; i++) {
		buf_clear(&big);
		for (int k = 0; k < (i == 7 ? 3000000 : 2000); k++)
			buf_add_char(&big, (char)(i * 31 + k % 89 * k % 251));
		snprintf(name, sizeof(name), "r%05d", i);
		CHECK_OK(segment_writer_add(w, str_of(name), buf_str(&big), &err), &err);
	}
	CHECK_OK(segment_writer_end(w, &bytes, &err), &err);
	CHECK_OK(segment_reader_open_file(to, &r, &err), &err);
	while (!(rc = segment_reader_next(r, &f, &err))) {
		frames++;
		CHECK_INT(f.first, 1);
		CHECK_INT(f.last, 99);
		while (segment_record_next(&f.records, &key, &record)) {
			snprintf(name, sizeof(name), "r%05d", (int)records);
			CHECK(str_is(key, name));
			CHECK_INT(record.len, records == 7 ? 3000000 : 2000);
			records++;
		}
	}
	CHECK_INT(rc, ERR_NOT_FOUND);
	CHECK_INT(records, 3000);
	CHECK(frames >= 6 && !f.more);
	segment_reader_close(r);
	buf_release(&big);
	remove_paths();
}

TEST(frames_of_other_batches_are_refused)
{
	static const struct {
		uint64_t second;
		const char *want;
	} cases[] = {
		{ 5, "5-5: a= c=count\nsegment in memory: byte 36: a frame of other batches\n" },
		{ 6, "5-5: a= c=count\n6-6: a= c=count\n" },
		{ 7, "5-5: a= c=count\nsegment in memory: byte 36: a frame of other batches\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf b = { 0 };

		segment_encode_head(&head, &b);
		add_batch(&b, 5, "a", STR(""));
		add_batch(&b, cases[i].second, "a", STR(""));
		check_text(buf_str(&b), cases[i].want);
		buf_release(&b);
	}
	check_text(STR("EPSG"), "segment: no head");
}
