/*
 * Notices: the warnings and infos of an answer, for formats without a place of their own for them.
 * JSON's envelope has one; the others get a header, and pprof comments:
 *
 *   Warning: 299 - "rows of the block that starts at 1700000000 may be missing: ...", 199 - "..."
 *
 * 299 is a warning and 199 an info. A text there is ASCII: what else it holds is escaped as
 * buf_add_printable does. Proxies take few kilobytes of headers, so a long text is cut, and of many
 * notices the first ones are listed and the rest are counted: "and 5 more warnings".
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT of the arena.
 * Ownership: texts are copied to the arena where they change, and else point to what was given;
 *            a header's value is always a copy.
 * Threads:   values.
 * Source:    RFC 7234, 5.5.
 */
#ifndef WEB_RENDER_NOTICES_H
#define WEB_RENDER_NOTICES_H

#include "promql/value.h"
#include "web/http/http.h"

#define NOTICES_MAX 8u /* listed; the lines that count the others are two at most */
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

static inline struct notices notices_of_querier(const struct db_querier *q)
{
	struct notices n;

	n.warnings = db_querier_warnings(q, &n.warnings_n);
	n.infos = db_querier_infos(q, &n.infos_n);
	return n;
}

/* Adds the header Warning, or nothing where there are none. */
MUST_CHECK enum err_code notices_add_header(
	const struct notices *n, struct arena *a, struct http_out *out, struct err *err);
/* Adds comments "Warning: ..." and "Info: ..." behind those that p has. */
MUST_CHECK enum err_code notices_add_comments(
	const struct notices *n, struct arena *a, struct pprof *p, struct err *err);
/* The same as lines of text, each behind `prefix`. */
MUST_CHECK enum err_code notices_print(
	const struct notices *n, const char *prefix, struct arena *a, struct buf *out, struct err *err);

/*
 * The next of a header's value, which may be any bytes: false where there is none, or where the
 * rest is not of this form. The text is appended, without its quotes.
 */
bool notices_read(struct str *rest, bool *is_info, struct buf *text);

#endif
