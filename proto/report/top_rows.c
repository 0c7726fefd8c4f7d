#include "proto/report/top_rows.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/integer.h"

struct top_rows_keys {
	struct top_key (*of)(const void *ctx, uint32_t id);
	const void *ctx;
	bool by_cum;
};

static int top_rows_by_first_line(int64_t a, int64_t b)
{
	char at[24], bt[24];

	snprintf(at, sizeof(at), "%" PRId64, a);
	snprintf(bt, sizeof(bt), "%" PRId64, b);
	return strcmp(at, bt);
}

static int top_rows_by_rank(const void *left, const void *right, void *ctx)
{
	const struct top_rows_keys *keys = ctx;
	struct top_key a = keys->of(keys->ctx, *(const uint32_t *)left);
	struct top_key b = keys->of(keys->ctx, *(const uint32_t *)right);
	uint64_t am = integer_magnitude64(keys->by_cum ? a.cum : a.flat);
	uint64_t bm = integer_magnitude64(keys->by_cum ? b.cum : b.flat);
	int c;

	if (am != bm)
		return am > bm ? -1 : 1;
	if ((c = str_cmp(a.name, b.name)))
		return c;
	am = integer_magnitude64(keys->by_cum ? a.flat : a.cum);
	bm = integer_magnitude64(keys->by_cum ? b.flat : b.cum);
	if (am != bm)
		return am > bm ? -1 : 1;
	if (a.start_line != b.start_line)
		return top_rows_by_first_line(a.start_line, b.start_line);
	return str_cmp(a.objfile, b.objfile);
}

size_t top_rows(uint32_t *ids, size_t n, struct top_key (*key)(const void *ctx, uint32_t id),
	const void *ctx, bool by_cum)
{
	struct top_rows_keys keys = { key, ctx, by_cum };
	size_t kept = 0;

	assert(key && (ids || !n));
	for (size_t i = 0; i < n; i++) {
		struct top_key k = key(ctx, ids[i]);

		if (k.flat != 0 || k.cum != 0)
			ids[kept++] = ids[i];
	}
	if (kept > 1)
		qsort_r(ids, kept, sizeof(*ids), top_rows_by_rank, &keys);
	return kept;
}

double top_percent(int64_t value, int64_t total)
{
	return total == 0 ? 0 : fabs((double)value / (double)total) * 100;
}
