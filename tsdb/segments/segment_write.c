#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

#include "tsdb/segments/segments_internal.h"

/*
 * Packed files. zstd's level 1: records of symbols become a third, rows, which are packed already,
 * nine tenths; higher levels cost more time than what they save costs to keep for an hour.
 */
#define ZSTD_LEVEL 1
#define FLUSH_BYTES SEGMENT_FRAME_BYTES

struct segment_writer {
	struct fs *fs;
	char *path;
	int fd;
	ZSTD_CCtx *zstd;
	struct segment head;
	struct buf frames; /* not compressed yet */
	struct buf out;
	struct segment_batch batch; /* of a snapshot */
	bool begun;
	uint64_t bytes;
};

static enum err_code segment_writer_deflate(
	struct segment_writer *w, struct str bytes, ZSTD_EndDirective how, struct err *err)
{
	ZSTD_inBuffer in = { bytes.ptr, bytes.len, 0 };
	ZSTD_outBuffer out;
	enum err_code rc;
	size_t left;

	do {
		if (!buf_reserve(&w->out, ZSTD_CStreamOutSize()))
			return err_nomem(err, "segment");
		out = (ZSTD_outBuffer){ w->out.ptr, ZSTD_CStreamOutSize(), 0 };
		left = ZSTD_compressStream2(w->zstd, &out, &in, how);
		if (ZSTD_isError(left))
			return err_set(err, ERR_NOMEM, "segment: zstd: %s", ZSTD_getErrorName(left));
		if (out.pos && (rc = w->fs->ops->write(w->fs, w->fd, w->out.ptr, out.pos, err)))
			return rc;
		w->bytes += out.pos;
	} while (how == ZSTD_e_end ? left != 0 : in.pos < in.size);
	return ERR_OK;
}

static enum err_code segment_writer_begin(struct segment_writer *w, struct err *err)
{
	struct fs *fs = w->fs;
	enum err_code rc;

	if (!(w->zstd = ZSTD_createCCtx()))
		return err_nomem(err, "segment");
	ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	if ((rc = fs->ops->open(
			 fs, w->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644, &w->fd, err))) {
		w->fd = -1;
		return rc;
	}
	segment_encode_head(&w->head, &w->frames);
	if (buf_failed(&w->frames))
		return err_nomem(err, "segment");
	w->bytes = w->frames.len;
	rc = fs->ops->write(fs, w->fd, w->frames.ptr, w->frames.len, err);
	buf_clear(&w->frames);
	return rc;
}

enum err_code segment_writer_open(struct fs *fs, const char *path, const struct segment *s,
	struct segment_writer **out, struct err *err)
{
	struct segment_writer *w = calloc(1, sizeof(*w));
	enum err_code rc;

	if (!w || !(w->path = strdup(path))) {
		free(w);
		return err_nomem(err, "segment");
	}
	w->fs = fs;
	w->fd = -1;
	w->head = *s;
	w->head.packed = true;
	if ((rc = segment_writer_begin(w, err)))
		segment_writer_close(w);
	else
		*out = w;
	return rc;
}

static enum err_code segment_writer_flush(struct segment_writer *w, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (buf_failed(&w->frames))
		return err_nomem(err, "segment");
	if (w->frames.len)
		rc = segment_writer_deflate(w, buf_str(&w->frames), ZSTD_e_continue, err);
	buf_clear(&w->frames);
	return rc;
}

/* All but the frame that is being filled. */
static enum err_code segment_writer_flush_whole(struct segment_writer *w, struct err *err)
{
	struct str whole = { w->frames.ptr, w->batch.at };
	enum err_code rc;

	if (buf_failed(&w->frames))
		return err_nomem(err, "segment");
	rc = segment_writer_deflate(w, whole, ZSTD_e_continue, err);
	memmove(w->frames.ptr, w->frames.ptr + whole.len, w->frames.len - whole.len);
	w->frames.len -= whole.len;
	w->batch.at = 0;
	return rc;
}

enum err_code segment_writer_add(
	struct segment_writer *w, struct str key, struct str record, struct err *err)
{
	if (record.len > SEGMENT_RECORD_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "a record of %zu bytes, limit of segments %u", record.len,
			SEGMENT_RECORD_BYTES_MAX);
	if (!w->begun)
		segment_batch_begin(&w->batch, &w->frames, w->head.first, w->head.last);
	w->begun = true;
	segment_batch_add(&w->batch, key, record);
	return w->batch.at < FLUSH_BYTES ? ERR_OK : segment_writer_flush_whole(w, err);
}

static void segment_writer_release(struct segment_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	ZSTD_freeCCtx(w->zstd);
	buf_release(&w->frames);
	buf_release(&w->out);
	free(w->path);
	free(w);
}

void segment_writer_close(struct segment_writer *w)
{
	if (!w)
		return;
	if (w->fd >= 0)
		(void)!w->fs->ops->unlink(w->fs, w->path, NULL);
	segment_writer_release(w);
}

enum err_code segment_writer_end(struct segment_writer *w, uint64_t *bytes, struct err *err)
{
	enum err_code rc;

	if (w->begun)
		segment_batch_end(&w->batch);
	if ((rc = segment_writer_flush(w, err)) ||
		(rc = segment_writer_deflate(w, (struct str){ 0 }, ZSTD_e_end, err))) {
		segment_writer_close(w);
		return rc;
	}
	*bytes = w->bytes;
	segment_writer_release(w);
	return ERR_OK;
}

static enum err_code segment_writer_copy_frames(
	struct segment_writer *w, struct segment_reader *r, uint64_t last, struct err *err)
{
	struct segment_frame f = { 0 };
	enum err_code rc = ERR_OK;

	while (f.last < last || f.more) {
		if ((rc = segment_reader_next(r, &f, err)))
			return rc == ERR_NOT_FOUND ? ERR_CORRUPT : rc;
		if (f.last > last)
			break;
		if ((rc = segment_writer_deflate(w, f.bytes, ZSTD_e_continue, err)))
			return rc;
	}
	return f.last == last ?
		ERR_OK :
		err_set(err, ERR_CORRUPT, "segment: batch %" PRIu64 " is missing", last);
}

enum err_code segment_pack(struct fs *fs, const char *from, uint64_t last, const char *to,
	struct segment *head, uint64_t *bytes, struct err *err)
{
	struct segment_reader *r = NULL;
	struct segment_writer *w = NULL;
	enum err_code rc;

	if ((rc = segment_reader_open_file(from, &r, err)))
		return err_wrap(err, rc, "pack");
	*head = *segment_reader_head(r);
	head->last = last;
	head->packed = true;
	if (last < head->first)
		rc = err_set(err, ERR_INVALID, "segment %s begins at batch %" PRIu64, from, head->first);
	if (!rc && !(rc = segment_writer_open(fs, to, head, &w, err)) &&
		!(rc = segment_writer_copy_frames(w, r, last, err))) {
		rc = segment_writer_end(w, bytes, err);
		w = NULL;
	}
	segment_writer_close(w);
	segment_reader_close(r);
	return rc ? err_wrap(err, rc, "pack %s", from) : ERR_OK;
}
