#include "cmd/epimetheus/rules/rules_state.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "tsdb/bucket/bucket.h"
#include "tsdb/cluster/manifest.h"

#define FRESH_NS NS_PER_S
#define HEAD_BYTES (64u << 10) /* larger ones are got only when they have changed */
#define WARNINGS_MAX 4u

_Static_assert(sizeof(((struct rules_state *)0)->etag) == BUCKET_ETAG_BYTES_MAX, "etag");

void rules_state_init(struct rules_state *s, struct bucket *b)
{
	*s = (struct rules_state){ .bucket = b };
	mutex_init(&s->lock);
}

void rules_state_release(struct rules_state *s)
{
	buf_release(&s->bytes);
	buf_release(&s->before);
	mutex_destroy(&s->lock);
}

/* ---- reading ---- */

static enum err_code rules_state_get(struct rules_state *s, struct err *err)
{
	struct manifest_key key = manifest_key_evaluated(STR(RULES_SHARD));
	struct bucket_info info;
	struct buf bytes = { 0 };
	enum err_code rc;

	mutex_assert_held(&s->lock);
	if (s->bytes.len > HEAD_BYTES) {
		if ((rc = bucket_head(s->bucket, manifest_key_str(&key), &info, err)))
			return rc;
		if (s->etag[0] && str_is(str_of(info.etag), s->etag))
			return ERR_OK;
	}
	/* A byte more than may be read says that there are too many. */
	rc = bucket_get(
		s->bucket, manifest_key_str(&key), 0, RULES_REPORT_BYTES_MAX + 1, &bytes, &info, err);
	if (!rc && !str_eq(buf_str(&bytes), buf_str(&s->bytes))) {
		s->same_since_ns = clock_monotonic_ns();
		s->saw_change = s->looked_ns && s->same_since_ns - s->looked_ns < RULES_STATE_OLD_NS;
	}
	if (!rc) {
		snprintf(s->etag, sizeof(s->etag), "%s", info.etag);
		buf_release(&s->bytes);
		s->bytes = bytes;
	} else {
		buf_release(&bytes);
	}
	return rc;
}

static void rules_state_look(struct rules_state *s)
{
	struct err err;

	mutex_assert_held(&s->lock);
	if (s->looked_ns && clock_monotonic_ns() - s->looked_ns < FRESH_NS)
		return;
	s->err.code = ERR_OK;
	if (rules_state_get(s, &err))
		s->err = err;
	s->looked_ns = clock_monotonic_ns();
}

void rules_state_begin(
	struct rules_state *s, struct rule_manager *m, struct db *db, bool (*may)(void *ctx), void *ctx)
{
	struct rules_report before;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	mutex_lock(&s->lock);
	s->looked_ns = 0;
	rules_state_look(s);
	buf_clear(&s->before);
	buf_add_str(&s->before, buf_str(&s->bytes));
	s->states = 0;
	s->put_ns = s->due_ns = 0;
	if (!s->before.len || rules_report_read(buf_str(&s->before), &a, &before, &err))
		before = (struct rules_report){ .written_ns = 0 };
	mutex_unlock(&s->lock);
	rule_manager_begin(m, db, may, ctx, &before.rules);
	arena_release(&a);
}

/* What is not evaluated here yet is as the node before had it. */
static void rules_state_fill(struct rules_state *s, struct rules_snapshot *own, struct arena *a)
{
	struct rules_report before;
	struct err err;
	bool whole = true;

	for (size_t i = 0; i < own->groups_n; i++)
		whole &= own->groups[i].last_evaluation_ns != 0;
	if (whole)
		return;
	mutex_lock(&s->lock);
	if (s->before.len && !rules_report_read(buf_str(&s->before), a, &before, &err))
		rules_report_fill(own, &before);
	mutex_unlock(&s->lock);
}

/* ---- putting ---- */

static enum err_code rules_state_write(
	struct rules_state *s, const struct rules_snapshot *own, struct err *err)
{
	struct manifest_key key = manifest_key_evaluated(STR(RULES_SHARD));
	struct buf bytes = { 0 };
	char host[256] = "";
	enum err_code rc;

	gethostname(host, sizeof(host) - 1);
	rules_report_print(&bytes, own, str_of(host), clock_now_ns(), RULES_REPORT_BYTES_MAX);
	rc = buf_failed(&bytes) ?
		err_nomem(err, "rules") :
		bucket_put(s->bucket, manifest_key_str(&key), buf_str(&bytes), BUCKET_ANY, NULL, NULL, err);
	buf_release(&bytes);
	return rc;
}

static enum err_code rules_state_put_own(struct rules_state *s, struct rules_snapshot *own,
	struct arena *a, int64_t now, struct err *err)
{
	enum err_code rc;
	uint64_t states;

	rules_state_fill(s, own, a);
	states = rules_report_hash_states(own);
	if (s->put_ns && states == s->states && now - s->put_ns < RULES_STATE_EVERY_NS)
		return ERR_OK;
	s->put_ns = now;
	if (!(rc = rules_state_write(s, own, err)))
		s->states = states;
	return rc;
}

void rules_state_put(struct rules_state *s, struct rule_manager *m)
{
	int64_t now = clock_monotonic_ns();
	struct rules_snapshot own;
	struct arena a;
	struct err err;
	enum err_code rc;

	if (now < s->due_ns)
		return;
	s->due_ns = now + FRESH_NS;
	arena_init(&a, 0);
	if (!(rc = rule_manager_snapshot(m, &a, &own, &err))) {
		rc = rules_state_put_own(s, &own, &a, now, &err);
		rules_snapshot_release(&own);
	}
	if (rc && rc != ERR_CANCELED && !s->failed)
		log_warn("main", "other query nodes do not learn what is evaluated", LOG_E(&err));
	s->failed = rc != ERR_OK;
	arena_release(&a);
}

/* ---- answering ---- */

static enum err_code rules_state_warn(struct arena *a, struct rules_report *out, struct err *err,
	const char *fmt, ...) PRINTF_LIKE(4, 5);

static enum err_code rules_state_warn(
	struct arena *a, struct rules_report *out, struct err *err, const char *fmt, ...)
{
	struct str *v = out->warnings_n ? out->warnings : arena_array(a, struct str, WARNINGS_MAX);
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!v || !(v[out->warnings_n] = str_dup(a, str_of(text))).ptr)
		return arena_fail(a, "rules", err);
	out->warnings = v;
	out->warnings_n++;
	return ERR_OK;
}

/* Clocks may differ: where the object was seen to change, since when it is the same counts. */
static int64_t rules_state_age(const struct rules_state *s, const struct rules_report *r)
{
	int64_t age = clock_now_ns() - r->written_ns, same = clock_monotonic_ns() - s->same_since_ns;

	mutex_assert_held(&s->lock);
	return age > same && !s->saw_change ? age : same;
}

static enum err_code rules_state_warn_of(struct rules_state *s, const struct rules_report *own,
	struct arena *a, struct rules_report *out, struct err *err)
{
	int64_t age = rules_state_age(s, out);
	enum err_code rc = ERR_OK;

	if (age > RULES_STATE_OLD_NS)
		rc = rules_state_warn(a, out, err,
			"rules are evaluated by " STR_FMT "; the state is %.0fs old%s%s", STR_ARG(out->host),
			(double)age / 1e9, s->err.code ? ", and cannot be read: " : "",
			s->err.code ? s->err.msg : "");
	if (!rc && out->alerts_cut + out->groups_cut)
		rc = rules_state_warn(a, out, err,
			"the state of the rules is larger than %zu MiB: %llu alerts and %llu groups are left "
			"out",
			RULES_REPORT_BYTES_MAX >> 20, (unsigned long long)out->alerts_cut,
			(unsigned long long)out->groups_cut);
	if (!rc && own->rules.groups_n && !out->groups_cut &&
		rules_report_hash_rules(&own->rules) != rules_report_hash_rules(&out->rules))
		rc = rules_state_warn(a, out, err,
			STR_FMT ", which evaluates the rules, has other rules than this node",
			STR_ARG(out->host));
	return rc;
}

/* Nothing can be said of rules: those of this node are not evaluated here. */
static enum err_code rules_state_warn_none(
	struct rules_state *s, struct arena *a, struct rules_report *out, struct err *err)
{
	if (s->err.code != ERR_NOT_FOUND)
		return rules_state_warn(a, out, err,
			"rules are not evaluated here, and what another query node evaluates cannot be read: "
			"%s",
			s->err.msg);
	return out->rules.groups_n ?
		rules_state_warn(a, out, err, "no query node has evaluated the rules yet") :
		ERR_OK;
}

static enum err_code rules_state_elsewhere(
	struct rules_state *s, struct arena *a, struct rules_report *out, struct err *err)
{
	struct rules_report there;
	struct err why;
	enum err_code rc;

	mutex_assert_held(&s->lock);
	rules_state_look(s);
	if (s->bytes.len && rules_report_read(buf_str(&s->bytes), a, &there, &why))
		s->err = why;
	else if (s->bytes.len && s->err.code != ERR_NOT_FOUND) {
		if ((rc = rules_state_warn_of(s, out, a, &there, err)))
			return rc;
		rules_snapshot_release(&out->rules);
		*out = there;
		return ERR_OK;
	}
	return rules_state_warn_none(s, a, out, err);
}

enum err_code rules_state_answer(struct rules_state *s, enum rules_lease_state state,
	struct rule_manager *m, struct arena *a, struct rules_report *out, struct err *err)
{
	enum err_code rc;

	*out = (struct rules_report){ .written_ns = 0 };
	if ((rc = rule_manager_snapshot(m, a, &out->rules, err)))
		return rc;
	if (state == RULES_NOT_HERE) {
		mutex_lock(&s->lock);
		rc = rules_state_elsewhere(s, a, out, err);
		mutex_unlock(&s->lock);
	} else {
		rules_state_fill(s, &out->rules, a);
		if (state == RULES_PAUSED)
			rc = rules_state_warn(a, out, err,
				"rules are not evaluated now: the bucket does not confirm their lease");
	}
	if (rc)
		rules_snapshot_release(&out->rules);
	return rc;
}
