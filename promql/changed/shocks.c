/*
 * The effect of passing shocks on the difference of two means.
 *
 * A function's path over a side's slices has two parts. Sampling is white noise, known from counts.
 * Shocks are an AR(1) with a persistence phi, and a variance that grows with the square of the
 * function's share. Cosines split a path into waves that are nearly independent of each other and
 * of the mean. phi and the variance give the expected square of each wave. So phi and the variance
 * form a lattice, and each pair has its likelihood. No pair is chosen: all pairs judge a
 * difference, each by its weight. Ten slices that may or may not be persistent count as both.
 *
 * If there are few functions with few samples, their paths do not show slow shocks. The differences
 * of the functions do, because such shocks move all functions. So the pool of the greatest
 * functions is weighed by its paths and by its differences. Each difference may be a change with a
 * chance of MAY_HAVE_CHANGED, and then tells little. The part of a difference that one function
 * gains and all others lose in proportion is taken away before. Every function begins with the
 * pool's weights. With little weight it may be more shaky, or have its own persistence; its own
 * path decides.
 *
 * The variance is in units of sampling, with a level for each factor of LEVEL_RATIO. Then the
 * expected squares are one table for all functions, and a function's likelihood is a product with
 * it.
 */
#include <math.h>

#include "promql/changed/internal.h"

#define WAVES_MAX 64 /* looked at, of a side */
#define WAVES_LOW 32 /* of them the slowest; the others lie evenly among the rest */
#define BANDS_MAX 12 /* waves of about the same speed */
#define BANDS_OF_A_DRIFT 2 /* the slowest, which have all but 2 % of a steady slope */
#define LEVELS 96
#define LEVEL_RATIO 1.5
#define LEVEL_LOWEST 1e-3 /* of sampling's variance */
#define STEPS 36 /* of the relative variance of shocks: deviations of 0.3 % to 380 % */
#define STEP_LOWEST 1e-5
#define POOL_MAX 24 /* functions */
#define MAY_HAVE_CHANGED 0.1 /* of functions */
#define MAY_DIFFER 0.05 /* of functions: their shocks are not as all others' are */
#define SHARES_APART 8 /* shares farther apart count as this far apart, for shocks */
#define WEIGHT_LEAST 1e-12

/* Beyond 0.8 a shock of ten slices looks like a change: it is hardly believed. */
static const double phis[PHIS] = { 0, 0.25, 0.5, 0.65, 0.8, 0.9, 0.96 };
static const double phi_part[PHIS] = { 0.23, 0.23, 0.23, 0.183, 0.115, 0.011, 0.001 };
/*
 * The chance that a function's shocks are so many levels above the pool's, beginning with one level
 * below. Their persistence is that of all functions, or, with the little weight of own_part, any
 * other.
 */
#define SHAKY 9
static const double common_part[SHAKY] = { 0.05, 0.62, 0.16, 0.1, 0.05, 0.015, 0.003, 0.001,
	0.001 };
static const double own_part = 0.0003 / SHAKY;

struct waves { /* of a side */
	double *basis; /* per wave and slice */
	unsigned n, bands_n;
	unsigned band[WAVES_MAX]; /* of a wave */
	double count[BANDS_MAX]; /* waves in a band */
	double expected[PHIS][BANDS_MAX]; /* of a wave's square, if shocks have variance 1 */
	double mean[PHIS]; /* variance of the mean then */
};

struct shocks {
	struct waves side[2];
	/*
	 * For a side's waves, with sampling as 1: the inverse of the expected squares, and their
	 * logarithms.
	 */
	double inverse[2][PHIS][LEVELS][BANDS_MAX];
	double logs[2][PHIS][LEVELS];
	double pool[PHIS][STEPS]; /* weights */
	double prior[PHIS][STEPS]; /* logarithms of weights */
};

struct path_energy {
	double of_band[2][BANDS_MAX]; /* squares over sampling's variance */
	double share[2];
};

/* The variance of the mean of n values of a process with phi and variance 1. */
static double shocks_variance_of_mean(double phi, double n)
{
	double sum = n, power = 1;

	for (double h = 1; h < n; h++) {
		power *= phi;
		sum += 2 * (n - h) * power;
	}
	return sum / (n * n);
}

/* By sampling, the variance of one slice of a share of 1. */
static double shocks_sampling_of_slice(const struct changed_side *s)
{
	return s->sampling * s->slices;
}

/* ---- the waves of a side ---- */

static unsigned shocks_band_of(unsigned wave)
{
	unsigned band = 0, first = 0, size = 1;

	for (; wave >= first + size && band + 1 < BANDS_MAX; band++) {
		first += size;
		if (band >= 3 && band % 2 == 1)
			size *= 2;
	}
	return band;
}

/* The square of a wave's part in a process with phi and variance 1. */
static double shocks_expected_square(const double *wave, size_t n, double phi)
{
	double sum = 0, before = 0;

	for (size_t t = 0; t < n; t++) {
		sum += wave[t] * (wave[t] + 2 * before);
		before = phi * (before + wave[t]);
	}
	return sum;
}

static enum err_code shocks_make_waves(
	struct judge *j, struct waves *w, const struct changed_side *s, struct err *err)
{
	size_t n = (size_t)s->slices, all = n - 1;

	w->n = all < WAVES_MAX ? (unsigned)all : WAVES_MAX;
	if (!(w->basis = arena_array(j->arena, double, w->n *n + 1)))
		return arena_fail(j->arena, "query", err);
	for (unsigned i = 0; i < w->n; i++) {
		double *wave = &w->basis[i * n];
		size_t speed = i + 1;

		if (all > WAVES_MAX && i >= WAVES_LOW)
			speed = WAVES_LOW + (i - WAVES_LOW + 1) * (all - WAVES_LOW) / (WAVES_MAX - WAVES_LOW);
		for (size_t t = 0; t < n; t++)
			wave[t] = sqrt(2 / (double)n) *
				cos(M_PI * (double)speed * ((double)t + 0.5) / (double)n);
		w->band[i] = shocks_band_of(i);
		w->count[w->band[i]]++;
		w->bands_n = w->band[i] + 1;
		for (unsigned p = 0; p < PHIS; p++)
			w->expected[p][w->band[i]] += shocks_expected_square(wave, n, phis[p]);
	}
	for (unsigned p = 0; p < PHIS; p++) {
		for (unsigned b = 0; b < w->bands_n; b++)
			w->expected[p][b] /= w->count[b];
		w->mean[p] = shocks_variance_of_mean(phis[p], s->slices);
	}
	return ERR_OK;
}

static double shocks_level_of(unsigned level)
{
	return LEVEL_LOWEST * pow(LEVEL_RATIO, level);
}

static void shocks_make_tables(struct shocks *s)
{
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < PHIS * LEVELS * BANDS_MAX; i++) {
			const struct waves *w = &s->side[k];
			unsigned p = i / BANDS_MAX / LEVELS, l = i / BANDS_MAX % LEVELS;
			unsigned b = i % BANDS_MAX;
			double v = 1 + shocks_level_of(l) * w->expected[p][b];

			s->inverse[k][p][l][b] = 1 / v;
			s->logs[k][p][l] += w->count[b] * log(v);
		}
}

/* ---- one path ---- */

static void shocks_take_apart(const struct judge *j, uint32_t function, struct path_energy *out)
{
	const struct track *track = &j->tracks[function];

	*out = (struct path_energy){ 0 };
	for (unsigned k = 0; k < 2; k++) {
		const struct changed_side *s = &j->side[k];
		const struct waves *w = &j->shocks->side[k];
		const double *path = &s->path[(size_t)function * s->in->slices_n];
		double sum[WAVES_MAX] = { 0 };
		size_t n = (size_t)s->slices, at = 0;

		out->share[k] = fmax(track->share[k], changed_pooled_share(j, track) / SHARES_APART);
		for (uint32_t t = 0; t < s->in->slices_n; t++) {
			if (!s->present[t])
				continue; /* slices without data are stepped over */
			for (unsigned i = 0; i < w->n; i++)
				sum[i] += path[t] * w->basis[i * n + at];
			at++;
		}
		for (unsigned i = 0; i < w->n; i++)
			out->of_band[k][w->band[i]] += sum[i] * sum[i] /
				(out->share[k] * shocks_sampling_of_slice(s));
	}
}

/* The level of a step on a side, for a function with that share. */
static unsigned shocks_level_at(
	const struct judge *j, const struct path_energy *e, unsigned at, unsigned step)
{
	double lowest = STEP_LOWEST * e->share[at] / shocks_sampling_of_slice(&j->side[at]);
	double level = step + round(log(lowest / LEVEL_LOWEST) / log(LEVEL_RATIO));

	return level < 0 ? 0 : level > LEVELS - 1 ? LEVELS - 1 : (unsigned)level;
}

/*
 * The logarithm of a path's likelihood by its bands from `first` on, without the terms that all
 * pairs share.
 */
static double shocks_likelihood(
	const struct judge *j, const struct path_energy *e, unsigned first, unsigned phi, unsigned step)
{
	double sum = 0;

	for (unsigned k = 0; k < 2; k++) {
		unsigned level = shocks_level_at(j, e, k, step);
		const double *inverse = j->shocks->inverse[k][phi][level];

		sum += j->shocks->logs[k][phi][level];
		for (unsigned b = 0; b < first; b++)
			sum += j->shocks->side[k].count[b] * log(inverse[b]);
		for (unsigned b = first; b < BANDS_MAX; b++)
			sum += e->of_band[k][b] * inverse[b];
	}
	return -sum / 2;
}

/* The variance that shocks add to a difference. */
static double shock_of_difference(
	const struct judge *j, const struct path_energy *e, unsigned phi, unsigned step)
{
	double sum = 0;

	for (unsigned k = 0; k < 2; k++)
		sum += shocks_level_of(shocks_level_at(j, e, k, step)) * e->share[k] *
			shocks_sampling_of_slice(&j->side[k]) * j->shocks->side[k].mean[phi];
	return sum;
}

/* ---- what functions have in common ---- */

/* From logarithms to weights that add up to 1. */
static void shocks_to_weights(double (*value)[STEPS])
{
	double most = -INFINITY, sum = 0;

	for (unsigned i = 0; i < PHIS * STEPS; i++)
		most = fmax(most, value[i / STEPS][i % STEPS]);
	for (unsigned i = 0; i < PHIS * STEPS; i++)
		sum += value[i / STEPS][i % STEPS] = exp(value[i / STEPS][i % STEPS] - most);
	for (unsigned i = 0; i < PHIS * STEPS; i++)
		value[i / STEPS][i % STEPS] /= sum;
}

/* The functions with the greatest shares: they exceed their sampling error the most. */
static unsigned shocks_choose_pool(const struct judge *j, uint32_t *pool)
{
	unsigned n = 0;

	for (uint32_t f = 0; f < j->in->functions_n; f++) {
		double share = changed_pooled_share(j, &j->tracks[f]);
		unsigned at = n;

		if (!j->tracks[f].tested)
			continue;
		while (at > 0 && changed_pooled_share(j, &j->tracks[pool[at - 1]]) < share)
			at--;
		if (at == POOL_MAX)
			continue;
		n += n < POOL_MAX;
		for (unsigned i = n - 1; i > at; i--)
			pool[i] = pool[i - 1];
		pool[at] = f;
	}
	return n;
}

/*
 * How far the pool's functions moved together: one gains, the others lose in proportion. It is the
 * median, weighed by shares.
 */
static double shocks_common_ratio(const struct judge *j, const uint32_t *pool, unsigned n)
{
	double half = 0, best = 1, least = INFINITY;

	for (unsigned i = 0; i < n; i++) {
		const double *share = j->tracks[pool[i]].share;
		double below = 0, all = 0;

		if (!(share[1] > 0))
			continue;
		for (unsigned m = 0; m < n; m++) {
			const double *other = j->tracks[pool[m]].share;

			all += other[0] + other[1];
			if (other[0] * share[1] < share[0] * other[1])
				below += other[0] + other[1];
		}
		half = fabs(below + (share[0] + share[1]) / 2 - all / 2);
		if (half < least) {
			least = half;
			best = share[0] / share[1];
		}
	}
	return best;
}

static double shocks_normal_density(double x, double value)
{
	return exp(-x * x / value / 2) / sqrt(value);
}

/* The differences of functions tell of shocks, too; not much of one that may have changed. */
static double shocks_moved_likelihood(const struct judge *j, uint32_t function,
	const struct path_energy *e, double ratio, unsigned phi, unsigned step)
{
	const struct track *t = &j->tracks[function];
	double share = changed_pooled_share(j, t);
	double d = t->share[0] - t->share[1] * ratio;
	double v = share * (j->side[0].sampling + j->side[1].sampling) +
		shock_of_difference(j, e, phi, step);

	return log((1 - MAY_HAVE_CHANGED) * shocks_normal_density(d, v) +
		MAY_HAVE_CHANGED * shocks_normal_density(d, v + share * share));
}

/*
 * Adds one function's evidence about all pairs to that of the others. A function may be an outlier;
 * then it says nothing. So a pair never loses more by one function than the chance of an outlier.
 */
static void shocks_add_to_pool(struct judge *j, uint32_t function, double ratio)
{
	double v[PHIS][STEPS], most = -INFINITY, mean = 0;
	struct path_energy e;

	shocks_take_apart(j, function, &e);
	for (unsigned i = 0; i < PHIS * STEPS; i++) {
		v[i / STEPS][i % STEPS] = shocks_likelihood(j, &e, 0, i / STEPS, i % STEPS);
		most = fmax(most, v[i / STEPS][i % STEPS]);
	}
	for (unsigned i = 0; i < PHIS * STEPS; i++)
		mean += exp(v[i / STEPS][i % STEPS] - most) / (PHIS * STEPS);
	for (unsigned i = 0; i < PHIS * STEPS; i++) {
		double own = exp(v[i / STEPS][i % STEPS] - most);

		j->shocks->pool[i / STEPS][i % STEPS] += log((1 - MAY_DIFFER) * own + MAY_DIFFER * mean) +
			shocks_moved_likelihood(j, function, &e, ratio, i / STEPS, i % STEPS);
	}
}

static void shocks_find_pool(struct judge *j)
{
	struct shocks *k = j->shocks;
	uint32_t pool[POOL_MAX];
	unsigned n = shocks_choose_pool(j, pool);
	double ratio = shocks_common_ratio(j, pool, n);

	for (unsigned i = 0; i < n; i++)
		shocks_add_to_pool(j, pool[i], ratio);
	for (unsigned p = 0; p < PHIS; p++)
		for (unsigned step = 0; step < STEPS; step++)
			k->pool[p][step] += log(phi_part[p]);
	shocks_to_weights(k->pool);
}

/* The beginning of each function. */
static void shocks_find_prior(struct judge *j)
{
	struct shocks *k = j->shocks;

	for (unsigned step = 0; step < STEPS; step++) {
		double any = 0;

		for (unsigned p = 0; p < PHIS; p++) {
			any += k->pool[p][step];
			j->out->persistence += k->pool[p][step] * phis[p];
		}
		for (unsigned p = 0; p < PHIS; p++)
			for (unsigned q = 0; q < SHAKY; q++) {
				unsigned to = step + q > 0 ? step + q - 1 : 0;

				k->prior[p][to < STEPS ? to : STEPS - 1] += common_part[q] * k->pool[p][step] +
					own_part * any * phi_part[p];
			}
	}
	for (unsigned i = 0; i < PHIS * STEPS; i++)
		k->prior[i / STEPS][i % STEPS] = log(k->prior[i / STEPS][i % STEPS]);
}

enum err_code changed_find_shocks(struct judge *j, struct err *err)
{
	enum err_code rc;

	if (!(j->shocks = arena_new(j->arena, struct shocks)))
		return arena_fail(j->arena, "query", err);
	for (unsigned k = 0; k < 2; k++) {
		if ((rc = shocks_make_waves(j, &j->shocks->side[k], &j->side[k], err)))
			return rc;
	}
	shocks_make_tables(j->shocks);
	shocks_find_pool(j);
	shocks_find_prior(j);
	return ERR_OK;
}

/* ---- the variance of a difference ---- */

static void shocks_add_part(struct mixture *m, double weight, double variance)
{
	unsigned at = 0;

	/* Variances from that of sampling on; those within a factor of MIXTURE_RATIO are one. */
	if (variance > m->least)
		at = (unsigned)(log(variance / m->least) / log(MIXTURE_RATIO));
	if (at >= MIXTURE_MAX)
		at = MIXTURE_MAX - 1;
	m->weight[at] += weight;
	m->variance[at] += weight * variance;
}

/* Weights of all pairs for one function: of the first phis_n, by the waves of `first` band on. */
static void shocks_weigh_own(const struct judge *j, const struct path_energy *e, unsigned phis_n,
	unsigned first, double (*v)[STEPS])
{
	for (unsigned p = 0; p < PHIS; p++)
		for (unsigned step = 0; step < STEPS; step++)
			v[p][step] = p < phis_n ?
				j->shocks->prior[p][step] + shocks_likelihood(j, e, first, p, step) :
				-INFINITY;
	shocks_to_weights(v);
}

static void shocks_end_mixture(struct mixture *m)
{
	for (unsigned i = 0; i < MIXTURE_MAX; i++) {
		m->freedom[i] = INFINITY;
		if (m->weight[i] > 0)
			m->variance[i] /= m->weight[i];
	}
}

void changed_mix(const struct judge *j, uint32_t function, unsigned phis_n, struct mixture *m)
{
	double v[PHIS][STEPS];
	struct path_energy e;

	shocks_take_apart(j, function, &e);
	shocks_weigh_own(j, &e, phis_n, 0, v);
	*m = (struct mixture){ .least = changed_pooled_share(j, &j->tracks[function]) *
			(j->side[0].sampling + j->side[1].sampling) };
	for (unsigned p = 0; p < PHIS; p++)
		for (unsigned step = 0; step < STEPS; step++) {
			if (v[p][step] > WEIGHT_LEAST)
				shocks_add_part(m, v[p][step], m->least + shock_of_difference(j, &e, p, step));
		}
	shocks_end_mixture(m);
}

double changed_shock_deviation(const struct judge *j)
{
	double sum = 0;

	for (unsigned p = 0; p < PHIS; p++)
		for (unsigned step = 0; step < STEPS; step++)
			sum += j->shocks->pool[p][step] * STEP_LOWEST * pow(LEVEL_RATIO, step);
	return sqrt(sum);
}

double changed_persistence(unsigned phi)
{
	return phis[phi];
}

void changed_mix_contrast(
	const struct judge *j, uint32_t function, const struct contrast *c, struct mixture *m)
{
	double share = changed_pooled_share(j, &j->tracks[function]), v[PHIS][STEPS];
	struct path_energy e;

	shocks_take_apart(j, function, &e);
	shocks_weigh_own(j, &e, PHIS, BANDS_OF_A_DRIFT, v);
	*m = (struct mixture){ .least = share * c->sampling };
	for (unsigned p = 0; p < PHIS; p++)
		for (unsigned step = 0; step < STEPS; step++) {
			double relative = STEP_LOWEST * pow(LEVEL_RATIO, step);

			if (v[p][step] > WEIGHT_LEAST)
				shocks_add_part(m, v[p][step], m->least + relative * share * share * c->shocks[p]);
		}
	shocks_end_mixture(m);
}
