/*
 * Uploads: to a temporary file, then synced and renamed into the queue. What ends in between leaves
 * a temporary file, which the next open of the store removes.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "tsdb/debuginfo/store/internal.h"

METRIC_COUNTER(uploads_total, "epimetheus_symbols_uploads_total",
	"Uploads of debug data: queued, failed, idle.", "result");

#define SPACE_STEP (16u << 20) /* bytes between looks at the free space */

struct debuginfo_upload {
	struct debuginfo_upload *next; /* in the store's list */
	struct debuginfo_store *store;
	struct debuginfo_entry *entry; /* NULL: idle for too long, its bytes are given back */
	struct debuginfo_id id;
	struct debuginfo_offer offer; /* its path is below */
	char path[DEBUGINFO_PATH_BYTES_MAX + 1];
	int fd;
	char *tmp;
	uint64_t bytes, looked_bytes;
	int64_t progress_ns; /* monotonic */
	bool busy; /* its thread writes now */
	bool failed; /* an append did: the file lacks bytes */
};

/* Takes it out of the list and gives back what it holds. */
static void upload_let_go(struct debuginfo_upload *u, enum waiting then)
{
	struct debuginfo_store *s = u->store;
	struct debuginfo_upload **at = &s->uploads;

	mutex_assert_held(&s->lock);
	if (!u->entry)
		return;
	while (*at != u)
		at = &(*at)->next;
	*at = u->next;
	s->uploads_n--;
	s->uploads_bytes -= u->bytes;
	u->entry->waiting = then;
	u->entry->waiting_bytes = then == WAITING_QUEUED ? u->bytes : 0;
	entry_tidy(s, u->entry);
	u->entry = NULL;
}

/* The file goes too, so that a sender that hangs holds no disk. The descriptor is its thread's. */
void uploads_end_idle(struct debuginfo_store *s)
{
	int64_t before_ns = clock_monotonic_ns() - s->o.idle_ns;
	struct debuginfo_upload *u, *next;

	mutex_assert_held(&s->lock);
	for (u = s->uploads; u; u = next) {
		next = u->next;
		if (u->busy || u->progress_ns > before_ns)
			continue;
		upload_let_go(u, WAITING_NOT);
		(void)!ftruncate(u->fd, 0);
		(void)!s->fs->ops->unlink(s->fs, u->tmp, NULL);
		metric_add(&uploads_total, "idle", 1);
	}
}

static enum err_code upload_admit(struct debuginfo_upload *u, struct err *err)
{
	struct debuginfo_store *s = u->store;
	const char *reason;
	enum err_code rc;

	mutex_assert_held(&s->lock);
	uploads_end_idle(s);
	if (s->uploads_n >= s->o.uploads_max)
		return err_set(err, ERR_UNAVAILABLE, "%u uploads are in progress, limit %u", s->uploads_n,
			s->o.uploads_max);
	if (s->uploads_bytes >= s->o.uploads_bytes_max)
		return err_set(err, ERR_UNAVAILABLE, "uploads have %llu bytes, limit %llu",
			(unsigned long long)s->uploads_bytes, (unsigned long long)s->o.uploads_bytes_max);
	if ((rc = entry_make(s, &u->id, true, &u->entry, err)))
		return rc;
	if (!entry_wants(s, u->entry, &u->offer, true, &reason)) {
		entry_tidy(s, u->entry);
		u->entry = NULL;
		return err_set(err, ERR_EXISTS, "%s", reason);
	}
	if ((rc = path_copy(u->path, &u->entry->waiting_path, err))) {
		entry_tidy(s, u->entry);
		u->entry = NULL;
		return rc;
	}
	u->entry->waiting = WAITING_UPLOAD;
	u->entry->waiting_kind = u->offer.kind;
	u->entry->waiting_origin = u->offer.origin;
	u->next = s->uploads;
	s->uploads = u;
	s->uploads_n++;
	return ERR_OK;
}

enum err_code debuginfo_upload_begin(struct debuginfo_store *s, const struct debuginfo_id *id,
	const struct debuginfo_offer *o, struct debuginfo_upload **out, struct err *err)
{
	struct debuginfo_upload *u = calloc(1, sizeof(*u));
	enum err_code rc;

	if (!u)
		return err_nomem(err, "upload");
	*u = (struct debuginfo_upload){ .store = s,
		.id = *id,
		.offer = *o,
		.fd = -1,
		.progress_ns = clock_monotonic_ns(),
		.busy = true };
	debuginfo_path_clean(o->path, u->path);
	mutex_lock(&s->lock);
	rc = upload_admit(u, err);
	mutex_unlock(&s->lock);
	if (!rc)
		rc = space_check(s, 0, err);
	if (!rc)
		rc = tmp_open(s, &u->tmp, &u->fd, err);
	if (rc) {
		debuginfo_upload_cancel(u);
		return rc;
	}
	mutex_lock(&s->lock);
	u->progress_ns = clock_monotonic_ns();
	u->busy = false;
	mutex_unlock(&s->lock);
	*out = u;
	return ERR_OK;
}

/* Counts the bytes before they are written. */
static enum err_code upload_take(struct debuginfo_upload *u, size_t n, struct err *err)
{
	struct debuginfo_store *s = u->store;

	mutex_assert_held(&s->lock);
	if (!u->entry)
		return err_set(err, ERR_TIMEOUT, "upload had no progress for too long");
	if (n > s->o.file_bytes_max - u->bytes)
		return err_set(err, ERR_LIMIT, "upload is more than %llu bytes",
			(unsigned long long)s->o.file_bytes_max);
	if (s->uploads_bytes > s->o.uploads_bytes_max || n > s->o.uploads_bytes_max - s->uploads_bytes)
		return err_set(err, ERR_LIMIT, "all uploads together are more than %llu bytes",
			(unsigned long long)s->o.uploads_bytes_max);
	s->uploads_bytes += n;
	u->bytes += n;
	u->entry->waiting_bytes += n;
	u->busy = true;
	return ERR_OK;
}

static void upload_rest(struct debuginfo_upload *u)
{
	mutex_lock(&u->store->lock);
	u->progress_ns = clock_monotonic_ns();
	u->busy = false;
	mutex_unlock(&u->store->lock);
}

enum err_code debuginfo_upload_append(struct debuginfo_upload *u, struct str bytes, struct err *err)
{
	struct debuginfo_store *s = u->store;
	enum err_code rc;

	if (!bytes.len)
		return ERR_OK;
	if (u->failed)
		return err_set(err, ERR_IO, "upload lacks bytes that could not be written");
	mutex_lock(&s->lock);
	rc = upload_take(u, bytes.len, err);
	mutex_unlock(&s->lock);
	if (rc) {
		u->failed = true;
		return rc;
	}
	if (u->bytes - u->looked_bytes >= SPACE_STEP) {
		u->looked_bytes = u->bytes;
		rc = space_check(s, 0, err);
	}
	if (!rc)
		rc = s->fs->ops->write(s->fs, u->fd, bytes.ptr, bytes.len, err);
	upload_rest(u);
	u->failed = rc != ERR_OK;
	return rc;
}

/* The synced file gets its name in the queue. */
static enum err_code upload_name(struct debuginfo_upload *u, const char *path, struct err *err)
{
	struct debuginfo_store *s = u->store;
	enum err_code rc;

	if ((rc = s->fs->ops->rename(s->fs, u->tmp, path, err)))
		return rc;
	if ((rc = s->fs->ops->sync_dir(s->fs, s->dir, err)))
		(void)!s->fs->ops->unlink(s->fs, path, NULL);
	return rc;
}

static enum err_code upload_queue(struct debuginfo_upload *u, struct err *err)
{
	char *path = path_of_queued(u->store, &u->id, u->offer.kind, u->offer.origin);
	struct debuginfo_store *s = u->store;
	struct debuginfo_entry *e = u->entry;
	enum err_code rc;

	if (!path)
		return err_nomem(err, "path");
	rc = s->fs->ops->sync(s->fs, u->fd, err);
	if (!rc)
		rc = waiting_path_write(s, &u->id, u->offer.kind, u->offer.origin, u->path, err);
	if (!rc)
		rc = upload_name(u, path, err);
	if (rc)
		waiting_path_remove(s, &u->id, u->offer.kind, u->offer.origin);
	free(path);
	if (rc)
		return rc;
	mutex_lock(&s->lock);
	s->uploads_bytes += u->bytes; /* stay counted while they are queued */
	s->queued_n++;
	e->number = ++s->last_number;
	e->due_s = 0;
	e->stamp.again_s = 0; /* this upload is its second chance */
	upload_let_go(u, WAITING_QUEUED);
	mutex_unlock(&s->lock);
	free(u->tmp); /* it has another name */
	u->tmp = NULL;
	return ERR_OK;
}

enum err_code debuginfo_upload_finish(struct debuginfo_upload *u, struct err *err)
{
	enum err_code rc;

	mutex_lock(&u->store->lock);
	rc = u->entry ? ERR_OK : err_set(err, ERR_TIMEOUT, "upload had no progress for too long");
	u->busy = true;
	mutex_unlock(&u->store->lock);
	if (!rc && u->failed)
		rc = err_set(err, ERR_IO, "upload lacks bytes that could not be written");
	if (!rc && !u->bytes)
		rc = err_set(err, ERR_INVALID, "upload is empty");
	if (!rc)
		rc = upload_queue(u, err);
	metric_add(&uploads_total, rc ? "failed" : "queued", 1);
	debuginfo_upload_cancel(u);
	return rc;
}

void debuginfo_upload_cancel(struct debuginfo_upload *u)
{
	struct debuginfo_store *s;

	if (!u)
		return;
	s = u->store;
	mutex_lock(&s->lock);
	upload_let_go(u, WAITING_NOT);
	mutex_unlock(&s->lock);
	if (u->fd >= 0)
		close(u->fd);
	if (u->tmp && fs_exists(u->tmp))
		(void)!s->fs->ops->unlink(s->fs, u->tmp, NULL);
	free(u->tmp);
	free(u);
}
