/* What epitool calls files of native code. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "cmd/epitool/debuginfo/native_file.h"
#include "tests/check.h"
#include "tests/web/debuginfo/mini_elf.h"

static char path[] = "/tmp/epi-native-XXXXXX";

static void save(struct str content)
{
	struct err err;

	if (fs_write_file(&fs_posix, path, content, &err))
		CHECK_FAIL("%s", err.msg);
}

/* The file ids were computed apart, by Python's hashlib. */
TEST(ids_of_small_files)
{
	static const struct {
		size_t bytes_behind;
		const char *file_id;
	} rows[] = { { 0, "836792a991a8b1dcd747f0eea73fc305" },
		{ 5000, "fb3b17c8bb2db6e68798b56cc1b0c9dd" } };
	int fd = mkstemp(path);
	struct buf elf = { 0 };
	struct native_file f;
	struct err err;

	REQUIRE(fd >= 0);
	close(fd);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		mini_elf(&elf, STR("\xab\xcd\x01"), rows[i].bytes_behind);
		save(buf_str(&elf));
		REQUIRE(!native_file_open(path, &f, &err));
		CHECK_STR(debuginfo_id_text(&f.ids[DEBUGINFO_GNU]), "abcd01");
		CHECK_STR(debuginfo_id_text(&f.ids[DEBUGINFO_FILE]), rows[i].file_id);
		CHECK_INT(f.ids[DEBUGINFO_GO].len, 0);
		CHECK_INT(f.kind, DEBUGINFO_STRIPPED);
		CHECK(native_file_id(&f) == &f.ids[DEBUGINFO_GNU]);
		native_file_close(&f);
	}
	mini_elf(&elf, STR(""), 0);
	save(buf_str(&elf));
	REQUIRE(!native_file_open(path, &f, &err));
	CHECK(native_file_id(&f) == &f.ids[DEBUGINFO_FILE]);
	native_file_close(&f);
	unlink(path);
	buf_release(&elf);
}

TEST(what_is_no_such_file)
{
	static const struct {
		const char *path;
		enum err_code rc;
		const char *want;
	} rows[] = {
		{ "/nonexistent", ERR_NOT_FOUND, "/nonexistent: No such file or directory" },
		{ "/tmp", ERR_INVALID, "/tmp: not a file" },
		{ "/dev/null", ERR_INVALID, "/dev/null: not a file" },
		{ "tests/check.h", ERR_INVALID, "tests/check.h: not an ELF file: it is text" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct native_file f;
		struct err err;

		CHECK_ERR(native_file_open(rows[i].path, &f, &err), &err, rows[i].rc, rows[i].want);
	}
}

TEST(this_program_has_dwarf)
{
	struct native_file f;
	struct err err;

	REQUIRE(!native_file_open("/proc/self/exe", &f, &err));
	CHECK_INT(f.kind, DEBUGINFO_FULL);
	CHECK_INT(f.ids[DEBUGINFO_FILE].len, 32);
	native_file_close(&f);
}
