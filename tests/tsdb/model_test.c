/*
 * The database against a model that is a list: random series, times (late ones too), replaced rows
 * and restarts; then sums against what the rows say.
 */
#include "base/map.h"
#include "tests/check.h"
#include "tests/tsdb/fixture.h"

#define SERIES 6
#define ROWS_MAX 600

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	return map_hash_u64(state) % below;
}

struct model {
	struct fixture f;
	struct labels labels[SERIES];
	struct {
		int64_t ts_s;
		uint64_t seed;
	} rows[SERIES][ROWS_MAX];
	size_t n[SERIES];
	int64_t newest_s;
};

static void remember(struct model *m, size_t s, int64_t ts_s, uint64_t seed)
{
	size_t i = 0;

	while (i < m->n[s] && m->rows[s][i].ts_s < ts_s)
		i++;
	if (i == m->n[s] || m->rows[s][i].ts_s != ts_s) {
		memmove(&m->rows[s][i + 1], &m->rows[s][i], (m->n[s] - i) * sizeof(m->rows[s][0]));
		m->n[s]++;
	}
	m->rows[s][i].ts_s = ts_s;
	m->rows[s][i].seed = seed;
}

/* Existing rows are not replaced. */
static enum err_code expected(const struct model *m, size_t s, int64_t ts_s, uint64_t seed)
{
	for (size_t i = 0; i < m->n[s]; i++)
		if (m->rows[s][i].ts_s == ts_s)
			return m->rows[s][i].seed == seed ? ERR_OK : ERR_EXISTS;
	return ERR_OK;
}

static void append_some(struct model *m, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t s = draw(SERIES);
		uint64_t seed = draw(1 << 20);
		int64_t ts_s = m->newest_s + (int64_t)draw(20), late = (int64_t)draw(150);
		enum err_code want;
		struct arena a;

		if (draw(4) == 0)
			ts_s = m->newest_s > late + 1 ? m->newest_s - late : 1;
		if (draw(10) == 0 && m->n[s])
			ts_s = m->rows[s][draw(m->n[s])].ts_s;
		if (m->n[s] == ROWS_MAX || ts_s < m->newest_s - 200)
			continue;
		want = expected(m, s, ts_s, seed);
		arena_init(&a, 0);
		CHECK_INT(append_wait(m->f.db, m->labels[s], ts_s * SEC, 10 * SEC, profile_random(&a, seed),
					  NULL, false, NULL, &m->f.err),
			want);
		arena_release(&a);
		if (want)
			continue;
		remember(m, s, ts_s, seed);
		if (ts_s > m->newest_s)
			m->newest_s = ts_s;
	}
}

static void check_series(struct model *m, size_t s, int64_t min_s, int64_t max_s)
{
	struct buf want = { 0 }, got = { 0 };
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < m->n[s]; i++) {
		if (m->rows[s][i].ts_s <= min_s || m->rows[s][i].ts_s > max_s)
			continue;
		buf_printf(&want, "@%lld\n", (long long)m->rows[s][i].ts_s);
		profile_samples_text(profile_random(&a, m->rows[s][i].seed), &want);
	}
	CHECK(rows_text(m->f.db, m->labels[s], min_s * SEC, max_s * SEC, &got, &m->f.err));
	if (!str_eq(buf_str(&want), buf_str(&got)))
		CHECK_FAIL("series %zu in (%lld, %lld]: got\n" STR_FMT "want\n" STR_FMT, s,
			(long long)min_s, (long long)max_s, STR_ARG(buf_str(&got)), STR_ARG(buf_str(&want)));
	buf_release(&want);
	buf_release(&got);
	arena_release(&a);
}

static const struct profile_type cpu = {
	STR("p"), STR("cpu"), STR("nanoseconds"), STR(""), STR(""), true };

/* The sum of one column over a window, cell by cell, against its rows added naively. */
static void check_sum(struct model *m, struct db_querier *q, const struct db_series *s,
	int64_t min_ns, int64_t max_ns, unsigned flags)
{
	struct accum *acc;
	struct accum_cell cell;
	struct sum_stats stats = { 0 };
	struct db_rows *rows;
	const struct db_row *row;
	__int128 total = 0;
	size_t at = 0, cells = 0, n_rows = 0;
	enum { NODES = 8192 };
	static int64_t want[NODES], with[NODES];
	enum err_code rc;

	memset(want, 0, sizeof(want));
	memset(with, 0, sizeof(with));
	REQUIRE(sym_nodes_n(s->partition) < NODES);
	REQUIRE_OK(accum_open(s->partition, flags, &acc, &m->f.err), &m->f.err);
	CHECK_OK(
		db_sum(q, &s, 1, &cpu, min_ns, max_ns, SUM_WINDOW, acc, &m->f.arena, &stats, &m->f.err),
		&m->f.err);
	REQUIRE_OK(db_rows_open(q, s, min_ns, max_ns, &rows, &m->f.err), &m->f.err);
	while (!(rc = db_rows_next(rows, &row, &m->f.err))) {
		for (size_t i = 0; i < row->n; i++) {
			int64_t v = row->values[row->n + i];

			total += v;
			want[row->stacks[i]] += v;
			with[row->stacks[i]] += v * (int64_t)(row->label_sets[i] + 1);
		}
		n_rows++;
	}
	CHECK_INT(rc, ERR_NOT_FOUND);
	db_rows_close(rows);
	CHECK(stats.total == total);
	CHECK_INT(stats.rows, n_rows);
	REQUIRE_OK(accum_seal(acc, &m->f.err), &m->f.err);
	for (; accum_next(acc, &at, &cell); cells++) {
		CHECK(cell.value != 0);
		want[cell.stack] -= (int64_t)cell.value;
		with[cell.stack] -= (int64_t)cell.value * (int64_t)(cell.label_set + 1);
	}
	CHECK_INT(accum_cells_n(acc), cells);
	for (size_t i = 0; i < NODES; i++)
		if (want[i] || ((flags & ACCUM_BY_LABELS) && with[i]))
			CHECK_FAIL("node %zu is off by %lld", i, (long long)want[i]);
	accum_close(acc);
}

static void check_all(struct model *m)
{
	struct db_querier *q;
	struct db_series *series;
	size_t n, expected = 0;

	for (size_t s = 0; s < SERIES; s++) {
		check_series(m, s, 0, m->newest_s);
		check_series(m, s, (int64_t)draw((uint64_t)m->newest_s), m->newest_s - (int64_t)draw(100));
		expected += m->n[s] > 0;
	}
	REQUIRE_OK(db_querier_open(m->f.db, 0, m->newest_s * SEC, NULL, &q, &m->f.err), &m->f.err);
	REQUIRE_OK(db_select(q, NULL, 0, &m->f.arena, &series, &n, &m->f.err), &m->f.err);
	/* Once for each epoch with rows of it. */
	CHECK(m->f.o.symbols_bytes == 1 ? n >= expected : n == expected);
	for (size_t i = 0; i < n; i++) {
		int64_t min_s = (int64_t)draw((uint64_t)m->newest_s);

		if (i)
			CHECK(labels_cmp(series[i - 1].labels, series[i].labels) < (m->f.o.symbols_bytes == 1));
		check_sum(m, q, &series[i], min_s * SEC, (min_s + (int64_t)draw(300)) * SEC, 0);
		check_sum(m, q, &series[i], 0, m->newest_s * SEC, ACCUM_BY_LABELS);
	}
	db_querier_close(q);
}

static void run(uint64_t seed, int64_t window_ns, uint64_t symbols_bytes, int rounds)
{
	static struct model m;

	state = seed;
	m = (struct model){ .newest_s = 5 };
	REQUIRE(fixture_open(&m.f));
	m.f.o.window_ns = window_ns;
	m.f.o.too_old_ns = 300 * SEC;
	m.f.o.symbols_bytes = symbols_bytes;
	REQUIRE(fixture_reopen(&m.f));
	for (size_t s = 0; s < SERIES; s++) {
		char job[8] = "job-0", instance[8] = "i-0";

		job[4] = (char)('0' + s % 2);
		instance[2] = (char)('0' + s);
		m.labels[s] = labels_of(&m.f.arena, "p", job, instance);
	}
	for (int i = 0; i < rounds; i++) {
		append_some(&m, 40);
		check_all(&m);
		fixture_maintain(&m.f);
		if (draw(2)) {
			/* Windows of another length stand beside those that are there. */
			m.f.o.window_ns = draw(4) ? m.f.o.window_ns : (int64_t)(10 + draw(100)) * SEC;
			REQUIRE(fixture_reopen(&m.f));
			check_all(&m);
		}
	}
	fixture_close(&m.f);
}

static int rounds(int all)
{
	return check_is_short() ? all / 2 : all;
}

TEST(random_appends_late_rows_and_restarts)
{
	run(1, 60 * SEC, 1 << 20, rounds(12));
	run(2, 60 * SEC, 1 << 20, rounds(12));
}

TEST(random_appends_in_short_windows)
{
	run(3, 13 * SEC, 1 << 20, rounds(8));
}

/* No table fits: epochs end while their windows take rows. */
TEST(random_appends_with_epochs_that_end_soon)
{
	run(4, 60 * SEC, 1, rounds(12));
	run(5, 1000 * SEC, 1, rounds(12));
}
