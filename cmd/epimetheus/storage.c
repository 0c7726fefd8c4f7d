#include "cmd/epimetheus/storage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/self/starting.h"
#include "base/thread.h"
#include "cmd/epimetheus/cluster_view.h"
#include "cmd/epimetheus/rules/rules_lease.h"
#include "cmd/epimetheus/rules/rules_state.h"
#include "cmd/epimetheus/shard_join.h"
#include "cmd/epimetheus/shard_lists.h"
#include "cmd/shared/bucket_options.h"
#include "tsdb/cluster/assignment/assignment_node.h"
#include "tsdb/cluster/caretaker.h"
#include "tsdb/cluster/cluster.h"
#include "tsdb/cluster/shard.h"
#include "tsdb/db.h"
#include "tsdb/remote/remote.h"
#include "tsdb/union.h"

#define READY_WAIT_NS (30 * NS_PER_S) /* for the first look at all shards */
#define READY_LOOK_NS (200 * NS_PER_MS) /* at signals meanwhile */
#define WATCH_EVERY_NS NS_PER_S
#define LAST_CALL_NS (10 * NS_PER_S) /* of a caretaker that ends: it gives its lease back */
/* Of those who only read: a query waits for it, and what fails is tried again. */
#define READ_TIMEOUT_NS (15 * NS_PER_S)
#define READ_ATTEMPT_NS (10 * NS_PER_S)
#define SIDE_TIMEOUT_NS (5 * NS_PER_S)
#define STATE_TIMEOUT_NS (3 * NS_PER_S)

struct storage {
	const struct options *o;
	struct starting *waiting;
	struct bucket_prices prices;
	struct buf bucket_is; /* its settings */
	struct bucket *bucket;
	struct bucket *rules_bucket; /* apart: closing a shard cancels all calls of its client */
	/* who waits for it waits no more than a few seconds: for what is beside profiles, and for what
	 * is evaluated elsewhere */
	struct bucket *side_bucket, *state_bucket;
	struct bucket *look_bucket; /* of `assignment`, likewise */
	struct assignment_node *assignment; /* of a shard that joins others */
	struct rules_state state; /* of a query node */
	char *senders_path;
	struct shard_lists lists; /* of the shards that a query node follows */
	struct remote *remote;
	struct cluster *cluster;
	int64_t opened_ns; /* monotonic */
	struct cluster_metrics metrics;
	struct shard_node *shard; /* of a server */
	struct db *db; /* of a server without a bucket; in mode compact one that has nothing */
	struct caretaker *caretaker;
	int lock_fd; /* of a query node's directory */

	struct mutex lock;
	struct cond changed;
	bool closing; /* lock */
	bool fenced; /* lock */
	bool starting; /* lock: `shard` waits for its lease, or is made of what the bucket has */
	struct rules_lease *rules; /* lock; NULL: they are not wanted, or not yet */
	struct thread watch;
};

/* ---- options ---- */

static uint32_t storage_clamp_u32(uint64_t value)
{
	return value > INT32_MAX ? INT32_MAX : (uint32_t)value;
}

static struct db_options db_options_of(const struct options *o)
{
	struct db_options d;

	db_options_default(&d);
	d.dir = o->data_dir;
	d.window_ns = o->window_ns;
	d.retention_ns = o->retention_ns;
	d.retention_bytes = o->retention_bytes;
	d.raw_retention_ns = o->raw_retention_ns;
	d.block_max_ns = o->block_max_ns;
	d.too_old_ns = o->too_old_ns;
	d.free_bytes_reserve = o->free_bytes_reserve;
	d.symbols_bytes = o->symbols_bytes;
	d.cache_bytes = o->cache_bytes;
	d.series_max = o->series_max;
	d.job_series_max = o->job_series_max;
	d.nodes_max = storage_clamp_u32(o->nodes_max);
	d.strings_max = storage_clamp_u32(o->strings_max);
	d.label_sets_max = storage_clamp_u32(o->label_sets_max);
	d.partition_bytes_max = o->partition_bytes_max;
	return d;
}

static struct shard_options shard_options_of(struct storage *s, const char *name)
{
	const struct options *o = s->o;

	return (struct shard_options){
		.bucket = s->bucket,
		.remote = remote_source(s->remote),
		.name = name,
		.db = db_options_of(o),
		.interval_ns = o->segment_interval_ns,
		.lease_ns = o->lease_ns,
		.delete_delay_ns = o->delete_delay_ns,
		.local_retention_ns = o->local_retention_ns,
		.prices = s->prices,
		.address = o->shard_join ? o->shard_address : NULL,
	};
}

static char *storage_path_below(const struct storage *s, const char *name)
{
	char *path = NULL;

	return asprintf(&path, "%s/%s", s->o->data_dir, name) < 0 ? NULL : path;
}

/* ---- a shard that somebody took over must end: its profiles reach nobody ---- */

static bool storage_look_fenced(struct storage *s)
{
	mutex_assert_held(&s->lock);
	return s->shard && !s->starting && shard_is_fenced(s->shard);
}

/* Nothing is stored here, so no database looks at the clock. */
static bool storage_is_reader(struct storage *s)
{
	mutex_assert_held(&s->lock);
	return s->cluster && !(s->rules && rules_lease_state(s->rules) != RULES_NOT_HERE);
}

/* The main thread waits in storage_open, not for signals. */
static bool storage_is_told_to_end(void)
{
	sigset_t set;

	return !sigpending(&set) && (sigismember(&set, SIGTERM) || sigismember(&set, SIGINT));
}

static void storage_watch(void *ctx)
{
	struct storage *s = ctx;

	mutex_lock(&s->lock);
	while (!s->closing && !s->fenced) {
		cond_wait_until(&s->changed, &s->lock, clock_monotonic_ns() + WATCH_EVERY_NS);
		if (storage_is_reader(s))
			clock_look(NULL, NULL);
		if (s->starting && storage_is_told_to_end()) {
			shard_cancel(s->shard);
			bucket_cancel(
				s->bucket, clock_monotonic_ns()); /* each time: shard_start takes it back */
		}
		if (!s->closing && storage_look_fenced(s)) {
			s->fenced = true;
			log_error("main", "another server took our name: this one ends",
				LOG_S("shard", s->o->shard_name));
			kill(getpid(), SIGTERM);
		}
	}
	mutex_unlock(&s->lock);
}

/* ---- opening ---- */

static enum err_code storage_open_impatient(
	const struct bucket_config *b, int64_t timeout_ns, struct bucket **out, struct err *err)
{
	struct bucket_config own = *b;

	own.timeout_ns = own.attempt_timeout_ns = timeout_ns;
	return bucket_open(&own, out, err);
}

static enum err_code storage_open_rules(
	struct storage *s, const struct bucket_config *b, struct err *err)
{
	enum err_code rc;

	if ((rc = bucket_open(b, &s->rules_bucket, err)) ||
		(rc = storage_open_impatient(b, STATE_TIMEOUT_NS, &s->state_bucket, err)))
		return rc;
	s->state.bucket = s->state_bucket;
	return ERR_OK;
}

static enum err_code storage_open_bucket(struct storage *s, const struct config *c, struct err *err)
{
	const struct bucket_config b = bucket_options(&c->bucket);
	struct bucket_config own = b;
	const struct remote_options r = { .cache_dir = s->o->bucket_cache_path,
		.cache_bytes = s->o->bucket_cache_bytes };
	struct remote_options with = r;
	enum err_code rc;

	own.waiting = s->waiting;
	s->prices = bucket_option_prices(&c->bucket);
	bucket_section_encode(&s->bucket_is, &c->bucket);
	if (buf_failed(&s->bucket_is))
		return err_nomem(err, "bucket");
	if (s->o->mode != MODE_SERVER) {
		own.timeout_ns = READ_TIMEOUT_NS;
		own.attempt_timeout_ns = READ_ATTEMPT_NS;
	}
	if ((rc = bucket_open(&own, &s->bucket, err)) ||
		(s->o->mode == MODE_QUERY && (rc = storage_open_rules(s, &b, err))) ||
		(s->o->mode != MODE_COMPACT &&
			(rc = storage_open_impatient(&b, SIDE_TIMEOUT_NS, &s->side_bucket, err))) ||
		(s->o->shard_join &&
			(rc = storage_open_impatient(&b, SIDE_TIMEOUT_NS, &s->look_bucket, err))))
		return bucket_section_err(&c->bucket, rc, err);
	with.bucket = s->bucket;
	return remote_open(&with, &s->remote, err);
}

static enum err_code storage_open_shard(struct storage *s, struct err *err)
{
	struct shard_options o = shard_options_of(s, s->o->shard_name);
	enum err_code rc;

	o.waiting = s->waiting;
	s->starting = true;
	starting_say(s->waiting, "asks the bucket for the lease of shard %s", o.name);
	if ((rc = shard_open(&o, &s->shard, err)) ||
		(rc = shard_join_open(s->o, s->look_bucket, s->shard, s->waiting, &s->assignment, err)) ||
		(rc = thread_start(&s->watch, "storage-watch", storage_watch, s, err)) ||
		(rc = shard_start(s->shard, err)) ||
		(rc = shard_join_now(s->assignment, s->shard, s->waiting, err)))
		return rc;
	mutex_lock(&s->lock);
	s->starting = false;
	mutex_unlock(&s->lock);
	return ERR_OK;
}

/* Two nodes in one directory would empty each other's windows. */
static enum err_code storage_lock_dir(struct storage *s, struct err *err)
{
	char *path = storage_path_below(s, "lock");
	enum err_code rc;

	if (!path)
		return err_nomem(err, "lock");
	if (!(rc = fs_mkdir_all(&fs_posix, s->o->data_dir, err)))
		rc = fs_lock(path, &s->lock_fd, err);
	free(path);
	return rc == ERR_UNAVAILABLE ?
		err_set(err, rc, "data directory %s is locked by another process", s->o->data_dir) :
		rc;
}

/* A node is ready with the blocks of all shards, or with what it has after READY_WAIT_NS. */
static enum err_code storage_read_shards(struct storage *s, struct err *err)
{
	int64_t until_ns = clock_monotonic_ns() + READY_WAIT_NS;
	size_t read, n;

	while (!cluster_progress(s->cluster, &read, &n) && clock_monotonic_ns() < until_ns) {
		if (storage_is_told_to_end()) {
			bucket_cancel(s->bucket, clock_monotonic_ns()); /* workers end at once */
			return err_set(err, ERR_CANCELED, "no longer waiting for the shards");
		}
		if (!n)
			starting_say(s->waiting, "lists the shards in the bucket");
		else
			starting_say(s->waiting, "reads shards: %zu of %zu", read, n);
		cluster_wait(s->cluster, READY_LOOK_NS);
	}
	return ERR_OK;
}

static enum err_code storage_open_cluster(struct storage *s, struct err *err)
{
	struct cluster_options o = { .bucket = s->bucket,
		.remote = remote_source(s->remote),
		.records = RULES_SHARD,
		.db = db_options_of(s->o),
		.poll_ns = s->o->poll_interval_ns };
	enum err_code rc;
	char *dir;

	if ((rc = storage_lock_dir(s, err)))
		return rc;
	if (!(dir = storage_path_below(s, "followers")))
		return err_nomem(err, "cluster");
	o.dir = dir;
	rc = cluster_open(&o, &s->cluster, err);
	free(dir);
	if (rc || (rc = storage_read_shards(s, err)))
		return rc;
	return thread_start(&s->watch, "storage-watch", storage_watch, s, err);
}

static void storage_tell_nothing(
	void *ctx, int64_t min_ns, int64_t max_ns, db_warn_fn warn, void *to)
{
	warn(to, "this server has no profiles (--mode=compact): ask a query node");
}

static enum err_code storage_open_caretaker(struct storage *s, struct err *err)
{
	const struct options *o = s->o;
	const struct caretaker_options c = { .bucket = s->bucket,
		.retention_ns = o->retention_ns,
		.retention_bytes = o->retention_bytes,
		.delete_delay_ns = o->delete_delay_ns,
		.poll_ns = o->poll_interval_ns };
	enum err_code rc;

	if ((rc = storage_lock_dir(s, err)) || (rc = db_union_open(&s->db, err)))
		return rc;
	db_union_tell(s->db, storage_tell_nothing, NULL);
	return caretaker_open(&c, &s->caretaker, err);
}

static enum err_code storage_open_parts(struct storage *s, const struct config *c, struct err *err)
{
	enum err_code rc;

	if (!c || !c->bucket.present) {
		const struct db_options d = db_options_of(s->o);

		starting_say(s->waiting, "opens the data directory");
		return db_open(&d, &s->db, err);
	}
	if ((rc = storage_open_bucket(s, c, err)))
		return rc;
	switch (s->o->mode) {
	case MODE_QUERY:
		return storage_open_cluster(s, err);
	case MODE_COMPACT:
		return storage_open_caretaker(s, err);
	default:
		return storage_open_shard(s, err);
	}
}

static void storage_parts_of(void *ctx, struct cluster_parts *out)
{
	struct storage *s = ctx;

	*out = (struct cluster_parts){ .mode = s->o->mode_name,
		.shard = s->o->shard_name,
		.bucket = s->bucket,
		.bucket_too = { s->rules_bucket, s->state_bucket, s->side_bucket, s->look_bucket },
		.publisher = s->shard ? shard_publisher(s->shard) : NULL,
		.assignment = s->assignment,
		.cluster = s->cluster,
		.remote = s->remote,
		.prices = s->prices,
		.opened_ns = s->opened_ns };
}

enum err_code storage_open(const struct options *o, const struct config *c,
	struct starting *waiting, struct storage **out, struct err *err)
{
	struct storage *s = calloc(1, sizeof(*s));
	enum err_code rc;

	if (!s)
		return err_nomem(err, "storage");
	s->o = o;
	s->waiting = waiting;
	s->lock_fd = -1;
	s->opened_ns = clock_monotonic_ns();
	mutex_init(&s->lock);
	cond_init(&s->changed);
	shard_lists_init(&s->lists);
	rules_state_init(&s->state, NULL);
	if (!o->data_dir[0]) /* its files would be in the root directory */
		rc = err_set(err, ERR_INVALID, "--storage.tsdb.path is empty");
	else if (!(s->senders_path = storage_path_below(s, "senders.json")))
		rc = err_nomem(err, "storage");
	else if ((rc = storage_open_parts(s, c, err)) == ERR_NOT_FOUND)
		rc = ERR_IO;
	if (rc) {
		storage_close(s);
		return rc;
	}
	cluster_metrics_begin(&s->metrics, storage_parts_of, s);
	*out = s;
	return ERR_OK;
}

/* ---- rules ---- */

static struct rules_lease *storage_rules(struct storage *s)
{
	struct rules_lease *rules;

	mutex_lock(&s->lock);
	rules = s->rules;
	mutex_unlock(&s->lock);
	return rules;
}

enum err_code storage_want_rules(
	struct storage *s, const struct rules_turns *turns, struct err *err)
{
	struct rules_lease_options o = { .cluster = s->cluster, .turns = *turns };
	struct rules_lease *rules = NULL;
	enum err_code rc;
	char *dir;

	if (!s->cluster || storage_rules(s))
		return ERR_OK;
	if (!(dir = storage_path_below(s, RULES_SHARD)))
		return err_nomem(err, "rules");
	o.shard = shard_options_of(s, RULES_SHARD);
	o.shard.bucket = s->rules_bucket;
	o.shard.db.dir = dir;
	rc = rules_lease_open(&o, &rules, err);
	free(dir);
	mutex_lock(&s->lock);
	s->rules = rules;
	mutex_unlock(&s->lock);
	return rc;
}

void storage_end_rules(struct storage *s)
{
	struct rules_lease *rules = s ? storage_rules(s) : NULL;

	if (!s)
		return;
	mutex_lock(&s->lock);
	s->closing = true;
	cond_broadcast(&s->changed);
	mutex_unlock(&s->lock);
	if (s->state_bucket)
		bucket_cancel(s->state_bucket, clock_monotonic_ns());
	if (rules)
		rules_lease_end(rules);
}

struct rules_state *storage_rules_state(struct storage *s)
{
	return s->state.bucket ? &s->state : NULL;
}

enum rules_lease_state storage_rules_lease_state(struct storage *s)
{
	struct rules_lease *rules = storage_rules(s);

	return rules ? rules_lease_state(rules) : RULES_NOT_HERE;
}

/* ---- closing ---- */

void storage_close(struct storage *s)
{
	if (!s)
		return;
	cluster_metrics_end(&s->metrics);
	storage_end_rules(s);
	thread_join(&s->watch);
	rules_lease_close(s->rules);
	if (s->caretaker)
		bucket_cancel(s->bucket, clock_monotonic_ns() + LAST_CALL_NS);
	caretaker_close(s->caretaker);
	if (s->cluster) /* its workers may read segments */
		bucket_cancel(s->bucket, clock_monotonic_ns());
	cluster_close(s->cluster);
	assignment_node_close(s->assignment);
	shard_close(s->shard);
	db_close(s->db);
	remote_close(s->remote);
	bucket_close(s->rules_bucket);
	bucket_close(s->side_bucket);
	bucket_close(s->look_bucket);
	rules_state_release(&s->state);
	bucket_close(s->state_bucket);
	shard_lists_release(&s->lists);
	free(s->senders_path);
	bucket_close(s->bucket);
	if (s->lock_fd >= 0)
		fs_unlock(s->lock_fd);
	buf_release(&s->bucket_is);
	cond_destroy(&s->changed);
	mutex_destroy(&s->lock);
	free(s);
}

struct db *storage_db(struct storage *s)
{
	return s->cluster ? cluster_db(s->cluster) : s->shard ? shard_db(s->shard) : s->db;
}

bool storage_is_fenced(struct storage *s)
{
	bool fenced;

	mutex_lock(&s->lock);
	fenced = s->fenced;
	mutex_unlock(&s->lock);
	return fenced;
}

bool storage_is_other(struct storage *s, const struct config *c)
{
	struct buf is = { 0 };
	bool other;

	if (c->bucket.present)
		bucket_section_encode(&is, &c->bucket);
	other = !buf_failed(&is) && !str_eq(buf_str(&is), buf_str(&s->bucket_is));
	buf_release(&is);
	return other;
}

enum err_code storage_view(
	struct storage *s, struct arena *a, struct cluster_view *out, struct err *err)
{
	struct cluster_parts p;

	storage_parts_of(s, &p);
	return cluster_view_fill(&p, a, out, err);
}

enum err_code storage_lists(struct storage *s, enum shard_list which, struct arena *a,
	struct shard_list_view **out, size_t *n, struct err *err)
{
	*n = 0;
	if (!s->cluster)
		return ERR_OK;
	return shard_lists_get(
		&s->lists, which, RULES_SHARD, s->side_bucket, s->cluster, a, out, n, err);
}

const char *storage_senders_path(const struct storage *s)
{
	return s->senders_path;
}

struct shard_node *storage_shard(struct storage *s)
{
	return s->shard;
}

struct assignment_node *storage_assignment(struct storage *s)
{
	return s->assignment;
}

bool storage_is_shard(const struct storage *s)
{
	return s->shard != NULL;
}

enum err_code storage_put_list(
	struct storage *s, enum shard_list which, struct str text, struct err *err)
{
	return shard_lists_put(s->side_bucket, which, s->o->shard_name, text, err);
}

struct bucket *storage_side_bucket(struct storage *s)
{
	return s->side_bucket;
}
