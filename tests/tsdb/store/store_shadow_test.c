/* A store over a disk that has no room: all of it is read, and nothing is written to the disk. */
#include <unistd.h>

#include "base/fs.h"
#include "base/map.h"
#include "tests/check.h"
#include "tests/scratch.h"
#include "tsdb/store/store.h"

#define RECORDS 30000
#define VALUE_BYTES 600u /* beyond what is in the log alone: some are in tables */

static char *temporary_dir(void)
{
	static char dir[64];

	snprintf(dir, sizeof(dir), SCRATCH "epimetheus-shadow-XXXXXX");
	return scratch_dir(dir);
}

static struct str key_of(char *space, int i)
{
	snprintf(space, 16, "k%08d", i);
	return str_of(space);
}

static void value_of(int i, struct buf *out)
{
	buf_clear(out);
	for (unsigned k = 0; k < VALUE_BYTES / 8; k++)
		buf_add_u64be(out, map_hash_u64((uint64_t)i * 1000 + k));
}

static void put(struct store *s, int from, int to, enum err_code want)
{
	struct store_batch *b = store_batch_open();
	struct buf value = { 0 };
	enum err_code rc = ERR_OK;
	struct err err;
	char key[16];

	for (int i = from; i < to && !rc; i++) {
		value_of(i, &value);
		store_batch_put(b, key_of(key, i), &value);
		if (i % 500 < 499 && i + 1 < to)
			continue;
		rc = store_write(s, b, &err);
		store_batch_clear(b);
	}
	CHECK_INT(rc, want);
	buf_release(&value);
	store_batch_close(b);
}

static void check_all(struct store *s, int n)
{
	struct store_iter *it = store_iter_open(s, NULL);
	struct buf want = { 0 };
	struct str value;
	struct err err;
	int i = 0;

	for (store_iter_seek(it, STR("")); store_iter_valid(it); store_iter_next(it), i++) {
		value_of(i, &want);
		CHECK_OK(store_iter_value(it, &value, &err), &err);
		if (!str_eq(value, buf_str(&want)))
			CHECK_FAIL("record %d is another", i);
	}
	CHECK_OK(store_iter_status(it, &err), &err);
	CHECK_INT(i, n);
	store_iter_close(it);
	buf_release(&want);
}

/* Names and contents. */
static uint64_t hash_dir(const char *dir)
{
	uint64_t h = 0;
	struct buf content = { 0 };
	struct arena a;
	struct str *names;
	struct err err;
	size_t n = 0;

	arena_init(&a, 0);
	CHECK_OK(fs_list(dir, &a, &names, &n, &err), &err);
	for (size_t i = 0; i < n; i++) {
		buf_clear(&content);
		CHECK_OK(
			fs_read_file(path_join(&a, str_of(dir), names[i]), 1u << 30, &content, &err), &err);
		h = hash_bytes(names[i].ptr, names[i].len, h);
		h = hash_bytes(content.ptr, content.len, h);
	}
	buf_release(&content);
	arena_release(&a);
	return h;
}

TEST(a_shadow_reads_all_and_writes_nothing)
{
	const char *dir = temporary_dir();
	struct store *s = NULL;
	struct err err;
	uint64_t before;

	REQUIRE(dir);
	REQUIRE_OK(store_open(dir, NULL, NULL, &s, &err), &err);
	put(s, 0, RECORDS, ERR_OK);
	store_close(s);
	before = hash_dir(dir);
	for (int i = 0; i < 2; i++) {
		REQUIRE_OK(store_open_shadow(dir, NULL, NULL, &s, &err), &err);
		check_all(s, RECORDS);
		put(s, RECORDS, RECORDS + 1000, ERR_OK);
		check_all(s, RECORDS + 1000);
		store_close(s);
		CHECK(hash_dir(dir) == before);
	}
	/* In memory there is room for so much. */
	REQUIRE_OK(store_open_shadow(dir, NULL, NULL, &s, &err), &err);
	put(s, RECORDS, RECORDS + 400000, ERR_IO);
	store_close(s);
	CHECK(hash_dir(dir) == before);
	/* And nothing of it is in the way. */
	REQUIRE_OK(store_open(dir, NULL, NULL, &s, &err), &err);
	check_all(s, RECORDS);
	store_close(s);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
}

TEST(errors_of_a_full_disk_are_known)
{
	struct err err;

	err_set(&err, ERR_IO, "store x: IO error: x/000005.ldb: No space left on device");
	CHECK(store_is_full(&err));
	err_set(&err, ERR_IO, "store x: IO error: x/000005.ldb: Disk quota exceeded");
	CHECK(store_is_full(&err));
	err_set(&err, ERR_IO, "store x: IO error: x/000005.ldb: Input/output error");
	CHECK(!store_is_full(&err));
	err_set(&err, ERR_CORRUPT, "No space left on device");
	CHECK(!store_is_full(&err));
}
