/*
 * Codings of answers: zstd or gzip, as the client takes them.
 *
 * Both at their fastest levels: JSON of a flame graph still shrinks to a quarter. zstd takes 0.75
 * ms for gzip's 0.86 and as many bytes; of JSON of a megabyte half the time and two thirds of the
 * bytes.
 *
 * Errors:  ERR_NOMEM.
 * Threads: pure functions.
 * Source:  RFC 9110, "Accept-Encoding"; RFC 8878, zstd; RFC 9659, windows of 8 MiB at most.
 */
#ifndef WEB_HTTP_CODING_H
#define WEB_HTTP_CODING_H

#include "web/http/http.h"

#define CODING_GZIP_LEVEL 1 /* libdeflate's fastest */
#define CODING_ZSTD_LEVEL 1 /* its windows have 512 KiB */

/* The one with the highest weight, zstd of two that are equal. "*" is none. */
enum http_coding http_coding_of(const struct http_in *in);
/* Adds the headers of a body in this coding. */
void http_add_coding(struct http_out *out, enum http_coding coding);
/* Appends all of an answer in a coding that is not HTTP_PLAIN. */
MUST_CHECK enum err_code coding_add(
	enum http_coding coding, struct str raw, struct buf *out, struct err *err);

#endif
