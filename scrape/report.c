/*
 * The sink takes a batch whole or not at all, which saves most of the cost of a value. If it
 * refuses a batch for a value in it (a name that profiles have, one series too many, a time that is
 * too old), the values are appended one by one, so that only the bad ones are lost.
 */
#include "scrape/report.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"

METRIC_COUNTER(values_total, "epimetheus_scrape_report_values_total",
	"Values of up, scrape_duration_seconds and the like, by whether they were stored.", "result");

#define VALUES 4u
#define BATCH_ARENA_MAX ((size_t)256 << 20)

static const char *const names[VALUES] = {
	"up",
	"scrape_duration_seconds",
	"scrape_samples_scraped",
	"scrape_body_size_bytes",
};

struct report_entry {
	const struct target *target;
	int64_t ts_ns;
	double values[VALUES];
};

struct report_batch {
	struct report *report;
	atomic_uint waiting; /* acknowledgements, and the worker's own part */
	atomic_uint failed; /* values */
	size_t n;
	struct report_entry v[REPORT_BATCH_MAX];
};

struct report {
	struct pool *workers;
	struct sink *sink;
	struct event *timer;
	bool stopped;
	struct report_batch *batch; /* the one that is filled now; NULL: no value waits */
	atomic_bool failure_logged;
	struct mutex lock;
	struct cond idle;
	size_t out; /* batches with workers and the sink; guarded by lock */
};

static double report_stale(void)
{
	const uint64_t bits = SINK_STALE_BITS;
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* ---- the end of a batch ---- */

static void report_batch_free(struct report_batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		target_unref(b->v[i].target);
	free(b);
}

static void report_lost(struct report *r, size_t values, const struct err *why)
{
	metric_add(&values_total, "failed", (double)values);
	if (!atomic_exchange(&r->failure_logged, true))
		log_warn("scrape", "values of scrapes (up and others) are lost", LOG_E(why));
}

static void report_batch_done(struct report_batch *b)
{
	struct report *r = b->report;
	unsigned failed;

	if (atomic_fetch_sub(&b->waiting, 1) != 1)
		return;
	failed = atomic_load(&b->failed);
	assert(failed <= b->n * VALUES);
	metric_add(&values_total, "ok", (double)(b->n * VALUES - failed));
	if (!failed)
		atomic_store(&r->failure_logged, false);
	report_batch_free(b);
	mutex_lock(&r->lock);
	assert(r->out > 0);
	if (--r->out == 0)
		cond_broadcast(&r->idle);
	mutex_unlock(&r->lock);
}

static void report_batch_lost(struct report_batch *b, size_t values, const struct err *why)
{
	atomic_fetch_add(&b->failed, (unsigned)values);
	report_lost(b->report, values, why);
}

static void report_on_all(void *ctx, enum err_code rc, const struct err *err)
{
	struct report_batch *b = ctx;

	if (rc)
		report_batch_lost(b, b->n * VALUES, err);
	report_batch_done(b);
}

static void report_on_one(void *ctx, enum err_code rc, const struct err *err)
{
	struct report_batch *b = ctx;

	if (rc)
		report_batch_lost(b, 1, err);
	report_batch_done(b);
}

/* ---- on a worker ---- */

static enum err_code report_add_numbers(
	struct arena *a, const struct report_entry *e, struct sink_number *out, struct err *err)
{
	const struct str profile = STR("profile");
	struct labels_builder b;
	struct str own = labels_get(e->target->labels, profile);
	enum err_code rc;

	labels_builder_init(&b, a, e->target->labels);
	if (own.len)
		labels_builder_set(&b, STR("exported_profile"), own);
	labels_builder_set(&b, profile, e->target->name);
	for (size_t i = 0; i < VALUES; i++) {
		labels_builder_set(&b, STR(LABEL_NAME), str_of(names[i]));
		if ((rc = labels_builder_build(&b, &out[i].labels, err)))
			return rc;
		out[i].ts_ns = e->ts_ns;
		out[i].value = e->values[i];
	}
	return ERR_OK;
}

static enum err_code report_make_numbers(
	struct arena *a, const struct report_batch *b, struct sink_number **out, struct err *err)
{
	struct sink_number *v = arena_array(a, struct sink_number, b->n * VALUES);
	enum err_code rc = ERR_OK;

	if (!v)
		return arena_fail(a, "values of scrapes", err);
	for (size_t i = 0; i < b->n && !rc; i++)
		rc = report_add_numbers(a, &b->v[i], v + i * VALUES, err);
	*out = v;
	return rc;
}

static void report_batch_append_each(struct report_batch *b, const struct sink_number *s, size_t n)
{
	struct sink *sink = b->report->sink;
	struct err err;

	for (size_t i = 0; i < n; i++) {
		atomic_fetch_add(&b->waiting, 1);
		if (sink->ops->append_numbers(sink, &s[i], 1, report_on_one, b, &err)) {
			report_batch_lost(b, 1, &err);
			report_batch_done(b);
		}
	}
}

static void report_append_batch(void *ctx)
{
	struct report_batch *b = ctx;
	struct sink *sink = b->report->sink;
	size_t n = b->n * VALUES;
	struct sink_number *v;
	struct arena a;
	struct err err;
	enum err_code rc;

	arena_init(&a, BATCH_ARENA_MAX);
	if ((rc = report_make_numbers(&a, b, &v, &err))) {
		report_batch_lost(b, n, &err);
	} else {
		atomic_fetch_add(&b->waiting, 1);
		if ((rc = sink->ops->append_numbers(sink, v, n, report_on_all, b, &err))) {
			if (rc == ERR_INVALID || rc == ERR_LIMIT)
				report_batch_append_each(b, v, n);
			else
				report_batch_lost(b, n, &err);
			report_batch_done(b);
		}
	}
	arena_release(&a);
	report_batch_done(b);
}

/* ---- on the loop's thread ---- */

static void report_flush(struct report *r)
{
	struct report_batch *b = r->batch;
	struct err err;
	bool taken;

	if (!b)
		return;
	r->batch = NULL;
	mutex_lock(&r->lock);
	taken = r->out < REPORT_BATCHES_MAX;
	r->out += taken;
	mutex_unlock(&r->lock);
	if (taken && !pool_submit(r->workers, report_append_batch, b)) {
		mutex_lock(&r->lock);
		r->out--;
		mutex_unlock(&r->lock);
		taken = false;
	}
	if (taken)
		return;
	err_set(&err, ERR_LIMIT, "too many profiles wait for a worker: the server is overloaded");
	report_lost(r, b->n * VALUES, &err);
	report_batch_free(b);
}

static void report_on_timer(evutil_socket_t fd, short what, void *ctx)
{
	report_flush(ctx);
}

/* NULL: it was stopped, or there is no memory. */
static struct report_entry *report_next_entry(
	struct report *r, const struct target *t, int64_t ts_ns)
{
	const struct timeval second = { .tv_sec = 1 };
	struct report_entry *e;
	struct err err;

	if (!r || r->stopped)
		return NULL;
	if (!r->batch) {
		r->batch = malloc(sizeof(*r->batch));
		if (!r->batch) {
			err_nomem(&err, "values of scrapes");
			report_lost(r, VALUES, &err);
			return NULL;
		}
		r->batch->report = r;
		r->batch->n = 0;
		atomic_init(&r->batch->waiting, 1);
		atomic_init(&r->batch->failed, 0);
		event_add(r->timer, &second);
	}
	assert(r->batch->n < REPORT_BATCH_MAX);
	e = &r->batch->v[r->batch->n++];
	e->target = target_ref(t);
	e->ts_ns = ts_ns - ts_ns % NS_PER_MS;
	return e;
}

static void report_flush_if_full(struct report *r)
{
	if (r->batch->n < REPORT_BATCH_MAX)
		return;
	event_del(r->timer);
	report_flush(r);
}

void report_scrape(struct report *r, const struct target *t, const struct report_scrape *s)
{
	struct report_entry *e = report_next_entry(r, t, s->start_ns);

	if (!e)
		return;
	e->values[0] = s->up;
	e->values[1] = (double)s->duration_ns / NS_PER_S;
	e->values[2] = (double)s->samples;
	e->values[3] = (double)s->bytes;
	report_flush_if_full(r);
}

void report_gone(struct report *r, const struct target *t, int64_t now_ns)
{
	struct report_entry *e = report_next_entry(r, t, now_ns);

	if (!e)
		return;
	for (size_t i = 0; i < VALUES; i++)
		e->values[i] = report_stale();
	report_flush_if_full(r);
}

/* ---- opening and closing ---- */

enum err_code report_open(struct event_base *base, struct pool *workers, struct sink *sink,
	struct report **out, struct err *err)
{
	struct report *r = calloc(1, sizeof(*r));

	assert(base && workers && sink);
	if (r)
		r->timer = evtimer_new(base, report_on_timer, r);
	if (!r || !r->timer) {
		free(r);
		return err_nomem(err, "scrape manager");
	}
	r->workers = workers;
	r->sink = sink;
	mutex_init(&r->lock);
	cond_init(&r->idle);
	*out = r;
	return ERR_OK;
}

void report_stop(struct report *r)
{
	if (!r || r->stopped)
		return;
	report_flush(r);
	r->stopped = true;
	event_free(r->timer);
	r->timer = NULL;
}

void report_close(struct report *r)
{
	if (!r)
		return;
	if (r->timer)
		event_free(r->timer);
	if (r->batch)
		report_batch_free(r->batch);
	mutex_lock(&r->lock);
	while (r->out)
		cond_wait(&r->idle, &r->lock);
	mutex_unlock(&r->lock);
	mutex_destroy(&r->lock);
	cond_destroy(&r->idle);
	free(r);
}
