/* Files of debug data that name a common file of dwz: both arrive as one upload, or the first
 * alone. */
#include <stdlib.h>

#include "tests/check.h"
#include "tests/scrape/debuginfod/world.h"
#include "tests/wait.h"

#define A "aaaa000000000000000000000000000000000001"
#define LINK_ID "\xcc\xcc\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\3"
#define LINK(link) \
	{ \
		HOW_FILE, link, sizeof(link) - 1 \
	}

static struct world w;
static const struct answer none = { HOW_TEXT, NOT_FOUND };
static const struct answer link_answer = LINK("../../.dwz/x.debug\0" LINK_ID);

/* What became of A when its own file has lines, and the common file says all. */
static struct debuginfo_info fetched(
	const char *settings, struct answer section, struct answer common)
{
	char *file = elf_file(A, DEBUGINFO_LINES);
	struct debuginfo_info info = { 0 };

	if (!world_open(&w, 1))
		abort();
	world_apply(&w, settings, NULL);
	fake_set(&w.servers[0], (struct answer){ HOW_FILE, file }, none);
	fake_set_common(&w.servers[0], section, common);
	world_want(&w, A, "/usr/bin/a");
	CHECK(WAIT_FOR(world_has(&w, A)));
	CHECK(WAIT_FOR(world_server(&w, 0).files == 1));
	CHECK(world_info(&w, A, &info));
	CHECK_INT(fake_debuginfo_n(&w.servers[0]), 1);
	CHECK_INT(fake_executable_n(&w.servers[0]), 0);
	CHECK_INT(fake_section_n(&w.servers[0]), 1);
	CHECK(!world_server(&w, 0).failing);
	free(file);
	return info;
}

TEST(it_is_appended)
{
	char *file = elf_file(A, DEBUGINFO_LINES), *common = elf_file(COMMON_ID, DEBUGINFO_DWARF);
	size_t padding = -strlen(file) & 7, end = (-strlen(common) & 7) + 24 + 16;
	struct debuginfo_info info;
	char max_size[64];

	info = fetched("basic_auth: {username: u, password: p}, max_size: 1MB", link_answer,
		(struct answer){ HOW_FILE, common });
	CHECK_INT(info.quality, DEBUGINFO_DWARF);
	CHECK_INT(info.source_bytes, strlen(file) + padding + strlen(common) + end);
	CHECK_INT(fake_common_n(&w.servers[0]), 1);
	CHECK_INT(world_server(&w, 0).requests, 3);
	CHECK_INT(world_server(&w, 0).bytes, strlen(file) + strlen(common));
	CHECK(fake_saw(&w.servers[0], "GET /0/buildid/" COMMON_ID "/debuginfo HTTP/1.1\r\n"));
	snprintf(max_size, sizeof(max_size), "\r\nX-DEBUGINFOD-MAXSIZE: %zu\r\n",
		(1u << 20) - strlen(file) - 64);
	CHECK(fake_saw(&w.servers[0], max_size));
	CHECK(fake_saw(&w.servers[0], "\r\nAuthorization: Basic dTpw\r\n"));
	world_close(&w);
	free(file);
	free(common);
}

TEST(most_files_name_none)
{
	static const struct answer rows[] = {
		{ HOW_TEXT, NOT_FOUND },
		{ HOW_TEXT, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n" },
		{ HOW_TEXT, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n" },
		{ HOW_TEXT, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" },
		{ HOW_FILE, "<html>Sign in</html>" },
		{ HOW_HALF, "half of it" },
		{ HOW_ENDLESS, "a name that does not end" },
		LINK("no build id\0"),
		LINK("too long\0" LINK_ID LINK_ID LINK_ID LINK_ID LINK_ID LINK_ID),
		LINK("\0" LINK_ID),
		LINK("itself\0\xaa\xaa\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"),
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct debuginfo_info info = fetched(NULL, rows[i], none);

		if (info.quality != DEBUGINFO_LINES || fake_common_n(&w.servers[0]))
			CHECK_FAIL("row %zu", i);
		world_close(&w);
	}
}

TEST(the_rest_is_used_without_it)
{
	static const struct {
		struct answer common;
		const char *settings;
	} rows[] = {
		{ { HOW_TEXT, NOT_FOUND }, NULL },
		{ { HOW_TEXT, "HTTP/1.1 406 Not Acceptable\r\nContent-Length: 0\r\n\r\n" }, NULL },
		{ { HOW_TEXT, "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n" }, NULL },
		{ { HOW_TEXT, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" }, NULL },
		{ { HOW_FILE, "<html>Sign in</html>" }, NULL },
		{ { HOW_HALF, "\177ELF and more of it that never comes" }, NULL },
		{ { HOW_STALL, "\177ELF and more of it that never comes" }, "timeout: 1s" },
		{ { HOW_ENDLESS, "\177ELF again and again" }, "max_size: 1KB" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct debuginfo_info info = fetched(rows[i].settings, link_answer, rows[i].common);

		if (info.quality != DEBUGINFO_LINES || fake_common_n(&w.servers[0]) != 1)
			CHECK_FAIL("row %zu", i);
		world_close(&w);
	}
}

/* No byte is left for a second file, so nothing is asked. */
TEST(a_file_that_fills_the_limit)
{
	char file[1025] = "\177ELF 2 " A " ";

	memset(file + strlen(file), 'x', 1024 - strlen(file));
	REQUIRE(world_open(&w, 1));
	world_apply(&w, "max_size: 1KB", NULL);
	fake_set(&w.servers[0], (struct answer){ HOW_FILE, file }, none);
	fake_set_common(&w.servers[0], link_answer, none);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(world_has(&w, A)));
	CHECK_INT(fake_section_n(&w.servers[0]), 0);
	world_close(&w);
}

TEST(an_executable_is_taken_as_it_is)
{
	char *file = elf_file(A, DEBUGINFO_SYMBOLS);

	REQUIRE(world_open(&w, 1));
	world_apply(&w, NULL, NULL);
	fake_set(&w.servers[0], none, (struct answer){ HOW_FILE, file });
	world_want(&w, A, "");
	CHECK(WAIT_FOR(world_has(&w, A)));
	CHECK_INT(fake_section_n(&w.servers[0]), 0);
	world_close(&w);
	free(file);
}

/* In the middle of the second file the servers become others, then the server ends. */
TEST(a_reload_and_the_end)
{
	char *file = elf_file(A, DEBUGINFO_LINES), path[96];
	const struct answer stalled = { HOW_STALL, "\177ELF and more of it that never comes" };
	struct str *names;
	struct arena a;
	struct err err;
	size_t n = 1;

	REQUIRE(world_open(&w, 1));
	world_apply(&w, "timeout: 1h", NULL);
	fake_set(&w.servers[0], (struct answer){ HOW_FILE, file }, none);
	fake_set_common(&w.servers[0], link_answer, stalled);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(fake_common_n(&w.servers[0]) == 1));
	world_apply(&w, "timeout: 2h", NULL);
	CHECK(WAIT_FOR(fake_common_n(&w.servers[0]) == 2));
	CHECK_INT(fake_debuginfo_n(&w.servers[0]), 2);
	debuginfo_stop(w.debuginfo);
	debuginfod_close(w.fetcher);
	w.fetcher = NULL;
	arena_init(&a, 0);
	snprintf(path, sizeof(path), "%s/store", w.dir);
	CHECK_OK(fs_list(path, &a, &names, &n, &err), &err);
	CHECK_INT(n, 0);
	arena_release(&a);
	world_close(&w);
	free(file);
}
