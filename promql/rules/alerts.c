/*
 * The alerts of one rule: finds them among the elements of an evaluation and moves them from state
 * to state.
 */
#include "promql/rules/alerts.h"

#include <assert.h>
#include <stdlib.h>

#include "promql/rules/rules.h"
#include "promql/rules/template/template.h"

#define ALERT_NAME "alertname"
#define SCRATCH_MAX ((size_t)256 << 20)

/* An alert; its labels are one piece of memory, its annotations another. */
struct alerts_entry {
	struct alert alert;
	void *labels_memory, *annotations_memory;
	bool seen; /* among the elements of this evaluation */
};

struct alert_state {
	const struct rule *rule;
	const struct rule_group *group;
	struct alerts_entry **v; /* ascending by labels */
	size_t n;
};

/* ---- memory ---- */

/* Copies ls into one piece of malloc's memory, *memory. */
static bool labels_pack(struct labels ls, struct labels *out, void **memory)
{
	size_t bytes = ls.n * sizeof(struct label) + 1;
	struct label *v;
	char *at;

	for (size_t i = 0; i < ls.n; i++)
		bytes += ls.v[i].name.len + ls.v[i].value.len;
	if (!(v = malloc(bytes)))
		return false;
	at = (char *)(v + ls.n);
	for (size_t i = 0; i < ls.n; i++) {
		v[i].name = (struct str){ at, ls.v[i].name.len };
		at = mempcpy(at, ls.v[i].name.ptr, ls.v[i].name.len);
		v[i].value = (struct str){ at, ls.v[i].value.len };
		at = mempcpy(at, ls.v[i].value.ptr, ls.v[i].value.len);
	}
	*out = (struct labels){ v, ls.n };
	*memory = v;
	return true;
}

static void alerts_entry_free(struct alerts_entry *e)
{
	if (!e)
		return;
	free(e->labels_memory);
	free(e->annotations_memory);
	free(e);
}

static struct alerts_entry *alerts_entry_new(struct labels labels, struct labels annotations)
{
	struct alerts_entry *e = calloc(1, sizeof(*e));

	if (e && labels_pack(labels, &e->alert.labels, &e->labels_memory) &&
		labels_pack(annotations, &e->alert.annotations, &e->annotations_memory))
		return e;
	alerts_entry_free(e);
	return NULL;
}

struct alert_state *alert_state_open(const struct rule *r, const struct rule_group *g)
{
	struct alert_state *s = calloc(1, sizeof(*s));

	if (s)
		alert_state_set_rule(s, r, g);
	return s;
}

void alert_state_set_rule(struct alert_state *s, const struct rule *r, const struct rule_group *g)
{
	assert(r->kind == RULE_ALERT);
	s->rule = r;
	s->group = g;
}

void alert_state_clear(struct alert_state *s)
{
	for (size_t i = 0; i < s->n; i++)
		alerts_entry_free(s->v[i]);
	free(s->v);
	s->v = NULL;
	s->n = 0;
}

void alert_state_close(struct alert_state *s)
{
	if (!s)
		return;
	alert_state_clear(s);
	free(s);
}

/* ---- what an evaluation found ---- */

struct alerts_taking {
	struct alert_state *s;
	int64_t t_ns;
	struct template_data data;
	struct arena arena;
	struct err *err;
	struct alerts_entry **v; /* as found; ascending by labels */
	size_t n;
};

/*
 * The text of a label or annotation, its template expanded. A template's failure becomes its text.
 */
static enum err_code alerts_expand(
	struct alerts_taking *a, const struct rule_text *t, struct str *out)
{
	struct buf b = { 0 };
	struct err why;
	enum err_code rc;

	if (!t->template) {
		*out = t->text;
		return ERR_OK;
	}
	rc = template_render(t->template, &a->data, &b, &why);
	if (rc == ERR_CANCELED) { /* an error text would make another alert and resolve this one */
		buf_release(&b);
		return err_copy(a->err, &why);
	}
	if (rc && rc != ERR_NOMEM) {
		buf_clear(&b);
		buf_printf(&b, "<error expanding template: %s>", why.msg);
		rc = ERR_OK;
	}
	*out = b.len ? str_dup(&a->arena, buf_str(&b)) : STR("");
	if (rc || buf_failed(&b))
		rc = err_nomem(a->err, "alerts");
	else if (!out->ptr)
		rc = arena_fail(&a->arena, "alerts", a->err);
	buf_release(&b);
	return rc;
}

static enum err_code alerts_set_all(
	struct alerts_taking *a, struct labels_builder *b, const struct rule_text *r, size_t n)
{
	enum err_code rc = ERR_OK;
	struct str value;

	for (size_t i = 0; i < n && !rc; i++)
		if (!(rc = alerts_expand(a, &r[i], &value)))
			labels_builder_set(b, r[i].name, value);
	return rc;
}

static enum err_code alerts_find(struct alerts_taking *t, const struct alert_element *from)
{
	const struct rule *r = t->s->rule;
	struct labels_builder labels, notes;
	struct labels l, a;
	struct alerts_entry *e;
	enum err_code rc;

	t->data.labels = from->labels;
	t->data.value = from->value;
	t->data.t_ns = t->t_ns;
	labels_builder_init(&labels, &t->arena, from->labels);
	labels_builder_init(&notes, &t->arena, (struct labels){ 0 });
	if ((rc = alerts_set_all(t, &labels, r->labels, r->labels_n)) ||
		(rc = alerts_set_all(t, &notes, r->annotations, r->annotations_n)))
		return rc;
	labels_builder_del(&labels, STR(LABEL_NAME));
	labels_builder_set(&labels, STR(ALERT_NAME), r->name);
	if ((rc = labels_builder_build(&labels, &l, t->err)) ||
		(rc = labels_builder_build(&notes, &a, t->err)))
		return rc;
	if (!(e = alerts_entry_new(l, a)))
		return err_nomem(t->err, "alerts");
	e->alert.phase = ALERT_PENDING;
	e->alert.value = from->value;
	e->alert.active_at_ns = t->t_ns;
	e->seen = true;
	t->v[t->n++] = e;
	arena_reset(&t->arena);
	return ERR_OK;
}

static int alerts_by_labels(const void *a, const void *b)
{
	return labels_cmp((*(struct alerts_entry *const *)a)->alert.labels,
		(*(struct alerts_entry *const *)b)->alert.labels);
}

static enum err_code alerts_check_distinct(struct alerts_taking *a)
{
	if (a->n)
		qsort(a->v, a->n, sizeof(struct alerts_entry *), alerts_by_labels);
	for (size_t i = 1; i < a->n; i++)
		if (alerts_by_labels(&a->v[i - 1], &a->v[i]) == 0)
			return err_set(a->err, ERR_INVALID,
				"vector contains metrics with the same labelset after applying "
				"alert labels");
	return ERR_OK;
}

/* ---- what becomes of alerts ---- */

/* The old alert goes on with the value and annotations of the new one. */
static void alerts_entry_carry_on(struct alerts_entry *old, struct alerts_entry *found)
{
	free(old->annotations_memory);
	old->annotations_memory = found->annotations_memory;
	old->alert.annotations = found->alert.annotations;
	old->alert.value = found->alert.value;
	old->seen = true;
	found->annotations_memory = NULL;
	alerts_entry_free(found);
}

/* Merges what was found into the alerts. Both are in order; `all` has room for both. */
static void alerts_join(struct alerts_taking *a, struct alerts_entry **all)
{
	struct alert_state *s = a->s;
	size_t i = 0, k = 0, n = 0;
	int d;

	while (i < s->n || k < a->n) {
		d = i == s->n ? 1 : k == a->n ? -1 : alerts_by_labels(&s->v[i], &a->v[k]);
		if (d < 0) {
			all[n++] = s->v[i++];
		} else if (d > 0) {
			all[n++] = a->v[k++];
		} else if (s->v[i]->alert.phase != ALERT_INACTIVE) {
			alerts_entry_carry_on(s->v[i], a->v[k++]);
			all[n++] = s->v[i++];
		} else { /* it was resolved and begins anew */
			alerts_entry_free(s->v[i++]);
			all[n++] = a->v[k++];
		}
	}
	for (size_t j = 1; j < n; j++)
		assert(alerts_by_labels(&all[j - 1], &all[j]) < 0);
	free(s->v);
	s->v = all;
	s->n = n;
	a->n = 0;
}

/* An alert that was not found. True while keep_firing_for keeps it firing. */
static bool alert_lapse(struct alert *a, const struct rule *r, int64_t t_ns, bool *gone)
{
	bool keep = false;

	if (a->phase == ALERT_FIRING && r->keep_firing_for_ns > 0) {
		if (!a->keep_firing_since_ns)
			a->keep_firing_since_ns = t_ns;
		keep = t_ns - a->keep_firing_since_ns < r->keep_firing_for_ns;
	}
	*gone = a->phase == ALERT_PENDING ||
		(a->resolved_at_ns && t_ns - a->resolved_at_ns > ALERT_RESOLVED_KEPT_NS);
	if (a->phase != ALERT_INACTIVE && !keep) {
		a->phase = ALERT_INACTIVE;
		a->resolved_at_ns = t_ns;
	}
	return keep;
}

static size_t alert_state_move_on(struct alert_state *s, int64_t t_ns)
{
	size_t kept = 0, active = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct alerts_entry *e = s->v[i];
		struct alert *a = &e->alert;
		bool gone = false, counts = true;

		if (e->seen)
			a->keep_firing_since_ns = 0;
		else
			counts = alert_lapse(a, s->rule, t_ns, &gone);
		e->seen = false;
		if (gone) {
			alerts_entry_free(e);
			continue;
		}
		s->v[kept++] = e;
		active += counts;
		if (counts && a->phase == ALERT_PENDING && t_ns - a->active_at_ns >= s->rule->for_ns) {
			a->phase = ALERT_FIRING;
			a->fired_at_ns = t_ns;
		}
	}
	s->n = kept;
	return active;
}

enum err_code alert_state_take(struct alert_state *s, struct mutex *lock,
	const struct alert_element *a, size_t n, int64_t t_ns, const struct template_data *data,
	struct err *err)
{
	struct alerts_taking x = { .s = s, .t_ns = t_ns, .data = *data, .err = err };
	struct alerts_entry **all = NULL;
	enum err_code rc = ERR_OK;
	size_t active;

	arena_init(&x.arena, SCRATCH_MAX);
	x.v = calloc(n + 1, sizeof(*x.v));
	all = calloc(n + s->n + 1, sizeof(*all));
	if (!x.v || !all)
		rc = err_nomem(err, "alerts");
	for (size_t i = 0; i < n && !rc; i++)
		rc = alerts_find(&x, &a[i]);
	if (rc || (rc = alerts_check_distinct(&x))) {
		free(all);
		goto out;
	}
	if (lock)
		mutex_lock(lock);
	alerts_join(&x, all);
	active = alert_state_move_on(s, t_ns);
	if (s->group->limit && active > s->group->limit) {
		alert_state_clear(s);
		rc = err_set(
			err, ERR_LIMIT, "exceeded limit of %zu with %zu alerts", s->group->limit, active);
	}
	if (lock)
		mutex_unlock(lock);
out:
	for (size_t i = 0; i < x.n; i++)
		alerts_entry_free(x.v[i]);
	free(x.v);
	arena_release(&x.arena);
	return rc;
}

struct alert *alert_state_at(struct alert_state *s, size_t i)
{
	return i < s->n ? &s->v[i]->alert : NULL;
}

enum alert_phase alert_state_phase(const struct alert_state *s)
{
	enum alert_phase worst = ALERT_INACTIVE;

	for (size_t i = 0; i < s->n; i++)
		if (s->v[i]->alert.phase > worst)
			worst = s->v[i]->alert.phase;
	return worst;
}

bool alert_due(struct alert *a, int64_t t_ns, int64_t resend_ns, int64_t interval_ns)
{
	if (a->phase == ALERT_PENDING)
		return false;
	/* An earlier time than the last one: the clock was set back. Send at once. */
	if (a->last_sent_ns && a->resolved_at_ns <= a->last_sent_ns && t_ns >= a->last_sent_ns &&
		t_ns - a->last_sent_ns < resend_ns)
		return false;
	a->last_sent_ns = t_ns;
	a->valid_until_ns = t_ns + 4 * (interval_ns > resend_ns ? interval_ns : resend_ns);
	return true;
}

static struct alert *alert_state_find(struct alert_state *s, struct labels labels)
{
	struct alerts_entry wanted = { .alert.labels = labels }, *key = &wanted, **found;

	found = s->n ? bsearch(&key, s->v, s->n, sizeof(*s->v), alerts_by_labels) : NULL;
	return found ? &(*found)->alert : NULL;
}

void alert_state_restore(
	struct alert_state *s, struct labels labels, int64_t active_at_ns, int64_t t_ns)
{
	struct alert *a = alert_state_find(s, labels);

	if (a && a->phase != ALERT_INACTIVE)
		a->active_at_ns = active_at_ns < t_ns ? active_at_ns : t_ns;
}

/* It began to fire at the first evaluation at which `for` had passed. */
void alert_state_resume(struct alert_state *s, struct labels labels, int64_t t_ns)
{
	struct alert *a = alert_state_find(s, labels);
	int64_t interval = s->group->interval_ns, for_ns = s->rule->for_ns;

	if (!a || a->phase == ALERT_INACTIVE || t_ns - a->active_at_ns < for_ns)
		return;
	a->phase = ALERT_FIRING;
	a->fired_at_ns = a->active_at_ns + (for_ns + interval - 1) / interval * interval;
	if (a->fired_at_ns > t_ns)
		a->fired_at_ns = t_ns;
}
