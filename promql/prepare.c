/*
 * What the text of a query says about labels of samples, before anything is read: names in `by`.
 */
#include <assert.h>

#include "promql/eval.h"
#include "promql/profiles/filter.h"
#include "promql/syntax/functions.h"

static size_t prepare_add_names(struct eval *ev, const struct expr *e)
{
	const struct call *c = &e->call;
	size_t n = 0;

	switch (e->kind) {
	case EXPR_PAREN:
		return prepare_add_names(ev, e->paren);
	case EXPR_UNARY:
		return prepare_add_names(ev, e->unary.arg);
	case EXPR_SUBQUERY:
		return prepare_add_names(ev, e->subquery.arg);
	case EXPR_BINARY:
		return prepare_add_names(ev, e->binary.lhs) + prepare_add_names(ev, e->binary.rhs);
	case EXPR_CALL:
		for (size_t i = 0; i < c->args_n; i++)
			n += prepare_add_names(ev, c->args[i]);
		if (filter_is_tag(c->fn->id) || c->fn->id == FN_TAGROOT || c->fn->id == FN_TAGLEAF)
			ev->all_sample_labels = true;
		if (c->grouping != GROUPING_BY || !(c->fn->args[0] & VALUE_PROFILES))
			return n;
		for (size_t i = 0; i < c->labels.n; i++) {
			if ((c->fn->flags & FUNCTION_FRAMES_BY) &&
				frame_field_find(c->labels.v[i]) != FRAME_FIELDS)
				continue;
			if (ev->label_names)
				ev->label_names[ev->label_names_n++] = c->labels.v[i];
			n++;
		}
		return n;
	case EXPR_NUMBER:
	case EXPR_STRING:
	case EXPR_SELECTOR:
		break;
	}
	return n;
}

enum err_code eval_prepare(struct eval *ev, struct err *err)
{
	size_t n = prepare_add_names(ev, ev->work.query->root); /* counts first */

	assert(ev->work.query->root->types); /* checked */
	if (n == 0)
		return ERR_OK;
	if (!(ev->label_names = arena_array(ev->work.arena, struct str, n)))
		return work_nomem(&ev->work, err);
	prepare_add_names(ev, ev->work.query->root);
	return ERR_OK;
}
