/*
 * Indexes of other servers. A job has the place of the key meanwhile, so that no extraction goes on
 * beside it; what is published goes the way of an extraction's.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tsdb/debuginfo/service/debuginfo.h"
#include "tsdb/debuginfo/service/inspect.h"

struct import {
	struct debuginfo_store *store;
	const struct debuginfo_id *id;
	struct debuginfo_file file;
	struct symindex *theirs, *ours;
	struct debuginfo_index *own; /* ours is in it */
	struct buf merged;
	struct debuginfo_job *job;
	bool *more;
};

/* All of it is verified: what becomes part of an index gets new checksums. */
static enum err_code import_read(struct import *to, struct str file, struct err *err)
{
	enum err_code rc = debuginfo_file_read(file, to->id, &to->file, err);

	if (rc || (rc = symindex_open(to->file.index, &to->theirs, err)) ||
		(rc = symindex_verify_all(to->theirs, err)))
		return rc;
	return inspect_id(to->id, to->theirs, err);
}

static enum err_code import_begin_job(struct import *to, struct err *err)
{
	const struct debuginfo_offer o = { .kind = to->file.kind,
		.origin = to->file.origin,
		.path = str_of(to->file.path),
		.force = true };
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* a job has a file that it is made of */
	enum err_code rc;

	if (fd < 0)
		return err_errno(err, errno, "open /dev/null");
	if ((rc = debuginfo_job_begin(to->store, to->id, &o, fd, &to->job, err)))
		return rc == ERR_EXISTS ? ERR_UNAVAILABLE : rc;
	to->job->shared = true;
	to->job->source_bytes = to->file.source_bytes;
	to->job->added_s = to->file.added_s;
	return ERR_OK;
}

/* Ends the job. */
static enum err_code import_publish(struct import *to, struct str index, struct err *err)
{
	struct debuginfo_found found = { .quality = DEBUGINFO_NOTHING };
	struct debuginfo_job *j = to->job;
	struct err why = { .code = ERR_OK };
	enum err_code rc = fs_posix.ops->write(&fs_posix, j->out_fd, index.ptr, index.len, &why);

	to->job = NULL;
	if (!rc)
		rc = inspect_job(j, &found, &why);
	if (!rc)
		return debuginfo_job_publish(j, &found, err);
	why.code = rc;
	debuginfo_job_fail(j, &why);
	return err_copy(err, &why);
}

static enum err_code import_adopt(struct import *to, struct err *err)
{
	debuginfo_job_forget_older(to->job);
	return import_publish(to, to->file.index, err);
}

static enum err_code import_merge(struct import *to, struct err *err)
{
	struct symindex_builder *b;
	struct str build_id = symindex_build_id(to->theirs);
	enum err_code rc = symindex_builder_open(&symindex_limits_default, &b, err);

	if (rc)
		return rc;
	if (!build_id.len)
		build_id = symindex_build_id(to->ours);
	if (!(rc = symindex_add_index(b, to->theirs, err)) &&
		!(rc = symindex_add_index(b, to->ours, err)))
		rc = symindex_finish(b, build_id, &to->merged, err);
	symindex_builder_close(b);
	return rc;
}

static enum err_code import_keep_own(struct import *to, struct err *err)
{
	*to->more = true;
	return err_set(err, ERR_EXISTS, "what is here says more");
}

/* One of both stays, where they cannot become one. */
static enum err_code import_choose(struct import *to, struct err *err)
{
	enum symindex_quality theirs = symindex_best(to->theirs), ours = symindex_best(to->ours);
	size_t bytes = debuginfo_index_bytes(to->own).len;

	if (theirs < ours || (theirs == ours && to->file.index.len < bytes))
		return import_keep_own(to, err);
	return import_adopt(to, err);
}

static enum err_code import_both(struct import *to, struct err *err)
{
	struct str own = debuginfo_index_bytes(to->own);
	struct err why;

	if (own.len > DEBUGINFO_MERGED_BYTES_MAX || to->file.index.len > DEBUGINFO_MERGED_BYTES_MAX ||
		import_merge(to, &why))
		return import_choose(to, err);
	if (str_eq(buf_str(&to->merged), to->file.index))
		return import_adopt(to, err);
	if (str_eq(buf_str(&to->merged), own))
		return import_keep_own(to, err);
	*to->more = true;
	return import_publish(to, buf_str(&to->merged), err);
}

/* There is an index here. False: it turned out to be damaged, or it is gone. */
static bool import_open_own(struct import *to)
{
	struct err err;

	inspect_older(to->job);
	if (debuginfo_peek(to->store, to->id, &to->own, &err))
		return false;
	return !symindex_open(debuginfo_index_bytes(to->own), &to->ours, &err);
}

enum err_code debuginfo_import(struct debuginfo *d, const struct debuginfo_id *id, struct str file,
	bool whole, bool *more, struct err *err)
{
	struct import m = { .store = debuginfo_store(d), .id = id, .more = more };
	enum err_code rc;

	*more = false;
	if ((rc = import_read(&m, file, err)) || (rc = import_begin_job(&m, err)))
		goto end;
	if (!import_open_own(&m))
		rc = import_adopt(&m, err);
	else if (str_eq(debuginfo_index_bytes(m.own), m.file.index))
		rc = err_set(err, ERR_EXISTS, "the same is here");
	else if (whole && symindex_best(m.theirs) >= symindex_best(m.ours))
		rc = import_adopt(&m, err);
	else
		rc = import_both(&m, err);
end:
	if (m.job) /* nothing was published */
		debuginfo_job_fail(m.job, &(struct err){ .code = ERR_CANCELED });
	buf_release(&m.merged);
	symindex_close(m.ours);
	debuginfo_index_close(m.own);
	symindex_close(m.theirs);
	return rc;
}
