/*
 * Windows: the list of the head's windows, and their fields.
 *
 * Users of a window's store pin it: queriers, appends, queued rows. Dropping and reopening wait
 * until there are no pins. Windows are (start, end] and never overlap.
 *
 * Threads: as each field says; functions named _locked want db->lock.
 */
#ifndef TSDB_CATALOG_WINDOWS_H
#define TSDB_CATALOG_WINDOWS_H

#include "tsdb/catalog/deleted.h"
#include "tsdb/series/series.h"
#include "tsdb/symbols/segvec.h"

struct db;
struct job;

/* Counts of a window's store: the record "c", written with each batch. */
struct window_count {
	uint64_t seq; /* batches */
	uint64_t rows, samples;
	uint64_t numbers; /* values of numeric series */
	/* records of symbols; fewer than the store has if an older version made the window */
	uint64_t symbols;
	int64_t min_ns, max_ns; /* of rows and numbers; 0, 0: none */
};

static inline bool window_is_empty(const struct window_count *c)
{
	return c->rows == 0 && c->numbers == 0;
}

struct window {
	int64_t start_ns, end_ns;
	uint64_t identity; /* of the store's records; 0: an older version made the window */
	bool links; /* when it was opened, its meta said that rows may have links */
	uint32_t number; /* as db_block's */
	bool sealed; /* db->lock: takes no more rows */
	const struct deleted_range *deleted; /* db->lock, as db_block's */
	size_t deleted_n;
	char *dir; /* the store's; a temporary copy when read-only */
	char *mark_path; /* beside it: how much was acknowledged */
	char *names_path; /* beside it: a second copy of small records */
	struct store *store; /* db->lock, but the commit thread's while `draining`; NULL: not open */
	unsigned pins; /* db->lock */
	unsigned writers; /* db->lock: of the pins, those of appends and queued rows */
	unsigned waiting; /* db->lock: queriers that released their pin until the window is reopened */
	struct window *next_dropping; /* db->lock */
	bool draining; /* db->lock: to be reopened, takes no new pins */
	bool damaged; /* db->lock: some of its data was lost */
	bool shadow; /* db->lock: the disk was full when it was opened; nothing is written to it */
	struct window_count count; /* db->lock; the commit thread writes it */
	int mark_fd; /* the commit thread's; -1: none */
	int names_fd; /* the commit thread's; -1: not open */
	/* the commit thread's: nothing more is appended; the next start writes the file again */
	bool names_failed;
	bool
		follow_failed; /* the following thread's: its store takes no more, it is to be made again */
	_Atomic uint64_t followed; /* segments of which all symbols are in the store; else 0 */
	struct bits series; /* the series index's lock */
	bool types_lost; /* the types of some series are not known */
	struct window_job *jobs; /* db->lock: by job->index; window_epochs.c */
	uint32_t jobs_n;
};

/* A header with the types of a series' rows in an epoch. */
struct series_header {
	uint32_t series, header;
};

/* Rows of a job that a window has under one epoch. */
struct window_epoch {
	uint32_t epoch;
	int64_t min_ns, max_ns; /* (min, max]: contains the times of all rows; may be larger */
	struct series_header *types; /* by series */
	uint32_t types_n, types_cap;
};

struct window_job {
	struct window_epoch *v; /* in the order in which they began */
	uint32_t n, cap;
};

/* Its store can be pinned. */
static inline bool window_is_open_locked(const struct window *w)
{
	return !w->draining && w->store; /* while it drains, `store` is the commit thread's */
}

struct window *window_new(struct db *db, int64_t start_ns, int64_t end_ns); /* NULL: no memory */
void window_free(struct db *db, struct window *w);
/* Makes room for one more in the list. */
bool windows_reserve_locked(struct db *db);
void windows_insert_locked(struct db *db, struct window *w);
/* Takes the window out of db->windows; queriers that pin it go on. */
void windows_take_locked(struct db *db, struct window *w);
/* NULL: there is none. With db->lock, or where nobody changes the list: at a start. */
struct window *windows_find(const struct db *db, int64_t start_ns);
/* True if some window was opened over a full disk. */
bool windows_have_shadow_locked(const struct db *db);
/* Removes the files beside a window's directory. */
void window_remove_beside(struct db *db, const struct window *w);
/* False: the disk failed, and the next start will read the window again. */
bool window_remove_files(struct db *db, struct window *w);
/* Removes remains of a window that is in a block. False: they are still there. */
bool window_remove_leftover(struct db *db, int64_t start_ns);
/* A store that is no window of the directory is named <start>.<ns> and this. */
#define WINDOW_ASIDE ".damaged"
bool window_aside_start(struct str name, int64_t *start_s); /* false: it is no such name */
bool window_is_aside(const struct db *db, int64_t start_ns); /* a store of that window is */

#endif
