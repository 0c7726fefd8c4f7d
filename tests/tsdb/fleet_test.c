#include <math.h>

#include "tests/check.h"
#include "tests/fleet/fit.h"
#include "tests/fleet/fleet.h"
#include "tests/tsdb/fixture.h"

/* The generator of fleet-like profiles is what figures stand on: its own tests are here. */

struct world {
	struct fleet *f;
	struct fleet_scratch *s;
	struct arena arena;
	struct err err;
};

static bool world_open(struct world *w, const struct fleet_params *p)
{
	*w = (struct world){ 0 };
	arena_init(&w->arena, 0);
	CHECK_OK(fleet_open(p, &w->f, &w->err), &w->err);
	if (w->f)
		CHECK_OK(fleet_scratch_open(w->f, &w->s, &w->err), &w->err);
	return w->s;
}

static void world_close(struct world *w)
{
	fleet_scratch_close(w->s);
	fleet_close(w->f);
	arena_release(&w->arena);
}

static uint64_t hash_of(struct world *w, uint32_t service, uint32_t pod, uint64_t scrape, bool d)
{
	uint32_t columns = fleet_kinds(w->f, (enum value_kind[FLEET_COLUMNS_MAX]){ 0 }), n;
	const uint32_t *items;
	const int64_t *values;

	n = fleet_items(w->f, w->s, service, pod, scrape, d, &items, &values);
	CHECK(n > 0);
	for (uint32_t i = 1; i < n; i++)
		CHECK(items[i - 1] < items[i]);
	return hash_bytes(
		items, n * sizeof(*items), hash_bytes(values, (size_t)n * columns * sizeof(*values), n));
}

TEST(a_scrape_is_a_function_of_its_numbers)
{
	for (size_t i = 0; i < fleet_sets_n; i++) {
		struct world a, b;
		uint64_t there[40];

		REQUIRE(world_open(&a, &fleet_sets[i]) && world_open(&b, &fleet_sets[i]));
		for (uint32_t k = 0; k < 40; k++)
			there[k] = hash_of(&a, k % 2, k % 5, k * 997, k & 1);
		for (uint32_t k = 40; k-- > 0;) /* in another order, from another fleet */
			CHECK(hash_of(&b, k % 2, k % 5, k * 997, k & 1) == there[k]);
		CHECK(hash_of(&a, 0, 0, 500, false) != hash_of(&a, 1, 0, 500, false));
		CHECK(hash_of(&a, 0, 0, 500, false) != hash_of(&a, 0, 1, 500, false));
		CHECK(hash_of(&a, 0, 0, 500, false) != hash_of(&a, 0, 0, 5000, false));
		world_close(&a);
		world_close(&b);
	}
}

/* The profile and the row must be the same, in the ids of the partition. */
static void check_same(
	struct world *w, struct partition *p, const struct pprof *f, const struct row *row)
{
	enum value_kind kinds[FLEET_COLUMNS_MAX];
	struct interned in;

	fleet_kinds(w->f, kinds);
	REQUIRE_OK(sym_intern_profile(p, f, kinds, &w->arena, &in, &w->err), &w->err);
	CHECK_INT(in.n, row->n);
	CHECK_INT(in.header, row->header);
	CHECK_INT(f->types_n, row->columns_n);
	CHECK_INT(f->time_nanos, row->time_nanos);
	CHECK_INT(f->duration_nanos, row->duration_nanos);
	CHECK_INT(f->period, row->period);
	for (uint32_t i = 0; i < in.n && i < row->n; i++) {
		CHECK_INT(in.keys[i] >> 32, row->stacks[i]);
		CHECK_INT((uint32_t)in.keys[i], row->label_sets ? row->label_sets[i] : 0);
		for (uint32_t c = 0; c < row->columns_n; c++)
			CHECK_INT(f->values[(size_t)in.samples[i] * f->types_n + c],
				row->values[(size_t)c * row->n + i]);
	}
}

struct last_row {
	struct world *w;
	struct partition *p;
	const struct row *want;
	int64_t ts_ns;
	uint32_t seen;
};

static bool compare_stored(void *ctx, const struct db_series *s, const struct db_row *row)
{
	struct last_row *t = ctx;
	struct pprof *f;

	if (row->ts_ns != t->ts_ns)
		return true;
	t->seen++;
	CHECK_INT(row->interval_ns, t->want->interval_ns);
	CHECK_OK(db_row_profile(s, row, &t->w->arena, &f, &t->w->err), &t->w->err);
	check_same(t->w, t->p, f, t->want);
	return true;
}

/* Scrapes k - 1 and k through the database; what it kept of k is the row made directly. */
static void check_stored(struct world *w, struct partition *p, const struct fleet_symbols *symbols,
	uint32_t service, uint32_t pod, uint64_t k)
{
	int64_t interval = fleet_params(w->f)->interval_ns, start_ns;
	struct fixture x;
	enum value_kind kinds[FLEET_COLUMNS_MAX];
	struct labels labels;
	struct row row;
	size_t warnings = 0;
	struct last_row t = { .w = w, .p = p, .want = &row };

	REQUIRE(fixture_open(&x));
	fleet_kinds(w->f, kinds);
	labels = labels_of(&x.arena, fleet_profile_name(w->f), "svc", "pod");
	start_ns = clock_now_ns() - (int64_t)(k + 3) * interval;
	for (uint64_t i = k - 1; i <= k; i++) {
		struct db_append_stats stats;
		struct pprof *f;

		REQUIRE_OK(
			fleet_profile(w->f, w->s, service, pod, i, start_ns, &w->arena, &f, &x.err), &x.err);
		t.ts_ns = f->time_nanos;
		CHECK_OK(append_wait(x.db, labels, f->time_nanos, interval, f, kinds, true, &stats, &x.err),
			&x.err);
	}
	fleet_row(w->f, symbols, w->s, service, pod, k, start_ns, &row);
	CHECK(rows_each(x.db, 0, INT64_MAX, compare_stored, &t, &warnings, &x.err));
	CHECK_INT(warnings, 0);
	CHECK_INT(t.seen, 1);
	fixture_close(&x);
}

static void check_both_ways(const struct fleet_params *params)
{
	const struct symbol_limits limits = { 4u << 20, 1u << 20, 65536, UINT64_C(1) << 30 };
	struct partition *p = NULL;
	struct fleet_symbols symbols;
	struct pprof *f;
	struct world w;
	uint32_t nodes, service = 3;

	REQUIRE(world_open(&w, params));
	REQUIRE_OK(partition_open(STR("svc003"), 1, 0, &limits, &p, &w.err), &w.err);
	REQUIRE_OK(fleet_symbols(w.f, service, 4, p, &w.arena, &symbols, &w.err), &w.err);
	CHECK_INT(symbols.n, fleet_items_n(w.f));
	for (uint32_t i = 1; i < symbols.n; i++)
		CHECK(symbols.stacks[i - 1] < symbols.stacks[i] ||
			(symbols.stacks[i - 1] == symbols.stacks[i] &&
				symbols.label_sets[i - 1] < symbols.label_sets[i]));
	nodes = sym_nodes_n(p);
	for (uint32_t pod = 0; pod < 4; pod++) {
		/* The first scrape, whose counters are as served; then in the day after a deploy.
		 */
		struct row row;

		fleet_row(w.f, &symbols, w.s, service, pod, 0, 1000, &row);
		REQUIRE_OK(fleet_profile(w.f, w.s, service, pod, 0, 1000, &w.arena, &f, &w.err), &w.err);
		fleet_row(w.f, &symbols, w.s, service, pod, 0, 1000, &row);
		check_same(&w, p, f, &row);
		if (pod < (check_is_short() ? 1 : 2))
			check_stored(&w, p, &symbols, service, pod, 3 * 8640 + 1000 + pod);
	}
	CHECK_INT(sym_nodes_n(p), nodes); /* fleet_symbols had put all there */
	CHECK_ERR(fleet_symbols(w.f, service, 4, p, &w.arena, &symbols, &w.err), &w.err, ERR_INVALID,
		"the partition of a fleet's symbols is not empty");
	partition_close(p);
	world_close(&w);
}

TEST(both_ways_give_the_same_samples)
{
	for (size_t i = 0; i < fleet_sets_n; i++)
		check_both_ways(&fleet_sets[i]);
}

/* A process restarts once a day; in between nothing it counts falls. */
TEST(counters_fall_only_when_a_process_restarts)
{
	for (size_t i = 0; i < fleet_sets_n; i++) {
		enum value_kind kinds[FLEET_COLUMNS_MAX];
		uint32_t columns, falls = 0;
		struct world w;

		REQUIRE(world_open(&w, &fleet_sets[i]));
		columns = fleet_kinds(w.f, kinds);
		for (uint64_t k = 17300; k < 17500 && kinds[0] == KIND_CUMULATIVE; k++) {
			const uint32_t *items;
			const int64_t *values;
			uint32_t n = fleet_items(w.f, w.s, 0, 1, k, true, &items, &values), fell = 0;

			for (uint32_t c = 0; c < columns; c++)
				for (uint32_t j = 0; j < n && kinds[c] == KIND_CUMULATIVE; j++)
					fell += values[(size_t)c * n + j] < 0;
			falls += fell > 0;
		}
		CHECK_INT(falls, 0);
		world_close(&w);
	}
}

/* Measured numbers, and how near the sets come to them (README.md). */
TEST(sets_are_like_what_was_recorded)
{
	static const struct {
		const char *set;
		double draws; /* 0: the set's own */
		double samples, singles, overlap, ones, heaps; /* wanted; 0: not asked */
		double within; /* of shares; samples within 15 % */
	} cases[] = {
		{ "fleet-cpu", 99, 86, 0.775, 0.277, 0.880, 0.75, 0.07 }, /* as the demo is */
		{ "fleet-cpu", 0, 490, 0, 0.33, 0, 0, 0.05 },
		{ "heavy-tailed-cpu", 0, 490, 0.77, 0.175, 0, 0, 0.025 },
		{ "heap", 0, 2600, 0, 1, 0, 0, 0.01 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fleet_params p = *fleet_set(cases[i].set);
		struct recording r;
		struct world w;
		struct fit fit;

		p.draws = cases[i].draws > 0 ? cases[i].draws : p.draws;
		REQUIRE(world_open(&w, &p));
		REQUIRE_OK(recording_make(w.f, 1, 4, 9000, 30, &w.arena, &r, &w.err), &w.err);
		REQUIRE_OK(fit_recording(&r, &fit, &w.err), &w.err);
#define NEAR(what) \
	if (cases[i].what > 0 && fabs(fit.what - cases[i].what) > cases[i].within) \
	CHECK_FAIL("%s: " #what " is %.3f, want %.3f", cases[i].set, fit.what, cases[i].what)
		NEAR(singles);
		NEAR(overlap);
		NEAR(ones);
		NEAR(heaps);
		if (fabs(fit.samples / cases[i].samples - 1) > 0.15)
			CHECK_FAIL("%s: %.1f samples, want %.1f", cases[i].set, fit.samples, cases[i].samples);
		recording_release(&r);
		world_close(&w);
	}
}
