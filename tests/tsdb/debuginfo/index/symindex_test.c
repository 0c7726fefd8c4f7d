#include "tsdb/debuginfo/index/symindex.h"

#include "tests/check.h"

static struct err err;

static uint32_t file(struct symindex_builder *b, const char *path)
{
	uint32_t id = SYMINDEX_NONE;

	CHECK_OK(symindex_file(b, str_of(path), &id, &err), &err);
	return id;
}

static uint32_t function(
	struct symindex_builder *b, const char *raw, uint32_t in_file, uint32_t line)
{
	uint32_t id = SYMINDEX_NONE;

	CHECK_OK(symindex_function(b, str_of(raw), in_file, line, &id, &err), &err);
	return id;
}

static uint32_t frame(
	struct symindex_builder *b, uint32_t parent, uint32_t fn, uint32_t in_file, uint32_t line)
{
	uint32_t id = SYMINDEX_NONE;

	CHECK_OK(symindex_frame(b, parent, fn, in_file, line, &id, &err), &err);
	return id;
}

static struct symindex_builder *builder(void)
{
	struct symindex_builder *b = NULL;

	CHECK_OK(symindex_builder_open(&symindex_limits_default, &b, &err), &err);
	return b;
}

static struct symindex *finish(struct symindex_builder *b, struct buf *out)
{
	struct symindex *x = NULL;

	CHECK_OK(symindex_finish(b, STR("\x01\x02\x03"), out, &err), &err);
	symindex_builder_close(b);
	CHECK_OK(symindex_open(buf_str(out), &x, &err), &err);
	return x;
}

/* "name|raw file:line start; ..." */
static const char *found(const struct symindex *x, uint64_t address)
{
	static struct buf text;
	struct symindex_location v[8];
	size_t n = symindex_find(x, address, v, 8);

	buf_clear(&text);
	for (size_t i = 0; i < n && i < 8; i++)
		buf_printf(&text, "%s" STR_FMT "|" STR_FMT " " STR_FMT ":%u %u", i ? "; " : "",
			STR_ARG(v[i].name), STR_ARG(v[i].raw), STR_ARG(v[i].file), v[i].line, v[i].start_line);
	buf_add_char(&text, '\0');
	return text.ptr;
}

TEST(functions_inlined_calls_and_gaps)
{
	struct symindex_builder *b = builder();
	struct buf out = { 0 };
	struct symindex *x;
	uint32_t c, h, f, g, f10, f11, in;

	REQUIRE(b);
	c = file(b, "/src/a.cc");
	h = file(b, "/src/b.h");
	CHECK_INT(file(b, "/src/a.cc"), c);
	f = function(b, "_Z1fi", c, 9);
	g = function(b, "g", h, 3);
	f10 = frame(b, SYMINDEX_NONE, f, c, 10);
	f11 = frame(b, SYMINDEX_NONE, f, c, 11);
	in = frame(b, f11, g, h, 4);
	CHECK_INT(frame(b, SYMINDEX_NONE, f, c, 10), f10);
	CHECK_OK(symindex_add(b, 0x1000, 0x1010, f10, SYMINDEX_DWARF, &err), &err);
	CHECK_OK(symindex_add(b, 0x1010, 0x1020, in, SYMINDEX_DWARF, &err), &err);
	CHECK_OK(symindex_add(b, 0x1020, 0x1020, f10, SYMINDEX_DWARF, &err), &err);
	CHECK_OK(symindex_add(b, 0x1030, 0x1040, f11, SYMINDEX_DWARF, &err), &err);
	x = finish(b, &out);
	REQUIRE(x);
	CHECK_STR(str_of(found(x, 0xfff)), "");
	CHECK_STR(str_of(found(x, 0x1000)), "f|_Z1fi /src/a.cc:10 9");
	CHECK_STR(str_of(found(x, 0x100f)), "f|_Z1fi /src/a.cc:10 9");
	CHECK_STR(str_of(found(x, 0x1010)), "g|g /src/b.h:4 3; f|_Z1fi /src/a.cc:11 9");
	CHECK_STR(str_of(found(x, 0x1020)), "");
	CHECK_STR(str_of(found(x, 0x103f)), "f|_Z1fi /src/a.cc:11 9");
	CHECK_STR(str_of(found(x, 0x1040)), "");
	CHECK_STR(symindex_build_id(x), "\x01\x02\x03");
	CHECK_INT(symindex_best(x), SYMINDEX_DWARF);
	CHECK_OK(symindex_damaged(x, &err), &err);
	symindex_close(x);
	buf_release(&out);
}

TEST(nothing_at_all)
{
	struct symindex_builder *b = builder();
	struct buf out = { 0 };
	struct symindex *x;

	REQUIRE(b);
	x = finish(b, &out);
	REQUIRE(x);
	CHECK_STR(str_of(found(x, 0)), "");
	CHECK_STR(str_of(found(x, UINT64_MAX)), "");
	CHECK_OK(symindex_damaged(x, &err), &err);
	symindex_close(x);
	buf_release(&out);
}
