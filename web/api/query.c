/*
 * Queries: reads the parameters, evaluates, writes the result in the format that was asked for.
 *
 * `go tool pprof URL` shows the text of an error only if it is text/plain with X-Go-Pprof, so all
 * formats but JSON send errors that way.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/quote.h"
#include "promql/engine/engine.h"
#include "web/api/handlers.h"
#include "web/api/report.h"
#include "web/api/saved_name.h"
#include "web/api/times.h"
#include "web/files/files.h"
#include "web/render/notices.h"
#include "web/render/render.h"
#include "web/render/search.h"
#include "web/router/envelope.h"

static enum err_code api_write_json(
	struct http_out *out, const struct result *r, const struct render_options *o, struct err *err)
{
	struct json j;
	enum err_code rc;

	api_begin(out, &j);
	rc = render_json(&j, r, o, err);
	if (!rc)
		api_end(&j, r->warnings, r->warnings_n, r->infos, r->infos_n);
	return rc;
}

static const struct render_format *api_find_format(const struct http_in *in, struct err *err)
{
	struct str name = http_param(in, "format");
	const struct render_format *f = name.len ? render_format_find(name) : RENDER_JSON;
	struct buf known = { 0 };

	if (f)
		return f;
	for (size_t i = 0; i < render_formats_n; i++)
		buf_printf(&known, "%s%s", i ? ", " : "", render_formats[i].name);
	err_set(err, ERR_INVALID, "unknown format %s; known are " STR_FMT, QUOTED(name),
		STR_ARG(buf_str(&known)));
	buf_release(&known);
	return NULL;
}

static void api_query_fail(
	struct http_out *out, const struct render_format *f, enum err_code rc, const struct err *err)
{
	struct buf text = { 0 };

	if (http_is_streaming(out)) {
		out->failed = true;
		return;
	}
	if (!f || f == RENDER_JSON) {
		api_fail(out, rc, err);
		return;
	}
	buf_add_printable(&text, str_of(err->msg)); /* it may name a type or a unit of others */
	http_text(out, api_status(rc, NULL), STR_FMT, STR_ARG(buf_str(&text)));
	http_add_header(out, "X-Go-Pprof", STR("1"));
	buf_release(&text);
}

/* ---- what is asked ---- */

enum err_code api_read_query(const struct http_in *in, struct query_options *q, struct err *err)
{
	q->text = http_param(in, "query");
	if (!q->text.len)
		return err_set(err, ERR_INVALID, "invalid parameter \"query\": missing");
	return api_duration(in, "timeout", &q->timeout_ns, NULL, err);
}

/* call_site[]: the names of frames, root first. */
static enum err_code api_read_call_site(
	struct http_in *in, struct render_options *r, struct err *err)
{
	uint64_t skip = 0;
	struct str *names;
	size_t n = 0, at = 0;
	enum err_code rc = api_uint(in, "call_site_skip", &skip, err);

	if (rc)
		return rc;
	if (!(names = arena_array(&in->arena, struct str, in->params_n + 1)))
		return arena_fail(&in->arena, "call_site[]", err);
	while (http_next_param(in, "call_site[]", &at, &names[n]))
		n++;
	r->call_site = names;
	r->call_site_n = n;
	r->call_site_rest = http_param(in, "call_site_skip").len > 0;
	r->call_site_skip = skip;
	return ERR_OK;
}

/* search: the caller frees the expression. */
static enum err_code api_read_search(const struct http_in *in, const struct render_format *f,
	struct query_options *q, struct regex **out, struct err *err)
{
	struct str text = http_param(in, "search");
	enum err_code rc;

	if (!text.len)
		return ERR_OK;
	if (f != RENDER_JSON || q->step_ns)
		return err_set(err, ERR_INVALID,
			"search needs format=json and a query of profiles at one time or from start to end");
	if ((rc = search_compile(text, out, err)))
		return err_wrap(err, rc, "invalid parameter \"search\"");
	q->tables = true;
	return ERR_OK;
}

/* Only flame graphs have parts. */
static enum err_code api_check_call_site(const struct render_format *f,
	const struct query_options *q, const struct render_options *r, struct err *err)
{
	if ((r->call_site_n || r->call_site_rest) && (f != RENDER_JSON || q->step_ns))
		return err_set(err, ERR_INVALID,
			"call_site[] and call_site_skip need format=json and a query of profiles at one time "
			"or from start to end");
	return ERR_OK;
}

static enum err_code api_read_common(
	struct http_in *in, struct query_options *q, struct render_options *r, struct err *err)
{
	uint64_t limit = 0, nodes = 0;
	enum err_code rc = api_read_query(in, q, err);

	if (rc || (rc = api_uint(in, "limit", &limit, err)) ||
		(rc = api_uint(in, "max_nodes", &nodes, err)) || (rc = api_read_call_site(in, r, err)))
		return rc;
	q->limit = limit;
	r->max_nodes = nodes;
	r->rows_max = limit;
	return api_bool(in, "files", &r->files, err);
}

static enum err_code api_check_order(int64_t start_ns, int64_t end_ns, struct err *err)
{
	if (end_ns < start_ns)
		return err_set(err, ERR_INVALID,
			"invalid parameter \"end\": end timestamp must not be before start time");
	return ERR_OK;
}

enum err_code api_read_instant(const struct http_in *in, struct query_options *q, struct err *err)
{
	bool has_time, has_start, has_end;
	enum err_code rc;

	q->t_ns = clock_now_ns();
	if ((rc = api_time(in, "time", &q->t_ns, &has_time, err)))
		return rc;
	if ((rc = api_time(in, "start", &q->start_ns, &has_start, err)))
		return rc;
	if ((rc = api_time(in, "end", &q->end_ns, &has_end, err)))
		return rc;
	if (!has_start && !has_end)
		return ERR_OK;
	if (!has_start || !has_end)
		return err_set(err, ERR_INVALID, "start and end are both needed");
	if (has_time)
		return err_set(err, ERR_INVALID, "use either time, or start and end");
	q->has_span = true;
	q->t_ns = q->end_ns;
	return api_check_order(q->start_ns, q->end_ns, err);
}

enum err_code api_read_range(const struct http_in *in, struct query_options *q, struct err *err)
{
	static const char *const names[] = { "start", "end", "step" };
	enum err_code rc;

	for (size_t i = 0; i < 3; i++)
		if (!http_param(in, names[i]).len)
			return err_set(err, ERR_INVALID, "invalid parameter \"%s\": missing", names[i]);
	if ((rc = api_time(in, "start", &q->start_ns, NULL, err)))
		return rc;
	if ((rc = api_time(in, "end", &q->end_ns, NULL, err)))
		return rc;
	if ((rc = api_check_order(q->start_ns, q->end_ns, err)))
		return rc;
	if ((rc = api_duration(in, "step", &q->step_ns, NULL, err)))
		return rc;
	if (q->step_ns <= 0)
		return err_set(err, ERR_INVALID,
			"invalid parameter \"step\": zero or negative query "
			"resolution step widths are not accepted. Try a positive integer");
	if ((q->end_ns - q->start_ns) / q->step_ns > ENGINE_POINTS_MAX)
		return err_set(err, ERR_INVALID,
			"exceeded maximum resolution of 11,000 points per "
			"timeseries. Try decreasing the query resolution (?step=XX)");
	q->t_ns = q->end_ns;
	return ERR_OK;
}

static enum err_code api_check_report(const struct render_format *f, const struct query_options *q,
	const struct api_report *report, struct render_options *r, struct err *err)
{
	if (!report->given)
		return ERR_OK;
	if (!str_is(str_of(f->name), "text") || q->step_ns)
		return err_set(err, ERR_INVALID,
			"%s needs format=text and a query of profiles at one time or from start to end",
			report->given);
	r->report = &report->options;
	r->base = report->base_name ? &report->base : NULL;
	return ERR_OK;
}

/* types=all: a scrape with all its sample types, which only pprof can hold. */
static enum err_code api_read_types(const struct http_in *in, const struct render_format *f,
	struct query_options *q, struct err *err)
{
	struct str types = http_param(in, "types");

	if (!types.len)
		return ERR_OK;
	if (!str_is(types, "all"))
		return err_set(err, ERR_INVALID, "invalid parameter \"types\": must be \"all\"");
	if (!f->whole_scrapes || q->step_ns || q->has_span)
		return err_set(err, ERR_INVALID, "types=all needs format=pprof and a query at one time");
	q->whole_scrape = true;
	return ERR_OK;
}

static bool api_has_param_of_ours(const struct http_in *in)
{
	static const char *const names[] = { "start", "end", "format", "types", "max_nodes", "files",
		"call_site[]", "call_site_skip", "search" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (http_param(in, names[i]).len)
			return true;
	return false;
}

/*
 * Clients that know only Prometheus's result types, by what they are seen to send. Programs in Go
 * that use Prometheus's client library, such as promtool before it had a name of its own, have Go's
 * user agent; but they POST a form, and never with a parameter that Prometheus lacks.
 */
static bool api_is_client_of_prometheus(const struct http_in *in)
{
	static const char *const agents[] = { "Grafana/", "promtool/", "Prometheus/" };

	for (size_t i = 0; i < sizeof(agents) / sizeof(agents[0]); i++)
		if (str_has_prefix(in->user_agent, str_of(agents[i])))
			return true;
	return str_has_prefix(in->user_agent, STR("Go-http-client/")) && in->method == HTTP_POST &&
		!api_has_param_of_ours(in);
}

/* profiles=totals: numbers instead of profiles and tables, for those who do not know these. */
static enum err_code api_read_profiles(const struct http_in *in, const struct render_format *f,
	struct query_options *q, struct render_options *r, struct err *err)
{
	struct str profiles = http_param(in, "profiles");
	bool totals = !profiles.len && api_is_client_of_prometheus(in);

	if (profiles.len && !str_is(profiles, "totals") && !str_is(profiles, "flame"))
		return err_set(
			err, ERR_INVALID, "invalid parameter \"profiles\": must be \"totals\" or \"flame\"");
	if (f != RENDER_JSON)
		return ERR_OK;
	q->totals = r->numbers_only = totals || str_is(profiles, "totals");
	return ERR_OK;
}

/* ---- answers ---- */

struct answering {
	struct http_in *in;
	struct http_out *out;
};

/* A render_options.flush: sends the answer's body as far as it is written. */
static enum err_code api_flush(void *ctx, struct buf *body, struct err *err)
{
	struct answering *x = ctx;

	(void)body;
	return http_flush(x->in, x->out, err);
}

static enum err_code api_query_add_name(struct http_in *in, struct http_out *out,
	const struct render_format *f, const struct query_options *q, const struct result *r,
	struct err *err)
{
	struct saved_name name;
	enum err_code rc = saved_name_of(r, q->text, &in->arena, &name, err);

	if (rc)
		return rc;
	if (q->has_span) {
		name.start_ns = q->start_ns;
		name.end_ns = q->end_ns;
	}
	return saved_name_add(
		&name, f->shown ? "inline" : "attachment", f->suffix, &in->arena, out, err);
}

static void api_query_answer(struct web *w, struct http_in *in, struct http_out *out,
	const struct render_format *f, struct query_options *qo, struct render_options *ro,
	struct api_report *report)
{
	struct answering x = { in, out };
	size_t headers_n = out->headers_n;
	struct query *q = NULL;
	struct notices notices;
	struct err err;
	enum err_code rc;

	qo->keep_sample_labels = f->sample_labels;
	qo->rows_only = f == RENDER_JSON;
	qo->hints = true;
	qo->limits = in->user.limits;
	if ((rc = api_report_run_base(w, in, out, report, qo, &err)) ||
		(rc = query_run_cancelable(w->o.engine, qo, &in->canceled, &q, &err))) {
		out->headers_n = headers_n;
		api_query_fail(out, f, rc, &err);
		return;
	}
	/* All reading is done before the first piece is sent, so all warnings are known now. */
	notices = notices_of(query_result(q));
	rc = notices_add_header(&notices, &in->arena, out, &err);
	headers_n = out->headers_n;
	if (rc)
		goto out;
	ro->arena = query_arena(q);
	ro->flush = api_flush;
	ro->flush_ctx = &x;
	ro->canceled = query_stop_flag(q);
	out->content_type = f->content_type;
	out->encoded = f->encoded;
	if (f->suffix && (rc = api_query_add_name(in, out, f, qo, query_result(q), &err)))
		goto out;
	rc = f == RENDER_JSON ? api_write_json(out, query_result(q), ro, &err) :
							f->write(query_result(q), ro, &out->body, &err);
	if (rc == ERR_CANCELED)
		rc = query_stopped(q, "rendering", &err);
out:
	query_close(q);
	if (!rc)
		return;
	if (!http_is_streaming(out))
		out->headers_n = headers_n;
	api_query_fail(out, f, rc, &err);
}

static void api_handle(struct web *w, struct http_in *in, struct http_out *out,
	enum err_code (*read_times)(const struct http_in *in, struct query_options *q, struct err *err))
{
	struct query_options q = { 0 };
	struct render_options r = { 0 };
	struct file_request files;
	struct api_report report;
	const struct render_format *f = NULL;
	struct regex *search = NULL;
	struct err err = { 0 };
	enum err_code rc = files_read_request(w, in, &files, &err);

	q.files = &files.finder;
	if (!rc && !(f = api_find_format(in, &err)))
		rc = ERR_INVALID;
	if (!rc)
		rc = api_read_common(in, &q, &r, &err);
	if (!rc)
		rc = read_times(in, &q, &err);
	if (!rc)
		rc = api_check_call_site(f, &q, &r, &err);
	if (!rc)
		rc = api_read_search(in, f, &q, &search, &err);
	r.search = search;
	if (!rc)
		rc = api_report_read(in, &report, &err);
	if (!rc)
		rc = api_check_report(f, &q, &report, &r, &err);
	if (!rc)
		rc = api_read_types(in, f, &q, &err);
	if (!rc)
		rc = api_read_profiles(in, f, &q, &r, &err);
	if (rc)
		api_query_fail(out, f, rc, &err);
	else
		api_query_answer(w, in, out, f, &q, &r, &report);
	regex_free(search);
}

void api_query(struct web *w, struct http_in *in, struct http_out *out)
{
	api_handle(w, in, out, api_read_instant);
}

void api_query_range(struct web *w, struct http_in *in, struct http_out *out)
{
	api_handle(w, in, out, api_read_range);
}
