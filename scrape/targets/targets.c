/*
 * A set after a change is made from the one before it: what belongs to groups that are the same
 * objects stays in the tree, and so do chunks of the list without a change. So a change of one pod
 * among 10,000 expands one pod, makes the chunks anew that its targets are in, and copies two short
 * arrays of pointers.
 */
#include "scrape/targets/targets.h"

#include <assert.h>
#include <stdlib.h>

/* ---- what is wrong ---- */

static void target_set_error(struct target_set *s, struct buf *text)
{
	free(s->error);
	s->error = buf_failed(text) ? NULL : strndup(text->ptr, text->len);
	if (!s->error)
		s->error = strdup("out of memory");
	buf_release(text);
}

static void targets_print_url(struct buf *out, const struct target *t)
{
	buf_add_str(out, t->shown_url);
	if (t->unix_path)
		buf_printf(out, " through %s", t->unix_path);
}

/* The first error of a target, or else the first two with the same labels; and how many more. */
static void target_set_find_error(struct target_set *s)
{
	const struct target_part *wrong = s->tree->wrong;
	const struct target_chunk *first = NULL;
	size_t errors = s->tree->sum.errors;
	struct buf b = { 0 };

	for (size_t i = 0; i < s->list.n; i++) {
		errors += s->list.v[i].chunk->doubles;
		if (!first && s->list.v[i].chunk->doubles)
			first = s->list.v[i].chunk;
	}
	if (!errors)
		return;
	if (wrong) {
		buf_add_str(&b, wrong->error);
	} else if (first) {
		targets_print_url(&b, first->not_kept);
		buf_add_cstr(&b, " is not scraped: ");
		targets_print_url(&b, first->kept);
		buf_add_cstr(&b, " has the same labels ");
		labels_print(&b, first->not_kept->labels);
	}
	if (errors > 1)
		buf_printf(&b, " (and %zu more)", errors - 1);
	target_set_error(s, &b);
}

static void targets_refuse(void *ctx, struct target_part *p)
{
	const struct target_set *s = ctx;

	p->refused = str_dup(&p->arena, str_of(s->error));
	if (!p->refused.ptr)
		p->refused = STR("target_limit exceeded");
}

/* All parts are new. */
static void target_set_refuse_all(struct target_set *s)
{
	struct buf b = { 0 };

	s->limit_exceeded = true;
	buf_printf(&b, "target_limit exceeded (number of targets: %zu, limit: %zu)",
		(size_t)s->tree->sum.targets, (size_t)s->job->target_limit);
	target_set_error(s, &b);
	target_node_each_part(s->tree, targets_refuse, s);
}

/* ---- the set ---- */

static enum err_code targets_set_new(struct config *config, const struct scrape_config *job,
	struct target_shared *shared, struct target_set **out, struct err *err)
{
	static atomic_uint_fast64_t numbers;
	struct target_set *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err, "targets");
	atomic_init(&s->refs, 1);
	s->number = atomic_fetch_add(&numbers, 1) + 1;
	s->config = config_ref(config);
	s->job = job;
	s->shared = shared && !target_shared_is_full(shared) ? target_shared_ref(shared) :
														   target_shared_new();
	if (!s->shared) {
		target_set_unref(s);
		return err_nomem(err, "targets");
	}
	*out = s;
	return ERR_OK;
}

static enum err_code target_set_fill(struct target_set *s, struct shard shard,
	struct groups *groups, const struct target_set *before, struct err *err)
{
	static const struct target_list none;
	size_t limit = s->job->keep_dropped_targets;
	struct target_part_options o = {
		.config = s->config,
		.job = s->job,
		.shard = shard,
		.shared = s->shared,
		.dropped_max = limit ? limit : SIZE_MAX,
		.elsewhere_max = limit ? SIZE_MAX : TARGETS_ELSEWHERE_SHOWN_MAX,
	};
	struct target_tree t;
	enum err_code rc;

	if ((rc = target_tree_follow(&o, s->number, groups, before ? before->tree : NULL, &t, err)))
		return rc;
	s->tree = t.root;
	rc = target_list_follow(
		before ? &before->list : &none, t.gone, t.gone_n, t.fresh, t.fresh_n, &s->list, err);
	target_tree_release(&t);
	if (rc)
		return rc;
	for (size_t i = 0; i < s->list.n; i++)
		s->n += s->list.v[i].chunk->n;
	s->dropped_n = s->tree->dropped_kept;
	s->dropped_total = s->tree->sum.dropped;
	s->elsewhere = s->tree->sum.elsewhere;
	s->waiting = s->tree->sum.waiting;
	target_set_find_error(s);
	return ERR_OK;
}

/* Parts that were refused, or are to be, are not taken over: what they say of it cannot change. */
enum err_code targets_expand(struct config *config, const struct scrape_config *job,
	struct shard shard, struct groups *groups, const struct target_set *before,
	struct target_set **out, struct err *err)
{
	struct target_shared *shared = before ? before->shared : NULL;
	struct target_set *s = NULL;
	enum err_code rc;

	assert(job >= config->scrape && job < config->scrape + config->scrape_n);
	if (before && (before->job != job || before->limit_exceeded))
		before = NULL;
	if ((rc = targets_set_new(config, job, shared, &s, err)))
		return rc;
	if ((rc = target_set_fill(s, shard, groups, before, err))) {
		target_set_unref(s);
		return rc;
	}
	if (job->target_limit && s->tree->sum.targets > job->target_limit) {
		if (before) {
			target_set_unref(s);
			return targets_expand(config, job, shard, groups, NULL, out, err);
		}
		target_set_refuse_all(s);
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
	target_list_release(&s->list);
	target_node_unref(s->tree);
	target_shared_unref(s->shared);
	config_unref(s->config);
	free(s->error);
	free(s);
}

const struct target *target_set_at(const struct target_set *s, size_t i)
{
	size_t k = 0;

	assert(i < s->n);
	for (; i >= s->list.v[k].chunk->n; k++)
		i -= s->list.v[k].chunk->n;
	return s->list.v[k].chunk->v[i];
}
