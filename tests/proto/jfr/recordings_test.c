/*
 * Recordings of the JDK and of async-profiler, against what the JDK's own `jfr print` says of them
 * (recordings/README.md).
 */
#include "proto/jfr/jfr.h"
#include "tests/check.h"
#include "tests/proto/jfr/show.h"

static const struct jfr_options options = { .limits = &jfr_limits_default, .sample_rate_hz = 100 };

static void check_recording(const char *name)
{
	struct buf got = { 0 }, difference = { 0 };
	struct jfr_file *f;
	char path[100];
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	snprintf(path, sizeof(path), "%s.jfr", name);
	REQUIRE_OK(jfr_decode(&a, recording(&a, path), &options, &f, &err), &err);
	show_sorted(&got, f);
	snprintf(path, sizeof(path), "%s.expected", name);
	show_difference(&difference, buf_str(&got), recording(&a, path));
	CHECK_STR(buf_str(&difference), "");
	CHECK_INT(f->frames_lost_n, 0);
	CHECK_INT(f->chunks_n, 1);
	buf_release(&got);
	buf_release(&difference);
	arena_release(&a);
}

TEST(jdk)
{
	check_recording("jdk");
}

/* CPU time beside samples of execution, and old objects. */
TEST(jdk_25)
{
	check_recording("jdk25");
}

TEST(async_profiler)
{
	check_recording("async");
}

TEST(async_profiler_wall_and_malloc)
{
	check_recording("wall");
}

TEST(async_profiler_2)
{
	check_recording("old");
}

TEST(pyroscope_agent)
{
	check_recording("agent");
}

/* What CPUTimeSamplesLost says: jfr print --events CPUTimeSamplesLost. */
TEST(samples_lost)
{
	struct jfr_file *f;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(jfr_decode(&a, recording(&a, "jdk25.jfr"), &options, &f, &err), &err);
	CHECK_INT(f->samples_lost_n, 47);
	CHECK_STR(f->warning,
		"the recorder lost 47 samples of CPU time, about 329 ms; process_cpu lacks them");
	CHECK_INT(f->profiles[0].pprof->period, 7000000);
	REQUIRE_OK(jfr_decode(&a, recording(&a, "jdk.jfr"), &options, &f, &err), &err);
	CHECK_STR(f->warning, "");
	arena_release(&a);
}

/* The contexts of one label set are one row. */
TEST(labels_of_the_agent)
{
	struct jfr_options with = options;
	int64_t car = 0, bike = 0, none = 0;
	uint32_t rows_of_car = 0;
	const struct pprof *p;
	struct jfr_file *f;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	with.labels = recording(&a, "agent.labels");
	REQUIRE_OK(jfr_decode(&a, recording(&a, "agent.jfr"), &with, &f, &err), &err);
	CHECK_STR(str_of(f->profiles[0].name), "process_cpu");
	p = f->profiles[0].pprof;
	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *s = &p->samples[i];
		const struct pprof_label *l = &p->labels[s->label_first];

		if (s->label_n == 0) {
			none += p->values[i];
		} else if (s->label_n == 1) {
			CHECK_STR(p->strings[l->key], "vehicle");
			CHECK_STR(p->strings[l->str], "bike");
			bike += p->values[i];
		} else {
			CHECK_INT(s->label_n, 2);
			CHECK_STR(p->strings[l[0].key], "region");
			CHECK_STR(p->strings[l[0].str],
				"\xc3\xbc"
				"ber");
			CHECK_STR(p->strings[l[1].key], "vehicle");
			CHECK_STR(p->strings[l[1].str], "car");
			car += p->values[i];
			rows_of_car++;
		}
	}
	CHECK_INT(car, 160000000);
	CHECK_INT(rows_of_car, 1);
	CHECK_INT(bike, 230000000);
	CHECK_INT(none, 380000000);
	CHECK_INT(f->labels_lost_n, 0);
	/* Without a snapshot the same samples are there, and it is said that they had labels. */
	REQUIRE_OK(jfr_decode(&a, recording(&a, "agent.jfr"), &options, &f, &err), &err);
	CHECK_INT(f->profiles[0].pprof->labels_n, 0);
	CHECK(f->labels_lost_n >= 39);
	arena_release(&a);
}

static struct str twice(struct arena *a, struct str first, struct str second)
{
	char *s = arena_alloc(a, first.len + second.len);

	memcpy(s, first.ptr, first.len);
	memcpy(s + first.len, second.ptr, second.len);
	return (struct str){ s, first.len + second.len };
}

static int64_t total(const struct pprof *p, uint32_t type)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->samples_n; i++)
		sum += p->values[i * p->types_n + type];
	return sum;
}

/* The same chunk twice: no new stack, twice the values. */
TEST(chunks)
{
	struct jfr_file *once, *f;
	struct str raw;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	raw = recording(&a, "async.jfr");
	REQUIRE_OK(jfr_decode(&a, raw, &options, &once, &err), &err);
	REQUIRE_OK(jfr_decode(&a, twice(&a, raw, raw), &options, &f, &err), &err);
	CHECK_INT(f->chunks_n, 2);
	CHECK_INT(f->profiles_n, once->profiles_n);
	CHECK_INT(f->events_n, 2 * once->events_n);
	for (uint32_t i = 0; i < f->profiles_n; i++) {
		const struct pprof *p = f->profiles[i].pprof, *q = once->profiles[i].pprof;

		CHECK_INT(p->samples_n, q->samples_n);
		CHECK_INT(p->functions_n, q->functions_n);
		CHECK_INT(f->profiles[i].events, 2 * once->profiles[i].events);
		for (uint32_t k = 0; k < p->types_n; k++)
			CHECK_INT(total(p, k), 2 * total(q, k));
	}
	/* Chunks of different writers, and ids of their own. */
	REQUIRE_OK(jfr_decode(&a, twice(&a, raw, recording(&a, "jdk.jfr")), &options, &f, &err), &err);
	CHECK_INT(f->chunks_n, 2);
	CHECK_INT(f->profiles_n, 5);
	arena_release(&a);
}

TEST(times_types_and_periods)
{
	const struct pprof *p;
	struct jfr_file *f;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(jfr_decode(&a, recording(&a, "async.jfr"), &options, &f, &err), &err);
	REQUIRE(f->profiles_n == 4);
	p = f->profiles[0].pprof;
	CHECK_INT(p->period, 10000000);
	CHECK_STR(p->strings[p->types[0].unit], "nanoseconds");
	CHECK_STR(p->strings[p->period_type.type], "cpu");
	CHECK_STR(p->strings[p->period_type.unit], "nanoseconds");
	CHECK(p->time_nanos > 1700000000000000000 && p->duration_nanos > 500000000);
	p = f->profiles[1].pprof;
	CHECK_STR(str_of(f->profiles[1].name), "wall");
	CHECK_INT(p->period, 50000000);
	/* Live objects and their bytes are levels, beside the allocations of the same profile. */
	p = f->profiles[2].pprof;
	CHECK_STR(str_of(f->profiles[2].name), "memory");
	REQUIRE(p->types_n == 4);
	CHECK_STR(p->strings[p->types[1].type], "alloc_in_new_tlab_bytes");
	CHECK_STR(p->strings[p->types[1].unit], "bytes");
	CHECK_STR(p->strings[p->types[2].type], "live");
	CHECK_INT(f->profiles[2].kinds[1], KIND_DELTA);
	CHECK_STR(p->strings[p->types[3].type], "live_bytes");
	CHECK_STR(p->strings[p->types[3].unit], "bytes");
	CHECK_INT(f->profiles[2].kinds[2], KIND_GAUGE);
	CHECK_INT(f->profiles[2].kinds[3], KIND_GAUGE);
	arena_release(&a);
}

/* Each profile encodes, and decodes again to as many samples. */
TEST(profiles_are_sound)
{
	struct buf body = { 0 };
	struct jfr_file *f;
	struct pprof *p;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(jfr_decode(&a, recording(&a, "jdk.jfr"), &options, &f, &err), &err);
	for (uint32_t i = 0; i < f->profiles_n; i++) {
		buf_clear(&body);
		REQUIRE_OK(pprof_encode(f->profiles[i].pprof, &body, &err), &err);
		REQUIRE_OK(pprof_decode(&a, buf_str(&body), &pprof_limits_default, &p, &err), &err);
		CHECK_INT(p->samples_n, f->profiles[i].pprof->samples_n);
		CHECK_INT(p->location_ids_n, f->profiles[i].pprof->location_ids_n);
	}
	buf_release(&body);
	arena_release(&a);
}
