/*
 * Bundle: a binary and the files that hold parts of its debug data, behind each other. A binary
 * alone is a bundle of one, so whoever reads binaries reads bundles.
 *
 *	the binary, as it is
 *	each other file, as it is, from a multiple of 8 bytes on; zero bytes before it
 *	a table from a multiple of 8 bytes on; for each file: what it is, offset, bytes (u64 each)
 *	how many files the table has (u64)
 *	"epibndl1"
 *
 * Numbers are little-endian. Readers of ELF files do not look behind their sections, so a bundle is
 * an ELF file, too, and it can be written without reading one.
 *
 * Units:     bytes, from the first of the binary.
 * Errors:    ERR_INVALID (what is wrong with the table), ERR_LIMIT (too many files), ERR_NOMEM.
 * Ownership: the reader points into the caller's bytes.
 * Threads:   any; a writer has one.
 */
#ifndef TSDB_DEBUGINFO_ELF_BUNDLE_H
#define TSDB_DEBUGINFO_ELF_BUNDLE_H

#include "base/str.h"

#define BUNDLE_FILES_MAX (1u << 16)

/* What a file is to the binary. */
enum bundle_kind {
	BUNDLE_DWO, /* units of split DWARF, as the compiler wrote them */
	BUNDLE_DWP, /* units of many .dwo files in one */
	BUNDLE_ALT, /* what dwz took out of several binaries (.gnu_debugaltlink) */
	BUNDLE_KINDS,
};

struct bundle {
	struct str binary; /* with the zero bytes before the first file */
	size_t files_n;
	struct str bytes, table; /* private */
};

MUST_CHECK enum err_code bundle_open(struct str bytes, struct bundle *out, struct err *err);
/* i: less than files_n. */
struct str bundle_file(const struct bundle *b, size_t i, enum bundle_kind *kind);

/*
 * Writing: the binary's bytes go first. bundle_next says how many zero bytes go before the next
 * file's; bundle_end appends what goes behind the last: nothing, where there was none.
 */
struct bundle_writer {
	uint64_t at;
	size_t files_n;
	struct buf table;
};

void bundle_begin(struct bundle_writer *w, uint64_t binary_bytes);
MUST_CHECK enum err_code bundle_next(struct bundle_writer *w, enum bundle_kind kind, uint64_t bytes,
	size_t *padding, struct err *err);
/* The writer holds nothing then, also on an error. */
MUST_CHECK enum err_code bundle_end(struct bundle_writer *w, struct buf *out, struct err *err);
void bundle_release(struct bundle_writer *w); /* instead of bundle_end */

#endif
