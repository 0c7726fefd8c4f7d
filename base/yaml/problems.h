/*
 * Problems: all errors and warnings of a document, where the first error alone is not enough.
 *
 * A decoder with ctx->problems goes on behind a part that is wrong, as far as what follows does not
 * depend on it: with the next field of a struct, the next item of a list. `check` functions see
 * only structs that were decoded whole. Without ctx->problems the first error ends everything.
 *
 * A decoder of a list:
 *	size_t before = yaml_errors(ctx);
 *	for (c = n->child; c; c = c->next)
 *		if ((rc = one(ctx, c, err)) && !yaml_goes_on(ctx, rc, err))
 *			return rc;
 *	return yaml_end(ctx, before, err);
 *
 * Errors:    decoding ends with YAML_PROBLEMS_MAX errors. As many warnings are kept, others only
 *            counted, as is one that there is no memory for.
 * Ownership: texts live in the problems' own arena.
 * Threads:   one.
 */
#ifndef BASE_YAML_PROBLEMS_H
#define BASE_YAML_PROBLEMS_H

#include "base/yaml/yaml.h"

#define YAML_PROBLEMS_MAX 100u

struct yaml_problem {
	const char *text; /* "FILE:LINE:COLUMN: message" */
	enum err_code code; /* ERR_OK: a warning */
};

struct yaml_problems {
	struct arena arena;
	struct yaml_problem *v; /* in the order of decoding until yaml_problems_sort */
	size_t n, cap;
	size_t errors_n, warnings_n; /* those that were not kept too */
	bool noted; /* the error that is on its way up is kept already */
};

void yaml_problems_init(struct yaml_problems *p);
void yaml_problems_release(struct yaml_problems *p);
/* By line and column; files in the order in which they come first. */
void yaml_problems_sort(struct yaml_problems *p);
/* For those who fail behind the decoding: keeps an error that no decoder has kept. */
void yaml_problems_add(struct yaml_problems *p, const struct err *err);

/* yaml_parse which goes on behind a key that is there twice; the first of them counts. */
MUST_CHECK enum err_code yaml_parse_all(struct arena *a, const char *file, struct str text,
	struct yaml_problems *problems, struct yaml_node **out, struct err *err);

/* The number of errors so far; 0 without ctx->problems. */
size_t yaml_errors(const struct yaml_ctx *ctx);
/* Behind a part that failed with rc: true, the error is kept, decode what comes next. */
MUST_CHECK bool yaml_goes_on(struct yaml_ctx *ctx, enum err_code rc, const struct err *err);
/* What a decoder that went on returns: ERR_OK, or the first error since `before` in *err. */
MUST_CHECK enum err_code yaml_end(struct yaml_ctx *ctx, size_t before, struct err *err);
/* Nothing happens without ctx->problems. */
void yaml_warn(struct yaml_ctx *ctx, const struct yaml_node *n, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

#endif
