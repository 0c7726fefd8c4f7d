/*
 * Names of what targets of C++ serve: asked for over real sockets, remembered, and never of
 * another process.
 */
#include "scrape/symbolize.h"

#include <unistd.h>

#include "base/fs.h"
#include "proto/legacy/legacy.h"
#include "scrape/targets/url.h"
#include "tests/check.h"
#include "tests/scrape/fixture.h"
#include "tests/scrape/symbol_target.h"
#include "tests/wait.h"

#define CPU_BODY "tests/proto/legacy/testdata/gperftools.cpu"
#define ALONE_NS (30 * NS_PER_S) /* for so long after a failure: scrape/symbol_cache.h */
#define GO_BODY "tests/proto/legacy/testdata/go_goroutine.txt"

struct service {
	struct fixture f;
	struct symbol_target *target;
	struct arena arena;
	const struct pprof *p; /* of the last scrape */
};

/* The turns are a century apart, so each scrape is one that the test wants. more: of the job. */
static void service_init(struct service *s, const char *profiles, const char *more)
{
	struct buf jobs = { 0 };
	struct err err;

	*s = (struct service){ .target = symbol_target_open() };
	fixture_init(&s->f);
	arena_init(&s->arena, 0);
	buf_printf(&jobs,
		"- job_name: j\n  scrape_interval: 100y\n  scrape_timeout: 10m\n%s"
		"  static_configs: [{targets: ['127.0.0.1:%d']}]\n"
		"  profiling_config: {%s}\n",
		more, symbol_target_port(s->target), profiles);
	buf_add_char(&jobs, '\0');
	CHECK_OK(fixture_apply(&s->f, jobs.ptr, &err), &err);
	buf_release(&jobs);
}

#define HEAP "pprof_config: {" OFF ", heap: {path: /pprof/heap}}"

static void service_release(struct service *s)
{
	fixture_release(&s->f);
	symbol_target_close(s->target);
	arena_release(&s->arena);
}

static enum err_code try_scrape(struct service *s, const char *name, struct err *err)
{
	struct matcher m = { .op = MATCH_EQ, .name = STR("__name__"), .value = str_of(name) };
	struct profile_now wanted = { .matchers = &m, .matchers_n = 1, .wants_profile = true };
	struct profile_now_result got;
	atomic_bool canceled = false;
	struct pprof *p;
	struct str raw;
	enum err_code rc;

	arena_release(&s->arena);
	if ((rc = scrape_manager_profile_now(s->f.manager, &wanted, &canceled, &s->arena, &got, err)) ||
		(rc = pprof_inflate(&s->arena, got.profile, &pprof_limits_default, &raw, err)) ||
		(rc = pprof_decode(&s->arena, raw, &pprof_limits_default, &p, err)))
		return rc;
	s->p = p;
	return ERR_OK;
}

static void scrape(struct service *s)
{
	struct err err;

	CHECK_OK(try_scrape(s, "heap", &err), &err);
}

static void serve(
	struct service *s, unsigned n, const char *maps, enum symbol_mode mode, const char *prefix)
{
	struct buf body = { 0 };

	symbol_target_heap(&body, n, maps);
	symbol_target_set(s->target, &body, mode, prefix);
	buf_release(&body);
}

/* Locations whose name is PREFIX_ADDRESS; wrong: those with another one. */
static unsigned named(const struct service *s, const char *prefix, unsigned *wrong)
{
	const struct pprof *p = s->p;
	unsigned n = 0;
	char want[64];

	*wrong = 0;
	for (uint32_t i = 0; i < p->locations_n; i++) {
		const struct pprof_location *l = &p->locations[i];

		if (!l->line_n)
			continue;
		snprintf(want, sizeof(want), "%s_%" PRIx64, prefix, l->address);
		if (str_is(p->strings[p->functions[p->lines[l->line_first].function].name], want))
			n++;
		else
			++*wrong;
	}
	return n;
}

#define CHECK_NAMED(s, prefix, want) \
	do { \
		unsigned wrong_; \
		CHECK_INT(named((s), (prefix), &wrong_), (want)); \
		CHECK_INT(wrong_, 0); \
	} while (0)

TEST(names_are_asked_for_once)
{
	struct buf head = { 0 };
	struct service s;

	service_init(&s, HEAP, "  basic_auth: {username: u, password: p}\n");
	serve(&s, 40, "00400000", SYMBOLS_NAMES, "a");
	scrape(&s);
	CHECK_INT(s.p->samples_n, 40);
	CHECK_NAMED(&s, "a", 40);
	CHECK_INT(symbol_target_questions(s.target), 1);
	CHECK_INT(symbol_target_asked(s.target), 40);
	symbol_target_head(s.target, &head);
	CHECK(str_has_prefix(buf_str(&head), STR("POST /pprof/symbol HTTP/1.1\r\n")));
	CHECK(str_find(buf_str(&head), STR("\r\nAuthorization: Basic dTpw\r\n")) > 0);
	scrape(&s); /* a few are asked for again: is it still the same process? */
	CHECK_NAMED(&s, "a", 40);
	CHECK_INT(symbol_target_asked(s.target), 40 + SYMBOLS_CHECKED);
	serve(&s, 50, "00400000", SYMBOLS_NAMES, "a");
	scrape(&s);
	CHECK_NAMED(&s, "a", 50);
	CHECK_INT(symbol_target_asked(s.target), 40 + 2 * SYMBOLS_CHECKED + 10);
	CHECK_INT(symbol_target_questions(s.target), 3);
	buf_release(&head);
	service_release(&s);
}

TEST(many_addresses_are_asked_for_in_batches)
{
	struct service s;

	service_init(&s, HEAP, "");
	serve(&s, 2 * SYMBOLS_BATCH + 1, "00400000", SYMBOLS_NAMES, "a");
	scrape(&s);
	CHECK_NAMED(&s, "a", 2 * SYMBOLS_BATCH + 1);
	CHECK_INT(symbol_target_questions(s.target), 3);
	/* a line that is cut off does not go on in the next answer */
	serve(&s, 2 * SYMBOLS_BATCH + 1, "00300000", SYMBOLS_CUT, "b");
	scrape(&s);
	CHECK_NAMED(&s, "b", 2 * SYMBOLS_BATCH + 1 - 3);
	service_release(&s);
}

/* More than a scrape asks for: the next one goes on. */
TEST(more_addresses_than_a_scrape_asks_for)
{
	struct service s;

	service_init(&s, HEAP, "");
	serve(&s, SYMBOLS_ASKED_MAX + 100, "00400000", SYMBOLS_NAMES, "a");
	scrape(&s);
	CHECK_NAMED(&s, "a", SYMBOLS_ASKED_MAX);
	scrape(&s);
	CHECK_NAMED(&s, "a", SYMBOLS_ASKED_MAX + 100);
	CHECK_INT(symbol_target_asked(s.target), SYMBOLS_ASKED_MAX + 100 + SYMBOLS_CHECKED);
	service_release(&s);
}

/* Another process with other addresses: nothing of the one before is used. */
TEST(another_process)
{
	struct service s;

	service_init(&s, HEAP, "");
	serve(&s, 30, "00400000", SYMBOLS_NAMES, "a");
	scrape(&s);
	CHECK_NAMED(&s, "a", 30);
	serve(&s, 30, "00300000", SYMBOLS_NAMES, "b");
	scrape(&s);
	CHECK_NAMED(&s, "b", 30);
	CHECK_INT(symbol_target_asked(s.target), 60);
	service_release(&s);
}

/* The same mappings, other code: the answer gives it away, and no name is given rather than a wrong
 * one. The next scrape asks for all. */
TEST(another_process_with_the_same_mappings)
{
	struct service s;

	service_init(&s, HEAP, "");
	serve(&s, 30, "00400000", SYMBOLS_NAMES, "a");
	scrape(&s);
	CHECK_NAMED(&s, "a", 30);
	serve(&s, 35, "00400000", SYMBOLS_NAMES, "b");
	scrape(&s);
	CHECK_NAMED(&s, "b", 0);
	scrape(&s);
	CHECK_NAMED(&s, "b", 35);
	/* it has no names any more, or does not say them */
	serve(&s, 35, "00400000", SYMBOLS_404, "b");
	scrape(&s);
	CHECK_NAMED(&s, "b", 0);
	service_release(&s);
}

/* Without mappings nothing tells processes apart, so all is asked for each time. */
TEST(a_profile_without_mappings)
{
	struct service s;

	service_init(&s, HEAP, "");
	serve(&s, 30, "", SYMBOLS_NAMES, "a");
	scrape(&s);
	CHECK_NAMED(&s, "a", 30);
	serve(&s, 30, "", SYMBOLS_NAMES, "b");
	scrape(&s);
	CHECK_NAMED(&s, "b", 30);
	CHECK_INT(symbol_target_asked(s.target), 60);
	service_release(&s);
}

/* A target that has no names is found out once. One with names, of other addresses, is asked on. */
TEST(targets_without_names)
{
	static const enum symbol_mode modes[] = { SYMBOLS_404, SYMBOLS_PAGE, SYMBOLS_NO_SERVICE };
	struct service s;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		service_init(&s, HEAP, "");
		serve(&s, 30, "00400000", modes[i], "a");
		for (int k = 0; k < 3; k++) {
			scrape(&s);
			CHECK_INT(s.p->samples_n, 30);
			CHECK_NAMED(&s, "a", 0);
		}
		CHECK_INT(symbol_target_questions(s.target), 1);
		service_release(&s);
	}
	service_init(&s, HEAP, "");
	serve(&s, 30, "00400000", SYMBOLS_EMPTY, "a");
	scrape(&s);
	CHECK_NAMED(&s, "a", 0);
	serve(&s, 40, "00400000", SYMBOLS_NAMES, "a");
	scrape(&s);
	CHECK_NAMED(&s, "a", 10);
	service_release(&s);
}

/* The profile is stored all the same, without names, and the target is left alone for a while. */
TEST(services_that_fail)
{
	static const enum symbol_mode modes[] = { SYMBOLS_500, SYMBOLS_GARBAGE, SYMBOLS_LONG,
		SYMBOLS_HUGE, SYMBOLS_RESET };
	struct service s;
	int64_t began;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		service_init(&s, HEAP, "");
		serve(&s, 30, "00400000", modes[i], "a");
		began = clock_monotonic_ns();
		for (int k = 0; k < 3; k++) {
			scrape(&s);
			CHECK_INT(s.p->samples_n, 30);
			CHECK_NAMED(&s, "a", 0);
		}
		if (clock_monotonic_ns() - began < ALONE_NS)
			CHECK_INT(symbol_target_questions(s.target), 1);
		CHECK(fake_sink_wait(&s.f.sink, "30 samples", 3));
		service_release(&s);
	}
}

/* What it knew already stays, since the mappings say that it is the same process. */
TEST(a_service_that_fails_later)
{
	struct service s;

	service_init(&s, HEAP, "");
	serve(&s, 30, "00400000", SYMBOLS_NAMES, "a");
	scrape(&s);
	serve(&s, 40, "00400000", SYMBOLS_500, "a");
	scrape(&s);
	CHECK_NAMED(&s, "a", 30);
	CHECK_INT(symbol_target_questions(s.target), 2);
	service_release(&s);
}

TEST(names_of_addresses_that_nobody_asked_for)
{
	struct service s;

	service_init(&s, HEAP, "");
	serve(&s, 30, "00400000", SYMBOLS_OTHERS, "a");
	scrape(&s);
	CHECK_NAMED(&s, "a", 0);
	service_release(&s);
}

/*
 * The question ends with the scrape's time. A busy machine may not even get the profile in it, or
 * have no time left for a question. Whoever was not asked in time is left alone for a while, so
 * each turn has another process.
 */
TEST(a_silent_service)
{
	unsigned start = 0x300000, stored = 0;
	int64_t until = 0;
	bool ok = false;
	struct service s;
	struct err err;
	char maps[16];

	service_init(&s, "pprof_config: {" OFF ", heap: {path: /pprof/heap, timeout: 500ms}}", "");
	while (!(ok && symbol_target_questions(s.target)) && wait_more(&until)) {
		snprintf(maps, sizeof(maps), "%08x", start += 0x1000);
		serve(&s, 30, maps, SYMBOLS_SILENT, "a");
		ok = !try_scrape(&s, "heap", &err);
		stored += ok;
	}
	REQUIRE(ok);
	CHECK_INT(s.p->samples_n, 30);
	CHECK_NAMED(&s, "a", 0);
	CHECK(symbol_target_questions(s.target) >= 1);
	CHECK(symbol_target_questions(s.target) <= stored);
	service_release(&s);
}

/* The manager ends while a question is under way: the profile is stored without names. */
TEST(the_end_of_the_manager)
{
	struct service s;
	struct buf jobs = { 0 };
	struct err err;

	service_init(&s, HEAP, "");
	serve(&s, 30, "00400000", SYMBOLS_SILENT, "a");
	buf_printf(&jobs,
		"- job_name: j\n  scrape_interval: 10ms\n  scrape_timeout: 10ms\n"
		"  static_configs: [{targets: ['127.0.0.1:%d'], labels: {" PATIENT "}}]\n"
		"  profiling_config: {" HEAP "}\n",
		symbol_target_port(s.target));
	buf_add_char(&jobs, '\0');
	CHECK_OK(fixture_apply(&s.f, jobs.ptr, &err), &err);
	CHECK(WAIT_FOR(symbol_target_questions(s.target) == 1));
	CHECK_INT(fake_sink_count(&s.f.sink, "heap{"), 0);
	scrape_manager_close(s.f.manager);
	s.f.manager = NULL;
	CHECK_INT(fake_sink_count(&s.f.sink, "30 samples"), 1);
	buf_release(&jobs);
	service_release(&s);
}

TEST(the_path_of_the_service)
{
	struct buf head = { 0 };
	struct service s;

	service_init(&s,
		"path_prefix: /in, symbol_path: /names of, "
		"pprof_config: {" OFF ", heap: {path: /deep/heap, params: {a: [b]}}}",
		"");
	serve(&s, 3, "00400000", SYMBOLS_NAMES, "a");
	scrape(&s);
	CHECK_NAMED(&s, "a", 3);
	symbol_target_head(s.target, &head);
	CHECK(str_has_prefix(buf_str(&head), STR("POST /in/names%20of HTTP/1.1\r\n")));
	buf_release(&head);
	service_release(&s);
}

static void serve_file(struct service *s, const char *path, enum symbol_mode mode)
{
	struct buf body = { 0 };
	struct err err;

	CHECK_OK(fs_read_file(path, 1 << 20, &body, &err), &err);
	symbol_target_set(s->target, &body, mode, "a");
	buf_release(&body);
}

/* It does not say how long it took, so `seconds` does, and its values count. */
TEST(a_cpu_profile)
{
	struct service s;
	struct err err;

	service_init(&s,
		"pprof_config: {" NO_CPU ", process_cpu: {path: /pprof/profile, delta: true, seconds: 5}, "
		"plain: {path: /pprof/plain}}",
		"");
	serve_file(&s, CPU_BODY, SYMBOLS_NAMES);
	REQUIRE_OK(try_scrape(&s, "process_cpu", &err), &err);
	CHECK_INT(s.p->duration_nanos, 5 * NS_PER_S);
	CHECK_NAMED(&s, "a", s.p->locations_n);
	CHECK(fake_sink_wait(&s.f.sink, "samples=delta cpu=delta", 1));
	REQUIRE_OK(try_scrape(&s, "plain", &err), &err);
	CHECK_INT(s.p->duration_nanos, 0);
	CHECK(fake_sink_wait(&s.f.sink, "samples=delta cpu=delta", 2));
	service_release(&s);
}

/* Go's ?debug=1 has most names in comments; the target is asked for the others. */
TEST(a_text_that_has_names)
{
	struct service s;
	bool found = false;

	service_init(&s, HEAP, "");
	serve_file(&s, GO_BODY, SYMBOLS_NAMES);
	scrape(&s);
	for (uint32_t i = 0; i < s.p->functions_n; i++)
		found |= str_is(s.p->strings[s.p->functions[i].name], "main.main");
	CHECK(found);
	CHECK(s.p->functions_n > symbol_target_asked(s.target));
	for (uint32_t i = 0; i < s.p->locations_n; i++)
		CHECK_INT(s.p->locations[i].line_n, 1);
	service_release(&s);
}

TEST(paths_of_services)
{
	static const struct {
		const char *url, *prefix, *path, *want;
	} rows[] = {
		{ "http://h:1/pprof/heap", "", "", "http://h:1/pprof/symbol" },
		{ "https://h/debug/pprof/profile?seconds=9&x=/y", "", "", "https://h/debug/pprof/symbol" },
		{ "http://[::1]:1/a/b/heap", "/a", "", "http://[::1]:1/a/b/symbol" },
		{ "http://h/", "", "", "http://h/symbol" },
		{ "http://h", "", "", "http://h/symbol" },
		{ "http://h?x=1", "", "", "http://h/symbol" },
		{ "http://h/pprof/heap", "", "names", "http://h/names" },
		{ "http://h/p/pprof/heap?debug=1", "p/", "/a b?c", "http://h/p/a%20b%3Fc" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf out = { 0 };

		url_print_symbol(&out, str_of(rows[i].url), str_of(rows[i].prefix), str_of(rows[i].path));
		CHECK_STR(buf_str(&out), rows[i].want);
		buf_release(&out);
	}
}

TEST(processes_are_told_apart)
{
	static const char one[] = "400000-401000 r-xp 00000000 fe:00 123   /bin/x\n";
	uint64_t process = symbolize_process(str_of(one));

	CHECK(process != 0);
	CHECK_INT(symbolize_process(STR("")), 0);
	CHECK_INT(symbolize_process(STR("heap profile: 1: 2 [3: 4] @ heap\n1: 2 [3: 4] @ 0x1\n")), 0);
	CHECK_INT(
		symbolize_process(STR("x\n  400000-401000 r-xp  00000000 fe:00 123 /bin/x")), process);
	/* data, and code that is no file's, come and go */
	CHECK_INT(symbolize_process(STR("400000-401000 r-xp 00000000 fe:00 123 /bin/x\n"
									"500000-501000 rw-p 00000000 00:00 0 [heap]\n"
									"600000-601000 r-xp 00000000 00:00 0 \n")),
		process);
	CHECK(symbolize_process(STR("400000-401000 r-xp 00000000 fe:00 124 /bin/x\n")) != process);
	CHECK(symbolize_process(STR("410000-411000 r-xp 00000000 fe:00 123 /bin/x\n")) != process);
}
