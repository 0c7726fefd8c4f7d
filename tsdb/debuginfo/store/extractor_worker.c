/* The worker: gives up everything, then runs the function on a file that may be hostile. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/self/sandbox_rows.h"
#include "tsdb/debuginfo/store/extractor_internal.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* their shadow is terabytes of address space */
#define MAP_FREE (MAP_NORESERVE | MAP_STACK | MAP_FIXED) /* they place memory themselves */
#else
#define SANITIZED 0
#define MAP_FREE (MAP_NORESERVE | MAP_STACK)
#endif
#define BASE_BYTES_UNKNOWN (64u << 20) /* of this program, where there is no /proc */

/* clang-format off */
static const struct sandbox_call calls[] = {
	CALL(brk, "memory"),
	CALL(clock_gettime, "time, where the vDSO has none"),
	CALL(exit, "the end"),
	CALL(exit_group, "the end"),
	CALL(fstat, "sizes of its descriptors"),
	CALL(futex, "locks of libraries"),
	CALL(getpid, "an abort"),
	CALL(getrandom, "glibc: a key of malloc; seeds of hashes"),
	CALL(gettid, "an abort"),
#if SANITIZED
	CALL(gettimeofday, "the sanitizer's thread"),
#endif
	CALL(madvise, "memory that is given back"),
	WHERE(mmap, 3, UINT32_MAX & ~(uint64_t)MAP_FREE, MAP_PRIVATE | MAP_ANONYMOUS,
		"memory, no files"),
	WHERE(mprotect, 2, PROT_EXEC, 0, "memory, never to be executed"),
	CALL(mremap, "memory"),
	CALL(munmap, "memory"),
#if SANITIZED
	CALL(nanosleep, "the sanitizer's thread"),
#endif
	CALL(read, "its descriptors"),
	CALL(restart_syscall, "the kernel, after a stop"),
#if SANITIZED
	CALL(rseq, "the sanitizer's thread, which may start late"),
#endif
	CALL(rt_sigprocmask, "an abort"),
	CALL(rt_sigreturn, "end of a signal handler"),
#if SANITIZED
	CALL(sched_yield, "the sanitizer's locks"),
	CALL(set_robust_list, "the sanitizer's thread, which may start late"),
	CALL(sigaltstack, "the sanitizer, before a function that does not return"),
#endif
	CALL(sysinfo, "glibc: how much memory, before it sorts"),
	OWN(tgkill, 0, "an abort ends this process"),
	CALL(write, "the index, the result"),
};
/* clang-format on */

static const struct sandbox_profile worker = { "worker", calls, sizeof(calls) / sizeof(calls[0]),
	true };

static void extractor_worker_finish(int fd, enum outcome outcome, uint32_t code, struct str text)
{
	struct extractor_result r = { .outcome = outcome, .code = code };

	r.text_len = (uint32_t)(text.len < TEXT_BYTES_MAX ? text.len : TEXT_BYTES_MAX);
	memcpy(r.text, text.len ? text.ptr : "", r.text_len);
	(void)!write(fd, &r, sizeof(r));
	_exit(0);
}

static void extractor_worker_limit(int what, uint64_t value)
{
	struct rlimit l = { value, what == RLIMIT_CPU ? value + 1 : value };

	setrlimit((__rlimit_resource_t)what, &l);
}

/* The address space that this process has now. */
static uint64_t extractor_worker_base_bytes(uint64_t input_bytes)
{
	unsigned long pages = 0;
	char text[64] = { 0 };
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, text, sizeof(text) - 1) > 0)
			pages = strtoul(text, NULL, 10);
		close(fd);
	}
	return pages ? pages * (uint64_t)sysconf(_SC_PAGESIZE) : BASE_BYTES_UNKNOWN + input_bytes;
}

static void extractor_worker_limit_all(const struct extractor_options *o, uint64_t input_bytes)
{
	if (!SANITIZED)
		extractor_worker_limit(
			RLIMIT_AS, extractor_worker_base_bytes(input_bytes) + o->memory_bytes_max);
	extractor_worker_limit(RLIMIT_CPU, o->cpu_s);
	extractor_worker_limit(RLIMIT_FSIZE, o->output_bytes_max);
	extractor_worker_limit(RLIMIT_CORE, 0);
	extractor_worker_limit(RLIMIT_NOFILE, 0);
	extractor_worker_limit(RLIMIT_NPROC, 0);
	setpriority(PRIO_PROCESS, 0, 10);
}

static void extractor_worker_signals_as_new(void)
{
	sigset_t none;

	for (int s = 1; s < 32; s++)
		signal(s, SIG_DFL);
	signal(SIGXFSZ, SIG_IGN); /* write then says EFBIG */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* No descriptor stays but the two to write to. */
static void extractor_worker_close_rest(int out_fd, int result_fd)
{
	int low = out_fd < result_fd ? out_fd : result_fd;
	int high = out_fd < result_fd ? result_fd : out_fd;

	if (low > 0)
		syscall(SYS_close_range, 0, (unsigned)low - 1, 0);
	if (high > low + 1)
		syscall(SYS_close_range, (unsigned)low + 1, (unsigned)high - 1, 0);
	syscall(SYS_close_range, (unsigned)high + 1, ~0u, 0);
}

static void extractor_worker_write_out(
	const struct extractor_options *o, int out_fd, int result_fd, const struct buf *out)
{
	size_t done = 0;
	ssize_t n;

	if (buf_failed(out))
		extractor_worker_finish(result_fd, OUTCOME_RETURNED, ERR_NOMEM, STR(""));
	if (out->len > o->output_bytes_max)
		extractor_worker_finish(result_fd, OUTCOME_OUTPUT, 0, STR(""));
	while (done < out->len) {
		n = write(out_fd, out->ptr + done, out->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			extractor_worker_finish(result_fd,
				n < 0 && errno == EFBIG ? OUTCOME_OUTPUT : OUTCOME_WRITE,
				n < 0 ? (uint32_t)errno : ENOSPC, STR(""));
		done += (size_t)n;
	}
}

/* All of a file where bytes is 0. */
static struct str extractor_worker_map(int fd, uint64_t bytes, uint64_t bytes_max, int result_fd)
{
	struct stat st;
	void *map;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0 || (uint64_t)st.st_size < bytes ||
		(bytes ? bytes : (uint64_t)st.st_size) > bytes_max)
		extractor_worker_finish(result_fd, OUTCOME_INPUT, 0, STR(""));
	if (!bytes)
		bytes = (uint64_t)st.st_size;
	map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		extractor_worker_finish(result_fd, OUTCOME_NO_CHILD, (uint32_t)errno, STR(""));
	return (struct str){ map, (size_t)bytes };
}

void extractor_work(const struct extractor_options *o, const struct request *r,
	const int fds[REQUEST_FDS], int result_fd, int slot_pid)
{
	struct str input, older = STR("");
	struct buf out = { 0 };
	struct err err = { .code = ERR_OK };
	enum err_code rc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != slot_pid)
		_exit(1);
	prctl(PR_SET_DUMPABLE, 0);
	input = extractor_worker_map(fds[FD_IN], 0, o->input_bytes_max, result_fd);
	if (r->older_bytes)
		older = extractor_worker_map(fds[FD_OLDER], r->older_bytes, UINT64_MAX, result_fd);
	extractor_worker_close_rest(fds[FD_OUT], result_fd);
	extractor_worker_signals_as_new();
	extractor_worker_limit_all(o, input.len + older.len);
	if (sandbox_limit_calls(&worker, 0, &err))
		extractor_worker_finish(result_fd, OUTCOME_NO_FILTER, 0, STR(""));
	rc = o->fn(input, older, &out, &err);
	if (!rc)
		extractor_worker_write_out(o, fds[FD_OUT], result_fd, &out);
	extractor_worker_finish(result_fd, OUTCOME_RETURNED, (uint32_t)rc, str_of(err.msg));
	_exit(1);
}
