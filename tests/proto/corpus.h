/*
 * Hand-made profiles, each valid or wrong in one way, with the error message. The tests of the
 * decoder read them, and the tests against google/pprof ask it for the same verdicts.
 */
#ifndef TESTS_PROTO_CORPUS_H
#define TESTS_PROTO_CORPUS_H

#include "base/str.h"

struct corpus_row {
	const char *name;
	struct str body;
	const char *message; /* NULL: accepted */
};

extern const struct corpus_row corpus[];
extern const size_t corpus_n;

#endif
