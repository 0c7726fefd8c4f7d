#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "tsdb/head/follow.h"
#include "tsdb/head/segment_put.h"

/*
 * The store is made under a name that no start reads, and renamed when it is whole. The files
 * beside it (what was acknowledged, small records a second time) are made by the next start.
 */
#define RESTORING ".restoring"

struct head_restore {
	struct fs *fs;
	char *head, *dir, *temporary;
	struct segment_put put;
	struct window_count count; /* after what was added */
};

static enum err_code head_restore_write_meta(struct head_restore *r, struct err *err)
{
	struct window w = {
		.start_ns = r->put.of.start_ns, .end_ns = r->put.of.end_ns, .identity = r->put.of.identity
	};
	struct key key = key_of('m');
	struct buf value = { 0 };
	enum err_code rc;

	head_encode_meta(&w, false, &value);
	store_batch_clear(r->put.batch);
	store_batch_put(r->put.batch, key_str(&key), &value);
	rc = buf_failed(&value) ? err_nomem(err, "restore") :
							  store_write(r->put.store, r->put.batch, err);
	buf_release(&value);
	return rc;
}

static enum err_code head_restore_begin(
	struct head_restore *r, const struct store_ops *store, const char *dir, struct err *err)
{
	int64_t start_s = r->put.of.start_ns / NS_PER_S;
	enum err_code rc;

	if (asprintf(&r->head, "%s/head", dir) < 0 ||
		asprintf(&r->dir, "%s/%" PRId64, r->head, start_s) < 0 ||
		asprintf(&r->temporary, "%s" RESTORING, r->dir) < 0)
		return err_nomem(err, "restore");
	if (fs_exists(r->dir))
		return err_set(err, ERR_EXISTS, "%s is there", r->dir);
	if ((rc = fs_mkdir_all(r->fs, r->head, err)) ||
		(rc = fs_remove_tree(r->fs, r->temporary, err)) || (rc = segment_put_init(&r->put, err)) ||
		(rc = store_open(r->temporary, NULL, store, &r->put.store, err)))
		return rc;
	store_set_identity(r->put.store, r->put.of.identity);
	return head_restore_write_meta(r, err);
}

enum err_code head_restore_open(struct fs *fs, const struct store_ops *store, const char *dir,
	const struct segment *of, struct head_restore **out, struct err *err)
{
	struct head_restore *r = calloc(1, sizeof(*r));
	enum err_code rc;

	if (!r)
		return err_nomem(err, "restore");
	r->fs = fs;
	r->put.of = *of;
	if ((rc = head_restore_begin(r, store, dir, err)))
		head_restore_close(r);
	else
		*out = r;
	return rc ? err_wrap(err, rc, "restore window %" PRId64, of->start_ns / NS_PER_S) : ERR_OK;
}

enum err_code head_restore_add(
	struct head_restore *r, const struct segment *of, struct str bytes, struct err *err)
{
	enum err_code rc;

	if (of->last <= r->put.seq)
		return ERR_OK;
	if (of->first > r->put.seq + 1)
		return err_set(err, ERR_NOT_FOUND,
			"restore window %" PRId64 ": batch %" PRIu64 " is missing", of->start_ns / NS_PER_S,
			r->put.seq + 1);
	r->put.of = *of;
	if ((rc = segment_put_names(&r->put, bytes, err)) ||
		(rc = segment_put_rows(&r->put, bytes, err)))
		return err_wrap(err, rc, "restore");
	r->put.seq = of->last;
	r->count = r->put.count;
	return ERR_OK;
}

enum err_code head_restore_pass(struct head_restore *r, uint64_t last, struct err *err)
{
	struct key key = key_of('c');
	struct buf value = { 0 };
	enum err_code rc;

	assert(r->put.seq && last >= r->put.seq);
	r->count.seq = r->put.seq = last;
	head_encode_count(&r->count, &value);
	store_batch_clear(r->put.batch);
	store_batch_set_identity(r->put.batch, r->put.of.identity);
	store_batch_put(r->put.batch, key_str(&key), &value);
	rc = buf_failed(&value) ? err_nomem(err, "restore") :
							  store_write(r->put.store, r->put.batch, err);
	buf_release(&value);
	return rc ? err_wrap(err, rc, "restore") : ERR_OK;
}

enum err_code head_restore_end(struct head_restore *r, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (!r->put.seq)
		rc = err_set(err, ERR_NOT_FOUND, "restore: no segment");
	store_close(r->put.store);
	r->put.store = NULL;
	if (!rc && !(rc = r->fs->ops->sync_dir(r->fs, r->temporary, err)) &&
		!(rc = r->fs->ops->rename(r->fs, r->temporary, r->dir, err)))
		rc = r->fs->ops->sync_dir(r->fs, r->head, err);
	head_restore_close(r);
	return rc;
}

void head_restore_close(struct head_restore *r)
{
	struct err err;

	if (!r)
		return;
	store_close(r->put.store);
	segment_put_release(&r->put);
	if (r->temporary && fs_remove_tree(r->fs, r->temporary, &err))
		log_warn("tsdb", "not removed", LOG_S("path", r->temporary), LOG_E(&err));
	free(r->head);
	free(r->dir);
	free(r->temporary);
	free(r);
}
