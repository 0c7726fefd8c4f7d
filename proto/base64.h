/*
 * Base64, as JSON has bytes.
 *
 * Threads: any.
 * Source:  RFC 4648, 4 and 5.
 */
#ifndef PROTO_BASE64_H
#define PROTO_BASE64_H

#include "base/str.h"

/* With padding. */
void base64_add(struct buf *out, struct str bytes);

/* Both alphabets, with or without padding. Writes at most 3/4 of text.len bytes; false: bad. */
bool base64_decode(struct str text, char *out, size_t *len);

#endif
