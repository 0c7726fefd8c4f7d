#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "tsdb/cluster/publisher_internal.h"

/*
 * From here until the end of the round the object is not removed. One that is being removed now is
 * put after that.
 */
static enum err_code objects_reserve(
	struct publisher *p, const struct manifest_key *key, uint64_t bytes, struct err *err)
{
	struct str rest = manifest_key_rest(key, p->o.shard);
	enum err_code rc = ERR_OK;

	mutex_lock(&p->lock);
	p->counts.put_bytes += bytes;
	while (str_is(rest, p->deleting))
		cond_wait(&p->deleted, &p->lock);
	if (array_room(&p->puts, p->puts_n, 1, &p->puts_cap))
		p->puts[p->puts_n++] = *key;
	else
		rc = err_nomem(err, "publish");
	mutex_unlock(&p->lock);
	return rc;
}

enum err_code object_put(
	struct publisher *p, const struct manifest_key *key, struct str bytes, struct err *err)
{
	enum err_code rc;

	if ((rc = objects_reserve(p, key, bytes.len, err)))
		return rc;
	return bucket_put(p->o.bucket, manifest_key_str(key), bytes, BUCKET_ANY, NULL, NULL, err);
}

static enum err_code objects_hash_fd(int fd, struct manifest_file *out, struct err *err)
{
	XXH3_state_t *state = XXH3_createState();
	struct buf piece = { 0 };
	enum err_code rc = ERR_OK;
	ssize_t n;

	out->bytes = 0;
	if (!state || !buf_reserve(&piece, PUT_PIECE_BYTES)) {
		rc = err_nomem(err, "hash");
		goto out;
	}
	XXH3_64bits_reset(state);
	do { /* until the file's end */
		n = pread(fd, piece.ptr, PUT_PIECE_BYTES, (off_t)out->bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			rc = err_errno(err, errno, "read");
			goto out;
		}
		XXH3_64bits_update(state, piece.ptr, (size_t)n);
		out->bytes += (uint64_t)n;
	} while (n);
	out->hash = XXH3_64bits_digest(state);
out:
	XXH3_freeState(state);
	buf_release(&piece);
	return rc;
}

static enum err_code objects_open_file(const char *path, int *fd, struct err *err)
{
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd >= 0)
		return ERR_OK;
	if (errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "%s: not found", path);
	return err_errno(err, errno, "%s", path);
}

enum err_code objects_file_hash(const char *path, struct manifest_file *out, struct err *err)
{
	enum err_code rc;
	int fd;

	if ((rc = objects_open_file(path, &fd, err)))
		return rc;
	if ((rc = objects_hash_fd(fd, out, err)))
		err_wrap(err, rc, "%s", path);
	close(fd);
	return rc;
}

enum err_code object_put_file(struct publisher *p, const struct manifest_key *key, const char *path,
	const struct manifest_file *want, struct err *err)
{
	struct manifest_file is;
	enum err_code rc;
	int fd;

	if ((rc = objects_open_file(path, &fd, err)))
		return rc;
	if ((rc = objects_hash_fd(fd, &is, err))) {
		err_wrap(err, rc, "%s", path);
	} else if (is.bytes != want->bytes || is.hash != want->hash) {
		rc = err_set(err, ERR_CORRUPT, "%s: its size or hash is not the one that is known", path);
	} else if (!(rc = objects_reserve(p, key, is.bytes, err))) {
		rc = bucket_put_file(p->o.bucket, manifest_key_str(key), fd, err);
	}
	close(fd);
	return rc;
}
