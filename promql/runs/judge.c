/*
 * How repeated runs are judged.
 *
 * A count of a run varies for two reasons: a profiler samples, and runs differ. Both are in the
 * dispersion of a side: how far its runs are from their mean share, squared, over what chance alone
 * would make (the variance of a ratio estimator). Where counts are events it is at least 1, because
 * sampling is always there. Counts and totals are divided by it and then compared as if they were
 * binomial (shares) or Poisson (amounts): interval.h. Each side has its own dispersion, because a
 * busy machine on one side must not count for both; the degrees of freedom are those of Welch and
 * Satterthwaite.
 *
 * Worse: costs more than in base, for certain, and a change of the threshold's size is not
 * excluded. Of all verdicts together at most the part false_alarms is wrong if nothing changed, so
 * each of m gets false_alarms / m (Bonferroni).
 *
 * Not worse: a change of the threshold's size is excluded. One function that is at the threshold is
 * enough to make "nothing is worse" wrong, and it is excluded by chance in at most the part
 * `missed`, so nothing is divided by m here (an intersection-union test: Berger, Technometrics 24,
 * 1982).
 *
 * Shares add up to one, so what one function no longer costs makes the shares of all others
 * greater. If a share fell farther by a fourth than any rose, functions that cost less for certain
 * are left out of what the others are relative to. Else those that fell may be the echo of one that
 * rose, and stay.
 *
 * With a narrow interval one of both holds: it is worse if and only if its upper end is above the
 * threshold. If a function cannot be told, the advice is the number of runs that makes the interval
 * so narrow. Fewer runs do if the function did not change at all, or changed a lot.
 *
 * Sources: Cochran, Sampling Techniques (1977), 6.3 (ratio estimators); McCullagh and Nelder,
 * Generalized Linear Models (1989), 4.5 (dispersion); Welch, Biometrika 34 (1947); Satterthwaite,
 * Biometrics 2 (1946).
 */
#include "promql/runs/judge.h"

#include <math.h>
#include <string.h>

#include "promql/changed/student.h"
#include "promql/runs/interval.h"

#define RUNS_LEAST 2 /* a side; one run says nothing of noise */
/* Costs that are no events may be the same in each run; no less noise than this is believed. */
#define DEVIATION_LEAST 1e-3
#define FALL_OVER_RISE 1.25 /* less is chance, if two functions have nearly all costs */
#define KEPT_LEAST 0.05 /* of a side's costs: less is nothing that others could be relative to */

struct judging {
	const struct judge_options *o;
	const struct judge_side *sides;
	double alarms, missed; /* chances of one verdict */
	bool of_all; /* shares are of all that a run costs */
};

/* What is known of one function. */
struct judge_evidence {
	double count[2], total[2]; /* sums over runs; total: of runs where amounts are compared */
	double noise[2];
	double runs[2]; /* so many of equal length say as much */
	double variance[2]; /* of the logarithm of the cost, as far as this side makes it uncertain */
};

static double judge_weight(
	const struct judging *j, const struct judge_function *f, int side, size_t run)
{
	const struct judge_side *s = &j->sides[side];

	if (!j->o->shares)
		return 1;
	return j->of_all ? s->totals[run] : s->kept[run] + (f->is_cheaper ? f->counts[side][run] : 0);
}

/* The variance of a count over its mean, if chance alone makes it vary. */
static double judge_chance(const struct judging *j, double rate)
{
	return j->o->shares ? 1 - rate : 1;
}

static double judge_dispersion(
	const struct judging *j, const struct judge_function *f, int side, double count, double total)
{
	const double *counts = f->counts[side];
	size_t n = j->sides[side].n;
	double rate = count / total, chance = judge_chance(j, rate), sum = 0;
	double least = j->o->events ? 1 : DEVIATION_LEAST * DEVIATION_LEAST * count / (double)n;

	if (n < RUNS_LEAST)
		return 0;
	if (!(rate > 0) || !(chance > 0))
		return j->o->events ? 1 : 0;
	for (size_t i = 0; i < n; i++) {
		double miss = counts[i] - rate * judge_weight(j, f, side, i);

		sum += miss * miss;
	}
	return fmax(sum / (count * chance) * (double)n / (double)(n - 1), least);
}

static void judge_gather(
	const struct judging *j, const struct judge_function *f, struct judge_evidence *e)
{
	double rate;

	*e = (struct judge_evidence){ 0 };
	for (int s = 0; s < 2; s++) {
		double squares = 0;

		for (size_t i = 0; i < j->sides[s].n; i++) {
			double weight = judge_weight(j, f, s, i);

			e->count[s] += f->counts[s][i];
			e->total[s] += weight;
			squares += weight * weight;
		}
		e->runs[s] = e->total[s] * e->total[s] / squares;
		e->noise[s] = judge_dispersion(j, f, s, e->count[s], e->total[s]);
	}
	/* Costs that are no events: a side without any says nothing of its noise. */
	for (int s = 0; s < 2; s++)
		if (!j->o->events && !(e->count[s] > 0))
			e->noise[s] = e->noise[1 - s];
	rate = (e->count[0] + e->count[1]) / (e->total[0] + e->total[1]);
	for (int s = 0; s < 2; s++)
		e->variance[s] = fmax(e->noise[s], j->o->events ? 1 : 0) /
			(e->total[s] * rate * judge_chance(j, rate));
}

/* Degrees of freedom, with `more` runs a side. */
static double judge_freedom(const struct judging *j, const struct judge_evidence *e, double more)
{
	double sum = 0, squares = 0;

	for (int s = 0; s < 2; s++) {
		double n = (double)j->sides[s].n, v = e->variance[s] * n / (n + more);

		sum += v;
		squares += v * v / fmax(e->runs[s] * (n + more) / n - 1, 1);
	}
	return squares > 0 ? sum * sum / squares : 1;
}

static double judge_deviation(const struct judging *j, const struct judge_evidence *e, double more)
{
	double sum = 0;

	for (int s = 0; s < 2; s++) {
		double n = (double)j->sides[s].n;

		sum += e->variance[s] * n / (n + more);
	}
	return sqrt(sum);
}

/* Runs a side after which no cost is between the two verdicts. */
static bool judge_would_tell(const struct judging *j, const struct judge_evidence *e, double more)
{
	double freedom = judge_freedom(j, e, more);
	double reach = student_beyond(j->alarms, freedom) + student_beyond(j->missed, freedom);

	for (int s = 0; s < 2; s++)
		if ((double)j->sides[s].n + more < RUNS_LEAST)
			return false;
	return reach * judge_deviation(j, e, more) <= log1p(j->o->threshold);
}

static double judge_least_runs(
	bool (*enough)(const struct judging *, const struct judge_evidence *, double),
	const struct judging *j, const struct judge_evidence *e)
{
	double low = 0, high = 1;

	while (high < JUDGE_RUNS_MAX && !enough(j, e, high)) {
		low = high;
		high *= 2;
	}
	if (high >= JUDGE_RUNS_MAX)
		return JUDGE_RUNS_MAX;
	while (high - low > 1) {
		double mid = floor((low + high) / 2);

		if (enough(j, e, mid))
			high = mid;
		else
			low = mid;
	}
	return high;
}

static bool judge_has_noise(const struct judge_evidence *e)
{
	return e->noise[0] > 0 && e->noise[1] > 0;
}

/* ---- against base ---- */

/* Counts divided by their dispersion. */
static struct interval_counts judge_counts(const struct judging *j, const struct judge_evidence *e)
{
	struct interval_counts c = { .shares = j->o->shares };

	for (int s = 0; s < 2; s++) {
		c.count[s] = e->count[s] / e->noise[s];
		c.total[s] = e->total[s] / e->noise[s];
	}
	return c;
}

static void judge_change(
	const struct judging *j, const struct judge_evidence *e, struct judge_function *f)
{
	double freedom = judge_freedom(j, e, 0);

	f->ratio = exp(interval_estimate(&(const struct interval_counts){
		j->o->shares, { e->count[0], e->count[1] }, { e->total[0], e->total[1] } }));
	f->low = 0;
	f->high = INFINITY;
	f->verdict = JUDGE_CANNOT_TELL;
	if (judge_has_noise(e)) {
		struct interval_counts c = judge_counts(j, e);

		f->low = exp(interval_low(&c, student_beyond(j->alarms, freedom)));
		f->high = exp(interval_high(&c, student_beyond(j->missed, freedom)));
		if (f->high < 1 + j->o->threshold)
			f->verdict = JUDGE_NOT_WORSE;
		else if (f->low > 1)
			f->verdict = JUDGE_WORSE;
	}
	if (f->verdict == JUDGE_CANNOT_TELL)
		f->more_runs = judge_least_runs(judge_would_tell, j, e);
}

/* ---- against a budget ---- */

struct judge_budget {
	double count, total, noise, share, budget;
	size_t runs;
};

static bool judge_budget_would_tell(
	const struct judging *j, const struct judge_budget *b, double more)
{
	double n = (double)b->runs, grown = (n + more) / n / fmax(b->noise, 1e-300);
	double count = b->count * grown, total = b->total * grown, freedom = fmax(n + more - 1, 1);

	return n + more >= RUNS_LEAST &&
		(b->share > b->budget ?
				interval_share_low(count, total, student_beyond(j->alarms, freedom)) > b->budget :
				interval_share_high(count, total, student_beyond(j->missed, freedom)) <= b->budget);
}

static double judge_budget_runs(const struct judging *j, const struct judge_budget *b)
{
	double more = 1;

	while (more < JUDGE_RUNS_MAX && !judge_budget_would_tell(j, b, more))
		more = ceil(more * 1.1);
	return fmin(more, JUDGE_RUNS_MAX);
}

static void judge_against_budget(const struct judging *j, struct judge_function *f)
{
	struct judge_options shares = *j->o;
	struct judging own = *j;
	struct judge_evidence e;
	struct judge_budget b;

	shares.shares = true; /* a budget is a share, whatever is compared with base */
	own.o = &shares;
	own.of_all = true;
	judge_gather(&own, f, &e);
	b = (struct judge_budget){ e.count[1], e.total[1], e.noise[1], f->share[1], f->budget,
		j->sides[1].n };
	f->share_low = 0;
	f->share_high = 1;
	f->budget_verdict = JUDGE_CANNOT_TELL;
	if (b.noise > 0) {
		double freedom = fmax(e.runs[1] - 1, 1);

		f->share_low = interval_share_low(
			b.count / b.noise, b.total / b.noise, student_beyond(j->alarms, freedom));
		f->share_high = interval_share_high(
			b.count / b.noise, b.total / b.noise, student_beyond(j->missed, freedom));
		if (f->share_low > f->budget)
			f->budget_verdict = JUDGE_WORSE;
		else if (f->share_high <= f->budget)
			f->budget_verdict = JUDGE_NOT_WORSE;
	} else if (j->o->events) {
		b.noise = 1;
	}
	if (f->budget_verdict == JUDGE_CANNOT_TELL)
		f->more_runs = fmax(f->more_runs, judge_budget_runs(j, &b));
}

/* ---- all ---- */

static void judge_set_share(const struct judge_side sides[2], struct judge_function *f)
{
	for (int s = 0; s < 2; s++) {
		double count = 0, total = 0;

		for (size_t i = 0; i < sides[s].n; i++) {
			count += f->counts[s][i];
			total += sides[s].totals[i];
		}
		f->share[s] = count / total;
	}
}

static void judge_count(struct judge_result *r, enum judge_verdict v)
{
	r->worse += v == JUDGE_WORSE;
	r->cannot_tell += v == JUDGE_CANNOT_TELL;
	r->not_worse += v == JUDGE_NOT_WORSE;
	if (v > r->verdict)
		r->verdict = v;
}

/* What takes all of the costs has nothing that it could be relative to. */
static bool judge_is_compared(const struct judge_options *o, const struct judge_function *f)
{
	double share = (f->share[0] + f->share[1]) / 2;

	return o->threshold >= 0 && share > 0 && share >= o->least_share && !(o->shares && share >= 1);
}

static bool judge_is_certainly_cheaper(const struct judging *j, const struct judge_function *f)
{
	struct judge_evidence e;
	struct interval_counts c;

	if (!judge_is_compared(j->o, f))
		return false;
	judge_gather(j, f, &e);
	if (!judge_has_noise(&e))
		return false;
	c = judge_counts(j, &e);
	return interval_high(&c, student_beyond(j->alarms, judge_freedom(j, &e, 0))) < 0;
}

static void judge_leave_out_cheaper(
	const struct judging *j, struct judge_function *functions, size_t n)
{
	double fall = 0, rise = 0, left[2] = { 1, 1 };

	for (int s = 0; s < 2; s++)
		memcpy(j->sides[s].kept, j->sides[s].totals, j->sides[s].n * sizeof(double));
	for (size_t i = 0; i < n; i++) {
		functions[i].is_cheaper = false;
		fall = fmax(fall, functions[i].share[0] - functions[i].share[1]);
		rise = fmax(rise, functions[i].share[1] - functions[i].share[0]);
	}
	if (!j->o->shares || j->o->overlap || fall < FALL_OVER_RISE * rise)
		return;
	for (size_t i = 0; i < n; i++) {
		struct judge_function *f = &functions[i];

		if (!judge_is_certainly_cheaper(j, f) ||
			fmin(left[0] - f->share[0], left[1] - f->share[1]) < KEPT_LEAST)
			continue;
		f->is_cheaper = true;
		for (int s = 0; s < 2; s++)
			left[s] -= f->share[s];
	}
	for (size_t i = 0; i < n; i++)
		for (int s = 0; s < 2 && functions[i].is_cheaper; s++)
			for (size_t run = 0; run < j->sides[s].n; run++)
				j->sides[s].kept[run] = fmax(
					0, j->sides[s].kept[run] - functions[i].counts[s][run]);
}

void judge_runs(const struct judge_options *o, const struct judge_side sides[2],
	struct judge_function *functions, size_t n, struct judge_result *out)
{
	struct judging j = {
		.o = o, .sides = sides, .missed = o->missed > 0 ? o->missed : JUDGE_MISSED
	};
	size_t verdicts = 0;

	*out = (struct judge_result){ .verdict = JUDGE_LEFT_OUT };
	for (size_t i = 0; i < n; i++) {
		judge_set_share(sides, &functions[i]);
		verdicts += judge_is_compared(o, &functions[i]);
		verdicts += functions[i].budget >= 0;
	}
	j.alarms = (o->false_alarms > 0 ? o->false_alarms : JUDGE_FALSE_ALARMS) /
		(double)(verdicts ? verdicts : 1);
	judge_leave_out_cheaper(&j, functions, n);
	for (size_t i = 0; i < n; i++) {
		struct judge_function *f = &functions[i];
		struct judge_evidence e;

		f->verdict = f->budget_verdict = JUDGE_LEFT_OUT;
		f->more_runs = 0;
		judge_gather(&j, f, &e);
		f->noise[0] = e.noise[0];
		f->noise[1] = e.noise[1];
		if (judge_is_compared(o, f))
			judge_change(&j, &e, f);
		if (f->budget >= 0)
			judge_against_budget(&j, f);
		judge_count(out, f->verdict);
		judge_count(out, f->budget_verdict);
		out->more_runs = fmax(out->more_runs, f->more_runs);
	}
}
