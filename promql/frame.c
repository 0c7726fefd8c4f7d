#include "promql/frame.h"

#include <inttypes.h>

#include "base/regex.h"

/* ---- names ---- */

struct str frame_path_base(struct str path)
{
	size_t start;

	if (path.len == 0)
		return STR(".");
	while (path.len > 1 && path.ptr[path.len - 1] == '/')
		path.len--;
	for (start = path.len; start > 0 && path.ptr[start - 1] != '/'; start--)
		;
	return start == path.len ? STR("/") : (struct str){ path.ptr + start, path.len - start };
}

struct str frame_binary_name(struct arena *a, struct str objfile)
{
	struct str base;
	char *text;

	if (objfile.len == 0)
		return STR("<unknown>");
	base = frame_path_base(objfile);
	text = arena_printf(a, "[" STR_FMT "]", STR_ARG(base));
	return (struct str){ text, text ? base.len + 2 : 0 };
}

static struct str binary_of(const struct partition *p, const struct sym_location *l)
{
	return l->mapping == SYM_NONE ? STR("") : sym_string(p, sym_mapping(p, l->mapping)->filename);
}

struct str frame_name(struct arena *a, const struct partition *p, const struct sym_location *l,
	const struct sym_line *line)
{
	struct str name = line ? sym_function_name(p, sym_function(p, line->function)) : STR("");

	return name.len ? name : frame_binary_name(a, binary_of(p, l));
}

struct str frame_address_name(struct arena *a, const struct partition *p,
	const struct sym_location *l, const struct sym_line *line)
{
	struct str objfile = binary_of(p, l), base = STR("");
	char *text;

	if (l->address == 0 || (line && sym_function_name(p, sym_function(p, line->function)).len))
		return frame_name(a, p, l, line);
	if (objfile.len > 0)
		base = frame_path_base(objfile);
	text = arena_printf(
		a, "[" STR_FMT "%s0x%" PRIx64 "]", STR_ARG(base), base.len ? "+" : "", l->address);
	return text ? str_of(text) : (struct str){ 0 };
}

bool frame_means_symbol(struct str expression)
{
	for (size_t i = 0; i + 1 < expression.len; i++)
		if (expression.ptr[i] == '_' &&
			(expression.ptr[i + 1] == 'Z' || expression.ptr[i + 1] == 'R') &&
			(i == 0 || strchr("^(|", expression.ptr[i - 1])))
			return true;
	return false;
}

struct str frame_symbol(const struct partition *p, const struct sym_function *f)
{
	return f->shown ? sym_string(p, f->system_name) : STR("");
}

bool frame_symbol_matches(const struct matcher *m, const struct partition *p,
	const struct sym_function *f, bool name_matches)
{
	bool yes;

	if (!f->shown || !frame_means_symbol(m->value))
		return name_matches;
	yes = matcher_test(m, frame_symbol(p, f));
	return m->op == MATCH_NE || m->op == MATCH_NRE ? yes && name_matches : yes || name_matches;
}

/* ---- dropping ---- */

struct str frame_simplified(struct str name)
{
	static const char *const kept[] = { "(anonymous namespace)", "operator()" };
	size_t i = 0;

	if (name.len > 0 && name.ptr[0] == '.')
		name = (struct str){ name.ptr + 1, name.len - 1 };
	while (i < name.len) {
		struct str rest = { name.ptr + i, name.len - i };
		size_t step = 1;

		for (size_t k = 0; k < 2; k++)
			if (str_has_prefix(rest, str_of(kept[k])))
				step = strlen(kept[k]);
		if (step == 1 && name.ptr[i] == '(')
			return (struct str){ name.ptr, i };
		i += step;
	}
	return name;
}

void frame_filter_init(struct frame_filter *f, struct str drop, struct str keep)
{
	*f = (struct frame_filter){ 0 };
	if (drop.len == 0 || regex_compile(drop, REGEX_ANCHORED | REGEX_LONG, &f->drop, NULL))
		return;
	if (keep.len > 0 && regex_compile(keep, REGEX_ANCHORED | REGEX_LONG, &f->keep, NULL))
		frame_filter_release(f);
}

void frame_filter_release(struct frame_filter *f)
{
	regex_free(f->drop);
	regex_free(f->keep);
	*f = (struct frame_filter){ 0 };
}

bool frame_filter_drops(const struct frame_filter *f, struct str name)
{
	if (!f->drop || name.len == 0)
		return false;
	name = frame_simplified(name);
	return regex_match(f->drop, name) && !(f->keep && regex_match(f->keep, name));
}

void frame_filter_of_profile(const struct profile_value *p, struct str *drop, struct str *keep)
{
	const struct sym_header *h;

	*drop = *keep = (struct str){ 0 };
	for (size_t i = 0; i < p->parts_n; i++)
		for (uint32_t k = 0; k < p->parts[i].headers_n; k++) {
			h = sym_header(p->parts[i].partition, p->parts[i].headers[k]);
			if (h->drop_frames == 0)
				continue;
			*drop = sym_string(p->parts[i].partition, h->drop_frames);
			*keep = sym_string(p->parts[i].partition, h->keep_frames);
			return;
		}
}

/* ---- a partition's stacks ---- */

/* Only what the part's stacks refer to is looked at: other ids may stand for nothing. */

enum location_fate { LOCATION_UNKNOWN, LOCATION_STAYS, LOCATION_CUT_BELOW, LOCATION_CUT };
enum function_fate { FUNCTION_UNKNOWN, FUNCTION_STAYS, FUNCTION_GOES };

/* Nodes below a kept frame may be cut; those that are have all below them cut. */
enum { NODE_USED = 1, NODE_SEEN_KEPT = 2, NODE_CUT = 4 };

struct pruning {
	struct pruned *to;
	const struct partition *p;
	struct frame_filter filter;
	uint32_t nodes_n;
	char *functions, *locations, *nodes; /* what is known of each */
};

static bool function_goes(struct pruning *x, uint32_t id)
{
	char *fate = &x->functions[id];

	if (*fate == FUNCTION_UNKNOWN)
		*fate = frame_filter_drops(&x->filter, sym_function_name(x->p, sym_function(x->p, id))) ?
			FUNCTION_GOES :
			FUNCTION_STAYS;
	return *fate == FUNCTION_GOES;
}

static char fate_of_location(struct pruning *x, uint32_t id)
{
	const struct sym_location *l = sym_location(x->p, id);
	char *fate = &x->locations[id];
	uint32_t k = l->lines_n;

	if (*fate != LOCATION_UNKNOWN)
		return *fate;
	while (k > 0 && !function_goes(x, l->lines[k - 1].function))
		k--;
	if (k == 0)
		*fate = LOCATION_STAYS;
	else if (k == l->lines_n)
		*fate = LOCATION_CUT;
	else {
		*fate = LOCATION_CUT_BELOW;
		x->to->line_skip[id] = k;
	}
	return *fate;
}

static void mark_used(struct pruning *x, const struct part *part)
{
	for (size_t i = 0; i < part->n; i++)
		x->nodes[part->cells[i].stack] = NODE_USED;
	for (uint32_t i = x->nodes_n; i-- > 1;)
		if (x->nodes[i])
			x->nodes[sym_node(x->p, i).parent] = NODE_USED;
}

static void prune_nodes(struct pruning *x)
{
	uint32_t *stack = x->to->stack;
	char *state = x->nodes;

	for (uint32_t i = 1; i < x->nodes_n; i++) {
		struct sym_node node;
		char above, fate;

		if (!state[i])
			continue;
		node = sym_node(x->p, i);
		above = state[node.parent];
		stack[i] = i;
		state[i] = above;
		if (above & NODE_CUT) {
			stack[i] = stack[node.parent];
			continue;
		}
		fate = fate_of_location(x, node.location);
		if (fate == LOCATION_STAYS)
			state[i] = NODE_USED | NODE_SEEN_KEPT;
		else if (above & NODE_SEEN_KEPT) {
			state[i] |= NODE_CUT;
			if (fate == LOCATION_CUT)
				stack[i] = stack[node.parent];
		}
	}
}

enum err_code pruned_init(struct pruned *r, const struct profile_value *profile,
	const struct part *part, struct arena *a, struct err *err)
{
	struct pruning x = {
		.to = r, .p = part->partition, .nodes_n = part->n ? part->cells[part->n - 1].stack + 1 : 1
	};
	uint32_t locations = sym_locations_n(x.p);
	struct str drop, keep;
	enum err_code rc = ERR_OK;

	*r = (struct pruned){ 0 };
	frame_filter_of_profile(profile, &drop, &keep);
	frame_filter_init(&x.filter, drop, keep);
	if (!x.filter.drop)
		return ERR_OK;
	x.functions = arena_array(a, char, sym_functions_n(x.p) + 1);
	x.locations = arena_array(a, char, locations + 1);
	x.nodes = arena_array(a, char, x.nodes_n);
	r->stack = arena_array(a, uint32_t, x.nodes_n);
	r->line_skip = arena_array(a, uint32_t, locations + 1);
	if (x.functions && x.locations && x.nodes && r->stack && r->line_skip) {
		mark_used(&x, part);
		prune_nodes(&x);
		r->active = true;
	} else {
		rc = arena_fail(a, "pruning", err);
	}
	frame_filter_release(&x.filter);
	return rc;
}
