/* Binaries made by gcc, clang and objcopy here become indexes; damaged ones keep what is good. */
#include <elf.h>

#include "tests/tsdb/debuginfo/extract/files.h"
#include "tests/tsdb/debuginfo/oracle/bundles.h"

static struct err err;

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
	files_run(
		"gcc -O2 -g -Wl,--build-id=sha1 -o plain $S/table.c $S/main.c && "
		"gcc -O2 -g -Wl,-z,noseparate-code -Wl,--build-id=none -o dense $S/table.c $S/main.c && "
		"gcc -O2 -g -no-pie -rdynamic -o fixed $S/table.c $S/main.c && "
		"for f in plain dense fixed; do objcopy --only-keep-debug $f $f.debug; "
		"llvm-objcopy-16 --only-keep-debug $f $f.llvm; strip -o $f.stripped $f; "
		"strip -g -o $f.names $f; done; "
		"objcopy --compress-debug-sections=zlib plain zlib");
}

static struct extracted_file extract(const char *name)
{
	struct extracted_file e = { .bytes = files_read(name) };
	struct err other; /* err says what was left out */

	buf_add_cstr(&e.index, "before");
	if (debuginfo_extract(buf_str(&e.bytes), STR(""), &e.index, &err))
		CHECK_INT(e.index.len, 6);
	else
		CHECK_OK(
			symindex_open((struct str){ e.index.ptr + 6, e.index.len - 6 }, &e.x, &other), &other);
	return e;
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
		struct extracted_file e = extract(cases[i].file);
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
		files_release(&e);
	}
}

/* Where the kernel maps the code: the page on which its segment begins. */
static void check_addresses(const char *binary, const char *suffix)
{
	char command[256], name[64];
	struct extracted_file e;
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
	files_release(&e);
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
	struct extracted_file e;
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
	files_release(&e);
	buf_release(&text);
	buf_release(&want);
}

/* Lines of objdump: "0000000000001030 <puts@plt>:". */
TEST(stubs_are_those_of_objdump)
{
	static const char *const files[] = { "stubs", "stubs.stripped", "stubs.ibt" };
	struct symindex_location v[4];
	struct extracted_file e;
	struct buf want = { 0 };
	unsigned n;

	files_run("g++ -O1 -o stubs $S/shapes.cc $S/main.cc && strip -o stubs.stripped stubs && "
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
		files_release(&e);
	}
	buf_release(&want);
}

TEST(build_ids)
{
	struct buf want = { 0 };
	struct extracted_file e;

	make_files();
	e = extract("plain");
	REQUIRE(e.x);
	REQUIRE(oracle_run(
		&want, "readelf -n %s/plain | sed -n 's/.*Build ID: //p' | tr -d '\\n'", oracle_dir()));
	CHECK_INT(want.len, 40);
	CHECK(str_eq(symindex_build_id(e.x), buf_str(&want)));
	files_release(&e);
	e = extract("dense");
	REQUIRE(e.x);
	CHECK_INT(symindex_build_id(e.x).len, 0);
	files_release(&e);

	files_run("cd $S && GOTOOLCHAIN=local GO111MODULE=off GOFLAGS= go build -ldflags='-s -w' -o "
			  "$OLDPWD/with_go main.go && cd $OLDPWD && "
			  "objcopy -R .note.gnu.build-id with_go only_go 2>/dev/null");
	REQUIRE(oracle_run(&want, "go tool buildid %s/only_go | tr -d '\\n'", oracle_dir()));
	e = extract("only_go");
	REQUIRE(e.x);
	CHECK(want.len > 64);
	CHECK(str_eq(symindex_build_id(e.x), buf_str(&want)));
	files_release(&e);
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
	struct extracted_file e;

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
	files_release(&e);
	buf_release(&out);
}

/* ---- bundles ---- */

static struct extracted_file extract_bundle(const char *binary, const char *beside)
{
	struct extracted_file e = { 0 };
	struct err other;

	if (!oracle_bundle(&e.bytes, oracle_dir(), binary, beside))
		CHECK_FAIL("no bundle of %s and %s", binary, beside);
	if (debuginfo_extract(buf_str(&e.bytes), STR(""), &e.index, &err))
		CHECK_FAIL("%s", err.msg);
	else
		CHECK_OK(symindex_open(buf_str(&e.index), &e.x, &other), &other);
	return e;
}

/* The calls around an instruction of main that was inlined into it; `names` has the binary's. */
static size_t frames_in_main(const struct extracted_file *e, const char *names)
{
	struct symindex_location v[8];
	char command[128];
	uint64_t at;
	size_t most = 0;

	snprintf(command, sizeof(command), "nm %s | sed -n 's/ T main$//p'", names);
	at = number_of(command);
	for (size_t i = 0; e->x && i < 200; i++) {
		size_t n = symindex_find(e->x, at + i, v, 8);

		if (n && n <= 8 && str_is(v[n - 1].name, "main") && n > most)
			most = n;
	}
	return most;
}

TEST(the_files_beside_a_binary_are_read)
{
	static const struct {
		const char *beside;
		enum symindex_quality best;
		bool inlined;
		const char *left_out;
	} cases[] = {
		{ "[mt]a*.dwo", SYMINDEX_DWARF, true, "" },
		{ "split.dwp", SYMINDEX_DWARF, true, "" },
		{ "main.dwo", SYMINDEX_DWARF, true,
			"1 of 2 units of split DWARF were not sent: their lines have names of symbols" },
		{ "s.c", SYMINDEX_LINES, false, "file 1 of the bundle: not an ELF file: it is text" },
		{ "text.dwo", SYMINDEX_LINES, false, "file 1 of the bundle: not an ELF file: it is text" },
	};

	files_run("clang -O2 -gdwarf-5 -gsplit-dwarf -c $S/table.c $S/main.c && clang -o split table.o "
			  "main.o && "
			  "llvm-dwp-16 -e split -o split.dwp && echo text | tee s.c >text.dwo");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct extracted_file e = extract_bundle("split", cases[i].beside);

		REQUIRE(e.x);
		CHECK_STR(str_of(err.msg), cases[i].left_out);
		CHECK_INT(symindex_best(e.x), cases[i].best);
		CHECK_INT(frames_in_main(&e, "split") > 1, cases[i].inlined);
		files_release(&e);
	}
}

TEST(the_common_file_must_be_the_one_that_is_named)
{
	static const char *const forms[] = { "", "--dwarf-5" };
	struct extracted_file e;

	make_files();
	for (size_t i = 0; i < 2; i++) {
		char command[512];

		snprintf(command, sizeof(command),
			"gcc -O2 -gdwarf-5 -Wl,--build-id=sha1 -o one $S/table.c $S/main.c && cp one two && "
			"g++ -O2 -gdwarf-5 -o three $S/shapes.cc $S/main.cc && cp three four && rm -f *.common "
			"&& "
			"dwz %s -m one.common one two && dwz %s -m three.common three four",
			forms[i], forms[i]);
		files_run(command);
		e = extract_bundle("one", "one.common");
		CHECK_STR(str_of(err.msg), "");
		CHECK(frames_in_main(&e, "one") > 1);
		files_release(&e);
		e = extract_bundle("one", "three.common");
		CHECK_STR(str_of(err.msg), "the common file is not the one that the binary names");
		files_release(&e);
		e = extract("one");
		CHECK(str_has_prefix(str_of(err.msg), STR("dwz's common file is not there: ")));
		files_release(&e);
	}
}

TEST(a_bundle_whose_table_is_damaged_is_refused)
{
	struct buf bytes = { 0 }, index = { 0 };

	make_files();
	files_run("echo text >text.dwo");
	REQUIRE(oracle_bundle(&bytes, oracle_dir(), "plain", "text.dwo"));
	bytes.ptr[bytes.len - 16 - 24] = 7; /* its kind */
	CHECK_ERR(debuginfo_extract(buf_str(&bytes), STR(""), &index, &err), &err, ERR_INVALID,
		"bundle: file 1 is of an unknown kind, 7");
	buf_release(&bytes);
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
		struct buf bytes = files_read(cases[i].file), index = { 0 };
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
	files_run("strip --strip-all --keep-section='.debug_*' -o dwarf_alone zlib");
	bytes = files_read("dwarf_alone");
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
	bytes = files_read("plain");
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

	files_run(
		"printf 'int f(int v) { return v; } int _start(void) { return f(1); }' >s.c && gcc -g "
		"-O1 -nostdlib -static -Wl,-z,noseparate-code -Wl,--build-id=sha1 -o small s.c");
	bytes = files_read("small");
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
