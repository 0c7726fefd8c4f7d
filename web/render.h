/*
 * Rendering: the result of a query as JSON, pprof, folded stacks and text.
 *
 * Formats that hold one profile merge several elements: their differing labels become sample
 * labels (pprof) or an outermost frame (folded). For pprof, ask the engine to keep sample labels
 * (query_options.keep_sample_labels), or they are gone.
 *
 * Errors:    ERR_INVALID where the result is of a type that the format cannot hold ("format=pprof
 *            wants profiles, the query gives a vector"), or elements differ in unit; ERR_NOMEM,
 *            ERR_LIMIT from the arena. On error nothing of what was appended to the output is of
 *            use.
 * Ownership: scratch and struct pprof live in the arena given: query_arena(q) is the one to pass.
 *            They point into the query's symbols, so render before query_close.
 * Threads:   those of the query.
 */
#ifndef WEB_RENDER_H
#define WEB_RENDER_H

#include "base/json.h"
#include "promql/value.h"
#include "proto/pprof.h"

#define RENDER_NODES_DEFAULT 8192u
#define RENDER_NODES_MAX 1000000u

struct render_options {
	struct arena *arena;
	size_t max_nodes; /* of a flame graph; 0: RENDER_NODES_DEFAULT; above RENDER_NODES_MAX: that
			   */
	size_t rows_max; /* of format=text for profiles; 0: all */
};

/* The value of "data": {"resultType":"profiles","result":[...]} and so on. */
MUST_CHECK enum err_code render_json(
	struct json *j, const struct result *r, const struct render_options *o, struct err *err);

/* All elements merged to one profile, one sample type. */
MUST_CHECK enum err_code render_pprof(const struct result *r, const struct render_options *o,
	struct pprof **out, struct err *err);
/* The same encoded and gzipped, as `go tool pprof URL` takes it. */
MUST_CHECK enum err_code render_pprof_gz(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err);

/* "root;...;leaf value\n"; ';' in a name is escaped as "\;". Of a diff: new minus base. */
MUST_CHECK enum err_code render_folded(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err);

/*
 * As `go tool pprof -top -nodefraction=0 -nodecount=rows_max` prints what render_pprof gives; of
 * top(k, ...) its rows, of costs a line "labels value" per element, of a scalar or string the
 * value.
 */
MUST_CHECK enum err_code render_text(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err);

#endif
