/* Estimated reads of a sum against real ones: head windows, blocks, and both. */
#include "tests/check.h"
#include "tests/tsdb/fixture.h"

#define T0 1036800 /* twelve whole days */
#define EVERY 60
#define HOUR 3600

static const struct profile_type type = {
	STR("p"), STR("cpu"), STR("nanoseconds"), STR(""), STR(""), true };

static bool fill(struct fixture *f, int64_t from_s, int64_t to_s)
{
	static const char *const instances[] = { "0", "1", "2" };
	struct arena a;
	enum err_code rc = ERR_OK;

	arena_init(&a, 0);
	for (int64_t ts = from_s + EVERY; ts <= to_s && !rc; ts += EVERY)
		for (int i = 0; i < 3 && !rc; i++) {
			rc = append_wait(f->db, labels_of(&a, "p", "a", instances[i]), ts * SEC, EVERY * SEC,
				profile_random(&a, (uint64_t)(ts % 50 + i)), NULL, false, NULL, &f->err);
			arena_reset(&a);
		}
	arena_release(&a);
	return rc == ERR_OK;
}

struct compared {
	struct sum_estimate said;
	struct sum_stats did;
};

/* For all series, or for the first one. */
static bool compare(struct fixture *f, int64_t min_s, int64_t max_s, bool all, enum sum_pick pick,
	enum sum_wish wish, struct compared *out)
{
	const struct db_series *list[8];
	struct db_querier *q = NULL;
	struct accum *acc = NULL;
	struct db_series *series;
	struct arena a;
	bool ok;
	size_t n = 0;

	*out = (struct compared){ 0 };
	arena_init(&a, 0);
	ok = !db_querier_open(f->db, min_s * SEC, max_s * SEC, NULL, &q, &f->err) &&
		!db_select(q, NULL, 0, &a, &series, &n, &f->err);
	n = n > 8 ? 8 : n;
	for (size_t i = 0; i < n && ok; i++)
		list[i] = &series[i];
	n = all || n == 0 ? n : 1;
	ok = ok && (!n || wish == SUM_TOTALS || !accum_open(list[0]->partition, 0, &acc, &f->err)) &&
		!db_estimate(
			q, list, n, &type, min_s * SEC, max_s * SEC, pick, wish, &out->said, &f->err) &&
		!db_sum(q, list, n, &type, min_s * SEC, max_s * SEC, pick, acc, &a, &out->did, &f->err);
	if (!ok)
		CHECK_FAIL("%s", f->err.msg);
	out->did.headers = NULL;
	accum_close(acc);
	db_querier_close(q);
	arena_release(&a);
	return ok;
}

static void check_near(
	const char *what, uint64_t said, uint64_t did, double times, int64_t min_s, int64_t max_s)
{
	double more = (double)(said > did ? said : did), less = (double)(said > did ? did : said);

	if (more > less * times + 600) /* blocks of few pages tell little of their sums */
		CHECK_FAIL("%s in (%lld, %lld]: said %llu, did %llu", what, (long long)min_s,
			(long long)max_s, (unsigned long long)said, (unsigned long long)did);
}

static void check_windows(struct fixture *f)
{
	static const struct {
		int64_t min_s, max_s;
	} windows[] = { { T0, T0 + 8 * HOUR }, { T0 + 1800, T0 + 5400 }, { T0 + HOUR, T0 + 4 * HOUR },
		{ T0 + 100, T0 + 8 * HOUR - 700 }, { T0 + 7 * HOUR, T0 + 8 * HOUR },
		{ T0 + 600, T0 + 1200 }, { T0 - HOUR, T0 + 9 * HOUR } };
	struct compared c;

	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++)
		for (int all = 0; all < 2; all++) {
			int64_t min = windows[i].min_s, max = windows[i].max_s;

			if (!compare(f, min, max, all, SUM_WINDOW, SUM_CELLS, &c))
				return;
			CHECK(c.said.rows <= c.did.rows * 11 / 10 + 5);
			CHECK(c.did.rows <= c.said.rows * 11 / 10 + 5);
			check_near("samples", c.said.samples, c.did.read, 4, min, max);
			if (!compare(f, min, max, all, SUM_WINDOW, SUM_TOTALS, &c))
				return;
			CHECK(c.said.rows <= c.did.rows * 11 / 10 + 5);
			CHECK(c.did.rows <= c.said.rows * 11 / 10 + 5);
			CHECK_INT(c.said.samples, 0);
			if (!compare(f, min, max, all, SUM_LAST, SUM_CELLS, &c))
				return;
			CHECK_INT(c.said.rows, c.did.rows);
		}
	if (compare(f, T0 + 20 * HOUR, T0 + 21 * HOUR, true, SUM_WINDOW, SUM_CELLS, &c))
		CHECK_INT(c.said.rows, 0);
}

TEST(estimates_are_near)
{
	struct compared c;
	struct fixture f;

	REQUIRE(fixture_open(&f));
	f.o.window_ns = 2 * HOUR * SEC;
	f.o.too_old_ns = HOUR * SEC;
	f.o.retention_ns = 0;
	f.o.no_compaction = true;
	f.o.free_bytes_reserve = 0;
	REQUIRE(fixture_reopen(&f));
	REQUIRE(fill(&f, T0, T0 + 8 * HOUR));
	check_windows(&f);
	REQUIRE_OK(db_compact(f.db, &f.err), &f.err);
	check_windows(&f);
	/* whole hours of a group are read as such */
	if (compare(&f, T0 + HOUR, T0 + 4 * HOUR, true, SUM_WINDOW, SUM_CELLS, &c)) {
		CHECK_INT(c.said.group_sums[0], 3);
		CHECK_INT(c.said.series_sums[0], 0);
		CHECK_INT(c.said.chunks, 0);
	}
	if (compare(&f, T0 + HOUR, T0 + 4 * HOUR, false, SUM_WINDOW, SUM_CELLS, &c))
		CHECK_INT(c.said.series_sums[0], 3);
	fixture_close(&f);
}
