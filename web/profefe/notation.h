/*
 * Notation: the texts in profefe's requests and answers: types, times, labels, ids.
 *
 * An id names a stored row by its time and by a hash of its series' labels. Both are the same in
 * the head, in a block and after a restart. The service is there to find the series by an index.
 *
 * Units:     nanoseconds since 1970.
 * Errors:    ERR_INVALID, ERR_LIMIT (names the limit), ERR_NOMEM.
 * Ownership: in the arena given, or static.
 * Threads:   any.
 * Source:    profefe's pkg/profile and pkg/profefe.
 */
#ifndef WEB_PROFEFE_NOTATION_H
#define WEB_PROFEFE_NOTATION_H

#include "base/labels.h"

#define PROFEFE_LABELS_MAX 64u
#define PROFEFE_IDS_MAX 256u /* in a request */
#define PROFEFE_SERVICE_BYTES_MAX 4096u /* as of any label */
#define PROFEFE_OTHER "other"

struct profefe_type {
	const char *name; /* profefe's */
	const char *profile; /* ours */
};
extern const struct profefe_type profefe_types[]; /* all but "other" */
extern const size_t profefe_types_n;

/* The name of our profile for a type; "other" is called so. NULL: no such type. */
const char *profefe_profile_of(struct str type);
/* The type of our profile: "other" where profefe has none. */
const char *profefe_type_of(struct str profile);

/*
 * "2006-01-02T15:04:05", the hour with one digit or two, perhaps with a fraction of the second, as
 * Go's time.Parse takes it; in UTC unless a zone follows as in RFC 3339. Years before 1824 and
 * after 2115 are -TIME_MAX_NS and TIME_MAX_NS.
 */
MUST_CHECK enum err_code profefe_time_parse(struct str text, int64_t *out_ns, struct err *err);
/* "2006-01-02T15:04:05Z": whole seconds, rounded down. */
void profefe_time_print(struct buf *out, int64_t ns);

/*
 * "a=1,b=2" in the sender's order. Keys and values are percent-encoded as in a form. A part
 * without a key is passed over.
 */
MUST_CHECK enum err_code profefe_labels_parse(
	struct arena *a, struct str text, struct label **out, size_t *n, struct err *err);

/* The service of a series: service_name, else job. */
struct str profefe_service_of(struct labels series);

struct profefe_id {
	int64_t ts_ns;
	uint64_t series; /* labels_hash */
	struct str service;
};
struct profefe_id profefe_id_of(struct labels series, int64_t ts_ns);
void profefe_id_print(struct buf *out, const struct profefe_id *id);
/* "id+id": at least one. */
MUST_CHECK enum err_code profefe_ids_parse(
	struct arena *a, struct str text, struct profefe_id **out, size_t *n, struct err *err);

#endif
