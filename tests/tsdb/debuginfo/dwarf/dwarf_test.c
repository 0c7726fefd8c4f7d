/* Binaries made by the compiler here, then damaged; and what the counts say. */
#include "tests/oracle.h"

#include <elf.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/tsdb/debuginfo/oracle/compare.h"

#define SAMPLES "tests/tsdb/debuginfo/oracle/samples/"

static struct buf made(const char *options)
{
	char dir[] = "/tmp/epimetheus-dwarf-XXXXXX", path[64];
	struct buf b = { 0 }, said = { 0 };

	if (!mkdtemp(dir))
		return b;
	snprintf(path, sizeof(path), "%s/made", dir);
	if (oracle_run(&said, "%s -o %s", options, path))
		oracle_read(&b, dir, "made");
	buf_release(&said);
	unlink(path);
	rmdir(dir);
	return b;
}

static size_t section_of(struct str f, const char *name, size_t *len)
{
	const Elf64_Ehdr *h = (const void *)f.ptr;
	const Elf64_Shdr *s = (const void *)(f.ptr + h->e_shoff);

	for (unsigned i = 0; i < h->e_shnum; i++) {
		if (!strcmp(f.ptr + s[h->e_shstrndx].sh_offset + s[i].sh_name, name)) {
			*len = s[i].sh_size;
			return s[i].sh_offset;
		}
	}
	*len = 0;
	return 0;
}

TEST(counts)
{
	struct buf b = made("gcc -O2 -gdwarf-5 " SAMPLES "table.c " SAMPLES "main.c"), index = { 0 };
	struct dwarf_stats stats;
	struct err err = { 0 };

	REQUIRE(b.len);
	REQUIRE_OK(oracle_index_bytes(buf_str(&b), (struct str){ 0 }, &stats, &index, &err), &err);
	CHECK_INT(stats.units, 2);
	CHECK_INT(stats.units_damaged, 0);
	CHECK(stats.functions >= 4 && stats.inlined >= 5 && stats.rows > 50 && stats.segments > 50);
	buf_release(&index);
	buf_release(&b);
}

TEST(removed_sections_are_not_there)
{
	struct buf b = made(
		"gcc -O2 -g -ffunction-sections -Wl,--gc-sections " SAMPLES "table.c " SAMPLES "main.c");
	struct symindex_location v[8];
	struct buf index = { 0 };
	struct symindex *x = NULL;
	struct dwarf_stats stats;
	struct err err = { 0 };

	REQUIRE(b.len);
	REQUIRE_OK(oracle_index_bytes(buf_str(&b), (struct str){ 0 }, &stats, &index, &err), &err);
	REQUIRE_OK(symindex_open(buf_str(&index), &x, &err), &err);
	for (uint64_t a = 0; a < 1 << 16; a++) {
		size_t n = symindex_find(x, a, v, 8);

		CHECK(a > 0x1000 || !n);
		CHECK(!n || !str_is(v[n - 1].name, "table_unused"));
	}
	symindex_close(x);
	buf_release(&index);
	buf_release(&b);
}

TEST(a_damaged_unit_is_skipped_and_the_others_are_read)
{
	struct buf b = made("gcc -O2 -gdwarf-4 " SAMPLES "table.c " SAMPLES "main.c"), index = { 0 };
	struct dwarf_stats stats;
	struct err err = { 0 };
	size_t len, at;

	REQUIRE(b.len);
	at = section_of(buf_str(&b), ".debug_info", &len);
	REQUIRE(len > 11);
	memset(b.ptr + at + 6, 0xff, 4); /* its abbreviations */
	REQUIRE_OK(oracle_index_bytes(buf_str(&b), (struct str){ 0 }, &stats, &index, &err), &err);
	CHECK_INT(stats.units, 2);
	CHECK_INT(stats.units_damaged, 1);
	CHECK_STR(str_of(stats.first_error.msg),
		"unit at 0x0: abbreviations at 0xffffffff are not in .debug_abbrev");
	CHECK(stats.functions >= 1);
	buf_release(&index);
	buf_release(&b);
}

TEST(a_skeleton_is_counted)
{
	struct buf b = made(
				   "clang -O2 -gdwarf-5 -gsplit-dwarf=single " SAMPLES "table.c " SAMPLES "main.c"),
			   index = { 0 };
	struct dwarf_stats stats;
	struct err err = { 0 };

	REQUIRE(b.len);
	REQUIRE_OK(oracle_index_bytes(buf_str(&b), (struct str){ 0 }, &stats, &index, &err), &err);
	CHECK_INT(stats.units_split, 2);
	CHECK_INT(stats.units_damaged, 0);
	buf_release(&index);
	buf_release(&b);
}

/* No crash, and the budget of steps ends what would go on. */
static void flip(const char *command, unsigned char mask)
{
	static const char *const names[] = { ".debug_info", ".debug_abbrev", ".debug_line",
		".debug_rnglists", ".debug_ranges", ".debug_line_str", ".debug_str_offsets",
		".debug_addr" };
	struct buf b = made(command);

	if (!b.len)
		CHECK_FAIL("%s", command);
	for (size_t i = 0; b.len && i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len, at = section_of(buf_str(&b), names[i], &len);

		for (size_t k = 0; k < len; k += CHECK_STEP) {
			struct buf index = { 0 };
			struct dwarf_stats stats;
			struct err err = { 0 };

			b.ptr[at + k] ^= (char)mask;
			if (oracle_index_bytes(buf_str(&b), (struct str){ 0 }, &stats, &index, &err))
				CHECK(err.msg[0]);
			CHECK(!stats.units_damaged || stats.first_error.msg[0]);
			b.ptr[at + k] ^= (char)mask;
			buf_release(&index);
		}
	}
	buf_release(&b);
}

TEST(every_byte_flipped)
{
	flip("gcc -O2 -gdwarf-5 -shared -fPIC -nostdlib " SAMPLES "table.c", 0xff);
	flip("clang -O2 -gdwarf-5 -gsplit-dwarf=single -fsplit-dwarf-inlining -shared -fPIC "
		 "-nostdlib " SAMPLES "table.c",
		0x81);
	flip("gcc -O2 -gdwarf-3 -shared -fPIC -nostdlib " SAMPLES "table.c", 0x40);
}
