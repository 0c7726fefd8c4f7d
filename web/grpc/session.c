/*
 * Memory of a session is bounded: at most GRPC_STREAMS_MAX calls, each with a head of
 * GRPC_HEAD_BYTES_MAX of which little is kept, and messages within struct bodies. The window of a
 * call opens again as its bytes are taken, so a sender is never slower than this thread; before its
 * user is known the window stays shut. The window of the connection is given back at once: what a
 * refused call still sends is dropped.
 *
 * Frames that carry nothing cost credit: a burst of CREDIT_MAX, CREDIT_PER_S each second, and
 * CREDIT_PER_CALL for each call that a worker answered, since a sender may well ping for each.
 */
#include "web/grpc/session.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"

#define WINDOW_BYTES (256u << 10) /* of a call */
#define CONNECTION_WINDOW_BYTES (1 << 20)
#define CREDIT_MAX 1000
#define CREDIT_PER_S 100
#define CREDIT_PER_CALL 4
#define RETRY_S 1u

struct session {
	struct session_host host;
	nghttp2_session *h2;
	struct grpc_call calls; /* head of the ring */
	unsigned calls_n, handed_n;
	int credit;
	bool greeted, shut, canceled, flooded, closed;
	bool broken; /* nghttp2 failed */
};

static void grpc_forget(struct session *s, struct grpc_call *c)
{
	c->prev->next = c->next;
	c->next->prev = c->prev;
	assert(s->calls_n && *s->host.calls_n);
	s->calls_n--;
	(*s->host.calls_n)--;
	call_close(c, s->host.bodies);
}

static void grpc_session_answer(struct session *s, struct grpc_call *c)
{
	body_drop(s->host.bodies, &c->body);
	if (call_send(c, s->h2))
		s->broken = true;
}

static bool grpc_session_hand(struct session *s, struct grpc_call *c, enum call_state state)
{
	c->state = state;
	c->handed = true;
	s->handed_n++;
	if (!s->canceled && s->host.hand(s->host.ctx, c))
		return true;
	c->handed = false;
	s->handed_n--;
	grpc_fail(&c->answer, GRPC_UNAVAILABLE, RETRY_S, "too many calls are waiting");
	return false;
}

/* ---- calls, step by step ---- */

static void grpc_message_is_whole(struct session *s, struct grpc_call *c)
{
	if (!call_take_message(c)) {
		grpc_session_answer(s, c);
		return;
	}
	c->body.whole = true;
	c->in.body_refused = 0;
	if (!grpc_session_hand(s, c, CALL_WORKING))
		grpc_session_answer(s, c);
}

static void grpc_take_message(struct session *s, struct grpc_call *c)
{
	c->state = CALL_BODY;
	if (c->unconsumed && nghttp2_session_consume_stream(s->h2, c->stream, c->unconsumed))
		s->broken = true;
	c->unconsumed = 0;
	if (c->whole)
		grpc_message_is_whole(s, c);
}

static void grpc_head_is_whole(struct session *s, struct grpc_call *c)
{
	bool taken = call_check_head(c);

	if (taken && s->shut) {
		grpc_fail(&c->answer, GRPC_UNAVAILABLE, RETRY_S, "the server is shutting down");
		taken = false;
	} else if (taken && *s->host.calls_n > GRPC_CALLS_MAX) {
		grpc_fail(&c->answer, GRPC_UNAVAILABLE, RETRY_S, "too many calls at once, limit %u",
			GRPC_CALLS_MAX);
		taken = false;
	}
	if (!taken) {
		grpc_session_answer(s, c);
		return;
	}
	c->admission = s->host.o->admit ? s->host.o->admit(s->host.o->ctx, &c->in, &c->out, false) :
									  HTTP_ADMITTED;
	switch (c->admission) {
	case HTTP_ADMITTED:
		grpc_take_message(s, c);
		break;
	case HTTP_ADMIT_LATER:
		if (!grpc_session_hand(s, c, CALL_ADMITTING))
			grpc_session_answer(s, c);
		break;
	case HTTP_ANSWERED:
		call_refused(c);
		grpc_session_answer(s, c);
	}
}

static void grpc_take_data(struct session *s, struct grpc_call *c, const uint8_t *data, size_t n)
{
	size_t max = s->host.o->body_bytes_max;

	if (c->state != CALL_BODY && c->state != CALL_ADMITTING)
		return; /* it is refused: dropped */
	body_add(s->host.bodies, &c->body, s->host.client, data, n, max + GRPC_PREFIX_BYTES);
	if (c->state == CALL_ADMITTING) {
		c->unconsumed += n;
		return; /* judged once a worker has given it back */
	}
	if (!call_check_message(c, max))
		grpc_session_answer(s, c);
	else if (nghttp2_session_consume_stream(s->h2, c->stream, n))
		s->broken = true;
}

static void grpc_admitted(struct session *s, struct grpc_call *c)
{
	if (c->admission != HTTP_ADMITTED) {
		call_refused(c);
		grpc_session_answer(s, c);
	} else if (s->shut && !c->whole) {
		grpc_fail(&c->answer, GRPC_UNAVAILABLE, RETRY_S, "the server is shutting down");
		grpc_session_answer(s, c);
	} else if (!call_check_message(c, s->host.o->body_bytes_max)) {
		grpc_session_answer(s, c);
	} else {
		grpc_take_message(s, c);
	}
}

void session_returned(struct session *s, struct grpc_call *c)
{
	assert(c->handed && s->handed_n);
	c->handed = false;
	s->handed_n--;
	if (!c->stream) {
		grpc_forget(s, c);
		return;
	}
	if (c->state == CALL_ADMITTING) {
		grpc_admitted(s, c);
		return;
	}
	s->credit += CREDIT_PER_CALL;
	grpc_session_answer(s, c);
}

/* ---- what nghttp2 calls ---- */

/* A frame that carries nothing. */
static void grpc_spend(struct session *s)
{
	if (s->credit-- > 0 || s->flooded)
		return;
	s->flooded = true;
	if (nghttp2_session_terminate_session(s->h2, NGHTTP2_ENHANCE_YOUR_CALM))
		s->broken = true;
}

static int grpc_on_begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *ctx)
{
	struct session *s = ctx;
	struct grpc_call *c;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	if (!(c = call_open(s->host.o, frame->hd.stream_id)))
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets the stream */
	c->in.client = s->host.client;
	c->in.remote = s->host.remote;
	c->in.tls_session = s->host.tls_session;
	c->prev = s->calls.prev;
	c->next = &s->calls;
	c->prev->next = c->next->prev = c;
	s->calls_n++;
	(*s->host.calls_n)++;
	nghttp2_session_set_stream_user_data(h2, c->stream, c);
	return 0;
}

static int grpc_on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
	size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *ctx)
{
	struct grpc_call *c = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);

	(void)flags;
	(void)ctx;
	if (c && c->state == CALL_HEAD)
		call_head(c, (struct str){ (const char *)name, name_len },
			(struct str){ (const char *)value, value_len });
	return 0;
}

static void call_ended(struct session *s, struct grpc_call *c)
{
	c->whole = true;
	if (c->state == CALL_BODY)
		grpc_message_is_whole(s, c);
}

static int grpc_on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *ctx)
{
	struct session *s = ctx;
	struct grpc_call *c = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
	bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		if (!c)
			break;
		c->whole = ends;
		if (c->state == CALL_HEAD)
			grpc_head_is_whole(s, c);
		else if (ends) /* trailers */
			call_ended(s, c);
		break;
	case NGHTTP2_DATA:
		if (!frame->hd.length && !ends)
			grpc_spend(s);
		if (c && ends)
			call_ended(s, c);
		break;
	case NGHTTP2_SETTINGS:
		s->greeted = true;
		grpc_spend(s);
		break;
	default:
		grpc_spend(s);
	}
	return 0;
}

static int grpc_on_data(
	nghttp2_session *h2, uint8_t flags, int32_t stream, const uint8_t *data, size_t n, void *ctx)
{
	struct session *s = ctx;
	struct grpc_call *c = nghttp2_session_get_stream_user_data(h2, stream);

	(void)flags;
	if (nghttp2_session_consume_connection(h2, n))
		s->broken = true;
	if (c)
		grpc_take_data(s, c, data, n);
	return 0;
}

static int grpc_on_invalid_frame(
	nghttp2_session *h2, const nghttp2_frame *frame, int error, void *ctx)
{
	(void)h2;
	(void)frame;
	(void)error;
	grpc_spend(ctx);
	return 0;
}

/* Answered before its message was whole: nothing more of it is wanted. */
static int grpc_on_sent(nghttp2_session *h2, const nghttp2_frame *frame, void *ctx)
{
	int32_t stream = frame->hd.stream_id;

	(void)ctx;
	if (frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
		nghttp2_session_get_stream_remote_close(h2, stream) == 0)
		return nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, stream, NGHTTP2_NO_ERROR) ?
			NGHTTP2_ERR_CALLBACK_FAILURE :
			0;
	return 0;
}

static void grpc_stream_ended(struct session *s, struct grpc_call *c)
{
	c->stream = 0;
	if (c->handed)
		atomic_store(&c->in.canceled, true);
	else
		grpc_forget(s, c);
}

static int grpc_on_close(nghttp2_session *h2, int32_t stream, uint32_t code, void *ctx)
{
	struct grpc_call *c = nghttp2_session_get_stream_user_data(h2, stream);

	(void)code;
	if (c)
		grpc_stream_ended(ctx, c);
	return 0;
}

/* ---- opening ---- */

static int grpc_set_up(struct session *s)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_STREAMS_MAX },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_HEAD_BYTES_MAX },
	};
	nghttp2_session_callbacks *calls = NULL;
	nghttp2_option *option = NULL;
	int rc = NGHTTP2_ERR_NOMEM;

	if (nghttp2_session_callbacks_new(&calls) || nghttp2_option_new(&option))
		goto end;
	nghttp2_session_callbacks_set_on_begin_headers_callback(calls, grpc_on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(calls, grpc_on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(calls, grpc_on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, grpc_on_data);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(calls, grpc_on_invalid_frame);
	nghttp2_session_callbacks_set_on_frame_send_callback(calls, grpc_on_sent);
	nghttp2_session_callbacks_set_on_stream_close_callback(calls, grpc_on_close);
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_option_set_no_closed_streams(option, 1);
	nghttp2_option_set_max_outbound_ack(option, CREDIT_MAX);
	if ((rc = nghttp2_session_server_new2(&s->h2, calls, s, option)) ||
		(rc = nghttp2_submit_settings(
			 s->h2, NGHTTP2_FLAG_NONE, settings, sizeof(settings) / sizeof(settings[0]))))
		goto end;
	rc = nghttp2_session_set_local_window_size(
		s->h2, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW_BYTES);
end:
	nghttp2_session_callbacks_del(calls);
	nghttp2_option_del(option);
	return rc;
}

enum err_code session_open(const struct session_host *host, struct session **out, struct err *err)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(err, "gRPC connection");
	s->host = *host;
	s->credit = CREDIT_MAX;
	s->calls.prev = s->calls.next = &s->calls;
	if (grpc_set_up(s)) {
		session_close(s);
		session_free(s);
		return err_nomem(err, "gRPC connection");
	}
	*out = s;
	return ERR_OK;
}

void session_close(struct session *s)
{
	struct grpc_call *c, *next;

	if (s->closed)
		return;
	s->closed = true;
	nghttp2_session_del(s->h2);
	s->h2 = NULL;
	for (c = s->calls.next; c != &s->calls; c = next) {
		next = c->next;
		if (c->stream)
			grpc_stream_ended(s, c);
	}
}

void session_free(struct session *s)
{
	if (!s)
		return;
	assert(s->closed && !s->calls_n && !s->handed_n);
	free(s);
}

/* ---- what its connection calls ---- */

enum err_code session_receive(struct session *s, const void *data, size_t n, struct err *err)
{
	ssize_t taken = nghttp2_session_mem_recv(s->h2, data, n);

	if (taken == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
		return err_set(err, ERR_INVALID, "not HTTP/2: use prior knowledge, or ALPN h2");
	if (taken < 0)
		return err_set(err, taken == NGHTTP2_ERR_NOMEM ? ERR_NOMEM : ERR_INVALID, "HTTP/2: %s",
			nghttp2_strerror((int)taken));
	if (s->broken)
		return err_nomem(err, "HTTP/2");
	return ERR_OK;
}

struct str session_next(struct session *s)
{
	const uint8_t *bytes = NULL;
	ssize_t n = s->broken ? 0 : nghttp2_session_mem_send(s->h2, &bytes);

	if (n < 0)
		s->broken = true;
	return n > 0 ? (struct str){ (const char *)bytes, (size_t)n } : STR("");
}

/* Its head, its message or the reading of its answer takes too long. */
static void grpc_too_late(struct session *s, struct grpc_call *c)
{
	switch (c->state) {
	case CALL_HEAD: /* nothing else can be received before it ends */
		if (nghttp2_session_terminate_session(s->h2, NGHTTP2_CANCEL))
			s->broken = true;
		break;
	case CALL_BODY:
		grpc_fail(&c->answer, GRPC_DEADLINE_EXCEEDED, 0,
			"the call did not come whole within %lld s (--web.body-timeout)",
			(long long)(s->host.o->body_timeout_ns / NS_PER_S));
		grpc_session_answer(s, c);
		break;
	case CALL_ANSWERED:
		c->began_ns = INT64_MAX; /* once */
		if (nghttp2_submit_rst_stream(s->h2, NGHTTP2_FLAG_NONE, c->stream, NGHTTP2_CANCEL))
			s->broken = true;
		break;
	case CALL_ADMITTING:
	case CALL_WORKING:
		break;
	}
}

void session_tick(struct session *s, int64_t now_ns)
{
	struct grpc_call *c, *next;

	s->credit = s->credit + CREDIT_PER_S < CREDIT_MAX ? s->credit + CREDIT_PER_S : CREDIT_MAX;
	for (c = s->calls.next; c != &s->calls; c = next) {
		next = c->next;
		if (now_ns - c->began_ns >= s->host.o->body_timeout_ns)
			grpc_too_late(s, c);
	}
}

void session_shut(struct session *s)
{
	if (s->shut)
		return;
	s->shut = true;
	for (struct grpc_call *c = s->calls.next; c != &s->calls; c = c->next)
		if (c->state == CALL_BODY) {
			grpc_fail(&c->answer, GRPC_UNAVAILABLE, RETRY_S, "the server is shutting down");
			grpc_session_answer(s, c);
		}
	if (nghttp2_submit_goaway(s->h2, NGHTTP2_FLAG_NONE,
			nghttp2_session_get_last_proc_stream_id(s->h2), NGHTTP2_NO_ERROR, NULL, 0))
		s->broken = true;
}

void session_cancel(struct session *s)
{
	s->canceled = true;
	for (struct grpc_call *c = s->calls.next; c != &s->calls; c = c->next)
		if (c->handed)
			atomic_store(&c->in.canceled, true);
}

bool session_is_over(const struct session *s)
{
	return s->broken || !nghttp2_session_want_read(s->h2) || (s->shut && !s->calls_n);
}

bool session_greeted(const struct session *s)
{
	return s->greeted;
}

bool session_flooded(const struct session *s)
{
	return s->flooded;
}

unsigned session_calls(const struct session *s)
{
	return s->calls_n;
}

unsigned session_handed(const struct session *s)
{
	return s->handed_n;
}
