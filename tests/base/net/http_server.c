#include "tests/base/net/http_server.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

void sleep_ms(unsigned ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

ssize_t peer_recv(struct peer *p, void *to, size_t n)
{
	return p->ssl ? SSL_read(p->ssl, to, (int)n) : recv(p->fd, to, n, 0);
}

bool peer_write(struct peer *p, struct str s)
{
	while (s.len) {
		ssize_t n;

		if (p->ssl)
			n = SSL_write(p->ssl, s.ptr, (int)s.len);
		else
			n = send(p->fd, s.ptr, s.len, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		s.ptr += n;
		s.len -= (size_t)n;
	}
	return true;
}

bool peer_print(struct peer *p, const char *text)
{
	return peer_write(p, str_of(text));
}

bool peer_gone(struct peer *p)
{
	char c;

	return recv(p->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void peer_reset(struct peer *p)
{
	struct linger l = { 1, 0 };

	setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	shutdown(p->fd, SHUT_RD);
}

bool peer_read_request(struct peer *p)
{
	size_t want = 0, head = 0;
	char bytes[4096];
	ptrdiff_t at;
	ssize_t n;

	buf_clear(&p->request);
	while (!head || p->request.len < want) {
		n = peer_recv(p, bytes, sizeof(bytes));
		if (n <= 0)
			return false;
		buf_add(&p->request, bytes, (size_t)n);
		if (!head && (at = str_find(buf_str(&p->request), STR("\r\n\r\n"))) >= 0) {
			head = (size_t)at + 4;
			at = str_find(buf_str(&p->request), STR("Content-Length: "));
			want = head + (at < 0 ? 0 : strtoul(p->request.ptr + at + 16, NULL, 10));
		}
	}
	mutex_lock(&p->server->lock);
	buf_clear(&p->server->last);
	buf_add_str(&p->server->last, buf_str(&p->request));
	mutex_unlock(&p->server->lock);
	atomic_fetch_add(&p->server->requests, 1);
	return true;
}

void script_answers(struct peer *p, void *ctx)
{
	while (peer_read_request(p) && peer_print(p, ctx))
		;
}

void script_answers_once(struct peer *p, void *ctx)
{
	if (peer_read_request(p))
		peer_print(p, ctx);
}

static void run_peer(void *ctx)
{
	struct peer *p = ctx;
	struct http_server *s = p->server;
	unsigned active = atomic_fetch_add(&s->active, 1) + 1, max = atomic_load(&s->active_max);

	while (active > max && !atomic_compare_exchange_weak(&s->active_max, &max, active))
		;
	if (s->tls) {
		p->ssl = SSL_new(s->tls);
		SSL_set_fd(p->ssl, p->fd);
	}
	if (!p->ssl || SSL_accept(p->ssl) == 1)
		s->script(p, s->ctx);
	atomic_fetch_sub(&s->active, 1);
	if (p->ssl)
		SSL_shutdown(p->ssl);
	SSL_free(p->ssl);
	close(p->fd);
	atomic_fetch_add(&s->closed, 1);
	buf_release(&p->request);
}

static void run_server(void *ctx)
{
	struct http_server *s = ctx;
	struct err err;
	int one = 1;

	for (unsigned i = 0; i < SERVER_CONNECTIONS_MAX; i++) {
		struct peer *p = &s->peers[i];

		p->server = s;
		p->fd = accept(s->fd, NULL, NULL);
		if (p->fd < 0 || atomic_load(&s->stopping)) {
			if (p->fd >= 0)
				close(p->fd);
			return;
		}
		setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		atomic_fetch_add(&s->connections, 1);
		if (thread_start(&p->thread, "peer", run_peer, p, &err))
			close(p->fd);
	}
}

static bool start(struct http_server *s, const struct sockaddr *sa, socklen_t len, script_fn script,
	void *ctx, SSL_CTX *tls)
{
	struct sockaddr_in in = { 0 };
	socklen_t in_len = sizeof(in);
	struct err err;

	memset(s, 0, sizeof(*s));
	s->script = script;
	s->ctx = ctx;
	s->tls = tls;
	mutex_init(&s->lock);
	s->fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->fd < 0 || bind(s->fd, sa, len) || listen(s->fd, 64))
		return false;
	if (sa->sa_family == AF_INET && getsockname(s->fd, (struct sockaddr *)&in, &in_len))
		return false;
	s->port = ntohs(in.sin_port);
	return thread_start(&s->thread, "server", run_server, s, &err) == ERR_OK;
}

bool http_server_start(struct http_server *s, script_fn script, void *ctx, SSL_CTX *tls)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return start(s, (struct sockaddr *)&sa, sizeof(sa), script, ctx, tls);
}

bool http_server_start_unix(struct http_server *s, const char *path, script_fn script, void *ctx)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	return start(s, (struct sockaddr *)&sa, sizeof(sa), script, ctx, NULL);
}

/* The client's connections must be closed before: scripts end with them. */
void http_server_stop(struct http_server *s)
{
	atomic_store(&s->stopping, true);
	shutdown(s->fd, SHUT_RDWR);
	thread_join(&s->thread);
	for (size_t i = 0; i < SERVER_CONNECTIONS_MAX; i++)
		thread_join(&s->peers[i].thread);
	close(s->fd);
	buf_release(&s->last);
	mutex_destroy(&s->lock);
}

bool http_server_saw(struct http_server *s, const char *text)
{
	bool saw;

	mutex_lock(&s->lock);
	saw = str_find(buf_str(&s->last), str_of(text)) >= 0;
	mutex_unlock(&s->lock);
	return saw;
}

void http_server_last(struct http_server *s, struct buf *out)
{
	mutex_lock(&s->lock);
	buf_add_str(out, buf_str(&s->last));
	mutex_unlock(&s->lock);
}

void result_release(struct http_result *r)
{
	buf_release(&r->body);
}

void result_done(void *ctx, const struct http_response *res)
{
	struct http_result *r = ctx;

	r->done = true;
	r->calls++;
	r->rc = res->rc;
	snprintf(r->msg, sizeof(r->msg), "%s", res->rc ? res->err.msg : "");
	r->status = res->status;
	r->elapsed_ns = res->elapsed_ns;
	r->connected_ns = res->connected_ns;
	buf_clear(&r->body);
	buf_add_str(&r->body, res->body);
	snprintf(r->content_type, sizeof(r->content_type), STR_FMT, STR_ARG(res->content_type));
	snprintf(r->reason, sizeof(r->reason), STR_FMT, STR_ARG(res->reason));
	snprintf(r->url, sizeof(r->url), "%s", res->final_url);
	if (r->base)
		event_base_loopbreak(r->base);
}

bool client_open(struct client *c, size_t connections_max, const char *dns_servers)
{
	struct http_client_options o = {
		.connections_max = connections_max, .user_agent = "test/1", .dns_servers = dns_servers
	};
	struct err err;

	o.base = c->base = event_base_new();
	return c->base && http_client_open(&o, &c->http, &err) == ERR_OK;
}

void client_close(struct client *c)
{
	http_client_close(c->http);
	event_base_free(c->base);
}

void client_run(struct client *c, struct http_request_options o, struct http_result *out)
{
	struct err err;

	if (!o.timeout_ns)
		o.timeout_ns = NS_PER_MIN;
	if (!o.body_size_max)
		o.body_size_max = 1u << 20;
	buf_release(&out->body);
	*out = (struct http_result){ .base = c->base };
	out->rc = http_client_send(c->http, &o, result_done, out, NULL, &err);
	if (out->rc) {
		snprintf(out->msg, sizeof(out->msg), "send: %s", err.msg);
		return;
	}
	while (!out->done && event_base_dispatch(c->base) == 0)
		;
	out->base = NULL;
}

void client_get(
	struct client *c, const char *url, const struct http_config *config, struct http_result *out)
{
	client_run(c, (struct http_request_options){ .url = str_of(url), .config = config }, out);
}
