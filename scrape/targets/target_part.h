/*
 * Parts: the targets of one set of groups that discovery delivers as one, such as those of a pod or
 * of a document of a file. As long as discovery delivers the same groups their part stays, so that
 * a change of one pod costs nothing for the others.
 *
 * Units:     nanoseconds.
 * Errors:    ERR_NOMEM, ERR_LIMIT. A target with an error is left out, and `error` of the part says
 *            why.
 * Ownership: a part is counted; it has its own arena, and holds its groups, the configuration, and
 *            what it shares with other parts. Whoever holds a target holds its part.
 * Threads:   immutable once its set is delivered; the count is atomic.
 * Source:    Prometheus's PopulateLabels and Target.URL.
 */
#ifndef SCRAPE_TARGETS_TARGET_PART_H
#define SCRAPE_TARGETS_TARGET_PART_H

#include "scrape/config/config.h"
#include "scrape/targets/shard.h"

struct target_part;

struct target {
	struct labels discovered; /* before relabelling, with the profile's labels */
	struct labels labels; /* as stored, with __name__ */
	struct str name; /* __name__ */
	struct str url;
	struct str shown_url; /* without secrets (base/hidden.h) */
	const char *unix_path; /* of the socket to connect to, whatever the URL's host; NULL: none */
	struct str exclusive; /* "address path" if the endpoint serves one request at a time, or "" */
	int64_t interval_ns, timeout_ns, seconds;
	const struct profile_config *profile;
	uint64_t labels_hash;
	uint64_t hash; /* of labels, url and socket: spreads scrapes over the interval */
	uint64_t shard_key; /* shard.h */
	uint64_t home; /* hash of the address or socket: all its targets are on one loop */
	struct target_part *part; /* that it is of */
};

struct target_dropped {
	struct labels discovered; /* that all profiles share */
	struct str reason; /* why this server does not scrape it; "": rules dropped it */
};

/* Texts that most targets of a job have, such as intervals and paths. */
struct target_shared;

struct target_part {
	atomic_uint refs;
	struct arena arena;
	struct config *config; /* held, as are the groups: labels point into both */
	struct groups *groups; /* NULL: a copy's, which has its own strings */
	struct target_shared *shared; /* held, or NULL */
	const struct scrape_config *job;
	struct target *v; /* not of the arena */
	size_t n;
	struct target_dropped *dropped;
	size_t dropped_n;
	struct str error; /* why a target is not scraped, or "" */
	struct str refused; /* why the whole job is not, or "": over its target_limit */
};

/* What became of a set of groups. */
struct target_piece {
	struct target_part *part; /* held; NULL: nothing is kept of it */
	uint32_t targets; /* those with at least one profile that is kept */
	uint32_t dropped; /* all of them, kept or not */
	uint32_t elsewhere; /* of these, other shards' */
	uint32_t waiting; /* of these, those that will be this server's (shard.h) */
	uint32_t errors;
};

struct target_part_options {
	struct config *config;
	const struct scrape_config *job;
	struct shard shard; /* whose targets are wanted */
	struct target_shared *shared;
	size_t dropped_max; /* labels of dropped targets that may be kept */
	size_t elsewhere_max; /* of these, of other shards' */
};

MUST_CHECK enum err_code target_part_make(const struct target_part_options *o,
	struct groups *groups, struct target_piece *out, struct err *err);
/* A part of a copy of this target alone. Its labels are copies, so it holds no groups. */
MUST_CHECK enum err_code target_part_of(
	const struct target *t, struct target_part **out, struct err *err);
struct str target_unix_path(const struct target *t); /* "": none */
/* Its part's. */
const struct target *target_ref(const struct target *t);
void target_unref(const struct target *t); /* NULL is fine */
struct target_part *target_part_ref(struct target_part *p);
void target_part_unref(struct target_part *p); /* NULL is fine */

struct target_shared *target_shared_new(void); /* NULL: out of memory */
struct target_shared *target_shared_ref(struct target_shared *s);
void target_shared_unref(struct target_shared *s); /* NULL is fine */
/* Whether so much was shared over time that new parts had better begin anew. */
bool target_shared_is_full(const struct target_shared *s);

#endif
