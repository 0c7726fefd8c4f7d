/*
 * Parameters of an operation in the document, in a URL or as fields of a form.
 *
 * Threads: any number at once.
 */
#ifndef WEB_OPENAPI_PARAMETERS_H
#define WEB_OPENAPI_PARAMETERS_H

#include "base/json.h"
#include "web/router/operation.h"

/* A key and its text; without a text nothing. */
void parameter_pair(struct json *j, const char *key, const char *value);
/* The key "parameters"; as_form: those of the path alone. */
void parameters_write(struct json *j, const struct operation *op, bool as_form);
/* The media type of a form, in an object that is open. */
void parameters_write_form(struct json *j, const struct operation *op);

#endif
