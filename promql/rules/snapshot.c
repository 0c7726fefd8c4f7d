/*
 * Copies groups, rules and alerts for the API. A reload waits for readers, so the groups stay in
 * place meanwhile.
 */
#include <assert.h>

#include "promql/rules/manager_internal.h"

static enum err_code rule_snapshot_copy_alerts(
	const struct rule_state *r, struct arena *a, struct rule_info *out, struct err *err)
{
	const struct alert *from;
	struct alert_info *to;
	size_t n = 0;

	while (alert_state_at(r->alerts, n))
		n++;
	if (!(out->alerts = arena_array(a, struct alert_info, n + 1)))
		return arena_fail(a, "rules", err);
	for (size_t i = 0; i < n; i++) {
		from = alert_state_at(r->alerts, i);
		if (from->phase == ALERT_INACTIVE)
			continue;
		to = &out->alerts[out->alerts_n++];
		*to = (struct alert_info){ .phase = from->phase,
			.labels = labels_dup(a, from->labels),
			.annotations = labels_dup(a, from->annotations),
			.active_at_ns = from->active_at_ns,
			.keep_firing_since_ns = from->keep_firing_since_ns,
			.value = from->value };
		if ((from->labels.n && !to->labels.v) || (from->annotations.n && !to->annotations.v))
			return arena_fail(a, "rules", err);
	}
	return ERR_OK;
}

static enum err_code rule_snapshot_copy_rule(
	const struct rule_state *r, struct arena *a, struct rule_info *out, struct err *err)
{
	*out = (struct rule_info){ .rule = r->rule,
		.health = r->health,
		.last_evaluation_ns = r->last_evaluation_ns,
		.evaluation_ns = r->evaluation_ns };
	if (r->last_error.len && !(out->last_error = str_dup(a, buf_str(&r->last_error))).ptr)
		return arena_fail(a, "rules", err);
	if (!r->alerts)
		return ERR_OK;
	out->phase = alert_state_phase(r->alerts);
	return rule_snapshot_copy_alerts(r, a, out, err);
}

static enum err_code rule_snapshot_copy_group(
	struct group_state *g, struct arena *a, struct group_info *out, struct err *err)
{
	enum err_code rc = ERR_OK;

	*out = (struct group_info){ .group = g->group,
		.rules = arena_array(a, struct rule_info, g->rules_n + 1),
		.rules_n = g->rules_n };
	if (!out->rules)
		return arena_fail(a, "rules", err);
	mutex_lock(&g->lock);
	out->last_evaluation_ns = g->last_evaluation_ns;
	out->evaluation_ns = g->evaluation_ns;
	out->iterations = g->iterations;
	out->missed = g->missed;
	for (size_t i = 0; i < g->rules_n && !rc; i++)
		rc = rule_snapshot_copy_rule(&g->rules[i], a, &out->rules[i], err);
	mutex_unlock(&g->lock);
	return rc;
}

enum err_code rule_manager_snapshot(
	struct rule_manager *m, struct arena *a, struct rules_snapshot *out, struct err *err)
{
	struct rules_snapshot s = { .set = NULL };
	enum err_code rc = ERR_OK;

	mutex_lock(&m->lock);
	while (m->paused) /* a reload waits for readers, so no new ones begin */
		cond_wait(&m->changed, &m->lock);
	m->readers++;
	s.set = m->set ? rule_set_ref(m->set) : NULL;
	mutex_unlock(&m->lock);
	if (!(s.groups = arena_array(a, struct group_info, m->groups_n + 1)))
		rc = arena_fail(a, "rules", err);
	for (; s.groups_n < m->groups_n && !rc; s.groups_n++)
		rc = rule_snapshot_copy_group(&m->groups[s.groups_n], a, &s.groups[s.groups_n], err);
	mutex_lock(&m->lock);
	assert(m->readers);
	m->readers--;
	cond_broadcast(&m->changed);
	mutex_unlock(&m->lock);
	if (rc)
		rules_snapshot_release(&s);
	else
		*out = s;
	return rc;
}

void rules_snapshot_release(struct rules_snapshot *s)
{
	rule_set_unref(s->set);
	s->set = NULL;
}
