/*
 * Notices: the warnings and infos of an answer, for formats other than JSON, whose envelope has
 * them. The others get a header, and pprof also comments:
 *
 *   Warning: 299 - "rows of the block that starts at 1700000000 may be missing: ...", 199 - "..."
 *
 * 299 is a warning, 199 an info. The text is ASCII; the rest is escaped as buf_add_printable
 * does. Proxies accept few kilobytes of headers, so long texts are cut, and only the first
 * notices are listed: "and 5 more warnings".
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT of the arena.
 * Ownership: a text is copied to the arena if it changes, else it points to what was given; a
 *            header's value is always a copy.
 * Threads:   values.
 * Source:    RFC 7234, 5.5.
 */
#ifndef WEB_RENDER_NOTICES_H
#define WEB_RENDER_NOTICES_H

#include "promql/value/value.h"
#include "web/http/http.h"

#define NOTICES_MAX 8u /* listed; at most two more say how many others there are */
#define NOTICE_BYTES_MAX 256u /* of a text in the header */

struct pprof;

struct notices {
	const struct str *warnings, *infos;
	size_t warnings_n, infos_n;
};

static inline struct notices notices_of(const struct result *r)
{
	return (struct notices){ r->warnings, r->infos, r->warnings_n, r->infos_n };
}

static inline struct notices notices_of_querier(struct db_querier *q)
{
	struct notices n;

	n.warnings = db_querier_warnings(q, &n.warnings_n);
	n.infos = db_querier_infos(q, &n.infos_n);
	return n;
}

/* Adds the header Warning, unless there are no notices. */
MUST_CHECK enum err_code notices_add_header(
	const struct notices *n, struct arena *a, struct http_out *out, struct err *err);
/* Adds comments "Warning: ..." and "Info: ..." behind those of p. */
MUST_CHECK enum err_code notices_add_comments(
	const struct notices *n, struct arena *a, struct pprof *p, struct err *err);
/* Prints them as lines, each behind `prefix`. */
MUST_CHECK enum err_code notices_print(
	const struct notices *n, const char *prefix, struct arena *a, struct buf *out, struct err *err);

/*
 * Reads the next notice of a header's value, which may be any bytes. Returns false if there is
 * none or the rest is malformed. The text is appended without its quotes.
 */
bool notices_read(struct str *rest, bool *is_info, struct buf *text);

#endif
