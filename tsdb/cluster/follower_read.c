#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "tsdb/bucket/ahead.h"
#include "tsdb/cluster/cluster_internal.h"
#include "tsdb/head/follow.h"

/*
 * Reads unread windows, one segment at a time. Between two segments a look may change the manifest,
 * so only the window's start is kept from one segment to the next.
 */
/* Larger segments are not read ahead: their bytes take longer than the request. */
#define AHEAD_SEGMENTS 6u
#define AHEAD_BYTES (64u << 20)

void follow_count_read(struct follower *f)
{
	struct follower_status is = { 0 };

	for (uint32_t i = 0; i < f->m.windows_n; i++) {
		const struct manifest_window *w = &f->m.windows[i];
		uint32_t next = follow_find_unread(f, w->start_ns) ?
			follow_next_segment(w, follow_batches(f, w)) :
			w->segments_n;

		for (uint32_t k = 0; k < w->segments_n; k++) {
			is.all_bytes += w->segments[k].object.bytes;
			is.read_bytes += k < next ? w->segments[k].object.bytes : 0;
		}
		is.all_segments += w->segments_n;
		is.read_segments += next;
	}
	mutex_lock(&f->lock);
	f->is.all_bytes = is.all_bytes;
	f->is.read_bytes = is.read_bytes;
	f->is.all_segments = is.all_segments;
	f->is.read_segments = is.read_segments;
	if (!f->unread_n) {
		f->read_began_ns = 0;
	} else if (!f->read_began_ns) {
		f->read_began_ns = clock_monotonic_ns();
		f->read_began_bytes = is.read_bytes;
	}
	mutex_unlock(&f->lock);
}

/* done: the window is read as far as possible. failed NULL: a segment was put, or answers warn. */
static enum err_code follower_read_note(struct follow_round *r, struct unread_window *u, bool done,
	const struct err *failed, struct err *err)
{
	struct follower *f = r->f;
	enum err_code rc = ERR_OK;

	mutex_lock(&f->lock);
	if (!array_room(&f->missing, f->missing_n, r->missing_n, &f->missing_cap))
		rc = err_nomem(err, "missing objects");
	for (size_t i = 0; i < r->missing_n && !rc; i++)
		f->missing[f->missing_n++] = r->missing[i];
	if (done && !rc) {
		size_t at = (size_t)(u - f->unread);

		memmove(u, u + 1, (--f->unread_n - at) * sizeof(*u));
	}
	f->read_failed = failed ? *failed : rc ? *err : (struct err){ 0 };
	mutex_unlock(&f->lock);
	follow_missing_free(r->missing, rc ? r->missing_n : 0);
	follow_count_read(f);
	return rc;
}

static enum err_code follower_read_fetch(struct follow_round *r, struct ahead *ahead,
	const struct manifest_window *w, uint32_t next, struct buf *out, struct err *err)
{
	const struct manifest_segment *s = &w->segments[next];
	struct ahead_object want[AHEAD_SEGMENTS];
	struct manifest_key key;
	enum err_code rc;
	size_t n = 0;

	_Static_assert(sizeof(key.text) <= sizeof(want[0].key), "keys of a manifest");
	for (uint32_t i = next; i < w->segments_n && n < AHEAD_SEGMENTS; i++, n++) {
		key = manifest_key_segment(str_of(r->f->name), w, &w->segments[i]);
		memcpy(want[n].key, key.text, sizeof(key.text));
		want[n].bytes = w->segments[i].object.bytes;
	}
	key = manifest_key_segment(str_of(r->f->name), w, s);
	ahead_want(ahead, want, n);
	if ((rc = ahead_take(ahead, out, err)))
		return rc;
	return follow_check(&key, &s->object, out, err);
}

static enum err_code follower_read_segment(struct follow_round *r, struct ahead *ahead,
	const struct manifest_window *w, uint32_t next, bool fresh, struct err *err)
{
	const struct manifest_segment *s = &w->segments[next];
	struct manifest_key key = manifest_key_segment(str_of(r->f->name), w, s);
	struct buf deleted = { 0 }, bytes = { 0 };
	enum err_code rc = ERR_OK;

	if (follow_is_too_large(r, w, s)) {
		rc = ERR_NOT_FOUND;
	} else if (fresh && !follow_get_deleted(r, w, true, &deleted)) {
		rc = r->again ? err_copy(err, &r->first) : ERR_NOT_FOUND;
	} else {
		if (!(rc = follower_read_fetch(r, ahead, w, next, &bytes, err)))
			rc = follow_put_segment(r, w, s, &bytes, buf_str(&deleted), err);
		if (follow_is_gone(r, &key, w->start_ns, w->end_ns, rc))
			rc = ERR_NOT_FOUND;
	}
	buf_release(&deleted);
	buf_release(&bytes);
	return rc;
}

static enum err_code follower_read_next(
	struct follower *f, struct unread_window *u, struct ahead *ahead, struct err *err)
{
	const struct manifest_window *w = &f->m.windows[u->window];
	uint64_t at = follow_batches(f, w);
	uint32_t next = follow_next_segment(w, at);
	struct follow_round r = { .f = f, .m = f->m };
	enum err_code rc = ERR_OK;

	if (next < w->segments_n)
		rc = follower_read_segment(&r, ahead, w, next, at == 0, err);
	if (rc == ERR_EXISTS) { /* a series has another id in a window that is still here */
		err->code = ERR_UNAVAILABLE;
		rc = ERR_UNAVAILABLE;
	}
	if (rc && rc != ERR_NOT_FOUND) {
		const struct err failed = *err;

		(void)follower_read_note(&r, u, false, &failed, err);
		return err_copy(err, &failed);
	}
	return follower_read_note(&r, u, rc || next + 1 >= w->segments_n, NULL, err);
}

/* The newest that is older than `before_ns`; NULL: there is none. */
static struct unread_window *follower_read_newest(const struct follower *f, int64_t before_ns)
{
	struct unread_window *u = NULL;

	for (size_t i = 0; i < f->unread_n; i++)
		if (f->unread[i].start_ns < before_ns)
			u = &f->unread[i];
	return u;
}

/* *stop: there is nothing more to do in this call. */
static enum err_code follower_read_window(struct follower *f, int64_t start_ns, struct ahead *ahead,
	follower_between_fn between, void *ctx, bool *stop, struct err *err)
{
	struct unread_window *u;
	enum err_code rc = ERR_OK;

	while (!rc && (u = follow_find_unread(f, start_ns))) {
		switch (between ? between(ctx) : FOLLOWER_GO_ON) {
		case FOLLOWER_STOP:
			*stop = true;
			return ERR_OK;
		case FOLLOWER_LOOK:
			rc = follower_look(f, err);
			*stop = rc != ERR_OK;
			break;
		default:
			rc = follower_read_next(f, u, ahead, err);
			*stop = rc == ERR_CANCELED;
			break;
		}
	}
	return rc;
}

/* A window that cannot be read now does not hold up older ones. */
enum err_code follow_unread(
	struct follower *f, follower_between_fn between, void *ctx, struct err *err)
{
	enum err_code rc = ERR_OK, first = ERR_OK;
	int64_t start_ns = INT64_MAX;
	struct unread_window *u;
	struct ahead *ahead;
	bool stop = false;
	struct err why;

	if ((rc = ahead_open(f->o.bucket, AHEAD_SEGMENTS, AHEAD_BYTES, &ahead, err)))
		return rc;
	do {
		if (!(u = follower_read_newest(f, start_ns)))
			break;
		start_ns = u->start_ns;
		rc = follower_read_window(f, start_ns, ahead, between, ctx, &stop, &why);
		if (rc && !first)
			first = err_copy(err, &why);
	} while (rc && !stop);
	ahead_close(ahead);
	if (first && f->unread_n) {
		mutex_lock(&f->lock);
		f->read_failed = *err;
		mutex_unlock(&f->lock);
	}
	return first;
}
