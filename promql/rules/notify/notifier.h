/*
 * Notifier: sends alerts to Alertmanagers.
 *
 * Each Alertmanager that discovery has found has a bounded queue; the oldest alerts are dropped and
 * counted. Alerts go out in batches, with external labels added and alert_relabel_configs applied.
 * One that hangs delays no other. A batch that was not taken is dropped and counted, as in
 * Prometheus: the rule sends its alerts again within a minute.
 *
 * Errors:    of sending: in metrics and in the log.
 * Ownership: alerts are copied. The configuration is the caller's and must be valid until the next
 *            apply that succeeds, or close.
 * Threads:   one loop of its own, and discovery's; send from any thread; it never waits.
 * Source:    Prometheus's notifier; Alertmanager's API v2 (POST /api/v2/alerts).
 */
#ifndef PROMQL_RULES_NOTIFY_NOTIFIER_H
#define PROMQL_RULES_NOTIFY_NOTIFIER_H

#include "discovery/alerting.h"

#define NOTIFIER_QUEUE_DEFAULT 10000u
#define NOTIFIER_BATCH 256u

struct notifier;

struct notifier_options {
	size_t queue_max; /* --alertmanager.notification-queue-capacity; 0: the default */
	const char *user_agent; /* NULL: "Epimetheus/VERSION" */
};

struct notification {
	struct labels labels, annotations;
	int64_t starts_ns, ends_ns; /* ends in the past: resolved */
	struct str generator_url;
};

struct alertmanager_info {
	struct str url; /* where alerts are posted */
	bool dropped; /* by relabelling */
	struct str last_error; /* "": the last request succeeded, or there was none */
	uint64_t sent, failed; /* alerts */
};

MUST_CHECK enum err_code notifier_open(
	const struct notifier_options *o, struct notifier **out, struct err *err);
/* After an error the old configuration stays in force. */
MUST_CHECK enum err_code notifier_apply(struct notifier *n, const struct alerting_config *c,
	struct labels external_labels, struct err *err);
void notifier_send(struct notifier *n, const struct notification *notification, size_t count);
/* Sends what waits, for at most 5 s. NULL is fine. */
void notifier_close(struct notifier *n);

MUST_CHECK enum err_code notifier_alertmanagers(struct notifier *n, struct arena *a,
	struct alertmanager_info **out, size_t *count, struct err *err);

#endif
