/*
 * Protobuf's wire format, read in place: varints, tags and lengths of one message after another.
 *
 * Every reader takes the position and the end, and returns the new position, or NULL where the bytes end
 * too early. That is all a caller on the hot path looks at; what was wrong, and in which field, is found
 * by pprof_explain, which walks the body again, slowly, once it is known to be refused.
 *
 * A varint is at most ten bytes; bits beyond 64 are dropped, as google/pprof drops them.
 */
#ifndef PROTO_WIRE_H
#define PROTO_WIRE_H

#include "base/err.h"
#include "base/str.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

#define WIRE_TAG(number, type) ((uint64_t)(number) << 3 | (type))

typedef const unsigned char *wire_pos;

wire_pos wire_varint_slow(wire_pos at, wire_pos end, uint64_t *out);

static inline wire_pos wire_varint(wire_pos at, wire_pos end, uint64_t *out)
{
	if (__builtin_expect(at < end && *at < 0x80, 1)) {
		*out = *at;
		return at + 1;
	}
	return wire_varint_slow(at, end, out);
}

/* A length and that many bytes: *len, and the position of the first of them. */
static inline wire_pos wire_bytes(wire_pos at, wire_pos end, size_t *len)
{
	uint64_t n;

	at = wire_varint(at, end, &n);
	if (__builtin_expect(!at || n > (uint64_t)(end - at), 0))
		return NULL;
	*len = (size_t)n;
	return at;
}

/* Past the value of a field whose tag was read. NULL as well for a wire type that does not exist. */
wire_pos wire_skip(uint64_t tag, wire_pos at, wire_pos end);

/* How many varints end in these bytes: their number where they are nothing but varints, else a bound. */
size_t wire_count_varints(wire_pos at, size_t len);

/* Sets *err to what in a profile's body does not follow the wire format, and returns ERR_INVALID. */
enum err_code pprof_explain(struct str raw, struct err *err);

#endif
