/*
 * Routes: the table of what the server answers, and what is common to all: prefix, admission, methods, CORS,
 * compression, metrics.
 *
 * Source: DESIGN of the HTTP API as in README.md, "API".
 */
#ifndef WEB_ROUTER_H
#define WEB_ROUTER_H

#include "web/http.h"
#include "web/web.h"
#include "web/web_config.h"

struct web {
	struct web_options o;
	struct http_server *server;
	struct web_config *config;
	struct regex *cors_origin;
	char *prefix;       /* "" or "/x" */
	char *external_url; /* without a slash at its end */
	struct str index;   /* the page with its base filled in */
	int64_t started_ns;
	atomic_bool ready;
};

enum route_flags {
	ROUTE_API = 1,       /* CORS, JSON errors */
	ROUTE_LIFECYCLE = 2, /* 403 without --web.enable-lifecycle */
	ROUTE_ADMIN = 4,
	ROUTE_INGEST = 8,
	ROUTE_READY = 16, /* 503 until the server is ready */
};

struct route {
	unsigned methods; /* enum http_method */
	const char *path; /* a segment "*" stands for any one; a "/" at the end stands for all below */
	void (*fn)(struct web *w, struct http_in *in, struct http_out *out);
	unsigned flags;
	const char *help;
};

extern const struct route web_routes[];
extern const size_t web_routes_n;

/* The http_handler_fn of the server; ctx is the struct web. */
void router_handle(void *ctx, struct http_in *in, struct http_out *out);

#endif
