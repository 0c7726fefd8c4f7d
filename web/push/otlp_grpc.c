/*
 * OTLP profiles over gRPC: ProfilesService/Export.
 *
 * UNAVAILABLE with a RetryInfo is what every sender repeats. RESOURCE_EXHAUSTED has none here, so
 * nobody repeats what never fits.
 */
#include "proto/otlp/otlp.h"
#include "web/push/forms.h"
#include "web/push/otlp.h"

void otlp_grpc_handle(void *ctx, struct http_in *in, struct grpc_answer *out)
{
	struct otlp_result r;

	otlp_store(ctx, in, false, &r);
	if (r.outcome == OTLP_AGAIN)
		grpc_fail(out, GRPC_UNAVAILABLE, r.retry_s, "%s", r.err.msg);
	else if (r.outcome == OTLP_REFUSED)
		grpc_fail(out, (enum grpc_status)otlp_status_code(r.err.code), 0, "%s", r.err.msg);
	else
		otlp_add_response(&out->body, OTLP_PROTOBUF, r.rejected, str_of(r.err.msg));
}
