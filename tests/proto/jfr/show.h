/* Decoded recordings as text, and recordings from their files. Tests run in the root of the tree.
 */
#ifndef TESTS_PROTO_JFR_SHOW_H
#define TESTS_PROTO_JFR_SHOW_H

#include "proto/jfr/jfr.h"

/*
 * For each profile "name column ...: N events, N truncated, N without stack", then a line for each
 * sample: its values, "{key=value,...}" if it has labels, and "function:line@mapping" leaf first.
 */
void show_file(struct buf *out, const struct jfr_file *f);

/*
 * The same as recordings/expected.py prints it: without labels, samples of one stack as one,
 * profiles and stacks sorted.
 */
void show_sorted(struct buf *out, const struct jfr_file *f);

/* recordings/NAME.gz, inflated, in the arena. */
struct str recording(struct arena *a, const char *name);

/* The first line that differs, for a failing test; empty if none does. */
void show_difference(struct buf *out, struct str got, struct str want);

#endif
