/*
 * Integers: magnitudes and greatest common divisors, of 64 and of 128 bits.
 *
 * The divisor of anything and 0 is the other: a run over a list starts with 0.
 *
 * Threads: pure functions.
 */
#ifndef BASE_INTEGER_H
#define BASE_INTEGER_H

#include <stdint.h>

/* |value|, also of INT64_MIN, whose magnitude does not fit its own type. */
static inline uint64_t integer_magnitude64(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

static inline unsigned __int128 integer_magnitude128(__int128 value)
{
	return value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
}

static inline uint64_t integer_gcd64(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static inline unsigned __int128 integer_gcd128(unsigned __int128 a, unsigned __int128 b)
{
	while (b && (a >> 64 || b >> 64)) {
		unsigned __int128 rest = a % b;

		a = b;
		b = rest;
	}
	/* Dividing 64 bits is several times as fast. */
	return b ? integer_gcd64((uint64_t)a, (uint64_t)b) : a;
}

#endif
