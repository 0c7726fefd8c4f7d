#include <arpa/inet.h>

#include "base/hidden.h"
#include "base/net/http_client_internal.h"
#include "base/net/percent.h"
#include "base/quote.h"

#define HOST_BYTES_MAX 254 /* a name of 253, and the dot of the root */

static enum err_code http_client_url_bad(struct str text, struct err *err, const char *why)
{
	struct buf shown = { 0 };
	enum err_code rc;

	hidden_print_url(&shown, text);
	rc = err_set(err, ERR_INVALID, "invalid URL \"%.*s\": %s",
		(int)(shown.len < 256 ? shown.len : 256), shown.len ? shown.ptr : "", why);
	buf_release(&shown);
	return rc;
}

static char http_client_url_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static struct str http_client_url_cut(struct str s, size_t from, size_t to)
{
	return (struct str){ s.ptr + from, to - from };
}

/* Bytes up to the first of `stops`. */
static size_t http_client_url_span_to(struct str s, const char *stops)
{
	size_t i;

	for (i = 0; i < s.len; i++)
		if (s.ptr[i] && strchr(stops, s.ptr[i]))
			break;
	return i;
}

struct str http_lower_dup(struct arena *a, struct str s)
{
	char *p = arena_strndup(a, s.ptr, s.len);
	size_t i;

	for (i = 0; p && i < s.len; i++)
		p[i] = http_client_url_lower(p[i]);
	return (struct str){ p, s.len };
}

static struct str http_client_url_encode_target(struct arena *a, struct str s)
{
	bool slash = s.len && s.ptr[0] == '/';
	char *p = arena_alloc_raw(a, s.len * 3 + 2, 1);
	size_t n = 0;

	if (!p)
		return (struct str){ NULL, 0 };
	if (!slash)
		p[n++] = '/';
	n += percent_encode_to(p + n, s, PERCENT_TARGET);
	p[n] = '\0';
	return (struct str){ p, n };
}

static bool http_client_url_host_valid(struct str host)
{
	size_t i;

	if (!host.len || host.len > HOST_BYTES_MAX || host.ptr[0] == '.')
		return false;
	for (i = 0; i < host.len; i++) {
		char c = http_client_url_lower(host.ptr[i]);

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_'))
			return false;
	}
	return true;
}

const char *http_authority_parse(struct str auth, struct str *host, uint16_t *port)
{
	size_t end = http_client_url_span_to(auth, ":");
	struct in6_addr in6;
	uint64_t number;
	char ip[64];

	if (auth.len && auth.ptr[0] == '[') {
		end = http_client_url_span_to(auth, "]");
		if (end == auth.len || end - 1 >= sizeof(ip))
			return "missing ']' in host";
		*host = http_client_url_cut(auth, 1, end);
		memcpy(ip, host->ptr, host->len);
		ip[host->len] = '\0';
		if (strlen(ip) != host->len || inet_pton(AF_INET6, ip, &in6) != 1)
			return "not an IPv6 address in brackets";
		end++;
	} else {
		*host = http_client_url_cut(auth, 0, end);
		if (!host->len)
			return "no host";
		if (!http_client_url_host_valid(*host))
			return "invalid character in host name";
	}
	if (end == auth.len || (auth.ptr[end] == ':' && end + 1 == auth.len))
		return NULL;
	if (auth.ptr[end] != ':' ||
		!str_to_u64(http_client_url_cut(auth, end + 1, auth.len), &number) || !number ||
		number > 65535)
		return "invalid port";
	*port = (uint16_t)number;
	return NULL;
}

enum err_code http_url_parse(
	struct arena *a, struct str text, struct http_url *out, struct err *err)
{
	struct http_url u = { 0 };
	struct str rest, auth;
	const char *why;
	size_t n;

	if (text.len > HTTP_URL_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "URL is %zu bytes, limit %d", text.len, HTTP_URL_BYTES_MAX);
	u.tls = str_has_prefix_nocase(text, STR("https://"));
	if (!u.tls && !str_has_prefix_nocase(text, STR("http://")))
		return http_client_url_bad(text, err, "unsupported protocol scheme");
	rest = http_client_url_cut(text, u.tls ? 8 : 7, text.len);
	n = http_client_url_span_to(rest, "/?#");
	auth = http_client_url_cut(rest, 0, n);
	if (http_client_url_span_to(auth, "@") !=
		auth.len) /* the message does not repeat it: it holds a password */
		return err_set(err, ERR_INVALID,
			"invalid URL: user information in a URL is not supported, "
			"use basic_auth");
	u.port = u.tls ? 443 : 80;
	if ((why = http_authority_parse(auth, &u.host, &u.port)))
		return http_client_url_bad(text, err, why);
	u.host = http_lower_dup(a, u.host);
	u.authority = http_lower_dup(a, auth);
	rest = http_client_url_cut(rest, n, rest.len);
	u.target = http_client_url_encode_target(
		a, http_client_url_cut(rest, 0, http_client_url_span_to(rest, "#")));
	if (!u.host.ptr || !u.authority.ptr || !u.target.ptr)
		return arena_fail(a, "URL", err);
	u.text = arena_printf(a, "http%s://%s%s", u.tls ? "s" : "", u.authority.ptr, u.target.ptr);
	if (!u.text)
		return arena_fail(a, "URL", err);
	*out = u;
	return ERR_OK;
}

bool http_url_same_origin(const struct http_url *a, const struct http_url *b)
{
	return a->tls == b->tls && a->port == b->port && str_eq(a->host, b->host);
}

/* RFC 3986, 5.2.4, in place: removes each ".", and each ".." with the segment before it. */
static size_t http_client_url_remove_dots(char *path, size_t n)
{
	size_t in = 0, out = 0, end;

	while (in < n) { /* at a "/" each time */
		end = in + 1;
		while (end < n && path[end] != '/')
			end++;
		if (end - in == 2 && path[in + 1] == '.') {
			if (end == n)
				path[out++] = '/';
		} else if (end - in == 3 && path[in + 1] == '.' && path[in + 2] == '.') {
			while (out && path[--out] != '/')
				;
			if (end == n)
				path[out++] = '/';
		} else {
			memmove(path + out, path + in, end - in);
			out += end - in;
		}
		in = end;
	}
	if (!out)
		path[out++] = '/';
	return out;
}

enum err_code http_url_resolve(struct arena *a, const struct http_url *from, struct str ref,
	struct http_url *out, struct err *err)
{
	size_t path_end = http_client_url_span_to(from->target, "?"), dir_end = path_end;
	const char *scheme = from->tls ? "https:" : "http:";
	struct str path, query;
	struct buf b = { 0 };
	enum err_code rc;
	size_t colon;

	ref = str_trim(ref);
	if (ref.len > HTTP_URL_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "redirect to a URL of %zu bytes, limit %d", ref.len,
			HTTP_URL_BYTES_MAX);
	ref = http_client_url_cut(ref, 0, http_client_url_span_to(ref, "#"));
	colon = http_client_url_span_to(ref, ":/?");
	while (dir_end && from->target.ptr[dir_end - 1] != '/')
		dir_end--;
	if (colon < ref.len && ref.ptr[colon] == ':') {
		buf_add_str(&b, ref);
	} else {
		buf_add_cstr(&b, scheme);
		if (!str_has_prefix(ref, STR("//"))) {
			buf_add_cstr(&b, "//");
			buf_add_str(&b, from->authority);
			if (!ref.len)
				buf_add_str(&b, from->target);
			else if (ref.ptr[0] == '?')
				buf_add(&b, from->target.ptr, path_end);
			else if (ref.ptr[0] != '/')
				buf_add(&b, from->target.ptr, dir_end);
		}
		buf_add_str(&b, ref);
	}
	rc = buf_failed(&b) ? err_nomem(err, "redirect") : http_url_parse(a, buf_str(&b), out, err);
	buf_release(&b);
	if (rc)
		return err_wrap(err, rc, "redirect");
	path_end = http_client_url_span_to(out->target, "?");
	path = str_dup(a, http_client_url_cut(out->target, 0, path_end));
	query = http_client_url_cut(out->target, path_end, out->target.len);
	if (!path.ptr)
		return arena_fail(a, "URL", err);
	path.len = http_client_url_remove_dots((char *)(uintptr_t)path.ptr, path.len);
	out->target.ptr = arena_printf(a, STR_FMT STR_FMT, STR_ARG(path), STR_ARG(query));
	out->target.len = path.len + query.len;
	out->text = out->target.ptr ?
		arena_printf(a, "http%s://%s%s", out->tls ? "s" : "", out->authority.ptr, out->target.ptr) :
		NULL;
	return out->text ? ERR_OK : arena_fail(a, "URL", err);
}

enum err_code http_unix_path_check(struct str path, struct err *err)
{
	if (!path.len || path.ptr[0] != '/' || memchr(path.ptr, '\0', path.len))
		return err_set(err, ERR_INVALID, "%s is not the absolute path of a socket", QUOTED(path));
	if (path.len > HTTP_UNIX_PATH_MAX)
		return err_set(err, ERR_INVALID, "path of a socket is %zu bytes, limit %d: %s", path.len,
			HTTP_UNIX_PATH_MAX, QUOTED(path));
	return ERR_OK;
}
