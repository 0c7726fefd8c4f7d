/*
 * The child that extracts: functions that are honest, fail, loop, take all memory, crash, call what
 * is forbidden, write too much, and lie. The first byte of the input says which.
 */
#include "tsdb/debuginfo/store/extractor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/self/sandbox_rows.h"
#include "base/thread.h"
#include "tests/check.h"
#include "tests/wait.h"

#define OUTPUT_MAX 100000

static enum err_code take_memory(struct buf *out, struct err *err)
{
	for (;;) {
		char *p = malloc(1 << 20);

		if (!p)
			return err_nomem(err, "names");
		memset(p, 1, 1 << 20);
	}
}

static void overwrite_result(struct str input)
{
	char big[2000];

	memset(big, 0xff, sizeof(big));
	for (int fd = 0; fd < 64; fd++)
		(void)!write(fd, big, input.ptr[0] == 'n' ? 700 : sizeof(big));
	_exit(0);
}

/* As the processor does it: a sanitizer would report it instead. */
__attribute__((noinline, no_sanitize("address", "undefined", "thread"))) static void crash(void)
{
	volatile uintptr_t nowhere = 16;

	*(volatile int *)nowhere = 1;
}

static enum err_code act(struct str input, struct str older, struct buf *out, struct err *err)
{
	switch (input.ptr[0]) {
	case 'h': /* honest */
		buf_add_cstr(out, "index of ");
		buf_add_str(out, input);
		return ERR_OK;
	case 'H':
		buf_add_str(out, input);
		buf_add_cstr(out, " over ");
		buf_add_str(out, older);
		return ERR_OK;
	case 'e': /* an error with what a terminal would obey */
		return err_set(err, ERR_UNSUPPORTED, "a\x1b[31m\nlevel=error b");
	case 'E': { /* a long one */
		char text[900];

		memset(text, 'x', sizeof(text));
		return err_set(err, ERR_CORRUPT, "%.900s", text);
	}
	case 'c': /* code that is none */
		return (enum err_code)77;
	case 'l':
		for (;;)
			clock_gettime(CLOCK_REALTIME, &(struct timespec){ 0 });
	case 'p': /* waits without taking CPU */
		for (;;)
			syscall(SYS_futex, &(int){ 0 }, 0, 0, NULL, NULL, 0);
	case 'm':
		return take_memory(out, err);
	case 's':
		crash();
		return ERR_OK;
	case 'a':
		abort();
	case 'o':
		return open("/etc/passwd", O_RDONLY) < 0 ? ERR_IO : ERR_OK;
	case 'f':
		return fork() < 0 ? ERR_IO : ERR_OK;
	case 'k':
		return socket(AF_INET, SOCK_STREAM, 0) < 0 ? ERR_IO : ERR_OK;
	case 'K': /* its slot is another process */
		return kill(getppid(), SIGKILL) ? ERR_IO : ERR_OK;
	case 'w':
		while (out->len <= OUTPUT_MAX)
			buf_add_cstr(out, "more and more and more");
		return ERR_OK;
	case 'x':
		_exit(3);
	case 'n':
	case 'N':
		overwrite_result(input);
	}
	return err_set(err, ERR_INVALID, "unknown");
}

static const struct extractor_options options = { .fn = act,
	.cpu_s = 1,
	.timeout_ns = NS_PER_HOUR,
	.output_bytes_max = OUTPUT_MAX,
	.memory_bytes_max = 64u << 20,
	.input_bytes_max = 1000 };

static int file_of(const char *bytes)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, strlen(bytes)) != (ssize_t)strlen(bytes))
		abort();
	return fd;
}

/* A file's descriptor for writing only, as the worker gets it. */
static int output_new(char path[64])
{
	snprintf(path, 64, "/tmp/epi_extract_XXXXXX");
	close(mkstemp(path));
	return open(path, O_WRONLY | O_CLOEXEC);
}

static enum err_code run(struct extractor *x, const char *input, struct buf *out, struct err *err)
{
	char path[64];
	int in = file_of(input), fd = output_new(path);
	const struct extraction_files files = { in, -1, 0, fd };
	enum err_code rc = extractor_run(x, &files, err);

	buf_clear(out);
	if (!rc && fs_read_file(path, OUTPUT_MAX * 2, out, NULL))
		abort();
	unlink(path);
	close(in);
	close(fd);
	return rc;
}

TEST(outcomes)
{
	static const struct {
		const char *input;
		enum err_code rc;
		const char *want;
	} rows[] = {
		{ "hello", ERR_OK, "index of hello" },
		{ "e", ERR_UNSUPPORTED, "a?[31m?level=error b" },
		{ "c", ERR_INVALID, "extraction answered nonsense" },
		{ "n", ERR_INVALID, "extraction answered nonsense" },
		{ "N", ERR_INVALID, "extraction answered nonsense" },
		{ "s", ERR_INVALID, "extraction crashed with signal 11 (Segmentation fault)" },
		{ "a", ERR_INVALID, "extraction crashed with signal 6 (Aborted)" },
		{ "o", ERR_INVALID, "extraction made a system call that is forbidden" },
		{ "f", ERR_INVALID, "extraction made a system call that is forbidden" },
		{ "k", ERR_INVALID, "extraction made a system call that is forbidden" },
		{ "K", ERR_INVALID, "extraction made a system call that is forbidden" },
		{ "w", ERR_LIMIT, "index is more than 100000 bytes" },
		{ "x", ERR_INVALID, "extraction ended without a result, exit code 3" },
		{ "l", ERR_LIMIT, "extraction is over its CPU time, limit 1s" },
		{ "", ERR_LIMIT, "input is no file of 1 to 1000 bytes" },
		{ "hi", ERR_OK, "index of hi" },
	};
	struct extractor *x;
	struct buf out = { 0 };
	struct err err;

	REQUIRE_OK(extractor_open(&options, &x, &err), &err);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].rc) {
			CHECK_ERR(run(x, rows[i].input, &out, &err), &err, rows[i].rc, rows[i].want);
		} else {
			CHECK_OK(run(x, rows[i].input, &out, &err), &err);
			CHECK_STR(buf_str(&out), rows[i].want);
		}
	}
	CHECK_INT(run(x, "E", &out, &err), ERR_CORRUPT);
	CHECK_INT(strlen(err.msg), 500);
	extractor_close(x);
	buf_release(&out);
}

/* The function has as much of the older index as its caller says, and no more. */
TEST(an_older_index)
{
	static const char older[] = "what was there and a footer";
	struct extractor *x;
	struct buf out = { 0 };
	char path[64];
	int in = file_of("H new"), was = file_of(older), fd = output_new(path);
	struct err err;

	REQUIRE_OK(extractor_open(&options, &x, &err), &err);
	CHECK_OK(extractor_run(x, &(struct extraction_files){ in, was, 14, fd }, &err), &err);
	CHECK_OK(fs_read_file(path, OUTPUT_MAX, &out, &err), &err);
	CHECK_STR(buf_str(&out), "H new over what was there");
	CHECK_INT(ftruncate(fd, 0), 0);
	CHECK_ERR(extractor_run(x, &(struct extraction_files){ in, was, sizeof(older), fd }, &err),
		&err, ERR_LIMIT, "input is no file of 1 to 1000 bytes");
	extractor_close(x);
	buf_release(&out);
	unlink(path);
	close(in);
	close(was);
	close(fd);
}

TEST(memory)
{
	struct extractor *x;
	struct buf out = { 0 };
	struct err err;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("the sanitizer's shadow is terabytes of address space, which cannot be limited");
#endif
	REQUIRE_OK(extractor_open(&options, &x, &err), &err);
	CHECK_ERR(run(x, "m", &out, &err), &err, ERR_LIMIT,
		"extraction is over its memory, limit 67108864 bytes");
	extractor_close(x);
	buf_release(&out);
}

TEST(time_limit)
{
	struct extractor_options o = options;
	struct extractor *x;
	struct buf out = { 0 };
	struct err err;

	o.timeout_ns = NS_PER_S;
	o.cpu_s = 3600;
	REQUIRE_OK(extractor_open(&o, &x, &err), &err);
	CHECK_ERR(run(x, "p", &out, &err), &err, ERR_TIMEOUT, "extraction took longer than 1s");
	CHECK_ERR(run(x, "l", &out, &err), &err, ERR_TIMEOUT, "extraction took longer than 1s");
	extractor_close(x);
	buf_release(&out);
}

struct caller {
	struct extractor *x;
	struct thread thread;
	const char *input;
	enum err_code rc;
	struct err err;
	struct buf out;
};

static void call(void *ctx)
{
	struct caller *c = ctx;

	for (int i = 0; i < 20 && !c->rc; i++)
		c->rc = run(c->x, c->input, &c->out, &c->err);
}

TEST(threads_share_slots)
{
	struct extractor_options o = options;
	struct caller callers[4] = { 0 };
	struct extractor *x;
	struct err err;

	o.slots = 2;
	REQUIRE_OK(extractor_open(&o, &x, &err), &err);
	for (int i = 0; i < 4; i++) {
		callers[i].x = x;
		callers[i].input = i % 2 ? "h1" : "h2";
		REQUIRE_OK(thread_start(&callers[i].thread, "caller", call, &callers[i], &err), &err);
	}
	for (int i = 0; i < 4; i++) {
		thread_join(&callers[i].thread);
		CHECK_STR(str_of(callers[i].rc ? callers[i].err.msg : ""), "");
		CHECK_STR(buf_str(&callers[i].out), i % 2 ? "index of h1" : "index of h2");
		buf_release(&callers[i].out);
	}
	extractor_close(x);
}

TEST(stop_ends_what_runs)
{
	struct caller c = { .input = "p" };
	struct extractor_options o = options;
	struct err err;

	o.timeout_ns = NS_PER_HOUR;
	REQUIRE_OK(extractor_open(&o, &c.x, &err), &err);
	REQUIRE_OK(thread_start(&c.thread, "caller", call, &c, &err), &err);
	usleep(1000);
	extractor_stop(c.x);
	thread_join(&c.thread);
	CHECK_INT(c.rc, ERR_CANCELED);
	CHECK_STR(str_of(c.err.msg), "the server ends");
	CHECK_ERR(run(c.x, "h", &c.out, &err), &err, ERR_CANCELED, "the server ends");
	extractor_close(c.x);
	buf_release(&c.out);
}

/* The parent of a process, or 0. */
static int parent_of(int pid)
{
	char path[64];
	struct buf b = { 0 };
	int ppid = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (!fs_read_file(path, 4096, &b, NULL)) {
		buf_add_char(&b, '\0');
		if (!strrchr(b.ptr, ')') || sscanf(strrchr(b.ptr, ')'), ") %*c %d", &ppid) != 1)
			ppid = 0;
	}
	buf_release(&b);
	return ppid;
}

/* A child of this process (keepers are reaped to it), or of `of`; 0: none. */
static int child_of(int of)
{
	struct dirent *e;
	DIR *d = opendir("/proc");
	int found = 0, pid;

	while (d && !found && (e = readdir(d)))
		if ((pid = (int)strtol(e->d_name, NULL, 10)) > 0 && parent_of(pid) == of)
			found = pid;
	if (d)
		closedir(d);
	return found;
}

TEST(a_slot_that_dies_is_started_anew)
{
	struct caller c = { .input = "p" };
	struct extractor_options o = options;
	int keeper, slot = 0, status;
	struct err err;

	o.timeout_ns = NS_PER_HOUR;
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* keepers become children of this process */
	REQUIRE_OK(extractor_open(&o, &c.x, &err), &err);
	keeper = child_of(getpid());
	REQUIRE(keeper > 0);
	REQUIRE_OK(thread_start(&c.thread, "caller", call, &c, &err), &err);
	CHECK(WAIT_FOR((slot = child_of(keeper)) && child_of(slot)));
	kill(slot, SIGKILL); /* with its worker */
	thread_join(&c.thread);
	CHECK_INT(c.rc, ERR_UNAVAILABLE);
	CHECK_STR(str_of(c.err.msg), "the child process was restarted");
	CHECK_OK(run(c.x, "hello", &c.out, &err), &err);
	CHECK_STR(buf_str(&c.out), "index of hello");

	kill(keeper, SIGKILL);
	CHECK(waitpid(keeper, &status, 0) == keeper);
	CHECK_ERR(run(c.x, "h", &c.out, &err), &err, ERR_UNAVAILABLE, "the child process has ended");
	extractor_close(c.x);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	buf_release(&c.out);
}

/* What is left to a server; no fork, no socketpair, no kill, no wait. */
static int run_in_sandbox(const char *dir)
{
	static const struct sandbox_call calls[] = { CALL(brk, ""), CALL(clock_gettime, ""),
		CALL(close, ""), CALL(exit_group, ""), CALL(futex, ""), CALL(mmap, ""), CALL(munmap, ""),
		CALL(poll, ""), CALL(recvfrom, ""), CALL(sendmsg, ""), CALL(shutdown, ""),
		CALL(write, "") };
	static const struct sandbox_profile p = { "test", calls, sizeof(calls) / sizeof(calls[0]) };
	struct extractor *x;
	char path[64];
	int in = file_of("hello"), bad = file_of("s"), fd = output_new(path);
	struct err err;

	unlink(path);
	if (extractor_open(&options, &x, &err))
		return 1;
	if (sandbox_limit_files((const char *[]){ dir }, 1, &err) || sandbox_limit_calls(&p, 0, &err))
		return 2;
	if (extractor_run(x, &(struct extraction_files){ in, -1, 0, fd }, &err))
		return 3;
	if (extractor_run(x, &(struct extraction_files){ bad, -1, 0, fd }, &err) != ERR_INVALID)
		return 4;
	extractor_close(x);
	return 0;
}

TEST(the_server_has_a_sandbox)
{
	char dir[] = "/tmp/epi_extract_dir_XXXXXX";
	int status;
	pid_t pid;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("the sanitizer makes calls of its own, which no server makes");
#endif
	REQUIRE(mkdtemp(dir));
	REQUIRE((pid = fork()) >= 0);
	if (!pid)
		_exit(run_in_sandbox(dir));
	REQUIRE(waitpid(pid, &status, 0) == pid);
	rmdir(dir);
	CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}
