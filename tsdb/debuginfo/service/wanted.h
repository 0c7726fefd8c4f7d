/*
 * Wanted: a bounded list of binaries that somebody should fetch. Each is given, and given again
 * when it is still wanted after some time. Those that were never given come first.
 *
 * Units:   nanoseconds of a monotonic clock, which the caller reads.
 * Threads: one at a time.
 */
#ifndef TSDB_DEBUGINFO_SERVICE_WANTED_H
#define TSDB_DEBUGINFO_SERVICE_WANTED_H

#include "tsdb/debuginfo/service/debuginfo.h"

#define WANTED_BUCKETS 1024

struct want;
struct want_list {
	struct want *first, *last; /* oldest first */
};

/* All zero but the seed: empty. */
struct wanted {
	struct want *buckets[WANTED_BUCKETS];
	struct want_list fresh, given;
	size_t n;
	uint64_t seed;
};

void wanted_init(struct wanted *w);
void wanted_release(struct wanted *w);

/* NULL: not in the list. Valid until the next change. */
const struct debuginfo_want *wanted_find(const struct wanted *w, const struct debuginfo_id *id);
/* It is not in the list. A full list drops its oldest. Without memory nothing is added. */
void wanted_add(struct wanted *w, const struct debuginfo_id *id, struct str path, int64_t now_ns);
void wanted_remove(
	struct wanted *w, const struct debuginfo_id *id); /* one that is not in is fine */
/* NULL: none is due before *due_ns; INT64_MAX: none at all. */
const struct debuginfo_want *wanted_next(const struct wanted *w, int64_t now_ns, int64_t *due_ns);
/* It is in the list. */
void wanted_give(struct wanted *w, const struct debuginfo_id *id, int64_t now_ns);

#endif
