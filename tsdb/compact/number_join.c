
#include <stdlib.h>

#include "tsdb/compact/builder.h"
#include "tsdb/compact/compaction.h"
#include "tsdb/compact/numbers.h"

/*
 * Joining: blocks have their numeric series ascending by labels, so the series of several are
 * merged as lists are. Values are put into chunks anew: those of short blocks are not full.
 */
struct number_join_side {
	const struct number_source *from;
	struct block_chunks *chunks;
	uint32_t at, n;
	struct arena a; /* the series it is at */
	struct block_series series;
};

static enum err_code number_join_side_read_series(struct number_join_side *s, struct err *err)
{
	arena_reset(&s->a);
	return s->at < s->n ? block_series(s->from->block, s->at, &s->a, &s->series, err) : ERR_OK;
}

static enum err_code number_join_open_sides(
	const struct number_source *sources, size_t n, struct number_join_side *j, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < n; i++)
		arena_init(&j[i].a, 0);
	for (size_t i = 0; i < n && !rc; i++) {
		j[i].from = &sources[i];
		j[i].n = (uint32_t)block_meta(sources[i].block)->number_series;
		if (!(rc = block_numbers_open(sources[i].block, true, &j[i].chunks, err)))
			rc = number_join_side_read_series(&j[i], err);
	}
	return rc;
}

/* All its values that were not deleted; the series is begun with the first. */
static enum err_code join_values(struct number_join_side *s, struct labels labels,
	struct number_chunk *c, struct block_builder *b, uint32_t *id, struct err *err)
{
	const struct deleted_range *gone;
	size_t gone_n = deleted_of(s->from->deleted, s->at, &gone);
	struct str bytes;
	int64_t first;
	enum err_code rc;

	block_chunks_seek(s->chunks, s->at, 0, INT64_MAX);
	while (!(rc = block_chunks_next(s->chunks, &bytes, &first, err))) {
		if ((rc = number_chunk_decode(bytes, c, err)))
			return rc;
		for (uint32_t i = 0; i < c->n; i++) {
			if (deleted_has(gone, gone_n, c->ts[i]))
				continue;
			if (*id == UINT32_MAX && (rc = block_builder_number_series(b, labels, id, err)))
				return rc;
			if ((rc = block_builder_number(b, c->ts[i], c->values[i], err)))
				return rc;
		}
	}
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

/* The series with the smallest labels, from all sides that have it. *any: there was one. */
static enum err_code join_next(struct number_join_side *j, size_t n, struct number_chunk *c,
	struct block_builder *b, bool *any, struct err *err)
{
	struct number_join_side *least = NULL;
	uint32_t id = UINT32_MAX;
	struct labels labels;
	struct arena a;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < n; i++)
		if (j[i].at < j[i].n &&
			(!least || labels_cmp(j[i].series.labels, least->series.labels) < 0))
			least = &j[i];
	if (!(*any = least != NULL))
		return ERR_OK;
	arena_init(&a, 0);
	labels = labels_dup(&a, least->series.labels);
	if (labels.n && !labels.v)
		rc = arena_fail(&a, "join blocks", err);
	for (size_t i = 0; i < n && !rc; i++) {
		struct number_join_side *s = &j[i];

		if (s->at >= s->n || !labels_eq(s->series.labels, labels))
			continue;
		if ((rc = join_values(s, labels, c, b, &id, err)))
			break;
		s->from->ids[s->at++] = id;
		rc = number_join_side_read_series(s, err);
	}
	arena_release(&a);
	return rc;
}

enum err_code numbers_join(struct db *db, const struct number_source *sources, size_t n,
	struct block_builder *b, struct err *err)
{
	struct number_chunk *c = malloc(sizeof(*c));
	struct number_join_side *v = calloc(n, sizeof(*v));
	bool any = true;
	enum err_code rc;

	if (!c || !v)
		rc = err_nomem(err, "join blocks");
	else
		rc = number_join_open_sides(sources, n, v, err);
	while (any && !rc)
		if (!(rc = compaction_pause(db, err)))
			rc = join_next(v, n, c, b, &any, err);
	for (size_t i = 0; i < n && v; i++) {
		block_chunks_close(v[i].chunks);
		arena_release(&v[i].a);
	}
	free(v);
	free(c);
	return rc;
}
