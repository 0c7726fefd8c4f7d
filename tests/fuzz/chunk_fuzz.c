/*
 * fuzz: tsdb
 * Chunks as a damaged disk could hand them out: reading stays within the bytes and the arrays, what
 * the check lets pass unpacks, and encoded again it says the same.
 */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tsdb/columns/chunk.h"
#include "tsdb/symbols/partition.h"

#define VALUES_MAX (1u << 22)

static bool same_row(const struct row *a, const struct row *b)
{
	if (a->n != b->n || a->header != b->header || a->time_nanos != b->time_nanos ||
		a->duration_nanos != b->duration_nanos || a->period != b->period)
		return false;
	if (a->n == 0)
		return true;
	for (uint32_t i = 0; i < a->n; i++)
		if ((a->label_sets ? a->label_sets[i] : 0) != (b->label_sets ? b->label_sets[i] : 0))
			return false;
	return !memcmp(a->stacks, b->stacks, a->n * sizeof(*a->stacks));
}

/* The rows of one chunk, encoded again, as rows of another. */
static void check_again(struct chunk *c, struct chunk *again, const struct row *rows)
{
	enum value_kind kinds[ROW_COLUMNS_MAX];
	uint32_t n = chunk_rows_n(c);
	int64_t *ts = malloc((n + 1) * sizeof(*ts));
	const struct row *others;
	struct buf b = { 0 };

	require(ts);
	for (uint32_t r = 0; r < n; r++)
		ts[r] = chunk_rows(c)[r].ts_ns;
	for (uint32_t k = 0; k < ROW_COLUMNS_MAX; k++)
		kinds[k] = k % 2 ? KIND_GAUGE : KIND_DELTA;
	/* Totals may wrap where no encoder made them: then there is nothing to compare. */
	if (!chunk_encode(ts, rows, n, kinds, &b, NULL)) {
		require(!chunk_parse(again, buf_str(&b), NULL));
		require(!chunk_check(again, NULL));
		require(!chunk_unpack(again, &others, NULL));
		require(chunk_rows_n(again) == n);
		for (uint32_t r = 0; r < n; r++)
			require(same_row(&rows[r], &others[r]));
		for (uint32_t k = 0; n && k < chunk_columns_n(c); k++)
			require(!memcmp(chunk_totals(c, k), chunk_totals(again, k), n * sizeof(int64_t)));
	}
	buf_release(&b);
	free(ts);
}

/* As row by row. */
static void add_spans(struct chunk *c, struct partition *p, uint32_t column, uint32_t from)
{
	uint32_t n = chunk_rows_n(c);
	int64_t ends[CHUNK_ROWS_MAX + 1];
	struct accum_cell x, y;
	size_t at = 0, other = 0;
	struct accum *a, *b;
	bool more = true;

	for (uint32_t r = 0; r <= n; r++)
		ends[r] = r * r * (INT64_MAX / CHUNK_ROWS_MAX / CHUNK_ROWS_MAX);
	require(!accum_open(p, ACCUM_WEIGHTED | ACCUM_BY_LABELS, &a, NULL));
	require(!accum_open(p, ACCUM_WEIGHTED | ACCUM_BY_LABELS, &b, NULL));
	if (chunk_add_spans(c, column, from, n, ends, a, NULL))
		goto out;
	for (uint32_t r = from; r < n; r++)
		if (chunk_add(c, column, r, r + 1, ends[r + 1] - ends[r], b, NULL))
			goto out;
	require(!accum_seal(a, NULL) && !accum_seal(b, NULL));
	while (more) {
		more = accum_next(a, &at, &x);
		require(more == accum_next(b, &other, &y));
		require(!more || (x.stack == y.stack && x.label_set == y.label_set && x.value == y.value));
	}
out:
	accum_close(a);
	accum_close(b);
}

static void add_all(struct chunk *c, bool sound)
{
	const struct symbol_limits limits = { 1000, 1000, 1000, 1 << 20 };
	uint32_t n = chunk_rows_n(c);
	struct chunk_tail tail;
	struct partition *p;
	struct accum *a;

	require(!partition_open(STR("job"), 0, 0, &limits, &p, NULL));
	for (uint32_t k = 0; k < chunk_columns_n(c); k++) {
		if (n <= 16 || !sound)
			add_spans(c, p, k, n / 3);
		for (unsigned i = 0; i < 3; i++) {
			require(!accum_open(p, i, &a, NULL));
			if (chunk_add(c, k, i && n ? 1 : 0, i == 2 && n ? n - 1 + (n == 1) : n, INT64_MAX, a,
					NULL) == ERR_OK)
				require(!accum_seal(a, NULL));
			if (n > 1 && chunk_add_head(c, k, 1 + i % (n - 1), 1, a, &tail, NULL) == ERR_OK)
				for (uint32_t t = 0; t < tail.n; t++)
					require(tail.stacks[t] <= chunk_stack_max(c));
			accum_close(a);
		}
	}
	partition_close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct chunk *c, *again;
	const struct row *rows;
	struct chunk_sizes sizes;
	bool sound;

	if (!c)
		require((c = chunk_open()) && (again = chunk_open()));
	if (chunk_parse(c, (struct str){ (const char *)data, size }, NULL))
		return 0;
	require(chunk_rows_n(c) <= CHUNK_ROWS_MAX && chunk_columns_n(c) <= ROW_COLUMNS_MAX);
	require(!chunk_measure(c, &sizes, NULL) && sizes.total == size);
	if (sizes.samples * (chunk_columns_n(c) + 1) > VALUES_MAX || chunk_stack_max(c) > 1u << 22 ||
		chunk_label_set_max(c) > 1u << 22)
		return 0;
	sound = !chunk_check(c, NULL);
	add_all(c, sound);
	if (sound) {
		require(!chunk_unpack(c, &rows, NULL));
		check_again(c, again, rows);
	}
	return 0;
}
