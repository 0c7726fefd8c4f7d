#include "tests/tsdb/columns/chunk_rows.h"
#include "tsdb/columns/chunk.h"

/* A chunk in which the process began anew costs about what its parts would, not every cell in full.
 */
TEST(a_process_that_begins_anew_in_a_chunk)
{
	enum { FLAGS = 1, ANEW = 2 };
	static struct shape s = { "anew", 120, 8, 7, 40, false, false, 2, { NEW_BYTES, NEW_OBJECTS } };
	static const uint32_t rows[] = { 0, 20, 60, 100 };
	size_t bytes[sizeof(rows) / sizeof(rows[0])];
	struct buf b = { 0 };
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		s.anew = rows[i];
		state = 7; /* the same rows, but for the counts */
		make_world(&s);
		buf_clear(&b);
		REQUIRE_OK(chunk_encode(w.ts, w.rows, w.rows_n, w.kinds, &b, &err), &err);
		bytes[i] = b.len;
		CHECK(rows[i] < 20 || b.ptr[FLAGS] & ANEW);
		CHECK(bytes[i] < bytes[0] + bytes[0] / 10);
	}
	buf_release(&b);
	drop_world();
}
