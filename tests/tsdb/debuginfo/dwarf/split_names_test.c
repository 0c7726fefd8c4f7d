/* Names and ids of split DWARF, as gcc, clang and llvm-dwp write it; then damaged. */
#include "tests/oracle.h"

#include <stdlib.h>

#include "tsdb/debuginfo/dwarf/split_names.h"

#define SAMPLES "$PWD/tests/tsdb/debuginfo/oracle/samples/"
#define SPLITS_MAX 8

static struct err err;

struct splits {
	uint64_t ids[SPLITS_MAX];
	char names[SPLITS_MAX][256], folders[SPLITS_MAX][256];
	size_t n;
};

static void copy(char *to, struct str from)
{
	snprintf(to, 256, STR_FMT, STR_ARG(from));
}

static enum err_code add_split(void *ctx, const struct dwarf_split *s, struct err *e)
{
	struct splits *x = ctx;

	if (x->n == SPLITS_MAX)
		return err_set(e, ERR_LIMIT, "too many");
	x->ids[x->n] = s->id;
	copy(x->names[x->n], s->name);
	copy(x->folders[x->n++], s->folder);
	return ERR_OK;
}

static enum err_code add_id(void *ctx, uint64_t id, struct err *e)
{
	struct splits *x = ctx;

	if (x->n == SPLITS_MAX)
		return err_set(e, ERR_LIMIT, "too many");
	x->ids[x->n++] = id;
	return ERR_OK;
}

static enum err_code read_names(struct str bytes, struct splits *out)
{
	struct elf *e;
	enum err_code rc;

	*out = (struct splits){ 0 };
	if ((rc = elf_open_split(bytes, &elf_limits_default, &e, &err)))
		return rc;
	rc = dwarf_each_split(e, add_split, out, &err);
	elf_close(e);
	return rc;
}

static enum err_code read_ids(struct str bytes, struct splits *out)
{
	struct elf *e;
	enum err_code rc;

	*out = (struct splits){ 0 };
	if ((rc = elf_open_split(bytes, &elf_limits_default, &e, &err)))
		return rc;
	rc = dwarf_each_split_id(e, add_id, out, &err);
	elf_close(e);
	return rc;
}

static bool has_id(const struct splits *s, uint64_t id)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->ids[i] == id)
			return true;
	return false;
}

static void check_dwo_files(const char *dir, const struct splits *split, const char *package)
{
	struct splits in_file, in_package;
	struct buf bytes = { 0 };

	if (package) {
		REQUIRE(oracle_read(&bytes, dir, package));
		REQUIRE_OK(read_ids(buf_str(&bytes), &in_package), &err);
		CHECK_INT(in_package.n, split->n);
	}
	for (size_t i = 0; i < split->n; i++) {
		CHECK(str_is(str_of(dir), split->folders[i]));
		REQUIRE(oracle_read(&bytes, dir, split->names[i]));
		REQUIRE_OK(read_ids(buf_str(&bytes), &in_file), &err);
		CHECK_INT(in_file.n, 1);
		CHECK_INT(in_file.ids[0], split->ids[i]);
		CHECK(!package || has_id(&in_package, split->ids[i]));
		REQUIRE_OK(read_names(buf_str(&bytes), &in_file), &err);
		CHECK_INT(in_file.n, 0); /* it has no skeletons itself */
	}
	buf_release(&bytes);
}

/* The .dwo files of two units, by what compilers and what makes packages say. */
TEST(names_and_ids_of_compilers)
{
	static const struct {
		const char *compile, *package; /* NULL: neither dwp nor llvm-dwp 14 reads these */
	} rows[] = {
		{ "gcc -gdwarf-4", "dwp -e main" },
		{ "gcc -gdwarf-4", "llvm-dwp-14 -e main -o main.dwp" },
		{ "gcc -gdwarf-5 -gz", NULL },
		{ "clang -gdwarf-4", "dwp -e main" },
		{ "clang -gdwarf-5", "llvm-dwp-14 -e main -o main.dwp" },
		{ "clang -gdwarf-5 -gz", NULL },
	};
	char dir[] = "/tmp/epimetheus-split-XXXXXX";
	struct buf said = { 0 }, bytes = { 0 };
	struct splits split;

	REQUIRE(mkdtemp(dir));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		REQUIRE(oracle_run(&said,
			"s=" SAMPLES
			"; cd %s && rm -f *.dwo *.dwp && for f in main table; do %s -gsplit-dwarf -O2 "
			"-c -o $f.o $s$f.c || exit; done && gcc -o main main.o table.o && %s 2>&1",
			dir, rows[i].compile, rows[i].package ? rows[i].package : "true"));
		REQUIRE(oracle_read(&bytes, dir, "main"));
		REQUIRE_OK(read_names(buf_str(&bytes), &split), &err);
		REQUIRE(split.n == 2);
		CHECK(!strcmp(split.names[0], "main.dwo") && !strcmp(split.names[1], "table.dwo"));
		CHECK(split.ids[0] != split.ids[1]);
		check_dwo_files(dir, &split, rows[i].package ? "main.dwp" : NULL);
		REQUIRE_OK(read_ids(buf_str(&bytes), &split), &err);
		CHECK_INT(split.n, 0);
	}
	CHECK(oracle_run(&said, "rm -r %s", dir));
	buf_release(&said);
	buf_release(&bytes);
}

/* Units in object files, and behind hundreds of units of types, each in a section of its own. */
TEST(units_in_other_places)
{
	static const struct {
		const char *compile, *file;
	} rows[] = {
		{ "clang++ -std=c++17 -gdwarf-5 -gsplit-dwarf=single", "shapes.o" },
		{ "g++ -gdwarf-5 -gsplit-dwarf -fdebug-types-section", "shapes.dwo" },
	};
	char dir[] = "/tmp/epimetheus-split-XXXXXX";
	struct buf said = { 0 }, bytes = { 0 };
	struct splits split, in_file;

	REQUIRE(mkdtemp(dir));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		REQUIRE(oracle_run(&said,
			"s=" SAMPLES "; cd %s && %s -O2 -fPIC -c -o shapes.o ${s}shapes.cc && "
			"g++ -shared -o shapes.so shapes.o",
			dir, rows[i].compile));
		REQUIRE(oracle_read(&bytes, dir, "shapes.so"));
		REQUIRE_OK(read_names(buf_str(&bytes), &split), &err);
		CHECK_INT(split.n, 1);
		CHECK_STR(str_of(split.names[0]), rows[i].file);
		REQUIRE(oracle_read(&bytes, dir, rows[i].file));
		REQUIRE_OK(read_ids(buf_str(&bytes), &in_file), &err);
		CHECK(has_id(&in_file, split.ids[0]));
	}
	CHECK(oracle_run(&said, "rm -r %s", dir));
	buf_release(&said);
	buf_release(&bytes);
}

TEST(a_whole_binary_has_none)
{
	struct buf bytes = { 0 };
	struct splits split;

	REQUIRE(oracle_read(&bytes, "/proc/self", "exe"));
	REQUIRE_OK(read_names(buf_str(&bytes), &split), &err);
	CHECK_INT(split.n, 0);
	REQUIRE_OK(read_ids(buf_str(&bytes), &split), &err);
	CHECK_INT(split.n, 0);
	buf_release(&bytes);
}

/* Any byte may be wrong: nothing is read beyond the file, and what is wrong is left out or said. */
TEST(damage)
{
	char dir[] = "/tmp/epimetheus-split-XXXXXX";
	struct buf said = { 0 }, bytes = { 0 };
	struct splits split;

	REQUIRE(mkdtemp(dir));
	REQUIRE(oracle_run(&said,
		"s=" SAMPLES
		"; cd %s && for f in main table; do clang -gdwarf-5 -gsplit-dwarf -O2 -c -o $f.o "
		"$s$f.c || exit; done && gcc -o main main.o table.o && llvm-dwp-14 -e main -o main.dwp && "
		"objcopy -j '.debug_*' main small 2>/dev/null",
		dir));
	for (int which = 0; which < 2; which++) {
		REQUIRE(oracle_read(&bytes, dir, which ? "main.dwp" : "small"));
		for (size_t i = 0; i < bytes.len; i++) {
			for (int to = 0; to <= 0xff; to += 0xff) {
				char was = bytes.ptr[i];
				enum err_code rc;

				bytes.ptr[i] = (char)to;
				rc = which ? read_ids(buf_str(&bytes), &split) :
							 read_names(buf_str(&bytes), &split);
				CHECK(!rc || err.msg[0]);
				bytes.ptr[i] = was;
			}
		}
	}
	CHECK(oracle_run(&said, "rm -r %s", dir));
	buf_release(&said);
	buf_release(&bytes);
}

TEST(an_index_that_is_cut_is_an_error)
{
	char dir[] = "/tmp/epimetheus-split-XXXXXX";
	struct buf said = { 0 }, bytes = { 0 };
	struct splits split;

	REQUIRE(mkdtemp(dir));
	REQUIRE(oracle_run(&said,
		"cd %s && printf '\\5\\0\\0\\0\\1\\0\\0\\0\\1\\0\\0\\0\\2\\0\\0\\0' >index && "
		"echo 'int a;' | gcc -c -x c -o a.o - && objcopy --add-section .debug_cu_index=index a.o",
		dir));
	REQUIRE(oracle_read(&bytes, dir, "a.o"));
	CHECK_ERR(read_ids(buf_str(&bytes), &split), &err, ERR_INVALID,
		"the package's index is longer than its section");
	CHECK(oracle_run(&said, "rm -r %s", dir));
	buf_release(&said);
	buf_release(&bytes);
}
