/*
 * The end of a log: cut off where its last batch was not synced, left alone where it is damaged
 * before that. Logs are LevelDB's own.
 */
#include <stdlib.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/scratch.h"
#include "tsdb/store/store.h"
#include "tsdb/store/store_log.h"

static char dir[64], log_path[128];

static void put(struct store *s, char key, size_t n)
{
	struct store_batch *b = store_batch_open();
	struct buf value = { 0 };
	struct err err;

	while (value.len < n)
		buf_add_char(&value, (char)('a' + value.len % 23));
	store_batch_put(b, (struct str){ &key, 1 }, &value);
	CHECK_OK(store_write(s, b, &err), &err);
	store_batch_close(b);
	buf_release(&value);
}

static bool has(struct store *s, char key, size_t n)
{
	struct buf value = { 0 };
	struct err err;
	bool ok = !store_get(s, (struct str){ &key, 1 }, &value, &err) && value.len == n;

	buf_release(&value);
	return ok;
}

static struct str log_name(struct arena *a)
{
	struct str *names;
	size_t n;

	if (!fs_list(dir, a, &names, &n, NULL))
		for (size_t i = 0; i < n; i++)
			if (str_has_suffix(names[i], STR(".log")))
				return names[i];
	return STR("none");
}

/* Batches of a, b and a again, the last of `last` bytes; the log, and where each ends in it. */
static void fill(size_t first, size_t last, struct buf *log, size_t ends[3])
{
	static const char keys[] = "aba";
	struct store *s;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	snprintf(dir, sizeof(dir), SCRATCH "epi-store-log-XXXXXX");
	REQUIRE(scratch_dir(dir));
	REQUIRE_OK(store_open(dir, NULL, NULL, &s, &err), &err);
	snprintf(log_path, sizeof(log_path), "%s/" STR_FMT, dir, STR_ARG(log_name(&a)));
	for (int i = 0; i < 3; i++) {
		put(s, keys[i], i == 2 ? last : first);
		buf_clear(log);
		CHECK_OK(fs_read_file(log_path, 1 << 24, log, &err), &err);
		ends[i] = log->len;
	}
	store_close(s);
	arena_release(&a);
}

static void done(struct buf *log)
{
	struct err err;

	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	buf_release(log);
}

static const size_t sizes[][2] = { { 10, 10 }, { 100, 3000 }, { 32768 - 80, 40 }, { 500, 100000 },
	{ 70000, 200000 }, { 16346, 20 }, { 16347, 20 }, { 16348, 20 }, { 16349, 20 } };

TEST(a_whole_log_has_no_torn_end)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct buf log = { 0 };
		size_t ends[3] = { 0 };

		fill(sizes[i][0], sizes[i][1], &log, ends);
		CHECK_INT(store_log_whole(buf_str(&log)), log.len);
		done(&log);
	}
}

TEST(bad_bytes_of_the_last_batch_are_its_end)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct buf log = { 0 };
		size_t ends[3] = { 0 }, step;

		fill(sizes[i][0], sizes[i][1], &log, ends);
		step = (ends[2] - ends[1]) / 40 + 1;
		for (size_t at = ends[1]; at < ends[2]; at += step) {
			size_t whole = store_log_whole((struct str){ log.ptr, at });

			/* The padding of a page may be there or not. */
			CHECK(whole >= ends[1] && whole < ends[1] + 7);
			log.ptr[at] ^= 0x20;
			whole = store_log_whole(buf_str(&log));
			if (log.ptr[at] != 0x20 || whole != log.len) /* not what fills a page */
				CHECK(whole >= ends[1] && whole < ends[1] + 7);
			log.ptr[at] ^= 0x20;
		}
		done(&log);
	}
}

TEST(bad_bytes_before_a_record_are_damage)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct buf log = { 0 };
		size_t ends[3] = { 0 };

		fill(sizes[i][0], sizes[i][1], &log, ends);
		for (size_t at = 0; at < ends[1]; at += ends[1] / 50 + 1) {
			log.ptr[at] ^= 0x20;
			CHECK_INT(store_log_whole(buf_str(&log)), log.len);
			log.ptr[at] ^= 0x20;
		}
		done(&log);
	}
}

TEST(what_was_synced_shows_again_when_the_end_is_cut)
{
	struct buf log = { 0 };
	size_t ends[3] = { 0 };
	struct store *s;
	uint64_t cut;
	struct err err;

	fill(100, 3000, &log, ends);
	log.ptr[ends[2] - 5] ^= 1;
	REQUIRE_OK(fs_write_file(&fs_posix, log_path, buf_str(&log), &err), &err);
	CHECK_INT(store_open(dir, NULL, NULL, &s, &err), ERR_CORRUPT);
	REQUIRE_OK(store_cut_logs(&fs_posix, dir, &cut, &err), &err);
	CHECK_INT(cut, ends[2] - ends[1]);
	REQUIRE_OK(store_open(dir, NULL, NULL, &s, &err), &err);
	CHECK(has(s, 'a', 100));
	CHECK(has(s, 'b', 100));
	store_close(s);
	REQUIRE_OK(store_cut_logs(&fs_posix, dir, &cut, &err), &err);
	CHECK_INT(cut, 0);
	done(&log);
}
