#include "promql/syntax/parse.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/quote.h"
#include "promql/syntax/ast_builder.h"
#include "promql/syntax/check.h"

/* Written by lemon, which declares them nowhere. */
void *promql_parserAlloc(void *(*alloc)(size_t));
void promql_parserFree(void *parser, void (*release)(void *));
void promql_parser(void *parser, int id, struct lexer_token token, struct ast_builder *b);

static size_t syntax_parse_characters(struct str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++)
		n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
	return n;
}

/* Offset of the first byte of the line that `at` is in. */
static size_t syntax_parse_line_start(struct str text, size_t at)
{
	while (at > 0 && text.ptr[at - 1] != '\n')
		at--;
	return at;
}

enum err_code query_error_at(struct str text, struct span at, struct query_error *where,
	struct err *err, enum err_code code, const char *fmt, ...)
{
	struct query_error local;
	size_t start = at.start < text.len ? at.start : text.len, line;
	va_list ap;

	if (!where)
		where = &local;
	line = syntax_parse_line_start(text, start);
	where->code = code;
	where->at = at;
	where->column = (uint32_t)syntax_parse_characters(
						(struct str){ text.ptr + line, start - line }) +
		1;
	where->line = 1;
	for (size_t i = 0; i < line; i++)
		where->line += text.ptr[i] == '\n';
	va_start(ap, fmt);
	vsnprintf(where->msg, sizeof(where->msg), fmt, ap);
	va_end(ap);
	return err_set(err, code, "%u:%u: %s", where->line, where->column, where->msg);
}

#define SHOWN_MAX 100 /* bytes of a line that are printed */
#define SHOWN_BEFORE 60 /* of them before the caret, if the line is longer */

void query_error_print(struct buf *out, struct str text, const struct query_error *where)
{
	size_t start = where->at.start < text.len ? where->at.start : text.len;
	size_t from = syntax_parse_line_start(text, start), to = start;

	while (to < text.len && text.ptr[to] != '\n')
		to++;
	if (to - from > SHOWN_MAX) { /* whole characters around the caret */
		if (start - from > SHOWN_BEFORE)
			from = start - SHOWN_BEFORE;
		if (to - from > SHOWN_MAX)
			to = from + SHOWN_MAX;
		while (from < start && ((unsigned char)text.ptr[from] & 0xc0) == 0x80)
			from++;
		while (to > start && to < text.len && ((unsigned char)text.ptr[to] & 0xc0) == 0x80)
			to--;
	}
	buf_add(out, text.ptr + from, to - from);
	buf_add_char(out, '\n');
	for (size_t i = from; i < start; i++)
		if (((unsigned char)text.ptr[i] & 0xc0) != 0x80)
			buf_add_char(out, text.ptr[i] == '\t' ? '\t' : ' ');
	buf_add_cstr(out, "^ ");
	buf_add_cstr(out, where->msg);
}

void parsed_release(struct parsed *p)
{
	for (struct expr *e = p ? p->selectors : NULL; e; e = e->selector.next) {
		for (size_t i = 0; i < e->selector.matchers_n; i++)
			matcher_release(&e->selector.matchers[i]);
		e->selector.matchers_n = 0;
	}
}

/* ERR_INVALID at the first byte that is not UTF-8. */
static enum err_code syntax_parse_check_utf8(
	struct str text, struct query_error *where, struct err *err)
{
	struct str rest = text;
	uint32_t code, at;
	size_t n;

	if (str_is_utf8(text))
		return ERR_OK;
	while (rest.len && (n = utf8_decode(rest, &code))) {
		rest.ptr += n;
		rest.len -= n;
	}
	at = (uint32_t)(text.len - rest.len);
	return query_error_at(
		text, (struct span){ at, at + 1 }, where, err, ERR_INVALID, "query is not UTF-8");
}

const char *query_keyword(size_t i)
{
	return lexer_keyword(i);
}

enum query_keyword_kind query_keyword_kind(size_t i)
{
	return lexer_keyword_kind(i);
}

static void syntax_parse_feed(struct ast_builder *b, void *parser)
{
	struct lexer l;

	lexer_init(&l, b->parsed->text);
	do {
		b->token_before = b->token.at.end;
		lexer_next(&l, &b->token);
		if (b->token.error)
			build_fail(b, b->token.at, ERR_INVALID, "%s", b->token.error);
		else
			promql_parser(parser, b->token.id, b->token, b);
	} while (!b->rc && b->token.id != 0);
}

enum err_code parse_query(struct arena *a, struct str text, struct parsed **out,
	struct query_error *where, struct err *err)
{
	struct ast_builder b = { .arena = a, .where = where, .err = err };
	void *parser;

	if (where)
		*where = (struct query_error){ 0 };
	if (text.len > QUERY_TEXT_MAX)
		return err_set(
			err, ERR_LIMIT, "query is %zu bytes long, limit %u", text.len, QUERY_TEXT_MAX);
	if ((b.rc = syntax_parse_check_utf8(text, where, err)))
		return b.rc;
	b.parsed = arena_new(a, struct parsed);
	if (b.parsed)
		b.parsed->text = str_dup(a, text);
	if (!b.parsed || !b.parsed->text.ptr)
		return arena_fail(a, "query", err);
	b.parsed->arena = a;
	parser = promql_parserAlloc(malloc);
	if (!parser)
		return err_nomem(err, "query");
	syntax_parse_feed(&b, parser);
	promql_parserFree(parser, free);
	if (b.rc) {
		parsed_release(b.parsed);
		return b.rc;
	}
	*out = b.parsed;
	return ERR_OK;
}

enum err_code parse_selector(struct arena *a, struct str text, struct parsed **out,
	struct query_error *where, struct err *err)
{
	struct parsed *q;
	const struct expr *e;
	enum err_code rc;

	rc = parse_query(a, text, &q, where, err);
	if (rc)
		return rc;
	e = q->root;
	if (e->kind != EXPR_SELECTOR || e->selector.window_ns || time_shift_any(&e->selector.shift))
		rc = query_error_at(q->text, e->at, where, err, ERR_INVALID,
			"expected a selector: name{label=\"value\", ...}");
	else
		rc = check_query(q, where, err);
	if (rc)
		parsed_release(q);
	else
		*out = q;
	return rc;
}
