/*
 * One attempt. The caller's thread waits; all else happens on the loop. A get that takes long is
 * sent a second time: the first good answer counts, and the other request ends. A bad answer waits
 * for the other one.
 */
#include <assert.h>
#include <event2/event.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "tsdb/bucket/internal.h"

METRIC_COUNTER(requests_total, "epimetheus_bucket_requests_total",
	"Requests to the object store, repeated ones included.", "operation");
METRIC_COUNTER(errors_total, "epimetheus_bucket_errors_total",
	"Requests to the object store without an answer, or with one of 4xx or 5xx but 404 and 412.",
	"operation");
METRIC_HISTOGRAM(request_seconds, "epimetheus_bucket_request_seconds",
	"Time that requests to the object store take.", "operation");
METRIC_COUNTER(received_bytes, "epimetheus_bucket_received_bytes_total",
	"Bytes of bodies received from the object store.", "operation");
METRIC_COUNTER(sent_bytes, "epimetheus_bucket_sent_bytes_total",
	"Bytes of bodies sent to the object store.", "operation");
METRIC_COUNTER(hedged_total, "epimetheus_bucket_hedged_requests_total",
	"Second requests for slow gets: won (its answer came first), lost.", "result");

#define TRIES 2

struct waiter;

struct
try {
	struct waiter *w;
	struct http_request *request; /* NULL: not sent, or answered */
};

struct waiter {
	struct waiter *next, **at; /* in the bucket's list; at NULL: not in it */
	struct bucket *b;
	const struct bucket_exchange *x;
	struct bucket_answer *a;
	struct try tries[TRIES];
	unsigned sent;
	struct event *timer; /* the second request's */
	struct loop_work work;
	bool has_bad; /* a bad answer is kept, in case the other request gets none */
	struct cond cond;
	bool done; /* guarded by the bucket's lock */
};

void answer_release(struct bucket_answer *a)
{
	buf_release(&a->head);
	buf_release(&a->body);
	*a = (struct bucket_answer){ 0 };
}

struct str answer_header(const struct bucket_answer *a, const char *name)
{
	struct http_response res = { .head = buf_str(&a->head) };

	return http_response_header(&res, name);
}

static bool bucket_exchange_is_bad(const struct http_response *res)
{
	return res->rc || res->status >= 500 || res->status == 429 || res->status == 408;
}

static void bucket_count(
	struct bucket *b, const struct bucket_exchange *e, const struct http_response *res)
{
	bool error = res->rc || (res->status >= 400 && res->status != 404 && res->status != 412);

	metric_observe(&request_seconds, e->operation, (double)res->elapsed_ns / NS_PER_S);
	if (error)
		metric_add(&errors_total, e->operation, 1);
	if (!res->rc)
		metric_add(&received_bytes, e->operation, (double)res->body.len);
	if (!res->rc && e->kind < BUCKET_KINDS)
		b->usage.kinds[e->kind].received += res->body.len;
}

/* ---- on the loop ---- */

static void waiter_finish(struct waiter *w)
{
	for (int i = 0; i < TRIES; i++) {
		http_request_cancel(w->tries[i].request);
		w->tries[i].request = NULL;
	}
	if (w->timer)
		event_free(w->timer);
	w->timer = NULL;
	if (w->at && (*w->at = w->next))
		w->next->at = w->at;
	w->a->hedged = w->sent > 1;
	mutex_lock(&w->b->lock);
	w->done = true;
	cond_signal(&w->cond); /* w is gone once the lock is */
	mutex_unlock(&w->b->lock);
}

static void waiter_keep(struct waiter *w, const struct http_response *res)
{
	answer_release(w->a);
	w->a->rc = res->rc;
	w->a->err = res->err;
	w->a->status = res->status;
	if (res->rc)
		return;
	buf_add_str(&w->a->head, res->head);
	http_response_take_body(res, &w->a->body);
	if (buf_failed(&w->a->head) || buf_failed(&w->a->body))
		w->a->rc = err_nomem(&w->a->err, "answer");
}

static void bucket_exchange_on_done(void *ctx, const struct http_response *res)
{
	struct try *t = ctx;
	struct waiter *w = t->w;
	bool others;

	t->request = NULL;
	others = w->tries[0].request || w->tries[1].request;
	bucket_count(w->b, w->x, res);
	if (!bucket_exchange_is_bad(res)) {
		if (w->sent > 1)
			metric_add(&hedged_total, t == &w->tries[1] ? "won" : "lost", 1);
		waiter_keep(w, res);
		waiter_finish(w);
		return;
	}
	if (!w->has_bad)
		waiter_keep(w, res);
	w->has_bad = true;
	if (!others)
		waiter_finish(w);
}

static enum err_code waiter_send_try(struct waiter *w, struct err *err)
{
	const struct bucket_exchange *x = w->x;
	struct try *t = &w->tries[w->sent];
	const struct http_request_options o = {
		.method = x->method,
		.url = x->url,
		.config = x->http,
		.headers = x->headers,
		.body = x->body,
		.source = x->source,
		.timeout_ns = x->timeout_ns,
		.idle_timeout_ns = x->idle_timeout_ns,
		.body_size_max = x->body_max,
	};
	uint64_t bytes = x->source ? x->source->bytes : x->body.len;
	enum err_code rc;

	t->w = w;
	if ((rc = http_client_send(w->b->client, &o, bucket_exchange_on_done, t, &t->request, err)))
		return rc;
	w->sent++;
	metric_add(&requests_total, x->operation, 1);
	if (bytes)
		metric_add(&sent_bytes, x->operation, (double)bytes);
	if (x->kind < BUCKET_KINDS) {
		w->b->usage.kinds[x->kind].requests++;
		w->b->usage.kinds[x->kind].sent += bytes;
	}
	return ERR_OK;
}

static void bucket_exchange_on_timer(evutil_socket_t fd, short what, void *ctx)
{
	struct waiter *w = ctx;
	struct err err;

	assert(w->sent == 1 && w->tries[0].request);
	if (hedging_allow(&w->b->hedging) && waiter_send_try(w, &err))
		w->tries[1].request = NULL; /* the first one goes on */
}

static void waiter_cancel(struct waiter *w)
{
	answer_release(w->a);
	w->a->rc = exchange_canceled(&w->a->err);
	waiter_finish(w);
}

static void bucket_exchange_start(void *ctx)
{
	struct waiter *w = ctx;
	struct bucket *b = w->b;
	int64_t after_ns = 0;

	if (b->cancel_ns <= clock_monotonic_ns()) {
		waiter_cancel(w);
		return;
	}
	if ((w->next = b->waiters))
		w->next->at = &w->next;
	b->waiters = w;
	w->at = &b->waiters;
	if (w->x->hedge)
		after_ns = hedging_begin(&b->hedging, w->x->hedge_bytes);
	if ((w->a->rc = waiter_send_try(w, &w->a->err))) {
		waiter_finish(w);
		return;
	}
	if (!after_ns || b->c.hedge_min_ns < 0)
		return;
	if (after_ns < b->c.hedge_min_ns)
		after_ns = b->c.hedge_min_ns;
	w->timer = evtimer_new(loop_base(b->loop), bucket_exchange_on_timer, w);
	if (w->timer) /* without one it is not hedged */
		timer_after(w->timer, after_ns);
}

void exchange_cancel(void *ctx)
{
	struct bucket *b = ctx;
	int64_t at_ns = b->cancel_ns, left_ns = at_ns - clock_monotonic_ns();

	evtimer_del(b->cancel_timer);
	if (at_ns == INT64_MAX)
		return;
	if (left_ns > 0)
		timer_after(b->cancel_timer, left_ns);
	while (left_ns <= 0 && b->waiters)
		waiter_cancel(b->waiters);
}

enum err_code exchange_canceled(struct err *err)
{
	return err_set(err, ERR_CANCELED, "canceled");
}

/* ---- on the caller's thread ---- */

void exchange_run(struct bucket *b, const struct bucket_exchange *e, struct bucket_answer *a)
{
	struct waiter w = { .b = b, .x = e, .a = a };
	int64_t start_ns = clock_monotonic_ns();

	answer_release(a);
	cond_init(&w.cond);
	loop_post(b->loop, &w.work, bucket_exchange_start, &w);
	mutex_lock(&b->lock);
	while (!w.done)
		cond_wait(&w.cond, &b->lock);
	mutex_unlock(&b->lock);
	cond_destroy(&w.cond);
	if (e->hedge && !a->rc && a->status / 100 == 2)
		hedging_took(&b->hedging, e->hedge_bytes, clock_monotonic_ns() - start_ns);
}
