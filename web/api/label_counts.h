/*
 * Label counts: for very many series, how many have each label and how many values it has; or, for
 * one label, how many series have each value.
 *
 * A series counts once, however often it is added, and series may be added by their number. Of a
 * series only a 64-bit hash is kept. The text of a value is kept only if its label is the one asked
 * for. So the memory is mostly numbers.
 *
 * Errors:    ERR_LIMIT if that needs more than bytes_max; ERR_NOMEM.
 * Ownership: names and values are copied; label_counts_release frees all.
 * Threads:   one at a time.
 */
#ifndef WEB_API_LABEL_COUNTS_H
#define WEB_API_LABEL_COUNTS_H

#include "base/arena.h"
#include "base/labels.h"
#include "base/map.h"

/* A set of hashes; 0 is a free slot. */
struct hash_set {
	uint64_t *v;
	size_t n, slots;
};

struct label_count {
	struct str text; /* a label's name, or a value */
	uint64_t values, series; /* values: 0 if text is a value */
};

/* True if a value of a label was counted by label_counts_add_many already. */
typedef bool (*label_known_fn)(void *ctx, struct label label);

struct label_counts {
	struct str label; /* empty: counts names, else the values of this label */
	struct label_count *v; /* after label_counts_end: most series first, then by text */
	size_t n, cap;
	struct map map; /* by text */
	struct hash_set series, values;
	struct arena texts;
	size_t bytes_max;
	label_known_fn known; /* NULL: none was */
	void *known_ctx;
	size_t limit; /* of label_counts_add_last; 0: none */
	size_t total; /* after label_counts_end: of all, also those over the limit */
	struct label_count worst; /* of those that are kept, if there were more; text empty: none yet */
};

void label_counts_init(struct label_counts *c, struct str label, size_t bytes_max);
void label_counts_release(struct label_counts *c);
bool label_counts_has(const struct label_counts *c, struct labels series);
MUST_CHECK enum err_code label_counts_add(
	struct label_counts *c, struct labels series, struct err *err);
/* Adds counts of series that are never added one by one. Values of a name: other than those added
 * before. */
MUST_CHECK enum err_code label_counts_add_many(
	struct label_counts *c, struct str text, uint64_t series, uint64_t values, struct err *err);
/* The same if each text comes once, and nothing is added in another way. Of them the first
 * c->limit are kept, in the order of label_counts_end, and memory is bounded by that. */
MUST_CHECK enum err_code label_counts_add_last(
	struct label_counts *c, struct str text, uint64_t series, uint64_t values, struct err *err);
/* Add nothing afterwards. */
void label_counts_end(struct label_counts *c);

#endif
