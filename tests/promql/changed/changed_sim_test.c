/*
 * changed() on services that are made up (changed_service.h): how often it reports anything where
 * nothing changed, and how often it finds a planted regression.
 *
 * `make unit-promql` runs a few evaluations of each setting, as a test. The tables of
 * promql/changed/CHANGED.md are made by
 *
 *	EPI_VERDICT_PAIRS=2000 build/tests/promql/changed_sim_test size
 *	EPI_VERDICT_PAIRS=400 build/tests/promql/changed_sim_test power
 *
 * EPI_VERDICT_ONLY=N runs setting N of the table alone, EPI_VERDICT_SEED another sequence.
 */
#include "tests/check.h"
#include "tests/promql/changed/changed_service.h"
#include "tests/promql/trial.h"

/* Runs in which the planted function (or, where nothing is planted, any) is reported. */
static unsigned run(size_t at, const struct setting *o, unsigned runs)
{
	unsigned found = 0, others = 0;
	double tested = 0;

	state = trial_seed(at);
	for (unsigned i = 0; i < runs; i++) {
		struct change_input in;
		struct change_output out;
		struct arena a;
		struct err err;
		bool hit = false;

		arena_init(&a, 0);
		make_evaluation(o, &a, &in);
		in.changed_only = true;
		CHECK_OK(changed_judge(&a, &in, &out, &err), &err);
		for (size_t k = 0; k < out.changed_n; k++)
			hit |= out.v[k].function == s.planted;
		others += o->planted > 0 && out.changed_n > hit;
		found += o->planted > 0 ? hit : out.changed_n > 0;
		tested += out.tested_n;
		arena_release(&a);
	}
	if (trial_is_table()) {
		printf("| %zu %s | %u | %u/%u of %us | %.2f | %s |", at, kinds[o->kind].name, o->pods,
			o->new_slices, o->base_slices, o->slice_s, o->phi, o->replaced ? "others" : "the same");
		if (o->planted > 0)
			printf(" %.1f to %.1f %% |", 100 * o->share, 100 * (o->share + o->planted));
		printf(" %u of %u | %.2f to %.2f %% |", found, runs, 100 * trial_bound(found, runs, false),
			100 * trial_bound(found, runs, true));
		if (o->planted > 0)
			printf(" others %u |", others);
		printf(" %.0f |\n", tested / runs);
	}
	return found;
}

/* clang-format off */
static const struct setting steady[] = {
	/* kind, pods, slices of new and base, seconds, phi, others */
	{ LARGE, 1, 10, 10, 60, 0.0, false, 0, 0 },    { LARGE, 1, 10, 10, 60, 0.8, false, 0, 0 },
	{ LARGE, 1, 10, 60, 60, 0.0, false, 0, 0 },    { LARGE, 1, 10, 60, 60, 0.5, false, 0, 0 },
	{ LARGE, 1, 10, 60, 60, 0.8, false, 0, 0 },    { LARGE, 3, 10, 10, 60, 0.8, false, 0, 0 },
	{ LARGE, 3, 10, 60, 60, 0.8, false, 0, 0 },    { LARGE, 3, 10, 10, 60, 0.5, true, 0, 0 },
	{ LARGE, 10, 10, 60, 60, 0.5, false, 0, 0 },   { LARGE, 10, 10, 60, 60, 0.8, false, 0, 0 },
	{ LARGE, 10, 10, 60, 60, 0.0, true, 0, 0 },    { LARGE, 50, 10, 10, 60, 0.5, true, 0, 0 },
	{ SMALL, 1, 10, 10, 30, 0.0, false, 0, 0 },    { SMALL, 1, 10, 10, 30, 0.5, false, 0, 0 },
	{ SMALL, 1, 10, 10, 30, 0.8, false, 0, 0 },    { SMALL, 1, 15, 15, 60, 0.5, false, 0, 0 },
	{ SMALL, 1, 10, 60, 60, 0.0, false, 0, 0 },    { SMALL, 1, 10, 60, 60, 0.5, false, 0, 0 },
	{ SMALL, 1, 10, 60, 60, 0.8, false, 0, 0 },    { SMALL, 3, 10, 10, 30, 0.5, false, 0, 0 },
	{ SMALL, 3, 10, 10, 30, 0.5, true, 0, 0 },     { SMALL, 10, 10, 60, 60, 0.5, true, 0, 0 },
	{ SPARSE, 1, 10, 10, 30, 0.5, false, 0, 0 },   { SPARSE, 1, 10, 60, 60, 0.5, false, 0, 0 },
	{ BURSTY, 1, 10, 10, 30, 0.0, false, 0, 0 },   { BURSTY, 1, 10, 10, 60, 0.5, false, 0, 0 },
	{ BURSTY, 1, 15, 15, 60, 0.8, false, 0, 0 },   { BURSTY, 1, 10, 60, 60, 0.5, false, 0, 0 },
	{ BURSTY, 1, 10, 60, 60, 0.8, false, 0, 0 },   { BURSTY, 3, 10, 10, 60, 0.5, true, 0, 0 },
	{ DAILY, 1, 10, 10, 60, 0.5, false, 0, 0 },    { DAILY, 3, 15, 15, 60, 0.5, false, 0, 0 },
	{ UNEVEN, 3, 10, 10, 60, 0.5, false, 0, 0 },   { UNEVEN, 10, 10, 60, 60, 0.5, false, 0, 0 },
	{ UNEVEN, 10, 10, 10, 60, 0.5, true, 0, 0 },
	{ RESTART, 1, 10, 10, 60, 0.5, false, 0, 0 },  { RESTART, 1, 15, 15, 60, 0.5, false, 0, 0 },
	{ BATCH, 1, 10, 10, 60, 0.5, false, 0, 0 },    { BATCH, 1, 10, 60, 60, 0.5, false, 0, 0 },
	/* beyond what is promised */
	{ LARGE, 1, 10, 10, 60, 0.95, false, 0, 0 },   { LARGE, 1, 10, 60, 60, 0.95, false, 0, 0 },
	{ SMALL, 1, 10, 60, 60, 0.95, false, 0, 0 },   { DAILY, 10, 10, 60, 60, 0.5, false, 0, 0 },
	{ RESTART, 1, 10, 60, 60, 0.5, false, 0, 0 },  { SMALL, 1, 10, 10, 60, 0.5, true, 0, 0 },
};
#define BEYOND 6
static const struct setting planted[] = {
	{ LARGE, 10, 10, 60, 60, 0.0, false, 0.01, 0.005 },
	{ LARGE, 10, 10, 60, 60, 0.5, false, 0.01, 0.005 },
	/* one pod each side, from five minutes on */
	{ DEMO, 1, 10, 10, 30, 0.0, true, 0.05, 0.23 },
	{ DEMO, 1, 10, 10, 30, 0.5, true, 0.05, 0.23 },
	{ DEMO, 1, 10, 10, 60, 0.0, true, 0.05, 0.23 },
	{ DEMO, 1, 10, 10, 60, 0.5, true, 0.05, 0.23 },
	{ DEMO, 1, 15, 15, 60, 0.0, true, 0.05, 0.23 },
	{ DEMO, 1, 15, 15, 60, 0.5, true, 0.05, 0.23 },
	{ DEMO, 1, 10, 10, 30, 0.5, false, 0.05, 0.23 },
	{ DEMO, 1, 15, 15, 60, 0.5, false, 0.05, 0.23 },
	/* not promised */
	{ DEMO, 1, 10, 10, 30, 0.8, true, 0.05, 0.23 },
	{ DEMO, 1, 15, 15, 60, 0.8, true, 0.05, 0.23 },
	{ SMALL, 1, 10, 10, 30, 0.0, true, 0.05, 0.23 },
	{ SMALL, 1, 10, 10, 30, 0.5, true, 0.05, 0.23 },
	{ SMALL, 1, 15, 15, 60, 0.5, true, 0.05, 0.23 },
	{ LARGE, 10, 10, 60, 60, 0.8, false, 0.01, 0.005 },
	{ LARGE, 10, 10, 10, 60, 0.5, false, 0.01, 0.005 },
	{ LARGE, 10, 10, 60, 60, 0.5, true, 0.01, 0.005 },
	{ LARGE, 1, 10, 60, 60, 0.5, false, 0.01, 0.02 },
	{ LARGE, 3, 10, 60, 60, 0.5, false, 0.01, 0.01 },
	{ SMALL, 1, 10, 10, 60, 0.5, false, 0.05, 0.10 },
	{ SMALL, 1, 10, 60, 60, 0.5, false, 0.05, 0.10 },
	{ BURSTY, 1, 10, 60, 60, 0.5, false, 0.05, 0.23 },
};
#define PROMISED_POWER 10
/* clang-format on */

TEST(size)
{
	const size_t promised = sizeof(steady) / sizeof(steady[0]) - BEYOND;
	unsigned runs = trial_runs(check_is_short() ? 5 : 20);

	for (size_t i = 0; i < sizeof(steady) / sizeof(steady[0]); i++) {
		unsigned found, few = runs;

		if (!trial_is_asked_for(i) || (i >= promised && !trial_is_table()))
			continue;
		if (steady[i].kind == LARGE && steady[i].pods > 3)
			few = trial_is_table() ? runs / steady[i].pods : 2;
		found = run(i, &steady[i], few);
		if (i < promised && trial_bound(found, few, false) > 0.01)
			CHECK_FAIL("setting %zu: %u of %u evaluations report something", i, found, few);
	}
}

TEST(power)
{
	for (size_t i = 0; i < sizeof(planted) / sizeof(planted[0]); i++) {
		bool is_large = planted[i].kind == LARGE;
		double want = is_large ? 0.99 : 0.95;
		unsigned runs = trial_runs(is_large ? 2 : check_is_short() ? 10 : 40), found;

		if (!trial_is_asked_for(i) || (i >= PROMISED_POWER && !trial_is_table()))
			continue;
		runs = trial_is_table() && is_large ? runs / planted[i].pods : runs;
		found = run(i, &planted[i], runs);
		if (i < PROMISED_POWER && trial_bound(found, runs, true) < want)
			CHECK_FAIL("setting %zu: found in %u of %u", i, found, runs);
	}
}
