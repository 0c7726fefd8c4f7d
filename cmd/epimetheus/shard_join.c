#include "cmd/epimetheus/shard_join.h"

#include "base/fs.h"
#include "base/self/starting.h"
#include "tsdb/cluster/assignment/assignment_node.h"
#include "tsdb/cluster/shard.h"

/*
 * Nothing is scraped yet, so the manifest may say the newest number from its first write on: then
 * nobody waits for what this server did before.
 */
enum err_code shard_join_open(const struct options *o, struct bucket *bucket,
	struct shard_node *shard, struct starting *waiting, struct assignment_node **out,
	struct err *err)
{
	const struct assignment_node_options options = { .bucket = bucket,
		.shard = o->shard_name,
		.dir = o->data_dir,
		.total = o->shard_total,
		.lease_ns = lease_time_ns(o->segment_interval_ns, o->lease_ns),
		.look_ns = o->segment_interval_ns < ASSIGNMENT_LOOK_NS ? o->segment_interval_ns :
																 ASSIGNMENT_LOOK_NS };
	struct assignment_rule *rule;
	enum err_code rc;

	if (!o->shard_join)
		return ERR_OK;
	starting_say(waiting, "reads the assignment of shards");
	if ((rc = fs_mkdir_all(&fs_posix, o->data_dir, err)) ||
		(rc = assignment_node_open(&options, out, err)))
		return rc;
	rule = assignment_node_rule(*out);
	publisher_set_assignment(shard_publisher(shard), assignment_rule_of(rule)->number);
	assignment_rule_unref(rule);
	return ERR_OK;
}

/* The name is this server's now. Without the bucket it joins later. */
enum err_code shard_join_now(struct assignment_node *node, struct shard_node *shard,
	struct starting *waiting, struct err *err)
{
	enum err_code rc;

	if (!node || !shard_lease_is_sure(shard))
		return ERR_OK;
	starting_say(waiting, "joins the other shards");
	if (!(rc = assignment_node_join(node, err)))
		return ERR_OK;
	if (rc != ERR_UNAVAILABLE && rc != ERR_TIMEOUT)
		return err_wrap(err, rc, "join the shards of the bucket");
	log_warn("main", "this shard has not joined the others yet, and tries again", LOG_E(err));
	return ERR_OK;
}
