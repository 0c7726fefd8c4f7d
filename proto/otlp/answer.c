/* The answers: ExportProfilesServiceResponse and google.rpc.Status. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "proto/otlp/otlp.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* The length of the UTF-8 sequence at the front of s; 0: there is none. */
static size_t otlp_sequence(struct str s)
{
	for (size_t n = 1; n <= 4 && n <= s.len; n++)
		if (str_is_utf8((struct str){ s.ptr, n }))
			return n;
	return 0;
}

/* Protobuf's strings must be UTF-8: receivers refuse the whole message otherwise. */
static void otlp_add_utf8(struct buf *out, struct str s)
{
	if (str_is_utf8(s)) {
		buf_add_str(out, s);
		return;
	}
	while (s.len) {
		size_t n = otlp_sequence(s);

		if (n)
			buf_add(out, s.ptr, n);
		else
			buf_add(out, REPLACEMENT, 3);
		n = n ? n : 1;
		s = (struct str){ s.ptr + n, s.len - n };
	}
}

/* A number and a message: fields 1 and 2 of both answers. Zero and empty are left out. */
static void otlp_add_pair(struct buf *out, uint64_t number, struct str message)
{
	struct buf text = { 0 };

	if (number) {
		buf_add_char(out, 1 << 3);
		buf_add_varint(out, number);
	}
	otlp_add_utf8(&text, message);
	if (text.len) {
		buf_add_char(out, 2 << 3 | 2);
		buf_add_lenstr(out, buf_str(&text));
	}
	out->failed = out->failed || text.failed;
	buf_release(&text);
}

void otlp_add_response(
	struct buf *out, enum otlp_format format, uint64_t rejected, struct str message)
{
	struct buf partial = { 0 };
	struct json j;

	if (format == OTLP_PROTOBUF) {
		otlp_add_pair(&partial, rejected, message);
		if (partial.len) {
			buf_add_char(out, 1 << 3 | 2);
			buf_add_lenstr(out, buf_str(&partial));
		}
		out->failed = out->failed || partial.failed;
		buf_release(&partial);
		return;
	}
	json_init(&j, out);
	json_object(&j);
	if (rejected || message.len) {
		char text[24];

		snprintf(text, sizeof(text), "%" PRIu64, rejected);
		json_key(&j, "partialSuccess");
		json_object(&j);
		json_key(&j, "rejectedProfiles");
		json_cstr(&j, text);
		json_key(&j, "errorMessage");
		json_str(&j, message);
		json_object_end(&j);
	}
	json_object_end(&j);
}

void otlp_add_status(struct buf *out, enum otlp_format format, int code, struct str message)
{
	struct json j;

	if (format == OTLP_PROTOBUF) {
		otlp_add_pair(out, (uint64_t)code, message);
		return;
	}
	json_init(&j, out);
	json_object(&j);
	json_key(&j, "code");
	json_i64(&j, code);
	json_key(&j, "message");
	json_str(&j, message);
	json_object_end(&j);
}

int otlp_status_code(enum err_code code)
{
	switch (code) {
	case ERR_OK:
		return 0;
	case ERR_CANCELED:
		return 1;
	case ERR_INVALID:
	case ERR_UNSUPPORTED: /* an old version: to try again helps as little */
		return 3;
	case ERR_TIMEOUT:
		return 4;
	case ERR_NOT_FOUND:
		return 5;
	case ERR_EXISTS:
		return 6;
	case ERR_LIMIT:
		return 8;
	case ERR_UNAVAILABLE:
	case ERR_NOMEM:
		return 14;
	default:
		return 13;
	}
}
