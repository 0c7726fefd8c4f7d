#include "tests/torture/torture.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SITE_FRAMES 14

static atomic_int armed = -1; /* enum torture_what, or -1 */
static atomic_int armed_how;
static atomic_uint_fast64_t armed_nth, counted;
static atomic_bool struck;
static _Thread_local bool spared, inside;
static void *site[SITE_FRAMES];
static int site_n;

void torture_arm(enum torture_what what, enum torture_how how, uint64_t nth)
{
	atomic_store(&armed_nth, nth);
	atomic_store(&armed_how, how);
	atomic_store(&counted, 0);
	atomic_store(&struck, false);
	site_n = 0;
	atomic_store(&armed, what);
}

uint64_t torture_disarm(void)
{
	atomic_store(&armed, -1);
	return atomic_load(&counted);
}

bool torture_struck(void)
{
	return atomic_load(&struck);
}

void torture_spare(void)
{
	spared = true;
}

/* Counts a call of this kind; true: it is to fail. */
static bool fails(enum torture_what what)
{
	uint64_t nth, n;

	if (atomic_load_explicit(&armed, memory_order_relaxed) != (int)what || spared || inside)
		return false;
	n = atomic_fetch_add(&counted, 1) + 1;
	nth = atomic_load(&armed_nth);
	if (!nth || n < nth || (n > nth && atomic_load(&armed_how) == TORTURE_ONCE))
		return false;
	if (!atomic_exchange(&struck, true)) {
		inside = true; /* backtrace may allocate */
		site_n = backtrace(site, SITE_FRAMES);
		inside = false;
	}
	return true;
}

extern const char __executable_start;

void torture_print_site(void)
{
	char command[1024], line[512];
	int n = snprintf(command, sizeof(command), "addr2line -Cfpse /proc/%d/exe", getpid());
	FILE *f;

	for (int i = 2; i < site_n; i++)
		n += snprintf(command + n, sizeof(command) - (size_t)n, " %#lx",
			(unsigned long)((const char *)site[i] - &__executable_start) - 1);
	if (site_n < 3 || !(f = popen(command, "r")))
		return;
	while (fgets(line, sizeof(line), f))
		if (line[0] != '?')
			printf("      %s", line);
	pclose(f);
}

/* ---- memory ---- */

#define WRAP(type, name, args) \
	type __real_##name args; \
	type __wrap_##name args; \
	type __wrap_##name args
#define MEMORY(type, name, args, call) \
	WRAP(type, name, args) \
	{ \
		if (fails(TORTURE_MEMORY)) { \
			errno = ENOMEM; \
			return NULL; \
		} \
		return __real_##name call; \
	}

MEMORY(void *, malloc, (size_t n), (n))
MEMORY(void *, calloc, (size_t n, size_t size), (n, size))
MEMORY(void *, realloc, (void *p, size_t n), (p, n))
MEMORY(void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size))
MEMORY(void *, aligned_alloc, (size_t align, size_t n), (align, n))
MEMORY(char *, strdup, (const char *s), (s))
MEMORY(char *, strndup, (const char *s, size_t n), (s, n))
MEMORY(void *, arena_alloc, (struct arena * a, size_t n), (a, n))
MEMORY(void *, arena_calloc, (struct arena * a, size_t n, size_t size), (a, n, size))
MEMORY(void *, arena_alloc_raw, (struct arena * a, size_t n, size_t size), (a, n, size))
MEMORY(char *, arena_strndup, (struct arena * a, const char *s, size_t n), (a, s, n))

int __wrap_asprintf(char **out, const char *fmt, ...) PRINTF_LIKE(2, 3);
int __wrap_asprintf(char **out, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (fails(TORTURE_MEMORY))
		return -1; /* *out is undefined then, says asprintf(3) */
	va_start(ap, fmt);
	n = vasprintf(out, fmt, ap);
	va_end(ap);
	return n;
}

char *__wrap_arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *__wrap_arena_printf(struct arena *a, const char *fmt, ...)
{
	char *text = NULL, *copy;
	va_list ap;
	int n;

	if (fails(TORTURE_MEMORY))
		return NULL;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	inside = true;
	copy = arena_strndup(a, text, (size_t)n);
	inside = false;
	free(text);
	return copy;
}

/* ---- system calls ---- */

#define CALL(type, name, args, call, why, bad) \
	WRAP(type, name, args) \
	{ \
		if (fails(TORTURE_CALLS)) { \
			errno = why; \
			return bad; \
		} \
		return __real_##name call; \
	}

/* Event descriptors: what is read and written is a counter of the kernel's, which does not fail. */
#define EVENTS_MAX 4096
static atomic_bool is_event[EVENTS_MAX];

static bool may_fail(int fd)
{
	return fd < 0 || fd >= EVENTS_MAX || !atomic_load(&is_event[fd]);
}

WRAP(int, eventfd, (unsigned n, int flags))
{
	int fd;

	if (fails(TORTURE_CALLS)) {
		errno = EMFILE;
		return -1;
	}
	fd = __real_eventfd(n, flags);
	if (fd >= 0 && fd < EVENTS_MAX)
		atomic_store(&is_event[fd], true);
	return fd;
}

WRAP(int, close, (int fd))
{
	if (fd >= 0 && fd < EVENTS_MAX)
		atomic_store(&is_event[fd], false);
	return __real_close(fd);
}

WRAP(ssize_t, read, (int fd, void *p, size_t n))
{
	if (may_fail(fd) && fails(TORTURE_CALLS)) {
		errno = EIO;
		return -1;
	}
	return __real_read(fd, p, n);
}

WRAP(ssize_t, write, (int fd, const void *p, size_t n))
{
	if (may_fail(fd) && fails(TORTURE_CALLS)) {
		errno = EIO;
		return -1;
	}
	return __real_write(fd, p, n);
}

CALL(ssize_t, pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at), EIO, -1)
CALL(int, fsync, (int fd), (fd), EIO, -1)
CALL(int, fdatasync, (int fd), (fd), EIO, -1)
CALL(int, rename, (const char *from, const char *to), (from, to), EIO, -1)
CALL(int, link, (const char *from, const char *to), (from, to), EMLINK, -1)
CALL(int, unlink, (const char *path), (path), EIO, -1)
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode), ENOSPC, -1)
CALL(int, rmdir, (const char *path), (path), EIO, -1)
CALL(int, stat, (const char *path, struct stat *s), (path, s), EIO, -1)
CALL(int, lstat, (const char *path, struct stat *s), (path, s), EIO, -1)
CALL(int, fstat, (int fd, struct stat *s), (fd, s), EIO, -1)
CALL(int, statvfs, (const char *path, struct statvfs *s), (path, s), EIO, -1)
CALL(int, ftruncate, (int fd, off_t n), (fd, n), EIO, -1)
CALL(off_t, lseek, (int fd, off_t at, int whence), (fd, at, whence), EIO, -1)
CALL(void *, opendir, (const char *path), (path), EMFILE, NULL)
CALL(void *, fopen, (const char *path, const char *mode), (path, mode), EMFILE, NULL)
CALL(int, socket, (int domain, int type, int protocol), (domain, type, protocol), EMFILE, -1)
CALL(int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), ENETUNREACH, -1)
CALL(int, inotify_init1, (int flags), (flags), EMFILE, -1)
CALL(
	int, inotify_add_watch, (int fd, const char *path, uint32_t mask), (fd, path, mask), ENOSPC, -1)
CALL(ssize_t, getrandom, (void *p, size_t n, unsigned flags), (p, n, flags), EIO, -1)
CALL(void *, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t at),
	(p, n, prot, flags, fd, at), ENOMEM, MAP_FAILED)

WRAP(int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*fn)(void *), void *ctx))
{
	return fails(TORTURE_CALLS) ? EAGAIN : __real_pthread_create(t, a, fn, ctx);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (fails(TORTURE_CALLS)) {
		errno = EMFILE;
		return -1;
	}
	return __real_open(path, flags, mode);
}
