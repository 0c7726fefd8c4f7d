#include "base/self/sampler.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/thread.h"

#define POLL_NS (10 * NS_PER_MS)
#define RED_ZONE 128 /* below the stack pointer, but in use: System V ABI AMD64, 3.2.2 */

enum slot_state { SLOT_FREE, SLOT_WRITING, SLOT_READY };

struct sampler_slot {
	atomic_int state;
	int tid;
	struct unwind_context context; /* its stack is `stack` */
	unsigned char stack[SAMPLER_STACK_BYTES];
};

/*
 * The handler's state. `slots` is set before `active`, and unmapped only when `active` is false and
 * no handler is inside.
 */
static struct sampler_slot *slots;
static atomic_bool active;
static atomic_int inside;
static atomic_uint_fast64_t lost;
static atomic_uint next_slot;

static struct mutex in_use = MUTEX_INIT;

/* Threads with their names, from sampler_thread_enter. Guarded by `named_lock`. */
static struct mutex named_lock = MUTEX_INIT;
static struct sampler_named {
	int tid;
	char name[16];
} named[SAMPLER_THREADS_MAX];

/* ---- the handler ---- */

static struct sampler_slot *sampler_take_slot(void)
{
	unsigned first = atomic_fetch_add_explicit(&next_slot, 1, memory_order_relaxed);

	for (unsigned i = 0; i < 4; i++) { /* bounded: a full ring loses the sample */
		struct sampler_slot *s = &slots[(first + i) % SAMPLER_SLOTS];
		int expected = SLOT_FREE;

		if (atomic_compare_exchange_strong(&s->state, &expected, SLOT_WRITING))
			return s;
	}
	return NULL;
}

/* DWARF's numbering of the general registers, by ucontext's. */
static const int greg_of[UNWIND_REGS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
	REG_RBP, REG_RSP, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
	REG_RIP };

static void sampler_slot_copy_sample(struct sampler_slot *s, const ucontext_t *uc)
{
	struct iovec to = { s->stack, SAMPLER_STACK_BYTES }, from;
	ssize_t n;

	for (int i = 0; i < UNWIND_REGS; i++)
		s->context.regs[i] = (uint64_t)uc->uc_mcontext.gregs[greg_of[i]];
	s->context.stack_base = s->context.regs[UNWIND_RSP] - RED_ZONE;
	from = (struct iovec){ (void *)(uintptr_t)s->context.stack_base, SAMPLER_STACK_BYTES };
	/* Reads what is mapped and stops there; a plain copy could run off the end of the stack. */
	n = syscall(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0);
	s->context.stack = s->stack;
	s->context.stack_len = n > 0 ? (size_t)n : 0;
	s->tid = (int)syscall(SYS_gettid);
}

static void sampler_on_sigprof(int sig, siginfo_t *info, void *uc)
{
	int saved_errno = errno;
	struct sampler_slot *s;

	(void)sig;
	(void)info;
	atomic_fetch_add(&inside, 1);
	if (atomic_load(&active)) {
		s = sampler_take_slot();
		if (s) {
			sampler_slot_copy_sample(s, uc);
			atomic_store(&s->state, SLOT_READY);
		} else {
			atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
		}
	}
	atomic_fetch_sub(&inside, 1);
	errno = saved_errno;
}

/* ---- threads and their timers ---- */

struct sampler_timed {
	int tid;
	timer_t timer;
	bool seen; /* in the scan under way */
};

struct sampler_run {
	const struct unwind_tables *tables;
	int64_t period_ns;
	sampler_fn fn;
	void *ctx;
	struct sampler_stats *stats;
	struct sampler_timed timed[SAMPLER_THREADS_MAX];
	size_t timed_n;
	int self;
};

/* The clock of another thread's CPU time, by its id: the layout is Linux's (posix-timers.h). */
static clockid_t sampler_thread_clock(int tid)
{
	return (clockid_t)((~(unsigned)tid << 3) | 6u);
}

static void sampler_run_time_thread(struct sampler_run *r, int tid)
{
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
	struct itimerspec spec = { .it_interval.tv_sec = r->period_ns / NS_PER_S,
		.it_interval.tv_nsec = r->period_ns % NS_PER_S };
	struct sampler_timed *t;

	for (size_t i = 0; i < r->timed_n; i++)
		if (r->timed[i].tid == tid) {
			r->timed[i].seen = true;
			return;
		}
	/* The draining thread is left out: it works only because of the profile. */
	if (tid == r->self || r->timed_n == SAMPLER_THREADS_MAX)
		return;
	t = &r->timed[r->timed_n];
	ev._sigev_un._tid = tid;
	if (timer_create(sampler_thread_clock(tid), &ev, &t->timer))
		return; /* ended meanwhile */
	/* The first sample comes after a random part of a period, so that short-lived work is seen
	 * in proportion. */
	spec.it_value.tv_sec = 0;
	spec.it_value.tv_nsec = 1 +
		(long)(map_hash_u64((uint64_t)clock_monotonic_ns() + (uint64_t)tid) %
			(uint64_t)(r->period_ns < NS_PER_S ? r->period_ns : NS_PER_S - 1));
	timer_settime(t->timer, 0, &spec, NULL);
	t->tid = tid;
	t->seen = true;
	r->timed_n++;
	if (r->timed_n > r->stats->threads)
		r->stats->threads = r->timed_n;
}

static void sampler_run_scan_named(struct sampler_run *r)
{
	int tids[SAMPLER_THREADS_MAX];
	size_t n = 0;

	mutex_lock(&named_lock);
	for (size_t i = 0; i < SAMPLER_THREADS_MAX; i++)
		if (named[i].tid)
			tids[n++] = named[i].tid;
	mutex_unlock(&named_lock);
	sampler_run_time_thread(r, getpid());
	for (size_t i = 0; i < n; i++)
		sampler_run_time_thread(r, tids[i]);
}

static void sampler_run_scan_threads(struct sampler_run *r)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	uint64_t tid;
	size_t i;

	for (i = 0; i < r->timed_n; i++)
		r->timed[i].seen = false;
	if (dir) {
		while ((e = readdir(dir)))
			if (str_to_u64(str_of(e->d_name), &tid) && tid <= INT32_MAX)
				sampler_run_time_thread(r, (int)tid);
		closedir(dir);
	} else {
		sampler_run_scan_named(r);
	}
	for (i = 0; i < r->timed_n;) {
		if (r->timed[i].seen) {
			i++;
			continue;
		}
		timer_delete(r->timed[i].timer);
		r->timed[i] = r->timed[--r->timed_n];
	}
}

/* ---- draining ---- */

static void sampler_run_drain(struct sampler_run *r)
{
	uint64_t pcs[UNWIND_DEPTH_MAX];
	size_t n;

	for (size_t i = 0; i < SAMPLER_SLOTS; i++) {
		struct sampler_slot *s = &slots[i];

		if (atomic_load(&s->state) != SLOT_READY)
			continue;
		n = unwind_walk(r->tables, &s->context, pcs, UNWIND_DEPTH_MAX);
		if (n) {
			r->fn(r->ctx, s->tid, pcs, n);
			r->stats->samples++;
		}
		atomic_store(&s->state, SLOT_FREE);
	}
}

static enum err_code sampler_run_sample_until(
	struct sampler_run *r, int64_t end_ns, const atomic_bool *cancel, struct err *err)
{
	const struct timespec nap = { .tv_nsec = POLL_NS };
	int64_t now = clock_monotonic_ns(), scan_at = now;

	for (; now < end_ns; now = clock_monotonic_ns()) {
		if (cancel && atomic_load(cancel))
			return err_set(err, ERR_CANCELED, "cpu profile: canceled");
		if (now >= scan_at) {
			sampler_run_scan_threads(r);
			scan_at = now + SAMPLER_SCAN_NS;
		}
		nanosleep(&nap, NULL);
		sampler_run_drain(r);
	}
	return ERR_OK;
}

/* Slots may go only when the timers are off and no handler is inside. */
static void sampler_run_stop(struct sampler_run *r)
{
	const struct timespec nap = { .tv_nsec = NS_PER_MS };

	for (size_t i = 0; i < r->timed_n; i++)
		timer_delete(r->timed[i].timer);
	atomic_store(&active, false);
	while (atomic_load(&inside))
		nanosleep(&nap, NULL);
	sampler_run_drain(r);
}

enum err_code sampler_run(int64_t duration_ns, int64_t period_ns, const atomic_bool *cancel,
	const struct unwind_tables *tables, sampler_fn fn, void *ctx, struct sampler_stats *stats,
	struct err *err)
{
	struct sigaction sa = { .sa_sigaction = sampler_on_sigprof,
		.sa_flags = SA_SIGINFO | SA_RESTART };
	size_t bytes = SAMPLER_SLOTS * sizeof(struct sampler_slot);
	enum err_code rc = ERR_OK;
	struct sampler_run *r;

	assert(duration_ns >= 0 && period_ns > 0);
	*stats = (struct sampler_stats){ 0 };
	if (!mutex_try_lock(&in_use))
		return err_set(err, ERR_UNAVAILABLE, "cpu profiling already in use");
	r = calloc(1, sizeof(*r));
	slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!r || slots == MAP_FAILED) {
		rc = err_nomem(err, "cpu profile");
		goto done;
	}
	*r = (struct sampler_run){ .tables = tables,
		.period_ns = period_ns,
		.fn = fn,
		.ctx = ctx,
		.stats = stats,
		.self = (int)syscall(SYS_gettid) };
	sigemptyset(&sa.sa_mask);
	sigaction(SIGPROF, &sa, NULL); /* stays: a late signal must never end the process */
	atomic_store(&lost, 0);
	atomic_store(&active, true);
	rc = sampler_run_sample_until(r, clock_monotonic_ns() + duration_ns, cancel, err);
	sampler_run_stop(r);
	stats->lost = atomic_load(&lost);
done:
	if (slots != MAP_FAILED)
		munmap(slots, bytes);
	free(r);
	mutex_unlock(&in_use);
	return rc;
}

/* ---- names ---- */

void sampler_thread_enter(const char *name)
{
	int tid = (int)syscall(SYS_gettid);

	mutex_lock(&named_lock);
	for (size_t i = 0; i < SAMPLER_THREADS_MAX; i++) {
		if (named[i].tid)
			continue;
		named[i].tid = tid;
		snprintf(named[i].name, sizeof(named[i].name), "%s", name);
		break;
	}
	mutex_unlock(&named_lock);
}

void sampler_thread_leave(void)
{
	int tid = (int)syscall(SYS_gettid);

	mutex_lock(&named_lock);
	for (size_t i = 0; i < SAMPLER_THREADS_MAX; i++)
		if (named[i].tid == tid)
			named[i].tid = 0;
	mutex_unlock(&named_lock);
}

static bool sampler_named_thread(int tid, char out[16])
{
	bool found = false;

	mutex_lock(&named_lock);
	for (size_t i = 0; i < SAMPLER_THREADS_MAX && !found; i++)
		if (named[i].tid == tid) {
			memcpy(out, named[i].name, sizeof(named[i].name));
			found = true;
		}
	mutex_unlock(&named_lock);
	return found;
}

void sampler_thread_name(int tid, char out[16])
{
	char path[64];
	ssize_t n;
	int fd;

	memset(out, 0, 16);
	if (sampler_named_thread(tid, out))
		return;
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, out, 15);
	close(fd);
	while (n > 0 && out[n - 1] == '\n')
		out[--n] = '\0';
}
