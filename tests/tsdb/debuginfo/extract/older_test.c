/* Several files of one binary, one after the other: each adds names, none takes one away. */
#include "tests/tsdb/debuginfo/extract/files.h"

static struct err err;

static void make_parts(void)
{
	static bool made;

	if (made)
		return;
	made = true;
	files_run(
		"gcc -O2 -g -no-pie -rdynamic -o whole $S/table.c $S/main.c && "
		"objcopy --only-keep-debug whole whole.debug && "
		"llvm-objcopy-16 --only-keep-debug whole whole.llvm && "
		"strip -o whole.stripped whole && strip -g -o whole.names whole && "
		"echo 'int other(int v) { return v * 3; } int main(void) { return other(1); }' >other.c && "
		"gcc -O0 -o other other.c");
}

static struct extracted_file extract_over(const char *name, const struct extracted_file *older)
{
	struct extracted_file e = { .bytes = files_read(name) };
	struct str was = older ? buf_str(&older->index) : STR("");

	CHECK_OK(debuginfo_extract(buf_str(&e.bytes), was, &e.index, &err), &err);
	CHECK_OK(symindex_open(buf_str(&e.index), &e.x, &err), &err);
	return e;
}

static void add_answer(const struct symindex *x, uint64_t place, struct buf *text)
{
	struct symindex_location v[8];
	uint64_t address;

	if (!symindex_address(x, place & ~UINT64_C(0xfff), place & 0xfff, &address)) {
		buf_add_cstr(text, "no address");
		return;
	}
	buf_printf(text, "%" PRIx64, address);
	for (size_t i = 0, n = symindex_find(x, address, v, 8); i < n && i < 8; i++)
		buf_printf(
			text, " " STR_FMT " " STR_FMT ":%u", STR_ARG(v[i].raw), STR_ARG(v[i].file), v[i].line);
}

/* Whatever comes first: all that the whole file says, and where its code is. */
TEST(files_of_one_binary_in_any_order)
{
	static const char *const orders[][3] = { { "stripped", "debug" }, { "debug", "stripped" },
		{ "names", "debug", "stripped" }, { "debug", "names" }, { "llvm", "stripped", "names" },
		{ "names", "stripped", "llvm" } };

	make_parts();
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		struct extracted_file whole = extract_over("whole", NULL), e = { 0 }, next;
		struct buf want = { 0 }, got = { 0 };
		char name[32];

		for (size_t k = 0; k < 3 && orders[i][k]; k++) {
			snprintf(name, sizeof(name), "whole.%s", orders[i][k]);
			next = extract_over(name, k ? &e : NULL);
			files_release(&e);
			e = next;
		}
		REQUIRE(whole.x && e.x);
		CHECK_INT(symindex_best(e.x), SYMINDEX_DWARF);
		for (uint64_t place = 0; place < whole.bytes.len; place += 3) {
			buf_clear(&want);
			buf_clear(&got);
			add_answer(whole.x, place, &want);
			add_answer(e.x, place, &got);
			if (!str_eq(buf_str(&want), buf_str(&got)))
				CHECK_FAIL("order %zu, byte 0x%" PRIx64 ": \"" STR_FMT "\", want \"" STR_FMT "\"",
					i, place, STR_ARG(buf_str(&got)), STR_ARG(buf_str(&want)));
		}
		files_release(&whole);
		files_release(&e);
		buf_release(&want);
		buf_release(&got);
	}
}

/* A second time nothing changes, not one byte; a damaged index counts as none. */
TEST(the_same_file_again)
{
	struct extracted_file first, again, damaged;

	make_parts();
	first = extract_over("whole", NULL);
	again = extract_over("whole", &first);
	CHECK(str_eq(buf_str(&first.index), buf_str(&again.index)));
	files_release(&again);
	first.index.ptr[1000] ^= 1;
	damaged = extract_over("whole", &first);
	first.index.ptr[1000] ^= 1;
	CHECK(str_eq(buf_str(&first.index), buf_str(&damaged.index)));
	files_release(&damaged);
	files_release(&first);
}

/* The fewest functions that a file needs, over an older index. */
static size_t functions_needed(const char *name, struct str older)
{
	struct symindex_limits few = symindex_limits_default;
	struct buf bytes = files_read(name), want = { 0 }, got = { 0 };

	CHECK_OK(debuginfo_extract(buf_str(&bytes), older, &want, &err), &err);
	for (few.functions_max = 1; few.functions_max < 1000; few.functions_max++) {
		buf_clear(&got);
		if (!debuginfo_extract_limited(buf_str(&bytes), older, &few, &got, &err) &&
			str_eq(buf_str(&got), buf_str(&want)))
			break;
	}
	buf_release(&bytes);
	buf_release(&want);
	buf_release(&got);
	return few.functions_max;
}

/* Lines are not given up for a table of symbols because both are too much. */
TEST(what_is_there_is_given_up_for_better_names_only)
{
	struct symindex_limits few = symindex_limits_default;
	struct extracted_file lines, names;
	struct buf out = { 0 };
	char want[200];

	make_parts();
	lines = extract_over("whole.debug", NULL);
	names = extract_over("other", NULL);
	few.functions_max = functions_needed("other", buf_str(&lines.index)) - 1;
	REQUIRE(few.functions_max >= functions_needed("other", STR("")));
	snprintf(want, sizeof(want),
		"the stored symbols cannot be kept beside those of this file: "
		"symbol index: more than %zu functions, the limit",
		few.functions_max);
	CHECK_ERR(
		debuginfo_extract_limited(buf_str(&names.bytes), buf_str(&lines.index), &few, &out, &err),
		&err, ERR_LIMIT, want);
	CHECK_INT(out.len, 0);
	few.functions_max = functions_needed("whole.debug", buf_str(&names.index)) - 1;
	REQUIRE(few.functions_max >= functions_needed("whole.debug", STR("")));
	CHECK_OK(
		debuginfo_extract_limited(buf_str(&lines.bytes), buf_str(&names.index), &few, &out, &err),
		&err);
	CHECK(str_eq(buf_str(&out), buf_str(&lines.index)));
	buf_release(&out);
	files_release(&lines);
	files_release(&names);
}
