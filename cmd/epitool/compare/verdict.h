/*
 * The verdict on two profiles: one sentence that names the function which changed most, as the
 * page's (web/ui/src/result/blame.ts).
 *
 * A cost belongs to the program's function nearest to it, since that is what its developers can
 * change: time in runtime.memmove counts for who called it. Chance is not judged: that takes single
 * profiles, and the query changed().
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT from the arena.
 * Ownership: names point into the profiles, or live in the arena.
 */
#ifndef CMD_EPITOOL_COMPARE_VERDICT_H
#define CMD_EPITOOL_COMPARE_VERDICT_H

#include "proto/pprof.h"

#define VERDICT_CALLERS 2u

struct verdict {
	struct str name; /* empty: both sides cost the same */
	bool is_flat; /* costs are the function's own; else with all that it calls */
	int64_t costs[2], totals[2]; /* base, new */
	struct str callers[VERDICT_CALLERS]; /* the most expensive first */
	double first_share; /* of its cost, 0..1, that the first caller passes */
	size_t callers_n; /* of all */
	struct str type, unit;
};

/* factor: new costs are multiplied by it before they are compared; 1: as they are. */
MUST_CHECK enum err_code verdict_make(struct arena *a, const struct pprof *const profiles[2],
	const uint32_t types[2], double factor, struct verdict *out, struct err *err);
/* One line, with its end. */
void verdict_print(const struct verdict *v, struct buf *out);

/* "5.6x"; "new" where there was nothing, "gone" where nothing is left, "" of nothing at all. */
void times_print(struct buf *out, double base, double next);

#endif
