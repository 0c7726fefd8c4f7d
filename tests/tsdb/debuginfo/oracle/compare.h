/*
 * Names, files, lines and inlined calls of a binary's addresses as we read them, beside what
 * addr2line or llvm-symbolizer prints.
 *
 * Addresses are the starts of segments (found by looking up each byte of the code), the byte before
 * each, and others all over the code. None is asked for twice.
 */
#ifndef TESTS_TSDB_DEBUGINFO_ORACLE_COMPARE_H
#define TESTS_TSDB_DEBUGINFO_ORACLE_COMPARE_H

#include <stdint.h>

#include "tsdb/debuginfo/dwarf/dwarf.h"

enum oracle {
	ORACLE_ADDR2LINE,
	ORACLE_LLVM,
	ORACLE_LLVM_SYMBOLS, /* the index has the symbol table's names too, so they are compared */
};

struct oracle_counts {
	uint64_t addresses, equal;
	uint64_t named; /* of the addresses, by us */
	uint64_t by_symbol; /* equal but for a name that the other takes from the symbol table */
	uint64_t outside; /* not in addresses: between functions, named by addr2line all the same */
	uint64_t depth, function, file, line, missing; /* why the others differ */
};

/* The index of an ELF file's bytes; alt_bytes: of its dwz file, or empty. */
MUST_CHECK enum err_code oracle_index_bytes(struct str bytes, struct str alt_bytes,
	struct dwarf_stats *stats, struct buf *index, struct err *err);
/* The index of a file; alt_path: its dwz file, or NULL. */
MUST_CHECK enum err_code oracle_index(const char *path, const char *alt_path,
	struct dwarf_stats *stats, struct buf *index, struct err *err);
/* Adds to *counts. At most `most` addresses. */
MUST_CHECK enum err_code oracle_compare(const char *path, enum oracle tool, uint32_t most,
	unsigned show, struct oracle_counts *counts, struct err *err);
/* The same of an index that was made otherwise; the tool reads `path`. */
MUST_CHECK enum err_code oracle_compare_index(struct str index, const char *path, enum oracle tool,
	uint32_t most, unsigned show, struct oracle_counts *counts, struct err *err);

#endif
