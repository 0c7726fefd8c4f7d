/*
 * profefe's HTTP API: its agents and kube-profefe's tools write and read here as they do there.
 *
 * A profile is found by its service, type, labels and time. Its service is the label service_name
 * or job, so what was scraped or pushed otherwise is found, too.
 *
 * Units:     nanoseconds since 1970. created_at is the profile's time, at its end; from and to are
 *            both inside.
 * Errors:    {"code":400,"error":"..."}: 400 ERR_INVALID; 404 ERR_NOT_FOUND; 422 ERR_LIMIT; 503
 *            ERR_UNAVAILABLE. Of a push they are those of web/push.
 * Ownership: requests live in the arena of the HTTP request.
 * Threads:   workers; a request belongs to one.
 * Source:    profefe's pkg/profefe; web/profefe/README.md.
 */
#ifndef WEB_PROFEFE_PROFEFE_H
#define WEB_PROFEFE_PROFEFE_H

#include "base/json.h"
#include "web/profefe/notation.h"
#include "web/router/router.h"

/* The handlers (web/routes.c). */
route_fn profefe_collect, profefe_find, profefe_merge, profefe_get, profefe_services,
	profefe_version;

/* ---- answer.c ---- */

/* {"code":200,"body": - the caller writes the value - then profefe_end. */
void profefe_begin(struct http_out *out, struct json *j);
void profefe_end(struct json *j);
/* Status and Retry-After may be set already; status 200 is not: then it is that of rc. */
void profefe_fail(struct http_out *out, enum err_code rc, const struct err *err);

/* One profile as JSON. type: profefe's. */
void profefe_write(
	struct json *j, struct labels series, int64_t ts_ns, struct str service, const char *type);

/* ---- params.c ---- */

struct profefe_params {
	struct str service;
	const char *type, *profile; /* profefe's name and ours; NULL: any */
	struct label *labels; /* named as ours are */
	size_t labels_n;
	int64_t from_ns, to_ns; /* both inside */
	size_t limit; /* the newest so many; 0: all */
};

/* Service, type and labels. type_needed: else it may be missing. */
MUST_CHECK enum err_code profefe_read_params(
	struct http_in *in, bool type_needed, struct profefe_params *out, struct err *err);
/* Those, times and limit, for reading. */
MUST_CHECK enum err_code profefe_read_query(struct web *w, struct http_in *in, bool type_needed,
	struct profefe_params *out, struct err *err);

#endif
