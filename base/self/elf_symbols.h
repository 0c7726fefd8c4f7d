/*
 * ELF symbols: which function an address of a program file belongs to.
 *
 * Reads .symtab of a file, or .dynsym if that is all.
 *
 * Units:     addresses as in the file (before loading), sizes in bytes.
 * Errors:    ERR_NOT_FOUND, ERR_IO, ERR_INVALID (not a 64-bit ELF file, or a table beyond its end).
 * Ownership: elf_symbols_open hands *out to the caller.
 * Threads:   immutable once open.
 * Source:    System V gABI, chapters 4 and 5.
 */
#ifndef BASE_SELF_ELF_SYMBOLS_H
#define BASE_SELF_ELF_SYMBOLS_H

#include "base/str.h"

struct elf_symbols;

MUST_CHECK enum err_code elf_symbols_open(
	const char *path, struct elf_symbols **out, struct err *err);
void elf_symbols_close(struct elf_symbols *s); /* NULL is fine */
/* The name as in the table, "" when no function covers the address. */
struct str elf_symbols_find(const struct elf_symbols *s, uint64_t address);
/* Hexadecimal, "" when the file has none. */
struct str elf_symbols_build_id(const struct elf_symbols *s);
/* The program's own file: /proc/self/exe, or, without /proc, the path it was started by. */
const char *elf_own_path(void);

/* Appends the name for people: _ZN7leveldb6DBImpl5WriteE... gives leveldb::DBImpl::Write. */
void elf_demangle(struct buf *out, struct str symbol);

#endif
