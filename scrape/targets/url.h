/*
 * URLs of targets, escaped as Go's net/url does, so that they read as Prometheus's.
 *
 * Ownership: a query's arrays live in its arena; names and values are not copied.
 * Errors:    allocation failures of a query show in url_print: ERR_NOMEM.
 * Threads:   values.
 */
#ifndef SCRAPE_TARGETS_URL_H
#define SCRAPE_TARGETS_URL_H

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

/* Sets the values of `name`; n 0 removes it. */
void url_query_set(struct url_query *q, struct str name, const struct str *values, size_t n);
/* Sets the first value of `name`; further ones stay. */
void url_query_set_first(struct url_query *q, struct str name, struct str value);

/* scheme://address/path?query */
MUST_CHECK enum err_code url_print(struct buf *out, struct str scheme, struct str address,
	struct str path, const struct url_query *q, struct err *err);

/* `url` with the parameter set to this value alone, as the last one. */
void url_print_with(struct buf *out, struct str url, struct str name, struct str value);

/*
 * Where the names of a profile at `url` are asked for: path behind prefix or, if path is "",
 * `symbol` beside the profile. Without parameters.
 */
void url_print_symbol(struct buf *out, struct str url, struct str prefix, struct str path);
/* path behind prefix, with one slash between them. Not escaped. */
void url_add_path(struct buf *out, struct str prefix, struct str path);

/* host, host:port or [v6]:port, without characters that end the host part of a URL. */
bool url_address_valid(struct str address);

/*
 * The URL by which other machines reach a target on localhost: the host is that of external_url. If
 * the target is this server (listen_address has its port), scheme and port are too. Any other url
 * is copied as it is.
 */
void url_print_global(
	struct buf *out, struct str url, struct str listen_address, struct str external_url);

#endif
