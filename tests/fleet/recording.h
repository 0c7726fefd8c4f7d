/*
 * Recording: successive scrapes of one kind from several processes, as dense ids. They come from
 * files or from a fleet.
 *
 * Errors:    ERR_INVALID (a file's name or content), ERR_NOMEM.
 * Ownership: recording_release ends it; the arena given holds everything else.
 */
#ifndef TESTS_FLEET_RECORDING_H
#define TESTS_FLEET_RECORDING_H

#include "tests/fleet/fleet.h"

struct scrape {
	uint32_t n;
	const uint32_t *items; /* ascending: a stack with its labels */
	const int64_t *values; /* as served; column c of entry i: values[c * n + i] */
};

struct process {
	struct str name;
	struct scrape *scrapes;
	uint32_t scrapes_n;
};

struct recording {
	struct str kind; /* "cpu", "heap", ... */
	uint32_t columns_n;
	enum value_kind kinds[FLEET_COLUMNS_MAX];
	struct str types[FLEET_COLUMNS_MAX];
	struct process *processes;
	uint32_t processes_n;
	uint32_t items_n;
	uint32_t *item_stack, *item_labels; /* dense ids */
	uint32_t stacks_n, label_sets_n;
	struct partition *partition; /* of files: what stacks are made of; else NULL */
	uint32_t *stack_node; /* in it */
	double locations, functions, files; /* that a profile has, on average; of files */
};

/*
 * Files named SERVICE.POD.KIND.TIME.pb.gz. What stands before the last dot of a name without its
 * .pb.gz is the process; the scrapes of one process are in the order of their names. Those of the
 * first file's kind are taken and counted in *taken, in front; the others go behind them.
 */
MUST_CHECK enum err_code recording_read(const char **files, size_t n, size_t *taken,
	struct arena *a, struct recording *out, struct err *err);
MUST_CHECK enum err_code recording_make(const struct fleet *f, uint32_t services, uint32_t pods,
	uint64_t first, uint64_t scrapes, struct arena *a, struct recording *out, struct err *err);
void recording_release(struct recording *r);

#endif
