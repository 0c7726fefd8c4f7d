#include "cmd/epitool/compare/verdict.h"

#include <math.h>

#include "base/quote.h"
#include "cmd/epitool/compare/costs.h"
#include "cmd/epitool/compare/names.h"
#include "proto/kinds.h"
#include "proto/report/pprof_unit.h"

/* A cum that changes by so much more than the function's own work is mostly that of others. */
#define OTHERS 1.25
#define MOSTLY 0.9

/*
 * Rows of `names` hold: flat, the cost of the function with what it calls of runtimes; seen, 1 or 2
 * once it is known whether it is the program's own; then, for the function that is named, its
 * callers' costs in cum[0].
 */
struct weighing {
	struct costs names;
	unsigned side;
	uint32_t target;
	int64_t cum[2], flat[2], passed;
};

static bool verdict_is_own(struct cost_row *r)
{
	if (!r->seen)
		r->seen = name_is_own(r->name) ? 1 : 2;
	return r->seen == 1;
}

static enum err_code verdict_add_own(
	void *ctx, const uint32_t *rows, size_t n, int64_t value, struct err *err)
{
	struct weighing *x = ctx;
	size_t at = n;

	while (at > 0 && !verdict_is_own(&x->names.rows[rows[at - 1]]))
		at--;
	if (n)
		x->names.rows[rows[at ? at - 1 : 0]].flat[x->side] += value;
	x->names.total[x->side] += value;
	return ERR_OK;
}

static enum err_code verdict_add_target(
	void *ctx, const uint32_t *rows, size_t n, int64_t value, struct err *err)
{
	struct weighing *x = ctx;
	bool inside = false;

	for (size_t i = 0; i < n; i++) {
		if (rows[i] != x->target)
			continue;
		inside = true;
		if (!i || rows[i - 1] == x->target)
			continue;
		x->names.rows[rows[i - 1]].cum[0] += value;
		x->passed += value;
	}
	x->cum[x->side] += inside ? value : 0;
	x->flat[x->side] += n && rows[n - 1] == x->target ? value : 0;
	return ERR_OK;
}

static double verdict_change_of(const int64_t *value, double factor)
{
	return (double)value[1] * factor - (double)value[0];
}

/* The program's functions come before all others. */
static uint32_t verdict_choose(struct costs *names, double factor)
{
	uint32_t best = MAP_NONE;
	double best_size = 0;
	bool best_own = false;

	for (size_t i = 0; i < names->n; i++) {
		struct cost_row *r = &names->rows[i];
		double size = fabs(verdict_change_of(r->flat, factor));
		bool own = verdict_is_own(r), better;

		if (size < 0.5)
			continue;
		better = own != best_own ? own :
			size != best_size    ? size > best_size :
								   str_cmp(r->name, names->rows[best].name) < 0;
		if (best != MAP_NONE && !better)
			continue;
		best = (uint32_t)i;
		best_size = size;
		best_own = own;
	}
	return best;
}

static void verdict_find_callers(const struct weighing *w, struct verdict *out)
{
	int64_t costs[VERDICT_CALLERS] = { 0 };

	for (size_t i = 0; i < w->names.n; i++) {
		const struct cost_row *r = &w->names.rows[i];

		if (r->cum[0] <= 0)
			continue;
		out->callers_n++;
		if (r->cum[0] > costs[0]) {
			costs[1] = costs[0];
			out->callers[1] = out->callers[0];
			costs[0] = r->cum[0];
			out->callers[0] = r->name;
		} else if (r->cum[0] > costs[1]) {
			costs[1] = r->cum[0];
			out->callers[1] = r->name;
		}
	}
	out->first_share = w->passed > 0 ? (double)costs[0] / (double)w->passed : 0;
}

static enum err_code verdict_walk_both(struct weighing *w, const struct pprof *const profiles[2],
	const uint32_t types[2], costs_stack_fn fn, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (unsigned i = 0; i < 2 && !rc; i++) {
		w->side = i;
		rc = costs_walk(&w->names, profiles[i], types[i], fn, w, err);
	}
	return rc;
}

static void verdict_measure(const struct weighing *w, double factor, struct verdict *out)
{
	const struct cost_row *r = &w->names.rows[w->target];
	double own = fabs(verdict_change_of(r->flat, factor)),
		   cum = fabs(verdict_change_of(w->cum, factor)),
		   flat = fabs(verdict_change_of(w->flat, factor));

	out->name = r->name;
	out->is_flat = cum > OTHERS * own && flat > own / 2;
	for (unsigned i = 0; i < 2; i++)
		out->costs[i] = llround(
			(double)(out->is_flat ? w->flat[i] : w->cum[i]) * (i == COSTS_NEW ? factor : 1));
}

enum err_code verdict_make(struct arena *a, const struct pprof *const profiles[2],
	const uint32_t types[2], double factor, struct verdict *out, struct err *err)
{
	const struct pprof_type *type = &profiles[1]->types[types[1]];
	struct weighing x = { .target = MAP_NONE };
	enum err_code rc;

	*out = (struct verdict){ .type = profiles[1]->strings[type->type],
		.unit = profiles[1]->strings[type->unit] };
	costs_init(&x.names, a, BY_FUNCTION);
	if ((rc = verdict_walk_both(&x, profiles, types, verdict_add_own, err)))
		goto out;
	out->totals[0] = x.names.total[0];
	out->totals[1] = llround((double)x.names.total[1] * factor);
	x.target = verdict_choose(&x.names, factor);
	if (x.target == MAP_NONE ||
		(rc = verdict_walk_both(&x, profiles, types, verdict_add_target, err)))
		goto out;
	verdict_measure(&x, factor, out);
	verdict_find_callers(&x, out);
out:
	costs_release(&x.names);
	return rc;
}

/* ---- the sentence ---- */

/* Two digits, which is as much as a sentence needs: "5.9", "33", "0.42". */
static void verdict_add_two_digits(struct buf *out, double value)
{
	buf_printf(out, value >= 9.95 ? "%.0f" : "%.2g", value);
}

void times_print(struct buf *out, double base, double next)
{
	if (!(base > 0)) {
		buf_add_cstr(out, next > 0 ? "new" : "");
	} else if (!(next > 0)) {
		buf_add_cstr(out, "gone");
	} else if (next / base >= 1000) {
		buf_add_cstr(out, ">999x");
	} else if (next / base < 0.001) {
		buf_add_cstr(out, "<0.001x");
	} else {
		verdict_add_two_digits(out, next / base);
		buf_add_char(out, 'x');
	}
}

static void verdict_add_percent(struct buf *out, double percent)
{
	if (percent > 0 && percent < 0.01)
		buf_add_cstr(out, "<0.01");
	else
		verdict_add_two_digits(out, percent > 0 ? percent : 0);
	buf_add_char(out, '%');
}

static const char *verdict_amount_word(struct str type)
{
	if (str_is(type, "cpu"))
		return " of CPU";
	if (str_has_prefix(type, STR("alloc_")))
		return " allocated";
	return str_is(type, "delay") ? " of waiting" : "";
}

static void verdict_add_callers(const struct verdict *v, struct buf *out)
{
	bool one = v->callers_n == 1 || v->first_share >= MOSTLY;

	if (!v->callers_n)
		return;
	buf_add_cstr(out,
		v->callers_n == 1 ? ", called only by " :
			one           ? ", called mostly by " :
							", called by ");
	buf_add_printable(out, v->callers[0]);
	if (one)
		return;
	buf_add_cstr(out, v->callers_n > 2 ? ", " : " and ");
	buf_add_printable(out, v->callers[1]);
	if (v->callers_n > 2)
		buf_printf(out, " and %zu more", v->callers_n - 2);
}

static double verdict_share_of(const struct verdict *v, unsigned side)
{
	double total = (double)v->totals[side];

	return total > 0 ? (double)v->costs[side] / total * 100 : 0;
}

static void verdict_add_from_to(const struct verdict *v, struct buf *out)
{
	struct buf times = { 0 };
	int64_t change = v->costs[1] - v->costs[0];

	if (value_is_level(STR(""), v->type)) { /* shares of a level say little */
		pprof_unit_print(out, v->costs[0], v->unit, STR("auto"));
		buf_add_cstr(out, " -> ");
		pprof_unit_print(out, v->costs[1], v->unit, STR("auto"));
		times_print(&times, (double)v->costs[0], (double)v->costs[1]);
	} else {
		verdict_add_percent(out, verdict_share_of(v, 0));
		buf_add_cstr(out, " -> ");
		verdict_add_percent(out, verdict_share_of(v, 1));
		times_print(&times, verdict_share_of(v, 0), verdict_share_of(v, 1));
	}
	buf_printf(out, " (" STR_FMT "%s%s", STR_ARG(buf_str(&times)), times.len ? ", " : "",
		change > 0 ? "+" : "");
	pprof_unit_print(out, change, v->unit, STR("auto"));
	buf_printf(out, "%s)", verdict_amount_word(v->type));
	buf_release(&times);
}

void verdict_print(const struct verdict *v, struct buf *out)
{
	if (v->totals[0] <= 0 || v->totals[1] <= 0) {
		buf_printf(out, "%s no costs, so there is nothing to compare.\n",
			v->totals[0] > 0     ? "NEW has" :
				v->totals[1] > 0 ? "BASE has" :
								   "Both sides have");
		return;
	}
	if (!v->name.len) {
		buf_add_cstr(out, "Both sides cost the same.\n");
		return;
	}
	buf_add_printable(out, v->name);
	buf_add_cstr(out, v->is_flat ? " itself changed most: " : " changed most: ");
	verdict_add_from_to(v, out);
	verdict_add_callers(v, out);
	buf_add_cstr(out, ".\n");
}
