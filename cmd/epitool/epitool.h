/*
 * epitool: the operator's tool. Each command is a function of the rest of the command line; it
 * prints to standard output what was asked for and to standard error what went wrong.
 *
 * Exit codes as promtool: 0 fine, 1 a check or query failed, 2 the command line is wrong (3 as
 * promtool's lint is not used).
 */
#ifndef CMD_EPITOOL_EPITOOL_H
#define CMD_EPITOOL_EPITOOL_H

#include "base/err.h"
#include "base/str.h"

#define EXIT_FAILED 1
#define EXIT_USAGE 2

int check_config(int argc, char **argv);
int check_web_config(int argc, char **argv);
int query(int argc, char **argv);
int tsdb_list(int argc, char **argv);
int tsdb_analyze(int argc, char **argv);
int tsdb_verify(int argc, char **argv);
int tsdb_dump(int argc, char **argv);

/* Flags of a tsdb command and its one argument, the data directory. -1: go on; else exit so. */
struct flag;
int tsdb_flags(struct flag *flags, size_t n, int argc, char **argv, const char *about,
	const char **dir);

/* One GET from the server; body in *out. ERR_INVALID with the server's own message where it
 * answered an error. */
struct client_options {
	const char *server; /* http://localhost:7272 */
	const char *http_config; /* --http.config.file: auth and TLS, or "" */
	int64_t timeout_ns;
};
MUST_CHECK enum err_code client_get(const struct client_options *o, const char *path_and_query,
	struct buf *out, struct err *err);
/* Appends with everything but unreserved characters percent-encoded. */
void url_escape(struct buf *out, struct str s);

#endif
