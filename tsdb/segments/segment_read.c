#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

#include "tsdb/segments/segments_internal.h"

/*
 * Reads frames out of bytes or a file, inflated on the way. Memory is bounded by the largest frame:
 * what was inflated and not used yet is kept in one buffer, and grows only by bytes that are there.
 */
#define READ_BYTES (256u << 10)
#define WINDOW_LOG_MAX 23

struct segment_reader {
	struct segment head;
	int fd; /* -1: bytes */
	struct buf file; /* piece of the file */
	struct str in; /* not inflated yet */
	bool in_ended, ended;
	ZSTD_DCtx *zstd; /* NULL: not packed */
	size_t left; /* what zstd still expects: 0 at the end of its frame */
	struct buf out; /* frames */
	size_t at; /* in `out`: used so far */
	uint64_t offset; /* of out.ptr[at], behind the head, inflated */
	uint64_t first, last; /* of the frame before; 0: none */
	bool more;
	const char *name; /* for messages */
	char *path;
};

static enum err_code segment_reader_corrupt(
	const struct segment_reader *r, const char *why, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "segment %s: byte %" PRIu64 ": %s", r->name, r->offset, why);
}

/* The next piece of the input into r->in. */
static enum err_code segment_reader_refill(struct segment_reader *r, struct err *err)
{
	ssize_t n;

	if (r->in.len || r->in_ended)
		return ERR_OK;
	if (r->fd < 0) {
		r->in_ended = true;
		return ERR_OK;
	}
	buf_clear(&r->file);
	if (!buf_reserve(&r->file, READ_BYTES))
		return err_nomem(err, "segment");
	while ((n = read(r->fd, r->file.ptr, READ_BYTES)) < 0 && errno == EINTR)
		;
	if (n < 0)
		return err_errno(err, errno, "read %s", r->name);
	r->in = (struct str){ r->file.ptr, (size_t)n };
	r->in_ended = n == 0;
	return ERR_OK;
}

static void segment_reader_take_plain(struct segment_reader *r)
{
	size_t n = r->in.len < READ_BYTES ? r->in.len : READ_BYTES;

	buf_add(&r->out, r->in.ptr, n);
	r->in.ptr += n;
	r->in.len -= n;
	r->ended = r->in_ended && !r->in.len;
}

static enum err_code segment_reader_inflate(struct segment_reader *r, struct err *err)
{
	ZSTD_inBuffer in = { r->in.ptr, r->in.len, 0 };
	ZSTD_outBuffer out;
	size_t left;

	if (!buf_reserve(&r->out, READ_BYTES))
		return err_nomem(err, "segment");
	out = (ZSTD_outBuffer){ r->out.ptr + r->out.len, READ_BYTES, 0 };
	left = ZSTD_decompressStream(r->zstd, &out, &in);
	if (ZSTD_isError(left))
		return segment_reader_corrupt(r, ZSTD_getErrorName(left), err);
	r->out.len += out.pos;
	r->in.ptr += in.pos;
	r->in.len -= in.pos;
	r->left = left;
	if (r->in_ended && !r->in.len && !out.pos && left)
		return segment_reader_corrupt(r, "it is cut short", err);
	return ERR_OK;
}

/* Has at least n bytes behind r->at, or all there are. */
static enum err_code segment_reader_want(struct segment_reader *r, size_t n, struct err *err)
{
	enum err_code rc;

	if (r->out.len - r->at >= n)
		return ERR_OK;
	if (r->at) {
		memmove(r->out.ptr, r->out.ptr + r->at, r->out.len - r->at);
		r->out.len -= r->at;
		r->at = 0;
	}
	while (r->out.len < n && !r->ended) {
		if ((rc = segment_reader_refill(r, err)))
			return rc;
		if (!r->zstd) {
			segment_reader_take_plain(r);
		} else if (!r->left) { /* all of it is one compressed frame */
			if (r->in.len)
				return segment_reader_corrupt(r, "bytes behind its end", err);
			r->ended = r->in_ended;
		} else if ((rc = segment_reader_inflate(r, err))) {
			return rc;
		}
		if (buf_failed(&r->out))
			return err_nomem(err, "segment");
	}
	return ERR_OK;
}

/* ---- frames ---- */

static bool segment_read_records_are_whole(struct str records)
{
	struct str key, record;

	while (segment_record_next(&records, &key, &record))
		;
	return !records.len;
}

/* It goes on with the batch of the frame before, or has the next one. */
static bool segment_reader_follows(const struct segment_reader *r, const struct segment_frame *f)
{
	if (!f->first || f->first > f->last || (r->head.last && f->last > r->head.last))
		return false;
	if (r->more)
		return f->first == r->first && f->last == r->last;
	return f->first == (r->last ? r->last + 1 : r->head.first);
}

static enum err_code segment_reader_at_end(const struct segment_reader *r, struct err *err)
{
	if (r->out.len > r->at)
		return segment_reader_corrupt(r, "half of a frame", err);
	if (r->more || (r->head.packed && r->last != r->head.last))
		return segment_reader_corrupt(r, "its last batches are missing", err);
	return err_set(err, ERR_NOT_FOUND, "segment %s: no more frames", r->name);
}

enum err_code segment_reader_next(
	struct segment_reader *r, struct segment_frame *out, struct err *err)
{
	struct segment_frame f = { 0 };
	struct cursor in;
	uint32_t n, crc;
	enum err_code rc;

	if ((rc = segment_reader_want(r, FRAME_HEAD_BYTES, err)))
		return rc;
	if (r->out.len - r->at < FRAME_HEAD_BYTES)
		return segment_reader_at_end(r, err);
	in = cursor_of((struct str){ r->out.ptr + r->at, FRAME_HEAD_BYTES });
	n = cursor_u32be(&in);
	f.more = *in.at & FRAME_MORE;
	if (*in.at++ & ~FRAME_MORE || n > SEGMENT_FRAME_BYTES_MAX)
		return segment_reader_corrupt(r, "no frame", err);
	f.first = cursor_u64be(&in);
	f.last = cursor_u64be(&in);
	crc = cursor_u32be(&in);
	if ((rc = segment_reader_want(r, FRAME_HEAD_BYTES + (size_t)n, err)))
		return rc;
	f.bytes = (struct str){ r->out.ptr + r->at, FRAME_HEAD_BYTES + (size_t)n };
	if (r->out.len - r->at < f.bytes.len)
		return segment_reader_at_end(r, err);
	f.records = (struct str){ f.bytes.ptr + FRAME_HEAD_BYTES, n };
	if (crc != segment_frame_crc(f.bytes.ptr, f.bytes.len))
		return segment_reader_corrupt(r, "a frame's checksum is wrong", err);
	if (!segment_reader_follows(r, &f))
		return segment_reader_corrupt(r, "a frame of other batches", err);
	if (!segment_read_records_are_whole(f.records))
		return segment_reader_corrupt(r, "a frame's records cannot be read", err);
	r->first = f.first;
	r->last = f.last;
	r->more = f.more;
	r->at += f.bytes.len;
	r->offset += f.bytes.len;
	*out = f;
	return ERR_OK;
}

/* ---- opening ---- */

static enum err_code segment_reader_begin(struct segment_reader *r, struct err *err)
{
	enum err_code rc;

	if ((rc = segment_reader_want(r, SEGMENT_HEAD_BYTES, err)) ||
		(rc = segment_parse_head(buf_str(&r->out), &r->head, err)))
		return rc;
	r->at = SEGMENT_HEAD_BYTES;
	if (!r->head.packed)
		return ERR_OK;
	if (!(r->zstd = ZSTD_createDCtx()))
		return err_nomem(err, "segment");
	ZSTD_DCtx_setParameter(r->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	/* What was read behind the head is to be inflated. */
	r->in.ptr -= r->out.len - r->at;
	r->in.len += r->out.len - r->at;
	r->out.len = r->at;
	r->left = 1;
	r->ended = false;
	return ERR_OK;
}

static enum err_code segment_read_open_reader(
	struct segment_reader *r, struct segment_reader **out, struct err *err)
{
	enum err_code rc = segment_reader_begin(r, err);

	if (rc)
		segment_reader_close(r);
	else
		*out = r;
	return rc;
}

enum err_code segment_reader_open(struct str bytes, struct segment_reader **out, struct err *err)
{
	struct segment_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return err_nomem(err, "segment");
	r->fd = -1;
	r->in = bytes;
	r->name = "in memory";
	return segment_read_open_reader(r, out, err);
}

enum err_code segment_reader_open_file(
	const char *path, struct segment_reader **out, struct err *err)
{
	struct segment_reader *r = calloc(1, sizeof(*r));
	enum err_code rc;

	if (!r || !(r->path = strdup(path))) {
		free(r);
		return err_nomem(err, "segment");
	}
	r->name = r->path;
	if ((r->fd = open(path, O_RDONLY | O_CLOEXEC)) < 0) {
		rc = err_errno(err, errno, "open %s", path);
		segment_reader_close(r);
		return rc;
	}
	return segment_read_open_reader(r, out, err);
}

void segment_reader_close(struct segment_reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	ZSTD_freeDCtx(r->zstd);
	buf_release(&r->file);
	buf_release(&r->out);
	free(r->path);
	free(r);
}

const struct segment *segment_reader_head(const struct segment_reader *r)
{
	return &r->head;
}

enum err_code segment_find_whole(
	const char *path, uint64_t last_max, struct segment_whole *out, struct err *err)
{
	struct segment_reader *r;
	struct segment_frame f;
	enum err_code rc;

	if ((rc = segment_reader_open_file(path, &r, err)))
		return rc;
	*out = (struct segment_whole){ .head = r->head, .bytes = SEGMENT_HEAD_BYTES };
	if (r->head.packed)
		rc = err_set(err, ERR_CORRUPT, "segment %s: packed", path);
	while (!rc && !(rc = segment_reader_next(r, &f, err)))
		if (!f.more && f.last <= last_max) {
			out->last = f.last;
			out->bytes = SEGMENT_HEAD_BYTES + r->offset;
		}
	if (rc == ERR_NOT_FOUND || (rc == ERR_CORRUPT && !r->head.packed))
		rc = ERR_OK;
	segment_reader_close(r);
	return rc;
}
