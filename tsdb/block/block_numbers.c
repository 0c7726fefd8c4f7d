#include "tsdb/block/block_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Numeric series of a block: written before all else, and checked. */

enum err_code block_writer_number_series(
	struct block_writer *w, struct labels labels, uint32_t *id, struct err *err)
{
	struct arena *arena = &w->labels_arena[1], swap;
	struct labels own;
	enum err_code rc;

	if (w->slots_n || w->grouping || (w->number_series && labels_cmp(w->now.labels, labels) >= 0))
		return err_set(err, ERR_INVALID, "write block: a numeric series comes out of order");
	if ((rc = block_writer_end_series(w, err)))
		return rc;
	if (w->series_at.n == SYM_NONE - 1)
		return err_set(err, ERR_LIMIT, "write block: too many series");
	arena_reset(arena);
	own = labels_dup(arena, labels);
	if (labels.n && !own.v)
		return err_nomem(err, "write block");
	swap = w->labels_arena[0];
	w->labels_arena[0] = *arena;
	*arena = swap;
	w->now = (struct block_series){ .labels = own, .slot = BLOCK_NUMERIC, .group = BLOCK_NUMERIC };
	w->headers_n = 0;
	w->open = true;
	w->number_series++;
	*id = w->series_at.n;
	return ERR_OK;
}

enum err_code block_writer_numbers(
	struct block_writer *w, const struct number_chunk *c, struct err *err)
{
	struct block_series *s = &w->now;
	int64_t first = c->ts[0], last = c->ts[c->n - 1];
	struct block_key key;
	enum err_code rc;

	if (!w->open || s->slot != BLOCK_NUMERIC)
		return err_set(err, ERR_INVALID, "write block: numbers without series");
	if (first <= w->o.min_ns || last > w->o.max_ns)
		return err_set(err, ERR_INVALID, "write block: numbers outside of the block's time");
	if (s->rows && first <= s->last_ns)
		return err_set(err, ERR_INVALID, "write block: numbers come out of order");
	buf_clear(&w->numbers);
	key = block_key_numbers(w->series_at.n, last, first);
	if ((rc = number_chunk_encode(c, &w->numbers, err)) ||
		(rc = table_writer_put(w->rollups, block_key_str(&key), buf_str(&w->numbers), err)))
		return rc;
	if (!s->rows)
		s->first_ns = first;
	s->last_ns = last;
	s->rows += c->n;
	return ERR_OK;
}

/* ---- checking ---- */

enum err_code block_check_numbers(struct block *b, uint32_t id, const struct block_series *s,
	struct block_chunks *it, block_number_fn fn, void *ctx, struct err *err)
{
	struct number_chunk *c = malloc(sizeof(*c));
	int64_t key_first, first = 0, last = 0;
	char text[1200];
	uint64_t n = 0;
	struct str bytes;
	enum err_code rc;

	if (!c)
		return err_nomem(err, "verify");
	block_chunks_seek(it, id, 0, INT64_MAX);
	while (!(rc = block_chunks_next(it, &bytes, &key_first, err)) || rc == ERR_CORRUPT) {
		if (rc == ERR_CORRUPT || (rc = number_chunk_decode(bytes, c, err))) {
			snprintf(text, sizeof(text), "series %" PRIu32 ": %s", id,
				err ? err->msg : "damaged numbers");
			fn(ctx, text);
			if (rc == ERR_NOMEM)
				break;
			continue;
		}
		if (c->ts[0] != key_first || (n && c->ts[0] <= last) || c->ts[0] <= b->meta.min_ns ||
			c->ts[c->n - 1] > b->meta.max_ns) {
			snprintf(text, sizeof(text), "series %" PRIu32 ": numbers of wrong times", id);
			fn(ctx, text);
		}
		first = n ? first : c->ts[0];
		last = c->ts[c->n - 1];
		n += c->n;
	}
	free(c);
	if (rc != ERR_NOT_FOUND)
		return rc;
	if (n != s->rows || (n && (first != s->first_ns || last != s->last_ns))) {
		snprintf(text, sizeof(text),
			"series %" PRIu32 ": %" PRIu64 " numbers, and its record says %" PRIu64, id, n,
			s->rows);
		fn(ctx, text);
	}
	return ERR_OK;
}
