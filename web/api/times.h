/*
 * What is asked and when it is evaluated, as parameters say: for query, query_range, explain_query.
 *
 * Errors: ERR_INVALID names the parameter.
 */
#ifndef WEB_API_TIMES_H
#define WEB_API_TIMES_H

#include "promql/engine.h"
#include "web/http/http.h"

/* query and timeout. */
MUST_CHECK enum err_code api_read_query(
	const struct http_in *in, struct query_options *q, struct err *err);
/* time, or start and end; now where there are none. */
MUST_CHECK enum err_code api_read_instant(
	const struct http_in *in, struct query_options *q, struct err *err);
/* start, end and step. */
MUST_CHECK enum err_code api_read_range(
	const struct http_in *in, struct query_options *q, struct err *err);

#endif
