/*
 * Protobuf's wire format, read in place: varints, tags and lengths of one message after another.
 *
 * Every reader takes the position and the end, and returns the new position, or NULL where the
 * bytes end too early. That is all a caller on the hot path looks at; what was wrong, and in which
 * field, is found by pprof_explain, which walks the body again, slowly, once it is known to be
 * refused.
 *
 * A varint is at most ten bytes; bits beyond 64 are dropped, as google/pprof drops them.
 */
#ifndef PROTO_WIRE_H
#define PROTO_WIRE_H

#include <endian.h>

#include "base/err.h"
#include "base/str.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

#define WIRE_TAG(number, type) ((uint64_t)(number) << 3 | (type))

#define WIRE_HIGH_BITS UINT64_C(0x8080808080808080) /* of a word's bytes: the varint goes on */

typedef const unsigned char *wire_pos;

/* Eight bytes, the first one lowest. */
static inline uint64_t wire_word(wire_pos at)
{
	uint64_t w;

	memcpy(&w, at, 8);
	return le64toh(w);
}

/* By value, so that a caller's number can live in a register. */
struct wire_number {
	wire_pos at;
	uint64_t v;
};
struct wire_number wire_varint_slow(wire_pos at, wire_pos end);

static inline wire_pos wire_varint(wire_pos at, wire_pos end, uint64_t *out)
{
	struct wire_number slow;

	if (__builtin_expect(at < end && *at < 0x80, 1)) {
		*out = *at;
		return at + 1;
	}
	if (__builtin_expect(end - at >= 2 && at[1] < 0x80, 1)) {
		*out = (at[0] & 0x7fu) | (uint64_t)at[1] << 7;
		return at + 2;
	}
	slow = wire_varint_slow(at, end);
	*out = slow.v;
	return slow.at;
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

/*
 * Past the value of a field whose tag was read. NULL as well for a wire type that does not exist.
 */
wire_pos wire_skip(uint64_t tag, wire_pos at, wire_pos end);

/*
 * How many varints end in these bytes: their number where they are nothing but varints, else a
 * bound.
 */
size_t wire_count_varints(wire_pos at, size_t len);

/*
 * Sets *err to what in a profile's body does not follow the wire format, and returns ERR_INVALID.
 */
enum err_code pprof_explain(struct str raw, struct err *err);

#endif
