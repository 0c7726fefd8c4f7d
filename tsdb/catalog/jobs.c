#include "tsdb/catalog/jobs.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "tsdb/catalog/state.h"
#include "tsdb/symbols/translate.h"

/* Jobs in memory: by name for new rows, by id for stored ones. They are few and never removed. */

static bool catalog_jobs_name_same(const void *ctx, const void *key, uint32_t i)
{
	const struct job *job = ((const struct db *)ctx)->jobs[i];

	return !job->superseded && str_eq(job->name, *(const struct str *)key);
}

static bool catalog_jobs_id_same(const void *ctx, const void *key, uint32_t i)
{
	return ((const struct db *)ctx)->jobs[i]->id == *(const uint32_t *)key;
}

static struct job *catalog_jobs_find_name(const struct db *db, struct str name)
{
	uint32_t i = map_find(
		&db->jobs_by_name, hash_bytes(name.ptr, name.len, 0), catalog_jobs_name_same, db, &name);

	mutex_assert_held(&db->lock);
	return i == MAP_NONE ? NULL : db->jobs[i];
}

static struct job *catalog_jobs_find_id(const struct db *db, uint32_t id)
{
	uint32_t i = map_find(&db->jobs_by_id, map_hash_u64(id), catalog_jobs_id_same, db, &id);

	mutex_assert_held(&db->lock);
	return i == MAP_NONE ? NULL : db->jobs[i];
}

static struct job *job_new(struct str name, uint32_t id, uint32_t index)
{
	struct job *job = calloc(1, sizeof(*job) + name.len + 1);

	if (!job)
		return NULL;
	job->name = (struct str){ memcpy(job + 1, name.ptr, name.len), name.len };
	job->id = id;
	job->index = index;
	job->live_epoch = SYM_NONE;
	job->epochs_saved = 1; /* if the job's id is free, so is the first epoch's number */
	mutex_init(&job->lock);
	return job;
}

static void catalog_jobs_free(struct job *job)
{
	translation_close(job->carry);
	free(job->known);
	mutex_destroy(&job->lock);
	free(job);
}

static enum err_code catalog_jobs_add(
	struct db *db, struct str name, uint32_t id, struct job **out, struct err *err)
{
	struct job *job, *same = catalog_jobs_find_name(db, name);

	mutex_assert_held(&db->lock);
	assert(!same || id != SYM_NONE);
	if (db->jobs_n >= DB_JOBS_MAX)
		return err_set(err, ERR_LIMIT, "%" PRIu32 " jobs, limit %u", db->jobs_n, DB_JOBS_MAX);
	if (!array_room(&db->jobs, db->jobs_n, 1, &db->jobs_cap))
		return err_nomem(err, "job");
	if (id == SYM_NONE)
		id = db->next_job_id;
	if (!(job = job_new(name, id, db->jobs_n)))
		return err_nomem(err, "job");
	db->jobs[db->jobs_n] = job;
	if (!map_add(&db->jobs_by_name, hash_bytes(name.ptr, name.len, 0), db->jobs_n) ||
		!map_add(&db->jobs_by_id, map_hash_u64(id), db->jobs_n)) {
		catalog_jobs_free(job);
		return err_nomem(err, "job");
	}
	db->jobs_n++;
	/* A job that was forgotten and came back has two ids: rows go under the later one. */
	if (same)
		*(same->id < id ? &same->superseded : &job->superseded) = true;
	if (db->next_job_id <= id)
		db->next_job_id = id + 1;
	*out = job;
	return ERR_OK;
}

enum err_code db_job(
	struct db *db, struct str name, uint32_t id, uint32_t epoch, struct job **out, struct err *err)
{
	enum err_code rc = ERR_OK;
	struct job *job;

	mutex_lock(&db->lock);
	job = id == SYM_NONE ? catalog_jobs_find_name(db, name) : catalog_jobs_find_id(db, id);
	if (!job)
		rc = catalog_jobs_add(db, name, id, &job, err);
	else if (!str_eq(job->name, name))
		rc = err_set(err, ERR_EXISTS, "job %" PRIu32 " has two names", id);
	if (!rc && epoch != SYM_NONE && job->next_epoch <= epoch) {
		job->next_epoch = epoch + 1;
		if (job->epochs_saved < job->next_epoch)
			job->epochs_saved = job->next_epoch;
	}
	mutex_unlock(&db->lock);
	*out = job;
	return rc;
}

struct job *db_job_by_id(struct db *db, uint32_t id)
{
	struct job *job;

	mutex_lock(&db->lock);
	job = catalog_jobs_find_id(db, id);
	mutex_unlock(&db->lock);
	return job;
}

struct job *db_job_at(struct db *db, uint32_t i)
{
	struct job *job;

	mutex_lock(&db->lock);
	job = i < db->jobs_n ? db->jobs[i] : NULL;
	mutex_unlock(&db->lock);
	return job;
}

void job_know_ids(struct job *job, uint32_t epoch, const uint32_t *next)
{
	struct known_ids *v = job->known;
	uint32_t i = 0, oldest = 0;

	while (i < job->known_n && v[i].epoch != epoch)
		i++;
	if (i == job->known_n && i < JOB_EPOCHS_KNOWN_MAX) {
		/* Out of memory: not noted. Loading the stored symbols gives nearly the same ids. */
		if (!(v = realloc(job->known, (i + 1) * sizeof(*v))))
			return;
		job->known = v;
		v[job->known_n++] = (struct known_ids){ .epoch = epoch };
	} else if (i == job->known_n) {
		for (i = 1; i < job->known_n; i++)
			if (v[i].epoch < v[oldest].epoch)
				oldest = i;
		i = oldest;
		v[i] = (struct known_ids){ .epoch = epoch };
	}
	for (int k = 1; k < SYM_KINDS; k++)
		if (v[i].next[k] < next[k])
			v[i].next[k] = next[k];
}

void jobs_release(struct db *db)
{
	for (uint32_t i = 0; i < db->jobs_n; i++)
		catalog_jobs_free(db->jobs[i]);
	free(db->jobs);
	map_release(&db->jobs_by_name);
	map_release(&db->jobs_by_id);
}
