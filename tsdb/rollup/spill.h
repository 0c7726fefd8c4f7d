/*
 * Spill: records that are written once, in order, and read back soon after, by offset;
 * small ones stay in memory, more goes to a file without a name.
 *
 * Errors:  ERR_IO, ERR_NOMEM.
 * Threads: one.
 */
#ifndef TSDB_ROLLUP_SPILL_H
#define TSDB_ROLLUP_SPILL_H

#include "base/fs.h"

#define SPILL_MEMORY_BYTES (1u << 20)

struct spill {
	struct fs *fs;
	const char *path; /* where the file is made, and unlinked at once; the caller's */
	int fd; /* -1: none yet */
	uint64_t written; /* bytes in the file; what comes later is in memory */
	struct buf memory;
};

void spill_init(struct spill *s, struct fs *fs, const char *path);
void spill_release(struct spill *s);
/* Empty again. */
MUST_CHECK enum err_code spill_clear(struct spill *s, struct err *err);
uint64_t spill_bytes(const struct spill *s);
MUST_CHECK enum err_code spill_add(struct spill *s, struct str bytes, struct err *err);
/* [at, at + n), into *out, which is cleared first. */
MUST_CHECK enum err_code spill_read(
	struct spill *s, uint64_t at, size_t n, struct buf *out, struct err *err);

#endif
