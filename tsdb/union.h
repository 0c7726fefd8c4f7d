/*
 * Unions: a database without data, over others that have it.
 *
 * A querier of the union sees all members as if one database had their series. Series with equal
 * labels are one series, whichever members have parts of it. Its profiles may be anywhere, also of
 * one time; if several members have a number of one time, the first by name counts. A profile that
 * two members have is two profiles: sums add both. The querier's warnings then name the first such
 * series, its time and the members (tsdb/read/twins.h).
 *
 * db_querier_open, db_list, db_status, db_losses and db_state go over all members. What writes is
 * ERR_UNSUPPORTED: it is asked of the shard.
 *
 * Errors:    ERR_EXISTS (the name is taken), ERR_NOMEM.
 * Ownership: members stay the caller's. One is open from db_union_add to db_union_remove. db_close
 *            closes the union, after all members were removed.
 * Threads:   any. A querier has the members that were there when it was opened.
 */
#ifndef TSDB_UNION_H
#define TSDB_UNION_H

#include "tsdb/catalog/members.h"

struct db;

MUST_CHECK enum err_code db_union_open(struct db **out, struct err *err);
/* Warns of what no member can know of, as that a list of them cannot be had. Before the first
 * querier. */
void db_union_tell(struct db *d, db_member_fn tell, void *ctx);
/* The member of this name has recorded numbers and nothing else. What it lacks is said to those who
 * may have selected some of them. Before the first querier; the name outlives the union. */
void db_union_set_records(struct db *d, const char *name);
/* The member's own gauges end: those of the union have it. The name is copied. tell may be NULL. */
MUST_CHECK enum err_code db_union_add(struct db *d, const char *name, struct db *member,
	db_member_fn tell, void *ctx, struct err *err);
/* Waits until no querier has it. An unknown name is fine. */
void db_union_remove(struct db *d, const char *name);

#endif
