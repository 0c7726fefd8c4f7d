#include "tests/tsdb/rollup/rollup_world.h"

/* Rollups against rows added one by one. */
struct model {
	struct rollup_column c[TYPES];
	int128 cells[TYPES][NODES][SETS];
	bool seen[HEADERS];
};

static int64_t row_total(const struct one_row *r, uint32_t c)
{
	int64_t total = 0;

	for (uint32_t i = 0; i < r->row.n; i++)
		total += r->values[c * r->row.n + i];
	return total;
}

static void model_column(
	struct model *m, const struct one_row *r, uint32_t type, int64_t total, int64_t weight)
{
	struct rollup_column *c = &m->c[type];
	int64_t ts = r->ts_ns;

	if (!c->rows || ts - r->row.interval_ns < c->start_ns)
		c->start_ns = ts - r->row.interval_ns;
	if (!c->rows || total < c->min.total || (total == c->min.total && ts < c->min.ts_ns))
		c->min = (struct rollup_point){ total, ts };
	if (!c->rows || total > c->max.total || (total == c->max.total && ts < c->max.ts_ns))
		c->max = (struct rollup_point){ total, ts };
	if (!c->rows || ts > c->end_ns || (ts == c->end_ns && total > c->last.total))
		c->last = (struct rollup_point){ total, ts };
	if (!c->rows || ts > c->end_ns)
		c->end_ns = ts;
	if (r->row.time_nanos && (!c->time_nanos || r->row.time_nanos < c->time_nanos))
		c->time_nanos = r->row.time_nanos;
	c->duration_ns += r->row.duration_nanos;
	c->elapsed_ns += r->row.interval_ns;
	c->profiled_ns += r->row.duration_nanos > 0 ? r->row.duration_nanos : r->row.interval_ns;
	if (r->row.period > c->period)
		c->period = r->row.period;
	c->rows++;
	c->samples += r->row.n;
	c->total += (int128)total * weight;
}

static void model_add(struct model *m, const struct world *w, const struct one_row *r)
{
	uint32_t n = r->row.n;

	m->seen[r->kind] = true;
	for (uint32_t c = 0; c < r->row.columns_n; c++) {
		uint32_t type = w->type[r->kind][c];
		int64_t weight = types[type].kind == KIND_GAUGE ? r->row.interval_ns : 1;

		if (r->kind == 3 && c == 2) /* a type again: the first counts */
			continue;
		model_column(m, r, type, row_total(r, c), weight);
		for (uint32_t i = 0; i < n; i++)
			m->cells[type][r->stacks[i]][r->row.label_sets ? r->sets[i] : 0] +=
				(int128)r->values[c * n + i] * weight;
	}
}

static bool has_type(const struct world *w, uint32_t kind, uint32_t type)
{
	for (uint32_t c = 0; c < w->types_n[kind]; c++)
		if (w->type[kind][c] == type)
			return true;
	return false;
}

/* The type of a column, by its header; TYPES where its headers are not those of the rows. */
static uint32_t type_of(const struct world *w, const struct model *m, const struct rollup_column *c)
{
	uint32_t type = TYPES, n = 0;

	for (uint32_t k = 0; k < HEADERS; k++)
		if (w->headers[k] == c->header)
			type = w->type[k][c->column];
	for (uint32_t k = 0; k < HEADERS; k++)
		if (m->seen[k] && has_type(w, k, type))
			if (n == c->headers_n || c->headers[n++] != w->headers[k])
				return TYPES;
	return n == c->headers_n && c->header == c->headers[0] ? type : TYPES;
}

static void check_point(struct rollup_point got, struct rollup_point want)
{
	CHECK_INT(got.total, want.total);
	CHECK_INT(got.ts_ns, want.ts_ns);
}

static void check_column(const struct rollup_column *got, const struct rollup_column *want)
{
	CHECK_INT(got->rows, want->rows);
	CHECK_INT(got->samples, want->samples);
	CHECK_INT(got->start_ns, want->start_ns);
	CHECK_INT(got->end_ns, want->end_ns);
	CHECK_INT(got->time_nanos, want->time_nanos);
	CHECK_INT(got->duration_ns, want->duration_ns);
	CHECK(got->elapsed_ns == want->elapsed_ns);
	CHECK(got->profiled_ns == want->profiled_ns);
	CHECK_INT(got->period, want->period);
	CHECK(got->total == want->total);
	check_point(got->min, want->min);
	check_point(got->max, want->max);
	check_point(got->last, want->last);
}

static void check_cells(const struct world *w, struct rollup_view *v, uint32_t column,
	const int128 cells[NODES][SETS], unsigned flags)
{
	struct accum_cell cell;
	struct accum *acc;
	struct err err;
	size_t at = 0;
	bool more;

	REQUIRE_OK(accum_open(w->p, flags, &acc, &err), &err);
	CHECK_OK(rollup_add(v, column, acc, &err), &err);
	CHECK_OK(accum_seal(acc, &err), &err);
	more = accum_next(acc, &at, &cell);
	for (uint32_t i = 0; i < NODES; i++)
		for (uint32_t k = 0; k < (flags & ACCUM_BY_LABELS ? SETS : 1); k++) {
			int128 want = cells[i][k];

			for (uint32_t s = 1; s < SETS && !(flags & ACCUM_BY_LABELS); s++)
				want += cells[i][s];
			if (!want)
				continue;
			if (!more || cell.stack != i || cell.label_set != k || cell.value != want)
				CHECK_FAIL("cell %u/%u of column %u differs", i, k, column);
			more = more && accum_next(acc, &at, &cell);
		}
	CHECK(!more);
	accum_close(acc);
}

static void check_rollup(const struct world *w, const struct model *m, struct str bytes)
{
	struct rollup_view *v = rollup_view_open();
	struct bits stacks = { 0 }, sets = { 0 };
	uint32_t columns = 0, most = 0;
	struct err err;

	CHECK_OK(rollup_parse(v, bytes, &err), &err);
	for (uint32_t i = 0; i < TYPES; i++)
		columns += m->c[i].rows != 0;
	CHECK_INT(rollup_columns_n(v), columns);
	CHECK_OK(rollup_mark_ids(v, &stacks, &sets, &err), &err);
	for (uint32_t i = 0; i < rollup_columns_n(v); i++) {
		const struct rollup_column *c = rollup_column(v, i);
		uint32_t type = type_of(w, m, c);

		if (type == TYPES) {
			CHECK_FAIL("headers of column %u differ", i);
			continue;
		}
		CHECK_INT(c->gauge, types[type].kind == KIND_GAUGE);
		check_column(c, &m->c[type]);
		check_cells(w, v, i, m->cells[type], ACCUM_WEIGHTED | ACCUM_BY_LABELS);
		check_cells(w, v, i, m->cells[type], ACCUM_WEIGHTED);
		if (!c->gauge)
			check_cells(w, v, i, m->cells[type], 0);
		for (uint32_t n = 0; n < NODES; n++)
			for (uint32_t s = 0; s < SETS; s++)
				if (m->cells[type][n][s]) {
					CHECK(bits_get(&stacks, n) && (!s || bits_get(&sets, s)));
					most = n > most ? n : most;
				}
	}
	CHECK_INT(rollup_stack_max(v, &err), most);
	bits_release(&stacks);
	bits_release(&sets);
	rollup_view_close(v);
}

TEST(a_rollup_says_what_its_rows_say)
{
	static struct one_row r;
	static struct model m;
	struct rollup_builder *b;
	struct buf bytes = { 0 };
	struct world w;
	struct err err;

	REQUIRE(world_plain(&w));
	REQUIRE_OK(rollup_builder_open(w.p, &b, &err), &err);
	for (uint32_t round = 0; round < 60; round++) {
		uint32_t kinds = 1 + round % HEADERS;

		memset(&m, 0, sizeof(m));
		rollup_builder_clear(b);
		CHECK(rollup_builder_empty(b));
		for (uint32_t i = 0; i <= round % ROWS; i++) {
			draw_row(&w, &r, kinds, round % 3 == 0, small_value);
			model_add(&m, &w, &r);
			CHECK_OK(add_row(&w, b, r.ts_ns, &r.row, &err), &err);
			CHECK(!rollup_builder_empty(b));
		}
		buf_clear(&bytes);
		CHECK_OK(rollup_builder_encode(b, &bytes, &err), &err);
		check_rollup(&w, &m, buf_str(&bytes));
	}
	buf_release(&bytes);
	rollup_builder_close(b);
	partition_close(w.p);
}

/* ---- joining ---- */

static struct one_row rows[ROWS];

/* Rows in random parts, each a rollup, these joined in any order: the bytes are the same. */
static void check_joins(const struct world *w, struct rollup_builder *b, struct str want,
	struct str want_functions, uint32_t rows_n)
{
	struct buf parts[8] = { 0 }, bytes = { 0 }, functions = { 0 };
	struct rollup_view *v = rollup_view_open();
	uint32_t part_of[ROWS], n = 1 + (uint32_t)draw(8), first = (uint32_t)draw(n);
	struct err err;
	bool any;

	for (uint32_t i = 0; i < rows_n; i++)
		part_of[i] = (uint32_t)draw(n);
	for (uint32_t k = 0; k < n; k++) {
		rollup_builder_clear(b);
		for (uint32_t i = rows_n; i-- > 0;)
			if (part_of[i] == k)
				CHECK_OK(add_row(w, b, rows[i].ts_ns, &rows[i].row, &err), &err);
		CHECK_OK(rollup_builder_encode(b, &parts[k], &err), &err);
	}
	rollup_builder_clear(b);
	for (uint32_t i = 0; i < n; i++) {
		/* Backwards or forwards from any of them. */
		CHECK_OK(
			rollup_parse(v, buf_str(&parts[(first + (first % 2 ? i : n - i)) % n]), &err), &err);
		CHECK_OK(rollup_builder_add(b, v, &err), &err);
	}
	CHECK_OK(rollup_builder_encode(b, &bytes, &err), &err);
	CHECK(str_eq(buf_str(&bytes), want));
	CHECK_OK(rollup_builder_encode_functions(b, &functions, &any, &err), &err);
	CHECK(str_eq(buf_str(&functions), want_functions));
	for (uint32_t k = 0; k < n; k++)
		buf_release(&parts[k]);
	buf_release(&bytes);
	buf_release(&functions);
	rollup_view_close(v);
}

TEST(rollups_join_in_any_order)
{
	struct buf bytes = { 0 }, functions = { 0 };
	struct rollup_builder *b;
	struct world w;
	struct err err;
	bool any;

	REQUIRE(world_plain(&w));
	REQUIRE_OK(rollup_builder_open(w.p, &b, &err), &err);
	for (uint32_t round = 0; round < 60; round++) {
		uint32_t n = 1 + (uint32_t)draw(ROWS);

		buf_clear(&bytes);
		buf_clear(&functions);
		rollup_builder_clear(b);
		for (uint32_t i = 0; i < n; i++) {
			draw_row(&w, &rows[i], 1 + round % HEADERS, round % 2, small_value);
			CHECK_OK(add_row(&w, b, rows[i].ts_ns, &rows[i].row, &err), &err);
		}
		CHECK_OK(rollup_builder_encode(b, &bytes, &err), &err);
		CHECK_OK(rollup_builder_encode_functions(b, &functions, &any, &err), &err);
		check_joins(&w, b, buf_str(&bytes), buf_str(&functions), n);
	}
	buf_release(&bytes);
	buf_release(&functions);
	rollup_builder_close(b);
	partition_close(w.p);
}

/* ---- large numbers ---- */

static int64_t huge_value(uint32_t type)
{
	static const int64_t values[] = { INT64_MAX, INT64_MIN, 1, -1, INT64_MAX / 3, 0 };

	(void)type;
	return values[draw(6)];
}

/* One entry a row, so that a row's total fits; a hundred of them do not. */
TEST(sums_beyond_64_bits)
{
	static struct one_row r;
	static struct model m;
	struct rollup_view *v = rollup_view_open();
	struct buf bytes = { 0 }, again = { 0 };
	struct rollup_builder *b;
	struct accum *acc;
	struct world w;
	struct err err;

	REQUIRE(world_plain(&w));
	REQUIRE_OK(rollup_builder_open(w.p, &b, &err), &err);
	for (uint32_t round = 0; round < 50; round++) {
		memset(&m, 0, sizeof(m));
		rollup_builder_clear(b);
		for (uint32_t i = 0; i < 100; i++) {
			draw_row(&w, &r, 3, true, huge_value);
			r.row.n = r.row.n ? 1 : 0;
			r.stacks[0] %= 7;
			r.row.interval_ns = draw(2) ? INT64_C(86400000000000) : 1 + (int64_t)draw(50);
			r.row.duration_nanos = (int64_t)draw(1000);
			model_add(&m, &w, &r);
			CHECK_OK(add_row(&w, b, r.ts_ns, &r.row, &err), &err);
		}
		buf_clear(&bytes);
		buf_clear(&again);
		CHECK_OK(rollup_builder_encode(b, &bytes, &err), &err);
		CHECK_OK(rollup_parse(v, buf_str(&bytes), &err), &err);
		for (uint32_t i = 0; i < rollup_columns_n(v); i++) {
			uint32_t type = type_of(&w, &m, rollup_column(v, i));

			REQUIRE(type < TYPES);
			check_column(rollup_column(v, i), &m.c[type]);
			check_cells(&w, v, i, m.cells[type], ACCUM_WEIGHTED | ACCUM_BY_LABELS);
			check_cells(&w, v, i, m.cells[type], ACCUM_WEIGHTED);
		}
		rollup_builder_clear(b);
		CHECK_OK(rollup_builder_add(b, v, &err), &err);
		CHECK_OK(rollup_builder_encode(b, &again, &err), &err);
		CHECK(str_eq(buf_str(&bytes), buf_str(&again)));
	}
	/* Twice the largest count of a delta type: no sum of 64 bits holds it. */
	rollup_builder_clear(b);
	for (uint32_t i = 0; i < 2; i++) {
		r.row = (struct row){
			.header = w.headers[0], .n = 1, .columns_n = 2, .stacks = r.stacks, .values = r.values
		};
		r.stacks[0] = 5;
		r.values[0] = INT64_MAX;
		r.values[1] = 1;
		CHECK_OK(add_row(&w, b, 10, &r.row, &err), &err);
	}
	buf_clear(&bytes);
	CHECK_OK(rollup_builder_encode(b, &bytes, &err), &err);
	CHECK_OK(rollup_parse(v, buf_str(&bytes), &err), &err);
	for (unsigned flags = 0; flags < 4; flags++) {
		REQUIRE_OK(accum_open(w.p, flags, &acc, &err), &err);
		CHECK_OK(rollup_add(v, 1, acc, &err), &err);
		if (flags & ACCUM_WEIGHTED)
			CHECK_OK(rollup_add(v, 0, acc, &err), &err);
		else
			CHECK_ERR(rollup_add(v, 0, acc, &err), &err, ERR_LIMIT, "sum exceeds 64 bits");
		accum_close(acc);
	}
	buf_release(&bytes);
	buf_release(&again);
	rollup_view_close(v);
	rollup_builder_close(b);
	partition_close(w.p);
}

TEST(a_sum_beyond_128_bits_is_refused)
{
	uint32_t stack = 3;
	int64_t values[3] = { INT64_MAX, 0, 0 };
	struct rollup_builder *b;
	struct world w;
	struct err err;

	REQUIRE(world_plain(&w));
	REQUIRE_OK(rollup_builder_open(w.p, &b, &err), &err);
	for (uint32_t i = 0; i < 3; i++) {
		const struct row row = { .header = w.headers[2],
			.interval_ns = INT64_MAX,
			.n = 1,
			.columns_n = 3,
			.stacks = &stack,
			.values = values };

		if (i < 2)
			CHECK_OK(add_row(&w, b, 1, &row, &err), &err);
		else
			CHECK_ERR(add_row(&w, b, 1, &row, &err), &err, ERR_LIMIT, "sum exceeds 128 bits");
	}
	rollup_builder_close(b);
	partition_close(w.p);
}

/* ---- chunks ---- */

/* The same rows by chunks, whole or in parts, and one by one. */
TEST(chunks_add_like_their_rows)
{
	static const enum value_kind kinds[HEADERS][4] = { { KIND_DELTA, KIND_DELTA },
		{ KIND_DELTA, KIND_DELTA }, { KIND_GAUGE, KIND_GAUGE, KIND_DELTA },
		{ KIND_DELTA, KIND_DELTA, KIND_DELTA, KIND_GAUGE }, { KIND_GAUGE, KIND_DELTA } };
	struct buf bytes = { 0 }, want = { 0 }, got = { 0 };
	struct chunk *c = chunk_open();
	struct rollup_builder *b;
	struct row in[ROWS];
	int64_t ts[ROWS];
	struct world w;
	struct err err;

	REQUIRE(world_plain(&w));
	REQUIRE_OK(rollup_builder_open(w.p, &b, &err), &err);
	for (uint32_t round = 0; round < 100; round++) {
		uint32_t n = 1 + (uint32_t)draw(ROWS), kind = round % HEADERS,
				 cut = draw(2) ? (uint32_t)draw(n + 1) : 0;

		rollup_builder_clear(b);
		for (uint32_t i = 0; i < n; i++) {
			do {
				draw_row(&w, &rows[i], HEADERS, round % 3 == 0, small_value);
			} while (rows[i].kind != kind && !(kind < 2 && rows[i].kind < 2));
			in[i] = rows[i].row;
			in[i].interval_ns = 15000000000;
			in[i].n %= round % 4 ? ENTRIES : 2;
			for (uint32_t k = 0; k < in[i].n * in[i].columns_n; k++)
				rows[i].values[k] = rows[i].values[k] ? rows[i].values[k] : 1;
			ts[i] = (i ? ts[i - 1] : HOUR) + 1 + (int64_t)draw(1000000);
			CHECK_OK(add_row(&w, b, ts[i], &in[i], &err), &err);
		}
		buf_clear(&want);
		CHECK_OK(rollup_builder_encode(b, &want, &err), &err);
		buf_clear(&bytes);
		REQUIRE_OK(chunk_encode(ts, in, n, kinds[kind], &bytes, &err), &err);
		REQUIRE_OK(chunk_parse(c, buf_str(&bytes), &err), &err);
		rollup_builder_clear(b);
		CHECK_OK(rollup_builder_add_chunk(b, c, cut, n, false, &err), &err);
		CHECK_OK(rollup_builder_add_chunk(b, c, 0, cut, false, &err), &err);
		buf_clear(&got);
		CHECK_OK(rollup_builder_encode(b, &got, &err), &err);
		CHECK(str_eq(buf_str(&want), buf_str(&got)));
	}
	buf_release(&bytes);
	buf_release(&want);
	buf_release(&got);
	chunk_close(c);
	rollup_builder_close(b);
	partition_close(w.p);
}

/* ---- damage ---- */

static void use_damaged(
	const struct world *w, struct rollup_builder *b, struct rollup_view *v, struct str bytes)
{
	struct accum *acc;
	struct err err;
	bool any;

	if (rollup_parse(v, bytes, &err)) {
		CHECK_INT(err.code, ERR_CORRUPT);
		return;
	}
	for (uint32_t i = 0; i < rollup_columns_n(v); i++) {
		REQUIRE_OK(accum_open(w->p, ACCUM_WEIGHTED | ACCUM_BY_LABELS, &acc, &err), &err);
		if (rollup_add(v, i, acc, &err))
			CHECK(err.code == ERR_CORRUPT || err.code == ERR_LIMIT);
		accum_close(acc);
	}
	rollup_builder_clear(b);
	if (rollup_builder_add(b, v, &err)) {
		CHECK(err.code == ERR_CORRUPT || err.code == ERR_LIMIT);
	} else {
		struct buf out = { 0 };

		CHECK_OK(rollup_builder_encode(b, &out, &err), &err);
		if (rollup_builder_encode_functions(b, &out, &any, &err))
			CHECK(err.code == ERR_LIMIT);
		buf_release(&out);
	}
}

TEST(cut_and_changed_rollups)
{
	static struct one_row r;
	struct rollup_view *v = rollup_view_open();
	struct buf bytes = { 0 };
	struct rollup_builder *b;
	struct world w;
	struct err err;
	char *copy;

	REQUIRE(world_plain(&w));
	REQUIRE_OK(rollup_builder_open(w.p, &b, &err), &err);
	for (uint32_t i = 0; i < 10; i++) {
		draw_row(&w, &r, 3, true, small_value);
		CHECK_OK(add_row(&w, b, r.ts_ns, &r.row, &err), &err);
	}
	b->missed = true; /* the longer head */
	REQUIRE_OK(rollup_builder_encode(b, &bytes, &err), &err);
	for (size_t len = 0; len < bytes.len; len++) {
		/* Its own memory, so that a read past the end is seen. */
		copy = malloc(len + 1);
		memcpy(copy, bytes.ptr, len);
		CHECK_INT(rollup_parse(v, (struct str){ copy, len }, &err), ERR_CORRUPT);
		free(copy);
	}
	for (int i = 0; i < (check_is_short() ? 3000 : 20000); i++) {
		copy = malloc(bytes.len);
		memcpy(copy, bytes.ptr, bytes.len);
		for (uint64_t k = draw(2); k < 2; k++)
			copy[draw(draw(2) ? bytes.len : 200) % bytes.len] ^= (char)(1 << draw(8));
		use_damaged(&w, b, v, (struct str){ copy, bytes.len });
		free(copy);
	}
	CHECK_ERR(rollup_parse(v, STR(""), &err), &err, ERR_CORRUPT, "rollup: unknown version");
	CHECK_ERR(
		rollup_parse(v, STR("\2\2"), &err), &err, ERR_CORRUPT, "rollup: not what was looked for");
	buf_release(&bytes);
	rollup_view_close(v);
	rollup_builder_close(b);
	partition_close(w.p);
}
