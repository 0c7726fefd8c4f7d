/*
 * OTLP profiles: an ExportProfilesServiceRequest becomes pprof profiles, and the answers to it.
 *
 * Each profile of a request becomes a struct pprof with what it uses of the request's dictionary.
 * What pprof has no place for is beside it: resource, scope, temporality, timestamps.
 *
 * Versions:  1.8 to 1.11 of opentelemetry/proto/profiles/v1development, lists packed or not.
 *            Version 1.10 gave the members of a sample other numbers; README.md says how the
 *            decoder tells both apart. It refuses older requests by name.
 * Columns:   one, of the profile's sample type. If that is samples/count and the period type is
 *            cpu/nanoseconds, a second one, cpu/nanoseconds = count x period, as Go's.
 * Samples:   equal ones are merged: the same stack of the dictionary, the same labels, the same
 *            link. Attributes become labels: integers numeric ones, the others text. An empty
 *            value is no label. The number 0 without unit gets its key as unit, as pprof infers
 *            it, since pprof has no label without number and unit.
 * Units:     times in nanoseconds since 1970; sizes in bytes.
 * Errors:    a request that is not well-formed, too old or beyond a limit of the whole request
 *            gives nothing: ERR_INVALID, ERR_UNSUPPORTED, ERR_LIMIT, ERR_NOMEM. A profile that is
 *            wrong in itself is left out and counted; the others stay.
 * Ownership: all is in the arena given. Strings point into the bytes of the request, or into the
 *            arena; both must outlive the profiles. They may hold any byte.
 * Threads:   a decoding belongs to one thread. A finished request is immutable.
 * Source:    profiles.proto, profiles_service.proto, common.proto of OTLP; its JSON mapping.
 */
#ifndef PROTO_OTLP_OTLP_H
#define PROTO_OTLP_OTLP_H

#include "proto/pprof.h"

enum otlp_kind {
	OTLP_EMPTY,
	OTLP_STRING,
	OTLP_BOOL,
	OTLP_INT,
	OTLP_DOUBLE,
	OTLP_ARRAY,
	OTLP_MAP,
	OTLP_BYTES
};

struct otlp_attribute {
	struct str key;
	struct str text; /* decimal; true, false; JSON of arrays and maps; base64 of bytes */
	struct str unit; /* empty: none; a resource's attributes have none */
	enum otlp_kind kind;
	int64_t number; /* of OTLP_INT and OTLP_BOOL */
};

struct otlp_resource {
	struct otlp_attribute *attributes;
	uint32_t attributes_n;
};

enum otlp_temporality { OTLP_UNSPECIFIED, OTLP_DELTA, OTLP_CUMULATIVE }; /* only 1.8 says */

struct otlp_profile {
	uint32_t resource; /* of otlp_request.resources */
	struct str scope_name, scope_version;
	struct otlp_attribute *attributes; /* of the profile itself */
	uint32_t attributes_n;
	unsigned char id[16]; /* zeros: none */
	enum otlp_temporality temporality;
	struct pprof *pprof;
	uint32_t rows; /* samples in the request, before they were merged */
	uint64_t timestamps_n;
	int64_t first_ns, last_ns; /* of the timestamps; 0: there are none */
};

struct otlp_request {
	struct otlp_resource *resources;
	uint32_t resources_n;
	struct otlp_profile *profiles;
	uint32_t profiles_n;
	struct pprof_link *links; /* of all profiles; links[0] is none */
	uint32_t links_n;
	uint32_t rejected_n; /* profiles left out */
	struct err rejected; /* why the first of them was */
};

struct otlp_limits {
	size_t raw_bytes_max; /* inflated */
	uint32_t profiles_max; /* of a request; resources and scopes too */
	uint32_t samples_max; /* of a request */
	uint32_t elements_max; /* of each table of the dictionary */
	uint32_t frames_max; /* and lines, of all profiles of a request together */
	uint32_t stack_depth_max;
	uint32_t attributes_max; /* of one resource, profile, sample or mapping */
	uint32_t text_bytes_max; /* of an attribute that is an array or a map */
	size_t arena_bytes_max; /* for the caller's arena */
};

/* 64 MiB, 16384 profiles, 1 M samples, 4 M elements, 16 M frames, 4096 deep, 128, 64 KiB, 1 GiB. */
extern const struct otlp_limits otlp_limits_default;

struct otlp_options {
	const struct otlp_limits *limits;
	/* What becomes of the key of a sample's attribute: false: it becomes no label; else *key is the
	 * label's. Called once for each attribute of the dictionary that is used. NULL: all stay. */
	bool (*label)(void *ctx, struct str *key);
	void *ctx;
};

/* An empty request is well-formed and has no profiles. */
MUST_CHECK enum err_code otlp_decode(struct arena *a, struct str raw,
	const struct otlp_options *options, struct otlp_request **out, struct err *err);

/* The same from OTLP's JSON. Its members become the protobuf form first, in the arena. */
MUST_CHECK enum err_code otlp_decode_json(struct arena *a, struct str text,
	const struct otlp_options *options, struct otlp_request **out, struct err *err);

enum otlp_format { OTLP_PROTOBUF, OTLP_JSON };

/*
 * ExportProfilesServiceResponse: with partial_success if profiles were rejected or there is a
 * message. Bytes of the message that are not UTF-8 become U+FFFD.
 */
void otlp_add_response(
	struct buf *out, enum otlp_format format, uint64_t rejected, struct str message);
/* google.rpc.Status; code is one of gRPC's. */
void otlp_add_status(struct buf *out, enum otlp_format format, int code, struct str message);
/* The gRPC code of an error: 3 invalid, 8 limit, 14 unavailable, 13 internal ... */
int otlp_status_code(enum err_code code);

#endif
