#include "tsdb/catalog/window_epochs.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/catalog/state.h"

/*
 * The epochs under which a window has rows of a job. Nearly always it is one. There are more if a
 * job's epoch ended while the window took rows (evict.c), or if late rows came. Each has the times
 * of its rows, so that a query loads only the epochs that it needs.
 */
static struct window_job *window_epochs_job_of(const struct window *w, const struct job *job)
{
	return job->index < w->jobs_n ? &w->jobs[job->index] : NULL;
}

bool window_has_job_locked(const struct window *w, const struct job *job)
{
	const struct window_job *j = window_epochs_job_of(w, job);

	return j && j->n;
}

struct window_epoch *window_epoch_locked(
	const struct window *w, const struct job *job, uint32_t epoch)
{
	struct window_job *j = window_epochs_job_of(w, job);

	/* Mostly the latest is searched. */
	for (uint32_t i = j ? j->n : 0; i-- > 0;)
		if (j->v[i].epoch == epoch)
			return &j->v[i];
	return NULL;
}

static bool window_epochs_reserve_jobs(struct window *w, uint32_t index)
{
	uint32_t had = w->jobs_n;

	if (index < had)
		return true;
	if (!array_room(&w->jobs, had, index - had + 1, &w->jobs_n))
		return false;
	memset(w->jobs + had, 0, (w->jobs_n - had) * sizeof(*w->jobs));
	return true;
}

static struct window_epoch *window_epochs_add(
	struct window *w, const struct job *job, struct window_epoch e)
{
	struct window_job *j;

	if (!window_epochs_reserve_jobs(w, job->index))
		return NULL;
	j = &w->jobs[job->index];
	if (!array_room(&j->v, j->n, 1, &j->cap))
		return NULL;
	j->v[j->n] = e;
	return &j->v[j->n++];
}

struct window_epoch *window_epoch_take_locked(
	struct window *w, const struct job *job, uint32_t epoch, int64_t ts_ns, bool *fresh)
{
	struct window_epoch *e = window_epoch_locked(w, job, epoch);

	if ((*fresh = !e))
		return window_epochs_add(
			w, job, (struct window_epoch){ epoch, ts_ns - 1, ts_ns, NULL, 0, 0 });
	if (ts_ns <= e->min_ns)
		e->min_ns = ts_ns - 1;
	if (ts_ns > e->max_ns)
		e->max_ns = ts_ns;
	return e;
}

enum err_code window_epoch_found(
	struct db *db, struct window *w, struct job *job, uint32_t epoch, struct err *err)
{
	enum err_code rc = ERR_OK;

	mutex_lock(&db->lock);
	/* The latest epoch in any window of the head is the live one. */
	if (job->live_epoch == SYM_NONE || job->live_epoch < epoch)
		job->live_epoch = epoch;
	if (!window_epoch_locked(w, job, epoch) &&
		!window_epochs_add(
			w, job, (struct window_epoch){ epoch, w->start_ns, w->end_ns, NULL, 0, 0 }))
		rc = err_nomem(err, "window");
	mutex_unlock(&db->lock);
	return rc;
}

bool window_epoch_at(struct db *db, const struct window *w, const struct job *job, uint32_t i,
	struct window_span *out)
{
	const struct window_job *j;
	bool there;

	mutex_lock(&db->lock);
	j = window_epochs_job_of(w, job);
	if ((there = j && i < j->n))
		*out = (struct window_span){ j->v[i].epoch, j->v[i].min_ns, j->v[i].max_ns };
	mutex_unlock(&db->lock);
	return there;
}

bool window_clip(struct db *db, const struct window *w, const struct partition *p, int64_t *min_ns,
	int64_t *max_ns)
{
	const struct window_epoch *e;

	mutex_lock(&db->lock);
	if ((e = window_epoch_locked(w, resident_of(p)->job, p->epoch))) {
		*min_ns = e->min_ns > *min_ns ? e->min_ns : *min_ns;
		*max_ns = e->max_ns < *max_ns ? e->max_ns : *max_ns;
	}
	mutex_unlock(&db->lock);
	return e && *min_ns < *max_ns;
}

void window_epochs_release(struct window *w)
{
	for (uint32_t i = 0; i < w->jobs_n; i++) {
		for (uint32_t k = 0; k < w->jobs[i].n; k++)
			free(w->jobs[i].v[k].types);
		free(w->jobs[i].v);
	}
	free(w->jobs);
	w->jobs = NULL;
	w->jobs_n = 0;
}

/* ---- types of series ---- */

/* The index of the series, or the one it would be inserted at. */
static uint32_t window_epochs_place_of(const struct window_epoch *e, uint32_t series)
{
	uint32_t from = 0, to = e->types_n;

	if (!to || e->types[to - 1].series < series) /* at the start they ascend */
		return to;
	while (from < to) {
		uint32_t mid = from + (to - from) / 2;

		if (e->types[mid].series < series)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

uint32_t window_types(
	struct db *db, const struct window *w, const struct job *job, uint32_t epoch, uint32_t series)
{
	uint32_t found = SYM_NONE, at;
	const struct window_epoch *e;

	if (w->types_lost)
		return SERIES_TYPES_MANY;
	mutex_lock(&db->lock);
	if ((e = window_epoch_locked(w, job, epoch)) &&
		(at = window_epochs_place_of(e, series)) < e->types_n && e->types[at].series == series)
		found = e->types[at].header;
	mutex_unlock(&db->lock);
	return found;
}

static bool window_epochs_set_types(struct window_epoch *e, uint32_t series, uint32_t header)
{
	uint32_t at = window_epochs_place_of(e, series);

	if (at < e->types_n && e->types[at].series == series) {
		e->types[at].header = header;
		return true;
	}
	if (!array_room(&e->types, e->types_n, 1, &e->types_cap))
		return false;
	memmove(e->types + at + 1, e->types + at, (e->types_n - at) * sizeof(*e->types));
	assert(at == e->types_n || e->types[at].series > series);
	e->types[at] = (struct series_header){ series, header };
	e->types_n++;
	return true;
}

bool window_set_types(struct db *db, struct window *w, const struct job *job, uint32_t epoch,
	uint32_t series, uint32_t header)
{
	struct window_epoch *e;
	bool ok = true;

	mutex_lock(&db->lock);
	if ((e = window_epoch_locked(w, job, epoch)))
		ok = window_epochs_set_types(e, series, header);
	mutex_unlock(&db->lock);
	return ok;
}
