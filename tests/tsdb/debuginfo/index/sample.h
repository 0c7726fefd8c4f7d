/*
 * A builder filled at random: functions with inlined calls, ranges that overlap, and what each
 * address should be called.
 */
#ifndef TESTS_TSDB_DEBUGINFO_INDEX_SAMPLE_H
#define TESTS_TSDB_DEBUGINFO_INDEX_SAMPLE_H

#include "tsdb/debuginfo/index/symindex.h"

#define SAMPLE_FUNCTIONS 40u
#define SAMPLE_FRAMES 300u
#define SAMPLE_SEGMENTS_MAX 400u
#define SAMPLE_LOADS 3u /* of 4 KiB, 64 KiB apart in memory; the second is executable */

struct sample_frame {
	uint32_t parent; /* a frame before, or SYMINDEX_NONE */
	uint32_t function, line, depth;
};

struct sample_segment {
	uint64_t start, end;
	uint32_t frame;
	enum symindex_quality quality;
};

struct sample {
	uint64_t state;
	uint64_t base;
	uint32_t span; /* addresses [base, base + span) */
	struct sample_frame frame[SAMPLE_FRAMES];
	struct sample_segment segment[SAMPLE_SEGMENTS_MAX];
	uint32_t segments;
};

uint32_t sample_draw(struct sample *s, uint32_t below);
/* ties: some segments have the same range and quality. */
void sample_init(struct sample *s, uint64_t seed, uint32_t span, uint32_t segments, bool ties);
/* order: functions, frames and segments are added in another order for each. */
MUST_CHECK enum err_code sample_index(
	const struct sample *s, uint64_t order, struct buf *out, struct err *err);
/* The same, and what an older index says. */
MUST_CHECK enum err_code sample_index_over(const struct sample *s, uint64_t order,
	const struct symindex *older, struct buf *out, struct err *err);
/* Of what the builder should have chosen; 0: no name. */
enum symindex_quality sample_quality(const struct sample *s, uint64_t address);
/* "name file:line start; ...": appended; of what the builder should have chosen. */
void sample_expect(const struct sample *s, uint64_t address, struct buf *text);
/* The same, as the index has it. */
void sample_found(const struct symindex *x, uint64_t address, struct buf *text);

#endif
