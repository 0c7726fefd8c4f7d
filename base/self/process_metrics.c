#include "base/self/process_metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"

/* Read before main: within milliseconds of the kernel's own value, and works without /proc. */
static int64_t start_ns;

__attribute__((constructor)) static void process_metrics_remember_start(void)
{
	start_ns = clock_system_ns();
}

static bool process_metrics_cpu_seconds(double *out)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts))
		return false;
	*out = (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
	return true;
}

/* The nth number of /proc/self/statm: 0 is virtual, 1 resident, both in pages. */
static bool process_metrics_memory_bytes(int nth, double *out)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long pages[2];
	bool ok;

	if (!f)
		return false;
	ok = fscanf(f, "%19llu %19llu", &pages[0], &pages[1]) == 2;
	fclose(f);
	if (ok)
		*out = (double)pages[nth] * (double)sysconf(_SC_PAGESIZE);
	return ok;
}

static bool process_metrics_resident_bytes(double *out)
{
	return process_metrics_memory_bytes(1, out);
}

static bool process_metrics_virtual_bytes(double *out)
{
	return process_metrics_memory_bytes(0, out);
}

static bool process_metrics_open_fds(double *out)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	if (!d)
		return false;
	*out = -1; /* without the one that reads the directory */
	while ((e = readdir(d)))
		*out += e->d_name[0] != '.';
	closedir(d);
	return true;
}

static bool process_metrics_max_fds(double *out)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return false;
	*out = (double)r.rlim_cur;
	return true;
}

static bool process_metrics_start_seconds(double *out)
{
	*out = (double)(start_ns / NS_PER_MS) / 1e3;
	return true;
}

/* clang-format off */
static const struct {
	const char *name, *kind, *help;
	bool (*read)(double *out); /* false: not available */
} numbers[] = {
	{ "process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.",
		process_metrics_cpu_seconds },
	{ "process_max_fds", "gauge", "Maximum number of open file descriptors.",
		process_metrics_max_fds },
	{ "process_open_fds", "gauge", "Number of open file descriptors.",
		process_metrics_open_fds },
	{ "process_resident_memory_bytes", "gauge", "Resident memory size in bytes.",
		process_metrics_resident_bytes },
	{ "process_start_time_seconds", "gauge",
		"Start time of the process since unix epoch in seconds.",
		process_metrics_start_seconds },
	{ "process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.",
		process_metrics_virtual_bytes },
};
/* clang-format on */

void process_metrics_print(struct buf *out)
{
	double v;
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (!numbers[i].read(&v))
			continue;
		buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s ", numbers[i].name, numbers[i].help,
			numbers[i].name, numbers[i].kind, numbers[i].name);
		buf_add_double(out, v);
		buf_add_char(out, '\n');
	}
}

bool process_metric_describe(size_t i, const char **name, const char **kind, const char **help)
{
	if (i >= sizeof(numbers) / sizeof(numbers[0]))
		return false;
	*name = numbers[i].name;
	*kind = numbers[i].kind;
	*help = numbers[i].help;
	return true;
}
