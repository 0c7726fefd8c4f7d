/*
 * Endpoints that every Prometheus has: exemplars, of which there are none, and numeric series for
 * another Prometheus to scrape.
 */
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/quote.h"
#include "promql/rules/report.h"
#include "promql/syntax/check.h"
#include "scrape/config/config.h"
#include "tsdb/columns/number_chunk.h"
#include "web/api/handlers.h"
#include "web/api/view.h"
#include "web/render/notices.h"
#include "web/router/envelope.h"

/* ---- exemplars ---- */

/*
 * Checks the query, so that a wrong one gets an error. Times are not checked: Grafana sends
 * milliseconds to find out whether the endpoint exists.
 */
void api_query_exemplars(struct web *w, struct http_in *in, struct http_out *out)
{
	struct parsed *parsed = NULL;
	struct json j;
	struct err err;
	enum err_code rc = parse_query(&in->arena, http_param(in, "query"), &parsed, NULL, &err);

	(void)w;
	if (!rc)
		rc = check_query(parsed, NULL, &err);
	parsed_release(parsed);
	if (rc) {
		api_fail(out, rc, &err);
		return;
	}
	api_begin(out, &j);
	json_array(&j);
	json_array_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}

/* ---- federation ---- */

struct federated {
	struct labels labels;
	int64_t ts_ns;
	double value;
};

struct federation {
	struct view view;
	struct labels external; /* added unless the series has the label */
	struct federated *v;
	size_t n, cap;
	int64_t min_ns, max_ns;
	bool timeless; /* without times, so that ended series are stale at the next scrape */
	bool quotes; /* the client reads names in quotes; for others what is no word becomes _ */
};

#define QUOTES_ASKED "escaping=allow-utf-8"

static bool api_asks_for_quotes(struct str accept)
{
	return str_find(accept, STR(QUOTES_ASKED)) >= 0;
}

/* is_plain: it needs no quotes. */
static void api_prometheus_add_name(struct buf *out, struct str name, bool is_plain, bool quotes)
{
	if (quotes && !is_plain) {
		buf_add_quoted(out, name);
		return;
	}
	if (!is_plain && name.len && name.ptr[0] >= '0' && name.ptr[0] <= '9')
		buf_add_char(out, '_');
	for (size_t i = 0; i < name.len; i++) {
		struct str one = { name.ptr + i, 1 };
		bool digit = name.ptr[i] >= '0' && name.ptr[i] <= '9';

		/* One for each character, not for each of its bytes. */
		if (is_plain || digit || label_name_valid(one))
			buf_add_char(out, name.ptr[i]);
		else if (((unsigned char)name.ptr[i] & 0xc0) != 0x80)
			buf_add_char(out, '_');
	}
}

static void api_add_series_name(struct buf *out, const struct federation *f, struct str name)
{
	api_prometheus_add_name(out, name, series_name_valid(name), f->quotes);
}

static enum err_code api_add_latest(
	struct federation *f, const struct db_series *s, struct err *err)
{
	struct arena *a = &f->view.in->arena;
	int64_t *ts_ns;
	double *values;
	enum err_code rc;
	size_t n;

	if ((rc = db_numbers(f->view.q, s, f->min_ns, f->max_ns, a, &ts_ns, &values, &n, err)))
		return rc;
	if (n == 0 || number_is_stale(values[n - 1]))
		return ERR_OK;
	if (!arena_array_room(a, &f->v, f->n, 1, &f->cap))
		return arena_fail(a, "federation", err);
	f->v[f->n++] = (struct federated){ s->labels, ts_ns[n - 1], values[n - 1] };
	return ERR_OK;
}

static enum err_code api_select_numbers(
	struct federation *f, const struct selector *s, struct err *err)
{
	struct type_pattern pattern;
	struct db_series *series;
	struct matcher *m;
	size_t m_n, n;
	enum err_code rc;

	if ((rc = view_resolve(&f->view, s, &m, &m_n, &pattern, err)) ||
		(rc = db_select_kinds(f->view.q, DB_NUMBERS, m, m_n, &f->view.in->arena, &series, &n, err)))
		return rc;
	for (size_t i = 0; i < n && !rc; i++)
		rc = api_add_latest(f, &series[i], err);
	return rc;
}

static int api_by_name_then_labels(const void *a, const void *b)
{
	const struct federated *l = a, *r = b;
	int order = str_cmp(
		labels_get(l->labels, STR(LABEL_NAME)), labels_get(r->labels, STR(LABEL_NAME)));

	return order ? order : labels_cmp(l->labels, r->labels);
}

/* The text format escapes these three and nothing else. */
static void api_add_label(
	struct buf *out, const struct federation *f, struct str name, struct str value, bool first)
{
	buf_add_char(out, first ? '{' : ',');
	api_prometheus_add_name(out, name, label_name_valid(name), f->quotes);
	buf_add_cstr(out, "=\"");
	for (size_t i = 0; i < value.len; i++) {
		char c = value.ptr[i];

		if (c == '\\' || c == '"')
			buf_add_char(out, '\\');
		if (c == '\n')
			buf_add_cstr(out, "\\n");
		else
			buf_add_char(out, c);
	}
	buf_add_char(out, '"');
}

static bool api_has_label(struct labels ls, struct str name)
{
	for (size_t i = 0; i < ls.n; i++)
		if (str_eq(ls.v[i].name, name))
			return true;
	return false;
}

static void api_add_line(
	struct buf *out, const struct federation *f, const struct federated *federated)
{
	struct str name = labels_get(federated->labels, STR(LABEL_NAME));
	bool first = !f->quotes || series_name_valid(name);

	if (!first) /* {"the.name",a="b"} */
		buf_add_char(out, '{');
	api_add_series_name(out, f, name);
	for (size_t i = 0; i < federated->labels.n; i++) {
		if (str_is(federated->labels.v[i].name, LABEL_NAME))
			continue;
		api_add_label(out, f, federated->labels.v[i].name, federated->labels.v[i].value, first);
		first = false;
	}
	for (size_t i = 0; i < f->external.n; i++) {
		if (api_has_label(federated->labels, f->external.v[i].name))
			continue;
		api_add_label(out, f, f->external.v[i].name, f->external.v[i].value, first);
		first = false;
	}
	/* Empty, so that a scraper with honor_labels does not add its own. */
	if (!api_has_label(federated->labels, STR("instance")) &&
			!api_has_label(f->external, STR("instance"))) {
		api_add_label(out, f, STR("instance"), STR(""), first);
		first = false;
	}
	buf_add_cstr(out, first ? " " : "} ");
	buf_add_double(out, federated->value);
	if (!f->timeless) {
		buf_add_char(out, ' ');
		buf_add_i64(out, federated->ts_ns / NS_PER_MS);
	}
	buf_add_char(out, '\n');
}

static void api_print(struct buf *out, struct federation *f)
{
	struct str name = STR(""), last = STR("");

	if (f->n)
		qsort(f->v, f->n, sizeof(*f->v), api_by_name_then_labels);
	for (size_t i = 0; i < f->n; i++) {
		if (i && labels_eq(f->v[i - 1].labels, f->v[i].labels))
			continue; /* selected by two match[] */
		name = labels_get(f->v[i].labels, STR(LABEL_NAME));
		if (!name.len)
			continue;
		if (!str_eq(name, last)) {
			buf_add_cstr(out, "# TYPE ");
			api_add_series_name(out, f, name);
			buf_add_cstr(out, " untyped\n");
		}
		last = name;
		api_add_line(out, f, &f->v[i]);
	}
}

static enum err_code api_select_named(struct federation *f, struct str name, struct err *err)
{
	struct db_series *series;
	struct matcher m;
	enum err_code rc;
	size_t n = 0;

	if ((rc = matcher_init(&m, MATCH_EQ, STR(LABEL_NAME), name, err)))
		return rc;
	rc = db_select_kinds(f->view.q, DB_NUMBERS, &m, 1, &f->view.in->arena, &series, &n, err);
	for (size_t i = 0; !rc && i < n; i++)
		rc = api_add_latest(f, &series[i], err);
	matcher_release(&m);
	return rc;
}

/*
 * The numbers that rules record. The lookback is longer by the group's interval, so that a rule
 * evaluated once an hour has a value.
 */
static enum err_code api_select_recorded(
	struct federation *f, const struct rules_snapshot *s, int64_t lookback_ns, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < s->groups_n; i++) {
		const struct group_info *g = &s->groups[i];

		f->min_ns = f->max_ns - lookback_ns - g->group->interval_ns;
		for (size_t k = 0; k < g->rules_n && !rc; k++)
			if (g->rules[k].rule->kind == RULE_RECORD_COSTS)
				rc = api_select_named(f, g->rules[k].rule->name, err);
	}
	return rc;
}

static enum err_code api_select_matched(struct federation *f, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < f->view.matches_n && !rc; i++)
		rc = api_select_numbers(f, &f->view.matches[i]->root->selector, err);
	return rc;
}

/* Without rules there is nothing. */
static enum err_code api_answer_recorded(
	struct federation *f, struct web *w, struct http_in *in, struct err *err)
{
	struct rules_report r;
	enum err_code rc;

	if ((rc = api_rules_report(w, &in->arena, &r, err)))
		return rc;
	if (!r.rules.groups_n)
		goto out;
	for (size_t i = 0; i < r.rules.groups_n; i++)
		if (f->min_ns > f->max_ns - w->o.lookback_ns - r.rules.groups[i].group->interval_ns)
			f->min_ns = f->max_ns - w->o.lookback_ns - r.rules.groups[i].group->interval_ns;
	rc = view_open_at(&f->view, w, in, f->min_ns, f->max_ns, err);
	if (!rc)
		rc = api_select_recorded(f, &r.rules, w->o.lookback_ns, err);
out:
	rules_snapshot_release(&r.rules);
	return rc;
}

static void api_answer_numbers(
	struct web *w, struct http_in *in, struct http_out *out, bool recorded)
{
	struct federation f = {
		.max_ns = clock_now_ns(), .timeless = recorded, .quotes = api_asks_for_quotes(in->accept)
	};
	struct config *config = w->o.config ? w->o.config(w->o.ctx) : NULL;
	struct notices notices;
	struct err err;
	enum err_code rc;

	f.min_ns = f.max_ns - w->o.lookback_ns;
	if (config)
		f.external = config->global.external_labels;
	if (recorded)
		rc = api_answer_recorded(&f, w, in, &err);
	else if (!(rc = view_open_at(&f.view, w, in, f.min_ns, f.max_ns, &err)))
		rc = api_select_matched(&f, &err);
	if (!rc && f.view.q) {
		notices = notices_of_querier(f.view.q);
		if (!(rc = notices_add_header(&notices, &in->arena, out, &err)))
			rc = notices_print(&notices, "# ", &in->arena, &out->body, &err);
	}
	if (rc) {
		http_text(out, api_status(rc, NULL), "%s", err.msg);
	} else {
		out->content_type = f.quotes ? "text/plain; version=1.0.0; charset=utf-8; " QUOTES_ASKED :
									   "text/plain; version=0.0.4; charset=utf-8";
		api_print(&out->body, &f);
	}
	view_close(&f.view);
	config_unref(config);
}

void api_federate(struct web *w, struct http_in *in, struct http_out *out)
{
	api_answer_numbers(w, in, out, false);
}

void api_recorded(struct web *w, struct http_in *in, struct http_out *out)
{
	api_answer_numbers(w, in, out, true);
}
