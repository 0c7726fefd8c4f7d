#include "tsdb/store/mirror.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"

#define COPY_BYTES_MAX \
	(1u << 30) /* a log is twice the write buffer at most; anything near this is not ours */
#define PREFIX "epimetheus-mirror-"
#define TRIES 10

static enum err_code mirror_file(
	struct arena *a, struct str from_dir, struct str to_dir, struct str name, struct err *err)
{
	char *from = path_join(a, from_dir, name), *to = path_join(a, to_dir, name);
	struct buf content = { 0 };
	enum err_code rc;
	struct stat st;

	if (!from || !to)
		return arena_fail(a, "mirror", err);
	/* Files that LevelDB's repair moved to `lost` do not count. */
	if (stat(from, &st) == 0 && !S_ISREG(st.st_mode))
		return ERR_OK;
	if (str_has_suffix(name, STR(".ldb")) || str_has_suffix(name, STR(".sst")))
		return symlink(from, to) ? err_errno(err, errno, "link %s", to) : ERR_OK;
	if (str_is(name, "LOCK") || str_has_prefix(name, STR("LOG")))
		return ERR_OK;
	if (!(rc = fs_read_file(from, COPY_BYTES_MAX, &content, err)))
		rc = fs_write_file(&fs_posix, to, buf_str(&content), err);
	buf_release(&content);
	return rc;
}

/* Names of the files that count; a log that grew meanwhile is as a crash would leave it. */
static enum err_code list_store(
	struct arena *a, struct str dir, struct str **names, size_t *n, struct err *err)
{
	enum err_code rc = fs_list(dir.ptr, a, names, n, err);
	size_t kept = 0;

	for (size_t i = 0; !rc && i < *n; i++)
		if (!str_is((*names)[i], "LOCK") && !str_has_prefix((*names)[i], STR("LOG")))
			(*names)[kept++] = (*names)[i];
	*n = rc ? 0 : kept;
	return rc;
}

static bool same_names(const struct str *a, size_t a_n, const struct str *b, size_t b_n)
{
	if (a_n != b_n)
		return false;
	for (size_t i = 0; i < a_n; i++)
		if (!str_eq(a[i], b[i]))
			return false;
	return true;
}

/* A running server may replace tables meanwhile: then it is copied again. If the store never rests
 * the last copy is used, and LevelDB reports missing files. */
static enum err_code mirror_store(struct arena *a, struct str from, struct str to, struct err *err)
{
	struct str *names, *after;
	size_t n, after_n;
	enum err_code rc;

	for (int i = 0; i < TRIES; i++) {
		if ((rc = fs_remove_tree(&fs_posix, to.ptr, err)) ||
			(rc = fs_posix.ops->mkdir(&fs_posix, to.ptr, err)) ||
			(rc = list_store(a, from, &names, &n, err)))
			return rc;
		for (size_t k = 0; k < n; k++)
			if ((rc = mirror_file(a, from, to, names[k], err)) && rc != ERR_NOT_FOUND)
				return rc;
		if ((rc = list_store(a, from, &after, &after_n, err)))
			return rc;
		if (same_names(names, n, after, after_n))
			break;
	}
	return ERR_OK;
}

/* It became a block or was dropped since: the files beside it must not say that it is missing. */
static enum err_code mirror_gone(struct arena *a, const char *to, struct err *err)
{
	static const char *const beside[] = { "", ".acked", ".names" };
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < 3 && !rc; i++) {
		char *path = arena_printf(a, "%s%s", to, beside[i]);

		rc = path ? fs_remove_tree(&fs_posix, path, err) : arena_fail(a, "mirror", err);
	}
	return rc;
}

static bool is_beside(struct str name)
{
	return str_has_suffix(name, STR(".acked")) || str_has_suffix(name, STR(".names"));
}

static enum err_code mirror_all(struct arena *a, char *from, char *to, struct err *err)
{
	struct str *names;
	size_t n;
	enum err_code rc;
	int64_t start;

	if ((rc = fs_list(from, a, &names, &n, err)))
		return rc;
	/* First: a mark that is older than its store claims no more than the store has. */
	for (size_t i = 0; i < n; i++)
		if (is_beside(names[i]) && (rc = mirror_file(a, str_of(from), str_of(to), names[i], err)) &&
			rc != ERR_NOT_FOUND)
			return rc;
	for (size_t i = 0; i < n; i++) {
		char *store = path_join(a, str_of(from), names[i]),
			 *copy = path_join(a, str_of(to), names[i]);

		if (!store || !copy)
			return arena_fail(a, "mirror", err);
		if (!str_to_i64(names[i], &start))
			continue;
		rc = mirror_store(a, str_of(store), str_of(copy), err);
		if (rc == ERR_NOT_FOUND)
			rc = mirror_gone(a, copy, err);
		if (rc)
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
		return err_nomem(err, "mirror");
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
