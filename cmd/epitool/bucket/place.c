#include "cmd/epitool/bucket/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/fs.h"

#define PIECE_BYTES (16u << 20)
#define DEPTH_MAX 32
#define PART ".epitool-part" /* behind the name of a file that is not whole yet */

/* ---- lists ---- */

static enum err_code place_list_add(
	struct place_list *l, struct arena *a, struct str key, uint64_t bytes, struct err *err)
{
	struct place_object o = { .key = str_dup(a, key), .bytes = bytes };

	if (bucket_check_key(key, NULL) || str_has_suffix(key, STR(PART))) {
		l->odd++;
		return ERR_OK;
	}
	if (!o.key.ptr || !arena_array_room(a, &l->v, l->n, 1, &l->cap))
		return arena_fail(a, "list", err);
	l->v[l->n++] = o;
	return ERR_OK;
}

struct place_listing {
	struct place_list *l;
	struct arena *a;
	size_t prefix_len;
};

static enum err_code place_on_object(void *ctx, const struct bucket_object *o, struct err *err)
{
	struct place_listing *x = ctx;
	struct str key = { o->key.ptr + x->prefix_len, o->key.len - x->prefix_len };

	return place_list_add(x->l, x->a, key, o->info.bytes, err);
}

/* below: of the directory, "" or "a/b/". */
static enum err_code place_walk(
	struct place_listing *p, const char *dir, struct str below, unsigned depth, struct err *err)
{
	enum err_code rc;
	struct str *names;
	struct stat st;
	size_t n;

	if (depth > DEPTH_MAX)
		return err_set(err, ERR_LIMIT, "%s: more than %d directories deep", dir, DEPTH_MAX);
	if ((rc = fs_list(dir, p->a, &names, &n, err)))
		return rc;
	for (size_t i = 0; i < n; i++) {
		char *path = arena_printf(p->a, "%s/" STR_FMT, dir, STR_ARG(names[i]));
		char *key = arena_printf(p->a, STR_FMT STR_FMT, STR_ARG(below), STR_ARG(names[i]));

		if (!path || !key)
			return arena_fail(p->a, "list", err);
		if (lstat(path, &st)) {
			if (errno == ENOENT) /* deleted meanwhile */
				continue;
			return err_errno(err, errno, "%s", path);
		}
		if (S_ISDIR(st.st_mode)) {
			if (!(key = arena_printf(p->a, "%s/", key)))
				return arena_fail(p->a, "list", err);
			rc = place_walk(p, path, str_of(key), depth + 1, err);
		} else if (S_ISREG(st.st_mode)) {
			rc = place_list_add(p->l, p->a, str_of(key), (uint64_t)st.st_size, err);
		} else {
			p->l->odd++;
		}
		if (rc)
			return rc;
	}
	return ERR_OK;
}

static int place_by_key(const void *a, const void *b)
{
	const struct place_object *x = a, *y = b;

	return str_cmp(x->key, y->key);
}

enum err_code place_list(
	const struct place *p, struct arena *a, struct place_list *out, struct err *err)
{
	struct place_listing x = { out, a, p->bucket ? strlen(p->path) : 0 };
	enum err_code rc;

	*out = (struct place_list){ 0 };
	if (p->bucket)
		rc = bucket_list(p->bucket, str_of(p->path), STR(""), STR(""), place_on_object, &x, err);
	else
		rc = place_walk(&x, p->path, STR(""), 0, err);
	if (!rc && out->n)
		qsort(out->v, out->n, sizeof(*out->v), place_by_key);
	return rc;
}

/* ---- one object ---- */

/* The key in the bucket, or the path of the file; of malloc. */
static char *place_name_of(const struct place *p, struct str key)
{
	char *name;

	return asprintf(&name, "%s%s" STR_FMT, p->path, p->bucket ? "" : "/", STR_ARG(key)) < 0 ? NULL :
																							  name;
}

static enum err_code place_open_file(const char *path, int *fd, struct err *err)
{
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return *fd < 0 ? err_errno(err, errno, "%s", path) : ERR_OK;
}

static enum err_code place_file_hash(
	const char *path, char out[BUCKET_HASH_LEN + 1], struct err *err)
{
	enum err_code rc;
	int fd;

	if ((rc = place_open_file(path, &fd, err)))
		return rc;
	rc = bucket_file_hash(fd, out, err);
	close(fd);
	return rc ? err_wrap(err, rc, "%s", path) : ERR_OK;
}

enum err_code place_hash(
	const struct place *p, struct str key, char out[BUCKET_HASH_LEN + 1], struct err *err)
{
	char *name = place_name_of(p, key);
	struct bucket_info info;
	enum err_code rc;

	if (!name)
		return err_nomem(err, "copy");
	if (!p->bucket) {
		rc = place_file_hash(name, out, err);
	} else if (!(rc = bucket_head(p->bucket, str_of(name), &info, err))) {
		memcpy(out, info.hash, sizeof(info.hash));
	}
	free(name);
	return rc;
}

/* Piece by piece: the object stays the same one, and its hash is that of what was put. */
static enum err_code objects_place_fetch(struct bucket *b, struct str key, int fd, struct err *err)
{
	char etag[BUCKET_ETAG_BYTES_MAX] = "", hash[BUCKET_HASH_LEN + 1];
	struct bucket_info info;
	struct buf piece = { 0 };
	uint64_t at = 0;
	enum err_code rc;

	if ((rc = bucket_head(b, key, &info, err)))
		return rc;
	memcpy(etag, info.etag, sizeof(etag));
	do {
		buf_clear(&piece);
		rc = info.bytes <= PIECE_BYTES ? bucket_get(b, key, 0, BUCKET_TO_END, &piece, &info, err) :
										 bucket_get(b, key, at, PIECE_BYTES, &piece, &info, err);
		if (!rc && strcmp(info.etag, etag))
			rc = err_set(err, ERR_UNAVAILABLE, STR_FMT ": it has changed meanwhile", STR_ARG(key));
		if (!rc)
			rc = fs_posix.ops->write(&fs_posix, fd, piece.ptr, piece.len, err);
		at += piece.len;
	} while (!rc && at < info.bytes);
	buf_release(&piece);
	if (!rc && info.hash[0] && !(rc = bucket_file_hash(fd, hash, err)) && strcmp(hash, info.hash))
		rc = err_set(
			err, ERR_CORRUPT, STR_FMT ": its SHA-256 is not that of what was put", STR_ARG(key));
	return rc;
}

static enum err_code place_fetch_beside(
	struct bucket *b, struct str key, const char *part, const char *path, struct err *err)
{
	int fd = open(part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
	struct str dir = path_dir(str_of(path));
	enum err_code rc;
	char *name;

	if (fd < 0)
		return err_errno(err, errno, "%s", part);
	if (!(rc = objects_place_fetch(b, key, fd, err)))
		rc = fs_posix.ops->sync(&fs_posix, fd, err);
	close(fd);
	if (!rc)
		rc = fs_posix.ops->rename(&fs_posix, part, path, err);
	if (rc) {
		unlink(part);
		return rc;
	}
	if (!(name = strndup(dir.ptr, dir.len)))
		return err_nomem(err, "copy");
	rc = fs_posix.ops->sync_dir(&fs_posix, name, err);
	free(name);
	return rc;
}

enum err_code place_fetch(struct bucket *b, struct str key, const char *path, struct err *err)
{
	struct str dir = path_dir(str_of(path));
	char *name = strndup(dir.ptr, dir.len), *part = NULL;
	enum err_code rc;

	if (!name || asprintf(&part, "%s%s", path, PART) < 0) {
		free(name);
		return err_nomem(err, "copy");
	}
	if (!(rc = fs_mkdir_all(&fs_posix, name, err)))
		rc = place_fetch_beside(b, key, part, path, err);
	free(name);
	free(part);
	return rc;
}

static enum err_code place_put(struct bucket *b, const char *key, const char *path, struct err *err)
{
	enum err_code rc;
	int fd;

	if ((rc = place_open_file(path, &fd, err)))
		return rc;
	rc = bucket_put_file(b, str_of(key), fd, err);
	close(fd);
	return rc;
}

static enum err_code place_copy_file(const char *source, const char *target, struct err *err)
{
	struct str dir = path_dir(str_of(target));
	char *name = strndup(dir.ptr, dir.len);
	struct buf bytes = { 0 };
	enum err_code rc;

	if (!name)
		return err_nomem(err, "copy");
	if (!(rc = fs_read_file(source, PLACE_FILE_BYTES_MAX, &bytes, err)) &&
		!(rc = fs_mkdir_all(&fs_posix, name, err)))
		rc = fs_write_file(&fs_posix, target, buf_str(&bytes), err);
	buf_release(&bytes);
	free(name);
	return rc;
}

const char *place_temp_dir(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && dir[0] ? dir : "/tmp";
}

/* By a file without a name, so that both ends may be repeated. */
static enum err_code place_copy_object(const struct place *from, const char *source,
	const struct place *to, const char *target, struct err *err)
{
	enum err_code rc;
	char *path;
	int fd;

	if (asprintf(&path, "%s/epitool-XXXXXX", place_temp_dir()) < 0)
		return err_nomem(err, "copy");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0) {
		rc = err_errno(err, errno, "%s", path);
	} else {
		unlink(path);
		if (!(rc = objects_place_fetch(from->bucket, str_of(source), fd, err)))
			rc = bucket_put_file(to->bucket, str_of(target), fd, err);
		close(fd);
	}
	free(path);
	return rc;
}

enum err_code place_copy(
	const struct place *from, const struct place *to, struct str key, struct err *err)
{
	char *source = place_name_of(from, key), *target = place_name_of(to, key);
	enum err_code rc;

	if (!source || !target)
		rc = err_nomem(err, "copy");
	else if (!from->bucket && !to->bucket)
		rc = place_copy_file(source, target, err);
	else if (!from->bucket)
		rc = place_put(to->bucket, target, source, err);
	else if (!to->bucket)
		rc = place_fetch(from->bucket, str_of(source), target, err);
	else
		rc = place_copy_object(from, source, to, target, err);
	free(source);
	free(target);
	return rc;
}
