#include "cmd/epitool/backup/backup_restore.h"

#include <inttypes.h>
#include <unistd.h>

#include "cmd/epitool/copiers.h"
#include "cmd/epitool/progress.h"

#define STAGING "restoring"
#define LAST_CALLS_NS (5 * NS_PER_S)

struct backup_restoring {
	const struct backup_restore_job *job;
	struct fs *fs;
	struct place to; /* DIR/restoring */
	uint64_t total;
	_Atomic uint64_t done, files, bytes, damaged;
};

/* ---- one file ---- */

static enum err_code backup_restoring_fetch(
	struct backup_restoring *r, const struct backup_file *f, struct err *err)
{
	char hash[BUCKET_HASH_LEN + 1];
	enum err_code rc;

	if ((rc = place_copy(&r->job->store->objects, str_of(f->hash), &r->to, f->path, err)) ||
		(rc = place_hash(&r->to, f->path, hash, err)))
		return rc;
	if (!strcmp(hash, f->hash))
		return ERR_OK;
	if ((rc = place_remove(&r->to, f->path, err)))
		return rc;
	return err_set(
		err, ERR_CORRUPT, "object %s: its bytes are not those that were backed up", f->hash);
}

static enum err_code backup_restoring_file(void *ctx, size_t i, struct err *err)
{
	struct backup_restoring *r = ctx;
	const struct backup_file *f = &r->job->manifest->files[i];
	enum err_code rc = backup_restoring_fetch(r, f, err);

	if (rc == ERR_NOT_FOUND || rc == ERR_CORRUPT) {
		r->damaged++;
		r->job->damaged(r->job->ctx, f->path, err);
		rc = ERR_OK;
	} else if (!rc) {
		r->files++;
		r->bytes += f->bytes;
	}
	r->done += f->bytes;
	progress_set(r->done, r->total);
	return rc ? err_wrap(err, rc, "restore " STR_FMT, STR_ARG(f->path)) : ERR_OK;
}

static void backup_restoring_cancel(void *ctx)
{
	struct backup_restoring *r = ctx;

	if (r->job->store->objects.bucket)
		bucket_cancel(r->job->store->objects.bucket, clock_monotonic_ns() + LAST_CALLS_NS);
}

/* ---- all of them ---- */

/* A data directory has these, also while nothing is in them; a backup has files alone. */
static enum err_code backup_restoring_make_folders(struct backup_restoring *r, struct err *err)
{
	static const char *const folders[] = { "blocks", "head" };
	enum err_code rc = ERR_OK;
	char *path;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !rc; i++) {
		if (!(path = path_join(r->job->arena, str_of(r->to.path), str_of(folders[i]))))
			return arena_fail(r->job->arena, "restore", err);
		rc = fs_mkdir_all(r->fs, path, err);
	}
	return rc;
}

static enum err_code backup_restoring_fetch_all(struct backup_restoring *r, struct err *err)
{
	const struct backup_manifest *m = r->job->manifest;
	const struct copiers_job job = { .n = m->files_n,
		.workers = r->job->workers,
		.fn = backup_restoring_file,
		.cancel = backup_restoring_cancel,
		.ctx = r };
	enum err_code rc;

	if ((rc = fs_remove_tree(r->fs, r->to.path, err)) ||
		(rc = fs_mkdir_all(r->fs, r->to.path, err)) || (rc = backup_restoring_make_folders(r, err)))
		return rc;
	r->total = backup_manifest_bytes(m);
	progress_set(0, r->total);
	if ((rc = copiers_run(&job, err)))
		return rc;
	if (r->damaged && !r->job->partial)
		return err_set(err, ERR_CORRUPT,
			"%" PRIu64 " of %zu files are damaged, and nothing was restored; --partial restores"
			" the others",
			r->damaged, m->files_n);
	return ERR_OK;
}

static enum err_code backup_restoring_verify(
	struct backup_restoring *r, uint64_t *findings, struct err *err)
{
	*findings = r->job->verify(r->job->ctx, r->to.path);
	if (*findings > r->job->manifest->findings && !r->job->partial)
		return err_set(err, ERR_CORRUPT,
			"what was restored has %" PRIu64 " findings, and the backup had %" PRIu64
			"; --partial keeps it",
			*findings, r->job->manifest->findings);
	return ERR_OK;
}

static enum err_code backup_restoring_move(
	struct backup_restoring *r, struct str name, struct err *err)
{
	char *from = path_join(r->job->arena, str_of(r->to.path), name),
		 *to = path_join(r->job->arena, str_of(r->job->dir), name);

	if (!from || !to)
		return arena_fail(r->job->arena, "restore", err);
	return fs_exists(from) ? r->fs->ops->rename(r->fs, from, to, err) : ERR_OK;
}

static enum err_code backup_restoring_move_all(struct backup_restoring *r, struct err *err)
{
	enum err_code rc;
	struct str *names;
	size_t n;

	if ((rc = backup_restoring_move(r, STR("inventory"), err)) ||
			(rc = backup_restoring_move(r, STR("inventory.copy"), err)) ||
				(rc = r->fs->ops->sync_dir(r->fs, r->job->dir, err)) ||
				(rc = fs_list(r->to.path, r->job->arena, &names, &n, err)))
		return rc;
	for (size_t i = 0; i < n && !rc; i++)
		if (!str_is(names[i], "lock")) /* the verification's */
			rc = backup_restoring_move(r, names[i], err);
	if (rc || (rc = fs_remove_tree(r->fs, r->to.path, err)))
		return rc;
	return r->fs->ops->sync_dir(r->fs, r->job->dir, err);
}

/* A mount point has lost+found; a lock is of this call or an earlier one. */
static enum err_code backup_restoring_check_empty(struct backup_restoring *r, struct err *err)
{
	enum err_code rc;
	struct str *names;
	size_t n;

	if ((rc = fs_list(r->job->dir, r->job->arena, &names, &n, err)))
		return rc;
	for (size_t i = 0; i < n; i++)
		if (!str_is(names[i], "lock") && !str_is(names[i], "lost+found") &&
			!str_is(names[i], STAGING))
			return err_set(err, ERR_EXISTS, "%s is not empty: it has " STR_FMT, r->job->dir,
				STR_ARG(names[i]));
	return ERR_OK;
}

enum err_code backup_restore(
	const struct backup_restore_job *job, struct backup_restored *out, struct err *err)
{
	struct backup_restoring r = { .job = job, .fs = job->fs ? job->fs : &fs_posix };
	char *lock_path = arena_printf(job->arena, "%s/lock", job->dir);
	enum err_code rc;
	struct err why;
	int lock;

	*out = (struct backup_restored){ 0 };
	r.to = (struct place){ .path = arena_printf(job->arena, "%s/" STAGING, job->dir),
		.fs = job->fs };
	if (!lock_path || !r.to.path)
		return arena_fail(job->arena, "restore", err);
	if ((rc = fs_mkdir_all(r.fs, job->dir, err)) || (rc = fs_lock(lock_path, &lock, err)))
		return rc;
	if ((rc = backup_restoring_check_empty(&r, err)))
		goto out;
	if (!(rc = backup_restoring_fetch_all(&r, err)) &&
		!(rc = backup_restoring_verify(&r, &out->findings, err)))
		rc = backup_restoring_move_all(&r, err);
	else
		(void)!fs_remove_tree(r.fs, r.to.path, &why); /* the next restore removes what stays */
	out->files = r.files;
	out->bytes = r.bytes;
	out->damaged = r.damaged;
out:
	fs_unlock(lock);
	return rc;
}
