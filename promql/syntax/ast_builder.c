#include "promql/syntax/ast_builder.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/quote.h"
#include "promql/syntax/functions.h"
#include "promql/syntax/grammar.h"

void build_fail(struct ast_builder *b, struct span at, enum err_code code, const char *fmt, ...)
{
	char msg[sizeof(((struct query_error *)0)->msg)];
	va_list ap;

	if (b->rc)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	b->rc = query_error_at(b->parsed->text, at, b->where, b->err, code, "%s", msg);
}

void build_unexpected(struct ast_builder *b, const char *const *expected, size_t n)
{
	struct span at = b->token.at;
	char list[128] = "";
	size_t len = 0;

	for (size_t i = 0; i < n && n < 5; i++) /* more than four choices help nobody */
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
			i == 0        ? ", expected " :
				i + 1 < n ? ", " :
							" or ",
			expected[i]);
	if (b->token.id == 0) {
		at.start = at.end = b->token_before; /* not behind blanks and comments */
		build_fail(b, at, ERR_INVALID, "unexpected end of query%s", list);
	} else if (b->token.id == TOKEN_STRING) {
		build_fail(b, at, ERR_INVALID, "unexpected string%s", list);
	} else {
		build_fail(b, at, ERR_INVALID, "unexpected %s%s", QUOTED(b->token.text), list);
	}
}

void build_too_deep(struct ast_builder *b)
{
	build_fail(b, b->token.at, ERR_LIMIT, "query nests deeper than %u", QUERY_DEPTH_MAX);
}

static void *ast_builder_alloc(struct ast_builder *b, size_t n, size_t size)
{
	void *p = b->rc ? NULL : arena_calloc(b->arena, n, size);

	if (!p && !b->rc)
		b->rc = arena_fail(b->arena, "query", b->err);
	return p;
}

static struct span span_join(struct span first, struct span last)
{
	return (struct span){ first.start, last.end };
}

static struct expr *ast_builder_expr(struct ast_builder *b, enum expr_kind kind, struct span at)
{
	struct expr *e = ast_builder_alloc(b, 1, sizeof(*e));

	if (e) {
		e->kind = kind;
		e->at = at;
		e->depth = 1;
	}
	return e;
}

/* e takes part in parent. */
static void ast_builder_below(struct ast_builder *b, struct expr *parent, const struct expr *e)
{
	if (parent->depth <= e->depth)
		parent->depth = e->depth + 1;
	if (parent->depth > QUERY_DEPTH_MAX)
		build_too_deep(b);
}

struct list build_list(struct ast_builder *b, struct list l, struct ast_builder_item item,
	size_t max, const char *what)
{
	struct ast_builder_item *i;

	if (l.n == max)
		build_fail(
			b, item.expr ? item.expr->at : item.name.at, ERR_LIMIT, "more than %zu %s", max, what);
	i = ast_builder_alloc(b, 1, sizeof(*i));
	if (!i)
		return l;
	*i = item;
	i->next = NULL;
	if (l.last)
		l.last->next = i;
	else
		l.first = i;
	l.last = i;
	l.n++;
	return l;
}

struct list list_at(struct list l, struct lexer_token first, struct lexer_token last)
{
	l.at = span_join(first.at, last.at);
	return l;
}

struct modifier build_modifier(struct lexer_token word, struct list labels)
{
	enum grouping grouping = word.id == TOKEN_BY ? GROUPING_BY :
		word.id == TOKEN_WITHOUT                 ? GROUPING_WITHOUT :
		word.id == TOKEN_ON                      ? GROUPING_ON :
												   GROUPING_IGNORING;

	return (struct modifier){ grouping, labels, span_join(word.at, labels.at) };
}

bool number_parse(struct str text, double *out)
{
	bool is_hex = text.len > 2 && text.ptr[0] == '0' && (text.ptr[1] | 32) == 'x';
	bool is_octal = text.len > 1 && text.ptr[0] == '0';
	char *end;
	uint64_t n;

	for (size_t i = 1; i < text.len && is_octal; i++)
		is_octal = text.ptr[i] >= '0' && text.ptr[i] <= '7';
	if (is_hex || is_octal) {
		errno = 0;
		n = strtoull(text.ptr, &end, is_hex ? 16 : 8);
		*out = (double)n;
		if (!errno && n <= INT64_MAX)
			return end == text.ptr + text.len;
		if (is_hex)
			return false;
	}
	/* No token goes on behind its text in a way that strtod would read as more of a number. */
	*out = strtod(text.ptr, &end);
	return end == text.ptr + text.len && (!isinf(*out) || (text.ptr[0] | 32) == 'i');
}

/* A number or a duration as nanoseconds. */
static int64_t ast_builder_duration_of(struct ast_builder *b, struct lexer_token t)
{
	struct err err = { 0 };
	int64_t ns = 0;
	double s = 0;

	if (t.id == TOKEN_DURATION) {
		if (duration_parse(t.text, &ns, &err))
			build_fail(b, t.at, ERR_INVALID, "%s", err.msg);
	} else if (!number_parse(t.text, &s) || !(fabs(s) <= (double)(TIME_MAX_NS / NS_PER_S))) {
		ns = INT64_MAX;
	} else {
		ns = llround(s * 1e3) * NS_PER_MS;
	}
	if (ns > TIME_MAX_NS)
		build_fail(b, t.at, ERR_INVALID, "duration out of range");
	return ns;
}

static int64_t ast_builder_positive_duration_of(struct ast_builder *b, struct lexer_token t)
{
	int64_t ns = ast_builder_duration_of(b, t);

	if (ns <= 0)
		build_fail(b, t.at, ERR_INVALID, "duration must be greater than 0");
	return ns;
}

static double ast_builder_number_of(struct ast_builder *b, struct lexer_token t)
{
	double v = 0;

	if (t.id == TOKEN_DURATION)
		return (double)(ast_builder_duration_of(b, t) / NS_PER_MS) / 1e3;
	if (!b->rc && !number_parse(t.text, &v))
		build_fail(b, t.at, ERR_INVALID, "number out of range: %s", QUOTED(t.text));
	return v;
}

struct expr *build_number(struct ast_builder *b, struct lexer_token t)
{
	struct expr *e = ast_builder_expr(b, EXPR_NUMBER, t.at);

	if (e) {
		e->number = ast_builder_number_of(b, t);
		e->is_duration = t.id == TOKEN_DURATION;
	}
	return e;
}

static bool ast_builder_string_of(struct ast_builder *b, struct lexer_token t, struct str *out)
{
	const char *fault = NULL;
	struct span at;

	if (b->rc)
		return false;
	if (string_unescape(b->arena, t, out, &at, &fault))
		return true;
	if (fault)
		build_fail(b, at, ERR_INVALID, "%s", fault);
	else
		b->rc = arena_fail(b->arena, "query", b->err);
	return false;
}

struct expr *build_string(struct ast_builder *b, struct lexer_token t)
{
	struct expr *e = ast_builder_expr(b, EXPR_STRING, t.at);

	return e && ast_builder_string_of(b, t, &e->string) ? e : NULL;
}

/* A name of a label or series, which may be a string of any characters. */
static struct str ast_builder_name_of(struct ast_builder *b, struct lexer_token t, const char *what)
{
	struct str name = t.text;

	if (t.id != TOKEN_STRING)
		return name;
	if (ast_builder_string_of(b, t, &name) && !any_name_valid(name))
		build_fail(b, t.at, ERR_INVALID, "invalid %s name %s", what, QUOTED(name));
	return name;
}

static struct name_list name_list_of(struct ast_builder *b, struct list l)
{
	struct name_list names = { ast_builder_alloc(b, l.n, sizeof(struct str)), 0 };

	for (struct ast_builder_item *i = l.first; i && names.v; i = i->next)
		names.v[names.n++] = ast_builder_name_of(b, i->name, "label");
	return names;
}

struct expr *build_paren(
	struct ast_builder *b, struct expr *inner, struct lexer_token first, struct lexer_token last)
{
	struct expr *e = ast_builder_expr(b, EXPR_PAREN, span_join(first.at, last.at));

	if (e) {
		e->paren = inner;
		ast_builder_below(b, e, inner);
	}
	return e;
}

/* A sign before a literal is part of it, as Prometheus has it; -2^2 is -(2^2) all the same. */
struct expr *build_unary(struct ast_builder *b, struct lexer_token op, struct expr *arg)
{
	struct expr *e;

	if (b->rc)
		return NULL;
	if (arg->kind == EXPR_NUMBER) {
		if (op.id == TOKEN_SUB)
			arg->number = -arg->number;
		arg->at.start = op.at.start;
		return arg;
	}
	e = ast_builder_expr(b, EXPR_UNARY, span_join(op.at, arg->at));
	if (e) {
		e->unary = (struct unary){ op.id == TOKEN_SUB, arg };
		ast_builder_below(b, e, arg);
	}
	return e;
}

static enum binary_op ast_builder_op_of(int token)
{
	/* clang-format off */
	static const uint8_t ops[] = {
		[TOKEN_ADD] = OP_ADD, [TOKEN_SUB] = OP_SUB, [TOKEN_MUL] = OP_MUL,
		[TOKEN_DIV] = OP_DIV, [TOKEN_MOD] = OP_MOD, [TOKEN_POW] = OP_POW,
		[TOKEN_ATAN2] = OP_ATAN2, [TOKEN_EQ] = OP_EQ, [TOKEN_NE] = OP_NE,
		[TOKEN_LT] = OP_LT, [TOKEN_LE] = OP_LE, [TOKEN_GT] = OP_GT,
		[TOKEN_GE] = OP_GE, [TOKEN_AND] = OP_AND, [TOKEN_OR] = OP_OR,
		[TOKEN_UNLESS] = OP_UNLESS,
	};
	/* clang-format on */

	return (enum binary_op)ops[token];
}

struct expr *build_binary(struct ast_builder *b, struct expr *lhs, struct lexer_token op,
	struct matching m, struct expr *rhs)
{
	struct expr *e;

	if (b->rc)
		return NULL;
	e = ast_builder_expr(b, EXPR_BINARY, span_join(lhs->at, rhs->at));
	if (!e)
		return NULL;
	e->binary = (struct binary){
		.op = ast_builder_op_of(op.id),
		.op_at = op.at,
		.lhs = lhs,
		.rhs = rhs,
		.returns_bool = m.returns_bool,
		.matching = m.on.grouping,
		.labels = name_list_of(b, m.on.labels),
		.card = m.card,
		.include = name_list_of(b, m.include),
	};
	ast_builder_below(b, e, lhs);
	ast_builder_below(b, e, rhs);
	return e;
}

struct expr *build_call(struct ast_builder *b, struct lexer_token name, struct modifier m,
	struct list args, struct modifier behind)
{
	struct expr *e = ast_builder_expr(b, EXPR_CALL, span_join(name.at, args.at));
	const struct function *fn = function_find(name.text);

	if (!e)
		return NULL;
	if (behind.grouping != GROUPING_NONE) {
		m = behind;
		e->at.end = behind.at.end;
	}
	e->call = (struct call){
		.fn = fn,
		.name = fn ? str_of(fn->name) : name.text,
		.grouping = m.grouping,
		.labels = name_list_of(b, m.labels),
		.args = ast_builder_alloc(b, args.n, sizeof(struct expr *)),
	};
	for (struct ast_builder_item *i = args.first; i && !b->rc; i = i->next) {
		e->call.args[e->call.args_n++] = i->expr;
		ast_builder_below(b, e, i->expr);
	}
	return b->rc ? NULL : e;
}

/* Appends to s->matchers, which has room. */
static void ast_builder_matcher(
	struct ast_builder *b, struct selector *s, const struct ast_builder_item *item)
{
	enum match_op op = item->op.id == TOKEN_MATCH_EQ ? MATCH_EQ :
		item->op.id == TOKEN_MATCH_NE                ? MATCH_NE :
		item->op.id == TOKEN_MATCH_RE                ? MATCH_RE :
													   MATCH_NRE;
	struct str name = ast_builder_name_of(b, item->name, "label"), value;
	struct err err = { 0 };
	enum err_code rc;

	if (!ast_builder_string_of(b, item->value, &value))
		return;
	if ((op == MATCH_RE || op == MATCH_NRE) && ++b->regexes_n > QUERY_REGEXES_MAX)
		build_fail(
			b, item->value.at, ERR_LIMIT, "more than %u regular expressions", QUERY_REGEXES_MAX);
	if (b->rc)
		return;
	rc = matcher_init(&s->matchers[s->matchers_n], op, name, value, &err);
	if (rc)
		build_fail(b, item->value.at, rc, "%s", err.msg);
	else
		s->matchers_n++;
}

/* {"name"} */
static void ast_builder_quoted_name(struct ast_builder *b, struct selector *s, struct lexer_token t)
{
	struct str name = ast_builder_name_of(b, t, "series");

	if (s->name.len)
		build_fail(b, t.at, ERR_INVALID, "the name is set twice: %s and %s", QUOTED(s->name),
			QUOTED(name));
	s->name = name;
}

struct expr *build_selector(
	struct ast_builder *b, const struct lexer_token *name, const struct list *matchers)
{
	struct span first = name ? name->at : matchers->at, last = matchers ? matchers->at : name->at;
	struct expr *e = ast_builder_expr(b, EXPR_SELECTOR, span_join(first, last));

	if (!e)
		return NULL;
	if (name)
		e->selector.name = name->text;
	if (b->selector_last)
		b->selector_last->selector.next = e;
	else
		b->parsed->selectors = e;
	b->selector_last = e; /* from here on parsed_release sees its matchers */
	if (matchers) {
		e->selector.matchers = ast_builder_alloc(b, matchers->n, sizeof(struct matcher));
		for (struct ast_builder_item *i = matchers->first; i && !b->rc; i = i->next) {
			if (i->value.id)
				ast_builder_matcher(b, &e->selector, i);
			else
				ast_builder_quoted_name(b, &e->selector, i->name);
		}
	}
	return e;
}

/* The time shift that offset and @ change. NULL: the expression takes none. */
static struct time_shift *ast_builder_shift_of(
	struct ast_builder *b, struct expr *e, struct span at, const char *what)
{
	if (b->rc)
		return NULL;
	if (e->kind == EXPR_SELECTOR)
		return &e->selector.shift;
	if (e->kind == EXPR_SUBQUERY)
		return &e->subquery.shift;
	build_fail(
		b, at, ERR_INVALID, "%s is allowed only directly after a selector or a subquery", what);
	return NULL;
}

struct expr *build_window(
	struct ast_builder *b, struct expr *e, struct lexer_token duration, struct lexer_token last)
{
	if (b->rc)
		return NULL;
	if (e->kind != EXPR_SELECTOR)
		build_fail(b, duration.at, ERR_INVALID,
			"a window is allowed only directly after a selector; a subquery has a colon: [5m:]");
	else if (e->selector.window_ns)
		build_fail(b, duration.at, ERR_INVALID, "a selector has only one window");
	else if (time_shift_any(&e->selector.shift))
		build_fail(b, duration.at, ERR_INVALID, "a window must come before offset and @");
	if (b->rc)
		return NULL;
	e->selector.window_ns = ast_builder_positive_duration_of(b, duration);
	e->at.end = last.at.end;
	return e;
}

struct expr *build_subquery(struct ast_builder *b, struct expr *arg, struct lexer_token range,
	const struct lexer_token *step, struct lexer_token last)
{
	struct expr *e = ast_builder_expr(b, EXPR_SUBQUERY, range.at);

	if (!e)
		return NULL;
	e->at = span_join(arg->at, last.at);
	e->subquery = (struct subquery){ .arg = arg,
		.range_ns = ast_builder_positive_duration_of(b, range) };
	if (step)
		e->subquery.step_ns = ast_builder_positive_duration_of(b, *step);
	ast_builder_below(b, e, arg);
	return e;
}

struct expr *build_offset(struct ast_builder *b, struct expr *e, struct lexer_token word,
	bool negative, struct lexer_token duration)
{
	struct time_shift *s = ast_builder_shift_of(b, e, word.at, "offset");

	if (!s)
		return NULL;
	if (s->offset_ns)
		build_fail(b, word.at, ERR_INVALID, "offset may not be set twice");
	s->offset_ns = ast_builder_duration_of(b, duration) * (negative ? -1 : 1);
	e->at.end = duration.at.end;
	return e;
}

static struct time_shift *ast_builder_shift_for_at(
	struct ast_builder *b, struct expr *e, struct lexer_token at)
{
	struct time_shift *s = ast_builder_shift_of(b, e, at.at, "@");

	if (s && s->at != AT_NONE)
		build_fail(b, at.at, ERR_INVALID, "@ may not be set twice");
	return s;
}

struct expr *build_at_time(struct ast_builder *b, struct expr *e, struct lexer_token at,
	bool negative, struct lexer_token number)
{
	double v = ast_builder_number_of(b, number);
	struct time_shift *s = ast_builder_shift_for_at(b, e, at);

	if (!s)
		return NULL;
	if (!(v <= (double)(TIME_MAX_NS / NS_PER_S))) {
		build_fail(b, number.at, ERR_INVALID, "time out of range: %s", QUOTED(number.text));
		return NULL;
	}
	s->at = AT_TIME;
	s->at_ns = llround((negative ? -v : v) * 1e3) * NS_PER_MS;
	e->at.end = number.at.end;
	return e;
}

struct expr *build_at_edge(struct ast_builder *b, struct expr *e, struct lexer_token at,
	struct lexer_token edge, struct lexer_token last)
{
	struct time_shift *s = ast_builder_shift_for_at(b, e, at);

	if (!s)
		return NULL;
	s->at = edge.id == TOKEN_START ? AT_START : AT_END;
	e->at.end = last.at.end;
	return e;
}
