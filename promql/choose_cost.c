/*
 * The cost of series, before they are held. If very many series match, the query is refused after a
 * look at some of them.
 */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "promql/eval.h"
#include "promql/gather.h"
#include "promql/plan.h"
#include "promql/syntax/type_names.h"

/*
 * The least memory that an element of one series takes. If many are summed side by side they take
 * more, up to what is left of the query's memory.
 */
static uint64_t choose_cost_element_bytes(
	const struct eval *ev, const struct expr *e, const struct merging *m, uint64_t before)
{
	bool cells = !m->totals_only && !m->by_name;
	struct series_cost most = { .bytes = before +
			gather_group_bytes(ev->supply, UINT64_MAX, cells) };

	if (m->in_slices)
		return sizeof(struct profile_value) + sizeof(struct part);
	return gather_group_bytes(
		ev->supply, (uint64_t)plan_series_max(ev, e, most) * PLAN_PIECE_SAMPLES, cells);
}

/* The least cost of each series; certain: none is left out later. */
static struct series_cost choose_cost_of(
	const struct eval *ev, const struct asked_series *asked, bool certain)
{
	struct series_cost each = { .bytes = DB_SERIES_BYTES };

	if (!asked->m)
		return each;
	each.bytes += sizeof(struct chosen);
	if (!certain || asked->withheld || !ev->plan || !ev->plan->checked)
		return each;
	each.samples = PLAN_SERIES_SAMPLES;
	if (asked->m->each && ev->times.mode != EVAL_RANGE)
		each.bytes += sizeof(struct labels) +
			choose_cost_element_bytes(ev, asked->expr, asked->m, each.bytes);
	return each;
}

/* ---- which of them have a type ---- */

#define ONE_OF 256u /* series is looked at: by the hash of its labels, so as if by chance */
#define HITS_MIN 64u /* of fewer little can be said */

struct choose_cost_looking {
	struct db_querier *q;
	const struct type_pattern *pattern;
	struct arena scratch;
	uint64_t *hits; /* hashes: a series comes once for each window and block it is in */
	size_t n, cap;
};

static bool choose_cost_is_looked_at(void *ctx, struct labels labels)
{
	(void)ctx;
	return labels_hash(labels) % ONE_OF == 0;
}

static enum err_code choose_cost_add_hit(
	struct choose_cost_looking *l, uint64_t hash, struct err *err)
{
	if (!array_room(&l->hits, l->n, 1, &l->cap))
		return err_nomem(err, "query");
	l->hits[l->n++] = hash;
	return ERR_OK;
}

static enum err_code choose_cost_look_at(void *ctx, const struct db_series *s, struct err *err)
{
	struct choose_cost_looking *l = ctx;
	struct profile_type *types;
	size_t n, i = 0;
	enum err_code rc;

	if ((rc = db_series_types(l->q, s, &l->scratch, &types, &n, err)))
		return rc;
	while (i < n && !type_pattern_match(l->pattern, &types[i]))
		i++;
	if (i < n)
		rc = choose_cost_add_hit(l, labels_hash(s->labels), err);
	arena_reset(&l->scratch);
	return rc;
}

static int choose_cost_cmp_hashes(const void *a, const void *b)
{
	uint64_t l = *(const uint64_t *)a, r = *(const uint64_t *)b;

	return (l > r) - (l < r);
}

/* The number of series among those looked at that have the type; each counts once. */
static enum err_code choose_cost_count_hits(
	struct eval *ev, const struct asked_series *asked, size_t *out, struct err *err)
{
	struct choose_cost_looking l = { .q = ev->supply->querier, .pattern = asked->pattern };
	const struct db_visitor visitor = {
		.wanted = choose_cost_is_looked_at, .take = choose_cost_look_at, .ctx = &l
	};
	enum err_code rc;

	*out = 0;
	arena_init_shared(&l.scratch, ev->work.budget);
	rc = db_visit_series(
		ev->supply->querier, DB_PROFILES, asked->sent, asked->sent_n, &visitor, err);
	if (l.n)
		qsort(l.hits, l.n, sizeof(*l.hits), choose_cost_cmp_hashes);
	for (size_t i = 0; i < l.n; i++)
		*out += i == 0 || l.hits[i] != l.hits[i - 1];
	arena_release(&l.scratch);
	free(l.hits);
	return rc;
}

/*
 * Four deviations less than the estimate, since it comes from a sample; the plan checks the rest.
 */
static enum err_code choose_cost_refuse_typed(struct eval *ev, const struct asked_series *asked,
	struct series_cost each, size_t max, struct err *err)
{
	enum err_code rc;
	size_t hits;

	if ((rc = choose_cost_count_hits(ev, asked, &hits, err)) || hits < HITS_MIN)
		return rc;
	if (((double)hits - 4 * sqrt((double)hits)) * ONE_OF <= (double)max)
		return ERR_OK;
	return plan_refuse_series(ev, asked->expr, each, (uint64_t)hits * ONE_OF, err);
}

enum err_code choose_held(struct eval *ev, const struct asked_series *asked, struct db_series **out,
	size_t *n, struct err *err)
{
	struct series_cost each = choose_cost_of(ev, asked, true);
	size_t max = plan_series_max(ev, asked->expr, each), about;
	enum err_code rc = db_select_within(ev->supply->querier, DB_PROFILES, asked->sent,
		asked->sent_n, max, &about, ev->work.arena, out, n, err);

	if (!rc || !about)
		return rc;
	if (!asked->pattern)
		return plan_refuse_series(ev, asked->expr, each, about, err);
	if (each.samples && (rc = choose_cost_refuse_typed(ev, asked, each, max, err)))
		return rc;
	each = choose_cost_of(ev, asked, false);
	rc = db_select_within(ev->supply->querier, DB_PROFILES, asked->sent, asked->sent_n,
		plan_series_max(ev, asked->expr, each), &about, ev->work.arena, out, n, err);
	return rc && about ? plan_refuse_series(ev, asked->expr, each, about, err) : rc;
}
