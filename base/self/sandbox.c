/*
 * The filter of system calls is a program for the kernel's packet filter. libseccomp could write
 * it, for 129 KB more; this needs six instructions of that language. Rows are tried one after the
 * other; Linux 5.11 and later keep a bitmap of the calls that are always allowed.
 *
 * A refused call raises SIGSYS in the thread that made it. The handler may have interrupted malloc,
 * so it only counts, returns the error to the caller, and wakes the thread that calls
 * sandbox_report. If SIGSYS is blocked, the kernel ends the process. None of our threads blocks it;
 * glibc does while it starts a thread, and a profile allows all calls of that code.
 */
#include "base/self/sandbox.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/log.h"
#include "base/metrics.h"

METRIC_GAUGE(in_force, "epimetheus_sandbox_in_force",
	"Whether this process has given up rights: capabilities, files, system_calls.", "part");
METRIC_COUNTER(refused_total, "epimetheus_sandbox_refused_calls_total",
	"System calls that the sandbox refused.", "call");

/* clang-format off */
const struct sandbox_call sandbox_hostile[] = {
	{ __NR_acct, "acct", "writes about every process" },
	{ __NR_add_key, "add_key", "keys of the kernel" },
	{ __NR_adjtimex, "adjtimex", "sets the clock" },
	{ __NR_bpf, "bpf", "code in the kernel" },
	{ __NR_capset, "capset", "rights" },
	{ __NR_chroot, "chroot", "another tree of files" },
	{ __NR_clock_adjtime, "clock_adjtime", "sets the clock" },
	{ __NR_clock_settime, "clock_settime", "sets the clock" },
	{ __NR_delete_module, "delete_module", "code in the kernel" },
	{ __NR_execve, "execve", "starts a program" },
	{ __NR_execveat, "execveat", "starts a program" },
	{ __NR_finit_module, "finit_module", "code in the kernel" },
	{ __NR_fork, "fork", "starts a process" },
	{ __NR_fsmount, "fsmount", "another tree of files" },
	{ __NR_fsopen, "fsopen", "another tree of files" },
	{ __NR_init_module, "init_module", "code in the kernel" },
	{ __NR_io_uring_enter, "io_uring_enter", "calls past this filter" },
	{ __NR_io_uring_register, "io_uring_register", "calls past this filter" },
	{ __NR_io_uring_setup, "io_uring_setup", "calls past this filter" },
	{ __NR_ioperm, "ioperm", "the machine's ports" },
	{ __NR_iopl, "iopl", "the machine's ports" },
	{ __NR_kexec_file_load, "kexec_file_load", "another kernel" },
	{ __NR_kexec_load, "kexec_load", "another kernel" },
	{ __NR_keyctl, "keyctl", "keys of the kernel" },
	{ __NR_mknod, "mknod", "devices" },
	{ __NR_mknodat, "mknodat", "devices" },
	{ __NR_modify_ldt, "modify_ldt", "the machine's segments" },
	{ __NR_mount, "mount", "another tree of files" },
	{ __NR_move_mount, "move_mount", "another tree of files" },
	{ __NR_open_by_handle_at, "open_by_handle_at", "files past their directories" },
	{ __NR_open_tree, "open_tree", "another tree of files" },
	{ __NR_perf_event_open, "perf_event_open", "looks into other processes" },
	{ __NR_personality, "personality", "weakens the layout of memory" },
	{ __NR_pidfd_getfd, "pidfd_getfd", "takes another process's files" },
	{ __NR_pivot_root, "pivot_root", "another tree of files" },
	{ __NR_process_vm_writev, "process_vm_writev", "writes into other processes" },
	{ __NR_ptrace, "ptrace", "controls other processes" },
	{ __NR_quotactl, "quotactl", "quotas of a disk" },
	{ __NR_reboot, "reboot", "ends the machine" },
	{ __NR_request_key, "request_key", "keys of the kernel" },
	{ __NR_setgid, "setgid", "another user" },
	{ __NR_setgroups, "setgroups", "another user" },
	{ __NR_setns, "setns", "another name space" },
	{ __NR_setregid, "setregid", "another user" },
	{ __NR_setresgid, "setresgid", "another user" },
	{ __NR_setresuid, "setresuid", "another user" },
	{ __NR_setreuid, "setreuid", "another user" },
	{ __NR_settimeofday, "settimeofday", "sets the clock" },
	{ __NR_setuid, "setuid", "another user" },
	{ __NR_swapoff, "swapoff", "the machine's memory" },
	{ __NR_swapon, "swapon", "the machine's memory" },
	{ __NR_umount2, "umount2", "another tree of files" },
	{ __NR_unshare, "unshare", "another name space" },
	{ __NR_userfaultfd, "userfaultfd", "stops the kernel at will" },
	{ __NR_vfork, "vfork", "starts a process" },
};
/* clang-format on */
const size_t sandbox_hostile_n = sizeof(sandbox_hostile) / sizeof(sandbox_hostile[0]);

/* ---- refused calls ---- */

#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1 /* asm-generic/siginfo.h, which glibc's headers do not go with */
#endif

#define NUMBERS_MAX 1024 /* system calls are counted up to here, the rest under the last */

static struct sandbox_profile in_use; /* set before the filter is */
static int signal_to_tell;
static atomic_uint refused[NUMBERS_MAX]; /* since the last report */
static bool logged[NUMBERS_MAX]; /* the reporting thread's: a call in a loop is one line */

static void sandbox_on_sigsys(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	unsigned nr = (unsigned)info->si_syscall;
	int saved = errno;

	(void)sig;
	if (info->si_code != SYS_SECCOMP)
		return; /* another process sent it: nothing was refused */
	uc->uc_mcontext.gregs[REG_RAX] = -(long long)info->si_errno;
	atomic_fetch_add(&refused[nr < NUMBERS_MAX ? nr : NUMBERS_MAX - 1], 1);
	if (signal_to_tell)
		kill(getpid(), signal_to_tell);
	errno = saved;
}

static const char *sandbox_call_name(int nr)
{
	for (size_t i = 0; i < in_use.calls_n; i++)
		if (in_use.calls[i].nr == nr)
			return in_use.calls[i].name;
	return NULL;
}

void sandbox_report(void)
{
	for (int nr = 0; nr < NUMBERS_MAX; nr++) {
		unsigned n = atomic_exchange(&refused[nr], 0);
		struct buf name = { 0 };

		if (!n)
			continue;
		if (sandbox_call_name(nr))
			buf_add_cstr(&name, sandbox_call_name(nr));
		else
			buf_printf(&name, "number %d", nr);
		buf_add_char(&name, '\0');
		if (!buf_failed(&name)) {
			metric_add(&refused_total, name.ptr, n);
			if (!logged[nr])
				log_error("sandbox", "system call refused", LOG_S("call", name.ptr));
			logged[nr] = true;
		}
		buf_release(&name);
	}
}

/* ---- the filter ---- */

#define CODE_MAX 1024
#define X32_BIT 0x40000000u /* numbers of another calling convention of the same machine */

struct sandbox_code {
	struct sock_filter at[CODE_MAX];
	unsigned short n;
};

static void sandbox_code_emit(
	struct sandbox_code *c, unsigned short op, uint32_t at, unsigned jt, unsigned jf)
{
	assert(c->n < CODE_MAX && jt < 256 && jf < 256);
	c->at[c->n++] = (struct sock_filter){ op, (unsigned char)jt, (unsigned char)jf, at };
}

static void sandbox_code_answer(struct sandbox_code *c, uint32_t action)
{
	sandbox_code_emit(c, BPF_RET | BPF_K, action, 0, 0);
}

static void sandbox_code_load(struct sandbox_code *c, size_t offset)
{
	sandbox_code_emit(c, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* Skips the next `skip` instructions unless the loaded value, masked, is `value`. */
static void sandbox_code_want(struct sandbox_code *c, uint32_t mask, uint32_t value, unsigned skip)
{
	if (mask != UINT32_MAX)
		sandbox_code_emit(c, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
	sandbox_code_emit(c, BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip);
}

/* The rest of a row when its number fits. Compares the halves of an argument one by one. */
static void sandbox_code_emit_row(struct sandbox_code *c, const struct sandbox_call *call)
{
	uint64_t mask = call->when == SANDBOX_OWN ? UINT32_MAX : call->mask;
	uint64_t value = call->when == SANDBOX_OWN ? (uint32_t)getpid() : call->value;
	size_t offset = offsetof(struct seccomp_data, args) + 8 * call->arg;
	uint32_t high = (uint32_t)(mask >> 32);

	assert(call->arg < 6);
	if (call->when == SANDBOX_ALWAYS) {
		sandbox_code_answer(c, SECCOMP_RET_ALLOW);
		return;
	}
	if (call->when == SANDBOX_ABSENT) {
		sandbox_code_answer(c, SECCOMP_RET_ERRNO | ENOSYS);
		return;
	}
	sandbox_code_load(c, offset);
	sandbox_code_want(c, (uint32_t)mask, (uint32_t)value, high ? 3 + (high != UINT32_MAX) : 1);
	if (high) {
		sandbox_code_load(c, offset + 4);
		sandbox_code_want(c, high, (uint32_t)(value >> 32), 1);
	}
	sandbox_code_answer(c, SECCOMP_RET_ALLOW);
}

/* All rows of one call, behind one comparison of its number; gives the number of rows. */
static size_t sandbox_code_emit_call(
	struct sandbox_code *c, const struct sandbox_call *calls, size_t n, uint32_t otherwise)
{
	unsigned short jump = c->n, rows;
	size_t i;

	sandbox_code_emit(c, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[0].nr, 0, 0);
	rows = c->n;
	for (i = 0; i < n && calls[i].nr == calls[0].nr; i++)
		sandbox_code_emit_row(c, &calls[i]);
	if (calls[0].when == SANDBOX_ARG || calls[0].when == SANDBOX_OWN)
		sandbox_code_answer(c, otherwise);
	assert(c->n - rows < 256);
	c->at[jump].jf = (unsigned char)(c->n - rows);
	return i;
}

static void sandbox_code_emit_filter(struct sandbox_code *c, const struct sandbox_profile *p)
{
	sandbox_code_load(c, offsetof(struct seccomp_data, arch));
	sandbox_code_emit(c, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	sandbox_code_answer(c, SECCOMP_RET_KILL_PROCESS);
	sandbox_code_load(c, offsetof(struct seccomp_data, nr));
	sandbox_code_emit(c, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	sandbox_code_answer(c, SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < p->calls_n;) {
		i += sandbox_code_emit_call(c, p->calls + i, p->calls_n - i,
			p->deadly ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_TRAP | EPERM);
	}
	for (size_t i = 0; i < sandbox_hostile_n; i++) {
		sandbox_code_emit(c, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)sandbox_hostile[i].nr, 0, 1);
		sandbox_code_answer(c, SECCOMP_RET_KILL_PROCESS);
	}
	sandbox_code_answer(c, p->deadly ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_TRAP | ENOSYS);
}

/* Shows 0, "off", from the start. */
__attribute__((constructor)) static void sandbox_show_off(void)
{
	metric_set(&in_force, "capabilities", 0);
	metric_set(&in_force, "files", 0);
	metric_set(&in_force, "system_calls", 0);
}

/* An executed program gains no rights by its file's mode; without this the rest needs root. */
static enum err_code sandbox_no_new_privs(struct err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return err_set(err, ERR_UNAVAILABLE, "no_new_privs: %s", strerror(errno));
	return ERR_OK;
}

enum err_code sandbox_limit_calls(const struct sandbox_profile *p, int tell_signal, struct err *err)
{
	struct sigaction sa = { .sa_sigaction = sandbox_on_sigsys,
		.sa_flags = SA_SIGINFO | SA_NODEFER };
	struct sandbox_code c = { .n = 0 };
	struct sock_fprog program = { .filter = c.at };
	enum err_code rc;
	long got;

	assert(p->calls_n > 0);
	if ((rc = sandbox_no_new_privs(err)))
		return rc;
	sandbox_code_emit_filter(&c, p);
	program.len = c.n;
	in_use = *p;
	signal_to_tell = tell_signal;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGSYS, &sa, NULL);
	got = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	if (got < 0)
		return err_set(err, ERR_UNAVAILABLE, "seccomp: %s", strerror(errno));
	if (got > 0)
		return err_set(err, ERR_UNAVAILABLE, "seccomp: thread %ld has another filter", got);
	metric_set(&in_force, "system_calls", 1);
	return ERR_OK;
}

/* ---- files ---- */

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#define ABI_REFER 2 /* Linux 5.19; before it no file may be linked or moved across directories */
#define ABI_TRUNCATE 3 /* Linux 6.2 */

#define BELOW \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | \
		LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | \
		LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_TRUNCATE)
#define NOWHERE \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_SOCK | \
		LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
		LANDLOCK_ACCESS_FS_MAKE_SYM)

static enum err_code sandbox_landlock_failed(const char *what, struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "landlock: %s: %s", what, strerror(errno));
}

static enum err_code sandbox_allow_below(
	int rules, const char *dir, uint64_t known, struct err *err)
{
	struct landlock_path_beneath_attr beneath = { .allowed_access = BELOW & known };
	enum err_code rc = ERR_OK;

	beneath.parent_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (beneath.parent_fd < 0)
		return sandbox_landlock_failed(dir, err);
	if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0))
		rc = sandbox_landlock_failed(dir, err);
	close(beneath.parent_fd);
	return rc;
}

enum err_code sandbox_limit_files(const char *const *dirs, size_t n, struct err *err)
{
	struct landlock_ruleset_attr handled = { .handled_access_fs = BELOW | NOWHERE };
	enum err_code rc;
	long abi;
	int rules;

	if ((rc = sandbox_no_new_privs(err)))
		return rc;
	abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 0)
		return sandbox_landlock_failed("version", err);
	if (abi < ABI_REFER)
		return err_set(err, ERR_UNAVAILABLE, "landlock: version %ld, %d is needed", abi, ABI_REFER);
	if (abi < ABI_TRUNCATE)
		handled.handled_access_fs &= ~LANDLOCK_ACCESS_FS_TRUNCATE;
	rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
	if (rules < 0)
		return sandbox_landlock_failed("rules", err);
	for (size_t i = 0; i < n && !rc; i++)
		rc = sandbox_allow_below(rules, dirs[i], handled.handled_access_fs, err);
	if (!rc && syscall(SYS_landlock_restrict_self, rules, 0))
		rc = sandbox_landlock_failed("restrict", err);
	close(rules);
	if (!rc)
		metric_set(&in_force, "files", 1);
	return rc;
}

/* ---- capabilities ---- */

#define CAPABILITIES_MAX 64

static uint64_t sandbox_join_halves(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

static bool sandbox_read_capabilities(uint64_t *permitted, uint64_t *inheritable)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct v[2];

	if (syscall(SYS_capget, &head, v))
		return false;
	*permitted = sandbox_join_halves(v[0].permitted, v[1].permitted);
	*inheritable = sandbox_join_halves(v[0].inheritable, v[1].inheritable);
	return true;
}

static bool sandbox_write_capabilities(uint64_t set)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct v[2] = { { .effective = (uint32_t)set,
											   .permitted = (uint32_t)set },
		{ .effective = (uint32_t)(set >> 32), .permitted = (uint32_t)(set >> 32) } };

	return !syscall(SYS_capset, &head, v);
}

uint64_t sandbox_capabilities(void)
{
	uint64_t permitted, inheritable;

	return sandbox_read_capabilities(&permitted, &inheritable) ? permitted : 0;
}

enum err_code sandbox_limit_capabilities(uint64_t keep, struct err *err)
{
	uint64_t permitted, inheritable;
	enum err_code rc;

	if ((rc = sandbox_no_new_privs(err)))
		return rc;
	if (!sandbox_read_capabilities(&permitted, &inheritable))
		return err_set(err, ERR_UNAVAILABLE, "capget: %s", strerror(errno));
	/* Without no_new_privs these would matter to a program that is started: best effort. */
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (unsigned long i = 0; i < CAPABILITIES_MAX; i++)
		if (permitted & SANDBOX_CAPABILITY(CAP_SETPCAP) && prctl(PR_CAPBSET_READ, i, 0, 0, 0) > 0)
			prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if ((permitted & ~keep || inheritable) && !sandbox_write_capabilities(permitted & keep))
		return err_set(err, ERR_UNAVAILABLE, "capset: %s", strerror(errno));
	metric_set(&in_force, "capabilities", 1);
	return ERR_OK;
}
