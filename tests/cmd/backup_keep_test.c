/* Several backups in one place: which are removed, and what several processes do to each other. */
#include "tests/cmd/backup_world.h"

/* A backup `name` of one file with these bytes. */
static enum err_code backup_world_make(struct backup_world *w, const char *name, const char *source,
	uint64_t findings, const char *text)
{
	struct backup_file f = { .path = STR("file"), .bytes = strlen(text) };
	const struct backup_manifest m = { str_of(name), str_of(source), findings, &f, 1 };
	struct backup_store store;
	enum err_code rc;
	char path[200];
	int fd;

	backup_world_write(w, "bytes", text);
	snprintf(path, sizeof(path), "%s/bytes", w->dir);
	fd = open(path, O_RDONLY);
	backup_world_open_store(w, &store);
	snprintf(store.name, sizeof(store.name), "%s", name);
	if (!(rc = bucket_file_hash(fd, f.hash, &err)) && !(rc = backup_store_begin(&store, &err)) &&
		(backup_store_has(&store, f.hash, f.bytes) ||
			!(rc = backup_store_put(&store, f.hash, fd, &err))))
		rc = backup_store_commit(&store, &m, &err);
	close(fd);
	backup_store_end(&store);
	backup_store_release(&store);
	return rc;
}

/* As the backup `name` would. "BACKUPS OBJECTS", or "busy". */
static const char *backup_world_remove(struct backup_world *w, const char *name, uint64_t keep)
{
	static char text[64];
	struct backup_removed removed;
	struct backup_store store;

	backup_world_open_store(w, &store);
	snprintf(store.name, sizeof(store.name), "%s", name);
	if (backup_store_remove_old(&store, STR("a"), keep, &removed, &err))
		snprintf(text, sizeof(text), "%s", err_code_name(err.code));
	else if (removed.busy)
		snprintf(text, sizeof(text), "busy");
	else
		snprintf(text, sizeof(text), "%d %d", (int)removed.backups, (int)removed.objects);
	backup_store_end(&store);
	backup_store_release(&store);
	return text;
}

#define AT(n) "2026112" #n "T000000Z-00000000"

TEST(the_newest_whole_backups_stay)
{
	struct backup_world w;

	backup_world_begin(&w);
	REQUIRE_OK(backup_world_make(&w, AT(1), "a", 0, "one"), &err);
	REQUIRE_OK(backup_world_make(&w, AT(2), "a", 0, "two"), &err);
	REQUIRE_OK(backup_world_make(&w, AT(3), "b", 0, "other"), &err); /* another server's */
	REQUIRE_OK(backup_world_make(&w, AT(4), "a", 0, "one"), &err);
	REQUIRE_OK(backup_world_make(&w, AT(5), "a", 1, "five"), &err); /* damaged already */
	REQUIRE_OK(backup_world_make(&w, AT(6), "a", 1, "six"), &err);
	CHECK_STR(str_of(backup_world_remove(&w, AT(6), 3)), "0 0");
	CHECK_STR(str_of(backup_world_remove(&w, AT(6), 2)), "1 0"); /* the fourth has its bytes */
	CHECK_STR(backup_world_names(&w), AT(2) " " AT(3) " " AT(4) " " AT(5) " " AT(6));
	CHECK_STR(str_of(backup_world_remove(&w, AT(6), 1)), "1 1");
	CHECK_STR(backup_world_names(&w), AT(3) " " AT(4) " " AT(5) " " AT(6));
	REQUIRE_OK(backup_world_make(&w, AT(7), "a", 0, "seven"), &err);
	/* What a killed one left goes, too. */
	backup_world_write(&w, "to/objects/0000.0123456789abcdef" PLACE_PART, "half");
	backup_world_write(&w, "to/objects/0000", "of no backup");
	CHECK_STR(str_of(backup_world_remove(&w, AT(7), 1)), "3 4");
	CHECK_STR(backup_world_names(&w), AT(3) " " AT(7));
	CHECK(str_find(backup_world_read(&w, "to"), STR("half")) < 0);
	REQUIRE_OK(backup_world_restore(&w, AT(7), false, NULL), &err);
	CHECK_STR(backup_world_read(&w, "back"), "file=seven\n");
	/* A manifest that cannot be read may name anything. */
	backup_world_write(&w, "to/backups/" AT(3), "damaged");
	REQUIRE_OK(backup_world_make(&w, AT(8), "a", 0, "eight"), &err);
	CHECK_STR(str_of(backup_world_remove(&w, AT(8), 1)), "corrupt data");
	CHECK_STR(backup_world_names(&w), AT(3) " " AT(7) " " AT(8));
	backup_world_end(&w);
}

/* Marks are as old as they say by the place's clock. */
static void backup_world_age(const struct backup_world *w, const char *path, int64_t by_s)
{
	struct timespec when[2];
	char name[300];
	struct stat st;

	snprintf(name, sizeof(name), "%s/%s", w->dir, path);
	REQUIRE(stat(name, &st) == 0);
	when[0] = when[1] = (struct timespec){ .tv_sec = st.st_mtim.tv_sec - by_s };
	CHECK(utimensat(AT_FDCWD, name, when, 0) == 0);
}

TEST(several_at_once)
{
	struct backup_world w;

	backup_world_begin(&w);
	REQUIRE_OK(backup_world_make(&w, AT(1), "a", 0, "one"), &err);
	REQUIRE_OK(backup_world_make(&w, AT(2), "a", 0, "two"), &err);
	/* Another one is being made: it may rely on objects of the first. */
	backup_world_write(&w, "to/running/" AT(9), "\n");
	CHECK_STR(str_of(backup_world_remove(&w, AT(2), 1)), "busy");
	CHECK_STR(backup_world_names(&w), AT(1) " " AT(2));
	/* It has been dead for a while. */
	backup_world_age(&w, "to/running/" AT(9), BACKUP_MARK_NS / NS_PER_S + 60);
	CHECK_STR(str_of(backup_world_remove(&w, AT(2), 1)), "1 1");
	CHECK_STR(backup_world_read(&w, "to/running"), "");
	/* Another one removes: this one waits, and relies on nothing before that has ended. */
	backup_world_write(&w, "to/removing/" AT(9), "\n");
	CHECK(backup_world_make(&w, AT(3), "a", 0, "two") == ERR_UNAVAILABLE);
	CHECK(strstr(err.msg, "another backup is removing old ones"));
	backup_world_age(&w, "to/removing/" AT(9), BACKUP_MARK_NS / NS_PER_S + 60);
	CHECK_OK(backup_world_make(&w, AT(3), "a", 0, "two"), &err);
	CHECK_STR(backup_world_read(&w, "to/removing"), "");
	backup_world_end(&w);
}

/* One that stood still while another removed what it relies on is no backup. */
TEST(objects_that_vanish_before_the_manifest)
{
	struct backup_file f = { .path = STR("file"), .bytes = 3 };
	const struct backup_manifest m = { STR(AT(2)), STR("a"), 0, &f, 1 };
	struct backup_store store;
	struct backup_world w;

	backup_world_begin(&w);
	REQUIRE_OK(backup_world_make(&w, AT(1), "a", 0, "one"), &err);
	backup_world_open_store(&w, &store);
	snprintf(store.name, sizeof(store.name), "%s", AT(2));
	REQUIRE_OK(backup_store_begin(&store, &err), &err);
	memcpy(f.hash, store.there.v[0].key.ptr, BUCKET_HASH_LEN + 1);
	CHECK(backup_store_has(&store, f.hash, 3));
	REQUIRE_OK(place_remove(&store.objects, str_of(f.hash), &err), &err);
	CHECK_ERR(backup_store_commit(&store, &m, &err), &err, ERR_UNAVAILABLE,
		"file: its object was removed meanwhile: back up again");
	CHECK_STR(backup_world_names(&w), AT(1));
	backup_store_end(&store);
	backup_store_release(&store);
	backup_world_end(&w);
}
