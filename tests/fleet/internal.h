/*
 * Internals of the fleet: the population of a set, and random numbers drawn from hashes.
 */
#ifndef TESTS_FLEET_INTERNAL_H
#define TESTS_FLEET_INTERNAL_H

#include "base/map.h"
#include "tests/fleet/fleet.h"

#define DAY_NS INT64_C(86400000000000)
#define SITES 32u /* of a function: the first half are calls, the rest is where samples fall */
#define NEVER UINT16_MAX

/* A rank of the popularity: the stack that has it, and the one that has it after a deploy. */
struct slot {
	uint32_t item, other; /* their first items */
	uint16_t day; /* of the deploy; NEVER */
	uint8_t sets_n, other_sets_n; /* at most 7 */
};

/* The fixed properties of an item of FLEET_HEAP and similar kinds. */
struct level {
	float rate; /* events per scrape */
	float mean; /* heap: objects an event stands for; mutex, block: ns of a delay */
	uint32_t bytes; /* heap: of one object */
	uint16_t started; /* events before the first scrape */
	uint16_t kept; /* of 65536: chance that an event's object stays for a while */
	uint16_t day; /* of the deploy that brings it or takes it away; NEVER */
	bool other; /* it is brought */
};

struct node {
	uint32_t parent, location; /* location: function * SITES + site */
};

/* Names without the service's prefix; only functions of the service itself get it. */
struct function {
	struct str name, file;
	int64_t start_line;
	bool own;
};

struct fleet {
	struct fleet_params p;
	struct arena arena;
	uint32_t slots_n, stacks_n, items_n, nodes_n, nodes_cap;
	uint32_t deploys_n; /* days until every other stack was deployed once */
	struct node *nodes; /* 0: the empty stack */
	uint32_t *stack_leaf;
	uint32_t *item_stack;
	uint16_t *item_set; /* 0: none */
	struct slot *slots;
	struct { /* alias method over slots */
		uint32_t below, other;
	} * alias;
	uint16_t mix[256]; /* of 65536: chance that a pod takes a draw, by hash */
	double mix_mean;
	struct level *levels; /* by item; NULL for FLEET_CPU */
	struct function *names;
};

struct fleet_scratch {
	uint32_t cap; /* entries of one profile at most */
	uint32_t day; /* that current is of */
	uint32_t *current; /* by slot: first item * 8 + how many sets, on that day */
	uint32_t *taken; /* slots that were drawn */
	uint32_t tries_max;
	uint16_t *counts; /* by item; all 0 between uses */
	uint64_t *bits;
	uint32_t *items, *stacks, *sets;
	uint32_t *location_at, *function_at; /* in the profile, + 1; all 0 between uses */
	int64_t *values; /* FLEET_COLUMNS_MAX * cap */
	int64_t *work;
};

static inline uint64_t mix2(uint64_t a, uint64_t b)
{
	return map_hash_u64(a * UINT64_C(0x9e3779b97f4a7c15) + b);
}

/* wyrand: each first state gives another stream. */
static inline uint64_t next_random(uint64_t *state)
{
	*state += UINT64_C(0xa0761d6478bd642f);
	__uint128_t m = (__uint128_t)*state * (*state ^ UINT64_C(0xe7037ed1a0b428db));
	return (uint64_t)(m >> 64) ^ (uint64_t)m;
}

static inline double uniform(uint64_t h) /* in (0, 1) */
{
	return ((double)(h >> 11) + 0.5) * 0x1p-53;
}

static inline uint64_t service_seed(const struct fleet *f, uint32_t service)
{
	return mix2(f->p.seed, service + 1);
}

static inline uint64_t pod_seed(const struct fleet *f, uint32_t service, uint32_t pod)
{
	return mix2(service_seed(f, service), pod + 1);
}

static inline bool deployed(const struct fleet *f, uint32_t day, uint16_t since)
{
	return since != NEVER && day >= since && (day - since) / f->deploys_n % 2 == 0;
}

const char *fleet_type_name(const struct fleet *f, uint32_t column);
/* Bytes in the label of a heap set, 1..label_sets. */
uint32_t fleet_set_bytes(uint32_t set);

/* names.c: fills names. */
MUST_CHECK enum err_code fleet_name_functions(struct fleet *f, struct err *err);
/* stacks.c: fills nodes and stack_leaf. */
MUST_CHECK enum err_code fleet_grow_stacks(struct fleet *f, struct err *err);

#endif
