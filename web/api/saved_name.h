/*
 * Names of saved files: shop-cpu-2026-11-23T14-05Z-15m.pb.gz, which is service, profile type, begin
 * and length of the window, in UTC. What is not known is left out. Any file system takes the name:
 * letters, digits, "-" and "_" before the suffix, at most SAVED_NAME_MAX bytes.
 *
 * web/ui/src/result/savedname.ts makes the same names for pictures.
 *
 * Ownership: values point into results, labels and arenas of the caller.
 * Threads:   values.
 */
#ifndef WEB_API_SAVED_NAME_H
#define WEB_API_SAVED_NAME_H

#include "promql/engine/engine.h"
#include "web/http/http.h"

#define SAVED_NAME_PART_MAX 48u
#define SAVED_NAME_MAX 200u /* with the suffix, which is a constant */

struct saved_name {
	struct str service, type, sample_type;
	int64_t start_ns, end_ns; /* equal: a time, not a window */
};

/*
 * The name for a result: the service that all its elements have, else the one that all selectors of
 * the query select with "="; the type of its profiles, and the time from the begin of the first
 * to the end of the last.
 */
MUST_CHECK enum err_code saved_name_of(const struct result *r, struct str query, struct arena *a,
	struct saved_name *out, struct err *err);
/* The name for one stored profile. */
struct saved_name saved_name_of_profile(struct labels ls, int64_t t_ns);

void saved_name_print(struct buf *out, const struct saved_name *n, const char *suffix);
/* The header Content-Disposition. kind: "attachment" or "inline" */
MUST_CHECK enum err_code saved_name_add(const struct saved_name *n, const char *kind,
	const char *suffix, struct arena *a, struct http_out *out, struct err *err);

#endif
