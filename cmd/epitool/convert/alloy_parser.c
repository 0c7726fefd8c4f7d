/* Recursive descent, one token ahead; recursion ends at ALLOY_DEPTH_MAX. */
#include "base/quote.h"
#include "cmd/epitool/convert/alloy_lexer.h"

struct parser {
	struct alloy_lexer lexer;
	struct alloy_token now;
	const char *last_end; /* of the token before */
	struct err *err;
	unsigned depth, open; /* nesting; brackets in which lines do not end statements */
	size_t nodes;
};

static enum err_code fail(const struct parser *p, enum err_code rc, const char *what)
{
	return err_set(p->err, rc, "%s:%u:%u: %s", p->lexer.file, p->now.line, p->now.column, what);
}

static enum err_code expected(const struct parser *p, const char *what)
{
	struct str text = { p->now.begin, (size_t)(p->now.end - p->now.begin) };

	return err_set(p->err, ERR_INVALID, "%s:%u:%u: expected %s, found %s", p->lexer.file,
		p->now.line, p->now.column, what,
		p->now.kind == TOKEN_END         ? "the end of the file" :
			p->now.kind == TOKEN_NEWLINE ? "the end of the line" :
										   QUOTED(text));
}

static enum err_code advance(struct parser *p)
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

static enum err_code skip_lines(struct parser *p)
{
	enum err_code rc = ERR_OK;

	while (!rc && p->now.kind == TOKEN_NEWLINE)
		rc = advance(p);
	return rc;
}

static bool is_at(const struct parser *p, const char *punctuation)
{
	return p->now.kind == TOKEN_PUNCTUATION && str_is(p->now.text, punctuation);
}

static enum err_code take(struct parser *p, const char *punctuation, const char *what)
{
	return is_at(p, punctuation) ? advance(p) : expected(p, what);
}

static enum err_code count_node(struct parser *p)
{
	if (++p->nodes > ALLOY_NODES_MAX)
		return err_set(p->err, ERR_LIMIT, "%s:%u:%u: more than %u expressions and statements",
			p->lexer.file, p->now.line, p->now.column, ALLOY_NODES_MAX);
	return ERR_OK;
}

static enum err_code enter(struct parser *p)
{
	if (++p->depth > ALLOY_DEPTH_MAX)
		return err_set(p->err, ERR_LIMIT, "%s:%u:%u: nested too deeply, limit %d levels",
			p->lexer.file, p->now.line, p->now.column, ALLOY_DEPTH_MAX);
	return ERR_OK;
}

/* ---- expressions ---- */

static enum err_code new_expr(struct parser *p, enum alloy_kind kind, struct alloy_expr **out)
{
	enum err_code rc = count_node(p);

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

static void end_expr(const struct parser *p, struct alloy_expr *e)
{
	e->source.len = (size_t)(p->last_end - e->source.ptr);
}

static enum err_code parse_binary(struct parser *p, unsigned level, struct alloy_expr **out);

static enum err_code parse_expr(struct parser *p, struct alloy_expr **out)
{
	enum err_code rc = enter(p);

	if (!rc)
		rc = parse_binary(p, 0, out);
	p->depth--;
	return rc;
}

static enum err_code parse_key(struct parser *p, struct str *out)
{
	enum err_code rc;

	if (p->now.kind != TOKEN_NAME && p->now.kind != TOKEN_STRING)
		return expected(p, "a key");
	*out = p->now.text;
	if ((rc = advance(p)))
		return rc;
	return take(p, "=", "\"=\"");
}

/* Items up to a bracket, commas between them; `keys`: each behind "key =". p stands on the first.
 */
static enum err_code parse_items(
	struct parser *p, const char *close, bool keys, struct alloy_expr **tail)
{
	struct str key = { 0 };
	enum err_code rc;

	while (!is_at(p, close)) {
		if ((keys && (rc = parse_key(p, &key))) || (rc = parse_expr(p, tail)))
			return rc;
		(*tail)->key = key;
		tail = &(*tail)->next;
		if (is_at(p, close))
			break;
		if ((rc = take(p, ",", "\",\" or a closing bracket")))
			return rc;
	}
	p->open--;
	return advance(p);
}

static enum err_code open_bracket(struct parser *p)
{
	p->open++;
	return advance(p);
}

static enum err_code parse_bracketed(
	struct parser *p, enum alloy_kind kind, struct alloy_expr **out)
{
	enum err_code rc;

	if ((rc = new_expr(p, kind, out)) || (rc = open_bracket(p)))
		return rc;
	return parse_items(p, kind == ALLOY_LIST ? "]" : "}", kind == ALLOY_OBJECT, &(*out)->child);
}

static enum err_code parse_name(struct parser *p, struct alloy_expr **out)
{
	struct str word = p->now.text;
	enum alloy_kind kind = str_is(word, "true") || str_is(word, "false") ? ALLOY_BOOL :
		str_is(word, "null")                                             ? ALLOY_NULL :
																		   ALLOY_NAME;
	enum err_code rc;

	if ((rc = new_expr(p, kind, out)) || (rc = advance(p)))
		return rc;
	return ERR_OK;
}

static enum err_code parse_primary(struct parser *p, struct alloy_expr **out)
{
	enum err_code rc;

	if (p->now.kind == TOKEN_STRING || p->now.kind == TOKEN_NUMBER) {
		rc = new_expr(p, p->now.kind == TOKEN_STRING ? ALLOY_STRING : ALLOY_NUMBER, out);
		return rc ? rc : advance(p);
	}
	if (p->now.kind == TOKEN_NAME)
		return parse_name(p, out);
	if (is_at(p, "["))
		return parse_bracketed(p, ALLOY_LIST, out);
	if (is_at(p, "{"))
		return parse_bracketed(p, ALLOY_OBJECT, out);
	if (!is_at(p, "("))
		return expected(p, "a value");
	if ((rc = open_bracket(p)) || (rc = parse_expr(p, out)))
		return rc;
	p->open--;
	return take(p, ")", "\")\"");
}

/* Wraps *out, which becomes the first child. */
static enum err_code wrap(struct parser *p, enum alloy_kind kind, struct alloy_expr **out)
{
	struct alloy_expr *inner = *out, *outer;
	enum err_code rc = new_expr(p, kind, &outer);

	if (rc)
		return rc;
	if ((outer->height = inner->height + 1) > ALLOY_DEPTH_MAX)
		return fail(p, ERR_LIMIT, "an expression is too long");
	outer->line = inner->line;
	outer->column = inner->column;
	outer->source.ptr = inner->source.ptr;
	outer->child = inner;
	*out = outer;
	return ERR_OK;
}

static enum err_code parse_access(struct parser *p, struct alloy_expr **out)
{
	struct alloy_expr *e = *out;
	enum err_code rc;

	if ((rc = advance(p)))
		return rc;
	if (p->now.kind != TOKEN_NAME)
		return expected(p, "a name");
	if (e->kind == ALLOY_NAME && e->text.ptr + e->text.len + 1 == p->now.begin)
		e->text.len = (size_t)(p->now.end - e->text.ptr); /* "a.b" as it stands in the file */
	else if ((rc = wrap(p, ALLOY_ACCESS, out)))
		return rc;
	return advance(p);
}

static enum err_code parse_postfix(struct parser *p, struct alloy_expr **out)
{
	enum err_code rc = parse_primary(p, out);

	while (!rc) {
		end_expr(p, *out);
		if (is_at(p, ".")) {
			rc = parse_access(p, out);
		} else if (is_at(p, "(")) {
			if (!(rc = wrap(p, ALLOY_CALL, out)) && !(rc = open_bracket(p)))
				rc = parse_items(p, ")", false, &(*out)->child->next);
		} else if (is_at(p, "[")) {
			if (!(rc = wrap(p, ALLOY_INDEX, out)) && !(rc = open_bracket(p)) &&
				!(rc = parse_expr(p, &(*out)->child->next))) {
				p->open--;
				rc = take(p, "]", "\"]\"");
			}
		} else {
			return ERR_OK;
		}
	}
	return rc;
}

static enum err_code parse_unary(struct parser *p, struct alloy_expr **out)
{
	enum err_code rc;

	if (!is_at(p, "-") && !is_at(p, "!"))
		return parse_postfix(p, out);
	if ((rc = enter(p)) || (rc = new_expr(p, ALLOY_OPERATOR, out)) || (rc = advance(p)) ||
		(rc = parse_unary(p, &(*out)->child)))
		return rc;
	end_expr(p, *out);
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

static bool is_operator(const struct parser *p, unsigned level)
{
	const char *const *o = operators[level];

	while (*o && !is_at(p, *o))
		o++;
	return *o != NULL;
}

/* All to the left: the conversion joins strings only, for which it is the same. */
static enum err_code parse_binary(struct parser *p, unsigned level, struct alloy_expr **out)
{
	enum err_code rc;

	if (level == LEVELS)
		return parse_unary(p, out);
	if ((rc = parse_binary(p, level + 1, out)))
		return rc;
	while (is_operator(p, level)) {
		if ((rc = wrap(p, ALLOY_OPERATOR, out)) || (rc = advance(p)) || (rc = skip_lines(p)) ||
			(rc = parse_binary(p, level + 1, &(*out)->child->next)))
			return rc;
		end_expr(p, *out);
	}
	return ERR_OK;
}

/* ---- statements ---- */

static enum err_code parse_statements(struct parser *p, struct alloy_statement **tail);

static enum err_code parse_block(struct parser *p, struct alloy_statement *s)
{
	enum err_code rc;

	if (p->now.kind == TOKEN_STRING) {
		s->label = p->now.text;
		if ((rc = advance(p)))
			return rc;
	}
	if (!is_at(p, "{"))
		return expected(p, s->label.len ? "\"{\"" : "\"=\", a label or \"{\"");
	if ((rc = enter(p)) || (rc = advance(p)) || (rc = parse_statements(p, &s->child)))
		return rc;
	p->depth--;
	return take(p, "}", "\"}\"");
}

static enum err_code parse_statement(struct parser *p, struct alloy_statement **out)
{
	struct alloy_statement *s;
	enum err_code rc;

	if (p->now.kind != TOKEN_NAME)
		return expected(p, "a statement");
	if ((rc = count_node(p)))
		return rc;
	s = arena_new(p->lexer.arena, struct alloy_statement);
	if (!s)
		return arena_fail(p->lexer.arena, p->lexer.file, p->err);
	*s = (struct alloy_statement){ .line = p->now.line,
		.column = p->now.column,
		.name = p->now.text,
		.comment = p->lexer.comment };
	if ((rc = advance(p)))
		return rc;
	while (is_at(p, ".")) {
		if ((rc = advance(p)))
			return rc;
		if (p->now.kind != TOKEN_NAME)
			return expected(p, "a name");
		s->name.len = (size_t)(p->now.end - s->name.ptr);
		if ((rc = advance(p)))
			return rc;
	}
	*out = s;
	if (!is_at(p, "="))
		return parse_block(p, s);
	if ((rc = advance(p)))
		return rc;
	return parse_expr(p, &s->value);
}

/* Up to a "}" or the end. */
static enum err_code parse_statements(struct parser *p, struct alloy_statement **tail)
{
	enum err_code rc;

	if ((rc = skip_lines(p)))
		return rc;
	while (p->now.kind != TOKEN_END && !is_at(p, "}")) {
		if ((rc = parse_statement(p, tail)))
			return rc;
		tail = &(*tail)->next;
		if (p->now.kind != TOKEN_NEWLINE && p->now.kind != TOKEN_END && !is_at(p, "}"))
			return expected(p, "the end of the line");
		if ((rc = skip_lines(p)))
			return rc;
	}
	return ERR_OK;
}

enum err_code alloy_parse(struct arena *a, const char *file, struct str text,
	struct alloy_statement **out, struct err *err)
{
	struct parser p = { .err = err };
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
	if ((rc = advance(&p)) || (rc = parse_statements(&p, out)))
		return rc;
	return p.now.kind == TOKEN_END ? ERR_OK : fail(&p, ERR_INVALID, "\"}\" closes nothing");
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
