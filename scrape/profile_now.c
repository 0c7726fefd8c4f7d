/*
 * A profile that somebody wants now: one scrape out of turn, of a copy of its target, which a
 * reload does not touch.
 *
 * The interval of its row is the time that it covers: the seconds that it measured or, for a
 * profile without seconds, the time since the target's last scrape.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/hidden.h"
#include "base/quote.h"
#include "scrape/manager_internal.h"
#include "scrape/targets/url.h"

#define CANCEL_POLL_NS (100 * NS_PER_MS)

struct profiling { /* one that is under way */
	struct lane *lane;
	const struct scraper *regular; /* the target's own loop; valid under the manager's lock only */
	struct target_part *part; /* of the copy alone; held */
	struct arena *arena;
	bool wants_profile;
	struct scraper *scraper; /* read and written on the loop's thread; NULL: it has ended */
	struct mutex lock;
	struct cond changed;
	/* guarded by lock */
	bool done;
	enum err_code rc;
	struct err err;
	struct profile_now_result out;
};

/* ---- which target ---- */

static bool profile_now_is_meant(const struct profile_now *wanted, const struct target *t)
{
	if (wanted->url.len && !str_eq(wanted->url, t->url) && !str_eq(wanted->url, t->shown_url))
		return false;
	if (wanted->unix_path.len && !str_eq(wanted->unix_path, target_unix_path(t)))
		return false;
	for (size_t i = 0; i < wanted->matchers_n; i++)
		if (!matcher_test_labels(&wanted->matchers[i], t->labels))
			return false;
	return true;
}

struct found_target {
	const struct job_pool *pool;
	const struct target *target;
	struct scraper *scraper; /* its loop; NULL: none */
	size_t n; /* how many are meant */
};

static void profile_now_find_in_pool(
	const struct job_pool *p, const struct profile_now *wanted, struct found_target *f)
{
	const struct target_chunk *c;

	for (size_t i = 0; p->set && i < p->set->list.n; i++) {
		c = p->set->list.v[i].chunk;
		for (size_t k = 0; k < c->n; k++) {
			if (!profile_now_is_meant(wanted, c->v[k]))
				continue;
			if (f->n++ == 0) {
				f->pool = p;
				f->target = c->v[k];
				f->scraper = p->synced ? c->users[k] : NULL;
			}
		}
	}
}

static enum err_code profile_now_find_target(const struct scrape_manager *m,
	const struct profile_now *wanted, struct found_target *f, struct err *err)
{
	mutex_assert_held(&m->lock);
	*f = (struct found_target){ 0 };
	for (size_t i = 0; i < m->n; i++)
		if (!wanted->pool.len || str_eq(m->pools[i]->job->job_name, wanted->pool))
			profile_now_find_in_pool(m->pools[i], wanted, f);
	if (f->n == 0)
		return err_set(err, ERR_NOT_FOUND, "no target matches");
	if (f->n > 1)
		return err_set(err, ERR_INVALID, "%zu targets match: name one", f->n);
	if (f->pool->set->limit_exceeded)
		return err_set(err, ERR_LIMIT, "%s", f->pool->set->error);
	return ERR_OK;
}

/* ---- on the loop's thread ---- */

static void profile_now_on_ended(void *ctx, const struct scraper_outcome *outcome)
{
	struct profiling *p = ctx;

	assert(!p->done);
	mutex_lock(&p->lock);
	p->scraper = NULL;
	p->done = true;
	p->rc = outcome->rc;
	if (outcome->rc) {
		p->err = *outcome->err;
	} else {
		p->out.ts_ns = outcome->end_ns;
		p->out.samples = outcome->samples;
		p->out.bytes = outcome->bytes;
		p->out.profile = str_dup(p->arena, outcome->profile);
		if (!p->out.profile.ptr)
			p->rc = arena_fail(p->arena, "profile", &p->err);
	}
	/* Under the lock: the waiter frees p as soon as it gets the lock. */
	cond_signal(&p->changed);
	mutex_unlock(&p->lock);
}

static void profile_now_begin(void *ctx)
{
	struct profiling *p = ctx;
	struct target *t = p->part->v;
	int64_t last = p->regular ? p->regular->last_scrape_ns : 0, now = clock_now_ns();

	assert(loop_is_current(p->lane->loop) && p->part->n == 1);
	if (t->seconds)
		t->interval_ns = t->seconds * NS_PER_S;
	else if (last && now - last < t->interval_ns)
		t->interval_ns = now - last > NS_PER_S ? now - last : NS_PER_S;
	p->scraper = scraper_once(p->lane, t, profile_now_on_ended, p);
	if (p->scraper) {
		p->scraper->wants_profile = p->wants_profile;
		scraper_begin(p->scraper);
		return;
	}
	mutex_lock(&p->lock);
	p->done = true;
	p->rc = err_nomem(&p->err, "scrape");
	mutex_unlock(&p->lock);
}

/* Takes no lock: the one thread that could look at p waits in loop_call. */
static void profile_now_cancel(void *ctx)
{
	struct profiling *p = ctx;

	if (!p->scraper)
		return;
	scraper_cancel(p->scraper);
	p->scraper = NULL;
	p->done = true;
	p->rc = err_set(&p->err, ERR_CANCELED, "canceled");
}

/* ---- on the caller's thread ---- */

static enum err_code profile_now_set_seconds(struct profiling *p, int64_t seconds, struct err *err)
{
	struct target *t = p->part->v;
	struct buf url = { 0 };
	char text[24];

	if (!seconds)
		return ERR_OK;
	if (!t->seconds)
		return err_set(
			err, ERR_INVALID, "a profile of %s is not measured over seconds", QUOTED(t->name));
	snprintf(text, sizeof(text), "%" PRId64, seconds);
	url_print_with(&url, t->url, STR("seconds"), str_of(text));
	t->url = buf_failed(&url) ? (struct str){ NULL, 0 } : str_dup(&p->part->arena, buf_str(&url));
	buf_release(&url);
	t->shown_url = t->url.ptr ? hidden_url(&p->part->arena, t->url) : t->url;
	if (!t->shown_url.ptr)
		return err_nomem(err, "scrape");
	t->timeout_ns += (seconds - t->seconds) * NS_PER_S;
	t->seconds = seconds;
	return ERR_OK;
}

/* Into the caller's arena: the copy of the target is freed before the caller reads them. */
static enum err_code profile_now_describe(struct profiling *p, struct err *err)
{
	p->out.labels = labels_dup(p->arena, p->part->v->labels);
	p->out.url = str_dup(p->arena, p->part->v->shown_url);
	if (!p->out.labels.v || !p->out.url.ptr)
		return arena_fail(p->arena, "profile", err);
	return ERR_OK;
}

/* Holds the manager's lock, so that the target's own loop lives until this scrape has begun. */
static enum err_code profile_now_start(struct scrape_manager *m, const struct profile_now *wanted,
	struct profiling *p, struct err *err)
{
	struct found_target f;
	enum err_code rc;

	mutex_lock(&m->lock);
	if (!(rc = profile_now_find_target(m, wanted, &f, err))) {
		p->regular = f.scraper;
		p->lane = m->lanes[f.target->home % m->lanes_n];
		rc = target_part_of(f.target, &p->part, err);
	}
	if (!rc && !(rc = profile_now_set_seconds(p, wanted->seconds, err)) &&
		!(rc = profile_now_describe(p, err)))
		loop_call(p->lane->loop, profile_now_begin, p);
	mutex_unlock(&m->lock);
	return rc;
}

static void profile_now_wait_for(struct profiling *p, const atomic_bool *canceled)
{
	bool done = false, stop = false;

	while (!done && !stop) {
		mutex_lock(&p->lock);
		if (!p->done)
			cond_wait_until(&p->changed, &p->lock, clock_monotonic_ns() + CANCEL_POLL_NS);
		done = p->done;
		mutex_unlock(&p->lock);
		stop = !done && atomic_load(canceled);
	}
	if (stop)
		loop_call(p->lane->loop, profile_now_cancel, p);
}

enum err_code scrape_manager_profile_now(struct scrape_manager *m, const struct profile_now *wanted,
	const atomic_bool *canceled, struct arena *a, struct profile_now_result *out, struct err *err)
{
	struct profiling p = { .arena = a, .wants_profile = wanted->wants_profile };
	enum err_code rc;

	if (!wanted->url.len && !wanted->matchers_n)
		return err_set(err, ERR_INVALID, "name a target by scrapeUrl or match[]");
	if (wanted->seconds < 0 || wanted->seconds > PROFILE_NOW_SECONDS_MAX)
		return err_set(
			err, ERR_INVALID, "seconds is a number from 1 to %d", PROFILE_NOW_SECONDS_MAX);
	mutex_init(&p.lock);
	cond_init(&p.changed);
	if (!(rc = profile_now_start(m, wanted, &p, err))) {
		profile_now_wait_for(&p, canceled);
		assert(p.done && !p.scraper);
		if ((rc = p.rc))
			err_copy(err, &p.err);
		else
			*out = p.out;
	}
	target_part_unref(p.part);
	mutex_destroy(&p.lock);
	cond_destroy(&p.changed);
	return rc;
}
