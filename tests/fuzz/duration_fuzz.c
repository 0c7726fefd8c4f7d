/*
 * fuzz: base/net
 * Text that users and clients send as a duration, a time or a size: no crash, and what was
 * understood prints as text that reads back as the same.
 */
#include <assert.h>

#include "base/clock.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str s = { (const char *)data, size };
	struct buf b = { 0 };
	int64_t ns, back;
	uint64_t bytes;
	struct err err;

	if (!duration_parse(s, &ns, &err)) {
		assert(ns >= 0 && ns % NS_PER_MS == 0);
		duration_print(&b, ns);
		if (duration_parse(buf_str(&b), &back, &err) || back != ns)
			abort();
	}
	buf_clear(&b);
	if (!time_parse(s, &ns, &err)) {
		assert(ns <= TIME_MAX_NS && ns >= -TIME_MAX_NS);
		time_print_rfc3339(&b, ns);
		if (time_parse(buf_str(&b), &back, &err) || back != ns)
			abort();
	}
	if (!bytes_parse(s, &bytes, &err))
		assert(bytes <= INT64_MAX);
	buf_release(&b);
	return 0;
}
