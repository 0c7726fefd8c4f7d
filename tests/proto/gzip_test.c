#include <lz4frame.h>
#include <zlib.h>
#include <zstd.h>

#include "base/gzip/gzip.h"
#include "proto/pprof.h"
#include "tests/check.h"

#define RAW \
	"\x32\x00\x32\x03" \
	"cpu"

/* One gzip member, as zlib writes it, with the flags and fields a header may have. */
struct member {
	const char *name, *comment, *extra;
	bool header_crc;
};

static void add_member(struct buf *out, struct str raw, const struct member *m)
{
	struct gz_header_s header = { .os = 3 };
	z_stream z = { 0 };

	if (m) {
		header.name = m->name ? (Bytef *)(uintptr_t)m->name : NULL;
		header.comment = m->comment ? (Bytef *)(uintptr_t)m->comment : NULL;
		header.extra = m->extra ? (Bytef *)(uintptr_t)m->extra : NULL;
		header.extra_len = m->extra ? (uInt)strlen(m->extra) : 0;
		header.hcrc = m->header_crc;
	}
	if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	deflateSetHeader(&z, &header);
	buf_reserve(out, deflateBound(&z, raw.len) + 2000);
	z.next_in = (Bytef *)(uintptr_t)raw.ptr;
	z.avail_in = (uInt)raw.len;
	z.next_out = (Bytef *)out->ptr + out->len;
	z.avail_out = (uInt)(out->cap - out->len);
	if (deflate(&z, Z_FINISH) != Z_STREAM_END)
		abort();
	out->len += z.total_out;
	deflateEnd(&z);
}

/* Inflates from memory of exactly the body's length. With a NULL message `want` is the result. */
static void check_body(const char *what, struct str body, const struct pprof_limits *limits,
	enum err_code code, const char *message, struct str want)
{
	char *copy = malloc(body.len + 1);
	struct str got = { 0 };
	struct err err = { 0 };
	struct arena a;
	enum err_code rc;

	memcpy(copy, body.ptr ? body.ptr : "", body.len);
	arena_init(&a, 0);
	rc = pprof_inflate(&a, (struct str){ copy, body.len }, limits, &got, &err);
	if (rc != code || !str_is(str_of(err.msg), message ? message : ""))
		CHECK_FAIL("%s: %s: %s", what, err_code_name(rc), err.msg);
	else if (!rc && !str_eq(got, want))
		CHECK_FAIL("%s: %zu other bytes than wanted", what, got.len);
	arena_release(&a);
	free(copy);
}

static void accepted(const char *what, struct str body, struct str want)
{
	check_body(what, body, &pprof_limits_default, ERR_OK, NULL, want);
}

static void refused(const char *what, struct str body, const char *message)
{
	check_body(what, body, &pprof_limits_default, ERR_INVALID, message, STR(""));
}

TEST(bodies)
{
	struct buf b = { 0 };
	char long_name[600];

	refused("empty", STR(""), "profile is empty");
	accepted("not compressed", STR(RAW), STR(RAW));
	accepted("one byte", STR("\x1f"), STR("\x1f"));
	refused("two bytes", STR("\x1f\x8b"), "gzip: bad header");
	add_member(&b, STR(RAW), NULL);
	accepted("one member", buf_str(&b), STR(RAW));
	add_member(&b, STR(""), NULL);
	add_member(&b,
		STR("\x32\x01" "x"),
			NULL);
	accepted("three members", buf_str(&b),
		STR(RAW "\x32\x01" "x"));
	buf_clear(&b);
	add_member(&b, STR(""), NULL);
	refused("nothing inside", buf_str(&b), "profile is empty");
	buf_clear(&b);
	add_member(&b, STR(RAW), &(struct member){ "cpu.pb", "c", "abc", true });
	accepted("all header fields", buf_str(&b), STR(RAW));
	b.ptr[10]++;
	refused("header checksum", buf_str(&b), "gzip: bad header");
	b.ptr[10]--;
	b.ptr[3] = (char)(b.ptr[3] & ~2 & ~8); /* the name is read as deflate data */
	CHECK_INT(b.ptr[3], 4 | 16);
	refused("flags that lie", buf_str(&b), "gzip: bad or truncated deflate data");
	memset(long_name, 'n', sizeof(long_name));
	for (size_t n = 511; n <= 512; n++) {
		long_name[n] = '\0';
		buf_clear(&b);
		add_member(&b, STR(RAW), &(struct member){ .name = long_name });
		long_name[n] = 'n';
		if (n == 511)
			accepted("longest name", buf_str(&b), STR(RAW));
		else
			refused("longer name", buf_str(&b), "gzip: bad header");
	}
	buf_clear(&b);
	add_member(&b, STR(RAW), NULL);
	b.ptr[3] = (char)0xe0;
	accepted("reserved flags", buf_str(&b), STR(RAW));
	b.ptr[2] = 7;
	refused("another method", buf_str(&b), "gzip: bad header");
	buf_release(&b);
}

TEST(damage)
{
	struct buf b = { 0 }, twice = { 0 };
	size_t whole;

	add_member(&b, STR(RAW), NULL);
	whole = b.len;
	buf_add_char(&b, 'x');
	refused("a byte behind", buf_str(&b), "gzip: 1 bytes after the last member are not gzip");
	b.len = whole;
	buf_add(&b, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
	refused("zeros behind", buf_str(&b), "gzip: 12 bytes after the last member are not gzip");
	b.len = whole;
	for (size_t n = 2; n < whole; n++)
		refused("cut", (struct str){ b.ptr, n },
			n < 10            ? "gzip: bad header" :
				n < whole - 8 ? "gzip: bad or truncated deflate data" :
								"gzip: truncated trailer");
	b.ptr[whole - 1]++;
	refused("size", buf_str(&b), "gzip: wrong size in the trailer");
	b.ptr[whole - 1]--;
	b.ptr[whole - 5]++;
	refused("checksum", buf_str(&b), "gzip: wrong checksum");
	b.ptr[whole - 5]--;
	b.ptr[10] = (char)0xff;
	refused("data", buf_str(&b), "gzip: bad or truncated deflate data");
	buf_clear(&b);
	add_member(&b, STR(RAW), NULL);
	add_member(&twice, buf_str(&b), NULL);
	refused("gzip in gzip", buf_str(&twice), "gzip: the profile is compressed twice");
	buf_release(&b);
	buf_release(&twice);
}

/*
 * The limit is on the inflated size, whatever the trailer says and however many members there
 * are.
 */
TEST(limits)
{
	struct pprof_limits limits = { .body_bytes_max = 1 << 20, .raw_bytes_max = 100000 };
	char *zeros = calloc(1, 200000);
	struct buf b = { 0 };

	zeros[0] = 0x32;
	add_member(&b, (struct str){ zeros, 100000 }, NULL);
	check_body("at the limit", buf_str(&b), &limits, ERR_OK, NULL, (struct str){ zeros, 100000 });
	memset(b.ptr + b.len - 4, 0, 4);
	check_body("size said 0", buf_str(&b), &limits, ERR_INVALID, "gzip: wrong size in the trailer",
		STR(""));
	memset(b.ptr + b.len - 4, 0xff, 4);
	check_body("size said 4 GiB", buf_str(&b), &limits, ERR_INVALID,
		"gzip: wrong size in the trailer", STR(""));
	buf_clear(&b);
	add_member(&b, (struct str){ zeros, 100001 }, NULL);
	check_body("beyond", buf_str(&b), &limits, ERR_LIMIT,
		"profile is more than 100000 bytes inflated, the limit", STR(""));
	memset(b.ptr + b.len - 4, 0, 4);
	check_body("beyond, size said 0", buf_str(&b), &limits, ERR_LIMIT,
		"profile is more than 100000 bytes inflated, the limit", STR(""));
	buf_clear(&b);
	add_member(&b, (struct str){ zeros, 50000 }, NULL);
	add_member(&b, (struct str){ zeros + 50000, 50000 }, NULL);
	check_body("two members at the limit", buf_str(&b), &limits, ERR_OK, NULL,
		(struct str){ zeros, 100000 });
	add_member(&b, STR("x"), NULL);
	check_body("three members beyond", buf_str(&b), &limits, ERR_LIMIT,
		"profile is more than 100000 bytes inflated, the limit", STR(""));
	check_body("not compressed, beyond", (struct str){ zeros, 100001 }, &limits, ERR_LIMIT,
		"profile is 100001 bytes, limit 100000", STR(""));
	limits.body_bytes_max = 10;
	check_body("body beyond",
		STR("\x1f\x8b" "123456789"),
			&limits, ERR_LIMIT, "profile is 11 bytes, limit 10", STR(""));
	free(zeros);
	buf_release(&b);
}

static void add_zstd(struct buf *out, struct str raw)
{
	buf_reserve(out, ZSTD_compressBound(raw.len));
	out->len += ZSTD_compress(
		out->ptr + out->len, ZSTD_compressBound(raw.len), raw.ptr, raw.len, 3);
}

static void add_lz4(struct buf *out, struct str raw)
{
	buf_reserve(out, LZ4F_compressFrameBound(raw.len, NULL));
	out->len += LZ4F_compressFrame(
		out->ptr + out->len, LZ4F_compressFrameBound(raw.len, NULL), raw.ptr, raw.len, NULL);
}

static void add_gzip(struct buf *out, struct str raw)
{
	add_member(out, raw, NULL);
}

/* zstd and lz4 wherever gzip is, within the same limits. */
TEST(zstd_and_lz4)
{
	static const struct {
		const char *name;
		void (*add)(struct buf *out, struct str raw);
	} rows[] = { { "gzip", add_gzip }, { "zstd", add_zstd }, { "lz4", add_lz4 } };
	struct pprof_limits limits = { .body_bytes_max = 1 << 20, .raw_bytes_max = 100000 };
	char *zeros = calloc(1, 8u << 20), want[80];
	struct buf b = { 0 }, twice = { 0 };

	zeros[0] = 0x32;
	for (size_t i = 0; i < 3; i++) {
		buf_clear(&b);
		rows[i].add(&b, STR(RAW));
		accepted(rows[i].name, buf_str(&b), STR(RAW));
		for (size_t k = 0; k < 3; k++) {
			buf_clear(&twice);
			rows[k].add(&twice, buf_str(&b));
			snprintf(want, sizeof(want), "%s: the profile is compressed twice", rows[i].name);
			refused(rows[k].name, buf_str(&twice), want);
		}
		buf_clear(&b);
		rows[i].add(&b, STR(""));
		refused(rows[i].name, buf_str(&b), "profile is empty");
		buf_clear(&b);
		rows[i].add(&b, (struct str){ zeros, 100000 });
		check_body(rows[i].name, buf_str(&b), &limits, ERR_OK, NULL, (struct str){ zeros, 100000 });
		buf_clear(&b);
		rows[i].add(&b, (struct str){ zeros, 8u << 20 });
		snprintf(want, sizeof(want),
			i ? "%s: profile inflates to more than 100000 bytes" :
				"profile is more than 100000 bytes inflated, the limit",
			rows[i].name);
		check_body(rows[i].name, buf_str(&b), &limits, ERR_LIMIT, want, STR(""));
	}
	free(zeros);
	buf_release(&b);
	buf_release(&twice);
}

TEST(an_arena_too_small)
{
	struct buf b = { 0 };
	struct str got;
	struct arena a;
	struct err err;

	add_member(&b, STR(RAW), NULL);
	arena_init(&a, 100);
	CHECK_ERR(pprof_inflate(&a, buf_str(&b), &pprof_limits_default, &got, &err), &err, ERR_LIMIT,
		"inflated profile needs more memory than its limit of 100 bytes");
	buf_release(&b);
	arena_release(&a);
}

/* zlib inflates what we compress; output is appended, and equal input gives equal output. */
TEST(compress)
{
	struct buf raw = { 0 }, gz = { 0 }, again = { 0 };
	struct err err;

	for (uint32_t i = 0; i < 50000; i++)
		buf_add_u64(&raw, i * 7919u);
	for (int level = 1; level <= 9; level++) {
		char *out = malloc(raw.len);
		z_stream z = { 0 };

		buf_clear(&gz);
		buf_clear(&again);
		buf_add_cstr(&gz, "before");
		CHECK_OK(gzip_compress(buf_str(&raw), level, &gz, &err), &err);
		CHECK_OK(gzip_compress(buf_str(&raw), level, &again, &err), &err);
		CHECK(str_eq((struct str){ gz.ptr + 6, gz.len - 6 }, buf_str(&again)));
		CHECK(gz.len < raw.len / 2 && !memcmp(gz.ptr, "before\x1f\x8b", 8));
		z.next_in = (Bytef *)again.ptr;
		z.avail_in = (uInt)again.len;
		z.next_out = (Bytef *)out;
		z.avail_out = (uInt)raw.len;
		CHECK(inflateInit2(&z, 15 + 16) == Z_OK && inflate(&z, Z_FINISH) == Z_STREAM_END);
		CHECK(z.total_out == raw.len && !memcmp(out, raw.ptr, raw.len));
		inflateEnd(&z);
		free(out);
	}
	buf_release(&raw);
	buf_release(&gz);
	buf_release(&again);
}
