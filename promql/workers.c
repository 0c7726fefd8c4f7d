#include "promql/workers.h"

#include <stdatomic.h>
#include <stdlib.h>

struct workers_job {
	struct workers_job *next; /* the lock's, as the counts */
	work_fn fn;
	void *ctx;
	size_t n;
	atomic_size_t at; /* the next piece */
	unsigned threads; /* that have joined */
	unsigned working; /* of them, beside the caller */
};

struct workers {
	struct mutex lock; /* guards jobs and their counts */
	struct cond wake, done;
	struct workers_job *jobs; /* that want help */
	bool closing;
	unsigned n; /* threads of a query */
	struct thread *threads; /* n - 1 */
};

static void workers_job_do_pieces(struct workers_job *j, unsigned thread)
{
	size_t i;

	while ((i = atomic_fetch_add_explicit(&j->at, 1, memory_order_relaxed)) < j->n)
		j->fn(j->ctx, thread, i);
}

static void workers_remove_job(struct workers *w, struct workers_job *j)
{
	struct workers_job **at = &w->jobs;

	mutex_assert_held(&w->lock);
	while (*at && *at != j)
		at = &(*at)->next;
	if (*at)
		*at = j->next;
}

static void workers_help(void *ctx)
{
	struct workers *w = ctx;
	struct workers_job *j;
	unsigned thread;

	mutex_lock(&w->lock);
	for (;;) {
		while (!w->jobs && !w->closing)
			cond_wait(&w->wake, &w->lock);
		if (w->closing)
			break;
		j = w->jobs;
		thread = j->threads++;
		if (j->threads == w->n)
			workers_remove_job(w, j);
		j->working++;
		mutex_unlock(&w->lock);
		workers_job_do_pieces(j, thread);
		mutex_lock(&w->lock);
		workers_remove_job(w, j); /* nothing is left of it */
		if (--j->working == 0)
			cond_broadcast(&w->done);
	}
	mutex_unlock(&w->lock);
}

enum err_code workers_open(unsigned threads, struct workers **out, struct err *err)
{
	struct workers *w = calloc(1, sizeof(*w));
	enum err_code rc = ERR_OK;

	if (!w)
		return err_nomem(err, "query workers");
	mutex_init(&w->lock);
	cond_init(&w->wake);
	cond_init(&w->done);
	w->n = threads ? threads : 1;
	if (!(w->threads = calloc(w->n, sizeof(*w->threads))))
		rc = err_nomem(err, "query workers");
	for (unsigned i = 0; i + 1 < w->n && !rc; i++)
		rc = thread_start(&w->threads[i], "query-worker", workers_help, w, err);
	if (rc) {
		workers_close(w);
		return rc;
	}
	*out = w;
	return ERR_OK;
}

void workers_close(struct workers *w)
{
	if (!w)
		return;
	mutex_lock(&w->lock);
	w->closing = true;
	cond_broadcast(&w->wake);
	mutex_unlock(&w->lock);
	for (unsigned i = 0; w->threads && i + 1 < w->n; i++)
		thread_join(&w->threads[i]);
	free(w->threads);
	cond_destroy(&w->wake);
	cond_destroy(&w->done);
	mutex_destroy(&w->lock);
	free(w);
}

unsigned workers_threads(const struct workers *w)
{
	return w ? w->n : 1;
}

void workers_run(struct workers *w, size_t n, work_fn fn, void *ctx)
{
	struct workers_job j = { .fn = fn, .ctx = ctx, .n = n, .threads = 1 };

	atomic_init(&j.at, 0);
	if (n > 1 && workers_threads(w) > 1) {
		mutex_lock(&w->lock);
		j.next = w->jobs;
		w->jobs = &j;
		cond_broadcast(&w->wake);
		mutex_unlock(&w->lock);
	}
	workers_job_do_pieces(&j, 0);
	if (n <= 1 || workers_threads(w) <= 1)
		return;
	mutex_lock(&w->lock);
	workers_remove_job(w, &j);
	while (j.working)
		cond_wait(&w->done, &w->lock);
	mutex_unlock(&w->lock);
}
