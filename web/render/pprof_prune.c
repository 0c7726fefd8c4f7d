#include "web/render/pprof_prune.h"

#include "promql/frame.h"

static void prune_location(
	struct pruning *r, const struct pprof *p, uint32_t id, const bool *function_goes)
{
	const struct pprof_location *l = &p->locations[id];
	uint32_t i = l->line_n;

	while (i > 0 && !function_goes[p->lines[l->line_first + i - 1].function])
		i--;
	if (i == 0)
		return;
	r->cut_below[id] = true;
	if (i == l->line_n)
		r->cut[id] = true;
	else
		r->line_skip[id] = i;
}

enum err_code pruning_init(
	struct pruning *r, const struct pprof *p, struct arena *a, struct err *err)
{
	enum err_code rc = ERR_OK;
	struct frame_filter f;
	bool *goes;

	*r = (struct pruning){ 0 };
	frame_filter_init(&f, p->strings[p->drop_frames], p->strings[p->keep_frames]);
	if (!f.drop)
		return ERR_OK;
	r->line_skip = arena_array(a, uint32_t, p->locations_n);
	r->cut = arena_array(a, bool, p->locations_n);
	r->cut_below = arena_array(a, bool, p->locations_n);
	goes = arena_array(a, bool, p->functions_n);
	if (!r->line_skip || !r->cut || !r->cut_below || !goes) {
		rc = arena_fail(a, "pruning", err);
		goto out;
	}
	for (uint32_t i = 0; i < p->functions_n; i++)
		goes[i] = frame_filter_drops(&f, p->strings[p->functions[i].name]);
	for (uint32_t i = 0; i < p->locations_n; i++)
		prune_location(r, p, i, goes);
	r->active = true;
out:
	frame_filter_release(&f);
	return rc;
}

uint32_t pruning_first(const struct pruning *r, const struct pprof *p, const struct pprof_sample *s)
{
	bool found_user = false;
	uint32_t id;

	if (!r->active)
		return 0;
	for (uint32_t i = s->location_n; i-- > 0;) {
		id = p->location_ids[s->location_first + i];
		if (!r->cut_below[id])
			found_user = true;
		else if (found_user)
			return r->cut[id] ? i + 1 : i;
	}
	return 0;
}
