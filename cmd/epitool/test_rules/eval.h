/*
 * The rules of one test, evaluated at the times of the test.
 *
 * Units:     nanoseconds since the test's beginning, which is 1970.
 * Errors:    of opening: those of rule_set_load. Of an evaluation: ERR_INVALID when rules failed,
 *            each with a line in `faults`.
 * Ownership: set, world and file outlive it.
 * Threads:   one.
 */
#ifndef CMD_EPITOOL_TEST_RULES_EVAL_H
#define CMD_EPITOOL_TEST_RULES_EVAL_H

#include "cmd/epitool/test_rules/file.h"
#include "promql/rules/rules.h"

struct test_eval;
struct test_world;

/* Groups in the order of the file's group_eval_order, others first. */
MUST_CHECK enum err_code test_eval_open(const struct test_file *f, const struct test_group *g,
	struct rule_set *set, struct test_world *w, struct test_eval **out, struct err *err);
void test_eval_close(struct test_eval *e); /* NULL is fine */
/* Every group once. Lines of faults: "    rule: NAME, time: 1m0s, err: MESSAGE". */
MUST_CHECK enum err_code test_eval_at(
	struct test_eval *e, int64_t t_ns, struct buf *faults, struct err *err);
/* Firing alerts of that name, of all groups, in the arena. */
MUST_CHECK enum err_code test_eval_firing(struct test_eval *e, struct arena *a, struct str name,
	struct test_alert **out, size_t *n, struct err *err);

#endif
