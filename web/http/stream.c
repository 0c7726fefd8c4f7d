#include "web/http/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/gzip/gzip.h"

#define GZIP_LEVEL 1
#define GZIP_WINDOW_BITS (15 + 16) /* 16: gzip, not zlib */
#define GZIP_MEMORY_LEVEL 8
#define DEFLATE_ROOM (64u << 10)
#define LOOK_NS (200 * NS_PER_MS) /* how often a waiting writer checks for cancellation */

void stream_init(struct stream *s, void (*wake)(void *ctx), void *ctx)
{
	*s = (struct stream){ .wake = wake, .ctx = ctx };
	mutex_init(&s->lock);
	cond_init(&s->changed);
}

void stream_release(struct stream *s)
{
	if (s->z)
		deflateEnd(s->z);
	free(s->z);
	buf_release(&s->raw);
	buf_release(&s->ready);
	cond_destroy(&s->changed);
	mutex_destroy(&s->lock);
}

bool stream_started(struct stream *s)
{
	bool started;

	mutex_lock(&s->lock);
	started = s->started;
	mutex_unlock(&s->lock);
	return started;
}

static enum err_code stream_start_gzip(struct stream *s, struct err *err)
{
	s->z = calloc(1, sizeof(*s->z));
	if (s->z &&
		deflateInit2(s->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL,
			Z_DEFAULT_STRATEGY) == Z_OK)
		return ERR_OK;
	free(s->z);
	s->z = NULL;
	return err_nomem(err, "answer");
}

static void stream_deflate_piece(struct stream *s, struct str piece, int flush, struct buf *out)
{
	if (piece.len == 0 && flush != Z_FINISH)
		return;
	s->z->next_in = (Bytef *)(uintptr_t)piece.ptr;
	s->z->avail_in = (uInt)piece.len;
	do {
		if (!buf_reserve(out, DEFLATE_ROOM))
			return;
		s->z->next_out = (Bytef *)out->ptr + out->len;
		s->z->avail_out = DEFLATE_ROOM;
		deflate(s->z, flush);
		out->len += DEFLATE_ROOM - s->z->avail_out;
	} while (s->z->avail_out == 0);
}

static void stream_wake(struct stream *s)
{
	mutex_assert_held(&s->lock);
	if (s->gone || (s->started && !s->asleep))
		return;
	s->started = true;
	s->asleep = false;
	s->wake(s->ctx);
}

/* Waits until less than STREAM_READY_BYTES_MAX waits to be sent. */
static enum err_code stream_wait_for_room(
	struct stream *s, const atomic_bool *canceled, struct err *err)
{
	int64_t deadline = clock_monotonic_ns() + STREAM_PATIENCE_NS;
	size_t taken = s->taken;

	mutex_assert_held(&s->lock);
	while (s->ready.len - s->taken >= STREAM_READY_BYTES_MAX) {
		if (s->gone || atomic_load(canceled))
			return err_set(err, ERR_CANCELED, "the client closed the connection");
		if (s->taken != taken) {
			taken = s->taken;
			deadline = clock_monotonic_ns() + STREAM_PATIENCE_NS;
		} else if (clock_monotonic_ns() > deadline) {
			return err_set(err, ERR_TIMEOUT, "the client does not read the answer");
		}
		cond_wait_until(&s->changed, &s->lock, clock_monotonic_ns() + LOOK_NS);
	}
	return s->gone || atomic_load(canceled) ?
		err_set(err, ERR_CANCELED, "the client closed the connection") :
		ERR_OK;
}

static void stream_append(struct stream *s, struct str bytes)
{
	mutex_assert_held(&s->lock);
	if (s->taken == s->ready.len) {
		buf_clear(&s->ready);
		s->taken = 0;
	} else if (s->taken > STREAM_READY_BYTES_MAX / 2) {
		memmove(s->ready.ptr, s->ready.ptr + s->taken, s->ready.len - s->taken);
		s->ready.len -= s->taken;
		s->taken = 0;
	}
	buf_add_str(&s->ready, bytes);
}

/*
 * Puts what may be sent after this piece into out. A short answer is kept until its end, since
 * compressing it at once takes a third of the time of doing it by pieces.
 */
static enum err_code stream_compress_piece(
	struct stream *s, struct str piece, struct buf *out, struct err *err)
{
	enum err_code rc;

	if (!s->z && s->raw.len + piece.len <= STREAM_WHOLE_BYTES_MAX) {
		buf_add_str(&s->raw, piece);
		return buf_failed(&s->raw) ? err_nomem(err, "answer") : ERR_OK;
	}
	if (!s->z && (rc = stream_start_gzip(s, err)))
		return rc;
	stream_deflate_piece(s, buf_str(&s->raw), Z_NO_FLUSH, out);
	buf_release(&s->raw);
	stream_deflate_piece(s, piece, Z_NO_FLUSH, out);
	return ERR_OK;
}

enum err_code stream_write(
	struct stream *s, struct str piece, bool gzip, const atomic_bool *canceled, struct err *err)
{
	struct buf packed = { 0 };
	enum err_code rc = ERR_OK;

	if (!stream_started(s))
		s->gzip = gzip;
	if (s->gzip && (rc = stream_compress_piece(s, piece, &packed, err)))
		return rc;
	mutex_lock(&s->lock);
	assert(!s->ended);
	rc = stream_wait_for_room(s, canceled, err);
	if (!rc) {
		stream_append(s, s->gzip ? buf_str(&packed) : piece);
		if (buf_failed(&s->ready) || buf_failed(&packed))
			rc = err_nomem(err, "answer");
		else
			stream_wake(s);
	}
	mutex_unlock(&s->lock);
	buf_release(&packed);
	return rc;
}

void stream_end(struct stream *s, bool failed)
{
	struct buf packed = { 0 };
	struct err why;

	if (s->z && !failed)
		stream_deflate_piece(s, STR(""), Z_FINISH, &packed);
	else if (s->gzip && !failed)
		failed = gzip_compress(buf_str(&s->raw), GZIP_LEVEL, &packed, &why) != ERR_OK;
	mutex_lock(&s->lock);
	assert(!s->ended);
	stream_append(s, buf_str(&packed));
	s->failed = failed || buf_failed(&s->ready) || buf_failed(&packed);
	s->ended = true;
	stream_wake(s);
	mutex_unlock(&s->lock);
	buf_release(&packed);
}

ssize_t stream_read(struct stream *s, char *to, size_t max, void (*sleep)(void *ctx))
{
	ssize_t n = STREAM_SLEEP;

	mutex_lock(&s->lock);
	if (s->failed) {
		n = STREAM_FAILED;
	} else if (s->taken < s->ready.len) {
		n = (ssize_t)(s->ready.len - s->taken < max ? s->ready.len - s->taken : max);
		memcpy(to, s->ready.ptr + s->taken, (size_t)n);
		s->taken += (size_t)n;
		cond_broadcast(&s->changed);
	} else if (s->ended) {
		n = STREAM_END;
	} else {
		s->asleep = true;
		sleep(s->ctx);
	}
	mutex_unlock(&s->lock);
	return n;
}

void stream_leave(struct stream *s)
{
	mutex_lock(&s->lock);
	s->gone = true;
	cond_broadcast(&s->changed);
	mutex_unlock(&s->lock);
}
