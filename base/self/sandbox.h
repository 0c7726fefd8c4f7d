/*
 * Sandbox: rights that this process gives up for good. A parser of foreign bytes may have a flaw.
 * An intruder then finds no program to start, no file to write but the server's own, and only the
 * system calls that the server needs.
 *
 * A profile is a table of system calls. A call that is not in it gives ENOSYS, as on a kernel that
 * does not know it, so that libraries fall back. A call whose argument no row allows gives EPERM.
 * Both are counted (epimetheus_sandbox_refused_calls_total) and logged by sandbox_report. A few
 * calls that no server makes (sandbox_hostile: execve, ptrace, mount ...) end the process, whatever
 * the profile.
 *
 * Errors:  ERR_UNAVAILABLE: the kernel or the container does not allow it; only no_new_privs may
 *          have changed then.
 * Threads: sandbox_limit_files and sandbox_limit_capabilities cover the calling thread and those
 *          that it starts, so they are called before the first thread; sandbox_limit_calls covers
 *          all threads. Each is called once.
 * Source:  seccomp(2), landlock(7), capabilities(7),
 *          Documentation/userspace-api/{seccomp_filter,landlock}.rst
 */
#ifndef BASE_SELF_SANDBOX_H
#define BASE_SELF_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define SANDBOX_CAPABILITY(n) (UINT64_C(1) << (n)) /* CAP_... of linux/capability.h */

enum sandbox_when {
	SANDBOX_ALWAYS,
	SANDBOX_ARG, /* where (argument `arg` & mask) == value */
	SANDBOX_OWN, /* where argument `arg` is the id of this process */
	SANDBOX_ABSENT, /* never, without a log line: the library falls back by design */
};

struct sandbox_call {
	int nr; /* __NR_... */
	const char *name, *why;
	enum sandbox_when when;
	unsigned arg;
	uint64_t mask, value;
};

/* Sorted by name; rows of one call are alternatives. */
struct sandbox_profile {
	const char *name;
	const struct sandbox_call *calls;
	size_t calls_n;
	bool deadly; /* any other call ends the process, like a hostile one */
};

/* Calls that end the process, sorted by name. */
extern const struct sandbox_call sandbox_hostile[];
extern const size_t sandbox_hostile_n;

/* Files can be made, changed, moved and removed only below these directories, and none can be
 * executed. */
MUST_CHECK enum err_code sandbox_limit_files(const char *const *dirs, size_t n, struct err *err);

/* The capabilities that this thread may use, or could give itself. */
uint64_t sandbox_capabilities(void);
/*
 * Keeps of them those in `keep`, and drops the others for good: also those that a program would be
 * started with (inheritable, ambient, bounding). A process without capabilities makes no call that
 * a service manager's filter may forbid to it. Without CAP_SETPCAP the bounding set stays, which
 * then gives nobody anything: no program gains rights after no_new_privs.
 */
MUST_CHECK enum err_code sandbox_limit_capabilities(uint64_t keep, struct err *err);

/* tell_signal: sent to this process when a call is refused; 0: none. */
MUST_CHECK enum err_code sandbox_limit_calls(
	const struct sandbox_profile *p, int tell_signal, struct err *err);

/* Counts the calls refused since the last time, and logs each call once. One thread at a time. */
void sandbox_report(void);

#endif
