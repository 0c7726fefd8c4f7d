/* A shard whose windows are far from whole: blocks first, then the newest window, and answers say
 * what is not here. */
#include "tests/tsdb/cluster/follower_world.h"
#include "tests/wait.h"

#define EVER 2000000000

static void append(int at_s)
{
	town_append(&s.town, town_labels(&s.town, "job0", "i0"), T0 + at_s);
}

/* Three blocks, and five windows in the head. */
static bool open_long(void)
{
	if (!open_world() || !scene_start(&s))
		return false;
	fill(0, 30);
	put();
	for (int at = 30; at < 60; at += 5) {
		fill(at, at + 5);
		put();
	}
	town_compact(&s.town);
	scene_settle(&s);
	for (int at = 60; at < 75; at += 5) {
		fill(at, at + 5);
		put();
	}
	append(58); /* late: one more segment of a window that is not the newest */
	put();
	return scene_look(&s);
}

/* ---- one segment at a time ---- */

static int let; /* so many segments */

static enum follower_between let_some(void *ctx)
{
	(void)ctx;
	return let-- > 0 ? FOLLOWER_GO_ON : FOLLOWER_STOP;
}

static void read_segments(int n)
{
	let = n;
	CHECK_OK(follower_read(f, let_some, NULL, &s.err), &s.err);
}

static enum follower_between look_once(void *ctx)
{
	int *n = ctx;

	switch ((*n)++) {
	case 0:
		return FOLLOWER_GO_ON;
	case 1:
		return FOLLOWER_LOOK;
	default:
		return FOLLOWER_STOP;
	}
}

/* ---- the model: what is answered and what is named is all ---- */

struct second {
	int have, want;
};
static struct second seconds[200]; /* behind T0 */

static bool note_row(void *ctx, const struct db_series *series, const struct db_row *row)
{
	(void)ctx;
	(void)series;
	seconds[row->ts_ns / SEC - T0].have++;
	return true;
}

static bool is_named(int at_s)
{
	return tells(at_s - 1, at_s, "shard a is being read: its profiles from ");
}

/* Each window that lacks rows is named, and no other one is. */
static void check_model(const char *what)
{
	size_t warnings = 0;

	memset(seconds, 0, sizeof(seconds));
	for (size_t i = 0; i < s.town.n; i++)
		seconds[s.town.rows[i].ts_s - T0].want += !s.town.rows[i].deleted;
	REQUIRE(rows_each(follower_db(f), 0, INT64_MAX - 1, note_row, NULL, &warnings, &s.err));
	CHECK_INT(warnings, 0);
	for (int from = 0; from < 190; from += TOWN_WINDOW_S) {
		int have = 0, want = 0;

		for (int at = from + 1; at <= from + TOWN_WINDOW_S; at++) {
			have += seconds[at].have;
			want += seconds[at].want;
			if (seconds[at].have > seconds[at].want)
				CHECK_FAIL("%s: rows at %d are there twice", what, at);
		}
		for (int at = from + 1; at <= from + TOWN_WINDOW_S; at++)
			if (is_named(at) != (have < want))
				CHECK_FAIL(
					"%s: at %d: %d of %d rows, named: %d", what, at, have, want, is_named(at));
	}
}

static void check_reading(int read, int all, int windows)
{
	struct follower_status is;

	follower_status(f, &is);
	CHECK_INT(is.read_segments, read);
	CHECK_INT(is.all_segments, all);
	CHECK_INT(is.unread_windows, windows);
	CHECK(is.read_bytes <= is.all_bytes && (is.read_bytes == is.all_bytes) == (read == all));
	CHECK((is.left_ns == 0) == (windows == 0));
}

TEST(blocks_answer_before_segments)
{
	REQUIRE(open_long());
	CHECK_SCENE(&s,
		"block 1; block 1; block 1; 30: 1-4 5-8; 40: 1-4 5-8; 50: 1-4 5-8 9-9; 60: 1-4 5-8; 70: "
		"1-4");
	CHECK_OK(follower_look(f, &s.err), &s.err);
	check_layout("1 1 1");
	check_model("blocks");
	close_world();
}

TEST(newest_window_first_and_the_rest_is_named)
{
	struct follower_status is;
	int all;

	REQUIRE(open_long());
	CHECK_OK(follower_look(f, &s.err), &s.err);
	follower_status(f, &is);
	all = (int)is.all_segments;
	CHECK_INT(is.generation, s.m.generation);
	CHECK_INT(is.through_ns, s.m.through_ns);
	CHECK(!is.late && is.failed.code == ERR_OK && is.left_ns == -1);
	CHECK_TOLD(0, 30, "");
	CHECK_TOLD(30, EVER,
		"shard a is being read: its profiles from 1970-01-13T12:00:30.000Z to "
		"1970-01-13T12:01:20.000Z are not all here yet (0% read)\n");
	for (int n = 1; n <= all; n++) {
		int64_t newest_ns;

		CHECK(follower_has_unread(f, &newest_ns));
		read_segments(1);
		/* Segments of the newest window are put, and those of older ones are not. */
		follower_status(f, &is);
		CHECK_INT(is.read_segments, n);
		CHECK(seconds[newest_ns / SEC - T0 + 5].have == 0 || n > 1);
		check_model("a segment");
	}
	check_reading(all, all, 0);
	CHECK_TOLD(0, EVER, "");
	check_follower("whole");
	close_world();
}

/* Which window a segment is put into. */
TEST(order_of_windows)
{
	int64_t newest_ns;

	REQUIRE(open_long());
	CHECK_OK(follower_look(f, &s.err), &s.err);
	for (int from = 70; from >= 30; from -= TOWN_WINDOW_S) {
		CHECK(follower_has_unread(f, &newest_ns));
		CHECK_INT(newest_ns / SEC - T0, from);
		CHECK_OK(follower_read(f, NULL, NULL, &s.err), &s.err); /* one window */
		check_model("a window");
	}
	CHECK(!follower_has_unread(f, &newest_ns));
	close_world();
}

/* Windows that do not touch are spans of their own. */
TEST(spans_are_named_one_by_one)
{
	REQUIRE(open_world());
	REQUIRE(scene_start(&s));
	for (int at = 0; at < 60; at += 20) {
		fill(at, at + 5);
		put();
	}
	CHECK_OK(follower_look(f, &s.err), &s.err);
	CHECK_TOLD(20, 30,
		"shard a is being read: its profiles from 1970-01-13T12:00:00.000Z to "
		"1970-01-13T12:00:10.000Z and from 1970-01-13T12:00:20.000Z to 1970-01-13T12:00:30.000Z "
		"and from 1970-01-13T12:00:40.000Z to 1970-01-13T12:00:50.000Z are not all here yet "
		"(0% read)\n");
	CHECK_TOLD(10, 20, "");
	close_world();
}

/* ---- the manifest changes meanwhile ---- */

TEST(what_comes_meanwhile_is_not_behind)
{
	struct follower_status is;
	int n = 0;

	REQUIRE(open_long());
	CHECK_OK(follower_look(f, &s.err), &s.err);
	read_segments(2); /* all of 70 to 80, and one of 60 to 70 */
	check_model("two segments");
	fill(75, 85); /* more of a window that is whole, and a new one */
	append(68); /* more of one that is being read */
	put();
	REQUIRE(scene_look(&s));
	CHECK_OK(follower_read(f, look_once, &n, &s.err), &s.err);
	follower_status(f, &is);
	CHECK_INT(is.generation, s.m.generation);
	CHECK_INT(is.through_ns, s.m.through_ns);
	CHECK(!is.late);
	CHECK_TOLD(70, EVER, "");
	CHECK(is_named(35) && is_named(45) && is_named(65));
	check_model("newer ones");
	CHECK_OK(follower_round(f, &s.err), &s.err);
	CHECK_TOLD(0, EVER, "");
	check_follower("whole");
	close_world();
}

/* A window that is being read becomes a block. */
TEST(a_window_that_is_cut_meanwhile)
{
	int64_t newest_ns;
	int n = 0;

	REQUIRE(open_long());
	CHECK_OK(follower_look(f, &s.err), &s.err);
	while (follower_has_unread(f, &newest_ns) && newest_ns / SEC - T0 > 30)
		CHECK_OK(follower_read(f, NULL, NULL, &s.err), &s.err);
	fill(75, 120);
	town_compact(&s.town);
	scene_settle(&s);
	CHECK_OK(follower_read(f, look_once, &n, &s.err), &s.err);
	check_model("blocks");
	CHECK_OK(follower_round(f, &s.err), &s.err);
	CHECK_TOLD(0, EVER, "");
	check_follower("whole");
	close_world();
}

/* The shard puts a snapshot in the place of the segments that are being read. */
TEST(a_snapshot_meanwhile)
{
	REQUIRE(open_long());
	CHECK_OK(follower_look(f, &s.err), &s.err);
	read_segments(4);
	scene_crash(&s);
	s.town.f.o.segments = false;
	REQUIRE(fixture_reopen(&s.town.f)); /* files of segments go */
	s.town.f.o.segments = true;
	append(77);
	append(63);
	REQUIRE(fixture_reopen(&s.town.f));
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	CHECK_OK(follower_look(f, &s.err), &s.err);
	check_model("snapshots");
	CHECK_OK(follower_round(f, &s.err), &s.err);
	CHECK_TOLD(0, EVER, "");
	check_follower("whole");
	close_world();
}

static bool has_row(int at_s)
{
	for (size_t i = 0; i < s.town.n; i++)
		if (s.town.rows[i].ts_s == T0 + at_s)
			return true;
	return false;
}

/* Whatever the shard does between the segments, what is answered and what is named is all. */
TEST(random_steps)
{
	for (unsigned seed = 1; seed <= 6; seed++) {
		unsigned random = seed;
		int at = 30, late;

		REQUIRE(open_world());
		REQUIRE(scene_start(&s));
		fill(0, at);
		put();
		CHECK_OK(follower_look(f, &s.err), &s.err);
		for (int i = 0; i < 30; i++) {
			switch (rand_r(&random) % 6) {
			case 0:
				late = at - (int)(rand_r(&random) % 15);
				if (late % 5 && !has_row(late))
					append(late);
				break;
			case 1:
				town_compact(&s.town);
				scene_settle(&s);
				break;
			case 2:
				town_delete(&s.town, "job1", "i0", T0 + at - 17, T0 + at - 8);
				break;
			case 3: /* it forgets what it knows */
				close_follower();
				REQUIRE(open_follower());
				break;
			default:
				fill(at, at + 5);
				at += 5;
				break;
			}
			put();
			CHECK_OK(follower_look(f, &s.err), &s.err);
			check_model("a look");
			read_segments((int)(rand_r(&random) % 3));
			check_model("segments");
		}
		CHECK_OK(follower_round(f, &s.err), &s.err);
		CHECK_TOLD(0, EVER, "");
		check_follower("whole");
		close_world();
	}
}

/* ---- errors ---- */

static void fault(int status, unsigned times, const char *code)
{
	fake_fault(&s.fake,
		(struct fake_fault){ .kind = FAULT_STATUS,
			.line = "/head/",
			.times = times,
			.status = status,
			.code = code });
}

TEST(a_segment_that_cannot_be_read_is_tried_again)
{
	struct follower_status is;

	REQUIRE(open_long());
	CHECK_OK(follower_look(f, &s.err), &s.err);
	fault(403, 1000, "AccessDenied");
	CHECK(follower_read(f, NULL, NULL, &s.err) != ERR_OK);
	CHECK(tells(30, EVER, "not all here yet (0% read): "));
	CHECK(tells(30, EVER, "access denied"));
	CHECK_TOLD(0, 30, "");
	follower_status(f, &is);
	CHECK(is.failed.code != ERR_OK && !is.late);
	CHECK_OK(follower_look(f, &s.err), &s.err);
	follower_status(f, &is);
	CHECK(is.failed.code != ERR_OK); /* not forgotten by a look that is well */
	fake_forget_faults(&s.fake);
	CHECK_OK(follower_round(f, &s.err), &s.err);
	CHECK_TOLD(0, EVER, "");
	check_follower("whole");
	close_world();
}

/* The newest window fails, and the older ones do not wait for it. */
TEST(a_window_that_fails_does_not_keep_the_others)
{
	struct manifest_key key;
	char line[MANIFEST_KEY_BYTES_MAX];
	int64_t newest_ns;

	REQUIRE(open_long());
	CHECK_OK(follower_look(f, &s.err), &s.err);
	key = manifest_key_segment(STR("a"), &s.m.windows[4], &s.m.windows[4].segments[0]);
	snprintf(line, sizeof(line), "%s", strrchr(key.text, '/'));
	fake_fault(&s.fake,
		(struct fake_fault){ .kind = FAULT_STATUS,
			.line = line,
			.times = 1000,
			.status = 403,
			.code = "AccessDenied" });
	for (int i = 0; i < 4; i++)
		CHECK(follower_read(f, NULL, NULL, &s.err) != ERR_OK);
	CHECK_TOLD(0, 70, "");
	CHECK(tells(70, 80, "access denied"));
	check_model("all but one");
	CHECK(follower_has_unread(f, &newest_ns));
	CHECK_INT(newest_ns / SEC - T0, 70);
	fake_forget_faults(&s.fake);
	CHECK_OK(follower_round(f, &s.err), &s.err);
	CHECK_TOLD(0, EVER, "");
	check_follower("whole");
	close_world();
}

/* A segment that is lost ends its window, is named, and does not keep the others. */
TEST(a_segment_that_is_lost)
{
	struct manifest_key key;
	struct follower_status is;
	int64_t start_ns;
	struct buf want = { 0 };

	REQUIRE(open_long());
	key = manifest_key_segment(STR("a"), &s.m.windows[1], &s.m.windows[1].segments[1]);
	scene_object(&s, &key)->used = false;
	CHECK_OK(follower_round(f, &s.err), &s.err);
	CHECK(!follower_has_unread(f, &start_ns));
	buf_printf(&want, "shard a: %s, which its manifest names, is missing\n%c", key.text, 0);
	CHECK_TOLD(40, 50, want.ptr);
	CHECK_TOLD(50, EVER, "");
	CHECK_TOLD(0, 40, "");
	follower_status(f, &is);
	CHECK_INT(is.missing, 1);
	/* The next manifest finds the same, and names nothing else meanwhile. */
	append(77);
	put();
	CHECK_OK(follower_look(f, &s.err), &s.err);
	CHECK_TOLD(40, 50, want.ptr);
	CHECK(!follower_has_unread(f, &start_ns));
	buf_release(&want);
	close_world();
}

/* A snapshot of a full window of a large shard: nobody reads it, and answers say why. */
TEST(a_segment_that_is_too_large)
{
	struct buf text = { 0 }, want = { 0 };
	struct manifest_key key;

	REQUIRE(open_long());
	s.m.windows[1].segments[1].object.bytes = (UINT64_C(1) << 30) + 1;
	key = manifest_key_segment(STR("a"), &s.m.windows[1], &s.m.windows[1].segments[1]);
	manifest_print(&text, &s.m);
	scene_crash(&s);
	fake_put(&s.fake, "p/q/shards/a/manifest", buf_str(&text));
	CHECK_OK(follower_round(f, &s.err), &s.err);
	buf_printf(&want,
		"shard a: %s, which its manifest names, has more than 1 GiB, which query nodes do not "
		"read: its window waits for its block\n%c",
		key.text, 0);
	CHECK_TOLD(40, 50, want.ptr);
	CHECK_TOLD(50, EVER, "");
	buf_release(&text);
	buf_release(&want);
	close_world();
}

/* Rows that are deleted while their window is read are not seen. */
TEST(deleted_meanwhile)
{
	REQUIRE(open_long());
	CHECK_OK(follower_look(f, &s.err), &s.err);
	read_segments(4);
	town_delete(&s.town, "job0", "i0", T0 + 33, T0 + 72);
	put();
	CHECK_OK(follower_look(f, &s.err), &s.err);
	read_segments(1);
	for (size_t i = 0; i < s.town.n; i++) {
		const struct town_row *r = &s.town.rows[i];
		struct buf text = { 0 };

		if (!r->deleted)
			continue;
		CHECK(rows_text(
			follower_db(f), r->labels, (r->ts_s - 1) * SEC, r->ts_s * SEC, &text, &s.err));
		CHECK_INT(text.len, 0);
		buf_release(&text);
	}
	CHECK_OK(follower_round(f, &s.err), &s.err);
	check_follower("whole");
	close_world();
}

/* ---- all shards ---- */

static bool cluster_says(struct cluster *c, const char *text)
{
	struct db_querier *q;
	const struct str *v;
	bool is = false;
	size_t n;

	if (db_querier_open(cluster_db(c), T0 * SEC, (T0 + 90) * SEC, NULL, &q, &s.err)) {
		CHECK_FAIL("%s", s.err.msg);
		return false;
	}
	v = db_querier_warnings(q, &n);
	for (size_t i = 0; i < n; i++)
		is |= str_find(v[i], str_of(text)) >= 0;
	db_querier_close(q);
	return is;
}

/* Segments do not come: the cluster is ready, blocks answer, and it ends at once. */
TEST(a_cluster_is_ready_with_its_blocks)
{
	struct cluster *c;
	size_t read, n;

	REQUIRE(open_long());
	close_follower();
	fake_fault(
		&s.fake, (struct fake_fault){ .kind = FAULT_STALL, .line = "/head/", .times = 1u << 30 });
	REQUIRE((c = open_cluster()) != NULL);
	cluster_wait(c, HOUR_NS);
	CHECK(cluster_progress(c, &read, &n));
	CHECK_INT(n, 1);
	CHECK_INT(count_rows(cluster_db(c)), 24);
	CHECK(cluster_says(c, "shard a is being read: its profiles from 1970-01-13T12:00:30.000Z to "));
	bucket_cancel(s.bucket, clock_monotonic_ns());
	cluster_close(c);
	bucket_cancel(s.bucket, INT64_MAX);
	close_world();
}

TEST(a_cluster_reads_what_is_unread)
{
	struct cluster *c;

	REQUIRE(open_long());
	close_follower();
	REQUIRE((c = open_cluster()) != NULL);
	cluster_wait(c, HOUR_NS);
	CHECK(WAIT_FOR(!cluster_says(c, "shard a")));
	CHECK_INT(count_rows(cluster_db(c)), s.town.n);
	/* What is new comes with the next look. */
	fill(75, 90);
	put();
	CHECK(WAIT_FOR(count_rows(cluster_db(c)) == s.town.n));
	cluster_close(c);
	close_world();
}
