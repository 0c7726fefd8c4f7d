/*
 * Choosing: from a selector to the series and columns that it selects, and their groups.
 *
 * Errors:    ERR_INVALID: columns that cannot be put together; ERR_LIMIT: too many series; those of
 *            the database.
 * Ownership: what is found lives in the arena that the function names.
 * Threads:   one query, one thread.
 */
#ifndef PROMQL_CHOOSE_H
#define PROMQL_CHOOSE_H

#include "promql/profiles/profiles.h"
#include "promql/value/timeline.h"

struct eval; /* promql/eval.h */

/* The way in which a selector's series are put together. */
struct merging {
	enum over_time over;
	bool each; /* one element per series; the rest is unused */
	enum grouping grouping; /* _NONE: all together; _BY; _WITHOUT */
	struct name_list labels;
	bool totals_only; /* values are totals, cells are not read */
	bool in_slices; /* changed(): elements live a slice of the window at a time */
	bool any_unit; /* values are not looked at: profiles are counted */
	bool by_name; /* costs by function names are enough: part.names may replace cells */
};

/* Profiles of e, a selector; gauges are not rounded yet. */
MUST_CHECK enum err_code choose_profiles(struct eval *ev, const struct expr *e,
	const struct merging *m, struct value *out, struct err *err);

/* How a column becomes one of the selection's unit. */
struct fit {
	int64_t scale, period_scale; /* multipliers, at least 1 */
	struct str unit, period_unit;
};

/*
 * One series of a selection, in one epoch: which of its columns, and what must be asked of its
 * samples. Its epochs have equal labels, and so one group.
 */
struct chosen {
	const struct db_series *series;
	struct profile_type type; /* as it is stored */
	const struct fit *fit; /* NULL: that is its unit, or no unit was asked for */
	uint64_t deferred; /* bits of the selector's matchers that are about sample labels */
	bool asked; /* some matcher is about a label that the series lacks, and so about samples */
	bool takes_empty; /* those matchers accept "" */
	bool none; /* no sample can pass: rows are there, and later than those of older epochs */
	bool by_labels; /* cells per sample label set */
	struct labels metric;
	uint32_t group;
	int64_t at_ns; /* OVER_MIN, OVER_MAX: the only time to look at */
	int64_t min_ns; /* OVER_RATE: the beginning of its window; 0: as the selection's */
	int64_t window_ns; /* and how long it counts; 0: as long as the selector's */
};

struct selection {
	const struct selector *selector;
	const struct expr *expr;
	struct time_window window;
	struct chosen *v; /* ascending by group */
	size_t n;
	uint32_t groups_n;
	bool totals_only, by_name;
	enum over_time over;
	uint64_t cost; /* about, in samples */
};

/* The series a selector's name and matchers select, sample labels not looked at; once per epoch. */
MUST_CHECK enum err_code choose_series(
	struct eval *ev, const struct expr *e, struct db_series **out, size_t *n, struct err *err);

/* Epochs of one series are chosen one behind the other; each may have a unit of its own. */
bool choose_is_same_series(const struct db_series *a, const struct profile_type *a_type,
	const struct db_series *b, const struct profile_type *b_type);

#define CHOOSE_INFOS_MAX 5u

/* Series that a selector's name and matchers chose, their columns and groups. */
struct chosen_set {
	struct chosen_set *next;
	const struct selector *selector; /* the first that asked; windows do not count */
	const struct merging *merging; /* likewise; what is read of the values does not count */
	struct chosen *v; /* ascending by group */
	size_t n, series_n; /* series_n 0: no series at all */
	uint32_t groups_n;
	bool by_labels; /* some are split by labels of samples */
	struct str infos[CHOOSE_INFOS_MAX]; /* on what was left out */
	size_t infos_n;
};

/* The database's part of a selector. */
struct asked_series {
	const struct expr *expr;
	const struct merging *m; /* NULL: series alone are asked for */
	const struct type_pattern *pattern; /* those without such a type are left out; NULL: none is */
	const struct matcher *sent;
	size_t sent_n;
	bool withheld; /* there are matchers that may leave out others */
};
/*
 * The series, in ev->work.arena. ERR_LIMIT if they exceed the query's memory or samples: the error
 * comes before they are held, and is estimated from some of them.
 */
MUST_CHECK enum err_code choose_held(struct eval *ev, const struct asked_series *asked,
	struct db_series **out, size_t *n, struct err *err);

/*
 * Finds one unit for what was chosen, set->v, and leaves out what does not fit; pattern: the
 * selector's name. ERR_INVALID: columns cannot be put together, and there is no name (NULL).
 */
struct type_pattern; /* promql/syntax/type_names.h */
MUST_CHECK enum err_code choose_fit(struct work *work, const struct expr *e,
	const struct type_pattern *pattern, struct chosen_set *set, struct err *err);
/* Equal but for units that convert, and periods. */
bool choose_is_same_type(const struct profile_type *a, const struct profile_type *b);
/* The type of what it gives: in the selection's unit. */
struct profile_type chosen_type(const struct chosen *c);

/* In ev->work.whole. */
MUST_CHECK enum err_code choose_set(struct eval *ev, const struct expr *e, const struct merging *m,
	struct chosen_set *out, struct err *err);

#endif
