#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/metrics.h"
#include "tsdb/catalog/loss_report.h"
#include "tsdb/catalog/members.h"
#include "tsdb/head/append.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/head/numbers.h"

/*
 * Compares the records of a window with what was acknowledged. They are counted only for a reason:
 * the store was repaired, or a record or a page cannot be read; and by `epitool tsdb verify`. A row
 * that replaced another counts once here and twice in what was acknowledged.
 */
METRIC_COUNTER(lost_rows, "epimetheus_tsdb_lost_rows_total",
	"Acknowledged rows that were missing when looked for.", NULL);

struct head_check_counting {
	struct db *db;
	struct window *w;
	struct window_found *found;
};

static void head_check_bad(struct head_check_counting *c, const struct err *why)
{
	if (!c->found->bad++)
		c->found->first = *why;
}

static void head_check_count_time(struct head_check_counting *c, uint32_t series, int64_t ts)
{
	struct window_count *n = &c->found->count;

	/* Rows whose series was lost must not become another one's. */
	series_reserve_ids(c->db->series, series + 1);
	series_lock_read(c->db->series);
	c->found->homeless += !series_by_id_locked(c->db->series, series);
	series_unlock(c->db->series);
	if (window_is_empty(n) || ts < n->min_ns)
		n->min_ns = ts;
	if (window_is_empty(n) || ts > n->max_ns)
		n->max_ns = ts;
}

/* False: it is of another window, or not such a key. */
static bool head_check_count_record(struct head_check_counting *c, char kind, struct str key)
{
	struct window_count *n = &c->found->count;
	bool number = kind == KEY_NUMBER;
	uint32_t series;
	int64_t ts;

	if (kind == 'y') {
		n->symbols++;
		return key.len == 13;
	}
	if (number ? !key_parse_number(key, &series, &ts) : !key_parse_row(key, &series, &ts))
		return false;
	if (ts <= c->w->start_ns || ts > c->w->end_ns)
		return false;
	head_check_count_time(c, series, ts);
	n->rows += !number;
	n->numbers += number;
	return true;
}

static enum err_code head_check_count_kind(
	struct head_check_counting *c, char kind, struct err *err)
{
	struct store_iter *it = store_iter_open(c->w->store, NULL);
	struct str key, value;
	struct err why;

	if (!it)
		return err_nomem(err, "window");
	for (store_iter_seek(it, (struct str){ &kind, 1 }); store_iter_valid(it); store_iter_next(it)) {
		key = store_iter_key(it);
		if (!key.len || key.ptr[0] != kind)
			break;
		if (store_iter_value(it, &value, &why)) {
			head_check_bad(c, &why);
		} else if (!head_check_count_record(c, kind, key)) {
			err_set(&why, ERR_CORRUPT, "store %s: a record of another window", c->w->dir);
			head_check_bad(c, &why);
		}
	}
	if (store_iter_status(it, &why))
		head_check_bad(c, &why);
	store_iter_close(it);
	return ERR_OK;
}

enum err_code head_recount(
	struct db *db, struct window *w, struct window_found *out, struct err *err)
{
	struct head_check_counting c = { db, w, out };
	enum err_code rc;

	*out = (struct window_found){ .count = { .seq = w->count.seq, .samples = w->count.samples } };
	if (!(rc = head_check_count_kind(&c, 'r', err)) &&
		!(rc = head_check_count_kind(&c, KEY_NUMBER, err)))
		rc = head_check_count_kind(&c, 'y', err);
	return rc;
}

static bool head_check_tell(struct db *db, struct window *w, enum loss_what what, const char *where,
	uint64_t acked, uint64_t found, const char *things, const struct err *why)
{
	struct err text = *why;

	if (found >= acked)
		return false;
	err_wrap(&text, why->code, "%" PRIu64 " of %" PRIu64 " %s are missing", acked - found, acked,
		things);
	(void)!db_lost(db, what, where, w->start_ns, w->end_ns, acked - found, &text);
	return true;
}

bool head_tell_lost(struct db *db, struct window *w, const struct window_count *acked,
	bool rows_only, const struct window_found *found, const struct err *why)
{
	const struct window_count *n = &found->count;
	/* One state of the window is one loss, a later state another. */
	char *where = head_where(w, " at batch %" PRIu64, acked->seq);
	bool lost = false;

	if (!where)
		return false;
	if (acked->rows > n->rows)
		metric_add(&lost_rows, NULL, (double)(acked->rows - n->rows));
	lost |= head_check_tell(db, w, LOSS_PROFILES, where, acked->rows, n->rows, "profiles", why);
	if (!rows_only) {
		lost |= head_check_tell(db, w, LOSS_NUMBERS, where, acked->numbers, n->numbers,
			"values of numeric series", why);
		lost |= head_check_tell(db, w, LOSS_SYMBOLS, where, acked->symbols, n->symbols,
			"records of names of frames", why);
	}
	if (found->homeless) {
		lost = true;
		(void)!db_lost(db, LOSS_SERIES, where, w->start_ns, w->end_ns, found->homeless, why);
	}
	/* Batches of which nothing else is known. */
	if (!lost && acked->seq > n->seq)
		lost = db_lost(db, LOSS_PROFILES, where, w->start_ns, w->end_ns, 0, why) || true;
	free(where);
	if (lost)
		db_damage(db, w, "something was lost", why);
	return lost;
}

enum err_code db_verify_head(struct db *db, struct err *err)
{
	struct window_found found;
	enum err_code rc = members_refuse(db, "verify", err);

	if (rc)
		return rc;
	/* Nobody else changes the list: the database is open for reading only. */
	for (size_t i = 0; i < db->windows_n; i++) {
		struct window *w = db->windows[i];

		if ((rc = head_recount(db, w, &found, err)))
			return rc;
		if (found.bad && !head_tell_lost(db, w, &w->count, false, &found, &found.first))
			db_damage(db, w, "damaged, and nothing is lost", &found.first);
	}
	return ERR_OK;
}
