/*
 * Options and state of a database.
 */
#ifndef TSDB_CATALOG_OPTIONS_H
#define TSDB_CATALOG_OPTIONS_H

#include "base/fs.h"

struct range_source;
struct store_ops;
struct ulid;

enum db_change {
	DB_BLOCK_ADDED, /* its directory is whole and synced; joined blocks too */
	DB_BLOCK_DROPPED, /* by retention, or because another block replaced it */
	DB_BLOCK_DELETED, /* its deleted ranges changed, and their file is synced */
	DB_BLOCK_RAW_DROPPED, /* its meta.json says so; the block stays */
	DB_WINDOW_DROPPED, /* a block has its rows, or retention dropped it */
	DB_WINDOW_DELETED,
};

/* A listener of changes. The database calls it once a change is durable, while queriers begin to
 * see the change. */
struct db_published {
	/* block NULL: the window that begins at window_ns. Locks of the database are held: it must
	 * neither wait nor call the database. */
	void (*changed)(void *ctx, enum db_change what, const struct ulid *block, int64_t window_ns);
	void *ctx;
};

struct db_options {
	const char *dir; /* created; locked by the server through dir/lock (db_open takes it) */
	struct fs *fs; /* NULL: fs_posix */
	int64_t window_ns; /* of one head; default 2h */
	int64_t block_max_ns; /* longest block; 0: a tenth of the retention, at most 31d */
	int64_t retention_ns; /* default 15d; 0: no limit */
	int64_t raw_retention_ns; /* raw rows of blocks older than this go, rollups stay; 0: never
							   */
	uint64_t retention_bytes; /* 0: no limit */
	uint64_t free_bytes_reserve; /* ingest stops below; default 256 MiB */
	int64_t too_old_ns; /* rows older than this are refused; default 1h before the window's start */
	uint64_t series_max; /* default 1 M */
	uint64_t job_series_max; /* new ones of one job; default half of that; 0: no limit */
	uint32_t nodes_max; /* per partition; default 4 M */
	uint32_t strings_max; /* per partition; default 1 M */
	uint32_t label_sets_max; /* per partition; default 65536: further ones fold into
					__overflow__ */
	uint64_t partition_bytes_max; /* symbol memory of one; default 512 MiB */
	uint64_t symbols_bytes; /* budget of all symbols in memory; default 128 MiB. Above it
				   unused symbols are freed, then wasteful partitions begin an epoch */
	uint64_t cache_bytes; /* pages of all stores and tables; default 16 MiB */
	bool segments; /* committed batches are kept for a publisher, too (tsdb/head/ship.h) */
	uint64_t segments_bytes; /* that wait at most; default 1 GiB */
	bool follower; /* windows come from segments (tsdb/head/follow.h); dir is a cache, without a
					  lock, emptied when it is opened; implies read_only */
	struct range_source *remote; /* where blocks in a bucket are read; NULL: there are none */
	const struct db_published *published; /* NULL: no listener. It outlives the database */
	bool no_compaction; /* closed windows stay in the head: for tests */
	bool read_only; /* no lock, no writes: for epitool */
	/* db_open calls it for each damaged file that it does not need, because a copy or other files
	 * have the same data. NULL: db_open calls nothing. */
	void (*passed_over)(void *ctx, const struct err *why);
	void *passed_over_ctx;
	const struct store_ops
		*store; /* NULL: LevelDB; tests have one that fails (tsdb/store/store.h) */
};

void db_options_default(struct db_options *o);

enum db_state {
	DB_READY,
	DB_FULL,
	DB_FAILED
}; /* FULL: free space below the reserve; FAILED: reopening after an error */

#endif
