/*
 * What is sent of an answer: HEADERS, DATA and HEADERS (trailers) for OK; one HEADERS for all else,
 * which gRPC calls Trailers-Only.
 */
#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "proto/base64.h"
#include "proto/otlp/otlp.h"
#include "web/grpc/call.h"

METRIC_COUNTER(
	requests, "epimetheus_grpc_requests_total", "gRPC calls answered, by status.", "code");
METRIC_HISTOGRAM(request_seconds, "epimetheus_grpc_request_duration_seconds",
	"Time from the head of a gRPC call to its answer, by method.", "method");

#define MESSAGE_BYTES_MAX 1024u
#define FIELDS_MAX 8u
#define RETRY_INFO "type.googleapis.com/google.rpc.RetryInfo"

const char *grpc_status_name(enum grpc_status s)
{
	static const char *const names[] = { [GRPC_OK] = "OK",
		[GRPC_CANCELLED] = "CANCELLED",
		[GRPC_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
		[GRPC_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
		[GRPC_NOT_FOUND] = "NOT_FOUND",
		[GRPC_ALREADY_EXISTS] = "ALREADY_EXISTS",
		[GRPC_PERMISSION_DENIED] = "PERMISSION_DENIED",
		[GRPC_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
		[GRPC_UNIMPLEMENTED] = "UNIMPLEMENTED",
		[GRPC_INTERNAL] = "INTERNAL",
		[GRPC_UNAVAILABLE] = "UNAVAILABLE",
		[GRPC_UNAUTHENTICATED] = "UNAUTHENTICATED" };

	return (size_t)s < sizeof(names) / sizeof(names[0]) && names[s] ? names[s] : "UNKNOWN";
}

void grpc_fail(
	struct grpc_answer *a, enum grpc_status status, unsigned retry_s, const char *fmt, ...)
{
	char text[MESSAGE_BYTES_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	a->status = status;
	a->retry_s = retry_s;
	buf_clear(&a->message);
	buf_add_cstr(&a->message, text);
}

/* ---- the fields ---- */

/* As gRPC wants it: printable ASCII but "%" stays. */
static void grpc_add_message(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char b = (unsigned char)s.ptr[i];

		if (b >= 0x20 && b <= 0x7e && b != '%')
			buf_add_char(out, (char)b);
		else
			buf_printf(out, "%%%02X", b);
	}
}

static void grpc_add_member(struct buf *out, unsigned field, struct str bytes)
{
	buf_add_char(out, (char)(field << 3 | 2));
	buf_add_lenstr(out, bytes);
}

/* google.rpc.Status with a RetryInfo, in base64: {3 details Any {1 type_url, 2 value}}. */
static void grpc_add_details(struct buf *out, const struct grpc_answer *a)
{
	struct buf status = { 0 }, any = { 0 }, info = { 0 }, delay = { 0 };

	buf_add_char(&delay, 1 << 3); /* Duration {1 seconds} */
	buf_add_varint(&delay, a->retry_s);
	grpc_add_member(&info, 1, buf_str(&delay)); /* RetryInfo {1 retry_delay} */
	grpc_add_member(&any, 1, STR(RETRY_INFO));
	grpc_add_member(&any, 2, buf_str(&info));
	otlp_add_status(&status, OTLP_PROTOBUF, (int)a->status, buf_str(&a->message));
	grpc_add_member(&status, 3, buf_str(&any));
	base64_add(out, buf_str(&status));
	buf_release(&delay);
	buf_release(&info);
	buf_release(&any);
	buf_release(&status);
}

struct grpc_fields {
	nghttp2_nv v[FIELDS_MAX];
	size_t n;
	char http_status[12], status[12];
	struct buf message, details;
};

static void grpc_fields_add(struct grpc_fields *f, const char *name, struct str value)
{
	assert(f->n < FIELDS_MAX);
	f->v[f->n++] = (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value.ptr,
		strlen(name), value.len, NGHTTP2_NV_FLAG_NONE };
}

static void grpc_fields_add_head(struct grpc_fields *f, const struct grpc_call *c)
{
	snprintf(f->http_status, sizeof(f->http_status), "%d", c->http_status ? c->http_status : 200);
	grpc_fields_add(f, ":status", str_of(f->http_status));
	grpc_fields_add(f, "content-type", STR("application/grpc"));
	grpc_fields_add(f, "grpc-accept-encoding", STR("identity,gzip,zstd"));
}

/* A message without memory is left out: the status says enough. */
static void grpc_fields_add_status(struct grpc_fields *f, const struct grpc_answer *a)
{
	snprintf(f->status, sizeof(f->status), "%d", (int)a->status);
	grpc_fields_add(f, "grpc-status", str_of(f->status));
	if (a->status == GRPC_OK)
		return;
	grpc_add_message(&f->message, buf_str(&a->message));
	if (!buf_failed(&f->message) && f->message.len)
		grpc_fields_add(f, "grpc-message", buf_str(&f->message));
	if (!a->retry_s)
		return;
	grpc_add_details(&f->details, a);
	if (!buf_failed(&f->details))
		grpc_fields_add(f, "grpc-status-details-bin", buf_str(&f->details));
}

static void grpc_fields_release(struct grpc_fields *f)
{
	buf_release(&f->message);
	buf_release(&f->details);
}

/* ---- sending ---- */

static ssize_t grpc_read_body(nghttp2_session *h2, int32_t stream, uint8_t *to, size_t max,
	uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
	struct grpc_call *c = source->ptr;
	size_t n = c->sent.len - c->sent_at < max ? c->sent.len - c->sent_at : max;
	struct grpc_fields f = { .n = 0 };

	(void)ctx;
	if (n)
		memcpy(to, c->sent.ptr + c->sent_at, n);
	c->sent_at += n;
	if (c->sent_at < c->sent.len)
		return (ssize_t)n;
	*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	grpc_fields_add_status(&f, &c->answer);
	if (nghttp2_submit_trailer(h2, stream, f.v, f.n))
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return (ssize_t)n;
}

static void grpc_note(const struct grpc_call *c)
{
	int64_t took_ns = clock_monotonic_ns() - c->began_ns;
	const char *code = grpc_status_name(c->answer.status);

	metric_add(&requests, code, 1);
	metric_observe(
		&request_seconds, c->method ? c->method->path : "none", (double)took_ns / NS_PER_S);
	log_debug("grpc", "call", LOG_S("method", c->method ? c->method->path : ""),
		LOG_STR("remote", c->in.remote), LOG_S("status", code),
		LOG_STR("message", buf_str(&c->answer.message)), LOG_D("elapsed", took_ns));
	if (c->answer.status != GRPC_OK && !c->ran && c->o->refused)
		c->o->refused(c->o->ctx, &c->in, c->answer.status, buf_str(&c->answer.message));
}

int call_send(struct grpc_call *c, nghttp2_session *h2)
{
	const nghttp2_data_provider body = { { .ptr = c }, grpc_read_body };
	struct grpc_fields f = { .n = 0 };
	int rc;

	assert(c->stream && c->state != CALL_ANSWERED && !c->handed);
	c->state = CALL_ANSWERED;
	grpc_note(c);
	c->began_ns = clock_monotonic_ns();
	if (c->answer.status == GRPC_OK) {
		buf_add_char(&c->sent, 0);
		buf_add_u32be(&c->sent, (uint32_t)c->answer.body.len);
		buf_add_str(&c->sent, buf_str(&c->answer.body));
		if (buf_failed(&c->sent)) /* stored, but the sender cannot know: it may come again */
			grpc_fail(&c->answer, GRPC_UNAVAILABLE, 1, "out of memory");
	}
	grpc_fields_add_head(&f, c);
	if (c->answer.status != GRPC_OK)
		grpc_fields_add_status(&f, &c->answer);
	rc = nghttp2_submit_response(
		h2, c->stream, f.v, f.n, c->answer.status == GRPC_OK ? &body : NULL);
	grpc_fields_release(&f);
	return rc;
}
