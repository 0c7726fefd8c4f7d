/*
 * Series that rules wrote before the server was started, and do not write any more.
 *
 * A series gets a stale mark at the turn at which its rule does not write it again. What a rule
 * wrote at its last turn is known in memory only, so after a restart nobody would end a series
 * whose element has gone meanwhile: it would go on until the lookback ends it, and an alert that
 * has gone would still fire in ALERTS. The stored series say by their name and `alertname` that
 * rules wrote them, but not which rule did, and several may write one name. So the stored series of
 * a name are looked at once: when each of its rules has had a turn. Those that none of them has
 * written by then are ended, but not what somebody else has written since the start: a rule may
 * share its name with scraped series (`up`).
 */
#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "promql/rules/manager_internal.h"
#include "tsdb/columns/number_chunk.h"

static int leftover_by_name(const void *a, const void *b)
{
	const struct leftover *x = a, *y = b;

	return x->alert != y->alert ? x->alert - y->alert : str_cmp(x->name, y->name);
}

static struct leftover *leftover_find(struct rule_manager *m, const struct rule *r)
{
	const struct leftover key = { .name = r->name, .alert = r->kind == RULE_ALERT };

	mutex_assert_held(&m->lock);
	return m->leftovers.n ?
		bsearch(&key, m->leftovers.v, m->leftovers.n, sizeof(key), leftover_by_name) :
		NULL;
}

void leftovers_release(struct leftovers *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].claimed);
	arena_release(&l->arena);
	*l = (struct leftovers){ .made = true };
}

/* The names of the rules that the server was started with. */
static enum err_code leftover_make(struct rule_manager *m, struct err *err)
{
	struct leftovers *l = &m->leftovers;
	const struct rule_set *set = m->set;
	size_t n = 0;

	arena_init(&l->arena, 0);
	l->made = true;
	if (!(l->v = arena_array(&l->arena, struct leftover, set->rules_n + 1)))
		return arena_fail(&l->arena, "rules", err);
	for (size_t i = 0; i < set->groups_n; i++)
		for (size_t k = 0; k < set->groups[i].rules_n; k++) {
			const struct rule *r = &set->groups[i].rules[k];

			l->v[n].alert = r->kind == RULE_ALERT;
			if (!(l->v[n].name = str_dup(&l->arena, r->name)).ptr) /* the set may go before */
				return arena_fail(&l->arena, "rules", err);
			n++;
		}
	qsort(l->v, n, sizeof(*l->v), leftover_by_name);
	for (size_t i = 0; i < n; i++)
		if (!l->n || leftover_by_name(&l->v[l->n - 1], &l->v[i]))
			l->v[l->n++] = l->v[i];
	l->open = l->n;
	return ERR_OK;
}

/* ---- ending ---- */

struct moment {
	int64_t turn_ns; /* until when is looked at */
	int64_t at_ns; /* of what the turn writes: query_offset earlier */
};

static int leftover_by_labels(const void *a, const void *b)
{
	return labels_cmp(*(const struct labels *)a, *(const struct labels *)b);
}

static bool leftover_is_claimed(const struct leftover *l, struct labels labels)
{
	return l->claimed_n &&
		bsearch(&labels, l->claimed, l->claimed_n, sizeof(labels), leftover_by_labels);
}

static enum err_code leftover_end_one(struct rule_manager *m, const struct leftover *l,
	struct db_querier *q, const struct db_series *s, struct writing *w, struct moment moment,
	struct err *err)
{
	int64_t *times;
	double *values;
	size_t n;
	enum err_code rc;

	if (leftover_is_claimed(l, s->labels))
		return ERR_OK;
	if ((rc = db_numbers(q, s, moment.turn_ns - m->o.outage_tolerance_ns, moment.turn_ns, &w->arena,
			 &times, &values, &n, err)))
		return rc;
	if (!n || number_is_stale(values[n - 1]) || times[n - 1] >= m->began_ns)
		return ERR_OK;
	if (moment.at_ns <= times[n - 1]) /* of a group with a shorter query_offset */
		moment.at_ns = times[n - 1] + NS_PER_MS;
	return writing_end(w, s->labels, moment.at_ns, err);
}

static enum err_code leftover_end_name(struct rule_manager *m, const struct leftover *l,
	const char *name, struct db_querier *q, struct writing *w, struct moment moment,
	struct err *err)
{
	struct matcher matchers[2];
	struct db_series *v;
	size_t n;
	enum err_code rc;

	if ((rc = matcher_init(
				  &matchers[0], MATCH_EQ, STR(LABEL_NAME), name ? str_of(name) : l->name, err)) ||
			(rc = matcher_init(&matchers[1], MATCH_EQ, STR("alertname"), l->name, err)))
		return rc;
	rc = db_select_kinds(q, DB_NUMBERS, matchers, l->alert ? 2 : 1, &w->arena, &v, &n, err);
	for (size_t i = 0; i < n && !rc; i++)
		rc = leftover_end_one(m, l, q, &v[i], w, moment, err);
	return rc;
}

static enum err_code leftover_end_all(
	struct rule_manager *m, const struct leftover *l, struct moment moment, struct err *err)
{
	struct db_querier *q;
	struct writing w;
	enum err_code rc;

	if ((rc = db_querier_open(m->o.db, moment.turn_ns - m->o.outage_tolerance_ns, moment.turn_ns,
			 &m->stop, &q, err)))
		return rc;
	writing_init(&w, m);
	if (!l->alert)
		rc = leftover_end_name(m, l, NULL, q, &w, moment, err);
	else if (!(rc = leftover_end_name(m, l, ALERTS_NAME, q, &w, moment, err)))
		rc = leftover_end_name(m, l, ALERTS_FOR_STATE_NAME, q, &w, moment, err);
	if (!rc)
		rc = writing_flush(&w, err);
	writing_release(&w);
	db_querier_close(q);
	return rc;
}

/* l->ended is set, so that nobody else touches it. */
static void leftover_end(struct rule_manager *m, struct leftover *l, struct moment moment)
{
	struct err err;

	assert(l->ended);
	if (l->claimed_n)
		qsort(l->claimed, l->claimed_n, sizeof(*l->claimed), leftover_by_labels);
	if (leftover_end_all(m, l, moment, &err) && !atomic_load(&m->stop))
		log_warn("rules", "series from before the restart not ended", LOG_STR("rule", l->name),
			LOG_E(&err));
}

/* ---- turns and reloads ---- */

static enum err_code leftover_claim(struct rule_manager *m, struct leftover *l,
	const struct rule_manager_seen_series *seen, struct err *err)
{
	if (!array_room(&l->claimed, l->claimed_n, seen->n, &l->claimed_cap))
		return err_nomem(err, "rules");
	for (size_t i = 0; i < seen->n; i++) {
		struct labels copy = labels_dup(&m->leftovers.arena, seen->v[i]);

		if (seen->v[i].n && !copy.v)
			return arena_fail(&m->leftovers.arena, "rules", err);
		l->claimed[l->claimed_n++] = copy;
	}
	return ERR_OK;
}

static void leftover_closed(struct rule_manager *m)
{
	mutex_assert_held(&m->lock);
	assert(m->leftovers.open);
	if (--m->leftovers.open == 0)
		leftovers_release(&m->leftovers);
}

void leftover_turn(struct rule_manager *m, struct rule_state *r, int64_t t_ns, int64_t at_ns)
{
	struct leftover *l;
	struct err err;
	bool due = false;

	mutex_lock(&m->lock);
	l = leftover_find(m, r->rule);
	if (l && !l->ended) {
		if (!r->began)
			l->waiting--;
		due = l->waiting == 0;
		if (leftover_claim(m, l, &r->seen, &err)) {
			log_warn("rules", "series from before the restart not ended", LOG_STR("rule", l->name),
				LOG_E(&err));
			l->ended = true;
			due = false;
			leftover_closed(m);
		} else if (due) {
			l->ended = true;
		}
	}
	r->began = true;
	mutex_unlock(&m->lock);
	if (!due)
		return;
	leftover_end(m, l, (struct moment){ t_ns, at_ns });
	mutex_lock(&m->lock);
	leftover_closed(m);
	mutex_unlock(&m->lock);
}

void leftovers_apply(struct rule_manager *m, int64_t t_ns)
{
	struct leftovers *all = &m->leftovers;
	struct leftover *l;
	bool is_first = !all->made;
	struct err err;

	mutex_assert_held(&m->lock);
	if (is_first && leftover_make(m, &err)) {
		log_warn("rules", "series from before the restart not ended", LOG_E(&err));
		leftovers_release(all);
	}
	for (size_t i = 0; i < all->n; i++)
		all->v[i].waiting = 0;
	for (size_t i = 0; i < m->groups_n; i++)
		for (size_t k = 0; k < m->groups[i].rules_n; k++)
			if ((l = leftover_find(m, m->groups[i].rules[k].rule)) && !m->groups[i].rules[k].began)
				l->waiting++;
	for (size_t i = 0, n = all->n; i < n && !is_first; i++) {
		l = &all->v[i];
		if (l->ended || l->waiting)
			continue;
		/* The rules that it waited for are gone. */
		l->ended = true;
		if (m->o.db)
			leftover_end(m, l, (struct moment){ t_ns, t_ns });
		leftover_closed(m);
		if (!all->n) /* that was the last */
			return;
	}
}
