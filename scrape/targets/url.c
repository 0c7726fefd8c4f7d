#include "scrape/targets/url.h"

#include <assert.h>

#include "base/array.h"
#include "base/net/percent.h"

/* The index of `name`, or where it is to be inserted. */
static size_t url_query_find(const struct url_query *q, struct str name, bool *found)
{
	size_t i = 0;
	int c = 1;

	while (i < q->n && (c = str_cmp(q->v[i].name, name)) < 0)
		i++;
	*found = i < q->n && c == 0;
	return i;
}

static struct url_param *url_query_insert(struct url_query *q, size_t at, struct str name)
{
	if (!arena_array_room(q->arena, &q->v, q->n, 1, &q->cap)) {
		q->failed = true;
		return NULL;
	}
	assert(at <= q->n);
	memmove(q->v + at + 1, q->v + at, (q->n - at) * sizeof(*q->v));
	q->n++;
	q->v[at] = (struct url_param){ .name = name };
	return &q->v[at];
}

void url_query_set(struct url_query *q, struct str name, const struct str *values, size_t n)
{
	bool found;
	size_t at = url_query_find(q, name, &found);
	struct url_param *p = found ? &q->v[at] : url_query_insert(q, at, name);

	if (p) {
		p->values = values;
		p->n = n;
	}
}

void url_query_set_first(struct url_query *q, struct str name, struct str value)
{
	bool found;
	size_t at = url_query_find(q, name, &found);
	struct url_param *p = found ? &q->v[at] : url_query_insert(q, at, name);
	size_t n = p && p->n ? p->n : 1;
	struct str *values = arena_array(q->arena, struct str, n);

	if (!p || !values) {
		q->failed = true;
		return;
	}
	if (p->n)
		memcpy(values, p->values, p->n * sizeof(*values));
	values[0] = value;
	p->values = values;
	p->n = n;
}

enum err_code url_print(struct buf *out, struct str scheme, struct str address, struct str path,
	const struct url_query *q, struct err *err)
{
	char join = '?';

	buf_add_str(out, scheme);
	buf_add_cstr(out, "://");
	buf_add_str(out, address);
	if (path.len == 0 || path.ptr[0] != '/')
		buf_add_char(out, '/');
	percent_encode(out, path, PERCENT_PATH);
	for (size_t i = 0; i < q->n; i++)
		for (size_t k = 0; k < q->v[i].n; k++) {
			buf_add_char(out, join);
			join = '&';
			percent_encode(out, q->v[i].name, PERCENT_FORM);
			buf_add_char(out, '=');
			percent_encode(out, q->v[i].values[k], PERCENT_FORM);
		}
	if (q->failed || buf_failed(out))
		return err_nomem(err, "URL of a target");
	return ERR_OK;
}

void url_print_with(struct buf *out, struct str url, struct str name, struct str value)
{
	ptrdiff_t mark = str_find(url, STR("?")), end;
	struct str rest = { NULL, 0 }, param;
	struct buf prefix = { 0 };
	char join = '?';

	percent_encode(&prefix, name, PERCENT_FORM);
	buf_add_char(&prefix, '=');
	if (mark >= 0) {
		rest = (struct str){ url.ptr + mark + 1, url.len - (size_t)mark - 1 };
		url.len = (size_t)mark;
	}
	buf_add_str(out, url);
	while (rest.len) {
		end = str_find(rest, STR("&"));
		param = (struct str){ rest.ptr, end < 0 ? rest.len : (size_t)end };
		rest.ptr += param.len + (end >= 0);
		rest.len -= param.len + (end >= 0);
		if (str_has_prefix(param, buf_str(&prefix)))
			continue;
		buf_add_char(out, join);
		buf_add_str(out, param);
		join = '&';
	}
	buf_add_char(out, join);
	buf_add_str(out, buf_str(&prefix));
	percent_encode(out, value, PERCENT_FORM);
	out->failed |= buf_failed(&prefix);
	buf_release(&prefix);
}

bool url_address_valid(struct str address)
{
	for (size_t i = 0; i < address.len; i++)
		if (address.ptr[i] <= ' ' || address.ptr[i] > '~' ||
			strchr("/?#@\\\"<>^`{|}", address.ptr[i]))
			return false;
	return address.len > 0;
}

struct url_parts { /* scheme://host:port rest */
	struct str scheme, host, port, rest;
};

/* host:port split at the last colon that is not inside of brackets. */
static void url_split_host(struct str s, struct str *host, struct str *port)
{
	size_t i = s.len;

	*host = s;
	*port = STR("");
	while (i > 0 && s.ptr[i - 1] != ':' && s.ptr[i - 1] != ']')
		i--;
	if (i > 0 && s.ptr[i - 1] == ':') {
		*port = (struct str){ s.ptr + i, s.len - i };
		*host = (struct str){ s.ptr, i - 1 };
	}
}

static bool url_split(struct str url, struct url_parts *out)
{
	ptrdiff_t at = str_find(url, STR("://"));
	struct str host;
	size_t n = 0;

	if (at < 0)
		return false;
	out->scheme = (struct str){ url.ptr, (size_t)at };
	host = (struct str){ url.ptr + at + 3, url.len - (size_t)at - 3 };
	while (n < host.len && !strchr("/?#", host.ptr[n]))
		n++;
	out->rest = (struct str){ host.ptr + n, host.len - n };
	host.len = n;
	url_split_host(host, &out->host, &out->port);
	return true;
}

void url_print_global(
	struct buf *out, struct str url, struct str listen_address, struct str external_url)
{
	struct url_parts own, external;
	struct str listen_host, listen_port;

	if (!url_split(url, &own) || !url_split(external_url, &external) || !own.port.len ||
		(!str_is(own.host, "localhost") && !str_is(own.host, "127.0.0.1") &&
			!str_is(own.host, "[::1]"))) {
		buf_add_str(out, url);
		return;
	}
	url_split_host(listen_address, &listen_host, &listen_port);
	/* another process on this machine: only the host is replaced */
	if (!str_eq(own.port, listen_port)) {
		external.scheme = own.scheme;
		external.port = own.port;
	}
	buf_add_str(out, external.scheme);
	buf_add_cstr(out, "://");
	buf_add_str(out, external.host);
	if (external.port.len) {
		buf_add_char(out, ':');
		buf_add_str(out, external.port);
	}
	buf_add_str(out, own.rest);
}

void url_add_path(struct buf *out, struct str prefix, struct str path)
{
	while (prefix.len && prefix.ptr[prefix.len - 1] == '/')
		prefix.len--;
	if (prefix.len && prefix.ptr[0] != '/')
		buf_add_char(out, '/');
	buf_add_str(out, prefix);
	if (path.len == 0 || path.ptr[0] != '/')
		buf_add_char(out, '/');
	buf_add_str(out, path);
}

void url_print_symbol(struct buf *out, struct str url, struct str prefix, struct str path)
{
	struct buf whole = { 0 };
	struct url_parts own;
	size_t n = 0;

	if (!url_split(url, &own))
		return;
	while (n < own.rest.len && own.rest.ptr[n] != '?' && own.rest.ptr[n] != '#')
		n++;
	while (n > 0 && own.rest.ptr[n - 1] != '/')
		n--;
	buf_add(out, url.ptr, (size_t)(own.rest.ptr - url.ptr));
	if (path.len) {
		url_add_path(&whole, prefix, path);
		percent_encode(out, buf_str(&whole), PERCENT_PATH);
		out->failed |= buf_failed(&whole);
	} else {
		buf_add(out, own.rest.ptr, n);
		buf_add_cstr(out, n ? "symbol" : "/symbol");
	}
	buf_release(&whole);
}
