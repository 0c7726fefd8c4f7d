/*
 * Real profiles for the tests, written by tests/proto/goprofiles. Tests run in the root of the
 * tree.
 */
#ifndef TESTS_PROTO_TESTDATA_H
#define TESTS_PROTO_TESTDATA_H

#include "base/arena.h"
#include "base/str.h"

extern const char *const testdata[]; /* paths */
extern const size_t testdata_n;

/* The body as served, and inflated; both live in the arena. */
MUST_CHECK enum err_code testdata_body(
	struct arena *a, const char *path, struct str *out, struct err *err);
MUST_CHECK enum err_code testdata_inflated(
	struct arena *a, const char *path, struct str *out, struct err *err);

#endif
