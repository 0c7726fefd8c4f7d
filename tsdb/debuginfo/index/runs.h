/*
 * Runs: segments in any order, read back in order of their starts.
 *
 * A block of segments is sorted, if it has to be, and kept as varints of differences: five bytes a
 * segment in place of 24. Reading merges those blocks that overlap; of segments that came in
 * order it reads one block at a time. What was read is freed.
 *
 * Errors:    ERR_NOMEM.
 * Threads:   one.
 */
#ifndef TSDB_DEBUGINFO_INDEX_RUNS_H
#define TSDB_DEBUGINFO_INDEX_RUNS_H

#include "base/str.h"

struct symindex_segment {
	uint64_t start, end;
	uint32_t frame;
	uint32_t rank; /* where two overlap the greater counts */
};
#define RANK_BITS 4

struct run {
	unsigned char *bytes;
	size_t len;
	uint64_t first; /* start */
};

struct run_reader {
	struct cursor c;
	struct symindex_segment at;
	size_t run;
};

struct runs {
	struct symindex_segment *block;
	size_t n;
	bool unsorted; /* the block */
	struct run *v;
	size_t runs, runs_cap;
	/* reading */
	size_t opened; /* runs [0, opened) were begun */
	struct run_reader *heap; /* least start on top */
	size_t heap_n, heap_cap;
};

MUST_CHECK enum err_code runs_add(
	struct runs *r, const struct symindex_segment *s, struct err *err);
/* Ends the adding. */
MUST_CHECK enum err_code runs_seal(struct runs *r, struct err *err);
/* The next in order of starts; *more false: there is none. */
MUST_CHECK enum err_code runs_next(
	struct runs *r, struct symindex_segment *out, bool *more, struct err *err);
void runs_release(struct runs *r);

#endif
