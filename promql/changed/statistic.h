/*
 * The statistic of changed(): which functions' flat shares moved, and by how much. Arithmetic on
 * observations, without engine or database; statistic.c begins with how it judges.
 *
 * An observation is one series in one slice of time (a minute, as a rule): its total cost, and the
 * flat costs of the functions it met. Slices of a side are numbered from 0, in order of time; a
 * series that is on both sides has the same number on both.
 *
 * Units:     costs as they come; shares 0..1.
 * Errors:    ERR_NOMEM, ERR_LIMIT (the arena's budget), ERR_CANCELED.
 * Ownership: everything lives in the caller's arena.
 * Threads:   pure. The same input gives the same answer: nothing is drawn at random.
 */
#ifndef PROMQL_CHANGED_STATISTIC_H
#define PROMQL_CHANGED_STATISTIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct change_cell {
	uint32_t function; /* < functions_n */
	double cost;
};

struct change_observation {
	uint32_t series, slice;
	double total; /* > 0; others are passed over */
	const struct change_cell *cells; /* each function at most once */
	size_t n;
};

struct change_side {
	const struct change_observation *v;
	size_t n;
	uint32_t slices_n;
};

struct change_input {
	struct change_side side[2]; /* new, base */
	uint32_t functions_n, series_n;
	double quantum; /* cost of one sample; 0: not known, it is estimated */
	double p; /* if nothing changed, at most this part of evaluations reports anything */
	double ahead; /* slices from the end of base to the end of new */
	bool is_alone; /* series are not looked at one by one */
	bool changed_only; /* the others, and their intervals, are not wanted */
	const atomic_bool *stop; /* may be NULL */
};

#define CHANGE_SLICES_MIN 6 /* with data, on each side */
#define CHANGE_APART_MIN 8 /* slices of each side, for sides to be apart */
#define CHANGE_ALONE_SERIES 3 /* on both sides; fewer are not looked at one by one */
#define CHANGE_SHOCK_SLICES 3 /* so long are shocks that are short */
#define CHANGE_SAMPLES_MIN 12 /* of a function, on both sides together */

enum change_verdict {
	CHANGE_JUDGED,
	CHANGE_NO_NEW, /* no costs on that side */
	CHANGE_NO_BASE,
	CHANGE_SHORT_NEW, /* fewer than CHANGE_SLICES_MIN slices */
	CHANGE_SHORT_BASE,
};

/* The verdict on a function. */
enum change_word {
	CHANGE_CHANGED, /* the interval leaves 0 out */
	CHANGE_SAME, /* nowhere in the interval is a change that matters */
	CHANGE_UNKNOWN, /* there is one, and so is 0 */
	CHANGE_RISES, /* it changed, but bit by bit, since struct change's `since` */
	CHANGE_FALLS,
};

#define CHANGE_MATTERS 0.02 /* of all: two points */

struct change {
	uint32_t function;
	enum change_word word;
	double difference; /* share in new - share in base */
	double low, high; /* its interval */
	double share[2]; /* in new, in base */
	double since; /* slices before the end of new: a drift or a step in base; 0: neither */
	bool apart; /* all slices of one side are above all of the other */
	bool short_shocks; /* apart, and the interval holds if no shock is longer than
						  CHANGE_SHOCK_SLICES */
};

struct change_alone {
	struct change change; /* of that series */
	uint32_t series;
};

struct change_output {
	enum change_verdict verdict;
	struct change *v; /* all functions; those that changed first, by descending magnitude, */
	size_t changed_n, n; /* then the others, by how far their intervals reach */
	struct change_alone *alone; /* changed in one series and hardly in the others */
	size_t alone_n;
	uint32_t tested_n; /* functions */
	bool paired; /* the same series are on both sides and were compared with themselves */
	bool series_spread; /* the spread between series was allowed for */
	double persistence; /* of shocks, from slice to slice: 0..1 */
};

/* Whether something changed: at once, or bit by bit. */
bool change_is_proved(const struct change *c);
/* The end of the interval that is farther from 0, as a magnitude. */
double change_reach(const struct change *c);

MUST_CHECK enum err_code changed_judge(
	struct arena *a, const struct change_input *in, struct change_output *out, struct err *err);

#endif
