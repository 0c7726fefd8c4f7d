/*
 * The gRPC server of OTLP profiles: --web.otlp-grpc-listen-address. Users, certificates and limits
 * are those of the HTTP server.
 */
#include "web/otlp_grpc.h"

#include <assert.h>

#include "base/clock.h"
#include "proto/pprof.h"
#include "web/grpc/grpc.h"
#include "web/push/forms.h"
#include "web/router/audit.h"
#include "web/router/refused.h"

#define PROFILES "opentelemetry.proto.collector.profiles.v1development.ProfilesService"
/*
 * Most of them wait: for a turn to decode, of which there are few, for a commit, or for a password.
 */
#define WORKERS 32u

/* grpc.health.v1: {1 service} is answered by {1 status}, 1: SERVING. */
static void web_otlp_grpc_check_health(void *ctx, struct http_in *in, struct grpc_answer *out)
{
	static const char *const served[] = { "", PROFILES };
	struct cursor c = cursor_of(in->body);
	struct str service = STR("");

	(void)ctx;
	if (in->content_encoding.len || (in->body.len && cursor_u32(&c) != (1 << 3 | 2))) {
		grpc_fail(out, GRPC_INVALID_ARGUMENT, 0, "not a HealthCheckRequest, uncompressed");
		return;
	}
	if (in->body.len)
		service = cursor_lenstr(&c);
	if (c.bad || cursor_left(&c))
		grpc_fail(out, GRPC_INVALID_ARGUMENT, 0, "not a HealthCheckRequest, uncompressed");
	else if (!str_is(service, served[0]) && !str_is(service, served[1]))
		grpc_fail(out, GRPC_NOT_FOUND, 0, "unknown service");
	else
		buf_add(&out->body, "\x08\x01", 2);
}

/* clang-format off */
static const struct grpc_method methods[] = {
	{ "/" PROFILES "/Export", NEEDS_INGEST, otlp_grpc_handle },
	{ "/grpc.health.v1.Health/Check", NEEDS_USER, web_otlp_grpc_check_health },
};
/* clang-format on */

static enum http_admission web_otlp_grpc_admit_user(
	struct web *w, struct http_in *in, struct http_out *out, bool may_wait, enum http_needs *needs)
{
	const struct grpc_method *m = grpc_method_find(
		methods, sizeof(methods) / sizeof(methods[0]), in->path);
	enum http_admission admission = web_config_admit(w->config, in, out, may_wait, false);

	assert(m);
	if (admission != HTTP_ADMITTED)
		return admission;
	*needs = m->needs;
	return router_user_may(in, out, m->needs, false) ? HTTP_ADMITTED : HTTP_ANSWERED;
}

static enum http_admission web_otlp_grpc_admit(
	void *ctx, struct http_in *in, struct http_out *out, bool may_wait)
{
	struct web *w = ctx;
	enum http_needs needs = NEEDS_NOT_SAID;
	enum http_admission admission = web_otlp_grpc_admit_user(w, in, out, may_wait, &needs);
	struct buf why = { 0 };

	if (admission == HTTP_ANSWERED)
		audit_request(w->audit, in, out, needs, clock_monotonic_ns());
	if (admission != HTTP_ADMITTED || router_is_ready(w, &why))
		return admission;
	http_text(out, 503, STR_FMT, STR_ARG(buf_str(&why)));
	buf_release(&why);
	return HTTP_ANSWERED;
}

static void web_otlp_grpc_refused(
	void *ctx, const struct http_in *in, enum grpc_status status, struct str message)
{
	static const unsigned reasons[] = {
		[GRPC_UNAUTHENTICATED] = REFUSED_UNAUTHORIZED,
		[GRPC_PERMISSION_DENIED] = REFUSED_FORBIDDEN,
		[GRPC_RESOURCE_EXHAUSTED] = ERR_LIMIT,
		[GRPC_UNIMPLEMENTED] = ERR_UNSUPPORTED,
		[GRPC_UNAVAILABLE] = ERR_UNAVAILABLE,
		[GRPC_DEADLINE_EXCEEDED] = ERR_TIMEOUT,
	};
	const struct grpc_method *m = grpc_method_find(
		methods, sizeof(methods) / sizeof(methods[0]), in->path);
	unsigned reason = status < sizeof(reasons) / sizeof(reasons[0]) ? reasons[status] : ERR_OK;

	if (m && m->needs != NEEDS_INGEST)
		return;
	router_refuse_profiles(ctx, in, reason ? reason : ERR_INVALID, message);
}

enum err_code otlp_grpc_open(struct web *w, struct err *err)
{
	const struct web_options *o = &w->o;
	const struct grpc_server_options g = {
		.listen_address = o->otlp_grpc_listen_address,
		.bound = o->otlp_grpc_bound,
		.workers = WORKERS,
		.connections_max = (unsigned)o->connections_max,
		.read_timeout_ns = o->read_timeout_ns,
		.body_timeout_ns = o->body_timeout_ns,
		.body_bytes_max = pprof_limits_default.body_bytes_max,
		.bodies_bytes_max = o->bodies_bytes_max,
		.address_bodies_bytes_max = o->address_bodies_bytes_max,
		.admit = web_otlp_grpc_admit,
		.refused = web_otlp_grpc_refused,
		.methods = methods,
		.methods_n = sizeof(methods) / sizeof(methods[0]),
		.ctx = w,
		.tls_certificate_fn = web_config_tls(w->config) ? web_config_certificate_fn() : NULL,
		.tls_priorities = web_config_priorities(w->config),
	};
	enum err_code rc;

	if (!o->otlp_grpc_listen_address || !o->otlp_grpc_listen_address[0])
		return ERR_OK;
	if (!o->enable_ingest)
		return err_set(
			err, ERR_INVALID, "--web.otlp-grpc-listen-address needs --web.enable-ingest");
	rc = grpc_server_open(&g, &w->grpc, err);
	return rc ? err_wrap(err, rc, "OTLP over gRPC") : ERR_OK;
}
