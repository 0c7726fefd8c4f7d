/*
 * The inside of manager.h: the states of groups and rules, and one turn of a group. Private to
 * promql/rules/ and its tests.
 *
 * Units:     nanoseconds since 1970.
 * Ownership: states live from one apply to the next, which may take them over.
 * Threads:   a group is evaluated by one thread at a time; group_state.lock guards what others
 *            read meanwhile: the alerts, health and times. Only the evaluating thread, or apply
 *            while nothing runs, changes them.
 */
#ifndef PROMQL_RULES_MANAGER_INTERNAL_H
#define PROMQL_RULES_MANAGER_INTERNAL_H

#include "base/thread.h"
#include "promql/rules/manager.h"

#define ALERTS_NAME "ALERTS"
#define ALERTS_FOR_STATE_NAME "ALERTS_FOR_STATE"
#define EVALUATION_BYTES_MAX ((size_t)512 << 20) /* memory of what one evaluation writes */

/*
 * Numeric series that a rule wrote at its last turn. One that it does not write again gets a stale
 * mark.
 */
struct rule_manager_seen_series {
	struct arena arena;
	struct labels *v; /* with __name__; ascending */
	size_t n;
};

struct rule_state {
	const struct rule *rule;
	struct alert_state *alerts; /* NULL: it records */
	struct rule_manager_seen_series seen;
	enum rule_health health;
	struct buf last_error;
	int64_t last_evaluation_ns, evaluation_ns;
	bool restored; /* its state from before the restart was restored */
	bool began; /* it was evaluated since the start; of the evaluating thread, and of apply */
};

/* A name that rules write: what is stored of it from before the start may have to be ended. */
struct leftover {
	struct str name; /* of a recorded series, or of an alert */
	bool alert;
	bool ended; /* or somebody is about to: no other thread touches it then */
	size_t waiting; /* rules of the name that have not begun */
	struct labels *claimed; /* series that its rules have written since the start */
	size_t claimed_n, claimed_cap;
};

struct leftovers {
	bool made; /* by the first apply */
	struct arena arena;
	struct leftover *v; /* ascending by alert and name; none once all are ended */
	size_t n, open; /* open: not ended */
};

struct group_state {
	struct rule_manager *manager;
	const struct rule_group *group;
	struct rule_state *rules;
	size_t rules_n;
	struct mutex lock; /* guards the rules' states and the fields below */
	int64_t last_evaluation_ns, evaluation_ns;
	uint64_t iterations, missed;
	struct buf label; /* "FILE;NAME" in metrics, ends in NUL */
	/* of whoever evaluates it, or looks for its last turn: */
	size_t from; /* the first rule of the next evaluation; not 0: the turn was cut before it */
	int64_t before_ns; /* the last turn of another manager, as it said; 0: not known */
	bool past; /* a later turn is due already: its alerts are not sent */
	/* guarded by the manager's lock: */
	int64_t due_ns;
	bool looks; /* its last turn is looked for, before its first one */
	bool running;
};

struct rule_manager {
	struct rule_manager_options o;
	struct str external_url; /* without a slash at its end */
	struct mutex lock; /* guards all below */
	struct cond changed;
	struct rule_set *set; /* NULL: nothing was applied yet */
	struct arena arena; /* of the external labels */
	struct labels external_labels;
	struct group_state *groups;
	size_t groups_n;
	struct leftovers leftovers;
	int64_t began_ns; /* since when rules could write */
	int64_t catch_up_until_ns; /* monotonic: no turn is skipped until then */
	bool goes_on; /* rule_manager_begin: it takes the place of another one */
	/* changed while nothing runs: */
	bool (*may)(void *ctx);
	void *may_ctx;
	unsigned running, readers; /* apply waits until nobody uses the groups */
	bool paused, closing;
	atomic_bool stop; /* ends queries */
	struct thread *workers;
	struct arena own; /* of the manager */
};

/* Rules may be evaluated now. */
bool rule_manager_may(const struct rule_manager *m);

/* ---- group.c ---- */

/*
 * Takes the turn of t_ns: evaluates all rules in order, from g->from on. False: it was cut before
 * the rule g->from, as the manager stops or may not go on. Else g->from is 0 afterwards.
 */
bool group_evaluate(struct group_state *g, int64_t t_ns);
/* Its metrics of the last turn are NaN from now on: another manager evaluates. */
void group_show_elsewhere(const struct group_state *g);
/* The first turn after t_ns; a hash of the group's name sets its phase in the interval. */
int64_t group_next_turn(const struct rule_group *g, int64_t t_ns);
/*
 * A link to the page: what the rule saw at t_ns for the alert of these labels, which began at
 * since_ns (web/ui/README.md).
 */
void rule_link_print(struct buf *out, struct str external_url, const struct rule *r,
	struct labels labels, int64_t t_ns, int64_t since_ns);

/* ---- record.c ---- */

/* The numbers of one evaluation, collected and written at once. */
struct writing {
	struct rule_manager *manager;
	struct arena arena;
	struct db_number *v;
	size_t n, cap;
};
void writing_init(struct writing *w, struct rule_manager *m);
void writing_release(struct writing *w);
/* Adds the series `name` with the labels of base and extra (later ones win). */
MUST_CHECK enum err_code writing_add(struct writing *w, const char *name, struct labels base,
	const struct label *extra, size_t extra_n, int64_t t_ns, double value, struct err *err);
/*
 * Writes all, with stale marks for series in `seen` that are missing now, waits for the
 * acknowledgement, and updates `seen`.
 */
MUST_CHECK enum err_code writing_commit(
	struct writing *w, struct rule_manager_seen_series *seen, int64_t t_ns, struct err *err);
/* Adds a stale mark. The labels are the caller's until writing_flush. */
MUST_CHECK enum err_code writing_end(
	struct writing *w, struct labels labels, int64_t t_ns, struct err *err);
/* Writes what was added, as it is. */
MUST_CHECK enum err_code writing_flush(struct writing *w, struct err *err);
/* Writes stale marks for all of `seen`. */
MUST_CHECK enum err_code seen_end(
	struct rule_manager *m, struct rule_manager_seen_series *seen, int64_t t_ns, struct err *err);
void seen_release(struct rule_manager_seen_series *s);

/* Writes the result of a recording rule's query. *n: series written. */
MUST_CHECK enum err_code record_result(struct rule_manager *m, struct rule_state *r,
	struct query *q, int64_t t_ns, size_t *n, struct err *err);

/* ---- leftover.c ---- */

/* After a rule was evaluated at its turn of t_ns, and its result of at_ns was written. */
void leftover_turn(struct rule_manager *m, struct rule_state *r, int64_t t_ns, int64_t at_ns);
/* The manager has other groups, and their rules have taken over what they can. m->lock is held. */
void leftovers_apply(struct rule_manager *m, int64_t t_ns);
void leftovers_release(struct leftovers *l);

/* ---- catchup.c ---- */

#define CATCH_UP_MAX_NS (INT64_C(3600) * 1000000000) /* older turns are left out */
#define CATCH_UP_TIME_NS (INT64_C(60) * 1000000000) /* then turns are skipped again */

struct group_last {
	int64_t turn_ns; /* the last turn whose results are stored; 0: none is known */
	size_t from; /* the first rule behind those that wrote then */
};
/* Looks in the manager's database for the group's last turn before now_ns. */
void group_find_last(struct group_state *g, int64_t now_ns, struct group_last *out);
/* The first turn to be taken at now_ns, and g->from; says in the log what is left out. */
int64_t group_first_turn(struct group_state *g, const struct group_last *last, int64_t now_ns);

/* ---- restore.c ---- */

/* Restores since when alerts are active, from ALERTS_FOR_STATE. */
void rule_restore(struct group_state *g, struct rule_state *r, int64_t t_ns);

#endif
