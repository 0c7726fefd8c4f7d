/*
 * changed() where people see a change: sides that are apart, slow drifts, one pod of ten. Made up
 *as in changed_sim_test.c, and run as that is:
 *
 *	EPI_VERDICT_PAIRS=1000 build/tests/promql/changed/seen_sim_test apart
 *
 * The other tables: quiet (nothing changed; shocks of at most three slices, then longer ones),
 * sequence (end times a slice apart in one long run), drift, alone.
 */
#include "tests/check.h"
#include "tests/promql/changed/changed_service.h"
#include "tests/promql/trial.h"

struct tally {
	unsigned found, anything; /* of the planted function; of any */
	unsigned apart, apart_found; /* whose slices do not overlap */
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
	in.changed_only = o->kind == LARGE;
	CHECK_OK(changed_judge(&a, &in, &out, &err), &err);
	for (size_t k = 0; k < out.n && !o->alone; k++) {
		const struct change *c = &out.v[k];

		if (c->function != s.planted)
			continue;
		hit = change_is_proved(c);
		tally->words[c->word]++;
		tally->apart += c->apart;
		tally->apart_found += c->apart && hit;
	}
	for (size_t k = 0; k < out.alone_n && o->alone; k++)
		hit |= out.alone[k].change.function == s.planted && out.alone[k].series == 0;
	tally->found += hit;
	tally->anything += out.changed_n + out.alone_n > 0;
	arena_release(&a);
}

static unsigned run(size_t at, const struct setting *o, unsigned runs)
{
	struct tally tally = { 0 };
	unsigned n;

	state = trial_seed(at);
	for (unsigned i = 0; i < runs; i++)
		judge_setting(o, &tally);
	n = o->planted > 0 ? tally.found : tally.anything;
	if (trial_is_table()) {
		printf("| %zu %s | %u | %u/%u of %us | %u | %.2f | %s |", at, kinds[o->kind].name, o->pods,
			o->new_slices, o->base_slices, o->slice_s, o->gap, o->phi,
			o->replaced ? "others" : "the same");
		if (o->planted > 0)
			printf(" %.1f to %.1f %% |", 100 * o->share, 100 * (o->share + o->planted));
		printf(" %u of %u | %.2f to %.2f %% |", n, runs, 100 * trial_bound(n, runs, false),
			100 * trial_bound(n, runs, true));
		if (o->planted > 0 && !o->alone && !o->drift)
			printf(" %u of %u |", tally.apart_found, tally.apart);
		if (o->drift > 0)
			printf(
				" rises %u, changed %u |", tally.words[CHANGE_RISES], tally.words[CHANGE_CHANGED]);
		printf("\n");
	}
	return n;
}

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

/* clang-format off */
static const struct setting quiet[] = {
	/* kind, pods, slices of new and base, seconds, phi, others */
	{ POD, 1, 10, 10, 60, 0.00, false },
	{ POD, 1, 10, 10, 60, 0.50, false },
	{ POD, 1, 10, 10, 60, 0.65, false },
	{ SMALL, 1, 10, 10, 60, 0.65, false },
	{ POD, 1, 15, 15, 60, 0.65, false },
	{ POD, 1, 10, 60, 60, 0.50, false },
	{ POD, 1, 10, 60, 60, 0.65, false },
	{ POD, 10, 10, 10, 60, 0.50, false },
	{ POD, 10, 10, 60, 60, 0.50, false },
	{ POD, 10, 10, 60, 60, 0.65, false },
	{ LARGE, 1, 10, 10, 60, 0.65, false },
	{ LARGE, 3, 10, 60, 60, 0.65, false },
	{ BURSTY, 1, 10, 10, 60, 0.65, false },
	{ FEW, 1, 10, 10, 60, 0.50, false },
	/* not promised: other pods, so few functions with such shocks, longer shocks */
	{ POD, 1, 10, 10, 60, 0.65, true },
	{ FEW, 1, 10, 10, 60, 0.65, false },
	{ POD, 1, 10, 10, 60, 0.80, false },
	{ POD, 1, 10, 10, 30, 0.80, false },
	{ POD, 1, 10, 10, 60, 0.90, false },
	{ POD, 10, 10, 60, 60, 0.80, false },
};
#define QUIET_BEYOND 6
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
		unsigned runs = trial_runs(is_large || v[i].pods > 3 ? 3 :
						 check_is_short()                    ? 5 :
															   20),
				 found;

		if (!trial_is_asked_for(i) || (i >= promised && !trial_is_table()))
			continue;
		runs = trial_is_table() && is_large ? runs / 4 / v[i].pods : runs;
		found = run(i, &v[i], runs);
		if (is_quiet && i < promised && trial_bound(found, runs, false) > 0.01)
			CHECK_FAIL("setting %zu: %u of %u evaluations report something", i, found, runs);
		if (!is_quiet && i < promised && trial_bound(found, runs, true) < want)
			CHECK_FAIL("setting %zu: found in %u of %u", i, found, runs);
	}
}

/* ---- end times that follow each other ---- */

#define ENDS 40

/* Two pods that run for as long, of which one costs more in all slices. */
static void make_sequence(const struct setting *o, struct arena *a,
	struct change_observation (*v)[SLICES_MAX], unsigned slices)
{
	make_service(o);
	for (unsigned k = 0; k < 2; k++) {
		double load = exp(s.kind->load * normal());

		make_pod(o);
		for (unsigned t = 0; t < slices; t++) {
			v[k][t] = (struct change_observation){ .series = k };
			observe(a, o, t, load, k ? 0 : o->planted, &v[k][t]);
		}
	}
}

/* Whether the function is found in the slices from `first` on. */
static bool judge_end(
	const struct setting *o, struct change_observation (*v)[SLICES_MAX], unsigned first)
{
	struct change_input in = { .functions_n = kinds[o->kind].functions,
		.series_n = 2,
		.quantum = 1,
		.p = 0.01,
		.changed_only = true };
	struct change_output out;
	bool hit = false;
	struct arena a;
	struct err err;

	for (unsigned k = 0; k < 2; k++) {
		unsigned n = k ? o->base_slices : o->new_slices;

		for (unsigned t = 0; t < n; t++)
			v[k][first + t].slice = t;
		in.side[k] = (struct change_side){ .v = &v[k][first], .n = n, .slices_n = n };
	}
	arena_init(&a, 0);
	CHECK_OK(changed_judge(&a, &in, &out, &err), &err);
	for (size_t i = 0; i < out.changed_n; i++)
		hit |= out.v[i].function == s.planted;
	arena_release(&a);
	return hit;
}

/* Runs in which it is missed at more than two end times in a row. */
static unsigned run_sequence(size_t at, const struct setting *o, unsigned runs)
{
	static struct change_observation v[2][SLICES_MAX];
	unsigned found = 0, gaps = 0, longest = 0;

	state = trial_seed(at);
	for (unsigned i = 0; i < runs; i++) {
		unsigned row = 0, most = 0;
		struct arena a;

		arena_init(&a, 0);
		make_sequence(o, &a, v, o->new_slices + ENDS - 1);
		for (unsigned first = 0; first < ENDS; first++) {
			bool hit = judge_end(o, v, first);

			found += hit;
			row = hit ? 0 : row + 1;
			most = row > most ? row : most;
		}
		gaps += most > 2;
		longest = most > longest ? most : longest;
		arena_release(&a);
	}
	if (trial_is_table())
		printf("| %zu %s | %.2f | %.1f to %.1f %% | %u of %u | %u of %u | %.2f to %.2f %% | %u |\n",
			at, kinds[o->kind].name, o->phi, 100 * o->share, 100 * (o->share + o->planted), found,
			runs * ENDS, gaps, runs, 100 * trial_bound(gaps, runs, false),
			100 * trial_bound(gaps, runs, true), longest);
	return gaps;
}

/* clang-format off */
static const struct setting sequence[] = {
	{ POD, 1, 10, 10, 60, 0.00, true, 0.05, 0.23, ENDS - 11 },
	{ POD, 1, 10, 10, 60, 0.50, true, 0.05, 0.23, ENDS - 11 },
	{ POD, 1, 10, 10, 60, 0.65, true, 0.05, 0.23, ENDS - 11 },
	{ DEMO, 1, 10, 10, 60, 0.50, true, 0.05, 0.23, ENDS - 11 },
};
/* clang-format on */

TEST(sequence)
{
	for (size_t i = 0; i < COUNT(sequence); i++) {
		unsigned runs = trial_runs(check_is_short() ? 2 : 5), gaps;

		if (!trial_is_asked_for(i))
			continue;
		gaps = run_sequence(i, &sequence[i], runs);
		if (trial_bound(gaps, runs, false) > 0.05)
			CHECK_FAIL(
				"setting %zu: missed more than twice in a row in %u of %u runs", i, gaps, runs);
	}
}

TEST(quiet)
{
	run_table(quiet, COUNT(quiet), COUNT(quiet) - QUIET_BEYOND, 0);
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
