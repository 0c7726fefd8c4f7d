/* HTTP discovery against a real server on the loopback. */

#include <fcntl.h>
#include <unistd.h>

#include "base/version.h"
#include "tests/base/net/http_server.h"
#include "tests/discovery/sd_fixture.h"
#include "tests/wait.h"

#define FAILURES "epimetheus_discovery_failures_total{provider=\"http\"}"
#define ANSWER_NS NS_PER_S
#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

/* A server whose answer can be changed; if it is empty, the server does not answer. */
struct answering {
	struct http_server server;
	struct mutex lock;
	struct buf answer; /* guarded by lock */
};

static void script(struct peer *p, void *ctx)
{
	struct answering *s = ctx;
	struct buf now = { 0 };
	bool ok = true;

	while (ok && peer_read_request(p)) {
		mutex_lock(&s->lock);
		buf_clear(&now);
		buf_add_str(&now, buf_str(&s->answer));
		mutex_unlock(&s->lock);
		ok = peer_write(p, buf_str(&now));
	}
	buf_release(&now);
}

/* head ends with \r\n, without a length. */
static void answer(struct answering *s, const char *head, const char *body)
{
	mutex_lock(&s->lock);
	buf_clear(&s->answer);
	if (head)
		buf_printf(&s->answer, "%sContent-Length: %zu\r\n\r\n%s", head, strlen(body), body);
	mutex_unlock(&s->lock);
}

static void answering_start(struct answering *s)
{
	memset(s, 0, sizeof(*s));
	mutex_init(&s->lock);
	if (!http_server_start(&s->server, script, s, NULL))
		CHECK_FAIL("no server");
}

static void answering_stop(struct answering *s)
{
	http_server_stop(&s->server);
	buf_release(&s->answer);
	mutex_destroy(&s->lock);
}

static const char *url_of(struct fixture *f, const struct answering *s)
{
	return arena_printf(&f->arena, "http://127.0.0.1:%u/sd?debug=1", s->server.port);
}

static void apply_every(struct fixture *f, const char *url, const char *interval, const char *more)
{
	apply(f,
		arena_printf(&f->arena, "http_sd_configs: [{url: '%s', refresh_interval: %s%s}]", url,
			interval, more),
		NULL);
}

static void apply_url(struct fixture *f, const char *url, const char *more)
{
	apply_every(f, url, "500ms", more);
}

static const char *group(struct fixture *f, const char *url, unsigned i, const char *rest)
{
	return arena_printf(&f->arena, "%s:%u {__meta_url=\"%s\"%s\n", url, i, url, rest);
}

static void wait_for_failure(double before)
{
	CHECK(WAIT_FOR(metric_shown(FAILURES) > before));
}

TEST(an_answer_becomes_groups_and_is_asked_for_again)
{
	struct answering s;
	struct fixture f;
	const char *url;

	answering_start(&s);
	fixture_init(&f);
	url = url_of(&f, &s);
	answer(&s, OK_HEAD,
		"[{\"targets\": [\"a:1\", \"b:2\"], \"labels\": "
		"{\"k\": \"v\", \"__meta_url\": \"forged\"}}, {\"targets\": []}]");
	apply(&f,
		arena_printf(&f.arena, "http_sd_configs: [{url: '%s', refresh_interval: 1s500ms}]", url),
		NULL);
	expect(&f, 0,
		arena_printf(
			&f.arena, "%s%s", group(&f, url, 0, ", k=\"v\"} a:1 b:2"), group(&f, url, 1, "}")));
	CHECK(http_server_saw(&s.server, "GET /sd?debug=1 HTTP/1.1\r\n"));
	CHECK(http_server_saw(&s.server, "\r\nUser-Agent: Epimetheus/" EPI_VERSION "\r\n"));
	CHECK(http_server_saw(&s.server, "\r\nAccept: application/json\r\n"));
	CHECK(http_server_saw(&s.server, "\r\nX-Prometheus-Refresh-Interval-Seconds: 1.5\r\n"));
	answer(&s, OK_HEAD, "[{\"targets\": [\"c\"]}]");
	expect(&f, 0, group(&f, url, 0, "} c"));
	answer(&s, OK_HEAD, "null");
	expect(&f, 0, "");
	fixture_release(&f);
	answering_stop(&s);
}

TEST(content_types_as_prometheus_takes_them)
{
	static const struct {
		const char *type;
		bool taken;
	} rows[] = {
		{ "application/json", true },
		{ "Application/JSON", true },
		{ "application/json;charset=UTF-8", true },
		{ "application/json; charset=\"utf-8\"", true },
		{ "application/json;  \tcharset=utf-8  ", true },
		{ "application/json;", false },
		{ "application/json; charset=latin1", false },
		{ "application/json; charset=utf-8; x=y", false },
		{ "application/jsonx", false },
		{ "text/plain", false },
		{ "", false },
	};
	struct answering s;
	struct fixture f;
	const char *url;
	double before;

	answering_start(&s);
	fixture_init(&f);
	url = url_of(&f, &s);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		answer(&s, arena_printf(&f.arena, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n", rows[i].type),
			"[{\"targets\": [\"x\"]}]");
		apply(&f, NULL, NULL);
		buf_clear(&f.last[0]);
		before = metric_shown(FAILURES);
		apply_url(&f, url, "");
		if (rows[i].taken)
			expect(&f, 0, group(&f, url, 0, "} x"));
		else
			wait_for_failure(before);
		CHECK_INT(f.last[0].len > 0, rows[i].taken);
	}
	fixture_release(&f);
	answering_stop(&s);
}

static bool file_has(const char *path, const char *want)
{
	struct err err;
	struct buf text = { 0 };
	bool has;

	CHECK_OK(fs_read_file(path, 1 << 20, &text, &err), &err);
	buf_add_char(&text, '\0');
	has = strstr(text.ptr, want);
	buf_release(&text);
	return has;
}

/*
 * Each failure keeps the targets, and is logged once until an answer is right again. A busy machine
 * may add a deadline that is exceeded to any row.
 */
TEST(a_failed_refresh_keeps_the_last_targets)
{
	/* clang-format off */
	static const struct {
		const char *head, *body, *want;
	} rows[] = {
		{ "HTTP/1.1 500 Internal Server Error\r\n", "[]",
			"%s: server returned HTTP status 500 Internal Server Error" },
		{ "HTTP/1.1 204 No Content\r\n", "", "%s: server returned HTTP status 204 No Content" },
		{ "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", "[]",
			"%s: unsupported content type \\\"text/html\\\"" },
		{ OK_HEAD "Content-Encoding: br\r\n", "[]",
			"%s: unsupported content encoding \\\"br\\\"" },
		{ OK_HEAD, "[{\"targets\": [\"x\"]", "%s:1:18: '}' expected near end of file" },
		{ OK_HEAD, "{}", "%s: not an array of target groups" },
		{ OK_HEAD, "[null]", "%s: group 0 is not an object" },
		{ OK_HEAD, "[{\"target\": []}]", "%s: group 0: unknown field \\\"target\\\"" },
		{ NULL, "", "%s: context deadline exceeded" },
		{ "nonsense\r\n", "", "%s: malformed HTTP" },
	};
	/* clang-format on */
	const size_t rows_n = sizeof(rows) / sizeof(rows[0]);
	const char *url, *log, *failing, *again, *wants[sizeof(rows) / sizeof(rows[0])];
	struct answering s;
	struct fixture f;
	struct buf text = { 0 };
	struct err err;
	int saved, fd;

	answering_start(&s);
	fixture_init(&f);
	url = url_of(&f, &s);
	log = in_dir(&f, "log");
	answer(&s, OK_HEAD, "[{\"targets\": [\"x\"]}]");
	apply_every(&f, url, "350ms", "");
	expect(&f, 0, group(&f, url, 0, "} x"));
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	fflush(stderr);
	saved = dup(STDERR_FILENO);
	dup2(fd, STDERR_FILENO);
	for (size_t i = 0; i < rows_n; i++) {
		wants[i] = arena_printf(&f.arena, "msg=\"source of targets failed\" provider=http err=\"%s",
			arena_printf(&f.arena, rows[i].want, url));
		answer(&s, rows[i].head, rows[i].body);
		CHECK(WAIT_FOR(file_has(log, wants[i])));
		wait_for_failure(metric_shown(FAILURES) + 1); /* again, and once more it could be logged */
		CHECK_STR(buf_str(&f.last[0]), group(&f, url, 0, "} x"));
		CHECK(metric_shown("epimetheus_discovery_sources_failing{provider=\"http\"}") == 1);
	}
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fd);
	CHECK_OK(fs_read_file(log, 1 << 20, &text, &err), &err);
	buf_add_char(&text, '\0');
	failing = strstr(text.ptr, wants[0]); /* from here on, no answer was right */
	for (size_t i = 0; failing && i < rows_n; i++)
		if ((again = strstr(failing, wants[i])) && strstr(again + 1, wants[i]))
			CHECK_FAIL("log is %s, want once %s", text.ptr, wants[i]);
	buf_release(&text);
	answer(&s, OK_HEAD, "[{\"targets\": [\"y\"]}]");
	expect(&f, 0, group(&f, url, 0, "} y"));
	CHECK(WAIT_FOR(metric_shown("epimetheus_discovery_sources_failing{provider=\"http\"}") == 0));
	fixture_release(&f);
	answering_stop(&s);
}

TEST(credentials_do_not_follow_a_redirect_to_another_host)
{
	struct answering s, other;
	struct fixture f;
	const char *url;

	answering_start(&s);
	answering_start(&other);
	fixture_init(&f);
	url = url_of(&f, &s);
	answer(&other, OK_HEAD, "[{\"targets\": [\"x\"]}]");
	answer(&s,
		arena_printf(&f.arena,
			"HTTP/1.1 302 Found\r\n"
			"Location: http://127.0.0.1:%u/there\r\n",
			other.server.port),
		"");
	apply_url(&f, url, ", basic_auth: {username: u, password: p}");
	expect(&f, 0, group(&f, url, 0, "} x"));
	CHECK(http_server_saw(&s.server, "\r\nAuthorization: Basic dTpw\r\n"));
	CHECK(http_server_saw(&other.server, "GET /there HTTP/1.1\r\n"));
	CHECK(!http_server_saw(&other.server, "uthorization"));
	fixture_release(&f);
	answering_stop(&s);
	answering_stop(&other);
}

TEST(a_reload_waits_for_the_answer_of_a_new_source)
{
	struct answering s, other;
	struct fixture f;
	const char *first, *second;

	answering_start(&s);
	answering_start(&other);
	fixture_init(&f);
	answer(&s, OK_HEAD, "[{\"targets\": [\"x\"]}]");
	apply_url(&f, url_of(&f, &s), "");
	first = group(&f, url_of(&f, &s), 0, "} x");
	expect(&f, 0, first);

	apply_url(&f, url_of(&f, &other), ""); /* which is silent now */
	CHECK_STR(buf_str(&f.last[0]), first);
	expect_still(&f, 0, first, 300 * NS_PER_MS);
	answer(&other, OK_HEAD, "[{\"targets\": [\"y\"]}]");
	second = group(&f, url_of(&f, &other), 0, "} y");
	expect(&f, 0, second);
	fixture_release(&f);
	answering_stop(&s);
	answering_stop(&other);
}

TEST(a_reload_does_not_wait_for_ever)
{
	struct answering s, other;
	struct fixture f;
	int64_t began;

	answering_start(&s);
	answering_start(&other);
	fixture_open(&f, NULL, ANSWER_NS);
	answer(&s, OK_HEAD, "[{\"targets\": [\"x\"]}]");
	apply_url(&f, url_of(&f, &s), "");
	expect(&f, 0, group(&f, url_of(&f, &s), 0, "} x"));

	began = clock_monotonic_ns();
	apply_url(&f, url_of(&f, &other), ""); /* which is silent now */
	expect(&f, 0, "");
	CHECK(clock_monotonic_ns() - began >= ANSWER_NS);
	answer(&other, OK_HEAD, "[{\"targets\": [\"y\"]}]");
	expect(&f, 0, group(&f, url_of(&f, &other), 0, "} y"));
	fixture_release(&f);
	answering_stop(&s);
	answering_stop(&other);
}

TEST(a_reload_does_not_ask_again_for_what_stands)
{
	struct answering s;
	struct fixture f;
	const char *url, *config;

	answering_start(&s);
	fixture_init(&f);
	url = url_of(&f, &s);
	config = arena_printf(&f.arena, "http_sd_configs: [{url: '%s', refresh_interval: 1h}]", url);
	answer(&s, OK_HEAD, "[{\"targets\": [\"x\"]}]");
	for (int i = 0; i < 5; i++) {
		apply(&f, config, config);
		expect(&f, 0, group(&f, url, 0, "} x"));
		expect(&f, 1, group(&f, url, 0, "} x"));
	}
	CHECK_INT(atomic_load(&s.server.requests), 1);
	CHECK(metric_shown("epimetheus_discovery_last_success_timestamp_seconds"
					   "{provider=\"http\"}") > 1e9);
	fixture_release(&f);
	answering_stop(&s);
}

TEST(configuration)
{
	/* clang-format off */
	static const struct {
		const char *text;
		enum err_code code;
		const char *want;
	} rows[] = {
		{ "http_sd_configs: [{}]", ERR_INVALID, "c.yml:1:19: URL is missing" },
		{ "http_sd_configs: [~]", ERR_INVALID,
			"c.yml:1:19: empty or null section in http_sd_configs" },
		{ "http_sd_configs: {url: x}", ERR_INVALID,
			"c.yml:1:18: expected a list of http_sd_config" },
		{ "http_sd_configs: [{url: 'a:80/x'}]", ERR_INVALID,
			"c.yml:1:25: URL scheme must be 'http' or 'https'" },
		{ "http_sd_configs: [{url: 'ftp://a/x'}]", ERR_INVALID,
			"c.yml:1:25: URL scheme must be 'http' or 'https'" },
		{ "http_sd_configs: [{url: 'http://'}]", ERR_INVALID,
			"c.yml:1:25: host is missing in URL" },
		{ "http_sd_configs: [{url: 'http:/x'}]", ERR_INVALID,
			"c.yml:1:25: host is missing in URL" },
		{ "http_sd_configs: [{url: 'https:///x'}]", ERR_INVALID,
			"c.yml:1:25: host is missing in URL" },
		{ "http_sd_configs: [{url: 'http://u:p@a/x'}]", ERR_INVALID,
			"c.yml:1:25: user information in a URL is not supported, use basic_auth" },
		{ "http_sd_configs: [{url: 'http://a', refresh_interval: 50ms}]", ERR_INVALID,
			"c.yml:1:55: refresh_interval of HTTP discovery is under 100ms" },
		{ "http_sd_configs: [{url: 'http://a', basic_auth: {username: u}, "
		  "authorization: {credentials: c}}]", ERR_INVALID,
			"c.yml:1:79: at most one of basic_auth, oauth2 & authorization must be configured" },
		{ "http_sd_configs: [{url: 'http://a', proxy_url: 'ftp://b'}]", ERR_INVALID,
			"c.yml:1:48: proxy scheme \"ftp\" is not supported" },
		{ "http_sd_configs: [{uri: 'http://a'}]", ERR_INVALID,
			"c.yml:1:20: field uri not found in type http_sd_config; did you mean \"url\"?" },
	};
	/* clang-format on */
	struct sd_configs sd;
	struct fixture f;
	struct err err;

	fixture_init(&f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_ERR(sd_of(&f, rows[i].text, &sd, &err), &err, rows[i].code, rows[i].want);
	REQUIRE_OK(sd_of(&f,
				   "http_sd_configs: [{url: 'HTTP://a/b', "
				   "bearer_token_file: missing}]",
				   &sd, &err),
		&err);
	CHECK_ERR(sd_check_files(&sd, &err), &err, ERR_NOT_FOUND,
		arena_printf(&f.arena,
			"authorization credentials file %s/missing: No such file or directory", f.dir));
	put(&f, "missing", "token");
	CHECK_OK(sd_check_files(&sd, &err), &err);
	fixture_release(&f);
}
