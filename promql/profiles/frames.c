/*
 * flat is an addition per cell. cum is one backward pass over a partition's nodes, which turns
 * costs of stacks into costs of subtrees, and then an addition per node and group. A node adds its
 * subtree to a group unless an ancestor belongs to that group too, so each stack counts once, at
 * the group's outermost frame. For almost all nodes the symbols already mark recursion, by
 * function. Ancestors are looked at only if several functions share a name, or if groups are not
 * functions.
 */
#include "promql/profiles/frames.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"
#include "promql/profiles/frame.h"
#include "proto/report/frame_text.h"

/* The frames of a location, per partition. */
struct frames_of {
	struct partition *partition;
	uint32_t *first; /* per location: index into ids + 1 of its head; 0: not looked at yet */
	uint32_t first_n;
	struct pruned pruned; /* by the profile in work */
	char *ambiguous; /* per string: several functions have this name */
	uint32_t ambiguous_n;
	struct frames_of *next;
};

struct frames {
	struct eval *ev;
	struct frames_options o;
	bool by_name; /* groups are exactly functions' names */
	struct frames_of *partitions;
	uint32_t *ids; /* location after location: a head, and the groups of its frames */
	size_t ids_n, ids_cap;
	struct frame_group *groups;
	size_t groups_n, groups_cap;
	struct map map;
	/* of the sum in work */
	int64_t *flat, *cum;
	uint32_t *touched;
	char *is_touched;
	size_t touched_n, sums_cap;
	int64_t *nodes; /* all 0 between sums, as the bits are */
	uint64_t *met; /* a bit per node */
	size_t nodes_cap;
	size_t charged; /* bytes of these arrays, taken from the query's budget */
};

/* A location's head: the number of its frames; if each has a name that no other function has. */
#define HEAD_PLAIN 1u
#define HEAD_N_SHIFT 1u

enum err_code frames_open(
	struct eval *ev, const struct frames_options *o, struct frames **out, struct err *err)
{
	struct frames *f = calloc(1, sizeof(*f));

	if (!f)
		return eval_nomem(ev, err);
	f->ev = ev;
	f->o = *o;
	f->by_name = o->as_pprof || o->fields == FRAME_BIT(FRAME_FUNCTION);
	for (size_t i = 0; i < o->matchers_n; i++)
		f->by_name &= str_is(o->matchers[i].name, frame_field_name(FRAME_FUNCTION));
	map_init(&f->map);
	*out = f;
	return ERR_OK;
}

void frames_close(struct frames *f)
{
	if (!f)
		return;
	if (f->ev->budget)
		budget_give(f->ev->budget, f->charged);
	map_release(&f->map);
	free(f->flat);
	free(f->cum);
	free(f->touched);
	free(f->is_touched);
	free(f->nodes);
	free(f->met);
	free(f);
}

const struct frame_group *frames_group(const struct frames *f, uint32_t group)
{
	return &f->groups[group];
}

/* ---- fields of a frame ---- */

static struct str print_str(struct frames *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

static struct str print_str(struct frames *f, const char *fmt, ...)
{
	char text[64];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return str_dup(f->ev->arena, (struct str){ text, n > 0 ? (size_t)n : 0 });
}

static struct str mapping_file(const struct partition *p, const struct sym_location *l)
{
	return l->mapping == SYM_NONE ? STR("") : sym_string(p, sym_mapping(p, l->mapping)->filename);
}

static struct str field_of(struct frames *f, const struct partition *p,
	const struct sym_location *l, const struct sym_line *line, enum frame_field field)
{
	const struct sym_function *fn = line ? sym_function(p, line->function) : NULL;

	switch (field) {
	case FRAME_FUNCTION:
		return frame_name(f->ev->arena, p, l, line);
	case FRAME_SYSTEM_NAME:
		return fn ? sym_string(p, fn->system_name) : STR("");
	case FRAME_FILENAME:
		return fn ? sym_string(p, fn->filename) : STR("");
	case FRAME_LINE:
		return line && line->line ? print_str(f, "%" PRId64, line->line) : STR("");
	case FRAME_ADDRESS:
		return print_str(f, "0x%" PRIx64, l->address);
	case FRAME_MAPPING:
		return mapping_file(p, l);
	case FRAME_BUILD_ID:
		return l->mapping == SYM_NONE ? STR("") :
										sym_string(p, sym_mapping(p, l->mapping)->build_id);
	case FRAME_FIELDS:
		break;
	}
	return STR("");
}

static bool matches(struct frames *f, const struct partition *p, const struct sym_location *l,
	const struct sym_line *line)
{
	for (size_t i = 0; i < f->o.matchers_n; i++) {
		const struct matcher *m = &f->o.matchers[i];
		enum frame_field field = frame_field_find(m->name);
		bool yes = matcher_test(m, field_of(f, p, l, line, field));

		if (field == FRAME_FUNCTION && line)
			yes = frame_symbol_matches(m, p, sym_function(p, line->function), yes);
		if (!yes)
			return false;
	}
	return true;
}

/* ---- groups ---- */

static bool group_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct frame_group *a = key, *b = &((const struct frames *)ctx)->groups[id];

	for (unsigned i = 0; i < FRAME_FIELDS; i++)
		if (!str_eq(a->v[i], b->v[i]))
			return false;
	return str_eq(a->objfile, b->objfile) && a->start_line == b->start_line;
}

static enum err_code intern(
	struct frames *f, const struct frame_group *key, uint32_t *out, struct err *err)
{
	uint64_t hash = hash_bytes(key->objfile.ptr, key->objfile.len, (uint64_t)key->start_line);
	uint32_t id;

	for (unsigned i = 0; i < FRAME_FIELDS; i++)
		if (key->v[i].len)
			hash = hash_bytes(key->v[i].ptr, key->v[i].len, hash + i);
	id = map_find(&f->map, hash, group_eq, f, key);
	if (id == MAP_NONE) {
		if (!arena_array_room(f->ev->arena, &f->groups, f->groups_n, 1, &f->groups_cap))
			return eval_nomem(f->ev, err);
		id = (uint32_t)f->groups_n;
		if (!map_add(&f->map, hash, id))
			return eval_nomem(f->ev, err);
		f->groups[f->groups_n++] = *key;
	}
	*out = id;
	return ERR_OK;
}

static enum err_code group_of_frame(struct frames *f, const struct partition *p,
	const struct sym_location *l, const struct sym_line *line, uint32_t *out, struct err *err)
{
	struct frame_group key = { 0 };

	if (!matches(f, p, l, line)) {
		*out = GROUP_NONE;
		return ERR_OK;
	}
	for (unsigned i = 0; i < FRAME_FIELDS && !f->o.as_pprof; i++)
		if (f->o.fields & FRAME_BIT(i))
			key.v[i] = field_of(f, p, l, line, (enum frame_field)i);
	if (f->o.as_pprof) {
		const struct sym_function *fn = line ? sym_function(p, line->function) : NULL;

		key.v[FRAME_FUNCTION] = field_of(f, p, l, line, FRAME_FUNCTION);
		if (!fn || !sym_function_name(p, fn).len) {
			key.objfile = mapping_file(p, l);
			key.start_line = fn ? fn->start_line : 0;
		}
	}
	return intern(f, &key, out, err);
}

/* ---- locations ---- */

/*
 * Other queries may add symbols meanwhile. The symbols of our stacks were there when the stacks
 * were read, so all of them are counted.
 */
static enum err_code find_ambiguous(struct frames *f, struct frames_of *t, struct err *err)
{
	uint32_t n = sym_functions_n(t->partition);

	t->ambiguous_n = sym_strings_n(t->partition);
	if (!(t->ambiguous = arena_array(f->ev->arena, char, t->ambiguous_n)))
		return eval_nomem(f->ev, err);
	for (uint32_t i = 0; i < n; i++) { /* 0: no function has it, 1: one, 2: more */
		uint32_t name;

		if (!sym_exists(t->partition, SYM_FUNCTION, i))
			continue;
		name = sym_function(t->partition, i)->name;
		if (name < t->ambiguous_n && t->ambiguous[name] < 2)
			t->ambiguous[name]++;
	}
	return ERR_OK;
}

static enum err_code find_partition(
	struct frames *f, struct partition *p, struct frames_of **out, struct err *err)
{
	struct frames_of *t = f->partitions;
	uint32_t *grown, n;
	enum err_code rc;

	while (t && t->partition != p)
		t = t->next;
	if (!t) {
		if (!(t = arena_new(f->ev->arena, struct frames_of)))
			return eval_nomem(f->ev, err);
		t->partition = p;
		t->next = f->partitions;
		f->partitions = t;
	}
	/* More may have been read since the last sum. */
	if (!t->first || sym_locations_n(p) > t->first_n) {
		n = sym_locations_n(p);
		n += t->first ? n / 2 : 0;
		if (!(grown = arena_array(f->ev->arena, uint32_t, (size_t)n + 1)))
			return eval_nomem(f->ev, err);
		if (t->first)
			memcpy(grown, t->first, t->first_n * sizeof(*grown));
		t->first = grown;
		t->first_n = n;
		if (f->by_name && (rc = find_ambiguous(f, t, err)))
			return rc;
	}
	*out = t;
	return ERR_OK;
}

/* Each frame is of a function that has its name for itself. */
static bool is_plain(
	const struct frames *f, const struct frames_of *t, const struct sym_location *l)
{
	if (!f->by_name || l->lines_n == 0 || sym_has_shown(t->partition))
		return false; /* several symbols may be shown as one name */
	for (uint32_t i = 0; i < l->lines_n; i++) {
		uint32_t name = sym_function(t->partition, l->lines[i].function)->name;

		if (name == 0 || name >= t->ambiguous_n || t->ambiguous[name] > 1)
			return false;
	}
	return true;
}

static enum err_code look_up(
	struct frames *f, struct frames_of *t, uint32_t location, struct err *err)
{
	const struct sym_location *l = sym_location(t->partition, location);
	uint32_t n = l->lines_n ? l->lines_n : 1, *grown, *at;
	enum err_code rc;

	if (f->ids_n + n + 1 > f->ids_cap) {
		f->ids_cap = (f->ids_cap + n) * 2 + 1024;
		grown = arena_alloc_raw(f->ev->arena, f->ids_cap, sizeof(*grown));
		if (!grown)
			return eval_nomem(f->ev, err);
		if (f->ids_n)
			memcpy(grown, f->ids, f->ids_n * sizeof(*grown));
		f->ids = grown;
	}
	at = f->ids + f->ids_n;
	at[0] = n << HEAD_N_SHIFT | (is_plain(f, t, l) ? HEAD_PLAIN : 0);
	for (uint32_t i = 0; i < n; i++)
		if ((rc = group_of_frame(
				 f, t->partition, l, l->lines_n ? &l->lines[i] : NULL, &at[i + 1], err)))
			return rc;
	t->first[location] = (uint32_t)f->ids_n + 1;
	f->ids_n += n + 1;
	return ERR_OK;
}

/* The groups of a location's frames that are not dropped, innermost first; at least one. */
static inline enum err_code groups_of(struct frames *f, struct frames_of *t, uint32_t location,
	const uint32_t **out, uint32_t *n, bool *plain, struct err *err)
{
	enum err_code rc;
	uint32_t skip;

	if (__builtin_expect(!t->first[location], 0) && (rc = look_up(f, t, location, err)))
		return rc;
	skip = pruned_line(&t->pruned, location);
	*out = f->ids + t->first[location];
	*plain = (*out)[-1] & HEAD_PLAIN;
	*n = ((*out)[-1] >> HEAD_N_SHIFT) - skip;
	*out += skip;
	return ERR_OK;
}

/* ---- sums ---- */

static bool grow(void *array, size_t item, size_t n)
{
	void **at = array, *p = realloc(*at, n * item);

	if (p)
		*at = p;
	return p != NULL;
}

static enum err_code charge(struct frames *f, size_t bytes, struct err *err)
{
	struct budget *b = f->ev->budget;

	if (b && !budget_take(b, bytes))
		return budget_fail(b, "query", err);
	if (b)
		f->charged += bytes;
	return ERR_OK;
}

static enum err_code touch_first(struct frames *f, uint32_t group, struct err *err)
{
	size_t n = f->groups_cap > 256 ? f->groups_cap : 256;
	size_t item = sizeof(*f->flat) + sizeof(*f->cum) + sizeof(*f->touched) + 1;
	enum err_code rc;

	if (group >= f->sums_cap) {
		if ((rc = charge(f, (n - f->sums_cap) * item, err)))
			return rc;
		if (!grow(&f->flat, sizeof(*f->flat), n) || !grow(&f->cum, sizeof(*f->cum), n) ||
			!grow(&f->touched, sizeof(*f->touched), n) || !grow(&f->is_touched, 1, n))
			return eval_nomem(f->ev, err);
		memset(f->is_touched + f->sums_cap, 0, n - f->sums_cap);
		f->sums_cap = n;
	}
	f->is_touched[group] = 1;
	f->flat[group] = f->cum[group] = 0;
	f->touched[f->touched_n++] = group;
	return ERR_OK;
}

static inline enum err_code touch(struct frames *f, uint32_t group, struct err *err)
{
	return group < f->sums_cap && f->is_touched[group] ? ERR_OK : touch_first(f, group, err);
}

static bool has_group(const uint32_t *groups, uint32_t n, uint32_t group)
{
	for (uint32_t i = 0; i < n; i++)
		if (groups[i] == group)
			return true;
	return false;
}

/* An ancestor of the node has a frame of this group. */
static enum err_code above(struct frames *f, struct frames_of *t, uint32_t node, uint32_t group,
	bool *out, struct err *err)
{
	struct sym_node at = sym_node(t->partition, node);
	const uint32_t *groups;
	enum err_code rc;
	uint32_t n;
	bool plain;

	*out = false;
	while (at.parent != 0) {
		at = sym_node(t->partition, at.parent);
		if ((rc = groups_of(f, t, at.location, &groups, &n, &plain, err)))
			return rc;
		if (has_group(groups, n, group)) {
			*out = true;
			return ERR_OK;
		}
	}
	return ERR_OK;
}

/*
 * Ancestors are looked at only if a function of the node recurs, or shares its name with another
 * function: else no ancestor can be in the same group. If the node's only function recurs, one is.
 */
static enum err_code add_cum(struct frames *f, struct frames_of *t, uint32_t node,
	uint32_t location, bool recursive, int64_t v, struct err *err)
{
	bool plain, repeated = false;
	const uint32_t *groups;
	uint32_t n, group;
	enum err_code rc;

	if ((rc = groups_of(f, t, location, &groups, &n, &plain, err)))
		return rc;
	if (recursive && plain && n == 1 && !t->pruned.active)
		return ERR_OK;
	for (uint32_t i = 0; i < n; i++) {
		group = groups[i];
		if (group == GROUP_NONE || has_group(groups, i, group))
			continue;
		if (!plain || recursive) {
			if ((rc = above(f, t, node, group, &repeated, err)))
				return rc;
			if (repeated)
				continue;
		}
		if ((rc = touch(f, group, err)))
			return rc;
		f->cum[group] += v;
	}
	return ERR_OK;
}

static enum err_code add_flat(
	struct frames *f, struct frames_of *t, const struct part *part, struct err *err)
{
	const uint32_t *groups;
	enum err_code rc;
	uint32_t n;
	bool plain;

	for (size_t i = 0; i < part->n; i++) {
		const struct cell *c = &part->cells[i];

		uint32_t stack = pruned_stack(&t->pruned, c->stack);

		if (stack == 0) /* an empty stack is nobody's */
			continue;
		rc = groups_of(f, t, sym_node(t->partition, stack).location, &groups, &n, &plain, err);
		if (rc)
			return rc;
		if (groups[0] == GROUP_NONE)
			continue;
		if ((rc = touch(f, groups[0], err)))
			return rc;
		f->flat[groups[0]] += c->value - c->base;
	}
	return ERR_OK;
}

/* Costs that are known by name only; the query asks for names alone. */
static enum err_code add_names(struct frames *f, const struct part *part, struct err *err)
{
	for (size_t i = 0; i < part->names_n; i++) {
		const struct function_sum *sum = &part->names[i];
		struct str name = sym_string(part->partition, sum->name);
		struct frame_group key = { 0 };
		bool keep = true;
		uint32_t group;
		enum err_code rc;

		key.v[FRAME_FUNCTION] = sum->unnamed ? frame_binary_name(f->ev->arena, name) : name;
		if (f->o.as_pprof && sum->unnamed)
			key.objfile = name;
		for (size_t k = 0; k < f->o.matchers_n && keep; k++)
			keep = matcher_test(&f->o.matchers[k], key.v[FRAME_FUNCTION]);
		if (!keep)
			continue;
		if ((rc = intern(f, &key, &group, err)) || (rc = touch(f, group, err)))
			return rc;
		f->flat[group] += sum->flat;
		f->cum[group] += sum->cum;
	}
	return ERR_OK;
}

/* Zeroed; the old content is lost. */
static enum err_code nodes_room(struct frames *f, size_t n, struct err *err)
{
	enum err_code rc;

	if (n <= f->nodes_cap)
		return ERR_OK;
	if ((rc = charge(f,
			 (n - f->nodes_cap) * sizeof(*f->nodes) +
				 (n - f->nodes_cap + 63) / 64 * sizeof(*f->met),
			 err)))
		return rc;
	free(f->nodes);
	free(f->met);
	f->nodes_cap = 0;
	f->nodes = calloc(n, sizeof(*f->nodes));
	f->met = calloc(n / 64 + 1, sizeof(*f->met));
	if (!f->nodes || !f->met)
		return eval_nomem(f->ev, err);
	f->nodes_cap = n;
	return ERR_OK;
}

static inline void add_node(struct frames *f, uint32_t node, int64_t v)
{
	f->nodes[node] += v;
	f->met[node / 64] |= UINT64_C(1) << (node & 63);
}

/* Nodes that were met, from the last: parents are below their children. */
static enum err_code add_subtrees(
	struct frames *f, struct frames_of *t, size_t nodes, struct err *err)
{
	enum err_code rc;

	for (size_t w = nodes / 64 + 1; w-- > 0;) {
		if (w % 1024 == 0 && (rc = eval_check(f->ev, err)))
			return rc;
		while (f->met[w]) {
			unsigned bit = 63 - (unsigned)__builtin_clzll(f->met[w]);
			uint32_t id = (uint32_t)(w * 64 + bit);
			int64_t v = f->nodes[id];
			struct sym_node node;
			bool recursive;

			f->met[w] ^= UINT64_C(1) << bit;
			f->nodes[id] = 0;
			if (v == 0 || id == 0)
				continue;
			node = sym_node_marked(t->partition, id, &recursive);
			add_node(f, node.parent, v);
			if ((rc = add_cum(f, t, id, node.location, recursive, v, err)))
				return rc;
		}
	}
	return ERR_OK;
}

static enum err_code add_part(struct frames *f, const struct profile_value *p,
	const struct part *part, bool want_cum, struct err *err)
{
	struct frames_of *t = NULL;
	size_t nodes;
	enum err_code rc;

	if ((rc = add_names(f, part, err)) || part->n == 0)
		return rc;
	nodes = (size_t)part->cells[part->n - 1].stack + 1;
	if ((rc = find_partition(f, part->partition, &t, err)) ||
		(rc = pruned_init(&t->pruned, p, part, f->ev->arena, err)) ||
		(rc = add_flat(f, t, part, err)) || !want_cum || (rc = nodes_room(f, nodes, err)))
		return rc;
	for (size_t i = 0; i < part->n; i++)
		add_node(f, pruned_stack(&t->pruned, part->cells[i].stack),
			part->cells[i].value - part->cells[i].base);
	if ((rc = add_subtrees(f, t, nodes, err)))
		f->nodes_cap = 0; /* not all are 0 again */
	return rc;
}

enum err_code frames_sum(struct frames *f, const struct profile_value *p, bool want_cum,
	struct frame_sums *out, struct err *err)
{
	enum err_code rc = eval_check(f->ev, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < f->touched_n; i++)
		f->is_touched[f->touched[i]] = 0;
	f->touched_n = 0;
	for (size_t i = 0; i < p->parts_n; i++)
		if ((rc = add_part(f, p, &p->parts[i], want_cum, err)))
			return rc;
	*out = (struct frame_sums){ f->touched, f->touched_n, f->flat, f->cum };
	return ERR_OK;
}
