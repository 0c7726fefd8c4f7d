/*
 * Varints in batches, and what is made of them in the same loop: for rows and rollups.
 *
 * Threads: any.
 */
#ifndef TSDB_COLUMNS_VARINTS_H
#define TSDB_COLUMNS_VARINTS_H

#include <endian.h>

#include "base/str.h"

#define VARINTS_HIGH_BITS UINT64_C(0x8080808080808080)

/* Eight bytes, the first lowest. */
static inline uint64_t varints_load8(const unsigned char *bytes)
{
	uint64_t w;

	memcpy(&w, bytes, sizeof(w));
	return le64toh(w);
}

/* Writes one at *at, which moves behind it. There is room for 10 bytes. */
static inline void varints_put(unsigned char **at, uint64_t value)
{
	unsigned char *p = *at;

	for (; value >= 0x80; value >>= 7)
		*p++ = (unsigned char)value | 0x80;
	*p++ = (unsigned char)value;
	*at = p;
}

/* Running sums of n gaps, from *from, which is the last one then. False: cut short, or beyond 32
 * bits. */
bool varints_sums(struct cursor *in, uint32_t n, uint32_t *out, uint64_t *from);
/* The same on any processor. */
bool varints_sums_words(struct cursor *in, uint32_t n, uint32_t *out, uint64_t *from);
/* True if each of n bytes is a varint. */
bool varints_are_bytes(const unsigned char *bytes, size_t n);
/* n values times the factor, which wrap; negative: they are zigzag. False: cut short. */
bool varints_values(struct cursor *in, uint32_t n, uint64_t factor, bool negative, int64_t *out);

#endif
