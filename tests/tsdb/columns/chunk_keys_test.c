#include "tsdb/columns/chunk_keys.h"

#include "tests/tsdb/columns/chunk_rows.h"
#include "tsdb/columns/chunk.h"

static const struct shape shapes[] = {
	{ "no rows", 0, 0, 0, 0, false, false, 1, { ONES } },
	{ "one empty row", 1, 0, 0, 0, false, false, 1, { ONES } },
	{ "cpu", 120, 900, 0, 20, false, false, 2, { SMALL, TIMES } },
	{ "labels", 50, 60, 5, 30, false, false, 2, { SMALL, TIMES } },
	{ "twice", 30, 25, 3, 60, true, false, 3, { SMALL, WILD, LEVEL } },
	{ "go heap", 100, 40, 7, 40, false, false, 4,
		{ NEW_BYTES, NEW_OBJECTS, LIVE_BYTES, LIVE_OBJECTS } },
	{ "zeros", 20, 20, 2, 40, true, true, 2, { ZEROS, SPARSE } },
	{ "signed", 33, 50, 0, 30, false, true, 3, { SIGNED, SMALL, SIGNED } },
	{ "extremes", 17, 9, 2, 70, true, false, 2, { EXTREME, EXTREME } },
	{ "no columns", 5, 10, 0, 50, false, false, 0, { ONES } },
};
#define SHAPES_N (sizeof(shapes) / sizeof(shapes[0]))

/* ---- narrow rows ---- */

static struct row narrowed(const struct row *r)
{
	struct row_widths widths;
	unsigned char *bytes = malloc(row_narrow_bytes(r, &widths)); /* a byte too far is seen */
	struct row out = *r;

	if (!bytes)
		abort();
	row_narrow(r, &widths, bytes);
	out.narrow = bytes;
	out.stacks = out.label_sets = NULL;
	out.values = NULL;
	return out;
}

static void check_narrow(const char *name, const struct row *want)
{
	struct row narrow = narrowed(want);
	uint64_t *ids = calloc(want->n + 1, sizeof(*ids)), *same = calloc(want->n + 1, sizeof(*same));
	int64_t *room = calloc(want->n + 1, sizeof(*room));
	bool ok = true;

	REQUIRE(ids && same && room);
	row_entry_ids(want, ids);
	row_entry_ids(&narrow, same);
	for (uint32_t i = 0; i < want->n; i++) {
		ok &= ids[i] == same[i] && ids[i] >> 32 == want->stacks[i];
		ok &= (uint32_t)ids[i] == (want->label_sets ? want->label_sets[i] : 0);
	}
	for (uint32_t c = 0; c < want->columns_n; c++) {
		const int64_t *got = row_column(&narrow, c, room);

		for (uint32_t i = 0; i < want->n; i++)
			ok &= got[i] == want->values[(size_t)c * want->n + i] &&
				row_value(&narrow, c, i) == got[i] && row_value(want, c, i) == got[i];
		ok &= row_column(want, c, room) == want->values + (size_t)c * want->n;
	}
	if (!ok)
		CHECK_FAIL("%s: a narrow row differs", name);
	free((void *)(uintptr_t)narrow.narrow);
	free(ids);
	free(same);
	free(room);
}

TEST(narrow_rows_have_the_same_numbers)
{
	for (size_t i = 0; i < SHAPES_N; i++) {
		make_world(&shapes[i]);
		for (uint32_t r = 0; r < w.rows_n; r++)
			check_narrow(shapes[i].name, &w.rows[r]);
	}
	drop_world();
}

/* Each length of a number, at both ends of it. */
TEST(narrow_numbers_of_each_length)
{
	for (unsigned bits = 0; bits < 64; bits++) {
		int64_t most = (int64_t)((UINT64_C(1) << bits) - 1);
		int64_t values[] = { most, 0, -most, 1, -most - 1, -1, 0, 0, -1, -1, most, most };
		uint32_t stacks[] = { 1, (uint32_t)most, UINT32_MAX >> bits % 32 };
		uint32_t sets[] = { 0, UINT32_MAX >> bits % 32, (uint32_t)most };
		struct row row = { .n = 3,
			.columns_n = 4,
			.stacks = stacks,
			.label_sets = bits % 3 ? sets : NULL,
			.values = values };

		check_narrow("bits", &row);
	}
}

TEST(chunks_of_narrow_rows_are_the_same)
{
	static struct row narrow[ROWS_MAX];
	struct err err;

	for (size_t i = 0; i < SHAPES_N; i++) {
		struct buf a = { 0 }, b = { 0 };

		make_world(&shapes[i]);
		for (uint32_t r = 0; r < w.rows_n; r++)
			narrow[r] = narrowed(&w.rows[r]);
		REQUIRE_OK(chunk_encode(w.ts, w.rows, w.rows_n, w.kinds, &a, &err), &err);
		REQUIRE_OK(chunk_encode(w.ts, narrow, w.rows_n, w.kinds, &b, &err), &err);
		if (!str_eq(buf_str(&a), buf_str(&b)))
			CHECK_FAIL("%s: another chunk", shapes[i].name);
		for (uint32_t r = 0; r < w.rows_n; r++)
			free((void *)(uintptr_t)narrow[r].narrow);
		buf_release(&a);
		buf_release(&b);
	}
	drop_world();
}

/* ---- keys, beside all entries sorted ---- */

struct entry {
	uint64_t id;
	uint32_t nth, row, at; /* of equal ones in its row; at: among all rows' entries */
};

static int entry_cmp(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	if (a->nth != b->nth)
		return a->nth < b->nth ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

static size_t list_entries(struct entry *out)
{
	size_t n = 0;

	for (uint32_t r = 0; r < w.rows_n; r++)
		for (uint32_t i = 0; i < w.rows[r].n; i++, n++) {
			const struct row *row = &w.rows[r];
			uint64_t id = (uint64_t)row->stacks[i] << 32 |
				(row->label_sets ? row->label_sets[i] : 0);

			out[n] = (struct entry){ id, 0, r, (uint32_t)n };
			if (i && out[n - 1].id == id)
				out[n].nth = out[n - 1].nth + 1;
		}
	qsort(out, n, sizeof(*out), entry_cmp);
	return n;
}

static void check_keys(const char *name)
{
	struct chunk_keys k;
	struct entry *e;
	size_t n = 0, key = 0;
	bool ok, labels = false;

	for (uint32_t r = 0; r < w.rows_n; r++)
		n += w.rows[r].n;
	REQUIRE((e = calloc(n + 1, sizeof(*e))));
	CHECK_INT(list_entries(e), n);
	REQUIRE(chunk_keys_list(&k, w.rows, w.rows_n));
	ok = k.cells_n == n && k.starts[k.n] == n;
	for (size_t i = 0; i < n && ok; i++) {
		if (i && (e[i].id != e[i - 1].id || e[i].nth != e[i - 1].nth))
			key++;
		ok = key < k.n && k.ids[key] == e[i].id && k.starts[key] <= i && i < k.starts[key + 1] &&
			k.places[e[i].at] == i && k.rows[i] == e[i].row;
		labels |= (uint32_t)e[i].id != 0;
	}
	if (!ok || k.n != key + (n > 0) || labels != k.labels)
		CHECK_FAIL("%s: other keys", name);
	chunk_keys_release(&k);
	free(e);
}

/* So far from each other that an array of stacks would be larger than the entries. */
static void spread_stacks(void)
{
	for (uint32_t r = 0; r < w.rows_n; r++)
		for (uint32_t i = 0; i < w.rows[r].n; i++)
			((uint32_t *)(uintptr_t)w.rows[r].stacks)[i] *= 99991;
}

TEST(keys_are_those_of_sorted_entries)
{
	for (int round = 0; round < 10; round++)
		for (size_t i = 0; i < SHAPES_N; i++) {
			make_world(&shapes[i]);
			check_keys(shapes[i].name);
			spread_stacks();
			check_keys(shapes[i].name);
		}
	drop_world();
}
