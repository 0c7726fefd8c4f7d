#include <stdlib.h>

#include "tsdb/debuginfo/index/reader.h"

enum err_code symindex_open(struct str bytes, struct symindex **out, struct err *err)
{
	struct header h;
	struct symindex *x;
	enum err_code rc;

	if ((rc = header_read(bytes, &h, err)))
		return rc;
	x = calloc(1, sizeof(*x));
	if (!x || !(x->reading = calloc(1, sizeof(*x->reading) + h.pages))) {
		free(x);
		return err_nomem(err, "symbol index");
	}
	x->bytes = bytes;
	x->h = h;
	for (unsigned i = 0; i < SECTIONS; i++)
		x->section[i] = bytes.ptr + h.section[i].offset;
	*out = x;
	return ERR_OK;
}

void symindex_close(struct symindex *s)
{
	if (!s)
		return;
	free(s->reading);
	free(s);
}

struct str symindex_build_id(const struct symindex *s)
{
	return s->h.build_id;
}

enum symindex_quality symindex_best(const struct symindex *s)
{
	return s->h.best;
}

/* ---- reading of verified bytes ---- */

bool symindex_fault(const struct symindex *s)
{
	atomic_fetch_add_explicit(&s->reading->faults, 1, memory_order_relaxed);
	return false;
}

static bool symindex_verify(const struct symindex *s, uint64_t page)
{
	struct str data = { s->bytes.ptr + FORMAT_HEADER_BYTES,
		s->bytes.len - FORMAT_HEADER_BYTES - s->h.pages * 8 };
	bool sound = page_hash(data, page) ==
		symindex_load_u64(s->bytes.ptr + s->bytes.len - (s->h.pages - page) * 8);

	atomic_store_explicit(
		&s->reading->pages[page], sound ? PAGE_SOUND : PAGE_DAMAGED, memory_order_relaxed);
	return sound;
}

static unsigned char symindex_page_state(const struct symindex *s, uint64_t page)
{
	return atomic_load_explicit(&s->reading->pages[page], memory_order_relaxed);
}

static bool symindex_pages_readable(const struct symindex *s, uint64_t first, uint64_t last)
{
	for (uint64_t page = first; page <= last; page++) {
		unsigned char state = symindex_page_state(s, page);

		if (state == PAGE_SOUND)
			continue;
		if (state == PAGE_DAMAGED || !symindex_verify(s, page))
			return false;
	}
	return true;
}

/* [at, at + n), of the data, can be read: its pages are sound. n > 0. */
static inline bool symindex_readable(const struct symindex *s, const char *at, uint64_t n)
{
	uint64_t offset = (uint64_t)(at - s->bytes.ptr) - FORMAT_HEADER_BYTES;
	uint64_t first = offset >> FORMAT_PAGE_LOG2, last = (offset + n - 1) >> FORMAT_PAGE_LOG2;

	return (first == last && symindex_page_state(s, first) == PAGE_SOUND) ||
		symindex_pages_readable(s, first, last);
}

bool symindex_get_record(
	const struct symindex *symindex, enum section_id id, uint64_t i, struct symindex_record *out)
{
	const struct section *s = &symindex->h.section[id];
	uint64_t bit = i * s->record;

	if (i >= s->count)
		return symindex_fault(symindex);
	if (s->record &&
		!symindex_readable(
			symindex, symindex->section[id] + (bit >> 3), ((bit & 7) + s->record + 7) >> 3))
		return false;
	for (unsigned k = 0; k < FORMAT_COLUMNS; bit += s->width[k++])
		out->v[k] = symindex_packed_get(symindex->section[id], bit, s->width[k]);
	return true;
}

#define STRING_HEAD_MAX 3u /* bytes of its length */

bool symindex_get_string(const struct symindex *symindex, uint64_t offset, struct str *out)
{
	const struct section *s = &symindex->h.section[SECTION_STRINGS];
	struct cursor c;
	uint64_t left, head;

	if (offset >= s->bytes)
		return symindex_fault(symindex);
	left = s->bytes - offset;
	head = left < STRING_HEAD_MAX ? left : STRING_HEAD_MAX;
	if (!symindex_readable(symindex, symindex->section[SECTION_STRINGS] + offset, head))
		return false;
	c = cursor_of((struct str){ symindex->section[SECTION_STRINGS] + offset, (size_t)head });
	out->len = cursor_varint(&c);
	out->ptr = (const char *)c.at;
	if (c.bad ||
		out->len > left - (size_t)(out->ptr - (symindex->section[SECTION_STRINGS] + offset)))
		return symindex_fault(symindex);
	return !out->len || symindex_readable(symindex, out->ptr, out->len);
}

static bool symindex_get_file(const struct symindex *s, uint64_t file_plus_1, struct str *out)
{
	struct symindex_record r;

	*out = (struct str){ "", 0 };
	if (!file_plus_1)
		return true;
	return symindex_get_record(s, SECTION_FILES, file_plus_1 - 1, &r) &&
		symindex_get_string(s, r.v[0], out);
}

/* ---- loads ---- */

uint32_t symindex_loads(const struct symindex *s)
{
	return (uint32_t)s->h.section[SECTION_LOADS].count;
}

bool symindex_load_at(const struct symindex *s, uint32_t i, struct symindex_load *out)
{
	struct symindex_record r;

	if (i >= symindex_loads(s) || !symindex_get_record(s, SECTION_LOADS, i, &r))
		return false;
	if (r.v[3] > (LOAD_EXECUTABLE | LOAD_LOST))
		return symindex_fault(s);
	*out = (struct symindex_load){ .address = r.v[0],
		.offset = r.v[1],
		.bytes = r.v[2],
		.executable = r.v[3] & LOAD_EXECUTABLE,
		.lost = s->h.version == 1 ? !r.v[2] : (r.v[3] & LOAD_LOST) != 0 };
	return true;
}

#define MAPPING_PAGE_BYTES UINT64_C(4096)

static uint64_t symindex_page_of(uint64_t offset)
{
	return offset & ~(MAPPING_PAGE_BYTES - 1);
}

bool symindex_address(const struct symindex *s, uint64_t mapping_offset, uint64_t offset_in_mapping,
	uint64_t *address)
{
	struct symindex_load l, lost = { 0 }, best = { 0 };
	uint32_t executables = 0, loads = symindex_loads(s);
	uint64_t offset;

	if (__builtin_add_overflow(mapping_offset, offset_in_mapping, &offset))
		return false;
	for (uint32_t i = 0; i < loads; i++) {
		if (!symindex_load_at(s, i, &l))
			return false;
		if (!l.lost && offset >= l.offset && offset - l.offset < l.bytes &&
			(!best.bytes || (l.executable && !best.executable)))
			best = l;
		executables += l.executable;
		if (l.executable)
			lost = l;
	}
	if (best.bytes)
		return !__builtin_add_overflow(best.address, offset - best.offset, address);
	if (executables != 1 || !lost.lost || mapping_offset != symindex_page_of(mapping_offset))
		return false;
	return !__builtin_add_overflow(symindex_page_of(lost.address), offset_in_mapping, address);
}

bool symindex_is_mapped_as(
	const struct symindex *s, uint64_t mapping_offset, uint64_t mapping_bytes)
{
	struct symindex_load l;

	for (uint32_t i = 0; symindex_load_at(s, i, &l); i++) {
		/* Where the place is lost it has the same part of a page as the address. */
		uint64_t at = l.lost ? l.address : l.offset, first = symindex_page_of(at);

		if (l.executable && l.bytes && (l.lost || first == mapping_offset) &&
			mapping_bytes == symindex_page_of(at + l.bytes + MAPPING_PAGE_BYTES - 1) - first)
			return true;
	}
	return false;
}

/* ---- look-up ---- */

/* The last block that begins at or before an address, which is between base and end. */
static bool symindex_find_block(const struct symindex *s, uint64_t offset, uint64_t *block)
{
	uint64_t bucket = offset >> s->h.bucket_shift, low, high;
	struct symindex_record r;

	if (!symindex_get_record(s, SECTION_BUCKETS, bucket, &r))
		return false;
	low = r.v[0];
	high = s->h.section[SECTION_BLOCKS].count;
	if (bucket + 1 < s->h.section[SECTION_BUCKETS].count) {
		if (!symindex_get_record(s, SECTION_BUCKETS, bucket + 1, &r))
			return false;
		if (r.v[0] + 1 > high)
			return symindex_fault(s);
		high = r.v[0] + 1;
	}
	if (low >= high)
		return symindex_fault(s);
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (!symindex_get_record(s, SECTION_BLOCKS, middle, &r))
			return false;
		if (r.v[0] <= offset)
			low = middle;
		else
			high = middle;
	}
	*block = low;
	return true;
}

/* The last entry of the block that begins at or before the address. */
static bool symindex_scan_block(const struct symindex *s, struct cursor *c, uint64_t start,
	uint64_t address, struct symindex_place *out)
{
	struct symindex_place now = { 0 }, back = { 0 };
	uint64_t head;

	*out = (struct symindex_place){ .gap = true };
	while (cursor_left(c)) {
		head = cursor_varint(c);
		if (__builtin_add_overflow(start, head >> 2, &start))
			return symindex_fault(s);
		if (start > address)
			break;
		symindex_take_entry(c, head, &now, &back);
		*out = now;
	}
	return !c->bad || symindex_fault(s);
}

bool symindex_get_block(const struct symindex *symindex, uint64_t i, struct symindex_block *out)
{
	const struct section *s = &symindex->h.section[SECTION_SEGMENTS];
	struct symindex_record r, next = { .v[1] = s->bytes };

	if (!symindex_get_record(symindex, SECTION_BLOCKS, i, &r) ||
		(i + 1 < symindex->h.section[SECTION_BLOCKS].count &&
			!symindex_get_record(symindex, SECTION_BLOCKS, i + 1, &next)))
		return false;
	if (r.v[1] >= next.v[1] || next.v[1] > s->bytes)
		return symindex_fault(symindex);
	out->offset = r.v[0];
	out->entries = (struct str){ symindex->section[SECTION_SEGMENTS] + r.v[1],
		(size_t)(next.v[1] - r.v[1]) };
	return symindex_readable(symindex, out->entries.ptr, out->entries.len);
}

static bool symindex_find_place(
	const struct symindex *s, uint64_t address, struct symindex_place *out)
{
	uint64_t offset = address - s->h.base, i;
	struct symindex_block block;
	struct cursor c;

	if (!symindex_find_block(s, offset, &i) || !symindex_get_block(s, i, &block))
		return false;
	if (block.offset > offset)
		return symindex_fault(s);
	c = cursor_of(block.entries);
	return symindex_scan_block(s, &c, s->h.base + block.offset, address, out);
}

/*
 * Most of the time goes to waiting for memory, and the parts of a chain's locations do not depend
 * on each other. So what is needed next is asked for in all of a few, then read.
 */
#define CHAIN 8u

struct link {
	struct symindex_record scope, function;
	uint64_t line;
};

static void symindex_prefetch_record(
	const struct symindex *symindex, enum section_id id, uint64_t i)
{
	const struct section *s = &symindex->h.section[id];

	if (i < s->count)
		__builtin_prefetch(symindex->section[id] + (i * s->record >> 3));
}

static void symindex_prefetch_string(const struct symindex *s, uint64_t offset)
{
	if (offset < s->h.section[SECTION_STRINGS].bytes)
		__builtin_prefetch(s->section[SECTION_STRINGS] + offset);
}

static bool symindex_get_location(
	const struct symindex *s, const struct link *link, struct symindex_location *out)
{
	if (link->line > UINT32_MAX)
		return symindex_fault(s);
	*out = (struct symindex_location){ .line = (uint32_t)link->line,
		.start_line = (uint32_t)link->function.v[3] };
	if (!symindex_get_string(s, link->function.v[0], &out->name) ||
		!symindex_get_file(s, link->scope.v[3], &out->file))
		return false;
	out->raw = out->name;
	return !link->function.v[1] || symindex_get_string(s, link->function.v[1], &out->raw);
}

static bool symindex_get_locations(
	const struct symindex *s, struct link *link, size_t n, struct symindex_location *l)
{
	for (size_t i = 0; i < n; i++) {
		if (!symindex_get_record(s, SECTION_FUNCTIONS, link[i].scope.v[2], &link[i].function))
			return false;
		symindex_prefetch_string(s, link[i].function.v[0]);
		if (link[i].function.v[1])
			symindex_prefetch_string(s, link[i].function.v[1]);
	}
	for (size_t i = 0; i < n; i++)
		if (!symindex_get_location(s, &link[i], &l[i]))
			return false;
	return true;
}

size_t symindex_find(
	const struct symindex *s, uint64_t address, struct symindex_location *l, size_t max)
{
	struct link chain[CHAIN];
	struct symindex_place at;
	size_t n = 0, k = 0;
	struct symindex_record scope;

	if (address < s->h.base || address >= s->h.end || !symindex_find_place(s, address, &at) ||
		at.gap)
		return 0;
	for (;;) {
		if (n == SYMINDEX_DEPTH_MAX) {
			symindex_fault(s);
			return 0;
		}
		if (!symindex_get_record(s, SECTION_SCOPES, at.scope, &scope))
			return 0;
		if (n++ < max) {
			chain[k].scope = scope;
			chain[k++].line = at.line;
			symindex_prefetch_record(s, SECTION_FUNCTIONS, scope.v[2]);
			if (scope.v[3])
				symindex_prefetch_record(s, SECTION_FILES, scope.v[3] - 1);
		}
		if (k && (k == CHAIN || n == max || !scope.v[0])) {
			if (!symindex_get_locations(s, chain, k, l + (n < max ? n : max) - k))
				return 0;
			k = 0;
		}
		if (!scope.v[0])
			return n;
		at.scope -= scope.v[0]; /* below 0 it is no scope's number */
		at.line = scope.v[1];
	}
}

enum err_code symindex_verify_all(const struct symindex *s, struct err *err)
{
	for (uint64_t page = 0; page < s->h.pages; page++)
		(void)!symindex_pages_readable(s, page, page);
	return symindex_damaged(s, err);
}

enum err_code symindex_damaged(const struct symindex *s, struct err *err)
{
	uint64_t faults = atomic_load_explicit(&s->reading->faults, memory_order_relaxed);
	uint64_t damaged = 0;

	for (uint64_t i = 0; i < s->h.pages; i++)
		damaged += atomic_load_explicit(&s->reading->pages[i], memory_order_relaxed) ==
			PAGE_DAMAGED;
	if (damaged)
		return err_set(err, ERR_CORRUPT, "symbol index: %llu of %llu pages are damaged",
			(unsigned long long)damaged, (unsigned long long)s->h.pages);
	if (faults)
		return err_set(err, ERR_CORRUPT, "symbol index: wrong contents, met %llu times",
			(unsigned long long)faults);
	return ERR_OK;
}
