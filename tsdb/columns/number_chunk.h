/*
 * Chunk of a numeric series: times and float64 values, up to NUMBER_CHUNK_MAX, in columns.
 *
 * Every bit of a value is kept, those of a NaN too: Prometheus marks the end of a series with one.
 *
 * Units:   nanoseconds since 1970.
 * Errors:  ERR_CORRUPT, ERR_NOMEM.
 * Threads: any; no sharing.
 * Source:  tsdb/FORMAT.md, "Numbers".
 */
#ifndef TSDB_COLUMNS_NUMBER_CHUNK_H
#define TSDB_COLUMNS_NUMBER_CHUNK_H

#include "base/err.h"
#include "base/str.h"

#define NUMBER_CHUNK_MAX 1024u
#define NUMBER_STALE_BITS UINT64_C(0x7ff0000000000002)

struct number_chunk {
	uint32_t n;
	int64_t ts[NUMBER_CHUNK_MAX]; /* ascending strictly */
	double values[NUMBER_CHUNK_MAX];
};

static inline uint64_t number_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline double number_of_bits(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static inline bool number_is_stale(double value)
{
	return number_bits(value) == NUMBER_STALE_BITS;
}

/* Appended; n is not 0. */
MUST_CHECK enum err_code number_chunk_encode(
	const struct number_chunk *c, struct buf *out, struct err *err);
MUST_CHECK enum err_code number_chunk_decode(
	struct str bytes, struct number_chunk *out, struct err *err);

#endif
