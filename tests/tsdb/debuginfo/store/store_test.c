/*
 * The store of debug data: what is wanted, limits, replacing, eviction, readers, restarts, failing
 * disks, and kill -9 at any moment.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/check.h"
#include "tests/failing_fs.h"
#include "tests/tsdb/debuginfo/store/world.h"

/* want NULL: there is none. */
static void check_index(struct debuginfo_store *s, const char *text, const char *want)
{
	struct debuginfo_id id = gnu(text);
	struct debuginfo_index *x;
	struct err err;

	if (!want) {
		CHECK_ERR(debuginfo_open(s, &id, &x, &err), &err, ERR_NOT_FOUND, "no debug data");
		return;
	}
	REQUIRE_OK(debuginfo_open(s, &id, &x, &err), &err);
	CHECK_STR(debuginfo_index_bytes(x), want);
	debuginfo_index_close(x);
}

TEST(keys)
{
	static const struct {
		enum debuginfo_id_kind kind;
		const char *text, *stem, *error;
	} rows[] = {
		{ DEBUGINFO_GNU, "3F5e", "gnu-3f5e" },
		{ DEBUGINFO_GNU, "abc", "gnu-abc" },
		{ DEBUGINFO_GNU, "a", NULL, "gnu build id has 1 characters, not 2 to 40" },
		{ DEBUGINFO_GNU, "../x", NULL, "gnu build id: character 1 is not hexadecimal" },
		{ DEBUGINFO_GNU, "00000000000000000000000000000000000000000", NULL,
			"gnu build id has 41 characters, not 2 to 40" },
		{ DEBUGINFO_GO, "a/.-_Z", "go-612f2e2d5f5a" },
		{ DEBUGINFO_GO, "", NULL, "go build id has 0 characters, not 1 to 100" },
		{ DEBUGINFO_GO, "a\n", NULL, "go build id: character 2 is not printable ASCII" },
		{ DEBUGINFO_FILE, "00112233445566778899AABBCCDDEEFF",
			"file-00112233445566778899aabbccddeeff" },
		{ DEBUGINFO_FILE, "0011", NULL, "file build id has 4 characters, not 32 to 32" },
	};
	static const char *const foreign[] = { "", "gnu", "gnu-", "gnu-3F", "go-6", "go-6A", "go-zz",
		"elf-00", "gnu-../../x", "go-0a", "file-00" };
	struct debuginfo_id id, same;
	struct buf stem = { 0 };
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].error) {
			CHECK_ERR(debuginfo_id_init(&id, rows[i].kind, str_of(rows[i].text), &err), &err,
				ERR_INVALID, rows[i].error);
			continue;
		}
		CHECK_OK(debuginfo_id_init(&id, rows[i].kind, str_of(rows[i].text), &err), &err);
		buf_clear(&stem);
		debuginfo_id_stem(&id, &stem);
		CHECK_STR(buf_str(&stem), rows[i].stem);
		CHECK(debuginfo_id_of_stem(buf_str(&stem), &same) && debuginfo_id_eq(&id, &same));
	}
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		CHECK(!debuginfo_id_of_stem(str_of(foreign[i]), &same));
	buf_release(&stem);
}

TEST(better_replaces_worse)
{
	const char *dir = dir_new();
	struct debuginfo_store *s;
	struct debuginfo_job *j;
	struct err err;

	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &plain, &s, &err), &err);
	CHECK_WANTS(s, "aa", DEBUGINFO_STRIPPED, "yes: nothing is there");
	CHECK_OK(upload(s, "aa", DEBUGINFO_STRIPPED, "elf", &err), &err);
	CHECK_WANTS(s, "aa", DEBUGINFO_FULL, "no: extraction is in progress");
	CHECK_ERR(upload(s, "AA", DEBUGINFO_FULL, "elf", &err), &err, ERR_EXISTS,
		"extraction is in "
		"progress");
	CHECK_OK(extract(s, "dynamic", DEBUGINFO_SYMBOLS, &err), &err);
	check_index(s, "aa", "dynamic");
	CHECK_WANTS(s, "aa", DEBUGINFO_STRIPPED, "no: equally good symbols are stored");
	CHECK_WANTS(s, "aa", DEBUGINFO_NO_TEXT, "yes: may add to the stored symbols");
	CHECK_OK(upload(s, "aa", DEBUGINFO_FULL, "elf2", &err), &err);
	CHECK_ERR(extract(s, "dynamic", DEBUGINFO_SYMBOLS, &err), &err, ERR_EXISTS,
		"publish: no better than the stored symbols");
	check_index(s, "aa", "dynamic");
	CHECK_WANTS(s, "aa", DEBUGINFO_FULL, "no: no better a short time ago");
	now_s += 7 * 60;
	CHECK_OK(upload(s, "aa", DEBUGINFO_FULL, "elf3", &err), &err);
	CHECK_OK(extract(s, "all of it", DEBUGINFO_DWARF, &err), &err);
	check_index(s, "aa", "all of it");
	CHECK_WANTS(s, "aa", DEBUGINFO_FULL, "no: equally good symbols are stored");

	CHECK_OK(upload(s, "bb", DEBUGINFO_NO_TEXT, "html", &err), &err);
	REQUIRE_OK(debuginfo_job_next(s, &j, &err), &err);
	CHECK_INT(j->source_bytes, 4);
	err_set(&err, ERR_INVALID, "not an ELF file\n\x1b[31m");
	debuginfo_job_fail(j, &err);
	CHECK_WANTS(s, "bb", DEBUGINFO_NO_TEXT, "no: the extraction failed a short time ago");
	CHECK_WANTS(s, "bb", DEBUGINFO_FULL, "yes: nothing is there");
	CHECK_ERR(debuginfo_job_next(s, &j, &err), &err, ERR_NOT_FOUND, "nothing is queued");
	CHECK_INT(files_in(dir, ".queued") + files_in(dir, ".tmp"), 0);
	debuginfo_store_close(s);
	dir_gone(dir);
}

/* Debug data alone do not say where the code lies: the binary is still wanted, once. */
TEST(a_binary_after_its_debug_data)
{
	const struct debuginfo_found lost = { DEBUGINFO_DWARF, DEBUGINFO_PLACES_LOST },
								 known = { DEBUGINFO_DWARF, DEBUGINFO_PLACES };
	const char *dir = dir_new();
	struct debuginfo_store *s;
	struct err err;

	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &plain, &s, &err), &err);
	CHECK_OK(upload(s, "aa", DEBUGINFO_FULL, "elf", &err), &err); /* it says so */
	CHECK_OK(extract_found(s, "debug", &lost, &err), &err);
	CHECK_WANTS(s, "aa", DEBUGINFO_NO_TEXT, "no: equally good symbols are stored");
	CHECK_WANTS(s, "aa", DEBUGINFO_STRIPPED, "yes: may add to the stored symbols");
	CHECK_WANTS(s, "aa", DEBUGINFO_FULL, "yes: may add to the stored symbols");
	CHECK_OK(upload(s, "aa", DEBUGINFO_STRIPPED, "elf", &err), &err);
	CHECK_OK(extract_found(s, "both", &known, &err), &err);
	check_index(s, "aa", "both");
	CHECK_WANTS(s, "aa", DEBUGINFO_STRIPPED, "no: equally good symbols are stored");
	CHECK_WANTS(s, "aa", DEBUGINFO_FULL, "no: equally good symbols are stored");
	debuginfo_store_close(s);

	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &plain, &s, &err), &err);
	CHECK_WANTS(s, "aa", DEBUGINFO_FULL, "no: equally good symbols are stored");
	debuginfo_store_close(s);
	dir_gone(dir);
}

static enum err_code upload_forced(
	struct debuginfo_store *s, const struct debuginfo_id *id, struct err *err)
{
	const struct debuginfo_offer offer = {
		.kind = DEBUGINFO_FULL, .origin = DEBUGINFO_UPLOAD, .force = true
	};
	struct debuginfo_upload *u;
	enum err_code rc = debuginfo_upload_begin(s, id, &offer, &u, err);

	if (rc)
		return rc;
	CHECK_OK(debuginfo_upload_append(u, STR("elf"), err), err);
	return debuginfo_upload_finish(u, err);
}

/* Force takes what is as good, and what failed; not what is on its way, nor what is worse. */
TEST(force)
{
	const char *dir = dir_new();
	struct debuginfo_id aa = gnu("aa"), bb = gnu("bb");
	struct debuginfo_store *s;
	struct debuginfo_job *j;
	struct err err;

	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &plain, &s, &err), &err);
	CHECK_OK(upload(s, "aa", DEBUGINFO_FULL, "elf", &err), &err);
	CHECK_ERR(upload_forced(s, &aa, &err), &err, ERR_EXISTS, "extraction is in progress");
	CHECK_OK(extract(s, "first", DEBUGINFO_DWARF, &err), &err);
	CHECK_ERR(upload(s, "aa", DEBUGINFO_FULL, "elf", &err), &err, ERR_EXISTS,
		"equally good symbols are stored");
	CHECK_OK(upload_forced(s, &aa, &err), &err);
	CHECK_OK(extract(s, "second", DEBUGINFO_DWARF, &err), &err);
	check_index(s, "aa", "second");
	CHECK_OK(upload_forced(s, &aa, &err), &err);
	CHECK_ERR(extract(s, "worse", DEBUGINFO_LINES, &err), &err, ERR_EXISTS,
		"publish: no better than the stored symbols");
	check_index(s, "aa", "second");

	CHECK_OK(upload(s, "bb", DEBUGINFO_FULL, "html", &err), &err);
	REQUIRE_OK(debuginfo_job_next(s, &j, &err), &err);
	err_set(&err, ERR_INVALID, "not an ELF file");
	debuginfo_job_fail(j, &err);
	CHECK_ERR(upload(s, "bb", DEBUGINFO_FULL, "elf", &err), &err, ERR_EXISTS,
		"the extraction failed a short time ago");
	CHECK_OK(upload_forced(s, &bb, &err), &err);
	CHECK_OK(extract(s, "good", DEBUGINFO_SYMBOLS, &err), &err);
	check_index(s, "bb", "good");
	debuginfo_store_close(s);
	dir_gone(dir);
}

TEST(limits)
{
	struct debuginfo_options o = plain;
	const char *dir = dir_new();
	struct debuginfo_id id = gnu("aa"), other = gnu("bb");
	struct debuginfo_upload *u, *v;
	struct debuginfo_store *s;
	struct err err;

	o.file_bytes_max = 10;
	o.uploads_bytes_max = 15;
	o.uploads_max = 2;
	o.bytes_max = 210;
	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &o, &s, &err), &err);
	CHECK_ERR(upload(s, "aa", DEBUGINFO_FULL, "12345678901", &err), &err, ERR_LIMIT,
		"upload is more than 10 bytes");
	CHECK_ERR(upload(s, "aa", DEBUGINFO_FULL, "", &err), &err, ERR_INVALID, "upload is empty");
	REQUIRE_OK(begin(s, &id, &u, &err), &err);
	REQUIRE_OK(begin(s, &other, &v, &err), &err);
	CHECK_ERR(upload(s, "cc", DEBUGINFO_FULL, "1", &err), &err, ERR_UNAVAILABLE,
		"2 uploads are in progress, limit 2");
	CHECK_ERR(upload(s, "aa", DEBUGINFO_FULL, "1", &err), &err, ERR_UNAVAILABLE,
		"2 uploads are in progress, limit 2");
	CHECK_OK(debuginfo_upload_append(u, STR("1234567890"), &err), &err);
	CHECK_ERR(debuginfo_upload_append(v, STR("123456"), &err), &err, ERR_LIMIT,
		"all uploads together are more than 15 bytes");
	CHECK_ERR(debuginfo_upload_finish(v, &err), &err, ERR_IO,
		"upload lacks bytes that could not be written");
	CHECK_OK(debuginfo_upload_finish(u, &err), &err);
	CHECK_ERR(upload(s, "bb", DEBUGINFO_FULL, "123456", &err), &err, ERR_LIMIT,
		"all uploads together are more than 15 bytes");
	CHECK_OK(extract(s, "x", DEBUGINFO_DWARF, &err), &err);
	CHECK_OK(upload(s, "bb", DEBUGINFO_FULL, "123456", &err), &err);
	CHECK_ERR(extract(s,
				  "12345678901234567890123456789012345678901234567890"
				  "12345678901234567890123456789012345678901234567890"
				  "12345678901234567890123456789012345678901234567890",
				  DEBUGINFO_DWARF, &err),
		&err, ERR_LIMIT, "publish: index is 150 bytes, limit of all 210");
	CHECK_WANTS(s, "bb", DEBUGINFO_FULL, "no: the extraction failed a short time ago");
	CHECK_INT(files_in(dir, ".queued") + files_in(dir, ".tmp"), 0);
	debuginfo_store_close(s);

	o.idle_ns = 1; /* all uploads are idle */
	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &o, &s, &err), &err);
	CHECK_WANTS(s, "bb", DEBUGINFO_FULL, "no: the extraction failed a short time ago");
	other = gnu("cc");
	REQUIRE_OK(begin(s, &other, &v, &err), &err);
	usleep(10);
	debuginfo_store_tick(s);
	CHECK_INT(files_in(dir, ".tmp"), 0);
	CHECK_ERR(debuginfo_upload_append(v, STR("1"), &err), &err, ERR_TIMEOUT,
		"upload had no progress for too long");
	CHECK_ERR(
		debuginfo_upload_finish(v, &err), &err, ERR_TIMEOUT, "upload had no progress for too long");
	debuginfo_store_close(s);
	dir_gone(dir);
}

/* 100 bytes with their end: the path /bin/KEY and 64 bytes. */
static void add_index(struct debuginfo_store *s, const char *text)
{
	char index[30] = { 0 };
	struct err err;

	memset(index, text[0], 29);
	CHECK_OK(upload(s, text, DEBUGINFO_FULL, "elf", &err), &err);
	CHECK_OK(extract(s, index, DEBUGINFO_DWARF, &err), &err);
	now_s++;
}

TEST(the_least_recently_used_goes)
{
	struct debuginfo_options o = plain;
	const char *dir = dir_new();
	struct debuginfo_id a = gnu("aa"), d = gnu("dd");
	struct debuginfo_index *x;
	struct debuginfo_store *s;
	struct err err;

	o.bytes_max = 300;
	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &o, &s, &err), &err);
	add_index(s, "aa");
	add_index(s, "bb");
	add_index(s, "cc");
	CHECK_INT(debuginfo_bytes(s), 300);
	REQUIRE_OK(debuginfo_open(s, &a, &x, &err), &err);
	debuginfo_index_close(x);
	debuginfo_set_missing(s, &d, now_s + 60);
	debuginfo_store_close(s); /* the order survives */
	now_s++;
	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &o, &s, &err), &err);
	CHECK(debuginfo_is_missing(s, &d));
	REQUIRE_OK(debuginfo_open(s, &a, &x, &err), &err);
	now_s++;
	add_index(s, "dd");
	CHECK(!debuginfo_is_missing(s, &d));
	check_index(s, "bb", NULL);
	check_index(s, "cc", "ccccccccccccccccccccccccccccc");
	now_s++;
	check_index(s, "dd", "ddddddddddddddddddddddddddddd");
	now_s++;
	check_index(s, "cc", "ccccccccccccccccccccccccccccc");
	add_index(s, "ee");
	check_index(s, "aa", NULL); /* but its reader */
	CHECK_STR(debuginfo_index_bytes(x), "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	debuginfo_drop(s, x); /* it is gone already */
	debuginfo_index_close(x);
	REQUIRE_OK(debuginfo_open(s, &d, &x, &err), &err);
	debuginfo_drop(s, x);
	check_index(s, "dd", NULL);
	CHECK_INT(debuginfo_bytes(s), 200);
	CHECK_WANTS(s, "dd", DEBUGINFO_FULL, "yes: nothing is there");
	debuginfo_index_close(x);
	debuginfo_store_close(s);
	dir_gone(dir);
}

TEST(restart)
{
	const char *dir = dir_new();
	struct debuginfo_id id = gnu("ee"), two = gnu("aa");
	struct debuginfo_info *v;
	struct debuginfo_upload *u;
	struct debuginfo_store *s;
	char from[128], to[128];
	struct arena a;
	struct err err;
	size_t n;

	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &plain, &s, &err), &err);
	add_index(s, "aa");
	add_index(s, "bb");
	add_index(s, "cc");
	CHECK_OK(upload(s, "dd", DEBUGINFO_NO_TEXT, "waits", &err), &err);
	REQUIRE_OK(begin(s, &id, &u, &err), &err);
	CHECK_OK(debuginfo_upload_append(u, STR("half"), &err), &err);
	debuginfo_upload_cancel(u);
	debuginfo_store_close(s);

	snprintf(to, sizeof(to), "%s/77.tmp", dir);
	CHECK_OK(fs_write_file(&fs_posix, to, STR("half an upload"), &err), &err);
	spoil(dir, "gnu-bb.idx", -1);
	snprintf(from, sizeof(from), "%s/gnu-cc.idx", dir);
	snprintf(to, sizeof(to), "%s/gnu-ff.idx", dir);
	CHECK_INT(rename(from, to), 0); /* another's symbols are no symbols */
	spoil(dir, "stamps", -1); /* costs nothing but times */
	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &plain, &s, &err), &err);
	CHECK_INT(files_in(dir, ".idx"), 1);
	CHECK_INT(files_in(dir, ".tmp"), 0);
	check_index(s, "aa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	arena_init(&a, 0);
	REQUIRE_OK(debuginfo_list(s, &a, &v, &n, &err), &err);
	REQUIRE(n == 2);
	CHECK(debuginfo_id_eq(&v[0].id, &two) && v[0].present && !v[0].queued);
	CHECK_INT(v[0].quality, DEBUGINFO_DWARF);
	CHECK_INT(v[0].origin, DEBUGINFO_UPLOAD);
	CHECK_INT(v[0].kind, DEBUGINFO_FULL);
	CHECK_INT(v[0].index_bytes, 29);
	CHECK_STR(v[0].path, "/bin/aa");
	CHECK_INT(v[0].source_bytes, 3);
	CHECK_INT(v[0].added_s, T0_S);
	CHECK_INT(v[0].used_s, now_s);
	CHECK(!v[1].present && v[1].queued);
	CHECK_STR(v[1].path, "/bin/dd");
	CHECK_INT(v[1].waiting_bytes, 5);
	arena_release(&a);
	CHECK_OK(extract(s, "dd's", DEBUGINFO_DWARF, &err), &err);
	check_index(s, "dd", "dd's");
	debuginfo_store_close(s);
	dir_gone(dir);
}

/* Each call of the write path fails in turn: what was acknowledged is there, nothing half is. */
TEST(failing_disk)
{
	struct failing_fs f = { .fs = { &failing_fs_ops } };
	enum err_code queued = ERR_IO, published = ERR_IO;
	struct debuginfo_store *s;
	struct err err;
	int calls;

	for (calls = 0; queued || published; calls++) {
		const char *dir = dir_new();

		REQUIRE(calls < 50);
		f.calls_left = 1000;
		REQUIRE_OK(debuginfo_store_open(&f.fs, dir, &plain, &s, &err), &err);
		f.calls_left = calls;
		published = ERR_IO;
		queued = upload(s, "aa", DEBUGINFO_FULL, "elf", &err);
		if (queued)
			CHECK(str_has_suffix(str_of(err.msg), STR("no disk")));
		else if ((published = extract(s, "index", DEBUGINFO_DWARF, &err)))
			CHECK_INT(published, ERR_IO);
		f.calls_left = 1000;
		now_s += 7 * 60;
		if (queued) { /* it is the same to the sender as if it never was */
			CHECK_WANTS(s, "aa", DEBUGINFO_FULL, "yes: nothing is there");
			CHECK_OK(upload(s, "aa", DEBUGINFO_FULL, "elf", &err), &err);
		}
		if (published) /* it comes again by itself */
			CHECK_OK(extract(s, "index", DEBUGINFO_DWARF, &err), &err);
		check_index(s, "aa", "index");
		debuginfo_store_close(s);
		REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &plain, &s, &err), &err);
		check_index(s, "aa", "index");
		CHECK_INT(files_in(dir, ".tmp"), 0);
		CHECK_INT(debuginfo_find_name(s, STR("aa"), NULL, 0), 1);
		debuginfo_store_close(s);
		dir_gone(dir);
	}
}

/* Uploads and extracts for ever; says through the pipe what was acknowledged: key, then state. */
static void work_until_killed(const char *dir, unsigned round, int out)
{
	struct debuginfo_store *s;
	char text[9], index[32];

	if (debuginfo_store_open(&fs_posix, dir, &plain, &s, NULL))
		_exit(1);
	while (!extract(s, "late", DEBUGINFO_DWARF, NULL))
		;
	for (uint32_t i = 0;; i++) {
		uint32_t key = round << 16 | i;

		snprintf(text, sizeof(text), "%08x", key);
		snprintf(index, sizeof(index), "index of %s", text);
		if (upload(s, text, DEBUGINFO_FULL, "elf", NULL) || write(out, &key, 4) != 4)
			_exit(1);
		if (i % 3 == 0 && extract(s, index, DEBUGINFO_DWARF, NULL))
			_exit(1);
	}
}

/* Every acknowledged key has an index or is queued. */
static void check_acknowledged(const char *dir, const uint32_t *keys, size_t n)
{
	struct debuginfo_store *s;
	struct debuginfo_info *v;
	struct arena a;
	struct err err;
	size_t infos, k = 0;
	char text[16];

	REQUIRE_OK(debuginfo_store_open(&fs_posix, dir, &plain, &s, &err), &err);
	CHECK_INT(files_in(dir, ".tmp"), 0);
	arena_init(&a, 0);
	REQUIRE_OK(debuginfo_list(s, &a, &v, &infos, &err), &err);
	for (size_t i = 0; i < n; i++) { /* both ascend */
		snprintf(text, sizeof(text), "/bin/%08x", keys[i]);
		while (k < infos && !str_is(debuginfo_id_text(&v[k].id), text + 5))
			k++;
		if (k == infos || !(v[k].present || v[k].queued))
			CHECK_FAIL("%s is lost", text);
		else
			CHECK_STR(v[k].path, text);
	}
	arena_release(&a);
	debuginfo_store_close(s);
}

#define ROUNDS 12

TEST(kill_9)
{
	const char *dir = dir_new();
	static uint32_t keys[1 << 16];
	size_t n = 0;

	for (unsigned round = 1; round <= ROUNDS; round++) {
		int pipe_fds[2], status;
		size_t stop = n + 1 + round * 7 % 11;
		pid_t pid;

		REQUIRE(pipe(pipe_fds) == 0);
		REQUIRE((pid = fork()) >= 0);
		if (!pid) {
			close(pipe_fds[0]);
			work_until_killed(dir, round, pipe_fds[1]);
		}
		close(pipe_fds[1]);
		while (n < stop && read(pipe_fds[0], &keys[n], 4) == 4)
			n++;
		usleep(round * 137 % 900);
		kill(pid, SIGKILL);
		REQUIRE(waitpid(pid, &status, 0) == pid);
		CHECK(WIFSIGNALED(status));
		while (n < sizeof(keys) / sizeof(keys[0]) && read(pipe_fds[0], &keys[n], 4) == 4)
			n++;
		close(pipe_fds[0]);
		check_acknowledged(dir, keys, n);
	}
	dir_gone(dir);
}
