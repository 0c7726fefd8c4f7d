/*
 * Naming: addresses in the stacks of a query get the names that are known now. Each address is
 * looked up once per query, those of a binary in ascending order.
 *
 * A location with lines keeps them. Others have an address in a mapping: the file's offset there
 * leads to the binary's own address. Without a build id a binary is found by its file's name, if
 * only one has it and the mapping is as large as what the binary loads; naming_binary says so.
 *
 * Errors:    the arena's ERR_LIMIT; ERR_NOMEM. Names that cannot be read are a warning.
 * Ownership: partitions and texts live until naming_close, in the arena and in indexes that are
 *            held until then.
 * Threads:   one. Any number of namings share the cache.
 */
#ifndef TSDB_DEBUGINFO_NAMES_NAMING_H
#define TSDB_DEBUGINFO_NAMES_NAMING_H

#include "base/arena.h"
#include "tsdb/debuginfo/names/index_cache.h"
#include "tsdb/symbols/symbols.h"

struct naming;

/* c NULL: nothing gets a name; what has none is still told. */
MUST_CHECK enum err_code naming_open(
	struct index_cache *c, struct arena *a, struct naming **out, struct err *err);
/* Another one of the same cache, for another thread. */
MUST_CHECK enum err_code naming_again(
	const struct naming *of, struct arena *a, struct naming **out, struct err *err);
void naming_close(struct naming *n); /* NULL is fine; before the arena is released */

struct naming_stacks {
	const uint32_t *first; /* one every `stride` bytes, in any order */
	size_t stride, n;
};

/* The binary, + 1, of a frame without a name; 0: none. */
struct naming_bare {
	uint32_t leaf; /* the innermost frame */
	uint32_t any; /* the innermost one that has no name */
};

/*
 * The partition with names for the addresses of these stacks: p itself if it needs none. One
 * partition of the database has one answer in a naming.
 *
 * *bare: per stack, as far as the largest one, which of its frames have no name; NULL: all of
 * all stacks have one. In scratch.
 */
MUST_CHECK enum err_code naming_partition(struct naming *n, struct arena *scratch,
	struct partition *p, const struct naming_stacks *stacks, struct partition **out,
	const struct naming_bare **bare, struct err *err);
/* Addresses of a mapping whose file has this name, a string of p, may have names. */
MUST_CHECK enum err_code naming_knows(
	struct naming *n, const struct partition *p, uint32_t filename, bool *yes, struct err *err);

struct naming_binary {
	struct str path, build_id; /* as profiles say */
	bool known; /* there is an index */
	bool by_path; /* found by the name of its file */
};
/* Those that stacks had addresses of, in the order in which they were met. */
size_t naming_binaries_n(const struct naming *n);
const struct naming_binary *naming_binary(const struct naming *n, size_t i);
/* Damage that was met. */
const struct str *naming_warnings(struct naming *naming, size_t *n);

#endif
