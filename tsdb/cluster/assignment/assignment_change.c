#include "tsdb/cluster/assignment/assignment_change.h"

#include <inttypes.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "tsdb/cluster/lease.h"

#define ATTEMPTS_MAX 64u /* somebody else was faster each time */
#define PAUSE_MAX_NS (200 * NS_PER_MS)

int64_t change_lease_of(const struct manifest *m)
{
	return m->lease_ns > 0 && m->lease_ns < LEASE_MAX_NS ? m->lease_ns : CHANGE_LEASE_NS;
}

/* ---- one change ---- */

static int change_by_name(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static enum err_code change_with(const struct str *names, uint32_t names_n, struct str name,
	struct arena *a, struct str **out, uint32_t *n, struct err *err)
{
	struct str *v = arena_array(a, struct str, names_n + 1);

	if (names_n >= ASSIGNMENT_SHARDS_MAX)
		return err_set(err, ERR_LIMIT, "%u shards, limit %u", (unsigned)names_n + 1,
			(unsigned)ASSIGNMENT_SHARDS_MAX);
	if (!v)
		return arena_fail(a, "assignment", err);
	for (uint32_t i = 0; i < names_n; i++)
		v[i] = names[i];
	if (!(v[names_n] = str_dup(a, name)).ptr)
		return arena_fail(a, "assignment", err);
	qsort(v, names_n + 1, sizeof(*v), change_by_name);
	*out = v;
	*n = names_n + 1;
	return ERR_OK;
}

static enum err_code change_without(const struct str *names, uint32_t names_n, struct str name,
	struct arena *a, struct str **out, uint32_t *n, struct err *err)
{
	struct str *v = arena_array(a, struct str, names_n + 1);

	if (!v)
		return arena_fail(a, "assignment", err);
	*n = 0;
	for (uint32_t i = 0; i < names_n; i++)
		if (!str_eq(names[i], name))
			v[(*n)++] = names[i];
	*out = v;
	return ERR_OK;
}

/* PREFIX-0 to PREFIX-(total - 1). */
static enum err_code change_all_of_total(const struct assignment_change *c, struct arena *a,
	struct str **out, uint32_t *n, struct err *err)
{
	size_t prefix = c->shard.len - str_ending_digits(c->shard).len;
	struct str *v;

	if (c->total > ASSIGNMENT_SHARDS_MAX)
		return err_set(err, ERR_LIMIT, "%" PRIu64 " shards, limit %u", c->total,
			(unsigned)ASSIGNMENT_SHARDS_MAX);
	if (!(v = arena_array(a, struct str, c->total + 1)))
		return arena_fail(a, "assignment", err);
	for (uint64_t i = 0; i < c->total; i++) {
		char *name = arena_printf(a, "%.*s%" PRIu64, (int)prefix, c->shard.ptr, i);

		if (!name)
			return arena_fail(a, "assignment", err);
		v[i] = str_of(name);
	}
	qsort(v, c->total, sizeof(*v), change_by_name);
	*out = v;
	*n = (uint32_t)c->total;
	return ERR_OK;
}

static enum err_code change_first(const struct assignment_change *c, int64_t now_ns,
	struct arena *a, struct assignment *out, struct err *err)
{
	struct assignment_version *v = arena_new(a, struct assignment_version);
	struct str *shards = NULL;
	enum err_code rc;
	uint32_t n = 0;

	if (!v)
		return arena_fail(a, "assignment", err);
	rc = c->total > 1 ? change_all_of_total(c, a, &shards, &n, err) :
						change_with(NULL, 0, c->shard, a, &shards, &n, err);
	if (rc || (rc = assignment_version_make(v, shards, n, a, err)))
		return rc;
	v->number = 1;
	v->since_ns = now_ns;
	*out = (struct assignment){
		.number = 1, .versions = v, .versions_n = 1, .total = c->total > 1 ? c->total : 0
	};
	manifest_new_token(out->secret);
	return ERR_OK;
}

/* Appends a version with these names. */
static enum err_code change_append(const struct assignment *from, struct str *shards, uint32_t n,
	int64_t since_ns, struct arena *a, struct assignment *out, struct err *err)
{
	uint32_t kept = from->versions_n < ASSIGNMENT_VERSIONS_MAX ? from->versions_n :
																 ASSIGNMENT_VERSIONS_MAX - 1;
	const struct assignment_version *last = assignment_newest(from);
	struct assignment_version *v = arena_array(a, struct assignment_version, kept + 1);

	if (!v)
		return arena_fail(a, "assignment", err);
	memcpy(v, from->versions + from->versions_n - kept, kept * sizeof(*v));
	out->number = from->number + 1;
	v[kept].number = out->number;
	/* A clock that went back must not put a version before the one that it follows. */
	v[kept].since_ns = since_ns > last->since_ns ? since_ns : last->since_ns;
	out->versions = v;
	out->versions_n = kept + 1;
	return assignment_version_make(&v[kept], shards, n, a, err);
}

/* Makes the next lists; *n 0: nothing changes. */
static enum err_code change_lists(const struct assignment *from, const struct assignment_change *c,
	struct arena *a, struct assignment *out, struct str **shards, uint32_t *n, struct err *err)
{
	const struct assignment_version *v = assignment_newest(from);
	bool in = assignment_version_has(v, c->shard), drained = assignment_is_drained(from, c->shard);
	enum err_code rc = ERR_OK;

	*n = 0;
	switch (c->verb) {
	case ASSIGNMENT_JOIN:
		if (in || drained)
			return ERR_OK;
		break;
	case ASSIGNMENT_DRAIN:
		if (!in && !drained)
			return err_set(err, ERR_NOT_FOUND, "shard " STR_FMT " is not in assignment %" PRIu64,
				STR_ARG(c->shard), from->number);
		if (!in)
			return ERR_OK;
		if (v->n == 1)
			return err_set(err, ERR_INVALID,
				"shard " STR_FMT " is the last one: nobody would have its targets",
				STR_ARG(c->shard));
		if (!drained)
			rc = change_with(
				from->drained, from->drained_n, c->shard, a, &out->drained, &out->drained_n, err);
		return rc ? rc : change_without(v->shards, v->n, c->shard, a, shards, n, err);
	case ASSIGNMENT_ADMIT:
		if (!in && !drained)
			return err_set(
				err, ERR_NOT_FOUND, "shard " STR_FMT " is not drained", STR_ARG(c->shard));
		if (in)
			return ERR_OK;
		if ((rc = change_without(
				 from->drained, from->drained_n, c->shard, a, &out->drained, &out->drained_n, err)))
			return rc;
		break;
	}
	return change_with(v->shards, v->n, c->shard, a, shards, n, err);
}

enum err_code assignment_changed(const struct assignment *from, const struct assignment_change *c,
	int64_t now_ns, int64_t lease_ns, struct arena *a, struct assignment *out, bool *changed,
	struct err *err)
{
	struct str *shards = NULL;
	enum err_code rc;
	uint32_t n;

	*changed = false;
	*out = *from;
	if ((rc = manifest_check_shard(c->shard, err)))
		return rc;
	if (!from->number) {
		if (c->verb != ASSIGNMENT_JOIN)
			return err_set(err, ERR_NOT_FOUND, "no shard of the bucket has joined others");
		*changed = true;
		return change_first(c, now_ns, a, out, err);
	}
	if ((rc = change_lists(from, c, a, out, &shards, &n, err)) || !n)
		return rc;
	*changed = true;
	return change_append(from, shards, n, now_ns + lease_ns + CHANGE_AHEAD_NS, a, out, err);
}

/* ---- in the bucket ---- */

/* A member whose manifest cannot be read does not hinder a change: it counts with the default. */
static int64_t change_longest_lease(struct bucket *b, const struct assignment *list)
{
	const struct assignment_version *v = assignment_newest(list);
	int64_t longest = CHANGE_LEASE_NS;
	struct manifest m;
	struct err err;
	struct arena a;

	for (uint32_t i = 0; v && i < v->n; i++) {
		struct manifest_key key = manifest_key_of(v->shards[i]);

		arena_init(&a, 0);
		if (!manifest_get(b, manifest_key_str(&key), &a, &m, NULL, &err) && m.lease_ns > longest &&
			!m.stopped)
			longest = m.lease_ns;
		arena_release(&a);
	}
	return longest;
}

static void change_pause(unsigned attempt)
{
	int64_t most = NS_PER_MS << (attempt < 7 ? attempt + 1 : 8), ns;
	uint32_t draw = 0;

	RAND_bytes((unsigned char *)&draw, sizeof(draw));
	ns = (int64_t)draw % (most < PAUSE_MAX_NS ? most : PAUSE_MAX_NS);
	nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
}

static enum err_code change_put(struct bucket *b, const struct assignment *list, const char *before,
	char *etag, struct err *err)
{
	struct buf text = { 0 };
	enum err_code rc;

	assignment_print(&text, list);
	if (buf_failed(&text))
		rc = err_nomem(err, "assignment");
	else if (text.len > ASSIGNMENT_BYTES_MAX)
		rc = err_set(err, ERR_LIMIT, "the assignment is %zu bytes, limit %u", text.len,
			(unsigned)ASSIGNMENT_BYTES_MAX);
	else
		rc = bucket_put(b,
			STR(ASSIGNMENT_KEY), buf_str(&text),
				list->number == 1 ? BUCKET_IF_ABSENT : BUCKET_IF_ETAG, before, etag, err);
	buf_release(&text);
	return rc;
}

enum err_code assignment_change(struct bucket *b, const struct assignment_change *c,
	struct arena *a, struct assignment *out, char *etag, bool *changed, struct err *err)
{
	char before[BUCKET_ETAG_BYTES_MAX], after[BUCKET_ETAG_BYTES_MAX];
	struct assignment from;
	int64_t lease_ns = 0;
	enum err_code rc;

	*changed = false;
	for (unsigned i = 0; i < ATTEMPTS_MAX; i++) {
		before[0] = '\0';
		rc = assignment_get(b, a, &from, before, err);
		if (rc == ERR_NOT_FOUND)
			from = (struct assignment){ 0 };
		else if (rc)
			return rc;
		if (!lease_ns)
			lease_ns = change_longest_lease(b, &from);
		if ((rc = assignment_changed(&from, c, clock_now_ns(), lease_ns, a, out, changed, err)))
			return rc;
		rc = *changed ? change_put(b, out, before, after, err) : ERR_OK;
		if (!rc) {
			if (etag)
				memcpy(etag, *changed ? after : before, BUCKET_ETAG_BYTES_MAX);
			if (*changed)
				log_info("cluster", "assignment of shards changed", LOG_I("number", out->number),
					LOG_I("shards", assignment_newest(out)->n), LOG_STR("shard", c->shard));
			return ERR_OK;
		}
		if (rc != ERR_EXISTS)
			return rc;
		change_pause(i);
	}
	return err_set(err, ERR_UNAVAILABLE, "the assignment of shards changes all the time");
}
