/*
 * DWARF: functions, inlined calls and lines of an ELF file become segments of a symbol index.
 *
 * Versions 2 to 5, in .debug_info and what belongs to it. References into a dwz file are followed
 * if the caller has that file. Units of split DWARF are read in .dwo files and packages (.dwp), if
 * the caller has them. Type units and partial units have no code and are not walked.
 *
 * A segment needs a function. A line outside of all functions (assembly, a skeleton without its
 * unit) has the symbol at its address, and quality SYMINDEX_LINES; where there is no symbol it is
 * not added. What a skeleton itself says (-fsplit-dwarf-inlining) has this quality, too, so that
 * the unit wins over it if it comes in another file of the same binary. A function's address
 * without a line has file SYMINDEX_NONE, line 0.
 *
 * Units:     addresses are the binary's own.
 * Errors:    ERR_LIMIT (the builder's, or the file asks for too much work), ERR_NOMEM, what
 *            elf_section gives. A damaged unit, and a dwz file, .dwo file or package that is
 *            damaged or beyond a limit, are no error: they are left out and counted.
 * Ownership: nothing is kept; the builder copies.
 * Threads:   one per builder and per elf.
 * Source:    the DWARF standard, versions 2 to 5; GNU's extensions of dwz and of split DWARF 4.
 */
#ifndef TSDB_DEBUGINFO_DWARF_DWARF_H
#define TSDB_DEBUGINFO_DWARF_DWARF_H

#include "tsdb/debuginfo/elf/bundle.h"
#include "tsdb/debuginfo/elf/elf.h"
#include "tsdb/debuginfo/index/symindex.h"

struct dwarf_stats {
	uint64_t units; /* of the binary, all that have a header */
	uint64_t units_damaged; /* skipped; the first one's error is below */
	uint64_t units_split; /* the binary has a skeleton of them */
	uint64_t units_split_found; /* of these: read in a .dwo file or a package */
	uint64_t files_damaged; /* .dwo files, packages and the dwz file, where they were left out */
	uint64_t units_without_code; /* partial and type units */
	uint64_t references_lost; /* names in a dwz file that is not there */
	uint64_t functions, inlined; /* with code */
	uint64_t rows; /* of line tables, those that change file or line */
	uint64_t segments;
	struct err first_error; /* of a unit or such a file; its code 0: none */
};

/*
 * alt: the file that .gnu_debugaltlink names, or NULL. split: .dwo files and packages among the
 * files of a bundle, or NULL. Writes *stats also where it fails.
 */
MUST_CHECK enum err_code dwarf_add(struct elf *e, struct elf *alt, const struct bundle *split,
	struct symindex_builder *b, struct dwarf_stats *stats, struct err *err);

#endif
