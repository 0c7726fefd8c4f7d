/* Answers: XML as JSON, paths, limits. */
#include "discovery/apis/api_internal.h"
#include "tests/check.h"

TEST(xml_as_json)
{
	static const struct {
		const char *xml, *want;
	} rows[] = {
		{ "<a/>", "\"\"" },
		{ "<a> x &amp; y </a>", "\" x & y \"" },
		{ "<a><b>1</b><c/></a>", "{\"b\":\"1\",\"c\":\"\"}" },
		{ "<a><b>1</b><b>2</b></a>", "{\"b\":\"1\"}" },
		{ "<a><item>1</item><item><k>v</k></item></a>", "[\"1\",{\"k\":\"v\"}]" },
		{ "<a><member><item>1</item></member></a>", "[[\"1\"]]" },
		{ "<a><item>1</item><b>2</b></a>", "{\"item\":\"1\",\"b\":\"2\"}" },
		{ "<n:a xmlns:n=\"u\"><n:b>1</n:b></n:a>", "{\"b\":\"1\"}" },
		{ "<a>&#1;</a>", "\"\\u0001\"" },
	};
	struct err err;
	char *text;
	json_t *v;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		REQUIRE_OK(api_xml_parse(str_of(rows[i].xml), &v, &err), &err);
		text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
		CHECK_STR(str_of(text), rows[i].want);
		free(text);
		json_decref(v);
	}
}

TEST(paths)
{
	static const char text[] = "{\"a\": {\"b\": [10, {\"c\": true}], \"\": 1}, \"d\": null}";
	static const struct {
		const char *path, *want; /* NULL: it is not there */
	} rows[] = {
		{ "", text },
		{ "a.b.0", "10" },
		{ "a.b.1.c", "true" },
		{ "a.b.2", NULL },
		{ "a.b.-1", NULL },
		{ "a.b.x", NULL },
		{ "a.x.y", NULL },
		{ "d", "null" },
		{ "d.e", NULL },
		{ "a.b.0|other", "10" },
	};
	json_t *v = json_loads(text, 0, NULL), *want;
	const json_t *got;

	REQUIRE(v);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		got = json_path_at(v, rows[i].path);
		want = rows[i].want ? json_loads(rows[i].want, JSON_DECODE_ANY, NULL) : NULL;
		if (want ? !json_equal(got, want) : got != NULL)
			CHECK_FAIL("%s is not %s", rows[i].path, rows[i].want ? rows[i].want : "absent");
		json_decref(want);
	}
	json_decref(v);
}

TEST(addresses)
{
	struct arena a;

	arena_init(&a, 0);
	CHECK_STR(api_address(&a, STR("10.0.0.1"), STR("80")), "10.0.0.1:80");
	CHECK_STR(api_address(&a, STR("fd00::1"), STR("80")), "[fd00::1]:80");
	CHECK_STR(api_address(&a, STR(""), STR("80")), ":80");
	arena_release(&a);
}

static void repeat(struct buf *out, const char *head, const char *item, size_t n, const char *tail)
{
	buf_clear(out);
	buf_add_cstr(out, head);
	for (size_t i = 0; i < n; i++)
		buf_add_cstr(out, item);
	buf_add_cstr(out, tail);
}

TEST(values_are_counted_before_they_take_memory)
{
	struct buf text = { 0 };
	struct err err;
	json_t *v;

	repeat(&text, "[0", ",1", 100, "]");
	REQUIRE_OK(api_json_parse(buf_str(&text), &v, &err), &err);
	CHECK_INT(json_array_size(v), 101);
	json_decref(v);
	repeat(&text, "[0", ",{}", API_VALUES_MAX / 2, "]");
	CHECK_ERR(api_json_parse(buf_str(&text), &v, &err), &err, ERR_LIMIT,
		"the answer has 1048578 values, limit 1048576");
	/* what stands in strings does not count */
	repeat(&text, "[\"\\\"", "[,{", API_VALUES_MAX, "\", \"\\\\\", 1]");
	REQUIRE_OK(api_json_parse(buf_str(&text), &v, &err), &err);
	CHECK_INT(json_array_size(v), 3);
	json_decref(v);
	repeat(&text, "<a>", "<b/>", API_VALUES_MAX, "</a>");
	CHECK_ERR(api_xml_parse(buf_str(&text), &v, &err), &err, ERR_LIMIT,
		"XML: more than 1048576 elements");
	buf_release(&text);
}

TEST(keys_are_limited)
{
	struct arena a;
	struct api_keys keys = { .arena = &a };

	arena_init(&a, 0);
	for (size_t i = 0; i < API_KEYS_MAX; i++)
		api_key_add(&keys, STR("k"));
	CHECK(!keys.failed);
	api_key_add(&keys, STR(""));
	CHECK(keys.failed);
	CHECK_INT(keys.n, API_KEYS_MAX);
	arena_release(&a);
}
