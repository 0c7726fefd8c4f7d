#include "proto/wire.h"

wire_pos wire_varint_slow(wire_pos at, wire_pos end, uint64_t *out)
{
	uint64_t v = 0;
	unsigned shift;

	for (shift = 0; shift < 70 && at < end; shift += 7) {
		unsigned char byte = *at++;

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*out = v;
			return at;
		}
	}
	return NULL;
}

wire_pos wire_skip(uint64_t tag, wire_pos at, wire_pos end)
{
	uint64_t ignored;
	size_t len;

	switch (tag & 7) {
	case WIRE_VARINT:
		return wire_varint(at, end, &ignored);
	case WIRE_FIXED64:
		len = 8;
		break;
	case WIRE_BYTES:
		at = wire_bytes(at, end, &len);
		return at ? at + len : NULL;
	case WIRE_FIXED32:
		len = 4;
		break;
	default:
		return NULL;
	}
	return (size_t)(end - at) < len ? NULL : at + len;
}

/* Eight bytes at a time: a byte without its high bit ends a varint. */
size_t wire_count_varints(wire_pos at, size_t len)
{
	const uint64_t high = UINT64_C(0x8080808080808080);
	size_t n = 0;
	uint64_t word;

	for (; len >= 8; at += 8, len -= 8) {
		memcpy(&word, at, 8);
		n += ((~word & high) >> 7) * UINT64_C(0x0101010101010101) >> 56;
	}
	for (; len; at++, len--)
		n += *at < 0x80;
	return n;
}
