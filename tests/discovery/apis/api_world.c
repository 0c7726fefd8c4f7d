#include "tests/discovery/apis/api_world.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/net/http_client.h"
#include "tests/wait.h"

/* ---- the host ---- */

void source_publish(struct sd_source *host, struct groups *set)
{
	groups_unref(host->set);
	host->set = set;
	host->published++;
	host->failing = false;
}

/* A question has a second where sources ask often, and a busy machine may need longer: it is asked
 * again. */
void source_failed(struct sd_source *host, const struct err *why)
{
	if (strstr(why->msg, "deadline exceeded"))
		return;
	host->failures++;
	host->why = *why;
	host->failing = true;
}

/* ---- the server ---- */

static const char *method_of(struct evhttp_request *r)
{
	switch (evhttp_request_get_command(r)) {
	case EVHTTP_REQ_POST:
		return "POST";
	case EVHTTP_REQ_PUT:
		return "PUT";
	default:
		return "GET";
	}
}

static void print_request(struct world *w, struct evhttp_request *r, struct buf *out)
{
	struct evbuffer *body = evhttp_request_get_input_buffer(r);
	size_t n = evbuffer_get_length(body);

	buf_printf(out, "%s %s", method_of(r), evhttp_request_get_uri(r));
	if (n)
		buf_printf(out, " %.*s", (int)n, (char *)evbuffer_pullup(body, -1));
}

#define HELD_MAX_NS (120 * NS_PER_S)

static const struct world_rule *rule_of(struct world *w, struct evhttp_request *r)
{
	const struct world_rule *found = NULL;
	struct buf line = { 0 };

	print_request(w, r, &line);
	for (size_t i = 0; i < w->rules_n && !found; i++)
		if (str_find(buf_str(&line), str_of(w->rules[i].match)) >= 0)
			found = &w->rules[i];
	buf_release(&line);
	return found;
}

static void answer(struct world *w, struct evhttp_request *r, const struct world_rule *rule)
{
	struct evbuffer *body = evbuffer_new();
	int status = rule && rule->status ? rule->status : 200;
	char index[32];

	if (!rule)
		status = 500;
	if (rule && rule->index_header) {
		snprintf(index, sizeof(index), "%llu", (unsigned long long)w->index);
		evhttp_add_header(evhttp_request_get_output_headers(r), rule->index_header, index);
	}
	evhttp_add_header(evhttp_request_get_output_headers(r), "Content-Type",
		status == 200 ? "application/json" : "text/plain; charset=utf-8");
	if (rule && rule->body)
		evbuffer_add(body, rule->body, strlen(rule->body));
	evhttp_send_reply(r, status, status == 200 ? "OK" : "Refused", body);
	evbuffer_free(body);
}

static void on_request(struct evhttp_request *r, void *ctx)
{
	const struct world_rule *rule;
	struct evkeyval *h;
	struct world *w = ctx;
	char index[32];

	w->requests++;
	print_request(w, r, &w->log);
	buf_add_char(&w->log, '\n');
	buf_clear(&w->headers);
	TAILQ_FOREACH (h, evhttp_request_get_input_headers(r), next)
		buf_printf(&w->headers, "%s: %s\n", h->key, h->value);
	rule = rule_of(w, r);
	w->unexpected += !rule;
	snprintf(index, sizeof(index), "index=%llu&wait=", (unsigned long long)w->index);
	if (rule &&
		(rule->silent || (rule->index_header && strstr(evhttp_request_get_uri(r), index)))) {
		if (w->held_n == WORLD_HELD_MAX)
			abort();
		w->held[w->held_n++] = (struct world_held){ r, rule->silent ? 0 : clock_monotonic_ns() };
		w->held_max = w->held_n > w->held_max ? w->held_n : w->held_max;
		return;
	}
	answer(w, r, rule);
}

void world_rule(struct world *w, struct world_rule rule)
{
	w->rules[w->rules_n++] = rule;
}

void world_change(struct world *w, const char *match, const char *body, int status)
{
	for (size_t i = 0; i < w->rules_n; i++)
		if (strcmp(w->rules[i].match, match) == 0) {
			w->rules[i].body = body;
			w->rules[i].status = status;
			w->rules[i].silent = false;
		}
}

void world_bump(struct world *w)
{
	size_t n = w->held_n;

	w->index++;
	w->held_n = 0;
	for (size_t i = 0; i < n; i++)
		answer(w, w->held[i].request, rule_of(w, w->held[i].request));
}

static int listen_on(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&un, sizeof(un)) || listen(fd, 16))
		abort();
	return fd;
}

void world_open(struct world *w, const char *unix_path)
{
	struct http_client_options o = { 0 };
	struct evhttp_bound_socket *bound;
	struct sockaddr_in sa;
	socklen_t len = sizeof(sa);
	struct err err;

	*w = (struct world){ .index = 7 };
	signal(SIGPIPE, SIG_IGN); /* libevent writes to clients that went away */
	arena_init(&w->arena, 0);
	o.base = w->base = event_base_new();
	w->http = evhttp_new(w->base);
	if (http_client_open(&o, &w->client, &err))
		abort();
	evhttp_set_gencb(w->http, on_request, w);
	if (unix_path) {
		evhttp_accept_socket(w->http, listen_on(unix_path));
		return;
	}
	bound = evhttp_bind_socket_with_handle(w->http, "127.0.0.1", 0);
	if (!bound || getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&sa, &len))
		abort();
	w->port = ntohs(sa.sin_port);
}

void world_stop(struct world *w)
{
	if (w->provider)
		w->configs.v[0].ops->close(w->provider);
	if (w->shared)
		w->configs.v[0].ops->close_shared(w->shared);
	w->provider = w->shared = NULL;
	groups_unref(w->host.set);
	w->host = (struct sd_source){ 0 };
	w->configs = (struct source_configs){ 0 };
}

void world_close(struct world *w)
{
	world_stop(w);
	http_client_close(w->client);
	world_bump(w);
	evhttp_free(w->http);
	event_base_free(w->base);
	buf_release(&w->log);
	buf_release(&w->headers);
	buf_release(&w->text);
	arena_release(&w->arena);
}

/* ---- the source ---- */

enum err_code world_decode(
	struct world *w, world_decode_fn decode, const char *yaml, struct err *err)
{
	struct yaml_ctx ctx = { .arena = &w->arena, .dir = STR("/etc/epimetheus") };
	struct yaml_node *root;
	struct buf text = { 0 };
	enum err_code rc;

	for (; *yaml; yaml++)
		if (*yaml == '@')
			buf_printf(&text, "127.0.0.1:%u", w->port);
		else
			buf_add_char(&text, *yaml);
	rc = yaml_parse(&w->arena, "c.yml", buf_str(&text), &root, err);
	buf_release(&text);
	return rc ? rc : decode(&ctx, root, &w->configs, err);
}

void world_source(struct world *w, world_decode_fn decode, const char *yaml)
{
	struct source_env env = { .base = w->base, .client = w->client };
	struct err err;

	if (world_decode(w, decode, yaml, &err) ||
		w->configs.v[0].ops->open_shared(&env, &w->shared, &err)) {
		printf("  %s\n", err.msg);
		abort();
	}
	env.shared = w->shared;
	if (w->configs.v[0].ops->open(&env, w->configs.v[0].config, &w->host, &w->provider, &err)) {
		printf("  %s\n", err.msg);
		abort();
	}
}

/* As Consul does when nothing has changed for as long as the client said. */
static void end_waits(struct world *w)
{
	int64_t now_ns = clock_monotonic_ns();
	size_t n = w->held_n;

	w->held_n = 0;
	for (size_t i = 0; i < n; i++) {
		struct world_held h = w->held[i];

		if (h.since_ns && now_ns - h.since_ns > HELD_MAX_NS)
			answer(w, h.request, rule_of(w, h.request));
		else
			w->held[w->held_n++] = h;
	}
}

void world_turn(struct world *w)
{
	end_waits(w);
	/* One pass: a busy machine always has events, and NONBLOCK alone ends when there are none. */
	event_base_loop(w->base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
}

const char *world_text(struct world *w)
{
	const struct groups *g = w->host.set;

	buf_clear(&w->text);
	if (!g)
		buf_add_cstr(&w->text, "nothing");
	for (size_t i = 0; g && i < g->n; i++) {
		buf_add_str(&w->text, g->v[i].source);
		buf_add_char(&w->text, ' ');
		labels_print(&w->text, g->v[i].labels);
		buf_add_char(&w->text, '\n');
		for (size_t k = 0; k < g->v[i].targets_n; k++) {
			buf_add_cstr(&w->text, "\t");
			labels_print(&w->text, g->v[i].targets[k]);
			buf_add_char(&w->text, '\n');
		}
	}
	buf_add_char(&w->text, '\0');
	return w->text.ptr;
}

bool world_saw(struct world *w, const char *line)
{
	ptrdiff_t at = str_find(buf_str(&w->log), str_of(line));
	size_t n = strlen(line);

	while (at >= 0) {
		if ((at == 0 || w->log.ptr[at - 1] == '\n') && w->log.ptr[(size_t)at + n] == '\n')
			return true;
		const char *next = memmem(w->log.ptr + at + 1, w->log.len - (size_t)at - 1, line, n);

		at = next ? next - w->log.ptr : -1;
	}
	return false;
}
