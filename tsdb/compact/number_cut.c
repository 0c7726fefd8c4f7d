
#include <inttypes.h>
#include <stdlib.h>

#include "tsdb/columns/chunk_bits.h"
#include "tsdb/compact/builder.h"
#include "tsdb/compact/numbers.h"
#include "tsdb/head/keys.h"
#include "tsdb/head/numbers.h"

/* Cutting: numbers of a head window, series by series, into chunks of a block. */

static int series_cmp(const void *a, const void *b)
{
	return labels_cmp((*(struct series *const *)a)->labels, (*(struct series *const *)b)->labels);
}

/* They stay in the index as long as the window is in the list. */
static enum err_code number_cut_collect(
	struct db *db, struct window *w, struct number_cut *c, struct err *err)
{
	const struct bits *ids = &w->series;
	struct series *s;
	size_t n = 0;

	series_lock_read(db->series);
	for (int pass = 0; pass < 2; pass++) { /* counted, then taken */
		for (size_t i = 0; i < ids->words; i++)
			for (uint64_t rest = ids->w[i]; rest; rest &= rest - 1) {
				s = series_by_id_locked(
					db->series, (uint32_t)(i * 64 + (size_t)__builtin_ctzll(rest)));
				if (!s || s->job)
					continue;
				if (pass)
					c->series[c->n++] = s;
				n++;
			}
		if (!pass) {
			c->series = malloc((n + 1) * sizeof(*c->series));
			c->ids = malloc((n + 1) * sizeof(*c->ids));
		}
		if (!c->series || !c->ids)
			break;
	}
	series_unlock(db->series);
	if (!c->series || !c->ids)
		return err_nomem(err, "cut");
	if (c->n)
		qsort(c->series, c->n, sizeof(*c->series), series_cmp);
	return ERR_OK;
}

static enum err_code cut_series(struct window *w, struct store_iter *it, struct deleted deleted,
	struct block_builder *b, struct number_cut *c, size_t at, struct err *err)
{
	uint32_t series = c->series[at]->id, id;
	struct key key = key_number(series, w->start_ns + 1);
	const struct deleted_range *gone;
	size_t gone_n = deleted_of(deleted, series, &gone);
	enum err_code rc;
	struct str bytes;
	struct err why;
	double value;
	int64_t ts;

	c->ids[at] = UINT32_MAX;
	for (store_iter_seek(it, key_str(&key)); store_iter_valid(it); store_iter_next(it)) {
		if (!key_parse_number(store_iter_key(it), &id, &ts) || id != series)
			break;
		if (deleted_has(gone, gone_n, ts))
			continue;
		if ((rc = store_iter_value(it, &bytes, &why)) ||
			(rc = number_decode(bytes, &value, &why))) {
			if (rc != ERR_CORRUPT)
				return err_copy(err, &why);
			if (!c->left_out++)
				c->first_left = why;
			continue;
		}
		if (c->ids[at] == UINT32_MAX &&
			(rc = block_builder_number_series(b, c->series[at]->labels, &c->ids[at], err)))
			return rc;
		if ((rc = block_builder_number(b, ts, value, err)))
			return rc;
	}
	return ERR_OK;
}

enum err_code numbers_cut(struct db *db, struct window *w, struct store_iter *it,
	struct deleted deleted, struct block_builder *b, struct number_cut *out, struct err *err)
{
	enum err_code rc = number_cut_collect(db, w, out, err);

	for (size_t i = 0; i < out->n && !rc; i++)
		rc = cut_series(w, it, deleted, b, out, i, err);
	return rc;
}

void number_cut_release(struct number_cut *c)
{
	free(c->series);
	free(c->ids);
}
