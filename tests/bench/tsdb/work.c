#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/self/heap.h"
#include "tests/bench/tsdb/tsdb_bench.h"

/*
 * Peaks of resident memory: while profiles come, and while their windows are cut and joined. The
 * two take turns, a window at a time, so that each peak has one cause. The generator is the same in
 * both, and is taken away.
 */
#define FIRST_SCRAPE 9000u
#define SETS_MAX 5u

struct working {
	struct db *db;
	struct fleet *fleets[SETS_MAX];
	struct fleet_scratch *scratch[SETS_MAX];
	enum value_kind kinds[SETS_MAX][FLEET_COLUMNS_MAX];
	uint32_t sets_n;
	struct arena arena;
	int64_t start_ns, window_ns, end_ns;
	uint64_t services, pods, windows;
	_Atomic uint64_t acked, failed;
	uint64_t sent, samples, work_rounds;
	double ingest_mib, work_mib, work_cpu; /* seconds of the one thread that works */
};

static void acked(void *ctx, enum err_code rc, const struct err *err)
{
	struct working *t = ctx;

	atomic_fetch_add(rc ? &t->failed : &t->acked, 1);
}

static double status_mib(const char *field)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, field, strlen(field)) == 0)
			(void)!sscanf(line + strlen(field), ": %lu", &kib);
	if (file)
		fclose(file);
	return (double)kib / 1024;
}

/* The peak begins at what is resident now. */
static void forget_peak(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "w");

	if (!file)
		return;
	fputs("5", file);
	fclose(file);
}

static double thread_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double own_mib(const struct working *t)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < t->sets_n; i++)
		bytes += fleet_bytes(t->fleets[i]);
	return (double)bytes / (1 << 20);
}

static void wait_for_acks(struct working *t)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	while (atomic_load(&t->acked) + atomic_load(&t->failed) < t->sent)
		nanosleep(&moment, NULL);
}

static enum err_code append(struct working *t, uint32_t set, uint32_t service, uint32_t pod,
	uint64_t scrape, struct err *err)
{
	int64_t interval = fleet_params(t->fleets[set])->interval_ns;
	struct db_append_stats stats = { 0 };
	char name[32], instance[32];
	struct pprof *profile;
	struct label v[3];
	enum err_code rc;

	arena_reset(&t->arena);
	if ((rc = fleet_profile(t->fleets[set], t->scratch[set], service, pod, FIRST_SCRAPE + scrape,
			 t->start_ns - FIRST_SCRAPE * interval, &t->arena, &profile, err)))
		return rc;
	snprintf(instance, sizeof(instance), "pod%02" PRIu32, pod);
	v[0] = (struct label){ STR(LABEL_NAME), str_of(fleet_profile_name(t->fleets[set])) };
	v[1] = (struct label){ STR("instance"), str_of(instance) };
	v[2] = (struct label){ STR("job"), str_of(fleet_service_name(service, name)) };
	t->sent++;
	rc = db_append(t->db,
		&(struct db_append){ .labels = { v, 3 },
			.ts_ns = t->start_ns + (int64_t)scrape * interval -
				(int64_t)(pod * (uint64_t)interval / t->pods),
			.interval_ns = interval,
			.profile = profile,
			.kinds = t->kinds[set],
			.convert = true },
		&stats, acked, t, err);
	t->samples += stats.samples;
	return rc;
}

/* One scrape of all pods. */
static enum err_code round_of(struct working *t, uint64_t scrape, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (uint32_t pod = 0; pod < t->pods && !rc; pod++)
		for (uint32_t service = 0; service < t->services && !rc; service++)
			for (uint32_t set = 0; set < t->sets_n && !rc; set++)
				rc = append(t, set, service, pod, scrape, err);
	return rc;
}

static enum err_code work(struct working *t, struct err *err)
{
	double began = thread_seconds(), peak;
	enum err_code rc;

	wait_for_acks(t);
	peak = status_mib("VmHWM");
	t->ingest_mib = peak > t->ingest_mib ? peak : t->ingest_mib;
	forget_peak();
	rc = db_compact(t->db, err);
	peak = status_mib("VmHWM");
	t->work_mib = peak > t->work_mib ? peak : t->work_mib;
	t->work_cpu += thread_seconds() - began;
	forget_peak();
	return rc;
}

static enum err_code fill(struct working *t, struct err *err)
{
	int64_t interval = fleet_params(t->fleets[0])->interval_ns;
	uint64_t each = (uint64_t)(t->window_ns / interval);
	enum err_code rc = ERR_OK;

	for (uint64_t w = 0; w < t->windows && !rc; w++) {
		for (uint64_t k = 1; k <= each && !rc; k++)
			rc = round_of(t, w * each + k, err);
		if (!rc)
			rc = work(t, err);
	}
	return rc;
}

enum err_code bench_work(int argc, char **argv, struct err *err)
{
	static const char *const second = "heap";
	struct working t = { 0 };
	struct db_options o;
	const char *set;
	double own;
	struct flag flags[] = {
		{ "data", FLAG_STRING, &o.dir, NULL, "The database's directory; must be empty." },
		{ "set", FLAG_STRING, &set, "fleet-cpu", "The set of the CPU profiles; heap beside it." },
		{ "service", FLAG_UINT, &t.services, "1", "How many services." },
		{ "pods", FLAG_UINT, &t.pods, "3", "Pods of each." },
		{ "window", FLAG_DURATION, &o.window_ns, "2h", "Length of a head window." },
		{ "windows", FLAG_UINT, &t.windows, "4", "How many." },
	};
	enum err_code rc;
	size_t args_n = 0;

	db_options_default(&o);
	o.dir = NULL;
	if ((rc = command_flags(flags, sizeof(flags) / sizeof(flags[0]),
			 "Peaks of memory: of ingest, of cutting and joining.", argc, argv, NULL, 0, &args_n,
			 err)))
		return rc;
	if (!o.dir || !fleet_set(set) || !t.services || !t.pods || !t.windows || o.window_ns <= 0)
		return err_set(err, ERR_INVALID, "--data, --set and sizes are needed");
	heap_tune();
	o.no_compaction = true; /* only when it is its turn */
	arena_init(&t.arena, 0);
	t.window_ns = o.window_ns;
	t.start_ns = clock_now_ns() / o.window_ns * o.window_ns - (int64_t)t.windows * o.window_ns;
	for (t.sets_n = 0; t.sets_n < 2; t.sets_n++) {
		const struct fleet_params *p = fleet_set(t.sets_n ? second : set);

		if ((rc = fleet_open(p, &t.fleets[t.sets_n], err)) ||
			(rc = fleet_scratch_open(t.fleets[t.sets_n], &t.scratch[t.sets_n], err)))
			goto done;
		fleet_kinds(t.fleets[t.sets_n], t.kinds[t.sets_n]);
	}
	own = status_mib("VmRSS");
	if ((rc = db_open(&o, &t.db, err)) || (rc = fill(&t, err)))
		goto done;
	if (atomic_load(&t.failed))
		rc = err_set(err, ERR_IO, "%" PRIu64 " profiles were not stored", t.failed);
	printf("{\"name\":\"work\",\"set\":\"%s\",\"profiles\":%" PRIu64 ",\"samples\":%" PRIu64
		   ",\"before_mib\":%.1f,\"generator_mib\":%.1f,\"ingest_mib\":%.1f,\"work_mib\":%.1f,"
		   "\"now_mib\":%.1f,\"ratio\":%.3f,\"work_cpu_s\":%.3f}\n",
		set, t.sent, t.samples, own, own_mib(&t), t.ingest_mib, t.work_mib, status_mib("VmRSS"),
		(t.work_mib - own) / (t.ingest_mib - own), t.work_cpu);
done:
	db_close(t.db);
	for (uint32_t i = 0; i < t.sets_n; i++) {
		fleet_scratch_close(t.scratch[i]);
		fleet_close(t.fleets[i]);
	}
	arena_release(&t.arena);
	return rc;
}
