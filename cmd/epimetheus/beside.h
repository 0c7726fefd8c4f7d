/*
 * Beside: what a data directory has beside profiles: symbols of native code, files that people
 * keep. The database's lock of the directory covers both.
 *
 * Errors:    ERR_IO and others of the two; never ERR_NOT_FOUND, which would mean the configuration.
 * Ownership: *out is the caller's.
 */
#ifndef CMD_EPIMETHEUS_BESIDE_H
#define CMD_EPIMETHEUS_BESIDE_H

#include "cmd/epimetheus/options.h"

struct debuginfo;
struct extractor;
struct index_cache;
struct kept;

/* extractor: the caller's, outlives *out; NULL: there is none. */
MUST_CHECK enum err_code beside_open_symbols(const struct options *o, struct extractor *extractor,
	struct debuginfo **out, struct index_cache **indexes, struct err *err);
/* *out NULL: a node without data of its own keeps nothing. */
MUST_CHECK enum err_code beside_open_files(
	const struct options *o, struct kept **out, struct err *err);

#endif
