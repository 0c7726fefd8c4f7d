#include "tests/tsdb/rollup/rollup_world.h"
#include "tsdb/rollup/cascade.h"

/* Rollups that count missed scrapes: a gauge's row weighs twice its interval after one of them. */

#define SECOND INT64_C(1000000000)
#define VERSION_AT 0 /* in a record */

/* Rows [from, to) in chunks as long as may be; those of one chunk have one interval and as many
 * columns. */
static void add_run(const struct world *w, struct rollup_builder *b, const struct one_row *rows,
	uint32_t from, uint32_t to, bool missed)
{
	struct chunk *c = chunk_open();
	struct row run[ROWS * 4];
	int64_t ts[ROWS * 4];
	enum value_kind kinds[4];
	struct buf bytes = { 0 };
	struct err err;

	REQUIRE(c && to - from <= ROWS * 4);
	for (uint32_t at = from, n; at < to; at += n) {
		for (n = 0; at + n < to && rows[at + n].row.columns_n == rows[at].row.columns_n &&
			 rows[at + n].row.interval_ns == rows[at].row.interval_ns;
			 n++) {
			run[n] = rows[at + n].row;
			run[n].stacks = rows[at + n].stacks;
			run[n].label_sets = run[n].label_sets ? rows[at + n].sets : NULL;
			run[n].values = rows[at + n].values;
			ts[n] = rows[at + n].ts_ns;
		}
		for (uint32_t i = 0; i < run[0].columns_n; i++)
			kinds[i] = (enum value_kind)sym_header(w->p, run[0].header)->types[i].kind;
		buf_clear(&bytes);
		REQUIRE_OK(chunk_encode(ts, run, n, kinds, &bytes, &err), &err);
		REQUIRE_OK(chunk_parse(c, buf_str(&bytes), &err), &err);
		CHECK_OK(rollup_builder_add_chunk(b, c, 0, n, missed, &err), &err);
	}
	buf_release(&bytes);
	chunk_close(c);
}

static void encode(struct rollup_builder *b, struct buf *out)
{
	struct err err;

	buf_clear(out);
	CHECK_OK(rollup_builder_encode(b, out, &err), &err);
}

static void join(struct rollup_builder *b, struct rollup_view *v, const struct buf *part)
{
	struct err err;

	CHECK_OK(rollup_parse(v, buf_str(part), &err), &err);
	CHECK_OK(rollup_builder_add(b, v, &err), &err);
}

static unsigned version_of(const struct buf *record)
{
	return record->len ? (unsigned char)record->ptr[VERSION_AT] : 0;
}

/* ---- one level ---- */

/* One stack of 1 in each column. */
static void make_row(
	const struct world *w, struct one_row *r, uint32_t kind, int64_t ts_ns, int64_t interval_ns)
{
	memset(r, 0, sizeof(*r));
	r->kind = kind;
	r->ts_ns = ts_ns;
	for (uint32_t c = 0; c < w->types_n[kind]; c++)
		r->values[c] = 1;
	r->stacks[0] = 1;
	r->row = (struct row){ .header = w->headers[kind],
		.interval_ns = interval_ns,
		.n = 1,
		.columns_n = w->types_n[kind] };
}

/* The column of a type that is a gauge, or NULL. */
static const struct rollup_column *gauge_of(
	const struct world *w, const struct rollup_view *v, uint32_t type)
{
	for (uint32_t i = 0; i < rollup_columns_n(v); i++) {
		const struct rollup_column *c = rollup_column(v, i);

		for (uint32_t k = 0; k < HEADERS; k++)
			if (c->gauge && w->headers[k] == c->header && w->type[k][c->column] == type)
				return c;
	}
	return NULL;
}

#define DELTAS 0 /* kinds of the world: no gauge */
#define OBJECTS_AND_SPACE 2
#define SPACE 4
#define INUSE_SPACE 3 /* type */
#define SHIFT (HOUR * 4 + 60 * SECOND) /* of the cases' times */

static const struct {
	const char *name;
	uint32_t n, kinds[5];
	int64_t ms[5], interval_ms[5]; /* times behind a whole hour and a minute */
	int64_t want_ms; /* elapsed of inuse_space */
} cases[] = {
	{ "none is missing", 3, { SPACE, SPACE, SPACE }, { 10000, 20000, 30000 },
		{ 10000, 10000, 10000 }, 30000 },
	{ "one is", 3, { SPACE, SPACE, SPACE }, { 10000, 30000, 40000 }, { 10000, 10000, 10000 },
		40000 },
	{ "two are", 3, { SPACE, SPACE, SPACE }, { 10000, 40000, 50000 }, { 10000, 10000, 10000 },
		30000 },
	{ "late by a half", 2, { SPACE, SPACE }, { 10000, 25000 }, { 10000, 10000 }, 20000 },
	{ "and a little", 2, { SPACE, SPACE }, { 10000, 25001 }, { 10000, 10000 }, 30000 },
	{ "late by 1.1", 2, { SPACE, SPACE }, { 10000, 31000 }, { 10000, 10000 }, 30000 },
	{ "and a little more", 2, { SPACE, SPACE }, { 10000, 31001 }, { 10000, 10000 }, 20000 },
	{ "the hour's first", 2, { SPACE, SPACE }, { 3535000, 3555000 }, { 10000, 10000 }, 20000 },
	{ "the hour's last", 2, { SPACE, SPACE }, { 3520000, 3540000 }, { 10000, 10000 }, 30000 },
	{ "its own interval", 3, { SPACE, SPACE, SPACE }, { 10000, 30000, 50000 },
		{ 10000, 20000, 10000 }, 50000 },
	{ "of other types", 3, { OBJECTS_AND_SPACE, SPACE, OBJECTS_AND_SPACE }, { 10000, 30000, 50000 },
		{ 10000, 10000, 10000 }, 50000 },
	{ "behind one without gauges", 3, { SPACE, DELTAS, SPACE }, { 10000, 20000, 30000 },
		{ 10000, 10000, 10000 }, 20000 },
	{ "behind a missing one without", 3, { SPACE, DELTAS, SPACE }, { 10000, 20000, 40000 },
		{ 10000, 10000, 10000 }, 30000 },
	{ "few came in time", 5, { SPACE, SPACE, SPACE, SPACE, SPACE },
		{ 10000, 30000, 50000, 70000, 90000 }, { 10000, 10000, 10000, 10000, 10000 }, 70000 },
	{ "as long as an hour", 2, { SPACE, SPACE }, { 1000, 3540000 }, { 3600000, 3600000 }, 7200000 },
};

/* Three rows of the same kind come in time before those of the case, or none in its hour. */
#define BEFORE 3u

/* Whatever chunks the rows are in. */
static void check_case(struct world *w, struct rollup_builder *b, struct rollup_view *v, size_t i)
{
	static struct one_row rows[5 + BEFORE];
	const int64_t first_ns = cases[i].interval_ms[0] * 1000000, before_ns = BEFORE * first_ns;
	const struct rollup_column *c;
	struct buf all = { 0 }, cut = { 0 };
	uint32_t n = cases[i].n + BEFORE;
	struct err err;
	int64_t plain = before_ns;

	for (uint32_t k = 0; k < BEFORE; k++)
		make_row(w, &rows[k], cases[i].kinds[0],
			HOUR + SHIFT + cases[i].ms[0] * 1000000 - (BEFORE - k) * first_ns, first_ns);
	for (uint32_t k = 0; k < cases[i].n; k++) {
		make_row(w, &rows[BEFORE + k], cases[i].kinds[k], HOUR + SHIFT + cases[i].ms[k] * 1000000,
			cases[i].interval_ms[k] * 1000000);
		plain += cases[i].kinds[k] == DELTAS ? 0 : cases[i].interval_ms[k] * 1000000;
	}
	for (int missed = 0; missed < 2; missed++) {
		rollup_builder_clear(b);
		add_run(w, b, rows, 0, n, missed);
		encode(b, &all);
		CHECK_INT(version_of(&all), missed ? 3 : 2);
		REQUIRE_OK(rollup_parse(v, buf_str(&all), &err), &err);
		CHECK_INT(rollup_counts_missed(v), missed);
		REQUIRE((c = gauge_of(w, v, INUSE_SPACE)) != NULL);
		if (c->elapsed_ns != (missed ? cases[i].want_ms * 1000000 + before_ns : plain) ||
			c->total != c->elapsed_ns)
			CHECK_FAIL("%s: counts %lld ms", cases[i].name, (long long)(c->elapsed_ns / 1000000));
		for (uint32_t at = 0; at <= n; at++) {
			rollup_builder_clear(b);
			add_run(w, b, rows, 0, at, missed);
			add_run(w, b, rows, at, n, missed);
			encode(b, &cut);
			CHECK(str_eq(buf_str(&cut), buf_str(&all)));
		}
	}
	buf_release(&all);
	buf_release(&cut);
}

TEST(a_row_after_a_missed_scrape_weighs_twice)
{
	struct rollup_view *v = rollup_view_open();
	struct rollup_builder *b;
	struct world w;
	struct err err;

	REQUIRE(v && world_plain(&w));
	REQUIRE_OK(rollup_builder_open(w.p, &b, &err), &err);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_case(&w, b, v, i);
	rollup_builder_close(b);
	rollup_view_close(v);
	partition_close(w.p);
}

/* Another series' rows, behind clear, are not the rows before. Types that are deltas have nothing
 * to do with it. */
TEST(missed_scrapes_of_a_series_and_of_deltas)
{
	static struct one_row rows[2];
	struct buf one = { 0 }, other = { 0 };
	struct rollup_builder *b;
	struct world w;
	struct err err;

	REQUIRE(world_plain(&w));
	REQUIRE_OK(rollup_builder_open(w.p, &b, &err), &err);
	make_row(&w, &rows[0], SPACE, HOUR + 10 * SECOND, 10 * SECOND);
	make_row(&w, &rows[1], SPACE, HOUR + 30 * SECOND, 10 * SECOND);
	add_run(&w, b, rows, 1, 2, true);
	encode(b, &one);
	rollup_builder_clear(b);
	add_run(&w, b, rows, 0, 1, true);
	rollup_builder_clear(b);
	add_run(&w, b, rows, 1, 2, true);
	encode(b, &other);
	CHECK(str_eq(buf_str(&one), buf_str(&other)));

	make_row(&w, &rows[0], DELTAS, HOUR + 10 * SECOND, 10 * SECOND);
	make_row(&w, &rows[1], DELTAS, HOUR + 30 * SECOND, 10 * SECOND);
	for (int missed = 0; missed < 2; missed++) {
		rollup_builder_clear(b);
		add_run(&w, b, rows, 0, 2, missed);
		encode(b, missed ? &other : &one);
	}
	CHECK_INT(version_of(&one), 2);
	CHECK(str_eq(buf_str(&one), buf_str(&other)));
	buf_release(&one);
	buf_release(&other);
	rollup_builder_close(b);
	partition_close(w.p);
}

/* ---- many ---- */

#define MANY (ROWS * 4)
static struct one_row many[MANY];

/* A series over a few hours, of several types, intervals and missed scrapes. */
static void draw_series(const struct world *w, bool labels)
{
	int64_t ts = HOUR + (int64_t)draw(40) * SECOND, interval = 30 * SECOND;

	for (uint32_t i = 0; i < MANY; i++) {
		struct one_row *r = &many[i];

		draw_row(w, r, HEADERS, labels, small_value);
		if (draw(20) == 0)
			interval = (int64_t)(1 + draw(3)) * 30 * SECOND;
		ts += interval * (int64_t)(draw(3) ? 1 : 1 + draw(3)) + (int64_t)draw(2 * SECOND) - SECOND;
		r->ts_ns = draw(25) ? ts : (ts - 1) / HOUR * HOUR + HOUR;
		ts = r->ts_ns;
		r->row.interval_ns = interval;
		r->row.time_nanos = r->ts_ns;
	}
}

/* By the rule's words. */
static int64_t weight_of(uint32_t i)
{
	int64_t interval = many[i].row.interval_ns, gap = 0;
	uint32_t gaps = 0, in_time = 0;

	for (uint32_t k = i; k > 0 && (many[k - 1].ts_ns - 1) / HOUR == (many[i].ts_ns - 1) / HOUR;
		 k--) {
		gap = many[k].ts_ns - many[k - 1].ts_ns;
		gaps += k < i;
		in_time += k < i && 2 * gap <= 3 * many[k].row.interval_ns;
	}
	gap = i ? many[i].ts_ns - many[i - 1].ts_ns : 0;
	return gaps >= 2 && 4 * in_time >= 3 * gaps && 2 * gap > 3 * interval &&
			10 * gap <= 21 * interval ?
		2 * interval :
		interval;
}

static void check_type(
	const struct world *w, struct rollup_view *v, uint32_t column, uint32_t type, bool missed)
{
	const struct rollup_column *col = rollup_column(v, column);
	int128 total = 0, elapsed = 0;
	struct accum *want, *got;
	struct accum_cell x, y;
	size_t at = 0, other = 0;
	struct err err;
	bool more = true;

	REQUIRE_OK(accum_open(w->p, ACCUM_WEIGHTED | ACCUM_BY_LABELS, &want, &err), &err);
	REQUIRE_OK(accum_open(w->p, ACCUM_WEIGHTED | ACCUM_BY_LABELS, &got, &err), &err);
	for (uint32_t i = 0; i < MANY; i++) {
		const struct one_row *r = &many[i];
		int64_t span = missed && col->gauge ? weight_of(i) : r->row.interval_ns;
		uint32_t c = 0;

		while (c < r->row.columns_n && w->type[r->kind][c] != type)
			c++;
		if (c == r->row.columns_n)
			continue;
		elapsed += span;
		for (uint32_t k = 0; k < r->row.n; k++)
			total += (int128)r->values[c * r->row.n + k] * (col->gauge ? span : 1);
		CHECK_OK(accum_add(want, r->stacks, r->sets, r->values + (size_t)c * r->row.n, r->row.n,
					 col->gauge ? span : 1, &err),
			&err);
	}
	CHECK(col->elapsed_ns == elapsed);
	CHECK(col->total == total);
	CHECK_OK(rollup_add(v, column, got, &err), &err);
	CHECK_OK(accum_seal(want, &err), &err);
	CHECK_OK(accum_seal(got, &err), &err);
	while (more) {
		more = accum_next(want, &at, &x);
		REQUIRE(more == accum_next(got, &other, &y));
		REQUIRE(!more || (x.stack == y.stack && x.label_set == y.label_set && x.value == y.value));
	}
	accum_close(want);
	accum_close(got);
}

static void check_sums(
	const struct world *w, struct rollup_view *v, const struct buf *record, bool missed)
{
	struct err err;

	REQUIRE_OK(rollup_parse(v, buf_str(record), &err), &err);
	for (uint32_t i = 0; i < rollup_columns_n(v); i++) {
		const struct rollup_column *c = rollup_column(v, i);

		for (uint32_t k = 0; k < HEADERS; k++)
			if (w->headers[k] == c->header)
				check_type(w, v, i, w->type[k][c->column], missed);
	}
}

/* Rows of each hour, or of some hours, a rollup; joined in any order. */
static void check_parts(const struct world *w, struct rollup_builder *b, struct rollup_view *v,
	const struct buf *want, const struct buf *want_functions)
{
	struct buf parts[MANY] = { 0 }, bytes = { 0 };
	uint32_t n = 0, first = 0;
	struct err err;
	bool any;

	for (uint32_t i = 1; i <= MANY; i++) {
		if (i < MANY &&
			((many[i].ts_ns - 1) / HOUR == (many[i - 1].ts_ns - 1) / HOUR || draw(4) == 0))
			continue;
		rollup_builder_clear(b);
		add_run(w, b, many, first, i, true);
		encode(b, &parts[n++]);
		first = i;
	}
	CHECK(n > 1);
	rollup_builder_clear(b);
	for (uint32_t i = 0, from = (uint32_t)draw(n); i < n; i++)
		join(b, v, &parts[(from + (from % 2 ? i : n - i)) % n]);
	encode(b, &bytes);
	CHECK(str_eq(buf_str(&bytes), buf_str(want)));
	buf_clear(&bytes);
	CHECK_OK(rollup_builder_encode_functions(b, &bytes, &any, &err), &err);
	CHECK(str_eq(buf_str(&bytes), buf_str(want_functions)));
	for (uint32_t i = 0; i < n; i++)
		buf_release(&parts[i]);
	buf_release(&bytes);
}

TEST(rollups_of_whole_hours_add_up)
{
	struct buf bytes = { 0 }, functions = { 0 };
	struct rollup_view *v = rollup_view_open();
	struct rollup_builder *b;
	struct world w;
	struct err err;
	bool any;

	REQUIRE(v && world_plain(&w));
	REQUIRE_OK(rollup_builder_open(w.p, &b, &err), &err);
	for (uint32_t round = 0; round < 20; round++) {
		draw_series(&w, round % 2);
		for (int missed = 0; missed < 2; missed++) {
			rollup_builder_clear(b);
			add_run(&w, b, many, 0, MANY, missed);
			encode(b, &bytes);
			check_sums(&w, v, &bytes, missed);
		}
		buf_clear(&functions);
		CHECK_OK(rollup_builder_encode_functions(b, &functions, &any, &err), &err);
		check_parts(&w, b, v, &bytes, &functions);
	}
	buf_release(&bytes);
	buf_release(&functions);
	rollup_builder_close(b);
	rollup_view_close(v);
	partition_close(w.p);
}

#define EACH 4u /* rows; before the last of them one is missing */

/* One that does not count them, of older rows, and one that does: the sum says that it does. */
TEST(rollups_of_both_kinds_join)
{
	static struct one_row rows[2 * EACH];
	struct buf parts[2] = { { 0 } }, bytes[2] = { { 0 } };
	struct rollup_view *v = rollup_view_open();
	const struct rollup_column *c;
	struct rollup_builder *b;
	struct world w;
	struct err err;

	REQUIRE(v && world_plain(&w));
	REQUIRE_OK(rollup_builder_open(w.p, &b, &err), &err);
	for (uint32_t i = 0; i < 2 * EACH; i++)
		make_row(&w, &rows[i], SPACE,
			(1 + i / EACH) * HOUR + (10 + i % EACH * 10 + (i % EACH == EACH - 1) * 10) * SECOND,
			10 * SECOND);
	for (uint32_t k = 0; k < 2; k++) {
		rollup_builder_clear(b);
		add_run(&w, b, rows, EACH * k, EACH * k + EACH, k);
		encode(b, &parts[k]);
	}
	for (uint32_t k = 0; k < 2; k++) {
		rollup_builder_clear(b);
		join(b, v, &parts[k]);
		join(b, v, &parts[!k]);
		encode(b, &bytes[k]);
		CHECK_INT(version_of(&bytes[k]), 3);
	}
	CHECK(str_eq(buf_str(&bytes[0]), buf_str(&bytes[1])));
	REQUIRE_OK(rollup_parse(v, buf_str(&bytes[0]), &err), &err);
	REQUIRE((c = gauge_of(&w, v, INUSE_SPACE)) != NULL);
	CHECK(c->elapsed_ns == 90 * SECOND && c->total == 90 * SECOND);
	bytes[0].ptr[VERSION_AT] = 4;
	CHECK_ERR(
		rollup_parse(v, buf_str(&bytes[0]), &err), &err, ERR_CORRUPT, "rollup: unknown version");
	for (uint32_t k = 0; k < 2; k++) {
		buf_release(&parts[k]);
		buf_release(&bytes[k]);
	}
	rollup_builder_close(b);
	rollup_view_close(v);
	partition_close(w.p);
}
