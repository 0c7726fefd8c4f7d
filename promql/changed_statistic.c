/*
 * What is compared is a function's mean share on each side, D = new - base. Its variance has four
 * sources, and each is estimated where it can be seen:
 *
 *  1. Sampling. A share stands on counted samples; their variance is known from the share and from
 *     the totals (Poisson), taken at the share of both sides together, as if nothing had changed.
 *  2. Shocks that pass: the machine's load, the mix of requests. They last longer than a slice, so
 *     slices next to each other are alike, and a mean of ten stands on fewer than ten. Their
 *     persistence phi is estimated once for all functions, from the first autocovariance of
 *     their shares beyond sampling, corrected for what subtracting a mean from few values does, and
 *     raised by a margin. With it, each function's slices become innovations, whose variance has as
 *     many degrees of freedom as there are slices (less two a side); it is not believed below what
 *     the functions have in common, relative to their shares. (A window of ten slices cannot tell
 *     each function's own phi; a t value for a thousand functions would then be some hundred.)
 *  3. Series that differ for good. Where the same series stand on both sides each is compared with
 *     itself; should the spread of their differences be more than 1, 2 explain, it stands in their
 *     place. Else the spread of the series' means on each side adds to the rest.
 *  4. Bursts: samples that come together (a call of 50 ms is five samples). A function's counts are
 *     divided by their dispersion over series and slices, and must differ by the exact binomial
 *     test as well: that is what keeps rare functions quiet, where a t value means little.
 *
 * Degrees of freedom of sums are Satterthwaite's. Functions with so few samples that no split of
 * them over the sides could be significant are not tested and do not count (Tarone); the others
 * share p by Holm's procedure. So, as far as the above holds, at most p of evaluations report
 * anything where nothing changed.
 *
 * Source: Newey and West, Econometrica 55 (1987), and Andrews and Monahan, Econometrica 60 (1992):
 * prewhitening; Cameron, Gelbach and Miller, J. Bus. Econ. Stat. 29 (2011): two dimensions of
 * clusters; Tarone, Biometrics 46 (1990); Holm, Scand. J. Stat. 6 (1979).
 */
#include "promql/changed_statistic.h"

#include <math.h>
#include <stdlib.h>

#include "promql/changed_internal.h"
#include "promql/student.h"

#define SPREAD_SERIES_MIN 4 /* paired: fewer do not show a spread */
#define SPREAD_DEVIATIONS 3 /* paired: a spread within what its own estimate errs is none */

bool changed_is_stopped(const struct judge *j)
{
	return j->in->stop && atomic_load_explicit(j->in->stop, memory_order_relaxed);
}

double changed_pooled_share(const struct judge *j, const struct track *t)
{
	return (t->cost[0] + t->cost[1]) / (j->side[0].all + j->side[1].all);
}

/* ---- counts ---- */

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Variance of a function's costs over their mean: of Poisson's samples, what one costs. */
static double dispersion_of(const struct judge *j, const struct track *t)
{
	double chi = 0, n = 0;

	for (unsigned k = 0; k < 2; k++) {
		const struct side *s = &j->side[k];

		if (!(t->cost[k] > 0))
			continue;
		chi += t->squares[k] * s->all / t->cost[k] - t->cost[k];
		n += s->cells_n - 1;
	}
	return n > 0 ? fmax(chi / n, 0) : 0;
}

/* What a sample costs: as given, else half of the functions disperse by more than it. */
static enum err_code find_quantum(struct judge *j, struct err *err)
{
	double *v = arena_array(j->arena, double, (size_t)j->in->functions_n + 1);
	size_t n = 0;

	if (!v)
		return arena_fail(j->arena, "query", err);
	for (uint32_t f = 0; f < j->in->functions_n; f++)
		if (j->tracks[f].cost[0] + j->tracks[f].cost[1] > 0)
			v[n++] = dispersion_of(j, &j->tracks[f]);
	qsort(v, n, sizeof(*v), ascending);
	j->quantum = j->in->quantum;
	if (!(j->quantum > 0))
		j->quantum = n > 0 && v[n / 2] > 1 ? v[n / 2] : 1; /* costs are whole numbers */
	for (unsigned k = 0; k < 2; k++)
		j->side[k].sampling *= j->quantum;
	return ERR_OK;
}

static enum change_verdict verdict_of(const struct judge *j)
{
	const struct side *new_side = &j->side[0], *base = &j->side[1];

	if (new_side->slices == 0)
		return CHANGE_NO_NEW;
	if (base->slices == 0)
		return CHANGE_NO_BASE;
	if (new_side->slices < CHANGE_SLICES_MIN)
		return CHANGE_SHORT_NEW;
	return base->slices < CHANGE_SLICES_MIN ? CHANGE_SHORT_BASE : CHANGE_JUDGED;
}

/* ---- one function ---- */

/* The spread of series, as a variance of D; *freedom 0: it cannot be seen. */
static double spread_of_series(const struct judge *j, const struct track *t, double *freedom)
{
	double unit[2] = { 0 }, known[2] = { 0 }, v = 0, inverse = 0;
	unsigned sides = j->out->paired ? 1 : 2;

	*freedom = 0;
	if (j->out->paired && j->side[0].series_n < SPREAD_SERIES_MIN)
		return 0;
	for (unsigned k = 0; k < sides; k++) {
		const struct side *s = &j->side[k];
		double r = j->out->paired ? t->difference : t->share[k];

		if (!(s->spread_unit > 0) || s->series_n < 2)
			continue;
		unit[k] = (t->spread[k] - 2 * r * t->mean[k] + r * r * s->weights2) /
			s->spread_unit;
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

static double p_of_counts(const struct judge *j, const struct track *t)
{
	double dispersion = fmax(dispersion_of(j, t), j->quantum);
	double a = t->cost[0] / dispersion, b = t->cost[1] / dispersion;
	double part = j->side[0].all / (j->side[0].all + j->side[1].all);

	return fmin(1, 2 * fmin(binomial_at_least(a, a + b, part),
		binomial_at_least(b, a + b, 1 - part)));
}

static void judge_function(struct judge *j, uint32_t f)
{
	struct track *t = &j->tracks[f];
	double share = changed_pooled_share(j, t), time, spread, v, freedom, extra;
	double sampling = share * (j->side[0].sampling + j->side[1].sampling);

	t->difference = t->share[0] - t->share[1];
	time = changed_shock(j, f) * j->inflation + sampling;
	spread = spread_of_series(j, t, &extra);
	j->out->series_spread |= extra > 0;
	v = time;
	freedom = j->freedom;
	if (extra > 0 && j->out->paired &&
		spread > time * (1 + SPREAD_DEVIATIONS * sqrt(2 / extra))) {
		v = spread;
		freedom = fmin(freedom, extra);
	} else if (extra > 0 && !j->out->paired && spread > sampling) {
		/* The spread holds sampling, too: once is enough. */
		spread -= sampling;
		v = time + spread;
		freedom = v * v / (time * time / j->freedom + spread * spread / extra);
	}
	t->p = student_two_sided(fabs(t->difference) / sqrt(v), freedom);
	t->p = fmax(t->p, p_of_counts(j, t));
}

/* ---- all functions ---- */

/*
 * Which functions are tested. k is the least number of tests such that no more functions than k
 * could have a p of p / k, however their samples were split.
 */
static enum err_code choose_tested(struct judge *j, struct err *err)
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

		t->least = samples < CHANGE_SAMPLES_MIN ? 2 :
							  2 * pow(fmin(part, 1 - part), samples);
		if (t->least <= 1)
			least[m++] = t->least;
	}
	qsort(least, m, sizeof(*least), ascending);
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

static int by_p(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->p != y->p)
		return x->p < y->p ? -1 : 1;
	return (x->function > y->function) - (x->function < y->function);
}

static int by_magnitude(const void *a, const void *b)
{
	const struct change *x = a, *y = b;
	double dx = fabs(x->difference), dy = fabs(y->difference);

	if (dx != dy)
		return dx > dy ? -1 : 1;
	return (x->function > y->function) - (x->function < y->function);
}

static enum err_code judge_all(struct judge *j, struct err *err)
{
	struct change_output *out = j->out;
	size_t n = 0;

	if (!(out->v = arena_array(j->arena, struct change, (size_t)out->tested_n + 1)))
		return arena_fail(j->arena, "query", err);
	for (uint32_t f = 0; f < j->in->functions_n; f++) {
		if (!j->tracks[f].tested)
			continue;
		if (f % 1024 == 0 && changed_is_stopped(j))
			return err_set(err, ERR_CANCELED, "canceled");
		judge_function(j, f);
		out->v[n++] = (struct change){ f, j->tracks[f].difference, j->tracks[f].p };
	}
	qsort(out->v, n, sizeof(*out->v), by_p);
	while (out->n < n && out->v[out->n].p <= j->in->p / (double)(n - out->n))
		out->n++;
	qsort(out->v, out->n, sizeof(*out->v), by_magnitude);
	return ERR_OK;
}

enum err_code changed_judge(struct arena *a, const struct change_input *in,
	struct change_output *out, struct err *err)
{
	struct judge j = { .arena = a, .in = in, .out = out };
	enum err_code rc;

	*out = (struct change_output){ 0 };
	if ((rc = changed_sides_init(&j, err)))
		return rc;
	if ((out->verdict = verdict_of(&j)) != CHANGE_JUDGED)
		return ERR_OK;
	changed_weigh(&j);
	if ((rc = changed_read(&j, err)) || (rc = find_quantum(&j, err)) ||
		(rc = choose_tested(&j, err)))
		return rc;
	changed_find_shocks(&j);
	return judge_all(&j, err);
}
