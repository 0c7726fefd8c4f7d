#include "tsdb/cluster/keys.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"

/* ---- what a manifest names ---- */

struct cluster_keys_collecting {
	struct arena *a;
	struct str shard;
	struct key_set *out;
	bool failed;
};

static bool cluster_keys_add_key(
	void *ctx, const struct manifest_key *key, const struct manifest_file *f)
{
	struct cluster_keys_collecting *c = ctx;
	struct str rest = str_dup(c->a, manifest_key_rest(key, c->shard));

	if (!rest.ptr || !arena_array_room(c->a, &c->out->v, c->out->n, 1, &c->out->cap)) {
		c->failed = true;
		return false;
	}
	c->out->v[c->out->n++] = rest;
	return true;
}

static int cluster_keys_cmp(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

enum err_code key_set_named(const struct manifest *m, struct str shard, struct arena *a,
	struct key_set *out, struct err *err)
{
	struct cluster_keys_collecting c = { a, shard, out, false };
	struct manifest with = *m;

	with.shard = shard;
	*out = (struct key_set){ 0 };
	manifest_each_key(&with, cluster_keys_add_key, &c);
	if (c.failed)
		return arena_fail(a, "manifest", err);
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), cluster_keys_cmp);
	return ERR_OK;
}

bool key_set_has(const struct key_set *k, struct str rest)
{
	return k->n && bsearch(&rest, k->v, k->n, sizeof(*k->v), cluster_keys_cmp);
}

/* ---- what is there ---- */

struct cluster_keys_listing {
	struct arena *a;
	size_t prefix; /* bytes */
	struct shard_object *v;
	size_t n, cap;
};

static enum err_code cluster_keys_on_object(
	void *ctx, const struct bucket_object *o, struct err *err)
{
	struct cluster_keys_listing *l = ctx;
	struct str rest = o->key;

	if (o->is_prefix || rest.len <= l->prefix || rest.len - l->prefix >= BUCKET_KEY_BYTES_MAX)
		return ERR_OK;
	rest.ptr += l->prefix;
	rest.len -= l->prefix;
	rest = str_dup(l->a, rest);
	if (!rest.ptr || !arena_array_room(l->a, &l->v, l->n, 1, &l->cap))
		return arena_fail(l->a, "list", err);
	l->v[l->n++] = (struct shard_object){ rest, o->info.bytes, o->info.modified_ns };
	return ERR_OK;
}

static int cluster_keys_object_cmp(const void *a, const void *b)
{
	const struct shard_object *x = a, *y = b;

	return str_cmp(x->rest, y->rest);
}

enum err_code shard_list_objects(struct bucket *b, struct str shard, struct arena *a,
	struct shard_object **out, size_t *n, struct err *err)
{
	char prefix[MANIFEST_KEY_BYTES_MAX];
	struct cluster_keys_listing l = { .a = a };
	enum err_code rc;

	l.prefix = (size_t)snprintf(prefix, sizeof(prefix), "shards/" STR_FMT "/", STR_ARG(shard));
	if ((rc = bucket_list(b, str_of(prefix), STR(""), STR(""), cluster_keys_on_object, &l, err)))
		return rc;
	if (l.n)
		qsort(l.v, l.n, sizeof(*l.v), cluster_keys_object_cmp);
	*out = l.v;
	*n = l.n;
	return ERR_OK;
}

const struct shard_object *shard_find_object(
	const struct shard_object *s, size_t n, struct str rest)
{
	struct shard_object key = { .rest = rest };

	return n ? bsearch(&key, s, n, sizeof(*s), cluster_keys_object_cmp) : NULL;
}

/* ---- shards ---- */

struct cluster_keys_names {
	struct arena *a;
	struct str *v;
	size_t n, cap;
};

static enum err_code cluster_keys_on_shard(
	void *ctx, const struct bucket_object *o, struct err *err)
{
	struct str name = o->key, before = STR("shards/");
	struct cluster_keys_names *l = ctx;

	if (!o->is_prefix || !str_has_prefix(name, before) || name.len <= before.len + 1)
		return ERR_OK;
	name.ptr += before.len;
	name.len -= before.len + 1; /* the slash behind it */
	if (manifest_check_shard(name, NULL))
		return ERR_OK;
	name = str_dup(l->a, name);
	if (!name.ptr || !arena_array_room(l->a, &l->v, l->n, 1, &l->cap))
		return arena_fail(l->a, "list", err);
	l->v[l->n++] = name;
	return ERR_OK;
}

enum err_code shard_list_names(
	struct bucket *b, struct arena *a, struct str **out, size_t *n, struct err *err)
{
	struct cluster_keys_names l = { .a = a };
	enum err_code rc;

	if ((rc = bucket_list(b, STR("shards/"), STR("/"), STR(""), cluster_keys_on_shard, &l, err)))
		return rc;
	*out = l.v;
	*n = l.n;
	return ERR_OK;
}
