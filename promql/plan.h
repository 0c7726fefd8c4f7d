/*
 * Plan: what a query will read, known before it reads.
 *
 * A query is planned by evaluating it over nothing: selectors find their series, note what would be
 * asked of the database and how much that is (db_estimate), and give no elements. So the plan is of
 * the same decisions that the evaluation makes. What was found stays: series are selected once per
 * query, and places that ask for the same selector in the same way are read once per step (only
 * once if `@` pins the window).
 *
 * The estimate is compared with the query's limits before anything is read. What is read is counted
 * again as it is read: an estimate is about right, a limit is kept.
 *
 * Units:     nanoseconds.
 * Errors:    ERR_LIMIT names the estimate, the limit and its flag; those of selecting.
 * Ownership: in the arena of the query (work.whole).
 * Threads:   as eval.h.
 */
#ifndef PROMQL_PLAN_H
#define PROMQL_PLAN_H

#include "promql/choose.h"
#include "promql/reader.h"

/* A series looked at in a step costs as much as so many samples; a numeric one as so many. */
#define PLAN_SERIES_SAMPLES 100u
#define PLAN_NUMBERS_SAMPLES 5u
/* A record, chunk or row that is opened, beside what is in it. */
#define PLAN_PIECE_SAMPLES 50u

/* A read that one or more places of the query ask for. */
struct plan_read {
	struct plan_read *next; /* in the order they are met */
	const struct expr *expr; /* a selector: the first such place */
	const struct expr *scope; /* as eval.scope */
	struct merging merging;
	const struct chosen_set *set; /* NULL: numbers */
	size_t series_n;
	unsigned places;
	bool pinned; /* the window is the same in all steps */
	uint64_t steps; /* how often it is read */
	struct time_window first, last;
	struct sum_estimate estimate; /* of all steps */
	uint64_t elements; /* of a step */
	/* Counted while reading: */
	uint64_t reads, samples, profiles;
	int64_t took_ns;
	/* Kept for the other places: of the step at kept_ns, or of all steps if it is pinned. */
	struct value kept;
	int64_t kept_ns;
	bool has_kept;
};

/* Time that an expression took, with what is below it. */
struct plan_node {
	struct plan_node *next;
	const struct expr *expr;
	uint64_t n;
	int64_t took_ns;
};

struct query_plan {
	struct plan_read *reads;
	struct chosen_set *sets;
	struct plan_node *nodes;
	bool analyze; /* expressions are timed */
	bool checked; /* evaluated if it keeps the limits; else only explained */
	bool partial; /* planning ended early: the evaluation will say why */
	struct sum_estimate all;
	uint64_t series_steps; /* series looked at, each in each of its steps */
	uint64_t visits; /* what that counts as, in samples */
	uint64_t held_bytes; /* of series that were found, and of all else until now */
	uint64_t memory_bytes; /* what elements take at least, at once, beside that */
	uint64_t samples_max; /* limits, as they were */
	size_t memory_bytes_max;
};

/* ---- plan.c ---- */

/* Fills ev->plan; ev is set up for the first step. */
MUST_CHECK enum err_code plan_query(struct eval *ev, struct err *err);
/* ERR_LIMIT: more than the query may read. */
MUST_CHECK enum err_code plan_check(const struct query_plan *p, struct err *err);
/* The read of e, a selector, merged like m; selects the series unless they are selected. */
MUST_CHECK enum err_code plan_find_read(struct eval *ev, const struct expr *e,
	const struct merging *m, struct plan_read **out, struct err *err);
/* The same while planning: counts one more place that asks for it. */
MUST_CHECK enum err_code plan_note_read(struct eval *ev, const struct expr *e,
	const struct merging *m, struct plan_read **out, struct err *err);
/* While planning: notes once what the read costs; *out stays as it is. */
MUST_CHECK enum err_code plan_note_values(
	struct eval *ev, struct plan_read *r, struct value *out, struct err *err);
/* Its values in this step. */
MUST_CHECK enum err_code plan_read_values(
	struct eval *ev, struct plan_read *r, struct value *out, struct err *err);
/* The same for numbers of e. */
MUST_CHECK enum err_code plan_numbers(struct eval *ev, const struct expr *e,
	const struct db_series *series, size_t n, struct err *err);
/*
 * A scope begins anew, and may come to a time again: what was kept of a step is in the memory of
 * that step.
 */
void plan_forget_kept(struct eval *ev, const struct expr *scope);
/*
 * The number of series of a selector that may be held; 0: no limit. More of them, each of at least
 * so many bytes and samples, would exceed the limits of the query. plan_refuse_series gives the
 * error for `about` so many.
 */
struct series_cost {
	uint64_t bytes, samples;
};
size_t plan_series_max(const struct eval *ev, const struct expr *e, struct series_cost each);
enum err_code plan_refuse_series(const struct eval *ev, const struct expr *e,
	struct series_cost each, uint64_t about, struct err *err);
void plan_count_numbers(struct eval *ev, const struct expr *e, uint64_t values, int64_t took_ns);
/*
 * A plan for another thread of the same query, once a step was evaluated: series and what was read
 * for all steps are shared, what is counted is its own. In the arena.
 */
MUST_CHECK enum err_code plan_fork(
	const struct query_plan *p, struct arena *a, struct query_plan *out);
/* Moves the counts of `from` to ev's plan. */
void plan_add_counts(struct eval *ev, struct query_plan *from);
/* Adds the time of an expression that was evaluated. */
void plan_note_time(struct eval *ev, const struct expr *e, int64_t took_ns);

/* ---- explain.c ---- */

struct json;
/* One object: the tree of expressions, with what selectors read; see web/api/README.md. */
void plan_json(struct json *j, const struct parsed *parsed, const struct query_plan *p);
/* The same as lines of text. */
void plan_print(struct buf *out, const struct parsed *parsed, const struct query_plan *p);

#endif
