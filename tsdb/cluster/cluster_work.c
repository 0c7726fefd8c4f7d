#include "base/clock.h"
#include "tsdb/cluster/cluster_internal.h"

/*
 * Workers take the shard whose turn is due longest. One worker at a time has a shard (busy);
 * whoever wants to remove it waits for that. The list of shards is a turn like the others.
 *
 * Where nothing is due, workers read unread windows (follower.h), the newest of all shards first.
 * That may take hours, so a worker does what is due between two segments: looks at other shards,
 * and at the one that it reads.
 */

/* What is due: *s, or the list if *s is NULL. False: nothing is due before *until. */
static bool cluster_next(struct cluster *c, struct member_shard **s, int64_t *until)
{
	int64_t now = clock_monotonic_ns();

	mutex_assert_held(&c->lock);
	*s = NULL;
	*until = now + NS_PER_S;
	if (!c->listing && c->list_ns <= now)
		return true;
	for (size_t i = 0; i < c->n; i++) {
		struct member_shard *at = c->shards[i];

		if (at->busy || at->own)
			continue;
		if (at->next_ns <= now && (!*s || at->next_ns < (*s)->next_ns))
			*s = at;
		if (at->next_ns < *until)
			*until = at->next_ns;
	}
	return *s != NULL;
}

static void cluster_do_list(struct cluster *c)
{
	c->listing = true;
	mutex_unlock(&c->lock);
	cluster_list(c);
	mutex_lock(&c->lock);
	c->listing = false;
	c->tried = true;
	c->list_ns = clock_monotonic_ns() + c->o.poll_ns;
	cond_broadcast(&c->due);
}

static void cluster_do_round(struct cluster *c, struct member_shard *s)
{
	s->busy = true;
	mutex_unlock(&c->lock);
	cluster_round_of(c, s);
	mutex_lock(&c->lock);
	s->busy = false;
	s->unread = s->follower && follower_has_unread(s->follower, &s->unread_ns);
	s->rounds++;
	s->next_ns = clock_monotonic_ns() + c->o.poll_ns;
}

static void cluster_do_due(struct cluster *c, struct member_shard *s)
{
	if (s)
		cluster_do_round(c, s);
	else
		cluster_do_list(c);
	cond_broadcast(&c->done);
}

/* ---- unread windows ---- */

/* The shard with the newest unread window; of several the one that waited longest. NULL: none. */
static struct member_shard *cluster_next_unread(const struct cluster *c)
{
	int64_t now = clock_monotonic_ns();
	struct member_shard *s = NULL;

	mutex_assert_held(&c->lock);
	for (size_t i = 0; i < c->n; i++) {
		struct member_shard *at = c->shards[i];

		if (at->busy || at->own || !at->unread || at->read_after_ns > now)
			continue;
		if (!s || at->unread_ns > s->unread_ns ||
			(at->unread_ns == s->unread_ns && at->read_ns < s->read_ns))
			s = at;
	}
	return s;
}

struct cluster_reading {
	struct cluster *c;
	struct member_shard *s;
};

/* Before each segment. */
static enum follower_between cluster_between(void *ctx)
{
	const struct cluster_reading *g = ctx;
	struct cluster *c = g->c;
	struct member_shard *s = g->s, *other;
	enum follower_between what = FOLLOWER_GO_ON;
	int64_t until;

	mutex_lock(&c->lock);
	while (!c->closing && !s->wanted && cluster_next(c, &other, &until))
		cluster_do_due(c, other);
	if (c->closing || s->wanted) {
		what = FOLLOWER_STOP;
	} else if (s->next_ns <= clock_monotonic_ns()) {
		s->next_ns = clock_monotonic_ns() + c->o.poll_ns;
		what = FOLLOWER_LOOK;
	}
	mutex_unlock(&c->lock);
	return what;
}

/* If the shard is gone or goes on in another directory, the next round is due at once. */
static void cluster_do_read(struct cluster *c, struct member_shard *s)
{
	struct cluster_reading g = { c, s };
	enum err_code rc;
	struct err err;

	s->busy = true;
	mutex_unlock(&c->lock);
	rc = follower_read(s->follower, cluster_between, &g, &err);
	mutex_lock(&c->lock);
	s->busy = false;
	s->unread = follower_has_unread(s->follower, &s->unread_ns);
	s->read_ns = clock_monotonic_ns();
	if (rc)
		s->read_after_ns = s->read_ns + c->o.poll_ns;
	if (rc == ERR_NOT_FOUND || rc == ERR_EXISTS)
		s->next_ns = 0;
	cond_broadcast(&c->done);
}

void cluster_work(void *ctx)
{
	struct cluster *c = ctx;
	struct member_shard *s;
	int64_t until;

	mutex_lock(&c->lock);
	while (!c->closing) {
		if (cluster_next(c, &s, &until))
			cluster_do_due(c, s);
		else if ((s = cluster_next_unread(c)))
			cluster_do_read(c, s);
		else
			cond_wait_until(&c->due, &c->lock, until);
	}
	mutex_unlock(&c->lock);
}
