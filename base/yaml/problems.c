#include "base/yaml/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"

#define TEXT_BYTES ((size_t)1 << 20) /* of all texts */

void yaml_problems_init(struct yaml_problems *p)
{
	*p = (struct yaml_problems){ 0 };
	arena_init(&p->arena, TEXT_BYTES);
}

void yaml_problems_release(struct yaml_problems *p)
{
	arena_release(&p->arena);
	*p = (struct yaml_problems){ 0 };
}

static void yaml_problems_keep(struct yaml_problems *p, enum err_code code, const char *text)
{
	size_t *count = code ? &p->errors_n : &p->warnings_n;
	char *copy;

	if (++*count > YAML_PROBLEMS_MAX)
		return;
	copy = arena_strndup(&p->arena, text, strlen(text));
	if (copy && arena_array_room(&p->arena, &p->v, p->n, 1, &p->cap))
		p->v[p->n++] = (struct yaml_problem){ copy, code };
}

void yaml_problems_add(struct yaml_problems *p, const struct err *err)
{
	if (!p->noted)
		yaml_problems_keep(p, err->code ? err->code : ERR_INVALID, err->msg);
	p->noted = false;
}

size_t yaml_errors(const struct yaml_ctx *ctx)
{
	return ctx->problems ? ctx->problems->errors_n : 0;
}

/* Without memory nothing that follows would tell more; and errors cost time (did you mean ...). */
bool yaml_goes_on(struct yaml_ctx *ctx, enum err_code rc, const struct err *err)
{
	if (!ctx->problems || !err || rc == ERR_NOMEM)
		return false;
	yaml_problems_add(ctx->problems, err);
	ctx->problems->noted = ctx->problems->errors_n >= YAML_PROBLEMS_MAX;
	return !ctx->problems->noted;
}

enum err_code yaml_end(struct yaml_ctx *ctx, size_t before, struct err *err)
{
	const struct yaml_problems *p = ctx->problems;
	size_t seen = 0;

	if (yaml_errors(ctx) == before)
		return ERR_OK;
	ctx->problems->noted = true;
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].code && seen++ == before)
			return err_set(err, p->v[i].code, "%s", p->v[i].text);
	return err_nomem(err, "errors"); /* they were not kept */
}

void yaml_warn(struct yaml_ctx *ctx, const struct yaml_node *n, const char *fmt, ...)
{
	char msg[sizeof(((struct err *)NULL)->msg)];
	struct err err;
	va_list ap;

	if (!ctx->problems)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	yaml_err(n, &err, ERR_INVALID, "%s", msg);
	yaml_problems_keep(ctx->problems, ERR_OK, err.msg);
}

/* ---- sorting ---- */

struct yaml_place {
	size_t file, line, column, order;
	struct yaml_problem problem;
};

/* Bytes of FILE in "FILE:LINE:COLUMN: message"; 0: it has no place. */
static size_t yaml_split(const char *text, size_t *line, size_t *column)
{
	int end;

	for (const char *p = strchr(text, ':'); p; p = strchr(p + 1, ':')) {
		end = 0;
		if (sscanf(p, ":%zu:%zu: %n", line, column, &end) == 2 && end)
			return (size_t)(p - text);
	}
	*line = *column = 0;
	return 0;
}

static int yaml_by_place(const void *a, const void *b)
{
	const struct yaml_place *x = a, *y = b;
	size_t xs[] = { x->file, x->line, x->column, x->order };
	size_t ys[] = { y->file, y->line, y->column, y->order };

	for (size_t i = 0; i < 4; i++)
		if (xs[i] != ys[i])
			return xs[i] < ys[i] ? -1 : 1;
	return 0;
}

void yaml_problems_sort(struct yaml_problems *p)
{
	struct yaml_place places[2 * YAML_PROBLEMS_MAX];
	size_t lengths[2 * YAML_PROBLEMS_MAX], k;

	for (size_t i = 0; i < p->n; i++) {
		struct yaml_place *at = &places[i];

		*at = (struct yaml_place){ .order = i, .problem = p->v[i] };
		lengths[i] = yaml_split(p->v[i].text, &at->line, &at->column);
		for (k = 0; k < i &&
			 !(lengths[k] == lengths[i] &&
				 !memcmp(places[k].problem.text, p->v[i].text, lengths[i]));
			 k++)
			;
		at->file = k < i ? places[k].file : i;
	}
	if (p->n > 1)
		qsort(places, p->n, sizeof(*places), yaml_by_place);
	for (size_t i = 0; i < p->n; i++)
		p->v[i] = places[i].problem;
}
