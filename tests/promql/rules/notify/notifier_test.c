/* The notifier against real HTTP servers on the loopback that stand for Alertmanagers. */
#include "promql/rules/notify/notifier.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/metrics.h"
#include "tests/base/net/http_server.h"
#include "tests/base/net/identity.h"
#include "tests/check.h"
#include "tests/wait.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
#define ACCEPTED "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
#define BROKEN "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"

/* An Alertmanager: what it was sent, and what it answers. */
struct receiver {
	struct http_server server;
	struct mutex lock;
	struct buf bodies; /* guarded by lock: a line for each request */
	const char *_Atomic answer; /* NULL: silence until there is one */
	atomic_uint requests;
	char url[64];
};

static void receive(struct peer *p, void *ctx)
{
	struct receiver *r = ctx;
	const char *answer;
	ptrdiff_t at;

	while (peer_read_request(p)) {
		at = str_find(buf_str(&p->request), STR("\r\n\r\n"));
		mutex_lock(&r->lock);
		buf_add(&r->bodies, p->request.ptr + at + 4, p->request.len - (size_t)at - 4);
		buf_add_char(&r->bodies, '\n');
		mutex_unlock(&r->lock);
		atomic_fetch_add(&r->requests, 1);
		while (!(answer = atomic_load(&r->answer)) && !peer_gone(p))
			sleep_ms(1);
		if (!answer || !peer_print(p, answer))
			return;
	}
}

static void answer(struct receiver *r, const char *text)
{
	atomic_store(&r->answer, text);
}

static void receiver_start(struct receiver *r, SSL_CTX *tls)
{
	memset(r, 0, sizeof(*r));
	answer(r, OK);
	mutex_init(&r->lock);
	if (!http_server_start(&r->server, receive, r, tls))
		CHECK_FAIL("no server");
	snprintf(r->url, sizeof(r->url), "%s://127.0.0.1:%u/api/v2/alerts", tls ? "https" : "http",
		r->server.port);
}

static void receiver_stop(struct receiver *r)
{
	http_server_stop(&r->server);
	buf_release(&r->bodies);
	mutex_destroy(&r->lock);
}

static bool wait_requests(struct receiver *r, unsigned want)
{
	return WAIT_FOR(atomic_load(&r->requests) >= want);
}

static void check_received(struct receiver *r, const char *want)
{
	mutex_lock(&r->lock);
	CHECK_STR(buf_str(&r->bodies), want);
	mutex_unlock(&r->lock);
}

static size_t received(struct receiver *r, const char *what)
{
	struct str rest;
	size_t n = 0;
	ptrdiff_t at;

	mutex_lock(&r->lock);
	rest = buf_str(&r->bodies);
	while (rest.len && (at = str_find(rest, str_of(what))) >= 0) {
		n++;
		rest.ptr += (size_t)at + strlen(what);
		rest.len -= (size_t)at + strlen(what);
	}
	mutex_unlock(&r->lock);
	return n;
}

struct fixture {
	struct notifier *n;
	struct arena arena;
	struct alerting_config configs[8];
	size_t configs_n;
	struct labels external;
};

static void fixture_open(struct fixture *f, size_t queue_max)
{
	struct notifier_options o = { .queue_max = queue_max };
	struct err err;

	memset(f, 0, sizeof(*f));
	arena_init(&f->arena, 0);
	if (notifier_open(&o, &f->n, &err))
		CHECK_FAIL("notifier: %s", err.msg);
}

/* The section `alerting` as YAML; want NULL: it is applied. */
static void apply(struct fixture *f, const char *text, const char *want)
{
	struct yaml_ctx ctx = { .arena = &f->arena, .dir = STR("/nonesuch") };
	struct alerting_config *c = &f->configs[f->configs_n++];
	struct yaml_node *root;
	struct err err;
	enum err_code rc;

	if (yaml_parse(&f->arena, "c", str_of(text), &root, &err) ||
		alerting_config_decode(&ctx, root, c, &err)) {
		CHECK_FAIL("%s", err.msg);
		return;
	}
	rc = notifier_apply(f->n, c, f->external, &err);
	if (want ? !rc || strcmp(err.msg, want) : rc)
		CHECK_FAIL("apply: \"%s\", want \"%s\"", rc ? err.msg : "", want ? want : "");
}

/* No request times out on a busy machine, unless `more` has a timeout. */
static const char *one(struct fixture *f, const struct receiver *r, const char *more)
{
	return arena_printf(&f->arena,
		"alertmanagers: [{static_configs: [{targets: ['127.0.0.1:%u']}]%s%s}]", r->server.port,
		strstr(more, "timeout:") ? "" : ", timeout: 2m", more);
}

static void fixture_close(struct fixture *f)
{
	notifier_close(f->n);
	for (size_t i = 0; i < f->configs_n; i++)
		alerting_config_release(&f->configs[i]);
	arena_release(&f->arena);
}

static struct labels labels(struct fixture *f, const char *const *pairs)
{
	struct labels_builder b;
	struct labels out = { 0 };

	labels_builder_init(&b, &f->arena, out);
	for (; pairs[0]; pairs += 2)
		labels_builder_set(&b, str_of(pairs[0]), str_of(pairs[1]));
	if (labels_builder_build(&b, &out, NULL))
		CHECK_FAIL("labels");
	return out;
}
#define LABELS(f, ...) labels(f, (const char *const[]){ __VA_ARGS__, NULL })

static void send(struct fixture *f, const char *name)
{
	const struct notification v = {
		.labels = LABELS(f, "alertname", name),
		.starts_ns = NS_PER_S,
		.ends_ns = 2 * NS_PER_S,
	};

	notifier_send(f->n, &v, 1);
}

static double metric_shown(const char *line)
{
	struct buf text = { 0 };
	double v = -1;
	ptrdiff_t at;

	metrics_print(&text);
	buf_add_char(&text, '\0');
	at = str_find(buf_str(&text), str_of(line));
	if (at >= 0)
		v = strtod(text.ptr + at + strlen(line), NULL);
	buf_release(&text);
	return v;
}

static double metric_of(const char *name, const struct receiver *r)
{
	char line[200];

	snprintf(
		line, sizeof(line), "\nepimetheus_notifications_%s{alertmanager=\"%s\"} ", name, r->url);
	return metric_shown(line);
}

/* ---- what is sent ---- */

TEST(alert)
{
	struct fixture f;
	struct receiver r;
	struct notification v;

	receiver_start(&r, NULL);
	answer(&r, ACCEPTED);
	fixture_open(&f, 0);
	f.external = LABELS(&f, "cluster", "eu", "job", "never");
	apply(&f,
		arena_printf(&f.arena,
			"alert_relabel_configs: [{regex: secret, action: labeldrop}]\n"
			"alertmanagers: [{path_prefix: /am/, bearer_token: t0ken,"
			" static_configs: [{targets: ['127.0.0.1:%u']}]}]",
			r.server.port),
		NULL);
	v = (struct notification){
		.labels = LABELS(&f, "alertname", "High\"Cost", "job", "api", "secret", "x"),
		.annotations = LABELS(&f, "summary", "a\nb"),
		.starts_ns = INT64_C(1795219120907123456),
		.ends_ns = INT64_C(1795219360000000000),
		.generator_url = STR("http://x/explore?q=1"),
		};
	notifier_send(f.n, &v, 1);
	CHECK(wait_requests(&r, 1));
	check_received(&r,
		"[{\"annotations\":{\"summary\":\"a\\nb\"},\"endsAt\":\"2026-11-21T00:02:40.000Z\","
		"\"startsAt\":\"2026-11-20T23:58:40.907Z\",\"generatorURL\":\"http://x/"
		"explore?q=1\","
		"\"labels\":{\"alertname\":\"High\\\"Cost\",\"cluster\":\"eu\",\"job\":\"api\"}}]"
		"\n");
	CHECK(http_server_saw(&r.server, "POST /am/api/v2/alerts HTTP/1.1\r\n"));
	CHECK(http_server_saw(&r.server, "Content-Type: application/json\r\n"));
	CHECK(http_server_saw(&r.server, "Authorization: Bearer t0ken\r\n"));
	CHECK(http_server_saw(&r.server, "User-Agent: Epimetheus/"));
	fixture_close(&f);
	receiver_stop(&r);
}

TEST(rules_per_alertmanager)
{
	struct fixture f;
	struct receiver a, b;

	receiver_start(&a, NULL);
	receiver_start(&b, NULL);
	fixture_open(&f, 0);
	apply(&f,
		arena_printf(&f.arena,
			"alert_relabel_configs: [{source_labels: [alertname], regex: never, "
			"action: "
			"drop}, {target_label: by, replacement: all}]\n"
			"alertmanagers:\n"
			"- {static_configs: [{targets: ['127.0.0.1:%u']}], alert_relabel_configs:"
			" [{source_labels: [alertname], regex: only_b, action: drop}]}\n"
			"- {static_configs: [{targets: ['127.0.0.1:%u']}], alert_relabel_configs:"
			" [{source_labels: [by], target_label: by, replacement: '$1-b'}]}\n",
			a.server.port, b.server.port),
		NULL);
	send(&f, "never");
	send(&f, "only_b");
	CHECK(wait_requests(&b, 1));
	send(&f, "both");
	CHECK(wait_requests(&a, 1) && wait_requests(&b, 2));
	check_received(&a,
		"[{\"annotations\":{},\"endsAt\":\"1970-01-01T00:00:02.000Z\",\"startsAt\":"
		"\"1970-01-01T00:00:01.000Z\",\"labels\":{\"alertname\":\"both\",\"by\":\"all\"}}]"
		"\n");
	CHECK_INT(received(&b, "\"by\":\"all-b\""), 2);
	CHECK_INT(received(&b, "never"), 0);
	fixture_close(&f);
	receiver_stop(&a);
	receiver_stop(&b);
}

/* ---- who gets it ---- */

TEST(relabelled_addresses)
{
	const char *text = "alertmanagers:\n"
					   "- path_prefix: x\n"
					   "  static_configs: [{targets: [a, b, c], labels: {zone: z}}, {targets: [d]},"
					   " {targets: [a]}]\n"
					   "  relabel_configs:\n"
					   "  - {source_labels: [__address__], regex: b, action: drop}\n"
					   "  - {source_labels: [__address__], regex: c, target_label: __scheme__,"
					   " replacement: https}\n"
					   "  - {source_labels: [zone], regex: z, target_label: __alerts_path__,"
					   " replacement: /z}\n"
					   "  - {source_labels: [__address__], regex: d, target_label: __address__,"
					   " replacement: d/e}\n"
					   "- static_configs: [{targets: [a]}]\n";
	static const char *const want[] = { "http://a/z", "https://c/z", "http://a/x/api/v2/alerts",
		"-http://b/x/api/v2/alerts", "http://a/api/v2/alerts" };
	struct alertmanager_info *v;
	struct fixture f;
	struct err err;
	size_t n;

	fixture_open(&f, 0);
	apply(&f, text, NULL);
	REQUIRE_OK(notifier_alertmanagers(f.n, &f.arena, &v, &n, &err), &err);
	CHECK_INT(n, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < n && i < sizeof(want) / sizeof(want[0]); i++) {
		CHECK_STR(v[i].url, want[i] + (want[i][0] == '-'));
		CHECK(v[i].dropped == (want[i][0] == '-'));
	}
	CHECK(metric_shown("\nepimetheus_notifications_alertmanagers_discovered ") == 4);
	fixture_close(&f);
}

TEST(discovered_later)
{
	char dir[] = "/tmp/epimetheus-notifier-XXXXXX", path[64];
	struct fixture f;
	struct receiver a, b;
	struct err err;

	REQUIRE(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/am.yml", dir);
	receiver_start(&a, NULL);
	receiver_start(&b, NULL);
	fixture_open(&f, 0);
	REQUIRE_OK(
		fs_write_file(&fs_posix, path,
			str_of(arena_printf(&f.arena, "[{targets: ['127.0.0.1:%u']}]", a.server.port)), &err),
		&err);
	apply(&f, arena_printf(&f.arena, "alertmanagers: [{file_sd_configs: [{files: ['%s']}]}]", path),
		NULL);
	send(&f, "first");
	CHECK(wait_requests(&a, 1));
	REQUIRE_OK(
		fs_write_file(&fs_posix, path,
			str_of(arena_printf(&f.arena, "[{targets: ['127.0.0.1:%u']}]", b.server.port)), &err),
		&err);
	for (int64_t until_ns = 0; !received(&b, "alertname") && wait_more(&until_ns);)
		send(&f, "second");
	CHECK(received(&b, "second") > 0);
	fixture_close(&f);
	receiver_stop(&a);
	receiver_stop(&b);
	unlink(path);
	rmdir(dir);
}

TEST(configuration)
{
	struct fixture f;
	struct receiver a, b;

	receiver_start(&a, NULL);
	receiver_start(&b, NULL);
	fixture_open(&f, 0);
	send(&f, "before"); /* nobody is configured: nothing happens */
	apply(&f, one(&f, &a, ""), NULL);
	send(&f, "1");
	CHECK(WAIT_FOR(metric_of("sent_total", &a) == 1));
	apply(&f, one(&f, &b, ""), NULL);
	apply(&f,
		"alertmanagers: [{kubernetes_sd_configs: [{role: pod, kubeconfig_file: "
		"/nonesuch}]}]",
		"alerting: open /nonesuch: No such file or directory");
	send(&f, "2");
	CHECK(WAIT_FOR(metric_of("sent_total", &b) == 1));
	apply(&f, "{}", NULL);
	send(&f, "3");
	apply(&f, one(&f, &a, ""), NULL);
	send(&f, "4");
	CHECK(wait_requests(&a, 2));
	CHECK_INT(received(&a, "alertname"), 2);
	CHECK_INT(received(&b, "alertname"), 1);
	fixture_close(&f);
	receiver_stop(&a);
	receiver_stop(&b);
}

/* Waiting alerts and those under way move to the new configuration. */
TEST(configuration_while_sending)
{
	struct fixture f;
	struct receiver r;

	receiver_start(&r, NULL);
	fixture_open(&f, 0);
	answer(&r, NULL);
	apply(&f, one(&f, &r, ""), NULL);
	send(&f, "under-way");
	CHECK(wait_requests(&r, 1));
	send(&f, "waits");
	apply(&f, one(&f, &r, ", timeout: 3m"), NULL);
	answer(&r, OK);
	CHECK(wait_requests(&r, 2));
	CHECK_INT(received(&r, "under-way"), 2);
	CHECK_INT(received(&r, "waits"), 1);
	fixture_close(&f);
	receiver_stop(&r);
}

/* ---- trouble ---- */

/* As shown now, the first one; nothing of it when there is none. */
static struct alertmanager_info alertmanager(struct fixture *f)
{
	struct alertmanager_info *v = NULL;
	struct err err;
	size_t n = 0;

	CHECK_OK(notifier_alertmanagers(f->n, &f->arena, &v, &n, &err), &err);
	return n ? v[0] : (struct alertmanager_info){ 0 };
}

TEST(failures_are_told)
{
	struct alertmanager_info *v;
	double dropped, errors, sent;
	struct fixture f;
	struct receiver r;
	struct err err;
	size_t n;

	receiver_start(&r, NULL);
	fixture_open(&f, 0);
	answer(&r, BROKEN);
	apply(&f, one(&f, &r, ""), NULL);
	send(&f, "a");
	CHECK(WAIT_FOR(alertmanager(&f).failed == 1 && metric_of("dropped_total", &r) == 1));
	answer(&r, OK);
	REQUIRE_OK(notifier_alertmanagers(f.n, &f.arena, &v, &n, &err), &err);
	REQUIRE(n == 1);
	CHECK_STR(v[0].last_error, "bad response status 500 Internal Server Error");
	CHECK_INT(v[0].failed, 1);
	errors = metric_of("errors_total", &r);
	dropped = metric_of("dropped_total", &r);
	send(&f, "b");
	CHECK(WAIT_FOR(alertmanager(&f).sent == 1 && metric_of("sent_total", &r) == 1));
	REQUIRE_OK(notifier_alertmanagers(f.n, &f.arena, &v, &n, &err), &err);
	CHECK_STR(v[0].last_error, "");
	CHECK_INT(v[0].sent, 1);
	sent = metric_of("sent_total", &r);
	CHECK(errors == 1 && dropped == 1 && sent == 1);
	CHECK_INT(received(&r, "\"a\""), 1); /* it is not tried again */
	fixture_close(&f);
	receiver_stop(&r);
}

static const char *both(
	struct fixture *f, const struct receiver *a, const struct receiver *b, const char *timeout)
{
	return arena_printf(&f->arena,
		"alertmanagers: [{timeout: %s, static_configs:"
		" [{targets: ['127.0.0.1:%u', '127.0.0.1:%u']}]}]",
		timeout, a->server.port, b->server.port);
}

TEST(one_hangs_another_goes_on)
{
	struct fixture f;
	struct receiver hangs, works;

	receiver_start(&hangs, NULL);
	receiver_start(&works, NULL);
	answer(&hangs, NULL);
	fixture_open(&f, 0);
	apply(&f, both(&f, &hangs, &works, "2m"), NULL);
	for (unsigned i = 0; i < 10; i++) {
		send(&f, "x");
		CHECK(WAIT_FOR(metric_of("sent_total", &works) == i + 1));
	}
	CHECK(metric_of("errors_total", &hangs) < 1); /* all of it while the first one hangs */
	apply(&f, both(&f, &hangs, &works, "300ms"), NULL);
	CHECK(WAIT_FOR(metric_of("errors_total", &hangs) >= 1));
	CHECK(metric_of("sent_total", &works) == 10);
	fixture_close(&f);
	receiver_stop(&hangs);
	receiver_stop(&works);
}

TEST(queue_is_bounded)
{
	struct notification v[700];
	struct fixture f;
	struct receiver r;

	receiver_start(&r, NULL);
	fixture_open(&f, 300);
	answer(&r, NULL);
	apply(&f, one(&f, &r, ""), NULL);
	send(&f, "under-way");
	CHECK(wait_requests(&r, 1));
	for (size_t i = 0; i < 700; i++)
		v[i] = (struct notification){ .labels = LABELS(
										  &f, "alertname", arena_printf(&f.arena, "n%zu", i)) };
	notifier_send(f.n, v, 700);
	CHECK(metric_of("queue_length", &r) == 300);
	CHECK(metric_of("dropped_total", &r) == 400);
	CHECK(metric_shown("\nepimetheus_notifications_queue_capacity ") == 300);
	answer(&r, OK);
	CHECK(wait_requests(&r, 3));
	CHECK_INT(received(&r, "\"n399\""), 0);
	CHECK_INT(received(&r, "\"n400\""), 1);
	CHECK_INT(received(&r, "\"n699\""), 1);
	CHECK_INT(received(&r, "alertname"), 301);
	CHECK_INT(r.requests, 3); /* 1, 256 and 44 */
	fixture_close(&f);
	receiver_stop(&r);
}

/* False: on a busy machine closing gave up, after DRAIN_NS. */
static bool closes_in_time(int sent, size_t *got)
{
	struct receiver r;
	struct fixture f;
	int64_t began;
	bool in_time;

	receiver_start(&r, NULL);
	fixture_open(&f, 0);
	apply(&f, one(&f, &r, ""), NULL);
	for (int i = 0; i < sent; i++)
		send(&f, "x");
	began = clock_monotonic_ns();
	fixture_close(&f);
	in_time = clock_monotonic_ns() - began < 5 * NS_PER_S;
	*got = received(&r, "alertname");
	receiver_stop(&r);
	return in_time;
}

TEST(close_sends_what_waits)
{
	struct fixture f;
	struct receiver r;
	int64_t began;
	size_t got;

	CHECK(WAIT_FOR(closes_in_time(1000, &got)));
	CHECK_INT(got, 1000);

	receiver_start(&r, NULL);
	answer(&r, NULL);
	fixture_open(&f, 0);
	apply(&f, one(&f, &r, ", timeout: 1h"), NULL);
	send(&f, "x");
	began = clock_monotonic_ns();
	fixture_close(&f); /* long before its timeout */
	CHECK(clock_monotonic_ns() - began < WAIT_NS);
	receiver_stop(&r);
}

TEST(tls)
{
	struct identity ca, leaf;
	struct fixture f;
	struct receiver r;
	SSL_CTX *tls;
	struct err err;
	struct str pem;
	char dir[] = "/tmp/epimetheus-notifier-XXXXXX", path[64];

	fixture_open(&f, 0);
	REQUIRE(mkdtemp(dir) && identity_make(&ca, "test CA", NULL, NULL) &&
		identity_make(&leaf, "server", &ca, "IP:127.0.0.1") &&
		(tls = identity_server(&leaf, NULL)));
	pem = identity_pem(&f.arena, &ca, false);
	snprintf(path, sizeof(path), "%s/ca.pem", dir);
	REQUIRE_OK(fs_write_file(&fs_posix, path, pem, &err), &err);
	receiver_start(&r, tls);
	apply(&f, one(&f, &r, ", scheme: https"), NULL);
	send(&f, "a");
	CHECK(WAIT_FOR(alertmanager(&f).failed));
	CHECK_INT(alertmanager(&f).failed, 1);
	CHECK(str_find(alertmanager(&f).last_error, STR("certificate")) >= 0);
	apply(&f,
		one(&f, &r,
			arena_printf(&f.arena,
				", scheme: https, basic_auth: {username: u, "
				"password: p}, tls_config: {ca_file: '%s'}",
				path)),
		NULL);
	send(&f, "b");
	CHECK(wait_requests(&r, 1));
	CHECK(http_server_saw(&r.server, "Authorization: Basic dTpw\r\n"));
	CHECK_INT(received(&r, "\"b\""), 1);
	fixture_close(&f);
	receiver_stop(&r);
	SSL_CTX_free(tls);
	identity_release(&ca);
	identity_release(&leaf);
	unlink(path);
	rmdir(dir);
}
