#include <math.h>
#include <stdlib.h>

#include "tests/fleet/internal.h"

/*
 * Makes one scrape. All values are hashes of (seed, service, pod, scrape, item), so any scrape can
 * be made without the ones before it. Counters too: an item's count at a scrape is a monotone
 * function of time. Time is stratified: each event lies somewhere in its span.
 */
#define CPU_PERIOD INT64_C(10000000)

enum err_code fleet_scratch_open(const struct fleet *f, struct fleet_scratch **out, struct err *err)
{
	struct fleet_scratch *s = calloc(1, sizeof(*s));
	size_t cap = f->items_n, tries = 0;

	if (!s)
		return err_set(err, ERR_NOMEM, "scratch of a fleet: out of memory");
	if (f->p.kind == FLEET_CPU) { /* no value above 16 bits */
		tries = (size_t)(f->p.draws * 4 / f->mix_mean) + 64;
		tries = tries < UINT16_MAX ? tries : UINT16_MAX;
		cap = cap < tries ? cap : tries;
	}
	s->cap = (uint32_t)cap;
	s->tries_max = (uint32_t)tries;
	s->day = UINT32_MAX;
	s->current = calloc(f->slots_n, sizeof(*s->current));
	s->taken = calloc(tries + 1, sizeof(*s->taken));
	s->counts = calloc(f->items_n, sizeof(*s->counts));
	s->bits = calloc(f->items_n / 64 + 1, sizeof(*s->bits));
	s->items = calloc(cap, sizeof(*s->items));
	s->stacks = calloc(cap, sizeof(*s->stacks));
	s->sets = calloc(cap, sizeof(*s->sets));
	s->location_at = calloc((size_t)f->p.functions * SITES, sizeof(*s->location_at));
	s->function_at = calloc(f->p.functions, sizeof(*s->function_at));
	s->values = calloc(cap * FLEET_COLUMNS_MAX, sizeof(*s->values));
	s->work = calloc(cap * FLEET_COLUMNS_MAX, sizeof(*s->work));
	if (!s->counts || !s->bits || !s->items || !s->stacks || !s->sets || !s->values || !s->work ||
		!s->location_at || !s->function_at || !s->current || !s->taken) {
		fleet_scratch_close(s);
		return err_set(err, ERR_NOMEM, "scratch of a fleet: out of memory");
	}
	*out = s;
	return ERR_OK;
}

void fleet_scratch_close(struct fleet_scratch *s)
{
	if (!s)
		return;
	free(s->current);
	free(s->taken);
	free(s->counts);
	free(s->bits);
	free(s->items);
	free(s->stacks);
	free(s->sets);
	free(s->location_at);
	free(s->function_at);
	free(s->values);
	free(s->work);
	free(s);
}

uint32_t fleet_kinds(const struct fleet *f, enum value_kind kinds[FLEET_COLUMNS_MAX])
{
	switch (f->p.kind) {
	case FLEET_CPU:
		kinds[0] = kinds[1] = KIND_DELTA;
		return 2;
	case FLEET_HEAP:
		kinds[0] = kinds[1] = KIND_CUMULATIVE;
		kinds[2] = kinds[3] = KIND_GAUGE;
		return 4;
	case FLEET_GOROUTINE:
		kinds[0] = KIND_GAUGE;
		return 1;
	default:
		kinds[0] = kinds[1] = KIND_CUMULATIVE;
		return 2;
	}
}

/* The load's integral from scrape 0 to scrape k, in scrapes at mean load. */
static double load_until(const struct fleet *f, double phase, double k)
{
	double day = (double)DAY_NS / (double)f->p.interval_ns, turn = 2 * M_PI / day;

	return k - f->p.daily / turn * (cos(turn * k + phase) - cos(phase));
}

/* ---- draws ---- */

/* The items that the ranks have on a day. */
static void turn_to(const struct fleet *f, struct fleet_scratch *s, uint32_t day)
{
	if (s->day == day)
		return;
	for (uint32_t i = 0; i < f->slots_n; i++) {
		const struct slot *slot = &f->slots[i];

		s->current[i] = deployed(f, day, slot->day) ? slot->other * 8 + slot->other_sets_n :
													  slot->item * 8 + slot->sets_n;
	}
	s->day = day;
}

/*
 * Half of the time goes to guesses of the processor that fail, where there are any; so there are no
 * branches here. What is popular differs between services for half of the ranks, between pods for
 * the others.
 */
static uint32_t draw(const struct fleet *f, struct fleet_scratch *s, const uint64_t of[2],
	uint64_t random, uint32_t tries)
{
	uint32_t n = 0, *taken = s->taken;

	for (uint32_t i = 0; i < tries; i++) {
		uint64_t r = next_random(&random), h;
		uint32_t at = (uint32_t)(((r >> 40) * f->slots_n) >> 24);
		uint32_t other = f->alias[at].other, below = f->alias[at].below;

		at = (uint32_t)r <= below ? at : other;
		h = (of[at & 1] ^ at) * UINT64_C(0xd6e8feb86659fd93);
		h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
		taken[n] = at;
		n += (uint16_t)next_random(&random) <= f->mix[h >> 56];
	}
	return n;
}

static void count(struct fleet_scratch *s, uint32_t n, uint64_t random)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t current = s->current[s->taken[i]], item = current / 8;

		if ((current & 7) > 1)
			item += (uint32_t)(next_random(&random) % (current & 7));
		s->bits[item / 64] |= UINT64_C(1) << (item & 63);
		s->counts[item]++;
	}
}

static uint32_t collect(const struct fleet *f, struct fleet_scratch *s)
{
	uint32_t n = 0, words = f->items_n / 64 + 1;

	for (uint32_t w = 0; w < words; w++) {
		uint64_t bits = s->bits[w];

		if (!bits)
			continue;
		s->bits[w] = 0;
		for (; bits; bits &= bits - 1) {
			uint32_t item = w * 64 + (uint32_t)__builtin_ctzll(bits);

			s->items[n] = item;
			s->work[n++] = s->counts[item];
			s->counts[item] = 0;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		s->values[i] = s->work[i];
		s->values[n + i] = s->work[i] * CPU_PERIOD;
	}
	return n;
}

static uint32_t cpu_items(
	const struct fleet *f, struct fleet_scratch *s, uint32_t service, uint32_t pod, uint64_t scrape)
{
	uint64_t seed = pod_seed(f, service, pod), random = mix2(seed, scrape);
	double phase = 2 * M_PI * uniform(mix2(f->p.seed, service)), a, b, load, tries;
	double day = (double)DAY_NS / (double)f->p.interval_ns;

	a = uniform(next_random(&random));
	b = uniform(next_random(&random));
	load = 1 + f->p.daily * sin(2 * M_PI * (double)scrape / day + phase);
	load *= 0.7 + 0.6 * uniform(map_hash_u64(seed)); /* pods differ */
	load *= 1 + 0.08 * sqrt(-2 * log(a)) * cos(2 * M_PI * b);
	if (load < 0.05)
		load = 0.05;
	tries = f->p.draws * load / f->mix_mean;
	if (tries > s->tries_max)
		tries = s->tries_max;
	turn_to(f, s, (uint32_t)((double)scrape / day));
	count(s, draw(f, s, (uint64_t[2]){ seed, service_seed(f, service) }, random, (uint32_t)tries),
		random);
	return collect(f, s);
}

/* ---- levels ---- */

struct moment { /* a pod at a scrape */
	const struct fleet *f;
	uint64_t pod;
	uint64_t scrape; /* the number that noise is made from */
	uint32_t day; /* of the process's begin */
	double time; /* load since the process began */
};

/*
 * Deploys restart a process once a day, each pod at another time. False where the process is not
 * the one that the scrape before saw.
 */
static bool moment_of(
	const struct fleet *f, uint32_t service, uint32_t pod, uint64_t scrape, struct moment *m)
{
	uint64_t day = (uint64_t)(DAY_NS / f->p.interval_ns), seed = pod_seed(f, service, pod);
	uint64_t offset = (pod + 1) * 60 % day, began = 0;
	double phase = 2 * M_PI * uniform(mix2(f->p.seed, service));

	if (f->p.replaced > 0 && scrape >= offset + day)
		began = (scrape - offset) / day * day + offset;
	m->f = f;
	m->pod = mix2(seed, began);
	m->scrape = scrape;
	m->day = (uint32_t)(began / day);
	m->time = load_until(f, phase, (double)scrape) - load_until(f, phase, (double)began);
	return scrape != began;
}

/* Events of an item since its process began; h is of item and process. */
static uint64_t events(const struct moment *m, const struct level *l, uint64_t h)
{
	double rate = l->rate * m->f->mix[h & 255] / 65536, x = (double)(h >> 32) * 0x1p-32;
	uint64_t whole;

	x += rate * m->time;
	if (rate > 1) { /* never back: less than a scrape adds at the least load */
		double noise = sqrt(rate), most = rate * (1 - m->f->p.daily);

		x += (noise < most ? noise : most) * (double)(mix2(h, m->scrape) >> 32) * 0x1p-32;
	}
	whole = (uint64_t)x;
	/* Has the event of this span come? At the start that of the first span may have, too. */
	whole += x - (double)whole > (double)(mix2(h, whole) >> 32) * 0x1p-32;
	return whole + l->started;
}

/* Objects of the last four events may be in use; each event is drawn, later ones replace it. */
static uint64_t in_use(const struct level *l, uint64_t h, uint64_t n)
{
	uint64_t live = l->started;

	if (!l->kept)
		return 0;
	for (uint64_t i = 0; i < 4 && i + l->started < n; i++)
		live += (mix2(h ^ 0xabcdef, n - i) >> 48) < l->kept;
	return live;
}

/*
 * The sum of n delays of mean 1, without adding them: the mean of stairs whose steps are 1, 4, 16,
 * ... wide, each step somewhere in its height. It never falls, and varies at every scale.
 */
static double delays(uint64_t h, uint64_t n)
{
	double sum = 0;

	for (unsigned j = 0; j < 12; j += 2) {
		uint64_t step = n >> j;

		sum += ((double)step + (double)(mix2(h + j, step) >> 32) * 0x1p-32) * (double)(1u << j) *
			(1 / 6.0);
	}
	return n ? sum : 0;
}

static void level_values(const struct fleet *f, const struct level *l, uint64_t h, uint64_t n,
	int64_t v[FLEET_COLUMNS_MAX])
{
	uint64_t live;

	switch (f->p.kind) {
	case FLEET_HEAP:
		live = in_use(l, h, n);
		v[0] = (int64_t)((double)n * l->mean);
		v[1] = (int64_t)((double)n * l->bytes * l->mean);
		v[2] = (int64_t)((double)live * l->mean);
		v[3] = (int64_t)((double)live * l->bytes * l->mean);
		return;
	case FLEET_GOROUTINE:
		v[0] = (int64_t)in_use(l, h, n);
		return;
	default:
		v[0] = (int64_t)n;
		v[1] = (int64_t)(l->mean * delays(h, n));
		return;
	}
}

/* All columns of entries that are not 0, in work; then side by side. */
static uint32_t level_items(const struct fleet *f, struct fleet_scratch *s, uint32_t service,
	uint32_t pod, uint64_t scrape, bool deltas)
{
	enum value_kind kinds[FLEET_COLUMNS_MAX];
	uint32_t columns = fleet_kinds(f, kinds), n = 0;
	struct moment now, before;

	deltas = moment_of(f, service, pod, scrape, &now) && deltas && kinds[0] == KIND_CUMULATIVE;
	if (deltas)
		moment_of(f, service, pod, scrape - 1, &before);
	for (uint32_t i = 0; i < f->items_n; i++) {
		const struct level *l = &f->levels[i];
		int64_t *v = s->work + (size_t)n * FLEET_COLUMNS_MAX, was[FLEET_COLUMNS_MAX], any = 0;
		uint64_t h = mix2(now.pod, i), count, counted = 0;

		if (l->day != NEVER && deployed(f, now.day, l->day) != l->other)
			continue;
		count = events(&now, l, h);
		if (deltas && (counted = events(&before, l, h)) == count && !l->kept)
			continue; /* nothing new, nothing in use: most of a heap */
		level_values(f, l, h, count, v);
		if (deltas && counted != count)
			level_values(f, l, h, counted, was);
		else
			memcpy(was, v, sizeof(was));
		for (uint32_t c = 0; c < columns; c++) {
			if (deltas && kinds[c] == KIND_CUMULATIVE)
				v[c] -= was[c];
			any |= v[c];
		}
		s->items[n] = i;
		n += any != 0;
	}
	for (uint32_t c = 0; c < columns; c++)
		for (uint32_t i = 0; i < n; i++)
			s->values[(size_t)c * n + i] = s->work[(size_t)i * FLEET_COLUMNS_MAX + c];
	return n;
}

uint32_t fleet_items(const struct fleet *f, struct fleet_scratch *s, uint32_t service, uint32_t pod,
	uint64_t scrape, bool deltas, const uint32_t **items, const int64_t **values)
{
	uint32_t n = f->p.kind == FLEET_CPU ? cpu_items(f, s, service, pod, scrape) :
										  level_items(f, s, service, pod, scrape, deltas);

	*items = s->items;
	*values = s->values;
	return n;
}
