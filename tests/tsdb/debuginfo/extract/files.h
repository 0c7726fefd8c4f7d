/*
 * Files that compilers make here, in the folder of tests/oracle.h, and what is extracted of them.
 * Failing is a failure of the test.
 */
#ifndef TESTS_TSDB_DEBUGINFO_EXTRACT_FILES_H
#define TESTS_TSDB_DEBUGINFO_EXTRACT_FILES_H

#include "tests/oracle.h"
#include "tsdb/debuginfo/extract/extract.h"

struct extracted_file {
	struct buf bytes, index;
	struct symindex *x; /* NULL: it was refused */
};

/* In the folder; $O is the oracle's folder, $S that of its samples' sources. */
static inline void files_run(const char *command)
{
	struct buf out = { 0 };

	if (!oracle_dir() ||
		!oracle_run(&out,
			"export O=$PWD/tests/tsdb/debuginfo/oracle; export S=$O/samples; cd '%s' && %s",
			oracle_dir(), command))
		CHECK_FAIL("failed: %s", command);
	buf_release(&out);
}

static inline struct buf files_read(const char *name)
{
	struct buf b = { 0 };

	if (!oracle_dir() || !oracle_read(&b, oracle_dir(), name))
		CHECK_FAIL("no %s", name);
	return b;
}

static inline void files_release(struct extracted_file *e)
{
	symindex_close(e->x);
	buf_release(&e->bytes);
	buf_release(&e->index);
}

#endif
