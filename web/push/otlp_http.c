/* OTLP profiles over HTTP: POST /v1development/profiles, protobuf or JSON. */
#include "proto/otlp/otlp.h"
#include "web/push/forms.h"
#include "web/push/otlp.h"
#include "web/push/push.h"

#define PROTO_TYPE "application/x-protobuf"
#define JSON_TYPE "application/json"

static int otlp_http_status_of(const struct otlp_result *r)
{
	if (r->outcome == OTLP_TAKEN)
		return 200;
	if (r->outcome == OTLP_REFUSED)
		return push_status(r->err.code);
	return r->err.code == ERR_LIMIT ? 429 : 503;
}

void otlp_handle(struct web *w, struct http_in *in, struct http_out *out)
{
	bool json = http_type_is(in->content_type, JSON_TYPE);
	enum otlp_format format = json ? OTLP_JSON : OTLP_PROTOBUF;
	struct otlp_result r;

	if (!json && !http_type_is(in->content_type, PROTO_TYPE)) {
		err_set(&r.err, ERR_UNSUPPORTED, "Content-Type must be %s or %s", PROTO_TYPE, JSON_TYPE);
		router_refuse_profiles(w, in, ERR_UNSUPPORTED, str_of(r.err.msg));
		http_text(out, 415, "%s", r.err.msg);
		return;
	}
	otlp_store(w, in, json, &r);
	out->status = otlp_http_status_of(&r);
	out->content_type = json ? JSON_TYPE : PROTO_TYPE;
	if (r.outcome == OTLP_TAKEN)
		otlp_add_response(&out->body, format, r.rejected, str_of(r.err.msg));
	else
		otlp_add_status(&out->body, format, otlp_status_code(r.err.code), str_of(r.err.msg));
	if (r.outcome == OTLP_AGAIN)
		http_add_header(out, "Retry-After", str_of(arena_printf(&in->arena, "%u", r.retry_s)));
}
