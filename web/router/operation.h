/*
 * Operation: what a route is to those who call it: its parameters, bodies, answers and errors, in
 * words. The document that the server gives, the book and the check of parameters read the same
 * tables; handlers read only parameters that are there.
 *
 * Types of answers are written so: string, int, number, bool, any, null, datetime, 'word'; []T a
 * list of T; {}T an object of T by name; A|B one of both; a name with a capital is a schema's.
 *
 * Threads: constant tables.
 */
#ifndef WEB_ROUTER_OPERATION_H
#define WEB_ROUTER_OPERATION_H

#include "base/str.h"

enum param_type {
	PARAM_STRING,
	PARAM_TIME, /* seconds since 1970, or RFC 3339 */
	PARAM_DURATION, /* seconds, or "5m" */
	PARAM_UINT,
	PARAM_BOOL,
	PARAM_QUERY, /* of the query language */
	PARAM_SELECTOR, /* {job="api"} */
};

enum param_flags {
	PARAM_REQUIRED = 1,
	PARAM_REPEATED = 2, /* may come again and again */
	PARAM_IN_PATH = 4, /* the value of the next "*" in the route's path */
	PARAM_PREFIX = 8, /* any parameter whose name begins so; "": any at all */
};

struct operation_param {
	const char *name; /* NULL ends a list */
	enum param_type type;
	unsigned flags;
	const char *values; /* "json|pprof"; NULL: any of the type */
	const char *fallback; /* what counts where it is left out; NULL: nothing */
	const char *help;
	const char *example; /* in requests that are shown; NULL: left out there */
};

struct operation_body {
	const char *media; /* NULL ends a list */
	const char *type; /* NULL: bytes */
	const char *help;
};

struct operation_answer {
	int status; /* 0 ends a list */
	const char *media; /* NULL: the API's envelope in JSON, around `type` */
	const char *type; /* NULL: bytes or text; of 204 nothing */
	const char *help;
};

/* How a route says what went wrong. */
enum operation_errors {
	ERRORS_ENVELOPE, /* the API's */
	ERRORS_BOTH, /* the API's; text where the answer is asked for in another format than JSON */
	ERRORS_TEXT,
	ERRORS_CONNECT,
	ERRORS_PROFEFE,
};

struct operation {
	const char *id; /* unique; letters and digits */
	const char *summary; /* one line, without a full stop */
	const char *description; /* NULL: the summary says it all */
	const struct operation_param *params; /* NULL: none */
	const struct operation_body *bodies; /* NULL: none but a form's */
	const struct operation_answer *answers;
	enum operation_errors error_form;
	const char *errors; /* statuses: "400 422"; those of every route are left out */
};

/* Whether the operation has this parameter; NULL has none. */
bool operation_has_param(const struct operation *op, struct str name);

#endif
