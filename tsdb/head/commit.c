#include "tsdb/head/commit.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "tsdb/catalog/jobs.h"
#include "tsdb/catalog/room.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/head/numbers.h"
#include "tsdb/head/ship_internal.h"

/*
 * Group commit. One thread takes all that is queued, writes one synced batch per window, then
 * acknowledges.
 *
 * A sync costs as much CPU as several small rows, and each wake-up of the thread two switches. So
 * rows gather first: as many as were under way when the sync before ended, for GATHER_NS at most.
 * Appenders that wait for each acknowledgement are thus all in one group, and nobody waits for a
 * row that cannot come: a single one finds the thread ready. Rows of scrapes, which come without
 * waiting, make a group of all that come in that time, and wake the thread once.
 *
 * After a put that failed LevelDB may say OK to later ones and lose them (seen after a full disk),
 * so from then on nothing is acknowledged: everything queued gets the error, and the state is
 * DB_FAILED. Once the store has no users it is closed, opened and compared with what was
 * acknowledged. Only then appends are taken again. While the disk is full the store stays open for
 * readers.
 */
#define QUEUED_SLOTS 4096u
#define GATHER_NS (5 * NS_PER_MS)
#define GATHER_BYTES (DB_QUEUE_BYTES_MAX / 4)

struct commit {
	struct mutex lock;
	struct cond filled, emptied;
	struct commit_row *first, **last;
	size_t bytes; /* queued, and being written */
	size_t queued_n; /* rows in the list */
	size_t taken_n; /* rows being written; the commit thread's */
	size_t expected; /* so many rows will be a group */
	bool hurry; /* somebody waits for the queue */
	uint64_t rows; /* ever queued */
	/* Counts of rows and values that wait for their sync, by a hash of series and time; different
	 * ones may share a count. */
	_Atomic uint32_t queued[QUEUED_SLOTS];
	_Atomic uint64_t generation;
	bool closing;
	struct thread thread;
	struct store_batch *batch;
	struct buf value;
};

METRIC_HISTOGRAM(commit_seconds, "epimetheus_tsdb_commit_duration_seconds",
	"Time a synced group commit takes.", NULL);
METRIC_COUNTER(
	commit_rows, "epimetheus_tsdb_rows_committed_total", "Rows stored and acknowledged.", NULL);
METRIC_COUNTER(
	commit_failures, "epimetheus_tsdb_commit_failures_total", "Group commits that failed.", NULL);
METRIC_COUNTER(
	reopened, "epimetheus_tsdb_reopened_total", "Stores reopened after a failed commit.", "result");
METRIC_GAUGE(
	queue_bytes, "epimetheus_tsdb_queue_bytes", "Bytes of rows that wait for their sync.", NULL);

static _Atomic uint32_t *commit_queued_slot(struct commit *c, const struct series *s, int64_t ts_ns)
{
	return &c->queued[map_hash_u64((uint64_t)ts_ns * 31 + s->id) % QUEUED_SLOTS];
}

/* Counts a row that enters the queue or leaves it. */
static void commit_count_queued(struct commit *c, const struct commit_row *r, int more)
{
	const struct series *s = r->series;
	int64_t ts_ns = r->ts_ns;

	if (!r->numbers)
		atomic_fetch_add(commit_queued_slot(c, s, ts_ns), (uint32_t)more);
	for (size_t i = 0; r->numbers && number_batch_at(r->numbers, i, &s, &ts_ns); i++)
		atomic_fetch_add(commit_queued_slot(c, s, ts_ns), (uint32_t)more);
}

/* Its room in the queue is given back later, with that of others. */
static size_t commit_row_done(
	struct db *db, struct commit_row *r, enum err_code rc, const struct err *err)
{
	size_t bytes = r->bytes;

	r->acked(r->ctx, rc, err);
	commit_count_queued(db->commit, r, -1);
	if (r->numbers)
		number_batch_close(r->numbers);
	else
		series_release(r->series);
	base_release(db, &r->before);
	store_batch_close(r->batch);
	free(r);
	return bytes;
}

static void commit_give_room(struct commit *c, size_t bytes)
{
	mutex_lock(&c->lock);
	assert(c->bytes >= bytes);
	c->bytes -= bytes;
	metric_set(&queue_bytes, NULL, (double)c->bytes);
	cond_broadcast(&c->emptied);
	mutex_unlock(&c->lock);
}

/* A row that was not stored gives the delta base before it back: the next scrape's delta then has
 * the counts of both. Of several rows of a series the first one's base is right; if a later row was
 * stored after all, none is. */
struct given {
	struct given *next;
	struct series *series; /* in use */
	int64_t ts_ns;
	uint64_t number; /* of the row */
	struct delta_base before;
};

/* No append holds the lock while it waits for room: the generation was raised before. */
static void commit_give_back(struct db *db, struct given *g)
{
	struct series *s = g->series;
	uint64_t generation = commit_generation(db);
	struct delta_base was;

	mutex_lock(&s->job->lock);
	if (s->stored_row < g->number &&
		(s->given_back != generation || g->number < s->given_back_row)) {
		was = s->base;
		s->base = g->before;
		g->before = was;
		series_note_base(s);
		s->given_back = generation;
		s->given_back_row = g->number;
	}
	mutex_unlock(&s->job->lock);
}

static void given_end(struct db *db, struct given *g)
{
	base_release(db, &g->before);
	series_release(g->series);
	free(g);
}

/* Puts a row's base on the list. Without memory the counts of its interval are lost, as the row
 * is. */
static void commit_row_keep_before(struct commit_row *r, struct given **list)
{
	struct given *g = r->has_before ? calloc(1, sizeof(*g)) : NULL;

	if (!g)
		return;
	*g = (struct given){ *list, r->series, r->ts_ns, r->number, r->before };
	r->before = (struct delta_base){ 0 };
	r->has_before = false;
	atomic_fetch_add(&r->series->uses, 1);
	*list = g;
}

/* A put that failed may have reached the disk after all: rows that are there count as stored. w
 * NULL: none can be there. */
static void commit_give_back_all(struct db *db, struct window *w, struct given *list)
{
	for (struct given *g = list, *next; g; g = next) {
		struct key key = key_row(g->series->id, g->ts_ns);
		struct buf value = { 0 };
		struct err err;

		next = g->next;
		if (!w || store_get(w->store, key_str(&key), &value, &err) == ERR_NOT_FOUND)
			commit_give_back(db, g);
		buf_release(&value);
		given_end(db, g);
	}
}

/* stored_row is the commit thread's. */
static void commit_row_note_stored(struct commit_row *r)
{
	if (r->has_before && r->series->stored_row < r->number)
		r->series->stored_row = r->number;
}

uint64_t commit_generation(struct db *db)
{
	return atomic_load(&db->commit->generation);
}

static void commit_raise(_Atomic int64_t *to, int64_t value)
{
	int64_t is = atomic_load(to);

	while (is < value && !atomic_compare_exchange_weak(to, &is, value))
		;
}

/* True if waiting for more rows is not worth it. */
static bool commit_is_group(const struct commit *c)
{
	return c->queued_n >= c->expected || c->bytes >= GATHER_BYTES || c->hurry || c->closing;
}

static void commit_wait_emptied(struct commit *c)
{
	c->hurry = true;
	cond_signal(&c->filled);
	cond_wait(&c->emptied, &c->lock);
}

enum err_code commit_enqueue(
	struct db *db, struct commit_row *row, uint64_t generation, struct err *err)
{
	struct commit *c = db->commit;
	enum err_code rc = ERR_OK;

	assert(row->acked && row->batch && row->window);
	assert(!row->series == !!row->numbers); /* one of the two */
	row->next = NULL;
	mutex_lock(&c->lock);
	/* A row larger than the whole queue goes alone. */
	while (!c->closing && atomic_load(&c->generation) == generation && c->bytes &&
		c->bytes + row->bytes > DB_QUEUE_BYTES_MAX)
		commit_wait_emptied(c);
	if (c->closing) {
		rc = err_set(err, ERR_UNAVAILABLE, "the database is closing");
	} else if (atomic_load(&c->generation) != generation) {
		rc = err_set(err, ERR_UNAVAILABLE, "a commit failed; the store is being reopened");
	} else {
		row->number = ++c->rows;
		commit_raise(&db->queued_max_ns, row->ts_ns);
		commit_count_queued(c, row, 1);
		*c->last = row;
		c->last = &row->next;
		c->bytes += row->bytes;
		c->queued_n++;
		if (c->queued_n == 1 || commit_is_group(c))
			cond_signal(&c->filled);
	}
	mutex_unlock(&c->lock);
	return rc;
}

enum err_code commit_wait(
	struct db *db, const struct series *s, int64_t ts_ns, uint64_t generation, struct err *err)
{
	struct commit *c = db->commit;
	bool ok;

	mutex_lock(&c->lock);
	while (!c->closing && atomic_load(&c->generation) == generation &&
		atomic_load(commit_queued_slot(c, s, ts_ns)))
		commit_wait_emptied(c);
	ok = !c->closing && atomic_load(&c->generation) == generation;
	mutex_unlock(&c->lock);
	return ok ? ERR_OK :
				err_set(err, ERR_UNAVAILABLE, "a commit failed, or the database is closing");
}

/* ---- writing ---- */

static void commit_count_row(struct window_count *c, const struct commit_row *r)
{
	if (r->numbers) {
		number_batch_count(r->numbers, c);
		return;
	}
	if (window_is_empty(c) || r->ts_ns < c->min_ns)
		c->min_ns = r->ts_ns;
	if (window_is_empty(c) || r->ts_ns > c->max_ns)
		c->max_ns = r->ts_ns;
	c->rows++;
	c->samples += r->samples;
	c->symbols += r->symbols;
}

static void commit_note_row(struct db *db, struct commit_row *r)
{
	commit_raise(&db->max_ts_ns, r->ts_ns);
	if (r->numbers) {
		number_batch_stored(db, r->numbers);
		return;
	}
	commit_raise(&r->series->last_ts_ns, r->ts_ns);
	atomic_fetch_add(&db->rows, 1);
	atomic_fetch_add(&db->samples, r->samples);
	metric_add(&commit_rows, NULL, 1);
	commit_row_note_stored(r);
}

static void commit_stored(
	struct db *db, struct window *w, const struct window_count *count, struct commit_row *rows)
{
	size_t bytes = 0;
	unsigned n = 0;

	head_write_mark(db, w, count);
	mutex_lock(&db->lock);
	w->count = *count;
	mutex_unlock(&db->lock);
	for (struct commit_row *r = rows, *next; r; r = next, n++) {
		next = r->next;
		commit_note_row(db, r);
		bytes += commit_row_done(db, r, ERR_OK, NULL);
	}
	head_unpin_writers(db, w, n);
	commit_give_room(db->commit, bytes);
}

/* Those whose acknowledgement somebody may wait for before the next row. */
static void commit_expect(struct commit *c)
{
	mutex_lock(&c->lock);
	c->expected = c->taken_n + c->queued_n;
	mutex_unlock(&c->lock);
}

static enum err_code commit_write_window(
	struct db *db, struct window *w, struct commit_row *rows, struct err *err)
{
	struct commit *c = db->commit;
	int64_t start = clock_monotonic_ns();
	struct window_count count = w->count; /* this thread alone writes it */
	struct key key = key_of('c');
	enum err_code rc;

	store_batch_clear(c->batch);
	store_batch_set_identity(c->batch, w->identity);
	for (struct commit_row *r = rows; r; r = r->next) {
		store_batch_append(c->batch, r->batch);
		commit_count_row(&count, r);
	}
	count.seq++;
	buf_clear(&c->value);
	head_encode_count(&count, &c->value);
	store_batch_put(c->batch, key_str(&key), &c->value);
	if (buf_failed(&c->value))
		return err_nomem(err, "commit");
	ship_begin(db, w, c->batch, &count);
	rc = store_write(w->store, c->batch, err);
	ship_end(db, w, rc == ERR_OK);
	if (rc)
		return rc;
	commit_expect(c);
	metric_observe(&commit_seconds, NULL, (double)(clock_monotonic_ns() - start) / 1e9);
	head_names_append(db, w, store_batch_copies(c->batch));
	commit_stored(db, w, &count, rows);
	return ERR_OK;
}

/* ---- failing ---- */

static struct commit_row *commit_take_all(struct commit *c)
{
	struct commit_row *rows = c->first;

	c->first = NULL;
	c->last = &c->first;
	c->queued_n = 0;
	c->hurry = false;
	return rows;
}

/* Bases of the failed window's rows go to *doubtful, the others' are given back. */
static void commit_refuse(struct db *db, const struct window *w, struct commit_row *rows,
	enum err_code rc, const struct err *err, struct given **doubtful)
{
	struct given *others = NULL;
	struct window *of;
	size_t bytes = 0;

	for (struct commit_row *r = rows; r; r = r->next)
		commit_row_keep_before(r, r->window == w ? doubtful : &others);
	commit_give_back_all(db, NULL, others);
	for (struct commit_row *r = rows, *next; r; r = next) {
		next = r->next;
		of = r->window;
		bytes += commit_row_done(db, r, rc, err);
		head_unpin_writer(db, of);
	}
	commit_give_room(db->commit, bytes);
}

static bool commit_is_closing(struct commit *c)
{
	bool closing;

	mutex_lock(&c->lock);
	closing = c->closing;
	mutex_unlock(&c->lock);
	return closing;
}

static bool commit_has_room(struct db *db)
{
	struct disk_room room;

	return room_look(db, &room, NULL) || !room_lacks(db, &room, false, NULL);
}

static void commit_wait_a_little(struct commit *c, int64_t ns)
{
	(void)cond_sleep_unless(&c->filled, &c->lock, &c->closing, ns);
}

static void commit_fail(struct db *db, struct window *w, struct commit_row *rows, enum err_code rc,
	const struct err *why)
{
	struct commit *c = db->commit;
	struct given *doubtful = NULL;
	enum err_code failed = rc;
	struct commit_row *queued;
	struct err err, told = *why;
	int64_t pause = NS_PER_S / 50;

	metric_add(&commit_failures, NULL, 1);
	log_error("tsdb", "commit failed", LOG_S("store", w->dir), LOG_E(why));
	rc = room_explain(db, rc, &told); /* a full disk is no failure: the rows may come again */
	db_set_state(db, DB_FAILED, &told);
	mutex_lock(&c->lock);
	atomic_fetch_add(&c->generation, 1);
	queued = commit_take_all(c);
	cond_broadcast(&c->emptied);
	mutex_unlock(&c->lock);
	commit_refuse(db, w, rows, rc, &told, &doubtful);
	commit_refuse(db, NULL, queued, rc, &told, NULL);
	/* Until it is open again or the database closes; one try per second at most. */
	while (!commit_is_closing(c)) {
		if (commit_has_room(db)) {
			if (!(rc = head_reopen(db, w, failed, &err))) {
				metric_add(&reopened, "ok", 1);
				log_info("tsdb", "store reopened", LOG_S("store", w->dir));
				commit_give_back_all(db, w, doubtful);
				db_set_state(db, DB_READY, NULL);
				return;
			}
			metric_add(&reopened, "failed", 1);
			log_error("tsdb", "reopening failed", LOG_S("store", w->dir), LOG_E(&err));
			db_set_state(db, DB_FAILED, &err);
		}
		commit_wait_a_little(c, pause);
		pause = pause * 2 < NS_PER_S ? pause * 2 : NS_PER_S;
	}
	commit_give_back_all(db, NULL, doubtful);
}

/* Rows of the list's first window into *rows, in order; the others stay in *rest. */
static struct window *commit_row_split(struct commit_row **rest, struct commit_row **rows)
{
	struct window *w = (*rest)->window;
	struct commit_row **last = rows, **at = rest, *r;

	while ((r = *at)) {
		if (r->window != w) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		r->next = NULL;
		*last = r;
		last = &r->next;
	}
	return w;
}

static void commit_all(struct db *db, struct commit_row *rest)
{
	while (rest) {
		struct commit_row *rows = NULL, *end;
		struct window *w = commit_row_split(&rest, &rows);
		enum err_code rc;
		struct err err;

		if (!(rc = commit_write_window(db, w, rows, &err)))
			continue;
		for (end = rows; end->next; end = end->next)
			;
		end->next = rest;
		/* One pin outlives the rows: the window is needed for reopening. */
		mutex_lock(&db->lock);
		w->pins++;
		w->writers++;
		mutex_unlock(&db->lock);
		commit_fail(db, w, rows, rc, &err);
		head_unpin_writer(db, w);
		return;
	}
}

/* Under the lock: waits for a row, then for its group. */
static void commit_gather(struct commit *c)
{
	int64_t until;

	while (!c->first && !c->closing)
		cond_wait(&c->filled, &c->lock);
	until = clock_monotonic_ns() + GATHER_NS;
	while (!commit_is_group(c) && cond_wait_until(&c->filled, &c->lock, until))
		;
}

static void commit_run(void *ctx)
{
	struct db *db = ctx;
	struct commit *c = db->commit;
	struct commit_row *rows;

	for (;;) { /* until closed and empty */
		mutex_lock(&c->lock);
		commit_gather(c);
		c->taken_n = c->queued_n;
		rows = commit_take_all(c);
		metric_set(&queue_bytes, NULL, (double)c->bytes);
		mutex_unlock(&c->lock);
		if (!rows)
			return;
		commit_all(db, rows);
	}
}

enum err_code commit_open(struct db *db, struct err *err)
{
	struct commit *c = calloc(1, sizeof(*c));

	if (!c || !(c->batch = store_batch_open())) {
		free(c);
		return err_nomem(err, "commit");
	}
	mutex_init(&c->lock);
	cond_init(&c->filled);
	cond_init(&c->emptied);
	c->last = &c->first;
	db->commit = c;
	return thread_start(&c->thread, "tsdb-commit", commit_run, db, err);
}

void commit_close(struct db *db)
{
	struct commit *c = db->commit;

	if (!c)
		return;
	mutex_lock(&c->lock);
	c->closing = true;
	cond_broadcast(&c->filled);
	cond_broadcast(&c->emptied);
	mutex_unlock(&c->lock);
	thread_join(&c->thread);
	store_batch_close(c->batch);
	buf_release(&c->value);
	cond_destroy(&c->filled);
	cond_destroy(&c->emptied);
	mutex_destroy(&c->lock);
	free(c);
	db->commit = NULL;
}
