/*
 * A profile that somebody wants now: a scrape out of turn of a copy of its target, so that a reload
 * meanwhile changes nothing of it.
 *
 * Its row stands for the time it covers: the seconds it was measured, or, of a profile that has
 * none, the time since the target's last scrape.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/hidden.h"
#include "base/quote.h"
#include "scrape/manager_internal.h"
#include "scrape/url.h"

#define LOOK_NS (100 * NS_PER_MS) /* at who may have canceled it */

struct order {
	struct lane *lane;
	const struct scraper *regular; /* the target's loop, while the manager's lock is held */
	struct target_set *set; /* of the copy; held */
	struct arena *arena;
	bool wants_profile;
	struct scraper *scraper; /* the loop's; NULL: it has ended */
	struct mutex lock;
	struct cond changed;
	bool done; /* guarded by lock, as is what follows */
	enum err_code rc;
	struct err err;
	struct ordered_profile out;
};

/* ---- which target ---- */

static bool is_meant(const struct profile_order *o, const struct target *t)
{
	if (o->url.len && !str_eq(o->url, t->url) && !str_eq(o->url, t->shown_url))
		return false;
	for (size_t i = 0; i < o->matchers_n; i++)
		if (!matcher_test_labels(&o->matchers[i], t->labels))
			return false;
	return true;
}

struct found_target {
	const struct job_pool *pool;
	size_t at; /* in its set */
	size_t n; /* how many are meant */
};

static void find_in_pool(
	const struct job_pool *p, const struct profile_order *o, struct found_target *f)
{
	for (size_t i = 0; p->set && i < p->set->n; i++) {
		if (!is_meant(o, &p->set->v[i]))
			continue;
		if (f->n++ == 0) {
			f->pool = p;
			f->at = i;
		}
	}
}

static enum err_code find_target(const struct scrape_manager *m, const struct profile_order *o,
	struct found_target *f, struct err *err)
{
	*f = (struct found_target){ 0 };
	for (size_t i = 0; i < m->n; i++)
		if (!o->pool.len || str_eq(m->pools[i]->job->job_name, o->pool))
			find_in_pool(m->pools[i], o, f);
	if (f->n == 0)
		return err_set(err, ERR_NOT_FOUND, "no target is named so");
	if (f->n > 1)
		return err_set(err, ERR_INVALID, "%zu targets are named so: name one", f->n);
	if (f->pool->set->limit_exceeded)
		return err_set(err, ERR_LIMIT, STR_FMT, STR_ARG(f->pool->set->error));
	return ERR_OK;
}

/* ---- on the loop's thread ---- */

static void on_ended(void *ctx, const struct scraper_outcome *outcome)
{
	struct order *o = ctx;

	mutex_lock(&o->lock);
	o->scraper = NULL;
	o->done = true;
	o->rc = outcome->rc;
	if (outcome->rc) {
		o->err = *outcome->err;
	} else {
		o->out.ts_ns = outcome->end_ns;
		o->out.samples = outcome->samples;
		o->out.bytes = outcome->bytes;
		o->out.profile = str_dup(o->arena, outcome->profile);
		if (!o->out.profile.ptr)
			o->rc = arena_fail(o->arena, "profile", &o->err);
	}
	cond_signal(&o->changed); /* under the lock: the waiter's memory is gone once it is released */
	mutex_unlock(&o->lock);
}

static void begin(void *ctx)
{
	struct order *o = ctx;
	struct target *t = o->set->v;
	int64_t last = o->regular ? o->regular->last_scrape_ns : 0, now = clock_now_ns();

	if (t->seconds)
		t->interval_ns = t->seconds * NS_PER_S;
	else if (last && now - last < t->interval_ns)
		t->interval_ns = now - last > NS_PER_S ? now - last : NS_PER_S;
	o->scraper = scraper_once(o->lane, o->set, t, on_ended, o);
	if (o->scraper) {
		o->scraper->wants_profile = o->wants_profile;
		scraper_begin(o->scraper);
		return;
	}
	mutex_lock(&o->lock);
	o->done = true;
	o->rc = err_nomem(&o->err, "scrape");
	mutex_unlock(&o->lock);
}

/* Without the lock: the only one who waits does so for this function. */
static void cancel(void *ctx)
{
	struct order *o = ctx;

	if (!o->scraper)
		return;
	scraper_cancel(o->scraper);
	o->scraper = NULL;
	o->done = true;
	o->rc = err_set(&o->err, ERR_CANCELED, "canceled");
}

/* ---- on the caller's ---- */

static enum err_code set_seconds(struct order *o, int64_t seconds, struct err *err)
{
	struct target *t = o->set->v;
	struct buf url = { 0 };
	char text[24];

	if (!seconds)
		return ERR_OK;
	if (!t->seconds)
		return err_set(
			err, ERR_INVALID, "a profile of %s is not measured over seconds", QUOTED(t->name));
	snprintf(text, sizeof(text), "%" PRId64, seconds);
	url_print_with(&url, t->url, STR("seconds"), str_of(text));
	t->url = buf_failed(&url) ? (struct str){ NULL, 0 } : str_dup(&o->set->arena, buf_str(&url));
	buf_release(&url);
	t->shown_url = t->url.ptr ? hidden_url(&o->set->arena, t->url) : t->url;
	if (!t->shown_url.ptr)
		return err_nomem(err, "scrape");
	t->timeout_ns += (seconds - t->seconds) * NS_PER_S;
	t->seconds = seconds;
	return ERR_OK;
}

/* What is told of it outlives the copy. */
static enum err_code describe(struct order *o, struct err *err)
{
	o->out.labels = labels_dup(o->arena, o->set->v->labels);
	o->out.url = str_dup(o->arena, o->set->v->shown_url);
	if (!o->out.labels.v || !o->out.url.ptr)
		return arena_fail(o->arena, "profile", err);
	return ERR_OK;
}

/* The lock keeps the target's loop alive until ours has begun. */
static enum err_code start(
	struct scrape_manager *m, const struct profile_order *wanted, struct order *o, struct err *err)
{
	struct found_target f;
	const struct target *t;
	enum err_code rc;

	mutex_lock(&m->lock);
	if (!(rc = find_target(m, wanted, &f, err))) {
		t = &f.pool->set->v[f.at];
		o->regular = f.pool->scrapers ? f.pool->scrapers[f.at] : NULL;
		o->lane = m->lanes[t->home % m->lanes_n];
		rc = target_set_of(f.pool->set, t, &o->set, err);
	}
	if (!rc && !(rc = set_seconds(o, wanted->seconds, err)) && !(rc = describe(o, err)))
		loop_call(o->lane->loop, begin, o);
	mutex_unlock(&m->lock);
	return rc;
}

static void wait_for(struct order *o, const atomic_bool *canceled)
{
	bool done = false, stop = false;

	while (!done && !stop) {
		mutex_lock(&o->lock);
		if (!o->done)
			cond_wait_until(&o->changed, &o->lock, clock_monotonic_ns() + LOOK_NS);
		done = o->done;
		mutex_unlock(&o->lock);
		stop = !done && atomic_load(canceled);
	}
	if (stop)
		loop_call(o->lane->loop, cancel, o);
}

enum err_code scrape_manager_profile(struct scrape_manager *m, const struct profile_order *wanted,
	const atomic_bool *canceled, struct arena *a, struct ordered_profile *out, struct err *err)
{
	struct order o = { .arena = a, .wants_profile = wanted->wants_profile };
	enum err_code rc;

	if (!wanted->url.len && !wanted->matchers_n)
		return err_set(err, ERR_INVALID, "no target is named");
	if (wanted->seconds < 0 || wanted->seconds > PROFILE_ORDER_SECONDS_MAX)
		return err_set(
			err, ERR_INVALID, "seconds is a number from 1 to %d", PROFILE_ORDER_SECONDS_MAX);
	mutex_init(&o.lock);
	cond_init(&o.changed);
	if (!(rc = start(m, wanted, &o, err))) {
		wait_for(&o, canceled);
		if ((rc = o.rc))
			err_copy(err, &o.err);
		else
			*out = o.out;
	}
	target_set_unref(o.set);
	mutex_destroy(&o.lock);
	cond_destroy(&o.changed);
	return rc;
}
