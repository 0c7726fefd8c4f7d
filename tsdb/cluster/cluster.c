#include "tsdb/cluster/cluster_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "tsdb/cluster/keys.h"
#include "tsdb/db.h"
#include "tsdb/union.h"

#define POLL_NS (10 * NS_PER_S)
#define WORKERS_MIN 8u

/* ---- the list of shards; the lock is held ---- */

static size_t cluster_place_of(const struct cluster *c, struct str name)
{
	size_t at = 0;

	while (at < c->n && str_cmp(str_of(c->shards[at]->name), name) < 0)
		at++;
	return at;
}

static struct member_shard *cluster_find(const struct cluster *c, struct str name)
{
	size_t at = cluster_place_of(c, name);

	return at < c->n && str_is(name, c->shards[at]->name) ? c->shards[at] : NULL;
}

static struct member_shard *cluster_add(struct cluster *c, struct str name)
{
	struct member_shard *s = cluster_find(c, name);
	size_t at;

	mutex_assert_held(&c->lock);
	if (s)
		return s;
	if (!array_room(&c->shards, c->n, 1, &c->cap) || !(s = calloc(1, sizeof(*s))) ||
		!(s->name = strndup(name.ptr, name.len))) {
		free(s);
		return NULL;
	}
	at = cluster_place_of(c, name);
	memmove(c->shards + at + 1, c->shards + at, (c->n - at) * sizeof(struct member_shard *));
	c->shards[at] = s;
	c->n++;
	log_info("cluster", "shard found", LOG_S("shard", s->name));
	return s;
}

static void cluster_take_out(struct cluster *c, const struct member_shard *s)
{
	size_t at = cluster_place_of(c, str_of(s->name));

	mutex_assert_held(&c->lock);
	memmove(c->shards + at, c->shards + at + 1, (c->n - at - 1) * sizeof(struct member_shard *));
	c->n--;
}

static void shard_free(struct member_shard *s)
{
	free(s->name);
	free(s);
}

/* ---- rounds; the caller has made the shard busy ---- */

/* Memory is for all shards together. A shard's part depends on their number when it was found. */
static struct db_options cluster_part_of(struct cluster *c)
{
	struct db_options o = c->o.db;
	size_t n;

	mutex_lock(&c->lock);
	n = c->n ? c->n : 1;
	mutex_unlock(&c->lock);
	o.symbols_bytes /= n;
	o.cache_bytes /= n;
	if (o.cache_bytes < (UINT64_C(1) << 20))
		o.cache_bytes = UINT64_C(1) << 20;
	return o;
}

static enum err_code cluster_make_follower(
	struct cluster *c, struct member_shard *s, struct follower **out, struct err *err)
{
	struct follower_options o = { .bucket = c->o.bucket,
		.remote = c->o.remote,
		.shard = s->name,
		.newest = &c->newest,
		.db = cluster_part_of(c) };
	char *dir = NULL;
	enum err_code rc;

	if (asprintf(&dir, "%s/%s/%u", c->dir, s->name, ++s->made) < 0)
		return err_nomem(err, "shard");
	o.dir = dir;
	rc = follower_open(&o, out, err);
	free(dir);
	return rc;
}

static void cluster_set_follower(struct cluster *c, struct member_shard *s, struct follower *f)
{
	mutex_lock(&c->lock);
	s->follower = f;
	mutex_unlock(&c->lock);
}

static void cluster_leave_union(struct cluster *c, struct member_shard *s)
{
	struct follower *f;

	mutex_lock(&c->lock);
	f = s->follower;
	s->rounds = 0; /* answers say that it is not read */
	s->unread = false;
	s->follower = NULL;
	mutex_unlock(&c->lock);
	if (s->in_union)
		db_union_remove(c->db, s->name);
	s->in_union = false;
	follower_close(f);
}

/* The union has a shard from its first look on, well or not: answers say what is missing. */
void cluster_round_of(struct cluster *c, struct member_shard *s)
{
	struct follower *f = NULL;
	enum err_code rc = ERR_OK;
	struct err err;

	if (!s->follower && !(rc = cluster_make_follower(c, s, &f, &err)))
		cluster_set_follower(c, s, f);
	if (rc) {
		log_error("cluster", "shard cannot be followed", LOG_S("shard", s->name), LOG_E(&err));
	} else {
		if ((rc = follower_look(s->follower, &err)) == ERR_EXISTS) {
			log_info("cluster", "shard is read anew", LOG_S("shard", s->name), LOG_E(&err));
			cluster_leave_union(c, s);
			cluster_round_of(c, s);
			return;
		}
		if (!s->in_union &&
			db_union_add(
				c->db, s->name, follower_db(s->follower), follower_tell, s->follower, &err))
			log_error("cluster", "shard not added", LOG_S("shard", s->name), LOG_E(&err));
		else
			s->in_union = true;
	}
	mutex_lock(&c->lock);
	s->absent = rc == ERR_NOT_FOUND;
	mutex_unlock(&c->lock);
}

/* ---- listing ---- */

struct cluster_listing {
	struct str *names;
	size_t n;
};

static bool cluster_is_listed(const struct cluster_listing *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_is(l->names[i], name))
			return true;
	return false;
}

/* The first shard that neither the list nor its last round found; busy from now on. */
static struct member_shard *cluster_take_gone(struct cluster *c, const struct cluster_listing *l)
{
	struct member_shard *s = NULL;

	mutex_lock(&c->lock);
	for (size_t i = 0; i < c->n && !s; i++)
		if (!c->shards[i]->own && !c->shards[i]->busy && c->shards[i]->absent &&
			!cluster_is_listed(l, c->shards[i]->name))
			s = c->shards[i];
	if (s) {
		s->busy = true;
		cluster_take_out(c, s);
	}
	mutex_unlock(&c->lock);
	return s;
}

void cluster_list(struct cluster *c)
{
	struct cluster_listing l = { 0 };
	int64_t began_ns = clock_monotonic_ns();
	struct err err = { 0 };
	struct member_shard *s;
	enum err_code rc;
	struct arena a;

	arena_init(&a, 0);
	rc = shard_list_names(c->o.bucket, &a, &l.names, &l.n, &err);
	mutex_lock(&c->lock);
	for (size_t i = 0; i < l.n && !rc; i++)
		if (!cluster_add(c, l.names[i]))
			rc = err_nomem(&err, "shards");
	if (rc && !c->list_failed.code)
		log_warn("cluster", "shards cannot be listed", LOG_E(&err));
	c->list_failed = rc ? err : (struct err){ 0 };
	if (!rc)
		c->listed_ns = began_ns;
	mutex_unlock(&c->lock);
	while (!rc && (s = cluster_take_gone(c, &l))) {
		log_info("cluster", "shard is gone", LOG_S("shard", s->name));
		cluster_leave_union(c, s);
		shard_free(s);
	}
	arena_release(&a);
}

/* ---- the cluster ---- */

/* The lock is held. */
static bool cluster_has_shards(const struct cluster *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (!c->o.records || strcmp(c->shards[i]->name, c->o.records))
			return true;
	return false;
}

/*
 * Warns that newer shards may be missing. If listing fails, it warns at once. If the list is old,
 * it warns after two polls and a second, as for a known shard. The caller holds the lock.
 */
static void cluster_tell_list(const struct cluster *c, db_warn_fn warn, void *to)
{
	int64_t age_ns = clock_monotonic_ns() - c->listed_ns;
	struct buf text = { 0 };

	mutex_assert_held(&c->lock);
	if (!c->listed_ns && !c->list_failed.code) {
		buf_add_cstr(&text, "shards may be missing: they cannot be listed yet");
	} else if (c->list_failed.code) {
		buf_printf(&text, "shards may be missing: they cannot be listed: %s", c->list_failed.msg);
	} else if (age_ns > 2 * c->o.poll_ns + NS_PER_S) {
		buf_add_cstr(&text, "shards may be missing: they were listed ");
		duration_print(&text, age_ns / NS_PER_S * NS_PER_S);
		buf_add_cstr(&text, " ago");
	} else if (!cluster_has_shards(c)) {
		buf_add_cstr(&text, "the bucket has no shards: no profiles were published yet");
	} else {
		return;
	}
	buf_add_char(&text, '\0');
	warn(to, buf_failed(&text) ? "shards may be missing" : text.ptr);
	buf_release(&text);
}

/* Shards that are not in the union yet: their first round has not ended. The lock is held. */
static void cluster_tell_unread(const struct cluster *c, db_warn_fn warn, void *to)
{
	const char *first = NULL;
	struct buf text = { 0 };
	size_t n = 0;

	mutex_assert_held(&c->lock);
	for (size_t i = 0; i < c->n; i++) {
		if (c->shards[i]->own || c->shards[i]->rounds)
			continue;
		first = first ? first : c->shards[i]->name;
		n++;
	}
	if (!n)
		return;
	buf_printf(&text, "shards are missing that are not read yet: %zu of %zu, the first is %s%c", n,
		c->n, first, '\0');
	warn(to, buf_failed(&text) ? "shards are missing" : text.ptr);
	buf_release(&text);
}

static void cluster_tell_missing(
	void *ctx, int64_t min_ns, int64_t max_ns, db_warn_fn warn, void *to)
{
	struct cluster *c = ctx;

	mutex_lock(&c->lock);
	cluster_tell_list(c, warn, to);
	cluster_tell_unread(c, warn, to);
	mutex_unlock(&c->lock);
}

static void cluster_set_union(struct cluster *c)
{
	db_union_tell(c->db, cluster_tell_missing, c);
	db_union_set_records(c->db, c->o.records);
}

enum err_code cluster_open(const struct cluster_options *o, struct cluster **out, struct err *err)
{
	struct cluster *c = calloc(1, sizeof(*c));
	enum err_code rc = ERR_OK;

	if (!c || !(c->dir = strdup(o->dir))) {
		free(c);
		return err_nomem(err, "cluster");
	}
	c->o = *o;
	if (!c->o.poll_ns)
		c->o.poll_ns = POLL_NS;
	if (!c->o.workers)
		c->o.workers = cpu_count() > WORKERS_MIN ? cpu_count() : WORKERS_MIN;
	if (c->o.workers > WORKERS_MAX)
		c->o.workers = WORKERS_MAX;
	mutex_init(&c->lock);
	cond_init(&c->due);
	cond_init(&c->done);
	/* Windows of an earlier process, perhaps of shards that are gone. */
	if (!(rc = fs_remove_tree(&fs_posix, c->dir, err)) && !(rc = db_union_open(&c->db, err)))
		cluster_set_union(c);
	for (unsigned i = 0; i < c->o.workers && !rc; i++)
		rc = thread_start(&c->workers[i], "cluster", cluster_work, c, err);
	if (rc) {
		cluster_close(c);
		return rc;
	}
	*out = c;
	return ERR_OK;
}

void cluster_close(struct cluster *c)
{
	if (!c)
		return;
	mutex_lock(&c->lock);
	c->closing = true;
	cond_broadcast(&c->due);
	cond_broadcast(&c->done);
	mutex_unlock(&c->lock);
	for (unsigned i = 0; i < c->o.workers; i++)
		thread_join(&c->workers[i]);
	for (size_t i = 0; i < c->n; i++) {
		if (c->shards[i]->own)
			db_union_remove(c->db, c->shards[i]->name);
		cluster_leave_union(c, c->shards[i]);
		shard_free(c->shards[i]);
	}
	db_close(c->db);
	cond_destroy(&c->due);
	cond_destroy(&c->done);
	mutex_destroy(&c->lock);
	free(c->shards);
	free(c->dir);
	free(c);
}

struct db *cluster_db(struct cluster *c)
{
	return c->db;
}

static bool cluster_all_read(const struct cluster *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (!c->shards[i]->rounds && !c->shards[i]->own)
			return false;
	return c->tried;
}

void cluster_wait(struct cluster *c, int64_t timeout_ns)
{
	int64_t until = clock_monotonic_ns() + timeout_ns;

	mutex_lock(&c->lock);
	while (!cluster_all_read(c) && !c->closing && cond_wait_until(&c->done, &c->lock, until))
		;
	mutex_unlock(&c->lock);
}

bool cluster_progress(struct cluster *c, size_t *read, size_t *n)
{
	bool all;

	mutex_lock(&c->lock);
	*read = 0;
	*n = c->n;
	for (size_t i = 0; i < c->n; i++)
		*read += c->shards[i]->rounds || c->shards[i]->own;
	all = cluster_all_read(c);
	mutex_unlock(&c->lock);
	return all;
}

/* Waits until no worker has it, and makes it ours. */
static struct member_shard *cluster_hold(struct cluster *c, const char *name)
{
	struct member_shard *s;

	mutex_lock(&c->lock);
	s = cluster_add(c, str_of(name));
	while (s && s->busy) {
		s->wanted++;
		cond_wait(&c->done, &c->lock);
		s->wanted--;
	}
	if (s)
		s->busy = true;
	mutex_unlock(&c->lock);
	return s;
}

enum err_code cluster_set_own(struct cluster *c, const char *name, struct db *db, struct err *err)
{
	struct member_shard *s = cluster_hold(c, name);
	enum err_code rc = ERR_OK;

	if (!s)
		return err_nomem(err, "shard");
	if (s->own)
		db_union_remove(c->db, name);
	else
		cluster_leave_union(c, s);
	if (db)
		rc = db_union_add(c->db, name, db, NULL, NULL, err);
	mutex_lock(&c->lock);
	s->own = rc ? NULL : db;
	s->busy = false;
	s->next_ns = 0;
	cond_broadcast(&c->done);
	cond_broadcast(&c->due);
	mutex_unlock(&c->lock);
	return rc;
}

enum err_code cluster_shards(
	struct cluster *c, struct arena *a, struct cluster_shard **out, size_t *n, struct err *err)
{
	struct cluster_shard *v;

	mutex_lock(&c->lock);
	*n = c->n;
	v = *out = arena_array(a, struct cluster_shard, c->n + 1);
	for (size_t i = 0; i < c->n && v; i++) {
		struct member_shard *s = c->shards[i];

		v[i] = (struct cluster_shard){ .name = arena_strndup(a, s->name, strlen(s->name)),
			.own = s->own != NULL };
		if (s->follower)
			follower_status(s->follower, &v[i].is);
		if (!v[i].name)
			v = NULL;
	}
	mutex_unlock(&c->lock);
	return v ? ERR_OK : arena_fail(a, "shards", err);
}
