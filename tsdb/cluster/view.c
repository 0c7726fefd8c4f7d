#include <stdlib.h>

#include "tsdb/catalog/state.h"
#include "tsdb/cluster/publisher_internal.h"

/*
 * The lists of a database, copied in one step under its lock: windows and blocks as a querier would
 * find them. Nothing is pinned.
 */

static enum err_code cluster_view_copy_block(
	const struct db_block *b, struct arena *a, struct view_block *out, struct err *err)
{
	const struct block_meta *m = block_meta(b->block);
	int64_t *heads = arena_array(a, int64_t, m->heads_n + 1);
	struct ulid *sources = arena_array(a, struct ulid, m->sources_n + 1);
	struct str dir = str_dup(a, str_of(blocks_local_dir(b)));

	if (!heads || !sources || !dir.ptr)
		return arena_fail(a, "publish", err);
	if (m->heads_n)
		memcpy(heads, m->heads, m->heads_n * sizeof(*heads));
	if (m->sources_n)
		memcpy(sources, m->sources, m->sources_n * sizeof(*sources));
	*out = (struct view_block){ .ulid = m->ulid,
		.min_ns = m->min_ns,
		.max_ns = m->max_ns,
		.level = m->level,
		.raw = m->raw,
		.remote = b->remote,
		.deleted_n = b->deleted_n,
		.bytes = block_disk_bytes(b->block),
		.dir = dir.ptr,
		.heads = heads,
		.sources = sources,
		.heads_n = m->heads_n,
		.sources_n = m->sources_n };
	return ERR_OK;
}

static enum err_code cluster_view_copy_locked(
	const struct db *db, struct arena *a, struct publisher_view *v, struct err *err)
{
	enum err_code rc = ERR_OK;
	struct ulid u;

	v->blocks = arena_array(a, struct view_block, db->blocks_n + 1);
	v->windows = arena_array(a, struct view_window, db->windows_n + 1);
	v->unreadable = arena_array(a, struct ulid, db->unreadable_n + 1);
	if (!v->blocks || !v->windows || !v->unreadable)
		return arena_fail(a, "publish", err);
	for (size_t i = 0; i < db->blocks_n && !rc; i++)
		rc = cluster_view_copy_block(db->blocks[i], a, &v->blocks[v->blocks_n++], err);
	for (size_t i = 0; i < db->windows_n; i++) {
		const struct window *w = db->windows[i];

		v->windows[v->windows_n++] = (struct view_window){ w->start_ns, w->end_ns, w->identity,
			w->deleted_n, { 0 } };
	}
	for (size_t i = 0; i < db->unreadable_n; i++)
		if (ulid_parse(str_base_name(str_of(db->unreadable[i].dir)), &u))
			v->unreadable[v->unreadable_n++] = u;
	v->reached_ns = db_reached_ns(db);
	v->retention_ns = db->o.retention_ns;
	return rc;
}

enum err_code view_take(struct db *db, struct arena *a, struct publisher_view *out, struct err *err)
{
	enum err_code rc;

	*out = (struct publisher_view){ 0 };
	mutex_lock(&db->lock);
	rc = cluster_view_copy_locked(db, a, out, err);
	mutex_unlock(&db->lock);
	return rc;
}

const struct view_block *view_find_block(const struct publisher_view *v, const struct ulid *u)
{
	for (size_t i = 0; i < v->blocks_n; i++)
		if (ulid_eq(&v->blocks[i].ulid, u))
			return &v->blocks[i];
	return NULL;
}

const struct view_window *view_find_window(
	const struct publisher_view *v, int64_t start_ns, uint64_t identity)
{
	for (size_t i = 0; i < v->windows_n; i++)
		if (v->windows[i].start_ns == start_ns && v->windows[i].identity == identity)
			return &v->windows[i];
	return NULL;
}

const struct view_block *view_cover_of_window(const struct publisher_view *v, int64_t start_ns)
{
	for (size_t i = 0; i < v->blocks_n; i++)
		for (uint32_t k = 0; k < v->blocks[i].heads_n; k++)
			if (v->blocks[i].heads[k] == start_ns)
				return &v->blocks[i];
	return NULL;
}

/*
 * If the block made of this one was joined again, no list of sources has this one any more. But
 * blocks do not overlap: one that covers its time has replaced it, if the directory had it.
 */
const struct view_block *view_cover_of_block(
	const struct publisher_view *v, const struct manifest_block *b, bool had)
{
	for (size_t i = 0; i < v->blocks_n; i++) {
		const struct view_block *by = &v->blocks[i];

		if (ulid_eq(&by->ulid, &b->ulid))
			continue;
		if (had && by->min_ns <= b->min_ns && b->max_ns <= by->max_ns)
			return by;
		for (uint32_t k = 0; k < by->sources_n; k++)
			if (ulid_eq(&by->sources[k], &b->ulid))
				return by;
	}
	return NULL;
}
