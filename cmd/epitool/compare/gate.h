/*
 * The gate: repeated runs are judged function by function, for performance tests. epitool diff with
 * --function-threshold or --function-budget. promql/runs/RUNS.md says how, and how reliable it is.
 *
 * Units:     percent on the command line and for people, shares of 1 inside.
 * Errors:    ERR_INVALID: a flag; a run without costs; nothing to judge.
 * Ownership: everything lives in the pair's arena.
 */
#ifndef CMD_EPITOOL_COMPARE_GATE_H
#define CMD_EPITOOL_COMPARE_GATE_H

#include "base/json.h"
#include "cmd/epitool/compare/pair.h"
#include "promql/runs/judge.h"

struct gate_budget {
	struct str name;
	double percent;
};

struct gate_flags {
	const char *threshold_text, *share_text, *cannot_tell;
	struct flag_list budget_texts;
	/* out, of gate_flags_check */
	double threshold, least_share; /* percent; threshold < 0: none */
	struct gate_budget budgets[FLAG_LIST_MAX];
	bool is_asked, may_not_tell; /* may_not_tell: exit with 0 where runs are too few */
};

#define GATE_FLAGS(f) \
	{ "function-threshold", FLAG_STRING, &(f).threshold_text, "", \
		"Judge repeated runs: may a function cost so much more than in BASE, such as 20%?" }, \
		{ "function-budget", FLAG_LIST, &(f).budget_texts, NULL, \
			"NAME=12%: may this function's share of NEW be above that? Repeatable." }, \
		{ "least-share", FLAG_STRING, &(f).share_text, "5%", \
			"Functions with less of the total are not held against --function-threshold." }, \
	{ \
		"cannot-tell", FLAG_STRING, &(f).cannot_tell, "fail", \
			"fail: exit with 3 where the runs are too few to judge; ok: with 0." \
	}

/* A percentage such as "2%"; "": -1. */
MUST_CHECK enum err_code percent_parse(
	const char *flag, const char *text, double *out, struct err *err);
MUST_CHECK enum err_code gate_flags_check(struct gate_flags *f, struct err *err);

struct gate {
	const struct gate_flags *f;
	const struct pair *pair;
	struct str *names;
	struct judge_function *functions; /* those that were judged, the worst first */
	size_t n;
	struct judge_result result;
	bool shares;
};

/* Of a pair read with RUNS_APART, before costs_compare. */
MUST_CHECK enum err_code gate_judge(
	const struct gate_flags *f, struct pair *p, struct gate *out, struct err *err);
void gate_print(const struct gate *g, struct arena *a, struct buf *out);
/* "worse: main.encode costs 34% more than in BASE (9% to 60%)": one line, without its end. */
void gate_print_summary(const struct gate *g, struct buf *out);
/* Members of the object that is open. */
void gate_print_json(const struct gate *g, struct json *j);

#endif
