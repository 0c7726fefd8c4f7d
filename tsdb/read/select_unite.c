#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "tsdb/read/select_internal.h"
#include "tsdb/read/twins.h"

/* Unites the places that each series has in the sources, by labels and partition. */

static int select_unite_found_cmp(const void *a, const void *b)
{
	const struct read_select_found *x = a, *y = b;
	int c = labels_cmp(x->labels, y->labels);

	if (c)
		return c;
	if (x->partition != y->partition) /* numeric series first */
		return !x->partition || (y->partition && x->partition->index < y->partition->index) ? -1 :
																							  1;
	return (x->place.source > y->place.source) - (x->place.source < y->place.source);
}

/* A found series with its sort key: 8 bytes of the first text in which the series differ. Nearly
 * always the key decides the comparison. */
struct ordered {
	uint64_t key;
	const struct read_select_found *f;
};

static int ordered_cmp(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return select_unite_found_cmp(x->f, y->f);
}

static struct str select_unite_text_at(const struct read_select_found *f, size_t label, bool value)
{
	return value ? f->labels.v[label].value : f->labels.v[label].name;
}

/* The length of the prefix that all the texts have in common. *same: the texts are equal. */
static size_t ordered_common_prefix(
	const struct ordered *o, size_t n, size_t label, bool value, bool *same)
{
	struct str first = select_unite_text_at(o[0].f, label, value);
	size_t len = first.len;

	*same = true;
	for (size_t i = 1; i < n; i++) {
		struct str text = select_unite_text_at(o[i].f, label, value);
		size_t k = 0;

		*same &= str_eq(text, first);
		while (k < len && k < text.len && text.ptr[k] == first.ptr[k])
			k++;
		len = k;
	}
	return len;
}

static uint64_t select_unite_key_after(struct str text, size_t prefix)
{
	uint64_t key = 0;

	for (size_t i = prefix; i < prefix + 8; i++)
		key = key << 8 | (i < text.len ? (unsigned char)text.ptr[i] : 0);
	return key;
}

/* Makes the keys from the first names or values that differ; all labels before these are equal. */
static void ordered_make_keys(struct ordered *o, size_t n)
{
	size_t labels_n = SIZE_MAX, prefix;
	bool same;

	for (size_t i = 0; i < n; i++)
		labels_n = o[i].f->labels.n < labels_n ? o[i].f->labels.n : labels_n;
	for (size_t at = 0; n && at < 2 * labels_n; at++) {
		prefix = ordered_common_prefix(o, n, at / 2, at % 2, &same);
		for (size_t i = 0; i < n && !same; i++)
			o[i].key = select_unite_key_after(select_unite_text_at(o[i].f, at / 2, at % 2), prefix);
		if (!same)
			return;
	}
}

static enum err_code select_unite_sorted(struct selecting *s, struct ordered **out, struct err *err)
{
	struct ordered *v = malloc((s->found + 1) * sizeof(*v));

	if (!v)
		return err_nomem(err, "select");
	for (size_t i = 0; i < s->found; i++)
		v[i] = (struct ordered){ 0, &s->v[i] };
	ordered_make_keys(v, s->found);
	if (s->found)
		qsort(v, s->found, sizeof(*v), ordered_cmp);
	*out = v;
	return ERR_OK;
}

/* Space for the parts of one series, and the number of the selection. */
struct select_unite_twins {
	uint32_t selection;
	struct twins_part *v;
	size_t cap;
};

/* Newest epoch first: by the source of its last rows, then by the number of the epoch. */
static int select_unite_age_cmp(const void *a, const void *b)
{
	const struct db_series *x = a, *y = b;
	uint32_t i = x->places[x->places_n - 1].source, k = y->places[y->places_n - 1].source;

	if (i != k || !x->partition || !y->partition)
		return (i < k) - (i > k);
	return (x->partition->epoch < y->partition->epoch) -
		(x->partition->epoch > y->partition->epoch);
}

static void select_unite_link_epochs(struct db_series *d, size_t n)
{
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && labels_eq(d[i].labels, d[k].labels); k++)
			;
		if (k - i > 1)
			qsort(d + i, k - i, sizeof(*d), select_unite_age_cmp);
		for (size_t at = i; at < k && k - i > 1; at++)
			d[at].other = at == i ? &d[k - 1] : &d[at - 1];
	}
}

/* Appends the parts of one epoch of a series to out; places are in the order of what was found. */
static size_t select_unite_parts(const struct selecting *s, const struct ordered *order,
	const struct series_place *places, const struct db_series *d, struct twins_part *out)
{
	const struct ordered *of = order + (d->places - places);

	for (size_t i = 0; i < d->places_n; i++)
		out[i] = (struct twins_part){ of[i].f->place,
			of[i].f->first_ns > s->q->min_ns ? of[i].f->first_ns : s->q->min_ns + 1,
			of[i].f->last_ns < s->q->max_ns ? of[i].f->last_ns : s->q->max_ns };
	return d->places_n;
}

/* Finds out if several members have profiles of the series d[0..n), whose labels are equal. Some of
 * them may be numeric. */
static enum err_code select_unite_find_twin(struct selecting *s, const struct ordered *order,
	const struct series_place *places, struct db_series *d, size_t n,
	struct select_unite_twins *parts, struct err *err)
{
	const struct querier_source *v = s->q->sources;
	uint32_t member = UINT32_MAX, twin;
	bool several = false;
	size_t parts_n = 0;

	for (size_t i = 0; i < n; i++) {
		if (d[i].numeric)
			continue;
		several |= member != UINT32_MAX && v[d[i].places->source].member != member;
		member = v[d[i].places->source].member;
		parts_n += d[i].places_n;
	}
	if (!several)
		return ERR_OK;
	if (!array_room(&parts->v, 0, parts_n, &parts->cap))
		return err_nomem(err, "select");
	parts_n = 0;
	for (size_t i = 0; i < n; i++)
		if (!d[i].numeric)
			parts_n += select_unite_parts(s, order, places, &d[i], parts->v + parts_n);
	twin = twins_suspect(s->q, parts->selection, d[0].labels, parts->v, parts_n);
	for (size_t i = 0; i < n; i++)
		d[i].twin = d[i].numeric ? 0 : twin;
	return ERR_OK;
}

/* Series with equal labels are linked. */
static enum err_code select_unite_find_twins(struct selecting *s, const struct ordered *order,
	const struct series_place *places, struct db_series *d, size_t n, struct err *err)
{
	struct select_unite_twins parts = { .selection = twins_begin(s->q->twins) };
	enum err_code rc = ERR_OK;
	size_t end;

	for (size_t i = 0; i < n && !rc; i = end) {
		end = i + 1;
		if (!d[i].other)
			continue;
		end = (size_t)(d[i].other - d) + 1; /* the first is linked to the last */
		assert(end > i + 1);
		rc = select_unite_find_twin(s, order, places, &d[i], end - i, &parts, err);
	}
	free(parts.v);
	return rc;
}

enum err_code select_unite(
	struct selecting *s, struct db_series **out, size_t *out_n, struct err *err)
{
	struct series_place *places = arena_array(s->a, struct series_place, s->found + 1);
	struct db_series *v = arena_array(s->a, struct db_series, s->found + 1);
	struct ordered *order = NULL;
	enum err_code rc;
	size_t n = 0;

	_Static_assert(sizeof(*v) + sizeof(*places) == DB_SERIES_BYTES, "as db.h says");
	if (!places || !v)
		return arena_fail(s->a, "select", err);
	if ((rc = select_unite_sorted(s, &order, err)))
		return rc;
	for (size_t i = 0; i < s->found; i++) {
		const struct read_select_found *f = order[i].f;

		places[i] = f->place;
		if (n && v[n - 1].partition == f->partition && labels_eq(v[n - 1].labels, f->labels)) {
			v[n - 1].places_n++;
			continue;
		}
		v[n] = (struct db_series){ .labels = f->labels,
			.partition = f->partition,
			.numeric = !f->partition,
			.places = &places[i],
			.places_n = 1 };
		n++;
	}
	select_unite_link_epochs(v, n);
	if (s->q->twins)
		rc = select_unite_find_twins(s, order, places, v, n, err);
	free(order);
	if (rc)
		return rc;
	*out = v;
	*out_n = n;
	return ERR_OK;
}
