/* Epochs of jobs: when one begins, that nothing is lost over it, and what stays in memory. */
#include "tests/tsdb/head/epoch_world.h"
#include "tsdb/head/epochs.h"

#include <stdatomic.h>

/* ---- when an epoch begins ---- */

static void few_strings(struct db_options *o)
{
	o->strings_max = 24;
}

static const struct limit_case {
	const char *name;
	void (*change)(struct db_options *o);
	int first; /* stacks of the first window: the largest number that half of the limit holds */
	int invented; /* in the second window: those that fit */
	const char *message; /* for the one after them */
} limit_cases[] = {
	{ "nodes", few_nodes, 6, 14, "job \"j\" has 16 stack nodes, limit 16" },
	{ "strings", few_strings, 8, 20, "job \"j\" has 24 strings, limit 24" },
};

static void check_limit(const struct limit_case *c, int more)
{
	struct buf want = { 0 };
	struct fixture f;
	struct labels l, second, other;
	char text[40];
	int n;

	REQUIRE(open_small(&f, c->change));
	l = job(&f, "j", "i");
	second = job(&f, "j", "second");
	other = job(&f, "other", "i");
	CHECK_INT(fill(&f, l, 0, 'a', 1, c->first + more, &want), c->first + more);
	/* Just half used is not near; one more is. */
	CHECK_INT(fill(&f, l, 100, 'b', 1, 1, &want), 1);
	CHECK_INT(status(&f).partitions, 1 + more);
	CHECK_INT(epochs_of(&f, l), 1 + more);
	if (!more)
		goto out;
	/* Only the job that invents names meets the limit. */
	n = 1 + fill(&f, l, 100, 'b', 2, 60, &want);
	CHECK_INT(n, c->invented);
	snprintf(text, sizeof(text), "main;b%d 1", n + 1);
	CHECK_ERR(put(&f, l, 180, text), &f.err, ERR_LIMIT, c->message);
	CHECK_OK(put(&f, l, 190, "main;b1 5"), &f.err);
	CHECK_OK(put(&f, second, 190, "main;b2 6"), &f.err);
	CHECK_OK(put(&f, other, 190, text), &f.err);
	buf_add_cstr(&want, "@190\nmain;b1 5\n");
	/* The next window takes it. */
	CHECK_OK(put(&f, l, 210, text), &f.err);
	buf_printf(&want, "@210\n%s\n", text);
	CHECK_INT(epochs_of(&f, l), 3);
	CHECK_INT(epochs_of(&f, other), 1);
	check_rows(&f, second, "@190\nmain;b2 6\n");
out:
	buf_add_char(&want, '\0');
	check_rows(&f, l, want.ptr);
	REQUIRE(fixture_reopen(&f));
	check_rows(&f, l, want.ptr);
	buf_release(&want);
	fixture_close(&f);
}

TEST(a_window_begins_an_epoch_when_half_of_a_limit_is_used)
{
	for (size_t i = 0; i < sizeof(limit_cases) / sizeof(limit_cases[0]); i++) {
		check_limit(&limit_cases[i], 0);
		check_limit(&limit_cases[i], 1);
	}
}

/* A server that was restarted right before a window began knows what the one before used. */
TEST(a_restart_before_the_window_does_not_hide_what_is_used)
{
	struct buf want = { 0 };
	struct fixture f;
	struct labels l;

	REQUIRE(open_small(&f, few_nodes));
	l = job(&f, "j", "i");
	CHECK_INT(fill(&f, l, 0, 'a', 1, 12, &want), 12);
	REQUIRE(fixture_reopen(&f));
	CHECK_INT(fill(&f, l, 100, 'b', 1, 12, &want), 12);
	CHECK_INT(epochs_of(&f, l), 2);
	buf_add_char(&want, '\0');
	check_rows(&f, l, want.ptr);
	buf_release(&want);
	fixture_close(&f);
}

/* ---- delta bases ---- */

TEST(deltas_go_on_over_an_epochs_change)
{
	struct buf none = { 0 };
	struct fixture f;
	struct labels l, late, other;
	bool first;

	REQUIRE(open_small(&f, few_nodes));
	l = job(&f, "j", "i");
	late = job(&f, "j", "late");
	other = job(&f, "j", "other");
	CHECK_OK(scrape(&f, l, 40, "main;x k=v 10|main;x 1|main;y 5", &first), &f.err);
	CHECK(first);
	CHECK_OK(scrape(&f, l, 80, "main;x k=v 12|main;x 1|main;y 6", &first), &f.err);
	CHECK(!first);
	CHECK_OK(scrape(&f, late, 80, "main;y k=w 7|main;x 3", &first), &f.err);
	fill(&f, other, 0, 'a', 1, 10, &none);
	/* The new epoch meets them in another order. */
	fill(&f, other, 100, 'b', 1, 2, &none);
	CHECK_OK(scrape(&f, l, 120, "main;y 6|main;x 4|main;x k=v 15|main;z 1", &first), &f.err);
	CHECK(!first);
	CHECK_INT(epochs_of(&f, l), 2);
	/* Late ones go into the window before, and its epoch: of others, of the same series, and
	 * one whose base is older still. */
	CHECK_OK(put(&f, other, 95, "main;late 1"), &f.err);
	CHECK_OK(put(&f, l, 96, "main;late k=v 2"), &f.err);
	CHECK_OK(scrape(&f, late, 97, "main;y k=w 9|main;x 3", &first), &f.err);
	CHECK(!first);
	CHECK_OK(scrape(&f, l, 160, "main;y 6|main;x 4|main;x k=v 20|main;z 2", &first), &f.err);
	CHECK(!first);
	CHECK_OK(scrape(&f, late, 161, "main;y k=w 19|main;x 4", &first), &f.err);
	CHECK(!first);
	/* A third epoch, a restart of the target in it, and a scrape after that. */
	fill(&f, other, 110, 'c', 1, 10, &none);
	CHECK_OK(scrape(&f, l, 201, "main;x k=v 2|main;z 1", &first), &f.err);
	CHECK(!first);
	CHECK_OK(scrape(&f, l, 240, "main;x k=v 2|main;z 4", &first), &f.err);
	CHECK_INT(epochs_of(&f, l), 3);
	for (int i = 0; i < 2; i++) {
		check_rows(&f, l,
			"@40\n@80\nmain;x k=v 2\nmain;y 1\n@96\nmain;late k=v 2\n"
			"@120\nmain;x 3\nmain;x k=v 3\nmain;z 1\n"
			"@160\nmain;x k=v 5\nmain;z 1\n"
			"@201\nmain;x k=v 2\nmain;z 1\n@240\nmain;z 3\n");
		check_rows(&f, late, "@80\n@97\nmain;y k=w 2\n@161\nmain;x 1\nmain;y k=w 10\n");
		REQUIRE(fixture_reopen(&f));
	}
	buf_release(&none);
	fixture_close(&f);
}

/* ---- restart ---- */

static void with_blocks(struct db_options *o)
{
	o->no_compaction = false;
	o->too_old_ns = 0;
	o->retention_ns = 0; /* rows here are of 1970 */
}

static const struct restart_case {
	const char *stack;
	int nodes; /* afterwards: "main" and what is below it */
} restart_cases[] = {
	{ "main;a 1", 4 }, /* a block has it */
	{ "main;b 1", 4 }, /* another block */
	{ "main;c 1", 4 }, /* the window */
	{ "main 1", 4 },
	{ "main;d 1", 5 }, /* new */
	{ "d 1", 5 },
};

TEST(content_has_one_id_in_blocks_window_and_new_rows)
{
	for (size_t i = 0; i < sizeof(restart_cases) / sizeof(restart_cases[0]); i++) {
		const struct restart_case *c = &restart_cases[i];
		struct fixture f;
		struct labels l;
		char want[200];

		REQUIRE(open_small(&f, with_blocks));
		l = job(&f, "j", "i");
		CHECK_OK(put(&f, l, 50, "main;a 1"), &f.err);
		CHECK_OK(put(&f, l, 150, "main;b k=v 2"), &f.err);
		CHECK_OK(put(&f, l, 250, "main;c 3"), &f.err);
		CHECK_OK(db_compact(f.db, &f.err), &f.err);
		CHECK_INT(status(&f).windows, 1);
		REQUIRE(fixture_reopen(&f));
		/* Nothing is loaded before somebody asks. */
		CHECK_INT(status(&f).nodes, 0);
		CHECK_OK(put(&f, l, 260, c->stack), &f.err);
		CHECK_INT(status(&f).nodes, c->nodes);
		CHECK_INT(status(&f).partitions, 1);
		CHECK_INT(epochs_of(&f, l), 1);
		snprintf(want, sizeof(want),
			"@50\nmain;a 1\n@150\nmain;b k=v 2\n@250\nmain;c 3\n@260\n%s\n", c->stack);
		check_rows(&f, l, want);
		CHECK_OK(put(&f, l, 350, "main;e 1"), &f.err);
		CHECK_OK(db_compact(f.db, &f.err), &f.err);
		REQUIRE(fixture_reopen(&f));
		snprintf(want + strlen(want), sizeof(want) - strlen(want), "@350\nmain;e 1\n");
		check_rows(&f, l, want);
		fixture_close(&f);
	}
}

/* A job that only blocks know begins an epoch that none of them has. */
TEST(an_epoch_that_only_blocks_have_is_not_begun_again)
{
	struct fixture f;
	struct labels l, other;

	REQUIRE(open_small(&f, with_blocks));
	l = job(&f, "j", "i");
	other = job(&f, "other", "i");
	CHECK_OK(put(&f, l, 50, "main;a 1"), &f.err);
	CHECK_OK(put(&f, other, 250, "main;c 3"), &f.err);
	CHECK_OK(db_compact(f.db, &f.err), &f.err);
	REQUIRE(fixture_reopen(&f));
	CHECK_OK(put(&f, l, 260, "x;y 1"), &f.err);
	CHECK_INT(epochs_of(&f, l), 2);
	for (int i = 0; i < 2; i++) {
		check_rows(&f, l, "@50\nmain;a 1\n@260\nx;y 1\n");
		check_rows(&f, other, "@250\nmain;c 3\n");
		REQUIRE(fixture_reopen(&f));
	}
	fixture_close(&f);
}

static void few_in_blocks(struct db_options *o)
{
	with_blocks(o);
	o->nodes_max = 16;
}

/* Ranges of blocks, "min-max" in seconds. */
static void check_blocks(struct fixture *f, const char *want)
{
	struct db_block_status *v;
	struct buf got = { 0 };
	size_t n;

	CHECK_OK(db_list(f->db, &f->arena, &v, &n, &f->err), &f->err);
	for (size_t i = 0; i < n; i++)
		if (v[i].ulid[0])
			buf_printf(&got, "%s%d-%d", got.len ? " " : "", (int)(v[i].min_ns / SEC),
				(int)(v[i].max_ns / SEC));
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
}

/* Two epochs whose stacks are too many for one: others are joined, these stay as they are. */
TEST(epochs_that_do_not_fit_into_one_stay_in_blocks_of_their_own)
{
	struct buf want = { 0 };
	struct fixture f;
	struct labels l;

	REQUIRE(open_small(&f, few_in_blocks));
	l = job(&f, "j", "i");
	CHECK_INT(fill(&f, l, 0, 'a', 1, 12, &want), 12);
	CHECK_INT(fill(&f, l, 100, 'b', 1, 12, &want), 12);
	CHECK_INT(fill(&f, l, 200, 'b', 1, 2, &want), 2);
	CHECK_INT(fill(&f, l, 300, 'b', 1, 2, &want), 2);
	CHECK_INT(fill(&f, l, 600, 'b', 1, 1, &want), 1);
	CHECK_OK(db_compact(f.db, &f.err), &f.err);
	check_blocks(&f, "0-100 100-302");
	CHECK_OK(db_compact(f.db, &f.err), &f.err);
	buf_add_char(&want, '\0');
	check_rows(&f, l, want.ptr);
	REQUIRE(fixture_reopen(&f));
	CHECK_OK(db_compact(f.db, &f.err), &f.err);
	check_rows(&f, l, want.ptr);
	buf_release(&want);
	fixture_close(&f);
}

/* ---- what stays in memory ---- */

static void tiny(struct db_options *o)
{
	with_blocks(o);
	o->symbols_bytes = sizeof(struct partition); /* with less epochs end all the time */
	o->nodes_max = 16;
}

TEST(old_epochs_leave_memory_and_come_back)
{
	struct buf want = { 0 };
	struct db_querier *q;
	struct db_series *series;
	struct fixture f;
	struct labels l;
	uint64_t live;
	size_t n;

	REQUIRE(open_small(&f, tiny));
	l = job(&f, "j", "i");
	for (int w = 0; w < 4; w++) {
		CHECK_INT(fill(&f, l, 100 * w, (char)('a' + w), 1, 12, &want), 12);
		CHECK_OK(db_compact(f.db, &f.err), &f.err);
	}
	buf_add_char(&want, '\0');
	for (int i = 0; i < 2; i++) {
		check_rows(&f, l, want.ptr);
		fixture_maintain(&f);
		/* After a restart none takes rows yet. */
		CHECK_INT(status(&f).partitions, 1 - i);
		live = status(&f).symbol_bytes;
		/* Epochs that a query uses stay. */
		REQUIRE_OK(db_querier_open(f.db, ALL, NULL, &q, &f.err), &f.err);
		REQUIRE_OK(db_select(q, NULL, 0, &f.arena, &series, &n, &f.err), &f.err);
		CHECK(n > 1);
		fixture_maintain(&f);
		CHECK_INT(status(&f).partitions, n);
		CHECK(status(&f).symbol_bytes > live);
		for (size_t k = 0; k < n; k++)
			CHECK_STR(series[k].partition->name, "j");
		db_querier_close(q);
		fixture_maintain(&f);
		CHECK_INT(status(&f).partitions, 1 - i);
		CHECK_INT(status(&f).symbol_bytes, live);
		check_rows(&f, l, want.ptr);
		REQUIRE(fixture_reopen(&f));
	}
	buf_release(&want);
	fixture_close(&f);
}

/* A base keeps its epoch's symbols while a scrape may be compared with it, and no longer. */
TEST(series_leave_the_index_when_nothing_needs_them)
{
	static const struct step {
		int64_t s; /* a row of the series that goes on */
		int series, partitions;
	} steps[] = {
		{ 95, 3, 1 }, /* one window has all of them */
		{ 150, 2, 2 }, /* one has no base */
		{ 199, 2, 2 }, { 210, 1, 1 }, /* 90 + 3 * 40 */
	};
	struct buf none = { 0 };
	struct fixture f;
	struct labels plain, counts, goes_on;
	bool first;

	for (int back = 0; back < 2; back++) {
		REQUIRE(open_small(&f, tiny));
		plain = job(&f, "j", "plain");
		counts = job(&f, "j", "counts");
		goes_on = job(&f, "j", "goes on");
		CHECK_OK(put(&f, plain, 50, "main;a 1"), &f.err);
		CHECK_OK(scrape(&f, counts, 90, "main;x k=v 10", &first), &f.err);
		fill(&f, goes_on, 0, 'a', 1, 10, &none);
		for (size_t i = 0; i < 4 - (size_t)back; i++) {
			CHECK_OK(put(&f, goes_on, steps[i].s, "go 1"), &f.err);
			CHECK_OK(db_compact(f.db, &f.err), &f.err);
			fixture_maintain(&f);
			CHECK_INT(status(&f).series, steps[i].series);
			CHECK_INT(status(&f).partitions, steps[i].partitions);
			CHECK((status(&f).delta_bytes > 0) == (steps[i].series > 1));
		}
		CHECK_OK(scrape(&f, counts, back ? 209 : 211, "main;x k=v 17", &first), &f.err);
		CHECK_INT(first, !back);
		check_rows(&f, counts, back ? "@90\n@209\nmain;x k=v 7\n" : "@90\n@211\n");
		check_rows(&f, plain, "@50\nmain;a 1\n");
		fixture_close(&f);
	}
	buf_release(&none);
}

/* As above, where the series goes on with rows that are no scrapes. */
TEST(a_base_that_is_of_no_use_keeps_nothing_in_memory)
{
	static const struct step {
		int64_t s;
		int partitions;
	} steps[] = { { 95, 1 }, { 150, 2 }, { 210, 2 }, { 211, 1 }, { 212, 1 } };
	struct buf none = { 0 };
	struct fixture f;
	struct labels l;
	bool first;

	REQUIRE(open_small(&f, tiny));
	l = job(&f, "j", "i");
	CHECK_OK(scrape(&f, l, 90, "main;x k=v 10", &first), &f.err);
	fill(&f, job(&f, "j", "other"), 0, 'a', 1, 10, &none);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		CHECK_OK(put(&f, l, steps[i].s, "go 1"), &f.err);
		CHECK_OK(db_compact(f.db, &f.err), &f.err);
		fixture_maintain(&f);
		CHECK_INT(status(&f).series, steps[i].s < 100 ? 2 : 1);
		CHECK_INT(status(&f).partitions, steps[i].partitions);
		CHECK((status(&f).delta_bytes > 0) == (steps[i].s <= 210));
	}
	check_rows(&f, l, "@90\n@95\ngo 1\n@150\ngo 1\n@210\ngo 1\n@211\ngo 1\n@212\ngo 1\n");
	buf_release(&none);
	fixture_close(&f);
}

/* ---- epochs that end while their window takes rows ---- */

#define GROWING_ROWS 60

struct growing {
	struct fixture *f;
	struct labels plain, counts;
	struct thread append, query;
	_Atomic int done; /* rows acknowledged of each */
	atomic_bool end;
};

static enum err_code grow(struct growing *g, struct arena *a, int i)
{
	char mine[40], all[80];
	const char *lines[] = { mine, NULL }, *counted[] = { all, "main;same 7", NULL };
	enum err_code rc;
	struct err err;

	snprintf(mine, sizeof(mine), "main;p%d 1", i);
	snprintf(all, sizeof(all), "main;c%d;k %d", i / 8, 10 + i);
	if ((rc = append_wait(g->f->db, g->plain, i * SEC, SEC, profile_of(a, types, lines), NULL,
			 false, NULL, &err)))
		return rc;
	return append_wait(g->f->db, g->counts, i * SEC, SEC, profile_of(a, types, counted), cumulative,
		true, NULL, &err);
}

static void grow_on(void *ctx)
{
	struct growing *g = ctx;

	for (int i = 1; i <= GROWING_ROWS; i++) {
		struct arena a;

		arena_init(&a, 0);
		CHECK_INT(grow(g, &a, i), ERR_OK);
		arena_release(&a);
		atomic_store(&g->done, i);
		if (i % 4 == 0)
			partitions_bound(g->f->db);
	}
	atomic_store(&g->end, true);
}

/* All rows that were acknowledged before, each as it came. */
static void check_growing(struct growing *g)
{
	int before = atomic_load(&g->done), i = 1;
	struct buf got = { 0 }, want = { 0 };
	struct str rest;
	struct err err;

	CHECK(rows_text(g->f->db, g->plain, ALL, &got, &err));
	for (rest = buf_str(&got); rest.len; i++) {
		buf_clear(&want);
		buf_printf(&want, "@%d\nmain;p%d 1\n", i, i);
		if (!str_has_prefix(rest, buf_str(&want)))
			break;
		rest.ptr += want.len;
		rest.len -= want.len;
	}
	CHECK_STR(rest, "");
	CHECK(i > before);
	buf_release(&got);
	buf_release(&want);
}

static void query_on(void *ctx)
{
	struct growing *g = ctx;

	while (!atomic_load(&g->end))
		check_growing(g);
}

static void no_budget(struct db_options *o)
{
	with_blocks(o);
	o->symbols_bytes = 1;
}

static void no_budget_long(struct db_options *o)
{
	no_budget(o);
	o->window_ns = 1000 * SEC;
}

/* The counts of a cumulative target, with whatever ids on the way. */
static void check_counts(struct growing *g)
{
	struct buf want = { 0 };

	buf_add_cstr(&want, "@1\n");
	for (int i = 2; i <= GROWING_ROWS; i++)
		/* Without the row before, the target began anew. */
		buf_printf(&want, i % 8 ? "@%d\nmain;c%d;k 1\n" : "@%d\n", i, i / 8);
	buf_add_char(&want, '\0');
	check_rows(g->f, g->counts, want.ptr);
	buf_release(&want);
}

TEST(epochs_end_under_rows_and_queries)
{
	struct fixture f;
	struct growing g = { .f = &f };
	uint64_t partitions;

	REQUIRE(open_small(&f, no_budget_long));
	g.plain = job(&f, "j", "plain");
	g.counts = job(&f, "j", "counts");
	REQUIRE_OK(thread_start(&g.append, "test", grow_on, &g, &f.err), &f.err);
	REQUIRE_OK(thread_start(&g.query, "test", query_on, &g, &f.err), &f.err);
	while (!atomic_load(&g.end))
		partitions_bound(f.db);
	thread_join(&g.append);
	thread_join(&g.query);
	CHECK_INT(status(&f).windows, 1);
	CHECK(epochs_of(&f, g.plain) > 4);
	for (int i = 0; i < 4; i++) {
		check_growing(&g);
		check_counts(&g);
		fixture_maintain(&f);
		partitions = status(&f).partitions;
		CHECK(partitions <= 2); /* the live one, and what a base is in */
		if (i == 2) { /* a row of the window behind it, and the cut */
			CHECK_OK(put(&f, job(&f, "other", "i"), 1500, "x 1"), &f.err);
			CHECK_OK(db_compact(f.db, &f.err), &f.err);
			CHECK_INT(status(&f).blocks, 1);
			CHECK(epochs_of(&f, g.plain) > 4);
		} else {
			REQUIRE(fixture_reopen(&f));
		}
	}
	fixture_close(&f);
}

/* Late rows are in the epoch of their coming: what is the latest row of a series goes by time. */
TEST(late_rows_in_a_newer_epoch_are_not_the_latest)
{
	static const char *const want =
		"@50\nmain;a 1\n@51\nmain;late 4\n@60\nmain;b 2\n@70\nmain;c 3\n@99\nmain;d 4\n";
	const struct profile_type type = {
		STR("p"), STR("samples"), STR("count"), STR(""), STR(""), true };
	struct sum_stats stats;
	const struct db_series *s;
	struct db_series *series;
	struct db_querier *q;
	struct fixture f;
	struct labels l;
	__int128 total;
	size_t n;

	REQUIRE(open_small(&f, no_budget));
	l = job(&f, "j", "i");
	CHECK_OK(put(&f, l, 50, "main;a 1"), &f.err);
	CHECK_OK(put(&f, l, 60, "main;b 2"), &f.err);
	CHECK_OK(put(&f, l, 70, "main;c 3"), &f.err);
	CHECK_OK(put(&f, l, 99, "main;d 4"), &f.err);
	fixture_maintain(&f); /* ends it */
	CHECK_OK(put(&f, l, 51, "main;late 4"), &f.err);
	/* The same time again is refused, in whichever epoch the row is, unless it is the same row. */
	fixture_maintain(&f);
	CHECK_INT(put(&f, l, 60, "main;b 9"), ERR_EXISTS);
	CHECK_INT(put(&f, l, 60, "main;c 2"), ERR_EXISTS);
	CHECK_OK(put(&f, l, 60, "main;b 2"), &f.err);
	CHECK_INT(epochs_of(&f, l), 2);
	for (int i = 0; i < 3; i++) {
		static const struct {
			int64_t max_s;
			int total;
		} cases[] = { { 99, 4 }, { 98, 3 }, { 60, 2 }, { 59, 4 }, { 50, 1 }, { 49, 0 } };

		check_rows(&f, l, want);
		REQUIRE_OK(db_querier_open(f.db, ALL, NULL, &q, &f.err), &f.err);
		REQUIRE_OK(db_select(q, NULL, 0, &f.arena, &series, &n, &f.err), &f.err);
		for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
			total = 0;
			for (size_t k = 0; k < n; k++) {
				if (!labels_eq(series[k].labels, l))
					continue;
				s = &series[k];
				stats = (struct sum_stats){ 0 };
				CHECK_OK(db_sum(q, &s, 1, &type, 0, cases[c].max_s * SEC, SUM_LAST, NULL, &f.arena,
							 &stats, &f.err),
					&f.err);
				total += stats.total;
			}
			CHECK_INT((int)total, cases[c].total);
		}
		db_querier_close(q);
		if (i == 1) {
			CHECK_OK(put(&f, job(&f, "other", "i"), 150, "x 1"), &f.err);
			CHECK_OK(db_compact(f.db, &f.err), &f.err);
			CHECK_INT(status(&f).blocks, 1);
		} else {
			REQUIRE(fixture_reopen(&f));
		}
	}
	fixture_close(&f);
}
