/* Source code from debuginfod servers: which are asked, what becomes of each answer. */
#include "base/clock.h"
#include "tests/check.h"
#include "tests/scrape/debuginfod/world.h"
#include "tests/wait.h"

#define A "aaaa000000000000000000000000000000000001"
#define FILE_A "/usr/src/a.c"
#define NO_PATH \
	"invalid parameter \"path\": the whole path of a file is expected, with a / in front"

static struct world w;
static struct arena arena;
static atomic_bool canceled;

static const struct answer none = { HOW_TEXT, NOT_FOUND };
static const struct answer code = { HOW_FILE, "int main;\n" };

static struct debuginfod_text text;
static struct err err;

/* Answers to requests for source are those to requests for executables of the fake. */
static enum err_code ask_as(const char *build_id, const char *path, const char *binary)
{
	const struct debuginfod_source s = { str_of(build_id), str_of(path), str_of(binary) };

	return debuginfod_source(w.fetcher, &s, &canceled, &arena, &text, &err);
}

static enum err_code ask(const char *path)
{
	return ask_as(A, path, "/usr/bin/a");
}

static void begin(size_t servers, const char *settings)
{
	REQUIRE(world_open(&w, servers));
	world_apply(&w, settings, NULL);
	arena_init(&arena, 0);
	atomic_store(&canceled, false);
}

static void end(void)
{
	arena_release(&arena);
	world_close(&w);
}

TEST(it_is_off_unless_a_server_allows_it)
{
	begin(1, NULL);
	fake_set(&w.servers[0], none, code);
	CHECK_ERR(ask(FILE_A), &err, ERR_NOT_FOUND,
		"no debuginfod server is asked for source: none has `source: true`");
	CHECK_INT(fake_executable_n(&w.servers[0]), 0);
	world_apply(&w, "source: true", NULL);
	REQUIRE_OK(ask(FILE_A), &err);
	CHECK_STR(text.text, "int main;\n");
	CHECK(str_has_prefix(text.server, STR("http://127.0.0.1:")));
	CHECK(fake_saw(&w.servers[0], "GET /0/buildid/" A "/source/usr/src/a.c HTTP/1.1\r\n"));
	CHECK(fake_saw(&w.servers[0], "\r\nX-DEBUGINFOD-MAXSIZE: 4194304\r\n"));
	CHECK_INT(world_server(&w, 0).requests, 1);
	CHECK_INT(world_server(&w, 0).bytes, strlen(code.text));
	end();
}

TEST(paths_are_made_plain)
{
	/* clang-format off */
	static const struct { const char *path, *asked; } rows[] = {
		{ "/a/b/../c.c", "/a/c.c" },
		{ "/a/./b//c.c", "/a/b/c.c" },
		{ "/a/../b.c", "/b.c" },
		{ "/a b/c+d$e;f?g#h%i.c", "/a%20b/c%2Bd%24e%3Bf%3Fg%23h%25i.c" },
		{ "/\xc3\xa4.c", "/%C3%A4.c" },
		{ "/..a/b..", "/..a/b.." },
	};
	static const struct { const char *path, *why; } refused[] = {
		{ "", NO_PATH },
		{ "a.c", NO_PATH },
		{ "/a/", NO_PATH },
		{ "/../a.c", "invalid parameter \"path\": leads out of /" },
		{ "/a/../../b.c", "invalid parameter \"path\": leads out of /" },
		{ "/a/..", "invalid parameter \"path\": not a file" },
		{ "/a\r\nX: y", "invalid parameter \"path\": has control characters" },
	};
	/* clang-format on */
	char want[256];

	begin(1, "source: true");
	fake_set(&w.servers[0], none, code);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_OK(ask(rows[i].path), &err);
		snprintf(want, sizeof(want), "GET /0/buildid/" A "/source%s HTTP/1.1\r\n", rows[i].asked);
		if (!fake_saw(&w.servers[0], want))
			CHECK_FAIL("%s is not asked for as %s", rows[i].path, rows[i].asked);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		CHECK_ERR(ask(refused[i].path), &err, ERR_INVALID, refused[i].why);
	CHECK_INT(ask_as("xyz/../..", FILE_A, ""), ERR_INVALID);
	CHECK(str_has_prefix(str_of(err.msg), STR("invalid parameter \"build_id\": ")));
	CHECK_INT(fake_executable_n(&w.servers[0]), sizeof(rows) / sizeof(rows[0]));
	end();
}

TEST(lists_hold_for_source_too)
{
	static const char nobody[] = "no debuginfod server with `source: true` allows this binary: "
								 "see allow_paths and allow_build_ids";

	begin(1, "source: true, allow_paths: ['/usr/.*'], allow_build_ids: ['bb.*']");
	fake_set(&w.servers[0], none, code);
	CHECK_ERR(ask_as(A, FILE_A, "/opt/a"), &err, ERR_NOT_FOUND, nobody);
	CHECK_ERR(ask_as(A, FILE_A, ""), &err, ERR_NOT_FOUND, nobody);
	CHECK_INT(fake_executable_n(&w.servers[0]), 0);
	CHECK_OK(ask_as(A, FILE_A, "/usr/bin/a"), &err);
	CHECK_OK(ask_as("bb00", FILE_A, ""), &err);
	CHECK_INT(fake_executable_n(&w.servers[0]), 2);
	end();
}

TEST(the_next_server_is_asked_and_what_none_has_is_remembered)
{
	begin(2, "source: true");
	fake_set(&w.servers[1], none, code);
	REQUIRE_OK(ask(FILE_A), &err);
	CHECK_INT(fake_executable_n(&w.servers[0]), 1);
	fake_set(&w.servers[1], none, none);
	CHECK_ERR(ask("/usr/src/b.c"), &err, ERR_NOT_FOUND, "no debuginfod server has the file");
	CHECK_ERR(ask("/usr/src/b.c"), &err, ERR_NOT_FOUND,
		"no debuginfod server had the file when they were asked, less than 10 minutes ago");
	CHECK_INT(fake_executable_n(&w.servers[0]), 2);
	CHECK_INT(fake_executable_n(&w.servers[1]), 2);
	/* Another file, or other servers, are another question. */
	fake_set(&w.servers[1], none, code);
	CHECK_OK(ask("/usr/src/c.c"), &err);
	world_apply(&w, "source: true, timeout: 20s", NULL);
	CHECK_OK(ask("/usr/src/b.c"), &err);
	end();
}

TEST(many_misses_are_remembered_and_the_oldest_forgotten)
{
	char path[32];

	begin(1, "source: true");
	for (unsigned i = 0; i <= 1024; i++) {
		snprintf(path, sizeof(path), "/%u.c", i);
		CHECK_ERR(ask(path), &err, ERR_NOT_FOUND, "no debuginfod server has the file");
	}
	CHECK_INT(ask("/1.c"), ERR_NOT_FOUND);
	CHECK_INT(fake_executable_n(&w.servers[0]), 1025);
	CHECK_INT(ask("/0.c"), ERR_NOT_FOUND);
	CHECK_INT(fake_executable_n(&w.servers[0]), 1026);
	end();
}

TEST(a_file_may_be_too_large)
{
	static const char refused[] = "HTTP/1.1 406 Not Acceptable\r\nContent-Length: 0\r\n\r\n";
	static const char want[] = "the file is larger than max_size or 4194304 bytes";
	static char large[(4u << 20) + 2], piece[400];

	begin(1, "source: true, max_size: 8B");
	fake_set(&w.servers[0], none, code);
	CHECK_ERR(ask(FILE_A), &err, ERR_LIMIT, want);
	CHECK(fake_saw(&w.servers[0], "\r\nX-DEBUGINFOD-MAXSIZE: 8\r\n"));
	fake_set(&w.servers[0], none, (struct answer){ HOW_TEXT, refused });
	CHECK_ERR(ask(FILE_A), &err, ERR_LIMIT, want);
	world_apply(&w, "source: true", NULL);
	memset(large, 'x', sizeof(large) - 1);
	fake_set(&w.servers[0], none, (struct answer){ HOW_FILE, large });
	CHECK_ERR(ask(FILE_A), &err, ERR_LIMIT, want);
	memset(piece, 'x', sizeof(piece) - 1);
	fake_set(&w.servers[0], none, (struct answer){ HOW_ENDLESS, piece });
	CHECK_ERR(ask(FILE_A), &err, ERR_LIMIT, want);
	CHECK(!world_server(&w, 0).failing);
	large[4u << 20] = '\0';
	fake_set(&w.servers[0], none, (struct answer){ HOW_FILE, large });
	CHECK_OK(ask(FILE_A), &err);
	CHECK_INT(text.text.len, 4u << 20);
	end();
}

TEST(a_server_that_fails_rests_and_the_error_names_it)
{
	static const char busy[] =
		"HTTP/1.1 503 Busy\r\nRetry-After: 1000\r\nContent-Length: 0\r\n\r\n";
	char want[256];

	begin(1, "source: true");
	fake_set(&w.servers[0], none, (struct answer){ HOW_TEXT, busy });
	snprintf(want, sizeof(want),
		"debuginfod server http://127.0.0.1:%u/0: server returned HTTP status 503",
		w.servers[0].http.port);
	CHECK_ERR(ask(FILE_A), &err, ERR_UNAVAILABLE, want);
	snprintf(want, sizeof(want),
		"debuginfod server http://127.0.0.1:%u/0 is asked again later: server returned HTTP status "
		"503",
		w.servers[0].http.port);
	CHECK_ERR(ask(FILE_A), &err, ERR_UNAVAILABLE, want);
	CHECK_INT(fake_executable_n(&w.servers[0]), 1);
	CHECK(world_server(&w, 0).failing);
	end();
}

/* Of one file, on a thread of its own. */
static struct thread asker;
static enum err_code asked_rc;

static void ask_apart(void *ctx)
{
	asked_rc = ask(ctx);
}

static void ask_meanwhile(const char *path)
{
	static char name[64];

	snprintf(name, sizeof(name), "%s", path);
	REQUIRE_OK(thread_start(&asker, "asker", ask_apart, name, &err), &err);
}

TEST(who_gives_up_does_not_wait)
{
	begin(1, "source: true, timeout: 1h");
	fake_set(&w.servers[0], none, (struct answer){ HOW_STALL, "some code\n" });
	ask_meanwhile(FILE_A);
	CHECK(WAIT_FOR(fake_executable_n(&w.servers[0]) == 1));
	atomic_store(&canceled, true);
	thread_join(&asker);
	CHECK_INT(asked_rc, ERR_CANCELED);
	CHECK(!world_server(&w, 0).failing);
	end();
}

TEST(a_reload_asks_the_new_servers)
{
	char config[128];

	begin(2, "source: true, timeout: 1h");
	fake_set(&w.servers[0], none, (struct answer){ HOW_STALL, "some code\n" });
	fake_set(&w.servers[1], none, code);
	ask_meanwhile(FILE_A);
	CHECK(WAIT_FOR(fake_executable_n(&w.servers[0]) == 1));
	snprintf(config, sizeof(config), "debuginfod: [{url: 'http://127.0.0.1:%u/', source: true}]",
		w.servers[1].http.port);
	world_apply_text(&w, config);
	thread_join(&asker);
	CHECK_INT(asked_rc, ERR_OK);
	CHECK_STR(text.text, "int main;\n");
	end();
}
