/*
 * Appending, the inside: code that rows and numbers share.
 *
 * Threads: job->lock or numbers_lock is held, but for the checks.
 */
#ifndef TSDB_HEAD_APPEND_INTERNAL_H
#define TSDB_HEAD_APPEND_INTERNAL_H

#include "tsdb/catalog/state.h"
#include "tsdb/columns/row.h"
#include "tsdb/head/append.h"
#include "tsdb/head/keys.h"
#include "tsdb/symbols/stored.h"

/* Memory of one append, kept for the next. */
struct scratch {
	struct scratch *next;
	struct arena arena;
	struct buf row, record, there, links;
	struct new_symbols new_symbols;
};
struct scratch *scratch_take(struct db *db); /* NULL: out of memory */
void scratch_put(struct db *db, struct scratch *s);

/* ---- append_check.c ---- */

MUST_CHECK enum err_code append_check_labels(
	struct labels labels, const char *what, struct err *err);
MUST_CHECK enum err_code append_check_time(
	struct db *db, int64_t ts_ns, const char *what, struct err *err);
MUST_CHECK enum err_code append_check_state(struct db *db, struct err *err);

/* ---- append_gap.c ---- */

/* If *a has gap_max_ns, replaces it by a copy with its interval. w: pinned. */
MUST_CHECK enum err_code append_gap(struct window *w, struct series *s, struct db_append *copy,
	const struct db_append **a, struct err *err);

/* ---- append_links.c ---- */

/* The link of each of in's entries, of p->links; 0: none. NULL: no memory. */
uint32_t *append_links_find(const struct pprof *p, const struct interned *in, struct arena *a);
/*
 * Encodes links of the entries, which are in->samples[i] of `find`, and adds up entries that are
 * equal but for their links. values: column after column. r: the row, less its arrays. out stays
 * empty if there are none.
 */
struct linking {
	struct arena *a;
	const struct pprof *f;
	const uint32_t *find;
	struct interned *in;
	int64_t *values;
	struct row r;
	int64_t ts_ns;
};
MUST_CHECK enum err_code append_links_encode(
	const struct linking *l, struct buf *out, struct db_append_stats *stats, struct err *err);
void append_links_count(const struct db_append_stats *stats);

/* ---- duplicates.c ---- */

/* False: the series surely has no row at this time. */
bool duplicate_possible(const struct db *db, const struct series *s, int64_t ts_ns);
/* A row of the series was queued; its job's lock (numeric: numbers_lock) is held. */
void duplicate_note(struct series *s, int64_t ts_ns);
/* Waits until no row of the series and time is queued, then reads the stored record. ERR_NOT_FOUND:
 * there is none. */
struct duplicate_place {
	struct window *window; /* pinned */
	const struct series *series;
	int64_t ts_ns;
	struct key key; /* of a row or of a number */
	uint64_t generation;
};
MUST_CHECK enum err_code duplicate_find(
	struct db *db, const struct duplicate_place *at, struct buf *out, struct err *err);
/*
 * The stored row in scratch->there under the ids of `live`, for duplicate_check. Its content may
 * have other ids there, as the row's epoch may have ended since. The symbols are those of its
 * window, so no bucket is asked. The arrays are in the scratch's arena, the links in
 * scratch->there. live->lock is not held.
 */
struct duplicate_row {
	struct row row;
	bool renumbered; /* but for its links: they may be those of any row */
};
MUST_CHECK enum err_code duplicate_unpack(struct db *db, const struct duplicate_place *at,
	struct scratch *scratch, struct partition *live, struct duplicate_row *out, struct err *err);
/* ERR_EXISTS: the stored row is not the one in scratch->row, with scratch->links. */
MUST_CHECK enum err_code duplicate_check(const struct duplicate_row *stored,
	const struct db_append *a, struct scratch *scratch, struct err *err);
/* ERR_EXISTS; what: "profile". */
MUST_CHECK enum err_code duplicate_refuse(
	const char *what, struct labels labels, int64_t ts_ns, struct err *err);
/* ERR_INVALID: the time was deleted, so the row would not be seen. */
MUST_CHECK enum err_code duplicate_check_deleted(struct db *db, const struct window *w,
	const struct series *s, int64_t ts_ns, const char *what, struct err *err);

#endif
