/* A shard's world with the directory of another server; a test program has one. */
#ifndef TESTS_TSDB_CLUSTER_TWO_WORLD_H
#define TESTS_TSDB_CLUSTER_TWO_WORLD_H

#include "tests/tsdb/cluster/shard_world.h"

static struct fixture f; /* the other server's directory */
static struct shard_options own;

static inline bool open_two(void)
{
	if (!open_world())
		return false;
	own = o;
	f = (struct fixture){ 0 };
	if (!fixture_open(&f))
		return false;
	db_close(f.db);
	f.db = NULL;
	return fs_remove_tree(&fs_posix, f.dir, &err) == ERR_OK;
}

static inline void close_two(void)
{
	fixture_close(&f);
	close_world();
}

/* The server whose directory is started from now on. */
static inline void use(bool other)
{
	o = own;
	if (other)
		o.db.dir = f.dir;
}

#endif
