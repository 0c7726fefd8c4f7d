/*
 * Parses templates: text and {{actions}} to a tree. Accepts what Go's text/template accepts, except
 * define, template and block, which have no use in a single text.
 */
#include "promql/rules/template/lex.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/quote.h"

#define fault(p, at, ...) template_fault((p)->text, (at), (p)->err, ERR_INVALID, __VA_ARGS__)

static enum err_code template_skip_space(struct parser *p)
{
	return p->token.kind == TOKEN_SPACE ? lex_advance(p) : ERR_OK;
}

static enum err_code template_unexpected(struct parser *p, const char *where)
{
	struct str text = { p->text.ptr + p->token.at, p->pos - p->token.at };

	if (p->token.kind == TOKEN_CLOSE)
		return fault(p, p->token.at, "unexpected end of the action in %s", where);
	return fault(p, p->token.at, "unexpected %s in %s", QUOTED(text), where);
}

/* ---- names of variables ---- */

static enum err_code template_declare(struct parser *p, struct str name)
{
	if (!arena_array_room(p->arena, &p->names, p->names_n, 1, &p->names_cap))
		return arena_fail(p->arena, "template", p->err);
	p->names[p->names_n++] = name;
	return ERR_OK;
}

static enum err_code template_check_variable(struct parser *p, struct str name, uint32_t at)
{
	for (size_t i = p->names_n; i-- > 0;)
		if (str_eq(p->names[i], name))
			return ERR_OK;
	return fault(p, at, "undefined variable %s", QUOTED(name));
}

/* ---- operands ---- */

static enum err_code parse_pipe(struct parser *p, bool in_parens, bool is_range, struct pipe **out);

static enum err_code template_number_fault(struct parser *p, struct str text)
{
	return fault(p, p->token.at, "bad number syntax: %s", QUOTED(text));
}

/* A number: with ".", "e" or "p" a float, else an integer. */
static enum err_code template_read_number(struct parser *p, struct operand *o)
{
	struct str text = p->token.text;
	char clean[80], *end, *digits = clean;
	size_t n = 0;
	unsigned base = 10;
	bool hex;
	uint64_t u;

	if (text.len >= sizeof(clean))
		return template_number_fault(p, text);
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] == '_' && (i == 0 || i + 1 == text.len || text.ptr[i + 1] == '_'))
			return template_number_fault(p, text);
		if (text.ptr[i] != '_')
			clean[n++] = text.ptr[i];
	}
	clean[n] = '\0';
	o->text = text;
	digits += *digits == '+' || *digits == '-';
	hex = digits[0] == '0' && (digits[1] | 0x20) == 'x';
	if (strpbrk(digits, hex ? ".pP" : ".eE")) {
		o->kind = OPERAND_FLOAT;
		o->f = strtod(clean, &end);
		return *end || end == clean || (hex && !strpbrk(digits, "pP")) ?
			template_number_fault(p, text) :
			ERR_OK;
	}
	if (digits[0] == '0' && digits[1]) {
		char c = digits[1] | 0x20;

		base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
		digits += c == 'x' || c == 'b' || c == 'o' ? 2 : 1;
	}
	errno = 0;
	u = strtoull(digits, &end, (int)base);
	if (*end || end == digits || *digits == '-' || *digits == '+')
		return template_number_fault(p, text);
	if (errno || u > (uint64_t)INT64_MAX + (clean[0] == '-'))
		return fault(p, p->token.at, "integer overflow: %s", QUOTED(text));
	o->kind = OPERAND_INT;
	o->i = clean[0] == '-' ? (int64_t)(0 - u) : (int64_t)u;
	return ERR_OK;
}

static enum err_code template_read_char(struct parser *p, struct operand *o)
{
	uint32_t code;
	size_t n = p->token.text.len ? utf8_decode(p->token.text, &code) : 0;

	if (n == 0 || n != p->token.text.len)
		return fault(p, p->token.at, "malformed character constant");
	o->kind = OPERAND_INT;
	o->text = p->token.text;
	o->i = code;
	return ERR_OK;
}

static enum err_code template_read_word(struct parser *p, struct operand *o)
{
	struct str w = p->token.text;

	if (str_is(w, "true") || str_is(w, "false")) {
		o->kind = OPERAND_BOOL;
		o->i = str_is(w, "true");
	} else if (str_is(w, "nil")) {
		o->kind = OPERAND_NIL;
	} else {
		o->kind = OPERAND_FUNCTION;
		if (!(o->fn = template_function_find(w)))
			return fault(p, p->token.at, "function %s not defined", QUOTED(w));
	}
	o->text = w;
	return ERR_OK;
}

static enum err_code template_read_fields(struct parser *p, struct operand *o)
{
	size_t cap = 0;
	enum err_code rc = ERR_OK;

	for (; p->token.kind == TOKEN_FIELD && !rc; rc = lex_advance(p)) {
		if (o->kind != OPERAND_DOT && o->kind != OPERAND_VARIABLE && o->kind != OPERAND_PIPE &&
			o->kind != OPERAND_FUNCTION)
			return fault(
				p, p->token.at, "unexpected ." STR_FMT " after a constant", STR_ARG(p->token.text));
		if (!arena_array_room(p->arena, &o->fields, o->fields_n, 1, &cap))
			return arena_fail(p->arena, "template", p->err);
		o->fields[o->fields_n++] = p->token.text;
	}
	return rc;
}

/* *out NULL: no operand begins here. Afterwards the current token is the one after it. */
static enum err_code parse_operand(struct parser *p, struct operand **out)
{
	struct operand *o = arena_new(p->arena, struct operand);
	struct pipe *inner;
	enum err_code rc = ERR_OK;

	if (!o)
		return arena_fail(p->arena, "template", p->err);
	*out = NULL;
	o->at = p->token.at;
	switch (p->token.kind) {
	case TOKEN_WORD:
		rc = template_read_word(p, o);
		break;
	case TOKEN_NUMBER:
		rc = template_read_number(p, o);
		break;
	case TOKEN_CHAR:
		rc = template_read_char(p, o);
		break;
	case TOKEN_STRING:
		o->kind = OPERAND_STRING;
		o->text = p->token.text;
		break;
	case TOKEN_VARIABLE:
		o->kind = OPERAND_VARIABLE;
		o->text = p->token.text;
		rc = template_check_variable(p, o->text, o->at);
		break;
	case TOKEN_DOT:
		o->kind = OPERAND_DOT;
		break;
	case TOKEN_FIELD: /* the dot's: read below */
		o->kind = OPERAND_DOT;
		*out = o;
		return template_read_fields(p, o);
	case TOKEN_OPEN_PAREN:
		o->kind = OPERAND_PIPE;
		if ((rc = lex_advance(p)) || (rc = parse_pipe(p, true, false, &inner)))
			return rc;
		o->pipe = inner;
		break;
	default:
		return ERR_OK;
	}
	if (rc || (rc = lex_advance(p)))
		return rc;
	*out = o;
	return template_read_fields(p, o);
}

/* ---- commands and pipelines ---- */

static bool template_ends_command(const struct parser *p, bool in_parens)
{
	return p->token.kind == TOKEN_CLOSE || p->token.kind == TOKEN_PIPE ||
		(in_parens && p->token.kind == TOKEN_CLOSE_PAREN);
}

static enum err_code parse_command(struct parser *p, bool in_parens, struct template_command **out)
{
	struct template_command *c = arena_new(p->arena, struct template_command);
	struct operand *o = NULL, **last;
	enum err_code rc;

	if (!c)
		return arena_fail(p->arena, "template", p->err);
	last = &c->first;
	for (;;) {
		if ((rc = template_skip_space(p)))
			return rc;
		if (template_ends_command(p, in_parens))
			break;
		if ((rc = parse_operand(p, &o)))
			return rc;
		if (!o)
			return template_unexpected(p, "operand");
		*last = o;
		last = &o->next;
		if (++c->n > TEMPLATE_ARGS_MAX)
			return template_fault(
				p->text, o->at, p->err, ERR_LIMIT, "more than %u arguments", TEMPLATE_ARGS_MAX);
		if (p->token.kind != TOKEN_SPACE && !template_ends_command(p, in_parens))
			return template_unexpected(p, "operand");
	}
	if (!c->n)
		return fault(p, p->token.at, "missing value for command");
	*out = c;
	return ERR_OK;
}

/* $x := , $x = , $i, $x := in front of a pipeline. Without a declaration nothing changes. */
static enum err_code parse_declaration(struct parser *p, bool is_range, struct pipe *pipe)
{
	struct parser before = *p;
	enum err_code rc;

	while (p->token.kind == TOKEN_VARIABLE && pipe->variables_n < 2) {
		pipe->variables[pipe->variables_n++] = p->token.text;
		if ((rc = lex_advance(p)) || (rc = template_skip_space(p)))
			return rc;
		if (p->token.kind == TOKEN_DECLARE || p->token.kind == TOKEN_ASSIGN) {
			pipe->assigns = p->token.kind == TOKEN_ASSIGN;
			for (size_t i = 0; i < pipe->variables_n && pipe->assigns; i++)
				if ((rc = template_check_variable(p, pipe->variables[i], before.token.at)))
					return rc;
			return lex_advance(p);
		}
		if (p->token.kind != TOKEN_COMMA)
			break;
		if (!is_range || pipe->variables_n == 2)
			return fault(
				p, p->token.at, "too many declarations in %s", is_range ? "range" : "command");
		if ((rc = lex_advance(p)) || (rc = template_skip_space(p)))
			return rc;
		if (p->token.kind != TOKEN_VARIABLE)
			return fault(p, p->token.at, "range can only initialize variables");
	}
	*p = before;
	pipe->variables_n = 0;
	return ERR_OK;
}

static bool template_is_executable(const struct template_command *c)
{
	enum operand_kind k = c->first->kind;

	return k == OPERAND_FUNCTION || k == OPERAND_PIPE || k == OPERAND_VARIABLE ||
		(k == OPERAND_DOT && c->first->fields_n);
}

/*
 * Parses up to the closing parenthesis or the end of the action, which is the current token then.
 */
static enum err_code parse_pipe(struct parser *p, bool in_parens, bool is_range, struct pipe **out)
{
	struct pipe *pipe = arena_new(p->arena, struct pipe);
	struct template_command **last;
	enum err_code rc;

	if (!pipe)
		return arena_fail(p->arena, "template", p->err);
	if (++p->depth > TEMPLATE_DEPTH_MAX)
		return template_fault(
			p->text, p->token.at, p->err, ERR_LIMIT, "nested deeper than %u", TEMPLATE_DEPTH_MAX);
	if ((rc = template_skip_space(p)))
		return rc;
	pipe->at = p->token.at;
	if ((rc = parse_declaration(p, is_range, pipe)))
		return rc;
	for (last = &pipe->first;; last = &(*last)->next) {
		if ((rc = parse_command(p, in_parens, last)))
			return rc;
		if (*last != pipe->first && !template_is_executable(*last))
			return fault(p, (*last)->first->at, "non executable command in pipeline");
		if (p->token.kind != TOKEN_PIPE)
			break;
		if ((rc = lex_advance(p)))
			return rc;
	}
	if (in_parens && p->token.kind != TOKEN_CLOSE_PAREN)
		return fault(p, p->token.at, "unclosed left paren");
	for (size_t i = 0; i < pipe->variables_n && !pipe->assigns; i++)
		if ((rc = template_declare(p, pipe->variables[i])))
			return rc;
	p->depth--;
	*out = pipe;
	return ERR_OK;
}

/* ---- blocks ---- */

enum block_end { END_TEXT, END_END, END_ELSE };

static enum err_code template_parse_list(
	struct parser *p, struct template_node **out, enum block_end *end);

/* Steps over }} and, after " -}}", over white space. */
static enum err_code template_close_action(struct parser *p)
{
	enum err_code rc = template_skip_space(p);

	if (rc)
		return rc;
	if (p->token.kind != TOKEN_CLOSE)
		return template_unexpected(p, "command");
	if (lex_is_next(p, "-}}")) {
		p->pos += 3;
		while (p->pos < p->text.len && lex_is_space(p->text.ptr[p->pos]))
			p->pos++;
	} else {
		p->pos += 2;
	}
	return ERR_OK;
}

static bool template_is_keyword(const struct parser *p, const char *word)
{
	return p->token.kind == TOKEN_WORD && str_is(p->token.text, word);
}

/* Called at "if", "range" or "with". */
static enum err_code template_parse_block(struct parser *p, struct template_node *n)
{
	bool is_range = n->kind == NODE_RANGE;
	size_t outer = p->names_n;
	enum block_end end;
	struct pipe *pipe;
	enum err_code rc;

	if ((rc = lex_advance(p)) || (rc = parse_pipe(p, false, is_range, &pipe)) ||
		(rc = template_close_action(p)))
		return rc;
	n->pipe = pipe;
	if (++p->depth > TEMPLATE_DEPTH_MAX)
		return template_fault(
			p->text, n->at, p->err, ERR_LIMIT, "nested deeper than %u", TEMPLATE_DEPTH_MAX);
	p->loops += is_range;
	rc = template_parse_list(p, &n->body, &end);
	p->loops -= is_range;
	if (rc)
		return rc;
	if (end == END_ELSE) {
		if ((rc = lex_advance(p)) || (rc = template_skip_space(p)))
			return rc;
		if ((template_is_keyword(p, "if") && n->kind == NODE_IF) ||
			(template_is_keyword(p, "with") && n->kind == NODE_WITH)) {
			/* one {{end}} closes both */
			if (!(n->otherwise = arena_new(p->arena, struct template_node)))
				return arena_fail(p->arena, "template", p->err);
			n->otherwise->kind = n->kind;
			n->otherwise->at = p->token.at;
			if ((rc = template_parse_block(p, n->otherwise)))
				return rc;
			end = END_END;
		} else {
			if ((rc = template_close_action(p)) ||
				(rc = template_parse_list(p, &n->otherwise, &end)))
				return rc;
			if (end == END_ELSE)
				return fault(p, p->token.at, "expected end; found {{else}}");
			if (end == END_END && ((rc = lex_advance(p)) || (rc = template_close_action(p))))
				return rc;
		}
	} else if (end == END_END && ((rc = lex_advance(p)) || (rc = template_close_action(p)))) {
		return rc;
	}
	if (end == END_TEXT)
		return fault(p, (uint32_t)p->text.len, "unexpected EOF: missing {{end}}");
	assert(p->names_n >= outer && p->depth);
	p->names_n = outer;
	p->depth--;
	return ERR_OK;
}

static enum err_code parse_action(struct parser *p, struct template_node *n, enum block_end *end)
{
	static const struct {
		const char *word;
		enum node_kind kind;
	} blocks[] = { { "if", NODE_IF }, { "range", NODE_RANGE }, { "with", NODE_WITH } };
	struct pipe *pipe;
	enum err_code rc;

	if ((rc = lex_advance(p)) || (rc = template_skip_space(p)))
		return rc;
	n->at = p->token.at;
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
		if (template_is_keyword(p, blocks[i].word)) {
			n->kind = blocks[i].kind;
			return template_parse_block(p, n);
		}
	if (template_is_keyword(p, "end") || template_is_keyword(p, "else")) {
		*end = template_is_keyword(p, "end") ? END_END : END_ELSE;
		return ERR_OK;
	}
	if (template_is_keyword(p, "break") || template_is_keyword(p, "continue")) {
		n->kind = template_is_keyword(p, "break") ? NODE_BREAK : NODE_CONTINUE;
		if (!p->loops)
			return fault(p, n->at, "{{" STR_FMT "}} outside {{range}}", STR_ARG(p->token.text));
		return (rc = lex_advance(p)) ? rc : template_close_action(p);
	}
	if (template_is_keyword(p, "define") || template_is_keyword(p, "template") ||
		template_is_keyword(p, "block"))
		return fault(p, n->at, "{{" STR_FMT "}} is not supported", STR_ARG(p->token.text));
	n->kind = NODE_ACTION;
	if ((rc = parse_pipe(p, false, false, &pipe)) || (rc = template_close_action(p)))
		return rc;
	n->pipe = pipe;
	return ERR_OK;
}

/* Skips a comment to the end of its action. */
static enum err_code template_skip_comment(struct parser *p)
{
	struct str rest = { p->text.ptr + p->pos, p->text.len - p->pos };
	uint32_t at = (uint32_t)p->pos;
	ptrdiff_t end = str_find(rest, STR("*/"));

	if (end < 0)
		return fault(p, at, "unclosed comment");
	p->pos += (size_t)end + 2;
	p->token.kind = TOKEN_CLOSE;
	if (lex_is_space(lex_peek_at(p, 0)) && lex_peek_at(p, 1) == '-' && lex_peek_at(p, 2) == '}' &&
		lex_peek_at(p, 3) == '}')
		p->pos++;
	else if (!lex_is_next(p, "}}"))
		return fault(p, at, "comment ends before closing delimiter");
	return template_close_action(p);
}

/* Takes the text up to the next action and steps over {{ or {{-. */
static struct str template_take_text(struct parser *p, bool *more)
{
	struct str rest = { p->text.ptr + p->pos, p->text.len - p->pos };
	ptrdiff_t open = rest.len ? str_find(rest, STR("{{")) : -1;

	*more = open >= 0;
	if (open < 0) {
		p->pos = p->text.len;
		return rest;
	}
	p->pos += (size_t)open + 2;
	rest.len = (size_t)open;
	if (lex_peek_at(p, 0) == '-' && lex_is_space(lex_peek_at(p, 1))) {
		p->pos++;
		while (rest.len && lex_is_space(rest.ptr[rest.len - 1]))
			rest.len--;
	}
	return rest;
}

static enum err_code template_add_node(
	struct parser *p, struct template_node ***last, struct template_node n)
{
	struct template_node *made = arena_new(p->arena, struct template_node);

	if (!made)
		return arena_fail(p->arena, "template", p->err);
	*made = n;
	**last = made;
	*last = &made->next;
	return ERR_OK;
}

/*
 * Parses up to the end of the text, or to {{end}} or {{else}}, whose word is the current token
 * then.
 */
static enum err_code template_parse_list(
	struct parser *p, struct template_node **out, enum block_end *end)
{
	struct template_node **last = out, n;
	enum err_code rc;
	bool more;

	*end = END_TEXT;
	for (;;) {
		size_t start = p->pos, comment;

		n = (struct template_node){
			.kind = NODE_TEXT, .at = (uint32_t)start, .text = template_take_text(p, &more)
		};
		if (n.text.len && (rc = template_add_node(p, &last, n)))
			return rc;
		if (!more)
			return ERR_OK;
		for (comment = 0; lex_is_space(lex_peek_at(p, comment)); comment++)
			;
		if ((comment == 0 || p->text.ptr[p->pos - 1] == '-') && lex_peek_at(p, comment) == '/' &&
			lex_peek_at(p, comment + 1) == '*') {
			p->pos += comment;
			if ((rc = template_skip_comment(p)))
				return rc;
			continue;
		}
		n = (struct template_node){ 0 };
		if ((rc = parse_action(p, &n, end)) || *end != END_TEXT)
			return rc;
		if ((rc = template_add_node(p, &last, n)))
			return rc;
	}
}

enum err_code template_parse(
	struct arena *a, struct str text, const struct template **out, struct err *err)
{
	struct parser p = { .arena = a, .text = text, .err = err };
	struct template *t = arena_new(a, struct template);
	static const char *const known[] = { "$", "$labels", "$externalLabels", "$externalURL",
		"$value" };
	struct template_node *first = NULL;
	enum block_end end;
	enum err_code rc;

	if (!t)
		return arena_fail(a, "template", err);
	if (text.len > TEMPLATE_BYTES_MAX)
		return err_set(
			err, ERR_LIMIT, "template is %zu bytes, limit %u", text.len, TEMPLATE_BYTES_MAX);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if ((rc = template_declare(&p, str_of(known[i]))))
			return rc;
	if ((rc = template_parse_list(&p, &first, &end)))
		return rc;
	if (end != END_TEXT)
		return fault(&p, p.token.at, "unexpected {{%s}}", end == END_END ? "end" : "else");
	assert(!p.depth && !p.loops && p.pos == text.len);
	*t = (struct template){ .text = text, .first = first };
	*out = t;
	return ERR_OK;
}
