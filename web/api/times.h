/*
 * Parameters of query, query_range and explain_query: the query and its times.
 *
 * Errors: ERR_INVALID names the parameter.
 */
#ifndef WEB_API_TIMES_H
#define WEB_API_TIMES_H

#include "promql/engine/engine.h"
#include "web/http/http.h"

/* query and timeout. */
MUST_CHECK enum err_code api_read_query(
	const struct http_in *in, struct query_options *q, struct err *err);
/* time, or start and end; now by default. */
MUST_CHECK enum err_code api_read_instant(
	const struct http_in *in, struct query_options *q, struct err *err);
/* start, end and step. */
MUST_CHECK enum err_code api_read_range(
	const struct http_in *in, struct query_options *q, struct err *err);

#endif
