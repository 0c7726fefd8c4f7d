/*
 * Storage: where a server's profiles are, by its mode: a data directory; one that is published to a
 * bucket as a shard; or nothing but the bucket, whose shards a query node follows.
 *
 * One query node evaluates the rules of all of them (rules_lease.h).
 *
 * Errors:    of the database, the bucket and the lease (tsdb/cluster/lease.h).
 * Ownership: storage_open hands *out to the caller. Users of the database are closed before it.
 * Threads:   any.
 */
#ifndef CMD_EPIMETHEUS_STORAGE_H
#define CMD_EPIMETHEUS_STORAGE_H

#include "cmd/epimetheus/options.h"
#include "cmd/epimetheus/rules/rules_lease.h"
#include "web/router/options.h"

struct arena;
struct assignment_node;
struct bucket;
struct shard_node;
struct config;
struct db;
struct storage;
struct starting;

/*
 * May wait for the lease of the shard's name, restore its directory from the bucket, or read all
 * shards of it; `waiting` says which, and outlives the storage. ERR_CANCELED: a signal that ends
 * the process is pending, and ended the wait.
 */
MUST_CHECK enum err_code storage_open(const struct options *o, const struct config *c,
	struct starting *waiting, struct storage **out, struct err *err);
void storage_close(struct storage *s); /* NULL is fine */

struct db *storage_db(struct storage *s); /* answers queries */

/* Competes for the lease of rules from now on (rules_lease.h); query nodes only, once. */
MUST_CHECK enum err_code storage_want_rules(
	struct storage *s, const struct rules_turns *turns, struct err *err);
/* Whoever evaluates is not called from here on, and may be closed. */
void storage_end_rules(struct storage *s);
/* Of a query node, for rules_state_put and others of rules_state.h; NULL: of none. */
struct rules_state *storage_rules_state(struct storage *s);
enum rules_lease_state storage_rules_lease_state(struct storage *s);

/* Another server took over what this one published, and the process was told to end. */
bool storage_is_fenced(struct storage *s);
/* The configuration is of another bucket: that wants a restart. */
bool storage_is_other(struct storage *s, const struct config *c);

/* What the page and the API show of the bucket; metrics show the same while the storage is open. */
MUST_CHECK enum err_code storage_view(
	struct storage *s, struct arena *a, struct cluster_view *out, struct err *err);

/* Lists of the shards that a query node follows; elsewhere there are none. shard_lists.h */
MUST_CHECK enum err_code storage_lists(struct storage *s, enum shard_list which, struct arena *a,
	struct shard_list_view **out, size_t *n, struct err *err);
const char *storage_senders_path(const struct storage *s); /* the file of this server's own */
/* NULL: this server is none. For the life of the storage. */
struct shard_node *storage_shard(struct storage *s);
/* Of a shard that joined others; NULL: of none. */
struct assignment_node *storage_assignment(struct storage *s);
/* This server is a shard: query nodes find its lists by storage_put_list. */
bool storage_is_shard(const struct storage *s);
MUST_CHECK enum err_code storage_put_list(
	struct storage *s, enum shard_list which, struct str text, struct err *err);
/*
 * For what is beside profiles: its calls end soon. NULL: there is no bucket, or the server is a
 * caretaker.
 */
struct bucket *storage_side_bucket(struct storage *s);

#endif
