/*
 * Requests that profilers sent, and what they must show (testdata/README.md).
 * Names that expected.json marks "(by nm)" and "[file]+0x..." are addresses here.
 */
#include <jansson.h>

#include "base/fs.h"
#include "tests/check.h"
#include "tests/proto/otlp/show.h"

#define DIR "testdata/"

static const char *const recorded[] = { "p2-standalone-99hz-steady.pb",
	"p4-standalone-20hz-tiny.pb", "p5-collector-49hz.pb" };
#define RECORDED_N (sizeof(recorded) / sizeof(recorded[0]))

static struct str process_of(const struct otlp_request *r, const struct otlp_profile *p)
{
	const struct otlp_resource *resource = &r->resources[p->resource];

	for (uint32_t i = 0; i < resource->attributes_n; i++)
		if (str_is(resource->attributes[i].key, "process.executable.name"))
			return resource->attributes[i].text;
	return STR("");
}

/* The name of the innermost line, or file and address as expected.json has it. */
static struct str name_of(struct arena *a, const struct pprof *p, uint32_t location)
{
	const struct pprof_location *l = &p->locations[location];

	if (l->line_n)
		return p->strings[p->functions[p->lines[l->line_first].function].name];
	if (l->mapping == PPROF_NONE)
		return STR("");
	return str_of(arena_printf(a, "[" STR_FMT "]+0x%" PRIx64,
		STR_ARG(p->strings[p->mappings[l->mapping].filename]), l->address));
}

static int64_t self_of(struct arena *a, const struct otlp_request *r, struct str process,
	struct str name, int64_t *inclusive)
{
	int64_t self = 0;

	*inclusive = 0;
	for (uint32_t i = 0; i < r->profiles_n; i++) {
		const struct pprof *p = r->profiles[i].pprof;

		if (!str_eq(process_of(r, &r->profiles[i]), process))
			continue;
		for (uint32_t k = 0; k < p->samples_n; k++) {
			const struct pprof_sample *s = &p->samples[k];
			int64_t v = p->values[(size_t)k * p->types_n];
			bool met = false;

			for (uint32_t f = 0; f < s->location_n; f++) {
				if (!str_eq(name_of(a, p, p->location_ids[s->location_first + f]), name))
					continue;
				self += f ? 0 : v;
				met = true;
			}
			*inclusive += met ? v : 0;
		}
	}
	return self;
}

/* Samples whose leaf is an address of the program itself: what nm named. */
static int64_t unnamed_of(const struct otlp_request *r, struct str process)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < r->profiles_n; i++) {
		const struct pprof *p = r->profiles[i].pprof;

		if (!str_eq(process_of(r, &r->profiles[i]), process))
			continue;
		for (uint32_t k = 0; k < p->samples_n; k++) {
			const struct pprof_location *l;

			if (!p->samples[k].location_n)
				continue;
			l = &p->locations[p->location_ids[p->samples[k].location_first]];
			if (!l->line_n && l->mapping != PPROF_NONE &&
				str_eq(p->strings[p->mappings[l->mapping].filename], process))
				n += p->values[(size_t)k * p->types_n];
		}
	}
	return n;
}

static void check_names(struct arena *a, const struct otlp_request *r, json_t *want, bool is_self)
{
	const char *process, *name;
	json_t *names, *n;
	int compared = 0;

	json_object_foreach (want, process, names) {
		int64_t by_nm = 0;

		json_object_foreach (names, name, n) {
			int64_t inclusive, self = self_of(a, r, str_of(process), str_of(name), &inclusive);

			compared++;
			if (strstr(name, "(by nm)")) {
				by_nm += json_integer_value(n);
				continue;
			}
			if ((is_self ? self : inclusive) != json_integer_value(n))
				CHECK_FAIL("%s of %s in %s: %" PRId64 ", want %" JSON_INTEGER_FORMAT,
					is_self ? "self" : "inclusive", name, process, is_self ? self : inclusive,
					json_integer_value(n));
		}
		if (is_self && by_nm)
			CHECK_INT(unnamed_of(r, str_of(process)), by_nm);
	}
	CHECK(compared > 0);
}

static void check_processes(const struct otlp_request *r, json_t *want, int64_t period)
{
	const char *process;
	json_t *n;

	json_object_foreach (want, process, n) {
		int64_t count = 0, cpu = 0;

		for (uint32_t i = 0; i < r->profiles_n; i++) {
			const struct pprof *p = r->profiles[i].pprof;

			if (!str_is(process_of(r, &r->profiles[i]), process))
				continue;
			REQUIRE(p->types_n == 2);
			for (uint32_t k = 0; k < p->samples_n; k++) {
				count += p->values[2 * k];
				cpu += p->values[2 * k + 1];
			}
		}
		CHECK_INT(count, json_integer_value(n));
		CHECK_INT(cpu, json_integer_value(n) * period);
	}
}

static void check_file(const char *name, json_t *want)
{
	struct otlp_request *r;
	uint64_t rows = 0;
	struct arena a;
	struct err err;
	struct str raw;

	arena_init(&a, 0);
	REQUIRE_OK(show_read(&a, arena_printf(&a, DIR "%s", name), &raw, &err), &err);
	CHECK_INT(raw.len, json_integer_value(json_object_get(want, "bytes")));
	REQUIRE_OK(otlp_decode(&a, raw, &show_options, &r, &err), &err);
	check_request(r);
	CHECK_INT(r->rejected_n, 0);
	for (uint32_t i = 0; i < r->profiles_n; i++)
		rows += r->profiles[i].rows;
	CHECK_INT(rows, json_integer_value(json_object_get(want, "rows")));
	check_processes(r, json_object_get(want, "per_process"),
		json_integer_value(json_object_get(want, "period_ns")));
	check_names(&a, r, json_object_get(want, "self"), true);
	check_names(&a, r, json_object_get(want, "inclusive"), false);
	arena_release(&a);
}

TEST(recorded_requests_show_what_is_expected)
{
	json_t *expected = json_load_file("tests/proto/otlp/" DIR "expected.json", 0, NULL);

	REQUIRE(expected);
	for (size_t i = 0; i < RECORDED_N; i++)
		check_file(recorded[i], json_object_get(expected, recorded[i]));
	json_decref(expected);
}

/* async-profiler packs no numbers, and says nothing of the process. */
TEST(what_async_profiler_sent_is_read)
{
	struct otlp_request *r;
	const struct pprof *p;
	int64_t sum = 0;
	struct arena a;
	struct err err;
	struct str raw;

	arena_init(&a, 0);
	REQUIRE_OK(show_read(&a, DIR "async-profiler-4.6.pb", &raw, &err), &err);
	REQUIRE_OK(otlp_decode(&a, raw, &show_options, &r, &err), &err);
	check_request(r);
	CHECK_INT(r->rejected_n, 0);
	REQUIRE(r->profiles_n == 1);
	CHECK_INT(r->resources[0].attributes_n, 0);
	p = r->profiles[0].pprof;
	REQUIRE(p->types_n == 1);
	CHECK_STR(p->strings[p->types[0].type], "itimer");
	CHECK_STR(p->strings[p->types[0].unit], "count");
	CHECK_STR(p->strings[p->period_type.type], "itimer");
	CHECK_STR(p->strings[p->period_type.unit], "ns");
	CHECK_INT(p->period, 10000000);
	CHECK_INT(p->duration_nanos, 10156294000);
	CHECK_INT(p->samples_n, 25);
	for (uint32_t i = 0; i < p->samples_n; i++)
		sum += p->values[i];
	CHECK_INT(sum, 109);
	arena_release(&a);
}

/* Its samples come first, and look like wrong ones of later releases. */
TEST(a_request_of_otlp_1_7_is_refused_by_name)
{
	struct otlp_request *r;
	struct arena a;
	struct err err;
	struct str raw;

	arena_init(&a, 0);
	REQUIRE_OK(show_read(&a, DIR "otlp-1.7.pb", &raw, &err), &err);
	CHECK_ERR(otlp_decode(&a, raw, &show_options, &r, &err), &err, ERR_UNSUPPORTED,
		"profiles of OTLP before 1.8 are not supported, only 1.8 to 1.11: field 3 of a profile is "
		"not its timeUnixNano; update the sender");
	arena_release(&a);
}

TEST(json_is_equal_to_protobuf)
{
	struct buf one = { 0 }, other = { 0 };
	struct otlp_request *r;
	struct str raw, text;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(show_read(&a, DIR "p5-collector-49hz.pb", &raw, &err), &err);
	REQUIRE_OK(show_read(&a, DIR "p5-collector-49hz.json", &text, &err), &err);
	REQUIRE_OK(otlp_decode(&a, raw, &show_options, &r, &err), &err);
	show_request(&a, r, &one);
	REQUIRE_OK(otlp_decode_json(&a, text, &show_options, &r, &err), &err);
	show_request(&a, r, &other);
	CHECK(one.len > 1000);
	CHECK_STR(buf_str(&other), arena_strndup(&a, one.ptr, one.len));
	buf_release(&one);
	buf_release(&other);
	arena_release(&a);
}

static bool keep(void *ctx, struct str *key)
{
	return !str_is(*key, "thread.name") && show_options_drop.label(ctx, key);
}

/* Per thread and processor there are more samples; without, they are merged and add up. */
TEST(dropped_attributes_merge_samples)
{
	const struct otlp_options drop = { &otlp_limits_default, keep, NULL };
	const struct otlp_options *options[] = { &show_options, &drop };
	int64_t total[2] = { 0 };
	uint32_t samples[2] = { 0 }, labels[2] = { 0 };
	struct arena a;
	struct err err;
	struct str raw;

	arena_init(&a, 0);
	REQUIRE_OK(show_read(&a, arena_printf(&a, DIR "%s", recorded[0]), &raw, &err), &err);
	for (int k = 0; k < 2; k++) {
		struct otlp_request *r;

		REQUIRE_OK(otlp_decode(&a, raw, options[k], &r, &err), &err);
		for (uint32_t i = 0; i < r->profiles_n; i++) {
			const struct pprof *p = r->profiles[i].pprof;

			samples[k] += p->samples_n;
			labels[k] += p->labels_n;
			for (uint32_t s = 0; s < p->samples_n; s++)
				total[k] += p->values[2 * s];
		}
	}
	CHECK_INT(total[0], 136);
	CHECK_INT(total[1], 136);
	CHECK_INT(samples[0], 98);
	CHECK(samples[1] < samples[0]);
	CHECK(labels[1] < labels[0] / 3);
	arena_release(&a);
}
