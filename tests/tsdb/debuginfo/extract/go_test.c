/*
 * Stripped Go programs: functions, files and lines as `go tool addr2line` prints them, inlined
 * calls as llvm-symbolizer reads them in the debug data of the same program.
 */
#include "tests/oracle.h"

#include <elf.h>
#include <stddef.h>

#include "base/array.h"
#include "tests/tsdb/debuginfo/oracle/compare.h"
#include "tsdb/debuginfo/extract/extract.h"

#define GO \
	"cd tests/tsdb/debuginfo/oracle/samples && GOTOOLCHAIN=local GO111MODULE=off GOFLAGS= go " \
	"build "
#define DEPTH 64u

static struct err err;

static struct symindex *index_of(const char *file, struct buf *index)
{
	struct symindex *x = NULL;
	struct buf bytes = { 0 };

	if (!oracle_dir() || !oracle_read(&bytes, oracle_dir(), file))
		CHECK_FAIL("no %s", file);
	else if (debuginfo_extract(buf_str(&bytes), STR(""), index, &err) ||
				 symindex_open(buf_str(index), &x, &err))
		CHECK_FAIL("%s: %s", file, err.msg);
	buf_release(&bytes);
	return x;
}

struct addresses {
	uint64_t *v;
	size_t n, cap;
};

/* Where a file, a line or an inlined call changes, and the byte before. */
static void choose(const struct symindex *x, struct addresses *a, size_t most)
{
	struct symindex_location now[DEPTH], was = { 0 };
	size_t n, was_n = 0, changes = 0;

	for (uint64_t at = 0x1000; at < 0x600000 && a->n < most; at++) {
		n = symindex_find(x, at, now, DEPTH);
		if (n && (!now[0].line || str_find(now[n - 1].raw, STR(".")) < 0))
			n = 0; /* C's */
		if (n && (n != was_n || now[0].line != was.line || now[0].name.ptr != was.name.ptr) &&
			changes++ % 5 == 0) {
			REQUIRE(array_room(&a->v, a->n, 2, &a->cap));
			if (was_n)
				a->v[a->n++] = at - 1;
			a->v[a->n++] = at;
		}
		if (n)
			was = now[0];
		was_n = n;
	}
}

/* A table of its own has the outermost function and the line of the code. */
static void compare(const char *file)
{
	struct buf index = { 0 }, text = { 0 }, out = { 0 };
	struct symindex *x = index_of(file, &index);
	struct addresses a = { 0 };
	size_t equal = 0;
	struct str rest;

	if (!x)
		return;
	CHECK(symindex_best(x) >= SYMINDEX_LINES); /* C's runtime may have debug data */
	choose(x, &a, 6000);
	CHECK(a.n >= 3000);
	for (size_t i = 0; i < a.n; i++)
		buf_printf(&text, "0x%" PRIx64 "\n", a.v[i]);
	REQUIRE(oracle_write(buf_str(&text), oracle_dir(), "addresses"));
	REQUIRE(oracle_run(
		&out, "cd '%s' && GOTOOLCHAIN=local go tool addr2line %s <addresses", oracle_dir(), file));
	rest = buf_str(&out);
	for (size_t i = 0; i < a.n; i++) {
		struct symindex_location v[DEPTH];
		size_t n = symindex_find(x, a.v[i], v, DEPTH);
		ptrdiff_t end;

		buf_clear(&text);
		if (n && n <= DEPTH)
			buf_printf(&text, STR_FMT "\n" STR_FMT ":%u\n", STR_ARG(v[n - 1].raw),
				STR_ARG(v[0].file), v[0].line);
		end = str_find(rest, STR("\n"));
		end = end < 0 ? end :
						end + 1 +
				str_find((struct str){ rest.ptr + end + 1, rest.len - (size_t)end - 1 }, STR("\n"));
		REQUIRE(end > 0);
		if (str_eq((struct str){ rest.ptr, (size_t)end + 1 }, buf_str(&text)))
			equal++;
		else if (i - equal < 10)
			printf("  0x%" PRIx64 ": " STR_FMT "  want " STR_FMT, a.v[i], STR_ARG(buf_str(&text)),
				(int)end + 1, rest.ptr);
		rest = (struct str){ rest.ptr + end + 1, rest.len - (size_t)end - 1 };
	}
	printf("  %s: %zu of %zu equal\n", file, equal, a.n);
	CHECK_INT(equal, a.n);
	free(a.v);
	symindex_close(x);
	buf_release(&index);
	buf_release(&text);
	buf_release(&out);
}

/* addr2line cannot tell where the code begins in all programs that move. */
static const struct build {
	const char *name, *flags;
} builds[] = {
	{ "plain", "-ldflags='-s -w'" },
	/* With a symbol, by which it knows where Go's code begins behind C's. */
	{ "external", "-ldflags='-w -linkmode=external -extldflags=-no-pie'" },
};

TEST(functions_and_lines_are_those_of_go)
{
	struct buf out = { 0 };

	REQUIRE(oracle_dir());
	for (size_t i = 0; i < sizeof(builds) / sizeof(*builds); i++) {
		REQUIRE(oracle_run(
			&out, GO "%s -o '%s/%s' main.go 2>&1", builds[i].flags, oracle_dir(), builds[i].name));
		compare(builds[i].name);
	}
	buf_release(&out);
}

TEST(the_table_is_found_without_sections)
{
	static const char *const files[] = { "bare", "bare_external" };
	struct buf bytes = { 0 }, index = { 0 }, other = { 0 }, out = { 0 };

	REQUIRE(oracle_dir());
	REQUIRE(oracle_run(&out, GO "-ldflags='-s -w' -o '%s/bare' main.go", oracle_dir()));
	REQUIRE(oracle_run(&out,
		GO "-ldflags='-s -w -linkmode=external -extldflags=-no-pie' -o '%s/bare_external' main.go",
		oracle_dir()));
	for (size_t i = 0; i < 2; i++) {
		struct symindex *x = NULL, *bare = NULL;
		size_t named = 0;

		buf_clear(&index);
		buf_clear(&other);
		REQUIRE((x = index_of(files[i], &index)));
		REQUIRE(oracle_read(&bytes, oracle_dir(), files[i]));
		memset(bytes.ptr + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
		memset(bytes.ptr + offsetof(Elf64_Ehdr, e_shnum), 0, 4);
		REQUIRE_OK(debuginfo_extract(buf_str(&bytes), STR(""), &other, &err), &err);
		REQUIRE_OK(symindex_open(buf_str(&other), &bare, &err), &err);
		CHECK_INT(symindex_best(bare), SYMINDEX_LINES);
		for (uint64_t at = 0x400000; at < 0x500000; at += 61) {
			struct symindex_location v[DEPTH], w[DEPTH];
			size_t n = symindex_find(x, at, v, DEPTH), m = symindex_find(bare, at, w, DEPTH);

			if (!n || !v[0].line)
				continue; /* not Go's, from a symbol table */
			named++;
			if (n != m || !str_eq(v[0].name, w[0].name) || v[0].line != w[0].line)
				CHECK_FAIL("%s: 0x%" PRIx64, files[i], at);
		}
		CHECK(named > 1000);
		symindex_close(x);
		symindex_close(bare);
	}
	buf_release(&bytes);
	buf_release(&index);
	buf_release(&other);
	buf_release(&out);
}

/* flags, without -s and -w */
static void compare_inlined(const char *flags, const char *linker)
{
	struct oracle_counts c = { 0 };
	struct buf out = { 0 }, index = { 0 };
	struct symindex *x;
	char path[128];

	REQUIRE(
		oracle_run(&out, GO "%s -ldflags='%s' -o '%s/all' main.go", flags, linker, oracle_dir()));
	REQUIRE(oracle_run(
		&out, GO "%s -ldflags='-s -w %s' -o '%s/bare' main.go", flags, linker, oracle_dir()));
	REQUIRE((x = index_of("bare", &index)));
	CHECK_INT(symindex_best(x), SYMINDEX_LINES);
	snprintf(path, sizeof(path), "%s/all", oracle_dir());
	CHECK_OK(oracle_compare_index(buf_str(&index), path, ORACLE_LLVM, 6000, 4, &c, &err), &err);
	printf("  %" PRIu64 " addresses: %" PRIu64 " equal; calls %" PRIu64 " function %" PRIu64
		   " file %" PRIu64 " line %" PRIu64 " missing %" PRIu64 "\n",
		c.addresses, c.equal + c.by_symbol, c.depth, c.function, c.file, c.line, c.missing);
	CHECK(c.addresses >= 4000);
	CHECK((c.equal + c.by_symbol) * 1000 >= c.addresses * 995);
	symindex_close(x);
	buf_release(&index);
	buf_release(&out);
}

TEST(inlined_calls_are_those_of_the_debug_data)
{
	REQUIRE(oracle_dir());
	if (!check_is_short()) {
		compare_inlined("", "");
		compare_inlined("-buildmode=pie", "");
	}
	compare_inlined("-buildmode=pie", "-linkmode=external");
}
