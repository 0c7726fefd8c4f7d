#include "tsdb/store/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/fs.h"
#include "base/log.h"

#define COPY_BYTES_MAX \
	(1u << 30) /* a log is twice the write buffer at most; anything near this is not ours */
#define TRIES 10

struct mirror {
	char *dir;
	int *fds; /* of tables */
	size_t fds_n, fds_cap, fds_max;
};

/* LevelDB and others need descriptors too. */
static size_t mirror_fds_max(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : (size_t)limit.rlim_cur / 2;
}

/* Links to the open file where the system lets us, else to its name. */
static enum err_code mirror_table(
	struct mirror *m, const char *from, const char *to, struct err *err)
{
	bool held = m->fds_n < m->fds_max;
	int fd = held ? open(from, O_RDONLY | O_CLOEXEC) : -1;
	char path[40];

	if (held && fd < 0 && errno == ENOENT)
		return err_errno(err, errno, "open %s", from);
	if (fd >= 0 && !array_room(&m->fds, m->fds_n, 1, &m->fds_cap)) {
		close(fd);
		return err_nomem(err, "mirror");
	}
	if (fd >= 0) {
		m->fds[m->fds_n++] = fd;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (access(path, R_OK) == 0)
			from = path;
	}
	return symlink(from, to) ? err_errno(err, errno, "link %s", to) : ERR_OK;
}

static void mirror_close_tables(struct mirror *m, size_t from)
{
	while (m->fds_n > from)
		close(m->fds[--m->fds_n]);
}

static enum err_code mirror_file(struct mirror *m, struct arena *a, struct str from_dir,
	struct str to_dir, struct str name, struct err *err)
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
		return mirror_table(m, from, to, err);
	if (str_is(name, "LOCK") || str_has_prefix(name, STR("LOG")))
		return ERR_OK;
	if (!(rc = fs_read_file(from, COPY_BYTES_MAX, &content, err)))
		rc = fs_write_file(&fs_posix, to, buf_str(&content), err);
	buf_release(&content);
	return rc;
}

/* Names of the files that count; a log that grew meanwhile is as a crash would leave it. */
static enum err_code mirror_list_store(
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

static bool mirror_same_names(const struct str *a, size_t a_n, const struct str *b, size_t b_n)
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
static enum err_code mirror_store(
	struct mirror *m, struct arena *a, struct str from, struct str to, struct err *err)
{
	size_t tables = m->fds_n;
	struct str *names, *after;
	size_t n, after_n;
	enum err_code rc;

	for (int i = 0; i < TRIES; i++) {
		mirror_close_tables(m, tables);
		if ((rc = fs_remove_tree(&fs_posix, to.ptr, err)) ||
			(rc = fs_posix.ops->mkdir(&fs_posix, to.ptr, err)) ||
			(rc = mirror_list_store(a, from, &names, &n, err)))
			return rc;
		for (size_t k = 0; k < n; k++)
			if ((rc = mirror_file(m, a, from, to, names[k], err)) && rc != ERR_NOT_FOUND)
				return rc;
		if ((rc = mirror_list_store(a, from, &after, &after_n, err)))
			return rc;
		if (mirror_same_names(names, n, after, after_n))
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

static bool mirror_is_beside(struct str name)
{
	return str_has_suffix(name, STR(".acked")) || str_has_suffix(name, STR(".names"));
}

static enum err_code mirror_all(
	struct mirror *m, struct arena *a, char *from, char *to, struct err *err)
{
	struct str *names;
	size_t n;
	enum err_code rc;
	int64_t start;

	if ((rc = fs_list(from, a, &names, &n, err)))
		return rc;
	/* First: a mark that is older than its store claims no more than the store has. */
	for (size_t i = 0; i < n; i++)
		if (mirror_is_beside(names[i]) &&
			(rc = mirror_file(m, a, str_of(from), str_of(to), names[i], err)) &&
			rc != ERR_NOT_FOUND)
			return rc;
	for (size_t i = 0; i < n; i++) {
		char *store = path_join(a, str_of(from), names[i]),
			 *copy = path_join(a, str_of(to), names[i]);

		if (!store || !copy)
			return arena_fail(a, "mirror", err);
		if (!str_to_i64(names[i], &start) && !str_has_suffix(names[i], STR(".damaged")))
			continue; /* those that were set aside may be taken back: tsdb/head/aside.c */
		rc = mirror_store(m, a, str_of(store), str_of(copy), err);
		if (rc == ERR_NOT_FOUND)
			rc = mirror_gone(a, copy, err);
		if (rc)
			return rc;
	}
	return ERR_OK;
}

static enum err_code mirror_make(struct mirror *m, const char *head_dir, struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	char *from = realpath(head_dir, NULL);
	struct arena a;
	enum err_code rc;

	if (!from)
		return err_errno(err, errno, "open %s", head_dir);
	if (asprintf(&m->dir, "%s/epimetheus-mirror-XXXXXX", tmp && *tmp ? tmp : "/tmp") < 0) {
		m->dir = NULL;
		rc = err_nomem(err, "mirror");
	} else if (!mkdtemp(m->dir)) {
		rc = err_errno(err, errno, "create %s", m->dir);
		free(m->dir);
		m->dir = NULL;
	} else {
		arena_init(&a, 0);
		rc = mirror_all(m, &a, from, m->dir, err);
		arena_release(&a);
	}
	free(from);
	return rc;
}

enum err_code mirror_open(char **head_dir, struct mirror **out, struct err *err)
{
	struct mirror *m = calloc(1, sizeof(*m));
	char *dir = NULL;
	enum err_code rc;

	if (!m)
		return err_nomem(err, "mirror");
	m->fds_max = mirror_fds_max();
	if (!(rc = mirror_make(m, *head_dir, err)) && !(dir = strdup(m->dir)))
		rc = err_nomem(err, "mirror");
	if (rc) {
		mirror_close(m);
		return rc;
	}
	free(*head_dir);
	*head_dir = dir;
	*out = m;
	return ERR_OK;
}

void mirror_close(struct mirror *m)
{
	struct err err;

	if (!m)
		return;
	if (m->dir && fs_remove_tree(&fs_posix, m->dir, &err))
		log_warn("tsdb", "mirror not removed", LOG_E(&err));
	mirror_close_tables(m, 0);
	free(m->fds);
	free(m->dir);
	free(m);
}
