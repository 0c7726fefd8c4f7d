/*
 * Rendering: the result of a query as JSON, pprof, folded stacks, speedscope's JSON and text.
 *
 * Formats that hold one profile merge several elements: their differing labels become sample
 * labels (pprof) or an outermost frame (folded). For pprof, ask the engine to keep sample labels
 * (query_options.keep_sample_labels), or they are gone. Speedscope holds several.
 *
 * A long answer need not stand in memory as a whole: with options.flush, what was written so far is
 * given away each time it passes RENDER_FLUSH_BYTES. pprof is one message and is packed whole, up
 * to RENDER_PPROF_BYTES_MAX.
 *
 * Errors:    ERR_CANCELED where options.canceled says so, soon after it does; ERR_INVALID where the
 *            result is of a type that the format cannot hold ("format=pprof wants profiles, the
 *            query gives a vector"), or elements differ in unit; ERR_NOMEM, ERR_LIMIT from the
 *            arena. On error nothing of what was appended to the output is of use.
 * Ownership: scratch and struct pprof live in the arena given: query_arena(q) is the one to pass.
 *            They point into the query's symbols, so render before query_close.
 * Threads:   those of the query.
 */
#ifndef WEB_RENDER_RENDER_H
#define WEB_RENDER_RENDER_H

#include <stdatomic.h>

#include "base/json.h"
#include "promql/value.h"
#include "proto/pprof.h"

#define RENDER_NODES_DEFAULT 8192u
#define RENDER_NODES_MAX 1000000u
#define RENDER_FLUSH_BYTES (64u << 10)
#define RENDER_PPROF_BYTES_MAX (256u << 20) /* before gzip */
#define RENDER_PGO_LOCATIONS 5u

struct render_options {
	struct arena *arena;
	size_t max_nodes; /* of a flame graph; 0: RENDER_NODES_DEFAULT; above RENDER_NODES_MAX: that
					   */
	bool files; /* of a flame graph: where functions are defined */
	size_t rows_max; /* of format=text for profiles; 0: all */
	bool numbers_only; /* JSON: a table's rows as a vector of flat costs */
	/* Takes what `out` holds and empties it; NULL: all stays there. */
	enum err_code (*flush)(void *ctx, struct buf *out, struct err *err);
	void *flush_ctx;
	/* Nobody wants the answer any more, or its time is up (query_stop_flag); NULL: is not
	 * asked. */
	const atomic_bool *canceled;
};

/* For long loops. canceled may be NULL. */
static inline enum err_code render_wanted(const atomic_bool *canceled, struct err *err)
{
	return canceled && atomic_load_explicit(canceled, memory_order_relaxed) ?
		err_set(err, ERR_CANCELED, "the client is gone") :
		ERR_OK;
}

static inline enum err_code render_check(const struct render_options *o, struct err *err)
{
	return render_wanted(o->canceled, err);
}

static inline enum err_code render_flush(
	const struct render_options *o, struct buf *out, struct err *err)
{
	enum err_code rc = render_check(o, err);

	if (rc || !o->flush || out->len < RENDER_FLUSH_BYTES)
		return rc;
	return o->flush(o->flush_ctx, out, err);
}

/*
 * The formats: what web/api and epitool offer. A new one is a file here with its write function,
 * and a row of the table in formats.c.
 */
struct render_format {
	const char *name; /* as in format=name */
	const char *content_type;
	const char *disposition; /* NULL: to be looked at, not saved */
	bool encoded; /* gzipped already */
	bool sample_labels; /* wants query_options.keep_sample_labels */
	bool whole_scrapes; /* holds RESULT_SCRAPE */
	/* NULL of JSON: render_json writes a value, which belongs into the caller's envelope. */
	enum err_code (*write)(
		const struct result *r, const struct render_options *o, struct buf *out, struct err *err);
};
extern const struct render_format render_formats[];
extern const size_t render_formats_n;
#define RENDER_JSON (&render_formats[0])
const struct render_format *render_format_find(struct str name); /* NULL: there is none */

/* The value of "data": {"resultType":"profiles","result":[...]} and so on. */
MUST_CHECK enum err_code render_json(
	struct json *j, const struct result *r, const struct render_options *o, struct err *err);

/* All elements merged to one profile, one sample type. */
MUST_CHECK enum err_code render_pprof(
	const struct result *r, const struct render_options *o, struct pprof **out, struct err *err);
/* The same encoded and gzipped, as `go tool pprof URL` takes it; a scrape as it was scraped. */
MUST_CHECK enum err_code render_pprof_gz(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err);

/*
 * For `go build -pgo`: a CPU profile with names and lines alone, each stack cut to its innermost
 * RENDER_PGO_LOCATIONS locations, with what is inlined there. ERR_INVALID for other profiles and
 * diffs, and where no function says on which line it starts.
 */
MUST_CHECK enum err_code render_pgo(
	const struct result *r, const struct render_options *o, struct pprof **out, struct err *err);
MUST_CHECK enum err_code render_pgo_gz(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err);

/* speedscope.app's file format, sampled: a profile per element, of a diff one for each side. */
MUST_CHECK enum err_code render_speedscope(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err);

/*
 * "root;...;leaf value\n"; ';' in a name becomes ':'. A frame without a name is its place in its
 * binary, "[libx.so+0x1f]". Of a diff two columns, "stack base new\n", as difffolded.pl writes and
 * flamegraph.pl reads them.
 */
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
