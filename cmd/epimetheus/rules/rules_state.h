/*
 * Rules state: what the query node with the rules evaluates, in the bucket, for all others.
 *
 * The node with the lease puts a report (promql/rules/report.h) as `evaluated/rules`: within a
 * second where states have changed, else every RULES_STATE_EVERY_NS. Others read it when they are
 * asked, at most once a second. It is no data: an object takes the place of the one before, no
 * manifest names it, and without it answers say that they know nothing.
 *
 * Units:     nanoseconds.
 * Errors:    of putting: in the log. Of reading: a warning of the answer.
 * Ownership: the bucket outlives it. What is answered is in the arena.
 * Threads:   any; rules_state_put and rules_state_begin: one.
 */
#ifndef CMD_EPIMETHEUS_RULES_RULES_STATE_H
#define CMD_EPIMETHEUS_RULES_RULES_STATE_H

#include "base/thread.h"
#include "cmd/epimetheus/rules/rules_lease.h"
#include "promql/rules/report.h"

#define RULES_STATE_EVERY_NS (INT64_C(5) * 1000000000)
#define RULES_STATE_OLD_NS (INT64_C(15) * 1000000000) /* then answers warn */

struct bucket;

struct rules_state {
	struct bucket *bucket; /* with short timeouts: who asks waits */
	struct mutex lock; /* guards what follows */
	struct buf bytes; /* as last read; empty: there was none yet */
	char etag[128]; /* of them; "": none */
	int64_t looked_ns; /* monotonic, when it was last looked for; 0: never */
	int64_t same_since_ns; /* monotonic, since when these bytes are there */
	bool saw_change; /* others were there shortly before */
	struct err err; /* of that; code ERR_OK: it is there */
	struct buf before; /* what another node had evaluated when the lease was taken */
	/* the putting thread's: */
	uint64_t states;
	int64_t put_ns, due_ns; /* monotonic; 0: never. Not looked at before due_ns */
	bool failed;
};
void rules_state_init(struct rules_state *s, struct bucket *b);
void rules_state_release(struct rules_state *s);

/* The lease was taken: rule_manager_begin. Groups that are not evaluated yet are shown as the node
 * before had them. */
void rules_state_begin(struct rules_state *s, struct rule_manager *m, struct db *db,
	bool (*may)(void *ctx), void *ctx);
/* Puts what is evaluated here, if it is due; may wait for the bucket. */
void rules_state_put(struct rules_state *s, struct rule_manager *m);

/*
 * What a query node answers: what m has where it evaluates the rules, else what the node with the
 * lease evaluates, with warnings. May wait for the bucket. The caller releases out->rules.
 */
MUST_CHECK enum err_code rules_state_answer(struct rules_state *s, enum rules_lease_state state,
	struct rule_manager *m, struct arena *a, struct rules_report *out, struct err *err);

#endif
