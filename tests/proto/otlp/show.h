/* A decoded request as text, one line per sample, sorted; tests/proto/otlp/gen prints the same. */
#ifndef TESTS_PROTO_OTLP_SHOW_H
#define TESTS_PROTO_OTLP_SHOW_H

#include "proto/otlp/otlp.h"

void show_request(struct arena *a, const struct otlp_request *r, struct buf *out);
/* Ends the program if an index of the request or its profiles is out of range. */
void check_request(const struct otlp_request *r);

/* Options with the default limits that drop nothing. */
extern const struct otlp_options show_options;

#endif
