/*
 * CRC-32C by the processor's instruction, for LevelDB too. Its library as Debian builds it reads
 * tables instead: a fifth of the time of a query whose pages are not in the cache.
 *
 * All of LevelDB calls leveldb::crc32c::Extend. It is defined here, so the linker leaves the
 * library's file out; weakly, so that it does no harm if that file is there first. On other
 * processors than x86-64 LevelDB's own stays.
 *
 * The instruction takes 8 bytes but gives its result three cycles later, so three parts of a page
 * are read at once. The CRC is linear: a part's is shifted behind the bytes of the parts that
 * follow it, by a table, and added.
 */
extern "C" {
#include "tsdb/store/store_crc.h"
}

#include <cstring>

namespace
{

/* Of the polynomial 0x1edc6f41, its bits reversed. */
struct byte_table {
	uint32_t v[256];

	byte_table()
	{
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t crc = i;

			for (int bit = 0; bit < 8; bit++)
				crc = crc >> 1 ^ (0x82f63b78u & (0 - (crc & 1)));
			v[i] = crc;
		}
	}
};

/* On the bits as they are, without the inversion before and after. */
uint32_t store_crc_by_table(uint32_t crc, const char *bytes, size_t n)
{
	static const byte_table table;

	while (n--)
		crc = crc >> 8 ^ table.v[(crc ^ (unsigned char)*bytes++) & 255];
	return crc;
}

#ifdef __x86_64__

const size_t PART = 1360; /* three of them are a quarter of a page of 16 KiB */

__attribute__((target("sse4.2"))) uint32_t store_crc_one_part(
	uint32_t crc, const char *bytes, size_t n)
{
	uint64_t word = 0, sum = crc;

	for (; n >= 8; bytes += 8, n -= 8) {
		memcpy(&word, bytes, 8);
		sum = __builtin_ia32_crc32di(sum, word);
	}
	for (; n; bytes++, n--)
		sum = __builtin_ia32_crc32qi((uint32_t)sum, (unsigned char)*bytes);
	return (uint32_t)sum;
}

/* What PART bytes of zeros make of a CRC. */
struct shift_table {
	uint32_t v[4][256];

	shift_table()
	{
		static const char zeros[PART] = {};

		for (uint32_t byte = 0; byte < 4; byte++)
			for (uint32_t i = 0; i < 256; i++)
				v[byte][i] = store_crc_one_part(i << (8 * byte), zeros, PART);
	}

	uint32_t shifted(uint32_t crc) const
	{
		return v[0][crc & 255] ^ v[1][crc >> 8 & 255] ^ v[2][crc >> 16 & 255] ^ v[3][crc >> 24];
	}
};

__attribute__((target("sse4.2"))) uint32_t store_crc_by_instruction(
	uint32_t crc, const char *bytes, size_t n)
{
	static const shift_table table;
	uint64_t a = 0, b = 0, c = 0, word[3];

	for (; n >= 3 * PART; bytes += 3 * PART, n -= 3 * PART) {
		a = crc;
		b = c = 0;
		for (size_t i = 0; i < PART; i += 8) {
			memcpy(&word[0], bytes + i, 8);
			memcpy(&word[1], bytes + PART + i, 8);
			memcpy(&word[2], bytes + 2 * PART + i, 8);
			a = __builtin_ia32_crc32di(a, word[0]);
			b = __builtin_ia32_crc32di(b, word[1]);
			c = __builtin_ia32_crc32di(c, word[2]);
		}
		crc = table.shifted(table.shifted((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
	}
	return store_crc_one_part(crc, bytes, n);
}

uint32_t store_crc_extend(uint32_t crc, const char *bytes, size_t n)
{
	static const bool known = __builtin_cpu_supports("sse4.2");

	return ~(known ? store_crc_by_instruction(~crc, bytes, n) : store_crc_by_table(~crc, bytes, n));
}

#else

uint32_t store_crc_extend(uint32_t crc, const char *bytes, size_t n)
{
	return ~store_crc_by_table(~crc, bytes, n);
}

#endif

} // namespace

#ifdef __x86_64__
namespace leveldb
{
namespace crc32c
{

uint32_t Extend(uint32_t crc, const char *data, size_t n);
__attribute__((weak)) uint32_t Extend(uint32_t crc, const char *data, size_t n)
{
	return store_crc_extend(crc, data, n);
}

} // namespace crc32c
} // namespace leveldb
#endif

extern "C" uint32_t store_crc32c(uint32_t crc, const void *bytes, size_t n)
{
	return store_crc_extend(crc, static_cast<const char *>(bytes), n);
}

extern "C" uint32_t store_crc32c_by_table(uint32_t crc, const void *bytes, size_t n)
{
	return ~store_crc_by_table(~crc, static_cast<const char *>(bytes), n);
}
