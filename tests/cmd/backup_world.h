/*
 * Small data directories for tests of backups: a data directory `data`, backups in `to`, restored
 * ones in `back`, all below one scratch directory.
 */
#ifndef TESTS_CMD_BACKUP_WORLD_H
#define TESTS_CMD_BACKUP_WORLD_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/epitool/backup/backup_restore.h"
#include "cmd/epitool/backup/backup_save.h"
#include "tests/check.h"
#include "tests/failing_fs.h"
#include "tests/scratch.h"

#define BLOCK_A "01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define BLOCK_B "01ARZ3NDEKTSV4RRFFQ69G5FAW"

/* The files of `data` that belong into a backup, as backup_world_read prints them. */
#define BACKUP_WHOLE \
	"blocks/" BLOCK_A "/meta.json=meta a\nblocks/" BLOCK_A "/rows.ldb=rows a\n" \
	"blocks/" BLOCK_B "/meta.json=meta b\nblocks/" BLOCK_B "/rows.ldb=rows a\n" \
	"debuginfo/x.idx=index\nempty=\nhead/1700000000/000003.log=log\ninventory=inventory\n"

struct backup_world {
	char dir[sizeof(SCRATCH) + 32];
	char data[128], to[128], back[128];
	struct arena a;
	struct failing_fs fs; /* of the store, or of what is restored */
	uint64_t findings; /* of the next verification */
	char skipped[256]; /* names of blocks that it did not look at */
	char damaged[4096]; /* "PATH: WHY\n" */
};

static struct err err;
static struct backup_world *backup_world_now; /* verify has no context of the test */

/* ---- directories ---- */

static inline enum err_code backup_test_mkdir(struct fs *fs, const char *path, struct err *e)
{
	enum err_code rc = failing_fs_spend(fs, e);

	return rc ? rc : fs_posix.ops->mkdir(fs, path, e);
}

static inline enum err_code backup_test_rmdir(struct fs *fs, const char *path, struct err *e)
{
	enum err_code rc = failing_fs_spend(fs, e);

	return rc ? rc : fs_posix.ops->rmdir(fs, path, e);
}

static inline void backup_world_write(
	const struct backup_world *w, const char *path, const char *text)
{
	char whole[512], dir[512];

	snprintf(whole, sizeof(whole), "%s/%s", w->dir, path);
	snprintf(dir, sizeof(dir), "%s", whole);
	*strrchr(dir, '/') = '\0';
	CHECK_OK(fs_mkdir_all(&fs_posix, dir, &err), &err);
	CHECK_OK(fs_write_file(&fs_posix, whole, str_of(text), &err), &err);
}

/* Older than what may be written again without another time. */
static inline void backup_world_settle(const struct backup_world *w)
{
	struct place all = { .path = w->data };
	const struct timespec old[2] = { { .tv_sec = 1700000000 }, { .tv_sec = 1700000000 } };
	struct place_list list;
	char path[512];
	struct arena a;

	arena_init(&a, 0);
	CHECK_OK(place_list(&all, &a, &list, &err), &err);
	for (size_t i = 0; i < list.n; i++) {
		snprintf(path, sizeof(path), "%s/" STR_FMT, w->data, STR_ARG(list.v[i].key));
		CHECK(utimensat(AT_FDCWD, path, old, 0) == 0);
	}
	arena_release(&a);
}

static inline void backup_world_begin(struct backup_world *w)
{
	static struct fs_ops ops;

	*w = (struct backup_world){ 0 };
	arena_init(&w->a, 0);
	snprintf(w->dir, sizeof(w->dir), "%s", SCRATCH "backup-XXXXXX");
	REQUIRE(scratch_dir(w->dir));
	snprintf(w->data, sizeof(w->data), "%s/data", w->dir);
	snprintf(w->to, sizeof(w->to), "%s/to", w->dir);
	snprintf(w->back, sizeof(w->back), "%s/back", w->dir);
	ops = failing_fs_ops;
	ops.mkdir = backup_test_mkdir;
	ops.rmdir = backup_test_rmdir;
	w->fs = (struct failing_fs){ .fs.ops = &ops, .calls_left = INT32_MAX };
	backup_world_now = w;
	backup_world_write(w, "data/blocks/" BLOCK_A "/meta.json", "meta a");
	backup_world_write(w, "data/blocks/" BLOCK_A "/rows.ldb", "rows a");
	backup_world_write(w, "data/blocks/" BLOCK_B "/meta.json", "meta b");
	backup_world_write(w, "data/blocks/" BLOCK_B "/rows.ldb", "rows a"); /* the same bytes */
	backup_world_write(w, "data/head/1700000000/000003.log", "log");
	backup_world_write(w, "data/inventory", "inventory");
	backup_world_write(w, "data/debuginfo/x.idx", "index");
	backup_world_write(w, "data/debuginfo/y.tmp", "half");
	backup_world_write(w, "data/blocks/" BLOCK_A ".tmp/rows.ldb", "half");
	backup_world_write(w, "data/snapshots/other/inventory", "not this");
	backup_world_write(w, "data/empty", "");
	backup_world_settle(w);
}

static inline void backup_world_end(struct backup_world *w)
{
	CHECK_OK(fs_remove_tree(&fs_posix, w->dir, &err), &err);
	arena_release(&w->a);
}

/* "PATH=BYTES\n" of all files but locks; which: below the scratch directory. */
static inline struct str backup_world_read(struct backup_world *w, const char *which)
{
	char *path = arena_printf(&w->a, "%s/%s", w->dir, which);
	struct place all = { .path = path };
	struct buf text = { 0 };
	struct place_list list;
	struct str out;

	if (place_list(&all, &w->a, &list, &err))
		list.n = 0;
	for (size_t i = 0; i < list.n; i++) {
		if (str_has_suffix(list.v[i].key, STR("lock")))
			continue;
		buf_printf(&text, STR_FMT "=", STR_ARG(list.v[i].key));
		CHECK_OK(place_read(&all, list.v[i].key, 1 << 20, &text, &err), &err);
		buf_add_char(&text, '\n');
	}
	out = str_dup(&w->a, buf_str(&text));
	buf_release(&text);
	return out;
}

/* ---- backups ---- */

static inline uint64_t backup_world_verify(
	const char *dir, bool (*skip)(void *ctx, struct str ulid), void *ctx)
{
	struct backup_world *w = backup_world_now;

	snprintf(w->skipped, sizeof(w->skipped), "%s%s",
		skip(ctx, STR(BLOCK_A)) ? "A" : "", skip(ctx, STR(BLOCK_B)) ? "B" : "");
	return w->findings;
}

static inline uint64_t backup_world_verify_restored(void *ctx, const char *dir)
{
	struct backup_world *w = ctx;

	CHECK(str_has_suffix(str_of(dir), STR("/back/restoring")));
	return w->findings;
}

static inline void backup_world_note_damage(void *ctx, struct str path, const struct err *why)
{
	struct backup_world *w = ctx;
	size_t n = strlen(w->damaged);

	snprintf(w->damaged + n, sizeof(w->damaged) - n, STR_FMT ": %s\n", STR_ARG(path), why->msg);
}

static inline enum err_code backup_world_open_store(struct backup_world *w, struct backup_store *s)
{
	const struct place root = { .path = w->to, .fs = &w->fs.fs };

	CHECK_OK(backup_store_init(s, &root, &err), &err);
	s->wait_ns = 0;
	return ERR_OK;
}

static inline enum err_code backup_world_save_from(
	struct backup_world *w, const struct backup_asking *asking, struct backup_saved *out)
{
	struct backup_source source;
	struct backup_store store;
	struct backup_job job = { .store = &store,
		.source = &source,
		.source_name = STR("host:/data"), .arena = &w->a, .workers = 2,
			.verify = backup_world_verify };
	enum err_code rc;

	backup_world_open_store(w, &store);
	if (!(rc = backup_source_open(w->data, asking, &source, &err)))
		rc = backup_save(&job, out, &err);
	backup_source_close(&source);
	backup_store_end(&store);
	backup_store_release(&store);
	return rc;
}

static inline enum err_code backup_world_save(struct backup_world *w, struct backup_saved *out)
{
	return backup_world_save_from(w, NULL, out);
}

static inline enum err_code backup_world_restore(
	struct backup_world *w, const char *name, bool partial, struct fs *fs)
{
	struct backup_restored restored;
	struct backup_manifest m;
	struct backup_store store;
	struct backup_restore_job job = { .store = &store,
		.manifest = &m,
		.dir = w->back,
		.arena = &w->a,
		.workers = 1,
		.partial = partial,
		.fs = fs,
		.damaged = backup_world_note_damage,
		.ctx = w,
		.verify = backup_world_verify_restored };
	enum err_code rc;

	w->damaged[0] = '\0';
	backup_world_open_store(w, &store);
	if (!(rc = backup_store_read(&store, str_of(name), &w->a, &m, &err)))
		rc = backup_restore(&job, &restored, &err);
	backup_store_release(&store);
	return rc;
}

/* Names of backups, with spaces. */
static inline struct str backup_world_names(struct backup_world *w)
{
	struct backup_store store;
	struct buf text = { 0 };
	struct str *names, out;
	size_t n;

	backup_world_open_store(w, &store);
	CHECK_OK(backup_store_names(&store, &w->a, &names, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		buf_printf(&text, "%s" STR_FMT, i ? " " : "", STR_ARG(names[i]));
	out = str_dup(&w->a, buf_str(&text));
	buf_release(&text);
	backup_store_release(&store);
	return out;
}

static inline void backup_world_clear(const struct backup_world *w, const char *dir)
{
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
}

#endif
