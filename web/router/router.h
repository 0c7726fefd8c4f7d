/*
 * Router: finds the route of a request, decides whether it may be called, calls it; prefix,
 * methods, CORS, compression and metrics of all routes.
 *
 * Threads: struct web is written by web_open and web_close; handlers run on any number of workers.
 * Source:  web/README.md; web/openapi/README.md says what each route is.
 */
#ifndef WEB_ROUTER_ROUTER_H
#define WEB_ROUTER_ROUTER_H

#include "base/thread.h"
#include "web/http/config.h"
#include "web/http/http.h"
#include "web/router/operation.h"
#include "web/router/options.h"

struct audit;
struct debuginfo_uploads;
struct route;

struct web {
	struct web_options o;
	const struct route *routes; /* web/routes.c */
	size_t routes_n;
	struct http_server *server;
	struct grpc_server *grpc; /* of OTLP; NULL: off */
	struct web_config *config;
	struct audit *audit; /* NULL: nothing is written (tests) */
	struct receiver *receiver; /* of pushed profiles; NULL: none are taken */
	struct debuginfo_uploads *uploads; /* of debug data; NULL: none are taken */
	struct regex *cors_origin; /* NULL: no other site may read */
	char *own_origin; /* scheme://host[:port] of the external URL that was given, or NULL */
	char *prefix; /* in front of all paths: "" or "/x" */
	char *external_url; /* without a slash at its end */
	char *base; /* the prefix of our paths in a browser: "" or "/x" */
	struct buf index; /* the page with its base filled in */
	char index_etag[24];
	int64_t started_ns;
	atomic_bool ready; /* before that nobody looks at what web_set_parts sets */
	struct mutex lock; /* guards the fields below */
	struct cond changed;
	bool closing;
	struct http_in *capture; /* the request that profiles this process, or NULL */
	unsigned profiling; /* requests that profile a target now */
	unsigned reading; /* requests of web/profefe that read rows now */
	unsigned decoding; /* requests of web/files that decode a file now */
	unsigned listing; /* requests that list binaries of profiles now */
	unsigned slow; /* requests of ROUTE_SLOW that run */
	unsigned shard_pushes; /* requests of web/push/shard_profiles.c that run */
};

enum route_flags {
	ROUTE_API = 1, /* CORS, JSON errors */
	ROUTE_LIFECYCLE = 2, /* 403 without --web.enable-lifecycle */
	ROUTE_ADMIN = 4,
	ROUTE_INGEST = 8,
	ROUTE_READY = 16, /* 503 with what it waits for until the server is ready */
	ROUTE_BODY = 32, /* the handler reads the body, even if its type is a form's */
	ROUTE_FILES = 64, /* matches any name: does not make another method 405 */
	ROUTE_SLOW = 128, /* may take or wait long: some workers never run it */
	ROUTE_CHANGES = 256, /* changes something: 403 for pages of other sites */
	ROUTE_ANY_HOST = 512, /* answers to any name, even with --web.allowed-host */
	ROUTE_PIECES = 1024, /* the handler reads a long body by http_read */
	ROUTE_NO_PROFILES = 2048, /* with ROUTE_INGEST: takes something else */
	ROUTE_CONNECT = 4096, /* a call of Connect: errors of the router have its form too */
	ROUTE_PEERS = 8192, /* for other shards, by their secret and not by a user: router/peers.h */
	ROUTE_MARKS = 16384, /* with ROUTE_INGEST: not where programs send their profiles */
	ROUTE_OPEN = 32768, /* with NEEDS_USER: answers without credentials, and refuses wrong ones */
};

typedef void route_fn(struct web *w, struct http_in *in, struct http_out *out);
/*
 * On the head of a request that may be called, on the receiving thread: it must not wait. False:
 * *out is the answer. May set in->body_bytes_max.
 */
typedef bool route_admit_fn(struct web *w, struct http_in *in, struct http_out *out);

struct route {
	unsigned methods; /* enum http_method */
	const char *path; /* a segment "*" is any one; a "/" at the end is all below */
	enum http_needs needs; /* of its users */
	route_fn *fn;
	unsigned flags;
	const struct operation *op; /* NULL: of the page, for browsers alone; or it only refuses */
	route_admit_fn *admit; /* NULL: every request */
};

/*
 * Workers, and how many of them may run handlers of ROUTE_SLOW at once. A request that waits (a
 * query in the queue, a profile of this process, a commit) holds its worker, so there are many more
 * workers than cores. An unused stack costs nothing.
 */
#define WEB_WORKERS 80u
#define WEB_WORKERS_SLOW 48u

/* The route of a path as it came, prefix and all. NULL: there is none. */
const struct route *router_find(const struct web *w, struct str path, enum http_method method);
/* False: the server is not ready; *why (may be NULL) gets "not ready: " and what it waits for. */
bool router_is_ready(struct web *w, struct buf *why);
void router_refuse_unready(struct http_out *out, struct str why); /* 503, as text */
/* False: *out says which role the request's user lacks. */
bool router_user_may(struct http_in *in, struct http_out *out, enum http_needs needs, bool api);

/*
 * The http_admit_fn and http_handler_fn of the server; ctx is the struct web. Admission checks all
 * that needs no body: user, route, method, flags.
 */
enum http_admission router_admit(
	void *ctx, struct http_in *in, struct http_out *out, bool may_wait);
void router_handle(void *ctx, struct http_in *in, struct http_out *out);

#endif
