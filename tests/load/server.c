#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/load/load.h"

#define FIRST_ADDRESS UINT32_C(0x7f010000) /* 127.1.0.0 */
#define TARGETS_MAX 100000u
#define ACCEPTS 64 /* at a time, so that answers have their turn */
#define LATE_NS NS_PER_S

/* ---- what came when ---- */

static struct load_target *target_of(const struct load_conn *c)
{
	return &c->load->targets[c->target];
}

static struct load_counts *counts_of(const struct load_conn *c)
{
	return &c->load->counts[target_of(c)->way != 0];
}

static void note_request(struct load_conn *c, enum load_kind kind)
{
	struct load_target *t = target_of(c);
	struct load_counts *n = counts_of(c);
	int64_t now = clock_monotonic_ns(), gap = now - t->last_ns[kind];

	n->requests++;
	if (t->last_ns[kind]) {
		n->gaps++;
		n->late += gap > c->load->o.interval_ns + LATE_NS;
		if (gap > n->gap_max_ns)
			n->gap_max_ns = gap;
	}
	t->last_ns[kind] = now;
}

/* ---- connections ---- */

void conn_end(struct load_conn *c)
{
	if (target_of(c)->profiler == c)
		target_of(c)->profiler = NULL;
	event_del(&c->readable);
	event_del(&c->writable);
	event_del(&c->timer);
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	close(c->fd);
	free(c);
}

void conn_after(struct load_conn *c, int64_t ns)
{
	const struct timeval tv = { ns / NS_PER_S, ns % NS_PER_S / NS_PER_US };

	event_add(&c->timer, &tv);
}

/* The answer has gone, unless a hostile way has more of it. */
static void sent(struct load_conn *c)
{
	const struct load_target *t = target_of(c);

	if (c->close_after)
		conn_end(c);
	else if (!t->way || !hostile_ways[t->way - 1].next)
		c->busy = false;
}

void conn_send(struct load_conn *c)
{
	ssize_t n;

	while (c->head.len || c->body.len) {
		const struct iovec v[2] = {
			{ (void *)(uintptr_t)c->head.ptr, c->head.len },
			{ (void *)(uintptr_t)c->body.ptr, c->body.len },
		};
		const struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)v, .msg_iovlen = 2 };
		size_t left;

		n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			event_add(&c->writable, NULL);
			return;
		}
		if (n < 0) {
			c->close_after = true; /* reading will say so, or has */
			return;
		}
		left = (size_t)n < c->head.len ? (size_t)n : c->head.len;
		c->head.ptr += left;
		c->head.len -= left;
		left = (size_t)n - left;
		c->body.ptr += left;
		c->body.len -= left;
	}
	sent(c);
}

void conn_answer(
	struct load_conn *c, const char *status, const char *type, const char *more, struct str body)
{
	int n = snprintf(
		c->out, sizeof(c->out), "HTTP/1.1 %s\r\nContent-Type: %s\r\n%s\r\n", status, type, more);

	c->head = (struct str){ c->out, (size_t)n };
	c->body = body;
	conn_send(c);
}

/* ---- honest answers ---- */

static void answer_profile(struct load_conn *c, enum load_kind kind)
{
	struct load_target *t = target_of(c);
	struct str body = load_body(c->load->bodies, c->target, kind, t->nth[kind]++);
	char more[64];

	snprintf(more, sizeof(more), "Content-Length: %zu\r\n", body.len);
	conn_answer(c, "200 OK", "application/octet-stream", more, body);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	struct load_conn *c = ctx;
	struct load_target *t = target_of(c);

	if (t->way) {
		hostile_ways[t->way - 1].next(c);
		return;
	}
	t->profiler = NULL;
	answer_profile(c, LOAD_CPU);
}

static int64_t seconds_of(struct str line)
{
	ptrdiff_t at = str_find(line, STR("seconds="));

	return at < 0 ? 30 : strtoll(line.ptr + at + 8, NULL, 10);
}

static bool client_has_gone(const struct load_conn *c)
{
	char next;
	ssize_t n = recv(c->fd, &next, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* After a while without the processor: a client may have gone, and come again, all unread. */
static bool profiler_is_taken(const struct load_conn *c)
{
	struct load_conn *other = target_of(c)->profiler;

	if (!other || !client_has_gone(other))
		return other;
	counts_of(c)->cut++;
	conn_end(other);
	return false;
}

static void take_request(struct load_conn *c, struct str line)
{
	struct load_target *t = target_of(c);
	enum load_kind kind = str_has_prefix(
		line, STR("GET /debug/pprof/profile")) ? LOAD_CPU : LOAD_HEAP;

	c->busy = true;
	if (!t->way && kind == LOAD_HEAP && !str_has_prefix(line, STR("GET /debug/pprof/allocs"))) {
		conn_answer(c, "404 Not Found", "text/plain", "Content-Length: 0\r\n", STR(""));
		return;
	}
	if (!t->way || !str_has_prefix(line, STR("GET /r")))
		note_request(c, kind); /* what a redirect leads to is no request of its own */
	if (t->way) {
		hostile_ways[t->way - 1].begin(c);
	} else if (kind == LOAD_HEAP) {
		answer_profile(c, LOAD_HEAP);
	} else if (profiler_is_taken(c)) {
		counts_of(c)->refused += !client_has_gone(c);
		conn_answer(c, "500 Internal Server Error", "text/plain", "Content-Length: 40\r\n",
			STR("Could not enable CPU profiling: in use.\n"));
	} else {
		t->profiler = c;
		conn_after(c, seconds_of(line) * NS_PER_S);
	}
}

/* Takes the requests that were read; the connection may be gone afterwards. */
static void take_requests(struct load_conn *c)
{
	ptrdiff_t end = str_find((struct str){ c->in, c->in_n }, STR("\r\n\r\n"));
	struct str line;
	char copy[256];

	if (c->busy || end < 0)
		return;
	line = (struct str){ c->in, (size_t)str_find((struct str){ c->in, c->in_n }, STR("\r\n")) };
	if (line.len > sizeof(copy) - 1)
		line.len = sizeof(copy) - 1;
	memcpy(copy, line.ptr, line.len);
	copy[line.len] = '\0';
	c->in_n -= (size_t)end + 4;
	memmove(c->in, c->in + end + 4, c->in_n);
	take_request(c, (struct str){ copy, line.len });
}

static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
	struct load_conn *c = ctx;
	ssize_t n = recv(fd, c->in + c->in_n, sizeof(c->in) - c->in_n, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) { /* closed, or more than a request's head is */
		counts_of(c)->cut += c->busy;
		conn_end(c);
		return;
	}
	c->in_n += (size_t)n;
	take_requests(c);
}

static void on_writable(evutil_socket_t fd, short what, void *ctx)
{
	conn_send(ctx);
}

static void conn_begin(struct load *l, int fd, size_t target)
{
	struct load_conn *c = calloc(1, sizeof(*c));
	const int one = 1;

	if (!c) {
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->load = l;
	c->fd = fd;
	c->target = target;
	c->next = l->open;
	c->at = &l->open;
	if (c->next)
		c->next->at = &c->next;
	l->open = c;
	l->connections++;
	event_assign(&c->readable, l->base, fd, EV_READ | EV_PERSIST, on_readable, c);
	event_assign(&c->writable, l->base, fd, EV_WRITE, on_writable, c);
	event_assign(&c->timer, l->base, -1, 0, on_timer, c);
	event_add(&c->readable, NULL);
}

static void on_connection(evutil_socket_t listener, short what, void *ctx)
{
	struct load *l = ctx;
	struct sockaddr_in to;
	socklen_t size;
	int fd;

	for (int i = 0; i < ACCEPTS; i++) {
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		size = sizeof(to);
		if (getsockname(fd, (struct sockaddr *)&to, &size) ||
			ntohl(to.sin_addr.s_addr) - FIRST_ADDRESS >= l->o.targets)
			close(fd);
		else
			conn_begin(l, fd, ntohl(to.sin_addr.s_addr) - FIRST_ADDRESS);
	}
}

/* ---- all of them ---- */

/*
 * Each target is asked for two profiles at once; a scraper that is short of descriptors itself lets
 * idle connections go. Only root may go beyond the hard limit.
 */
static enum err_code raise_files(size_t targets, struct err *err)
{
	rlim_t least = targets + targets / 2 + 256, want = targets * 2 + 1024;
	struct rlimit limit, more;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return err_errno(err, errno, "limit of open files");
	if (limit.rlim_cur >= want)
		return ERR_OK;
	more.rlim_cur = want;
	more.rlim_max = limit.rlim_max > want ? limit.rlim_max : want;
	if (!setrlimit(RLIMIT_NOFILE, &more))
		return ERR_OK;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return err_errno(err, errno, "limit of open files");
	if (limit.rlim_cur < least)
		return err_set(err, ERR_LIMIT,
			"%zu targets need %zu open files, the limit is %zu "
			"(ulimit -n)",
			targets, (size_t)least, (size_t)limit.rlim_cur);
	return ERR_OK;
}

static enum err_code listen_at(struct load *l, struct err *err)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)l->o.port),
		.sin_addr = { htonl(INADDR_ANY) } };
	socklen_t size = sizeof(at);
	const int one = 1;

	l->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0 || setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
		bind(l->fd, (struct sockaddr *)&at, sizeof(at)) || listen(l->fd, 4096) ||
		getsockname(l->fd, (struct sockaddr *)&at, &size))
		return err_errno(err, errno, "listen on port %" PRIu64, l->o.port);
	l->port = ntohs(at.sin_port);
	event_assign(&l->listener, l->base, l->fd, EV_READ | EV_PERSIST, on_connection, l);
	event_add(&l->listener, NULL);
	return ERR_OK;
}

enum err_code load_open(
	const struct load_options *o, struct event_base *base, struct load **out, struct err *err)
{
	struct load *l = calloc(1, sizeof(*l));
	enum err_code rc;

	if (!l)
		return err_set(err, ERR_NOMEM, "out of memory");
	l->o = *o;
	l->base = base;
	l->fd = -1;
	if (!o->targets || o->targets > TARGETS_MAX || o->hostile_percent > 100 || !o->services ||
		!o->variants || !o->scrapes || o->port > 65535)
		rc = err_set(
			err, ERR_INVALID, "1 to %u targets, at most 100 %% of them hostile", TARGETS_MAX);
	else
		rc = raise_files(o->targets, err);
	if (!rc && !(l->targets = calloc(o->targets, sizeof(*l->targets))))
		rc = err_set(err, ERR_NOMEM, "out of memory");
	if (rc || (rc = load_bodies_make(o, &l->bodies, err)) || (rc = listen_at(l, err))) {
		load_close(l);
		return rc;
	}
	/* Spread over the services: 7919 is a prime. */
	for (uint64_t i = 0, n = 0; i < o->targets; i++)
		if (i * 7919 % 100 < o->hostile_percent)
			l->targets[i].way = (uint8_t)(n++ % hostile_ways_n + 1);
	*out = l;
	return ERR_OK;
}

void load_close(struct load *l)
{
	if (!l)
		return;
	while (l->open)
		conn_end(l->open);
	if (l->port)
		event_del(&l->listener);
	if (l->fd >= 0)
		close(l->fd);
	load_bodies_free(l->bodies);
	free(l->targets);
	free(l);
}

void load_print_document(const struct load *l, struct buf *out)
{
	char name[32];

	buf_add_char(out, '[');
	for (size_t i = 0; i < l->o.targets; i++) {
		uint32_t at = FIRST_ADDRESS + (uint32_t)i;

		buf_printf(out,
			"%s{\"targets\":[\"127.%u.%u.%u:%d\"],\"labels\":{\"job\":\"%s\","
			"\"kind\":\"%s\"}}",
			i ? ",\n" : "", at >> 16 & 255, at >> 8 & 255, at & 255, l->port,
			load_service(l->bodies, i, name),
			l->targets[i].way ? hostile_ways[l->targets[i].way - 1].name : "honest");
	}
	buf_add_cstr(out, "]\n");
}
