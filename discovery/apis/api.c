/*
 * A source. Its own rounds find the targets, or the keys; each key has rounds of its own. What all
 * of them found is published as one set, at first when each has ended once. A key whose round fails
 * keeps its last targets; while one fails the source counts as failing.
 */
#include "discovery/apis/api.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hidden.h"
#include "base/map.h"
#include "base/net/loop.h"
#include "discovery/apis/api_internal.h"

#define TEXT "discovery"

/* ---- publishing ---- */

static bool api_all_settled(const struct api_source *s)
{
	for (size_t i = 0; i < s->each_n; i++)
		if (!s->each[i]->settled)
			return false;
	return s->own->was_good;
}

static enum err_code api_publish(struct api_source *s, struct err *err)
{
	size_t n = s->api->each ? s->each_n : 1;
	struct groups **sets = calloc(n + 1, sizeof(*sets)), *all;
	enum err_code rc;

	if (!sets)
		return err_nomem(err, TEXT);
	sets[0] = s->own->set;
	for (size_t i = 0; s->api->each && i < n; i++)
		sets[i] = s->each[i]->set;
	if (!(rc = groups_join(sets, n, &all, err))) {
		source_publish(s->host, all);
		s->published = true;
	}
	free(sets);
	return rc;
}

/* ---- keys ---- */

static int api_by_key(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static size_t api_distinct(struct str *s, size_t n)
{
	size_t out = 0;

	if (n > 1)
		qsort(s, n, sizeof(*s), api_by_key);
	for (size_t i = 0; i < n; i++)
		if (!out || !str_eq(s[out - 1], s[i]))
			s[out++] = s[i];
	return out;
}

static void api_forget(struct api_source *s, struct api_round *r)
{
	s->failing -= r->settled && !r->good;
	api_round_free(r);
}

/* Rounds of the keys that are there now: old ones go on, new ones begin, others end. */
static enum err_code api_follow_keys(struct api_source *s, struct api_keys *k, struct err *err)
{
	size_t n = api_distinct(k->v, k->n), old = 0, made = 0;
	struct api_round **v = calloc(n + 1, sizeof(struct api_round *));
	struct api_round **fresh = calloc(n + 1, sizeof(struct api_round *));
	enum err_code rc = v && fresh ? ERR_OK : err_nomem(err, TEXT);

	for (size_t i = 0; i < n && !rc; i++) {
		while (old < s->each_n && str_cmp(s->each[old]->key, k->v[i]) < 0)
			old++;
		if (old < s->each_n && str_eq(s->each[old]->key, k->v[i]))
			v[i] = s->each[old];
		else if (!(rc = api_round_new(s, k->v[i], &v[i], err)))
			fresh[made++] = v[i];
	}
	if (rc) {
		while (made)
			api_round_free(fresh[--made]);
		free(v);
		free(fresh);
		return rc;
	}
	for (size_t i = 0, at = 0; i < s->each_n; i++) {
		while (at < n && str_cmp(v[at]->key, s->each[i]->key) < 0)
			at++;
		if (at == n || v[at] != s->each[i])
			api_forget(s, s->each[i]);
	}
	free(s->each);
	s->each = v;
	s->each_n = n;
	for (size_t i = 0; i < made; i++)
		timer_after(fresh[i]->timer, 0);
	free(fresh);
	return ERR_OK;
}

void api_key_add(struct api_keys *k, struct str key)
{
	if (k->n == API_KEYS_MAX || !arena_array_room(k->arena, &k->v, k->n, 1, &k->cap)) {
		k->failed = true;
		return;
	}
	key = str_dup(k->arena, key);
	if (key.len)
		k->v[k->n++] = key;
	k->failed |= !key.ptr;
}

/* ---- the end of a round ---- */

/* What the round found takes the place of what the one before found. */
static enum err_code api_keep(struct api_round *r, bool *changed, struct err *err)
{
	struct api_source *s = r->source;
	struct groups *set;
	enum err_code rc;

	*changed = false;
	if (!r->changed)
		return ERR_OK;
	if (r == s->own && s->api->each)
		return api_follow_keys(s, &r->keys, err);
	if ((rc = groups_join(r->pages, r->pages_n, &set, err)))
		return rc;
	*changed = !r->set || !groups_eq(r->set, set);
	groups_unref(r->set);
	r->set = set;
	return ERR_OK;
}

void api_source_ended(struct api_round *r, const struct err *why)
{
	struct api_source *s = r->source;
	bool first = !r->settled, failed = r->settled && !r->good, changed = false, told = false;
	struct err err;

	if (!why && api_keep(r, &changed, &err)) {
		why = &err;
		r->index = 0; /* else the next answer would count as unchanged */
	}
	r->settled = true;
	r->good = !why;
	r->was_good |= r->good;
	s->failing += (size_t)!r->good - (size_t)failed;
	if (why && why != &s->why)
		s->why = *why;
	/* The source's own rounds publish what they found before too: it says that all is well. */
	if (api_all_settled(s) && (first || changed || (r->good && (failed || r == s->own)))) {
		if (api_publish(s, &err))
			why = &err;
		else
			told = true;
	}
	/* A server that is down fails for thousands of keys: the first of them tells. */
	if (why && (r == s->own || s->failing == 1))
		source_failed(s->host, why);
	else if (told && s->failing)
		source_failed(s->host, &s->why);
}

/* ---- opening and closing ---- */

void api_source_close(void *provider)
{
	struct api_source *s = provider;

	if (!s)
		return;
	for (size_t i = 0; i < s->each_n; i++)
		api_round_free(s->each[i]);
	free(s->each);
	api_round_free(s->own);
	aws_close(s->aws);
	for (size_t i = 0; i < API_LISTS_MAX; i++)
		json_decref(s->answers[i]);
	arena_release(&s->arena);
	free(s);
}

static enum err_code api_copy_config(struct api_source *s, const void *config, struct err *err)
{
	const struct api_config *from = config;
	struct api_config *c = arena_alloc(&s->arena, s->api->schema->size);
	enum err_code rc;

	if (!c)
		return arena_fail(&s->arena, TEXT, err);
	if ((rc = yaml_dup(&s->arena, s->api->schema, config, c, err)) ||
		(rc = http_config_dup(&s->arena, &from->http, &c->http, err)))
		return rc;
	s->config = c;
	s->common = c;
	return ERR_OK;
}

static enum err_code api_init(struct api_source *s, const void *config, struct err *err)
{
	const struct api *api = s->api;
	struct aws_config aws = { 0 };
	enum err_code rc;

	if ((rc = api_copy_config(s, config, err)) ||
		(rc = api->locate(s->config, &s->arena, &s->server, err)))
		return rc;
	if (s->server.unix_path.len)
		s->shown = str_of(arena_printf(&s->arena, "unix://" STR_FMT, STR_ARG(s->server.unix_path)));
	else
		s->shown = str_dup(&s->arena,
			s->server.url.len ? hidden_url(&s->arena, s->server.url) : str_of(api->kind));
	if (!s->shown.ptr)
		return arena_fail(&s->arena, TEXT, err);
	if (api->aws) {
		api->aws(s->config, &aws);
		if ((rc = aws_open(s->client, &aws, &s->aws, err)))
			return rc;
	}
	if ((rc = api_round_new(s, (struct str){ NULL, 0 }, &s->own, err)))
		return rc;
	api_round_begin(s->own);
	/* Sources that open together begin together; their later rounds are spread. */
	s->own->due_ns -= (int64_t)(hash_bytes(s->shown.ptr, s->shown.len, (uint64_t)s->own->due_ns) %
		(uint64_t)(s->common->refresh_interval_ns / 2));
	return ERR_OK;
}

enum err_code api_source_open(const struct source_env *env, const void *config,
	struct sd_source *host, void **out, struct err *err)
{
	const struct api_config *c = config;
	struct api_source *s = calloc(1, sizeof(*s));
	enum err_code rc;

	assert(c->api->lists_n <= API_LISTS_MAX && c->api->roots && (c->api->keys || !c->api->each));
	if (!s)
		return err_nomem(err, TEXT);
	arena_init(&s->arena, 0);
	s->api = c->api;
	s->host = host;
	s->base = env->base;
	s->client = env->client;
	s->seats = env->shared;
	if ((rc = api_init(s, config, err))) {
		api_source_close(s);
		return rc;
	}
	*out = s;
	return ERR_OK;
}

enum err_code api_open_shared(const struct source_env *env, void **out, struct err *err)
{
	struct api_seats *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err, TEXT);
	TAILQ_INIT(&s->waiting);
	*out = s;
	return ERR_OK;
}

void api_close_shared(void *shared)
{
	struct api_seats *s = shared;

	assert(TAILQ_EMPTY(&s->waiting) && !s->blocking && !s->plain);
	free(s);
}
