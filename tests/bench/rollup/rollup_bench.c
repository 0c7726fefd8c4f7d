/*
 * Cost and gain of rollups: a service of some pods over some hours of a fleet's made-up profiles,
 * as chunks, rollups per pod and per group at each step, and function totals. Prints bytes, shares
 * of the raw rows, and speeds. rollup_bench [SET [PODS [HOURS]]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/fleet/fleet.h"
#include "tsdb/rollup/rollup_internal.h"

#define PODS_MAX 64u
#define HOURS_MAX 24u
#define HOUR (INT64_C(3600) * 1000000000)

enum part { RAW, SERIES_1H, SERIES_1D, GROUP_1H, GROUP_1D, FUNCTIONS_1H, FUNCTIONS_1D, PARTS };
static const char *const part_names[PARTS] = { "chunks", "series 1h", "series 1d", "group 1h",
	"group 1d", "functions 1h", "functions 1d" };

struct bench {
	struct fleet *fleet;
	struct fleet_scratch *scratch;
	struct fleet_symbols symbols;
	struct partition *p;
	struct arena arena;
	struct chunk *chunk;
	struct rollup_view *view;
	struct rollup_builder *series, *day, *group[HOURS_MAX], *group_day;
	enum value_kind kinds[FLEET_COLUMNS_MAX];
	uint32_t columns_n, pods, hours;
	uint64_t bytes[PARTS], records[PARTS], cells[PARTS], plain[PARTS], samples;
	int64_t add_chunk_ns, encode_ns, join_ns, functions_ns;
	struct buf last[PARTS]; /* a record of each */
};

static void must(enum err_code rc, const struct err *err)
{
	if (!rc)
		return;
	fprintf(stderr, "rollup_bench: %s\n", err->msg);
	exit(1);
}

static void count(struct bench *b, enum part part, const struct buf *bytes)
{
	struct err err;

	b->bytes[part] += bytes->len;
	b->records[part]++;
	buf_clear(&b->last[part]);
	buf_add_str(&b->last[part], buf_str(bytes));
	if (part == RAW)
		return;
	if (part < FUNCTIONS_1H)
		must(rollup_parse(b->view, buf_str(bytes), &err), &err);
	else
		must(rollup_functions_parse(b->view, buf_str(bytes), &err), &err);
	b->cells[part] += b->view->cells.n;
	b->plain[part] += bytes->len;
	for (uint32_t i = 0; i < b->view->cells.columns_n + 2; i++)
		if (b->view->cells.frames[i].stored.len)
			b->plain[part] += b->view->cells.frames[i].raw_len -
				b->view->cells.frames[i].stored.len;
}

/* Rows are made by turns with a few arrays of their own: a chunk wants them side by side. */
static void add_hour(struct bench *b, uint32_t pod, uint32_t hour)
{
	static struct row rows[CHUNK_ROWS];
	static int64_t ts[CHUNK_ROWS];
	uint32_t per_hour = (uint32_t)(HOUR / fleet_params(b->fleet)->interval_ns);
	struct buf bytes = { 0 };
	struct arena arena;
	struct err err;

	for (uint32_t from = 0; from < per_hour; from += CHUNK_ROWS) {
		arena_init(&arena, 0);
		for (uint32_t i = 0; i < CHUNK_ROWS; i++) {
			uint64_t scrape = 1 + (uint64_t)hour * per_hour + from + i;
			struct row *r = &rows[i];
			uint32_t *ids;
			int64_t *values;

			fleet_row(b->fleet, &b->symbols, b->scratch, 0, pod, scrape, 0, r);
			ts[i] = (int64_t)scrape * r->interval_ns;
			ids = arena_alloc_raw(&arena, (size_t)r->n * 2 + 1, sizeof(*ids));
			values = arena_alloc_raw(&arena, (size_t)r->n * r->columns_n + 1, sizeof(*values));
			memcpy(ids, r->stacks, r->n * sizeof(*ids));
			memset(ids + r->n, 0, r->n * sizeof(*ids));
			if (r->label_sets)
				memcpy(ids + r->n, r->label_sets, r->n * sizeof(*ids));
			memcpy(values, r->values, (size_t)r->n * r->columns_n * sizeof(*values));
			r->stacks = ids;
			r->label_sets = ids + r->n;
			r->values = values;
			b->samples += r->n;
		}
		buf_clear(&bytes);
		must(chunk_encode(ts, rows, CHUNK_ROWS, b->kinds, &bytes, &err), &err);
		count(b, RAW, &bytes);
		must(chunk_parse(b->chunk, buf_str(&bytes), &err), &err);
		b->add_chunk_ns -= clock_monotonic_ns();
		must(rollup_builder_add_chunk(b->series, b->chunk, 0, CHUNK_ROWS, true, &err), &err);
		b->add_chunk_ns += clock_monotonic_ns();
		arena_release(&arena);
	}
	buf_release(&bytes);
}

static void encode(struct bench *b, struct rollup_builder *from, enum part part, struct buf *out)
{
	struct err err;

	buf_clear(out);
	b->encode_ns -= clock_monotonic_ns();
	must(rollup_builder_encode(from, out, &err), &err);
	b->encode_ns += clock_monotonic_ns();
	count(b, part, out);
}

static void encode_functions(
	struct bench *b, struct rollup_builder *from, enum part part, struct buf *out)
{
	struct err err;
	bool any;

	buf_clear(out);
	b->functions_ns -= clock_monotonic_ns();
	must(rollup_builder_encode_functions(from, out, &any, &err), &err);
	b->functions_ns += clock_monotonic_ns();
	if (any)
		count(b, part, out);
}

static void join(struct bench *b, struct rollup_builder *into, const struct buf *bytes)
{
	struct err err;

	b->join_ns -= clock_monotonic_ns();
	must(rollup_parse(b->view, buf_str(bytes), &err), &err);
	must(rollup_builder_add(into, b->view, &err), &err);
	b->join_ns += clock_monotonic_ns();
}

static void run(struct bench *b)
{
	struct buf bytes = { 0 };

	for (uint32_t pod = 0; pod < b->pods; pod++) {
		rollup_builder_clear(b->day);
		for (uint32_t hour = 0; hour < b->hours; hour++) {
			rollup_builder_clear(b->series);
			add_hour(b, pod, hour);
			encode(b, b->series, SERIES_1H, &bytes);
			join(b, b->day, &bytes);
			join(b, b->group[hour], &bytes);
		}
		encode(b, b->day, SERIES_1D, &bytes);
	}
	for (uint32_t hour = 0; hour < b->hours; hour++) {
		encode(b, b->group[hour], GROUP_1H, &bytes);
		join(b, b->group_day, &bytes);
		encode_functions(b, b->group[hour], FUNCTIONS_1H, &bytes);
	}
	encode(b, b->group_day, GROUP_1D, &bytes);
	encode_functions(b, b->group_day, FUNCTIONS_1D, &bytes);
	buf_release(&bytes);
}

/* Cells per second of column 0: parsed and decompressed each time, or once. */
static double speed(struct bench *b, enum part part, bool again)
{
	struct accum *acc;
	struct err err;
	int64_t best = INT64_MAX;
	uint32_t n = 0;

	must(accum_open(b->p, ACCUM_WEIGHTED * (b->kinds[0] == KIND_GAUGE), &acc, &err), &err);
	must(rollup_parse(b->view, buf_str(&b->last[part]), &err), &err);
	for (int i = 0; i < 200; i++) {
		int64_t from = clock_monotonic_ns();

		if (again)
			must(rollup_parse(b->view, buf_str(&b->last[part]), &err), &err);
		must(rollup_add(b->view, 0, acc, &err), &err);
		from = clock_monotonic_ns() - from;
		best = from < best ? from : best;
		n = b->view->cells.n;
	}
	accum_close(acc);
	return n * 1e3 / (double)best;
}

static void print(struct bench *b)
{
	uint64_t rollups = 0;

	printf("%-14s %8s %12s %8s %8s %8s %8s\n", "", "records", "bytes", "of raw", "cells each",
		"B/cell", "plain");
	for (int i = 0; i < PARTS; i++) {
		double cells = (double)(b->cells[i] ? b->cells[i] : 1);

		printf("%-14s %8" PRIu64 " %12" PRIu64 " %7.2f%% %8" PRIu64 " %8.2f %8.2f\n", part_names[i],
			b->records[i], b->bytes[i], 100.0 * (double)b->bytes[i] / (double)b->bytes[RAW],
			b->cells[i] / (b->records[i] ? b->records[i] : 1), (double)b->bytes[i] / cells,
			(double)b->plain[i] / cells);
		if (i != RAW)
			rollups += b->bytes[i];
	}
	printf("all rollups: %.1f%% of raw, which has %.3f B/sample\n",
		100.0 * (double)rollups / (double)b->bytes[RAW],
		(double)b->bytes[RAW] / (double)b->samples);
	for (int i = SERIES_1H; i <= GROUP_1D; i++)
		printf("%-14s decode and add, M cells/s: %.0f compressed, %.0f not\n", part_names[i],
			speed(b, (enum part)i, true), speed(b, (enum part)i, false));
	printf("add chunks %.1f M samples/s; encode %.2f ms, join %.2f ms, functions %.2f ms "
		   "each\n",
		(double)b->samples * 1e3 / (double)b->add_chunk_ns,
		(double)b->encode_ns / 1e6 /
			(double)(b->records[SERIES_1H] + b->records[SERIES_1D] + b->records[GROUP_1H] +
				b->records[GROUP_1D]),
		(double)b->join_ns / 1e6 / (double)(b->records[SERIES_1H] * 2 + b->records[GROUP_1H]),
		(double)b->functions_ns / 1e6 /
			(double)(b->records[FUNCTIONS_1H] + b->records[FUNCTIONS_1D]));
}

int main(int argc, char **argv)
{
	const struct symbol_limits limits = { 1u << 24, 1u << 24, 1u << 20, UINT64_C(1) << 32 };
	const struct fleet_params *set = fleet_set(argc > 1 ? argv[1] : "fleet-cpu");
	static struct bench b;
	uint64_t pods, hours;
	struct err err;

	if (!str_to_u64(str_of(argc > 2 ? argv[2] : "3"), &pods) ||
		!str_to_u64(str_of(argc > 3 ? argv[3] : "24"), &hours))
		set = NULL;
	b.pods = (uint32_t)pods;
	b.hours = (uint32_t)hours;
	if (!set || pods > PODS_MAX || hours > HOURS_MAX) {
		fprintf(stderr, "usage: rollup_bench [SET [PODS [HOURS]]]\n");
		return 2;
	}
	arena_init(&b.arena, 0);
	must(fleet_open(set, &b.fleet, &err), &err);
	must(fleet_scratch_open(b.fleet, &b.scratch, &err), &err);
	must(partition_open(STR("svc000"), 0, 0, &limits, &b.p, &err), &err);
	must(fleet_symbols(b.fleet, 0, b.pods, b.p, &b.arena, &b.symbols, &err), &err);
	b.columns_n = fleet_kinds(b.fleet, b.kinds);
	for (uint32_t i = 0; i < b.columns_n; i++)
		b.kinds[i] = b.kinds[i] == KIND_CUMULATIVE ? KIND_DELTA : b.kinds[i];
	b.chunk = chunk_open();
	b.view = rollup_view_open();
	must(rollup_builder_open(b.p, &b.series, &err), &err);
	must(rollup_builder_open(b.p, &b.day, &err), &err);
	must(rollup_builder_open(b.p, &b.group_day, &err), &err);
	for (uint32_t i = 0; i < b.hours; i++)
		must(rollup_builder_open(b.p, &b.group[i], &err), &err);
	printf("%s: %u pods, %u hours, %u nodes\n", set->name, b.pods, b.hours, sym_nodes_n(b.p));
	run(&b);
	print(&b);
	return 0;
}
