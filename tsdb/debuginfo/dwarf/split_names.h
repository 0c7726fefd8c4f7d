/*
 * Split DWARF, seen from the sender: which .dwo files a binary names, and which units a .dwo or
 * .dwp file has. Nothing else is read of them.
 *
 * Units:     ids are the 8 bytes by which a skeleton finds its unit.
 * Errors:    ERR_INVALID (a .dwp file's index is damaged), ERR_LIMIT, ERR_NOMEM, what elf_section
 *            gives; and what `each` returns, which ends the walk. Units that are damaged, and
 *            skeletons without a name, are passed over.
 * Ownership: what `each` gets lives as long as the ELF file is open.
 * Threads:   one per elf.
 * Source:    DWARF 5, 3.1.2 (skeletons), 7.3.5 (package files); GNU's extensions of DWARF 4
 *            (DebugFission, DebugFissionDWP).
 */
#ifndef TSDB_DEBUGINFO_DWARF_SPLIT_NAMES_H
#define TSDB_DEBUGINFO_DWARF_SPLIT_NAMES_H

#include "tsdb/debuginfo/elf/elf.h"

struct dwarf_split {
	uint64_t id;
	struct str name; /* of the .dwo file, absolute or below the folder */
	struct str folder; /* DW_AT_comp_dir; "": not known */
};

/* The skeletons of a binary or of its file of debug data, in their order. */
MUST_CHECK enum err_code dwarf_each_split(struct elf *e,
	enum err_code (*each)(void *ctx, const struct dwarf_split *s, struct err *err), void *ctx,
	struct err *err);

/* The ids of the units in a .dwo or .dwp file. */
MUST_CHECK enum err_code dwarf_each_split_id(struct elf *e,
	enum err_code (*each)(void *ctx, uint64_t id, struct err *err), void *ctx, struct err *err);

#endif
