/* Manifests: printed and read, keys, what is refused. */
#include "tsdb/cluster/manifest.h"

#include "base/clock.h"
#include "base/map.h"
#include "tests/check.h"

static struct arena arena;
static struct err err;

#define TOKEN "0123456789abcdef0123456789abcdef"
#define TAKER "ffff0000ffff0000ffff0000ffff0000"
#define ULID_A "01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define ULID_B "01BX5ZZKBKACTAV9WEVGEMMVRZ"

static struct manifest_segment segments[] = { { 1, 4, { 100, 7 } }, { 5, 9, { 50, 8 } } };
static struct manifest_window windows[] = {
	{ 7200 * NS_PER_S, 14400 * NS_PER_S, 0xabc, segments, 2, { 0 }, false },
	{ 14400 * NS_PER_S, 21600 * NS_PER_S, 0xdef, NULL, 0, { 40, 9 }, true },
};
static struct manifest_gone gone[] = { { { "blocks/x/spare", 14 }, 5 }, { { "head/y", 6 }, 6 } };
static struct manifest_block blocks[2];

static struct manifest sample(void)
{
	struct manifest m = {
		.shard = STR("a-1"),
			.owner = STR(TOKEN),
				.session = STR(TOKEN),
					.host = STR("h\"1"), .generation = 3, .since_ns = 1, .written_ns = 2,
						.through_ns = 3, .interval_ns = 4, .lease_ns = 5, .assignment = 4,
						.address = STR("http://a:1"), .loss_due = true,
							.taker = STR(TAKER), .taker_generation = 2, .ids = { 10, 11 },
								.windows = windows, .windows_n = 2, .blocks = blocks, .blocks_n = 2,
								.gone = gone, .gone_n = 2,
							};

	blocks[0] = (struct manifest_block){ .min_ns = 1, .max_ns = 5, .level = 2, .raw = true };
	blocks[0].rows = (struct manifest_file){ 1000, 1 };
	blocks[0].rollups = (struct manifest_file){ 2000, 2 };
	blocks[0].spare = (struct manifest_file){ 30, 3 };
	blocks[0].meta = (struct manifest_file){ 40, UINT64_MAX };
	blocks[0].deleted = (struct manifest_file){ 50, 5 };
	blocks[1] = blocks[0];
	blocks[1].min_ns = 5;
	blocks[1].max_ns = 9;
	blocks[1].raw = false;
	blocks[1].rows = (struct manifest_file){ 0 };
	blocks[1].meta_changed = true;
	blocks[1].kept = blocks[1].apart = true;
	windows[1].apart = true;
	if (!ulid_parse(STR(ULID_A), &blocks[0].ulid) || !ulid_parse(STR(ULID_B), &blocks[1].ulid))
		abort();
	return m;
}

static const char text_of_sample[] =
	"{\"version\":1,\"shard\":\"a-1\",\"owner\":\"" TOKEN "\",\"session\":\"" TOKEN "\","
	"\"host\":\"h\\\"1\",\"generation\":3,\"since_ns\":1,\"written_ns\":2,\"through_ns\":3,"
	"\"interval_ns\":4,\"lease_ns\":5,\"stopped\":false,"
	"\"loss_due\":true,\"taker\":\"" TAKER "\",\"taker_generation\":2,"
	"\"assignment\":4,\"address\":\"http://a:1\","
	"\"files\":{\"ids\":{\"bytes\":10,\"xxh3\":\"000000000000000b\"}},"
	"\"windows\":[{\"start_ns\":7200000000000,\"end_ns\":14400000000000,"
	"\"identity\":\"0000000000000abc\",\"segments\":["
	"{\"first\":1,\"last\":4,\"bytes\":100,\"xxh3\":\"0000000000000007\"},"
	"{\"first\":5,\"last\":9,\"bytes\":50,\"xxh3\":\"0000000000000008\"}]},"
	"{\"start_ns\":14400000000000,\"end_ns\":21600000000000,\"identity\":\"0000000000000def\","
	"\"segments\":[],\"deleted\":{\"bytes\":40,\"xxh3\":\"0000000000000009\"},\"kept\":true,"
	"\"apart\":true}],"
	"\"blocks\":[{\"ulid\":\"" ULID_A "\",\"min_ns\":1,\"max_ns\":5,\"level\":2,\"raw\":true,"
	"\"files\":{\"rows.ldb\":{\"bytes\":1000,\"xxh3\":\"0000000000000001\"},"
	"\"rollups.ldb\":{\"bytes\":2000,\"xxh3\":\"0000000000000002\"},"
	"\"spare\":{\"bytes\":30,\"xxh3\":\"0000000000000003\"},"
	"\"meta.json\":{\"bytes\":40,\"xxh3\":\"ffffffffffffffff\"}},"
	"\"deleted\":{\"bytes\":50,\"xxh3\":\"0000000000000005\"}},"
	"{\"ulid\":\"" ULID_B "\",\"min_ns\":5,\"max_ns\":9,\"level\":2,\"raw\":false,"
	"\"files\":{\"rollups.ldb\":{\"bytes\":2000,\"xxh3\":\"0000000000000002\"},"
	"\"spare\":{\"bytes\":30,\"xxh3\":\"0000000000000003\"},"
	"\"meta.json\":{\"bytes\":40,\"xxh3\":\"ffffffffffffffff\"}},"
	"\"deleted\":{\"bytes\":50,\"xxh3\":\"0000000000000005\"},\"meta_changed\":true,\"kept\":true,"
	"\"apart\":true}],"
	"\"gone\":[{\"key\":\"blocks/x/spare\",\"at_ns\":5},{\"key\":\"head/y\",\"at_ns\":6}],";

static void seal(struct buf *text)
{
	buf_printf(text, "\"checksum\":\"%016" PRIx64 "\"}\n", hash_bytes(text->ptr, text->len, 0));
}

TEST(text_and_back)
{
	struct manifest m = sample(), back;
	struct buf out = { 0 }, want = { 0 }, again = { 0 };

	arena_init(&arena, 0);
	buf_add_cstr(&want, text_of_sample);
	seal(&want);
	manifest_print(&out, &m);
	CHECK(str_eq(buf_str(&out), buf_str(&want)));
	REQUIRE_OK(manifest_parse(buf_str(&out), &arena, &back, &err), &err);
	manifest_print(&again, &back);
	CHECK(str_eq(buf_str(&again), buf_str(&want)));
	CHECK_INT(manifest_bytes(&back), 10 + 150 + 40 + 3120 + 2120);
	buf_release(&out);
	buf_release(&want);
	buf_release(&again);
	arena_release(&arena);
}

/* A text without the member is of an older program: who stopped had ended in order. */
TEST(complete_or_not)
{
	static const struct {
		bool stopped, complete;
		const char *text;
	} rows[] = {
		{ false, false, "\"stopped\":false,\"loss_due\"" },
		{ true, true, "\"stopped\":true,\"loss_due\"" },
		{ false, true, "\"stopped\":false,\"complete\":true,\"loss_due\"" },
		{ true, false, "\"stopped\":true,\"complete\":false,\"loss_due\"" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct manifest m = sample(), back;
		struct buf out = { 0 };

		arena_init(&arena, 0);
		m.stopped = rows[i].stopped;
		m.complete = rows[i].complete;
		manifest_print(&out, &m);
		CHECK(str_find(buf_str(&out), str_of(rows[i].text)) > 0);
		REQUIRE_OK(manifest_parse(buf_str(&out), &arena, &back, &err), &err);
		CHECK_INT(back.stopped, rows[i].stopped);
		CHECK_INT(back.complete, rows[i].complete);
		buf_release(&out);
		arena_release(&arena);
	}
}

static bool add_key(void *ctx, const struct manifest_key *key, const struct manifest_file *f)
{
	buf_printf(ctx, "%s %" PRIu64 "\n", key->text, f->bytes);
	return true;
}

TEST(keys)
{
	struct manifest m = sample();
	struct buf out = { 0 };
	struct manifest_key k = manifest_key_of(m.shard);

	CHECK_STR(manifest_key_str(&k), "shards/a-1/manifest");
	CHECK_STR(manifest_key_rest(&k, m.shard), "manifest");
	manifest_each_key(&m, add_key, &out);
	CHECK_STR(buf_str(&out),
		"shards/a-1/files/ids-000000000000000b 10\n"
		"shards/a-1/head/7200-0000000000000abc/00000000000000000004-0000000000000007 100\n"
		"shards/a-1/head/7200-0000000000000abc/00000000000000000009-0000000000000008 50\n"
		"shards/a-1/head/14400-0000000000000def/deleted-0000000000000009 40\n"
		"shards/a-1/blocks/" ULID_A "/rows.ldb 1000\n"
		"shards/a-1/blocks/" ULID_A "/rollups.ldb 2000\n"
		"shards/a-1/blocks/" ULID_A "/spare 30\n"
		"shards/a-1/blocks/" ULID_A "/meta.json 40\n"
		"shards/a-1/blocks/" ULID_A "/deleted-0000000000000005 50\n"
		"shards/a-1/blocks/" ULID_B "/rollups.ldb 2000\n"
		"shards/a-1/blocks/" ULID_B "/spare 30\n"
		"shards/a-1/blocks/" ULID_B "/meta.json-ffffffffffffffff 40\n"
		"shards/a-1/blocks/" ULID_B "/deleted-0000000000000005 50\n");
	buf_release(&out);
}

TEST(the_longest_key_fits)
{
	char name[MANIFEST_SHARD_BYTES_MAX + 1];
	struct manifest_segment s = { 1, UINT64_MAX, { 1, UINT64_MAX } };
	struct manifest_window w = { .start_ns = INT64_MIN, .identity = UINT64_MAX };
	struct manifest_key k;

	memset(name, 'x', sizeof(name));
	k = manifest_key_segment((struct str){ name, MANIFEST_SHARD_BYTES_MAX }, &w, &s);
	CHECK(strlen(k.text) + 20 < MANIFEST_KEY_BYTES_MAX);
	CHECK(str_has_suffix(str_of(k.text), STR("/18446744073709551615-ffffffffffffffff")));
}

TEST(each_change_is_noticed)
{
	struct manifest m = sample(), back;
	struct buf out = { 0 };

	arena_init(&arena, 0);
	manifest_print(&out, &m);
	for (size_t i = 0; i < out.len; i++) {
		out.ptr[i] ^= 1;
		CHECK_INT(manifest_parse(buf_str(&out), &arena, &back, &err), ERR_CORRUPT);
		out.ptr[i] ^= 1;
		CHECK_INT(manifest_parse((struct str){ out.ptr, i }, &arena, &back, &err), ERR_CORRUPT);
	}
	buf_release(&out);
	arena_release(&arena);
}

/* The sample's text with one part replaced. */
static enum err_code parse_with(const char *from, const char *to)
{
	ptrdiff_t at = str_find(str_of(text_of_sample), str_of(from));
	struct buf text = { 0 };
	struct manifest m;
	enum err_code rc;

	if (at < 0) {
		CHECK_FAIL("not in the text: %s", from);
		return ERR_OK;
	}
	buf_add(&text, text_of_sample, (size_t)at);
	buf_add_cstr(&text, to);
	buf_add_cstr(&text, text_of_sample + at + strlen(from));
	seal(&text);
	arena_init(&arena, 0);
	rc = manifest_parse(buf_str(&text), &arena, &m, &err);
	arena_release(&arena);
	buf_release(&text);
	return rc;
}

TEST(what_is_refused)
{
	static const struct {
		const char *from, *to;
		enum err_code rc;
		const char *msg;
	} rows[] = {
		{ "\"version\":1", "\"version\":2", ERR_UNSUPPORTED,
			"version 2 was written by another program; this one reads version 1" },
		{ "a-1", "../a", ERR_CORRUPT, "manifest: member \"shard\" is missing or wrong" },
		{ "\"owner\":\"0", "\"owner\":\"g", ERR_CORRUPT,
			"manifest: member \"owner\" is missing or wrong" },
		{ "\"generation\":3", "\"generation\":-3", ERR_CORRUPT,
			"manifest: member \"generation\" is missing or wrong" },
		{ "\"written_ns\":2", "\"written_ns\":2.5", ERR_CORRUPT,
			"manifest: member \"written_ns\" is missing or wrong" },
		{ "\"stopped\":false", "\"stopped\":0", ERR_CORRUPT,
			"manifest: member \"stopped\" is missing or wrong" },
		{ "\"first\":5", "\"first\":6", ERR_CORRUPT,
			"window: a segment begins with batch 6, not 5" },
		{ "\"first\":1", "\"first\":2", ERR_CORRUPT,
			"window: a segment begins with batch 2, not 1" },
		{ "\"last\":9", "\"last\":4", ERR_CORRUPT,
			"window: member \"segments\" is missing or wrong" },
		{ "\"end_ns\":14400000000000", "\"end_ns\":7200000000000", ERR_CORRUPT,
			"window: member \"end_ns\" is missing or wrong" },
		{ "\"start_ns\":7200000000000", "\"start_ns\":14400000000000,\"x\":1", ERR_CORRUPT,
			"window: member \"end_ns\" is missing or wrong" },
		{ "\"start_ns\":14400000000000", "\"start_ns\":7100000000000", ERR_CORRUPT,
			"windows are not in order" },
		{ ULID_B, ULID_A, ERR_CORRUPT, "block " ULID_A " is there twice" },
		{ "\"min_ns\":5", "\"min_ns\":0", ERR_CORRUPT, "blocks are not in order" },
		{ "\"raw\":true", "\"raw\":false", ERR_CORRUPT,
			"block: member \"files\" is missing or wrong" },
		{ "\"rollups.ldb\":{\"bytes\":2000", "\"rollups.ldb\":{\"bytes\":0", ERR_CORRUPT,
			"block: member \"files\" is missing or wrong" },
		{ "head/y", "blocks/x/spare", ERR_CORRUPT, "objects that are gone are not in order" },
		{ "head/y", "manifest", ERR_CORRUPT, "manifest: member \"gone\" is missing or wrong" },
		{ "\"gone\":[", "\"gone\":[[", ERR_CORRUPT, NULL },
		{ "\"kept\":true", "\"kept\":1", ERR_CORRUPT,
			"window: member \"kept\" is missing or wrong" },
		{ "\"apart\":true}],\"blocks", "\"apart\":1}],\"blocks", ERR_CORRUPT,
			"window: member \"apart\" is missing or wrong" },
		{ "\"apart\":true}],\"gone", "\"apart\":1}],\"gone", ERR_CORRUPT,
			"block: member \"apart\" is missing or wrong" },
		{ "\"stopped\":false", "\"stopped\":false,\"lives\":-2", ERR_CORRUPT,
			"manifest: member \"lives\" is missing or wrong" },
		{ "\"lease_ns\":5", "\"lease_ns\":-5", ERR_CORRUPT,
			"manifest: member \"lease_ns\" is missing or wrong" },
		{ "\"lease_ns\":5,", "", ERR_OK, NULL }, /* of an older program */
		{ "\"loss_due\":true", "\"loss_due\":1", ERR_CORRUPT,
			"manifest: member \"loss_due\" is missing or wrong" },
		{ "\"loss_due\":true,\"taker\":\"" TAKER "\",", "", ERR_OK, NULL },
		{ TAKER, "f00", ERR_CORRUPT, "manifest: member \"taker\" is missing or wrong" },
		{ "\"taker_generation\":2", "\"taker_generation\":-2", ERR_CORRUPT,
			"manifest: member \"taker_generation\" is missing or wrong" },
		{ "\"stopped\":false", "\"stopped\":false,\"uncompared\":1", ERR_CORRUPT,
			"manifest: member \"uncompared\" is missing or wrong" },
		{ "\"stopped\":false", "\"stopped\":false,\"complete\":1", ERR_CORRUPT,
			"manifest: member \"complete\" is missing or wrong" },
		{ "\"interval_ns\":4", "\"interval_ns\":4,\"later\":[{}]", ERR_OK, NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum err_code rc = parse_with(rows[i].from, rows[i].to);

		if (rc != rows[i].rc)
			CHECK_FAIL("row %zu: %d %s", i, rc, err.msg);
		if (rc && rows[i].msg)
			CHECK_STR(str_of(err.msg), rows[i].msg);
	}
}

TEST(limits)
{
	struct buf text = { 0 };
	struct manifest m;

	arena_init(&arena, 0);
	REQUIRE(buf_reserve(&text, MANIFEST_BYTES_MAX + 1));
	memset(text.ptr, ' ', MANIFEST_BYTES_MAX + 1);
	text.len = MANIFEST_BYTES_MAX + 1;
	CHECK_ERR(manifest_parse(buf_str(&text), &arena, &m, &err), &err, ERR_LIMIT,
		"33554433 bytes, limit 33554432");
	buf_release(&text);
	arena_release(&arena);
}

TEST(too_many_windows)
{
	struct buf text = { 0 };
	const char *at = strstr(text_of_sample, "\"windows\":[") + sizeof("\"windows\":[") - 1;
	struct manifest m;

	buf_add(&text, text_of_sample, (size_t)(at - text_of_sample));
	for (unsigned i = 0; i < MANIFEST_WINDOWS_MAX; i++)
		buf_add_cstr(&text, "{},");
	buf_add_cstr(&text, at);
	seal(&text);
	arena_init(&arena, 0);
	CHECK_ERR(manifest_parse(buf_str(&text), &arena, &m, &err), &err, ERR_LIMIT,
		"manifest: 4098 windows, limit 4096");
	buf_release(&text);
	arena_release(&arena);
}

TEST(names_of_shards)
{
	static const struct {
		const char *name, *msg;
	} rows[] = {
		{ "a", NULL },
		{ "Shard_1.b-2", NULL },
		{ "", "a shard's name has 1 to 63 bytes, \"\" has 0" },
		{ "..",
			"a shard's name has letters, digits, \"-\", \"_\" and \".\", which is not the "
			"first: \"..\"" },
		{ "a/b",
			"a shard's name has letters, digits, \"-\", \"_\" and \".\", which is not the "
			"first: \"a/b\"" },
		{ "1234567890123456789012345678901234567890123456789012345678901234",
			"a shard's name has 1 to 63 bytes, "
			"\"1234567890123456789012345678901234567890123456789012345678901234\" has 64" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum err_code rc = manifest_check_shard(str_of(rows[i].name), &err);

		CHECK_INT(rc, rows[i].msg ? ERR_INVALID : ERR_OK);
		if (rows[i].msg)
			CHECK_STR(str_of(err.msg), rows[i].msg);
	}
}

/* ---- what is hidden ---- */

static const struct hidden_row {
	const char *blocks, *windows; /* "1-3k": from, to; k: kept, a: apart */
	const char *want; /* "x" hidden, "." shown; blocks, windows */
} hidden_rows[] = {
	{ "1-3 3-5", "5-6 6-7", ".. .." },
	{ "1-3k 3-5k", "5-6k 6-7k", ".. .." }, /* just taken over */
	{ "1-3 2-3k 3-4k", "5-6 6-7k", ".x. .." },
	{ "1-3k 2-4k", "3-4k 4-5k", ".x .." },
	{ "1-3a 3-5", "5-6a 6-7", "x. x." },
	{ "1-3k", "1-2 2-3 4-5", "x ..." }, /* an older directory has its windows */
	{ "1-3", "2-3k 5-6k 5-6", ". xx." },
	{ "", "5-6a 5-6k", " x." },
};

static unsigned parse_span(const char **at, int64_t *from, int64_t *to, bool *kept, bool *apart)
{
	const char *s = *at;

	while (*s == ' ')
		s++;
	if (!*s)
		return 0;
	*from = s[0] - '0';
	*to = s[2] - '0';
	*apart = s[3] == 'a';
	*kept = *apart || s[3] == 'k';
	*at = s + 3 + *kept;
	return 1;
}

TEST(hidden)
{
	for (size_t i = 0; i < sizeof(hidden_rows) / sizeof(hidden_rows[0]); i++) {
		const struct hidden_row *r = &hidden_rows[i];
		struct manifest_window w[4] = { 0 };
		struct manifest_block b[4] = { 0 };
		struct manifest m = { .windows = w, .blocks = b };
		bool of_windows[4], of_blocks[4];
		const char *at = r->blocks;
		struct buf is = { 0 };

		for (struct manifest_block *v = b;
			 parse_span(&at, &v->min_ns, &v->max_ns, &v->kept, &v->apart); v++)
			m.blocks_n++;
		at = r->windows;
		for (struct manifest_window *v = w;
			 parse_span(&at, &v->start_ns, &v->end_ns, &v->kept, &v->apart); v++)
			m.windows_n++;
		manifest_hidden(&m, of_windows, of_blocks);
		for (uint32_t k = 0; k < m.blocks_n; k++)
			buf_add_char(&is, of_blocks[k] ? 'x' : '.');
		buf_add_char(&is, ' ');
		for (uint32_t k = 0; k < m.windows_n; k++)
			buf_add_char(&is, of_windows[k] ? 'x' : '.');
		CHECK_STR(buf_str(&is), r->want);
		buf_release(&is);
	}
}
