#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/bench/tsdb/tsdb_bench.h"
#include "tsdb/series/series.h"

/*
 * The index of series alone, in CPU time: adding, matching, names and values of labels. Series have
 * four names, ten of them share an instance, a thousand a job; one of three has a version.
 */
#define LABELS_MAX 5u
#define JOB_SERIES 1000u
#define INSTANCE_SERIES 10u
#define REPEATS 5u

struct indexing {
	struct series_index *x;
	struct bits all;
	uint64_t n;
	struct err *err;
};

struct texts {
	char instance[48], job[32], region[16], version[16];
};

static size_t labels_of(uint64_t i, struct texts *t, struct label v[LABELS_MAX])
{
	static const char *const names[] = { "process_cpu", "memory", "goroutine", "block" };
	size_t n = 0;

	snprintf(
		t->instance, sizeof(t->instance), "host-%" PRIu64 ".example.org:6060", i / INSTANCE_SERIES);
	snprintf(t->job, sizeof(t->job), "job-%" PRIu64, i / JOB_SERIES);
	snprintf(t->region, sizeof(t->region), "r%" PRIu64 "-%" PRIu64, i % INSTANCE_SERIES, i % 7);
	snprintf(t->version, sizeof(t->version), "v%" PRIu64, i % 20);
	v[n++] = (struct label){ STR(LABEL_NAME), str_of(names[i % 4]) };
	v[n++] = (struct label){ STR("instance"), str_of(t->instance) };
	v[n++] = (struct label){ STR("job"), str_of(t->job) };
	v[n++] = (struct label){ STR("region"), str_of(t->region) };
	if (i % 3 == 0)
		v[n++] = (struct label){ STR("version"), str_of(t->version) };
	return n;
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void print(const struct indexing *t, const char *step, double seconds, uint64_t found)
{
	printf("{\"name\":\"index\",\"step\":\"%s\",\"series\":%" PRIu64
		   ",\"cpu_ms\":%.4f,\"found\":%" PRIu64 "}\n",
		step, t->n, seconds * 1e3, found);
}

static enum err_code add_all(struct indexing *t)
{
	struct job *job = (struct job *)t; /* any but NULL: the index never looks into it */
	struct label v[LABELS_MAX];
	struct texts texts;
	struct series *s;
	enum err_code rc = ERR_OK;

	if (!bits_reserve(&t->all, (uint32_t)t->n))
		return err_nomem(t->err, "series");
	for (uint64_t i = 0; i < t->n && !rc; i++) {
		struct labels labels = { v, labels_of(i, &texts, v) };

		if ((rc = series_add(t->x, labels, SYM_NONE, job, &s, t->err)))
			break;
		series_release(s);
		bits_set(&t->all, s->id);
	}
	return rc;
}

/* ---- matching ---- */

struct asked {
	enum match_op op;
	const char *name, *value;
};

static const struct {
	const char *step;
	struct asked of[3]; /* up to the first without a name */
} matches[] = {
	{ "one instance",
		{ { MATCH_EQ, LABEL_NAME, "memory" },
			{ MATCH_EQ, "instance", "host-4711.example.org:6060" } } },
	{ "no such job", { { MATCH_EQ, "job", "nowhere" } } },
	{ "a job by name and version",
		{ { MATCH_EQ, LABEL_NAME, "memory" }, { MATCH_EQ, "job", "job-77" },
			{ MATCH_EQ, "version", "" } } },
	{ "all but a job", { { MATCH_NE, "job", "job-77" } } },
	{ "without a version", { { MATCH_EQ, "version", "" } } },
	{ "three jobs", { { MATCH_RE, "job", "job-7|job-77|job-777" } } },
	{ "regex over jobs", { { MATCH_RE, "job", "job-.*77" } } },
	{ "regex over instances", { { MATCH_RE, "instance", "host-\\\\d*42\\\\.example\\\\.org.*" } } },
	{ "regex over instances of a job",
		{ { MATCH_EQ, "job", "job-77" },
			{ MATCH_RE, "instance", "host-\\\\d*42\\\\.example.*" } } },
	{ "not a regex over instances", { { MATCH_NRE, "instance", "host-.*42\\\\.example.*" } } },
};

static enum err_code match(struct indexing *t, const struct asked *of, size_t n, size_t *found)
{
	struct matcher m[3] = { 0 };
	struct bits out = { 0 };
	enum err_code rc = ERR_OK;
	char value[64];

	*found = 0;
	for (size_t i = 0; i < n && !rc; i++) {
		size_t at = 0;

		for (const char *p = of[i].value; *p; p++) /* the table is printed as JSON too */
			if (p[0] != '\\' || p[1] != '\\')
				value[at++] = *p;
		value[at] = '\0';
		rc = matcher_init(&m[i], of[i].op, str_of(of[i].name),
			of[i].op == MATCH_EQ || of[i].op == MATCH_NE ? str_of(of[i].value) : str_of(value),
			t->err);
	}
	series_lock_read(t->x);
	if (!rc)
		rc = series_match_locked(t->x, m, n, &t->all, NULL, NULL, &out, t->err);
	series_unlock(t->x);
	for (size_t w = 0; w < out.words; w++)
		*found += (size_t)__builtin_popcountll(out.w[w]);
	bits_release(&out);
	for (size_t i = 0; i < n; i++)
		matcher_release(&m[i]);
	return rc;
}

static enum err_code match_all(struct indexing *t)
{
	enum err_code rc = ERR_OK;
	size_t found = 0, n;

	for (size_t i = 0; i < sizeof(matches) / sizeof(matches[0]) && !rc; i++) {
		double began = cpu_seconds();

		for (n = 0; n < 3 && matches[i].of[n].name; n++)
			;
		for (unsigned k = 0; k < REPEATS && !rc; k++)
			rc = match(t, matches[i].of, n, &found);
		print(t, matches[i].step, (cpu_seconds() - began) / REPEATS, found);
	}
	return rc;
}

/* ---- names ---- */

static bool count(void *ctx, struct str name)
{
	++*(uint64_t *)ctx;
	return true;
}

static void names(struct indexing *t, const char *name)
{
	double began = cpu_seconds();
	uint64_t found = 0;

	series_lock_read(t->x);
	series_names_locked(t->x, str_of(name), &t->all, count, &found);
	series_unlock(t->x);
	print(t, *name ? name : "names", cpu_seconds() - began, found);
}

enum err_code bench_index(int argc, char **argv, struct err *err)
{
	struct indexing t = { .n = 0, .err = err };
	struct flag flags[] = {
		{ "series", FLAG_UINT, &t.n, "1000000", "How many." },
	};
	enum err_code rc;
	size_t args_n = 0;
	double began;

	if ((rc = command_flags(
			 flags, 1, "CPU time of the index of series.", argc, argv, NULL, 0, &args_n, err)) ||
		(rc = series_index_open(t.n, 0, &t.x, err)))
		return rc;
	began = cpu_seconds();
	if (!(rc = add_all(&t))) {
		print(&t, "add", cpu_seconds() - began, t.n);
		print(&t, "bytes", 0, series_index_bytes(t.x));
		if (!(rc = match_all(&t))) {
			names(&t, "");
			names(&t, "job");
			names(&t, "instance");
		}
	}
	bits_release(&t.all);
	series_index_close(t.x);
	return rc;
}
