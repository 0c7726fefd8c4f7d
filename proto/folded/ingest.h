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
#include "proto/folded/folded.h"

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

/* What an application's name says of its values: "app.alloc_space". */
struct ingest_kind {
	struct str profile; /* "memory": the profile's name */
	struct str type, unit;
	struct str timed; /* "cpu": the type of samples of a clock, once they are times; else empty */
};

/*
 * Cuts the last part off *app and says what it means; a name of one part is of CPU samples. False:
 * the part is unknown, *app as it was, and *out as of one part.
 */
bool ingest_kind_of(struct str *app, struct ingest_kind *out);

/*
 * What the values of a body are, as Pyroscope takes them: samples of a clock at a rate become
 * nanoseconds. sample_rate: per second, 0: unknown. The times of *out are 0.
 */
void ingest_meaning(
	const struct ingest_kind *kind, uint32_t sample_rate, struct folded_meaning *out);

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
