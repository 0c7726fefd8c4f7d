/* Binaries made by the compiler here, then damaged; and what the counts say. */
#include "tests/oracle.h"

#include <elf.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/tsdb/debuginfo/oracle/bundles.h"
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

/* ---- split DWARF ---- */

/* Runs a command in a folder of its own; %s: what it makes there, `made`, and the files beside it.
 */
static struct buf bundled(const char *command, const char *beside)
{
	char dir[] = "/tmp/epimetheus-dwarf-XXXXXX";
	struct buf b = { 0 }, said = { 0 };

	if (!mkdtemp(dir))
		return b;
	if (!oracle_run(&said, "S=$PWD/" SAMPLES " && cd %s && %s", dir, command) ||
		!oracle_bundle(&b, dir, "made", beside))
		CHECK_FAIL("%s", command);
	if (!oracle_run(&said, "rm -rf %s", dir))
		CHECK_FAIL("%s", dir);
	buf_release(&said);
	return b;
}

#define SPLIT(options) \
	"clang -O2 -gsplit-dwarf " options " -c $S/table.c $S/main.c && clang -o made table.o main.o"
#define DWP " && llvm-dwp-16 -e made -o made.dwp && rm *.dwo"

/* Where a file of the bundle begins. */
static char *file_of(const struct buf *b, size_t i, size_t *len)
{
	enum bundle_kind kind;
	struct bundle bundle;
	struct str file;

	if (bundle_open(buf_str(b), &bundle, NULL) || i >= bundle.files_n) {
		CHECK_FAIL("no file %zu in the bundle", i);
		*len = 0;
		return b->ptr;
	}
	file = bundle_file(&bundle, i, &kind);
	*len = file.len;
	return b->ptr + (file.ptr - b->ptr);
}

static char *section_in(const struct buf *b, size_t file, const char *name, size_t *len)
{
	char *from = file_of(b, file, len);

	return from + section_of((struct str){ from, *len }, name, len);
}

/* Reads the bundle; *best: the quality of the index. */
static struct dwarf_stats read_bundle(const struct buf *b, enum symindex_quality *best)
{
	struct dwarf_stats stats = { 0 };
	struct symindex *x = NULL;
	struct buf index = { 0 };
	struct err err = { 0 };

	CHECK_OK(oracle_index_bytes(buf_str(b), (struct str){ 0 }, &stats, &index, &err), &err);
	CHECK_OK(symindex_open(buf_str(&index), &x, &err), &err);
	*best = x ? symindex_best(x) : 0;
	symindex_close(x);
	buf_release(&index);
	return stats;
}

TEST(units_are_found_by_the_ids_of_their_skeletons)
{
	static const struct {
		const char *command, *beside;
		unsigned found;
	} cases[] = {
		{ SPLIT("-gdwarf-5"), "*.dwo", 2 },
		{ SPLIT("-gdwarf-5") DWP, "*.dwp", 2 },
		{ SPLIT("-gdwarf-4"), "*.dwo", 2 },
		{ SPLIT("-gdwarf-4") DWP, "*.dwp", 2 },
		{ SPLIT("-gdwarf-5") DWP " && clang -g -gsplit-dwarf -c $S/main.c", "main.dw[op]", 0 },
		{ SPLIT("-gdwarf-5"), "main.dwo", 1 },
		{ "clang -O2 -gdwarf-5 -gsplit-dwarf=single -c $S/table.c $S/main.c && "
		  "clang -o made table.o main.o",
			"*.o", 2 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf b = bundled(cases[i].command, cases[i].beside);
		enum symindex_quality best;
		struct dwarf_stats stats = read_bundle(&b, &best);

		CHECK_INT(stats.units, 2);
		CHECK_INT(stats.units_split, 2);
		CHECK_INT(stats.units_split_found, cases[i].found);
		CHECK_INT(stats.units_damaged, 0);
		CHECK_INT(stats.files_damaged, 0);
		CHECK_INT(best, cases[i].found ? SYMINDEX_DWARF : SYMINDEX_LINES);
		if (cases[i].found < 2)
			CHECK(stats.rows > 50 && stats.segments > 50);
		if (cases[i].found == 2)
			CHECK(stats.functions >= 4 && stats.inlined >= 5);
		buf_release(&b);
	}
}

static struct symindex *index_of(const struct buf *b, struct buf *index)
{
	struct symindex *x = NULL;
	struct dwarf_stats stats;
	struct err err = { 0 };

	CHECK_OK(oracle_index_bytes(buf_str(b), (struct str){ 0 }, &stats, index, &err), &err);
	CHECK_OK(symindex_open(buf_str(index), &x, &err), &err);
	return x;
}

static bool same_frames(const struct symindex *one, const struct symindex *two, uint64_t address)
{
	struct symindex_location v[2][8];
	size_t n = symindex_find(one, address, v[0], 8);

	if (symindex_find(two, address, v[1], 8) != n || n > 8)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!str_eq(v[0][i].raw, v[1][i].raw) || v[0][i].line != v[1][i].line ||
			v[0][i].start_line != v[1][i].start_line || !str_eq(v[0][i].file, v[1][i].file))
			return false;
	return true;
}

/*
 * The code is the same. Of units whose code is in one piece ranges count from the skeleton's
 * low_pc, which llvm-symbolizer 16 does not know.
 */
TEST(a_split_unit_says_what_the_whole_one_says)
{
	static const char *const compilers[] = { "gcc -O2 -gdwarf-5", "gcc -O2 -gdwarf-4",
		"clang -O2 -gdwarf-5", "clang -O2 -gdwarf-4", "gcc -O2 -gdwarf-5 -gdwarf64" };

	for (size_t i = 0; i < sizeof(compilers) / sizeof(*compilers); i++) {
		struct buf b[2], index[2] = { { 0 } };
		struct symindex *x[2];
		uint64_t named = 0, inlined = 0, different = 0;

		for (size_t k = 0; k < 2; k++) {
			char command[512];

			snprintf(command, sizeof(command),
				"%s %s -c $S/table.c $S/main.c && gcc -o made table.o main.o && echo none "
				">none.dwo",
				compilers[i], k ? "-gsplit-dwarf" : "");
			b[k] = bundled(command, k ? "[mt]a*.dwo" : "none.dwo");
			x[k] = index_of(&b[k], &index[k]);
		}
		for (uint64_t at = 0; x[0] && x[1] && at < 1 << 14; at++) {
			struct symindex_location v[8];
			size_t n = symindex_find(x[0], at, v, 8);

			named += n > 0;
			inlined += n > 1;
			different += !same_frames(x[0], x[1], at);
		}
		if (different || named < 500 || inlined < 100)
			CHECK_FAIL("%s: %" PRIu64 " addresses with names, %" PRIu64
					   " in inlined calls, %" PRIu64 " differ",
				compilers[i], named, inlined, different);
		for (size_t k = 0; k < 2; k++) {
			symindex_close(x[k]);
			buf_release(&index[k]);
			buf_release(&b[k]);
		}
	}
}

/* What a skeleton says of inlined calls is of less quality than what its unit says. */
TEST(inlined_calls_of_a_skeleton_are_lines)
{
	struct buf b = bundled(SPLIT("-gdwarf-5 -fsplit-dwarf-inlining"), "main.dwo");
	enum symindex_quality best;
	struct dwarf_stats stats = read_bundle(&b, &best);

	CHECK_INT(stats.units_split_found, 1);
	CHECK(stats.functions >= 4 && stats.inlined >= 5);
	buf_release(&b);
	b = made("clang -O2 -gdwarf-5 -gsplit-dwarf=single -fsplit-dwarf-inlining " SAMPLES
			 "table.c " SAMPLES "main.c");
	stats = read_bundle(&b, &best);
	CHECK(stats.functions >= 2 && stats.inlined >= 5);
	CHECK_INT(best, SYMINDEX_LINES);
	buf_release(&b);
}

TEST(lines_of_assembler_sources_have_symbols)
{
	struct buf b = made("gcc -O2 -fPIC -S -o - " SAMPLES "table.c | clang -g -x assembler -shared "
						"-nostdlib -");
	enum symindex_quality best;
	struct dwarf_stats stats = read_bundle(&b, &best);

	CHECK_INT(stats.functions, 0);
	CHECK(stats.segments > 50);
	CHECK_INT(best, SYMINDEX_LINES);
	buf_release(&b);
}

TEST(a_damaged_file_beside_the_binary_is_left_out)
{
	struct buf b = bundled(SPLIT("-gdwarf-5"), "*.dwo");
	enum symindex_quality best;
	struct dwarf_stats stats;
	size_t len;
	char *at;

	memset(file_of(&b, 0, &len), 'x', 4);
	stats = read_bundle(&b, &best);
	CHECK_INT(stats.files_damaged, 1);
	CHECK_INT(stats.units_split_found, 1);
	CHECK_STR(str_of(stats.first_error.msg), "file 1 of the bundle: not an ELF file");
	CHECK_INT(best, SYMINDEX_DWARF);
	at = section_in(&b, 1, ".debug_abbrev.dwo", &len);
	memset(at, 0xff, len);
	stats = read_bundle(&b, &best);
	CHECK_INT(stats.files_damaged, 1);
	CHECK_INT(stats.units_damaged, 1);
	CHECK_INT(stats.units_split_found, 0);
	CHECK_INT(best, SYMINDEX_LINES);
	buf_release(&b);
}

TEST(a_damaged_dwz_file_is_left_out)
{
	struct buf b = made("gcc -O2 -g " SAMPLES "table.c " SAMPLES "main.c"), index = { 0 };
	struct buf alt = { 0 };
	struct dwarf_stats stats;
	struct err err = { 0 };
	const Elf64_Ehdr *h;
	Elf64_Shdr *s;

	buf_add_str(&alt, buf_str(&b));
	REQUIRE(alt.len);
	h = (const void *)alt.ptr;
	s = (void *)(alt.ptr + h->e_shoff);
	for (unsigned i = 0; i < h->e_shnum; i++)
		if (!strcmp(alt.ptr + s[h->e_shstrndx].sh_offset + s[i].sh_name, ".debug_str"))
			s[i].sh_size = alt.len + 1;
	REQUIRE_OK(oracle_index_bytes(buf_str(&b), buf_str(&alt), &stats, &index, &err), &err);
	CHECK_INT(stats.files_damaged, 1);
	CHECK_STR(str_of(stats.first_error.msg),
		"dwz file: ELF: section .debug_str is beyond the end of the file");
	CHECK(stats.functions >= 4);
	buf_release(&index);
	buf_release(&alt);
	buf_release(&b);
}

TEST(a_damaged_unit_of_a_package_is_skipped)
{
	struct buf b = bundled(SPLIT("-gdwarf-4") DWP, "*.dwp");
	enum symindex_quality best;
	struct dwarf_stats stats;
	size_t len;
	char *at = section_in(&b, 0, ".debug_info.dwo", &len);

	REQUIRE(len > 11);
	memset(at + 6, 0xff, 4); /* its abbreviations */
	stats = read_bundle(&b, &best);
	CHECK_INT(stats.units_damaged, 1);
	CHECK_INT(stats.units_split_found, 1);
	CHECK(str_has_prefix(str_of(stats.first_error.msg),
		STR("file 1 of the bundle: unit at 0x0: abbreviations at 0x")));
	buf_release(&b);
}

TEST(a_package_whose_index_is_damaged_is_left_out)
{
	static const struct {
		size_t at;
		const char *bytes; /* four */
		const char *message;
	} cases[] = {
		{ 0, "\3\0\0\0", "the package's index has version 3" },
		{ 4, "\x11\0\0\0", "the package's index has 17 columns and 2 rows, limits 16, 524288" },
		{ 8, "\1\0\x08\0", "the package's index has 5 columns and 524289 rows, limits 16, 524288" },
		{ 8, "\0\0\1\0", "the package's index is longer than its section" },
		{ 12, "\xff\xff\xff\xff", "the package's index is longer than its section" },
		{ 64, "\2\0\0\0", "the package's index has no units or no abbreviations" },
	};
	struct buf b = bundled(SPLIT("-gdwarf-5") DWP, "*.dwp");
	size_t len;
	char *at = section_in(&b, 0, ".debug_cu_index", &len);
	enum symindex_quality best;
	struct dwarf_stats stats;
	char kept[4], want[128];

	REQUIRE(len > 100 && at[0] == 5 && at[4] == 5 && at[8] == 2 && at[12] == 4);
	REQUIRE(at[64] == 1); /* 16 + 4 * 12: the first column */
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		memcpy(kept, at + cases[i].at, 4);
		memcpy(at + cases[i].at, cases[i].bytes, 4);
		stats = read_bundle(&b, &best);
		memcpy(at + cases[i].at, kept, 4);
		CHECK_INT(stats.files_damaged, 1);
		CHECK_INT(stats.units_split_found, 0);
		snprintf(want, sizeof(want), "file 1 of the bundle: %s", cases[i].message);
		CHECK_STR(str_of(stats.first_error.msg), want);
		CHECK_INT(best, SYMINDEX_LINES);
	}
	/* The second unit is not in the table: it is damaged, the first one is read. */
	memset(at + 64 + 5 * 4 + 5 * 4, 0xff, 4);
	stats = read_bundle(&b, &best);
	CHECK_INT(stats.units_damaged, 1);
	CHECK_INT(stats.units_split_found, 1);
	CHECK(str_has_suffix(str_of(stats.first_error.msg), STR(": it is not in the package's index")));
	buf_release(&b);
}

/* ---- every byte ---- */

/* No crash, and the budget of steps ends what would go on. */
static void flip_each(const struct buf *b, char *at, size_t len, unsigned char mask)
{
	for (size_t k = 0; k < len; k += CHECK_STEP) {
		struct buf index = { 0 };
		struct dwarf_stats stats;
		struct err err = { 0 };

		at[k] ^= (char)mask;
		if (oracle_index_bytes(buf_str(b), (struct str){ 0 }, &stats, &index, &err))
			CHECK(err.msg[0]);
		CHECK(!(stats.units_damaged + stats.files_damaged) || stats.first_error.msg[0]);
		at[k] ^= (char)mask;
		buf_release(&index);
	}
}

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

		flip_each(&b, b.ptr + at, len, mask);
	}
	buf_release(&b);
}

/* The sections of the first file beside the binary. */
static void flip_split(const char *command, const char *beside, unsigned char mask)
{
	static const char *const names[] = { ".debug_info.dwo", ".debug_abbrev.dwo",
		".debug_str_offsets.dwo", ".debug_rnglists.dwo", ".debug_cu_index" };
	struct buf b = bundled(command, beside);

	for (size_t i = 0; b.len && i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len;
		char *at = section_in(&b, 0, names[i], &len);

		flip_each(&b, at, len, mask);
	}
	buf_release(&b);
}

#define SPLIT_SMALL(options) \
	"clang -O2 -gsplit-dwarf -fPIC " options " -c $S/table.c && " \
	"clang -shared -nostdlib -o made table.o"

TEST(every_byte_of_a_unit_flipped)
{
	flip_split(SPLIT_SMALL("-gdwarf-5"), "*.dwo", 0xff);
	flip_split(SPLIT_SMALL("-gdwarf-4"), "*.dwo", 0x81);
	flip_split(SPLIT_SMALL("-gdwarf-5") DWP, "*.dwp", 0x40);
	flip_split(SPLIT_SMALL("-gdwarf-4") DWP, "*.dwp", 0xff);
}

TEST(every_byte_flipped)
{
	flip("gcc -O2 -gdwarf-5 -shared -fPIC -nostdlib " SAMPLES "table.c", 0xff);
	flip("clang -O2 -gdwarf-5 -gsplit-dwarf=single -fsplit-dwarf-inlining -shared -fPIC "
		 "-nostdlib " SAMPLES "table.c",
		0x81);
	flip("gcc -O2 -gdwarf-3 -shared -fPIC -nostdlib " SAMPLES "table.c", 0x40);
}
