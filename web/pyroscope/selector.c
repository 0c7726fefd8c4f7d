#include "web/pyroscope/selector.h"

#include "base/quote.h"
#include "promql/syntax/type_names.h"
#include "tsdb/db.h"

#define DELTA STR(":delta")
#define ID_COLONS 4u

/* ---- ids ---- */

void pyroscope_type_print(struct buf *out, const struct profile_type *t)
{
	struct profile_type five = *t;

	five.delta = false;
	profile_type_print(out, &five);
}

static enum err_code pyroscope_read_type(
	struct arena *a, struct str id, struct pyroscope_type *out, struct err *err)
{
	struct type_pattern pattern;
	struct str rest = id;
	size_t colons = 0;
	char *text;

	if (!str_is_utf8(id))
		return err_set(err, ERR_INVALID, "profile type %s is not UTF-8", QUOTED(id));
	for (size_t i = 0; i < id.len; i++)
		colons += id.ptr[i] == ':';
	*out = (struct pyroscope_type){ .delta_only = colons == ID_COLONS + 1 &&
			str_has_suffix(id, DELTA) };
	if (out->delta_only) {
		rest.len -= DELTA.len;
		colons--;
	}
	out->name = (struct str){ id.ptr, 0 };
	while (out->name.len < rest.len && rest.ptr[out->name.len] != ':')
		out->name.len++;
	if (colons != ID_COLONS || out->name.len == 0)
		return err_set(err, ERR_INVALID,
			"profile type %s is not <name>:<sample type>:<sample unit>:<period "
			"type>:<period unit>",
			QUOTED(id));
	rest.ptr += out->name.len;
	rest.len -= out->name.len;
	if (type_pattern_parse(out->name, &pattern))
		out->name = pattern.name;
	text = arena_printf(a, STR_FMT STR_FMT, STR_ARG(out->name), STR_ARG(rest));
	if (!text)
		return arena_fail(a, "profile type", err);
	out->id = str_of(text);
	return ERR_OK;
}

static bool pyroscope_type_fits(const struct pyroscope_type *p, const struct profile_type *t)
{
	struct buf id = { 0 };
	bool fits;

	if (p->delta_only && !t->delta)
		return false;
	pyroscope_type_print(&id, t);
	fits = str_eq(buf_str(&id), p->id);
	buf_release(&id);
	return fits;
}

bool pyroscope_selector_fits(const struct pyroscope_selector *s, const struct profile_type *t)
{
	for (size_t i = 0; i < s->types_n; i++)
		if (!pyroscope_type_fits(&s->types[i], t))
			return false;
	return true;
}

/* ---- selectors ---- */

static enum err_code pyroscope_add_type(
	struct arena *a, struct pyroscope_selector *s, struct str id, struct err *err)
{
	if (s->types_n == PYROSCOPE_TYPES_MAX)
		return err_set(err, ERR_INVALID, "more than %u profile types", PYROSCOPE_TYPES_MAX);
	return pyroscope_read_type(a, id, &s->types[s->types_n++], err);
}

struct str pyroscope_label(struct str name)
{
	return str_is(name, LABEL_SERVICE_NAME) ? STR(LABEL_SERVICE) : name;
}

/* Copies the matchers; those on the type become types. */
static enum err_code pyroscope_take_matchers(
	struct arena *a, struct pyroscope_selector *s, const struct selector *from, struct err *err)
{
	enum err_code rc;

	if (!(s->matchers = arena_array(a, struct matcher, from->matchers_n + 1)))
		return arena_fail(a, "selector", err);
	for (size_t i = 0; i < from->matchers_n; i++) {
		const struct matcher *m = &from->matchers[i];

		if (!str_is(m->name, PYROSCOPE_TYPE_LABEL)) {
			s->matchers[s->matchers_n] = *m;
			s->matchers[s->matchers_n++].name = pyroscope_label(m->name);
			continue;
		}
		if (m->op != MATCH_EQ)
			return err_set(err, ERR_INVALID,
				PYROSCOPE_TYPE_LABEL " can only be matched by =, not by %s", match_op_name(m->op));
		if ((rc = pyroscope_add_type(a, s, m->value, err)))
			return rc;
	}
	return ERR_OK;
}

static enum err_code pyroscope_read_braces(
	struct arena *a, struct str text, struct pyroscope_selector *s, struct err *err)
{
	const struct expr *e;
	enum err_code rc;

	if ((rc = parse_query(a, text, &s->parsed, NULL, err)))
		return rc;
	e = s->parsed->root;
	if (e->kind != EXPR_SELECTOR || e->selector.name.len || e->selector.window_ns ||
		time_shift_any(&e->selector.shift))
		return err_set(err, ERR_INVALID, "expected {label=\"value\", ...}");
	return pyroscope_take_matchers(a, s, &e->selector, err);
}

enum err_code pyroscope_selector_read(struct arena *a, struct str type_id, struct str text,
	struct pyroscope_selector *out, struct err *err)
{
	struct str braces = str_trim(text), name = braces;
	ptrdiff_t at = str_find(braces, STR("{"));
	enum err_code rc = ERR_OK;

	*out = (struct pyroscope_selector){ 0 };
	if (at >= 0) {
		name = str_trim((struct str){ braces.ptr, (size_t)at });
		braces.ptr += at;
		braces.len -= (size_t)at;
	} else {
		braces = (struct str){ 0 };
	}
	type_id = str_trim(type_id);
	if (type_id.len)
		rc = pyroscope_add_type(a, out, type_id, err);
	if (!rc && name.len)
		rc = pyroscope_add_type(a, out, name, err);
	if (!rc && braces.len)
		rc = pyroscope_read_braces(a, braces, out, err);
	if (!rc)
		return ERR_OK;
	pyroscope_selector_release(out);
	return err_wrap(err, rc, "selector %s", QUOTED(text));
}

void pyroscope_selector_release(struct pyroscope_selector *s)
{
	parsed_release(s->parsed);
	*s = (struct pyroscope_selector){ 0 };
}

/* Writes a regular expression that matches exactly the text. */
static void pyroscope_add_literal(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		bool plain = c == '_' || c == ':' || c >= 0x80 || (c >= '0' && c <= '9') ||
			(c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');

		if (!plain && c >= ' ' && c < 0x7f)
			buf_add_char(out, '\\');
		buf_add_char(out, (char)c);
	}
}

void pyroscope_selector_print(struct buf *out, const struct pyroscope_selector *s)
{
	struct buf re = { 0 };
	const char *comma = "";

	buf_add_char(out, '{');
	for (size_t i = 0; i < s->types_n; i++) {
		buf_clear(&re);
		pyroscope_add_literal(&re, s->types[i].id);
		buf_add_cstr(&re, s->types[i].delta_only ? ":delta" : "(:delta)?");
		buf_printf(out, "%s" LABEL_NAME "=", comma);
		buf_add_quoted(out, s->types[i].name);
		buf_add_cstr(out, ",__type__=~");
		buf_add_quoted(out, buf_str(&re));
		comma = ",";
	}
	for (size_t i = 0; i < s->matchers_n; i++) {
		buf_add_cstr(out, comma);
		matcher_print(out, &s->matchers[i]);
		comma = ",";
	}
	buf_add_char(out, '}');
	out->failed |= re.failed;
	buf_release(&re);
}
