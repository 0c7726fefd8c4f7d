/*
 * Rules that are given twice: same kind, name and labels. They write the same series, or send the
 * same alert, and which of them wins is luck.
 */
#include <stdlib.h>

#include "promql/rules/rules.h"

static int rule_by_identity(const struct rule *a, const struct rule *b)
{
	int order = (a->kind == RULE_ALERT) - (b->kind == RULE_ALERT);

	if (order || (order = str_cmp(a->name, b->name)))
		return order;
	for (size_t i = 0; i < a->labels_n && i < b->labels_n; i++)
		if ((order = str_cmp(a->labels[i].name, b->labels[i].name)) ||
			(order = str_cmp(a->labels[i].text, b->labels[i].text)))
			return order;
	return a->labels_n < b->labels_n ? -1 : a->labels_n > b->labels_n;
}

/* Rules of a group lie in one array, groups in the order of their files. */
static int rule_duplicates_by_identity_and_place(const void *a, const void *b)
{
	const struct rule *x = *(const struct rule *const *)a, *y = *(const struct rule *const *)b;
	int order = rule_by_identity(x, y);

	if (!order && x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return order ? order : x < y ? -1 : x > y;
}

static int rule_duplicates_by_place(const void *a, const void *b)
{
	const struct rule *x = ((const struct rule_duplicate *)a)->again,
					  *y = ((const struct rule_duplicate *)b)->again;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x < y ? -1 : x > y;
}

enum err_code rule_set_duplicates(const struct rule_set *s, struct arena *a,
	struct rule_duplicate **out, size_t *n, struct err *err)
{
	const struct rule **v = arena_array(a, const struct rule *, s->rules_n + 1);
	struct rule_duplicate *found = arena_array(a, struct rule_duplicate, s->rules_n + 1);
	size_t rules_n = 0, k = 0, first = 0;

	if (!v || !found)
		return arena_fail(a, "rules", err);
	for (size_t i = 0; i < s->groups_n; i++)
		for (size_t r = 0; r < s->groups[i].rules_n; r++)
			v[rules_n++] = &s->groups[i].rules[r];
	qsort(v, rules_n, sizeof(*v), rule_duplicates_by_identity_and_place);
	for (size_t i = 1; i < rules_n; i++) {
		if (rule_by_identity(v[first], v[i]))
			first = i;
		else
			found[k++] = (struct rule_duplicate){ v[first], v[i] };
	}
	qsort(found, k, sizeof(*found), rule_duplicates_by_place);
	*out = found;
	*n = k;
	return ERR_OK;
}

void rule_duplicate_print(struct buf *out, const struct rule_duplicate *d)
{
	const struct rule *r = d->again, *first = d->first;

	buf_printf(out,
		STR_FMT ":%u:%u: group \"" STR_FMT "\", \"" STR_FMT "\": the %s at " STR_FMT
				":%u:%u has the same name and labels",
		STR_ARG(r->group->file), r->line, r->column, STR_ARG(r->group->name), STR_ARG(r->name),
		r->kind == RULE_ALERT ? "alert" : "rule", STR_ARG(first->group->file), first->line,
		first->column);
}
