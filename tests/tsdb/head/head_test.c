/* Windows, retention, selecting, names, reading only, and readers beside writers. */
#include <stdlib.h>
#include <unistd.h>

#include "base/metrics.h"
#include "tests/check.h"
#include "tests/tsdb/fixture.h"
#include "tests/wait.h"
#include "tsdb/catalog/state.h"
#include "tsdb/db.h"
#include "tsdb/read/querier_internal.h"

static const char *const types[] = { "samples/count", NULL };

static struct pprof *some(struct arena *a, const char *line)
{
	return profile_of(a, types, (const char *const[]){ line, NULL });
}

static void append(struct fixture *f, const char *name, const char *job, const char *instance,
	int64_t ts_s, const char *line)
{
	struct arena a;

	arena_init(&a, 0);
	CHECK_OK(append_wait(f->db, labels_of(&a, name, job, instance), ts_s * SEC, SEC, some(&a, line),
				 NULL, false, NULL, &f->err),
		&f->err);
	arena_release(&a);
}

/* "job/instance ..." of what is selected. */
static void check_select(struct fixture *f, enum match_op op, const char *name, const char *value,
	int64_t min_s, int64_t max_s, const char *want)
{
	struct db_querier *q;
	struct db_series *s;
	struct matcher m;
	struct buf got = { 0 };
	size_t n;

	REQUIRE_OK(matcher_init(&m, op, str_of(name), str_of(value), &f->err), &f->err);
	REQUIRE_OK(db_querier_open(f->db, min_s * SEC, max_s * SEC, NULL, &q, &f->err), &f->err);
	REQUIRE_OK(db_select(q, &m, 1, &f->arena, &s, &n, &f->err), &f->err);
	for (size_t i = 0; i < n; i++)
		buf_printf(&got, "%s" STR_FMT "/" STR_FMT, i ? " " : "",
			STR_ARG(labels_get(s[i].labels, STR("job"))),
				STR_ARG(labels_get(s[i].labels, STR("instance"))));
	if (!str_is(buf_str(&got), want))
		CHECK_FAIL("%s%s\"%s\" in (%d, %d]: got \"" STR_FMT "\", want \"%s\"", name,
			match_op_name(op), value, (int)min_s, (int)max_s, STR_ARG(buf_str(&got)), want);
	buf_release(&got);
	db_querier_close(q);
	matcher_release(&m);
}

TEST(selecting)
{
	struct fixture f;

	REQUIRE(fixture_open(&f));
	append(&f, "p", "a", "1", 100, "x 1");
	append(&f, "p", "a", "2", 200, "x handler=/h 1");
	append(&f, "p", "b", "1", 300, "x 1");
	append(&f, "q", "b", "", 7000, "x 1");
	append(&f, "p", "a", "1", 7300, "x 1");
	for (int i = 0; i < 2; i++) {
		check_select(&f, MATCH_EQ, "job", "a", 0, 8000, "a/1 a/2");
		check_select(&f, MATCH_NE, "job", "a", 0, 8000, "b/1 b/");
		check_select(&f, MATCH_RE, "job", "a|c", 0, 8000, "a/1 a/2");
		check_select(&f, MATCH_NRE, "job", "a|c", 0, 8000, "b/1 b/");
		check_select(&f, MATCH_EQ, "__name__", "q", 0, 8000, "b/");
		/* A missing label is "". */
		check_select(&f, MATCH_EQ, "instance", "", 0, 8000, "b/");
		check_select(&f, MATCH_NE, "instance", "", 0, 8000, "a/1 b/1 a/2");
		check_select(&f, MATCH_RE, "instance", ".*", 0, 8000, "a/1 b/1 a/2 b/");
		/* What samples of job a have is for the caller to test; job b has no such thing. */
		check_select(&f, MATCH_EQ, "handler", "/zzz", 0, 8000, "a/1 a/2");
		check_select(&f, MATCH_NE, "handler", "/h", 0, 8000, "a/1 b/1 a/2 b/");
		check_select(&f, MATCH_EQ, "nobody", "x", 0, 8000, "");
		check_select(&f, MATCH_EQ, "job", "zzz", 0, 8000, "");
		/* Only with rows in the time asked for. */
		check_select(&f, MATCH_RE, "job", ".*", 100, 200, "a/2");
		check_select(&f, MATCH_RE, "job", ".*", 99, 100, "a/1");
		check_select(&f, MATCH_RE, "job", ".*", 200, 7000, "b/1 b/");
		check_select(&f, MATCH_RE, "job", ".*", 300, 6999, "");
		check_select(&f, MATCH_RE, "job", ".*", 7200, 7400, "a/1");
		REQUIRE(fixture_reopen(&f));
	}
	fixture_close(&f);
}

TEST(sample_labels_that_clash)
{
	struct fixture f;

	REQUIRE(fixture_open(&f));
	append(&f, "p", "a", "1", 100, "x instance=other 1");
	check_select(&f, MATCH_EQ, "sample_instance", "other", 0, 1000, "a/1");
	check_select(&f, MATCH_EQ, "sample_job", "other", 0, 1000, "");
	fixture_close(&f);
}

static void check_names(const struct str *v, size_t n, const char *want)
{
	struct buf got = { 0 };

	for (size_t i = 0; i < n; i++)
		buf_printf(&got, "%s" STR_FMT, i ? " " : "", STR_ARG(v[i]));
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
}

TEST(names_and_types)
{
	static const enum value_kind kinds[] = { KIND_CUMULATIVE, KIND_GAUGE };
	struct fixture f;
	struct db_querier *q;
	struct profile_type *t;
	struct db_series *s;
	struct str *v;
	struct buf got = { 0 };
	struct labels l;
	size_t n;

	REQUIRE(fixture_open(&f));
	append(&f, "p", "a", "1", 100, "x 1");
	append(&f, "q", "b", "2", 200, "x 1");
	l = labels_of(&f.arena, "memory", "a", "1");
	/* One series whose types change. */
	CHECK_OK(append_wait(f.db, l, 300 * SEC, SEC,
				 profile_of(&f.arena, (const char *const[]){ "alloc/bytes", "inuse/bytes", NULL },
					 (const char *const[]){ "x 1 2", NULL }),
				 kinds, true, NULL, &f.err),
		&f.err);
	CHECK_OK(append_wait(f.db, l, 400 * SEC, SEC,
				 profile_of(&f.arena, (const char *const[]){ "inuse/bytes", NULL },
					 (const char *const[]){ "x 1", NULL }),
				 kinds + 1, true, NULL, &f.err),
		&f.err);
	REQUIRE(fixture_reopen(&f));
	REQUIRE_OK(db_querier_open(f.db, 0, 1000 * SEC, NULL, &q, &f.err), &f.err);
	REQUIRE_OK(db_label_names(q, NULL, 0, 0, &f.arena, &v, &n, &f.err), &f.err);
	check_names(v, n, "__name__ instance job");
	REQUIRE_OK(db_label_values(q, STR("job"), NULL, 0, 0, &f.arena, &v, &n, &f.err), &f.err);
	check_names(v, n, "a b");
	/* One more than the limit says that there are more. */
	REQUIRE_OK(db_label_names(q, NULL, 0, 1, &f.arena, &v, &n, &f.err), &f.err);
	check_names(v, n, "__name__ instance");
	REQUIRE_OK(db_label_values(q, STR("job"), NULL, 0, 2, &f.arena, &v, &n, &f.err), &f.err);
	check_names(v, n, "a b");
	REQUIRE_OK(db_profile_types(q, &f.arena, &t, &n, &f.err), &f.err);
	for (size_t i = 0; i < n; i++) {
		profile_type_print(&got, &t[i]);
		buf_add_char(&got, '\n');
	}
	CHECK_STR(buf_str(&got),
		"memory:alloc:bytes:::delta\nmemory:inuse:bytes::\np:samples:count:::delta\n"
		"q:samples:count:::delta\n");
	db_querier_close(q);
	REQUIRE_OK(db_querier_open(f.db, 350 * SEC, 1000 * SEC, NULL, &q, &f.err), &f.err);
	REQUIRE_OK(db_select(q, NULL, 0, &f.arena, &s, &n, &f.err), &f.err);
	REQUIRE(n == 1);
	REQUIRE_OK(db_series_types(q, &s[0], &f.arena, &t, &n, &f.err), &f.err);
	CHECK_INT(n, 1);
	CHECK_STR(t[0].sample_type, "inuse");
	db_querier_close(q);
	buf_release(&got);
	fixture_close(&f);
}

/* ---- retention ---- */

TEST(retention_by_time_drops_whole_windows)
{
	struct fixture f;
	struct db_status status;
	struct db_querier *q;
	struct db_series *s;
	struct sum_stats stats = { 0 };
	const struct profile_type type = {
		STR("p"), STR("samples"), STR("count"), STR(""), STR(""), true };
	size_t n;

	REQUIRE(fixture_open(&f));
	f.o.window_ns = 100 * SEC;
	f.o.retention_ns = 250 * SEC;
	REQUIRE(fixture_reopen(&f));
	append(&f, "p", "old", "1", 50, "gone;once 1");
	append(&f, "p", "new", "1", 150, "x 1");
	append(&f, "p", "new", "1", 250, "x 1");
	/* Whoever reads keeps what it reads. */
	REQUIRE_OK(db_querier_open(f.db, 0, 99 * SEC, NULL, &q, &f.err), &f.err);
	REQUIRE_OK(db_select(q, NULL, 0, &f.arena, &s, &n, &f.err), &f.err);
	REQUIRE(n == 1);
	append(&f, "p", "new", "1", 340, "x 1");
	CHECK_OK(db_sum(q, &(const struct db_series *){ &s[0] }, 1, &type, 0, 99 * SEC, SUM_WINDOW,
				 NULL, &f.arena, &stats, &f.err),
		&f.err);
	CHECK_INT(stats.rows, 1);
	db_querier_close(q);
	db_maintain(f.db, true);
	db_status(f.db, &status);
	CHECK_INT(status.windows, 4);
	append(&f, "p", "new", "1", 350, "x 1");
	append(&f, "p", "new", "1", 351, "x 1");
	db_maintain(f.db, true);
	db_status(f.db, &status);
	CHECK_INT(status.windows, 3);
	CHECK_INT(status.series, 1);
	CHECK_INT(status.min_ns, 150 * SEC);
	check_select(&f, MATCH_RE, "job", ".*", 0, 1000, "new/1");
	REQUIRE(fixture_reopen(&f));
	check_select(&f, MATCH_RE, "job", ".*", 0, 1000, "new/1");
	db_status(f.db, &status);
	CHECK_INT(status.windows, 3);
	fixture_close(&f);
}

static void maintain(void *db)
{
	db_maintain(db, true);
}

/* A row of a dropped window's time that comes late does not take the files from under a reader. */
TEST(a_window_being_dropped_is_not_made_anew)
{
	struct fixture f;
	struct db_status status = { .windows = 3 };
	struct db_querier *q;
	struct thread dropper;
	char current[128];

	REQUIRE(fixture_open(&f));
	f.o.window_ns = 100 * SEC;
	f.o.retention_ns = 150 * SEC;
	f.o.too_old_ns = 1000 * SEC;
	REQUIRE(fixture_reopen(&f));
	append(&f, "p", "j", "1", 50, "x 1");
	REQUIRE_OK(db_querier_open(f.db, 0, 99 * SEC, NULL, &q, &f.err), &f.err);
	append(&f, "p", "j", "1", 150, "x 1");
	append(&f, "p", "j", "1", 260, "x 1");
	REQUIRE_OK(thread_start(&dropper, "test", maintain, f.db, &f.err), &f.err);
	CHECK(WAIT_FOR((db_status(f.db, &status), status.windows == 2)));
	CHECK_ERR(append_wait(f.db, labels_of(&f.arena, "p", "j", "1"), 60 * SEC, SEC,
				  some(&f.arena, "y 1"), NULL, false, NULL, &f.err),
		&f.err, ERR_INVALID,
		"profile of 1970-01-01T00:01:00.000Z is too old: the window is closed");
	snprintf(current, sizeof(current), "%s/head/0/CURRENT", f.dir);
	CHECK(access(current, F_OK) == 0);
	db_querier_close(q);
	thread_join(&dropper);
	CHECK(WAIT_FOR(access(current, F_OK) != 0));
	fixture_close(&f);
}

TEST(retention_by_size_keeps_the_newest)
{
	struct fixture f;
	struct db_status status;

	REQUIRE(fixture_open(&f));
	f.o.window_ns = 100 * SEC;
	f.o.retention_bytes = 1;
	REQUIRE(fixture_reopen(&f));
	append(&f, "p", "j", "1", 50, "x 1");
	append(&f, "p", "j", "1", 150, "x 1");
	append(&f, "p", "j", "1", 250, "x 1");
	db_maintain(f.db, true);
	db_status(f.db, &status);
	CHECK_INT(status.windows, 1);
	CHECK_INT(status.min_ns, 250 * SEC);
	fixture_close(&f);
}

/* Ids that were given once mean nothing else later, even when their window is gone. */
TEST(ids_are_never_given_again)
{
	struct fixture f;
	struct db_querier *q;
	struct db_series *s;
	uint32_t before, series_before;
	size_t n;

	REQUIRE(fixture_open(&f));
	f.o.window_ns = 100 * SEC;
	f.o.retention_ns = 0;
	REQUIRE(fixture_reopen(&f));
	append(&f, "p", "j", "1", 150, "x 1");
	append(&f, "p", "j", "2", 50, "a;b;c;d 1");
	REQUIRE_OK(db_querier_open(f.db, 0, 1000 * SEC, NULL, &q, &f.err), &f.err);
	REQUIRE_OK(db_select(q, NULL, 0, &f.arena, &s, &n, &f.err), &f.err);
	REQUIRE(n == 2);
	before = sym_nodes_n(s[0].partition);
	series_before = s[1].places[0].id;
	db_querier_close(q);
	f.o.retention_ns = 50 * SEC;
	REQUIRE(fixture_reopen(&f));
	db_maintain(f.db, true);
	REQUIRE(fixture_reopen(&f));
	append(&f, "p", "j", "3", 150, "e 1");
	REQUIRE_OK(db_querier_open(f.db, 0, 1000 * SEC, NULL, &q, &f.err), &f.err);
	REQUIRE_OK(db_select(q, NULL, 0, &f.arena, &s, &n, &f.err), &f.err);
	REQUIRE(n == 2);
	CHECK_INT(sym_nodes_n(s[0].partition), before + 1);
	CHECK_INT(sym_node(s[0].partition, before - 1).location, SYM_NONE);
	CHECK(s[1].places[0].id > series_before);
	db_querier_close(q);
	fixture_close(&f);
}

TEST(reading_only_changes_nothing)
{
	struct fixture f;
	struct db *reader;
	struct db_options o;
	struct buf got = { 0 };

	REQUIRE(fixture_open(&f));
	append(&f, "p", "j", "1", 100, "x 1");
	o = f.o;
	o.read_only = true;
	/* Beside the writer, too. */
	REQUIRE_OK(db_open(&o, &reader, &f.err), &f.err);
	CHECK(rows_text(reader, labels_of(&f.arena, "p", "j", "1"), 0, 1000 * SEC, &got, &f.err));
	CHECK_STR(buf_str(&got), "@100\nx 1\n");
	CHECK_ERR(append_wait(reader, labels_of(&f.arena, "p", "j", "1"), 200 * SEC, SEC,
				  some(&f.arena, "x 1"), NULL, false, NULL, &f.err),
		&f.err, ERR_UNAVAILABLE, "the database is open for reading only");
	db_close(reader);
	append(&f, "p", "j", "1", 200, "x 1");
	buf_clear(&got);
	CHECK(rows_text(f.db, labels_of(&f.arena, "p", "j", "1"), 0, 1000 * SEC, &got, &f.err));
	CHECK_STR(buf_str(&got), "@100\nx 1\n@200\nx 1\n");
	buf_release(&got);
	fixture_close(&f);
}

TEST(limits_of_the_index)
{
	struct fixture f;

	REQUIRE(fixture_open(&f));
	f.o.series_max = 2;
	REQUIRE(fixture_reopen(&f));
	append(&f, "p", "j", "1", 100, "x 1");
	append(&f, "p", "j", "2", 100, "x 1");
	CHECK_ERR(append_wait(f.db, labels_of(&f.arena, "p", "j", "3"), 100 * SEC, SEC,
				  some(&f.arena, "x 1"), NULL, false, NULL, &f.err),
		&f.err, ERR_LIMIT, "2 series, limit 2 (--storage.tsdb.max-series)");
	append(&f, "p", "j", "2", 101, "x 1");
	fixture_close(&f);
}

TEST(canceled)
{
	struct fixture f;
	struct db_querier *q;
	struct db_series *s;
	atomic_bool cancel = true;
	size_t n;

	REQUIRE(fixture_open(&f));
	append(&f, "p", "j", "1", 100, "x 1");
	REQUIRE_OK(db_querier_open(f.db, 0, 1000 * SEC, &cancel, &q, &f.err), &f.err);
	CHECK_ERR(
		db_select(q, NULL, 0, &f.arena, &s, &n, &f.err), &f.err, ERR_CANCELED, "query canceled");
	db_querier_close(q);
	fixture_close(&f);
}

/* ---- readers beside writers, windows coming and going ---- */

#define WRITERS 3
#define READERS 2
#define APPENDS 250

struct worker {
	struct db *db;
	struct thread thread;
	int number;
	_Atomic int *clock, *running, *failures;
};

static void write_some(void *ctx)
{
	struct worker *w = ctx;

	for (int i = 0; i < APPENDS; i++) {
		struct arena a;
		struct err err;
		char job[8] = "job-0", instance[8] = "i-0";

		job[4] = (char)('0' + w->number % 2);
		instance[2] = (char)('0' + i % 3);
		arena_init(&a, 0);
		/* Others may be ahead by more than a window, when this thread gets to run. */
		if (append_wait(w->db, labels_of(&a, "p", job, instance),
				(100 + atomic_fetch_add(w->clock, 1)) * SEC, SEC,
				profile_random(&a, (uint64_t)(w->number * 100000 + i)), NULL, i % 2, NULL, &err) &&
			!strstr(err.msg, "too old"))
			atomic_fetch_add(w->failures, 1);
		arena_release(&a);
	}
	atomic_fetch_sub(w->running, 1);
}

static void read_one(struct worker *w, struct arena *a)
{
	static const struct profile_type type = { { "p", 1 }, { "cpu", 3 }, { "nanoseconds", 11 },
		{ "", 0 }, { "", 0 }, true };
	int64_t now = (100 + atomic_load(w->clock)) * SEC;
	struct db_querier *q;
	struct db_series *s;
	struct profile_type *t;
	struct err err;
	size_t n, types_n;

	if (db_querier_open(w->db, now - 500 * SEC, now, NULL, &q, &err))
		return;
	if (db_select(q, NULL, 0, a, &s, &n, &err))
		atomic_fetch_add(w->failures, 1);
	else
		for (size_t i = 0; i < n; i++) {
			struct sum_stats stats = { 0 };
			struct accum_cell cell;
			struct accum *acc;
			__int128 total = 0;
			size_t at = 0;

			if (accum_open(s[i].partition, i % 2 ? ACCUM_BY_LABELS : 0, &acc, &err))
				continue;
			if (db_sum(q, &(const struct db_series *){ &s[i] }, 1, &type, 0, now, SUM_WINDOW, acc,
					a, &stats, &err) ||
				accum_seal(acc, &err))
				atomic_fetch_add(w->failures, 1);
			while (accum_next(acc, &at, &cell)) {
				struct sym_node node = sym_node(s[i].partition, cell.stack);

				total += cell.value;
				if (!sym_location(s[i].partition, node.location).lines_n)
					atomic_fetch_add(w->failures, 1);
			}
			if (total != stats.total)
				atomic_fetch_add(w->failures, 1);
			accum_close(acc);
		}
	if (db_profile_types(q, a, &t, &types_n, &err) || (n && types_n != 2))
		atomic_fetch_add(w->failures, 1);
	db_querier_close(q);
}

static void read_some(void *ctx)
{
	struct worker *w = ctx;

	while (atomic_load(w->running) > 0) {
		struct arena a;

		arena_init(&a, 0);
		read_one(w, &a);
		arena_release(&a);
	}
}

TEST(readers_and_writers)
{
	struct fixture f;
	struct worker w[WRITERS + READERS];
	_Atomic int clock = 0, running = WRITERS, failures = 0;
	struct buf text = { 0 };

	REQUIRE(fixture_open(&f));
	f.o.window_ns = 50 * SEC;
	f.o.retention_ns = 300 * SEC;
	f.o.too_old_ns = 50 * SEC;
	REQUIRE(fixture_reopen(&f));
	for (int i = 0; i < WRITERS + READERS; i++) {
		w[i] = (struct worker){
			.db = f.db, .number = i, .clock = &clock, .running = &running, .failures = &failures
		};
		REQUIRE_OK(
			thread_start(&w[i].thread, "test", i < WRITERS ? write_some : read_some, &w[i], &f.err),
			&f.err);
	}
	while (atomic_load(&running)) {
		db_maintain(f.db, false);
		metrics_print(&text);
		buf_clear(&text);
		usleep(1000);
	}
	for (int i = 0; i < WRITERS + READERS; i++)
		thread_join(&w[i].thread);
	CHECK_INT(atomic_load(&failures), 0);
	buf_release(&text);
	fixture_close(&f);
}
