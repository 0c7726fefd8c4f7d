/*
 * Symbol index: what the addresses of one binary are called. For each address the function, the
 * calls that were inlined there, files and lines. Made once of a binary's debug data, then
 * immutable; read in place.
 *
 *	builder: symindex_function, symindex_frame, symindex_add ...; symindex_finish
 *	reader:  symindex_open, symindex_find ...; symindex_close
 *
 * A frame is a function at a line, and the frame that it was inlined into (whose line is that of
 * the call). The builder keeps each frame once. A segment is a range of addresses that share one
 * frame, so a look-up is one search and a walk to the outermost function, however deep the calls
 * are.
 *
 * Where segments overlap, each address has the one of the best quality; of these one that is not of
 * another index (symindex_add_index); of these the narrowest; of these the one that begins last; of
 *these (the same range) the one with more inlined calls, then the one whose contents hash lower. So
 *the index does not depend on the order of the calls.
 *
 * Units:     addresses are the binary's own, as it was linked (ELF virtual addresses).
 * Errors:    ERR_LIMIT (which one), ERR_NOMEM; symindex_open: ERR_CORRUPT, ERR_UNSUPPORTED (a
 *            newer version). After an error a builder can only be closed. Pages are verified when
 *            they are first read: see symindex_damaged.
 * Ownership: strings of a reader are in its bytes, which the caller keeps; those of a builder are
 *            copied.
 * Threads:   a builder has one; a reader any number.
 * Source:    FORMAT.md beside this file.
 */
#ifndef TSDB_DEBUGINFO_INDEX_SYMINDEX_H
#define TSDB_DEBUGINFO_INDEX_SYMINDEX_H

#include "base/str.h"

#define SYMINDEX_NONE UINT32_MAX

/* Where a segment comes from. Where two overlap the greater counts. */
enum symindex_quality {
	SYMINDEX_SYMBOLS = 1, /* .symtab, .dynsym: names alone */
	/* Go's pclntab; rows of .debug_line without DWARF's functions, which have a symbol's name. */
	SYMINDEX_LINES,
	SYMINDEX_DWARF,
};

struct symindex_limits {
	size_t strings_bytes_max, segments_max, frames_max, functions_max;
};

/* Longer names and paths are cut here. */
#define SYMINDEX_STRING_MAX (64u << 10)
/*
 * Inlined calls around an address, with the function. A deeper frame is ERR_LIMIT, and the builder
 * is as before: the caller may go on without it.
 */
#define SYMINDEX_DEPTH_MAX 1000u
#define SYMINDEX_BUILD_ID_MAX 128u
#define SYMINDEX_LOADS_MAX 64u

extern const struct symindex_limits symindex_limits_default;

struct symindex_builder;

MUST_CHECK enum err_code symindex_builder_open(
	const struct symindex_limits *l, struct symindex_builder **out, struct err *err);
void symindex_builder_close(struct symindex_builder *b); /* NULL is fine */

/* The number of a path; the same path has the same number. */
MUST_CHECK enum err_code symindex_file(
	struct symindex_builder *b, struct str path, uint32_t *out, struct err *err);
/* raw: as the linker sees it; the builder demangles it. file SYMINDEX_NONE, line 0: not known. */
MUST_CHECK enum err_code symindex_function(struct symindex_builder *b, struct str raw,
	uint32_t file, uint32_t start_line, uint32_t *out, struct err *err);
/*
 * parent: the frame it is inlined into, or SYMINDEX_NONE. The same frame has the same number.
 * file: of the line; SYMINDEX_NONE: not known.
 */
MUST_CHECK enum err_code symindex_frame(struct symindex_builder *b, uint32_t parent,
	uint32_t function, uint32_t file, uint32_t line, uint32_t *out, struct err *err);
/* [start, end) has the frame; in any order, cheapest in ascending order. An empty range is none. */
MUST_CHECK enum err_code symindex_add(struct symindex_builder *b, uint64_t start, uint64_t end,
	uint32_t frame, enum symindex_quality q, struct err *err);
/* Of what was added; 0: no address has a name yet. */
enum symindex_quality symindex_builder_best(const struct symindex_builder *b);
/*
 * A segment of the binary that is loaded (PT_LOAD). In files of debug data alone they have lost
 * their places in the binary: offset is 0 then, and bytes are those in memory (0: not known).
 */
struct symindex_load {
	uint64_t offset, bytes; /* in the binary */
	uint64_t address;
	bool executable;
	bool lost;
};
MUST_CHECK enum err_code symindex_load(
	struct symindex_builder *b, const struct symindex_load *l, struct err *err);
struct symindex;
/*
 * Adds what an index of another file of the same binary says, behind all else: segments where
 * nothing as good was added, and the places of loads that are lost or missing here. ERR_CORRUPT:
 * it is damaged, and the builder has a part of it.
 */
MUST_CHECK enum err_code symindex_add_index(
	struct symindex_builder *b, const struct symindex *from, struct err *err);
/* Writes the index behind *out's bytes. The builder can only be closed then. */
MUST_CHECK enum err_code symindex_finish(
	struct symindex_builder *b, struct str build_id, struct buf *out, struct err *err);

MUST_CHECK enum err_code symindex_open(struct str bytes, struct symindex **out, struct err *err);
void symindex_close(struct symindex *s); /* NULL is fine */
struct str symindex_build_id(const struct symindex *s);
enum symindex_quality symindex_best(const struct symindex *s);

/* How many loads there are, by ascending address; false: there are not that many, or damage. */
uint32_t symindex_loads(const struct symindex *s);
bool symindex_load_at(const struct symindex *s, uint32_t i, struct symindex_load *out);
/*
 * The address of a byte of the binary that a process has mapped: mapping_offset is the file offset
 * of the mapping's start, a multiple of a page (4 KiB). The load that holds the byte says; of two
 * the executable one. Where it has lost its place and is the only executable one, the mapping is
 * taken to be this load from its page on. False: not known.
 */
bool symindex_address(const struct symindex *s, uint64_t mapping_offset, uint64_t offset_in_mapping,
	uint64_t *address);

/*
 * A mapping that begins at this offset of its file is as large as what the binary loads there;
 * where the place is lost, as large as a load. So a binary without a build id is known by its name
 * and size.
 */
bool symindex_is_mapped_as(
	const struct symindex *s, uint64_t mapping_offset, uint64_t mapping_bytes);

struct symindex_location {
	struct str name, raw; /* for people; as in the binary */
	struct str file; /* "": not known */
	uint32_t line, start_line; /* 0: not known */
};
/*
 * Leaf first; returns how many there are, of which at most max are written. 0: no name is known, or
 * the name is in a damaged page. A damaged page never gives a name.
 */
size_t symindex_find(
	const struct symindex *s, uint64_t address, struct symindex_location *l, size_t max);
/* Verifies all pages; as symindex_damaged. */
MUST_CHECK enum err_code symindex_verify_all(const struct symindex *s, struct err *err);
/*
 * ERR_OK: all that was read so far is sound. ERR_CORRUPT: *err says how many pages are damaged,
 * or that contents are wrong under a right checksum; some answers of symindex_find were 0 for it.
 */
MUST_CHECK enum err_code symindex_damaged(const struct symindex *s, struct err *err);

#endif
