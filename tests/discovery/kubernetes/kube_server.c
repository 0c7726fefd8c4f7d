#include "tests/discovery/kubernetes/kube_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>
#include <sys/socket.h>

static void on_closed(struct evhttp_connection *conn, void *ctx)
{
	struct kube_step *step = ctx;

	step->held = false;
}

/* All bytes are in the socket. Now it is cut, so the client sees a broken answer. */
static void on_written(struct evhttp_connection *conn, void *ctx)
{
	shutdown(bufferevent_getfd(evhttp_connection_get_bufferevent(conn)), SHUT_RDWR);
}

static void send_chunk(struct evhttp_request *req, struct str bytes, bool then_cut)
{
	struct evbuffer *b = evbuffer_new();

	evbuffer_add(b, bytes.ptr, bytes.len);
	if (then_cut)
		evhttp_send_reply_chunk_with_cb(req, b, on_written, NULL);
	else
		evhttp_send_reply_chunk(req, b);
	evbuffer_free(b);
}

static void answer(struct kube_step *step, struct evhttp_request *req)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
	struct str body = str_of(step->body ? step->body : "");
	struct evbuffer *b;

	evhttp_add_header(headers, "Content-Type", "application/json");
	if (step->retry_after)
		evhttp_add_header(headers, "Retry-After", step->retry_after);
	if (step->end == KUBE_WHOLE) {
		b = evbuffer_new();
		evbuffer_add(b, body.ptr, body.len);
		evhttp_send_reply(req, step->status, "Said So", b);
		evbuffer_free(b);
		return;
	}
	evhttp_send_reply_start(req, step->status, "OK");
	if (body.len)
		send_chunk(req, body, step->end == KUBE_CUT);
	if (step->end == KUBE_CLEAN)
		evhttp_send_reply_end(req);
	if (step->end != KUBE_CLEAN)
		step->request = req;
	if (step->end == KUBE_HOLD) {
		step->held = true;
		evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_closed, step);
	}
}

static void on_request(struct evhttp_request *req, void *ctx)
{
	struct kube_server *s = ctx;
	const char *uri = evhttp_request_get_uri(req);
	const char *auth = evhttp_find_header(evhttp_request_get_input_headers(req), "Authorization");
	struct kube_step none = { .status = 500, .body = "{\"message\": \"nobody announced this\"}" };

	s->requests++;
	buf_add_cstr(&s->log, uri);
	buf_add_char(&s->log, '\n');
	buf_add_cstr(&s->auth, auth ? auth : "");
	buf_add_char(&s->auth, '\n');
	for (size_t i = 0; i < s->steps_n; i++) {
		struct kube_step *step = &s->steps[i];

		if (!step->times || !strstr(uri, step->match))
			continue;
		if (step->times != UINT32_MAX)
			step->times--;
		answer(step, req);
		return;
	}
	s->unexpected++;
	answer(&none, req);
}

bool kube_server_start(struct kube_server *s, struct event_base *base)
{
	struct evhttp_bound_socket *bound;
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	memset(s, 0, sizeof(*s));
	s->base = base;
	s->http = evhttp_new(base);
	bound = evhttp_bind_socket_with_handle(s->http, "127.0.0.1", 0);
	if (!bound || getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&sa, &len))
		return false;
	/* sin_port stands where sin6_port stands */
	s->port = (unsigned)((unsigned char *)&sa)[2] << 8 | ((unsigned char *)&sa)[3];
	evhttp_set_gencb(s->http, on_request, s);
	return true;
}

void kube_server_stop(struct kube_server *s)
{
	struct evhttp_request *req;

	/* one whose connection is gone is still ours to end */
	for (size_t i = 0; i < s->steps_n; i++) {
		req = s->steps[i].request;
		if (req && evhttp_request_get_connection(req))
			evhttp_connection_set_closecb(evhttp_request_get_connection(req), NULL, NULL);
		if (req)
			evhttp_send_reply_end(req);
	}
	evhttp_free(s->http);
	buf_release(&s->log);
	buf_release(&s->auth);
}

void kube_server_add(struct kube_server *s, struct kube_step step)
{
	if (s->steps_n == KUBE_SERVER_STEPS_MAX)
		abort();
	if (!step.times)
		step.times = 1;
	if (!step.status)
		step.status = 200;
	s->steps[s->steps_n++] = step;
}

static struct kube_step *held(struct kube_server *s, const char *match)
{
	for (size_t i = 0; i < s->steps_n; i++)
		if (s->steps[i].held && strstr(s->steps[i].match, match))
			return &s->steps[i];
	return NULL;
}

bool kube_server_push(struct kube_server *s, const char *match, struct str bytes)
{
	struct kube_step *step = held(s, match);

	if (step)
		send_chunk(step->request, bytes, false);
	return step != NULL;
}

bool kube_server_end(struct kube_server *s, const char *match, enum kube_end end)
{
	struct kube_step *step = held(s, match);
	struct evhttp_connection *conn;

	if (!step)
		return false;
	conn = evhttp_request_get_connection(step->request);
	evhttp_connection_set_closecb(conn, NULL, NULL);
	step->held = false;
	if (end == KUBE_CUT) {
		on_written(conn, NULL);
		return true;
	}
	evhttp_send_reply_end(step->request);
	step->request = NULL;
	return true;
}

bool kube_server_holds(struct kube_server *s, const char *match)
{
	return held(s, match) != NULL;
}
