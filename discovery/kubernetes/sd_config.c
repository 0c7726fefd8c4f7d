#include <ctype.h>

#include "base/fs.h"
#include "base/net/http_config.h"
#include "base/quote.h"
#include "discovery/kubernetes/sd.h"
#include "discovery/kubernetes/sd_config.h"

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))
#define AT(f) offsetof(struct kubernetes_sd_config, f)

/* ---- roles ---- */

static enum err_code kube_find_role(const struct yaml_node *n, enum kube_role *out, struct err *err)
{
	for (int i = 0; i < KUBE_ROLES; i++)
		if (n->kind == YAML_SCALAR && str_is(n->text, kube_roles[i].name)) {
			*out = (enum kube_role)i;
			return ERR_OK;
		}
	if (n->kind != YAML_SCALAR)
		return yaml_err(n, err, ERR_INVALID, "cannot unmarshal %s into string", yaml_tag(n));
	return yaml_err(n, err, ERR_INVALID, "unknown Kubernetes SD role %s", QUOTED(n->text));
}

static enum err_code kube_decode_role(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	struct kubernetes_sd_config *c = field;

	c->has_role = true;
	return kube_find_role(n, &c->role, err);
}

static enum err_code kube_decode_selector_role(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	struct kube_selector *s = field;

	s->has_role = true;
	return kube_find_role(n, &s->role, err);
}

/* ---- the entry's fields ---- */

/* clang-format off */
static const struct yaml_field selector_fields[] = {
	{ "role", YAML_CUSTOM, 0, NULL, kube_decode_selector_role, "Whose objects are selected.", 0,
		.takes = "role", .unset = "required" },
	{ "label", YAML_STRING, offsetof(struct kube_selector, label), NULL, NULL,
		"A selector of labels, as of `kubectl -l`.", 0, .example = "app=shop" },
	{ "field", YAML_STRING, offsetof(struct kube_selector, field), NULL, NULL,
		"A selector of fields, as of `kubectl --field-selector`.", 0,
		.example = "spec.nodeName=node-1" },
};
static const struct yaml_schema selector_schema = { "kubernetes.SelectorConfig",
	sizeof(struct kube_selector), selector_fields, COUNT(selector_fields), NULL, NULL };

/* Offsets of these two count from the entry's struct. */
static const struct yaml_field namespace_fields[] = {
	{ "own_namespace", YAML_BOOL, AT(own_namespace), NULL, NULL,
		"Look in the namespace of the server's own pod.", 0 },
	{ "names", YAML_LIST, AT(namespaces), NULL, NULL, "Namespaces to look in.", 0, .unset = "all" },
};
static const struct yaml_field attach_fields[] = {
	{ "node", YAML_BOOL, AT(attach.node), NULL, NULL, "Add labels of the target's node.", 0 },
	{ "namespace", YAML_BOOL, AT(attach.namespace), NULL, NULL, "Add labels of its namespace.", 0 },
	{ "deployment", YAML_BOOL, AT(attach.deployment), NULL, NULL, "Add its pod's deployment.", 0 },
	{ "job", YAML_BOOL, AT(attach.job), NULL, NULL, "Add its pod's job.", 0 },
	{ "cronjob", YAML_BOOL, AT(attach.cronjob), NULL, NULL, "Add its pod's cron job.", 0 },
};
static const struct yaml_schema namespaces_schema = { "kubernetes.plain",
	sizeof(struct kubernetes_sd_config), namespace_fields, COUNT(namespace_fields), NULL, NULL };
static const struct yaml_schema attach_schema = { "kubernetes.AttachMetadataConfig",
	sizeof(struct kubernetes_sd_config), attach_fields, COUNT(attach_fields), NULL, NULL };
/* clang-format on */

static enum err_code kube_decode_namespaces(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	struct kubernetes_sd_config *c = field, in;
	enum err_code rc = yaml_decode(ctx, &namespaces_schema, n, &in, err);

	if (rc)
		return rc;
	if (in.namespaces.n > KUBE_NAMESPACES_MAX)
		return yaml_err(n, err, ERR_LIMIT, "more than %u namespaces", KUBE_NAMESPACES_MAX);
	c->own_namespace = in.own_namespace;
	c->namespaces = in.namespaces;
	return ERR_OK;
}

static enum err_code kube_decode_attach(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	struct kubernetes_sd_config *c = field, in;
	enum err_code rc = yaml_decode(ctx, &attach_schema, n, &in, err);

	if (rc)
		return rc;
	c->attach = in.attach;
	return ERR_OK;
}

/* clang-format off */
static const struct yaml_field sd_fields[] = {
	{ "api_server", YAML_STRING, AT(cluster.api_server), NULL, NULL, "The API server.", 0,
		.takes = "URL",
		.unset = "that of the kubeconfig, else the cluster that the server runs in" },
	{ "kubeconfig_file", YAML_STRING, AT(cluster.kubeconfig_file), NULL, NULL,
		"A kubeconfig with server and credentials.", 0, .takes = "path" },
	{ "role", YAML_CUSTOM, 0, NULL, kube_decode_role, "Which objects become targets.", 0,
		.takes = "role", .unset = "required",
		.limits = "`pod`, `service`, `endpoints`, `endpointslice`, `node` or `ingress`" },
	{ "namespaces", YAML_CUSTOM, 0, &namespaces_schema, kube_decode_namespaces,
		"Namespaces to look in.", 0, .unset = "all" },
	{ "selectors", YAML_LIST, AT(selectors), &selector_schema, NULL, "Which objects count.", 0 },
	{ "attach_metadata", YAML_CUSTOM, 0, &attach_schema, kube_decode_attach,
		"Labels of other objects.", 0 },
	HTTP_CONFIG_FIELDS(AT(cluster.http)),
};
/* clang-format on */

static void sd_defaults(struct yaml_ctx *ctx, void *out)
{
	struct kubernetes_sd_config *c = out;

	http_config_defaults(&c->cluster.http);
}

/* ---- checks ---- */

/* An entry may have selectors of its role and of the roles that it joins. */
static bool kubernetes_sd_config_may_select(
	const struct kubernetes_sd_config *c, enum kube_role role)
{
	switch (c->role) {
	case KUBE_ROLE_ENDPOINTS:
	case KUBE_ROLE_ENDPOINTSLICE:
		return role == c->role || role == KUBE_ROLE_POD || role == KUBE_ROLE_SERVICE;
	case KUBE_ROLE_POD:
		return role == c->role || role == KUBE_ROLE_NODE;
	default:
		return role == c->role;
	}
}

static enum err_code kube_refuse_selector(
	const struct yaml_node *n, const struct kubernetes_sd_config *c, struct err *err)
{
	static const enum kube_role order[] = { KUBE_ROLE_POD, KUBE_ROLE_SERVICE,
		KUBE_ROLE_ENDPOINTSLICE, KUBE_ROLE_ENDPOINTS, KUBE_ROLE_NODE, KUBE_ROLE_INGRESS };
	struct buf names = { 0 };
	enum err_code rc;

	for (size_t i = 0; i < COUNT(order); i++)
		if (kubernetes_sd_config_may_select(c, order[i]))
			buf_printf(&names, "%s%s", names.len ? ", " : "", kube_roles[order[i]].name);
	rc = yaml_err(n, err, ERR_INVALID, "%s role supports only " STR_FMT " selectors",
		kube_roles[c->role].name, STR_ARG(buf_str(&names)));
	buf_release(&names);
	return rc;
}

static enum err_code kube_check_selectors(
	const struct yaml_node *list, const struct kubernetes_sd_config *c, struct err *err)
{
	const struct kube_selector *s = c->selectors.v;
	const struct yaml_node *n = list ? list->child : NULL;
	enum err_code rc;
	struct err why;

	for (size_t i = 0; i < c->selectors.n && n; i++, n = n->next) {
		for (size_t k = 0; k < i; k++)
			if (s[k].role == s[i].role)
				return yaml_err(n, err, ERR_INVALID, "duplicated selector role: %s",
					kube_roles[s[i].role].name);
		if (!s[i].has_role || !kubernetes_sd_config_may_select(c, s[i].role))
			return kube_refuse_selector(n, c, err);
		if (c->role == KUBE_ROLE_POD && s[i].role == KUBE_ROLE_NODE && !c->attach.node)
			return yaml_err(n, err, ERR_INVALID,
				"node selectors of the pod role need attach_metadata: {node: true}");
		if ((rc = kube_field_selector_check(s[i].field, &why)))
			return yaml_err(yaml_get(n, "field"), err, rc, "%s", why.msg);
		if ((rc = kube_label_selector_check(s[i].label, &why)))
			return yaml_err(yaml_get(n, "label"), err, rc, "%s", why.msg);
	}
	return ERR_OK;
}

static enum err_code kube_sd_config_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct kubernetes_sd_config *c = out;
	enum err_code rc;

	if (!c->has_role)
		return yaml_err(n, err, ERR_INVALID,
			"role missing (one of: pod, service, endpoints, endpointslice, node, ingress)");
	if (c->cluster.kubeconfig_file.len) {
		c->cluster.kubeconfig_file = str_of(
			path_join(ctx->arena, ctx->dir, c->cluster.kubeconfig_file));
		if (!c->cluster.kubeconfig_file.ptr)
			return arena_fail(ctx->arena, "configuration", err);
	}
	if ((rc = http_config_check(ctx, n, &c->cluster.http, err)) ||
		(rc = kube_cluster_check(n, &c->cluster, c->own_namespace, err)))
		return rc;
	return kube_check_selectors(yaml_get(n, "selectors"), c, err);
}

const struct yaml_schema kubernetes_sd_schema = {
	.name = "kubernetes_sd_config",
	.size = sizeof(struct kubernetes_sd_config),
	.fields = sd_fields,
	.fields_n = COUNT(sd_fields),
	.defaults = sd_defaults,
	.check = kube_sd_config_check,
};

enum err_code kubernetes_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err)
{
	return source_configs_decode(
		ctx, n, "kubernetes_sd_configs", &kubernetes_sd_ops, &kubernetes_sd_schema, sources, err);
}
