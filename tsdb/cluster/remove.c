#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "tsdb/cluster/publisher_internal.h"

/*
 * Removing. An object is removed when a manifest without it was confirmed delete_delay_ns ago, by
 * our monotonic clock, and the lease is surely still ours. Objects that no manifest names, left by
 * a crash, are found by listing the bucket; they go onto the same list `gone`.
 */

/* The object was put, and the next manifest names it. p->lock is held. */
static bool remove_is_needed(const struct publisher *p, struct str rest)
{
	struct manifest_key key;

	for (size_t i = 0; i < p->ready_n; i++)
		if (str_find(rest, str_of(p->ready[i].b.ulid.text)) >= 0)
			return true;
	for (size_t i = 0; i < p->snapshots_n; i++) {
		const struct snapshot_task *t = &p->snapshots[i];
		struct manifest_window w = { .start_ns = t->start_ns, .identity = t->identity };

		key = manifest_key_segment(p->o.shard, &w, &t->segment);
		if (str_eq(manifest_key_rest(&key, p->o.shard), rest))
			return true;
	}
	for (size_t i = 0; i < p->puts_n; i++)
		if (str_eq(manifest_key_rest(&p->puts[i], p->o.shard), rest))
			return true;
	return false;
}

/* ---- what is gone ---- */

/* Half of the lease's time is left: a removal that begins now ends while the lease is ours. */
static bool remove_has_time(const struct publisher *p)
{
	return !lease_is_fenced(p->lease) && lease_age_ns(p->lease) < lease_ns(p->lease) / 2;
}

/* Looks from *at on, so that an object that cannot be removed holds up no other. */
static bool remove_next_gone(struct publisher *p, uint32_t *at, char key[BUCKET_KEY_BYTES_MAX])
{
	int64_t now = clock_monotonic_ns();
	bool found = false;

	mutex_lock(&p->lock);
	for (; *at < p->m.gone_n && !found && !p->stopping; (*at)++) {
		const struct manifest_gone *g = &p->m.gone[*at];

		if (p->gone_at[*at] <= 0 || now - p->gone_at[*at] < p->o.delete_delay_ns ||
			remove_is_needed(p, g->key))
			continue;
		snprintf(p->deleting, sizeof(p->deleting), STR_FMT, STR_ARG(g->key));
		memcpy(key, p->deleting, BUCKET_KEY_BYTES_MAX);
		found = true;
	}
	mutex_unlock(&p->lock);
	return found;
}

static void remove_end_delete(struct publisher *p, const char *key, bool done)
{
	mutex_lock(&p->lock);
	p->deleting[0] = '\0';
	cond_broadcast(&p->deleted);
	for (uint32_t i = 0; i < p->m.gone_n && done; i++)
		if (str_is(p->m.gone[i].key, key))
			p->gone_at[i] = GONE_REMOVED;
	p->counts.removed += done;
	mutex_unlock(&p->lock);
}

static enum err_code cluster_remove_gone(struct publisher *p, struct err *err)
{
	char key[BUCKET_KEY_BYTES_MAX], whole[BUCKET_KEY_BYTES_MAX + MANIFEST_KEY_BYTES_MAX];
	enum err_code rc;
	uint32_t at = 0;

	while (remove_has_time(p) && remove_next_gone(p, &at, key)) {
		snprintf(whole, sizeof(whole), "shards/%s/%s", p->shard, key);
		rc = bucket_delete(p->o.bucket, str_of(whole), err);
		/* An invalid key names no object: it counts as removed. */
		remove_end_delete(p, key, !rc || rc == ERR_INVALID);
		if (rc && rc != ERR_INVALID)
			return rc;
	}
	return ERR_OK;
}

/* ---- objects without a name ---- */

struct orphans {
	struct publisher *p;
	size_t prefix; /* bytes of "shards/NAME/" */
	struct arena a;
	struct str *v;
	size_t n, cap;
};

static enum err_code remove_on_object(void *ctx, const struct bucket_object *o, struct err *err)
{
	struct orphans *x = ctx;
	struct str rest = o->key;

	if (o->is_prefix || rest.len <= x->prefix || rest.len - x->prefix >= BUCKET_KEY_BYTES_MAX)
		return ERR_OK;
	rest.ptr += x->prefix;
	rest.len -= x->prefix;
	if (str_is(rest, "manifest"))
		return ERR_OK;
	rest = str_dup(&x->a, rest);
	if (!rest.ptr || !arena_array_room(&x->a, &x->v, x->n, 1, &x->cap))
		return arena_fail(&x->a, "publish", err);
	x->v[x->n++] = rest;
	return ERR_OK;
}

struct remove_named {
	struct orphans *x;
	bool *is; /* by x->v */
};

static int remove_rest_cmp(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void remove_mark(struct remove_named *n, struct str rest)
{
	const struct str *at = n->x->n ?
		bsearch(&rest, n->x->v, n->x->n, sizeof(rest), remove_rest_cmp) :
		NULL;

	if (at)
		n->is[at - n->x->v] = true;
}

static bool remove_mark_key(
	void *ctx, const struct manifest_key *key, const struct manifest_file *f)
{
	struct remove_named *n = ctx;

	remove_mark(n, manifest_key_rest(key, n->x->p->o.shard));
	return true;
}

/* Those that nobody uses become candidates; the next round looks at them again. */
static enum err_code orphans_note_found(struct orphans *o, struct err *err)
{
	struct publisher *p = o->p;
	struct remove_named n = { o, arena_array(&o->a, bool, o->n + 1) };
	struct manifest m;
	char *copy;

	if (!n.is)
		return arena_fail(&o->a, "publish", err);
	if (o->n)
		qsort(o->v, o->n, sizeof(*o->v), remove_rest_cmp);
	mutex_lock(&p->lock);
	m = p->m;
	m.shard = p->o.shard;
	manifest_each_key(&m, remove_mark_key, &n);
	for (uint32_t i = 0; i < p->m.gone_n; i++)
		remove_mark(&n, p->m.gone[i].key);
	for (size_t i = 0; i < o->n; i++) {
		if (n.is[i] || remove_is_needed(p, o->v[i]) ||
			!array_room(&p->found, p->found_n, 1, &p->found_cap))
			continue;
		if (!(copy = strndup(o->v[i].ptr, o->v[i].len)))
			continue; /* the next list finds it */
		p->found[p->found_n++] = copy;
		p->counts.orphans++;
	}
	mutex_unlock(&p->lock);
	return ERR_OK;
}

static enum err_code remove_find_orphans(struct publisher *p, struct err *err)
{
	struct orphans x = { .p = p };
	int64_t now = clock_monotonic_ns();
	char prefix[MANIFEST_KEY_BYTES_MAX];
	enum err_code rc;

	if (now < p->orphans_at_ns || !remove_has_time(p))
		return ERR_OK;
	x.prefix = (size_t)snprintf(prefix, sizeof(prefix), "shards/%s/", p->shard);
	arena_init(&x.a, 0);
	rc = bucket_list(p->o.bucket, str_of(prefix), STR(""), STR(""), remove_on_object, &x, err);
	if (!rc)
		rc = orphans_note_found(&x, err);
	if (!rc)
		p->orphans_at_ns = now + p->o.orphans_every_ns;
	arena_release(&x.a);
	return rc;
}

enum err_code remove_all(struct publisher *p, struct err *err)
{
	enum err_code rc;

	/* Before the first comparison nobody knows what is needed. */
	if (!p->db || lease_generation(p->lease) == 0)
		return ERR_OK;
	if ((rc = remove_find_orphans(p, err)))
		return rc;
	return cluster_remove_gone(p, err);
}
