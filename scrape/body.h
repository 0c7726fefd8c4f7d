/*
 * Body: decodes an HTTP answer 200 to a profile, or to an error that a person can act on.
 *
 * A body may be gzipped twice: by the transport (Content-Encoding) and by pprof itself. Formats
 * before protobuf are read too (proto/legacy/legacy.h); their profiles may lack names.
 *
 * Errors:    ERR_INVALID (not a profile; says what it looks like), ERR_LIMIT (names the limit),
 *            ERR_UNSUPPORTED (a format of Java, another Content-Encoding).
 * Ownership: the profile lives in the arena and points into it or into the body.
 * Threads:   any.
 */
#ifndef SCRAPE_BODY_H
#define SCRAPE_BODY_H

#include "base/labels.h"
#include "proto/legacy/legacy.h"
#include "scrape/config/config.h"

struct body {
	struct legacy_any any;
	struct str raw; /* what it was decoded from */
};
MUST_CHECK enum err_code body_decode(struct arena *a, struct str body, struct str content_type,
	struct str content_encoding, const struct pprof_limits *limits, struct body *out,
	struct err *err);

/* Takes a Content-Encoding off: gzip, x-gzip; none. *body stays, or is in the arena. */
MUST_CHECK enum err_code body_undo_transport(struct arena *a, struct str encoding,
	const struct pprof_limits *limits, struct str *body, struct err *err);

/* Checks sample_limit and the label limits of the job. labels: the series'. */
MUST_CHECK enum err_code body_check_limits(
	const struct pprof *p, struct labels labels, const struct scrape_config *job, struct err *err);

#endif
