#include "tests/check.h"
#include "tests/tsdb/fixture.h"
#include "tests/tsdb/read/numbers.h"

static enum err_code append_number(
	struct fixture *f, const char *name, const char *instance, int64_t ts_s)
{
	struct db_number n = { labels_of(&f->arena, name, "x", instance), ts_s * SEC, 1 };

	return numbers_wait(f->db, &n, 1, &f->err);
}

static enum err_code append_profile(
	struct fixture *f, const char *name, const char *instance, int64_t ts_s)
{
	const struct pprof *p = profile_of(&f->arena, (const char *const[]){ "samples/count", NULL },
		(const char *const[]){ "main 2", NULL });

	return append_wait(f->db, labels_of(&f->arena, name, "x", instance), ts_s * SEC, 10 * SEC, p,
		NULL, true, NULL, &f->err);
}

/* Windows of an hour; in the first a profile of cpu and a number of up. */
static bool open_with_both(struct fixture *f)
{
	if (!fixture_open(f))
		return false;
	f->o.window_ns = 3600 * SEC;
	f->o.raw_retention_ns = 0;
	if (!fixture_reopen(f))
		return false;
	CHECK_OK(append_profile(f, "cpu", "a", 1000), &f->err);
	CHECK_OK(append_number(f, "up", "a", 1000), &f->err);
	return check_failures == 0;
}

TEST(a_name_is_of_one_kind)
{
	struct fixture f;

	REQUIRE(open_with_both(&f));
	/* in the head, then in a block alone */
	for (int round = 0; round < 2; round++) {
		CHECK_ERR(append_number(&f, "cpu", "a", 400000), &f.err, ERR_INVALID,
			"\"cpu\" is a name of profiles, and of nothing else");
		CHECK_ERR(append_number(&f, "cpu", "b", 400000), &f.err, ERR_INVALID,
			"\"cpu\" is a name of profiles, and of nothing else");
		CHECK_ERR(append_profile(&f, "up", "a", 400000), &f.err, ERR_INVALID,
			"\"up\" is a name of numbers, and of nothing else");
		CHECK_ERR(append_profile(&f, "up", "c", 400000), &f.err, ERR_INVALID,
			"\"up\" is a name of numbers, and of nothing else");
		if (round)
			break;
		REQUIRE_OK(append_number(&f, "other", "a", 390000), &f.err);
		REQUIRE_OK(db_compact(f.db, &f.err), &f.err);
		REQUIRE(fixture_reopen(&f));
	}
	fixture_close(&f);
}
