#include "discovery/kubernetes/sd.h"
#include "discovery/kubernetes/sd_config.h"
#include "tests/check.h"

static enum err_code decode(
	struct arena *a, const char *text, struct source_configs *out, struct err *err)
{
	struct yaml_ctx ctx = { .arena = a, .dir = STR("/etc/epi") };
	struct yaml_node *n;
	enum err_code rc;

	*out = (struct source_configs){ 0 };
	if ((rc = yaml_parse(a, "c.yml", str_of(text), &n, err)))
		return rc;
	return kubernetes_sd_decode(&ctx, n, out, err);
}

TEST(an_entry)
{
	static const char text[] =
		"- kubeconfig_file: kube/config\n"
		"  role: endpoints\n"
		"  namespaces: {names: [a, b]}\n"
		"  attach_metadata: {node: true, namespace: true}\n"
		"  selectors:\n"
		"  - {role: pod, label: 'app in (a, b), !c', field: 'spec.nodeName=n'}\n"
		"  - {role: service, label: x=y}\n"
		"- role: pod\n"
		"  namespaces: {own_namespace: true}\n"
		"  attach_metadata: {node: true, deployment: true, job: true, cronjob: true}\n"
		"  selectors: [{role: node, label: zone=a}]\n";
	const struct kubernetes_sd_config *c;
	const struct kube_selector *s;
	struct source_configs all;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(decode(&a, text, &all, &err), &err);
	REQUIRE(all.n == 2);
	c = all.v[0].config;
	CHECK(!c->attach.deployment && !c->attach.job && !c->attach.cronjob);
	CHECK_STR(c->cluster.kubeconfig_file, "/etc/epi/kube/config");
	CHECK_INT(c->role, KUBE_ROLE_ENDPOINTS);
	CHECK(!c->own_namespace && c->attach.node && c->attach.namespace);
	REQUIRE(c->namespaces.n == 2 && c->selectors.n == 2);
	CHECK_STR(((struct str *)c->namespaces.v)[1], "b");
	s = c->selectors.v;
	CHECK_INT(s[0].role, KUBE_ROLE_POD);
	CHECK_STR(s[0].label, "app in (a, b), !c");
	CHECK_STR(s[0].field, "spec.nodeName=n");
	CHECK_INT(s[1].role, KUBE_ROLE_SERVICE);
	c = all.v[1].config;
	CHECK(c->own_namespace && c->attach.node && !c->attach.namespace);
	CHECK(c->attach.deployment && c->attach.job && c->attach.cronjob);
	CHECK(c->cluster.http.follow_redirects);
	arena_release(&a);
}

TEST(errors)
{
	/* clang-format off */
	static const char *const rows[][2] = {
		{ "[{}]", "c.yml:1:2: role missing "
			"(one of: pod, service, endpoints, endpointslice, node, ingress)" },
		{ "[~]", "c.yml:1:2: empty or null section in kubernetes_sd_configs" },
		{ "{role: pod}", "c.yml:1:1: expected a list of kubernetes_sd_config" },
		{ "[{role: vacation}]", "c.yml:1:9: unknown Kubernetes SD role \"vacation\"" },
		{ "[{role: [pod]}]", "c.yml:1:9: cannot unmarshal !!seq into string" },
		{ "[{role: pod, roles: x}]",
			"c.yml:1:14: field roles not found in type kubernetes_sd_config; "
			"did you mean \"role\"?" },
		{ "[{role: pod, namespaces: {foo: x}}]",
			"c.yml:1:27: field foo not found in type kubernetes.plain" },
		{ "[{role: pod, attach_metadata: {pod: true}}]",
			"c.yml:1:32: field pod not found in type kubernetes.AttachMetadataConfig" },
		{ "[{role: pod, api_server: 'http://x', kubeconfig_file: y}]",
			"c.yml:1:2: cannot use 'kubeconfig_file' and 'api_server' simultaneously" },
		{ "[{role: pod, kubeconfig_file: y, bearer_token: z}]",
			"c.yml:1:2: cannot use a custom HTTP client configuration together with "
			"'kubeconfig_file'" },
		{ "[{role: pod, bearer_token: z}]",
			"c.yml:1:2: to use custom HTTP client configuration please provide the 'api_server' "
			"URL explicitly" },
		{ "[{role: pod, api_server: 'http://x', namespaces: {own_namespace: true}}]",
			"c.yml:1:2: cannot use 'api_server' and 'namespaces.own_namespace' simultaneously" },
		{ "[{role: pod, kubeconfig_file: x, namespaces: {own_namespace: true}}]",
			"c.yml:1:2: cannot use 'kubeconfig_file' and 'namespaces.own_namespace' "
			"simultaneously" },
		{ "[{role: pod, selectors: [{role: pod}, {role: pod}]}]",
			"c.yml:1:39: duplicated selector role: pod" },
		{ "[{role: pod, selectors: [{role: node}]}]",
			"c.yml:1:26: node selectors of the pod role need attach_metadata: {node: true}" },
		{ "[{role: pod, selectors: [{role: service}]}]",
			"c.yml:1:26: pod role supports only pod, node selectors" },
		{ "[{role: service, selectors: [{label: a}]}]",
			"c.yml:1:30: service role supports only service selectors" },
		{ "[{role: endpoints, selectors: [{role: node}]}]",
			"c.yml:1:32: endpoints role supports only pod, service, endpoints selectors" },
		{ "[{role: endpointslice, selectors: [{role: endpoints}]}]",
			"c.yml:1:36: endpointslice role supports only pod, service, endpointslice selectors" },
		{ "[{role: pod, selectors: [{role: x}]}]",
			"c.yml:1:33: unknown Kubernetes SD role \"x\"" },
		{ "[{role: pod, selectors: [{role: pod, field: metadata.status-Running}]}]",
			"c.yml:1:45: invalid selector: 'metadata.status-Running'; "
			"can't understand 'metadata.status-Running'" },
		{ "[{role: pod, selectors: [{role: pod, label: 'a b'}]}]",
			"c.yml:1:45: unable to parse requirement: found 'b', "
			"expected: in, notin, =, ==, !=, gt, lt" },
	};
	/* clang-format on */
	struct source_configs all;
	struct arena a;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		arena_init(&a, 0);
		if (!decode(&a, rows[i][0], &all, &err))
			CHECK_FAIL("%s is taken", rows[i][0]);
		else
			CHECK_STR(str_of(err.msg), rows[i][1]);
		arena_release(&a);
	}
}

#define FOUND "unable to parse requirement: found "

TEST(selectors)
{
	/* clang-format off */
	static const struct {
		bool label;
		const char *text, *error;
	} rows[] = {
		{ true, "", "" },
		{ true, "a", "" },
		{ true, "!a", "" },
		{ true, "a=b,c==d , e!=f", "" },
		{ true, "a=,b", "" },
		{ true, "a in (b,c),d notin (e)", "" },
		{ true, "a in ()", "" },
		{ true, "a>1,b<2", "" },
		{ true, "app.kubernetes.io/name=x", "" },
		{ true, ",", FOUND "',', expected: !, identifier, or 'end of string'" },
		{ true, "a,", FOUND "'', expected: identifier after ','" },
		{ true, "a=b c", FOUND "'c', expected: ',' or 'end of string'" },
		{ true, "a in b", FOUND "'b' expected: '('" },
		{ true, "a in (b", FOUND "'', expected: ',' or ')'" },
		{ true, "a(b)", FOUND "'(', expected: in, notin, =, ==, !=, gt, lt" },
		{ true, "!", FOUND "'', expected: identifier" },
		{ true, "=b", FOUND "'=', expected: !, identifier, or 'end of string'" },
		{ false, "", "" },
		{ false, "a=b,c==d,e!=f", "" },
		{ false, "a=b\\,c,", "" },
		{ false, "a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'" },
		{ false, "a\\=b", "invalid selector: 'a\\=b'; can't understand 'a\\=b'" },
	};
	/* clang-format on */
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum err_code rc = rows[i].label ? kube_label_selector_check(str_of(rows[i].text), &err) :
										   kube_field_selector_check(str_of(rows[i].text), &err);

		CHECK_STR(rc ? str_of(err.msg) : STR(""), rows[i].error);
	}
}
