/*
 * User: who sent a request, how that is known, and what this user may do.
 *
 * Roles are granted by the web configuration (web/http/rights.h). Where it names no users,
 * everybody has every role.
 *
 * Ownership: a user lives as long as its request; http_user_leave ends it.
 * Threads:   values; one request, one thread.
 */
#ifndef WEB_HTTP_USER_H
#define WEB_HTTP_USER_H

#include "base/str.h"

struct label_limits;

enum http_role {
	ROLE_READ = 1, /* queries, status */
	ROLE_INGEST = 2, /* pushes profiles and debug data */
	ROLE_ADMIN = 4, /* deletes, snapshots, reload, quit; has the others too */
	ROLES_ALL = 7,
};

/* What a request needs. Each route and each method of gRPC says it. */
enum http_needs {
	NEEDS_NOT_SAID, /* a mistake: the server does not start */
	NEEDS_USER, /* anybody who signed in, with any role or none */
	NEEDS_READ, /* and what is answered follows the user's matchers */
	NEEDS_READ_ALL, /* the role read without matchers: the answer cannot be limited */
	NEEDS_INGEST,
	NEEDS_ADMIN,
};

struct http_user {
	struct str name; /* "": nobody signed in */
	const char *sign_in; /* "password", "token", "proxy"; NULL: users are not asked for */
	const char *why; /* nobody signed in, and there is more to say; or NULL */
	unsigned roles; /* enum http_role */
	const struct label_limits *limits; /* of series that may be seen; NULL: all */
	void (*release)(void *held); /* NULL: nothing is held */
	void *held; /* what the fields point to */
};

void http_user_leave(struct http_user *u);
bool http_user_may(const struct http_user *u, enum http_needs needs);
/* Why not: user "ci" lacks the role read; it has ingest */
void http_user_refuse(struct buf *out, const struct http_user *u, enum http_needs needs);
/* 0: no role is called that. */
unsigned http_role_parse(struct str name);
const char *http_needs_name(enum http_needs needs); /* the role: "read", ... */

#endif
