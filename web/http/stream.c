#include "web/http/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/clock.h"

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
	ZSTD_freeCCtx(s->zstd);
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
		deflateInit2(s->z, CODING_GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL,
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

static enum err_code stream_start_zstd(struct stream *s, struct err *err)
{
	if (!(s->zstd = ZSTD_createCCtx()) ||
		ZSTD_isError(ZSTD_CCtx_setParameter(s->zstd, ZSTD_c_compressionLevel, CODING_ZSTD_LEVEL)))
		return err_nomem(err, "answer");
	return ERR_OK;
}

/* Out of memory it leaves out failed. */
static void stream_zstd_piece(
	struct stream *s, struct str piece, ZSTD_EndDirective end, struct buf *out)
{
	ZSTD_inBuffer in = { piece.ptr, piece.len, 0 };
	ZSTD_outBuffer to;
	size_t left;

	do {
		if (!buf_reserve(out, DEFLATE_ROOM))
			return;
		to = (ZSTD_outBuffer){ out->ptr + out->len, DEFLATE_ROOM, 0 };
		left = ZSTD_compressStream2(s->zstd, &to, &in, end);
		out->len += to.pos;
		if (ZSTD_isError(left)) {
			out->failed = true;
			return;
		}
	} while (end == ZSTD_e_end ? left != 0 : in.pos < in.size);
}

/* last: nothing follows. */
static void stream_pack_piece(struct stream *s, struct str piece, bool last, struct buf *out)
{
	if (s->zstd)
		stream_zstd_piece(s, piece, last ? ZSTD_e_end : ZSTD_e_continue, out);
	else
		stream_deflate_piece(s, piece, last ? Z_FINISH : Z_NO_FLUSH, out);
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

	bool begun = s->z || s->zstd;

	if (!begun && s->raw.len + piece.len <= STREAM_WHOLE_BYTES_MAX) {
		buf_add_str(&s->raw, piece);
		return buf_failed(&s->raw) ? err_nomem(err, "answer") : ERR_OK;
	}
	if (!begun &&
		(rc = s->coding == HTTP_ZSTD ? stream_start_zstd(s, err) : stream_start_gzip(s, err)))
		return rc;
	stream_pack_piece(s, buf_str(&s->raw), false, out);
	buf_release(&s->raw);
	stream_pack_piece(s, piece, false, out);
	return ERR_OK;
}

enum err_code stream_write(struct stream *s, struct str piece, enum http_coding coding,
	const atomic_bool *canceled, struct err *err)
{
	struct buf packed = { 0 };
	enum err_code rc = ERR_OK;

	if (!stream_started(s))
		s->coding = coding;
	if (s->coding != HTTP_PLAIN && (rc = stream_compress_piece(s, piece, &packed, err)))
		return rc;
	mutex_lock(&s->lock);
	assert(!s->ended);
	rc = stream_wait_for_room(s, canceled, err);
	if (!rc) {
		stream_append(s, s->coding != HTTP_PLAIN ? buf_str(&packed) : piece);
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

	if ((s->z || s->zstd) && !failed)
		stream_pack_piece(s, STR(""), true, &packed);
	else if (s->coding != HTTP_PLAIN && !failed)
		failed = coding_add(s->coding, buf_str(&s->raw), &packed, &why) != ERR_OK;
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
