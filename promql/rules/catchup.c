/*
 * A manager that takes the place of another one evaluates what was missed between the two, each
 * evaluation at its own time, before it goes on. Rules read what is stored, so they record what
 * the other manager would have recorded.
 *
 * The stored numbers say how far the other one came. They have the times of the group's turns,
 * which a hash of the group's name sets. A rule's numbers are acknowledged before the next rule is
 * evaluated. So the last turn is the latest time at which a rule of the group wrote, and the last
 * rule that wrote then may be the last one that was evaluated. A group may have written nothing
 * within an hour. Then the other manager may have said when its last turn was. Its rules gave
 * nothing then, but an alert may have become active since.
 */
#include <assert.h>

#include "base/clock.h"
#include "base/log.h"
#include "promql/rules/manager_internal.h"

#define NEAR_NS (5 * NS_PER_MIN) /* is looked at first */

struct catch_up {
	struct group_state *g;
	struct db_querier *q;
	int64_t min_ns, max_ns;
	struct arena arena; /* of one rule */
};

/* The turn that writes at ts_ns; 0: no turn of the group does. */
static int64_t catch_up_turn_of(const struct rule_group *g, int64_t ts_ns)
{
	int64_t turn = ts_ns + g->query_offset_ns;

	return group_next_turn(g, turn - 1) == turn ? turn : 0;
}

static enum err_code catch_up_numbers(
	struct catch_up *c, const struct db_series *s, int64_t *turn_ns, struct err *err)
{
	int64_t *times, turn = 0;
	double *values;
	size_t n;
	enum err_code rc;

	if ((rc = db_numbers(c->q, s, c->min_ns, c->max_ns, &c->arena, &times, &values, &n, err)))
		return rc;
	while (n && !turn)
		turn = catch_up_turn_of(c->g->group, times[--n]);
	if (turn > *turn_ns)
		*turn_ns = turn;
	return ERR_OK;
}

static enum err_code catch_up_profiles(
	struct catch_up *c, const struct db_series *s, int64_t *turn_ns, struct err *err)
{
	const struct db_row *row;
	struct db_rows *rows;
	int64_t turn;
	enum err_code rc = db_rows_open(c->q, s, c->min_ns, c->max_ns, &rows, err);

	if (rc)
		return rc;
	while (!(rc = db_rows_next(rows, &row, err)))
		if ((turn = catch_up_turn_of(c->g->group, row->ts_ns)) > *turn_ns)
			*turn_ns = turn;
	db_rows_close(rows);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

/* Name and labels that all series of the rule have; labels with templates differ. */
static enum err_code catch_up_matchers(
	const struct rule *r, struct arena *a, struct matcher **out, size_t *n, struct err *err)
{
	bool alert = r->kind == RULE_ALERT;
	struct matcher *m = arena_array(a, struct matcher, r->labels_n + 2);
	enum err_code rc;

	*n = 0;
	if (!m)
		return arena_fail(a, "rules", err);
	*out = m;
	if ((rc = matcher_init(&m[(*n)++], MATCH_EQ,
			 STR(LABEL_NAME), alert ? STR(ALERTS_FOR_STATE_NAME) : r->name, err)) ||
			 (alert && (rc = matcher_init(&m[(*n)++], MATCH_EQ, STR("alertname"), r->name, err))))
		return rc;
	for (size_t i = 0; i < r->labels_n; i++)
		if (!r->labels[i].template &&
			(rc = matcher_init(&m[(*n)++], MATCH_EQ, r->labels[i].name, r->labels[i].text, err)))
			return rc;
	return ERR_OK;
}

static enum err_code catch_up_rule(
	struct catch_up *c, const struct rule *r, int64_t *turn_ns, struct err *err)
{
	struct matcher *m = NULL;
	struct db_series *v;
	size_t n, series_n;
	enum err_code rc;

	*turn_ns = 0;
	arena_reset(&c->arena);
	if ((rc = catch_up_matchers(r, &c->arena, &m, &n, err)) ||
		(rc = db_select(c->q, m, n, &c->arena, &v, &series_n, err)))
		return rc;
	for (size_t i = 0; i < series_n && !rc; i++)
		rc = v[i].numeric ? catch_up_numbers(c, &v[i], turn_ns, err) :
							catch_up_profiles(c, &v[i], turn_ns, err);
	return rc;
}

static enum err_code catch_up_look(
	struct group_state *g, int64_t min_ns, int64_t max_ns, struct group_last *out, struct err *err)
{
	struct rule_manager *m = g->manager;
	struct catch_up c = { .g = g, .min_ns = min_ns, .max_ns = max_ns };
	enum err_code rc;
	int64_t turn;

	*out = (struct group_last){ 0 };
	if ((rc = db_querier_open(m->o.db, min_ns, max_ns, &m->stop, &c.q, err)))
		return rc;
	arena_init(&c.arena, EVALUATION_BYTES_MAX);
	for (size_t i = 0; i < g->rules_n && !rc; i++) {
		if ((rc = catch_up_rule(&c, g->rules[i].rule, &turn, err)) || !turn || turn < out->turn_ns)
			continue;
		*out = (struct group_last){ .turn_ns = turn, .from = i + 1 };
	}
	db_querier_close(c.q);
	arena_release(&c.arena);
	if (rc)
		*out = (struct group_last){ 0 };
	return rc;
}

void group_find_last(struct group_state *g, int64_t now_ns, struct group_last *out)
{
	/* A clock that is ahead of ours wrote, too. */
	int64_t interval = g->group->interval_ns, max = now_ns + interval;
	struct err err;
	enum err_code rc;

	rc = catch_up_look(g, now_ns - 2 * interval - NEAR_NS, max, out, &err);
	if (!rc && !out->turn_ns)
		rc = catch_up_look(g, now_ns - interval - CATCH_UP_MAX_NS, max, out, &err);
	if (!rc && !out->turn_ns && g->before_ns > 0 && g->before_ns <= max && g->rules_n &&
		group_next_turn(g->group, g->before_ns - 1) == g->before_ns)
		*out = (struct group_last){ .turn_ns = g->before_ns, .from = g->rules_n };
	if (rc && !atomic_load(&g->manager->stop))
		log_warn("rules", "missed evaluations are left out", LOG_STR("file", g->group->file),
			LOG_STR("group", g->group->name), LOG_E(&err));
}

int64_t group_first_turn(struct group_state *g, const struct group_last *last, int64_t now_ns)
{
	const struct rule_group *group = g->group;
	int64_t turn = last->turn_ns, oldest, left_out;

	g->from = 0;
	if (!turn)
		return group_next_turn(group, now_ns);
	assert(last->from && last->from <= g->rules_n);
	if (last->from < g->rules_n)
		g->from = last->from;
	else
		turn += group->interval_ns;
	oldest = db_free_from(g->manager->o.db, turn - group->query_offset_ns) + group->query_offset_ns;
	if (oldest < now_ns - CATCH_UP_MAX_NS)
		oldest = now_ns - CATCH_UP_MAX_NS;
	if (turn < oldest) {
		left_out = (oldest - turn + group->interval_ns - 1) / group->interval_ns;
		turn += left_out * group->interval_ns;
		g->from = 0;
		log_warn("rules", "evaluations left out", LOG_STR("file", group->file),
			LOG_STR("group", group->name), LOG_I("evaluations", left_out));
	}
	if (turn <= now_ns)
		log_info("rules", "evaluations made up for", LOG_STR("file", group->file),
			LOG_STR("group", group->name),
			LOG_I("evaluations", (now_ns - turn) / group->interval_ns + 1));
	return turn;
}
