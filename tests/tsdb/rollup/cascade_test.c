#include "tsdb/rollup/cascade.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/check.h"
#include "tsdb/symbols/partition.h"

/*
 * Days are added up from hours: over midnights, with several rows in each hour, so that no record
 * is alone in its step and one that closes may close the next level's.
 */
#define DAYS 3
#define ROWS 4u

struct sums {
	struct rollup_view *view;
	int64_t level[ROLLUP_LEVELS][DAYS * 24]; /* totals by step */
	unsigned records[ROLLUP_LEVELS], functions, broken;
};

static enum err_code collect(
	void *ctx, bool functions, uint32_t level, int64_t step_ns, struct str bytes, struct err *err)
{
	struct sums *s = ctx;
	enum err_code rc;

	if (functions) {
		s->functions++;
		return ERR_OK;
	}
	if ((rc = rollup_parse(s->view, bytes, err))) {
		s->broken++;
		return rc;
	}
	s->records[level]++;
	s->level[level][step_ns / rollup_step_ns[level]] += (int64_t)rollup_column(s->view, 0)->total;
	return ERR_OK;
}

static struct partition *one_stack(uint32_t *node, uint32_t *header)
{
	const struct symbol_limits limits = { 1000, 1000, 1000, 1 << 20 };
	struct partition *p = NULL;
	uint32_t name = 0, unit = 0, function = 0, location = 0;
	struct sym_function f = { 0 };
	struct sym_line line = { 0 };
	struct sym_type type = { .kind = KIND_DELTA };

	CHECK(!partition_open(STR("job"), 0, 0, &limits, &p, NULL));
	CHECK(!sym_intern_string(p, STR("main"), &name, NULL));
	CHECK(!sym_intern_string(p, STR("count"), &unit, NULL));
	f.name = name;
	CHECK(!sym_intern_function(p, &f, &function, NULL));
	line.function = function;
	CHECK(!sym_intern_location(p,
		&(struct sym_location){ .mapping = SYM_NONE, .lines_n = 1, .lines = &line }, &location,
		NULL));
	CHECK(!sym_intern_node(p, 0, location, node, NULL));
	type.type = name;
	type.unit = unit;
	CHECK(
		!sym_intern_header(p, &(struct sym_header){ .types = &type, .types_n = 1 }, header, NULL));
	return p;
}

static void hour_of_rows(
	struct chunk *c, struct buf *bytes, int64_t hour, uint32_t node, uint32_t header)
{
	const enum value_kind kind = KIND_DELTA;
	int64_t ts[ROWS], values[ROWS];
	struct row rows[ROWS];
	struct err err;

	for (uint32_t i = 0; i < ROWS; i++) {
		ts[i] = hour * NS_PER_HOUR + (i + 1) * 10 * NS_PER_S;
		values[i] = hour + 1;
		rows[i] = (struct row){ .header = header,
			.interval_ns = 10 * NS_PER_S,
			.n = 1,
			.columns_n = 1,
			.stacks = &node,
			.values = &values[i] };
	}
	buf_clear(bytes);
	CHECK_OK(chunk_encode(ts, rows, ROWS, &kind, bytes, &err), &err);
	CHECK_OK(chunk_parse(c, buf_str(bytes), &err), &err);
}

TEST(days_are_the_sums_of_their_hours)
{
	struct sums s = { .view = rollup_view_open() };
	struct chunk *c = chunk_open();
	struct cascade *l = NULL;
	struct buf bytes = { 0 };
	uint32_t node = 0, header = 0;
	struct partition *p = one_stack(&node, &header);
	struct err err;

	REQUIRE(s.view && c && p);
	REQUIRE_OK(cascade_open(p, 3, true, collect, &s, &l, &err), &err);
	for (int64_t hour = 0; hour < DAYS * 24; hour++) {
		hour_of_rows(c, &bytes, hour, node, header);
		for (int k = 0; k < 2; k++) /* two chunks an hour: the record is encoded anew */
			CHECK_OK(cascade_chunk(l, hour * NS_PER_HOUR, c, false, &err), &err);
	}
	CHECK_OK(cascade_end(l, &err), &err);
	CHECK_INT(s.broken, 0);
	CHECK_INT(s.records[0], DAYS * 24);
	CHECK_INT(s.records[1], DAYS);
	for (int64_t day = 0; day < DAYS; day++) {
		int64_t want = 0;

		for (int64_t hour = day * 24; hour < day * 24 + 24; hour++) {
			CHECK_INT(s.level[0][hour], 2 * ROWS * (hour + 1));
			want += s.level[0][hour];
		}
		CHECK_INT(s.level[1][day], want);
	}
	cascade_close(l);
	chunk_close(c);
	rollup_view_close(s.view);
	buf_release(&bytes);
	partition_close(p);
}
