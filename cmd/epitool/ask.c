#include "cmd/epitool/ask.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/net/percent.h"
#include "base/quote.h"
#include "cmd/epitool/local.h"
#include "cmd/epitool/progress.h"
#include "cmd/epitool/times.h"
#include "promql/syntax/parse.h"
#include "web/render/notices.h"

static enum err_code ask_read_time(
	const char *name, const char *text, int64_t now_ns, int64_t *out, struct err *err)
{
	enum err_code rc = time_arg_parse(str_of(text), now_ns, out, err);

	return rc ? err_wrap(err, rc, "--%s", name) : ERR_OK;
}

enum err_code ask_check(struct question *q, struct err *err)
{
	int64_t now = clock_now_ns();
	enum err_code rc;

	q->has_time = q->time[0];
	q->has_span = q->start[0];
	if (q->has_time && q->has_span)
		return err_set(err, ERR_INVALID, "either --time, or --start and --end");
	if (q->end[0] && !q->has_span)
		return err_set(err, ERR_INVALID, "--end is given with --start");
	if (q->step[0] && !q->has_span)
		return err_set(err, ERR_INVALID, "--step is given with --start");
	if (q->analyze && !q->explain)
		return err_set(err, ERR_INVALID, "--analyze is given with --explain");
	if (q->has_time && (rc = ask_read_time("time", q->time, now, &q->time_ns, err)))
		return rc;
	if (!q->has_span)
		return ERR_OK;
	q->end_ns = now;
	if ((rc = ask_read_time("start", q->start, now, &q->start_ns, err)) ||
		(q->end[0] && (rc = ask_read_time("end", q->end, now, &q->end_ns, err))))
		return rc;
	if (q->end_ns < q->start_ns)
		return err_set(err, ERR_INVALID, "--end is before --start");
	if (q->step[0] && (rc = duration_parse(str_of(q->step), &q->step_ns, err)))
		return err_wrap(err, rc, "--step");
	if (q->step[0] && q->step_ns <= 0)
		return err_set(err, ERR_INVALID, "--step is more than 0");
	return ERR_OK;
}

enum err_code question_report_check(struct question_report *r, struct err *err)
{
	bool any_base = (r->base && r->base[0]) || (r->diff_base && r->diff_base[0]);
	enum err_code rc;

	r->options = pprof_options_default;
	for (size_t i = 0; i < PPROF_OPTIONS; i++) {
		const struct pprof_option *row = &pprof_option_rows[i];

		if (r->values[i] && (rc = pprof_options_set(&r->options, row, str_of(r->values[i]), err)))
			return err_wrap(err, rc, "--%s", row->name);
	}
	if (r->base && r->base[0] && r->diff_base && r->diff_base[0])
		return err_set(err, ERR_INVALID, "either --base or --diff_base");
	if (r->normalize && !any_base)
		return err_set(err, ERR_INVALID, "--normalize is given with --base or --diff_base");
	return ERR_OK;
}

static void ask_add_param(struct buf *form, const char *name, const char *value)
{
	buf_printf(form, "&%s=", name);
	percent_encode(form, str_of(value), PERCENT_VALUE);
}

static void ask_add_report(struct buf *form, const struct question_report *r)
{
	for (size_t i = 0; i < PPROF_OPTIONS; i++)
		if (r->values[i])
			ask_add_param(form, pprof_option_rows[i].name, r->values[i]);
	if (r->base && r->base[0])
		ask_add_param(form, "base", r->base);
	if (r->diff_base && r->diff_base[0])
		ask_add_param(form, "diff_base", r->diff_base);
	if (r->normalize)
		buf_add_cstr(form, "&normalize=true");
}

static void ask_add_time(struct buf *form, const char *name, int64_t ns)
{
	buf_printf(form, "&%s=", name);
	time_arg_print(form, ns);
}

void ask_add_notice(struct buf *said, bool is_info, struct str text)
{
	buf_printf(said, "epitool: %s: ", is_info ? "info" : "warning");
	buf_add_printable(said, text);
	buf_add_char(said, '\n');
}

static void ask_add_header(struct buf *said, struct str header)
{
	struct buf text = { 0 };
	bool is_info;

	while (notices_read(&header, &is_info, &text)) {
		ask_add_notice(said, is_info, buf_str(&text));
		buf_clear(&text);
	}
	buf_release(&text);
}

static enum err_code question_ask_server(const struct question *q, const char *text,
	struct buf *answer, struct buf *said, struct err *err)
{
	struct buf form = { 0 }, warning = { 0 };
	struct client_request r = { .content_type = "application/x-www-form-urlencoded",
		.warning = &warning };
	enum err_code rc;

	buf_add_cstr(&form, "query=");
	percent_encode(&form, str_of(text), PERCENT_VALUE);
	if (q->has_time)
		ask_add_time(&form, "time", q->time_ns);
	if (q->has_span) {
		ask_add_time(&form, "start", q->start_ns);
		ask_add_time(&form, "end", q->end_ns);
	}
	if (q->step_ns)
		ask_add_time(&form, "step", q->step_ns);
	if (q->limit)
		buf_printf(&form, "&limit=%llu", (unsigned long long)q->limit);
	if (q->max_nodes)
		buf_printf(&form, "&max_nodes=%llu", (unsigned long long)q->max_nodes);
	buf_printf(&form, "&format=%s&timeout=%lldms", q->format,
		(long long)(q->client.timeout_ns / NS_PER_MS));
	if (q->analyze)
		buf_add_cstr(&form, "&analyze=1");
	if (q->report)
		ask_add_report(&form, q->report);
	r.path = q->explain ? "/api/v1/explain_query" :
		q->step_ns      ? "/api/v1/query_range" :
						  "/api/v1/query";
	r.body = buf_str(&form);
	rc = buf_failed(&form) ? err_nomem(err, "query") : client_send(&q->client, &r, answer, err);
	ask_add_header(said, buf_str(&warning));
	buf_release(&warning);
	buf_release(&form);
	return rc;
}

enum err_code question_ask(
	const struct question *q, const char *text, struct buf *answer, struct err *err)
{
	struct buf said = { 0 };
	enum err_code rc;

	progress_begin(q->data[0] ? "reading" : "waiting for the answer");
	rc = q->data[0] ? local_ask(q, text, answer, &said, err) :
					  question_ask_server(q, text, answer, &said, err);
	progress_end();
	fprintf(stderr, STR_FMT, STR_ARG(buf_str(&said)));
	if (!rc && buf_failed(&said))
		rc = err_nomem(err, "warnings");
	buf_release(&said);
	return rc;
}

/* Splits "3:14: message" into its place and the message. */
static bool ask_split_position(const char *msg, unsigned long *line, unsigned long *column)
{
	char *end;

	*line = strtoul(msg, &end, 10);
	if (end == msg || *end != ':')
		return false;
	msg = end + 1;
	*column = strtoul(msg, &end, 10);
	return end != msg && *end == ':' && *line && *column;
}

void ask_print_error(const char *text, const struct err *err)
{
	struct query_error where = { .msg = "" };
	unsigned long line, column;
	struct buf shown = { 0 }, msg = { 0 };
	const char *at = text;

	buf_add_printable(&msg, str_of(err->msg));
	fprintf(stderr, "epitool: error: " STR_FMT "\n", STR_ARG(buf_str(&msg)));
	buf_release(&msg);
	if (!text || !ask_split_position(err->msg, &line, &column))
		return;
	while (--line && at)
		if ((at = strchr(at, '\n')))
			at++;
	if (!at)
		return;
	while (--column && *at)
		for (at++; ((unsigned char)*at & 0xc0) == 0x80;)
			at++;
	where.at.start = (uint32_t)(at - text);
	query_error_print(&shown, str_of(text), &where);
	while (shown.len && shown.ptr[shown.len - 1] == ' ') /* the message's place */
		shown.len--;
	fprintf(stderr, STR_FMT "\n", STR_ARG(buf_str(&shown)));
	buf_release(&shown);
}
