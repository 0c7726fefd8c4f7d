#include "cmd/epimetheus/limits.h"

#include <fts.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/self/sandbox_rows.h"

#define INT UINT32_MAX /* an int: the kernel ignores the upper half */

#define CLONE_SPACES \
	(CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUSER | \
		CLONE_NEWUTS)

/* clang-format off */
static const struct sandbox_call calls[] = {
	CALL(accept4, "connections to the web server"),
	CALL(access, "LevelDB and ours: is a file there"),
	CALL(brk, "memory"),
	CALL(clock_gettime, "time, where the vDSO has none"),
	CALL(clock_nanosleep, "the profiler of this process, between its looks"),
	WHERE(clone, 0, CLONE_THREAD | CLONE_VM | CLONE_PTRACE | CLONE_SPACES, CLONE_THREAD | CLONE_VM,
		"threads, never processes"),
	ABSENT(clone3, "its flags cannot be seen here; glibc falls back to clone"),
	CALL(close, "files and connections"),
	CALL(connect, "targets, name servers, Alertmanagers"),
	CALL(epoll_create1, "event loops that begin later, as with a reload"),
	CALL(epoll_ctl, "event loops"),
	CALL(epoll_wait, "event loops"),
	CALL(eventfd2, "waking event loops"),
	CALL(exit, "end of a thread"),
	CALL(exit_group, "end of the process"),
	CALL(fadvise64, "pages of blocks that are about to be read"),
	CALL(fcntl, "flags of descriptors; LevelDB's lock"),
	CALL(fdatasync, "the write path"),
	CALL(flock, "the data directory"),
	CALL(fsync, "the write path: files and directories"),
	CALL(ftruncate, "files a large compaction spills to"),
	CALL(futex, "locks"),
	CALL(getcwd, "the working directory, on the status page"),
	CALL(getdents64, "directories"),
	CALL(getegid, "libevent: is this program privileged"),
	CALL(geteuid, "libevent: is this program privileged"),
	CALL(getgid, "libevent: is this program privileged"),
	CALL(getpid, "signals to itself"),
	CALL(getrandom, "keys, ids, jitter"),
	CALL(getsockname, "own address of a connection"),
	CALL(getsockopt, "outcome of a connect"),
	CALL(gettid, "ids of threads, for the profiler"),
	CALL(gettimeofday, "time, where the vDSO has none"),
	CALL(getuid, "libevent: is this program privileged"),
	CALL(inotify_add_watch, "files of targets"),
	CALL(inotify_init1, "files of targets"),
	CALL(inotify_rm_watch, "files of targets"),
	WHERE(ioctl, 1, INT, TCGETS, "stdio: is this a terminal"),
	OWN(kill, 0, "an end that was asked for over HTTP; a refused call"),
	CALL(link, "snapshots"),
	CALL(lseek, "files"),
	CALL(madvise, "memory that is given back"),
	CALL(mkdir, "windows, blocks, snapshots"),
	WHERE(mmap, 2, PROT_EXEC, 0, "memory and files, never to be executed"),
	WHERE(mprotect, 2, PROT_EXEC, 0, "memory and stacks, never to be executed"),
	CALL(mremap, "memory"),
	CALL(munmap, "memory"),
	CALL(newfstatat, "files: kinds, sizes, times"),
	CALL(openat, "files"),
	CALL(pipe2, "event loops: libevent makes a pipe for each"),
	CALL(poll, "connections"),
	WHERE(prctl, 0, INT, PR_SET_NAME, "names of threads"),
	CALL(pread64, "pages of stores and blocks"),
	WHERE(prlimit64, 2, UINT64_MAX, 0, "how many files may be open; limits are not changed"),
	OWN(process_vm_readv, 0, "the profiler of this process copies its own stacks"),
	CALL(pwrite64, "the cache of what a bucket has"),
	CALL(read, "files and connections"),
	CALL(recvfrom, "connections, answers of name servers"),
	CALL(recvmsg, "connections, answers of name servers"),
	CALL(rename, "what is written beside its place"),
	CALL(restart_syscall, "the kernel, after a stop"),
	CALL(rmdir, "what is dropped"),
	CALL(rseq, "glibc: start of a thread"),
	CALL(rt_sigaction, "the profiler's signal"),
	CALL(rt_sigpending, "a start that waits looks for signals"),
	CALL(rt_sigprocmask, "threads are started with signals blocked"),
	CALL(rt_sigreturn, "end of a signal handler"),
	CALL(rt_sigtimedwait, "the main thread waits for signals"),
	CALL(sched_getaffinity, "how many cores"),
	CALL(sched_yield, "locks of libraries"),
	CALL(sendmsg, "connections"),
	CALL(sendto, "connections, questions to name servers"),
	CALL(set_robust_list, "glibc: start of a thread"),
	WHERE(setpriority, 1, INT, 0, "maintenance steps back behind queries"),
	CALL(setsockopt, "connections"),
	CALL(shutdown, "connections"),
	WHERE(socket, 0, INT, AF_INET, "targets, name servers"),
	WHERE(socket, 0, INT, AF_INET6, "targets, name servers"),
	WHERE(socket, 0, INT, AF_UNIX, "sockets of this machine: targets, the Docker daemon"),
	CALL(statfs, "free space"),
	CALL(sysinfo, "glibc: how much memory, before it sorts"),
	OWN(tgkill, 0, "an abort ends this process"),
	CALL(time, "time, where the vDSO has none"),
	CALL(timer_create, "the profiler of this process: a timer per thread"),
	CALL(timer_delete, "the profiler of this process"),
	CALL(timer_settime, "the profiler of this process"),
	CALL(timerfd_create, "event loops to the millisecond"),
	CALL(timerfd_settime, "event loops to the millisecond"),
	CALL(truncate, "a segment whose end a crash left, cut when its window is opened"),
	CALL(uname, "the name of this host"),
	CALL(unlink, "what is dropped"),
	CALL(write, "files, connections, the log"),
	CALL(writev, "last words of glibc before an abort"),
};
/* clang-format on */

const struct sandbox_profile limits_server = { "server", calls, sizeof(calls) / sizeof(calls[0]) };

/* Something below is another user's, or may not be written by its own. */
static bool limits_wants_override(const char *dir)
{
	char *const path[] = { (char *)(uintptr_t)dir, NULL };
	FTS *walk = fts_open(path, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
	uid_t own = geteuid();
	bool found = !walk;
	FTSENT *e;

	while (!found && (e = fts_read(walk))) {
		if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS)
			found = true; /* unknown: the right stays */
		else if (e->fts_info == FTS_D || e->fts_info == FTS_F)
			found = e->fts_statp->st_uid != own || !(e->fts_statp->st_mode & S_IWUSR);
	}
	if (walk)
		fts_close(walk);
	return found;
}

static uint64_t limits_capabilities_needed(uint64_t have, const char *const *dirs, size_t n)
{
	uint64_t read = have & SANDBOX_CAPABILITY(CAP_DAC_READ_SEARCH);
	uint64_t override = have & SANDBOX_CAPABILITY(CAP_DAC_OVERRIDE);

	if (!read || !override)
		return read | override;
	for (size_t i = 0; i < n; i++)
		if (limits_wants_override(dirs[i]))
			return override;
	return read;
}

static void limits_capabilities(const char *const *dirs, size_t n)
{
	uint64_t have = sandbox_capabilities(), keep = limits_capabilities_needed(have, dirs, n);
	const char *kept = keep & SANDBOX_CAPABILITY(CAP_DAC_OVERRIDE) ? "dac_override" :
		keep                                                       ? "dac_read_search" :
																	 "none";
	struct err err;

	if (sandbox_limit_capabilities(keep, &err))
		log_warn("sandbox", "capabilities are not dropped", LOG_E(&err));
	else if (have)
		log_info("sandbox", "capabilities dropped", LOG_S("kept", kept));
}

void limits_open(const char *data_dir, const char *cache_dir)
{
	const char *dirs[2];
	size_t n = 0;
	struct err err;

	/* The database reports a directory that cannot be made. */
	if (data_dir[0] && !fs_mkdir_all(&fs_posix, data_dir, &err))
		dirs[n++] = data_dir;
	/* So does the cache, which goes on without it. */
	if (n && cache_dir && cache_dir[0] && !fs_mkdir_all(&fs_posix, cache_dir, &err))
		dirs[n++] = cache_dir;
	limits_capabilities(dirs, n);
	if (n && sandbox_limit_files(dirs, n, &err))
		log_warn("sandbox", "files are not limited", LOG_E(&err));
}

void limits_calls(void)
{
	struct err err;

	if (sandbox_limit_calls(&limits_server, LIMITS_SIGNAL, &err))
		log_warn("sandbox", "system calls are not limited", LOG_E(&err));
}
