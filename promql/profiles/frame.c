#include "promql/profiles/frame.h"

#include <inttypes.h>

#include "proto/report/frame_text.h"
#include "proto/report/prune.h"

/* ---- names ---- */

static struct str frame_binary_of(const struct partition *p, const struct sym_location *l)
{
	return l->mapping == SYM_NONE ? STR("") : sym_string(p, sym_mapping(p, l->mapping)->filename);
}

struct str frame_name(struct arena *a, const struct partition *p, const struct sym_location *l,
	const struct sym_line *line)
{
	struct str name = line ? sym_function_name(p, sym_function(p, line->function)) : STR("");

	return name.len ? name : frame_binary_name(a, frame_binary_of(p, l));
}

struct str frame_address_name(struct arena *a, const struct partition *p,
	const struct sym_location *l, const struct sym_line *line)
{
	struct str objfile = frame_binary_of(p, l), base = STR("");
	uint64_t place = l->address;
	char *text;

	if (!sym_has_address(p, l) ||
		(line && sym_function_name(p, sym_function(p, line->function)).len))
		return frame_name(a, p, l, line);
	if (objfile.len > 0)
		base = frame_path_base(objfile);
	if (l->mapping != SYM_NONE)
		place += sym_mapping(p, l->mapping)->offset;
	text = arena_printf(
		a, "[" STR_FMT "%s0x%" PRIx64 "]", STR_ARG(base), base.len ? "+" : "", place);
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

bool frame_means_address(struct str expression)
{
	return memmem(expression.ptr, expression.len, "+0x", 3) != NULL;
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

/* ---- pruning ---- */

void profile_drop_frames(const struct profile_value *p, struct str *drop, struct str *keep)
{
	const struct sym_header *h;

	*drop = *keep = (struct str){ 0 };
	for (size_t i = 0; i < p->parts_n; i++)
		for (uint32_t k = p->parts[i].headers_plain; k < p->parts[i].headers_n; k++) {
			h = sym_header(p->parts[i].partition, p->parts[i].headers[k]);
			if (h->drop_frames == 0)
				continue;
			*drop = sym_string(p->parts[i].partition, h->drop_frames);
			*keep = sym_string(p->parts[i].partition, h->keep_frames);
			return;
		}
}

static uint32_t frame_lines_n(const void *ctx, uint32_t location)
{
	return sym_location(ctx, location).lines_n;
}

static uint32_t frame_line_function(const void *ctx, uint32_t location, uint32_t line)
{
	return sym_location(ctx, location).lines[line].function;
}

static struct str frame_function_name(const void *ctx, uint32_t function)
{
	return sym_function_name(ctx, sym_function(ctx, function));
}

/* Marks the part's nodes and those above them. Other nodes may refer to ids that do not exist. */
static void frame_mark_used(const struct part *part, char *used, uint32_t nodes_n)
{
	for (size_t i = 0; i < part->n; i++)
		used[part->cells[i].stack] = 1;
	for (uint32_t i = nodes_n; i-- > 1;)
		if (used[i])
			used[sym_node(part->partition, i).parent] = 1;
}

/* states: on entry whether a node is used, on return its enum prune_state. */
static void prune_nodes(
	struct prune *prune, const struct partition *p, char *states, uint32_t nodes_n, uint32_t *stack)
{
	states[0] = PRUNE_AT_ROOT;
	for (uint32_t i = 1; i < nodes_n; i++) {
		struct sym_node node;

		if (!states[i])
			continue;
		node = sym_node(p, i);
		states[i] = (char)prune_next(prune, (enum prune_state)states[node.parent], node.location);
		stack[i] = states[i] == PRUNE_ENDED ? stack[node.parent] : i;
	}
}

enum err_code pruned_init(struct pruned *pruned, const struct profile_value *profile,
	const struct part *part, struct arena *a, struct err *err)
{
	const struct partition *p = part->partition;
	const struct prune_source source = { .ctx = p,
		.locations_n = sym_locations_n(p),
		.functions_n = sym_functions_n(p),
		.lines_n = frame_lines_n,
		.line_function = frame_line_function,
		.function_name = frame_function_name };
	uint32_t nodes_n = part->n ? part->cells[part->n - 1].stack + 1 : 1;
	struct str drop, keep;
	struct prune prune;
	char *states;
	enum err_code rc;

	*pruned = (struct pruned){ 0 };
	profile_drop_frames(profile, &drop, &keep);
	if ((rc = prune_init(&prune, &source, drop, keep, a, err)) || !prune.active)
		return rc;
	states = arena_array(a, char, nodes_n);
	pruned->stack = arena_array(a, uint32_t, nodes_n);
	if (states && pruned->stack) {
		frame_mark_used(part, states, nodes_n);
		prune_nodes(&prune, p, states, nodes_n, pruned->stack);
		pruned->line_skip = prune.line_skip;
		pruned->active = true;
	} else {
		rc = arena_fail(a, "pruning", err);
	}
	prune_release(&prune);
	return rc;
}
