#include "tsdb/mirror.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"

#define COPY_BYTES_MAX \
	(1u << 30) /* a log is twice the write buffer at most; anything near this is not ours */
#define PREFIX "epimetheus-mirror-"

static enum err_code mirror_file(
	struct arena *a, struct str from_dir, struct str to_dir, struct str name, struct err *err)
{
	char *from = path_join(a, from_dir, name), *to = path_join(a, to_dir, name);
	struct buf content = { 0 };
	enum err_code rc;

	if (!from || !to)
		return arena_fail(a, "mirror", err);
	if (str_has_suffix(name, STR(".ldb")) || str_has_suffix(name, STR(".sst")))
		return symlink(from, to) ? err_errno(err, errno, "link %s", to) : ERR_OK;
	if (str_is(name, "LOCK") || str_has_prefix(name, STR("LOG")))
		return ERR_OK;
	if (!(rc = fs_read_file(from, COPY_BYTES_MAX, &content, err)))
		rc = fs_write_file(&fs_posix, to, buf_str(&content), err);
	buf_release(&content);
	return rc;
}

static enum err_code mirror_store(struct arena *a, struct str from, struct str to, struct err *err)
{
	struct str *names;
	size_t n;
	enum err_code rc;

	if ((rc = fs_posix.ops->mkdir(&fs_posix, to.ptr, err)) ||
		(rc = fs_list(from.ptr, a, &names, &n, err)))
		return rc;
	for (size_t i = 0; i < n; i++)
		/* A running server may have removed it since: LevelDB says so if it was needed. */
		if ((rc = mirror_file(a, from, to, names[i], err)) && rc != ERR_NOT_FOUND)
			return rc;
	return ERR_OK;
}

static enum err_code mirror_all(struct arena *a, char *from, char *to, struct err *err)
{
	struct str *names;
	size_t n;
	enum err_code rc;
	int64_t start;

	if ((rc = fs_list(from, a, &names, &n, err)))
		return rc;
	for (size_t i = 0; i < n; i++) {
		char *store = path_join(a, str_of(from), names[i]),
		     *copy = path_join(a, str_of(to), names[i]);

		if (!store || !copy)
			return arena_fail(a, "mirror", err);
		if (str_to_i64(names[i], &start) &&
			(rc = mirror_store(a, str_of(store), str_of(copy), err)))
			return rc;
	}
	return ERR_OK;
}

enum err_code mirror_open(char **head_dir, struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	char *to = NULL, *from = realpath(*head_dir, NULL);
	struct arena a;
	enum err_code rc;

	if (!from)
		return err_errno(err, errno, "open %s", *head_dir);
	if (asprintf(&to, "%s/" PREFIX "XXXXXX", tmp && *tmp ? tmp : "/tmp") < 0) {
		free(from);
		return err_set(err, ERR_NOMEM, "mirror: out of memory");
	}
	if (!mkdtemp(to)) {
		rc = err_errno(err, errno, "create %s", to);
		free(from);
		free(to);
		return rc;
	}
	arena_init(&a, 0);
	rc = mirror_all(&a, from, to, err);
	arena_release(&a);
	free(from);
	if (rc) {
		mirror_close(to);
		free(to);
		return rc;
	}
	free(*head_dir);
	*head_dir = to;
	return ERR_OK;
}

void mirror_close(const char *head_dir)
{
	struct err err;

	if (strstr(head_dir, "/" PREFIX) && fs_remove_tree(&fs_posix, head_dir, &err))
		log_warn("tsdb", "mirror not removed", LOG_E(&err));
}
