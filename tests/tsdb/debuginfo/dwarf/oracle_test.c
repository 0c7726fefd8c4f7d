/*
 * Binaries built here by several compilers, read by us, by addr2line and by llvm-symbolizer.
 * EPI_ORACLE_FILE=FILE compares that file alone, and shows differences
 * (tests/tsdb/debuginfo/oracle/README.md).
 */
#include "tests/oracle.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/tsdb/debuginfo/oracle/compare.h"

#define C_FILES "samples/table.c samples/main.c"
#define CC_FILES "samples/shapes.cc samples/main.cc"
#define ZLIB "-gz=zlib "

/* clang-format off */
static const struct build {
	const char *name, *command; /* run in the samples' folder; %s is what it makes */
	enum oracle tool;
	uint32_t most;
} builds[] = {
	{ "gcc 5", "gcc -O2 -gdwarf-5 -o %s " C_FILES, ORACLE_ADDR2LINE, 1000 },
	{ "gcc 4", "gcc -O2 -gdwarf-4 -no-pie -o %s " C_FILES, ORACLE_ADDR2LINE, 1000 },
	{ "gcc 3", "gcc -O2 -gdwarf-3 -o %s " C_FILES, ORACLE_ADDR2LINE, 1000 },
	{ "gcc 2", "gcc -O2 -gdwarf-2 -o %s " C_FILES, ORACLE_LLVM, 1000 },
	{ "gcc 5 lto", "gcc -O2 -g -flto -o %s " C_FILES, ORACLE_LLVM, 1000 },
	{ "gcc 5 64 bits", "gcc -O2 -gdwarf-5 -gdwarf64 -o %s " C_FILES, ORACLE_LLVM, 1000 },
	{ "gcc 4 units of types",
		"g++ -O2 -gdwarf-4 -fdebug-types-section -o %s " CC_FILES, ORACLE_LLVM, 3000 },
	{ "g++ 5", "g++ -O2 -gdwarf-5 -o %s " CC_FILES, ORACLE_ADDR2LINE, 6000 },
	{ "g++ 5 llvm", "g++ -O2 -gdwarf-5 -o %s " CC_FILES, ORACLE_LLVM, 6000 },
	{ "gcc 4 zlib", "gcc -O2 -gdwarf-4 " ZLIB "-no-pie -o %s " C_FILES, ORACLE_ADDR2LINE, 1000 },
	{ "g++ 5 sections",
		"g++ -O2 -g -ffunction-sections -Wl,--gc-sections -o %s " CC_FILES,
		ORACLE_ADDR2LINE, 3000 },
	{ "g++ 5 lto", "g++ -O2 -g -flto -o %s " CC_FILES, ORACLE_ADDR2LINE, 3000 },
	{ "gcc 5 debug file",
		"gcc -O2 -g -o %s.all " C_FILES
		" && objcopy --only-keep-debug %s.all %s && rm %s.all", ORACLE_LLVM, 3000 },
	{ "clang 5", "clang -O2 -gdwarf-5 -o %s " C_FILES, ORACLE_LLVM, 1000 },
	{ "clang 4", "clang -O2 -gdwarf-4 -o %s " C_FILES, ORACLE_LLVM, 1000 },
	{ "clang 3", "clang -O2 -gdwarf-3 -o %s " C_FILES, ORACLE_LLVM, 1000 },
	{ "clang 2", "clang -O2 -gdwarf-2 -o %s " C_FILES, ORACLE_LLVM, 1000 },
	{ "clang++ 5", "clang++ -std=c++17 -O2 -gdwarf-5 -o %s " CC_FILES, ORACLE_LLVM, 6000 },
	{ "clang++ 5 sections",
		"clang++ -std=c++17 -O2 -g -ffunction-sections -Wl,--gc-sections -o %s " CC_FILES,
		ORACLE_LLVM, 3000 },
	{ "go",
		"GOTOOLCHAIN=local GO111MODULE=off GOFLAGS= go build -o %s samples/main.go",
		ORACLE_LLVM, 6000 },
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

static void print_counts(const char *name, const struct oracle_counts *c)
{
	uint64_t equal = c->equal + c->by_symbol;

	printf("  %-22s %6" PRIu64 " addresses, %.2f %% equal (%" PRIu64 " by symbol); calls %" PRIu64
		   " function %" PRIu64 " file %" PRIu64 " line %" PRIu64 " missing %" PRIu64 "\n",
		name, c->addresses, c->addresses ? 100.0 * (double)equal / (double)c->addresses : 0,
		c->by_symbol, c->depth, c->function, c->file, c->line, c->missing);
}

static void add(struct oracle_counts *sum, const struct oracle_counts *c)
{
	sum->addresses += c->addresses;
	sum->equal += c->equal;
	sum->by_symbol += c->by_symbol;
	sum->outside += c->outside;
	sum->depth += c->depth;
	sum->function += c->function;
	sum->file += c->file;
	sum->line += c->line;
	sum->missing += c->missing;
}

TEST(compilers)
{
	char dir[] = "/tmp/epimetheus-oracle-XXXXXX", path[64];
	const char *only = getenv("EPI_ORACLE_BUILD");
	struct oracle_counts sum = { 0 };
	struct err err = { 0 };

	if (getenv("EPI_ORACLE_FILE"))
		return;
	REQUIRE(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/made", dir);
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		const struct build *b = &builds[i];
		struct oracle_counts c = { 0 };
		struct buf command = { 0 }, output = { 0 };

		if (only && strcmp(only, b->name) != 0)
			continue;
		substitute(&command, b->command, path);
		if (!oracle_run(&output, "%s", command.ptr))
			CHECK_FAIL("%s: %s", b->name, command.ptr);
		else
			CHECK_OK(oracle_compare(path, b->tool, b->most, only ? 40 : 0, &c, &err), &err);
		buf_release(&command);
		buf_release(&output);
		print_counts(b->name, &c);
		add(&sum, &c);
		unlink(path);
	}
	rmdir(dir);
	print_counts("all", &sum);
	if (!only) {
		CHECK(sum.addresses >= 20000);
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
