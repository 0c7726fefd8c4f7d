/*
 * Template: the part of Go's text/template that alerts use: text with {{actions}}.
 *
 * Actions: pipelines, variables, if/else if/else, range/else, with, end, comments, trim markers;
 * and, or, not, eq, ne, lt, le, gt, ge, index, len, print, printf, println, html, urlquery; and
 * Prometheus's humanize, humanize1024, humanizeDuration, humanizePercentage, humanizeTimestamp,
 * title, toUpper, toLower, reReplaceAll, match, first, value, label, strvalue, sortByLabel, args,
 * safeHtml, externalURL, pathPrefix, graphLink, tableLink, stripPort, stripDomain, parseDuration,
 * toTime. `query` asks through the data's function.
 * Each template begins with four variables: $labels has the value of .Labels, $externalLabels that
 * of .ExternalLabels, $externalURL that of .ExternalURL, $value that of .Value.
 *
 * Errors:    parsing: ERR_INVALID with line and column inside of the text. Rendering: ERR_INVALID,
 *            ERR_LIMIT (bytes made, steps); who shows it writes "<error expanding template: ...>".
 *            ERR_CANCELED as the data's query gave it: there is nothing to show.
 * Ownership: a parsed template lives in the arena and points into the text.
 * Threads:   immutable once parsed; any number of threads may render it.
 * Source:    Go's text/template; Prometheus's template/template.go.
 */
#ifndef PROMQL_RULES_TEMPLATE_TEMPLATE_H
#define PROMQL_RULES_TEMPLATE_TEMPLATE_H

#include "base/labels.h"

#define TEMPLATE_BYTES_MAX (1u << 20) /* of output */
#define TEMPLATE_STEPS_MAX 1000000u

struct template;

struct template_sample {
	struct labels labels;
	double value;
};

struct template_data {
	struct labels labels, external_labels;
	struct str external_url;
	double value;
	int64_t t_ns;
	/* `query "expr"`: the vector at t_ns; NULL: `query` is an error */
	enum err_code (*query)(void *ctx, struct arena *a, struct str expr,
		struct template_sample **out, size_t *n, struct err *err);
	void *ctx;
};

MUST_CHECK enum err_code template_parse(
	struct arena *a, struct str text, const struct template **out, struct err *err);
/* Appends to out; after an error out holds the output up to it. */
MUST_CHECK enum err_code template_render(
	const struct template *t, const struct template_data *d, struct buf *out, struct err *err);

/* Names of Prometheus's functions, without those of Go's templates; NULL behind the last. */
const char *template_function_name(size_t i);

/* The path of the page that shows an expression: "/explore?query=..." */
void template_link_print(struct buf *out, struct str expr);

#endif
