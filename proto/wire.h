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

/*
 * A varint of up to eight bytes, read from the word word at `at` without a branch on its length.
 * The first byte without its high bit ends it: stop, ~word & WIRE_HIGH_BITS, is not 0. What follows
 * is masked off, and the groups of seven bits move together pairwise.
 */
static inline struct wire_number wire_varint_of_word(wire_pos at, uint64_t word, uint64_t stop)
{
	at += ((unsigned)__builtin_ctzll(stop) >> 3) + 1;
	word &= (stop ^ (stop - 1)) & ~WIRE_HIGH_BITS;
	word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
	word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
	word = (word & UINT64_C(0x000000000fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
	return (struct wire_number){ at, word };
}

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

/* A varint of up to eight bytes; NULL: it is longer. Reads eight bytes. */
static inline wire_pos wire_quick_varint(wire_pos at, uint64_t *out)
{
	uint64_t w = wire_word(at), stop = ~w & WIRE_HIGH_BITS;
	struct wire_number n;

	if (__builtin_expect(!stop, 0))
		return NULL;
	n = wire_varint_of_word(at, w, stop);
	*out = n.v;
	return n.at;
}

/*
 * If a field with this tag is next, and its varint has one or two bytes: as most numbers of
 * functions, lines and locations. Lengths alternate without a pattern, so none is branched on. A
 * longer varint gives a value above WIRE_SMALL_MAX. *all collects the bits of the values. Reads up
 * to three bytes.
 */
#define WIRE_SMALL_MAX 0x3fffu

static inline wire_pos wire_small(wire_pos at, unsigned char tag, uint32_t *values, uint32_t *all)
{
	uint32_t low, two;

	if (*at != tag)
		return at;
	low = at[1];
	two = low >> 7;
	*values = low + ((((uint32_t)at[2] << 7) - 0x80) & (0 - two));
	*all |= *values;
	return at + 2 + two;
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
