/* Limits: each is named by its error; those of one profile leave the others. Damaged JSON. */
#include "tests/check.h"
#include "tests/proto/otlp/show.h"

static const char text[] =
	"{'resourceProfiles':[{'resource':{'attributes':[{'key':'a'},{'key':'l','value':{'arrayValue':"
	"{'values':[{'stringValue':'12345678'},{'bytesValue':'AAAA'},{'kvlistValue':{'values':["
	"{'key':'k','value':{'intValue':1}}]}}]}}}]},'scopeProfiles':[{'profiles':["
	"{'sampleType':{'typeStrindex':1},'samples':[{'stackIndex':1,'attributeIndices':[1,2],"
	"'values':[1]},{'stackIndex':2,'linkIndex':1,'values':['2'],'timestampsUnixNano':['7']}]},"
	"{'sampleType':{'typeStrindex':1},'samples':[{'stackIndex':1,'values':[1]}]}]},{}]},{}],"
	"'dictionary':{'stringTable':['','s','k\\u0041'],'locationTable':[{},{'address':'1','lines':"
	"[{'line':1},{'line':2}]},{'address':2}],'stackTable':[{},{'locationIndices':[1]},"
	"{'locationIndices':[1,2,1]}],'linkTable':[{},{'spanId':'0011223344556677'}],'attributeTable':"
	"[{},{'keyStrindex':1,'value':{'stringValue':'v'}},{'keyStrindex':2,'value':{'intValue':'1'}}],"
	"'functionTable':[{}],'mappingTable':[{}]}}";

static struct str request(struct arena *a)
{
	char *s = arena_strndup(a, text, sizeof(text) - 1);

	for (char *at = s; *at; at++)
		*at = *at == '\'' ? '"' : *at;
	return str_of(s);
}

static const struct {
	size_t offset; /* of the limit */
	uint32_t limit;
	const char *want;
	uint32_t profiles_n; /* where only a profile is left out */
} cases[] = {
	{ offsetof(struct otlp_limits, profiles_max), 1, "request has more than 1 profiles, the limit",
		0 },
	{ offsetof(struct otlp_limits, profiles_max), 0, "request has more than 0 resources, the limit",
		0 },
	{ offsetof(struct otlp_limits, samples_max), 2, "request has more than 2 samples, the limit",
		0 },
	{ offsetof(struct otlp_limits, elements_max), 2, "request has more than 2 strings, the limit",
		0 },
	{ offsetof(struct otlp_limits, elements_max), 1, "request has more than 1 strings, the limit",
		0 },
	{ offsetof(struct otlp_limits, frames_max), 7,
		"request has more than 7 frames and lines in its profiles, the limit", 0 },
	{ offsetof(struct otlp_limits, attributes_max), 1,
		"resourceProfiles[0].scopeProfiles[0].profiles[0]: resource.attributes[1]: more than 1 "
		"attributes, the limit",
		0 },
	{ offsetof(struct otlp_limits, text_bytes_max), 26,
		"resourceProfiles[0].scopeProfiles[0].profiles[0]: resource.attributes[1]: an array or a "
		"map is longer than 26 bytes as text",
		0 },
};

TEST(limits_are_named)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct otlp_limits limits = otlp_limits_default;
		const struct otlp_options options = { .limits = &limits };
		struct otlp_request *r;
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		memcpy((char *)&limits + cases[i].offset, &cases[i].limit, sizeof(cases[i].limit));
		if (str_has_prefix(str_of(cases[i].want), STR("request"))) {
			CHECK_ERR(otlp_decode_json(&a, request(&a), &options, &r, &err), &err, ERR_LIMIT,
				cases[i].want);
		} else {
			REQUIRE_OK(otlp_decode_json(&a, request(&a), &options, &r, &err), &err);
			CHECK_STR(str_of(r->rejected.msg), cases[i].want);
			CHECK_INT(r->rejected.code, ERR_LIMIT);
			CHECK_INT(r->profiles_n, cases[i].profiles_n);
			CHECK_INT(r->rejected_n, 2 - cases[i].profiles_n);
		}
		arena_release(&a);
	}
}

TEST(deep_stacks_lose_their_root)
{
	struct otlp_limits limits = otlp_limits_default;
	const struct otlp_options options = { .limits = &limits };
	struct otlp_request *r;
	uint32_t cut = 0;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	limits.stack_depth_max = 2;
	REQUIRE_OK(otlp_decode_json(&a, request(&a), &options, &r, &err), &err);
	CHECK_INT(r->profiles_n, 2);
	CHECK_INT(r->rejected_n, 0);
	for (uint32_t i = 0; i < r->profiles_n; i++) {
		const struct pprof *p = r->profiles[i].pprof;

		cut += p->stacks_cut;
		for (uint32_t k = 0; k < p->samples_n; k++)
			CHECK(p->samples[k].location_n <= 2);
	}
	CHECK(cut > 0);
	arena_release(&a);
}

/* What just fits is accepted: the limits are not one too low. */
TEST(requests_at_their_limits_are_accepted)
{
	const struct otlp_limits limits = {
		.raw_bytes_max = sizeof(text) - 1,
		.profiles_max = 2,
		.samples_max = 3,
		.elements_max = 3,
		.frames_max = 9,
		.stack_depth_max = 3,
		.attributes_max = 2,
		.text_bytes_max = 27,
	};
	const struct otlp_options options = { .limits = &limits };
	struct otlp_request *r;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(otlp_decode_json(&a, request(&a), &options, &r, &err), &err);
	CHECK_INT(r->profiles_n, 2);
	CHECK_INT(r->rejected_n, 0);
	arena_release(&a);
}

TEST(sizes_are_limited)
{
	struct otlp_limits limits = otlp_limits_default;
	const struct otlp_options options = { .limits = &limits };
	struct otlp_request *r;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	limits.raw_bytes_max = 3;
	CHECK_ERR(otlp_decode(&a, STR("abcd"), &options, &r, &err), &err, ERR_LIMIT,
		"request is 4 bytes inflated, limit 3");
	CHECK_ERR(otlp_decode_json(&a, STR("{  }"), &options, &r, &err), &err, ERR_LIMIT,
		"request is 4 bytes inflated, limit 3");
	arena_release(&a);
}

/* A budget that is too small at any point ends the request, and nothing else. */
TEST(an_arena_that_is_full_ends_the_request)
{
	uint32_t refused = 0, accepted = 0;

	for (size_t bytes = 1; bytes < 64u << 10; bytes += 256) {
		struct otlp_request *r;
		struct arena a, texts;
		struct err err;
		enum err_code rc;

		arena_init(&texts, 0);
		arena_init(&a, bytes);
		rc = otlp_decode_json(&a, request(&texts), &show_options, &r, &err);
		if (rc)
			CHECK_INT(rc, ERR_LIMIT);
		refused += rc != ERR_OK;
		accepted += !rc;
		arena_release(&a);
		arena_release(&texts);
	}
	CHECK(refused > 0 && accepted > 0);
}

/* Values nested in each other, and unknown ones. */
TEST(nesting_is_limited)
{
	static const struct {
		const char *begin, *middle, *end;
		int n;
		const char *want;
	} nested[] = {
		{ "{'x':", "[", "", 100,
			"request is not OTLP JSON: byte 69: expected at most 64 levels of nesting" },
		{ "{'x':", "{'y':", "", 100000,
			"request is not OTLP JSON: byte 325: expected at most 64 levels of nesting" },
		{ "{'resourceProfiles':[{'resource':{'attributes':[{'value':", "{'arrayValue':{'values':[",
			"", 100000,
			"request is not OTLP JSON: byte 821, arrayValue: expected at most 64 levels of "
			"nesting" },
		{ "{'resourceProfiles':[{'scopeProfiles':[{'profiles':[{}]}],'resource':{'attributes':["
		  "{'value':",
			"{'arrayValue':{'values':[", "]}}", 17, NULL },
	};

	for (size_t i = 0; i < sizeof(nested) / sizeof(nested[0]); i++) {
		struct otlp_request *r;
		struct buf b = { 0 };
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		buf_add_cstr(&b, nested[i].begin);
		for (int k = 0; k < nested[i].n; k++)
			buf_add_cstr(&b, nested[i].middle);
		if (!nested[i].want)
			buf_add_cstr(&b, "{}");
		for (int k = 0; k < nested[i].n; k++)
			buf_add_cstr(&b, nested[i].end);
		if (!nested[i].want)
			buf_add_cstr(&b, "}]}}]}");
		for (size_t k = 0; k < b.len; k++)
			b.ptr[k] = b.ptr[k] == '\'' ? '"' : b.ptr[k];
		if (nested[i].want) {
			CHECK_ERR(otlp_decode_json(&a, buf_str(&b), &show_options, &r, &err), &err, ERR_INVALID,
				nested[i].want);
		} else {
			REQUIRE_OK(otlp_decode_json(&a, buf_str(&b), &show_options, &r, &err), &err);
			CHECK_STR(str_of(r->rejected.msg),
				"resourceProfiles[0].scopeProfiles[0].profiles[0]: resource.attributes[0]: arrays "
				"and maps are nested more than 16 deep");
		}
		buf_release(&b);
		arena_release(&a);
	}
}

/* Few bytes that make much work: a long stack in each of many samples, with a label of its own. */
TEST(long_stacks_in_many_samples_end_at_a_limit)
{
	struct otlp_limits limits = otlp_limits_default;
	const struct otlp_options options = { .limits = &limits };
	struct otlp_request *r;
	struct buf b = { 0 };
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	limits.frames_max = 100000;
	buf_add_cstr(&b,
		"{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"sampleType\":"
		"{\"typeStrindex\":1},\"samples\":[");
	for (int i = 0; i < 1000; i++)
		buf_printf(&b, "%s{\"stackIndex\":1,\"attributeIndices\":[%d],\"values\":[1]}",
			i ? "," : "", i + 1);
	buf_add_cstr(&b,
		"]}]}]}],\"dictionary\":{\"stringTable\":[\"\",\"s\"],\"locationTable\":[{}],"
		"\"attributeTable\":[{}");
	for (int i = 0; i < 1000; i++)
		buf_printf(&b, ",{\"keyStrindex\":1,\"value\":{\"intValue\":%d}}", i);
	buf_add_cstr(&b, "],\"stackTable\":[{},{\"locationIndices\":[0");
	for (int i = 1; i < 1000; i++)
		buf_add_cstr(&b, ",0");
	buf_add_cstr(&b, "]}]}}");
	CHECK_ERR(otlp_decode_json(&a, buf_str(&b), &options, &r, &err), &err, ERR_LIMIT,
		"request has more than 100000 frames and lines in its profiles, the limit");
	limits.frames_max = 1000000;
	REQUIRE_OK(otlp_decode_json(&a, buf_str(&b), &options, &r, &err), &err);
	REQUIRE(r->profiles_n == 1);
	CHECK_INT(r->profiles[0].pprof->samples_n, 1000);
	CHECK_INT(r->profiles[0].pprof->location_ids_n, 1000000);
	CHECK_INT(r->profiles[0].pprof->locations_n, 1);
	buf_release(&b);
	arena_release(&a);
}

/* In memory of its exact size, so that the address sanitizer sees each read beyond. */
static enum err_code decode_copy(struct arena *a, const char *bytes, size_t n)
{
	char *copy = malloc(n + !n);
	struct otlp_request *r;
	enum err_code rc;
	struct err err;

	memcpy(copy, bytes, n);
	rc = otlp_decode_json(a, (struct str){ copy, n }, &show_options, &r, &err);
	if (rc)
		CHECK(err.msg[0]);
	else
		check_request(r);
	free(copy);
	arena_reset(a);
	return rc;
}

TEST(half_of_json_gives_nothing)
{
	struct arena a, scratch;
	struct str whole;

	arena_init(&a, 0);
	arena_init(&scratch, 0);
	whole = request(&a);
	for (size_t n = 0; n < whole.len; n++)
		CHECK_INT(decode_copy(&scratch, whole.ptr, n), ERR_INVALID);
	CHECK_INT(decode_copy(&scratch, whole.ptr, whole.len), ERR_OK);
	arena_release(&scratch);
	arena_release(&a);
}

TEST(damaged_json_does_no_harm)
{
	static const char signs[] = "{}[]\",:\\0-x\xff";
	size_t refused = 0, n = 0;
	struct arena a, scratch;
	struct str whole;
	char *bytes;

	arena_init(&a, 0);
	arena_init(&scratch, 0);
	whole = request(&a);
	bytes = arena_strndup(&a, whole.ptr, whole.len);
	for (size_t i = 0; i < whole.len; i++)
		for (size_t k = 0; k < sizeof(signs); k++, n++) {
			bytes[i] = signs[k];
			refused += decode_copy(&scratch, bytes, whole.len) != ERR_OK;
			bytes[i] = whole.ptr[i];
		}
	CHECK(refused > n / 3 && refused < n);
	arena_release(&scratch);
	arena_release(&a);
}
