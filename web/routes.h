/*
 * The table of routes: what the server answers, row by row.
 *
 * Source: web/README.md; web/openapi/README.md says what each route is.
 */
#ifndef WEB_ROUTES_H
#define WEB_ROUTES_H

#include "web/router/router.h"

extern const struct route web_routes[];
extern const size_t web_routes_n;

#endif
