/*
 * Rows for chunks, drawn by a shape: how many, of which stacks, with what in their columns.
 */
#ifndef TESTS_TSDB_CHUNK_ROWS_H
#define TESTS_TSDB_CHUNK_ROWS_H

#include "base/map.h"
#include "tests/check.h"
#include "tsdb/columns/accum.h"
#include "tsdb/columns/row.h"
#include "tsdb/symbols/partition.h"

#define COLUMNS_MAX 6
#define ROWS_MAX 1024

static uint64_t state = 1;

static inline uint64_t draw(void)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	return map_hash_u64(state);
}

/* ---- rows made by a shape ---- */

enum columns {
	ONES,
	SMALL,
	TIMES,
	WILD,
	SIGNED,
	EXTREME,
	LEVEL,
	ZEROS,
	SPARSE,
	/* Sampled events, scaled as Go does; objects follow their bytes. */
	NEW_BYTES,
	NEW_OBJECTS,
	LIVE_BYTES,
	LIVE_OBJECTS,
};

struct shape {
	const char *name;
	uint32_t rows, stacks, labels; /* distinct; entries are up to `stacks` per row */
	uint32_t percent; /* of the stacks in a row */
	bool twice, zeros; /* ids several times in a row; entries that are all 0 */
	uint32_t columns_n;
	enum columns columns[COLUMNS_MAX];
	uint32_t anew; /* row at which the process begins anew; 0: at none */
};

static struct world {
	uint32_t rows_n, columns_n;
	int64_t ts[ROWS_MAX];
	struct row rows[ROWS_MAX];
	enum value_kind kinds[COLUMNS_MAX];
	int64_t levels[4096][COLUMNS_MAX];
} w;

/* The value of `events` events; the lowest bits of the id, its label set, say the size. */
static inline int64_t scaled(uint32_t id, bool bytes, int64_t events)
{
	double size = 16 << 2 * (id & 7), mean = 524288 / size + 0.37;

	return (int64_t)((double)events * mean * (bytes ? size : 1));
}

static inline int64_t value_of_events(enum columns kind, uint32_t id, uint32_t column)
{
	int64_t *is = &w.levels[id][column], was = *is;

	switch (kind) {
	case NEW_BYTES:
		if (draw() % 400 == 0) /* a process begins anew */
			return scaled(id, true, *is = 1);
		*is += 1 + (int64_t)(draw() % 2 * (draw() % 9));
		return scaled(id, true, *is) - scaled(id, true, was);
	case NEW_OBJECTS:
		*is = w.levels[id][column - 1];
		was = was < *is ? scaled(id, false, was) : 0;
		return scaled(id, false, *is) - was + (id % 11 == 5 ? (int64_t)(draw() % 7) : 0);
	case LIVE_BYTES:
		if (draw() % 20 == 0)
			*is = (int64_t)(draw() % 5);
		return scaled(id, true, *is);
	default:
		*is = w.levels[id][column - 1];
		return scaled(id, false, *is);
	}
}

static inline int64_t value_of(enum columns kind, uint32_t id, uint32_t column, int64_t before)
{
	switch (kind) {
	case ONES:
		return 1;
	case SMALL:
		return 1 + (int64_t)(draw() % (1 + id % 7) * (draw() % 3));
	case TIMES:
		return before * 10000000;
	case WILD:
		return (int64_t)(draw() >> (4 + draw() % 59));
	case SIGNED:
		return (int64_t)(draw() % 50) - 20;
	case EXTREME: /* of both signs, so that a row's total fits */
		return draw() % 3 ? (int64_t)(draw() % 2) : id % 2 ? INT64_MIN / 128 : INT64_MAX / 128;
	case LEVEL:
		if (draw() % 20 == 0)
			w.levels[id][column] = (int64_t)(draw() % 5 * 4096);
		return w.levels[id][column];
	case ZEROS:
		return 0;
	case SPARSE:
		return draw() % 30 ? 0 : (int64_t)(draw() % 9 * 512);
	case NEW_BYTES:
	case NEW_OBJECTS:
	case LIVE_BYTES:
	case LIVE_OBJECTS:
		return value_of_events(kind, id, column);
	}
	return 0;
}

static inline void drop_world(void)
{
	for (uint32_t r = 0; r < w.rows_n; r++) {
		free((void *)(uintptr_t)w.rows[r].stacks);
		free((void *)(uintptr_t)w.rows[r].label_sets);
		free((void *)(uintptr_t)w.rows[r].values);
	}
	memset(&w, 0, sizeof(w));
}

static inline void make_row(const struct shape *s, uint32_t r)
{
	uint32_t most = s->stacks * (s->labels + 1) * (s->twice ? 3 : 1) + 1, n = 0;
	uint32_t *stacks = malloc(most * sizeof(*stacks)), *sets = malloc(most * sizeof(*sets));
	int64_t *values, v, any;

	if (s->anew && r == s->anew)
		memset(w.levels, 0, sizeof(w.levels));
	for (uint32_t i = 0; i < s->stacks; i++)
		for (uint32_t l = 0; l <= s->labels; l++)
			for (uint32_t k = 0; k < (s->twice ? draw() % 3 + 1 : 1); k++)
				if (draw() % 100 < s->percent) {
					stacks[n] = i * i * 3;
					sets[n++] = l;
				}
	values = calloc((size_t)n * s->columns_n + 1, sizeof(*values));
	for (uint32_t i = 0; i < n; i++)
		for (;;) {
			any = v = 0;
			for (uint32_t c = 0; c < s->columns_n; c++) {
				v = value_of(s->columns[c], stacks[i] / 3 % 64 * 8 + sets[i], c, v);
				values[(size_t)c * n + i] = v;
				any |= v;
			}
			if (any || s->zeros || !s->columns_n)
				break;
			for (uint32_t c = 0; c < s->columns_n; c++)
				w.levels[stacks[i] / 3 % 64 * 8 + sets[i]][c] += 4096;
		}
	w.ts[r] = INT64_C(1700000000000000000) + r * INT64_C(10000000000) + (int64_t)(draw() % 4096);
	w.rows[r] = (struct row){ .header = r / 10 % 3,
		.interval_ns = 10000000000,
		.time_nanos = r % 7 ? w.ts[r] - (int64_t)(draw() % 1000000) : 0,
		.duration_nanos = 9000000000 + (int64_t)(draw() % 1000),
		.period = r % 11 ? 10000000 : INT64_MIN,
		.n = n,
		.columns_n = s->columns_n,
		.stacks = stacks,
		.label_sets = s->labels ? sets : NULL,
		.values = values };
	if (!s->labels)
		free(sets);
}

static inline void make_world(const struct shape *s)
{
	drop_world();
	for (uint32_t c = 0; c < s->columns_n; c++)
		w.kinds[c] = s->columns[c] == LEVEL || s->columns[c] >= LIVE_BYTES ? KIND_GAUGE :
																			 KIND_DELTA;
	for (uint32_t r = 0; r < s->rows; r++)
		make_row(s, r);
	w.rows_n = s->rows;
	w.columns_n = s->rows ? s->columns_n : 0;
}

static inline struct partition *open_partition(void)
{
	const struct symbol_limits limits = { 1000, 1000, 1000, 1 << 20 };
	struct partition *p = NULL;
	struct err err;

	CHECK_OK(partition_open(STR("job"), 0, 0, &limits, &p, &err), &err);
	return p;
}

/* Seals both. */
static inline void check_same_sums(const char *name, struct accum *a, struct accum *b)
{
	struct accum_cell x, y;
	size_t i = 0, j = 0;
	struct err err;
	bool more;

	CHECK_OK(accum_seal(a, &err), &err);
	CHECK_OK(accum_seal(b, &err), &err);
	while ((more = accum_next(a, &i, &x)) == accum_next(b, &j, &y) && more)
		if (x.stack != y.stack || x.label_set != y.label_set || x.value != y.value)
			break;
	if (more)
		CHECK_FAIL("%s: sums differ at stack %u", name, x.stack);
}

#endif
