#include "scrape/targets/target_part.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "scrape/targets/target_make.h"

#define PART_BYTES_MAX ((size_t)1 << 30)
#define TARGETS_MAX (PART_BYTES_MAX / sizeof(struct target))
#define SHARED_BYTES_MAX ((size_t)64 << 10)

struct target_shared {
	atomic_uint refs;
	struct arena arena;
	struct target_texts texts;
};

struct expansion {
	const struct target_part_options *o;
	struct target_part *part;
	struct target_piece piece;
	struct target_make make;
	size_t cap; /* of part->v */
	size_t dropped_cap; /* of part->dropped */
	size_t elsewhere_n; /* in part->dropped */
};

/* ---- the part ---- */

static enum err_code expansion_add(struct expansion *e, const struct target *t, struct err *err)
{
	struct target_part *p = e->part;

	assert(t->profile && t->name.len && t->url.len && t->interval_ns > 0 && t->timeout_ns > 0);
	if (p->n >= TARGETS_MAX || !array_room(&p->v, p->n, 1, &e->cap))
		return err_nomem(err, "targets");
	p->v[p->n] = *t;
	p->v[p->n++].part = p;
	return ERR_OK;
}

struct target_count { /* profiles of one target */
	size_t kept, dropped, wrong;
	enum shard_whose whose; /* not ours: of one that another shard has, with its key */
	uint64_t key;
};

static enum err_code expansion_drop(struct expansion *e, const struct target_group *g, size_t i,
	const struct target_count *n, struct err *err)
{
	struct target_part *p = e->part;
	bool elsewhere = n->whose != SHARD_OWN;
	struct target_dropped d = { .reason = STR("") };
	struct shard_reason why;
	enum err_code rc;

	e->piece.dropped++;
	e->piece.elsewhere += elsewhere;
	e->piece.waiting += n->whose == SHARD_WAITS;
	if (p->dropped_n >= e->o->dropped_max || (elsewhere && e->elsewhere_n >= e->o->elsewhere_max))
		return ERR_OK;
	e->elsewhere_n += elsewhere;
	target_populate(&e->make, g->labels, g->targets[i], NULL);
	if ((rc = labels_builder_build(&e->make.b, &d.discovered, err)))
		return rc;
	if (elsewhere) {
		shard_whose(&e->o->shard, n->key, &why);
		d.reason = str_dup(&p->arena, str_of(why.text));
	}
	if (!d.reason.ptr ||
		!arena_array_room(&p->arena, &p->dropped, p->dropped_n, 1, &e->dropped_cap))
		return arena_fail(&p->arena, "targets", err);
	p->dropped[p->dropped_n++] = d;
	return ERR_OK;
}

/* Keeps the first error and counts the others. */
static void expansion_set_error(struct expansion *e, const char *text)
{
	if (e->piece.errors++ == 0) {
		e->part->error = str_of(arena_printf(&e->part->arena, "%s", text));
		if (!e->part->error.ptr)
			e->part->error = STR("");
	}
}

/*
 * Whether another shard scrapes it. Nothing is kept of such targets: of each server's targets there
 * are many times as many elsewhere.
 */
static enum err_code expansion_is_elsewhere(struct expansion *e, const struct target_group *g,
	size_t i, const struct profile_config *p, struct target_count *n, bool *out, struct err *err)
{
	const struct labels_builder *b = &e->make.b;
	enum shard_whose whose;
	enum err_code rc;
	uint64_t key;
	bool keep;

	*out = false;
	if (shard_has_all(&e->o->shard))
		return ERR_OK;
	target_populate(&e->make, g->labels, g->targets[i], p);
	if ((rc = relabel_apply(&e->o->job->relabel, &e->make.b, &keep, NULL, err)) || !keep)
		return rc;
	key = shard_key(labels_builder_get(b, STR("job")), labels_builder_get(b, STR("__address__")));
	if ((whose = shard_whose(&e->o->shard, key, NULL)) == SHARD_OWN)
		return ERR_OK;
	n->dropped++;
	n->whose = whose;
	n->key = key;
	*out = true;
	return ERR_OK;
}

static enum err_code expansion_expand_one(struct expansion *e, const struct target_group *g,
	size_t i, const struct profile_config *p, struct target_count *n, struct err *err)
{
	struct target_make *m = &e->make;
	struct target t = { .profile = p };
	enum err_code rc;
	bool keep, elsewhere;

	if ((rc = expansion_is_elsewhere(e, g, i, p, n, &elsewhere, err)) || elsewhere)
		return rc;
	target_populate(m, g->labels, g->targets[i], p);
	if ((rc = labels_builder_build(&m->b, &t.discovered, err)) ||
		(rc = relabel_apply(&e->o->job->relabel, &m->b, &keep, NULL, err)))
		return rc;
	if (!keep) {
		n->dropped++;
		return ERR_OK;
	}
	t.shard_key = shard_key(
		labels_builder_get(&m->b, STR("job")), labels_builder_get(&m->b, STR("__address__")));
	if ((rc = target_finish(m, &t, err))) {
		if (rc != ERR_INVALID)
			return rc;
		err_wrap(err, rc, "instance %zu in group " STR_FMT, i, STR_ARG(g->source));
		expansion_set_error(e, err->msg);
		n->wrong++;
		return ERR_OK;
	}
	n->kept++;
	return expansion_add(e, &t, err);
}

/* A target is dropped if all of its profiles are. */
static enum err_code expansion_expand_target(
	struct expansion *e, const struct target_group *g, size_t i, struct err *err)
{
	const struct scrape_config *job = e->o->job;
	struct target_count n = { .whose = SHARD_OWN };
	enum err_code rc;

	for (size_t p = 0; p < job->profiles_n; p++)
		if (job->profiles[p].enabled &&
			(rc = expansion_expand_one(e, g, i, &job->profiles[p], &n, err)))
			return rc;
	e->piece.targets += n.kept > 0;
	if (!n.dropped || n.kept || n.wrong)
		return ERR_OK;
	return expansion_drop(e, g, i, &n, err);
}

static enum err_code expansion_expand(
	struct expansion *e, const struct groups *groups, struct err *err)
{
	enum err_code rc;

	for (size_t i = 0; i < groups->n; i++)
		for (size_t k = 0; k < groups->v[i].targets_n; k++)
			if ((rc = expansion_expand_target(e, &groups->v[i], k, err)))
				return rc;
	return ERR_OK;
}

static struct target_part *part_new(struct config *config, const struct scrape_config *job)
{
	struct target_part *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	atomic_init(&p->refs, 1);
	arena_init(&p->arena, PART_BYTES_MAX);
	p->config = config_ref(config);
	p->job = job;
	p->error = p->refused = STR("");
	return p;
}

enum err_code target_part_make(const struct target_part_options *o, struct groups *groups,
	struct target_piece *out, struct err *err)
{
	struct expansion x = { .o = o };
	struct target_part *p = part_new(o->config, o->job);
	struct target *v;
	enum err_code rc;

	if (!p)
		return err_nomem(err, "targets");
	p->groups = groups_ref(groups);
	p->shared = target_shared_ref(o->shared);
	x.part = p;
	target_make_init(&x.make, &p->arena, &o->shared->texts, o->job);
	rc = expansion_expand(&x, groups, err);
	target_make_release(&x.make);
	*out = x.piece;
	if (!rc && (p->n || p->dropped_n || p->error.len)) {
		if (p->n && (v = realloc(p->v, p->n * sizeof(*v))))
			p->v = v; /* without spare room */
		out->part = p;
		return ERR_OK;
	}
	target_part_unref(p);
	return rc;
}

enum err_code target_part_of(const struct target *t, struct target_part **out, struct err *err)
{
	struct target_part *p = part_new(t->part->config, t->part->job);
	struct target *own = calloc(1, sizeof(*own));

	if (!p || !own) {
		free(own);
		target_part_unref(p);
		return err_nomem(err, "targets");
	}
	*own = *t;
	p->v = own;
	p->n = 1;
	own->part = p;
	own->discovered = (struct labels){ 0 };
	own->labels = labels_dup(&p->arena, t->labels);
	own->name = labels_get(own->labels, STR(LABEL_NAME));
	own->url = str_dup(&p->arena, t->url);
	own->shown_url = str_dup(&p->arena, t->shown_url);
	own->exclusive = str_dup(&p->arena, t->exclusive);
	if (t->unix_path)
		own->unix_path = str_dup(&p->arena, target_unix_path(t)).ptr;
	if (!own->labels.v || !own->url.ptr || !own->shown_url.ptr || !own->exclusive.ptr ||
		(t->unix_path && !own->unix_path)) {
		target_part_unref(p);
		return err_nomem(err, "targets");
	}
	*out = p;
	return ERR_OK;
}

struct str target_unix_path(const struct target *t)
{
	return str_of(t->unix_path ? t->unix_path : "");
}

const struct target *target_ref(const struct target *t)
{
	target_part_ref(t->part);
	return t;
}

void target_unref(const struct target *t)
{
	if (t)
		target_part_unref(t->part);
}

struct target_part *target_part_ref(struct target_part *p)
{
	unsigned before = atomic_fetch_add(&p->refs, 1);

	assert(before > 0);
	return p;
}

void target_part_unref(struct target_part *p)
{
	if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
		return;
	config_unref(p->config);
	groups_unref(p->groups);
	target_shared_unref(p->shared);
	free(p->v);
	arena_release(&p->arena);
	free(p);
}

/* ---- what parts share ---- */

struct target_shared *target_shared_new(void)
{
	struct target_shared *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	atomic_init(&s->refs, 1);
	arena_init(&s->arena, PART_BYTES_MAX);
	s->texts.arena = &s->arena;
	return s;
}

struct target_shared *target_shared_ref(struct target_shared *s)
{
	unsigned before = atomic_fetch_add(&s->refs, 1);

	assert(before > 0);
	return s;
}

void target_shared_unref(struct target_shared *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	arena_release(&s->arena);
	free(s);
}

bool target_shared_is_full(const struct target_shared *s)
{
	return s->arena.used_bytes > SHARED_BYTES_MAX;
}
