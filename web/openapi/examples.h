/*
 * Examples of answers, as a real server gave them; long ones are cut.
 *
 * Threads: constant tables.
 * Source:  tests/e2e/openapi.test.mjs holds each against its schema.
 */
#ifndef WEB_OPENAPI_EXAMPLES_H
#define WEB_OPENAPI_EXAMPLES_H

struct operation_example {
	const char *id; /* of the operation */
	const char *answer; /* JSON */
};

/* NULL: there is none. */
const struct operation_example *example_find(const char *id);

#endif
