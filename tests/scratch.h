/*
 * Directories of tests. They are in memory where there is room: what others do to the disk is not
 * tested, and syncs of a disk cost more than all else that a test of a database does.
 */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SCRATCH "/dev/shm/" /* a template begins with it, and ends with XXXXXX */
#define SCRATCH_ON_DISK "/tmp/././" /* of the same length */
#define SCRATCH_BYTES_MIN (1ull << 30)

/* Makes the directory and gives its path, which is in `template`; NULL: errno says why. */
static inline char *scratch_dir(char *template)
{
	size_t n = sizeof(SCRATCH) - 1;
	struct statvfs room;

	static_assert(sizeof(SCRATCH) == sizeof(SCRATCH_ON_DISK), "one takes the place of the other");
	/* A template that is used again may be one on disk already. */
	assert(memcmp(template, SCRATCH, n) == 0 || memcmp(template, SCRATCH_ON_DISK, n) == 0);
	if (access(SCRATCH, W_OK) || statvfs(SCRATCH, &room) ||
		(unsigned long long)room.f_bavail * room.f_frsize < SCRATCH_BYTES_MIN)
		memcpy(template, SCRATCH_ON_DISK, n);
	return mkdtemp(template);
}

#endif
