#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"
#include "tsdb/block/block_internal.h"

/*
 * Since when a block has series with a label, summed up over labels that do not matter. A block
 * does not change, so this is made once, from the records of all such series, and kept with it: a
 * fleet has far more series than services with versions.
 */

#define FIRSTS_BYTES_MAX (4u << 20) /* of the labels of one list */

struct block_firsts {
	struct block_firsts *next;
	struct arena arena;
	struct str label;
	struct block_first *v;
	uint32_t n, cap;
	struct map map; /* while it is made */
	bool full; /* there are more than memory for them: nothing is kept */
	enum err_code rc; /* ERR_CORRUPT: some series are missing */
	struct err why;
};

static void block_firsts_close(struct block_firsts *f)
{
	map_release(&f->map);
	arena_release(&f->arena);
	free(f->v);
	free(f);
}

void block_firsts_release(struct block *b)
{
	struct block_firsts *f;

	while ((f = b->firsts)) {
		b->firsts = f->next;
		block_firsts_close(f);
	}
	mutex_destroy(&b->firsts_lock);
}

static bool block_firsts_same(const void *ctx, const void *key, uint32_t id)
{
	return labels_eq(*(const struct labels *)key, ((const struct block_firsts *)ctx)->v[id].labels);
}

static enum err_code block_firsts_add(
	struct block_firsts *f, struct labels labels, int64_t first_ns, struct err *err)
{
	uint64_t hash = labels_hash(labels);
	uint32_t at = map_find(&f->map, hash, block_firsts_same, f, &labels);
	struct block_first one = { .first_ns = first_ns };

	if (at != MAP_NONE) {
		if (first_ns < f->v[at].first_ns)
			f->v[at].first_ns = first_ns;
		return ERR_OK;
	}
	one.labels = labels_dup(&f->arena, labels);
	if (labels.n && !one.labels.v)
		return arena_fail(&f->arena, "first rows", err);
	if (!array_room(&f->v, f->n, 1, &f->cap) || !map_add(&f->map, hash, f->n))
		return err_nomem(err, "first rows");
	f->v[f->n++] = one;
	return ERR_OK;
}

static enum err_code block_firsts_add_series(struct block *b, uint32_t id,
	const struct block_firsts_of *of, struct arena *scratch, struct block_firsts *f,
	struct err *err)
{
	struct label kept[BLOCK_FIRSTS_KEPT_MAX];
	struct block_series s;
	enum err_code rc;
	size_t n;

	if ((rc = block_series(b, id, scratch, &s, &f->why)) == ERR_CORRUPT) {
		f->rc = rc;
		return ERR_OK;
	}
	if (rc)
		return err_copy(err, &f->why);
	if (str_eq(labels_get(s.labels, STR(LABEL_NAME)), of->except))
		return ERR_OK;
	n = labels_pick(s.labels, of->kept, of->kept_n, kept);
	return block_firsts_add(f, (struct labels){ kept, n }, s.first_ns, err);
}

static enum err_code block_firsts_make(
	struct block *b, const struct block_firsts_of *of, struct block_firsts *f, struct err *err)
{
	const struct matcher m = { .op = MATCH_NE, .name = of->label, .value = STR("") };
	struct bits ids = { 0 };
	struct arena scratch;
	enum err_code rc;

	arena_init(&scratch, 0);
	f->rc = block_match(b, &m, 1, NULL, NULL, &ids, &f->why);
	rc = f->rc && f->rc != ERR_CORRUPT ? err_copy(err, &f->why) : ERR_OK;
	for (size_t w = 0; w < ids.words && !rc; w++) {
		for (uint64_t rest = ids.w[w]; rest && !rc; rest &= rest - 1) {
			uint32_t id = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest));

			if (id >= b->meta.number_series)
				rc = block_firsts_add_series(b, id, of, &scratch, f, err);
		}
		arena_reset(&scratch);
	}
	map_release(&f->map);
	arena_release(&scratch);
	bits_release(&ids);
	f->full = rc == ERR_LIMIT;
	return f->full ? ERR_OK : rc;
}

static enum err_code block_firsts_find(
	struct block *b, const struct block_firsts_of *of, struct block_firsts **out, struct err *err)
{
	struct block_firsts *f = b->firsts;
	enum err_code rc;

	mutex_assert_held(&b->firsts_lock);
	while (f && !str_eq(f->label, of->label))
		f = f->next;
	if ((*out = f))
		return ERR_OK;
	if (!(f = calloc(1, sizeof(*f))))
		return err_nomem(err, "first rows");
	map_init(&f->map);
	arena_init(&f->arena, FIRSTS_BYTES_MAX);
	if (!(f->label = str_dup(&f->arena, of->label)).ptr)
		rc = arena_fail(&f->arena, "first rows", err);
	else
		rc = block_firsts_make(b, of, f, err);
	if (rc) {
		block_firsts_close(f);
		return rc;
	}
	f->next = b->firsts;
	*out = b->firsts = f;
	return ERR_OK;
}

enum err_code block_firsts(struct block *b, const struct block_firsts_of *of,
	const struct block_first **out, size_t *n, struct err *err)
{
	struct block_firsts *f;
	enum err_code rc;

	assert(of->kept_n <= BLOCK_FIRSTS_KEPT_MAX);
	*n = 0;
	mutex_lock(&b->firsts_lock);
	rc = block_firsts_find(b, of, &f, err);
	mutex_unlock(&b->firsts_lock);
	if (rc)
		return rc;
	if (f->full)
		return err_set(err, ERR_LIMIT, "block %s: too many first rows", b->dir);
	*out = f->v;
	*n = f->n;
	return f->rc ? err_copy(err, &f->why) : ERR_OK;
}
