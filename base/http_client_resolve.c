/*
 * Names to addresses. c-ares asks the servers of /etc/resolv.conf and reads /etc/hosts; "localhost"
 * is answered here, so that it works in an empty root directory too (RFC 6761). Lookups of one name
 * that are under way at the same time are one: when DNS is down, what piles up is names, not
 * requests. c-ares cannot end a single query, so a lookup nobody waits for runs to its own end.
 */
#include <arpa/inet.h>
#include <ares.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/http_client_internal.h"

#define TRY_MS 2000
#define TRIES 3

struct watch { /* a socket of c-ares's */
	LIST_ENTRY(watch) link;
	int fd;
	struct event *ev;
};

struct lookup {
	LIST_ENTRY(lookup) link;
	struct resolver *resolver;
	LIST_HEAD(, resolve_waiter) waiters;
	char name[];
};

struct resolver {
	struct event_base *base;
	char *servers; /* NULL: resolv.conf's */
	ares_channel channel;
	bool has_channel;
	struct timespec conf_mtime;
	struct event *timer;
	LIST_HEAD(, watch) watches;
	LIST_HEAD(, lookup) lookups;
};

static void arm_timer(struct resolver *r)
{
	struct timeval tv;

	if (r->has_channel && ares_timeout(r->channel, NULL, &tv))
		evtimer_add(r->timer, &tv);
	else
		evtimer_del(r->timer);
}

static void on_socket(evutil_socket_t fd, short what, void *ctx)
{
	struct resolver *r = ctx;

	ares_process_fd(
		r->channel, what & EV_READ ? fd : ARES_SOCKET_BAD, what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	arm_timer(r);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	struct resolver *r = ctx;

	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	arm_timer(r);
}

/*
 * c-ares says which of its sockets it waits for. A failed allocation leaves the query to its
 * timeout.
 */
static void on_sock_state(void *ctx, ares_socket_t fd, int readable, int writable)
{
	short what = (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0) | EV_PERSIST);
	struct resolver *r = ctx;
	struct watch *w;

	LIST_FOREACH(w, &r->watches, link)
		if (w->fd == fd)
			break;
	if (w)
		event_free(w->ev);
	if (!readable && !writable) {
		if (w) {
			LIST_REMOVE(w, link);
			free(w);
		}
		return;
	}
	if (!w) {
		w = calloc(1, sizeof(*w));
		if (!w)
			return;
		w->fd = fd;
		LIST_INSERT_HEAD(&r->watches, w, link);
	}
	w->ev = event_new(r->base, fd, what, on_socket, r);
	if (!w->ev) {
		LIST_REMOVE(w, link);
		free(w);
		return;
	}
	event_add(w->ev, NULL);
}

static struct timespec conf_mtime(void)
{
	struct stat st;

	return stat("/etc/resolv.conf", &st) == 0 ? st.st_mtim : (struct timespec){ 0 };
}

static int open_channel(struct resolver *r)
{
	struct ares_options o = { .timeout = TRY_MS, .tries = TRIES, .sock_state_cb = on_sock_state,
		.sock_state_cb_data = r };
	int rc = ares_init_options(
		&r->channel, &o, ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);

	if (rc != ARES_SUCCESS)
		return rc;
	if (r->servers && (rc = ares_set_servers_ports_csv(r->channel, r->servers)) != ARES_SUCCESS) {
		ares_destroy(r->channel);
		return rc;
	}
	r->has_channel = true;
	r->conf_mtime = conf_mtime();
	return ARES_SUCCESS;
}

/* Servers are read when a channel is made; a container's resolv.conf may change under us. */
static void renew_channel(struct resolver *r)
{
	struct timespec now;

	if (r->servers || !LIST_EMPTY(&r->lookups))
		return;
	now = conf_mtime();
	if (r->has_channel && now.tv_sec == r->conf_mtime.tv_sec &&
		now.tv_nsec == r->conf_mtime.tv_nsec)
		return;
	if (r->has_channel)
		ares_destroy(r->channel);
	r->has_channel = false;
	open_channel(r);
	arm_timer(r);
}

enum err_code resolver_open(
	struct event_base *base, const char *servers, struct resolver **out, struct err *err)
{
	struct resolver *r = calloc(1, sizeof(*r));
	int rc = ARES_ENOMEM;

	if (r) {
		r->base = base;
		LIST_INIT(&r->watches);
		LIST_INIT(&r->lookups);
		r->timer = evtimer_new(base, on_timer, r);
		r->servers = servers ? strdup(servers) : NULL;
		if (r->timer && (!servers || r->servers) &&
			(rc = ares_library_init(ARES_LIB_INIT_ALL)) == 0 &&
			(rc = open_channel(r)) == ARES_SUCCESS) {
			*out = r;
			return ERR_OK;
		}
	}
	resolver_close(r);
	return err_set(
		err, rc == ARES_ENOMEM ? ERR_NOMEM : ERR_INVALID, "resolver: %s", ares_strerror(rc));
}

void resolver_close(struct resolver *r)
{
	if (!r)
		return;
	if (r->has_channel)
		ares_destroy(r->channel); /* ends the lookups, and on_sock_state removes the watches */
	if (r->timer)
		event_free(r->timer);
	free(r->servers);
	free(r);
}

static void tell(struct lookup *l, const struct http_address *v, size_t n, const char *problem)
{
	struct resolve_waiter *w;

	while ((w = LIST_FIRST(&l->waiters))) {
		LIST_REMOVE(w, link);
		w->lookup = NULL;
		w->fn(w, v, n, problem);
	}
}

static void on_addresses(void *ctx, int status, int timeouts, struct ares_addrinfo *res)
{
	struct http_address v[HTTP_ADDRESSES_MAX];
	const struct ares_addrinfo_node *node;
	struct lookup *l = ctx;
	size_t n = 0;

	LIST_REMOVE(l, link);
	for (node = res ? res->nodes : NULL; node && n < HTTP_ADDRESSES_MAX; node = node->ai_next) {
		if ((node->ai_family != AF_INET && node->ai_family != AF_INET6) ||
				node->ai_addrlen > sizeof(v[n].sa))
			continue;
		memset(&v[n], 0, sizeof(v[n]));
		memcpy(&v[n].sa, node->ai_addr, node->ai_addrlen);
		v[n++].len = node->ai_addrlen;
	}
	tell(l, v, n, status == ARES_SUCCESS ? "no addresses" : ares_strerror(status));
	if (res)
		ares_freeaddrinfo(res);
	free(l);
}

static bool parse_numeric(const char *host, struct http_address *out)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&out->sa;
	struct sockaddr_in *in = (struct sockaddr_in *)&out->sa;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		out->len = sizeof(*in);
		return true;
	}
	if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		out->len = sizeof(*in6);
		return true;
	}
	return false;
}

static bool is_localhost(const char *host)
{
	struct str h = str_of(host);

	if (str_has_suffix(h, STR(".")))
		h.len--;
	return str_is(h, "localhost") || str_has_suffix(h, STR(".localhost"));
}

void resolver_lookup(struct resolver *r, const char *host, struct resolve_waiter *w, resolve_fn fn)
{
	struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct http_address v[2];
	struct lookup *l;

	w->lookup = NULL;
	w->fn = fn;
	if (parse_numeric(host, &v[0])) {
		fn(w, v, 1, NULL);
		return;
	}
	if (is_localhost(host)) {
		parse_numeric("127.0.0.1", &v[0]);
		parse_numeric("::1", &v[1]);
		fn(w, v, 2, NULL);
		return;
	}
	LIST_FOREACH(l, &r->lookups, link)
		if (strcmp(l->name, host) == 0)
			break;
	if (l) {
		w->lookup = l;
		LIST_INSERT_HEAD(&l->waiters, w, link);
		return;
	}
	renew_channel(r);
	l = calloc(1, sizeof(*l) + strlen(host) + 1);
	if (!l || !r->has_channel) {
		free(l);
		fn(w, NULL, 0, "no resolver");
		return;
	}
	memcpy(l->name, host, strlen(host) + 1);
	l->resolver = r;
	LIST_INIT(&l->waiters);
	LIST_INSERT_HEAD(&r->lookups, l, link);
	w->lookup = l;
	LIST_INSERT_HEAD(&l->waiters, w, link);
	ares_getaddrinfo(
		r->channel, l->name, NULL, &hints, on_addresses, l); /* /etc/hosts answers at once */
	arm_timer(r);
}

void resolver_cancel(struct resolve_waiter *w)
{
	if (!w->lookup)
		return;
	LIST_REMOVE(w, link);
	w->lookup = NULL;
}
