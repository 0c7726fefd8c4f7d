/*
 * The parts of an open ELF file that this room's files share: headers read in place, with every
 * offset checked, and notes.
 */
#ifndef TSDB_DEBUGINFO_ELF_INTERNAL_H
#define TSDB_DEBUGINFO_ELF_INTERNAL_H

#include "tsdb/debuginfo/elf/elf.h"

struct elf_section {
	uint32_t name, type, link, info;
	uint64_t flags, address, offset, size, entry_bytes;
};

struct elf_segment {
	uint32_t type, flags;
	uint64_t offset, address, file_bytes, memory_bytes;
};

struct elf_inflated {
	struct elf_inflated *next;
	uint64_t section;
	struct str bytes;
};

/* What the bytes are. */
enum elf_form {
	ELF_WHOLE,
	ELF_HEAD, /* the file goes on behind them */
	ELF_SPLIT, /* an object file will do, too */
};

struct elf {
	struct str bytes;
	struct elf_limits limits;
	enum elf_form form;
	bool wide; /* 64 bits */
	unsigned type, machine;
	uint64_t sections_at, segments_at;
	uint64_t sections_n, segments_n;
	struct str section_names;
	struct elf_inflated *inflated;
	uint64_t inflated_sum;
	struct elf *mini; /* of .gnu_debugdata, once it was asked for */
	char *mini_bytes;
};

static inline uint16_t elf_u16_at(const char *text)
{
	uint16_t v;

	memcpy(&v, text, sizeof(v));
	return v;
}

static inline uint32_t elf_u32_at(const char *text)
{
	uint32_t v;

	memcpy(&v, text, sizeof(v));
	return v;
}

static inline uint64_t elf_u64_at(const char *text)
{
	uint64_t v;

	memcpy(&v, text, sizeof(v));
	return v;
}

/* Bytes [offset, offset + n) of a string, or "" where they are not all in it. */
struct str str_part(struct str s, uint64_t offset, uint64_t n);
/* The NUL-terminated string at an offset; "" where it begins or ends beyond. */
struct str str_text(struct str s, uint64_t offset);

/* i < sections_n, i < segments_n */
struct elf_section section_at(const struct elf *e, uint64_t i);
struct elf_segment segment_at(const struct elf *e, uint64_t i);
struct str section_name(const struct elf *e, const struct elf_section *s);
/* The number of the first section of this name, or sections_n. */
uint64_t section_find(const struct elf *e, const char *name);
uint64_t section_find_from(const struct elf *e, const char *name, uint64_t i); /* at or behind i */
/* Contents as they are in the file, "" where it has none. */
struct str section_raw(const struct elf *e, const struct elf_section *s);
/* Contents, inflated. */
MUST_CHECK enum err_code section_contents(
	struct elf *e, uint64_t i, struct str *out, struct err *err);

/* The ELF file in .gnu_debugdata, or NULL. It is closed with e. */
MUST_CHECK enum err_code elf_mini(struct elf *e, struct elf **out, struct err *err);

#endif
