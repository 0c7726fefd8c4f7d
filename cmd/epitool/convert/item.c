#include "cmd/epitool/convert/item.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/quote.h"

#define FLOW_BYTES_MAX 80u /* of a list of scalars on one line */

void conversion_init(struct conversion *c, struct arena *a, const char *file, struct str source)
{
	*c = (struct conversion){ .arena = a, .file = file, .source = source };
	c->notes_tail = &c->notes;
	c->root = item_add(c, NULL, STR(""), YAML_MAPPING);
}

struct item *item_add(struct conversion *c, struct item *to, struct str key, enum yaml_kind kind)
{
	struct item *i = arena_new(c->arena, struct item);

	if (!i) {
		c->failed = true;
		i = &c->spare;
		*i = (struct item){ 0 };
		to = NULL;
	}
	i->kind = kind;
	i->key = key;
	i->tail = &i->child;
	if (to && to != &c->spare)
		item_append(to, i);
	return i;
}

void item_append(struct item *to, struct item *i)
{
	*to->tail = i;
	to->tail = &i->next;
}

struct item *item_mapping(struct conversion *c, struct item *to, const char *key)
{
	return item_add(c, to, str_of(key), YAML_MAPPING);
}

struct item *item_sequence(struct conversion *c, struct item *to, const char *key)
{
	return item_add(c, to, str_of(key), YAML_SEQUENCE);
}

struct item *item_string(struct conversion *c, struct item *to, const char *key, struct str text)
{
	struct item *i = item_add(c, to, str_of(key), YAML_SCALAR);

	i->text = text;
	return i;
}

struct item *item_plain(struct conversion *c, struct item *to, const char *key, struct str text)
{
	struct item *i = item_string(c, to, key, text);

	i->plain = true;
	return i;
}

struct item *item_find(struct item *mapping, const char *key)
{
	struct item *i;

	for (i = mapping->child; i; i = i->next)
		if (!i->left_out && str_is(i->key, key))
			return i;
	return NULL;
}

/* ---- comments and notes ---- */

static const char *convert_format(struct conversion *c, const char *fmt, va_list ap)
{
	char text[1024], *made;

	vsnprintf(text, sizeof(text), fmt, ap);
	made = arena_strndup(c->arena, text, strlen(text));
	c->failed |= !made;
	return made ? made : "";
}

static void convert_add_above(struct conversion *c, struct item *i, const char *text)
{
	char *made = i->above.len ? arena_printf(c->arena, STR_FMT "\n%s", STR_ARG(i->above), text) :
								NULL;

	c->failed |= i->above.len && !made;
	i->above = str_of(made ? made : text);
}

static void convert_add_note(struct conversion *c, uint32_t line, uint32_t column, const char *text)
{
	struct note *n = arena_new(c->arena, struct note);

	if (!n) {
		c->failed = true;
		return;
	}
	*n = (struct note){ .line = line, .column = column, .text = text };
	*c->notes_tail = n;
	c->notes_tail = &n->next;
}

void item_comment(struct conversion *c, struct item *i, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	convert_add_above(c, i, convert_format(c, fmt, ap));
	va_end(ap);
}

void item_note(
	struct conversion *c, struct item *i, uint32_t line, uint32_t column, const char *fmt, ...)
{
	const char *text;
	va_list ap;

	va_start(ap, fmt);
	text = convert_format(c, fmt, ap);
	va_end(ap);
	convert_add_above(c, i, text);
	convert_add_note(c, line, column, text);
}

void item_leave_out(struct conversion *c, struct item *i, uint32_t line, uint32_t column,
	const char *what, const char *fmt, ...)
{
	const char *why;
	char *note;
	va_list ap;

	va_start(ap, fmt);
	why = convert_format(c, fmt, ap);
	va_end(ap);
	note = arena_printf(c->arena, "%s is left out: %s", what, why);
	c->failed |= !note;
	if (i->reason_only)
		convert_add_above(c, i, note ? note : why);
	else
		item_comment(c, i, "left out: %s", why);
	convert_add_note(c, line, column, note ? note : why);
	i->left_out = true;
}

/* ---- printing ---- */

static void convert_add_scalar(struct buf *out, struct str text, bool plain)
{
	const struct yaml_node n = { .kind = YAML_SCALAR, .text = text, .plain = plain };

	if (!text.len) {
		buf_add_cstr(out, plain ? "null" : "\"\"");
		return;
	}
	yaml_print(out, &n, NULL);
	if (out->len && out->ptr[out->len - 1] == '\n')
		out->len--;
}

static void convert_indent(struct buf *out, unsigned level)
{
	while (level--)
		buf_add_cstr(out, "  ");
}

/* YAML has no control characters, nor bytes that are not UTF-8, in comments either. */
static void convert_add_comment_text(struct buf *out, struct str s)
{
	while (s.len) {
		const char *tab = memchr(s.ptr, '\t', s.len);
		size_t n = tab ? (size_t)(tab - s.ptr) : s.len;

		buf_add_printable(out, (struct str){ s.ptr, n });
		if (tab)
			buf_add_char(out, '\t');
		n += tab != NULL;
		s = (struct str){ s.ptr + n, s.len - n };
	}
}

/* Each line behind "# ". */
static void convert_add_comment(struct buf *out, struct str lines, unsigned level)
{
	while (lines.len) {
		const char *end = memchr(lines.ptr, '\n', lines.len);
		size_t n = end ? (size_t)(end - lines.ptr) : lines.len;

		convert_indent(out, level);
		buf_add_char(out, '#');
		if (n)
			buf_add_char(out, ' ');
		convert_add_comment_text(out, (struct str){ lines.ptr, n });
		buf_add_char(out, '\n');
		n += end != NULL;
		lines = (struct str){ lines.ptr + n, lines.len - n };
	}
}

/* Scalars without comments, each fit for a flow list. */
static bool convert_fits_in_flow(const struct item *list)
{
	size_t bytes = 0;

	for (const struct item *i = list->child; i; i = i->next) {
		bytes += i->text.len + 2;
		if (i->kind != YAML_SCALAR || i->above.len || i->behind.len || i->left_out ||
			bytes > FLOW_BYTES_MAX)
			return false;
	}
	return true;
}

static void convert_add_flow_scalar(struct buf *out, const struct item *i)
{
	bool unsafe = false;

	for (size_t k = 0; k < i->text.len; k++)
		unsafe = unsafe || strchr(",[]{}", i->text.ptr[k]);
	if (unsafe) /* quotes are not asked for, so they come only around what needs them in a block */
		buf_add_char(out, '\'');
	for (size_t k = 0; unsafe && k < i->text.len; k++)
		buf_printf(out, i->text.ptr[k] == '\'' ? "''" : "%c", i->text.ptr[k]);
	if (unsafe)
		buf_add_char(out, '\'');
	else
		convert_add_scalar(out, i->text, i->plain);
}

static bool convert_is_printable(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] < ' ' || (unsigned char)s.ptr[i] >= 0x7f)
			return false;
	return true;
}

static void convert_add_flow(struct buf *out, const struct item *list)
{
	buf_add_char(out, '[');
	for (const struct item *i = list->child; i; i = i->next) {
		if (i != list->child)
			buf_add_cstr(out, ", ");
		if (convert_is_printable(i->text))
			convert_add_flow_scalar(out, i);
		else
			convert_add_scalar(out, i->text, false);
	}
	buf_add_char(out, ']');
}

static bool convert_has_children(const struct item *i) /* that are no comments */
{
	const struct item *c = i->child;

	while (c && c->left_out)
		c = c->next;
	return c != NULL;
}

static void convert_print_children(
	struct buf *out, const struct item *of, unsigned level, bool inline_first);

/* The value behind "key:" or "- ", to the end of its line or of its lines. */
static void convert_print_value(struct buf *out, const struct item *i, unsigned level, bool in_list)
{
	bool flow = i->kind == YAML_SEQUENCE && convert_has_children(i) && convert_fits_in_flow(i);
	bool block = i->kind != YAML_SCALAR && !flow && convert_has_children(i);
	bool first_is_plain = block && !i->child->above.len && !i->child->left_out;

	if (!in_list && !block)
		buf_add_char(out, ' ');
	if (i->kind == YAML_SCALAR)
		convert_add_scalar(out, i->text, i->plain);
	else if (flow)
		convert_add_flow(out, i);
	else if (!block)
		buf_add_cstr(out, i->kind == YAML_SEQUENCE ? "[]" : "{}");
	if (i->behind.len && (!block || !in_list)) {
		buf_add_cstr(out, " # ");
		convert_add_comment_text(out, i->behind);
	}
	if (block && in_list && first_is_plain) {
		convert_print_children(out, i, level + 1, true);
		return;
	}
	while (out->len && out->ptr[out->len - 1] == ' ') /* of "- " */
		out->len--;
	buf_add_char(out, '\n');
	/* what is left out below an empty collection */
	if (i->kind != YAML_SCALAR && !flow)
		convert_print_children(out, i, level + 1, false);
}

static void convert_print_left_out(struct buf *out, const struct item *i, unsigned level)
{
	struct item shown = *i;
	struct buf text = { 0 };

	shown.left_out = false;
	shown.above = (struct str){ 0 };
	shown.next = NULL;
	if (i->key.len) {
		convert_add_scalar(&text, i->key, true);
		buf_add_char(&text, ':');
	} else {
		buf_add_cstr(&text, "- ");
	}
	convert_print_value(&text, &shown, 0, !i->key.len);
	convert_add_comment(out, str_trim(buf_str(&text)), level);
	out->failed |= buf_failed(&text);
	buf_release(&text);
}

/* Recursion ends with the input's nesting. inline_first: the first line continues "- ". */
static void convert_print_children(
	struct buf *out, const struct item *of, unsigned level, bool inline_first)
{
	for (const struct item *i = of->child; i; i = i->next) {
		convert_add_comment(out, i->above, level);
		if (i->left_out) {
			if (!i->reason_only)
				convert_print_left_out(out, i, level);
			continue;
		}
		if (!inline_first || i != of->child)
			convert_indent(out, level);
		if (of->kind == YAML_SEQUENCE) {
			buf_add_cstr(out, "- ");
		} else {
			convert_add_scalar(out, i->key, true);
			buf_add_char(out, ':');
		}
		convert_print_value(out, i, level, of->kind == YAML_SEQUENCE);
	}
}

void items_print(struct buf *out, const struct conversion *c)
{
	convert_add_comment(out, c->root->above, 0);
	convert_print_children(out, c->root, 0, false);
	if (!convert_has_children(c->root))
		buf_add_cstr(out, "scrape_configs: []\n");
}
