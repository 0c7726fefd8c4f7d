/*
 * Ingest: stores a pprof body with the labels in its address, and answers once it is durable.
 *
 * A small body may need much memory to decode, so few are decoded at once. Others wait in a queue;
 * when it is full, the client gets 503.
 */
#include <assert.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/quote.h"
#include "promql/syntax/type_names.h"
#include "scrape/body.h"
#include "tsdb/db.h"
#include "web/api/handlers.h"
#include "web/router/envelope.h"

METRIC_COUNTER(
	ingested, "epimetheus_ingested_profiles_total", "Profiles that were pushed.", "result");

#define ARENA_BYTES_MAX (256u << 20)
#define RUNNING_MAX 4u
#define WAITING_MAX 16u
#define LABELS_MAX 64u
#define LABEL_NAME_BYTES_MAX 128u
#define LABEL_VALUE_BYTES_MAX 4096u
#define INTERVAL_DEFAULT_NS \
	NS_PER_S /* for the first profile of a series, if it has no duration \
			  */
#define INTERVAL_MAX_NS NS_PER_DAY

/* ---- one of few ---- */

static bool enter(struct web *w)
{
	bool entered = false;

	mutex_lock(&w->lock);
	if (w->ingests_waiting < WAITING_MAX && !w->closing) {
		w->ingests_waiting++;
		while (w->ingests == RUNNING_MAX)
			cond_wait(&w->changed, &w->lock);
		w->ingests_waiting--;
		w->ingests++;
		entered = true;
	}
	mutex_unlock(&w->lock);
	return entered;
}

static void leave(struct web *w)
{
	mutex_lock(&w->lock);
	assert(w->ingests);
	w->ingests--;
	cond_signal(&w->changed);
	mutex_unlock(&w->lock);
}

/* ---- waiting for the commit ---- */

struct ack {
	struct mutex lock;
	struct cond changed;
	bool done;
	enum err_code rc;
	struct err err;
};

static void acked(void *ctx, enum err_code rc, const struct err *err)
{
	struct ack *a = ctx;

	mutex_lock(&a->lock);
	a->rc = rc;
	if (rc && err)
		a->err = *err;
	a->done = true;
	cond_signal(&a->changed); /* under the lock: the waiter frees it once it has the lock */
	mutex_unlock(&a->lock);
}

static enum err_code append(
	struct db *db, const struct db_append *p, struct db_append_stats *stats, struct err *err)
{
	struct ack a = { .done = false };
	enum err_code rc;

	mutex_init(&a.lock);
	cond_init(&a.changed);
	rc = db_append(db, p, stats, acked, &a, err);
	if (!rc) {
		mutex_lock(&a.lock);
		while (!a.done)
			cond_wait(&a.changed, &a.lock);
		mutex_unlock(&a.lock);
		rc = a.rc;
		if (rc && err)
			*err = a.err;
	}
	cond_destroy(&a.changed);
	mutex_destroy(&a.lock);
	return rc;
}

/* ---- what is pushed ---- */

static bool is_reserved(struct str name)
{
	return str_is(name, "name") || str_is(name, "time") || str_is(name, "interval");
}

static enum err_code check_label(const struct http_param *p, struct err *err)
{
	if (!label_name_valid(p->name) || str_has_prefix(p->name, STR("__")))
		return err_set(err, ERR_INVALID, "%s cannot be the name of a label", QUOTED(p->name));
	if (p->name.len > LABEL_NAME_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "label name %s is longer than %u bytes", QUOTED(p->name),
			LABEL_NAME_BYTES_MAX);
	if (p->value.len > LABEL_VALUE_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the value of label " STR_FMT " is longer than %u bytes",
			STR_ARG(p->name), LABEL_VALUE_BYTES_MAX);
	if (!label_value_valid(p->value))
		return err_set(
			err, ERR_INVALID, "the value of label " STR_FMT " is not UTF-8", STR_ARG(p->name));
	return ERR_OK;
}

/* Resolves aliases of the language, so that a profile pushed as name=cpu is found as cpu. */
static enum err_code read_name(const struct http_in *in, struct str *out, struct err *err)
{
	struct str name = http_param(in, "name");
	struct type_pattern pattern;

	if (!name.len)
		return err_set(err, ERR_INVALID,
			"invalid parameter \"name\": it is missing; say which profile it is, such "
			"as "
			"process_cpu or memory");
	if (!label_name_valid(name) || name.len > LABEL_NAME_BYTES_MAX)
		return err_set(err, ERR_INVALID, "invalid parameter \"name\": %s", QUOTED(name));
	*out = type_pattern_parse(name, &pattern) ? pattern.name : name;
	return ERR_OK;
}

static enum err_code read_labels(
	struct http_in *in, struct str name, struct labels *out, struct err *err)
{
	struct labels_builder b;
	enum err_code rc;

	labels_builder_init(&b, &in->arena, (struct labels){ 0 });
	for (size_t i = 0; i < in->params_n; i++) {
		const struct http_param *p = &in->params[i];

		if (is_reserved(p->name))
			continue;
		if ((rc = check_label(p, err)))
			return rc;
		if (labels_builder_get(&b, p->name).len)
			return err_set(err, ERR_INVALID, "label " STR_FMT " is given twice", STR_ARG(p->name));
		labels_builder_set(&b, p->name, p->value);
	}
	labels_builder_set(&b, STR(LABEL_NAME), name);
	if ((rc = labels_builder_build(&b, out, err)))
		return rc;
	if (out->n > LABELS_MAX)
		return err_set(err, ERR_LIMIT, "%zu labels, limit %u", out->n, LABELS_MAX);
	return ERR_OK;
}

/* A profile has the time of its end: `time`, or its own, or now. */
static enum err_code read_times(const struct web *w, const struct http_in *in,
	const struct pprof *p, struct db_append *a, struct err *err)
{
	int64_t duration_ns = p->duration_nanos > 0 && p->duration_nanos < INTERVAL_MAX_NS ?
		p->duration_nanos :
		0;
	bool has_time, has_interval;
	enum err_code rc;

	if ((rc = api_time(in, "time", &a->ts_ns, &has_time, err)))
		return rc;
	if (!has_time && p->time_nanos > 0 && p->time_nanos < TIME_MAX_NS)
		a->ts_ns = p->time_nanos + duration_ns;
	else if (!has_time)
		a->ts_ns = clock_now_ns();
	if ((rc = api_duration(in, "interval", &a->interval_ns, &has_interval, err)))
		return rc;
	if (!has_interval)
		a->interval_ns = duration_ns ? duration_ns : INTERVAL_DEFAULT_NS;
	/* A level without interval lasts since the push before, unless the sender was away. */
	a->gap_max_ns = has_interval || duration_ns ? 0 : w->o.lookback_ns;
	if (a->interval_ns <= 0 || a->interval_ns > INTERVAL_MAX_NS)
		return err_set(err, ERR_INVALID,
			"invalid parameter \"interval\": must be more than 0 and at most a day");
	return ERR_OK;
}

static enum err_code store(struct web *w, struct http_in *in, struct arena *a, struct db_append *to,
	struct db_append_stats *stats, struct err *err)
{
	enum value_kind *kinds;
	struct pprof *p;
	struct str name;
	enum err_code rc;

	if ((rc = read_name(in, &name, err)))
		return rc;
	if ((rc = read_labels(in, name, &to->labels, err)))
		return rc;
	if (!in->body.len)
		return err_set(err, ERR_INVALID, "the body is empty; send a profile");
	if ((rc = body_decode(
			 a, in->body, in->content_type, in->content_encoding, &pprof_limits_default, &p, err)))
		return rc;
	if ((rc = read_times(w, in, p, to, err)))
		return rc;
	kinds = arena_array(a, enum value_kind, p->types_n);
	if (!kinds)
		return arena_fail(a, "profile", err);
	pprof_kinds(p, name, NULL, 0, kinds);
	to->profile = p;
	to->kinds = kinds;
	return append(w->o.db, to, stats, err);
}

static void write_stored(
	struct http_out *out, const struct db_append *a, const struct db_append_stats *stats)
{
	const struct str overflow = STR("sample labels were folded into __overflow__");
	struct buf at = { 0 };
	struct json j;

	time_print_rfc3339(&at, a->ts_ns);
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "samples");
	json_u64(&j, stats->samples);
	json_key(&j, "time");
	json_str(&j, buf_str(&at));
	json_object_end(&j);
	api_end(&j, &overflow, stats->overflow ? 1 : 0, NULL, 0);
	buf_release(&at);
}

void api_ingest(struct web *w, struct http_in *in, struct http_out *out)
{
	struct db_append a = { .convert = false };
	struct db_append_stats stats = { 0 };
	struct arena arena;
	struct err err;
	enum err_code rc;

	if (!enter(w)) {
		metric_add(&ingested, "busy", 1);
		api_error(out, 503, "unavailable", "too many profiles are being pushed: try again later");
		http_add_header(out, "Retry-After", STR("1"));
		return;
	}
	arena_init(&arena, ARENA_BYTES_MAX);
	rc = store(w, in, &arena, &a, &stats, &err);
	arena_release(&arena);
	leave(w);
	metric_add(&ingested, rc ? "failed" : "ok", 1);
	if (rc)
		api_fail(out, rc, &err);
	else
		write_stored(out, &a, &stats);
}
