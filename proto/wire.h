/*
 * Protobuf's wire format, read in place: varints, tags and lengths.
 *
 * A reader takes the position and the end, and returns the new position, or NULL if the bytes end
 * too early. The hot path needs no more. Once a body is refused, pprof_explain walks it again,
 * slowly, and says which field is wrong.
 *
 * A varint has at most ten bytes; bits beyond 64 are dropped, as google/pprof drops them.
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

/* Skips the value of a field whose tag was read. NULL also for an unknown wire type. */
wire_pos wire_skip(uint64_t tag, wire_pos at, wire_pos end);

/*
 * Counts the varints that end in these bytes. If the bytes are not only varints, it is an upper
 * bound.
 */
size_t wire_count_varints(wire_pos at, size_t len);

/* Sets *err to the place where a body breaks the wire format, and returns ERR_INVALID. */
enum err_code pprof_explain(struct str raw, struct err *err);

#endif
