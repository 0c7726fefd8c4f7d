#include "tsdb/debuginfo/index/runs.h"

#include <stdlib.h>

#include "base/array.h"

#define BLOCK_SEGMENTS (64u << 10)

static int symindex_by_start(const void *a, const void *b)
{
	const struct symindex_segment *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Bytes of a varint are at most 10; the frame with its rank, of 37 bits, takes 6. */
#define ENCODED_MAX 26u

static unsigned char *symindex_put_varint(unsigned char *to, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*to++ = (unsigned char)(value | 0x80);
	*to++ = (unsigned char)value;
	return to;
}

static enum err_code symindex_seal_block(struct runs *r, struct err *err)
{
	uint64_t start = 0, frame = 0;
	unsigned char *bytes, *to, *kept;
	size_t n;

	if (!r->n)
		return ERR_OK;
	if (r->unsorted)
		qsort(r->block, r->n, sizeof(*r->block), symindex_by_start);
	bytes = malloc(r->n * ENCODED_MAX);
	if (!bytes || !array_room(&r->v, r->runs, 1, &r->runs_cap)) {
		free(bytes);
		return err_nomem(err, "symbol index: segments");
	}
	to = bytes;
	for (size_t i = 0; i < r->n; i++) {
		const struct symindex_segment *s = &r->block[i];

		to = symindex_put_varint(to, s->start - start);
		to = symindex_put_varint(to, s->end - s->start);
		to = symindex_put_varint(
			to, str_zigzag((int64_t)s->frame - (int64_t)frame) << RANK_BITS | s->rank);
		start = s->start;
		frame = s->frame;
	}
	n = (size_t)(to - bytes);
	kept = realloc(bytes, n);
	r->v[r->runs++] = (struct run){ kept ? kept : bytes, n, r->block[0].start };
	r->n = 0;
	r->unsorted = false;
	return ERR_OK;
}

enum err_code runs_add(struct runs *r, const struct symindex_segment *s, struct err *err)
{
	enum err_code rc;

	if (!r->block && !(r->block = malloc(BLOCK_SEGMENTS * sizeof(*r->block))))
		return err_nomem(err, "symbol index: segments");
	if (r->n == BLOCK_SEGMENTS && (rc = symindex_seal_block(r, err)))
		return rc;
	if (r->n && s->start < r->block[r->n - 1].start)
		r->unsorted = true;
	r->block[r->n++] = *s;
	return ERR_OK;
}

static int symindex_by_first(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

enum err_code runs_seal(struct runs *r, struct err *err)
{
	enum err_code rc = symindex_seal_block(r, err);

	free(r->block);
	r->block = NULL;
	if (!rc && r->runs)
		qsort(r->v, r->runs, sizeof(*r->v), symindex_by_first);
	return rc;
}

/* False: the run is at its end. */
static bool symindex_step(struct run_reader *reader)
{
	uint64_t frame;

	if (!cursor_left(&reader->c))
		return false;
	reader->at.start += cursor_varint(&reader->c);
	reader->at.end = reader->at.start + cursor_varint(&reader->c);
	frame = cursor_varint(&reader->c);
	reader->at.rank = frame & ((1u << RANK_BITS) - 1);
	reader->at.frame = (uint32_t)((int64_t)reader->at.frame + str_unzigzag(frame >> RANK_BITS));
	return true;
}

static void symindex_sift_down(struct runs *r, size_t i)
{
	struct run_reader item = r->heap[i];
	size_t child;

	while ((child = 2 * i + 1) < r->heap_n) {
		if (child + 1 < r->heap_n && r->heap[child + 1].at.start < r->heap[child].at.start)
			child++;
		if (item.at.start <= r->heap[child].at.start)
			break;
		r->heap[i] = r->heap[child];
		i = child;
	}
	r->heap[i] = item;
}

static enum err_code symindex_open_run(struct runs *r, struct err *err)
{
	const struct run *run = &r->v[r->opened];
	struct run_reader item = { cursor_of((struct str){ (const char *)run->bytes, run->len }), { 0 },
		r->opened };
	size_t i, up;

	if (!array_room(&r->heap, r->heap_n, 1, &r->heap_cap))
		return err_nomem(err, "symbol index: segments");
	r->opened++;
	if (!symindex_step(&item))
		return ERR_OK;
	for (i = r->heap_n++; i && item.at.start < r->heap[up = (i - 1) / 2].at.start; i = up)
		r->heap[i] = r->heap[up];
	r->heap[i] = item;
	return ERR_OK;
}

enum err_code runs_next(struct runs *r, struct symindex_segment *out, bool *more, struct err *err)
{
	enum err_code rc;

	while (r->opened < r->runs && (!r->heap_n || r->v[r->opened].first <= r->heap[0].at.start))
		if ((rc = symindex_open_run(r, err)))
			return rc;
	*more = r->heap_n > 0;
	if (!*more)
		return ERR_OK;
	*out = r->heap[0].at;
	if (!symindex_step(&r->heap[0])) {
		free(r->v[r->heap[0].run].bytes);
		r->v[r->heap[0].run].bytes = NULL;
		r->heap[0] = r->heap[--r->heap_n];
	}
	if (r->heap_n)
		symindex_sift_down(r, 0);
	return ERR_OK;
}

void runs_release(struct runs *r)
{
	for (size_t i = 0; i < r->runs; i++)
		free(r->v[i].bytes);
	free(r->v);
	free(r->block);
	free(r->heap);
	*r = (struct runs){ 0 };
}
