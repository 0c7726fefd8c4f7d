/*
 * URLs of targets, escaped as Go's net/url does, so that they read as Prometheus's.
 *
 * Ownership: a query's arrays live in its arena; names and values are not copied.
 * Errors:    allocation failures of a query show in url_print: ERR_NOMEM.
 * Threads:   values.
 */
#ifndef SCRAPE_URL_H
#define SCRAPE_URL_H

#include "base/arena.h"
#include "base/str.h"

struct url_param {
	struct str name;
	const struct str *values;
	size_t n;
};

struct url_query {
	struct arena *arena;
	struct url_param *v; /* ascending by name */
	size_t n, cap;
	bool failed;
};

/* The values of `name` are these; no values: the name goes. */
void url_query_set(struct url_query *q, struct str name, const struct str *values, size_t n);
/* The first value of `name` is this one; further ones stay. */
void url_query_set_first(struct url_query *q, struct str name, struct str value);

/* scheme://address/path?query */
MUST_CHECK enum err_code url_print(struct buf *out, struct str scheme, struct str address,
	struct str path, const struct url_query *q, struct err *err);

/* `url` with this value of the parameter, and no other, behind all others. */
void url_print_with(struct buf *out, struct str url, struct str name, struct str value);

/* host, host:port, [v6]:port: nothing in it that would end the host part of a URL. */
bool url_address_valid(struct str address);

/*
 * The URL under which others reach a target that calls itself localhost: its host, or, where it is
 * this very server (listen_address has its port), scheme and all, taken from external_url.
 * Otherwise url as it is.
 */
void url_print_global(
	struct buf *out, struct str url, struct str listen_address, struct str external_url);

#endif
