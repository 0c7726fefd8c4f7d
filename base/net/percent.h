/*
 * Percent-encoding of URLs and forms.
 *
 * Encoding writes "%" and two upper-case hex digits for each byte that the part of the URL does not
 * keep. Decoding takes digits of either case; a "%" without two hex digits behind it stays.
 *
 * Errors:  none; a buffer that fails says so itself (buf_failed).
 * Threads: values.
 * Source:  RFC 3986, 2.1; Go's net/url (PERCENT_VALUE, PERCENT_FORM, PERCENT_PATH); WHATWG URL,
 *          "application/x-www-form-urlencoded parsing".
 */
#ifndef BASE_NET_PERCENT_H
#define BASE_NET_PERCENT_H

#include "base/str.h"

enum percent_part {
	PERCENT_VALUE, /* keeps letters, digits and -_.~ */
	PERCENT_FORM, /* the same, and a space becomes "+" */
	PERCENT_PATH, /* keeps $&+,/:;=@ too */
	PERCENT_TARGET, /* of a request: keeps printable ASCII but the space, the quote and <> */
};

void percent_encode(struct buf *out, struct str s, enum percent_part part);
/* out: 3 * s.len bytes. Returns the length. */
size_t percent_encode_to(char *out, struct str s, enum percent_part part);

/* out: s.len bytes, may be s.ptr itself. Returns the length. */
size_t percent_decode(char *out, struct str s);
/* The same for a form, where "+" is a space. */
size_t percent_decode_form(char *out, struct str s);

#endif
