/*
 * Two sides that are compared: the flags that say which and how, and their costs. A side is one
 * profile or several runs, whose costs are added. For epitool diff and compare.
 *
 * Errors:    those of source.h and costs.h; ERR_INVALID where the units do not convert.
 * Ownership: pair_release ends what pair_read made, also after an error.
 */
#ifndef CMD_EPITOOL_COMPARE_PAIR_H
#define CMD_EPITOOL_COMPARE_PAIR_H

#include "cmd/epitool/compare/bench_runs.h"
#include "cmd/epitool/compare/costs.h"
#include "cmd/epitool/table.h"

struct pair_flags {
	struct question q;
	const char *profile, *match, *by_text, *type, *measure;
	bool normalize;
	uint64_t limit;
	enum bench_kind runs; /* what a side may be */
	/* out, of pair_check */
	enum costs_by by;
	struct compare_options compare;
};

/* What is compared. */
#define PAIR_COST_FLAGS(f) \
	{ "normalize", FLAG_BOOL, &(f).normalize, NULL, \
		"Scale NEW to the total of BASE: compare shares, not costs." }, \
		{ "by", FLAG_STRING, &(f).by_text, "function", \
			"function, system_name, filename, line or mapping." }, \
	{ \
		"measure", FLAG_STRING, &(f).measure, "flat", \
			"flat or cum: what is compared and sorted by; in diff also held against --threshold." \
	}
/* Which profiles. */
#define PAIR_SOURCE_FLAGS(f) \
	{ "profile", FLAG_STRING, &(f).profile, "cpu", \
		"Of runs: the profile type, such as memory:alloc_space." }, \
		{ "match", FLAG_STRING, &(f).match, "", "Of runs: further matchers: job=\"api\"." }, \
	{ \
		"type", FLAG_STRING, &(f).type, "", \
			"Of files: the sample type; default: the one the file names, or its last." \
	}

/* The flags without those of times. */
MUST_CHECK enum err_code pair_check(struct pair_flags *f, struct err *err);

struct pair {
	const struct pair_flags *f;
	const char *texts[2];
	const struct question *questions[2];
	struct arena arena;
	struct bench_runs sides[2];
	struct costs costs;
	struct str type, unit;
};

/*
 * With RUNS_APART each run's costs are kept.
 * *query: the one whose error has a place in it, NULL where there is none.
 */
MUST_CHECK enum err_code pair_read(struct pair *p, const char **query, struct err *err);
void pair_release(struct pair *p);
size_t pair_rows(const struct pair *p); /* as many as --limit says */
/* The unit of all costs of a table. */
struct str pair_unit(const struct pair *p);
/* sign: with a plus where it is above 0. */
void pair_cell(
	const struct pair *p, struct text_table *t, int64_t value, bool sign, struct str unit);

#endif
