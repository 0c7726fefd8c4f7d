/*
 * The server's limits, each in a process that does one thing under them; its exit code is the
 * result.
 */
#include "cmd/epimetheus/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "tests/check.h"

#define CANNOT_LIMIT 125
#define UNTOLD 124

/* ---- the tables ---- */

static void check_order(const char *what, const struct sandbox_call *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct sandbox_call *c = &calls[i], *next = i + 1 < n ? &calls[i + 1] : NULL;

		if (!c->why || !c->why[0])
			CHECK_FAIL("%s: %s has no reason", what, c->name);
		if (next && strcmp(c->name, next->name) > 0)
			CHECK_FAIL("%s: %s comes after %s", what, c->name, next->name);
		if (next && c->nr == next->nr && c->when != SANDBOX_ARG)
			CHECK_FAIL("%s: %s has a row behind one that decides", what, c->name);
		if ((c->value & ~c->mask) || c->arg > 5)
			CHECK_FAIL("%s: %s can never hold", what, c->name);
	}
}

TEST(tables_are_sorted_and_give_reasons)
{
	check_order("server", limits_server.calls, limits_server.calls_n);
	check_order("hostile", sandbox_hostile, sandbox_hostile_n);
}

TEST(no_profile_allows_what_is_hostile)
{
	for (size_t i = 0; i < limits_server.calls_n; i++)
		for (size_t k = 0; k < sandbox_hostile_n; k++)
			if (limits_server.calls[i].nr == sandbox_hostile[k].nr)
				CHECK_FAIL("%s is allowed", limits_server.calls[i].name);
}

/* ---- one call in a separate process ---- */

/* The server's profile; the address sanitizer changes its signal stack at the end of a thread. */
static const struct sandbox_profile *profile(void)
{
#ifdef __SANITIZE_ADDRESS__
	static const struct sandbox_call own = { __NR_sigaltstack, "sigaltstack", "ASan",
		SANDBOX_ALWAYS };
	static struct sandbox_call calls[256];
	static struct sandbox_profile p;

	memcpy(calls, limits_server.calls, limits_server.calls_n * sizeof(calls[0]));
	calls[limits_server.calls_n] = own;
	p = (struct sandbox_profile){ "server", calls, limits_server.calls_n + 1 };
	return &p;
#else
	return &limits_server;
#endif
}

/* The result of a call: 0, or the number of its error. */
static int outcome(long got)
{
	return got < 0 ? errno : 0;
}

static int ask(int (*fn)(void))
{
	struct err err;
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(sandbox_limit_calls(profile(), 0, &err) ? CANNOT_LIMIT : fn());
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int do_execve(void)
{
	char *argv[] = { (char *)(uintptr_t) "true", NULL };

	return outcome(execv("/bin/true", argv));
}

static int do_ptrace(void)
{
	return outcome(ptrace(PTRACE_TRACEME, 0, 0, 0));
}

static int do_fork(void)
{
	return outcome(syscall(SYS_fork));
}

static int do_clone_process(void)
{
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return outcome(pid);
}

static int do_clone3(void)
{
	return outcome(syscall(SYS_clone3, NULL, 0));
}

static int do_x32(void)
{
	return outcome(syscall(0x40000000 | SYS_getpid));
}

static int do_int80(void)
{
	long got = 20; /* getpid among the calls of 32 bits */

	__asm__ volatile("int $0x80" : "+a"(got) : : "memory");
	return outcome(got);
}

static int do_unknown(void)
{
	return outcome(syscall(SYS_memfd_create, "x", 0));
}

static int do_future(void)
{
	return outcome(syscall(100000));
}

static int do_netlink(void)
{
	return outcome(socket(AF_NETLINK, SOCK_RAW, 0));
}

static int do_unix(void)
{
	return outcome(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int do_tcp(void)
{
	return outcome(socket(AF_INET, SOCK_STREAM, 0));
}

static int do_tcp6(void)
{
	int got = outcome(socket(AF_INET6, SOCK_STREAM, 0));

	return got == EAFNOSUPPORT ? 0 : got; /* refused by the kernel, not by the filter */
}

static int do_bind(void)
{
	struct sockaddr a = { .sa_family = AF_INET };

	return outcome(bind(socket(AF_INET, SOCK_STREAM, 0), &a, sizeof(a)));
}

static int map(int prot)
{
	return mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
}

static int do_map(void)
{
	return outcome(map(PROT_READ | PROT_WRITE));
}

static int do_map_code(void)
{
	return outcome(map(PROT_READ | PROT_EXEC));
}

static int do_protect_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return outcome(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

static int do_kill_itself(void)
{
	return outcome(kill(getpid(), 0));
}

static int do_kill_another(void)
{
	return outcome(kill(1, 0));
}

static int read_stack_of(pid_t pid)
{
	char from[8] = "stack", to[8] = "";
	struct iovec a = { to, sizeof(to) }, b = { from, sizeof(from) };

	if (process_vm_readv(pid, &a, 1, &b, 1, 0) < 0)
		return errno;
	return strcmp(to, from) ? -1 : 0;
}

static int do_read_itself(void)
{
	return read_stack_of(getpid());
}

static int do_read_another(void)
{
	return read_stack_of(1);
}

static int do_limit_files(void)
{
	struct rlimit r = { 10, 10 };

	return outcome(setrlimit(RLIMIT_NOFILE, &r));
}

static int do_show_limit(void)
{
	struct rlimit r;

	return outcome(getrlimit(RLIMIT_NOFILE, &r));
}

TEST(calls_under_the_servers_limits)
{
	static const struct {
		const char *what;
		int (*fn)(void);
		int want; /* 0, an error, or 1000 + the signal that ends it */
	} rows[] = {
		{ "execve", do_execve, 1000 + SIGSYS },
		{ "ptrace", do_ptrace, 1000 + SIGSYS },
		{ "fork", do_fork, 1000 + SIGSYS },
		{ "a process by clone", do_clone_process, EPERM },
		{ "clone3", do_clone3, ENOSYS },
		{ "x32", do_x32, 1000 + SIGSYS },
		{ "32 bits", do_int80, 1000 + SIGSYS },
		{ "memfd_create", do_unknown, ENOSYS },
		{ "a call of tomorrow", do_future, ENOSYS },
		{ "netlink socket", do_netlink, EPERM },
		{ "unix socket", do_unix, 0 },
		{ "TCP socket", do_tcp, 0 },
		{ "TCP socket, v6", do_tcp6, 0 },
		{ "bind", do_bind, ENOSYS },
		{ "memory", do_map, 0 },
		{ "memory to execute", do_map_code, EPERM },
		{ "memory that becomes code", do_protect_code, EPERM },
		{ "signal to itself", do_kill_itself, 0 },
		{ "signal to another", do_kill_another, EPERM },
		{ "its own memory", do_read_itself, 0 },
		{ "another's memory", do_read_another, EPERM },
		{ "a new limit", do_limit_files, EPERM },
		{ "the limit there is", do_show_limit, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int got = ask(rows[i].fn);

		if (got != rows[i].want)
			CHECK_FAIL("%s gives %d, want %d", rows[i].what, got, rows[i].want);
	}
}

/* ---- threads ---- */

static atomic_int go_on;

static void *try_in_thread(void *arg)
{
	while (!atomic_load(&go_on))
		sched_yield();
	*(int *)arg = do_unknown();
	return NULL;
}

static int do_in_threads(void)
{
	struct err err;
	pthread_t before, after;
	int got[2] = { -1, -1 };

	if (pthread_create(&before, NULL, try_in_thread, &got[0]))
		return UNTOLD;
	if (sandbox_limit_calls(profile(), 0, &err))
		return CANNOT_LIMIT;
	if (pthread_create(&after, NULL, try_in_thread, &got[1]))
		return UNTOLD;
	atomic_store(&go_on, 1);
	if (pthread_join(before, NULL) || pthread_join(after, NULL))
		return UNTOLD;
	return got[0] == ENOSYS && got[1] == ENOSYS ? 0 : 1;
}

static int alone(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(fn());
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(threads_from_before_and_after_are_covered)
{
	CHECK_INT(alone(do_in_threads), 0);
}

/* ---- reports ---- */

/* A refused call sends the signal; the report is one line per call, however often it was made. */
static int do_report(void)
{
	sigset_t set;
	struct err err;
	int sig, lines[2];
	char text[4096];
	ssize_t n;

	if (pipe(lines) || dup2(lines[1], STDERR_FILENO) < 0)
		return UNTOLD;
	sigemptyset(&set);
	sigaddset(&set, LIMITS_SIGNAL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (sandbox_limit_calls(profile(), LIMITS_SIGNAL, &err))
		return CANNOT_LIMIT;
	do_unknown();
	do_unknown();
	do_netlink();
	if (sigwait(&set, &sig) || sig != LIMITS_SIGNAL)
		return 1;
	sandbox_report();
	do_netlink();
	sandbox_report();
	n = read(lines[0], text, sizeof(text) - 1);
	if (n <= 0)
		return 2;
	text[n] = '\0';
	if (!strstr(text, "msg=\"system call refused\" call=socket\n"))
		return 3;
	if (!strstr(text, "msg=\"system call refused\" call=\"number 319\"\n"))
		return 4;
	for (n = 0; *text && strchr(text, '\n'); n++)
		memmove(text, strchr(text, '\n') + 1, strlen(strchr(text, '\n')));
	return n == 2 ? 0 : 5;
}

TEST(refused_calls_are_told_once)
{
	CHECK_INT(alone(do_report), 0);
}

/* A signal from another process refuses nothing, and ends nothing. */
static int do_sent_sigsys(void)
{
	return outcome(kill(getpid(), SIGSYS));
}

TEST(a_sent_sigsys_is_harmless)
{
	CHECK_INT(ask(do_sent_sigsys), 0);
}

/* ---- files ---- */

static char dir[] = "/tmp/epi-limits-XXXXXX";

static int open_code(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* Prints each unexpected result, and returns their number. */
static int do_files(void)
{
	char *argv[] = { (char *)(uintptr_t) "true", NULL };
	struct err err;

	if (sandbox_limit_files((const char *[]){ "data" }, 1, &err))
		return CANNOT_LIMIT;
	CHECK_INT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
	CHECK_INT(open_code("data/file", O_CREAT | O_RDWR), 0);
	CHECK_INT(open_code("data/file", O_TRUNC | O_WRONLY), 0);
	CHECK_INT(outcome(mkdir("data/a", 0700)), 0);
	CHECK_INT(outcome(link("data/file", "data/a/file")), 0);
	CHECK_INT(outcome(rename("data/a/file", "data/other")), 0);
	CHECK_INT(outcome(unlink("data/other")), 0);
	CHECK_INT(outcome(rmdir("data/a")), 0);
	CHECK_INT(open_code("there", O_RDONLY), 0);
	CHECK_INT(open_code("data/../there", O_RDWR), EACCES);
	CHECK_INT(open_code("fresh", O_CREAT | O_RDWR), EACCES);
	CHECK_INT(outcome(mkdir("fresh", 0700)), EACCES);
	CHECK_INT(outcome(unlink("there")), EACCES);
	CHECK_INT(outcome(rename("data/file", "file")), EACCES);
	CHECK_INT(outcome(symlink("x", "data/link")), EACCES);
	CHECK_INT(outcome(execv("/bin/true", argv)), EACCES);
	fflush(stdout);
	return check_failures;
}

TEST(files_are_written_below_the_data_directory_alone)
{
	struct err err;

	if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 2)
		SKIP("this kernel has no Landlock");
	REQUIRE(mkdtemp(dir) && !chdir(dir));
	REQUIRE(!mkdir("data", 0700) && !open_code("there", O_CREAT | O_WRONLY));
	CHECK_INT(alone(do_files), 0);
	CHECK_INT(chdir("/"), 0);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
}

/* ---- without kernel support ---- */

/* A container's own filter, which answers seccomp(2) and Landlock with an error. */
static int refuse_limits(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_seccomp, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_landlock_create_ruleset, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int do_refused(void)
{
	struct err err;

	if (refuse_limits())
		return UNTOLD;
	if (sandbox_limit_calls(profile(), 0, &err) != ERR_UNAVAILABLE)
		return 1;
	if (strcmp(err.msg, "seccomp: Operation not permitted"))
		return 2;
	if (sandbox_limit_files((const char *[]){ "/tmp" }, 1, &err) != ERR_UNAVAILABLE)
		return 3;
	return strcmp(err.msg, "landlock: version: Operation not permitted") ? 4 : 0;
}

TEST(what_a_container_refuses_is_an_error)
{
	CHECK_INT(alone(do_refused), 0);
}
