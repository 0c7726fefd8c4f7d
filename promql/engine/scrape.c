/*
 * One whole scrape: the profile that a selector's only series had at a time, with all its sample
 * types, as it was scraped. `types=all` and the tests of exactness use it.
 */
#include "promql/engine/engine_internal.h"
#include "promql/eval.h"

/* The last row in the window of a series; ERR_NOT_FOUND when there is none. */
static enum err_code scrape_last_time(struct eval *ev, const struct db_series *series,
	const struct time_window *w, int64_t *ts_ns, struct err *err)
{
	const struct db_row *row;
	struct db_rows *rows;
	bool any = false;
	enum err_code rc;

	if ((rc = db_rows_open(ev->supply->querier, series, w->min_ns, w->max_ns, &rows, err)))
		return rc;
	while (!(rc = db_rows_next(rows, &row, err))) {
		*ts_ns = row->ts_ns;
		any = true;
	}
	db_rows_close(rows);
	return rc == ERR_NOT_FOUND && any ? ERR_OK : rc;
}

static enum err_code scrape_read_row(struct eval *ev, const struct db_series *series, int64_t ts_ns,
	struct pprof **out, struct err *err)
{
	const struct db_row *row;
	struct db_rows *rows;
	enum err_code rc;

	if ((rc = db_rows_open(ev->supply->querier, series, ts_ns - 1, ts_ns, &rows, err)))
		return rc;
	if (!(rc = db_rows_next(rows, &row, err)))
		rc = db_row_profile(series, row, ev->work.arena, out, err);
	db_rows_close(rows);
	return rc;
}

enum err_code eval_scrape(
	struct eval *ev, const struct expr *e, struct pprof **out, struct err *err)
{
	const struct db_series *found = NULL;
	struct db_series *series;
	struct time_window w;
	int64_t ts_ns = 0, at_ns = 0;
	size_t n;
	enum err_code rc;

	if (e->kind != EXPR_SELECTOR)
		return work_fault(
			&ev->work, e, err, ERR_INVALID, "a whole scrape needs a selector alone as query");
	w = selector_window(&ev->times, &e->selector, ev->work.t_ns);
	if ((rc = choose_series(ev, e, &series, &n, err)))
		return rc;
	for (size_t i = 0; i < n; i++) {
		rc = scrape_last_time(ev, &series[i], &w, &at_ns, err);
		if (rc == ERR_NOT_FOUND)
			continue;
		if (rc)
			return rc;
		/* Another epoch of the series: mostly its rows are older. */
		if (found && labels_eq(found->labels, series[i].labels) && at_ns < ts_ns)
			continue;
		if (found && !labels_eq(found->labels, series[i].labels))
			return work_fault(&ev->work, e, err, ERR_INVALID,
				"a whole scrape needs one series, the query selects several");
		found = &series[i];
		ts_ns = at_ns;
	}
	if (!found)
		return work_fault(&ev->work, e, err, ERR_NOT_FOUND, "no profiles selected");
	return scrape_read_row(ev, found, ts_ns, out, err);
}
