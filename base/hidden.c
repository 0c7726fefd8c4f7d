#include "base/hidden.h"

#define MARK "xxxxx" /* as Go's URL.Redacted has it */
#define PARAM STR("__param_")

bool hidden_param(struct str name)
{
	static const char *const known[] = { "seconds", "debug", "gc" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (str_is(name, known[i]))
			return false;
	return true;
}

static struct str hidden_cut(struct str s, size_t from, size_t to)
{
	return (struct str){ s.ptr + from, to - from };
}

static size_t hidden_span_to(struct str s, size_t from, const char *stops)
{
	while (from < s.len && !(s.ptr[from] && strchr(stops, s.ptr[from])))
		from++;
	return from;
}

/* name=value pairs; one without "=" may be the secret itself. */
static void hidden_print_query(struct buf *out, struct str query)
{
	for (size_t at = 0; at <= query.len;) {
		size_t end = hidden_span_to(query, at, "&;"), equals = hidden_span_to(query, at, "=&;");
		struct str name = hidden_cut(query, at, equals);
		bool has_value = equals < end;

		if (!hidden_param(name)) {
			buf_add_str(out, hidden_cut(query, at, end));
		} else if (has_value) {
			buf_add_str(out, name);
			buf_add_cstr(out, "=" MARK);
		} else if (name.len) {
			buf_add_cstr(out, MARK);
		}
		if (end < query.len)
			buf_add_char(out, query.ptr[end]);
		at = end + 1;
	}
}

void hidden_print_url(struct buf *out, struct str url)
{
	ptrdiff_t scheme = url.len ? str_find(url, STR("://")) : -1;
	size_t host = scheme < 0 ? 0 : (size_t)scheme + 3, end, at, query;

	end = hidden_span_to(url, host, "/?#");
	for (at = end; at > host && url.ptr[at - 1] != '@'; at--)
		;
	buf_add_str(out, hidden_cut(url, 0, host));
	if (at > host)
		buf_add_cstr(out, MARK "@");
	else
		at = host;
	query = hidden_span_to(url, end, "?#");
	buf_add_str(out, hidden_cut(url, at, query));
	if (query < url.len && url.ptr[query] == '?') {
		end = hidden_span_to(url, query, "#");
		buf_add_char(out, '?');
		hidden_print_query(out, hidden_cut(url, query + 1, end));
		query = end;
	}
	if (query < url.len)
		buf_add_cstr(out, "#" MARK);
}

struct str hidden_url(struct arena *a, struct str url)
{
	struct buf shown = { 0 };
	struct str out = { NULL, 0 };

	if (!url.len)
		return STR("");
	hidden_print_url(&shown, url);
	if (!buf_failed(&shown))
		out = str_eq(buf_str(&shown), url) ? url : str_dup(a, buf_str(&shown));
	buf_release(&shown);
	return out;
}

struct str hidden_label(struct arena *a, struct str name, struct str value)
{
	if (str_has_prefix(name, PARAM))
		return hidden_param(hidden_cut(name, PARAM.len, name.len)) && value.len ?
			STR(HIDDEN_VALUE) :
			value;
	if (str_is(name, "__address__") || str_is(name, "__meta_url"))
		return hidden_url(a, value);
	return value;
}

struct labels hidden_labels(struct arena *a, struct labels l)
{
	struct label *v = NULL;

	for (size_t i = 0; i < l.n; i++) {
		struct str shown = hidden_label(a, l.v[i].name, l.v[i].value);

		if (!shown.ptr && l.v[i].value.ptr)
			return (struct labels){ 0 };
		if (str_eq(shown, l.v[i].value))
			continue;
		if (!v) {
			if (!(v = arena_array(a, struct label, l.n)))
				return (struct labels){ 0 };
			memcpy(v, l.v, l.n * sizeof(*v));
		}
		v[i].value = shown;
	}
	return v ? (struct labels){ v, l.n } : l;
}
