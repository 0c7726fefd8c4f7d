#include "scrape/symbol_cache.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/thread.h"

METRIC_GAUGE(
	bytes_held, "epimetheus_scrape_symbol_cache_bytes", "Bytes of names of addresses.", NULL);

#define BUCKETS 1024u
#define NONE_NS NS_PER_HOUR
#define FAILED_NS (30 * NS_PER_S)
#define FAILED_MAX_NS (10 * NS_PER_MIN)
#define NAME_BLOCK_BYTES ((size_t)16 << 10)

struct address {
	uint64_t address;
	uint32_t name; /* plus 1; 0: none */
};

struct symbol_entry {
	struct symbol_cache *cache;
	char *service;
	uint64_t process;
	/* guarded by the cache's lock */
	struct symbol_entry *next; /* in its bucket */
	unsigned held;
	bool retired, replaced;
	int64_t used_ns;
	size_t bytes; /* as counted in the cache */
	struct mutex lock;
	/* guarded by lock */
	int64_t not_before_ns;
	bool has_none;
	unsigned failures;
	struct arena arena; /* of the names */
	struct address *v;
	struct str *names;
	uint32_t n, cap, names_n, names_cap;
	struct map by_address, by_name;
};

struct symbol_cache {
	uint64_t seed;
	struct mutex lock;
	/* guarded by lock */
	struct symbol_entry *buckets[BUCKETS];
	size_t n, bytes;
};

struct symbol_cache *symbol_cache_open(void)
{
	struct symbol_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->seed = hash_seed();
	mutex_init(&c->lock);
	return c;
}

static void symbol_entry_free(struct symbol_entry *e)
{
	arena_release(&e->arena);
	map_release(&e->by_address);
	map_release(&e->by_name);
	mutex_destroy(&e->lock);
	free(e->v);
	free(e->names);
	free(e->service);
	free(e);
}

static struct symbol_entry *symbol_cache_entry_new(
	struct symbol_cache *c, struct str service, uint64_t process)
{
	struct symbol_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	if (!(e->service = strndup(service.ptr, service.len))) {
		free(e);
		return NULL;
	}
	e->cache = c;
	e->process = process;
	e->bytes = sizeof(*e) + service.len + 1;
	mutex_init(&e->lock);
	map_init(&e->by_address);
	map_init(&e->by_name);
	arena_init(&e->arena, SYMBOL_ENTRY_BYTES_MAX);
	e->arena.block_max = NAME_BLOCK_BYTES;
	return e;
}

static struct symbol_entry **symbol_cache_bucket_of(struct symbol_cache *c, struct str service)
{
	return &c->buckets[hash_bytes(service.ptr, service.len, c->seed) % BUCKETS];
}

/* Nobody finds it from now on. *freed: nobody holds it, and the caller frees it. */
static void symbol_cache_retire(
	struct symbol_cache *c, struct symbol_entry *e, struct symbol_entry **freed)
{
	struct symbol_entry **at = symbol_cache_bucket_of(c, str_of(e->service));

	mutex_assert_held(&c->lock);
	assert(!e->retired);
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	e->retired = true;
	c->n--;
	c->bytes -= e->bytes;
	metric_add(&bytes_held, NULL, -(double)e->bytes);
	if (!e->held) {
		e->next = *freed;
		*freed = e;
	}
}

static void symbol_entry_free_all(struct symbol_entry *e)
{
	for (struct symbol_entry *next; e; e = next) {
		next = e->next;
		symbol_entry_free(e);
	}
}

static struct symbol_entry *symbol_cache_oldest(struct symbol_cache *c)
{
	struct symbol_entry *found = NULL;

	for (size_t i = 0; i < BUCKETS; i++)
		for (struct symbol_entry *e = c->buckets[i]; e; e = e->next)
			if (!found || e->used_ns < found->used_ns)
				found = e;
	return found;
}

static void symbol_cache_shrink(struct symbol_cache *c, struct symbol_entry **freed)
{
	while (c->n && (c->bytes > SYMBOL_CACHE_BYTES_MAX || c->n > SYMBOL_ENTRIES_MAX))
		symbol_cache_retire(c, symbol_cache_oldest(c), freed);
}

void symbol_cache_close(struct symbol_cache *c)
{
	struct symbol_entry *freed = NULL;

	if (!c)
		return;
	mutex_lock(&c->lock);
	for (size_t i = 0; i < BUCKETS; i++)
		while (c->buckets[i]) {
			assert(!c->buckets[i]->held);
			symbol_cache_retire(c, c->buckets[i], &freed);
		}
	mutex_unlock(&c->lock);
	symbol_entry_free_all(freed);
	mutex_destroy(&c->lock);
	free(c);
}

struct symbol_entry *symbol_cache_enter(
	struct symbol_cache *c, struct str service, uint64_t process, int64_t now_ns)
{
	struct symbol_entry **bucket = symbol_cache_bucket_of(c, service), *e, *freed = NULL;

	mutex_lock(&c->lock);
	for (e = *bucket; e && !str_is(service, e->service);)
		e = e->next;
	if (e && e->process != process) {
		e->replaced = true;
		symbol_cache_retire(c, e, &freed);
		e = NULL;
	}
	if (!e && (e = symbol_cache_entry_new(c, service, process))) {
		e->used_ns = now_ns;
		e->next = *bucket;
		*bucket = e;
		e->held++; /* before shrink, which may retire it */
		c->n++;
		c->bytes += e->bytes;
		metric_add(&bytes_held, NULL, (double)e->bytes);
		symbol_cache_shrink(c, &freed);
	} else if (e) {
		e->used_ns = now_ns;
		e->held++;
	}
	mutex_unlock(&c->lock);
	symbol_entry_free_all(freed);
	return e;
}

void symbol_cache_leave(struct symbol_entry *e)
{
	struct symbol_cache *c;
	bool last;

	if (!e)
		return;
	c = e->cache;
	mutex_lock(&c->lock);
	assert(e->held > 0);
	last = --e->held == 0 && e->retired;
	mutex_unlock(&c->lock);
	if (last)
		symbol_entry_free(e);
}

/* ---- whom to ask ---- */

bool symbol_entry_may_ask(struct symbol_entry *e, int64_t now_ns)
{
	bool may;

	mutex_lock(&e->lock);
	may = now_ns >= e->not_before_ns;
	mutex_unlock(&e->lock);
	return may;
}

void symbol_entry_has_none(struct symbol_entry *e, int64_t now_ns, bool *news)
{
	mutex_lock(&e->lock);
	*news = !e->has_none;
	e->has_none = true;
	e->not_before_ns = now_ns + NONE_NS;
	mutex_unlock(&e->lock);
}

void symbol_entry_failed(struct symbol_entry *e, int64_t now_ns, bool *news)
{
	int64_t wait = FAILED_NS;

	mutex_lock(&e->lock);
	*news = e->failures == 0;
	for (unsigned i = 0; i < e->failures && wait < FAILED_MAX_NS; i++)
		wait *= 2;
	e->failures++;
	e->not_before_ns = now_ns + (wait < FAILED_MAX_NS ? wait : FAILED_MAX_NS);
	mutex_unlock(&e->lock);
}

void symbol_entry_answered(struct symbol_entry *e)
{
	mutex_lock(&e->lock);
	e->has_none = false;
	e->failures = 0;
	e->not_before_ns = 0;
	mutex_unlock(&e->lock);
}

void symbol_entry_retire(struct symbol_entry *e)
{
	struct symbol_entry *freed = NULL;

	mutex_lock(&e->cache->lock);
	assert(e->held);
	e->replaced = true;
	if (!e->retired)
		symbol_cache_retire(e->cache, e, &freed);
	mutex_unlock(&e->cache->lock);
	assert(!freed);
}

bool symbol_entry_is_replaced(struct symbol_entry *e)
{
	bool is;

	mutex_lock(&e->cache->lock);
	is = e->replaced;
	mutex_unlock(&e->cache->lock);
	return is;
}

/* ---- names ---- */

static bool symbol_cache_address_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct symbol_entry *e = ctx;

	return e->v[id].address == *(const uint64_t *)key;
}

static bool symbol_cache_name_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct symbol_entry *e = ctx;

	return str_eq(e->names[id], *(const struct str *)key);
}

static uint32_t symbol_cache_find(const struct symbol_entry *e, uint64_t address)
{
	return map_find(&e->by_address, map_hash_u64(address ^ e->cache->seed), symbol_cache_address_eq,
		e, &address);
}

void symbol_entry_find(
	struct symbol_entry *e, const uint64_t *addresses, size_t n, struct symbol_known *out)
{
	mutex_lock(&e->lock);
	for (size_t i = 0; i < n; i++) {
		uint32_t id = symbol_cache_find(e, addresses[i]), name = id == MAP_NONE ? 0 : e->v[id].name;

		out[i].known = id != MAP_NONE;
		out[i].name = name ? e->names[name - 1] : STR("");
	}
	mutex_unlock(&e->lock);
}

/* *out: plus 1; 0: empty. */
static bool symbol_entry_add_name(struct symbol_entry *e, struct str name, uint32_t *out)
{
	uint64_t hash = hash_bytes(name.ptr, name.len, e->cache->seed);
	uint32_t id;

	*out = 0;
	if (!name.len)
		return true;
	if ((id = map_find(&e->by_name, hash, symbol_cache_name_eq, e, &name)) == MAP_NONE) {
		id = e->names_n;
		if (!array_room(&e->names, e->names_n, 1, &e->names_cap) ||
			!(e->names[id] = str_dup(&e->arena, name)).ptr || !map_add(&e->by_name, hash, id))
			return false;
		e->names_n++;
	}
	*out = id + 1;
	return true;
}

static bool symbol_entry_add_address(struct symbol_entry *e, uint64_t address, struct str name)
{
	struct address a = { .address = address };

	if (symbol_cache_find(e, address) != MAP_NONE)
		return true;
	if (!symbol_entry_add_name(e, name, &a.name) || !array_room(&e->v, e->n, 1, &e->cap) ||
		!map_add(&e->by_address, map_hash_u64(address ^ e->cache->seed), e->n))
		return false;
	e->v[e->n++] = a;
	return true;
}

static size_t symbol_entry_bytes_of(const struct symbol_entry *e)
{
	return sizeof(*e) + strlen(e->service) + 1 + e->arena.used_bytes + e->cap * sizeof(*e->v) +
		e->names_cap * sizeof(*e->names) + map_bytes(&e->by_address) + map_bytes(&e->by_name);
}

void symbol_entry_add(
	struct symbol_entry *e, const uint64_t *addresses, size_t n, const struct symbol_known *names)
{
	struct symbol_cache *c = e->cache;
	struct symbol_entry *freed = NULL;
	bool full = false;
	size_t bytes;

	if (!e->process)
		return;
	mutex_lock(&e->lock);
	for (size_t i = 0; i < n && !full; i++)
		if (names[i].known)
			full = !symbol_entry_add_address(e, addresses[i], names[i].name) ||
				symbol_entry_bytes_of(e) > SYMBOL_ENTRY_BYTES_MAX;
	bytes = symbol_entry_bytes_of(e);
	mutex_unlock(&e->lock);

	mutex_lock(&c->lock);
	assert(e->held);
	if (!e->retired) {
		c->bytes = c->bytes - e->bytes + bytes;
		metric_add(&bytes_held, NULL, (double)bytes - (double)e->bytes);
		e->bytes = bytes;
		if (full)
			symbol_cache_retire(c, e, &freed);
		symbol_cache_shrink(c, &freed);
	}
	mutex_unlock(&c->lock);
	symbol_entry_free_all(freed);
}

struct symbol_cache_stats symbol_cache_stats(struct symbol_cache *c)
{
	struct symbol_cache_stats s;

	mutex_lock(&c->lock);
	s = (struct symbol_cache_stats){ c->n, c->bytes };
	mutex_unlock(&c->lock);
	return s;
}
