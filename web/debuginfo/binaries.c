#include "web/debuginfo/binaries.h"

#include <stdlib.h>

#define ROOM_FIRST 64u

struct binary_address {
	uint64_t address; /* offset in the file */
	uint32_t binary;
};

void binaries_init(struct binaries *b, struct debuginfo_store *store, struct arena *a)
{
	*b = (struct binaries){ .a = a, .store = store, .seed = hash_seed() };
	map_init(&b->by_key);
}

void binaries_release(struct binaries *b)
{
	for (size_t i = 0; i < b->n; i++) {
		symindex_close(b->v[i].index);
		debuginfo_index_close(b->v[i].file);
	}
	map_release(&b->by_key);
	free(b->addresses);
	free(b->of_mapping);
}

/* ---- keys: an id, or without one the path ---- */

static struct str web_binary_key_of(const struct web_binary *w)
{
	return w->id.len ? debuginfo_id_text(&w->id) : w->path;
}

static bool binaries_same_key(const void *ctx, const void *key, uint32_t i)
{
	const struct web_binary *x = key, *y = &((const struct binaries *)ctx)->v[i];

	return x->id.len == y->id.len && x->id.kind == y->id.kind &&
		str_eq(web_binary_key_of(x), web_binary_key_of(y));
}

static uint64_t binaries_hash_of(const struct binaries *b, const struct web_binary *w)
{
	struct str key = web_binary_key_of(w);

	return hash_bytes(key.ptr, key.len, b->seed ^ w->id.kind);
}

static uint32_t binaries_find(const struct binaries *b, const struct web_binary *w)
{
	return map_find(&b->by_key, binaries_hash_of(b, w), binaries_same_key, b, w);
}

static enum err_code binaries_add(
	struct binaries *b, const struct web_binary *w, uint32_t *at, struct err *err)
{
	struct web_binary *grown;

	if (b->n == b->room) {
		size_t room = b->room ? 2 * b->room : ROOM_FIRST;

		if (!(grown = arena_array(b->a, struct web_binary, room)))
			return arena_fail(b->a, "binaries", err);
		if (b->n)
			memcpy(grown, b->v, b->n * sizeof(*grown));
		b->v = grown;
		b->room = room;
	}
	*at = (uint32_t)b->n;
	if (!map_add(&b->by_key, binaries_hash_of(b, w), *at))
		return err_nomem(err, "binaries");
	b->v[b->n++] = *w;
	return ERR_OK;
}

enum err_code binaries_add_infos(
	struct binaries *b, const struct debuginfo_info *d, size_t n, struct err *err)
{
	uint32_t at;
	enum err_code rc;

	for (size_t i = 0; i < n; i++) {
		struct web_binary x = { .id = d[i].id, .info = &d[i], .path = d[i].path };

		if ((rc = binaries_add(b, &x, &at, err)))
			return rc;
	}
	return ERR_OK;
}

/* ---- of profiles ---- */

/* A kind of id under which the store knows this text goes before what it looks like. */
static void binaries_set_id(const struct binaries *b, struct str text, struct web_binary *w)
{
	for (int kind = 0; kind < DEBUGINFO_ID_KINDS; kind++) {
		uint32_t at;

		if (debuginfo_id_init(&w->id, (enum debuginfo_id_kind)kind, text, NULL))
			continue;
		at = binaries_find(b, w);
		if (at != MAP_NONE && b->v[at].info)
			return;
	}
	w->id = (struct debuginfo_id){ 0 };
	(void)!debuginfo_id_guess(text, &w->id);
}

static void web_binary_add_job(struct web_binary *w, struct str job)
{
	for (uint32_t i = 0; i < w->jobs_n; i++)
		if (str_eq(w->jobs[i], job))
			return;
	if (w->jobs_n < BINARY_JOBS_MAX)
		w->jobs[w->jobs_n++] = job;
}

/* The index of a listed binary; NULL: there is none that can be read. */
static const struct symindex *binaries_index(const struct binaries *b, struct web_binary *w)
{
	if (!w->file && !debuginfo_open(b->store, &w->id, &w->file, NULL) &&
		symindex_open(debuginfo_index_bytes(w->file), &w->index, NULL))
		w->index = NULL;
	return w->index;
}

/* The one binary of this name, if the mapping is of its size; MAP_NONE: there is none. */
static uint32_t binaries_find_by_name(
	const struct binaries *b, struct str path, const struct sym_mapping *m)
{
	struct web_binary x = { .path = path };
	const struct symindex *index;
	uint32_t at;

	if (!b->store || debuginfo_find_name(b->store, path, &x.id, 1) != 1 ||
		(at = binaries_find(b, &x)) == MAP_NONE || !b->v[at].info)
		return MAP_NONE;
	index = binaries_index(b, &b->v[at]);
	return index && symindex_is_mapped_as(index, m->offset, m->size) ? at : MAP_NONE;
}

/* MAP_NONE: there are too many. */
static enum err_code binaries_binary_of(
	struct binaries *b, const struct partition *p, uint32_t mapping, uint32_t *at, struct err *err)
{
	const struct sym_mapping *m = sym_mapping(p, mapping);
	struct web_binary x = { .path = sym_string(p, m->filename) };
	enum err_code rc;

	binaries_set_id(b, sym_string(p, m->build_id), &x);
	*at = x.id.len ? MAP_NONE : binaries_find_by_name(b, x.path, m);
	if (*at == MAP_NONE)
		*at = binaries_find(b, &x);
	if (*at == MAP_NONE && b->n >= BINARIES_MAX) {
		b->cut = true;
		return ERR_OK;
	}
	if (*at == MAP_NONE && (rc = binaries_add(b, &x, at, err)))
		return rc;
	if (x.path.len && (!b->v[*at].path.len || !b->v[*at].jobs_n))
		b->v[*at].path = x.path;
	web_binary_add_job(&b->v[*at], partition_name(p));
	return ERR_OK;
}

/* The same, looked for once in a partition. */
static enum err_code binaries_known_binary_of(
	struct binaries *b, const struct partition *p, uint32_t mapping, uint32_t *at, struct err *err)
{
	uint32_t *grown;
	enum err_code rc;

	if (mapping >= b->of_mapping_n) {
		size_t n = 2 * (size_t)mapping + ROOM_FIRST;

		if (!(grown = realloc(b->of_mapping, n * sizeof(*grown))))
			return err_nomem(err, "mappings");
		memset(grown + b->of_mapping_n, 0, (n - b->of_mapping_n) * sizeof(*grown));
		b->of_mapping = grown;
		b->of_mapping_n = n;
	}
	if (b->of_mapping[mapping]) {
		*at = b->of_mapping[mapping] - 1;
		return ERR_OK;
	}
	if ((rc = binaries_binary_of(b, p, mapping, at, err)))
		return rc;
	b->of_mapping[mapping] = *at + 1; /* MAP_NONE becomes 0, and is looked for again */
	return ERR_OK;
}

static enum err_code binaries_add_address(
	struct binaries *b, uint32_t binary, uint64_t address, struct err *err)
{
	size_t n = b->addresses_n;
	struct binary_address *grown;

	if (n == BINARIES_ADDRESSES_MAX) {
		b->uncounted = true;
		return ERR_OK;
	}
	if (n >= 1024 ? !(n & (n - 1)) : !n) {
		grown = realloc(b->addresses, (n ? 2 * n : 1024) * sizeof(*grown));
		if (!grown)
			return err_nomem(err, "addresses");
		b->addresses = grown;
	}
	b->addresses[b->addresses_n++] = (struct binary_address){ address, binary };
	return ERR_OK;
}

static enum err_code binaries_take(
	void *ctx, const struct partition *p, const struct sym_location *l, struct err *err)
{
	struct binaries *b = ctx;
	uint32_t at;
	enum err_code rc;

	if (p != b->walked && b->of_mapping_n)
		memset(b->of_mapping, 0, b->of_mapping_n * sizeof(*b->of_mapping));
	b->walked = p;
	if ((rc = binaries_known_binary_of(b, p, l->mapping, &at, err)) || at == MAP_NONE)
		return rc;
	return binaries_add_address(b, at, sym_mapping(p, l->mapping)->offset + l->address, err);
}

enum err_code binaries_add_profiles(struct binaries *b, struct db_querier *q, struct err *err)
{
	return db_visit_bare(q, binaries_take, b, err);
}

/* ---- order ---- */

static int binaries_by_address(const void *bytes, const void *other)
{
	const struct binary_address *x = bytes, *y = other;

	if (x->binary != y->binary)
		return x->binary < y->binary ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static int binaries_by_weight(const void *bytes, const void *other)
{
	const struct web_binary *x = bytes, *y = other;
	int order;

	if (x->addresses != y->addresses)
		return x->addresses > y->addresses ? -1 : 1;
	order = str_cmp(x->path, y->path);
	return order ? order : str_cmp(web_binary_key_of(x), web_binary_key_of(y));
}

static int binaries_by_text(const void *bytes, const void *other)
{
	return str_cmp(*(const struct str *)bytes, *(const struct str *)other);
}

void binaries_order(struct binaries *b)
{
	if (b->addresses_n)
		qsort(b->addresses, b->addresses_n, sizeof(*b->addresses), binaries_by_address);
	for (size_t i = 0; i < b->addresses_n; i++)
		if (!i || binaries_by_address(&b->addresses[i - 1], &b->addresses[i]))
			b->v[b->addresses[i].binary].addresses++;
	for (size_t i = 0; i < b->n; i++)
		if (b->v[i].jobs_n)
			qsort(b->v[i].jobs, b->v[i].jobs_n, sizeof(struct str), binaries_by_text);
	if (b->n)
		qsort(b->v, b->n, sizeof(*b->v), binaries_by_weight);
}
