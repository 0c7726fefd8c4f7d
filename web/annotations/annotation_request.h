/*
 * Annotation request: a mark as it is sent, by parameters or as JSON:
 *
 *	{"time":1700000000,"end":1700000060,"text":"deploy v41","labels":{"job":"shop"}}
 *
 * Times are numbers or strings, as everywhere in the API; null is as if the field were left out.
 *
 * Units:     nanoseconds since 1970; bytes of UTF-8.
 * Errors:    ERR_INVALID, ERR_LIMIT: "invalid parameter "text": 5000 bytes, limit 4096"; ERR_NOMEM.
 * Ownership: what is read points into the request and the arena.
 * Threads:   pure functions.
 */
#ifndef WEB_ANNOTATIONS_ANNOTATION_REQUEST_H
#define WEB_ANNOTATIONS_ANNOTATION_REQUEST_H

#include "base/labels.h"
#include "web/http/http.h"

#define ANNOTATION_TEXT_BYTES_MAX 4096u
#define ANNOTATION_BODY_BYTES_MAX (256u << 10) /* 64 labels of 4 KiB, and the text */

struct annotation_request {
	struct str text;
	struct labels labels; /* without __name__; may be empty: the mark is for all */
	int64_t time_ns; /* 0: now */
	int64_t end_ns; /* 0: the mark is of an instant; else not before time_ns */
};

/* now_ns: of a mark without a time, to check its end. */
MUST_CHECK enum err_code annotation_request_of_json(struct str body, int64_t now_ns,
	struct arena *a, struct annotation_request *out, struct err *err);
/* Of the parameters time, end, text and label[]=NAME=VALUE. */
MUST_CHECK enum err_code annotation_request_of_params(
	struct http_in *in, int64_t now_ns, struct annotation_request *out, struct err *err);

#endif
