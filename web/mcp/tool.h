/*
 * Tools: what assistants may call. Each is a row of the table in tools.c, from which arguments are
 * checked and the list is written; its function fills in a reply.
 *
 * Units:     nanoseconds since 1970; bytes.
 * Errors:    a tool's error is its answer. ERR_INVALID names the argument, and says what would do;
 *            others are the engine's.
 * Ownership: a call lives as long as its request; texts are in the request's arena.
 * Threads:   values; one request, one thread.
 */
#ifndef WEB_MCP_TOOL_H
#define WEB_MCP_TOOL_H

#include "web/mcp/message.h"
#include "web/mcp/reply.h"
#include "web/router/router.h"

struct query;
struct profile_value;
struct top_table;

enum tool_type {
	TOOL_STRING,
	TOOL_WHOLE, /* 1 or more */
	TOOL_STRINGS,
	TOOL_DURATION, /* "15m" */
	TOOL_TIME, /* RFC 3339, or seconds since 1970 */
};

struct tool_param {
	const char *name; /* NULL ends a list */
	enum tool_type type;
	bool required;
	const char *values; /* "run|explain"; NULL: any */
	const char *help;
};

struct tool_call {
	struct web *w;
	struct http_in *in;
	const struct tool *tool;
	const json_t *arguments; /* checked: known names, each of its type; NULL: none */
	struct arena *arena; /* the request's */
	int64_t now_ns;
	struct reply reply;
};

typedef enum err_code tool_fn(struct tool_call *c, struct err *err);

struct tool {
	const char *name;
	const char *help;
	const struct tool_param *params;
	tool_fn *fn;
};

extern const struct tool tools[];
extern const size_t tools_n;

/* The tools of the table. */
tool_fn tool_services_run, tool_top_run, tool_tree_run, tool_function_run, tool_compare_run;
tool_fn tool_query_run, tool_help_run;

/* The array of `tools/list`. */
void tools_write(struct json *j);
/* Answers `tools/call`. */
void tools_call(
	struct web *w, struct http_in *in, const struct mcp_message *m, struct http_out *out);

/* ---- arguments ---- */

struct str tool_string(const struct tool_call *c, const char *name); /* empty: not given */
/* More than max counts as max. */
size_t tool_whole(const struct tool_call *c, const char *name, size_t fallback, size_t max);
/* The strings of an array; *n 0: not given. */
MUST_CHECK enum err_code tool_strings(
	const struct tool_call *c, const char *name, struct str **out, size_t *n, struct err *err);

/* (start, end] */
struct tool_window {
	int64_t start_ns, end_ns;
};
#define TOOL_WINDOW_NS (15 * 60 * NS_PER_S) /* where none is given */
/* Of the arguments window and end; with a prefix those of that side, which fall back on *out. */
MUST_CHECK enum err_code tool_read_window(const struct tool_call *c, const char *window_name,
	const char *end_name, struct tool_window *out, struct err *err);

/* An expression that gives profiles. */
struct tool_profiles {
	struct str text; /* in one line, as the language prints it */
	bool is_selector; /* bare: a window can be written behind it */
};
MUST_CHECK enum err_code tool_read_profiles(
	const struct tool_call *c, const char *name, struct tool_profiles *out, struct err *err);

/* ---- queries ---- */

/*
 * Runs a query over the window, with the rights of the user, until the client leaves; its warnings
 * and infos become notes. query_close ends *out.
 */
MUST_CHECK enum err_code tool_ask(struct tool_call *c, const struct tool_window *window,
	bool tables, struct str text, struct query **out, struct err *err);
MUST_CHECK enum err_code tool_askf(struct tool_call *c, const struct tool_window *window,
	bool tables, struct query **out, struct err *err, const char *fmt, ...) PRINTF_LIKE(6, 7);
/*
 * The one profile of merge(profiles). ERR_NOT_FOUND: there are none, with notes of what is near.
 * *table: NULL is not wanted.
 */
MUST_CHECK enum err_code tool_ask_merged(struct tool_call *c, const struct tool_window *window,
	const struct tool_profiles *of, struct query **out, const struct profile_value **profile,
	const struct top_table **table, struct err *err);

/* ---- parts of replies ---- */

void tool_tell_window(struct tool_call *c, const char *name, const struct tool_window *window);
/* profiles, window, type, unit, total, number of profiles. */
void tool_tell_merged(struct tool_call *c, const struct tool_profiles *of,
	const struct tool_window *window, const struct profile_value *p);
/* Members of a next call: the same profiles and window. */
void tool_next_same(struct tool_call *c, struct json *j, const struct tool_profiles *of,
	const struct tool_window *window);

/* Where functions are defined, "file.go:12", or "" where that is not known; by their names. */
struct tool_places;
MUST_CHECK enum err_code tool_places_open(struct query *q, const struct profile_value *p,
	const struct str *names, size_t n, struct tool_places **out, struct err *err);
struct str tool_place(const struct tool_places *p, struct arena *a, struct str name);
void tool_places_close(struct tool_places *p); /* before the query; NULL is fine */

/* The names of the rows of a table. ptr NULL: the arena failed. */
struct str *tool_row_names(const struct top_table *t, size_t n, struct arena *a);

static inline double tool_percent(int64_t part, int64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

#endif
