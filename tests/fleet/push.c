#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "tests/fleet/command.h"
#include "tests/fleet/fleet.h"
#include "tsdb/db.h"

/*
 * A fleet's profiles into a database directory: all five kinds, scrape after scrape as they would
 * have come, the last one now. Time is simulated; what is measured is how quickly they are taken
 * and what memory that needs. The generator's own memory is told apart.
 */
#define KINDS 5u

struct pushing {
	struct db *db;
	struct fleet *fleets[KINDS];
	struct fleet_scratch *scratch[KINDS];
	uint64_t services, pods, scrapes, first, every, kinds;
	int64_t start_ns; /* of index 0 */
	struct arena arena;
	uint64_t profiles, samples;
	_Atomic uint64_t acked, failed;
	double generating, appending; /* seconds */
	double generating_cpu; /* of the one thread that does both */
	double opened_cpu; /* of the process, when the database was opened */
	double half_mib, half_cpu; /* after half of the scrapes: resident, CPU of storing them */
	bool unique; /* no two pods have the same instance */
	bool each; /* a line of JSON after each scrape */
};

static double cpu_seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds(void)
{
	return cpu_seconds(CLOCK_MONOTONIC);
}

static double resident_mib(void)
{
	unsigned long total, pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file) {
		if (fscanf(file, "%lu %lu", &total, &pages) != 2)
			pages = 0;
		fclose(file);
	}
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

/* CPU of the whole process since the database was opened, without the generator's. */
static double storing_cpu(const struct pushing *p)
{
	return cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - p->opened_cpu - p->generating_cpu;
}

static void acked(void *ctx, enum err_code rc, const struct err *err)
{
	struct pushing *p = ctx;

	atomic_fetch_add(rc ? &p->failed : &p->acked, 1);
	if (rc)
		fprintf(stderr, "not stored: %s\n", err->msg);
}

static enum err_code push_one(struct pushing *p, uint32_t kind, uint32_t service, uint32_t pod,
	uint64_t scrape, struct err *err)
{
	const struct fleet *f = p->fleets[kind];
	enum value_kind kinds[FLEET_COLUMNS_MAX];
	char service_name[32], instance[64];
	struct label v[3];
	struct db_append_stats stats = { 0 };
	struct pprof *profile;
	int64_t interval = fleet_params(f)->interval_ns;
	double began = seconds(), cpu = cpu_seconds(CLOCK_THREAD_CPUTIME_ID), made;
	enum err_code rc;

	arena_reset(&p->arena);
	if ((rc = fleet_profile(
			 f, p->scratch[kind], service, pod, scrape, p->start_ns, &p->arena, &profile, err)))
		return rc;
	made = seconds();
	p->generating_cpu += cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
	fleet_kinds(f, kinds);
	fleet_service_name(service, service_name);
	if (p->unique)
		snprintf(instance, sizeof(instance), "%s-pod%" PRIu32, service_name, pod);
	else
		snprintf(instance, sizeof(instance), "pod%" PRIu32, pod);
	v[0] = (struct label){ STR(LABEL_NAME), str_of(fleet_profile_name(f)) };
	v[1] = (struct label){ STR("instance"), str_of(instance) };
	v[2] = (struct label){ STR("job"), str_of(service_name) };
	rc = db_append(p->db,
		&(struct db_append){ .labels = { v, 3 },
			/* Pods are scraped one after the other within the interval. */
			.ts_ns = profile->time_nanos + (int64_t)(pod * (uint64_t)interval / p->pods),
			.interval_ns = interval,
			.profile = profile,
			.kinds = kinds,
			.convert = true },
		&stats, acked, p, err);
	p->generating += made - began;
	p->appending += seconds() - made;
	p->profiles++;
	p->samples += stats.samples;
	return rc;
}

static size_t generator_bytes(const struct pushing *p)
{
	size_t own = 0;

	for (uint32_t i = 0; i < p->kinds; i++)
		own += fleet_bytes(p->fleets[i]);
	return own;
}

/* Before the database closes. */
static void report_json(struct pushing *p, double base_mib)
{
	struct db_status s;

	db_status(p->db, &s);
	printf("{\"name\":\"push\",\"targets\":%" PRIu64 ",\"kinds\":%" PRIu64 ",\"scrapes\":%" PRIu64
		   ",\"profiles\":%" PRIu64 ",\"samples\":%" PRIu64 ",\"acked\":%" PRIu64
		   ",\"failed\":%" PRIu64 ",\"append_s\":%.3f,\"storing_cpu_s\":%.3f,\"half_cpu_s\":%.3f,"
		   "\"resident_mib\":%.1f,\"half_mib\":%.1f,\"before_mib\":%.1f,\"symbol_mib\":%.1f,"
		   "\"delta_mib\":%.1f,\"index_mib\":%.1f,\"disk_mib\":%.1f}\n",
		p->services * p->pods, p->kinds, p->scrapes, p->profiles, p->samples,
		atomic_load(&p->acked), atomic_load(&p->failed), p->appending, storing_cpu(p), p->half_cpu,
		resident_mib(), p->half_mib, base_mib, (double)s.symbol_bytes / (1 << 20),
		(double)s.delta_bytes / (1 << 20), (double)s.index_bytes / (1 << 20),
		(double)s.disk_bytes / (1 << 20));
}

static void report(struct pushing *p, uint64_t scrape, double began)
{
	size_t own = generator_bytes(p);
	struct db_status s;

	db_status(p->db, &s);
	printf("%6" PRIu64 " scrapes: %" PRIu64 " profiles, %.1f samples each, %.0f/s (append %.0f/s); "
		   "resident %.1f MiB (generator %.1f); symbols %.1f MiB, %.1f KiB a service; deltas "
		   "%.1f MiB, index %.1f MiB; disk %.1f MiB\n",
		scrape, p->profiles, (double)p->samples / (double)p->profiles,
		(double)p->profiles / (seconds() - began), (double)p->profiles / p->appending,
		resident_mib(), (double)own / (1 << 20), (double)s.symbol_bytes / (1 << 20),
		(double)s.symbol_bytes / 1024 / (double)p->services, (double)s.delta_bytes / (1 << 20),
		(double)s.index_bytes / (1 << 20), (double)s.disk_bytes / (1 << 20));
}

static void report_scrape(struct pushing *p, uint64_t scrape)
{
	struct db_status s;

	db_status(p->db, &s);
	printf("{\"name\":\"scrape\",\"scrape\":%" PRIu64 ",\"resident_mib\":%.3f,\"symbol_mib\":%.3f,"
		   "\"delta_mib\":%.3f,\"index_mib\":%.3f}\n",
		scrape, resident_mib(), (double)s.symbol_bytes / (1 << 20),
		(double)s.delta_bytes / (1 << 20), (double)s.index_bytes / (1 << 20));
}

static enum err_code push_all(struct pushing *p, struct err *err)
{
	double began = seconds();
	enum err_code rc = ERR_OK;

	for (uint64_t k = 0; k < p->scrapes; k++) {
		for (uint32_t pod = 0; pod < p->pods; pod++)
			for (uint32_t service = 0; service < p->services; service++)
				for (uint32_t kind = 0; kind < p->kinds; kind++)
					if ((rc = push_one(p, kind, service, pod, p->first + k, err)))
						return rc;
		if (k + 1 == (p->scrapes + 1) / 2) {
			p->half_mib = resident_mib();
			p->half_cpu = storing_cpu(p);
		}
		if (p->each)
			report_scrape(p, k + 1);
		if (k == p->scrapes - 1 || (p->every && (k + 1) % p->every == 0))
			report(p, k + 1, began);
	}
	return ERR_OK;
}

static enum err_code open_all(struct pushing *p, const char *set, struct err *err)
{
	const char *const names[KINDS] = { set, "heap", "goroutine", "mutex", "block" };
	enum err_code rc;

	for (uint32_t i = 0; i < p->kinds; i++) {
		if (!fleet_set(names[i]))
			return err_set(err, ERR_INVALID, "no set is called \"%s\"", names[i]);
		if ((rc = fleet_open(fleet_set(names[i]), &p->fleets[i], err)) ||
			(rc = fleet_scratch_open(p->fleets[i], &p->scratch[i], err)))
			return rc;
	}
	return ERR_OK;
}

/* All profiles are synced or have failed; then the process ends without closing the database. */
static void kill_when_acked(struct pushing *p)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	while (atomic_load(&p->acked) + atomic_load(&p->failed) < p->profiles)
		nanosleep(&moment, NULL);
	fflush(stdout);
	raise(SIGKILL);
}

enum err_code command_push(int argc, char **argv, struct err *err)
{
	struct pushing p = { 0 };
	struct db_options o;
	const char *set;
	double base_mib;
	int64_t ends;
	bool json, killed;
	/* clang-format off */
	struct flag flags[] = {
		{ "data", FLAG_STRING, &o.dir, NULL,
			"The database's directory; made where missing." },
		{ "set", FLAG_STRING, &set, "heavy-tailed-cpu", "The set of the CPU profiles." },
		{ "service", FLAG_UINT, &p.services, "100", "How many services." },
		{ "pods", FLAG_UINT, &p.pods, "10", "Pods of each." },
		{ "scrapes", FLAG_UINT, &p.scrapes, "60", "Scrapes of each pod and kind." },
		{ "first", FLAG_UINT, &p.first, "9000", "Index of the first scrape." },
		{ "every", FLAG_UINT, &p.every, "10",
			"Report each so many scrapes; 0: at the end." },
		{ "ends", FLAG_DURATION, &ends, "0s", "The last scrape is so long ago." },
		{ "window", FLAG_DURATION, &o.window_ns, "2h", "Of one head." },
		{ "retention", FLAG_DURATION, &o.retention_ns, "15d", "0s: no limit." },
		{ "symbols-bytes", FLAG_BYTES, &o.symbols_bytes, "128MiB", "Budget of symbols." },
		{ "cache-bytes", FLAG_BYTES, &o.cache_bytes, "16MiB", "Cache of pages." },
		{ "kinds", FLAG_UINT, &p.kinds, "5",
			"So many of: CPU, heap, goroutine, mutex, block." },
		{ "json", FLAG_BOOL, &json, "false", "A line of JSON at the end." },
		{ "each", FLAG_BOOL, &p.each, "false", "A line of JSON after each scrape: memory." },
		{ "unique", FLAG_BOOL, &p.unique, "false",
			"Instances of different services have different names: svc007-pod3." },
		{ "kill", FLAG_BOOL, &killed, "false",
			"End by SIGKILL when all is acknowledged, without closing the database." },
		{ "no-compaction", FLAG_BOOL, &o.no_compaction, "false",
			"Windows stay in the head." },
	};
	/* clang-format on */
	size_t args_n = 0, n = sizeof(flags) / sizeof(flags[0]);
	enum err_code rc;

	db_options_default(&o);
	if ((rc = command_flags(flags, n, "Appends profiles to a database, the last one now.", argc,
			 argv, NULL, 0, &args_n, err)))
		return rc;
	if (!o.dir || !p.scrapes || !p.services || !p.pods || !p.kinds || p.kinds > KINDS)
		return err_set(err, ERR_INVALID, "--data is needed, and something to push");
	arena_init(&p.arena, 0);
	printf("resident %.1f MiB at the start\n", resident_mib());
	if ((rc = open_all(&p, set, err)))
		goto done;
	base_mib = resident_mib();
	printf("resident %.1f MiB with the generator\n", base_mib);
	p.start_ns = clock_now_ns() - ends -
		(int64_t)(p.first + p.scrapes) * fleet_params(p.fleets[0])->interval_ns;
	if (p.services * p.pods * p.kinds > o.series_max)
		o.series_max = p.services * p.pods * p.kinds;
	p.opened_cpu = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
	if ((rc = db_open(&o, &p.db, err)) || (rc = push_all(&p, err)))
		goto done;
	if (json)
		report_json(&p, base_mib);
	if (killed)
		kill_when_acked(&p);
done:
	db_close(p.db);
	printf("acknowledged %" PRIu64 ", failed %" PRIu64
		   "; generating took %.1f s, appending %.1f s\n",
		atomic_load(&p.acked), atomic_load(&p.failed), p.generating, p.appending);
	for (uint32_t i = 0; i < p.kinds; i++) {
		fleet_scratch_close(p.scratch[i]);
		fleet_close(p.fleets[i]);
	}
	arena_release(&p.arena);
	return rc;
}
