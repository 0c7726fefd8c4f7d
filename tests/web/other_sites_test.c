/* The server refuses requests of pages of other sites, and to names that are not its own. */
#include "tests/check.h"
#include "tests/web/asking.h"
#include "web/routes.h"
#include "web/web.h"

/* Every row that needs a flag changes something, and has ROUTE_CHANGES. */
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
	struct web *w;

	o->listen_address = "127.0.0.1:0";
	w = asking_open(o);
	web_set_ready(w, true);
	return w;
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
		.cors_origin = ".*", /* a site that may read may not write */
		.quit = quit,
		.ctx = &quits };
	struct web *w = open_web(&o);
	struct response r = { 0 };
	char own[128];

	for (size_t i = 0; i < sizeof(api) / sizeof(api[0]); i++) {
		CHECK_INT(asking_get(w, api[i], evil, &r), 403);
		CHECK_STR(buf_str(&r.body),
			"{\"status\":\"error\",\"errorType\":\"forbidden\",\"error\":\"request of another "
			"site's page (origin \\\"https://evil.example\\\"): only this server's pages and "
			"programs may change something; set --web.external-url to the URL of the pages\"}");
	}
	CHECK_INT(asking_get(w, "POST /-/quit", evil, &r), 403);
	CHECK_INT(asking_get(w, "POST /-/quit", "Sec-Fetch-Site: cross-site\r\n", &r), 403);
	CHECK_STR(buf_str(&r.body),
		"request of another site's page (Sec-Fetch-Site: cross-site): only this server's pages and "
		"programs may change something; set --web.external-url to the URL of the pages\n");
	CHECK_INT(quits, 0);
	CHECK_INT(asking_get(w, "GET /-/healthy", evil, &r), 200); /* changes nothing */
	CHECK_INT(asking_get(w, "POST /-/quit", "", &r), 200);
	CHECK_INT(asking_get(w, "POST /-/quit", "Origin: https://epi.example\r\n", &r), 200);
	snprintf(own, sizeof(own), "Sec-Fetch-Site: same-origin\r\nOrigin: http://127.0.0.1:%u\r\n",
		web_port(w));
	CHECK_INT(asking_get(w, "POST /-/quit", own, &r), 200);
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
		"host \"evil.example\" is not a name of this server: allow with --web.allowed-host\n");
	peer_send(&p, STR("GET /nothing HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
	peer_receive(&p, &r, false);
	CHECK_INT(r.status, 421);
	peer_send(&p, STR("GET /explore HTTP/1.1\r\nHost: epi.example\r\n\r\n"));
	peer_receive(&p, &r, false);
	CHECK_INT(r.status, 200);
	peer_send(&p, STR("GET /-/healthy HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
	peer_receive(&p, &r, false);
	CHECK_INT(r.status, 200); /* health checks may use any name or none */
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
		asking_get(w, "GET /api/v1/format_query?query=1", header, &r);
		CHECK_INT(r.status, 200);
		CHECK_STR(response_header(&r, "Access-Control-Allow-Origin"), rows[i].allowed);
		CHECK_STR(response_header(&r, "Vary"), rows[i].vary);
		web_close(w);
	}
	response_release(&r);
}
