/* /api/v1/source and /api/v1/source_links, over real sockets. */
#include "scrape/config/config.h"
#include "scrape/debuginfod/debuginfod.h"
#include "tests/check.h"
#include "tests/web/http/http_peer.h"
#include "web/web.h"

static struct config *config;
static struct response r;

static struct config *give_config(void *ctx)
{
	(void)ctx;
	return config_ref(config);
}

/* text NULL: a server without a configuration, as it is while it starts. */
static struct web *begin(const char *text)
{
	struct web_options o = { .listen_address = "127.0.0.1:0" };
	struct web *w = NULL;
	struct err err;

	config = NULL;
	if (text && config_load_text("c.yml", STR("/"), str_of(text), &config, &err)) {
		CHECK_FAIL("%s", err.msg);
		exit(1);
	}
	if (text)
		o.config = give_config;
	if (web_open(&o, &w, &err)) {
		CHECK_FAIL("web_open: %s", err.msg);
		exit(1);
	}
	web_set_ready(w, true);
	return w;
}

static void end(struct web *w)
{
	web_close(w);
	config_unref(config);
	response_release(&r);
}

static void says(struct web *w, const char *request, int status, const char *body)
{
	peer_ask(web_port(w), &r, request, "", (struct str){ 0 });
	CHECK_INT(r.status, status);
	CHECK_STR(buf_str(&r.body), body);
}

#define ANSWER(data) "{\"status\":\"success\",\"data\":" data "}\n"
#define ERROR(type, message) \
	"{\"status\":\"error\",\"errorType\":\"" type "\",\"error\":\"" message "\"}"

TEST(nothing_is_configured)
{
	struct web *w = begin(NULL);

	says(w, "GET /api/v1/source_links", 200,
		ANSWER("{\"debuginfod\":false,\"links\":0,\"labels\":[]}"));
	end(w);
	w = begin("{}");
	says(w, "GET /api/v1/source_links?path=/src/a.go&line=3", 200,
		ANSWER("{\"debuginfod\":false,\"links\":0,\"labels\":[]}"));
	says(w, "GET /api/v1/source?build_id=aa&path=/src/a.go", 404,
		ERROR("not_found", "no debuginfod servers configured"));
	end(w);
}

#define LINKS \
	"debuginfod: [{url: 'http://127.0.0.1:1/', source: true}]\n" \
	"source_links:\n" \
	"- {path: '/src/(?P<file>.+)', labels: {team: a|b}, " \
	"template: 'https://git.example/${repo}/${file}#L${line}'}\n"
#define SETTINGS "\"debuginfod\":true,\"links\":1,\"labels\":[\"repo\",\"team\"]"

TEST(links_are_made_of_path_and_labels)
{
	struct web *w = begin(LINKS);

	says(w, "GET /api/v1/source_links", 200, ANSWER("{" SETTINGS "}"));
	says(w, "GET /api/v1/source_links?path=/src/a%20b.go&label.repo=x/y&label.team=b&line=12", 200,
		ANSWER("{" SETTINGS ",\"url\":\"https://git.example/x/y/a%20b.go#L12\"}"));
	says(w, "GET /api/v1/source_links?path=/src/a.go&label.repo=x&label.team=b&label.other=c", 200,
		ANSWER("{" SETTINGS ",\"url\":\"https://git.example/x/a.go#L${line}\"}"));
	says(w, "GET /api/v1/source_links?path=/src/a.go&label.repo=x&label.team=c", 200,
		ANSWER("{" SETTINGS "}"));
	says(w, "GET /api/v1/source_links?path=/src/a.go&label.team=b&repo=x", 200,
		ANSWER("{" SETTINGS "}"));
	says(w, "GET /api/v1/source_links?path=/src/a.go&line=x", 400,
		ERROR("bad_data", "invalid parameter \\\"line\\\": \\\"x\\\" is not a number from 0 on"));
	end(w);
}

TEST(pages_of_other_sites_cannot_make_it_ask)
{
	struct web *w = begin(LINKS);

	peer_ask(web_port(w), &r, "GET /api/v1/source?build_id=aa&path=/a.c",
		"Origin: https://evil.example\r\n", (struct str){ 0 });
	CHECK_INT(r.status, 403);
	peer_ask(web_port(w), &r, "GET /api/v1/source?build_id=aa&path=/a.c",
		"Sec-Fetch-Site: cross-site\r\n", (struct str){ 0 });
	CHECK_INT(r.status, 403);
	peer_ask(web_port(w), &r, "GET /api/v1/source?build_id=aa&path=/a.c",
		"Sec-Fetch-Site: same-origin\r\n", (struct str){ 0 });
	CHECK_INT(r.status, 404);
	end(w);
}
