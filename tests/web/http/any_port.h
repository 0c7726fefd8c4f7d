/*
 * Opens a server for tests of web/http: any port of 127.0.0.1, four workers, 64 connections.
 */
#ifndef TESTS_WEB_HTTP_ANY_PORT_H
#define TESTS_WEB_HTTP_ANY_PORT_H

#include "tests/check.h"
#include "web/http/http.h"

/* The caller sets the other options. False, and the test fails, where the server does not open. */
static inline bool open_on_any_port(
	struct http_server_options o, struct http_server **out, unsigned *port)
{
	struct err err;

	o.listen_address = "127.0.0.1:0";
	o.workers = 4;
	o.connections_max = 64;
	if (http_server_open(&o, out, &err)) {
		CHECK_FAIL("server: %s", err.msg);
		return false;
	}
	*port = http_server_port(*out);
	return true;
}

#endif
