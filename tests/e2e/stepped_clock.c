/*
 * Linked into the server for a test: its clocks are the machine's and what a file says, which is
 * named by EPI_CLOCK_FILE. Two int64 of the machine's bytes: how far the system's clock steps, and
 * how much time has passed that nobody waited for, both in nanoseconds.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static _Atomic int64_t *moved; /* the file */

static int64_t stepped_read(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static int64_t stepped_system(void)
{
	return stepped_read(CLOCK_REALTIME) + atomic_load(&moved[0]) + atomic_load(&moved[1]);
}

static int64_t stepped_running(void)
{
	return stepped_read(CLOCK_BOOTTIME) + atomic_load(&moved[1]);
}

static const struct clock_source stepped = { stepped_system, stepped_running };

__attribute__((constructor)) static void stepped_begin(void)
{
	const char *path = getenv("EPI_CLOCK_FILE");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	moved = mmap(NULL, 2 * sizeof(*moved), PROT_READ, MAP_SHARED, fd, 0);
	if (moved == MAP_FAILED) {
		fprintf(stderr, "EPI_CLOCK_FILE cannot be mapped\n");
		exit(1);
	}
	close(fd);
	clock_use(&stepped);
}
