/* Recursive descent, one token ahead; recursion ends at ALLOY_DEPTH_MAX. */
#include "base/quote.h"
#include "cmd/epitool/convert/alloy_lexer.h"

struct convert_parser {
	struct alloy_lexer lexer;
	struct alloy_token now;
	const char *last_end; /* of the token before */
	struct err *err;
	unsigned depth, open; /* nesting; brackets in which lines do not end statements */
	size_t nodes;
};

static enum err_code convert_parser_fail(
	const struct convert_parser *p, enum err_code rc, const char *what)
{
	return err_set(p->err, rc, "%s:%u:%u: %s", p->lexer.file, p->now.line, p->now.column, what);
}

static enum err_code convert_parser_expected(const struct convert_parser *p, const char *what)
{
	struct str text = { p->now.begin, (size_t)(p->now.end - p->now.begin) };

	return err_set(p->err, ERR_INVALID, "%s:%u:%u: expected %s, found %s", p->lexer.file,
		p->now.line, p->now.column, what,
		p->now.kind == TOKEN_END         ? "the end of the file" :
			p->now.kind == TOKEN_NEWLINE ? "the end of the line" :
										   QUOTED(text));
}

static enum err_code convert_parser_advance(struct convert_parser *p)
{
	enum err_code rc;

	p->last_end = p->now.end;
	if (p->now.kind != TOKEN_NEWLINE)
		p->lexer.comment = (struct str){ 0 };
	do {
		if ((rc = alloy_next(&p->lexer, &p->now, p->err)))
			return rc;
	} while (p->open && p->now.kind == TOKEN_NEWLINE);
	return ERR_OK;
}

static enum err_code convert_parser_skip_lines(struct convert_parser *p)
{
	enum err_code rc = ERR_OK;

	while (!rc && p->now.kind == TOKEN_NEWLINE)
		rc = convert_parser_advance(p);
	return rc;
}

static bool convert_parser_is_at(const struct convert_parser *p, const char *punctuation)
{
	return p->now.kind == TOKEN_PUNCTUATION && str_is(p->now.text, punctuation);
}

static enum err_code convert_parser_take(
	struct convert_parser *p, const char *punctuation, const char *what)
{
	return convert_parser_is_at(p, punctuation) ? convert_parser_advance(p) :
												  convert_parser_expected(p, what);
}

static enum err_code convert_parser_count_node(struct convert_parser *p)
{
	if (++p->nodes > ALLOY_NODES_MAX)
		return err_set(p->err, ERR_LIMIT, "%s:%u:%u: more than %u expressions and statements",
			p->lexer.file, p->now.line, p->now.column, ALLOY_NODES_MAX);
	return ERR_OK;
}

static enum err_code convert_parser_enter(struct convert_parser *p)
{
	if (++p->depth > ALLOY_DEPTH_MAX)
		return err_set(p->err, ERR_LIMIT, "%s:%u:%u: nested too deeply, limit %d levels",
			p->lexer.file, p->now.line, p->now.column, ALLOY_DEPTH_MAX);
	return ERR_OK;
}

/* ---- expressions ---- */

static enum err_code convert_parser_new_expr(
	struct convert_parser *p, enum alloy_kind kind, struct alloy_expr **out)
{
	enum err_code rc = convert_parser_count_node(p);

	if (rc)
		return rc;
	*out = arena_new(p->lexer.arena, struct alloy_expr);
	if (!*out)
		return arena_fail(p->lexer.arena, p->lexer.file, p->err);
	(*out)->kind = kind;
	(*out)->line = p->now.line;
	(*out)->column = p->now.column;
	(*out)->text = p->now.text;
	(*out)->source.ptr = p->now.begin;
	return ERR_OK;
}

static void convert_parser_end_expr(const struct convert_parser *p, struct alloy_expr *e)
{
	e->source.len = (size_t)(p->last_end - e->source.ptr);
}

static enum err_code convert_parser_parse_binary(
	struct convert_parser *p, unsigned level, struct alloy_expr **out);

static enum err_code convert_parser_parse_expr(struct convert_parser *p, struct alloy_expr **out)
{
	enum err_code rc = convert_parser_enter(p);

	if (!rc)
		rc = convert_parser_parse_binary(p, 0, out);
	p->depth--;
	return rc;
}

static enum err_code convert_parser_parse_key(struct convert_parser *p, struct str *out)
{
	enum err_code rc;

	if (p->now.kind != TOKEN_NAME && p->now.kind != TOKEN_STRING)
		return convert_parser_expected(p, "a key");
	*out = p->now.text;
	if ((rc = convert_parser_advance(p)))
		return rc;
	return convert_parser_take(p, "=", "\"=\"");
}

/* Reads items and the commas between them, up to a bracket. `keys`: each item is "key = value". */
static enum err_code convert_parser_parse_items(
	struct convert_parser *p, const char *close, bool keys, struct alloy_expr **tail)
{
	struct str key = { 0 };
	enum err_code rc;

	while (!convert_parser_is_at(p, close)) {
		if ((keys && (rc = convert_parser_parse_key(p, &key))) ||
			(rc = convert_parser_parse_expr(p, tail)))
			return rc;
		(*tail)->key = key;
		tail = &(*tail)->next;
		if (convert_parser_is_at(p, close))
			break;
		if ((rc = convert_parser_take(p, ",", "\",\" or a closing bracket")))
			return rc;
	}
	p->open--;
	return convert_parser_advance(p);
}

static enum err_code convert_parser_open_bracket(struct convert_parser *p)
{
	p->open++;
	return convert_parser_advance(p);
}

static enum err_code convert_parser_parse_bracketed(
	struct convert_parser *p, enum alloy_kind kind, struct alloy_expr **out)
{
	enum err_code rc;

	if ((rc = convert_parser_new_expr(p, kind, out)) || (rc = convert_parser_open_bracket(p)))
		return rc;
	return convert_parser_parse_items(
		p, kind == ALLOY_LIST ? "]" : "}", kind == ALLOY_OBJECT, &(*out)->child);
}

static enum err_code convert_parser_parse_name(struct convert_parser *p, struct alloy_expr **out)
{
	struct str word = p->now.text;
	enum alloy_kind kind = str_is(word, "true") || str_is(word, "false") ? ALLOY_BOOL :
		str_is(word, "null")                                             ? ALLOY_NULL :
																		   ALLOY_NAME;
	enum err_code rc;

	if ((rc = convert_parser_new_expr(p, kind, out)) || (rc = convert_parser_advance(p)))
		return rc;
	return ERR_OK;
}

static enum err_code convert_parser_parse_primary(struct convert_parser *p, struct alloy_expr **out)
{
	enum err_code rc;

	if (p->now.kind == TOKEN_STRING || p->now.kind == TOKEN_NUMBER) {
		rc = convert_parser_new_expr(
			p, p->now.kind == TOKEN_STRING ? ALLOY_STRING : ALLOY_NUMBER, out);
		return rc ? rc : convert_parser_advance(p);
	}
	if (p->now.kind == TOKEN_NAME)
		return convert_parser_parse_name(p, out);
	if (convert_parser_is_at(p, "["))
		return convert_parser_parse_bracketed(p, ALLOY_LIST, out);
	if (convert_parser_is_at(p, "{"))
		return convert_parser_parse_bracketed(p, ALLOY_OBJECT, out);
	if (!convert_parser_is_at(p, "("))
		return convert_parser_expected(p, "a value");
	if ((rc = convert_parser_open_bracket(p)) || (rc = convert_parser_parse_expr(p, out)))
		return rc;
	p->open--;
	return convert_parser_take(p, ")", "\")\"");
}

/* Wraps *out, which becomes the first child. */
static enum err_code convert_parser_wrap(
	struct convert_parser *p, enum alloy_kind kind, struct alloy_expr **out)
{
	struct alloy_expr *inner = *out, *outer;
	enum err_code rc = convert_parser_new_expr(p, kind, &outer);

	if (rc)
		return rc;
	if ((outer->height = inner->height + 1) > ALLOY_DEPTH_MAX)
		return convert_parser_fail(p, ERR_LIMIT, "an expression is too long");
	outer->line = inner->line;
	outer->column = inner->column;
	outer->source.ptr = inner->source.ptr;
	outer->child = inner;
	*out = outer;
	return ERR_OK;
}

static enum err_code convert_parser_parse_access(struct convert_parser *p, struct alloy_expr **out)
{
	struct alloy_expr *e = *out;
	enum err_code rc;

	if ((rc = convert_parser_advance(p)))
		return rc;
	if (p->now.kind != TOKEN_NAME)
		return convert_parser_expected(p, "a name");
	if (e->kind == ALLOY_NAME && e->text.ptr + e->text.len + 1 == p->now.begin)
		e->text.len = (size_t)(p->now.end - e->text.ptr); /* "a.b" as the file has it */
	else if ((rc = convert_parser_wrap(p, ALLOY_ACCESS, out)))
		return rc;
	return convert_parser_advance(p);
}

static enum err_code convert_parser_parse_postfix(struct convert_parser *p, struct alloy_expr **out)
{
	enum err_code rc = convert_parser_parse_primary(p, out);

	while (!rc) {
		convert_parser_end_expr(p, *out);
		if (convert_parser_is_at(p, ".")) {
			rc = convert_parser_parse_access(p, out);
		} else if (convert_parser_is_at(p, "(")) {
			if (!(rc = convert_parser_wrap(p, ALLOY_CALL, out)) &&
				!(rc = convert_parser_open_bracket(p)))
				rc = convert_parser_parse_items(p, ")", false, &(*out)->child->next);
		} else if (convert_parser_is_at(p, "[")) {
			if (!(rc = convert_parser_wrap(p, ALLOY_INDEX, out)) &&
				!(rc = convert_parser_open_bracket(p)) &&
				!(rc = convert_parser_parse_expr(p, &(*out)->child->next))) {
				p->open--;
				rc = convert_parser_take(p, "]", "\"]\"");
			}
		} else {
			return ERR_OK;
		}
	}
	return rc;
}

static enum err_code convert_parser_parse_unary(struct convert_parser *p, struct alloy_expr **out)
{
	enum err_code rc;

	if (!convert_parser_is_at(p, "-") && !convert_parser_is_at(p, "!"))
		return convert_parser_parse_postfix(p, out);
	if ((rc = convert_parser_enter(p)) || (rc = convert_parser_new_expr(p, ALLOY_OPERATOR, out)) ||
		(rc = convert_parser_advance(p)) || (rc = convert_parser_parse_unary(p, &(*out)->child)))
		return rc;
	convert_parser_end_expr(p, *out);
	p->depth--;
	return ERR_OK;
}

/* From what binds least to what binds most. */
static const char *const operators[][7] = {
	{ "||" },
	{ "&&" },
	{ "==", "!=", "<", "<=", ">", ">=" },
	{ "+", "-" },
	{ "*", "/", "%" },
	{ "^" },
};

#define LEVELS (sizeof(operators) / sizeof(operators[0]))

static bool convert_parser_is_operator(const struct convert_parser *p, unsigned level)
{
	const char *const *o = operators[level];

	while (*o && !convert_parser_is_at(p, *o))
		o++;
	return *o != NULL;
}

/* All to the left: the conversion joins strings only, for which it is the same. */
static enum err_code convert_parser_parse_binary(
	struct convert_parser *p, unsigned level, struct alloy_expr **out)
{
	enum err_code rc;

	if (level == LEVELS)
		return convert_parser_parse_unary(p, out);
	if ((rc = convert_parser_parse_binary(p, level + 1, out)))
		return rc;
	while (convert_parser_is_operator(p, level)) {
		if ((rc = convert_parser_wrap(p, ALLOY_OPERATOR, out)) ||
			(rc = convert_parser_advance(p)) || (rc = convert_parser_skip_lines(p)) ||
			(rc = convert_parser_parse_binary(p, level + 1, &(*out)->child->next)))
			return rc;
		convert_parser_end_expr(p, *out);
	}
	return ERR_OK;
}

/* ---- statements ---- */

static enum err_code convert_parser_parse_statements(
	struct convert_parser *p, struct alloy_statement **tail);

static enum err_code convert_parser_parse_block(struct convert_parser *p, struct alloy_statement *s)
{
	enum err_code rc;

	if (p->now.kind == TOKEN_STRING) {
		s->label = p->now.text;
		if ((rc = convert_parser_advance(p)))
			return rc;
	}
	if (!convert_parser_is_at(p, "{"))
		return convert_parser_expected(p, s->label.len ? "\"{\"" : "\"=\", a label or \"{\"");
	if ((rc = convert_parser_enter(p)) || (rc = convert_parser_advance(p)) ||
		(rc = convert_parser_parse_statements(p, &s->child)))
		return rc;
	p->depth--;
	return convert_parser_take(p, "}", "\"}\"");
}

static enum err_code convert_parser_parse_statement(
	struct convert_parser *p, struct alloy_statement **out)
{
	struct alloy_statement *s;
	enum err_code rc;

	if (p->now.kind != TOKEN_NAME)
		return convert_parser_expected(p, "a statement");
	if ((rc = convert_parser_count_node(p)))
		return rc;
	s = arena_new(p->lexer.arena, struct alloy_statement);
	if (!s)
		return arena_fail(p->lexer.arena, p->lexer.file, p->err);
	*s = (struct alloy_statement){ .line = p->now.line,
		.column = p->now.column,
		.name = p->now.text,
		.comment = p->lexer.comment };
	if ((rc = convert_parser_advance(p)))
		return rc;
	while (convert_parser_is_at(p, ".")) {
		if ((rc = convert_parser_advance(p)))
			return rc;
		if (p->now.kind != TOKEN_NAME)
			return convert_parser_expected(p, "a name");
		s->name.len = (size_t)(p->now.end - s->name.ptr);
		if ((rc = convert_parser_advance(p)))
			return rc;
	}
	*out = s;
	if (!convert_parser_is_at(p, "="))
		return convert_parser_parse_block(p, s);
	if ((rc = convert_parser_advance(p)))
		return rc;
	return convert_parser_parse_expr(p, &s->value);
}

/* Up to a "}" or the end. */
static enum err_code convert_parser_parse_statements(
	struct convert_parser *p, struct alloy_statement **tail)
{
	enum err_code rc;

	if ((rc = convert_parser_skip_lines(p)))
		return rc;
	while (p->now.kind != TOKEN_END && !convert_parser_is_at(p, "}")) {
		if ((rc = convert_parser_parse_statement(p, tail)))
			return rc;
		tail = &(*tail)->next;
		if (p->now.kind != TOKEN_NEWLINE && p->now.kind != TOKEN_END &&
			!convert_parser_is_at(p, "}"))
			return convert_parser_expected(p, "the end of the line");
		if ((rc = convert_parser_skip_lines(p)))
			return rc;
	}
	return ERR_OK;
}

enum err_code alloy_parse(struct arena *a, const char *file, struct str text,
	struct alloy_statement **out, struct err *err)
{
	struct convert_parser p = { .err = err };
	enum err_code rc;

	if (text.len > ALLOY_FILE_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "%s:1:1: file is %zu bytes, limit %u", file, text.len,
			ALLOY_FILE_BYTES_MAX);
	if (!str_is_utf8(text))
		return err_set(err, ERR_INVALID, "%s:1:1: file is not UTF-8", file);
	alloy_lexer_init(&p.lexer, a, file, text);
	*out = NULL;
	p.now.begin = p.now.end = p.lexer.at;
	p.now.kind = TOKEN_NEWLINE; /* nothing before it */
	if ((rc = convert_parser_advance(&p)) || (rc = convert_parser_parse_statements(&p, out)))
		return rc;
	return p.now.kind == TOKEN_END ? ERR_OK :
									 convert_parser_fail(&p, ERR_INVALID, "\"}\" closes nothing");
}

/* ---- reading ---- */

const struct alloy_expr *alloy_attribute(const struct alloy_statement *block, const char *name)
{
	for (const struct alloy_statement *s = block->child; s; s = s->next)
		if (s->value && str_is(s->name, name))
			return s->value;
	return NULL;
}

bool alloy_string(struct arena *a, const struct alloy_expr *e, struct str *out)
{
	struct str left, right;
	char *made;

	if (e->kind == ALLOY_STRING) {
		*out = e->text;
		return true;
	}
	if (e->kind != ALLOY_OPERATOR || !str_is(e->text, "+") || !e->child->next ||
		!alloy_string(a, e->child, &left) || !alloy_string(a, e->child->next, &right))
		return false;
	made = arena_printf(a, STR_FMT STR_FMT, STR_ARG(left), STR_ARG(right));
	*out = str_of(made);
	return made != NULL;
}
