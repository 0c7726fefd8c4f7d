/*
 * Pyroscope's query service as Grafana's data source calls it: connect's unary calls, protobuf or
 * JSON, over our own query engine and database.
 *
 * Units:     times of messages are milliseconds since 1970; windows are (start, end].
 * Errors:    a method's enum err_code becomes connect's code and status (web/router/envelope.h).
 * Ownership: requests live in the arena of the HTTP request; a method answers before it closes what
 *            its answer points to.
 * Threads:   workers; a call belongs to one.
 * Source:    proto/pyroscope.proto; https://connectrpc.com/docs/protocol, unary.
 */
#ifndef WEB_PYROSCOPE_PYROSCOPE_H
#define WEB_PYROSCOPE_PYROSCOPE_H

#include "promql/engine/engine.h"
#include "proto/pyroscope.pb-c.h"
#include "web/router/router.h"

#define PYROSCOPE_JSON_TYPE "application/json"
#define PYROSCOPE_PROTO_TYPE "application/proto"
#define PYROSCOPE_REQUEST_BYTES_MAX (256u << 10) /* inflated */

struct pyroscope_call {
	struct web *w;
	struct http_in *in;
	struct http_out *out;
	bool json;
	int64_t timeout_ns; /* Connect-Timeout-Ms; 0: none said */
};

struct pyroscope_method {
	const char *name;
	const ProtobufCMessageDescriptor *request;
	enum err_code (*fn)(struct pyroscope_call *c, const ProtobufCMessage *request, struct err *err);
};

/* The handler of all methods (web/routes.c); the last segment of the path names one. */
route_fn pyroscope_handle;

extern const struct pyroscope_method pyroscope_methods[];
extern const size_t pyroscope_methods_n;

/* ---- rpc.c ---- */

/* Whether the body's type is one of ours; *json which. False: *out is the refusal. */
bool pyroscope_takes_type(const struct http_in *in, struct http_out *out, bool *json);
/* Decodes the message in a body. */
MUST_CHECK enum err_code pyroscope_decode(struct arena *a,
	const ProtobufCMessageDescriptor *descriptor, bool json, struct str body,
	ProtobufCMessage **out, struct err *err);
/* Writes the answer. */
MUST_CHECK enum err_code pyroscope_answer(
	struct pyroscope_call *c, const ProtobufCMessage *message, struct err *err);
/* Protobuf that is encoded already. */
void pyroscope_answer_wire(struct pyroscope_call *c, struct str wire);
/* NUL-terminated UTF-8 for a message: other bytes and NULs become U+FFFD. NULL: out of memory. */
char *pyroscope_text(struct arena *a, struct str s);
/* (start, end] in nanoseconds. ERR_INVALID if they are out of order or out of range. */
MUST_CHECK enum err_code pyroscope_times(
	int64_t start_ms, int64_t end_ms, int64_t *start_ns, int64_t *end_ns, struct err *err);

/* ---- meta.c ---- */

typedef enum err_code pyroscope_fn(
	struct pyroscope_call *c, const ProtobufCMessage *request, struct err *err);

pyroscope_fn pyroscope_profile_types, pyroscope_label_names, pyroscope_label_values,
	pyroscope_series, pyroscope_stats;

MUST_CHECK enum err_code pyroscope_pairs(
	struct arena *a, struct labels ls, Epimetheus__Pyroscope__LabelPair ***out, struct err *err);

/* ---- select.c, merge.c ---- */

pyroscope_fn pyroscope_select_series, pyroscope_stacktraces, pyroscope_profile, pyroscope_diff;

/*
 * Evaluates a query for a call, with the call's cancel flag and timeout. Warnings go into the
 * answer's header.
 */
MUST_CHECK enum err_code pyroscope_run(struct pyroscope_call *c, const struct buf *text,
	struct query_options *o, struct query **out, struct err *err);
/* Refuses go_pgo, for answers that are not pprof. */
MUST_CHECK enum err_code pyroscope_no_pgo(
	const Epimetheus__Pyroscope__StackTraceSelector *selector, struct err *err);

#endif
