/* The settings of HTTP clients as a schema of their own: a file of them, and their table in the
 * book. */
#include "base/net/http_config.h"

static void http_config_schema_defaults(struct yaml_ctx *ctx, void *out)
{
	http_config_defaults(out);
}

static enum err_code http_config_schema_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	return http_config_check(ctx, n, out, err);
}

static const struct yaml_field all_fields[] = { HTTP_CONFIG_FIELDS(0) };
const struct yaml_schema http_config_schema = {
	.name = "http_config_file",
	.size = sizeof(struct http_config),
	.fields = all_fields,
	.fields_n = sizeof(all_fields) / sizeof(all_fields[0]),
	.defaults = http_config_schema_defaults,
	.check = http_config_schema_check,
};
