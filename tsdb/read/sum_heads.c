#include <stdlib.h>

#include "tsdb/read/sum_internal.h"

/*
 * Heads: Heads of rows: what a chunk says of each row besides its samples: time, totals, durations.
 *        Totals need no more. When windows follow each other, several of them need the same chunk.
 *        So its heads are kept: the chunk is found, read and parsed once, and each window only
 *        walks over its rows.
 *
 * Heads also know where they are among the chunks of their series. A block gives the first chunk
 * that ends after a time, and then chunks until one begins after the window. Kept heads say the
 * same: no other chunk ends in (known_ns, last_ns], and next_ns is where the next one begins. If a
 * window needs more, the block is asked. Damaged chunks and the chunks after them are not kept, so
 * each window that needs them reports the damage again.
 *
 * When the memory is full, heads of past windows are freed; if it is still full, new heads are not
 * kept.
 */
struct sum_heads {
	struct sum_heads *later; /* the next of the series, by known_ns */
	struct sum_heads *younger; /* the next of all, in the order in which they were kept */
	struct sum_place *of;
	int64_t known_ns, last_ns;
	int64_t next_ns; /* INT64_MAX: there is no other chunk */
	int64_t interval_ns;
	size_t bytes;
	uint32_t rows_n, columns_n;
	struct chunk_row rows[]; /* then totals, column by column */
};

void sum_heads_close(struct sum_kept_heads *k)
{
	for (struct sum_heads *h = k->oldest, *next; h; h = next) {
		next = h->younger;
		free(h);
	}
	*k = (struct sum_kept_heads){ 0 };
}

static int64_t *sum_heads_totals(struct sum_heads *h)
{
	return (int64_t *)(h->rows + h->rows_n);
}

/* ---- keeping ---- */

static void sum_heads_unlink(struct sum_heads *h)
{
	struct sum_heads **at = &h->of->heads;

	while (*at != h)
		at = &(*at)->later;
	*at = h->later;
}

/* False: there is no room. */
static bool sum_heads_make_room(struct summing *summing, size_t bytes)
{
	struct sum_kept_heads *k = &summing->x->heads;
	size_t max = summing->q->heads_bytes_max;
	struct sum_heads *gone;

	while (k->bytes + bytes > max && k->oldest && k->oldest->last_ns <= summing->window_ns) {
		gone = k->oldest;
		k->oldest = gone->younger;
		k->bytes -= gone->bytes;
		sum_heads_unlink(gone);
		free(gone);
	}
	if (!k->oldest)
		k->youngest = NULL;
	return k->bytes + bytes <= max;
}

/* Makes heads of a parsed chunk, the first one that ends after from_ns. c NULL: no chunk ends
 * before the next one begins. Returns NULL if they cannot be kept. */
static struct sum_heads *sum_heads_make(
	struct summing *summing, struct sum_place *place, int64_t from_ns, const struct chunk *c)
{
	uint32_t rows_n = c ? chunk_rows_n(c) : 0, columns_n = c ? chunk_columns_n(c) : 0;
	size_t column = rows_n * sizeof(int64_t);
	size_t bytes = sizeof(struct sum_heads) + rows_n * sizeof(struct chunk_row) +
		columns_n * column;
	struct sum_heads *h;

	if ((c && !rows_n) || !sum_heads_make_room(summing, bytes) || !(h = malloc(bytes)))
		return NULL;
	*h = (struct sum_heads){ .of = place,
		.known_ns = from_ns,
		.last_ns = c ? chunk_rows(c)[rows_n - 1].ts_ns : from_ns,
		.interval_ns = c ? chunk_interval_ns(c) : 0,
		.bytes = bytes,
		.rows_n = rows_n,
		.columns_n = columns_n };
	if (c)
		memcpy(h->rows, chunk_rows(c), rows_n * sizeof(*h->rows));
	for (uint32_t i = 0; i < columns_n; i++)
		memcpy(sum_heads_totals(h) + (size_t)i * rows_n, chunk_totals(c, i), column);
	return h;
}

/* The series' last heads whose known_ns is not after ns. */
static struct sum_heads *sum_heads_at(const struct sum_place *place, int64_t ns)
{
	struct sum_heads *found = NULL;

	for (struct sum_heads *h = place->heads; h && h->known_ns <= ns; h = h->later)
		found = h;
	return found;
}

/* h NULL is fine. */
static void sum_heads_keep(struct summing *summing, struct sum_heads *h, int64_t next_ns)
{
	struct sum_kept_heads *k = &summing->x->heads;
	struct sum_heads *before;

	if (!h)
		return;
	h->next_ns = next_ns;
	before = sum_heads_at(h->of, h->known_ns);
	h->later = before ? before->later : h->of->heads;
	*(before ? &before->later : &h->of->heads) = h;
	*(k->youngest ? &k->youngest->younger : &k->oldest) = h;
	k->youngest = h;
	k->bytes += h->bytes;
}

/* ---- adding ---- */

struct sum_heads_walk {
	struct summing *t;
	struct querier_source *s;
	struct sum_place *place;
	uint32_t id;
	int64_t min_ns, max_ns;
	int64_t at_ns; /* chunks that end at or before this are done */
	int64_t last_ns; /* the end of the last chunk that was read */
	bool keeps;
};

/* Damage is a warning. */
static enum err_code sum_heads_note(
	const struct sum_heads_walk *walk, enum err_code rc, const struct err *why, struct err *err)
{
	if (rc == ERR_CORRUPT)
		querier_warn(walk->t->q, walk->s, why);
	return rc && rc != ERR_CORRUPT ? err_copy(err, why) : ERR_OK;
}

/* Adds what is kept. *all: that was all; the window has no other chunks. */
static enum err_code sum_heads_add_kept(struct sum_heads_walk *walk, bool *all, struct err *err)
{
	struct sum_heads *h = sum_heads_at(walk->place, walk->at_ns), *before = NULL;
	enum err_code rc = ERR_OK;
	struct err why;

	for (; h && h != before && !rc && !*all; h = sum_heads_at(walk->place, walk->at_ns)) {
		if (walk->at_ns < h->last_ns) {
			const struct sum_chunk_heads heads = { h->rows, sum_heads_totals(h), h->rows_n,
				h->columns_n, h->interval_ns };

			rc = sum_chunk_heads(
				walk->t, walk->s, walk->id, &heads, walk->min_ns, walk->max_ns, &why);
			rc = sum_heads_note(walk, rc, &why, err);
			walk->at_ns = h->last_ns;
		}
		*all = walk->max_ns < h->next_ns;
		before = h;
	}
	return rc;
}

/* Adds a chunk of the block. *made: its heads, to be kept once the begin of the next chunk is
 * known. */
static enum err_code sum_heads_add_chunk(
	struct sum_heads_walk *walk, struct str bytes, struct sum_heads **made, struct err *err)
{
	struct sum_scratch *x = walk->t->x;
	enum err_code rc;

	if (!walk->keeps) {
		if ((rc = sum_chunk(walk->t, walk->s, walk->id, bytes, walk->min_ns, walk->max_ns, err)))
			return rc;
	} else {
		if (!x->chunk && !(x->chunk = chunk_open()))
			return err_nomem(err, "sum");
		if ((rc = chunk_parse(x->chunk, bytes, err)))
			return rc;
		*made = sum_heads_make(walk->t, walk->place, walk->at_ns, x->chunk);
		if ((rc = sum_chunk_heads(
				 walk->t, walk->s, walk->id, NULL, walk->min_ns, walk->max_ns, err)))
			return rc;
	}
	if (chunk_rows_n(x->chunk))
		walk->last_ns = chunk_rows(x->chunk)[chunk_rows_n(x->chunk) - 1].ts_ns;
	return ERR_OK;
}

/* Reads and adds the chunks that end after at_ns. */
static enum err_code sum_heads_add_read(struct sum_heads_walk *walk, struct err *err)
{
	struct block_chunks *it = querier_chunks(walk->s, err);
	struct sum_heads *made = NULL;
	int64_t from = walk->at_ns, first;
	enum err_code rc;
	struct str bytes;
	struct err why;

	if (!it)
		return err_nomem(err, "sum");
	walk->last_ns = walk->max_ns;
	/* If chunks overlap, at_ns may be beyond max_ns, and a chunk that ends later may still begin in
	 * the window. */
	block_chunks_seek(it, walk->id, from, from < walk->max_ns ? walk->max_ns : from + 1);
	while ((rc = block_chunks_next(it, &bytes, &first, &why)) != ERR_NOT_FOUND) {
		if (!rc) {
			sum_heads_keep(walk->t, made, first);
			made = NULL;
			if (!(rc = sum_canceled(walk->t, &why)))
				rc = sum_heads_add_chunk(walk, bytes, &made, &why);
		}
		if (rc == ERR_CORRUPT) {
			free(made);
			made = NULL;
			walk->keeps = false;
		}
		if ((rc = sum_heads_note(walk, rc, &why, err)))
			break;
		if (made)
			walk->at_ns = made->last_ns;
		else
			walk->keeps = false; /* from here on, heads would not know of all chunks */
	}
	if (rc != ERR_NOT_FOUND) {
		free(made);
		return rc;
	}
	if (!made && walk->keeps)
		made = sum_heads_make(walk->t, walk->place, from, NULL);
	sum_heads_keep(walk->t, made, first);
	return ERR_OK;
}

static struct sum_place *sum_heads_place_of(
	const struct summing *summing, const struct querier_source *s, uint32_t id)
{
	struct sum_place *places = summing->x->places[s - summing->q->sources];

	return places && id < block_meta(s->b->block)->series ? &places[id] : NULL;
}

enum err_code sum_heads_series(struct summing *summing, struct querier_source *s, uint32_t id,
	int64_t min_ns, int64_t max_ns, struct err *err)
{
	struct sum_heads_walk w = { .t = summing,
		.s = s,
		.place = sum_heads_place_of(summing, s, id),
		.id = id,
		.min_ns = min_ns,
		.max_ns = max_ns,
		.at_ns = min_ns };
	struct sum_place *place = w.place;
	enum err_code rc = ERR_OK;
	bool all = false;
	int64_t from;

	summing->hour = (struct span_hour){ 0 };
	w.keeps = place && summing->q->in_steps && !summing->acc;
	if (w.keeps)
		rc = sum_heads_add_kept(&w, &all, err);
	from = w.at_ns;
	if (rc || all || (rc = sum_heads_add_read(&w, err)) || !place)
		return rc;
	if (from < place->read_min_ns || from > place->read_max_ns)
		place->read_min_ns = from;
	place->read_max_ns = w.last_ns > max_ns ? w.last_ns : max_ns;
	return ERR_OK;
}

void sum_heads_expect(struct summing *summing, const struct querier_source *s, uint32_t first,
	uint32_t n, int64_t min_ns, int64_t max_ns)
{
	for (uint32_t i = first; i < first + n; i++) {
		const struct sum_place *p = sum_heads_place_of(summing, s, i);
		int64_t from = p && min_ns >= p->read_min_ns && min_ns < p->read_max_ns ? p->read_max_ns :
																				  min_ns;

		if (from < max_ns)
			block_chunks_expect(s->b->block, i, 1, from, max_ns);
	}
}
