
#include <math.h>

#include "promql/changed/internal.h"

static enum err_code side_init(
	struct judge *j, struct changed_side *s, const struct change_side *in, struct err *err)
{
	const uint32_t series_n = j->in->series_n;

	s->in = in;
	s->v = arena_array(j->arena, const struct change_observation *, in->n + 1);
	s->first = arena_array(j->arena, size_t, (size_t)series_n + 2);
	s->total = arena_array(j->arena, double, (size_t)series_n + 1);
	s->weight = arena_array(j->arena, double, (size_t)series_n + 1);
	s->present = arena_array(j->arena, bool, (size_t)in->slices_n + 1);
	s->load = arena_array(j->arena, double, (size_t)in->slices_n + 1);
	if (!s->v || !s->first || !s->total || !s->weight || !s->present || !s->load)
		return arena_fail(j->arena, "query", err);
	for (size_t i = 0; i < in->n; i++) {
		const struct change_observation *o = &in->v[i];

		if (!(o->total > 0))
			continue;
		s->first[o->series + 2]++;
		s->total[o->series] += o->total;
		s->all += o->total;
		s->slices += !s->present[o->slice];
		s->present[o->slice] = true;
		s->cells_n++;
	}
	for (uint32_t i = 0; i < series_n; i++) {
		s->series_n += s->total[i] > 0;
		s->first[i + 2] += s->first[i + 1];
	}
	for (size_t i = 0; i < in->n; i++)
		if (in->v[i].total > 0)
			s->v[s->first[in->v[i].series + 1]++] = &in->v[i];
	return ERR_OK;
}

enum err_code changed_sides_init(struct judge *j, struct err *err)
{
	enum err_code rc = side_init(j, &j->side[0], &j->in->side[0], err);

	return rc ? rc : side_init(j, &j->side[1], &j->in->side[1], err);
}

/*
 * Series on both sides are compared with themselves if they are most of both. Then each weighs by
 * the inverse variance of its difference by sampling, and other series are left out.
 */
void changed_weigh(struct judge *j)
{
	struct changed_side *a = &j->side[0], *b = &j->side[1];
	double both[2] = { 0 }, sum = 0;
	bool paired;

	for (uint32_t i = 0; i < j->in->series_n; i++)
		if (a->total[i] > 0 && b->total[i] > 0) {
			both[0] += a->total[i];
			both[1] += b->total[i];
			sum += a->total[i] * b->total[i] / (a->total[i] + b->total[i]);
			j->paired_n++;
		}
	paired = both[0] * 2 >= a->all && both[1] * 2 >= b->all;
	j->out->paired = paired;
	for (unsigned k = 0; k < 2; k++) {
		struct changed_side *s = &j->side[k];

		for (uint32_t i = 0; i < j->in->series_n; i++) {
			double w = s->total[i] / s->all;

			if (paired)
				w = a->total[i] * b->total[i] > 0 ?
					a->total[i] * b->total[i] / (a->total[i] + b->total[i]) / sum :
					0;
			s->weight[i] = w;
			s->weights2 += w * w;
			s->weights4 += w * w * w * w;
			s->sampling += w > 0 ? w * w / s->total[i] : 0; /* quantum follows */
		}
		for (uint32_t i = 0; i < j->in->series_n; i++)
			s->spread_unit += s->weight[i] * s->weight[i] * (1 - 2 * s->weight[i] + s->weights2);
	}
}

/* ---- one series after the other ---- */

static void sides_meet(struct judge *j, uint32_t function)
{
	if (j->is_met[function])
		return;
	j->is_met[function] = 1;
	j->share[0][function] = j->share[1][function] = 0;
	j->met[j->met_n++] = function;
}

static void sides_read_observations(struct judge *j, unsigned at, uint32_t series)
{
	struct changed_side *s = &j->side[at];
	double scale = s->weight[series] > 0 ? s->slices * s->weight[series] / s->total[series] : 0;

	for (size_t i = s->first[series]; i < s->first[series + 1]; i++) {
		const struct change_observation *o = s->v[i];

		s->load[o->slice] += scale * o->total;

		for (size_t c = 0; c < o->n; c++) {
			uint32_t f = o->cells[c].function;
			double cost = o->cells[c].cost;

			sides_meet(j, f);
			j->tracks[f].cost[at] += cost;
			j->tracks[f].squares[at] += cost * cost / o->total;
			j->share[at][f] += cost / s->total[series];
			s->path[(size_t)f * s->in->slices_n + o->slice] += scale * cost;
		}
	}
}

/* Subtracts from the paths the part that the series' mean explains. */
static void sides_read_means(struct judge *j, unsigned at, uint32_t series)
{
	struct changed_side *s = &j->side[at];
	double w = s->weight[series];

	if (!(w > 0))
		return;
	for (uint32_t m = 0; m < j->met_n; m++) {
		uint32_t f = j->met[m];
		double *path = &s->path[(size_t)f * s->in->slices_n];
		double scale = s->slices * w * j->share[at][f] / s->total[series];

		j->tracks[f].share[at] += w * j->share[at][f];
		for (size_t i = s->first[series]; scale > 0 && i < s->first[series + 1]; i++)
			path[s->v[i]->slice] -= scale * s->v[i]->total;
	}
}

/* How far the series' functions moved: the farthest, against sampling. */
static void sides_read_moved(struct judge *j, uint32_t series)
{
	double total[2] = { j->side[0].total[series], j->side[1].total[series] };

	if (!(total[0] > 0 && total[1] > 0))
		return;
	for (uint32_t m = 0; m < j->met_n; m++) {
		double a = j->share[0][j->met[m]], b = j->share[1][j->met[m]];
		double pooled = (a * total[0] + b * total[1]) / (total[0] + total[1]);

		if (pooled > 0)
			j->moved[series] = fmax(
				j->moved[series], (a - b) * (a - b) / pooled / (1 / total[0] + 1 / total[1]));
	}
}

static void sides_read_spread(struct judge *j, uint32_t series)
{
	for (uint32_t m = 0; m < j->met_n; m++) {
		struct track *t = &j->tracks[j->met[m]];

		for (unsigned k = 0; k < 2; k++) {
			double w = j->side[k].weight[series];
			double r = j->share[k][j->met[m]];

			if (j->out->paired && k == 1)
				continue;
			if (j->out->paired)
				r -= j->share[1][j->met[m]];
			t->spread[k] += w * w * r * r;
			t->mean[k] += w * w * r;
		}
	}
}

enum err_code changed_read(struct judge *j, struct err *err)
{
	const size_t n = j->in->functions_n;

	j->tracks = arena_array(j->arena, struct track, n + 1);
	j->share[0] = arena_array(j->arena, double, n + 1);
	j->share[1] = arena_array(j->arena, double, n + 1);
	j->is_met = arena_array(j->arena, char, n + 1);
	j->met = arena_array(j->arena, uint32_t, n + 1);
	for (unsigned k = 0; k < 2; k++)
		j->side[k].path = arena_array(j->arena, double, n * j->side[k].in->slices_n + 1);
	j->moved = arena_array(j->arena, double, (size_t)j->in->series_n + 1);
	if (!j->moved || !j->tracks || !j->share[0] || !j->share[1] || !j->is_met || !j->met ||
		!j->side[0].path || !j->side[1].path)
		return arena_fail(j->arena, "query", err);
	for (uint32_t i = 0; i < j->in->series_n; i++) {
		if (changed_is_stopped(j))
			return err_set(err, ERR_CANCELED, "canceled");
		for (unsigned k = 0; k < 2; k++)
			sides_read_observations(j, k, i);
		for (unsigned k = 0; k < 2; k++)
			sides_read_means(j, k, i);
		sides_read_spread(j, i);
		sides_read_moved(j, i);
		for (uint32_t m = 0; m < j->met_n; m++)
			j->is_met[j->met[m]] = 0;
		j->met_n = 0;
	}
	return ERR_OK;
}
