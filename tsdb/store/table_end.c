/*
 * Checks the end of a table before LevelDB uses it.
 *
 * LevelDB allocates the size in a handle before it reads, and anybody can compute the checksum of
 * an index. So a hostile file could make it allocate without bound, or read outside its allocation
 * (size + 5 can wrap). The rule is strict because writers leave no
 * freedom: pages follow each other without gap from offset 0 to the meta page, each index entry is
 * a restart point, the index page ends where the footer begins. All handles that LevelDB will ever
 * follow are those, so together they cannot ask for more than the file has.
 *
 * Spare: u64be XXH3 of what follows, u64be size of the table, then the table's last bytes from the
 * index page on.
 */
#include "tsdb/store/table_end.h"

#include <inttypes.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define INDEX_BYTES_MAX (256u << 20) /* a table of 100 GB and more */

static const unsigned char magic[8] = { 0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb };

static bool table_end_read_handle(struct cursor *c, struct table_handle *h)
{
	h->offset = cursor_varint(c);
	h->size = cursor_varint(c);
	return !c->bad;
}

/* Finds the end of h's page; false if it is behind `limit`. */
static bool table_end_page(struct table_handle h, uint64_t limit, uint64_t *end)
{
	if (h.offset > limit || h.size > limit - h.offset ||
		limit - h.offset - h.size < TABLE_TRAILER_BYTES)
		return false;
	*end = h.offset + h.size + TABLE_TRAILER_BYTES;
	return true;
}

enum err_code table_read_footer(const char *footer, uint64_t bytes, struct table_handle *meta,
	struct table_handle *index, const char *name, struct err *err)
{
	struct cursor c = cursor_of((struct str){ footer, TABLE_FOOTER_BYTES - sizeof(magic) });
	uint64_t end;

	if (memcmp(footer + TABLE_FOOTER_BYTES - sizeof(magic), magic, sizeof(magic)) != 0)
		return err_set(err, ERR_CORRUPT, "%s: footer: not that of a table", name);
	if (!table_end_read_handle(&c, meta) || !table_end_read_handle(&c, index) ||
		!table_end_page(*index, bytes - TABLE_FOOTER_BYTES, &end) ||
		end != bytes - TABLE_FOOTER_BYTES || !table_end_page(*meta, index->offset, &end) ||
		end != index->offset)
		return err_set(err, ERR_CORRUPT, "%s: footer: pages where none can be", name);
	if (index->size > INDEX_BYTES_MAX)
		return err_set(err, ERR_CORRUPT, "%s: footer: index of %" PRIu64 " bytes, limit %u", name,
			index->size, INDEX_BYTES_MAX);
	return ERR_OK;
}

static uint32_t table_end_u32le(const char *text)
{
	const unsigned char *b = (const unsigned char *)text;

	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/*
 * One entry of the index: varints shared (0), key length, value length, then the key and a handle.
 * `next` is where its page must begin, and then where it ends.
 */
static bool table_end_read_entry(struct cursor *c, uint64_t limit, struct str *key, uint64_t *next)
{
	uint32_t shared = cursor_u32(c), key_len = cursor_u32(c), value_len = cursor_u32(c);
	struct str k = cursor_bytes(c, key_len);
	struct cursor value = cursor_of(cursor_bytes(c, value_len));
	struct table_handle h;
	bool first = *next == 0;

	if (c->bad || shared || !table_end_read_handle(&value, &h) || h.offset != *next)
		return false;
	if (h.size > TABLE_RECORD_BYTES_MAX * 2ull || !table_end_page(h, limit, next))
		return false;
	if (!first && str_cmp(*key, k) >= 0)
		return false;
	*key = k;
	return true;
}

enum err_code table_check_index(
	struct str page, struct table_handle meta, const char *name, struct err *err)
{
	uint64_t next = 0, entries = 0;
	struct str key = { "", 0 };
	struct cursor c;
	const char *restarts;
	uint32_t n;

	if (page.len < 8)
		goto bad;
	n = table_end_u32le(page.ptr + page.len - 4);
	if (n == 0 || n > page.len / 4 - 1)
		goto bad;
	page.len -= 4 + (size_t)n * 4;
	restarts = page.ptr + page.len;
	for (c = cursor_of(page); cursor_left(&c); entries++) {
		size_t at = page.len - cursor_left(&c);

		if (entries == n || table_end_u32le(restarts + entries * 4) != at ||
			!table_end_read_entry(&c, meta.offset, &key, &next))
			goto bad;
	}
	/* An empty page has one restart point all the same. */
	if (next != meta.offset || (entries ? entries != n : n != 1 || table_end_u32le(restarts) != 0))
		goto bad;
	return ERR_OK;
bad:
	return err_set(err, ERR_CORRUPT, "%s: index page: entry %" PRIu64 " cannot be", name, entries);
}

void table_spare_make(struct str end, uint64_t bytes, struct buf *out)
{
	struct buf b = { 0 };

	buf_add_u64be(&b, bytes);
	buf_add_str(&b, end);
	buf_add_u64be(out, buf_failed(&b) ? 0 : XXH3_64bits(b.ptr, b.len));
	buf_add_str(out, buf_str(&b));
	out->failed |= b.failed;
	buf_release(&b);
}

bool table_spare_read(struct str spare, struct str *end, uint64_t *bytes)
{
	struct cursor c = cursor_of(spare);
	uint64_t hash = cursor_u64be(&c);

	if (c.bad || XXH3_64bits(c.at, cursor_left(&c)) != hash)
		return false;
	*bytes = cursor_u64be(&c);
	*end = cursor_bytes(&c, cursor_left(&c));
	return !c.bad && end->len >= TABLE_FOOTER_BYTES && end->len <= *bytes;
}
