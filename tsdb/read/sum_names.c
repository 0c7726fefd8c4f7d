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

static bool sum_names_naming_open_names(struct sum_names_naming *m)
{
	m->nodes = partition_nodes(m->p);
	/* Names of the functions that are counted here are among the strings that are. */
	m->functions_n = sym_functions_n(m->p);
	m->strings_n = sym_strings_n(m->p);
	m->locations_n = sym_locations_n(m->p);
	m->up_pages = calloc(accum_pages_n(m->t->acc) + 1, sizeof(*m->up_pages));
	m->owners = calloc((size_t)m->strings_n + 1, sizeof(*m->owners));
	m->place = calloc((size_t)m->strings_n + 1, sizeof(*m->place));
	m->codes = calloc((size_t)m->locations_n + 1, sizeof(*m->codes));
	m->lists_n = 1; /* an index of 0 would be a code of 0 */
	if (!m->up_pages || !m->owners || !m->place || !m->codes ||
		!array_room(&m->lists, 0, 1, &m->lists_cap))
		return false;
	for (uint32_t i = 0; i < m->functions_n; i++) {
		uint32_t name = sym_function(m->p, i)->name;

		if (name < m->strings_n && m->owners[name] < 2)
			m->owners[name]++;
	}
	return true;
}

static void sum_names_naming_close_names(struct sum_names_naming *m)
{
	accum_close(m->up);
	free(m->up_pages);
	free(m->owners);
	free(m->place);
	free(m->codes);
	free(m->lists);
	free(m->names);
}

/* False: out of memory, or the frame has no name. */
static bool sum_names_naming_find_name(
	struct sum_names_naming *m, const struct sym_line *line, uint32_t *out)
{
	uint32_t name = sym_function(m->p, line->function)->name;

	if (line->function >= m->functions_n || !name || name >= m->strings_n) {
		m->usable = false;
		return false;
	}
	if (!m->place[name]) {
		if (!array_room(&m->names, m->names_n, 1, &m->names_cap))
			return false;
		m->names[m->names_n] = (struct name_sums){ .name = name, .shared = m->owners[name] > 1 };
		m->place[name] = ++m->names_n;
	}
	*out = m->place[name] - 1;
	return true;
}

static bool sum_names_naming_look_up(struct sum_names_naming *m, uint32_t location)
{
	const struct sym_location *l = sym_location(m->p, location);
	uint32_t place;

	if (l->lines_n == 0 || l->lines_n > FRAMES_MAX) {
		m->usable = false;
		return false;
	}
	if (!array_room(&m->lists, m->lists_n, (size_t)l->lines_n + 1, &m->lists_cap))
		return false;
	for (uint32_t i = 0; i < l->lines_n; i++) {
		if (!sum_names_naming_find_name(m, &l->lines[i], &place))
			return false;
		m->lists[m->lists_n + 1 + i] = place;
	}
	if (l->lines_n == 1 && !m->names[place].shared) {
		m->codes[location] = place << CODE_SHIFT | CODE_ONE;
		return true;
	}
	m->lists[m->lists_n] = l->lines_n;
	m->codes[location] = m->lists_n << CODE_SHIFT;
	m->lists_n += l->lines_n + 1;
	return true;
}

/* False: out of memory, or !m->usable: the reader of cells says what is missing. */
static inline bool sum_names_naming_code_of(
	struct sum_names_naming *m, uint32_t location, uint32_t *out)
{
	if (__builtin_expect(location >= m->locations_n, 0)) {
		m->usable = false;
		return false;
	}
	if (__builtin_expect(!m->codes[location], 0) && !sum_names_naming_look_up(m, location))
		return false;
	*out = m->codes[location];
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
	const struct sum_names_naming *m, uint32_t code, uint32_t *one, uint32_t *n)
{
	const uint32_t *list = m->lists + (code >> CODE_SHIFT);

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
	struct sum_names_naming *m, struct stack_node at, uint32_t index, uint32_t n, uint64_t *out)
{
	const uint64_t all = UINT64_MAX >> (64 - n);

	for (*out = 0; at.parent && *out != all;) {
		uint32_t code, one, above_n;
		const uint32_t *above;

		at = stack_node_at(m->nodes, at.parent);
		if (!sum_names_naming_code_of(m, sum_names_location_of(at), &code))
			return false;
		above = sum_names_naming_places_of(m, code, &one, &above_n);
		for (uint32_t i = 0; i < n; i++)
			if (sum_names_has(above, above_n, m->lists[index + i]))
				*out |= UINT64_C(1) << i;
	}
	return true;
}

/* The subtree of a node whose location is not one frame of an unshared name. */
static bool sum_names_naming_add_frames(struct sum_names_naming *m, struct stack_node node,
	uint32_t code, bool recursive, int64_t subtree)
{
	uint32_t index = (code >> CODE_SHIFT) + 1, n = m->lists[index - 1], place;
	uint64_t above = 0;

	for (uint32_t i = 0; i < n && !recursive; i++)
		recursive = m->names[m->lists[index + i]].shared;
	if (recursive && !sum_names_naming_find_above(m, node, index, n, &above))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		place = m->lists[index + i];
		if (!(above >> i & 1) && !sum_names_has(m->lists + index, i, place))
			m->names[place].cum += subtree;
	}
	return true;
}

static inline int64_t *sum_names_naming_up_page(struct sum_names_naming *m, size_t page)
{
	if (__builtin_expect(!m->up_pages[page], 0))
		m->up_pages[page] = accum_page_make(m->up, page);
	return m->up_pages[page];
}

static inline bool sum_names_naming_add_node(
	struct sum_names_naming *m, uint32_t id, int64_t own, int64_t subtree)
{
	struct stack_node node = stack_node_at(m->nodes, id);
	uint32_t code, place;
	int64_t *up;

	if (__builtin_expect(node.parent >= id, 0)) {
		m->usable = false;
		return false;
	}
	if (!(up = sum_names_naming_up_page(m, node.parent >> ACCUM_PAGE_LOG2)) ||
		!sum_names_naming_code_of(m, sum_names_location_of(node), &code))
		return false;
	up[node.parent & (ACCUM_PAGE - 1)] += subtree;
	place = code & CODE_ONE ? code >> CODE_SHIFT : m->lists[(code >> CODE_SHIFT) + 1];
	m->names[place].flat += own;
	if (__builtin_expect(!(code & CODE_ONE), 0))
		return sum_names_naming_add_frames(m, node, code, node.tag & 1, subtree);
	if (!(node.tag & 1))
		m->names[place].cum += subtree;
	return true;
}

/* All is at most the total, which fits: no addition can overflow. */
static void sum_names_naming_find_total(struct sum_names_naming *m)
{
	const int64_t *own;

	for (size_t i = 0; i < accum_pages_n(m->t->acc); i++) {
		if (!(own = accum_page(m->t->acc, i)))
			continue;
		for (uint32_t k = 0; k < ACCUM_PAGE; k++)
			if (__builtin_add_overflow(m->total, own[k], &m->total))
				m->usable = false;
	}
}

static bool sum_names_naming_add_page(struct sum_names_naming *m, size_t page)
{
	const int64_t *own = accum_page(m->t->acc, page), *up;
	uint32_t first = (uint32_t)(page << ACCUM_PAGE_LOG2), least = page == 0;

	if (!own && !m->up_pages[page])
		return true;
	if (!(up = sum_names_naming_up_page(m, page))) /* parents may be in the same page */
		return false;
	for (uint32_t k = ACCUM_PAGE; k-- > least;) { /* an empty stack belongs to no function */
		int64_t v = own ? own[k] : 0;

		if (v + up[k] && !sum_names_naming_add_node(m, first + k, v, v + up[k]))
			return false;
	}
	return true;
}

static enum err_code sum_names_naming_add_pages(struct sum_names_naming *m, struct err *err)
{
	enum err_code rc = ERR_OK;

	sum_names_naming_find_total(m);
	for (size_t i = accum_pages_n(m->t->acc); i-- > 0 && m->usable && !rc;)
		if (!(rc = sum_canceled(m->t, err)) && !sum_names_naming_add_page(m, i) && m->usable)
			rc = err_nomem(err, "sum");
	return rc;
}

/* ---- all ---- */

static enum err_code sum_names_naming_hand_over(struct sum_names_naming *m, struct err *err)
{
	struct rollup_function *v = malloc(((size_t)m->names_n + 1) * sizeof(*v));
	enum err_code rc;

	if (!v)
		return err_nomem(err, "sum");
	for (uint32_t i = 0; i < m->names_n; i++)
		v[i] = (struct rollup_function){
			.name = m->names[i].name, .flat = m->names[i].flat, .cum = m->names[i].cum
		};
	rc = function_sums_add(m->t->functions, v, m->names_n, m->total, err);
	free(v);
	return rc;
}

static bool sum_names_is_same_by_name(const struct summing *t)
{
	if (accum_has_negative(t->acc) || sym_has_shown(t->p))
		return false;
	for (uint32_t i = 0; i < t->stats->headers_n; i++)
		if (sym_header(t->p, t->stats->headers[i])->drop_frames)
			return false;
	return true;
}

enum err_code sum_names(struct summing *t, struct err *err)
{
	struct sum_names_naming m = { .t = t, .p = t->p, .usable = true };
	enum err_code rc;

	assert(!t->p->base);
	if (!accum_pages_n(t->acc) || !sum_names_is_same_by_name(t))
		return ERR_OK;
	if ((rc = accum_open(t->p, 0, &m.up, err)))
		return rc;
	if (!sum_names_naming_open_names(&m))
		rc = err_nomem(err, "sum");
	if (!rc)
		rc = sum_names_naming_add_pages(&m, err);
	if (!rc && m.usable && !(rc = sum_names_naming_hand_over(&m, err)))
		accum_clear(t->acc);
	sum_names_naming_close_names(&m);
	return rc;
}
