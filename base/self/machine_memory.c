#include "base/self/machine_memory.h"

#include <limits.h>
#include <stdio.h>
#include <sys/sysinfo.h>

#include "base/fs.h"

#define FILE_BYTES_MAX (64u << 10)

/* Version 1 writes "no limit" as the greatest multiple of a page. */
#define NO_LIMIT_BYTES (UINT64_C(1) << 60)

/* A number alone in its file; "max", or no such file: no limit. */
static uint64_t machine_memory_read_limit(const char *path)
{
	struct buf text = { 0 };
	uint64_t n = UINT64_MAX;

	if (fs_read_file(path, 64, &text, NULL) || !str_to_u64(str_trim(buf_str(&text)), &n) ||
		n >= NO_LIMIT_BYTES)
		n = UINT64_MAX;
	buf_release(&text);
	return n;
}

/* The least limit of a group and of all groups around it, up to the mount point. */
static uint64_t machine_memory_least_of(const char *mount, struct str group, const char *file)
{
	uint64_t least = UINT64_MAX, n;
	char path[PATH_MAX];

	for (;;) {
		while (group.len && group.ptr[group.len - 1] == '/')
			group.len--;
		if (snprintf(path, sizeof(path), "%s" STR_FMT "/%s", mount, STR_ARG(group), file) <
			(int)sizeof(path)) {
			n = machine_memory_read_limit(path);
			least = n < least ? n : least;
		}
		if (!group.len)
			return least;
		while (group.len && group.ptr[group.len - 1] != '/')
			group.len--;
	}
}

/* True if "a,b,c" has `name`. */
static bool machine_memory_lists(struct str names, struct str name)
{
	while (names.len) {
		const char *comma = memchr(names.ptr, ',', names.len);
		size_t n = comma ? (size_t)(comma - names.ptr) : names.len;

		if (str_eq((struct str){ names.ptr, n }, name))
			return true;
		n += comma != NULL;
		names = (struct str){ names.ptr + n, names.len - n };
	}
	return false;
}

/* "0::/group" of version 2, "4:cpu,memory:/group" of version 1. */
static uint64_t machine_memory_limit_of_line(const char *root, struct str line)
{
	const char *first = line.len ? memchr(line.ptr, ':', line.len) : NULL, *second;
	struct str controllers, group;
	char mount[PATH_MAX];

	if (!first)
		return UINT64_MAX;
	second = memchr(first + 1, ':', (size_t)(line.ptr + line.len - first - 1));
	if (!second)
		return UINT64_MAX;
	controllers = (struct str){ first + 1, (size_t)(second - first - 1) };
	group = (struct str){ second + 1, (size_t)(line.ptr + line.len - second - 1) };
	if (str_find(group, STR("..")) >= 0) /* a group outside of our namespace */
		group.len = 0;
	if (!controllers.len) {
		snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup", root);
		return machine_memory_least_of(mount, group, "memory.max");
	}
	if (!machine_memory_lists(controllers, STR("memory")))
		return UINT64_MAX;
	snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/memory", root);
	return machine_memory_least_of(mount, group, "memory.limit_in_bytes");
}

uint64_t machine_memory_cgroup_limit(const char *root)
{
	uint64_t least = UINT64_MAX, n;
	struct buf text = { 0 };
	struct str rest;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	if (fs_read_file(path, FILE_BYTES_MAX, &text, NULL))
		buf_clear(&text);
	for (rest = buf_str(&text); rest.len;) {
		const char *end = memchr(rest.ptr, '\n', rest.len);
		size_t len = end ? (size_t)(end - rest.ptr) : rest.len;

		n = machine_memory_limit_of_line(root, (struct str){ rest.ptr, len });
		least = n < least ? n : least;
		len += end != NULL;
		rest = (struct str){ rest.ptr + len, rest.len - len };
	}
	buf_release(&text);
	return least;
}

static uint64_t machine_memory_total(void)
{
	struct sysinfo info;

	return sysinfo(&info) ? 0 : (uint64_t)info.totalram * info.mem_unit;
}

uint64_t machine_memory_quarter(const char *root, uint64_t free_max)
{
	uint64_t limit = machine_memory_cgroup_limit(root), total = machine_memory_total();

	if (limit != UINT64_MAX && (!total || limit < total))
		return limit / 4;
	return total / 4 < free_max ? total / 4 : free_max;
}
