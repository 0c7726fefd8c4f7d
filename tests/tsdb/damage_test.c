/*
 * Every file of a data directory is damaged, in turn and at random places: bits flipped, bytes
 * zeroed, cut short, removed. The database opens all the same; what it gives is right, and where
 * something is missing it says so; what stands in other directories is all there.
 *
 * The test knows nothing of what files there are: it walks the directory. What a directory two
 * levels down holds (a window, a block) it learns by taking it away.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "tests/check.h"
#include "tests/tsdb/disk.h"
#include "tests/tsdb/model.h"

#define FILE_MAX (64u << 20)
#define FILES_MAX 500

struct file {
	char *path; /* below the data directory */
	struct buf bytes;
	bool is_dir;
};

struct damage {
	struct model m;
	struct disk *d;
	struct file files[FILES_MAX]; /* as they were; directories before what is in them */
	size_t n;
	bool *in_unit; /* rows of the model that stood in the damaged file's directory */
	char what[400];
};

/* ---- the directory, kept in memory ---- */

static void keep(struct damage *t, const char *below)
{
	struct arena a;
	struct str *names;
	struct stat st;
	struct err err;
	size_t n;

	arena_init(&a, 0);
	REQUIRE_OK(fs_list(arena_printf(&a, "%s%s", t->m.f.dir, below), &a, &names, &n, &err), &err);
	for (size_t i = 0; i < n; i++) {
		struct file *f = &t->files[t->n];
		char *path = arena_printf(&a, "%s%s/" STR_FMT, t->m.f.dir, below, STR_ARG(names[i]));

		REQUIRE(t->n++ < FILES_MAX && lstat(path, &st) == 0);
		*f = (struct file){ strdup(path + strlen(t->m.f.dir)), { 0 }, S_ISDIR(st.st_mode) };
		if (f->is_dir)
			keep(t, f->path);
		else
			REQUIRE_OK(fs_read_file(path, FILE_MAX, &f->bytes, &err), &err);
	}
	arena_release(&a);
}

static void put_back(struct damage *t)
{
	char path[400];
	struct err err;

	CHECK_OK(fs_remove_tree(&fs_posix, t->m.f.dir, &err), &err);
	CHECK(mkdir(t->m.f.dir, 0755) == 0);
	for (size_t i = 0; i < t->n; i++) {
		const struct file *f = &t->files[i];
		int fd;

		snprintf(path, sizeof(path), "%s%s", t->m.f.dir, f->path);
		if (f->is_dir) {
			CHECK(mkdir(path, 0755) == 0);
			continue;
		}
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		CHECK(fd >= 0 && write(fd, f->bytes.ptr, f->bytes.len) == (ssize_t)f->bytes.len);
		close(fd);
	}
}

/* ---- damage ---- */

enum kind { FLIP, ZERO, CUT, REMOVE, KINDS };

static void damage(struct damage *t, const struct file *f, enum kind kind)
{
	static const char *const names[] = { "flipped", "zeroed", "cut", "removed" };
	uint64_t at = f->bytes.len ? model_draw(&t->m, f->bytes.len) : 0;
	char path[400], bytes[100] = { 0 };
	int fd;

	snprintf(path, sizeof(path), "%s%s", t->m.f.dir, f->path);
	snprintf(t->what, sizeof(t->what), "%s, %s at %d of %d", f->path, names[kind], (int)at,
		(int)f->bytes.len);
	if (kind == REMOVE) {
		CHECK(unlink(path) == 0);
		return;
	}
	fd = open(path, O_RDWR);
	REQUIRE(fd >= 0);
	if (kind == CUT) {
		CHECK(ftruncate(fd, (off_t)at) == 0);
	} else if (kind == ZERO) {
		size_t n = 1 + model_draw(&t->m, sizeof(bytes));

		n = n < f->bytes.len - at ? n : f->bytes.len - at;
		CHECK(pwrite(fd, bytes, n, (off_t)at) == (ssize_t)n);
	} else {
		bytes[0] = f->bytes.ptr[at] ^ (char)(1 << model_draw(&t->m, 8));
		CHECK(pwrite(fd, bytes, 1, (off_t)at) == 1);
	}
	close(fd);
}

/* On a disk without faults: as on ordinary files, but nothing really waits for a sync. */
static bool opens(struct damage *t)
{
	struct err err;

	t->d = disk_open(t->m.f.dir);
	t->m.f.o.fs = disk_fs(t->d);
	t->m.f.o.store = disk_store(t->d);
	t->m.damage_before = metric_value("epimetheus_tsdb_damage_total");
	if (!model_open(&t->m, &err))
		return true;
	CHECK_FAIL("%s: %s", t->what, err.msg);
	return false;
}

static void closes(struct damage *t)
{
	model_close(&t->m);
	disk_close(t->d);
	t->d = NULL;
}

/* Rows of known and of new stacks are taken, in old windows and in new ones, and stay. */
static void goes_on(struct damage *t)
{
	static const int64_t ahead_s[] = { 0, 100 };
	struct model *m = &t->m;
	struct buf got = { 0 }, want = { 0 };

	for (size_t i = 0; i < 2; i++) {
		struct arena a;

		arena_init(&a, 0);
		CHECK_OK(append_wait(m->f.db, m->labels[i], (m->now_s + 1 + ahead_s[i]) * SEC, SEC,
					 profile_random(&a, 7 + i), NULL, false, NULL, &m->f.err),
			&m->f.err);
		arena_release(&a);
	}
	closes(t);
	if (!opens(t))
		return;
	for (size_t i = 0; i < 2; i++) {
		int64_t at_s = m->now_s + 1 + ahead_s[i];
		struct arena a;

		arena_init(&a, 0);
		buf_clear(&got);
		buf_clear(&want);
		buf_printf(&want, "@%lld\n", (long long)at_s);
		profile_samples_text(profile_random(&a, 7 + i), &want);
		CHECK(rows_text(m->f.db, m->labels[i], (at_s - 1) * SEC, at_s * SEC, &got, &m->f.err));
		if (!str_has_prefix(buf_str(&got), buf_str(&want)))
			CHECK_FAIL("%s: later row: got\n" STR_FMT "want\n" STR_FMT, t->what,
				STR_ARG(buf_str(&got)), STR_ARG(buf_str(&want)));
		arena_release(&a);
	}
	buf_release(&got);
	buf_release(&want);
}

static void one(struct damage *t, const struct file *f, enum kind kind)
{
	int before = check_failures;

	put_back(t);
	damage(t, f, kind);
	if (!opens(t))
		goto out;
	if (!model_check(&t->m, false))
		CHECK_FAIL("%s:\n%s", t->what, t->m.wrong.ptr);
	for (size_t i = 0; i < t->m.n; i++)
		if (!t->m.rows[i].there && !t->in_unit[i]) {
			CHECK_FAIL("%s: a row at %lld that stands elsewhere is missing", t->what,
				(long long)(t->m.rows[i].ts_ns / SEC));
			break;
		}
	if (check_failures == before)
		goes_on(t);
out:
	if (t->d)
		closes(t);
}

/* Which rows are gone with a directory. */
static void learn(struct damage *t, const char *unit)
{
	char path[400];
	struct err err;

	put_back(t);
	memset(t->in_unit, 0, t->m.n * sizeof(*t->in_unit));
	if (!unit)
		return;
	snprintf(path, sizeof(path), "%s%s", t->m.f.dir, unit);
	snprintf(t->what, sizeof(t->what), "without %s", unit);
	CHECK_OK(fs_remove_tree(&fs_posix, path, &err), &err);
	if (!opens(t))
		return;
	t->m.damage_before = -1;
	CHECK(model_check(&t->m, false));
	for (size_t i = 0; i < t->m.n; i++)
		t->in_unit[i] = !t->m.rows[i].there;
	closes(t);
}

static bool begin(struct damage *t)
{
	struct err err;

	if (!model_init(&t->m, model_seed()))
		return false;
	t->m.f.o.retention_ns = 0;
	t->m.no_replacing = true;
	for (int i = 0; i < 3; i++) {
		if (model_open(&t->m, &err))
			return false;
		model_work(&t->m, 25, NULL, NULL);
		if (!model_check(&t->m, true))
			return false;
		model_close(&t->m);
	}
	t->m.damage_allowed = true;
	t->in_unit = calloc(t->m.n, sizeof(*t->in_unit));
	keep(t, "");
	return t->in_unit != NULL;
}

TEST(every_file_is_damaged)
{
	static struct damage t;
	uint64_t rounds = model_rounds(2);
	char unit[200] = "";

	t = (struct damage){ 0 };
	REQUIRE(begin(&t));
	learn(&t, NULL);
	for (size_t i = 0; i < t.n && check_failures < 20; i += CHECK_STEP) {
		const struct file *f = &t.files[i];
		const char *second = strchr(f->path + 1, '/'),
				   *third = second ? strchr(second + 1, '/') : NULL;
		size_t unit_n = third ? (size_t)(third - f->path) : 0;

		if (f->is_dir)
			continue;
		if (strlen(unit) != unit_n || strncmp(unit, f->path, unit_n) != 0) {
			snprintf(unit, sizeof(unit), "%.*s", (int)unit_n, f->path);
			learn(&t, unit_n ? unit : NULL);
		}
		for (int kind = 0; kind < KINDS; kind++)
			for (uint64_t k = 0; k < (kind == REMOVE ? 1 : rounds); k++)
				if (f->bytes.len || kind == REMOVE)
					one(&t, f, (enum kind)kind);
	}
	for (size_t i = 0; i < t.n; i++) {
		free(t.files[i].path);
		buf_release(&t.files[i].bytes);
	}
	free(t.in_unit);
	model_release(&t.m);
}
