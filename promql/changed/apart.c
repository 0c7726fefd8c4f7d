/*
 * Functions whose slices do not overlap: all of one side are above all of the other.
 *
 * A person who looks at such minutes sees a change. The default judgement may not: a shock that
 * lasts as long as a window would look the same, and ten slices do not refute such shocks. So these
 * functions are judged once more, by the same statistic with short shocks alone. If that leaves 0
 * out, they changed, or one shock lasted as long as the shorter window; the infos say so.
 */
#include <math.h>

#include "promql/changed/internal.h"

/* The function's share in a slice. */
static double apart_share(const struct judge *j, unsigned at, uint32_t function, uint32_t slice)
{
	const struct changed_side *s = &j->side[at];

	return j->tracks[function].share[at] +
		s->path[(size_t)function * s->in->slices_n + slice] / s->load[slice];
}

bool changed_is_apart(const struct judge *j, uint32_t function)
{
	double least[2] = { INFINITY, INFINITY }, most[2] = { -INFINITY, -INFINITY };

	for (unsigned k = 0; k < 2; k++) {
		if (j->side[k].slices < CHANGE_APART_MIN)
			return false;
		for (uint32_t t = 0; t < j->side[k].in->slices_n; t++) {
			if (!(j->side[k].load[t] > 0))
				continue;
			least[k] = fmin(least[k], apart_share(j, k, function, t));
			most[k] = fmax(most[k], apart_share(j, k, function, t));
		}
	}
	return least[0] > most[1] || least[1] > most[0];
}
