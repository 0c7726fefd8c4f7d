#include "tsdb/catalog/ids.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "tsdb/catalog/jobs.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/catalog/state.h"
#include "tsdb/lists/versions.h"

/*
 * The file `ids`: the first free id of each kind, per epoch of a job, and the first free epoch. An
 * id never changes its meaning. So the file is written before a window is dropped or cut: else ids
 * that only that window had would look free after a restart. It is also written before an epoch
 * begins, for EPOCHS_AHEAD epochs of each job, because all jobs begin an epoch with a new window.
 * All other ids are found in windows and blocks.
 */
#define IDS_BYTES_MAX (64u << 20)
#define EPOCHS_AHEAD 8u
#define IDS_PASSED_OVER (1u << 20) /* more ids than a directory ever uses */

/* Partitions in memory know the latest ids. */
static void catalog_ids_learn(struct db *db)
{
	struct partition *p;
	uint32_t at = 0, next[SYM_KINDS];

	while ((p = partition_next(db, &at))) {
		mutex_lock(&p->lock);
		memcpy(next, p->next, sizeof(next));
		mutex_unlock(&p->lock);
		mutex_lock(&db->lock);
		job_know_ids(resident_of(p)->job, p->epoch, next);
		mutex_unlock(&db->lock);
		partition_unpin(db, p);
	}
}

static void catalog_ids_add_job(const struct job *job, struct buf *b)
{
	buf_add_varint(b, job->id);
	buf_add_lenstr(b, job->name);
	buf_add_varint(b, job->next_epoch + EPOCHS_AHEAD);
	buf_add_varint(b, job->known_n);
	for (uint32_t i = 0; i < job->known_n; i++) {
		buf_add_varint(b, job->known[i].epoch);
		for (int k = 1; k < SYM_KINDS; k++)
			buf_add_varint(b, job->known[i].next[k]);
	}
}

/* *saved: per job, the first epoch that the file does not mark as used. */
static enum err_code catalog_ids_save(struct db *db, uint32_t **saved, uint32_t *n, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc;

	mutex_assert_held(&db->ids_lock);
	catalog_ids_learn(db);
	buf_add_char(&b, IDS_VERSION);
	series_lock_read(db->series);
	buf_add_varint(&b, series_next_id(db->series));
	series_unlock(db->series);
	mutex_lock(&db->lock);
	buf_add_varint(&b, db->next_job_id);
	buf_add_varint(&b, *n = db->jobs_n);
	if ((*saved = malloc((*n + 1) * sizeof(**saved))))
		for (uint32_t i = 0; i < *n; i++) {
			catalog_ids_add_job(db->jobs[i], &b);
			(*saved)[i] = db->jobs[i]->next_epoch + EPOCHS_AHEAD;
		}
	mutex_unlock(&db->lock);
	buf_add_u64be(&b, hash_bytes(b.ptr, b.len, 0));
	rc = buf_failed(&b) || !*saved ? err_nomem(err, "ids") :
									 fs_write_file(db->o.fs, db->ids_path, buf_str(&b), err);
	buf_release(&b);
	return rc;
}

enum err_code ids_save(struct db *db, struct err *err)
{
	uint32_t *saved = NULL, n;
	enum err_code rc;

	mutex_lock(&db->ids_lock);
	if (!(rc = catalog_ids_save(db, &saved, &n, err))) {
		mutex_lock(&db->lock);
		for (uint32_t i = 0; i < n; i++)
			if (db->jobs[i]->epochs_saved < saved[i])
				db->jobs[i]->epochs_saved = saved[i];
		mutex_unlock(&db->lock);
	}
	mutex_unlock(&db->ids_lock);
	free(saved);
	return rc;
}

/* ---- reading ---- */

/* A job that no window or block has any more starts anew, under a new id. */
static enum err_code catalog_ids_find_job(
	struct db *db, uint32_t id, struct str name, struct job **out, struct err *err)
{
	*out = db_job_by_id(db, id);
	if (*out && !str_eq((*out)->name, name))
		return err_set(err, ERR_CORRUPT, "%s: job %" PRIu32 " has two names", db->ids_path, id);
	return ERR_OK;
}

static void catalog_ids_read_next(struct cursor *in, uint32_t *next)
{
	next[0] = 0;
	for (int k = 1; k < SYM_KINDS; k++)
		next[k] = cursor_u32(in);
}

static enum err_code catalog_ids_cut_short(const struct db *db, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "%s: cut short", db->ids_path);
}

/* Reads a partition of version 1, which has one epoch. */
static enum err_code catalog_ids_read_partition(struct db *db, struct cursor *in, struct err *err)
{
	uint32_t id = cursor_u32(in), next[SYM_KINDS];
	struct job *job;
	struct str name;
	enum err_code rc;

	catalog_ids_read_next(in, next);
	name = cursor_lenstr(in);
	if (in->bad)
		return catalog_ids_cut_short(db, err);
	if (!(rc = catalog_ids_find_job(db, id, name, &job, err)) && job)
		job_know_ids(job, 0, next);
	return rc;
}

static enum err_code catalog_ids_read_job(struct db *db, struct cursor *in, struct err *err)
{
	uint32_t id = cursor_u32(in), next[SYM_KINDS], epoch, n;
	struct str name = cursor_lenstr(in);
	struct job *job;
	enum err_code rc;

	if (in->bad)
		return catalog_ids_cut_short(db, err);
	if ((rc = catalog_ids_find_job(db, id, name, &job, err)))
		return rc;
	epoch = cursor_u32(in);
	if (job && job->next_epoch < epoch)
		job->next_epoch = job->epochs_saved = epoch;
	for (n = cursor_u32(in); n && !in->bad; n--) {
		epoch = cursor_u32(in);
		catalog_ids_read_next(in, next);
		if (job && !in->bad)
			job_know_ids(job, epoch, next);
	}
	return in->bad ? catalog_ids_cut_short(db, err) : ERR_OK;
}

static enum err_code catalog_ids_read(struct db *db, struct cursor in, bool epochs, struct err *err)
{
	enum err_code rc = ERR_OK;
	uint32_t n, next;

	series_reserve_ids(db->series, cursor_u32(&in));
	next = cursor_u32(&in);
	if (db->next_job_id < next)
		db->next_job_id = next;
	for (n = cursor_u32(&in); n && !rc; n--)
		rc = epochs ? catalog_ids_read_job(db, &in, err) : catalog_ids_read_partition(db, &in, err);
	return rc;
}

static enum err_code catalog_ids_load(struct db *db, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc = ERR_OK;
	struct cursor in;

	if (!fs_exists(db->ids_path)) /* the first block is written after this file */
		return db->blocks_n || db->unreadable_n ?
			err_set(err, ERR_CORRUPT, "%s: is missing", db->ids_path) :
			ERR_OK;
	if ((rc = fs_read_file(db->ids_path, IDS_BYTES_MAX, &b, err)))
		goto out;
	rc = err_set(err, ERR_CORRUPT, "%s: bad checksum", db->ids_path);
	if (b.len < 9)
		goto out;
	in = cursor_of((struct str){ b.ptr + b.len - 8, 8 });
	if (cursor_u64be(&in) != hash_bytes(b.ptr, b.len - 8, 0))
		goto out;
	if ((unsigned char)b.ptr[0] > IDS_VERSION) {
		rc = versions_refuse(db->ids_path, (unsigned char)b.ptr[0], IDS_VERSION, err);
		goto out;
	}
	rc = catalog_ids_read(db, cursor_of((struct str){ b.ptr + 1, b.len - 9 }), b.ptr[0] > 1, err);
out:
	buf_release(&b);
	return rc;
}

/*
 * The file is lost. Ids that readable rows use are found in windows and blocks; nobody needs ids
 * that only dropped windows had. But a block that cannot be read now may be readable at a later
 * start, and has ids that we do not know. So new numbers of jobs and epochs begin far above the
 * known ones, and each job's next window begins an epoch.
 */
static void catalog_ids_pass_over_unknown(struct db *db)
{
	mutex_lock(&db->lock);
	if (db->next_job_id <= SYM_NONE - IDS_PASSED_OVER)
		db->next_job_id += IDS_PASSED_OVER;
	for (uint32_t i = 0; i < db->jobs_n; i++) {
		struct job *job = db->jobs[i];

		if (job->next_epoch <= SYM_NONE - IDS_PASSED_OVER)
			job->next_epoch += IDS_PASSED_OVER;
		job->live_epoch = SYM_NONE;
	}
	mutex_unlock(&db->lock);
}

/* A damaged file is logged and set aside. */
enum err_code ids_load(struct db *db, struct err *err)
{
	struct err why = { 0 }, failed;
	enum err_code rc = catalog_ids_load(db, &why);
	char *aside = NULL;

	if (rc != ERR_CORRUPT)
		return rc ? err_copy(err, &why) : ERR_OK;
	catalog_ids_pass_over_unknown(db);
	db_count_damage();
	db_pass_over(db, &why);
	log_error("tsdb", db->o.read_only ? "damaged file of ids" : "damaged file of ids, set aside",
		LOG_E(&why));
	if (!db->o.read_only && fs_exists(db->ids_path) &&
		asprintf(&aside, "%s.damaged", db->ids_path) >= 0) {
		if (db->o.fs->ops->rename(db->o.fs, db->ids_path, aside, &failed))
			log_warn("tsdb", "setting aside failed", LOG_E(&failed));
		free(aside);
	}
	return ERR_OK;
}
