/*
 * Samples become pprof in two steps. While sampling, equal stacks are counted by their addresses;
 * afterwards each distinct address is named once. So memory grows with distinct stacks, not with
 * time.
 */
#include "web/selfprofile.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/gzip/gzip.h"
#include "base/map.h"
#include "base/self/elf_symbols.h"
#include "base/self/sampler.h"
#include "base/thread.h"
#include "proto/pprof.h"

#define STACKS_MAX (1u << 20)
#define ARENA_BYTES_MAX (256u << 20)
#define GZIP_LEVEL 6

struct selfprofile_stack {
	const uint64_t *pcs;
	uint32_t n, thread; /* thread: index into names */
	int64_t count;
};

struct capture {
	struct arena arena;
	struct unwind_tables tables;
	struct selfprofile_stack *stacks; /* distinct (thread name, addresses) */
	uint32_t stacks_n, stacks_cap;
	struct map by_stack;
	struct {
		int tid;
		char name[16];
	} threads[SAMPLER_THREADS_MAX];
	uint32_t threads_n;
	uint64_t dropped; /* over STACKS_MAX or out of memory */
};

void selfprofile_init(void)
{
	static const struct thread_hooks hooks = { sampler_thread_enter, sampler_thread_leave };

	thread_set_hooks(&hooks);
}

/*
 * The workers of a pool share a name and so a label: nothing but the number tells "web-3" from
 * "web-4".
 */
static uint32_t capture_thread_of(struct capture *c, int tid)
{
	uint32_t i;

	for (i = 0; i < c->threads_n; i++)
		if (c->threads[i].tid == tid)
			return i;
	if (i == SAMPLER_THREADS_MAX)
		return i - 1;
	c->threads[i].tid = tid;
	sampler_thread_name(tid, c->threads[i].name);
	c->threads_n++;
	return i;
}

static bool selfprofile_same_stack(const void *ctx, const void *key, uint32_t id)
{
	const struct selfprofile_stack *want = key, *have = &((const struct capture *)ctx)->stacks[id];

	return want->thread == have->thread && want->n == have->n &&
		!memcmp(want->pcs, have->pcs, want->n * sizeof(*want->pcs));
}

static bool capture_add_stack(struct capture *c, const struct selfprofile_stack *key, uint64_t hash)
{
	uint64_t *copy = arena_alloc_raw(&c->arena, key->n, sizeof(*copy));

	if (!copy || c->stacks_n == STACKS_MAX ||
		!array_room(&c->stacks, c->stacks_n, 1, &c->stacks_cap))
		return false;
	if (!map_add(&c->by_stack, hash, c->stacks_n))
		return false;
	memcpy(copy, key->pcs, key->n * sizeof(*copy));
	c->stacks[c->stacks_n] = *key;
	c->stacks[c->stacks_n].pcs = copy;
	c->stacks[c->stacks_n++].count = 1;
	return true;
}

static void selfprofile_on_sample(void *ctx, int tid, const uint64_t *pcs, size_t n)
{
	struct capture *c = ctx;
	struct selfprofile_stack key = {
		.pcs = pcs, .n = (uint32_t)n, .thread = capture_thread_of(c, tid)
	};
	uint64_t hash = hash_bytes(pcs, n * sizeof(*pcs), key.thread);
	uint32_t id = map_find(&c->by_stack, hash, selfprofile_same_stack, c, &key);

	if (id != MAP_NONE)
		c->stacks[id].count++;
	else if (!capture_add_stack(c, &key, hash))
		c->dropped++;
}

/* ---- naming ---- */

struct selfprofile_naming {
	struct pprof_builder *b;
	const struct capture *c;
	struct elf_symbols *symbols[UNWIND_OBJECTS_MAX]; /* NULL: the object has none */
	uint32_t mapping[UNWIND_OBJECTS_MAX];
	struct map by_address, by_function;
	uint64_t *addresses; /* of locations made, by place in by_address */
	uint32_t *locations;
	const char **function_names; /* by place in by_function: the symbol's own bytes */
	uint32_t *functions;
	uint32_t addresses_n, functions_n, cap;
};

static bool selfprofile_same_address(const void *ctx, const void *key, uint32_t id)
{
	return ((const struct selfprofile_naming *)ctx)->addresses[id] == *(const uint64_t *)key;
}

static bool selfprofile_same_name(const void *ctx, const void *key, uint32_t id)
{
	return ((const struct selfprofile_naming *)ctx)->function_names[id] == key;
}

static uint32_t selfprofile_naming_function_of(struct selfprofile_naming *n, struct str symbol)
{
	uint64_t hash = map_hash_u64((uint64_t)(uintptr_t)symbol.ptr);
	uint32_t id = map_find(&n->by_function, hash, selfprofile_same_name, n, symbol.ptr);
	struct pprof_function f = { 0 };
	struct buf plain = { 0 };

	if (id != MAP_NONE)
		return n->functions[id];
	elf_demangle(&plain, symbol);
	f.name = pprof_builder_string(n->b, buf_str(&plain));
	f.system_name = pprof_builder_string(n->b, symbol);
	buf_release(&plain);
	id = n->functions_n;
	n->functions[id] = pprof_builder_function(n->b, &f);
	n->function_names[id] = symbol.ptr;
	if (map_add(&n->by_function, hash, id))
		n->functions_n++;
	return n->functions[id];
}

static uint32_t selfprofile_naming_location_of(struct selfprofile_naming *n, uint64_t pc)
{
	const struct unwind_object *o = unwind_object_of(&n->c->tables, pc);
	uint32_t id = map_find(&n->by_address, map_hash_u64(pc), selfprofile_same_address, n, &pc);
	struct pprof_location location = { .address = pc, .mapping = PPROF_NONE };
	struct pprof_line line = { 0 };
	struct str symbol = STR("");
	size_t object;

	if (id != MAP_NONE)
		return n->locations[id];
	if (o) {
		object = (size_t)(o - n->c->tables.objects);
		location.mapping = n->mapping[object];
		if (n->symbols[object])
			symbol = elf_symbols_find(n->symbols[object], pc - o->bias);
	}
	if (symbol.len)
		line.function = selfprofile_naming_function_of(n, symbol);
	id = n->addresses_n;
	n->addresses[id] = pc;
	n->locations[id] = pprof_builder_location(n->b, location, &line, symbol.len ? 1 : 0);
	if (map_add(&n->by_address, map_hash_u64(pc), id))
		n->addresses_n++;
	return n->locations[id];
}

static void selfprofile_naming_open_objects(struct selfprofile_naming *n)
{
	const struct unwind_tables *t = &n->c->tables;

	for (size_t i = 0; i < t->n; i++) {
		const struct unwind_object *o = &t->objects[i];
		const char *path = o->path[0] ? o->path : elf_own_path();
		struct pprof_mapping m = { .start = o->start, .limit = o->limit, .offset = o->file_offset };

		if (elf_symbols_open(path, &n->symbols[i], NULL))
			n->symbols[i] = NULL;
		m.filename = pprof_builder_string(n->b, o->path[0] ? str_of(o->path) : STR("epimetheus"));
		m.has_functions = true; /* an address without a name here has none elsewhere */
		if (n->symbols[i])
			m.build_id = pprof_builder_string(n->b, elf_symbols_build_id(n->symbols[i]));
		n->mapping[i] = pprof_builder_mapping(n->b, &m);
	}
}

static void selfprofile_naming_add_samples(struct selfprofile_naming *n, int64_t period_ns)
{
	uint32_t ids[UNWIND_DEPTH_MAX];
	struct pprof_label label = { .key = pprof_builder_string(n->b, STR("thread")) };
	int64_t values[2];

	for (uint32_t i = 0; i < n->c->stacks_n; i++) {
		const struct selfprofile_stack *s = &n->c->stacks[i];

		for (uint32_t k = 0; k < s->n; k++)
			ids[k] = selfprofile_naming_location_of(n, s->pcs[k]);
		label.str = pprof_builder_string(n->b, str_of(n->c->threads[s->thread].name));
		values[0] = s->count;
		values[1] = s->count * period_ns;
		pprof_builder_sample(n->b, ids, s->n, &label, label.str ? 1 : 0, values);
	}
}

/* Room for one entry per distinct address: there are at most as many as sampled addresses. */
static bool selfprofile_naming_open(struct selfprofile_naming *n)
{
	size_t cap = 1;

	for (uint32_t i = 0; i < n->c->stacks_n; i++)
		cap += n->c->stacks[i].n;
	n->addresses = calloc(cap, sizeof(*n->addresses));
	n->locations = calloc(cap, sizeof(*n->locations));
	n->function_names = calloc(cap, sizeof(*n->function_names));
	n->functions = calloc(cap, sizeof(*n->functions));
	return n->addresses && n->locations && n->function_names && n->functions;
}

static void selfprofile_naming_close(struct selfprofile_naming *n)
{
	for (size_t i = 0; i < n->c->tables.n; i++)
		elf_symbols_close(n->symbols[i]);
	map_release(&n->by_address);
	map_release(&n->by_function);
	free(n->addresses);
	free(n->locations);
	free(n->function_names);
	free(n->functions);
}

static enum err_code capture_write_profile(struct capture *c, int64_t began_ns, int64_t took_ns,
	int64_t period_ns, struct buf *out, struct err *err)
{
	struct selfprofile_naming n = { .c = c };
	struct pprof *p;
	struct buf raw = { 0 };
	enum err_code rc;

	if ((rc = pprof_builder_open(&c->arena, &n.b, err)))
		return rc;
	if (!selfprofile_naming_open(&n)) {
		rc = err_nomem(err, "cpu profile");
		goto done;
	}
	pprof_builder_type(n.b, STR("samples"), STR("count"));
	pprof_builder_type(n.b, STR("cpu"), STR("nanoseconds"));
	selfprofile_naming_open_objects(&n);
	selfprofile_naming_add_samples(&n, period_ns);
	p = pprof_builder_profile(n.b);
	p->time_nanos = began_ns;
	p->duration_nanos = took_ns;
	p->period = period_ns;
	p->period_type.type = pprof_builder_string(n.b, STR("cpu"));
	p->period_type.unit = pprof_builder_string(n.b, STR("nanoseconds"));
	if ((rc = pprof_builder_finish(n.b, &p, err)) || (rc = pprof_encode(p, &raw, err)))
		goto done;
	rc = gzip_compress(buf_str(&raw), GZIP_LEVEL, out, err);
done:
	selfprofile_naming_close(&n);
	buf_release(&raw);
	return rc;
}

enum err_code selfprofile_capture(
	int64_t duration_ns, unsigned hz, const atomic_bool *cancel, struct buf *out, struct err *err)
{
	int64_t period_ns = NS_PER_S / (hz ? hz : 1), began_ns = clock_now_ns();
	int64_t began_mono = clock_monotonic_ns();
	struct sampler_stats stats;
	struct capture *c = calloc(1, sizeof(*c));
	enum err_code rc;

	if (!c)
		return err_nomem(err, "cpu profile");
	arena_init(&c->arena, ARENA_BYTES_MAX);
	unwind_tables_load(&c->tables);
	rc = sampler_run(
		duration_ns, period_ns, cancel, &c->tables, selfprofile_on_sample, c, &stats, err);
	if (!rc)
		rc = capture_write_profile(
			c, began_ns, clock_monotonic_ns() - began_mono, period_ns, out, err);
	arena_release(&c->arena);
	map_release(&c->by_stack);
	free(c->stacks);
	free(c);
	return rc;
}
