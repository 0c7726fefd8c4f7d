#include "base/net/http_proxy.h"

#include <stdlib.h>

#include "base/net/http_client_internal.h"
#include "base/net/ip_network.h"
#include "base/net/percent.h"

#define SOCKS_PORT 1080
#define ENTRY_BYTES_MAX 512u /* of a no_proxy list: longer ones name no host */

static struct str http_proxy_cut(struct str s, size_t from, size_t to)
{
	return (struct str){ s.ptr + from, to - from };
}

/* Offset of the last such byte, or -1. */
static ptrdiff_t http_proxy_find_last(struct str s, char c)
{
	const char *at = s.len ? memrchr(s.ptr, c, s.len) : NULL;

	return at ? at - s.ptr : -1;
}

static ptrdiff_t http_proxy_find_first(struct str s, char c)
{
	const char *at = s.len ? memchr(s.ptr, c, s.len) : NULL;

	return at ? at - s.ptr : -1;
}

/* -------------------------------------------------------------------------------------------- */
/* URLs of proxies */

static struct str http_proxy_decoded(struct arena *a, struct str s)
{
	char *p = arena_strndup(a, s.ptr, s.len);

	return (struct str){ p, p ? percent_decode(p, s) : 0 };
}

static enum err_code http_proxy_parse_user(
	struct arena *a, struct str info, struct http_proxy *p, struct err *err)
{
	ptrdiff_t colon = http_proxy_find_first(info, ':');
	size_t n = colon < 0 ? info.len : (size_t)colon;

	p->has_user = true;
	p->user = http_proxy_decoded(a, http_proxy_cut(info, 0, n));
	p->password = http_proxy_decoded(
		a, colon < 0 ? STR("") : http_proxy_cut(info, n + 1, info.len));
	return p->user.ptr && p->password.ptr ? ERR_OK : arena_fail(a, "proxy", err);
}

enum err_code http_proxy_parse(
	struct arena *a, struct str url, bool loose, struct http_proxy *out, struct err *err)
{
	static const struct {
		const char *scheme;
		enum http_proxy_kind kind;
		uint16_t port;
	} rows[] = {
		{ "http", HTTP_PROXY_HTTP, 80 },
		{ "https", HTTP_PROXY_HTTPS, 443 },
		{ "socks5", HTTP_PROXY_SOCKS5, SOCKS_PORT },
		{ "socks5h", HTTP_PROXY_SOCKS5, SOCKS_PORT },
	};
	ptrdiff_t at = url.len     ? str_find(url, STR("://")) : -1;
	struct str scheme = at < 0 ? STR("") : http_proxy_cut(url, 0, (size_t)at);
	struct http_proxy p = { 0 };
	const char *why;
	enum err_code rc;
	size_t end;

	if (url.len > HTTP_URL_BYTES_MAX)
		return err_set(
			err, ERR_LIMIT, "URL of a proxy is %zu bytes, limit %d", url.len, HTTP_URL_BYTES_MAX);
	if (at < 0 && loose)
		scheme = STR("http");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (str_eq_nocase(scheme, str_of(rows[i].scheme))) {
			p.kind = rows[i].kind;
			p.port = rows[i].port;
		}
	if (!p.kind) /* what is before "://" is no secret, but what may be there instead is */
		return http_token_valid(scheme) && scheme.len <= 16 ?
			err_set(err, ERR_INVALID, "proxy scheme \"" STR_FMT "\" is not supported",
				STR_ARG(scheme)) :
			err_set(err, ERR_INVALID,
				"the URL of a proxy begins with http://, https://, socks5:// or socks5h://");
	url = at < 0 ? url : http_proxy_cut(url, (size_t)at + 3, url.len);
	for (end = 0; end < url.len && !(url.ptr[end] && strchr("/?#", url.ptr[end])); end++)
		;
	url = http_proxy_cut(url, 0, end);
	at = http_proxy_find_last(url, '@');
	if (at >= 0 && (rc = http_proxy_parse_user(a, http_proxy_cut(url, 0, (size_t)at), &p, err)))
		return rc;
	url = at < 0 ? url : http_proxy_cut(url, (size_t)at + 1, url.len);
	if ((why = http_authority_parse(url, &p.host, &p.port)))
		return err_set(err, ERR_INVALID, "invalid URL of a proxy: %s", why);
	p.host = http_lower_dup(a, p.host);
	if (!p.host.ptr)
		return arena_fail(a, "proxy", err);
	*out = p;
	return ERR_OK;
}

/* -------------------------------------------------------------------------------------------- */
/* no_proxy */

static bool http_proxy_is_loopback(const struct in6_addr *a)
{
	return IN6_IS_ADDR_LOOPBACK(a) || (ip_address_is_v4(a) && a->s6_addr[12] == 127);
}

/* HOST:PORT or [HOST]:PORT. False: it is neither, so all of it is a host. */
static bool http_proxy_split_port(struct str entry, struct str *host, struct str *port)
{
	ptrdiff_t colon = http_proxy_find_last(entry, ':'), end;

	if (colon < 0)
		return false;
	*port = http_proxy_cut(entry, (size_t)colon + 1, entry.len);
	if (entry.ptr[0] == '[') {
		end = http_proxy_find_first(entry, ']');
		if (end < 0 || end + 1 != colon)
			return false;
		*host = http_proxy_cut(entry, 1, (size_t)end);
	} else {
		*host = http_proxy_cut(entry, 0, (size_t)colon);
		if (http_proxy_find_first(*host, ':') >= 0 || http_proxy_find_first(*host, ']') >= 0)
			return false;
	}
	return http_proxy_find_first(*host, '[') < 0 && http_proxy_find_first(*port, '[') < 0 &&
		http_proxy_find_first(*port, ']') < 0;
}

/* The target as entries are compared with it. */
struct http_proxy_target {
	struct str host, port;
	bool has_address;
	struct in6_addr address;
};

static bool http_proxy_domain_matches(struct str domain, struct str host)
{
	if (str_has_prefix(domain, STR("*.")))
		domain = http_proxy_cut(domain, 1, domain.len);
	if (domain.ptr[0] == '.')
		return str_has_suffix(host, domain);
	return str_eq(host, domain) ||
		(host.len > domain.len && host.ptr[host.len - domain.len - 1] == '.' &&
			str_has_suffix(host, domain));
}

static bool http_proxy_entry_matches(struct str entry, const struct http_proxy_target *t)
{
	struct str host = entry, port = STR("");
	struct in6_addr address;
	struct ip_network network;

	if (ip_network_parse(entry, &network))
		return t->has_address && ip_network_has(&network, t->address);
	if (!http_proxy_split_port(entry, &host, &port)) {
		host = entry;
		port = STR("");
	}
	if (!host.len || (port.len && !str_eq(port, t->port)))
		return false;
	if (ip_address_parse(host, &address))
		return t->has_address && memcmp(&address, &t->address, sizeof(address)) == 0;
	return !t->has_address && http_proxy_domain_matches(host, t->host);
}

/* Takes the next entry off the list. */
static struct str http_proxy_next_entry(struct str *list)
{
	ptrdiff_t comma = http_proxy_find_first(*list, ',');
	size_t n = comma < 0 ? list->len : (size_t)comma;
	struct str entry = str_trim(http_proxy_cut(*list, 0, n));

	*list = http_proxy_cut(*list, n + (comma >= 0), list->len);
	return entry;
}

bool http_proxy_is_bypassed(struct str no_proxy, struct str host, uint16_t port)
{
	char number[8], lower[ENTRY_BYTES_MAX];
	struct http_proxy_target t = { .host = host };
	struct str entry, list;

	snprintf(number, sizeof(number), "%u", port);
	t.port = str_of(number);
	t.has_address = ip_address_parse(host, &t.address);
	if (str_is(host, "localhost") || (t.has_address && http_proxy_is_loopback(&t.address)))
		return true;
	for (list = no_proxy; list.len;) {
		entry = http_proxy_next_entry(&list);
		if (!entry.len || entry.len > sizeof(lower))
			continue;
		for (size_t i = 0; i < entry.len; i++) {
			char c = entry.ptr[i];

			lower[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
		}
		entry.ptr = lower;
		if (str_is(entry, "*") || http_proxy_entry_matches(entry, &t))
			return true;
	}
	return false;
}

/* -------------------------------------------------------------------------------------------- */
/* The choice */

/* Of the first of both that is set and not empty. */
static struct str http_proxy_variable(const char *lower, const char *upper)
{
	const char *v = getenv(lower);

	if (!v || !*v)
		v = getenv(upper);
	return str_of(v ? v : "");
}

static enum err_code http_proxy_from_environment(struct arena *a, bool tls, struct str host,
	uint16_t port, struct http_proxy *out, struct err *err)
{
	struct str url = tls ? http_proxy_variable("https_proxy", "HTTPS_PROXY") :
						   http_proxy_variable("http_proxy", "HTTP_PROXY");
	enum err_code rc;

	if (!url.len || http_proxy_is_bypassed(http_proxy_variable("no_proxy", "NO_PROXY"), host, port))
		return ERR_OK;
	rc = http_proxy_parse(a, url, true, out, err);
	return rc ? err_wrap(err, rc, "%s of the environment", tls ? "HTTPS_PROXY" : "HTTP_PROXY") : rc;
}

enum err_code http_proxy_choose(struct arena *a, const struct http_proxy_config *c, bool tls,
	struct str host, uint16_t port, struct http_proxy *out, struct err *err)
{
	*out = (struct http_proxy){ 0 };
	if (c->from_environment)
		return http_proxy_from_environment(a, tls, host, port, out, err);
	if (!c->url.len || (c->no_proxy.len && http_proxy_is_bypassed(c->no_proxy, host, port)))
		return ERR_OK;
	return http_proxy_parse(a, c->url, c->no_proxy.len > 0, out, err);
}
