/*
 * Shipping, the inside: what the commit thread and the opening of a database call.
 *
 * Errors:  ERR_NOMEM. A file that cannot be written is no error: its window wants a snapshot.
 * Threads: ship_begin and ship_end are the commit thread's; else as each says.
 */
#ifndef TSDB_HEAD_SHIP_INTERNAL_H
#define TSDB_HEAD_SHIP_INTERNAL_H

#include "tsdb/catalog/state.h"
#include "tsdb/head/ship.h"

struct store_batch;

/* Around the write of a batch: with it the window has *count. */
void ship_begin(
	struct db *db, struct window *w, struct store_batch *batch, const struct window_count *count);
void ship_end(struct db *db, struct window *w, bool stored);
/* The store was opened again and has *count; repaired: it may have less than was shipped. Any
 * thread. */
void ship_reopened(
	struct db *db, const struct window *w, const struct window_count *count, bool repaired);

/* The window leaves the head for good. Until head_ship_forget its series keep their ids, since the
 * manifest may name its segments beside those of windows to come. */
void ship_leave(struct db *db, struct window *w);

/* Files begin anew with the next batch; *count: after the last one that is stored. ERR_NOT_FOUND:
 * no batch is. For the publisher. */
MUST_CHECK enum err_code ship_restart(struct db *db, int64_t start_ns, uint64_t identity,
	struct window_count *count, struct err *err);

/* ---- between ship.c and ship_open.c ---- */

struct ship_file {
	char *path;
	uint64_t first, last; /* last 0: nothing yet */
	uint64_t bytes;
};

struct ship_window {
	int64_t start_ns, end_ns;
	uint64_t identity;
	struct window_count count; /* after the last batch that is stored */
	struct window_count pending; /* after the one being written */
	uint64_t done; /* batches up to this were put */
	uint64_t promised; /* a snapshot was taken that has batches up to this; it is not put yet */
	bool writing; /* between ship_begin and ship_end */
	bool doubtful; /* the last batch in the open file may not be stored */
	bool off; /* there was a gap: nothing is written until a snapshot begins */
	bool anew; /* what was put is not what the store has */
	struct ship_file *files; /* ascending; the last one is being written if fd is open */
	size_t files_n, files_cap;
	int fd; /* -1: none is being written */
	uint64_t before; /* bytes of it before its last batch */
};

struct ship {
	struct mutex lock; /* all of it; db->lock is not taken while it is held, nor the other way */
	struct cond idle; /* a batch was written */
	struct ship_window **v;
	size_t n, cap;
	uint64_t bytes; /* of all files */
	int64_t through_ns; /* the last that head_ship_end said */
	struct buf buf; /* the commit thread's */
};

/* NULL: there is none. The lock is held. */
struct ship_window *ship_find(struct ship *s, int64_t start_ns, uint64_t identity);
MUST_CHECK enum err_code ship_add(struct ship *s, int64_t start_ns, int64_t end_ns,
	uint64_t identity, struct ship_window **out, struct err *err);
/* Takes over the path, which is free'd on an error too. */
MUST_CHECK enum err_code ship_add_file(
	struct ship *s, struct ship_window *w, struct ship_file f, struct err *err);
/* "head/<start>-<identity>.segment.<first>"; malloc'ed, NULL: out of memory. */
char *ship_path(struct db *db, const struct ship_window *w, uint64_t first);

#endif
