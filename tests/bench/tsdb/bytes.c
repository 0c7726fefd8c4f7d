#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "tests/bench/tsdb/tsdb_bench.h"

/*
 * Bytes per sample as a database makes them: two hours of a few services' scrapes appended, then
 * one profile of the next window, so that the first takes no more rows and is cut into a block.
 */
#define FIRST_SCRAPE 9000u /* as `fleet floor` takes them */

struct filling {
	struct db *db;
	struct fleet *fleet;
	struct fleet_scratch *scratch;
	struct arena arena;
	enum value_kind kinds[FLEET_COLUMNS_MAX];
	int64_t window_ns; /* start of the window that is filled */
	uint64_t services, pods, scrapes, window_minutes;
	uint64_t sent;
	_Atomic uint64_t acked, failed;
	double generating_s, ingest_s, cut_s; /* CPU */
};

static double cpu_seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void acked(void *ctx, enum err_code rc, const struct err *err)
{
	struct filling *t = ctx;

	atomic_fetch_add(rc ? &t->failed : &t->acked, 1);
}

static enum err_code append(
	struct filling *t, uint32_t service, uint32_t pod, uint64_t scrape, struct err *err)
{
	int64_t interval = fleet_params(t->fleet)->interval_ns;
	/* Index FIRST_SCRAPE is at the window's start; the first row is one interval later. */
	int64_t start = t->window_ns - FIRST_SCRAPE * interval;
	struct db_append_stats stats;
	char name[32], instance[32];
	struct pprof *profile;
	struct label v[3];
	double began = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
	enum err_code rc;

	arena_reset(&t->arena);
	if ((rc = fleet_profile(t->fleet, t->scratch, service, pod, FIRST_SCRAPE + scrape, start,
			 &t->arena, &profile, err)))
		return rc;
	t->generating_s += cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - began;
	t->sent++;
	snprintf(instance, sizeof(instance), "pod%02" PRIu32, pod);
	v[0] = (struct label){ STR(LABEL_NAME), str_of(fleet_profile_name(t->fleet)) };
	v[1] = (struct label){ STR("instance"), str_of(instance) };
	v[2] = (struct label){ STR("job"), str_of(fleet_service_name(service, name)) };
	return db_append(t->db,
		&(struct db_append){ .labels = { v, 3 },
			.ts_ns = t->window_ns + (int64_t)scrape * interval -
				(int64_t)(pod * (uint64_t)interval / t->pods),
			.interval_ns = interval,
			.profile = profile,
			.kinds = t->kinds,
			.convert = true },
		&stats, acked, t, err);
}

static enum err_code fill(struct filling *t, struct err *err)
{
	uint64_t per_window = (uint64_t)(2 * NS_PER_HOUR / fleet_params(t->fleet)->interval_ns);
	enum err_code rc = ERR_OK;

	for (uint64_t k = 1; k <= t->scrapes && !rc; k++)
		for (uint32_t pod = 0; pod < t->pods && !rc; pod++)
			for (uint32_t service = 0; service < t->services && !rc; service++)
				rc = append(t, service, pod, k, err);
	/* Two windows on: the first takes no more rows, whatever is still accepted late. */
	return rc ? rc : append(t, 0, 0, 2 * per_window + 1, err);
}

/* Rows that are still queued are not cut. */
static void wait_for_acks(struct filling *t)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	while (atomic_load(&t->acked) + atomic_load(&t->failed) < t->sent)
		nanosleep(&moment, NULL);
}

/* All of it, and what both cost: CPU of the process, the generator's taken away. */
static enum err_code fill_and_cut(struct filling *t, struct err *err)
{
	double began = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID), filled;
	enum err_code rc = fill(t, err);

	wait_for_acks(t);
	filled = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
	t->ingest_s = filled - began - t->generating_s;
	if (!rc)
		rc = db_compact(t->db, err);
	t->cut_s = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - filled;
	return rc;
}

static enum err_code measure_all(const char *data, const char *set, struct err *err)
{
	struct bench_blocks blocks;
	enum err_code rc = bench_blocks_open(data, &blocks, err);

	for (size_t i = 0; i < blocks.n && !rc; i++)
		rc = bench_measure(blocks.v[i], "bytes", set, err);
	bench_blocks_close(&blocks);
	return rc;
}

enum err_code bench_bytes(int argc, char **argv, struct err *err)
{
	struct filling t = { 0 };
	struct db_options o;
	const char *set;
	struct flag flags[] = {
		{ "data", FLAG_STRING, &o.dir, NULL, "The database's directory; must be empty." },
		{ "set", FLAG_STRING, &set, "fleet-cpu", "The set of the profiles." },
		{ "service", FLAG_UINT, &t.services, "2", "How many services." },
		{ "pods", FLAG_UINT, &t.pods, "10", "Pods of each." },
		{ "window-minutes", FLAG_UINT, &t.window_minutes, "120",
			"Length of a head window: shorter ones are joined into two hours." },
		{ "scrapes", FLAG_UINT, &t.scrapes, "720", "Scrapes of each pod; at most 720." },
	};
	enum err_code rc;
	size_t args_n = 0;

	db_options_default(&o);
	o.dir = NULL;
	if ((rc = command_flags(flags, sizeof(flags) / sizeof(flags[0]),
			 "Bytes per sample of a block that a database cut.", argc, argv, NULL, 0, &args_n,
			 err)))
		return rc;
	if (t.window_minutes && 120 % t.window_minutes == 0)
		o.window_ns = (int64_t)t.window_minutes * NS_PER_MIN;
	if (!o.dir || !fleet_set(set) || !t.services || !t.pods || !t.scrapes || t.scrapes > 720)
		return err_set(err, ERR_INVALID, "--data, --set and sizes are needed");
	o.no_compaction = true; /* only when its turn comes */
	arena_init(&t.arena, 0);
	t.window_ns = (clock_now_ns() / (2 * NS_PER_HOUR) - 3) * 2 * NS_PER_HOUR;
	if ((rc = fleet_open(fleet_set(set), &t.fleet, err)) ||
		(rc = fleet_scratch_open(t.fleet, &t.scratch, err)))
		goto done;
	fleet_kinds(t.fleet, t.kinds);
	if ((rc = db_open(&o, &t.db, err)) || (rc = fill_and_cut(&t, err)))
		goto done;
	if (atomic_load(&t.failed))
		rc = err_set(err, ERR_IO, "%" PRIu64 " profiles were not stored", t.failed);
	printf("{\"name\":\"cut\",\"set\":\"%s\",\"profiles\":%" PRIu64
		   ",\"ingest_cpu_s\":%.4f,\"cut_cpu_s\":%.4f}\n",
		set, t.sent, t.ingest_s, t.cut_s);
done:
	db_close(t.db);
	fleet_scratch_close(t.scratch);
	fleet_close(t.fleet);
	arena_release(&t.arena);
	return rc ? rc : measure_all(o.dir, set, err);
}
