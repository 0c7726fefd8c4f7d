/*
 * Intake: carries a long request body from the thread that receives it to the worker that reads it.
 *
 * At most INTAKE_BYTES_MAX wait for the worker. Then the receiver sleeps, and takes nothing more
 * from the client until the worker has read. So the memory of a body is bounded, and the receiving
 * thread never waits for a disk.
 *
 * Errors:    ERR_CANCELED: the client closed the connection, or the server closes; ERR_LIMIT: the
 * body is longer than bytes_max; ERR_NOMEM. Ownership: the caller's memory; intake_release. A piece
 * is valid until the next read. Threads:   one adds, one reads. wake is called under the lock, by
 * the reader, when the receiver sleeps.
 */
#ifndef WEB_HTTP_INTAKE_H
#define WEB_HTTP_INTAKE_H

#include <stdatomic.h>

#include "base/str.h"
#include "base/thread.h"

#define INTAKE_BYTES_MAX (1u << 20)

struct intake {
	struct mutex lock; /* guards the fields below, except the reader's own */
	struct cond changed;
	struct buf ready;
	bool ended; /* the last byte was added */
	bool gone; /* nobody adds any more, and the end is missing */
	bool left; /* nobody reads any more: bytes are dropped */
	bool asleep; /* the receiver waits for wake */
	void (*wake)(void *ctx);
	void *ctx;
	/* The reader's own. */
	struct buf piece;
	uint64_t bytes; /* read so far */
};

void intake_init(struct intake *i, void (*wake)(void *ctx), void *ctx);
void intake_release(struct intake *i);

/* ---- the receiver ---- */

/* False: there is no room, and sleep(ctx) has been called, under the lock. Takes all or nothing. */
bool intake_add(struct intake *i, const void *data, size_t n, void (*sleep)(void *ctx));
void intake_end(struct intake *i);
/* The client is gone; wake is not called again. */
void intake_gone(struct intake *i);

/* ---- the reader ---- */

/* Waits for bytes. piece->len 0: the body has ended. */
MUST_CHECK enum err_code intake_read(struct intake *i, uint64_t bytes_max,
	const atomic_bool *canceled, struct str *piece, struct err *err);
void intake_leave(struct intake *i);

#endif
