/*
 * The world of one test: its own data directory, the engine over it, and the test's input, which is
 * stored as time goes on.
 *
 * Units:     nanoseconds since the test's beginning, which is 1970.
 * Ownership: the test and the arena outlive the world. The directory goes with it.
 * Threads:   one.
 */
#ifndef CMD_EPITOOL_TEST_RULES_WORLD_H
#define CMD_EPITOOL_TEST_RULES_WORLD_H

#include "cmd/epitool/test_rules/file.h"
#include "promql/engine/engine.h"

struct test_world;

MUST_CHECK enum err_code test_world_open(
	struct arena *a, const struct test_group *g, struct test_world **out, struct err *err);
void test_world_close(struct test_world *w); /* NULL and half-built are fine */
struct db *test_world_db(struct test_world *w);
struct engine *test_world_engine(struct test_world *w);
/*
 * The time at which the database holds the input of t: 1 ns instead of 0, where nothing is stored.
 */
int64_t test_world_time(int64_t t_ns);
/* Stores all input up to and with t_ns; queries see it at once. */
MUST_CHECK enum err_code test_world_store(struct test_world *w, int64_t t_ns, struct err *err);

#endif
