#include "tsdb/columns/links.h"

#include "base/map.h"
#include "tests/check.h"

static uint64_t state = 1;

static uint64_t draw(uint64_t below)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	return map_hash_u64(state) % below;
}

#define N_MAX 400
#define COLUMNS 3
#define TS 5000

static uint32_t stacks[N_MAX], sets[N_MAX], of[N_MAX];
static int64_t values[N_MAX * COLUMNS];
static struct pprof_link spans[50];

static void draw_links(struct links *l, struct row *r)
{
	uint32_t stack = 0;

	*r = (struct row){ .header = 7,
		.interval_ns = 10,
		.time_nanos = TS - 3,
		.n = (uint32_t)draw(N_MAX),
		.columns_n = (uint32_t)draw(COLUMNS) + 1,
		.stacks = stacks,
		.label_sets = sets,
		.values = values };
	*l = (struct links){ spans, 1 + (uint32_t)draw(50), of, draw(3) };
	for (uint32_t i = 0; i < r->n; i++) {
		stacks[i] = stack += (uint32_t)draw(300);
		sets[i] = i && stacks[i] == stacks[i - 1] ? sets[i - 1] : (uint32_t)draw(3);
		of[i] = (uint32_t)draw(l->spans_n);
	}
	for (uint32_t i = 0; i < r->n * r->columns_n; i++)
		values[i] = (int64_t)draw(1000) - 200;
	for (size_t i = 0; i < sizeof(spans); i++)
		((unsigned char *)spans)[i] = (unsigned char)draw(256);
}

TEST(links_come_back)
{
	struct links_unpacked u = { 0 };
	struct links l;
	struct row r;
	struct err err;

	for (int round = 0; round < 300; round++) {
		struct buf b = { 0 };

		draw_links(&l, &r);
		REQUIRE_OK(links_encode(&l, &r, TS, &b, &err), &err);
		REQUIRE_OK(links_unpack(&u, buf_str(&b), TS, &err), &err);
		CHECK_INT(u.links.dropped, l.dropped);
		CHECK_INT(u.links.spans_n, l.spans_n);
		CHECK(!memcmp(u.links.spans, l.spans, l.spans_n * sizeof(*l.spans)));
		CHECK_INT(u.row.n, r.n);
		CHECK_INT(u.row.columns_n, r.columns_n);
		CHECK_INT(u.row.header, 7);
		CHECK_INT(u.row.time_nanos, TS - 3);
		CHECK(!memcmp(u.row.stacks, stacks, r.n * sizeof(*stacks)));
		CHECK(!memcmp(u.row.label_sets, sets, r.n * sizeof(*sets)));
		CHECK(!memcmp(u.links.of, of, r.n * sizeof(*of)));
		CHECK(!memcmp(u.row.values, values, r.n * r.columns_n * sizeof(*values)));
		buf_release(&b);
	}
	links_unpacked_release(&u);
}

/* Any bit, any length: never other links. */
TEST(damaged_links_are_refused)
{
	struct links_unpacked u = { 0 };
	struct buf b = { 0 };
	struct links l;
	struct row r;
	struct err err;

	do
		draw_links(&l, &r);
	while (r.n < 20 || r.n > 60);
	REQUIRE_OK(links_encode(&l, &r, TS, &b, &err), &err);
	for (size_t i = 0; i < b.len; i++) {
		char *cut = malloc(i + 1);

		for (int bit = 0; bit < 8; bit++) {
			b.ptr[i] ^= (char)(1 << bit);
			CHECK_INT(links_unpack(&u, buf_str(&b), TS, &err), ERR_CORRUPT);
			b.ptr[i] ^= (char)(1 << bit);
		}
		memcpy(cut, b.ptr, i);
		CHECK_INT(links_unpack(&u, (struct str){ cut, i }, TS, &err), ERR_CORRUPT);
		free(cut);
	}
	b.ptr[0] = 2;
	CHECK_INT(links_unpack(&u, buf_str(&b), TS, &err), ERR_CORRUPT);
	CHECK_STR(str_of(err.msg), "links of samples to spans: unknown version");
	b.ptr[0] = 1;
	b.ptr[b.len - 1] ^= 1;
	CHECK_INT(links_unpack(&u, buf_str(&b), TS, &err), ERR_CORRUPT);
	CHECK_STR(str_of(err.msg), "links of samples to spans: wrong checksum");
	links_unpacked_release(&u);
	buf_release(&b);
}

/* They are behind all else: the row is read whatever they are. */
TEST(a_row_carries_links)
{
	struct row_view v, without;
	struct buf b = { 0 }, bare = { 0 };
	struct links l;
	struct row r;
	struct err err;

	draw_links(&l, &r);
	REQUIRE_OK(row_encode(&r, TS, &bare, &err), &err);
	r.links = STR("anything");
	REQUIRE_OK(row_encode(&r, TS, &b, &err), &err);
	CHECK_INT(b.len, bare.len + r.links.len);
	REQUIRE_OK(row_parse(buf_str(&b), TS, &v, &err), &err);
	REQUIRE_OK(row_parse(buf_str(&bare), TS, &without, &err), &err);
	CHECK_STR(v.links, "anything");
	CHECK_INT(without.links.len, 0);
	CHECK_INT(v.n, without.n);
	CHECK_INT(v.columns[0].total, without.columns[0].total);
	/* The flag without links, and links without the flag. */
	CHECK_INT(row_parse((struct str){ b.ptr, bare.len }, TS, &v, &err), ERR_CORRUPT);
	b.ptr[1] &= ~4;
	CHECK_INT(row_parse(buf_str(&b), TS, &v, &err), ERR_CORRUPT);
	buf_release(&b);
	buf_release(&bare);
}
