/*
 * changed() where people see a change: sides that are apart, slow drifts, one pod of ten. Made up
 *as in changed_sim_test.c, and run as that is:
 *
 *	EPI_CHANGED_RUNS=1000 build/tests/promql/changed/seen_sim_test apart
 *
 * The other tables: quiet (nothing changed, shocks of at most three slices), sequence (end times 45
 *s apart in one long run), drift, alone.
 */
#include "tests/promql/changed/changed_trial.h"

struct tally {
	unsigned found, anything; /* of the planted function; of any */
	unsigned words[CHANGE_FALLS + 1];
};

static void judge_setting(const struct setting *o, struct tally *tally)
{
	struct change_input in;
	struct change_output out;
	struct arena a;
	struct err err;
	bool hit = false;

	arena_init(&a, 0);
	make_evaluation(o, &a, &in);
	in.changed_only = true;
	CHECK_OK(changed_judge(&a, &in, &out, &err), &err);
	for (size_t k = 0; k < out.changed_n && !o->alone; k++)
		if (out.v[k].function == s.planted) {
			hit = true;
			tally->words[out.v[k].word]++;
		}
	for (size_t k = 0; k < out.alone_n && o->alone; k++)
		hit |= out.alone[k].change.function == s.planted && out.alone[k].series == 0;
	tally->found += hit;
	tally->anything += out.changed_n + out.alone_n > 0;
	arena_release(&a);
}

static unsigned run(size_t at, const struct setting *o, unsigned runs)
{
	const char *seed = getenv("EPI_CHANGED_SEED");
	struct tally tally = { 0 };
	unsigned n;

	state = (seed ? strtoull(seed, NULL, 10) : 1) + at * 1000003;
	for (unsigned i = 0; i < runs; i++)
		judge_setting(o, &tally);
	n = o->planted > 0 ? tally.found : tally.anything;
	if (is_table()) {
		printf("| %zu %s | %u | %u/%u of %us | %u | %.2f | %s |", at, kinds[o->kind].name, o->pods,
			o->new_slices, o->base_slices, o->slice_s, o->gap, o->phi,
			o->replaced ? "others" : "the same");
		if (o->planted > 0)
			printf(" %.1f to %.1f %% |", 100 * o->share, 100 * (o->share + o->planted));
		printf(" %u of %u | %.2f to %.2f %% |", n, runs, 100 * bound(n, runs, false),
			100 * bound(n, runs, true));
		if (o->drift > 0)
			printf(
				" rises %u, changed %u |", tally.words[CHANGE_RISES], tally.words[CHANGE_CHANGED]);
		printf("\n");
	}
	return n;
}

/* clang-format off */
static const struct setting quiet[] = {
	/* kind, pods, slices of new and base, seconds, phi, others */
	{ POD, 1, 10, 10, 60, 0.00, false },  { POD, 1, 10, 10, 60, 0.50, false },
	{ POD, 1, 10, 10, 60, 0.65, false },  { SMALL, 1, 10, 10, 60, 0.65, false },
	{ POD, 1, 15, 15, 60, 0.65, false },  { POD, 1, 10, 60, 60, 0.65, false },
	{ POD, 10, 10, 10, 60, 0.50, false }, { POD, 10, 10, 60, 60, 0.50, false },
	{ POD, 10, 10, 60, 60, 0.65, false }, { LARGE, 3, 10, 60, 60, 0.65, false },
	{ POD, 1, 10, 60, 60, 0.50, false },
	/* longer shocks */
	{ POD, 1, 10, 10, 60, 0.80, false },  { POD, 1, 10, 10, 30, 0.80, false },
	{ POD, 1, 10, 10, 60, 0.90, false },  { POD, 10, 10, 60, 60, 0.80, false },
};
#define QUIET_LONGER 4
static const struct setting apart[] = {
	{ POD, 1, 10, 10, 60, 0.00, true, 0.05, 0.23 }, { POD, 1, 10, 10, 60, 0.50, true, 0.05, 0.23 },
	{ POD, 1, 10, 10, 60, 0.65, true, 0.05, 0.23 }, { DEMO, 1, 10, 10, 60, 0.50, true, 0.05, 0.23 },
	{ POD, 1, 10, 10, 60, 0.50, false, 0.05, 0.23 },
	{ POD, 1, 15, 15, 60, 0.50, true, 0.05, 0.23 },
	{ SMALL, 1, 10, 10, 60, 0.50, true, 0.05, 0.23 },
};
#define APART_PROMISED 6
static const struct setting drift[] = {
	{ POD, 1, 10, 60, 60, 0.00, false, 0.05, 0.10, 0, 50 },
	{ POD, 3, 10, 60, 60, 0.50, false, 0.05, 0.10, 0, 50 },
	{ LARGE, 1, 10, 60, 60, 0.50, false, 0.05, 0.10, 0, 50 },
	/* not promised */
	{ DEMO, 1, 10, 60, 60, 0.50, false, 0.05, 0.10, 0, 50 },
	{ POD, 1, 10, 60, 60, 0.50, false, 0.05, 0.10, 0, 50 },
	{ POD, 1, 10, 60, 60, 0.65, false, 0.05, 0.10, 0, 50 },
	{ POD, 1, 10, 10, 60, 0.50, false, 0.05, 0.10, 40, 50 },
	{ DEMO, 1, 10, 10, 60, 0.50, false, 0.05, 0.10, 40, 50 },
	{ POD, 3, 10, 10, 60, 0.50, false, 0.05, 0.10, 40, 50 },
	{ LARGE, 1, 10, 10, 60, 0.50, false, 0.05, 0.10, 40, 50 },
};
#define DRIFT_PROMISED 3
static const struct setting alone[] = {
	{ POD, 10, 10, 60, 60, 0.00, false, 0.05, 0.25, 0, 0, true },
	{ POD, 10, 10, 60, 60, 0.50, false, 0.05, 0.25, 0, 0, true },
	{ DEMO, 10, 10, 10, 60, 0.50, false, 0.05, 0.25, 0, 0, true },
	{ POD, 10, 10, 10, 60, 0.50, false, 0.05, 0.25, 0, 0, true },
	{ LARGE, 10, 10, 60, 60, 0.50, false, 0.05, 0.25, 0, 0, true },
};
#define ALONE_PROMISED 3
/* clang-format on */

static void run_table(const struct setting *v, size_t n, size_t promised, double want)
{
	for (size_t i = 0; i < n; i++) {
		bool is_quiet = v[i].planted == 0, is_large = v[i].kind == LARGE;
		unsigned runs = runs_of(is_large || v[i].pods > 3 ? 3 : check_is_short() ? 5 : 20), found;

		if (!is_asked_for(i) || (i >= promised && !is_table()))
			continue;
		runs = is_table() && is_large ? runs / 4 / v[i].pods : runs;
		found = run(i, &v[i], runs);
		if (is_quiet && i < promised && bound(found, runs, false) > 0.01)
			CHECK_FAIL("setting %zu: %u of %u evaluations report something", i, found, runs);
		if (!is_quiet && i < promised && bound(found, runs, true) < want)
			CHECK_FAIL("setting %zu: found in %u of %u", i, found, runs);
	}
}

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

TEST(quiet)
{
	run_table(quiet, COUNT(quiet), COUNT(quiet) - QUIET_LONGER, 0);
}

TEST(apart)
{
	run_table(apart, COUNT(apart), APART_PROMISED, 0.99);
}

TEST(drift)
{
	run_table(drift, COUNT(drift), DRIFT_PROMISED, 0.95);
}

TEST(alone)
{
	run_table(alone, COUNT(alone), ALONE_PROMISED, 0.95);
}
