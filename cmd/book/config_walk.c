#include "cmd/book/config_walk.h"

#include <string.h>

#define WALK_BYTES_MAX (16u << 20)

void config_walk_init(struct config_walk *w)
{
	*w = (struct config_walk){ .n = 0 };
	arena_init(&w->arena, WALK_BYTES_MAX);
}

void config_walk_release(struct config_walk *w)
{
	arena_release(&w->arena);
}

static bool config_walk_has(const struct config_walk *w, const struct yaml_schema *schema)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].schema == schema)
			return true;
	return false;
}

static enum err_code config_walk_defaults(
	struct config_walk *w, const struct yaml_schema *schema, const void **out, struct err *err)
{
	struct str no_name = STR("");
	struct yaml_ctx ctx = { .arena = &w->arena, .dir = STR("."), .user = &no_name };
	void *values = arena_alloc(&w->arena, schema->size);

	if (!values)
		return arena_fail(&w->arena, schema->name, err);
	*out = values;
	return yaml_decode(&ctx, schema, NULL, values, err);
}

/* Recursion ends: each schema is taken once. */
enum err_code config_walk_add(
	struct config_walk *w, const struct yaml_schema *schema, const void *values, struct err *err)
{
	enum err_code rc;

	if (config_walk_has(w, schema))
		return ERR_OK;
	if (w->n == CONFIG_SCHEMAS_MAX)
		return err_set(err, ERR_LIMIT, "more than %u schemata", CONFIG_SCHEMAS_MAX);
	if (!values && (rc = config_walk_defaults(w, schema, &values, err)))
		return rc;
	w->v[w->n++] = (struct config_entry){ schema, values };
	for (size_t i = 0; i < schema->fields_n; i++) {
		const struct yaml_field *f = &schema->fields[i];
		/* a nested struct without defaults of its own has those of the outer one */
		bool inherits = f->type == YAML_STRUCT && !f->schema->defaults;
		const void *inner = inherits ? (const char *)values + f->offset : NULL;

		if (f->home && (rc = config_walk_add(w, f->home, NULL, err)))
			return rc;
		if (f->schema && (rc = config_walk_add(w, f->schema, inner, err)))
			return rc;
	}
	return ERR_OK;
}

static bool config_walk_is_sentence(const char *help)
{
	size_t n = help ? strlen(help) : 0;

	return n > 3 && help[n - 1] == '.' && !(help[0] >= 'a' && help[0] <= 'z') && help[0] != ' ';
}

void config_walk_problems(const struct config_walk *w, struct buf *out)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct yaml_schema *s = w->v[i].schema;

		for (size_t k = 0; k < s->fields_n; k++) {
			const struct yaml_field *f = &s->fields[k];

			if (!config_walk_is_sentence(f->help))
				buf_printf(out, "%s: %s: help is no sentence\n", s->name, f->name);
			if (f->type == YAML_CUSTOM && !f->schema && !f->takes)
				buf_printf(out, "%s: %s: nothing says what it takes\n", s->name, f->name);
		}
	}
}
