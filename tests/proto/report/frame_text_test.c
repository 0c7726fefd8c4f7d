#include "proto/report/frame_text.h"

#include "tests/check.h"

/* As Go's filepath.Clean, but for the empty path, which names no file. */
TEST(paths_are_cleaned)
{
	static const char *const rows[][2] = {
		{ "", "" },
		{ "/", "/" },
		{ "//", "/" },
		{ ".", "." },
		{ "./", "." },
		{ "..", ".." },
		{ "a/..", "." },
		{ "a/../..", ".." },
		{ "../../a/../b", "../../b" },
		{ "/..", "/" },
		{ "/../a", "/a" },
		{ "/a/./b//c/", "/a/b/c" },
		{ "a/b/../../../c", "../c" },
		{ "...", "..." },
		{ "a/.b/..c/d.", "a/.b/..c/d." },
		{ "/usr/src/a.go", "/usr/src/a.go" },
	};
	struct arena a;
	struct str out;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK(frame_file_clean(&a, str_of(rows[i][0]), &out));
		CHECK_STR(out, rows[i][1]);
	}
	arena_release(&a);
}

TEST(paths_are_cut)
{
	static const struct {
		const char *path, *trim, *source, *want;
	} rows[] = {
		{ "/a/b/c.go", "", "", "/a/b/c.go" },
		{ "/proc/self/cwd/a.go", "", "", "a.go" },
		{ "/proc/self/cwd/./a.go", "", "", "a.go" },
		{ "/a/b/c.go", "/a", "", "b/c.go" },
		{ "/a/b/c.go", "/a/", "", "b/c.go" },
		{ "/ab/c.go", "/a", "", "/ab/c.go" },
		{ "/a/b/c.go", "/x:/a/b", "", "c.go" },
		{ "/a/b/c.go", "/x:", "", "a/b/c.go" },
		{ "/proc/self/cwd/a.go", "/x", "", "a.go" },
		{ "/far/proj/b/c.go", "", "/home/me/proj", "b/c.go" },
		{ "/far/proj/b/c.go", "", "/x:/home/b/", "c.go" },
		{ "/far/proj/b/c.go", "/y", "/home/me/proj", "/far/proj/b/c.go" },
		{ "/a", "/a", "", "/a" },
		{ "", "/a", "b", "" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_STR(
			frame_file_cut(str_of(rows[i].path), str_of(rows[i].trim), str_of(rows[i].source)),
			rows[i].want);
}
