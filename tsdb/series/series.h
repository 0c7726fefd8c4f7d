/*
 * Series index: label sets to ids, and postings by label for selecting.
 *
 * Each window knows its own series (struct window). A series leaves the index when no window has it
 * and its delta base is too old to be used. A regular expression is tested on the values of a
 * label, not on each series.
 *
 * Errors:  ERR_LIMIT (series_max, job_series_max; the message names the flag), ERR_NOMEM.
 * Threads: the index has a read-write lock (series_lock_*). Functions named _locked want it held
 * for reading; the others take it. A series with `uses` is not removed; `uses` is counted up under
 * the lock. The memory lives until series_free: queriers have pointers to labels.
 */
#ifndef TSDB_SERIES_SERIES_H
#define TSDB_SERIES_SERIES_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/labels.h"
#include "tsdb/columns/delta.h"
#include "tsdb/symbols/segvec.h"

#define SERIES_LABELS_MAX 128u
#define SERIES_LABEL_BYTES_MAX (64u << 10) /* all names and values of one series */

struct series {
	uint32_t id;
	struct labels labels; /* behind the struct, in one piece of memory with it */
	struct job *job; /* NULL: numeric */
	uint32_t bytes; /* size of that piece */
	_Atomic uint32_t uses; /* appends under way */
	_Atomic int64_t last_ts_ns; /* of its latest stored row, as far as this process saw it
					   stored; 0: not known */
	_Atomic int64_t base_until_ns; /* a scrape before this time may be compared with it */
	struct delta_base base; /* under job->lock (numeric: numbers_lock), as the rest */
	int64_t appended_ns; /* the latest time that was queued by this process */
	union {
		struct {
			uint64_t given_back; /* generation of the failure in which a base was given back to it
								  */
			uint64_t given_back_row; /* the first row that gave one back then */
		};
		struct { /* out of the index */
			struct series *next_retired;
			uint64_t retired_at;
		};
	};
	uint64_t stored_row; /* the last one with a base that was stored */
	int64_t stored_window_ns; /* where its own record was last stored, and with which types */
	uint64_t stored_generation;
	uint32_t stored_typeset, stored_epoch;
};

/* After each change of the base. */
static inline void series_note_base(struct series *s)
{
	atomic_store(&s->base_until_ns,
		s->base.bytes.len ? s->base.ts_ns + DELTA_BASE_INTERVALS_MAX * s->base.interval_ns : 0);
}

#define SERIES_TYPES_MANY (UINT32_MAX - 1)

struct job;
struct series_index;

/* job_series_max: new series of one job, those that are stored already count; 0: no limit. */
MUST_CHECK enum err_code series_index_open(
	uint64_t series_max, uint64_t job_series_max, struct series_index **out, struct err *err);
void series_index_close(struct series_index *s);

void series_lock_read(struct series_index *s);
void series_lock_write(struct series_index *s);
void series_unlock(struct series_index *s);

/* Counts its uses up. NULL: there is no such series. */
struct series *series_find(struct series_index *i, struct labels labels);
/* The kind of the series with this name. */
enum series_kind {
	SERIES_NONE,
	SERIES_PROFILES,
	SERIES_NUMBERS,
};
enum series_kind series_name_kind(struct series_index *s, struct str name);
/* ERR_INVALID: the name's series are of the other kind. */
MUST_CHECK enum err_code series_check_kind(
	struct str name, enum series_kind is, enum series_kind wanted, struct err *err);
/* Finds the series or adds it, and counts its uses up. id SYM_NONE: the next free one; a name that
 * has series of the other kind is then ERR_INVALID. job NULL: numeric. */
MUST_CHECK enum err_code series_add(struct series_index *s, struct labels labels, uint32_t id,
	struct job *job, struct series **out, struct err *err);
void series_release(struct series *s); /* counts uses down */
/* Series that have their ids already, as windows have them at the start: adds those that the index
 * lacks, whatever the limit by job. ERR_EXISTS: other labels have that id, or these labels another
 * one. */
struct series_stored {
	struct labels labels;
	struct job *job; /* NULL: numeric */
	uint32_t id;
};
MUST_CHECK enum err_code series_add_stored(
	struct series_index *s, const struct series_stored *stored, size_t n, struct err *err);

struct series *series_by_id_locked(const struct series_index *s, uint32_t id);
uint32_t series_next_id(const struct series_index *s);
void series_reserve_ids(struct series_index *s, uint32_t next);
uint64_t series_n(struct series_index *s);
/* How many series the job with most of them has, those of numbers included; 0: there are none. Its
 * name is added to `name`, unless that is NULL. */
uint64_t series_largest_job(struct series_index *s, struct buf *name);
/* Takes an unused series out of the index; its memory stays until series_free. Wants the write
 * lock. */
void series_remove_locked(struct series_index *i, struct series *s);
void series_free(struct series *s);

/*
 * Puts the ids within `among` that all matchers accept into `out`. If a series lacks the label, the
 * matcher is tested with "". If it does not accept "", the series still passes when has_key says
 * that its samples have the label (has_key NULL: it passes, and the caller looks at the samples).
 */
typedef bool (*series_has_key_fn)(void *ctx, const struct series *s, struct str key);
MUST_CHECK enum err_code series_match_locked(const struct series_index *s, const struct matcher *m,
	size_t n, const struct bits *among, series_has_key_fn has_key, void *ctx, struct bits *out,
	struct err *err);
/* Leaves in `ids` the numeric series, or the others. */
void series_keep_kind_locked(const struct series_index *s, bool numbers, struct bits *ids);
/* Leaves in `ids` the series that lack the label. */
void series_lacking_locked(const struct series_index *s, struct str name, struct bits *ids);
/* How many of the series within `ids` have the label. */
uint32_t series_having_locked(
	const struct series_index *s, struct str name, const struct bits *ids);
/* Leaves in `ids` the job's series. */
void series_keep_job_locked(const struct series_index *s, const struct job *job, struct bits *ids);
/* Takes the job's series out of `ids`. */
void series_drop_job_locked(const struct series_index *s, const struct job *job, struct bits *ids);
/* Calls fn with each job of the series within `ids`, NULL for numeric ones, until it returns false.
 */
typedef bool (*series_job_fn)(void *ctx, struct job *job);
void series_jobs_locked(
	const struct series_index *s, const struct bits *ids, series_job_fn fn, void *ctx);

/* Calls fn with each label name of the series within `among`; with a name, with each of its values.
 * Reads a value's postings up to the first series within `among`. fn returns false to stop. Of
 * LABEL_SERVICE a value may come twice. False: out of memory. */
typedef bool (*series_name_fn)(void *ctx, struct str name);
bool series_names_locked(const struct series_index *s, struct str name, const struct bits *among,
	series_name_fn fn, void *ctx);
/* The same with the number of series within `among` that have it, and for a label name the number
 * of its values there. */
typedef bool (*series_count_fn)(void *ctx, struct str text, uint32_t series, uint32_t values);
void series_counts_locked(const struct series_index *s, struct str name, const struct bits *among,
	series_count_fn fn, void *ctx);
/* True if a series within `among` has the label with this value. */
bool series_value_meets_locked(
	const struct series_index *s, struct label label, const struct bits *among);
uint64_t series_index_bytes(struct series_index *s);

#endif
