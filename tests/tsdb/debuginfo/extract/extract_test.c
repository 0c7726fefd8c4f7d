/* Binaries made by gcc, clang and objcopy here become indexes; damaged ones keep what is good. */
#include "tsdb/debuginfo/extract/extract.h"

#include <elf.h>

#include "tests/oracle.h"

#define SAMPLES "tests/tsdb/debuginfo/oracle/samples/"

static struct err err;

static void run(const char *command)
{
	struct buf out = { 0 };

	if (!oracle_dir() ||
		!oracle_run(&out, "export S=$PWD/" SAMPLES "; cd '%s' && %s", oracle_dir(), command))
		CHECK_FAIL("failed: %s", command);
	buf_release(&out);
}

static struct buf read_file(const char *name)
{
	struct buf b = { 0 };

	if (!oracle_dir() || !oracle_read(&b, oracle_dir(), name))
		CHECK_FAIL("no %s", name);
	return b;
}

static uint64_t number_of(const char *command)
{
	struct buf out = { 0 };
	uint64_t v = 0;

	if (oracle_run(&out, "cd '%s' && %s", oracle_dir(), command)) {
		buf_add_char(&out, '\0');
		v = strtoull(out.ptr, NULL, 16);
	}
	buf_release(&out);
	return v;
}

static void make_files(void)
{
	static bool made;

	if (made)
		return;
	made = true;
	run("gcc -O2 -g -Wl,--build-id=sha1 -o plain $S/table.c $S/main.c && "
		"gcc -O2 -g -Wl,-z,noseparate-code -Wl,--build-id=none -o dense $S/table.c $S/main.c && "
		"gcc -O2 -g -no-pie -rdynamic -o fixed $S/table.c $S/main.c && "
		"for f in plain dense fixed; do objcopy --only-keep-debug $f $f.debug; "
		"llvm-objcopy-16 --only-keep-debug $f $f.llvm; strip -o $f.stripped $f; "
		"strip -g -o $f.names $f; done; "
		"objcopy --compress-debug-sections=zlib plain zlib && "
		"echo 'int other(int v) { return v * 3; } int main(void) { return other(1); }' >other.c && "
		"gcc -O0 -o other.names other.c");
}

struct extracted {
	struct buf bytes, index;
	struct symindex *x; /* NULL: err says why */
};

static struct extracted extract(const char *name)
{
	struct extracted e = { .bytes = read_file(name) };

	buf_add_cstr(&e.index, "before");
	if (debuginfo_extract(buf_str(&e.bytes), STR(""), &e.index, &err))
		CHECK_INT(e.index.len, 6);
	else
		CHECK_OK(symindex_open((struct str){ e.index.ptr + 6, e.index.len - 6 }, &e.x, &err), &err);
	return e;
}

static void release(struct extracted *e)
{
	symindex_close(e->x);
	buf_release(&e->bytes);
	buf_release(&e->index);
}

TEST(what_an_index_is_made_of)
{
	static const struct {
		const char *file;
		enum symindex_quality best;
		bool lines;
	} cases[] = {
		{ "plain", SYMINDEX_DWARF, true },
		{ "plain.debug", SYMINDEX_DWARF, true },
		{ "plain.llvm", SYMINDEX_DWARF, true },
		{ "plain.names", SYMINDEX_SYMBOLS, false },
		{ "zlib", SYMINDEX_DWARF, true },
		{ "fixed.stripped", SYMINDEX_SYMBOLS, false },
	};

	make_files();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t at = number_of(
			i < 5 ? "nm plain | sed -n 's/ T main$//p'" : "nm fixed | sed -n 's/ T main$//p'");
		struct extracted e = extract(cases[i].file);
		struct symindex_location v[8];

		if (!e.x) {
			CHECK_FAIL("%s: %s", cases[i].file, err.msg);
			continue;
		}
		CHECK_INT(symindex_best(e.x), cases[i].best);
		REQUIRE(symindex_find(e.x, at, v, 8) == 1);
		CHECK_STR(v[0].name, "main");
		CHECK_INT(v[0].line > 0, cases[i].lines);
		CHECK_INT(str_has_suffix(v[0].file, STR("/main.c")), cases[i].lines);
		CHECK_OK(symindex_damaged(e.x, &err), &err);
		release(&e);
	}
}

/* Where the kernel maps the code: the page on which its segment begins. */
static void check_addresses(const char *binary, const char *suffix)
{
	char command[256], name[64];
	struct extracted e;
	uint64_t at, offset, address, wrong = 0;

	make_files();
	snprintf(command, sizeof(command), "nm %s | sed -n 's/ T main$//p'", binary);
	at = number_of(command);
	snprintf(command, sizeof(command), "readelf -lW %s | awk '/LOAD/ && / E 0x/ {print $2; exit}'",
		binary);
	offset = number_of(command) & ~UINT64_C(4095);
	snprintf(command, sizeof(command), "readelf -lW %s | awk '/LOAD/ && / E 0x/ {print $3; exit}'",
		binary);
	address = number_of(command) & ~UINT64_C(4095);
	snprintf(name, sizeof(name), "%s%s", binary, suffix);
	e = extract(name);
	REQUIRE(e.x);
	if (!symindex_address(e.x, offset, at - address, &wrong) || wrong != at)
		CHECK_FAIL("%s: 0x%" PRIx64 ", want 0x%" PRIx64, name, wrong, at);
	release(&e);
}

TEST(places_in_mapped_files_are_addresses)
{
	static const char *const binaries[] = { "plain", "dense", "fixed" },
							 *const suffixes[] = { "", ".debug", ".llvm", ".names" };

	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 4; k++)
			check_addresses(binaries[i], suffixes[k]);
}

TEST(loads_are_those_that_readelf_prints)
{
	struct symindex_load l;
	struct extracted e;
	struct buf text = { 0 }, want = { 0 };

	make_files();
	e = extract("fixed");
	REQUIRE(e.x);
	for (uint32_t i = 0; i < symindex_loads(e.x); i++) {
		REQUIRE(symindex_load_at(e.x, i, &l));
		buf_printf(&text, "0x%06" PRIx64 " 0x%016" PRIx64 " 0x%06" PRIx64 " %d\n", l.offset,
			l.address, l.bytes, l.executable);
	}
	REQUIRE(oracle_run(&want,
		"readelf -lW %s/fixed | awk '/LOAD/ {print $2, $3, $5, / E 0x/ ? 1 : 0}'", oracle_dir()));
	oracle_check_text("loads", buf_str(&text), buf_str(&want));
	release(&e);
	buf_release(&text);
	buf_release(&want);
}

/* Lines of objdump: "0000000000001030 <puts@plt>:". */
TEST(stubs_are_those_of_objdump)
{
	static const char *const files[] = { "stubs", "stubs.stripped", "stubs.ibt" };
	struct symindex_location v[4];
	struct extracted e;
	struct buf want = { 0 };
	unsigned n;

	run("g++ -O1 -o stubs $S/shapes.cc $S/main.cc && strip -o stubs.stripped stubs && "
		"g++ -O1 -fcf-protection -Wl,-z,ibtplt -o stubs.ibt $S/shapes.cc $S/main.cc");
	for (size_t i = 0; i < 3; i++) {
		e = extract(files[i]);
		REQUIRE(e.x);
		REQUIRE(oracle_run(&want,
			"objdump -d -j .plt -j .plt.sec '%s/%s' 2>/dev/null | sed -n "
			"'s/^\\([0-9a-f]*\\) <\\(.*\\)@plt>:/\\1 \\2/p'",
			oracle_dir(), files[i]));
		buf_add_char(&want, '\0');
		n = 0;
		for (char *save, *line = strtok_r(want.ptr, "\n", &save); line;
			 line = strtok_r(NULL, "\n", &save), n++) {
			char raw[512];

			CHECK_INT(symindex_find(e.x, strtoull(line, NULL, 16) + 3, v, 4), 1);
			snprintf(raw, sizeof(raw), "%s@plt", strchr(line, ' ') + 1);
			CHECK_STR(v[0].raw, raw);
			CHECK(str_has_suffix(v[0].name, STR("@plt")) && !str_has_prefix(v[0].name, STR("_Z")));
		}
		CHECK(n > 10);
		release(&e);
	}
	buf_release(&want);
}

TEST(build_ids)
{
	struct buf want = { 0 };
	struct extracted e;

	make_files();
	e = extract("plain");
	REQUIRE(e.x);
	REQUIRE(oracle_run(
		&want, "readelf -n %s/plain | sed -n 's/.*Build ID: //p' | tr -d '\\n'", oracle_dir()));
	CHECK_INT(want.len, 40);
	CHECK(str_eq(symindex_build_id(e.x), buf_str(&want)));
	release(&e);
	e = extract("dense");
	REQUIRE(e.x);
	CHECK_INT(symindex_build_id(e.x).len, 0);
	release(&e);

	run("cd $S && GOTOOLCHAIN=local GO111MODULE=off GOFLAGS= go build -ldflags='-s -w' -o "
		"$OLDPWD/with_go main.go && cd $OLDPWD && "
		"objcopy -R .note.gnu.build-id with_go only_go 2>/dev/null");
	REQUIRE(oracle_run(&want, "go tool buildid %s/only_go | tr -d '\\n'", oracle_dir()));
	e = extract("only_go");
	REQUIRE(e.x);
	CHECK(want.len > 64);
	CHECK(str_eq(symindex_build_id(e.x), buf_str(&want)));
	release(&e);
	buf_release(&want);
}

TEST(other_files_are_refused_by_name)
{
	static const struct {
		const char *bytes, *message;
	} cases[] = {
		{ "<!DOCTYPE html><p>404", "not an ELF file: it is an HTML page" },
		{ "!<arch>\nlibx.o/", "not an ELF file: it is an archive (ar)" },
		{ "!<thin>\nlibx.o/", "not an ELF file: it is an archive (ar)" },
		{ "#!/bin/sh\nexec x", "not an ELF file: it is a script" },
		{ "404 page not found\n", "not an ELF file: it is text" },
		{ "", "not an ELF file: empty" },
	};
	struct buf out = { 0 };
	struct extracted e;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		CHECK_ERR(debuginfo_extract(str_of(cases[i].bytes), STR(""), &out, &err), &err, ERR_INVALID,
			cases[i].message);
	make_files();
	e = extract("plain.stripped");
	CHECK(!e.x);
	CHECK_ERR(err.code, &err, ERR_INVALID, "ELF: it has no symbols");
	/* A core dump is a program's memory. */
	e.bytes.ptr[offsetof(Elf64_Ehdr, e_type)] = ET_CORE;
	CHECK_ERR(debuginfo_extract(buf_str(&e.bytes), STR(""), &out, &err), &err, ERR_UNSUPPORTED,
		"ELF: a core dump, not a program");
	release(&e);
	buf_release(&out);
}

static char *section_of(struct buf *f, const char *name, size_t *len)
{
	const Elf64_Ehdr *h = (const void *)f->ptr;
	const Elf64_Shdr *s = (const void *)(f->ptr + h->e_shoff);

	for (unsigned i = 0; i < h->e_shnum; i++)
		if (!strcmp(f->ptr + s[h->e_shstrndx].sh_offset + s[i].sh_name, name)) {
			*len = s[i].sh_size;
			return f->ptr + s[i].sh_offset;
		}
	*len = 0;
	return NULL;
}

TEST(a_damaged_part_is_left_out)
{
	static const struct {
		const char *file, *section;
		enum symindex_quality best;
	} cases[] = {
		{ "zlib", ".debug_info", SYMINDEX_SYMBOLS },
		{ "plain", ".debug_info", SYMINDEX_SYMBOLS },
		{ "plain", ".debug_abbrev", SYMINDEX_SYMBOLS },
		{ "plain", ".symtab", SYMINDEX_DWARF },
	};
	char *section;
	size_t len;

	make_files();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf bytes = read_file(cases[i].file), index = { 0 };
		struct symindex *x = NULL;

		REQUIRE((section = section_of(&bytes, cases[i].section, &len)));
		memset(section + (i ? 0 : 30), 0xff, len - (i ? 0 : 30));
		CHECK_OK(debuginfo_extract(buf_str(&bytes), STR(""), &index, &err), &err);
		REQUIRE_OK(symindex_open(buf_str(&index), &x, &err), &err);
		CHECK_INT(symindex_best(x), cases[i].best);
		symindex_close(x);
		buf_release(&bytes);
		buf_release(&index);
	}
}

TEST(without_another_part_the_damage_is_said)
{
	struct buf bytes, index = { 0 };
	char *section;
	size_t len;

	make_files();
	run("strip --strip-all --keep-section='.debug_*' -o dwarf_alone zlib");
	bytes = read_file("dwarf_alone");
	REQUIRE((section = section_of(&bytes, ".debug_info", &len)));
	memset(section + 30, 0xff, len - 30);
	CHECK_ERR(debuginfo_extract(buf_str(&bytes), STR(""), &index, &err), &err, ERR_INVALID,
		"ELF: section .debug_info is damaged: inflating fails");
	CHECK_INT(index.len, 0);
	buf_release(&bytes);
	buf_release(&index);
}

TEST(beyond_a_limit_names_are_left)
{
	struct symindex_limits l = symindex_limits_default;
	struct buf bytes, index = { 0 };
	struct symindex *x = NULL;

	make_files();
	bytes = read_file("plain");
	l.segments_max = 40;
	REQUIRE_OK(debuginfo_extract_limited(buf_str(&bytes), STR(""), &l, &index, &err), &err);
	REQUIRE_OK(symindex_open(buf_str(&index), &x, &err), &err);
	CHECK_INT(symindex_best(x), SYMINDEX_SYMBOLS);
	symindex_close(x);
	buf_clear(&index);
	l.segments_max = 2;
	CHECK_ERR(debuginfo_extract_limited(buf_str(&bytes), STR(""), &l, &index, &err), &err,
		ERR_LIMIT, "unit at 0x0: symbol index: more than 2 segments, the limit");
	buf_release(&bytes);
	buf_release(&index);
}

TEST(damage_harms_nobody)
{
	struct buf bytes, index = { 0 };

	run("printf 'int f(int v) { return v; } int _start(void) { return f(1); }' >s.c && gcc -g "
		"-O1 -nostdlib -static -Wl,-z,noseparate-code -Wl,--build-id=sha1 -o small s.c");
	bytes = read_file("small");
	CHECK(bytes.len < 20000);
	for (size_t i = 0; i < bytes.len; i += CHECK_STEP) {
		char *copy = malloc(bytes.len);

		memcpy(copy, bytes.ptr, bytes.len);
		copy[i] ^= (char)(i % 3 ? 0xff : 1 << i % 8);
		buf_clear(&index);
		err.msg[0] = '\0';
		if (debuginfo_extract((struct str){ copy, bytes.len }, STR(""), &index, &err))
			CHECK(err.msg[0] && !index.len);
		free(copy);
	}
	buf_release(&bytes);
	buf_release(&index);
}

/* ---- several files of one binary ---- */

static struct extracted extract_over(const char *name, const struct extracted *older)
{
	struct extracted e = { .bytes = read_file(name) };
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

	make_files();
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		struct extracted whole = extract_over("fixed", NULL), e = { 0 }, next;
		struct buf want = { 0 }, got = { 0 };
		char name[32];

		for (size_t k = 0; k < 3 && orders[i][k]; k++) {
			snprintf(name, sizeof(name), "fixed.%s", orders[i][k]);
			next = extract_over(name, k ? &e : NULL);
			release(&e);
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
		release(&whole);
		release(&e);
		buf_release(&want);
		buf_release(&got);
	}
}

/* A second time nothing changes, not one byte; a damaged index counts as none. */
TEST(the_same_file_again)
{
	struct extracted first, again, damaged;

	make_files();
	first = extract_over("plain", NULL);
	again = extract_over("plain", &first);
	CHECK(str_eq(buf_str(&first.index), buf_str(&again.index)));
	release(&again);
	first.index.ptr[1000] ^= 1;
	damaged = extract_over("plain", &first);
	first.index.ptr[1000] ^= 1;
	CHECK(str_eq(buf_str(&first.index), buf_str(&damaged.index)));
	release(&damaged);
	release(&first);
}

/* The fewest functions that a file needs, over an older index. */
static size_t functions_needed(const char *name, struct str older)
{
	struct symindex_limits few = symindex_limits_default;
	struct buf bytes = read_file(name), want = { 0 }, got = { 0 };

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
	struct extracted lines, names;
	struct buf out = { 0 };
	char want[200];

	make_files();
	lines = extract_over("plain.debug", NULL);
	names = extract_over("other.names", NULL);
	few.functions_max = functions_needed("other.names", buf_str(&lines.index)) - 1;
	REQUIRE(few.functions_max >= functions_needed("other.names", STR("")));
	snprintf(want, sizeof(want),
		"the stored symbols cannot be kept beside those of this file: "
		"symbol index: more than %zu functions, the limit",
		few.functions_max);
	CHECK_ERR(
		debuginfo_extract_limited(buf_str(&names.bytes), buf_str(&lines.index), &few, &out, &err),
		&err, ERR_LIMIT, want);
	CHECK_INT(out.len, 0);
	few.functions_max = functions_needed("plain.debug", buf_str(&names.index)) - 1;
	REQUIRE(few.functions_max >= functions_needed("plain.debug", STR("")));
	CHECK_OK(
		debuginfo_extract_limited(buf_str(&lines.bytes), buf_str(&names.index), &few, &out, &err),
		&err);
	CHECK(str_eq(buf_str(&out), buf_str(&lines.index)));
	buf_release(&out);
	release(&lines);
	release(&names);
}
