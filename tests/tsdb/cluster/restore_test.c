/* Data directories that were lost: crashes, restores, objects that are missing. */
#include "tsdb/cluster/restore.h"

#include "tests/tsdb/cluster/shard_world.h"
#include "tsdb/lists/losses.h"

#define PREFIX "p/q/"

/* ---- crashes and lost disks ---- */

TEST(crash_and_start_again)
{
	REQUIRE(open_world());
	REQUIRE(start());
	fill(0, 60);
	town_compact(&t);
	settle();
	fill(60, 70);
	crash();
	REQUIRE(start());
	TOWN_CHECK(&t, "started again");
	CHECK_LAYOUT(&t, "1 1 1 head head head head");
	settle();
	crash();
	REQUIRE(wipe());
	REQUIRE(start());
	accept_unsent();
	TOWN_CHECK(&t, "restored");
	CHECK_LAYOUT(&t, "1 1 1 head head head head");
	close_world();
}

TEST(a_lost_disk)
{
	struct buf before = { 0 }, after = { 0 };

	REQUIRE(open_world());
	REQUIRE(start());
	fill(0, 60);
	town_compact(&t);
	settle();
	town_delete(&t, "job0", "i0", T0 + 12, T0 + 46);
	fill(60, 80);
	CHECK_OK(publisher_round(shard_publisher(s), &err), &err);
	sums(&before);
	fill(80, 90); /* not put */
	crash();
	forget_from(80);
	REQUIRE(wipe());
	REQUIRE(start());
	accept_unsent();
	TOWN_CHECK(&t, "restored");
	sums(&after);
	CHECK(str_eq(buf_str(&before), buf_str(&after)));
	CHECK_LAYOUT(&t, "1 1 1 head head head head head");
	/* It goes on: ids, cuts, joins, deletions. */
	fill(80, 150);
	town_delete(&t, "job1", "i1", T0 + 5, T0 + 85);
	town_compact(&t);
	CHECK_LAYOUT(&t, "3 head head head");
	settle();
	TOWN_CHECK(&t, "went on");
	sums(&before);
	stop();
	REQUIRE(start());
	TOWN_CHECK(&t, "stopped and started");
	crash();
	for (unsigned i = 0; i < 2; i++) {
		REQUIRE(wipe());
		REQUIRE(start());
		accept_unsent();
		TOWN_CHECK(&t, "restored again");
		sums(&after);
		CHECK(str_eq(buf_str(&before), buf_str(&after)));
		crash();
	}
	buf_release(&before);
	buf_release(&after);
	close_world();
}

/* What was acknowledged after the last round is gone, and each answer over its time says so. */
TEST(what_never_reached_the_bucket_is_a_loss)
{
	struct buf text = { 0 };
	size_t warnings = 0;
	struct loss *v;
	struct arena a;
	size_t n;

	REQUIRE(open_world());
	REQUIRE(start());
	fill(0, 60);
	town_compact(&t);
	settle();
	fill(60, 80); /* not put */
	crash();
	REQUIRE(wipe());
	REQUIRE(start());
	CHECK(sum_text(t.f.db, NULL, (T0 + 60) * SEC, (T0 + 80) * SEC, &text, &warnings, &err));
	CHECK_INT(warnings, 1);
	/* Blocks that were there before had all of theirs. */
	buf_clear(&text);
	warnings = 0;
	CHECK(sum_text(t.f.db, NULL, T0 * SEC, (T0 + 20) * SEC, &text, &warnings, &err));
	CHECK_INT(warnings, 0);
	arena_init(&a, 0);
	CHECK_OK(db_losses(t.f.db, &a, &v, &n, &err), &err);
	REQUIRE(n == 1);
	CHECK(str_has_prefix(v[0].text,
		STR("the shard goes on with another data directory: data that the one before "
			"took after ")));
	accept_unsent();
	/* It is said once: not after an end in order, and not of a directory that is there. */
	settle();
	crash();
	REQUIRE(start());
	CHECK_INT(losses_open_n(t.f.db->losses), 0);
	stop();
	REQUIRE(wipe());
	REQUIRE(start());
	CHECK_INT(losses_open_n(t.f.db->losses), 0);
	arena_release(&a);
	buf_release(&text);
	close_world();
}

/* Before its first round the manifest names nothing. */
TEST(a_shard_that_was_lost_before_its_first_round)
{
	REQUIRE(open_world());
	REQUIRE(start());
	fill(0, 20);
	crash();
	REQUIRE(wipe());
	REQUIRE(start());
	accept_unsent();
	forget_from(0);
	TOWN_CHECK(&t, "nothing");
	close_world();
}

/* The lease is had already. */
TEST(a_start_that_failed_is_tried_again)
{
	REQUIRE(open_world());
	REQUIRE(start());
	fill(0, 60);
	town_compact(&t);
	settle();
	stop();
	REQUIRE(wipe());
	fake_fault(&fake,
		(struct fake_fault){ .kind = FAULT_STATUS,
			.line = "/head/",
			.times = 2,
			.status = 503,
			.code = "SlowDown" });
	REQUIRE_OK(shard_open(&o, &s, &err), &err);
	CHECK(shard_start(s, &err) != ERR_OK);
	CHECK(str_find(str_of(err.msg), STR("restore of ")) == 0);
	CHECK(shard_start(s, &err) != ERR_OK);
	CHECK_OK(shard_start(s, &err), &err);
	t.f.db = shard_db(s);
	TOWN_CHECK(&t, "restored");
	settle();
	TOWN_CHECK(&t, "published");
	close_world();
}

/* Without it a half restored directory would be taken for a whole one. */
TEST(a_marker_empties_the_directory)
{
	char path[128];

	REQUIRE(open_world());
	REQUIRE(start());
	fill(0, 60);
	town_compact(&t);
	settle();
	stop();
	CHECK(!restore_is_due(t.f.dir));
	snprintf(path, sizeof(path), "%s/" RESTORE_MARKER, t.f.dir);
	CHECK_OK(fs_write_file(&fs_posix, path, STR("x"), &err), &err);
	CHECK(restore_is_due(t.f.dir));
	snprintf(path, sizeof(path), "%s/head/%d.deleted", t.f.dir, T0 + 50);
	CHECK_OK(fs_write_file(&fs_posix, path, STR("not whole"), &err), &err);
	REQUIRE(start());
	TOWN_CHECK(&t, "restored");
	CHECK(!restore_has_marker(t.f.dir));
	close_world();
}

/* ---- objects that are missing ---- */

static bool count_row(void *ctx, const struct db_series *series, const struct db_row *row)
{
	(void)series;
	(void)row;
	++*(size_t *)ctx;
	return true;
}

static size_t count_rows(size_t *warnings)
{
	size_t n = 0;

	*warnings = 0;
	if (!rows_each(t.f.db, 0, INT64_MAX - 1, count_row, &n, warnings, &err))
		CHECK_FAIL("rows: %s", err.msg);
	return n;
}

struct finding {
	const char *key;
	char where[64];
	bool found;
};

static bool find_loss(void *ctx, const struct loss *l)
{
	struct finding *f = ctx;

	f->found = !l->accepted && str_find(l->text, str_of(f->key)) >= 0;
	snprintf(f->where, sizeof(f->where), STR_FMT, STR_ARG(l->where));
	return !f->found;
}

static bool says_loss(const char *key, const char *where)
{
	struct finding f = { .key = key };

	losses_each(t.f.db->losses, 0, LOSS_END, find_loss, &f);
	if (f.found && where && !str_has_prefix(str_of(f.where), str_of(where)))
		CHECK_FAIL("%s: %s", key, f.where);
	return f.found;
}

enum missing { SEGMENT, FIRST_SEGMENT, WINDOW_DELETED, META, BLOCK_DELETED, TABLE, IDS, LOSSES };

static struct manifest_key key_of_missing(enum missing what)
{
	const struct manifest_window *w = &in_bucket.windows[0];
	const struct manifest_block *b = &in_bucket.blocks[0];

	switch (what) {
	case SEGMENT:
		return manifest_key_segment(STR("a"), w, &w->segments[1]);
	case FIRST_SEGMENT:
		return manifest_key_segment(STR("a"), w, &w->segments[0]);
	case WINDOW_DELETED:
		return manifest_key_window_deleted(STR("a"), w);
	case META:
		return manifest_key_block(STR("a"), b, MANIFEST_META);
	case BLOCK_DELETED:
		return manifest_key_block(STR("a"), b, MANIFEST_BLOCK_DELETED);
	case TABLE:
		return manifest_key_block(STR("a"), b, MANIFEST_ROLLUPS);
	case IDS:
		return manifest_key_small(STR("a"), "ids", &in_bucket.ids);
	default:
		return manifest_key_small(STR("a"), "losses", &in_bucket.losses);
	}
}

/* Rows of one series: a block 0-10, windows of 10-20 (three segments), 20-30, 30-40. */
static void one_round(int from_s, int to_s)
{
	town_fill(&t, 1, 1, T0 + from_s, T0 + to_s, 1);
	CHECK_OK(publisher_round(shard_publisher(s), &err), &err);
}

static bool make_rows(void)
{
	struct loss l = { .what = LOSS_WINDOW, .where = STR("head/7"), .text = STR("of old") };

	if (!start())
		return false;
	l.max_ns = 10 * SEC;
	one_round(0, 10);
	one_round(10, 13);
	one_round(13, 16);
	one_round(16, 20);
	one_round(20, 35);
	town_compact(&t);
	CHECK_OK(losses_add(t.f.db->losses, &l, NULL, &err), &err);
	town_delete(&t, "job0", "i0", T0, T0 + 2);
	town_delete(&t, "job0", "i0", T0 + 17, T0 + 18);
	settle();
	return true;
}

static const struct missing_row {
	enum missing what;
	const char *where; /* of the loss; NULL: there is none */
	size_t rows; /* of 32 that can be read then */
} missing_rows[] = {
	{ SEGMENT, "head/1080010 segments after batch ", 26 },
	{ FIRST_SEGMENT, "head/1080010", 23 },
	{ WINDOW_DELETED, "head/1080010.deleted", 33 },
	{ META, "blocks/", 24 },
	{ BLOCK_DELETED, "blocks/", 34 },
	{ TABLE, NULL, 32 },
	{ IDS, NULL, 32 },
	{ LOSSES, "losses", 32 },
};

static void check_missing(const struct missing_row *m, const struct manifest_key *key)
{
	size_t warnings, rows = count_rows(&warnings);

	if (rows != m->rows)
		CHECK_FAIL("%s: %zu rows, want %zu", key->text, rows, m->rows);
	if (m->where) {
		CHECK(says_loss(key->text, m->where));
		CHECK(warnings > 0);
	}
}

static void go_on(const struct missing_row *m, const struct manifest_key *key)
{
	size_t warnings, before = count_rows(&warnings), after;

	/* New rows are published behind what the manifest names. */
	town_fill(&t, 1, 1, T0 + 35, T0 + 38, 1);
	settle();
	crash();
	REQUIRE(start());
	CHECK_INT(count_rows(&warnings), before + 3);
	CHECK(!m->where || says_loss(key->text, m->where));
	REQUIRE(look_in_bucket());
	CHECK_INT(in_bucket.blocks_n, 1);
	CHECK_INT(in_bucket.windows_n, 3);
	/* Readers cannot pass over a segment: one of all that there is takes its place. */
	CHECK_INT(in_bucket.windows[0].segments_n, m->what == SEGMENT ? 1 : 3);
	crash();
	/* A disk that is lost once more. */
	REQUIRE(wipe());
	REQUIRE(start());
	after = count_rows(&warnings);
	if (after != before + 3)
		CHECK_FAIL("%s: %zu rows of %zu", key->text, after, before + 3);
	CHECK(!m->where || warnings > 0);
}

/* Another object of the same length. */
static void damage(const char *path)
{
	struct buf bytes = { 0 };

	buf_add_str(&bytes, buf_str(&fake_find(&fake, path)->bytes));
	bytes.ptr[bytes.len / 2] ^= 1;
	fake_put(&fake, path, buf_str(&bytes));
	buf_release(&bytes);
}

TEST(what_is_missing_is_a_loss)
{
	/* In short each is either gone or changed. */
	for (size_t i = 0; i < 2 * sizeof(missing_rows) / sizeof(missing_rows[0]); i++) {
		const struct missing_row *m = &missing_rows[i / 2];
		struct manifest_key key;
		struct buf path = { 0 };
		bool changed = i % 2; /* it is there, but not the one */

		if (check_is_short() && changed != (i / 2 % 2))
			continue;
		REQUIRE(open_world());
		REQUIRE(make_rows());
		stop();
		REQUIRE(look_in_bucket());
		REQUIRE(in_bucket.blocks_n == 1 && in_bucket.windows_n == 3 &&
			in_bucket.windows[0].segments_n == 3);
		key = key_of_missing(m->what);
		buf_printf(&path, PREFIX "%s%c", key.text, '\0');
		REQUIRE(fake_find(&fake, path.ptr) != NULL);
		if (changed)
			damage(path.ptr);
		else
			CHECK_OK(bucket_delete(bucket, manifest_key_str(&key), &err), &err);
		REQUIRE(wipe());
		REQUIRE(start());
		if (m->what != TABLE)
			check_missing(m, &key);
		go_on(m, &key);
		buf_release(&path);
		t.n = 0;
		close_world();
	}
}
