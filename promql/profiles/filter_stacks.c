/*
 * Filters of stacks, one part at a time. The nodes that cells use are numbered densely, in the
 * order of their ids, so parents stay below their children. One pass decides what becomes of each
 * node, a second one makes a derived partition of the nodes that are left. A location is looked at
 * once, and a function's names are matched once. All else are arrays by dense numbers, and a bit
 * for each possible id.
 */
#include "base/regex.h"
#include "promql/profiles/filter.h"
#include "promql/profiles/frame.h"
#include "promql/profiles/profiles.h"
#include "proto/report/frame_text.h"
#include "tsdb/symbols/derive.h"

/* ---- sets of ids ---- */

/* Filled, then sealed: members have numbers 0, 1, ... in the order of their ids. */
struct idset {
	uint64_t *bits;
	uint32_t *rank; /* per word: members below it */
	uint32_t words, n;
};

static bool idset_init(struct idset *idset, struct arena *a, uint32_t ids_n)
{
	idset->words = ids_n / 64 + 1;
	idset->n = 0;
	idset->bits = arena_array(a, uint64_t, idset->words);
	idset->rank = arena_alloc_raw(a, idset->words, sizeof(*idset->rank));
	return idset->bits && idset->rank;
}

static void idset_add(struct idset *idset, uint32_t id)
{
	idset->bits[id >> 6] |= UINT64_C(1) << (id & 63);
}

static void idset_seal(struct idset *idset)
{
	for (uint32_t w = 0; w < idset->words; w++) {
		idset->rank[w] = idset->n;
		idset->n += (uint32_t)__builtin_popcountll(idset->bits[w]);
	}
}

static uint32_t idset_at(const struct idset *idset, uint32_t id)
{
	uint64_t below = idset->bits[id >> 6] & ((UINT64_C(1) << (id & 63)) - 1);

	return idset->rank[id >> 6] + (uint32_t)__builtin_popcountll(below);
}

/* ---- the work ---- */

enum node_fate {
	NODE_GONE, /* with all above it: the stack is empty there */
	NODE_AS_PARENT,
	NODE_WHOLE,
	NODE_CUT, /* its location with the lines of `cut` */
};

enum { NODE_SEEN = 1, NODE_NEEDED = 2 }; /* SEEN: it or an ancestor matches */

struct lines {
	const struct sym_line *v;
	uint32_t n;
	uint32_t id; /* of the derived location; SYM_NONE: not made yet */
};

struct filter_stacks_place {
	struct sym_location l; /* without dropped frames */
	bool matches;
	struct lines whole, cut;
};

struct filter_stacks {
	struct arena *a; /* scratch */
	struct work *work;
	const struct filter *f;
	bool symbols; /* the filter is tried on mangled names too: frame_means_symbol */
	bool addresses; /* the expression is about addresses */
	const struct partition *p;
	const struct part *part;
	struct pruned pruned;
	struct idset nodes, locations;
	uint32_t *parent, *location; /* per dense node, dense */
	uint32_t *ids; /* per dense node */
	uint32_t *end; /* per dense node: the new end of a stack that ends here */
	uint32_t *to; /* per dense node: the derived one */
	unsigned char *fate, *state;
	struct filter_stacks_place *places; /* per dense location */
	uint64_t *functions_known, *functions_match;
	struct {
		uint32_t id;
		bool known, matches;
	} mappings[64];
	struct derived *derived;
};

static enum err_code filter_stacks_nomem(const struct filter_stacks *s, struct err *err)
{
	return arena_fail(s->a, "filter", err);
}

/* ---- nodes of cells ---- */

static uint32_t filter_stacks_end_of(const struct filter_stacks *s, const struct cell *c)
{
	return idset_at(&s->nodes, pruned_stack(&s->pruned, c->stack));
}

static bool filter_stacks_find_nodes(struct filter_stacks *s)
{
	const struct part *part = s->part;

	if (!idset_init(&s->nodes, s->a, part->n ? part->cells[part->n - 1].stack + 1 : 1))
		return false;
	idset_add(&s->nodes, 0);
	for (size_t i = 0; i < part->n; i++)
		idset_add(&s->nodes, pruned_stack(&s->pruned, part->cells[i].stack));
	for (uint32_t w = s->nodes.words; w-- > 0;) {
		uint64_t left = ~UINT64_C(0); /* parents may be added below us in this word */

		for (uint64_t at; (at = s->nodes.bits[w] & left);) {
			uint32_t bit = 63u - (uint32_t)__builtin_clzll(at);

			left = (UINT64_C(1) << bit) - 1;
			if (w || bit)
				idset_add(&s->nodes, sym_node(s->p, w * 64 + bit).parent);
		}
	}
	idset_seal(&s->nodes);
	return true;
}

static bool filter_stacks_number_nodes(struct filter_stacks *s)
{
	uint32_t n = s->nodes.n, at = 0;

	s->parent = arena_alloc_raw(s->a, n, sizeof(*s->parent));
	s->location = arena_alloc_raw(s->a, n, sizeof(*s->location));
	s->ids = arena_alloc_raw(s->a, n, sizeof(*s->ids));
	s->end = arena_alloc_raw(s->a, n, sizeof(*s->end));
	s->to = arena_array(s->a, uint32_t, n);
	s->fate = arena_array(s->a, unsigned char, n);
	s->state = arena_array(s->a, unsigned char, n);
	if (!s->parent || !s->location || !s->ids || !s->end || !s->to || !s->fate || !s->state ||
		!idset_init(&s->locations, s->a, sym_locations_n(s->p)))
		return false;
	for (uint32_t w = 0; w < s->nodes.words; w++)
		for (uint64_t bits = s->nodes.bits[w]; bits; bits &= bits - 1) {
			struct sym_node node;

			s->ids[at] = w * 64 + (uint32_t)__builtin_ctzll(bits);
			node = sym_node(s->p, s->ids[at]);
			s->parent[at] = at ? idset_at(&s->nodes, node.parent) : 0;
			s->location[at] = at ? node.location : 0;
			if (at)
				idset_add(&s->locations, node.location);
			at++;
		}
	idset_seal(&s->locations);
	for (uint32_t i = 1; i < n; i++)
		s->location[i] = idset_at(&s->locations, s->location[i]);
	return true;
}

/* ---- matching ---- */

static bool filter_stacks_function_matches(struct filter_stacks *s, uint32_t id)
{
	uint64_t bit = UINT64_C(1) << (id & 63), *match = &s->functions_match[id >> 6];
	const struct sym_function *fn;
	struct str name;
	bool yes;

	if (!(s->functions_known[id >> 6] & bit)) {
		fn = sym_function(s->p, id);
		name = sym_function_name(s->p, fn);
		if (s->f->id == FN_PRUNE_FROM)
			yes = name.len > 0 && regex_match(s->f->re, frame_simplified(name));
		else
			yes = regex_match(s->f->re, name) ||
				regex_match(s->f->re, sym_string(s->p, fn->filename));
		if (!yes && s->symbols && fn->shown)
			yes = regex_match(s->f->re, frame_symbol(s->p, fn));
		s->functions_known[id >> 6] |= bit;
		*match |= yes ? bit : 0;
	}
	return *match & bit;
}

static bool filter_stacks_mapping_matches(struct filter_stacks *s, uint32_t id)
{
	size_t at = id % (sizeof(s->mappings) / sizeof(s->mappings[0]));

	if (id == SYM_NONE)
		return false;
	if (!s->mappings[at].known || s->mappings[at].id != id) {
		s->mappings[at].id = id;
		s->mappings[at].known = true;
		s->mappings[at].matches = regex_match(
			s->f->re, sym_string(s->p, sym_mapping(s->p, id)->filename));
	}
	return s->mappings[at].matches;
}

/* An expression about an address is tried on what a location without lines is shown as. */
static bool filter_stacks_address_matches(struct filter_stacks *s, const struct sym_location *l)
{
	return s->addresses && l->lines_n == 0 && sym_has_address(s->p, l) &&
		regex_match(s->f->re, frame_address_name(s->a, s->p, l, NULL));
}

/* The lines of a location that match, or do not. */
static enum err_code filter_stacks_choose_lines(struct filter_stacks *s,
	const struct filter_stacks_place *at, bool want, struct lines *out, struct err *err)
{
	struct sym_line *lines;
	uint32_t n = 0;

	for (uint32_t i = 0; i < at->l.lines_n; i++)
		n += filter_stacks_function_matches(s, at->l.lines[i].function) == want;
	*out = (struct lines){ at->l.lines, n, SYM_NONE };
	if (n == at->l.lines_n)
		return ERR_OK;
	if (!(lines = arena_alloc_raw(s->work->arena, n + 1, sizeof(*lines))))
		return work_nomem(s->work, err);
	out->v = lines;
	n = 0;
	for (uint32_t i = 0; i < at->l.lines_n; i++)
		if (filter_stacks_function_matches(s, at->l.lines[i].function) == want)
			lines[n++] = at->l.lines[i];
	return ERR_OK;
}

/* Index of the outermost line that matches, or the innermost; lines_n: none does. */
static uint32_t filter_stacks_find_line(
	struct filter_stacks *s, const struct filter_stacks_place *at, bool outermost)
{
	for (uint32_t i = 0; i < at->l.lines_n; i++) {
		uint32_t k = outermost ? at->l.lines_n - 1 - i : i;

		if (filter_stacks_function_matches(s, at->l.lines[k].function))
			return k;
	}
	return at->l.lines_n;
}

/*
 * For filters that remove frames, `matches` says that nothing is left of the location. For the
 * others it says that the location matches.
 */
static enum err_code filter_stacks_judge_place(
	struct filter_stacks *s, struct filter_stacks_place *at, struct err *err)
{
	enum function_id id = s->f->id;
	bool by_mapping = id != FN_PRUNE_FROM && id != FN_NOINLINES &&
		(filter_stacks_mapping_matches(s, at->l.mapping) ||
			filter_stacks_address_matches(s, &at->l));
	enum err_code rc;
	uint32_t k;

	if (id == FN_NOINLINES) {
		k = at->l.lines_n ? at->l.lines_n - 1 : 0;
		at->whole = (struct lines){ at->l.lines + k, at->l.lines_n - k, SYM_NONE };
		return ERR_OK;
	}
	if (id == FN_HIDE || id == FN_SHOW) {
		if (by_mapping)
			at->whole.n = id == FN_HIDE ? 0 : at->l.lines_n;
		else if ((rc = filter_stacks_choose_lines(s, at, id == FN_SHOW, &at->whole, err)))
			return rc;
		/* A location without lines can be hidden by its mapping, and is never shown. */
		at->matches = at->whole.n == 0 && (id == FN_SHOW || at->l.lines_n > 0 || by_mapping);
		return ERR_OK;
	}
	k = filter_stacks_find_line(s, at, id != FN_PRUNE_FROM);
	at->matches = by_mapping || k < at->l.lines_n;
	if (!at->matches)
		return ERR_OK;
	/* By its mapping a location matches as a whole: its outermost frame is the one. */
	if (by_mapping)
		k = at->l.lines_n ? at->l.lines_n - 1 : 0;
	if (id == FN_CALLEES || id == FN_SHOW_FROM)
		at->cut.n = at->l.lines_n ? k + 1 : 0;
	if (id == FN_CALLERS || id == FN_PRUNE_FROM) {
		at->cut.v = at->l.lines + k;
		at->cut.n = at->l.lines_n - k;
	}
	return ERR_OK;
}

static enum err_code filter_stacks_judge_places(struct filter_stacks *s, struct err *err)
{
	uint32_t words = sym_functions_n(s->p) / 64 + 1, n = 0;
	enum err_code rc;

	s->functions_known = arena_array(s->a, uint64_t, words);
	s->functions_match = arena_array(s->a, uint64_t, words);
	s->places = arena_alloc_raw(s->a, s->locations.n + 1, sizeof(*s->places));
	if (!s->functions_known || !s->functions_match || !s->places)
		return filter_stacks_nomem(s, err);
	for (uint32_t w = 0; w < s->locations.words; w++)
		for (uint64_t bits = s->locations.bits[w]; bits; bits &= bits - 1) {
			uint32_t id = w * 64 + (uint32_t)__builtin_ctzll(bits);
			uint32_t skip = pruned_line(&s->pruned, id);
			struct filter_stacks_place *at = &s->places[n++];

			*at = (struct filter_stacks_place){ .l = sym_location(s->p, id) };
			at->l.lines += skip;
			at->l.lines_n -= skip;
			at->whole = at->cut = (struct lines){ at->l.lines, at->l.lines_n, SYM_NONE };
			if ((rc = filter_stacks_judge_place(s, at, err)))
				return rc;
		}
	return ERR_OK;
}

/* ---- the fate of nodes ---- */

static enum node_fate filter_stacks_fate_of(enum function_id id, bool seen_above, bool matches)
{
	switch (id) {
	case FN_HIDE:
	case FN_SHOW:
		return matches ? NODE_AS_PARENT : NODE_WHOLE;
	case FN_SHOW_FROM: /* matching locations lose all above the match in every stack */
		return matches ? NODE_CUT : seen_above ? NODE_WHOLE : NODE_GONE;
	case FN_CALLEES:
		return seen_above ? NODE_WHOLE : matches ? NODE_CUT : NODE_GONE;
	case FN_CALLERS:
		return seen_above ? NODE_AS_PARENT : matches ? NODE_CUT : NODE_WHOLE;
	case FN_PRUNE_FROM:
		return matches ? NODE_CUT : NODE_WHOLE;
	default:
		return NODE_WHOLE;
	}
}

static void filter_stacks_judge_nodes(struct filter_stacks *s)
{
	enum function_id id = s->f->id;

	s->end[0] = 0;
	for (uint32_t i = 1; i < s->nodes.n; i++) {
		uint32_t up = s->parent[i];
		bool seen = s->state[up] & NODE_SEEN, m = s->places[s->location[i]].matches;

		s->fate[i] = (unsigned char)filter_stacks_fate_of(id, seen, m);
		s->state[i] = seen || m ? NODE_SEEN : 0;
		/* Below the match that is nearest to the leaf all goes. */
		s->end[i] = id != FN_PRUNE_FROM || m || !seen ? i : s->end[up];
	}
}

static bool filter_stacks_stays(const struct filter_stacks *s, uint32_t node)
{
	switch (s->f->id) {
	case FN_FOCUS:
	case FN_SHOW_FROM:
	case FN_CALLERS:
	case FN_CALLEES:
		return s->state[node] & NODE_SEEN;
	case FN_IGNORE:
		return node != 0 && !(s->state[node] & NODE_SEEN);
	default:
		return true; /* hide and show: something is left of it */
	}
}

static enum err_code filter_stacks_keep_cells(
	struct filter_stacks *s, struct part *out, struct err *err)
{
	const struct part *in = s->part;

	*out = *in;
	out->n = 0;
	if (!(out->cells = arena_alloc_raw(s->work->arena, in->n + 1, sizeof(*out->cells))))
		return work_nomem(s->work, err);
	for (size_t i = 0; i < in->n; i++)
		if (filter_stacks_stays(s, filter_stacks_end_of(s, &in->cells[i])))
			out->cells[out->n++] = in->cells[i];
	return ERR_OK;
}

/* ---- new stacks ---- */

static void filter_stacks_mark_needed(struct filter_stacks *s)
{
	for (size_t i = 0; i < s->part->n; i++) {
		uint32_t at = filter_stacks_end_of(s, &s->part->cells[i]);

		if (filter_stacks_stays(s, at))
			s->state[s->end[at]] |= NODE_NEEDED;
	}
	for (uint32_t i = s->nodes.n; i-- > 1;)
		if ((s->state[i] & NODE_NEEDED) && s->fate[i] != NODE_GONE)
			s->state[s->parent[i]] |= NODE_NEEDED;
}

static uint32_t filter_stacks_location_to(
	struct filter_stacks *s, struct filter_stacks_place *at, bool cut)
{
	struct lines *lines = cut && at->cut.n != at->whole.n ? &at->cut : &at->whole;

	if (lines->id == SYM_NONE) {
		struct sym_location l = at->l;

		l.lines = lines->v;
		l.lines_n = lines->n;
		lines->id = derive_location(s->derived, &l);
	}
	return lines->id;
}

static void filter_stacks_make_nodes(struct filter_stacks *s)
{
	for (uint32_t i = 1; i < s->nodes.n; i++) {
		uint32_t up = s->to[s->parent[i]], l;

		if (!(s->state[i] & NODE_NEEDED) || s->fate[i] == NODE_GONE)
			continue;
		if (s->fate[i] == NODE_AS_PARENT) {
			s->to[i] = up;
			continue;
		}
		l = filter_stacks_location_to(s, &s->places[s->location[i]], s->fate[i] == NODE_CUT);
		s->to[i] = derive_node(s->derived, up, l, sym_node_recursive(s->p, s->ids[i]));
	}
}

enum err_code filter_headers(struct work *work, struct derived *derived, const struct part *part,
	struct part *out, struct err *err)
{
	uint32_t *headers = arena_alloc_raw(work->arena, part->headers_n + 1, sizeof(*headers));

	if (!headers)
		return work_nomem(work, err);
	for (uint32_t i = 0; i < part->headers_n; i++) {
		struct sym_header h = *sym_header(part->partition, part->headers[i]);

		h.drop_frames = h.keep_frames = 0; /* done */
		headers[i] = derive_header(derived, &h);
	}
	out->headers = headers;
	out->headers_n = part->headers_n;
	return ERR_OK;
}

static enum err_code filter_stacks_make(struct filter_stacks *s, struct part *out, struct err *err)
{
	struct derive_room room = { s->nodes.n, 2 * s->locations.n, s->part->headers_n, 0 };
	const struct part *in = s->part;
	enum err_code rc;

	*out = (struct part){ 0 };
	if ((rc = derive_open(s->work->arena, s->a, s->p, room, &s->derived, err)) ||
		(rc = filter_headers(s->work, s->derived, in, out, err)))
		return rc;
	out->partition = derive_partition(s->derived);
	filter_stacks_mark_needed(s);
	filter_stacks_make_nodes(s);
	if (!(out->cells = arena_alloc_raw(s->a, in->n + 1, sizeof(*out->cells))))
		return filter_stacks_nomem(s, err);
	for (size_t i = 0; i < in->n; i++) {
		uint32_t at = filter_stacks_end_of(s, &in->cells[i]);
		struct cell c = in->cells[i];

		c.stack = s->to[s->end[at]];
		if (filter_stacks_stays(s, at) &&
			(c.stack || s->f->id == FN_PRUNE_FROM || s->f->id == FN_NOINLINES))
			out->cells[out->n++] = c;
	}
	return part_normalize(s->work, out, err); /* which makes cells of our own arena's */
}

enum err_code filter_stacks(struct work *work, struct arena *scratch, const struct filter *f,
	const struct profile_value *p, const struct part *part, struct part *out, struct err *err)
{
	struct filter_stacks s = { .a = scratch,
		.work = work,
		.f = f,
		.symbols = frame_means_symbol(f->text),
		.addresses = frame_means_address(f->text),
		.p = part->partition,
		.part = part };
	enum err_code rc;

	if ((rc = pruned_init(&s.pruned, p, part, scratch, err)))
		return rc;
	if (!filter_stacks_find_nodes(&s) || !filter_stacks_number_nodes(&s))
		return filter_stacks_nomem(&s, err);
	if ((rc = filter_stacks_judge_places(&s, err)) || (rc = work_check(work, err)))
		return rc;
	filter_stacks_judge_nodes(&s);
	return f->id == FN_FOCUS || f->id == FN_IGNORE ? filter_stacks_keep_cells(&s, out, err) :
													 filter_stacks_make(&s, out, err);
}
