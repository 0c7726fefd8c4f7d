/*
 * Pair: a server that runs a script, and a client that asks it. A test program has one pair.
 */
#ifndef TESTS_BASE_NET_HTTP_PAIR_H
#define TESTS_BASE_NET_HTTP_PAIR_H

#include "tests/base/net/http_server.h"

static struct http_server server;
static struct client client;
static struct http_result res; /* the last answer */
static char url[128]; /* of the server; tests may change it */

/* tls NULL: plain. */
static inline bool pair_start(script_fn script, const void *ctx, SSL_CTX *tls, const char *path)
{
	if (!http_server_start(&server, script, (void *)(uintptr_t)ctx, tls) ||
		!client_open(&client, 0, NULL))
		return false;
	snprintf(url, sizeof(url), "%s://127.0.0.1:%u%s", tls ? "https" : "http", server.port, path);
	return true;
}

static inline void pair_stop(void)
{
	client_close(&client);
	http_server_stop(&server);
	result_release(&res);
	res = (struct http_result){ 0 };
}

#endif
