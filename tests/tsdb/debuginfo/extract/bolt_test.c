/*
 * Programs whose functions BOLT has put elsewhere: their program headers are far behind the
 * beginning, most old code is left, and functions have pieces. Names beside llvm-symbolizer's.
 */
#include "tests/tsdb/debuginfo/extract/files.h"
#include "tests/tsdb/debuginfo/oracle/compare.h"

static struct err err;

/* A program, laid out anew with and without its debug data. */
static void make_bolted(void)
{
	static bool made;

	if (made)
		return;
	made = true;
	files_run("clang++ -std=c++17 -O2 -g -Wl,-q -o linked $S/shapes.cc $S/main.cc && "
			  "$O/bolt.sh linked lines -update-debug-sections && $O/bolt.sh linked names");
}

static void index_bolted(const char *name, struct buf *index)
{
	struct buf bytes;

	make_bolted();
	bytes = files_read(name);
	CHECK_OK(debuginfo_extract(buf_str(&bytes), STR(""), index, &err), &err);
	buf_release(&bytes);
}

TEST(addresses_in_moved_functions_are_those_of_llvm_symbolizer)
{
	static const char *const files[] = { "lines", "names" };

	for (size_t i = 0; i < 2; i++) {
		struct oracle_counts c = { 0 };
		struct buf index = { 0 };
		char path[ORACLE_DIR_MAX + 16];

		index_bolted(files[i], &index);
		snprintf(path, sizeof(path), "%s/%s", oracle_dir(), files[i]);
		CHECK_OK(
			oracle_compare_index(buf_str(&index), path, ORACLE_LLVM_SYMBOLS, 8000, 4, &c, &err),
			&err);
		printf("  %s: %" PRIu64 " addresses, %" PRIu64 " equal\n", files[i], c.addresses,
			c.equal + c.by_symbol);
		CHECK(c.addresses >= 5000);
		CHECK((c.equal + c.by_symbol) * 1000 >= c.addresses * 995);
		buf_release(&index);
	}
}

/* The name that is shown of the function with this symbol. */
static void check_name(const struct symindex *x, const char *symbol, const char *want)
{
	struct symindex_location v[8];
	struct buf out = { 0 };

	REQUIRE(oracle_run(&out, "nm '%s/names' | sed -n 's/ [tT] %s$//p'", oracle_dir(), symbol));
	buf_add_char(&out, '\0');
	CHECK(strlen(out.ptr) == 17); /* it is there, once */
	REQUIRE(symindex_find(x, strtoull(out.ptr, NULL, 16), v, 8) == 1);
	CHECK_STR(v[0].raw, symbol);
	CHECK_STR(v[0].name, want);
	buf_release(&out);
}

TEST(symbols_name_functions_and_their_cold_parts)
{
	struct symindex *x = NULL;
	struct buf index = { 0 };

	index_bolted("names", &index);
	REQUIRE_OK(symindex_open(buf_str(&index), &x, &err), &err);
	CHECK_INT(symindex_best(x), SYMINDEX_SYMBOLS);
	check_name(x, "main", "main");
	check_name(x, "main.cold.0", "main.cold.0");
	check_name(x, "_ZN6shapes4makeEi", "shapes::make");
	check_name(x, "_ZN6shapes4makeEi.cold.0", "shapes::make");
	symindex_close(x);
	buf_release(&index);
}
