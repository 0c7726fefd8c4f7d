/*
 * The storage engine's figures on the fleet's profiles: the commands of the program `tsdb_bench`.
 *
 * Each prints lines of JSON, one object a line with its name in "name"; the driver (bench.mjs)
 * makes the table. Progress goes to standard error.
 */
#ifndef TESTS_BENCH_TSDB_TSDB_BENCH_H
#define TESTS_BENCH_TSDB_TSDB_BENCH_H

#include "base/clock.h"
#include "tests/fleet/command.h"
#include "tests/fleet/fleet.h"
#include "tsdb/block/block.h"
#include "tsdb/db.h"

/* Profiles through db_append into one window, cut and measured. */
MUST_CHECK enum err_code bench_bytes(int argc, char **argv, struct err *err);
/* Days of a few services written as blocks. */
MUST_CHECK enum err_code bench_make(int argc, char **argv, struct err *err);
/* db_sum over windows that no step is aligned to, against all raw rows. */
MUST_CHECK enum err_code bench_sum(int argc, char **argv, struct err *err);

/* Memory and times of a head with the number of series asked for. */
MUST_CHECK enum err_code bench_series(int argc, char **argv, struct err *err);
/* Matching in the index of very many series, names and values of labels. */
MUST_CHECK enum err_code bench_index(int argc, char **argv, struct err *err);

/* Peaks of resident memory: of ingest, of cutting and joining. */
MUST_CHECK enum err_code bench_work(int argc, char **argv, struct err *err);

double bench_seconds(void); /* monotonic */

/* The blocks of a data directory, oldest first; bench_blocks_close is fine after a failure. */
struct bench_blocks {
	struct store_cache *cache;
	struct block **v;
	size_t n;
	struct arena arena;
};
MUST_CHECK enum err_code bench_blocks_open(
	const char *data, struct bench_blocks *out, struct err *err);
void bench_blocks_close(struct bench_blocks *b);
/* The bytes of a block by part: one line of JSON. */
MUST_CHECK enum err_code bench_measure(
	struct block *b, const char *name, const char *set, struct err *err);

/* The window of raw rows between two times, row by row, into acc. */
struct bench_raw {
	uint64_t rows, chunks;
	__int128 total; /* of the rows' totals */
	double seconds; /* of reading and adding all rows but the last of each chunk */
};
/*
 * Adds the CPU time of all rows of all series of the blocks in (min, max]. Samples are read one by
 * one: the sums that a chunk has in front are not used. p has the blocks' symbols.
 */
MUST_CHECK enum err_code bench_raw_add(const struct bench_blocks *b, int64_t min_ns, int64_t max_ns,
	struct accum *acc, struct bench_raw *out, struct err *err);

#endif
