/*
 * Machine memory: how much this process may use, by the machine and by its cgroups.
 *
 * The least of the system's memory and of the limits of its control group and of all groups around
 * it (version 2: memory.max; version 1: memory.limit_in_bytes). Without /proc and /sys, as in an
 * empty directory tree, only the system's memory counts.
 *
 * Source: cgroups(7), sysinfo(2).
 */
#ifndef BASE_SELF_MACHINE_MEMORY_H
#define BASE_SELF_MACHINE_MEMORY_H

#include <stdint.h>

/*
 * What one part of the program may use: a quarter of the cgroup's limit, by the files below `root`
 * ("": the system's); without a limit, a quarter of the machine's memory but at most free_max,
 * since others live on it too.
 */
uint64_t machine_memory_quarter(const char *root, uint64_t free_max);
/* The least limit of the cgroups, by the files below `root`; UINT64_MAX: none. For tests. */
uint64_t machine_memory_cgroup_limit(const char *root);

#endif
