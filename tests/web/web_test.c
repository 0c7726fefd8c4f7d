/* The server as a whole but for its data: routes, prefixes, the page, life cycle, own profile. */
#include "web/web.h"

#include <signal.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "proto/pprof.h"
#include "tests/check.h"
#include "tests/wait.h"
#include "tests/web/asking.h"
#include "web/routes.h"
#include "web/ui_assets.h"

static struct {
	atomic_uint reloads, quits;
	atomic_bool fails;
	atomic_bool hold; /* reloads wait until it is false */
} seen;

static enum err_code reload(void *ctx, struct err *err)
{
	(void)ctx;
	seen.reloads++;
	(void)!WAIT_FOR(!atomic_load(&seen.hold));
	return seen.fails ? err_set(err, ERR_INVALID, "x.yml:1:1: bad") : ERR_OK;
}

static void quit(void *ctx)
{
	(void)ctx;
	seen.quits++;
}

static struct web_options options(void)
{
	return (struct web_options){ .listen_address = "127.0.0.1:0", .reload = reload, .quit = quit };
}

static struct web *open_web(const struct web_options *o)
{
	seen.reloads = seen.quits = 0;
	seen.fails = false;
	return asking_open(o);
}

#define NOT_READY(why) \
	"{\"status\":\"error\",\"errorType\":\"unavailable\",\"error\":\"not ready: " why "\"}"

TEST(paths_methods_and_states)
{
	static const struct asking_row closed[] = {
		{ "GET /-/healthy", 200, "Epimetheus is Healthy.\n" },
		{ "HEAD /-/healthy", 200, "" },
		{ "POST /-/healthy", 405, "Method Not Allowed\n" },
		{ "GET /-/ready", 503, "not ready: the server is starting\n" },
		{ "GET /api/v1/query?query=1", 503, NOT_READY("the server is starting") },
		{ "GET /api/v1/labels", 503, NOT_READY("the server is starting") },
		{ "GET /-/reload", 405, "Method Not Allowed\n" },
		{ "POST /-/reload", 403,
			"Lifecycle API is not enabled: start with --web.enable-lifecycle.\n" },
		{ "POST /-/quit", 403, NULL },
		{ "POST /api/v1/ingest", 404,
			"{\"status\":\"error\",\"errorType\":\"not_found\",\"error\":\"ingest is "
			"disabled: start with --web.enable-ingest\"}" },
		{ "GET /api/v1/nothing", 404, "404 page not found\n" },
		{ "POST /v1/profiles", 404,
			"no profiles accepted at \"/v1/profiles\"; send to /api/v1/ingest, "
			"/v1development/profiles, /ingest, /push.v1.PusherService/Push, /api/0/profiles\n" },
		{ "GET /nothing/at/all", 404, "404 page not found\n" },
		{ "GET /explore/", 404, NULL },
		{ "GET /../etc/passwd", 404, NULL },
		{ "OPTIONS /api/v1/query", 204, "" },
		{ "OPTIONS /explore", 405, NULL },
		{ "DELETE /api/v1/query", 405, NULL },
		{ "BREW /api/v1/query", 405, NULL },
		{ "GET /debug/pprof/heap", 404, "Unknown profile\n" },
	};
	static const struct asking_row ready[] = {
		{ "GET /-/ready", 200, "Epimetheus is Ready.\n" },
		{ "HEAD /-/ready", 200, "" },
	};
	struct web_options o = options();
	struct web *w = open_web(&o);

	CHECK_STR(str_of(web_scheme(w)), "http");
	ASK_ALL(w, closed);
	CHECK_INT(seen.reloads + seen.quits, 0);
	web_set_ready(w, true);
	ASK_ALL(w, ready);
	web_close(w);
}

static void waits(void *ctx, struct buf *out)
{
	(void)ctx;
	buf_add_cstr(out, "waiting for the lease of shard a");
}

static const char *waiting_answer(const struct route *r)
{
	if (r->flags & ROUTE_CONNECT)
		return "{\"code\":\"unavailable\",\"message\":\"not ready: waiting for the lease of shard "
			   "a\"}";
	return r->flags & ROUTE_API ? NOT_READY("waiting for the lease of shard a") :
								  "not ready: waiting for the lease of shard a\n";
}

/* All routes that need the storage, in their forms. */
TEST(what_a_server_waits_for_is_said_on_each_route)
{
	struct web_options o = options();
	struct response r = { 0 };
	char request[256];
	struct web *w;
	size_t n = 0;

	o.waiting = waits;
	o.cors_origin = "http://a";
	o.enable_lifecycle = o.enable_admin_api = o.enable_ingest = true;
	w = open_web(&o);
	for (size_t i = 0; i < web_routes_n; i++) {
		const struct route *route = &web_routes[i];

		if (!(route->flags & ROUTE_READY))
			continue;
		snprintf(request, sizeof(request), "%s %s",
			route->methods & HTTP_GET      ? "GET" :
				route->methods & HTTP_POST ? "POST" :
											 "DELETE",
			route->path);
		CHECK_INT(asking_get(w, request, "Origin: http://a\r\nSec-Fetch-Site: none\r\n", &r), 503);
		CHECK_STR(buf_str(&r.body), waiting_answer(route));
		CHECK_STR(response_header(&r, "Retry-After"), "5");
		CHECK_STR(response_header(&r, "Access-Control-Allow-Origin"),
			route->flags & ROUTE_API ? "http://a" : "");
		n++;
	}
	CHECK(n > 50);
	CHECK_INT(asking_get(w, "GET /-/ready", "", &r), 503);
	CHECK_STR(buf_str(&r.body), "not ready: waiting for the lease of shard a\n");
	CHECK_STR(response_header(&r, "Retry-After"), "5");
	CHECK_INT(asking_get(w, "GET /-/healthy", "", &r), 200);
	CHECK_INT(asking_get(w, "GET /metrics", "", &r), 200);
	CHECK_INT(asking_get(w, "GET /", "", &r), 200);
	response_release(&r);
	web_close(w);
}

/* A query node: whatever its flags say. */
TEST(who_takes_what_this_server_does_not)
{
	static const struct asking_row rows[] = {
		{ "POST /api/v1/ingest", 404,
			"{\"status\":\"error\",\"errorType\":\"not_found\",\"error\":\"send to a shard\"}" },
		{ "POST /v1/profiles", 404, "no profiles accepted at \"/v1/profiles\": send to a shard\n" },
		{ "POST /api/v1/admin/tsdb/snapshot", 403,
			"{\"status\":\"error\",\"errorType\":\"unavailable\",\"error\":\"ask the shard\"}" },
	};
	struct web_options o = options();
	struct web *w;

	for (int flags = 0; flags < 2; flags++) {
		o.enable_admin_api = o.enable_ingest = flags;
		o.elsewhere = (struct web_elsewhere){ .profiles = "send to a shard",
			.admin = "ask the shard" };
		w = open_web(&o);
		web_set_ready(w, true);
		ASK_ALL(w, rows);
		web_close(w);
	}
}

TEST(reload_and_quit_when_enabled)
{
	/* A reload is refused while the server starts or ends. */
	static const struct asking_row early[] = {
		{ "POST /-/reload", 503, "not ready: the server is starting\n" },
	};
	static const struct asking_row good[] = {
		{ "GET /-/reload", 405, NULL },
		{ "POST /-/reload", 200, "" },
		{ "PUT /-/reload", 200, "" },
	};
	static const struct asking_row bad[] = {
		{ "POST /-/reload", 500, "failed to reload config: x.yml:1:1: bad\n" },
		{ "POST /-/quit", 200, "Requesting termination... Goodbye!\n" },
	};
	struct web_options o = options();
	struct web *w;

	o.enable_lifecycle = true;
	w = open_web(&o);
	ASK_ALL(w, early);
	CHECK_INT(seen.reloads, 0);
	web_set_ready(w, true);
	ASK_ALL(w, good);
	CHECK_INT(seen.reloads, 2);
	seen.fails = true;
	ASK_ALL(w, bad);
	CHECK_INT(seen.reloads, 3);
	CHECK_INT(seen.quits, 1);
	web_close(w);
}

TEST(a_header_that_means_one_thing_comes_once)
{
	static const struct {
		const char *headers;
		int status;
		const char *said; /* NULL: anything */
	} rows[] = {
		{ "Authorization: Basic a\r\nAuthorization: Basic b\r\n", 400,
			"header Authorization is repeated\n" },
		{ "Authorization: Basic a\r\nauthorization: Basic a\r\n", 400,
			"header Authorization is repeated\n" },
		{ "Host: other\r\n", 400, "header Host is repeated\n" },
		{ "Content-Type: text/plain\r\nX: y\r\ncontent-type: text/plain\r\n", 400,
			"header Content-Type is repeated\n" },
		{ "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", 400,
			"header Content-Encoding is repeated\n" },
		{ "Origin: http://a\r\nOrigin: http://b\r\n", 400, "header Origin is repeated\n" },
		{ "Accept: a/b\r\nAccept: c/d\r\nAccept-Encoding: br\r\nAccept-Encoding: gzip\r\n"
		  "Authorization: Basic a\r\n",
			200, NULL },
	};
	static const char *const requests[] = { "GET /-/healthy", "POST /-/healthy" };
	struct web_options o = options();
	struct web *w = open_web(&o);
	struct response r = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int body = 0; body < 2; body++) {
			peer_ask(web_port(w), &r, requests[body], rows[i].headers,
				body ? STR("body") : (struct str){ 0 });
			CHECK_INT(r.status, body && rows[i].status == 200 ? 405 : rows[i].status);
			if (rows[i].said)
				CHECK_STR(buf_str(&r.body), rows[i].said);
		}
	CHECK_INT(asking_get(w, "GET /metrics", "", &r), 200);
	CHECK(str_find(buf_str(&r.body), STR("\nepimetheus_http_requests_total{code=\"400\"} 12\n")) >=
		0);
	response_release(&r);
	web_close(w);
}

/* Whoever is in front of this server may read the end of the body elsewhere. */
TEST(a_body_of_two_lengths_ends_the_connection)
{
	static const char *const heads[] = {
		"POST /-/healthy HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: "
		"50\r\n\r\nbody",
		"POST /-/healthy HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nbody",
		"POST /-/healthy HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
		"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	};
	struct web_options o = options();
	struct web *w = open_web(&o);
	struct response r = { 0 };
	struct peer p;

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		peer_open(&p, web_port(w));
		peer_send(&p, str_of(heads[i]));
		peer_receive(&p, &r, false);
		CHECK_INT(r.status, 400);
		CHECK(peer_ended(&p));
		peer_close(&p);
	}
	response_release(&r);
	web_close(w);
}

TEST(metrics_in_the_text_format)
{
	struct web_options o = options();
	struct web *w = open_web(&o);
	struct response r = { 0 };

	CHECK_INT(asking_get(w, "GET /metrics", "", &r), 200);
	CHECK_STR(response_header(&r, "Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
	CHECK(str_find(buf_str(&r.body), STR("\nepimetheus_http_connections 1\n")) >= 0);
	CHECK_INT(asking_get(w, "GET /metrics", "Accept-Encoding: gzip\r\n", &r), 200);
	CHECK_STR(response_header(&r, "Content-Encoding"), "gzip");
	CHECK(str_has_prefix(buf_str(&r.body), STR("\x1f\x8b")));
	CHECK_INT(asking_get(w, "GET /metrics", "Accept-Encoding: br, gzip;q=0\r\n", &r), 200);
	CHECK_STR(response_header(&r, "Content-Encoding"), "");
	response_release(&r);
	web_close(w);
}

/* ---- the page ---- */

TEST(the_page_and_its_files)
{
	static const char *const pages[] = { "GET /", "GET /explore", "GET /services", "GET /compare",
		"GET /alerts", "GET /rules", "GET /targets", "GET /service-discovery", "GET /status",
		"GET /tsdb-status", "GET /cluster", "GET /symbols", "GET /config", "GET /flags" };
	struct web_options o = options();
	struct web *w = open_web(&o);
	struct response r = { 0 };
	char request[256], tag[128];

	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		CHECK_INT(asking_get(w, pages[i], "", &r), 200);
		CHECK_STR(response_header(&r, "Content-Type"), "text/html; charset=utf-8");
		CHECK(str_find(buf_str(&r.body), STR("<base href=\"/\"")) > 0);
	}
	CHECK_STR(response_header(&r, "Cache-Control"), "no-cache");
	CHECK_STR(response_header(&r, "X-Frame-Options"), "deny");
	CHECK_STR(response_header(&r, "X-Content-Type-Options"), "nosniff");
	CHECK_STR(response_header(&r, "Referrer-Policy"), "same-origin");
	CHECK_STR(response_header(&r, "Content-Security-Policy"),
		"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
		"img-src "
		"'self' data:; base-uri 'self'; form-action 'self'; frame-ancestors 'none'");
	for (size_t i = 0; i < ui_assets_n; i++) {
		const struct ui_asset *a = &ui_assets[i];

		snprintf(request, sizeof(request), "GET /%s", a->path);
		if (a->is_template) {
			CHECK_INT(asking_get(w, request, "", &r), 404);
			continue;
		}
		CHECK_INT(asking_get(w, request, "Accept-Encoding: gzip, br\r\n", &r), 200);
		CHECK_STR(response_header(&r, "Content-Type"), a->content_type);
		CHECK_STR(response_header(&r, "Content-Encoding"), "gzip");
		CHECK_STR(response_header(&r, "ETag"), a->etag);
		CHECK_STR(response_header(&r, "Cache-Control"),
			a->immutable ? "public, max-age=31536000, immutable" : "no-cache");
		CHECK(r.body.len == a->gz_len && !memcmp(r.body.ptr, a->gz, a->gz_len));
		CHECK_INT(asking_get(w, request, "", &r), 200);
		CHECK_STR(response_header(&r, "Content-Encoding"), "");
		CHECK(r.body.len > a->gz_len);
		snprintf(tag, sizeof(tag), "If-None-Match: \"x\", W/%s\r\n", a->etag);
		request[0] = 'G';
		CHECK_INT(asking_get(w, request, tag, &r), 304);
		CHECK_INT(r.body.len, 0);
	}
	response_release(&r);
	web_close(w);
}

TEST(an_unchanged_page_is_not_sent_again)
{
	struct web_options o = options();
	struct web *w = open_web(&o);
	struct response r = { 0 };
	char headers[128];

	CHECK_INT(asking_get(w, "GET /", "", &r), 200);
	snprintf(headers, sizeof(headers), "If-None-Match: " STR_FMT "\r\n",
		STR_ARG(response_header(&r, "ETag")));
	CHECK_INT(asking_get(w, "GET /explore", headers, &r), 304);
	CHECK_INT(asking_get(w, "GET /explore", "If-None-Match: \"0\"\r\n", &r), 200);
	response_release(&r);
	web_close(w);
}

TEST(prefixes)
{
	static const struct {
		const char *external_url, *route_prefix, *prefix, *base, *location;
	} rows[] = {
		{ NULL, NULL, "", "/", NULL },
		{ "", "/", "", "/", NULL },
		{ NULL, "epi", "/epi", "/epi/", "/epi/" },
		{ NULL, "//a/b//", "/a/b", "/a/b/", "/a/b/" },
		{ "https://x.example/epi/", NULL, "/epi", "/epi/", "/epi/" },
		{ "https://x.example:1/epi", "/", "", "/epi/", NULL },
		{ "http://x", "/in", "/in", "/", "/" },
	};
	struct response r = { 0 };
	char text[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct web_options o = options();
		struct web *w;

		o.external_url = rows[i].external_url;
		o.route_prefix = rows[i].route_prefix;
		w = open_web(&o);
		CHECK_STR(str_of(web_prefix(w)), rows[i].prefix);
		snprintf(text, sizeof(text), "GET %s/explore", rows[i].prefix);
		CHECK_INT(asking_get(w, text, "", &r), 200);
		snprintf(text, sizeof(text), "<base href=\"%s\"", rows[i].base);
		CHECK(str_find(buf_str(&r.body), str_of(text)) > 0);
		if (rows[i].location) {
			CHECK_INT(asking_get(w, "GET /", "", &r), 302);
			CHECK_STR(response_header(&r, "Location"), rows[i].location);
			CHECK_INT(asking_get(w, "GET /explore", "", &r), 404);
			snprintf(text, sizeof(text), "GET %sx/explore", rows[i].prefix);
			CHECK_INT(asking_get(w, text, "", &r), 404);
		}
		web_close(w);
	}
	response_release(&r);
}

TEST(options_that_make_no_sense)
{
	/* clang-format off */
	static const struct {
		const char *external_url, *route_prefix, *cors, *msg;
	} rows[] = {
		{ "ftp://x/", NULL, NULL,
			"external URL \"ftp://x/\": not http://HOST or https://HOST" },
		{ "http:///x", NULL, NULL,
			"external URL \"http:///x\": not http://HOST or https://HOST" },
		{ "http://x/\"><script>", NULL, NULL,
			"the path of the external URL \"\\\"><script>\": only letters, digits "
			"and / - . _ ~ are allowed" },
		{ NULL, "/a b", NULL,
			"route prefix \"a b\": only letters, digits and / - . _ ~ are allowed" },
		{ NULL, NULL, "(", "CORS origin: error parsing regexp: missing ): (" },
	};
	/* clang-format on */
	struct web *w = NULL;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct web_options o = options();

		o.external_url = rows[i].external_url;
		o.route_prefix = rows[i].route_prefix;
		o.cors_origin = rows[i].cors;
		CHECK_ERR(web_open(&o, &w, &err), &err, ERR_INVALID, rows[i].msg);
	}
}

TEST(cross_origin_headers_come_with_an_allowed_origin_only)
{
	struct web_options o = options();
	struct response r = { 0 };
	struct web *w;

	o.cors_origin = "https?://(a|b)\\.example";
	w = open_web(&o);
	asking_get(w, "OPTIONS /api/v1/query", "Origin: http://a.example\r\n", &r);
	CHECK_INT(r.status, 204);
	CHECK_STR(response_header(&r, "Access-Control-Allow-Origin"), "http://a.example");
	CHECK_STR(response_header(&r, "Vary"), "Origin");
	asking_get(w, "OPTIONS /api/v1/query", "Origin: http://a.example.evil\r\n", &r);
	CHECK_STR(response_header(&r, "Access-Control-Allow-Origin"), "");
	asking_get(w, "OPTIONS /api/v1/query", "", &r);
	CHECK_STR(response_header(&r, "Access-Control-Allow-Origin"), "");
	web_set_ready(w, true);
	asking_get(w, "GET /api/v1/query", "Origin: http://b.example\r\n", &r);
	CHECK_STR(response_header(&r, "Access-Control-Allow-Origin"), "http://b.example");
	response_release(&r);
	web_close(w);
}

TEST(a_form_or_an_address_with_too_much_in_it)
{
	struct web_options o = options();
	struct web *w = open_web(&o);
	struct response r = { 0 };
	struct buf form = { 0 };

	web_set_ready(w, true);
	for (int i = 0; i < 1025; i++)
		buf_add_cstr(&form, "a=b&");
	peer_ask(web_port(w), &r, "POST /api/v1/query",
		"Content-Type: application/x-www-form-urlencoded\r\n", buf_str(&form));
	CHECK_INT(r.status, 413);
	CHECK_STR(buf_str(&r.body), "more than 1024 parameters\n");
	while (form.len <= 1u << 20)
		buf_add_cstr(&form, "0123456789012345678901234567890123456789");
	peer_ask(web_port(w), &r, "POST /api/v1/query",
		"Content-Type: application/x-www-form-urlencoded\r\n", buf_str(&form));
	CHECK_INT(r.status, 413);
	CHECK_STR(buf_str(&r.body), "the form is longer than 1048576 bytes\n");
	while (form.len <= 16u << 20)
		buf_add_cstr(&form, "0123456789012345678901234567890123456789");
	peer_ask(web_port(w), &r, "POST /api/v1/query", "", buf_str(&form));
	CHECK_INT(r.status, 413);
	CHECK_STR(buf_str(&r.body), "the body is too large\n");
	peer_ask(web_port(w), &r, "POST /querier.v1.QuerierService/Series", "", buf_str(&form));
	CHECK_INT(r.status, 413);
	CHECK_STR(
		buf_str(&r.body), "{\"code\":\"invalid_argument\",\"message\":\"the body is too large\"}");
	buf_release(&form);
	response_release(&r);
	web_close(w);
}

TEST(slow_requests_leave_workers_to_the_quick_ones)
{
	struct web_options o = options();
	struct peer peers[64];
	struct response r = { 0 };
	struct web *w;
	int held = 0;

	o.enable_lifecycle = true;
	w = open_web(&o);
	web_set_ready(w, true);
	atomic_store(&seen.hold, true);
	for (int i = 0; i < 64; i++) {
		peer_open(&peers[i], web_port(w));
		peer_send(&peers[i], STR("POST /-/reload HTTP/1.1\r\nHost: x\r\n\r\n"));
	}
	for (int i = 0; i < 50; i++)
		CHECK_INT(asking_get(w, "GET /-/healthy", "", &r), 200);
	atomic_store(&seen.hold, false);
	for (int i = 0; i < 64; i++) {
		peer_receive(&peers[i], &r, false);
		held += r.status == 200;
		if (r.status == 503)
			CHECK_STR(buf_str(&r.body),
				"{\"status\":\"error\",\"errorType\":\"unavailable\",\"error\":"
				"\"too "
				"many requests at once: try again later\"}");
		peer_close(&peers[i]);
	}
	CHECK(held >= 48 && held < 64);
	response_release(&r);
	web_close(w);
}

/* ---- the profile of the process ---- */

static void capture(void *ctx)
{
	struct peer *p = ctx;

	peer_send(p, STR("GET /debug/pprof/profile?seconds=600 HTTP/1.1\r\nHost: x\r\n\r\n"));
}

TEST(a_profile_of_the_server_itself)
{
	/* clang-format off */
	static const struct asking_row wrong[] = {
		{ "GET /debug/pprof/profile?seconds=0", 400,
			"seconds is a number from 1 to 600\n" },
		{ "GET /debug/pprof/profile?seconds=601", 400, NULL },
		{ "GET /debug/pprof/profile?seconds=x", 400, NULL },
	};
	/* clang-format on */
	struct web_options o = options();
	struct web *w;
	struct response r = { 0 };
	struct pprof *p = NULL;
	struct arena a;
	struct str raw;
	struct err err;

	arena_init(&a, 0);
	w = open_web(&o);
	ASK_ALL(w, wrong);
	CHECK_INT(
		asking_get(w, "GET /debug/pprof/profile?seconds=1", "Accept-Encoding: gzip\r\n", &r), 200);
	CHECK_STR(response_header(&r, "Content-Type"), "application/octet-stream");
	CHECK_STR(response_header(&r, "Content-Encoding"), "");
	CHECK_STR(response_header(&r, "Content-Disposition"), "attachment; filename=\"profile\"");
	REQUIRE_OK(pprof_inflate(&a, buf_str(&r.body), &pprof_limits_default, &raw, &err), &err);
	REQUIRE_OK(pprof_decode(&a, raw, &pprof_limits_default, &p, &err), &err);
	CHECK_INT(p->types_n, 2);
	CHECK(p->duration_nanos >= NS_PER_S);
	arena_release(&a);
	response_release(&r);
	web_close(w);
}

/* A capture begins with a handler of its signal. */
static bool is_capturing(void)
{
	struct sigaction now;

	return sigaction(SIGPROF, NULL, &now) == 0 && now.sa_handler != SIG_IGN;
}

TEST(one_capture_at_a_time_and_none_outlives_the_server)
{
	struct web_options o = options();
	struct web *w = open_web(&o);
	struct response r = { 0 };
	struct peer p;
	int64_t began;

	peer_open(&p, web_port(w));
	signal(SIGPROF, SIG_IGN);
	capture(&p);
	REQUIRE(WAIT_FOR(is_capturing()));
	CHECK_INT(asking_get(w, "GET /debug/pprof/profile?seconds=1", "", &r), 500);
	CHECK_STR(buf_str(&r.body), "Could not enable CPU profiling: cpu profiling already in use\n");
	CHECK_STR(response_header(&r, "X-Go-Pprof"), "1");
	CHECK_STR(response_header(&r, "Content-Type"), "text/plain; charset=utf-8");
	began = clock_monotonic_ns();
	web_close(w);
	CHECK(clock_monotonic_ns() - began < WAIT_NS);
	peer_receive(&p, &r, false);
	CHECK_INT(r.status, 503);
	CHECK_STR(buf_str(&r.body), "cpu profile: canceled\n");
	peer_close(&p);
	response_release(&r);
}
