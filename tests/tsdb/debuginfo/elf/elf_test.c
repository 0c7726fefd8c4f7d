/*
 * ELF files that gcc and objcopy make here: readelf and nm say the same of them. Each byte of a
 * small one flipped, and each of its beginnings, harms nobody.
 */
#include "tsdb/debuginfo/elf/elf.h"

#include <elf.h>
#include <stdarg.h>
#include <unistd.h>

#include "tests/check.h"
#include "tsdb/debuginfo/elf/symbols.h"

static struct err err;
static char folder[] = "/tmp/elf_test.XXXXXX";

/* Runs a command in the folder and returns what it prints, which the caller frees. */
static char *run(const char *fmt, ...) PRINTF_LIKE(1, 2);
static char *run(const char *fmt, ...)
{
	char command[2048], piece[4096];
	struct buf out = { 0 };
	va_list args;
	FILE *f;
	size_t n;

	n = (size_t)snprintf(command, sizeof(command), "cd %s && ", folder);
	va_start(args, fmt);
	vsnprintf(command + n, sizeof(command) - n, fmt, args);
	va_end(args);
	if (!(f = popen(command, "r")))
		abort();
	while ((n = fread(piece, 1, sizeof(piece), f)))
		buf_add(&out, piece, n);
	if (pclose(f))
		CHECK_FAIL("failed: %s", command);
	buf_add_char(&out, '\0');
	return out.ptr;
}

static struct str read_whole(const char *name)
{
	struct buf out = { 0 };
	char path[256];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (!(f = fopen(path, "rb")))
		abort();
	do {
		buf_reserve(&out, 65536);
		n = fread(out.ptr + out.len, 1, 65536, f);
		out.len += n;
	} while (n);
	fclose(f);
	return buf_str(&out);
}

static const char source[] =
	"#include <stdio.h>\\n"
	"static int __attribute__((noinline)) inner(int v) { return v * 3; }\\n"
	"int outer(int v) { return inner(v) + 1; }\\n"
	"extern int other(int v) __attribute__((alias(\\\"outer\\\")));\\n"
	"extern int weak(int v) __attribute__((weak, alias(\\\"outer\\\")));\\n"
	"int main(void) { printf(\\\"%%d\\\", outer(2)); return 0; }\\n";

static void make_folder(void)
{
	static bool made;

	if (made)
		return;
	made = true;
	if (!mkdtemp(folder))
		abort();
	free(run("printf \"%s\" >a.c", source));
	free(run("gcc -g -O1 -Wl,--build-id=sha1 -o plain a.c"));
	free(run("gcc -g -O1 -no-pie -Wl,--build-id=sha1 -o fixed a.c"));
	free(run("objcopy --compress-debug-sections=zlib plain zlib"));
	free(run("objcopy --compress-debug-sections=zlib-gnu plain gnu"));
	free(run("objcopy --only-keep-debug plain plain.debug"));
	free(run("objcopy --strip-all --add-gnu-debuglink=plain.debug plain stripped"));
	free(run("objcopy -S --keep-symbol=inner plain.debug mini && xz -k mini && "
			 "objcopy --add-section .gnu_debugdata=mini.xz stripped with_mini"));
}

__attribute__((destructor)) static void remove_folder(void)
{
	if (!strstr(folder, "XXXXXX"))
		free(run("rm -rf %s", folder));
}

/* dumped: the file in which objcopy finds the section by this name. */
static void check_section(const char *file, const char *dumped, const char *name)
{
	struct str bytes = read_whole(file), got, want;
	struct elf *e;

	free(run("rm -f section && objcopy --decompress-debug-sections --dump-section %s=section "
			 "%s copy",
		name, dumped));
	want = read_whole("section");
	REQUIRE_OK(elf_open(bytes, &e, &err), &err);
	CHECK_OK(elf_section(e, name, &got, &err), &err);
	if (!want.len || !str_eq(got, want))
		CHECK_FAIL("%s of %s: %zu bytes, want %zu", name, file, got.len, want.len);
	elf_close(e);
	free((char *)(uintptr_t)bytes.ptr);
	free((char *)(uintptr_t)want.ptr);
}

TEST(sections_are_those_that_objcopy_dumps)
{
	/* objcopy gives sections of the old form other names. */
	static const struct {
		const char *file, *dumped;
	} files[] = { { "plain", "plain" }, { "zlib", "zlib" }, { "gnu", "plain" },
		{ "plain.debug", "plain.debug" } };

	make_folder();
	for (size_t i = 0; i < 4; i++) {
		check_section(files[i].file, files[i].dumped, ".debug_info");
		check_section(files[i].file, files[i].dumped, ".debug_line");
		check_section(files[i].file, files[i].dumped, ".debug_str");
	}
	check_section("plain", "plain", ".text");
}

TEST(a_file_says_what_it_is_good_for)
{
	static const struct {
		const char *file;
		enum elf_content want;
	} cases[] = { { "plain", ELF_FULL }, { "gnu", ELF_FULL }, { "plain.debug", ELF_NO_TEXT },
		{ "stripped", ELF_STRIPPED } };

	make_folder();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct str bytes = read_whole(cases[i].file);
		struct elf *e;

		REQUIRE_OK(elf_open(bytes, &e, &err), &err);
		CHECK_INT(elf_content(e), cases[i].want);
		CHECK(elf_is_little(e) && elf_address_bytes(e) == 8);
		elf_close(e);
		free((char *)(uintptr_t)bytes.ptr);
	}
}

TEST(build_ids_and_links_are_those_that_readelf_prints)
{
	char *want, hex[128] = "";
	struct elf_link link;
	struct str bytes, id;
	struct elf *e;

	make_folder();
	bytes = read_whole("stripped");
	want = run("readelf -n stripped | sed -n 's/.*Build ID: //p' | tr -d '\\n'");
	REQUIRE_OK(elf_open(bytes, &e, &err), &err);
	id = elf_build_id(e);
	for (size_t i = 0; i < id.len && i < 60; i++)
		snprintf(hex + 2 * i, 3, "%02x", (unsigned char)id.ptr[i]);
	CHECK_STR(str_of(hex), want);
	CHECK_INT(elf_go_build_id(e).len, 0);
	REQUIRE(elf_debug_link(e, &link));
	CHECK_STR(link.name, "plain.debug");
	free(want);
	want = run("gzip -c plain.debug | tail -c 8 | head -c 4 | od -An -tx4 | tr -d ' \\n'");
	snprintf(hex, sizeof(hex), "%08x", link.crc);
	CHECK_STR(str_of(hex), want);
	CHECK(!elf_alternative_link(e, &link));
	elf_close(e);
	free(want);
	free((char *)(uintptr_t)bytes.ptr);
}

/* Names at the addresses that nm prints. */
static void check_symbols(const char *file, const char *nm_of, const char *pattern, size_t at_least)
{
	struct str bytes = read_whole(file);
	struct symindex_builder *b;
	struct buf index = { 0 };
	struct symindex *x;
	struct elf *e;
	size_t n = 0;
	char *listed;

	REQUIRE_OK(elf_open(bytes, &e, &err), &err);
	REQUIRE_OK(symindex_builder_open(&symindex_limits_default, &b, &err), &err);
	CHECK_OK(elf_symbols_add(e, b, &err), &err);
	REQUIRE_OK(symindex_finish(b, elf_build_id(e), &index, &err), &err);
	REQUIRE_OK(symindex_open(buf_str(&index), &x, &err), &err);
	listed = run("nm %s | grep -i ' [t] ' | grep -E '%s'", nm_of, pattern);
	for (char *save, *line = strtok_r(listed, "\n", &save); line;
		 line = strtok_r(NULL, "\n", &save)) {
		uint64_t address = strtoull(line, NULL, 16);
		struct symindex_location l = { 0 };

		CHECK_INT(symindex_find(x, address, &l, 1), 1);
		CHECK_STR(l.raw, strrchr(line, ' ') + 1);
		n++;
	}
	CHECK(n >= at_least);
	free(listed);
	symindex_close(x);
	buf_release(&index);
	symindex_builder_close(b);
	elf_close(e);
	free((char *)(uintptr_t)bytes.ptr);
}

TEST(symbols_are_those_of_nm)
{
	make_folder();
	check_symbols("plain", "plain", " (main|inner|_start|other)$", 4);
	check_symbols("fixed", "fixed", " (main|inner|_start|other)$", 4);
	check_symbols("plain.debug", "plain", " (main|inner)$", 2);
	check_symbols("with_mini", "plain", " inner$", 1);
}

static struct elf *opened(const char *name, struct str *bytes)
{
	struct elf *e = NULL;

	*bytes = read_whole(name);
	CHECK_OK(elf_open(*bytes, &e, &err), &err);
	return e;
}

TEST(symbols_are_found_by_address)
{
	static const struct {
		uint64_t offset;
		const char *name; /* NULL: none */
		uint64_t end;
	} cases[] = { { 0, "_start", 2 }, { 1, "_start", 2 }, { 2, "mark", 4 }, { 4, "outer", 6 },
		{ 5, "outer", 6 }, { 6, "inner", 8 }, { 8, "outer", 12 }, { 12, "late", 14 },
		{ 14, NULL, 20 }, { 20, "last", 21 }, { 21, NULL, 0 } };
	struct symbol_map *s;
	struct str bytes, name;
	struct elf *e;
	uint64_t start, end, n;

	make_folder();
	free(run("printf '.text\n.globl _start, untyped\n_start:\nuntyped:\nnop\nnop\nmark:\nnop\nnop\n"
			 ".type outer, @function\n.size outer, 9\nouter:\nnop\nnop\n"
			 ".type inner, @function\n.size inner, 2\ninner:\nnop\nnop\n"
			 "inside:\nnop\nnop\nnop\nnop\n"
			 ".type late, @function\n.size late, 2\nlate:\nnop\nnop\n.zero 6\n"
			 ".type last, @function\nlast:\nnop\n' >labels.s && "
			 "as -o labels.o labels.s && ld -o labels labels.o"));
	e = opened("labels", &bytes);
	REQUIRE(e && elf_section_place(e, ".text", &start, &n));
	REQUIRE_OK(symbol_map_open(e, &s, &err), &err);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool found = symbol_map_find(s, start + cases[i].offset, &name, &end);

		CHECK_INT(found, cases[i].name != NULL);
		if (found)
			CHECK_STR(name, cases[i].name);
		CHECK_INT(end, cases[i].end ? start + cases[i].end : UINT64_MAX);
	}
	CHECK(!symbol_map_find(s, start - 1, &name, &end) && end == start);
	CHECK(!symbol_map_find(s, UINT64_MAX, &name, &end));
	symbol_map_close(s);
	elf_close(e);
	free((char *)(uintptr_t)bytes.ptr);
}

TEST(an_object_file_has_sections_of_one_name)
{
	static const char *const want[] = { "one", "", "three" };
	struct str bytes, s;
	struct elf *e;
	uint64_t at = 0;
	bool found;

	make_folder();
	free(run("printf '.text\n.quad somewhere\n"
			 ".section .same,\"\",@progbits,unique,1\n.ascii \"one\"\n"
			 ".section .same,\"\",@nobits,unique,2\n.zero 8\n"
			 ".section .same,\"\",@progbits,unique,3\n.ascii \"three\"\n' | as -o several.o"));
	bytes = read_whole("several.o");
	CHECK_ERR(
		elf_open(bytes, &e, &err), &err, ERR_UNSUPPORTED, "ELF: an object file that is not linked");
	REQUIRE_OK(elf_open_split(bytes, &elf_limits_default, &e, &err), &err);
	for (size_t i = 0; i < 3; i++) {
		CHECK_OK(elf_section_next(e, ".same", &at, &s, &found, &err), &err);
		CHECK(found);
		CHECK_STR(s, want[i]);
	}
	for (size_t i = 0; i < 2; i++) {
		CHECK_OK(elf_section_next(e, ".same", &at, &s, &found, &err), &err);
		CHECK(!found && !s.len);
	}
	elf_close(e);
	free((char *)(uintptr_t)bytes.ptr);
}

/* GNU's section, which has the build id, and that of DWARF 5, which has an id of its own. */
TEST(the_file_of_dwz_is_named_by_its_id)
{
	static const char *const options[] = { "", "--dwarf-5" };

	make_folder();
	for (size_t i = 0; i < 2; i++) {
		struct str bytes[2];
		struct elf *one, *common;
		struct elf_link link = { 0 };

		free(run("cp plain one && cp plain two && rm -f common && dwz %s -m common one two",
			options[i]));
		one = opened("one", &bytes[0]);
		common = opened("common", &bytes[1]);
		REQUIRE(one && common);
		CHECK(elf_alternative_link(one, &link));
		CHECK_STR(link.name, "common");
		CHECK(link.build_id.len == 20 && str_eq(link.build_id, elf_alternative_id(common)));
		CHECK(!elf_alternative_link(common, &link));
		CHECK(str_eq(elf_alternative_id(one), elf_build_id(one)));
		elf_close(one);
		elf_close(common);
		free((char *)(uintptr_t)bytes[0].ptr);
		free((char *)(uintptr_t)bytes[1].ptr);
	}
}

TEST(addresses_of_a_process_are_those_of_the_file)
{
	struct str bytes;
	struct elf *e;
	uint64_t address = 0, offset = 0, main_at;
	char *text;

	make_folder();
	bytes = read_whole("fixed");
	text = run("nm fixed | sed -n 's/ T main$//p'");
	main_at = strtoull(text, NULL, 16);
	REQUIRE_OK(elf_open(bytes, &e, &err), &err);
	REQUIRE(elf_offset_at(e, main_at, &offset));
	CHECK(elf_address_at(e, offset, &address) && address == main_at);
	CHECK(elf_address_of(e, 0x7f0000000000 + offset - 0x1000, 0x7f0000000000, 0x1000, &address) &&
		address == main_at);
	CHECK(!elf_address_at(e, bytes.len, &address));
	CHECK(!elf_address_of(e, 1, 2, 0, &address));
	elf_close(e);
	free(text);
	free((char *)(uintptr_t)bytes.ptr);
}

TEST(other_files_are_refused_by_name)
{
	static const struct {
		struct str bytes;
		enum err_code code;
		const char *message;
	} cases[] = {
		{ STR(""), ERR_INVALID, "not an ELF file: empty" },
			{ STR("<!DOCTYPE html><p>404"), ERR_INVALID, "not an ELF file: it is an HTML page" },
				{ STR("\n <html>"), ERR_INVALID, "not an ELF file: it is an HTML page" },
					{ STR("not found\n"), ERR_INVALID, "not an ELF file: it is text" },
						{ STR("\x1f\x8b\x08"), ERR_INVALID, "not an ELF file: it is gzip" },
							{ STR("\x01\x02\x03"), ERR_INVALID, "not an ELF file" },
								{ STR("\177ELF\2\1\1"), ERR_INVALID,
									  "ELF: the header is cut short" },
									{ STR("\177ELF\2\2\1\0\0\0\0\0\0\0\0\0"), ERR_UNSUPPORTED,
										  "ELF: big-endian files are not supported" },
								};
	struct elf *e;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		CHECK_ERR(elf_open(cases[i].bytes, &e, &err), &err, cases[i].code, cases[i].message);
	make_folder();
	free(run("gcc -c -g -o a.o a.c"));
	struct str bytes = read_whole("a.o");
	CHECK_ERR(
		elf_open(bytes, &e, &err), &err, ERR_UNSUPPORTED, "ELF: an object file that is not linked");
	free((char *)(uintptr_t)bytes.ptr);
}

/* What lies beyond the head is taken for absent; the note is found by its looks then. */
TEST(a_head_has_what_is_within)
{
	struct str bytes, id;
	struct elf *e;

	make_folder();
	bytes = read_whole("plain");
	for (int beyond = 0; beyond < 2; beyond++) {
		struct str head = { bytes.ptr, bytes.len / 2 };

		REQUIRE_OK(elf_open(bytes, &e, &err), &err);
		id = elf_build_id(e);
		elf_close(e);
		CHECK_INT(id.len, 20);
		if (beyond)
			((Elf64_Ehdr *)(uintptr_t)bytes.ptr)->e_phoff = bytes.len / 2 + 8;
		REQUIRE_OK(elf_open_head(head, &e, &err), &err);
		CHECK(!elf_has_sections(e));
		CHECK(str_eq(elf_build_id(e), beyond ? STR("") : id));
		CHECK(str_eq(elf_likely_build_id(e), beyond ? id : STR("")));
		elf_close(e);
		/* A whole file has them. */
		if (beyond)
			CHECK_ERR(elf_open(head, &e, &err), &err, ERR_INVALID,
				"ELF: neither sections nor segments are within the file: the file may be cut "
				"short");
	}
	free((char *)(uintptr_t)bytes.ptr);
}

TEST(inflated_sections_have_a_limit)
{
	struct elf_limits l = elf_limits_default;
	struct str bytes, s;
	struct elf *e;

	make_folder();
	bytes = read_whole("zlib");
	l.inflated_bytes_max = 100;
	REQUIRE_OK(elf_open_limited(bytes, &l, &e, &err), &err);
	CHECK_ERR(elf_section(e, ".debug_info", &s, &err), &err, ERR_LIMIT,
		"ELF: section .debug_info makes compressed sections more than 100 bytes inflated, the "
		"limit");
	elf_close(e);
	free((char *)(uintptr_t)bytes.ptr);
}

static void touch(struct str bytes)
{
	static const char *const names[] = { ".debug_info", ".debug_line", ".text" };
	struct symindex_builder *b;
	struct elf_link link;
	struct elf *e;
	struct str s;
	uint64_t v;

	if (elf_open(bytes, &e, &err))
		return;
	for (size_t i = 0; i < 3; i++)
		if (elf_section(e, names[i], &s, &err))
			CHECK(err.msg[0]);
	elf_content(e);
	elf_build_id(e);
	elf_debug_link(e, &link);
	elf_alternative_link(e, &link);
	elf_address_at(e, 4096, &v);
	elf_offset_at(e, 4096, &v);
	if (!symindex_builder_open(&symindex_limits_default, &b, &err)) {
		if (elf_symbols_add(e, b, &err))
			CHECK(err.msg[0]);
		symindex_builder_close(b);
	}
	elf_close(e);
}

TEST(damage_harms_nobody)
{
	struct str whole;
	char *bytes;

	make_folder();
	free(run("printf 'int f(int v) { return v; } int _start(void) { return f(1); }' >s.c && gcc -g "
			 "-nostdlib -static -Wl,-z,noseparate-code -Wl,--build-id=sha1 -o small s.c && "
			 "objcopy --compress-debug-sections=zlib small"));
	whole = read_whole("small");
	CHECK(whole.len < 20000);
	for (size_t i = 0; i < whole.len; i++) {
		/* Exact memory: ASan sees each byte read beyond. */
		bytes = malloc(whole.len);
		memcpy(bytes, whole.ptr, whole.len);
		bytes[i] = (char)(bytes[i] ^ (i % 3 ? 0xff : 1 << i % 8));
		touch((struct str){ bytes, whole.len });
		free(bytes);
		bytes = malloc(i + 1);
		memcpy(bytes, whole.ptr, i);
		touch((struct str){ bytes, i });
		free(bytes);
	}
	free((char *)(uintptr_t)whole.ptr);
}
