/*
 * Cascade: the rollups of one series or group, step after step, each level added up from the one
 * below it.
 *
 * A record that is alone in its step goes through as it is.
 *
 * Errors:  ERR_CORRUPT (a record that was given), ERR_LIMIT, ERR_NOMEM, those of emit.
 * Threads: one.
 */
#ifndef TSDB_ROLLUP_CASCADE_H
#define TSDB_ROLLUP_CASCADE_H

#include "tsdb/rollup/rollup.h"

struct cascade;
struct partition;

/* functions: function totals of the record that was emitted just before. */
typedef enum err_code (*cascade_emit_fn)(
	void *ctx, bool functions, uint32_t level, int64_t step_ns, struct str bytes, struct err *err);

/* levels: bit per level, the finest among them; functions: function totals are wanted too. */
MUST_CHECK enum err_code cascade_open(struct partition *p, unsigned levels, bool functions,
	cascade_emit_fn emit, void *ctx, struct cascade **out, struct err *err);
void cascade_close(struct cascade *c); /* NULL is fine */
/* step_ns: start of a step of the finest level, which ascend; a step may have any number of chunks
 * and records. missed: missed scrapes count; its chunks are all rows of the step, ascending. */
MUST_CHECK enum err_code cascade_chunk(
	struct cascade *c, int64_t step_ns, struct chunk *chunk, bool missed, struct err *err);
/* functions: the record's function totals where they are known, else empty. */
MUST_CHECK enum err_code cascade_record(
	struct cascade *c, int64_t step_ns, struct str bytes, struct str functions, struct err *err);
/* Emits all open steps; ready for the next series then. */
MUST_CHECK enum err_code cascade_end(struct cascade *c, struct err *err);

int64_t cascade_step_of(unsigned level, int64_t ts_ns); /* start of the step that has it */

#endif
