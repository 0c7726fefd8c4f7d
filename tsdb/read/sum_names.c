#include <assert.h>
#include <stdlib.h>

#include "tsdb/read/sum_internal.h"
#include "tsdb/symbols/partition.h"
#include "tsdb/symbols/shown.h"

/*
 * Costs of stacks become costs by name here, so that the caller need not walk the stacks again. It
 * is one backward pass over the stacks' nodes, since a parent's number is below its children's. A
 * node adds the sum of its subtree to its parent, and to each name of its frames that no node above
 * it has.
 *
 * A name is that of a function's representative (shown.h). Nearly every location is one frame of a
 * function that is shown like no other: its name is above the node if the node is marked as
 * recursive, and not otherwise. For other locations the ancestors are searched.
 *
 * Nothing is moved where costs by name would not be the same: a cost is negative, a profile drops
 * frames, or a frame has no name.
 */
struct name_sums {
	int64_t flat, cum;
	char alone; /* 'y': no other function is shown like it; 'n': some is; 0: not looked up yet */
};

struct sum_names_naming {
	struct summing *t;
	struct partition *p;
	struct stack_nodes nodes;
	struct accum *up; /* by node: the sum of what its children have added */
	int64_t **up_pages; /* pages of `up` that are in use */
	struct shown_names *shown;
	struct shown_codes *codes;
	struct name_sums *names; /* by function */
	uint32_t functions_n, locations_n;
	int64_t total;
	bool usable;
};

/* ---- names ---- */

static enum err_code sum_names_open_names(struct sum_names_naming *s, struct err *err)
{
	enum err_code rc;

	s->nodes = partition_nodes(s->p);
	/* First: the numbers of functions and locations below then cover all stacks that are
	 * counted. */
	if ((rc = shown_of(s->p, &s->shown, err)))
		return rc;
	s->functions_n = sym_functions_n(s->p);
	s->locations_n = sym_locations_n(s->p);
	s->up_pages = calloc(accum_pages_n(s->t->acc) + 1, sizeof(*s->up_pages));
	s->names = calloc((size_t)s->functions_n + 1, sizeof(*s->names));
	if (!s->up_pages || !s->names)
		return err_nomem(err, "sum");
	return shown_codes_hold(s->shown, s->locations_n, &s->codes, err);
}

static void sum_names_close_names(struct sum_names_naming *s)
{
	accum_close(s->up);
	shown_codes_release(s->codes);
	free(s->up_pages);
	free(s->names);
}

static bool sum_names_naming_look_up(struct sum_names_naming *s, uint32_t location, uint32_t *out)
{
	struct err err;

	if (shown_codes_find(s->shown, s->codes, s->p, location, out, &err))
		return false;
	if (!*out)
		s->usable = false;
	return *out != 0;
}

/* False: out of memory, or !s->usable: a symbol is missing, which whoever reads the cells
 * reports. */
static inline bool sum_names_naming_code_of(
	struct sum_names_naming *s, uint32_t location, uint32_t *out)
{
	if (__builtin_expect(location >= s->locations_n, 0)) {
		s->usable = false;
		return false;
	}
	*out = atomic_load_explicit(&s->codes->v[location], memory_order_acquire);
	return __builtin_expect(*out != 0, 1) || sum_names_naming_look_up(s, location, out);
}

/* No other function is shown like this one. */
static inline bool sum_names_naming_is_alone(struct sum_names_naming *s, uint32_t function)
{
	struct name_sums *n = &s->names[function];

	if (__builtin_expect(!n->alone, 0))
		n->alone = shown_is_alone(s->shown, function) ? 'y' : 'n';
	return n->alone == 'y';
}

static bool sum_names_has(const uint32_t *places, uint32_t n, uint32_t place)
{
	for (uint32_t i = 0; i < n; i++)
		if (places[i] == place)
			return true;
	return false;
}

/* The functions of a location, innermost first. */
static inline const uint32_t *sum_names_naming_functions_of(
	const struct sum_names_naming *s, uint32_t code, uint32_t *one, uint32_t *n)
{
	const uint32_t *list;

	if (__builtin_expect(code & SHOWN_ONE, 1)) {
		*one = code >> SHOWN_CODE_SHIFT;
		*n = 1;
		return one;
	}
	list = shown_list(s->shown, code);
	*n = list[0];
	return list + 1;
}

/* ---- nodes ---- */

static inline uint32_t sum_names_location_of(struct stack_node node)
{
	return (node.tag >> 1) - 1; /* SYM_NONE: the node does not exist */
}

/* *out: a bit for each of the n functions whose name some node above has. */
static bool sum_names_naming_find_above(struct sum_names_naming *s, struct stack_node at,
	const uint32_t *functions, uint32_t n, uint64_t *out)
{
	const uint64_t all = UINT64_MAX >> (64 - n);

	for (*out = 0; at.parent && *out != all;) {
		uint32_t code, one, above_n;
		const uint32_t *above;

		at = stack_node_at(s->nodes, at.parent);
		if (!sum_names_naming_code_of(s, sum_names_location_of(at), &code))
			return false;
		above = sum_names_naming_functions_of(s, code, &one, &above_n);
		for (uint32_t i = 0; i < n; i++)
			if (sum_names_has(above, above_n, functions[i]))
				*out |= UINT64_C(1) << i;
	}
	return true;
}

/* Adds a node's subtree to the names of its frames. A node above may have the same names. */
static bool sum_names_naming_add_frames(struct sum_names_naming *s, struct stack_node node,
	const uint32_t *functions, uint32_t n, bool recursive, int64_t subtree)
{
	uint64_t above = 0;

	for (uint32_t i = 0; i < n && !recursive; i++)
		recursive = !sum_names_naming_is_alone(s, functions[i]);
	if (recursive && !sum_names_naming_find_above(s, node, functions, n, &above))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!(above >> i & 1) && !sum_names_has(functions, i, functions[i]))
			s->names[functions[i]].cum += subtree;
	return true;
}

static inline int64_t *sum_names_naming_up_page(struct sum_names_naming *s, size_t page)
{
	if (__builtin_expect(!s->up_pages[page], 0))
		s->up_pages[page] = accum_page_make(s->up, page);
	return s->up_pages[page];
}

static inline bool sum_names_naming_add_node(
	struct sum_names_naming *s, uint32_t id, int64_t own, int64_t subtree)
{
	struct stack_node node = stack_node_at(s->nodes, id);
	uint32_t code, one, n;
	const uint32_t *functions;
	int64_t *up;

	if (__builtin_expect(node.parent >= id, 0)) {
		s->usable = false;
		return false;
	}
	if (!(up = sum_names_naming_up_page(s, node.parent >> ACCUM_PAGE_LOG2)) ||
		!sum_names_naming_code_of(s, sum_names_location_of(node), &code))
		return false;
	up[node.parent & (ACCUM_PAGE - 1)] += subtree;
	functions = sum_names_naming_functions_of(s, code, &one, &n);
	s->names[functions[0]].flat += own;
	if (__builtin_expect(n > 1 || !sum_names_naming_is_alone(s, functions[0]), 0))
		return sum_names_naming_add_frames(s, node, functions, n, node.tag & 1, subtree);
	if (!(node.tag & 1))
		s->names[functions[0]].cum += subtree;
	return true;
}

/* Sums all costs. If the total fits, no other addition can overflow, as no cost is negative. */
static void sum_names_naming_find_total(struct sum_names_naming *s)
{
	const int64_t *own;

	for (size_t i = 0; i < accum_pages_n(s->t->acc); i++) {
		if (!(own = accum_page(s->t->acc, i)))
			continue;
		for (uint32_t k = 0; k < ACCUM_PAGE; k++)
			if (__builtin_add_overflow(s->total, own[k], &s->total))
				s->usable = false;
	}
}

static bool sum_names_naming_add_page(struct sum_names_naming *s, size_t page)
{
	const int64_t *own = accum_page(s->t->acc, page), *up;
	uint32_t first = (uint32_t)(page << ACCUM_PAGE_LOG2), least = page == 0;

	if (!own && !s->up_pages[page])
		return true;
	if (!(up = sum_names_naming_up_page(s, page))) /* parents may be in the same page */
		return false;
	for (uint32_t k = ACCUM_PAGE; k-- > least;) { /* an empty stack belongs to no function */
		int64_t v = own ? own[k] : 0;

		if (v + up[k] && !sum_names_naming_add_node(s, first + k, v, v + up[k]))
			return false;
	}
	return true;
}

static enum err_code sum_names_naming_add_pages(struct sum_names_naming *s, struct err *err)
{
	enum err_code rc = ERR_OK;

	sum_names_naming_find_total(s);
	for (size_t i = accum_pages_n(s->t->acc); i-- > 0 && s->usable && !rc;)
		if (!(rc = sum_canceled(s->t, err)) && !sum_names_naming_add_page(s, i) && s->usable)
			rc = err_nomem(err, "sum");
	return rc;
}

/* ---- all ---- */

/* Checks that each name means one function. Functions that share a name but are shown differently
 * make the sums unusable. */
static enum err_code sum_names_naming_check(struct sum_names_naming *s,
	const struct rollup_function *names, const uint32_t *functions, size_t n, struct err *err)
{
	uint32_t *named;
	enum err_code rc;

	for (size_t i = 0; i < n; i++)
		s->usable &= names[i].name != 0;
	if (!n || !s->usable || !sym_has_shown(s->p))
		return ERR_OK;
	if (!(named = malloc(n * sizeof(*named))))
		return err_nomem(err, "sum");
	rc = shown_functions_named(s->p, s->shown, &names->name, sizeof(*names), n, named, err);
	if (!rc)
		s->usable = !memcmp(named, functions, n * sizeof(*named));
	free(named);
	return rc;
}

static enum err_code sum_names_naming_hand_over(struct sum_names_naming *s, struct err *err)
{
	struct rollup_function *v = malloc(((size_t)s->functions_n + 1) * sizeof(*v));
	uint32_t *functions = malloc(((size_t)s->functions_n + 1) * sizeof(*functions)), n = 0;
	enum err_code rc = v && functions ? ERR_OK : err_nomem(err, "sum");

	for (uint32_t i = 0; i < s->functions_n && !rc; i++)
		if (s->names[i].flat || s->names[i].cum) {
			functions[n] = i;
			v[n++] = (struct rollup_function){ .name = sym_function(s->p, i)->name,
				.flat = s->names[i].flat,
				.cum = s->names[i].cum };
		}
	if (!rc)
		rc = sum_names_naming_check(s, v, functions, n, err);
	if (!rc && s->usable)
		rc = function_sums_add(s->t->functions, v, n, s->total, err);
	free(v);
	free(functions);
	return rc;
}

static bool sum_names_is_same_by_name(const struct summing *s)
{
	if (accum_has_negative(s->acc))
		return false;
	for (uint32_t i = 0; i < s->stats->headers_n; i++)
		if (sym_header(s->p, s->stats->headers[i])->drop_frames)
			return false;
	return true;
}

enum err_code sum_names(struct summing *s, struct err *err)
{
	struct sum_names_naming m = { .t = s, .p = s->p, .usable = true };
	enum err_code rc;

	assert(!s->p->base);
	if (!accum_pages_n(s->acc) || !sum_names_is_same_by_name(s))
		return ERR_OK;
	if ((rc = accum_open(s->p, 0, &m.up, err)))
		return rc;
	if (!(rc = sum_names_open_names(&m, err)))
		rc = sum_names_naming_add_pages(&m, err);
	if (!rc && m.usable && !(rc = sum_names_naming_hand_over(&m, err)) && m.usable)
		accum_clear(s->acc);
	sum_names_close_names(&m);
	return rc;
}
