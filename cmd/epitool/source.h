/*
 * What a command reads profiles from, as typed: a pprof file ("-": standard input), the labels of a
 * run ("run=1,branch=main": run_labels.h), or a query that gives profiles.
 *
 * Errors:    those of the server, the engine and the decoder, with the text in front; a query's own
 *            begin with their place, for ask_print_error. Text that looks like the name of a file
 *            which is not there: ERR_NOT_FOUND or the query's, with both facts. So does one word
 *            that could be a file, a run or the name of series.
 * Ownership: the profile lives in the arena given and in `bytes`; source_release ends it.
 */
#ifndef CMD_EPITOOL_SOURCE_H
#define CMD_EPITOOL_SOURCE_H

#include "cmd/epitool/ask.h"
#include "proto/pprof.h"

struct source_options {
	const struct question *question; /* of queries; its format is pprof */
	const char *profile, *match; /* of runs: the profile's type; further matchers, or "" */
	const char *type; /* of files: the sample type; "": the one that the file names, or its last */
};

/* Of a command that reads one source; f has profile, match, type and the question q. */
#define SOURCE_FLAGS(f) \
	{ "profile", FLAG_STRING, &(f).profile, "cpu", \
		"Of a run (run=1): the profile type, such as memory:alloc_space." }, \
		{ "match", FLAG_STRING, &(f).match, "", "Of a run: further matchers: job=\"api\"." }, \
		{ "type", FLAG_STRING, &(f).type, "", \
			"Of a file: the sample type; default: the one the file names, or its last." }, \
		{ "time", FLAG_STRING, &(f).q.time, "", "Evaluate at this time; default: now." }, \
		{ "start", FLAG_STRING, &(f).q.start, "", "All profiles from here to --end." }, \
		{ "end", FLAG_STRING, &(f).q.end, "", "See --start; default: now." }, ASK_FLAGS((f).q)

struct source {
	const char *text;
	bool is_file;
	struct buf query, bytes; /* the query ends in NUL; empty for files */
	const struct pprof *profile;
	uint32_t type;
};

MUST_CHECK enum err_code source_read(const struct source_options *o, const char *text,
	struct arena *a, struct source *out, struct err *err);
/* Its bytes alone: those of the file, or the answer in the question's format. */
MUST_CHECK enum err_code source_fetch(
	const struct source_options *o, const char *text, struct source *out, struct err *err);
void source_release(struct source *s);

bool source_is_file(const char *text); /* "-" is one */
/* A query as it is; for a run's labels the merge of their selector. */
MUST_CHECK enum err_code source_add_query(
	const struct source_options *o, const char *text, struct buf *out, struct err *err);

/* The selector of a run's labels: cpu{run="1",job="bench"}. */
MUST_CHECK enum err_code source_add_selector(
	const struct source_options *o, const char *text, struct buf *out, struct err *err);

/* As typed by somebody who means a file: a '/', or an ending of profiles, and no query's brackets.
 */
bool source_is_like_file(const char *text);
/*
 * To the error of a query that was refused: that there is no file of that name, or that there is
 * one, which this command does not read.
 */
void source_explain_query(const char *text, struct err *err);

#endif
