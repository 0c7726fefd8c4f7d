/*
 * Directories of other versions. Whatever file says that a newer program wrote it: the start is
 * refused, names the file and both versions, and leaves every byte and time as it was. A window
 * that an older program set aside is served again, or answers name it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/map.h"
#include "tests/check.h"
#include "tests/failing_fs.h"
#include "tests/tsdb/kept.h"
#include "tests/tsdb/town.h"
#include "tsdb/catalog/loss_report.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/segments/segments.h"

#define AT(s) ((int64_t)(s)*SEC)

/* ---- directories ---- */

/* Each entry with its size, time of change and hash. */
static void tree_print(const char *dir, struct buf *out)
{
	struct arena a;
	struct str *names;
	size_t n = 0;

	arena_init(&a, 0);
	CHECK(!fs_list(dir, &a, &names, &n, NULL));
	for (size_t i = 0; i < n; i++) {
		char *path = path_join(&a, str_of(dir), names[i]);
		struct buf bytes = { 0 };
		struct stat st;

		CHECK(stat(path, &st) == 0);
		if (!S_ISDIR(st.st_mode))
			CHECK(!fs_read_file(path, 1u << 30, &bytes, NULL));
		buf_printf(out, "%s %" PRId64 ".%09ld %zu %016" PRIx64 "\n", path,
			(int64_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, bytes.len,
			hash_bytes(bytes.ptr, bytes.len, 0));
		buf_release(&bytes);
		if (S_ISDIR(st.st_mode))
			tree_print(path, out);
	}
	arena_release(&a);
}

static char *below(struct town *w, const char *name)
{
	return arena_printf(&w->f.arena, "%s/%s", w->f.dir, name);
}

/* The first entry of the directory with this ending, below the data directory. */
static const char *find(struct town *w, const char *dir, const char *ending)
{
	struct str *names;
	size_t n = 0;

	CHECK(!fs_list(below(w, dir), &w->f.arena, &names, &n, NULL));
	for (size_t i = 0; i < n; i++)
		if (str_has_suffix(names[i], str_of(ending)))
			return arena_printf(&w->f.arena, "%s/" STR_FMT, dir, STR_ARG(names[i]));
	CHECK_FAIL("no %s in %s", ending, dir);
	return "";
}

static void stop(struct town *w)
{
	db_close(w->f.db);
	w->f.db = NULL;
}

/* ---- a newer version ---- */

enum newer_sum { LAST, LAST_START, LAST_OWNER, LENGTH, NAMES_HEAD, JSON, SEGMENT, STORE };

static void put_hash(struct buf *b, size_t hashed, uint64_t seed)
{
	uint64_t hash = hash_bytes(b->ptr, hashed, seed);

	for (size_t i = 0; i < 8; i++)
		b->ptr[hashed + i] = (char)(hash >> (56 - 8 * i));
}

static void newer_json(struct buf *b)
{
	char *at = memmem(b->ptr, b->len, "\"version\":", 10), hex[17];

	CHECK(at != NULL);
	at[10] = '9';
	snprintf(hex, sizeof(hex), "%016" PRIx64, hash_bytes(b->ptr, b->len - 31, 0));
	memcpy(b->ptr + b->len - 19, hex, 16);
}

/* The file says version 9; sealed: and its checksum is right. owner: a window's start or a ULID. */
static void newer_file(
	struct town *w, const char *name, enum newer_sum sum, const char *owner, bool sealed)
{
	char *path = below(w, name);
	struct buf b = { 0 };
	uint64_t start_ns = (uint64_t)AT(T0 + 10), length;

	CHECK(!fs_read_file(path, 1u << 30, &b, NULL) && b.len > 9);
	b.ptr[sum == SEGMENT ? 4 : 0] = sum == JSON ? '{' : 9;
	if (sum == JSON)
		newer_json(&b);
	else if (sealed && sum == LENGTH) {
		length = 5 + ((uint64_t)(unsigned char)b.ptr[3] << 8 | (unsigned char)b.ptr[4]);
		put_hash(&b, length, 0);
	} else if (sealed)
		put_hash(&b,
			sum == NAMES_HEAD  ? 9 :
				sum == SEGMENT ? SEGMENT_HEAD_BYTES - 8 :
								 b.len - 8,
			sum == LAST_START || sum == NAMES_HEAD ? start_ns :
				sum == LAST_OWNER                  ? hash_bytes(owner, strlen(owner), 0) :
													 0);
	if (sum == JSON && !sealed)
		b.ptr[b.len - 4] ^= 1;
	CHECK(!fs_write_file(&fs_posix, path, buf_str(&b), NULL));
	buf_release(&b);
}

static void newer_store(struct town *w, const char *name)
{
	struct store_batch *b = store_batch_open();
	struct key key = key_of('m');
	struct buf value = { 0 };
	struct store *s;

	buf_add_char(&value, 9);
	buf_add_cstr(&value, "what a later version says");
	CHECK(!store_open(below(w, name), NULL, NULL, &s, &w->f.err));
	store_batch_put(b, key_str(&key), &value);
	CHECK(!store_write(s, b, &w->f.err));
	store_batch_close(b);
	store_close(s);
	buf_release(&value);
}

/* A block, a window in the head, deleted ranges of both, a loss, a segment. */
static bool old_world(struct town *w)
{
	struct segment of = {
		.start_ns = AT(T0 + 10), .end_ns = AT(T0 + 20), .identity = 7, .first = 1
	};
	struct err why;
	struct buf head = { 0 };

	if (!town_open(w))
		return false;
	town_fill(w, 2, 2, T0, T0 + 10, 2);
	town_fill(w, 1, 2, T0 + 10, T0 + 20, 2);
	w->f.o.too_old_ns = 0;
	CHECK(fixture_reopen(&w->f));
	town_compact(w);
	CHECK_LAYOUT(w, "1 head");
	town_delete(w, "job0", "i0", T0 + 2, T0 + 14);
	err_set(&why, ERR_CORRUPT, "for the test");
	CHECK(db_lost(w->f.db, LOSS_NUMBERS, "elsewhere", 0, 1, 1, &why));
	stop(w);
	segment_encode_head(&of, &head);
	CHECK(!fs_write_file(&fs_posix,
		below(w, arena_printf(&w->f.arena, "head/%d-%016d.segment.%020d", T0 + 10, 7, 1)),
		buf_str(&head), NULL));
	buf_release(&head);
	return true;
}

static void check_refused(struct town *w, const char *name, bool read_only)
{
	struct db_options o = w->f.o;
	struct buf before = { 0 }, after = { 0 };
	struct db *db = NULL;

	o.read_only = read_only;
	tree_print(w->f.dir, &before);
	CHECK_INT(db_open(&o, &db, &w->f.err), ERR_UNSUPPORTED);
	tree_print(w->f.dir, &after);
	CHECK_STR(
		buf_str(&after), buf_str(&before).ptr ? (buf_add_char(&before, '\0'), before.ptr) : "");
	if (!strstr(w->f.err.msg, name) || !strstr(w->f.err.msg, "version 9") ||
		(!strstr(w->f.err.msg, "newer program; this one reads versions") &&
			!strstr(w->f.err.msg, "not 1")))
		CHECK_FAIL("%s: %s", name, w->f.err.msg);
	db_close(db);
	buf_release(&before);
	buf_release(&after);
}

TEST(what_is_newer_is_refused_and_left_as_it_is)
{
	static const struct {
		const char *name, *dir, *ending; /* or where it is */
		enum newer_sum sum;
	} files[] = {
		{ "losses", NULL, NULL, LAST },
		{ "losses.copy", NULL, NULL, LAST },
		{ "ids", NULL, NULL, LAST },
		{ "inventory", NULL, NULL, LENGTH },
		{ "inventory.copy", NULL, NULL, LENGTH },
		{ NULL, "head", ".acked", LAST_START },
		{ NULL, "head", ".names", NAMES_HEAD },
		{ NULL, "head", ".deleted", LAST_OWNER },
		{ NULL, "head", ".deleted.copy", LAST_OWNER },
		{ NULL, "head", "00000000000000000001", SEGMENT },
		{ NULL, "block", "meta.json", JSON },
		{ NULL, "block", "deleted", LAST_OWNER },
		{ NULL, "block", "deleted.copy", LAST_OWNER },
		{ NULL, "head", "1080010", STORE },
	};
	const char *block, *name;
	struct town w;
	struct kept k;

	REQUIRE(old_world(&w));
	block = find(&w, "blocks", "");
	kept_read(&k, w.f.dir);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		bool in_block = files[i].dir && strcmp(files[i].dir, "block") == 0;
		const char *owner = in_block ? strrchr(block, '/') + 1 : "1080010";

		name = files[i].name ? files[i].name :
							   find(&w, in_block ? block : files[i].dir, files[i].ending);
		if (files[i].sum == STORE)
			newer_store(&w, name);
		else
			newer_file(&w, name, files[i].sum, owner, true);
		check_refused(&w, name, false);
		check_refused(&w, name, true);
		kept_put_back(&k);
		if (files[i].sum == STORE)
			continue;
		/* A flipped bit is damage. */
		newer_file(&w, name, files[i].sum, owner, false);
		if (!fixture_reopen(&w.f))
			CHECK_FAIL("%s: damage was taken for a version", name);
		stop(&w);
		kept_put_back(&k);
	}
	CHECK(fixture_reopen(&w.f));
	kept_release(&k);
	TOWN_END(&w);
}

/* ---- set aside ---- */

/* What a program does that does not know the window's version; again: its second start. */
static void set_aside(struct town *w, const char *start, bool again)
{
	town_move(w, arena_printf(&w->f.arena, "head/%s", start),
		arena_printf(&w->f.arena, "head/%s.1700000000123456789.damaged", start));
	if (again) {
		(void)!unlink(below(w, arena_printf(&w->f.arena, "head/%s.acked", start)));
		(void)!unlink(below(w, arena_printf(&w->f.arena, "head/%s.names", start)));
	}
}

/* Open losses, as "where min-max" in seconds. */
static void losses_text(struct town *w, struct buf *out)
{
	struct loss *v;
	size_t n = 0;

	buf_clear(out);
	CHECK(!db_losses(w->f.db, &w->f.arena, &v, &n, &w->f.err));
	for (size_t i = 0; i < n; i++)
		if (!v[i].accepted)
			buf_printf(out, STR_FMT " %" PRId64 "-%" PRId64 "\n", STR_ARG(v[i].where),
				v[i].min_ns / SEC, v[i].max_ns / SEC);
}

#define CHECK_LOSSES(w, want) \
	do { \
		struct buf losses_ = { 0 }; \
		losses_text((w), &losses_); \
		CHECK_STR(buf_str(&losses_), want); \
		buf_release(&losses_); \
	} while (0)

static bool head_world(struct town *w)
{
	if (!town_open(w))
		return false;
	town_fill(w, 2, 2, T0, T0 + 20, 2);
	CHECK_LAYOUT(w, "head head");
	return true;
}

TEST(what_was_set_aside_is_found_again)
{
	struct buf before = { 0 }, after = { 0 };
	struct town w;
	struct err why;

	for (int again = 0; again < 2; again++) {
		REQUIRE(head_world(&w));
		/* The program that set it aside said so. */
		err_set(&why, ERR_UNSUPPORTED, "another format");
		CHECK(db_lost(w.f.db, LOSS_WINDOW, "head/1080010", AT(T0 + 10), AT(T0 + 20), 9, &why));
		stop(&w);
		set_aside(&w, "1080010", again);
		/* Who only looks finds the rows too, and changes nothing. */
		w.f.o.read_only = true;
		tree_print(w.f.dir, &before);
		CHECK(fixture_reopen(&w.f));
		TOWN_CHECK(&w, "read only");
		stop(&w);
		tree_print(w.f.dir, &after);
		buf_add_char(&before, '\0');
		CHECK_STR(buf_str(&after), before.ptr);
		w.f.o.read_only = false;
		for (int start = 0; start < 2; start++) {
			CHECK(fixture_reopen(&w.f));
			CHECK_LAYOUT(&w, "head head");
			TOWN_CHECK(&w, "taken back");
			CHECK_LOSSES(&w, "");
			CHECK(fs_exists(below(&w, "head/1080010")));
		}
		town_append(&w, town_labels(&w, "job0", "i9"), T0 + 19);
		TOWN_CHECK(&w, "and takes rows");
		/* Nobody accepted anything: a later loss of it is a new one. */
		CHECK(db_lost(w.f.db, LOSS_WINDOW, "head/1080010", AT(T0 + 10), AT(T0 + 20), 9, &why));
		CHECK_LOSSES(&w, "head/1080010 1080010-1080020\n");
		buf_clear(&before);
		buf_clear(&after);
		TOWN_END(&w);
	}
	buf_release(&before);
	buf_release(&after);
}

/* What was deleted stays deleted. */
TEST(ranges_of_a_window_that_was_set_aside_stay_deleted)
{
	struct town w;

	REQUIRE(head_world(&w));
	town_delete(&w, "job0", "i0", T0 + 10, T0 + 15);
	stop(&w);
	set_aside(&w, "1080010", false);
	CHECK(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "taken back");
	TOWN_END(&w);
}

/* A start that ends anywhere in it: the next one has all rows. */
TEST(a_start_that_fails_while_it_takes_back_is_harmless)
{
	struct fs_ops ops = failing_fs_ops;
	struct failing_fs failing = { .fs = { &ops } };
	struct town w;
	struct kept k;
	bool opened = false;

	ops.free_bytes = fs_posix.ops->free_bytes;
	REQUIRE(head_world(&w));
	stop(&w);
	set_aside(&w, "1080010", true);
	kept_read(&k, w.f.dir);
	for (int calls = 0; calls < 200 && !opened; calls++) {
		struct db *db = NULL;

		failing.calls_left = calls;
		w.f.o.fs = &failing.fs;
		opened = !db_open(&w.f.o, &db, &w.f.err) && failing.calls_left > 0;
		db_close(db);
		w.f.o.fs = NULL;
		CHECK(fixture_reopen(&w.f));
		TOWN_CHECK(&w, "after a start that failed");
		CHECK_LAYOUT(&w, "head head");
		stop(&w);
		kept_put_back(&k);
	}
	CHECK(opened);
	kept_release(&k);
	TOWN_END(&w);
}

static size_t warnings_of(struct town *w, int64_t from_s, int64_t to_s)
{
	struct buf out = { 0 };
	size_t warnings = 0;

	CHECK(sum_text(w->f.db, NULL, AT(from_s), AT(to_s), &out, &warnings, &w->f.err));
	buf_release(&out);
	return warnings;
}

#define ASIDE "head/1080010.1700000000123456789.damaged"

TEST(what_cannot_come_back_is_named)
{
	struct buf before = { 0 }, after = { 0 };
	struct town w;

	REQUIRE(head_world(&w));
	stop(&w);
	set_aside(&w, "1080010", true);
	/* Since then its time has rows of another window. */
	town_move(&w, ASIDE, "kept");
	CHECK(fixture_reopen(&w.f));
	town_append(&w, town_labels(&w, "job0", "i0"), T0 + 19);
	stop(&w);
	/* That program kept no list of losses. */
	unlink(below(&w, "losses"));
	unlink(below(&w, "losses.copy"));
	town_move(&w, "kept", ASIDE);
	tree_print(below(&w, ASIDE), &before);
	buf_add_char(&before, '\0');
	for (int start = 0; start < 2; start++) {
		CHECK(fixture_reopen(&w.f));
		CHECK_LAYOUT(&w, "head head");
		CHECK_LOSSES(&w, ASIDE " 1080010-1080020\n");
		CHECK_INT(warnings_of(&w, T0, T0 + 10), 0);
		CHECK_INT(warnings_of(&w, T0 + 9, T0 + 11), 1);
	}
	tree_print(below(&w, ASIDE), &after);
	CHECK_STR(buf_str(&after), before.ptr);
	buf_release(&before);
	buf_release(&after);
	TOWN_END(&w);
}

/* By an older program still: this one cannot read it either. */
TEST(a_newer_window_that_was_set_aside_is_named)
{
	struct town w;

	REQUIRE(head_world(&w));
	stop(&w);
	unlink(below(&w, "inventory"));
	unlink(below(&w, "inventory.copy"));
	set_aside(&w, "1080010", true);
	newer_store(&w, ASIDE);
	CHECK(fixture_reopen(&w.f));
	CHECK_LAYOUT(&w, "head");
	CHECK_LOSSES(&w, ASIDE " 1080010-1080020\ninventory 0-9223372036\n");
	TOWN_END(&w);
}

#define LOST \
	"loss 1: all profiles of a window are lost between 1970-01-13T12:00:10.000Z and " \
	"1970-01-13T12:00:20.000Z (" ASIDE ", 20): "

/* One of another directory. */
static void foreign(const char *what, int jobs, int instances, int64_t from_s, const char *warning)
{
	struct town w, other;

	REQUIRE(head_world(&other));
	stop(&other);
	REQUIRE(town_open(&w));
	town_fill(&w, jobs, instances, T0 + from_s, T0 + 10, 1);
	town_append(&w, town_labels(&w, "last", "i0"), T0 + 10);
	stop(&w);
	/* town_copy knows one directory. */
	CHECK(rename(below(&other, "head/1080010"), below(&w, ASIDE)) == 0);
	for (int start = 0; start < 2; start++) {
		CHECK(fixture_reopen(&w.f));
		CHECK_LAYOUT(&w, "head");
		w.warning = warning;
		TOWN_CHECK(&w, what);
		CHECK_LOSSES(&w, ASIDE " 1080010-1080020\n");
		CHECK_INT(warnings_of(&w, T0, T0 + 10), 0);
	}
	TOWN_END(&other);
	TOWN_END(&w);
}

TEST(a_store_of_another_directory_stays_aside)
{
	foreign("other series have its numbers", 1, 3, 0, LOST "series 2 has two meanings");
	foreign("the same series, other symbols", 2, 2, 5,
		LOST "strings of job \"job0\": 6 has two meanings");
}

TEST(a_damaged_store_stays_aside)
{
	struct town w;
	const char *manifest;

	REQUIRE(head_world(&w));
	stop(&w);
	set_aside(&w, "1080010", true);
	manifest = find(&w, ASIDE, "CURRENT");
	CHECK(!fs_write_file(&fs_posix, below(&w, manifest), STR("nothing\n"), NULL));
	unlink(below(&w, "inventory"));
	CHECK(fixture_reopen(&w.f));
	CHECK_LAYOUT(&w, "head");
	CHECK(fs_exists(below(&w, manifest)));
	TOWN_END(&w);
}
