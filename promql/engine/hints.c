/*
 * Hints: an empty answer whose selectors name what is not stored says so, and what is near it.
 *
 * A hint names only the first such name of a selector: it looks for a label among those of the
 * type. The names are those of the query's own time, so a hint never names what a second try would
 * not find.
 */
#include <stdio.h>

#include "base/quote.h"
#include "promql/engine/engine_internal.h"
#include "promql/eval.h"
#include "promql/syntax/type_names.h"
#include "proto/annotation.h"

#define HINTS_VALUES_MAX 10000u /* of one label that are compared */
#define HINTED_MAX 4u /* selectors of a query */

struct hints {
	struct query *q;
	struct eval *ev;
	struct profile_type *types;
	size_t types_n;
	struct str *names; /* of all series */
	size_t names_n;
};

static bool hints_holds(const struct str *s, size_t n, struct str name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(s[i], name))
			return true;
	return false;
}

/* *stored: the name of the series that the selector means; empty: there are none. */
static void hints_find_type(const struct hints *h, struct str name, struct str *stored)
{
	struct type_pattern p;

	*stored = STR("");
	if (hints_holds(h->names, h->names_n, name)) {
		*stored = name;
		return;
	}
	if (!type_pattern_parse(name, &p))
		return;
	if (str_is(p.name, ANNOTATION_NAME)) { /* in no list, and there may be some */
		*stored = p.name;
		return;
	}
	for (size_t i = 0; i < h->types_n && !stored->len; i++)
		if (type_pattern_match(&p, &h->types[i]))
			*stored = p.name;
}

/* The ways to write a type: in short, by its sample type, in full. */
static enum err_code hints_try_type(
	struct hints *h, struct nearest *near, const struct profile_type *t, struct err *err)
{
	struct str shorts[] = { t->name, STR("") }, text;
	struct buf b = { 0 };
	enum err_code rc = ERR_OK;

	if (str_is(t->name, "process_cpu"))
		shorts[1] = STR("cpu");
	for (size_t i = 0; i < 2 && !rc; i++) {
		if (!shorts[i].len)
			continue;
		nearest_try(near, shorts[i]);
		buf_clear(&b);
		buf_printf(&b, STR_FMT ":" STR_FMT, STR_ARG(shorts[i]), STR_ARG(t->sample_type));
		text = str_dup(&h->q->arena, buf_str(&b));
		if (!text.ptr)
			rc = arena_fail(&h->q->arena, "hints", err);
		else
			nearest_try(near, text);
	}
	buf_release(&b);
	return rc;
}

static enum err_code hint_type(struct hints *h, struct str name, struct err *err)
{
	struct nearest near = nearest_to(name);
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < h->names_n; i++)
		nearest_try(&near, h->names[i]);
	for (size_t i = 0; i < h->types_n && !rc; i++)
		rc = hints_try_type(h, &near, &h->types[i], err);
	return rc ? rc :
				work_info(&h->ev->work, err, "no type or series is named %s in this time range%s",
					QUOTED(name), DID_YOU_MEAN(&near));
}

/* *said: the matcher tests what no such series has. */
static enum err_code hint_matcher(struct hints *h, const struct selector *s,
	const struct matcher *m, const struct matcher *of, size_t of_n, bool *said, struct err *err)
{
	struct arena *a = &h->q->arena;
	struct nearest near = nearest_to(m->name);
	char what[280] = "series";
	struct str *v, *all;
	size_t n, all_n;
	enum err_code rc;

	if (s->name.len)
		snprintf(what, sizeof(what), "series of %s", QUOTED(s->name));
	if ((rc = db_label_names(h->q->querier, of, of_n, 0, a, &v, &n, err)) ||
		(rc = db_label_names(h->q->querier, NULL, 0, 0, a, &all, &all_n, err)))
		return rc;
	/* Labels of samples are only among all. */
	if (!hints_holds(v, n, m->name) && !hints_holds(all, all_n, m->name)) {
		for (size_t i = 0; i < n; i++)
			nearest_try(&near, v[i]);
		*said = true;
		return work_info(&h->ev->work, err, "no %s has a label %s in this time range%s", what,
			QUOTED(m->name), DID_YOU_MEAN(&near));
	}
	if ((rc = db_label_values(
			 h->q->querier, m->name, of, of_n, HINTS_VALUES_MAX, a, &v, &n, err)) ||
		!n || n > HINTS_VALUES_MAX || hints_holds(v, n, m->value))
		return rc;
	near = nearest_to(m->value);
	for (size_t i = 0; i < n; i++)
		nearest_try(&near, v[i]);
	*said = true;
	return work_info(&h->ev->work, err, "no %s has " STR_FMT "=%s in this time range%s", what,
		STR_ARG(m->name), QUOTED(m->value), DID_YOU_MEAN(&near));
}

static enum err_code hint_selector(struct hints *h, const struct selector *s, struct err *err)
{
	struct matcher of;
	struct str stored = STR("");
	size_t of_n = 0;
	bool said = false;
	enum err_code rc = ERR_OK;

	if (s->name.len) {
		hints_find_type(h, s->name, &stored);
		if (!stored.len)
			return hint_type(h, s->name, err);
		of_n = 1;
		if ((rc = matcher_init(&of, MATCH_EQ, STR(LABEL_NAME), stored, err)))
			return rc;
	}
	for (size_t i = 0; i < s->matchers_n && !rc && !said; i++) {
		const struct matcher *m = &s->matchers[i];

		if (m->op == MATCH_EQ && m->value.len && !str_has_prefix(m->name, STR("__")))
			rc = hint_matcher(h, s, m, &of, of_n, &said, err);
	}
	if (of_n)
		matcher_release(&of);
	return rc;
}

enum err_code hints_add(struct query *q, struct eval *ev, struct err *err)
{
	struct hints h = { .q = q, .ev = ev };
	const struct expr *e = q->parsed->selectors;
	enum err_code rc;

	if (!q->querier)
		return ERR_OK;
	rc = db_profile_types(q->querier, &q->arena, &h.types, &h.types_n, err);
	if (!rc)
		rc = db_label_values(
			q->querier, STR(LABEL_NAME), NULL, 0, 0, &q->arena, &h.names, &h.names_n, err);
	/* Where nothing at all is stored, no name is wrong. */
	for (unsigned i = 0; e && i < HINTED_MAX && !rc && h.names_n; e = e->selector.next, i++)
		if (e->types != VALUE_FRAMES)
			rc = hint_selector(&h, &e->selector, err);
	return rc == ERR_CANCELED ? rc : ERR_OK; /* the answer is right without a hint */
}
