#include "proto/report/prune.h"

#include <assert.h>

#include "base/regex.h"
#include "proto/report/frame_text.h"

enum function_fate { FUNCTION_UNKNOWN, FUNCTION_STAYS, FUNCTION_GOES };
enum location_fate { LOCATION_UNKNOWN, LOCATION_STAYS, LOCATION_CUT, LOCATION_GOES };

enum err_code prune_init(struct prune *p, const struct prune_source *source, struct str drop,
	struct str keep, struct arena *a, struct err *err)
{
	assert(source->lines_n && source->line_function && source->function_name);
	*p = (struct prune){ .source = *source };
	if (drop.len == 0 || regex_compile(drop, REGEX_ANCHORED, &p->drop, NULL))
		return ERR_OK;
	if (keep.len > 0 && regex_compile(keep, REGEX_ANCHORED, &p->keep, NULL)) {
		prune_release(p);
		return ERR_OK;
	}
	p->functions = arena_array(a, char, (size_t)source->functions_n + 1);
	p->locations = arena_array(a, char, (size_t)source->locations_n + 1);
	p->line_skip = arena_array(a, uint32_t, (size_t)source->locations_n + 1);
	if (!p->functions || !p->locations || !p->line_skip) {
		prune_release(p);
		return arena_fail(a, "pruning", err);
	}
	p->active = true;
	return ERR_OK;
}

void prune_release(struct prune *p)
{
	regex_free(p->drop);
	regex_free(p->keep);
	p->drop = p->keep = NULL;
}

static bool prune_name_goes(const struct prune *p, struct str name)
{
	if (name.len == 0)
		return false;
	name = frame_simplified(name);
	return regex_match(p->drop, name) && !(p->keep && regex_match(p->keep, name));
}

static bool prune_function_goes(struct prune *p, uint32_t id)
{
	char *fate = &p->functions[id];

	if (*fate == FUNCTION_UNKNOWN)
		*fate = prune_name_goes(p, p->source.function_name(p->source.ctx, id)) ? FUNCTION_GOES :
																				 FUNCTION_STAYS;
	return *fate == FUNCTION_GOES;
}

/* The outermost line that goes decides how much of a location is left. */
static char prune_fate_of_location(struct prune *p, uint32_t id)
{
	const struct prune_source *s = &p->source;
	uint32_t n = s->lines_n(s->ctx, id), skip = n;

	while (skip > 0 && !prune_function_goes(p, s->line_function(s->ctx, id, skip - 1)))
		skip--;
	if (skip == 0)
		return LOCATION_STAYS;
	if (skip == n)
		return LOCATION_GOES;
	p->line_skip[id] = skip;
	return LOCATION_CUT;
}

enum prune_state prune_next(struct prune *p, enum prune_state above, uint32_t location)
{
	char *fate;

	if (above == PRUNE_ENDS_HERE || above == PRUNE_ENDED)
		return PRUNE_ENDED;
	fate = &p->locations[location];
	if (*fate == LOCATION_UNKNOWN)
		*fate = prune_fate_of_location(p, location);
	if (*fate == LOCATION_STAYS)
		return PRUNE_GOES_ON;
	if (above == PRUNE_AT_ROOT)
		return PRUNE_AT_ROOT;
	return *fate == LOCATION_CUT ? PRUNE_ENDS_HERE : PRUNE_ENDED;
}
