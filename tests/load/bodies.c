#include <stdlib.h>

#include "base/clock.h"
#include "base/gzip/gzip.h"
#include "tests/fleet/fleet.h"
#include "tests/load/load.h"

/*
 * Bodies are made before the first request, so that serving one costs what sending it costs. The
 * scrapes of a pod follow each other, counters grow from one to the next; after the last the first
 * comes again, which a scraper takes for a restart of the process.
 */
struct load_bodies {
	size_t services, variants, scrapes, n;
	struct buf *v; /* [kind][service][variant][scrape] */
};

static const char *const sets[LOAD_KINDS] = { "fleet-cpu", "heap" };

static enum err_code make_one(struct fleet *f, struct fleet_scratch *s, uint32_t service,
	uint32_t pod, uint64_t scrape, struct arena *a, struct buf *out, struct err *err)
{
	struct buf raw = { 0 };
	struct pprof *p;
	enum err_code rc;

	arena_reset(a);
	if (!(rc = fleet_profile(f, s, service, pod, scrape, clock_now_ns(), a, &p, err)) &&
		!(rc = pprof_encode(p, &raw, err)))
		rc = gzip_compress(buf_str(&raw), 1, out, err);
	buf_release(&raw);
	return rc;
}

static enum err_code make_kind(struct load_bodies *b, enum load_kind kind, struct err *err)
{
	struct buf *at = b->v + (size_t)kind * b->services * b->variants * b->scrapes;
	struct fleet_scratch *s = NULL;
	struct fleet *f = NULL;
	struct arena a;
	enum err_code rc;

	arena_init(&a, 0);
	if (!(rc = fleet_open(fleet_set(sets[kind]), &f, err)))
		rc = fleet_scratch_open(f, &s, err);
	for (uint32_t i = 0; i < b->services && !rc; i++)
		for (uint32_t pod = 0; pod < b->variants && !rc; pod++)
			for (uint64_t k = 0; k < b->scrapes && !rc; k++)
				rc = make_one(f, s, i, pod, k, &a, at++, err);
	fleet_scratch_close(s);
	fleet_close(f);
	arena_release(&a);
	return rc;
}

enum err_code load_bodies_make(
	const struct load_options *o, struct load_bodies **out, struct err *err)
{
	struct load_bodies *b = calloc(1, sizeof(*b));
	enum err_code rc = ERR_OK;

	if (!b)
		return err_set(err, ERR_NOMEM, "out of memory for bodies");
	b->services = o->services;
	b->variants = o->variants;
	b->scrapes = o->scrapes;
	b->n = LOAD_KINDS * b->services * b->variants * b->scrapes;
	b->v = calloc(b->n, sizeof(*b->v));
	if (!b->v)
		rc = err_set(err, ERR_NOMEM, "out of memory for bodies");
	for (int kind = 0; kind < LOAD_KINDS && !rc; kind++)
		rc = make_kind(b, kind, err);
	if (rc) {
		load_bodies_free(b);
		return rc;
	}
	*out = b;
	return ERR_OK;
}

void load_bodies_free(struct load_bodies *b)
{
	if (!b)
		return;
	for (size_t i = 0; b->v && i < b->n; i++)
		buf_release(&b->v[i]);
	free(b->v);
	free(b);
}

size_t load_bodies_n(const struct load_bodies *b)
{
	return b->n;
}

struct str load_body(const struct load_bodies *b, size_t target, enum load_kind kind, uint64_t nth)
{
	size_t service = target % b->services, pod = target / b->services % b->variants;

	return buf_str(&b->v[(((size_t)kind * b->services + service) * b->variants + pod) * b->scrapes +
		nth % b->scrapes]);
}

const char *load_service(const struct load_bodies *b, size_t target, char name[32])
{
	return fleet_service_name((uint32_t)(target % b->services), name);
}
