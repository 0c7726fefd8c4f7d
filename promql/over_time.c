/*
 * Functions over windows of profiles: another result than the sum of a selector's series, or the
 * mean of levels.
 *
 * min_over_time() and max_over_time() find the time of the scrape by totals, which rollups also
 * have. Then they read only that scrape. If only some samples are asked for, each scrape is read.
 */
#include "promql/over_time.h"
#include "base/clock.h"
#include "promql/costs/costs.h"
#include "promql/eval.h"
#include "promql/gather.h"
#include "promql/numeric.h"
#include "promql/syntax/functions.h"
#include "promql/unit.h"

static enum over_time over_of(const struct expr *e)
{
	if (e->kind != EXPR_CALL)
		return OVER_NONE;
	switch (e->call.fn->id) {
	case FN_RATE:
		return OVER_RATE;
	case FN_MEAN_RATE:
		return OVER_MEAN_RATE;
	case FN_SUM_OVER_TIME:
		return OVER_SUM;
	case FN_AVG_OVER_TIME:
		return OVER_AVG;
	case FN_MIN_OVER_TIME:
		return OVER_MIN;
	case FN_MAX_OVER_TIME:
		return OVER_MAX;
	case FN_LAST_OVER_TIME:
		return OVER_LAST;
	default:
		return OVER_NONE;
	}
}

bool over_is(const struct expr *e)
{
	return over_of(e) != OVER_NONE;
}

enum err_code over_numbers(struct eval *ev, const struct expr *selector, bool *out, struct err *err)
{
	struct numeric_ranges numbers;
	struct db_series *series;
	enum err_code rc;
	size_t n;

	if (selector->kind == EXPR_SUBQUERY) {
		*out = true;
		return ERR_OK;
	}
	if (selector->selector.name.len) {
		rc = numeric_select(ev, selector, &numbers, err);
		*out = numbers.n > 0;
		return rc;
	}
	rc = choose_series(ev, selector, &series, &n, err);
	*out = n == 0;
	return rc;
}

enum err_code eval_over(struct eval *ev, const struct expr *e, const struct merging *m,
	struct value *out, struct err *err)
{
	const struct expr *selector = expr_strip(e->call.args[0]);
	struct merging over = *m;
	bool numbers;
	enum err_code rc;

	over.over = over_of(e);
	if ((rc = over_numbers(ev, selector, &numbers, err)))
		return rc;
	if (numbers && over.over == OVER_MEAN_RATE && selector->selector.name.len)
		return work_fault(&ev->work, selector, err, ERR_INVALID,
			"mean_rate() needs profiles, got numbers; use rate()");
	if (numbers && over.over != OVER_MEAN_RATE)
		return call_over_time(ev, e, out, err);
	rc = choose_profiles(ev, selector, &over, out, err);
	return rc ? rc : unit_note(ev, selector, out, err);
}

enum err_code over_refuse_levels(struct eval *ev, const struct expr *e, enum over_time over,
	const struct profile_type *type, struct err *err)
{
	struct buf text = { 0 };
	enum err_code rc;

	profile_type_print(&text, type);
	rc = work_fault(&ev->work, e, err, ERR_INVALID,
		"%s() needs amounts that add up in time, got levels: " STR_FMT
		"; use avg_over_time() for the mean",
		over == OVER_MEAN_RATE ? "mean_rate" : "rate", STR_ARG(buf_str(&text)));
	buf_release(&text);
	return rc;
}

/* ---- counting ---- */

enum err_code call_count_over(
	struct eval *ev, const struct expr *e, struct value *out, struct err *err)
{
	const struct expr *selector = expr_strip(e->call.args[0]);
	const struct merging each = { .each = true, .any_unit = true, .totals_only = true };
	enum function_id fn = e->call.fn->id;
	struct labels metric;
	struct value v;
	bool numbers;
	enum err_code rc;

	if ((rc = over_numbers(ev, selector, &numbers, err)))
		return rc;
	if (numbers)
		return call_over_time(ev, e, out, err);
	if ((rc = choose_profiles(ev, selector, &each, &v, err)))
		return rc;
	*out = (struct value){ .type = VALUE_COSTS };
	if (!(out->costs = arena_array(ev->work.arena, struct cost, v.n + 1)))
		return work_nomem(&ev->work, err);
	if (fn == FN_ABSENT_OVER_TIME) {
		if ((rc = absent_labels(&ev->work, &selector->selector, &metric, err)))
			return rc;
		*out->costs = (struct cost){ .metric = metric, .value = 1, .t_ns = ev->work.t_ns };
		out->n = v.n == 0;
		return ERR_OK;
	}
	for (size_t i = 0; i < v.n; i++) {
		if ((rc = labels_without_name(&ev->work, v.profiles[i].metric, &metric, err)))
			return rc;
		out->costs[out->n++] = (struct cost){
			.metric = metric,
			.value = fn == FN_COUNT_OVER_TIME ? (double)v.profiles[i].profiles : 1,
			.t_ns = ev->work.t_ns,
		};
	}
	return costs_distinct(out->costs, out->n, err);
}

/* ---- the scrape with the smallest or greatest total ---- */

struct best {
	bool any;
	size_t epoch;
	__int128 total; /* in the selection's unit */
	int64_t at_ns;
};

/* The earliest of equal ones. */
static void best_compare(struct best *b, bool greatest, __int128 total, int64_t at_ns, size_t epoch)
{
	bool better = greatest ? total > b->total : total < b->total;

	if (!b->any || better || (total == b->total && at_ns < b->at_ns))
		*b = (struct best){ true, epoch, total, at_ns };
}

static enum err_code promql_over_time_read_totals(struct work *work, struct supply *supply,
	const struct selection *s, const struct chosen *c, struct sum_stats *stats, struct err *err)
{
	enum err_code rc = db_sum(supply->querier, &c->series, 1, &c->type, s->window.min_ns,
		s->window.max_ns, SUM_FACTS, NULL, work->arena, stats, err);

	supply->samples += stats->read;
	return rc;
}

/* Only samples that pass the matchers count, so every scrape is read. */
static enum err_code best_of_samples(struct work *work, struct supply *supply,
	const struct selection *s, const struct chosen *c, size_t epoch, bool greatest,
	struct best *best, struct err *err)
{
	struct infos dropped = { .n = 0 }; /* the answer is about one scrape of them */
	struct work in = *work;
	const struct db_row *row;
	struct db_rows *rows;
	enum err_code rc;

	in.infos = &dropped;
	if (c->none)
		return ERR_OK;
	if ((rc = db_rows_open(
			 supply->querier, c->series, s->window.min_ns, s->window.max_ns, &rows, err)))
		return rc;
	while (!(rc = db_rows_next(rows, &row, err))) {
		struct selection one = *s;
		struct chosen at = *c;
		struct value v = { 0 };

		at.at_ns = row->ts_ns;
		at.group = 0;
		one.v = &at;
		one.n = 1;
		one.groups_n = 1;
		one.totals_only = false;
		if ((rc = work_check(work, err)) || (rc = gather_selection(&in, supply, &one, &v, err)))
			break;
		if (v.n > 0)
			best_compare(best, greatest, v.profiles[0].value_total, at.at_ns, epoch);
	}
	db_rows_close(rows);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

static enum err_code best_of_series(struct work *work, struct supply *supply,
	const struct selection *s, const struct chosen *epochs, size_t n, struct best *out,
	struct err *err)
{
	bool greatest = s->over == OVER_MAX;
	struct row_total row;
	enum err_code rc = ERR_OK;

	*out = (struct best){ 0 };
	for (size_t i = 0; i < n && !rc; i++) {
		struct sum_stats stats = { 0 };

		if (epochs[i].asked) {
			rc = best_of_samples(work, supply, s, &epochs[i], i, greatest, out, err);
			continue;
		}
		rc = promql_over_time_read_totals(work, supply, s, &epochs[i], &stats, err);
		row = greatest ? stats.max : stats.min;
		if (!rc && stats.rows)
			best_compare(out, greatest,
				(__int128)row.total * (epochs[i].fit ? epochs[i].fit->scale : 1), row.ts_ns, i);
	}
	return rc;
}

/* Rollups know when it was, but only raw rows are scrapes. */
static enum err_code promql_over_time_check_kept(struct work *work, struct supply *supply,
	const struct selection *s, const struct chosen *c, struct err *err)
{
	struct sum_stats stats = { 0 };
	struct buf at = { 0 };
	enum err_code rc;

	rc = db_sum(supply->querier, &c->series, 1, &c->type, c->at_ns - 1, c->at_ns, SUM_LAST, NULL,
		work->arena, &stats, err);
	if (rc || stats.rows)
		return rc;
	time_print_rfc3339(&at, c->at_ns);
	rc = work_fault(work, s->expr, err, ERR_INVALID,
		"the scrape of " STR_FMT " with the %s total is stored only in rollups",
		STR_ARG(buf_str(&at)), s->over == OVER_MAX ? "greatest" : "smallest");
	buf_release(&at);
	return rc;
}

enum err_code over_choose(
	struct work *work, struct supply *supply, struct selection *s, struct err *err)
{
	struct chosen *chosen;
	struct best best;
	size_t n = 0, end;
	enum err_code rc;

	if (s->over != OVER_MIN && s->over != OVER_MAX)
		return ERR_OK;
	if (!(chosen = arena_array(work->arena, struct chosen, s->n + 1)))
		return work_nomem(work, err);
	for (size_t i = 0; i < s->n; i = end) {
		for (end = i + 1; end < s->n &&
			 choose_is_same_series(
				 s->v[end].series, &s->v[end].type, s->v[i].series, &s->v[i].type);
			 end++)
			;
		if ((rc = best_of_series(work, supply, s, &s->v[i], end - i, &best, err)))
			return rc;
		if (!best.any)
			continue;
		chosen[n] = s->v[i + best.epoch];
		chosen[n].at_ns = best.at_ns;
		if ((rc = promql_over_time_check_kept(work, supply, s, &chosen[n++], err)))
			return rc;
	}
	s->v = chosen;
	s->n = n;
	return ERR_OK;
}
