/*
 * Pclntab: Go's table of functions, files, lines and inlined calls, which is in each Go program,
 * also in stripped ones. It becomes segments of a symbol index, of quality SYMINDEX_LINES.
 *
 * Tables of Go 1.2, 1.16, 1.18 and 1.20 (so up to 1.26). Inlined calls since 1.18: older tables
 * give the file and line of the inlined code and the name of the function around it. Lines where
 * functions begin since 1.20.
 *
 * Units:     addresses are virtual ones, as the file was linked.
 * Errors:    ERR_INVALID (the table is damaged, or where its code is cannot be found),
 *            ERR_LIMIT (the builder's, or the table asks for too much work), ERR_NOMEM. No table is
 *            no error, nor is a damaged function, which is counted.
 * Ownership: nothing is kept; the builder copies.
 * Threads:   one per builder and per elf.
 * Source:    golang.org/s/go12symtab; Go's runtime/symtab.go, debug/gosym.
 */
#ifndef TSDB_DEBUGINFO_PCLNTAB_PCLNTAB_H
#define TSDB_DEBUGINFO_PCLNTAB_PCLNTAB_H

#include "tsdb/debuginfo/elf/elf.h"
#include "tsdb/debuginfo/index/symindex.h"

struct pclntab_stats {
	bool found; /* a table */
	bool inlined; /* its inlined calls are read */
	uint64_t functions, functions_damaged;
	uint64_t segments;
};

/* Writes *stats also where it fails. */
MUST_CHECK enum err_code pclntab_add(
	struct elf *e, struct symindex_builder *b, struct pclntab_stats *stats, struct err *err);

#endif
