/*
 * Asking a server that has no data: open it, send one request, or check a table of requests. For
 * files with tests, whose checks count what is wrong.
 *
 * Threads: that of the test.
 */
#ifndef TESTS_WEB_ASKING_H
#define TESTS_WEB_ASKING_H

#include <stdlib.h>

#include "tests/check.h"
#include "tests/web/http/http_peer.h"
#include "web/web.h"

/* Ends the program where the server does not open. */
static inline struct web *asking_open(const struct web_options *o)
{
	struct web *w = NULL;
	struct err err;

	if (web_open(o, &w, &err)) {
		CHECK_FAIL("web_open: %s", err.msg);
		exit(1);
	}
	return w;
}

/* The status. */
static inline int asking_get(
	struct web *w, const char *request, const char *headers, struct response *r)
{
	peer_ask(web_port(w), r, request, headers, (struct str){ 0 });
	return r->status;
}

struct asking_row {
	const char *request;
	int status;
	const char *body; /* NULL: not looked at */
};

static inline void asking_check(struct web *w, const struct asking_row *rows, size_t n)
{
	struct response r = { 0 };

	for (size_t i = 0; i < n; i++) {
		asking_get(w, rows[i].request, "", &r);
		if (r.status != rows[i].status)
			CHECK_FAIL("%s: %d, want %d", rows[i].request, r.status, rows[i].status);
		if (rows[i].body && !str_is(buf_str(&r.body), rows[i].body))
			CHECK_FAIL("%s: \"" STR_FMT "\", want \"%s\"", rows[i].request,
				STR_ARG(buf_str(&r.body)), rows[i].body);
	}
	response_release(&r);
}

#define ASK_ALL(w, rows) asking_check((w), (rows), sizeof(rows) / sizeof((rows)[0]))

#endif
