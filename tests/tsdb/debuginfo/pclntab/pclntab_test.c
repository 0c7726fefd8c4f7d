/* Tables made by hand, of each version, then damaged. Real programs: ../extract/go_test.c. */
#include "tsdb/debuginfo/pclntab/pclntab.h"

#include "tests/check.h"
#include "tests/tsdb/debuginfo/pclntab/made.h"

static struct err err;

/* NULL: err says why. */
static struct symindex *index_of(struct str bytes, struct pclntab_stats *stats, struct buf *index)
{
	struct symindex_builder *b = NULL;
	struct symindex *x = NULL;
	struct elf *e = NULL;

	*stats = (struct pclntab_stats){ 0 };
	if (!elf_open(bytes, &e, &err) && !symindex_builder_open(&symindex_limits_default, &b, &err) &&
		!pclntab_add(e, b, stats, &err) &&
		!symindex_finish(b, STR(""), index, &err) && symindex_open(buf_str(index), &x, &err))
		x = NULL;
	symindex_builder_close(b);
	elf_close(e);
	return x;
}

/* "name file:line begin; ..." at an offset in main.f */
static const char *found(const struct symindex *x, uint64_t code_at, uint64_t offset)
{
	static struct buf text;
	struct symindex_location v[8];
	size_t n = symindex_find(x, MADE_TEXT + code_at + offset, v, 8);

	buf_clear(&text);
	for (size_t i = 0; i < n && i < 8; i++)
		buf_printf(&text, "%s" STR_FMT " " STR_FMT ":%u %u", i ? "; " : "", STR_ARG(v[i].raw),
			STR_ARG(v[i].file), v[i].line, v[i].start_line);
	buf_add_char(&text, '\0');
	return text.ptr;
}

static void check_program(const struct made_options *o, uint64_t code_at, bool inlined)
{
	struct buf program = { 0 }, index = { 0 };
	struct pclntab_stats stats;
	struct symindex *x;

	made_program(o, &program);
	x = index_of(buf_str(&program), &stats, &index);
	if (!x) {
		CHECK_FAIL("version %u: %s", o->version, err.msg);
	} else {
		CHECK_INT(stats.functions, 3);
		CHECK_INT(stats.functions_damaged, 0);
		CHECK_INT(stats.inlined, inlined);
		CHECK_INT(symindex_best(x), SYMINDEX_LINES);
		CHECK_STR(str_of(found(x, code_at, 15)),
			o->version < 20 ? "main.f /src/a.go:10 0" : "main.f /src/a.go:10 3");
		CHECK_STR(str_of(found(x, code_at, 64 + 36)),
			!inlined ? o->version < 20 ? "main.k /src/b.go:30 0" : "main.k /src/b.go:30 3" :
				o->version < 20 ?
					   "main.h /src/b.go:30 0; main.g /src/b.go:20 0; main.k /src/a.go:10 0" :
					   "main.h /src/b.go:30 19; main.g /src/b.go:20 18; main.k /src/a.go:10 3");
		CHECK_STR(str_of(found(x, code_at, 128 + 31)),
			o->version < 20 ? "main.main /src/a.go:5 0" : "main.main /src/a.go:5 3");
		CHECK_STR(str_of(found(x, code_at, 160)), "");
	}
	symindex_close(x);
	buf_release(&program);
	buf_release(&index);
}

TEST(each_version)
{
	static const unsigned versions[] = { 2, 16, 18, 20 };

	for (unsigned i = 0; i < 4; i++)
		for (unsigned narrow = 0; narrow < 2; narrow++)
			for (unsigned sections = 0; sections < 2; sections++) {
				struct made_options o = { versions[i], narrow, sections, true, false };

				check_program(&o, MADE_CODE_AT, versions[i] >= 18);
			}
}

TEST(without_moduledata_names_and_lines_are_left)
{
	struct made_options o = { 18, false, true, false, true };

	check_program(&o, MADE_CODE_AT, false);
	o.text_start = false; /* then from where .text begins */
	o.version = 20;
	check_program(&o, 0, false);
}

TEST(a_table_that_does_not_say_where_its_code_is)
{
	struct made_options o = { 20, false, false, false, false };
	struct buf program = { 0 }, index = { 0 };
	struct pclntab_stats stats;

	made_program(&o, &program);
	err.code = ERR_OK;
	CHECK(!index_of(buf_str(&program), &stats, &index));
	CHECK_ERR(
		err.code, &err, ERR_INVALID, "Go's table of functions does not say where its code is");
	buf_release(&program);
	buf_release(&index);
}

TEST(a_damaged_table_and_a_damaged_function)
{
	struct made_options o = { 20, false, true, true, false };
	struct buf program = { 0 }, index = { 0 };
	struct pclntab_stats stats;
	struct symindex *x;
	char *function;

	made_program(&o, &program);
	/* main.k's own entry, which is not that of the list then */
	function = memmem(program.ptr, program.len, "\x40\0\0\0\x20", 5);
	REQUIRE(function);
	*function ^= 1;
	REQUIRE((x = index_of(buf_str(&program), &stats, &index)));
	CHECK_INT(stats.functions_damaged, 1);
	CHECK_STR(str_of(found(x, MADE_CODE_AT, 15)), "main.f /src/a.go:10 3");
	CHECK_STR(str_of(found(x, MADE_CODE_AT, 65)), "");
	symindex_close(x);
	program.ptr[0x1100 + 6] = 3;
	err.code = ERR_OK;
	CHECK(!index_of(buf_str(&program), &stats, &index));
	CHECK_ERR(
		err.code, &err, ERR_INVALID, "Go's table of functions is damaged, or of a new version");
	buf_release(&program);
	buf_release(&index);
}

TEST(every_byte_flipped)
{
	static const unsigned char masks[] = { 0xff, 0x80, 0x01, 0x10 };
	static const unsigned versions[] = { 2, 16, 18, 20 };

	for (unsigned i = 0; i < 4; i++) {
		struct made_options o = { versions[i], false, true, true, false };
		struct buf program = { 0 }, index = { 0 };
		struct pclntab_stats stats;

		made_program(&o, &program);
		for (size_t at = 0; at < program.len; at += CHECK_STEP) {
			if (at == 0x200)
				at = 0x1100;
			for (unsigned k = 0; k < 4; k++) {
				if (check_is_short() && k != at / CHECK_STEP % 4)
					continue; /* each in turn */
				program.ptr[at] ^= (char)masks[k];
				buf_clear(&index);
				symindex_close(index_of(buf_str(&program), &stats, &index));
				program.ptr[at] ^= (char)masks[k];
			}
		}
		buf_release(&program);
		buf_release(&index);
	}
}
