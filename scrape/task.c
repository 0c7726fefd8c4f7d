#include "scrape/task.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gzip/gzip.h"
#include "scrape/body.h"
#include "scrape/honor_labels.h"
#include "scrape/targets/target_make.h"

#define GZIP_LEVEL 6
#define MEASURED_MIN_NS (100 * NS_PER_MS) /* a second at least is asked for */

void task_free(struct scrape_task *t)
{
	buf_release(&t->body);
	buf_release(&t->content_type);
	buf_release(&t->content_encoding);
	buf_release(&t->led_to);
	buf_release(&t->profile);
	target_unref(t->target);
	config_unref(t->config);
	free(t);
}

const char *task_result_of(enum err_code rc)
{
	switch (rc) {
	case ERR_INVALID:
	case ERR_UNSUPPORTED:
		return "not_a_profile";
	case ERR_LIMIT:
		return "limit";
	case ERR_TIMEOUT:
		return "timeout";
	default:
		return "unreachable";
	}
}

void task_failed(struct scrape_task *t, enum err_code rc, const char *result)
{
	t->rc = rc;
	t->result = result;
}

/* ---- the way back ---- */

static void task_on_stored(void *ctx)
{
	struct scrape_task *t = ctx;
	struct scrape_env *env = t->env;

	assert(t->waiting == 0);
	t->ended(t);
	mutex_lock(&env->lock);
	assert(env->storing > 0);
	if (--env->storing == 0)
		cond_broadcast(&env->idle);
	mutex_unlock(&env->lock);
}

/* The task may be freed before this returns. */
static void scrape_task_part_done(struct scrape_task *t)
{
	struct scrape_env *env = t->env;
	bool last;

	mutex_lock(&env->lock);
	assert(t->waiting > 0);
	last = --t->waiting == 0;
	mutex_unlock(&env->lock);
	if (last)
		loop_post(t->lane->loop, &t->work, task_on_stored, t);
}

/* The first of several errors counts. */
static void scrape_task_store_failed(struct scrape_task *t, enum err_code rc, const struct err *err)
{
	mutex_lock(&t->env->lock);
	if (!t->rc) {
		task_failed(t, rc, rc == ERR_CANCELED ? "moved" : "store");
		err_set(&t->err, rc, "store: %s", err ? err->msg : err_code_name(rc));
	}
	mutex_unlock(&t->env->lock);
}

static void task_on_acked(void *ctx, enum err_code rc, const struct err *err)
{
	struct scrape_task *t = ctx;

	if (rc)
		scrape_task_store_failed(t, rc, err);
	scrape_task_part_done(t);
}

/* ---- on a worker ---- */

static enum err_code scrape_task_append_one(struct scrape_task *t, const struct sink_profile *p)
{
	struct shard_gate *gate = &t->env->gate;
	unsigned turn;
	struct err err;
	enum err_code rc;

	assert(p->interval_ns > 0 && labels_has(p->labels, STR(LABEL_NAME)));
	mutex_lock(&t->env->lock);
	t->waiting++;
	mutex_unlock(&t->env->lock);
	if (!(rc = shard_gate_enter(gate, t->target->shard_key, &turn, &err))) {
		rc = t->env->sink->ops->append(t->env->sink, p, task_on_acked, t, &err);
		shard_gate_leave(gate, turn);
	}
	if (rc) {
		scrape_task_store_failed(t, rc, &err);
		scrape_task_part_done(t);
	}
	return rc;
}

static void scrape_task_find_kinds(
	const struct scrape_task *t, const struct pprof *p, enum value_kind *kinds)
{
	const struct profile_config *config = t->target->profile;
	const struct kind_rules rules = { config->kinds, config->kinds_n, t->seconds > 0,
		t->since_last };

	pprof_kinds(p, t->target->name, &rules, kinds);
	for (uint32_t i = 0; t->kinds && !config->kinds_n && i < p->types_n; i++)
		kinds[i] = t->kinds[i];
}

/* The total of the column that the kind is judged by: the last that counts. */
static void scrape_task_sum_up(
	struct scrape_task *t, const struct pprof *p, const enum value_kind *kinds)
{
	enum value_kind kind = t->since_last ? KIND_DELTA : KIND_CUMULATIVE;
	uint32_t c = p->types_n;

	while (c > 0 && kinds[c - 1] != kind)
		c--;
	if (c == 0 || (t->since_last && target_since_last(t->target)))
		return; /* nothing to judge, or beyond doubt */
	t->growth.kind = kind;
	for (uint32_t i = 0; i < p->samples_n; i++)
		t->growth.total += (double)p->values[(size_t)i * p->types_n + c - 1];
}

static enum err_code scrape_task_append(
	struct scrape_task *t, struct arena *a, const struct pprof *p, struct err *err)
{
	enum value_kind *kinds = arena_array(a, enum value_kind, p->types_n);
	struct honored whole = { t->target->labels, p }, *parts = &whole;
	size_t n = 1;
	enum err_code rc;

	if (!kinds)
		return arena_fail(a, "profile", err);
	if (t->target->part->job->honor_labels &&
		(rc = honor_labels(a, p, t->target->labels, &parts, &n, err)))
		return rc;
	scrape_task_find_kinds(t, p, kinds);
	scrape_task_sum_up(t, p, kinds);
	for (size_t i = 0; i < n; i++)
		if (scrape_task_append_one(t,
				&(struct sink_profile){
					.labels = parts[i].labels,
					.ts_ns = t->end_ns,
					.interval_ns = t->target->interval_ns,
					.profile = parts[i].profile,
					.kinds = kinds,
				}))
			break; /* the task has the error */
	return ERR_OK;
}

static enum err_code scrape_task_encode(
	struct scrape_task *t, const struct pprof *p, struct err *err)
{
	struct buf raw = { 0 };
	enum err_code rc = pprof_encode(p, &raw, err);

	if (!rc)
		rc = gzip_compress(buf_str(&raw), GZIP_LEVEL, &t->profile, err);
	buf_release(&raw);
	return rc;
}

/* The last of the worker's part. The task may be freed before this returns. */
static void scrape_task_end_work(struct scrape_task *t, enum err_code rc, const struct err *err)
{
	if (rc) {
		task_failed(t, rc, task_result_of(rc));
		t->err = *err;
	}
	symbolize_close(t->names);
	t->names = NULL;
	arena_release(&t->arena);
	scrape_task_part_done(t);
}

static void scrape_task_store(void *ctx)
{
	struct scrape_task *t = ctx;
	const struct pprof *p = t->decoded;
	struct err err;
	enum err_code rc = ERR_OK;

	atomic_fetch_sub(&t->env->queued_bytes, t->asking_bytes);
	t->asking_bytes = 0;
	if (t->names)
		rc = symbolize_apply(t->names, p, &p, &err);
	if (!rc && t->wants_profile)
		rc = scrape_task_encode(t, p, &err);
	if (!rc)
		rc = scrape_task_append(t, &t->arena, p, &err);
	scrape_task_end_work(t, rc, &err);
}

/* On the loop. */
static void task_on_asked(void *ctx)
{
	struct scrape_task *t = ctx;
	struct err err;
	enum err_code rc;

	if (atomic_load(&t->env->closing)) { /* the workers may have gone */
		scrape_task_store(t);
		return;
	}
	if (pool_submit(t->env->workers, scrape_task_store, t))
		return;
	atomic_fetch_sub(&t->env->queued_bytes, t->asking_bytes);
	rc = err_set(&err, ERR_LIMIT, "%u profiles wait for a worker: the server is overloaded",
		SCRAPE_QUEUED_MAX);
	scrape_task_end_work(t, rc, &err);
}

static void task_ask(void *ctx)
{
	struct scrape_task *t = ctx;
	int64_t latest = clock_monotonic_ns() + t->env->symbols_timeout_ns;
	int64_t deadline = t->began_ns + t->target->timeout_ns;

	symbolize_ask(t->names, atomic_load(&t->env->closing) ? NULL : t->lane->client,
		deadline < latest ? deadline : latest, task_on_asked, t);
}

/* Whether names are to be asked for, and memory is left for profiles that wait for them. */
static bool scrape_task_begin_asking(struct scrape_task *t)
{
	size_t bytes = t->arena.used_bytes;

	if (!t->names || !symbolize_has_question(t->names) || atomic_load(&t->env->closing))
		return false;
	if (atomic_fetch_add(&t->env->queued_bytes, bytes) > SCRAPE_QUEUED_BYTES_MAX) {
		atomic_fetch_sub(&t->env->queued_bytes, bytes);
		return false;
	}
	t->asking_bytes = bytes;
	return true;
}

/* A profile of a format before protobuf does not say how long it took, and may lack names. */
static enum err_code scrape_task_take_legacy(
	struct scrape_task *t, const struct body *body, struct err *err)
{
	struct pprof *p;

	if (t->target->profile->delta && t->seconds && !t->decoded->duration_nanos) {
		if (!(p = arena_new(&t->arena, struct pprof)))
			return arena_fail(&t->arena, "profile", err);
		*p = *t->decoded;
		p->duration_nanos = t->seconds * NS_PER_S;
		t->decoded = p;
	}
	t->kinds = body->any.kinds;
	return symbolize_open(t->env->symbols, &t->arena, t->decoded, body->raw, t->target->part->job,
		t->target, &t->names, err);
}

/*
 * Whether the answer holds what was added since the one before: by its path; or it is `delta` and
 * came without having been measured over some time, as godeltaprof's do at any path. Its duration
 * is the time that writing took then, and would make rates of it.
 */
static enum err_code scrape_task_find_since_last(struct scrape_task *t, struct err *err)
{
	const struct pprof *p = t->decoded;
	struct pprof *own;

	t->since_last = target_since_last(t->target) ||
		(t->target->profile->delta && p->duration_nanos < MEASURED_MIN_NS &&
			!str_is(p->strings[p->period_type.type], "cpu"));
	if (!t->since_last || !p->duration_nanos)
		return ERR_OK;
	if (!(own = arena_new(&t->arena, struct pprof)))
		return arena_fail(&t->arena, "profile", err);
	*own = *p;
	own->duration_nanos = 0;
	t->decoded = own;
	return ERR_OK;
}

/* Discovery may give one path to all profiles of a target. */
static enum err_code scrape_task_check_type(const struct scrape_task *t, struct err *err)
{
	struct str type = t->target->profile->sample_type;
	const struct pprof *p = t->decoded;

	for (uint32_t i = 0; type.len && i < p->types_n; i++)
		if (str_eq(p->strings[p->types[i].type], type))
			return ERR_OK;
	return type.len ?
		err_set(err, ERR_INVALID, "the profile has no sample type " STR_FMT, STR_ARG(type)) :
		ERR_OK;
}

static enum err_code scrape_task_decode(struct scrape_task *t, struct str bytes, struct err *err)
{
	struct pprof_limits limits = pprof_limits_default;
	struct body body;
	enum err_code rc;

	limits.body_bytes_max = t->target->part->job->body_size_limit;
	arena_init(&t->arena, limits.arena_bytes_max);
	if ((rc = body_decode(&t->arena, bytes, buf_str(&t->content_type),
			 buf_str(&t->content_encoding), &limits, &body, err)))
		return rc;
	t->decoded = body.any.profile;
	t->samples = t->decoded->samples_n;
	t->stacks_cut = t->decoded->stacks_cut;
	if ((rc = scrape_task_check_type(t, err)))
		return rc;
	if ((rc = body_check_limits(t->decoded, t->target->labels, t->target->part->job, err)))
		return rc;
	return body.any.is_legacy ? scrape_task_take_legacy(t, &body, err) :
								scrape_task_find_since_last(t, err);
}

static void task_work(void *ctx)
{
	struct scrape_task *t = ctx;
	struct buf body = t->body;
	struct err err;
	enum err_code rc;
	size_t queued;

	t->body = (struct buf){ 0 };
	queued = atomic_fetch_sub(&t->env->queued_bytes, body.len);
	assert(queued >= body.len);
	if ((rc = scrape_task_decode(t, buf_str(&body), &err))) {
		scrape_task_end_work(t, rc, &err);
		buf_release(&body);
	} else if (scrape_task_begin_asking(t)) {
		buf_release(&body); /* nothing of a legacy profile points into it */
		loop_post(t->lane->loop, &t->work, task_ask, t);
	} else {
		scrape_task_store(t);
		buf_release(&body);
	}
}

/* ---- the answer ---- */

static void task_count_storing(struct scrape_env *env, int by)
{
	mutex_lock(&env->lock);
	env->storing += (size_t)by;
	mutex_unlock(&env->lock);
}

static enum err_code scrape_task_overloaded(struct scrape_task *t, const struct http_response *res)
{
	task_count_storing(t->env, -1);
	atomic_fetch_sub(&t->env->queued_bytes, res->body.len);
	return err_set(&t->err, ERR_LIMIT, "%u profiles wait for a worker: the server is overloaded",
		SCRAPE_QUEUED_MAX);
}

enum err_code task_store(struct scrape_task *t, const struct http_response *res)
{
	struct scrape_env *env = t->env;
	size_t queued = atomic_fetch_add(&env->queued_bytes, res->body.len);

	assert(!res->rc && res->status == 200 && !t->waiting && t->ended);
	if (queued > SCRAPE_QUEUED_BYTES_MAX) {
		atomic_fetch_sub(&env->queued_bytes, res->body.len);
		return err_set(&t->err, ERR_LIMIT,
			"profiles of %zu bytes wait for a worker, limit %zu: the server is overloaded", queued,
			SCRAPE_QUEUED_BYTES_MAX);
	}
	buf_add_str(&t->content_type, res->content_type);
	buf_add_str(&t->content_encoding, res->content_encoding);
	if (buf_failed(&t->content_type) || buf_failed(&t->content_encoding)) {
		atomic_fetch_sub(&env->queued_bytes, res->body.len);
		return err_nomem(&t->err, "profile");
	}
	http_response_take_body(res, &t->body);
	task_count_storing(env, 1);
	t->waiting = 1;
	return pool_submit(env->workers, task_work, t) ? ERR_OK : scrape_task_overloaded(t, res);
}
