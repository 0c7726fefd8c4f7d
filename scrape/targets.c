#include "scrape/targets.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "scrape/target_make.h"

#define SET_BYTES_MAX ((size_t)1 << 30)
#define TARGETS_MAX (SET_BYTES_MAX / sizeof(struct target))

struct expansion {
	struct target_set *set;
	struct shard shard;
	struct target_make make;
	size_t cap; /* of set->v */
	size_t dropped_cap; /* of set->dropped */
	size_t errors, targets; /* targets: those with at least one profile that is kept */
};

/* ---- the set ---- */

static enum err_code set_add(struct expansion *x, const struct target *t, struct err *err)
{
	struct target_set *s = x->set;

	assert(t->profile && t->name.len && t->url.len && t->interval_ns > 0 && t->timeout_ns > 0);
	if (s->n >= TARGETS_MAX || !array_room(&s->v, s->n, 1, &x->cap))
		return err_nomem(err, "targets");
	s->v[s->n++] = *t;
	return ERR_OK;
}

/* Whether the labels of one more are kept. */
static bool keeps_dropped(const struct target_set *s, unsigned shard)
{
	size_t limit = s->job->keep_dropped_targets;

	if (limit)
		return s->dropped_n < limit;
	return shard == TARGET_NO_SHARD || s->elsewhere <= TARGETS_ELSEWHERE_SHOWN_MAX;
}

static enum err_code set_drop(
	struct expansion *x, const struct target_group *g, size_t i, unsigned shard, struct err *err)
{
	struct target_set *s = x->set;
	struct target_dropped d = { .shard = shard };
	enum err_code rc;

	s->dropped_total++;
	s->elsewhere += shard != TARGET_NO_SHARD;
	if (!keeps_dropped(s, shard))
		return ERR_OK;
	target_populate(&x->make, g->labels, g->targets[i], NULL);
	if ((rc = labels_builder_build(&x->make.b, &d.discovered, err)))
		return rc;
	if (!arena_array_room(&s->arena, &s->dropped, s->dropped_n, 1, &x->dropped_cap))
		return arena_fail(&s->arena, "targets", err);
	s->dropped[s->dropped_n++] = d;
	return ERR_OK;
}

/* Keeps the first error and counts the others. */
static void set_error(struct expansion *x, const char *text)
{
	if (x->errors++ == 0) {
		x->set->error = str_of(arena_printf(&x->set->arena, "%s", text));
		if (!x->set->error.ptr)
			x->set->error = STR("");
	}
}

struct target_count { /* profiles of one target */
	size_t kept, dropped, wrong;
	unsigned shard; /* of those that are another one's */
};

/*
 * Whether another shard scrapes it. Nothing is kept of such targets: of each server's targets there
 * are many times as many elsewhere.
 */
static enum err_code is_elsewhere(struct expansion *x, const struct target_group *g, size_t i,
	const struct profile_config *p, struct target_count *n, bool *out, struct err *err)
{
	const struct labels_builder *b = &x->make.b;
	enum err_code rc;
	unsigned shard;
	bool keep;

	*out = false;
	if (x->shard.total <= 1)
		return ERR_OK;
	target_populate(&x->make, g->labels, g->targets[i], p);
	if ((rc = relabel_apply(&x->set->job->relabel, &x->make.b, &keep, NULL, err)) || !keep)
		return rc;
	shard = shard_of(labels_builder_get(b, STR("job")),
		labels_builder_get(b, STR("__address__")), x->shard.total);
	if (shard == x->shard.ordinal)
		return ERR_OK;
	n->dropped++;
	n->shard = shard;
	*out = true;
	return ERR_OK;
}

static enum err_code expand_one(struct expansion *x, const struct target_group *g, size_t i,
	const struct profile_config *p, struct target_count *n, struct err *err)
{
	struct target_make *m = &x->make;
	struct target t = { .profile = p };
	enum err_code rc;
	bool keep, elsewhere;

	if ((rc = is_elsewhere(x, g, i, p, n, &elsewhere, err)) || elsewhere)
		return rc;
	target_populate(m, g->labels, g->targets[i], p);
	if ((rc = labels_builder_build(&m->b, &t.discovered, err)) ||
		(rc = relabel_apply(&x->set->job->relabel, &m->b, &keep, NULL, err)))
		return rc;
	if (!keep) {
		n->dropped++;
		return ERR_OK;
	}
	if ((rc = target_finish(m, &t, err))) {
		if (rc != ERR_INVALID)
			return rc;
		err_wrap(err, rc, "instance %zu in group " STR_FMT, i, STR_ARG(g->source));
		set_error(x, err->msg);
		n->wrong++;
		return ERR_OK;
	}
	n->kept++;
	return set_add(x, &t, err);
}

/* A target is dropped if all of its profiles are. */
static enum err_code expand_target(
	struct expansion *x, const struct target_group *g, size_t i, struct err *err)
{
	const struct scrape_config *job = x->set->job;
	struct target_count n = { .shard = TARGET_NO_SHARD };
	enum err_code rc;

	for (size_t p = 0; p < job->profiles_n; p++)
		if (job->profiles[p].enabled && (rc = expand_one(x, g, i, &job->profiles[p], &n, err)))
			return rc;
	x->targets += n.kept > 0;
	if (!n.dropped || n.kept || n.wrong)
		return ERR_OK;
	return set_drop(x, g, i, n.shard, err);
}

static enum err_code expand_groups(struct expansion *x, struct err *err)
{
	const struct target_group *g;
	enum err_code rc;

	for (size_t i = 0; i < x->set->groups->n; i++) {
		g = &x->set->groups->v[i];
		for (size_t k = 0; k < g->targets_n; k++)
			if ((rc = expand_target(x, g, k, err)))
				return rc;
	}
	return ERR_OK;
}

int target_cmp(const struct target *a, const struct target *b)
{
	int c = labels_cmp(a->labels, b->labels);

	return c ? c : str_cmp(a->url, b->url);
}

static int cmp(const void *a, const void *b)
{
	return target_cmp(a, b);
}

/*
 * Two targets with the same labels would write one series: the first by URL is scraped, and the
 * others are an error.
 */
static void deduplicate(struct expansion *x)
{
	struct target_set *s = x->set;
	struct buf b = { 0 };
	size_t n = 0;

	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), cmp);
	for (size_t i = 0; i < s->n; i++) {
		if (n == 0 || !labels_eq(s->v[n - 1].labels, s->v[i].labels)) {
			s->v[n++] = s->v[i];
			continue;
		}
		if (str_eq(s->v[n - 1].url, s->v[i].url))
			continue;
		buf_clear(&b);
		buf_printf(&b, STR_FMT " is not scraped: " STR_FMT " has the same labels ",
			STR_ARG(s->v[i].shown_url), STR_ARG(s->v[n - 1].shown_url));
		labels_print(&b, s->v[i].labels);
		buf_add_char(&b, '\0');
		set_error(x, buf_failed(&b) ? "duplicate labels" : b.ptr);
	}
	s->n = n;
	buf_release(&b);
}

static void finish_set(struct expansion *x)
{
	struct target_set *s = x->set;
	struct target *v = s->n ? realloc(s->v, s->n * sizeof(*v)) : NULL;
	const char *text;

	if (v)
		s->v = v; /* without spare room */
	if (s->job->target_limit && x->targets > s->job->target_limit) {
		s->limit_exceeded = true;
		text = arena_printf(&s->arena, "target_limit exceeded (number of targets: %zu, limit: %zu)",
			x->targets, (size_t)s->job->target_limit);
	} else if (x->errors > 1) {
		text = arena_printf(&s->arena, STR_FMT " (and %zu more)", STR_ARG(s->error), x->errors - 1);
	} else {
		return;
	}
	s->error = text ? str_of(text) : STR("out of memory");
}

enum err_code targets_expand(struct config *config, const struct scrape_config *job,
	struct shard shard, struct groups *groups, struct target_set **out, struct err *err)
{
	struct target_set *s = calloc(1, sizeof(*s));
	struct expansion x = { .set = s, .shard = shard };
	enum err_code rc;

	assert(job >= config->scrape && job < config->scrape + config->scrape_n);
	if (!s)
		return err_nomem(err, "targets");
	atomic_init(&s->refs, 1);
	arena_init(&s->arena, SET_BYTES_MAX);
	s->config = config_ref(config);
	s->groups = groups_ref(groups);
	s->job = job;
	s->error = STR("");
	target_make_init(&x.make, &s->arena, job);
	rc = expand_groups(&x, err);
	target_make_release(&x.make);
	if (rc) {
		target_set_unref(s);
		return rc;
	}
	deduplicate(&x);
	finish_set(&x);
	*out = s;
	return ERR_OK;
}

enum err_code target_set_of(
	const struct target_set *from, const struct target *t, struct target_set **out, struct err *err)
{
	struct target_set *s = calloc(1, sizeof(*s));
	struct target *own = calloc(1, sizeof(*own));

	if (!s || !own) {
		free(s);
		free(own);
		return err_nomem(err, "targets");
	}
	*own = *t;
	atomic_init(&s->refs, 1);
	arena_init(&s->arena, SET_BYTES_MAX);
	s->config = config_ref(from->config);
	s->job = from->job;
	s->error = STR("");
	s->v = own;
	s->n = 1;
	own->discovered = (struct labels){ 0 };
	own->labels = labels_dup(&s->arena, t->labels);
	own->name = labels_get(own->labels, STR(LABEL_NAME));
	own->url = str_dup(&s->arena, t->url);
	own->shown_url = str_dup(&s->arena, t->shown_url);
	own->exclusive = str_dup(&s->arena, t->exclusive);
	if (!own->labels.v || !own->url.ptr || !own->shown_url.ptr || !own->exclusive.ptr) {
		target_set_unref(s);
		return err_nomem(err, "targets");
	}
	*out = s;
	return ERR_OK;
}

struct target_set *target_set_ref(struct target_set *s)
{
	unsigned before = atomic_fetch_add(&s->refs, 1);

	assert(before > 0);
	return s;
}

void target_set_unref(struct target_set *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	config_unref(s->config);
	groups_unref(s->groups);
	free(s->v);
	arena_release(&s->arena);
	free(s);
}
