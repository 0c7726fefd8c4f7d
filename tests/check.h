/*
 * Tests: each TEST is a function that registers itself; CHECK_* compare whole values and say both.
 * The tests of a room are one program (tests/check.c has its main), which has a name for each of
 * its files and runs the tests of the file by whose name it is called. Each file is thus a process
 * of its own: tests do not meet the state of another file's. Its last line is counted by
 * tests/run.sh: "N passed, N failed, N skipped". An argument runs only the tests whose name
 * contains it.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "tests/check_file.h"

struct check_test {
	const char *name;
	void (*fn)(void);
	struct check_test *next;
};

static struct check_test *check_tests, **check_tail = &check_tests;
static int check_failures; /* of the test that runs now */
static const char *check_skip_reason;

/*
 * The step of sweeps over faults, bytes and seeds. The release build takes all of them; each
 * sanitizer makes a step several times as long and finds its errors in a part of them. EPI_SHORT,
 * which `make test` sets, takes a quarter of either; `make test-all` does not.
 */
#if defined(__SANITIZE_THREAD__)
#define CHECK_STEP_BUILD 8
#elif defined(__SANITIZE_ADDRESS__)
#define CHECK_STEP_BUILD 3
#else
#define CHECK_STEP_BUILD 1
#endif
#define CHECK_STEP (CHECK_STEP_BUILD * (check_is_short() ? 4 : 1))

static inline bool check_is_short(void)
{
	return getenv("EPI_SHORT") != NULL;
}

#define TEST(id) \
	static void test_##id(void); \
	static struct check_test check_##id = { #id, test_##id, NULL }; \
	__attribute__((constructor)) static void check_register_##id(void) \
	{ \
		*check_tail = &check_##id; \
		check_tail = &check_##id.next; \
	} \
	static void test_##id(void)

#define CHECK_FAIL(...) \
	do { \
		printf("  %s:%d: ", __FILE__, __LINE__); \
		printf(__VA_ARGS__); \
		printf("\n"); \
		check_failures++; \
	} while (0)

#define CHECK(cond) \
	do { \
		if (!(cond)) \
			CHECK_FAIL("failed: %s", #cond); \
	} while (0)

/* Ends the test: what follows could not run. */
#define REQUIRE(cond) \
	do { \
		if (!(cond)) { \
			CHECK_FAIL("failed: %s", #cond); \
			return; \
		} \
	} while (0)

#define CHECK_INT(got, want) \
	do { \
		int64_t got_ = (int64_t)(got), want_ = (int64_t)(want); \
		if (got_ != want_) \
			CHECK_FAIL("%s is %" PRId64 ", want %" PRId64, #got, got_, want_); \
	} while (0)

#define CHECK_STR(got, want) \
	do { \
		struct str got_ = (got), want_ = str_of(want); \
		if (!str_eq(got_, want_)) \
			CHECK_FAIL("%s is \"" STR_FMT "\", want \"" STR_FMT "\"", #got, STR_ARG(got_), \
				STR_ARG(want_)); \
	} while (0)

#define CHECK_OK(call, err) \
	do { \
		(err)->msg[0] = '\0'; \
		if ((call) != ERR_OK) \
			CHECK_FAIL("%s: %s", #call, (err)->msg); \
	} while (0)

#define REQUIRE_OK(call, err) \
	do { \
		(err)->msg[0] = '\0'; \
		if ((call) != ERR_OK) { \
			CHECK_FAIL("%s: %s", #call, (err)->msg); \
			return; \
		} \
	} while (0)

/* The call fails with this code and exactly this message. */
#define CHECK_ERR(call, err, want_code, want_msg) \
	do { \
		enum err_code rc_ = (call); \
		if (rc_ != (want_code)) \
			CHECK_FAIL( \
				"%s gives %s, want %s", #call, err_code_name(rc_), err_code_name(want_code)); \
		else \
			CHECK_STR(str_of((err)->msg), want_msg); \
	} while (0)

/* For what this machine cannot run; the reason is printed and counted apart. */
#define SKIP(reason) \
	do { \
		check_skip_reason = (reason); \
		return; \
	} while (0)

/* Runs the tests of this file whose name contains `only` (NULL: all). Returns main's result. */
static int check_run(const char *only)
{
	int passed = 0, failed = 0, skipped = 0;
	struct check_test *t;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (t = check_tests; t; t = t->next) {
		if (only && !strstr(t->name, only))
			continue;
		check_failures = 0;
		check_skip_reason = NULL;
		t->fn();
		if (check_failures) {
			printf("FAIL %s\n", t->name);
			failed++;
		} else if (check_skip_reason) {
			printf("SKIP %s: %s\n", t->name, check_skip_reason);
			skipped++;
		} else {
			passed++;
		}
	}
	printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
	return failed ? 1 : 0;
}

__attribute__((constructor)) static void check_register_file(void)
{
	static struct check_file file = { __BASE_FILE__, check_run, NULL };

	check_file_add(&file);
}

#endif
