#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "tsdb/read/sum_internal.h"
#include "tsdb/symbols/partition.h"

/*
 * Stacks at the edges of a window as costs by name, so that they need no second walk by whoever
 * asked. It is one backward pass over the stacks' nodes, parents being below their children: a node
 * adds its subtree to its parent and to the names of its frames that are nowhere above it.
 *
 * Nearly every location is one frame of a function that has its name for itself: such a name is
 * above the node if the node is marked as recursive, and not otherwise. For other locations the
 * ancestors are searched.
 *
 * Nothing is moved where costs by name would not be the same: a cost is negative, a profile drops
 * frames, functions are shown under other names, or a frame has no name.
 */
#define CODE_ONE 1u /* a location's code is its name's place << 1 | CODE_ONE, */
#define CODE_SHIFT 1u /* or the index in lists << 1; 0: not looked at yet */

#define FRAMES_MAX 64u /* of a location: a bit for each */

struct name_sums {
	int64_t flat, cum;
	uint32_t name; /* string */
	bool shared; /* by several functions */
};

struct sum_names_naming {
	struct summing *t;
	struct partition *p;
	struct stack_nodes nodes;
	struct accum *up; /* of each node: what its children add */
	int64_t **up_pages; /* the same, as far as they were met */
	uint32_t functions_n, strings_n, locations_n;
	unsigned char *owners; /* per string: functions that have this name, 2 for more */
	uint32_t *place; /* per string: its place in names + 1 */
	uint32_t *codes; /* per location */
	uint32_t *lists; /* of a location: number of frames, then places of names, innermost first */
	uint32_t lists_n, lists_cap;
	struct name_sums *names; /* by place */
	uint32_t names_n, names_cap;
	int64_t total;
	bool usable;
};

/* ---- names ---- */

static bool sum_names_open_names(struct sum_names_naming *s)
{
	s->nodes = partition_nodes(s->p);
	/* Names of the functions that are counted here are among the strings that are. */
	s->functions_n = sym_functions_n(s->p);
	s->strings_n = sym_strings_n(s->p);
	s->locations_n = sym_locations_n(s->p);
	s->up_pages = calloc(accum_pages_n(s->t->acc) + 1, sizeof(*s->up_pages));
	s->owners = calloc((size_t)s->strings_n + 1, sizeof(*s->owners));
	s->place = calloc((size_t)s->strings_n + 1, sizeof(*s->place));
	s->codes = calloc((size_t)s->locations_n + 1, sizeof(*s->codes));
	s->lists_n = 1; /* an index of 0 would be a code of 0 */
	if (!s->up_pages || !s->owners || !s->place || !s->codes ||
		!array_room(&s->lists, 0, 1, &s->lists_cap))
		return false;
	for (uint32_t i = 0; i < s->functions_n; i++) {
		uint32_t name = sym_function(s->p, i)->name;

		if (name < s->strings_n && s->owners[name] < 2)
			s->owners[name]++;
	}
	return true;
}

static void sum_names_close_names(struct sum_names_naming *s)
{
	accum_close(s->up);
	free(s->up_pages);
	free(s->owners);
	free(s->place);
	free(s->codes);
	free(s->lists);
	free(s->names);
}

/* False: out of memory, or the frame has no name. */
static bool sum_names_naming_find_name(
	struct sum_names_naming *s, const struct sym_line *line, uint32_t *out)
{
	uint32_t name = sym_function(s->p, line->function)->name;

	if (line->function >= s->functions_n || !name || name >= s->strings_n) {
		s->usable = false;
		return false;
	}
	if (!s->place[name]) {
		if (!array_room(&s->names, s->names_n, 1, &s->names_cap))
			return false;
		s->names[s->names_n] = (struct name_sums){ .name = name, .shared = s->owners[name] > 1 };
		s->place[name] = ++s->names_n;
	}
	*out = s->place[name] - 1;
	return true;
}

static bool sum_names_naming_look_up(struct sum_names_naming *s, uint32_t location)
{
	const struct sym_location l = sym_location(s->p, location);
	uint32_t place;

	if (l.lines_n == 0 || l.lines_n > FRAMES_MAX) {
		s->usable = false;
		return false;
	}
	if (!array_room(&s->lists, s->lists_n, (size_t)l.lines_n + 1, &s->lists_cap))
		return false;
	for (uint32_t i = 0; i < l.lines_n; i++) {
		if (!sum_names_naming_find_name(s, &l.lines[i], &place))
			return false;
		s->lists[s->lists_n + 1 + i] = place;
	}
	if (l.lines_n == 1 && !s->names[place].shared) {
		s->codes[location] = place << CODE_SHIFT | CODE_ONE;
		return true;
	}
	s->lists[s->lists_n] = l.lines_n;
	s->codes[location] = s->lists_n << CODE_SHIFT;
	s->lists_n += l.lines_n + 1;
	return true;
}

/* False: out of memory, or !s->usable: the reader of cells says what is missing. */
static inline bool sum_names_naming_code_of(
	struct sum_names_naming *s, uint32_t location, uint32_t *out)
{
	if (__builtin_expect(location >= s->locations_n, 0)) {
		s->usable = false;
		return false;
	}
	if (__builtin_expect(!s->codes[location], 0) && !sum_names_naming_look_up(s, location))
		return false;
	*out = s->codes[location];
	return true;
}

static bool sum_names_has(const uint32_t *places, uint32_t n, uint32_t place)
{
	for (uint32_t i = 0; i < n; i++)
		if (places[i] == place)
			return true;
	return false;
}

/* The places of a location's names, innermost first. */
static inline const uint32_t *sum_names_naming_places_of(
	const struct sum_names_naming *s, uint32_t code, uint32_t *one, uint32_t *n)
{
	const uint32_t *list = s->lists + (code >> CODE_SHIFT);

	if (__builtin_expect(code & CODE_ONE, 1)) {
		*one = code >> CODE_SHIFT;
		*n = 1;
		return one;
	}
	*n = list[0];
	return list + 1;
}

/* ---- nodes ---- */

static inline uint32_t sum_names_location_of(struct stack_node node)
{
	return (node.tag >> 1) - 1; /* SYM_NONE: there is no such node */
}

/* A bit for each of the n places that is above the node. */
static bool sum_names_naming_find_above(
	struct sum_names_naming *s, struct stack_node at, uint32_t index, uint32_t n, uint64_t *out)
{
	const uint64_t all = UINT64_MAX >> (64 - n);

	for (*out = 0; at.parent && *out != all;) {
		uint32_t code, one, above_n;
		const uint32_t *above;

		at = stack_node_at(s->nodes, at.parent);
		if (!sum_names_naming_code_of(s, sum_names_location_of(at), &code))
			return false;
		above = sum_names_naming_places_of(s, code, &one, &above_n);
		for (uint32_t i = 0; i < n; i++)
			if (sum_names_has(above, above_n, s->lists[index + i]))
				*out |= UINT64_C(1) << i;
	}
	return true;
}

/* The subtree of a node whose location is not one frame of an unshared name. */
static bool sum_names_naming_add_frames(struct sum_names_naming *s, struct stack_node node,
	uint32_t code, bool recursive, int64_t subtree)
{
	uint32_t index = (code >> CODE_SHIFT) + 1, n = s->lists[index - 1], place;
	uint64_t above = 0;

	for (uint32_t i = 0; i < n && !recursive; i++)
		recursive = s->names[s->lists[index + i]].shared;
	if (recursive && !sum_names_naming_find_above(s, node, index, n, &above))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		place = s->lists[index + i];
		if (!(above >> i & 1) && !sum_names_has(s->lists + index, i, place))
			s->names[place].cum += subtree;
	}
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
	uint32_t code, place;
	int64_t *up;

	if (__builtin_expect(node.parent >= id, 0)) {
		s->usable = false;
		return false;
	}
	if (!(up = sum_names_naming_up_page(s, node.parent >> ACCUM_PAGE_LOG2)) ||
		!sum_names_naming_code_of(s, sum_names_location_of(node), &code))
		return false;
	up[node.parent & (ACCUM_PAGE - 1)] += subtree;
	place = code & CODE_ONE ? code >> CODE_SHIFT : s->lists[(code >> CODE_SHIFT) + 1];
	s->names[place].flat += own;
	if (__builtin_expect(!(code & CODE_ONE), 0))
		return sum_names_naming_add_frames(s, node, code, node.tag & 1, subtree);
	if (!(node.tag & 1))
		s->names[place].cum += subtree;
	return true;
}

/* All is at most the total, which fits: no addition can overflow. */
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

static enum err_code sum_names_naming_hand_over(struct sum_names_naming *s, struct err *err)
{
	struct rollup_function *v = malloc(((size_t)s->names_n + 1) * sizeof(*v));
	enum err_code rc;

	if (!v)
		return err_nomem(err, "sum");
	for (uint32_t i = 0; i < s->names_n; i++)
		v[i] = (struct rollup_function){
			.name = s->names[i].name, .flat = s->names[i].flat, .cum = s->names[i].cum
		};
	rc = function_sums_add(s->t->functions, v, s->names_n, s->total, err);
	free(v);
	return rc;
}

static bool sum_names_is_same_by_name(const struct summing *s)
{
	if (accum_has_negative(s->acc) || sym_has_shown(s->p))
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
	if (!sum_names_open_names(&m))
		rc = err_nomem(err, "sum");
	if (!rc)
		rc = sum_names_naming_add_pages(&m, err);
	if (!rc && m.usable && !(rc = sum_names_naming_hand_over(&m, err)))
		accum_clear(s->acc);
	sum_names_close_names(&m);
	return rc;
}
