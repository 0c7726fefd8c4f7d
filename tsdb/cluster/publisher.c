#include "tsdb/cluster/publisher.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/catalog/state.h"
#include "tsdb/cluster/publisher_internal.h"
#include "tsdb/cluster/restore.h"
#include "tsdb/lists/losses.h"

#define UPLOAD_NICE 10
#define WAKE_NS (200 * NS_PER_MS) /* what happens at once is published together */
#define ASK_EVERY_NS NS_PER_S

/* ---- life ---- */

static enum err_code publisher_open_paths(
	struct publisher *p, const struct publisher_options *o, struct err *err)
{
	snprintf(p->shard, sizeof(p->shard), STR_FMT, STR_ARG(o->shard));
	p->o.shard = str_of(p->shard);
	if (!(p->dir = strdup(o->dir)) || asprintf(&p->tmp_path, "%s/publish.tmp", o->dir) < 0 ||
		asprintf(&p->snapshot_path, "%s/publish-snapshot.tmp", o->dir) < 0)
		return err_nomem(err, "publisher");
	p->o.dir = p->dir;
	p->o.host = NULL;
	return ERR_OK;
}

static void publisher_options_set_defaults(struct publisher_options *o)
{
	o->fs = o->fs ? o->fs : &fs_posix;
	o->interval_ns = o->interval_ns ? o->interval_ns : 30 * NS_PER_S;
	o->delete_delay_ns = o->delete_delay_ns ? o->delete_delay_ns : 15 * NS_PER_MIN;
	o->orphans_every_ns = o->orphans_every_ns ? o->orphans_every_ns : NS_PER_DAY;
	if (o->prices.put_per_million == 0 && o->prices.get_per_million == 0 &&
		o->prices.storage_per_tb_month == 0)
		o->prices = (struct bucket_prices){ 5, 0.4, 23 };
}

static void publisher_release(struct publisher *p)
{
	lease_close(p->lease);
	for (size_t i = 0; i < p->found_n; i++)
		free(p->found[i]);
	free(p->found);
	free(p->stamps);
	free(p->unknown);
	free(p->there);
	free(p->wanted);
	free(p->ready);
	free(p->failed);
	free(p->snapshots);
	free(p->puts);
	free(p->dir);
	free(p->tmp_path);
	free(p->snapshot_path);
	arena_release(&p->arena);
	mutex_destroy(&p->lock);
	mutex_destroy(&p->round_lock);
	cond_destroy(&p->wake);
	cond_destroy(&p->work);
	cond_destroy(&p->deleted);
	free(p);
}

enum err_code publisher_open(
	const struct publisher_options *o, struct publisher **out, struct err *err)
{
	struct lease_options lo = { .bucket = o->bucket,
		.shard = o->shard,
		.dir = o->dir,
		.fs = o->fs,
		.host = o->host,
		.lease_ns = o->lease_ns,
		.address = o->address,
		.no_probe = o->no_probe,
		.waiting = o->waiting };
	struct publisher *p = calloc(1, sizeof(*p));
	enum err_code rc;

	if (!p)
		return err_nomem(err, "publisher");
	p->o = *o;
	publisher_options_set_defaults(&p->o);
	arena_init(&p->arena, 0);
	mutex_init(&p->lock);
	mutex_init(&p->round_lock);
	cond_init(&p->wake);
	cond_init(&p->work);
	cond_init(&p->deleted);
	lo.interval_ns = p->o.interval_ns;
	if ((rc = lease_open(&lo, &p->lease, err)) || (rc = publisher_open_paths(p, o, err))) {
		publisher_release(p);
		return rc;
	}
	*out = p;
	return ERR_OK;
}

/* ---- what failed, and what works again ---- */

static void publisher_note(
	struct publisher *p, bool *failed, struct err *last, enum err_code rc, const struct err *why)
{
	int64_t now = clock_monotonic_ns();
	bool was, other;

	if (rc == ERR_CANCELED) /* it ends */
		return;

	mutex_lock(&p->lock);
	was = *failed;
	*failed = rc != ERR_OK;
	other = failed == &p->round_failed ? p->work_failed : p->round_failed;
	if (rc) {
		*last = *why;
		p->counts.failures++;
		if (!was && !other)
			p->failed_since_ns = now;
	}
	now -= p->failed_since_ns;
	mutex_unlock(&p->lock);
	if (rc && lease_is_fenced(p->lease))
		log_error("cluster", "the lease is lost: nothing is published any more", LOG_E(why));
	else if (rc && !was)
		log_warn("cluster", "publishing failed, is tried again", LOG_E(why));
	else if (!rc && was)
		log_info("cluster", "publishing works again", LOG_D("after", now));
}

enum err_code publisher_round(struct publisher *p, struct err *err)
{
	struct err why = { 0 };
	enum err_code rc = round_run(p, false, &why);

	publisher_note(p, &p->round_failed, &p->round_err, rc, &why);
	return rc ? err_copy(err, &why) : ERR_OK;
}

enum err_code publisher_work(struct publisher *p, struct err *err)
{
	struct err why = { 0 };
	enum err_code rc;

	mutex_lock(&p->lock);
	p->work_due = false;
	mutex_unlock(&p->lock);
	if (lease_is_fenced(p->lease))
		return err_set(err, ERR_EXISTS, "the lease is lost");
	if (!(rc = upload_all(p, &why)))
		rc = remove_all(p, &why);
	publisher_note(p, &p->work_failed, &p->work_err, rc, &why);
	return rc ? err_copy(err, &why) : ERR_OK;
}

/* ---- threads ---- */

static void publisher_publish_thread(void *ctx)
{
	struct publisher *p = ctx;
	int64_t next = clock_monotonic_ns() + p->o.interval_ns, soon;
	struct err err;

	mutex_lock(&p->lock);
	for (;;) { /* a round each interval, or when woken, until the end */
		while (!p->stopping && !p->woken && cond_wait_until(&p->wake, &p->lock, next))
			;
		if (p->woken && !p->stopping && lease_is_sure(p->lease)) {
			soon = clock_monotonic_ns() + WAKE_NS;
			(void)cond_wait_flag(&p->wake, &p->lock, &p->stopping, soon);
		}
		if (p->stopping || lease_is_fenced(p->lease))
			break;
		p->woken = false;
		mutex_unlock(&p->lock);
		next = clock_monotonic_ns() + p->o.interval_ns;
		(void)!publisher_round(p, &err);
		mutex_lock(&p->lock);
	}
	mutex_unlock(&p->lock);
}

static void publisher_upload_thread(void *ctx)
{
	struct publisher *p = ctx;
	int64_t pause = WORK_PAUSE_NS, until;
	struct err err;

	(void)setpriority(PRIO_PROCESS, 0, UPLOAD_NICE); /* of this thread alone */
	mutex_lock(&p->lock);
	for (;;) { /* when a round has found something to do, until the end */
		while (!p->stopping && !p->work_due)
			cond_wait(&p->work, &p->lock);
		if (p->stopping || lease_is_fenced(p->lease))
			break;
		mutex_unlock(&p->lock);
		if (!publisher_work(p, &err))
			pause = WORK_PAUSE_NS;
		else if (pause < WORK_PAUSE_MAX_NS)
			pause *= 2;
		mutex_lock(&p->lock);
		until = clock_monotonic_ns() + pause;
		while (!p->stopping && p->work_failed && cond_wait_until(&p->work, &p->lock, until))
			;
		p->work_due |= p->work_failed;
	}
	mutex_unlock(&p->lock);
}

enum err_code publisher_take(struct publisher *p, bool idle, struct err *err)
{
	enum err_code rc;
	bool same;

	if ((rc = lease_take(p->lease, idle, &p->arena, &p->m, &same, err)))
		return rc;
	p->behind = !same;
	if (!(p->gone_at = arena_array(&p->arena, int64_t, p->m.gone_n + 1u)))
		return arena_fail(&p->arena, "publisher", err);
	mutex_lock(&p->lock);
	p->confirmed_through_ns = p->m.through_ns;
	mutex_unlock(&p->lock);
	if (p->o.no_threads)
		return ERR_OK;
	return thread_start(&p->publish, "cluster-publish", publisher_publish_thread, p, err);
}

void publisher_cancel(struct publisher *p)
{
	lease_cancel(p->lease);
}

const struct manifest *publisher_taken(const struct publisher *p)
{
	return &p->m;
}

bool publisher_is_behind(const struct publisher *p)
{
	return p->behind;
}

void publisher_restored(struct publisher *p)
{
	mutex_lock(&p->round_lock);
	lease_restored(p->lease);
	p->behind = false;
	mutex_unlock(&p->round_lock);
}

bool publisher_is_loss_due(struct publisher *p)
{
	bool due;

	mutex_lock(&p->lock);
	due = p->m.loss_due;
	mutex_unlock(&p->lock);
	return due;
}

enum err_code publisher_want_loss(struct publisher *p, struct err *err)
{
	struct manifest m;
	enum err_code rc = ERR_OK;

	mutex_lock(&p->round_lock);
	m = p->m;
	m.loss_due = true;
	if (!p->m.loss_due && !p->m.complete && !(rc = lease_write(p->lease, &m, err))) {
		mutex_lock(&p->lock);
		p->m.loss_due = true;
		mutex_unlock(&p->lock);
	}
	mutex_unlock(&p->round_lock);
	return rc;
}

void publisher_note_loss(struct publisher *p)
{
	mutex_lock(&p->round_lock);
	mutex_lock(&p->lock);
	p->m.loss_due = false;
	mutex_unlock(&p->lock);
	mutex_unlock(&p->round_lock);
}

/* After an error p->m stays `complete`. A round before the next attempt says so, and it is true. */
enum err_code publisher_begin(struct publisher *p, struct err *err)
{
	struct manifest m;
	enum err_code rc = ERR_OK;

	mutex_lock(&p->round_lock);
	m = p->m;
	m.complete = false;
	if (p->m.complete && !(rc = lease_write(p->lease, &m, err))) {
		mutex_lock(&p->lock);
		p->m.complete = false;
		mutex_unlock(&p->lock);
	}
	mutex_unlock(&p->round_lock);
	return rc;
}

/* A restore lacked segments of the window. It is not marked as put, so it gets a snapshot. */
static bool publisher_lacks_segments(const struct db *db, const struct manifest_window *w)
{
	char path[64];

	snprintf(path, sizeof(path), "head/%" PRId64 RESTORE_LACKS, w->start_ns / NS_PER_S);
	return losses_has(db->losses, str_of(path));
}

/* The batches of the window in the directory; false: it has no such window. */
static bool publisher_has_batches(struct db *db, const struct manifest_window *w, uint64_t *out)
{
	const struct window *of;
	bool has;

	mutex_lock(&db->lock);
	of = windows_find(db, w->start_ns);
	if ((has = of && of->identity == w->identity))
		*out = of->count.seq;
	mutex_unlock(&db->lock);
	return has;
}

static enum err_code publisher_note_unknown(struct publisher *p, struct db *db, struct err *err)
{
	uint64_t n;

	if (!(p->unknown = calloc(p->m.windows_n + 1u, sizeof(*p->unknown))))
		return err_nomem(err, "publisher");
	for (uint32_t i = 0; i < p->m.windows_n; i++)
		if (!p->m.windows[i].kept && !publisher_has_batches(db, &p->m.windows[i], &n))
			p->unknown[p->unknown_n++] = (struct window_name){ p->m.windows[i].start_ns,
				p->m.windows[i].identity };
	return ERR_OK;
}

/* The snapshot will replace the only copy of these rows, which is in the bucket. */
static void publisher_tell_lost(
	struct db *db, const struct manifest_window *w, uint64_t has, uint64_t last)
{
	char where[64], text[160];
	struct loss l = { .what = LOSS_PROFILES, .min_ns = w->start_ns, .max_ns = w->end_ns };
	struct err err;

	snprintf(
		where, sizeof(where), "head/%" PRId64 " after batch %" PRIu64, w->start_ns / NS_PER_S, has);
	snprintf(text, sizeof(text),
		"the data directory lost batches %" PRIu64 " to %" PRIu64 ", and a snapshot without them "
		"takes the place of what the bucket has",
		has + 1, last);
	l.where = str_of(where);
	l.text = str_of(text);
	log_error("cluster", "profiles are lost", LOG_S("what", where), LOG_S("reason", text));
	if (losses_add(db->losses, &l, NULL, &err))
		log_error("cluster", "loss not noted", LOG_E(&err));
}

/* A machine that lost its power may have lost batches that are in the bucket. */
static void publisher_compare_batches(struct publisher *p, struct db *db, struct manifest_window *w)
{
	uint64_t last = w->segments[w->segments_n - 1].last, has = 0;

	if (!publisher_has_batches(db, w, &has) || last <= has) {
		head_ship_done(db, w->start_ns, w->identity, last);
		return;
	}
	mutex_lock(&p->lock);
	w->diverged = true;
	mutex_unlock(&p->lock);
	publisher_tell_lost(db, w, has, last);
}

enum err_code publisher_attach(struct publisher *p, struct db *db, struct err *err)
{
	enum err_code rc = ERR_OK;

	assert(!p->behind);
	mutex_lock(&p->round_lock);
	if ((rc = publisher_note_unknown(p, db, err))) {
		mutex_unlock(&p->round_lock);
		return rc;
	}
	for (uint32_t i = 0; i < p->m.windows_n && db->o.segments; i++) {
		struct manifest_window *w = &p->m.windows[i];

		if (w->segments_n && !publisher_lacks_segments(db, w))
			publisher_compare_batches(p, db, w);
	}
	mutex_lock(&p->lock);
	p->db = db;
	mutex_unlock(&p->lock);
	mutex_unlock(&p->round_lock);
	atomic_store(&p->attached, true);
	metric_collector_add(publisher_collect, p);
	if (!p->o.no_threads)
		rc = thread_start(&p->upload, "cluster-upload", publisher_upload_thread, p, err);
	publisher_wake(p);
	return rc;
}

void publisher_wake(struct publisher *p)
{
	mutex_lock(&p->lock);
	p->woken = true;
	cond_broadcast(&p->wake);
	mutex_unlock(&p->lock);
}

void publisher_set_assignment(struct publisher *p, uint64_t number)
{
	lease_set_assignment(p->lease, number);
	publisher_wake(p);
}

static void publisher_stop_threads(struct publisher *p)
{
	if (p->db)
		metric_collector_remove(publisher_collect, p);
	lease_cancel(p->lease);
	mutex_lock(&p->lock);
	p->stopping = true;
	cond_broadcast(&p->wake);
	cond_broadcast(&p->work);
	mutex_unlock(&p->lock);
	bucket_cancel(p->o.bucket, clock_monotonic_ns());
	thread_join(&p->upload);
	thread_join(&p->publish);
	bucket_cancel(p->o.bucket, INT64_MAX);
}

void publisher_abandon(struct publisher *p)
{
	if (!p)
		return;
	publisher_stop_threads(p);
	publisher_release(p);
}

void publisher_close(struct publisher *p)
{
	struct err err;

	if (!p)
		return;
	publisher_stop_threads(p);
	if (lease_generation(p->lease) && !lease_is_fenced(p->lease) && !p->round_failed) {
		bucket_cancel(p->o.bucket, clock_monotonic_ns() + PUBLISHER_LAST_NS);
		if (round_run(p, true, &err))
			log_warn(
				"cluster", "last round failed: the next start publishes the rest", LOG_E(&err));
		bucket_cancel(p->o.bucket, INT64_MAX);
	}
	publisher_release(p);
}

/* ---- questions ---- */

bool publisher_is_fenced(const struct publisher *p)
{
	return lease_is_fenced(p->lease);
}

bool publisher_lease_is_sure(const struct publisher *p)
{
	return lease_is_sure(p->lease);
}

/* A refusal asks for a round at once, but only once a second: each push must not send requests to a
 * bucket that is away. */
static void publisher_ask_for_round(struct publisher *p)
{
	int64_t now = clock_monotonic_ns(), asked = atomic_load(&p->asked_at_ns);

	if (asked && now - asked < ASK_EVERY_NS)
		return;
	if (atomic_compare_exchange_strong(&p->asked_at_ns, &asked, now))
		publisher_wake(p);
}

enum err_code publisher_check_lease(struct publisher *p, struct err *err)
{
	struct err why;

	if (atomic_load(&p->attached) && lease_is_sure(p->lease))
		return ERR_OK;
	if (!publisher_say_refusal(p, &why)) /* it was confirmed just now */
		return ERR_OK;
	publisher_ask_for_round(p);
	return err_copy(err, &why);
}

bool publisher_has_block(struct publisher *p, const struct ulid *ulid)
{
	bool has;

	mutex_lock(&p->lock);
	has = p->there_n && bsearch(ulid, p->there, p->there_n, sizeof(*ulid), ulid_cmp);
	mutex_unlock(&p->lock);
	return has;
}
