#include <inttypes.h>

#include "base/log.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/head/ship_internal.h"
#include "tsdb/segments/segments.h"
#include "tsdb/store/store.h"

/*
 * A segment of all that a window has. Its count is that of the last batch stored when files began
 * again. The store's snapshot is taken after that, so it may have rows of later batches, which come
 * once more in a file: putting a record twice changes nothing.
 */

static enum err_code ship_snapshot_pin(
	struct db *db, int64_t start_ns, uint64_t identity, struct window **out, struct err *err)
{
	enum err_code rc = err_set(err, ERR_NOT_FOUND, "no such window in the head");

	mutex_lock(&db->lock);
	for (size_t i = 0; i < db->windows_n; i++) {
		struct window *w = db->windows[i];

		if (w->start_ns != start_ns || w->identity != identity)
			continue;
		if (!window_is_open_locked(w)) {
			rc = err_set(err, ERR_UNAVAILABLE, "store %s is being reopened", w->dir);
			break;
		}
		w->pins++;
		*out = w;
		rc = ERR_OK;
		break;
	}
	mutex_unlock(&db->lock);
	return rc;
}

static enum err_code ship_snapshot_put_count(struct segment_writer *out, const struct window *w,
	const struct window_count *count, struct err *err)
{
	struct key key = key_of('c');
	struct buf value = { 0 };
	enum err_code rc;

	head_encode_count(count, &value);
	store_record_seal(key_str(&key), &value, w->identity);
	rc = buf_failed(&value) ? err_nomem(err, "snapshot") :
							  segment_writer_add(out, key_str(&key), buf_str(&value), err);
	buf_release(&value);
	return rc;
}

/* Damaged records are left out, as queries do. */
static enum err_code ship_snapshot_put_records(
	struct segment_writer *out, struct window *w, struct store_iter *it, struct err *err)
{
	enum err_code rc = ERR_OK;
	uint64_t bad = 0;
	struct err why = { 0 };

	for (store_iter_seek(it, STR("")); store_iter_valid(it) && !rc; store_iter_next(it)) {
		struct str key = store_iter_key(it), record = store_iter_record(it), value;

		if (!key.len || key.len > SEGMENT_KEY_MAX || key.ptr[0] == 'c')
			continue;
		if (store_record_value(key, record, key.ptr[0] == 'm' ? 0 : w->identity, &value, &why))
			bad++;
		else
			rc = segment_writer_add(out, key, record, err);
	}
	if (!rc && (store_iter_status(it, &why) || bad))
		log_warn("tsdb", "snapshot of a damaged window", LOG_S("store", w->dir),
			LOG_I("records", (int64_t)bad), LOG_E(&why));
	return rc;
}

static enum err_code ship_snapshot_write_all(struct db *db, struct window *w,
	const struct window_count *count, const char *path, uint64_t *bytes, struct err *err)
{
	const struct segment head = { w->start_ns, w->end_ns, w->identity, 1, count->seq, true };
	struct store_snapshot *snap = store_snapshot_open(w->store);
	struct store_iter *it = snap ? store_scan_open(w->store, snap) : NULL;
	struct segment_writer *out = NULL;
	enum err_code rc = it ? ERR_OK : err_nomem(err, "snapshot");

	if (!rc && !(rc = segment_writer_open(db->o.fs, path, &head, &out, err)) &&
		!(rc = ship_snapshot_put_records(out, w, it, err)) &&
		!(rc = ship_snapshot_put_count(out, w, count, err))) {
		rc = segment_writer_end(out, bytes, err);
		out = NULL;
	}
	segment_writer_close(out);
	store_iter_close(it);
	store_snapshot_close(w->store, snap);
	return rc;
}

enum err_code head_ship_snapshot(struct db *db, int64_t start_ns, uint64_t identity,
	const char *path, uint64_t *last, uint64_t *bytes, struct err *err)
{
	struct window_count count;
	struct window *w;
	enum err_code rc;

	if ((rc = ship_restart(db, start_ns, identity, &count, err)) ||
		(rc = ship_snapshot_pin(db, start_ns, identity, &w, err)))
		return rc;
	rc = ship_snapshot_write_all(db, w, &count, path, bytes, err);
	head_unpin(db, w);
	if (!rc)
		*last = count.seq;
	else
		err_wrap(err, rc, "snapshot of window %" PRId64, start_ns);
	return rc;
}
