/*
 * Forget: blocks of a data directory whose tables were in the bucket alone, and that the caretaker
 * dropped while the shard was gone (caretaker.h).
 *
 * Errors:    ERR_IO, ERR_NOMEM.
 * Threads:   one, before the database opens the directory; its lock is held.
 */
#ifndef TSDB_CLUSTER_FORGET_H
#define TSDB_CLUSTER_FORGET_H

#include "tsdb/cluster/manifest.h"

/*
 * Removes stubs (tsdb/catalog/remote.h) that the manifest does not name and whose time says that
 * they were dropped: from the inventory first, as retention does, so they are no loss. *n: how
 * many.
 */
MUST_CHECK enum err_code forget_dropped(
	struct fs *fs, const char *dir, const struct manifest *m, size_t *n, struct err *err);

#endif
