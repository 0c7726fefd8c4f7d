/*
 * Renders templates: walks the tree, bounded by steps, bytes of output and memory.
 */
#include "promql/rules/template/internal.h"

#include <stdio.h>

#define MEMORY_MAX ((size_t)32 << 20)

struct variable {
	struct str name;
	struct tv value;
	struct variable *next;
};

#define fault(r, at, ...) template_fault((r)->t->text, (at), (r)->err, ERR_INVALID, __VA_ARGS__)

static enum err_code template_step(struct rendering *r, uint32_t at)
{
	if (++r->steps > TEMPLATE_STEPS_MAX)
		return template_fault(
			r->t->text, at, r->err, ERR_LIMIT, "more than %u steps", TEMPLATE_STEPS_MAX);
	if (r->out->len - r->out_start > TEMPLATE_BYTES_MAX)
		return template_fault(
			r->t->text, at, r->err, ERR_LIMIT, "more than %u bytes", TEMPLATE_BYTES_MAX);
	return buf_failed(r->out) ? err_set(r->err, ERR_NOMEM, "template: out of memory") : ERR_OK;
}

/* ---- variables ---- */

static enum err_code template_push(struct rendering *r, struct str name, struct tv value)
{
	struct variable *v = arena_new(&r->arena, struct variable);

	if (!v)
		return arena_fail(&r->arena, "template", r->err);
	*v = (struct variable){ name, value, r->variables };
	r->variables = v;
	return ERR_OK;
}

static struct tv *template_find(struct rendering *r, struct str name)
{
	struct variable *v = r->variables;

	while (v && !str_eq(v->name, name))
		v = v->next;
	return v ? &v->value : NULL;
}

/* ---- fields ---- */

static enum err_code template_no_field(
	struct rendering *r, uint32_t at, struct str name, const char *type)
{
	return fault(r, at, "can't evaluate field " STR_FMT " in type %s", STR_ARG(name), type);
}

static enum err_code template_field(
	struct rendering *r, uint32_t at, struct tv t, struct str name, struct tv *out)
{
	const struct template_data *d = r->data;

	switch (t.kind) {
	case TV_LABELS: /* what is missing is empty */
		*out = (struct tv){ TV_STRING, .s = labels_get(t.labels, name) };
		return ERR_OK;
	case TV_ARGS:
		*out = tv_arg(&t, name);
		return ERR_OK;
	case TV_SAMPLE:
		if (str_is(name, "Labels"))
			*out = (struct tv){ TV_LABELS, .labels = t.sample->labels };
		else if (str_is(name, "Value"))
			*out = (struct tv){ TV_FLOAT, .f = t.sample->value };
		else
			break;
		return ERR_OK;
	case TV_DATA:
		if (str_is(name, "Labels"))
			*out = (struct tv){ TV_LABELS, .labels = d->labels };
		else if (str_is(name, "ExternalLabels"))
			*out = (struct tv){ TV_LABELS, .labels = d->external_labels };
		else if (str_is(name, "ExternalURL"))
			*out = (struct tv){ TV_STRING, .s = d->external_url };
		else if (str_is(name, "Value"))
			*out = (struct tv){ TV_FLOAT, .f = d->value };
		else
			break;
		return ERR_OK;
	case TV_NIL:
		return fault(r, at, "nil pointer evaluating interface {}." STR_FMT, STR_ARG(name));
	default:
		break;
	}
	return template_no_field(r, at, name, tv_type_name(&t));
}

/* ---- operands ---- */

static enum err_code template_eval_pipe(
	struct rendering *r, const struct pipe *p, const struct tv *dot, struct tv *out);
static enum err_code template_exec_call(struct rendering *r, const struct operand *o,
	const struct operand *args, size_t args_n, const struct tv *dot, const struct tv *final,
	struct tv *out);

static enum err_code template_eval_operand(
	struct rendering *r, const struct operand *o, const struct tv *dot, struct tv *out)
{
	enum err_code rc = template_step(r, o->at);
	struct tv *known;

	if (rc)
		return rc;
	switch (o->kind) {
	case OPERAND_FUNCTION:
		rc = template_exec_call(r, o, NULL, 0, dot, NULL, out);
		break;
	case OPERAND_DOT:
		*out = *dot;
		break;
	case OPERAND_VARIABLE:
		if (!(known = template_find(r, o->text)))
			return fault(r, o->at, "undefined variable: " STR_FMT, STR_ARG(o->text));
		*out = *known;
		break;
	case OPERAND_STRING:
		*out = (struct tv){ TV_STRING, .s = o->text };
		break;
	case OPERAND_INT:
		*out = (struct tv){ TV_INT, .i = o->i };
		break;
	case OPERAND_FLOAT:
		*out = (struct tv){ TV_FLOAT, .f = o->f };
		break;
	case OPERAND_BOOL:
		*out = (struct tv){ TV_BOOL, .b = o->i != 0 };
		break;
	case OPERAND_NIL:
		*out = (struct tv){ TV_NIL };
		break;
	case OPERAND_PIPE:
		rc = template_eval_pipe(r, o->pipe, dot, out);
		break;
	}
	for (size_t i = 0; i < o->fields_n && !rc; i++)
		rc = template_field(r, o->at, *out, o->fields[i], out);
	return rc;
}

/* ---- calls ---- */

static enum err_code template_check_param(
	struct rendering *r, const struct operand *o, enum param want, const struct tv *t)
{
	static const char *const names[] = { "interface {}", "string", "template.queryResult",
		"*template.sample" };
	static const enum tv_kind kinds[] = { TV_NIL, TV_STRING, TV_SAMPLES, TV_SAMPLE };
	bool constant = o->kind == OPERAND_INT || o->kind == OPERAND_FLOAT || o->kind == OPERAND_BOOL;

	if (want == PARAM_ANY || t->kind == kinds[want])
		return ERR_OK;
	if (constant && want == PARAM_STRING)
		return fault(r, o->at, "expected string; found " STR_FMT, STR_ARG(o->text));
	if (t->kind == TV_NIL)
		return fault(r, o->at, "invalid value; expected %s", names[want]);
	return fault(
		r, o->at, "wrong type for value; expected %s; got %s", names[want], tv_type_name(t));
}

static enum err_code template_check_count(struct rendering *r, const struct operand *o, size_t n)
{
	const struct template_function *fn = o->fn;

	if (n < fn->min && fn->min != fn->max)
		return fault(r, o->at, "wrong number of args for %s: want at least %u got %zu", fn->name,
			fn->min, n);
	if (n < fn->min || n > fn->max)
		return fault(
			r, o->at, "wrong number of args for %s: want %u got %zu", fn->name, fn->max, n);
	return ERR_OK;
}

/* and, or: the first argument that decides, or the last. */
static enum err_code template_call_lazy(struct rendering *r, const struct operand *o,
	const struct operand *args, const struct tv *dot, const struct tv *final, struct tv *out)
{
	enum err_code rc;

	for (; args; args = args->next)
		if ((rc = template_eval_operand(r, args, dot, out)) || tv_truth(out) == o->fn->variant)
			return rc;
	if (final)
		*out = *final;
	return ERR_OK;
}

static enum err_code template_exec_call(struct rendering *r, const struct operand *o,
	const struct operand *args, size_t args_n, const struct tv *dot, const struct tv *final,
	struct tv *out)
{
	const struct template_function *fn = o->fn;
	size_t n = args_n + (final != NULL), last = sizeof(fn->params) / sizeof(fn->params[0]) - 1;
	struct tv *v;
	struct err why;
	enum err_code rc;

	if ((rc = template_check_count(r, o, n)))
		return rc;
	if (!fn->call)
		return template_call_lazy(r, o, args, dot, final, out);
	if (!(v = arena_array(&r->arena, struct tv, n + 1)))
		return arena_fail(&r->arena, "template", r->err);
	for (size_t i = 0; i < n; i++, args = args ? args->next : NULL) {
		if (args)
			rc = template_eval_operand(r, args, dot, &v[i]);
		else
			v[i] = *final;
		if (rc ||
			(rc = template_check_param(r, args ? args : o, fn->params[i < last ? i : last], &v[i])))
			return rc;
	}
	rc = fn->call(r, fn, v, n, out, &why);
	if (rc == ERR_INVALID || rc == ERR_LIMIT)
		return template_fault(
			r->t->text, o->at, r->err, rc, "error calling %s: %s", fn->name, why.msg);
	return rc ? err_copy(r->err, &why) : ERR_OK;
}

/* ---- pipelines ---- */

static enum err_code template_eval_command(struct rendering *r, const struct template_command *c,
	const struct tv *dot, const struct tv *final, struct tv *out)
{
	const struct operand *o = c->first;
	enum err_code rc = template_step(r, o->at);

	if (rc)
		return rc;
	if (o->kind == OPERAND_FUNCTION && !o->fields_n)
		return template_exec_call(r, o, o->next, c->n - 1, dot, final, out);
	if (c->n > 1 || final)
		return fault(r, o->at, "can't give argument to non-function");
	if (o->kind == OPERAND_NIL)
		return fault(r, o->at, "nil is not a command");
	return template_eval_operand(r, o, dot, out);
}

static enum err_code template_eval_pipe(
	struct rendering *r, const struct pipe *p, const struct tv *dot, struct tv *out)
{
	const struct tv *final = NULL;
	struct tv before, *known;
	enum err_code rc;

	for (const struct template_command *c = p->first; c; c = c->next) {
		if ((rc = template_eval_command(r, c, dot, final, out)))
			return rc;
		before = *out;
		final = &before;
	}
	for (size_t i = 0; i < p->variables_n; i++) {
		if (!p->assigns) {
			if ((rc = template_push(r, p->variables[i], *out)))
				return rc;
		} else if ((known = template_find(r, p->variables[i]))) {
			*known = *out;
		}
	}
	return ERR_OK;
}

/* ---- nodes ---- */

static enum err_code template_walk(
	struct rendering *r, const struct template_node *n, const struct tv *dot);

struct ranging {
	const struct template_node *n;
	const struct tv *dot; /* outside */
	struct variable *outer;
};

/* One pass through a body. *more: go on with the next. */
static enum err_code template_range_once(struct rendering *r, const struct ranging *ranging,
	struct tv key, struct tv element, bool *more)
{
	const struct pipe *p = ranging->n->pipe;
	struct tv *known;
	enum err_code rc = template_step(r, p->at);

	for (size_t i = 0; i < p->variables_n && !rc; i++) {
		struct tv v = i + 1 < p->variables_n ? key : element;

		if (!p->assigns) {
			if ((rc = template_push(r, p->variables[i], v)))
				return rc;
		} else if ((known = template_find(r, p->variables[i]))) {
			*known = v;
		}
	}
	if (!rc)
		rc = template_walk(r, ranging->n->body, &element);
	r->variables = ranging->outer;
	*more = !r->breaks;
	r->breaks = r->continues = false;
	return rc;
}

/* Names of args in the order of Go's maps: arg10 comes before arg2. */
static enum err_code template_range_args(
	struct rendering *r, const struct ranging *ranging, const struct tv *t)
{
	struct label *names = arena_array(&r->arena, struct label, t->n);
	struct labels_builder b;
	struct labels sorted;
	bool more = true;
	struct tv element;
	enum err_code rc;

	if (!names)
		return arena_fail(&r->arena, "template", r->err);
	labels_builder_init(&b, &r->arena, (struct labels){ 0 });
	for (size_t i = 0; i < t->n; i++) {
		char *name = arena_printf(&r->arena, "arg%zu", i);

		if (!name)
			return arena_fail(&r->arena, "template", r->err);
		labels_builder_set(&b, str_of(name), STR("-"));
	}
	if ((rc = labels_builder_build(&b, &sorted, r->err)))
		return rc;
	for (size_t i = 0; i < sorted.n && more && !rc; i++) {
		element = tv_arg(t, sorted.v[i].name);
		rc = template_range_once(
			r, ranging, (struct tv){ TV_STRING, .s = sorted.v[i].name }, element, &more);
	}
	return rc;
}

static enum err_code template_range_over(
	struct rendering *r, const struct ranging *ranging, const struct tv *t)
{
	enum err_code rc = ERR_OK;
	bool more = true;

	switch (t->kind) {
	case TV_LABELS:
		for (size_t i = 0; i < t->labels.n && more && !rc; i++)
			rc = template_range_once(r, ranging, (struct tv){ TV_STRING, .s = t->labels.v[i].name },
				(struct tv){ TV_STRING, .s = t->labels.v[i].value }, &more);
		return rc;
	case TV_SAMPLES:
		for (size_t i = 0; i < t->n && more && !rc; i++)
			rc = template_range_once(r, ranging, (struct tv){ TV_INT, .i = (int64_t)i },
				(struct tv){ TV_SAMPLE, .sample = &t->samples[i] }, &more);
		return rc;
	case TV_INT:
		for (int64_t i = 0; i < t->i && more && !rc; i++)
			rc = template_range_once(
				r, ranging, (struct tv){ TV_INT, .i = i }, (struct tv){ TV_INT, .i = i }, &more);
		return rc;
	default:
		return template_range_args(r, ranging, t);
	}
}

static enum err_code template_walk_range(
	struct rendering *r, const struct template_node *n, const struct tv *dot)
{
	struct ranging x = { .n = n, .dot = dot, .outer = r->variables };
	struct pipe plain = *n->pipe;
	struct buf shown = { 0 };
	bool empty;
	struct tv v;
	enum err_code rc;

	plain.variables_n = 0;
	if ((rc = template_eval_pipe(r, &plain, dot, &v)))
		return rc;
	switch (v.kind) {
	case TV_NIL:
		empty = true;
		break;
	case TV_LABELS:
		empty = !v.labels.n;
		break;
	case TV_INT:
		empty = v.i <= 0;
		break;
	case TV_SAMPLES:
	case TV_ARGS:
		empty = !v.n;
		break;
	default:
		tv_print(&shown, &v);
		rc = fault(r, n->pipe->at, "range can't iterate over " STR_FMT, STR_ARG(buf_str(&shown)));
		buf_release(&shown);
		return rc;
	}
	return empty ? template_walk(r, n->otherwise, dot) : template_range_over(r, &x, &v);
}

static enum err_code template_walk_one(
	struct rendering *r, const struct template_node *n, const struct tv *dot)
{
	struct variable *outer = r->variables;
	struct tv v;
	enum err_code rc;

	switch (n->kind) {
	case NODE_TEXT:
		buf_add_str(r->out, n->text);
		return ERR_OK;
	case NODE_ACTION:
		if (!(rc = template_eval_pipe(r, n->pipe, dot, &v)) && !n->pipe->variables_n) {
			if (v.kind == TV_NIL)
				buf_add_cstr(r->out, "<no value>");
			else
				tv_print(r->out, &v);
		}
		return rc;
	case NODE_BREAK:
		r->breaks = true;
		return ERR_OK;
	case NODE_CONTINUE:
		r->continues = true;
		return ERR_OK;
	case NODE_RANGE:
		rc = template_walk_range(r, n, dot);
		break;
	default:
		if ((rc = template_eval_pipe(r, n->pipe, dot, &v)))
			return rc;
		rc = tv_truth(&v) ? template_walk(r, n->body, n->kind == NODE_WITH ? &v : dot) :
							template_walk(r, n->otherwise, dot);
		break;
	}
	r->variables = outer;
	return rc;
}

static enum err_code template_walk(
	struct rendering *r, const struct template_node *n, const struct tv *dot)
{
	enum err_code rc = ERR_OK;

	for (; n && !rc && !r->breaks && !r->continues; n = n->next)
		if (!(rc = template_step(r, n->at)))
			rc = template_walk_one(r, n, dot);
	return rc;
}

enum err_code template_render(
	const struct template *t, const struct template_data *d, struct buf *out, struct err *err)
{
	struct rendering r = { .t = t, .data = d, .out = out, .out_start = out->len, .err = err };
	const struct tv dot = { TV_DATA };
	const struct {
		const char *name;
		struct tv value;
	} known[] = {
		{ "$", dot },
		{ "$labels", { TV_LABELS, .labels = d->labels } },
		{ "$externalLabels", { TV_LABELS, .labels = d->external_labels } },
		{ "$externalURL", { TV_STRING, .s = d->external_url } },
		{ "$value", { TV_FLOAT, .f = d->value } },
	};
	enum err_code rc = ERR_OK;

	arena_init(&r.arena, MEMORY_MAX);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && !rc; i++)
		rc = template_push(&r, str_of(known[i].name), known[i].value);
	if (!rc)
		rc = template_walk(&r, t->first, &dot);
	if (!rc)
		rc = template_step(&r, (uint32_t)t->text.len);
	arena_release(&r.arena);
	return rc;
}
