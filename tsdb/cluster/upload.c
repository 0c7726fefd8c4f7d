#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "tsdb/block/block.h"
#include "tsdb/catalog/state.h"
#include "tsdb/cluster/publisher_internal.h"

/*
 * Putting blocks and snapshots. Tables first, meta.json last, each compared with its hash before it
 * is sent: a block that is damaged here never replaces good segments in the bucket. The next round
 * names in the manifest what was put.
 */

/* ---- objects ---- */

/*
 * From now on the object is not removed, until the next round begins. If it is being removed now,
 * this waits for the end of that.
 */
static enum err_code object_reserve(
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

	if ((rc = object_reserve(p, key, bytes.len, err)))
		return rc;
	return bucket_put(p->o.bucket, manifest_key_str(key), bytes, BUCKET_ANY, NULL, NULL, err);
}

static enum err_code object_hash_fd(int fd, struct manifest_file *out, struct err *err)
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

static enum err_code object_open_file(const char *path, int *fd, struct err *err)
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

	if ((rc = object_open_file(path, &fd, err)))
		return rc;
	if ((rc = object_hash_fd(fd, out, err)))
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

	if ((rc = object_open_file(path, &fd, err)))
		return rc;
	if ((rc = object_hash_fd(fd, &is, err))) {
		err_wrap(err, rc, "%s", path);
	} else if (is.bytes != want->bytes || is.hash != want->hash) {
		rc = err_set(err, ERR_CORRUPT, "%s: its size or hash is not the one that is known", path);
	} else if (!(rc = object_reserve(p, key, is.bytes, err))) {
		rc = bucket_put_file(p->o.bucket, manifest_key_str(key), fd, err);
	}
	close(fd);
	return rc;
}

/* ---- blocks ---- */

static struct db_block *cluster_upload_pin(struct db *db, const struct ulid *u)
{
	struct db_block *b = NULL;

	mutex_lock(&db->lock);
	for (size_t i = 0; i < db->blocks_n && !b; i++)
		if (ulid_eq(&block_meta(db->blocks[i]->block)->ulid, u))
			b = db->blocks[i];
	if (b)
		b->pins++;
	mutex_unlock(&db->lock);
	return b;
}

static enum err_code cluster_upload_put_file(struct publisher *p, const struct manifest_block *b,
	enum manifest_block_file which, const char *dir, struct err *err)
{
	struct manifest_key key = manifest_key_block(p->o.shard, b, which);
	enum err_code rc;
	char *path;

	if (!manifest_block_file(b, which)->bytes)
		return ERR_OK;
	if (asprintf(&path, "%s/%s", dir, manifest_block_file_names[which]) < 0)
		return err_nomem(err, "publish");
	rc = object_put_file(p, &key, path, manifest_block_file(b, which), err);
	free(path);
	return rc;
}

/* meta.json is read once: retention may replace it meanwhile. */
static enum err_code cluster_upload_read_meta(
	const struct block_meta *is, const char *dir, struct buf *text, struct err *err)
{
	struct block_meta m;
	struct arena a;
	enum err_code rc;
	char *path;

	arena_init(&a, 0);
	if (!(path = path_join(&a, str_of(dir), STR("meta.json"))))
		rc = err_nomem(err, "publish");
	else if (!(rc = fs_read_file(path, SMALL_FILE_BYTES_MAX, text, err)) &&
		(rc = block_meta_parse(buf_str(text), &a, &m, err)))
		err_wrap(err, rc, "%s", path);
	if (!rc && (!ulid_eq(&m.ulid, &is->ulid) || m.raw != is->raw))
		rc = err_set(err, ERR_UNAVAILABLE, "%s: the block changed since this round began", path);
	arena_release(&a);
	return rc;
}

static struct manifest_file cluster_upload_of_file(const struct block_file *f)
{
	return (struct manifest_file){ f->bytes, f->hash };
}

static enum err_code cluster_upload_put_block(
	struct publisher *p, const struct db_block *b, struct manifest_block *out, struct err *err)
{
	const struct block_meta *m = block_meta(b->block);
	const char *dir = block_dir(b->block);
	struct buf text = { 0 };
	struct manifest_key key;
	enum err_code rc;

	*out = (struct manifest_block){ .ulid = m->ulid,
		.min_ns = m->min_ns,
		.max_ns = m->max_ns,
		.level = m->level,
		.raw = m->raw,
		.rollups = cluster_upload_of_file(&m->rollups_file),
		.spare = cluster_upload_of_file(&m->spare_file) };
	if (m->raw)
		out->rows = cluster_upload_of_file(&m->rows_file);
	if ((rc = cluster_upload_read_meta(m, dir, &text, err)))
		goto out;
	out->meta = (struct manifest_file){ text.len, hash_bytes(text.ptr, text.len, 0) };
	if ((rc = cluster_upload_put_file(p, out, MANIFEST_ROWS, dir, err)) ||
		(rc = cluster_upload_put_file(p, out, MANIFEST_ROLLUPS, dir, err)) ||
		(rc = cluster_upload_put_file(p, out, MANIFEST_SPARE, dir, err)))
		goto out;
	key = manifest_key_block(p->o.shard, out, MANIFEST_META);
	rc = object_put(p, &key, buf_str(&text), err);
out:
	buf_release(&text);
	return rc;
}

static bool cluster_upload_take_wanted(struct publisher *p, struct ulid *out)
{
	bool found;

	mutex_lock(&p->lock);
	if ((found = p->wanted_n > 0 && !p->stopping)) {
		*out = p->wanted[0];
		memmove(p->wanted, p->wanted + 1, --p->wanted_n * sizeof(*p->wanted));
	}
	mutex_unlock(&p->lock);
	return found;
}

static bool cluster_upload_is_ready(struct publisher *p, const struct ulid *u)
{
	bool found;

	mutex_lock(&p->lock);
	found = manifest_find_block(&p->m, u) != NULL;
	for (size_t i = 0; i < p->ready_n; i++)
		found |= ulid_eq(&p->ready[i].b.ulid, u);
	mutex_unlock(&p->lock);
	return found;
}

static enum err_code cluster_upload_note_ready(
	struct publisher *p, const struct manifest_block *b, struct err *err)
{
	enum err_code rc = ERR_OK;

	mutex_lock(&p->lock);
	if (array_room(&p->ready, p->ready_n, 1, &p->ready_cap)) {
		p->ready[p->ready_n++] = (struct ready_block){ *b, false };
		p->counts.uploaded_blocks++;
		p->woken = true;
		cond_broadcast(&p->wake);
	} else {
		rc = err_nomem(err, "publish");
	}
	mutex_unlock(&p->lock);
	return rc;
}

/* A file is damaged or cannot be read: the block is tried again later, and holds up no other. */
static void cluster_upload_note_failed(
	struct publisher *p, const struct ulid *u, const struct err *why)
{
	struct failed_block *f = NULL;

	log_error("cluster", "block cannot be put", LOG_S("block", u->text), LOG_E(why));
	mutex_lock(&p->lock);
	p->counts.failures++;
	for (size_t i = 0; i < p->failed_n && !f; i++)
		if (ulid_eq(&p->failed[i].ulid, u))
			f = &p->failed[i];
	if (!f && array_room(&p->failed, p->failed_n, 1, &p->failed_cap))
		f = &p->failed[p->failed_n++];
	if (f)
		*f = (struct failed_block){ *u, clock_monotonic_ns() + FAILED_AGAIN_NS };
	mutex_unlock(&p->lock);
}

static bool cluster_upload_is_ours(enum err_code rc)
{
	return rc == ERR_CORRUPT || rc == ERR_IO || rc == ERR_NOT_FOUND;
}

static enum err_code upload_blocks(struct publisher *p, struct err *err)
{
	struct manifest_block b;
	struct db_block *pinned;
	enum err_code rc;
	struct ulid u;
	int64_t began;

	while (cluster_upload_take_wanted(p, &u)) { /* the next comparison finds failed ones again */
		if (cluster_upload_is_ready(p, &u) || !(pinned = cluster_upload_pin(p->db, &u)))
			continue;
		began = clock_monotonic_ns();
		rc = cluster_upload_put_block(p, pinned, &b, err);
		blocks_unpin(p->db, pinned);
		if (cluster_upload_is_ours(rc)) {
			cluster_upload_note_failed(p, &u, err);
			continue;
		}
		if (rc || (rc = cluster_upload_note_ready(p, &b, err)))
			return rc;
		log_info("cluster", "block is in the bucket", LOG_S("block", u.text),
			LOG_I("bytes", b.rows.bytes + b.rollups.bytes + b.spare.bytes + b.meta.bytes),
			LOG_D("elapsed", clock_monotonic_ns() - began));
	}
	return ERR_OK;
}

/* ---- snapshots ---- */

static bool cluster_upload_next_snapshot(struct publisher *p, struct snapshot_task *out)
{
	bool found = false;

	mutex_lock(&p->lock);
	for (size_t i = 0; i < p->snapshots_n && !found && !p->stopping; i++)
		if ((found = !p->snapshots[i].segment.last))
			*out = p->snapshots[i];
	mutex_unlock(&p->lock);
	return found;
}

static void cluster_upload_end_snapshot(
	struct publisher *p, const struct snapshot_task *t, bool done)
{
	mutex_lock(&p->lock);
	for (size_t i = 0; i < p->snapshots_n; i++) {
		struct snapshot_task *is = &p->snapshots[i];

		if (is->start_ns != t->start_ns || is->identity != t->identity)
			continue;
		if (done)
			is->segment = t->segment;
		else
			*is = p->snapshots[--p->snapshots_n];
		break;
	}
	p->woken |= done;
	cond_broadcast(&p->wake);
	mutex_unlock(&p->lock);
}

/* A snapshot that fails is wanted again by the next round. */
static enum err_code upload_snapshots(struct publisher *p, struct err *err)
{
	struct snapshot_task t;
	enum err_code rc;

	while (cluster_upload_next_snapshot(p, &t)) {
		struct manifest_window of = { .start_ns = t.start_ns, .identity = t.identity };
		struct manifest_key key;
		uint64_t last, bytes;

		rc = head_ship_snapshot(
			p->db, t.start_ns, t.identity, p->snapshot_path, &last, &bytes, err);
		t.segment.first = 1;
		t.segment.last = last;
		if (!rc && !(rc = objects_file_hash(p->snapshot_path, &t.segment.object, err))) {
			key = manifest_key_segment(p->o.shard, &of, &t.segment);
			rc = object_put_file(p, &key, p->snapshot_path, &t.segment.object, err);
		}
		(void)!unlink(p->snapshot_path);
		cluster_upload_end_snapshot(p, &t, !rc && last);
		if (rc == ERR_NOT_FOUND) /* the window was cut or dropped */
			continue;
		if (rc)
			return rc;
		log_info("cluster", "snapshot of a window is in the bucket",
			LOG_I("start", t.start_ns / NS_PER_S), LOG_I("batches", last), LOG_I("bytes", bytes));
	}
	return ERR_OK;
}

enum err_code upload_all(struct publisher *p, struct err *err)
{
	enum err_code rc;

	if (!p->db)
		return ERR_OK;
	if ((rc = upload_snapshots(p, err)))
		return rc;
	return upload_blocks(p, err);
}
