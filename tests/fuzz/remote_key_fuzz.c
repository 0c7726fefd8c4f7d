/*
 * fuzz: tsdb
 * The file of a stub as a damaged disk could hand it out: as it is, and with the checksum that its
 * key would have. What is read is a key that ends where its bytes do.
 */
#include <inttypes.h>

#include "base/map.h"
#include "tests/fuzz/fuzz.h"
#include "tsdb/catalog/remote.h"

static bool try(struct str bytes)
{
	char key[REMOTE_KEY_BYTES_MAX + 1];
	struct err err;

	if (remote_key_decode(bytes, STR("of"), key, &err)) {
		require(err.code == ERR_CORRUPT);
		return false;
	}
	require(strlen(key) > 0 && strlen(key) < bytes.len);
	require(memcmp(key, bytes.ptr, strlen(key)) == 0 && bytes.ptr[strlen(key)] == ' ');
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf b = { 0 };
	bool plain = size > 0 && size <= REMOTE_KEY_BYTES_MAX;

	(void)try((struct str){ (const char *)data, size });
	buf_add(&b, data, size);
	buf_printf(&b, " %016" PRIx64 "\n", hash_bytes(data, size, hash_bytes("of", 2, 0)));
	for (size_t i = 0; i < size; i++)
		plain &= data[i] >= 0x20 && data[i] != 0x7f;
	require(try(buf_str(&b)) == plain);
	buf_release(&b);
	return 0;
}
