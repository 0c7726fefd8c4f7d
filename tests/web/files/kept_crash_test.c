/* Kept files and a bucket: a server that gets one; crashes after each request and call of the disk.
 */
#include "tests/failing_fs.h"
#include "tests/wait.h"
#include "tests/web/files/members.h"

TEST(files_from_before_go_to_the_bucket)
{
	struct kept_file f, damaged, over;
	struct kept_listing l;
	char path[200];

	REQUIRE(begin());
	a.o.bucket = NULL;
	REQUIRE(member_open(&a));
	REQUIRE_OK(put(&a, "x", &f), &err);
	REQUIRE_OK(put(&a, "damaged", &damaged), &err);
	REQUIRE_OK(kept_put(a.k, STR("over"), BYTES, NS_PER_S, now() - DAY, &over, &err), &err);
	member_close(&a);
	path_of(&a, damaged.id, "file", path);
	REQUIRE(flip(path));
	a.o.bucket = b;
	REQUIRE(member_open(&a));
	CHECK(WAIT_FOR(has_copy(&a, f.id)));
	CHECK_INT(objects(), 1);
	CHECK(fs_exists(path)); /* for whoever may mend it */
	REQUIRE(member_open(&c));
	CHECK_OK(get(&c, f.id), &err);
	CHECK_INT(listed(&a, &l), 2);
	CHECK_INT(get(&a, damaged.id), ERR_CORRUPT);
	CHECK(strstr(err.msg, path));
	CHECK_OK(kept_delete(a.k, str_of(damaged.id), &err), &err);
	CHECK(!fs_exists(path));
	/* Without the bucket a copy is nothing. */
	member_close(&a);
	a.o.bucket = NULL;
	REQUIRE(member_open(&a));
	CHECK_INT(get(&a, f.id), ERR_NOT_FOUND);
	CHECK(!has_copy(&a, f.id));
	end();
}

/* The bucket, or the disk, is gone after each request and call: nothing is lost, or there twice. */
TEST(a_crash_while_files_go_to_the_bucket)
{
	for (int left = 0; left < 12; left++) {
		struct failing_fs failing = { .fs = { &failing_fs_ops }, .calls_left = left / 2 };
		struct kept_file f;

		REQUIRE(begin_impatient());
		a.o.bucket = NULL;
		REQUIRE(member_open(&a));
		REQUIRE_OK(put(&a, "x", &f), &err);
		member_close(&a);
		a.o.bucket = b;
		if (left % 2) {
			a.o.fs = &failing.fs;
		} else {
			mutex_lock(&fake.lock);
			fake.limited = fake.last_is_done = true;
			fake.left = (unsigned)left / 2;
			mutex_unlock(&fake.lock);
		}
		REQUIRE(member_open(&a));
		CHECK_OK(get(&a, f.id), &err);
		member_close(&a);
		store_is_away(false);
		a.o.fs = &fs_posix;
		REQUIRE(member_open(&a) && member_open(&c));
		CHECK(WAIT_FOR(has_copy(&a, f.id)));
		CHECK_OK(get(&a, f.id), &err);
		CHECK_OK(get(&c, f.id), &err);
		CHECK_INT(objects(), 1);
		end();
	}
}

/* A crash before the file became a copy, and then the disk damaged it: the bucket has it. */
TEST(a_damaged_file_that_the_bucket_has)
{
	struct kept_file f;
	char file[200], cached[200];

	REQUIRE(begin() && member_open(&a));
	REQUIRE_OK(put(&a, "x", &f), &err);
	member_close(&a);
	path_of(&a, f.id, "file", file);
	path_of(&a, f.id, "cached", cached);
	REQUIRE(!rename(cached, file) && !truncate(file, 5));
	REQUIRE(member_open(&a));
	CHECK(WAIT_FOR(has_copy(&a, f.id)));
	CHECK_OK(get(&a, f.id), &err);
	CHECK_INT(objects(), 1);
	end();
}

/* The store is gone after each request of a put: what was answered is there, and nothing is half.
 */
TEST(a_crash_while_a_file_is_kept)
{
	for (unsigned left = 0, done = 0; !done; left++) {
		struct kept_listing l;
		struct kept_file f;
		enum err_code rc;

		REQUIRE(begin_impatient());
		a.o.list_ns = 3600 * NS_PER_S;
		REQUIRE(member_open(&a));
		REQUIRE(WAIT_FOR(requests(BUCKET_LISTS) == 1));
		mutex_lock(&fake.lock);
		fake.limited = fake.last_is_done = true;
		fake.left = left;
		mutex_unlock(&fake.lock);
		rc = put(&a, "x", &f);
		member_close(&a);
		store_is_away(false);
		REQUIRE(member_open(&c));
		CHECK_INT(listed(&c, &l), objects());
		if (!rc)
			CHECK_INT(l.n, 1);
		for (size_t i = 0; i < l.n; i++)
			CHECK_OK(get(&c, l.v[i].id), &err);
		done = !rc;
		end();
		REQUIRE(left < 20);
	}
}

/* Its disk fails after each call: the bucket has the file, so it is kept. */
TEST(a_disk_that_fails_costs_the_copy_alone)
{
	for (int calls = 0; calls < 12; calls++) {
		struct failing_fs failing = { .fs = { &failing_fs_ops }, .calls_left = calls };
		struct kept_file f;

		REQUIRE(begin());
		a.o.fs = &failing.fs;
		REQUIRE(member_open(&a) && member_open(&c));
		CHECK_OK(put(&a, "x", &f), &err);
		CHECK_OK(get(&a, f.id), &err);
		CHECK_OK(get(&c, f.id), &err);
		member_close(&a);
		a.o.fs = &fs_posix;
		REQUIRE(member_open(&a));
		CHECK_OK(get(&a, f.id), &err);
		end();
	}
}
