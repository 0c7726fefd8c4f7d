/*
 * Each label set of a part has a chain: the frames of its values. Cells are taken chain by chain.
 * The first walk over their stacks counts nodes and locations, so that there is room; the second
 * one makes them. A node that a chain has already met is not walked again.
 */
#include "promql/profiles/tag_frames.h"

#include <assert.h>

#include "base/array.h"
#include "base/map.h"
#include "promql/profiles/filter.h"
#include "promql/profiles/frame.h"
#include "promql/profiles/profiles.h"
#include "proto/report/pprof_unit.h"
#include "tsdb/symbols/derive.h"

#define CELLS_UNCHECKED 4096u

struct tag_frame {
	struct str name;
	uint32_t key;
	uint32_t location; /* the derived one */
};

struct tag_frames {
	struct work *work;
	struct arena *a; /* scratch */
	const struct profile_value *p;
	const struct part *part;
	const struct partition *from;
	bool leaf;
	const struct str *keys;
	uint32_t keys_n;
	struct pruned pruned;
	struct tag_frame *frames;
	size_t frames_n, frames_cap;
	struct map frame_map;
	uint32_t *chains; /* keys_n frames of each */
	size_t chains_n, chains_cap;
	struct map chain_map;
	uint32_t *chain_of; /* of each label set: + 1; 0: not known yet */
	uint32_t *order; /* cells, by chain */
	uint32_t *stamp, *to; /* per node */
	uint32_t *location_to; /* per location: + 1 */
	size_t locations_n; /* others may add more meanwhile */
	uint32_t *way;
	size_t way_cap;
	struct derive_room room;
	struct derived *derived;
};

/* ---- values ---- */

static bool tag_frames_is_number(const struct sym_label *l)
{
	return !l->str && (l->num || l->num_unit);
}

static void tag_frames_separate(struct buf *out, bool *any)
{
	if (*any)
		buf_add_char(out, ',');
	*any = true;
}

/* As pprof_tags.c has it: texts, then numbers; with "minimum" if some number has a unit. */
static void tag_frames_add_values(
	const struct tag_frames *t, struct str name, uint32_t label_set, struct buf *out)
{
	struct sym_label_set set = sym_label_set(t->from, label_set);
	bool any = false, has_unit = false;
	struct str key;

	switch (label_source(t->p->metric, t->from, name, &key)) {
	case LABEL_NOWHERE:
		return;
	case LABEL_OF_SERIES:
		buf_add_str(out, labels_get(t->p->metric, name));
		return;
	case LABEL_OF_SAMPLES:
		break;
	}
	for (uint32_t i = 0; i < set.n; i++) {
		if (!str_eq(sym_string(t->from, set.v[i].key), key))
			continue;
		has_unit |= tag_frames_is_number(&set.v[i]) && set.v[i].num_unit;
		if (!set.v[i].str)
			continue;
		tag_frames_separate(out, &any);
		buf_add_str(out, sym_string(t->from, set.v[i].str));
	}
	for (uint32_t i = 0; i < set.n; i++) {
		if (!tag_frames_is_number(&set.v[i]) || !str_eq(sym_string(t->from, set.v[i].key), key))
			continue;
		tag_frames_separate(out, &any);
		pprof_unit_print(out, set.v[i].num, sym_string(t->from, set.v[i].num_unit),
			has_unit ? STR("minimum") : STR(""));
	}
}

/* ---- chains ---- */

static bool tag_frames_frame_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct tag_frame *a = key, *b = &((const struct tag_frames *)ctx)->frames[id];

	return a->key == b->key && str_eq(a->name, b->name);
}

static enum err_code tag_frames_find_frame(
	struct tag_frames *t, struct str name, uint32_t key, uint32_t *out, struct err *err)
{
	struct tag_frame frame = { name, key, SYM_NONE };
	uint64_t hash = hash_bytes(name.ptr, name.len, key);

	*out = map_find(&t->frame_map, hash, tag_frames_frame_eq, t, &frame);
	if (*out != MAP_NONE)
		return ERR_OK;
	frame.name = str_dup(t->work->arena, name);
	if (!frame.name.ptr || !arena_array_room(t->a, &t->frames, t->frames_n, 1, &t->frames_cap))
		return work_nomem(t->work, err);
	*out = (uint32_t)t->frames_n;
	if (!map_add(&t->frame_map, hash, *out))
		return work_nomem(t->work, err);
	t->frames[t->frames_n++] = frame;
	return ERR_OK;
}

static bool tag_frames_chain_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct tag_frames *t = ctx;

	return !memcmp(key, t->chains + (size_t)id * t->keys_n, t->keys_n * sizeof(*t->chains));
}

static enum err_code tag_frames_find_chain(
	struct tag_frames *t, uint32_t label_set, struct buf *scratch, uint32_t *out, struct err *err)
{
	uint32_t *chain;
	uint64_t hash;
	enum err_code rc;

	if (!arena_array_room(t->a, &t->chains, t->chains_n * t->keys_n, t->keys_n, &t->chains_cap))
		return work_nomem(t->work, err);
	chain = t->chains + t->chains_n * t->keys_n;
	for (uint32_t i = 0; i < t->keys_n; i++) {
		buf_clear(scratch);
		tag_frames_add_values(t, t->keys[i], label_set, scratch);
		if (buf_failed(scratch))
			return work_nomem(t->work, err);
		if ((rc = tag_frames_find_frame(t, buf_str(scratch), i, &chain[i], err)))
			return rc;
	}
	hash = hash_bytes(chain, t->keys_n * sizeof(*chain), 0);
	*out = map_find(&t->chain_map, hash, tag_frames_chain_eq, t, chain);
	if (*out != MAP_NONE)
		return ERR_OK;
	*out = (uint32_t)t->chains_n;
	if (!map_add(&t->chain_map, hash, *out))
		return work_nomem(t->work, err);
	t->chains_n++;
	return ERR_OK;
}

/* Chains of all label sets, and cells in the order of their chains. */
static enum err_code tag_frames_order_cells(struct tag_frames *t, struct err *err)
{
	const struct part *part = t->part;
	struct buf scratch = { 0 };
	uint32_t *first, chain = 0;
	enum err_code rc = ERR_OK;

	t->chain_of = arena_array(t->a, uint32_t, (size_t)sym_label_sets_n(t->from) + 1);
	t->order = arena_array(t->a, uint32_t, part->n + 1);
	if (!t->chain_of || !t->order)
		return work_nomem(t->work, err);
	for (size_t i = 0; i < part->n && !rc; i++) {
		uint32_t set = part->cells[i].label_set;

		if (t->chain_of[set])
			continue;
		rc = tag_frames_find_chain(t, set, &scratch, &chain, err);
		t->chain_of[set] = chain + 1;
	}
	buf_release(&scratch);
	if (rc)
		return rc;
	if (!(first = arena_array(t->a, uint32_t, t->chains_n + 2)))
		return work_nomem(t->work, err);
	for (size_t i = 0; i < part->n; i++)
		first[t->chain_of[part->cells[i].label_set] + 1]++;
	for (size_t c = 1; c < t->chains_n + 2; c++)
		first[c] += first[c - 1];
	for (size_t i = 0; i < part->n; i++)
		t->order[first[t->chain_of[part->cells[i].label_set]]++] = (uint32_t)i;
	return ERR_OK;
}

/* ---- stacks ---- */

static const struct cell *tag_frames_cell(const struct tag_frames *t, size_t at)
{
	return &t->part->cells[t->order[at]];
}

static uint32_t tag_frames_chain(const struct tag_frames *t, size_t at)
{
	return t->chain_of[tag_frames_cell(t, at)->label_set] - 1;
}

/* Marks of a walk: chains differ in them with tagroot, whose stacks are copied for each. */
static uint32_t tag_frames_mark(const struct tag_frames *t, size_t at, bool counting)
{
	uint32_t chain = t->leaf ? 0 : tag_frames_chain(t, at);

	return 2 * chain + 1 + !counting;
}

/* The nodes of a stack that have no such mark yet, from the leaf up; they get it. */
static enum err_code tag_frames_walk(
	struct tag_frames *t, size_t at, bool counting, uint32_t *top, size_t *n, struct err *err)
{
	uint32_t mark = tag_frames_mark(t, at, counting);
	uint32_t node = pruned_stack(&t->pruned, tag_frames_cell(t, at)->stack);

	*n = 0;
	for (; node && t->stamp[node] != mark; node = sym_node(t->from, node).parent) {
		if (!arena_array_room(t->a, &t->way, *n, 1, &t->way_cap))
			return work_nomem(t->work, err);
		t->stamp[node] = mark;
		t->way[(*n)++] = node;
	}
	*top = node;
	return ERR_OK;
}

static enum err_code tag_frames_count(struct tag_frames *t, struct err *err)
{
	uint64_t nodes = (uint64_t)t->keys_n * (t->leaf ? t->part->n : t->chains_n), locations = 0;
	enum err_code rc;
	uint32_t top;
	size_t n;

	for (size_t i = 0; i < t->part->n; i++) {
		if (i % CELLS_UNCHECKED == 0 && (rc = work_check(t->work, err)))
			return rc;
		if ((rc = tag_frames_walk(t, i, true, &top, &n, err)))
			return rc;
		nodes += n;
		for (size_t k = 0; k < n; k++) {
			uint32_t *to = &t->location_to[sym_node(t->from, t->way[k]).location];

			locations += !*to;
			*to = 1;
		}
	}
	if (nodes > UINT32_MAX / 4)
		return err_set(err, ERR_LIMIT, "the labels' values make too many stacks");
	memset(t->location_to, 0, t->locations_n * sizeof(*t->location_to));
	t->room = (struct derive_room){ (uint32_t)nodes, (uint32_t)(locations + t->frames_n),
		t->part->headers_n, (uint32_t)t->frames_n };
	return ERR_OK;
}

static enum err_code tag_frames_make_frames(struct tag_frames *t, struct err *err)
{
	struct sym_line *lines = arena_array(t->work->arena, struct sym_line, t->frames_n + 1);

	if (!lines)
		return work_nomem(t->work, err);
	for (size_t i = 0; i < t->frames_n; i++) {
		struct tag_frame *f = &t->frames[i];
		struct sym_location l = { .mapping = SYM_NONE, .lines_n = 1, .lines = &lines[i] };

		lines[i].function = derive_function(t->derived, f->name, t->keys[f->key]);
		f->location = derive_location(t->derived, &l);
	}
	return ERR_OK;
}

static uint32_t tag_frames_location(struct tag_frames *t, uint32_t id)
{
	if (!t->location_to[id]) {
		struct sym_location l = sym_location(t->from, id);
		uint32_t skip = pruned_line(&t->pruned, id);

		l.lines += skip;
		l.lines_n -= skip;
		t->location_to[id] = derive_location(t->derived, &l) + 1;
	}
	return t->location_to[id] - 1;
}

static uint32_t tag_frames_add_chain(struct tag_frames *t, uint32_t parent, uint32_t chain)
{
	for (uint32_t k = 0; k < t->keys_n; k++)
		parent = derive_node(t->derived, parent,
			t->frames[t->chains[(size_t)chain * t->keys_n + k]].location, t->keys_n > 1);
	return parent;
}

static enum err_code tag_frames_make_stacks(
	struct tag_frames *t, struct cell *cells, struct err *err)
{
	uint32_t chain, root = 0, top, stack;
	enum err_code rc;
	size_t n;

	for (size_t i = 0; i < t->part->n; i++) {
		if (i % CELLS_UNCHECKED == 0 && (rc = work_check(t->work, err)))
			return rc;
		chain = tag_frames_chain(t, i);
		if (!t->leaf && (i == 0 || tag_frames_chain(t, i - 1) != chain))
			root = tag_frames_add_chain(t, 0, chain);
		if ((rc = tag_frames_walk(t, i, false, &top, &n, err)))
			return rc;
		stack = top ? t->to[top] : root;
		while (n-- > 0) {
			uint32_t node = t->way[n];

			stack = t->to[node] = derive_node(t->derived, stack,
				tag_frames_location(t, sym_node(t->from, node).location),
				sym_node_recursive(t->from, node));
		}
		cells[i] = *tag_frames_cell(t, i);
		cells[i].stack = t->leaf ? tag_frames_add_chain(t, stack, chain) : stack;
	}
	return ERR_OK;
}

static enum err_code tag_frames_add_to_part(
	struct tag_frames *t, const struct part *in, struct part *out, struct err *err)
{
	size_t nodes_n = in->n ? in->cells[in->n - 1].stack + (size_t)1 : 1;
	struct cell *cells = arena_alloc_raw(t->work->arena, in->n + 1, sizeof(*cells));
	enum err_code rc;

	assert(!in->wide && !in->names_n);
	t->part = in;
	t->from = in->partition;
	t->stamp = arena_array(t->a, uint32_t, nodes_n);
	t->to = arena_array(t->a, uint32_t, nodes_n);
	t->locations_n = (size_t)sym_locations_n(t->from) + 1;
	t->location_to = arena_array(t->a, uint32_t, t->locations_n);
	if (!cells || !t->stamp || !t->to || !t->location_to)
		return work_nomem(t->work, err);
	*out = (struct part){ .cells = cells, .n = in->n };
	if ((rc = pruned_init(&t->pruned, t->p, in, t->a, err)) ||
		(rc = tag_frames_order_cells(t, err)) || (rc = tag_frames_count(t, err)) ||
		(rc = derive_open(t->work->arena, t->a, t->from, t->room, &t->derived, err)) ||
		(rc = filter_headers(t->work, t->derived, in, out, err)) ||
		(rc = tag_frames_make_frames(t, err)) || (rc = tag_frames_make_stacks(t, cells, err)))
		return rc;
	out->partition = derive_partition(t->derived);
	return part_normalize(t->work, out, err);
}

/* ---- all of it ---- */

static enum err_code tag_frames_add_to_profile(struct work *work, struct profile_value *p,
	const struct str *keys, uint32_t keys_n, bool leaf, struct err *err)
{
	const struct profile_value from = *p;
	enum err_code rc = ERR_OK;

	if (!(p->parts = arena_array(work->arena, struct part, from.parts_n + 1)))
		return work_nomem(work, err);
	for (size_t i = 0; i < from.parts_n && !rc; i++) {
		struct arena scratch;
		struct tag_frames t = {
			.work = work, .a = &scratch, .p = &from, .leaf = leaf, .keys = keys, .keys_n = keys_n
		};

		arena_init_shared(&scratch, work->budget);
		map_init(&t.frame_map);
		map_init(&t.chain_map);
		rc = tag_frames_add_to_part(&t, &from.parts[i], &p->parts[i], err);
		map_release(&t.frame_map);
		map_release(&t.chain_map);
		arena_release(&scratch);
	}
	if (rc)
		return rc;
	p->filtered = true; /* the total is that of before */
	return profile_totals(p, err);
}

enum err_code tag_frames_add(
	struct work *work, struct value *v, struct str text, bool leaf, struct err *err)
{
	struct profile_value *profiles = arena_array(work->arena, struct profile_value, v->n + 1);
	struct str *keys = arena_array(work->arena, struct str, text.len + 1);
	uint32_t keys_n = 0;
	enum err_code rc = ERR_OK;

	if (!profiles || !keys)
		return work_nomem(work, err);
	for (size_t from = 0, end; from <= text.len; from = end + 1) {
		for (end = from; end < text.len && text.ptr[end] != ','; end++)
			;
		if (end > from)
			keys[keys_n++] = (struct str){ text.ptr + from, end - from };
	}
	for (size_t i = 0; i < v->n && keys_n && !rc; i++) {
		profiles[i] = v->profiles[i];
		rc = tag_frames_add_to_profile(work, &profiles[i], keys, keys_n, leaf, err);
	}
	if (keys_n)
		v->profiles = profiles;
	return rc;
}
