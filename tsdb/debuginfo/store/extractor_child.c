/*
 * The keeper and the slots: they have the server's files and user, but none of its capabilities,
 * and read nothing but the server's requests and, with a fixed size, results of workers. They end
 * when the server has closed the sockets, by whatever way.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/self/sandbox.h"
#include "tsdb/debuginfo/store/extractor_internal.h"

#define RESTART_PAUSE_US 100000 /* a slot that dies at once takes no CPU */

/* Closes all descriptors but standard error and those of `keep`, which ascend. */
static void extractor_child_close_others(const int *keep, unsigned n)
{
	unsigned from = 0;

	for (unsigned i = 0; i <= n + 1; i++) {
		unsigned next = UINT_MAX;

		if (i == 0)
			next = STDERR_FILENO;
		else if (i <= n)
			next = (unsigned)keep[i - 1];
		if (next > from)
			syscall(SYS_close_range, from, i <= n ? next - 1 : UINT_MAX, 0);
		from = next + 1;
	}
}

static void extractor_child_say(int fd, uint64_t number, const struct extractor_result *r)
{
	struct extractor_answer a = { .number = number, .result = *r };

	(void)!send(fd, &a, sizeof(a), MSG_NOSIGNAL);
}

/* False: the server is gone. */
static bool extractor_child_hear(int fd, struct request *r, int fds[REQUEST_FDS])
{
	union {
		char bytes[CMSG_SPACE(REQUEST_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { r, sizeof(*r) };
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(*r))
		return false;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(REQUEST_FDS * sizeof(int)))
		return false;
	memcpy(fds, CMSG_DATA(c), REQUEST_FDS * sizeof(int));
	return true;
}

/*
 * Waits until the worker has closed its pipe, which it does by ending only. Gives its result, or
 * that it took too long; *gone: the server has ended.
 */
static void extractor_child_await(
	int result_fd, int server_fd, int64_t timeout_ns, struct extractor_result *r, bool *gone)
{
	int64_t end_ns = clock_monotonic_ns() + timeout_ns, left_ns;
	struct pollfd p[2] = { { result_fd, POLLIN, 0 }, { server_fd, POLLIN, 0 } };
	char extra, *at = (char *)r;
	size_t got = 0;
	ssize_t n;

	r->outcome = OUTCOME_NONSENSE;
	for (;;) {
		left_ns = end_ns - clock_monotonic_ns();
		if (left_ns <= 0) {
			r->outcome = OUTCOME_TIME;
			return;
		}
		if (poll(p, 2, (int)(left_ns / NS_PER_MS) + 1) <= 0)
			continue;
		if (p[1].revents) { /* no request comes before the answer: it is the end */
			*gone = true;
			return;
		}
		n = got < sizeof(*r) ? read(result_fd, at + got, sizeof(*r) - got) :
							   read(result_fd, &extra, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n > 0 && got == sizeof(*r)) {
			r->outcome = OUTCOME_NONSENSE;
			return;
		}
		if (n <= 0) {
			if (got != sizeof(*r))
				r->outcome = OUTCOME_EXIT;
			return;
		}
		got += (size_t)n;
	}
}

/* What a worker says counts only if it then ends by itself. */
static void extractor_child_judge(pid_t pid, struct extractor_result *r)
{
	bool killed = r->outcome == OUTCOME_TIME || r->outcome == OUTCOME_NONSENSE;
	int status;

	if (killed)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return;
	if (killed)
		return;
	if (WIFSIGNALED(status)) {
		r->outcome = OUTCOME_SIGNAL;
		r->code = (uint32_t)WTERMSIG(status);
		r->text_len = 0;
	} else if (r->outcome == OUTCOME_EXIT || WEXITSTATUS(status)) {
		r->outcome = OUTCOME_EXIT;
		r->code = (uint32_t)WEXITSTATUS(status);
		r->text_len = 0;
	}
}

/* False: the server is gone. */
static bool extractor_child_serve(const struct extractor_options *o, int fd)
{
	struct extractor_result r = { .outcome = OUTCOME_NO_CHILD };
	struct request request;
	int fds[REQUEST_FDS], pipe_fds[2], slot_pid = getpid();
	bool gone = false;
	pid_t pid = -1;

	if (!extractor_child_hear(fd, &request, fds))
		return false;
	if (pipe(pipe_fds)) {
		r.code = (uint32_t)errno;
	} else if ((pid = fork()) < 0) {
		r.code = (uint32_t)errno;
		close(pipe_fds[0]);
		close(pipe_fds[1]);
	} else if (!pid) {
		close(fd);
		close(pipe_fds[0]);
		extractor_work(o, &request, fds, pipe_fds[1], slot_pid);
	}
	for (int i = 0; i < REQUEST_FDS; i++)
		close(fds[i]);
	if (pid > 0) {
		close(pipe_fds[1]);
		extractor_child_await(pipe_fds[0], fd, o->timeout_ns, &r, &gone);
		close(pipe_fds[0]);
		if (gone)
			r.outcome = OUTCOME_TIME;
		extractor_child_judge(pid, &r);
	}
	if (!gone)
		extractor_child_say(fd, request.number, &r);
	return !gone;
}

static void extractor_child_be_slot(const struct extractor_options *o, int fd, int keeper_pid)
{
	extractor_child_close_others(&fd, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == keeper_pid)
		while (extractor_child_serve(o, fd))
			;
	_exit(0);
}

/* The first request after a death finds a slot; one that was under way is answered. */
static pid_t extractor_child_start_slot(const struct extractor_options *o, int fd)
{
	int keeper_pid = getpid();
	pid_t pid = fork();

	if (!pid)
		extractor_child_be_slot(o, fd, keeper_pid);
	return pid;
}

static void extractor_child_ignore_signals(void)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2, SIGQUIT };

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
}

void extractor_keep(const struct extractor_options *o, const int *peers, unsigned n)
{
	pid_t pids[EXTRACTOR_SLOTS_MAX], pid;
	unsigned live = 0;
	int status;

	extractor_child_ignore_signals();
	(void)!sandbox_limit_capabilities(0, NULL); /* whatever the server may: these fork and send */
	prctl(PR_SET_NAME, "epi-extract");
	extractor_child_close_others(
		peers, n); /* socketpair gives the lowest free numbers, so they ascend */
	for (unsigned i = 0; i < n; i++)
		if ((pids[i] = extractor_child_start_slot(o, peers[i])) > 0)
			live++;
	while (live) {
		if ((pid = waitpid(-1, &status, 0)) < 0) {
			if (errno == EINTR)
				continue;
			break;
		}
		for (unsigned i = 0; i < n; i++) {
			if (pids[i] != pid)
				continue;
			live--;
			pids[i] = -1;
			if (WIFEXITED(status) && !WEXITSTATUS(status))
				break; /* the server is gone */
			usleep(RESTART_PAUSE_US);
			extractor_child_say(
				peers[i], 0, &(struct extractor_result){ .outcome = OUTCOME_RESTARTED });
			if ((pids[i] = extractor_child_start_slot(o, peers[i])) > 0)
				live++;
		}
	}
	_exit(0);
}
