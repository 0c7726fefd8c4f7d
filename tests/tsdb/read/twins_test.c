/*
 * Profiles of one series and time in several members of a union: sums add each of them, and the
 * querier warns. Series that moved between members never warn.
 */
#include "tests/draw.h"
#include "tests/tsdb/read/spread.h"

#include "tsdb/catalog/state.h"

#define WINDOW_S 100
#define ALL_S 100000

/* ---- helpers ---- */

/* Members with short windows, whose blocks are joined when asked for. raw_s: raw rows of blocks
 * that are older go; 0: they stay. */
static bool open_short(struct spread *s, int raw_s)
{
	if (!open_all(s))
		return false;
	for (size_t i = 0; i < MEMBERS; i++) {
		struct fixture *f = &s->of[i];
		struct err err;

		db_union_remove(s->all, names[i]);
		f->o.window_ns = WINDOW_S * SEC;
		f->o.block_max_ns = 16 * WINDOW_S * SEC;
		f->o.too_old_ns = 2 * WINDOW_S * SEC;
		f->o.retention_ns = 0;
		f->o.raw_retention_ns = raw_s * SEC;
		f->o.no_compaction = true;
		if (!fixture_reopen(f) || db_union_add(s->all, names[i], f->db, NULL, NULL, &err))
			return false;
	}
	return true;
}

static void put(struct spread *s, size_t member, int pod, int at_s)
{
	static const char *const types[] = { "cpu/nanoseconds", NULL };
	static const char *const lines[] = { "main;f 7", NULL };

	append_to(s->of[member].db, pod_labels(s, "p", pod), T0 + at_s,
		profile_of(&s->one.arena, types, lines));
}

/* Cuts windows that end well before at_s, and joins their blocks: a row of another job ends them.
 */
static void cut(struct spread *s, size_t member, int at_s)
{
	static const char *const types[] = { "cpu/nanoseconds", NULL };
	static const char *const lines[] = { "main;g 1", NULL };
	struct db *db = s->of[member].db;
	struct err err;

	append_to(db, labels_of(&s->one.arena, "p", "clock", names[member]), T0 + at_s,
		profile_of(&s->one.arena, types, lines));
	CHECK_OK(db_compact(db, &err), &err);
}

enum way {
	WAY_TOTALS,
	WAY_CELLS,
	WAY_FUNCTIONS,
	WAY_PARTS,
	WAY_FORK,
	WAY_ROWS,
	WAYS,
	WAY_LATEST = WAYS, /* this and the next add no twins */
	WAY_FACTS
};

static enum err_code sum_by(struct db_querier *q, const struct db_series *one, enum way way,
	int64_t min_ns, int64_t max_ns, struct arena *a, struct err *err)
{
	static const struct profile_type cpu = {
		STR("p"), STR("cpu"), STR("nanoseconds"), STR(""), STR(""), true };
	struct function_sums *functions = NULL;
	struct sum_part_of part = { min_ns, max_ns, min_ns, max_ns };
	struct sum_stats stats = { 0 };
	struct db_querier *fork = NULL;
	struct accum *acc = NULL;
	enum err_code rc;

	if (way == WAY_ROWS) {
		db_querier_note_added(q, one, min_ns, max_ns);
		return ERR_OK;
	}
	if (way == WAY_TOTALS || way >= WAYS)
		return db_sum(q, &one, 1, &cpu, min_ns, max_ns,
			way == WAY_LATEST    ? SUM_LAST :
				way == WAY_FACTS ? SUM_FACTS :
								   SUM_WINDOW,
			NULL, a, &stats, err);
	if ((rc = accum_open(one->partition, 0, &acc, err)))
		return rc;
	if (way == WAY_FUNCTIONS && !(rc = function_sums_open(&functions, err)))
		rc = db_sum_functions(q, &one, 1, &cpu, min_ns, max_ns, functions, acc, a, &stats, err);
	if (way == WAY_PARTS)
		rc = db_sum_part(q, &one, 1, &cpu, part, acc, a, &stats, err);
	if (way == WAY_FORK && !(rc = db_querier_fork(q, &fork, err))) {
		size_t n;

		rc = db_sum(fork, &one, 1, &cpu, min_ns, max_ns, SUM_EACH, acc, a, &stats, err);
		(void)db_querier_warnings(fork, &n);
		CHECK_INT(n, 0); /* the querier has it */
	}
	if (way == WAY_CELLS)
		rc = db_sum(q, &one, 1, &cpu, min_ns, max_ns, SUM_WINDOW, acc, a, &stats, err);
	db_querier_close(fork);
	function_sums_close(functions);
	accum_close(acc);
	return rc;
}

/* The warnings after a sum over (from, to] of a querier of all of the time. */
static void said_of(struct spread *s, const struct label_limits *limits, enum way way, int from_s,
	int to_s, struct buf *out)
{
	const struct str *warnings;
	struct db_series *v;
	struct db_querier *q;
	struct arena a;
	struct err err;
	size_t n, warnings_n;

	buf_clear(out);
	arena_init(&a, 0);
	REQUIRE_OK(db_querier_open_limited(
				   s->all, limits, (T0 - ALL_S) * SEC, (T0 + ALL_S) * SEC, NULL, &q, &err),
		&err);
	REQUIRE_OK(db_select(q, NULL, 0, &a, &v, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		if (!v[i].numeric)
			CHECK_OK(sum_by(q, &v[i], way, (T0 + from_s) * SEC, (T0 + to_s) * SEC, &a, &err), &err);
	for (int again = 0; again < 2; again++) {
		warnings = db_querier_warnings(q, &warnings_n);
		CHECK(warnings_n <= 1);
	}
	if (warnings_n)
		buf_add_str(out, warnings[0]);
	db_querier_close(q);
	arena_release(&a);
}

#define CHECK_SAID(s, from_s, to_s, want) \
	do { \
		struct buf said_ = { 0 }; \
		for (int way_ = 0; way_ < WAYS; way_++) { \
			said_of((s), NULL, (enum way)way_, (from_s), (to_s), &said_); \
			CHECK_STR(buf_str(&said_), want); \
		} \
		buf_release(&said_); \
	} while (0)

#define ONE_OF "1 series has profiles of one time in several shards, which count twice: "

/* ---- where twins are ---- */

TEST(twins_in_two_heads)
{
	struct spread s;

	REQUIRE(open_short(&s, 0));
	for (int at = 10; at <= 50; at += 10)
		put(&s, 0, 0, at);
	put(&s, 1, 0, 45);
	CHECK_SAID(&s, 0, ALL_S, "");
	put(&s, 1, 0, 50);
	CHECK_SAID(&s, 0, ALL_S,
		ONE_OF "p{instance=\"i0\", job=\"y\"} at 2023-11-14T22:30:50.000Z in a and b");
	put(&s, 0, 1, 60);
	put(&s, 1, 1, 60);
	CHECK_SAID(&s, 0, ALL_S,
		"2 series have profiles of one time in several shards, which count twice: "
		"p{instance=\"i0\", job=\"y\"} at 2023-11-14T22:30:50.000Z in a and b");
	close_all(&s);
}

/* What is asked for is (from, to]. */
TEST(twins_outside_the_time_asked_for_are_not_named)
{
	struct spread s;

	REQUIRE(open_short(&s, 0));
	for (int at = 10; at <= 90; at += 10) {
		put(&s, 0, 0, at);
		put(&s, 1, 0, at == 50 ? 50 : at + 5);
	}
	CHECK_SAID(&s, 0, 49, "");
	CHECK_SAID(&s, 50, ALL_S, "");
	CHECK_SAID(
		&s, 49, 50, ONE_OF "p{instance=\"i0\", job=\"y\"} at 2023-11-14T22:30:50.000Z in a and b");
	close_all(&s);
}

TEST(twins_that_no_sum_adds_are_not_named)
{
	struct buf said = { 0 };
	struct spread s;

	REQUIRE(open_short(&s, 0));
	put(&s, 0, 0, 10);
	put(&s, 1, 0, 10);
	said_of(&s, NULL, WAY_LATEST, 0, ALL_S, &said); /* one of them counts */
	CHECK_STR(buf_str(&said), "");
	said_of(&s, NULL, WAY_FACTS, 0, ALL_S, &said);
	CHECK_STR(buf_str(&said), "");
	buf_release(&said);
	close_all(&s);
}

TEST(twins_in_three_members)
{
	struct spread s;

	REQUIRE(open_short(&s, 0));
	for (size_t i = 0; i < MEMBERS; i++)
		put(&s, i, 0, 10);
	CHECK_SAID(&s, 0, ALL_S,
		ONE_OF "p{instance=\"i0\", job=\"y\"} at 2023-11-14T22:30:10.000Z in a, b and c");
	close_all(&s);
}

TEST(twins_in_head_and_block_and_in_two_blocks)
{
	static const char want[] = ONE_OF
		"p{instance=\"i0\", job=\"y\"} at 2023-11-14T22:30:30.000Z in a and b";
	struct spread s;

	REQUIRE(open_short(&s, 0));
	for (int at = 10; at <= 50; at += 10)
		put(&s, 0, 0, at);
	put(&s, 1, 0, 25);
	put(&s, 1, 0, 30);
	put(&s, 1, 0, 35);
	cut(&s, 0, 1000);
	REQUIRE(s.of[0].db->blocks_n >= 1);
	CHECK_INT(s.of[1].db->blocks_n, 0);
	CHECK_SAID(&s, 0, ALL_S, want);
	CHECK_SAID(&s, 30, ALL_S, "");
	cut(&s, 1, 1000);
	REQUIRE(s.of[1].db->blocks_n >= 1);
	CHECK_SAID(&s, 0, ALL_S, want);
	CHECK_SAID(&s, 0, 29, "");
	CHECK_SAID(&s, 30, ALL_S, "");
	close_all(&s);
}

TEST(twins_in_blocks_of_different_levels)
{
	struct spread s;

	REQUIRE(open_short(&s, 0));
	for (int at = 5; at < 20 * WINDOW_S; at += 10)
		put(&s, 0, 0, at);
	cut(&s, 0, 100 * WINDOW_S); /* joined */
	put(&s, 1, 0, 3 * WINDOW_S);
	put(&s, 1, 0, 7 * WINDOW_S + 5);
	cut(&s, 1, 12 * WINDOW_S);
	REQUIRE(s.of[0].db->blocks_n && s.of[1].db->blocks_n);
	CHECK(block_meta(s.of[0].db->blocks[0]->block)->level >
		block_meta(s.of[1].db->blocks[s.of[1].db->blocks_n - 1]->block)->level);
	CHECK_SAID(&s, 0, ALL_S,
		ONE_OF "p{instance=\"i0\", job=\"y\"} at 2023-11-14T22:41:45.000Z in a and b");
	CHECK_SAID(&s, 7 * WINDOW_S + 5, ALL_S, "");
	close_all(&s);
}

/* Of a step whose rows are gone, three are known. */
TEST(twins_in_blocks_without_raw_rows)
{
	struct spread s;

	REQUIRE(open_short(&s, 1));
	for (int at = 10; at <= 50; at += 10)
		put(&s, 0, 0, at);
	put(&s, 1, 0, 35);
	put(&s, 1, 0, 50);
	put(&s, 1, 1, 45);
	put(&s, 0, 1, 55);
	for (size_t i = 0; i < 2; i++) {
		cut(&s, i, 1000);
		cut(&s, i, 100 * 3600);
		REQUIRE(s.of[i].db->blocks_n && !block_has_raw(s.of[i].db->blocks[0]->block));
	}
	CHECK_SAID(&s, 0, ALL_S,
		ONE_OF "p{instance=\"i0\", job=\"y\"} at 2023-11-14T22:30:50.000Z in a and b");
	close_all(&s);
}

/* ---- what are no twins ---- */

TEST(series_that_moved_are_no_twins)
{
	struct spread s;

	REQUIRE(open_short(&s, 0));
	for (int at = 10; at < 10 * WINDOW_S; at += 10)
		for (int pod = 0; pod < PODS; pod++) /* back and forth, the more often the higher */
			put(&s, (size_t)(at * pod / (2 * WINDOW_S)) % 2, pod, at);
	CHECK_SAID(&s, 0, ALL_S, "");
	cut(&s, 0, 11 * WINDOW_S); /* blocks in one, heads in the other */
	CHECK_SAID(&s, 0, ALL_S, "");
	cut(&s, 1, 11 * WINDOW_S);
	CHECK_SAID(&s, 0, ALL_S, "");
	cut(&s, 0, 100 * WINDOW_S); /* joined */
	CHECK_SAID(&s, 0, ALL_S, "");
	cut(&s, 1, 100 * WINDOW_S);
	CHECK_SAID(&s, 0, ALL_S, "");
	close_all(&s);
}

TEST(a_deleted_twin_is_none)
{
	static const char want[] = ONE_OF
		"p{instance=\"i0\", job=\"y\"} at 2023-11-14T22:30:20.000Z in a and b";
	const struct matcher m = { .op = MATCH_EQ, .name = STR("instance"), .value = STR("i0") };
	struct spread s;
	struct err err;

	REQUIRE(open_short(&s, 0));
	for (int at = 10; at <= 30; at += 10)
		put(&s, 0, 0, at);
	for (int at = 15; at <= 25; at += 5)
		put(&s, 1, 0, at);
	CHECK_SAID(&s, 0, ALL_S, want);
	CHECK_OK(db_delete_series(s.of[1].db, &m, 1, (T0 + 19) * SEC, (T0 + 20) * SEC, &err), &err);
	CHECK_SAID(&s, 0, ALL_S, "");
	put(&s, 1, 0, 30);
	cut(&s, 0, 1000);
	cut(&s, 1, 1000);
	CHECK_SAID(&s, 0, ALL_S,
		ONE_OF "p{instance=\"i0\", job=\"y\"} at 2023-11-14T22:30:30.000Z in a and b");
	CHECK_OK(db_delete_series(s.of[0].db, &m, 1, (T0 + 29) * SEC, (T0 + 30) * SEC, &err), &err);
	CHECK_SAID(&s, 0, ALL_S, "");
	close_all(&s);
}

TEST(numbers_are_no_twins)
{
	struct buf text = { 0 };
	size_t warnings = 0;
	struct spread s;
	struct err err;

	REQUIRE(open_short(&s, 0));
	number_to(s.of[0].db, pod_labels(&s, "up", 0), T0 + 10, 1);
	number_to(s.of[1].db, pod_labels(&s, "up", 0), T0 + 10, 1);
	CHECK(sum_text(s.all, NULL, 0, INT64_MAX, &text, &warnings, &err));
	CHECK_INT(warnings, 0);
	CHECK_SAID(&s, 0, ALL_S, "");
	buf_release(&text);
	close_all(&s);
}

/* In one member a name may be of numbers, and in another one of profiles. */
TEST(numbers_and_profiles_of_the_same_labels_are_no_twins)
{
	struct spread s;

	REQUIRE(open_short(&s, 0));
	for (size_t i = 0; i < MEMBERS; i++) {
		number_to(s.of[i].db, pod_labels(&s, names[i], 0), T0 + 10, 1);
		for (size_t k = 1; k < MEMBERS; k++)
			append_to(s.of[(i + k) % MEMBERS].db, pod_labels(&s, names[i], 0), T0 + 10 * (int64_t)k,
				profile_random(&s.one.arena, 1));
	}
	number_to(s.of[2].db, pod_labels(&s, "r", 1), T0 + 20, 1);
	for (size_t i = 0; i < 2; i++)
		append_to(s.of[i].db, pod_labels(&s, "r", 1), T0 + 20, profile_random(&s.one.arena, 1));
	CHECK_SAID(&s, 0, 19, "");
	CHECK_SAID(&s, 0, ALL_S,
		ONE_OF "r{instance=\"i1\", job=\"x\"} at 2023-11-14T22:30:20.000Z in a and b");
	close_all(&s);
}

/* ---- limits ---- */

TEST(twins_that_the_reader_may_not_see_are_not_named)
{
	struct matcher m = { .op = MATCH_EQ, .name = STR("instance"), .value = STR("i1") };
	struct matcher_set set = { &m, 1 };
	struct label_limits limits = { &set, 1 };
	struct buf said = { 0 };
	struct spread s;

	REQUIRE(open_short(&s, 0));
	put(&s, 0, 0, 10);
	put(&s, 1, 0, 10);
	put(&s, 1, 1, 10);
	said_of(&s, &limits, WAY_TOTALS, 0, ALL_S, &said);
	CHECK_STR(buf_str(&said), "");
	put(&s, 0, 1, 10);
	said_of(&s, &limits, WAY_TOTALS, 0, ALL_S, &said);
	CHECK_STR(buf_str(&said),
		ONE_OF "p{instance=\"i1\", job=\"x\"} at 2023-11-14T22:30:10.000Z in a and b");
	buf_release(&said);
	close_all(&s);
}

TEST(a_thousand_twins_are_one_short_warning)
{
	static const char want[] =
		"at least 100 series have profiles of one time in several shards, which count twice: "
		"p{instance=\"i0\", job=\"y\"} at 2023-11-14T22:30:10.000Z in a and b";
	struct spread s;

	REQUIRE(open_short(&s, 0));
	for (int pod = 0; pod < 100; pod++)
		for (size_t i = 0; i < 2; i++)
			put(&s, i, pod, 10);
	CHECK_SAID(&s, 0, ALL_S, want + STR("at least ").len);
	for (int pod = 100; pod < 1000; pod++)
		for (size_t i = 0; i < 2; i++)
			put(&s, i, pod, 10);
	CHECK_SAID(&s, 0, ALL_S, want);
	close_all(&s);
}

TEST(long_labels_are_cut)
{
	static const char *const types[] = { "cpu/nanoseconds", NULL };
	static const char *const lines[] = { "main;f 7", NULL };
	struct buf said = { 0 }, value = { 0 };
	struct labels labels;
	struct spread s;

	REQUIRE(open_short(&s, 0));
	for (int i = 0; i < 1000; i++)
		buf_add_cstr(&value, "\xc3\xa4");
	buf_add_char(&value, '\0');
	labels = labels_of(&s.one.arena, "p", value.ptr, "i");
	for (size_t i = 0; i < 2; i++)
		append_to(s.of[i].db, labels, T0 + 10, profile_of(&s.one.arena, types, lines));
	said_of(&s, NULL, WAY_TOTALS, 0, ALL_S, &said);
	CHECK(said.len > 300 && said.len < 500);
	CHECK(str_is_utf8(buf_str(&said)));
	CHECK(str_find(buf_str(&said), STR("... at 2023-11-14T22:30:10.000Z in a and b")) > 0);
	buf_release(&said);
	buf_release(&value);
	close_all(&s);
}

/* ---- by chance ---- */

#define DRAWN_PODS 3
#define DRAWN_S 400 /* rows are at whole tens of seconds before it */

/* What a model knows of each series and time: a bit per member. */
struct drawn {
	struct spread s;
	struct draw d;
	unsigned has[DRAWN_PODS][DRAWN_S / 10];
};

static void drawn_fill(struct drawn *w, unsigned twins)
{
	for (int at = 1; at < DRAWN_S / 10; at++)
		for (int pod = 0; pod < DRAWN_PODS; pod++) {
			unsigned to = 1u << draw(&w->d, MEMBERS);

			if (draw(&w->d, 1000) < twins)
				to |= 1u << draw(&w->d, MEMBERS);
			if (draw(&w->d, 5) == 0)
				to = 0;
			w->has[pod][at] = to;
			for (size_t i = 0; i < MEMBERS; i++)
				if (to >> i & 1)
					put(&w->s, i, pod, at * 10);
		}
}

static void drawn_delete(struct drawn *w)
{
	int pod = (int)draw(&w->d, DRAWN_PODS), from = (int)draw(&w->d, DRAWN_S / 10);
	int to = from + (int)draw(&w->d, 10);
	size_t member = draw(&w->d, MEMBERS);
	struct labels labels = pod_labels(&w->s, "p", pod);
	struct matcher m = {
		.op = MATCH_EQ, .name = STR("instance"), .value = labels_get(labels, STR("instance")) };
	struct err err;

	CHECK_OK(db_delete_series(
				 w->s.of[member].db, &m, 1, (T0 + from * 10) * SEC, (T0 + to * 10) * SEC, &err),
		&err);
	for (int at = from + 1; at <= to && at < DRAWN_S / 10; at++)
		w->has[pod][at] &= ~(1u << member);
}

/* How many series have twins in (from, to]. */
static int drawn_twins(const struct drawn *w, int from_s, int to_s)
{
	int n = 0;

	for (int pod = 0; pod < DRAWN_PODS; pod++) {
		bool twins = false;

		for (int at = 1; at < DRAWN_S / 10; at++)
			twins |= at * 10 > from_s && at * 10 <= to_s && __builtin_popcount(w->has[pod][at]) > 1;
		n += twins;
	}
	return n;
}

static void drawn_check(struct drawn *w)
{
	struct buf said = { 0 };
	char want[32];

	for (int turn = 0; turn < 4; turn++) {
		int from_s = (int)draw(&w->d, DRAWN_S), to_s = from_s + (int)draw(&w->d, DRAWN_S);
		int n;

		if (turn == 0) {
			from_s = 0;
			to_s = ALL_S;
		}
		n = drawn_twins(w, from_s, to_s);
		snprintf(want, sizeof(want), "%d series ha", n);
		said_of(&w->s, NULL, (enum way)draw(&w->d, WAYS), from_s, to_s, &said);
		if (n ? !str_has_prefix(buf_str(&said), str_of(want)) : said.len > 0)
			CHECK_FAIL(
				"(%d, %d]: %d series, said: " STR_FMT, from_s, to_s, n, STR_ARG(buf_str(&said)));
	}
	buf_release(&said);
}

/* The warning is there exactly if a model says so. */
TEST(random_rows_warn_as_a_model_says)
{
	static const unsigned twins[] = { 0, 5, 30, 500 };

	for (unsigned seed = 1; seed <= (check_is_short() ? 4u : 24u); seed++) {
		struct drawn w = { .d = { .state = seed } };

		REQUIRE(open_short(&w.s, 0));
		drawn_fill(&w, twins[seed % 4]);
		drawn_check(&w);
		for (size_t i = 0; i < MEMBERS; i++)
			if (draw(&w.d, 3))
				cut(&w.s, i, (int)(4 + draw(&w.d, 8)) * WINDOW_S);
		drawn_check(&w);
		drawn_delete(&w);
		drawn_delete(&w);
		drawn_check(&w);
		for (size_t i = 0; i < MEMBERS; i++)
			cut(&w.s, i, 50 * WINDOW_S);
		drawn_check(&w);
		close_all(&w.s);
	}
}
