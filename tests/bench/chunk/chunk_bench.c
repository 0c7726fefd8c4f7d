/*
 * Chunks measured on the fleet's profiles: bytes per sample by part, speeds, the same rows one by
 * one as the baseline, and the floor: per key the logarithm of the number of ways in which its
 * cells can be in the rows and its sum can be in its cells.
 *
 * chunk_bench [SET [ROWS]]
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/fleet/fleet.h"
#include "tsdb/columns/chunk.h"

#define CHUNKS 6u
#define FIRST_SCRAPE 2000u
#define ROWS_MOST 1024u

static void require(bool ok, const struct err *err)
{
	if (ok)
		return;
	fprintf(stderr, "chunk_bench: %s\n", err->msg);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- data ---- */

struct data {
	uint32_t rows_n, columns_n;
	enum value_kind kinds[FLEET_COLUMNS_MAX];
	int64_t ts[ROWS_MOST];
	struct row rows[ROWS_MOST];
	uint64_t samples;
};

static void *copy(const void *p, size_t n)
{
	void *to = malloc(n + 1);

	return to ? memcpy(to, p, n) : NULL;
}

static uint64_t noise(uint64_t x)
{
	x *= UINT64_C(0x9e3779b97f4a7c15);
	x ^= x >> 31;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ x >> 29;
}

/* One chunk of one pod; what a server and a clock add to times is made up. */
static void fill(struct data *d, const struct fleet *f, const struct fleet_symbols *symbols,
	struct fleet_scratch *s, uint32_t pod, uint32_t rows)
{
	const int64_t start = INT64_C(1760000000000000000);

	d->columns_n = fleet_kinds(f, d->kinds);
	for (uint32_t c = 0; c < d->columns_n; c++)
		if (d->kinds[c] == KIND_CUMULATIVE)
			d->kinds[c] = KIND_DELTA;
	d->rows_n = rows;
	d->samples = 0;
	for (uint32_t r = 0; r < rows; r++) {
		struct row *row = &d->rows[r];

		fleet_row(f, symbols, s, 0, pod, FIRST_SCRAPE + r, start, row);
		d->ts[r] = start + (FIRST_SCRAPE + r) * row->interval_ns +
			(int64_t)(noise(pod * 7919 + r) % 3000000);
		row->time_nanos += (int64_t)(noise(pod * 104729 + r) % 2000000);
		row->stacks = copy(row->stacks, row->n * sizeof(*row->stacks));
		if (row->label_sets)
			row->label_sets = copy(row->label_sets, row->n * sizeof(*row->stacks));
		row->values = copy(row->values, (size_t)row->n * row->columns_n * sizeof(int64_t));
		d->samples += row->n;
	}
}

static void drop(struct data *d)
{
	for (uint32_t r = 0; r < d->rows_n; r++) {
		free((void *)(uintptr_t)d->rows[r].stacks);
		free((void *)(uintptr_t)d->rows[r].label_sets);
		free((void *)(uintptr_t)d->rows[r].values);
	}
}

/* ---- the floor ---- */

static double choose(double n, double m)
{
	return m <= 0 || m >= n ? 0 : (lgamma(n + 1) - lgamma(m + 1) - lgamma(n - m + 1)) / M_LN2;
}

struct cell {
	uint64_t id;
	uint32_t row;
	int64_t value;
};

static int cell_cmp(const void *x, const void *y)
{
	const struct cell *a = x, *b = y;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (a->row > b->row) - (a->row < b->row);
}

/* Bytes: places and values of the columns of deltas, those that are others' multiples left out. */
static void add_floor(const struct data *d, double *places, double *values)
{
	struct cell *cells = malloc((d->samples + 1) * sizeof(*cells));
	bool cpu = d->columns_n == 2 && d->kinds[0] == KIND_DELTA;
	size_t n;

	for (uint32_t c = 0; cells && c < (cpu ? 1 : d->columns_n); c++) {
		if (d->kinds[c] == KIND_GAUGE)
			continue;
		n = 0;
		for (uint32_t r = 0; r < d->rows_n; r++)
			for (uint32_t i = 0; i < d->rows[r].n; i++) {
				int64_t v = d->rows[r].values[(size_t)c * d->rows[r].n + i];
				uint64_t set = d->rows[r].label_sets ? d->rows[r].label_sets[i] : 0;

				if (v)
					cells[n++] = (struct cell){ (uint64_t)d->rows[r].stacks[i] << 32 | set, r, v };
			}
		qsort(cells, n, sizeof(*cells), cell_cmp);
		for (size_t i = 0, j; i < n; i = j) {
			double sum = 0;

			for (j = i; j < n && cells[j].id == cells[i].id; j++)
				sum += (double)cells[j].value;
			*places += choose(d->rows_n, (double)(j - i)) / 8;
			*values += choose(sum - 1, (double)(j - i) - 1) / 8;
		}
	}
	free(cells);
}

/* ---- measuring ---- */

struct figures {
	struct chunk_sizes sizes;
	double encode, part, whole, unpack, parse; /* seconds */
	double part_samples, whole_samples;
	double row_bytes, row_encode, row_add;
	double floor_places, floor_values;
};

static void measure_rows(const struct data *d, struct accum *acc, struct figures *out)
{
	static uint32_t stacks[1 << 18], sets[1 << 18];
	static int64_t values[1 << 18];
	struct buf b = { 0 };
	struct row_view v;
	struct err err;
	double t;

	for (uint32_t r = 0; r < d->rows_n; r++) {
		buf_clear(&b);
		t = now();
		require(!row_encode(&d->rows[r], d->ts[r], &b, &err), &err);
		out->row_encode += now() - t;
		out->row_bytes += (double)b.len;
		t = now();
		require(!row_parse(buf_str(&b), d->ts[r], &v, &err), &err);
		require(!row_ids(&v, stacks, sets, &err), &err);
		require(!row_values(&v, 0, values, &err), &err);
		require(!accum_add(acc, stacks, sets, values, v.n, 1, &err), &err);
		out->row_add += now() - t;
	}
	buf_release(&b);
}

static void measure(const struct data *d, struct chunk *c, struct accum *acc, struct figures *out)
{
	enum { TIMES = 100 };
	struct chunk_sizes sizes;
	struct buf b = { 0 };
	const struct row *rows;
	struct err err;
	double t = now();

	for (int i = 0; i < 3; i++) {
		buf_clear(&b);
		require(!chunk_encode(d->ts, d->rows, d->rows_n, d->kinds, &b, &err), &err);
	}
	out->encode += (now() - t) / 3;
	for (int part = 0; part < 2; part++) {
		/* Nearly all rows, but not all: everything is decoded. */
		uint32_t from = part ? 1 : 0;

		t = now();
		for (int i = 0; i <= TIMES; i++) {
			if (i == 1)
				t = now(); /* the first made room */
			require(!chunk_parse(c, buf_str(&b), &err), &err);
			require(!chunk_add(c, 0, from, d->rows_n, 1, acc, &err), &err);
		}
		*(part ? &out->part : &out->whole) += (now() - t) / TIMES;
	}
	t = now();
	for (int i = 0; i < TIMES; i++)
		require(!chunk_parse(c, buf_str(&b), &err), &err);
	out->parse += (now() - t) / TIMES;
	t = now();
	require(!chunk_unpack(c, &rows, &err), &err);
	out->unpack += now() - t;
	require(!chunk_measure(c, &sizes, &err), &err);
	out->sizes.heads += sizes.heads;
	out->sizes.ids += sizes.ids;
	out->sizes.positions += sizes.positions;
	out->sizes.values += sizes.values;
	out->sizes.sums += sizes.sums;
	out->sizes.total += sizes.total;
	out->sizes.entries += sizes.entries;
	out->sizes.samples += sizes.samples;
	buf_release(&b);
}

static void print(const char *name, uint32_t rows, const struct figures *f)
{
	double n = (double)f->sizes.samples, m = n / 1e6;

	printf("%-17s %4u %5.0f %5.2f | %5.2f %5.3f = %.3f %.3f %.3f %.3f %.3f | %.3f %.3f | "
		   "%4.0f %5.0f | %4.0f %4.0f %5.0f %4.0f %5.0f\n",
		name, rows, n / rows / CHUNKS, n / (double)f->sizes.entries, f->row_bytes / n,
		(double)f->sizes.total / n, (double)f->sizes.heads / n, (double)f->sizes.ids / n,
		(double)f->sizes.positions / n, (double)f->sizes.values / n, (double)f->sizes.sums / n,
		f->floor_places / n, f->floor_values / n, m / f->row_encode, m / f->row_add, m / f->encode,
		m / f->part, m / f->whole, m / f->unpack, f->parse * 1e6 / CHUNKS);
}

static void run(const struct fleet_params *params, uint32_t rows)
{
	const struct symbol_limits limits = { 10000000, 10000000, 10000000, SIZE_MAX };
	struct figures figures = { 0 };
	struct fleet_symbols symbols;
	struct fleet_scratch *s = NULL;
	struct partition *p = NULL;
	struct fleet *f = NULL;
	struct accum *acc = NULL;
	struct arena arena = { 0 };
	struct chunk *c = chunk_open();
	static struct data d;
	struct err err;

	require(!fleet_open(params, &f, &err), &err);
	require(!fleet_scratch_open(f, &s, &err), &err);
	require(!partition_open(STR("svc000"), 0, 0, &limits, &p, &err), &err);
	require(!fleet_symbols(f, 0, CHUNKS, p, &arena, &symbols, &err), &err);
	require(!accum_open(p, ACCUM_BY_LABELS, &acc, &err), &err);
	for (uint32_t pod = 0; pod < CHUNKS; pod++) {
		fill(&d, f, &symbols, s, pod, rows);
		measure(&d, c, acc, &figures);
		measure_rows(&d, acc, &figures);
		add_floor(&d, &figures.floor_places, &figures.floor_values);
		drop(&d);
	}
	print(params->name, rows, &figures);
	fflush(stdout);
	accum_close(acc);
	chunk_close(c);
	fleet_scratch_close(s);
	fleet_close(f);
	partition_close(p);
	arena_release(&arena);
}

int main(int argc, char **argv)
{
	uint32_t rows = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : CHUNK_ROWS;

	if (rows < 2 || rows > ROWS_MOST) {
		fprintf(stderr, "chunk_bench: rows are 2 to %u\n", ROWS_MOST);
		return 2;
	}
	printf("%-17s %4s %5s %5s | %5s %5s = %5s %5s %5s %5s %5s | %5s %5s | %4s %5s | %4s %4s "
		   "%5s "
		   "%4s %5s\n",
		"set", "rows", "n", "/key", "row", "chunk", "heads", "ids", "place", "value", "sums",
		"floor", "value", "rowE", "rowA", "enc", "part", "whole", "unp", "parse");
	for (size_t i = 0; i < fleet_sets_n; i++)
		if (argc < 2 || !*argv[1] || !strcmp(argv[1], fleet_sets[i].name))
			run(&fleet_sets[i], rows);
	return 0;
}
