#include "tsdb/store/range.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct range_file {
	struct range_reader r;
	int fd;
	char path[];
};

/* pread instead of a mapping: if the file is cut off or the disk fails, one read gets an error
 * instead of the process a signal. */
static enum err_code range_reader_file_read(
	struct range_reader *r, uint64_t offset, size_t n, void *into, struct err *err)
{
	struct range_file *f = (struct range_file *)r;
	size_t done = 0;
	ssize_t got;

	if (offset > r->bytes || n > r->bytes - offset)
		goto ends;
	while (done < n) {
		got = pread(f->fd, (char *)into + done, n - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(err, errno, "%s: read %zu bytes at %" PRIu64, r->name, n, offset);
		if (got == 0)
			goto ends;
		done += (size_t)got;
	}
	return ERR_OK;
ends:
	return err_set(
		err, ERR_CORRUPT, "%s: ends before the %zu bytes at %" PRIu64, r->name, n, offset);
}

static void range_reader_file_close(struct range_reader *r)
{
	struct range_file *f = (struct range_file *)r;

	close(f->fd);
	free(f);
}

/* The kernel begins to read; nobody waits. If it does not, reading takes its time as ever. */
static void range_reader_file_expect(struct range_reader *r, uint64_t offset, uint64_t n)
{
	struct range_file *f = (struct range_file *)r;

	(void)posix_fadvise(f->fd, (off_t)offset, (off_t)n, POSIX_FADV_WILLNEED);
}

static const struct range_ops file_ops = { range_reader_file_read, range_reader_file_close,
	range_reader_file_expect };

enum err_code range_open_file(const char *path, struct range_reader **out, struct err *err)
{
	size_t len = strlen(path) + 1;
	struct range_file *f = malloc(sizeof(*f) + len);
	enum err_code rc;
	struct stat st;

	if (!f)
		return err_nomem(err, path);
	memcpy(f->path, path, len);
	f->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0) {
		rc = err_errno(err, errno, "%s", path);
		free(f);
		return rc;
	}
	if (fstat(f->fd, &st)) {
		rc = err_errno(err, errno, "%s", path);
	} else if (!S_ISREG(st.st_mode)) {
		rc = err_set(err, ERR_IO, "%s: not a regular file", path);
	} else {
		f->r = (struct range_reader){ &file_ops, (uint64_t)st.st_size, f->path };
		*out = &f->r;
		return ERR_OK;
	}
	range_reader_file_close(&f->r);
	return rc;
}

static enum err_code range_source_files_open(
	struct range_source *s, const char *path, struct range_reader **out, struct err *err)
{
	return range_open_file(path, out, err);
}

struct range_source range_files = { .open = range_source_files_open };

enum err_code range_open(
	struct range_source *from, const char *path, struct range_reader **out, struct err *err)
{
	return from ? from->open(from, path, out, err) : range_open_file(path, out, err);
}

enum err_code range_read_all(
	struct range_source *from, const char *path, size_t max, struct buf *out, struct err *err)
{
	struct range_reader *r;
	enum err_code rc;

	if ((rc = range_open(from, path, &r, err)))
		return rc;
	if (r->bytes > max)
		rc = err_set(
			err, ERR_LIMIT, "%s: has %" PRIu64 " bytes, limit %zu", r->name, r->bytes, max);
	else if (!buf_reserve(out, (size_t)r->bytes))
		rc = err_nomem(err, r->name);
	else if (!r->bytes || !(rc = r->ops->read(r, 0, (size_t)r->bytes, out->ptr + out->len, err)))
		out->len += (size_t)r->bytes;
	range_close(r);
	return rc;
}

void range_know(struct range_source *from, const char *path, uint64_t bytes, uint64_t hash)
{
	if (from && from->know)
		from->know(from, path, bytes, hash);
}

void range_forget(struct range_source *from, const char *path)
{
	if (from && from->forget)
		from->forget(from, path);
}

void range_close(struct range_reader *r)
{
	if (r)
		r->ops->close(r);
}

void range_expect(struct range_reader *r, uint64_t offset, uint64_t n)
{
	if (r->ops->expect && n && offset < r->bytes)
		r->ops->expect(r, offset, n < r->bytes - offset ? n : r->bytes - offset);
}
