/*
 * The runs of a side of a comparison, each with its profile: files ("a.pb.gz,b.pb.gz", or all of a
 * directory), values of a label ("run=1,2"), or each stored profile that has the labels of a run.
 *
 * Errors:    those of source.h; ERR_NOT_FOUND: a listed value has no profile, or a directory no
 *            file; ERR_LIMIT: more than RUNS_MAX.
 * Ownership: profiles live in the arena and in the sources; bench_release ends them, also after an
 *            error.
 */
#ifndef CMD_EPITOOL_COMPARE_BENCH_RUNS_H
#define CMD_EPITOOL_COMPARE_BENCH_RUNS_H

#include "cmd/epitool/source.h"

#define RUNS_MAX 2000u

/* What a text may be. */
enum bench_kind {
	RUNS_ONE, /* one profile: what is found is merged */
	RUNS_LISTED, /* as many as are listed */
	RUNS_APART, /* also each stored profile of a run's labels */
};

struct bench_run {
	struct source source;
	/* Its costs by row, of the measure that is compared; once pair_read is through. */
	int64_t *costs, total;
	size_t costs_n;
};

struct bench_runs {
	struct bench_run *v;
	size_t n, cap;
};

/* *query: the one whose error has a place in it, NULL where there is none. */
MUST_CHECK enum err_code bench_read(const struct source_options *o, const char *text,
	enum bench_kind kind, struct arena *a, struct bench_runs *out, const char **query,
	struct err *err);
void bench_release(struct bench_runs *r);

#endif
