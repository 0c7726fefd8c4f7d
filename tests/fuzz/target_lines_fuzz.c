/*
 * fuzz: scrape
 * A list of targets of any bytes, as a query node finds it in the bucket: what is read is printed,
 * reads back, and prints the same.
 */
#include "base/clock.h"
#include "scrape/target_lines.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct buf first = { 0 }, second = { 0 };
	struct listed_targets l, again;
	struct err err = { 0 };
	struct arena a;

	arena_init(&a, 64u << 20);
	if (target_lines_read(text, &a, &l, &err)) {
		require(err.msg[0]);
	} else {
		require(!target_lines_print(&l.s, l.time_ns, TARGET_LINES_BYTES_MAX, &first, &err));
		require(!target_lines_read(buf_str(&first), &a, &again, &err));
		require(again.s.active_n == l.s.active_n && again.s.dropped_n == l.s.dropped_n &&
			again.s.pools_n == l.s.pools_n);
		require(!target_lines_print(&again.s, l.time_ns, TARGET_LINES_BYTES_MAX, &second, &err));
		require(str_eq(buf_str(&first), buf_str(&second)));
	}
	buf_release(&first);
	buf_release(&second);
	arena_release(&a);
	return 0;
}
