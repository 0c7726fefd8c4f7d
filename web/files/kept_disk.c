/* The directory of kept files: each is whole or not there, whatever the disk or the power does. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "web/files/kept_internal.h"

#define HALF_SUFFIX ".tmp" /* fs_write_file had not renamed it */
#define PATH_BYTES_MAX 4096

static const char *const suffixes[] = { [KEPT_OWN] = ".file", [KEPT_CACHED] = ".cached" };

static enum err_code kept_disk_path(const struct kept *k, const struct kept_entry *e,
	enum kept_copy copy, char path[PATH_BYTES_MAX], struct err *err)
{
	int n = snprintf(path, PATH_BYTES_MAX, "%s/%s%s", k->dir, e->head.file.id, suffixes[copy]);

	return n > 0 && n < PATH_BYTES_MAX ? ERR_OK :
										 err_set(err, ERR_IO, "%s: the path is too long", k->dir);
}

/* ---- loading ---- */

static enum err_code kept_disk_read_head(const char *path, struct kept_head *h, struct err *err)
{
	char first[KEPT_HEAD_BYTES_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	enum err_code rc;
	ssize_t n;

	if (fd < 0)
		return err_errno(err, errno, "%s", path);
	n = fstat(fd, &st) ? -1 : pread(fd, first, sizeof(first), 0);
	if (n < 0)
		rc = err_errno(err, errno, "%s", path);
	else
		rc = kept_head_parse((struct str){ first, (size_t)n }, h, err);
	if (!rc && (uint64_t)st.st_size != h->len + h->file.bytes)
		rc = err_set(err, ERR_CORRUPT, "it has %lld bytes instead of %" PRIu64,
			(long long)st.st_size, h->len + h->file.bytes);
	if (rc)
		h->file = (struct kept_file){ .bytes = n < 0 ? 0 : (uint64_t)st.st_size, .damaged = true };
	close(fd);
	return rc;
}

/* Without a bucket, copies of one are of no use; nor is a damaged copy. */
static enum err_code kept_disk_load_one(
	struct kept *k, struct str id, enum kept_copy copy, struct err *err)
{
	struct kept_entry e = { .copy = copy };
	char path[PATH_BYTES_MAX], text[KEPT_ID_BYTES + 1];
	enum err_code rc;
	struct err why;

	memcpy(text, id.ptr, KEPT_ID_BYTES);
	text[KEPT_ID_BYTES] = '\0';
	memcpy(e.head.file.id, text, sizeof(text));
	if ((rc = kept_disk_path(k, &e, copy, path, err)))
		return rc;
	rc = kept_disk_read_head(path, &e.head, &why);
	memcpy(e.head.file.id, text, sizeof(text));
	if (copy == KEPT_CACHED && (rc || !k->o.bucket)) {
		(void)!k->o.fs->ops->unlink(k->o.fs, path, NULL);
		return ERR_OK;
	}
	if (rc)
		log_warn("files", "a kept file is damaged", LOG_S("path", path), LOG_E(&why));
	/* "cached" is before "file": own ones take the place of copies. */
	if (kept_find(k, id))
		kept_remove(k, kept_find(k, id));
	return kept_add(k, &e, err);
}

static void kept_disk_remove_half(struct kept *k, struct str name)
{
	char path[PATH_BYTES_MAX];
	int n = snprintf(path, sizeof(path), "%s/" STR_FMT, k->dir, STR_ARG(name));

	if (n > 0 && (size_t)n < sizeof(path))
		(void)!k->o.fs->ops->unlink(k->o.fs, path, NULL);
}

enum err_code kept_disk_load(struct kept *k, struct err *err)
{
	struct arena a;
	struct str *names;
	enum err_code rc;
	size_t n;

	if (!fs_exists(k->dir))
		return ERR_OK;
	arena_init(&a, 0);
	rc = fs_list(k->dir, &a, &names, &n, err);
	mutex_lock(&k->lock);
	for (size_t i = 0; i < n && !rc; i++) {
		if (str_has_suffix(names[i], STR(HALF_SUFFIX)))
			kept_disk_remove_half(k, names[i]);
		for (enum kept_copy copy = KEPT_OWN; copy <= KEPT_CACHED; copy++) {
			struct str id = { names[i].ptr, KEPT_ID_BYTES };

			if (names[i].len == KEPT_ID_BYTES + strlen(suffixes[copy]) &&
				str_has_suffix(names[i], str_of(suffixes[copy])) && kept_is_id(id) &&
				k->n < KEPT_FILES_MAX && !rc)
				rc = kept_disk_load_one(k, id, copy, err);
		}
	}
	mutex_unlock(&k->lock);
	arena_release(&a);
	return rc;
}

/* ---- writing ---- */

static enum err_code kept_disk_check_free(const struct kept *k, uint64_t bytes, struct err *err)
{
	uint64_t free_bytes;
	enum err_code rc;

	if (!k->o.free_bytes_min)
		return ERR_OK;
	rc = k->o.fs->ops->free_bytes(k->o.fs, k->dir, &free_bytes, err);
	if (rc || free_bytes >= k->o.free_bytes_min + bytes)
		return rc;
	return err_set(err, ERR_UNAVAILABLE,
		"disk is full: %s free, %s needed above the reserve of %s (--storage.tsdb.free-reserve)",
		str_size_of(free_bytes).text, str_size_of(bytes).text,
		str_size_of(k->o.free_bytes_min).text);
}

enum err_code kept_disk_write(
	struct kept *k, const struct kept_entry *e, struct str whole, struct err *err)
{
	char path[PATH_BYTES_MAX];
	enum err_code rc;

	mutex_assert_held(&k->lock);
	if ((rc = kept_disk_path(k, e, e->copy, path, err)) ||
		(rc = fs_mkdir_all(k->o.fs, k->dir, err)) || (rc = kept_disk_check_free(k, whole.len, err)))
		return rc;
	return fs_write_file(k->o.fs, path, whole, err);
}

enum err_code kept_disk_remove(struct kept *k, struct kept_entry *e, struct err *err)
{
	char path[PATH_BYTES_MAX];
	enum err_code rc;

	mutex_assert_held(&k->lock);
	if (e->copy == KEPT_NOT_HERE)
		return ERR_OK;
	if ((rc = kept_disk_path(k, e, e->copy, path, err)))
		return rc;
	rc = k->o.fs->ops->unlink(k->o.fs, path, err);
	if ((rc && rc != ERR_NOT_FOUND) || (rc = k->o.fs->ops->sync_dir(k->o.fs, k->dir, err)))
		return rc;
	e->copy = KEPT_NOT_HERE;
	return ERR_OK;
}

enum err_code kept_disk_make_cached(struct kept *k, struct kept_entry *e, struct err *err)
{
	char from[PATH_BYTES_MAX], to[PATH_BYTES_MAX];
	enum err_code rc;

	mutex_assert_held(&k->lock);
	if ((rc = kept_disk_path(k, e, KEPT_OWN, from, err)) ||
		(rc = kept_disk_path(k, e, KEPT_CACHED, to, err)) ||
		(rc = k->o.fs->ops->rename(k->o.fs, from, to, err)))
		return rc;
	e->copy = KEPT_CACHED;
	return k->o.fs->ops->sync_dir(k->o.fs, k->dir, err);
}

void kept_disk_make_room(struct kept *k, uint64_t bytes)
{
	uint64_t max = k->o.cache_bytes_max ? k->o.cache_bytes_max : KEPT_CACHE_BYTES_MAX;

	mutex_assert_held(&k->lock);
	for (;;) {
		struct kept_entry *oldest = NULL;
		uint64_t sum = 0;
		struct err err;

		for (size_t i = 0; i < k->n; i++) {
			if (k->v[i].copy != KEPT_CACHED)
				continue;
			sum += k->v[i].head.file.bytes;
			if (!oldest || k->v[i].used < oldest->used)
				oldest = &k->v[i];
		}
		if (!oldest || (bytes <= max && sum <= max - bytes))
			return;
		if (kept_disk_remove(k, oldest, &err)) {
			log_warn("files", "a copy of a kept file stays", LOG_S("id", oldest->head.file.id),
				LOG_E(&err));
			return;
		}
	}
}

/* ---- reading ---- */

enum err_code kept_disk_read(const struct kept *k, const struct kept_entry *e, struct buf *whole,
	struct str *bytes, struct err *err)
{
	char path[PATH_BYTES_MAX];
	enum err_code rc = kept_disk_path(k, e, e->copy, path, err);

	if (rc || (rc = fs_read_file(path, KEPT_FILE_BYTES_MAX + KEPT_HEAD_BYTES_MAX, whole, err)))
		return rc;
	rc = kept_head_verify(&e->head, buf_str(whole), bytes, err);
	return rc == ERR_CORRUPT ? err_wrap(err, rc, "the kept file %s is damaged", path) : rc;
}
