#include "tests/tsdb/columns/chunk_rows.h"
#include "tsdb/columns/accum.h"
#include "tsdb/columns/chunk.h"

/* ---- damage ---- */

/* Whatever the bytes say: an answer, or ERR_CORRUPT (ERR_LIMIT of a sum), never anything else. */
static void read_all(struct chunk *c, struct partition *p, struct str bytes)
{
	struct bits stacks = { 0 };
	const struct row *rows;
	struct accum *a;
	struct err err;
	enum err_code rc = chunk_parse(c, bytes, &err), add;
	uint32_t n = rc ? 0 : chunk_rows_n(c);
	int64_t ends[CHUNK_ROWS_MAX + 1];

	if (rc) {
		CHECK_INT(rc, ERR_CORRUPT);
		return;
	}
	if ((rc = chunk_check(c, &err)))
		CHECK_INT(rc, ERR_CORRUPT);
	if (!rc && chunk_unpack(c, &rows, &err))
		CHECK_FAIL("checked, and: %s", err.msg);
	/* The caller compares the largest ids with what it has, before it adds or marks. */
	if (chunk_stack_max(c) > 1u << 20 || chunk_label_set_max(c) > 1u << 20)
		return;
	if (chunk_mark_ids(c, &stacks, NULL, &err))
		CHECK_INT(err.code, ERR_CORRUPT);
	bits_release(&stacks);
	for (uint32_t r = 0; r <= n; r++)
		ends[r] = r * (INT64_MAX / CHUNK_ROWS_MAX);
	for (uint32_t k = 0; k < chunk_columns_n(c); k++)
		for (uint32_t from = 0; from < 2 && from < n; from++) {
			REQUIRE_OK(accum_open(p, from ? 0 : ACCUM_WEIGHTED, &a, &err), &err);
			add = chunk_add(c, k, from, n, 2, a, &err);
			if (add && add != ERR_LIMIT) {
				CHECK_INT(add, ERR_CORRUPT);
				CHECK(rc != ERR_OK);
			}
			accum_close(a);
			REQUIRE_OK(accum_open(p, ACCUM_WEIGHTED, &a, &err), &err);
			if (!from && chunk_add_spans(c, k, n / 3, n, ends, a, &err)) {
				CHECK_INT(err.code, ERR_CORRUPT);
				CHECK(rc != ERR_OK);
			}
			accum_close(a);
		}
}

TEST(damaged_chunks)
{
	static const struct shape small[] = {
		{ "cpu", 12, 20, 0, 40, false, false, 2, { SMALL, TIMES } },
		{ "heap", 12, 15, 2, 70, true, true, 4, { SPARSE, WILD, LEVEL, LEVEL } },
		{ "go heap", 12, 12, 3, 60, false, true, 4,
			{ NEW_BYTES, NEW_OBJECTS, LIVE_BYTES, LIVE_OBJECTS } },
		{ "anew", 16, 8, 7, 90, false, false, 2, { NEW_BYTES, NEW_OBJECTS }, 8 },
		{ "signed", 9, 12, 0, 50, false, false, 2, { SIGNED, LEVEL } },
		{ "large", 100, 40, 0, 50, false, false, 3, { SMALL, WILD, LEVEL } },
	};
	struct partition *p = open_partition();
	struct chunk *c = chunk_open();
	struct buf b = { 0 };
	struct err err;
	char *copy;

	REQUIRE(c && p);
	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++) {
		make_world(&small[i]);
		buf_clear(&b);
		REQUIRE_OK(chunk_encode(w.ts, w.rows, w.rows_n, w.kinds, &b, &err), &err);
		for (size_t len = 0; len < b.len; len += CHECK_STEP) {
			copy = malloc(len + 1);
			memcpy(copy, b.ptr, len);
			CHECK_INT(chunk_parse(c, (struct str){ copy, len }, &err), ERR_CORRUPT);
			free(copy);
		}
		copy = malloc(b.len);
		for (size_t at = 0; at < b.len; at += CHECK_STEP)
			for (unsigned bit = at < 400 ? 0 : 6; bit < 8; bit++) {
				if (check_is_short() && bit % 3 != at / CHECK_STEP % 3)
					continue;
				memcpy(copy, b.ptr, b.len);
				copy[at] ^= (char)(1u << bit);
				read_all(c, p, (struct str){ copy, b.len });
			}
		free(copy);
	}
	CHECK_ERR(chunk_parse(c, STR("\x07\0"), &err), &err, ERR_CORRUPT, "chunk: unknown version");
	CHECK_ERR(chunk_parse(c, STR(""), &err), &err, ERR_CORRUPT, "chunk: unknown version");
	buf_release(&b);
	drop_world();
	chunk_close(c);
	partition_close(p);
}
