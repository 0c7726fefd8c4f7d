#include <math.h>
#include <stdlib.h>

#include "tests/fleet/internal.h"

/*
 * The population: which stacks there are, how popular each is, and what a deploy replaces.
 *
 * Live at any time are slots_n ranks of popularity; the rest of the stacks are what deploys bring:
 * each replaces the stack of one rank from its day on, and gives it back as long after as it takes
 * to deploy all of them. Stacks are numbered by when a service of ten pods is first seen using
 * them, which is a race of exponentials.
 */
#define PODS_RACING 10

struct entrant {
	double first_seen;
	uint32_t rank;
	bool other;
};

static int by_first_seen(const void *a, const void *b)
{
	double x = ((const struct entrant *)a)->first_seen, y = ((const struct entrant *)b)->first_seen;

	return x < y ? -1 : x > y;
}

static double weight(const struct fleet *f, uint32_t rank)
{
	return pow(rank + 1 + f->p.zipf_q, -f->p.zipf_s);
}

static enum err_code nomem(struct err *err)
{
	return err_set(err, ERR_NOMEM, "population of a fleet: out of memory");
}

/* Samples of a rank per scrape of the whole service. */
static double seen_per_scrape(const struct fleet *f, double share, double w)
{
	return PODS_RACING * (f->p.kind == FLEET_CPU ? f->p.draws * share : f->p.rate_max * w);
}

static void race(struct fleet *f, struct entrant *v, double sum)
{
	uint64_t random = mix2(f->p.seed, 2);
	double day = (double)DAY_NS / (double)f->p.interval_ns;
	uint32_t n = f->slots_n, others = f->stacks_n - n, per_day, rank;

	per_day = f->deploys_n ? (others + f->deploys_n - 1) / f->deploys_n : 1;
	for (uint32_t i = 0; i < f->stacks_n; i++) {
		v[i].rank = rank = i < n ? i : (uint32_t)((uint64_t)(i - n) * n / others);
		v[i].other = i >= n;
		v[i].first_seen = -log(uniform(next_random(&random))) /
			seen_per_scrape(f, weight(f, rank) / sum, weight(f, rank));
	}
	/* A shuffled order says on which day a rank goes. */
	for (uint32_t i = 0; i < others; i++) {
		uint32_t with = i + (uint32_t)(next_random(&random) % (others - i));
		struct entrant swap = v[n + i];

		v[n + i] = v[n + with];
		v[n + with] = swap;
		f->slots[v[n + i].rank].day = (uint16_t)(i / per_day + 1);
		v[n + i].first_seen += day * (i / per_day + 1);
	}
	qsort(v, f->stacks_n, sizeof(*v), by_first_seen);
}

static void make_alias(struct fleet *f, double sum, double *scaled, uint32_t *work)
{
	uint32_t n = f->slots_n, small = 0, large = n, s, l;

	for (uint32_t i = 0; i < n; i++) {
		scaled[i] = weight(f, i) / sum * n;
		f->alias[i].below = UINT32_MAX;
		f->alias[i].other = i;
		if (scaled[i] < 1)
			work[small++] = i;
		else
			work[--large] = i;
	}
	while (small > 0 && large < n) {
		s = work[--small];
		l = work[large];
		f->alias[s].below = (uint32_t)(scaled[s] * UINT32_MAX);
		f->alias[s].other = l;
		scaled[l] -= 1 - scaled[s];
		if (scaled[l] < 1) {
			large++;
			work[small++] = l;
		}
	}
}

static void make_items(struct fleet *f, const struct entrant *v)
{
	uint32_t item = 0;

	for (uint32_t i = 0; i < f->stacks_n; i++) {
		uint64_t h = mix2(f->p.seed ^ 0x5e75, i);
		uint32_t sets = uniform(h) < f->p.labelled ?
			1 + (uint32_t)(map_hash_u64(h) % f->p.sets_per_stack) :
			1,
				 set;
		struct slot *slot = &f->slots[v[i].rank];

		if (v[i].other) {
			slot->other = item;
			slot->other_sets_n = (uint8_t)sets;
		} else {
			slot->item = item;
			slot->sets_n = (uint8_t)sets;
		}
		/* Neighbours, so that they ascend and differ. */
		set = (uint32_t)(map_hash_u64(h + 1) %
			(f->p.label_sets - sets + 1 + (f->p.label_sets == 0)));
		for (uint32_t k = 0; k < sets; k++, item++) {
			f->item_stack[item] = i;
			f->item_set[item] = uniform(h) < f->p.labelled ? (uint16_t)(set + k + 1) : 0;
		}
	}
	f->items_n = item;
}

static void make_level(struct fleet *f, const struct entrant *v, uint32_t item)
{
	struct level *l = &f->levels[item];
	uint64_t random = mix2(f->p.seed ^ 0x1e7e1, item);
	double size = fleet_set_bytes(f->item_set[item]), u = uniform(next_random(&random));

	l->day = f->slots[v[f->item_stack[item]].rank].day;
	l->other = v[f->item_stack[item]].other;
	l->rate = (float)(f->p.rate_max * weight(f, v[f->item_stack[item]].rank));
	if (uniform(next_random(&random)) < f->p.started)
		l->started = (uint16_t)(-log(u) * 1.5);
	if (uniform(next_random(&random)) < f->p.kept)
		l->kept = (uint16_t)(next_random(&random) >> 48 | 1);
	l->bytes = (uint32_t)size;
	/* An event is one of 512 KiB of allocations on average: what it stands for. */
	l->mean = f->p.kind == FLEET_HEAP ? (float)(1 / (1 - exp(-size / 524288))) :
										(float)(1000 * exp(9 * u));
}

static enum err_code populate(struct fleet *f, struct err *err)
{
	struct entrant *v = calloc(f->stacks_n, sizeof(*v));
	double *scaled = calloc(f->slots_n, sizeof(*scaled)), sum = 0;
	uint32_t *work = calloc(f->slots_n, sizeof(*work));
	enum err_code rc = ERR_OK;

	if (!v || !scaled || !work) {
		rc = nomem(err);
		goto done;
	}
	for (uint32_t i = 0; i < f->slots_n; i++)
		sum += weight(f, i);
	race(f, v, sum);
	make_alias(f, sum, scaled, work);
	make_items(f, v);
	for (uint32_t i = 0; i < f->items_n && f->levels; i++)
		make_level(f, v, i);
	for (uint32_t i = 0; i < 256; i++) {
		f->mix[i] = (uint16_t)(65535 * pow((i + 0.5) / 256, f->p.mix));
		f->mix_mean += f->mix[i] / 65536.0 / 256;
	}
done:
	free(v);
	free(scaled);
	free(work);
	return rc;
}

enum err_code fleet_open(const struct fleet_params *p, struct fleet **out, struct err *err)
{
	struct fleet *f = calloc(1, sizeof(*f));
	size_t items_max;
	enum err_code rc;

	if (!f)
		return nomem(err);
	f->p = *p;
	arena_init(&f->arena, 0);
	/* Deploys on so many days that they bring another third of the stacks. */
	f->deploys_n = p->replaced > 0 ? (uint32_t)(0.3 / p->replaced) : 0;
	f->stacks_n = p->stacks;
	f->slots_n = (uint32_t)(p->stacks / (1 + p->replaced * f->deploys_n));
	if (!f->p.sets_per_stack || f->p.label_sets < f->p.sets_per_stack)
		f->p.sets_per_stack = 1;
	items_max = (size_t)p->stacks * f->p.sets_per_stack;
	f->slots = arena_array(&f->arena, struct slot, f->slots_n);
	f->alias = arena_calloc(&f->arena, f->slots_n, sizeof(*f->alias));
	f->stack_leaf = arena_array(&f->arena, uint32_t, f->stacks_n);
	f->item_stack = arena_array(&f->arena, uint32_t, items_max);
	f->item_set = arena_array(&f->arena, uint16_t, items_max);
	if (p->kind != FLEET_CPU)
		f->levels = arena_array(&f->arena, struct level, items_max);
	if (!f->slots || !f->alias || !f->stack_leaf || !f->item_stack || !f->item_set ||
		(p->kind != FLEET_CPU && !f->levels)) {
		rc = nomem(err);
		goto fail;
	}
	for (uint32_t i = 0; i < f->slots_n; i++)
		f->slots[i].day = NEVER;
	if ((rc = fleet_grow_stacks(f, err)) || (rc = fleet_name_functions(f, err)) ||
		(rc = populate(f, err)))
		goto fail;
	*out = f;
	return ERR_OK;
fail:
	fleet_close(f);
	return rc;
}

void fleet_close(struct fleet *f)
{
	if (!f)
		return;
	free(f->nodes);
	arena_release(&f->arena);
	free(f);
}

const struct fleet_params *fleet_params(const struct fleet *f)
{
	return &f->p;
}

uint32_t fleet_items_n(const struct fleet *f)
{
	return f->items_n;
}

uint32_t fleet_stacks_n(const struct fleet *f)
{
	return f->stacks_n;
}

uint32_t fleet_item_stack(const struct fleet *f, uint32_t item)
{
	return f->item_stack[item];
}

size_t fleet_bytes(const struct fleet *f)
{
	return sizeof(*f) + f->arena.used_bytes + (size_t)f->nodes_cap * sizeof(*f->nodes);
}

/* Go's size classes, roughly: in steps of an eighth of the power of two below. */
uint32_t fleet_set_bytes(uint32_t set)
{
	return set <= 8 ? set * 16 : (8 + set % 8) << (4 + (set / 8) - 1);
}
