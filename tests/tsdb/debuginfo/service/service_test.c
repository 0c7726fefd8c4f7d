/*
 * Uploads become indexes by a real child process; its failures, another's build id, a failing disk,
 * an end in the middle; what is wanted.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/thread.h"
#include "tests/check.h"
#include "tests/wait.h"
#include "tsdb/debuginfo/index/symindex.h"
#include "tsdb/debuginfo/service/debuginfo.h"
#include "tsdb/debuginfo/store/extractor.h"

static _Atomic int64_t now_s;

static int64_t fixed_now(void)
{
	return now_s * NS_PER_S;
}

static enum err_code add_older(struct symindex_builder *b, struct str older, struct err *err)
{
	struct symindex *x;
	enum err_code rc = symindex_open(older, &x, err);

	if (rc)
		return rc;
	rc = symindex_add_index(b, x, err);
	symindex_close(x);
	return rc;
}

/*
 * Runs in the child: "BUILDID QUALITY NAME ADDRESS" becomes an index, over an older one; other
 * words do harm.
 */
static enum err_code fn(struct str input, struct str older, struct buf *out, struct err *err)
{
	struct symindex_builder *b;
	unsigned quality = 0, address = 0x1000;
	char id[65] = "", name[65] = "", text[200];
	uint32_t function, frame;
	enum err_code rc;

	snprintf(text, sizeof(text), STR_FMT, STR_ARG(input));
	if (str_is(input, "crash"))
		abort();
	if (str_is(input, "hang"))
		for (;;)
			__asm__ volatile("");
	if (str_is(input, "garbage")) {
		buf_add_cstr(out, "this is no index");
		return ERR_OK;
	}
	if (str_is(input, "empty"))
		return ERR_OK;
	if (sscanf(text, "%64s %u %64s %x", id, &quality, name, &address) < 3)
		return err_set(err, ERR_INVALID, "not an ELF file: HTML");
	if ((rc = symindex_builder_open(&symindex_limits_default, &b, err)))
		return rc;
	rc = symindex_function(b, str_of(name), SYMINDEX_NONE, 0, &function, err);
	if (!rc)
		rc = symindex_frame(b, SYMINDEX_NONE, function, SYMINDEX_NONE, 7, &frame, err);
	if (!rc)
		rc = symindex_add(b, address, address + 0x1000, frame, (enum symindex_quality)quality, err);
	if (!rc && older.len)
		rc = add_older(b, older, err);
	if (!rc)
		rc = symindex_finish(b, str_of(strcmp(id, "-") ? id : ""), out, err);
	symindex_builder_close(b);
	return rc;
}

struct world {
	char dir[64];
	struct fs *fs;
	struct extractor *x;
	struct debuginfo *d;
	struct debuginfo_store *store;
};

/* Without an extractor if slots is 0. */
static void world_open(struct world *w, unsigned slots)
{
	const struct extractor_options xo = { .fn = fn, .slots = slots, .timeout_ns = NS_PER_HOUR };
	struct debuginfo_service_options o = { .fs = w->fs ? w->fs : &fs_posix,
		.dir = w->dir,
		.store = { .now_ns = fixed_now, .idle_ns = NS_PER_HOUR } };
	struct err err;

	w->x = NULL;
	if (!w->dir[0]) {
		now_s = 1700000000;
		snprintf(w->dir, sizeof(w->dir), "/tmp/epi_dbgsvc_XXXXXX");
		if (!mkdtemp(w->dir))
			abort();
	}
	if (slots)
		CHECK_OK(extractor_open(&xo, &w->x, &err), &err);
	o.extractor = w->x;
	if (debuginfo_service_open(&o, &w->d, &err)) {
		CHECK_FAIL("open: %s", err.msg);
		abort();
	}
	w->store = debuginfo_store(w->d);
}

static void world_close(struct world *w)
{
	debuginfo_service_close(w->d);
	extractor_close(w->x);
}

static void world_end(struct world *w)
{
	world_close(w);
	CHECK(!fs_remove_tree(&fs_posix, w->dir, NULL));
}

static struct debuginfo_id gnu(const char *text)
{
	struct debuginfo_id id;

	if (debuginfo_id_init(&id, DEBUGINFO_GNU, str_of(text), NULL))
		abort();
	return id;
}

static void upload_id(struct world *w, struct debuginfo_id id, const char *bytes)
{
	struct debuginfo_upload *u;
	struct err err;

	REQUIRE_OK(debuginfo_upload_begin(w->store, &id,
		&(struct debuginfo_offer){
			.kind = DEBUGINFO_FULL, .origin = DEBUGINFO_UPLOAD, .path = STR("/bin/x") }, &u, &err),
		&err);
	CHECK_OK(debuginfo_upload_append(u, str_of(bytes), &err), &err);
	CHECK_OK(debuginfo_upload_finish(u, &err), &err);
	debuginfo_wake(w->d);
}

static void upload(struct world *w, const char *text, const char *bytes)
{
	upload_id(w, gnu(text), bytes);
}

enum state { NONE, QUEUED, EXTRACTING, FAILED, PRESENT };

/* *why: of a failure; its memory is static. */
static enum state state_of(struct world *w, const char *text, const char **why)
{
	struct debuginfo_id id = gnu(text);
	static char reason[300];
	struct debuginfo_info *v;
	enum state s = NONE;
	struct arena a;
	size_t n;

	arena_init(&a, 0);
	if (debuginfo_list(w->store, &a, &v, &n, NULL))
		abort();
	for (size_t i = 0; i < n; i++) {
		if (!debuginfo_id_eq(&v[i].id, &id))
			continue;
		s = v[i].extracting ? EXTRACTING :
			v[i].queued     ? QUEUED :
			v[i].present    ? PRESENT :
			v[i].why.len    ? FAILED :
							  NONE;
		snprintf(reason, sizeof(reason), STR_FMT, STR_ARG(v[i].why));
	}
	arena_release(&a);
	*why = reason;
	return s;
}

static void await(struct world *w, const char *text, enum state want, const char *why)
{
	const char *got_why;

	CHECK(WAIT_FOR(state_of(w, text, &got_why) == want));
	if (why)
		CHECK_STR(str_of(got_why), why);
}

static void check_name_at(struct world *w, const char *text, uint64_t address, const char *name)
{
	struct debuginfo_id id = gnu(text);
	struct symindex_location v[2];
	struct debuginfo_index *x;
	struct symindex *s;
	struct err err;

	REQUIRE_OK(debuginfo_open(w->store, &id, &x, &err), &err);
	REQUIRE_OK(symindex_open(debuginfo_index_bytes(x), &s, &err), &err);
	v[0].name = STR("");
	CHECK_INT(symindex_find(s, address, v, 2), name[0] != '\0');
	CHECK_STR(v[0].name, name);
	CHECK_INT(debuginfo_index_quality(x), symindex_best(s));
	symindex_close(s);
	debuginfo_index_close(x);
}

static void check_name(struct world *w, const char *text, const char *name)
{
	check_name_at(w, text, 0x1234, name);
}

TEST(uploads_become_indexes)
{
	struct world w = { 0 };
	uint64_t before;

	world_open(&w, 1);
	CHECK(debuginfo_extracts(w.d));
	before = debuginfo_generation(w.store);
	upload(&w, "aa01", "aa01 3 main");
	upload(&w, "aa02", "- 1 other"); /* the file has no build id */
	await(&w, "aa01", PRESENT, NULL);
	await(&w, "aa02", PRESENT, NULL);
	check_name(&w, "aa01", "main");
	check_name(&w, "aa02", "other");
	CHECK_INT(debuginfo_generation(w.store) - before, 2);
	CHECK_INT(debuginfo_find_name(w.store, STR("x"), NULL, 0), 2);
	CHECK_INT(debuginfo_totals(w.store).uploads_bytes, 0);
	world_end(&w);
}

/* A Go build id is compared as far as the index has it. */
TEST(ids_of_other_kinds)
{
	static const struct {
		enum debuginfo_id_kind kind;
		const char *id, *bytes, *why;
	} rows[] = {
		{ DEBUGINFO_GO, "abc/def/ghi", "abc/def 3 main", "" },
		{ DEBUGINFO_GO, "abc/dex/ghi", "abc/def 3 main",
			"the file has build id abc/def, not abc/dex/ghi" },
		{ DEBUGINFO_GO, "abc/dey/ghi", "3f5e 3 main", "" },
		{ DEBUGINFO_GNU, "3f5f", "abc/def 3 main", "" },
		{ DEBUGINFO_FILE, "00112233445566778899aabbccddeeff", "3f5e 3 main", "" },
	};
	struct debuginfo_id id;
	struct world w = { 0 };
	struct debuginfo_info *v;
	struct arena a;
	struct err err;
	size_t n;

	world_open(&w, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		REQUIRE_OK(debuginfo_id_init(&id, rows[i].kind, str_of(rows[i].id), &err), &err);
		upload_id(&w, id, rows[i].bytes);
	}
	CHECK(WAIT_FOR(!debuginfo_totals(w.store).uploads_bytes));
	arena_init(&a, 0);
	REQUIRE_OK(debuginfo_list(w.store, &a, &v, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
			if (v[i].id.kind == rows[k].kind && str_is(debuginfo_id_text(&v[i].id), rows[k].id))
				CHECK_STR(v[i].why, rows[k].why);
	CHECK_INT(debuginfo_totals(w.store).indexes, 4);
	arena_release(&a);
	world_end(&w);
}

/* Each is refused with its reason, and the next upload is extracted. */
TEST(failures_do_not_stop_the_thread)
{
	static const struct {
		const char *bytes, *why;
	} rows[] = {
		{ "<html>", "not an ELF file: HTML" },
		{ "crash", "extraction crashed with signal 6 (Aborted)" },
		{ "garbage", "no symbol index: 16 bytes" },
		{ "empty", "index is empty" },
		{ "bb77 3 main", "the file has build id bb77, not bb06" },
	};
	struct world w = { 0 };
	char text[8];

	world_open(&w, 1);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text), "bb%02x", i + 2);
		upload(&w, text, rows[i].bytes);
		await(&w, text, FAILED, rows[i].why);
	}
	upload(&w, "bb01", "bb01 3 main");
	await(&w, "bb01", PRESENT, NULL);
	CHECK_INT(debuginfo_totals(w.store).indexes, 1);
	world_end(&w);
}

/* A disk that may not sync. */
struct gated_fs {
	struct fs fs; /* first */
	atomic_bool broken;
	atomic_int refused;
};

static enum err_code gated_sync(struct fs *fs, int fd, struct err *err)
{
	struct gated_fs *g = (struct gated_fs *)fs;

	if (!g->broken)
		return fs_posix.ops->sync(fs, fd, err);
	g->refused++;
	return err_set(err, ERR_IO, "no disk");
}

/* What the disk refused is tried again later, by the same server and by the next. */
TEST(a_disk_that_fails)
{
	struct fs_ops ops = *fs_posix.ops;
	struct gated_fs g = { .fs = { &ops } };
	struct world w = { .fs = &g.fs };

	ops.sync = gated_sync;
	world_open(&w, 0);
	upload(&w, "cc", "cc 3 main");
	world_close(&w);
	for (int same = 0; same < 2; same++) {
		g.refused = 0;
		g.broken = true;
		world_open(&w, 1);
		CHECK(WAIT_FOR(g.refused));
		await(&w, "cc", QUEUED, "");
		if (!same)
			world_close(&w);
	}
	g.broken = false;
	now_s += 7 * 60;
	debuginfo_wake(w.d);
	await(&w, "cc", PRESENT, NULL);
	check_name(&w, "cc", "main");
	world_end(&w);
}

TEST(an_end_in_the_middle)
{
	struct world w = { 0 };
	const char *why;

	world_open(&w, 1);
	upload(&w, "dd", "hang");
	await(&w, "dd", EXTRACTING, NULL);
	upload(&w, "ee", "ee 3 main");
	world_close(&w);
	world_open(&w, 0); /* nothing extracts */
	CHECK(!debuginfo_extracts(w.d));
	CHECK_INT(state_of(&w, "dd", &why), QUEUED);
	CHECK_INT(state_of(&w, "ee", &why), QUEUED);
	world_close(&w);
	world_open(&w, 1);
	await(&w, "dd", EXTRACTING, NULL);
	CHECK_INT(state_of(&w, "ee", &why), QUEUED);
	world_end(&w);
}

static enum err_code extract_text(
	struct world *w, const char *id_text, const char *bytes, struct err *err)
{
	struct debuginfo_id id = gnu(id_text);
	char path[100];
	enum err_code rc;
	int fd;

	snprintf(path, sizeof(path), "%s.file", w->dir);
	CHECK_OK(fs_write_file(&fs_posix, path, str_of(bytes), err), err);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	rc = debuginfo_extract_file(w->d, &id, DEBUGINFO_DEBUGINFOD, fd, err);
	CHECK(fcntl(fd, F_GETFD) >= 0); /* still the caller's */
	close(fd);
	unlink(path);
	return rc;
}

TEST(files_that_are_here)
{
	struct debuginfo_id a = gnu("aa"), b = gnu("bb");
	struct debuginfo_want want;
	struct world w = { 0 };
	const char *why;
	struct err err;

	world_open(&w, 0);
	CHECK_ERR(extract_text(&w, "aa", "aa 3 main", &err), &err, ERR_UNAVAILABLE,
		"nothing extracts symbols here");
	world_close(&w);
	world_open(&w, 1);
	debuginfo_want(w.d, &a, STR("/usr/bin/name"));
	REQUIRE(debuginfo_next_wanted(w.d, 0, &want));
	CHECK_OK(extract_text(&w, "aa", "aa 1 early", &err), &err);
	CHECK_INT(debuginfo_find_name(w.store, STR("name"), NULL, 0), 1);
	CHECK(!debuginfo_is_missing(w.store, &a));
	CHECK_ERR(extract_text(&w, "aa", "aa 1 early", &err), &err, ERR_EXISTS,
		"publish: no better than the stored symbols");
	check_name(&w, "aa", "early");
	CHECK_ERR(extract_text(&w, "bb", "<html>", &err), &err, ERR_INVALID, "not an ELF file: HTML");
	CHECK_INT(state_of(&w, "bb", &why), FAILED);
	CHECK(debuginfo_is_missing(w.store, &b));
	CHECK_OK(extract_text(&w, "bb", "bb 3 good", &err), &err); /* of another source */
	CHECK(!debuginfo_is_missing(w.store, &b));
	check_name(&w, "bb", "good");
	world_end(&w);
}

/* Better names replace worse ones, and no address loses its name. */
TEST(files_of_one_binary_add_up)
{
	struct world w = { 0 };
	struct err err;

	world_open(&w, 1);
	CHECK_OK(extract_text(&w, "aa", "aa 1 first 1000", &err), &err);
	CHECK_OK(extract_text(&w, "aa", "aa 1 second 3000", &err), &err);
	check_name_at(&w, "aa", 0x1234, "first");
	check_name_at(&w, "aa", 0x3234, "second");
	CHECK_OK(extract_text(&w, "aa", "aa 3 better 2800", &err), &err);
	check_name_at(&w, "aa", 0x1234, "first");
	check_name_at(&w, "aa", 0x3234, "better");
	check_name_at(&w, "aa", 0x3abc, "second");
	world_close(&w);
	world_open(&w, 1); /* the same after a start */
	check_name_at(&w, "aa", 0x1234, "first");
	world_end(&w);
}

static void flip_byte(const char *dir, const char *name, off_t at)
{
	char path[128], c;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR);
	REQUIRE(fd >= 0 && pread(fd, &c, 1, at) == 1);
	c ^= 4;
	CHECK_INT(pwrite(fd, &c, 1, at), 1);
	close(fd);
}

/* What is damaged does not go on under new checksums, nor does it stand in a worse file's way. */
TEST(a_damaged_index_is_not_kept)
{
	struct debuginfo_id id = gnu("aa");
	struct debuginfo_upload *u;
	struct world w = { 0 };
	struct err err;

	world_open(&w, 1);
	CHECK_OK(extract_text(&w, "aa", "aa 3 damaged 3000", &err), &err);
	flip_byte(w.dir, "gnu-aa.idx", 450); /* of its first page */
	REQUIRE_OK(debuginfo_upload_begin(w.store, &id,
				   &(struct debuginfo_offer){
					   .kind = DEBUGINFO_FULL, .origin = DEBUGINFO_UPLOAD, .force = true },
				   &u, &err),
		&err);
	CHECK_OK(debuginfo_upload_append(u, STR("aa 1 sound 1000"), &err), &err);
	CHECK_OK(debuginfo_upload_finish(u, &err), &err);
	debuginfo_wake(w.d);
	CHECK(WAIT_FOR(!debuginfo_totals(w.store).uploads_bytes));
	check_name_at(&w, "aa", 0x1234, "sound");
	check_name_at(&w, "aa", 0x3234, "");
	world_end(&w);
}

TEST(wanted)
{
	struct debuginfo_id a = gnu("aa"), b = gnu("bb"), c = gnu("cc"), d = gnu("dd");
	struct debuginfo_want want;
	struct world w = { 0 };

	world_open(&w, 1);
	CHECK(!debuginfo_next_wanted(w.d, 0, &want));
	upload(&w, "aa", "aa 3 main");
	await(&w, "aa", PRESENT, NULL);
	upload(&w, "bb", "hang");
	await(&w, "bb", EXTRACTING, NULL);
	debuginfo_set_missing(w.store, &c, now_s + 60);
	debuginfo_want(w.d, &a, STR("/a"));
	debuginfo_want(w.d, &b, STR("/b"));
	debuginfo_want(w.d, &c, STR("/c"));
	debuginfo_want(w.d, &d, STR("/d\n"));
	debuginfo_want(w.d, &d, STR("/other"));
	REQUIRE(debuginfo_next_wanted(w.d, NS_PER_HOUR, &want));
	CHECK(debuginfo_id_eq(&want.id, &d));
	CHECK_STR(str_of(want.path), "/d?");
	CHECK(!debuginfo_next_wanted(w.d, NS_PER_MS, &want)); /* it was given */
	now_s += 60;
	debuginfo_want(w.d, &c, STR(""));
	debuginfo_set_missing(w.store, &c, now_s + 60); /* somebody was quicker */
	CHECK(!debuginfo_next_wanted(w.d, 0, &want));
	world_end(&w);
}

struct waiter {
	struct world *w;
	atomic_int got;
};

static void take_until_stopped(void *ctx)
{
	struct waiter *x = ctx;
	struct debuginfo_want want;

	while (debuginfo_next_wanted(x->w->d, NS_PER_HOUR, &want))
		x->got++;
}

TEST(a_waiter_is_woken)
{
	struct debuginfo_id a = gnu("aa");
	struct world w = { 0 };
	struct waiter x = { .w = &w };
	struct thread t;
	struct err err;

	world_open(&w, 1);
	REQUIRE_OK(thread_start(&t, "waiter", take_until_stopped, &x, &err), &err);
	debuginfo_want(w.d, &a, STR("/a"));
	CHECK(WAIT_FOR(x.got));
	debuginfo_stop(w.d);
	thread_join(&t);
	CHECK_INT(x.got, 1);
	world_end(&w);
}
