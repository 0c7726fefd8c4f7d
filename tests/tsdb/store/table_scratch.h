/* A directory of one test, and the path of a table in it. */
#ifndef TESTS_TSDB_STORE_TABLE_SCRATCH_H
#define TESTS_TSDB_STORE_TABLE_SCRATCH_H

#include <stdlib.h>

#include "base/fs.h"
#include "tests/check.h"
#include "tests/scratch.h"

static char dir[] = SCRATCH "epimetheus-table-XXXXXX", path[64];

static inline void scratch(void)
{
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	if (!scratch_dir(dir))
		abort();
	snprintf(path, sizeof(path), "%s/t.ldb", dir);
}

static inline void finish(void)
{
	CHECK_OK(fs_remove_tree(&fs_posix, dir, NULL), &(struct err){ 0 });
}

#endif
