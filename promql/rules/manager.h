/*
 * Rule manager: evaluates groups at their turns, writes what they record, sends alerts.
 *
 * A group's rules are evaluated in order. Each sees what those before it wrote. A hash of the
 * group's name spreads groups over the interval. If an evaluation takes longer than the interval,
 * turns are skipped and counted. Rules that did not change keep their state over a reload. Alerts
 * write ALERTS and ALERTS_FOR_STATE, from which a restart restores `for`.
 *
 * Units:     nanoseconds.
 * Errors:    of an evaluation: on the rule (last_error), in metrics and in the log.
 * Ownership: the manager takes its own reference of a set. Engine, database and notifier outlive
 *            it. A snapshot lives in the caller's arena.
 * Threads:   `workers` of its own; open, apply, close from one thread; begin and end from one,
 * which may be another; snapshot from any. Source:    Prometheus's rules/manager.go, group.go.
 */
#ifndef PROMQL_RULES_MANAGER_H
#define PROMQL_RULES_MANAGER_H

#include "promql/engine/engine.h"
#include "promql/rules/alerts.h"
#include "promql/rules/rules.h"

struct db;
struct notifier;
struct rule_manager;
struct rules_snapshot;

struct rule_manager_options {
	struct engine *engine;
	struct db *db; /* takes what is recorded; NULL: all rests until rule_manager_begin */
	struct notifier *notifier; /* NULL: nothing is sent */
	const char *external_url; /* of the page, for links; "" if unknown */
	unsigned workers; /* groups evaluated at once; 0: 1 */
	bool manual; /* no workers: only rule_manager_turn evaluates */
	int64_t resend_delay_ns; /* --rules.alert.resend-delay, 1m */
	int64_t outage_tolerance_ns; /* --rules.alert.for-outage-tolerance, 1h */
	int64_t grace_period_ns; /* --rules.alert.for-grace-period, 10m */
};

MUST_CHECK enum err_code rule_manager_open(
	const struct rule_manager_options *o, struct rule_manager **out, struct err *err);
MUST_CHECK enum err_code rule_manager_apply(
	struct rule_manager *m, struct rule_set *set, struct labels external_labels, struct err *err);
/*
 * It was opened without a database, or has ended: from now on its rules are evaluated, and write
 * into this one, whose data the engine's database has too. Evaluations that another manager missed
 * are made up for (catchup.c). may, from any thread: nothing is evaluated, written or sent while it
 * is false; such turns are made up for, too. NULL: always. before: what another manager evaluated
 * last, for groups of which nothing is stored; NULL: not known.
 */
void rule_manager_begin(struct rule_manager *m, struct db *db, bool (*may)(void *ctx), void *ctx,
	const struct rules_snapshot *before);
/*
 * Somebody else evaluates from now on: ends what is under way, and forgets alerts and series
 * without a stale mark. The database has no user when it returns. Then it may begin again.
 */
void rule_manager_end(struct rule_manager *m);
/* With `manual`: evaluates the set's group of this index on the caller's thread. */
void rule_manager_turn(struct rule_manager *m, size_t group, int64_t t_ns);
void rule_manager_close(struct rule_manager *m); /* ends what is under way; NULL is fine */

enum rule_health { RULE_UNKNOWN, RULE_OK, RULE_ERR };

struct alert_info {
	struct labels labels, annotations;
	enum alert_phase phase;
	int64_t active_at_ns, keep_firing_since_ns;
	double value;
};

struct rule_info {
	const struct rule *rule;
	enum rule_health health;
	struct str last_error;
	int64_t last_evaluation_ns, evaluation_ns; /* when, and how long it took */
	enum alert_phase phase;
	struct alert_info *alerts; /* active ones */
	size_t alerts_n;
};

struct group_info {
	const struct rule_group *group;
	int64_t last_evaluation_ns, evaluation_ns;
	uint64_t iterations, missed;
	struct rule_info *rules;
	size_t rules_n;
};

struct rules_snapshot {
	struct rule_set *set; /* held until rules_snapshot_release */
	struct group_info *groups;
	size_t groups_n;
};

MUST_CHECK enum err_code rule_manager_snapshot(
	struct rule_manager *m, struct arena *a, struct rules_snapshot *out, struct err *err);
void rules_snapshot_release(struct rules_snapshot *s);

#endif
