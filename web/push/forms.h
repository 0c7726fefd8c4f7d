/*
 * Forms: the handlers of what senders push (web/routes.c).
 *
 * Threads: workers; any number at once.
 */
#ifndef WEB_PUSH_FORMS_H
#define WEB_PUSH_FORMS_H

#include "web/grpc/grpc.h"
#include "web/router/router.h"

/* push_v1.c: push.v1.PusherService/Push, of Pyroscope's SDKs and Alloy. */
route_fn push_v1_handle;
/* ingest.c: /ingest, of Pyroscope's SDKs. */
route_fn ingest_handle;
/* shard_profiles.c: from other shards of a cluster (ROUTE_PEERS). */
route_fn shard_profiles_handle;
route_admit_fn shard_profiles_admit;
/* otlp_http.c, otlp_grpc.c: OTLP profiles. The latter's ctx is the struct web. */
route_fn otlp_handle;
grpc_method_fn otlp_grpc_handle;

#endif
