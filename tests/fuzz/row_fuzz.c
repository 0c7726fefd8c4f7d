/*
 * fuzz: tsdb
 * Rows as a damaged disk could hand them out: parsing and decoding stays within the bytes and
 * within the arrays, and what decodes as a whole encodes again to a row that says the same.
 */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tsdb/columns/row.h"

#define VALUES_MAX (1u << 22)

/* Ids ascend and totals are those of the values: only then would row_encode have made it. */
static bool is_sound(
	const struct row_view *v, const uint32_t *stacks, const uint32_t *sets, const int64_t *values)
{
	for (uint32_t i = 1; i < v->n; i++)
		if (stacks[i] == stacks[i - 1] && sets[i] < sets[i - 1])
			return false;
	for (uint32_t c = 0; c < v->columns_n; c++) {
		__int128 total = 0;

		for (uint32_t i = 0; i < v->n; i++)
			total += values[(size_t)c * v->n + i];
		if (total != (int64_t)total)
			return false;
	}
	return true;
}

static void check_again(
	const struct row_view *v, const uint32_t *stacks, const uint32_t *sets, const int64_t *values)
{
	const struct row row = { .header = v->header,
		.interval_ns = v->interval_ns,
		.time_nanos = v->time_nanos,
		.duration_nanos = v->duration_nanos,
		.period = v->period,
		.n = v->n,
		.columns_n = v->columns_n,
		.stacks = stacks,
		.label_sets = sets,
		.values = values };
	uint32_t *ids = malloc(((size_t)v->n + 1) * 2 * sizeof(*ids));
	int64_t *again = malloc(((size_t)v->n + 1) * sizeof(*again));
	struct row_view view;
	struct buf b = { 0 };

	require(ids && again);
	require(!row_encode(&row, 1000, &b, NULL));
	require(!row_parse(buf_str(&b), 1000, &view, NULL));
	require(view.n == v->n && view.time_nanos == v->time_nanos && view.period == v->period);
	require(!row_ids(&view, ids, ids + v->n, NULL));
	require(!v->n || !memcmp(ids, stacks, v->n * sizeof(*ids)));
	require(!v->n || !memcmp(ids + v->n, sets, v->n * sizeof(*ids)));
	for (uint32_t c = 0; c < v->columns_n; c++) {
		require(!row_values(&view, c, again, NULL));
		require(!v->n || !memcmp(again, values + (size_t)c * v->n, v->n * sizeof(*again)));
	}
	buf_release(&b);
	free(ids);
	free(again);
}

/* Small values and cells say what row_values said, or refuse what it refused. */
static void check_cells(const struct row_view *v, uint32_t column, const uint32_t *stacks,
	const uint32_t *sets, const int64_t *want, bool ok)
{
	const unsigned char *small = row_small_values(v, column);
	uint32_t *ids = malloc(((size_t)v->n + 1) * 2 * sizeof(*ids)), n = 0, k = 0;
	int64_t *values = malloc(((size_t)v->n + 1) * sizeof(*values));

	require(ids && values && (ok || !small));
	for (uint32_t i = 0; i < v->n; i++) {
		require(!small || (int64_t)(small[i] * v->columns[column].factor) == want[i]);
		ids[i] = stacks[i];
		ids[v->n + i] = sets[i];
	}
	require(!row_cells(v, column, ids, ids + v->n, values, &n, NULL) == ok);
	for (uint32_t i = 0; ok && i < v->n; i++)
		if (k < n && ids[k] == stacks[i] && ids[v->n + k] == sets[i] && values[k] == want[i])
			k++;
		else
			require(want[i] == 0);
	require(!ok || k == n);
	free(ids);
	free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct row_view v;
	uint32_t *stacks, *sets;
	int64_t *values;
	bool ok;

	if (row_parse((struct str){ (const char *)data, size }, 1000, &v, NULL))
		return 0;
	/* The bytes hold an id at least for each entry. */
	require(v.n <= size && v.columns_n <= ROW_COLUMNS_MAX);
	if ((uint64_t)v.n * v.columns_n > VALUES_MAX)
		return 0;
	stacks = malloc(v.n * sizeof(*stacks));
	sets = malloc(v.n * sizeof(*sets));
	values = malloc((size_t)v.n * v.columns_n * sizeof(*values));
	require((stacks && sets && values) || v.n == 0 || v.columns_n == 0);
	ok = !row_ids(&v, stacks, sets, NULL);
	for (uint32_t c = 0, ids = ok; c < v.columns_n; c++) {
		bool decodes = !row_values(&v, c, values + (size_t)c * v.n, NULL);

		if (ids)
			check_cells(&v, c, stacks, sets, values + (size_t)c * v.n, decodes);
		ok &= decodes;
	}
	if (ok && is_sound(&v, stacks, sets, values))
		check_again(&v, stacks, sets, values);
	free(stacks);
	free(sets);
	free(values);
	return 0;
}
