/*
 * The notifier's parts: alerts that wait, Alertmanagers and their queues, configurations.
 *
 * Each Alertmanager has its own queue, so that one which hangs delays no other. The text of an
 * alert is made once and shared by the queues.
 *
 * Threads: everything here is guarded by the notifier's lock. Requests are sent and canceled on its
 *          loop only, so lists of Alertmanagers change there only.
 */
#ifndef PROMQL_RULES_NOTIFY_NOTIFIER_INTERNAL_H
#define PROMQL_RULES_NOTIFY_NOTIFIER_INTERNAL_H

#include <sys/queue.h>

#include "promql/rules/notify/notifier.h"

/* A second limit of a queue, since an alert may have a megabyte of annotations. */
#define NOTIFIER_QUEUE_BYTES_MAX ((size_t)64 << 20)
#define NOTIFIER_ALERTMANAGERS_MAX 1000u /* of one entry of the configuration */

/* An alert as JSON. */
struct alert_text {
	unsigned refs;
	size_t len;
	char bytes[];
};

struct queued {
	STAILQ_ENTRY(queued) next;
	struct alert_text *text;
};
STAILQ_HEAD(queue, queued);

struct alertmanager {
	LIST_ENTRY(alertmanager) link;
	struct alertmanager_set *set;
	char *url;
	char *shown_url; /* in logs, metrics and the API: base/hidden.h */
	struct queue waiting, batch; /* batch: the alerts of the request under way */
	size_t waiting_n, waiting_bytes, batch_n;
	struct http_request *request;
	int64_t began_ns; /* of the request */
	uint64_t sent, failed;
	struct err last; /* code ERR_OK: the last request succeeded */
};
LIST_HEAD(alertmanagers, alertmanager);

/* One entry of the configuration, and the Alertmanagers that discovery has found for it. */
struct alertmanager_set {
	struct notifier_generation *generation;
	const struct alertmanager_config *config;
	struct groups *groups; /* as discovery gave them last; NULL: nothing yet */
	bool changed; /* since the list was made */
	struct alertmanagers active;
	struct arena arena; /* of dropped */
	struct str *dropped;
	size_t dropped_n;
};

/* A configuration in force. */
struct notifier_generation {
	struct notifier *notifier;
	struct arena arena;
	const struct alerting_config *config;
	struct labels external;
	struct alertmanager_set *sets;
	size_t sets_n;
};

struct notifier_generation *generation_new(
	struct notifier *n, const struct alerting_config *c, struct labels external, struct err *err);
void alertmanagers_generation_free(
	struct notifier_generation *g); /* no request is under way; NULL is fine */

/*
 * Makes the set's list from its groups. Alertmanagers that were in it, or in `old` (NULL: none),
 * keep their queues. Those that are gone move to *gone.
 */
void alertmanagers_rebuild(
	struct alertmanager_set *set, struct notifier_generation *old, struct alertmanagers *gone);

/* Over its limits the queue drops the oldest. False: out of memory. */
bool alertmanager_queue(struct alertmanager *a, struct alert_text *text, size_t queue_max);
/* Makes a batch of the oldest alerts and appends its JSON. */
void alertmanager_take_batch(struct alertmanager *a, struct buf *body);
void alertmanager_end_batch(struct alertmanager *a, const struct err *why); /* NULL: it was taken */
void alertmanager_requeue(struct alertmanager *a); /* the batch waits again, before the others */
void alertmanager_free(struct alertmanager *a);
void notifications_dropped(const char *url, size_t n);

/*
 * Makes the JSON of an alert, with external labels and rules applied; one reference. *out NULL with
 * ERR_OK: the rules dropped it. `own` may be NULL.
 */
MUST_CHECK enum err_code alert_text_make(const struct notification *n, struct labels external,
	const struct relabel_rules *all, const struct relabel_rules *own, struct alert_text **out,
	struct err *err);
void alert_text_unref(struct alert_text *t); /* NULL is fine */

#endif
