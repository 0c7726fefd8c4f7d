/*
 * Binaries built here by several compilers, read by us, by addr2line and by llvm-symbolizer.
 * EPI_ORACLE_FILE=FILE compares that file alone, and shows differences
 * (tests/tsdb/debuginfo/oracle/README.md).
 */
#include "tests/oracle.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/tsdb/debuginfo/oracle/bundles.h"
#include "tests/tsdb/debuginfo/oracle/compare.h"

#define C_FILES "samples/table.c samples/main.c"
#define CC_FILES "samples/shapes.cc samples/main.cc"
#define ZLIB "-gz=zlib "
/* What BOLT's manual asks of GCC: functions that are not split before. */
#define ONE_PART "-fno-reorder-blocks-and-partition"
#define FILE_MIXED_UP "addr2line takes another unit's file in sections like .text.startup"

/* With functions in other places, by llvm-bolt. */
#define BOLT(compiler) \
	compiler " -O2 -Wl,-q -o %s.linked " CC_FILES \
			 " && ./bolt.sh %s.linked %s -update-debug-sections"
/* Units in .dwo files beside what is made. Of another build's nothing is left. */
#define SPLIT_FILES(compiler, options, sources, also) \
	"samples=$PWD/samples && cd $(dirname %s) && rm -f *.o *.dwo *.dwp && " compiler \
	" -gsplit-dwarf " options " -c " sources " && " compiler " " options " -o %s *.o" also
#define SPLIT(compiler, options, also) \
	SPLIT_FILES(compiler, options, "$samples/shapes.cc $samples/main.cc", also)
#define SPLIT_C(options) SPLIT_FILES("gcc -O2", options, "$samples/table.c $samples/main.c", "")
#define CLANGXX "clang++ -std=c++17 -O2"
#define DWP " && llvm-dwp-16 -e %s -o %s.dwp && rm *.dwo"

/* clang-format off */
static const struct build {
	const char *name, *command; /* run in the oracle's folder; %s is what it makes */
	enum oracle tool;
	uint32_t most;
	bool more; /* it needs the files of the build before it */
	const char *debug, *alt; /* what the index is made of, if other files than that */
	const char *reads; /* what the tool reads, if another file */
	uint32_t named_min; /* addresses with names; they are as many in the short form */
	/* How many in 1,000 are equal at least, if not 995, and why: the tool is wrong. */
	uint32_t equal_min;
	const char *why;
	bool is_slow; /* and near to others: not in the short form */
	const char *beside; /* a pattern: files that go behind it in a bundle */
} builds[] = {
	{ "gcc 5", "gcc -O2 -gdwarf-5 -o %s " C_FILES, ORACLE_ADDR2LINE, 1000 },
	{ "gcc 4", "gcc -O2 -gdwarf-4 -no-pie -o %s " C_FILES, ORACLE_ADDR2LINE, 1000 },
	{ "gcc 3", "gcc -O2 -gdwarf-3 -o %s " C_FILES, ORACLE_ADDR2LINE, 1000 },
	{ "gcc 2", "gcc -O2 -gdwarf-2 -o %s " C_FILES, ORACLE_LLVM, 1000 },
	{ "gcc 5 lto", "gcc -O2 -g -flto -o %s " C_FILES, ORACLE_LLVM, 1000 },
	{ "gcc 5 64 bits", "gcc -O2 -gdwarf-5 -gdwarf64 -o %s " C_FILES, ORACLE_LLVM, 1000 },
	{ "gcc 4 units of types",
		"g++ -O2 -gdwarf-4 -fdebug-types-section -o %s " CC_FILES, ORACLE_LLVM, 3000 },
	{ "g++ 5", "g++ -O2 -gdwarf-5 -o %s " CC_FILES, ORACLE_ADDR2LINE, 6000,
		.equal_min = 985, .why = FILE_MIXED_UP },
	{ "g++ 5 llvm", "true", ORACLE_LLVM, 6000, .more = true },
	{ "g++ 5 dwz", "cp %s %s.dwz && dwz %s.dwz", ORACLE_LLVM, 6600, .more = true,
		.debug = ".dwz", .reads = ".dwz", .named_min = 5000 },
	/* No tool reads both files, so it reads what dwz made them of. */
	{ "g++ 5 dwz file",
		"cp %s %s.one && cp %s %s.two && dwz -m %s.alt %s.one %s.two", ORACLE_LLVM, 6600,
		.more = true, .debug = ".one", .alt = ".alt", .named_min = 5000 },
	{ "g++ 5 stripped",
		"objcopy --only-keep-debug %s %s.debug && "
		"objcopy --strip-all --add-gnu-debuglink=%s.debug %s", ORACLE_LLVM, 3000,
		.more = true, .debug = ".debug" },
	{ "gcc 4 zlib", "gcc -O2 -gdwarf-4 " ZLIB "-no-pie -o %s " C_FILES, ORACLE_ADDR2LINE, 1000 },
	{ "g++ 5 sections",
		"g++ -O2 -g -ffunction-sections -Wl,--gc-sections -o %s " CC_FILES,
		ORACLE_ADDR2LINE, 3000, .equal_min = 985, .why = FILE_MIXED_UP, .is_slow = true },
	{ "g++ 5 sections llvm", "true", ORACLE_LLVM, 3000, .more = true, .is_slow = true },
	{ "g++ 5 lto", "g++ -O2 -g -flto -o %s " CC_FILES, ORACLE_ADDR2LINE, 3000,
		.equal_min = 980, .why = "addr2line has no name for some functions of other units",
		.is_slow = true },
	{ "g++ 5 lto llvm", "true", ORACLE_LLVM, 3000, .more = true, .is_slow = true },
	{ "gcc 5 debug file",
		"gcc -O2 -g -o %s.all " C_FILES
		" && objcopy --only-keep-debug %s.all %s && rm %s.all", ORACLE_LLVM, 3000 },
	{ "clang 5", "clang -O2 -gdwarf-5 -o %s " C_FILES, ORACLE_LLVM, 1000 },
	{ "clang 4", "clang -O2 -gdwarf-4 -o %s " C_FILES, ORACLE_LLVM, 1000 },
	{ "clang 3", "clang -O2 -gdwarf-3 -o %s " C_FILES, ORACLE_LLVM, 1000 },
	{ "clang 2", "clang -O2 -gdwarf-2 -o %s " C_FILES, ORACLE_LLVM, 1000 },
	{ "clang++ 5", "clang++ -std=c++17 -O2 -gdwarf-5 -o %s " CC_FILES, ORACLE_LLVM, 6000,
		.is_slow = true },
	{ "clang++ 5 sections",
		"clang++ -std=c++17 -O2 -g -ffunction-sections -Wl,--gc-sections -o %s " CC_FILES,
		ORACLE_LLVM, 3000 },
	{ "bolt g++ 5", BOLT("g++ -gdwarf-5 " ONE_PART), ORACLE_LLVM, 11000,
		.named_min = 5000 },
	{ "bolt g++ 4", BOLT("g++ -gdwarf-4 " ONE_PART), ORACLE_LLVM, 11000,
		.named_min = 5000, .is_slow = true },
	{ "bolt g++ 5 parts", BOLT("g++ -gdwarf-5"), ORACLE_LLVM, 11000, .equal_min = 965,
		.why = "BOLT leaves GCC's .cold parts out of the ranges of units: llvm has no lines there",
		.is_slow = true },
	{ "bolt clang++ 5", BOLT("clang++ -std=c++17 -gdwarf-5"), ORACLE_LLVM, 11000,
		.named_min = 5000, .is_slow = true },
	{ "bolt clang++ 4", BOLT("clang++ -std=c++17 -gdwarf-4"), ORACLE_LLVM, 11000,
		.named_min = 5000 },
	{ "gcc 5 split", SPLIT_C("-gdwarf-5 -ffunction-sections"), ORACLE_LLVM, 3000,
		.beside = "*.dwo" },
	{ "gcc 4 split", SPLIT_C("-gdwarf-4 -ffunction-sections"), ORACLE_LLVM, 3000,
		.beside = "*.dwo" },
	{ "g++ 5 split", SPLIT("g++ -O2", "-gdwarf-5", ""), ORACLE_LLVM, 9000, .beside = "*.dwo" },
	{ "g++ 5 split, package", "cd $(dirname %s)" DWP, ORACLE_LLVM, 9000, .more = true,
		.beside = "*.dwp", .is_slow = true },
	{ "g++ 5 split, no unit", "rm %s.dwp", ORACLE_LLVM, 9000, .more = true, .is_slow = true },
	{ "g++ 4 split", SPLIT("g++ -O2", "-gdwarf-4", ""), ORACLE_LLVM, 9000, .beside = "*.dwo" },
	{ "g++ 4 split, package", "cd $(dirname %s) && dwp -e %s -o %s.dwp && rm *.dwo", ORACLE_LLVM,
		9000, .more = true, .beside = "*.dwp", .is_slow = true },
	{ "g++ 5 split, types",
		SPLIT("g++ -O2", "-gdwarf-5 -fdebug-types-section", ""), ORACLE_LLVM, 9000,
		.beside = "*.dwo", .is_slow = true },
	{ "clang++ 5 split", SPLIT(CLANGXX, "-gdwarf-5", ""), ORACLE_LLVM, 9000, .beside = "*.dwo" },
	{ "clang++ 5 split, package", "cd $(dirname %s)" DWP, ORACLE_LLVM, 9000, .more = true,
		.beside = "*.dwp" },
	{ "clang++ 5 split, no unit", "rm %s.dwp", ORACLE_LLVM, 9000, .more = true },
	{ "clang++ 4 split", SPLIT(CLANGXX, "-gdwarf-4", ""), ORACLE_LLVM, 9000, .beside = "*.dwo",
		.is_slow = true },
	{ "clang++ 4 split, package", "cd $(dirname %s)" DWP, ORACLE_LLVM, 9000, .more = true,
		.beside = "*.dwp", .is_slow = true },
	{ "clang++ 4 split, no unit", "rm %s.dwp", ORACLE_LLVM, 9000, .more = true, .is_slow = true },
	{ "clang++ 5 split in .o", SPLIT(CLANGXX, "-gdwarf-5 -gsplit-dwarf=single", ""), ORACLE_LLVM,
		9000, .beside = "*.o", .is_slow = true },
	{ "clang++ 5 split, inlining",
		SPLIT(CLANGXX, "-gdwarf-5 -fsplit-dwarf-inlining", ""), ORACLE_LLVM, 9000,
		.beside = "*.dwo", .is_slow = true },
	{ "clang++ 5 split, inlining, no unit", "cd $(dirname %s) && rm *.dwo", ORACLE_LLVM, 9000,
		.more = true, .is_slow = true },
	{ "clang++ 4 split, inlining, no unit",
		SPLIT(CLANGXX, "-gdwarf-4 -fsplit-dwarf-inlining", " && rm *.dwo"), ORACLE_LLVM, 9000,
		.is_slow = true },
	{ "clang++ 5 split, sections, package",
		SPLIT(CLANGXX, "-gdwarf-5 -ffunction-sections", " -Wl,--gc-sections" DWP), ORACLE_LLVM,
		9000, .beside = "*.dwp", .is_slow = true },
	{ "clang++ 5 split, zlib",
		SPLIT(CLANGXX, "-gdwarf-5 -gz=zlib", ""), ORACLE_LLVM, 9000, .beside = "*.dwo",
		.is_slow = true },
	{ "clang++ 5 split, lto",
		"samples=$PWD/samples && cd $(dirname %s) && rm -f *.dwo && " CLANGXX
		" -gdwarf-5 -gsplit-dwarf -flto -o %s $samples/shapes.cc $samples/main.cc",
		ORACLE_LLVM, 9000, .beside = "made_dwo/*.dwo", .is_slow = true },
	{ "gcc assembler",
		"gcc -O2 -S -o %s.s samples/table.c && gcc -g -o %s %s.s samples/main.c", ORACLE_LLVM,
		3000 },
	{ "clang assembler",
		"gcc -O2 -S -o %s.s samples/table.c && clang -g -o %s %s.s samples/main.c", ORACLE_LLVM,
		3000 },
	{ "clang assembler without types",
		"sed '/[.]type\\|[.]size/d' -i %s.s && clang -g -o %s %s.s samples/main.c", ORACLE_LLVM,
		3000, .more = true },
	{ "go",
		"GOTOOLCHAIN=local GO111MODULE=off GOFLAGS= go build -o %s samples/main.go",
		ORACLE_LLVM, 6000 },
	/* Functions with equal code are one, and the symbol that is left is another one's. */
	{ "rustc",
		"rustc -O -g --edition 2021 -o %s samples/main.rs && "
		"objcopy --strip-all --keep-section='.debug_*' %s %s.nameless", ORACLE_LLVM, 6000,
		.reads = ".nameless", .is_slow = true },
};
/* clang-format on */

static void substitute(struct buf *b, const char *command, const char *out)
{
	const char *at;

	buf_add_cstr(b, "cd tests/tsdb/debuginfo/oracle && ");
	while ((at = strstr(command, "%s"))) {
		buf_add(b, command, (size_t)(at - command));
		buf_add_cstr(b, out);
		command = at + 2;
	}
	buf_add_cstr(b, command);
	buf_add_char(b, '\0');
}

/* DIR/made.bundle, which `path` names then. */
static bool write_bundle(const char *dir, const char *beside, char *path, size_t path_max)
{
	struct buf bundle = { 0 };
	bool ok = oracle_bundle(&bundle, dir, "made", beside) &&
		oracle_write(buf_str(&bundle), dir, "made.bundle");

	snprintf(path, path_max, "%s/made.bundle", dir);
	buf_release(&bundle);
	return ok;
}

/* Compares one build, whose files are made in dir. */
static void compare(
	const struct build *b, const char *dir, unsigned show, struct oracle_counts *counts)
{
	struct buf command = { 0 }, output = { 0 }, index = { 0 };
	char path[64], debug[80], alt[80], reads[80];
	uint32_t most = check_is_short() && !b->named_min ? b->most / 2 : b->most;
	struct dwarf_stats stats;
	struct err err = { 0 };

	snprintf(path, sizeof(path), "%s/made", dir);
	snprintf(debug, sizeof(debug), "%s%s", path, b->debug ? b->debug : "");
	snprintf(alt, sizeof(alt), "%s%s", path, b->alt ? b->alt : "");
	snprintf(reads, sizeof(reads), "%s%s", path, b->reads ? b->reads : "");
	if (!b->more)
		oracle_run(&output, "rm -rf %s*", path);
	substitute(&command, b->command, path);
	if (!oracle_run(&output, "%s", command.ptr)) {
		CHECK_FAIL("%s: %s", b->name, command.ptr);
	} else {
		if (b->beside && !write_bundle(dir, b->beside, debug, sizeof(debug)))
			CHECK_FAIL("%s: no bundle", b->name);
		CHECK_OK(oracle_index(debug, b->alt ? alt : NULL, &stats, &index, &err), &err);
		if (b->beside && (!stats.units_split || stats.units_split_found != stats.units_split))
			CHECK_FAIL("%s: %" PRIu64 " of %" PRIu64 " units found", b->name,
				stats.units_split_found, stats.units_split);
		if (stats.units_damaged || stats.files_damaged || stats.references_lost)
			CHECK_FAIL("%s: %s", b->name, stats.first_error.msg);
		CHECK_OK(
			oracle_compare_index(buf_str(&index), reads, b->tool, most, show, counts, &err), &err);
	}
	buf_release(&command);
	buf_release(&output);
	buf_release(&index);
}

static void print_counts(const char *name, const struct oracle_counts *c)
{
	uint64_t equal = c->equal + c->by_symbol;

	printf("  %-22s %6" PRIu64 " addresses, %" PRIu64 " with names, %.2f %% equal (%" PRIu64
		   " by symbol); calls %" PRIu64 " function %" PRIu64 " file %" PRIu64 " line %" PRIu64
		   " missing %" PRIu64 "\n",
		name, c->addresses, c->named,
		c->addresses ? 100.0 * (double)equal / (double)c->addresses : 0, c->by_symbol, c->depth,
		c->function, c->file, c->line, c->missing);
}

static void add(struct oracle_counts *sum, const struct oracle_counts *c)
{
	sum->addresses += c->addresses;
	sum->named += c->named;
	sum->equal += c->equal;
	sum->by_symbol += c->by_symbol;
	sum->outside += c->outside;
	sum->depth += c->depth;
	sum->function += c->function;
	sum->file += c->file;
	sum->line += c->line;
	sum->missing += c->missing;
}

static void check_counts(const struct build *b, const struct oracle_counts *c)
{
	uint64_t equal_min = b->equal_min ? b->equal_min : 995;

	if (c->named < b->named_min)
		CHECK_FAIL("%s: less than %u addresses have names", b->name, b->named_min);
	if (!c->addresses || (c->equal + c->by_symbol) * 1000 < c->addresses * equal_min)
		CHECK_FAIL("%s: less than %" PRIu64 " in 1000 are equal", b->name, equal_min);
	if (b->why)
		printf("    %s\n", b->why);
}

TEST(compilers)
{
	char dir[] = "/tmp/epimetheus-oracle-XXXXXX";
	const char *only = getenv("EPI_ORACLE_BUILD");
	struct oracle_counts sum = { 0 };
	struct buf output = { 0 };

	if (getenv("EPI_ORACLE_FILE"))
		return;
	REQUIRE(mkdtemp(dir));
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		struct oracle_counts c = { 0 };

		if (only ? strncmp(builds[i].name, only, strlen(only)) != 0 :
				   builds[i].is_slow && check_is_short())
			continue;
		compare(&builds[i], dir, only ? 40 : 0, &c);
		print_counts(builds[i].name, &c);
		check_counts(&builds[i], &c);
		add(&sum, &c);
	}
	oracle_run(&output, "rm -rf %s", dir);
	buf_release(&output);
	print_counts("all", &sum);
	if (!only) {
		CHECK(sum.addresses >= (check_is_short() ? 10000 : 20000));
		CHECK((sum.equal + sum.by_symbol) * 1000 >= sum.addresses * 995);
	}
}

TEST(by_hand)
{
	const char *path = getenv("EPI_ORACLE_FILE"), *limit = getenv("EPI_ORACLE_MOST");
	uint32_t most = limit ? (uint32_t)strtoul(limit, NULL, 10) : 5000;
	struct oracle_counts c[2] = { { 0 } };
	struct err err = { 0 };

	if (!path)
		return;
	for (int tool = 0; tool < 2; tool++) {
		CHECK_OK(oracle_compare(path, (enum oracle)tool, most, 40, &c[tool], &err), &err);
		print_counts(tool == ORACLE_LLVM ? "llvm-symbolizer" : "addr2line", &c[tool]);
	}
}
