#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/tsdb/tsdb_bench.h"
#include "tsdb/store/store.h"

/*
 * Sums of one service over long and short windows that begin and end in the middle of everything,
 * from opening the querier to the sealed accumulator, no result kept between them; beside them all
 * raw rows of the longest window, sample by sample, from the same blocks in the same run. The cells
 * of both must be equal, or there is no figure.
 */
#define ROUNDS_MAX 1000u
#define COLUMN 1u /* of the generator's CPU profiles: cpu/nanoseconds */

struct window {
	const char *name;
	int64_t min_ns, max_ns;
};

struct summing {
	struct db *db;
	struct matcher matcher;
	uint64_t rounds, raw_rounds;
	struct accum *acc; /* of the last sum, sealed; its querier is still open */
	struct db_querier *querier;
	struct arena arena;
	struct sum_stats stats;
};

static int double_cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void sum_bench_close(struct summing *s)
{
	accum_close(s->acc);
	s->acc = NULL;
	db_querier_close(s->querier);
	s->querier = NULL;
	arena_reset(&s->arena);
}

static bool is_cpu_time(const struct profile_type *t)
{
	return str_eq(t->sample_type, STR("cpu")) && str_eq(t->sample_unit, STR("nanoseconds"));
}

/* All series are of one service and, here, of one partition. */
static enum err_code sum_once(struct summing *s, const struct window *w, struct err *err)
{
	const struct db_series **list;
	struct profile_type *types;
	struct db_series *series;
	size_t n, types_n, at = 0;
	enum err_code rc;

	s->stats = (struct sum_stats){ 0 };
	if ((rc = db_querier_open(s->db, w->min_ns, w->max_ns, NULL, &s->querier, err)) ||
		(rc = db_select(s->querier, &s->matcher, 1, &s->arena, &series, &n, err)))
		return rc;
	if (!n)
		return err_set(
			err, ERR_NOT_FOUND, "0 series found in the blocks: db_select does not read them");
	if (!(list = arena_alloc_raw(&s->arena, n, sizeof(*list))))
		return err_set(err, ERR_NOMEM, "sum: out of memory");
	for (size_t i = 0; i < n; i++) {
		list[i] = &series[i];
		if (series[i].partition != series[0].partition)
			return err_set(err, ERR_INVALID, "series of more than one partition");
	}
	if ((rc = db_series_types(s->querier, &series[0], &s->arena, &types, &types_n, err)))
		return rc;
	while (at < types_n && !is_cpu_time(&types[at]))
		at++;
	if (at == types_n)
		return err_set(err, ERR_NOT_FOUND, "the series have no type cpu/nanoseconds");
	if ((rc = accum_open(series[0].partition, 0, &s->acc, err)) ||
		(rc = db_sum(s->querier, list, n, &types[at], w->min_ns, w->max_ns, SUM_WINDOW, s->acc,
			 &s->arena, &s->stats, err)))
		return rc;
	return accum_seal(s->acc, err);
}

static enum err_code sum_rounds(struct summing *s, const struct window *w, struct err *err)
{
	double took[ROUNDS_MAX], first = 0;
	enum err_code rc = ERR_OK;

	/* The first loads symbols and pages. */
	for (uint64_t i = 0; i <= s->rounds && !rc; i++) {
		double began;

		sum_bench_close(s);
		began = bench_seconds();
		rc = sum_once(s, w, err);
		if (i)
			took[i - 1] = bench_seconds() - began;
		else
			first = bench_seconds() - began;
	}
	if (rc)
		return rc;
	qsort(took, s->rounds, sizeof(*took), double_cmp);
	printf("{\"name\":\"sum\",\"window\":\"%s\",\"profiles\":%" PRIu64 ",\"cells_read\":%" PRIu64
		   ",\"total\":%.0f,\"cells\":%zu,\"first_s\":%.6f,\"min_s\":%.6f,\"median_s\":%.6f,"
		   "\"max_s\":%.6f}\n",
		w->name, s->stats.rows, s->stats.read, (double)s->stats.total, accum_cells_n(s->acc), first,
		took[0], took[s->rounds / 2], took[s->rounds - 1]);
	return ERR_OK;
}

/* ---- raw rows ---- */

static enum err_code add_chunk(struct chunk *c, int64_t min_ns, int64_t max_ns, struct accum *acc,
	struct bench_raw *out, struct err *err)
{
	const struct chunk_row *rows = chunk_rows(c);
	uint32_t from = 0, to = chunk_rows_n(c);
	enum err_code rc = ERR_OK;
	double began;

	if (chunk_columns_n(c) <= COLUMN)
		return err_set(err, ERR_INVALID, "rows are not of CPU profiles");
	while (from < to && rows[from].ts_ns <= min_ns)
		from++;
	while (to > from && rows[to - 1].ts_ns > max_ns)
		to--;
	if (from == to)
		return ERR_OK;
	for (uint32_t i = from; i < to; i++)
		out->total += chunk_totals(c, COLUMN)[i];
	out->rows += to - from;
	out->chunks++;
	/* All rows at once would be taken from the sums in front: the last is added by itself, and
	 * not counted. */
	began = bench_seconds();
	if (to - from > 1)
		rc = chunk_add(c, COLUMN, from, to - 1, 1, acc, err);
	out->seconds += bench_seconds() - began;
	return rc ? rc : chunk_add(c, COLUMN, to - 1, to, 1, acc, err);
}

static enum err_code add_block(struct block *b, int64_t min_ns, int64_t max_ns, struct accum *acc,
	struct bench_raw *out, struct err *err)
{
	struct chunk *c = chunk_open();
	struct block_chunks *it = NULL;
	enum err_code rc = c ? block_chunks_open(b, true, &it, err) :
						   err_set(err, ERR_NOMEM, "raw rows: out of memory");
	double began = bench_seconds();
	int64_t first;
	struct str bytes;

	for (uint32_t id = 0; id < block_meta(b)->series && !rc; id++) {
		block_chunks_seek(it, id, min_ns, max_ns);
		while (!rc && !(rc = block_chunks_next(it, &bytes, &first, err)) &&
			!(rc = chunk_parse(c, bytes, err))) {
			out->seconds += bench_seconds() - began;
			rc = add_chunk(c, min_ns, max_ns, acc, out, err);
			began = bench_seconds();
		}
		rc = rc == ERR_NOT_FOUND ? ERR_OK : rc;
	}
	block_chunks_close(it);
	chunk_close(c);
	return rc;
}

enum err_code bench_raw_add(const struct bench_blocks *b, int64_t min_ns, int64_t max_ns,
	struct accum *acc, struct bench_raw *out, struct err *err)
{
	enum err_code rc = ERR_OK;

	*out = (struct bench_raw){ 0 };
	for (size_t i = 0; i < b->n && !rc; i++)
		rc = add_block(b->v[i], min_ns, max_ns, acc, out, err);
	return rc;
}

static enum err_code load_symbols(
	const struct bench_blocks *b, struct partition **out, struct err *err)
{
	const struct symbol_limits limits = { 1u << 24, 1u << 24, 1u << 20, UINT64_C(1) << 32 };
	const struct block_partition *bp = block_partition(b->v[0], 0);
	enum err_code rc = partition_open(bp->name, bp->id, 0, &limits, out, err);
	uint64_t lost = 0;

	for (size_t i = 0; i < b->n && !rc; i++)
		for (int stage = BLOCK_NAMES; stage <= BLOCK_STACKS && !rc; stage++) {
			mutex_lock(&(*out)->lock);
			rc = block_load_symbols(b->v[i], 0, *out, (enum block_stage)stage, &lost, err);
			mutex_unlock(&(*out)->lock);
		}
	if (!rc && lost)
		rc = err_set(err, ERR_CORRUPT, "%" PRIu64 " symbols lost", lost);
	return rc;
}

static enum err_code compare(
	struct summing *s, struct accum *raw, const struct bench_raw *of, struct err *err)
{
	struct accum_cell a, b;
	size_t i = 0, k = 0;
	bool more, other;

	if (s->stats.rows != of->rows || s->stats.total != of->total)
		return err_set(err, ERR_CORRUPT,
			"db_sum says %" PRIu64 " profiles, total %.0f; the raw rows are %" PRIu64
			", total %.0f",
			s->stats.rows, (double)s->stats.total, of->rows, (double)of->total);
	for (;;) {
		more = accum_next(s->acc, &i, &a);
		other = accum_next(raw, &k, &b);
		if (!more || !other)
			break;
		if (a.stack != b.stack || a.label_set != b.label_set || a.value != b.value)
			return err_set(err, ERR_CORRUPT, "cell %zu of db_sum differs", i);
	}
	return more == other ? ERR_OK :
						   err_set(err, ERR_CORRUPT, "db_sum and raw rows differ in cells");
}

/* compared: s has the sum of this window. */
static enum err_code raw_rounds(struct summing *s, const struct bench_blocks *b,
	const struct window *w, bool compared, struct err *err)
{
	struct partition *p = NULL;
	struct accum *acc = NULL;
	double took[ROUNDS_MAX];
	struct bench_raw raw = { 0 };
	enum err_code rc = load_symbols(b, &p, err);

	for (uint64_t i = 0; i < s->raw_rounds && !rc; i++) {
		accum_close(acc);
		acc = NULL;
		if ((rc = accum_open(p, 0, &acc, err)) ||
			(rc = bench_raw_add(b, w->min_ns, w->max_ns, acc, &raw, err)))
			break;
		took[i] = raw.seconds;
	}
	if (!rc) {
		qsort(took, s->raw_rounds, sizeof(*took), double_cmp);
		printf("{\"name\":\"raw\",\"window\":\"%s\",\"profiles\":%" PRIu64 ",\"chunks\":%" PRIu64
			   ",\"total\":%.0f,\"min_s\":%.6f,\"median_s\":%.6f,\"max_s\":%.6f}\n",
			w->name, raw.rows, raw.chunks, (double)raw.total, took[0], took[s->raw_rounds / 2],
			took[s->raw_rounds - 1]);
	}
	if (!rc && !(rc = accum_seal(acc, err)) && compared)
		rc = compare(s, acc, &raw, err);
	accum_close(acc);
	partition_close(p);
	return rc;
}

static enum err_code run(struct summing *s, const struct bench_blocks *b, struct err *err)
{
	int64_t first = block_meta(b->v[0])->min_ns, last = block_meta(b->v[b->n - 1])->max_ns;
	int64_t end = last - 5 * NS_PER_HOUR - 1397250 * NS_PER_MS;
	const struct window windows[] = {
		{ "1h", end - NS_PER_HOUR, end },
		{ "24h", end - NS_PER_DAY, end },
		/* The longest window is the last one, for the comparison. */
		{ "all", first + 433500 * NS_PER_MS, last - 677250 * NS_PER_MS },
	};
	size_t n = sizeof(windows) / sizeof(windows[0]);
	enum err_code rc = ERR_OK, sums = ERR_OK;
	struct err why;

	for (size_t i = 0; i < n && !sums; i++)
		if (windows[i].min_ns > first)
			sums = sum_rounds(s, &windows[i], &why);
	/* The cost of raw rows is printed even where there is no sum to compare it with. */
	if ((rc = raw_rounds(s, b, &windows[n - 1], !sums, err)) ||
		(rc = bench_measure(b->v[0], "long block", "fleet-cpu", err)))
		return rc;
	return sums ? err_set(err, sums, "%s", why.msg) : ERR_OK;
}

enum err_code bench_sum(int argc, char **argv, struct err *err)
{
	struct summing s = { 0 };
	struct bench_blocks blocks = { 0 };
	struct db_options o;
	const char *data;
	struct flag flags[] = {
		{ "data", FLAG_STRING, &data, NULL, "A directory of `make`, of one service." },
		{ "rounds", FLAG_UINT, &s.rounds, "15", "Sums of each window." },
		{ "raw-rounds", FLAG_UINT, &s.raw_rounds, "2", "Times that raw rows are added." },
	};
	enum err_code rc;
	size_t args_n = 0;

	if ((rc = command_flags(flags, sizeof(flags) / sizeof(flags[0]),
			 "Sums over windows of a directory, against its raw rows.", argc, argv, NULL, 0,
			 &args_n, err)))
		return rc;
	if (!data || !s.rounds || s.rounds > ROUNDS_MAX || !s.raw_rounds || s.raw_rounds > ROUNDS_MAX)
		return err_set(err, ERR_INVALID, "--data and rounds are needed");
	arena_init(&s.arena, 0);
	db_options_default(&o);
	o.dir = data;
	o.read_only = true;
	if ((rc = matcher_init(&s.matcher, MATCH_EQ, STR("job"), STR("svc000"), err)) ||
			 (rc = bench_blocks_open(data, &blocks, err)) || (rc = db_open(&o, &s.db, err)))
		goto done;
	rc = run(&s, &blocks, err);
done:
	sum_bench_close(&s);
	db_close(s.db);
	bench_blocks_close(&blocks);
	matcher_release(&s.matcher);
	arena_release(&s.arena);
	return rc;
}
