/* The server's side: slots, requests, and errors by name. */
#include "tsdb/debuginfo/store/extractor.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "tsdb/debuginfo/store/extractor_internal.h"

/* The slot keeps the time; if it does not answer either, the server waits so much longer. */
#define GRACE_NS (30 * NS_PER_S)

struct extractor_slot {
	int fd;
	bool busy;
	uint64_t number; /* of its last request */
};

struct extractor {
	struct extractor_options o;
	struct mutex lock; /* guards the slots' busy */
	struct cond idle;
	atomic_bool stopped;
	struct extractor_slot slots[EXTRACTOR_SLOTS_MAX];
};

static void extractor_options_default(struct extractor_options *o)
{
	if (!o->slots)
		o->slots = 1;
	if (!o->timeout_ns)
		o->timeout_ns = 2 * NS_PER_MIN;
	if (!o->cpu_s)
		o->cpu_s = 60;
	if (!o->memory_bytes_max)
		o->memory_bytes_max = 512u << 20;
	if (!o->input_bytes_max)
		o->input_bytes_max = 1u << 30;
	if (!o->output_bytes_max)
		o->output_bytes_max = 1u << 30;
}

/* Forks twice, so that the keeper is not the server's child: the server could not wait for it. */
static enum err_code extractor_start_keeper(struct extractor *e, const int *peers, struct err *err)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return err_errno(err, errno, "fork");
	if (!pid) {
		pid = fork();
		if (pid)
			_exit(pid < 0);
		extractor_keep(&e->o, peers, e->o.slots);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status ? err_set(err, ERR_UNAVAILABLE, "fork failed") : ERR_OK;
}

enum err_code extractor_open(
	const struct extractor_options *o, struct extractor **out, struct err *err)
{
	struct extractor *x = calloc(1, sizeof(*x));
	int peers[EXTRACTOR_SLOTS_MAX];
	enum err_code rc = ERR_OK;
	unsigned n = 0;

	assert(o->slots <= EXTRACTOR_SLOTS_MAX);
	if (!x)
		return err_nomem(err, "extractor");
	x->o = *o;
	extractor_options_default(&x->o);
	mutex_init(&x->lock);
	cond_init(&x->idle);
	while (!rc && n < x->o.slots) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
			rc = err_errno(err, errno, "socketpair");
		} else {
			x->slots[n].fd = pair[0];
			peers[n++] = pair[1];
		}
	}
	if (!rc)
		rc = extractor_start_keeper(x, peers, err);
	for (unsigned i = 0; i < n; i++)
		close(peers[i]);
	if (rc) {
		x->o.slots = n;
		extractor_close(x);
		return err_wrap(err, rc, "extractor");
	}
	*out = x;
	return ERR_OK;
}

void extractor_stop(struct extractor *e)
{
	atomic_store(&e->stopped, true);
	for (unsigned i = 0; i < e->o.slots; i++)
		shutdown(e->slots[i].fd, SHUT_WR); /* the slot reads the end, and ends */
	mutex_lock(&e->lock);
	cond_broadcast(&e->idle);
	mutex_unlock(&e->lock);
}

void extractor_close(struct extractor *e)
{
	struct extractor_answer a;
	ssize_t n;

	if (!e)
		return;
	extractor_stop(e);
	for (unsigned i = 0; i < e->o.slots; i++) {
		do /* until nobody has the other end */
			n = recv(e->slots[i].fd, &a, sizeof(a), 0);
		while (n > 0 || (n < 0 && errno == EINTR));
		close(e->slots[i].fd);
	}
	cond_destroy(&e->idle);
	mutex_destroy(&e->lock);
	free(e);
}

/* ---- one file ---- */

static struct extractor_slot *extractor_slot_take(struct extractor *e)
{
	struct extractor_slot *got = NULL;

	mutex_lock(&e->lock);
	while (!got && !atomic_load(&e->stopped)) {
		for (unsigned i = 0; i < e->o.slots && !got; i++)
			if (!e->slots[i].busy)
				got = &e->slots[i];
		if (!got)
			cond_wait(&e->idle, &e->lock);
	}
	if (got)
		got->busy = true;
	mutex_unlock(&e->lock);
	return got;
}

static void extractor_slot_give(struct extractor *e, struct extractor_slot *s)
{
	mutex_lock(&e->lock);
	s->busy = false;
	cond_signal(&e->idle);
	mutex_unlock(&e->lock);
}

static enum err_code extractor_gone(const struct extractor *e, struct err *err)
{
	if (atomic_load(&e->stopped))
		return err_set(err, ERR_CANCELED, "the server ends");
	return err_set(err, ERR_UNAVAILABLE, "the child process has ended");
}

static enum err_code extractor_ask(struct extractor *e, struct extractor_slot *s,
	const struct extraction_files *files, struct err *err)
{
	bool has_older = files->older_fd >= 0;
	int fds[REQUEST_FDS] = { [FD_IN] = files->in_fd,
		[FD_OUT] = files->out_fd,
		[FD_OLDER] = has_older ? files->older_fd : files->in_fd };
	union {
		char bytes[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct request r = { ++s->number, has_older ? files->older_bytes : 0 };
	struct iovec iov = { &r, sizeof(r) };
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	struct extractor_answer stale;
	ssize_t n;

	while (recv(s->fd, &stale, sizeof(stale), MSG_DONTWAIT) > 0)
		;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	do
		n = sendmsg(s->fd, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? extractor_gone(e, err) : ERR_OK;
}

/* Late answers to earlier requests are passed over. */
static enum err_code extractor_listen_to(
	struct extractor *e, struct extractor_slot *s, struct extractor_answer *a, struct err *err)
{
	int64_t end_ns = clock_monotonic_ns() + e->o.timeout_ns + GRACE_NS, left_ns;
	struct pollfd p = { s->fd, POLLIN, 0 };
	ssize_t n;

	for (;;) {
		left_ns = end_ns - clock_monotonic_ns();
		if (left_ns <= 0)
			return err_set(err, ERR_TIMEOUT, "the child process does not answer");
		if (poll(&p, 1, (int)(left_ns / NS_PER_MS) + 1) <= 0)
			continue;
		n = recv(s->fd, a, sizeof(*a), MSG_DONTWAIT);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n != (ssize_t)sizeof(*a))
			return extractor_gone(e, err);
		if (a->number == s->number || !a->number) /* 0: the slot was started anew */
			return ERR_OK;
	}
}

static enum err_code extractor_crashed(const struct extractor *e, uint32_t sig, struct err *err)
{
	if (sig == SIGXCPU)
		return err_set(err, ERR_LIMIT, "extraction is over its CPU time, limit %us", e->o.cpu_s);
	if (sig == SIGSYS)
		return err_set(err, ERR_INVALID, "extraction made a system call that is forbidden");
	return err_set(err, ERR_INVALID, "extraction crashed with signal %u (%s)", sig,
		sig < 65 ? strsignal((int)sig) : "?");
}

/* The text is of a process that may be hostile. */
static enum err_code extractor_returned(
	const struct extractor *e, const struct extractor_result *r, struct err *err)
{
	char text[TEXT_BYTES_MAX + 1];
	size_t n = r->text_len;

	if (r->code == ERR_NOMEM)
		return err_set(err, ERR_LIMIT, "extraction is over its memory, limit %llu bytes",
			(unsigned long long)e->o.memory_bytes_max);
	for (size_t i = 0; i < n; i++)
		text[i] = r->text[i] >= ' ' && r->text[i] <= '~' ? r->text[i] : '?';
	text[n] = '\0';
	if (r->code)
		return err_set(err, (enum err_code)r->code, "%s", text);
	if (err)
		snprintf(err->msg, sizeof(err->msg), "%s", text);
	return ERR_OK;
}

static enum err_code extractor_by_name(
	const struct extractor *e, const struct extractor_result *r, struct err *err)
{
	if (r->text_len > TEXT_BYTES_MAX || (r->outcome == OUTCOME_RETURNED && r->code >= ERR_CODES))
		return err_set(err, ERR_INVALID, "extraction answered nonsense");
	switch ((enum outcome)r->outcome) {
	case OUTCOME_RETURNED:
		return extractor_returned(e, r, err);
	case OUTCOME_SIGNAL:
		return extractor_crashed(e, r->code, err);
	case OUTCOME_EXIT:
		return err_set(
			err, ERR_INVALID, "extraction ended without a result, exit code %u", r->code);
	case OUTCOME_TIME:
		return err_set(err, ERR_TIMEOUT, "extraction took longer than %llds",
			(long long)(e->o.timeout_ns / NS_PER_S));
	case OUTCOME_INPUT:
		return err_set(err, ERR_LIMIT, "input is no file of 1 to %llu bytes",
			(unsigned long long)e->o.input_bytes_max);
	case OUTCOME_OUTPUT:
		return err_set(err, ERR_LIMIT, "index is more than %llu bytes",
			(unsigned long long)e->o.output_bytes_max);
	case OUTCOME_WRITE:
		return err_errno(err, (int)r->code, "write index");
	case OUTCOME_NO_CHILD:
		return err_set(err, ERR_UNAVAILABLE, "no child process: %s", strerror((int)r->code));
	case OUTCOME_NO_FILTER:
		return err_set(err, ERR_UNAVAILABLE, "system calls of the child cannot be limited");
	case OUTCOME_RESTARTED:
		return err_set(err, ERR_UNAVAILABLE, "the child process was restarted");
	case OUTCOME_NONSENSE:
		break;
	}
	return err_set(err, ERR_INVALID, "extraction answered nonsense");
}

enum err_code extractor_run(
	struct extractor *e, const struct extraction_files *files, struct err *err)
{
	struct extractor_slot *s = extractor_slot_take(e);
	struct extractor_answer a;
	enum err_code rc;

	if (!s)
		return extractor_gone(e, err);
	if (!(rc = extractor_ask(e, s, files, err)) && !(rc = extractor_listen_to(e, s, &a, err)))
		rc = extractor_by_name(e, &a.result, err);
	extractor_slot_give(e, s);
	return rc;
}
