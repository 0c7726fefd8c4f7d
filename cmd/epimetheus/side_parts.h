/*
 * Side parts: what a server has beside profiles, in folders of its data directory: symbols of
 * native code, files that people keep, rules that users saved. The database's lock of the directory
 * covers them. With a bucket its members share symbols and files.
 *
 * Errors:    of the parts, of which ERR_NOT_FOUND becomes ERR_IO.
 * Ownership: side_parts_open fills a zeroed struct of the caller's; side_parts_close empties it,
 *            also after an error.
 * Threads:   open, stop and close by one.
 */
#ifndef CMD_EPIMETHEUS_SIDE_PARTS_H
#define CMD_EPIMETHEUS_SIDE_PARTS_H

#include "cmd/epimetheus/options.h"

struct bucket;
struct debuginfo;
struct extractor;
struct index_cache;
struct kept;
struct saved_rules;
struct shared_symbols;
struct storage;

struct side_parts {
	struct debuginfo *debuginfo;
	struct index_cache *indexes;
	struct shared_symbols *shared; /* NULL: there is no bucket */
	struct bucket *bucket; /* the storage's, for these parts and those that are closed before */
	struct kept *files; /* NULL: a caretaker has none */
	struct saved_rules *saved; /* NULL: only servers that scrape have some */
};

MUST_CHECK enum err_code side_parts_open(const struct options *o, struct extractor *extractor,
	struct storage *storage, struct side_parts *p, struct err *err);
/* Nobody waits for symbols or the bucket any more. */
void side_parts_stop(struct side_parts *p);
void side_parts_close(struct side_parts *p); /* their users are closed */

#endif
