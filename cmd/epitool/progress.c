#include "cmd/epitool/progress.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "cmd/epitool/epitool.h"

#define FIRST_NS NS_PER_S
#define EACH_NS (100 * NS_PER_MS)
#define BAR_WIDTH 24
#define LOOK_NS (50 * NS_PER_MS)
#define ERASE "\r\033[K"

atomic_bool interrupted;
static _Atomic uint64_t bytes_done, bytes_total;
static volatile sig_atomic_t interrupted_by;

static struct {
	struct mutex lock;
	struct cond changed;
	struct thread thread;
	const char *what;
	bool running;
} line;

static void progress_on_signal(int sig)
{
	interrupted_by = sig;
	atomic_store(&interrupted, true);
}

int interrupt_exit_code(int rc)
{
	return rc == EXIT_FAILED && atomic_load(&interrupted) ? 128 + interrupted_by : rc;
}

void interrupt_catch(void)
{
	struct sigaction a = { .sa_handler = progress_on_signal,
		.sa_flags = SA_RESTART | (int)SA_RESETHAND };

	sigemptyset(&a.sa_mask);
	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
}

static void progress_print_line(double seconds)
{
	uint64_t total = atomic_load(&bytes_total), done = atomic_load(&bytes_done);
	int filled = total ? (int)(BAR_WIDTH * (double)done / (double)total) : 0;

	if (!total)
		fprintf(stderr, ERASE "%s: %.1f s", line.what, seconds);
	else
		fprintf(stderr, ERASE "%s: [%.*s%*s] %3d%% of %.1f MiB, %.1f s", line.what, filled,
			"########################", BAR_WIDTH - filled, "",
			(int)(100 * (double)done / (double)total), (double)total / (1 << 20), seconds);
}

static void progress_show(void *ctx)
{
	int64_t began = clock_monotonic_ns(), next = began + FIRST_NS;
	bool shown = false;

	mutex_lock(&line.lock);
	while (line.running) {
		if (cond_wait_until(&line.changed, &line.lock, next))
			continue;
		progress_print_line((double)(clock_monotonic_ns() - began) / 1e9);
		fflush(stderr);
		shown = true;
		next = clock_monotonic_ns() + EACH_NS;
	}
	mutex_unlock(&line.lock);
	if (shown) {
		fputs(ERASE, stderr);
		fflush(stderr);
	}
}

void progress_begin(const char *what)
{
	struct err err;

	assert(!line.running);
	if (!isatty(STDERR_FILENO))
		return;
	mutex_init(&line.lock);
	cond_init(&line.changed);
	line.what = what;
	progress_set(0, 0);
	line.running = true;
	if (thread_start(&line.thread, "progress", progress_show, NULL, &err)) {
		line.running = false; /* the command works without the line */
		mutex_destroy(&line.lock);
		cond_destroy(&line.changed);
	}
}

void progress_end(void)
{
	if (!line.running)
		return;
	mutex_lock(&line.lock);
	line.running = false;
	cond_signal(&line.changed);
	mutex_unlock(&line.lock);
	thread_join(&line.thread);
	cond_destroy(&line.changed);
	mutex_destroy(&line.lock);
}

void progress_set(uint64_t done, uint64_t total)
{
	atomic_store(&bytes_done, done);
	atomic_store(&bytes_total, total);
}

void progress_wait(int64_t ns)
{
	int64_t until = clock_monotonic_ns() + ns, left;

	while (!atomic_load(&interrupted) && (left = until - clock_monotonic_ns()) > 0)
		usleep((useconds_t)((left < LOOK_NS ? left : LOOK_NS) / 1000 + 1));
}
