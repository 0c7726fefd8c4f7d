/* Where the files with parts of a binary's debug data are found, and what is sent of them. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/epitool/debuginfo/bundle_body.h"
#include "tests/oracle.h"

static struct err err;
static char dir[] = "/tmp/epimetheus-debug-XXXXXX";

/* "FILE FILE; FILE: WHY", names without the scratch directory. */
static void print_files(struct buf *out, const struct debug_files *files)
{
	size_t prefix = strlen(dir) + 1;

	buf_clear(out);
	for (size_t i = 0; i < files->n; i++)
		buf_printf(out, "%s%s", i ? " " : "", files->v[i].path + prefix);
	for (size_t i = 0; i < files->missing_n; i++)
		buf_printf(out, "; %s: %s", files->missing[i].path + prefix, files->missing[i].why);
}

static void check_found(const char *name, const char *dwo_dir, const char *want)
{
	char path[128], in[128], debug[128];
	const char *dirs[] = { in };
	const struct debug_files_places places = { dirs, dwo_dir != NULL, debug };
	struct debug_files files;
	struct native_file f;
	struct buf got = { 0 };

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(in, sizeof(in), "%s/%s", dir, dwo_dir ? dwo_dir : "");
	snprintf(debug, sizeof(debug), "%s/debug", dir);
	REQUIRE_OK(native_file_open(path, &f, &err), &err);
	CHECK(native_file_is_program(&f));
	REQUIRE_OK(debug_files_find(path, &f, &places, &files, &err), &err);
	print_files(&got, &files);
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
	debug_files_release(&files);
	native_file_close(&f);
}

/* Runs in the scratch directory. */
static void run(const char *commands)
{
	struct buf said = { 0 };

	if (!oracle_run(&said, "exec 2>&1; set -e; cd %s; %s", dir, commands))
		CHECK_FAIL("%s", commands);
	buf_release(&said);
}

static void scratch_begin(void)
{
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	REQUIRE(mkdtemp(dir));
	run("printf 'int twice(int a) { return 2 * a; }' >b.c; "
		"printf 'int twice(int); int main(int n, char **v) { return twice(n); }' >a.c");
}

TEST(files_of_split_dwarf)
{
	static const struct {
		const char *commands, *name, *dwo_dir, *want;
	} rows[] = {
		{ "mkdir bin obj; cd obj; for f in a b; do clang -gdwarf-5 -gsplit-dwarf -O1 -c ../$f.c; "
		  "done; "
		  "gcc -o ../bin/p a.o b.o",
			"bin/p", NULL, "obj/a.dwo obj/b.dwo" },
		{ "mv obj/a.dwo bin", "bin/p", NULL, "bin/a.dwo obj/b.dwo" },
		{ "mkdir dwo; mv bin/a.dwo dwo", "bin/p", NULL, "obj/b.dwo; obj/a.dwo: not found" },
		{ "true", "bin/p", "dwo", "dwo/a.dwo obj/b.dwo" },
		{ "mv obj/b.dwo dwo; cd dwo; llvm-dwp-14 -o ../bin/p.dwp a.dwo b.dwo", "bin/p", NULL,
			"bin/p.dwp" },
		{ "ln -s bin/p link", "link", NULL, "bin/p.dwp" },
		{ "objcopy --only-keep-debug bin/p bin/p.debug", "bin/p.debug", NULL, "bin/p.dwp" },
		{ "mv bin/p.dwp dwo", "bin/p", "dwo", "dwo/p.dwp" },
		{ "true", "bin/p.debug", "dwo", "dwo/p.dwp" },
		{ "rm dwo/p.dwp", "bin/p", NULL, "; obj/a.dwo: not found; obj/b.dwo: not found" },
		{ "cp a.c obj/a.dwo", "bin/p", "dwo", "dwo/a.dwo dwo/b.dwo" },
		{ "true", "bin/p", NULL, "; obj/a.dwo: cannot be read; obj/b.dwo: not found" },
		{ "rm obj/a.dwo; mkfifo obj/a.dwo", "bin/p", NULL,
			"; obj/a.dwo: not found; obj/b.dwo: not found" },
		/* Another build. */
		{ "rm obj/a.dwo; cd obj; clang -gdwarf-5 -gsplit-dwarf -O2 -c ../a.c; llvm-dwp-14 -o "
		  "../bin/p.dwp a.dwo",
			"bin/p", NULL,
			"; bin/p.dwp: of another build; obj/a.dwo: of another build; obj/b.dwo: not found" },
		/* A package with one of two units, the other beside it. */
		{ "cd dwo; llvm-dwp-14 -o ../bin/p.dwp a.dwo", "bin/p", "dwo", "bin/p.dwp dwo/b.dwo" },
		/* Version 4, absolute and relative names with folders. */
		{ "rm -r obj bin dwo; mkdir obj bin; gcc -gdwarf-4 -gsplit-dwarf -c -o obj/a.o a.c; gcc "
		  "-gdwarf-4 "
		  "-gsplit-dwarf -c -o $PWD/obj/b.o b.c; gcc -o bin/p obj/a.o obj/b.o",
			"bin/p", NULL, "obj/a.dwo obj/b.dwo" },
		{ "mv obj bin", "bin/p", NULL, "bin/obj/a.dwo; obj/b.dwo: not found" },
		{ "mv bin/obj/*.dwo bin", "bin/p", NULL, "bin/a.dwo bin/b.dwo" },
		{ "gcc -g -o bin/whole a.c b.c", "bin/whole", NULL, "" },
	};

	scratch_begin();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		run(rows[i].commands);
		check_found(rows[i].name, rows[i].dwo_dir, rows[i].want);
	}
	run("rm -r $PWD");
}

TEST(the_common_file_of_dwz)
{
	static const struct {
		const char *commands, *name, *want;
	} rows[] = {
		{ "cat >big.c <<E\nstruct big { int a[9]; struct big *next; union { int x; long y; } u; "
		  "};\n"
		  "int sum(struct big *b) { return b ? b->a[3] + b->u.x + sum(b->next) : 0; }\nE\n"
		  "mkdir bin; for f in p q; do gcc -gdwarf-4 -o bin/$f a.c b.c big.c; done; "
		  "printf x >>bin/q; cp bin/p keep; cd bin; dwz -m ../common -M ../common p q",
			"bin/p", "bin/../common" },
		{ "mkdir away; mv common away", "bin/p", "; bin/../common: not found" },
		{ "id=$(readelf -n away/common | sed -n 's/.*Build ID: //p'); mkdir -p "
		  "debug/.build-id/${id%%"
		  "${id#??}}; mv away/common debug/.build-id/${id%%${id#??}}/${id#??}.debug; ln -s "
		  "debug/.build-id/*/* "
		  "found",
			"bin/p", NULL },
		{ "cp bin/p common", "bin/q", NULL },
		{ "rm -r debug", "bin/q", "; bin/../common: of another build" },
	};
	char path[256];
	ssize_t n;

	scratch_begin();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		run(rows[i].commands);
		if (i == 2) {
			char link[256];

			snprintf(link, sizeof(link), "%s/found", dir);
			n = readlink(link, path, sizeof(path) - 1);
			REQUIRE(n > 0);
			path[n] = '\0';
		}
		check_found(rows[i].name, NULL, rows[i].want ? rows[i].want : path);
	}
	run("rm -r $PWD");
}

static void check_body(struct bundle_body *b, size_t step)
{
	struct buf bytes = { 0 };
	struct bundle bundle;
	enum bundle_kind kind;

	REQUIRE(buf_reserve(&bytes, b->bytes));
	for (uint64_t at = 0; at < b->bytes; at += step) {
		size_t n = b->bytes - at < step ? (size_t)(b->bytes - at) : step;

		REQUIRE_OK(bundle_body_read(b, at, bytes.ptr + at, n, &err), &err);
	}
	bytes.len = b->bytes;
	REQUIRE_OK(bundle_open(buf_str(&bytes), &bundle, &err), &err);
	REQUIRE(bundle.files_n == 3);
	CHECK(str_has_prefix(bundle.binary, STR("binary 13 byt")) && bundle.binary.len == 16);
	CHECK_STR(bundle_file(&bundle, 0, &kind), "first\n");
	CHECK_INT(kind, BUNDLE_DWO);
	CHECK_INT(bundle_file(&bundle, 1, &kind).len, 0);
	CHECK_STR(bundle_file(&bundle, 2, &kind), "the third");
	CHECK_INT(kind, BUNDLE_ALT);
	buf_release(&bytes);
}

TEST(bodies_are_bundles_whatever_the_pieces)
{
	static const char *const names[] = { "first", "empty", "third" };
	struct debug_file v[3] = { { .kind = BUNDLE_DWO }, { .kind = BUNDLE_DWP },
		{ .kind = BUNDLE_ALT } };
	struct debug_files files = { .v = v, .n = 3 };
	struct native_file binary = { .bytes = STR("binary 13 byt") };
	struct bundle_body body;
	char paths[3][128], path[128], all[8];

	scratch_begin();
	run("printf 'binary 13 byt' >binary; echo first >first; : >empty; printf 'the third' >third");
	snprintf(path, sizeof(path), "%s/binary", dir);
	REQUIRE((binary.fd = open(path, O_RDONLY)) >= 0);
	for (size_t i = 0; i < 3; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", dir, names[i]);
		v[i].path = paths[i];
		REQUIRE(!stat(paths[i], &v[i].stat));
	}
	REQUIRE_OK(bundle_body_open(&body, &binary, &files, &err), &err);
	for (size_t step = 1; step <= body.bytes; step++)
		check_body(&body, step);
	/* A request is sent again from its beginning; then a file is another one. */
	run("printf 'the fourth' >third");
	CHECK_INT(bundle_body_read(&body, 0, all, 8, &err), ERR_OK);
	CHECK_INT(bundle_body_read(&body, 16, all, 6, &err), ERR_OK);
	snprintf(path, sizeof(path), "%s/third has changed", dir);
	CHECK_ERR(bundle_body_read(&body, 24, all, 8, &err), &err, ERR_IO, path);
	bundle_body_close(&body);
	REQUIRE_OK(bundle_body_open(&body, &binary, NULL, &err), &err);
	CHECK_INT(body.bytes, 13);
	bundle_body_close(&body);
	close(binary.fd);
	run("rm -r $PWD");
}
