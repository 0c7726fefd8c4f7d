#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "promql/engine/engine.h"
#include "proto/pprof.h"
#include "tests/bench/tsdb/tsdb_bench.h"

/*
 * Very many series in the head: made by a tiny profile each, queued without waiting; then a
 * restart, a selection by an anchored regular expression over values, names and values of labels,
 * queries of all of them, and one series more than the limit.
 */
#define INSTANCES 1000u /* per job */

struct making {
	struct db *db;
	struct db_options o;
	struct arena arena; /* the profile */
	struct pprof *profile;
	int64_t ts_ns;
	uint64_t series;
	_Atomic uint64_t failed;
};

static void acked(void *ctx, enum err_code rc, const struct err *err)
{
	struct making *t = ctx;

	if (rc)
		atomic_fetch_add(&t->failed, 1);
}

static uint64_t resident_bytes(void)
{
	unsigned long pages = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%lu %lu", &pages, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static enum err_code tiny_profile(struct arena *a, struct pprof **out, struct err *err)
{
	struct pprof_line line = { .line = 1 };
	struct pprof_builder *b;
	const int64_t value = 1;
	uint32_t stack;
	enum err_code rc;

	if ((rc = pprof_builder_open(a, &b, err)))
		return rc;
	pprof_builder_type(b, STR("samples"), STR("count"));
	line.function = pprof_builder_function(
		b, &(struct pprof_function){ .name = pprof_builder_string(b, STR("main")) });
	stack = pprof_builder_location(
		b, (struct pprof_location){ .address = 1, .mapping = PPROF_NONE }, &line, 1);
	pprof_builder_sample(b, &stack, 1, NULL, 0, &value);
	return pprof_builder_finish(b, out, err);
}

static enum err_code append(struct making *t, uint64_t i, struct err *err)
{
	static const enum value_kind kind = KIND_DELTA;
	char job[32], instance[48];
	struct label v[3];

	snprintf(job, sizeof(job), "job-%" PRIu64, i / INSTANCES);
	snprintf(instance, sizeof(instance), "host-%" PRIu64 ".example.org:6060", i);
	v[0] = (struct label){ STR(LABEL_NAME), STR("tiny") };
	v[1] = (struct label){ STR("instance"), str_of(instance) };
	v[2] = (struct label){ STR("job"), str_of(job) };
	return db_append(t->db,
		&(struct db_append){ .labels = { v, 3 },
			.ts_ns = t->ts_ns,
			.interval_ns = 10 * NS_PER_S,
			.profile = t->profile,
			.kinds = &kind },
		NULL, acked, t, err);
}

static enum err_code reopen(struct making *t, struct err *err)
{
	db_close(t->db);
	t->db = NULL;
	return db_open(&t->o, &t->db, err);
}

/* The time of a step: of the clock, and of all threads. */
struct lap {
	double began, cpu_began;
};

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static struct lap lap(void)
{
	return (struct lap){ bench_seconds(), cpu_seconds() };
}

static void print(struct making *t, const char *step, struct lap of, uint64_t found)
{
	double seconds = bench_seconds() - of.began, cpu = cpu_seconds() - of.cpu_began;
	struct db_status s;

	db_status(t->db, &s);
	printf("{\"name\":\"series\",\"step\":\"%s\",\"series\":%" PRIu64 ",\"seconds\":%.3f,"
		   "\"cpu_seconds\":%.4f,\"found\":%" PRIu64 ",\"index_bytes_per_series\":%.1f,"
		   "\"resident_bytes_per_series\":%.1f}\n",
		step, s.series, seconds, cpu, found, (double)s.index_bytes / (double)s.series,
		(double)resident_bytes() / (double)s.series);
	fflush(stdout);
}

/* Every tenth job and every hundredth of its instances: 0.1 % of them. */
static enum err_code select_some(struct making *t, struct err *err)
{
	struct matcher m[2] = { 0 };
	struct db_querier *q = NULL;
	struct db_series *v;
	struct arena a;
	struct str *names;
	struct lap began = lap();
	size_t n = 0;
	enum err_code rc;

	arena_init(&a, 0);
	if ((rc = matcher_init(&m[0], MATCH_RE, STR("job"), STR("job-\\d*7"), err)) ||
			 (rc = matcher_init(&m[1], MATCH_RE,
				  STR("instance"), STR("host-\\d*42\\.example\\.org:6060"), err)) ||
				  (rc = db_querier_open(t->db, 0, INT64_MAX, NULL, &q, err)))
		goto out;
	if ((rc = db_select(q, m, 2, &a, &v, &n, err)))
		goto out;
	print(t, "select", began, n);
	began = lap();
	if ((rc = db_label_values(q, STR("job"), NULL, 0, 0, &a, &names, &n, err)))
		goto out;
	print(t, "values of job", began, n);
	began = lap();
	if ((rc = db_label_values(q, STR("instance"), &m[0], 1, 0, &a, &names, &n, err)))
		goto out;
	print(t, "values of instance, a tenth of jobs", began, n);
	began = lap();
	if ((rc = db_label_names(q, NULL, 0, 0, &a, &names, &n, err)))
		goto out;
	print(t, "names", began, n);
out:
	db_querier_close(q);
	for (int i = 0; i < 2; i++)
		matcher_release(&m[i]);
	arena_release(&a);
	return rc;
}

static bool count_text(void *ctx, struct str text, uint32_t series, uint32_t values)
{
	++*(uint64_t *)ctx;
	return true;
}

/* All of them: from the beginning of time, and from shortly before the first row. */
static enum err_code count_labels(struct making *t, struct err *err)
{
	static const char *const names[] = { "", "job", "instance" };
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < 6 && !rc; i++) {
		int64_t min_ns = i < 3 ? 0 : t->ts_ns - NS_PER_S;
		struct db_querier *q = NULL;
		struct db_counts *c = NULL;
		struct lap began = lap();
		uint64_t found = 0;
		char step[64];

		if (!(rc = db_querier_open(t->db, min_ns, t->ts_ns + NS_PER_S, NULL, &q, err)) &&
			!(rc = db_counts_open(q, &c, err)) && !(rc = db_counts_add(c, NULL, 0, err)) &&
			!(rc = db_counts_each(c, str_of(names[i % 3]), count_text, &found, err))) {
			snprintf(step, sizeof(step), "counts of %s, %s", i % 3 ? names[i % 3] : "labels",
				min_ns ? "recent" : "whole");
			print(t, step, began, found);
		}
		db_counts_close(c);
		db_querier_close(q);
	}
	return rc;
}

/* Queries with the server's limits: each is answered, or refused within them. */
static enum err_code ask(struct making *t, struct err *err)
{
	static const char *const texts[] = {
		"count(total(tiny{instance='host-77.example.org:6060'}))",
		"merge(tiny{instance='host-77.example.org:6060'})",
		"merge(tiny{instance='host-77.example.org:6060'})",
		"count(total(tiny{job=~'job-\\\\d*7',instance=~'host-\\\\d*42[.]example[.]org:6060'}))",
		"count(count by (job) (total(tiny)))",
		"total(merge(tiny))",
		"topk(5, total(tiny))",
	};
	struct engine_options o = { .db = t->db, .lookback_ns = NS_PER_HOUR };
	struct engine *e;
	enum err_code rc = engine_open(&o, &e, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct query_options q = { .text = str_of(texts[i]), .t_ns = t->ts_ns + NS_PER_S };
		struct lap began = lap();
		struct query *query = NULL;
		struct err refused;

		if (query_run(e, &q, &query, &refused))
			fprintf(stderr, "%s: %s\n", texts[i], refused.msg);
		print(t, texts[i], began, query ? query_result(query)->n : 0);
		query_close(query);
	}
	engine_close(e);
	return ERR_OK;
}

static enum err_code run(struct making *t, struct err *err)
{
	struct lap began = lap();
	struct err refused;
	enum err_code rc = ERR_OK;

	for (uint64_t i = 0; i < t->series && !rc; i++)
		rc = append(t, i, err);
	if (rc)
		return rc;
	print(t, "append", began, t->series);
	began = lap();
	if (append(t, t->series, &refused) != ERR_LIMIT)
		return err_set(err, ERR_INVALID, "one series more than the limit was taken");
	fprintf(stderr, "one more: %s\n", refused.msg);
	if ((rc = count_labels(t, err)) || (rc = reopen(t, err)))
		return rc;
	print(t, "close and open", began, t->series);
	if (atomic_load(&t->failed))
		return err_set(err, ERR_IO, "%" PRIu64 " profiles were not stored", t->failed);
	rc = select_some(t, err);
	if (!rc)
		rc = count_labels(t, err);
	return rc ? rc : ask(t, err);
}

enum err_code bench_series(int argc, char **argv, struct err *err)
{
	struct making t = { 0 };
	struct flag flags[] = {
		{ "data", FLAG_STRING, &t.o.dir, NULL, "The database's directory; must be empty." },
		{ "series", FLAG_UINT, &t.series, "1000000", "How many; that is the limit too." },
	};
	enum err_code rc;
	size_t args_n = 0;

	db_options_default(&t.o);
	t.o.dir = NULL;
	if ((rc = command_flags(flags, sizeof(flags) / sizeof(flags[0]),
			 "Memory and times of very many series.", argc, argv, NULL, 0, &args_n, err)))
		return rc;
	if (!t.o.dir || t.series < INSTANCES)
		return err_set(err, ERR_INVALID, "--data and at least %u series are needed", INSTANCES);
	t.o.series_max = t.series;
	t.ts_ns = clock_now_ns();
	arena_init(&t.arena, 0);
	if (!(rc = tiny_profile(&t.arena, &t.profile, err)) && !(rc = db_open(&t.o, &t.db, err)))
		rc = run(&t, err);
	db_close(t.db);
	arena_release(&t.arena);
	return rc;
}
