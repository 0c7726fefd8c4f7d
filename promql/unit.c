#include "promql/unit.h"

#include "promql/eval.h"
#include "promql/syntax/functions.h"

/* Calls that keep the unit of an argument, by the argument's place. */
/* clang-format off */
static const struct {
	const char *name;
	size_t arg;
} keeps[] = {
	{ "merge", 0 }, { "focus", 0 }, { "ignore", 0 }, { "hide", 0 }, { "show", 0 },
	{ "show_from", 0 }, { "prune_from", 0 }, { "tagfocus", 0 }, { "tagignore", 0 },
	{ "callers", 0 }, { "callees", 0 }, { "diff", 0 }, { "diff_normalized", 0 },
	{ "flat", 0 }, { "cum", 0 }, { "total", 0 }, { "rate", 0 }, { "mean_rate", 0 },
	{ "sum", 0 }, { "avg", 0 }, { "min", 0 }, { "max", 0 }, { "stddev", 0 },
	{ "topk", 1 }, { "bottomk", 1 }, { "limitk", 1 }, { "limit_ratio", 1 }, { "quantile", 1 },
	{ "sum_over_time", 0 }, { "avg_over_time", 0 }, { "min_over_time", 0 },
	{ "max_over_time", 0 }, { "last_over_time", 0 }, { "stddev_over_time", 0 },
	{ "quantile_over_time", 1 }, { "first_over_time", 0 }, { "mad_over_time", 0 },
	{ "increase", 0 }, { "delta", 0 }, { "idelta", 0 }, { "predict_linear", 0 },
	{ "holt_winters", 0 }, { "double_exponential_smoothing", 0 },
	{ "abs", 0 }, { "clamp", 0 }, { "clamp_min", 0 }, { "clamp_max", 0 }, { "round", 0 },
	{ "ceil", 0 }, { "floor", 0 }, { "sort", 0 }, { "sort_desc", 0 },
	{ "sort_by_label", 0 }, { "sort_by_label_desc", 0 },
	{ "label_replace", 0 }, { "label_join", 0 }, { "scalar", 0 }, { "vector", 0 },
};
/* clang-format on */

static const char *const ratios[] = { "flat_share", "cum_share", "changed", "changed_interval" };

static enum err_code unit_add_note(
	struct eval *ev, const struct expr *e, struct str unit, struct err *err)
{
	struct unit_note *note = ev->units;

	while (note && note->selector != e)
		note = note->next;
	if (note) {
		if (!str_eq(note->unit, unit))
			note->unit = STR("");
		return ERR_OK;
	}
	if (!(note = arena_new(ev->work.whole, struct unit_note)))
		return work_nomem(&ev->work, err);
	*note = (struct unit_note){ e, str_dup(ev->work.whole, unit), ev->units };
	if (!note->unit.ptr)
		return work_nomem(&ev->work, err);
	ev->units = note;
	return ERR_OK;
}

enum err_code unit_note(
	struct eval *ev, const struct expr *e, const struct value *v, struct err *err)
{
	if (!(v->type & VALUE_PROFILES) || v->n == 0)
		return ERR_OK;
	return unit_add_note(ev, e, v->profiles[0].type.sample_unit, err);
}

enum err_code unit_join(struct eval *ev, const struct unit_note *from, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (; from && !rc; from = from->next)
		rc = unit_add_note(ev, from->selector, from->unit, err);
	return rc;
}

static struct str promql_unit_of(const struct eval *ev, const struct expr *e);

static struct str unit_of_selector(const struct eval *ev, const struct expr *e)
{
	for (const struct unit_note *n = ev->units; n; n = n->next)
		if (n->selector == e)
			return n->unit;
	return STR("");
}

static struct str unit_of_call(const struct eval *ev, const struct call *c)
{
	for (size_t i = 0; i < sizeof(ratios) / sizeof(ratios[0]); i++)
		if (str_is(c->name, ratios[i]))
			return STR(UNIT_RATIO);
	for (size_t i = 0; i < sizeof(keeps) / sizeof(keeps[0]); i++)
		if (str_is(c->name, keeps[i].name))
			return keeps[i].arg < c->args_n ? promql_unit_of(ev, c->args[keeps[i].arg]) : STR("");
	return STR("");
}

static bool unit_is_plain(const struct expr *e)
{
	const struct expr *s = expr_strip(e);

	while (s->kind == EXPR_UNARY)
		s = expr_strip(s->unary.arg);
	return s->kind == EXPR_NUMBER ||
		(s->kind == EXPR_BINARY && unit_is_plain(s->binary.lhs) && unit_is_plain(s->binary.rhs));
}

/* The unit of both sides if they agree; a plain number takes the other side's. */
static struct str unit_of_both(const struct eval *ev, const struct binary *b)
{
	struct str l = promql_unit_of(ev, b->lhs), r = promql_unit_of(ev, b->rhs);

	if (str_eq(l, r) || unit_is_plain(b->rhs))
		return l;
	return unit_is_plain(b->lhs) ? r : STR("");
}

static struct str unit_of_binary(const struct eval *ev, const struct expr *e)
{
	const struct binary *b = &e->binary;
	bool is_profiles = (e->types & ~(unsigned)VALUE_COSTS) == VALUE_PROFILES;
	struct str l, r;

	if (binary_op_is_comparison(b->op))
		return b->returns_bool ?
			STR("") :
			promql_unit_of(ev, b->lhs->types == VALUE_SCALAR ? b->rhs : b->lhs);
	if (b->op == OP_ADD || b->op == OP_SUB || b->op == OP_OR)
		return unit_of_both(ev, b);
	if (b->op == OP_AND || b->op == OP_UNLESS || b->op == OP_MOD)
		return promql_unit_of(ev, b->lhs);
	if (b->op != OP_MUL && b->op != OP_DIV)
		return STR("");
	l = promql_unit_of(ev, b->lhs);
	r = promql_unit_of(ev, b->rhs);
	if (b->op == OP_DIV && l.len && str_eq(l, r))
		return STR(UNIT_RATIO);
	if (str_is(r, UNIT_RATIO))
		return l;
	if (b->op == OP_MUL && str_is(l, UNIT_RATIO))
		return r;
	/* A scaled profile has its own unit. */
	return !is_profiles || (l.len && r.len) ? STR("") : l.len ? l : r;
}

static struct str promql_unit_of(const struct eval *ev, const struct expr *e)
{
	switch (e->kind) {
	case EXPR_SELECTOR:
		return unit_of_selector(ev, e);
	case EXPR_PAREN:
		return promql_unit_of(ev, e->paren);
	case EXPR_UNARY:
		return promql_unit_of(ev, e->unary.arg);
	case EXPR_SUBQUERY:
		return promql_unit_of(ev, e->subquery.arg);
	case EXPR_BINARY:
		return unit_of_binary(ev, e);
	case EXPR_CALL:
		return e->call.fn->id == FN_FILE ? unit_of_selector(ev, e) : unit_of_call(ev, &e->call);
	case EXPR_NUMBER:
	case EXPR_STRING:
		break;
	}
	return STR("");
}

struct str unit_of_query(const struct eval *ev)
{
	return promql_unit_of(ev, ev->work.query->root);
}
