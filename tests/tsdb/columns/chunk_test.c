#include "tests/tsdb/columns/chunk_rows.h"
#include "tsdb/columns/accum.h"
#include "tsdb/columns/chunk.h"

static const struct shape shapes[] = {
	{ "no rows", 0, 0, 0, 0, false, false, 1, { ONES } },
	{ "one empty row", 1, 0, 0, 0, false, false, 1, { ONES } },
	{ "one row", 1, 40, 0, 50, false, false, 2, { SMALL, TIMES } },
	{ "two rows", 2, 40, 0, 50, false, false, 2, { SMALL, LEVEL } },
	{ "cpu", 120, 200, 0, 20, false, false, 2, { SMALL, TIMES } },
	{ "all there", 64, 30, 0, 100, false, false, 2, { ONES, SMALL } },
	{ "labels", 50, 60, 5, 30, false, false, 2, { SMALL, TIMES } },
	{ "twice", 30, 25, 3, 60, true, false, 3, { SMALL, WILD, LEVEL } },
	{ "heap", 120, 80, 0, 95, true, true, 4, { SPARSE, WILD, LEVEL, LEVEL } },
	{ "go heap", 100, 40, 7, 40, false, false, 4,
		{ NEW_BYTES, NEW_OBJECTS, LIVE_BYTES, LIVE_OBJECTS } },
	{ "one set", 60, 60, 0, 30, false, true, 4,
		{ NEW_BYTES, NEW_OBJECTS, LIVE_BYTES, LIVE_OBJECTS } },
	{ "anew", 90, 8, 7, 60, false, false, 4, { NEW_BYTES, NEW_OBJECTS, LIVE_BYTES, LIVE_OBJECTS },
		30 },
	{ "anew with the last row", 60, 8, 7, 80, false, true, 2, { NEW_BYTES, NEW_OBJECTS }, 59 },
	{ "interleaved", 40, 300, 2, 20, true, false, 3, { NEW_BYTES, NEW_OBJECTS, SIGNED } },
	{ "zeros", 20, 20, 2, 40, true, true, 2, { ZEROS, SPARSE } },
	{ "negative", 33, 50, 0, 30, false, false, 3, { SIGNED, SMALL, SIGNED } },
	{ "extremes", 17, 9, 2, 70, true, false, 2, { EXTREME, EXTREME } },
	{ "longest", 1024, 12, 0, 10, false, false, 2, { SMALL, LEVEL } },
	{ "no columns", 5, 10, 0, 50, false, false, 0, { ONES } },
};

/* ---- comparing ---- */

struct entry {
	uint32_t stack, set;
	int64_t values[COLUMNS_MAX];
};

static int entry_cmp(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;

	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	if (a->set != b->set)
		return a->set < b->set ? -1 : 1;
	for (int c = 0; c < COLUMNS_MAX; c++)
		if (a->values[c] != b->values[c])
			return a->values[c] < b->values[c] ? -1 : 1;
	return 0;
}

static struct entry *entries_of(const struct row *r)
{
	struct entry *e = calloc(r->n + 1, sizeof(*e));

	for (uint32_t i = 0; i < r->n; i++) {
		e[i].stack = r->stacks[i];
		e[i].set = r->label_sets ? r->label_sets[i] : 0;
		for (uint32_t c = 0; c < r->columns_n; c++)
			e[i].values[c] = r->values[(size_t)c * r->n + i];
		if (i &&
			(e[i].stack < e[i - 1].stack ||
				(e[i].stack == e[i - 1].stack && e[i].set < e[i - 1].set)))
			CHECK_FAIL("ids descend at %u", i);
	}
	qsort(e, r->n, sizeof(*e), entry_cmp);
	return e;
}

static void check_row(const char *name, uint32_t at, const struct row *got, const struct row *want)
{
	struct entry *a, *b;

	CHECK_INT(got->header, want->header);
	CHECK_INT(got->interval_ns, want->interval_ns);
	CHECK_INT(got->time_nanos, want->time_nanos);
	CHECK_INT(got->duration_nanos, want->duration_nanos);
	CHECK_INT(got->period, want->period);
	CHECK_INT(got->columns_n, want->columns_n);
	CHECK_INT(got->n, want->n);
	if (got->n != want->n)
		return;
	a = entries_of(got);
	b = entries_of(want);
	if (memcmp(a, b, want->n * sizeof(*a)))
		CHECK_FAIL("%s: row %u differs", name, at);
	free(a);
	free(b);
}

/* True: all of it fitted. */
static bool add_rows(struct accum *a, uint32_t column, uint32_t from, uint32_t to, int64_t weight)
{
	struct err err;

	for (uint32_t r = from; r < to; r++)
		if (accum_add(a, w.rows[r].stacks, w.rows[r].label_sets,
				w.rows[r].values + (size_t)column * w.rows[r].n, w.rows[r].n, weight, &err))
			return false;
	return true;
}

/* Rows [0, to) and what comes along of the others are all rows; 128 bits, which do not overflow. */
static void check_add_head(
	const char *name, struct chunk *c, struct partition *p, uint32_t column, uint32_t to)
{
	const unsigned flags = ACCUM_WEIGHTED | ACCUM_BY_LABELS;
	struct accum *head, *all, *rows;
	struct chunk_tail tail;
	struct err err;

	REQUIRE_OK(accum_open(p, flags, &head, &err), &err);
	REQUIRE_OK(accum_open(p, flags, &all, &err), &err);
	REQUIRE_OK(accum_open(p, flags, &rows, &err), &err);
	CHECK_OK(chunk_add_head(c, column, to, 3, head, &tail, &err), &err);
	CHECK(add_rows(rows, column, 0, to, 3));
	if (tail.is_known && tail.n)
		CHECK_OK(accum_add(all, tail.stacks, tail.label_sets, tail.values, tail.n, 3, &err), &err);
	else if (!tail.is_known)
		CHECK(add_rows(all, column, to, w.rows_n, 3));
	CHECK_OK(accum_merge(all, head, &err), &err);
	check_same_sums(name, head, rows);
	CHECK(add_rows(rows, column, to, w.rows_n, 3));
	check_same_sums(name, all, rows);
	accum_close(head);
	accum_close(all);
	accum_close(rows);
}

/* The rows one by one are added in 128 bits, which cannot overflow here. */
static void check_add(const char *name, struct chunk *c, struct partition *p, uint32_t column,
	uint32_t from, uint32_t to, unsigned flags)
{
	int64_t weight = flags & ACCUM_WEIGHTED ? 10000000000 : 1;
	struct accum *a, *b, *rows;
	struct err err;
	enum err_code rc;

	REQUIRE_OK(accum_open(p, flags, &a, &err), &err);
	REQUIRE_OK(accum_open(p, flags, &rows, &err), &err);
	REQUIRE_OK(accum_open(p, flags | ACCUM_WEIGHTED, &b, &err), &err);
	CHECK(add_rows(b, column, from, to, weight));
	rc = chunk_add(c, column, from, to, weight, a, &err);
	if (rc == ERR_LIMIT) {
		CHECK_STR(str_of(err.msg), "sum exceeds 64 bits");
		CHECK(!add_rows(rows, column, from, to, weight));
	} else {
		CHECK_INT(rc, ERR_OK);
		check_same_sums(name, a, b);
	}
	accum_close(a);
	accum_close(b);
	accum_close(rows);
	if (from == 0 && to > 0 && to < w.rows_n)
		check_add_head(name, c, p, column, to);
}

static void check_heads(const struct chunk *c)
{
	const struct chunk_row *rows = chunk_rows(c);
	uint32_t stack_max = 0, set_max = 0;

	CHECK_INT(chunk_rows_n(c), w.rows_n);
	CHECK_INT(chunk_columns_n(c), w.columns_n);
	CHECK_INT(chunk_interval_ns(c), w.rows_n ? w.rows[0].interval_ns : 0);
	for (uint32_t r = 0; r < w.rows_n; r++) {
		const struct row *row = &w.rows[r];

		CHECK_INT(rows[r].ts_ns, w.ts[r]);
		CHECK_INT(rows[r].time_nanos, row->time_nanos);
		CHECK_INT(rows[r].duration_nanos, row->duration_nanos);
		CHECK_INT(rows[r].period, row->period);
		CHECK_INT(rows[r].header, row->header);
		CHECK_INT(rows[r].n, row->n);
		for (uint32_t k = 0; k < w.columns_n; k++) {
			int64_t total = 0;

			for (uint32_t i = 0; i < row->n; i++)
				total += row->values[(size_t)k * row->n + i];
			CHECK_INT(chunk_totals(c, k)[r], total);
		}
		for (uint32_t i = 0; i < row->n; i++) {
			stack_max = row->stacks[i] > stack_max ? row->stacks[i] : stack_max;
			if (row->label_sets && row->label_sets[i] > set_max)
				set_max = row->label_sets[i];
		}
	}
	CHECK_INT(chunk_stack_max(c), stack_max);
	CHECK_INT(chunk_label_set_max(c), set_max);
}

static void check_marks(struct chunk *c)
{
	struct bits stacks = { 0 }, sets = { 0 }, want[2] = { { 0 }, { 0 } };
	struct err err;

	CHECK_OK(chunk_mark_ids(c, &stacks, &sets, &err), &err);
	CHECK_OK(chunk_mark_ids(c, NULL, NULL, &err), &err);
	for (uint32_t r = 0; r < w.rows_n; r++)
		for (uint32_t i = 0; i < w.rows[r].n; i++) {
			uint32_t set = w.rows[r].label_sets ? w.rows[r].label_sets[i] : 0;

			REQUIRE(bits_reserve(&want[0], w.rows[r].stacks[i]));
			REQUIRE(bits_reserve(&want[1], set));
			bits_set(&want[0], w.rows[r].stacks[i]);
			bits_set(&want[1], set);
		}
	for (uint32_t i = 0; i < 20000; i++) {
		CHECK(bits_get(&stacks, i) == bits_get(&want[0], i));
		CHECK(bits_get(&sets, i) == bits_get(&want[1], i));
	}
	bits_release(&stacks);
	bits_release(&sets);
	bits_release(&want[0]);
	bits_release(&want[1]);
}

static void check_shape(const struct shape *s, struct chunk *c, struct partition *p)
{
	struct buf b = { 0 };
	const struct row *rows;
	struct chunk_sizes sizes;
	struct err err;
	char *bytes;

	make_world(s);
	REQUIRE_OK(chunk_encode(w.ts, w.rows, w.rows_n, w.kinds, &b, &err), &err);
	bytes = malloc(b.len); /* its own, so that a read past the end is seen */
	memcpy(bytes, b.ptr, b.len);
	REQUIRE_OK(chunk_parse(c, (struct str){ bytes, b.len }, &err), &err);
	CHECK_OK(chunk_check(c, &err), &err);
	check_heads(c);
	check_marks(c);
	REQUIRE_OK(chunk_unpack(c, &rows, &err), &err);
	for (uint32_t r = 0; r < w.rows_n; r++)
		check_row(s->name, r, &rows[r], &w.rows[r]);
	for (uint32_t k = 0; k < w.columns_n; k++)
		for (unsigned flags = 0; flags < 4; flags++) {
			check_add(s->name, c, p, k, 0, w.rows_n, flags);
			for (int i = 0; i < (check_is_short() ? 4 : 12); i++) {
				uint32_t from = (uint32_t)(draw() % (w.rows_n + 1));
				uint32_t to = from + (uint32_t)(draw() % (w.rows_n - from + 1));

				check_add(s->name, c, p, k, from, to, flags);
			}
		}
	CHECK_OK(chunk_measure(c, &sizes, &err), &err);
	CHECK_INT(sizes.total, b.len);
	CHECK_INT(sizes.heads + sizes.ids + sizes.positions + sizes.values + sizes.sums, b.len);
	free(bytes);
	buf_release(&b);
}

TEST(chunks_come_back_as_their_rows)
{
	struct partition *p = open_partition();
	struct chunk *c = chunk_open();

	REQUIRE(c && p);
	for (int round = 0; round < (check_is_short() ? 1 : 3); round++)
		for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
			check_shape(&shapes[i], c, p);
	drop_world();
	chunk_close(c);
	partition_close(p);
}

TEST(every_range)
{
	static const struct shape ranges[] = {
		{ "ranges", 19, 30, 1, 40, true, true, 4, { SMALL, WILD, SIGNED, LEVEL } },
		{ "ranges, anew", 24, 8, 7, 80, false, false, 4,
			{ NEW_BYTES, NEW_OBJECTS, LIVE_BYTES, LIVE_OBJECTS }, 11 },
	};
	struct partition *p = open_partition();
	struct chunk *c = chunk_open();
	struct buf b = { 0 };
	struct err err;

	REQUIRE(c && p);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		make_world(&ranges[i]);
		buf_clear(&b);
		REQUIRE_OK(chunk_encode(w.ts, w.rows, w.rows_n, w.kinds, &b, &err), &err);
		REQUIRE_OK(chunk_parse(c, buf_str(&b), &err), &err);
		for (uint32_t from = 0; from <= w.rows_n; from++)
			for (uint32_t to = from; to <= w.rows_n; to++)
				for (uint32_t k = 0; k < w.columns_n; k++)
					check_add(ranges[i].name, c, p, k, from, to, ACCUM_BY_LABELS);
	}
	buf_release(&b);
	drop_world();
	chunk_close(c);
	partition_close(p);
}

/* In two runs each, far apart, and what is above 1 all in one cell, or in each of a few: gaps that
 * are much longer than a subset of so many has in the mean. */
static void in_runs(uint32_t n, uint32_t stacks)
{
	drop_world();
	w.rows_n = n;
	w.columns_n = 1;
	w.kinds[0] = KIND_DELTA;
	for (uint32_t r = 0; r < n; r++) {
		uint32_t *ids = malloc(stacks * sizeof(*ids)), k = 0;
		int64_t *values = malloc(stacks * sizeof(*values));

		for (uint32_t s = 0; s < stacks; s++) {
			uint32_t len = 1 + s * s % (n / 2), late = n - 1 - s % 5;

			if (r >= len && r + s % 7 < late)
				continue;
			ids[k] = s;
			values[k++] = r == s % len ? 1 + (INT64_C(1) << s % 40) : 1 + (r % 97 == 0);
		}
		w.ts[r] = r;
		w.rows[r] = (struct row){
			.interval_ns = 1, .n = k, .columns_n = 1, .stacks = ids, .values = values
		};
	}
}

TEST(runs_of_rows)
{
	static const uint32_t sizes[] = { 3, 8, 64, 120, 1000, 1024 };
	struct partition *p = open_partition();
	struct chunk *c = chunk_open();
	struct buf b = { 0 };
	struct err err;

	REQUIRE(c && p);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t n = sizes[i];

		in_runs(n, 1 + 3 * 61);
		buf_clear(&b);
		REQUIRE_OK(chunk_encode(w.ts, w.rows, n, w.kinds, &b, &err), &err);
		REQUIRE_OK(chunk_parse(c, buf_str(&b), &err), &err);
		CHECK_OK(chunk_check(c, &err), &err);
		for (uint32_t at = 0; at <= n; at += n / 50 + 1) {
			check_add("head", c, p, 0, 0, at, 0);
			check_add("tail", c, p, 0, at, n, 0);
			check_add("inside", c, p, 0, at / 3, at, ACCUM_WEIGHTED);
			check_add("one", c, p, 0, at, at + (at < n), ACCUM_BY_LABELS);
		}
	}
	buf_release(&b);
	drop_world();
	chunk_close(c);
	partition_close(p);
}

/* ---- ends of the ranges ---- */

/* One column, one entry per row, of one stack unless the rows say otherwise. */
static void one_value_each(const int64_t *values, uint32_t n, enum value_kind kind, uint32_t stacks)
{
	drop_world();
	w.rows_n = n;
	w.columns_n = 1;
	w.kinds[0] = kind;
	for (uint32_t r = 0; r < n; r++) {
		uint32_t *stack = malloc(sizeof(*stack));
		int64_t *value = malloc(sizeof(*value));

		*stack = r % stacks ? UINT32_MAX : 0;
		*value = values[r];
		w.ts[r] = r ? INT64_MAX - (int64_t)(n - r) : INT64_MIN;
		w.rows[r] = (struct row){ .header = r % 2 ? UINT32_MAX : 0,
			.interval_ns = INT64_MAX,
			.time_nanos = r % 2 ? INT64_MIN : INT64_MAX,
			.duration_nanos = r % 2 ? INT64_MIN : INT64_MAX,
			.period = r % 3 ? INT64_MIN : INT64_MAX,
			.n = 1,
			.columns_n = 1,
			.stacks = stack,
			.values = value };
	}
}

TEST(values_of_64_bits)
{
	static const int64_t values[][4] = {
		{ INT64_MIN, 0, INT64_MIN, 0 },
		{ INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX },
		{ INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX },
		{ INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN },
		{ INT64_MAX, 1, 1, 1 },
		{ INT64_MAX / 3, INT64_MAX / 3, INT64_MAX / 3, 1 },
		{ INT64_MAX - 1, 0, -INT64_MAX, INT64_MIN + 1 },
		{ 1, 2, INT64_C(1) << 62, INT64_C(1) << 62 },
	};
	struct chunk *c = chunk_open();
	const struct row *rows;
	struct buf b = { 0 };
	struct err err;

	REQUIRE(c);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]) * 4; i++) {
		one_value_each(values[i / 4], 4, i % 2 ? KIND_GAUGE : KIND_DELTA, 1 + i / 2 % 2);
		buf_clear(&b);
		REQUIRE_OK(chunk_encode(w.ts, w.rows, w.rows_n, w.kinds, &b, &err), &err);
		REQUIRE_OK(chunk_parse(c, buf_str(&b), &err), &err);
		CHECK_OK(chunk_check(c, &err), &err);
		check_heads(c);
		REQUIRE_OK(chunk_unpack(c, &rows, &err), &err);
		for (uint32_t r = 0; r < w.rows_n; r++)
			check_row("64 bits", r, &rows[r], &w.rows[r]);
	}
	buf_release(&b);
	drop_world();
	chunk_close(c);
}

TEST(sums_of_more_than_64_bits)
{
	static const struct {
		int64_t values[4];
		bool fits;
	} cases[] = {
		{ { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX }, false },
		{ { INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN }, false },
		{ { INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4 }, true },
		{ { 10000000, 20000000, INT64_MAX / 10000000 * 10000000, 10000000 }, false },
	};
	const struct symbol_limits limits = { 1000, 1000, 1000, 1 << 20 };
	struct chunk *c = chunk_open();
	struct partition *p = NULL;
	struct buf b = { 0 };
	struct accum *a;
	struct accum_cell cell;
	struct err err;

	REQUIRE(c);
	REQUIRE_OK(partition_open(STR("job"), 0, 0, &limits, &p, &err), &err);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) * 4; i++) {
		bool weighted = i % 4 < 2, fits = cases[i / 4].fits || weighted;
		__int128 sum = 0;
		size_t at = 0;

		one_value_each(cases[i / 4].values, 4, i % 2 ? KIND_GAUGE : KIND_DELTA, 1);
		buf_clear(&b);
		REQUIRE_OK(chunk_encode(w.ts, w.rows, w.rows_n, w.kinds, &b, &err), &err);
		REQUIRE_OK(chunk_parse(c, buf_str(&b), &err), &err);
		REQUIRE_OK(accum_open(p, weighted ? ACCUM_WEIGHTED : 0, &a, &err), &err);
		if (fits)
			CHECK_OK(chunk_add(c, 0, 0, 4, 3, a, &err), &err);
		else
			CHECK_ERR(chunk_add(c, 0, 0, 4, 3, a, &err), &err, ERR_LIMIT, "sum exceeds 64 bits");
		CHECK_OK(accum_seal(a, &err), &err);
		for (int k = 0; k < 4; k++)
			sum += cases[i / 4].values[k];
		if (fits && (!accum_next(a, &at, &cell) || cell.value != sum * (weighted ? 3 : 1)))
			CHECK_FAIL("case %zu: another sum", i);
		accum_close(a);
	}
	buf_release(&b);
	drop_world();
	chunk_close(c);
	partition_close(p);
}

TEST(a_total_over_64_bits_is_refused)
{
	const uint32_t ids[2] = { 1, 2 };
	const int64_t v[4] = { 1, 1, INT64_MAX, 1 }, ts = 5;
	const enum value_kind kinds[2] = { KIND_DELTA, KIND_GAUGE };
	const struct row row = { .n = 2, .columns_n = 2, .stacks = ids, .values = v };
	struct buf b = { 0 };
	struct err err;

	buf_add_cstr(&b, "before");
	CHECK_ERR(chunk_encode(&ts, &row, 1, kinds, &b, &err), &err, ERR_LIMIT,
		"total of column 1 exceeds 64 bits");
	CHECK_STR(buf_str(&b), "before");
	buf_release(&b);
}

/* ---- sizes ---- */

TEST(what_nothing_is_known_of_costs_nothing)
{
	static const struct shape s = { "same", 120, 64, 0, 100, false, false, 3,
		{ ONES, TIMES, ONES } };
	struct chunk_sizes sizes;
	struct chunk *c = chunk_open();
	struct buf b = { 0 };
	struct err err;

	REQUIRE(c);
	make_world(&s);
	REQUIRE_OK(chunk_encode(w.ts, w.rows, w.rows_n, w.kinds, &b, &err), &err);
	REQUIRE_OK(chunk_parse(c, buf_str(&b), &err), &err);
	REQUIRE_OK(chunk_measure(c, &sizes, &err), &err);
	CHECK_INT(sizes.samples, 120 * 64);
	CHECK_INT(sizes.entries, 64);
	CHECK_INT(sizes.positions, 0);
	CHECK_INT(sizes.values, 0);
	buf_release(&b);
	drop_world();
	chunk_close(c);
}

/* One unit per label set, and a bit per key for its phase; nothing for the cells of ones. */
TEST(scaled_events_cost_their_number)
{
	static const struct shape s = { "scaled", 120, 200, 3, 60, false, false, 2,
		{ LIVE_BYTES, LIVE_OBJECTS } };
	struct chunk_sizes both, one;
	struct chunk *c = chunk_open();
	struct buf b = { 0 };
	struct err err;

	REQUIRE(c);
	make_world(&s);
	REQUIRE_OK(chunk_encode(w.ts, w.rows, w.rows_n, w.kinds, &b, &err), &err);
	REQUIRE_OK(chunk_parse(c, buf_str(&b), &err), &err);
	REQUIRE_OK(chunk_measure(c, &both, &err), &err);
	buf_clear(&b);
	for (uint32_t r = 0; r < w.rows_n; r++)
		w.rows[r].columns_n = 1;
	REQUIRE_OK(chunk_encode(w.ts, w.rows, w.rows_n, w.kinds, &b, &err), &err);
	REQUIRE_OK(chunk_parse(c, buf_str(&b), &err), &err);
	REQUIRE_OK(chunk_measure(c, &one, &err), &err);
	CHECK_INT(both.positions, one.positions);
	CHECK(both.values < one.values + one.entries / 2);
	buf_release(&b);
	drop_world();
	chunk_close(c);
}

/* So regular that its bytes are fewer than a reader would believe: it is not compressed then. */
TEST(very_regular_rows)
{
	enum { N = 3000, ROWS = 1024 };
	static uint32_t stacks[N];
	static int64_t values[N], ts[ROWS];
	static struct row rows[ROWS];
	const enum value_kind kind = KIND_DELTA;
	struct chunk *c = chunk_open();
	const struct row *got;
	struct buf b = { 0 };
	struct err err;

	REQUIRE(c);
	for (uint32_t i = 0; i < N; i++) {
		stacks[i] = i;
		values[i] = 1;
	}
	for (uint32_t r = 0; r < ROWS; r++) {
		ts[r] = r;
		rows[r] = (struct row){
			.interval_ns = 1, .n = N, .columns_n = 1, .stacks = stacks, .values = values
		};
	}
	REQUIRE_OK(chunk_encode(ts, rows, ROWS, &kind, &b, &err), &err);
	REQUIRE_OK(chunk_parse(c, buf_str(&b), &err), &err);
	REQUIRE_OK(chunk_unpack(c, &got, &err), &err);
	CHECK_INT(got[ROWS - 1].n, N);
	CHECK(memcmp(got[ROWS - 1].stacks, stacks, sizeof(stacks)) == 0);
	CHECK(memcmp(got[ROWS - 1].values, values, sizeof(values)) == 0);
	buf_release(&b);
	chunk_close(c);
}
