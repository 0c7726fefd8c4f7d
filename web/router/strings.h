/*
 * Lists of names that grow in an arena: the answers to several match[] as one list.
 *
 * Errors:    ERR_LIMIT, ERR_NOMEM: the arena's.
 * Ownership: the list is in the arena, the bytes of the names are the caller's. It begins as { 0 }.
 * Threads:   one request, one thread.
 */
#ifndef WEB_ROUTER_STRINGS_H
#define WEB_ROUTER_STRINGS_H

#include "base/arena.h"
#include "base/str.h"

struct router_strings {
	struct str *v;
	size_t n, cap;
};

MUST_CHECK enum err_code strings_add(
	struct router_strings *s, struct arena *a, const struct str *str, size_t n, struct err *err);
void strings_unique(struct router_strings *s); /* sorted, each once */

#endif
