/*
 * ec2_sd_configs: the instances of an account in a region of AWS.
 *
 * Source: Prometheus's ec2_sd; "DescribeInstances" and "DescribeAvailabilityZones" in the EC2 API
 * reference, 2016-11-15.
 */
#include "base/clock.h"
#include "discovery/apis/api.h"
#include "discovery/apis/sd.h"

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))
#define AT(member) offsetof(struct ec2_config, member)
#define PAGE_ITEMS "1000"
#define DEVICES_MAX 64u /* network interfaces of an instance that keep their place in a label */

struct ec2_config {
	struct api_config common;
	struct str endpoint, region, access_key, secret_key, profile, role_arn, external_id;
	struct yaml_list filters; /* struct api_filter */
};

static const struct source_ops ec2_ops = API_SOURCE_OPS("ec2");

/* clang-format off */
static const struct yaml_field fields[] = {
	{ "region", YAML_STRING, AT(region), NULL, NULL, "The region.", 0,
		.unset = "that of the environment, else of the instance" },
	{ "endpoint", YAML_STRING, AT(endpoint), NULL, NULL, "Where the API is.", 0, .takes = "URL",
		.unset = "AWS's own" },
	{ "access_key", YAML_STRING, AT(access_key), NULL, NULL, "The name of the key.", 0,
		.unset = "as AWS's programs find it" },
	{ "secret_key", YAML_SECRET, AT(secret_key), NULL, NULL, "The key that signs requests.", 0,
		.unset = "as AWS's programs find it" },
	{ "profile", YAML_STRING, AT(profile), NULL, NULL, "The section of AWS's files of credentials.",
		0 },
	{ "role_arn", YAML_STRING, AT(role_arn), NULL, NULL, "A role to assume.", 0 },
	{ "external_id", YAML_STRING, AT(external_id), NULL, NULL,
		"The external id that the role asks for.", 0 },
	{ "filters", YAML_LIST, AT(filters), &api_filter_schema, NULL, "Which instances count.", 0,
		.example = "[{name: tag:env, values: [prod]}]" },
	API_PORT_FIELD,
	API_REFRESH_FIELD,
	API_HTTP_FIELDS,
};
static const struct api_param zones_params[] = {
	{ "Action", API_CONST, 0, "DescribeAvailabilityZones" },
	{ "Version", API_CONST, 0, "2016-11-15" },
};
static const struct api_param instances_params[] = {
	{ "Action", API_CONST, 0, "DescribeInstances" },
	{ "Version", API_CONST, 0, "2016-11-15" },
	{ "MaxResults", API_CONST, 0, PAGE_ITEMS },
};
/* clang-format on */

/* Filter.1.Name=a, Filter.1.Value.1=b, ... */
static void ec2_add_filters(const void *config, struct api_params *out)
{
	const struct ec2_config *c = config;
	const struct api_filter *f = c->filters.v;

	for (size_t i = 0; i < c->filters.n; i++) {
		const struct str *v = f[i].values.v;

		api_param_add(out, str_of(arena_printf(out->arena, "Filter.%zu.Name", i + 1)),
			f[i].name.ptr ? f[i].name : STR(""));
		for (size_t k = 0; k < f[i].values.n; k++)
			api_param_add(out,
				str_of(arena_printf(out->arena, "Filter.%zu.Value.%zu", i + 1, k + 1)),
				v[k].ptr ? v[k] : STR(""));
	}
}

/* Without the right to list zones there are targets all the same. */
enum { ZONES, INSTANCES };
static const struct api_list lists[] = {
	[ZONES] = { "describe availability zones", "/", zones_params, COUNT(zones_params), .once = true,
		.optional = true },
	[INSTANCES] = { "describe instances", "/", instances_params, COUNT(instances_params),
		.more = ec2_add_filters, .next = "nextToken", .next_param = "NextToken" },
};

/* ---- labels ---- */

static const char *ec2_string_at(const json_t *value, const char *path)
{
	return json_string_value(json_path_at(value, path));
}

static struct str ec2_region(const struct api_target *t)
{
	return t->region;
}

static struct str ec2_zone_id(const struct api_target *t)
{
	const char *zone = json_string_value(api_at(t, "instance.placement.availabilityZone"));
	const json_t *v;
	size_t i;

	json_array_foreach (json_path_at(t->answers[ZONES], "availabilityZoneInfo"), i, v) {
		const char *name = ec2_string_at(v, "zoneName"), *id = ec2_string_at(v, "zoneId");

		if (zone && name && id && strcmp(zone, name) == 0)
			return str_of(id);
	}
	return STR("");
}

/* Items with separators between and around them. */
static struct str ec2_list_text(
	const struct api_target *t, const char *const *values, size_t n, bool always)
{
	struct str out = STR("");
	struct buf b = { 0 };

	if (!n && !always)
		return out;
	buf_add_char(&b, ',');
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s,", values[i] ? values[i] : "");
	if (!n)
		buf_add_char(&b, ',');
	out = buf_failed(&b) ? (struct str){ 0 } : str_dup(t->arena, buf_str(&b));
	buf_release(&b);
	return out;
}

/* Each once, in the order of the interfaces. */
static struct str ec2_subnets(const struct api_target *t)
{
	const json_t *v, *all = api_at(t, "instance.networkInterfaceSet");
	const char **ids, *id;
	size_t i, k, n = 0;

	if (!api_at(t, "instance.vpcId"))
		return STR("");
	if (!(ids = arena_array(t->arena, const char *, json_array_size(all))))
		return (struct str){ 0 };
	json_array_foreach (all, i, v) {
		id = ec2_string_at(v, "subnetId");
		for (k = 0; id && k < n && strcmp(ids[k], id) != 0; k++)
			;
		if (id && k == n)
			ids[n++] = id;
	}
	return ec2_list_text(t, ids, n, true);
}

struct addresses {
	const char **all, *primary[DEVICES_MAX]; /* by the interface's place; NULL: it has none */
	size_t all_n, primary_n;
};

static bool ec2_is_true(const char *text)
{
	return text && strcmp(text, "true") == 0;
}

static void addresses_add(struct addresses *out, const json_t *interface)
{
	const char *ip, *place = ec2_string_at(interface, "attachment.deviceIndex");
	const json_t *v;
	uint64_t at;
	size_t i;

	json_array_foreach (json_object_get(interface, "ipv6AddressesSet"), i, v) {
		if (!(ip = ec2_string_at(v, "ipv6Address")))
			continue;
		out->all[out->all_n++] = ip;
		if (!ec2_is_true(ec2_string_at(v, "isPrimaryIpv6")) || !place ||
			!str_to_u64(str_of(place), &at) || at >= DEVICES_MAX)
			continue;
		out->primary[at] = ip;
		if (out->primary_n <= at)
			out->primary_n = at + 1;
	}
}

/* Those of interfaces in a subnet of its VPC. False: out of memory. */
static bool ec2_find_addresses(const struct api_target *t, struct addresses *out)
{
	const json_t *v, *all = api_at(t, "instance.networkInterfaceSet");
	size_t i, n = 0;

	*out = (struct addresses){ 0 };
	if (!api_at(t, "instance.vpcId"))
		return true;
	json_array_foreach (all, i, v)
		n += json_array_size(json_object_get(v, "ipv6AddressesSet"));
	if (!(out->all = arena_array(t->arena, const char *, n)))
		return false;
	json_array_foreach (all, i, v)
		if (json_object_get(v, "subnetId"))
			addresses_add(out, v);
	return true;
}

static struct str ec2_ipv6_addresses(const struct api_target *t)
{
	struct addresses a;

	return ec2_find_addresses(t, &a) ? ec2_list_text(t, a.all, a.all_n, false) : (struct str){ 0 };
}

static struct str ec2_primary_ipv6_addresses(const struct api_target *t)
{
	struct addresses a;

	return ec2_find_addresses(t, &a) ? ec2_list_text(t, a.primary, a.primary_n, false) :
									   (struct str){ 0 };
}

/* The first primary one, else the first. */
static struct str ec2_default_ipv6_address(const struct api_target *t)
{
	struct addresses a;

	if (!ec2_find_addresses(t, &a))
		return (struct str){ 0 };
	for (size_t i = 0; i < a.primary_n; i++)
		if (a.primary[i])
			return str_of(a.primary[i]);
	return a.all_n ? str_of(a.all[0]) : STR("");
}

static struct str ec2_address(const struct api_target *t)
{
	const struct api_config *c = t->config;
	struct str ip = api_text(t, "instance.privateIpAddress"), port;

	if (!ip.len)
		ip = ec2_default_ipv6_address(t);
	port = str_of(arena_printf(t->arena, "%lld", (long long)c->port));
	return ip.ptr && port.ptr ? api_address(t->arena, ip, port) : (struct str){ 0 };
}

/* An instance without an address is not there yet, or not any more. */
static enum err_code ec2_expand(struct api_target *t, struct err *err)
{
	struct str ip = api_text(t, "instance.privateIpAddress");

	if (!ip.len)
		ip = ec2_default_ipv6_address(t);
	return ip.len ? api_target_add(t, err) : ip.ptr ? ERR_OK : arena_fail(t->arena, "targets", err);
}

/* Public names without a public address are none. */
static struct str ec2_public_dns_name(const struct api_target *t)
{
	return api_at(t, "instance.ipAddress") ? api_text(t, "instance.dnsName") : STR("");
}

static const char *const roots[] = { "reservation", "instance", NULL };
/* clang-format off */
static const struct api_label labels[] = {
	{ "__address__", API_MADE, NULL, NULL, ec2_address },
	{ "__meta_ec2_ami", API_VALUE, "instance.imageId", NULL, NULL },
	{ "__meta_ec2_architecture", API_VALUE, "instance.architecture", NULL, NULL },
	{ "__meta_ec2_availability_zone", API_VALUE, "instance.placement.availabilityZone", NULL,
		NULL },
	{ "__meta_ec2_availability_zone_id", API_MADE, NULL, NULL, ec2_zone_id },
	{ "__meta_ec2_default_ipv6_address", API_MADE, NULL, NULL, ec2_default_ipv6_address },
	{ "__meta_ec2_instance_id", API_VALUE, "instance.instanceId", NULL, NULL },
	{ "__meta_ec2_instance_lifecycle", API_VALUE, "instance.instanceLifecycle", NULL, NULL },
	{ "__meta_ec2_instance_state", API_VALUE, "instance.instanceState.name", NULL, NULL },
	{ "__meta_ec2_instance_type", API_VALUE, "instance.instanceType", NULL, NULL },
	{ "__meta_ec2_ipv6_addresses", API_MADE, NULL, NULL, ec2_ipv6_addresses },
	{ "__meta_ec2_owner_id", API_VALUE, "reservation.ownerId", NULL, NULL },
	{ "__meta_ec2_platform", API_VALUE, "instance.platform", NULL, NULL },
	{ "__meta_ec2_primary_ipv6_addresses", API_MADE, NULL, NULL, ec2_primary_ipv6_addresses },
	{ "__meta_ec2_private_dns_name", API_VALUE, "instance.privateDnsName", NULL, NULL },
	{ "__meta_ec2_private_ip", API_VALUE, "instance.privateIpAddress", NULL, NULL },
	{ "__meta_ec2_public_dns_name", API_MADE, NULL, NULL, ec2_public_dns_name },
	{ "__meta_ec2_public_ip", API_VALUE, "instance.ipAddress", NULL, NULL },
	{ "__meta_ec2_region", API_MADE, NULL, NULL, ec2_region },
	{ "__meta_ec2_primary_subnet_id", API_VALUE, "instance.subnetId", NULL, NULL },
	{ "__meta_ec2_subnet_id", API_MADE, NULL, NULL, ec2_subnets },
	{ "__meta_ec2_tag_", API_PAIRS, "instance.tagSet", NULL, NULL },
	{ "__meta_ec2_vpc_id", API_VALUE, "instance.vpcId", NULL, NULL },
};
/* clang-format on */

/* ---- configuration ---- */

static enum err_code ec2_locate(
	const void *config, struct arena *a, struct api_server *out, struct err *err)
{
	const struct ec2_config *c = config;

	*out = (struct api_server){ STR(""), STR("") };
	return c->endpoint.len ? api_locate(c->endpoint, "https", a, out, err) : ERR_OK;
}

static void ec2_aws(const void *config, struct aws_config *out)
{
	const struct ec2_config *c = config;

	*out = (struct aws_config){ "ec2", c->region, c->access_key, c->secret_key, c->profile,
		c->role_arn, c->external_id, &c->common.http };
}

static enum err_code ec2_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct ec2_config *c = out;
	const struct api_filter *f = c->filters.v;

	for (size_t i = 0; i < c->filters.n; i++)
		if (!f[i].values.n)
			return yaml_err(yaml_get(n, "filters"), err, ERR_INVALID,
				"EC2 SD configuration filter values cannot be empty");
	return api_config_check(ctx, n, &c->common, err);
}

static void ec2_defaults(struct yaml_ctx *ctx, void *out);

const struct yaml_schema ec2_sd_schema = {
	.name = "ec2_sd_config",
	.size = sizeof(struct ec2_config),
	.fields = fields,
	.fields_n = COUNT(fields),
	.defaults = ec2_defaults,
	.check = ec2_check,
};

static const struct api ec2 = {
	.kind = "ec2",
	.schema = &ec2_sd_schema,
	.locate = ec2_locate,
	.form = true,
	.xml = true,
	.aws = ec2_aws,
	.lists = lists,
	.lists_n = COUNT(lists),
	.items = "reservationSet.*.instancesSet.*",
	.roots = roots,
	.expand = ec2_expand,
	.labels = labels,
	.labels_n = COUNT(labels),
};

static void ec2_defaults(struct yaml_ctx *ctx, void *out)
{
	struct ec2_config *c = out;

	*c = (struct ec2_config){ 0 };
	api_config_defaults(&c->common, &ec2, 60 * NS_PER_S);
}

enum err_code ec2_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err)
{
	return source_configs_decode(ctx, n, "ec2_sd_configs", &ec2_ops, &ec2_sd_schema, sources, err);
}
