/*
 * The manager: whose turn it is, and what a reload keeps.
 *
 * A worker takes the group that has been due longest, or sleeps until one is due. There is no
 * queue: groups that run are skipped.
 */
#include "promql/rules/manager_internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"

#define SLEEP_MAX_NS NS_PER_S /* the wall clock may be set */
#define MAY_EVERY_NS (200 * NS_PER_MS)

METRIC_COUNTER(missed, "epimetheus_rule_group_iterations_missed_total",
	"Turns of groups that were skipped, because the one before took too long.", "rule_group");
METRIC_GAUGE(group_rules, "epimetheus_rule_group_rules", "Rules of a group.", "rule_group");
METRIC_GAUGE(
	group_interval, "epimetheus_rule_group_interval_seconds", "Interval of a group.", "rule_group");

/* ---- states ---- */

static void rule_state_release(struct rule_state *r)
{
	alert_state_close(r->alerts);
	seen_release(&r->seen);
	buf_release(&r->last_error);
}

static void rule_manager_groups_free(struct group_state *g, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < g[i].rules_n; k++)
			rule_state_release(&g[i].rules[k]);
		free(g[i].rules);
		buf_release(&g[i].label);
		mutex_destroy(&g[i].lock);
	}
	free(g);
}

static enum err_code rule_manager_group_init(
	struct group_state *s, struct rule_manager *m, const struct rule_group *g, struct err *err)
{
	s->manager = m;
	s->group = g;
	mutex_init(&s->lock);
	buf_printf(&s->label, STR_FMT ";" STR_FMT "%c", STR_ARG(g->file), STR_ARG(g->name), '\0');
	s->rules = calloc(g->rules_n + 1, sizeof(*s->rules));
	if (!s->rules || buf_failed(&s->label))
		return err_nomem(err, "rules");
	for (size_t i = 0; i < g->rules_n; i++, s->rules_n++) {
		s->rules[i].rule = &g->rules[i];
		if (g->rules[i].kind == RULE_ALERT &&
			!(s->rules[i].alerts = alert_state_open(&g->rules[i], g)))
			return err_nomem(err, "rules");
	}
	return ERR_OK;
}

static enum err_code rule_manager_groups_new(
	struct rule_manager *m, struct rule_set *set, struct group_state **out, struct err *err)
{
	struct group_state *v = calloc(set->groups_n + 1, sizeof(*v));
	enum err_code rc = ERR_OK;
	size_t n = 0;

	if (!v)
		return err_nomem(err, "rules");
	while (n < set->groups_n && !rc) {
		rc = rule_manager_group_init(&v[n], m, &set->groups[n], err);
		n++;
	}
	if (rc)
		rule_manager_groups_free(v, n);
	else
		*out = v;
	return rc;
}

/* Waits until nobody uses the groups; whoever waits at the same time may end the pause. */
static void rule_manager_pause(struct rule_manager *m)
{
	mutex_assert_held(&m->lock);
	for (m->paused = true; m->running || m->readers; m->paused = true)
		cond_wait(&m->changed, &m->lock);
}

/* ---- what a reload keeps ---- */

static bool rule_same_labels(const struct rule *a, const struct rule *b)
{
	if (a->labels_n != b->labels_n)
		return false;
	for (size_t i = 0; i < a->labels_n; i++)
		if (!str_eq(a->labels[i].name, b->labels[i].name) ||
			!str_eq(a->labels[i].text, b->labels[i].text))
			return false;
	return true;
}

/*
 * A rule with the same name and labels keeps its alerts and series, whatever else changed: a
 * corrected annotation must not make alerts begin anew.
 */
static void rule_manager_adopt_rule(struct rule_state *s, struct group_state *old)
{
	struct rule_state *o, old_self;

	for (size_t i = 0; i < old->rules_n; i++) {
		o = &old->rules[i];
		if (!o->rule || (o->rule->kind == RULE_ALERT) != (s->rule->kind == RULE_ALERT) ||
			!str_eq(o->rule->name, s->rule->name) || !rule_same_labels(o->rule, s->rule))
			continue;
		old_self = *s;
		*s = *o;
		s->rule = old_self.rule;
		*o = (struct rule_state){
			.alerts = old_self.alerts, .seen = old_self.seen, .last_error = old_self.last_error
		};
		if (s->alerts)
			alert_state_set_rule(s->alerts, s->rule, s->rule->group);
		return;
	}
}

/*
 * Takes over the state of the same group before the reload. Lists of groups are short enough to
 * compare all pairs.
 */
static void rule_manager_adopt(struct group_state *s, struct group_state *old, size_t old_n)
{
	for (size_t i = 0; i < old_n; i++) {
		struct group_state *o = &old[i];

		if (!str_eq(o->group->name, s->group->name) || !str_eq(o->group->file, s->group->file))
			continue;
		for (size_t k = 0; k < s->rules_n; k++)
			rule_manager_adopt_rule(&s->rules[k], o);
		s->last_evaluation_ns = o->last_evaluation_ns;
		s->evaluation_ns = o->evaluation_ns;
		s->iterations = o->iterations;
		s->missed = o->missed;
		if (o->group->interval_ns == s->group->interval_ns) {
			s->due_ns = o->due_ns;
			s->looks = o->looks;
		}
		return;
	}
}

/* Writes stale marks for the series of removed rules. */
static void rule_manager_end_series(struct rule_manager *m, struct group_state *g, size_t n)
{
	int64_t now = clock_now_ns() / NS_PER_MS * NS_PER_MS;
	struct err err;

	mutex_assert_held(&m->lock);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < g[i].rules_n; k++)
			if (g[i].rules[k].seen.n && seen_end(m, &g[i].rules[k].seen, now, &err))
				log_warn("rules", "stale marks of a removed rule not written",
					LOG_STR("group", g[i].group->name), LOG_E(&err));
}

static void rule_manager_show_groups(const struct group_state *g, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		metric_set(&group_rules, g[i].label.ptr, (double)g[i].rules_n);
		metric_set(&group_interval, g[i].label.ptr, (double)g[i].group->interval_ns / 1e9);
		metric_add(&missed, g[i].label.ptr, 0);
	}
}

static void rule_manager_log_duplicates(const struct rule_set *set)
{
	struct rule_duplicate *v;
	struct buf text = { 0 };
	struct arena a;
	struct err err;
	size_t n;

	arena_init(&a, 0);
	if (!rule_set_duplicates(set, &a, &v, &n, &err))
		for (size_t i = 0; i < n; i++) {
			buf_clear(&text);
			rule_duplicate_print(&text, &v[i]);
			log_warn("rules", "duplicate rule", LOG_STR("rule", buf_str(&text)));
		}
	buf_release(&text);
	arena_release(&a);
}

enum err_code rule_manager_apply(
	struct rule_manager *m, struct rule_set *set, struct labels external_labels, struct err *err)
{
	struct group_state *made, *old;
	struct rule_set *old_set;
	struct labels labels;
	struct arena arena;
	int64_t now;
	size_t old_n;
	enum err_code rc;

	assert(set);
	arena_init(&arena, 0);
	labels = labels_dup(&arena, external_labels);
	if (external_labels.n && !labels.v)
		rc = arena_fail(&arena, "rules", err);
	else
		rc = rule_manager_groups_new(m, set, &made, err);
	if (rc) {
		arena_release(&arena);
		return rc;
	}
	mutex_lock(&m->lock);
	rule_manager_pause(m);
	old = m->groups;
	old_n = m->groups_n;
	old_set = m->set;
	arena_release(&m->arena);
	m->arena = arena;
	m->external_labels = labels;
	m->set = rule_set_ref(set);
	m->groups = made;
	m->groups_n = set->groups_n;
	now = clock_now_ns();
	for (size_t i = 0; i < m->groups_n; i++) {
		rule_manager_adopt(&made[i], old, old_n);
		if (!made[i].due_ns)
			made[i].due_ns = group_next_turn(made[i].group, now);
	}
	rule_manager_end_series(m, old, old_n);
	if (!m->o.manual)
		leftovers_apply(m, now / NS_PER_MS * NS_PER_MS);
	rule_manager_show_groups(made, m->groups_n);
	m->paused = false;
	cond_broadcast(&m->changed);
	mutex_unlock(&m->lock);
	rule_manager_groups_free(old, old_n);
	rule_set_unref(old_set);
	if (!m->o.manual)
		rule_manager_log_duplicates(set);
	return ERR_OK;
}

/* ---- turns ---- */

static struct group_state *rule_manager_first_due(struct rule_manager *m)
{
	struct group_state *first = NULL;

	mutex_assert_held(&m->lock);
	for (size_t i = 0; i < m->groups_n; i++)
		if (!m->groups[i].running && (!first || m->groups[i].due_ns < first->due_ns))
			first = &m->groups[i];
	return first;
}

static void rule_manager_hold(struct group_state *g)
{
	mutex_assert_held(&g->manager->lock);
	assert(!g->running);
	g->running = true;
	g->manager->running++;
}

static void rule_manager_let_go(struct group_state *g)
{
	mutex_assert_held(&g->manager->lock);
	assert(g->running && g->manager->running);
	g->running = false;
	g->manager->running--;
	cond_broadcast(&g->manager->changed);
}

/* Of `late` turns that are due before the last one, those that are not taken. */
static int64_t rule_manager_turns_skipped(const struct group_state *g, int64_t late, int64_t now)
{
	int64_t interval = g->group->interval_ns, old = now - g->due_ns - CATCH_UP_MAX_NS, skipped;

	mutex_assert_held(&g->manager->lock);
	if (clock_monotonic_ns() >= g->manager->catch_up_until_ns)
		return late;
	skipped = old > 0 ? (old + interval - 1) / interval : 0;
	return skipped < late ? skipped : late;
}

/*
 * Takes the latest turn that is due, and counts those before it as missed; while the manager
 * catches up, the first one.
 */
static int64_t rule_manager_take_turn(struct group_state *g, int64_t now)
{
	int64_t interval = g->group->interval_ns, late = (now - g->due_ns) / interval, skipped;

	assert(!g->running && g->due_ns <= now);
	skipped = rule_manager_turns_skipped(g, late, now);
	if (skipped > 0) {
		if (g->past)
			log_warn("rules", "evaluations left out", LOG_STR("file", g->group->file),
				LOG_STR("group", g->group->name), LOG_I("evaluations", skipped));
		g->from = 0;
		g->due_ns += skipped * interval;
		mutex_lock(&g->lock);
		g->missed += (uint64_t)skipped;
		mutex_unlock(&g->lock);
		metric_add(&missed, g->label.ptr, (double)skipped);
	}
	g->past = late > skipped;
	rule_manager_hold(g);
	return g->due_ns;
}

static struct group_state *rule_manager_first_that_looks(struct rule_manager *m)
{
	mutex_assert_held(&m->lock);
	for (size_t i = 0; i < m->groups_n; i++)
		if (m->groups[i].looks && !m->groups[i].running)
			return &m->groups[i];
	return NULL;
}

/* Where another manager ended. The lock is released meanwhile. */
static void rule_manager_look(struct group_state *g, int64_t now)
{
	struct rule_manager *m = g->manager;
	struct group_last last;

	rule_manager_hold(g);
	mutex_unlock(&m->lock);
	group_find_last(g, now, &last);
	mutex_lock(&m->lock);
	if (!atomic_load(&m->stop)) {
		g->due_ns = group_first_turn(g, &last, now);
		g->looks = false;
	}
	rule_manager_let_go(g);
}

/* The lock is released meanwhile. */
static void rule_manager_turn_due(struct group_state *g, int64_t now)
{
	struct rule_manager *m = g->manager;
	int64_t turn = rule_manager_take_turn(g, now);
	bool whole;

	mutex_unlock(&m->lock);
	whole = group_evaluate(g, turn);
	mutex_lock(&m->lock);
	if (whole)
		g->due_ns = turn + g->group->interval_ns;
	rule_manager_let_go(g);
}

bool rule_manager_may(const struct rule_manager *m)
{
	return !m->may || m->may(m->may_ctx);
}

/* NULL: nothing may be evaluated now. What is due meanwhile is made up for. */
static struct group_state *rule_manager_next(struct rule_manager *m)
{
	struct group_state *g;

	mutex_assert_held(&m->lock);
	if (m->paused || !m->o.db)
		return NULL;
	if (!rule_manager_may(m)) {
		m->catch_up_until_ns = clock_monotonic_ns() + CATCH_UP_TIME_NS;
		return NULL;
	}
	g = rule_manager_first_that_looks(m);
	return g ? g : rule_manager_first_due(m);
}

static void rule_manager_wait(struct rule_manager *m, int64_t ns)
{
	cond_wait_until(
		&m->changed, &m->lock, clock_monotonic_ns() + (ns < SLEEP_MAX_NS ? ns : SLEEP_MAX_NS));
}

static void rule_manager_work(void *ctx)
{
	struct rule_manager *m = ctx;
	struct group_state *g;
	int64_t now;

	mutex_lock(&m->lock);
	while (!m->closing) {
		g = rule_manager_next(m);
		now = clock_now_ns();
		if (g && !g->looks && g->due_ns > now + g->group->interval_ns) /* the clock was set back */
			g->due_ns = group_next_turn(g->group, now);
		if (g && g->looks)
			rule_manager_look(g, now);
		else if (g && g->due_ns <= now)
			rule_manager_turn_due(g, now);
		else if (g)
			rule_manager_wait(m, g->due_ns - now);
		else if (m->may) /* nobody tells when it may go on */
			rule_manager_wait(m, MAY_EVERY_NS);
		else
			cond_wait(&m->changed, &m->lock);
	}
	mutex_unlock(&m->lock);
}

/* A test begins at 0, where nothing can be stored: queries look at 1 ns. */
void rule_manager_turn(struct rule_manager *m, size_t group, int64_t t_ns)
{
	struct group_state *g = &m->groups[group];
	const struct rule_group *saved = g->group;
	struct rule_group shifted = *saved;

	assert(m->o.manual && group < m->groups_n);
	if (t_ns - shifted.query_offset_ns < 1)
		shifted.query_offset_ns = t_ns - 1;
	g->group = &shifted;
	group_evaluate(g, t_ns);
	g->group = saved;
}

/* ---- life ---- */

enum err_code rule_manager_open(
	const struct rule_manager_options *o, struct rule_manager **out, struct err *err)
{
	struct rule_manager *m = calloc(1, sizeof(*m));
	enum err_code rc = ERR_OK;

	assert(o->engine && (o->db || !o->manual));
	if (!m)
		return err_nomem(err, "rules");
	m->o = *o;
	m->began_ns = clock_now_ns();
	if (m->o.manual)
		m->o.workers = 0;
	else if (!m->o.workers)
		m->o.workers = 1;
	mutex_init(&m->lock);
	cond_init(&m->changed);
	arena_init(&m->arena, 0);
	arena_init(&m->own, 0);
	m->external_url = str_dup(&m->own, str_of(o->external_url ? o->external_url : ""));
	m->workers = arena_array(&m->own, struct thread, m->o.workers + 1);
	if (!m->external_url.ptr || !m->workers)
		rc = err_nomem(err, "rules");
	while (!rc && str_has_suffix(m->external_url, STR("/")))
		m->external_url.len--;
	for (unsigned i = 0; i < m->o.workers && !rc; i++)
		rc = thread_start(&m->workers[i], "rules", rule_manager_work, m, err);
	if (rc) {
		rule_manager_close(m);
		return rc;
	}
	*out = m;
	return ERR_OK;
}

/* The last evaluation of the same group; 0: not known. */
static int64_t rule_manager_last_before(
	const struct rules_snapshot *before, const struct rule_group *g)
{
	for (size_t i = 0; before && i < before->groups_n; i++)
		if (str_eq(before->groups[i].group->name, g->name) &&
			str_eq(before->groups[i].group->file, g->file))
			return before->groups[i].last_evaluation_ns;
	return 0;
}

void rule_manager_begin(struct rule_manager *m, struct db *db, bool (*may)(void *ctx), void *ctx,
	const struct rules_snapshot *before)
{
	int64_t now = clock_now_ns();

	mutex_lock(&m->lock);
	assert(!m->o.db && db);
	rule_manager_pause(m);
	m->o.db = db;
	m->may = may;
	m->may_ctx = ctx;
	m->goes_on = true;
	m->began_ns = now;
	m->catch_up_until_ns = clock_monotonic_ns() + CATCH_UP_TIME_NS;
	for (size_t i = 0; i < m->groups_n; i++) {
		m->groups[i].due_ns = group_next_turn(m->groups[i].group, now);
		m->groups[i].looks = true;
		m->groups[i].before_ns = rule_manager_last_before(before, m->groups[i].group);
	}
	if (m->set && !m->leftovers.made)
		leftovers_apply(m, now / NS_PER_MS * NS_PER_MS);
	m->paused = false;
	cond_broadcast(&m->changed);
	mutex_unlock(&m->lock);
}

static void rule_manager_forget(struct group_state *g)
{
	mutex_lock(&g->lock);
	for (size_t i = 0; i < g->rules_n; i++) {
		struct rule_state *r = &g->rules[i];

		if (r->alerts)
			alert_state_clear(r->alerts);
		seen_release(&r->seen);
		buf_clear(&r->last_error);
		r->health = RULE_UNKNOWN;
		r->last_evaluation_ns = r->evaluation_ns = 0;
		r->restored = r->began = false;
	}
	g->last_evaluation_ns = g->evaluation_ns = 0;
	g->from = 0;
	g->looks = false;
	mutex_unlock(&g->lock);
	group_show_elsewhere(g);
}

void rule_manager_end(struct rule_manager *m)
{
	mutex_lock(&m->lock);
	atomic_store(&m->stop, true);
	rule_manager_pause(m);
	for (size_t i = 0; i < m->groups_n; i++)
		rule_manager_forget(&m->groups[i]);
	leftovers_release(&m->leftovers);
	m->leftovers.made = false;
	m->o.db = NULL;
	m->may = NULL;
	atomic_store(&m->stop, m->closing);
	m->paused = false;
	cond_broadcast(&m->changed);
	mutex_unlock(&m->lock);
}

void rule_manager_close(struct rule_manager *m)
{
	if (!m)
		return;
	mutex_lock(&m->lock);
	m->closing = true;
	atomic_store(&m->stop, true);
	cond_broadcast(&m->changed);
	mutex_unlock(&m->lock);
	for (unsigned i = 0; m->workers && i < m->o.workers; i++)
		thread_join(&m->workers[i]);
	rule_manager_groups_free(m->groups, m->groups_n);
	leftovers_release(&m->leftovers);
	rule_set_unref(m->set);
	arena_release(&m->arena);
	arena_release(&m->own);
	cond_destroy(&m->changed);
	mutex_destroy(&m->lock);
	free(m);
}
