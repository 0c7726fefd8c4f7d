/*
 * JSON path: a value below another one, by names with dots between them: "metadata.labels",
 * "Names.0". A number is an item of an array. A path ends at its end or at a "|", which separates
 * alternatives.
 *
 * Ownership: values are borrowed from the document.
 * Threads:   values.
 */
#ifndef DISCOVERY_SOURCES_JSON_PATH_H
#define DISCOVERY_SOURCES_JSON_PATH_H

#include <jansson.h>

#include "base/str.h"

/* NULL: it is not there. value NULL: NULL. */
json_t *json_path_at(const json_t *value, const char *path);
/* The text at that path. ptr NULL, len 0: there is none. */
struct str json_path_text(const json_t *value, const char *path);

/* For those who go over a path themselves. */
struct str json_path_first(const char *path); /* the first name */
const char *json_path_rest(const char *path); /* what is behind it */
bool json_path_is_end(const char *path);
json_t *json_path_step(const json_t *value, struct str name); /* one name on */

/* A string's text. ptr NULL, len 0: of anything else. */
static inline struct str json_text_of(const json_t *value)
{
	return (struct str){ json_string_value(value), json_string_length(value) };
}

#endif
