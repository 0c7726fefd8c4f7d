#include "tsdb/debuginfo/service/wanted.h"

#include <assert.h>
#include <stdlib.h>

#include "base/map.h"

struct want {
	struct want *next_hash;
	struct want *prev, *next; /* in its list */
	bool given;
	int64_t at_ns; /* when it was added or given */
	struct debuginfo_want want;
};

void wanted_init(struct wanted *w)
{
	*w = (struct wanted){ .seed = hash_seed() };
}

void wanted_release(struct wanted *w)
{
	for (size_t i = 0; i < WANTED_BUCKETS; i++)
		for (struct want *x = w->buckets[i], *next; x; x = next) {
			next = x->next_hash;
			free(x);
		}
	*w = (struct wanted){ 0 };
}

static size_t wanted_bucket_of(const struct wanted *w, const struct debuginfo_id *id)
{
	return hash_bytes(id, sizeof(*id), w->seed) % WANTED_BUCKETS;
}

/* Where the pointer to it is, or would be. */
static struct want **wanted_place_of(struct wanted *w, const struct debuginfo_id *id)
{
	struct want **at = &w->buckets[wanted_bucket_of(w, id)];

	while (*at && !debuginfo_id_eq(&(*at)->want.id, id))
		at = &(*at)->next_hash;
	return at;
}

static struct want_list *wanted_list_of(struct wanted *w, const struct want *want)
{
	return want->given ? &w->given : &w->fresh;
}

static void want_list_remove(struct want_list *l, struct want *w)
{
	*(w->prev ? &w->prev->next : &l->first) = w->next;
	*(w->next ? &w->next->prev : &l->last) = w->prev;
}

static void want_list_add(struct want_list *l, struct want *w)
{
	w->prev = l->last;
	w->next = NULL;
	*(l->last ? &l->last->next : &l->first) = w;
	l->last = w;
}

const struct debuginfo_want *wanted_find(const struct wanted *w, const struct debuginfo_id *id)
{
	const struct want *x = w->buckets[wanted_bucket_of(w, id)];

	while (x && !debuginfo_id_eq(&x->want.id, id))
		x = x->next_hash;
	return x ? &x->want : NULL;
}

void wanted_remove(struct wanted *w, const struct debuginfo_id *id)
{
	struct want **at = wanted_place_of(w, id), *x = *at;

	if (!x)
		return;
	*at = x->next_hash;
	want_list_remove(wanted_list_of(w, x), x);
	w->n--;
	free(x);
}

static void wanted_drop_oldest(struct wanted *w)
{
	const struct want *a = w->fresh.first, *b = w->given.first;
	struct debuginfo_id id = !b || (a && a->at_ns <= b->at_ns) ? a->want.id : b->want.id;

	wanted_remove(w, &id);
}

void wanted_add(struct wanted *w, const struct debuginfo_id *id, struct str path, int64_t now_ns)
{
	struct want *x = calloc(1, sizeof(*x)), **at;

	if (!x)
		return;
	if (w->n >= DEBUGINFO_WANTED_MAX)
		wanted_drop_oldest(w);
	at = wanted_place_of(w, id);
	assert(!*at);
	x->at_ns = now_ns;
	x->want.id = *id;
	debuginfo_path_clean(path, x->want.path);
	*at = x;
	want_list_add(&w->fresh, x);
	w->n++;
}

const struct debuginfo_want *wanted_next(const struct wanted *w, int64_t now_ns, int64_t *due_ns)
{
	const struct want *x = w->fresh.first;

	if (x)
		return &x->want;
	x = w->given.first;
	*due_ns = x ? x->at_ns + DEBUGINFO_WANTED_AGAIN_NS : INT64_MAX;
	return x && *due_ns <= now_ns ? &x->want : NULL;
}

void wanted_give(struct wanted *w, const struct debuginfo_id *id, int64_t now_ns)
{
	struct want *x = *wanted_place_of(w, id);

	assert(x);
	want_list_remove(wanted_list_of(w, x), x);
	x->given = true;
	x->at_ns = now_ns;
	want_list_add(&w->given, x);
}
