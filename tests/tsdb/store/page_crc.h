/* The checksum behind a page of a table: LevelDB's masked CRC-32C, bit by bit. */
#ifndef TESTS_TSDB_STORE_PAGE_CRC_H
#define TESTS_TSDB_STORE_PAGE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* p: the page and its type, n bytes. */
static inline uint32_t page_crc(const char *p, size_t n)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < n; i++) {
		crc ^= (unsigned char)p[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	crc = ~crc;
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

#endif
