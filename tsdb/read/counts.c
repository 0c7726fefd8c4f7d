#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"
#include "tsdb/read/select_internal.h"

/*
 * Counts the series in head windows. Each database has a set of series ids; counts come from that
 * set and the postings of the index. In a union, a series that several members have is kept only in
 * the first member's set, so the members' counts of series can be added. Counts of values cannot:
 * two members may have the same value, so values are compared one by one.
 */
struct db_counts {
	struct db_querier *q;
	struct bits *ids; /* by member */
	bool once; /* no series is in two sets */
};

enum err_code db_counts_open(struct db_querier *q, struct db_counts **out, struct err *err)
{
	struct db_counts *c = calloc(1, sizeof(*c));

	if (!c || !(c->ids = calloc(q->members_n + 1, sizeof(*c->ids)))) {
		free(c);
		return err_nomem(err, "a list of counts");
	}
	c->q = q;
	c->once = q->members_n < 2;
	*out = c;
	return ERR_OK;
}

void db_counts_close(struct db_counts *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->q->members_n; i++)
		bits_release(&c->ids[i]);
	free(c->ids);
	free(c);
}

enum err_code db_counts_add(struct db_counts *c, const struct matcher *m, size_t n, struct err *err)
{
	struct selecting x = { .q = c->q, .m = m, .n = n, .kinds = DB_PROFILES | DB_NUMBERS };
	enum err_code rc = select_begin(&x, err);

	for (uint32_t i = 0; i < c->q->sources_n && !rc; i++)
		if (c->q->sources[i].w)
			rc = select_window_series(&x, i, &c->ids[c->q->sources[i].member], err);
	select_end(&x);
	c->once = c->q->members_n < 2;
	return rc;
}

/* ---- each series once ---- */

/* The querier was open when the series were found, so their labels live as long as it does. */
struct read_counts_seen_series {
	const struct series **v;
	size_t n, cap;
	struct map map;
};

static bool series_same(const void *ctx, const void *key, uint32_t id)
{
	return labels_eq(((const struct read_counts_seen_series *)ctx)->v[id]->labels,
		((const struct series *)key)->labels);
}

/* False: out of memory. *known: a series with these labels was seen before. */
static bool read_counts_seen_series_see(
	struct read_counts_seen_series *r, const struct series *s, bool *known)
{
	uint64_t hash = labels_hash(s->labels);

	if ((*known = map_find(&r->map, hash, series_same, r, s) != MAP_NONE))
		return true;
	if (!array_room(&r->v, r->n, 1, &r->cap) || !map_add(&r->map, hash, (uint32_t)r->n))
		return false;
	r->v[r->n++] = s;
	return true;
}

static bool read_counts_seen_series_see_member(
	struct read_counts_seen_series *r, struct series_index *index, struct bits *ids)
{
	bool ok = true, known;

	series_lock_read(index);
	for (size_t w = 0; w < ids->words && ok; w++)
		for (uint64_t rest = ids->w[w]; rest && ok; rest &= rest - 1) {
			uint32_t id = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest));
			const struct series *s = series_by_id_locked(index, id);

			ok = !s || read_counts_seen_series_see(r, s, &known);
			if (ok && s && known)
				bits_clear(ids, id);
		}
	series_unlock(index);
	return ok;
}

static enum err_code count_once(struct db_counts *c, struct err *err)
{
	struct read_counts_seen_series x = { 0 };
	bool ok = true;

	if (c->once)
		return ERR_OK;
	map_init(&x.map);
	for (size_t i = 0; i < c->q->members_n && ok; i++)
		ok = read_counts_seen_series_see_member(&x, c->q->members[i].db->series, &c->ids[i]);
	map_release(&x.map);
	free(x.v);
	c->once = ok;
	return ok ? ERR_OK : err_nomem(err, "a list of counts");
}

/* ---- counts of all members ---- */

struct summed_counts {
	struct arena arena; /* texts */
	struct counted {
		struct str text;
		uint32_t series, values;
	} * v;
	size_t n, cap;
	struct map map;
	uint64_t seed;
	bool failed;
};

static void counts_release(struct summed_counts *s)
{
	map_release(&s->map);
	free(s->v);
	arena_release(&s->arena);
}

static bool read_counts_text_same(const void *ctx, const void *key, uint32_t id)
{
	return str_eq(((const struct summed_counts *)ctx)->v[id].text, *(const struct str *)key);
}

static bool sum_count(void *ctx, struct str text, uint32_t series, uint32_t values)
{
	struct summed_counts *x = ctx;
	uint64_t hash = hash_bytes(text.ptr, text.len, x->seed);
	uint32_t at = map_find(&x->map, hash, read_counts_text_same, x, &text);

	(void)values;
	if (at == MAP_NONE) {
		at = (uint32_t)x->n;
		if (!array_room(&x->v, x->n, 1, &x->cap) || !(text = str_dup(&x->arena, text)).ptr ||
			!map_add(&x->map, hash, at)) {
			x->failed = true;
			return false;
		}
		x->v[x->n++] = (struct counted){ .text = text };
	}
	x->v[at].series += series;
	return true;
}

static bool sum_members(struct db_counts *c, struct str name, struct summed_counts *out)
{
	*out = (struct summed_counts){ .seed = hash_seed() };
	map_init(&out->map);
	arena_init(&out->arena, 0);
	for (size_t i = 0; i < c->q->members_n && !out->failed; i++) {
		struct series_index *index = c->q->members[i].db->series;

		series_lock_read(index);
		series_counts_locked(index, name, &c->ids[i], sum_count, out);
		series_unlock(index);
	}
	return !out->failed;
}

static bool db_counts_values(struct db_counts *c, struct str name, uint32_t *out)
{
	struct summed_counts values;
	bool ok = sum_members(c, name, &values);

	*out = (uint32_t)values.n;
	counts_release(&values);
	return ok;
}

static enum err_code db_counts_each_of_members(
	struct db_counts *c, struct str name, db_count_fn fn, void *ctx, struct err *err)
{
	struct summed_counts all;
	bool ok = sum_members(c, name, &all);

	for (size_t i = 0; i < all.n && ok && !name.len; i++)
		ok = db_counts_values(c, all.v[i].text, &all.v[i].values);
	for (size_t i = 0; i < all.n && ok; i++)
		if (!fn(ctx, all.v[i].text, all.v[i].series, all.v[i].values))
			break;
	counts_release(&all);
	return ok ? ERR_OK : err_nomem(err, "a list of counts");
}

enum err_code db_counts_each(
	struct db_counts *c, struct str name, db_count_fn fn, void *ctx, struct err *err)
{
	enum err_code rc = count_once(c, err);

	if (rc)
		return rc;
	if (c->q->members_n > 1)
		return db_counts_each_of_members(c, name, fn, ctx, err);
	for (size_t i = 0; i < c->q->members_n; i++) {
		struct series_index *index = c->q->members[i].db->series;

		series_lock_read(index);
		series_counts_locked(index, name, &c->ids[i], fn, ctx);
		series_unlock(index);
	}
	return ERR_OK;
}

bool db_counts_has(struct db_counts *c, struct labels labels)
{
	bool has = false;

	for (size_t i = 0; i < c->q->members_n && !has; i++) {
		struct series *s = c->ids[i].words ? series_find(c->q->members[i].db->series, labels) :
											 NULL;

		has = s && bits_get(&c->ids[i], s->id);
		if (s)
			series_release(s);
	}
	return has;
}

bool db_counts_has_label(struct db_counts *c, struct label label)
{
	bool has = false;

	for (size_t i = 0; i < c->q->members_n && !has; i++) {
		struct series_index *index = c->q->members[i].db->series;

		series_lock_read(index);
		has = series_value_meets_locked(index, label, &c->ids[i]);
		series_unlock(index);
	}
	return has;
}

bool db_querier_has_blocks(const struct db_querier *q)
{
	for (size_t i = 0; i < q->sources_n; i++)
		if (q->sources[i].b)
			return true;
	return false;
}
