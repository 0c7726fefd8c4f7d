#include <stdlib.h>

#include "proto/annotation.h"
#include "tsdb/head/keys.h"
#include "tsdb/read/querier_internal.h"

/*
 * Since when there are series with a label. Sources come in the order of time, so most series of a
 * window are known from a block before it, and no row of theirs is looked for. In a block, a
 * series' record has the time of its first row, and the block caches a list of these times. In a
 * window each series costs one seek. Symbols are not needed.
 */

#define LISTED 256u /* series of a window that are copied under its index's lock */

struct visiting_firsts {
	struct db_querier *q;
	const struct db_firsts *visitor;
	struct arena arena; /* the labels of a block's series */
	struct chunk *chunk; /* made when first wanted */
};

static enum err_code firsts_canceled(struct err *err)
{
	return err_set(err, ERR_CANCELED, "query canceled");
}

/* True if the series is not wanted: a mark, refused by the limits, or the caller knows a row that
 * is older than the source. */
static bool firsts_passes_over(
	const struct visiting_firsts *v, const struct querier_source *s, struct labels labels)
{
	return annotation_is(labels) || !label_limits_admit(v->q->limits, labels) ||
		v->visitor->known(v->visitor->ctx, labels) <= s->min_ns;
}

/* ---- head windows ---- */

struct firsts_listed {
	struct {
		uint32_t id;
		struct labels labels; /* they live as long as the querier */
	} v[LISTED];
	size_t n;
};

static enum err_code firsts_of_window_ids(
	const struct visiting_firsts *v, struct querier_source *s, struct bits *ids, struct err *err)
{
	struct series_index *index = s->db->series;
	struct bits lacking = { 0 };
	enum err_code rc = ERR_OK;

	series_lock_read(index);
	if (s->w->series.words) {
		uint32_t last = (uint32_t)(s->w->series.words * 64 - 1);

		if (bits_reserve(ids, last) && bits_reserve(&lacking, last)) {
			memcpy(ids->w, s->w->series.w, s->w->series.words * sizeof(*ids->w));
			memcpy(lacking.w, s->w->series.w, s->w->series.words * sizeof(*ids->w));
			series_lacking_locked(index, v->visitor->label, &lacking);
			series_keep_kind_locked(index, false, ids);
			for (size_t w = 0; w < s->w->series.words; w++)
				ids->w[w] &= ~lacking.w[w];
		} else {
			rc = err_nomem(err, "series");
		}
	}
	series_unlock(index);
	bits_release(&lacking);
	return rc;
}

/* Copies the next series, beginning with word *at of ids. */
static void firsts_list(
	const struct querier_source *s, const struct bits *ids, size_t *at, struct firsts_listed *out)
{
	struct series_index *index = s->db->series;

	out->n = 0;
	series_lock_read(index);
	for (; *at < ids->words && out->n + 64 <= LISTED; ++*at)
		for (uint64_t rest = ids->w[*at]; rest; rest &= rest - 1) {
			uint32_t id = (uint32_t)(*at * 64 + (size_t)__builtin_ctzll(rest));
			const struct series *of = series_by_id_locked(index, id);

			if (!of)
				continue;
			out->v[out->n].id = id;
			out->v[out->n++].labels = of->labels;
		}
	series_unlock(index);
}

/* False: the window has no row of it in the querier's time. */
static bool firsts_window_row(const struct visiting_firsts *v, struct querier_source *s,
	struct store_iter *it, uint32_t series, int64_t *first_ns)
{
	const struct deleted_range *gone;
	size_t gone_n = deleted_of((struct deleted){ s->deleted, s->deleted_n }, series, &gone);
	int64_t from = v->q->min_ns > s->min_ns ? v->q->min_ns : s->min_ns;
	struct key key = key_row(series, from + 1);
	uint32_t id;

	for (store_iter_seek(it, key_str(&key)); store_iter_valid(it); store_iter_next(it)) {
		if (!key_parse_row(store_iter_key(it), &id, first_ns) || id != series ||
			*first_ns > v->q->max_ns)
			return false;
		if (!deleted_has(gone, gone_n, *first_ns))
			return true;
	}
	return false;
}

static enum err_code firsts_of_window(
	struct visiting_firsts *v, struct querier_source *s, struct err *err)
{
	const struct db_firsts *to = v->visitor;
	struct store_iter *it = querier_iter(s);
	struct firsts_listed listed;
	struct bits ids = { 0 };
	enum err_code rc;
	int64_t first_ns;
	size_t at = 0;

	if (!it)
		return s->snap ? err_nomem(err, "series") : ERR_OK;
	rc = firsts_of_window_ids(v, s, &ids, err);
	while (!rc && at < ids.words) {
		firsts_list(s, &ids, &at, &listed);
		for (size_t i = 0; i < listed.n && !rc; i++)
			if (!firsts_passes_over(v, s, listed.v[i].labels) &&
				firsts_window_row(v, s, it, listed.v[i].id, &first_ns))
				rc = to->take(to->ctx, listed.v[i].labels, first_ns, err);
		if (!rc && querier_canceled(v->q))
			rc = firsts_canceled(err);
	}
	querier_check(v->q, s, it);
	bits_release(&ids);
	return rc;
}

/* ---- blocks ---- */

/* Finds the first row in the querier's time that is not deleted. */
static enum err_code firsts_block_row(struct visiting_firsts *v, struct querier_source *s,
	uint32_t series, const struct deleted_range *gone, size_t gone_n, int64_t *first_ns, bool *has,
	struct err *err)
{
	struct block_chunks *it = querier_chunks(s, err);
	struct str bytes;
	enum err_code rc;
	struct err why;
	int64_t at;

	*has = false;
	if (!it || (!v->chunk && !(v->chunk = chunk_open())))
		return err_nomem(err, "series");
	block_chunks_seek(it, series, v->q->min_ns, v->q->max_ns);
	while (!*has && (rc = block_chunks_next(it, &bytes, &at, &why)) != ERR_NOT_FOUND) {
		if (!rc)
			rc = chunk_parse(v->chunk, bytes, &why);
		if (rc == ERR_CORRUPT) {
			querier_warn(v->q, s, &why);
			continue;
		}
		if (rc)
			return err_copy(err, &why);
		for (uint32_t i = 0; i < chunk_rows_n(v->chunk) && !*has; i++) {
			*first_ns = chunk_rows(v->chunk)[i].ts_ns;
			*has = *first_ns > v->q->min_ns && !deleted_has(gone, gone_n, *first_ns);
		}
	}
	*has &= *first_ns <= v->q->max_ns;
	return ERR_OK;
}

static enum err_code firsts_of_block_series(
	struct visiting_firsts *v, struct querier_source *s, uint32_t id, struct err *err)
{
	const struct db_firsts *to = v->visitor;
	const struct deleted_range *gone;
	size_t gone_n = deleted_of((struct deleted){ s->deleted, s->deleted_n }, id, &gone);
	struct block_series of;
	enum err_code rc;
	struct err why;
	bool has = true;

	if (id < block_meta(s->b->block)->number_series)
		return ERR_OK;
	if ((rc = block_series(s->b->block, id, &v->arena, &of, &why)) == ERR_CORRUPT) {
		querier_warn(v->q, s, &why);
		return ERR_OK;
	}
	if (rc)
		return err_copy(err, &why);
	if (of.first_ns > v->q->max_ns || of.last_ns <= v->q->min_ns ||
		firsts_passes_over(v, s, of.labels))
		return ERR_OK;
	if ((gone_n || of.first_ns <= v->q->min_ns) && block_has_raw(s->b->block) &&
		(rc = firsts_block_row(v, s, id, gone, gone_n, &of.first_ns, &has, err)))
		return rc;
	return has ? to->take(to->ctx, of.labels, of.first_ns, err) : ERR_OK;
}

/* Reads the record of each series with the label. */
static enum err_code firsts_of_each(
	struct visiting_firsts *v, struct querier_source *s, struct err *err)
{
	const struct matcher has_label = { .op = MATCH_NE,
		.name = v->visitor->label,
		.value = STR("") };
	struct bits ids = { 0 };
	enum err_code rc;
	struct err why;
	size_t done = 0;

	rc = block_match(s->b->block, &has_label, 1, NULL, NULL, &ids, &why);
	if (rc == ERR_CORRUPT) { /* what could be matched is in ids */
		querier_warn(v->q, s, &why);
		rc = ERR_OK;
	}
	if (rc)
		err_copy(err, &why);
	for (size_t w = 0; w < ids.words && !rc; w++)
		for (uint64_t rest = ids.w[w]; rest && !rc; rest &= rest - 1) {
			rc = firsts_of_block_series(
				v, s, (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest)), err);
			if (!rc && ++done % 64 == 0) {
				arena_reset(&v->arena);
				rc = querier_canceled(v->q) ? firsts_canceled(err) : ERR_OK;
			}
		}
	arena_reset(&v->arena);
	bits_release(&ids);
	return rc;
}

/* Takes the series from the block's cached list. */
static enum err_code firsts_of_kept(const struct visiting_firsts *v, const struct querier_source *s,
	const struct block_first *list, size_t n, struct err *err)
{
	const struct db_firsts *to = v->visitor;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < n && !rc; i++)
		if (list[i].first_ns <= v->q->max_ns && !firsts_passes_over(v, s, list[i].labels))
			rc = to->take(to->ctx, list[i].labels, list[i].first_ns, err);
	return rc;
}

/* The cached list ignores deletions, limits and the begin of the querier's time: with any of these,
 * records are read. */
static enum err_code firsts_of_block(
	struct visiting_firsts *v, struct querier_source *s, struct err *err)
{
	const struct block_firsts_of of = { v->visitor->label, v->visitor->kept, v->visitor->kept_n,
		STR(ANNOTATION_NAME) };
	const struct block_first *list = NULL;
	enum err_code rc;
	struct err why;
	size_t n = 0;

	if (v->q->limits || s->deleted_n || block_meta(s->b->block)->first_ns <= v->q->min_ns)
		return firsts_of_each(v, s, err);
	rc = block_firsts(s->b->block, &of, &list, &n, &why);
	if (rc == ERR_LIMIT)
		return firsts_of_each(v, s, err);
	if (rc == ERR_CORRUPT)
		querier_warn(v->q, s, &why);
	else if (rc)
		return err_copy(err, &why);
	return firsts_of_kept(v, s, list, n, err);
}

enum err_code db_visit_firsts(
	struct db_querier *q, const struct db_firsts *visitor, struct err *err)
{
	struct visiting_firsts v = { .q = q, .visitor = visitor };
	enum err_code rc = ERR_OK;

	arena_init(&v.arena, 0);
	for (size_t i = 0; i < q->sources_n && !rc; i++) {
		struct querier_source *s = &q->sources[i];

		if (s->min_ns < q->max_ns && s->max_ns > q->min_ns)
			rc = s->b ? firsts_of_block(&v, s, err) : firsts_of_window(&v, s, err);
	}
	chunk_close(v.chunk);
	arena_release(&v.arena);
	return rc;
}
