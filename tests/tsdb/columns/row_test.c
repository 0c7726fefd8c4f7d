#include "base/map.h"
#include "tests/check.h"
#include "tsdb/columns/row.h"
#include "tsdb/symbols/partition.h"

static uint64_t state = 1;

static uint64_t draw(void)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	return map_hash_u64(state);
}

#define N_MAX 3000
#define COLUMNS 9

static uint32_t stacks[N_MAX], sets[N_MAX], got_stacks[N_MAX], got_sets[N_MAX];
static int64_t values[N_MAX * COLUMNS], got[N_MAX];

static int64_t value_of(uint32_t column)
{
	switch (column) {
	case 0:
		return 0;
	case 1:
		return 7;
	case 2:
		return (int64_t)(draw() % 100) * 10000000;
	case 3:
		return draw() % 20 ? 0 : (int64_t)(draw() % 1000);
	case 4:
		return draw() % 20 ? 0 : (int64_t)(draw() % 1000) - 500;
	case 5:
		return (int64_t)(draw() % 40000) - 20000;
	case 6:
		return (int64_t)(draw() >> (10 + draw() % 54)) / 4096;
	case 7:
		return -3;
	default:
		return (int64_t)(draw() % 128);
	}
}

/* True if there are small values; they are those that went in. */
static bool check_small(const struct row_view *v, uint32_t column, const int64_t *want)
{
	const unsigned char *small = row_small_values(v, column);

	for (uint32_t i = 0; small && i < v->n; i++)
		if (small[i] >= 0x80 || (int64_t)(small[i] * v->columns[column].factor) != want[i])
			CHECK_FAIL("small value %u of column %u differs", i, column);
	return small;
}

/* Cells are the values that are not 0, with their ids, and some that are 0; as row_values has them
 * in `want`, and row_ids in got_stacks and got_sets. */
static void check_cells(const struct row_view *v, uint32_t column, const int64_t *want)
{
	static uint32_t cell_stacks[N_MAX], cell_sets[N_MAX];
	static int64_t cell_values[N_MAX];
	uint32_t n = 77, k = 0;
	struct err err;

	memcpy(cell_stacks, got_stacks, v->n * sizeof(*cell_stacks));
	memcpy(cell_sets, got_sets, v->n * sizeof(*cell_sets));
	CHECK_OK(row_cells(v, column, cell_stacks, cell_sets, cell_values, &n, &err), &err);
	REQUIRE(n <= v->n);
	for (uint32_t i = 0; i < v->n; i++) {
		if (k < n && cell_stacks[k] == got_stacks[i] && cell_sets[k] == got_sets[i] &&
			cell_values[k] == want[i])
			k++;
		else if (want[i])
			CHECK_FAIL("value %u of column %u is not among the cells", i, column);
	}
	CHECK_INT(k, n);
	memcpy(cell_stacks, got_stacks, v->n * sizeof(*cell_stacks));
	CHECK_OK(row_cells(v, column, cell_stacks, NULL, cell_values, &k, &err), &err);
	CHECK_INT(k, n);
}

static void fill(uint32_t n, bool labels)
{
	const bool once = draw() % 2; /* each stack */
	const uint32_t gap = draw() % 4 ? 1 : 50; /* of label sets: in a byte, or not all */
	uint32_t stack = 0, set = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t step = (uint32_t)(draw() % 5 ? draw() % 200 : draw() % 100000);

		if (labels && draw() % 4 == 0)
			step = 0;
		step += once && step == 0;
		stack += step;
		set = labels ? (step ? 0 : set) + (uint32_t)(draw() % 3) * gap : 0;
		stacks[i] = stack;
		sets[i] = set;
	}
	for (uint32_t c = 0; c < COLUMNS; c++)
		for (uint32_t i = 0; i < n; i++)
			values[c * n + i] = value_of(c);
}

static void check_round_trip(uint32_t n, bool labels)
{
	const struct row row = { .header = 300,
		.interval_ns = 10000000000,
		.time_nanos = 1699999999123456789,
		.duration_nanos = 9000000000,
		.period = 10000000,
		.n = n,
		.columns_n = COLUMNS,
		.stacks = stacks,
		.label_sets = labels ? sets : NULL,
		.values = values };
	struct row_view v;
	struct buf b = { 0 };
	struct err err;

	fill(n, labels);
	REQUIRE_OK(row_encode(&row, 1700000000000000000, &b, &err), &err);
	REQUIRE_OK(row_parse(buf_str(&b), 1700000000000000000, &v, &err), &err);
	CHECK_INT(v.header, 300);
	CHECK_INT(v.interval_ns, 10000000000);
	CHECK_INT(v.time_nanos, 1699999999123456789);
	CHECK_INT(v.duration_nanos, 9000000000);
	CHECK_INT(v.period, 10000000);
	CHECK_INT(v.n, n);
	CHECK_INT(v.columns_n, COLUMNS);
	CHECK_OK(row_ids(&v, got_stacks, got_sets, &err), &err);
	CHECK(memcmp(got_stacks, stacks, n * sizeof(*stacks)) == 0);
	CHECK(memcmp(got_sets, sets, n * sizeof(*sets)) == 0);
	for (uint32_t c = 0; c < COLUMNS; c++) {
		int64_t total = 0;

		CHECK_OK(row_values(&v, c, got, &err), &err);
		if (memcmp(got, values + c * n, n * sizeof(*got)))
			CHECK_FAIL("column %u of %u entries differs", c, n);
		check_cells(&v, c, got);
		/* Of many values column 2 is small multiples, and 8 is bytes. */
		if (check_small(&v, c, got) != (c == 2 || c == 8) && n >= 63)
			CHECK_FAIL("column %u of %u entries: small or not", c, n);
		for (uint32_t i = 0; i < n; i++)
			total += got[i];
		CHECK_INT(v.columns[c].total, total);
	}
	buf_release(&b);
}

TEST(rows_come_back_as_they_were)
{
	static const uint32_t sizes[] = { 0, 1, 2, 7, 8, 9, 63, 64, 65, 255, 256, 257, 1000, N_MAX };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int labels = 0; labels < 2; labels++)
			check_round_trip(sizes[i], labels);
	for (uint32_t n = 1; n < 200; n++)
		check_round_trip(n % 40, true);
}

TEST(extremes)
{
	static const int64_t sets_of[][2] = {
		{ INT64_MIN, 0 },
		{ INT64_MAX, 0 },
		{ INT64_MIN, INT64_MAX },
		{ INT64_MIN / 2, INT64_MIN / 2 },
		{ -1, 1 },
		{ INT64_MAX, -INT64_MAX },
	};

	for (size_t i = 0; i < sizeof(sets_of) / sizeof(sets_of[0]); i++) {
		const uint32_t ids[2] = { 0, UINT32_MAX };
		const struct row row = { .interval_ns = INT64_MAX,
			.time_nanos = i % 2 ? INT64_MIN : INT64_MAX,
			.duration_nanos = INT64_MIN,
			.period = INT64_MAX,
			.n = 2,
			.columns_n = 1,
			.stacks = ids,
			.label_sets = ids,
			.values = sets_of[i] };
		uint32_t s[2], l[2];
		int64_t v[2];
		struct row_view view;
		struct buf b = { 0 };
		struct err err;

		REQUIRE_OK(row_encode(&row, 5, &b, &err), &err);
		REQUIRE_OK(row_parse(buf_str(&b), 5, &view, &err), &err);
		CHECK(view.time_nanos == row.time_nanos);
		CHECK_INT(view.duration_nanos, INT64_MIN);
		CHECK_OK(row_ids(&view, s, l, &err), &err);
		CHECK(s[0] == 0 && s[1] == UINT32_MAX && l[0] == 0 && l[1] == UINT32_MAX);
		CHECK_OK(row_values(&view, 0, v, &err), &err);
		CHECK_INT(v[0], sets_of[i][0]);
		CHECK_INT(v[1], sets_of[i][1]);
		buf_release(&b);
	}
}

/* Bytes times the factor are below 2^63. */
TEST(small_values_of_a_great_factor)
{
	const uint32_t ids[2] = { 1, 2 };

	for (int bits = 55; bits <= 57; bits++) {
		const int64_t v[2] = { INT64_C(1) << bits, INT64_C(30) << bits };
		struct row_view view;
		struct buf b = { 0 };
		struct err err;

		REQUIRE_OK(row_encode(&(struct row){ .n = 2, .columns_n = 1, .stacks = ids, .values = v },
					   5, &b, &err),
			&err);
		REQUIRE_OK(row_parse(buf_str(&b), 5, &view, &err), &err);
		CHECK_INT(check_small(&view, 0, v), bits <= 56);
		buf_release(&b);
	}
}

/* A row without entries whose column has a byte: refused by all. */
TEST(bytes_without_entries)
{
	static const char bytes[] = { 1, 0, 3, 1, 0, 0, 0, 0, 1, 2, 1, 0, 1, 0, 0, 5 };
	struct row_view v;
	struct err err;
	uint32_t n = 7;
	int64_t value = 0;

	REQUIRE_OK(row_parse((struct str){ bytes, sizeof(bytes) }, 5, &v, &err), &err);
	CHECK_INT(v.n, 0);
	CHECK_INT(row_values(&v, 0, &value, &err), ERR_CORRUPT);
	CHECK_INT(row_cells(&v, 0, NULL, NULL, &value, &n, &err), ERR_CORRUPT);
	CHECK(!row_small_values(&v, 0));
}

TEST(a_total_over_64_bits_is_refused)
{
	const uint32_t ids[2] = { 1, 2 };
	const int64_t v[4] = { 1, 1, INT64_MAX, 1 };
	struct buf b = { 0 };
	struct err err;

	CHECK_ERR(row_encode(
				  &(struct row){ .n = 2, .columns_n = 2, .stacks = ids, .values = v }, 5, &b, &err),
		&err, ERR_LIMIT, "total of column 1 exceeds 64 bits");
	buf_release(&b);
}

/* Nothing that row_encode did not make decodes to something, or crashes. */
TEST(cut_and_changed_rows)
{
	const struct row row = { .header = 3,
		.interval_ns = 1,
		.n = 40,
		.columns_n = COLUMNS,
		.stacks = stacks,
		.label_sets = sets,
		.values = values };
	struct row_view v;
	struct buf b = { 0 };
	struct err err;
	uint32_t n;
	char *copy;

	fill(40, true);
	REQUIRE_OK(row_encode(&row, 5, &b, &err), &err);
	for (size_t len = 0; len < b.len; len++) {
		/* Its own memory, so that a read past the end is seen. */
		copy = malloc(len + 1);
		memcpy(copy, b.ptr, len);
		CHECK_INT(row_parse((struct str){ copy, len }, 5, &v, &err), ERR_CORRUPT);
		free(copy);
	}
	for (int i = 0; i < 20000; i++) {
		copy = malloc(b.len);
		memcpy(copy, b.ptr, b.len);
		copy[draw() % b.len] ^= (char)(1 << draw() % 8);
		if (!row_parse((struct str){ copy, b.len }, 5, &v, &err) && v.n <= N_MAX) {
			if (row_ids(&v, got_stacks, got_sets, &err))
				CHECK_INT(err.code, ERR_CORRUPT);
			for (uint32_t c = 0; c < v.columns_n; c++)
				if (row_values(&v, c, got, &err)) {
					CHECK_INT(err.code, ERR_CORRUPT);
					CHECK(!row_small_values(&v, c));
					CHECK_INT(row_cells(&v, c, got_stacks, got_sets, got, &n, &err), ERR_CORRUPT);
				} else {
					check_small(&v, c, got);
					check_cells(&v, c, got);
				}
		}
		free(copy);
	}
	CHECK_ERR(row_parse(STR("\x02\0"), 5, &v, &err), &err, ERR_CORRUPT, "row: unknown version");
	CHECK_ERR(row_parse(STR(""), 5, &v, &err), &err, ERR_CORRUPT, "row: unknown version");
	buf_release(&b);
}

TEST(small_rows_are_small)
{
	static uint32_t ids[500];
	static int64_t v[1000];
	struct buf b = { 0 };
	struct err err;

	for (uint32_t i = 0; i < 500; i++) {
		ids[i] = i * 100;
		v[i] = 1 + i % 3;
		v[500 + i] = v[i] * 10000000;
	}
	REQUIRE_OK(row_encode(&(struct row){ .n = 500, .columns_n = 2, .stacks = ids, .values = v }, 5,
				   &b, &err),
		&err);
	/* A byte of gap and one of value: nanoseconds are counts once the period is taken out. */
	CHECK_INT(b.len, 1030);
	buf_release(&b);
}

/* Nodes 0 to `nodes`, label sets 0 to `label_sets`, a header without types. */
static struct partition *open_partition(uint32_t nodes, uint32_t label_sets, uint32_t *header)
{
	const struct symbol_limits limits = { 1000, 1000, 1000, 1 << 20 };
	const struct sym_header no_types = { 0 };
	const struct sym_location place = { .mapping = SYM_NONE };
	struct partition *p = NULL;
	uint32_t location = 0, id = 0;
	bool overflow = false;
	struct err err;

	CHECK_OK(partition_open(STR("job"), 0, 0, &limits, &p, &err), &err);
	CHECK_OK(sym_intern_header(p, &no_types, header, &err), &err);
	CHECK_OK(sym_intern_location(p, &place, &location, &err), &err);
	for (uint32_t i = 0; i < nodes; i++)
		CHECK_OK(sym_intern_node(p, i, location, &id, &err), &err);
	for (uint32_t i = 0; i < label_sets; i++) {
		const struct sym_label label = { .num = i + 1 };

		CHECK_OK(
			sym_intern_label_set(p, &(struct sym_label_set){ &label, 1 }, &id, &overflow, &err),
			&err);
	}
	CHECK_INT(sym_nodes_n(p), nodes + 1);
	CHECK_INT(sym_label_sets_n(p), label_sets + 1);
	return p;
}

TEST(ids_that_are_not_there)
{
	enum { NODES = 20, SETS = 9, MOST = 14 };
	static const uint32_t beyond[] = { SETS + 1, 16, 1u << 31, (1u << 31) + 3, UINT32_MAX };
	uint32_t nodes[MOST], of[MOST], header = 0;
	struct partition *p = open_partition(NODES, SETS, &header);
	struct err err;

	for (uint32_t n = 1; n <= MOST; n++) {
		const struct row_view v = { .header = header, .n = n };

		for (uint32_t i = 0; i < n; i++) {
			nodes[i] = NODES + 1 + i - n;
			of[i] = i % 3 ? SETS : i % (SETS + 1);
		}
		CHECK_OK(row_check_ids(p, &v, nodes, of, &err), &err);
		CHECK_OK(row_check_ids(p, &v, nodes, NULL, &err), &err);
		for (uint32_t i = 0; i < n; i++)
			for (size_t k = 0; k < sizeof(beyond) / sizeof(beyond[0]); k++) {
				uint32_t was = of[i];

				of[i] = beyond[k];
				CHECK_ERR(row_check_ids(p, &v, nodes, of, &err), &err, ERR_CORRUPT,
					"a row of job \"job\" uses symbols that are missing");
				of[i] = was;
			}
		nodes[n - 1] = NODES + 1;
		CHECK_INT(row_check_ids(p, &v, nodes, of, &err), ERR_CORRUPT);
		CHECK_INT(row_check_ids(p, &v, nodes, NULL, &err), ERR_CORRUPT);
	}
	CHECK_INT(row_check_ids(p, &(struct row_view){ .header = header + 1 }, NULL, NULL, &err),
		ERR_CORRUPT);
	CHECK_INT(
		row_check_ids(p, &(struct row_view){ .header = header, .columns_n = 1 }, NULL, NULL, &err),
		ERR_CORRUPT);
	partition_close(p);
}
