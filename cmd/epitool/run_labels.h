/*
 * The labels of runs, as typed: "run=1,branch=main". Several values of a label, "run=1,2,3", or a
 * regular expression, run=~"1[.].+", are several runs.
 *
 * Errors:    ERR_LIMIT: more values than RUN_VALUES_MAX.
 * Ownership: names and values point into the text.
 */
#ifndef CMD_EPITOOL_RUN_LABELS_H
#define CMD_EPITOOL_RUN_LABELS_H

#include "base/str.h"

#define RUN_VALUES_MAX 1000u

struct run_value {
	struct str name, value;
	bool is_regex;
};

struct run_labels {
	struct run_value v[RUN_VALUES_MAX]; /* those of one label follow each other */
	size_t n;
	bool several; /* a label has several values, or a regular expression */
};

/* Labels, not a query or the name of a file. */
bool run_labels_are(const char *text);
/* The text is one of which run_labels_are. */
MUST_CHECK enum err_code run_labels_parse(
	const char *text, struct run_labels *out, struct err *err);
/* As matchers of a selector, each with a comma behind it: run="1",branch="main", */
void run_labels_print(const struct run_labels *r, struct buf *out);

#endif
