#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "tests/fleet/internal.h"

/*
 * A scrape as Go serves it: only what its samples use, in an order that is not the ids'. Programs
 * are loaded where they were linked, libraries anywhere: each process has them at places of its
 * own.
 */
#define TEXT_START UINT64_C(0x400000)
#define FUNCTION_BYTES 1024u

struct making {
	const struct fleet *f;
	struct fleet_scratch *s;
	struct pprof_builder *b;
	uint32_t service;
	char prefix[64]; /* of what is the service's own */
	size_t prefix_n;
	uint32_t mapping;
	uint32_t stack[80];
};

const char *fleet_service_name(uint32_t service, char name[32])
{
	snprintf(name, 32, "svc%03" PRIu32, service);
	return name;
}

const char *fleet_profile_name(const struct fleet *f)
{
	static const char *const names[] = { "process_cpu", "memory", "goroutine", "mutex", "block" };

	return names[f->p.kind];
}

static const struct {
	const char *type, *unit;
} types[][FLEET_COLUMNS_MAX] = {
	[FLEET_CPU] = { { "samples", "count" }, { "cpu", "nanoseconds" } },
	[FLEET_HEAP] = { { "alloc_objects", "count" }, { "alloc_space", "bytes" },
		{ "inuse_objects", "count" }, { "inuse_space", "bytes" } },
	[FLEET_GOROUTINE] = { { "goroutine", "count" } },
	[FLEET_MUTEX] = { { "contentions", "count" }, { "delay", "nanoseconds" } },
	[FLEET_BLOCK] = { { "contentions", "count" }, { "delay", "nanoseconds" } },
};

const char *fleet_type_name(const struct fleet *f, uint32_t column)
{
	return types[f->p.kind][column].type;
}

static void add_types(struct making *m)
{
	struct pprof *p = pprof_builder_profile(m->b);
	uint32_t kind = m->f->p.kind;

	for (uint32_t i = 0; i < FLEET_COLUMNS_MAX && types[kind][i].type; i++)
		pprof_builder_type(m->b, str_of(types[kind][i].type), str_of(types[kind][i].unit));
	p->period = kind == FLEET_CPU ? 10000000 : kind == FLEET_HEAP ? 524288 : 1;
	p->period_type.type = pprof_builder_string(m->b,
		str_of(kind == FLEET_CPU   ? "cpu" :
				kind == FLEET_HEAP ? "space" :
									 types[kind][0].type));
	p->period_type.unit = pprof_builder_string(m->b,
		str_of(kind == FLEET_CPU   ? "nanoseconds" :
				kind == FLEET_HEAP ? "bytes" :
									 "count"));
	if (kind == FLEET_HEAP)
		p->default_sample_type = pprof_builder_string(m->b, STR("alloc_space"));
}

static void add_mappings(struct making *m, uint32_t pod)
{
	static const struct {
		const char *file;
		uint64_t size, offset;
	} libraries[] = { { "/usr/lib/x86_64-linux-gnu/libc.so.6", 0x156000, 0x26000 },
		{ "[vdso]", 0x2000, 0 },
		{ "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", 0x26000, 0x1000 } };
	uint64_t at = UINT64_C(0x7f0000000000) +
		(mix2(pod_seed(m->f, m->service, pod), 7) & 0xffffff) * 4096;
	char text[64], service[32];

	fleet_service_name(m->service, service);
	snprintf(text, sizeof(text), "/app/%s", service);
	m->mapping = pprof_builder_mapping(m->b,
		&(struct pprof_mapping){ .start = TEXT_START,
			.limit = TEXT_START + (uint64_t)m->f->p.functions * FUNCTION_BYTES,
			.filename = pprof_builder_string(m->b, str_of(text)),
			.build_id = pprof_builder_string(m->b, STR("897b0c6cf651be32a192187668a863b54fbae614")),
				.has_functions = true });
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		pprof_builder_mapping(m->b,
			&(struct pprof_mapping){ .start = at,
				.limit = at + libraries[i].size,
				.offset = libraries[i].offset,
				.filename = pprof_builder_string(m->b, str_of(libraries[i].file)) });
		at += libraries[i].size + 0x1000;
	}
}

/* A name in parts: what stands in front of a service's own, the package and so on. */
static uint32_t string_of(struct making *m, const char *front, bool own, struct str rest)
{
	char text[256];
	size_t front_n = strlen(front), n = 0;

	if (own) {
		memcpy(text, front, front_n);
		memcpy(text + front_n, m->prefix, m->prefix_n);
		n = front_n + m->prefix_n;
	}
	if (rest.len > sizeof(text) - n)
		rest.len = sizeof(text) - n;
	memcpy(text + n, rest.ptr, rest.len);
	return pprof_builder_string(m->b, (struct str){ text, n + rest.len });
}

static uint32_t function_of(struct making *m, uint32_t function)
{
	uint32_t *at = &m->s->function_at[function], name;
	const struct function *n = &m->f->names[function];

	if (!*at) {
		name = string_of(m, "", n->own, n->name);
		*at = 1 +
			pprof_builder_function(m->b,
				&(struct pprof_function){ .name = name,
					.system_name = name,
					.filename = string_of(m, "/build/", n->own, n->file),
					.start_line = n->start_line });
	}
	return *at - 1;
}

/* A location is a site of a function; now and then one or two calls are inlined there. */
static uint32_t location_of(struct making *m, uint32_t location)
{
	uint32_t *at = &m->s->location_at[location], function = location / SITES, n = 0, inner;
	uint64_t h = mix2(m->f->p.seed ^ 0x11, location);
	struct pprof_line lines[3];

	if (*at)
		return *at - 1;
	if (uniform(h) < m->f->p.inlined)
		for (uint32_t k = 0; k < 1 + (h & 1); k++) {
			inner = (uint32_t)(pow(uniform(mix2(h, k)), m->f->p.shared) * m->f->p.functions);
			lines[n++] = (struct pprof_line){ function_of(m, inner),
				m->f->names[inner].start_line + 1 + (int64_t)(h >> 8 & 15), 0 };
		}
	lines[n++] = (struct pprof_line){ function_of(m, function),
		m->f->names[function].start_line + 1 + location % SITES * 3, 0 };
	*at = 1 +
		pprof_builder_location(m->b,
			(struct pprof_location){ .address = TEXT_START + (uint64_t)function * FUNCTION_BYTES +
					location % SITES * (FUNCTION_BYTES / SITES) + 3,
				.mapping = m->mapping },
			lines, n);
	return *at - 1;
}

static uint32_t labels_of_set(struct making *m, uint32_t set, struct pprof_label out[2])
{
	static const char *const handlers[] = { "/search", "/cart", "/checkout", "/account",
		"/recommend", "/image", "/export", "/watch" };
	static const char *const regions[] = { "eu", "us", "ap" };
	char handler[32];

	memset(out, 0, 2 * sizeof(*out));
	if (!set)
		return 0;
	if (m->f->p.kind == FLEET_HEAP) {
		out[0].key = pprof_builder_string(m->b, STR("bytes"));
		out[0].num = fleet_set_bytes(set);
		return 1;
	}
	snprintf(handler, sizeof(handler), "%s%.0" PRIu32, handlers[set / 3 % 8], set / 24);
	out[0].key = pprof_builder_string(m->b, STR("handler"));
	out[0].str = pprof_builder_string(m->b, str_of(handler));
	out[1].key = pprof_builder_string(m->b, STR("region"));
	out[1].str = pprof_builder_string(m->b, str_of(regions[set % 3]));
	return 2;
}

static void add_sample(struct making *m, uint32_t item, const int64_t *values)
{
	uint32_t n = 0;
	struct pprof_label labels[2];

	for (uint32_t at = m->f->stack_leaf[m->f->item_stack[item]]; at; at = m->f->nodes[at].parent)
		m->stack[n++] = location_of(m, m->f->nodes[at].location);
	pprof_builder_sample(
		m->b, m->stack, n, labels, labels_of_set(m, m->f->item_set[item], labels), values);
}

static uint32_t coprime(uint32_t n) /* a step that visits each of n once */
{
	uint32_t step = n / 2 + n / 8 + 1;

	for (;; step++) {
		uint32_t a = n, b = step;

		while (b) {
			uint32_t t = a % b;

			a = b;
			b = t;
		}
		if (a == 1)
			return step;
	}
}

static enum err_code make(const struct fleet *f, struct fleet_scratch *s, uint32_t service,
	uint32_t pod, struct arena *a, uint32_t n, const uint32_t *items, const int64_t *values,
	struct pprof **out, struct err *err)
{
	struct making m = { .f = f, .s = s, .service = service };
	enum value_kind kinds[FLEET_COLUMNS_MAX];
	uint32_t columns = fleet_kinds(f, kinds), step = n ? coprime(n) : 0, at = 0;
	enum err_code rc;

	if ((rc = pprof_builder_open(a, &m.b, err)))
		return rc;
	snprintf(m.prefix, sizeof(m.prefix), "github.com/acme/svc%03" PRIu32 "/", service);
	m.prefix_n = strlen(m.prefix);
	add_types(&m);
	add_mappings(&m, pod);
	for (uint32_t i = 0; i < n; i++) {
		int64_t v[FLEET_COLUMNS_MAX] = { 1, 1, 1, 1 };

		/* In steps: Go's order has nothing to do with a database's ids. */
		at = items ? (uint32_t)((uint64_t)i * step % n) : i;
		for (uint32_t c = 0; c < columns && values; c++)
			v[c] = values[(size_t)c * n + at];
		add_sample(&m, items ? items[at] : i, v);
	}
	memset(s->location_at, 0, (size_t)f->p.functions * SITES * sizeof(*s->location_at));
	memset(s->function_at, 0, f->p.functions * sizeof(*s->function_at));
	return pprof_builder_finish(m.b, out, err);
}

enum err_code fleet_profile(const struct fleet *f, struct fleet_scratch *s, uint32_t service,
	uint32_t pod, uint64_t scrape, int64_t start_ns, struct arena *a, struct pprof **out,
	struct err *err)
{
	const uint32_t *items;
	const int64_t *values;
	uint32_t n = fleet_items(f, s, service, pod, scrape, false, &items, &values);
	enum err_code rc = make(f, s, service, pod, a, n, items, values, out, err);

	if (rc)
		return rc;
	(*out)->time_nanos = start_ns + (int64_t)scrape * f->p.interval_ns;
	if (f->p.kind == FLEET_CPU)
		(*out)->duration_nanos = f->p.interval_ns;
	return ERR_OK;
}

/* ---- the same as ids ---- */

/* Label sets alone, so that their ids ascend as in the items. */
static enum err_code intern_sets(
	const struct fleet *f, struct partition *p, struct arena *a, struct err *err)
{
	struct making m = { .f = f };
	enum value_kind kinds[FLEET_COLUMNS_MAX];
	int64_t one[FLEET_COLUMNS_MAX] = { 1, 1, 1, 1 };
	struct pprof_label labels[2];
	struct interned in;
	struct pprof *profile;
	enum err_code rc;

	fleet_kinds(f, kinds);
	if (f->p.labelled <= 0)
		return ERR_OK;
	if ((rc = pprof_builder_open(a, &m.b, err)))
		return rc;
	add_types(&m);
	for (uint32_t set = 1; set <= f->p.label_sets; set++)
		pprof_builder_sample(m.b, NULL, 0, labels, labels_of_set(&m, set, labels), one);
	if ((rc = pprof_builder_finish(m.b, &profile, err)))
		return rc;
	return sym_intern_profile(p, profile, kinds, a, &in, err);
}

enum err_code fleet_symbols(const struct fleet *f, uint32_t service, uint32_t pods,
	struct partition *p, struct arena *a, struct fleet_symbols *out, struct err *err)
{
	enum value_kind kinds[FLEET_COLUMNS_MAX];
	struct fleet_scratch *s = NULL;
	struct interned in;
	struct pprof *profile;
	struct arena work;
	enum err_code rc;

	if (sym_nodes_n(p) > 1)
		return err_set(err, ERR_INVALID, "the partition of a fleet's symbols is not empty");
	arena_init(&work, 0);
	fleet_kinds(f, kinds);
	out->n = f->items_n;
	out->pods_n = pods;
	out->stacks = arena_array(a, uint32_t, out->n);
	out->label_sets = arena_array(a, uint32_t, out->n);
	out->headers = arena_array(a, uint32_t, pods);
	if (!out->stacks || !out->label_sets || !out->headers)
		rc = arena_fail(a, "symbols of a fleet", err);
	else
		rc = fleet_scratch_open(f, &s, err);
	/* A profile of every item, in order; then one without samples for each process. */
	if (!rc && !(rc = intern_sets(f, p, &work, err)) &&
		!(rc = make(f, s, service, 0, &work, out->n, NULL, NULL, &profile, err)) &&
		!(rc = sym_intern_profile(p, profile, kinds, &work, &in, err)))
		for (uint32_t i = 0; i < in.n && !rc; i++) {
			out->stacks[i] = (uint32_t)(in.keys[i] >> 32);
			out->label_sets[i] = (uint32_t)in.keys[i];
			if (in.samples[i] != i)
				rc = err_set(err, ERR_INVALID, "item %" PRIu32 " of a fleet is out of order", i);
		}
	for (uint32_t pod = 0; pod < pods && !rc; pod++) {
		arena_reset(&work);
		if (!(rc = make(f, s, service, pod, &work, 0, NULL, NULL, &profile, err)) &&
			!(rc = sym_intern_profile(p, profile, kinds, &work, &in, err)))
			out->headers[pod] = in.header;
	}
	fleet_scratch_close(s);
	arena_release(&work);
	return rc;
}

void fleet_row(const struct fleet *f, const struct fleet_symbols *symbols, struct fleet_scratch *s,
	uint32_t service, uint32_t pod, uint64_t scrape, int64_t start_ns, struct row *row)
{
	enum value_kind kinds[FLEET_COLUMNS_MAX];
	const uint32_t *items;

	*row = (struct row){ .header = symbols->headers[pod],
		.interval_ns = f->p.interval_ns,
		.time_nanos = start_ns + (int64_t)scrape * f->p.interval_ns,
		.duration_nanos = f->p.kind == FLEET_CPU ? f->p.interval_ns : 0,
		.period = f->p.kind == FLEET_CPU ? 10000000 :
			f->p.kind == FLEET_HEAP      ? 524288 :
										   1,
		.columns_n = fleet_kinds(f, kinds),
		.stacks = s->stacks };
	row->n = fleet_items(f, s, service, pod, scrape, true, &items, &row->values);
	for (uint32_t i = 0; i < row->n; i++)
		s->stacks[i] = symbols->stacks[items[i]];
	if (f->p.labelled > 0) {
		for (uint32_t i = 0; i < row->n; i++)
			s->sets[i] = symbols->label_sets[items[i]];
		row->label_sets = s->sets;
	}
}
