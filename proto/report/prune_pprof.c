#include "proto/report/prune_pprof.h"

static uint32_t prune_pprof_lines_n(const void *ctx, uint32_t location)
{
	return ((const struct pprof *)ctx)->locations[location].line_n;
}

static uint32_t prune_pprof_line_function(const void *ctx, uint32_t location, uint32_t line)
{
	const struct pprof *p = ctx;

	return p->lines[p->locations[location].line_first + line].function;
}

static struct str prune_pprof_function_name(const void *ctx, uint32_t function)
{
	const struct pprof *p = ctx;

	return p->strings[p->functions[function].name];
}

enum err_code prune_pprof_init(
	struct prune *prune, const struct pprof *p, struct arena *a, struct err *err)
{
	const struct prune_source source = { .ctx = p,
		.locations_n = p->locations_n,
		.functions_n = p->functions_n,
		.lines_n = prune_pprof_lines_n,
		.line_function = prune_pprof_line_function,
		.function_name = prune_pprof_function_name };

	return prune_init(
		prune, &source, p->strings[p->drop_frames], p->strings[p->keep_frames], a, err);
}

uint32_t prune_pprof_first(struct prune *prune, const struct pprof *p, const struct pprof_sample *s)
{
	enum prune_state state = PRUNE_AT_ROOT;

	for (uint32_t i = prune->active ? s->location_n : 0; i-- > 0;) {
		state = prune_next(prune, state, p->location_ids[s->location_first + i]);
		if (state == PRUNE_ENDED)
			return i + 1;
	}
	return 0;
}
