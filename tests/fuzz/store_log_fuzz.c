/*
 * fuzz: tsdb
 * Logs as a power cut or a damaged disk could leave them: what is whole of one is whole again, and
 * nothing outside is read.
 */
#include "tests/fuzz/fuzz.h"
#include "tsdb/store/store_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t whole = store_log_whole((struct str){ (const char *)data, size });

	if (whole > size)
		abort();
	if (whole < size && store_log_whole((struct str){ (const char *)data, whole }) != whole)
		abort();
	return 0;
}
