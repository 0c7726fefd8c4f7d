/*
 * Merging groups elements by labels. A label that samples carry splits an element: each of its
 * cells goes where its label set says.
 */
#include "promql/profiles/profiles.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"
#include "promql/costs/costs.h"

struct profiles_merge_piece {
	uint32_t group;
	const struct part *from;
	struct part cells; /* the cells that go to the group: all of from, or its own arrays */
};

struct profiles_merge_group {
	struct profile_value p;
	bool any;
	size_t pieces_n; /* bound of the parts */
	size_t last; /* of its pieces, when pieces_n is not 0 */
	size_t element; /* the last one that it was joined with, + 1 */
	size_t from; /* its pieces, once they are in order */
};

struct grouped {
	struct work *work;
	enum grouping grouping;
	struct name_list labels;
	struct profiles_merge_group *groups;
	size_t groups_n, groups_cap;
	struct map map;
	struct profiles_merge_piece *pieces;
	size_t pieces_n, pieces_cap;
	size_t element; /* of the input, in work */
	bool is_split;
};

static bool profiles_merge_group_eq(const void *ctx, const void *key, uint32_t id)
{
	return labels_eq(
		*(const struct labels *)key, ((const struct grouped *)ctx)->groups[id].p.metric);
}

static enum err_code grouped_find_group(
	struct grouped *g, struct labels metric, uint32_t *out, struct err *err)
{
	uint64_t hash = labels_hash(metric);
	uint32_t id = map_find(&g->map, hash, profiles_merge_group_eq, g, &metric);

	if (id == MAP_NONE) {
		if (!arena_array_room(g->work->arena, &g->groups, g->groups_n, 1, &g->groups_cap))
			return work_nomem(g->work, err);
		id = (uint32_t)g->groups_n;
		if (!map_add(&g->map, hash, id))
			return work_nomem(g->work, err);
		g->groups[g->groups_n++] = (struct profiles_merge_group){ .p.metric = metric };
	}
	*out = id;
	return ERR_OK;
}

static enum err_code grouped_add_piece(
	struct grouped *g, uint32_t group, const struct part *from, struct part cells, struct err *err)
{
	if (!arena_array_room(g->work->arena, &g->pieces, g->pieces_n, 1, &g->pieces_cap))
		return work_nomem(g->work, err);
	g->groups[group].last = g->pieces_n;
	g->groups[group].pieces_n++;
	g->pieces[g->pieces_n++] = (struct profiles_merge_piece){ group, from, cells };
	return ERR_OK;
}

/*
 * Keeps the fields that all elements of a group share, and adds up the others, but not the cells.
 */
static void profiles_merge_group_join_profile(
	struct profiles_merge_group *into, const struct profile_value *p)
{
	struct profile_value *v = &into->p;
	struct labels metric = v->metric;

	if (!into->any) {
		*v = *p;
		v->metric = metric;
		v->parts = NULL;
		v->parts_n = 0;
		v->wide_total = 0;
		into->any = true;
		return;
	}
	if (!profile_type_eq(&v->type, &p->type)) {
		v->type.name = (struct str){ 0 };
		if (!str_eq(v->type.sample_type, p->type.sample_type))
			v->type.sample_type = (struct str){ 0 };
	}
	v->is_diff |= p->is_diff;
	v->filtered |= p->filtered;
	v->value_size = value_duration_sum(v->value_size, p->value_size); /* none is below zero */
	v->base_size = value_duration_sum(v->base_size, p->base_size);
	v->profiles += p->profiles;
	if (p->time_nanos != 0 && (v->time_nanos == 0 || p->time_nanos < v->time_nanos))
		v->time_nanos = p->time_nanos;
	v->duration_nanos = value_duration_sum(v->duration_nanos, p->duration_nanos);
	v->elapsed_ns += p->elapsed_ns;
	v->profiled_ns += p->profiled_ns;
	v->period = p->period > v->period ? p->period : v->period;
	v->start_ns = p->start_ns < v->start_ns ? p->start_ns : v->start_ns;
	v->end_ns = p->end_ns > v->end_ns ? p->end_ns : v->end_ns;
}

/* The group of a label set's samples: the element's own labels of the list, and the samples'. */
static enum err_code grouped_group_of_set(struct grouped *g, const struct profile_value *p,
	const struct part *part, struct labels base, uint32_t label_set, uint32_t *out, struct err *err)
{
	const struct labels whole = p->metric;
	struct labels_builder b;
	struct labels metric;
	struct buf text = { 0 };
	struct str key, value;
	enum err_code rc;

	labels_builder_init(&b, g->work->arena, base);
	for (size_t i = 0; i < g->labels.n; i++) {
		if (label_source(whole, part->partition, g->labels.v[i], &key) != LABEL_OF_SAMPLES)
			continue;
		buf_clear(&text);
		sym_label_value(part->partition, label_set, key, &text);
		value = str_dup(g->work->arena, buf_str(&text));
		if (!value.ptr || buf_failed(&text)) {
			buf_release(&text);
			return work_nomem(g->work, err);
		}
		labels_builder_set(&b, g->labels.v[i], value);
	}
	buf_release(&text);
	if ((rc = labels_builder_build(&b, &metric, err)))
		return rc;
	if ((rc = grouped_find_group(g, metric, out, err)))
		return rc;
	return ERR_OK;
}

/* Cells of a part to pieces, by the group of their label set. */
static enum err_code grouped_split_part(struct grouped *g, const struct profile_value *p,
	const struct part *part, struct labels base, struct err *err)
{
	uint32_t sets_n = sym_label_sets_n(part->partition), group;
	uint32_t *piece_of_set = arena_array(g->work->arena, uint32_t, sets_n); /* piece + 1 */
	size_t first = g->pieces_n, *counts;
	enum err_code rc;

	g->is_split = true;
	if (!piece_of_set)
		return work_nomem(g->work, err);
	for (size_t i = 0; i < part->n; i++) {
		uint32_t set = part->cells[i].label_set;

		if (piece_of_set[set])
			continue;
		if ((i % 1024 == 0 && (rc = work_check(g->work, err))) ||
			(rc = grouped_group_of_set(g, p, part, base, set, &group, err)))
			return rc;
		if ((!g->groups[group].pieces_n || g->groups[group].last < first) &&
			(rc = grouped_add_piece(g, group, part, (struct part){ 0 }, err)))
			return rc;
		piece_of_set[set] = (uint32_t)g->groups[group].last + 1;
	}
	if (part->names_n > 0) { /* of samples without labels */
		if ((rc = grouped_group_of_set(g, p, part, base, 0, &group, err)) ||
			(rc = grouped_add_piece(g, group, part, (struct part){ 0 }, err)))
			return rc;
		g->pieces[g->pieces_n - 1].cells = (struct part){
			.names = part->names, .names_n = part->names_n, .names_total = part->names_total
		};
	}
	if (!(counts = arena_array(g->work->arena, size_t, g->pieces_n - first + 1)))
		return work_nomem(g->work, err);
	for (size_t i = 0; i < part->n; i++)
		counts[piece_of_set[part->cells[i].label_set] - 1 - first]++;
	for (size_t k = first; k < g->pieces_n; k++) {
		struct part *c = &g->pieces[k].cells;

		c->cells = arena_alloc_raw(g->work->arena, counts[k - first], sizeof(*c->cells));
		c->wide = part->wide ?
			arena_alloc_raw(g->work->arena, counts[k - first], sizeof(*c->wide)) :
			NULL;
		if (!c->cells || (part->wide && !c->wide))
			return work_nomem(g->work, err);
	}
	for (size_t i = 0; i < part->n; i++) {
		struct part *c = &g->pieces[piece_of_set[part->cells[i].label_set] - 1].cells;

		if (part->wide)
			c->wide[c->n] = part->wide[i];
		c->cells[c->n++] = part->cells[i];
	}
	return ERR_OK;
}

static bool profiles_merge_is_split(
	struct name_list labels, const struct profile_value *p, const struct part *part)
{
	struct str key;

	for (size_t i = 0; i < labels.n; i++)
		if (label_source(p->metric, part->partition, labels.v[i], &key) == LABEL_OF_SAMPLES)
			return true;
	return false;
}

bool profiles_need_split(const struct value *in, struct name_list labels)
{
	for (size_t i = 0; in->type == VALUE_PROFILES && i < in->n; i++)
		for (size_t k = 0; k < in->profiles[i].parts_n; k++)
			if (profiles_merge_is_split(labels, &in->profiles[i], &in->profiles[i].parts[k]))
				return true;
	return false;
}

static enum err_code grouped_group_profile(
	struct grouped *g, const struct profile_value *p, struct err *err)
{
	size_t first = g->pieces_n;
	struct labels base;
	uint32_t group;
	enum err_code rc;

	if ((rc = labels_group(g->work, p->metric, g->grouping, g->labels, &base, err)))
		return rc;
	for (size_t i = 0; i < p->parts_n; i++) {
		if (g->grouping == GROUPING_BY && profiles_merge_is_split(g->labels, p, &p->parts[i]))
			rc = grouped_split_part(g, p, &p->parts[i], base, err);
		else if (!(rc = grouped_find_group(g, base, &group, err)))
			rc = grouped_add_piece(g, group, &p->parts[i], p->parts[i], err);
		if (rc)
			return rc;
	}
	if (p->parts_n == 0) { /* only a total, or nothing */
		if ((rc = grouped_find_group(g, base, &group, err)))
			return rc;
		profiles_merge_group_join_profile(&g->groups[group], p);
		g->groups[group].p.wide_total += p->wide_total;
		return ERR_OK;
	}
	g->element++;
	for (size_t k = first; k < g->pieces_n; k++) {
		struct profiles_merge_group *into = &g->groups[g->pieces[k].group];

		if (into->element == g->element) /* each group once */
			continue;
		into->element = g->element;
		profiles_merge_group_join_profile(into, p);
	}
	return ERR_OK;
}

static enum err_code grouped_join_headers(
	struct grouped *g, struct part *into, const struct part *from, struct err *err)
{
	uint32_t *all = arena_alloc_raw(
		g->work->arena, into->headers_n + from->headers_n + 1, sizeof(*all));
	uint32_t n = into->headers_n, k;
	bool plain = into->headers_plain == n;

	if (!all)
		return work_nomem(g->work, err);
	if (n)
		memcpy(all, into->headers, n * sizeof(*all));
	for (uint32_t i = 0; i < from->headers_n; i++) {
		for (k = 0; k < n && all[k] != from->headers[i]; k++)
			;
		plain &= i < from->headers_plain;
		if (k == n) {
			all[n++] = from->headers[i];
			into->headers_plain += plain;
		}
	}
	into->headers = all;
	into->headers_n = n;
	return ERR_OK;
}

static enum err_code grouped_join_names(
	struct grouped *g, struct part *into, const struct part *from, struct err *err)
{
	struct function_sum *all;

	if (__builtin_add_overflow(into->names_total, from->names_total, &into->names_total))
		return err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
	if (from->names_n == 0)
		return ERR_OK;
	all = arena_alloc_raw(g->work->arena, into->names_n + from->names_n, sizeof(*all));
	if (!all)
		return work_nomem(g->work, err);
	if (into->names_n)
		memcpy(all, into->names, into->names_n * sizeof(*all));
	memcpy(all + into->names_n, from->names, from->names_n * sizeof(*all));
	into->names = all;
	into->names_n += from->names_n;
	return ERR_OK;
}

/* Each group's pieces together, in their order. */
static enum err_code grouped_order_pieces(struct grouped *g, struct err *err)
{
	struct profiles_merge_piece *sorted = arena_alloc_raw(
		g->work->arena, g->pieces_n + 1, sizeof(*sorted));
	size_t *next = arena_alloc_raw(g->work->arena, g->groups_n + 1, sizeof(*next)), at = 0;

	if (!sorted || !next)
		return work_nomem(g->work, err);
	for (size_t i = 0; i < g->groups_n; i++) {
		g->groups[i].from = next[i] = at;
		at += g->groups[i].pieces_n;
	}
	for (size_t i = 0; i < g->pieces_n; i++)
		sorted[next[g->pieces[i].group]++] = g->pieces[i];
	g->pieces = sorted;
	return ERR_OK;
}

/* All pieces of one partition, one after the other, then in order. */
static enum err_code grouped_build_part(struct grouped *g, uint32_t group, struct partition *p,
	size_t n, struct part *out, struct err *err)
{
	size_t from = g->groups[group].from, end = from + g->groups[group].pieces_n, pieces = 0;
	bool wide = false;
	enum err_code rc;

	*out = (struct part){ .partition = p };
	out->cells = arena_alloc_raw(g->work->arena, n + 1, sizeof(*out->cells));
	if (!out->cells)
		return work_nomem(g->work, err);
	for (size_t i = from; i < end; i++)
		wide |= g->pieces[i].cells.wide != NULL;
	if (wide && !(out->wide = arena_alloc_raw(g->work->arena, n + 1, sizeof(*out->wide))))
		return work_nomem(g->work, err);
	for (size_t i = from; i < end; i++) {
		const struct profiles_merge_piece *piece = &g->pieces[i];

		if (piece->from->partition != p)
			continue;
		if (piece->cells.n) {
			memcpy(out->cells + out->n, piece->cells.cells, piece->cells.n * sizeof(*out->cells));
			if (wide)
				memcpy(out->wide + out->n, piece->cells.wide, piece->cells.n * sizeof(*out->wide));
		}
		out->n += piece->cells.n;
		if ((rc = grouped_join_headers(g, out, piece->from, err)) ||
			(rc = grouped_join_names(g, out, &piece->cells, err)))
			return rc;
		pieces++;
	}
	return pieces > 1 ? part_normalize(g->work, out, err) : ERR_OK;
}

static enum err_code grouped_build_group(struct grouped *g, uint32_t id, struct err *err)
{
	struct profile_value *v = &g->groups[id].p;
	size_t from = g->groups[id].from, end = from + g->groups[id].pieces_n, n, seen;
	enum err_code rc;

	v->parts = arena_array(g->work->arena, struct part, g->groups[id].pieces_n + 1);
	if (!v->parts)
		return work_nomem(g->work, err);
	for (size_t i = from; i < end; i++) {
		struct partition *p = g->pieces[i].from->partition;

		for (seen = 0; seen < v->parts_n && v->parts[seen].partition != p; seen++)
			;
		if (seen < v->parts_n)
			continue;
		n = 0;
		for (size_t k = i; k < end; k++)
			if (g->pieces[k].from->partition == p)
				n += g->pieces[k].cells.n;
		if ((rc = grouped_build_part(g, id, p, n, &v->parts[v->parts_n], err)))
			return rc;
		v->parts_n++;
	}
	for (size_t i = 0; i < v->parts_n && v->divisor; i++)
		for (size_t k = 0; k < v->parts[i].n; k++)
			v->wide_total += v->parts[i].wide[k];
	if (!v->divisor && v->parts_n > 0)
		return (rc = profile_join_signs(g->work, v, err)) ? rc : profile_totals(v, err);
	if (!v->divisor) {
		v->value_total = (int64_t)v->wide_total;
		if (v->wide_total != v->value_total)
			return err_set(err, ERR_LIMIT, "a sum exceeds 64 bits");
	}
	return ERR_OK;
}

static int profiles_merge_metric_cmp(const void *a, const void *b)
{
	return labels_cmp(
		((const struct profile_value *)a)->metric, ((const struct profile_value *)b)->metric);
}

enum err_code profiles_merge(struct work *work, const struct value *in, enum grouping grouping,
	struct name_list labels, struct value *out, struct err *err)
{
	struct grouped g = { .work = work, .grouping = grouping, .labels = labels };
	struct value result = { .type = in->n > 0 ? VALUE_PROFILES : in->type };
	enum err_code rc = ERR_OK;

	assert(!in->n || in->type == VALUE_PROFILES);
	assert(grouping <= GROUPING_WITHOUT);
	map_init(&g.map);
	for (size_t i = 0; i < in->n && !rc; i++)
		if (i % 1024 != 0 || !(rc = work_check(work, err)))
			rc = grouped_group_profile(&g, &in->profiles[i], err);
	if (!rc)
		rc = grouped_order_pieces(&g, err);
	for (size_t i = 0; i < g.groups_n && !rc; i++)
		rc = grouped_build_group(&g, (uint32_t)i, err);
	if (!rc && g.groups_n > 0) {
		result.profiles = arena_array(work->arena, struct profile_value, g.groups_n);
		if (!result.profiles)
			rc = work_nomem(work, err);
	}
	for (size_t i = 0; i < g.groups_n && !rc; i++)
		result.profiles[result.n++] = g.groups[i].p;
	/* Values of samples' labels come by their ids, which differ with where profiles are stored. */
	if (!rc && g.is_split && result.n)
		qsort(result.profiles, result.n, sizeof(*result.profiles), profiles_merge_metric_cmp);
	result.is_split = in->is_split || g.is_split;
	if (!rc)
		*out = result;
	map_release(&g.map);
	return rc;
}
