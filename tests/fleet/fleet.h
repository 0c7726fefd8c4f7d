/*
 * Fleet: profiles as a fleet of Go services would give them, made up from numbers that were fitted
 * to recorded ones (README.md), for benches and for tests of size and memory.
 *
 * A struct fleet is one parameter set: one kind of profile. Its population of stacks has one shape;
 * services differ in names and in what is popular, pods of a service in their mix and noise. Every
 * profile is a function of (seed, service, pod, scrape index): any one can be made directly, and
 * nothing grows with the number of scrapes. Index 0 is the start of a day; scrape k is taken at
 * k * interval_ns.
 *
 * A profile comes in two ways with the same samples: as struct pprof as Go serves it (counters
 * since the process began), and as ids into a partition for a struct row as the database stores it
 * (what each scrape added). Entries are items: a stack with its label set. Items are numbered in
 * about the order in which a service is first seen using them, as ids given by a database are, and
 * a partition that fleet_symbols filled has its ids in this order.
 *
 * Units:     nanoseconds; values in the unit of their type.
 * Errors:    ERR_NOMEM, ERR_LIMIT (of the partition), ERR_INVALID (a partition that is not empty).
 * Ownership: fleet_close ends what fleet_open gave. Arrays of a row belong to the scratch until its
 *            next use; a profile to its arena.
 * Threads:   a fleet is read only once open; a scratch belongs to one thread at a time.
 */
#ifndef TESTS_FLEET_FLEET_H
#define TESTS_FLEET_FLEET_H

#include "proto/kinds.h"
#include "tsdb/columns/row.h"
#include "tsdb/symbols/partition.h"

#define FLEET_COLUMNS_MAX 4u

enum fleet_kind {
	FLEET_CPU, /* draws: each sample is one draw from the popularity of stacks */
	FLEET_HEAP, /* levels: each item has events at its own rate, and some of them stay */
	FLEET_GOROUTINE,
	FLEET_MUTEX,
	FLEET_BLOCK
};

struct fleet_params {
	const char *name; /* of the set */
	enum fleet_kind kind;
	uint64_t seed;
	int64_t interval_ns;
	uint32_t stacks; /* of one service, over all time */
	double replaced; /* share of a day's live stacks that a deploy replaces by others */
	double zipf_s, zipf_q; /* popularity of rank r: 1 / (r + q)^s */
	double draws; /* FLEET_CPU: samples a profiler takes in one scrape, at mean load */
	double daily; /* load over a day: 1 +- this */
	double mix; /* pods: a stack's weight is u^mix of its own for each pod, u uniform */
	double depth_mean, depth_deviation;
	double new_nodes; /* that a stack adds to the tree of those before */
	uint32_t functions;
	double shared; /* how much calls go to the same functions: 1 not at all */
	double shown; /* share of functions whose name is shown differently: C++, Go's interfaces */
	double inlined; /* share of locations with more than one line */
	double labelled; /* share of stacks whose samples have labels */
	uint32_t label_sets; /* distinct ones; heap: sizes of objects */
	uint32_t sets_per_stack; /* at most: of a labelled stack */
	/* levels: events per scrape are rate_max / (rank + q)^s */
	double rate_max;
	double started; /* share of items with events before the first scrape */
	double kept; /* share of items of which something stays in use */
};

/* fleet-cpu shown-cpu labelled-cpu heavy-tailed-cpu small-cpu heap goroutine mutex block. */
extern const struct fleet_params fleet_sets[];
extern const size_t fleet_sets_n;
const struct fleet_params *fleet_set(const char *name); /* NULL: no such set */

struct fleet;
struct fleet_scratch;

MUST_CHECK enum err_code fleet_open(
	const struct fleet_params *p, struct fleet **out, struct err *err);
void fleet_close(struct fleet *f); /* NULL is fine */
MUST_CHECK enum err_code fleet_scratch_open(
	const struct fleet *f, struct fleet_scratch **out, struct err *err);
void fleet_scratch_close(struct fleet_scratch *s);

const struct fleet_params *fleet_params(const struct fleet *f);
uint32_t fleet_items_n(const struct fleet *f);
uint32_t fleet_stacks_n(const struct fleet *f);
size_t fleet_bytes(const struct fleet *f); /* memory it has */
const char *fleet_profile_name(const struct fleet *f); /* "process_cpu", "memory", ... */
const char *fleet_service_name(uint32_t service, char name[32]); /* "svc007": partition, job */
/* Kinds of its columns, as the server takes them from a scrape. */
uint32_t fleet_kinds(const struct fleet *f, enum value_kind kinds[FLEET_COLUMNS_MAX]);

/*
 * The profile as served, without times before start_ns: time_nanos is start_ns + scrape *
 * interval_ns.
 */
MUST_CHECK enum err_code fleet_profile(const struct fleet *f, struct fleet_scratch *s,
	uint32_t service, uint32_t pod, uint64_t scrape, int64_t start_ns, struct arena *a,
	struct pprof **out, struct err *err);

/* Ids of a service's items. */
struct fleet_symbols {
	uint32_t n; /* items */
	uint32_t *stacks, *label_sets; /* by item; ascending by (stack, label set) */
	uint32_t pods_n;
	uint32_t *headers; /* by pod: processes differ in where libraries are loaded */
};

/* Puts the whole population of a service into an empty partition. Arrays are in the arena. */
MUST_CHECK enum err_code fleet_symbols(const struct fleet *f, uint32_t service, uint32_t pods,
	struct partition *p, struct arena *a, struct fleet_symbols *out, struct err *err);

/*
 * The row that the database makes of scrape k after k - 1: counters as what was added, entries that
 * are 0 left out. A first scrape of a process (index 0, or after a deploy) has its counters as they
 * are. row->interval_ns is the set's.
 */
void fleet_row(const struct fleet *f, const struct fleet_symbols *symbols, struct fleet_scratch *s,
	uint32_t service, uint32_t pod, uint64_t scrape, int64_t start_ns, struct row *row);

/*
 * The same without a partition: items ascending, values[c * n + i]. deltas: as in a row, else as
 * served. Returns n.
 */
uint32_t fleet_items(const struct fleet *f, struct fleet_scratch *s, uint32_t service, uint32_t pod,
	uint64_t scrape, bool deltas, const uint32_t **items, const int64_t **values);
uint32_t fleet_item_stack(const struct fleet *f, uint32_t item); /* 0..fleet_stacks_n */

#endif
