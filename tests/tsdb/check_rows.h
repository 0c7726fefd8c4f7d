/*
 * Rows of a series compared as text, and a database that is waited for.
 */
#ifndef TESTS_TSDB_CHECK_ROWS_H
#define TESTS_TSDB_CHECK_ROWS_H

#include "tests/check.h"
#include "tests/tsdb/fixture.h"
#include "tests/wait.h"

/* The rows in (min, max] as rows_text prints them. */
static inline void check_rows_in(
	struct fixture *f, struct labels l, int64_t min_ns, int64_t max_ns, const char *want)
{
	struct buf got = { 0 };

	CHECK_OK(rows_text(f->db, l, min_ns, max_ns, &got, &f->err) ? ERR_OK : ERR_IO, &f->err);
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
}

static inline void check_rows(struct fixture *f, struct labels l, const char *want)
{
	check_rows_in(f, l, 0, INT64_MAX - 1, want);
}

/* After a failed write: until the store is open again. */
static inline void wait_ready(struct db *db)
{
	CHECK(WAIT_FOR(db_state(db, NULL) == DB_READY));
}

#endif
