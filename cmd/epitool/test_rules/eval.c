#include "cmd/epitool/test_rules/eval.h"

#include <stdlib.h>

#include "cmd/epitool/test_rules/print.h"
#include "cmd/epitool/test_rules/world.h"
#include "promql/rules/manager.h"

struct test_eval {
	struct rule_manager *manager;
	struct rule_set *set;
	size_t *order; /* of evaluation: indexes of the set's groups */
};

static size_t test_rank_of(const struct test_file *f, const struct rule_group *g)
{
	for (size_t i = 0; i < f->order_n; i++)
		if (str_eq(f->order[i], g->name))
			return i;
	return 0;
}

/* Stable, so that groups of one rank stay as their files have them. */
static void test_eval_sort_groups(struct test_eval *e, const struct test_file *f)
{
	for (size_t i = 0; i < e->set->groups_n; i++) {
		size_t rank = test_rank_of(f, &e->set->groups[i]), at = i;

		for (; at > 0 && test_rank_of(f, &e->set->groups[e->order[at - 1]]) > rank; at--)
			e->order[at] = e->order[at - 1];
		e->order[at] = i;
	}
}

enum err_code test_eval_open(const struct test_file *f, const struct test_group *g,
	struct rule_set *set, struct test_world *w, struct test_eval **out, struct err *err)
{
	struct rule_manager_options o = { .engine = test_world_engine(w),
		.db = test_world_db(w),
		.external_url = g->external_url.len ? g->external_url.ptr : "",
		.manual = true };
	struct test_eval *e = calloc(1, sizeof(*e));
	enum err_code rc;

	if (!e)
		return err_nomem(err, "test");
	e->set = set;
	if (!(e->order = calloc(set->groups_n + 1, sizeof(*e->order)))) {
		rc = err_nomem(err, "test");
		goto fail;
	}
	test_eval_sort_groups(e, f);
	if ((rc = rule_manager_open(&o, &e->manager, err)) ||
		(rc = rule_manager_apply(e->manager, set, g->external_labels, err)))
		goto fail;
	*out = e;
	return ERR_OK;
fail:
	test_eval_close(e);
	return rc;
}

void test_eval_close(struct test_eval *e)
{
	if (!e)
		return;
	rule_manager_close(e->manager);
	free(e->order);
	free(e);
}

static void test_print_faults(struct buf *out, const struct group_info *g, int64_t t_ns)
{
	for (size_t i = 0; i < g->rules_n; i++) {
		const struct rule_info *r = &g->rules[i];

		if (r->health != RULE_ERR)
			continue;
		buf_printf(out, "    rule: " STR_FMT ", time: ", STR_ARG(r->rule->name));
		test_print_span(out, t_ns);
		buf_printf(out, ", err: " STR_FMT "\n", STR_ARG(r->last_error));
	}
}

enum err_code test_eval_at(struct test_eval *e, int64_t t_ns, struct buf *faults, struct err *err)
{
	struct rules_snapshot s;
	struct arena a;
	enum err_code rc;

	for (size_t i = 0; i < e->set->groups_n; i++)
		rule_manager_turn(e->manager, e->order[i], t_ns);
	arena_init(&a, 0);
	if (!(rc = rule_manager_snapshot(e->manager, &a, &s, err))) {
		for (size_t i = 0; i < s.groups_n; i++)
			test_print_faults(faults, &s.groups[e->order[i]], t_ns);
		rules_snapshot_release(&s);
	}
	arena_release(&a);
	if (!rc && faults->len)
		rc = err_set(err, ERR_INVALID, "rules failed");
	return rc;
}

static enum err_code test_add_firing(
	struct arena *a, const struct rule_info *r, struct test_alert *t, size_t *n, struct err *err)
{
	for (size_t i = 0; i < r->alerts_n; i++) {
		const struct alert_info *from = &r->alerts[i];

		if (from->phase != ALERT_FIRING)
			continue;
		t[*n].labels = labels_dup(a, from->labels);
		t[*n].annotations = labels_dup(a, from->annotations);
		if (!t[*n].labels.v || (from->annotations.n && !t[*n].annotations.v))
			return arena_fail(a, "alerts", err);
		(*n)++;
	}
	return ERR_OK;
}

enum err_code test_eval_firing(struct test_eval *e, struct arena *a, struct str name,
	struct test_alert **out, size_t *n, struct err *err)
{
	struct rules_snapshot s;
	struct arena scratch;
	size_t room = 0;
	enum err_code rc;

	*n = 0;
	arena_init(&scratch, 0);
	if ((rc = rule_manager_snapshot(e->manager, &scratch, &s, err)))
		goto out;
	for (size_t i = 0; i < s.groups_n; i++)
		for (size_t k = 0; k < s.groups[i].rules_n; k++)
			room += s.groups[i].rules[k].alerts_n;
	if (!(*out = arena_array(a, struct test_alert, room + 1)))
		rc = arena_fail(a, "alerts", err);
	for (size_t i = 0; i < s.groups_n && !rc; i++)
		for (size_t k = 0; k < s.groups[i].rules_n && !rc; k++) {
			const struct rule_info *r = &s.groups[i].rules[k];

			if (r->rule->kind == RULE_ALERT && str_eq(r->rule->name, name))
				rc = test_add_firing(a, r, *out, n, err);
		}
	rules_snapshot_release(&s);
out:
	arena_release(&scratch);
	return rc;
}
