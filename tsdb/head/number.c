
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/metrics.h"
#include "tsdb/catalog/members.h"
#include "tsdb/catalog/name_kind.h"
#include "tsdb/catalog/room.h"
#include "tsdb/head/append.h"
#include "tsdb/head/append_internal.h"
#include "tsdb/head/commit.h"
#include "tsdb/head/head.h"
#include "tsdb/head/numbers.h"

/*
 * Appends numbers: finds or makes the series, sorts the values by window, and queues one batch per
 * window. Nothing is queued before all values are accepted. Later errors come with the
 * acknowledgement, which follows the commit of the last window.
 */
METRIC_COUNTER(numbers_total, "epimetheus_tsdb_numbers_appended_total",
	"Values of numeric series stored.", NULL);
METRIC_COUNTER(numbers_failed, "epimetheus_tsdb_numbers_append_failures_total",
	"Batches of values of numeric series that could not be stored.", "reason");

struct number_ack {
	struct mutex lock; /* guards the rest */
	size_t waiting; /* windows, and the append itself until all are queued */
	enum err_code rc;
	struct err err;
	db_acked_fn acked;
	void *ctx;
};

struct number_batch {
	struct series **series; /* in use */
	int64_t *ts_ns;
	size_t n, values;
	int64_t min_ns, max_ns;
};

struct numbers_append {
	struct db *db;
	const struct db_number *v;
	size_t n;
	uint64_t generation;
	struct series **series; /* of each value, in use */
	struct window **windows; /* of each value; NULL: it is there already */
	struct window **pinned; /* each once */
	size_t pinned_n, pinned_cap;
	struct number_ack *ack;
};

struct key key_number(uint32_t series, int64_t ts_ns)
{
	struct key k = key_row(series, ts_ns);

	k.bytes[0] = KEY_NUMBER;
	return k;
}

enum err_code number_decode(struct str bytes, double *out, struct err *err)
{
	struct cursor in = cursor_of(bytes);

	*out = number_of_bits(cursor_u64be(&in));
	if (in.bad || cursor_left(&in))
		return err_set(err, ERR_CORRUPT, "a value's record is wrong");
	return ERR_OK;
}

bool key_parse_number(struct str key, uint32_t *series, int64_t *ts_ns)
{
	struct cursor in = { (const unsigned char *)key.ptr + 1,
		(const unsigned char *)key.ptr + key.len, false };

	if (key.len != 13 || key.ptr[0] != KEY_NUMBER)
		return false;
	*series = cursor_u32be(&in);
	*ts_ns = (int64_t)cursor_u64be(&in);
	return true;
}

/* ---- acknowledging ---- */

static void number_ack_one(struct number_ack *a, enum err_code rc, const struct err *err)
{
	bool last;

	mutex_lock(&a->lock);
	if (rc && !a->rc) {
		a->rc = rc;
		a->err = *err;
	}
	last = --a->waiting == 0;
	mutex_unlock(&a->lock);
	if (!last)
		return;
	if (a->rc)
		metric_add(&numbers_failed, err_code_name(a->rc), 1);
	a->acked(a->ctx, a->rc, a->rc ? &a->err : NULL);
	mutex_destroy(&a->lock);
	free(a);
}

static void number_batch_acked(void *ctx, enum err_code rc, const struct err *err)
{
	number_ack_one(ctx, rc, err);
}

void number_batch_close(struct number_batch *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n; i++)
		series_release(b->series[i]);
	free(b->series);
	free(b->ts_ns);
	free(b);
}

void number_batch_count(const struct number_batch *b, struct window_count *c)
{
	if (window_is_empty(c) || b->min_ns < c->min_ns)
		c->min_ns = b->min_ns;
	if (window_is_empty(c) || b->max_ns > c->max_ns)
		c->max_ns = b->max_ns;
	c->numbers += b->values;
}

bool number_batch_at(
	const struct number_batch *b, size_t i, const struct series **series, int64_t *ts_ns)
{
	if (i >= b->n)
		return false;
	*series = b->series[i];
	*ts_ns = b->ts_ns[i];
	return true;
}

void number_batch_stored(struct db *db, const struct number_batch *b)
{
	atomic_fetch_add(&db->numbers, b->values);
	metric_add(&numbers_total, NULL, (double)b->values);
}

/* ---- what is appended, and where ---- */

static enum err_code numbers_append_check(struct numbers_append *n, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (n->db->o.read_only)
		return err_set(err, ERR_UNAVAILABLE, "the database is open for reading only");
	if (n->n > NUMBERS_BATCH_MAX)
		return err_set(
			err, ERR_LIMIT, "%zu values in one batch, limit %u", n->n, NUMBERS_BATCH_MAX);
	for (size_t i = 0; i < n->n && !rc; i++) {
		if (n->v[i].ts_ns <= 0)
			return err_set(err, ERR_INVALID, "a value needs a time after 1970");
		if (!(rc = append_check_labels(n->v[i].labels, "value", err)))
			rc = append_check_time(n->db, n->v[i].ts_ns, "value", err);
	}
	return rc;
}

static enum err_code numbers_append_find_series(struct numbers_append *n, size_t i, struct err *err)
{
	struct labels labels = n->v[i].labels;
	struct series *s = series_find(n->db->series, labels);
	enum err_code rc;

	if (!s) {
		if ((rc = name_kind_check(n->db, labels, SERIES_NUMBERS, err)) ||
			(rc = series_add(n->db->series, labels, SYM_NONE, NULL, &s, err)))
			return rc;
	}
	n->series[i] = s;
	return s->job ? name_kind_check(n->db, labels, SERIES_NUMBERS, err) : ERR_OK;
}

static enum err_code numbers_append_find_window(struct numbers_append *n, size_t i, struct err *err)
{
	int64_t ts = n->v[i].ts_ns;
	struct window *w;
	enum err_code rc;

	for (size_t k = n->pinned_n; k-- > 0;)
		if (ts > n->pinned[k]->start_ns && ts <= n->pinned[k]->end_ns) {
			n->windows[i] = n->pinned[k];
			return ERR_OK;
		}
	if (!array_room(&n->pinned, n->pinned_n, 1, &n->pinned_cap))
		return err_nomem(err, "storing numbers");
	if ((rc = head_pin(n->db, ts, &w, err)))
		return rc;
	n->pinned[n->pinned_n++] = n->windows[i] = w;
	return ERR_OK;
}

/* ---- one window's batch ---- */

/* Makes the series findable in the window, before its value is queued. */
static bool number_announce(struct db *db, struct window *w, const struct series *s)
{
	bool there, ok = true;

	series_lock_read(db->series);
	there = bits_get(&w->series, s->id);
	series_unlock(db->series);
	if (there)
		return true;
	series_lock_write(db->series);
	if ((ok = bits_reserve(&w->series, s->id)))
		bits_set(&w->series, s->id);
	series_unlock(db->series);
	return ok;
}

static bool numbers_append_put_value(struct numbers_append *n, size_t i, struct commit_row *row)
{
	struct series *s = n->series[i];
	struct number_batch *b = row->numbers;
	int64_t ts = n->v[i].ts_ns;
	struct buf value = { 0 };
	struct key key;
	bool ok;

	if (s->stored_typeset == SYM_NONE || s->stored_window_ns != row->window->start_ns ||
		s->stored_generation != n->generation) {
		key = key_u32(KEY_NUMBER_SERIES, s->id);
		labels_encode(&value, s->labels);
		store_batch_put_twice(row->batch, key_str(&key), &value);
		buf_clear(&value);
	}
	key = key_number(s->id, ts);
	buf_add_u64be(&value, number_bits(n->v[i].value));
	store_batch_put(row->batch, key_str(&key), &value);
	ok = !buf_failed(&value) && number_announce(n->db, row->window, s);
	buf_release(&value);
	if (!b->values || ts < b->min_ns)
		b->min_ns = ts;
	if (!b->values || ts > b->max_ns)
		b->max_ns = ts;
	b->values++;
	atomic_fetch_add(&s->uses, 1);
	b->ts_ns[b->n] = ts;
	b->series[b->n++] = s;
	return ok;
}

static void number_row_close(struct commit_row *row)
{
	if (!row)
		return;
	number_batch_close(row->numbers);
	store_batch_close(row->batch);
	free(row);
}

static enum err_code numbers_append_make_row(
	struct numbers_append *a, struct window *w, struct commit_row **out, struct err *err)
{
	struct commit_row *row = calloc(1, sizeof(*row));
	size_t n = 0;
	bool ok = true;

	for (size_t i = 0; i < a->n; i++)
		n += a->windows[i] == w;
	if (!row || !(row->numbers = calloc(1, sizeof(*row->numbers))) ||
		!(row->numbers->series = calloc(n, sizeof(struct series *))) ||
		!(row->numbers->ts_ns = calloc(n, sizeof(int64_t))) || !(row->batch = store_batch_open())) {
		number_row_close(row);
		return err_nomem(err, "storing numbers");
	}
	row->window = w;
	store_batch_set_identity(row->batch, w->identity);
	for (size_t i = 0; i < a->n && ok; i++)
		if (a->windows[i] == w)
			ok = numbers_append_put_value(a, i, row);
	if (!ok) {
		number_row_close(row);
		return err_nomem(err, "storing numbers");
	}
	row->ts_ns = row->numbers->max_ns;
	row->bytes = store_batch_bytes(row->batch) + sizeof(*row) +
		n * (sizeof(struct series *) + sizeof(int64_t));
	row->acked = number_batch_acked;
	row->ctx = a->ack;
	*out = row;
	return ERR_OK;
}

/* The window's pin is the queue's afterwards. */
static enum err_code numbers_append_queue_window(
	struct numbers_append *n, struct window *w, struct err *err)
{
	int64_t window_ns = w->start_ns;
	struct commit_row *row;
	enum err_code rc;

	if ((rc = numbers_append_make_row(n, w, &row, err)))
		return rc;
	mutex_lock(&n->ack->lock);
	n->ack->waiting++;
	mutex_unlock(&n->ack->lock);
	if ((rc = commit_enqueue(n->db, row, n->generation, err))) {
		number_row_close(row);
		mutex_lock(&n->ack->lock);
		n->ack->waiting--;
		mutex_unlock(&n->ack->lock);
		return rc;
	}
	for (size_t i = 0; i < n->n; i++)
		if (n->windows[i] == w) {
			n->series[i]->stored_window_ns = window_ns;
			n->series[i]->stored_generation = n->generation;
			n->series[i]->stored_typeset = 0; /* it was, somewhere */
		}
	return ERR_OK;
}

/* ---- all of it ---- */

/*
 * The same series and time again, in this batch or before: if the value is the same nothing is to
 * do, else the whole batch is refused. Values that are newer than all others of their series are
 * not looked up.
 */
struct late_value {
	const struct numbers_append *t;
	size_t at;
};

static int number_late_cmp(const void *left, const void *right)
{
	const struct late_value *a = left, *b = right;
	uint32_t p = a->t->series[a->at]->id, q = b->t->series[b->at]->id;
	int64_t s = a->t->v[a->at].ts_ns, u = b->t->v[b->at].ts_ns;

	if (p != q)
		return p < q ? -1 : 1;
	if (s != u)
		return s < u ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

static enum err_code numbers_append_refuse(
	const struct numbers_append *n, size_t i, struct err *err)
{
	return duplicate_refuse("value", n->v[i].labels, n->v[i].ts_ns, err);
}

static enum err_code numbers_append_find_in_batch(struct numbers_append *n, struct err *err)
{
	struct late_value *v = malloc(n->n * sizeof(*v));
	enum err_code rc = ERR_OK;

	if (!v)
		return err_nomem(err, "storing numbers");
	for (size_t i = 0; i < n->n; i++)
		v[i] = (struct late_value){ n, i };
	qsort(v, n->n, sizeof(*v), number_late_cmp);
	for (size_t i = 1; i < n->n && !rc; i++) {
		size_t a = v[i - 1].at, b = v[i].at;

		if (n->series[a] != n->series[b] || n->v[a].ts_ns != n->v[b].ts_ns)
			continue;
		if (number_bits(n->v[a].value) != number_bits(n->v[b].value))
			rc = numbers_append_refuse(n, b, err);
		else
			n->windows[b] = NULL;
	}
	free(v);
	return rc;
}

static enum err_code numbers_append_find_stored(struct numbers_append *n, size_t i, struct err *err)
{
	const struct duplicate_place at = { n->windows[i], n->series[i], n->v[i].ts_ns,
		key_number(n->series[i]->id, n->v[i].ts_ns), n->generation };
	struct buf value = { 0 };
	enum err_code rc;
	double was;

	rc = duplicate_find(n->db, &at, &value, err);
	if (!rc && !(rc = number_decode(buf_str(&value), &was, err))) {
		if (number_bits(was) != number_bits(n->v[i].value))
			rc = numbers_append_refuse(n, i, err);
		else
			n->windows[i] = NULL;
	}
	buf_release(&value);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

static enum err_code numbers_append_find_again(struct numbers_append *n, struct err *err)
{
	enum err_code rc = ERR_OK;
	bool *late = calloc(n->n, sizeof(*late)), any = false;

	if (!late)
		return err_nomem(err, "storing numbers");
	for (size_t i = 0; i < n->n && !rc; i++) {
		late[i] = duplicate_possible(n->db, n->series[i], n->v[i].ts_ns);
		any |= late[i];
		duplicate_note(n->series[i], n->v[i].ts_ns);
		rc = duplicate_check_deleted(
			n->db, n->windows[i], n->series[i], n->v[i].ts_ns, "value", err);
	}
	if (!rc && any)
		rc = numbers_append_find_in_batch(n, err);
	for (size_t i = 0; i < n->n && !rc; i++)
		if (late[i] && n->windows[i])
			rc = numbers_append_find_stored(n, i, err);
	free(late);
	return rc;
}

static enum err_code numbers_append_prepare(struct numbers_append *n, struct err *err)
{
	enum err_code rc = numbers_append_check(n, err);

	if (rc)
		return rc;
	/* Read before the state, so that a failure in between shows when the values are queued. */
	n->generation = commit_generation(n->db);
	if ((rc = append_check_state(n->db, err)))
		return rc;
	n->series = calloc(n->n, sizeof(struct series *));
	n->windows = calloc(n->n, sizeof(struct window *));
	n->ack = calloc(1, sizeof(*n->ack));
	if (!n->series || !n->windows || !n->ack)
		return err_nomem(err, "storing numbers");
	for (size_t i = 0; i < n->n && !rc; i++)
		if (!(rc = numbers_append_find_window(n, i, err)))
			rc = numbers_append_find_series(n, i, err);
	return rc ? rc : numbers_append_find_again(n, err);
}

static bool numbers_append_has_values(const struct numbers_append *n, const struct window *w)
{
	for (size_t i = 0; i < n->n; i++)
		if (n->windows[i] == w)
			return true;
	return false;
}

/* ERR_OK: the acknowledgement will come, with success or an error. */
static enum err_code numbers_append_queue_all(
	struct numbers_append *n, db_acked_fn acked, void *ctx, struct err *err)
{
	struct number_ack *ack = n->ack;
	enum err_code rc = ERR_OK;
	size_t queued = 0;

	mutex_init(&ack->lock);
	ack->acked = acked;
	ack->ctx = ctx;
	ack->waiting = 1;
	for (size_t i = 0; i < n->pinned_n; i++) {
		if (!rc && numbers_append_has_values(n, n->pinned[i]) &&
			!(rc = numbers_append_queue_window(n, n->pinned[i], err)))
			queued++;
		else
			head_unpin_writer(n->db, n->pinned[i]);
	}
	n->pinned_n = 0;
	if (rc && !queued) {
		mutex_destroy(&ack->lock);
		return rc;
	}
	n->ack = NULL; /* its last user frees it */
	number_ack_one(ack, rc, err);
	return ERR_OK;
}

enum err_code db_append_numbers(struct db *db, const struct db_number *d, size_t n,
	db_acked_fn acked, void *ctx, struct err *err)
{
	struct numbers_append t = { .db = db, .v = d, .n = n };
	struct err here;
	enum err_code rc;

	assert(acked);
	if (!err)
		err = &here;
	if ((rc = members_refuse(db, "append", err)))
		return rc;
	if (!n) {
		acked(ctx, ERR_OK, NULL);
		return ERR_OK;
	}
	mutex_lock(&db->numbers_lock);
	if (!(rc = numbers_append_prepare(&t, err)))
		rc = numbers_append_queue_all(&t, acked, ctx, err);
	mutex_unlock(&db->numbers_lock);
	rc = room_explain(db, rc, err);
	for (size_t i = 0; i < t.pinned_n; i++)
		head_unpin_writer(db, t.pinned[i]);
	for (size_t i = 0; i < n && t.series; i++)
		if (t.series[i])
			series_release(t.series[i]);
	free(t.series);
	free(t.windows);
	free(t.pinned);
	free(t.ack);
	if (rc)
		metric_add(&numbers_failed, err_code_name(rc), 1);
	return rc;
}
