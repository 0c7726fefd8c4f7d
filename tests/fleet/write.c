#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/gzip/gzip.h"
#include "tests/fleet/command.h"
#include "tests/fleet/fleet.h"

/*
 * Commands that make profiles: as files, and for nothing but the time it takes. Files are named
 * SERVICE.POD.KIND.TIME.pb.gz, TIME in seconds: `fleet fit` and `fleet floor` understand them.
 */
static enum err_code no_set(const char *name, struct err *err)
{
	return err_set(err, ERR_INVALID, "no set is called \"%s\"; `fleet` alone lists them", name);
}

static enum err_code put_file(const char *path, struct buf *gz, struct err *err)
{
	FILE *file = fopen(path, "w");

	if (!file || fwrite(gz->ptr, 1, gz->len, file) != gz->len) {
		int errno_value = errno;

		if (file)
			fclose(file);
		return err_errno(err, errno_value, "%s", path);
	}
	return fclose(file) ? err_errno(err, errno, "%s", path) : ERR_OK;
}

static enum err_code write_one(const struct fleet *f, struct fleet_scratch *s, const char *dir,
	uint32_t service, uint32_t pod, uint64_t scrape, int64_t start_ns, struct arena *a,
	uint64_t *bytes, struct err *err)
{
	static const char *const kinds[] = { "cpu", "heap", "goroutine", "mutex", "block" };
	struct buf raw = { 0 }, gz = { 0 };
	struct pprof *p;
	char name[32];
	enum err_code rc;

	if (!(rc = fleet_profile(f, s, service, pod, scrape, start_ns, a, &p, err)) &&
		!(rc = pprof_encode(p, &raw, err)) && !(rc = gzip_compress(buf_str(&raw), 1, &gz, err))) {
		const char *path = arena_printf(a, "%s/%s.pod%" PRIu32 ".%s.%" PRId64 ".pb.gz", dir,
			fleet_service_name(service, name), pod, kinds[fleet_params(f)->kind],
			p->time_nanos / NS_PER_S);

		rc = path ? put_file(path, &gz, err) : arena_fail(a, "file name", err);
		*bytes += gz.len;
	}
	buf_release(&raw);
	buf_release(&gz);
	return rc;
}

enum err_code command_write(int argc, char **argv, struct err *err)
{
	uint64_t services, pods, scrapes, first, start, files = 0, bytes = 0;
	const char *set, *dir;
	struct flag flags[] = {
		{ "set", FLAG_STRING, &set, "fleet-cpu", "Which profiles." },
		{ "service", FLAG_UINT, &services, "1", "How many services." },
		{ "pods", FLAG_UINT, &pods, "10", "Pods of each." },
		{ "scrapes", FLAG_UINT, &scrapes, "30", "Scrapes of each." },
		{ "first", FLAG_UINT, &first, "0", "Index of the first scrape." },
		{ "start", FLAG_UINT, &start, "1700000000", "Seconds since 1970 of index 0." },
	};
	size_t args_n = 0;
	struct fleet *f = NULL;
	struct fleet_scratch *s = NULL;
	struct arena a;
	enum err_code rc;

	if ((rc = command_flags(flags, sizeof(flags) / sizeof(flags[0]),
			 "Writes DIR/SERVICE.POD.KIND.TIME.pb.gz.", argc, argv, &dir, 1, &args_n, err)))
		return rc;
	if (!args_n)
		return err_set(err, ERR_INVALID, "a directory is needed");
	if (!fleet_set(set))
		return no_set(set, err);
	arena_init(&a, 0);
	if ((rc = fs_mkdir_all(&fs_posix, dir, err)) || (rc = fleet_open(fleet_set(set), &f, err)) ||
		(rc = fleet_scratch_open(f, &s, err)))
		goto done;
	for (uint64_t k = first; k < first + scrapes; k++)
		for (uint32_t service = 0; service < services; service++)
			for (uint32_t pod = 0; pod < pods; pod++, files++) {
				arena_reset(&a);
				if ((rc = write_one(
						 f, s, dir, service, pod, k, (int64_t)start * NS_PER_S, &a, &bytes, err)))
					goto done;
			}
	printf("%" PRIu64 " files, %" PRIu64 " bytes\n", files, bytes);
done:
	fleet_scratch_close(s);
	fleet_close(f);
	arena_release(&a);
	return rc;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const struct symbol_limits limits = { 4u << 20, 1u << 20, 65536, UINT64_C(1) << 30 };

static enum err_code speed_of(const struct fleet_params *p, uint64_t rows, struct err *err)
{
	double began = seconds(), opened, interned, rowed, profiled;
	struct fleet *f = NULL;
	struct fleet_scratch *s = NULL;
	struct partition *partition = NULL;
	struct fleet_symbols symbols;
	struct pprof *profile;
	struct arena a, b;
	uint64_t samples = 0, profiles = rows / 50 + 1;
	enum err_code rc;

	arena_init(&a, 0);
	arena_init(&b, 0);
	if ((rc = fleet_open(p, &f, err)) || (rc = fleet_scratch_open(f, &s, err)))
		goto done;
	opened = seconds();
	if ((rc = partition_open(STR("svc000"), 0, 0, &limits, &partition, err)) ||
			(rc = fleet_symbols(f, 0, 10, partition, &a, &symbols, err)))
		goto done;
	interned = seconds();
	for (uint64_t i = 0; i < rows; i++) {
		struct row row;

		fleet_row(f, &symbols, s, 0, (uint32_t)(i % 10), i / 10 * 97, 0, &row);
		samples += row.n;
	}
	rowed = seconds();
	for (uint64_t i = 0; i < profiles; i++) {
		arena_reset(&b);
		if ((rc = fleet_profile(f, s, 0, (uint32_t)(i % 10), i / 10 * 97, 0, &b, &profile, err)))
			goto done;
	}
	profiled = seconds();
	printf("%-16s open %4.0f ms %5.1f MiB, symbols %4.0f ms (%u stacks, %u nodes, %.1f MiB), "
		   "rows %6.0f/s of %6.1f, %5.1f M samples/s, profiles %6.0f/s\n",
		p->name, (opened - began) * 1e3, (double)fleet_bytes(f) / (1 << 20),
		(interned - opened) * 1e3, fleet_stacks_n(f), sym_nodes_n(partition),
		(double)atomic_load(&partition->bytes) / (1 << 20), (double)rows / (rowed - interned),
		(double)samples / (double)rows, (double)samples / (rowed - interned) * 1e-6,
		(double)profiles / (profiled - rowed));
done:
	partition_close(partition);
	fleet_scratch_close(s);
	fleet_close(f);
	arena_release(&a);
	arena_release(&b);
	return rc;
}

enum err_code command_speed(int argc, char **argv, struct err *err)
{
	uint64_t rows;
	struct flag flags[] = { { "rows", FLAG_UINT, &rows, "10000", "Rows to make of each set." } };
	size_t args_n = 0;
	enum err_code rc;

	rc = command_flags(
		flags, 1, "Makes rows and profiles of each set.", argc, argv, NULL, 0, &args_n, err);
	for (size_t i = 0; i < fleet_sets_n && !rc; i++)
		rc = speed_of(&fleet_sets[i], rows, err);
	return rc;
}
