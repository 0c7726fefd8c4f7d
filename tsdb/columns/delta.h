/*
 * Delta: cumulative columns (counts since the process began) become what was added since the scrape
 * before.
 *
 * The scrape before is kept per series as a base: the encoded sums of its cumulative columns by
 * (stack, label set). With a usable base a column is what `go tool pprof -base=BEFORE THIS` says.
 * Without one (first scrape, other types, older than three intervals) cumulative columns are zero
 * and this scrape is the base of the next.
 *
 * A scrape that is not later than the base came late: what it counts, the base counts already, or
 * the next scrape will. Its cumulative columns are zero and the base stays, so no time is counted
 * twice. Where it was the clock that went back, so are all scrapes until it has caught up; then
 * what was added meanwhile is one delta.
 *
 * A counter that is lower than before, or has vanished, says that base and scrape are not of one
 * life of the process: Go's heap, block and mutex profiles never lose an entry and never count
 * back. Then, for the whole profile (a restart is the process's, not a column's): if some column's
 * total is lower too the target restarted, and everything it counted since is the delta; else one
 * cannot tell what was added, so cumulative columns are zero and this scrape is the new base. So a
 * stored delta is never negative.
 *
 * Entries given twice in one profile are summed first; their delta goes to the first of them.
 *
 * The base is not changed here: the new one is handed out, and takes its place once the row is
 * queued (and gives it back should the row's commit fail).
 *
 * Errors:  ERR_NOMEM, ERR_LIMIT (a sum exceeds 64 bits).
 * Threads: under the lock of what owns the base.
 */
#ifndef TSDB_COLUMNS_DELTA_H
#define TSDB_COLUMNS_DELTA_H

#include "base/arena.h"
#include "proto/kinds.h"

struct partition;

struct delta_base {
	struct buf bytes; /* a row of the cumulative columns; empty: none */
	int64_t ts_ns, interval_ns;
	uint64_t types; /* what the columns are: another value is another profile */
	struct partition *partition; /* whose ids it has; its user's business */
};

void delta_base_release(struct delta_base *b);

#define DELTA_BASE_INTERVALS_MAX 3

struct delta_input {
	int64_t ts_ns, interval_ns;
	uint64_t types;
	const enum value_kind *kinds; /* per column */
	uint32_t n, columns_n;
	const uint64_t *keys; /* stack << 32 | label set, ascending */
	int64_t *values; /* column c of entry i: values[c * n + i]; cumulative ones are changed in
				place */
};

/* *first: there is no earlier base, so cumulative columns are zero. *next: the base of the next
 * scrape, the caller's; empty if the old one stays: no cumulative columns, or a late scrape. */
MUST_CHECK enum err_code delta_apply(const struct delta_base *base, const struct delta_input *in,
	struct arena *a, struct delta_base *next, bool *first, struct err *err);
/* A scrape at this time, with this interval, may still be compared with the base. */
bool delta_base_young(const struct delta_base *base, int64_t ts_ns, int64_t interval_ns);

/* A base with other ids (of stacks and label sets): equal keys are summed. Unchanged on error. */
typedef enum err_code (*delta_renumber_fn)(
	void *ctx, uint32_t *stack, uint32_t *label_set, struct err *err);
MUST_CHECK enum err_code delta_base_renumber(
	struct delta_base *base, delta_renumber_fn fn, void *ctx, struct arena *a, struct err *err);

#endif
