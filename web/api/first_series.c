#include "web/api/first_series.h"

#include <stdlib.h>

#include "base/array.h"

#define KEPT_MIN 1024u /* kept beside twice the limit */

void first_series_init(struct first_series *f, uint64_t limit, size_t bytes_max)
{
	/* A limit that cannot be reached is no limit. */
	*f = (struct first_series){ .limit = limit < UINT32_MAX ? limit : 0 };
	map_init(&f->map);
	arena_init(&f->texts, bytes_max);
}

void first_series_release(struct first_series *f)
{
	map_release(&f->map);
	arena_release(&f->texts);
	free(f->v);
}

bool first_series_wants(const struct first_series *f, struct labels labels)
{
	return !f->is_over || labels_cmp(labels, f->last) < 0;
}

static bool api_is_same(const void *ctx, const void *key, uint32_t id)
{
	return labels_eq(*(const struct labels *)key, ((const struct first_series *)ctx)->v[id]);
}

static int api_cmp_labels(const void *a, const void *b)
{
	return labels_cmp(*(const struct labels *)a, *(const struct labels *)b);
}

static enum err_code api_first_series_keep(
	struct first_series *f, uint32_t at, struct labels labels, uint64_t hash, struct err *err)
{
	struct labels copy = labels_dup(&f->texts, labels);

	if (labels.n && !copy.v)
		return arena_fail(&f->texts, "a list of series", err);
	if (!map_add(&f->map, hash, at))
		return err_nomem(err, "series");
	f->v[at] = copy;
	return ERR_OK;
}

/* Sorts, and keeps one more than the limit, to tell that there were more. */
static enum err_code api_cut(struct first_series *f, struct err *err)
{
	struct arena before = f->texts;
	enum err_code rc = ERR_OK;

	if (f->n)
		qsort(f->v, f->n, sizeof(*f->v), api_cmp_labels);
	if (!f->limit || f->n <= f->limit)
		return ERR_OK;
	arena_init(&f->texts, before.budget_bytes);
	map_release(&f->map);
	map_init(&f->map);
	f->n = f->limit + 1;
	for (uint32_t i = 0; i < f->n && !rc; i++)
		rc = api_first_series_keep(f, i, f->v[i], labels_hash(f->v[i]), err);
	arena_release(&before);
	if (rc)
		return rc;
	f->last = f->v[f->limit];
	f->is_over = true;
	return ERR_OK;
}

enum err_code first_series_add(struct first_series *f, struct labels labels, struct err *err)
{
	uint64_t hash = labels_hash(labels);
	enum err_code rc;

	if (!first_series_wants(f, labels) ||
		map_find(&f->map, hash, api_is_same, f, &labels) != MAP_NONE)
		return ERR_OK;
	if (f->limit && f->n >= 2 * f->limit + KEPT_MIN && (rc = api_cut(f, err)))
		return rc;
	if (!array_room(&f->v, f->n, 1, &f->cap))
		return err_nomem(err, "series");
	if ((rc = api_first_series_keep(f, (uint32_t)f->n, labels, hash, err)))
		return rc;
	f->n++;
	return ERR_OK;
}

enum err_code first_series_end(struct first_series *f, struct err *err)
{
	return api_cut(f, err);
}
