#include "tests/promql/script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

/* ---- lines ---- */

static bool read_all(const char *path, struct buf *out)
{
	FILE *f = fopen(path, "r");
	size_t n;

	if (!f)
		return false;
	while (buf_reserve(out, 65536) && (n = fread(out->ptr + out->len, 1, 65536, f)) > 0)
		out->len += n;
	fclose(f);
	return !buf_failed(out);
}

static struct script_line line_of(struct str text, uint32_t number)
{
	struct script_line l = { .number = number };
	size_t i = 0;

	while (i < text.len && (text.ptr[i] == ' ' || text.ptr[i] == '\t'))
		l.indent = text.ptr[i++] == '\t' ? (l.indent / 8 + 1) * 8 : l.indent + 1;
	l.text = str_trim((struct str){ text.ptr + i, text.len - i });
	return l;
}

bool script_read(struct script *s, const char *path)
{
	bool document = str_has_suffix(str_of(path), STR(".md")), inside = !document;
	size_t cap = 0;
	uint32_t number = 0;

	*s = (struct script){ .file = strdup(path) };
	if (!s->file || !read_all(path, &s->text))
		return false;
	for (size_t at = 0, end; at < s->text.len; at = end + 1) {
		struct script_line l;

		for (end = at; end < s->text.len && s->text.ptr[end] != '\n'; end++)
			;
		l = line_of((struct str){ s->text.ptr + at, end - at }, ++number);
		if (document && str_has_prefix(l.text, STR("```"))) {
			inside = str_is(l.text, "```text");
			continue;
		}
		if (!inside || l.text.len == 0 || l.text.ptr[0] == '#')
			continue;
		if (s->n == cap) {
			cap = cap ? cap * 2 : 256;
			s->lines = realloc(s->lines, cap * sizeof(*s->lines));
			if (!s->lines)
				return false;
		}
		s->lines[s->n++] = l;
	}
	return true;
}

void script_close(struct script *s)
{
	free(s->file);
	free(s->lines);
	buf_release(&s->text);
	buf_release(&s->report);
	*s = (struct script){ 0 };
}

bool script_next(const struct script *s, size_t *at, struct script_statement *out)
{
	if (*at >= s->n)
		return false;
	*out = (struct script_statement){ .line = &s->lines[*at], .body = &s->lines[*at + 1] };
	for (++*at; *at < s->n && s->lines[*at].indent > out->line->indent; ++*at)
		out->n++;
	return true;
}

void script_fault(struct script *s, uint32_t line, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_printf(&s->report, "%s:%u: %s\n", s->file, line, text);
	s->faults++;
}

/* ---- words ---- */

struct str script_word(struct str *rest)
{
	struct str at = str_trim(*rest);
	size_t i = 0, depth = 0;
	bool quoted = false;

	for (; i < at.len && (quoted || depth > 0 || (at.ptr[i] != ' ' && at.ptr[i] != '\t')); i++) {
		char c = at.ptr[i];

		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted && c == '{')
			depth++;
		else if (!quoted && c == '}' && depth > 0)
			depth--;
	}
	i = i < at.len ? i : at.len;
	*rest = (struct str){ at.ptr + i, at.len - i };
	return (struct str){ at.ptr, i };
}

/* Up to the closing quote; *i stands behind the opening one and then behind the closing one. */
static bool unquote(struct arena *a, struct str text, size_t *i, struct str *out)
{
	char *to = arena_alloc_raw(a, text.len + 1, 1);
	size_t n = 0;

	if (!to)
		return false;
	for (; *i < text.len && text.ptr[*i] != '"'; ++*i) {
		if (text.ptr[*i] == '\\' && *i + 1 < text.len)
			++*i;
		to[n++] = text.ptr[*i];
	}
	*out = (struct str){ to, n };
	return (*i)++ < text.len;
}

/* A name, or a text in quotes, up to what ends it. */
static bool take_name(struct arena *a, struct str text, size_t *i, struct str *out)
{
	size_t start = *i;

	if (text.ptr[*i] == '"') {
		++*i;
		return unquote(a, text, i, out);
	}
	while (*i < text.len && text.ptr[*i] != '=' && text.ptr[*i] != ',' && text.ptr[*i] != '}')
		++*i;
	*out = str_trim((struct str){ text.ptr + start, *i - start });
	return true;
}

bool script_labels(struct arena *a, struct str text, struct labels *out)
{
	struct labels_builder b;
	struct str name, value;
	size_t i = 0;
	struct err err;

	labels_builder_init(&b, a, (struct labels){ 0 });
	while (i < text.len && text.ptr[i] != '{')
		i++;
	if (i > 0)
		labels_builder_set(&b, STR(LABEL_NAME), (struct str){ text.ptr, i });
	for (i++; i < text.len && text.ptr[i] != '}';) {
		if (!take_name(a, text, &i, &name))
			return false;
		if (i >= text.len || text.ptr[i] != '=') { /* {"the.name", ...} */
			labels_builder_set(&b, STR(LABEL_NAME), name);
		} else {
			if (i + 1 >= text.len || text.ptr[i + 1] != '"')
				return false;
			i += 2;
			if (!unquote(a, text, &i, &value))
				return false;
			labels_builder_set(&b, name, value);
		}
		while (i < text.len && (text.ptr[i] == ',' || text.ptr[i] == ' '))
			i++;
	}
	return !labels_builder_build(&b, out, &err);
}

bool script_time(struct str text, int64_t *out_ns)
{
	struct err err;

	*out_ns = 0;
	return str_is(text, "0") || !duration_parse(text, out_ns, &err);
}

/* ---- values ---- */

/* Not strtold alone: 0x4 is four times 0. */
static bool take_number(struct str *s, long double *out)
{
	static const char *const words[] = { "NaN", "Inf", "+Inf", "-Inf" };
	static const long double of_words[] = { __builtin_nan(""), __builtin_inf(), __builtin_inf(),
		-__builtin_inf() };
	char text[64];
	size_t i = 0, digits = 0;

	for (size_t w = 0; w < 4; w++)
		if (str_has_prefix(*s, str_of(words[w]))) {
			*out = of_words[w];
			*s = (struct str){ s->ptr + strlen(words[w]), s->len - strlen(words[w]) };
			return true;
		}
	if (i < s->len && (s->ptr[i] == '-' || s->ptr[i] == '+'))
		i++;
	for (; i < s->len && ((s->ptr[i] >= '0' && s->ptr[i] <= '9') || s->ptr[i] == '.'); i++)
		digits++;
	if (i + 1 < s->len && s->ptr[i] == 'e') {
		i += s->ptr[i + 1] == '-' || s->ptr[i + 1] == '+' ? 2 : 1;
		while (i < s->len && s->ptr[i] >= '0' && s->ptr[i] <= '9')
			i++;
	}
	if (digits == 0 || i >= sizeof(text))
		return false;
	memcpy(text, s->ptr, i);
	text[i] = '\0';
	*out = strtold(text, NULL);
	*s = (struct str){ s->ptr + i, s->len - i };
	return true;
}

static bool take(struct str *s, char c)
{
	if (s->len == 0 || s->ptr[0] != c)
		return false;
	*s = (struct str){ s->ptr + 1, s->len - 1 };
	return true;
}

static bool take_numbers(struct str *s, struct script_value *out)
{
	do {
		if (out->n == SCRIPT_TYPES_MAX || !take_number(s, &out->v[out->n]))
			return false;
		out->n++;
	} while (take(s, '/'));
	return true;
}

/* One word: what it begins with, what it grows by, how many more there are. */
static const char *parse_run(
	struct str word, struct script_value *first, struct script_value *step, size_t *more)
{
	uint64_t n;
	bool down;

	*first = *step = (struct script_value){ 0 };
	*more = 0;
	if (str_is(word, "stale")) {
		first->is_stale = true;
		return NULL;
	}
	first->is_gap = take(&word, '_');
	if (!first->is_gap && !take_numbers(&word, first))
		return "no value";
	if (word.len > 0 && (word.ptr[0] == '+' || word.ptr[0] == '-')) {
		down = word.ptr[0] == '-';
		take(&word, word.ptr[0]);
		if (!take_numbers(&word, step) || step->n != first->n)
			return "no step";
		for (unsigned i = 0; i < step->n && down; i++)
			step->v[i] = -step->v[i];
	}
	if (word.len == 0)
		return step->n ? "a step without x and how often" : NULL;
	if (!take(&word, 'x') || !str_to_u64(word, &n) || n > 100000)
		return "no x and how often";
	if (first->is_gap && n == 0)
		return "_x0";
	*more = first->is_gap ? (size_t)n - 1 : (size_t)n;
	return NULL;
}

const char *script_values(struct arena *a, struct str text, struct script_values *out)
{
	struct script_value first, step, *grown;
	struct str word;
	const char *fault;
	size_t more;

	*out = (struct script_values){ 0 };
	while ((word = script_word(&text)).len > 0) {
		if ((fault = parse_run(word, &first, &step, &more)))
			return fault;
		if (!(grown = arena_array(a, struct script_value, out->n + more + 1)))
			return "out of memory";
		if (out->n)
			memcpy(grown, out->v, out->n * sizeof(*grown));
		out->v = grown;
		for (size_t i = 0; i <= more; i++) {
			out->v[out->n] = first;
			for (unsigned k = 0; k < step.n; k++)
				out->v[out->n].v[k] += (long double)i * step.v[k];
			out->n++;
		}
	}
	return NULL;
}
