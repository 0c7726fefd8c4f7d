#include "base/quote.h"
#include "cmd/epitool/convert/alloy_parts.h"
#include "scrape/config/foreign.h"

#define REFERENCES_MAX 32u /* on the way from a component to its targets */

/* ---- components ---- */

bool alloy_step(const struct alloy_file *f)
{
	return ++*f->steps <= ALLOY_STEPS_MAX;
}

const struct alloy_statement *alloy_component(const struct alloy_file *f, struct str reference)
{
	struct str rest;

	for (const struct alloy_statement *s = f->statements; s && alloy_step(f); s = s->next) {
		if (s->value || !str_has_prefix(reference, s->name))
			continue;
		rest = (struct str){ reference.ptr + s->name.len, reference.len - s->name.len };
		if (!rest.len || rest.ptr[0] != '.')
			continue;
		rest = (struct str){ rest.ptr + 1, rest.len - 1 };
		if (str_has_prefix(rest, s->label) && rest.len > s->label.len &&
			rest.ptr[s->label.len] == '.' && s->label.len)
			return s;
	}
	return NULL;
}

const char *alloy_title(struct conversion *c, const struct alloy_statement *block)
{
	char *made = block->label.len ? arena_printf(c->arena, STR_FMT " \"" STR_FMT "\"",
										STR_ARG(block->name), STR_ARG(block->label)) :
									arena_printf(c->arena, STR_FMT, STR_ARG(block->name));

	c->failed |= !made;
	return made ? made : "";
}

/* ---- where targets come from ---- */

struct convert_walk {
	const struct alloy_file *file;
	struct item *at;
	struct alloy_origin *first, **tail;
	size_t n;
};

static void convert_walk_add_origin(struct convert_walk *w, const struct alloy_expr *target,
	const struct alloy_statement *discovery, const struct alloy_chain *chain)
{
	struct alloy_origin *o = arena_new(w->file->x->arena, struct alloy_origin);

	if (!o || w->n++ >= ALLOY_ORIGINS_MAX) {
		w->file->x->failed |= !o;
		return;
	}
	*o = (struct alloy_origin){ .target = target, .discovery = discovery, .chain = chain };
	*w->tail = o;
	w->tail = &o->next;
}

static void convert_walk_cannot_follow(struct convert_walk *w, const struct alloy_expr *e)
{
	struct str s = e->source;

	if (s.len > 80)
		s.len = 80;
	item_note(w->file->x, w->at, e->line, e->column,
		"targets of %s cannot be followed: write where they are", QUOTED(s));
}

static void convert_walk_follow(struct convert_walk *w, const struct alloy_expr *e,
	const struct alloy_chain *chain, unsigned depth);

static void convert_walk_follow_name(struct convert_walk *w, const struct alloy_expr *e,
	const struct alloy_chain *chain, unsigned depth)
{
	const struct alloy_statement *s = alloy_component(w->file, e->text);
	const struct alloy_expr *targets;
	struct alloy_chain *longer;

	if (s && str_is(s->name, "discovery.relabel") && (targets = alloy_attribute(s, "targets"))) {
		longer = arena_new(w->file->x->arena, struct alloy_chain);
		if (!longer) {
			w->file->x->failed = true;
			return;
		}
		*longer = (struct alloy_chain){ s, chain };
		convert_walk_follow(w, targets, longer, depth + 1);
	} else if (s && str_has_prefix(s->name, STR("discovery."))) {
		convert_walk_add_origin(w, NULL, s, chain);
	} else {
		convert_walk_cannot_follow(w, e);
	}
}

/* Fan-out is bounded by the number of origins, loops by the depth. */
static void convert_walk_follow(struct convert_walk *w, const struct alloy_expr *e,
	const struct alloy_chain *chain, unsigned depth)
{
	bool joins = e->kind == ALLOY_CALL &&
		(str_is(e->child->text, "concat") || str_is(e->child->text, "array.concat"));
	const struct alloy_expr *c = joins ? e->child->next : e->child;

	if (!alloy_step(w->file))
		return;
	if (depth > REFERENCES_MAX || w->n > ALLOY_ORIGINS_MAX)
		convert_walk_cannot_follow(w, e);
	else if (e->kind == ALLOY_NAME)
		convert_walk_follow_name(w, e, chain, depth);
	else if (e->kind == ALLOY_OBJECT)
		convert_walk_add_origin(w, e, NULL, chain);
	else if (e->kind == ALLOY_LIST || joins)
		for (; c && w->n <= ALLOY_ORIGINS_MAX; c = c->next)
			convert_walk_follow(w, c, chain, depth + 1);
	else
		convert_walk_cannot_follow(w, e);
}

struct alloy_origin *alloy_origins(
	const struct alloy_file *f, struct item *at, const struct alloy_expr *targets)
{
	struct convert_walk w = { .file = f, .at = at };

	w.tail = &w.first;
	convert_walk_follow(&w, targets, NULL, 0);
	if (w.n > ALLOY_ORIGINS_MAX)
		item_note(f->x, at, targets->line, targets->column,
			"more than %u targets: the rest is lost", ALLOY_ORIGINS_MAX);
	return w.first;
}

/* ---- into a job ---- */

/* Chains are made anew on each way, so the same is one of the same components. */
static bool convert_same_chain(const struct alloy_chain *a, const struct alloy_chain *b)
{
	while (a && b && a->relabel == b->relabel) {
		a = a->next;
		b = b->next;
	}
	return !a && !b;
}

static bool convert_same_labels(const struct alloy_expr *a, const struct alloy_expr *b)
{
	const struct alloy_expr *x = a->child, *y = b->child;

	while (x && y && str_eq(x->key, y->key) &&
		(str_is(x->key, "__address__") || str_eq(x->source, y->source))) {
		x = x->next;
		y = y->next;
	}
	return !x && !y;
}

static const struct alloy_expr *convert_field(const struct alloy_expr *object, const char *name)
{
	for (const struct alloy_expr *c = object->child; c; c = c->next)
		if (str_is(c->key, name))
			return c;
	return NULL;
}

static void convert_add_labels(
	struct conversion *conversion, struct item *group, const struct alloy_expr *target)
{
	struct item *labels = NULL;

	for (const struct alloy_expr *c = target->child; c; c = c->next) {
		if (str_is(c->key, "__address__"))
			continue;
		labels = labels ? labels : item_mapping(conversion, group, "labels");
		if (str_is(c->key, "__profile_path_prefix__"))
			item_note(conversion, labels, c->line, c->column,
				"__profile_path_prefix__ is not known here: write path_prefix in profiling_config");
		else
			alloy_add_value(conversion, labels, c->key, c);
	}
}

/* Targets with the same labels are one group. */
static void convert_add_group(
	struct conversion *c, struct item *statics, struct alloy_origin *first)
{
	struct item *group = item_mapping(c, statics, ""),
				*targets = item_sequence(c, group, "targets");

	for (struct alloy_origin *o = first; o; o = o->next) {
		const struct alloy_expr *address = o->target ? convert_field(o->target, "__address__") :
													   NULL;

		if (!o->target || o->done || !convert_same_chain(o->chain, first->chain) ||
			!convert_same_labels(o->target, first->target))
			continue;
		o->done = true;
		if (address)
			alloy_add_value(c, targets, STR(""), address);
		else
			item_note(c, group, o->target->line, o->target->column, "a target has no __address__");
	}
	convert_add_labels(c, group, first->target);
}

static void convert_add_discovery(
	const struct alloy_file *f, struct item *job, const struct alloy_statement *s)
{
	struct conversion *x = f->x;
	struct str kind = { s->name.ptr + strlen("discovery."), s->name.len - strlen("discovery.") };
	char *key = arena_printf(x->arena, STR_FMT "_sd_configs", STR_ARG(kind));
	const struct yaml_foreign *foreign;
	struct item *list, *entry;

	if (!key) {
		x->failed = true;
		return;
	}
	list = item_find(job, key);
	if (!list)
		list = item_sequence(x, job, key);
	entry = item_mapping(x, list, "");
	if (s->comment.len)
		item_comment(x, entry, STR_FMT, STR_ARG(s->comment));
	alloy_add_block(x, entry, s);
	if (yaml_field_find(&config_job_schema, str_of(key)))
		return;
	foreign = yaml_foreign_find(&config_job_schema, str_of(key));
	item_leave_out(x, list, s->line, s->column, alloy_title(x, s), "%s",
		foreign ? foreign->text : "this server does not find targets so");
}

void alloy_add_origins(const struct alloy_file *f, struct item *job, struct alloy_origin *first)
{
	struct item *statics = NULL;

	for (struct alloy_origin *o = first; o; o = o->next) {
		if (o->done || !convert_same_chain(o->chain, first->chain))
			continue;
		if (o->discovery) {
			o->done = true;
			convert_add_discovery(f, job, o->discovery);
			continue;
		}
		statics = statics ? statics : item_sequence(f->x, job, "static_configs");
		convert_add_group(f->x, statics, o);
	}
}
