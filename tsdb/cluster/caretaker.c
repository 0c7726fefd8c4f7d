#include "tsdb/cluster/caretaker.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "tsdb/cluster/caretaker_internal.h"

/*
 * A round: keep our lease; list the shards; look at each manifest's ETag, and read the manifest
 * where that is needed; find what is too old over all of them; visit those that are gone.
 */

/* ---- life ---- */

static void caretaker_options_set_defaults(struct caretaker_options *o)
{
	o->host = NULL;
	o->delete_delay_ns = o->delete_delay_ns ? o->delete_delay_ns : 15 * NS_PER_MIN;
	o->abandoned_ns = o->abandoned_ns ? o->abandoned_ns : NS_PER_HOUR;
	o->poll_ns = o->poll_ns ? o->poll_ns : NS_PER_MIN;
	o->orphans_every_ns = o->orphans_every_ns ? o->orphans_every_ns : NS_PER_DAY;
}

static enum err_code caretaker_new_lease(struct caretaker *c, const char *host, struct err *err)
{
	const struct lease_options o = { .bucket = c->o.bucket,
		.shard = STR("caretaker"), .key = CARETAKER_KEY, .what = "lease", .host = host,
			.interval_ns = c->o.poll_ns, .lease_ns = c->o.lease_ns, .no_probe = c->o.no_probe };
	struct lease *l, *old;
	enum err_code rc;

	if ((rc = lease_open(&o, &l, err)))
		return rc;
	mutex_lock(&c->lock);
	old = c->lease;
	c->lease = l;
	mutex_unlock(&c->lock);
	lease_close(old);
	return ERR_OK;
}

static void caretaker_free_shard(struct care_shard *s)
{
	arena_release(&s->arena);
	free(s);
}

static void caretaker_release(struct caretaker *c)
{
	lease_close(c->lease);
	for (size_t i = 0; i < c->shards_n; i++)
		caretaker_free_shard(c->shards[i]);
	free(c->shards);
	mutex_destroy(&c->lock);
	mutex_destroy(&c->round_lock);
	cond_destroy(&c->wake);
	free(c);
}

static bool caretaker_is_stopping(struct caretaker *c)
{
	bool stopping;

	mutex_lock(&c->lock);
	stopping = c->stopping;
	mutex_unlock(&c->lock);
	return stopping;
}

static void caretaker_run_thread(void *ctx)
{
	struct caretaker *c = ctx;
	struct err err;
	int64_t next;

	while (!caretaker_is_stopping(c)) { /* a round each poll_ns, until the end */
		next = clock_monotonic_ns() + c->o.poll_ns;
		clock_look(NULL, NULL);
		(void)!caretaker_round(c, &err);
		mutex_lock(&c->lock);
		(void)cond_wait_flag(&c->wake, &c->lock, &c->stopping, next);
		mutex_unlock(&c->lock);
	}
}

enum err_code caretaker_open(
	const struct caretaker_options *o, struct caretaker **out, struct err *err)
{
	struct caretaker *c = calloc(1, sizeof(*c));
	enum err_code rc;

	if (!c)
		return err_nomem(err, "caretaker");
	c->o = *o;
	caretaker_options_set_defaults(&c->o);
	c->status.state = CARETAKER_WAITING;
	mutex_init(&c->lock);
	mutex_init(&c->round_lock);
	cond_init(&c->wake);
	if ((rc = caretaker_new_lease(c, o->host, err)) ||
		(!o->no_thread &&
			(rc = thread_start(&c->thread, "caretaker", caretaker_run_thread, c, err)))) {
		caretaker_release(c);
		return rc;
	}
	*out = c;
	return ERR_OK;
}

void caretaker_close(struct caretaker *c)
{
	const struct manifest stopped = { .stopped = true };
	struct err err;

	if (!c)
		return;
	mutex_lock(&c->lock);
	c->stopping = true;
	lease_cancel(c->lease);
	cond_broadcast(&c->wake);
	mutex_unlock(&c->lock);
	thread_join(&c->thread);
	if (c->held && !lease_is_fenced(c->lease) && lease_write(c->lease, &stopped, &err))
		log_warn("cluster", "caretaker's lease is not given back", LOG_E(&err));
	caretaker_release(c);
}

/* ---- the caretaker's lease ---- */

static enum err_code caretaker_hold(struct caretaker *c, struct err *err)
{
	const struct manifest empty = { 0 };
	struct manifest m;
	struct arena a;
	enum err_code rc;
	bool same;

	if (lease_is_fenced(c->lease)) { /* another caretaker took it: wait for it like a new one */
		c->held = false;
		if ((rc = caretaker_new_lease(c, NULL, err)))
			return rc;
	}
	if (c->held)
		return lease_write(c->lease, &empty, err);
	arena_init(&a, 0);
	rc = lease_take(c->lease, false, &a, &m, &same, err);
	arena_release(&a);
	c->held = !rc;
	return rc;
}

enum err_code caretaker_renew(struct caretaker *c, struct err *err)
{
	const struct manifest empty = { 0 };

	mutex_assert_held(&c->round_lock);
	if (caretaker_is_stopping(c))
		return err_set(err, ERR_CANCELED, "the caretaker ends");
	return lease_age_ns(c->lease) < lease_ns(c->lease) / 4 ? ERR_OK :
															 lease_write(c->lease, &empty, err);
}

/* ---- shards ---- */

static struct care_shard *caretaker_shard_of(struct caretaker *c, struct str name)
{
	struct care_shard *s;

	for (size_t i = 0; i < c->shards_n; i++)
		if (str_is(name, c->shards[i]->name))
			return c->shards[i];
	if (!array_room(&c->shards, c->shards_n, 1, &c->shards_cap) || !(s = calloc(1, sizeof(*s))))
		return NULL;
	snprintf(s->name, sizeof(s->name), STR_FMT, STR_ARG(name));
	arena_init(&s->arena, 0);
	s->since_ns = clock_monotonic_ns();
	c->shards[c->shards_n++] = s;
	return s;
}

static enum err_code caretaker_find_shards(struct caretaker *c, struct err *err)
{
	struct arena a;
	struct str *names;
	size_t n, kept = 0;
	enum err_code rc;

	arena_init(&a, 0);
	if ((rc = shard_list_names(c->o.bucket, &a, &names, &n, err)))
		goto out;
	for (size_t i = 0; i < c->shards_n; i++)
		c->shards[i]->listed = false;
	for (size_t i = 0; i < n && !rc; i++) {
		struct care_shard *s = caretaker_shard_of(c, names[i]);

		if (s)
			s->listed = true;
		else
			rc = err_nomem(err, "caretaker");
	}
	for (size_t i = 0; i < c->shards_n && !rc; i++) {
		if (c->shards[i]->listed)
			c->shards[kept++] = c->shards[i];
		else
			caretaker_free_shard(c->shards[i]);
	}
	c->shards_n = rc ? c->shards_n : kept;
out:
	arena_release(&a);
	return rc;
}

static enum err_code caretaker_read_manifest(
	struct caretaker *c, struct care_shard *s, struct err *err)
{
	struct manifest_key key = manifest_key_of(str_of(s->name));
	struct manifest m;
	struct arena a;
	enum err_code rc;

	arena_init(&a, 0);
	rc = manifest_get(c->o.bucket, manifest_key_str(&key), &a, &m, s->read_etag, err);
	s->read = !rc;
	s->unreadable = rc == ERR_CORRUPT || rc == ERR_UNSUPPORTED || rc == ERR_LIMIT;
	if (rc) {
		arena_release(&a);
		return rc == ERR_NOT_FOUND ? ERR_OK : rc;
	}
	if (!str_is(m.shard, s->name)) {
		s->read = false;
		s->unreadable = true;
		rc = err_set(
			err, ERR_CORRUPT, "%s is the manifest of shard " STR_FMT, key.text, STR_ARG(m.shard));
		arena_release(&a);
		return rc;
	}
	arena_release(&s->arena);
	s->arena = a;
	s->m = m;
	s->read_at_ns = clock_monotonic_ns();
	return ERR_OK;
}

/* Looks at the manifest's ETag. If it changed the manifest is read: always of a shard that may be
 * gone, now and then of one that runs. */
static enum err_code caretaker_look_at(struct caretaker *c, struct care_shard *s, struct err *err)
{
	struct manifest_key key = manifest_key_of(str_of(s->name));
	int64_t now = clock_monotonic_ns();
	struct bucket_info info;
	enum err_code rc;

	rc = bucket_head(c->o.bucket, manifest_key_str(&key), &info, err);
	if (rc == ERR_NOT_FOUND) {
		/* Nobody knows what its other objects are: `epitool bucket repair`. */
		s->etag[0] = '\0';
		s->read = s->unreadable = false;
		return ERR_OK;
	}
	if (rc)
		return rc;
	/* While we could not look, the shard may have had no bucket either: count from now on. */
	if (strcmp(info.etag, s->etag) || now - s->looked_at_ns > CARETAKER_GAP_POLLS * c->o.poll_ns) {
		memcpy(s->etag, info.etag, sizeof(s->etag));
		s->since_ns = now;
	}
	s->looked_at_ns = now;
	if (s->read && strcmp(s->etag, s->read_etag) == 0)
		return ERR_OK;
	if (s->read && now - s->read_at_ns < CARETAKER_READ_POLLS * c->o.poll_ns &&
		now - s->since_ns < c->o.poll_ns)
		return ERR_OK;
	return caretaker_read_manifest(c, s, err);
}

/* Silence counts until our last look: what the shard did since then is not known. */
bool caretaker_is_gone(const struct caretaker *c, const struct care_shard *s)
{
	int64_t lease_ns = s->m.lease_ns < LEASE_MAX_NS ? s->m.lease_ns : LEASE_MAX_NS,
			silent_ns = s->looked_at_ns - s->since_ns;

	return s->read && s->etag[0] && strcmp(s->etag, s->read_etag) == 0 &&
		(s->m.stopped || (silent_ns >= c->o.abandoned_ns && silent_ns >= lease_ns));
}

/* ---- what is too old ---- */

/* Of shards that are gone. */
static struct overdue caretaker_find_overdue(const struct caretaker *c)
{
	struct overdue found = { 0 };

	for (size_t i = 0; i < c->shards_n; i++) {
		const struct manifest *m = &c->shards[i]->m;

		if (!caretaker_is_gone(c, c->shards[i]))
			continue;
		for (uint32_t k = 0; k < m->blocks_n; k++)
			if (overdue_is(m->blocks[k].max_ns, c->age_cut_ns))
				overdue_add(&found, m->blocks[k].max_ns);
		for (uint32_t k = 0; k < m->windows_n; k++)
			if (overdue_is(m->windows[k].end_ns, c->age_cut_ns))
				overdue_add(&found, m->windows[k].end_ns);
	}
	return found;
}

static void caretaker_hold_overdue(struct caretaker *c)
{
	struct overdue found = caretaker_find_overdue(c);

	if (overdue_hold(&c->overdue, &found))
		overdue_tell("caretaker", &found);
	if (overdue_waits(&c->overdue))
		c->age_cut_ns = INT64_MIN;
}

static void caretaker_cut_by_age(struct caretaker *c)
{
	int64_t newest = INT64_MIN, now = clock_now_ns();

	c->age_cut_ns = INT64_MIN;
	for (size_t i = 0; i < c->shards_n; i++) {
		int64_t of = c->shards[i]->read ? manifest_newest_ns(&c->shards[i]->m) : INT64_MIN;

		newest = of > newest ? of : newest;
	}
	if (newest != INT64_MIN && c->o.retention_ns)
		c->age_cut_ns = (newest < now ? newest : now) - c->o.retention_ns;
	if (c->age_cut_ns != INT64_MIN)
		caretaker_hold_overdue(c);
}

struct aged {
	int64_t end_ns;
	uint64_t bytes;
};

static int aged_cmp(const void *a, const void *b)
{
	const struct aged *x = a, *y = b;

	return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

static void caretaker_add_aged(const struct manifest *m, struct aged *a, size_t *n, uint64_t *all)
{
	for (uint32_t i = 0; i < m->windows_n; i++) {
		const struct manifest_window *w = &m->windows[i];
		uint64_t bytes = w->deleted.bytes;

		for (uint32_t k = 0; k < w->segments_n; k++)
			bytes += w->segments[k].object.bytes;
		a[(*n)++] = (struct aged){ w->end_ns, bytes };
		*all += bytes;
	}
	for (uint32_t i = 0; i < m->blocks_n; i++) {
		uint64_t bytes = 0;

		for (unsigned k = 0; k < MANIFEST_BLOCK_FILES; k++)
			bytes += manifest_block_file(&m->blocks[i], k)->bytes;
		a[(*n)++] = (struct aged){ m->blocks[i].max_ns, bytes };
		*all += bytes;
	}
}

/* The oldest of all shards that are gone go first. */
static enum err_code caretaker_cut_by_size(struct caretaker *c, struct err *err)
{
	uint64_t all = 0;
	struct aged *v;
	size_t n = 0;

	c->size_cut_ns = INT64_MIN;
	if (!c->o.retention_bytes)
		return ERR_OK;
	for (size_t i = 0; i < c->shards_n; i++)
		n += c->shards[i]->m.windows_n + c->shards[i]->m.blocks_n;
	if (!(v = calloc(n + 1, sizeof(*v))))
		return err_nomem(err, "caretaker");
	n = 0;
	for (size_t i = 0; i < c->shards_n; i++)
		if (caretaker_is_gone(c, c->shards[i]))
			caretaker_add_aged(&c->shards[i]->m, v, &n, &all);
	if (n)
		qsort(v, n, sizeof(*v), aged_cmp);
	for (size_t i = 0; i < n && all > c->o.retention_bytes; i++) {
		c->size_cut_ns = v[i].end_ns;
		all -= v[i].bytes;
	}
	free(v);
	return ERR_OK;
}

/* ---- the round ---- */

static void caretaker_keep_first(
	enum err_code *rc, struct err *first, enum err_code now, struct err *why)
{
	if (*rc || !now)
		return;
	*rc = now;
	err_copy(first, why);
}

static void caretaker_count(struct caretaker *c)
{
	struct caretaker_status s = { .shards = c->shards_n };

	for (size_t i = 0; i < c->shards_n; i++) {
		s.shards_unreadable += c->shards[i]->unreadable;
		if (!caretaker_is_gone(c, c->shards[i]))
			continue;
		s.shards_gone++;
		s.bytes += manifest_bytes(&c->shards[i]->m);
		s.gone += c->shards[i]->m.gone_n;
	}
	mutex_lock(&c->lock);
	c->status.shards = s.shards;
	c->status.shards_gone = s.shards_gone;
	c->status.shards_unreadable = s.shards_unreadable;
	c->status.bytes = s.bytes;
	c->status.gone = s.gone;
	mutex_unlock(&c->lock);
}

/* One shard's error does not end the round; our lease's does. */
static enum err_code caretaker_run(struct caretaker *c, struct err *err)
{
	enum err_code rc = ERR_OK, fatal;
	struct err why;

	if ((fatal = caretaker_hold(c, err)) || (fatal = caretaker_find_shards(c, err)))
		return fatal;
	for (size_t i = 0; i < c->shards_n; i++) {
		if ((fatal = caretaker_renew(c, err)))
			return fatal;
		caretaker_keep_first(&rc, err, caretaker_look_at(c, c->shards[i], &why), &why);
	}
	caretaker_cut_by_age(c);
	if ((fatal = caretaker_cut_by_size(c, err)))
		return fatal;
	for (size_t i = 0; i < c->shards_n; i++) {
		if (!caretaker_is_gone(c, c->shards[i]))
			continue;
		if ((fatal = caretaker_renew(c, err)))
			return fatal;
		caretaker_keep_first(&rc, err, caretaker_visit_shard(c, c->shards[i], &why), &why);
	}
	caretaker_count(c);
	return rc;
}

static void caretaker_note(struct caretaker *c, enum err_code rc, const struct err *why)
{
	enum caretaker_state was, is;

	if (rc == ERR_CANCELED)
		return;
	is = !rc ? CARETAKER_RUNNING : rc == ERR_EXISTS ? CARETAKER_WAITING : CARETAKER_AWAY;
	mutex_lock(&c->lock);
	was = c->status.state;
	c->status.state = is;
	c->status.rounds++;
	c->status.failures += is == CARETAKER_AWAY;
	c->status.last = rc ? *why : (struct err){ 0 };
	mutex_unlock(&c->lock);
	if (is == was)
		return;
	if (is == CARETAKER_AWAY)
		log_warn("cluster", "caretaker's round failed, is tried again", LOG_E(why));
	else if (is == CARETAKER_WAITING)
		log_info("cluster", "another caretaker works", LOG_E(why));
	else
		log_info("cluster", "caretaker works");
}

enum err_code caretaker_round(struct caretaker *c, struct err *err)
{
	struct err why = { 0 };
	enum err_code rc;

	mutex_lock(&c->round_lock);
	rc = caretaker_run(c, &why);
	mutex_unlock(&c->round_lock);
	caretaker_note(c, rc, &why);
	return rc ? err_copy(err, &why) : ERR_OK;
}

/* ---- status ---- */

const char *caretaker_state_name(enum caretaker_state state)
{
	static const char *const names[] = {
		[CARETAKER_WAITING] = "waiting", [CARETAKER_RUNNING] = "running", [CARETAKER_AWAY] = "away"
	};

	return names[state];
}

void caretaker_status(struct caretaker *c, struct caretaker_status *out)
{
	mutex_lock(&c->lock);
	*out = c->status;
	mutex_unlock(&c->lock);
}
