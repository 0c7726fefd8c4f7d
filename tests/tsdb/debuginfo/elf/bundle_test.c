/* Bundles: what is written is read, and any other table is refused. */
#include "tsdb/debuginfo/elf/bundle.h"

#include "tests/check.h"

static struct err err;

static void add_file(
	struct bundle_writer *w, struct buf *out, enum bundle_kind kind, const char *text)
{
	size_t padding;

	REQUIRE_OK(bundle_next(w, kind, strlen(text), &padding, &err), &err);
	buf_add(out, "\0\0\0\0\0\0\0", padding);
	buf_add_cstr(out, text);
}

static struct buf made_bundle(void)
{
	struct bundle_writer w;
	struct buf out = { 0 };

	buf_add_cstr(&out, "binary");
	bundle_begin(&w, out.len);
	add_file(&w, &out, BUNDLE_DWO, "first");
	add_file(&w, &out, BUNDLE_DWO, "");
	add_file(&w, &out, BUNDLE_ALT, "the third");
	CHECK_OK(bundle_end(&w, &out, &err), &err);
	return out;
}

TEST(what_is_written_is_read)
{
	static const char *const texts[] = { "first", "", "the third" };
	static const enum bundle_kind kinds[] = { BUNDLE_DWO, BUNDLE_DWO, BUNDLE_ALT };
	struct buf bytes = made_bundle();
	struct bundle b;

	REQUIRE_OK(bundle_open(buf_str(&bytes), &b, &err), &err);
	CHECK(b.binary.len == 8 && !memcmp(b.binary.ptr, "binary\0\0", 8)); /* with its padding */
	REQUIRE(b.files_n == 3);
	for (size_t i = 0; i < 3; i++) {
		enum bundle_kind kind;

		CHECK_STR(bundle_file(&b, i, &kind), texts[i]);
		CHECK_INT(kind, kinds[i]);
	}
	buf_release(&bytes);
}

TEST(a_binary_alone_is_a_bundle)
{
	struct bundle_writer w;
	struct buf out = { 0 };
	struct bundle b;

	buf_add_cstr(&out, "only a binary, longer than the end of a bundle");
	bundle_begin(&w, out.len);
	REQUIRE_OK(bundle_end(&w, &out, &err), &err);
	REQUIRE_OK(bundle_open(buf_str(&out), &b, &err), &err);
	CHECK_STR(b.binary, "only a binary, longer than the end of a bundle");
	CHECK_INT(b.files_n, 0);
	REQUIRE_OK(bundle_open(STR("x"), &b, &err), &err);
	CHECK_STR(b.binary, "x");
	buf_release(&out);
}

/* Every byte of the table with every value: refused, or all files lie in the bytes. */
TEST(damaged_tables)
{
	struct buf bytes = made_bundle();
	size_t refused = 0;

	for (size_t at = 32; at < bytes.len; at++) {
		char was = bytes.ptr[at];

		for (int v = 0; v < 256; v++) {
			struct bundle b;

			bytes.ptr[at] = (char)v;
			if (bundle_open(buf_str(&bytes), &b, &err)) {
				CHECK(!strncmp(err.msg, "bundle: ", 8));
				refused++;
				continue;
			}
			CHECK(b.binary.ptr == bytes.ptr && b.binary.len <= bytes.len);
			for (size_t i = 0; i < b.files_n; i++) {
				enum bundle_kind kind;
				struct str file = bundle_file(&b, i, &kind);

				CHECK(kind < BUNDLE_KINDS && file.ptr >= bytes.ptr &&
					file.len <= bytes.len - (size_t)(file.ptr - bytes.ptr));
			}
		}
		bytes.ptr[at] = was;
	}
	CHECK(refused > 10000);
	buf_release(&bytes);
}
