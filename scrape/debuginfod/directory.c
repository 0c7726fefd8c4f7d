#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/metrics.h"
#include "scrape/debuginfod/internal.h"

METRIC_COUNTER(files_total, "epimetheus_debug_directories_files_total",
	"Files of debug directories: extracted, refused (another build id too).", "result");

/* ---- files ---- */

/* A sender says the path: it must not lead out of the directory. */
static bool directory_path_is_below(struct str path)
{
	size_t at = 0;

	if (!path.len || path.ptr[0] != '/' || path.ptr[path.len - 1] == '/')
		return false;
	for (size_t i = 0; i <= path.len; i++)
		if (i == path.len || path.ptr[i] == '/') {
			if (i - at == 2 && memcmp(path.ptr + at, "..", 2) == 0)
				return false;
			at = i + 1;
		}
	return true;
}

/* Only a regular file: to open another may wait, or do something to a device. */
static int directory_open_file(const char *path, int flags)
{
	int fd;
	struct stat st;

	if (fstatat(AT_FDCWD, path, &st, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) ||
		!S_ISREG(st.st_mode))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
	if (fd < 0) {
		log_warn("debuginfod", "file of a debug directory cannot be opened", LOG_S("path", path),
			LOG_S("reason", strerror(errno)));
		return -1;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -1;
	}
	return fd;
}

enum found { NO_FILE, REFUSED, EXTRACTED };

static enum found debuginfod_try_file(
	struct debuginfod *d, const struct debuginfo_want *want, struct buf *path, int flags)
{
	struct err err;
	enum err_code rc;
	int fd;

	buf_add_char(path, '\0');
	if (buf_failed(path) || (fd = directory_open_file(path->ptr, flags)) < 0)
		return NO_FILE;
	rc = debuginfo_extract_file(d->o.debuginfo, &want->id, DEBUGINFO_DIRECTORY, fd, &err);
	close(fd);
	metric_add(&files_total, rc ? "refused" : "extracted", 1);
	if (rc)
		log_debug("debuginfod", "file of a debug directory is not taken", LOG_S("path", path->ptr),
			LOG_E(&err));
	return rc ? REFUSED : EXTRACTED;
}

/* DIR/.build-id/ab/cdef.debug may be a link: distributions make them so. */
static enum found debuginfod_try_build_id(
	struct debuginfod *d, struct str dir, const struct debuginfo_want *want)
{
	struct str id = debuginfo_id_text(&want->id);
	struct buf path = { 0 };
	enum found found;

	if (want->id.kind != DEBUGINFO_GNU || id.len < 4)
		return NO_FILE;
	buf_printf(&path, STR_FMT "/.build-id/%.2s/%.*s.debug", STR_ARG(dir), id.ptr, (int)id.len - 2,
		id.ptr + 2);
	found = debuginfod_try_file(d, want, &path, 0);
	buf_release(&path);
	return found;
}

static enum found debuginfod_try_path(
	struct debuginfod *d, struct str dir, const struct debuginfo_want *want, const char *suffix)
{
	struct buf path = { 0 };
	enum found found;

	if (!directory_path_is_below(str_of(want->path)))
		return NO_FILE;
	buf_printf(&path, STR_FMT "%s%s", STR_ARG(dir), want->path, suffix);
	found = debuginfod_try_file(d, want, &path, O_NOFOLLOW);
	buf_release(&path);
	return found;
}

/* Whether the next one is tried. */
static bool directory_goes_on(enum found found, bool *any)
{
	*any |= found != NO_FILE;
	return found != EXTRACTED;
}

/* Files of debug data in all directories come before binaries, which may lack them. */
bool directories_try(
	struct debuginfod *d, const struct debuginfod_config *c, const struct debuginfo_want *want)
{
	const struct str *v = c->directories;
	bool any = false;

	for (size_t i = 0; i < c->directories_n; i++)
		if (!directory_goes_on(debuginfod_try_build_id(d, v[i], want), &any) ||
			!directory_goes_on(debuginfod_try_path(d, v[i], want, ".debug"), &any))
			return any;
	for (size_t i = 0; i < c->directories_n; i++)
		if (!directory_goes_on(debuginfod_try_path(d, v[i], want, ""), &any))
			return any;
	return any;
}
