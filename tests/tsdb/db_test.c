#include "tests/check.h"
#include "tests/proto/profile_compare.h"
#include "tests/proto/testdata.h"
#include "tests/tsdb/check_rows.h"

static const char *const one_type[] = { "samples/count", NULL };
static const char *const two_types[] = { "samples/count", "cpu/nanoseconds", NULL };

TEST(what_is_appended_reads_back)
{
	struct fixture f;
	struct labels l;
	struct db_append_stats stats;
	struct pprof *p;

	REQUIRE(fixture_open(&f));
	l = labels_of(&f.arena, "process_cpu", "api", "a:1");
	p = profile_of(&f.arena, two_types,
		(const char *const[]){ "main;work 2 20000000", "main;work;leaf 1 10000000", "main;idle 0 0",
			"main;work handler=/x 3 30000000", "main;work 1 10000000", NULL });
	REQUIRE_OK(append_wait(f.db, l, 1000 * SEC, 10 * SEC, p, NULL, true, &stats, &f.err), &f.err);
	CHECK_INT(stats.samples, 4);
	CHECK_INT(stats.first, 0);
	check_rows_in(&f, l, 0, 2000 * SEC,
		"@1000\nmain;work 1 10000000\nmain;work 2 20000000\n"
		"main;work handler=/x 3 30000000\nmain;work;leaf 1 10000000\n");
	check_rows_in(&f, l, 1000 * SEC, 2000 * SEC, "");
	check_rows_in(&f, l, 999 * SEC, 1000 * SEC,
		"@1000\nmain;work 1 10000000\nmain;work 2 20000000\n"
		"main;work handler=/x 3 30000000\nmain;work;leaf 1 10000000\n");
	REQUIRE(fixture_reopen(&f));
	check_rows_in(&f, l, 0, 2000 * SEC,
		"@1000\nmain;work 1 10000000\nmain;work 2 20000000\n"
		"main;work handler=/x 3 30000000\nmain;work;leaf 1 10000000\n");
	fixture_close(&f);
}

TEST(real_profiles_read_back_exactly)
{
	struct fixture f;

	REQUIRE(fixture_open(&f));
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < testdata_n; i++) {
			struct labels l = labels_of(&f.arena, "p", "go", testdata[i]);
			struct str body, raw;
			struct pprof *p, *back;
			struct buf why = { 0 }, encoded = { 0 };
			struct db_querier *q;
			struct db_series *series;
			struct db_rows *rows;
			const struct db_row *row;
			struct matcher m;
			size_t n;

			REQUIRE_OK(testdata_body(&f.arena, testdata[i], &body, &f.err), &f.err);
			REQUIRE_OK(testdata_inflated(&f.arena, testdata[i], &raw, &f.err), &f.err);
			REQUIRE((p = profile_read(&f.arena, body, &f.err)));
			if (round == 0)
				REQUIRE_OK(append_wait(f.db, l, 1000 * SEC, 10 * SEC, p, NULL, false, NULL, &f.err),
					&f.err);
			REQUIRE_OK(db_querier_open(f.db, 0, 5000 * SEC, NULL, &q, &f.err), &f.err);
			REQUIRE_OK(
				matcher_init(&m, MATCH_EQ, STR("instance"), str_of(testdata[i]), &f.err), &f.err);
			REQUIRE_OK(db_select(q, &m, 1, &f.arena, &series, &n, &f.err), &f.err);
			CHECK_INT(n, 1);
			REQUIRE_OK(db_rows_open(q, &series[0], 0, 5000 * SEC, &rows, &f.err), &f.err);
			REQUIRE_OK(db_rows_next(rows, &row, &f.err), &f.err);
			REQUIRE_OK(db_row_profile(&series[0], row, &f.arena, &back, &f.err), &f.err);
			REQUIRE_OK(pprof_encode(back, &encoded, &f.err), &f.err);
			if (!profile_equal(raw, buf_str(&encoded), &why))
				CHECK_FAIL("%s: " STR_FMT, testdata[i], STR_ARG(buf_str(&why)));
			buf_release(&why);
			buf_release(&encoded);
			matcher_release(&m);
			db_rows_close(rows);
			db_querier_close(q);
		}
		REQUIRE(fixture_reopen(&f));
	}
	fixture_close(&f);
}

TEST(sums_are_exact)
{
	struct fixture f;
	struct db_querier *q;
	struct db_series *series;
	struct accum *acc;
	struct accum_cell cell;
	struct sum_stats stats = { 0 };
	const struct profile_type type = {
		STR("process_cpu"), STR("cpu"), STR("nanoseconds"), STR(""), STR(""), true };
	size_t n, at = 0;
	int64_t sum = 0;

	REQUIRE(fixture_open(&f));
	for (int i = 1; i <= 300; i++) {
		struct labels l = labels_of(&f.arena, "process_cpu", "api", i % 2 ? "a:1" : "b:1");
		struct pprof *p = profile_of(
			&f.arena, two_types, (const char *const[]){ "main;work 2 20", "main;idle 1 7", NULL });

		REQUIRE_OK(
			append_wait(f.db, l, i * 60 * SEC, 10 * SEC, p, NULL, true, NULL, &f.err), &f.err);
	}
	REQUIRE_OK(db_querier_open(f.db, 60 * SEC, 250 * 60 * SEC, NULL, &q, &f.err), &f.err);
	REQUIRE_OK(db_select(q, NULL, 0, &f.arena, &series, &n, &f.err), &f.err);
	REQUIRE(n == 2);
	REQUIRE_OK(accum_open(series[0].partition, 0, &acc, &f.err), &f.err);
	for (size_t i = 0; i < n; i++)
		CHECK_OK(db_sum(q, &(const struct db_series *){ &series[i] }, 1, &type, 60 * SEC,
					 250 * 60 * SEC, SUM_WINDOW, acc, &f.arena, &stats, &f.err),
			&f.err);
	CHECK_INT(stats.rows, 249);
	CHECK_INT(stats.total, 249 * 27);
	CHECK_INT(stats.start_ns, 110 * SEC);
	CHECK_INT(stats.end_ns, 250 * 60 * SEC);
	CHECK_INT(stats.headers_n, 1);
	REQUIRE_OK(accum_seal(acc, &f.err), &f.err);
	CHECK_INT(accum_cells_n(acc), 2);
	while (accum_next(acc, &at, &cell))
		sum += (int64_t)cell.value;
	CHECK_INT(sum, 249 * 27);
	accum_close(acc);
	stats = (struct sum_stats){ 0 };
	CHECK_OK(db_sum(q, &(const struct db_series *){ &series[1] }, 1, &type, 0, 250 * 60 * SEC,
				 SUM_LAST, NULL, &f.arena, &stats, &f.err),
		&f.err);
	CHECK_INT(stats.rows, 1);
	CHECK_INT(stats.end_ns, 250 * 60 * SEC);
	db_querier_close(q);
	fixture_close(&f);
}

TEST(a_directory_is_opened_once)
{
	struct fixture f;
	struct db *second;
	char want[200];

	REQUIRE(fixture_open(&f));
	snprintf(want, sizeof(want), "open database %s: data directory %s is locked by another process",
		f.dir, f.dir);
	CHECK_ERR(db_open(&f.o, &second, &f.err), &f.err, ERR_UNAVAILABLE, want);
	fixture_close(&f);
}

TEST(refusals)
{
	struct fixture f;
	struct labels l;
	struct pprof *p;

	REQUIRE(fixture_open(&f));
	l = labels_of(&f.arena, "p", "j", "i");
	p = profile_of(&f.arena, one_type, (const char *const[]){ "main 1", NULL });
	CHECK_ERR(append_wait(f.db, (struct labels){ 0 }, SEC, SEC, p, NULL, true, NULL, &f.err),
		&f.err, ERR_INVALID, "a profile needs the label __name__");
	CHECK_ERR(append_wait(f.db, l, 0, SEC, p, NULL, true, NULL, &f.err), &f.err, ERR_INVALID,
		"a profile needs a time after 1970 and an interval");
	CHECK_OK(append_wait(f.db, l, 20000 * SEC, SEC, p, NULL, true, NULL, &f.err), &f.err);
	CHECK_OK(append_wait(f.db, l, 14400 * SEC, SEC, p, NULL, true, NULL, &f.err), &f.err);
	CHECK_ERR(append_wait(f.db, l, 10800 * SEC, SEC, p, NULL, true, NULL, &f.err), &f.err,
		ERR_INVALID,
		"profile of 1970-01-01T03:00:00.000Z is too old: profiles after "
		"1970-01-01T03:00:00.000Z are accepted");
	CHECK_OK(append_wait(f.db, l, 10801 * SEC, SEC, p, NULL, true, NULL, &f.err), &f.err);
	check_rows_in(&f, l, 0, 30000 * SEC, "@10801\nmain 1\n@14400\nmain 1\n@20000\nmain 1\n");
	fixture_close(&f);
}
