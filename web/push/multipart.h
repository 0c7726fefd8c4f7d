/*
 * Multipart: finds the parts of a multipart/form-data body, and copies none.
 *
 * Errors:    ERR_INVALID (what is wrong, at which part), ERR_LIMIT.
 * Ownership: parts point into the body and the Content-Type.
 * Threads:   pure function.
 * Source:    RFC 7578, RFC 2046 5.1.
 */
#ifndef WEB_PUSH_MULTIPART_H
#define WEB_PUSH_MULTIPART_H

#include "base/str.h"

#define MULTIPART_PARTS_MAX 256u
#define MULTIPART_HEAD_BYTES_MAX 8192u /* of one part */

struct multipart_part {
	struct str name; /* of the form's field */
	struct str file_name; /* as the client calls it, percent-encoded as it was; "": no file */
	struct str body;
};

struct multipart {
	struct multipart_part v[MULTIPART_PARTS_MAX];
	size_t n;
};

MUST_CHECK enum err_code multipart_parse(
	struct str content_type, struct str body, struct multipart *out, struct err *err);
/* The first part of that name; NULL: there is none. */
const struct str *multipart_get(const struct multipart *m, const char *name);

#endif
