/* Files of local directories. */
#include <sys/stat.h>
#include <unistd.h>

#include "scrape/debuginfod/internal.h"
#include "tests/check.h"
#include "tests/scrape/debuginfod/world.h"
#include "tests/wait.h"

#define A "aaaa000000000000000000000000000000000001"
#define B "bbbb000000000000000000000000000000000002"

static struct world w;
static const struct answer none = { HOW_TEXT, NOT_FOUND };

static void path_of(char out[512], const char *name)
{
	snprintf(out, 512, "%s/%s", w.dir, name);
}

/* Makes the directories above it. */
static void put(const char *name, const char *build_id, enum debuginfo_quality q)
{
	char path[512], *text = elf_file(build_id, q);
	struct str dir;
	struct err err;
	FILE *f;

	path_of(path, name);
	dir = path_dir(str_of(path));
	path[dir.len] = '\0';
	CHECK_OK(fs_mkdir_all(&fs_posix, path, &err), &err);
	path[dir.len] = '/';
	if (!(f = fopen(path, "w")) || fputs(text, f) < 0 || fclose(f))
		CHECK_FAIL("cannot write %s", path);
	free(text);
}

static struct debuginfo_info info_of(const char *build_id)
{
	struct debuginfo_info info = { 0 };

	(void)world_info(&w, build_id, &info);
	return info;
}

/* One file of a row is there; the binary /usr/bin/a with build id A is wanted. */
/* clang-format off */
static const struct {
	const char *file, *build_id, *path;
	bool found;
} rows[] = {
	{ "d/.build-id/aa/aa000000000000000000000000000000000001.debug", A, "/usr/bin/a", true },
	{ "d/.build-id/aa/aa000000000000000000000000000000000001.debug", A, "", true },
	{ "d/.build-id/aa/aa000000000000000000000000000000000001.debug", B, "/usr/bin/a", false },
	{ "d/usr/bin/a.debug", A, "/usr/bin/a", true },
	{ "d/usr/bin/a", A, "/usr/bin/a", true },
	{ "d/usr/bin/a", B, "/usr/bin/a", false },
	{ "d/usr/bin/a", A, "usr/bin/a", false },
	{ "d/usr/bin/a", A, "/usr/lib/../bin/a", false },
	{ "usr/bin/a", A, "/../usr/bin/a", false },
	{ "d/usr/bin/a", A, "/usr/bin/a/", false },
	{ "d/usr/bin/..a", A, "/usr/bin/..a", true },
	{ "e/usr/bin/a", A, "/usr/bin/a", true },
	{ "f/usr/bin/a", A, "/usr/bin/a", false },
	{ "d/boot/vmlinux-6.1", A, "/boot/vmlinux-6.1", false },
};
/* clang-format on */

TEST(where_files_are_looked_for)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		REQUIRE(world_open(&w, 1));
		put("d/lib", B, DEBUGINFO_DWARF);
		put("e/lib", B, DEBUGINFO_DWARF);
		put(rows[i].file, rows[i].build_id, DEBUGINFO_DWARF);
		/* The server is asked behind the directories, so its answer shows that they are done. */
		world_apply(&w, "allow_build_ids: [bb.*]", "debug_directories: [d, e/]");
		world_want(&w, A, rows[i].path);
		world_want(&w, "bb", "/no");
		CHECK(WAIT_FOR(world_is_missing(&w, "bb")));
		if (world_has(&w, A) != rows[i].found)
			CHECK_FAIL("row %zu", i);
		if (rows[i].found)
			CHECK_INT(info_of(A).origin, DEBUGINFO_DIRECTORY);
		CHECK_INT(fake_debuginfo_n(&w.servers[0]), 1);
		world_close(&w);
	}
}

/* Debug data of any directory wins over a binary; a file of another build over nothing. */
TEST(the_order)
{
	REQUIRE(world_open(&w, 0));
	put("d/usr/bin/a", A, DEBUGINFO_SYMBOLS);
	put("d/usr/bin/a.debug", B, DEBUGINFO_DWARF);
	put("e/.build-id/aa/aa000000000000000000000000000000000001.debug", A, DEBUGINFO_DWARF);
	world_apply(&w, NULL, "debug_directories: [d, e]");
	world_want(&w, A, "/usr/bin/a");
	CHECK(WAIT_FOR(world_has(&w, A)));
	CHECK_INT(info_of(A).quality, DEBUGINFO_DWARF);
	CHECK_STR(info_of(A).path, "/usr/bin/a");
	world_close(&w);
}

TEST(servers_are_asked_for_more_than_a_stripped_binary)
{
	char *file = elf_file(A, DEBUGINFO_DWARF);

	REQUIRE(world_open(&w, 1));
	put("d/usr/bin/a", A, DEBUGINFO_SYMBOLS);
	put("d/usr/bin/b", B, DEBUGINFO_SYMBOLS);
	world_apply(&w, NULL, "debug_directories: [d]");
	fake_set(&w.servers[0], (struct answer){ HOW_FILE, file }, (struct answer){ HOW_FILE, file });
	world_want(&w, A, "/usr/bin/a");
	CHECK(WAIT_FOR(info_of(A).quality == DEBUGINFO_DWARF));
	CHECK_INT(info_of(A).origin, DEBUGINFO_DEBUGINFOD);
	fake_set(&w.servers[0], none, (struct answer){ HOW_FILE, file });
	world_want(&w, B, "/usr/bin/b");
	CHECK(WAIT_FOR(info_of(B).missing_end_s > 0));
	CHECK_INT(info_of(B).quality, DEBUGINFO_SYMBOLS);
	CHECK_INT(fake_executable_n(&w.servers[0]), 0); /* it would be the same file */
	world_close(&w);
	free(file);
}

TEST(a_file_of_another_build_does_not_hide_servers)
{
	char *file = elf_file(A, DEBUGINFO_DWARF);

	REQUIRE(world_open(&w, 1));
	put("d/usr/bin/a", B, DEBUGINFO_DWARF);
	world_apply(&w, NULL, "debug_directories: [d]");
	fake_set(&w.servers[0], (struct answer){ HOW_FILE, file }, none);
	world_want(&w, A, "/usr/bin/a");
	CHECK(WAIT_FOR(world_has(&w, A)));
	CHECK_INT(info_of(A).origin, DEBUGINFO_DEBUGINFOD);
	world_close(&w);
	free(file);
}

/* Without servers such a file is not extracted over and over. */
TEST(a_file_of_another_build_alone)
{
	REQUIRE(world_open(&w, 0));
	put("d/usr/bin/a", B, DEBUGINFO_DWARF);
	world_apply(&w, NULL, "debug_directories: [d]");
	world_want(&w, A, "/usr/bin/a");
	CHECK(WAIT_FOR(world_is_missing(&w, A)));
	world_close(&w);
}

TEST(links_and_what_is_no_file)
{
	char from[512], to[512];
	struct err err;

	REQUIRE(world_open(&w, 1));
	put("d/real.debug", A, DEBUGINFO_DWARF);
	path_of(from, "d/.build-id/aa");
	CHECK_OK(fs_mkdir_all(&fs_posix, from, &err), &err);
	path_of(from, "d/.build-id/aa/aa000000000000000000000000000000000001.debug");
	CHECK_INT(symlink("../../real.debug", from), 0);
	put("d/usr/bin/real", B, DEBUGINFO_DWARF);
	path_of(from, "d/usr/bin/link");
	CHECK_INT(symlink("real", from), 0);
	path_of(from, "d/usr/bin/fifo");
	CHECK_INT(mkfifo(from, 0600), 0);
	path_of(to, "d/usr/bin/directory");
	CHECK_INT(mkdir(to, 0700), 0);
	world_apply(&w, "allow_build_ids: [cc]", "debug_directories: [d]");
	world_want(&w, A, "/usr/bin/nothing");
	world_want(&w, B, "/usr/bin/link"); /* the path may lead anywhere: not followed */
	world_want(&w, "bb", "/usr/bin/fifo"); /* does not wait for a writer */
	world_want(&w, "dd", "/usr/bin/directory");
	world_want(&w, "cc", "/usr/bin/nothing");
	CHECK(WAIT_FOR(world_is_missing(&w, "cc")));
	CHECK(world_has(&w, A));
	CHECK(!world_has(&w, B) && !world_has(&w, "bb") && !world_has(&w, "dd"));
	world_close(&w);
}
