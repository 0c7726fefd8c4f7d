#include "promql/syntax/check.h"

#include <assert.h>

#include "base/quote.h"
#include "base/regex.h"
#include "promql/syntax/filter_text.h"

#define VALUE_SERIES (VALUE_COSTS | VALUE_PROFILES) /* the meanings of a name */

struct checker {
	struct str text;
	struct query_error *where;
	struct err *err;
	size_t regexes_n; /* of filters and label_replace() */
	struct check_names *names; /* NULL: nothing is assumed */
};

#define FAIL(c, span, ...) \
	query_error_at((c)->text, (span), (c)->where, (c)->err, ERR_INVALID, __VA_ARGS__)

struct types_text {
	char text[96];
};

static struct types_text types_text(unsigned types)
{
	struct types_text t = { "" };
	struct buf b = { 0 };

	value_types_print(&b, types);
	if (b.len < sizeof(t.text) && !buf_failed(&b))
		memcpy(t.text, b.ptr, b.len);
	buf_release(&b);
	return t;
}

static enum err_code checker_check_expr(struct checker *c, struct expr *e);

/* The types that a selector may give, less those that its name rules out. */
static unsigned selector_types(struct checker *c, const struct expr *e, unsigned types)
{
	struct check_names *names = c->names;
	unsigned known = names && e->selector.name.len ? names->kind(names->ctx, e->selector.name) : 0;

	if (!(types & known))
		return types;
	if (!names->assumed)
		names->assumed = e;
	return types & known;
}

static enum err_code check_selector(struct checker *c, struct expr *e)
{
	const struct selector *s = &e->selector;
	bool narrows = s->name.len > 0;

	for (size_t i = 0; i < s->matchers_n; i++) {
		if (s->name.len && str_is(s->matchers[i].name, LABEL_NAME))
			return FAIL(c, e->at, "the name is set twice: %s and %s", QUOTED(s->name),
				QUOTED(s->matchers[i].value));
		narrows |= !matcher_test(&s->matchers[i], (struct str){ 0 });
	}
	if (!narrows)
		return FAIL(c, e->at, "selector must contain at least one non-empty matcher");
	/* Numbers have no sum over a window; the functions that give them one say so (ARG_WINDOW). */
	e->types = selector_types(c, e, s->window_ns ? VALUE_PROFILES : VALUE_SERIES);
	return ERR_OK;
}

static enum err_code check_subquery(struct checker *c, struct expr *e)
{
	const struct expr *arg = e->subquery.arg;
	enum err_code rc = checker_check_expr(c, e->subquery.arg);

	if (rc)
		return rc;
	if (!(arg->types & VALUE_COSTS))
		return FAIL(c, arg->at, "a subquery needs costs, got %s%s", types_text(arg->types).text,
			arg->types & VALUE_PROFILES   ? "; use total(), flat() or cum() for costs" :
				arg->types & VALUE_SCALAR ? "; use vector() for costs" :
											"");
	e->types = VALUE_RANGE;
	return ERR_OK;
}

static enum err_code check_unary(struct checker *c, struct expr *e)
{
	const struct expr *arg = e->unary.arg;
	enum err_code rc = checker_check_expr(c, e->unary.arg);

	if (rc)
		return rc;
	e->types = arg->types & (VALUE_SCALAR | VALUE_COSTS);
	if (!e->types)
		return FAIL(c, arg->at, "unary %s needs costs or a scalar, got %s",
			e->unary.negative ? "-" : "+", types_text(arg->types).text);
	return ERR_OK;
}

/* The type of one type with another, by the table in ast.h; 0: none. */
static unsigned binary_result(enum binary_op op, unsigned left, unsigned right)
{
	if (left == VALUE_COSTS && right == VALUE_COSTS)
		return VALUE_COSTS;
	if (left == VALUE_PROFILES && right == VALUE_PROFILES)
		return op == OP_SUB ? VALUE_PROFILES : 0;
	if (left == VALUE_PROFILES && right == VALUE_SCALAR)
		return op == OP_MUL || op == OP_DIV ? VALUE_PROFILES : 0;
	if (left == VALUE_SCALAR && right == VALUE_PROFILES)
		return op == OP_MUL ? VALUE_PROFILES : 0;
	if (binary_op_is_set(op))
		return 0;
	if (left == VALUE_SCALAR && right == VALUE_SCALAR)
		return VALUE_SCALAR;
	if ((left | right) == (VALUE_COSTS | VALUE_SCALAR))
		return VALUE_COSTS;
	return 0;
}

static unsigned binary_results(enum binary_op op, unsigned lhs, unsigned rhs)
{
	unsigned result = 0;

	for (unsigned l = 1; l <= lhs; l <<= 1)
		for (unsigned r = 1; r <= rhs; r <<= 1)
			if ((lhs & l) && (rhs & r))
				result |= binary_result(op, l, r);
	return result;
}

/* Modifiers that can have no meaning whatever the operands are. */
static enum err_code check_modifiers(struct checker *c, const struct binary *b)
{
	bool is_number = b->lhs->types == VALUE_SCALAR || b->rhs->types == VALUE_SCALAR;

	if (b->returns_bool && !binary_op_is_comparison(b->op))
		return FAIL(c, b->op_at, "bool is only for comparisons, not for %s", binary_op_name(b->op));
	if (binary_op_is_comparison(b->op) && !b->returns_bool && b->lhs->types == VALUE_SCALAR &&
		b->rhs->types == VALUE_SCALAR)
		return FAIL(c, b->op_at, "comparisons between scalars must use bool: %s bool",
			binary_op_name(b->op));
	if (b->matching != GROUPING_NONE && is_number)
		return FAIL(c, b->op_at,
			"on and ignoring need labels on both sides, "
			"a scalar has none");
	if (b->card == CARD_ONE_TO_ONE)
		return ERR_OK;
	if (binary_op_is_set(b->op))
		return FAIL(
			c, b->op_at, "group_left and group_right are not for %s", binary_op_name(b->op));
	for (size_t i = 0; i < b->include.n && b->matching == GROUPING_ON; i++)
		if (name_list_has(b->labels, b->include.v[i]))
			return FAIL(c, b->op_at, "label " STR_FMT " is in on and in group_%s",
				STR_ARG(b->include.v[i]), b->card == CARD_GROUP_LEFT ? "left" : "right");
	return ERR_OK;
}

void binary_fault_print(struct buf *out, const struct binary *b, unsigned lhs, unsigned rhs)
{
	const char *hint = "";

	if (binary_op_is_set(b->op) && (lhs | rhs) & VALUE_SCALAR)
		hint = "; use vector() for costs";
	else if (lhs == VALUE_PROFILES || rhs == VALUE_PROFILES)
		hint = "; use total(), flat() or cum() for costs";
	buf_printf(out, "operator %s%s does not take %s and %s%s", binary_op_name(b->op),
		b->card == CARD_GROUP_LEFT      ? " group_left" :
			b->card == CARD_GROUP_RIGHT ? " group_right" :
										  "",
		types_text(lhs).text, types_text(rhs).text, hint);
}

static enum err_code check_binary(struct checker *c, struct expr *e)
{
	struct binary *b = &e->binary;
	struct buf text = { 0 };
	enum err_code rc;

	if ((rc = checker_check_expr(c, b->lhs)) || (rc = checker_check_expr(c, b->rhs)) ||
		(rc = check_modifiers(c, b)))
		return rc;
	e->types = binary_results(b->op, b->lhs->types, b->rhs->types);
	if (b->card != CARD_ONE_TO_ONE)
		e->types &= ~(unsigned)VALUE_PROFILES;
	if (e->types)
		return ERR_OK;
	binary_fault_print(&text, b, b->lhs->types, b->rhs->types);
	rc = FAIL(c, b->op_at, STR_FMT, STR_ARG(buf_str(&text)));
	buf_release(&text);
	return rc;
}

static enum err_code check_grouping(struct checker *c, const struct expr *e)
{
	static const struct {
		unsigned flag;
		const char *word;
	} groupings[] = {
		[GROUPING_BY] = { FUNCTION_BY, "by" },
		[GROUPING_WITHOUT] = { FUNCTION_WITHOUT, "without" },
		[GROUPING_ON] = { FUNCTION_ON, "on" },
		[GROUPING_IGNORING] = { FUNCTION_ON, "ignoring" },
	};
	const struct call *call = &e->call;

	if (call->grouping == GROUPING_NONE || (call->fn->flags & groupings[call->grouping].flag))
		return ERR_OK;
	return FAIL(c, e->at, "%s() takes no %s: %s", call->fn->name, groupings[call->grouping].word,
		call->fn->usage);
}

static enum err_code check_frames(struct checker *c, const struct function *fn, struct expr *e)
{
	const struct selector *s = &e->selector;

	if (e->kind != EXPR_SELECTOR || s->name.len || s->window_ns || time_shift_any(&s->shift))
		return FAIL(c, e->at, "%s() needs frame matchers in braces: {function=\"...\"}", fn->name);
	for (size_t i = 0; i < s->matchers_n; i++)
		if (frame_field_find(s->matchers[i].name) == FRAME_FIELDS)
			return FAIL(c, e->at,
				"unknown frame field " STR_FMT ", known: function, system_name, "
				"filename, line, address, mapping, build_id",
				STR_ARG(s->matchers[i].name));
	e->types = VALUE_FRAMES;
	return ERR_OK;
}

void check_print_numbers(struct buf *out, const struct function *fn, const struct expr *arg)
{
	bool alone = fn->args_max == 1;

	buf_printf(out, "%s() needs numbers: use %s%stotal(", fn->name, alone ? fn->name : "",
		alone ? "(" : "");
	expr_print(out, expr_strip(arg));
	buf_add_cstr(out, alone ? "))" : ")");
}

static enum err_code check_needs_numbers(
	struct checker *c, const struct function *fn, const struct expr *e)
{
	struct buf text = { 0 };
	enum err_code rc;

	check_print_numbers(&text, fn, e);
	rc = FAIL(c, e->at, STR_FMT, STR_ARG(buf_str(&text)));
	buf_release(&text);
	return rc;
}

static enum err_code check_arg(
	struct checker *c, const struct function *fn, size_t i, struct expr *e)
{
	unsigned wants = fn->args[i < FUNCTION_ARGS ? i : FUNCTION_ARGS - 1];
	const struct expr *bare = expr_strip(e);
	bool windowed = bare->kind == EXPR_SELECTOR && bare->selector.window_ns;
	bool is_range = bare->kind == EXPR_SUBQUERY && !(wants & ARG_SELECTOR);
	enum err_code rc;

	if (wants & VALUE_FRAMES)
		return check_frames(c, fn, e);
	if ((rc = checker_check_expr(c, e)))
		return rc;
	if ((wants & (ARG_SELECTOR | ARG_WINDOW)) && bare->kind != EXPR_SELECTOR && !is_range)
		return (wants & ARG_SELECTOR) || !(e->types & VALUE_COSTS) ?
			FAIL(c, e->at, "%s() needs a selector, got %s", fn->name, types_text(e->types).text) :
			FAIL(c, e->at, "%s() needs a window; for costs use a subquery: [5m:1m]", fn->name);
	if ((wants & ARG_WINDOW) && !windowed && !is_range)
		return FAIL(c, e->at, "%s() needs a selector with a window: [5m]", fn->name);
	if (wants & ARG_WINDOW)
		for (struct expr *p = e;; p = p->paren) {
			p->types = is_range ? VALUE_COSTS : selector_types(c, bare, VALUE_SERIES);
			if (p != bare)
				continue;
			if (!is_range)
				p->selector.rated = fn->id == FN_RATE;
			break;
		}
	if (e->types & wants)
		return ERR_OK;
	if (e->types == VALUE_PROFILES && (wants & VALUE_COSTS))
		return check_needs_numbers(c, fn, e);
	return FAIL(c, e->at, "%s() needs %s, got %s", fn->name,
		types_text(wants & (ARG_SELECTOR - 1)).text, types_text(e->types).text);
}

/* A string is a literal, so its expression can be tried now. */
static enum err_code check_filter(struct checker *c, const struct expr *e)
{
	const struct expr *text = filter_text_of(e);
	enum function_id id = e->call.fn->id;
	struct err why = { 0 };
	struct filter f;
	enum err_code rc;

	if (!text)
		return ERR_OK;
	assert(text->kind == EXPR_STRING);
	c->regexes_n += filter_regexes(id, text->string);
	if (c->regexes_n > QUERY_REGEXES_MAX)
		return query_error_at(c->text, text->at, c->where, c->err, ERR_LIMIT,
			"more than %u regular expressions in filters", QUERY_REGEXES_MAX);
	if ((rc = filter_compile(&f, id, text->string, &why)))
		rc = query_error_at(c->text, text->at, c->where, c->err, rc, "%s", why.msg);
	filter_release(&f);
	return rc;
}

static enum err_code check_label_name(
	struct checker *c, const struct expr *e, size_t arg, const char *what)
{
	const struct expr *text = expr_strip(e->call.args[arg]);

	if (any_name_valid(text->string))
		return ERR_OK;
	if (!what)
		return FAIL(c, text->at, "invalid label name %s", QUOTED(text->string));
	return FAIL(c, text->at, "invalid %s label name in %s(): " STR_FMT, what, e->call.fn->name,
		STR_ARG(text->string));
}

static enum err_code check_label_regex(struct checker *c, const struct expr *e)
{
	const struct expr *text = expr_strip(e->call.args[4]);
	struct regex *re = NULL;
	struct err why = { 0 };
	enum err_code rc;

	if (++c->regexes_n > QUERY_REGEXES_MAX)
		return query_error_at(c->text, text->at, c->where, c->err, ERR_LIMIT,
			"more than %u regular expressions in functions", QUERY_REGEXES_MAX);
	if ((rc = regex_compile(text->string, REGEX_ANCHORED, &re, &why)))
		return query_error_at(c->text, text->at, c->where, c->err, rc,
			"invalid regular expression in label_replace(): " STR_FMT ": %s", STR_ARG(text->string),
			why.msg);
	regex_free(re);
	return ERR_OK;
}

/* Names of labels and expressions are literals too. */
static enum err_code checker_check_strings(struct checker *c, const struct expr *e)
{
	enum err_code rc = ERR_OK;

	switch (e->call.fn->id) {
	case FN_LABEL_REPLACE:
		if ((rc = check_label_regex(c, e)))
			return rc;
		return check_label_name(c, e, 1, "destination");
	case FN_LABEL_JOIN:
		for (size_t i = 3; i < e->call.args_n && !rc; i++)
			rc = check_label_name(c, e, i, "source");
		return rc ? rc : check_label_name(c, e, 1, "destination");
	case FN_COUNT_VALUES:
		return check_label_name(c, e, 0, NULL);
	default:
		return ERR_OK;
	}
}

static enum err_code checker_unknown_function(struct checker *c, const struct expr *e)
{
	struct nearest near = nearest_to(e->call.name);

	for (size_t i = 0; i < FUNCTIONS; i++)
		nearest_try(&near, str_of(functions[i].name));
	return FAIL(c, e->at, "unknown function %s%s", QUOTED(e->call.name), DID_YOU_MEAN(&near));
}

static enum err_code check_call(struct checker *c, struct expr *e)
{
	struct call *call = &e->call;
	const struct function *fn = call->fn;
	enum err_code rc;

	if (!fn)
		return checker_unknown_function(c, e);
	if ((rc = check_grouping(c, e)))
		return rc;
	if (call->args_n < fn->args_min || call->args_n > fn->args_max)
		return FAIL(c, e->at, "%s() needs %s%u argument%s, got %zu: %s", fn->name,
			fn->args_min == fn->args_max    ? "" :
				call->args_n < fn->args_min ? "at least " :
											  "at most ",
			call->args_n < fn->args_min ? fn->args_min : fn->args_max,
			(call->args_n < fn->args_min ? fn->args_min : fn->args_max) == 1 ? "" : "s",
			call->args_n, fn->usage);
	for (size_t i = 0; i < call->args_n; i++)
		if ((rc = check_arg(c, fn, i, call->args[i])))
			return rc;
	e->types = fn->result;
	if (fn->result == VALUE_SERIES) /* over a window: of what it is given */
		e->types &= call->args[0]->types;
	return filter_is(e) ? check_filter(c, e) : checker_check_strings(c, e);
}

static enum err_code checker_check_expr(struct checker *c, struct expr *e)
{
	enum err_code rc = ERR_OK;

	switch (e->kind) {
	case EXPR_NUMBER:
		e->types = VALUE_SCALAR;
		break;
	case EXPR_STRING:
		e->types = VALUE_STRING;
		break;
	case EXPR_SELECTOR:
		rc = check_selector(c, e);
		break;
	case EXPR_SUBQUERY:
		rc = check_subquery(c, e);
		break;
	case EXPR_UNARY:
		rc = check_unary(c, e);
		break;
	case EXPR_BINARY:
		rc = check_binary(c, e);
		break;
	case EXPR_CALL:
		rc = check_call(c, e);
		break;
	case EXPR_PAREN:
		rc = checker_check_expr(c, e->paren);
		e->types = e->paren->types;
		break;
	}
	return rc;
}

enum err_code check_query(struct parsed *p, struct query_error *where, struct err *err)
{
	return check_query_names(p, NULL, where, err);
}

enum err_code check_query_names(
	struct parsed *p, struct check_names *names, struct query_error *where, struct err *err)
{
	struct checker c = { p->text, where, err, 0, names };

	if (where)
		*where = (struct query_error){ 0 };
	if (names)
		names->assumed = NULL;
	return checker_check_expr(&c, p->root);
}
