/*
 * DWARF: functions, inlined calls and lines of an ELF file become segments of a symbol index.
 *
 * Versions 2 to 5, in .debug_info and what belongs to it. References into a dwz file are followed
 * if the caller has that file. Type units and partial units have no code and are not walked. Split
 * units (.dwo) are counted; only their skeleton is read.
 *
 * A segment needs a function. A line outside of all functions (assembly) is not added, so that
 * the symbol table names it. A function's address without a line has file SYMINDEX_NONE, line 0.
 *
 * Units:     addresses are the binary's own.
 * Errors:    ERR_LIMIT (the builder's, or the file asks for too much work), ERR_NOMEM, what
 *            elf_section gives. A damaged unit is no error: it is skipped and counted.
 * Ownership: nothing is kept; the builder copies.
 * Threads:   one per builder and per elf.
 * Source:    the DWARF standard, versions 2 to 5; GNU's extensions of dwz.
 */
#ifndef TSDB_DEBUGINFO_DWARF_DWARF_H
#define TSDB_DEBUGINFO_DWARF_DWARF_H

#include "tsdb/debuginfo/elf/elf.h"
#include "tsdb/debuginfo/index/symindex.h"

struct dwarf_stats {
	uint64_t units; /* all that have a header */
	uint64_t units_damaged; /* skipped; the first one's error is below */
	uint64_t units_split; /* their functions are in a .dwo file, which is not read */
	uint64_t units_without_code; /* partial and type units */
	uint64_t references_lost; /* names in a dwz file that is not there */
	uint64_t functions, inlined; /* with code */
	uint64_t rows; /* of line tables, those that change file or line */
	uint64_t segments;
	struct err first_error;
};

/* alt: the file that .gnu_debugaltlink names, or NULL. Writes *stats also where it fails. */
MUST_CHECK enum err_code dwarf_add(struct elf *e, struct elf *alt, struct symindex_builder *b,
	struct dwarf_stats *stats, struct err *err);

#endif
