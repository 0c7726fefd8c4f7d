/*
 * Version marks: where a version of a service has its first profile, after that of another version.
 * They are derived from the labels of series and from indexes, at each request, and never stored.
 *
 * A service is all series that have the same of SERVICE_LABELS, whatever their types, pods and so
 * on. Its version is the first of VERSION_LABELS that a series has. All data up to the window's end
 * count, so a version that was there before is no mark when it comes back, and the first version
 * that is known of a service is none.
 *
 * Units:     nanoseconds since 1970.
 * Errors:    as db_visit_firsts; ERR_LIMIT: more versions than memory for them.
 * Ownership: marks point into the arena.
 * Threads:   that of the querier.
 */
#ifndef WEB_ANNOTATIONS_VERSION_MARKS_H
#define WEB_ANNOTATIONS_VERSION_MARKS_H

#include "tsdb/db.h"
#include "web/annotations/annotation_mark.h"

/* q: from the oldest data on. wanted: whether marks of a service are. */
struct version_marks_options {
	struct db_querier *q;
	int64_t start_ns, end_ns; /* of the marks, both included */
	bool (*wanted)(void *ctx, struct labels service);
	void *ctx;
};
MUST_CHECK enum err_code version_marks_add(const struct version_marks_options *o, struct arena *a,
	struct annotation_marks *to, struct err *err);

#endif
