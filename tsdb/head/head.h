/*
 * The head: windows that take rows, each with a separate store.
 *
 * Errors:  ERR_INVALID: the time is too old; ERR_UNAVAILABLE: the store is being reopened, or the
 *          disk is full.
 * Threads: any.
 */
#ifndef TSDB_HEAD_HEAD_H
#define TSDB_HEAD_HEAD_H

#include "tsdb/catalog/state.h"

/* Pins the window that ts falls into, or makes it. ERR_INVALID: it is too old. */
MUST_CHECK enum err_code head_pin(
	struct db *db, int64_t ts_ns, struct window **out, struct err *err);
void head_unpin(struct db *db, struct window *w);
void head_unpin_writer(struct db *db, struct window *w); /* a pin of head_pin */
void head_unpin_writers(struct db *db, struct window *w, unsigned n); /* n of them */
/* Removes a window that was taken out of the list, once it has no pins; `why` for the log and
 * metric. Its files stay if the database closes meanwhile. */
void head_remove(struct db *db, struct window *w, const char *why);
/* Takes the oldest window out of inventory and list, and removes it. */
MUST_CHECK enum err_code head_drop_oldest(struct db *db, const char *why, struct err *err);
/* Frees the memory that appends reuse; when the database closes. */
void scratch_free_all(struct db *db);
void head_encode_count(const struct window_count *c, struct buf *out);
uint64_t head_disk_bytes(struct db *db, const struct window *w);
/* Opens windows again that were opened over a full disk; if that fails they stay as they are. The
 * caller has no window pinned. */
void head_leave_shadows(struct db *db);
void db_damage(struct db *db, struct window *w, const char *what, const struct err *why);

/* Before it: ERR_UNSUPPORTED if a window is a newer program's. Nothing is changed. */
MUST_CHECK enum err_code head_check_versions(struct db *db, struct err *err);
MUST_CHECK enum err_code head_open_all(struct db *db, struct err *err);
/* "head/<start>" and the formatted text; malloc'ed, NULL: out of memory. */
char *head_where(const struct window *w, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
