/*
 * kill -9 at any moment: a child appends and says what was acknowledged through a pipe; it is
 * killed, the directory is opened again, and every acknowledged row is there and right. The same
 * directory goes through all rounds, in short windows, so that windows are made on the way; every
 * seventh row is late and goes to the one before.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"
#include "tests/check.h"
#include "tests/tsdb/fixture.h"

#define ROUNDS 30
#define SERIES 4
#define ACKED_MAX 400000

struct ack {
	int64_t ts_ns; /* no two rows have the same */
	uint32_t series;
	uint32_t seed;
};

static struct ack *acked;
static size_t acked_n;

static struct labels series_labels(struct arena *a, uint32_t s)
{
	char job[8] = "job-0", instance[8] = "i-0";

	job[4] = (char)('0' + s % 2);
	instance[2] = (char)('0' + s);
	return labels_of(a, "p", job, instance);
}

struct pending {
	struct ack ack;
	int pipe;
};

static void on_ack(void *ctx, enum err_code rc, const struct err *err)
{
	struct pending *p = ctx;

	/* Less than PIPE_BUF at once: whole or not at all. */
	if (rc || write(p->pipe, &p->ack, sizeof(p->ack)) != sizeof(p->ack))
		_exit(3);
	free(p);
}

static void child(const struct db_options *o, int pipe, int64_t from_s, uint32_t seed)
{
	static const enum value_kind kinds[] = { KIND_DELTA, KIND_DELTA };
	struct db *db;
	struct err err;

	if (db_open(o, &db, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		_exit(2);
	}
	for (uint32_t i = 0; i < 100000; i++) { /* is killed long before */
		struct pending *p = calloc(1, sizeof(*p));
		struct arena a;
		struct db_append append;

		arena_init(&a, 0);
		p->pipe = pipe;
		p->ack = (struct ack){ from_s * SEC + i * (SEC / 20) - (i % 7 ? 0 : 45 * SEC + 1),
			(uint32_t)hash_u64(seed + i) % SERIES, seed + i };
		append = (struct db_append){ series_labels(&a, p->ack.series), p->ack.ts_ns, SEC,
			profile_random(&a, p->ack.seed), kinds, false };
		if (db_append(db, &append, NULL, on_ack, p, &err)) {
			fprintf(stderr, "%s\n", err.msg);
			_exit(4);
		}
		arena_release(&a);
	}
	_exit(0);
}

static bool read_acks(int fd)
{
	struct ack ack;
	ssize_t n;

	while ((n = read(fd, &ack, sizeof(ack))) == sizeof(ack) || (n < 0 && errno == EINTR))
		if (n > 0) {
			if (acked_n == ACKED_MAX)
				return false;
			acked[acked_n++] = ack;
		}
	return n == 0;
}

/* One round; *exit_code is what the child said where it ended by itself. */
static bool kill_one(struct fixture *f, int64_t from_s, uint32_t seed, int *exit_code)
{
	int fds[2], status = 0;
	bool ok;
	pid_t pid;

	if (pipe(fds))
		return false;
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		child(&f->o, fds[1], from_s, seed);
	}
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return false;
	}
	/* The pipe fills, so somebody has to read while the child lives; the kill comes from
	 * another process. */
	if (fork() == 0) {
		usleep((useconds_t)(5000 + hash_u64(seed) % 250000));
		kill(pid, SIGKILL);
		_exit(0);
	}
	ok = read_acks(fds[0]);
	close(fds[0]);
	waitpid(pid, &status, 0);
	while (wait(NULL) > 0)
		;
	*exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	return ok;
}

static int ack_cmp(const void *a, const void *b)
{
	const struct ack *x = a, *y = b;

	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	return (x->ts_ns > y->ts_ns) - (x->ts_ns < y->ts_ns);
}

static void check_row(const struct db_series *s, const struct db_row *row, uint32_t seed)
{
	struct buf got = { 0 }, want = { 0 };
	struct arena a;

	arena_init(&a, 0);
	row_text(s, row, &got);
	profile_samples_text(profile_random(&a, seed), &want);
	if (!str_eq(buf_str(&got), buf_str(&want)))
		CHECK_FAIL("row at %lld: got\n" STR_FMT "want\n" STR_FMT, (long long)row->ts_ns,
			STR_ARG(buf_str(&got)), STR_ARG(buf_str(&want)));
	buf_release(&got);
	buf_release(&want);
	arena_release(&a);
}

/* Rows of one series against the acknowledgements; rows nobody was told of may be there too. */
static void check_series(struct fixture *f, const struct ack *v, size_t n, size_t *missing)
{
	struct db_querier *q;
	struct db_series *s;
	struct db_rows *rows;
	const struct db_row *row;
	struct arena a;
	struct labels l;
	size_t found, at = 0;
	enum err_code rc;

	arena_init(&a, 0);
	l = series_labels(&a, v->series);
	REQUIRE_OK(db_querier_open(f->db, 0, INT64_MAX, NULL, &q, &f->err), &f->err);
	REQUIRE_OK(db_select(q, NULL, 0, &a, &s, &found, &f->err), &f->err);
	for (size_t i = 0; i < found; i++) {
		if (!labels_eq(s[i].labels, l))
			continue;
		REQUIRE_OK(db_rows_open(q, &s[i], 0, INT64_MAX, &rows, &f->err), &f->err);
		while (!(rc = db_rows_next(rows, &row, &f->err))) {
			for (; at < n && v[at].ts_ns < row->ts_ns; at++)
				(*missing)++;
			if (at < n && v[at].ts_ns == row->ts_ns)
				check_row(&s[i], row, v[at++].seed);
		}
		CHECK_INT(rc, ERR_NOT_FOUND);
		db_rows_close(rows);
	}
	*missing += n - at;
	db_querier_warnings(q, &found);
	CHECK_INT(found, 0);
	db_querier_close(q);
	arena_release(&a);
}

static void check_all(struct fixture *f)
{
	size_t missing = 0, from = 0, to;

	qsort(acked, acked_n, sizeof(*acked), ack_cmp);
	for (; from < acked_n; from = to) {
		for (to = from; to < acked_n && acked[to].series == acked[from].series; to++)
			;
		check_series(f, acked + from, to - from, &missing);
	}
	CHECK_INT(missing, 0);
}

TEST(nothing_acknowledged_is_lost_to_kill_9)
{
	struct fixture f;
	int64_t from_s = 1000;
	int exit_code;

	acked = calloc(ACKED_MAX, sizeof(*acked));
	REQUIRE(acked && fixture_open(&f));
	f.o.window_ns = 40 * SEC;
	f.o.retention_ns = 0;
	f.o.too_old_ns = 1000 * SEC;
	db_close(f.db);
	f.db = NULL;
	f.o.dir = f.dir;
	for (uint32_t round = 0; round < ROUNDS; round++, from_s += 10000) {
		REQUIRE(kill_one(&f, from_s, round * 1000000, &exit_code));
		CHECK_INT(exit_code, -1);
		/* Otherwise the next child does the recovery. */
		if (round % 5 != 4)
			continue;
		REQUIRE(fixture_reopen(&f));
		check_all(&f);
		db_close(f.db);
		f.db = NULL;
	}
	CHECK(acked_n > 100);
	fixture_close(&f);
	free(acked);
}
