/*
 * The parts of an index's file, and its header; private to this room. FORMAT.md says the same in
 * words.
 *
 * Errors:    ERR_CORRUPT, ERR_UNSUPPORTED.
 * Threads:   pure functions.
 */
#ifndef TSDB_DEBUGINFO_INDEX_FORMAT_H
#define TSDB_DEBUGINFO_INDEX_FORMAT_H

#include <endian.h>

#include "base/str.h"
#include "tsdb/debuginfo/index/symindex.h"

#define FORMAT_VERSION 2u /* 1 is read, too: it does not mark lost places */
#define FORMAT_HEADER_BYTES 448u
#define FORMAT_PAGE_LOG2 16
#define FORMAT_PAGE_BYTES ((size_t)1 << FORMAT_PAGE_LOG2)
#define FORMAT_COLUMNS 4
#define BLOCK_ENTRIES 16u /* of SECTION_SEGMENTS */

enum section_id {
	SECTION_SEGMENTS, /* entries, in blocks */
	SECTION_BLOCKS, /* start - base, offset in SECTION_SEGMENTS */
	SECTION_BUCKETS, /* the block at the start of each 2^bucket_shift addresses */
	SECTION_SCOPES, /* distance to the parent or 0, line of the call, function, file + 1 */
	SECTION_FUNCTIONS, /* offset of the name, of the raw one or 0, file + 1, line */
	SECTION_FILES, /* offset of the path */
	SECTION_STRINGS, /* each its length as a varint, and its bytes */
	SECTION_LOADS, /* address, offset, bytes, enum load_bits */
	SECTIONS
};

/* What the first varint of an entry says in its low bits; above them, how far its start is from the
 * entry before it. */
enum entry_tag {
	ENTRY_SAME, /* scope as before; then line */
	ENTRY_SCOPE, /* then scope, line */
	ENTRY_BACK, /* the scope before the present one; then line */
	ENTRY_GAP, /* no name */
};

enum load_bits { LOAD_EXECUTABLE = 1, LOAD_LOST = 2 };

struct section {
	uint64_t offset, bytes, count;
	unsigned width[FORMAT_COLUMNS]; /* bits of each column of a table */
	unsigned record; /* their sum */
};

struct header {
	unsigned version;
	enum symindex_quality best;
	uint64_t total; /* bytes of the index */
	uint64_t base, end; /* addresses */
	unsigned bucket_shift;
	struct str build_id;
	struct section section[SECTIONS];
	uint64_t pages; /* of data: between header and the pages' hashes */
};

/* FORMAT_HEADER_BYTES, without checksums. */
void header_write(unsigned char *to, const struct header *h);
/* Writes the checksums of an index, whose last bytes are room for those of its pages. */
void format_seal(unsigned char *index, size_t len);
/* Checks all of it, and of the sections that they are within the data. */
MUST_CHECK enum err_code header_read(struct str bytes, struct header *h, struct err *err);

/* How many pages an index has, with and without their checksums. */
uint64_t pages_of_total(uint64_t total);
uint64_t pages_of_data(uint64_t data);
uint64_t page_hash(struct str data, uint64_t page); /* of the data */

static inline uint64_t symindex_load_u64(const void *bytes)
{
	uint64_t v;

	memcpy(&v, bytes, sizeof(v));
	return le64toh(v);
}

/* A column of a record; at least 8 bytes can be read behind the section. */
static inline uint64_t symindex_packed_get(const char *table, uint64_t bit, unsigned width)
{
	uint64_t v;

	if (width > 32)
		return symindex_packed_get(table, bit, 32) |
			symindex_packed_get(table, bit + 32, width - 32) << 32;
	v = symindex_load_u64(table + (bit >> 3)) >> (bit & 7);
	return v & ((UINT64_C(1) << width) - 1);
}

#endif
