#include "tsdb/debuginfo/index/format.h"

#include <endian.h>

#include "base/map.h"

static const char magic[8] = "EPISYMX";

/* Offsets in the header. A section takes SECTION_BYTES: offset, bytes, count, a byte per column. */
enum {
	AT_VERSION = 8,
	AT_BEST = 12,
	AT_TOTAL = 16,
	AT_BASE = 24,
	AT_END = 32,
	AT_BUCKET_SHIFT = 40,
	AT_BUILD_ID_LEN = 44,
	AT_SECTIONS = 48,
	SECTION_BYTES = 32,
	AT_BUILD_ID = AT_SECTIONS + SECTIONS * SECTION_BYTES,
	AT_HASHES_HASH = AT_BUILD_ID + SYMINDEX_BUILD_ID_MAX,
	AT_HASH = AT_HASHES_HASH + 8,
	AT_HEADER_END = AT_HASH + 8,
};

_Static_assert(AT_HEADER_END == FORMAT_HEADER_BYTES, "FORMAT.md");

static uint32_t symindex_load_u32(const void *bytes)
{
	uint32_t v;

	memcpy(&v, bytes, sizeof(v));
	return le32toh(v);
}

static void symindex_store_u64(unsigned char *to, uint64_t value)
{
	value = htole64(value);
	memcpy(to, &value, sizeof(value));
}

static void symindex_store_u32(unsigned char *to, uint32_t value)
{
	value = htole32(value);
	memcpy(to, &value, sizeof(value));
}

uint64_t page_hash(struct str data, uint64_t page)
{
	size_t from = page << FORMAT_PAGE_LOG2, n = data.len - from;

	return hash_bytes(data.ptr + from, n < FORMAT_PAGE_BYTES ? n : FORMAT_PAGE_BYTES, page);
}

/* Of the whole header but the hash itself. */
static uint64_t header_hash(const unsigned char *bytes)
{
	unsigned char copy[FORMAT_HEADER_BYTES];

	memcpy(copy, bytes, sizeof(copy));
	symindex_store_u64(copy + AT_HASH, 0);
	return hash_bytes(copy, sizeof(copy), 0);
}

void header_write(unsigned char *to, const struct header *h)
{
	memset(to, 0, FORMAT_HEADER_BYTES);
	memcpy(to, magic, sizeof(magic));
	symindex_store_u32(to + AT_VERSION, FORMAT_VERSION);
	symindex_store_u32(to + AT_BEST, h->best);
	symindex_store_u64(to + AT_TOTAL, h->total);
	symindex_store_u64(to + AT_BASE, h->base);
	symindex_store_u64(to + AT_END, h->end);
	symindex_store_u32(to + AT_BUCKET_SHIFT, h->bucket_shift);
	symindex_store_u32(to + AT_BUILD_ID_LEN, (uint32_t)h->build_id.len);
	for (unsigned i = 0; i < SECTIONS; i++) {
		unsigned char *s = to + AT_SECTIONS + i * SECTION_BYTES;

		symindex_store_u64(s, h->section[i].offset);
		symindex_store_u64(s + 8, h->section[i].bytes);
		symindex_store_u64(s + 16, h->section[i].count);
		for (unsigned k = 0; k < FORMAT_COLUMNS; k++)
			s[24 + k] = (unsigned char)h->section[i].width[k];
	}
	if (h->build_id.len)
		memcpy(to + AT_BUILD_ID, h->build_id.ptr, h->build_id.len);
}

uint64_t pages_of_data(uint64_t data)
{
	return (data + FORMAT_PAGE_BYTES - 1) >> FORMAT_PAGE_LOG2;
}

/* Each page has 8 bytes of checksum behind the data. */
uint64_t pages_of_total(uint64_t total)
{
	return (total - FORMAT_HEADER_BYTES + FORMAT_PAGE_BYTES + 8 - 1) / (FORMAT_PAGE_BYTES + 8);
}

void format_seal(unsigned char *index, size_t len)
{
	uint64_t pages = pages_of_total(len);
	unsigned char *hashes = index + len - pages * 8;
	struct str data = { (const char *)index + FORMAT_HEADER_BYTES,
		len - FORMAT_HEADER_BYTES - pages * 8 };

	for (uint64_t i = 0; i < pages; i++)
		symindex_store_u64(hashes + i * 8, page_hash(data, i));
	symindex_store_u64(index + AT_HASHES_HASH, hash_bytes(hashes, pages * 8, 0));
	symindex_store_u64(index + AT_HASH, header_hash(index));
}

static bool section_read(const unsigned char *bytes, uint64_t data_end, struct section *out)
{
	static const unsigned width_max = 64;
	uint64_t bits;

	out->offset = symindex_load_u64(bytes);
	out->bytes = symindex_load_u64(bytes + 8);
	out->count = symindex_load_u64(bytes + 16);
	out->record = 0;
	for (unsigned k = 0; k < FORMAT_COLUMNS; k++) {
		out->width[k] = bytes[24 + k];
		if (out->width[k] > width_max)
			return false;
		out->record += out->width[k];
	}
	return out->offset >= FORMAT_HEADER_BYTES && out->offset <= data_end &&
		out->bytes <= data_end - out->offset && out->count < UINT32_MAX &&
		!__builtin_mul_overflow(out->count, out->record, &bits) && bits <= out->bytes * 8;
}

enum err_code header_read(struct str bytes, struct header *h, struct err *err)
{
	const unsigned char *p = (const unsigned char *)bytes.ptr;
	uint64_t data_end;
	uint32_t id_len;

	if (bytes.len < FORMAT_HEADER_BYTES || memcmp(p, magic, sizeof(magic)))
		return err_set(err, ERR_CORRUPT, "no symbol index: %zu bytes", bytes.len);
	h->version = symindex_load_u32(p + AT_VERSION);
	if (!h->version || h->version > FORMAT_VERSION)
		return err_set(err, ERR_UNSUPPORTED, "symbol index: version %u, this program reads 1 to %u",
			h->version, FORMAT_VERSION);
	if (symindex_load_u64(p + AT_HASH) != header_hash(p))
		return err_set(err, ERR_CORRUPT, "symbol index: checksum of the header");
	h->total = symindex_load_u64(p + AT_TOTAL);
	if (h->total != bytes.len)
		return err_set(err, ERR_CORRUPT, "symbol index: %zu bytes, written as %llu", bytes.len,
			(unsigned long long)h->total);
	h->pages = pages_of_total(h->total);
	if (h->total - FORMAT_HEADER_BYTES <= h->pages * 8)
		return err_set(err, ERR_CORRUPT, "symbol index: no data");
	data_end = h->total - h->pages * 8;
	if (symindex_load_u64(p + AT_HASHES_HASH) !=
		hash_bytes(bytes.ptr + data_end, (size_t)(h->pages * 8), 0))
		return err_set(err, ERR_CORRUPT, "symbol index: checksum of the pages' checksums");
	h->best = symindex_load_u32(p + AT_BEST);
	h->base = symindex_load_u64(p + AT_BASE);
	h->end = symindex_load_u64(p + AT_END);
	h->bucket_shift = symindex_load_u32(p + AT_BUCKET_SHIFT);
	id_len = symindex_load_u32(p + AT_BUILD_ID_LEN);
	if (h->bucket_shift > 63 || id_len > SYMINDEX_BUILD_ID_MAX || h->base > h->end)
		return err_set(err, ERR_CORRUPT, "symbol index: header");
	h->build_id = (struct str){ bytes.ptr + AT_BUILD_ID, id_len };
	for (unsigned i = 0; i < SECTIONS; i++)
		if (!section_read(p + AT_SECTIONS + i * SECTION_BYTES, data_end, &h->section[i]))
			return err_set(err, ERR_CORRUPT, "symbol index: section %u", i);
	if (h->section[SECTION_LOADS].count > SYMINDEX_LOADS_MAX)
		return err_set(err, ERR_CORRUPT, "symbol index: %llu loaded segments",
			(unsigned long long)h->section[SECTION_LOADS].count);
	return ERR_OK;
}
