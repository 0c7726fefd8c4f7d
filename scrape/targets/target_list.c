#include "scrape/targets/target_list.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"

#define CHUNK_MAX 256u /* targets; more if so many have equal labels */
#define CHUNK_MIN 64u /* a chunk that is made anew takes the next one in if it has fewer */

int target_cmp(const struct target *a, const struct target *b)
{
	int c;

	if (a->labels_hash != b->labels_hash)
		return a->labels_hash < b->labels_hash ? -1 : 1;
	if ((c = labels_cmp(a->labels, b->labels)) || (c = str_cmp(a->url, b->url)))
		return c;
	return str_cmp(target_unix_path(a), target_unix_path(b));
}

struct target_list_key {
	uint64_t hash;
	const struct target *target;
};

static int target_list_key_cmp(const struct target_list_key *a, const struct target_list_key *b)
{
	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	return a->target == b->target ? 0 : target_cmp(a->target, b->target);
}

static int target_list_by_key(const void *a, const void *b)
{
	return target_list_key_cmp(a, b);
}

/* ---- chunks ---- */

static void target_chunk_unref(struct target_chunk *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	if (c->v != c->all)
		free(c->v);
	free(c->all);
	free(c->hashes);
	free(c->users);
	free(c);
}

static struct target_chunk *target_chunk_ref(struct target_chunk *c)
{
	unsigned before = atomic_fetch_add(&c->refs, 1);

	assert(before > 0);
	return c;
}

static void target_chunk_leave_out(struct target_chunk *c, const struct target *t)
{
	const struct target *kept = c->v[c->n - 1];

	if (str_eq(kept->url, t->url) && str_eq(target_unix_path(kept), target_unix_path(t)))
		return; /* the same target, found twice */
	if (c->doubles++ == 0) {
		c->kept = kept;
		c->not_kept = t;
	}
}

/* The ith target has the labels of the one before it. */
static bool target_chunk_is_double(const struct target_chunk *c, size_t i)
{
	return c->hashes[i - 1] == c->hashes[i] && labels_eq(c->all[i - 1]->labels, c->all[i]->labels);
}

static bool target_chunk_find_doubles(struct target_chunk *c)
{
	size_t first = 1;

	while (first < c->all_n && !target_chunk_is_double(c, first))
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
		if (target_chunk_is_double(c, i))
			target_chunk_leave_out(c, c->all[i]);
		else
			c->v[c->n++] = c->all[i];
	}
	return true;
}

static struct target_chunk *target_list_key_chunk_new(const struct target_list_key *t, size_t n)
{
	struct target_chunk *c = calloc(1, sizeof(*c));

	assert(n);
	if (!c)
		return NULL;
	atomic_init(&c->refs, 1);
	c->all = malloc(n * sizeof(*c->all));
	c->hashes = malloc(n * sizeof(*c->hashes));
	c->users = calloc(n, sizeof(void *));
	if (!c->all || !c->hashes || !c->users)
		goto fail;
	for (size_t i = 0; i < n; i++) {
		c->all[i] = t[i].target;
		c->hashes[i] = t[i].hash;
	}
	c->all_n = n;
	if (target_chunk_find_doubles(c))
		return c;
fail:
	target_chunk_unref(c);
	return NULL;
}

/* ---- places ---- */

/* Where targets with this hash belong: the last chunk that does not begin behind it. */
static size_t target_list_place_of(const struct target_list *l, uint64_t hash)
{
	size_t lo = 0, hi = l->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (l->v[mid].hash <= hash)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? lo - 1 : 0;
}

bool target_list_has(const struct target_list *l, const struct target_place *p)
{
	return l->n && l->v[target_list_place_of(l, p->hash)].chunk == p->chunk;
}

/* ---- a list that follows ---- */

struct target_list_keys { /* of some parts, sorted */
	struct target_list_key *v;
	size_t n, at; /* at: passed so far */
};

struct target_list_following {
	const struct target_list *before;
	bool *changed; /* of its chunks */
	struct target_list_keys gone, fresh;
	struct target_list_key *run; /* gathered, but not in a chunk yet */
	size_t run_n, run_cap;
	struct target_list list;
	size_t cap;
};

static bool target_list_gather(struct target_list_following *f, struct target_part *const *parts,
	size_t n, struct target_list_keys *out)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += parts[i]->n;
	if (!(out->v = malloc((total + 1) * sizeof(*out->v))))
		return false;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < parts[i]->n; k++)
			out->v[out->n++] = (struct target_list_key){ parts[i]->v[k].labels_hash,
				&parts[i]->v[k] };
	qsort(out->v, out->n, sizeof(*out->v), target_list_by_key);
	for (size_t i = 0; i < out->n && f->before->n; i++)
		f->changed[target_list_place_of(f->before, out->v[i].hash)] = true;
	return true;
}

static bool target_list_add_chunk(
	struct target_list_following *f, uint64_t hash, struct target_chunk *c)
{
	if (!c || !array_room(&f->list.v, f->list.n, 1, &f->cap)) {
		target_chunk_unref(c);
		return false;
	}
	f->list.v[f->list.n++] = (struct target_place){ hash, c };
	return true;
}

/* Cuts what is gathered into chunks of about one size, between different hashes. */
static bool target_list_cut_run(struct target_list_following *f)
{
	size_t chunks = (f->run_n + CHUNK_MAX - 1) / CHUNK_MAX, begin = 0, end;

	for (size_t i = 1; begin < f->run_n; i++) {
		end = i < chunks ? f->run_n * i / chunks : f->run_n;
		while (end < f->run_n && (end <= begin || f->run[end - 1].hash == f->run[end].hash))
			end++;
		if (end > begin &&
			!target_list_add_chunk(
				f, f->run[begin].hash, target_list_key_chunk_new(f->run + begin, end - begin)))
			return false;
		begin = end;
	}
	f->run_n = 0;
	return true;
}

static bool target_list_add_to_run(struct target_list_following *f, struct target_list_key k)
{
	if (!array_room(&f->run, f->run_n, 1, &f->run_cap))
		return false;
	f->run[f->run_n++] = k;
	return true;
}

/* The fresh targets before k, or if that has no target, before its hash; NULL: all that are left.
 */
static bool target_list_take_fresh(struct target_list_following *f, const struct target_list_key *k)
{
	struct target_list_keys *fresh = &f->fresh;
	const struct target_list_key *next;

	for (; fresh->at < fresh->n; fresh->at++) {
		next = &fresh->v[fresh->at];
		if (k && (k->target ? target_list_key_cmp(next, k) >= 0 : next->hash >= k->hash))
			return true;
		if (!target_list_add_to_run(f, *next))
			return false;
	}
	return true;
}

static bool target_list_is_gone(struct target_list_following *f, const struct target_list_key *k)
{
	struct target_list_keys *gone = &f->gone;

	while (gone->at < gone->n && gone->v[gone->at].hash < k->hash)
		gone->at++;
	for (size_t i = gone->at; i < gone->n && gone->v[i].hash == k->hash; i++)
		if (gone->v[i].target == k->target)
			return true;
	return false;
}

/* A chunk's targets that stay, and the fresh ones that belong there. */
static bool target_list_merge(struct target_list_following *f, size_t i)
{
	const struct target_list *l = f->before;
	const struct target_chunk *c = l->v[i].chunk;
	struct target_list_key k;

	for (size_t at = 0; at < c->all_n; at++) {
		k = (struct target_list_key){ c->hashes[at], c->all[at] };
		if (!target_list_take_fresh(f, &k) ||
			(!target_list_is_gone(f, &k) && !target_list_add_to_run(f, k)))
			return false;
	}
	if (i + 1 == l->n)
		return target_list_take_fresh(f, NULL);
	k = (struct target_list_key){ l->v[i + 1].hash, NULL };
	return target_list_take_fresh(f, &k);
}

static bool target_list_follow_job(struct target_list_following *f)
{
	const struct target_list *l = f->before;

	for (size_t i = 0; i < l->n; i++) {
		if (f->changed[i] || f->run_n) {
			if (!target_list_merge(f, i) || (f->run_n >= CHUNK_MIN && !target_list_cut_run(f)))
				return false;
		} else if (!target_list_add_chunk(f, l->v[i].hash, target_chunk_ref(l->v[i].chunk))) {
			return false;
		}
	}
	return target_list_take_fresh(f, NULL) && target_list_cut_run(f);
}

enum err_code target_list_follow(const struct target_list *before, struct target_part *const *gone,
	size_t gone_n, struct target_part *const *fresh, size_t fresh_n, struct target_list *out,
	struct err *err)
{
	struct target_list_following f = { .before = before, .changed = calloc(before->n + 1, 1) };
	bool ok = f.changed && target_list_gather(&f, gone, gone_n, &f.gone) &&
		target_list_gather(&f, fresh, fresh_n, &f.fresh) && target_list_follow_job(&f);

	free(f.changed);
	free(f.gone.v);
	free(f.fresh.v);
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
		target_chunk_unref(l->v[i].chunk);
	free(l->v);
	*l = (struct target_list){ 0 };
}
