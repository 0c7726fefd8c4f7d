#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "tsdb/block/block.h"
#include "tsdb/catalog/state.h"
#include "tsdb/cluster/publisher_internal.h"
#include "tsdb/segments/segments.h"

/*
 * One round. First objects are put that the next manifest names: small files, segments. Then the
 * manifest is made and written. Only after that is confirmed, local files of segments are removed.
 *
 * A put that fails ends the puts of the round, but not the round: the manifest is written all the
 * same, without what was not put, as it is also the lease.
 */

static void round_fail(struct round *r, enum err_code rc, const struct err *why)
{
	if (r->rc || !rc)
		return;
	r->rc = rc;
	err_copy(&r->err, why);
}

/* ---- small files ---- */

static struct publisher_stamp *round_stamp_of(struct publisher *p, const char *key)
{
	struct publisher_stamp *s;

	for (size_t i = 0; i < p->stamps_n; i++)
		if (strcmp(p->stamps[i].key, key) == 0)
			return &p->stamps[i];
	if (!array_room(&p->stamps, p->stamps_n, 1, &p->stamps_cap))
		return NULL;
	s = &p->stamps[p->stamps_n++];
	*s = (struct publisher_stamp){ .size = UINT64_MAX };
	snprintf(s->key, sizeof(s->key), "%s", key);
	return s;
}

/* True: the file is still the one that was put. *now: its stamp now. */
static bool round_is_as_stamped(
	const struct publisher_stamp *s, const char *path, struct publisher_stamp *now)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return false;
	*now = *s;
	now->inode = st.st_ino;
	now->size = (uint64_t)st.st_size;
	now->changed_ns = st.st_ctim.tv_sec * NS_PER_S + st.st_ctim.tv_nsec;
	now->modified_ns = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
	return now->inode == s->inode && now->size == s->size && now->changed_ns == s->changed_ns &&
		now->modified_ns == s->modified_ns;
}

typedef void (*small_key_fn)(
	const void *ctx, const struct manifest_file *f, struct manifest_key *out);

/*
 * Puts a file that is replaced when it changes; *out: what is put, bytes 0 if there is no file.
 * has: what the manifest names already; NULL: nothing.
 */
static enum err_code round_put_small(struct round *r, const char *name, const char *path,
	small_key_fn key_of, const void *ctx, const struct manifest_file *has,
	struct manifest_file *out, struct err *err)
{
	struct publisher_stamp *s = round_stamp_of(r->p, name), now = { .size = UINT64_MAX };
	struct buf bytes = { 0 };
	struct manifest_key key;
	enum err_code rc;

	*out = (struct manifest_file){ 0 };
	if (!s)
		return err_nomem(err, "publish");
	/* An object that the manifest does not name may have been removed, and is put again. */
	if (round_is_as_stamped(s, path, &now) && has && has->bytes == s->f.bytes &&
		has->hash == s->f.hash) {
		*out = s->f;
		return ERR_OK;
	}
	rc = fs_read_file(path, SMALL_FILE_BYTES_MAX, &bytes, err);
	if (rc == ERR_NOT_FOUND || (!rc && !bytes.len)) {
		rc = ERR_OK;
		goto out;
	}
	if (rc)
		goto out;
	*out = (struct manifest_file){ bytes.len, hash_bytes(bytes.ptr, bytes.len, 0) };
	key_of(ctx, out, &key);
	if ((!has || has->bytes != out->bytes || has->hash != out->hash) &&
		(rc = object_put(r->p, &key, buf_str(&bytes), err))) {
		*out = (struct manifest_file){ 0 };
		goto out;
	}
	now.f = *out;
	if (now.size == bytes.len) /* else it was replaced meanwhile, and is read again next time */
		*s = now;
out:
	buf_release(&bytes);
	return rc;
}

struct round_named {
	struct str shard;
	const char *name;
};

static void round_key_of_name(
	const void *ctx, const struct manifest_file *f, struct manifest_key *out)
{
	const struct round_named *x = ctx;

	*out = manifest_key_small(x->shard, x->name, f);
}

static void round_put_named(
	struct round *r, const char *name, const struct manifest_file *has, struct manifest_file *out)
{
	struct round_named x = { r->p->o.shard, name };
	char *path = path_join(&r->a, str_of(r->p->dir), str_of(name));
	enum err_code rc;
	struct err why;

	if (r->rc)
		return;
	rc = path ? round_put_small(r, name, path, round_key_of_name, &x, has, out, &why) :
				err_nomem(&why, "publish");
	round_fail(r, rc, &why);
}

struct of_block {
	struct str shard;
	struct manifest_block b;
};

static void round_key_of_deleted(
	const void *ctx, const struct manifest_file *f, struct manifest_key *out)
{
	struct of_block x = *(const struct of_block *)ctx;

	x.b.deleted = *f;
	*out = manifest_key_block(x.shard, &x.b, MANIFEST_BLOCK_DELETED);
}

static void round_key_of_meta(
	const void *ctx, const struct manifest_file *f, struct manifest_key *out)
{
	struct of_block x = *(const struct of_block *)ctx;

	x.b.meta = *f;
	x.b.meta_changed = true;
	*out = manifest_key_block(x.shard, &x.b, MANIFEST_META);
}

/* meta.json says that there are no raw rows any more. */
static bool round_says_no_raw(const char *path)
{
	struct buf text = { 0 };
	struct block_meta meta;
	struct arena a;
	bool ok;

	arena_init(&a, 0);
	ok = !fs_read_file(path, SMALL_FILE_BYTES_MAX, &text, NULL) &&
		!block_meta_parse(buf_str(&text), &a, &meta, NULL) && !meta.raw;
	buf_release(&text);
	arena_release(&a);
	return ok;
}

static void round_put_of_block(struct round *r, struct view_block *b)
{
	const struct manifest_block *is = manifest_find_block(&r->p->m, &b->ulid);
	struct of_block x = { r->p->o.shard, { .ulid = b->ulid } };
	enum err_code rc = ERR_OK;
	struct err why;
	char *path, name[64];

	if (b->deleted_n) {
		b->deleted_failed = true;
		path = block_deleted_path(b->dir);
		rc = path ? round_put_small(r, b->ulid.text, path, round_key_of_deleted, &x,
						is ? &is->deleted : NULL, &b->deleted, &why) :
					err_nomem(&why, "publish");
		free(path);
		b->deleted_failed = rc != ERR_OK || !b->deleted.bytes;
		round_fail(r, rc, &why);
	}
	if (rc || !is || !is->raw || b->raw)
		return;
	snprintf(name, sizeof(name), "meta of %s", b->ulid.text);
	if (!(path = path_join(&r->a, str_of(b->dir), STR("meta.json"))))
		rc = err_nomem(&why, "publish");
	else if (round_says_no_raw(path))
		rc = round_put_small(r, name, path, round_key_of_meta, &x, NULL, &b->meta, &why);
	round_fail(r, rc, &why);
}

struct of_window {
	struct str shard;
	struct manifest_window w;
};

static void round_key_of_window_deleted(
	const void *ctx, const struct manifest_file *f, struct manifest_key *out)
{
	struct of_window x = *(const struct of_window *)ctx;

	x.w.deleted = *f;
	*out = manifest_key_window_deleted(x.shard, &x.w);
}

static void round_put_of_window(struct round *r, struct view_window *w)
{
	const struct manifest_window *is = manifest_find_window(&r->p->m, w->start_ns, w->identity);
	struct of_window x = { r->p->o.shard, { .start_ns = w->start_ns, .identity = w->identity } };
	enum err_code rc;
	struct err why;
	char name[64], *path;

	if (!w->deleted_n)
		return;
	snprintf(name, sizeof(name), "%" PRId64 "-%016" PRIx64, w->start_ns, w->identity);
	path = window_deleted_path(r->p->db, w->start_ns);
	rc = path ? round_put_small(r, name, path, round_key_of_window_deleted, &x,
					is ? &is->deleted : NULL, &w->deleted, &why) :
				err_nomem(&why, "publish");
	free(path);
	round_fail(r, rc, &why);
}

static void round_put_small_files(struct round *r)
{
	struct publisher *p = r->p;
	bool named;

	round_put_named(r, "ids", &p->m.ids, &r->ids);
	round_put_named(r, "losses", &p->m.losses, &r->losses);
	for (size_t i = 0; i < r->view.blocks_n && !r->rc; i++) {
		mutex_lock(&p->lock);
		named = block_is_named_locked(p, &r->view.blocks[i].ulid);
		mutex_unlock(&p->lock);
		if (named)
			round_put_of_block(r, &r->view.blocks[i]);
	}
	/* Deleted ranges that were not put count as failed: without them a block is not named. */
	for (size_t i = 0; i < r->view.blocks_n && r->rc; i++)
		r->view.blocks[i].deleted_failed |= r->view.blocks[i].deleted_n &&
			!r->view.blocks[i].deleted.bytes;
	for (size_t i = 0; i < r->view.windows_n && !r->rc; i++)
		round_put_of_window(r, &r->view.windows[i]);
}

/* A round that puts much may last longer than the lease, which is confirmed in between. */
static enum err_code round_keep_lease(struct publisher *p, struct err *err)
{
	int64_t age = lease_age_ns(p->lease), limit = lease_ns(p->lease);

	if (age <= p->o.interval_ns || age <= limit - limit / 3)
		return ERR_OK;
	return lease_write(p->lease, &p->m, err);
}

/* ---- segments ---- */

static struct snapshot_task *round_find_snapshot(
	struct publisher *p, int64_t start_ns, uint64_t identity)
{
	for (size_t i = 0; i < p->snapshots_n; i++)
		if (p->snapshots[i].start_ns == start_ns && p->snapshots[i].identity == identity)
			return &p->snapshots[i];
	return NULL;
}

static void round_want_snapshot(struct publisher *p, const struct head_ship_window *w)
{
	mutex_lock(&p->lock);
	if (!round_find_snapshot(p, w->start_ns, w->identity) &&
		array_room(&p->snapshots, p->snapshots_n, 1, &p->snapshots_cap))
		p->snapshots[p->snapshots_n++] = (struct snapshot_task){
			.start_ns = w->start_ns, .end_ns = w->end_ns, .identity = w->identity
		};
	p->work_due = true;
	cond_broadcast(&p->work);
	mutex_unlock(&p->lock);
}

/* The last batch that is put. pending: a snapshot is on its way. */
static uint64_t round_last_put(
	struct publisher *p, const struct head_ship_window *w, bool *pending, uint32_t *segments_n)
{
	const struct manifest_window *is;
	const struct snapshot_task *t;
	uint64_t last = 0;

	mutex_lock(&p->lock);
	is = manifest_find_window(&p->m, w->start_ns, w->identity);
	*segments_n = is ? is->segments_n : 0;
	if (*segments_n && !is->diverged)
		last = is->segments[is->segments_n - 1].last;
	t = round_find_snapshot(p, w->start_ns, w->identity);
	*pending = t && !t->taken;
	if (t && t->taken && t->segment.last > last)
		last = t->segment.last;
	mutex_unlock(&p->lock);
	return last;
}

static enum err_code round_put_file(struct round *r, const struct head_ship_window *w,
	const struct head_ship_file *f, struct err *err)
{
	struct publisher *p = r->p;
	struct manifest_window of = { .start_ns = w->start_ns, .identity = w->identity };
	struct round_segment s = { w->start_ns, w->end_ns, w->identity, { f->first, f->last, { 0 } } };
	struct manifest_key key;
	struct segment head;
	enum err_code rc;
	uint64_t bytes;

	if (!arena_array_room(&r->a, &r->segments, r->segments_n, 1, &r->segments_cap))
		return arena_fail(&r->a, "publish", err);
	if ((rc = round_keep_lease(p, err)) ||
		(rc = segment_pack(p->o.fs, f->path, f->last, p->tmp_path, &head, &bytes, err)))
		return rc;
	if (head.start_ns != w->start_ns || head.identity != w->identity || head.first != f->first) {
		rc = err_set(err, ERR_CORRUPT, "%s: it is of another window or batch", f->path);
	} else if (!(rc = objects_file_hash(p->tmp_path, &s.s.object, err))) {
		key = manifest_key_segment(p->o.shard, &of, &s.s);
		rc = object_put_file(p, &key, p->tmp_path, &s.s.object, err);
	}
	(void)!unlink(p->tmp_path);
	if (!rc)
		r->segments[r->segments_n++] = s;
	return rc;
}

static void round_put_window(struct round *r, const struct head_ship_window *w)
{
	uint32_t segments_n;
	bool pending, put = true;
	uint64_t last = round_last_put(r->p, w, &pending, &segments_n);
	enum err_code rc = ERR_OK;
	struct err why;

	if (!last && w->end_ns <= r->p->m.dropped_ns)
		return;

	/* The window is gone here: its segments are needed only while its block is not named. */
	if (!w->in_head && !view_find_window(&r->view, w->start_ns, w->identity)) {
		const struct view_block *by = view_cover_of_window(&r->view, w->start_ns);

		mutex_lock(&r->p->lock);
		put = by && !block_is_named_locked(r->p, &by->ulid);
		mutex_unlock(&r->p->lock);
	}
	if (!put || pending)
		return;
	if (w->snapshot_wanted) {
		round_want_snapshot(r->p, w);
		return;
	}
	for (size_t i = 0; i < w->files_n && !r->rc; i++) {
		const struct head_ship_file *f = &w->files[i];

		if (f->last <= last)
			continue;
		if (f->first != last + 1 || segments_n + 1 >= MANIFEST_SEGMENTS_MAX) {
			if (w->in_head)
				round_want_snapshot(r->p, w);
			return;
		}
		rc = round_put_file(r, w, f, &why);
		if (rc == ERR_CORRUPT && w->in_head) {
			log_warn("cluster", "segment is damaged, a snapshot takes its place", LOG_E(&why));
			round_want_snapshot(r->p, w);
			return;
		}
		round_fail(r, rc, &why);
		last = f->last;
		segments_n++;
	}
}

/*
 * The manifest names a window that was a block already when we started, and that block is not put
 * yet. Series that only this window had get new ids now, and nobody could read it together with
 * segments that use those. So segments wait until the block is put.
 */
static bool round_must_wait(struct round *r)
{
	struct publisher *p = r->p;
	bool wait = false;

	mutex_lock(&p->lock);
	for (size_t i = 0; i < p->unknown_n && !wait; i++)
		wait = manifest_find_window(&p->m, p->unknown[i].start_ns, p->unknown[i].identity) &&
			view_cover_of_window(&r->view, p->unknown[i].start_ns);
	if (!wait)
		p->unknown_n = 0;
	mutex_unlock(&p->lock);
	return wait;
}

static void round_put_segments(struct round *r)
{
	enum err_code rc;
	struct err why;

	if (!r->p->db->o.segments)
		return;
	if ((rc = head_ship_end(r->p->db, &r->a, &r->ship, &r->ship_n, &r->through_ns, &why))) {
		r->through_ns = 0;
		r->ship_n = 0;
		round_fail(r, rc, &why);
		return;
	}
	if (round_must_wait(r)) {
		r->through_ns = 0;
		return;
	}
	for (size_t i = 0; i < r->ship_n && !r->rc; i++)
		round_put_window(r, &r->ship[i]);
}

/* ---- the round ---- */

static void round_begin(struct publisher *p)
{
	mutex_lock(&p->lock);
	p->puts_n = 0;
	for (size_t i = 0; i < p->ready_n; i++)
		p->ready[i].taken = true;
	for (size_t i = 0; i < p->snapshots_n; i++)
		p->snapshots[i].taken = p->snapshots[i].segment.last > 0;
	mutex_unlock(&p->lock);
}

static bool round_has_failed(const struct publisher *p, const struct ulid *u, int64_t now)
{
	for (size_t i = 0; i < p->failed_n; i++)
		if (ulid_eq(&p->failed[i].ulid, u))
			return now < p->failed[i].again_ns;
	return false;
}

/* Blocks that are to be put. p->lock is held. */
static void round_find_wanted(struct round *r)
{
	struct publisher *p = r->p;
	struct ulid *v = reallocarray(p->wanted, r->view.blocks_n + 1, sizeof(*v));
	int64_t now = clock_monotonic_ns();
	bool ready;

	if (!v)
		return;
	p->wanted = v;
	p->wanted_n = 0;
	p->wanted_bytes = 0;
	for (size_t i = 0; i < r->view.blocks_n; i++) {
		const struct view_block *b = &r->view.blocks[i];

		ready = false;
		for (size_t k = 0; k < p->ready_n; k++)
			ready |= ulid_eq(&p->ready[k].b.ulid, &b->ulid);
		if (b->remote || ready || manifest_find_block(&p->m, &b->ulid) ||
			b->max_ns <= p->m.dropped_ns)
			continue;
		p->wanted_bytes += b->bytes;
		if (!round_has_failed(p, &b->ulid, now))
			p->wanted[p->wanted_n++] = b->ulid;
	}
}

static enum err_code round_compare(struct round *r, struct err *err)
{
	struct publisher *p = r->p;
	enum err_code rc;

	mutex_lock(&p->lock);
	if (!(rc = compare_locked(r, err))) {
		r->complete = !r->rc && round_is_complete_locked(r);
		if (r->complete && r->through_ns > p->m.through_ns)
			p->m.through_ns = r->through_ns;
		round_find_wanted(r);
	}
	mutex_unlock(&p->lock);
	return rc;
}

/* The manifest's write was confirmed. p->lock is held. */
static void round_confirm_locked(struct publisher *p)
{
	struct ulid *v = reallocarray(p->there, p->m.blocks_n + 1u, sizeof(*v));
	int64_t now = clock_monotonic_ns();

	for (uint32_t i = 0; i < p->m.gone_n; i++)
		if (!p->gone_at[i])
			p->gone_at[i] = now;
	p->confirmed_through_ns = p->m.through_ns;
	p->work_due = true;
	cond_broadcast(&p->work);
	if (!v)
		return; /* out of memory: the older list stays */
	p->there = v;
	p->there_n = p->m.blocks_n;
	for (uint32_t i = 0; i < p->m.blocks_n; i++)
		v[i] = p->m.blocks[i].ulid;
	if (p->there_n)
		qsort(v, p->there_n, sizeof(*v), ulid_cmp);
}

/* Removes files of segments that nobody needs any more. */
static void round_release_files(struct round *r)
{
	struct publisher *p = r->p;

	for (size_t i = 0; i < r->ship_n; i++) {
		const struct head_ship_window *w = &r->ship[i];
		const struct manifest_window *is;
		uint64_t last = 0;
		bool over;

		mutex_lock(&p->lock);
		is = manifest_find_window(&p->m, w->start_ns, w->identity);
		if (is && is->segments_n && !is->diverged)
			last = is->segments[is->segments_n - 1].last;
		over = ship_is_over_locked(r, w);
		mutex_unlock(&p->lock);
		if (over)
			head_ship_forget(p->db, w->start_ns, w->identity);
		else if (last)
			head_ship_done(p->db, w->start_ns, w->identity, last);
	}
}

static enum err_code cluster_round_run(struct round *r, struct err *err)
{
	struct publisher *p = r->p;
	struct manifest m;
	enum err_code rc;
	struct err why;

	if (p->db) {
		if ((rc = view_take(p->db, &r->a, &r->view, err)))
			return rc;
		round_begin(p);
		rc = round_keep_lease(p, &why);
		round_fail(r, rc, &why);
		round_put_small_files(r);
		round_put_segments(r);
		if ((rc = round_compare(r, err)))
			return rc;
	}
	m = p->m;
	m.stopped = r->stop && !r->rc;
	m.complete |= m.stopped && r->complete;
	if ((rc = lease_write(p->lease, &m, err)))
		return rc;
	mutex_lock(&p->lock);
	round_confirm_locked(p);
	p->counts.uploaded_segments += r->segments_n;
	mutex_unlock(&p->lock);
	if (p->db)
		round_release_files(r);
	return r->rc ? err_copy(err, &r->err) : ERR_OK;
}

enum err_code round_run(struct publisher *p, bool stop, struct err *err)
{
	struct round r = { .p = p, .stop = stop };
	enum err_code rc;

	mutex_lock(&p->round_lock);
	arena_init(&r.a, 0);
	rc = cluster_round_run(&r, err);
	arena_release(&r.a);
	mutex_unlock(&p->round_lock);
	return rc;
}
