/*
 * One series of many that changed by itself: a pod whose function costs five times as much, while
 * the mean of ten hardly moved and their spread hides the rest.
 *
 * Series that are on both sides are ranked by how far a function's share moved beyond sampling. The
 * first few are judged as if they were the only ones, with their part of p: all series could have
 * been, so each has a part. A function that changed there, and moved by a third as much at most
 * where the others are taken together, changed in that series alone.
 */
#include <math.h>

#include "base/array.h"
#include "promql/changed/internal.h"

#define JUDGED_MAX 4 /* series */
#define OTHERS_MAX (1.0 / 3) /* of the series' own difference */

bool changed_may_be_alone(const struct judge *j)
{
	return j->out->paired && !j->in->is_alone && j->paired_n >= CHANGE_ALONE_SERIES;
}

/* The series that moved most of those that moved less than `below`. */
static uint32_t alone_next(const struct judge *j, double below)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < j->in->series_n; i++)
		if (j->moved[i] > 0 && j->moved[i] < below &&
			(best == UINT32_MAX || j->moved[i] > j->moved[best]))
			best = i;
	return best;
}

static enum err_code alone_take(const struct judge *j, uint32_t series, struct arena *a,
	struct change_input *in, struct err *err)
{
	*in = *j->in;
	in->series_n = 1;
	in->p = j->in->p * ALONE_PART / j->paired_n;
	in->quantum = j->quantum;
	in->changed_only = in->is_alone = true;
	for (unsigned k = 0; k < 2; k++) {
		const struct changed_side *s = &j->side[k];
		size_t n = s->first[series + 1] - s->first[series];
		struct change_observation *v = arena_array(a, struct change_observation, n + 1);

		if (!v)
			return arena_fail(a, "query", err);
		for (size_t i = 0; i < n; i++) {
			v[i] = *s->v[s->first[series] + i];
			v[i].series = 0;
		}
		in->side[k] = (struct change_side){ .v = v, .n = n, .slices_n = s->in->slices_n };
	}
	return ERR_OK;
}

/* Keeps what the others did not do. */
static enum err_code alone_keep(
	struct judge *j, uint32_t series, const struct change_output *found, struct err *err)
{
	double w = j->side[0].weight[series];

	for (size_t i = 0; i < found->changed_n; i++) {
		const struct change *c = &found->v[i];
		const struct track *t = &j->tracks[c->function];
		double all = t->share[0] - t->share[1];

		if (fabs(all - w * c->difference) > (1 - w) * OTHERS_MAX * fabs(c->difference))
			continue;
		if (!arena_array_room(j->arena, &j->out->alone, j->out->alone_n, 1, &j->alone_cap))
			return arena_fail(j->arena, "query", err);
		j->out->alone[j->out->alone_n++] = (struct change_alone){ *c, series };
	}
	return ERR_OK;
}

enum err_code changed_find_alone(struct judge *j, struct err *err)
{
	double below = INFINITY;
	enum err_code rc = ERR_OK;

	if (!changed_may_be_alone(j))
		return ERR_OK;
	for (unsigned n = 0; n < JUDGED_MAX && !rc; n++) {
		uint32_t series = alone_next(j, below);
		struct change_output found;
		struct change_input in;
		struct arena a;

		if (series == UINT32_MAX)
			break;
		below = j->moved[series];
		arena_init_shared(&a, j->arena->shared);
		a.budget_bytes = j->arena->budget_bytes;
		if (!(rc = alone_take(j, series, &a, &in, err)) &&
			!(rc = changed_judge(&a, &in, &found, err)))
			rc = alone_keep(j, series, &found, err);
		arena_release(&a);
	}
	return rc;
}
