/* What servers answer, and what becomes of it. Real sockets, a real store, a child that extracts.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/check.h"
#include "tests/scrape/debuginfod/world.h"
#include "tests/wait.h"

#define A "aaaa000000000000000000000000000000000001"
#define B "bbbb000000000000000000000000000000000002"

static struct world w;
static const struct answer none = { HOW_TEXT, NOT_FOUND };

static struct answer text(const char *t)
{
	return (struct answer){ HOW_TEXT, t };
}

static bool queue_is_empty(const char *build_id)
{
	struct debuginfo_info info;

	return !world_info(&w, build_id, &info) ||
		(!info.uploading && !info.queued && !info.extracting);
}

static size_t files_in_store(void)
{
	char path[96];
	struct str *names;
	struct arena a;
	struct err err;
	size_t n = 0;

	arena_init(&a, 0);
	snprintf(path, sizeof(path), "%s/store", w.dir);
	CHECK_OK(fs_list(path, &a, &names, &n, &err), &err);
	arena_release(&a);
	return n;
}

TEST(debug_data_is_fetched_and_extracted)
{
	char *file = elf_file(A, DEBUGINFO_DWARF);
	struct debuginfo_info info = { 0 };
	struct debuginfod_info server;

	REQUIRE(world_open(&w, 1));
	world_apply(&w, "basic_auth: {username: u, password: p}, max_size: 1MB", NULL);
	fake_set(&w.servers[0], (struct answer){ HOW_FILE, file }, none);
	world_want(&w, A, "/usr/bin/a");
	CHECK(WAIT_FOR(world_has(&w, A)));
	REQUIRE(world_info(&w, A, &info));
	CHECK_STR(info.path, "/usr/bin/a");
	CHECK_INT(info.kind, DEBUGINFO_NO_TEXT);
	CHECK_INT(info.origin, DEBUGINFO_DEBUGINFOD);
	CHECK_INT(info.quality, DEBUGINFO_DWARF);
	CHECK_INT(info.source_bytes, strlen(file));
	CHECK(fake_saw(&w.servers[0], "GET /0/buildid/" A "/debuginfo HTTP/1.1\r\n"));
	CHECK(fake_saw(&w.servers[0], "\r\nX-DEBUGINFOD-MAXSIZE: 1048576\r\n"));
	CHECK(fake_saw(&w.servers[0], "\r\nAuthorization: Basic dTpw\r\n"));
	CHECK(WAIT_FOR(world_server(&w, 0).files == 1)); /* the index may be there before */
	server = world_server(&w, 0);
	CHECK_INT(server.requests, 2); /* the second for the link to a common file */
	CHECK_INT(fake_section_n(&w.servers[0]), 1);
	CHECK_INT(server.bytes, strlen(file));
	CHECK(!server.failing && !server.error.len);
	world_close(&w);
	free(file);
}

TEST(all_are_asked_for_debug_data_before_one_is_asked_for_an_executable)
{
	char *file = elf_file(A, DEBUGINFO_DWARF), *stripped = elf_file(B, DEBUGINFO_SYMBOLS);
	struct debuginfo_info info = { 0 };

	REQUIRE(world_open(&w, 2));
	world_apply(&w, NULL, NULL);
	fake_set(&w.servers[0], none, (struct answer){ HOW_FILE, stripped });
	fake_set(&w.servers[1], (struct answer){ HOW_FILE, file }, none);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(world_has(&w, A)));
	CHECK_INT(fake_debuginfo_n(&w.servers[0]), 1);
	CHECK_INT(fake_executable_n(&w.servers[0]), 0);
	CHECK_INT(fake_debuginfo_n(&w.servers[1]), 1);

	fake_set(&w.servers[1], none, none);
	world_want(&w, B, "");
	CHECK(WAIT_FOR(world_has(&w, B)));
	REQUIRE(world_info(&w, B, &info));
	CHECK_INT(info.kind, DEBUGINFO_STRIPPED);
	CHECK_INT(info.quality, DEBUGINFO_SYMBOLS);
	CHECK_INT(fake_executable_n(&w.servers[0]), 1);
	CHECK_INT(fake_executable_n(&w.servers[1]), 0);
	world_close(&w);
	free(file);
	free(stripped);
}

TEST(what_no_server_has_is_missing_for_a_day)
{
	struct debuginfo_info info = { 0 };
	int64_t now_s = clock_now_ns() / NS_PER_S;

	REQUIRE(world_open(&w, 2));
	world_apply(&w, NULL, NULL);
	fake_set(&w.servers[1], text("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"), none);
	world_want(&w, A, "/usr/bin/a");
	CHECK(WAIT_FOR(world_is_missing(&w, A)));
	REQUIRE(world_info(&w, A, &info));
	CHECK(info.missing_end_s >= now_s + 24 * 3600 - 1);
	CHECK(info.missing_end_s <= clock_now_ns() / NS_PER_S + 24 * 3600);
	CHECK_INT(fake_debuginfo_n(&w.servers[0]) + fake_executable_n(&w.servers[0]), 2);
	CHECK_INT(fake_debuginfo_n(&w.servers[1]) + fake_executable_n(&w.servers[1]), 2);
	CHECK(!world_server(&w, 0).failing && !world_server(&w, 1).failing);
	world_close(&w);
}

TEST(a_server_that_fails_is_asked_again_and_holds_nobody_up)
{
	char *a = elf_file(A, DEBUGINFO_DWARF), *b = elf_file(B, DEBUGINFO_DWARF);
	struct debuginfod_info server;

	REQUIRE(world_open(&w, 2));
	world_apply(&w, NULL, NULL);
	fake_set(&w.servers[0],
		text("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy"), none);
	fake_set(&w.servers[1], (struct answer){ HOW_FILE, b }, none);
	world_want(&w, B, "");
	CHECK(WAIT_FOR(world_has(&w, B))); /* of the second */
	server = world_server(&w, 0);
	CHECK(server.failing);
	CHECK_STR(server.error, "server returned HTTP status 503");
	CHECK(server.error_s > 0 && server.again_s > 0);

	fake_set(&w.servers[1], none, none);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(fake_debuginfo_n(&w.servers[0]) >= 4)); /* the job waits for it */
	CHECK(!world_is_missing(&w, A));
	fake_set(&w.servers[0], (struct answer){ HOW_FILE, a }, none);
	CHECK(WAIT_FOR(world_has(&w, A)));
	CHECK(WAIT_FOR(!world_server(&w, 0).failing));
	server = world_server(&w, 0);
	CHECK_STR(server.error, "server returned HTTP status 503"); /* the last one stays */
	CHECK_INT(server.again_s, 0);
	world_close(&w);
	free(a);
	free(b);
}

TEST(retry_after_is_honoured)
{
	int64_t now_s = clock_now_ns() / NS_PER_S;

	REQUIRE(world_open(&w, 1));
	world_apply(&w, NULL, NULL);
	fake_set(&w.servers[0],
		text("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1000\r\nContent-Length: 0\r\n\r\n"),
		none);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(world_server(&w, 0).failing));
	CHECK(world_server(&w, 0).again_s >= now_s + 1000);
	world_want(&w, B, "");
	CHECK_INT(fake_debuginfo_n(&w.servers[0]), 1);
	world_close(&w);

	REQUIRE(world_open(&w, 1));
	world_apply(&w, NULL, NULL);
	fake_set(&w.servers[0],
		text("HTTP/1.1 503 X\r\nRetry-After: 99999999999\r\nContent-Length: 0\r\n\r\n"), none);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(world_server(&w, 0).failing));
	CHECK(world_server(&w, 0).again_s <= clock_now_ns() / NS_PER_S + 3600);
	CHECK_INT(fake_debuginfo_n(&w.servers[0]), 1);
	world_close(&w);
}

TEST(refused_connections)
{
	struct debuginfod_info server;
	char config[96];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sa);

	/* bound, but nobody listens */
	REQUIRE(fd >= 0 && !bind(fd, (struct sockaddr *)&sa, len) &&
		!getsockname(fd, (struct sockaddr *)&sa, &len));
	REQUIRE(world_open(&w, 0));
	snprintf(
		config, sizeof(config), "debuginfod: [{url: 'http://127.0.0.1:%u'}]", ntohs(sa.sin_port));
	world_apply_text(&w, config);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(world_server(&w, 0).failing));
	CHECK(WAIT_FOR(world_server(&w, 0).requests >= 3));
	server = world_server(&w, 0);
	CHECK(str_has_suffix(server.error, STR(": Connection refused")));
	CHECK(!world_is_missing(&w, A));
	world_close(&w);
	close(fd);
}

/* A stall in mid-answer ends with the timeout, a closed connection at once: nothing is stored. */
static void breaks_off(enum how how, const char *settings, const char *want)
{
	char *file = elf_file(A, DEBUGINFO_DWARF);
	int64_t now_s = clock_now_ns() / NS_PER_S;
	struct debuginfo_info info = { 0 };
	struct debuginfod_info server;

	REQUIRE(world_open(&w, 1));
	world_apply(&w, settings, NULL);
	fake_set(&w.servers[0], (struct answer){ how, file }, none);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(world_is_missing(&w, A)));
	CHECK(fake_debuginfo_n(&w.servers[0]) >= 3);
	CHECK_INT(fake_executable_n(&w.servers[0]), 0);
	server = world_server(&w, 0);
	CHECK(server.failing);
	CHECK(str_has_prefix(server.error, STR("build id " A ": ")));
	CHECK(str_has_suffix(server.error, str_of(want)));
	REQUIRE(world_info(&w, A, &info));
	CHECK(info.missing_end_s <= clock_now_ns() / NS_PER_S + 3600);
	CHECK(info.missing_end_s >= now_s + 3600 - 1);
	CHECK(queue_is_empty(A));
	CHECK_INT(files_in_store(), 0);
	world_close(&w);
	free(file);
}

TEST(an_answer_that_stalls)
{
	breaks_off(HOW_STALL, "timeout: 1s", ": context deadline exceeded");
}

TEST(an_answer_that_breaks_off)
{
	breaks_off(HOW_HALF, NULL, ": unexpected EOF");
}

static void too_large(struct answer a)
{
	struct debuginfod_info server;

	REQUIRE(world_open(&w, 1));
	world_apply(&w, "max_size: 1KB", NULL);
	fake_set(&w.servers[0], a, none);
	world_want(&w, A, "/usr/bin/a");
	CHECK(WAIT_FOR(world_is_missing(&w, A)));
	server = world_server(&w, 0);
	CHECK_STR(server.error, "build id " A ": the file is more than 1024 bytes (max_size)");
	CHECK(!server.failing);
	CHECK_INT(fake_debuginfo_n(&w.servers[0]), 1);
	CHECK_INT(fake_executable_n(&w.servers[0]), 0);
	CHECK(queue_is_empty(A));
	CHECK_INT(files_in_store(), 0);
	world_close(&w);
}

TEST(files_that_are_too_large)
{
	char *file = malloc(1026);

	memset(file, 'x', 1025);
	memcpy(file, "\177ELF", 4);
	file[1025] = '\0';
	too_large((struct answer){ HOW_FILE, file });
	too_large((struct answer){ HOW_ENDLESS, "\177ELF again and again" });
	too_large(text("HTTP/1.1 406 Not Acceptable\r\nContent-Length: 0\r\n\r\n"));
	free(file);
}

#define HTML "<!DOCTYPE html><title>Sign in</title>"

TEST(html_of_the_only_server_is_refused_by_the_extraction)
{
	struct debuginfo_info info = { 0 };

	REQUIRE(world_open(&w, 1));
	world_apply(&w, NULL, NULL);
	fake_set(&w.servers[0], (struct answer){ HOW_FILE, HTML }, none);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(world_info(&w, A, &info) && info.why.len && queue_is_empty(A)));
	CHECK_STR(info.why, "not an ELF file");
	CHECK(info.again_s > clock_now_ns() / NS_PER_S + 60);
	CHECK(!info.present);
	/* Wanted again it is not asked for again: B is, and it is behind A. */
	world_want(&w, A, "");
	fake_set(&w.servers[0], none, none);
	world_want(&w, B, "");
	CHECK(WAIT_FOR(world_is_missing(&w, B)));
	CHECK_INT(fake_debuginfo_n(&w.servers[0]), 2);
	world_close(&w);
}

TEST(html_of_one_server_does_not_hide_another)
{
	char *file = elf_file(A, DEBUGINFO_DWARF);

	REQUIRE(world_open(&w, 2));
	world_apply(&w, NULL, NULL);
	fake_set(&w.servers[0], (struct answer){ HOW_FILE, HTML }, none);
	fake_set(&w.servers[1], (struct answer){ HOW_FILE, file }, none);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(world_has(&w, A)));
	CHECK_STR(world_server(&w, 0).error, "build id " A ": the answer is not an ELF file");
	CHECK(!world_server(&w, 0).failing);
	world_close(&w);
	free(file);
}

TEST(an_empty_answer)
{
	struct debuginfo_info info = { 0 };

	REQUIRE(world_open(&w, 1));
	world_apply(&w, NULL, NULL);
	fake_set(&w.servers[0], (struct answer){ HOW_FILE, "" }, none);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(world_is_missing(&w, A)));
	CHECK_STR(world_server(&w, 0).error, "build id " A ": the answer is empty");
	REQUIRE(world_info(&w, A, &info));
	CHECK(info.missing_end_s < clock_now_ns() / NS_PER_S + 3600);
	world_close(&w);
}

TEST(a_file_of_another_build_is_refused)
{
	char *file = elf_file(B, DEBUGINFO_DWARF);
	struct debuginfo_info info = { 0 };

	REQUIRE(world_open(&w, 1));
	world_apply(&w, NULL, NULL);
	fake_set(&w.servers[0], (struct answer){ HOW_FILE, file }, none);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(world_info(&w, A, &info) && info.why.len));
	CHECK(str_find(info.why, STR(B)) >= 0);
	CHECK(!info.present);
	world_close(&w);
	free(file);
}

TEST(redirects)
{
	char *file = elf_file(A, DEBUGINFO_DWARF), to[256];

	REQUIRE(world_open(&w, 2));
	snprintf(to, sizeof(to),
		"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%u/x/debuginfo\r\nContent-Length: "
		"0\r\n\r\n",
		w.servers[1].http.port);
	fake_set(&w.servers[0], text(to), none);
	fake_set(&w.servers[1], (struct answer){ HOW_FILE, file }, none);
	w.servers_n = 1;
	world_apply(&w, NULL, NULL);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(world_has(&w, A)));
	CHECK(fake_saw(&w.servers[1], "GET /x/debuginfo "));
	world_apply(&w, "follow_redirects: false", NULL);
	world_want(&w, B, "");
	CHECK(WAIT_FOR(world_server(&w, 0).failing));
	CHECK_STR(world_server(&w, 0).error, "server returned HTTP status 302");
	w.servers_n = 2;
	world_close(&w);
	free(file);
}

/* Requests of what may not be asked for would come before those of what may. */
TEST(only_what_is_allowed_is_asked_for)
{
	struct debuginfo_id go, file;
	struct err err;

	REQUIRE(world_open(&w, 1));
	world_apply(
		&w, "allow_paths: ['/usr/.*', '.*vmlinux', '\\[.*'], allow_build_ids: ['bb.*']", NULL);
	REQUIRE_OK(debuginfo_id_init(&go, DEBUGINFO_GO, STR("a/b/c"), &err), &err);
	REQUIRE_OK(debuginfo_id_init(
		&file, DEBUGINFO_FILE, STR("0123456789abcdef0123456789abcdef"), &err), &err);
	world_want(&w, A, "/opt/a");
	world_want(&w, "aaaa02", "/usr/lib/debug/boot/vmlinux");
	world_want(&w, "aaaa03", "[vdso]");
	world_want(&w, "aaaa04", "/usr/perf-123.map");
	debuginfo_want(w.debuginfo, &go, STR("/usr/bin/go"));
	debuginfo_want(w.debuginfo, &file, STR("/usr/bin/file"));
	world_want(&w, "bbbb01", "/opt/b");
	world_want(&w, "aaaa05", "/usr/bin/a");
	CHECK(WAIT_FOR(world_is_missing(&w, "bbbb01") && world_is_missing(&w, "aaaa05")));
	CHECK_INT(fake_debuginfo_n(&w.servers[0]), 2);
	CHECK(!world_is_missing(&w, A));
	CHECK(!world_is_missing(&w, "aaaa02"));
	CHECK(!world_is_missing(&w, "aaaa03"));
	CHECK(!debuginfo_is_missing(debuginfo_store(w.debuginfo), &go));
	world_close(&w);
}

static unsigned requests_to_all(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < w.servers_n; i++)
		n += fake_debuginfo_n(&w.servers[i]);
	return n;
}

/* Six servers, each allowed one binary: four downloads at once. One server: one. */
TEST(few_downloads_at_once)
{
	static char *files[SERVERS_MAX];
	struct buf config = { 0 };
	char id[8], path[8];

	REQUIRE(world_open(&w, SERVERS_MAX));
	buf_add_cstr(&config, "debuginfod:");
	for (size_t i = 0; i < SERVERS_MAX; i++) {
		snprintf(id, sizeof(id), "aa%02zu", i);
		files[i] = elf_file(id, DEBUGINFO_DWARF);
		fake_set(&w.servers[i], (struct answer){ HOW_STALL, files[i] }, none);
		buf_printf(&config, "\n- {url: 'http://127.0.0.1:%u', allow_paths: [/%zu]}",
			w.servers[i].http.port, i);
	}
	buf_add_char(&config, '\0');
	world_apply_text(&w, config.ptr);
	buf_release(&config);
	for (size_t i = 0; i < SERVERS_MAX; i++) {
		snprintf(id, sizeof(id), "aa%02zu", i);
		snprintf(path, sizeof(path), "/%zu", i);
		world_want(&w, id, path);
		snprintf(id, sizeof(id), "bb%02zu", i);
		world_want(&w, id, path);
	}
	CHECK(WAIT_FOR(requests_to_all() >= DEBUGINFOD_DOWNLOADS_MAX));
	CHECK_INT(requests_to_all(), DEBUGINFOD_DOWNLOADS_MAX);
	for (size_t i = 0; i < SERVERS_MAX; i++)
		fake_set(&w.servers[i], (struct answer){ HOW_FILE, files[i] }, none);
	for (size_t i = 0; i < SERVERS_MAX; i++) {
		snprintf(id, sizeof(id), "aa%02zu", i);
		CHECK(WAIT_FOR(world_has(&w, id)));
		CHECK_INT(fake_at_once(&w.servers[i]), 1);
	}
	world_close(&w);
	for (size_t i = 0; i < SERVERS_MAX; i++)
		free(files[i]);
}

/* ---- a disk that is full for a time ---- */

static atomic_bool disk_is_full;
static atomic_uint writes;

static enum err_code full_write(struct fs *fs, int fd, const void *p, size_t n, struct err *err)
{
	atomic_fetch_add(&writes, 1);
	if (atomic_load(&disk_is_full))
		return err_set(err, ERR_IO, "no space left on device");
	return fs_posix.ops->write(fs, fd, p, n, err);
}

TEST(a_full_disk_is_waited_for)
{
	char *file = elf_file(A, DEBUGINFO_DWARF);
	struct fs_ops ops = *fs_posix.ops;
	struct fs fs = { &ops };

	ops.write = full_write;
	atomic_store(&disk_is_full, true);
	REQUIRE(world_open_on(&w, 1, &fs));
	world_apply(&w, NULL, NULL);
	fake_set(&w.servers[0], (struct answer){ HOW_FILE, file }, none);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(atomic_load(&writes) >= 3));
	CHECK(!world_server(&w, 0).failing && !world_has(&w, A) && !world_is_missing(&w, A));
	atomic_store(&disk_is_full, false);
	CHECK(WAIT_FOR(world_has(&w, A)));
	world_close(&w);
	free(file);
}

/* ---- the configuration changes, the server ends ---- */

TEST(a_reload_takes_effect)
{
	char *file = elf_file(A, DEBUGINFO_DWARF);

	REQUIRE(world_open(&w, 2));
	w.servers_n = 1;
	world_apply(&w, NULL, NULL);
	fake_set(&w.servers[0], (struct answer){ HOW_STALL, file }, none);
	fake_set(&w.servers[1], (struct answer){ HOW_FILE, file }, none);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(fake_debuginfo_n(&w.servers[0]) == 1));
	world_apply(&w, NULL, "debug_directories: [nowhere]"); /* the download goes on */
	CHECK(!world_has(&w, A));
	CHECK_INT(world_server(&w, 0).requests, 1);
	w.servers_n = 2; /* from the beginning; the first is asked again, and stalls again */
	world_apply(&w, NULL, NULL);
	CHECK(WAIT_FOR(fake_debuginfo_n(&w.servers[0]) == 2));
	CHECK_INT(world_server(&w, 0).requests, 2);
	fake_set(&w.servers[0], (struct answer){ HOW_TEXT, NOT_FOUND }, none);
	CHECK(WAIT_FOR(world_has(&w, A)));
	w.servers_n = 0;
	world_apply(&w, NULL, NULL);
	CHECK_INT(world_server(&w, 0).url.len, 0);
	world_want(&w, B, "");
	w.servers_n = 2;
	world_close(&w);
	free(file);
}

TEST(a_new_server_is_asked_for_what_is_missing)
{
	char *file = elf_file(A, DEBUGINFO_DWARF);
	struct debuginfo_id id;
	struct err err;

	REQUIRE(world_open(&w, 2));
	REQUIRE_OK(debuginfo_id_init(&id, DEBUGINFO_GNU, STR(A), &err), &err);
	fake_set(&w.servers[1], (struct answer){ HOW_FILE, file }, none);
	w.servers_n = 1;
	world_apply(&w, NULL, NULL);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(world_is_missing(&w, A)));
	world_apply(&w, NULL, NULL);
	CHECK(world_is_missing(&w, A));
	w.servers_n = 2;
	world_apply(&w, NULL, NULL);
	CHECK(debuginfo_lacks(debuginfo_store(w.debuginfo), &id));
	debuginfo_set_missing(debuginfo_store(w.debuginfo), &id, INT64_MAX);
	world_apply(&w, NULL, "debug_directories: [d]");
	CHECK(debuginfo_lacks(debuginfo_store(w.debuginfo), &id));
	world_close(&w);
	free(file);
}

TEST(it_ends_in_the_middle_of_a_download)
{
	char *file = elf_file(A, DEBUGINFO_DWARF);

	REQUIRE(world_open(&w, 1));
	world_apply(&w, "timeout: 1h", NULL);
	fake_set(&w.servers[0], (struct answer){ HOW_STALL, file }, none);
	world_want(&w, A, "");
	CHECK(WAIT_FOR(files_in_store() == 1));
	debuginfod_close(w.fetcher);
	w.fetcher = NULL;
	CHECK_INT(files_in_store(), 0);
	CHECK(queue_is_empty(A));
	world_close(&w);
	free(file);
}

static void walk(void *ctx)
{
	struct debuginfo_id id;
	struct err err;

	if (!debuginfo_id_init(&id, DEBUGINFO_GNU, STR(A), &err))
		debuginfo_want(w.debuginfo, &id, STR("/usr/bin/a"));
}

TEST(a_walk_wants_what_profiles_name)
{
	struct debuginfod_options o = { .walk = walk, .walk_ns = NS_PER_MS };
	struct err err;

	REQUIRE(world_open(&w, 1));
	debuginfod_close(w.fetcher);
	w.fetcher = NULL;
	o.debuginfo = w.debuginfo;
	REQUIRE_OK(debuginfod_open(&o, &w.fetcher, &err), &err);
	world_apply(&w, NULL, NULL);
	CHECK(WAIT_FOR(world_is_missing(&w, A)));
	world_close(&w);
}
