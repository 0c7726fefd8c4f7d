/* Rows of our top table compared with those of `go tool pprof -top`. */
#ifndef TESTS_PROMQL_TOP_ROWS_H
#define TESTS_PROMQL_TOP_ROWS_H

#include "promql/value/value.h"
#include "tests/oracle.h"

/* Stops at the first row that differs. */
static inline void check_top_rows(
	const char *what, const struct top_table *t, const struct oracle_rows *want, bool percents)
{
	if (t->n != want->n) {
		CHECK_FAIL("%s: %zu rows, want %zu", what, t->n, want->n);
		return;
	}
	for (size_t i = 0; i < t->n; i++) {
		const struct top_row *row = &t->rows[i];
		const struct oracle_row *w = &want->v[i];
		const double shares[] = { row->flat_percent, row->sum_percent, row->cum_percent };
		char text[16];

		if (!str_eq(row->function, w->name) || row->flat != w->flat || row->cum != w->cum) {
			CHECK_FAIL("%s: row %zu is " STR_FMT " %" PRId64 " %" PRId64 ", want " STR_FMT
					   " %" PRId64 " %" PRId64,
				what, i, STR_ARG(row->function), row->flat, row->cum, STR_ARG(w->name), w->flat,
				w->cum);
			return;
		}
		for (size_t k = 0; k < 3 && percents; k++) {
			oracle_percent(text, shares[k]);
			CHECK_STR(str_of(text), w->percents[k]);
		}
	}
}

#endif
