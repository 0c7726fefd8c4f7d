#include "cmd/epitool/run_labels.h"

#include "base/labels.h"

/* Characters of queries, which values do not have. */
static const char query_characters[] = "\"'`{}()~!<>";

/* NAME=VALUE or NAME=~EXPRESSION at the front of a text. */
static bool run_labels_read_name(const char *text, struct run_value *out)
{
	size_t part = strcspn(text, ","), name = strcspn(text, "=");

	if (name >= part)
		return false;
	out->name = (struct str){ text, name };
	out->is_regex = text[name + 1] == '~';
	return label_name_valid(out->name);
}

/* The value, and where it ends; NULL: it has no end, or more than a value is there. */
static const char *run_labels_read_value(const char *text, struct run_value *out)
{
	bool quoted = out->is_regex && *text == '"';
	const char *end;

	text += quoted;
	end = text + strcspn(text, quoted ? "\"" : ",");
	out->value = (struct str){ text, (size_t)(end - text) };
	if (quoted) {
		if (*end != '"' || (end[1] && end[1] != ','))
			return NULL;
		return end + 1;
	}
	for (const char *p = text; p < end; p++)
		if (strchr(out->is_regex ? "\"'`{}" : query_characters, *p))
			return NULL;
	return end;
}

/* out NULL: only whether they are labels. *n: how many there are, which may be more than fit. */
static bool run_labels_walk(const char *text, struct run_labels *out, size_t *n)
{
	struct run_value v = { 0 };

	*n = 0;
	while (*text) {
		if (run_labels_read_name(text, &v))
			text += v.name.len + 1 + v.is_regex;
		else if (!*n || v.is_regex || memchr(text, '=', strcspn(text, ",")))
			return false;
		text = run_labels_read_value(text, &v);
		if (!text)
			return false;
		if (out && *n < RUN_VALUES_MAX)
			out->v[*n] = v;
		++*n;
		text += *text == ',';
	}
	return *n > 0;
}

bool run_labels_are(const char *text)
{
	size_t n;

	return run_labels_walk(text, NULL, &n);
}

static bool run_labels_is_next(const struct run_labels *r, size_t i)
{
	return i + 1 < r->n && r->v[i + 1].name.ptr == r->v[i].name.ptr;
}

enum err_code run_labels_parse(const char *text, struct run_labels *out, struct err *err)
{
	out->several = false;
	if (!run_labels_walk(text, out, &out->n))
		return err_set(err, ERR_INVALID, "%s: no labels of a run", text);
	if (out->n > RUN_VALUES_MAX)
		return err_set(err, ERR_LIMIT, "%.40s...: %zu values, limit %u", text, out->n,
			(unsigned)RUN_VALUES_MAX);
	for (size_t i = 0; i < out->n; i++)
		out->several = out->several || out->v[i].is_regex || run_labels_is_next(out, i);
	return ERR_OK;
}

/* A value within a quoted string; one of several is part of a regular expression. */
static void run_labels_print_value(struct str value, bool literal, struct buf *out)
{
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.ptr[i];

		if (literal && c < 0x80 && strchr("\\.+*?()|[]{}^$", c))
			buf_add_cstr(out, "\\\\");
		if (c == '\\')
			buf_add_char(out, '\\');
		buf_add_char(out, (char)c);
	}
}

void run_labels_print(const struct run_labels *r, struct buf *out)
{
	for (size_t i = 0; i < r->n; i++) {
		bool several = run_labels_is_next(r, i);

		buf_add_str(out, r->v[i].name);
		buf_add_cstr(out, several || r->v[i].is_regex ? "=~\"" : "=\"");
		run_labels_print_value(r->v[i].value, several, out);
		while (run_labels_is_next(r, i)) {
			buf_add_char(out, '|');
			run_labels_print_value(r->v[++i].value, true, out);
		}
		buf_add_cstr(out, "\",");
	}
}
