/*
 * The server: configuration, database, engine, scraping, web, rules, notifier, wired together.
 *
 * Errors:    ERR_INVALID, ERR_LIMIT, ERR_NOT_FOUND: the configuration; others: the system.
 * Ownership: server_open hands *out to the caller; server_close ends everything in order.
 * Threads:   open and close from the main thread; reload from any, one at a time inside.
 */
#ifndef CMD_EPIMETHEUS_SERVER_H
#define CMD_EPIMETHEUS_SERVER_H

#include "cmd/epimetheus/options.h"

struct extractor;
struct server;

/*
 * extractor: of symbols, opened before the first thread; the caller's, closed after the server.
 * NULL: there is none.
 */
MUST_CHECK enum err_code server_open(
	const struct options *o, struct extractor *extractor, struct server **out, struct err *err);
/* Reads the configuration file again. Any error leaves the old one in force. */
MUST_CHECK enum err_code server_reload(struct server *s, struct err *err);
/* Another server took over what this one published: the process ends, and that is no success. */
bool server_is_fenced(struct server *s);
void server_close(struct server *s); /* NULL and half-built are fine */

#endif
