/* Rules, alerts and Alertmanagers, in Prometheus's form. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/quote.h"
#include "promql/rules/notify/notifier.h"
#include "promql/rules/report.h"
#include "promql/rules/saved/saved_rules.h"
#include "web/api/handlers.h"
#include "web/api/view.h"
#include "web/router/envelope.h"

/* ---- values ---- */

/* Go's %e with as few digits as read back the same. */
static void api_rules_add_value(struct json *j, double value)
{
	char text[64];
	int digits = 0;

	json_key(j, "value");
	if (!isfinite(value)) {
		json_cstr(j, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
		return;
	}
	do
		snprintf(text, sizeof(text), "%.*e", digits, value);
	while (strtod(text, NULL) != value && ++digits < 17);
	json_cstr(j, text);
}

/* 0: never, which is Go's zero time. */
static void api_add_time(struct json *j, const char *key, int64_t ns)
{
	struct buf text = { 0 };

	if (ns)
		time_print_rfc3339(&text, ns);
	else
		buf_add_cstr(&text, "0001-01-01T00:00:00Z");
	json_key(j, key);
	json_str(j, buf_str(&text));
	if (buf_failed(&text))
		j->out->failed = true;
	buf_release(&text);
}

static void api_add_seconds(struct json *j, const char *key, int64_t ns)
{
	json_key(j, key);
	json_double(j, (double)ns / 1e9);
}

static void api_add_text(struct json *j, const char *key, struct str s)
{
	json_key(j, key);
	json_str(j, s);
}

static void api_add_texts(struct json *j, const char *key, const struct rule_text *r, size_t n)
{
	json_key(j, key);
	json_object(j);
	for (size_t i = 0; i < n; i++) {
		json_key_str(j, r[i].name);
		json_str(j, r[i].text);
	}
	json_object_end(j);
}

static const char *api_phase_name(enum alert_phase p)
{
	return p == ALERT_FIRING ? "firing" : p == ALERT_PENDING ? "pending" : "inactive";
}

static void api_add_alert(struct json *j, const struct alert_info *a)
{
	json_object(j);
	json_key(j, "labels");
	labels_write_json(j, a->labels);
	json_key(j, "annotations");
	labels_write_json(j, a->annotations);
	api_add_text(j, "state", str_of(api_phase_name(a->phase)));
	if (a->active_at_ns)
		api_add_time(j, "activeAt", a->active_at_ns);
	if (a->keep_firing_since_ns)
		api_add_time(j, "keepFiringSince", a->keep_firing_since_ns);
	api_rules_add_value(j, a->value);
	json_object_end(j);
}

/* ---- rules ---- */

struct asked {
	const struct http_in *in; /* NULL: all are wanted */
	bool alerts, records; /* kinds of rules */
	bool without_alerts;
	struct view matches; /* match[] alone */
	uint64_t group_limit; /* 0: none */
	struct str from; /* the token of the first group; empty: the first that there is */
};

/* True without values of the parameter, or if one of them is equal. */
static bool api_wanted(const struct http_in *in, const char *name, struct str value)
{
	struct str one;
	size_t at = 0;
	bool any = false;

	while (in && http_next_param(in, name, &at, &one)) {
		if (str_eq(one, value))
			return true;
		any = true;
	}
	return !any;
}

/* Labels as in the file, templates not expanded; a rule has no __name__. */
static struct str api_label_of(const struct rule *r, struct str name)
{
	for (size_t i = 0; i < r->labels_n; i++)
		if (str_eq(r->labels[i].name, name))
			return r->labels[i].text;
	return STR("");
}

static bool api_labels_match(const struct selector *s, const struct rule *r)
{
	bool all = s->name.len == 0;

	for (size_t i = 0; i < s->matchers_n && all; i++)
		all = matcher_test(&s->matchers[i], api_label_of(r, s->matchers[i].name));
	return all;
}

static bool api_matched(const struct view *v, const struct rule *r)
{
	bool any = v->matches_n == 0;

	for (size_t i = 0; i < v->matches_n && !any; i++)
		any = api_labels_match(&v->matches[i]->root->selector, r);
	return any;
}

static bool rule_wanted(const struct asked *a, const struct rule *r)
{
	return (r->kind == RULE_ALERT ? a->alerts : a->records) &&
		api_wanted(a->in, "rule_name[]", r->name) && api_matched(&a->matches, r);
}

static void api_add_health(struct json *j, const struct rule_info *r)
{
	static const char *const names[] = {
		[RULE_UNKNOWN] = "unknown", [RULE_OK] = "ok", [RULE_ERR] = "err"
	};

	api_add_text(j, "health", str_of(names[r->health]));
	if (r->last_error.len)
		api_add_text(j, "lastError", r->last_error);
	api_add_seconds(j, "evaluationTime", r->evaluation_ns);
	api_add_time(j, "lastEvaluation", r->last_evaluation_ns);
}

static void api_add_rule(struct json *j, const struct rule_info *info, const struct asked *a)
{
	const struct rule *r = info->rule;

	json_object(j);
	if (r->kind == RULE_ALERT)
		api_add_text(j, "state", str_of(api_phase_name(info->phase)));
	api_add_text(j, "name", r->name);
	api_add_text(j, "query", r->expr_pretty);
	if (r->kind == RULE_ALERT) {
		api_add_seconds(j, "duration", r->for_ns);
		api_add_seconds(j, "keepFiringFor", r->keep_firing_for_ns);
	}
	if (r->kind == RULE_ALERT || r->labels_n)
		api_add_texts(j, "labels", r->labels, r->labels_n);
	if (r->kind == RULE_ALERT) {
		api_add_texts(j, "annotations", r->annotations, r->annotations_n);
		json_key(j, "alerts");
		json_array(j);
		for (size_t i = 0; i < info->alerts_n && !a->without_alerts; i++)
			api_add_alert(j, &info->alerts[i]);
		json_array_end(j);
	} else { /* our own: what is recorded */
		api_add_text(
			j, "records", r->kind == RULE_RECORD_PROFILES ? STR("profiles") : STR("costs"));
	}
	api_add_health(j, info);
	api_add_text(j, "type", r->kind == RULE_ALERT ? STR("alerting") : STR("recording"));
	json_object_end(j);
}

static void api_add_group(struct json *j, const struct group_info *info, const struct asked *a)
{
	const struct rule_group *g = info->group;

	json_object(j);
	api_add_text(j, "name", g->name);
	api_add_text(j, "file", g->file);
	json_key(j, "rules");
	json_array(j);
	for (size_t i = 0; i < info->rules_n; i++)
		if (rule_wanted(a, info->rules[i].rule))
			api_add_rule(j, &info->rules[i], a);
	json_array_end(j);
	api_add_seconds(j, "interval", g->interval_ns);
	api_add_seconds(j, "queryOffset", g->query_offset_ns);
	json_key(j, "limit");
	json_u64(j, g->limit);
	api_add_seconds(j, "evaluationTime", info->evaluation_ns);
	api_add_time(j, "lastEvaluation", info->last_evaluation_ns);
	json_key(j, "iterations");
	json_u64(j, info->iterations);
	json_key(j, "missedIterations");
	json_u64(j, info->missed);
	json_object_end(j);
}

void api_write_rule_group(struct json *j, const struct group_info *g)
{
	api_add_group(j, g, &(struct asked){ .alerts = true, .records = true });
}

static bool api_group_wanted(const struct asked *a, const struct group_info *g)
{
	if (!api_wanted(a->in, "file[]", g->group->file) ||
		!api_wanted(a->in, "rule_group[]", g->group->name))
		return false;
	for (size_t i = 0; i < g->rules_n; i++)
		if (rule_wanted(a, g->rules[i].rule))
			return true;
	return false;
}

static int api_by_file_then_name(const void *a, const void *b)
{
	const struct rule_group *l = ((const struct group_info *)a)->group,
							*r = ((const struct group_info *)b)->group;
	int order = str_cmp(l->file, r->file);

	return order ? order : str_cmp(l->name, r->name);
}

/* False: the answer is an error. */
static bool api_read_page(const struct http_in *in, struct http_out *out, struct asked *a)
{
	struct str limit = http_param(in, "group_limit");
	const char *why = NULL;

	a->from = http_param(in, "group_next_token");
	if (a->from.len && !limit.len)
		api_error(out, 400, "bad_data",
			"invalid parameter \"group_next_token\": group_limit needs to be present in "
			"order to paginate over the groups");
	else if (limit.len && !str_to_u64(limit, &a->group_limit))
		why = "a valid number";
	else if (limit.len && !a->group_limit)
		why = "greater than 0";
	if (why)
		api_error(out, 400, "bad_data",
			"invalid parameter \"group_limit\": group_limit needs to be %s", why);
	return !why && (limit.len || !a->from.len);
}

/* False: the answer is an error. */
static bool api_read_asked(const struct http_in *in, struct http_out *out, struct asked *a)
{
	struct str type = http_param(in, "type"), without = http_param(in, "exclude_alerts");
	static const char *const yes[] = { "1", "t", "T", "TRUE", "true", "True" },
							 *const no[] = { "0", "f", "F", "FALSE", "false", "False" };
	bool known = !without.len;

	*a = (struct asked){ .in = in,
		.alerts = !type.len || str_is(type, "alert"),
		.records = !type.len || str_is(type, "record") };
	if (!a->alerts && !a->records) {
		api_error(out, 400, "bad_data", "invalid parameter \"type\": not supported value %s",
			QUOTED(type));
		return false;
	}
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		a->without_alerts |= str_is(without, yes[i]);
		known |= str_is(without, yes[i]) || str_is(without, no[i]);
	}
	if (!known)
		api_error(out, 400, "bad_data",
			"invalid parameter \"exclude_alerts\": %s is not true or false", QUOTED(without));
	return known;
}

enum err_code api_rules_report(
	struct web *w, struct arena *a, struct rules_report *out, struct err *err)
{
	struct rule_manager *m;

	if (w->o.rules_report)
		return w->o.rules_report(w->o.ctx, a, out, err);
	*out = (struct rules_report){ .written_ns = 0 };
	m = w->o.rules ? w->o.rules(w->o.ctx) : NULL;
	return m ? rule_manager_snapshot(m, a, &out->rules, err) : ERR_OK;
}

/* False: the answer is an error. Without rules it is empty. */
static bool api_take_report(
	struct web *w, struct http_in *in, struct http_out *out, struct rules_report *r)
{
	struct err err;
	enum err_code rc;

	if ((rc = api_rules_report(w, &in->arena, r, &err))) {
		api_fail(out, rc, &err);
		return false;
	}
	if (r->rules.groups_n)
		qsort(r->rules.groups, r->rules.groups_n, sizeof(*r->rules.groups), api_by_file_then_name);
	return true;
}

/* The token of a group: the same whatever groups come and go before it. */
static void api_add_token(struct buf *out, const struct rule_group *g)
{
	uint64_t file = hash_bytes(g->file.ptr, g->file.len, 0);

	buf_printf(out, "%016" PRIx64, hash_bytes(g->name.ptr, g->name.len, file));
}

/* The first group of the page; groups_n if there is none. */
static size_t api_page_begin(const struct asked *a, const struct rules_snapshot *s)
{
	struct buf token = { 0 };
	size_t i = 0;

	for (; i < s->groups_n && a->from.len; i++) {
		buf_clear(&token);
		api_add_token(&token, s->groups[i].group);
		if (str_eq(buf_str(&token), a->from))
			break;
	}
	buf_release(&token);
	return i;
}

static void api_add_page(
	struct json *j, const struct rules_snapshot *s, size_t i, const struct asked *a)
{
	struct buf token = { 0 };
	uint64_t n = 0;

	json_key(j, "groups");
	json_array(j);
	for (; i < s->groups_n; i++) {
		if (!api_group_wanted(a, &s->groups[i]))
			continue;
		if (a->group_limit && n++ == a->group_limit) {
			api_add_token(&token, s->groups[i].group);
			break;
		}
		api_add_group(j, &s->groups[i], a);
	}
	json_array_end(j);
	if (token.len)
		api_add_text(j, "groupNextToken", buf_str(&token));
	buf_release(&token);
}

/* Who evaluates, if this server does not. In the object `data`. */
static void api_add_evaluated(struct json *j, const struct rules_report *r)
{
	if (!r->host.len)
		return;
	api_add_text(j, "evaluatedBy", r->host);
	api_add_time(j, "evaluatedAt", r->written_ns);
}

static void api_end_rules(
	const struct web *w, struct arena *a, const struct rules_report *r, struct json *j)
{
	struct str none = str_of(w->o.rules_warning ? w->o.rules_warning : ""), info = { 0 };
	struct saved_reading saved = { 0 };
	struct buf text = { 0 };
	struct err err;

	if (r->host.len) {
		buf_printf(&text, "rules are evaluated by " STR_FMT "; written at ", STR_ARG(r->host));
		time_print_rfc3339(&text, r->written_ns);
		info = buf_str(&text);
	}
	if (!none.len && w->o.saved_rules && !saved_rules_read(w->o.saved_rules, a, &saved, &err))
		none = saved.warning;
	if (none.len)
		api_end(j, &none, 1, NULL, 0);
	else
		api_end(j, r->warnings, r->warnings_n, &info, info.len > 0);
	buf_release(&text);
}

static void api_answer_rules(
	struct web *w, struct http_in *in, struct http_out *out, struct asked *a)
{
	struct rules_report r;
	struct json j;
	size_t first;

	if (!api_take_report(w, in, out, &r))
		return;
	first = api_page_begin(a, &r.rules);
	if (a->from.len && first == r.rules.groups_n) {
		api_error(out, 400, "bad_data",
			"invalid parameter \"group_next_token\": invalid group_next_token %s. were "
			"rule groups changed?",
			QUOTED(a->from));
		goto out;
	}
	api_begin(out, &j);
	json_object(&j);
	api_add_page(&j, &r.rules, first, a);
	api_add_evaluated(&j, &r);
	json_object_end(&j);
	api_end_rules(w, &in->arena, &r, &j);
out:
	rules_snapshot_release(&r.rules);
}

void api_rules(struct web *w, struct http_in *in, struct http_out *out)
{
	struct asked a;
	struct err err;
	enum err_code rc;

	if (!api_read_asked(in, out, &a) || !api_read_page(in, out, &a))
		return;
	a.matches.in = in;
	if ((rc = view_read_matches(&a.matches, &err)))
		api_fail(out, rc, &err);
	else
		api_answer_rules(w, in, out, &a);
	view_close(&a.matches);
}

void api_alerts(struct web *w, struct http_in *in, struct http_out *out)
{
	struct rules_report r;
	struct json j;

	if (!api_take_report(w, in, out, &r))
		return;
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "alerts");
	json_array(&j);
	for (size_t i = 0; i < r.rules.groups_n; i++)
		for (size_t k = 0; k < r.rules.groups[i].rules_n; k++)
			for (size_t n = 0; n < r.rules.groups[i].rules[k].alerts_n; n++)
				api_add_alert(&j, &r.rules.groups[i].rules[k].alerts[n]);
	json_array_end(&j);
	api_add_evaluated(&j, &r);
	json_object_end(&j);
	api_end_rules(w, &in->arena, &r, &j);
	rules_snapshot_release(&r.rules);
}

/* ---- Alertmanagers ---- */

static void api_add_alertmanagers(
	struct json *j, const struct alertmanager_info *a, size_t n, bool dropped)
{
	json_key(j, dropped ? "droppedAlertmanagers" : "activeAlertmanagers");
	json_array(j);
	for (size_t i = 0; i < n; i++) {
		if (a[i].dropped != dropped)
			continue;
		json_object(j);
		json_key(j, "url");
		json_str(j, a[i].url);
		if (!dropped) { /* our own: how sending goes */
			json_key(j, "lastError");
			json_str(j, a[i].last_error);
			json_key(j, "sent");
			json_u64(j, a[i].sent);
			json_key(j, "failed");
			json_u64(j, a[i].failed);
		}
		json_object_end(j);
	}
	json_array_end(j);
}

void api_alertmanagers(struct web *w, struct http_in *in, struct http_out *out)
{
	struct alertmanager_info *v = NULL;
	struct json j;
	struct err err;
	enum err_code rc;
	size_t n = 0;

	if (w->o.notifier && (rc = notifier_alertmanagers(w->o.notifier, &in->arena, &v, &n, &err))) {
		api_fail(out, rc, &err);
		return;
	}
	api_begin(out, &j);
	json_object(&j);
	api_add_alertmanagers(&j, v, n, false);
	api_add_alertmanagers(&j, v, n, true);
	json_object_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}
