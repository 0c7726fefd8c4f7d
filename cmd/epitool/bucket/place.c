#include "cmd/epitool/bucket/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"

#define PIECE_BYTES (16u << 20)
#define FILE_PIECE_BYTES (1u << 20)
#define DEPTH_MAX 32

/* ---- lists ---- */

static enum err_code place_list_add(
	struct place_list *l, struct arena *a, struct place_object o, struct err *err)
{
	if (bucket_check_key(o.key, NULL) || str_has_suffix(o.key, STR(PLACE_PART))) {
		l->odd++;
		return ERR_OK;
	}
	o.key = str_dup(a, o.key);
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

	return place_list_add(
		x->l, x->a, (struct place_object){ key, o->info.bytes, o->info.modified_ns, 0 }, err);
}

static struct place_object place_object_of(struct str key, const struct stat *st)
{
	return (struct place_object){ key, (uint64_t)st->st_size,
		(int64_t)st->st_mtim.tv_sec * NS_PER_S + st->st_mtim.tv_nsec, st->st_ino };
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
			rc = place_list_add(p->l, p->a, place_object_of(str_of(key), &st), err);
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

static struct fs *place_fs(const struct place *p)
{
	return p->fs ? p->fs : &fs_posix;
}

static enum err_code place_open_path(const char *path, int *fd, struct err *err)
{
	struct stat st;

	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (*fd < 0)
		return err_errno(err, errno, "%s", path);
	if (!fstat(*fd, &st) && S_ISREG(st.st_mode))
		return ERR_OK;
	close(*fd);
	return err_set(err, ERR_CORRUPT, "%s: it is no regular file", path);
}

enum err_code place_open_file(const struct place *p, struct str key, int *fd, struct err *err)
{
	char *path = place_name_of(p, key);
	enum err_code rc;

	if (!path)
		return err_nomem(err, "open");
	rc = place_open_path(path, fd, err);
	free(path);
	return rc;
}

enum err_code place_hash(
	const struct place *p, struct str key, char out[BUCKET_HASH_LEN + 1], struct err *err)
{
	struct bucket_info info;
	enum err_code rc;
	char *name;
	int fd;

	if (!p->bucket) {
		if ((rc = place_open_file(p, key, &fd, err)))
			return rc;
		rc = bucket_file_hash(fd, out, err);
		close(fd);
		return rc ? err_wrap(err, rc, STR_FMT, STR_ARG(key)) : ERR_OK;
	}
	if (!(name = place_name_of(p, key)))
		return err_nomem(err, "hash");
	if (!(rc = bucket_head(p->bucket, str_of(name), &info, err)))
		memcpy(out, info.hash, sizeof(info.hash));
	free(name);
	return rc;
}

/* Piece by piece: the object stays the same one, and its hash is that of what was put. */
static enum err_code place_fetch_object(
	struct bucket *b, struct str key, struct fs *fs, int fd, struct err *err)
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
			rc = fs->ops->write(fs, fd, piece.ptr, piece.len, err);
		at += piece.len;
	} while (!rc && at < info.bytes);
	buf_release(&piece);
	if (!rc && info.hash[0] && !(rc = bucket_file_hash(fd, hash, err)) && strcmp(hash, info.hash))
		rc = err_set(
			err, ERR_CORRUPT, STR_FMT ": its SHA-256 is not that of what was put", STR_ARG(key));
	return rc;
}

static enum err_code place_fetch_file(int from, struct fs *fs, int to, struct err *err)
{
	struct buf piece = { 0 };
	enum err_code rc = ERR_OK;
	off_t at = 0;
	ssize_t n = 0;

	if (!buf_reserve(&piece, FILE_PIECE_BYTES))
		return err_nomem(err, "copy");
	do {
		n = pread(from, piece.ptr, FILE_PIECE_BYTES, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = err_set(err, ERR_CORRUPT, "it cannot be read: %s", strerrordesc_np(errno));
		else
			rc = fs->ops->write(fs, to, piece.ptr, (size_t)n, err);
		at += n;
	} while (!rc && n);
	buf_release(&piece);
	return rc;
}

/* Where bytes come from: an object, or an open file. */
struct place_source {
	struct bucket *bucket;
	struct str key;
	int fd; /* without a bucket */
};

/* A file is written beside its place under a name that nobody else uses, synced and renamed. */
static enum err_code place_write_beside(const struct place_source *from, struct fs *fs,
	const char *part, const char *path, const char *dir, struct err *err)
{
	enum err_code rc;
	int fd;

	if ((rc = fs->ops->open(fs, part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0666, &fd, err)))
		return rc;
	rc = from->bucket ? place_fetch_object(from->bucket, from->key, fs, fd, err) :
						place_fetch_file(from->fd, fs, fd, err);
	if (!rc)
		rc = fs->ops->sync(fs, fd, err);
	if (close(fd) && !rc)
		rc = err_errno(err, errno, "close %s", part);
	if (!rc)
		rc = fs->ops->rename(fs, part, path, err);
	if (!rc)
		return fs->ops->sync_dir(fs, dir, err);
	(void)!fs->ops->unlink(fs, part, NULL); /* what stays ends in PLACE_PART: it is in no list */
	return rc;
}

static enum err_code place_write_file(
	const struct place_source *from, struct fs *fs, const char *path, struct err *err)
{
	struct str dir = path_dir(str_of(path));
	char *name = strndup(dir.ptr, dir.len), *part = NULL;
	uint64_t random = 0;
	enum err_code rc;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random ^= (uint64_t)clock_monotonic_ns();
	if (!name || asprintf(&part, "%s.%016llx" PLACE_PART, path, (unsigned long long)random) < 0) {
		free(name);
		return err_nomem(err, "copy");
	}
	if (!(rc = fs_mkdir_all(fs, name, err)))
		rc = place_write_beside(from, fs, part, path, name, err);
	free(name);
	free(part);
	return rc;
}

enum err_code place_put(const struct place *p, struct str key, int fd, struct err *err)
{
	char *name = place_name_of(p, key);
	enum err_code rc;

	if (!name)
		return err_nomem(err, "copy");
	rc = p->bucket ? bucket_put_file(p->bucket, str_of(name), fd, err) :
					 place_write_file(&(struct place_source){ .fd = fd }, place_fs(p), name, err);
	free(name);
	return rc;
}

enum err_code place_write(const struct place *p, struct str key, struct str bytes, struct err *err)
{
	char *name = place_name_of(p, key), *dir = NULL;
	enum err_code rc;

	if (!name) {
		rc = err_nomem(err, "write");
	} else if (p->bucket) {
		rc = bucket_put(p->bucket, str_of(name), bytes, BUCKET_ANY, NULL, NULL, err);
	} else if (!(dir = strndup(name, path_dir(str_of(name)).len))) {
		rc = err_nomem(err, "write");
	} else if (!(rc = fs_mkdir_all(place_fs(p), dir, err))) {
		rc = fs_write_file(place_fs(p), name, bytes, err);
	}
	free(dir);
	free(name);
	return rc;
}

enum err_code place_read(
	const struct place *p, struct str key, size_t max, struct buf *out, struct err *err)
{
	char *name = place_name_of(p, key);
	struct bucket_info info;
	enum err_code rc;

	if (!name)
		return err_nomem(err, "read");
	if (!p->bucket)
		rc = fs_read_file(name, max, out, err);
	else if ((rc = bucket_head(p->bucket, str_of(name), &info, err)))
		;
	else if (info.bytes > max)
		rc = err_set(err, ERR_LIMIT, "%s is %llu bytes, limit %zu", name,
			(unsigned long long)info.bytes, max);
	else
		rc = bucket_get(p->bucket, str_of(name), 0, BUCKET_TO_END, out, NULL, err);
	free(name);
	return rc;
}

enum err_code place_remove(const struct place *p, struct str key, struct err *err)
{
	char *name = place_name_of(p, key);
	enum err_code rc;

	if (!name)
		return err_nomem(err, "remove");
	rc = p->bucket ? bucket_delete(p->bucket, str_of(name), err) :
					 place_fs(p)->ops->unlink(place_fs(p), name, err);
	free(name);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

const char *place_temp_dir(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && dir[0] ? dir : "/tmp";
}

/* By a file without a name, so that both ends may be repeated. */
static enum err_code place_copy_object(const struct place *from, const char *source,
	const struct place *to, struct str to_key, struct err *err)
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
		if (!(rc = place_fetch_object(from->bucket, str_of(source), &fs_posix, fd, err)))
			rc = place_put(to, to_key, fd, err);
		close(fd);
	}
	free(path);
	return rc;
}

enum err_code place_copy(const struct place *from, struct str from_key, const struct place *to,
	struct str to_key, struct err *err)
{
	char *source = place_name_of(from, from_key), *target = place_name_of(to, to_key);
	enum err_code rc;
	int fd;

	if (!source || !target) {
		rc = err_nomem(err, "copy");
	} else if (!from->bucket) {
		if (!(rc = place_open_path(source, &fd, err))) {
			rc = place_put(to, to_key, fd, err);
			close(fd);
		}
	} else if (!to->bucket) {
		rc = place_write_file(
			&(struct place_source){ from->bucket, str_of(source), -1 }, place_fs(to), target, err);
	} else {
		rc = place_copy_object(from, source, to, to_key, err);
	}
	free(source);
	free(target);
	return rc;
}
