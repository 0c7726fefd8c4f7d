/*
 * Entries: the objects that a source makes groups of, each with its group and with what was looked
 * up for it.
 *
 * Entries are sorted by key, in pages of some hundred; each page has its groups as one set. So a
 * change of one object makes a set of its page and the list of pages anew, and nothing of the
 * others. What depends on another object is found through an index of hashes.
 *
 * Errors:    ERR_NOMEM. Marking needs no memory.
 * Ownership: entries belong to the table; kube_entries_give takes the set.
 * Threads:   discovery's.
 */
#ifndef DISCOVERY_KUBERNETES_ENTRIES_H
#define DISCOVERY_KUBERNETES_ENTRIES_H

#include "discovery/sources/groups.h"

struct kube_entry;
struct kube_page;

/* An entry looked up this object (kube_dep). */
struct kube_link {
	uint64_t dep;
	struct kube_entry *entry;
	struct kube_link *next, **at; /* in its slot */
};

struct kube_entry {
	char *key;
	size_t key_len;
	uint32_t ns; /* index of its namespace in the source */
	bool marked;
	struct kube_entry *next; /* of those that are marked */
	struct groups *set; /* one group; NULL: it could not be built yet */
	struct kube_link *links;
	size_t links_n;
};

struct kube_entries {
	struct kube_page **pages; /* none is empty */
	size_t pages_n, pages_cap;
	size_t n;
	struct kube_entry *marked, **marked_end;
	struct kube_link **slots;
	size_t slots_n; /* a power of two, or 0 */
	size_t links_n;
};

void kube_entries_init(struct kube_entries *k);
void kube_entries_release(struct kube_entries *e);

/* Finds or makes the entry of this key and marks it. False: out of memory. */
MUST_CHECK bool kube_entries_mark(struct kube_entries *k, struct str key, uint32_t ns);
void kube_entries_mark_all(struct kube_entries *e);
/* Marks all that looked up this object. */
void kube_entries_mark_those_of(struct kube_entries *k, uint64_t dep);
/* The next one that is marked, in the order of marking, no longer marked; NULL: there is none. */
struct kube_entry *kube_entries_take(struct kube_entries *k);

/* Its new group, and what was looked up for it. An error leaves the entry as it was. */
MUST_CHECK enum err_code kube_entries_give(struct kube_entries *k, struct kube_entry *e,
	struct groups *set, const uint64_t *deps, size_t n, struct err *err);
void kube_entries_remove(struct kube_entries *k, struct kube_entry *e); /* it is not marked */

/* All groups, by key. */
MUST_CHECK enum err_code kube_entries_join(
	struct kube_entries *k, struct groups **out, struct err *err);

#endif
