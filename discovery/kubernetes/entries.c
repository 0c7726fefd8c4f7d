#include "discovery/kubernetes/entries.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"

#define PAGE_MAX 256u /* entries */
#define PAGE_MIN 64u /* a page with fewer is joined with its neighbour, if both fit */
#define ENTRIES_TEXT "Kubernetes discovery"

struct kube_page {
	struct kube_entry *v[PAGE_MAX];
	size_t n;
	struct groups *set; /* all its groups; NULL: something changed */
};

/* ---- what entries looked up ---- */

static void kube_entries_link_in(struct kube_entries *k, struct kube_link *l)
{
	struct kube_link **slot = &k->slots[map_hash_u64(l->dep) & (k->slots_n - 1)];

	l->next = *slot;
	l->at = slot;
	if (l->next)
		l->next->at = &l->next;
	*slot = l;
}

static void kube_entries_unlink_all(struct kube_entries *k, struct kube_entry *e)
{
	struct kube_link *l;

	for (size_t i = 0; i < e->links_n; i++) {
		l = &e->links[i];
		*l->at = l->next;
		if (l->next)
			l->next->at = l->at;
	}
	k->links_n -= e->links_n;
	free(e->links);
	e->links = NULL;
	e->links_n = 0;
}

static void kube_entries_link_page(struct kube_entries *e, const struct kube_page *p)
{
	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < p->v[i]->links_n; k++)
			kube_entries_link_in(e, &p->v[i]->links[k]);
}

/* Room for n more. */
static bool kube_entries_grow_slots(struct kube_entries *k, size_t n)
{
	size_t slots_n = k->slots_n ? k->slots_n : 64;
	struct kube_link **slots;

	while (slots_n < k->links_n + n)
		slots_n *= 2;
	if (slots_n == k->slots_n)
		return true;
	if (!(slots = calloc(slots_n, sizeof(struct kube_link *))))
		return false;
	free(k->slots);
	k->slots = slots;
	k->slots_n = slots_n;
	for (size_t i = 0; i < k->pages_n; i++)
		kube_entries_link_page(k, k->pages[i]);
	return true;
}

/* ---- pages ---- */

static struct str kube_entry_key_of(const struct kube_entry *e)
{
	return (struct str){ e->key, e->key_len };
}

static void kube_page_changed(struct kube_page *p)
{
	groups_unref(p->set);
	p->set = NULL;
}

static void kube_page_free(struct kube_page *p)
{
	kube_page_changed(p);
	free(p);
}

/* The last page that begins at or before the key, or the first. */
static size_t kube_entries_page_of(const struct kube_entries *k, struct str key)
{
	size_t lo = 0, hi = k->pages_n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (str_cmp(kube_entry_key_of(k->pages[mid]->v[0]), key) <= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? lo - 1 : 0;
}

static size_t kube_page_place_of(const struct kube_page *p, struct str key)
{
	size_t lo = 0, hi = p->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (str_cmp(kube_entry_key_of(p->v[mid]), key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct kube_page *kube_entries_page_insert(struct kube_entries *k, size_t i)
{
	struct kube_page *p;

	if (!array_room(&k->pages, k->pages_n, 1, &k->pages_cap) || !(p = calloc(1, sizeof(*p))))
		return NULL;
	memmove(k->pages + i + 1, k->pages + i, (k->pages_n++ - i) * sizeof(struct kube_page *));
	k->pages[i] = p;
	return p;
}

static void kube_entries_page_remove(struct kube_entries *k, size_t i)
{
	kube_page_free(k->pages[i]);
	memmove(k->pages + i, k->pages + i + 1, (--k->pages_n - i) * sizeof(struct kube_page *));
}

/* Makes room in a page that is full. Entries that come in order fill pages; others halve them. */
static bool kube_entries_split(struct kube_entries *k, size_t i, size_t at)
{
	struct kube_page *full = k->pages[i], *p = kube_entries_page_insert(k, i + 1);
	size_t keep = at == PAGE_MAX && i + 2 == k->pages_n ? PAGE_MAX : PAGE_MAX / 2;

	if (!p)
		return false;
	kube_page_changed(full);
	p->n = full->n - keep;
	memcpy(p->v, full->v + keep, p->n * sizeof(struct kube_entry *));
	full->n = keep;
	return true;
}

static void kube_page_insert(struct kube_page *p, size_t at, struct kube_entry *e)
{
	assert(p->n < PAGE_MAX);
	kube_page_changed(p);
	memmove(p->v + at + 1, p->v + at, (p->n++ - at) * sizeof(struct kube_entry *));
	p->v[at] = e;
}

/* ---- entries ---- */

static void kube_entries_entry_free(struct kube_entries *k, struct kube_entry *e)
{
	kube_entries_unlink_all(k, e);
	groups_unref(e->set);
	free(e->key);
	free(e);
}

static struct kube_entry *kube_entry_new(struct str key, uint32_t ns)
{
	struct kube_entry *e = calloc(1, sizeof(*e));

	if (e && !(e->key = malloc(key.len + 1))) {
		free(e);
		return NULL;
	}
	if (e) {
		memcpy(e->key, key.ptr, key.len);
		e->key[key.len] = '\0';
		e->key_len = key.len;
		e->ns = ns;
	}
	return e;
}

static void kube_mark(struct kube_entries *k, struct kube_entry *e)
{
	if (e->marked)
		return;
	e->marked = true;
	e->next = NULL;
	*k->marked_end = e;
	k->marked_end = &e->next;
}

bool kube_entries_mark(struct kube_entries *k, struct str key, uint32_t ns)
{
	size_t i = kube_entries_page_of(k, key), at;
	struct kube_entry *e;

	if (!k->pages_n && !kube_entries_page_insert(k, 0))
		return false;
	at = kube_page_place_of(k->pages[i], key);
	if (at < k->pages[i]->n && str_eq(kube_entry_key_of(k->pages[i]->v[at]), key)) {
		kube_mark(k, k->pages[i]->v[at]);
		return true;
	}
	if (!(e = kube_entry_new(key, ns)))
		goto fail;
	if (k->pages[i]->n == PAGE_MAX) {
		if (!kube_entries_split(k, i, at))
			goto fail;
		if (at > k->pages[i]->n || k->pages[i]->n == PAGE_MAX)
			at -= k->pages[i++]->n;
	}
	kube_page_insert(k->pages[i], at, e);
	k->n++;
	kube_mark(k, e);
	return true;
fail:
	free(e ? e->key : NULL);
	free(e);
	if (!k->pages[0]->n)
		kube_entries_page_remove(k, 0);
	return false;
}

void kube_entries_mark_all(struct kube_entries *e)
{
	for (size_t i = 0; i < e->pages_n; i++)
		for (size_t k = 0; k < e->pages[i]->n; k++)
			kube_mark(e, e->pages[i]->v[k]);
}

void kube_entries_mark_those_of(struct kube_entries *k, uint64_t dep)
{
	if (!k->slots_n)
		return;
	for (struct kube_link *l = k->slots[map_hash_u64(dep) & (k->slots_n - 1)]; l; l = l->next)
		if (l->dep == dep)
			kube_mark(k, l->entry);
}

struct kube_entry *kube_entries_take(struct kube_entries *k)
{
	struct kube_entry *e = k->marked;

	if (!e)
		return NULL;
	if (!(k->marked = e->next))
		k->marked_end = &k->marked;
	e->marked = false;
	return e;
}

enum err_code kube_entries_give(struct kube_entries *k, struct kube_entry *e, struct groups *set,
	const uint64_t *deps, size_t n, struct err *err)
{
	struct kube_link *links = n ? calloc(n, sizeof(*links)) : NULL;

	if ((n && !links) || !kube_entries_grow_slots(k, n)) {
		free(links);
		groups_unref(set);
		return err_nomem(err, ENTRIES_TEXT);
	}
	kube_entries_unlink_all(k, e);
	for (size_t i = 0; i < n; i++) {
		links[i] = (struct kube_link){ .dep = deps[i], .entry = e };
		kube_entries_link_in(k, &links[i]);
	}
	e->links = links;
	e->links_n = n;
	k->links_n += n;
	if (e->set && groups_eq(e->set, set)) { /* keeps the old one: what is made of it stays */
		groups_unref(set);
		return ERR_OK;
	}
	groups_unref(e->set);
	e->set = set;
	kube_page_changed(k->pages[kube_entries_page_of(k, kube_entry_key_of(e))]);
	return ERR_OK;
}

/* Joins page i with the next one, if they are small. */
static void kube_entries_join_small(struct kube_entries *k, size_t i)
{
	struct kube_page *p, *next;

	if (i + 1 >= k->pages_n)
		return;
	p = k->pages[i];
	next = k->pages[i + 1];
	if ((p->n >= PAGE_MIN && next->n >= PAGE_MIN) || p->n + next->n > PAGE_MAX / 4 * 3)
		return;
	kube_page_changed(p);
	memcpy(p->v + p->n, next->v, next->n * sizeof(struct kube_entry *));
	p->n += next->n;
	kube_entries_page_remove(k, i + 1);
}

void kube_entries_remove(struct kube_entries *k, struct kube_entry *e)
{
	size_t i = kube_entries_page_of(k, kube_entry_key_of(e)),
		   at = kube_page_place_of(k->pages[i], kube_entry_key_of(e));
	struct kube_page *p = k->pages[i];

	assert(!e->marked && p->v[at] == e);
	kube_page_changed(p);
	memmove(p->v + at, p->v + at + 1, (--p->n - at) * sizeof(struct kube_entry *));
	k->n--;
	kube_entries_entry_free(k, e);
	if (!p->n) {
		kube_entries_page_remove(k, i);
		return;
	}
	kube_entries_join_small(k, i);
	if (i)
		kube_entries_join_small(k, i - 1);
}

/* ---- all of them ---- */

void kube_entries_init(struct kube_entries *k)
{
	*k = (struct kube_entries){ .pages = NULL };
	k->marked_end = &k->marked;
}

void kube_entries_release(struct kube_entries *e)
{
	for (size_t i = 0; i < e->pages_n; i++) {
		for (size_t k = 0; k < e->pages[i]->n; k++)
			kube_entries_entry_free(e, e->pages[i]->v[k]);
		kube_page_free(e->pages[i]);
	}
	free(e->pages);
	free(e->slots);
	kube_entries_init(e);
}

static enum err_code kube_page_join(struct kube_page *p, struct err *err)
{
	struct groups *sets[PAGE_MAX];

	for (size_t i = 0; i < p->n; i++)
		sets[i] = p->v[i]->set;
	return groups_bundle(sets, p->n, &p->set, err);
}

enum err_code kube_entries_join(struct kube_entries *k, struct groups **out, struct err *err)
{
	struct groups **sets = calloc(k->pages_n ? k->pages_n : 1, sizeof(struct groups *));
	enum err_code rc = sets ? ERR_OK : err_nomem(err, ENTRIES_TEXT);

	for (size_t i = 0; i < k->pages_n && !rc; i++) {
		if (!k->pages[i]->set)
			rc = kube_page_join(k->pages[i], err);
		if (!rc)
			sets[i] = k->pages[i]->set;
	}
	if (!rc)
		rc = groups_bundle(sets, k->pages_n, out, err);
	free(sets);
	return rc;
}
