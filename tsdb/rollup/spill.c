#include "tsdb/rollup/spill.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void spill_init(struct spill *s, struct fs *fs, const char *path)
{
	*s = (struct spill){ .fs = fs, .path = path, .fd = -1 };
}

void spill_release(struct spill *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->written = 0;
	buf_release(&s->memory);
}

enum err_code spill_clear(struct spill *s, struct err *err)
{
	buf_clear(&s->memory);
	s->written = 0;
	if (s->fd >= 0 && (ftruncate(s->fd, 0) || lseek(s->fd, 0, SEEK_SET) < 0))
		return err_errno(err, errno, "truncate %s", s->path);
	return ERR_OK;
}

uint64_t spill_bytes(const struct spill *s)
{
	return s->written + s->memory.len;
}

static enum err_code spill_write_out(struct spill *s, struct err *err)
{
	enum err_code rc;

	if (s->fd < 0) {
		if ((rc = s->fs->ops->open(
				 s->fs, s->path, O_RDWR | O_CREAT | O_TRUNC, 0600, &s->fd, err))) {
			s->fd = -1;
			return rc;
		}
		if ((rc = s->fs->ops->unlink(s->fs, s->path, err)))
			return rc;
	}
	if ((rc = s->fs->ops->write(s->fs, s->fd, s->memory.ptr, s->memory.len, err)))
		return err_wrap(err, rc, "%s", s->path);
	s->written += s->memory.len;
	buf_clear(&s->memory);
	return ERR_OK;
}

enum err_code spill_add(struct spill *s, struct str bytes, struct err *err)
{
	enum err_code rc;

	if (s->memory.len + bytes.len > SPILL_MEMORY_BYTES && s->memory.len &&
		(rc = spill_write_out(s, err)))
		return rc;
	buf_add_str(&s->memory, bytes);
	return buf_failed(&s->memory) ? err_nomem(err, "spill") : ERR_OK;
}

enum err_code spill_read(struct spill *s, uint64_t at, size_t n, struct buf *out, struct err *err)
{
	ssize_t got;

	assert(at + n <= spill_bytes(s));
	assert(at >= s->written || at + n <= s->written); /* no record is in both */
	buf_clear(out);
	if (!buf_reserve(out, n + 1))
		return err_nomem(err, "spill");
	if (at >= s->written) {
		buf_add(out, s->memory.ptr + (at - s->written), n);
		return ERR_OK;
	}
	while (out->len < n) {
		got = pread(s->fd, out->ptr + out->len, n - out->len, (off_t)(at + out->len));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return err_errno(err, got < 0 ? errno : EIO, "read %s", s->path);
		out->len += (size_t)got;
	}
	return ERR_OK;
}
