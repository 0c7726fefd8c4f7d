/*
 * Sums, the inside: rows of windows (sum.c), chunks and rollup records (sum_chunk.c), choosing
 * between the two (sum_block.c), levels beside whole hours (sum_levels.c), parts of chunks kept for
 * the next window (sum_edges.c), chunks of a series and what is kept of their heads (sum_heads.c),
 * facts about rows (sum_stats.c), stacks as costs by name (sum_names.c).
 *
 * Errors:  those of db_sum; damage is a warning of the querier if the rest can be read.
 * Threads: as the querier.
 */
#ifndef TSDB_READ_SUM_INTERNAL_H
#define TSDB_READ_SUM_INTERNAL_H

#include "tsdb/columns/chunk.h"
#include "tsdb/read/select_internal.h"

/* Fields of a series' record in a block; group_n 0: not read yet. */
struct sum_place {
	uint32_t slot, group, group_first, group_n;
	int64_t read_min_ns, read_max_ns; /* chunks that end in (min, max] were read before */
	struct sum_heads *heads; /* kept ones, ascending */
};

/* All that are kept, in the order in which they came; zeros: none. */
struct sum_kept_heads {
	struct sum_heads *oldest, *youngest;
	size_t bytes;
};

/* A row as a whole. */
struct sum_row {
	int64_t ts_ns, interval_ns, time_nanos, duration_nanos, period;
	uint32_t n;
	int64_t total;
};

/* The scrapes of one series in a piece (cover.h), of all epochs and members. */
struct sum_scrape {
	int64_t ts_ns, interval_ns, counts_ns;
};
struct sum_piece {
	int64_t min_ns, max_ns;
	int64_t from_ns, to_ns; /* the part of it that the querier sees */
	struct sum_scrape *v; /* ascending, each time once */
	size_t n, cap;
	size_t at; /* near the one that was looked up last */
	bool keeps; /* facts about rows are kept when they are read: totals are enough */
	struct sum_row *rows;
	size_t rows_n, rows_cap;
	/* Else: rows of windows are added as they are read, each when the next one's time is known. */
	bool adds;
	struct querier_source *held; /* of the row that waits for the next; NULL: none does */
	size_t held_at; /* in v */
	struct buf bytes; /* of it */
};

/* Memory that is kept between sums of a querier. */
struct sum_scratch {
	struct row_view view;
	struct err why; /* of a row; one on the stack would be cleared for each */
	struct chunk *chunk; /* made when first wanted, as the next */
	struct rollup_view *rollup;
	struct arena arena; /* series records, reset with each */
	struct bits headers; /* of stats->headers, while db_sum runs */
	struct bits stacks, sets; /* ids that are about to be added */
	struct sum_piece piece;
	int64_t ends[CHUNK_ROWS_MAX + 1]; /* of what a chunk's rows count, one after the other */
	uint32_t *ids, *zeros;
	size_t *at; /* per series: its next place */
	size_t ids_cap, at_cap, zeros_cap;
	struct sum_edges *edges; /* made when first wanted */
	struct sum_kept_heads heads;
	struct sum_place **places; /* by source: per series of a block, or NULL */
	size_t places_n;
};

struct summing {
	struct db_querier *q;
	struct sum_scratch *x;
	struct partition *p;
	const struct profile_type *type;
	struct accum *acc; /* NULL: totals only */
	struct function_sums *functions; /* gets totals of functions; NULL: all goes to acc */
	struct arena *a;
	struct sum_stats *stats;
	struct bits *headers; /* of stats->headers; NULL at first: the scratch's */
	enum sum_pick pick;
	enum sum_part expect; /* blocks learn of this, and nothing is added; 0: sums are made */
	enum sum_wish wish; /* then */
	int64_t window_ns; /* where the window begins */
	bool levels; /* rows of gauges count time of the window */
	struct cover_window window;
	struct sum_piece *piece; /* levels: which is read; NULL: the region of whole hours */
	bool regular; /* of a source in the region: missed scrapes are made up for, as in its rollups */
	struct span_hour hour; /* then: of the series' rows in the source */
	uint32_t header; /* of the row before */
	int column; /* of the type in it; -1: none */
};

/* ---- sum.c ---- */

/* Prepares a sum over a window, which is clipped; nothing is read if it is empty then. */
MUST_CHECK enum err_code sum_begin(struct summing *summing, const struct db_series *const *series,
	size_t n, int64_t *min_ns, int64_t *max_ns, struct err *err);
/* Rows are added between these two. */
MUST_CHECK enum err_code sum_enter(struct summing *summing, struct err *err);
void sum_leave(struct summing *summing);
/* All rows were added. */
MUST_CHECK enum err_code sum_end(
	struct summing *summing, const struct db_series *const *series, struct err *err);
/* Of each source's series those in (min, max]; of levels, those in whole hours of it. */
MUST_CHECK enum err_code sum_sources(struct summing *summing, const struct db_series *const *series,
	size_t n, int64_t min_ns, int64_t max_ns, struct err *err);
/* The querier's, made when first wanted. */
MUST_CHECK enum err_code sum_scratch_of(
	struct db_querier *q, struct sum_scratch **out, struct err *err);
/*
 * The numbers that series have in one source after the other, ascending: s->ids[0, *out_n). Begun
 * once, then asked source by source, ascending.
 */
MUST_CHECK enum err_code sum_places_begin(struct sum_scratch *s, size_t n, struct err *err);
MUST_CHECK enum err_code sum_places(struct sum_scratch *scratch,
	const struct db_series *const *series, size_t n, uint32_t source, size_t *out_n,
	struct err *err);
/* Label sets of rows that have none. NULL: out of memory. */
const uint32_t *sum_zeros(struct sum_scratch *s, size_t n);
/* The header of a row with so many columns: sets s->header and s->column. ERR_CORRUPT: no such. */
MUST_CHECK enum err_code sum_header(
	struct summing *s, uint32_t header, uint32_t columns_n, struct err *err);
/* A row of a window; *added: it has the type. Damage is a warning. */
MUST_CHECK enum err_code sum_row(struct summing *summing, struct querier_source *s,
	struct str bytes, int64_t ts_ns, bool *added, struct err *err);
/* Rows of a window in (min, max]. */
MUST_CHECK enum err_code sum_window(struct summing *summing, struct querier_source *s, uint32_t id,
	int64_t min_ns, int64_t max_ns, struct err *err);
/* Rows of the source follow. */
void sum_begin_source(struct summing *summing, const struct querier_source *s);
MUST_CHECK enum err_code sum_canceled(const struct summing *s, struct err *err);

/* ---- sum_stats.c ---- */

MUST_CHECK enum err_code sum_note_header(struct summing *s, uint32_t header, struct err *err);
void sum_note_totals(struct sum_stats *st, struct row_total min, struct row_total max);
MUST_CHECK enum err_code sum_note_row(
	struct summing *s, const struct sum_row *row, int64_t weight, struct err *err);

/* ---- sum_levels.c ---- */

/* As sum_sources of levels, in all of the window. */
MUST_CHECK enum err_code sum_levels(struct summing *summing, const struct db_series *const *series,
	size_t n, int64_t min_ns, int64_t max_ns, struct err *err);
static inline bool sum_is_weighted(const struct summing *s)
{
	return !s->type->delta && s->pick != SUM_LAST;
}
/* Keeps a row for later. */
MUST_CHECK enum err_code sum_piece_keep(
	struct sum_piece *p, const struct sum_row *row, struct err *err);
/* What the row multiplies its values by. Rows of a series are asked for once, as they ascend. */
int64_t sum_weight(struct summing *s, int64_t ts_ns, int64_t interval_ns);

/* ---- sum_edges.c: for windows that begin where others ended ---- */

/* The rows [from, ...) of a column of the chunk that begins with the row at first_ns. */
struct sum_edge_key {
	uint32_t source, series, column, from;
	int64_t first_ns;
};
struct sum_edges;
void sum_edges_close(struct sum_edges *e); /* NULL is fine */
/* True if the part is not kept yet. Makes *edges; false also without memory. */
bool sum_edges_want(struct sum_edges **edges, const struct sum_edge_key *key);
/* Keeps a copy if there is room. cut_ns: time of the first row; window_ns: the begin of the current
 * window; older parts are not needed any more. */
void sum_edges_keep(struct sum_edges *e, const struct sum_edge_key *key, int64_t cut_ns,
	int64_t window_ns, const struct chunk_tail *tail);
/* *out points into the kept copy. */
bool sum_edges_find(struct sum_edges *e, const struct sum_edge_key *key, struct chunk_tail *out);

/* ---- sum_heads.c: chunks of a series, for windows that follow each other ---- */

void sum_heads_close(struct sum_kept_heads *k);
/* A series' rows in the part (min, max] of a block that has rows. Damage is a warning. */
MUST_CHECK enum err_code sum_heads_series(struct summing *summing, struct querier_source *s,
	uint32_t id, int64_t min_ns, int64_t max_ns, struct err *err);
/* The chunks of these series are read next: the disk can begin with those that were not read yet.
 */
void sum_heads_expect(struct summing *summing, const struct querier_source *s, uint32_t first,
	uint32_t n, int64_t min_ns, int64_t max_ns);

/* ---- sum_chunk.c ---- */

/* Rows of a chunk of a block in (min, max] that are not deleted. ERR_CORRUPT: nothing of some rows
 * was added, the others were. */
MUST_CHECK enum err_code sum_chunk(struct summing *summing, struct querier_source *s, uint32_t id,
	struct str bytes, int64_t min_ns, int64_t max_ns, struct err *err);
/* Rows of a chunk without their samples; totals column by column. */
struct sum_chunk_heads {
	const struct chunk_row *rows;
	const int64_t *totals;
	uint32_t rows_n, columns_n;
	int64_t interval_ns;
};
/* As sum_chunk where totals are enough (no acc). heads NULL: those of x->chunk, which is parsed. */
MUST_CHECK enum err_code sum_chunk_heads(struct summing *summing, struct querier_source *s,
	uint32_t id, const struct sum_chunk_heads *heads, int64_t min_ns, int64_t max_ns,
	struct err *err);
/* The latest such row that has the type; *found: there was one. */
MUST_CHECK enum err_code sum_chunk_last(struct summing *summing, struct querier_source *s,
	uint32_t id, struct str bytes, int64_t min_ns, int64_t max_ns, bool *found, struct err *err);
/* The record's column of the type, and its number; NULL: none. ERR_CORRUPT: symbols are missing. */
MUST_CHECK enum err_code sum_find_column(struct summing *s, const struct rollup_view *v,
	const struct rollup_column **out, uint32_t *at, struct err *err);
/* Adds the column's facts about its rows, in a step of this length, to the stats. */
MUST_CHECK enum err_code sum_note_record(
	struct summing *s, const struct rollup_column *c, int64_t step_ns, struct err *err);
/* ERR_CORRUPT: nothing was added. */
MUST_CHECK enum err_code sum_record(
	struct summing *s, struct str bytes, int64_t step_ns, struct err *err);

/* ---- sum_functions.c ---- */

/*
 * A record of function totals. *usable false: it cannot tell what names that are shown as one cost.
 * Then, and with ERR_CORRUPT, nothing was added.
 */
MUST_CHECK enum err_code sum_function_record(
	struct summing *s, struct str bytes, bool *usable, struct err *err);
bool function_sums_any(const struct function_sums *f);
/* total: of all stacks. */
struct rollup_function;
MUST_CHECK enum err_code function_sums_add(struct function_sums *f, const struct rollup_function *r,
	size_t n, __int128 total, struct err *err);

/* ---- sum_names.c ---- */

/* Moves what is in s->acc to s->functions, if names tell as much as stacks. */
MUST_CHECK enum err_code sum_names(struct summing *s, struct err *err);

/* ---- sum_block.c ---- */

/* Series ids[0..n) (ascending) of a block, over the part of (min, max] that it covers. */
MUST_CHECK enum err_code sum_block(struct summing *summing, struct querier_source *s,
	const uint32_t *ids, size_t n, int64_t min_ns, int64_t max_ns, struct err *err);
MUST_CHECK enum err_code sum_block_last(struct summing *summing, struct querier_source *s,
	uint32_t id, int64_t min_ns, int64_t max_ns, bool *found, struct err *err);
/* A series' rows in a piece. */
MUST_CHECK enum err_code sum_block_piece(struct summing *summing, struct querier_source *s,
	uint32_t id, int64_t min_ns, int64_t max_ns, struct err *err);

#endif
