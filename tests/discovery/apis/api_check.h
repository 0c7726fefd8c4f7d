/* Checks on a world (tests/discovery/apis/api_world.h). Include it after tests/check.h. */
#ifndef TESTS_DISCOVERY_API_CHECK_H
#define TESTS_DISCOVERY_API_CHECK_H

#include "tests/check.h"
#include "tests/discovery/apis/api_world.h"
#include "tests/wait.h"

/* Waits until that is published. */
#define WORLD_EXPECT(w, want) \
	do { \
		(void)WORLD_UNTIL(w, strcmp(world_text(w), want) == 0); \
		CHECK_STR(str_of(world_text(w)), want); \
	} while (0)

/* Waits until the source has failed once more. */
#define WORLD_EXPECT_FAILURE(w, want) \
	do { \
		unsigned before_ = (w)->host.failures; \
		CHECK(WORLD_UNTIL(w, (w)->host.failures > before_)); \
		CHECK_STR(str_of((w)->host.why.msg), want); \
	} while (0)

/* The text of the one target that there is, from its first label on. */
static inline const char *world_labels(struct world *w)
{
	const char *at = strchr(world_text(w), '\t');

	return at ? at + 1 : world_text(w);
}

struct config_row {
	const char *yaml;
	const char *want; /* NULL: it is taken */
};

static inline void check_configs(world_decode_fn decode, const struct config_row *rows, size_t n)
{
	struct world w;
	struct err err;

	world_open(&w, NULL);
	for (size_t i = 0; i < n; i++)
		if (rows[i].want)
			CHECK_ERR(
				world_decode(&w, decode, rows[i].yaml, &err), &err, ERR_INVALID, rows[i].want);
		else
			CHECK_OK(world_decode(&w, decode, rows[i].yaml, &err), &err);
	w.configs = (struct source_configs){ 0 };
	world_close(&w);
}

#endif
