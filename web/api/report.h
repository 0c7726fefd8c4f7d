/*
 * The parameters of format=text that are options of `go tool pprof`, and the query whose answer is
 * subtracted.
 *
 * Errors:    ERR_INVALID, with the parameter's name; those of the second query begin with it too.
 * Ownership: all lives in the request's arena.
 */
#ifndef WEB_API_REPORT_H
#define WEB_API_REPORT_H

#include "promql/engine/engine.h"
#include "web/render/render.h"
#include "web/router/router.h"

struct api_report {
	struct pprof_options options;
	const char *given; /* a parameter of these, or NULL */
	const char *base_name; /* "base", "diff_base" or NULL */
	struct str base_text;
	struct render_base base;
};

MUST_CHECK enum err_code api_report_read(
	const struct http_in *in, struct api_report *out, struct err *err);
/*
 * Evaluates the base's query with the options of the main one, and keeps its answer; its warnings
 * become a header. It must be done before the main query begins: two at once would wait for each
 * other's turns. Without a base nothing.
 */
MUST_CHECK enum err_code api_report_run_base(struct web *w, struct http_in *in,
	struct http_out *out, struct api_report *report, const struct query_options *qo,
	struct err *err);

#endif
