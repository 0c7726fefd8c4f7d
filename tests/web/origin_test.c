/* Requests of other sites' pages, names that are not ours: the rules, and the server by them. */
#include "web/http/origin.h"

#include "tests/check.h"
#include "tests/web/http/http_peer.h"
#include "web/routes.h"
#include "web/web.h"

TEST(which_requests_come_from_a_foreign_page)
{
	static const struct {
		const char *origin, *site, *host, *own;
		bool foreign;
	} rows[] = {
		{ "", "", "a.example:7272", "", false }, /* no browser */
		{ "http://a.example:7272", "", "a.example:7272", "", false },
		{ "HTTP://A.example:7272", "", "a.Example:7272", "", false },
		{ "http://a.example", "", "a.example:80", "", false },
		{ "http://a.example:80", "", "a.example", "", false },
		{ "https://a.example", "", "a.example", "", false }, /* TLS ends before us */
		{ "http://[::1]:7272", "", "[::1]:7272", "", false },
		{ "http://a.example", "", "a.example:7272", "", true },
		{ "http://a.example:7272", "", "a.example:7273", "", true },
		{ "http://evil.example", "", "a.example:7272", "", true },
		{ "http://a.example.evil:7272", "", "a.example:7272", "", true },
		{ "http://evil.example/a.example:7272", "", "a.example:7272", "", true },
		{ "null", "", "a.example:7272", "", true },
		{ "null", "", "null", "", true },
		{ "file://", "", "", "", true },
		{ "http://", "", "", "", true },
		/* A proxy that passes on another Host: its URL is the external one. */
		{ "https://epi.example", "", "10.0.0.1:7272", "https://epi.example", false },
		{ "https://epi.example:443", "", "10.0.0.1:7272", "https://epi.example", false },
		{ "https://epi.example", "", "10.0.0.1:7272", "https://epi.example:443", false },
		{ "http://epi.example", "", "10.0.0.1:7272", "https://epi.example", true },
		{ "https://epi.example:444", "", "10.0.0.1:7272", "https://epi.example", true },
		/* What the browser itself says. */
		{ "", "same-origin", "a.example", "", false },
		{ "", "none", "a.example", "", false },
		{ "https://x.example", "same-origin", "10.0.0.1", "", false },
		{ "", "cross-site", "a.example", "", true },
		{ "", "same-site", "a.example", "", true },
		{ "http://a.example", "cross-site", "a.example", "", true },
		{ "https://epi.example", "cross-site", "a.example", "https://epi.example", false },
		{ "null", "cross-site", "a.example", "", true },
		{ "", "whatever", "a.example", "", true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct http_in in = { .origin = str_of(rows[i].origin),
			.fetch_site = str_of(rows[i].site),
			.host = str_of(rows[i].host) };

		if (origin_is_foreign(&in, str_of(rows[i].own)) != rows[i].foreign)
			CHECK_FAIL("origin %s, site %s, host %s, own %s: want %d", rows[i].origin, rows[i].site,
				rows[i].host, rows[i].own, rows[i].foreign);
	}
}

TEST(which_names_are_ours)
{
	static const struct flag_list none = { .n = 0 };
	static const struct flag_list names = { { "epi.example", "other:7272", "[fd00::1]" }, 3 };
	static const struct {
		const char *host;
		bool allowed;
	} rows[] = {
		{ "", true },
		{ "epi.example", true },
		{ "EPI.example:1", true },
		{ "other:7272", true },
		{ "other", false },
		{ "other:7273", false },
		{ "outside.example:99", true }, /* of the external URL */
		{ "localhost:7272", true },
		{ "127.0.0.1:7272", true },
		{ "10.1.2.3", true },
		{ "[::1]:7272", true },
		{ "[::1]", true },
		{ "evil.example", false },
		{ "evil.epi.example", false },
		{ "epi.example.evil", false },
		{ "127.0.0.1.evil.example", false },
		{ "localhost.evil", false },
		{ ":7272", false },
		{ "epi.example:", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str host = str_of(rows[i].host), own = STR("https://outside.example");

		if (origin_host_allowed(host, &names, own) != rows[i].allowed)
			CHECK_FAIL("host \"%s\": want %d", rows[i].host, rows[i].allowed);
		CHECK(origin_host_allowed(host, &none, own));
	}
}

TEST(names_that_are_none)
{
	static const char *const wrong[] = { "", "http://a", "a b", "a/b", ":1", "a:b", "*.a" };
	struct err err;
	char want[128];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct flag_list names = { { "fine", wrong[i] }, 2 };

		snprintf(want, sizeof(want), "allowed host \"%s\": neither HOST nor HOST:PORT", wrong[i]);
		CHECK_ERR(origin_check_names(&names, &err), &err, ERR_INVALID, want);
	}
}

/* Every row that is off unless a flag allows it changes something, and says so. */
TEST(the_table_says_what_changes_something)
{
	const unsigned guarded = ROUTE_ADMIN | ROUTE_INGEST | ROUTE_LIFECYCLE;
	size_t n = 0;

	for (size_t i = 0; i < web_routes_n; i++) {
		const struct route *r = &web_routes[i];

		if ((r->flags & guarded) && !(r->flags & ROUTE_CHANGES))
			CHECK_FAIL("%s is guarded, and not ROUTE_CHANGES", r->path);
		if ((r->flags & ROUTE_CHANGES) && (r->methods & (HTTP_GET | HTTP_HEAD)))
			CHECK_FAIL("%s changes something on GET", r->path);
		n += (r->flags & ROUTE_CHANGES) != 0;
	}
	CHECK(n >= 6);
}

static void quit(void *ctx)
{
	(*(int *)ctx)++;
}

static struct web *open_web(struct web_options *o)
{
	struct web *w = NULL;
	struct err err;

	o->listen_address = "127.0.0.1:0";
	if (web_open(o, &w, &err)) {
		CHECK_FAIL("web_open: %s", err.msg);
		exit(1);
	}
	web_set_ready(w, true);
	return w;
}

static int ask(struct web *w, const char *request, const char *headers, struct response *r)
{
	peer_ask(web_port(w), r, request, headers, (struct str){ 0 });
	return r->status;
}

TEST(a_foreign_page_cannot_change_anything)
{
	static const char *const api[] = { "POST /api/v1/ingest?name=x", "POST /api/v1/targets/profile",
		"POST /api/v1/admin/tsdb/snapshot", "PUT /api/v1/admin/tsdb/delete_series" };
	static const char evil[] = "Origin: https://evil.example\r\n";
	int quits = 0;
	struct web_options o = { .enable_lifecycle = true,
		.enable_admin_api = true,
		.enable_ingest = true,
		.external_url = "https://epi.example/p/",
		.route_prefix = "/",
		.cors_origin = ".*", /* who may read may not write */
		.quit = quit,
		.ctx = &quits };
	struct web *w = open_web(&o);
	struct response r = { 0 };
	char own[128];

	for (size_t i = 0; i < sizeof(api) / sizeof(api[0]); i++) {
		CHECK_INT(ask(w, api[i], evil, &r), 403);
		CHECK_STR(buf_str(&r.body),
			"{\"status\":\"error\",\"errorType\":\"forbidden\",\"error\":\"sent by a "
			"page of another site (origin \\\"https://evil.example\\\"): requests that "
			"change something are taken from this server's own pages and from programs; "
			"--web.external-url names the URL of those pages\"}");
	}
	CHECK_INT(ask(w, "POST /-/quit", evil, &r), 403);
	CHECK_INT(ask(w, "POST /-/quit", "Sec-Fetch-Site: cross-site\r\n", &r), 403);
	CHECK_STR(buf_str(&r.body),
		"sent by a page of another site (Sec-Fetch-Site: cross-site): requests that change "
		"something are taken from this server's own pages and from programs; "
		"--web.external-url names the URL of those pages\n");
	CHECK_INT(quits, 0);
	CHECK_INT(ask(w, "GET /-/healthy", evil, &r), 200); /* changes nothing */
	CHECK_INT(ask(w, "POST /-/quit", "", &r), 200);
	CHECK_INT(ask(w, "POST /-/quit", "Origin: https://epi.example\r\n", &r), 200);
	snprintf(own, sizeof(own), "Sec-Fetch-Site: same-origin\r\nOrigin: http://127.0.0.1:%u\r\n",
		web_port(w));
	CHECK_INT(ask(w, "POST /-/quit", own, &r), 200);
	CHECK_INT(quits, 3);
	response_release(&r);
	web_close(w);
}

TEST(other_names_than_ours_are_refused)
{
	struct flag_list names = { { "epi.example" }, 1 };
	struct web_options o = { .allowed_hosts = &names };
	struct web *w = open_web(&o);
	struct response r = { 0 };
	struct peer p;

	peer_open(&p, web_port(w));
	peer_send(&p, STR("GET /explore HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
	peer_receive(&p, &r, false);
	CHECK_INT(r.status, 421);
	CHECK_STR(buf_str(&r.body),
		"host \"evil.example\" is none of this server's names: --web.allowed-host adds "
		"one\n");
	peer_send(&p, STR("GET /nothing HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
	peer_receive(&p, &r, false);
	CHECK_INT(r.status, 421);
	peer_send(&p, STR("GET /explore HTTP/1.1\r\nHost: epi.example\r\n\r\n"));
	peer_receive(&p, &r, false);
	CHECK_INT(r.status, 200);
	peer_send(&p, STR("GET /-/healthy HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
	peer_receive(&p, &r, false);
	CHECK_INT(r.status, 200); /* what asks for health knows addresses or nothing */
	peer_close(&p);
	response_release(&r);
	web_close(w);
}

TEST(no_other_site_reads_the_api_unless_configured)
{
	static const struct {
		const char *pattern, *origin, *allowed, *vary;
	} rows[] = {
		{ NULL, "https://a.example", "", "" },
		{ "", "https://a.example", "", "" },
		{ "", "null", "", "" },
		{ ".*", "https://a.example", "https://a.example", "Origin" },
		{ ".*", "null", "", "Origin" }, /* any page can have this one */
		{ "https://a\\.example", "https://a.example", "https://a.example", "Origin" },
		{ "https://a\\.example", "https://a.example.evil", "", "Origin" },
		{ "https://a\\.example", "", "", "Origin" },
	};
	struct response r = { 0 };
	char header[128];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct web_options o = { .cors_origin = rows[i].pattern };
		struct web *w = open_web(&o);

		snprintf(
			header, sizeof(header), rows[i].origin[0] ? "Origin: %s\r\n" : "%s", rows[i].origin);
		ask(w, "GET /api/v1/format_query?query=1", header, &r);
		CHECK_INT(r.status, 200);
		CHECK_STR(response_header(&r, "Access-Control-Allow-Origin"), rows[i].allowed);
		CHECK_STR(response_header(&r, "Vary"), rows[i].vary);
		web_close(w);
	}
	response_release(&r);
}
