#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/catalog/ids.h"
#include "tsdb/catalog/inventory_sync.h"
#include "tsdb/catalog/loss_report.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/catalog/window_epochs.h"
#include "tsdb/columns/chunk_bits.h"
#include "tsdb/compact/builder.h"
#include "tsdb/compact/compaction.h"
#include "tsdb/compact/group_rules.h"
#include "tsdb/compact/numbers.h"
#include "tsdb/head/epochs.h"
#include "tsdb/head/head.h"
#include "tsdb/head/keys.h"

/*
 * Cutting: a head window that takes no more rows becomes a block.
 *
 * The window is sealed: appends refuse its times from then on, and once those under way are
 * committed its rows are final. They are read in the block's order, a series at a time. Rows that
 * cannot be read, or whose symbols are gone, stay behind and are counted: they were not served
 * before either. The window leaves db->windows in the step in which the block enters db->blocks;
 * its files go when no query reads them any more, and at the next start if they are still there
 * (blocks.h).
 */
METRIC_COUNTER(
	rows_cut, "epimetheus_tsdb_rows_cut_total", "Rows written from the head to blocks.", NULL);
METRIC_COUNTER(rows_left, "epimetheus_tsdb_rows_left_out_total",
	"Damaged rows that were not written to a block.", NULL);
METRIC_HISTOGRAM(cut_seconds, "epimetheus_tsdb_cut_duration_seconds",
	"Time that a head window takes to become a block.", NULL);

struct cut_series {
	struct series *s;
	uint32_t job_id;
};

/* A series that the block has: once for each epoch with rows of it. */
struct cut_id {
	uint32_t series; /* in the window */
	uint32_t id; /* in the block */
};

struct cutting {
	struct db *db;
	struct window *w;
	struct deleted deleted; /* applied to rows */
	struct group_rules rules;
	struct arena a;
	struct block_builder *m;
	struct partition *p; /* of the epoch that is cut; NULL: it has nothing readable */
	int64_t min_ns, max_ns; /* its rows */
	uint32_t epoch_at; /* which of the job's it is */
	bool given; /* the builder has taken its pin over */
	struct store_snapshot *snap;
	struct store_iter *it;
	struct cut_series *series;
	size_t n;
	struct cut_id *ids;
	size_t ids_n, ids_cap;
	uint32_t *stacks, *sets;
	int64_t *values;
	size_t cap, values_cap;
	struct row_view view;
	struct number_cut numbers;
	uint64_t left_out;
	struct err first_left;
};

/* The oldest window, sealed and pinned, if it takes no more rows; NULL: there is none. */
static struct window *cut_take_due(struct db *db)
{
	int64_t from = db_accepts_from_ns(db);
	struct window *w = NULL;

	mutex_lock(&db->lock);
	if (db->windows_n && !db->closing && db->windows[0]->end_ns <= from &&
		window_is_open_locked(db->windows[0])) {
		w = db->windows[0];
		w->sealed = true;
		w->pins++;
		while (w->writers && !w->draining && !db->closing)
			cond_wait(&db->changed, &db->lock);
		if (db->closing || !window_is_open_locked(w)) {
			w->pins--;
			cond_broadcast(&db->changed);
			w = NULL;
		}
	}
	mutex_unlock(&db->lock);
	return w;
}

/* ---- series of the window, in order ---- */

static int cut_cmp(const void *a, const void *b, void *ctx)
{
	const struct cut_series *x = a, *y = b;
	const struct cutting *t = ctx;

	if (x->job_id != y->job_id)
		return x->job_id < y->job_id ? -1 : 1;
	return group_cmp(&t->rules, job_name_of(x->s->labels), x->s->labels, y->s->labels);
}

static enum err_code cut_collect_series(struct cutting *c, struct err *err)
{
	struct series_index *x = c->db->series;
	const struct bits *ids = &c->w->series;
	size_t count = 0;

	series_lock_read(x);
	for (size_t i = 0; i < ids->words; i++)
		count += (size_t)__builtin_popcountll(ids->w[i]);
	c->series = malloc((count + 1) * sizeof(*c->series));
	for (size_t i = 0; i < ids->words && c->series; i++)
		for (uint64_t rest = ids->w[i]; rest; rest &= rest - 1) {
			struct series *s = series_by_id_locked(
				x, (uint32_t)(i * 64 + (size_t)__builtin_ctzll(rest)));

			/* They stay in the index as long as the window is in the list. */
			if (s && s->job) /* numeric ones are taken by themselves */
				c->series[c->n++] = (struct cut_series){ s, s->job->id };
		}
	series_unlock(x);
	if (!c->series)
		return err_nomem(err, "cut");
	qsort_r(c->series, c->n, sizeof(*c->series), cut_cmp, c);
	return ERR_OK;
}

/* ---- rows ---- */

static bool cut_reserve(struct cutting *c)
{
	size_t n = (size_t)c->view.n + 1, values = n * (c->view.columns_n + 1);

	if (n > c->cap) {
		free(c->stacks);
		free(c->sets);
		c->stacks = malloc(n * 2 * sizeof(*c->stacks));
		c->sets = malloc(n * 2 * sizeof(*c->sets));
		c->cap = c->stacks && c->sets ? n * 2 : 0;
	}
	if (values > c->values_cap) {
		free(c->values);
		c->values = malloc(values * 2 * sizeof(*c->values));
		c->values_cap = c->values ? values * 2 : 0;
	}
	return c->cap && c->values_cap;
}

/* ERR_CORRUPT: it is damaged. */
static enum err_code cut_decode(
	struct cutting *cutting, struct str bytes, int64_t ts_ns, struct row *out, struct err *err)
{
	struct row_view *v = &cutting->view;
	enum err_code rc;

	if ((rc = row_parse(bytes, ts_ns, v, err)))
		return rc;
	if (!cut_reserve(cutting))
		return err_nomem(err, "cut");
	if ((rc = row_ids(v, cutting->stacks, cutting->sets, err)))
		return rc;
	for (uint32_t c = 0; c < v->columns_n; c++)
		if ((rc = row_values(v, c, cutting->values + (size_t)c * v->n, err)))
			return rc;
	if ((rc = row_check_ids(cutting->p, v, cutting->stacks, cutting->sets, err)))
		return rc;
	*out = (struct row){ v->header, v->interval_ns, v->time_nanos, v->duration_nanos, v->period,
		v->n, v->columns_n, cutting->stacks, v->label_sets.len ? cutting->sets : NULL,
		cutting->values, 0, NULL, v->links };
	return ERR_OK;
}

static void cut_leave_out(struct cutting *c, const struct err *why)
{
	if (!c->left_out++)
		c->first_left = *why;
}

static enum err_code cut_note_id(struct cutting *c, uint32_t series, uint32_t id, struct err *err)
{
	if (!array_room(&c->ids, c->ids_n, 1, &c->ids_cap))
		return err_nomem(err, "cut");
	c->ids[c->ids_n++] = (struct cut_id){ series, id };
	return ERR_OK;
}

static enum err_code cut_begin_series(struct cutting *c, size_t i, bool *begun, struct err *err)
{
	enum err_code rc;
	uint32_t id;

	if (*begun)
		return ERR_OK;
	*begun = true;
	if (!c->given) {
		c->given = true;
		if ((rc = block_builder_partition(c->m, c->p, err)))
			return rc;
	}
	if ((rc = block_builder_series(c->m, c->series[i].s->labels, false, &id, err)))
		return rc;
	return cut_note_id(c, c->series[i].s->id, id, err);
}

/* A row whose epoch is not known is found in each epoch that has its time: the first counts. */
static void cut_leave_out_once(
	struct cutting *c, const struct job *job, int64_t ts_ns, const struct err *why)
{
	struct window_span span;

	for (uint32_t i = 0; i < c->epoch_at && window_epoch_at(c->db, c->w, job, i, &span); i++)
		if (ts_ns > span.min_ns && ts_ns <= span.max_ns)
			return;
	cut_leave_out(c, why);
}

/* True if the row is of another epoch; an epoch that the window does not know is damage. */
static bool cut_is_others(struct cutting *c, const struct job *job, int64_t ts_ns, struct str bytes)
{
	uint32_t epoch;
	struct err why;
	bool known;

	if (!row_epoch(bytes, &epoch) || epoch == c->p->epoch)
		return false;
	mutex_lock(&c->db->lock);
	known = window_epoch_locked(c->w, job, epoch) != NULL;
	mutex_unlock(&c->db->lock);
	if (!known) {
		err_set(&why, ERR_CORRUPT, "a row of job \"" STR_FMT "\" uses symbols that are missing",
			STR_ARG(job->name));
		cut_leave_out_once(c, job, ts_ns, &why);
	}
	return true;
}

static enum err_code cut_rows(struct cutting *c, size_t i, struct err *err)
{
	uint32_t series = c->series[i].s->id, id;
	struct key key = key_row(series, c->min_ns + 1);
	const struct deleted_range *deleted;
	size_t deleted_n = deleted_of(c->deleted, series, &deleted);
	const enum step_rollup rollup = db_counts_missed(c->db) ? STEP_MADE_MISSED : STEP_MADE;
	enum err_code rc = ERR_OK;
	bool begun = false;
	struct str bytes;
	struct row row;
	struct err why;
	int64_t ts;

	for (store_iter_seek(c->it, key_str(&key)); store_iter_valid(c->it); store_iter_next(c->it)) {
		if (!key_parse_row(store_iter_key(c->it), &id, &ts) || id != series || ts > c->max_ns)
			break;
		if (deleted_has(deleted, deleted_n, ts))
			continue;
		if (!(rc = store_iter_value(c->it, &bytes, &why))) {
			if (cut_is_others(c, c->series[i].s->job, ts, bytes))
				continue;
			rc = cut_decode(c, bytes, ts, &row, &why);
		}
		if (rc == ERR_CORRUPT) {
			cut_leave_out_once(c, c->series[i].s->job, ts, &why);
			rc = ERR_OK;
			continue;
		}
		if (rc)
			return err_copy(err, &why);
		if ((rc = cut_begin_series(c, i, &begun, err)) ||
			(rc = block_builder_row(c->m, ts, &row, rollup, err)))
			return rc;
	}
	return ERR_OK;
}

static void cut_end_epoch(struct cutting *c)
{
	if (c->p && !c->given)
		partition_unpin(c->db, c->p);
	c->p = NULL;
	c->given = false;
}

static enum err_code cut_begin_epoch(
	struct cutting *c, struct job *job, const struct window_span *span, struct err *err)
{
	enum err_code rc;
	struct err why;

	cut_end_epoch(c);
	c->min_ns = span->min_ns;
	c->max_ns = span->max_ns;
	if ((rc = partition_pin(c->db, job->name, job->id, span->epoch, &c->p, err))) {
		c->p = NULL;
		return rc;
	}
	rc = partition_need_window(c->db, c->p, c->w, &why);
	if (rc == ERR_CORRUPT) /* each row is checked for the symbols it needs */
		return ERR_OK;
	if (rc == ERR_EXISTS) { /* its ids mean something else: none of its rows can be read */
		cut_leave_out(c, &why);
		cut_end_epoch(c);
		return ERR_OK;
	}
	return rc ? err_copy(err, &why) : ERR_OK;
}

/* Epoch by epoch: a table at a time. */
static enum err_code cut_job(struct cutting *c, size_t from, size_t to, struct err *err)
{
	struct job *job = c->series[from].s->job;
	struct window_span span;
	enum err_code rc = ERR_OK;

	for (uint32_t k = 0; window_epoch_at(c->db, c->w, job, k, &span) && !rc; k++) {
		c->epoch_at = k;
		rc = cut_begin_epoch(c, job, &span, err);
		for (size_t i = from; i < to && !rc && c->p; i++)
			rc = cut_rows(c, i, err);
		cut_end_epoch(c);
	}
	return rc;
}

static enum err_code cut_all(struct cutting *c, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0, next; i < c->n && !rc; i = next) {
		for (next = i + 1; next < c->n && c->series[next].job_id == c->series[i].job_id;)
			next++;
		rc = cut_job(c, i, next, err);
	}
	if (!rc && (rc = store_iter_status(c->it, err)) == ERR_CORRUPT) {
		cut_leave_out(c, err);
		rc = ERR_OK;
	}
	return rc;
}

/* ---- the swap ---- */

/* Deletions that came while the block was made. db->blocks_files is held. */
static enum err_code cut_carry_deleted(struct cutting *c, struct err *err)
{
	struct deleted now = { c->w->deleted, c->w->deleted_n };
	const struct deleted_range *v;
	struct deleted_range *out;
	size_t n = 0;
	enum err_code rc;

	mutex_assert_held(&c->db->blocks_files);
	if (now.v == c->deleted.v)
		return ERR_OK;
	for (size_t i = 0; i < c->ids_n; i++)
		n += deleted_of(now, c->ids[i].series, &v);
	if (!(out = malloc((now.n + n + 1) * sizeof(*out))))
		return err_nomem(err, "cut");
	n = 0;
	for (size_t i = 0; i < c->numbers.n; i++)
		for (size_t k = deleted_of(now, c->numbers.series[i]->id, &v);
			 k && c->numbers.ids[i] != UINT32_MAX; k--, v++)
			out[n++] = (struct deleted_range){ c->numbers.ids[i], v->min_ns, v->max_ns };
	for (size_t i = 0; i < c->ids_n; i++)
		for (size_t k = deleted_of(now, c->ids[i].series, &v); k; k--, v++)
			out[n++] = (struct deleted_range){ c->ids[i].id, v->min_ns, v->max_ns };
	rc = block_builder_set_deleted(c->m, out, n, err);
	free(out);
	return rc;
}

static enum err_code cut_swap(struct cutting *c, struct err *err)
{
	struct db *db = c->db;
	struct db_block *b = NULL;
	enum err_code rc;

	mutex_lock(&db->blocks_files);
	rc = blocks_reserve(db, "cut", err);
	if (!rc && !(rc = cut_carry_deleted(c, err)) && !(rc = block_builder_publish(c->m, &b, err)) &&
		!(rc = inventory_sync_swap(db, NULL, 0, c->w, b, err))) {
		mutex_lock(&db->lock);
		blocks_swap_locked(db, NULL, 0, c->w, b);
		mutex_unlock(&db->lock);
	}
	mutex_unlock(&db->blocks_files);
	return rc;
}

/* No row of the window is left to keep. */
static enum err_code cut_give_up(struct cutting *c, struct err *err)
{
	struct db *db = c->db;
	enum err_code rc;

	mutex_lock(&db->blocks_files);
	if (!(rc = inventory_sync_drop_window(db, c->w->start_ns, err))) {
		mutex_lock(&db->lock);
		blocks_swap_locked(db, NULL, 0, c->w, NULL);
		mutex_unlock(&db->lock);
	}
	mutex_unlock(&db->blocks_files);
	return rc;
}

static enum err_code cut_finish(struct cutting *c, struct err *err)
{
	struct block_meta meta = { .level = 1, .heads = &c->w->start_ns, .heads_n = 1 };
	enum err_code rc;

	if (!block_builder_series_n(c->m))
		return cut_give_up(c, err);
	/* The ids are saved before the window goes: then only the block has them. */
	if ((rc = ids_save(c->db, err)) || (rc = block_builder_finish(c->m, &meta, err)))
		return rc;
	return cut_swap(c, err);
}

/*
 * Where the next rows come a window later or more, the block ends with the second of its last row:
 * if the window was cut too early, by a clock that was ahead, the rest of its time can be taken
 * again.
 */
static int64_t cut_end(struct db *db, const struct window *w)
{
	int64_t end = (w->count.max_ns + NS_PER_S - 1) / NS_PER_S * NS_PER_S, next_ns = INT64_MAX;

	mutex_lock(&db->lock);
	for (size_t i = db->windows_n; i-- > 0 && db->windows[i] != w;)
		next_ns = db->windows[i]->start_ns > db->windows[i]->count.min_ns ?
			db->windows[i]->start_ns :
			db->windows[i]->count.min_ns;
	mutex_unlock(&db->lock);
	return end > w->start_ns && end < w->end_ns && next_ns - end >= w->end_ns - w->start_ns ?
		end :
		w->end_ns;
}

static enum err_code cut_window(struct cutting *c, struct err *err)
{
	struct block_builder_options o = { c->w->start_ns, cut_end(c->db, c->w), true, { 0 } };
	enum err_code rc;

	if ((rc = compaction_room(c->db, head_disk_bytes(c->db, c->w), err)) ||
		(rc = group_rules_copy(c->db, &c->a, &c->rules, err)) || (rc = cut_collect_series(c, err)))
		return rc;
	o.rules = c->rules;
	if (!(c->snap = store_snapshot_open(c->w->store)) ||
		!(c->it = store_scan_open(c->w->store, c->snap)))
		return err_nomem(err, "cut");
	if ((rc = block_builder_open(c->db, &o, &c->m, err)) ||
		(rc = numbers_cut(c->db, c->w, c->it, c->deleted, c->m, &c->numbers, err)) ||
		(rc = cut_all(c, err)))
		return rc;
	if (c->numbers.left_out && !c->left_out)
		c->first_left = c->numbers.first_left;
	c->left_out += c->numbers.left_out;
	return cut_finish(c, err);
}

static void cut_release(struct cutting *c)
{
	store_iter_close(c->it);
	if (c->snap)
		store_snapshot_close(c->w->store, c->snap);
	block_builder_close(c->m);
	number_cut_release(&c->numbers);
	free(c->series);
	free(c->ids);
	free(c->stacks);
	free(c->sets);
	free(c->values);
	arena_release(&c->a);
}

static void cut_lose_left_out(struct cutting *c)
{
	char *where = head_where(c->w, "%s", " left out of its block");

	if (where)
		(void)!db_lost(
			c->db, LOSS_PROFILES, where, c->w->start_ns, c->w->end_ns, c->left_out, &c->first_left);
	free(where);
}

static void cut_report(struct cutting *c, int64_t took_ns, uint64_t rows)
{
	metric_add(&rows_cut, NULL, (double)rows);
	metric_observe(&cut_seconds, NULL, (double)took_ns / 1e9);
	log_info("tsdb", "window became a block", LOG_S("store", c->w->dir), LOG_I("rows", rows),
		LOG_I("numbers", block_builder_numbers(c->m)),
		LOG_I("series", block_builder_series_n(c->m)), LOG_D("elapsed", took_ns));
	if (!c->left_out)
		return;
	metric_add(&rows_left, NULL, (double)c->left_out);
	cut_lose_left_out(c);
	db_damage(c->db, c->w, "rows left out of the block", &c->first_left);
	log_error("tsdb", "damaged rows left out", LOG_I("rows", c->left_out), LOG_E(&c->first_left));
}

enum err_code cut_oldest(struct db *db, bool *did, struct err *err)
{
	struct cutting t = { .db = db };
	int64_t start = clock_monotonic_ns(), start_ns;
	enum err_code rc;

	*did = false;
	if (!(t.w = cut_take_due(db)))
		return ERR_OK;
	arena_init(&t.a, 0);
	mutex_lock(&db->lock);
	t.deleted = (struct deleted){ t.w->deleted, t.w->deleted_n };
	mutex_unlock(&db->lock);
	rc = cut_window(&t, err);
	if (!rc)
		cut_report(&t, clock_monotonic_ns() - start, block_builder_rows(t.m));
	cut_release(&t);
	if (rc) {
		err_wrap(err, rc, "cut window %s", t.w->dir);
		head_unpin(db, t.w);
		return rc;
	}
	*did = true;
	start_ns = t.w->start_ns;
	head_unpin(db, t.w);
	head_remove(db, t.w, "cut");
	window_deleted_remove(db, start_ns);
	return ERR_OK;
}
