/*
 * Inspect: checks that all objects are there that manifests name, and makes a manifest of objects.
 *
 * Units:     bytes, nanoseconds.
 * Errors:    of the bucket and of files. What is wrong with a shard is a finding, not an error.
 * Ownership: the caller's; lines live during the call.
 * Threads:   one at a time for an inspect.
 */
#ifndef TSDB_CLUSTER_INSPECT_INSPECT_H
#define TSDB_CLUSTER_INSPECT_INSPECT_H

#include "tsdb/cluster/keys.h"

struct inspect {
	struct bucket *bucket;
	const char
		*dir; /* verify copies each block and segment there, and reads it; NULL: it does not */
	void (*finding)(void *ctx, const char *line);
	void (*note)(void *ctx, const char *line); /* objects without a name, what is left out */
	bool (*stop)(void *ctx); /* often called; NULL: never */
	void *ctx;
	/* out, added up */
	uint64_t shards, objects, bytes, blocks, findings, orphans;
};

/*
 * Reads each object that the shard's manifest names, and compares size and hash. A finding is
 * reported if the manifest still names the object at the end. Objects that it does not name are
 * notes: someone writes or removes them now, or a crash left them.
 */
MUST_CHECK enum err_code inspect_verify(struct inspect *inspect, struct str shard, struct err *err);

/*
 * Makes a manifest out of blocks' meta.json and segments: of the blocks those that no other one has
 * replaced, of the windows those without a block, as far as their batches have no gap. Notes name
 * what is not taken. In the arena.
 */
MUST_CHECK enum err_code inspect_rebuild(struct inspect *inspect, struct str shard, struct arena *a,
	struct manifest *out, struct err *err);

/*
 * Writes such a manifest where there is none, or one that cannot be read (ERR_INVALID: it can), and
 * says `stopped` and not `complete`: whichever directory takes it over is made of it, and notes a
 * loss from the newest time on that is there. First it waits for wait_ns (0: LEASE_MIN_NS; -1: not
 * at all): a shard that runs writes its manifest in that time (ERR_EXISTS).
 */
MUST_CHECK enum err_code inspect_repair(
	struct inspect *inspect, struct str shard, int64_t wait_ns, struct err *err);

/* ---- between its files ---- */

void inspect_note(struct inspect *inspect, const char *fmt, ...) PRINTF_LIKE(2, 3);
MUST_CHECK enum err_code inspect_check_stop(struct inspect *inspect, struct err *err);
/*
 * Reads an object of so many bytes; into a file (NULL: none). ERR_CORRUPT: its hash is another one.
 */
MUST_CHECK enum err_code inspect_fetch(struct inspect *inspect, struct str key,
	const struct manifest_file *want, const char *path, struct err *err);

#endif
