/*
 * fuzz: web
 *
 * Parameters of queries: any form gives times that are in order, steps and limits that are within
 * theirs, or an error that says which parameter is wrong.
 */
#include <assert.h>

#include "base/clock.h"
#include "promql/syntax/parse.h"
#include "tests/fuzz/fuzz.h"
#include "web/api/times.h"
#include "web/http/form.h"
#include "web/router/envelope.h"

static void check_error(enum err_code rc, const struct err *err)
{
	assert(rc == ERR_INVALID || rc == ERR_LIMIT);
	assert(err->code == rc && err->msg[0]);
}

static void check_times(const struct http_in *in)
{
	struct query_options q = { 0 };
	struct err err;
	enum err_code rc = api_read_instant(in, &q, &err);

	if (rc)
		check_error(rc, &err);
	else
		assert(!q.has_span || (q.start_ns <= q.end_ns && q.t_ns == q.end_ns));
	q = (struct query_options){ 0 };
	if ((rc = api_read_range(in, &q, &err))) {
		check_error(rc, &err);
		return;
	}
	assert(q.step_ns > 0 && q.start_ns <= q.end_ns);
	assert((q.end_ns - q.start_ns) / q.step_ns <= ENGINE_POINTS_MAX);
}

static void check_others(struct http_in *in)
{
	static const char *const counts[] = { "limit", "max_nodes" };
	struct parsed *p;
	uint64_t n = 0;
	int64_t timeout = 0;
	struct err err;
	enum err_code rc;

	for (size_t i = 0; i < 2; i++)
		if ((rc = api_uint(in, counts[i], &n, &err)))
			check_error(rc, &err);
	if ((rc = api_duration(in, "timeout", &timeout, NULL, &err)))
		check_error(rc, &err);
	else
		assert(timeout >= 0);
	for (size_t i = 0; i < in->params_n; i++) {
		if (!str_is(in->params[i].name, "match[]"))
			continue;
		p = NULL;
		if ((rc = parse_selector(&in->arena, in->params[i].value, &p, NULL, &err)))
			check_error(rc, &err);
		parsed_release(p);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_in in = { 0 };

	arena_init(&in.arena, HTTP_REQUEST_ARENA_BYTES);
	if (http_form_parse(&in, (struct str){ (const char *)data, size })) {
		check_times(&in);
		check_others(&in);
	}
	arena_release(&in.arena);
	return 0;
}
