#include "cmd/epitool/copiers.h"

#include "base/clock.h"
#include "base/thread.h"
#include "cmd/epitool/progress.h"

#define LOOK_NS (20 * NS_PER_MS)

struct copiers {
	const struct copiers_job *job;
	atomic_size_t next;
	atomic_uint running;
	atomic_bool failed;
	struct mutex lock; /* guards rc, err */
	enum err_code rc; /* the first one */
	struct err err;
};

static void copiers_fail(struct copiers *all, enum err_code rc, const struct err *err)
{
	mutex_lock(&all->lock);
	if (!all->rc) {
		all->rc = rc;
		all->err = *err;
	}
	mutex_unlock(&all->lock);
	atomic_store(&all->failed, true);
}

static void copiers_work(void *ctx)
{
	struct copiers *w = ctx;
	enum err_code rc;
	struct err err;
	size_t i;

	while (!atomic_load(&w->failed) && (i = atomic_fetch_add(&w->next, 1)) < w->job->n) {
		rc = atomic_load(&interrupted) ? err_set(&err, ERR_CANCELED, "interrupted") :
										 w->job->fn(w->job->ctx, i, &err);
		if (rc)
			copiers_fail(w, rc, &err);
	}
	atomic_fetch_sub(&w->running, 1);
}

enum err_code copiers_run(const struct copiers_job *job, struct err *err)
{
	struct thread threads[COPIERS_MAX] = { 0 };
	struct copiers w = { .job = job };
	unsigned started = 0;
	enum err_code rc;

	mutex_init(&w.lock);
	for (; started < job->workers && started < COPIERS_MAX && started < job->n; started++) {
		atomic_fetch_add(&w.running, 1);
		if ((rc = thread_start(&threads[started], "copy", copiers_work, &w, err))) {
			atomic_fetch_sub(&w.running, 1);
			copiers_fail(&w, rc, err);
			break;
		}
	}
	while (atomic_load(&w.running) && !atomic_load(&interrupted)) {
		if (job->tick)
			job->tick(job->ctx);
		progress_wait(LOOK_NS);
	}
	if (atomic_load(&interrupted) && job->cancel)
		job->cancel(job->ctx);
	for (unsigned i = 0; i < started; i++)
		thread_join(&threads[i]);
	mutex_destroy(&w.lock);
	return w.rc ? err_copy(err, &w.err) : ERR_OK;
}
