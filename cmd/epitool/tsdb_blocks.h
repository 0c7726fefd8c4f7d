/* The blocks of a data directory, one after the other; for commands that look into each of them. */
#ifndef CMD_EPITOOL_TSDB_BLOCKS_H
#define CMD_EPITOOL_TSDB_BLOCKS_H

#include "tsdb/block/block.h"

/* damaged: what is wrong with a block that is open all the same, or NULL. 0: all is well. */
typedef int (*tsdb_block_fn)(void *ctx, struct block *b, const struct err *damaged);
typedef bool (*tsdb_skip_fn)(void *ctx, struct str ulid);
/*
 * Opens each block but those that `skip` accepts (NULL: none). 0, or EXIT_FAILED: fn gave something
 * else for one of them, or one cannot be opened, which is printed.
 */
int tsdb_each_block(const char *dir, tsdb_block_fn fn, tsdb_skip_fn skip, void *ctx);

#endif
