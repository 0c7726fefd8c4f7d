/*
 * POST /api/v1/shard/profiles: profiles that another shard got and this one keeps
 * (scrape/forward/push_entries.h). They were relabelled and checked there, and are stored as they
 * are; nothing is sent on to a third shard. Senders are listed where they sent to.
 */
#include "base/metrics.h"
#include "scrape/forward/push_assignment.h"
#include "scrape/forward/push_entries.h"
#include "scrape/receive/receive.h"
#include "web/push/forms.h"

METRIC_COUNTER(taken, "epimetheus_shard_received_profiles_total",
	"Pushed profiles that another shard sent to this one, which keeps them.", "result");

/* Requests that decode and wait at once; a shard sends one at a time. */
#define SHARD_PROFILES_AT_ONCE 24u

struct shard_profiles {
	struct mutex lock;
	struct cond changed;
	size_t waiting; /* guarded by lock */
};

struct shard_profile {
	struct shard_profiles *all;
	enum err_code rc;
	struct err err;
	struct sink_stored stored;
};

bool shard_profiles_admit(struct web *w, struct http_in *in, struct http_out *out)
{
	(void)w;
	(void)out;
	in->body_bytes_max = PUSH_BODY_BYTES_MAX;
	return true;
}

static void shard_profile_acked(void *ctx, enum err_code rc, const struct err *err)
{
	struct shard_profile *p = ctx;
	struct shard_profiles *all = p->all;

	mutex_lock(&all->lock);
	p->rc = rc;
	if (rc && err)
		p->err = *err;
	if (!--all->waiting)
		cond_signal(&all->changed); /* under the lock: the waiter frees it once it has it */
	mutex_unlock(&all->lock);
}

/* By a view that is as new as the sender's, the profile is this shard's. */
static enum err_code shard_profile_check_owner(const struct push_assignment *a,
	const struct sink_profile *p, uint64_t assignment, struct err *err)
{
	struct push_owner owner = { 0 };
	enum err_code rc;

	if ((rc = a->owner(a->ctx, push_labels_hash(p->labels), p->ts_ns, &owner, err)))
		return rc;
	if (owner.own || owner.assignment < assignment)
		return ERR_OK;
	return err_set(err, ERR_UNAVAILABLE, "by assignment %llu shard %s keeps it",
		(unsigned long long)owner.assignment, owner.name);
}

/* Profiles are decoded one after the other, so that one is in memory at a time. */
static enum err_code shard_profile_put(
	const struct web *w, struct str entry, struct shard_profile *p, struct err *err)
{
	struct sink *sink = w->o.shard_sink;
	struct sink_profile profile;
	uint64_t assignment;
	enum err_code rc;
	struct arena a;

	arena_init(&a, RECEIVE_ARENA_BYTES_MAX);
	if (!(rc = push_entry_read(&a, entry, &profile, &assignment, err)) &&
		!(rc = shard_profile_check_owner(w->o.assignment, &profile, assignment, err))) {
		profile.stored = &p->stored;
		rc = sink->ops->append(sink, &profile, shard_profile_acked, p, err);
	}
	arena_release(&a);
	return rc;
}

static void shard_profiles_put_all(
	const struct web *w, struct cursor entries, struct shard_profile *profiles, size_t n)
{
	struct shard_profiles all = { .waiting = n };
	enum err_code rc;

	mutex_init(&all.lock);
	cond_init(&all.changed);
	for (size_t i = 0; i < n; i++) {
		struct err err;

		profiles[i].all = &all;
		if ((rc = shard_profile_put(w, push_body_next(&entries), &profiles[i], &err)))
			shard_profile_acked(&profiles[i], rc, &err);
	}
	mutex_lock(&all.lock);
	while (all.waiting)
		cond_wait(&all.changed, &all.lock);
	mutex_unlock(&all.lock);
	cond_destroy(&all.changed);
	mutex_destroy(&all.lock);
}

static void shard_profiles_answer(
	struct http_out *out, const struct shard_profile *profiles, size_t n)
{
	out->content_type = "application/octet-stream";
	push_answers_begin(&out->body);
	for (size_t i = 0; i < n; i++) {
		push_answer_add(&out->body, profiles[i].rc, &profiles[i].err, &profiles[i].stored);
		metric_add(&taken, profiles[i].rc ? "failed" : "ok", 1);
	}
}

static bool shard_profiles_enter(struct web *w)
{
	bool entered;

	mutex_lock(&w->lock);
	entered = w->shard_pushes < SHARD_PROFILES_AT_ONCE;
	w->shard_pushes += entered;
	mutex_unlock(&w->lock);
	return entered;
}

static void shard_profiles_leave(struct web *w)
{
	mutex_lock(&w->lock);
	w->shard_pushes--;
	mutex_unlock(&w->lock);
}

static void shard_profiles_store(struct web *w, struct http_in *in, struct http_out *out)
{
	struct shard_profile *v;
	struct cursor entries;
	enum err_code rc;
	struct err err;
	unsigned n;

	if ((rc = push_body_open(in->body, &entries, &n, &err))) {
		http_text(out, rc == ERR_LIMIT ? 413 : 400, "%s", err.msg);
		return;
	}
	if (!(v = arena_array(&in->arena, struct shard_profile, n))) {
		http_text(out, 503, "profiles: out of memory");
		return;
	}
	shard_profiles_put_all(w, entries, v, n);
	shard_profiles_answer(out, v, n);
}

void shard_profiles_handle(struct web *w, struct http_in *in, struct http_out *out)
{
	if (!shard_profiles_enter(w)) {
		http_text(out, 503, "too many requests of shards at once: try again later");
		http_add_header(out, "Retry-After", STR("1"));
		return;
	}
	shard_profiles_store(w, in, out);
	shard_profiles_leave(w);
}
