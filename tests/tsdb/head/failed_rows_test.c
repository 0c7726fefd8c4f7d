/*
 * Rows whose commit fails may be on the disk all the same. Each count is in exactly one delta, and
 * deleted rows do not come back.
 */
#include <unistd.h>

#include "tests/tsdb/head/epoch_world.h"
#include "tests/tsdb/read/numbers.h"
#include "tsdb/store/store.h"

enum fault { NONE, BEFORE, AFTER };

struct faulty {
	struct store_ops ops;
	_Atomic int next; /* for the next write */
	atomic_bool hold; /* writes wait */
	_Atomic int pass; /* so many go through all the same */
	_Atomic int waiting;
	atomic_bool shut; /* no store is opened */
};

static _Thread_local bool never_held; /* a thread that makes a window, which is written to */

static enum err_code faulty_open(const struct store_ops *ops, struct store *s, struct err *err)
{
	const struct faulty *f = (const struct faulty *)ops;

	if (atomic_load(&f->shut))
		return err_set(err, ERR_IO, "Input/output error");
	return store_leveldb.open(&store_leveldb, s, err);
}

static enum err_code faulty_write(
	const struct store_ops *ops, struct store *s, struct store_batch *b, struct err *err)
{
	struct faulty *f = (struct faulty *)(uintptr_t)ops;
	enum err_code rc = ERR_OK;
	int now;

	atomic_fetch_add(&f->waiting, 1);
	while (atomic_load(&f->hold) && !never_held) {
		if (atomic_load(&f->pass)) { /* one thread writes */
			atomic_fetch_sub(&f->pass, 1);
			break;
		}
		usleep(1000);
	}
	atomic_fetch_sub(&f->waiting, 1);
	now = atomic_exchange(&f->next, NONE);
	if (now != BEFORE)
		rc = store_leveldb.write(&store_leveldb, s, b, err);
	return rc || now == NONE ? rc : err_set(err, ERR_IO, "Input/output error");
}

#define STEPS_MAX 8

static const struct fault_case {
	const char *name;
	struct fault_step {
		int64_t s;
		int count; /* what the target has counted */
		enum fault fault;
	} steps[STEPS_MAX];
	const char *rows;
} fault_cases[] = {
	{ "not there", { { 40, 10, NONE }, { 80, 15, NONE }, { 90, 22, BEFORE }, { 95, 30, NONE } },
		"@40\n@80\nmain;x 5\n@95\nmain;x 15\n" },
	{ "there all the same",
		{ { 40, 10, NONE }, { 80, 15, NONE }, { 90, 22, AFTER }, { 95, 30, NONE } },
		"@40\n@80\nmain;x 5\n@90\nmain;x 7\n@95\nmain;x 8\n" },
	{ "twice", { { 40, 10, NONE }, { 60, 15, BEFORE }, { 70, 22, BEFORE }, { 90, 30, NONE } },
		"@40\n@90\nmain;x 20\n" },
	{ "once so and once so",
		{ { 40, 10, NONE }, { 60, 15, AFTER }, { 70, 22, BEFORE }, { 90, 30, NONE } },
		"@40\n@60\nmain;x 5\n@90\nmain;x 15\n" },
	{ "the first one", { { 40, 10, BEFORE }, { 60, 15, NONE }, { 70, 22, NONE } },
		"@60\n@70\nmain;x 7\n" },
	{ "the first one, there", { { 40, 10, AFTER }, { 60, 15, NONE }, { 70, 22, NONE } },
		"@40\n@60\nmain;x 5\n@70\nmain;x 7\n" },
	{ "with the new epoch",
		{ { 40, 10, NONE }, { 110, 15, BEFORE }, { 120, 22, NONE }, { 130, 30, NONE } },
		"@40\n@120\nmain;x 12\n@130\nmain;x 8\n" },
	{ "with the new epoch, there",
		{ { 40, 10, NONE }, { 110, 15, AFTER }, { 120, 22, NONE }, { 130, 30, NONE } },
		"@40\n@110\nmain;x 5\n@120\nmain;x 7\n@130\nmain;x 8\n" },
	{ "too long ago then", { { 40, 10, NONE }, { 150, 15, BEFORE }, { 161, 22, NONE } },
		"@40\n@161\n" },
};

static void check_fault(const struct fault_case *c)
{
	struct faulty faulty = { .ops = { faulty_open, faulty_write } };
	struct buf none = { 0 };
	struct fixture f;
	struct labels l;
	char text[40];
	bool first;
	int before = 0;

	REQUIRE(open_small_over(&f, few_nodes, &faulty.ops));
	l = job(&f, "j", "i");
	fill(&f, job(&f, "j", "other"), 0, 'a', 1, 10, &none);
	/* Another job's: a window is made with writes of its own. */
	CHECK_OK(put(&f, job(&f, "k", "i"), 101, "a 1"), &f.err);
	for (const struct fault_step *s = c->steps; s < c->steps + STEPS_MAX && s->s; s++) {
		atomic_store(&faulty.next, s->fault);
		snprintf(text, sizeof(text), "main;x %d", s->count);
		if (s->fault)
			CHECK_ERR(scrape(&f, l, s->s, text, &first), &f.err, ERR_IO, "Input/output error");
		else
			CHECK_OK(scrape(&f, l, s->s, text, &first), &f.err);
		wait_ready(f.db);
	}
	before = check_failures;
	check_rows(&f, l, c->rows);
	f.o.store = NULL;
	REQUIRE(fixture_reopen(&f));
	check_rows(&f, l, c->rows);
	if (check_failures != before)
		CHECK_FAIL("in: %s", c->name);
	buf_release(&none);
	fixture_close(&f);
}

TEST(what_a_failed_row_counted_is_in_the_next_delta)
{
	for (size_t i = 0; i < sizeof(fault_cases) / sizeof(fault_cases[0]); i++)
		check_fault(&fault_cases[i]);
}

struct answers {
	struct mutex lock;
	struct cond changed;
	int ok, failed;
};

static void answered(void *ctx, enum err_code rc, const struct err *err)
{
	struct answers *a = ctx;

	(void)err;
	mutex_lock(&a->lock);
	*(rc ? &a->failed : &a->ok) += 1;
	cond_broadcast(&a->changed);
	mutex_unlock(&a->lock);
}

/* Three scrapes are under way when the first one's commit fails; the last is in another window. */
static void check_queue(enum fault fault, const char *want)
{
	struct faulty faulty = { .ops = { faulty_open, faulty_write } };
	struct answers answers = { 0 };
	struct buf none = { 0 };
	struct fixture f;
	struct labels l;
	char text[40];
	bool first;

	mutex_init(&answers.lock);
	cond_init(&answers.changed);
	REQUIRE(open_small_over(&f, few_nodes, &faulty.ops));
	l = job(&f, "j", "i");
	fill(&f, job(&f, "j", "other"), 0, 'a', 1, 10, &none);
	CHECK_OK(put(&f, job(&f, "k", "i"), 101, "a 1"), &f.err);
	CHECK_OK(scrape(&f, l, 60, "main;x 1", &first), &f.err);
	atomic_store(&faulty.next, fault);
	atomic_store(&faulty.hold, true);
	for (int i = 0; i < 3; i++) {
		struct db_append a = { l, (80 + 15 * i) * SEC, 40 * SEC, NULL, cumulative, true };

		snprintf(text, sizeof(text), "main;x %d", 2 << i);
		a.profile = profile(&f, text);
		CHECK_OK(db_append(f.db, &a, NULL, answered, &answers, &f.err), &f.err);
		CHECK(i || WAIT_FOR(atomic_load(&faulty.waiting)));
	}
	atomic_store(&faulty.hold, false);
	mutex_lock(&answers.lock);
	while (answers.ok + answers.failed < 3)
		cond_wait(&answers.changed, &answers.lock);
	mutex_unlock(&answers.lock);
	CHECK_INT(answers.failed, 3);
	wait_ready(f.db);
	CHECK_OK(scrape(&f, l, 120, "main;x 101", &first), &f.err);
	CHECK_OK(scrape(&f, l, 130, "main;x 103", &first), &f.err);
	check_rows(&f, l, want);
	f.o.store = NULL;
	REQUIRE(fixture_reopen(&f));
	check_rows(&f, l, want);
	buf_release(&none);
	fixture_close(&f);
	mutex_destroy(&answers.lock);
	cond_destroy(&answers.changed);
}

TEST(of_many_failed_rows_the_first_ones_base_counts)
{
	check_queue(BEFORE, "@60\n@120\nmain;x 100\n@130\nmain;x 2\n");
	check_queue(AFTER, "@60\n@80\nmain;x 1\n@120\nmain;x 99\n@130\nmain;x 2\n");
}

static void late_windows(struct db_options *o)
{
	few_nodes(o);
	o->too_old_ns = WINDOW;
}

struct compaction {
	struct db *db;
	atomic_bool ended;
};

static void compact(void *ctx)
{
	struct compaction *c = ctx;
	struct err err;

	CHECK_OK(db_compact(c->db, &err), &err);
	atomic_store(&c->ended, true);
}

static void append_held(struct fixture *f, struct labels l, int64_t s, struct answers *answers)
{
	static const enum value_kind kinds[] = { KIND_DELTA };
	struct db_append a = { l, s * SEC, SEC, profile(f, "x 1"), kinds, false };

	CHECK_OK(db_append(f->db, &a, NULL, answered, answers, &f->err), &f->err);
}

static bool is_sealed(struct db *db, size_t i)
{
	bool sealed;

	mutex_lock(&db->lock);
	sealed = db->windows[i]->sealed;
	mutex_unlock(&db->lock);
	return sealed;
}

static int answers_ok(struct answers *a)
{
	int ok;

	mutex_lock(&a->lock);
	ok = a->ok;
	mutex_unlock(&a->lock);
	return ok;
}

/* The cut waits for the window's last writer, whose write fails: its store is opened anew first. */
TEST(a_cut_does_not_wait_for_a_writer_that_fails)
{
	struct faulty faulty = { .ops = { faulty_open, faulty_write } };
	struct compaction compaction = { 0 };
	struct answers answers = { 0 };
	struct thread thread;
	struct fixture f;
	struct labels l;

	mutex_init(&answers.lock);
	cond_init(&answers.changed);
	REQUIRE(open_small_over(&f, late_windows, &faulty.ops));
	compaction.db = f.db;
	l = job(&f, "j", "i");
	CHECK_OK(put(&f, l, 150, "x 1"), &f.err);
	CHECK_OK(put(&f, l, 210, "x 1"), &f.err);
	never_held = true;
	atomic_store(&faulty.hold, true);
	append_held(&f, l, 310, &answers); /* with it the first window is due */
	REQUIRE(WAIT_FOR(atomic_load(&faulty.waiting) == 1));
	append_held(&f, l, 160, &answers);
	atomic_store(&faulty.pass, 1);
	CHECK(WAIT_FOR(answers_ok(&answers) && atomic_load(&faulty.waiting)));
	REQUIRE_OK(thread_start(&thread, "compact", compact, &compaction, &f.err), &f.err);
	CHECK(WAIT_FOR(is_sealed(f.db, 0)));
	atomic_store(&faulty.next, BEFORE);
	atomic_store(&faulty.hold, false);
	CHECK(WAIT_FOR(atomic_load(&compaction.ended)));
	never_held = false;
	wait_ready(f.db);
	fixture_close(&f);
	thread_join(&thread);
	mutex_destroy(&answers.lock);
	cond_destroy(&answers.changed);
}

/* ---- deleting ---- */

static enum err_code put_number(struct fixture *f, struct labels l, int64_t s, double value)
{
	return numbers_wait(f->db, &(struct db_number){ l, s * SEC, value }, 1, &f->err);
}

static bool count_number(void *ctx, const struct db_series *s, int64_t ts_ns, double value)
{
	(void)s;
	(void)ts_ns;
	(void)value;
	++*(int *)ctx;
	return true;
}

static void check_nothing_is_there(struct fixture *f, struct labels l)
{
	size_t warnings = 0;
	int numbers = 0;

	check_rows(f, l, "");
	CHECK(numbers_each(f->db, ALL, count_number, &numbers, &warnings, &f->err));
	CHECK_INT(numbers, 0);
	CHECK_INT(warnings, 0);
}

/* The row is newer than all that was acknowledged, and deleted while the store is reopened, or
 * once it is there again. */
static void check_deletion(bool number, bool shut)
{
	struct faulty faulty = { .ops = { faulty_open, faulty_write } };
	struct matcher m;
	struct fixture f;
	struct labels l, up;

	REQUIRE(open_small_over(&f, NULL, &faulty.ops));
	l = job(&f, "j", "i");
	up = labels_of(&f.arena, "up", "j", "i");
	CHECK_OK(put(&f, l, 40, "x 1"), &f.err);
	CHECK_OK(put_number(&f, up, 40, 1), &f.err);
	atomic_store(&faulty.shut, shut);
	atomic_store(&faulty.next, AFTER);
	CHECK_INT(number ? put_number(&f, up, 50, 0) : put(&f, l, 50, "x 2"), ERR_IO);
	if (!shut)
		wait_ready(f.db);
	REQUIRE_OK(matcher_init(&m, MATCH_EQ, STR("job"), STR("j"), &f.err), &f.err);
	CHECK_OK(db_delete_series(f.db, &m, 1, 0, 100 * SEC, &f.err), &f.err);
	matcher_release(&m);
	atomic_store(&faulty.shut, false);
	wait_ready(f.db);
	check_nothing_is_there(&f, l);
	REQUIRE(fixture_reopen(&f));
	check_nothing_is_there(&f, l);
	/* Later rows are not deleted. */
	CHECK_OK(put(&f, l, 60, "x 3"), &f.err);
	check_rows(&f, l, "@60\nx 3\n");
	fixture_close(&f);
}

TEST(a_deletion_takes_what_came_to_the_disk_without_an_answer)
{
	for (int i = 0; i < 4; i++)
		check_deletion(i & 1, i & 2);
}
