#include "web/router/origin.h"

#include <arpa/inet.h>

#include "base/quote.h"

#define HOST_BYTES_MAX 255u

/* "host:port" without its port; an IPv6 address keeps its brackets. */
static struct str origin_without_port(struct str host)
{
	size_t n = host.len;

	while (n && host.ptr[n - 1] >= '0' && host.ptr[n - 1] <= '9')
		n--;
	if (n && n < host.len && host.ptr[n - 1] == ':')
		host.len = n - 1;
	return host;
}

/* Takes "host[:port]" out of "scheme://host[:port]"; *port is the scheme's default. */
static bool origin_split(struct str origin, struct str *host, struct str *port)
{
	static const struct {
		struct str scheme, port;
	} known[] = {
		{ { "http://", 7 }, { ":80", 3 } },
		{ { "https://", 8 }, { ":443", 4 } },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t n = known[i].scheme.len;

		if (origin.len > n && str_eq_nocase((struct str){ origin.ptr, n }, known[i].scheme)) {
			*host = (struct str){ origin.ptr + n, origin.len - n };
			*port = known[i].port;
			return true;
		}
	}
	return false;
}

/* Drops the scheme's default port, which browsers leave out and others may not. */
static struct str origin_drop_port(struct str host, struct str port)
{
	struct str bare = origin_without_port(host);
	struct str rest = { host.ptr + bare.len, host.len - bare.len };

	return str_eq_nocase(rest, port) ? bare : host;
}

static bool origin_is_own(struct str origin, struct str own)
{
	struct str host, port, own_host, own_port;

	return origin_split(origin, &host, &port) && origin_split(own, &own_host, &own_port) &&
		str_eq_nocase(port, own_port) &&
		str_eq_nocase(origin_drop_port(host, port), origin_drop_port(own_host, port));
}

/* The page was loaded from the very host that this request is sent to. */
static bool origin_is_here(struct str origin, struct str here)
{
	struct str host, port;

	return here.len && origin_split(origin, &host, &port) &&
		str_eq_nocase(origin_drop_port(host, port), origin_drop_port(here, port));
}

bool origin_is_foreign(const struct http_in *in, struct str own)
{
	if (in->fetch_site.len) {
		if (str_is(in->fetch_site, "same-origin") || str_is(in->fetch_site, "none"))
			return false;
		return !origin_is_own(in->origin, own);
	}
	return in->origin.len && !origin_is_here(in->origin, in->host) &&
		!origin_is_own(in->origin, own);
}

static bool origin_is_address(struct str host)
{
	char text[HOST_BYTES_MAX + 1];
	struct in6_addr to;

	if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
		host = (struct str){ host.ptr + 1, host.len - 2 };
	if (!host.len || host.len > HOST_BYTES_MAX)
		return false;
	memcpy(text, host.ptr, host.len);
	text[host.len] = '\0';
	return inet_pton(AF_INET, text, &to) == 1 || inet_pton(AF_INET6, text, &to) == 1;
}

bool origin_host_known(struct str host, const struct flag_list *names, struct str own)
{
	struct str bare = origin_without_port(host), own_host, own_port;

	if (origin_is_address(bare) || str_eq_nocase(bare, STR("localhost")))
		return true;
	if (origin_split(own, &own_host, &own_port) &&
		str_eq_nocase(bare, origin_without_port(own_host)))
		return true;
	for (size_t i = 0; names && i < names->n; i++)
		if (str_eq_nocase(host, str_of(names->v[i])) || str_eq_nocase(bare, str_of(names->v[i])))
			return true;
	return false;
}

bool origin_host_allowed(struct str host, const struct flag_list *names, struct str own)
{
	return !names || !names->n || !host.len || origin_host_known(host, names, own);
}

enum err_code origin_check_names(const struct flag_list *names, struct err *err)
{
	for (size_t i = 0; names && i < names->n; i++) {
		struct str name = str_of(names->v[i]), bare = origin_without_port(name);
		bool ok = bare.len && bare.len <= HOST_BYTES_MAX;

		for (size_t k = 0; k < bare.len; k++) {
			char c = bare.ptr[k];

			ok &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
				(c && strchr(".-_[]", c)) || (c == ':' && bare.ptr[0] == '[');
		}
		if (!ok)
			return err_set(
				err, ERR_INVALID, "allowed host %s: neither HOST nor HOST:PORT", QUOTED(name));
	}
	return ERR_OK;
}
