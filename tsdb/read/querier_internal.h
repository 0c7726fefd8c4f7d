/*
 * Queriers, the inside: the sources of a querier, and functions that its files share.
 *
 * Threads: the querier's.
 */
#ifndef TSDB_READ_QUERIER_INTERNAL_H
#define TSDB_READ_QUERIER_INTERNAL_H

#include "tsdb/catalog/state.h"
#include "tsdb/read/querier.h"

/* A place with rows of a series: a source of the querier, and the series' number there. */
struct series_place {
	uint32_t source, id;
};

/* A database that a querier reads. */
struct querier_member {
	struct db *db;
	struct querier_turn turn; /* the querier's place among those of this member */
	uint32_t first; /* its first source + 1; 0: it has none */
	bool records; /* db_union_set_records */
};

/* A source of a querier: a head window by a snapshot of its store, or a block. */
struct querier_source {
	struct db *db;
	uint32_t member; /* of q->members */
	uint32_t next; /* the member's next source + 1; 0: this is the last */
	int64_t min_ns, max_ns; /* what it covers: (min, max] */
	bool regular; /* its windows are whole hours: missed scrapes are made up for (spans.h) */
	struct window *w; /* pinned; NULL: a block */
	struct store *store;
	struct store_snapshot *snap; /* NULL: it is being reopened, nothing is read */
	struct store_iter *it; /* made when first needed, as are the three below */
	struct db_block *b; /* pinned; NULL: a window */
	struct block_chunks *chunks, *numbers;
	struct block_rollups *rollups;
	struct partition **need; /* block: by slot, pinned once its names are loaded */
	bool *stacks; /* block: by slot, stacks are loaded too */
	const struct deleted_range *deleted;
	size_t deleted_n;
	bool warned;
};

struct db_querier {
	struct db *db; /* the database that was asked; of a union, the data are the members' */
	struct querier_member own; /* the only member if db is no union */
	struct querier_member *members;
	size_t members_n;
	struct member **of; /* of a union: pinned, in the order of members */
	int64_t min_ns, max_ns;
	const atomic_bool *cancel;
	const struct label_limits *limits; /* of series that may be selected; NULL: none */
	bool fork; /* uses another querier's pins, and is in no list */
	bool in_steps; /* db_querier_in_steps: heads of chunks are kept */
	bool adjoin; /* with in_steps: decoded parts of chunks are kept, too */
	size_t heads_bytes_max;
	struct arena arena; /* warnings, infos */
	struct str *warnings, *infos, *records_warnings;
	size_t warnings_n, infos_n, records_warnings_n;
	/* Some selection may have recorded numbers (records_read); some cannot (records_passed). If all
	 * selections cannot, the warnings of the member that has them are left out. */
	bool records_read, records_passed;
	struct querier_source *sources; /* ascending by time; those of one member do not overlap */
	size_t sources_n;
	struct partition **pinned; /* of head windows, each once */
	size_t pinned_n, pinned_cap;
	struct sum_scratch *scratch; /* sum.c */
	struct twins *twins; /* NULL: no union, or one member; a fork uses its querier's */
	uint32_t *stacks, *sets; /* decode buffers */
	int64_t *values;
	size_t decode_cap;
};

void querier_warn(struct db_querier *q, struct querier_source *s, const struct err *why);
void querier_warn_text(struct db_querier *q, const char *text); /* in its arena; NULL is fine */
/* Adds a warning about one member. */
void querier_warn_of(struct db_querier *q, uint32_t member, const char *text);
/* Notes a selection, and whether it may have recorded numbers. */
void querier_note_selected(struct db_querier *q, bool may_be_recorded);
/*
 * Warnings that are added while the querier is opened: windows that are being reopened, losses,
 * blocks in a bucket that cannot be read (the member's db->lock is held), rows of the future, and
 * what a union and its members report.
 */
void querier_tell_missing(struct db_querier *q);
void querier_tell_losses(struct db_querier *q);
void querier_tell_unreadable_locked(struct db_querier *q, uint32_t member);
/* from: the first source of the member. */
void querier_tell_future_locked(struct db_querier *q, uint32_t member, size_t from);
void querier_tell_union(struct db_querier *q);
void querier_tell_members(struct db_querier *q);
void querier_info(struct db_querier *q, const char *fmt, ...)
	PRINTF_LIKE(2, 3); /* each text once */
/* Adds a warning if the iterator skipped damage. */
void querier_check(struct db_querier *q, struct querier_source *s, const struct store_iter *it);
bool querier_canceled(const struct db_querier *q);
static inline bool querier_is_union(const struct db_querier *q)
{
	return q->of != NULL;
}
/* The source's own iterators. NULL: out of memory; of a window also: it has no snapshot. */
struct store_iter *querier_iter(struct querier_source *s);
struct block_chunks *querier_chunks(struct querier_source *s, struct err *err);
struct block_rollups *querier_rollups(struct querier_source *s, struct err *err);
/* The partition of a job's epoch in a window, with its symbols, pinned until the querier closes.
 * The window has a snapshot. NULL: it cannot be used; there is a warning. */
MUST_CHECK enum err_code querier_window_partition(struct db_querier *q, struct querier_source *s,
	struct job *job, uint32_t epoch, struct partition **out, struct err *err);
/* A block's slot as a partition with names, or with stacks too. ERR_CORRUPT, ERR_EXISTS: the
 * block's symbols cannot be used; there is a warning, and the caller goes on without them. */
MUST_CHECK enum err_code querier_partition(struct db_querier *q, struct querier_source *s,
	uint32_t slot, bool stacks, struct partition **out, struct err *err);
/* Column of the type in the header's rows, -1: none. */
int header_column(const struct partition *p, uint32_t header, const struct profile_type *t);
/* sum.c; NULL is fine */
void sum_scratch_close(struct sum_scratch *s);

/* ---- number_read.c ---- */

/* True if the window has a value of the series in (q->min_ns, q->max_ns]. */
bool numbers_in_window(struct db_querier *q, struct querier_source *s, uint32_t series);
MUST_CHECK enum err_code numbers_in_block(struct db_querier *q, struct querier_source *s,
	uint32_t series, const struct block_series *of, bool *has, struct err *err);

#endif
