#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/quote.h"
#include "promql/syntax/ast.h"

#define COLUMNS 100 /* an expression that would pass them is broken over lines */

static bool syntax_print_is_one_of(struct str name, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq_nocase(name, str_of(words[i])))
			return true;
	return false;
}

/* Quotes a label's name that is no identifier, or that the grammar would read as a keyword. */
static void print_label(struct buf *out, struct str name)
{
	static const char *const words[] = { "without", "inf", "nan" };

	if (label_name_valid(name) &&
		!syntax_print_is_one_of(name, words, sizeof(words) / sizeof(words[0])))
		buf_add_str(out, name);
	else
		buf_add_quoted(out, name);
}

static void print_names(struct buf *out, const char *word, struct name_list l)
{
	buf_printf(out, "%s (", word);
	for (size_t i = 0; i < l.n; i++) {
		if (i)
			buf_add_cstr(out, ", ");
		print_label(out, l.v[i]);
	}
	buf_add_char(out, ')');
}

static const char *grouping_word(enum grouping g)
{
	/* clang-format off */
	static const char *const words[] = {
		[GROUPING_NONE] = "", [GROUPING_BY] = "by", [GROUPING_WITHOUT] = "without",
		[GROUPING_ON] = "on", [GROUPING_IGNORING] = "ignoring",
	};
	/* clang-format on */

	return words[g];
}

static void print_shift(struct buf *out, const struct time_shift *s)
{
	if (s->at == AT_TIME) {
		uint64_t ms = (uint64_t)(s->at_ns < 0 ? -s->at_ns : s->at_ns) / NS_PER_MS;

		buf_printf(out, " @ %s%llu.%03u", s->at_ns < 0 ? "-" : "", (unsigned long long)(ms / 1000),
			(unsigned)(ms % 1000));
	} else if (s->at != AT_NONE) {
		buf_add_cstr(out, s->at == AT_START ? " @ start()" : " @ end()");
	}
	if (s->offset_ns) {
		buf_add_cstr(out, " offset ");
		duration_print(out, s->offset_ns);
	}
}

/* It is read as a name without quotes. */
static bool syntax_print_is_plain_name(struct str name)
{
	static const char *const words[] = { "on", "ignoring", "group_left", "group_right", "bool",
		"atan2", "inf", "nan" };

	return series_name_valid(name) &&
		!syntax_print_is_one_of(name, words, sizeof(words) / sizeof(words[0]));
}

static void print_selector(struct buf *out, const struct selector *s)
{
	bool is_plain = syntax_print_is_plain_name(s->name), first = true;

	if (is_plain)
		buf_add_str(out, s->name);
	if (s->matchers_n || !is_plain) {
		buf_add_char(out, '{');
		if (s->name.len && !is_plain) {
			buf_add_quoted(out, s->name);
			first = false;
		}
		for (size_t i = 0; i < s->matchers_n; i++) {
			if (!first)
				buf_add_char(out, ',');
			matcher_print(out, &s->matchers[i]);
			first = false;
		}
		buf_add_char(out, '}');
	}
	if (s->window_ns) {
		buf_add_char(out, '[');
		duration_print(out, s->window_ns);
		buf_add_char(out, ']');
	}
	print_shift(out, &s->shift);
}

/* What follows the expression: "[1h:5m] offset 1d" */
static void print_range(struct buf *out, const struct subquery *s)
{
	buf_add_char(out, '[');
	duration_print(out, s->range_ns);
	buf_add_char(out, ':');
	if (s->step_ns)
		duration_print(out, s->step_ns);
	buf_add_char(out, ']');
	print_shift(out, &s->shift);
}

/* The number as a power of ten, d.ddde-7, from its spelling in digits or as d.ddde+XX. */
static void syntax_print_power(struct buf *out, struct str plain)
{
	char digits[32];
	size_t n = 0;
	int point = 0, power = 0; /* digits before the point; what follows an "e" */
	bool is_fraction = false;

	for (size_t i = 0; i < plain.len && n < sizeof(digits); i++) {
		if (plain.ptr[i] == 'e') {
			power = (int)strtol(plain.ptr + i + 1, NULL, 10);
			break;
		}
		if (plain.ptr[i] == '.') {
			is_fraction = true;
			continue;
		}
		if (n || plain.ptr[i] != '0')
			digits[n++] = plain.ptr[i];
		if (n && !is_fraction)
			point++;
		else if (!n && is_fraction)
			point--;
	}
	while (n > 1 && digits[n - 1] == '0')
		n--;
	buf_add(out, digits, 1);
	if (n > 1)
		buf_add_char(out, '.');
	buf_add(out, digits + 1, n - 1);
	buf_printf(out, "e%d", point - 1 + power);
}

/*
 * The shorter of two spellings that read back as the same number: digits, or a power of ten (1e9,
 * 2.5e-7). From 0.0001 to a million all numbers are digits: 5000, not 5e3.
 */
static void syntax_print_double(struct buf *out, double v)
{
	struct buf plain = { 0 }, power = { 0 };
	double size = fabs(v);

	if (isfinite(v) && v < 0) {
		buf_add_char(out, '-');
		v = size;
	}
	if (isfinite(v) && v != 0 && (size < 1e-4 || size >= 1e6)) {
		buf_add_double(&plain, v);
		buf_add_char(&plain, '\0'); /* for strtol */
		if (!buf_failed(&plain))
			syntax_print_power(&power, (struct str){ plain.ptr, plain.len - 1 });
	}
	if (power.len && !buf_failed(&power) && power.len < plain.len - 1)
		buf_add_str(out, buf_str(&power));
	else
		buf_add_double(out, v);
	buf_release(&plain);
	buf_release(&power);
}

static void print_number(struct buf *out, const struct expr *e)
{
	/* A plus would read as an operator, which binds less than ^. */
	if (isinf(e->number) && e->number > 0) {
		buf_add_cstr(out, "Inf");
	} else if (e->is_duration) {
		if (signbit(e->number)) /* of -0s too */
			buf_add_char(out, '-');
		duration_print(out, llround(fabs(e->number) * 1e3) * NS_PER_MS);
	} else {
		syntax_print_double(out, e->number);
	}
}

/* The operator with its modifiers: "* on (job) group_left (pod)". */
static void syntax_print_operator(struct buf *out, const struct binary *b)
{
	buf_add_cstr(out, binary_op_name(b->op));
	if (b->returns_bool)
		buf_add_cstr(out, " bool");
	if (b->matching == GROUPING_NONE)
		return;
	buf_add_char(out, ' ');
	print_names(out, grouping_word(b->matching), b->labels);
	if (b->card == CARD_ONE_TO_ONE)
		return;
	/* An empty list is printed too: a bracket that follows would be taken for it. */
	buf_add_char(out, ' ');
	print_names(out, b->card == CARD_GROUP_LEFT ? "group_left" : "group_right", b->include);
}

/* "sum by (job) " */
static void print_callee(struct buf *out, const struct call *c)
{
	buf_add_str(out, c->name);
	if (c->grouping == GROUPING_NONE)
		return;
	buf_add_char(out, ' ');
	print_names(out, grouping_word(c->grouping), c->labels);
	buf_add_char(out, ' ');
}

void expr_print(struct buf *out, const struct expr *e)
{
	switch (e->kind) {
	case EXPR_NUMBER:
		print_number(out, e);
		break;
	case EXPR_STRING:
		buf_add_quoted(out, e->string);
		break;
	case EXPR_SELECTOR:
		print_selector(out, &e->selector);
		break;
	case EXPR_SUBQUERY:
		expr_print(out, e->subquery.arg);
		print_range(out, &e->subquery);
		break;
	case EXPR_UNARY:
		buf_add_char(out, e->unary.negative ? '-' : '+');
		expr_print(out, e->unary.arg);
		break;
	case EXPR_BINARY:
		expr_print(out, e->binary.lhs);
		buf_add_char(out, ' ');
		syntax_print_operator(out, &e->binary);
		buf_add_char(out, ' ');
		expr_print(out, e->binary.rhs);
		break;
	case EXPR_CALL:
		print_callee(out, &e->call);
		buf_add_char(out, '(');
		for (size_t i = 0; i < e->call.args_n; i++) {
			if (i)
				buf_add_cstr(out, ", ");
			expr_print(out, e->call.args[i]);
		}
		buf_add_char(out, ')');
		break;
	case EXPR_PAREN:
		buf_add_char(out, '(');
		expr_print(out, e->paren);
		buf_add_char(out, ')');
		break;
	}
}

static bool syntax_print_fits(const struct expr *e, unsigned level)
{
	struct buf line = { 0 };
	bool fit;

	expr_print(&line, e);
	fit = !buf_failed(&line) && line.len + level * 2 <= COLUMNS;
	buf_release(&line);
	return fit;
}

static void syntax_print_indent(struct buf *out, unsigned level)
{
	buf_printf(out, "%*s", (int)level * 2, "");
}

static void syntax_print_pretty(struct buf *out, const struct expr *e, unsigned level);

static void syntax_print_pretty_call(struct buf *out, const struct call *c, unsigned level)
{
	print_callee(out, c);
	buf_add_cstr(out, "(\n");
	for (size_t i = 0; i < c->args_n; i++) {
		syntax_print_indent(out, level + 1);
		syntax_print_pretty(out, c->args[i], level + 1);
		buf_add_cstr(out, i + 1 < c->args_n ? ",\n" : "\n");
	}
	syntax_print_indent(out, level);
	buf_add_char(out, ')');
}

static void syntax_print_pretty_binary(struct buf *out, const struct binary *b, unsigned level)
{
	/* The caller has indented for `level`; the operands are one deeper, the operator is not. */
	buf_add_cstr(out, "  ");
	syntax_print_pretty(out, b->lhs, level + 1);
	buf_add_char(out, '\n');
	syntax_print_indent(out, level);
	syntax_print_operator(out, b);
	buf_add_char(out, '\n');
	syntax_print_indent(out, level + 1);
	syntax_print_pretty(out, b->rhs, level + 1);
}

/* From where the cursor is, which is level * 2 blanks from the left. */
static void syntax_print_pretty(struct buf *out, const struct expr *e, unsigned level)
{
	if (syntax_print_fits(e, level)) {
		expr_print(out, e);
		return;
	}
	switch (e->kind) {
	case EXPR_UNARY:
		buf_add_char(out, e->unary.negative ? '-' : '+');
		syntax_print_pretty(out, e->unary.arg, level);
		break;
	case EXPR_BINARY:
		syntax_print_pretty_binary(out, &e->binary, level);
		break;
	case EXPR_SUBQUERY:
		syntax_print_pretty(out, e->subquery.arg, level);
		print_range(out, &e->subquery);
		break;
	case EXPR_CALL:
		syntax_print_pretty_call(out, &e->call, level);
		break;
	case EXPR_PAREN:
		buf_add_cstr(out, "(\n");
		syntax_print_indent(out, level + 1);
		syntax_print_pretty(out, e->paren, level + 1);
		buf_add_char(out, '\n');
		syntax_print_indent(out, level);
		buf_add_char(out, ')');
		break;
	default:
		expr_print(out, e);
	}
}

void expr_print_pretty(struct buf *out, const struct expr *e)
{
	syntax_print_pretty(out, e, 0);
}
