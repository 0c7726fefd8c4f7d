/*
 * Target lines: targets as JSON, for the API, and as text with a line for each, for the list that a
 * shard gives to query nodes.
 *
 * The first line says when the list was written, and has the pools. Lines of targets follow, those
 * that are not up first; then those that relabelling dropped, once for all profiles of an address.
 * Targets of other shards are in no list: their shards have them. A list that is too long leaves
 * out its last targets, and says how many.
 *
 * Units:     nanoseconds since 1970; bytes.
 * Errors:    ERR_CORRUPT, with the line; ERR_LIMIT: more lines than TARGET_LINES_MAX; ERR_NOMEM.
 * Ownership: what is read is in the arena.
 * Threads:   pure functions.
 */
#ifndef SCRAPE_TARGET_LINES_H
#define SCRAPE_TARGET_LINES_H

#include "base/json.h"
#include "scrape/manager.h"

#define TARGET_LINES_BYTES_MAX (16u << 20)
#define TARGET_LINES_MAX 200000u

struct listed_targets {
	int64_t time_ns; /* when it was written */
	uint64_t left_out; /* active targets */
	struct scrape_snapshot s; /* without sets; active and dropped targets as the text has them */
};

/* One object. A target of a list of several shards has a "shard". */
void target_lines_write_target(struct json *j, const struct target_info *t);
void target_lines_write_dropped(struct json *j, const struct dropped_target *d);

/* bytes_max: of the text, about; TARGET_LINES_BYTES_MAX but for tests. */
MUST_CHECK enum err_code target_lines_print(const struct scrape_snapshot *s, int64_t now_ns,
	size_t bytes_max, struct buf *out, struct err *err);
MUST_CHECK enum err_code target_lines_read(
	struct str text, struct arena *a, struct listed_targets *out, struct err *err);

#endif
