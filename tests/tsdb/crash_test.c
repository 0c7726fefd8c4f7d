/*
 * kill -9 at any moment: a child opens the database, works on it and says through a pipe what it
 * appends and what is acknowledged; it is killed, the directory is opened again and compared. The
 * same directory goes through all rounds, in short windows, so that windows are made, filled late,
 * cut and dropped on the way, and blocks joined.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/tsdb/check_model.h"

#define ROUNDS 250

static void child(struct model *m, int pipe)
{
	struct err err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	m->tell = pipe;
	if (model_open(m, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		_exit(2);
	}
	model_work(m, 100000, NULL, NULL); /* is killed long before */
	_exit(4);
}

/* One round; what the child said where it ended by itself, -1 where it was killed, -2: neither. */
static int kill_one(struct model *m, uint64_t ms_max)
{
	int fds[2], status = 0, ms;
	bool ok;
	pid_t pid;

	if (pipe(fds))
		return -2;
	model_draw(m, 2); /* the child's draws are not ours */
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		child(m, fds[1]);
	}
	close(fds[1]);
	ms = 1 + (int)model_draw(m, ms_max);
	ok = pid > 0 && model_follow(m, fds[0], pid, ms, model_draw(m, 4) == 0);
	close(fds[0]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (!ok)
		return -2;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(nothing_acknowledged_is_lost_to_kill_9)
{
	struct model m;
	uint64_t n = model_rounds(check_is_short() ? ROUNDS / 5 : ROUNDS);

#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer ends a child that starts threads after a fork");
#endif
	REQUIRE(model_init(&m, model_seed()));
	m.deletes = true;
	m.f.o.raw_retention_ns = MODEL_RAW_RETENTION_S * SEC;
	/* On a busy machine a child does little in its time: then more of them run, each n twice as
	 * long. */
	for (uint64_t round = 0; round < n || (!model_has_worked(&m, n) && round < 8 * n); round++) {
		if (check_failures)
			break;
		CHECK_INT(kill_one(&m, UINT64_C(60) << round / n), -1);
		/* Otherwise the next child does the recovery. */
		if (model_draw(&m, 3) == 0)
			continue;
		check_recovered(&m, round);
		CHECK_INT(m.warnings, 0);
		model_close(&m);
	}
	check_worked(&m, n);
	model_release(&m);
}
