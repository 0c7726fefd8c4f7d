#include "cmd/epitool/debuginfo/bundle_body.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static enum err_code bundle_body_add_files(
	struct bundle_body *b, const struct debug_files *files, struct err *err)
{
	struct bundle_writer w;
	uint64_t at = b->pieces[0].bytes;
	enum err_code rc = ERR_OK;
	size_t padding;

	bundle_begin(&w, at);
	for (size_t i = 0; !rc && i < files->n; i++) {
		const struct debug_file *f = &files->v[i];
		uint64_t bytes = (uint64_t)f->stat.st_size;

		if ((rc = bundle_next(&w, f->kind, bytes, &padding, err)))
			break;
		b->pieces[b->pieces_n++] = (struct bundle_body_piece){ f, at + padding, bytes };
		at += padding + bytes;
	}
	if (rc) {
		bundle_release(&w);
		return rc;
	}
	rc = bundle_end(&w, &b->table, err);
	b->pieces[b->pieces_n++] = (struct bundle_body_piece){ NULL, at, b->table.len };
	b->bytes = at + b->table.len;
	return rc;
}

enum err_code bundle_body_open(struct bundle_body *b, const struct native_file *binary,
	const struct debug_files *files, struct err *err)
{
	size_t n = files ? files->n : 0;
	enum err_code rc = ERR_OK;

	*b = (struct bundle_body){ .bytes = binary->bytes.len, .binary_fd = binary->fd, .fd = -1 };
	if (!(b->pieces = calloc(n + 2, sizeof(*b->pieces))))
		return err_nomem(err, "upload");
	b->pieces[b->pieces_n++] = (struct bundle_body_piece){ NULL, 0, binary->bytes.len };
	if (n)
		rc = bundle_body_add_files(b, files, err);
	if (rc)
		bundle_body_close(b);
	return rc;
}

static enum err_code bundle_body_pread(
	int fd, uint64_t at, char *to, size_t n, const char *name, struct err *err)
{
	while (n) {
		ssize_t got = pread(fd, to, n, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(err, errno, "read %s", name);
		if (!got)
			return err_set(err, ERR_IO, "%s has become shorter", name);
		to += got;
		at += (uint64_t)got;
		n -= (size_t)got;
	}
	return ERR_OK;
}

/* Makes fd that of a piece. */
static enum err_code bundle_body_open_file(struct bundle_body *b, size_t i, struct err *err)
{
	const struct debug_file *f = b->pieces[i].file;
	struct stat st;

	if (b->fd >= 0 && b->open == i)
		return ERR_OK;
	if (b->fd >= 0)
		close(b->fd);
	b->open = i;
	if ((b->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) < 0 ||
		fstat(b->fd, &st))
		return err_errno(err, errno, "%s", f->path);
	if (st.st_dev != f->stat.st_dev || st.st_ino != f->stat.st_ino ||
		st.st_size != f->stat.st_size || st.st_mtim.tv_sec != f->stat.st_mtim.tv_sec ||
		st.st_mtim.tv_nsec != f->stat.st_mtim.tv_nsec)
		return err_set(err, ERR_IO, "%s has changed", f->path);
	return ERR_OK;
}

/* Bytes of one piece, from `at` of the piece on. */
static enum err_code bundle_body_read_piece(
	struct bundle_body *b, size_t i, uint64_t at, char *to, size_t n, struct err *err)
{
	const struct bundle_body_piece *p = &b->pieces[i];
	enum err_code rc;

	if (!i)
		return bundle_body_pread(b->binary_fd, at, to, n, "the file", err);
	if (!p->file) {
		memcpy(to, b->table.ptr + at, n);
		return ERR_OK;
	}
	if ((rc = bundle_body_open_file(b, i, err)))
		return rc;
	return bundle_body_pread(b->fd, at, to, n, p->file->path, err);
}

/* The last piece that begins at or before `at`. */
static size_t bundle_body_find(const struct bundle_body *b, uint64_t at)
{
	size_t from = 0, to = b->pieces_n;

	while (to - from > 1) {
		size_t mid = from + (to - from) / 2;

		if (b->pieces[mid].at <= at)
			from = mid;
		else
			to = mid;
	}
	return from;
}

enum err_code bundle_body_read(
	struct bundle_body *b, uint64_t at, char *to, size_t n, struct err *err)
{
	size_t i = bundle_body_find(b, at);
	enum err_code rc;

	for (; n && i < b->pieces_n; i++) {
		const struct bundle_body_piece *p = &b->pieces[i];
		uint64_t end = p->at + p->bytes, next = i + 1 < b->pieces_n ? p[1].at : end;
		size_t part = at < end ? (end - at < n ? (size_t)(end - at) : n) : 0;

		if (part && (rc = bundle_body_read_piece(b, i, at - p->at, to, part, err)))
			return rc;
		to += part;
		at += part;
		n -= part;
		/* The zero bytes before the next piece. */
		part = next - at < n ? (size_t)(next - at) : n;
		memset(to, 0, part);
		to += part;
		at += part;
		n -= part;
	}
	return n ? err_set(err, ERR_IO, "read behind the end") : ERR_OK;
}

void bundle_body_close(struct bundle_body *b)
{
	if (b->fd >= 0)
		close(b->fd);
	free(b->pieces);
	buf_release(&b->table);
	*b = (struct bundle_body){ .fd = -1 };
}
