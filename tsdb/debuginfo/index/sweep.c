/*
 * Overlaps: a sweep over the segments in order of their starts. Those that began and did not end
 * are in a heap, the one that counts on top. One that cannot count any more (the top counts more
 * and lasts longer) is dropped when it comes; others that have ended are dropped when they come
 * to the top, or when the heap is full.
 */
#include <stdlib.h>

#include "tsdb/debuginfo/index/builder.h"

#define OVERLAPS_MAX (1u << 20) /* at one address */
#define HEAP_MIN 64u /* a power of two, as OVERLAPS_MAX */

struct open_heap {
	struct symindex_segment *v;
	size_t n, cap;
};

struct symindex_pending {
	uint64_t start, end;
	uint32_t frame;
	bool there;
	sweep_fn fn;
	void *ctx;
};

static bool symindex_counts_more(const struct symindex_builder *b, const struct symindex_segment *s,
	const struct symindex_segment *segment)
{
	const struct scope_order *ox, *oy;
	uint32_t sx, sy;

	if (s->rank != segment->rank)
		return s->rank > segment->rank;
	if (s->end - s->start != segment->end - segment->start)
		return s->end - s->start < segment->end - segment->start;
	if (s->start != segment->start)
		return s->start > segment->start;
	sx = builder_frame(b, s->frame)->scope;
	sy = builder_frame(b, segment->frame)->scope;
	ox = builder_scope_order(b, sx);
	oy = builder_scope_order(b, sy);
	if (ox->depth != oy->depth)
		return ox->depth > oy->depth;
	if (ox->hash != oy->hash)
		return ox->hash < oy->hash;
	return builder_frame(b, s->frame)->line < builder_frame(b, segment->frame)->line;
}

static void symindex_sweep_sift_down(
	const struct symindex_builder *b, struct open_heap *h, size_t i)
{
	struct symindex_segment item = h->v[i];
	size_t child;

	while ((child = 2 * i + 1) < h->n) {
		if (child + 1 < h->n && symindex_counts_more(b, &h->v[child + 1], &h->v[child]))
			child++;
		if (!symindex_counts_more(b, &h->v[child], &item))
			break;
		h->v[i] = h->v[child];
		i = child;
	}
	h->v[i] = item;
}

static void symindex_pop(const struct symindex_builder *b, struct open_heap *h)
{
	h->v[0] = h->v[--h->n];
	if (h->n)
		symindex_sweep_sift_down(b, h, 0);
}

static enum err_code symindex_widen(struct open_heap *h, struct err *err)
{
	size_t cap = h->cap ? h->cap * 2 : HEAP_MIN;
	struct symindex_segment *v = realloc(h->v, cap * sizeof(*v));

	if (!v)
		return err_nomem(err, "symbol index: ranges that overlap");
	h->v = v;
	h->cap = cap;
	return ERR_OK;
}

/*
 * Drops those that have ended. It takes constant time a segment: where few have, the array grows,
 * and ends at twice the limit.
 */
static enum err_code symindex_make_room(
	const struct symindex_builder *b, struct open_heap *h, uint64_t at, struct err *err)
{
	size_t kept = 0;

	for (size_t i = 0; i < h->n; i++)
		if (h->v[i].end > at)
			h->v[kept++] = h->v[i];
	h->n = kept;
	for (size_t i = kept / 2; i-- > 0;)
		symindex_sweep_sift_down(b, h, i);
	if (kept >= OVERLAPS_MAX)
		return err_set(err, ERR_LIMIT, "symbol index: more than %u ranges overlap at 0x%llx",
			OVERLAPS_MAX, (unsigned long long)at);
	return kept > h->cap / 2 ? symindex_widen(h, err) : ERR_OK;
}

static enum err_code symindex_push(const struct symindex_builder *b, struct open_heap *h,
	const struct symindex_segment *s, struct err *err)
{
	enum err_code rc;
	size_t i, up;

	if (h->n && h->v[0].end >= s->end && symindex_counts_more(b, &h->v[0], s))
		return ERR_OK;
	if (h->n == h->cap) {
		if ((rc = h->cap ? symindex_make_room(b, h, s->start, err) : symindex_widen(h, err)))
			return rc;
	}
	for (i = h->n++; i && symindex_counts_more(b, s, &h->v[up = (i - 1) / 2]); i = up)
		h->v[i] = h->v[up];
	h->v[i] = *s;
	return ERR_OK;
}

static enum err_code symindex_give(struct symindex_pending *p, struct err *err)
{
	return p->there ? p->fn(p->ctx, p->start, p->end, p->frame, err) : ERR_OK;
}

static enum err_code symindex_emit(
	struct symindex_pending *p, uint64_t start, uint64_t end, uint32_t frame, struct err *err)
{
	enum err_code rc;

	if (p->there && p->end == start && p->frame == frame) {
		p->end = end;
		return ERR_OK;
	}
	if ((rc = symindex_give(p, err)))
		return rc;
	p->start = start;
	p->end = end;
	p->frame = frame;
	p->there = true;
	return ERR_OK;
}

/* Emits [*at, next) as far as segments are open there. */
static enum err_code symindex_advance(const struct symindex_builder *b, struct open_heap *h,
	struct symindex_pending *p, uint64_t *at, uint64_t next, struct err *err)
{
	enum err_code rc;
	uint64_t stop;

	while (h->n && *at < next) {
		if (h->v[0].end <= *at) {
			symindex_pop(b, h);
			continue;
		}
		stop = h->v[0].end < next ? h->v[0].end : next;
		if ((rc = symindex_emit(p, *at, stop, h->v[0].frame, err)))
			return rc;
		*at = stop;
	}
	*at = next;
	return ERR_OK;
}

enum err_code symindex_sweep(struct symindex_builder *b, sweep_fn fn, void *ctx, struct err *err)
{
	struct symindex_pending p = { .fn = fn, .ctx = ctx };
	struct open_heap h = { 0 };
	enum err_code rc;
	struct symindex_segment s;
	uint64_t at = 0;
	bool more;

	if ((rc = runs_seal(&b->runs, err)))
		return rc;
	for (;;) {
		if ((rc = runs_next(&b->runs, &s, &more, err)))
			break;
		if ((rc = symindex_advance(b, &h, &p, &at, more ? s.start : UINT64_MAX, err)) || !more)
			break;
		if ((rc = symindex_push(b, &h, &s, err)))
			break;
	}
	if (!rc)
		rc = symindex_give(&p, err);
	free(h.v);
	runs_release(&b->runs);
	return rc;
}
