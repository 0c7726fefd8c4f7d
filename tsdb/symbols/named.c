#include "tsdb/symbols/named.h"

#include <assert.h>

#include "base/array.h"
#include "tsdb/symbols/partition.h"

struct named {
	struct arena *arena;
	struct partition partition;
	const struct partition *base;
	uint32_t strings_first, functions_first; /* ids of those made here */
	struct str *strings;
	size_t strings_n, strings_cap;
	struct sym_function *functions;
	size_t functions_n, functions_cap;
	struct sym_location *locations;
	size_t locations_n, locations_cap;
	uint32_t *at; /* per location of the base: its place in `locations`, + 1; 0: it has none */
	uint32_t at_n;
};

enum err_code named_open(
	struct arena *a, const struct partition *base, struct named **out, struct err *err)
{
	struct partition *w = (struct partition *)(uintptr_t)base; /* its lock only */
	struct named *n = arena_new(a, struct named);

	assert(!base->base);
	if (!n)
		return arena_fail(a, "names of addresses", err);
	n->arena = a;
	n->base = base;
	mutex_lock(&w->lock);
	n->strings_first = w->next[SYM_STRING];
	n->functions_first = w->next[SYM_FUNCTION];
	mutex_unlock(&w->lock);
	n->partition.index = base->index;
	n->partition.id = base->id;
	n->partition.epoch = base->epoch;
	n->partition.name = base->name;
	n->partition.base = base;
	n->partition.named = n;
	*out = n;
	return ERR_OK;
}

struct partition *named_partition(struct named *n)
{
	return &n->partition;
}

static enum err_code named_too_many(const struct named *n, struct err *err)
{
	return err_set(err, ERR_LIMIT, "names of addresses of job \"" STR_FMT "\": no more ids",
		STR_ARG(n->base->name));
}

enum err_code named_string(struct named *n, struct str s, uint32_t *id, struct err *err)
{
	if (s.len == 0) {
		*id = 0;
		return ERR_OK;
	}
	if (n->strings_n >= SYM_NONE - 1 - n->strings_first)
		return named_too_many(n, err);
	if (!arena_array_room(n->arena, &n->strings, n->strings_n, 1, &n->strings_cap))
		return arena_fail(n->arena, "names of addresses", err);
	n->strings[n->strings_n] = s;
	*id = n->strings_first + (uint32_t)n->strings_n++;
	return ERR_OK;
}

enum err_code named_function(
	struct named *n, const struct sym_function *f, uint32_t *id, struct err *err)
{
	if (n->functions_n >= SYM_NONE - 1 - n->functions_first)
		return named_too_many(n, err);
	if (!arena_array_room(n->arena, &n->functions, n->functions_n, 1, &n->functions_cap))
		return arena_fail(n->arena, "names of addresses", err);
	n->functions[n->functions_n] = *f;
	n->functions[n->functions_n].shown = f->system_name != f->name ? SYM_SHOWN_AS_NAMED : 0;
	*id = n->functions_first + (uint32_t)n->functions_n++;
	return ERR_OK;
}

/* Room for this location in `at`: locations may have been published since. */
static enum err_code named_make_room(struct named *n, uint32_t location, struct err *err)
{
	uint32_t wanted = sym_locations_n(n->base), *grown;

	if (location < n->at_n)
		return ERR_OK;
	if (wanted <= location)
		wanted = location + 1;
	wanted += n->at_n ? wanted / 2 : 0;
	if (!(grown = arena_array(n->arena, uint32_t, wanted)))
		return arena_fail(n->arena, "names of addresses", err);
	if (n->at_n)
		memcpy(grown, n->at, n->at_n * sizeof(*grown));
	n->at = grown;
	n->at_n = wanted;
	return ERR_OK;
}

enum err_code named_lines(struct named *n, uint32_t location, const struct sym_line *lines,
	uint32_t lines_n, struct err *err)
{
	struct sym_location l = sym_location(n->base, location);
	struct sym_line *copy = arena_alloc_raw(n->arena, lines_n, sizeof(*copy));
	enum err_code rc;

	if (!copy || !arena_array_room(n->arena, &n->locations, n->locations_n, 1, &n->locations_cap))
		return arena_fail(n->arena, "names of addresses", err);
	if ((rc = named_make_room(n, location, err)))
		return rc;
	memcpy(copy, lines, lines_n * sizeof(*lines));
	l.lines = copy;
	l.lines_n = lines_n;
	n->locations[n->locations_n++] = l;
	n->at[location] = (uint32_t)n->locations_n;
	return ERR_OK;
}

/* ---- readers ---- */

uint32_t named_n(const struct named *n, enum sym_kind kind)
{
	return kind == SYM_STRING ? n->strings_first + (uint32_t)n->strings_n :
								n->functions_first + (uint32_t)n->functions_n;
}

const struct sym_function *named_function_at(const struct named *n, uint32_t id)
{
	return id >= n->functions_first && id - n->functions_first < n->functions_n ?
		&n->functions[id - n->functions_first] :
		NULL;
}

const struct str *named_string_at(const struct named *n, uint32_t id)
{
	return id >= n->strings_first && id - n->strings_first < n->strings_n ?
		&n->strings[id - n->strings_first] :
		NULL;
}

const struct sym_location *named_location_at(const struct named *n, uint32_t id)
{
	return id < n->at_n && n->at[id] ? &n->locations[n->at[id] - 1] : NULL;
}
