#include "tsdb/head/ship.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/head/ship_internal.h"
#include "tsdb/segments/segments.h"

/*
 * Files of segments. A batch is written to its file before it is written to the store: so after
 * kill -9 a file has every batch that the store has, and one more at most (ship_open.c cuts it
 * off). The other way round a kill during a sync, which is where most of the time goes, would leave
 * a batch in the store alone, and cost a snapshot.
 *
 * If the store's write fails nobody knows whether it has the batch, so the file's last batch is
 * doubtful and the file is not ended. The next batch's number tells.
 */
METRIC_COUNTER(segment_gaps, "epimetheus_tsdb_segment_gaps_total",
	"Times that batches of a window were dropped before the upload, so that a snapshot is needed.",
	"reason");
METRIC_GAUGE(segment_bytes, "epimetheus_tsdb_segment_bytes",
	"Bytes of batches that wait to be put into the bucket.", NULL);

struct ship_window *ship_find(struct ship *s, int64_t start_ns, uint64_t identity)
{
	/* The newest is wanted mostly. */
	for (size_t i = s->n; i-- > 0;)
		if (s->v[i]->start_ns == start_ns && s->v[i]->identity == identity)
			return s->v[i];
	return NULL;
}

enum err_code ship_add(struct ship *s, int64_t start_ns, int64_t end_ns, uint64_t identity,
	struct ship_window **out, struct err *err)
{
	struct ship_window *w;
	size_t i = s->n;

	if (!array_room(&s->v, s->n, 1, &s->cap) || !(w = calloc(1, sizeof(*w))))
		return err_nomem(err, "segments");
	w->start_ns = start_ns;
	w->end_ns = end_ns;
	w->identity = identity;
	w->fd = -1;
	for (; i && s->v[i - 1]->start_ns > start_ns; i--)
		s->v[i] = s->v[i - 1];
	s->v[i] = w;
	s->n++;
	*out = w;
	return ERR_OK;
}

enum err_code ship_add_file(
	struct ship *s, struct ship_window *w, struct ship_file f, struct err *err)
{
	if (!array_room(&w->files, w->files_n, 1, &w->files_cap)) {
		free(f.path);
		return err_nomem(err, "segments");
	}
	w->files[w->files_n++] = f;
	s->bytes += f.bytes;
	metric_set(&segment_bytes, NULL, (double)s->bytes);
	return ERR_OK;
}

/* ---- files that go; s->lock is held ---- */

static void ship_drop_file(struct db *db, struct ship_window *w, size_t i)
{
	struct ship *s = db->ship;
	struct err err;

	if (db->o.fs->ops->unlink(db->o.fs, w->files[i].path, &err))
		log_warn("tsdb", "not removed", LOG_S("path", w->files[i].path), LOG_E(&err));
	s->bytes -= w->files[i].bytes;
	free(w->files[i].path);
	w->files_n--;
	memmove(w->files + i, w->files + i + 1, (w->files_n - i) * sizeof(*w->files));
	metric_set(&segment_bytes, NULL, (double)s->bytes);
}

static void ship_drop_files(struct db *db, struct ship_window *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	w->doubtful = false;
	while (w->files_n)
		ship_drop_file(db, w, w->files_n - 1);
}

static void ship_gap(struct db *db, struct ship_window *w, const char *why)
{
	if (!w->off) {
		metric_add(&segment_gaps, why, 1);
		log_warn("tsdb", "batches are not kept for the bucket: the window wants a snapshot",
			LOG_I("window", w->start_ns / NS_PER_S), LOG_S("reason", why));
	}
	ship_drop_files(db, w);
	w->promised = 0;
	w->off = true;
}

/* The oldest windows can be had as blocks soon, so the one with the most goes. */
static void ship_bound(struct db *db)
{
	struct ship *s = db->ship;

	while (s->bytes > db->o.segments_bytes) {
		struct ship_window *most = NULL;
		uint64_t most_bytes = 0;

		for (size_t i = 0; i < s->n; i++) {
			uint64_t bytes = 0;

			for (size_t k = 0; k < s->v[i]->files_n; k++)
				bytes += s->v[i]->files[k].bytes;
			if (bytes > most_bytes) {
				most = s->v[i];
				most_bytes = bytes;
			}
		}
		if (!most)
			return;
		ship_gap(db, most, "limit");
	}
}

/* ---- the commit thread ---- */

static void ship_add_put(void *ctx, struct str key, struct str record)
{
	segment_batch_add(ctx, key, record);
}

/* Decides about a batch whose write to the store failed: `next` follows the last batch that the
 * store has. */
static void ship_settle(struct db *db, struct ship_window *w, uint64_t next)
{
	struct ship_file *f = w->files_n ? &w->files[w->files_n - 1] : NULL;

	if (!w->doubtful || !f)
		return;
	w->doubtful = false;
	if (f->last < next)
		return;
	if (next <= f->first) {
		close(w->fd);
		w->fd = -1;
		ship_drop_file(db, w, w->files_n - 1);
		return;
	}
	if (ftruncate(w->fd, (off_t)w->before) || lseek(w->fd, 0, SEEK_END) < 0) {
		ship_gap(db, w, "error");
		return;
	}
	db->ship->bytes -= f->bytes - w->before;
	f->bytes = w->before;
	f->last = next - 1;
}

static bool ship_open_file(struct db *db, struct ship_window *w, uint64_t first)
{
	const struct segment head = { w->start_ns, w->end_ns, w->identity, first, 0, false };
	struct fs *fs = db->o.fs;
	char *path = ship_path(db, w, first);
	struct err err;

	if (!path)
		return false;
	if (fs->ops->open(fs, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644, &w->fd, &err)) {
		w->fd = -1;
		free(path);
		return false;
	}
	segment_encode_head(&head, &db->ship->buf);
	return !ship_add_file(db->ship, w, (struct ship_file){ path, first, 0, 0 }, &err);
}

static bool ship_write_batch(
	struct db *db, struct ship_window *w, const struct store_batch *batch, uint64_t seq)
{
	struct ship *s = db->ship;
	struct segment_batch b;
	struct ship_file *f;
	struct err err;

	buf_clear(&s->buf);
	if (w->fd < 0 && !ship_open_file(db, w, seq))
		return false;
	f = &w->files[w->files_n - 1];
	segment_batch_begin(&b, &s->buf, seq, seq);
	store_batch_each(batch, ship_add_put, &b);
	segment_batch_end(&b);
	if (buf_failed(&s->buf) || db->o.fs->ops->write(db->o.fs, w->fd, s->buf.ptr, s->buf.len, &err))
		return false;
	w->before = f->bytes ? f->bytes : SEGMENT_HEAD_BYTES;
	f->bytes += s->buf.len;
	f->last = seq;
	s->bytes += s->buf.len;
	metric_set(&segment_bytes, NULL, (double)s->bytes);
	return true;
}

/* The next batch that the files and what was put lack. */
static uint64_t ship_next_of(const struct ship_window *w)
{
	return w->files_n ? w->files[w->files_n - 1].last + 1 : w->done + 1;
}

void ship_begin(
	struct db *db, struct window *of, struct store_batch *batch, const struct window_count *count)
{
	struct ship *s = db->ship;
	struct ship_window *w;
	struct err err;

	if (!s)
		return;
	mutex_lock(&s->lock);
	w = ship_find(s, of->start_ns, of->identity);
	if (!w && ship_add(s, of->start_ns, of->end_ns, of->identity, &w, &err)) {
		mutex_unlock(&s->lock); /* the next batch finds that this one is missing */
		return;
	}
	w->writing = true;
	w->pending = *count;
	ship_settle(db, w, count->seq);
	if (w->off && !w->anew && count->seq == w->done + 1)
		w->off = false;
	if (w->files_n && ship_next_of(w) != count->seq)
		ship_gap(db, w, "gap");
	if (!w->off && !ship_write_batch(db, w, batch, count->seq))
		ship_gap(db, w, "error");
	ship_bound(db);
	if (s->buf.cap > SEGMENT_FRAME_BYTES || buf_failed(&s->buf))
		buf_release(&s->buf);
	mutex_unlock(&s->lock);
}

void ship_end(struct db *db, struct window *of, bool stored)
{
	struct ship *s = db->ship;
	struct ship_window *w;

	if (!s)
		return;
	mutex_lock(&s->lock);
	if ((w = ship_find(s, of->start_ns, of->identity)) && w->writing) {
		w->writing = false;
		if (stored)
			w->count = w->pending;
		else
			w->doubtful = w->fd >= 0;
	}
	cond_broadcast(&s->idle);
	mutex_unlock(&s->lock);
}

void ship_reopened(
	struct db *db, const struct window *of, const struct window_count *count, bool repaired)
{
	struct ship *s = db->ship;
	struct ship_window *w;

	if (!s)
		return;
	mutex_lock(&s->lock);
	if ((w = ship_find(s, of->start_ns, of->identity))) {
		ship_settle(db, w, count->seq + 1);
		w->count = *count;
		if (repaired) {
			ship_gap(db, w, "damage");
			w->anew = true;
		}
	}
	mutex_unlock(&s->lock);
}

/* ---- the publisher ---- */

static enum err_code ship_is_off(struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "segments are off");
}

/* The files have every batch behind `put`. */
static bool ship_is_covered(const struct ship_window *w, uint64_t put)
{
	uint64_t next = put + 1;

	if (w->anew)
		return false;
	for (size_t i = 0; i < w->files_n; i++) {
		if (w->files[i].first > next)
			return false;
		if (w->files[i].last >= next)
			next = w->files[i].last + 1;
	}
	return next > w->count.seq;
}

static void ship_drop_done(struct db *db, struct ship_window *w)
{
	while (w->files_n > (w->fd >= 0 ? 1 : 0) && w->files[0].last <= w->done)
		ship_drop_file(db, w, 0);
}

/* The lock is held, and let go while the window's batch is being written. */
static struct ship_window *ship_find_idle(struct ship *s, int64_t start_ns, uint64_t identity)
{
	struct ship_window *w;

	while ((w = ship_find(s, start_ns, identity)) && w->writing)
		cond_wait(&s->idle, &s->lock);
	return w;
}

static enum err_code ship_list_files(
	const struct ship_window *w, struct arena *a, struct head_ship_window *out, struct err *err)
{
	size_t n = w->files_n - (w->fd >= 0); /* the open one is doubtful */
	struct head_ship_file *v = arena_array(a, struct head_ship_file, n + 1);

	if (!v)
		return arena_fail(a, "segments", err);
	for (size_t i = 0; i < n; i++) {
		const struct ship_file *f = &w->files[i];

		v[i] = (struct head_ship_file){ str_dup(a, str_of(f->path)).ptr, f->first, f->last,
			f->bytes };
		if (!v[i].path)
			return arena_fail(a, "segments", err);
	}
	out->files = v;
	out->files_n = n;
	return ERR_OK;
}

static enum err_code ship_end_one(struct db *db, struct ship_window *w, struct arena *a,
	struct head_ship_window *out, struct err *err)
{
	bool wanted;

	(void)ship_find_idle(db->ship, w->start_ns, w->identity); /* this thread alone forgets it */
	if (w->fd >= 0 && !w->doubtful) {
		close(w->fd);
		w->fd = -1;
	}
	ship_drop_done(db, w);
	/* While a snapshot is on its way its successors are kept. */
	if (!ship_is_covered(w, w->promised > w->done ? w->promised : w->done))
		ship_gap(db, w, "gap");
	wanted = !ship_is_covered(w, w->done);
	*out = (struct head_ship_window){ .start_ns = w->start_ns,
		.end_ns = w->end_ns,
		.identity = w->identity,
		.last = w->count.seq,
		.snapshot_wanted = wanted };
	return wanted ? ERR_OK : ship_list_files(w, a, out, err);
}

/* Those that are in the head now: a window that leaves it meanwhile is listed as in it once more.
 */
static void ship_look_in_head(struct db *db, struct head_ship_window *h, size_t n)
{
	mutex_lock(&db->lock);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < db->windows_n && !h[i].in_head; k++)
			h[i].in_head = db->windows[k]->start_ns == h[i].start_ns &&
				db->windows[k]->identity == h[i].identity;
		h[i].snapshot_wanted &= h[i].in_head;
	}
	mutex_unlock(&db->lock);
}

enum err_code head_ship_end(struct db *db, struct arena *a, struct head_ship_window **out,
	size_t *n, int64_t *through_ns, struct err *err)
{
	struct ship *s = db->ship;
	struct head_ship_window *v = NULL;
	enum err_code rc = ERR_OK;
	int64_t now = clock_now_ns();
	size_t found = 0, cap;
	bool all = true;

	if (!s)
		return ship_is_off(err);
	mutex_lock(&s->lock);
	cap = s->n; /* one that is added meanwhile has no batch from before */
	if (!(v = arena_array(a, struct head_ship_window, cap + 1)))
		rc = arena_fail(a, "segments", err);
	for (size_t i = 0; i < s->n && found < cap && !rc; i++) {
		struct ship_window *w = s->v[i];

		if (w->count.seq || w->writing)
			rc = ship_end_one(db, w, a, &v[found++], err);
		all &= !w->doubtful;
		/* While it waited windows may have been inserted before it. */
		while (i < s->n && s->v[i] != w)
			i++;
	}
	/* A file whose last batch is doubtful may have others that were acknowledged. */
	if (all && !rc)
		s->through_ns = now;
	*through_ns = s->through_ns;
	mutex_unlock(&s->lock);
	if (rc)
		return rc;
	ship_look_in_head(db, v, found);
	*out = v;
	*n = found;
	return ERR_OK;
}

void head_ship_done(struct db *db, int64_t start_ns, uint64_t identity, uint64_t last)
{
	struct ship *s = db->ship;
	struct ship_window *w;

	if (!s)
		return;
	mutex_lock(&s->lock);
	if ((w = ship_find_idle(s, start_ns, identity))) {
		if (last > w->count.seq) {
			log_warn("tsdb", "the bucket has batches that the window lacks",
				LOG_I("window", start_ns / NS_PER_S), LOG_I("bucket", (int64_t)last),
				LOG_I("window_has", (int64_t)w->count.seq));
			w->anew = true;
		} else if (w->done < last) {
			w->done = last;
		}
		ship_drop_done(db, w);
	}
	mutex_unlock(&s->lock);
}

enum err_code ship_restart(
	struct db *db, int64_t start_ns, uint64_t identity, struct window_count *count, struct err *err)
{
	struct ship *s = db->ship;
	struct ship_window *w;
	enum err_code rc = ERR_OK;

	if (!s)
		return ship_is_off(err);
	mutex_lock(&s->lock);
	if ((w = ship_find_idle(s, start_ns, identity)) && w->count.seq) {
		ship_drop_files(db, w);
		w->off = w->anew = false;
		w->done = 0; /* until the snapshot is put */
		w->promised = w->count.seq;
		*count = w->count;
	} else {
		rc = err_set(err, ERR_NOT_FOUND, "window has no batch");
	}
	mutex_unlock(&s->lock);
	return rc;
}

void head_ship_forget(struct db *db, int64_t start_ns, uint64_t identity)
{
	struct ship *s = db->ship;
	struct ship_window *w;

	if (!s)
		return;
	mutex_lock(&s->lock);
	if ((w = ship_find_idle(s, start_ns, identity))) {
		size_t i = 0;

		ship_drop_files(db, w);
		while (s->v[i] != w)
			i++;
		s->n--;
		memmove(s->v + i, s->v + i + 1, (s->n - i) * sizeof(*s->v));
		free(w->files);
		free(w);
	}
	mutex_unlock(&s->lock);
	left_window_remove(db, start_ns, identity);
}

void ship_leave(struct db *db, struct window *w)
{
	int64_t start_ns = w->start_ns;
	uint64_t identity = w->identity;
	bool known;

	if (!db->ship)
		return;
	left_window_add(db, w);
	mutex_lock(&db->ship->lock);
	known = ship_find(db->ship, start_ns, identity) != NULL;
	mutex_unlock(&db->ship->lock);
	if (!known) /* nobody will forget it */
		left_window_remove(db, start_ns, identity);
}

uint64_t head_ship_bytes(struct db *db)
{
	struct ship *s = db->ship;
	uint64_t bytes = 0;

	if (!s)
		return 0;
	mutex_lock(&s->lock);
	bytes = s->bytes;
	mutex_unlock(&s->lock);
	return bytes;
}
