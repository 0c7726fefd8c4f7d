#include "cmd/epitool/compare/gate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/quote.h"

#define RUNS_TOLD_MAX 10000 /* of more nobody makes a plan */

static const char *const gate_words[] = { [JUDGE_LEFT_OUT] = "not judged",
	[JUDGE_NOT_WORSE] = "not worse",
	[JUDGE_CANNOT_TELL] = "cannot tell",
	[JUDGE_WORSE] = "worse" };

/* ---- the command line ---- */

enum err_code percent_parse(const char *flag, const char *text, double *out, struct err *err)
{
	char *end;

	*out = -1;
	if (!text[0])
		return ERR_OK;
	*out = strtod(text, &end);
	if (end == text || (*end && strcmp(end, "%")) || !isfinite(*out) || *out < 0)
		return err_set(
			err, ERR_INVALID, "--%s wants a percentage such as 2%%, not \"%s\"", flag, text);
	return ERR_OK;
}

static enum err_code gate_budget_parse(const char *text, struct gate_budget *out, struct err *err)
{
	const char *equals = strrchr(text, '=');
	enum err_code rc;

	if (!equals || equals == text || !equals[1])
		return err_set(err, ERR_INVALID, "--function-budget wants NAME=12%%, not \"%s\"", text);
	out->name = (struct str){ text, (size_t)(equals - text) };
	if ((rc = percent_parse("function-budget", equals + 1, &out->percent, err)))
		return rc;
	if (!(out->percent > 0 && out->percent < 100))
		return err_set(err, ERR_INVALID, "--function-budget is more than 0%% and less than 100%%");
	return ERR_OK;
}

enum err_code gate_flags_check(struct gate_flags *f, struct err *err)
{
	enum err_code rc;

	f->may_not_tell = !strcmp(f->cannot_tell, "ok");
	if (!f->may_not_tell && strcmp(f->cannot_tell, "fail"))
		return err_set(err, ERR_INVALID, "--cannot-tell is fail or ok, not \"%s\"", f->cannot_tell);
	if ((rc = percent_parse("function-threshold", f->threshold_text, &f->threshold, err)) ||
		(rc = percent_parse("least-share", f->share_text, &f->least_share, err)))
		return rc;
	if (f->threshold == 0)
		return err_set(err, ERR_INVALID, "--function-threshold is more than 0%%");
	for (size_t i = 0; i < f->budget_texts.n; i++)
		if ((rc = gate_budget_parse(f->budget_texts.v[i], &f->budgets[i], err)))
			return rc;
	f->is_asked = f->threshold > 0 || f->budget_texts.n;
	return ERR_OK;
}

/* ---- judging ---- */

/* The cost of one sample of the profiler; 0: it is not known, as of bytes of a heap. */
static double gate_event_cost(const struct source *s)
{
	const struct pprof *p = s->profile;
	const struct pprof_type *t = &p->types[s->type], *of = &p->period_type;

	if (p->period > 0 && str_eq(p->strings[t->type], p->strings[of->type]) &&
		str_eq(p->strings[t->unit], p->strings[of->unit]))
		return (double)p->period;
	return str_is(p->strings[t->type], "samples") ? 1 : 0;
}

/* Of all runs: the greatest, so that noise is not believed to be less than it is. */
static double gate_event_cost_of_all(const struct pair *p)
{
	double most = 0;

	for (unsigned side = 0; side < 2; side++)
		for (size_t i = 0; i < p->sides[side].n; i++) {
			double cost = gate_event_cost(&p->sides[side].v[i].source);

			if (!(cost > 0))
				return 0;
			most = fmax(most, cost);
		}
	return most;
}

static enum err_code gate_fill_totals(
	const struct pair *p, unsigned side, double event, double *totals, struct err *err)
{
	for (size_t i = 0; i < p->sides[side].n; i++) {
		const struct bench_run *r = &p->sides[side].v[i];

		if (r->total <= 0)
			return err_set(err, ERR_INVALID, "%s: this run has no costs", r->source.text);
		totals[i] = (double)r->total / event;
	}
	return ERR_OK;
}

static enum err_code gate_fill_counts(const struct pair *p, struct arena *a, double event,
	struct judge_function *functions, struct err *err)
{
	for (unsigned side = 0; side < 2; side++)
		for (size_t row = 0; row < p->costs.n; row++) {
			const struct bench_runs *runs = &p->sides[side];
			double *counts = arena_array(a, double, runs->n);

			if (!counts)
				return arena_fail(a, "runs", err);
			for (size_t i = 0; i < runs->n; i++) {
				int64_t cost = row < runs->v[i].costs_n ? runs->v[i].costs[row] : 0;

				if (cost < 0)
					return err_set(err, ERR_INVALID, "%s: costs below 0 cannot be judged",
						runs->v[i].source.text);
				counts[i] = (double)cost / event;
			}
			functions[row].counts[side] = counts;
		}
	return ERR_OK;
}

static enum err_code gate_set_budgets(
	const struct gate *g, const struct pair *p, struct judge_function *functions, struct err *err)
{
	for (size_t i = 0; i < p->costs.n; i++)
		functions[i].budget = -1;
	for (size_t i = 0; i < g->f->budget_texts.n; i++) {
		const struct gate_budget *b = &g->f->budgets[i];
		struct nearest near = nearest_to(b->name);
		size_t row = 0;

		while (row < p->costs.n && !str_eq(p->costs.rows[row].name, b->name))
			nearest_try(&near, p->costs.rows[row++].name);
		if (row == p->costs.n)
			return err_set(err, ERR_NOT_FOUND, "--function-budget=%s: %s in no run%s",
				g->f->budget_texts.v[i], QUOTED(b->name), DID_YOU_MEAN(&near));
		functions[row].budget = b->percent / 100;
	}
	return ERR_OK;
}

static enum judge_verdict gate_verdict_of(const struct judge_function *f)
{
	return f->verdict > f->budget_verdict ? f->verdict : f->budget_verdict;
}

static double gate_share_of(const struct judge_function *f)
{
	return f->share[0] + f->share[1];
}

/* Before the one below it: by verdict, then by share. */
static bool gate_is_before(const struct judge_function *first, const struct judge_function *second)
{
	if (gate_verdict_of(first) != gate_verdict_of(second))
		return gate_verdict_of(first) > gate_verdict_of(second);
	return gate_share_of(first) > gate_share_of(second);
}

static enum err_code gate_keep_judged(struct gate *g, const struct pair *p, struct arena *a,
	const struct judge_function *all, struct err *err)
{
	g->names = arena_array(a, struct str, p->costs.n + 1);
	g->functions = arena_array(a, struct judge_function, p->costs.n + 1);
	if (!g->names || !g->functions)
		return arena_fail(a, "runs", err);
	for (size_t i = 0; i < p->costs.n; i++) {
		size_t at = g->n;

		if (gate_verdict_of(&all[i]) == JUDGE_LEFT_OUT)
			continue;
		for (; at > 0 && gate_is_before(&all[i], &g->functions[at - 1]); at--) {
			g->functions[at] = g->functions[at - 1];
			g->names[at] = g->names[at - 1];
		}
		g->functions[at] = all[i];
		g->names[at] = p->costs.rows[i].name;
		g->n++;
	}
	if (!g->n)
		return err_set(err, ERR_INVALID,
			"nothing to judge: no function has %.4g%% of the costs; see --least-share",
			g->f->least_share);
	return ERR_OK;
}

enum err_code gate_judge(
	const struct gate_flags *f, struct pair *p, struct gate *out, struct err *err)
{
	double event = gate_event_cost_of_all(p), unit = event > 0 ? event : 1;
	struct judge_options o = { .shares = p->f->normalize,
		.overlap = p->f->compare.cum,
		.events = event > 0,
		.threshold = f->threshold > 0 ? f->threshold / 100 : -1,
		.least_share = f->least_share / 100 };
	struct judge_side sides[2];
	struct judge_function *all = arena_array(&p->arena, struct judge_function, p->costs.n + 1);
	enum err_code rc;

	*out = (struct gate){ .f = f, .pair = p, .shares = o.shares };
	if (!all)
		return arena_fail(&p->arena, "runs", err);
	for (unsigned i = 0; i < 2; i++) {
		double *totals = arena_array(&p->arena, double, p->sides[i].n + 1);
		double *kept = arena_array(&p->arena, double, p->sides[i].n + 1);

		if (!totals || !kept)
			return arena_fail(&p->arena, "runs", err);
		if ((rc = gate_fill_totals(p, i, unit, totals, err)))
			return rc;
		sides[i] = (struct judge_side){ totals, kept, p->sides[i].n };
	}
	if ((rc = gate_fill_counts(p, &p->arena, unit, all, err)) ||
		(rc = gate_set_budgets(out, p, all, err)))
		return rc;
	judge_runs(&o, sides, all, p->costs.n, &out->result);
	return gate_keep_judged(out, p, &p->arena, all, err);
}

/* ---- showing ---- */

static void gate_add_change(struct buf *out, double ratio)
{
	double percent = (ratio - 1) * 100;

	if (isinf(ratio))
		buf_add_cstr(out, "any");
	else if (percent >= 999)
		buf_add_cstr(out, ">+999%");
	else
		buf_printf(out, "%+.*f%%", fabs(percent) < 9.95 ? 1 : 0, percent);
}

static void gate_add_runs(struct buf *out, double more)
{
	if (more > RUNS_TOLD_MAX)
		buf_printf(out, "more than %d", RUNS_TOLD_MAX);
	else
		buf_printf(out, "about %.0f", more);
}

static void gate_cell_change(struct text_table *t, bool is_judged, double ratio)
{
	struct buf cell = { 0 };

	if (is_judged)
		gate_add_change(&cell, ratio);
	table_cell(t, cell.len ? buf_str(&cell) : STR(""));
	buf_release(&cell);
}

static void gate_cell_percent(struct text_table *t, double share)
{
	char text[32];

	snprintf(text, sizeof(text), "%.1f%%", share * 100);
	table_cell(t, str_of(text));
}

/* The verdict, and of what it is. */
static void gate_cell_verdict(struct text_table *t, const struct judge_function *f)
{
	enum judge_verdict v = gate_verdict_of(f);
	struct buf cell = { 0 };

	buf_add_cstr(&cell, gate_words[v]);
	if (v == JUDGE_CANNOT_TELL) {
		buf_add_cstr(&cell, ": ");
		gate_add_runs(&cell, f->more_runs);
		buf_add_cstr(&cell, " more runs");
	}
	if (f->budget >= 0 && f->budget_verdict == v)
		buf_printf(&cell, " (budget %.4g%%, %.1f to %.1f%%)", f->budget * 100, f->share_low * 100,
			f->share_high * 100);
	table_cell(t, buf_str(&cell));
	buf_release(&cell);
}

/* What others are not relative to: " but main.rank and 2 more, which cost less". */
static void gate_print_left_out(const struct gate *g, struct buf *out)
{
	size_t n = 0, first = 0;

	for (size_t i = g->n; i-- > 0;)
		if (g->functions[i].is_cheaper) {
			first = i;
			n++;
		}
	if (!n)
		return;
	buf_add_cstr(out, " but ");
	buf_add_printable(out, g->names[first]);
	if (n > 1)
		buf_printf(out, " and %zu more", n - 1);
	buf_add_cstr(out, n > 1 ? ", which cost less" : ", which costs less");
}

void gate_print(const struct gate *g, struct arena *a, struct buf *out)
{
	static const char *const titles[] = { "cost", "at least", "at most", "base", "new" };
	struct text_table t;

	text_table_init(&t, a);
	table_column(&t, "verdict", false);
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		table_column(&t, titles[i], true);
	table_column(&t, g->pair->f->by_text, false);
	for (size_t i = 0; i < g->n; i++) {
		const struct judge_function *f = &g->functions[i];
		bool is_judged = f->verdict != JUDGE_LEFT_OUT;

		gate_cell_verdict(&t, f);
		if (is_judged && isinf(f->ratio))
			table_cell(&t, STR("new"));
		else
			gate_cell_change(&t, is_judged, f->ratio);
		gate_cell_change(&t, is_judged, f->low);
		gate_cell_change(&t, is_judged, f->high);
		gate_cell_percent(&t, f->share[0]);
		gate_cell_percent(&t, f->share[1]);
		table_cell(&t, g->names[i]);
	}
	buf_printf(out, "%zu run%s of base, %zu of new; cost %s", g->pair->sides[0].n,
		g->pair->sides[0].n == 1 ? "" : "s", g->pair->sides[1].n,
		g->shares ? "relative to all other functions" : "of a run");
	gate_print_left_out(g, out);
	buf_add_cstr(out, ", with its bounds; share of the total\n");
	table_print(&t, terminal_width(), out);
}

static void gate_print_first(const struct gate *g, struct buf *out)
{
	const struct judge_function *f = &g->functions[0];

	buf_add_printable(out, g->names[0]);
	if (f->budget_verdict == JUDGE_WORSE) {
		buf_printf(out, " has %.1f%% of the costs (%.1f to %.1f%%), above its budget of %.4g%%",
			f->share[1] * 100, f->share_low * 100, f->share_high * 100, f->budget * 100);
		return;
	}
	if (isinf(f->ratio)) {
		buf_printf(out, " is new, with %.1f%% of the costs", f->share[1] * 100);
		return;
	}
	buf_add_cstr(out, " costs ");
	gate_add_change(out, f->ratio);
	buf_add_cstr(out, " (");
	gate_add_change(out, f->low);
	buf_add_cstr(out, " to ");
	gate_add_change(out, f->high);
	buf_add_cstr(out, ") against base");
}

/*
 * With shares: what one function no longer costs raises the cost of all others relative to all.
 * This finds a function whose share fell by more than the share of any worse function rose.
 */
static const struct str *gate_cheaper(const struct gate *g)
{
	double rise = 0;

	for (size_t i = 0; i < g->n; i++)
		if (gate_verdict_of(&g->functions[i]) == JUDGE_WORSE)
			rise = fmax(rise, g->functions[i].share[1] - g->functions[i].share[0]);
	for (size_t i = 0; i < g->n; i++) {
		const struct judge_function *f = &g->functions[i];

		if (f->verdict == JUDGE_NOT_WORSE && f->high < 1 && f->share[0] - f->share[1] > rise)
			return &g->names[i];
	}
	return NULL;
}

void gate_print_summary(const struct gate *g, struct buf *out)
{
	const struct judge_result *r = &g->result;
	const struct str *cheaper = g->shares && r->worse ? gate_cheaper(g) : NULL;

	buf_printf(out, "%s: ", gate_words[r->verdict]);
	if (r->verdict == JUDGE_WORSE) {
		gate_print_first(g, out);
		if (r->worse > 1)
			buf_printf(out, ", and %zu more", r->worse - 1);
	} else if (r->verdict == JUDGE_CANNOT_TELL) {
		buf_printf(out, "%zu of %zu; ", r->cannot_tell, r->cannot_tell + r->not_worse);
		gate_add_runs(out, r->more_runs);
		buf_add_cstr(out, " more runs a side would tell");
	} else {
		buf_printf(out, "%zu of %zu", r->not_worse, r->not_worse);
	}
	if (!cheaper)
		return;
	buf_add_cstr(out, "; ");
	buf_add_printable(out, *cheaper);
	buf_add_cstr(out,
		" costs less, and that alone raises what others cost relative to all: compare runs of a "
		"fixed number of iterations without --normalize");
}

static void gate_json_ratio(struct json *j, const char *key, double ratio)
{
	json_key(j, key);
	if (isinf(ratio))
		json_null(j);
	else
		json_double(j, (ratio - 1) * 100);
}

static void gate_json_percent(struct json *j, const char *key, double share)
{
	json_key(j, key);
	json_double(j, share * 100);
}

static void gate_json_function(const struct gate *g, size_t i, struct json *j)
{
	const struct judge_function *f = &g->functions[i];

	json_object(j);
	json_key(j, "name");
	json_str(j, g->names[i]);
	json_key(j, "verdict");
	json_cstr(j, gate_words[gate_verdict_of(f)]);
	gate_json_percent(j, "baseSharePercent", f->share[0]);
	gate_json_percent(j, "newSharePercent", f->share[1]);
	if (f->verdict != JUDGE_LEFT_OUT) {
		json_key(j, "thresholdVerdict");
		json_cstr(j, gate_words[f->verdict]);
		gate_json_ratio(j, "changePercent", f->ratio);
		gate_json_ratio(j, "changePercentLow", f->low);
		gate_json_ratio(j, "changePercentHigh", f->high);
		json_key(j, "leftOut");
		json_bool(j, f->is_cheaper);
	}
	if (f->budget >= 0) {
		json_key(j, "budgetVerdict");
		json_cstr(j, gate_words[f->budget_verdict]);
		gate_json_percent(j, "budgetPercent", f->budget);
		gate_json_percent(j, "newSharePercentLow", f->share_low);
		gate_json_percent(j, "newSharePercentHigh", f->share_high);
	}
	json_key(j, "noiseBase");
	json_double(j, f->noise[0]);
	json_key(j, "noiseNew");
	json_double(j, f->noise[1]);
	json_key(j, "moreRuns");
	json_double(j, f->more_runs);
	json_object_end(j);
}

void gate_print_json(const struct gate *g, struct json *j)
{
	struct buf summary = { 0 };

	gate_print_summary(g, &summary);
	json_key(j, "verdict");
	json_cstr(j, gate_words[g->result.verdict]);
	json_key(j, "summary");
	json_str(j, buf_str(&summary));
	buf_release(&summary);
	json_key(j, "runs");
	json_object(j);
	json_key(j, "base");
	json_u64(j, g->pair->sides[0].n);
	json_key(j, "new");
	json_u64(j, g->pair->sides[1].n);
	json_object_end(j);
	json_key(j, "moreRuns");
	json_double(j, g->result.more_runs);
	gate_json_percent(j, "falseAlarmsPercent", JUDGE_FALSE_ALARMS);
	gate_json_percent(j, "missedPercent", JUDGE_MISSED);
	json_key(j, "functions");
	json_array(j);
	for (size_t i = 0; i < g->n; i++)
		gate_json_function(g, i, j);
	json_array_end(j);
}
