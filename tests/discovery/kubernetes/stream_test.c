#include "discovery/kubernetes/stream.h"

#include "tests/check.h"

#define A "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"resourceVersion\":\"1\"}}"
#define B "{\"metadata\":{\"name\":\"b\"},\"x\":[1,{\"items\":[2]}],\"y\":\"],}\\\"[\"}"
#define META "\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"c\"}"

static enum err_code add_item(void *ctx, const struct kube_item *item, struct err *err)
{
	buf_printf(ctx, "%s ", item->key);
	return ERR_OK;
}

/* The keys, the version and the next page, or the message. */
static void read_list(struct str text, size_t step, struct buf *out)
{
	struct kube_list l = { 0 };
	char version[KUBE_VERSION_BYTES_MAX], *next = NULL;
	enum err_code rc = ERR_OK;
	struct err err;

	buf_clear(out);
	kube_list_init(&l, KUBE_PODS);
	while (text.len && !rc) {
		struct str piece = { text.ptr, text.len < step ? text.len : step };

		text.ptr += piece.len;
		text.len -= piece.len;
		rc = kube_list_feed(&l, piece, add_item, out, &err);
	}
	if (!rc)
		rc = kube_list_end(&l, version, &next, &err);
	if (rc) {
		buf_clear(out);
		buf_printf(out, "%s: %s", err_code_name(rc), err.msg);
	} else {
		buf_printf(out, "@%s %s", version, next ? next : "");
	}
	free(next);
	kube_list_release(&l);
}

TEST(lists)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "{" META ",\"items\":[" A "," B "]}", "n/a b @7 c" },
		{ "{\"items\" : [ " A " , " B "\n] ," META "}", "n/a b @7 c" },
		{ "{" META ",\"items\":[]}", "@7 c" },
		{ "{" META ",\"items\":null}", "@7 c" },
		{ "{\"kind\":\"items\",\"x\":[\"items\"],\"y\":{\"items\":[1]}," META "}", "@7 c" },
		{ "{\"it\\\"ems\":[1],\"i\":[{}]," META "}", "@7 c" },
		{ "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}", "@7 " },
		{ "{\"metadata\":{},\"items\":[" A "]}",
			"invalid input: not a list: it has no resourceVersion" },
		{ "{" META ",\"items\":[{}]}", "invalid input: an object without a valid name" },
		{ "{" META ",\"items\":[3]}", NULL },
		{ "{" META ",\"items\":[{\"metadata\":{\"name\":\"a/b\"}}]}",
			"invalid input: an object without a valid name" },
		{ "{" META ",\"items\":[{\"metadata\":{\"name\":\"a\\u0000b\"}}]}",
			"invalid input: an object without a valid name" },
		{ "{" META ",\"items\":[}]}", NULL },
		{ "{" META ",\"items\":[" A "}", NULL },
		{ "{" META ",\"items\":[" A, NULL },
		{ "{" META, NULL },
		{ "", NULL },
		{ "]", NULL },
		{ "[]", "invalid input: not a list: it has no resourceVersion" },
		{ "<html>", NULL },
	};
	struct buf whole = { 0 }, pieces = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		read_list(str_of(rows[i].text), SIZE_MAX, &whole);
		for (size_t step = 1; step < 6; step++) {
			read_list(str_of(rows[i].text), step, &pieces);
			CHECK(str_eq(buf_str(&whole), buf_str(&pieces)));
		}
		if (rows[i].want)
			CHECK_STR(buf_str(&whole), rows[i].want);
		else
			CHECK(str_has_prefix(buf_str(&whole), STR("invalid input: not JSON: ")));
	}
	buf_release(&whole);
	buf_release(&pieces);
}

TEST(what_is_too_large_is_refused_before_it_is_held)
{
	struct kube_list l = { 0 };
	struct kube_events e = { 0 };
	struct buf out = { 0 }, text = { 0 };
	enum err_code rc = ERR_OK;
	struct err err;

	REQUIRE(buf_reserve(&text, 1u << 20));
	memset(text.ptr, 'x', 1u << 20);
	text.len = 1u << 20;
	kube_list_init(&l, KUBE_PODS);
	rc = kube_list_feed(&l, STR("{\"items\":[\""), add_item, &out, &err);
	for (int i = 0; i < 20 && !rc; i++)
		rc = kube_list_feed(&l, buf_str(&text), add_item, &out, &err);
	CHECK_ERR(rc, &err, ERR_LIMIT, "an object is larger than 8388608 bytes");
	kube_list_init(&l, KUBE_PODS);
	rc = kube_list_feed(&l, STR("{\""), add_item, &out, &err);
	for (int i = 0; i < 20 && !rc; i++)
		rc = kube_list_feed(&l, buf_str(&text), add_item, &out, &err);
	CHECK_ERR(rc, &err, ERR_LIMIT, "an object is larger than 1048576 bytes");
	kube_events_init(&e, KUBE_PODS);
	rc = ERR_OK;
	for (int i = 0; i < 20 && !rc; i++)
		rc = kube_events_feed(&e, buf_str(&text), NULL, NULL, &err);
	CHECK_ERR(rc, &err, ERR_LIMIT, "an event is larger than 8388608 bytes");
	kube_list_release(&l);
	kube_events_release(&e);
	buf_release(&text);
}

static enum err_code add_event(void *ctx, const struct kube_event *e, struct err *err)
{
	buf_printf(ctx, "%d %s " STR_FMT " %d %s\n", e->type, e->item.key, STR_ARG(e->item.version),
		e->code, e->message);
	return ERR_OK;
}

TEST(events)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "{\"type\":\"ADDED\",\"object\":" A "}\r\n\n{\"object\":" A ",\"type\":\"DELETED\"}\n",
			"0 n/a 1 0 \n2 n/a 1 0 \n" },
		{ "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\nrest",
			"3  9 0 \n" },
		{ "{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"m\"}}\n", "4   410 m\n" },
		{ "{\"type\":\"ERROR\"}\n", "4   0 \n" },
		{ "{\"type\":\"LATER\",\"object\":{}}\n", "" },
		{ "{\"object\":{}}\n", "not an event: it has no type" },
		{ "{\"type\":\"ADDED\"}\n", "an object without a valid name" },
		{ "{\"type\":\"ADDED\",\"object\":[1]}\n", "an object without a valid name" },
		{ "{\n", "not JSON: string or '}' expected near end of file" },
	};
	struct kube_events e = { 0 };
	struct buf out = { 0 };
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t step = 1; step < 64; step += 21) {
			struct str text = str_of(rows[i].text);
			enum err_code rc = ERR_OK;

			buf_clear(&out);
			kube_events_init(&e, KUBE_PODS);
			while (text.len && !rc) {
				struct str piece = { text.ptr, text.len < step ? text.len : step };

				text.ptr += piece.len;
				text.len -= piece.len;
				rc = kube_events_feed(&e, piece, add_event, &out, &err);
			}
			CHECK_STR(rc ? str_of(err.msg) : buf_str(&out), rows[i].want);
		}
	kube_events_release(&e);
	buf_release(&out);
}

TEST(what_is_kept_of_objects)
{
#define META_IN \
	"\"metadata\":{\"name\":\"a\",\"labels\":{\"k\":\"v\"},\"managedFields\":[{\"x\":1}]," \
	"\"ownerReferences\":[{\"kind\":\"K\",\"blockOwnerDeletion\":true}]}"
#define META_OUT \
	"\"metadata\":{\"labels\":{\"k\":\"v\"},\"name\":\"a\",\"ownerReferences\":[{\"kind\":\"K\"}]" \
	"}"
	/* clang-format off */
	static const struct {
		enum kube_resource resource;
		const char *text, *want;
	} rows[] = {
		{ KUBE_NAMESPACES, "{\"kind\":\"Namespace\"," META_IN ",\"spec\":{}}", "{" META_OUT "}" },
		{ KUBE_PODS, "{" META_IN ",\"spec\":{\"nodeName\":\"n\",\"volumes\":[1],\"containers\":[{"
			"\"name\":\"c\",\"env\":[],\"ports\":[{\"containerPort\":1,\"hostPort\":2}]}]},"
			"\"status\":{\"podIP\":\"1\",\"podIPs\":[],\"containerStatuses\":[{\"name\":\"c\","
			"\"containerID\":\"i\",\"state\":{}}]}}",
			"{" META_OUT ",\"spec\":{\"containers\":[{\"name\":\"c\",\"ports\":[{"
			"\"containerPort\":1}]}],\"nodeName\":\"n\"},\"status\":{\"containerStatuses\":[{"
			"\"containerID\":\"i\",\"name\":\"c\"}],\"podIP\":\"1\"}}" },
		{ KUBE_NODES, "{" META_IN ",\"spec\":{\"podCIDR\":\"x\",\"providerID\":\"p\"},\"status\":{"
			"\"images\":[],\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":1}}}}",
			"{" META_OUT ",\"spec\":{\"providerID\":\"p\"},\"status\":{\"daemonEndpoints\":{"
			"\"kubeletEndpoint\":{\"Port\":1}}}}" },
		{ KUBE_SERVICES, "{" META_IN ",\"spec\":{\"type\":\"T\",\"selector\":{},\"ipFamilies\":["
			"\"IPv6\"],\"ipFamilyPolicy\":\"P\"},\"status\":{\"conditions\":[],\"loadBalancer\":{"
			"\"ingress\":[{\"ip\":\"1\",\"hostname\":\"h\"}]}}}",
			"{" META_OUT ",\"spec\":{\"ipFamilies\":[\"IPv6\"],\"ipFamilyPolicy\":\"P\","
			"\"type\":\"T\"},\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"1\"}]}}}" },
		{ KUBE_REPLICASETS, "{" META_IN ",\"spec\":{\"template\":{}},\"status\":{}}",
			"{\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{\"kind\":\"K\"}]}}" },
		{ KUBE_ENDPOINTS, "{" META_IN ",\"subsets\":[{\"addresses\":[{\"ip\":\"1\",\"targetRef\":{"
			"\"kind\":\"Pod\",\"uid\":\"u\"}}]}]}",
			"{" META_OUT ",\"subsets\":[{\"addresses\":[{\"ip\":\"1\",\"targetRef\":{"
			"\"kind\":\"Pod\"}}]}]}" },
		{ KUBE_ENDPOINTSLICES, "{" META_IN ",\"addressType\":\"IPv4\",\"endpoints\":[{"
			"\"addresses\":[\"1\"],\"hints\":{}}],\"ports\":[{\"port\":1}]}",
			"{\"addressType\":\"IPv4\",\"endpoints\":[{\"addresses\":[\"1\"]}]," META_OUT
			",\"ports\":[{\"port\":1}]}" },
		{ KUBE_INGRESSES, "{" META_IN ",\"spec\":{\"rules\":[{\"host\":\"h\",\"http\":{\"paths\":[{"
			"\"path\":\"/\",\"backend\":{}}]}}]},\"status\":{}}",
			"{" META_OUT ",\"spec\":{\"rules\":[{\"host\":\"h\",\"http\":{\"paths\":[{"
			"\"path\":\"/\"}]}}]}}" },
		{ KUBE_PODS, "{\"metadata\":7,\"spec\":[],\"status\":\"x\",\"more\":1}",
			"{\"metadata\":7,\"spec\":[],\"status\":\"x\"}" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *v = json_loads(rows[i].text, 0, NULL);
		char *text;

		REQUIRE(v);
		kube_object_trim(rows[i].resource, v);
		text = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS);
		CHECK_STR(str_of(text), rows[i].want);
		free(text);
		json_decref(v);
	}
}
