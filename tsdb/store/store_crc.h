/*
 * CRC-32C, as LevelDB's logs and tables have it.
 *
 * Threads: any.
 */
#ifndef TSDB_STORE_STORE_CRC_H
#define TSDB_STORE_STORE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* crc: that of the bytes before these, 0 at first. */
uint32_t store_crc32c(uint32_t crc, const void *p, size_t n);
/* The same on a processor without the instruction. */
uint32_t store_crc32c_by_table(uint32_t crc, const void *p, size_t n);

#endif
