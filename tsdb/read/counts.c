#include <stdlib.h>

#include "tsdb/read/select_internal.h"

/* Counts of the series in head windows: a set of their ids, and the postings of the index. */
struct db_counts {
	struct db_querier *q;
	struct bits ids;
};

enum err_code db_counts_open(struct db_querier *q, struct db_counts **out, struct err *err)
{
	struct db_counts *c = calloc(1, sizeof(*c));

	if (!c)
		return err_nomem(err, "a list of counts");
	c->q = q;
	*out = c;
	return ERR_OK;
}

void db_counts_close(struct db_counts *c)
{
	if (!c)
		return;
	bits_release(&c->ids);
	free(c);
}

enum err_code db_counts_add(struct db_counts *c, const struct matcher *m, size_t n, struct err *err)
{
	struct selecting x = { .q = c->q, .m = m, .n = n, .kinds = DB_PROFILES | DB_NUMBERS };
	enum err_code rc = select_begin(&x, err);

	for (uint32_t i = 0; i < c->q->sources_n && !rc; i++)
		if (c->q->sources[i].w)
			rc = select_window_series(&x, i, &c->ids, err);
	select_end(&x);
	return rc;
}

void db_counts_each(struct db_counts *c, struct str name, db_count_fn fn, void *ctx)
{
	struct series_index *index = c->q->db->series;

	series_lock_read(index);
	series_counts_locked(index, name, &c->ids, fn, ctx);
	series_unlock(index);
}

bool db_counts_has(struct db_counts *c, struct labels labels)
{
	struct series *s = c->ids.words ? series_find(c->q->db->series, labels) : NULL;
	bool has = s && bits_get(&c->ids, s->id);

	if (s)
		series_release(s);
	return has;
}

bool db_counts_has_label(struct db_counts *c, struct label label)
{
	struct series_index *index = c->q->db->series;
	bool has;

	series_lock_read(index);
	has = series_value_meets_locked(index, label, &c->ids);
	series_unlock(index);
	return has;
}

bool db_querier_has_blocks(const struct db_querier *q)
{
	for (size_t i = 0; i < q->sources_n; i++)
		if (q->sources[i].b)
			return true;
	return false;
}
