/*
 * Assignment: which shards of a bucket share the targets and the pushes.
 *
 * One object, `assignment`, beside `shards/`. It is written only by conditional puts, and counts up
 * by 1 with each change. It has the last versions: so all know what a shard that is behind still
 * does, and all agree on the owner of a profile of an earlier time.
 *
 * The owner of a key in a version is the shard with the highest mix of the key and the hash of its
 * name (rendezvous hashing). A shard that comes takes its share evenly from all others, and one
 * that goes gives its own to all; nothing else moves. It is the same on every machine and in every
 * version of the program.
 *
 * Version 0 means that servers run with a fixed total and follow no version. If they know `total`,
 * they share the keys by hash_owner (base/map.h). Each server has the ordinal at the end of its
 * name.
 *
 * The text is one JSON object on one line; its last member is the checksum of what is before it, as
 * in a manifest. Members that are not known are passed over.
 *
 * Units:     times in nanoseconds since 1970.
 * Errors:    ERR_CORRUPT (what is wrong), ERR_LIMIT (which), ERR_UNSUPPORTED (another version's),
 *            ERR_NOMEM.
 * Ownership: what is read is in the arena.
 * Threads:   values.
 * Source:    Thaler and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996.
 */
#ifndef TSDB_CLUSTER_ASSIGNMENT_ASSIGNMENT_H
#define TSDB_CLUSTER_ASSIGNMENT_ASSIGNMENT_H

#include "tsdb/cluster/manifest.h"

#define ASSIGNMENT_KEY "assignment"
#define ASSIGNMENT_VERSION 1
#define ASSIGNMENT_BYTES_MAX (8u << 20)
#define ASSIGNMENT_VERSIONS_MAX 16u /* of the object */
#define ASSIGNMENT_KNOWN_MAX 64u /* that a server remembers beside the object's */
#define ASSIGNMENT_SHARDS_MAX 4096u /* of a version, and of those that are drained */
#define ASSIGNMENT_SECRET_LEN MANIFEST_TOKEN_LEN /* hexadecimal digits */

struct assignment_version {
	uint64_t number;
	int64_t since_ns; /* profiles of this time and later are kept by its owners */
	struct str *shards; /* ascending; at least one */
	uint64_t *hashes; /* of these names */
	uint32_t n;
};

struct assignment {
	uint64_t number; /* of the newest version; 0: nothing is known */
	struct assignment_version *versions; /* ascending by number, without a gap */
	uint32_t versions_n;
	struct str *drained; /* ascending; they do not join by themselves */
	uint32_t drained_n;
	uint64_t total; /* of servers that follow no number; 0: there were none */
	char secret[ASSIGNMENT_SECRET_LEN + 1]; /* whoever knows it can read the bucket */
	/* Only in the file of a shard: all shards that lived followed this number. 0: not known. */
	uint64_t settled;
};

MUST_CHECK enum err_code assignment_parse(
	struct str text, struct arena *a, struct assignment *out, struct err *err);
/* A failed buf: no memory. */
void assignment_print(struct buf *out, const struct assignment *list);
/* The object with its ETag (BUCKET_ETAG_BYTES_MAX bytes or NULL); errors of the bucket too. */
MUST_CHECK enum err_code assignment_get(
	struct bucket *b, struct arena *a, struct assignment *out, char *etag, struct err *err);

/* Sorted names as a version: fills in its hashes. The names are not copied. */
MUST_CHECK enum err_code assignment_version_make(
	struct assignment_version *v, struct str *shards, uint32_t n, struct arena *a, struct err *err);
/* The index of the shard that owns the key. Takes about 2 ns for each shard. */
uint32_t assignment_owner(const struct assignment_version *v, uint64_t key);

/* NULL: none. */
const struct assignment_version *assignment_newest(const struct assignment *list);
const struct assignment_version *assignment_find(const struct assignment *list, uint64_t number);
/* The newest version with since_ns <= ts_ns, or else the oldest one. */
const struct assignment_version *assignment_at(const struct assignment *list, int64_t ts_ns);
bool assignment_version_has(const struct assignment_version *v, struct str name);
bool assignment_is_drained(const struct assignment *list, struct str name);
/* All names of all versions, ascending, each once; in the arena. */
MUST_CHECK enum err_code assignment_names(
	const struct assignment *list, struct arena *a, struct str **out, uint32_t *n, struct err *err);

#endif
