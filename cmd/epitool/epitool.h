/*
 * epitool: the operator's tool. Each command is a function of the rest of its command line; it
 * prints the answer to standard output and errors to standard error.
 *
 * Exit codes as promtool: 0 fine, 1 a check or query failed, 2 the command line is wrong (3 as
 * promtool's lint is not used); 128 and the signal's number, so 130 after Ctrl-C, if it ended a
 * query, a push or a difference. diff has its own, because CI must not take a dead server for a
 * regression: 1 worse, 3 cannot tell, 4 not judged.
 */
#ifndef CMD_EPITOOL_EPITOOL_H
#define CMD_EPITOOL_EPITOOL_H

#include "base/err.h"
#include "base/str.h"

#define EXIT_FAILED 1
#define EXIT_USAGE 2

/* The commands as a table: who runs them, what they say of themselves, how they end (commands.c).
 */
#define TOOL_EXITS_MAX 4
struct tool_exit {
	int code; /* 0: the list ends; all commands have 0, and 2 for a wrong command line */
	const char *means;
};

struct tool_command {
	const char *name, *sub; /* sub NULL: a command of one word */
	int (*run)(int argc, char **argv);
	const char *usage, *help;
	struct tool_exit exits[TOOL_EXITS_MAX + 1];
};

extern const struct tool_command tool_commands[];
extern const size_t tool_commands_n;

/* The command whose words a usage begins with ("query [FLAGS] QUERY"); NULL: none. */
const struct tool_command *tool_command_of_usage(const char *usage);

int check_config(int argc, char **argv);
int check_rules(int argc, char **argv);
int check_web_config(int argc, char **argv);
int convert_from_prometheus(int argc, char **argv);
int convert_from_parca(int argc, char **argv);
int convert_from_alloy(int argc, char **argv);
int convert_from_pyroscope(int argc, char **argv);
int test_rules(int argc, char **argv);
int tool_query(int argc, char **argv);
int tool_push(int argc, char **argv);
int tool_diff(int argc, char **argv);
int tool_compare(int argc, char **argv);
int tool_top(int argc, char **argv);
int tool_flame(int argc, char **argv);
int debuginfo_send_files(int argc, char **argv);
int debuginfo_show_files(int argc, char **argv);
int objects_ls(int argc, char **argv);
int objects_get(int argc, char **argv);
int objects_put(int argc, char **argv);
int objects_copy(int argc, char **argv);
int objects_verify(int argc, char **argv);
int objects_repair(int argc, char **argv);
int objects_shards(int argc, char **argv);
int objects_drain(int argc, char **argv);
int objects_admit(int argc, char **argv);
int tsdb_list(int argc, char **argv);
int tsdb_analyze(int argc, char **argv);
int tsdb_verify(int argc, char **argv);
int tsdb_dump(int argc, char **argv);
int tsdb_repair(int argc, char **argv);

struct flag;
/*
 * Lists the flags of commands, for completion and the book: from flags_list_by on until it is
 * called with NULL, a command gives its table to fn and ends. Whoever reads a command line asks
 * flags_are_listed first; true: return 0.
 */
typedef void (*flags_list_fn)(void *ctx, const char *about, const struct flag *flags, size_t n);
void flags_list_by(flags_list_fn fn, void *ctx);
bool flags_are_listed(const char *about, const struct flag *flags, size_t n);
/* Flags of a tsdb command and its one argument, the data directory. -1: go on; else exit so. */
int tsdb_flags(struct flag *flags, size_t n, int argc, char **argv, const char *usage,
	const char *about, const char **dir);

#define SERVER_DEFAULT "http://localhost:7272"

struct client_options {
	const char *server; /* http://localhost:7272 */
	const char *http_config; /* --http.config.file: auth and TLS, or "" */
	int64_t timeout_ns;
};
struct http_body_source;
struct client_request {
	const char *method; /* NULL: POST */
	const char *path; /* with its query */
	const char *content_type;
	struct str body;
	const struct http_body_source *source; /* instead of the body; NULL: the body */
	struct buf *warning; /* out: the answer's header of that name, an error's too; NULL: no */
	int *status; /* out: the answer's, 0 if none came; NULL: no */
	int64_t *retry_ns; /* out: its Retry-After, 0 if it has none; NULL: no */
};
/*
 * One request to the server; appends the answer's body. ERR_INVALID with the server's own message
 * if it answered an error, ERR_CANCELED after Ctrl-C.
 */
MUST_CHECK enum err_code client_send(const struct client_options *o, const struct client_request *r,
	struct buf *out, struct err *err);
/* Replaces a file whole or not at all; /dev/stdout, a pipe and the like are written to. */
MUST_CHECK enum err_code output_save(const char *path, struct str content, struct err *err);
/* To the file, or to standard output ("" or "-"). */
MUST_CHECK enum err_code output_put(const char *path, struct str content, struct err *err);

/*
 * The rest of a command line: exactly or at least min, at most max arguments. -1: go on; else exit
 * so. usage: "query [FLAGS] QUERY"; about: lines that say more.
 */
void output_print_version(void);
int output_read_flags(struct flag *flags, size_t n, int argc, char **argv, const char *usage,
	const char *about, const char **args, size_t min, size_t max, size_t *args_n);

#endif
