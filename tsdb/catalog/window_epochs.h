/*
 * Which epochs of a job a window has rows of, when, and with which types.
 *
 * Threads: functions named _locked want db->lock.
 */
#ifndef TSDB_CATALOG_WINDOW_EPOCHS_H
#define TSDB_CATALOG_WINDOW_EPOCHS_H

#include "tsdb/catalog/windows.h"

/* All with db->lock held. */
struct window_epoch *window_epoch_locked(
	const struct window *w, const struct job *job, uint32_t epoch);
bool window_has_job_locked(const struct window *w, const struct job *job);
/* Made where it is missing, then *fresh; NULL: out of memory. ts_ns: of a row that comes. */
struct window_epoch *window_epoch_take_locked(
	struct window *w, const struct job *job, uint32_t epoch, int64_t ts_ns, bool *fresh);
void window_epochs_release(struct window *w);

/* The window, just read, has rows of the job under this epoch. */
MUST_CHECK enum err_code window_epoch_found(
	struct db *db, struct window *w, struct job *job, uint32_t epoch, struct err *err);
/* The i-th epoch of the job, with the times of its rows; false: there are no more. */
struct window_span {
	uint32_t epoch;
	int64_t min_ns, max_ns;
};
bool window_epoch_at(struct db *db, const struct window *w, const struct job *job, uint32_t i,
	struct window_span *out);
/* (min, max] becomes the part of it in which the window has rows in p's ids; false: it has none. */
bool window_clip(struct db *db, const struct window *w, const struct partition *p, int64_t *min_ns,
	int64_t *max_ns);
/* Header whose types the series' rows of an epoch have: SYM_NONE where there are none,
 * SERIES_TYPES_MANY where they differ and rows are to be asked. */
uint32_t window_types(
	struct db *db, const struct window *w, const struct job *job, uint32_t epoch, uint32_t series);
/* False: out of memory. */
bool window_set_types(struct db *db, struct window *w, const struct job *job, uint32_t epoch,
	uint32_t series, uint32_t header);

#endif
