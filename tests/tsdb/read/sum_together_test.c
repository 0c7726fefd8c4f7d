/* Sums that are made together are those that are made one after the other. */
#include "base/map.h"
#include "tests/check.h"
#include "tests/tsdb/fixture.h"
#include "tsdb/catalog/state.h"

#define T0 1036800
#define HOUR 3600
#define EVERY 60
#define SPAN (5 * HOUR) /* two windows are cut, the last is not */
#define JOBS 7u
#define PODS 4u

/* clang-format off */
static const struct profile_type types[] = {
	{ STR("p"), STR("cpu"), STR("nanoseconds"), STR(""), STR(""), true },
	{ STR("p"), STR("samples"), STR("count"), STR(""), STR(""), true },
};
/* clang-format on */

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	return map_hash_u64(state) % below;
}

/* Series of all jobs are mixed among each other. */
static bool fill(struct fixture *f)
{
	for (int64_t at = EVERY; at <= SPAN; at += EVERY)
		for (uint64_t i = 0; i < JOBS * PODS; i++) {
			struct arena a;
			struct pprof *p;
			struct labels labels;
			enum err_code rc;

			if (draw(3))
				continue;
			arena_init(&a, 0);
			p = profile_random(&a, draw(40));
			labels = labels_of(
				&a, "p", arena_printf(&a, "j%u", (unsigned)(i % JOBS)), draw(9) ? "x" : "y");
			rc = append_wait(f->db, labels, (T0 + at) * SEC + (int64_t)i, EVERY * SEC, p, NULL,
				false, NULL, &f->err);
			arena_release(&a);
			if (rc)
				return false;
		}
	return true;
}

struct made {
	const struct db_series *series[JOBS * PODS];
	struct accum *acc;
	struct function_sums *functions;
	struct sum_stats stats;
};

static void made_open(struct fixture *f, struct made *m, struct partition *p, bool by_name)
{
	m->stats = (struct sum_stats){ 0 };
	m->functions = NULL;
	CHECK_OK(accum_open(p, 0, &m->acc, &f->err), &f->err);
	if (by_name)
		CHECK_OK(function_sums_open(&m->functions, &f->err), &f->err);
}

static uint64_t rows_compared;

static void made_compare(struct fixture *f, struct made *got, struct made *want)
{
	const struct function_sum *g_names, *w_names;
	size_t at_g = 0, at_w = 0, g_n, w_n;
	int64_t g_total, w_total;
	struct accum_cell g, w;
	bool more;

	CHECK_OK(accum_seal(got->acc, &f->err), &f->err);
	CHECK_OK(accum_seal(want->acc, &f->err), &f->err);
	while ((more = accum_next(want->acc, &at_w, &w)) | accum_next(got->acc, &at_g, &g))
		if (!more || g.stack != w.stack || g.value != w.value) {
			CHECK_FAIL("cells differ");
			break;
		}
	CHECK_INT(got->stats.rows, want->stats.rows);
	rows_compared += want->stats.rows;
	CHECK_INT(got->stats.samples, want->stats.samples);
	CHECK_INT(got->stats.read, want->stats.read);
	CHECK_INT(got->stats.start_ns, want->stats.start_ns);
	CHECK_INT(got->stats.end_ns, want->stats.end_ns);
	CHECK(got->stats.total == want->stats.total);
	CHECK_INT(got->stats.headers_n, want->stats.headers_n);
	for (uint32_t i = 0; i < want->stats.headers_n && i < got->stats.headers_n; i++)
		CHECK_INT(got->stats.headers[i], want->stats.headers[i]);
	if (!want->functions)
		return;
	CHECK_OK(
		function_sums_list(got->functions, &f->arena, &g_names, &g_n, &g_total, &f->err), &f->err);
	CHECK_OK(
		function_sums_list(want->functions, &f->arena, &w_names, &w_n, &w_total, &f->err), &f->err);
	CHECK_INT(g_n, w_n);
	CHECK_INT(g_total, w_total);
	for (size_t i = 0; i < w_n && i < g_n; i++)
		CHECK(g_names[i].name == w_names[i].name && g_names[i].flat == w_names[i].flat &&
			g_names[i].cum == w_names[i].cum);
}

static size_t pick_job(struct db_series *all, size_t n, unsigned job, const struct db_series **out)
{
	char name[8];
	size_t kept = 0;

	snprintf(name, sizeof(name), "j%u", job);
	for (size_t i = 0; i < n; i++)
		if (str_is(labels_get(all[i].labels, STR("job")), name) && draw(4))
			out[kept++] = &all[i];
	return kept;
}

static void compare_together(struct fixture *f)
{
	int64_t edge = (int64_t)draw(SPAN), other = (int64_t)draw(SPAN);
	int64_t min_ns = (T0 + (edge < other ? edge : other)) * SEC;
	int64_t max_ns = (T0 + (edge < other ? other : edge) + 1) * SEC;
	struct made together[JOBS], alone[JOBS];
	struct db_sum_of of[JOBS];
	struct db_series *all;
	struct db_querier *q;
	size_t n, sums = 0;

	REQUIRE_OK(db_querier_open(f->db, 0, INT64_MAX, NULL, &q, &f->err), &f->err);
	REQUIRE_OK(db_select(q, NULL, 0, &f->arena, &all, &n, &f->err), &f->err);
	for (unsigned job = 0; job < JOBS; job++) {
		struct made *m = &together[sums], *a = &alone[sums];
		const struct profile_type *t = &types[draw(2)];
		size_t series_n = pick_job(all, n, job, m->series);
		bool by_name = draw(2);

		if (!series_n)
			continue;
		made_open(f, m, m->series[0]->partition, by_name);
		made_open(f, a, m->series[0]->partition, by_name);
		of[sums++] = (struct db_sum_of){ m->series, series_n, t, min_ns, max_ns, m->functions,
			m->acc, &m->stats };
		if (by_name)
			CHECK_OK(db_sum_functions(q, m->series, series_n, t, min_ns, max_ns, a->functions,
						 a->acc, &f->arena, &a->stats, &f->err),
				&f->err);
		else
			CHECK_OK(db_sum(q, m->series, series_n, t, min_ns, max_ns, SUM_WINDOW, a->acc,
						 &f->arena, &a->stats, &f->err),
				&f->err);
	}
	CHECK_OK(db_sum_together(q, of, sums, &f->arena, &f->err), &f->err);
	for (size_t i = 0; i < sums; i++) {
		made_compare(f, &together[i], &alone[i]);
		accum_close(together[i].acc);
		accum_close(alone[i].acc);
		function_sums_close(together[i].functions);
		function_sums_close(alone[i].functions);
	}
	db_querier_close(q);
	arena_reset(&f->arena);
}

TEST(sums_together_are_those_made_alone)
{
	struct fixture f;

	REQUIRE(fixture_open(&f));
	f.o.window_ns = 2 * HOUR * SEC;
	f.o.too_old_ns = 0; /* a window is cut as soon as the next one begins */
	f.o.retention_ns = 0;
	f.o.no_compaction = true;
	f.o.free_bytes_reserve = 0;
	REQUIRE(fixture_reopen(&f) && fill(&f));
	for (int i = 0; i < 20; i++) /* three head windows */
		compare_together(&f);
	CHECK_OK(db_compact(f.db, &f.err), &f.err);
	CHECK_INT(f.db->blocks_n, 2);
	for (int i = 0; i < 20; i++) /* and blocks */
		compare_together(&f);
	CHECK(rows_compared > 10000);
	fixture_close(&f);
}
