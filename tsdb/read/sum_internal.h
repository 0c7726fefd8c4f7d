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
	int64_t read_min_ns, read_max_ns; /* chunks that end in (min, max] were read already */
	struct sum_heads *heads; /* heads that are kept, ascending */
};

/* All heads that are kept, in the order in which they were kept; all zeros: none. */
struct sum_kept_heads {
	struct sum_heads *oldest, *youngest;
	size_t bytes;
};

/* Facts about a whole row. */
struct sum_row {
	int64_t ts_ns, interval_ns, time_nanos, duration_nanos, period;
	uint32_t n;
	int64_t total;
};

/* A scrape of one series in a piece (cover.h); epochs and members are not told apart. */
struct sum_scrape {
	int64_t ts_ns, interval_ns, counts_ns;
};
struct sum_piece {
	int64_t min_ns, max_ns;
	int64_t from_ns, to_ns; /* the part of it that the querier sees */
	struct sum_scrape *v; /* ascending, each time once */
	size_t n, cap;
	size_t at; /* where the last search ended */
	bool keeps; /* totals are enough: facts about rows are kept while times are read */
	struct sum_row *rows;
	size_t rows_n, rows_cap;
	/* Else: Else, if the series has no other epoch or member: a window's row is added once the time
	 * of the next one is known. */
	bool adds;
	struct querier_source *held; /* source of the row that waits for the next; NULL: no row waits */
	size_t held_at; /* in v */
	struct buf bytes; /* of that row */
};

/* Memory that is kept between sums of a querier. */
struct sum_scratch {
	struct row_view view;
	struct err why; /* of a row; kept here, as clearing one on the stack costs time for each row */
	struct chunk *chunk; /* made when first needed, as the next */
	struct rollup_view *rollup;
	struct arena arena; /* series records, reset with each */
	struct bits headers; /* of stats->headers, while db_sum runs */
	struct bits stacks, sets; /* ids that are about to be added */
	struct sum_piece piece;
	int64_t ends[CHUNK_ROWS_MAX + 1]; /* running sums of what a chunk's rows count */
	uint32_t *ids, *zeros;
	size_t *at; /* per series: index of its next place */
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
	struct function_sums *functions; /* gets totals of functions; NULL: acc gets everything */
	struct arena *a;
	struct sum_stats *stats;
	struct bits *headers; /* the set of stats->headers; NULL at first, then the scratch's */
	enum sum_pick pick;
	enum sum_part expect; /* not 0: this part is only announced to blocks (db_sum_expect) */
	enum sum_wish wish; /* with `expect` */
	int64_t window_ns; /* where the window begins */
	bool levels; /* a gauge: rows count time of the window */
	struct cover_window window;
	struct sum_piece *piece; /* the piece that is being read; NULL: the region of whole hours */
	bool regular; /* the source's missed scrapes are made up for in the region, as in its rollups */
	struct span_hour hour; /* if regular: the state of the series in this source */
	uint32_t header; /* of the last row */
	int column; /* of the type in rows with that header; -1: none */
};

/* ---- sum.c ---- */

/* Prepares a sum over a window, which is clipped; nothing is read if it is empty then. */
MUST_CHECK enum err_code sum_begin(struct summing *summing, const struct db_series *const *series,
	size_t n, int64_t *min_ns, int64_t *max_ns, struct err *err);
/* Rows are added between these two. */
MUST_CHECK enum err_code sum_enter(struct summing *summing, struct err *err);
void sum_leave(struct summing *summing);
/* Ends a sum after all rows were added. */
MUST_CHECK enum err_code sum_end(
	struct summing *summing, const struct db_series *const *series, struct err *err);
/* Adds the series' rows of all sources in (min, max]; of gauges, only those in the region of whole
 * hours. */
MUST_CHECK enum err_code sum_sources(struct summing *summing, const struct db_series *const *series,
	size_t n, int64_t min_ns, int64_t max_ns, struct err *err);
/* The querier's scratch, made when first needed. */
MUST_CHECK enum err_code sum_scratch_of(
	struct db_querier *q, struct sum_scratch **out, struct err *err);
/*
 * Lists the ids of the series in one source, ascending: s->ids[0, *out_n). Call sum_places_begin
 * once, then sum_places for each source, in ascending order.
 */
MUST_CHECK enum err_code sum_places_begin(struct sum_scratch *s, size_t n, struct err *err);
MUST_CHECK enum err_code sum_places(struct sum_scratch *scratch,
	const struct db_series *const *series, size_t n, uint32_t source, size_t *out_n,
	struct err *err);
/* n zeros: the label sets of a row without any. NULL: out of memory. */
const uint32_t *sum_zeros(struct sum_scratch *s, size_t n);
/* Takes the header of a row with columns_n columns: sets s->header and s->column. ERR_CORRUPT: the
 * header is missing or has another number of columns. */
MUST_CHECK enum err_code sum_header(
	struct summing *s, uint32_t header, uint32_t columns_n, struct err *err);
/* Adds a row of a window. *added: the row has the type. Damage is a warning. */
MUST_CHECK enum err_code sum_row(struct summing *summing, struct querier_source *s,
	struct str bytes, int64_t ts_ns, bool *added, struct err *err);
/* Adds the rows of a series of a window in (min, max]. */
MUST_CHECK enum err_code sum_window(struct summing *summing, struct querier_source *s, uint32_t id,
	int64_t min_ns, int64_t max_ns, struct err *err);
/* Call before rows of a source are added. */
void sum_begin_source(struct summing *summing, const struct querier_source *s);
MUST_CHECK enum err_code sum_canceled(const struct summing *s, struct err *err);

/* ---- sum_stats.c ---- */

MUST_CHECK enum err_code sum_note_header(struct summing *s, uint32_t header, struct err *err);
void sum_note_totals(struct sum_stats *st, struct row_total min, struct row_total max);
MUST_CHECK enum err_code sum_note_row(
	struct summing *s, const struct sum_row *row, int64_t weight, struct err *err);

/* ---- sum_levels.c ---- */

/* As sum_sources, for gauges: the region of whole hours and the pieces beside it. */
MUST_CHECK enum err_code sum_levels(struct summing *summing, const struct db_series *const *series,
	size_t n, int64_t min_ns, int64_t max_ns, struct err *err);
static inline bool sum_is_weighted(const struct summing *s)
{
	return !s->type->delta && s->pick != SUM_LAST;
}
/* Keeps a row for later. */
MUST_CHECK enum err_code sum_piece_keep(
	struct sum_piece *p, const struct sum_row *row, struct err *err);
/* The weight that the row's values are multiplied by. Ask once for each row of a series, in
 * ascending order. */
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
/* Keeps a copy if there is room. cut_ns: time of the first row; window_ns: begin of the current
 * window, so that older parts can be freed. */
void sum_edges_keep(struct sum_edges *e, const struct sum_edge_key *key, int64_t cut_ns,
	int64_t window_ns, const struct chunk_tail *tail);
/* *out points into the kept copy. */
bool sum_edges_find(struct sum_edges *e, const struct sum_edge_key *key, struct chunk_tail *out);

/* ---- sum_heads.c: chunks of a series, for windows that follow each other ---- */

void sum_heads_close(struct sum_kept_heads *k);
/* Adds the series' rows in (min, max] of a block with raw rows. Damage is a warning. */
MUST_CHECK enum err_code sum_heads_series(struct summing *summing, struct querier_source *s,
	uint32_t id, int64_t min_ns, int64_t max_ns, struct err *err);
/* Announces that chunks of these series are read next; those that were read already are left
 * out. */
void sum_heads_expect(struct summing *summing, const struct querier_source *s, uint32_t first,
	uint32_t n, int64_t min_ns, int64_t max_ns);

/* ---- sum_chunk.c ---- */

/* Adds the rows of a block's chunk in (min, max] that are not deleted. ERR_CORRUPT: some rows were
 * left out completely; the others were added. */
MUST_CHECK enum err_code sum_chunk(struct summing *summing, struct querier_source *s, uint32_t id,
	struct str bytes, int64_t min_ns, int64_t max_ns, struct err *err);
/* Rows of a chunk without their samples; totals column by column. */
struct sum_chunk_heads {
	const struct chunk_row *rows;
	const int64_t *totals;
	uint32_t rows_n, columns_n;
	int64_t interval_ns;
};
/* As sum_chunk where totals are enough (no acc). heads NULL: those of summing->x->chunk, which is
 * parsed. */
MUST_CHECK enum err_code sum_chunk_heads(struct summing *summing, struct querier_source *s,
	uint32_t id, const struct sum_chunk_heads *heads, int64_t min_ns, int64_t max_ns,
	struct err *err);
/* Adds the latest such row that has the type. *found: there was one. */
MUST_CHECK enum err_code sum_chunk_last(struct summing *summing, struct querier_source *s,
	uint32_t id, struct str bytes, int64_t min_ns, int64_t max_ns, bool *found, struct err *err);
/* The record's column of the type, and its number; NULL: none. ERR_CORRUPT: symbols are missing. */
MUST_CHECK enum err_code sum_find_column(struct summing *s, const struct rollup_view *v,
	const struct rollup_column **out, uint32_t *at, struct err *err);
/* Adds the column's facts about its rows, in a step of this length, to the stats. */
MUST_CHECK enum err_code sum_note_record(
	struct summing *s, const struct rollup_column *c, int64_t step_ns, struct err *err);
/* Adds a record of a step. ERR_CORRUPT: nothing was added. */
MUST_CHECK enum err_code sum_record(
	struct summing *s, struct str bytes, int64_t step_ns, struct err *err);

/* ---- sum_functions.c ---- */

/*
 * Adds a record of function totals. *usable false: the record does not have the cost together of
 * names that are shown as one. Then, and with ERR_CORRUPT, nothing was added.
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

/* Adds the series ids[0..n) (ascending) of a block, over the part of (min, max] that the block
 * covers. */
MUST_CHECK enum err_code sum_block(struct summing *summing, struct querier_source *s,
	const uint32_t *ids, size_t n, int64_t min_ns, int64_t max_ns, struct err *err);
MUST_CHECK enum err_code sum_block_last(struct summing *summing, struct querier_source *s,
	uint32_t id, int64_t min_ns, int64_t max_ns, bool *found, struct err *err);
/* Adds a series' rows in a piece. */
MUST_CHECK enum err_code sum_block_piece(struct summing *summing, struct querier_source *s,
	uint32_t id, int64_t min_ns, int64_t max_ns, struct err *err);

#endif
