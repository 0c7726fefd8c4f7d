/*
 * Binaries: those that profiles name, with how many of their addresses have no lines, and those of
 * the store of symbols, together.
 *
 * A binary is listed once: a mapping without a build id counts to the index that gives it its names
 * (tsdb/debuginfo/names).
 *
 * What profiles name is read in the symbols that are in memory: a partition's, if it has profiles
 * in the querier's time; so a binary may be named that only older profiles of the same job name.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT from the arena; what the querier says.
 * Ownership: all is in the arena but what binaries_release frees; texts are the querier's and the
 *            infos'.
 * Threads:   one.
 */
#ifndef WEB_DEBUGINFO_BINARIES_H
#define WEB_DEBUGINFO_BINARIES_H

#include "base/map.h"
#include "tsdb/debuginfo/index/symindex.h"
#include "tsdb/debuginfo/store/store.h"
#include "tsdb/read/querier.h"

#define BINARIES_MAX 50000u
#define BINARIES_ADDRESSES_MAX (4u << 20)
#define BINARY_JOBS_MAX 10u

struct web_binary {
	struct debuginfo_id id; /* len 0: profiles name none */
	struct str path; /* "": not known */
	struct str jobs[BINARY_JOBS_MAX];
	uint32_t jobs_n;
	uint64_t addresses;
	const struct debuginfo_info *info; /* of the store; NULL: it knows nothing of it */
	/* Opened for a mapping of this name without a build id; else NULL. */
	struct debuginfo_index *file;
	struct symindex *index;
};

struct binaries {
	struct arena *a;
	struct debuginfo_store *store; /* NULL: none */
	struct web_binary *v;
	size_t n, room;
	struct map by_key;
	uint64_t seed; /* of its hashes */
	struct binary_address *addresses;
	size_t addresses_n;
	bool cut; /* there are more binaries */
	bool uncounted; /* more addresses: numbers are too small */
	const struct partition *walked;
	uint32_t *of_mapping; /* of the partition that is walked: 0 not known yet, else 1 + a binary */
	size_t of_mapping_n;
};

void binaries_init(struct binaries *b, struct debuginfo_store *store, struct arena *a);
void binaries_release(struct binaries *b);
/* The store's, before those of profiles; d lives as long as b. */
MUST_CHECK enum err_code binaries_add_infos(
	struct binaries *b, const struct debuginfo_info *d, size_t n, struct err *err);
MUST_CHECK enum err_code binaries_add_profiles(
	struct binaries *b, struct db_querier *q, struct err *err);
/* Counts addresses; orders by them, most first. Nothing may be added any more. */
void binaries_order(struct binaries *b);

#endif
