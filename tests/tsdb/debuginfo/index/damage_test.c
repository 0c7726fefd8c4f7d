/* Damaged bytes never give a wrong name, nor none in silence. */
#include "tests/check.h"
#include "tests/tsdb/debuginfo/index/sample.h"

static struct err err;

#define SPAN 60u

/* What each address is called. */
struct names {
	struct buf at[SPAN];
};

static void names_of(const struct symindex *x, uint64_t base, struct names *n)
{
	uint64_t address;

	for (unsigned i = 0; i < SPAN; i++) {
		buf_clear(&n->at[i]);
		sample_found(x, base + i, &n->at[i]);
		if (i < SAMPLE_LOADS && symindex_address(x, (uint64_t)i << 12, 7, &address))
			buf_printf(&n->at[i], "address 0x%" PRIx64, address);
	}
}

static void names_release(struct names *n)
{
	for (unsigned i = 0; i < SPAN; i++)
		buf_release(&n->at[i]);
}

/* What the right index says, or nothing and an error. */
static void check_damaged(
	const struct symindex *x, uint64_t base, const struct names *want, struct names *got, size_t at)
{
	bool told;

	names_of(x, base, got);
	told = symindex_damaged(x, &err) == ERR_CORRUPT;
	for (unsigned i = 0; i < SPAN; i++) {
		struct str a = buf_str(&want->at[i]), b = buf_str(&got->at[i]);

		if (!str_eq(a, b) && (b.len || !told))
			CHECK_FAIL(
				"byte %zu: \"" STR_FMT "\", want \"" STR_FMT "\"", at, STR_ARG(b), STR_ARG(a));
	}
}

TEST(every_byte_and_every_length)
{
	struct names want = { 0 }, got = { 0 };
	struct buf out = { 0 };
	struct symindex *x;
	struct sample s;
	size_t opened = 0;
	char *cut;

	sample_init(&s, 4, SPAN, 40, false);
	REQUIRE_OK(sample_index(&s, 0, &out, &err), &err);
	REQUIRE_OK(symindex_open(buf_str(&out), &x, &err), &err);
	names_of(x, s.base, &want);
	symindex_close(x);
	for (size_t i = 0; i < out.len; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			out.ptr[i] = (char)(out.ptr[i] ^ 1 << bit);
			if (!symindex_open(buf_str(&out), &x, &err)) {
				opened++;
				check_damaged(x, s.base, &want, &got, i);
				CHECK_ERR(symindex_damaged(x, &err), &err, ERR_CORRUPT,
					"symbol index: 1 of 1 pages are damaged");
				symindex_close(x);
			} else {
				CHECK(err.code == ERR_CORRUPT || err.code == ERR_UNSUPPORTED);
			}
			out.ptr[i] = (char)(out.ptr[i] ^ 1 << bit);
		}
	CHECK(opened > 1000);
	for (size_t len = 0; len < out.len; len++) {
		REQUIRE((cut = malloc(len + 1))); /* its end is checked under ASan */
		memcpy(cut, out.ptr, len);
		CHECK_INT(symindex_open((struct str){ cut, len }, &x, &err), ERR_CORRUPT);
		free(cut);
	}
	buf_add_char(&out, 0);
	CHECK_INT(symindex_open(buf_str(&out), &x, &err), ERR_CORRUPT);
	names_release(&want);
	names_release(&got);
	buf_release(&out);
}

TEST(version)
{
	struct buf out = { 0 };
	struct symindex *x;
	struct sample s;

	sample_init(&s, 1, SPAN, 4, false);
	REQUIRE_OK(sample_index(&s, 0, &out, &err), &err);
	out.ptr[8] = 3;
	CHECK_ERR(symindex_open(buf_str(&out), &x, &err), &err, ERR_UNSUPPORTED,
		"symbol index: version 3, this program reads 1 to 2");
	CHECK_ERR(symindex_open(STR("\x7f" "ELF"),
								&x, &err),
		&err, ERR_CORRUPT, "no symbol index: 4 bytes");
	buf_release(&out);
}
