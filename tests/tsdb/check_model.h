/*
 * Checks of a model that the tests of crashes share.
 */
#ifndef TESTS_TSDB_CHECK_MODEL_H
#define TESTS_TSDB_CHECK_MODEL_H

#include "tests/check.h"
#include "tests/tsdb/model.h"

/* Opens the database after a crash and compares all of it; false: the test has failed. */
static inline bool check_recovered(struct model *m, uint64_t round)
{
	struct err err;

	if (model_open(m, &err))
		CHECK_FAIL("round %d: %s", (int)round, err.msg);
	else if (!model_check(m, true))
		CHECK_FAIL("round %d:\n%s", (int)round, m->wrong.ptr);
	else
		return true;
	return false;
}

/* In `rounds` rounds rows were acknowledged and deleted, and blocks were joined. */
static inline bool model_has_worked(const struct model *m, uint64_t rounds)
{
	return m->deleted_n > 0 && m->acked > rounds && m->level >= 2;
}

/* At the end. */
static inline void check_worked(const struct model *m, uint64_t rounds)
{
	printf("  %zu rows acknowledged, %zu refused; %zu deletions\n", m->acked, m->refused,
		m->deleted_n);
	CHECK(m->deleted_n > 0);
	CHECK(m->acked > rounds);
	CHECK(m->level >= 2);
}

#endif
