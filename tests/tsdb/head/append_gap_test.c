/* The interval of rows whose sender does not say it: the time since the row before. */
#include "tests/check.h"
#include "tests/tsdb/fixture.h"

#define T0 INT64_C(1700000000)
#define MAX (300 * SEC)

static enum err_code try_push(struct fixture *f, const char *pod, int64_t at_s)
{
	static const char *const types[] = { "inuse_space/bytes", NULL };
	static const enum value_kind kinds[] = { KIND_GAUGE };
	struct db_append a = {
		.ts_ns = (T0 + at_s) * SEC, .interval_ns = SEC, .gap_max_ns = MAX, .kinds = kinds
	};
	struct arena arena;
	enum err_code rc;

	arena_init(&arena, 0);
	a.labels = labels_of(&arena, "memory", "j", pod);
	a.profile = profile_of(&arena, types, (const char *const[]){ "main 7", NULL });
	rc = append_this(f->db, &a, NULL, &f->err);
	arena_release(&arena);
	return rc;
}

static void push(struct fixture *f, const char *pod, int64_t at_s)
{
	REQUIRE_OK(try_push(f, pod, at_s), &f->err);
}

struct seen {
	const char *pod;
	struct buf text;
};

static bool see(void *ctx, const struct db_series *s, const struct db_row *row)
{
	struct seen *x = ctx;

	if (str_is(labels_get(s->labels, STR("instance")), x->pod))
		buf_printf(&x->text, " %d:%d", (int)(row->ts_ns / SEC - T0), (int)(row->interval_ns / SEC));
	return true;
}

/* " time:interval" of each row, in seconds. */
static void check_rows(struct fixture *f, const char *pod, const char *want)
{
	struct seen x = { .pod = pod };
	size_t warnings;

	REQUIRE(rows_each(f->db, 0, INT64_MAX, see, &x, &warnings, &f->err));
	CHECK_STR(buf_str(&x.text), want);
	buf_release(&x.text);
}

static bool open_at_t0(struct fixture *f)
{
	if (!fixture_open(f))
		return false;
	f->o.too_old_ns = 100000 * NS_PER_HOUR;
	f->o.retention_ns = 0;
	return fixture_reopen(f);
}

TEST(the_time_since_the_row_before)
{
	struct fixture f;

	REQUIRE(open_at_t0(&f));
	push(&f, "a", 10);
	push(&f, "b", 12);
	push(&f, "a", 20);
	push(&f, "a", 35);
	push(&f, "b", 42);
	push(&f, "a", 35 + 3600); /* it was away: no more than the limit */
	check_rows(&f, "a", " 10:1 20:10 35:15 3635:300");
	check_rows(&f, "b", " 12:1 42:30");
	fixture_close(&f);
}

TEST(late_rows_look_back_from_their_own_time)
{
	struct fixture f;

	REQUIRE(open_at_t0(&f));
	push(&f, "a", 10);
	push(&f, "a", 60);
	push(&f, "a", 40);
	push(&f, "a", 5);
	push(&f, "a", 70);
	check_rows(&f, "a", " 5:1 10:1 40:30 60:50 70:10");
	fixture_close(&f);
}

TEST(after_a_restart_the_rows_of_the_window_tell)
{
	struct fixture f;

	REQUIRE(open_at_t0(&f));
	push(&f, "a", 10);
	push(&f, "b", 15);
	REQUIRE(fixture_reopen(&f));
	push(&f, "a", 30);
	push(&f, "c", 31);
	check_rows(&f, "a", " 10:1 30:20");
	check_rows(&f, "c", " 31:1");
	fixture_close(&f);
}

/* The interval is ours: a sender that asks again did not change it. */
TEST(a_row_that_comes_again_keeps_its_interval)
{
	struct fixture f;

	REQUIRE(fixture_open(&f));
	f.o.too_old_ns = 100000 * NS_PER_HOUR;
	f.o.retention_ns = 0;
	f.o.window_ns = 100 * SEC;
	REQUIRE(fixture_reopen(&f));
	push(&f, "a", 90);
	push(&f, "a", 120); /* in another window */
	REQUIRE(fixture_reopen(&f));
	CHECK_OK(try_push(&f, "a", 120), &f.err);
	check_rows(&f, "a", " 90:1 120:30");
	fixture_close(&f);
}
