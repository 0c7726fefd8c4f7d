/* Pages on disk: the budget, what stays, damage, a full disk, what a killed process leaves;
 * threads. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/thread.h"
#include "tests/tsdb/remote/world.h"
#include "tests/wait.h"

static struct buf bytes, large;

/* A small object of 4 pages, and a large one of chunks. */
#define LARGE "x/rows.ldb"

static bool open_both(uint32_t pages, struct range_reader *out[2])
{
	make_bytes(&bytes, 4 * PAGE - 9, 1);
	make_bytes(&large, (size_t)pages * PAGE - 100, pages);
	put_object("k", &bytes);
	put_object(LARGE, &large);
	range_know(remote_source(remote), "k", bytes.len, 1);
	range_know(remote_source(remote), LARGE, large.len, 2);
	return range_open(remote_source(remote), "k", &out[0], &err) == ERR_OK &&
		range_open(remote_source(remote), LARGE, &out[1], &err) == ERR_OK;
}

static void close_both(struct range_reader *r[2])
{
	range_close(r[0]);
	range_close(r[1]);
}

static enum err_code read_both(struct range_reader *r[2], struct err *why)
{
	enum err_code rc = read_same(r[0], &bytes, 0, bytes.len, why);

	return rc ? rc : read_same(r[1], &large, 0, large.len, why);
}

static int open_file(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", cache, name);
	return open(path, O_RDWR);
}

TEST(small_objects_and_indexes_stay_longest)
{
	struct range_reader *r[2];
	struct remote_status s;

	REQUIRE(remote_world(32));
	REQUIRE(open_both(100, r));
	CHECK_OK(read_same(r[1], &large, large.len - 48, 48, &err), &err);
	CHECK_OK(read_both(r, &err), &err);
	CHECK_OK(read_both(r, &err), &err);
	remote_status(remote, &s);
	CHECK(s.cache_bytes > 0 && s.cache_bytes <= 32 * PAGE);
	close_both(r);
	REQUIRE(remote_again());
	REQUIRE(open_both(100, r));
	CHECK_OK(read_same(r[0], &bytes, 0, bytes.len, &err), &err);
	CHECK_OK(read_same(r[1], &large, large.len - 48, 48, &err), &err);
	CHECK_INT(requests(), 0);
	CHECK_OK(read_same(r[1], &large, 0, 48, &err), &err);
	CHECK_INT(requests(), 1);
	close_both(r);
	/* A smaller budget: the rest is cut off. */
	options.cache_bytes = 2 * (PAGE + 64);
	REQUIRE(remote_again());
	remote_status(remote, &s);
	CHECK(s.cache_bytes <= 2 * PAGE);
	REQUIRE(open_both(100, r));
	CHECK_OK(read_both(r, &err), &err);
	close_both(r);
	remote_world_stop();
}

/* Pages of indexes only: the oldest of them go. */
TEST(what_stays_goes_too_where_there_is_nothing_else)
{
	struct range_reader *r;
	char key[16];

	REQUIRE(remote_world(4));
	for (int i = 0; i < 10; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		make_bytes(&bytes, PAGE, (uint32_t)i);
		put_object(key, &bytes);
		range_know(remote_source(remote), key, bytes.len, 1);
		REQUIRE_OK(range_open(remote_source(remote), key, &r, &err), &err);
		CHECK_OK(read_same(r, &bytes, 0, bytes.len, &err), &err);
		range_close(r);
	}
	REQUIRE(remote_again());
	for (int i = 9; i >= 0; i--) {
		snprintf(key, sizeof(key), "k%d", i);
		make_bytes(&bytes, PAGE, (uint32_t)i);
		range_know(remote_source(remote), key, bytes.len, 1);
		REQUIRE_OK(range_open(remote_source(remote), key, &r, &err), &err);
		CHECK_OK(read_same(r, &bytes, 0, bytes.len, &err), &err);
		CHECK_INT(requests(), i > 5 ? 0 : 6 - i);
		range_close(r);
	}
	remote_world_stop();
}

/* ---- damage ---- */

TEST(a_damaged_page_is_read_again)
{
	struct range_reader *r[2];
	struct remote_status s;
	struct stat st;
	char byte;
	int fd;

	REQUIRE(remote_world(200));
	REQUIRE(open_both(100, r));
	CHECK_OK(read_both(r, &err), &err);
	close_both(r);
	remote_stop();
	fd = open_file("pages");
	REQUIRE(fd >= 0 && fstat(fd, &st) == 0);
	for (off_t at = 100; at < st.st_size; at += 10 * PAGE)
		CHECK(pread(fd, &byte, 1, at) == 1 && (byte ^= 4, pwrite(fd, &byte, 1, at) == 1));
	close(fd);
	REQUIRE(remote_start());
	REQUIRE(open_both(100, r));
	CHECK_OK(read_both(r, &err), &err);
	remote_status(remote, &s);
	CHECK_INT(s.damaged_pages, 11);
	CHECK(s.requests > 0 && s.requests <= 11);
	close_both(r);
	REQUIRE(remote_again());
	REQUIRE(open_both(100, r));
	CHECK_OK(read_both(r, &err), &err);
	CHECK_INT(requests(), 0);
	close_both(r);
	remote_world_stop();
}

/* The files cut off at any place, an index of anything: never a wrong byte. */
TEST(files_of_any_length_and_content)
{
	struct range_reader *r[2];
	int index, pages;
	char junk[64];

	REQUIRE(remote_world(200));
	for (int turn = 0; turn < 6; turn++) {
		REQUIRE(open_both(30, r));
		CHECK_OK(read_both(r, &err), &err);
		close_both(r);
		remote_stop();
		index = open_file("index");
		pages = open_file("pages");
		REQUIRE(index >= 0 && pages >= 0);
		memset(junk, turn * 17, sizeof(junk));
		if (turn == 0)
			CHECK(ftruncate(pages, 10 * PAGE + 77) == 0);
		else if (turn == 1)
			CHECK(ftruncate(index, 64 * 7 + 5) == 0);
		else if (turn == 2)
			CHECK(ftruncate(pages, 0) == 0);
		else if (turn == 3)
			CHECK(ftruncate(index, 0) == 0);
		else
			for (off_t at = 0; at < 34 * 64; at += turn * 64)
				CHECK(pwrite(index, junk, 64, at) == 64);
		/* An entry of a page twice: one of the two counts. */
		if (turn == 5)
			CHECK(pread(index, junk, 64, 64) == 64 && pwrite(index, junk, 64, 128) == 64);
		close(index);
		close(pages);
		REQUIRE(remote_start());
	}
	REQUIRE(open_both(30, r));
	CHECK_OK(read_both(r, &err), &err);
	close_both(r);
	remote_world_stop();
}

TEST(a_full_disk_fails_no_read)
{
	struct rlimit old, now;
	struct range_reader *r[2];
	struct remote_status s;

	signal(SIGXFSZ, SIG_IGN);
	REQUIRE(remote_world(200));
	REQUIRE(open_both(100, r));
	REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
	now = (struct rlimit){ 20 * PAGE, old.rlim_max };
	REQUIRE(setrlimit(RLIMIT_FSIZE, &now) == 0);
	CHECK_OK(read_both(r, &err), &err);
	CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0);
	remote_status(remote, &s);
	CHECK(s.cache_off.code != ERR_OK);
	CHECK(str_has_suffix(str_of(s.cache_off.msg), STR(": write a page: File too large")));
	close_both(r);
	REQUIRE(remote_again());
	REQUIRE(open_both(100, r));
	CHECK_OK(read_both(r, &err), &err);
	remote_status(remote, &s);
	CHECK_INT(s.cache_off.code, ERR_OK);
	CHECK_INT(s.damaged_pages, 0);
	close_both(r);
	/* Less room than the reserve: it takes no more, and what is there stays. */
	remote_stop();
	options.free_bytes_reserve = UINT64_MAX / 2;
	options.bucket = b;
	options.cache_bytes = 400 * PAGE;
	REQUIRE_OK(remote_open(&options, &remote, &err), &err);
	REQUIRE(open_both(100, r));
	CHECK_OK(read_both(r, &err), &err);
	CHECK_INT(requests(), 0);
	close_both(r);
	remote_world_stop();
}

TEST(a_cache_of_another_process_is_left_alone)
{
	struct remote *other;
	struct remote_status s;

	REQUIRE(remote_world(200));
	REQUIRE_OK(remote_open(&options, &other, &err), &err);
	remote_status(other, &s);
	CHECK_INT(s.cache_off.code, ERR_UNAVAILABLE);
	CHECK(str_has_suffix(str_of(s.cache_off.msg), STR(" is the cache of another process")));
	remote_close(other);
	remote_world_stop();
}

/* ---- a process that is killed ---- */

/* Reads until it is killed, with a cache that is too small. */
static void be_killed(int port_pipe, int ready_pipe)
{
	struct range_reader *r[2];
	char one = 1;

	if (read(port_pipe, &fake.server.port, sizeof(fake.server.port)) != sizeof(fake.server.port))
		_exit(1);
	config = fake_config(&fake);
	options = (struct remote_options){
		.cache_dir = cache, .cache_bytes = 40 * (PAGE + 64), .memory_bytes = 4 * PAGE
	};
	make_bytes(&bytes, 4 * PAGE - 9, 1);
	make_bytes(&large, 100 * PAGE - 100, 100);
	if (!remote_start())
		_exit(2);
	range_know(remote_source(remote), "k", bytes.len, 1);
	range_know(remote_source(remote), LARGE, large.len, 2);
	if (range_open(remote_source(remote), "k", &r[0], &err) ||
		range_open(remote_source(remote), LARGE, &r[1], &err))
		_exit(3);
	while (!read_both(r, &err))
		if (write(ready_pipe, &one, 1) != 1)
			_exit(4);
	printf("  %s\n", err.msg);
	fflush(stdout);
	_exit(5);
}

TEST(a_killed_process_leaves_nothing_wrong)
{
	struct range_reader *r[2];
	struct remote_status s;

	for (int turn = 0; turn < 5; turn += check_is_short() ? 2 : 1) {
		int port[2], ready[2], status;
		char one;
		pid_t child;

		/* The child begins before there is any other thread. */
		REQUIRE(cache_make() && pipe(port) == 0 && pipe(ready) == 0);
		fflush(stdout);
		child = fork();
		if (child == 0)
			be_killed(port[0], ready[1]);
		close(ready[1]); /* so that its end is seen */
		REQUIRE(child > 0 && world_fake());
		make_bytes(&bytes, 4 * PAGE - 9, 1);
		make_bytes(&large, 100 * PAGE - 100, 100);
		put_object("k", &bytes);
		put_object(LARGE, &large);
		CHECK(write(port[1], &fake.server.port, sizeof(fake.server.port)) ==
			sizeof(fake.server.port));
		for (int i = 0; i <= turn; i++)
			CHECK(read(ready[0], &one, 1) == 1);
		usleep((useconds_t)turn * 777);
		CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
		CHECK(WIFSIGNALED(status));
		options = (struct remote_options){ .cache_dir = cache, .cache_bytes = 40 * (PAGE + 64) };
		REQUIRE(remote_start());
		remote_status(remote, &s);
		CHECK(s.cache_bytes > 0);
		CHECK_INT(s.cache_off.code, ERR_OK);
		REQUIRE(open_both(100, r));
		CHECK_OK(read_both(r, &err), &err);
		close_both(r);
		remote_world_stop();
		close(port[0]);
		close(port[1]);
		close(ready[0]);
	}
}

/* ---- threads ---- */

#define THREADS 8

struct reading {
	struct thread thread;
	struct range_reader **r;
	uint32_t seed;
	int turns;
	struct err why;
	enum err_code rc;
};

static void read_anywhere(void *ctx)
{
	struct reading *t = ctx;
	uint32_t v = t->seed;

	for (int i = 0; i < t->turns && !t->rc; i++) {
		const struct buf *of;
		uint64_t at;
		size_t n;

		v = v * 1664525u + 1013904223u;
		of = v >> 30 ? &large : &bytes;
		at = (v >> 3) % of->len;
		n = 1 + (v >> 9) % (3 * PAGE);
		n = n < of->len - at ? n : of->len - at;
		if (v % 7 == 0)
			range_expect(t->r[of == &large], at, n);
		t->rc = read_same(t->r[of == &large], of, at, n, &t->why);
	}
}

static void run_threads(struct range_reader *r[2], int turns)
{
	struct reading t[THREADS] = { 0 };

	for (uint32_t i = 0; i < THREADS; i++) {
		t[i] = (struct reading){ .r = r, .seed = i * 77 + 1, .turns = turns };
		CHECK_OK(thread_start(&t[i].thread, "read", read_anywhere, &t[i], &err), &err);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		thread_join(&t[i].thread);
		CHECK_OK(t[i].rc, &t[i].why);
	}
}

TEST(many_threads_with_little_memory_and_little_disk)
{
	struct range_reader *r[2];

	for (uint64_t pages = 0; pages < 60; pages += 20) {
		REQUIRE(remote_world(pages));
		options.memory_bytes = 4 * PAGE;
		REQUIRE(remote_again());
		REQUIRE(open_both(100, r));
		run_threads(r, 300 / CHECK_STEP);
		close_both(r);
		remote_world_stop();
	}
}

static void read_one(void *ctx)
{
	struct reading *t = ctx;

	t->rc = read_same(t->r[1], &large, 50 * PAGE, 100, &t->why);
}

TEST(threads_that_want_a_page_wait_for_one_request)
{
	struct reading t[THREADS] = { 0 };
	struct range_reader *r[2];

	REQUIRE(remote_world(10));
	REQUIRE(open_both(100, r));
	for (size_t i = 0; i < THREADS; i++) {
		t[i].r = r;
		CHECK_OK(thread_start(&t[i].thread, "read", read_one, &t[i], &err), &err);
	}
	for (size_t i = 0; i < THREADS; i++) {
		thread_join(&t[i].thread);
		CHECK_OK(t[i].rc, &t[i].why);
	}
	CHECK_INT(requests(), 1);
	close_both(r);
	remote_world_stop();
}
