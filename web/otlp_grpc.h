/*
 * The gRPC server of OTLP profiles, and of health checks.
 *
 * Errors:  ERR_INVALID (the address; profiles are not to be taken), ERR_UNAVAILABLE (in use).
 * Threads: web_open's.
 */
#ifndef WEB_OTLP_GRPC_H
#define WEB_OTLP_GRPC_H

#include "web/router/router.h"

/* Sets w->grpc, if there is an address for it. */
MUST_CHECK enum err_code otlp_grpc_open(struct web *w, struct err *err);

#endif
