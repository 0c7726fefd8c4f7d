/*
 * View: a request for names of the database: match[], start, end, limit.
 *
 * match[] takes the language's selectors. A name in one means all series that it means in a query:
 * those that are called so, and those of a profile which have such a type.
 *
 * Errors:    ERR_INVALID names the parameter; what the database returns.
 * Ownership: all in the request's arena; view_close frees the rest, even if opening failed.
 * Threads:   one request, one thread.
 */
#ifndef WEB_API_VIEW_H
#define WEB_API_VIEW_H

#include "base/json.h"
#include "promql/syntax/parse.h"
#include "promql/syntax/type_names.h"
#include "tsdb/db.h"
#include "web/router/router.h"
#include "web/router/strings.h"

#define VIEW_MATCHES_MAX 64u
#define VIEW_WARNINGS_MAX 4u

struct view_regex {
	struct view_regex *next;
	struct regex *re;
};

struct view {
	struct http_in *in;
	struct db_querier *q;
	struct parsed *matches[VIEW_MATCHES_MAX];
	size_t matches_n;
	struct view_regex *regexes; /* of view_resolve's matchers */
	uint64_t limit; /* 0: none */
	struct str said[VIEW_WARNINGS_MAX]; /* view_warn */
	size_t said_n;
};

/* Without start and end: all that is stored. */
MUST_CHECK enum err_code view_open(
	struct view *v, struct web *w, struct http_in *in, struct err *err);
/* With the caller's window (min, max]. */
MUST_CHECK enum err_code view_open_at(struct view *v, struct web *w, struct http_in *in,
	int64_t min_ns, int64_t max_ns, struct err *err);
void view_close(struct view *v);
/* Reads match[] only, into a view that has nothing but `in`; needs view_close too. */
MUST_CHECK enum err_code view_read_matches(struct view *v, struct err *err);
/*
 * One whole request: opens, calls `write`, closes. An error becomes the answer; when memory ran out
 * it says how to ask for less.
 */
void view_answer(struct web *w, struct http_in *in, struct http_out *out, void *ctx,
	enum err_code (*write)(struct view *v, struct http_out *out, void *ctx, struct err *err));

/*
 * A selector as matchers for the database, with the name resolved; they live as long as the view.
 * pattern->parts > 1 if it means a type within the profile.
 */
MUST_CHECK enum err_code view_resolve(struct view *v, const struct selector *s, struct matcher **m,
	size_t *n, struct type_pattern *pattern, struct err *err);
/* *has: the series has a type that fits the pattern. */
MUST_CHECK enum err_code view_has_type(struct view *v, const struct db_series *s,
	const struct type_pattern *p, struct arena *scratch, bool *has, struct err *err);

/* A warning of the answer, beside those met while reading. */
void view_warn(struct view *v, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Ends the envelope with the warnings met while reading. n: elements before the limit. */
void view_end(struct json *j, const struct view *v, size_t n);

/* Writes the whole answer: a list of strings, cut to the limit. */
void view_strings_write(struct http_out *out, const struct view *v, const struct router_strings *s);

#endif
