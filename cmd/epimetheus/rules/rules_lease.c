#include "cmd/epimetheus/rules/rules_lease.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/thread.h"
#include "tsdb/cluster/cluster.h"

/* Somebody else evaluates rules within a minute of a node's end. */
#define RULES_INTERVAL_NS (5 * NS_PER_S)
#define RULES_LEASE_NS (20 * NS_PER_S)
#define RULES_RETRY_NS (10 * NS_PER_S)
#define RULES_LOOK_NS (200 * NS_PER_MS)

struct rules_lease {
	struct rules_lease_options o;
	char *dir;
	bool probed; /* the thread's: the bucket can keep a lease */
	struct thread thread;

	struct mutex lock; /* guards what follows */
	struct cond changed;
	bool closing;
	struct shard_node *candidate; /* waits for the lease, or is made of what the bucket has */
	struct shard_node *shard; /* NULL: the lease is not ours */
};

static struct shard_options rules_lease_shard_options(const struct rules_lease *l)
{
	struct shard_options o = l->o.shard;

	o.name = RULES_SHARD;
	o.db.dir = l->dir;
	o.interval_ns = RULES_INTERVAL_NS;
	o.lease_ns = RULES_LEASE_NS;
	o.numbers = true;
	o.no_probe = l->probed;
	return o;
}

static void rules_lease_set_candidate(struct rules_lease *l, struct shard_node *shard)
{
	mutex_lock(&l->lock);
	l->candidate = shard;
	if (shard && l->closing)
		shard_cancel(shard);
	mutex_unlock(&l->lock);
}

/* What an earlier life left is of no use: another node may have gone on since. */
static enum err_code rules_lease_take(
	struct rules_lease *l, struct shard_node **out, struct err *err)
{
	const struct shard_options o = rules_lease_shard_options(l);
	enum err_code rc = ERR_OK;

	*out = NULL;
	if (fs_exists(l->dir))
		rc = fs_remove_tree(&fs_posix, l->dir, err);
	if (!rc && !(rc = shard_open(&o, out, err))) {
		rules_lease_set_candidate(l, *out);
		rc = shard_start(*out, err);
		rules_lease_set_candidate(l, NULL);
		l->probed |= !rc || rc == ERR_EXISTS; /* the probe comes first */
	}
	if (rc) {
		shard_close(*out);
		*out = NULL;
	}
	return rc;
}

static bool rules_lease_wait_closing(struct rules_lease *l, int64_t ns)
{
	return cond_sleep_unless(&l->changed, &l->lock, &l->closing, ns);
}

/* Nobody is asked, and no lock is taken. */
static bool rules_lease_may(void *ctx)
{
	return shard_lease_is_sure(ctx);
}

static void rules_lease_set_shard(struct rules_lease *l, struct shard_node *shard)
{
	mutex_lock(&l->lock);
	l->shard = shard;
	mutex_unlock(&l->lock);
}

static bool rules_lease_begin(struct rules_lease *l, struct shard_node *shard)
{
	struct err err;

	if (cluster_set_own(l->o.cluster, RULES_SHARD, shard_db(shard), &err)) {
		log_error("main", "rules cannot be evaluated", LOG_E(&err));
		shard_close(shard);
		return false;
	}
	rules_lease_set_shard(l, shard);
	log_info("main", "rules are evaluated here");
	l->o.turns.begin(l->o.turns.ctx, shard_db(shard), rules_lease_may, shard);
	return true;
}

/* From here on this is a query node as others are. Waits for queries that read the shard. */
static void rules_lease_drop(struct rules_lease *l, struct shard_node *shard)
{
	struct err err;

	log_warn("main", "another node evaluates the rules");
	l->o.turns.end(l->o.turns.ctx);
	rules_lease_set_shard(l, NULL);
	if (cluster_set_own(l->o.cluster, RULES_SHARD, NULL, &err))
		log_warn("main", "rules' own shard", LOG_E(&err));
	shard_abandon(shard);
}

/* Until the lease is lost, or the end. */
static void rules_lease_keep(struct rules_lease *l, struct shard_node *shard)
{
	bool closing = false;

	while (!closing && !shard_is_fenced(shard)) {
		if (rules_lease_may(shard))
			l->o.turns.tell(l->o.turns.ctx);
		closing = rules_lease_wait_closing(l, RULES_LOOK_NS);
	}
	if (!closing)
		rules_lease_drop(l, shard);
}

static void rules_lease_run(void *ctx)
{
	struct rules_lease *l = ctx;
	struct shard_node *shard;
	bool told = false;
	struct err err;

	do {
		if (!rules_lease_take(l, &shard, &err)) {
			told = false;
			if (rules_lease_begin(l, shard))
				rules_lease_keep(l, shard);
		} else if (err.code == ERR_EXISTS) {
			if (!told)
				log_info("main", "rules are evaluated elsewhere", LOG_E(&err));
			told = true;
		} else if (err.code != ERR_CANCELED) {
			log_warn("main", "rules are not evaluated here", LOG_E(&err));
		}
	} while (!rules_lease_wait_closing(l, RULES_RETRY_NS));
}

enum err_code rules_lease_open(
	const struct rules_lease_options *o, struct rules_lease **out, struct err *err)
{
	struct rules_lease *l = calloc(1, sizeof(*l));
	enum err_code rc = ERR_OK;

	if (!l)
		return err_nomem(err, "rules");
	l->o = *o;
	mutex_init(&l->lock);
	cond_init(&l->changed);
	if (!(l->dir = strdup(o->shard.db.dir)))
		rc = err_nomem(err, "rules");
	if (!rc)
		rc = thread_start(&l->thread, "rules-lease", rules_lease_run, l, err);
	if (rc)
		rules_lease_close(l);
	else
		*out = l;
	return rc;
}

void rules_lease_end(struct rules_lease *l)
{
	mutex_lock(&l->lock);
	l->closing = true;
	if (l->candidate)
		shard_cancel(l->candidate);
	cond_broadcast(&l->changed);
	mutex_unlock(&l->lock);
	thread_join(&l->thread);
	l->thread = (struct thread){ .started = false };
}

void rules_lease_close(struct rules_lease *l)
{
	struct err err;

	if (!l)
		return;
	rules_lease_end(l);
	if (l->shard && cluster_set_own(l->o.cluster, RULES_SHARD, NULL, &err))
		log_warn("main", "rules' own shard", LOG_E(&err));
	shard_close(l->shard);
	cond_destroy(&l->changed);
	mutex_destroy(&l->lock);
	free(l->dir);
	free(l);
}

enum rules_lease_state rules_lease_state(struct rules_lease *l)
{
	enum rules_lease_state state;

	mutex_lock(&l->lock);
	state = !l->shard ? RULES_NOT_HERE : rules_lease_may(l->shard) ? RULES_HERE : RULES_PAUSED;
	mutex_unlock(&l->lock);
	return state;
}
