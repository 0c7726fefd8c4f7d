/* Base64, as JSON has bytes. Private to proto/otlp. */
#ifndef PROTO_OTLP_BASE64_H
#define PROTO_OTLP_BASE64_H

#include "base/str.h"

/* With padding. */
void base64_add(struct buf *out, struct str bytes);

/* Both alphabets, with or without padding. Writes at most 3/4 of text.len bytes; false: bad. */
bool base64_decode(struct str text, char *out, size_t *len);

#endif
