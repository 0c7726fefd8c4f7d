/* The configuration as text: the one in force without its secrets, and the built-in one. */
#include "base/hidden.h"
#include "base/quote.h"
#include "scrape/config/config.h"

/* Keys whose values are never shown, and keys of URLs, whose secrets are hidden. */
/* clang-format off */
static const char *const secrets[] = {
	"password", "credentials", "bearer_token", "key", "secrets", "client_secret",
	"secret_key", "session_token", "token", NULL,
};
/* clang-format on */
static const char *const urls[] = { "url", "proxy_url", "token_url", "api_server", "targets",
	NULL };
/* Maps from names of the user's own to values that are never shown. */
static const char *const secret_maps[] = { "proxy_connect_header", "endpoint_params", NULL };

static bool config_print_is_one_of(struct str name, const char *const *names)
{
	while (*names && !str_is(name, *names))
		names++;
	return *names != NULL;
}

static bool config_print_is_param_label(struct str name)
{
	struct str prefix = STR("__param_");

	return str_has_prefix(name, prefix) &&
		hidden_param((struct str){ name.ptr + prefix.len, name.len - prefix.len });
}

/* A rule that sets a parameter to a fixed value, not to a part of a label. */
static bool config_print_sets_param(const struct yaml_node *rule, const struct yaml_node *value)
{
	const struct yaml_node *target = yaml_get(rule, "target_label");

	return str_is(value->key->text, "replacement") && target &&
		config_print_is_param_label(target->text) && str_find(value->text, STR("$")) < 0;
}

static enum yaml_shown config_print_shown(
	const struct yaml_node *mapping, const struct yaml_node *value)
{
	struct str name = value->key->text;
	struct str outer = mapping->key ? mapping->key->text : STR("");

	if (config_print_is_one_of(name, secrets) || config_print_is_one_of(outer, secret_maps) ||
		(str_is(outer, "params") && hidden_param(name)) ||
		(str_is(outer, "labels") && config_print_is_param_label(name)) ||
		config_print_sets_param(mapping, value))
		return YAML_HIDDEN;
	return config_print_is_one_of(name, urls) ? YAML_URL : YAML_SHOWN;
}

void config_print(struct buf *out, const struct config *c)
{
	yaml_print(out, c->root, config_print_shown);
}

/* It enables the CPU profile only, since the server serves no other profile of itself. */
void config_builtin_text(
	struct buf *out, const char *scheme, const char *address, const char *path_prefix)
{
	buf_add_cstr(out,
		"# Built in: no configuration file was given, so the server scrapes itself.\n"
		"global:\n"
		"  scrape_interval: 10s\n"
		"scrape_configs:\n"
		"  - job_name: epimetheus\n"
		"    scheme: ");
	buf_add_cstr(out, scheme);
	buf_add_cstr(out,
		"\n"
		"    profiling_config:\n"
		"      path_prefix: ");
	buf_add_quoted(out, str_of(path_prefix));
	buf_add_cstr(out,
		"\n"
		"      pprof_config:\n"
		"        memory: {enabled: false}\n"
		"        block: {enabled: false}\n"
		"        mutex: {enabled: false}\n"
		"        goroutine: {enabled: false}\n"
		"        goroutineleak: {enabled: false}\n");
	if (strcmp(scheme, "https") == 0)
		buf_add_cstr(out,
			"    tls_config:\n"
			"      insecure_skip_verify: true # its own certificate, over its own loopback\n");
	buf_add_cstr(out,
		"    static_configs:\n"
		"      - targets: [");
	buf_add_quoted(out, str_of(address));
	buf_add_cstr(out, "]\n");
}
