/*
 * Prints how far each rule for levels over windows (model.h) is from what pods really had: the mean
 * error and its root mean square, in percent, per scenario and window. Three pods have 10 each, and
 * are scraped every 10 s; each trial draws their staggers and where the window lies.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "tests/promql/levels/pods.h"

/* 2023-11-15, a whole day. */
#define DAY_NS (INT64_C(1700006400) * LEVELS_SECOND)
#define INTERVAL_NS (10 * LEVELS_SECOND)
#define PODS 3
#define PODS_MAX (2 * PODS)
#define TRIALS 2000
#define RULES 3

struct trial {
	struct draw d;
	int64_t min_ns, max_ns;
	struct levels_pod pods[PODS_MAX];
	unsigned n;
};

static void steady(struct trial *t)
{
	t->n = PODS;
}

static void jitter(struct trial *t)
{
	t->n = PODS;
	for (unsigned i = 0; i < PODS; i++)
		t->pods[i].jitter = 100;
}

static void misses(struct trial *t)
{
	t->n = PODS;
	for (unsigned i = 0; i < PODS; i++)
		t->pods[i].misses = 50;
}

static void replaced_at(struct trial *t, int64_t at_ns)
{
	t->n = PODS_MAX;
	for (unsigned i = 0; i < PODS; i++) {
		t->pods[i].dies_ns = at_ns;
		t->pods[PODS + i].born_ns = at_ns;
	}
}

static void replaced_in_middle(struct trial *t)
{
	replaced_at(t, t->min_ns + (t->max_ns - t->min_ns) / 2);
}

static void replaced_anywhere(struct trial *t)
{
	replaced_at(t, t->min_ns + draw_time(&t->d, t->max_ns - t->min_ns));
}

/* One of them; two are there all the time. */
static void lived_a_fifth(struct trial *t)
{
	int64_t fifth_ns = (t->max_ns - t->min_ns) / 5;

	t->n = PODS;
	t->pods[0].born_ns = t->min_ns + draw_time(&t->d, 4 * fifth_ns);
	t->pods[0].dies_ns = t->pods[0].born_ns + fifth_ns;
}

static void missed_at(struct trial *t, unsigned pods, int64_t from_ns, int64_t to_ns)
{
	t->n = PODS;
	for (unsigned i = 0; i < pods; i++) {
		t->pods[i].away_from_ns = from_ns;
		t->pods[i].away_to_ns = to_ns;
	}
}

static void missed_at_begin(struct trial *t)
{
	missed_at(t, 1, t->min_ns, t->min_ns + INTERVAL_NS);
}

static void missed_at_end(struct trial *t)
{
	missed_at(t, 1, t->max_ns - INTERVAL_NS, t->max_ns);
}

/* The server scrapes nothing for a minute; the pods are there. */
static void outage(struct trial *t)
{
	int64_t from_ns = t->min_ns + draw_time(&t->d, t->max_ns - t->min_ns);

	missed_at(t, PODS, from_ns, from_ns + LEVELS_MINUTE);
}

/* clang-format off */
static const struct {
	const char *name;
	void (*draw)(struct trial *t);
	int64_t shortest_ns; /* window in which it can happen */
} scenarios[] = {
	{ "steady",               steady,             0 },
	{ "up to 1 s late",       jitter,             0 },
	{ "5 % missed",           misses,             0 },
	{ "replaced in middle",   replaced_in_middle, 0 },
	{ "replaced anywhere",    replaced_anywhere,  0 },
	{ "one lived a fifth",    lived_a_fifth,      0 },
	{ "one missed at begin",  missed_at_begin,    0 },
	{ "one missed at end",    missed_at_end,      0 },
	{ "outage of 60 s",       outage,             5 * LEVELS_MINUTE },
};

static const struct {
	const char *name;
	int64_t length_ns;
	bool on_hour;
} windows[] = {
	{ "21s",        21 * LEVELS_SECOND, false },
	{ "30s",        30 * LEVELS_SECOND, false },
	{ "1m",         LEVELS_MINUTE,      false },
	{ "5m",         5 * LEVELS_MINUTE,  false },
	{ "1h",         LEVELS_HOUR,        false },
	{ "whole hour", LEVELS_HOUR,        true },
};

static const char *const rules[RULES] = {
	[RULE_SERVED] = "served", [RULE_HULL] = "hull", [RULE_BACKWARD] = "backward",
};
/* clang-format on */

#define WINDOWS (sizeof(windows) / sizeof(windows[0]))

/* ---- trials ---- */

static void draw_trial(struct trial *t, size_t scenario, size_t window)
{
	int64_t from_ns = DAY_NS + LEVELS_HOUR;

	t->min_ns = from_ns + (windows[window].on_hour ? 0 : draw_time(&t->d, LEVELS_HOUR));
	t->max_ns = t->min_ns + windows[window].length_ns;
	for (unsigned i = 0; i < PODS_MAX; i++)
		t->pods[i] = (struct levels_pod){ .born_ns = t->min_ns - LEVELS_MINUTE,
			.dies_ns = t->max_ns + LEVELS_MINUTE,
			.interval_ns = INTERVAL_NS,
			.stagger_ns = draw_time(&t->d, INTERVAL_NS),
			.value = 10 };
	scenarios[scenario].draw(t);
}

/* What the pods really had. */
static double trial_truth(const struct trial *t)
{
	int64_t sum_ns = 0;

	for (unsigned i = 0; i < t->n; i++) {
		const struct levels_pod *p = &t->pods[i];
		int64_t from_ns = p->born_ns > t->min_ns ? p->born_ns : t->min_ns;
		int64_t to_ns = p->dies_ns < t->max_ns ? p->dies_ns : t->max_ns;

		sum_ns += p->value * (to_ns - from_ns);
	}
	return (double)sum_ns / (double)(t->max_ns - t->min_ns);
}

struct errors {
	double sum, squares;
	unsigned n;
};

static void run_trial(struct trial *t, struct errors *errors)
{
	struct levels_series v[PODS_MAX] = { 0 };
	struct levels_window w = { .min_ns = t->min_ns, .max_ns = t->max_ns, .doubles = true };
	double truth = trial_truth(t), error;
	size_t rows;

	for (unsigned i = 0; i < t->n; i++)
		pod_scrapes(&t->d, &t->pods[i], &v[i]);
	for (unsigned rule = 0; rule < RULES; rule++) {
		w.rule = (enum levels_rule)rule;
		error = (double)levels_mean(v, t->n, w, &rows) / truth - 1;
		if (rows == 0)
			continue;
		errors[rule].sum += error;
		errors[rule].squares += error * error;
		errors[rule].n++;
	}
	levels_release(v, t->n);
}

static void run_scenario(size_t scenario)
{
	static struct errors errors[WINDOWS][RULES];

	for (size_t k = 0; k < WINDOWS; k++) {
		struct trial t = { .d = { .state = 1 + k } };

		for (unsigned rule = 0; rule < RULES; rule++)
			errors[k][rule] = (struct errors){ 0 };
		if (windows[k].length_ns < scenarios[scenario].shortest_ns)
			continue;
		for (unsigned i = 0; i < TRIALS; i++) {
			draw_trial(&t, scenario, k);
			run_trial(&t, errors[k]);
		}
	}
	for (unsigned rule = 0; rule < RULES; rule++) {
		printf("%-20s %-9s", rule ? "" : scenarios[scenario].name, rules[rule]);
		for (size_t k = 0; k < WINDOWS; k++) {
			const struct errors *e = &errors[k][rule];

			if (e->n)
				printf(" %+7.2f %6.2f", 100 * e->sum / e->n, 100 * sqrt(e->squares / e->n));
			else
				printf(" %14s", "-");
		}
		printf("\n");
	}
}

int main(void)
{
	printf("%-20s %-9s", "error, %", "");
	for (size_t k = 0; k < WINDOWS; k++)
		printf(" %14s", windows[k].name);
	printf("\n%-20s %-9s", "", "");
	for (size_t k = 0; k < WINDOWS; k++)
		printf(" %7s %6s", "mean", "rms");
	printf("\n");
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		run_scenario(i);
	return 0;
}
