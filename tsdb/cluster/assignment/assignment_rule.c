#include "tsdb/cluster/assignment/assignment_rule.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/map.h"

struct assignment_rule_past { /* a version before the newest, and who may still follow it */
	const struct assignment_version *v;
	bool *behind; /* of its shards */
};

struct assignment_rule {
	atomic_uint refs;
	struct arena arena;
	struct assignment s;
	struct str self;
	struct assignment_rule_past *past;
	size_t past_n;
	struct assignment_floor *fixed; /* those of floor 0, where there was a total */
	size_t fixed_n;
	struct str anything; /* the first shard that may have anything; ptr NULL: none */
};

/* ---- copies ---- */

static enum err_code assignment_rule_copy_names(
	const struct str *names, uint32_t n, struct arena *a, struct str **out, struct err *err)
{
	struct str *v = arena_array(a, struct str, n + 1);

	if (!v)
		return arena_fail(a, "assignment", err);
	for (uint32_t i = 0; i < n; i++)
		if (!(v[i] = str_dup(a, names[i])).ptr)
			return arena_fail(a, "assignment", err);
	*out = v;
	return ERR_OK;
}

static enum err_code assignment_rule_copy_version(const struct assignment_version *from,
	struct arena *a, struct assignment_version *to, struct err *err)
{
	struct str *shards;
	enum err_code rc;

	*to = *from;
	if ((rc = assignment_rule_copy_names(from->shards, from->n, a, &shards, err)))
		return rc;
	return assignment_version_make(to, shards, from->n, a, err);
}

enum err_code assignment_copy(const struct assignment *list, const struct assignment *older,
	struct arena *a, struct assignment *out, struct err *err)
{
	uint64_t first = list->versions_n ? list->versions[0].number : 0;
	uint32_t before = 0;
	enum err_code rc;

	*out = *list;
	if (older && older->versions_n && first > older->versions[0].number &&
		first - 1 <= older->number) /* without a gap */
		before = (uint32_t)(first - older->versions[0].number);
	if (before + list->versions_n > ASSIGNMENT_KNOWN_MAX)
		before = ASSIGNMENT_KNOWN_MAX > list->versions_n ? ASSIGNMENT_KNOWN_MAX - list->versions_n :
														   0;
	out->versions_n = before + list->versions_n;
	if (!(out->versions = arena_array(a, struct assignment_version, out->versions_n + 1)))
		return arena_fail(a, "assignment", err);
	for (uint32_t i = 0; i < before; i++)
		if ((rc = assignment_rule_copy_version(
				 assignment_find(older, first - before + i), a, &out->versions[i], err)))
			return rc;
	for (uint32_t i = 0; i < list->versions_n; i++)
		if ((rc = assignment_rule_copy_version(
				 &list->versions[i], a, &out->versions[before + i], err)))
			return rc;
	return assignment_rule_copy_names(list->drained, list->drained_n, a, &out->drained, err);
}

/* ---- making ---- */

static bool assignment_rule_is_behind(
	const struct assignment_floor *floors, size_t n, struct str shard, uint64_t number)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(floors[i].shard, shard))
			return floors[i].known && floors[i].number && floors[i].number <= number;
	return false;
}

/* Older versions that a member of them may still follow. */
static enum err_code assignment_rule_find_past(
	struct assignment_rule *r, const struct assignment_floor *floors, size_t n, struct err *err)
{
	if (!(r->past = arena_array(&r->arena, struct assignment_rule_past, r->s.versions_n + 1)))
		return arena_fail(&r->arena, "assignment", err);
	for (uint32_t i = 0; i + 1 < r->s.versions_n; i++) {
		const struct assignment_version *v = &r->s.versions[i];
		bool *behind = arena_array(&r->arena, bool, v->n), any = false;

		if (!behind)
			return arena_fail(&r->arena, "assignment", err);
		for (uint32_t k = 0; k < v->n; k++) {
			behind[k] = !str_eq(v->shards[k], r->self) &&
				assignment_rule_is_behind(floors, n, v->shards[k], v->number);
			any |= behind[k];
		}
		if (any)
			r->past[r->past_n++] = (struct assignment_rule_past){ v, behind };
	}
	return ERR_OK;
}

static enum err_code assignment_rule_find_others(
	struct assignment_rule *r, const struct assignment_floor *floors, size_t n, struct err *err)
{
	uint64_t oldest = r->s.versions[0].number;

	if (!(r->fixed = arena_array(&r->arena, struct assignment_floor, n + 1)))
		return arena_fail(&r->arena, "assignment", err);
	for (size_t i = 0; i < n; i++) {
		const struct assignment_floor *f = &floors[i];
		struct str name;

		if (str_eq(f->shard, r->self) || (f->known && f->number >= oldest))
			continue;
		if (!(name = str_dup(&r->arena, f->shard)).ptr)
			return arena_fail(&r->arena, "assignment", err);
		if (!f->known || f->number)
			r->anything = r->anything.ptr ? r->anything : name;
		else if (r->s.total)
			r->fixed[r->fixed_n++] = (struct assignment_floor){ .shard = name, .known = true };
	}
	return ERR_OK;
}

enum err_code assignment_rule_new(const struct assignment *list, struct str self,
	const struct assignment_floor *floors, size_t n, struct assignment_rule **out, struct err *err)
{
	struct assignment_rule *r = calloc(1, sizeof(*r));
	enum err_code rc;

	if (!r)
		return err_nomem(err, "assignment");
	atomic_init(&r->refs, 1);
	arena_init(&r->arena, 0);
	if (!(r->self = str_dup(&r->arena, self)).ptr)
		rc = arena_fail(&r->arena, "assignment", err);
	else
		rc = assignment_copy(list, NULL, &r->arena, &r->s, err);
	if (!rc && r->s.versions_n && !(rc = assignment_rule_find_past(r, floors, n, err)))
		rc = assignment_rule_find_others(r, floors, n, err);
	if (rc) {
		assignment_rule_unref(r);
		return rc;
	}
	*out = r;
	return ERR_OK;
}

struct assignment_rule *assignment_rule_ref(struct assignment_rule *r)
{
	unsigned before = atomic_fetch_add(&r->refs, 1);

	assert(before > 0);
	return r;
}

void assignment_rule_unref(struct assignment_rule *r)
{
	if (!r || atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	arena_release(&r->arena);
	free(r);
}

const struct assignment *assignment_rule_of(const struct assignment_rule *r)
{
	return &r->s;
}

bool assignment_rule_is_settled(const struct assignment_rule *r)
{
	return r->s.versions_n && !r->past_n && !r->fixed_n && !r->anything.ptr;
}

/* ---- whose ---- */

/* A server with a fixed total takes the ordinal at the end of its name. */
static bool assignment_rule_has_ordinal(struct str name, uint32_t ordinal)
{
	uint64_t n;

	return str_to_u64(str_ending_digits(name), &n) && n == ordinal;
}

enum assignment_whose assignment_rule_whose(
	const struct assignment_rule *r, uint64_t key, struct str *shard)
{
	const struct assignment_version *newest = assignment_newest(&r->s);
	uint32_t owner;

	*shard = STR("");
	if (!newest)
		return ASSIGNMENT_WAITS;
	*shard = newest->shards[assignment_owner(newest, key)];
	if (!str_eq(*shard, r->self))
		return ASSIGNMENT_OTHERS;
	if (r->anything.ptr) {
		*shard = r->anything;
		return ASSIGNMENT_WAITS;
	}
	for (size_t i = 0; i < r->past_n; i++) {
		owner = assignment_owner(r->past[i].v, key);
		if (r->past[i].behind[owner]) {
			*shard = r->past[i].v->shards[owner];
			return ASSIGNMENT_WAITS;
		}
	}
	owner = r->fixed_n ? hash_owner(key, (uint32_t)r->s.total) : 0;
	for (size_t i = 0; i < r->fixed_n; i++)
		if (assignment_rule_has_ordinal(r->fixed[i].shard, owner)) {
			*shard = r->fixed[i].shard;
			return ASSIGNMENT_WAITS;
		}
	return ASSIGNMENT_OWN;
}
