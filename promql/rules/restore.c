/*
 * After a restart alerts go on where they were: ALERTS_FOR_STATE says since when each was active.
 * As in Prometheus, time while the server was down does not count, and an alert that would fire
 * within the grace period waits until its end. Rules whose `for` is shorter than the grace period
 * begin anew.
 *
 * A manager that takes the place of another one, and makes up for what was missed (catchup.c), has
 * no outage: where the turn before this one is stored, alerts go on as if nothing had happened, of
 * any `for`.
 */
#include <assert.h>

#include "base/clock.h"
#include "base/log.h"
#include "promql/rules/manager_internal.h"

static int64_t rule_restore_active_at(const struct rule_manager *m, const struct rule *r,
	int64_t active_ns, int64_t down_ns, int64_t t_ns)
{
	int64_t left = r->for_ns - (down_ns - active_ns);

	if (left <= 0) /* it fired before: it fires again at the next turn */
		return active_ns;
	if (left < m->o.grace_period_ns)
		return t_ns + m->o.grace_period_ns - r->for_ns;
	return active_ns + (t_ns - down_ns);
}

/* Stored are whole seconds; alerts become active at turns of their group. */
static int64_t rule_restore_turn(const struct rule_group *g, int64_t active_ns)
{
	int64_t turn = group_next_turn(g, active_ns - 1);

	return turn < active_ns + NS_PER_S ? turn : active_ns;
}

/* The turn before this one, at t_ns, wrote at last_ns. */
static bool rule_restore_goes_on(
	const struct rule_manager *m, const struct rule *r, int64_t last_ns, int64_t t_ns)
{
	return m->goes_on && t_ns - r->group->query_offset_ns - last_ns <= r->group->interval_ns;
}

static bool rule_restore_begins_anew(const struct rule_manager *m, const struct rule *r)
{
	return r->for_ns == 0 || r->for_ns < m->o.grace_period_ns;
}

static enum err_code restore_series(struct group_state *g, struct rule_state *r,
	struct db_querier *q, const struct db_series *s, struct arena *a, int64_t t_ns, struct err *err)
{
	struct rule_manager *m = g->manager;
	struct labels_builder b;
	struct labels labels;
	int64_t active_at_ns, *times;
	double *values;
	size_t n;
	enum err_code rc;
	bool goes_on;

	if ((rc = db_numbers(q, s, t_ns - m->o.outage_tolerance_ns, t_ns, a, &times, &values, &n, err)))
		return rc;
	/* Others may write this name too: ignore values that cannot be times. Stale marks are NaN. */
	if (!n || !(values[n - 1] >= 0 && values[n - 1] < 9e9))
		return ERR_OK;
	goes_on = rule_restore_goes_on(m, r->rule, times[n - 1], t_ns);
	if (!goes_on && rule_restore_begins_anew(m, r->rule))
		return ERR_OK;
	labels_builder_init(&b, a, s->labels);
	labels_builder_del(&b, STR(LABEL_NAME));
	if ((rc = labels_builder_build(&b, &labels, err)))
		return rc;
	active_at_ns = (int64_t)(values[n - 1] * 1e9);
	active_at_ns = goes_on ? rule_restore_turn(g->group, active_at_ns) :
							 rule_restore_active_at(m, r->rule, active_at_ns, times[n - 1], t_ns);
	mutex_lock(&g->lock);
	alert_state_restore(r->alerts, labels, active_at_ns, t_ns);
	if (goes_on)
		alert_state_resume(r->alerts, labels, t_ns);
	mutex_unlock(&g->lock);
	return ERR_OK;
}

static enum err_code rule_restore_alert(
	struct group_state *g, struct rule_state *r, struct arena *a, int64_t t_ns, struct err *err)
{
	struct rule_manager *m = g->manager;
	struct matcher matchers[2];
	struct db_querier *q = NULL;
	struct db_series *v;
	size_t n;
	enum err_code rc;

	if ((rc = matcher_init(
			 &matchers[0], MATCH_EQ, STR(LABEL_NAME), STR(ALERTS_FOR_STATE_NAME), err)) ||
			 (rc = matcher_init(&matchers[1], MATCH_EQ, STR("alertname"), r->rule->name, err)))
		return rc;
	if ((rc = db_querier_open(m->o.db, t_ns - m->o.outage_tolerance_ns, t_ns, &m->stop, &q, err)))
		return rc;
	rc = db_select_kinds(q, DB_NUMBERS, matchers, 2, a, &v, &n, err);
	for (size_t i = 0; i < n && !rc; i++)
		rc = restore_series(g, r, q, &v[i], a, t_ns, err);
	db_querier_close(q);
	return rc;
}

void rule_restore(struct group_state *g, struct rule_state *r, int64_t t_ns)
{
	struct arena a;
	struct err err;

	assert(r->rule->kind == RULE_ALERT && !r->restored);
	if (!g->manager->goes_on && rule_restore_begins_anew(g->manager, r->rule))
		return;
	arena_init(&a, EVALUATION_BYTES_MAX);
	if (rule_restore_alert(g, r, &a, t_ns, &err))
		log_warn(
			"rules", "state of alerts not restored", LOG_STR("rule", r->rule->name), LOG_E(&err));
	arena_release(&a);
}
