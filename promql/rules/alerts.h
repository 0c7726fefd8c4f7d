/*
 * Alerts: the states of one alerting rule's alerts, from evaluation to evaluation.
 *
 * inactive -> pending -> firing -> (resolved, kept for 15 minutes) -> gone. It takes the elements
 * that the expression gave at a time, and says what to write and what to send. It knows no clock,
 * no database and no network.
 *
 * Units:     nanoseconds since 1970.
 * Errors:    ERR_LIMIT (the group's limit: all alerts of the rule are dropped), ERR_INVALID (two
 *            elements with one label set), ERR_CANCELED (a template's query), ERR_NOMEM. The state
 *            does not change then, except by ERR_LIMIT.
 * Ownership: alerts live in the state.
 * Threads:   one at a time.
 * Source:    Prometheus's rules/alerting.go.
 */
#ifndef PROMQL_RULES_ALERTS_H
#define PROMQL_RULES_ALERTS_H

#include "base/labels.h"
#include "base/thread.h"

struct alert_state;
struct rule;
struct rule_group;
struct template_data;

enum alert_phase { ALERT_INACTIVE, ALERT_PENDING, ALERT_FIRING };

struct alert {
	enum alert_phase phase;
	struct labels labels; /* with alertname, the element's and the rule's labels */
	struct labels annotations;
	double value;
	int64_t active_at_ns, fired_at_ns, resolved_at_ns; /* 0: not */
	int64_t last_sent_ns, valid_until_ns, keep_firing_since_ns;
};

struct alert_element { /* of the expression's vector */
	struct labels labels; /* without __name__ */
	double value;
};

#define ALERT_RESOLVED_KEPT_NS (15 * INT64_C(60000000000))

/* NULL: out of memory. */
struct alert_state *alert_state_open(const struct rule *r, const struct rule_group *g);
void alert_state_close(struct alert_state *s); /* NULL is fine */
void alert_state_clear(struct alert_state *s); /* no alert is left */

/*
 * Takes an evaluation's elements. data has external labels and URL for the templates; a template
 * that fails gives "<error expanding template: ...>". The caller does not hold lock (NULL: none);
 * it is taken while alerts change, and not while templates are expanded, since their queries may
 * take long.
 */
MUST_CHECK enum err_code alert_state_take(struct alert_state *s, struct mutex *lock,
	const struct alert_element *a, size_t n, int64_t t_ns, const struct template_data *data,
	struct err *err);

/* All alerts, resolved ones too, ascending by labels; i from 0, NULL at the end. */
struct alert *alert_state_at(struct alert_state *s, size_t i);
enum alert_phase alert_state_phase(const struct alert_state *s); /* the worst of all */

/*
 * Whether to send it now: it has begun to fire, was resolved, or was last sent resend_ns ago. Then
 * notes that it was sent, and that it is valid for 4 x max(interval, resend).
 */
bool alert_due(struct alert *a, int64_t t_ns, int64_t resend_ns, int64_t interval_ns);

/*
 * After a restart: an alert with these labels that is pending or fires is active since
 * active_at_ns.
 */
void alert_state_restore(
	struct alert_state *s, struct labels labels, int64_t active_at_ns, int64_t t_ns);
/* After that: if the alert had fired by t_ns, it fires, since the same time as before. */
void alert_state_resume(struct alert_state *s, struct labels labels, int64_t t_ns);

/* After a reload: the alerts belong to r, a rule with the same name and labels. */
void alert_state_set_rule(struct alert_state *s, const struct rule *r, const struct rule_group *g);

#endif
