/*
 * Rule: whose a key is for one shard, by an assignment and by what is known of the other shards.
 *
 * A key that the newest version gives to this shard is still not its own while another shard that
 * lives may have it: one that follows an older number k (its floor) and has the key by k, or by a
 * version between k and the newest, which it may have begun to follow since. Whoever follows a
 * number lower than all versions that are known may have anything. A shard that is dead, stopped or
 * gone counts as following the newest: it looks at the assignment before it scrapes again.
 *
 * Errors:    ERR_NOMEM.
 * Ownership: a rule is counted, and has copies of what it was made of.
 * Threads:   immutable; the count is atomic.
 */
#ifndef TSDB_CLUSTER_ASSIGNMENT_ASSIGNMENT_RULE_H
#define TSDB_CLUSTER_ASSIGNMENT_ASSIGNMENT_RULE_H

#include "tsdb/cluster/assignment/assignment.h"

struct assignment_floor {
	struct str shard;
	bool known; /* else nothing is: it may have anything */
	uint64_t number; /* it has nothing by lower ones any more; 0: it runs with a fixed total */
};

struct assignment_rule;

enum assignment_whose { ASSIGNMENT_OWN, ASSIGNMENT_OTHERS, ASSIGNMENT_WAITS };

/* list: number 0: nothing is known, and nothing is its own. floors: of the other shards. */
MUST_CHECK enum err_code assignment_rule_new(const struct assignment *list, struct str self,
	const struct assignment_floor *floors, size_t n, struct assignment_rule **out, struct err *err);
struct assignment_rule *assignment_rule_ref(struct assignment_rule *r);
void assignment_rule_unref(struct assignment_rule *r); /* NULL is fine */

/* *shard: who has it, or may still have it; empty: not known. Lives as long as the rule. */
enum assignment_whose assignment_rule_whose(
	const struct assignment_rule *r, uint64_t key, struct str *shard);
const struct assignment *assignment_rule_of(const struct assignment_rule *r);
/* Nothing waits, whatever its key. */
bool assignment_rule_is_settled(const struct assignment_rule *r);

/* A copy in the arena. older: NULL, or what was known before; its versions stay in front of those
 * of the list, up to ASSIGNMENT_KNOWN_MAX. */
MUST_CHECK enum err_code assignment_copy(const struct assignment *list,
	const struct assignment *older, struct arena *a, struct assignment *out, struct err *err);

#endif
