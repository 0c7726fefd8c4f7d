/*
 * Fleet targets: the targets of this server, or on a query node those of all shards, each as its
 * shard wrote its list last, two minutes ago at most.
 *
 * A shard whose list is missing, damaged or too long hides no other: warnings name it.
 *
 * Units:     nanoseconds since 1970.
 * Errors:    ERR_NOMEM, ERR_LIMIT: memory; those of a bucket that cannot be listed.
 * Ownership: what is shown lives until fleet_targets_release, and the arena given; that is released
 *            later.
 * Threads:   any number at once.
 */
#ifndef WEB_API_FLEET_TARGETS_H
#define WEB_API_FLEET_TARGETS_H

#include "scrape/manager.h"
#include "web/router/router.h"

/* Of all lists of one answer. Those behind are left out, with a warning. */
#define FLEET_TARGETS_BYTES_MAX (64u << 20)
#define FLEET_TARGETS_OLD_NS (INT64_C(180) * 1000000000) /* such a list has a warning */

struct fleet_shard {
	struct str name;
	int64_t time_ns; /* when it wrote its list */
	size_t active; /* targets in it */
	uint64_t left_out; /* targets that had no place in it */
};

struct fleet_targets {
	struct scrape_snapshot s;
	struct fleet_shard *shards; /* of a query node; ascending by name */
	size_t shards_n;
	struct str *warnings, *infos;
	size_t warnings_n, infos_n;
	struct arena arena; /* of what shards wrote */
};

/* pool "": all. */
MUST_CHECK enum err_code fleet_targets_open(
	struct web *w, struct str pool, struct arena *a, struct fleet_targets *out, struct err *err);
void fleet_targets_release(struct fleet_targets *f); /* one that was not opened is fine, if zero */

#endif
