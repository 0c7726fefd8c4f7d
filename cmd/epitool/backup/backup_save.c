#include "cmd/epitool/backup/backup_save.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/epitool/copiers.h"
#include "cmd/epitool/progress.h"

#define LAST_CALLS_NS (5 * NS_PER_S)
/*
 * Clocks of files have steps of milliseconds: a file that was just written may be written again
 * without another time. So its time is not kept, and the next backup reads it.
 */
#define SETTLED_NS (2 * NS_PER_S)

struct backup_saving {
	const struct backup_job *job;
	struct backup_manifest last, made;
	bool *left_out; /* of each file: it was removed meanwhile, or cannot be read */
	int64_t began_ns; /* when the source was listed, by the clock of files */
	uint64_t total;
	_Atomic uint64_t done, copied_files, copied_bytes, unreadable;
};

/* The file is as the last backup had it. */
static const struct backup_file *backup_saving_known(
	const struct backup_saving *s, const struct place_object *o)
{
	const struct backup_file *f = backup_manifest_find(&s->last, o->key);

	return f && f->bytes == o->bytes && f->modified_ns == o->modified_ns && f->inode == o->inode ?
		f :
		NULL;
}

/* A block that is wholly in the last backup. */
static bool backup_saving_skips(void *ctx, struct str ulid)
{
	const struct backup_saving *s = ctx;
	const struct backup_source *from = s->job->source;
	char prefix[64];
	int n = snprintf(prefix, sizeof(prefix), "blocks/" STR_FMT "/", STR_ARG(ulid));

	if (s->last.findings || n >= (int)sizeof(prefix))
		return false;
	for (size_t i = 0; i < from->files_n; i++)
		if (str_has_prefix(from->files[i].is.key, (struct str){ prefix, (size_t)n }) &&
			!backup_saving_known(s, &from->files[i].is))
			return false;
	return s->last.files_n > 0;
}

/* The newest of this source that can be read; none is fine. */
static enum err_code backup_saving_find_last(struct backup_saving *s, struct err *err)
{
	const struct backup_job *job = s->job;
	enum err_code rc;
	struct str *names;
	size_t n;

	if ((rc = backup_store_names(job->store, job->arena, &names, &n, err)))
		return rc;
	while (n-- > 0) {
		rc = backup_store_read(job->store, names[n], job->arena, &s->last, err);
		if (!rc && str_eq(s->last.source, job->source_name))
			return ERR_OK;
		s->last = (struct backup_manifest){ 0 };
		if (rc && rc != ERR_CORRUPT && rc != ERR_UNSUPPORTED && rc != ERR_NOT_FOUND)
			return rc;
	}
	return ERR_OK;
}

/* ---- one file ---- */

static enum err_code backup_saving_copy(struct backup_saving *s, size_t i, int fd, struct err *err)
{
	struct backup_file *f = &s->made.files[i];
	enum err_code rc;
	struct err why;
	struct stat st;

	if (fstat(fd, &st) || bucket_file_hash(fd, f->hash, &why)) { /* the disk has lost it */
		fprintf(stderr, "epitool: warning: " STR_FMT " cannot be read, and is left out\n",
			STR_ARG(f->path));
		s->left_out[i] = true;
		s->unreadable++;
		return ERR_OK;
	}
	f->bytes = (uint64_t)st.st_size; /* it may have been replaced since it was listed */
	if (backup_store_has(s->job->store, f->hash, f->bytes))
		return ERR_OK;
	if ((rc = backup_store_put(s->job->store, f->hash, fd, err)))
		return rc;
	s->copied_files++;
	s->copied_bytes += f->bytes;
	return ERR_OK;
}

static enum err_code backup_saving_file(void *ctx, size_t i, struct err *err)
{
	struct backup_saving *s = ctx;
	const struct backup_source_file *from = &s->job->source->files[i];
	const struct backup_file *known = backup_saving_known(s, &from->is);
	struct backup_file *f = &s->made.files[i];
	enum err_code rc = ERR_OK;
	int fd;

	*f = (struct backup_file){ .path = from->is.key,
		.bytes = from->is.bytes,
		.modified_ns = from->is.modified_ns < s->began_ns - SETTLED_NS ? from->is.modified_ns : 0,
		.inode = from->is.inode };
	if (known && backup_store_has(s->job->store, known->hash, known->bytes)) {
		memcpy(f->hash, known->hash, sizeof(f->hash));
	} else {
		rc = place_open_file(from->in, from->is.key, &fd, err);
		s->left_out[i] = rc == ERR_NOT_FOUND && from->in != &s->job->source->data;
		if (s->left_out[i])
			return ERR_OK;
		if (!rc) {
			rc = backup_saving_copy(s, i, fd, err);
			close(fd);
		}
	}
	s->done += from->is.bytes;
	progress_set(s->done, s->total);
	return rc ? err_wrap(err, rc, "copy " STR_FMT, STR_ARG(from->is.key)) : ERR_OK;
}

/* ---- all of them ---- */

static void backup_saving_tick(void *ctx)
{
	struct backup_saving *s = ctx;

	backup_store_touch(s->job->store);
}

static void backup_saving_cancel(void *ctx)
{
	struct backup_saving *s = ctx;

	if (s->job->store->objects.bucket) /* the mark can still be taken away */
		bucket_cancel(s->job->store->objects.bucket, clock_monotonic_ns() + LAST_CALLS_NS);
}

static enum err_code backup_saving_copy_all(struct backup_saving *s, struct err *err)
{
	const struct backup_source *from = s->job->source;
	const struct copiers_job job = { .n = from->files_n,
		.workers = s->job->workers,
		.fn = backup_saving_file,
		.tick = backup_saving_tick,
		.cancel = backup_saving_cancel,
		.ctx = s };
	enum err_code rc;
	size_t n = 0;

	s->made.files = arena_array(s->job->arena, struct backup_file, from->files_n + 1);
	s->left_out = arena_array(s->job->arena, bool, from->files_n + 1);
	if (!s->made.files || !s->left_out)
		return arena_fail(s->job->arena, "backup", err);
	for (size_t i = 0; i < from->files_n; i++)
		s->total += from->files[i].is.bytes;
	progress_set(0, s->total);
	if ((rc = copiers_run(&job, err)))
		return rc;
	s->made.findings += s->unreadable;
	for (size_t i = 0; i < from->files_n; i++)
		if (!s->left_out[i])
			s->made.files[n++] = s->made.files[i];
	s->made.files_n = n;
	return ERR_OK;
}

enum err_code backup_save(const struct backup_job *job, struct backup_saved *out, struct err *err)
{
	struct backup_saving s = { .job = job, .began_ns = clock_now_ns() };
	enum err_code rc;

	if ((rc = backup_saving_find_last(&s, err)))
		return rc;
	if (job->verify)
		s.made.findings = job->verify(job->source->data.path, backup_saving_skips, &s);
	backup_name_make(job->store->name);
	s.made.name = str_of(job->store->name);
	s.made.source = job->source_name;
	if ((rc = backup_store_begin(job->store, err)) || (rc = backup_saving_copy_all(&s, err)) ||
		(rc = backup_store_commit(job->store, &s.made, err)))
		return rc;
	*out = (struct backup_saved){ .files = s.made.files_n,
		.bytes = backup_manifest_bytes(&s.made),
		.copied_files = s.copied_files,
		.copied_bytes = s.copied_bytes,
		.findings = s.made.findings };
	memcpy(out->name, job->store->name, sizeof(out->name));
	return ERR_OK;
}
