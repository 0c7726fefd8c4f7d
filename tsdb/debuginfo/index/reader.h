/*
 * Reading of an index's verified bytes, for the look-ups (reader.c) and for the walk over all of it
 * (merge.c); private to this room. What returns false has met damage, which symindex_damaged says.
 *
 * Threads: any.
 */
#ifndef TSDB_DEBUGINFO_INDEX_READER_H
#define TSDB_DEBUGINFO_INDEX_READER_H

#include <stdatomic.h>

#include "tsdb/debuginfo/index/format.h"

enum page_state { PAGE_NEW, PAGE_SOUND, PAGE_DAMAGED };

/* Changes while an index is read. */
struct symindex_reading {
	_Atomic uint64_t faults; /* wrong contents under right checksums */
	/* enum page_state. Two threads may verify one page at once, and find the same. */
	_Atomic unsigned char pages[];
};

struct symindex {
	struct str bytes;
	struct header h;
	const char *section[SECTIONS];
	struct symindex_reading *reading;
};

struct symindex_record {
	uint64_t v[FORMAT_COLUMNS];
};

/* Counts wrong contents under right checksums; false. */
bool symindex_fault(const struct symindex *s);
bool symindex_get_record(
	const struct symindex *symindex, enum section_id id, uint64_t i, struct symindex_record *out);
/* At an offset of SECTION_STRINGS. */
bool symindex_get_string(const struct symindex *symindex, uint64_t offset, struct str *out);

struct symindex_block {
	uint64_t offset; /* start of its first entry - base */
	struct str entries;
};
bool symindex_get_block(const struct symindex *symindex, uint64_t i, struct symindex_block *out);

/* What an entry says of its addresses. */
struct symindex_place {
	uint64_t scope, line;
	bool gap;
};

/* The rest of an entry behind its head. Both are zero at a block's begin; c->bad: it is cut. */
static inline void symindex_take_entry(
	struct cursor *c, uint64_t head, struct symindex_place *now, struct symindex_place *back)
{
	struct symindex_place was;

	now->gap = (head & 3) == ENTRY_GAP;
	switch ((enum entry_tag)(head & 3)) {
	case ENTRY_GAP:
		return;
	case ENTRY_SAME:
		break;
	case ENTRY_SCOPE:
		*back = *now;
		now->scope += (uint64_t)str_unzigzag(cursor_varint(c));
		break;
	case ENTRY_BACK:
		was = *now;
		*now = *back;
		*back = was;
		now->gap = false;
		break;
	}
	now->line += (uint64_t)str_unzigzag(cursor_varint(c));
}

#endif
