/*
 * ELF files: sections, build ids, links to other files, addresses. Little-endian, 32 and 64 bits,
 * linked: programs, shared objects, their debug files. Bytes are read in place and are not trusted.
 *
 * Units:     addresses are virtual ones, as the file was linked; offsets count from its start.
 * Errors:    ERR_INVALID (not ELF, and what it seems to be; or which part lies beyond the file);
 *            ERR_UNSUPPORTED (big-endian, not linked, a core dump, an unknown compression);
 *            ERR_LIMIT (which one); ERR_NOMEM.
 * Ownership: the caller keeps the bytes until elf_close. All that is returned points into them or
 *            into what was inflated, and lives until elf_close.
 * Threads:   one at a time.
 * Source:    System V gABI, chapters 4 and 5; GNU gABI's notes; GDB's "Separate Debug Files" and
 *            "MiniDebugInfo".
 */
#ifndef TSDB_DEBUGINFO_ELF_ELF_H
#define TSDB_DEBUGINFO_ELF_ELF_H

#include "base/str.h"

struct elf;

struct elf_limits {
	uint64_t inflated_bytes_max; /* the sum of a file */
	uint64_t inflated_ratio_max; /* that sum by the size of the file; the first MiB is free */
	uint64_t mini_bytes_max; /* .gnu_debugdata inflated */
	uint64_t mini_memory_max; /* that xz may take to inflate it */
};
extern const struct elf_limits elf_limits_default;

MUST_CHECK enum err_code elf_open(struct str bytes, struct elf **out, struct err *err);
/* elf_open with other limits; l is copied. */
MUST_CHECK enum err_code elf_open_limited(
	struct str bytes, const struct elf_limits *l, struct elf **out, struct err *err);
/*
 * The first bytes of a file that goes on behind them. Tables that lie beyond them are taken for
 * absent: BOLT puts the one of segments behind all of the old program, at a multiple of 2 MiB.
 */
MUST_CHECK enum err_code elf_open_head(struct str bytes, struct elf **out, struct err *err);
/*
 * elf_open for files beside a binary that hold units of split DWARF: an object file will do, though
 * it is not linked. Its .dwo sections have nothing to relocate; the others are not to be read.
 */
MUST_CHECK enum err_code elf_open_split(
	struct str bytes, const struct elf_limits *l, struct elf **out, struct err *err);
void elf_close(struct elf *e); /* NULL is fine */

uint64_t elf_file_bytes(const struct elf *e);
bool elf_is_little(const struct elf *e); /* always: others are refused */
unsigned elf_address_bytes(const struct elf *e); /* 4 or 8 */
unsigned elf_machine(const struct elf *e); /* EM_X86_64, EM_AARCH64 ... of <elf.h> */

/*
 * A section's contents, inflated if it is compressed (SHF_COMPRESSED with zlib or zstd, or its old
 * form: ".debug_info" finds ".zdebug_info" too). len 0: there is none, or it has no bytes here.
 */
MUST_CHECK enum err_code elf_section(
	struct elf *e, const char *name, struct str *out, struct err *err);

/*
 * The same of files that have several sections of a name, as GCC's .dwo files with units of types:
 * the next one at or behind *at, from 0 on, which goes on. *found: false behind the last.
 */
MUST_CHECK enum err_code elf_section_next(
	struct elf *e, const char *name, uint64_t *at, struct str *out, bool *found, struct err *err);

/* Where a section is in memory. False: there is none, or it is not loaded. */
bool elf_section_place(const struct elf *e, const char *name, uint64_t *address, uint64_t *bytes);
/* False: the file is stripped of its section headers, too. */
bool elf_has_sections(const struct elf *e);

/* What the file is good for. Debug data is DWARF or .symtab. */
enum elf_content {
	ELF_STRIPPED, /* no debug data; Go's table of functions may be there, which none takes out */
	ELF_NO_TEXT, /* debug data, the code is in another file */
	ELF_FULL, /* both */
};
enum elf_content elf_content(const struct elf *e);

/* Bytes, not hexadecimal. "": none. Those of notes in sections come before those of segments. */
struct str elf_build_id(const struct elf *e); /* GNU's */
struct str elf_go_build_id(const struct elf *e);
/*
 * GNU's by its looks, of a head whose table of segments is beyond it: the first bytes that can be
 * such a note, which linkers put on the first pages. The whole file says whether it is right.
 */
struct str elf_likely_build_id(const struct elf *e);

struct elf_link {
	struct str name; /* of a file, without a folder; the alternative one's may have it */
	uint32_t crc; /* CRC-32 of that file (.gnu_debuglink) */
	struct str build_id; /* of that file (.gnu_debugaltlink, .debug_sup) */
};
/* False: there is none, or it is damaged. */
bool elf_debug_link(struct elf *e, struct elf_link *out); /* the file of the debug data */
bool elf_alternative_link(struct elf *e, struct elf_link *out); /* what dwz took out of several */
/* What such a link calls this file: its build id, else the id in its .debug_sup; "": neither. */
struct str elf_alternative_id(struct elf *e);

/* A segment that is loaded. Files of debug data alone have lost offset and file_bytes. */
struct elf_load {
	uint64_t offset, file_bytes;
	uint64_t address, memory_bytes;
	bool executable, writable;
};
/* The next one at or behind *at, from 0 on, which goes on. False: there is none. */
bool elf_load_next(const struct elf *e, uint64_t *at, struct elf_load *out);
/* The file's bytes from an address to the end of its load; "": there are none. */
struct str elf_bytes_at(const struct elf *e, uint64_t address);

/*
 * The virtual address of a byte of the file, and the reverse, by the segments that are loaded.
 * Where two segments hold an offset, the executable one counts. False: no segment holds it; so in
 * debug files whose segments have lost their sizes.
 */
bool elf_address_at(const struct elf *e, uint64_t offset, uint64_t *address);
bool elf_offset_at(const struct elf *e, uint64_t address, uint64_t *offset);
/*
 * The virtual address of an address of a process that has mapped the file's bytes from file_offset
 * on to memory_start.
 */
bool elf_address_of(const struct elf *e, uint64_t process_address, uint64_t memory_start,
	uint64_t file_offset, uint64_t *address);

#endif
