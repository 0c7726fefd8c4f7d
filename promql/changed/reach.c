#include <math.h>

#include "promql/changed/internal.h"
#include "promql/changed/student.h"

#define NEGLIGIBLE 1e-4 /* of p */
#define STEPS 40

static double reach_normal_two_sided(double x)
{
	return erfc(x / M_SQRT2);
}

static double reach_beyond(const struct mixture *m, double x, double p)
{
	double sum = 0;

	for (unsigned i = 0; i < MIXTURE_MAX && sum <= p; i++) {
		double t = x / sqrt(m->variance[i]);

		if (m->weight[i] < NEGLIGIBLE * p)
			continue;
		sum += m->weight[i] *
			(isinf(m->freedom[i]) ? reach_normal_two_sided(t) :
									student_two_sided(t, m->freedom[i]));
	}
	return sum;
}

double mixture_reach(const struct mixture *m, double p)
{
	double low = 0, high = sqrt(m->least) + 1e-9;

	while (high < 4 && reach_beyond(m, high, p) > p) {
		low = high;
		high *= 1.5;
	}
	while (high - low > 1e-3 * high) {
		double mid = (low + high) / 2;

		if (reach_beyond(m, mid, p) > p)
			low = mid;
		else
			high = mid;
	}
	return high;
}

double normal_reach(double p)
{
	double low = 0, high = 40;

	for (int i = 0; i < STEPS; i++) {
		double mid = (low + high) / 2;

		if (reach_normal_two_sided(mid) > p)
			low = mid;
		else
			high = mid;
	}
	return high;
}

/* Wilson's bound, which holds for few samples, too. */
double share_reach(double samples, double all, double p)
{
	double z = normal_reach(p);

	return fmin((samples + z * z / 2 + z * sqrt(samples + z * z / 4)) / all, 1);
}
