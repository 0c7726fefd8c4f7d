/*
 * Jobs: a file is turned into an index by somebody else, and the index gets its place. A queued
 * upload is removed when its index is synced under its name, so a crash in between extracts again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/debuginfo/store/internal.h"

#define COMPARED_BYTES (64u << 10) /* at once */

METRIC_COUNTER(extracted_total, "epimetheus_symbols_extractions_total",
	"Extractions of symbols: published, no_better, failed, put_off.", "result");

void debuginfo_job_forget_older(struct debuginfo_job *j)
{
	if (j->older_fd >= 0)
		close(j->older_fd);
	j->older_fd = -1;
}

/* Frees the job and its files; the upload of the queue is not touched. */
static void debuginfo_job_free(struct debuginfo_job *j)
{
	if (j->in_fd >= 0)
		close(j->in_fd);
	if (j->out_fd >= 0)
		close(j->out_fd);
	debuginfo_job_forget_older(j);
	if (j->tmp && fs_exists(j->tmp))
		(void)!j->store->fs->ops->unlink(j->store->fs, j->tmp, NULL);
	free(j->tmp);
	free(j);
}

/* The oldest that is due, taken out of the queue. */
static struct debuginfo_entry *job_queue_take(struct debuginfo_store *s)
{
	int64_t now_s = store_now_s(s);
	struct debuginfo_entry *e, *first = NULL;

	mutex_assert_held(&s->lock);
	for (size_t i = 0; s->queued_n && i < BUCKETS; i++)
		for (e = s->buckets[i]; e; e = e->next)
			if (e->waiting == WAITING_QUEUED && e->due_s <= now_s &&
				(!first || e->number < first->number))
				first = e;
	if (first) {
		first->waiting = WAITING_JOB;
		s->queued_n--;
		s->jobs_n++;
	}
	return first;
}

/* One that was evicted in the meantime is not missed. */
static enum err_code job_open_older(struct debuginfo_job *j, struct err *err)
{
	struct err why;
	enum err_code rc;
	char *path;

	if (!j->older_bytes)
		return ERR_OK;
	if (!(path = path_of_index(j->store, &j->id)))
		return err_nomem(err, "path");
	rc = fs_posix.ops->open(&fs_posix, path, O_RDONLY, 0, &j->older_fd, &why);
	free(path);
	return rc && rc != ERR_NOT_FOUND ? err_copy(err, &why) : ERR_OK;
}

static enum err_code job_open_input(struct debuginfo_job *j, struct err *err)
{
	char *path = path_of_queued(j->store, &j->id, j->kind, j->origin);
	enum err_code rc;

	if (!path)
		return err_nomem(err, "path");
	rc = fs_posix.ops->open(&fs_posix, path, O_RDONLY, 0, &j->in_fd, err);
	free(path);
	return rc;
}

enum err_code debuginfo_job_next(
	struct debuginfo_store *s, struct debuginfo_job **out, struct err *err)
{
	struct debuginfo_job *j = calloc(1, sizeof(*j));
	struct debuginfo_entry *e;
	enum err_code rc;

	if (!j)
		return err_nomem(err, "job");
	*j = (struct debuginfo_job){
		.store = s, .in_fd = -1, .out_fd = -1, .older_fd = -1, .queued = true
	};
	mutex_lock(&s->lock);
	if ((e = job_queue_take(s))) {
		j->id = e->stamp.id;
		j->kind = e->waiting_kind;
		j->origin = e->waiting_origin;
		j->source_bytes = e->waiting_bytes;
		j->older_bytes = e->present ? e->index_bytes : 0;
		debuginfo_path_clean(str_of(e->waiting_path ? e->waiting_path : ""), j->path);
	}
	mutex_unlock(&s->lock);
	if (!e) {
		free(j);
		return err_set(err, ERR_NOT_FOUND, "nothing is queued");
	}
	if (!(rc = job_open_input(j, err)) && !(rc = job_open_older(j, err)))
		rc = tmp_open(s, &j->tmp, &j->out_fd, err);
	if (rc) {
		struct err why = { .code = rc };

		debuginfo_job_fail(j, err ? err : &why);
		return rc;
	}
	*out = j;
	return ERR_OK;
}

/* The entry waits for the job. */
static enum err_code job_admit(
	struct debuginfo_job *j, const struct debuginfo_offer *o, struct err *err)
{
	struct debuginfo_store *s = j->store;
	const char *reason;
	struct debuginfo_entry *e;
	enum err_code rc;

	mutex_assert_held(&s->lock);
	if ((rc = entry_make(s, &j->id, true, &e, err)))
		return rc;
	if (!entry_wants(s, e, o, false, &reason))
		rc = err_set(err, ERR_EXISTS, "%s", reason);
	else
		rc = path_copy(j->path, &e->waiting_path, err);
	if (rc) {
		entry_tidy(s, e);
		return rc;
	}
	e->waiting = WAITING_JOB;
	s->jobs_n++;
	j->older_bytes = e->present ? e->index_bytes : 0;
	return ERR_OK;
}

enum err_code debuginfo_job_begin(struct debuginfo_store *s, const struct debuginfo_id *id,
	const struct debuginfo_offer *o, int in_fd, struct debuginfo_job **out, struct err *err)
{
	struct debuginfo_job *j = calloc(1, sizeof(*j));
	struct stat st;
	enum err_code rc;

	if (!j) {
		close(in_fd);
		return err_nomem(err, "job");
	}
	*j = (struct debuginfo_job){ .store = s,
		.id = *id,
		.kind = o->kind,
		.origin = o->origin,
		.in_fd = in_fd,
		.out_fd = -1,
		.older_fd = -1 };
	debuginfo_path_clean(o->path, j->path);
	if (!(rc = fstat(in_fd, &st) ? err_errno(err, errno, "input") : ERR_OK)) {
		j->source_bytes = (uint64_t)st.st_size;
		rc = tmp_open(s, &j->tmp, &j->out_fd, err);
	}
	if (!rc) {
		mutex_lock(&s->lock);
		rc = job_admit(j, o, err);
		mutex_unlock(&s->lock);
	}
	if (rc) {
		debuginfo_job_free(j);
		return rc;
	}
	if ((rc = job_open_older(j, err))) {
		struct err why = { .code = rc };

		debuginfo_job_fail(j, err ? err : &why);
		return rc;
	}
	*out = j;
	return ERR_OK;
}

/* again: back into the queue. The lock is held. */
static void job_leave(struct debuginfo_job *j, struct debuginfo_entry *e, bool again)
{
	struct debuginfo_store *s = j->store;
	char *path;

	mutex_assert_held(&s->lock);
	s->jobs_n--;
	e->waiting = WAITING_NOT;
	if (j->queued && again) {
		e->waiting = WAITING_QUEUED;
		e->due_s = store_now_s(s) + s->o.again_ns / NS_PER_S;
		s->queued_n++;
	} else if (j->queued) {
		/* if it stays, the next open queues it again */
		if ((path = path_of_queued(s, &j->id, j->kind, j->origin)))
			(void)!s->fs->ops->unlink(s->fs, path, NULL);
		free(path);
		waiting_path_remove(s, &j->id, j->kind, j->origin);
		s->uploads_bytes -= e->waiting_bytes;
		e->waiting_bytes = 0;
	}
	entry_tidy(s, e);
}

static bool job_comes_again(enum err_code rc)
{
	return rc == ERR_IO || rc == ERR_NOMEM || rc == ERR_UNAVAILABLE || rc == ERR_CANCELED;
}

/*
 * The same file is not sent over and over. One of a local directory was sent by nobody, and servers
 * that are asked next may have a better one.
 */
static void job_set_tried(struct debuginfo_job *j, struct debuginfo_entry *e, struct str why)
{
	if (j->origin != DEBUGINFO_DIRECTORY && !j->shared)
		entry_set_tried(j->store, e, j->kind, why);
}

void debuginfo_job_fail(struct debuginfo_job *j, const struct err *why)
{
	struct debuginfo_store *s = j->store;
	bool again = job_comes_again(why->code);
	struct debuginfo_entry *e;

	mutex_lock(&s->lock);
	e = entry_find(s, &j->id);
	if (!again)
		job_set_tried(j, e, str_of(why->msg[0] ? why->msg : err_code_name(why->code)));
	job_leave(j, e, again);
	mutex_unlock(&s->lock);
	if (!j->shared)
		metric_add(&extracted_total, again ? "put_off" : "failed", 1);
	debuginfo_job_free(j);
}

static enum err_code job_write_footer(struct debuginfo_job *j, struct footer *f, struct err *err)
{
	struct fs *fs = j->store->fs;
	uint64_t max = j->store->o.bytes_max;
	struct buf b = { 0 };
	struct stat st;
	enum err_code rc;

	if (fstat(j->out_fd, &st) || lseek(j->out_fd, 0, SEEK_END) < 0)
		return err_errno(err, errno, "index");
	f->index_bytes = (uint64_t)st.st_size;
	if (!f->index_bytes)
		return err_set(err, ERR_INVALID, "index is empty");
	if (max && f->index_bytes + footer_bytes(f) > max)
		return err_set(err, ERR_LIMIT, "index is %llu bytes, limit of all %llu",
			(unsigned long long)f->index_bytes, (unsigned long long)max);
	if ((rc = space_check(j->store, footer_bytes(f), err)))
		return rc;
	footer_add(&b, &j->id, f);
	rc = buf_failed(&b) ? err_nomem(err, "index") :
						  fs->ops->write(fs, j->out_fd, b.ptr, b.len, err);
	buf_release(&b);
	return rc ? rc : fs->ops->sync(fs, j->out_fd, err);
}

/* The new index has the bytes of the older one. */
static enum err_code job_compare(const struct debuginfo_job *j, bool *same, struct err *err)
{
	char *pieces = NULL;
	uint64_t at = 0;
	struct stat st;

	*same = false;
	if (fstat(j->out_fd, &st))
		return err_errno(err, errno, "index");
	if (j->older_fd < 0 || (uint64_t)st.st_size != j->older_bytes)
		return ERR_OK;
	if (!(pieces = malloc(2 * COMPARED_BYTES)))
		return err_nomem(err, "index");
	for (*same = true; *same && at < j->older_bytes; at += COMPARED_BYTES) {
		uint64_t left = j->older_bytes - at;
		size_t n = left < COMPARED_BYTES ? (size_t)left : COMPARED_BYTES;

		*same = pread(j->out_fd, pieces, n, (off_t)at) == (ssize_t)n &&
			pread(j->older_fd, pieces + COMPARED_BYTES, n, (off_t)at) == (ssize_t)n &&
			!memcmp(pieces, pieces + COMPARED_BYTES, n);
	}
	free(pieces);
	return ERR_OK;
}

/* Of all files that the index was made of, and of what was found in it. */
static enum debuginfo_kind job_kind(
	const struct debuginfo_job *j, const struct debuginfo_entry *e, enum debuginfo_places places)
{
	enum debuginfo_kind kind = j->kind;

	if (j->older_fd >= 0 && e->present && e->kind != kind)
		kind = DEBUGINFO_FULL;
	if (places == DEBUGINFO_PLACES_LOST)
		return DEBUGINFO_NO_TEXT;
	return places == DEBUGINFO_PLACES && kind == DEBUGINFO_NO_TEXT ? DEBUGINFO_FULL : kind;
}

/* A file of debug data has a name of its own, which no profile has. */
static const char *job_path(const struct debuginfo_job *j, const struct debuginfo_entry *e)
{
	bool keep = e->path &&
		(!j->path[0] ||
			(e->present && j->kind == DEBUGINFO_NO_TEXT && e->kind != DEBUGINFO_NO_TEXT));

	return keep ? e->path : j->path;
}

/* Renames the synced index to its place; the entry is of it then. */
static enum err_code job_place(struct debuginfo_job *j, struct debuginfo_entry *e, bool same,
	const struct footer *f, struct err *err)
{
	struct debuginfo_store *s = j->store;
	char *path, *source;
	enum err_code rc;

	mutex_assert_held(&s->lock);
	if (e->present && !e->unsynced &&
		(e->quality > f->quality || (same && e->quality == f->quality))) {
		job_set_tried(j, e, STR(""));
		return err_set(err, ERR_EXISTS, "no better than the stored symbols");
	}
	if ((rc = path_copy(f->path, &source, err)))
		return rc;
	if (!(path = path_of_index(s, &j->id)))
		rc = err_nomem(err, "path");
	else
		rc = s->fs->ops->rename(s->fs, j->tmp, path, err);
	free(path);
	if (rc) {
		free(source);
		return rc;
	}
	if (e->mapped)
		e->mapped->entry = NULL;
	e->mapped = NULL;
	s->bytes -= e->file_bytes;
	s->indexes_n += !e->present;
	e->present = e->unsynced = true;
	e->kind = f->kind;
	e->origin = f->origin;
	e->quality = f->quality;
	e->index_bytes = f->index_bytes;
	e->file_bytes = f->index_bytes + footer_bytes(f);
	e->source_bytes = f->source_bytes;
	e->added_s = f->added_s;
	e->stamp.used_s = store_now_s(s);
	e->stamp.missing_end_s = e->stamp.again_s = 0;
	entry_set_path(s, e, source);
	s->bytes += e->file_bytes;
	s->stamps_changed = true;
	atomic_fetch_add(&s->generation, 1);
	return ERR_OK;
}

static const char *job_result(enum err_code rc)
{
	return !rc              ? "published" :
		rc == ERR_EXISTS    ? "no_better" :
		job_comes_again(rc) ? "put_off" :
							  "failed";
}

enum err_code debuginfo_job_publish(
	struct debuginfo_job *j, const struct debuginfo_found *found, struct err *err)
{
	struct debuginfo_store *s = j->store;
	struct footer f = { .origin = j->origin,
		.quality = found->quality,
		.source_bytes = j->source_bytes,
		.added_s = j->shared ? j->added_s : store_now_s(s) };
	struct err own = { .code = ERR_OK };
	struct debuginfo_entry *e;
	enum err_code rc;
	bool same;

	mutex_lock(&s->lock);
	e = entry_find(s, &j->id);
	debuginfo_path_clean(str_of(job_path(j, e)), f.path);
	f.kind = job_kind(j, e, found->places);
	mutex_unlock(&s->lock);
	if ((rc = job_compare(j, &same, &own)) || (rc = job_write_footer(j, &f, &own))) {
		own.code = rc;
		debuginfo_job_fail(j, &own);
		return err_set(err, rc, "publish: %s", own.msg);
	}
	mutex_lock(&s->lock);
	rc = job_place(j, e, same, &f, &own);
	mutex_unlock(&s->lock);
	if (!rc)
		rc = s->fs->ops->sync_dir(s->fs, s->dir, &own);
	mutex_lock(&s->lock);
	if (!rc) {
		e->unsynced = false;
		if (f.quality < DEBUGINFO_DWARF)
			job_set_tried(j, e, STR(""));
		debuginfo_evict(s, e);
	}
	job_leave(j, e, rc && job_comes_again(rc));
	mutex_unlock(&s->lock);
	if (!j->shared)
		metric_add(&extracted_total, job_result(rc), 1);
	debuginfo_job_free(j);
	return rc ? err_set(err, rc, "publish: %s", own.msg) : ERR_OK;
}
