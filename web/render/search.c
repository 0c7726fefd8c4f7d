/*
 * One pass over the stack nodes, callers first, finds for each the innermost node at or above it
 * whose location matches. A stack that has such a node counts.
 *
 * Then each stack that counts is cut off behind its innermost match. That leaves the total of each
 * call path that ends in a match as it was, and little else. So the heaviest paths are the first
 * matches among the heaviest nodes of these stacks.
 */
#include "web/render/search.h"

#include <stdlib.h>

#include "base/array.h"
#include "promql/profiles/frame.h"
#include "web/render/heaviest.h"
#include "web/render/render.h"

#define UNCHECKED 4096u /* nodes or cells between checks for cancellation */
#define NODES_MAX 16384u /* of the tree that paths are taken from */
#define FRAMES_MAX 65536u /* of all paths together */

enum match {
	MATCH_UNKNOWN,
	MATCH_NO,
	MATCH_YES,
};

struct searching {
	const struct regex *re;
	const struct partition *p;
	struct pruned pruned;
	struct arena *arena;
	const atomic_bool *canceled;
	char *functions, *locations; /* enum match of each */
	uint32_t nodes; /* stack nodes of the cells are below */
	char *is_used; /* per stack node: a cell's, or above one */
	uint32_t *nearest; /* per stack node that is used: its innermost match, 0: none */
	bool bare; /* stacks without frames match */
};

/* ---- the expression ---- */

static bool search_has_upper_case(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] == '\\')
			i++;
		else if (text.ptr[i] >= 'A' && text.ptr[i] <= 'Z')
			return true;
	}
	return false;
}

enum err_code search_compile(struct str text, struct regex **out, struct err *err)
{
	struct buf any_case = { 0 };
	enum err_code rc = regex_compile(text, 0, out, err); /* its errors quote what was typed */

	if (rc || search_has_upper_case(text))
		return rc;
	regex_free(*out);
	*out = NULL;
	buf_printf(&any_case, "(?i)" STR_FMT, STR_ARG(text));
	rc = buf_failed(&any_case) ? err_nomem(err, "search") :
								 regex_compile(buf_str(&any_case), 0, out, err);
	buf_release(&any_case);
	return rc;
}

/* ---- which frames match ---- */

static enum err_code search_line(struct searching *s, const struct sym_location *l,
	const struct sym_line *line, bool *yes, struct err *err)
{
	const struct sym_function *f = line ? sym_function(s->p, line->function) : NULL;
	bool is_named = f && sym_function_name(s->p, f).len;
	struct str name;

	if (is_named && s->functions[line->function]) {
		*yes = s->functions[line->function] == MATCH_YES;
		return ERR_OK;
	}
	name = frame_address_name(s->arena, s->p, l, line);
	if (!name.ptr)
		return arena_fail(s->arena, "search", err);
	*yes = regex_match(s->re, name);
	if (is_named)
		s->functions[line->function] = *yes ? MATCH_YES : MATCH_NO;
	return ERR_OK;
}

static enum err_code search_location(struct searching *s, uint32_t id, struct err *err)
{
	const struct sym_location l = sym_location(s->p, id);
	uint32_t lines = l.lines_n ? l.lines_n : 1;
	enum err_code rc;
	bool yes = false;

	for (uint32_t i = pruned_line(&s->pruned, id); i < lines && !yes; i++)
		if ((rc = search_line(s, &l, l.lines_n ? &l.lines[i] : NULL, &yes, err)))
			return rc;
	s->locations[id] = yes ? MATCH_YES : MATCH_NO;
	return ERR_OK;
}

static enum err_code search_open_part(
	struct searching *s, const struct profile_value *p, const struct part *part, struct err *err)
{
	struct arena *a = s->arena;
	enum err_code rc;

	s->p = part->partition;
	s->nodes = part->cells[part->n - 1].stack + 1;
	if ((rc = pruned_init(&s->pruned, p, part, a, err)))
		return rc;
	s->functions = arena_array(a, char, (size_t)sym_functions_n(s->p) + 1);
	s->locations = arena_array(a, char, (size_t)sym_locations_n(s->p) + 1);
	s->is_used = arena_array(a, char, s->nodes);
	s->nearest = arena_array(a, uint32_t, s->nodes);
	if (!s->functions || !s->locations || !s->is_used || !s->nearest)
		return arena_fail(a, "search", err);
	return ERR_OK;
}

/* Only nodes that cells use are looked at: others may refer to ids that do not exist. */
static enum err_code search_walk_nodes(
	struct searching *s, const struct part *part, struct err *err)
{
	enum err_code rc;

	for (size_t i = 0; i < part->n; i++)
		s->is_used[pruned_stack(&s->pruned, part->cells[i].stack)] = 1;
	for (uint32_t i = s->nodes; i-- > 1;)
		if (s->is_used[i])
			s->is_used[sym_node(s->p, i).parent] = 1;
	for (uint32_t i = 1; i < s->nodes; i++) {
		struct sym_node node;

		if (i % UNCHECKED == 0 && (rc = render_wanted(s->canceled, err)))
			return rc;
		if (!s->is_used[i])
			continue;
		node = sym_node(s->p, i);
		if (!s->locations[node.location] && (rc = search_location(s, node.location, err)))
			return rc;
		s->nearest[i] = s->locations[node.location] == MATCH_YES ? i : s->nearest[node.parent];
	}
	return ERR_OK;
}

/* ---- the stacks that count ---- */

static bool search_cell(const struct searching *s, const struct cell *c, uint32_t *end)
{
	uint32_t stack = pruned_stack(&s->pruned, c->stack);

	*end = stack ? s->nearest[stack] : 0;
	return stack ? *end != 0 : s->bare;
}

/* is_used becomes: a stack ends here. Returns the place of each such node among the new cells. */
static uint32_t *search_place_ends(struct searching *s, const struct part *part, size_t *n)
{
	uint32_t *places = arena_array(s->arena, uint32_t, s->nodes), end;

	if (!places)
		return NULL;
	memset(s->is_used, 0, s->nodes);
	for (size_t i = 0; i < part->n; i++)
		if (search_cell(s, &part->cells[i], &end))
			s->is_used[end] = 1;
	*n = 0;
	for (uint32_t i = 0; i < s->nodes; i++)
		if (s->is_used[i])
			places[i] = (uint32_t)(*n)++;
	return places;
}

/* *cut: the part's stacks that match, each cut off behind its innermost match. */
static enum err_code search_cut_part(struct searching *s, const struct part *part, struct part *cut,
	struct search_found *out, struct err *err)
{
	uint32_t *places = search_place_ends(s, part, &cut->n), end, last = UINT32_MAX;
	bool over = false;
	enum err_code rc;

	if (!places || !(cut->cells = arena_array(s->arena, struct cell, cut->n + 1)))
		return arena_fail(s->arena, "search", err);
	for (size_t i = 0; i < part->n; i++) {
		const struct cell *c = &part->cells[i];
		struct cell *to;

		if (i % UNCHECKED == 0 && (rc = render_wanted(s->canceled, err)))
			return rc;
		if (!search_cell(s, c, &end))
			continue;
		to = &cut->cells[places[end]];
		to->stack = end;
		over |= __builtin_add_overflow(to->value, c->value, &to->value);
		over |= __builtin_add_overflow(to->base, c->base, &to->base);
		over |= __builtin_add_overflow(out->total[0], c->value, &out->total[0]);
		over |= __builtin_add_overflow(out->total[1], c->base, &out->total[1]);
		out->stacks += c->stack != last; /* cells are in order */
		last = c->stack;
	}
	return over ? err_set(err, ERR_LIMIT, "search: sum exceeds 64 bits") : ERR_OK;
}

/* ---- paths ---- */

struct found_node {
	int64_t weight;
	uint32_t node;
};

static int search_heavier_first(const void *a, const void *b)
{
	const struct found_node *l = a, *r = b;

	if (l->weight != r->weight)
		return l->weight > r->weight ? -1 : 1;
	return l->node < r->node ? -1 : l->node > r->node;
}

static enum err_code search_add_path(
	const struct frame_tree *t, uint32_t node, struct search_path *to, struct err *err)
{
	const struct tree_node *end = &t->nodes[node];
	uint32_t *frames;
	size_t n = 0, at;

	for (uint32_t i = node; i; i = t->nodes[i].parent)
		n++;
	if (!(frames = arena_array(t->arena, uint32_t, n)))
		return arena_fail(t->arena, "search", err);
	at = n;
	for (uint32_t i = node; i; i = t->nodes[i].parent)
		frames[--at] = t->nodes[i].name;
	*to = (struct search_path){ frames, n, { end->total[0], end->total[1] } };
	return ERR_OK;
}

/* Leaves only names that paths have, in the order in which the paths have them. */
static enum err_code search_number_names(const struct frame_tree *t, struct search_path *paths,
	size_t paths_n, struct search_found *out, struct err *err)
{
	uint32_t *numbers = arena_array(t->arena, uint32_t, (size_t)t->names_n + 1);
	struct str *names = arena_array(t->arena, struct str, (size_t)t->names_n + 1);
	size_t n = 0;

	if (!numbers || !names)
		return arena_fail(t->arena, "search", err);
	for (size_t i = 0; i < paths_n; i++)
		for (size_t k = 0; k < paths[i].n; k++) {
			uint32_t *frame = &paths[i].frames[k];

			if (!numbers[*frame]) {
				names[n] = t->names[*frame];
				numbers[*frame] = (uint32_t)++n;
			}
			*frame = numbers[*frame] - 1;
		}
	out->names = names;
	out->names_n = n;
	out->paths = paths;
	out->paths_n = paths_n;
	return ERR_OK;
}

static enum err_code search_add_paths(
	const struct frame_tree *t, const struct regex *re, struct search_found *out, struct err *err)
{
	struct found_node *v = arena_array(t->arena, struct found_node, t->n);
	struct search_path *paths = arena_array(t->arena, struct search_path, SEARCH_PATHS_MAX);
	char *names = arena_array(t->arena, char, (size_t)t->names_n + 1);
	size_t n = 0, frames = 0, paths_n = 0;
	enum err_code rc;

	if (!v || !paths || !names)
		return arena_fail(t->arena, "search", err);
	for (uint32_t i = 0; i < t->names_n; i++)
		names[i] = regex_match(re, t->names[i]);
	for (uint32_t i = 1; i < t->n; i++) {
		const struct tree_node *node = &t->nodes[i];

		if (names[node->name] && node->total[0] + node->total[1] > 0)
			v[n++] = (struct found_node){ node->total[0] + node->total[1], i };
	}
	qsort(v, n, sizeof(*v), search_heavier_first);
	for (size_t i = 0; i < n && paths_n < SEARCH_PATHS_MAX && frames < FRAMES_MAX; i++) {
		if ((rc = search_add_path(t, v[i].node, &paths[paths_n], err)))
			return rc;
		frames += paths[paths_n++].n;
	}
	return search_number_names(t, paths, paths_n, out, err);
}

static enum err_code search_find_paths(const struct profile_value *cut, const struct searching *s,
	struct search_found *out, struct err *err)
{
	struct frame_tree t;
	int64_t(*other)[2];
	enum err_code rc;

	if ((rc = frame_tree_init(&t, s->arena, err)))
		return rc;
	t.canceled = s->canceled;
	if (heaviest_can(cut)) {
		rc = frame_tree_heaviest(&t, cut, NULL, NODES_MAX, &other, err);
	} else if (!(rc = frame_tree_add(&t, 0, cut, err))) {
		frame_tree_total(&t);
	}
	if (!rc)
		rc = search_add_paths(&t, s->re, out, err);
	frame_tree_release(&t);
	return rc;
}

enum err_code search_profile(const struct profile_value *p, const struct regex *re,
	const atomic_bool *canceled, struct arena *a, struct search_found *out, struct err *err)
{
	struct searching s = { .re = re, .arena = a, .canceled = canceled };
	struct profile_value cut = *p;
	enum err_code rc;

	*out = (struct search_found){ 0 };
	s.bare = regex_match(re, NO_STACK);
	cut.parts_n = 0;
	if (!(cut.parts = arena_array(a, struct part, p->parts_n + 1)))
		return arena_fail(a, "search", err);
	for (size_t i = 0; i < p->parts_n; i++) {
		const struct part *part = &p->parts[i];

		if (part->n == 0)
			continue;
		cut.parts[cut.parts_n] = *part;
		if ((rc = search_open_part(&s, p, part, err)) || (rc = search_walk_nodes(&s, part, err)) ||
			(rc = search_cut_part(&s, part, &cut.parts[cut.parts_n++], out, err)))
			return rc;
	}
	return search_find_paths(&cut, &s, out, err);
}
