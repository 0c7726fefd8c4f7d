/*
 * Paths of the files that indexes are made of, indexes by base name, and what is asked of others.
 */
#include <fcntl.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/tsdb/debuginfo/store/world.h"

/* None: one that is nothing. */
static struct debuginfo_info info_of(struct debuginfo_store *s, struct arena *a, const char *text)
{
	struct debuginfo_id id = gnu(text);
	struct debuginfo_info *v;
	struct err err;
	size_t n = 0;

	CHECK_OK(debuginfo_list(s, a, &v, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		if (debuginfo_id_eq(&v[i].id, &id))
			return v[i];
	return (struct debuginfo_info){ 0 };
}

static void upload_path(struct debuginfo_store *s, const char *text, struct str path)
{
	struct debuginfo_id id = gnu(text);
	struct debuginfo_upload *u;
	struct err err;

	REQUIRE_OK(debuginfo_upload_begin(s, &id,
				   &(struct debuginfo_offer){
					   .kind = DEBUGINFO_FULL, .origin = DEBUGINFO_UPLOAD, .path = path },
				   &u, &err),
		&err);
	CHECK_OK(debuginfo_upload_append(u, STR("elf"), &err), &err);
	CHECK_OK(debuginfo_upload_finish(u, &err), &err);
}

/* What a sender says of the path is kept, clean and short. */
TEST(paths_are_clean)
{
	static const struct {
		struct str path;
		const char *want;
	} rows[] = {
		{ STR("/usr/bin/a b"), "/usr/bin/a b" },
			{ STR("/\xc3\xa9/x"), "/\xc3\xa9/x" },
				{ STR("/\xff\xc3\xa9/x"), "/?\?\?/x" },
					{ STR("/a\n\x7f\0b"), "/a?\?\?b" },
						{ STR(""), "" },
					};
	const char *dir = dir_new();
	char text[12], longest[600];
	struct debuginfo_store *s;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &plain, &s, &err), &err);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), "aa%02x", i);
		upload_path(s, text, rows[i].path);
		CHECK_STR(info_of(s, &a, text).path, rows[i].want);
	}
	for (size_t i = 0; i < sizeof(longest); i += 2)
		memcpy(longest + i, "\xc3\xa9", 2);
	upload_path(s, "bb", (struct str){ longest, sizeof(longest) });
	longest[254] = '\0'; /* 127 whole letters */
	CHECK_STR(info_of(s, &a, "bb").path, longest);
	arena_release(&a);
	debuginfo_store_close(s);
	dir_gone(dir);
}

TEST(indexes_by_base_name)
{
	const char *dir = dir_new();
	struct debuginfo_id v[2], id = gnu("aa");
	struct debuginfo_options o = plain;
	struct debuginfo_store *s;
	struct debuginfo_index *x;
	struct arena a;
	struct err err;
	uint64_t before;

	arena_init(&a, 0);
	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &o, &s, &err), &err);
	CHECK_INT(debuginfo_generation(s), 0);
	upload_path(s, "aa", STR("/usr/bin/x"));
	upload_path(s, "bb", STR("/opt/x"));
	upload_path(s, "cc", STR("x"));
	upload_path(s, "dd", STR("/x/"));
	CHECK_INT(debuginfo_find_name(s, STR("x"), v, 2), 0); /* none has an index */
	CHECK_INT(debuginfo_totals(s).uploads_bytes, 12);
	CHECK_INT(debuginfo_totals(s).queued, 4);
	CHECK_INT(debuginfo_generation(s), 0);
	debuginfo_store_close(s);

	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &o, &s, &err), &err);
	for (int i = 0; i < 4; i++)
		CHECK_OK(extract(s, "index", DEBUGINFO_SYMBOLS, &err), &err);
	CHECK_INT(debuginfo_generation(s), 4);
	CHECK_INT(debuginfo_find_name(s, STR("x"), v, 2), 3);
	CHECK(v[0].kind == DEBUGINFO_GNU && v[0].len == 2 && v[1].len == 2);
	CHECK_INT(debuginfo_find_name(s, STR(""), v, 2), 0);
	CHECK_INT(debuginfo_find_name(s, STR("bin"), v, 2), 0);
	debuginfo_store_close(s);

	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &o, &s, &err), &err);
	CHECK_INT(files_in(dir, ".path"), 0);
	CHECK_INT(debuginfo_find_name(s, STR("x"), v, 2), 3);
	before = debuginfo_generation(s);
	now_s += 7 * 60;
	upload_path(s, "aa", STR("")); /* better data from somebody who does not know the path */
	CHECK_OK(extract(s, "better", DEBUGINFO_DWARF, &err), &err);
	CHECK(debuginfo_generation(s) == before + 1);
	CHECK_STR(info_of(s, &a, "aa").path, "/usr/bin/x");
	upload_path(s, "bb", STR("/opt/y"));
	CHECK_OK(extract(s, "better", DEBUGINFO_DWARF, &err), &err);
	CHECK_INT(debuginfo_find_name(s, STR("x"), v, 2), 2);
	CHECK_INT(debuginfo_find_name(s, STR("y"), v, 2), 1);
	REQUIRE_OK(debuginfo_open(s, &id, &x, &err), &err);
	debuginfo_drop(s, x);
	debuginfo_index_close(x);
	CHECK(debuginfo_generation(s) == before + 3);
	CHECK_INT(debuginfo_totals(s).indexes, 3);
	CHECK_INT(debuginfo_totals(s).uploads_bytes, 0);
	CHECK_INT(debuginfo_find_name(s, STR("x"), v, 2), 1);
	debuginfo_store_close(s);
	spoil(dir, "gnu-bb.idx", -70); /* in its path */
	o.bytes_max = 80;
	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &o, &s, &err), &err);
	CHECK_INT(debuginfo_find_name(s, STR("y"), v, 2), 0);
	CHECK_INT(debuginfo_totals(s).indexes, 1);
	CHECK_INT(debuginfo_totals(s).bytes_max, 80);
	CHECK(debuginfo_generation(s) > 0); /* one was evicted */
	debuginfo_store_close(s);
	arena_release(&a);
	dir_gone(dir);
}

/* The path beside a queued upload: damaged, or left alone by a crash. */
TEST(path_files)
{
	const char *dir = dir_new();
	struct debuginfo_store *s;
	char path[128];
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &plain, &s, &err), &err);
	upload_path(s, "aa", STR("/usr/bin/x"));
	upload_path(s, "bb", STR("/usr/bin/y"));
	debuginfo_store_close(s);
	CHECK_INT(files_in(dir, ".path"), 2);
	spoil(dir, "gnu-aa.full.upload.path", -9);
	snprintf(path, sizeof(path), "%s/gnu-cc.full.upload.path", dir);
	CHECK_OK(fs_write_file(&fs_posix, path, STR("alone"), &err), &err);
	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &plain, &s, &err), &err);
	CHECK_INT(files_in(dir, ".path"), 2);
	CHECK_STR(info_of(s, &a, "aa").path, "");
	CHECK_STR(info_of(s, &a, "bb").path, "/usr/bin/y");
	arena_release(&a);
	debuginfo_store_close(s);
	dir_gone(dir);
}

static enum err_code publish_file(struct debuginfo_store *s, const char *text,
	enum debuginfo_origin origin, enum debuginfo_quality q, struct err *err)
{
	struct debuginfo_id id = gnu(text);
	const struct debuginfo_offer offer = { .kind = DEBUGINFO_FULL,
		.origin = origin,
		.path = STR("/usr/z") };
	struct debuginfo_job *j;
	enum err_code rc;
	int fd = open("/proc/self/exe", O_RDONLY);

	if ((rc = debuginfo_job_begin(s, &id, &offer, fd, &j, err)))
		return rc;
	CHECK_STR(str_of(j->path), "/usr/z");
	if (write(j->out_fd, "index", 5) != 5)
		abort();
	return debuginfo_job_publish(j, &(struct debuginfo_found){ .quality = q }, err);
}

/* A debug file is found by its binary's name, and takes no name from a binary. */
TEST(names_of_debug_files)
{
	const char *dir = dir_new();
	struct debuginfo_id v[2];
	struct debuginfo_store *s;
	struct debuginfo_upload *u;
	struct debuginfo_id aa = gnu("aa");
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &plain, &s, &err), &err);
	upload_path(s, "bb", STR("/usr/lib/debug/lib/libm.so.6.debug"));
	CHECK_OK(extract(s, "index", DEBUGINFO_DWARF, &err), &err);
	CHECK_INT(debuginfo_find_name(s, STR("/lib/libm.so.6"), v, 2), 1);
	CHECK_STR(debuginfo_id_text(&v[0]), "bb");
	upload_path(s, "aa", STR("/lib/libc.so.6"));
	CHECK_OK(extract(s, "index", DEBUGINFO_SYMBOLS, &err), &err);
	now_s += 7 * 60;
	REQUIRE_OK(debuginfo_upload_begin(s, &aa,
		&(struct debuginfo_offer){ .kind = DEBUGINFO_NO_TEXT,
			.origin = DEBUGINFO_UPLOAD,
			.path = STR("/usr/lib/debug/.build-id/aa/bb.debug") },
			&u,
			&err),
		&err);
	CHECK_OK(debuginfo_upload_append(u, STR("elf"), &err), &err);
	CHECK_OK(debuginfo_upload_finish(u, &err), &err);
	CHECK_OK(extract(s, "better", DEBUGINFO_DWARF, &err), &err);
	CHECK_STR(info_of(s, &a, "aa").path, "/lib/libc.so.6");
	CHECK_INT(info_of(s, &a, "aa").kind, DEBUGINFO_FULL);
	CHECK_INT(debuginfo_find_name(s, STR("/lib/libc.so.6"), v, 2), 1);
	debuginfo_store_close(s);
	arena_release(&a);
	dir_gone(dir);
}

/* Whoever fetches files asks for what is not there, and is not held up by what failed. */
TEST(what_is_lacking)
{
	const char *dir = dir_new();
	struct debuginfo_id a = gnu("aa"), b = gnu("bb"), c = gnu("cc");
	struct debuginfo_store *s;
	struct debuginfo_job *j;
	struct err err;

	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &plain, &s, &err), &err);
	CHECK(debuginfo_lacks(s, &a));
	CHECK_OK(upload(s, "aa", DEBUGINFO_STRIPPED, "elf", &err), &err);
	CHECK(!debuginfo_lacks(s, &a)); /* it is on its way */
	CHECK_OK(extract(s, "dynamic", DEBUGINFO_SYMBOLS, &err), &err);
	CHECK(!debuginfo_lacks(s, &a));
	now_s += 7 * 60;
	CHECK(debuginfo_lacks(s, &a)); /* a stripped upload is not all that can be had */
	CHECK_OK(publish_file(s, "aa", DEBUGINFO_DEBUGINFOD, DEBUGINFO_SYMBOLS, &err), &err);
	CHECK(!debuginfo_lacks(s, &a));
	CHECK_OK(publish_file(s, "aa", DEBUGINFO_DIRECTORY, DEBUGINFO_LINES, &err), &err);
	now_s += 7 * 60;
	CHECK(!debuginfo_lacks(s, &a)); /* of the same source comes nothing better */
	CHECK_OK(publish_file(s, "aa", DEBUGINFO_DEBUGINFOD, DEBUGINFO_DWARF, &err), &err);
	CHECK_ERR(publish_file(s, "aa", DEBUGINFO_DEBUGINFOD, DEBUGINFO_DWARF, &err), &err, ERR_EXISTS,
		"equally good symbols are stored");

	CHECK_OK(upload(s, "bb", DEBUGINFO_FULL, "html", &err), &err);
	REQUIRE_OK(debuginfo_job_next(s, &j, &err), &err);
	err_set(&err, ERR_INVALID, "not an ELF file");
	debuginfo_job_fail(j, &err);
	CHECK(!debuginfo_lacks(s, &b));
	CHECK_OK(publish_file(s, "bb", DEBUGINFO_DIRECTORY, DEBUGINFO_DWARF, &err), &err);

	debuginfo_set_missing(s, &c, now_s + 60);
	CHECK(!debuginfo_lacks(s, &c));
	now_s += 60;
	CHECK(debuginfo_lacks(s, &c));
	debuginfo_set_missing(s, &c, now_s + 60);
	debuginfo_forget_missing(s);
	CHECK(debuginfo_lacks(s, &c) && !debuginfo_is_missing(s, &c));
	CHECK(!debuginfo_lacks(s, &b));
	debuginfo_store_close(s);
	dir_gone(dir);
}

/* A directory has a file of another build, or one without debug data: servers are asked next. */
TEST(a_file_of_a_directory_closes_no_way)
{
	const char *dir = dir_new();
	struct debuginfo_id a = gnu("aa"), b = gnu("bb");
	struct debuginfo_store *s;
	struct debuginfo_job *j;
	struct err err;

	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &plain, &s, &err), &err);
	REQUIRE_OK(
		debuginfo_job_begin(s, &a,
			&(struct debuginfo_offer){ .kind = DEBUGINFO_FULL, .origin = DEBUGINFO_DIRECTORY },
			open("/proc/self/exe", O_RDONLY), &j, &err),
		&err);
	err_set(&err, ERR_INVALID, "another build id");
	debuginfo_job_fail(j, &err);
	CHECK(debuginfo_lacks(s, &a));
	CHECK_WANTS(s, "aa", DEBUGINFO_STRIPPED, "yes: nothing is there");

	CHECK_OK(publish_file(s, "bb", DEBUGINFO_DIRECTORY, DEBUGINFO_SYMBOLS, &err), &err);
	CHECK_WANTS(s, "bb", DEBUGINFO_NO_TEXT, "yes: may add to the stored symbols");
	CHECK_ERR(publish_file(s, "bb", DEBUGINFO_DIRECTORY, DEBUGINFO_SYMBOLS, &err), &err, ERR_EXISTS,
		"publish: no better than the stored symbols");
	CHECK_WANTS(s, "bb", DEBUGINFO_NO_TEXT, "yes: may add to the stored symbols");
	CHECK(!debuginfo_lacks(s, &b));
	debuginfo_store_close(s);
	dir_gone(dir);
}

TEST(what_is_no_file_of_a_program)
{
	static const char *const no[] = { "[vdso]", "[kernel.kallsyms]", "[anon:x]", "//anon",
		"/usr/lib/debug/boot/vmlinux-6.1.0", "vmlinux", "/boot/vmlinuz-6.1", "linux-vdso.so.1",
		"/lib/modules/6.1/kernel/fs/ext4/ext4.ko", "/lib/modules/6.1/x.ko.xz", "/tmp/perf-12.map",
		"/memfd:doublemapper (deleted)", "/dev/zero", "/SYSV00000000", "anon_inode:[perf_event]",
		"/home/u/.debug/jit/java-jit-x/jitted-12-3.so" };
	static const char *const yes[] = { "", "/usr/bin/perf", "/usr/bin/a", "a.out", "/opt/ko",
		"/opt/jit", "/srv/x.ko2" };

	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (!debuginfo_path_is_no_file(str_of(no[i])))
			CHECK_FAIL("%s is a file", no[i]);
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (debuginfo_path_is_no_file(str_of(yes[i])))
			CHECK_FAIL("%s is no file", yes[i]);
}
