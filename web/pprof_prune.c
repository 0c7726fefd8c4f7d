#include "web/pprof_prune.h"

#include "base/regex.h"

/* Without a leading dot and without the argument list; "(anonymous namespace)" and "operator()" stay. */
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

static void prune_location(struct pruning *r, const struct pprof *p, uint32_t id,
	const bool *function_goes)
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

enum err_code pruning_init(struct pruning *r, const struct pprof *p, struct arena *a,
	struct err *err)
{
	struct regex *drop = NULL, *keep = NULL;
	enum err_code rc = ERR_OK;
	bool *goes;

	*r = (struct pruning){ 0 };
	if (p->drop_frames == 0 ||
		regex_compile(p->strings[p->drop_frames], REGEX_ANCHORED | REGEX_LONG, &drop, NULL))
		return ERR_OK;
	if (p->keep_frames != 0 &&
		regex_compile(p->strings[p->keep_frames], REGEX_ANCHORED | REGEX_LONG, &keep, NULL))
		goto out;
	r->line_skip = arena_array(a, uint32_t, p->locations_n);
	r->cut = arena_array(a, bool, p->locations_n);
	r->cut_below = arena_array(a, bool, p->locations_n);
	goes = arena_array(a, bool, p->functions_n);
	if (!r->line_skip || !r->cut || !r->cut_below || !goes) {
		rc = arena_fail(a, "pruning", err);
		goto out;
	}
	for (uint32_t i = 0; i < p->functions_n; i++) {
		struct str name = simplified(p->strings[p->functions[i].name]);

		goes[i] = p->functions[i].name != 0 && regex_match(drop, name) &&
			!(keep && regex_match(keep, name));
	}
	for (uint32_t i = 0; i < p->locations_n; i++)
		prune_location(r, p, i, goes);
	r->active = true;
out:
	regex_free(drop);
	regex_free(keep);
	return rc;
}

uint32_t pruning_first(const struct pruning *r, const struct pprof *p,
	const struct pprof_sample *s)
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
