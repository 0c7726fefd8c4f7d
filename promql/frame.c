#include "promql/frame.h"

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

struct str frame_name(struct arena *a, const struct partition *p, const struct sym_location *l,
	const struct sym_line *line)
{
	uint32_t name = line ? sym_function(p, line->function)->name : 0;

	if (name)
		return sym_string(p, name);
	return frame_binary_name(a,
		l->mapping == SYM_NONE ? STR("") :
					 sym_string(p, sym_mapping(p, l->mapping)->filename));
}

/* ---- dropping ---- */

/* Without a leading dot and the argument list; "(anonymous namespace)" and "operator()" stay. */
static struct str simplified(struct str name)
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
	name = simplified(name);
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

enum location_fate { LOCATION_STAYS, LOCATION_CUT_BELOW, LOCATION_CUT };

/* Nodes below a kept frame may be cut; those that are have all below them cut. */
enum { NODE_SEEN_KEPT = 1, NODE_CUT = 2 };

static void fate_of_locations(
	const struct partition *p, const char *goes, uint32_t n, char *fate, uint32_t *line_skip)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct sym_location *l = sym_location(p, i);
		uint32_t k = l->lines_n;

		while (k > 0 && !goes[l->lines[k - 1].function])
			k--;
		if (k == 0)
			continue;
		fate[i] = k == l->lines_n ? LOCATION_CUT : LOCATION_CUT_BELOW;
		line_skip[i] = k == l->lines_n ? 0 : k;
	}
}

static void prune_nodes(
	struct pruned *r, const struct partition *p, const char *fate, char *state, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		struct sym_node node = sym_node(p, i);
		char above = state[node.parent];

		r->stack[i] = i;
		state[i] = above;
		if (above & NODE_CUT)
			r->stack[i] = r->stack[node.parent];
		else if (fate[node.location] == LOCATION_STAYS)
			state[i] = NODE_SEEN_KEPT;
		else if (above & NODE_SEEN_KEPT) {
			state[i] |= NODE_CUT;
			if (fate[node.location] == LOCATION_CUT)
				r->stack[i] = r->stack[node.parent];
		}
	}
}

enum err_code pruned_init(struct pruned *r, const struct profile_value *profile,
	const struct part *part, struct arena *a, struct err *err)
{
	const struct partition *p = part->partition;
	uint32_t nodes = part->n ? part->cells[part->n - 1].stack + 1 : 1;
	uint32_t locations = sym_locations_n(p), functions = sym_functions_n(p);
	struct str drop, keep;
	struct frame_filter f;
	char *goes, *fate, *state;

	*r = (struct pruned){ 0 };
	frame_filter_of_profile(profile, &drop, &keep);
	frame_filter_init(&f, drop, keep);
	if (!f.drop)
		return ERR_OK;
	goes = arena_array(a, char, functions + 1);
	fate = arena_array(a, char, locations + 1);
	state = arena_array(a, char, nodes);
	r->stack = arena_array(a, uint32_t, nodes);
	r->line_skip = arena_array(a, uint32_t, locations + 1);
	if (!goes || !fate || !state || !r->stack || !r->line_skip) {
		frame_filter_release(&f);
		return arena_fail(a, "pruning", err);
	}
	for (uint32_t i = 0; i < functions; i++)
		goes[i] = frame_filter_drops(&f, sym_string(p, sym_function(p, i)->name));
	frame_filter_release(&f);
	fate_of_locations(p, goes, locations, fate, r->line_skip);
	prune_nodes(r, p, fate, state, nodes);
	r->active = true;
	return ERR_OK;
}
