/* A mirror shows what was there, whatever the server beside it replaces meanwhile. */
#include "tsdb/store/mirror.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "tests/check.h"
#include "tests/scratch.h"

struct bed {
	char dir[64];
	char *head_dir; /* the mirror's, once it is open */
	struct mirror *m;
};

static void put(const struct bed *t, const char *name, const char *content)
{
	char path[200];
	struct err err;

	snprintf(path, sizeof(path), "%s/%s", t->dir, name);
	CHECK_OK(fs_write_file(&fs_posix, path, str_of(content), &err), &err);
}

static void bed_open(struct bed *t)
{
	char path[100];
	struct err err;

	*t = (struct bed){ .dir = SCRATCH "epi-mirror-test-XXXXXX" };
	REQUIRE(scratch_dir(t->dir));
	snprintf(path, sizeof(path), "%s/100", t->dir);
	REQUIRE_OK(fs_mkdir_all(&fs_posix, path, &err), &err);
	put(t, "100/000005.ldb", "table");
	put(t, "100/000007.log", "log");
	put(t, "100/LOG", "what LevelDB says");
	put(t, "100.names", "names");
	REQUIRE((t->head_dir = strdup(t->dir)));
	REQUIRE_OK(mirror_open(&t->head_dir, &t->m, &err), &err);
}

static void check_file(const struct bed *t, const char *name, const char *want)
{
	struct buf got = { 0 };
	char path[200];
	struct err err;

	snprintf(path, sizeof(path), "%s/%s", t->head_dir, name);
	if (want)
		CHECK_OK(fs_read_file(path, 100, &got, &err), &err);
	else
		CHECK(!fs_exists(path));
	CHECK_STR(buf_str(&got), want ? want : "");
	buf_release(&got);
}

TEST(tables_that_go_meanwhile_can_be_read)
{
	struct bed t;
	struct err err;
	char path[200];

	bed_open(&t);
	CHECK(strcmp(t.head_dir, t.dir) != 0);
	put(&t, "100/000007.log", "another log");
	snprintf(path, sizeof(path), "%s/100/000005.ldb", t.dir);
	REQUIRE(unlink(path) == 0);
	check_file(&t, "100/000005.ldb", "table");
	check_file(&t, "100/000007.log", "log");
	check_file(&t, "100.names", "names");
	check_file(&t, "100/LOG", NULL);
	mirror_close(t.m);
	CHECK(!fs_exists(t.head_dir));
	free(t.head_dir);
	CHECK_OK(fs_remove_tree(&fs_posix, t.dir, &err), &err);
}

TEST(a_directory_that_is_missing_is_named)
{
	char *head_dir = strdup("/tmp/epi-mirror-test-none/head");
	struct mirror *m = NULL;
	struct err err;

	CHECK_ERR(mirror_open(&head_dir, &m, &err), &err, ERR_NOT_FOUND,
		"open /tmp/epi-mirror-test-none/head: No such file or directory");
	CHECK(!m);
	CHECK_STR(str_of(head_dir), "/tmp/epi-mirror-test-none/head");
	free(head_dir);
}
