#include "scrape/targets/targets_explain.h"

#include "base/clock.h"
#include "base/map.h"
#include "scrape/targets/target_make.h"

struct targets_explain_walk {
	struct arena *arena;
	struct explanation *out;
};

static enum err_code targets_explain_on_step(
	void *ctx, size_t rule, const struct labels_builder *b, bool keep, struct err *err)
{
	struct targets_explain_walk *w = ctx;
	struct explained_step *s = &w->out->steps[rule];
	struct labels_builder now;
	enum err_code rc;

	s->keep = keep;
	if (!keep)
		return ERR_OK;
	labels_builder_init(&now, w->arena, (struct labels){ b->v, b->n });
	if ((rc = labels_builder_build(&now, &s->output, err)))
		return rc;
	return ERR_OK;
}

static enum err_code explain_steps(const struct scrape_config *job, struct labels discovered,
	struct arena *a, struct explanation *out, struct err *err)
{
	struct targets_explain_walk w = { a, out };
	struct labels_builder b;
	bool keep;

	out->steps_n = job->relabel.n;
	out->steps = arena_array(a, struct explained_step, out->steps_n);
	if (!out->steps)
		return arena_fail(a, "relabelling", err);
	for (size_t i = 0; i < out->steps_n; i++)
		out->steps[i] = (struct explained_step){ .rule = &job->relabel.v[i] };
	labels_builder_init(&b, a, discovered);
	return relabel_walk(&job->relabel, &b, targets_explain_on_step, &w, &keep, NULL, err);
}

/*
 * The discovered labels of a target hold its default `seconds`. They are computed again, so that
 * they follow a rule that changes the interval.
 */
static bool targets_explain_is_auto_seconds(const struct scrape_config *job,
	const struct profile_config *p, struct labels discovered, const struct label *l)
{
	int64_t interval = profile_interval_ns(job, p), seconds;

	if (!p->delta || p->seconds || !str_is(l->name, "__param_seconds") ||
		!str_to_i64(l->value, &seconds))
		return false;
	if (labels_has(discovered, STR("__scrape_interval__")) &&
			duration_parse(labels_get(discovered, STR("__scrape_interval__")), &interval, NULL))
		return false;
	return seconds == target_auto_seconds(interval);
}

static enum err_code explain_profile(struct target_make *m, struct shard shard,
	const struct profile_config *p, struct labels discovered, struct explained_profile *out,
	struct err *err)
{
	struct labels_builder given;
	struct target t = { .profile = p };
	struct shard_reason why;
	struct labels labels;
	enum err_code rc;
	uint64_t key;
	bool keep;

	*out = (struct explained_profile){ .profile = p->name, .end = EXPLAINED_DROPPED };
	labels_builder_init(&given, m->arena, discovered);
	for (size_t i = 0; i < discovered.n; i++)
		if (targets_explain_is_auto_seconds(m->job, p, discovered, &discovered.v[i]))
			labels_builder_del(&given, discovered.v[i].name);
	if ((rc = labels_builder_build(&given, &labels, err)))
		return rc;
	target_populate(m, (struct labels){ 0 }, labels, p);
	if ((rc = relabel_apply(&m->job->relabel, &m->b, &keep, &out->dropped_by, err)) || !keep)
		return rc;
	key = shard_key(
		labels_builder_get(&m->b, STR("job")), labels_builder_get(&m->b, STR("__address__")));
	if (shard_whose(&shard, key, &why) != SHARD_OWN) {
		out->end = EXPLAINED_ELSEWHERE;
		out->shard = shard.rule ? -1 : (int)hash_owner(key, shard.total);
		out->reason = str_dup(m->arena, str_of(why.text));
		return out->reason.ptr ? ERR_OK : arena_fail(m->arena, "relabelling", err);
	}
	rc = target_finish(m, &t, err);
	if (rc == ERR_INVALID) {
		out->end = EXPLAINED_REFUSED;
		out->error = str_dup(m->arena, str_of(err->msg));
		return out->error.ptr ? ERR_OK : arena_fail(m->arena, "relabelling", err);
	}
	out->end = EXPLAINED_SCRAPED;
	out->labels = t.labels;
	out->url = t.shown_url;
	out->unix_path = target_unix_path(&t);
	return rc;
}

static bool targets_explain_is_asked_for(
	const struct scrape_config *job, const struct profile_config *p, struct str name)
{
	if (!p->enabled)
		return false;
	for (size_t i = 0; i < job->profiles_n; i++)
		if (job->profiles[i].enabled && str_eq(job->profiles[i].name, name))
			return str_eq(p->name, name);
	return true;
}

enum err_code targets_explain(const struct scrape_config *job, struct shard shard,
	struct labels discovered, struct arena *a, struct explanation *out, struct err *err)
{
	struct str name = labels_get(discovered, STR(LABEL_NAME));
	struct target_texts texts = { .arena = a };
	struct target_make m;
	enum err_code rc;

	*out = (struct explanation){ 0 };
	if ((rc = explain_steps(job, discovered, a, out, err)))
		return rc;
	out->profiles = arena_array(a, struct explained_profile, job->profiles_n);
	if (!out->profiles)
		return arena_fail(a, "relabelling", err);
	target_make_init(&m, a, &texts, job);
	for (size_t i = 0; i < job->profiles_n && !rc; i++)
		if (targets_explain_is_asked_for(job, &job->profiles[i], name))
			rc = explain_profile(
				&m, shard, &job->profiles[i], discovered, &out->profiles[out->profiles_n++], err);
	target_make_release(&m);
	return rc;
}
