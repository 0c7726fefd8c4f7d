#include <event2/event.h>
#include <jansson.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/net/http_config.h"
#include "base/quote.h"
#include "base/version.h"
#include "cmd/epitool/epitool.h"
#include "cmd/epitool/progress.h"

#define RETRY_S_MAX 3600u
#define ANSWER_BYTES_MAX (UINT64_C(1) << 30)

/* The file of --http.config.file: the inline fields of a scrape config. */
struct client_file {
	struct http_config http;
};

static enum err_code client_read_config(
	struct arena *a, const char *path, struct client_file *out, struct err *err)
{
	struct yaml_ctx ctx = { .arena = a, .dir = path_dir(str_of(path)) };
	struct yaml_node *root = NULL;
	struct buf text = { 0 };
	struct str copy;
	enum err_code rc;

	if (!path[0]) {
		http_config_defaults(&out->http);
		return ERR_OK;
	}
	if ((rc = fs_read_file(path, YAML_FILE_BYTES_MAX, &text, err)))
		return rc;
	copy = str_dup(a, buf_str(&text));
	buf_release(&text);
	if (!copy.ptr)
		return arena_fail(a, path, err);
	if ((rc = yaml_parse(a, path, copy, &root, err)))
		return rc;
	return yaml_decode(&ctx, &http_config_schema, root, &out->http, err);
}

/* The server's error on one line: the envelope's "error", or the text itself. */
static void client_error_text(struct str body, struct buf *out)
{
	json_t *root = json_loadb(body.ptr, body.len, 0, NULL);
	const char *msg = json_string_value(json_object_get(root, "error"));

	if (!msg) /* connect's form */
		msg = json_string_value(json_object_get(root, "message"));

	if (msg)
		buf_add_printable(out, str_of(msg));
	else
		buf_add_printable(out, str_trim((struct str){ body.ptr, body.len < 300 ? body.len : 300 }));
	buf_add_char(out, '\0');
	json_decref(root);
}

struct client_exchange {
	struct event_base *base;
	const struct client_request *request;
	struct buf *out;
	struct err *err;
	enum err_code rc;
	bool done;
};

/* In seconds; a date is not understood. */
static int64_t client_retry_after(const struct http_response *res)
{
	uint64_t s;

	return str_to_u64(str_trim(http_response_header(res, "Retry-After")), &s) && s < RETRY_S_MAX ?
		(int64_t)s * NS_PER_S :
		0;
}

static void client_done(void *ctx, const struct http_response *res)
{
	struct client_exchange *x = ctx;
	struct buf text = { 0 };

	x->done = true;
	x->rc = res->rc ? err_copy(x->err, &res->err) : ERR_OK;
	if (!res->rc && x->request->warning)
		buf_add_str(x->request->warning, http_response_header(res, "Warning"));
	if (!res->rc && x->request->status)
		*x->request->status = res->status;
	if (!res->rc && x->request->retry_ns)
		*x->request->retry_ns = client_retry_after(res);
	if (!res->rc && res->status == 200) {
		buf_add_str(x->out, res->body);
	} else if (!res->rc) {
		client_error_text(res->body, &text);
		x->rc = err_set(x->err, ERR_INVALID, "%s", text.ptr ? text.ptr : "no answer");
		buf_release(&text);
	}
	event_base_loopbreak(x->base);
}

/* Checks for Ctrl-C a few times a second. */
static void client_look(evutil_socket_t fd, short what, void *ctx)
{
	struct client_exchange *x = ctx;

	if (!atomic_load(&interrupted))
		return;
	x->rc = err_set(x->err, ERR_CANCELED, "canceled");
	event_base_loopbreak(x->base);
}

static void client_exchange_run(struct client_exchange *c)
{
	const struct timeval each = { .tv_usec = 50000 };
	struct event *timer = event_new(c->base, -1, EV_PERSIST, client_look, c);

	if (timer)
		event_add(timer, &each);
	event_base_dispatch(c->base);
	if (timer)
		event_free(timer);
}

static enum err_code client_exchange_once(struct client_exchange *c, struct arena *a,
	const struct client_options *o, const struct client_request *r, struct err *err)
{
	struct http_client_options co = { .connections_max = 1, .user_agent = "epitool/" EPI_VERSION };
	struct label header = { STR("Content-Type"), str_of(r->content_type) };
	struct http_request_options ro = { .method = r->method ? r->method : "POST",
		.timeout_ns = o->timeout_ns,
		.headers = { &header, r->content_type != NULL },
		.body = r->body,
		.source = r->source };
	struct client_file file = { 0 };
	struct http_client *client = NULL;
	struct http_request *request = NULL;
	struct str server = str_of(o->server);
	enum err_code rc;

	if ((rc = client_read_config(a, o->http_config, &file, err)))
		return rc;
	while (server.len && server.ptr[server.len - 1] == '/')
		server.len--;
	ro.url = str_of(arena_printf(a, STR_FMT "%s", STR_ARG(server), r->path));
	if (!ro.url.ptr)
		return arena_fail(a, "request", err);
	ro.config = &file.http;
	ro.body_size_max = ANSWER_BYTES_MAX;
	co.base = c->base;
	if ((rc = http_client_open(&co, &client, err)))
		return rc;
	if (!(rc = http_client_send(client, &ro, client_done, c, &request, err))) {
		client_exchange_run(c);
		rc = c->rc;
		if (rc == ERR_CANCELED && !c->done)
			http_request_cancel(request);
	}
	http_client_close(client);
	return rc;
}

enum err_code client_send(const struct client_options *o, const struct client_request *r,
	struct buf *out, struct err *err)
{
	struct client_exchange x = { .request = r, .out = out, .err = err, .rc = ERR_UNAVAILABLE };
	struct arena a;
	enum err_code rc;

	if (r->status)
		*r->status = 0;
	if (r->retry_ns)
		*r->retry_ns = 0;
	x.base = event_base_new();
	if (!x.base)
		return err_nomem(err, "event loop");
	arena_init(&a, 64u << 20);
	rc = client_exchange_once(&x, &a, o, r, err);
	arena_release(&a);
	event_base_free(x.base);
	return rc;
}
