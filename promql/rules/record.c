/*
 * Writes the results of rules: numbers, stale marks for series that end, profiles.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "promql/pprof/profiles.h"
#include "promql/rules/manager_internal.h"
#include "tsdb/columns/number_chunk.h"

/* ---- waiting for the database ---- */

struct ack {
	struct mutex lock; /* guards all below */
	struct cond done;
	size_t waiting;
	struct err err; /* the first; code ERR_OK: none */
};

static void record_acked(void *ctx, enum err_code rc, const struct err *err)
{
	struct ack *a = ctx;

	mutex_lock(&a->lock);
	if (rc && !a->err.code) {
		if (err)
			a->err = *err;
		else
			err_set(&a->err, rc, "%s", err_code_name(rc));
		a->err.code = rc;
	}
	assert(a->waiting);
	a->waiting--;
	cond_signal(&a->done);
	mutex_unlock(&a->lock);
}

static void ack_init(struct ack *a)
{
	*a = (struct ack){ .waiting = 0 };
	mutex_init(&a->lock);
	cond_init(&a->done);
}

static void ack_expect(struct ack *a)
{
	mutex_lock(&a->lock);
	a->waiting++;
	mutex_unlock(&a->lock);
}

static void ack_refused(struct ack *a)
{
	mutex_lock(&a->lock);
	assert(a->waiting);
	a->waiting--;
	mutex_unlock(&a->lock);
}

/* Waits for all acknowledgements; the first error is returned. */
static enum err_code ack_wait(struct ack *a, enum err_code rc, struct err *err)
{
	mutex_lock(&a->lock);
	while (a->waiting)
		cond_wait(&a->done, &a->lock);
	mutex_unlock(&a->lock);
	if (!rc && a->err.code)
		rc = err_copy(err, &a->err);
	cond_destroy(&a->done);
	mutex_destroy(&a->lock);
	return rc;
}

static enum err_code record_check_may(const struct rule_manager *m, struct err *err)
{
	return rule_manager_may(m) ? ERR_OK :
								 err_set(err, ERR_UNAVAILABLE, "somebody else may evaluate by now");
}

static enum err_code record_append_numbers(
	struct rule_manager *m, const struct db_number *d, size_t n, struct err *err)
{
	struct ack a;
	enum err_code rc;

	if ((rc = record_check_may(m, err)))
		return rc;
	ack_init(&a);
	ack_expect(&a);
	if ((rc = db_append_numbers(m->o.db, d, n, record_acked, &a, err)))
		ack_refused(&a);
	return ack_wait(&a, rc, err);
}

/* ---- numbers ---- */

void writing_init(struct writing *w, struct rule_manager *m)
{
	*w = (struct writing){ .manager = m };
	arena_init(&w->arena, EVALUATION_BYTES_MAX);
}

void writing_release(struct writing *w)
{
	free(w->v);
	arena_release(&w->arena);
}

static enum err_code record_add(struct writing *w, struct db_number number, struct err *err)
{
	if (!array_room(&w->v, w->n, 1, &w->cap))
		return err_nomem(err, "rules");
	w->v[w->n++] = number;
	return ERR_OK;
}

static enum err_code record_series_labels(struct arena *a, const char *name, struct labels base,
	const struct label *extra, size_t extra_n, struct labels *out, struct err *err)
{
	struct labels_builder b;

	labels_builder_init(&b, a, base);
	for (size_t i = 0; i < extra_n; i++)
		labels_builder_set(&b, extra[i].name, extra[i].value);
	labels_builder_set(&b, STR(LABEL_NAME), str_of(name));
	return labels_builder_build(&b, out, err);
}

enum err_code writing_add(struct writing *w, const char *name, struct labels base,
	const struct label *extra, size_t extra_n, int64_t t_ns, double value, struct err *err)
{
	struct db_number n = { .ts_ns = t_ns, .value = value };
	enum err_code rc = record_series_labels(&w->arena, name, base, extra, extra_n, &n.labels, err);

	return rc ? rc : record_add(w, n, err);
}

static int record_by_labels(const void *a, const void *b)
{
	return labels_cmp(((const struct db_number *)a)->labels, ((const struct db_number *)b)->labels);
}

void seen_release(struct rule_manager_seen_series *s)
{
	arena_release(&s->arena);
	*s = (struct rule_manager_seen_series){ .n = 0 };
}

static enum err_code record_see(
	struct rule_manager_seen_series *s, const struct db_number *d, size_t n, struct err *err)
{
	*s = (struct rule_manager_seen_series){ .n = 0 };
	arena_init(&s->arena, 0);
	if (!(s->v = arena_array(&s->arena, struct labels, n + 1)))
		return arena_fail(&s->arena, "rules", err);
	for (size_t i = 0; i < n; i++) {
		s->v[i] = labels_dup(&s->arena, d[i].labels);
		if (d[i].labels.n && !s->v[i].v)
			return arena_fail(&s->arena, "rules", err);
		s->n++;
	}
	return ERR_OK;
}

enum err_code writing_end(struct writing *w, struct labels labels, int64_t t_ns, struct err *err)
{
	struct db_number n = {
		.labels = labels, .ts_ns = t_ns, .value = number_of_bits(NUMBER_STALE_BITS)
	};

	return record_add(w, n, err);
}

enum err_code writing_flush(struct writing *w, struct err *err)
{
	return w->n ? record_append_numbers(w->manager, w->v, w->n, err) : ERR_OK;
}

enum err_code writing_commit(
	struct writing *w, struct rule_manager_seen_series *seen, int64_t t_ns, struct err *err)
{
	size_t written = w->n, i = 0;
	struct rule_manager_seen_series now;
	enum err_code rc = ERR_OK;

	if (written)
		qsort(w->v, written, sizeof(*w->v), record_by_labels);
	for (size_t k = 1; k < written; k++)
		if (labels_eq(w->v[k - 1].labels, w->v[k].labels))
			return err_set(err, ERR_INVALID,
				"vector contains metrics with the same labelset after applying "
				"rule labels");
	if ((rc = record_see(&now, w->v, written, err)))
		goto fail;
	for (size_t k = 0; k < seen->n && !rc; k++) {
		assert(!k || labels_cmp(seen->v[k - 1], seen->v[k]) < 0);
		while (i < written && labels_cmp(w->v[i].labels, seen->v[k]) < 0)
			i++;
		if (i == written || !labels_eq(w->v[i].labels, seen->v[k]))
			rc = writing_end(w, seen->v[k], t_ns, err);
	}
	if (!rc)
		rc = writing_flush(w, err);
	if (rc)
		goto fail;
	seen_release(seen);
	*seen = now;
	return ERR_OK;
fail:
	seen_release(&now);
	return rc;
}

enum err_code seen_end(
	struct rule_manager *m, struct rule_manager_seen_series *seen, int64_t t_ns, struct err *err)
{
	struct writing w;
	enum err_code rc = ERR_OK;

	writing_init(&w, m);
	for (size_t i = 0; i < seen->n && !rc; i++)
		rc = writing_end(&w, seen->v[i], t_ns, err);
	if (!rc)
		rc = writing_flush(&w, err);
	writing_release(&w);
	return rc;
}

/* ---- recording rules ---- */

struct recording {
	struct rule_manager *m;
	struct rule_state *r;
	const struct result *result;
	struct label *extra; /* the rule's labels */
	size_t extra_n;
	int64_t t_ns;
	char *name;
};

static enum err_code record_numbers(struct recording *recording, size_t *n, struct err *err)
{
	const struct result *r = recording->result;
	struct writing w;
	enum err_code rc = ERR_OK;

	writing_init(&w, recording->m);
	if (r->type == RESULT_SCALAR)
		rc = writing_add(&w, recording->name, (struct labels){ 0 }, recording->extra,
			recording->extra_n, recording->t_ns, r->scalar, err);
	for (size_t i = 0; r->type == RESULT_VECTOR && i < r->n && !rc; i++)
		rc = writing_add(&w, recording->name, r->vector[i].metric, recording->extra,
			recording->extra_n, recording->t_ns, r->vector[i].value, err);
	*n = w.n;
	if (!rc)
		rc = writing_commit(&w, &recording->r->seen, recording->t_ns, err);
	writing_release(&w);
	return rc;
}

/*
 * The duration of a merged profile: the part of the interval for which its sources were profiled,
 * so that rate() of the recorded profile is right. 0: no source has a duration.
 */
static int64_t record_duration_of(const struct profile_value *v, int64_t interval_ns)
{
	long double part;

	if (v->duration_nanos <= 0 || v->elapsed_ns <= 0 || v->profiled_ns <= 0)
		return 0;
	part = roundl(
		(long double)interval_ns * (long double)v->profiled_ns / (long double)v->elapsed_ns);
	return part < 1 ? 1 : part < 0x1p63L ? (int64_t)part : INT64_MAX;
}

/* One element as a profile. */
static enum err_code record_make_profile(struct recording *r, struct arena *a,
	const struct profile_value *v, struct db_append *out, enum value_kind *kind, struct err *err)
{
	int64_t interval = r->r->rule->group->interval_ns;
	struct pprof *p;
	enum err_code rc;

	if (v->is_diff)
		return err_set(err, ERR_INVALID, "a diff cannot be recorded");
	if ((rc = profiles_to_pprof(a, &v, 1, NULL, 0, &r->m->stop, &p, err)))
		return rc;
	p->duration_nanos = record_duration_of(v, interval);
	*kind = v->type.delta ? KIND_DELTA : KIND_GAUGE;
	*out = (struct db_append){
		.ts_ns = r->t_ns,
		.interval_ns = interval,
		.profile = p,
		.kinds = kind,
	};
	return record_series_labels(a, r->name, v->metric, r->extra, r->extra_n, &out->labels, err);
}

static int labels_order(const void *a, const void *b)
{
	return labels_cmp(*(const struct labels *)a, *(const struct labels *)b);
}

/* Two elements must not be one series: nothing is written then. */
static enum err_code record_check_profiles(
	struct recording *recording, struct arena *a, struct err *err)
{
	const struct result *r = recording->result;
	struct labels *v = arena_array(a, struct labels, r->n + 1);
	enum err_code rc;

	if (!v)
		return arena_fail(a, "rules", err);
	for (size_t i = 0; i < r->n; i++)
		if ((rc = record_series_labels(a, recording->name, r->profiles[i].metric, recording->extra,
				 recording->extra_n, &v[i], err)))
			return rc;
	qsort(v, r->n, sizeof(*v), labels_order);
	for (size_t i = 1; i < r->n; i++)
		if (labels_eq(v[i - 1], v[i]))
			return err_set(err, ERR_INVALID,
				"vector contains metrics with the same labelset after applying "
				"rule labels");
	return ERR_OK;
}

static enum err_code record_profiles(struct recording *recording, size_t *n, struct err *err)
{
	const struct result *r = recording->result;
	struct db_append_stats stats;
	struct db_append append;
	enum value_kind kind;
	struct arena a;
	struct ack ack;
	enum err_code rc;

	arena_init(&a, EVALUATION_BYTES_MAX);
	ack_init(&ack);
	rc = record_check_profiles(recording, &a, err);
	for (size_t i = 0; i < r->n && !rc; i++) {
		arena_reset(&a);
		if ((rc = record_make_profile(recording, &a, &r->profiles[i], &append, &kind, err)))
			break;
		if ((rc = record_check_may(recording->m, err)))
			break;
		ack_expect(&ack);
		if ((rc = db_append(recording->m->o.db, &append, &stats, record_acked, &ack, err)))
			ack_refused(&ack);
	}
	rc = ack_wait(&ack, rc, err);
	arena_release(&a);
	*n = r->n;
	return rc;
}

enum err_code record_result(struct rule_manager *m, struct rule_state *r, struct query *q,
	int64_t t_ns, size_t *n, struct err *err)
{
	const struct result *result = query_result(q);
	const struct rule *rule = r->rule;
	struct recording x = {
		.m = m, .r = r, .result = result, .t_ns = t_ns, .extra_n = rule->labels_n
	};
	struct arena *a = query_arena(q);
	size_t limit = rule->group->limit;

	assert(rule->kind != RULE_ALERT);
	*n = 0;
	x.name = arena_strndup(a, rule->name.ptr, rule->name.len);
	x.extra = arena_array(a, struct label, rule->labels_n + 1);
	if (!x.name || !x.extra)
		return arena_fail(a, "rules", err);
	for (size_t i = 0; i < rule->labels_n; i++)
		x.extra[i] = (struct label){ rule->labels[i].name, rule->labels[i].text };
	if (limit && result->type != RESULT_SCALAR && result->n > limit)
		return err_set(err, ERR_LIMIT, "exceeded limit of %zu with %zu series", limit, result->n);
	if (result->type == RESULT_PROFILES && result->n)
		return record_profiles(&x, n, err);
	if (result->type == RESULT_SCALAR || result->type == RESULT_VECTOR || result->n == 0)
		return record_numbers(&x, n, err);
	return err_set(err, ERR_INVALID, "only costs and profiles can be recorded");
}
