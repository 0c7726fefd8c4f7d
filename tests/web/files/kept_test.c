/* Files that are kept: until when, how many, through crashes and damage. */
#include "web/files/kept.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/check.h"
#include "tests/failing_fs.h"

#define NOW (INT64_C(1700000000) * NS_PER_S)
/* The thread that removes what is over has the clock of the machine: files here outlive it. */
#define LONG (200 * 365 * NS_PER_DAY / 4)
#define BYTES STR("main;f 3\n")

struct world {
	char base[64], dir[80];
	struct kept *k;
	struct arena a;
	struct err err;
};

static struct kept_options options(const struct world *w, struct fs *fs, uint64_t bytes_max)
{
	return (struct kept_options){
		.fs = fs, .dir = w->dir, .bytes_max = bytes_max, .time_max_ns = LONG
	};
}

static bool make(struct world *w)
{
	memset(w, 0, sizeof(*w));
	snprintf(w->base, sizeof(w->base), "/tmp/epi-kept-XXXXXX");
	if (!mkdtemp(w->base))
		return false;
	snprintf(w->dir, sizeof(w->dir), "%s/files", w->base);
	arena_init(&w->a, 64u << 20);
	return true;
}

static bool again(struct world *w, struct fs *fs, uint64_t bytes_max)
{
	struct kept_options o = options(w, fs, bytes_max);

	kept_close(w->k);
	w->k = NULL;
	return !kept_open(&o, &w->k, &w->err);
}

static void end(struct world *w)
{
	kept_close(w->k);
	arena_release(&w->a);
	CHECK_OK(fs_remove_tree(&fs_posix, w->base, &w->err), &w->err);
}

static void path_of(const struct world *w, const char *id, char out[200])
{
	snprintf(out, 200, "%s/%s.file", w->dir, id);
}

TEST(a_file_is_kept_through_a_restart)
{
	struct kept_file f, g;
	struct world w;
	struct str bytes;

	REQUIRE(make(&w) && again(&w, &fs_posix, 1000));
	REQUIRE_OK(kept_put(w.k, STR("../a b.pb.gz"), BYTES, LONG, NOW, &f, &w.err), &w.err);
	CHECK(kept_is_id(str_of(f.id)));
	CHECK_STR(str_of(f.name), "..-a-b.pb.gz");
	CHECK_INT(f.expires_ns, NOW + LONG);
	for (int i = 0; i < 2; i++) {
		REQUIRE_OK(kept_get(w.k, str_of(f.id), NOW, &w.a, &g, &bytes, &w.err), &w.err);
		CHECK_STR(bytes, "main;f 3\n");
		CHECK_STR(str_of(g.name), f.name);
		CHECK_INT(g.created_ns, f.created_ns);
		CHECK_INT(g.expires_ns, f.expires_ns);
		REQUIRE(again(&w, &fs_posix, 1000));
	}
	REQUIRE_OK(kept_delete(w.k, str_of(f.id), &w.err), &w.err);
	CHECK_INT(kept_get(w.k, str_of(f.id), NOW, &w.a, &g, &bytes, &w.err), ERR_NOT_FOUND);
	CHECK_INT(kept_delete(w.k, str_of(f.id), &w.err), ERR_NOT_FOUND);
	end(&w);
}

TEST(what_is_over_is_gone)
{
	struct kept_file f, g;
	struct kept_listing l;
	struct world w;
	struct str bytes;
	char path[200];

	REQUIRE(make(&w) && again(&w, &fs_posix, 1000));
	REQUIRE_OK(kept_put(w.k, STR("a"), BYTES, LONG, NOW, &f, &w.err), &w.err);
	path_of(&w, f.id, path);
	CHECK_OK(kept_get(w.k, str_of(f.id), NOW + LONG - 1, &w.a, &g, &bytes, &w.err), &w.err);
	/* It cannot be had from that moment on, whether or not it has been removed. */
	CHECK_INT(kept_get(w.k, str_of(f.id), NOW + LONG, &w.a, &g, &bytes, &w.err), ERR_NOT_FOUND);
	CHECK(fs_exists(path));
	kept_expire(w.k, NOW + LONG - 1);
	CHECK(fs_exists(path));
	kept_expire(w.k, NOW + LONG);
	CHECK(!fs_exists(path));
	REQUIRE_OK(kept_list(w.k, NOW, &w.a, &l, &w.err), &w.err);
	CHECK_INT(l.n, 0);
	end(&w);
}

TEST(what_is_full_refuses)
{
	struct kept_file f, g;
	struct kept_listing l;
	struct world w;

	REQUIRE(make(&w) && again(&w, &fs_posix, 20));
	REQUIRE_OK(kept_put(w.k, STR("late"), BYTES, LONG, NOW, &f, &w.err), &w.err);
	REQUIRE_OK(kept_put(w.k, STR("early"), BYTES, LONG - NS_PER_DAY, NOW, &g, &w.err), &w.err);
	CHECK_INT(kept_put(w.k, STR("c"), BYTES, LONG, NOW, &f, &w.err), ERR_LIMIT);
	CHECK(strstr(w.err.msg,
		"the file has 9 bytes and 18 are kept already, limit 20 "
		"(--storage.files.max-size); the first of them expires at 2073-"));
	REQUIRE_OK(kept_list(w.k, NOW, &w.a, &l, &w.err), &w.err);
	REQUIRE(l.n == 2);
	CHECK_STR(str_of(l.v[0].name), "early");
	CHECK_STR(str_of(l.v[1].name), "late");
	/* Nothing went for it, and there is room again when something is over. */
	REQUIRE_OK(
		kept_put(w.k, STR("c"), BYTES, NS_PER_DAY, NOW + LONG - NS_PER_DAY, &f, &w.err), &w.err);
	end(&w);
}

TEST(times_are_bounded)
{
	struct kept_file f;
	struct world w;

	REQUIRE(make(&w) && again(&w, &fs_posix, 1000));
	CHECK_ERR(kept_put(w.k, STR("a"), BYTES, 0, NOW, &f, &w.err), &w.err, ERR_LIMIT,
		"a file cannot be kept for 0s: 1s to 50y (--storage.files.max-time)");
	CHECK_INT(kept_put(w.k, STR("a"), BYTES, LONG + 1, NOW, &f, &w.err), ERR_LIMIT);
	CHECK(!fs_exists(w.dir)); /* made when the first file is kept */
	end(&w);
}

/* Every byte of a file counts: one that is changed is an error that names it, in both places. */
TEST(a_damaged_file_is_named)
{
	struct kept_file f, g;
	struct kept_listing l;
	struct world w;
	struct buf whole = { 0 };
	struct str bytes;
	char path[200];

	REQUIRE(make(&w) && again(&w, &fs_posix, 1000));
	REQUIRE_OK(kept_put(w.k, STR("a"), BYTES, LONG, NOW, &f, &w.err), &w.err);
	path_of(&w, f.id, path);
	REQUIRE_OK(fs_read_file(path, 1000, &whole, &w.err), &w.err);
	for (size_t i = 0; i < whole.len; i++) {
		int fd = open(path, O_WRONLY);
		char other = whole.ptr[i] ^ 1;

		REQUIRE(fd >= 0 && pwrite(fd, &other, 1, (off_t)i) == 1);
		if (kept_get(w.k, str_of(f.id), NOW, &w.a, &g, &bytes, &w.err) != ERR_CORRUPT ||
			!strstr(w.err.msg, path))
			CHECK_FAIL("byte %zu changed: %s", i, w.err.msg);
		REQUIRE(pwrite(fd, &whole.ptr[i], 1, (off_t)i) == 1);
		close(fd);
	}
	CHECK_OK(kept_get(w.k, str_of(f.id), NOW, &w.a, &g, &bytes, &w.err), &w.err);
	/* Cut short: known to be damaged at the start, listed, and may be removed. */
	REQUIRE(!truncate(path, (off_t)whole.len - 1));
	REQUIRE(again(&w, &fs_posix, 1000));
	CHECK_INT(kept_get(w.k, str_of(f.id), NOW, &w.a, &g, &bytes, &w.err), ERR_CORRUPT);
	CHECK_INT(kept_get(w.k, str_of(f.id), NOW, &w.a, &g, &bytes, &w.err), ERR_CORRUPT);
	REQUIRE_OK(kept_list(w.k, NOW, &w.a, &l, &w.err), &w.err);
	REQUIRE(l.n == 1 && l.v[0].damaged);
	CHECK_OK(kept_delete(w.k, str_of(f.id), &w.err), &w.err);
	CHECK(!fs_exists(path));
	buf_release(&whole);
	end(&w);
}

/* As a crash leaves it after each call: the file is whole or not there, and half of one goes. */
TEST(a_crash_leaves_all_or_nothing)
{
	for (int calls = 0;; calls++) {
		struct failing_fs failing = { .fs = { &failing_fs_ops }, .calls_left = calls };
		struct kept_file f, g;
		struct kept_listing l;
		struct world w;
		enum err_code rc;
		struct str bytes;

		REQUIRE(make(&w) && !mkdir(w.dir, 0755) && again(&w, &failing.fs, 1000));
		rc = kept_put(w.k, STR("a"), BYTES, LONG, NOW, &f, &w.err);
		REQUIRE(again(&w, &fs_posix, 1000));
		REQUIRE_OK(kept_list(w.k, NOW, &w.a, &l, &w.err), &w.err);
		if (!rc)
			CHECK_INT(l.n, 1);
		for (size_t i = 0; i < l.n; i++) {
			CHECK_OK(kept_get(w.k, str_of(l.v[i].id), NOW, &w.a, &g, &bytes, &w.err), &w.err);
			CHECK_STR(bytes, "main;f 3\n");
		}
		if (fs_exists(w.dir)) {
			struct str *names;
			size_t names_n;

			CHECK_OK(fs_list(w.dir, &w.a, &names, &names_n, &w.err), &w.err);
			CHECK_INT(names_n, l.n);
		}
		end(&w);
		if (!rc)
			break;
		REQUIRE(calls < 100);
	}
}
