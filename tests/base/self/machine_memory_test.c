/* Limits of cgroups, in trees of files as both versions lay them out. */
#include "base/self/machine_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "tests/check.h"

#define MIB (UINT64_C(1) << 20)

/* Writes a file below root, and its directories. */
static void put(const char *root, const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(path, 0700);
		*at = '/';
	}
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0)
		CHECK_FAIL("cannot write %s", path);
	if (f)
		fclose(f);
}

#define V2 "sys/fs/cgroup/"
#define V1 "sys/fs/cgroup/memory/"

/* clang-format off */
static const struct {
	const char *what;
	struct {
		const char *name, *text;
	} files[4];
	uint64_t want; /* UINT64_MAX: no limit */
} rows[] = {
	{ "nothing there", { { NULL, NULL } }, UINT64_MAX },
	{ "version 2, in a container",
		{ { "proc/self/cgroup", "0::/\n" }, { V2 "memory.max", "268435456\n" } },
		256 * MIB },
	{ "version 2, without a limit",
		{ { "proc/self/cgroup", "0::/\n" }, { V2 "memory.max", "max\n" } }, UINT64_MAX },
	{ "version 2, the group around it has less",
		{ { "proc/self/cgroup", "0::/a.slice/b.service\n" },
			{ V2 "a.slice/memory.max", "104857600\n" },
			{ V2 "a.slice/b.service/memory.max", "209715200\n" } },
		100 * MIB },
	{ "version 2, the group itself has less",
		{ { "proc/self/cgroup", "0::/a.slice/b.service\n" },
			{ V2 "a.slice/memory.max", "max\n" },
			{ V2 "a.slice/b.service/memory.max", "1048576\n" } },
		MIB },
	{ "version 2, outside of the namespace",
		{ { "proc/self/cgroup", "0::/../other\n" }, { V2 "memory.max", "1048576\n" } }, MIB },
	{ "version 1",
		{ { "proc/self/cgroup", "12:cpu,cpuacct:/x\n7:memory:/docker/1\n0::/\n" },
			{ V1 "memory.limit_in_bytes", "9223372036854771712\n" },
			{ V1 "docker/1/memory.limit_in_bytes", "2097152\n" } },
		2 * MIB },
	{ "version 1, in a container that sees its own group as the root",
		{ { "proc/self/cgroup", "4:blkio,memory:/docker/1\n" },
			{ V1 "memory.limit_in_bytes", "3145728\n" } },
		3 * MIB },
	{ "version 1, without a limit",
		{ { "proc/self/cgroup", "7:memory:/\n" },
			{ V1 "memory.limit_in_bytes", "9223372036854771712\n" } },
		UINT64_MAX },
	{ "nonsense",
		{ { "proc/self/cgroup", "x\n:\n::\n0:\n0::/\n" }, { V2 "memory.max", "lots\n" } },
		UINT64_MAX },
};
/* clang-format on */

TEST(the_least_limit_of_all_groups_counts)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char root[] = "/tmp/epi-cgroup-XXXXXX";
		struct err err;
		uint64_t got;

		REQUIRE(mkdtemp(root) != NULL);
		for (int k = 0; k < 4 && rows[i].files[k].name; k++)
			put(root, rows[i].files[k].name, rows[i].files[k].text);
		got = machine_memory_cgroup_limit(root);
		if (got != rows[i].want)
			CHECK_FAIL("%s: %llu, want %llu", rows[i].what, (unsigned long long)got,
				(unsigned long long)rows[i].want);
		/* What is free to take counts only where there is no limit. */
		got = machine_memory_quarter(root, 12345);
		CHECK_INT(got, rows[i].want == UINT64_MAX ? 12345 : rows[i].want / 4);
		CHECK_OK(fs_remove_tree(&fs_posix, root, &err), &err);
	}
}

TEST(this_machine_has_some)
{
	uint64_t quarter = machine_memory_quarter("/nonesuch", UINT64_MAX);

	CHECK(quarter >= 16 * MIB);
	CHECK(quarter < UINT64_C(1) << 48);
	CHECK_INT(machine_memory_quarter("/nonesuch", quarter - 1), quarter - 1);
	CHECK_INT(machine_memory_quarter("/nonesuch", quarter + 1), quarter);
}
