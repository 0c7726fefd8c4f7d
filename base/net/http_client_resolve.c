/*
 * Names to addresses, by base/net/resolver.h. "localhost" is answered here, so that it works in an
 * empty root directory too (RFC 6761). Lookups of the same name at the same time are one, so that
 * names pile up when DNS is down, not requests. A question cannot be taken back: a lookup without
 * waiters runs to its own end.
 */
#include <ares.h>
#include <arpa/inet.h>
#include <assert.h>
#include <stdlib.h>

#include "base/net/http_client_internal.h"
#include "base/net/resolver.h"

struct lookup {
	LIST_ENTRY(lookup) link;
	LIST_HEAD(, resolve_waiter) waiters;
	char name[];
};

struct lookups {
	struct resolver *resolver;
	LIST_HEAD(, lookup) under_way;
};

enum err_code lookups_open(
	struct event_base *base, const char *servers, struct lookups **out, struct err *err)
{
	struct lookups *ls = calloc(1, sizeof(*ls));
	enum err_code rc;

	if (!ls)
		return err_set(err, ERR_NOMEM, "out of memory for the resolver");
	LIST_INIT(&ls->under_way);
	if ((rc = resolver_open(base, servers, &ls->resolver, err))) {
		free(ls);
		return rc;
	}
	*out = ls;
	return ERR_OK;
}

void lookups_close(struct lookups *ls)
{
	if (!ls)
		return;
	resolver_close(ls->resolver);
	free(ls);
}

static void lookup_tell(
	struct lookup *l, const struct http_address *h, size_t n, const char *problem)
{
	struct resolve_waiter *w;

	assert(n <= HTTP_ADDRESSES_MAX && (n || problem));
	while ((w = LIST_FIRST(&l->waiters))) {
		assert(w->lookup == l);
		LIST_REMOVE(w, link);
		w->lookup = NULL;
		w->fn(w, h, n, problem);
	}
}

static void http_client_resolve_on_addresses(void *ctx, int status, const struct ares_addrinfo *res)
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
	lookup_tell(l, v, n, status == ARES_SUCCESS ? "no addresses" : ares_strerror(status));
	free(l);
}

static bool http_client_resolve_parse_numeric(const char *host, struct http_address *out)
{
	struct sockaddr_in6 *in6 = &out->sa.in6;
	struct sockaddr_in *in = &out->sa.in;

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

static bool http_client_resolve_is_localhost(const char *host)
{
	struct str h = str_of(host);

	if (str_has_suffix(h, STR(".")))
		h.len--;
	return str_is(h, "localhost") || str_has_suffix(h, STR(".localhost"));
}

void lookup_start(struct lookups *ls, const char *host, struct resolve_waiter *w, resolve_fn fn)
{
	struct http_address v[2];
	struct lookup *l;

	w->lookup = NULL;
	w->fn = fn;
	if (http_client_resolve_parse_numeric(host, &v[0])) {
		fn(w, v, 1, NULL);
		return;
	}
	if (http_client_resolve_is_localhost(host)) {
		http_client_resolve_parse_numeric("127.0.0.1", &v[0]);
		http_client_resolve_parse_numeric("::1", &v[1]);
		fn(w, v, 2, NULL);
		return;
	}
	LIST_FOREACH (l, &ls->under_way, link)
		if (strcmp(l->name, host) == 0)
			break;
	if (l) {
		w->lookup = l;
		LIST_INSERT_HEAD(&l->waiters, w, link);
		return;
	}
	l = calloc(1, sizeof(*l) + strlen(host) + 1);
	if (!l) {
		fn(w, NULL, 0, "out of memory");
		return;
	}
	memcpy(l->name, host, strlen(host) + 1);
	LIST_INIT(&l->waiters);
	LIST_INSERT_HEAD(&ls->under_way, l, link);
	w->lookup = l;
	LIST_INSERT_HEAD(&l->waiters, w, link);
	resolver_addresses(ls->resolver, l->name, http_client_resolve_on_addresses,
		l); /* /etc/hosts answers at once */
}

void lookup_cancel(struct resolve_waiter *w)
{
	if (!w->lookup)
		return;
	LIST_REMOVE(w, link);
	w->lookup = NULL;
}
