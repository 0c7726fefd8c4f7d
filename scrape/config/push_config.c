#include "scrape/config/push_config.h"

#include "base/quote.h"
#include "scrape/config/patterns.h"

#define ATTRIBUTES_MAX 1024u

/* What makes a series of each process, thread or start, or says the same of all. */
static const char *const dropped[] = {
	"process\\.pid",
	"process\\.parent_pid",
	"process\\.command(_args|_line)?",
	"process\\.owner",
	"process\\.runtime\\..*",
	"thread\\.id",
	"cpu\\.logical_number",
	"container\\.id",
	"service\\.instance\\.id",
	"k8s\\..*\\.uid",
	"host\\.(id|arch|ip|mac)",
	"os\\..*",
	"telemetry\\..*",
	"otel\\..*",
	"__session_id__",
};

/* Ascending by attribute. */
static const struct label renamed[] = {
	{ STR("host.name"), STR("node") },
		{ STR("k8s.container.name"), STR("container") },
			{ STR("k8s.namespace.name"), STR("namespace") },
				{ STR("k8s.node.name"), STR("node") },
					{ STR("k8s.pod.name"), STR("pod") },
				};

/* ---- decoding ---- */

struct push_config_fields {
	struct push_config c;
	struct yaml_list drop;
	bool has_drop;
};

#define AT(member) offsetof(struct push_config_fields, member)
/* clang-format off */
static const struct yaml_field table[] = {
	{ "labels", YAML_STRING_MAP, AT(c.labels), NULL, NULL,
		"Labels of everything that is sent, where the sender has none of that name.", 0,
		.example = "{cluster: eu-1}" },
	{ "drop_labels", YAML_LIST, AT(drop), NULL, NULL,
		"Labels and attributes to drop, by the names that the sender uses. An empty list drops "
		"none.", AT(has_drop) + 1, .takes = "list of regular expressions",
		.unset = "those that name one process, thread or start",
		.example = "[\"thread\\\\..*\", \"host\\\\.id\"]" },
	{ "attributes", YAML_STRING_MAP, AT(c.attributes), NULL, NULL,
		"The label that an attribute becomes.", 0, .takes = "map of attributes to label names",
		.example = "{deployment.environment.name: env}" },
	{ "relabel_configs", YAML_CUSTOM, AT(c.relabel), &relabel_rule_schema, relabel_rules_decode,
		"Rules that rewrite the labels of series. The action `drop` refuses a profile.", 0,
		.takes = "list of" },
	{ "profiles_per_second", YAML_UINT, AT(c.profiles_per_second), NULL, NULL,
		"The most profiles of one sender. More are answered with 429 and `Retry-After`.", 0 },
	{ "cumulative", YAML_BOOL, AT(c.cumulative), NULL, NULL,
		"Heaps and contentions count since their process began, so the server makes the "
		"differences.", 0 },
};
/* clang-format on */
#undef AT

static void push_config_set_defaults(struct yaml_ctx *ctx, void *out)
{
	*(struct push_config_fields *)out = (struct push_config_fields){
		.c.profiles_per_second = PUSH_PROFILES_PER_SECOND
	};
}

const struct yaml_schema push_config_schema = {
	.name = "push_config",
	.size = sizeof(struct push_config_fields),
	.fields = table,
	.fields_n = sizeof(table) / sizeof(table[0]),
	.defaults = push_config_set_defaults,
};

static enum err_code push_config_compile_drop(const struct yaml_node *n,
	const struct push_config_fields *f, struct regex **out, struct err *err)
{
	struct str defaults[sizeof(dropped) / sizeof(dropped[0])];
	const struct str *v = f->drop.v;
	size_t count = f->drop.n;
	enum err_code rc;
	struct err why;

	if (!f->has_drop) {
		count = sizeof(defaults) / sizeof(defaults[0]);
		for (size_t i = 0; i < count; i++)
			defaults[i] = str_of(dropped[i]);
		v = defaults;
	}
	if ((rc = patterns_compile("drop_labels", v, count, out, &why)) && n)
		return yaml_err(n, err, rc, "%s", why.msg);
	return rc ? err_copy(err, &why) : ERR_OK;
}

static enum err_code push_config_check_labels(
	const struct yaml_node *n, const struct push_config *c, struct err *err)
{
	for (size_t i = 0; i < c->labels.n; i++)
		if (!label_name_valid(c->labels.v[i].name) ||
			str_has_prefix(c->labels.v[i].name, STR("__")))
			return yaml_err(n, err, ERR_INVALID, "labels: %s cannot be the name of a label",
				QUOTED(c->labels.v[i].name));
	if (c->attributes.n > ATTRIBUTES_MAX)
		return yaml_err(n, err, ERR_LIMIT, "more than %u attributes", ATTRIBUTES_MAX);
	for (size_t i = 0; i < c->attributes.n; i++)
		if (!label_name_valid(c->attributes.v[i].value) ||
			str_has_prefix(c->attributes.v[i].value, STR("__")))
			return yaml_err(n, err, ERR_INVALID, "attributes: %s cannot be the name of a label",
				QUOTED(c->attributes.v[i].value));
	return ERR_OK;
}

enum err_code push_config_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct push_config *out, struct err *err)
{
	struct push_config_fields f = { 0 };
	enum err_code rc = yaml_decode(ctx, &push_config_schema, n, &f, err);

	*out = f.c;
	if (rc || (rc = push_config_check_labels(n, out, err)) ||
		(rc = push_config_compile_drop(n, &f, &out->drop, err)))
		push_config_release(out);
	return rc;
}

void push_config_release(struct push_config *c)
{
	relabel_rules_release(&c->relabel);
	regex_free(c->drop);
	*c = (struct push_config){ 0 };
}

/* ---- labels ---- */

bool push_drops(const struct push_config *c, struct str name)
{
	return c->drop && regex_match(c->drop, name);
}

static bool push_config_fits(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
		(!first && c >= '0' && c <= '9');
}

struct str push_label_name(const struct push_config *c, struct arena *a, struct str name)
{
	struct str set = labels_get(c->attributes, name);
	char *made;

	if (set.len)
		return set;
	for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++)
		if (str_eq(renamed[i].name, name))
			return renamed[i].value;
	if (label_name_valid(name))
		return name;
	if (!(made = arena_alloc_raw(a, name.len + 1, 1)))
		return (struct str){ 0 };
	for (size_t i = 0; i < name.len; i++)
		made[i + 1] = push_config_fits(name.ptr[i], false) ? name.ptr[i] : '_';
	made[0] = '_';
	return name.len && !(name.ptr[0] >= '0' && name.ptr[0] <= '9') ?
		(struct str){ made + 1, name.len } :
		(struct str){ made, name.len + 1 };
}
