#include <stdlib.h>

#include "base/array.h"
#include "tsdb/rollup/rollup_internal.h"
#include "tsdb/symbols/shown.h"

/*
 * Function totals. The walk from each cell's stack towards the root ends at a node that was marked
 * before; a bitmap with counts per word numbers the nodes in ascending order, so parents come
 * before their children. A node adds its subtree to the names of its frames that are nowhere above
 * it. Then each column is one backward pass: a node's sum goes to its parent and to these names.
 *
 * No name of a node is above it if the node is not marked as recursive and none of its names
 * belongs to two functions; otherwise the ancestors are searched. They are searched, too, for names
 * that are shown as one: these get a sum of what their stacks cost together.
 */
struct location_frames {
	uint32_t first, n; /* in totals.frames, innermost first */
};

struct totals {
	struct rollup_builder *b;
	struct rollup_table locations; /* the place of each one in use */
	struct location_frames *at; /* by place */
	uint32_t at_cap;
	struct rollup_table names; /* (string, unnamed) -> flat and cum of each column */
	uint32_t *function; /* per name: the function that has it, or many */
	uint32_t function_cap;
	uint32_t *first; /* per name: the first function that has it */
	uint32_t first_cap;
	uint32_t *alike; /* per name: the place in names of those that are alike, or 0; NULL: none */
	uint32_t plain_n; /* names; behind them are those places */
	uint32_t *frames; /* names */
	uint32_t frames_n, frames_cap;
	uint64_t *met; /* bit per node */
	uint32_t *before; /* per word: marked nodes below it */
	size_t words;
	uint32_t nodes_n;
	uint32_t *node, *parent; /* by place; parent of place 0 is none */
	uint32_t *location; /* by place: the place of its location */
	uint32_t *adds_first; /* by place: names its subtree is added to; nodes_n + 1 */
	uint32_t *adds;
	uint32_t adds_n, adds_cap;
};

#define FUNCTION_MANY UINT32_MAX
#define FUNCTION_NONE (UINT32_MAX - 1) /* unnamed */

static void totals_release(struct totals *t)
{
	rollup_table_release(&t->locations);
	rollup_table_release(&t->names);
	free(t->at);
	free(t->function);
	free(t->first);
	free(t->alike);
	free(t->frames);
	free(t->met);
	free(t->before);
	free(t->node);
	free(t->parent);
	free(t->location);
	free(t->adds_first);
	free(t->adds);
}

/* ---- names ---- */

static bool totals_add_frame(
	struct totals *t, const struct sym_location *l, const struct sym_line *line)
{
	const struct partition *p = t->b->p;
	uint32_t name = line ? sym_function(p, line->function)->name : 0, unnamed = name == 0, at;
	uint32_t function = unnamed ? FUNCTION_NONE : line->function, n = t->names.n;

	if (unnamed && l->mapping != SYM_NONE)
		name = sym_mapping(p, l->mapping)->filename;
	if (!rollup_table_find(&t->names, &name, &unnamed, 1, &at) ||
		!array_room(&t->function, at, 1, &t->function_cap) ||
		!array_room(&t->first, at, 1, &t->first_cap) ||
		!array_room(&t->frames, t->frames_n, 1, &t->frames_cap))
		return false;
	if (at == n)
		t->function[at] = t->first[at] = function;
	else if (t->function[at] != function)
		t->function[at] = FUNCTION_MANY;
	t->frames[t->frames_n++] = at;
	return true;
}

/* The place of a location; the first call for it names its frames. */
static bool totals_find_location(struct totals *t, uint32_t id, uint32_t *place)
{
	const struct sym_location l = sym_location(t->b->p, id);
	uint32_t n = t->locations.n;

	if (!rollup_table_find(&t->locations, &id, NULL, 1, place))
		return false;
	if (*place < n)
		return true;
	if (!array_room(&t->at, *place, 1, &t->at_cap))
		return false;
	t->at[*place] = (struct location_frames){ t->frames_n, l.lines_n ? l.lines_n : 1 };
	if (!l.lines_n)
		return totals_add_frame(t, &l, NULL);
	for (uint32_t i = 0; i < l.lines_n; i++)
		if (!totals_add_frame(t, &l, &l.lines[i]))
			return false;
	return true;
}

/* ---- nodes ---- */

static uint32_t totals_place_of(const struct totals *t, uint32_t node)
{
	uint64_t below = t->met[node >> 6] & ((UINT64_C(1) << (node & 63)) - 1);

	return t->before[node >> 6] + (uint32_t)__builtin_popcountll(below);
}

static enum err_code totals_mark_nodes(struct totals *t, struct err *err)
{
	const struct rollup_table *cells = &t->b->table;
	uint32_t most = 0;

	for (uint32_t i = 0; i < cells->n; i++)
		if (!rollup_table_is_zero(cells, i) && cells->keys[i] >> 32 > most)
			most = (uint32_t)(cells->keys[i] >> 32);
	t->words = (size_t)(most >> 6) + 1;
	t->met = calloc(t->words, sizeof(*t->met));
	t->before = malloc(t->words * sizeof(*t->before));
	if (!t->met || !t->before)
		return err_nomem(err, "rollup");
	for (uint32_t i = 0; i < cells->n; i++) {
		uint32_t node = (uint32_t)(cells->keys[i] >> 32), parent;

		if (rollup_table_is_zero(cells, i)) /* it will not be in the rollup */
			continue;
		while (node && !(t->met[node >> 6] >> (node & 63) & 1)) {
			t->met[node >> 6] |= UINT64_C(1) << (node & 63);
			parent = sym_node(t->b->p, node).parent;
			if (parent >= node)
				return err_set(err, ERR_CORRUPT, "rollup: a stack without end");
			node = parent;
		}
	}
	for (size_t w = 0; w < t->words; w++) {
		t->before[w] = t->nodes_n;
		t->nodes_n += (uint32_t)__builtin_popcountll(t->met[w]);
	}
	return ERR_OK;
}

#define ROOT UINT32_MAX

static enum err_code totals_list_nodes(struct totals *t, struct err *err)
{
	size_t bytes = ((size_t)t->nodes_n + 1) * sizeof(uint32_t);
	uint32_t n = 0;

	t->node = malloc(bytes);
	t->parent = malloc(bytes);
	t->location = malloc(bytes);
	t->adds_first = malloc(bytes);
	if (!t->node || !t->parent || !t->location || !t->adds_first)
		return err_nomem(err, "rollup");
	for (size_t w = 0; w < t->words; w++)
		for (uint64_t rest = t->met[w]; rest; rest &= rest - 1, n++) {
			uint32_t id = (uint32_t)(w << 6) + (uint32_t)__builtin_ctzll(rest);
			struct sym_node node = sym_node(t->b->p, id);

			if (node.location == SYM_NONE)
				return err_set(err, ERR_CORRUPT, "rollup: a stack is missing");
			t->node[n] = id;
			t->parent[n] = node.parent ? totals_place_of(t, node.parent) : ROOT;
			if (!totals_find_location(t, node.location, &t->location[n]))
				return err_nomem(err, "rollup");
		}
	return ERR_OK;
}

static bool rollup_functions_has(const uint32_t *names, uint32_t n, uint32_t name)
{
	for (uint32_t i = 0; i < n; i++)
		if (names[i] == name)
			return true;
	return false;
}

static bool totals_above(const struct totals *t, uint32_t place, uint32_t name)
{
	while ((place = t->parent[place]) != ROOT) {
		const struct location_frames *f = &t->at[t->location[place]];

		if (rollup_functions_has(t->frames + f->first, f->n, name))
			return true;
	}
	return false;
}

/* ---- names that are shown as one ---- */

struct name_function {
	uint32_t shown, string, place; /* shown: the representative (shown.h) */
};

static int name_function_cmp(const void *a, const void *b)
{
	const struct name_function *x = a, *y = b;

	if (x->shown != y->shown)
		return x->shown < y->shown ? -1 : 1;
	return (x->string > y->string) - (x->string < y->string);
}

static bool totals_add_alike(struct totals *t, const struct name_function *names, uint32_t n)
{
	uint64_t hash = 0;
	uint32_t place;

	if (!t->alike && !(t->alike = calloc(t->plain_n, sizeof(*t->alike))))
		return false;
	for (uint32_t i = 0; i < n; i++)
		hash = rollup_alike_add(hash, names[i].string);
	if (!rollup_table_find(&t->names, &names->string, &(uint32_t){ rollup_alike(hash) }, 1, &place))
		return false;
	for (uint32_t i = 0; i < n; i++)
		t->alike[names[i].place] = place;
	return true;
}

/* Names that are alike get a place behind all names. */
static enum err_code totals_find_alike(struct totals *t, struct err *err)
{
	const struct partition *p = t->b->p;
	struct name_function *v;
	struct shown_names *shown;
	enum err_code rc;
	uint32_t n = 0, end;
	bool ok = true;

	t->plain_n = t->names.n;
	if (!sym_has_shown(p))
		return ERR_OK;
	if ((rc = shown_of(p, &shown, err)))
		return rc;
	if (!(v = malloc(((size_t)t->plain_n + 1) * sizeof(*v))))
		return err_nomem(err, "rollup");
	for (uint32_t i = 0; i < t->plain_n; i++)
		if (!(uint32_t)t->names.keys[i])
			v[n++] = (struct name_function){ shown_function(shown, t->first[i]),
				(uint32_t)(t->names.keys[i] >> 32), i };
	qsort(v, n, sizeof(*v), name_function_cmp);
	for (uint32_t i = 0; i < n && ok; i = end) {
		for (end = i + 1; end < n && v[end].shown == v[i].shown; end++)
			;
		if (end - i > 1 && v[i].shown != SYM_NONE)
			ok = totals_add_alike(t, v + i, end - i);
	}
	free(v);
	return ok ? ERR_OK : err_nomem(err, "rollup");
}

static bool totals_has_alike(const struct totals *t, const uint32_t *names, uint32_t n, uint32_t at)
{
	for (uint32_t i = 0; i < n; i++)
		if (t->alike[names[i]] == at)
			return true;
	return false;
}

static bool totals_above_alike(const struct totals *t, uint32_t place, uint32_t at)
{
	while ((place = t->parent[place]) != ROOT) {
		const struct location_frames *f = &t->at[t->location[place]];

		if (totals_has_alike(t, t->frames + f->first, f->n, at))
			return true;
	}
	return false;
}

/* The names of a node's frames that are alike to others. */
static bool totals_find_adds_alike(struct totals *t, uint32_t node, const struct location_frames *f)
{
	const uint32_t *names = t->frames + f->first;
	uint32_t at;

	for (uint32_t k = 0; k < f->n; k++) {
		if (!(at = t->alike[names[k]]) || totals_has_alike(t, names, k, at) ||
			totals_above_alike(t, node, at))
			continue;
		if (!array_room(&t->adds, t->adds_n, 1, &t->adds_cap))
			return false;
		t->adds[t->adds_n++] = at;
	}
	return true;
}

/* Where only one of those that are alike has costs it says all. */
static enum err_code totals_drop_alike(
	const struct totals *t, const int128 *flat, int128 *cum, struct err *err)
{
	uint32_t *used;

	if (!t->alike)
		return ERR_OK;
	if (!(used = calloc(t->names.n - t->plain_n, sizeof(*used))))
		return err_nomem(err, "rollup");
	for (uint32_t i = 0; i < t->plain_n; i++)
		if (t->alike[i] && (flat[i] || cum[i]))
			used[t->alike[i] - t->plain_n]++;
	for (uint32_t i = t->plain_n; i < t->names.n; i++)
		if (used[i - t->plain_n] < 2)
			cum[i] = 0;
	free(used);
	return ERR_OK;
}

/* After all nodes are listed: only then it is known which names several functions have. */
static enum err_code totals_find_adds(struct totals *t, struct err *err)
{
	for (uint32_t i = 0; i < t->nodes_n; i++) {
		const struct location_frames *f = &t->at[t->location[i]];
		const uint32_t *names = t->frames + f->first;
		bool recursive = sym_node_recursive(t->b->p, t->node[i]);

		t->adds_first[i] = t->adds_n;
		for (uint32_t k = 0; k < f->n; k++) {
			uint32_t function = t->function[names[k]];

			if (rollup_functions_has(names, k, names[k]))
				continue;
			if ((recursive || function == FUNCTION_MANY || function == FUNCTION_NONE) &&
				totals_above(t, i, names[k]))
				continue;
			if (!array_room(&t->adds, t->adds_n, 1, &t->adds_cap))
				return err_nomem(err, "rollup");
			t->adds[t->adds_n++] = names[k];
		}
		if (t->alike && !totals_find_adds_alike(t, i, f))
			return err_nomem(err, "rollup");
	}
	t->adds_first[t->nodes_n] = t->adds_n;
	return ERR_OK;
}

/* ---- sums ---- */

static enum err_code totals_sum_column(
	struct totals *t, const int128 *cells, int128 *flat, int128 *cum, struct err *err)
{
	const struct rollup_table *from = &t->b->table;
	int128 *sums = calloc((size_t)t->nodes_n + 1, sizeof(*sums));
	bool bad = false;

	if (!sums)
		return err_nomem(err, "rollup");
	for (uint32_t i = 0; i < from->n; i++) {
		uint32_t stack = (uint32_t)(from->keys[i] >> 32), place, name;

		if (stack == 0 || !cells[i]) /* an empty stack belongs to no function */
			continue;
		place = totals_place_of(t, stack);
		name = t->frames[t->at[t->location[place]].first];
		bad |= __builtin_add_overflow(flat[name], cells[i], &flat[name]);
		bad |= __builtin_add_overflow(sums[place], cells[i], &sums[place]);
	}
	for (uint32_t i = t->nodes_n; i-- > 0;) {
		if (t->parent[i] != ROOT)
			bad |= __builtin_add_overflow(sums[t->parent[i]], sums[i], &sums[t->parent[i]]);
		for (uint32_t k = t->adds_first[i]; k < t->adds_first[i + 1]; k++)
			bad |= __builtin_add_overflow(cum[t->adds[k]], sums[i], &cum[t->adds[k]]);
	}
	free(sums);
	return bad ? err_set(err, ERR_LIMIT, "sum exceeds 128 bits") : ERR_OK;
}

/* ---- exactness ---- */

/* As Go's filepath.Base, which reports show. */
static struct str rollup_functions_path_base(struct str path)
{
	size_t start;

	while (path.len > 1 && path.ptr[path.len - 1] == '/')
		path.len--;
	for (start = path.len; start > 0 && path.ptr[start - 1] != '/'; start--)
		;
	return start == path.len ? STR("/") : (struct str){ path.ptr + start, path.len - start };
}

static int rollup_functions_base_cmp(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* True if a function's name looks like the text that is shown for frames without a name. */
static bool rollup_functions_looks_unnamed(
	struct str name, const struct str *bases, size_t n, bool unknown)
{
	if (unknown && str_is(name, "<unknown>"))
		return true;
	if (name.len < 2 || name.ptr[0] != '[' || name.ptr[name.len - 1] != ']')
		return false;
	name = (struct str){ name.ptr + 1, name.len - 2 };
	return n && bsearch(&name, bases, n, sizeof(*bases), rollup_functions_base_cmp);
}

/* *out: no two names are shown as the same text. */
static enum err_code totals_are_distinct(const struct totals *t, bool *out, struct err *err)
{
	struct str *bases = malloc(((size_t)t->names.n + 1) * sizeof(*bases));
	bool unknown = false;
	size_t n = 0;

	if (!bases)
		return err_nomem(err, "rollup");
	for (uint32_t i = 0; i < t->names.n; i++) {
		uint32_t name = (uint32_t)(t->names.keys[i] >> 32);

		if (!(uint32_t)t->names.keys[i])
			continue;
		if (name)
			bases[n++] = rollup_functions_path_base(sym_string(t->b->p, name));
		else
			unknown = true;
	}
	*out = true;
	qsort(bases, n, sizeof(*bases), rollup_functions_base_cmp);
	for (size_t i = 1; i < n; i++)
		*out &= !str_eq(bases[i], bases[i - 1]);
	for (uint32_t i = 0; i < t->names.n && *out; i++)
		if (!(uint32_t)t->names.keys[i])
			*out = !rollup_functions_looks_unnamed(
				sym_string(t->b->p, (uint32_t)(t->names.keys[i] >> 32)), bases, n, unknown);
	free(bases);
	return ERR_OK;
}

static bool rollup_functions_drops_frames(const struct rollup_builder *b)
{
	for (uint32_t i = 0; i < b->lists_n; i++)
		for (uint32_t k = 0; k < b->lists[i].l.headers_n; k++)
			if (sym_header(b->p, b->lists[i].l.headers[k])->drop_frames)
				return true;
	return false;
}

/*
 * True if some type is of amounts and no cell of such a type is negative. Costs by name are used
 * for amounts only, as levels are rounded by stack. Without negative cells the sum is that of the
 * magnitudes, which percentages refer to.
 */
static bool rollup_functions_has_amounts(const struct rollup_builder *b)
{
	bool any = false;

	for (uint32_t c = 0; c < b->columns_n; c++) {
		if (b->columns[c].sums.gauge)
			continue;
		any = true;
		for (uint32_t i = 0; i < b->table.n; i++)
			if (b->table.columns[c][i] < 0)
				return false;
	}
	return any;
}

/* ---- the record ---- */

static enum err_code rollup_functions_encode(
	struct rollup_builder *b, bool alike, struct buf *out, bool *any, struct err *err)
{
	struct totals t = { .b = b };
	enum err_code rc;

	*any = false;
	if ((rc = rollup_builder_settle(b, err)) || rollup_functions_drops_frames(b) ||
		!rollup_functions_has_amounts(b))
		return rc;
	if ((rc = totals_mark_nodes(&t, err)) || (rc = totals_list_nodes(&t, err)) ||
		(rc = totals_are_distinct(&t, any, err)) || !*any)
		goto out;
	if ((alike && (rc = totals_find_alike(&t, err))) || (rc = totals_find_adds(&t, err)))
		goto out;
	for (uint32_t c = 0; c < b->columns_n * 2; c++)
		if (!rollup_table_column(&t.names)) {
			rc = err_nomem(err, "rollup");
			goto out;
		}
	for (uint32_t c = 0; c < b->columns_n && !rc; c++) {
		int128 *flat = t.names.columns[c * 2u], *cum = t.names.columns[c * 2u + 1];

		if (!b->columns[c].sums.gauge &&
			!(rc = totals_sum_column(&t, b->table.columns[c], flat, cum, err)))
			rc = totals_drop_alike(&t, flat, cum, err);
	}
	if (!rc)
		rc = rollup_builder_write(b, ROLLUP_RECORD_FUNCTIONS, &t.names, out, err);
out:
	totals_release(&t);
	return rc;
}

enum err_code rollup_builder_encode_functions(
	struct rollup_builder *b, struct buf *out, bool *any, struct err *err)
{
	return rollup_functions_encode(b, true, out, any, err);
}

enum err_code rollup_builder_encode_functions_apart(
	struct rollup_builder *b, struct buf *out, bool *any, struct err *err)
{
	return rollup_functions_encode(b, false, out, any, err);
}
