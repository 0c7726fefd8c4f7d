/* Members of a union: lists, counts, warnings; and they come and go while queries run. */
#include "tests/tsdb/read/spread.h"

#include "base/thread.h"
#include "tsdb/catalog/loss_report.h"

/* ---- members ---- */

TEST(members_are_listed)
{
	struct db_block_status *v;
	struct db_status status;
	struct loss *losses;
	struct spread s;
	struct err err;
	size_t n;

	REQUIRE(open_all(&s));
	fill_all(&s);
	CHECK_OK(db_list(s.all, &s.one.arena, &v, &n, &err), &err);
	REQUIRE(n == MEMBERS);
	for (size_t i = 0; i < n; i++) {
		CHECK_STR(str_of(v[i].shard), names[i]);
		CHECK(v[i].rows > 0);
	}
	db_status(s.all, &status);
	CHECK_INT(status.rows, STEPS * PODS);
	CHECK_INT(status.numbers, STEPS * PODS);
	CHECK_INT(status.windows, MEMBERS);
	CHECK_INT(status.min_ns, (T0 + STEP_S) * SEC);
	CHECK_INT(status.max_ns, (T0 + STEPS * STEP_S) * SEC);
	err_set(&err, ERR_CORRUPT, "it is gone");
	CHECK(db_lost(s.of[1].db, LOSS_BLOCK, "blocks/x", T0 * SEC, (T0 + 99) * SEC, 3, &err));
	CHECK_OK(db_losses(s.all, &s.one.arena, &losses, &n, &err), &err);
	REQUIRE(n == 1);
	CHECK_STR(losses[0].shard, "b");
	CHECK_INT(db_state(s.all, &err), DB_READY);
	close_all(&s);
}

TEST(gauges_are_those_of_the_union)
{
	struct spread s;

	REQUIRE(open_all(&s));
	db_close(s.one.db); /* which has gauges too */
	s.one.db = NULL;
	for (int i = 0; i < 5; i++)
		number_to(s.of[(size_t)i % MEMBERS].db, pod_labels(&s, "up", i), T0 + 10, 1);
	CHECK_INT(metric_value("epimetheus_tsdb_series"), 5);
	CHECK_INT(metric_value("epimetheus_tsdb_windows"), 3);
	close_all(&s);
}

TEST(what_writes_is_asked_of_the_shard)
{
	static const char *const types[] = { "cpu/nanoseconds", NULL };
	static const char *const lines[] = { "main;f 7", NULL };
	const struct matcher m = { .op = MATCH_EQ, .name = STR("job"), .value = STR("x") };
	struct db_number number = { .ts_ns = T0 * SEC };
	size_t accepted;
	struct str name;
	struct spread s;
	struct err err;

	REQUIRE(open_all(&s));
	number.labels = pod_labels(&s, "up", 0);
	CHECK_INT(db_delete_series(s.all, &m, 1, 0, INT64_MAX, &err), ERR_UNSUPPORTED);
	CHECK_STR(str_of(err.msg),
		"delete series: this server only answers queries: send the "
		"request to the shard");
	CHECK_INT(db_snapshot(s.all, &s.one.arena, &name, &err), ERR_UNSUPPORTED);
	CHECK_INT(db_compact(s.all, &err), ERR_UNSUPPORTED);
	CHECK_INT(db_verify_head(s.all, &err), ERR_UNSUPPORTED);
	CHECK_INT(db_accept_losses(s.all, NULL, 0, &accepted, &err), ERR_UNSUPPORTED);
	CHECK_INT(append_wait(s.all, number.labels, T0 * SEC, SEC,
				  profile_of(&s.one.arena, types, lines), NULL, false, NULL, &err),
		ERR_UNSUPPORTED);
	CHECK_INT(numbers_wait(s.all, &number, 1, &err), ERR_UNSUPPORTED);
	CHECK_INT(db_union_add(s.all, "b", s.one.db, NULL, NULL, &err), ERR_EXISTS);
	CHECK_STR(str_of(err.msg), "there is a shard b already");
	db_union_remove(s.all, "nobody");
	db_maintain(s.all, true);
	close_all(&s);
}

static void tell(void *ctx, int64_t min_ns, int64_t max_ns, db_warn_fn warn, void *to)
{
	int64_t through_ns = *(const int64_t *)ctx;

	CHECK(min_ns >= 0);
	if (max_ns > through_ns)
		warn(to, "shard late is late");
}

TEST(members_and_losses_warn)
{
	int64_t through_ns = (T0 + 100) * SEC;
	const struct str *v;
	struct db_querier *q;
	struct spread s;
	struct err err;
	size_t n;

	REQUIRE(open_all(&s));
	CHECK_OK(db_union_add(s.all, "late", s.one.db, tell, &through_ns, &err), &err);
	err_set(&err, ERR_CORRUPT, "it is gone");
	CHECK(db_lost(s.of[1].db, LOSS_BLOCK, "blocks/x", (T0 + 200) * SEC, (T0 + 300) * SEC, 3, &err));
	REQUIRE_OK(db_querier_open(s.all, T0 * SEC, (T0 + 100) * SEC, NULL, &q, &err), &err);
	db_querier_warnings(q, &n);
	CHECK_INT(n, 0);
	db_querier_close(q);
	REQUIRE_OK(db_querier_open(s.all, T0 * SEC, (T0 + 250) * SEC, NULL, &q, &err), &err);
	v = db_querier_warnings(q, &n);
	REQUIRE(n == 2);
	CHECK_STR(v[0], "shard late is late");
	CHECK(str_has_prefix(v[1], STR("shard b: ")));
	db_querier_close(q);
	db_union_remove(s.all, "late");
	close_all(&s);
}

/*
 * "rules" lacks something: is it said to a reader of these series? "calls:total" is recorded there,
 * "up" is a number of the members a to c, "cpu" a profile, "new" is nowhere yet.
 */
static const struct {
	const char *name; /* NULL: the reader selects by no name */
	enum match_op op;
	unsigned kinds; /* 0: he selects nothing */
	size_t warnings;
} readers[] = {
	{ "cpu", MATCH_EQ, DB_PROFILES, 0 },
	{ "up", MATCH_EQ, DB_NUMBERS, 0 },
	{ "up", MATCH_EQ, DB_PROFILES | DB_NUMBERS, 0 },
	{ "calls:total", MATCH_EQ, DB_NUMBERS, 2 },
	{ "new", MATCH_EQ, DB_NUMBERS, 2 },
	{ "new", MATCH_EQ, DB_PROFILES, 0 },
	{ "up", MATCH_NE, DB_NUMBERS, 2 },
	{ NULL, MATCH_EQ, DB_NUMBERS, 2 },
	{ NULL, MATCH_EQ, DB_PROFILES, 0 },
	{ NULL, MATCH_EQ, 0, 2 },
};

static size_t warnings_of_reader(struct spread *s, size_t reader)
{
	struct matcher m = { .op = readers[reader].op,
		.name = STR(LABEL_NAME),
			.value = readers[reader].name ? str_of(readers[reader].name) : STR("") };
	struct db_querier *q;
	struct db_series *v;
	struct err err;
	size_t n;

	CHECK_OK(db_querier_open(s->all, T0 * SEC, (T0 + 250) * SEC, NULL, &q, &err), &err);
	if (readers[reader].kinds)
		CHECK_OK(db_select_kinds(q, readers[reader].kinds, &m, readers[reader].name != NULL,
					 &s->one.arena, &v, &n, &err),
			&err);
	db_querier_warnings(q, &n);
	db_querier_close(q);
	return n;
}

TEST(what_recorded_numbers_lack_is_said_to_who_reads_them)
{
	int64_t through_ns = (T0 + 100) * SEC;
	struct spread s;
	struct err err;

	REQUIRE(open_all(&s));
	db_union_set_records(s.all, "rules");
	for (int i = 0; i < 3; i++)
		number_to(s.of[i].db, pod_labels(&s, "up", i), T0 + 10, 1);
	number_to(s.one.db, pod_labels(&s, "calls:total", 0), T0 + 10, 1);
	CHECK_OK(db_union_add(s.all, "rules", s.one.db, tell, &through_ns, &err), &err);
	err_set(&err, ERR_CORRUPT, "it is gone");
	CHECK(db_lost(s.one.db, LOSS_WINDOW, "head/1", (T0 + 200) * SEC, (T0 + 300) * SEC, 3, &err));
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		size_t n = warnings_of_reader(&s, i);

		if (n != readers[i].warnings)
			CHECK_FAIL("reader %zu: %zu warnings, not %zu", i, n, readers[i].warnings);
	}
	db_union_remove(s.all, "rules");
	close_all(&s);
}

/* What any other member lacks is said to everybody. */
TEST(what_other_members_lack_is_said_to_all)
{
	int64_t through_ns = (T0 + 100) * SEC;
	struct spread s;
	struct err err;

	REQUIRE(open_all(&s));
	db_union_set_records(s.all, "rules");
	CHECK_OK(db_union_add(s.all, "late", s.one.db, tell, &through_ns, &err), &err);
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		CHECK_INT(warnings_of_reader(&s, i), 1);
	db_union_remove(s.all, "late");
	close_all(&s);
}

struct fresher {
	struct spread *s;
	bool has_all;
};

static void tell_until_fresh(void *ctx, int64_t min_ns, int64_t max_ns, db_warn_fn warn, void *to)
{
	const struct fresher *f = ctx;

	if (!f->has_all)
		warn(to, "shard late is late");
}

/* The union is asked for what it lacks: at that moment a member gets what it lacked. */
static void get_all(void *ctx, int64_t min_ns, int64_t max_ns, db_warn_fn warn, void *to)
{
	struct fresher *f = ctx;

	if (!f->has_all)
		number_to(f->s->one.db, pod_labels(f->s, "up", 0), T0 + 10, 1);
	f->has_all = true;
}

/* The answer has it, or a warning. */
TEST(a_member_that_gets_what_it_lacked_while_a_querier_opens)
{
	struct spread s;
	struct fresher f = { .s = &s };
	struct buf text = { 0 };
	struct err err;

	REQUIRE(open_all(&s));
	CHECK_OK(db_union_add(s.all, "late", s.one.db, tell_until_fresh, &f, &err), &err);
	db_union_tell(s.all, get_all, &f);
	CHECK(numbers_text(s.all, T0 * SEC, (T0 + 100) * SEC, &text, &err));
	CHECK(text.len > 0);
	buf_release(&text);
	db_union_remove(s.all, "late");
	close_all(&s);
}

/* ---- coming and going ---- */

struct removing {
	struct spread *s;
	_Atomic bool removed;
};

static void remove_b(void *ctx)
{
	struct removing *r = ctx;

	db_union_remove(r->s->all, "b");
	atomic_store(&r->removed, true);
}

TEST(a_member_goes_when_no_querier_has_it)
{
	struct removing r = { 0 };
	struct thread thread = { 0 };
	struct buf before = { 0 }, after = { 0 };
	struct db_querier *q, *fork;
	struct labels labels;
	struct spread s;
	struct err err;

	REQUIRE(open_all(&s));
	fill_all(&s);
	r.s = &s;
	labels = pod_labels(&s, "p", 0); /* which b has */
	CHECK(rows_text(s.all, labels, 0, INT64_MAX, &before, &err));
	REQUIRE_OK(db_querier_open(s.all, 0, INT64_MAX, NULL, &q, &err), &err);
	REQUIRE_OK(db_querier_fork(q, &fork, &err), &err);
	REQUIRE_OK(thread_start(&thread, "remover", remove_b, &r, &err), &err);
	/* it is gone for others while the querier has it */
	for (;;) {
		buf_clear(&after);
		CHECK(rows_text(s.all, labels, 0, INT64_MAX, &after, &err));
		if (!after.len)
			break;
	}
	CHECK(!atomic_load(&r.removed));
	db_querier_close(fork);
	CHECK(!atomic_load(&r.removed));
	db_querier_close(q);
	thread_join(&thread);
	CHECK(atomic_load(&r.removed));
	CHECK_OK(db_union_add(s.all, "b", s.of[1].db, NULL, NULL, &err), &err);
	CHECK(rows_text(s.all, labels, 0, INT64_MAX, &after, &err));
	CHECK(str_eq(buf_str(&before), buf_str(&after)));
	buf_release(&before);
	buf_release(&after);
	close_all(&s);
}

struct asking {
	struct spread *s;
	_Atomic bool *end;
	unsigned wrong;
};

static void ask_often(void *ctx)
{
	struct asking *x = ctx;
	struct buf text = { 0 };
	struct err err;

	while (!atomic_load(x->end)) {
		size_t warnings = 0;

		buf_clear(&text);
		x->wrong += !sum_text(x->s->all, NULL, 0, INT64_MAX, &text, &warnings, &err) || warnings ||
			!text.len;
	}
	buf_release(&text);
}

TEST(members_come_and_go_while_queries_run)
{
	struct thread threads[3] = { 0 };
	struct asking asking[3];
	struct buf one = { 0 }, all = { 0 };
	_Atomic bool end = false;
	struct spread s;
	struct err err;

	REQUIRE(open_all(&s));
	fill_all(&s);
	for (int i = 0; i < 3; i++) {
		asking[i] = (struct asking){ &s, &end, 0 };
		REQUIRE_OK(thread_start(&threads[i], "asker", ask_often, &asking[i], &err), &err);
	}
	for (size_t i = 0; i < 60; i++) {
		db_union_remove(s.all, names[i % MEMBERS]);
		CHECK_OK(
			db_union_add(s.all, names[i % MEMBERS], s.of[i % MEMBERS].db, NULL, NULL, &err), &err);
	}
	atomic_store(&end, true);
	for (int i = 0; i < 3; i++) {
		thread_join(&threads[i]);
		CHECK_INT(asking[i].wrong, 0);
	}
	CHECK(sum_text(s.one.db, NULL, 0, INT64_MAX, &one, NULL, &err));
	CHECK(sum_text(s.all, NULL, 0, INT64_MAX, &all, NULL, &err));
	check_same(&one, &all, "sum");
	buf_release(&one);
	buf_release(&all);
	close_all(&s);
}

TEST(a_union_may_be_empty)
{
	struct db_block_status *v;
	struct db_querier *q;
	struct db_series *series;
	struct arena a;
	struct err err;
	struct db *u;
	size_t n;

	arena_init(&a, 0);
	REQUIRE_OK(db_union_open(&u, &err), &err);
	REQUIRE_OK(db_querier_open(u, 0, INT64_MAX, NULL, &q, &err), &err);
	CHECK_OK(db_select(q, NULL, 0, &a, &series, &n, &err), &err);
	CHECK_INT(n, 0);
	CHECK(!db_querier_has_blocks(q));
	db_querier_close(q);
	CHECK_OK(db_list(u, &a, &v, &n, &err), &err);
	CHECK_INT(n, 0);
	db_close(u);
	arena_release(&a);
}
