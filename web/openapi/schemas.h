/*
 * Schemas: the types of answers, by name. The notation is that of web/router/operation.h; a field
 * whose name ends with "?" may be missing.
 *
 * Threads: constant tables.
 */
#ifndef WEB_OPENAPI_SCHEMAS_H
#define WEB_OPENAPI_SCHEMAS_H

#include "base/json.h"

struct schema_field {
	const char *name; /* NULL ends a list */
	const char *type;
	const char *help; /* NULL: the name says it */
};

struct schema {
	const char *name;
	const char *help;
	const struct schema_field *fields; /* of an object; NULL: */
	const char *raw; /* JSON Schema as it is */
};

extern const struct schema query_schemas[], server_schemas[], other_schemas[]; /* to a {0} */

/* NULL: there is none of this name. */
const struct schema *schema_find(struct str name);
/* Writes a type of the notation as JSON Schema. Asserted: it is well-formed and its names are. */
void schema_write_type(struct json *j, const char *type);
/* Writes one with its fields. */
void schema_write(struct json *j, const struct schema *s);

#endif
