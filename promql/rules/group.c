/*
 * One turn of a group: evaluates its rules in order. Each sees what those before it wrote.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/net/percent.h"
#include "promql/rules/manager_internal.h"
#include "promql/rules/notify/notifier.h"
#include "promql/rules/template/template.h"

METRIC_COUNTER(
	evaluations, "epimetheus_rule_evaluations_total", "Evaluations of rules.", "rule_group");
METRIC_COUNTER(failures, "epimetheus_rule_evaluation_failures_total",
	"Evaluations of rules that failed.", "rule_group");
METRIC_HISTOGRAM(evaluation_seconds, "epimetheus_rule_evaluation_duration_seconds",
	"Time an evaluation of a rule takes.", NULL);
METRIC_COUNTER(iterations, "epimetheus_rule_group_iterations_total",
	"Turns of groups of rules, missed ones too.", "rule_group");
METRIC_HISTOGRAM(
	group_seconds, "epimetheus_rule_group_duration_seconds", "Time a turn of a group takes.", NULL);
METRIC_GAUGE(last_seconds, "epimetheus_rule_group_last_duration_seconds",
	"Time the last turn of a group took.", "rule_group");
METRIC_GAUGE(last_time, "epimetheus_rule_group_last_evaluation_timestamp_seconds",
	"When the last turn of a group was.", "rule_group");
METRIC_GAUGE(last_samples, "epimetheus_rule_group_last_evaluation_samples",
	"Series that the last turn of a group wrote.", "rule_group");

/* ---- turns ---- */

int64_t group_next_turn(const struct rule_group *g, int64_t t_ns)
{
	uint64_t hash = hash_bytes(g->name.ptr, g->name.len, hash_bytes(g->file.ptr, g->file.len, 0));
	int64_t slots = g->interval_ns / NS_PER_MS, phase;

	assert(g->interval_ns > 0);
	phase = slots > 0 ? (int64_t)(hash % (uint64_t)slots) * NS_PER_MS : 0;
	return t_ns - (t_ns - phase) % g->interval_ns + g->interval_ns;
}

/* ---- links ---- */

/*
 * The labels of the expression's element: without the alert's name and the labels of rule and
 * group.
 */
static void group_print_element(struct buf *out, const struct rule *r, struct labels labels)
{
	struct labels_builder b;
	struct labels element;
	struct arena a;

	arena_init(&a, 0);
	labels_builder_init(&b, &a, labels);
	labels_builder_del(&b, STR("alertname"));
	for (size_t i = 0; i < r->labels_n; i++)
		labels_builder_del(&b, r->labels[i].name);
	for (size_t i = 0; i < r->group->labels.n; i++)
		labels_builder_del(&b, r->group->labels.v[i].name);
	if (!labels_builder_build(&b, &element, NULL) && element.n)
		labels_print(out, element);
	arena_release(&a);
}

/* A time of evaluation as a parameter of a link, in seconds. */
static void group_print_time(struct buf *out, const char *name, int64_t t_ns)
{
	buf_printf(
		out, "&%s=%" PRId64 ".%03d", name, t_ns / NS_PER_S, (int)(t_ns % NS_PER_S / NS_PER_MS));
}

void rule_link_print(struct buf *out, struct str external_url, const struct rule *r,
	struct labels labels, int64_t t_ns, int64_t since_ns)
{
	struct buf match = { 0 };

	buf_add_str(out, external_url);
	template_link_print(out, r->expr);
	group_print_time(out, "at", t_ns - r->group->query_offset_ns);
	group_print_time(out, "since", since_ns - r->group->query_offset_ns);
	group_print_element(&match, r, labels);
	if (match.len) {
		buf_add_cstr(out, "&match=");
		percent_encode(out, buf_str(&match), PERCENT_FORM);
	}
	buf_release(&match);
}

/* ---- alerts ---- */

struct group_turn {
	struct group_state *g;
	struct rule_manager *m;
	struct rule_state *r;
	int64_t t_ns; /* of the turn */
	int64_t at_ns; /* of queries and of what is written: query_offset earlier */
	size_t written;
};

static enum err_code group_turn_run_query(
	struct group_turn *g, struct str text, struct query **out, struct err *err)
{
	const struct query_options o = {
		.text = text, .t_ns = g->at_ns, .timeout_ns = g->g->group->interval_ns
	};

	return query_run_cancelable(g->m->o.engine, &o, &g->m->stop, out, err);
}

/* The template function `query`. */
static enum err_code group_answer_template(void *ctx, struct arena *a, struct str expr,
	struct template_sample **out, size_t *n, struct err *err)
{
	const struct result *r;
	struct query *q;
	enum err_code rc;

	if ((rc = group_turn_run_query(ctx, expr, &q, err)))
		return rc;
	r = query_result(q);
	*n = r->type == RESULT_VECTOR ? r->n : r->type == RESULT_SCALAR ? 1 : 0;
	if (!(*out = arena_array(a, struct template_sample, *n + 1)))
		rc = arena_fail(a, "template", err);
	else if (r->type == RESULT_SCALAR)
		(*out)[0].value = r->scalar;
	else if (r->type != RESULT_VECTOR && r->n)
		rc = err_set(err, ERR_INVALID, "query result is not a vector or scalar");
	for (size_t i = 0; r->type == RESULT_VECTOR && i < r->n && !rc; i++) {
		(*out)[i].value = r->vector[i].value;
		(*out)[i].labels = labels_dup(a, r->vector[i].metric);
		if (r->vector[i].metric.n && !(*out)[i].labels.v)
			rc = arena_fail(a, "template", err);
	}
	query_close(q);
	return rc;
}

static enum err_code group_elements_of(
	struct query *q, struct alert_element **out, size_t *n, struct err *err)
{
	const struct result *r = query_result(q);
	struct arena *a = query_arena(q);
	struct labels_builder b;
	enum err_code rc;

	if (r->type == RESULT_SCALAR || (r->type != RESULT_VECTOR && r->n))
		return err_set(err, ERR_INVALID, "an alert's expression must give costs");
	*n = r->n;
	if (!(*out = arena_array(a, struct alert_element, r->n + 1)))
		return arena_fail(a, "rules", err);
	for (size_t i = 0; i < r->n; i++) {
		labels_builder_init(&b, a, r->vector[i].metric);
		labels_builder_del(&b, STR(LABEL_NAME));
		if ((rc = labels_builder_build(&b, &(*out)[i].labels, err)))
			return rc;
		(*out)[i].value = r->vector[i].value;
	}
	return ERR_OK;
}

/* Writes ALERTS and ALERTS_FOR_STATE of alerts that are pending or fire. */
static enum err_code group_turn_write_alerts(struct group_turn *g, struct err *err)
{
	struct label state = { STR("alertstate"), { 0 } };
	const struct alert *a;
	struct writing w;
	enum err_code rc = ERR_OK;

	writing_init(&w, g->m);
	for (size_t i = 0; (a = alert_state_at(g->r->alerts, i)) && !rc; i++) {
		if (a->phase == ALERT_INACTIVE)
			continue;
		state.value = a->phase == ALERT_FIRING ? STR("firing") : STR("pending");
		if (!(rc = writing_add(&w, ALERTS_NAME, a->labels, &state, 1, g->at_ns, 1, err)))
			rc = writing_add(&w, ALERTS_FOR_STATE_NAME, a->labels, NULL, 0, g->at_ns,
				(double)(a->active_at_ns / NS_PER_S), err);
	}
	g->written += w.n;
	if (!rc)
		rc = writing_commit(&w, &g->r->seen, g->at_ns, err);
	writing_release(&w);
	return rc;
}

/* Hands the alerts that are due to the notifier, which copies them. */
static enum err_code group_turn_send_alerts(struct group_turn *g, struct err *err)
{
	const struct rule *r = g->r->rule;
	struct notification *v;
	struct buf link = { 0 };
	struct arena arena;
	struct alert *a;
	size_t n = 0, all = 0;
	enum err_code rc = ERR_OK;

	while (alert_state_at(g->r->alerts, all))
		all++;
	if (!g->m->o.notifier || !all || g->g->past || !rule_manager_may(g->m))
		return ERR_OK;
	arena_init(&arena, EVALUATION_BYTES_MAX);
	if (!(v = arena_array(&arena, struct notification, all)))
		rc = arena_fail(&arena, "rules", err);
	for (size_t i = 0; !rc && (a = alert_state_at(g->r->alerts, i)); i++) {
		if (!alert_due(a, g->t_ns, g->m->o.resend_delay_ns, r->group->interval_ns))
			continue;
		buf_clear(&link);
		rule_link_print(&link, g->m->external_url, r, a->labels, g->t_ns, a->active_at_ns);
		v[n] = (struct notification){ .labels = a->labels,
			.annotations = a->annotations,
			.starts_ns = a->fired_at_ns,
			.ends_ns = a->resolved_at_ns ? a->resolved_at_ns : a->valid_until_ns,
			.generator_url = str_dup(&arena, buf_str(&link)) };
		if (!v[n++].generator_url.ptr)
			rc = arena_fail(&arena, "rules", err);
	}
	if (!rc && n)
		notifier_send(g->m->o.notifier, v, n);
	buf_release(&link);
	arena_release(&arena);
	return rc;
}

static enum err_code group_turn_take_alerts(struct group_turn *g, struct query *q, struct err *err)
{
	struct template_data data = { .external_labels = g->m->external_labels,
		.external_url = g->m->external_url,
		.query = group_answer_template,
		.ctx = g };
	struct alert_element *v = NULL;
	size_t n = 0;
	enum err_code rc, sent;

	if ((rc = group_elements_of(q, &v, &n, err)))
		return rc;
	if ((rc = alert_state_take(g->r->alerts, &g->g->lock, v, n, g->t_ns, &data, err)))
		return rc;
	if (!g->r->restored) {
		rule_restore(g->g, g->r, g->t_ns);
		g->r->restored = true;
	}
	rc = group_turn_write_alerts(g, err);
	sent = group_turn_send_alerts(g, rc ? NULL : err); /* even if the disk is full */
	return rc ? rc : sent;
}

/* ---- rules ---- */

static enum err_code group_turn_evaluate(struct group_turn *g, struct err *err)
{
	struct query *q;
	size_t n = 0;
	enum err_code rc;

	if ((rc = group_turn_run_query(g, g->r->rule->expr, &q, err)))
		return rc;
	if (g->r->alerts)
		rc = group_turn_take_alerts(g, q, err);
	else
		rc = record_result(g->m, g->r, q, g->at_ns, &n, err);
	g->written += n;
	query_close(q);
	return rc;
}

static void group_turn_note(
	struct group_turn *g, enum err_code rc, const struct err *err, int64_t took_ns)
{
	struct rule_state *r = g->r;
	const char *label = g->g->label.ptr;

	metric_add(&evaluations, label, 1);
	metric_observe(&evaluation_seconds, NULL, (double)took_ns / 1e9);
	if (rc) {
		metric_add(&failures, label, 1);
		log_warn("rules", "rule evaluation failed", LOG_STR("file", g->g->group->file),
			LOG_STR("group", g->g->group->name), LOG_STR("rule", r->rule->name), LOG_E(err));
	}
	mutex_lock(&g->g->lock);
	r->health = rc ? RULE_ERR : RULE_OK;
	buf_clear(&r->last_error);
	if (rc)
		buf_add_cstr(&r->last_error, err->msg);
	r->last_evaluation_ns = g->t_ns;
	r->evaluation_ns = took_ns;
	mutex_unlock(&g->g->lock);
}

/* A time that only grows older would look like a group that hangs. */
void group_show_elsewhere(const struct group_state *g)
{
	metric_set(&last_seconds, g->label.ptr, NAN);
	metric_set(&last_time, g->label.ptr, NAN);
	metric_set(&last_samples, g->label.ptr, NAN);
}

/* The server is closing, or somebody else may evaluate by now. */
static bool group_is_cut(const struct group_turn *g)
{
	return atomic_load(&g->m->stop) || !rule_manager_may(g->m);
}

bool group_evaluate(struct group_state *g, int64_t t_ns)
{
	struct group_turn x = {
		.g = g, .m = g->manager, .t_ns = t_ns, .at_ns = t_ns - g->group->query_offset_ns
	};
	int64_t began = clock_monotonic_ns(), start, took;
	const char *label = g->label.ptr;
	struct err err;
	enum err_code rc;

	for (size_t i = g->from; i < g->rules_n; i++) {
		x.r = &g->rules[i];
		err.msg[0] = '\0';
		start = clock_monotonic_ns();
		g->from = i;
		if (group_is_cut(&x) || ((rc = group_turn_evaluate(&x, &err)) && group_is_cut(&x)))
			return false; /* not the rule's fault */
		if (!rc && !x.m->o.manual)
			leftover_turn(x.m, x.r, g->past ? clock_now_ns() : x.t_ns, x.at_ns);
		group_turn_note(&x, rc, &err, clock_monotonic_ns() - start);
	}
	g->from = 0;
	took = clock_monotonic_ns() - began;
	metric_add(&iterations, label, 1);
	metric_observe(&group_seconds, NULL, (double)took / 1e9);
	metric_set(&last_seconds, label, (double)took / 1e9);
	metric_set(&last_time, label, (double)t_ns / 1e9);
	metric_set(&last_samples, label, (double)x.written);
	mutex_lock(&g->lock);
	g->iterations++;
	g->last_evaluation_ns = t_ns;
	g->evaluation_ns = took;
	mutex_unlock(&g->lock);
	return true;
}
