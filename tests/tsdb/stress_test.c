/*
 * Everything at once against a state kept outside: rows and numbers are pushed, windows cut, blocks
 * joined, snapshots taken and compared, ranges deleted, old rows dropped, the directory opened
 * again and again; meanwhile operations on the disk fail, once or for a while, writes are done by
 * half, the disk fills up; and each round ends by kill -9, by a power cut or by closing. Then all
 * acknowledged rows are there with their exact values, and no others; deleted ranges stay deleted;
 * no answer carries a warning, for none of these faults may lose synced data.
 *
 * `make crash` runs it long; EPI_CRASH_LOG shows what the database logs, and the faults between.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/check.h"
#include "tests/tsdb/disk.h"
#include "tests/tsdb/model.h"
#include "tests/wait.h"
#include "tsdb/catalog/state.h"
#include "tsdb/db.h"
#include "tsdb/lists/losses.h"

#define ROUNDS 120

enum ending { KILLED, CUT, CLOSED, ENDINGS };

struct stress {
	struct model m;
	struct disk *d;
	bool power_goes;
	uint64_t failed; /* operations, by faults */
	uint64_t endings[ENDINGS];
};

/* The child's findings go to the parent's output. */
static bool wrong(const char *what, const char *why)
{
	printf("  %s: %s\n", what, why);
	fflush(stdout);
	return false;
}

/* ---- faults ---- */

static void mend(struct stress *s)
{
	log_info("stress", "disk is mended");
	s->failed += disk_failed(s->d);
	disk_fail(s->d, 0, DISK_OPEN, DISK_ONCE);
	disk_full(s->d, UINT64_MAX);
}

static void break_something(struct stress *s)
{
	static const unsigned hows[] = { DISK_ONCE, DISK_FROM_THEN_ON, DISK_TORN,
		DISK_TORN | DISK_FROM_THEN_ON };
	struct model *m = &s->m;
	enum disk_kind kind = (enum disk_kind)model_draw(m, DISK_KINDS);

	if (model_draw(m, 3) == 0) /* writes fail most often in life */
		kind = DISK_WRITE;
	if (model_draw(m, 5) == 0) {
		disk_full(s->d, model_draw(m, 100000));
		log_info("stress", "disk becomes full");
	} else {
		disk_fail(
			s->d, 1 + model_draw(m, kind == DISK_WRITE ? 300 : 60), kind, hows[model_draw(m, 4)]);
		log_info("stress", "disk fails", LOG_S("operation", disk_kind_names[kind]));
	}
}

/* A healthy disk is taken again by itself. */
static bool is_ready(struct stress *s)
{
	struct err why = { 0 };

	return WAIT_FOR(db_state(s->m.f.db, &why) == DB_READY || disk_is_cut(s->d)) ||
		wrong("not ready again", why.msg);
}

static bool no_power(void *ctx)
{
	return disk_is_cut(ctx);
}

static bool work(struct stress *s, uint64_t appends)
{
	return model_work(&s->m, appends, no_power, s->d) || wrong("at work", s->m.wrong.ptr);
}

/* A faulty disk may refuse it, a mended one may not. */
static bool open_again(struct stress *s)
{
	struct err err;

	if (!model_open(&s->m, &err) || disk_is_cut(s->d))
		return true;
	if (!s->m.faults)
		return wrong("open", err.msg);
	mend(s);
	return !model_open(&s->m, &err) || disk_is_cut(s->d) || wrong("open a mended disk", err.msg);
}

/* Opened, at work, broken, at work, mended, at work. */
static bool turn(struct stress *s)
{
	struct model *m = &s->m;
	bool breaks = model_draw(m, 3) > 0;

	m->faults = breaks || s->power_goes;
	if (breaks && model_draw(m, 3) == 0)
		break_something(s);
	if (!open_again(s))
		return false;
	if (m->f.db && !work(s, model_draw(m, 60)))
		return false;
	if (breaks && m->f.db) {
		break_something(s);
		if (!work(s, 20 + model_draw(m, 60)))
			return false;
	}
	if (!m->f.db || disk_is_cut(s->d) || model_draw(m, 4) == 0)
		return true; /* what fails still fails at the end */
	mend(s);
	m->faults = s->power_goes;
	return is_ready(s) && work(s, model_draw(m, 60));
}

/* ---- endings ---- */

static void use_disk(struct stress *s)
{
	s->d = disk_open(s->m.f.dir);
	s->m.f.o.fs = disk_fs(s->d);
	s->m.f.o.store = disk_store(s->d);
}

static void leave_disk(struct stress *s)
{
	mend(s);
	disk_close(s->d);
	s->d = NULL;
	s->m.f.o.fs = NULL;
	s->m.f.o.store = NULL;
}

static void child(struct stress *s, int pipe)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	s->m.tell = pipe;
	use_disk(s);
	for (int i = 0; i < 100000; i++) { /* is killed long before */
		if (!turn(s))
			_exit(2);
		mend(s);
		model_close(&s->m);
	}
	_exit(4);
}

static bool until_killed(struct stress *s)
{
	int fds[2], status = 0;
	bool ok;
	pid_t pid;

	if (pipe(fds))
		return false;
	model_draw(&s->m, 2); /* the child's draws are not ours */
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		child(s, fds[1]);
	}
	close(fds[1]);
	ok = pid > 0 &&
		model_follow(
			&s->m, fds[0], pid, 1 + (int)model_draw(&s->m, 150), model_draw(&s->m, 5) == 0);
	close(fds[0]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	return ok && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static bool until_cut(struct stress *s)
{
	bool ok;

	use_disk(s);
	if ((s->power_goes = model_draw(&s->m, 3)))
		disk_power_cut_at(s->d, 1 + model_draw(&s->m, 900));
	ok = turn(s);
	s->power_goes = false;
	if (model_draw(&s->m, 2))
		disk_power_cut(s->d);
	model_close(&s->m);
	disk_power_cut(s->d);
	disk_restore(s->d, model_draw(&s->m, UINT64_MAX));
	leave_disk(s);
	return ok;
}

static bool until_closed(struct stress *s)
{
	bool ok;

	use_disk(s);
	ok = turn(s);
	model_close(&s->m);
	leave_disk(s);
	return ok;
}

static bool ends(struct stress *s)
{
	static bool (*const fns[ENDINGS])(
		struct stress * s) = { until_killed, until_cut, until_closed };
	enum ending how = (enum ending)model_draw(&s->m, ENDINGS);

#ifdef __SANITIZE_THREAD__
	if (how == KILLED) /* it ends a child that starts threads after a fork */
		how = CLOSED;
#endif
	s->endings[how]++;
	log_info("stress", "round", LOG_I("ending", how));
	return fns[how](s);
}

/* ---- rounds ---- */

static bool say_loss(void *ctx, const struct loss *l)
{
	struct buf text = { 0 };

	loss_print(l, &text);
	printf("  " STR_FMT "\n", STR_ARG(buf_str(&text)));
	buf_release(&text);
	return true;
}

/* A store that failing syncs and a power cut left unusable is repaired: that is counted as damage,
 * and loses nothing. */
static void check_losses(struct db *db)
{
	CHECK_INT(losses_open_n(db->losses), 0);
	losses_each(db->losses, 0, LOSS_END, say_loss, NULL);
}

/* On a healthy disk, as the next start finds it. */
static void check(struct stress *s, int round)
{
	struct model *m = &s->m;
	struct err err;

	m->faults = false;
	if (model_open(m, &err)) {
		CHECK_FAIL("round %d: %s", round, err.msg);
		return;
	}
	if (!model_check(m, true))
		CHECK_FAIL("round %d:\n%s", round, m->wrong.ptr);
	else if (m->warnings)
		CHECK_FAIL("round %d: %zu warnings, and nothing is lost", round, m->warnings);
	else if (model_draw(m, 6) == 0 && db_compact(m->f.db, &err))
		CHECK_FAIL("round %d, blocks: %s", round, err.msg);
	else if (!model_check(m, true))
		CHECK_FAIL("round %d, again:\n%s", round, m->wrong.ptr);
	else if (model_draw(m, 6) == 0 && !model_check_snapshot(m))
		CHECK_FAIL("round %d, snapshot:\n%s", round, m->wrong.ptr);
	check_losses(m->f.db);
	model_close(m);
}

/* Each kind of event came at least once, and blocks were joined. */
static bool is_met(const struct stress *s)
{
	return s->m.deleted_n > 0 && s->m.snapshots_n > 0 && s->failed > 0 && s->m.level >= 2;
}

TEST(nothing_acknowledged_is_lost_whatever_happens)
{
	static struct stress s;
	uint64_t n = model_rounds(ROUNDS / CHECK_STEP);
	struct model *m = &s.m;

	REQUIRE(model_init(m, model_seed()));
	if (getenv("EPI_CRASH_LOG"))
		log_set(LOG_INFO, LOG_LOGFMT);
	m->deletes = m->snapshots = true;
	m->f.o.raw_retention_ns = MODEL_RAW_RETENTION_S * SEC;
	/* In few rounds, or of a busy machine, some events may not come: then there are more rounds. */
	for (uint64_t round = 0; (round < n || (!is_met(&s) && round < 20 * n)) && !check_failures;
		 round++) {
		if (!ends(&s))
			CHECK_FAIL("round %d did not end as it should", (int)round);
		if (model_draw(m, 4) && !check_failures) /* else the next one recovers */
			check(&s, (int)round);
	}
	printf("  %zu rows acknowledged, %zu refused; %zu deletions; here %zu snapshots, %d faults\n",
		m->acked, m->refused, m->deleted_n, m->snapshots_n, (int)s.failed);
	printf("  rounds ended: %d killed, %d by a power cut, %d closed\n", (int)s.endings[KILLED],
		(int)s.endings[CUT], (int)s.endings[CLOSED]);
	CHECK(m->acked > n);
	CHECK(is_met(&s));
	model_release(m);
}
