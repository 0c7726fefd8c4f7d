/* A decoded request as text, one line per sample, sorted; tests/proto/otlp/gen prints the same. */
#ifndef TESTS_PROTO_OTLP_SHOW_H
#define TESTS_PROTO_OTLP_SHOW_H

#include "proto/otlp/otlp.h"

void show_request(struct arena *a, const struct otlp_request *r, struct buf *out);
/* Ends the program if an index of the request or its profiles is out of range. */
void check_request(const struct otlp_request *r);

/* Inflates a file of tests/proto/otlp: "testdata/p4.pb", without its .gz. */
MUST_CHECK enum err_code show_read(
	struct arena *a, const char *name, struct str *out, struct err *err);

/* Options with the default limits that drop nothing, and that drop what differs between threads. */
extern const struct otlp_options show_options, show_options_drop;

#endif
