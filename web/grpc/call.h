/*
 * Call: one request and its answer. Private to web/grpc.
 *
 * A call goes through these states:
 *
 *   HEAD      its head is coming
 *   ADMITTING a worker verifies its password; what comes of its message is kept, and its window
 *             stays shut
 *   BODY      its message is coming
 *   WORKING   a worker runs its method
 *   ANSWERED  its answer is on the way
 *
 * Threads: the receiving thread, but for call_run; a call that was handed to a worker is the
 *          worker's till it comes back.
 */
#ifndef WEB_GRPC_CALL_H
#define WEB_GRPC_CALL_H

#include <nghttp2/nghttp2.h>

#include "base/net/loop.h"
#include "web/grpc/grpc.h"
#include "web/http/bodies.h"

enum call_state { CALL_HEAD, CALL_ADMITTING, CALL_BODY, CALL_WORKING, CALL_ANSWERED };

enum call_coding { CODING_IDENTITY, CODING_GZIP, CODING_ZSTD, CODING_UNKNOWN };

struct grpc_call {
	struct grpc_call *prev, *next; /* of the session's ring */
	void *owner; /* of those who hand it to a worker */
	struct loop_work work; /* back from a worker */
	int32_t stream; /* 0: it is closed */
	enum call_state state;
	bool handed; /* to a worker */
	bool whole; /* the last frame came */
	bool ran; /* its method was called */
	int64_t began_ns; /* of the head; then of the work */
	/* The head: */
	size_t head_bytes;
	const char *fault; /* what is wrong with the head, or NULL */
	unsigned fields; /* bits: those of grpc_once that came */
	const char *repeated; /* one of them that came more than once, or NULL */
	bool is_post, is_grpc, is_other_path;
	enum call_coding coding;
	const struct grpc_method *method;
	/* The message: */
	struct http_body body; /* with the prefix */
	size_t unconsumed; /* bytes of it that wait for the admission */
	/* For workers: */
	const struct grpc_server_options *o;
	enum http_admission admission;
	struct http_in in;
	struct http_out out; /* of the admission */
	struct grpc_answer answer;
	/* The answer as it is sent: */
	int http_status; /* 0: 200 */
	struct buf sent; /* prefix and body */
	size_t sent_at;
};

/* NULL: out of memory. */
struct grpc_call *call_open(const struct grpc_server_options *o, int32_t stream);
void call_close(struct grpc_call *c, struct bodies *bodies);

/* One field of the head. */
void call_head(struct grpc_call *c, struct str name, struct str value);
/* The head is whole. False: answer and http_status say why the call is refused. */
bool call_check_head(struct grpc_call *c);
/* What came of the message so far fits. False: answer says why not. */
bool call_check_message(struct grpc_call *c, size_t max);
/* The message is whole: body and content_encoding of in. False: answer says why not. */
bool call_take_message(struct grpc_call *c);
/* The admission is known and was not granted: its HTTP answer becomes the call's. */
void call_refused(struct grpc_call *c);

/* On a worker: the admission, or the method. */
void call_run(struct grpc_call *c);

/* Submits the answer. Not 0: nghttp2 is out of memory. */
MUST_CHECK int call_send(struct grpc_call *c, nghttp2_session *h2);

#endif
