/*
 * Questions: a query with its times. A server answers it, or this process does from a data
 * directory; both give the same bytes. Nothing in the directory is written, so a running server may
 * use it.
 *
 * Errors: those of the server or the engine; ERR_CANCELED after Ctrl-C (progress.h).
 */
#ifndef CMD_EPITOOL_ASK_H
#define CMD_EPITOOL_ASK_H

#include "base/self/flags.h"
#include "cmd/epitool/epitool.h"
#include "proto/report/pprof_options.h"

/* Options of the text report, as typed: of format=text alone. */
struct question_report {
	const char *values[PPROF_OPTIONS]; /* NULL: not given */
	const char *base, *diff_base; /* queries; "" or NULL: none */
	bool normalize;
	struct pprof_options options; /* out, of question_report_check */
};

struct question {
	struct client_options client; /* its timeout counts for both */
	const char *data; /* directory; "": ask the server */
	const char *time, *start, *end, *step; /* as given, or "" */
	uint64_t limit, max_nodes; /* 0: not given */
	const char *format; /* of the API */
	const struct question_report *report; /* NULL: none */
	bool explain, analyze;
	/* out, of ask_check */
	bool has_time, has_span;
	int64_t time_ns, start_ns, end_ns, step_ns;
};

/* Flags for a struct question q, common to all commands that ask. */
#define ASK_FLAGS(q) \
	{ "server", FLAG_STRING, &(q).client.server, SERVER_DEFAULT, "Server to ask." }, \
		{ "http.config.file", FLAG_STRING, &(q).client.http_config, "", \
			"File with basic_auth, authorization, tls_config and so on for the server." }, \
		{ "data", FLAG_STRING, &(q).data, "", \
			"Data directory to read instead, without writing to it; a server may be running." }, \
	{ \
		"timeout", FLAG_DURATION, &(q).client.timeout_ns, "2m", "Longest time to wait." \
	}

/* Reads the times; ERR_INVALID for flags that do not go together. */
MUST_CHECK enum err_code ask_check(struct question *q, struct err *err);
/* ERR_INVALID: "--nodefraction: must be a number from 0 to 1, not \"x\"". */
MUST_CHECK enum err_code question_report_check(struct question_report *r, struct err *err);
/* Prints the answer's warnings to standard error, whatever its format. */
MUST_CHECK enum err_code question_ask(
	const struct question *q, const char *text, struct buf *answer, struct err *err);

/* "epitool: warning: ..." or "info". */
void ask_add_notice(struct buf *said, bool is_info, struct str text);

/* "epitool: error: ..." on standard error; a query's fault with its line and a caret below. */
void ask_print_error(const char *text, const struct err *err);

#endif
