/*
 * Rendering: the result of a query as JSON, pprof, pgo, folded stacks, speedscope's JSON or text.
 *
 * Formats that hold one profile merge several elements: labels that differ become sample labels
 * (pprof) or an outermost frame (folded). For pprof, query_options.keep_sample_labels has to be
 * set, or sample labels are lost. Speedscope holds several profiles.
 *
 * A long answer is not held in memory as a whole: options.flush takes what was written each time
 * it passes RENDER_FLUSH_BYTES. pprof is one message and is packed whole, up to
 * RENDER_PPROF_BYTES_MAX.
 *
 * Errors:    ERR_CANCELED soon after options.canceled is set; ERR_INVALID if the format cannot
 *            hold the result's type ("format=pprof needs profiles, the query gives a vector"), or
 *            elements differ in unit; ERR_NOMEM, ERR_LIMIT from the arena. On an error the output
 *            is of no use.
 * Ownership: scratch and struct pprof are in options.arena: pass query_arena(q). They point into
 *            the query's symbols, so render before query_close.
 * Threads:   those of the query.
 */
#ifndef WEB_RENDER_RENDER_H
#define WEB_RENDER_RENDER_H

#include <stdatomic.h>

#include "base/json.h"
#include "promql/value/value.h"
#include "proto/pprof.h"
#include "proto/report/pprof_base.h"
#include "proto/report/pprof_options.h"

#define RENDER_NODES_DEFAULT 8192u
#define RENDER_NODES_MAX 1000000u
#define RENDER_FLUSH_BYTES (64u << 10)
#define RENDER_PPROF_BYTES_MAX (256u << 20) /* before gzip */
#define RENDER_PGO_LOCATIONS 5u

/* An answer that another one is compared with: the profile that it is as format=pprof. */
struct render_base {
	const struct pprof *p;
	bool filtered; /* percentages are of `total` */
	int64_t total;
	struct pprof_base_options options;
};

struct regex;

struct render_options {
	struct arena *arena;
	size_t max_nodes; /* of a flame graph; 0: RENDER_NODES_DEFAULT; at most RENDER_NODES_MAX */
	bool files; /* of a flame graph: with files and lines of functions */
	/* Of a flame graph: a part of it (struct tree_part), in addition to max_nodes. */
	const struct str *call_site;
	size_t call_site_n, call_site_skip;
	bool call_site_rest;
	/*
	 * JSON: what it finds in each profile (web/render/search.h). result.tops has the tables.
	 * NULL: nothing is searched for.
	 */
	const struct regex *search;
	size_t rows_max; /* of format=text for profiles; 0: all */
	/* Of format=text for profiles: how the table is made; NULL: pprof_options_default. */
	const struct pprof_options *report;
	const struct render_base *base; /* of format=text: what is subtracted; NULL: nothing */
	uint32_t pgo_locations; /* of format=pgo, kept of each stack; 0: RENDER_PGO_LOCATIONS */
	bool pgo_leaf_lines; /* of format=pgo: the line on which a leaf was stays */
	bool numbers_only; /* JSON: tables as vectors of flat costs */
	/* Takes what `out` holds and empties it; NULL: the answer stays in `out`. */
	enum err_code (*flush)(void *ctx, struct buf *out, struct err *err);
	void *flush_ctx;
	/* The client left, or time is up (query_stop_flag). May be NULL. */
	const atomic_bool *canceled;
};

/* Checks for cancellation, in long loops. canceled may be NULL. */
static inline enum err_code render_wanted(const atomic_bool *canceled, struct err *err)
{
	return canceled && atomic_load_explicit(canceled, memory_order_relaxed) ?
		err_set(err, ERR_CANCELED, "the client closed the connection") :
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
 * The formats that web/api and epitool offer. A new one is a file here with its write function,
 * and a row of the table in formats.c.
 */
struct render_format {
	const char *name; /* as in format=name */
	const char *content_type;
	const char *suffix; /* of a file that it is saved to; NULL: it is not a file */
	bool shown; /* browsers show it, and save it only if asked to */
	bool encoded; /* gzipped already */
	bool sample_labels; /* wants query_options.keep_sample_labels */
	bool whole_scrapes; /* holds RESULT_SCRAPE */
	/* NULL for JSON: render_json writes a value into the envelope of the caller. */
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

/* Merges all elements into one profile with one sample type. */
MUST_CHECK enum err_code render_pprof(
	const struct result *r, const struct render_options *o, struct pprof **out, struct err *err);
/*
 * The same encoded and gzipped, as `go tool pprof URL` takes it. A scrape is sent as it was
 * scraped.
 */
MUST_CHECK enum err_code render_pprof_gz(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err);

/*
 * For `go build -pgo`: a CPU profile with only names and lines, each stack cut to its innermost
 * locations. ERR_INVALID for other profiles and diffs, and if no function
 * has a start line.
 */
MUST_CHECK enum err_code render_pgo(
	const struct result *r, const struct render_options *o, struct pprof **out, struct err *err);
MUST_CHECK enum err_code render_pgo_gz(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err);

/* speedscope.app's file format, sampled: a profile per element, or one per side of a diff. */
MUST_CHECK enum err_code render_speedscope(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err);

/*
 * "root;...;leaf value\n"; ';' in a name becomes ':'. A frame without a name is its place in its
 * binary, "[libx.so+0x1f]". A diff has two columns, "stack base new\n", as difffolded.pl writes
 * and flamegraph.pl reads them.
 */
MUST_CHECK enum err_code render_folded(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err);

/*
 * Profiles and top(k, ...) as `go tool pprof -top -nodecount=rows_max` prints them, with the
 * options of options.report (nodecount there counts, if it is above 0); costs as a line "labels
 * value" per element; a scalar or string as its value.
 */
MUST_CHECK enum err_code render_text(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err);

/* Keeps a result in `a`, where it outlives its query; base->options are the caller's. */
MUST_CHECK enum err_code render_text_keep_base(const struct result *r,
	const struct render_options *o, struct arena *a, struct render_base *base, struct err *err);

#endif
