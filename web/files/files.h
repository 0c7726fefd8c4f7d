/*
 * Files over HTTP: profiles that people drop on the page. A file is looked at, or it is kept until
 * it expires; queries name it by file("NAME"), where NAME is that of a file in the same request, or
 * the id of a kept one.
 *
 * Threads: handlers run on workers.
 * Source:  web/files/README.md.
 */
#ifndef WEB_FILES_FILES_H
#define WEB_FILES_FILES_H

#include "promql/files/files.h"
#include "web/push/multipart.h"
#include "web/router/router.h"

/* What a query may bring: two files of the most bytes, and the fields of its form. */
#define FILES_QUERY_BYTES_MAX (33u << 20)

/* POST /api/v1/files: what is in the body; with keep=DURATION it is kept. */
void files_post(struct web *w, struct http_in *in, struct http_out *out);
void files_list(struct web *w, struct http_in *in, struct http_out *out); /* GET, for operators */
/* GET /api/v1/files/ID: what is in it; content=true: its bytes. DELETE removes it. */
void files_get(struct web *w, struct http_in *in, struct http_out *out);
void files_delete(struct web *w, struct http_in *in, struct http_out *out);

/* A route_admit_fn of queries: a form with files may be longer than one without. */
bool files_admit_query(struct web *w, struct http_in *in, struct http_out *out);

/* The files that one request may name. It is not moved while the finder is used. */
struct file_request {
	struct multipart parts;
	struct kept *kept;
	struct file_finder finder;
};
/* Of a multipart/form-data body the fields become parameters of the request. */
MUST_CHECK enum err_code files_read_request(
	struct web *w, struct http_in *in, struct file_request *out, struct err *err);

#endif
