#include "scrape/targets/target_list.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"

#define CHUNK_MAX 256u /* targets; more if so many have equal labels */
#define CHUNK_MIN 64u /* a chunk that is made anew takes the next one in if it has fewer */

int target_cmp(const struct target *a, const struct target *b)
{
	int c = labels_cmp(a->labels, b->labels);

	return c ? c : str_cmp(a->url, b->url);
}

static int by_target(const void *a, const void *b)
{
	const struct target *const *x = a, *const *y = b;

	return target_cmp(*x, *y);
}

static bool same_labels(const struct target *a, const struct target *b)
{
	return a->labels_hash == b->labels_hash && labels_eq(a->labels, b->labels);
}

/* ---- chunks ---- */

static void chunk_unref(struct target_chunk *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	if (c->v != c->all)
		free(c->v);
	free(c->all);
	free(c->users);
	free(c);
}

static struct target_chunk *chunk_ref(struct target_chunk *c)
{
	unsigned before = atomic_fetch_add(&c->refs, 1);

	assert(before > 0);
	return c;
}

static void leave_out(struct target_chunk *c, const struct target *t)
{
	const struct target *kept = c->v[c->n - 1];

	if (str_eq(kept->url, t->url))
		return; /* the same target, found twice */
	if (c->doubles++ == 0) {
		c->kept = kept;
		c->not_kept = t;
	}
}

static bool find_doubles(struct target_chunk *c)
{
	size_t first = 1;

	while (first < c->all_n && !same_labels(c->all[first - 1], c->all[first]))
		first++;
	c->v = c->all;
	c->n = c->all_n;
	if (first >= c->all_n)
		return true;
	if (!(c->v = malloc(c->all_n * sizeof(*c->v)))) {
		c->v = c->all;
		return false;
	}
	memcpy(c->v, c->all, first * sizeof(*c->v));
	c->n = first;
	for (size_t i = first; i < c->all_n; i++) {
		if (same_labels(c->v[c->n - 1], c->all[i]))
			leave_out(c, c->all[i]);
		else
			c->v[c->n++] = c->all[i];
	}
	return true;
}

static struct target_chunk *chunk_new(uint64_t number, const struct target **v, size_t n)
{
	struct target_chunk *c = calloc(1, sizeof(*c));

	assert(n);
	if (!c)
		return NULL;
	atomic_init(&c->refs, 1);
	c->made = c->seen = number;
	c->all = malloc(n * sizeof(*v));
	c->users = calloc(n, sizeof(void *));
	if (!c->all || !c->users)
		goto fail;
	memcpy(c->all, v, n * sizeof(*v));
	c->all_n = n;
	if (find_doubles(c))
		return c;
fail:
	chunk_unref(c);
	return NULL;
}

/* ---- a list that follows ---- */

struct following {
	uint64_t number;
	const struct target_list *before;
	bool *changed; /* of its chunks */
	const struct target **fresh; /* sorted */
	size_t fresh_n, at; /* taken so far */
	const struct target **run; /* gathered, but not in a chunk yet */
	size_t run_n, run_cap;
	struct target_list list;
	size_t cap;
};

/* Where a target with these labels belongs: the last chunk that does not begin behind them. */
static size_t chunk_of(const struct target_list *l, struct labels labels)
{
	size_t lo = 0, hi = l->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (labels_cmp(l->v[mid]->all[0]->labels, labels) <= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? lo - 1 : 0;
}

static bool gather(struct following *f, struct target_part *const *fresh, size_t n)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += fresh[i]->n;
	f->fresh = malloc((total ? total : 1) * sizeof(*f->fresh));
	f->changed = calloc(f->before->n ? f->before->n : 1, sizeof(*f->changed));
	if (!f->fresh || !f->changed)
		return false;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < fresh[i]->n; k++)
			f->fresh[f->fresh_n++] = &fresh[i]->v[k];
	qsort(f->fresh, total, sizeof(*f->fresh), by_target);
	return true;
}

static void find_changed(struct following *f, struct target_part *const *gone, size_t n)
{
	if (!f->before->n)
		return;
	for (size_t i = 0; i < f->fresh_n; i++)
		f->changed[chunk_of(f->before, f->fresh[i]->labels)] = true;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < gone[i]->n; k++)
			f->changed[chunk_of(f->before, gone[i]->v[k].labels)] = true;
}

static bool add_chunk(struct following *f, struct target_chunk *c)
{
	if (!c || !array_room(&f->list.v, f->list.n, 1, &f->cap)) {
		chunk_unref(c);
		return false;
	}
	c->seen = f->number;
	f->list.v[f->list.n++] = c;
	return true;
}

/* Cuts what is gathered into chunks of about one size, between different labels. */
static bool cut_run(struct following *f)
{
	size_t chunks = (f->run_n + CHUNK_MAX - 1) / CHUNK_MAX, begin = 0, end;

	for (size_t i = 1; begin < f->run_n; i++) {
		end = i < chunks ? f->run_n * i / chunks : f->run_n;
		while (end < f->run_n && (end <= begin || same_labels(f->run[end - 1], f->run[end])))
			end++;
		if (end > begin && !add_chunk(f, chunk_new(f->number, f->run + begin, end - begin)))
			return false;
		begin = end;
	}
	f->run_n = 0;
	return true;
}

static bool add_to_run(struct following *f, const struct target *t)
{
	if (!array_room(&f->run, f->run_n, 1, &f->run_cap))
		return false;
	f->run[f->run_n++] = t;
	return true;
}

/* The fresh targets before t; NULL: all that are left. */
static bool take_fresh(struct following *f, const struct target *t, struct labels *until)
{
	const struct target *next;

	for (; f->at < f->fresh_n; f->at++) {
		next = f->fresh[f->at];
		if (t ? target_cmp(next, t) >= 0 : until && labels_cmp(next->labels, *until) >= 0)
			return true;
		if (!add_to_run(f, next))
			return false;
	}
	return true;
}

/* A chunk's targets that stay, and the fresh ones that belong there. */
static bool merge(struct following *f, size_t i)
{
	const struct target_chunk *c = f->before->v[i];
	struct labels *until = NULL, next;

	for (size_t k = 0; k < c->all_n; k++)
		if (!take_fresh(f, c->all[k], NULL) ||
			(c->all[k]->part->gone != f->number && !add_to_run(f, c->all[k])))
			return false;
	if (i + 1 < f->before->n) {
		next = f->before->v[i + 1]->all[0]->labels;
		until = &next;
	}
	return take_fresh(f, NULL, until);
}

static bool follow(struct following *f)
{
	for (size_t i = 0; i < f->before->n; i++) {
		if (f->changed[i] || f->run_n) {
			if (!merge(f, i) || (f->run_n >= CHUNK_MIN && !cut_run(f)))
				return false;
		} else if (!add_chunk(f, chunk_ref(f->before->v[i]))) {
			return false;
		}
	}
	return take_fresh(f, NULL, NULL) && cut_run(f);
}

enum err_code target_list_follow(uint64_t number, const struct target_list *before,
	struct target_part *const *gone, size_t gone_n, struct target_part *const *fresh,
	size_t fresh_n, struct target_list *out, struct err *err)
{
	struct following f = { .number = number, .before = before };
	bool ok = gather(&f, fresh, fresh_n);

	if (ok) {
		find_changed(&f, gone, gone_n);
		ok = follow(&f);
	}
	free(f.changed);
	free(f.fresh);
	free(f.run);
	if (!ok) {
		target_list_release(&f.list);
		return err_nomem(err, "targets");
	}
	*out = f.list;
	return ERR_OK;
}

void target_list_release(struct target_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		chunk_unref(l->v[i]);
	free(l->v);
	*l = (struct target_list){ 0 };
}
