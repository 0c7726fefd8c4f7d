/*
 * Names of addresses in what was gathered: parts get their partition with names. What has none is
 * an info of the answer: at one time with its share of the costs, at steps without.
 */
#include <math.h>

#include "base/map.h"
#include "promql/gather.h"
#include "tsdb/debuginfo/names/naming.h"

#define TOLD_MAX 3u /* binaries of an info */

struct bare_cost {
	double leaf, any; /* of stacks whose innermost frame is bare, or some frame */
};

struct bare_costs {
	struct bare_cost *of; /* per binary of the naming */
	size_t n;
	double all;
};

static double gather_names_cost_of(const struct part *part, size_t i)
{
	return fabs(part->wide ? (double)part->wide[i] : (double)part->cells[i].value);
}

static enum err_code gather_names_add_bare(struct work *work, struct supply *supply,
	const struct part *part, const struct naming_bare *bare, struct bare_costs *costs,
	struct err *err)
{
	size_t n = naming_binaries_n(supply->naming);
	struct bare_cost *grown;

	if (n > costs->n) {
		if (!(grown = arena_array(work->arena, struct bare_cost, n)))
			return work_nomem(work, err);
		if (costs->n)
			memcpy(grown, costs->of, costs->n * sizeof(*grown));
		costs->of = grown;
		costs->n = n;
	}
	for (size_t i = 0; i < part->n; i++) {
		const struct naming_bare *b = &bare[part->cells[i].stack];

		if (b->leaf)
			costs->of[b->leaf - 1].leaf += gather_names_cost_of(part, i);
		if (b->any)
			costs->of[b->any - 1].any += gather_names_cost_of(part, i);
	}
	return ERR_OK;
}

static void gather_names_print_binary(struct buf *b, const struct naming_binary *of)
{
	buf_add_str(b, of->path.len ? of->path : STR("a binary"));
	if (of->build_id.len)
		buf_printf(b, " (build id " STR_FMT ")", STR_ARG(of->build_id));
}

static double bare_costs_in(const struct bare_costs *c, size_t i, bool leaf)
{
	return leaf ? c->of[i].leaf : c->of[i].any;
}

/* Of two that cost the same the one whose name is behind the other's. */
static bool gather_names_is_less(
	const struct supply *supply, const struct bare_costs *c, size_t i, size_t than, bool leaf)
{
	const struct naming_binary *x = naming_binary(supply->naming, i),
							   *y = naming_binary(supply->naming, than);
	double a = bare_costs_in(c, i, leaf), b = bare_costs_in(c, than, leaf);
	int order;

	if (a != b)
		return a < b;
	return (order = str_cmp(x->path, y->path)) ? order > 0 : str_cmp(x->build_id, y->build_id) > 0;
}

static bool gather_names_binary_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct naming_binary *a = key,
							   *b = naming_binary(((const struct supply *)ctx)->naming, id);

	return str_eq(a->path, b->path) && str_eq(a->build_id, b->build_id);
}

/* A binary that several partitions have becomes one. */
static enum err_code gather_names_join_binaries(
	struct work *work, struct supply *supply, struct bare_costs *c, struct err *err)
{
	enum err_code rc = ERR_OK;
	struct map map;

	map_init(&map);
	for (uint32_t i = 0; i < c->n && !rc; i++) {
		const struct naming_binary *b = naming_binary(supply->naming, i);
		uint64_t hash = hash_bytes(
			b->path.ptr, b->path.len, hash_bytes(b->build_id.ptr, b->build_id.len, 0));
		uint32_t at = map_find(&map, hash, gather_names_binary_eq, supply, b);

		if (at == MAP_NONE) {
			rc = map_add(&map, hash, i) ? ERR_OK : work_nomem(work, err);
			continue;
		}
		c->of[at].leaf += c->of[i].leaf;
		c->of[at].any += c->of[i].any;
		c->of[i] = (struct bare_cost){ 0 };
	}
	map_release(&map);
	return rc;
}

/* The binaries with the largest costs, as far as the info goes. */
static void gather_names_print_binaries(
	struct supply *supply, const struct bare_costs *c, bool leaf, size_t any, struct buf *text)
{
	size_t told = 0, last = c->n;

	while (told < any && told < TOLD_MAX) {
		size_t best = c->n;

		for (size_t i = 0; i < c->n; i++)
			if (bare_costs_in(c, i, leaf) > 0 &&
				(last == c->n || gather_names_is_less(supply, c, i, last, leaf)) &&
				(best == c->n || gather_names_is_less(supply, c, best, i, leaf)))
				best = i;
		last = best;
		buf_printf(
			text, "%s %.3g%% in ", told++ ? "," : "", 100 * bare_costs_in(c, best, leaf) / c->all);
		gather_names_print_binary(text, naming_binary(supply->naming, best));
	}
	if (told < any)
		buf_printf(text, ", and %zu more", any - told);
}

static double gather_names_cost_of_all(const struct value *v)
{
	double sum = 0;

	for (size_t i = 0; i < v->n; i++)
		for (size_t k = 0; k < v->profiles[i].parts_n; k++)
			for (size_t c = 0; c < v->profiles[i].parts[k].n; c++)
				sum += gather_names_cost_of(&v->profiles[i].parts[k], c);
	return sum;
}

/* If all innermost frames have names, the info is about their callers. */
static enum err_code gather_names_tell_shares(struct work *work, struct supply *supply,
	const struct value *v, struct bare_costs *c, struct err *err)
{
	struct buf text = { 0 };
	double sum[2] = { 0 };
	size_t any[2] = { 0 };
	bool leaf;
	enum err_code rc;

	if ((rc = gather_names_join_binaries(work, supply, c, err)))
		return rc;
	for (size_t i = 0; i < c->n; i++)
		for (int k = 0; k < 2; k++) {
			sum[k] += bare_costs_in(c, i, k);
			any[k] += bare_costs_in(c, i, k) > 0;
		}
	if (!any[0])
		return ERR_OK;
	c->all = gather_names_cost_of_all(v);
	leaf = any[1] > 0;
	buf_printf(&text, "%.3g%% of the cost %s without names:", 100 * sum[leaf] / c->all,
		leaf ? "is in addresses" : "is called from addresses");
	gather_names_print_binaries(supply, c, leaf, any[leaf], &text);
	rc = buf_failed(&text) ? work_nomem(work, err) :
							 work_info(work, err, STR_FMT, STR_ARG(buf_str(&text)));
	buf_release(&text);
	return rc;
}

static enum err_code gather_names_tell_paths(
	struct work *work, struct supply *supply, struct err *err)
{
	enum err_code rc;

	for (size_t i = 0; i < naming_binaries_n(supply->naming); i++) {
		const struct naming_binary *b = naming_binary(supply->naming, i);

		if (b->known && b->by_path &&
			(rc = work_info(work, err,
				 "names of " STR_FMT
				 " are from the only file with this name: the profiles have no build id",
				 STR_ARG(b->path))))
			return rc;
	}
	return ERR_OK;
}

enum err_code gather_names(
	struct work *work, struct supply *supply, struct value *v, struct err *err)
{
	struct bare_costs costs = { 0 };
	bool no_shares = false; /* costs by name alone, or one step of many */
	const struct naming_bare *bare;
	enum err_code rc;

	for (size_t i = 0; supply->naming && i < v->n; i++)
		for (size_t k = 0; k < v->profiles[i].parts_n; k++) {
			struct part *part = &v->profiles[i].parts[k];
			struct naming_stacks stacks = { part->n ? &part->cells[0].stack : NULL,
				sizeof(*part->cells), part->n };

			if ((rc = naming_partition(supply->naming, work->arena, part->partition, &stacks,
					 &part->partition, &bare, err)))
				return rc;
			if (bare && work->steps)
				no_shares = true;
			else if (bare && (rc = gather_names_add_bare(work, supply, part, bare, &costs, err)))
				return rc;
			for (size_t c = 0; c < part->names_n && !no_shares; c++)
				no_shares = part->names[c].unnamed;
		}
	if (!supply->naming)
		return ERR_OK;
	if ((rc = gather_names_tell_paths(work, supply, err)))
		return rc;
	if (no_shares)
		return work_info(work, err, "some of the cost is in addresses without names");
	return gather_names_tell_shares(work, supply, v, &costs, err);
}

enum err_code gather_names_may_differ(
	struct supply *supply, const struct part *part, bool *yes, struct err *err)
{
	enum err_code rc = ERR_OK;

	*yes = false;
	for (size_t i = 0; supply->naming && i < part->names_n && !rc && !*yes; i++)
		if (part->names[i].unnamed)
			rc = naming_knows(supply->naming, part->partition, part->names[i].name, yes, err);
	return rc;
}
