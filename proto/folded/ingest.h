/*
 * The parameters of Pyroscope's POST /ingest, and the part sample_type_config of its body.
 *
 *	name=app.cpu{region=eu,otel.scope.name=x}&from=1700000000&until=1700000010
 *
 * Units:     times in nanoseconds since 1970.
 * Errors:    ERR_INVALID, ERR_LIMIT (names the limit), ERR_NOMEM.
 * Ownership: all in the arena given.
 * Threads:   any number, each with its own arena.
 * Source:    Pyroscope's sources: api/model/labelset, pkg/og/util/attime, pkg/og/storage/tree.
 */
#ifndef PROTO_FOLDED_INGEST_H
#define PROTO_FOLDED_INGEST_H

#include "base/labels.h"

#define INGEST_NAME_BYTES_MAX 16384u
#define INGEST_LABELS_MAX 128u
#define INGEST_SAMPLE_TYPES_MAX 256u

struct ingest_name {
	struct str app;
	/* Names are of letters, digits and "_.-/", so not all are names of our labels. */
	struct labels labels;
};

/* Of a label given twice the last value counts; one with an empty value is none. */
MUST_CHECK enum err_code ingest_name_parse(
	struct arena *a, struct str name, struct ingest_name *out, struct err *err);

/* By the number of digits: up to 10 seconds, 13 milliseconds, 16 microseconds, 19 nanoseconds. */
MUST_CHECK enum err_code ingest_time_parse(struct str text, int64_t *ns, struct err *err);

/* How a sender wants one of the sample types in its pprof body. Strings that miss are empty. */
struct ingest_sample_type {
	struct str type; /* as in the pprof body */
	struct str units, aggregation, display_name;
	bool cumulative, sampled;
};

/* {"cpu": {"units": "samples", "display-name": "cpu", "sampled": true}} */
MUST_CHECK enum err_code ingest_sample_types_parse(struct arena *a, struct str json,
	struct ingest_sample_type **out, uint32_t *n, struct err *err);

#endif
