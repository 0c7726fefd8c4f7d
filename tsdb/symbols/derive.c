#include "tsdb/symbols/derive.h"

#include <assert.h>

#include "tsdb/symbols/partition.h"

struct derived {
	const struct partition *base;
	struct partition partition;
	struct derive_room room;
	uint32_t nodes_n, locations_n, headers_n;
	struct sym_node *nodes;
	unsigned char *recursive;
	struct sym_location *locations;
	struct sym_header *headers;
	struct sym_function *functions; /* with the ids functions_first, ... */
	struct str *strings; /* two of each function */
	uint32_t functions_first, functions_n, functions_room, strings_first;
	uint32_t *slots; /* scratch: node ids by (parent, location); 0: free */
	uint32_t mask;
};

/* Those of the base's own, if it is derived, and room for more. */
static bool derive_open_functions(struct derived *d, struct arena *a, const struct partition *base)
{
	const struct derived *from = base->derived && base->derived->functions_n ? base->derived : NULL;
	uint32_t n = from ? from->functions_n : 0;

	d->functions_room = n + d->room.functions;
	if (!d->functions_room)
		return true;
	d->functions_n = n;
	d->functions_first = from ? from->functions_first : sym_functions_n(base);
	d->strings_first = from ? from->strings_first : sym_strings_n(base);
	d->functions = arena_array(a, struct sym_function, d->functions_room);
	d->strings = arena_array(a, struct str, 2 * (size_t)d->functions_room);
	if (!d->functions || !d->strings)
		return false;
	if (n) {
		memcpy(d->functions, from->functions, n * sizeof(*d->functions));
		memcpy(d->strings, from->strings, 2 * (size_t)n * sizeof(*d->strings));
	}
	return true;
}

enum err_code derive_open(struct arena *a, struct arena *scratch, const struct partition *base,
	struct derive_room room, struct derived **out, struct err *err)
{
	struct derived *d = arena_new(a, struct derived);
	size_t slots = 16;

	while (slots < 2 * (size_t)room.nodes)
		slots *= 2;
	if (!d || slots > UINT32_MAX)
		return arena_fail(a, "filtered stacks", err);
	d->base = base->base ? base->base : base;
	d->room = room;
	d->room.nodes++;
	d->mask = (uint32_t)slots - 1;
	d->nodes = arena_array(a, struct sym_node, d->room.nodes);
	d->recursive = arena_array(a, unsigned char, d->room.nodes);
	d->locations = arena_alloc_raw(a, room.locations + 1, sizeof(*d->locations));
	d->headers = arena_alloc_raw(a, room.headers + 1, sizeof(*d->headers));
	if (!d->nodes || !d->recursive || !d->locations || !d->headers ||
		!derive_open_functions(d, a, base))
		return arena_fail(a, "filtered stacks", err);
	if (!(d->slots = arena_array(scratch, uint32_t, slots)))
		return arena_fail(scratch, "filtered stacks", err);
	d->nodes[0].location = SYM_NONE;
	d->nodes_n = 1;
	d->partition.index = d->base->index;
	d->partition.id = d->base->id;
	d->partition.epoch = d->base->epoch;
	d->partition.name = d->base->name;
	d->partition.derived = d;
	d->partition.named = base->named;
	d->partition.base = d->base;
	*out = d;
	return ERR_OK;
}

uint32_t derive_location(struct derived *d, const struct sym_location *l)
{
	assert(d->locations_n < d->room.locations);
	d->locations[d->locations_n] = *l;
	return d->locations_n++;
}

uint32_t derive_function(struct derived *d, struct str name, struct str filename)
{
	uint32_t at = d->functions_n++;

	assert(at < d->functions_room);
	d->strings[2 * at] = name;
	d->strings[2 * at + 1] = filename;
	d->functions[at] = (struct sym_function){
		.name = name.len ? d->strings_first + 2 * at : 0,
		.filename = filename.len ? d->strings_first + 2 * at + 1 : 0,
	};
	return d->functions_first + at;
}

uint32_t derive_header(struct derived *d, const struct sym_header *h)
{
	assert(d->headers_n < d->room.headers);
	d->headers[d->headers_n] = *h;
	return d->headers_n++;
}

static bool derive_has_function(const struct sym_location *l, uint32_t from, uint32_t function)
{
	for (uint32_t i = from; i < l->lines_n; i++)
		if (l->lines[i].function == function)
			return true;
	return false;
}

static bool derived_is_recursive(
	const struct derived *d, uint32_t parent, const struct sym_location *l)
{
	for (uint32_t i = 0; i < l->lines_n; i++) {
		uint32_t function = l->lines[i].function;

		if (derive_has_function(l, i + 1, function))
			return true;
		for (uint32_t at = parent; at; at = d->nodes[at].parent)
			if (derive_has_function(&d->locations[d->nodes[at].location], 0, function))
				return true;
	}
	return false;
}

uint32_t derive_node(struct derived *d, uint32_t parent, uint32_t location, bool may_recur)
{
	uint32_t at = (uint32_t)map_hash_u64((uint64_t)parent << 32 | location) & d->mask, id;

	for (; (id = d->slots[at]); at = (at + 1) & d->mask)
		if (d->nodes[id].parent == parent && d->nodes[id].location == location)
			return id;
	assert(d->nodes_n < d->room.nodes);
	assert(parent < d->nodes_n && location < d->locations_n);
	id = d->slots[at] = d->nodes_n++;
	d->nodes[id] = (struct sym_node){ parent, location };
	d->recursive[id] = may_recur && derived_is_recursive(d, parent, &d->locations[location]);
	return id;
}

struct partition *derive_partition(struct derived *d)
{
	return &d->partition;
}

/* ---- readers ---- */

uint32_t derived_n(const struct derived *d, enum sym_kind kind)
{
	return kind == SYM_NODE ? d->nodes_n : kind == SYM_LOCATION ? d->locations_n : d->headers_n;
}

uint32_t derived_functions_end(const struct derived *d)
{
	return d->functions_n ? d->functions_first + d->functions_n : 0;
}

uint32_t derived_strings_end(const struct derived *d)
{
	return d->functions_n ? d->strings_first + 2 * d->functions_n : 0;
}

const struct sym_function *derived_function(const struct derived *d, uint32_t id)
{
	return d->functions_n && id >= d->functions_first ? &d->functions[id - d->functions_first] :
														NULL;
}

const struct str *derived_string(const struct derived *d, uint32_t id)
{
	return d->functions_n && id >= d->strings_first ? &d->strings[id - d->strings_first] : NULL;
}

const struct sym_location *derived_location(const struct derived *d, uint32_t id)
{
	return &d->locations[id];
}

const struct sym_header *derived_header(const struct derived *d, uint32_t id)
{
	return &d->headers[id];
}

struct sym_node derived_node(const struct derived *d, uint32_t id)
{
	return d->nodes[id];
}

bool derived_node_recursive(const struct derived *d, uint32_t id)
{
	return d->recursive[id];
}
