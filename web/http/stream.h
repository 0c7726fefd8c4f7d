/*
 * Stream: carries a long answer from the worker that writes it to the thread that sends it.
 *
 * The worker writes pieces, which are compressed if the client takes that; up to
 * STREAM_WHOLE_BYTES_MAX at once, more piece by piece. Up to
 * STREAM_READY_BYTES_MAX may wait to be sent. Then the worker waits for the client, and gives up
 * after STREAM_PATIENCE_NS without progress. So the memory of an answer is bounded, and most
 * answers fit, so that a slow client does not hold their worker.
 *
 * Errors:    ERR_CANCELED: the client closed the connection, or the server closes; ERR_TIMEOUT;
 * ERR_NOMEM. Ownership: the caller's memory; stream_release. Threads:   one writes, one reads. wake
 * is called under the lock, by the writer, at the first piece and when the reader sleeps.
 */
#ifndef WEB_HTTP_STREAM_H
#define WEB_HTTP_STREAM_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/str.h"
#include "base/thread.h"
#include "web/http/http.h"

#define STREAM_WHOLE_BYTES_MAX (1u << 20)
#define STREAM_READY_BYTES_MAX (4u << 20)
#define STREAM_PATIENCE_NS (30 * INT64_C(1000000000))

struct stream {
	struct mutex lock; /* guards the fields below, except the writer's own */
	struct cond changed;
	struct buf ready;
	size_t taken; /* of it */
	bool started, ended, failed, gone;
	bool asleep; /* the reader waits for wake */
	/* The writer's own. */
	enum http_coding coding;
	struct buf raw; /* a short answer, which is compressed at its end */
	/* One of the two, unless it is not compressed, or short so far. */
	struct z_stream_s *z;
	struct ZSTD_CCtx_s *zstd;
	void (*wake)(void *ctx);
	void *ctx;
};

void stream_init(struct stream *s, void (*wake)(void *ctx), void *ctx);
void stream_release(struct stream *s);

/* ---- the writer ---- */

bool stream_started(struct stream *s);
/* Only the first piece decides on the coding. */
MUST_CHECK enum err_code stream_write(struct stream *s, struct str piece, enum http_coding coding,
	const atomic_bool *canceled, struct err *err);
/* The last piece was written; failed: the answer is not complete, so the connection breaks. */
void stream_end(struct stream *s, bool failed);

/* ---- the reader ---- */

enum { STREAM_SLEEP = 0, STREAM_END = -1, STREAM_FAILED = -2 };
/*
 * At most max bytes, or one of the above. For STREAM_SLEEP sleep(ctx) has been called, under the
 * lock, so that a wake cannot come before it.
 */
ssize_t stream_read(struct stream *s, char *to, size_t max, void (*sleep)(void *ctx));
/* Nobody reads any more; wake is not called again. */
void stream_leave(struct stream *s);

#endif
