/*
 * top(): the rows of `go tool pprof -top -nodecount=k -nodefraction=0`. Fractions are summed and
 * ordered exactly, and rounded in the row.
 */
#include "promql/profiles/frames.h"

#include "promql/profiles/profiles.h"
#include "proto/report/top_rows.h"

struct ranking {
	const struct frames *frames;
	struct frame_sums sums;
};

static struct top_key profiles_top_key_of(const void *ctx, uint32_t group)
{
	const struct ranking *r = ctx;
	const struct frame_group *g = frames_group(r->frames, group);

	return (struct top_key){ r->sums.flat[group], r->sums.cum[group], g->v[FRAME_FUNCTION],
		g->objfile, g->start_line };
}

/* total is not rounded, nor are the sums. */
static enum err_code profiles_top_make_rows(struct work *work, const struct ranking *r,
	uint32_t *order, size_t n, int64_t total, struct top_table *out, struct err *err)
{
	int exponent = out->source->exponent;
	int64_t sum = 0, flat, cum;

	out->functions_n = n;
	out->n = n < out->k ? n : out->k;
	if (!(out->rows = arena_array(work->arena, struct top_row, out->n + 1)))
		return work_nomem(work, err);
	for (size_t i = 0; i < out->n; i++) {
		struct top_row *row = &out->rows[i];

		row->function = frames_group(r->frames, order[i])->v[FRAME_FUNCTION];
		flat = r->sums.flat[order[i]];
		cum = r->sums.cum[order[i]];
		sum += flat;
		row->flat_percent = top_percent(flat, total);
		row->sum_percent = top_percent(sum, total);
		row->cum_percent = top_percent(cum, total);
		if (!cost_shift(flat, exponent, &row->flat) || !cost_shift(cum, exponent, &row->cum))
			return err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
	}
	return cost_shift(total, exponent, &out->total) ?
		ERR_OK :
		err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
}

static enum err_code profiles_top_rank(struct work *work, struct frames *f,
	const struct profile_value *p, struct top_table *out, struct err *err)
{
	struct ranking r = { .frames = f };
	uint32_t *order;
	size_t n;
	enum err_code rc;

	if ((rc = frames_sum(f, p, true, &r.sums, err)))
		return rc;
	if (!(order = arena_array(work->arena, uint32_t, r.sums.n + 1)))
		return work_nomem(work, err);
	for (size_t i = 0; i < r.sums.n; i++)
		order[i] = r.sums.groups[i];
	n = top_rows(order, r.sums.n, profiles_top_key_of, &r, false);
	out->metric = p->metric;
	out->type = p->type;
	out->profiles = p->profiles;
	out->time_nanos = p->time_nanos;
	out->duration_nanos = p->duration_nanos;
	out->is_diff = p->is_diff;
	out->source = p;
	return profiles_top_make_rows(work, &r, order, n, p->total, out, err);
}

/* The stacks of a table are shown as whole numbers. */
static enum err_code profiles_top_whole_source(
	struct work *work, const struct profile_value *p, struct top_table *out, struct err *err)
{
	struct profile_value *whole;
	enum err_code rc;

	if (!p->fraction)
		return ERR_OK;
	if (!(whole = arena_new(work->arena, struct profile_value)))
		return work_nomem(work, err);
	if ((rc = profile_with_exponent(work, p, 0, whole, err)))
		return rc;
	whole->fraction = false;
	out->source = whole;
	return ERR_OK;
}

enum err_code profiles_top(
	struct work *work, const struct value *in, double k, struct value *out, struct err *err)
{
	const struct frames_options o = { .as_pprof = true };
	struct frames *f;
	enum err_code rc;

	*out = (struct value){ .type = VALUE_TABLE };
	out->tops = arena_array(work->arena, struct top_table, in->n + 1);
	if (!out->tops)
		return work_nomem(work, err);
	if ((rc = frames_open(work, &o, &f, err)))
		return rc;
	for (size_t i = 0; i < in->n && !rc; i++) {
		out->tops[i].k = k >= 1 ? k < 1e9 ? (size_t)k : (size_t)1e9 : 0;
		if ((rc = profiles_top_rank(work, f, &in->profiles[i], &out->tops[i], err)) ||
			(rc = profiles_top_whole_source(work, &in->profiles[i], &out->tops[i], err)))
			break;
		out->n++;
	}
	frames_close(f);
	return rc;
}
