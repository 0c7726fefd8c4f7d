/*
 * All schemata that a configuration can reach: from the roots along each field's own schema and its
 * home. Each has a struct filled by its defaults, which the book prints.
 *
 * Ownership: structs live in the walk's arena.
 * Threads:   one.
 */
#ifndef CMD_BOOK_CONFIG_WALK_H
#define CMD_BOOK_CONFIG_WALK_H

#include "base/yaml/yaml.h"

#define CONFIG_SCHEMAS_MAX 128u

struct config_entry {
	const struct yaml_schema *schema;
	const void *values;
};

struct config_walk {
	struct arena arena;
	struct config_entry v[CONFIG_SCHEMAS_MAX];
	size_t n;
};

void config_walk_init(struct config_walk *w);
void config_walk_release(struct config_walk *w);
/*
 * The schema, unless it is there, and what it reaches. values: instead of its defaults, or NULL.
 * ERR_INVALID: a schema's defaults cannot be made; ERR_LIMIT.
 */
MUST_CHECK enum err_code config_walk_add(
	struct config_walk *w, const struct yaml_schema *schema, const void *values, struct err *err);
/* A line for each key without help, or whose value has no description. */
void config_walk_problems(const struct config_walk *w, struct buf *out);

#endif
