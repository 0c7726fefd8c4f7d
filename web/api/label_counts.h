/*
 * Label counts: of very many series, how many carry each label and how many values it has; or, of
 * one label, how many series have each value.
 *
 * A series counts once, however often it comes. Of a series only a hash is kept (64 bits), and of a
 * value only where its label is the one asked for; so the memory is that of numbers.
 *
 * Errors:    ERR_LIMIT where that needs more than bytes_max; ERR_NOMEM.
 * Ownership: names and values are copied; all is gone with label_counts_release.
 * Threads:   one at a time.
 */
#ifndef WEB_API_LABEL_COUNTS_H
#define WEB_API_LABEL_COUNTS_H

#include "base/arena.h"
#include "base/labels.h"
#include "base/map.h"

/* A set of hashes; 0 is none of them. */
struct hash_set {
	uint64_t *v;
	size_t n, slots;
};

struct label_count {
	struct str text; /* a label's name, or a value */
	uint64_t values, series; /* values: 0 where text is one */
};

struct label_counts {
	struct str label; /* empty: names are counted, else the values of this one */
	struct label_count *v; /* after label_counts_end: most series first, then by text */
	size_t n, cap;
	struct map map; /* by text */
	struct hash_set series, values;
	struct arena texts;
	size_t bytes_max;
};

void label_counts_init(struct label_counts *c, struct str label, size_t bytes_max);
void label_counts_release(struct label_counts *c);
bool label_counts_has(const struct label_counts *c, struct labels series);
MUST_CHECK enum err_code label_counts_add(
	struct label_counts *c, struct labels series, struct err *err);
/* Nothing is added afterwards. */
void label_counts_end(struct label_counts *c);

#endif
