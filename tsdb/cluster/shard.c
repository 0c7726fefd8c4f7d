#include "tsdb/cluster/shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/self/starting.h"
#include "base/thread.h"
#include "tsdb/catalog/remote.h"
#include "tsdb/catalog/state.h"
#include "tsdb/cluster/restore.h"
#include "tsdb/db.h"
#include "tsdb/lists/losses.h"

#define LOOK_MAX_NS NS_PER_MIN
#define FIRST_WORD_NS (10 * NS_PER_S) /* of the bucket, before a shard starts without it */
#define LATE_RETRY_NS (5 * NS_PER_S)

struct shard_node {
	struct shard_options o;
	struct arena arena; /* of strings */
	char *lock_path;
	struct publisher *p; /* from shard_open to the end */
	bool taken; /* the lease was taken */
	bool late; /* it started without the lease: `late_take` takes it */
	atomic_bool canceled;
	atomic_bool refused; /* another server has or had the lease when `late_take` asked */
	struct thread late_take;
	struct db *db;
	struct db_published published;
	struct thread local;

	struct mutex lock; /* guards what follows */
	struct cond changed;
	bool open; /* p may be woken by the database */
	bool stopping;

	bool swap_failed; /* local thread only: the log has it */
};

/* ---- life ---- */

static void cluster_shard_on_change(
	void *ctx, enum db_change what, const struct ulid *block, int64_t window_ns)
{
	struct shard_node *s = ctx;

	(void)what;
	(void)block;
	(void)window_ns;
	mutex_lock(&s->lock);
	if (s->open)
		publisher_wake(s->p);
	mutex_unlock(&s->lock);
}

static enum err_code shard_node_copy_options(
	struct shard_node *s, const struct shard_options *o, struct err *err)
{
	char *dir = arena_printf(&s->arena, "%s", o->db.dir),
		 *name = arena_printf(&s->arena, "%s", o->name);

	s->lock_path = arena_printf(&s->arena, "%s/lock", o->db.dir);
	if (!dir || !name || !s->lock_path)
		return arena_fail(&s->arena, "shard", err);
	s->o = *o;
	s->o.name = name;
	s->o.db.dir = dir;
	s->o.db.segments = true;
	s->o.db.remote = o->remote;
	s->o.db.published = &s->published;
	s->published = (struct db_published){ cluster_shard_on_change, s };
	return ERR_OK;
}

static void shard_node_release(struct shard_node *s)
{
	mutex_destroy(&s->lock);
	cond_destroy(&s->changed);
	arena_release(&s->arena);
	free(s);
}

enum err_code shard_open(const struct shard_options *o, struct shard_node **out, struct err *err)
{
	struct publisher_options po = { .bucket = o->bucket,
		.shard = str_of(o->name),
		.dir = o->db.dir,
		.fs = o->db.fs,
		.interval_ns = o->interval_ns,
		.lease_ns = o->lease_ns,
		.address = o->address,
		.delete_delay_ns = o->delete_delay_ns,
		.prices = o->prices,
		.no_probe = o->no_probe,
		.waiting = o->waiting,
		.no_threads = o->no_threads };
	struct shard_node *s = calloc(1, sizeof(*s));
	enum err_code rc;

	if (!s)
		return err_nomem(err, "shard");
	arena_init(&s->arena, 0);
	mutex_init(&s->lock);
	cond_init(&s->changed);
	if ((rc = shard_node_copy_options(s, o, err)) || (rc = publisher_open(&po, &s->p, err))) {
		shard_node_release(s);
		return rc;
	}
	s->open = true;
	*out = s;
	return ERR_OK;
}

static void shard_node_stop_threads(struct shard_node *s)
{
	mutex_lock(&s->lock);
	s->stopping = true;
	cond_broadcast(&s->changed);
	mutex_unlock(&s->lock);
	if (s->late) { /* it may wait for the lease, or for the bucket */
		publisher_cancel(s->p);
		bucket_cancel(s->o.bucket, clock_monotonic_ns());
		thread_join(&s->late_take);
		bucket_cancel(s->o.bucket, INT64_MAX);
	}
	thread_join(&s->local);
}

static void shard_node_finish(struct shard_node *s, void (*end)(struct publisher *p))
{
	if (!s)
		return;
	shard_node_stop_threads(s);
	mutex_lock(&s->lock); /* the database may tell something until it is closed */
	s->open = false;
	mutex_unlock(&s->lock);
	end(s->p);
	db_close(s->db);
	shard_node_release(s);
}

void shard_close(struct shard_node *s)
{
	shard_node_finish(s, s && s->db ? publisher_close : publisher_abandon);
}

void shard_abandon(struct shard_node *s)
{
	shard_node_finish(s, publisher_abandon);
}

/* ---- starting ---- */

/* Another process that works on the directory has the same token, and would be fenced. */
static enum err_code shard_node_lock_directory(struct shard_node *s, int *fd, struct err *err)
{
	struct fs *fs = s->o.db.fs ? s->o.db.fs : &fs_posix;
	enum err_code rc;

	if ((rc = fs_mkdir_all(fs, s->o.db.dir, err)))
		return rc;
	rc = fs_lock(s->lock_path, fd, err);
	if (rc == ERR_UNAVAILABLE) /* not the bucket's */
		rc = err_set(
			err, ERR_EXISTS, "data directory %s is locked by another process", s->o.db.dir);
	return rc;
}

static enum err_code shard_node_restore(struct shard_node *s, struct err *err)
{
	struct restore_options o = { .bucket = s->o.bucket,
		.manifest = publisher_taken(s->p),
		.shard = s->o.name,
		.dir = s->o.db.dir,
		.fs = s->o.db.fs,
		.store = s->o.db.store,
		.waiting = s->o.waiting,
		.canceled = &s->canceled };
	struct restore_done done;
	enum err_code rc;

	if (!publisher_is_behind(s->p) && !restore_is_due(o.dir))
		return ERR_OK;
	if ((rc = publisher_want_loss(s->p, err)) || (rc = restore_run(&o, &done, err)))
		return rc;
	publisher_restored(s->p);
	return ERR_OK;
}

/* ---- what the owner before did not put ---- */

/*
 * The earliest time of a row that may be lost. The manifest names all windows that the owner had at
 * through_ns. Rows that it took later are in one of these, or in a new window. A new window begins
 * at most too_old_ns before the window of the newest time: older rows were refused.
 */
static int64_t shard_node_took_from(const struct shard_node *s, const struct manifest *m)
{
	int64_t from = m->through_ns, newest = 0, window_ns = s->o.db.window_ns;

	for (uint32_t i = 0; i < m->blocks_n; i++)
		if (m->blocks[i].max_ns > newest)
			newest = m->blocks[i].max_ns - 1;
	if (m->windows_n) {
		from = m->windows[0].start_ns < from ? m->windows[0].start_ns : from;
		if (m->windows[m->windows_n - 1].start_ns > newest)
			newest = m->windows[m->windows_n - 1].start_ns;
	}
	if (newest > m->through_ns) /* windows of the future count from our time on */
		newest = m->through_ns;
	newest = newest / window_ns * window_ns - s->o.db.too_old_ns;
	from = newest < from ? newest : from;
	return from > 0 ? from : 0;
}

struct shard_unsent {
	struct loss l;
	char where[256];
};

/* After a crash the same loss is noted again: it gets the name of the old entry, and adds none. */
static bool shard_unsent_is_new(void *ctx, const struct loss *l)
{
	struct shard_unsent *u = ctx;

	if (l->accepted || l->what != u->l.what || !str_eq(l->text, u->l.text))
		return true;
	snprintf(u->where, sizeof(u->where), STR_FMT, STR_ARG(l->where));
	return false;
}

static enum err_code shard_node_add_unsent(
	struct shard_node *s, struct losses *losses, struct err *err)
{
	const struct manifest *m = publisher_taken(s->p);
	struct shard_unsent u = { .l = { .what = s->o.numbers ? LOSS_NUMBERS : LOSS_PROFILES,
								  .min_ns = shard_node_took_from(s, m),
								  .max_ns = clock_now_ns() + DB_FUTURE_NS } };
	struct buf text = { 0 };
	enum err_code rc;

	buf_add_cstr(
		&text, "the shard goes on with another data directory: data that the one before took ");
	if (m->through_ns) {
		buf_add_cstr(&text, "after ");
		time_print_rfc3339(&text, m->through_ns);
		buf_add_cstr(&text, " ");
	}
	buf_add_cstr(&text, "and had not put into the bucket is lost");
	u.l.text = buf_str(&text);
	snprintf(u.where, sizeof(u.where), "head after generation %" PRIu64, m->generation);
	if (buf_failed(&text)) {
		rc = err_nomem(err, "shard");
	} else {
		losses_each(losses, 0, LOSS_END, shard_unsent_is_new, &u);
		u.l.where = str_of(u.where);
		log_error("cluster", "data that was not in the bucket yet may be lost",
			LOG_S("shard", s->o.name), LOG_I("generation", (int64_t)m->generation),
			LOG_STR("why", u.l.text));
		rc = losses_add(losses, &u.l, NULL, err);
	}
	buf_release(&text);
	return rc;
}

/* Another directory was the shard's, and this one lacks what that one did not put. open: the list
 * of the database, NULL: it is not open. */
static enum err_code shard_node_note_unsent(
	struct shard_node *s, struct losses *open, struct err *err)
{
	struct fs *fs = s->o.db.fs ? s->o.db.fs : &fs_posix;
	struct losses *l = open;
	enum err_code rc;

	if (!publisher_is_loss_due(s->p))
		return ERR_OK;
	if (!open && (rc = losses_open(fs, s->o.db.dir, false, &l, err)))
		return rc;
	rc = shard_node_add_unsent(s, l, err);
	if (!open)
		losses_close(l);
	if (!rc)
		publisher_note_loss(s->p);
	return rc;
}

/* ---- the start ---- */

static bool cluster_shard_is_away(enum err_code rc)
{
	return rc == ERR_UNAVAILABLE || rc == ERR_TIMEOUT || rc == ERR_CANCELED;
}

/*
 * The directory was the shard's before, and is whole: it can go on without the bucket. Any other
 * directory has to wait, as it cannot know what the shard has.
 */
static bool shard_node_can_be_late(struct shard_node *s)
{
	char *owner = arena_printf(&s->arena, "%s/" LEASE_OWNER_FILE, s->o.db.dir);

	return owner && fs_exists(owner) && !restore_is_idle(s->o.db.dir);
}

/* The bucket says nothing within some seconds. *err: why. */
static bool shard_node_is_bucket_away(struct shard_node *s, struct err *err)
{
	struct manifest_key key = manifest_key_of(str_of(s->o.name));
	struct bucket_info info;
	enum err_code rc;

	bucket_cancel(s->o.bucket, clock_monotonic_ns() + FIRST_WORD_NS);
	rc = bucket_head(s->o.bucket, manifest_key_str(&key), &info, err);
	bucket_cancel(s->o.bucket, INT64_MAX);
	return cluster_shard_is_away(rc);
}

static enum err_code shard_node_take(struct shard_node *s, struct err *err)
{
	size_t forgotten;
	enum err_code rc;
	int fd;

	if ((rc = shard_node_lock_directory(s, &fd, err)))
		return rc;
	s->late = !s->taken && shard_node_can_be_late(s) && shard_node_is_bucket_away(s, err);
	if (s->late)
		log_warn("cluster", "the bucket is away: nothing is published until it is back",
			LOG_S("shard", s->o.name), LOG_E(err));
	else if (!s->taken && !(rc = publisher_take(s->p, restore_is_idle(s->o.db.dir), err)))
		s->taken = true;
	if (!rc && !s->late && !(rc = shard_node_restore(s, err)))
		rc = shard_node_note_unsent(s, NULL, err);
	if (!rc && !s->late)
		rc = forget_dropped(s->o.db.fs ? s->o.db.fs : &fs_posix, s->o.db.dir, publisher_taken(s->p),
			&forgotten, err);
	fs_unlock(fd); /* db_open takes it */
	return rc;
}

static void cluster_shard_look_thread(void *ctx);

/* The directory is open, so it cannot be made anew. What it took and did not publish is a loss: the
 * next start notes it, as the manifest is not `complete` any more. */
static enum err_code shard_node_end_late(struct shard_node *s, struct err *err)
{
	enum err_code rc = publisher_begin(s->p, err);

	return rc ? rc :
				err_set(err, ERR_EXISTS,
					"shard %s went on in another data directory while the bucket was away: this "
					"server ends, and its next start restores the directory from the bucket",
					s->o.name);
}

/* Nothing is written to the bucket before the lease is taken. */
enum err_code shard_take_late(struct shard_node *s, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (!s->taken && !(rc = publisher_take(s->p, false, err)))
		s->taken = true;
	if (!rc && publisher_is_behind(s->p))
		rc = shard_node_end_late(s, err);
	if (rc == ERR_EXISTS)
		atomic_store(&s->refused, true);
	if (rc || (rc = shard_node_note_unsent(s, s->db->losses, err)))
		return rc;
	return publisher_attach(s->p, s->db, err);
}

static void cluster_shard_late_thread(void *ctx)
{
	struct shard_node *s = ctx;
	bool ended = false;
	enum err_code rc;
	struct err err;

	while (!ended) { /* until the lease is taken, another server has it, or the shard stops */
		if ((rc = shard_take_late(s, &err)) == ERR_EXISTS)
			log_error("cluster", "another server took the shard", LOG_E(&err));
		else if (rc && rc != ERR_CANCELED)
			log_warn("cluster", "the lease cannot be taken yet, nothing is published", LOG_E(&err));
		ended = !rc || rc == ERR_EXISTS;
		mutex_lock(&s->lock);
		for (int64_t next = clock_monotonic_ns() + LATE_RETRY_NS; !ended && !s->stopping;)
			if (!cond_wait_until(&s->changed, &s->lock, next))
				break;
		ended |= s->stopping;
		mutex_unlock(&s->lock);
	}
}

/* A manifest without `complete` is confirmed before the first profile of a new directory. */
static enum err_code shard_node_begin_new(struct shard_node *s, struct err *err)
{
	enum err_code rc;

	if (!restore_has_marker(s->o.db.dir))
		return ERR_OK;
	if (!(rc = publisher_begin(s->p, err)))
		rc = restore_end(s->o.db.fs ? s->o.db.fs : &fs_posix, s->o.db.dir, err);
	if (rc) {
		db_close(s->db);
		s->db = NULL;
	}
	return rc;
}

static enum err_code shard_node_begin(struct shard_node *s, struct err *err)
{
	int64_t interval_ns = s->o.interval_ns;
	enum err_code rc = ERR_OK;

	if (!s->late)
		rc = publisher_attach(s->p, s->db, err);
	if (rc || s->o.no_threads)
		return rc;
	s->o.interval_ns = interval_ns > 0 && interval_ns < LOOK_MAX_NS ? interval_ns : LOOK_MAX_NS;
	if (s->late &&
		(rc = thread_start(&s->late_take, "cluster-lease", cluster_shard_late_thread, s, err)))
		return rc;
	return thread_start(&s->local, "cluster-local", cluster_shard_look_thread, s, err);
}

enum err_code shard_start(struct shard_node *s, struct err *err)
{
	enum err_code rc;

	if (s->db)
		return err_set(err, ERR_INVALID, "shard %s was started before", s->o.name);
	if ((rc = shard_node_take(s, err)))
		return rc;
	if (publisher_is_fenced(s->p))
		return err_set(err, ERR_EXISTS, "shard %s was taken over by another server", s->o.name);
	if (s->late) /* blocks in the bucket are opened later, without a wait for each */
		bucket_cancel(s->o.bucket, clock_monotonic_ns());
	starting_say(s->o.waiting, "opens the data directory");
	rc = db_open(&s->o.db, &s->db, err);
	bucket_cancel(s->o.bucket, INT64_MAX);
	if (rc || (rc = shard_node_begin_new(s, err)))
		return rc;
	return shard_node_begin(s, err);
}

void shard_cancel(struct shard_node *s)
{
	atomic_store(&s->canceled, true);
	publisher_cancel(s->p);
}

struct db *shard_db(struct shard_node *s)
{
	return s->db;
}

struct publisher *shard_publisher(struct shard_node *s)
{
	return s->p;
}

bool shard_is_fenced(const struct shard_node *s)
{
	return publisher_is_fenced(s->p) || atomic_load(&s->refused);
}

bool shard_lease_is_sure(const struct shard_node *s)
{
	return publisher_lease_is_sure(s->p);
}

enum err_code shard_check_lease(struct shard_node *s, struct err *err)
{
	return publisher_check_lease(s->p, err);
}

/* ---- blocks that leave the disk ---- */

/* Undamaged blocks on the disk that are old enough; malloc'ed. */
static struct ulid *shard_node_list_old(struct shard_node *s, int64_t now_ns, size_t *n)
{
	struct db *db = s->db;
	struct ulid *v;

	*n = 0;
	mutex_lock(&db->lock);
	v = malloc((db->blocks_n + 1) * sizeof(*v));
	for (size_t i = 0; i < db->blocks_n && v; i++) {
		const struct db_block *b = db->blocks[i];
		const struct block_meta *m = block_meta(b->block);

		/* Retention 0: also where our clock is behind the profiles'. */
		if (!b->remote && !b->damaged &&
			(s->o.local_retention_ns <= 0 || now_ns - m->max_ns > s->o.local_retention_ns))
			v[(*n)++] = m->ulid;
	}
	mutex_unlock(&db->lock);
	return v;
}

static bool shard_node_is_stopping(struct shard_node *s)
{
	bool stopping;

	mutex_lock(&s->lock);
	stopping = s->stopping;
	mutex_unlock(&s->lock);
	return stopping;
}

static void shard_node_note(struct shard_node *s, enum err_code rc, const struct err *why)
{
	if (rc == ERR_NOT_FOUND) /* it was joined or dropped meanwhile */
		return;
	if (rc && !s->swap_failed)
		log_warn("cluster", "a block cannot leave the disk, is tried again", LOG_E(why));
	s->swap_failed = rc != ERR_OK;
}

size_t shard_swap(struct shard_node *s, int64_t now_ns)
{
	size_t n, swapped = 0;
	struct ulid *v = shard_node_list_old(s, now_ns, &n);
	char key[MANIFEST_KEY_BYTES_MAX];
	enum err_code rc;
	struct err why;

	for (size_t i = 0; i < n && !shard_node_is_stopping(s); i++) {
		if (!publisher_has_block(s->p, &v[i]))
			continue;
		snprintf(key, sizeof(key), "shards/%s/blocks/%s", s->o.name, v[i].text);
		rc = blocks_swap_remote(s->db, &v[i], key, &why);
		shard_node_note(s, rc, &why);
		swapped += !rc;
	}
	free(v);
	return swapped;
}

/* As often as the publisher confirms blocks, and at least each minute. */
static void cluster_shard_look_thread(void *ctx)
{
	struct shard_node *s = ctx;
	int64_t next;

	mutex_lock(&s->lock);
	while (!s->stopping) { /* until the end */
		next = clock_monotonic_ns() + s->o.interval_ns;
		(void)cond_wait_flag(&s->changed, &s->lock, &s->stopping, next);
		mutex_unlock(&s->lock);
		(void)shard_swap(s, clock_now_ns());
		mutex_lock(&s->lock);
	}
	mutex_unlock(&s->lock);
}
