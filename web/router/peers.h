/*
 * Peers: admission of requests that other shards send to this one (ROUTE_PEERS). They have no user
 * and no client certificate. They prove with the secret of the shards that they are of the cluster;
 * where no users are asked for, the secret is asked for all the same.
 *
 * Threads: any.
 */
#ifndef WEB_ROUTER_PEERS_H
#define WEB_ROUTER_PEERS_H

#include "web/router/router.h"

/* Whether the request's route is for shards alone. */
bool peers_are_asked(const struct web *w, const struct http_in *in);
/*
 * 503 until the server is ready, 404 if it is no shard that has joined others, 401 without the
 * secret, 403 with a wrong one.
 */
enum http_admission peers_admit(struct web *w, struct http_in *in, struct http_out *out);

#endif
