/*
 * Compares a function's mean share on each side, D = new - base. Its variance has four sources, and
 * each is estimated from the data that shows it:
 *
 *  1. Sampling. A share is computed from counted samples. Their variance is known from the share
 *     and from the totals (Poisson), taken at the share of both sides together, as if nothing had
 *     changed.
 *  2. Shocks that pass: the machine's load, the mix of requests. They last longer than a slice, so
 *     slices next to each other are alike, and a mean of ten slices has less than ten slices of
 *     evidence. Ten slices are too few to estimate how long and how strong shocks are: a judgement
 *     by one such estimate misses clear changes, or reports some that are not there. So shocks.c
 *     gives each possibility a weight, from all functions and from the function's own path, and D
 *     must exceed all of them together.
 *  3. Series that differ permanently. A series that is on both sides is compared with itself. If
 *     the spread of these differences is more than 1 and 2 explain, it replaces them. For other
 *     series the spread of their means on each side is added.
 *  4. Bursts: samples that come together (a call of 50 ms is five samples). A function's counts are
 *     divided by their dispersion over series and slices, and must differ by the exact binomial
 *     test as well. That keeps rare functions quiet.
 *
 * Functions with so few samples that no split of them over the sides could be significant are not
 * tested and do not count (Tarone). The m others share p evenly (Bonferroni). An interval reaches
 * as far from D as D would be from 0 with a chance of p / m. So a function changed if its interval
 * does not contain 0, and all intervals hold together. If nothing changed, at most p of evaluations
 * report anything, as far as the above holds. A rare function's interval comes from the bounds of
 * each side's count, by Wilson.
 *
 * Source: Whittle, J. R. Stat. Soc. B 15 (1953): likelihood from a path's waves; Efron, J. Am.
 * Stat. Assoc. 99 (2004): many tests together as the measure of each; Satterthwaite, Biometrics
 * Bull. 2 (1946): degrees of freedom of sums; Tarone, Biometrics 46 (1990); Wilson, J. Am. Stat.
 * Assoc. 22 (1927).
 */
#include "promql/changed/statistic.h"

#include <math.h>
#include <stdlib.h>

#include "promql/changed/internal.h"
#include "promql/changed/student.h"

#define SPREAD_SERIES_MIN 4 /* paired: fewer do not show a spread */
#define SPREAD_DEVIATIONS 3 /* paired: a spread within its own error is none */

bool changed_is_stopped(const struct judge *j)
{
	return j->in->stop && atomic_load_explicit(j->in->stop, memory_order_relaxed);
}

double changed_pooled_share(const struct judge *j, const struct track *t)
{
	return (t->cost[0] + t->cost[1]) / (j->side[0].all + j->side[1].all);
}

/* ---- counts ---- */

int changed_ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * The variance of a function's costs over their mean. For Poisson's samples it is the cost of one.
 */
static double statistic_dispersion_of(const struct judge *j, const struct track *t)
{
	double chi = 0, n = 0;

	for (unsigned k = 0; k < 2; k++) {
		const struct changed_side *s = &j->side[k];

		if (!(t->cost[k] > 0))
			continue;
		chi += t->squares[k] * s->all / t->cost[k] - t->cost[k];
		n += s->cells_n - 1;
	}
	return n > 0 ? fmax(chi / n, 0) : 0;
}

/* The cost of a sample: as given, else the dispersion that half of the functions exceed. */
static enum err_code statistic_find_quantum(struct judge *j, struct err *err)
{
	double *v = arena_array(j->arena, double, (size_t)j->in->functions_n + 1);
	size_t n = 0;

	if (!v)
		return arena_fail(j->arena, "query", err);
	for (uint32_t f = 0; f < j->in->functions_n; f++)
		if (j->tracks[f].cost[0] + j->tracks[f].cost[1] > 0)
			v[n++] = statistic_dispersion_of(j, &j->tracks[f]);
	qsort(v, n, sizeof(*v), changed_ascending);
	j->quantum = j->in->quantum;
	if (!(j->quantum > 0))
		j->quantum = n > 0 && v[n / 2] > 1 ? v[n / 2] : 1; /* costs are whole numbers */
	for (unsigned k = 0; k < 2; k++)
		j->side[k].sampling *= j->quantum;
	return ERR_OK;
}

static enum change_verdict statistic_verdict_of(const struct judge *j)
{
	const struct changed_side *new_side = &j->side[0], *base = &j->side[1];

	if (new_side->slices == 0)
		return CHANGE_NO_NEW;
	if (base->slices == 0)
		return CHANGE_NO_BASE;
	if (new_side->slices < CHANGE_SLICES_MIN)
		return CHANGE_SHORT_NEW;
	return base->slices < CHANGE_SLICES_MIN ? CHANGE_SHORT_BASE : CHANGE_JUDGED;
}

/* ---- one function ---- */

static double statistic_difference_of(const struct track *t)
{
	return t->share[0] - t->share[1];
}

/* The spread of series, as a variance of D; *freedom 0: it cannot be seen. */
static double statistic_spread_of_series(
	const struct judge *j, const struct track *t, double *freedom)
{
	double unit[2] = { 0 }, known[2] = { 0 }, v = 0, inverse = 0;
	unsigned sides = j->out->paired ? 1 : 2;

	*freedom = 0;
	if (j->out->paired && j->side[0].series_n < SPREAD_SERIES_MIN)
		return 0;
	for (unsigned k = 0; k < sides; k++) {
		const struct changed_side *s = &j->side[k];
		double r = j->out->paired ? statistic_difference_of(t) : t->share[k];

		if (!(s->spread_unit > 0) || s->series_n < 2)
			continue;
		unit[k] = (t->spread[k] - 2 * r * t->mean[k] + r * r * s->weights2) / s->spread_unit;
		unit[k] = fmax(unit[k], 0);
		known[k] = s->weights2 * s->weights2 / s->weights4 - 1;
	}
	if (known[0] <= 0 && known[1] <= 0)
		return 0;
	for (unsigned k = 0; k < sides; k++) {
		unsigned from = known[k] > 0 ? k : 1 - k; /* a single series spreads as the others do */
		double part = unit[from] * j->side[k].weights2;

		v += part;
		inverse += part * part / known[from];
	}
	*freedom = inverse > 0 ? v * v / inverse : fmax(known[0], known[1]);
	return v;
}

static double statistic_p_of_counts(const struct judge *j, const struct track *t)
{
	double dispersion = fmax(statistic_dispersion_of(j, t), j->quantum);
	double a = t->cost[0] / dispersion, b = t->cost[1] / dispersion;
	double part = j->side[0].all / (j->side[0].all + j->side[1].all);

	return fmin(
		1, 2 * fmin(binomial_at_least(a, a + b, part), binomial_at_least(b, a + b, 1 - part)));
}

/* Adds the variance between series to the variance in time. */
static void statistic_add_series(struct judge *j, const struct track *t, struct mixture *m)
{
	double extra, spread = statistic_spread_of_series(j, t, &extra), time = 0;

	j->out->series_spread |= extra > 0;
	for (unsigned i = 0; i < MIXTURE_MAX; i++)
		time += m->weight[i] * m->variance[i];
	if (!(extra > 0))
		return;
	if (j->out->paired && spread > time * (1 + SPREAD_DEVIATIONS * sqrt(2 / extra))) {
		*m = (struct mixture){ .least = m->least };
		m->weight[0] = 1;
		m->variance[0] = spread;
		m->freedom[0] = extra;
	} else if (!j->out->paired) {
		/*
		 * The spread includes sampling, which counts only once; its error is that of the whole
		 * spread.
		 */
		for (unsigned i = 0; i < MIXTURE_MAX; i++) {
			double all = m->variance[i] + fmax(spread - m->least, 0);

			m->variance[i] = all;
			m->freedom[i] = all * all / (spread * spread / extra);
		}
	}
}

/* How far chance reaches with the first phis_n persistences. */
static double judge_reach(struct judge *j, uint32_t function, unsigned phis_n, double p)
{
	struct mixture m;

	changed_mix(j, function, phis_n, &m);
	statistic_add_series(j, &j->tracks[function], &m);
	return mixture_reach(&m, p);
}

/* The function's interval; if only changes are wanted, it may be wider than it need be. */
static void judge_function(struct judge *j, uint32_t function, double p, struct change *out)
{
	struct track *t = &j->tracks[function];
	double share = changed_pooled_share(j, t), reach, by_counts;
	double sampling = share * (j->side[0].sampling + j->side[1].sampling);

	*out = (struct change){
		.function = function, .difference = statistic_difference_of(t), .low = -1, .high = 1
	};
	if (j->in->changed_only && fabs(out->difference) < j->deviations * sqrt(sampling))
		return;
	out->apart = changed_is_apart(j, function);
	reach = judge_reach(j, function, PHIS, p);
	if (fabs(out->difference) <= reach && out->apart) {
		double part = fmax(p, fmin(p * APART_TIMES, j->in->p * APART_PART));
		double shorter = judge_reach(j, function, PHIS_SHORT, part);

		out->short_shocks = fabs(out->difference) > shorter;
		reach = out->short_shocks ? shorter : reach;
	}
	/* If counts alone are less certain of the difference, the interval is widened to match them. */
	if (fabs(out->difference) > reach && (by_counts = statistic_p_of_counts(j, t)) > p)
		reach = fabs(out->difference) * j->deviations / fmax(normal_reach(by_counts), 0.1);
	out->low = fmax(out->difference - reach, -1);
	out->high = fmin(out->difference + reach, 1);
}

/* Too rare to be tested: how much more than on the other side could it be on each? */
static void statistic_bound_function(
	struct judge *j, uint32_t function, double p, struct change *out)
{
	const struct track *t = &j->tracks[function];
	double most[2], dispersion = fmax(statistic_dispersion_of(j, t), j->quantum);

	for (unsigned k = 0; k < 2; k++)
		most[k] = share_reach(t->cost[k] / dispersion, j->side[k].all / dispersion, p);
	*out = (struct change){ .function = function,
		.word = CHANGE_SAME,
		.difference = statistic_difference_of(t),
		.low = -most[1],
		.high = most[0] };
	out->low = fmin(out->low, out->difference);
	out->high = fmax(out->high, out->difference);
}

/* ---- all functions ---- */

/*
 * Chooses the functions that are tested. k is the least number of tests such that at most k
 * functions could have a p of p / k, however their samples were split.
 */
static enum err_code statistic_choose_tested(struct judge *j, struct err *err)
{
	const uint32_t n = j->in->functions_n;
	double *least = arena_array(j->arena, double, (size_t)n + 1);
	double part = j->side[0].all / (j->side[0].all + j->side[1].all);
	uint32_t m = 0, k = 1, able;

	if (!least)
		return arena_fail(j->arena, "query", err);
	for (uint32_t f = 0; f < n; f++) {
		struct track *t = &j->tracks[f];
		double samples = (t->cost[0] + t->cost[1]) / j->quantum;

		t->least = samples < CHANGE_SAMPLES_MIN ? 2 : 2 * pow(fmin(part, 1 - part), samples);
		if (t->least <= 1)
			least[m++] = t->least;
	}
	qsort(least, m, sizeof(*least), changed_ascending);
	for (able = m; able > 0; k++) {
		while (able > 0 && least[able - 1] > j->in->p / k)
			able--;
		if (able <= k)
			break;
	}
	for (uint32_t f = 0; f < n; f++) {
		j->tracks[f].tested = j->tracks[f].least <= j->in->p / k;
		j->out->tested_n += j->tracks[f].tested;
	}
	return ERR_OK;
}

double change_reach(const struct change *c)
{
	return fmax(-c->low, c->high);
}

bool change_is_proved(const struct change *c)
{
	return c->word == CHANGE_CHANGED || c->word == CHANGE_RISES || c->word == CHANGE_FALLS;
}

static int statistic_by_word(const void *a, const void *b)
{
	const struct change *x = a, *y = b;
	bool changed = change_is_proved(x);
	double dx = changed ? fabs(x->difference) : change_reach(x);
	double dy = changed ? fabs(y->difference) : change_reach(y);

	if (changed != change_is_proved(y))
		return changed ? -1 : 1;
	if (dx != dy)
		return dx > dy ? -1 : 1;
	return (x->function > y->function) - (x->function < y->function);
}

static void judge_find_word(const struct judge *j, struct change *c)
{
	c->word = j->tracks[c->function].tested && c->low * c->high > 0 ? CHANGE_CHANGED :
		change_reach(c) > CHANGE_MATTERS                            ? CHANGE_UNKNOWN :
																	  CHANGE_SAME;
}

static enum err_code judge_all(struct judge *j, struct err *err)
{
	struct change_output *out = j->out;
	const uint32_t n = j->in->functions_n;
	double part = 1 - (j->drifts ? DRIFT_PART : 0) - (changed_may_be_alone(j) ? ALONE_PART : 0);
	double p = j->in->p * part / fmax(out->tested_n, 1);

	if (!(out->v = arena_array(j->arena, struct change, (size_t)n + 1)))
		return arena_fail(j->arena, "query", err);
	j->deviations = normal_reach(p);
	for (uint32_t f = 0; f < n; f++) {
		struct change *c = &out->v[out->n];
		struct track *t = &j->tracks[f];

		if (f % 256 == 0 && changed_is_stopped(j))
			return err_set(err, ERR_CANCELED, "canceled");
		if (!t->tested && !(t->cost[0] + t->cost[1] > 0))
			continue;
		if (t->tested)
			judge_function(j, f, p, c);
		else
			statistic_bound_function(j, f, j->in->p / n, c);
		c->share[0] = t->share[0];
		c->share[1] = t->share[1];
		judge_find_word(j, c);
		if (t->tested && j->drifts)
			changed_drift(j, f, statistic_dispersion_of(j, t), c);
		if (j->in->changed_only && !change_is_proved(c))
			continue;
		out->changed_n += change_is_proved(c);
		out->n++;
	}
	qsort(out->v, out->n, sizeof(*out->v), statistic_by_word);
	return ERR_OK;
}

enum err_code changed_judge(
	struct arena *a, const struct change_input *in, struct change_output *out, struct err *err)
{
	struct judge j = { .arena = a, .in = in, .out = out };
	enum err_code rc;

	*out = (struct change_output){ 0 };
	if ((rc = changed_sides_init(&j, err)))
		return rc;
	if ((out->verdict = statistic_verdict_of(&j)) != CHANGE_JUDGED)
		return ERR_OK;
	changed_weigh(&j);
	if ((rc = changed_read(&j, err)) || (rc = statistic_find_quantum(&j, err)) ||
		(rc = statistic_choose_tested(&j, err)))
		return rc;
	if ((rc = changed_find_shocks(&j, err)) || (rc = changed_find_drifts(&j, err)))
		return rc;
	rc = judge_all(&j, err);
	return rc ? rc : changed_find_alone(&j, err);
}
