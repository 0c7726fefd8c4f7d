#include "base/map.h"
#include "tests/check.h"
#include "tsdb/rollup_internal.h"

/*
 * Rollups against rows added one by one. The partition's tree has recursion, inlining, frames
 * without names and names of several functions; rows are of several lists of types.
 */
static uint64_t state = 1;

static uint64_t draw(uint64_t below)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	return hash_u64(state) % below;
}

#define NODES 300u
#define SETS 4u
#define HEADERS 5u
#define ROWS 40u
#define ENTRIES 60u
#define TYPES 6u
#define HOUR INT64_C(3600000000000)

struct world {
	struct partition *p;
	uint32_t headers[HEADERS];
	uint32_t types_n[HEADERS], type[HEADERS][4]; /* of each column: which of TYPES */
};

static const struct {
	const char *type, *unit;
	enum value_kind kind;
} types[TYPES] = {
	{ "samples", "count", KIND_DELTA },
	{ "cpu", "nanoseconds", KIND_DELTA },
	{ "inuse_objects", "count", KIND_GAUGE },
	{ "inuse_space", "bytes", KIND_GAUGE },
	{ "alloc_space", "bytes", KIND_DELTA },
	{ "samples", "count", KIND_GAUGE },
};

static uint32_t string_id(struct partition *p, const char *s)
{
	uint32_t id = 0;

	CHECK(!sym_intern_string(p, str_of(s), &id, NULL));
	return id;
}

static uint32_t header_of(struct world *w, uint32_t i, const char *drop)
{
	static const uint32_t lists[HEADERS][5] = { { 2, 0, 1 }, { 2, 0, 1 }, { 3, 2, 3, 4 },
		{ 4, 1, 0, 1, 5 }, { 2, 3, 0 } };
	struct sym_type v[4];
	uint32_t id = 0, comment = string_id(w->p, i ? "b" : "a");

	w->types_n[i] = lists[i][0];
	for (uint32_t c = 0; c < w->types_n[i]; c++) {
		w->type[i][c] = lists[i][c + 1];
		v[c] = (struct sym_type){ string_id(w->p, types[lists[i][c + 1]].type),
			string_id(w->p, types[lists[i][c + 1]].unit),
			(uint8_t)types[lists[i][c + 1]].kind, false };
	}
	CHECK(!sym_intern_header(w->p,
		&(struct sym_header){ .types = v,
			.types_n = w->types_n[i],
			.drop_frames = string_id(w->p, drop),
			.comments = &comment,
			.comments_n = 1 },
		&id, NULL));
	return id;
}

static void add_tree(struct world *w, const char *const *names, uint32_t names_n,
	const char *const *files, uint32_t files_n)
{
	uint32_t functions[24], mappings[8], locations[60], node;
	struct sym_line lines[3];

	for (uint32_t i = 0; i < 24; i++)
		CHECK(!sym_intern_function(w->p,
			&(struct sym_function){ .name = string_id(w->p, names[draw(names_n)]),
				.start_line = i },
			&functions[i], NULL));
	for (uint32_t i = 0; i < files_n; i++)
		CHECK(!sym_intern_mapping(w->p,
			&(struct sym_mapping){ .size = i + 1,
				.filename = string_id(w->p, files[i]) },
			&mappings[i], NULL));
	for (uint32_t i = 0; i < 60; i++) {
		uint32_t n = (uint32_t)draw(4), mapping = (uint32_t)draw(files_n + 1);

		for (uint32_t k = 0; k < n; k++)
			lines[k] = (struct sym_line){ functions[draw(24)], (int64_t)draw(9), 0 };
		CHECK(!sym_intern_location(w->p,
			&(struct sym_location){ .address = i,
				.mapping = mapping == files_n ? SYM_NONE : mappings[mapping],
				.lines_n = n,
				.lines = lines },
			&locations[i], NULL));
	}
	while ((node = sym_nodes_n(w->p)) < NODES)
		CHECK(!sym_intern_node(w->p,
			draw(3) ? (uint32_t)draw(node ? node : 1) : node ? node - 1 : 0,
			locations[draw(60)], &node, NULL));
	for (uint32_t i = 1; i < SETS; i++) {
		struct sym_label label = { .key = string_id(w->p, "k"), .num = i };
		bool overflow;

		CHECK(!sym_intern_label_set(
			w->p, &(struct sym_label_set){ &label, 1 }, &node, &overflow, NULL));
	}
}

static const char *const plain_names[] = { "a", "b", "c", "d", "e", "f", "", "[g]" };
static const char *const plain_files[] = { "/bin/a", "/lib/b.so", "", "/" };

static bool world_open(struct world *w, const char *const *names, uint32_t names_n,
	const char *const *files, uint32_t files_n, const char *drop)
{
	const struct symbol_limits limits = { 100000, 100000, 100000, 1 << 26 };
	struct err err;

	*w = (struct world){ 0 };
	if (partition_open(STR("job"), 0, 0, &limits, &w->p, &err))
		return false;
	add_tree(w, names, names_n, files, files_n);
	for (uint32_t i = 0; i < HEADERS; i++)
		w->headers[i] = header_of(w, i, i == HEADERS - 1 ? drop : "");
	return true;
}

static bool world_plain(struct world *w)
{
	return world_open(w, plain_names, 8, plain_files, 4, "");
}

/* ---- rows and what they add up to ---- */

struct one_row {
	struct row row;
	int64_t ts_ns;
	uint32_t kind; /* index of its header */
	uint32_t stacks[ENTRIES], sets[ENTRIES];
	int64_t values[ENTRIES * 4];
};

static int64_t small_value(uint32_t type)
{
	if (type == 4 && draw(4))
		return 0;
	return type == 1 ? (int64_t)draw(5) * 10000000 : (int64_t)draw(1000) - (draw(9) ? 0 : 1500);
}

static void draw_row(const struct world *w, struct one_row *r, uint32_t kinds, bool labels,
	int64_t (*value)(uint32_t type))
{
	uint32_t n = (uint32_t)draw(ENTRIES), key = 0;

	r->kind = (uint32_t)draw(kinds);
	r->ts_ns = (int64_t)draw(20) * HOUR / 20 + HOUR;
	for (uint32_t i = 0; i < n; i++) {
		key += (uint32_t)draw(NODES * SETS / ENTRIES);
		r->stacks[i] = key / SETS;
		r->sets[i] = labels ? key % SETS : 0;
	}
	for (uint32_t c = 0; c < w->types_n[r->kind]; c++)
		for (uint32_t i = 0; i < n; i++)
			r->values[c * n + i] = value(w->type[r->kind][c]);
	r->row = (struct row){ .header = w->headers[r->kind],
		.interval_ns = (int64_t)(1 + draw(3)) * 5000000000,
		.time_nanos = draw(3) ? r->ts_ns - (int64_t)draw(1000000) : 0,
		.duration_nanos = (int64_t)draw(9000000000),
		.period = (int64_t)draw(3) * 100,
		.n = n,
		.columns_n = w->types_n[r->kind],
		.stacks = r->stacks,
		.label_sets = labels ? r->sets : NULL,
		.values = r->values };
}

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

static void model_column(struct model *m, const struct one_row *r, uint32_t type, int64_t total,
	int64_t weight)
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
static uint32_t type_of(
	const struct world *w, const struct model *m, const struct rollup_column *c)
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
			CHECK_OK(rollup_builder_row(b, r.ts_ns, &r.row, &err), &err);
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
static void check_joins(
	struct rollup_builder *b, struct str want, struct str want_functions, uint32_t rows_n)
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
				CHECK_OK(rollup_builder_row(b, rows[i].ts_ns, &rows[i].row, &err),
					&err);
		CHECK_OK(rollup_builder_encode(b, &parts[k], &err), &err);
	}
	rollup_builder_clear(b);
	for (uint32_t i = 0; i < n; i++) {
		/* Backwards or forwards from any of them. */
		CHECK_OK(rollup_parse(v,
				 buf_str(&parts[(first + (first % 2 ? i : n - i)) % n]), &err),
			&err);
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
			CHECK_OK(rollup_builder_row(b, rows[i].ts_ns, &rows[i].row, &err), &err);
		}
		CHECK_OK(rollup_builder_encode(b, &bytes, &err), &err);
		CHECK_OK(rollup_builder_encode_functions(b, &functions, &any, &err), &err);
		check_joins(b, buf_str(&bytes), buf_str(&functions), n);
	}
	buf_release(&bytes);
	buf_release(&functions);
	rollup_builder_close(b);
	partition_close(w.p);
}
