/* Texts of profefe's API: times, labels, ids. */
#include "base/clock.h"
#include "tests/check.h"
#include "web/profefe/notation.h"

#define T INT64_C(1136214245) /* 2006-01-02T15:04:05Z */

TEST(times_are_those_of_go_s_parser)
{
	static const struct {
		const char *text;
		int64_t want_ns; /* 0: refused */
	} cases[] = {
		{ "2006-01-02T15:04:05", T * NS_PER_S },
		{ "2006-01-02T15:04:05.25", T * NS_PER_S + 250 * NS_PER_MS },
		{ "2006-01-02T15:04:05,000000001", T * NS_PER_S + 1 },
		{ "2006-01-02T5:04:05", (T - 36000) * NS_PER_S }, /* an hour of one digit */
		{ "2006-01-02T15:04:05Z", T * NS_PER_S },
		{ "2006-01-02T17:04:05+02:00", T * NS_PER_S },
		{ "2008-02-29T00:00:00", INT64_C(1204243200) * NS_PER_S },
		{ "9999-12-31T23:59:59", TIME_MAX_NS },
		{ "2116-02-29T00:00:00", TIME_MAX_NS },
		{ "1500-02-28T00:00:00", -TIME_MAX_NS },
		{ "1500-02-29T00:00:00", 0 }, /* no leap year */
		{ "2400-02-29T00:00:00", TIME_MAX_NS },
		{ "", 0 },
		{ "2006-01-02", 0 },
		{ "2006-01-02 15:04:05", 0 },
		{ "2006-1-2T15:04:05", 0 },
		{ "2006-01-02T15:4:05", 0 },
		{ "2006-02-30T15:04:05", 0 },
		{ "2006-01-02T24:00:00", 0 },
		{ "2006-01-02T15:60:00", 0 },
		{ "2006-01-02T15:04:05.", 0 },
		{ "2006-01-02T15:04:05 ", 0 },
		{ "2006-01-02T15:04:05+", 0 },
		{ "0001-01-01T00:00:00", 0 },
		{ "1136214245", 0 },
		{ "now", 0 },
	};
	struct err err;
	int64_t got;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		got = 0;
		if (profefe_time_parse(str_of(cases[i].text), &got, &err))
			CHECK(err.msg[0] != '\0');
		CHECK_INT(got, cases[i].want_ns);
	}
	CHECK_ERR(profefe_time_parse(STR("now"), &got, &err), &err, ERR_INVALID,
		"time in unsupported format \"now\": want 2006-01-02T15:04:05");
}

static void check_printed(int64_t ns, const char *want)
{
	struct buf out = { 0 };

	profefe_time_print(&out, ns);
	CHECK_STR(buf_str(&out), want);
	buf_release(&out);
}

TEST(times_are_printed_in_seconds)
{
	check_printed(T * NS_PER_S, "2006-01-02T15:04:05Z");
	check_printed(T * NS_PER_S + 999999999, "2006-01-02T15:04:05Z");
	check_printed(-1, "1969-12-31T23:59:59Z");
	check_printed(-NS_PER_S, "1969-12-31T23:59:59Z");
}

static void check_labels(const char *text, const char *want)
{
	struct buf got = { 0 };
	struct label *v;
	struct arena a;
	struct err err;
	size_t n;

	arena_init(&a, 1u << 20);
	if (profefe_labels_parse(&a, str_of(text), &v, &n, &err))
		buf_add_cstr(&got, err.msg);
	else
		for (size_t i = 0; i < n; i++)
			buf_printf(&got, "[" STR_FMT "|" STR_FMT "]", STR_ARG(v[i].name), STR_ARG(v[i].value));
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
	arena_release(&a);
}

TEST(labels_are_key_value_pairs)
{
	char many[1024] = "";

	check_labels("", "");
	check_labels("b=2,a=1", "[b|2][a|1]");
	check_labels(",namespace=web,from=kube-profefe", "[namespace|web][from|kube-profefe]");
	check_labels("a=", "[a|]");
	check_labels("a", "[a|]");
	check_labels("=1,,b=x", "[b|x]");
	check_labels("a=b=c", "[a|b=c]");
	check_labels(" a = b c ", "[a|b c]");
	check_labels("a=1%2C2,b+c=%3d%E2%82%AC+x", "[a|1,2][b c|=\xe2\x82\xac x]");
	check_labels("a=%", "invalid URL escape \"%\"");
	check_labels("a=1,b=%zz9", "invalid URL escape \"%zz\"");
	check_labels("%4=1", "invalid URL escape \"%4\"");
	for (unsigned i = 0; i <= PROFEFE_LABELS_MAX; i++)
		memcpy(many + 4 * i, "a=1,", sizeof("a=1,"));
	check_labels(many, "more than 64 labels");
}

TEST(types_are_ours)
{
	CHECK_STR(str_of(profefe_profile_of(STR("cpu"))), "process_cpu");
	CHECK_STR(str_of(profefe_profile_of(STR("heap"))), "memory");
	CHECK_STR(str_of(profefe_profile_of(STR("other"))), "other");
	CHECK(!profefe_profile_of(STR("trace")));
	CHECK(!profefe_profile_of(STR("unknown")));
	CHECK(!profefe_profile_of(STR("")));
	CHECK_STR(str_of(profefe_type_of(STR("memory"))), "heap");
	CHECK_STR(str_of(profefe_type_of(STR("fgprof"))), "other");
	for (size_t i = 0; i < profefe_types_n; i++)
		CHECK_STR(str_of(profefe_type_of(str_of(profefe_types[i].profile))), profefe_types[i].name);
}

static struct labels labels_of(struct arena *a, const char *service)
{
	struct labels_builder b;
	struct labels labels;
	struct err err;

	labels_builder_init(&b, a, (struct labels){ 0 });
	labels_builder_set(&b, STR(LABEL_NAME), STR("memory"));
	labels_builder_set(&b, STR("job"), str_of(service));
	if (labels_builder_build(&b, &labels, &err))
		exit(1);
	return labels;
}

TEST(an_id_reads_back)
{
	static const char *const services[] = { "api", "a+b/c d", "\xff\xfe\xfd", "" };
	static const int64_t times[] = { 0, T * NS_PER_S + 7, -1, TIME_MAX_NS };
	struct profefe_id id, *v;
	struct buf text = { 0 };
	struct arena a;
	struct err err;
	size_t n;

	arena_init(&a, 1u << 20);
	for (size_t i = 0; i < 4; i++) {
		id = profefe_id_of(labels_of(&a, services[i]), times[i]);
		buf_clear(&text);
		profefe_id_print(&text, &id);
		buf_add_char(&text, '+');
		profefe_id_print(&text, &id);
		REQUIRE_OK(profefe_ids_parse(&a, buf_str(&text), &v, &n, &err), &err);
		CHECK_INT(n, 2);
		for (size_t k = 0; k < n; k++) {
			CHECK_INT(v[k].ts_ns, times[i]);
			CHECK(v[k].series == labels_hash(labels_of(&a, services[i])));
			CHECK_STR(v[k].service, services[i]);
		}
		for (size_t k = 0; k < text.len; k++)
			CHECK(text.ptr[k] == '+' || text.ptr[k] == '-' || text.ptr[k] == '_' ||
				(text.ptr[k] >= '0' && text.ptr[k] <= '9') ||
				((text.ptr[k] | 32) >= 'a' && (text.ptr[k] | 32) <= 'z'));
	}
	/* Clients keep ids: they are the same for ever. */
	id = profefe_id_of(labels_of(&a, "api"), T * NS_PER_S + 7);
	buf_clear(&text);
	profefe_id_print(&text, &id);
	CHECK_STR(buf_str(&text), "D8Sk1f32sgdZ36LgR6qGY2FwaQ");
	buf_release(&text);
	arena_release(&a);
}

TEST(ids_that_are_none_are_refused)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "", "no profile id" },
		{ "+", "empty profile id" },
		{ "D8SlBUlOggfOxEOa9cn5y2FwaQ+", "empty profile id" },
		{ "abc", "bad profile id \"abc\"" },
		{ "D8SlBUlOggfOxEOa9cn5", "bad profile id \"D8SlBUlOggfOxEOa9cn5\"" },
		{ "../../etc/passwd", "bad profile id \"../../etc/passwd\"" },
		{ "f_________________________",
			"bad profile id \"f_________________________\": its time is out of range" },
	};
	struct profefe_id *v;
	struct arena a;
	struct err err;
	char *many;
	size_t n;

	arena_init(&a, 1u << 20);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_ERR(profefe_ids_parse(&a, str_of(cases[i].text), &v, &n, &err), &err, ERR_INVALID,
			cases[i].want);
	many = arena_alloc(&a, 6000);
	memset(many, 'A', 6000);
	CHECK_ERR(profefe_ids_parse(&a, (struct str){ many, 6000 }, &v, &n, &err), &err, ERR_INVALID,
		"bad profile id of 6000 bytes");
	memset(many, '+', 256);
	CHECK_ERR(profefe_ids_parse(&a, (struct str){ many, 256 }, &v, &n, &err), &err, ERR_LIMIT,
		"257 profile ids, limit 256");
	arena_release(&a);
}
