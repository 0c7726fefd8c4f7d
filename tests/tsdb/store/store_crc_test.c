/* CRC-32C by the processor, by tables, and as LevelDB gets it: against one bit after the other. */
#include <string.h>

#include "tests/check.h"
#include "tsdb/store/store_crc.h"

#ifdef __x86_64__
uint32_t leveldb_crc32c(uint32_t crc, const char *p, size_t n) __asm__(
	"_ZN7leveldb6crc32c6ExtendEjPKcm");
#else
#define leveldb_crc32c store_crc32c
#endif

static uint32_t bit_by_bit(uint32_t crc, const char *p, size_t n)
{
	crc = ~crc;
	while (n--) {
		crc ^= (unsigned char)*p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (UINT32_C(0x82f63b78) & (0 - (crc & 1)));
	}
	return ~crc;
}

TEST(crc32c_is_the_same_by_all_ways)
{
	static const size_t edges[] = { 0, 1, 7, 8, 9, 1359, 1360, 4079, 4080, 4081, 8159, 8160, 8161,
		16384, 20000 };
	static char bytes[20016];
	uint64_t random = 1;

	CHECK_INT(store_crc32c(0, "123456789", 9), UINT32_C(0xe3069283));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
		bytes[i] = (char)(random >> 40);
	}
	for (size_t i = 0; i < 300; i++) {
		size_t n = i < sizeof(edges) / sizeof(edges[0]) ? edges[i] : (size_t)(random >> 20) % 20000;
		const char *p = bytes + i % 16;
		uint32_t before = i % 3 ? (uint32_t)(random >> 32) : 0, want = bit_by_bit(before, p, n);

		CHECK_INT(store_crc32c(before, p, n), want);
		CHECK_INT(store_crc32c_by_table(before, p, n), want);
		CHECK_INT(leveldb_crc32c(before, p, n), want);
		CHECK_INT(store_crc32c(store_crc32c(before, p, n / 3), p + n / 3, n - n / 3), want);
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
	}
}
