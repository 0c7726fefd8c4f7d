/* Ends of tables made to do harm, all checksums right: refused before anything is read by them. */
#include "tsdb/store/table_end.h"

#include <stdlib.h>

#include "tests/check.h"
#include "tests/tsdb/store/memory_range.h"
#include "tests/tsdb/store/page_crc.h"
#include "tsdb/store/table.h"

static void add_u32le(struct buf *b, uint32_t v)
{
	for (int i = 0; i < 4; i++, v >>= 8)
		buf_add_char(b, (char)v);
}

/* The trailer of the page that begins at `from`. */
static void end_page(struct buf *b, size_t from, char type)
{
	buf_add_char(b, type);
	add_u32le(b, page_crc(b->ptr + from, b->len - from));
}

#define META 36u /* behind two pages of 13 + 5 bytes; the index follows at 49 */

struct entry {
	uint32_t shared;
	const char *key; /* NULL: none */
	uint64_t offset, size;
	uint32_t restart;
};

struct craft {
	const char *says; /* NULL: opens */
	struct entry entries[2];
	uint32_t restarts; /* what the index page says it has */
	char index_type, data_type;
	uint64_t index_more, meta_more; /* added to the sizes in the footer */
};

/* Two pages "a" = "1", "b" = "2", and an end as the case wants it. */
static void make(const struct craft *c, struct buf *b)
{
	size_t from, footer;

	for (char i = 0; i < 2; i++) {
		const char entry[] = { 0, 1, 1, (char)('a' + i), (char)('1' + i) };

		from = b->len;
		buf_add(b, entry, sizeof(entry));
		add_u32le(b, 0);
		add_u32le(b, 1);
		end_page(b, from, c->data_type);
	}
	from = b->len;
	add_u32le(b, 0);
	add_u32le(b, 1);
	end_page(b, from, 0);
	from = b->len;
	for (const struct entry *e = c->entries; e < c->entries + 2 && e->key; e++) {
		struct buf h = { 0 };

		buf_add_varint(&h, e->offset);
		buf_add_varint(&h, e->size);
		buf_add_varint(b, e->shared);
		buf_add_varint(b, strlen(e->key));
		buf_add_varint(b, h.len);
		buf_add_cstr(b, e->key);
		buf_add_str(b, buf_str(&h));
		buf_release(&h);
	}
	for (const struct entry *e = c->entries; e < c->entries + 2 && e->key; e++)
		add_u32le(b, e->restart);
	add_u32le(b, c->restarts);
	end_page(b, from, c->index_type);
	footer = b->len;
	buf_add_varint(b, META);
	buf_add_varint(b, 8 + c->meta_more);
	buf_add_varint(b, from);
	buf_add_varint(b, footer - from - TABLE_TRAILER_BYTES + c->index_more);
	while (b->len < footer + 40)
		buf_add_char(b, 0);
	buf_add(b, "\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
}

#define ENTRY "t.ldb: index page: entry "
#define FOOTER "t.ldb: footer: pages where none can be"

/* clang-format off */
static const struct craft crafts[] = {
	{ NULL, { { 0, "a", 0, 13, 0 }, { 0, "b", 18, 13, 6 } }, 2 },
	{ ENTRY "0 cannot be", { { 0, "a", 0, 1ull << 40, 0 }, { 0, "b", 18, 13, 14 } }, 2 },
	{ ENTRY "0 cannot be", { { 0, "a", 0, UINT64_MAX, 0 }, { 0, "b", 18, 13, 15 } }, 2 },
	{ ENTRY "0 cannot be", { { 0, "a", 0, UINT64_MAX - 4, 0 }, { 0, "b", 18, 13, 15 } }, 2 },
	{ ENTRY "0 cannot be", { { 0, "a", UINT64_MAX, 13, 0 }, { 0, "b", 18, 13, 15 } }, 2 },
	{ ENTRY "1 cannot be", { { 0, "a", 0, 13, 0 }, { 0, "b", 19, 12, 6 } }, 2 },
	{ ENTRY "1 cannot be", { { 0, "a", 0, 13, 0 }, { 0, "b", 0, 13, 6 } }, 2 },
	{ ENTRY "1 cannot be", { { 0, "a", 0, 13, 0 }, { 0, "b", 18, 14, 6 } }, 2 },
	{ ENTRY "2 cannot be", { { 0, "a", 0, 13, 0 }, { 0, "b", 18, 12, 6 } }, 2 },
	{ ENTRY "1 cannot be", { { 0, "a", 0, 13, 0 } }, 1 }, /* a page is missing */
	{ ENTRY "1 cannot be", { { 0, "a", 0, 13, 0 }, { 1, "b", 18, 13, 6 } }, 2 },
	{ ENTRY "1 cannot be", { { 0, "b", 0, 13, 0 }, { 0, "b", 18, 13, 6 } }, 2 },
	{ ENTRY "1 cannot be", { { 0, "b", 0, 13, 0 }, { 0, "a", 18, 13, 6 } }, 2 },
	{ ENTRY "1 cannot be", { { 0, "a", 0, 13, 0 }, { 0, "b", 18, 13, 4 } }, 2 },
	{ ENTRY "1 cannot be", { { 0, "a", 0, 13, 0 }, { 0, "b", 18, 13, 1u << 31 } }, 2 },
	{ ENTRY "0 cannot be", { { 0, "a", 0, 13, 0 }, { 0, "b", 18, 13, 6 } }, 1 },
	{ ENTRY "0 cannot be", { { 0, "a", 0, 13, 0 }, { 0, "b", 18, 13, 6 } }, 0 },
	{ ENTRY "0 cannot be", { { 0, "a", 0, 13, 0 }, { 0, "b", 18, 13, 6 } }, UINT32_MAX },
	{ ENTRY "0 cannot be", { { 0, NULL } }, 0 },
	{ "t.ldb: index page: says it is compressed",
		{ { 0, "a", 0, 13, 0 }, { 0, "b", 18, 13, 6 } }, 2, .index_type = 1 },
	{ FOOTER, { { 0, "a", 0, 13, 0 }, { 0, "b", 18, 13, 6 } }, 2, .index_more = 1 },
	{ FOOTER, { { 0, "a", 0, 13, 0 }, { 0, "b", 18, 13, 6 } }, 2, .index_more = 1ull << 40 },
	{ FOOTER, { { 0, "a", 0, 13, 0 }, { 0, "b", 18, 13, 6 } }, 2, .index_more = -30ull },
	{ FOOTER, { { 0, "a", 0, 13, 0 }, { 0, "b", 18, 13, 6 } }, 2, .meta_more = 1 },
	{ FOOTER, { { 0, "a", 0, 13, 0 }, { 0, "b", 18, 13, 6 } }, 2, .meta_more = -10ull },
};
/* clang-format on */

TEST(an_end_made_to_harm_is_refused)
{
	struct buf b = { 0 }, spare = { 0 }, value = { 0 };
	struct err err, damaged;
	struct memory m;
	struct table *t;

	for (size_t i = 0; i < sizeof(crafts) / sizeof(*crafts); i++) {
		buf_clear(&b);
		make(&crafts[i], &b);
		m = memory_of(b.ptr, b.len);
		err.msg[0] = '\0';
		if (!table_open(&m.r, STR(""), NULL, &t, &damaged, &err)) {
			CHECK(!crafts[i].says);
			buf_clear(&value);
			CHECK_OK(table_get(t, STR("b"), &value, &err), &err);
			CHECK_STR(buf_str(&value), "2");
			table_close(t);
		} else {
			CHECK_INT(err.code, ERR_CORRUPT);
			CHECK_STR(str_of(err.msg), crafts[i].says);
		}
	}
	/* A right copy of a table in which the page stands elsewhere is no help, either. */
	buf_clear(&b);
	make(&crafts[0], &b);
	table_spare_make((struct str){ b.ptr + META + 14, b.len - META - 14 }, b.len, &spare);
	b.ptr[b.len - 1] ^= 1;
	m = memory_of(b.ptr, b.len);
	CHECK_ERR(table_open(&m.r, buf_str(&spare), NULL, &t, &damaged, &err), &err, ERR_CORRUPT,
		"t.ldb: footer: not that of a table; its copy: t.ldb: index page: not where it "
		"must be");
	buf_release(&b);
	buf_release(&spare);
	buf_release(&value);
}

TEST(a_compressed_page_is_refused)
{
	struct craft c = crafts[0];
	struct buf b = { 0 };
	struct err err, damaged;
	struct memory m;
	struct table *t;

	c.data_type = 1;
	make(&c, &b);
	m = memory_of(b.ptr, b.len);
	REQUIRE_OK(table_open(&m.r, STR(""), NULL, &t, &damaged, &err), &err);
	CHECK_ERR(table_get(t, STR("a"), &b, &err), &err, ERR_CORRUPT,
		"t.ldb: a page that says it is compressed");
	table_close(t);
	buf_release(&b);
}

TEST(a_spare_is_whole_or_none)
{
	struct buf spare = { 0 };
	struct str end;
	uint64_t bytes;
	char tail[TABLE_FOOTER_BYTES] = "end";

	table_spare_make((struct str){ tail, sizeof(tail) }, 1000, &spare);
	CHECK(table_spare_read(buf_str(&spare), &end, &bytes));
	CHECK_INT(bytes, 1000);
	CHECK(str_eq(end, (struct str){ tail, sizeof(tail) }));
	for (size_t n = 0; n < spare.len; n++)
		CHECK(!table_spare_read((struct str){ spare.ptr, n }, &end, &bytes));
	/* Longer than its table, or too short for a footer, with a right checksum. */
	buf_clear(&spare);
	table_spare_make((struct str){ tail, sizeof(tail) }, sizeof(tail) - 1, &spare);
	CHECK(!table_spare_read(buf_str(&spare), &end, &bytes));
	buf_clear(&spare);
	table_spare_make((struct str){ tail, sizeof(tail) - 1 }, 1000, &spare);
	CHECK(!table_spare_read(buf_str(&spare), &end, &bytes));
	buf_release(&spare);
}
