/* Parameters of /ingest, as SDKs send them, and what is refused. */
#include "proto/folded/ingest.h"

#include "tests/check.h"

static const struct {
	const char *name, *want; /* "app {labels}" or the error */
} names[] = {
	{ "app", "app {}" },
	{ " my.app/v-1.cpu ", "my.app/v-1.cpu {}" },
	{ "app{}", "app {}" },
	{ "app{ }", "app {}" },
	{ "app{b=2,a=1}", "app {a=\"1\", b=\"2\"}" },
	{ "app{a = 1 ,b=x=y,}", "app {a=\"1\", b=\"x=y\"}" },
	{ "app{a=1,a=2}", "app {a=\"2\"}" },
	{ "app{a=,b=2}", "app {b=\"2\"}" },
	{ "np{otel.scope.name=com.grafana.pyroscope/go,process.runtime.name=go,__session_id__=f0}",
		"np {__session_id__=\"f0\", otel.scope.name=\"com.grafana.pyroscope/go\", "
		"process.runtime.name=\"go\"}" },
	{ "app{region=gr\xc3\xbc\xc3\x9f {x}", "app {region=\"gr\xc3\xbc\xc3\x9f {x\"}" },
	{ "", "invalid input: name is empty" },
	{ "{a=1}", "invalid input: name is empty" },
	{ "a b{}", "invalid input: name: bad application name" },
	{ "app{a=1", "invalid input: name: label[0]: expected \"label=value\" and '}'" },
	{ "app{", "invalid input: name: label[0]: expected \"label=value\" and '}'" },
	{ "app{a", "invalid input: name: label[0]: expected \"label=value\" and '}'" },
	{ "app{a}", "invalid input: name: label[0]: expected \"label=value\" and '}'" },
	{ "app{a=1,b c=2}", "invalid input: name: label[1]: bad label name" },
	{ "app{=1}", "invalid input: name: label[0]: bad label name" },
	{ "app{a=\xff}", "invalid input: name: label[0]: the value is not UTF-8" },
	{ "app{a=1}x", "invalid input: name: 1 bytes after '}'" },
};

static const struct {
	const char *text;
	int64_t ns; /* -1: refused */
} times[] = {
	{ "1700000000", 1700000000000000000 },
	{ "1700000000123", 1700000000123000000 },
	{ "1700000000123456", 1700000000123456000 },
	{ "1700000000123456789", 1700000000123456789 },
	{ "0", 0 },
	{ "999999999", 999999999000000000 },
	{ "", -1 },
	{ "9999999999", -1 },
	{ "17000000001", -1 },
	{ "now-10s", -1 },
	{ "-170000000", -1 },
	{ "9999999999999999999", -1 },
	{ "1700000000.123", -1 },
	{ "17000000001234567891", -1 },
};

static const struct {
	const char *json, *want;
} sample_types[] = {
	{ "{\"cpu\":{\"units\":\"samples\",\"display-name\":\"cpu_x\",\"sampled\":true},"
	  "\"inuse_space\":{\"units\":\"bytes\",\"aggregation\":\"average\",\"cumulative\":false,"
	  "\"new\":[1,{}]}}",
		"cpu samples  cpu_x sampled; inuse_space bytes average ; " },
	{ " { } ", "" },
	{ "{\"a\":{\"units\":null,\"sampled\":null}}", "a   ; " },
	{ "{\"a\":{\"cumulative\":true}}", "a    cumulative; " },
	{ "", "invalid input: sample_type_config: JSON ends at byte 0: expected a value" },
	{ "null", "invalid input: sample_type_config: byte 0: expected an object" },
	{ "{\"a\":1}", "invalid input: sample_type_config: byte 5: expected an object" },
	{ "{\"a\":{\"sampled\":1}}",
		"invalid input: sample_type_config: byte 16: expected true or false" },
	{ "{\"a\":{\"units\":1}}", "invalid input: sample_type_config: byte 14: expected a string" },
	{ "{\"a\":{}",
		"invalid input: sample_type_config: JSON ends at byte 7: expected the end of what begins "
		"before" },
	{ "{\"a\":{}}x", "invalid input: sample_type_config: byte 8: expected the end" },
	{ "{\"a\":{]}", "invalid input: sample_type_config: byte 6: expected '}'" },
	{ "{\"a\":{},}", "invalid input: sample_type_config: byte 8: expected a name" },
	{ "{\"a\":\"b}", "invalid input: sample_type_config: byte 5: expected a string that ends" },
};

TEST(names_with_labels)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct ingest_name n = { 0 };
		struct buf out = { 0 };
		struct err err = { 0 };
		struct arena a;

		arena_init(&a, 0);
		if (ingest_name_parse(&a, str_of(names[i].name), &n, &err)) {
			CHECK(!n.app.ptr);
			buf_printf(&out, "%s: %s", err_code_name(err.code), err.msg);
		} else {
			buf_printf(&out, STR_FMT " {", STR_ARG(n.app));
			for (size_t k = 0; k < n.labels.n; k++)
				buf_printf(&out, "%s" STR_FMT "=\"" STR_FMT "\"", k ? ", " : "",
					STR_ARG(n.labels.v[k].name), STR_ARG(n.labels.v[k].value));
			buf_add_char(&out, '}');
		}
		CHECK_STR(buf_str(&out), names[i].want);
		buf_release(&out);
		arena_release(&a);
	}
}

TEST(name_limits)
{
	struct buf b = { 0 };
	struct ingest_name n;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	buf_add_cstr(&b, "app{");
	for (int i = 0; i < 129; i++)
		buf_printf(&b, "l%d=1,", i);
	buf_add_char(&b, '}');
	CHECK_ERR(ingest_name_parse(&a, buf_str(&b), &n, &err), &err, ERR_LIMIT,
		"name: more than 128 labels, the limit");
	while (b.len < 16385)
		buf_add_char(&b, 'x');
	CHECK_ERR(ingest_name_parse(&a, buf_str(&b), &n, &err), &err, ERR_LIMIT,
		"name is 16385 bytes, limit 16384");
	buf_release(&b);
	arena_release(&a);
}

static const struct {
	const char *name;
	uint32_t rate;
	const char *want; /* app, profile, type/unit, scale, period */
} kinds[] = {
	{ "app", 100, "app process_cpu cpu/nanoseconds x10000000 cpu/nanoseconds/10000000" },
	{ "my.app.cpu", 0, "my.app process_cpu samples/count x1 //0" },
	{ "app.itimer", 99, "app process_cpu cpu/nanoseconds x10101010 cpu/nanoseconds/10101010" },
	{ "app.wall", 100, "app wall wall/nanoseconds x10000000 cpu/nanoseconds/10000000" },
	{ "app.alloc_space", 100, "app memory alloc_space/bytes x1 //0" },
	{ "app.mutex_duration", 100, "app mutex delay/nanoseconds x1 //0" },
	{ "app.cpu", 2000000000, "app process_cpu samples/count x1 //0" },
	{ "my.app", 100,
		"unknown my.app process_cpu cpu/nanoseconds x10000000 "
		"cpu/nanoseconds/10000000" },
	{ "app.", 0, "unknown app. process_cpu samples/count x1 //0" },
};

TEST(what_a_name_says_of_its_values)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct str app = str_of(kinds[i].name);
		struct folded_meaning m;
		struct ingest_kind kind;
		struct buf out = { 0 };
		bool known = ingest_kind_of(&app, &kind);

		ingest_meaning(&kind, kinds[i].rate, &m);
		buf_printf(&out, "%s" STR_FMT " " STR_FMT " " STR_FMT "/" STR_FMT " x%" PRId64,
			known ? "" : "unknown ", STR_ARG(app), STR_ARG(kind.profile), STR_ARG(m.type),
			STR_ARG(m.unit), m.scale);
		buf_printf(&out, " " STR_FMT "/" STR_FMT "/%" PRId64, STR_ARG(m.period_type),
			STR_ARG(m.period_unit), m.period);
		CHECK_STR(buf_str(&out), kinds[i].want);
		buf_release(&out);
	}
}

TEST(times_by_their_digits)
{
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct err err = { 0 };
		int64_t ns = -1;
		enum err_code rc = ingest_time_parse(str_of(times[i].text), &ns, &err);

		CHECK_INT(rc, times[i].ns < 0 ? ERR_INVALID : ERR_OK);
		CHECK_INT(ns, times[i].ns);
		CHECK(!rc || strstr(err.msg, times[i].text));
	}
}

TEST(how_sample_types_are_wanted)
{
	for (size_t i = 0; i < sizeof(sample_types) / sizeof(sample_types[0]); i++) {
		struct ingest_sample_type *v = NULL;
		struct buf out = { 0 };
		struct err err = { 0 };
		struct arena a;
		uint32_t n = 0;

		arena_init(&a, 0);
		if (ingest_sample_types_parse(&a, str_of(sample_types[i].json), &v, &n, &err))
			buf_printf(&out, "%s: %s", err_code_name(err.code), err.msg);
		for (uint32_t k = 0; k < n; k++)
			buf_printf(&out, STR_FMT " " STR_FMT " " STR_FMT " " STR_FMT "%s%s; ",
				STR_ARG(v[k].type), STR_ARG(v[k].units), STR_ARG(v[k].aggregation),
				STR_ARG(v[k].display_name), v[k].cumulative ? " cumulative" : "",
				v[k].sampled ? " sampled" : "");
		CHECK_STR(buf_str(&out), sample_types[i].want);
		buf_release(&out);
		arena_release(&a);
	}
}
