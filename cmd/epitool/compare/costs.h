/*
 * Costs of two profiles side by side, by function or by another field of frames.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT from the arena.
 * Ownership: rows live in the arena; names point into the profiles.
 * Source:    flat, cum and drop_frames as in go tool pprof.
 */
#ifndef CMD_EPITOOL_COMPARE_COSTS_H
#define CMD_EPITOOL_COMPARE_COSTS_H

#include "base/map.h"
#include "proto/pprof.h"

enum costs_by { BY_FUNCTION, BY_SYSTEM_NAME, BY_FILENAME, BY_LINE, BY_MAPPING };
enum { COSTS_BASE, COSTS_NEW };

struct cost_row {
	struct str name;
	int64_t flat[2], cum[2]; /* base, new */
	uint64_t seen; /* sample + 1 that added to cum last */
	int64_t change; /* of flat or cum; out, of costs_compare */
	double percent; /* of the base's total */
	bool exceeds;
};

struct costs {
	struct arena *arena;
	enum costs_by by;
	/*
	 * Samples in runtime.asyncPreempt count for the function that it interrupts: where processors
	 * are busy, a third of a loop's samples land there.
	 */
	bool no_preempts;
	struct cost_row *rows;
	size_t n, cap;
	struct map map;
	uint64_t samples;
	uint32_t *stack; /* of costs_walk */
	size_t stack_cap;
	int64_t total[2];
	uint64_t size[2]; /* the sums of magnitudes */
	/* out, of costs_compare */
	double factor; /* new costs were multiplied by it */
	size_t exceeding;
};

struct compare_options {
	bool normalize; /* new is scaled to the base's total */
	bool cum; /* cum is measured, else flat */
	bool both_ways; /* lower costs exceed too */
	double threshold; /* percent of the base's total; < 0: none */
};

/* The flags --by and --measure of commands; ERR_INVALID: not one of what they may be. */
MUST_CHECK enum err_code costs_check_flags(
	const char *by, const char *measure, enum costs_by *out, struct err *err);
void costs_init(struct costs *c, struct arena *a, enum costs_by by);
void costs_release(struct costs *c);
/* Each sample with a value: rows of its frames, outermost first, without what drop_frames drops. */
typedef enum err_code (*costs_stack_fn)(
	void *ctx, const uint32_t *rows, size_t n, int64_t value, struct err *err);
MUST_CHECK enum err_code costs_walk(struct costs *c, const struct pprof *p, uint32_t type,
	costs_stack_fn fn, void *ctx, struct err *err);
MUST_CHECK enum err_code costs_add(
	struct costs *c, const struct pprof *p, uint32_t type, unsigned side, struct err *err);
/* The last call: drops rows without costs, fills in changes, sorts: greatest change first, then by
 * name. */
void costs_compare(struct costs *c, const struct compare_options *o);

#endif
