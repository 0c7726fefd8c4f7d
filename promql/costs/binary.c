/*
 * Binary operators on numbers and costs, with Prometheus's matching of labels.
 *
 * Source: Prometheus's engine: which side's value a comparison keeps, which labels stay, when a
 * match is ambiguous.
 */
#include "promql/costs/costs.h"

#include <math.h>

#include "base/map.h"
#include "base/quote.h"

/* False: a comparison that does not hold. *out of a comparison is the left value. */
static bool binary_apply(enum binary_op op, double l, double r, double *out)
{
	*out = l;
	switch (op) {
	case OP_ADD:
		*out = l + r;
		return true;
	case OP_SUB:
		*out = l - r;
		return true;
	case OP_MUL:
		*out = l * r;
		return true;
	case OP_DIV:
		*out = l / r;
		return true;
	case OP_MOD:
		*out = fmod(l, r);
		return true;
	case OP_POW:
		*out = pow(l, r);
		return true;
	case OP_ATAN2:
		*out = atan2(l, r);
		return true;
	case OP_EQ:
		return l == r;
	case OP_NE:
		return l != r;
	case OP_LT:
		return l < r;
	case OP_LE:
		return l <= r;
	case OP_GT:
		return l > r;
	case OP_GE:
		return l >= r;
	case OP_AND:
	case OP_OR:
	case OP_UNLESS:
		break;
	}
	return false;
}

static bool binary_drops_name(const struct binary *b)
{
	return !binary_op_is_comparison(b->op) || b->returns_bool;
}

/* ---- with a scalar ---- */

static enum err_code binary_with_scalar(struct work *work, const struct binary *b,
	const struct value *value, const struct value *right, struct value *out, struct err *err)
{
	const struct value *costs = value->type == VALUE_SCALAR ? right : value;
	bool keep;
	enum err_code rc;
	double v;

	*out = (struct value){ .type = VALUE_COSTS };
	if (!(out->costs = arena_array(work->arena, struct cost, costs->n + 1)))
		return work_nomem(work, err);
	for (size_t i = 0; i < costs->n; i++) {
		struct cost c = costs->costs[i];

		keep = binary_apply(b->op, value->type == VALUE_SCALAR ? value->scalar : c.value,
			right->type == VALUE_SCALAR ? right->scalar : c.value, &v);
		if (binary_op_is_comparison(b->op) && b->returns_bool)
			c.value = keep;
		else if (!binary_op_is_comparison(b->op))
			c.value = v;
		else if (!keep)
			continue;
		if (binary_drops_name(b) && (rc = labels_without_name(work, c.metric, &c.metric, err)))
			return rc;
		out->costs[out->n++] = c;
	}
	return ERR_OK;
}

/* ---- costs with costs ---- */

/* Elements by the labels they are matched by. */
struct index {
	struct labels *keys;
	uint32_t *first; /* element of each key */
	size_t n;
	struct map map;
};

struct binary_matching {
	struct work *work;
	const struct expr *e;
	const struct binary *b;
	struct index one; /* the side that may have one element per key */
};

static bool binary_key_eq(const void *ctx, const void *key, uint32_t id)
{
	return labels_eq(*(const struct labels *)key, ((const struct index *)ctx)->keys[id]);
}

static enum err_code binary_key_of(
	struct binary_matching *b, struct labels metric, struct labels *out, struct err *err)
{
	enum grouping how = b->b->matching == GROUPING_ON ? GROUPING_BY : GROUPING_WITHOUT;

	return labels_group(b->work, metric, how, b->b->labels, out, err);
}

static uint32_t index_find(const struct index *index, struct labels key)
{
	return map_find(&index->map, labels_hash(key), binary_key_eq, index, &key);
}

/* Adds the key if it is new; *at is its number. */
static enum err_code index_add(struct binary_matching *b, struct index *index, struct labels key,
	uint32_t element, uint32_t *at, bool *added, struct err *err)
{
	*at = index_find(index, key);
	*added = *at == MAP_NONE;
	if (!*added)
		return ERR_OK;
	*at = (uint32_t)index->n;
	if (!map_add(&index->map, labels_hash(key), *at))
		return work_nomem(b->work, err);
	index->keys[index->n] = key;
	index->first[index->n++] = element;
	return ERR_OK;
}

static enum err_code index_init(
	struct binary_matching *b, struct index *index, size_t n, struct err *err)
{
	map_init(&index->map);
	index->n = 0;
	index->keys = arena_array(b->work->arena, struct labels, n + 1);
	index->first = arena_array(b->work->arena, uint32_t, n + 1);
	return index->keys && index->first ? ERR_OK : work_nomem(b->work, err);
}

/* The name among the labels. */
static void binary_print_metric(struct buf *out, struct labels metric)
{
	buf_add_char(out, '{');
	for (size_t i = 0; i < metric.n; i++) {
		buf_printf(out, "%s" STR_FMT "=", i ? ", " : "", STR_ARG(metric.v[i].name));
		buf_add_quoted(out, metric.v[i].value);
	}
	buf_add_char(out, '}');
}

static enum err_code binary_many_to_many(struct binary_matching *m, struct labels key,
	struct labels a, struct labels b, bool on_left, struct err *err)
{
	struct buf group = { 0 }, one = { 0 }, two = { 0 };
	enum err_code rc;

	binary_print_metric(&group, key);
	binary_print_metric(&one, a);
	binary_print_metric(&two, b);
	rc = work_fault(m->work, m->e, err, ERR_INVALID,
		"found duplicate series for the match group " STR_FMT " on the %s hand-side of the "
		"operation: [" STR_FMT ", " STR_FMT "];many-to-many matching not allowed: matching "
		"labels must be unique on one side",
		STR_ARG(buf_str(&group)), on_left ? "left" : "right", STR_ARG(buf_str(&one)),
		STR_ARG(buf_str(&two)));
	buf_release(&group);
	buf_release(&one);
	buf_release(&two);
	return rc;
}

static enum err_code index_one_side(
	struct binary_matching *b, const struct value *v, struct err *err)
{
	struct labels key;
	enum err_code rc;
	uint32_t at;
	bool added;

	if ((rc = index_init(b, &b->one, v->n, err)))
		return rc;
	for (size_t i = 0; i < v->n; i++) {
		if ((rc = binary_key_of(b, v->costs[i].metric, &key, err)))
			return rc;
		if ((rc = index_add(b, &b->one, key, (uint32_t)i, &at, &added, err)))
			return rc;
		if (!added)
			return binary_many_to_many(b, key, v->costs[b->one.first[at]].metric,
				v->costs[i].metric, b->b->card == CARD_GROUP_RIGHT, err);
	}
	return ERR_OK;
}

static enum err_code binary_result_metric(struct binary_matching *m, struct labels many,
	struct labels one, struct labels *out, struct err *err)
{
	const struct binary *b = m->b;
	struct labels base = many;
	struct labels_builder builder;
	enum err_code rc;

	if (binary_drops_name(b) && (rc = labels_without_name(m->work, many, &base, err)))
		return rc;
	if (b->card == CARD_ONE_TO_ONE && b->matching == GROUPING_ON)
		return labels_group(m->work, base, GROUPING_BY, b->labels, out, err);
	labels_builder_init(&builder, m->work->arena, base);
	if (b->card == CARD_ONE_TO_ONE && b->matching == GROUPING_IGNORING)
		for (size_t i = 0; i < b->labels.n; i++)
			labels_builder_del(&builder, b->labels.v[i]);
	if (b->card != CARD_ONE_TO_ONE)
		for (size_t i = 0; i < b->include.n; i++)
			labels_builder_set(&builder, b->include.v[i], labels_get(one, b->include.v[i]));
	return labels_builder_build(&builder, out, err);
}

/* One element of the many side with its partner. */
static enum err_code binary_match_element(struct binary_matching *m, const struct cost *many,
	const struct cost *one, struct index *seen, uint32_t key, struct value *out, struct err *err)
{
	const struct binary *b = m->b;
	bool swap = b->card == CARD_GROUP_RIGHT, keep, added;
	struct cost c = *many;
	enum err_code rc;
	uint32_t at;
	double v;

	if (b->card == CARD_ONE_TO_ONE) {
		/* seen is by the number of the key: its partner may be taken once, kept or not */
		if (seen->first[key])
			return work_fault(m->work, m->e, err, ERR_INVALID,
				"multiple matches for labels: "
				"many-to-one matching must be explicit (group_left/group_right)");
		seen->first[key] = 1;
	}
	keep = binary_apply(
		b->op, swap ? one->value : many->value, swap ? many->value : one->value, &v);
	if (b->returns_bool)
		v = keep;
	else if (binary_op_is_comparison(b->op) && !keep)
		return ERR_OK;
	if ((rc = binary_result_metric(m, many->metric, one->metric, &c.metric, err)))
		return rc;
	if (b->card != CARD_ONE_TO_ONE) {
		rc = index_add(m, seen, c.metric, 0, &at, &added, err);
		if (rc)
			return rc;
		if (!added)
			return work_fault(m->work, m->e, err, ERR_INVALID,
				"multiple matches for labels: "
				"grouping labels must ensure unique matches");
	}
	c.value = v;
	out->costs[out->n++] = c;
	return ERR_OK;
}

static enum err_code binary_match_costs(struct binary_matching *b, const struct value *v,
	const struct value *value, struct value *out, struct err *err)
{
	const struct value *many = b->b->card == CARD_GROUP_RIGHT ? value : v;
	const struct value *one = b->b->card == CARD_GROUP_RIGHT ? v : value;
	struct index seen = { 0 };
	struct labels key;
	enum err_code rc;
	uint32_t at;

	if (v->n == 0 || value->n == 0) /* nothing is ambiguous then */
		return ERR_OK;
	if ((rc = index_one_side(b, one, err)))
		return rc;
	if ((rc = index_init(b, &seen, many->n > one->n ? many->n : one->n, err)))
		goto out;
	for (size_t i = 0; i < many->n; i++) {
		if ((rc = binary_key_of(b, many->costs[i].metric, &key, err)))
			goto out;
		at = index_find(&b->one, key);
		if (at == MAP_NONE)
			continue;
		rc = binary_match_element(
			b, &many->costs[i], &one->costs[b->one.first[at]], &seen, at, out, err);
		if (rc)
			goto out;
	}
out:
	map_release(&seen.map);
	return rc;
}

static enum err_code binary_set_operation(struct binary_matching *b, const struct value *v,
	const struct value *value, struct value *out, struct err *err)
{
	const struct value *indexed = b->b->op == OP_OR ? v : value,
					   *other = b->b->op == OP_OR ? value : v;
	struct labels key;
	enum err_code rc;
	uint32_t at;
	bool added;

	if ((rc = index_init(b, &b->one, indexed->n, err)))
		return rc;
	for (size_t i = 0; i < indexed->n; i++) {
		if ((rc = binary_key_of(b, indexed->costs[i].metric, &key, err)))
			return rc;
		if ((rc = index_add(b, &b->one, key, (uint32_t)i, &at, &added, err)))
			return rc;
	}
	for (size_t i = 0; b->b->op == OP_OR && i < v->n; i++)
		out->costs[out->n++] = v->costs[i];
	for (size_t i = 0; i < other->n; i++) {
		if ((rc = binary_key_of(b, other->costs[i].metric, &key, err)))
			return rc;
		if ((index_find(&b->one, key) != MAP_NONE) == (b->b->op == OP_AND))
			out->costs[out->n++] = other->costs[i];
	}
	return ERR_OK;
}

enum err_code costs_binary(struct work *work, const struct expr *e, const struct value *v,
	const struct value *value, struct value *out, struct err *err)
{
	struct binary_matching x = { .work = work, .e = e, .b = &e->binary };
	struct value result = { .type = VALUE_COSTS };
	enum err_code rc;
	bool keep;

	if (v->type == VALUE_SCALAR && value->type == VALUE_SCALAR) {
		result.type = VALUE_SCALAR;
		keep = binary_apply(x.b->op, v->scalar, value->scalar, &result.scalar);
		if (binary_op_is_comparison(x.b->op))
			result.scalar = keep;
		*out = result;
		return ERR_OK;
	}
	if (v->type == VALUE_SCALAR || value->type == VALUE_SCALAR)
		return binary_with_scalar(work, x.b, v, value, out, err);
	if (!(result.costs = arena_array(work->arena, struct cost, v->n + value->n + 1)))
		return work_nomem(work, err);
	map_init(&x.one.map);
	if (binary_op_is_set(x.b->op))
		rc = binary_set_operation(&x, v, value, &result, err);
	else
		rc = binary_match_costs(&x, v, value, &result, err);
	map_release(&x.one.map);
	if (!rc)
		*out = result;
	return rc;
}
