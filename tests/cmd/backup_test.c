/*
 * Backups of small directories, into a directory: what is copied and what is not, every fault while
 * one is made or restored, damage.
 */
#include "tests/cmd/backup_world.h"

TEST(a_restored_directory_is_the_one_that_was_backed_up)
{
	struct backup_saved saved;
	struct backup_world w;

	backup_world_begin(&w);
	REQUIRE_OK(backup_world_save(&w, &saved), &err);
	CHECK_INT(saved.files, 8);
	CHECK_STR(str_of(w.skipped), "");
	REQUIRE_OK(backup_world_restore(&w, saved.name, false, NULL), &err);
	CHECK_STR(backup_world_read(&w, "back"), BACKUP_WHOLE);
	CHECK_STR(backup_world_read(&w, "to/running"), "");
	/* It is not empty any more. */
	CHECK(backup_world_restore(&w, saved.name, false, NULL) == ERR_EXISTS);
	CHECK(strstr(err.msg, "is not empty: it has blocks"));
	CHECK_STR(backup_world_read(&w, "back"), BACKUP_WHOLE);
	backup_world_end(&w);
}

/* No file is in an empty directory, and readers want both of these. */
TEST(what_has_no_windows_or_no_blocks_is_restored)
{
	static const char *const parts[] = { "head", "blocks" };
	struct backup_saved saved;
	struct backup_world w;

	for (size_t i = 0; i < 2; i++) {
		backup_world_begin(&w);
		backup_world_clear(&w, arena_printf(&w.a, "%s/%s", w.data, parts[i]));
		REQUIRE_OK(
			fs_mkdir_all(&fs_posix, arena_printf(&w.a, "%s/%s", w.data, parts[i]), &err), &err);
		REQUIRE_OK(backup_world_save(&w, &saved), &err);
		REQUIRE_OK(backup_world_restore(&w, saved.name, false, NULL), &err);
		for (size_t k = 0; k < 2; k++)
			CHECK(fs_exists(arena_printf(&w.a, "%s/%s", w.back, parts[k])));
		backup_world_end(&w);
	}
}

TEST(what_is_there_is_not_copied_again)
{
	struct backup_saved saved;
	struct backup_world w;

	backup_world_begin(&w);
	REQUIRE_OK(backup_world_save(&w, &saved), &err);
	REQUIRE_OK(backup_world_save(&w, &saved), &err);
	CHECK_INT(saved.copied_files, 0);
	CHECK_STR(str_of(w.skipped), "AB");
	/* Of the same size, and its time says that it is another: it is read. */
	backup_world_write(&w, "data/inventory", "inventorz");
	backup_world_write(&w, "data/blocks/" BLOCK_B "/deleted", "ranges");
	REQUIRE_OK(backup_world_save(&w, &saved), &err);
	CHECK_INT(saved.copied_files, 2);
	CHECK_INT(saved.files, 9);
	CHECK_STR(str_of(w.skipped), "A");
	/* Written again within a step of the clock of files, in place. */
	backup_world_settle(&w);
	REQUIRE_OK(backup_world_save(&w, &saved), &err);
	CHECK_INT(saved.copied_files, 0);
	/* A backup with findings is not relied upon. */
	w.findings = 2;
	REQUIRE_OK(backup_world_save(&w, &saved), &err);
	CHECK_INT(saved.findings, 2);
	REQUIRE_OK(backup_world_restore(&w, saved.name, false, NULL), &err);
	backup_world_end(&w);
}

/* An object that is not whole any more is put again, if its size shows it. */
TEST(an_object_of_another_size_is_put_again)
{
	struct backup_saved saved;
	struct backup_world w;
	struct place objects;
	struct place_list list;
	char path[200];

	backup_world_begin(&w);
	REQUIRE_OK(backup_world_save(&w, &saved), &err);
	snprintf(path, sizeof(path), "%s/objects", w.to);
	objects = (struct place){ .path = path };
	REQUIRE_OK(place_list(&objects, &w.a, &list, &err), &err);
	CHECK_INT(list.n, 7); /* two files have the same bytes */
	for (size_t i = 0; i < list.n; i++)
		if (list.v[i].bytes)
			REQUIRE_OK(place_write(&objects, list.v[i].key, STR(""), &err), &err);
	REQUIRE_OK(backup_world_save(&w, &saved), &err);
	CHECK(saved.copied_files >= 6);
	REQUIRE_OK(backup_world_restore(&w, saved.name, false, NULL), &err);
	CHECK_STR(backup_world_read(&w, "back"), BACKUP_WHOLE);
	backup_world_end(&w);
}

/* ---- a server has the directory ---- */

static enum err_code backup_world_snapshot(
	void *ctx, struct arena *a, struct str *name, struct err *e)
{
	struct backup_world *w = ctx;

	backup_world_write(w, "data/snapshots/now/blocks/" BLOCK_A "/meta.json", "meta a");
	backup_world_write(w, "data/snapshots/now/inventory", "then");
	*name = STR("now");
	return ERR_OK;
}

static enum err_code backup_world_elsewhere(
	void *ctx, struct arena *a, struct str *name, struct err *e)
{
	*name = STR("elsewhere");
	return ERR_OK;
}

TEST(of_a_server_a_snapshot_is_taken)
{
	struct backup_world w;
	const struct backup_asking asking = { backup_world_snapshot, &w },
							   elsewhere = { backup_world_elsewhere, &w };
	struct backup_saved saved;
	char path[200];
	int lock;

	backup_world_begin(&w);
	snprintf(path, sizeof(path), "%s/lock", w.data);
	REQUIRE_OK(fs_lock(path, &lock, &err), &err);
	/* left by a backup that was killed */
	backup_world_write(&w, "data/snapshots/left.backup/inventory", "left");
	REQUIRE_OK(backup_world_save_from(&w, &asking, &saved), &err);
	REQUIRE_OK(backup_world_restore(&w, saved.name, false, NULL), &err);
	CHECK_STR(backup_world_read(&w, "back"),
		"blocks/" BLOCK_A "/meta.json=meta a\ndebuginfo/x.idx=index\ninventory=then\n");
	CHECK_STR(backup_world_read(&w, "data/snapshots"), "other/inventory=not this\n");
	CHECK(backup_world_save_from(&w, &elsewhere, &saved) == ERR_NOT_FOUND);
	CHECK(strstr(err.msg, "/data/snapshots/elsewhere is not there: the server that made it"));
	fs_unlock(lock);
	backup_world_end(&w);
}

/* ---- faults ---- */

/* After a fault at each call of a backup: what is listed is whole, and the next one works. */
TEST(faults_while_a_backup_is_made)
{
	struct backup_saved saved;
	struct backup_world w;
	bool done = false;
	int failed = 0;

	backup_world_begin(&w);
	for (int at = 0; !done; at += CHECK_STEP) {
		struct str names;

		backup_world_clear(&w, w.to);
		w.fs.calls_left = at;
		done = backup_world_save(&w, &saved) == ERR_OK;
		failed += !done;
		w.fs.calls_left = INT32_MAX;
		names = backup_world_names(&w);
		CHECK(done ? str_is(names, saved.name) : true);
		if (names.len) {
			backup_world_clear(&w, w.back);
			REQUIRE_OK(backup_world_restore(&w, names.ptr, false, NULL), &err);
			CHECK_STR(backup_world_read(&w, "back"), BACKUP_WHOLE);
		}
		REQUIRE_OK(backup_world_save(&w, &saved), &err);
		backup_world_clear(&w, w.back);
		REQUIRE_OK(backup_world_restore(&w, saved.name, false, NULL), &err);
		CHECK_STR(backup_world_read(&w, "back"), BACKUP_WHOLE);
	}
	CHECK(failed > 50 / CHECK_STEP);
	backup_world_end(&w);
}

/* After a fault at each call of a restore nothing is there, or all of it, or what says what misses.
 */
TEST(faults_while_one_is_restored)
{
	struct backup_saved saved;
	struct backup_world w;
	bool done = false;
	int failed = 0;

	backup_world_begin(&w);
	REQUIRE_OK(backup_world_save(&w, &saved), &err);
	for (int at = 0; !done; at += CHECK_STEP) {
		struct failing_fs fs = { w.fs.fs, at, 0 };
		struct str *names;
		bool inventory = false, empty = true;
		size_t n;

		backup_world_clear(&w, w.back);
		done = backup_world_restore(&w, saved.name, false, &fs.fs) == ERR_OK;
		failed += !done;
		if (done) {
			CHECK_STR(backup_world_read(&w, "back"), BACKUP_WHOLE);
			break;
		}
		if (fs_list(w.back, &w.a, &names, &n, &err))
			continue; /* it could not even be made */
		for (size_t i = 0; i < n; i++) {
			inventory |= str_is(names[i], "inventory");
			empty &= str_is(names[i], "restoring") || str_is(names[i], "lock");
		}
		CHECK(empty || inventory);
		if (empty) {
			REQUIRE_OK(backup_world_restore(&w, saved.name, false, NULL), &err);
			CHECK_STR(backup_world_read(&w, "back"), BACKUP_WHOLE);
		}
	}
	CHECK(failed > 50 / CHECK_STEP);
	backup_world_end(&w);
}

/* ---- damage ---- */

TEST(damaged_backups_are_named_and_refused)
{
	struct backup_saved saved;
	struct backup_manifest m;
	struct backup_store store;
	struct backup_world w;
	const struct backup_file *inventory, *log;

	backup_world_begin(&w);
	REQUIRE_OK(backup_world_save(&w, &saved), &err);
	backup_world_open_store(&w, &store);
	REQUIRE_OK(backup_store_read(&store, str_of(saved.name), &w.a, &m, &err), &err);
	inventory = backup_manifest_find(&m, STR("inventory"));
	log = backup_manifest_find(&m, STR("head/1700000000/000003.log"));
	REQUIRE(inventory && log);
	REQUIRE_OK(place_write(&store.objects, str_of(inventory->hash), STR("inventorz"), &err), &err);
	REQUIRE_OK(place_remove(&store.objects, str_of(log->hash), &err), &err);
	CHECK(backup_world_restore(&w, saved.name, false, NULL) == ERR_CORRUPT);
	CHECK_STR(str_of(err.msg),
		"2 of 8 files are damaged, and nothing was restored; --partial restores the others");
	CHECK(strstr(w.damaged, "inventory: object "));
	CHECK(strstr(w.damaged, ": its bytes are not those that were backed up\n"));
	CHECK(strstr(w.damaged, "head/1700000000/000003.log: "));
	CHECK(strstr(w.damaged, ": No such file or directory\n"));
	CHECK_STR(backup_world_read(&w, "back"), "");
	REQUIRE_OK(backup_world_restore(&w, saved.name, true, NULL), &err);
	CHECK(strlen(BACKUP_WHOLE) > backup_world_read(&w, "back").len);
	CHECK(str_find(backup_world_read(&w, "back"), STR("inventory")) < 0);
	/* What is verified has more findings than the backup had. */
	backup_world_clear(&w, w.back);
	REQUIRE_OK(backup_world_save(&w, &saved), &err); /* the log again */
	w.findings = 1;
	CHECK(backup_world_restore(&w, saved.name, false, NULL) == ERR_CORRUPT);
	backup_store_release(&store);
	backup_world_end(&w);
}
