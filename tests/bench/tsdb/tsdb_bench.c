#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/fs.h"
#include "base/log.h"
#include "tests/bench/tsdb/tsdb_bench.h"
#include "tsdb/store/store.h"

#define CACHE_BYTES (16u << 20)

static const struct command {
	const char *name, *help;
	enum err_code (*run)(int argc, char **argv, struct err *err);
} commands[] = {
	{ "bytes", "bytes per sample of profiles that went through a database", bench_bytes },
	{ "index", "matching in the index of very many series", bench_index },
	{ "make", "a data directory of many days, written as blocks", bench_make },
	{ "series", "very many series in the head: memory, times and the limit", bench_series },
	{ "sum", "sums over long and short windows, against all raw rows", bench_sum },
	{ "work", "peaks of memory: of ingest, of cutting and joining", bench_work },
};
#define COMMANDS_N (sizeof(commands) / sizeof(commands[0]))

double bench_seconds(void)
{
	return (double)clock_monotonic_ns() * 1e-9;
}

/* Names are in the order in which they were made. */
static int block_cmp(const void *a, const void *b)
{
	int64_t x = block_meta(*(struct block *const *)a)->min_ns,
			y = block_meta(*(struct block *const *)b)->min_ns;

	return x < y ? -1 : x > y;
}

enum err_code bench_blocks_open(const char *data, struct bench_blocks *out, struct err *err)
{
	struct str *names;
	struct ulid ulid;
	enum err_code rc;
	char *dir;
	size_t n;

	*out = (struct bench_blocks){ 0 };
	arena_init(&out->arena, 0);
	if (!(dir = arena_printf(&out->arena, "%s/blocks", data)))
		return arena_fail(&out->arena, "blocks", err);
	if ((rc = fs_list(dir, &out->arena, &names, &n, err)))
		return rc;
	out->cache = store_cache_open(CACHE_BYTES);
	out->v = arena_alloc_raw(&out->arena, n + 1, sizeof(struct block *));
	if (!out->cache || !out->v)
		return err_set(err, ERR_NOMEM, "blocks: out of memory");
	for (size_t i = 0; i < n; i++) {
		char *path = path_join(&out->arena, str_of(dir), names[i]);
		struct err damaged = { 0 };

		if (!path || !ulid_parse(names[i], &ulid))
			continue;
		if ((rc = block_open(path, NULL, out->cache, &out->v[out->n], &damaged, err)))
			return rc;
		out->n++;
		if (damaged.code)
			return err_set(err, damaged.code, "%s", damaged.msg);
	}
	if (!out->n)
		return err_set(err, ERR_NOT_FOUND, "%s has no block", dir);
	qsort(out->v, out->n, sizeof(struct block *), block_cmp);
	return ERR_OK;
}

void bench_blocks_close(struct bench_blocks *b)
{
	for (size_t i = 0; i < b->n; i++)
		block_close(b->v[i]);
	store_cache_close(b->cache);
	arena_release(&b->arena);
}

/* Symbols by kind, rollups by what they sum. */
static void print_parts(const struct block_sizes *s)
{
	static const char *const kinds[SYM_KINDS] = { "", "strings", "mappings", "functions",
		"locations", "nodes", "label_sets", "headers" };
	uint64_t series = 0, groups = 0, functions = 0;

	for (int k = 1; k < SYM_KINDS; k++)
		printf(",\"%s_bytes\":%" PRIu64, kinds[k], s->symbols[k]);
	for (size_t i = 0; i < ROLLUP_LEVELS; i++) {
		series += s->rollups_series[i];
		groups += s->rollups_group[i];
		functions += s->functions[i];
	}
	printf(",\"series_rollup_bytes\":%" PRIu64 ",\"group_rollup_bytes\":%" PRIu64
		   ",\"function_bytes\":%" PRIu64,
		series, groups, functions);
}

enum err_code bench_measure(struct block *b, const char *name, const char *set, struct err *err)
{
	const struct block_meta *m = block_meta(b);
	uint64_t rollups = 0, symbols = 0;
	struct block_sizes s;
	enum err_code rc;
	double samples;

	if ((rc = block_measure(b, &s, err)))
		return rc;
	for (size_t i = 0; i < ROLLUP_LEVELS; i++)
		rollups += s.rollups_series[i] + s.rollups_group[i] + s.functions[i];
	for (size_t i = 0; i < SYM_KINDS; i++)
		symbols += s.symbols[i];
	samples = (double)(s.chunks.samples ? s.chunks.samples : 1);
	printf("{\"name\":\"%s\",\"set\":\"%s\",\"rows\":%" PRIu64 ",\"samples\":%" PRIu64
		   ",\"nodes\":%" PRIu64 ",\"raw_bytes\":%" PRIu64 ",\"rollup_bytes\":%" PRIu64
		   ",\"symbol_bytes\":%" PRIu64 ",\"other_bytes\":%" PRIu64
		   ",\"raw_per_sample\":%.4f,\"rollups_of_raw\":%.4f,\"symbols_per_sample\":%.4f",
		name, set, s.chunks.rows, s.chunks.samples, m->nodes, s.rows, rollups, symbols,
		s.series + s.postings + s.meta + s.overhead, (double)s.rows / samples,
		(double)rollups / (double)(s.rows ? s.rows : 1), (double)symbols / samples);
	print_parts(&s);
	printf("}\n");
	return ERR_OK;
}

int main(int argc, char **argv)
{
	struct err err = { 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < COMMANDS_N && argc > 1; i++) {
		if (strcmp(commands[i].name, argv[1]) != 0)
			continue;
		if (commands[i].run(argc - 1, argv + 1, &err) == ERR_OK)
			return 0;
		fprintf(stderr, "tsdb_bench %s: %s\n", argv[1], err.msg);
		return 1;
	}
	fprintf(stderr, "usage: tsdb_bench COMMAND [--help]\n");
	for (size_t i = 0; i < COMMANDS_N; i++)
		fprintf(stderr, "  %-6s %s\n", commands[i].name, commands[i].help);
	return 2;
}
