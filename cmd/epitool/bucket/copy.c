#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/log.h"
#include "cmd/epitool/bucket/copy.h"
#include "cmd/epitool/copiers.h"
#include "cmd/epitool/progress.h"

enum rank { RANK_OTHERS, RANK_META, RANK_MANIFEST, RANKS };

struct objects_copying {
	const struct place *from, *to;
	struct arena arena;
	struct place_list source, target;
	uint64_t total; /* bytes */
	uint64_t odd;
	enum rank rank; /* of this turn */
	_Atomic uint64_t done; /* bytes */
	_Atomic uint64_t copied, bytes, there, gone;
};

static struct str copy_last_part(struct str key)
{
	size_t n = key.len;

	while (n && key.ptr[n - 1] != '/')
		n--;
	return (struct str){ key.ptr + n, key.len - n };
}

static enum rank copy_rank_of(struct str key)
{
	struct str name = copy_last_part(key);

	return str_is(name, "manifest") ? RANK_MANIFEST :
		str_is(name, "meta.json")   ? RANK_META :
									  RANK_OTHERS;
}

static int copy_by_key(const void *a, const void *b)
{
	const struct place_object *x = a, *y = b;

	return str_cmp(x->key, y->key);
}

/* ---- one object ---- */

static enum err_code copy_is_there(
	struct objects_copying *c, const struct place_object *o, bool *out, struct err *err)
{
	char ours[BUCKET_HASH_LEN + 1] = "", theirs[BUCKET_HASH_LEN + 1] = "";
	const struct place_object *t;
	enum err_code rc;

	t = c->target.n ? bsearch(o, c->target.v, c->target.n, sizeof(*t), copy_by_key) : NULL;
	*out = false;
	if (!t || t->bytes != o->bytes)
		return ERR_OK;
	if ((rc = place_hash(c->from, o->key, ours, err)))
		return rc;
	if (!ours[0]) /* of another program: it is copied again */
		return ERR_OK;
	rc = place_hash(c->to, o->key, theirs, err);
	*out = !rc && !strcmp(ours, theirs);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

static enum err_code copy_one(
	struct objects_copying *c, const struct place_object *o, struct err *err)
{
	enum err_code rc;
	bool there;

	if ((rc = copy_is_there(c, o, &there, err)))
		goto end;
	if (there) {
		c->there++;
	} else if (!(rc = place_copy(c->from, o->key, c->to, o->key, err))) {
		c->copied++;
		c->bytes += o->bytes;
	}
end:
	if (rc == ERR_NOT_FOUND) {
		c->gone++;
		rc = ERR_OK;
	}
	c->done += o->bytes;
	progress_set(c->done, c->total);
	return rc;
}

/* ---- all of them ---- */

static enum err_code copy_work(void *ctx, size_t i, struct err *err)
{
	struct objects_copying *c = ctx;
	const struct place_object *o = &c->source.v[i];

	return copy_rank_of(o->key) == c->rank ? copy_one(c, o, err) : ERR_OK;
}

static void copy_cancel(void *ctx)
{
	struct objects_copying *c = ctx;

	if (c->from->bucket)
		bucket_cancel(c->from->bucket, 0);
	if (c->to->bucket)
		bucket_cancel(c->to->bucket, 0);
}

static enum err_code copy_list_both(struct objects_copying *c, struct err *err)
{
	enum err_code rc;

	if ((rc = place_list(c->from, &c->arena, &c->source, err)))
		return rc;
	rc = place_list(c->to, &c->arena, &c->target, err);
	return rc == ERR_NOT_FOUND && !c->to->bucket ? ERR_OK : rc; /* it will be made */
}

/*
 * The manifests of a bucket as they are now, as files; a source like any other. Without one of them
 * the copy is a newer one's, which names what was not listed.
 */
static enum err_code copy_save_manifests(
	struct objects_copying *c, const char *dir, struct place_list *out, struct err *err)
{
	const struct place saved = { .path = dir };
	enum err_code rc;

	for (size_t i = 0; i < c->source.n; i++)
		if (copy_rank_of(c->source.v[i].key) == RANK_MANIFEST &&
			(rc = place_copy(c->from, c->source.v[i].key, &saved, c->source.v[i].key, err)) &&
			rc != ERR_NOT_FOUND)
			return rc;
	return place_list(&saved, &c->arena, out, err);
}

static enum err_code copy_all(
	struct objects_copying *c, const char *dir, unsigned workers, struct err *err)
{
	const struct place saved = { .path = dir }, *from = c->from;
	struct copiers_job job = {
		.workers = workers, .fn = copy_work, .cancel = copy_cancel, .ctx = c
	};
	struct place_list manifests = { 0 };
	enum err_code rc;

	if ((rc = copy_list_both(c, err)))
		return rc;
	if (from->bucket && (rc = copy_save_manifests(c, dir, &manifests, err)))
		return rc;
	if (manifests.n && (rc = copy_list_both(c, err))) /* what they name is there now */
		return rc;
	for (size_t i = 0; i < c->source.n; i++)
		c->total += c->source.v[i].bytes;
	c->odd = c->source.odd;
	progress_set(0, c->total);
	for (c->rank = 0; c->rank < RANKS && !rc; c->rank++) {
		if (c->rank == RANK_MANIFEST && c->gone) /* it may name them */
			break;
		if (c->rank == RANK_MANIFEST && from->bucket) {
			c->from = &saved;
			c->source = manifests;
		}
		job.n = c->source.n;
		rc = copiers_run(&job, err);
		c->from = from;
	}
	return rc;
}

enum err_code objects_copy_tree(const struct place *from, const struct place *to, unsigned workers,
	struct copy_result *out, struct err *err)
{
	struct objects_copying c = { .from = from, .to = to };
	struct err remove_err;
	enum err_code rc;
	char *dir;

	if (asprintf(&dir, "%s/epitool-XXXXXX", place_temp_dir()) < 0)
		return err_nomem(err, "copy");
	if (!mkdtemp(dir)) {
		rc = err_errno(err, errno, "%s", dir);
		free(dir);
		return rc;
	}
	arena_init(&c.arena, 0);
	progress_begin("copying");
	rc = copy_all(&c, dir, workers, err);
	progress_end();
	*out = (struct copy_result){ c.copied, c.bytes, c.there, c.gone, c.odd };
	if (fs_remove_tree(&fs_posix, dir, &remove_err))
		log_warn("epitool", "a directory stays", LOG_S("path", dir), LOG_E(&remove_err));
	free(dir);
	arena_release(&c.arena);
	return rc;
}
