/*
 * OpenAPI: the description of all routes as a document of OpenAPI 3.1, for GET
 * /api/v1/openapi.json.
 *
 * Threads: any number at once.
 * Source:  https://spec.openapis.org/oas/v3.1.1
 */
#ifndef WEB_OPENAPI_OPENAPI_H
#define WEB_OPENAPI_OPENAPI_H

#include "web/router/router.h"

/* Writes the document; `server` is the path of the server's root. */
void openapi_write(struct buf *out, const struct route *routes, size_t n, const char *server);

/* A route's path with {name} in place of "*". */
void openapi_path(struct buf *out, const struct route *r);
/* The role that a route needs, in words; NULL: any user. */
const char *openapi_role(enum http_needs needs);
/* The flag that a route needs; NULL: none. */
const char *openapi_flag(const struct route *r);

route_fn openapi_handle;

#endif
