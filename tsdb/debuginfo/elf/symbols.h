/*
 * Symbols of an ELF file: names of functions, for an index of the binary.
 *
 * From .symtab, or, where a file has none, from .dynsym and the file in .gnu_debugdata. Functions
 * only (STT_FUNC, STT_GNU_IFUNC) that are defined here, and names without a type that lie in code
 * and in no function that has a size (assembler sources). One without a size ends where the next
 * begins, or with its section. Of several at one address one is taken: a function over a name
 * without a type, a global over a weak over a local one, then one with a size, then the shorter
 * name, then the first in byte order.
 *
 * Units:     addresses are virtual ones, as the file was linked.
 * Errors:    ERR_INVALID (a table is beyond the file, does not inflate), ERR_LIMIT (which one;
 *            also the builder's), ERR_NOMEM. No symbols is not an error.
 * Threads:   one at a time per file and builder.
 * Source:    System V gABI, "Symbol Table".
 */
#ifndef TSDB_DEBUGINFO_ELF_SYMBOLS_H
#define TSDB_DEBUGINFO_ELF_SYMBOLS_H

#include "tsdb/debuginfo/elf/elf.h"
#include "tsdb/debuginfo/index/symindex.h"

MUST_CHECK enum err_code elf_symbols_add(
	struct elf *e, struct symindex_builder *b, struct err *err);

/*
 * The same symbols for look-ups by address. Where they overlap, the one that begins last counts.
 * Their names point into the file; symbol_map_close comes before elf_close.
 */
struct symbol_map;
MUST_CHECK enum err_code symbol_map_open(struct elf *e, struct symbol_map **out, struct err *err);
void symbol_map_close(struct symbol_map *s); /* NULL is fine */
/* *end: where the answer changes, UINT64_MAX: nowhere. False: no symbol. */
bool symbol_map_find(const struct symbol_map *s, uint64_t address, struct str *name, uint64_t *end);

/*
 * Adds the stubs through which functions of other files are called, "memcpy@plt": x86-64 and
 * AArch64, in the layouts of GNU ld. Of another layout nothing is added.
 */
MUST_CHECK enum err_code elf_stubs_add(struct elf *e, struct symindex_builder *b, struct err *err);

#endif
