#include "discovery/kubernetes/values.h"

#include "tests/check.h"

static json_t *load(const char *text)
{
	return json_loads(text, JSON_DECODE_ANY, NULL);
}

TEST(equal_values_are_one)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {
		{ "{\"a\":\"1\",\"b\":[1,{}]}", "{\"b\":[1,{}],\"a\":\"1\"}", true },
		{ "{\"a\":\"b\",\"b\":\"a\"}", "{\"a\":\"a\",\"b\":\"b\"}", false },
		{ "[1,2]", "[2,1]", false },
		{ "\"x\"", "\"x\"", true },
		{ "\"x\"", "[\"x\"]", false },
		{ "[true,null,1.5]", "[true,null,1.5]", true },
		{ "[1.5]", "[2.5]", false },
		{ "{}", "[]", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kube_values t;
		json_t *a, *b;

		kube_values_init(&t);
		a = kube_values_share(&t, load(rows[i].a));
		b = kube_values_share(&t, load(rows[i].b));
		CHECK((a == b) == rows[i].same);
		CHECK_INT(t.n, rows[i].same ? 1 : 2);
		json_decref(a);
		json_decref(b);
		kube_values_release(&t);
	}
}

TEST(what_nobody_uses_goes)
{
	struct kube_values t;
	json_t *kept;

	kube_values_init(&t);
	kept = kube_values_share(&t, load("\"kept\""));
	for (int i = 0; i < 100000; i++)
		json_decref(kube_values_share(&t, json_pack("{s:i}", "a", i)));
	CHECK(t.n <= 2048);
	json_decref(kept);
	CHECK(kube_values_share(&t, load("\"kept\"")) == kept);
	json_decref(kept);
	kube_values_release(&t);
}

/* Pods of one deployment share labels and containers, but not names and addresses. */
TEST(objects_share_what_they_have_in_common)
{
#define POD(name, ip) \
	"{\"metadata\":{\"name\":\"" name "\",\"labels\":{\"app\":\"x\"}},\"spec\":{\"nodeName\":" \
	"\"n\",\"containers\":[{\"name\":\"c\"}]},\"status\":{\"podIP\":\"" ip "\"}}"
	json_t *a = load(POD("a", "1")), *b = load(POD("b", "2")), *want = json_deep_copy(b);
	struct kube_values t;

	kube_values_init(&t);
	kube_object_share(&t, KUBE_PODS, a);
	kube_object_share(&t, KUBE_PODS, b);
	CHECK(json_object_get(json_object_get(a, "metadata"), "labels") ==
		json_object_get(json_object_get(b, "metadata"), "labels"));
	CHECK(json_object_get(json_object_get(a, "spec"), "containers") ==
		json_object_get(json_object_get(b, "spec"), "containers"));
	CHECK_INT(t.n, 3);
	CHECK(json_equal(b, want));
	json_decref(a);
	json_decref(b);
	json_decref(want);
	kube_values_release(&t);
}
