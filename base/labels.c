#include "base/labels.h"

#include <assert.h>

#include "base/array.h"
#include "base/json.h"
#include "base/map.h"
#include "base/quote.h"

/* labels_decode checks the same. */
bool labels_are_set(struct labels ls)
{
	for (size_t i = 0; i < ls.n; i++)
		if (!ls.v[i].value.len || (i && str_cmp(ls.v[i - 1].name, ls.v[i].name) >= 0))
			return false;
	return true;
}

/* Index of the first label whose name is not below `name`. */
static size_t label_lower_bound(const struct label *l, size_t n, struct str name)
{
	size_t lo = 0, hi = n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (str_cmp(l[mid].name, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static const struct label *label_find(const struct label *l, size_t n, struct str name)
{
	size_t i = label_lower_bound(l, n, name);

	return i < n && str_eq(l[i].name, name) ? &l[i] : NULL;
}

bool label_is_service(struct str name)
{
	return str_is(name, LABEL_SERVICE);
}

static const struct label *labels_find(struct labels ls, struct str name)
{
	const struct label *l = label_find(ls.v, ls.n, name);

	if (l || !label_is_service(name))
		return l;
	l = label_find(ls.v, ls.n, STR(LABEL_SERVICE_NAME));
	return l ? l : label_find(ls.v, ls.n, STR(LABEL_SERVICE_ELSE));
}

struct str labels_get(struct labels ls, struct str name)
{
	const struct label *l = labels_find(ls, name);

	return l ? l->value : STR("");
}

bool labels_has(struct labels ls, struct str name)
{
	return labels_find(ls, name) != NULL;
}

size_t labels_pick(struct labels ls, const struct str *names, size_t n, struct label *out)
{
	const struct label *l;
	size_t picked = 0;

	for (size_t i = 0; i < n; i++)
		if ((l = labels_find(ls, names[i])))
			out[picked++] = *l;
	return picked;
}

int labels_cmp(struct labels a, struct labels b)
{
	size_t i, n = a.n < b.n ? a.n : b.n;
	int c;

	for (i = 0; i < n; i++)
		if ((c = str_cmp(a.v[i].name, b.v[i].name)) || (c = str_cmp(a.v[i].value, b.v[i].value)))
			return c;
	return (a.n > b.n) - (a.n < b.n);
}

bool labels_eq(struct labels a, struct labels b)
{
	size_t i;

	if (a.n != b.n)
		return false;
	for (i = 0; i < a.n; i++)
		if (!str_eq(a.v[i].name, b.v[i].name) || !str_eq(a.v[i].value, b.v[i].value))
			return false;
	return true;
}

/* Each string's hash is the seed of the next, so the borders between strings count. */
uint64_t labels_hash(struct labels ls)
{
	uint64_t h = ls.n;
	size_t i;

	for (i = 0; i < ls.n; i++) {
		h = hash_bytes(ls.v[i].name.ptr, ls.v[i].name.len, h);
		h = hash_bytes(ls.v[i].value.ptr, ls.v[i].value.len, h);
	}
	return h;
}

/* True if the name can be written without quotes in front of the braces. */
static bool labels_is_bare_name(struct str s)
{
	size_t i;

	for (i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
				(i > 0 && c >= '0' && c <= '9')))
			return false;
	}
	return s.len > 0;
}

static void labels_add_name(struct buf *out, struct str name)
{
	if (label_name_valid(name))
		buf_add_str(out, name);
	else
		buf_add_quoted(out, name);
}

void labels_write_json(struct json *j, struct labels ls)
{
	json_object(j);
	for (size_t i = 0; i < ls.n; i++) {
		json_key_str(j, ls.v[i].name);
		json_str(j, ls.v[i].value);
	}
	json_object_end(j);
}

void labels_print(struct buf *out, struct labels ls)
{
	struct str name = labels_get(ls, STR(LABEL_NAME));
	bool bare = labels_is_bare_name(name), first = true;
	size_t i;

	if (bare)
		buf_add_str(out, name);
	if (bare && ls.n == 1)
		return;
	buf_add_char(out, '{');
	for (i = 0; i < ls.n; i++) {
		if (bare && str_is(ls.v[i].name, LABEL_NAME))
			continue;
		if (!first)
			buf_add_cstr(out, ", ");
		first = false;
		labels_add_name(out, ls.v[i].name);
		buf_add_char(out, '=');
		buf_add_quoted(out, ls.v[i].value);
	}
	buf_add_char(out, '}');
}

static struct str labels_put(char **to, struct str text)
{
	struct str put = { *to, text.len };

	if (text.len) /* an empty one may have no bytes */
		memcpy(*to, text.ptr, text.len);
	*to += text.len;
	return put;
}

/* One allocation for all bytes and one for the array. */
struct labels labels_dup(struct arena *a, struct labels ls)
{
	struct label *v;
	size_t i, bytes = 0;
	char *p;

	if (!ls.n)
		return (struct labels){ NULL, 0 };
	for (i = 0; i < ls.n; i++)
		bytes += ls.v[i].name.len + ls.v[i].value.len;
	v = arena_alloc_raw(a, ls.n, sizeof(*v));
	p = arena_alloc_raw(a, bytes, 1);
	if (!v || !p)
		return (struct labels){ NULL, ls.n };
	for (i = 0; i < ls.n; i++) {
		v[i].name = labels_put(&p, ls.v[i].name);
		v[i].value = labels_put(&p, ls.v[i].value);
	}
	return (struct labels){ v, ls.n };
}

void labels_encode(struct buf *out, struct labels ls)
{
	size_t i;

	assert(labels_are_set(ls));
	buf_add_varint(out, ls.n);
	for (i = 0; i < ls.n; i++) {
		buf_add_lenstr(out, ls.v[i].name);
		buf_add_lenstr(out, ls.v[i].value);
	}
}

/* Checks that it is a set: the bytes may come from a damaged disk. */
enum err_code labels_decode(struct arena *a, struct cursor *in, struct labels *out, struct err *err)
{
	uint64_t n = cursor_varint(in), i;
	struct labels ls = { NULL, 0 };
	struct label *v;

	if (in->bad || n > cursor_left(in) / 3) /* two lengths and a byte of value at least */
		return err_set(err, ERR_CORRUPT, "labels: cut short");
	v = arena_alloc_raw(a, n, sizeof(*v));
	if (!v)
		return arena_fail(a, "labels", err);
	for (i = 0; i < n; i++) {
		v[i].name = cursor_lenstr(in);
		v[i].value = cursor_lenstr(in);
		if (in->bad)
			return err_set(err, ERR_CORRUPT, "labels: cut short");
		if (!v[i].value.len)
			return err_set(err, ERR_CORRUPT, "labels: empty value of %s", QUOTED(v[i].name));
		if (i && str_cmp(v[i - 1].name, v[i].name) >= 0)
			return err_set(
				err, ERR_CORRUPT, "labels: %s after %s", QUOTED(v[i].name), QUOTED(v[i - 1].name));
	}
	ls = labels_dup(a, (struct labels){ v, n });
	if (n && !ls.v)
		return arena_fail(a, "labels", err);
	*out = ls;
	return ERR_OK;
}

bool label_name_valid(struct str name)
{
	return labels_is_bare_name(name) && !memchr(name.ptr, ':', name.len);
}

bool series_name_valid(struct str name)
{
	return labels_is_bare_name(name);
}

bool any_name_valid(struct str name)
{
	return name.len > 0 && str_is_utf8(name);
}

bool label_value_valid(struct str value)
{
	return str_is_utf8(value);
}

struct str label_name_sanitized(struct arena *a, const char *prefix, struct str name)
{
	size_t n = strlen(prefix);
	char *p = arena_alloc_raw(a, n + name.len + 1, 1);

	if (!p)
		return (struct str){ NULL, 0 };
	memcpy(p, prefix, n);
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];

		if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
			p[n++] = (char)c;
		else if ((c & 0xc0) != 0x80) /* no byte inside of a character */
			p[n++] = '_';
	}
	p[n] = '\0';
	return (struct str){ p, n };
}

void labels_builder_init(struct labels_builder *b, struct arena *a, struct labels base)
{
	*b = (struct labels_builder){ .arena = a, .cap = base.n + 8 };
	b->v = arena_alloc_raw(a, b->cap, sizeof(*b->v));
	if (!b->v) {
		b->failed = true;
		b->cap = 0;
		return;
	}
	if (base.n)
		memcpy(b->v, base.v, base.n * sizeof(*b->v));
	b->n = base.n;
}

void labels_builder_set(struct labels_builder *b, struct str name, struct str value)
{
	size_t i;

	if (!value.len) {
		labels_builder_del(b, name);
		return;
	}
	i = label_lower_bound(b->v, b->n, name);
	if (i < b->n && str_eq(b->v[i].name, name)) {
		b->v[i].value = value;
		return;
	}
	if (b->failed || !arena_array_room(b->arena, &b->v, b->n, 1, &b->cap)) {
		b->failed = true;
		return;
	}
	memmove(b->v + i + 1, b->v + i, (b->n - i) * sizeof(*b->v));
	b->v[i] = (struct label){ name, value };
	b->n++;
}

void labels_builder_del(struct labels_builder *b, struct str name)
{
	size_t i = label_lower_bound(b->v, b->n, name);

	if (i == b->n || !str_eq(b->v[i].name, name))
		return;
	b->n--;
	memmove(b->v + i, b->v + i + 1, (b->n - i) * sizeof(*b->v));
}

struct str labels_builder_get(const struct labels_builder *b, struct str name)
{
	return labels_get((struct labels){ b->v, b->n }, name);
}

enum err_code labels_builder_build(struct labels_builder *b, struct labels *out, struct err *err)
{
	struct label *v;

	if (b->failed)
		return arena_fail(b->arena, "labels", err);
	v = arena_alloc_raw(b->arena, b->n, sizeof(*v));
	if (!v)
		return arena_fail(b->arena, "labels", err);
	if (b->n)
		memcpy(v, b->v, b->n * sizeof(*v));
	*out = (struct labels){ v, b->n };
	return ERR_OK;
}
