/*
 * A query's stacks use few of a partition's nodes. They are marked from the leaves up; the
 * locations among them that were not met before are sorted by binary and address, then looked up.
 */
#include "tsdb/debuginfo/names/naming.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"
#include "base/quote.h"
#include "tsdb/symbols/named.h"

#define LINES_MAX 256u /* inlined calls at one address that are shown */

/* What is known of a location. */
enum {
	UNMET,
	HAS_NAME,
	BARE, /* + the binary's number */
};

struct bin {
	struct naming_binary is;
	struct open_index *held; /* NULL: no names */
	const struct symindex *index; /* NULL: it does not serve */
	bool read; /* since damage was looked for */
	bool damaged; /* it was told */
};

/* A function of the index in a partition: the same name, file and first line. */
struct made_function {
	const char *name, *file;
	uint32_t start_line, id;
};

struct of_partition {
	struct of_partition *next;
	const struct partition *base;
	struct named *named; /* NULL: no address had a name yet */
	uint32_t *state; /* per location */
	uint32_t state_n;
	uint32_t *bins; /* per mapping: its binary + 1; 0: not met yet */
	uint32_t bins_n;
	struct map functions, strings;
	struct made_function *v;
	size_t n, cap;
	struct made_string {
		const char *text;
		uint32_t id;
	} * texts;
	size_t texts_n, texts_cap;
};

struct naming {
	struct index_cache *indexes;
	struct arena *arena;
	struct of_partition *partitions;
	struct bin *bins;
	size_t bins_n, bins_cap;
	struct str *warnings;
	size_t warnings_n, warnings_cap;
	struct symindex_location lines[LINES_MAX];
};

static enum err_code naming_nomem(struct naming *n, struct err *err)
{
	return arena_fail(n->arena, "names of addresses", err);
}

enum err_code naming_open(
	struct index_cache *c, struct arena *a, struct naming **out, struct err *err)
{
	struct naming *x = calloc(1, sizeof(*x));

	if (!x)
		return err_nomem(err, "names of addresses");
	x->indexes = c;
	x->arena = a;
	*out = x;
	return ERR_OK;
}

enum err_code naming_again(
	const struct naming *of, struct arena *a, struct naming **out, struct err *err)
{
	return naming_open(of->indexes, a, out, err);
}

void naming_close(struct naming *n)
{
	if (!n)
		return;
	for (struct of_partition *p = n->partitions; p; p = p->next) {
		map_release(&p->functions);
		map_release(&p->strings);
	}
	for (size_t i = 0; i < n->bins_n; i++)
		index_cache_release(n->indexes, n->bins[i].held);
	free(n);
}

/* ---- binaries ---- */

static enum err_code naming_add_binary(struct naming *n, const struct partition *p,
	const struct sym_mapping *m, uint32_t *out, struct err *err)
{
	struct str build_id = sym_string(p, m->build_id), path = sym_string(p, m->filename);
	struct bin *b;

	/* Without a build id whether it fits depends on the mapping: it is a binary of its own. */
	for (size_t i = 0; i < n->bins_n && build_id.len; i++)
		if (str_eq(n->bins[i].is.build_id, build_id)) {
			*out = (uint32_t)i;
			return ERR_OK;
		}
	if (!arena_array_room(n->arena, &n->bins, n->bins_n, 1, &n->bins_cap))
		return naming_nomem(n, err);
	b = &n->bins[n->bins_n];
	*b = (struct bin){ .is = { .path = path, .build_id = build_id } };
	if (n->indexes && (b->held = index_cache_get(n->indexes, build_id, path, &b->is.by_path))) {
		b->index = open_index_symbols(b->held);
		b->read = true;
		if (b->is.by_path && !symindex_is_mapped_as(b->index, m->offset, m->size))
			b->index = NULL;
		b->is.known = b->index != NULL;
	}
	*out = (uint32_t)n->bins_n++;
	return ERR_OK;
}

static enum err_code naming_binary_of(
	struct naming *n, struct of_partition *of, uint32_t mapping, uint32_t *out, struct err *err)
{
	uint32_t *grown, wanted;
	enum err_code rc;

	if (mapping >= of->bins_n) {
		wanted = mapping + 1 + mapping / 2;
		if (!(grown = arena_array(n->arena, uint32_t, wanted)))
			return naming_nomem(n, err);
		if (of->bins_n)
			memcpy(grown, of->bins, of->bins_n * sizeof(*grown));
		of->bins = grown;
		of->bins_n = wanted;
	}
	if (!of->bins[mapping]) {
		if ((rc = naming_add_binary(n, of->base, sym_mapping(of->base, mapping), out, err)))
			return rc;
		of->bins[mapping] = *out + 1;
	}
	*out = of->bins[mapping] - 1;
	return ERR_OK;
}

/* ---- names in a partition ---- */

static bool naming_function_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct made_function *a = key, *b = &((const struct of_partition *)ctx)->v[id];

	return a->name == b->name && a->file == b->file && a->start_line == b->start_line;
}

static bool naming_text_eq(const void *ctx, const void *key, uint32_t id)
{
	return ((const struct of_partition *)ctx)->texts[id].text == key;
}

/* An index has each string once, so its place is its name. */
static enum err_code naming_add_text(
	struct naming *n, struct of_partition *of, struct str s, uint32_t *id, struct err *err)
{
	uint64_t hash = map_hash_u64((uintptr_t)s.ptr);
	uint32_t found;
	enum err_code rc;

	*id = 0;
	if (s.len == 0)
		return ERR_OK;
	found = map_find(&of->strings, hash, naming_text_eq, of, s.ptr);
	if (found != MAP_NONE) {
		*id = of->texts[found].id;
		return ERR_OK;
	}
	if (!arena_array_room(n->arena, &of->texts, of->texts_n, 1, &of->texts_cap))
		return naming_nomem(n, err);
	of->texts[of->texts_n].text = s.ptr;
	s = str_printable(n->arena, s);
	if (!s.ptr)
		return naming_nomem(n, err);
	if ((rc = named_string(of->named, s, id, err)))
		return rc;
	if (!map_add(&of->strings, hash, (uint32_t)of->texts_n))
		return err_nomem(err, "names of addresses");
	of->texts[of->texts_n++].id = *id;
	return ERR_OK;
}

static enum err_code naming_add_function(struct naming *n, struct of_partition *of,
	const struct symindex_location *l, uint32_t *id, struct err *err)
{
	struct made_function key = { l->name.ptr, l->file.ptr, l->start_line, 0 };
	uint64_t hash = map_hash_u64(
		(uintptr_t)key.name ^ map_hash_u64((uintptr_t)key.file + key.start_line));
	struct sym_function f = { .start_line = l->start_line };
	uint32_t found = map_find(&of->functions, hash, naming_function_eq, of, &key);
	enum err_code rc;

	if (found != MAP_NONE) {
		*id = of->v[found].id;
		return ERR_OK;
	}
	if (!arena_array_room(n->arena, &of->v, of->n, 1, &of->cap))
		return naming_nomem(n, err);
	if ((rc = naming_add_text(n, of, l->name, &f.name, err)) ||
		(rc = naming_add_text(n, of, l->raw, &f.system_name, err)) ||
		(rc = naming_add_text(n, of, l->file, &f.filename, err)) ||
		(rc = named_function(of->named, &f, id, err)))
		return rc;
	if (!map_add(&of->functions, hash, (uint32_t)of->n))
		return err_nomem(err, "names of addresses");
	key.id = *id;
	of->v[of->n++] = key;
	return ERR_OK;
}

/* ---- addresses ---- */

struct todo {
	uint64_t address; /* the binary's own */
	uint32_t bin, location;
};

static int naming_by_address(const void *a, const void *b)
{
	const struct todo *l = a, *r = b;

	if (l->bin != r->bin)
		return l->bin < r->bin ? -1 : 1;
	if (l->address != r->address)
		return l->address < r->address ? -1 : 1;
	return l->location < r->location ? -1 : l->location > r->location;
}

static enum err_code naming_note_damage_of(struct naming *n, struct bin *b, struct err *err)
{
	struct err why;
	char *text;

	if (!b->read || b->damaged)
		return ERR_OK;
	b->read = false;
	if (!symindex_damaged(open_index_symbols(b->held), &why))
		return ERR_OK;
	b->damaged = true;
	index_cache_drop(n->indexes, b->held);
	text = arena_printf(n->arena,
		"names of " STR_FMT "%s" STR_FMT
		"%s are damaged and removed: %s; debug data is needed again",
		STR_ARG(b->is.path), b->is.build_id.len ? " (build id " : "", STR_ARG(b->is.build_id),
		b->is.build_id.len ? ")" : "", why.msg);
	if (!text || !arena_array_room(n->arena, &n->warnings, n->warnings_n, 1, &n->warnings_cap))
		return naming_nomem(n, err);
	n->warnings[n->warnings_n++] = str_of(text);
	return ERR_OK;
}

static enum err_code naming_note_damage(struct naming *n, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < n->bins_n && !rc; i++)
		rc = naming_note_damage_of(n, &n->bins[i], err);
	return rc;
}

/* Gives the location the names of the address; it stays bare if there are none. */
static enum err_code naming_give_names(
	struct naming *naming, struct of_partition *of, const struct todo *t, struct err *err)
{
	const struct bin *b = &naming->bins[t->bin];
	struct sym_line lines[LINES_MAX];
	size_t n = symindex_find(b->index, t->address, naming->lines, LINES_MAX);
	enum err_code rc;

	if (n == 0)
		return ERR_OK;
	if (n > LINES_MAX)
		n = LINES_MAX;
	if (!of->named && (rc = named_open(naming->arena, of->base, &of->named, err)))
		return rc;
	for (size_t i = 0; i < n; i++) {
		lines[i] = (struct sym_line){ .line = naming->lines[i].line };
		if ((rc = naming_add_function(naming, of, &naming->lines[i], &lines[i].function, err)))
			return rc;
	}
	of->state[t->location] = HAS_NAME;
	return named_lines(of->named, t->location, lines, (uint32_t)n, err);
}

static bool naming_has_name(const struct partition *p, const struct sym_location *l)
{
	for (uint32_t i = 0; i < l->lines_n; i++)
		if (sym_function(p, l->lines[i].function)->name)
			return true;
	return false;
}

/* First look at a location: it has a name, or is bare until its address is looked up. */
static enum err_code naming_meet(struct naming *naming, struct of_partition *of, uint32_t location,
	struct todo **t, size_t *n, size_t *cap, struct arena *scratch, struct err *err)
{
	const struct sym_location l = sym_location(of->base, location);
	const struct sym_mapping *m;
	uint64_t address;
	uint32_t bin;
	enum err_code rc;

	of->state[location] = HAS_NAME;
	if (naming_has_name(of->base, &l) || l.mapping == SYM_NONE || !sym_has_address(of->base, &l))
		return ERR_OK;
	if ((rc = naming_binary_of(naming, of, l.mapping, &bin, err)))
		return rc;
	of->state[location] = BARE + bin;
	if (!naming->bins[bin].index || l.lines_n)
		return ERR_OK;
	naming->bins[bin].read = true;
	m = sym_mapping(of->base, l.mapping);
	address = l.address;
	if ((m->size || m->offset) &&
		!symindex_address(naming->bins[bin].index, m->offset, l.address, &address))
		return ERR_OK;
	if (!arena_array_room(scratch, t, *n, 1, cap))
		return arena_fail(scratch, "names of addresses", err);
	(*t)[(*n)++] = (struct todo){ address, bin, location };
	return ERR_OK;
}

/* ---- stacks ---- */

static struct of_partition *naming_find_partition(struct naming *n, const struct partition *p)
{
	struct of_partition *of = n->partitions;

	while (of && of->base != p)
		of = of->next;
	if (of || !(of = arena_new(n->arena, struct of_partition)))
		return of;
	of->base = p;
	of->next = n->partitions;
	map_init(&of->functions);
	map_init(&of->strings);
	return n->partitions = of;
}

static enum err_code naming_room_for_locations(
	struct naming *naming, struct of_partition *of, struct err *err)
{
	uint32_t n = sym_locations_n(of->base), *grown;

	if (n <= of->state_n)
		return ERR_OK;
	n += of->state_n ? n / 2 : 0;
	if (!(grown = arena_array(naming->arena, uint32_t, n)))
		return naming_nomem(naming, err);
	if (of->state_n)
		memcpy(grown, of->state, of->state_n * sizeof(*grown));
	of->state = grown;
	of->state_n = n;
	return ERR_OK;
}

static uint32_t naming_stacks_at(const struct naming_stacks *s, size_t i)
{
	return *(const uint32_t *)(const void *)((const char *)s->first + i * s->stride);
}

/* Looks up what these stacks have that was not met before. used[0] is not looked at. */
static enum err_code naming_name_nodes(struct naming *naming, struct of_partition *of,
	struct arena *scratch, uint32_t *used, uint32_t nodes, struct err *err)
{
	struct todo *v = NULL;
	size_t n = 0, cap = 0;
	enum err_code rc;

	for (uint32_t i = nodes; i-- > 1;) {
		struct sym_node node;

		if (!used[i])
			continue;
		node = sym_node(of->base, i);
		used[node.parent] = 1;
		if (of->state[node.location] == UNMET &&
			(rc = naming_meet(naming, of, node.location, &v, &n, &cap, scratch, err)))
			return rc;
	}
	if (n == 0)
		return ERR_OK;
	qsort(v, n, sizeof(*v), naming_by_address);
	for (size_t i = 0; i < n; i++)
		if ((rc = naming_give_names(naming, of, &v[i], err)))
			return rc;
	return ERR_OK;
}

enum err_code naming_partition(struct naming *n, struct arena *scratch, struct partition *p,
	const struct naming_stacks *stacks, struct partition **out, const struct naming_bare **bare,
	struct err *err)
{
	struct of_partition *of;
	struct naming_bare *v;
	uint32_t nodes = 1, *used;
	bool any = false;
	enum err_code rc;

	*out = p;
	*bare = NULL;
	if (!sym_has_bare(p))
		return ERR_OK;
	for (size_t i = 0; i < stacks->n; i++)
		if (naming_stacks_at(stacks, i) >= nodes)
			nodes = naming_stacks_at(stacks, i) + 1;
	if (!(of = naming_find_partition(n, p)) || !(used = arena_array(scratch, uint32_t, nodes)))
		return naming_nomem(n, err);
	for (size_t i = 0; i < stacks->n; i++)
		used[naming_stacks_at(stacks, i)] = 1;
	if ((rc = naming_room_for_locations(n, of, err)) ||
		(rc = naming_name_nodes(n, of, scratch, used, nodes, err)) ||
		(rc = naming_note_damage(n, err)))
		return rc;
	if (!(v = arena_array(scratch, struct naming_bare, nodes)))
		return arena_fail(scratch, "names of addresses", err);
	for (uint32_t i = 1; i < nodes; i++) {
		struct sym_node node;
		uint32_t state;

		if (!used[i])
			continue;
		node = sym_node(p, i);
		state = of->state[node.location];
		v[i].leaf = state >= BARE ? state - BARE + 1 : 0;
		v[i].any = v[i].leaf ? v[i].leaf : v[node.parent].any;
		any |= v[i].any != 0;
	}
	if (of->named)
		*out = named_partition(of->named);
	if (any)
		*bare = v;
	return ERR_OK;
}

enum err_code naming_knows(
	struct naming *n, const struct partition *p, uint32_t filename, bool *yes, struct err *err)
{
	struct of_partition *of;
	uint32_t bin;
	enum err_code rc;

	*yes = false;
	if (!n->indexes || !sym_has_bare(p))
		return ERR_OK;
	if (!(of = naming_find_partition(n, p)))
		return naming_nomem(n, err);
	for (uint32_t i = 0; i < sym_mappings_n(p) && !*yes; i++) {
		if (!sym_exists(p, SYM_MAPPING, i) || sym_mapping(p, i)->filename != filename)
			continue;
		if ((rc = naming_binary_of(n, of, i, &bin, err)))
			return rc;
		*yes = n->bins[bin].index != NULL;
	}
	return ERR_OK;
}

size_t naming_binaries_n(const struct naming *n)
{
	return n->bins_n;
}

const struct naming_binary *naming_binary(const struct naming *n, size_t i)
{
	return &n->bins[i].is;
}

const struct str *naming_warnings(struct naming *naming, size_t *n)
{
	*n = naming->warnings_n;
	return naming->warnings;
}
