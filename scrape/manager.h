/*
 * Scrape manager: from a configuration to profiles in a sink.
 *
 * Each pair of a target and an enabled profile is scraped once per interval, at an offset of its
 * own; the first time at once, unless very many are new. A worker inflates, decodes and appends;
 * health and last scrape change once the sink says that the profile is durable. A turn that comes
 * while a scrape is under way is skipped. An address has one CPU profile under way at most.
 *
 * Units:     nanoseconds.
 * Errors:    a scrape's error is in the target's last_error, in metrics, and in the log at debug.
 * Ownership: the manager takes a reference to the configuration. A snapshot lives in the caller's
 *            arena and in target sets, which it holds until it is released, so that most of fifty
 *            thousand targets is not copied.
 * Threads:   starts `loops` loops, `workers` workers and one thread of discovery. open, apply and
 *            close are called from one thread; profile_now and snapshot from any but the manager's.
 */
#ifndef SCRAPE_MANAGER_H
#define SCRAPE_MANAGER_H

#include "proto/sink.h"
#include "scrape/config/config.h"
#include "scrape/sharing.h"
#include "scrape/targets/shard.h"

struct scrape_manager;
struct target_set;

struct scrape_manager_options {
	struct sink *sink;
	unsigned loops; /* 0: one per core; at most LANES_MAX */
	unsigned workers; /* 0: one per core */
	const char *user_agent; /* NULL: "Epimetheus/VERSION" */
	size_t connections_max; /* 0: 65536; at most 7/8 of RLIMIT_NOFILE */
	const char *listen_address; /* the server's own "host:port", for globalUrl; NULL or "": none */
	const char *external_url; /* likewise */
	struct shard shard; /* whose targets are scraped, until scrape_manager_set_shard */
	int64_t symbols_timeout_ns; /* of all questions for names of a scrape; 0: 10 s */
};

MUST_CHECK enum err_code scrape_manager_open(
	const struct scrape_manager_options *o, struct scrape_manager **out, struct err *err);

/*
 * Scrapes by this configuration from now on. An error leaves the old one in place. A target with
 * the same labels and URL keeps its schedule, connection, health and delta base; other settings of
 * its job take effect with its next request or answer.
 */
MUST_CHECK enum err_code scrape_manager_apply(
	struct scrape_manager *m, struct config *c, struct err *err);

/*
 * Other targets are this server's from now on. When it returns, nothing is stored any more of those
 * that are not; scrapers of targets that stay go on as they are. By one thread at a time, and not
 * while scrape_manager_close runs.
 */
void scrape_manager_set_shard(struct scrape_manager *m, const struct shard *s);
struct shard scrape_manager_shard(struct scrape_manager *m); /* in force; shard_unref */
size_t scrape_manager_waiting(struct scrape_manager *m); /* targets that another one may scrape */

/* Ends scrapes under way, waits for the sink, stops the threads. NULL is fine. */
void scrape_manager_close(struct scrape_manager *m);

/*
 * TARGET_ABSENT: an optional profile that the process does not serve, or has not answered yet. It
 * is no target to anybody: not in a snapshot, and without values of `up`.
 */
enum target_health { TARGET_UNKNOWN, TARGET_UP, TARGET_DOWN, TARGET_ABSENT };
const char *target_health_name(enum target_health h); /* "unknown", "up", "down", "absent" */

struct target_info {
	struct labels discovered; /* before relabelling */
	struct labels labels; /* as stored, without __name__ */
	struct str profile; /* __name__ */
	struct str pool; /* job name as configured */
	struct str shard; /* of a list of several; else empty */
	struct str scrape_url, global_url;
	struct str unix_path; /* of the socket that it is scraped through; "": none */
	struct str last_error; /* "" when the last scrape went well */
	struct str warning; /* what is stored may not be what is meant; "" none */
	int64_t last_scrape_ns; /* start of the last finished scrape, time of day; 0: none yet */
	int64_t last_duration_ns;
	int64_t next_profile_ns; /* when the next profile is expected, time of day; 0: not known yet */
	int64_t interval_ns, timeout_ns;
	enum target_health health;
	enum sharing_mode sharing; /* of its CPU profiler with other servers */
	uint64_t scrapes, failures, skipped; /* since the loop began */
	uint64_t last_samples, last_bytes; /* of the last scrape that went well */
};

struct dropped_target { /* relabelling dropped all of its profiles, or another shard scrapes it */
	struct labels discovered; /* common to all profiles */
	struct str pool;
	struct str reason; /* "shard 1 scrapes it (shards 0 to 2)"; "": relabelling */
};

struct pool_info {
	struct str name;
	size_t active, dropped; /* all of them, not only keep_dropped_targets */
	size_t elsewhere; /* of the dropped ones, other shards' */
	struct str error; /* why targets of the pool are not scraped, or "" */
	size_t waiting; /* of those elsewhere, those that another shard may still scrape */
};

struct scrape_snapshot {
	struct pool_info *pools; /* sorted by name */
	size_t pools_n;
	struct target_info *active; /* by pool, then by labels and profile */
	size_t active_n;
	struct dropped_target *dropped;
	size_t dropped_n;
	struct target_set **sets; /* held */
	size_t sets_n;
};

/* A profile that somebody wants now. url, matchers or both name the target. */
struct profile_now {
	struct str pool; /* "": any */
	struct str url; /* scrapeUrl; "": any */
	struct str unix_path; /* of its socket; "": any */
	const struct matcher *matchers; /* on labels with __name__ */
	size_t matchers_n;
	int64_t seconds; /* 0: the target's; else 1 to PROFILE_NOW_SECONDS_MAX */
	bool wants_profile;
};
#define PROFILE_NOW_SECONDS_MAX 600

struct profile_now_result {
	struct labels labels; /* as stored, with __name__ */
	struct str url;
	int64_t ts_ns; /* of the stored profile */
	uint64_t samples, bytes;
	struct str profile; /* gzipped pprof, if wants_profile */
};

/*
 * Profiles the named target out of turn: waits for its endpoint, scrapes it, stores the profile,
 * and returns when it is durable. All strings of *out are in the arena. Ends early once *canceled
 * is set; the caller sets it before it closes the manager. Errors: ERR_NOT_FOUND, ERR_INVALID (no
 * target is named, or several match), ERR_CANCELED, and those of a scrape.
 */
MUST_CHECK enum err_code scrape_manager_profile_now(struct scrape_manager *m,
	const struct profile_now *o, const atomic_bool *canceled, struct arena *a,
	struct profile_now_result *out, struct err *err);

/* pool: only this one; NULL: all. Release the snapshot before its arena. */
MUST_CHECK enum err_code scrape_manager_snapshot(struct scrape_manager *m, const char *pool,
	struct arena *a, struct scrape_snapshot *out, struct err *err);
void scrape_snapshot_release(struct scrape_snapshot *s);

#endif
