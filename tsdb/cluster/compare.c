#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "tsdb/catalog/state.h"
#include "tsdb/cluster/keys.h"
#include "tsdb/cluster/publisher_internal.h"
#include "tsdb/lists/losses.h"

/*
 * The next manifest.
 *
 * Blocks that the database has are in it once they are put. An entry that the database does not
 * have any more
 *
 *     stays    until the block that replaced it is in the manifest too;
 *     leaves   if it was dropped: the directory had it at the last comparison, or its inventory
 *              could be read at the start, and the list of losses does not have it; or its time is
 *              older than the retention;
 *     is kept  else.
 *
 * Objects that the last manifest named and this one does not go onto the list `gone`.
 */

struct next {
	struct round *r;
	struct publisher *p;
	const struct manifest *old;
	struct arena *a;
	struct manifest m;
	int64_t *gone_at;
};

/* ---- finding ---- */

static const struct manifest_block *cluster_compare_find_ready(
	const struct publisher *p, const struct ulid *u)
{
	for (size_t i = 0; i < p->ready_n; i++)
		if (p->ready[i].taken && ulid_eq(&p->ready[i].b.ulid, u))
			return &p->ready[i].b;
	return NULL;
}

bool block_is_named_locked(const struct publisher *p, const struct ulid *u)
{
	mutex_assert_held(&p->lock);
	return manifest_find_block(&p->m, u) || cluster_compare_find_ready(p, u);
}

/* ---- why an entry is not in the database ---- */

static bool cluster_compare_is_unreadable(const struct publisher_view *v, const struct ulid *u)
{
	for (size_t i = 0; i < v->unreadable_n; i++)
		if (ulid_eq(&v->unreadable[i], u))
			return true;
	return false;
}

static bool cluster_compare_is_over(const struct publisher_view *v, int64_t end_ns)
{
	return v->retention_ns && v->reached_ns && end_ns <= v->reached_ns - v->retention_ns;
}

/* The database dropped the entry, it did not lose it. path: its name on the list of losses. */
static bool next_was_dropped(const struct next *n, bool kept, const char *path)
{
	const struct publisher *p = n->p;
	bool known = p->compared || p->db->inventory_found == INVENTORY_READ;

	return known && !kept && !losses_has(p->db->losses, str_of(path));
}

/* ---- windows ---- */

static bool next_window_leaves(const struct next *n, struct manifest_window *w)
{
	const struct publisher_view *v = &n->r->view;
	/* A block knows only starts of windows: it has another window of this start, no kept one. */
	const struct view_block *by = w->kept ? NULL : view_cover_of_window(v, w->start_ns);
	char path[64];

	if (by)
		return manifest_find_block(&n->m, &by->ulid) != NULL;
	snprintf(path, sizeof(path), "head/%" PRId64, w->start_ns / NS_PER_S);
	if (next_was_dropped(n, w->kept, path) || cluster_compare_is_over(v, w->end_ns))
		return true;
	w->kept = true;
	return false;
}

static enum err_code next_add_segment(
	struct next *n, struct manifest_window *w, const struct manifest_segment *s, struct err *err)
{
	struct manifest_segment *v = arena_array(n->a, struct manifest_segment, w->segments_n + 1);

	if (!v)
		return arena_fail(n->a, "manifest", err);
	if (w->segments_n)
		memcpy(v, w->segments, w->segments_n * sizeof(*v));
	v[w->segments_n++] = *s;
	w->segments = v;
	return ERR_OK;
}

/* The window in the next manifest; adds it where there is none. */
static struct manifest_window *next_window_of(
	struct next *n, int64_t start_ns, int64_t end_ns, uint64_t identity)
{
	struct manifest_window *w = manifest_find_window(&n->m, start_ns, identity);

	if (!w) {
		w = &n->m.windows[n->m.windows_n++];
		*w = (struct manifest_window){
			.start_ns = start_ns, .end_ns = end_ns, .identity = identity
		};
	}
	return w;
}

static enum err_code next_add_put_segments(struct next *n, struct err *err)
{
	struct publisher *p = n->p;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < p->snapshots_n; i++) {
		const struct snapshot_task *t = &p->snapshots[i];
		struct manifest_window *w;

		if (!t->taken)
			continue;
		w = next_window_of(n, t->start_ns, t->end_ns, t->identity);
		if (w->segments_n && !w->diverged && w->segments[w->segments_n - 1].last > t->segment.last)
			continue;
		w->diverged = false;
		w->segments_n = 0;
		if ((rc = next_add_segment(n, w, &t->segment, err)))
			return rc;
	}
	for (size_t i = 0; i < n->r->segments_n && !rc; i++) {
		const struct round_segment *s = &n->r->segments[i];
		struct manifest_window *w = next_window_of(n, s->start_ns, s->end_ns, s->identity);
		uint64_t last;

		if (w->diverged && s->s.first == 1) {
			w->diverged = false;
			w->segments_n = 0;
		}
		last = w->segments_n ? w->segments[w->segments_n - 1].last : 0;

		if (s->s.first == last + 1)
			rc = next_add_segment(n, w, &s->s, err);
	}
	return rc;
}

static enum err_code next_add_windows(struct next *n, struct err *err)
{
	const struct publisher_view *v = &n->r->view;
	size_t max = n->old->windows_n + n->p->snapshots_n + n->r->segments_n;
	uint32_t stay = 0;
	enum err_code rc;

	if (!(n->m.windows = arena_array(n->a, struct manifest_window, max + 1)))
		return arena_fail(n->a, "manifest", err);
	for (uint32_t i = 0; i < n->old->windows_n; i++) {
		struct manifest_window *w = &n->m.windows[i];
		struct manifest_segment *s = arena_array(
			n->a, struct manifest_segment, n->old->windows[i].segments_n + 1);

		if (!s)
			return arena_fail(n->a, "manifest", err);
		*w = n->old->windows[i];
		if (w->segments_n)
			memcpy(s, w->segments, w->segments_n * sizeof(*s));
		w->segments = s;
	}
	n->m.windows_n = n->old->windows_n;
	if ((rc = next_add_put_segments(n, err)))
		return rc;
	for (uint32_t i = 0; i < n->m.windows_n; i++) {
		struct manifest_window w = n->m.windows[i];
		const struct view_window *is = view_find_window(v, w.start_ns, w.identity);

		if (!is && next_window_leaves(n, &w))
			continue;
		if (is)
			w.kept = w.apart = false;
		if (is && is->deleted.bytes)
			w.deleted = is->deleted;
		n->m.windows[stay++] = w;
	}
	n->m.windows_n = stay;
	return ERR_OK;
}

/* ---- blocks ---- */

static void next_add_block(struct next *n, const struct view_block *is)
{
	const struct manifest_block *old = manifest_find_block(n->old, &is->ulid),
								*b = old ? old : cluster_compare_find_ready(n->p, &is->ulid);
	struct manifest_block *out;

	/* Without its deleted ranges the block would show deleted rows again. */
	if (!b || (!old && is->deleted_failed))
		return;
	out = &n->m.blocks[n->m.blocks_n++];
	*out = *b;
	out->kept = out->apart = false;
	if (is->deleted.bytes)
		out->deleted = is->deleted;
	if (out->raw && !is->raw && is->meta.bytes) {
		out->raw = false;
		out->rows = (struct manifest_file){ 0 };
		out->meta = is->meta;
		out->meta_changed = true;
	}
}

static bool next_block_leaves(const struct next *n, struct manifest_block *b)
{
	const struct publisher_view *v = &n->r->view;
	const struct view_block *by;
	char path[sizeof("blocks/") + ULID_LEN];
	bool had;

	snprintf(path, sizeof(path), "blocks/%s", b->ulid.text);
	had = !b->kept && !losses_has(n->p->db->losses, str_of(path));
	if ((by = view_cover_of_block(v, b, had))) {
		b->kept = false;
		return manifest_find_block(&n->m, &by->ulid) != NULL;
	}
	if (!cluster_compare_is_unreadable(v, &b->ulid) &&
		(next_was_dropped(n, b->kept, path) || cluster_compare_is_over(v, b->max_ns)))
		return true;
	b->kept = true;
	return false;
}

static enum err_code next_add_blocks(struct next *n, struct err *err)
{
	const struct publisher_view *v = &n->r->view;

	n->m.blocks = arena_array(n->a, struct manifest_block, v->blocks_n + n->old->blocks_n + 1);
	if (!n->m.blocks)
		return arena_fail(n->a, "manifest", err);
	for (size_t i = 0; i < v->blocks_n; i++)
		next_add_block(n, &v->blocks[i]);
	for (uint32_t i = 0; i < n->old->blocks_n; i++) {
		struct manifest_block b = n->old->blocks[i];

		if (!view_find_block(v, &b.ulid) && !next_block_leaves(n, &b))
			n->m.blocks[n->m.blocks_n++] = b;
	}
	return ERR_OK;
}

/* ---- what is gone ---- */

struct gone {
	struct manifest_gone g;
	int64_t at_ns; /* p->gone_at */
};

static int cluster_compare_gone_cmp(const void *a, const void *b)
{
	const struct gone *x = a, *y = b;
	int c = str_cmp(x->g.key, y->g.key);

	/* first the one whose delay has begun */
	return c ? c : (x->at_ns == 0) - (y->at_ns == 0);
}

struct gones {
	struct arena *a;
	struct gone *v;
	size_t n, cap;
};

static bool gones_add_gone(struct gones *g, struct str key, int64_t wall_ns, int64_t at_ns)
{
	struct str copy = str_dup(g->a, key);

	if (!copy.ptr || !arena_array_room(g->a, &g->v, g->n, 1, &g->cap))
		return false;
	g->v[g->n++] = (struct gone){ { copy, wall_ns }, at_ns };
	return true;
}

/* Collects all keys that may be gone; some may be there twice. */
static bool next_collect_gone(struct next *n, struct gones *g, const struct key_set *old)
{
	const struct publisher *p = n->p;
	int64_t now = clock_now_ns();
	bool ok = true;

	for (uint32_t i = 0; i < n->old->gone_n && ok; i++)
		if (p->gone_at[i] != GONE_REMOVED)
			ok = gones_add_gone(g, n->old->gone[i].key, n->old->gone[i].at_ns, p->gone_at[i]);
	for (size_t i = 0; i < old->n && ok; i++)
		ok = gones_add_gone(g, old->v[i], now, 0);
	for (size_t i = 0; i < p->found_n && ok; i++)
		ok = gones_add_gone(g, str_of(p->found[i]), now, 0);
	return ok;
}

/* Blocks that were put and are not needed any more, before a manifest named them. */
static bool next_collect_unneeded(struct next *n, struct gones *g)
{
	struct publisher *p = n->p;
	int64_t now = clock_now_ns();

	for (size_t i = 0; i < p->ready_n; i++) {
		const struct manifest_block *b = &p->ready[i].b;

		if (!p->ready[i].taken || manifest_find_block(&n->m, &b->ulid) ||
			view_find_block(&n->r->view, &b->ulid))
			continue;
		for (unsigned k = 0; k < MANIFEST_BLOCK_FILES; k++) {
			struct manifest_key key = manifest_key_block(p->o.shard, b, k);

			if (manifest_block_file(b, k)->bytes &&
				!gones_add_gone(g, manifest_key_rest(&key, p->o.shard), now, 0))
				return false;
		}
	}
	return true;
}

static enum err_code next_add_all_gone(struct next *n, struct err *err)
{
	struct gones g = { .a = &n->r->a };
	struct key_set old, named;
	enum err_code rc;

	if ((rc = key_set_named(n->old, n->p->o.shard, &n->r->a, &old, err)) ||
		(rc = key_set_named(&n->m, n->p->o.shard, &n->r->a, &named, err)))
		return rc;
	if (!next_collect_gone(n, &g, &old) || !next_collect_unneeded(n, &g))
		return arena_fail(&n->r->a, "manifest", err);
	if (g.n)
		qsort(g.v, g.n, sizeof(*g.v), cluster_compare_gone_cmp);
	n->m.gone = arena_array(n->a, struct manifest_gone, g.n + 1);
	n->gone_at = arena_array(n->a, int64_t, g.n + 1);
	if (!n->m.gone || !n->gone_at)
		return arena_fail(n->a, "manifest", err);
	for (size_t i = 0; i < g.n && n->m.gone_n < MANIFEST_GONE_MAX; i++) {
		struct str key = g.v[i].g.key;

		if ((i && str_eq(g.v[i - 1].g.key, key)) || key_set_has(&named, key))
			continue;
		if (!(n->m.gone[n->m.gone_n].key = str_dup(n->a, key)).ptr)
			return arena_fail(n->a, "manifest", err);
		n->m.gone[n->m.gone_n].at_ns = g.v[i].g.at_ns;
		n->gone_at[n->m.gone_n++] = g.v[i].at_ns;
	}
	return ERR_OK;
}

/* ---- the whole ---- */

static enum err_code next_fill(struct next *n, struct err *err)
{
	const struct round *r = n->r;
	enum err_code rc;

	n->m.through_ns = n->old->through_ns;
	n->m.dropped_ns = n->old->dropped_ns;
	n->m.dropped_size_ns = n->old->dropped_size_ns;
	n->m.ids = r->ids.bytes ? r->ids : n->old->ids;
	n->m.losses = r->losses.bytes ? r->losses : n->old->losses;
	n->m.loss_due = n->old->loss_due;
	if ((rc = next_add_blocks(n, err)) || (rc = next_add_windows(n, err)))
		return rc;
	if (n->m.windows_n > MANIFEST_WINDOWS_MAX || n->m.blocks_n > MANIFEST_BLOCKS_MAX)
		return err_set(err, ERR_LIMIT, "%u windows and %u blocks, limits %u and %u", n->m.windows_n,
			n->m.blocks_n, MANIFEST_WINDOWS_MAX, MANIFEST_BLOCKS_MAX);
	manifest_sort(&n->m);
	return next_add_all_gone(n, err);
}

static void cluster_compare_drop_used(struct publisher *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->ready_n; i++) {
		/* One whose deleted ranges could not be put waits for the next round. */
		bool waits = p->ready[i].taken && !manifest_find_block(&p->m, &p->ready[i].b.ulid);

		for (uint32_t k = 0; k < p->m.gone_n && waits; k++)
			waits = str_find(p->m.gone[k].key, str_of(p->ready[i].b.ulid.text)) < 0;
		if (p->ready[i].taken && !waits)
			continue;
		p->ready[i].taken = false;
		p->ready[kept++] = p->ready[i];
	}
	p->ready_n = kept;
	kept = 0;
	for (size_t i = 0; i < p->snapshots_n; i++)
		if (!p->snapshots[i].taken)
			p->snapshots[kept++] = p->snapshots[i];
	p->snapshots_n = kept;
	for (size_t i = 0; i < p->found_n; i++)
		free(p->found[i]);
	p->found_n = 0;
}

enum err_code compare_locked(struct round *r, struct err *err)
{
	struct publisher *p = r->p;
	struct arena a;
	struct next n = { .r = r, .p = p, .old = &p->m, .a = &a };
	enum err_code rc;

	mutex_assert_held(&p->lock);
	arena_init(&a, 0);
	if ((rc = next_fill(&n, err))) {
		arena_release(&a);
		return rc;
	}
	p->compared = true;
	p->m = n.m;
	p->gone_at = n.gone_at;
	arena_release(&p->arena);
	p->arena = a;
	cluster_compare_drop_used(p);
	return ERR_OK;
}

/* ---- segments ---- */

static bool cluster_compare_cover_is_named(const struct round *r, int64_t start_ns)
{
	const struct view_block *by = view_cover_of_window(&r->view, start_ns);

	return by && manifest_find_block(&r->p->m, &by->ulid);
}

bool ship_is_over_locked(const struct round *r, const struct head_ship_window *w)
{
	mutex_assert_held(&r->p->lock);
	if (w->in_head || view_find_window(&r->view, w->start_ns, w->identity))
		return false;
	if (view_cover_of_window(&r->view, w->start_ns))
		return cluster_compare_cover_is_named(r, w->start_ns) || w->end_ns <= r->p->m.dropped_ns;
	/* It was dropped, or its block is younger than our lists. */
	return !manifest_find_window(&r->p->m, w->start_ns, w->identity);
}

bool round_is_complete_locked(const struct round *r)
{
	mutex_assert_held(&r->p->lock);
	for (size_t i = 0; i < r->ship_n; i++) {
		const struct head_ship_window *w = &r->ship[i];
		const struct manifest_window *is = manifest_find_window(&r->p->m, w->start_ns, w->identity);

		if (!is && w->end_ns <= r->p->m.dropped_ns)
			continue;
		if (!w->last ||
			(is && is->segments_n && !is->diverged &&
				is->segments[is->segments_n - 1].last >= w->last))
			continue;
		if (!cluster_compare_cover_is_named(r, w->start_ns) && !ship_is_over_locked(r, w))
			return false;
	}
	return true;
}
