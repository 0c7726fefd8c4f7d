#include "discovery/apis/api.h"

/* clang-format off */
static const struct yaml_field filter_fields[] = {
	{ "name", YAML_STRING, offsetof(struct api_filter, name), NULL, NULL, "What is compared.", 0,
		.unset = "required" },
	{ "values", YAML_LIST, offsetof(struct api_filter, values), NULL, NULL,
		"One of these is enough.", 0, .unset = "required" },
};
/* clang-format on */

const struct yaml_schema api_filter_schema = {
	.name = "filter",
	.size = sizeof(struct api_filter),
	.fields = filter_fields,
	.fields_n = sizeof(filter_fields) / sizeof(filter_fields[0]),
};

void api_config_defaults(struct api_config *c, const struct api *api, int64_t refresh_interval_ns)
{
	*c = (struct api_config){ .api = api,
		.refresh_interval_ns = refresh_interval_ns,
		.port = 80,
		.separator = STR(",") };
	http_config_defaults(&c->http);
}

enum err_code api_locate(
	struct str text, const char *scheme, struct arena *a, struct api_server *out, struct err *err)
{
	const struct str local = STR("unix://");
	const char *problem;

	*out = (struct api_server){ .url = STR("http://localhost"), .unix_path = STR("") };
	if (str_has_prefix(text, local)) {
		out->unix_path = str_dup(a, (struct str){ text.ptr + local.len, text.len - local.len });
		if (!out->unix_path.ptr)
			return arena_fail(a, "configuration", err);
		if (!out->unix_path.len || out->unix_path.len > HTTP_UNIX_PATH_MAX)
			return err_set(
				err, ERR_INVALID, "a socket's path has 1 to %d bytes", HTTP_UNIX_PATH_MAX);
		return ERR_OK;
	}
	while (text.len && text.ptr[text.len - 1] == '/')
		text.len--;
	out->url = str_of(str_find(text,
		STR("://")) < 0 ? arena_printf(a, "%s://" STR_FMT, scheme, STR_ARG(text)) :
						  arena_strndup(a, text.ptr, text.len));
	if (!out->url.ptr)
		return arena_fail(a, "configuration", err);
	if ((problem = http_config_url_problem(out->url)))
		return err_set(err, ERR_INVALID, "%s", problem);
	return ERR_OK;
}

enum err_code api_config_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct api_config *c, struct err *err)
{
	struct api_server server;
	enum err_code rc;
	struct err why;

	if (c->refresh_interval_ns < API_REFRESH_MIN_NS)
		return yaml_err(yaml_get(n, "refresh_interval"), err, ERR_INVALID,
			"refresh_interval of %s discovery is under 100ms", c->api->kind);
	if ((rc = c->api->locate(c, ctx->arena, &server, &why)))
		return yaml_err(n, err, rc, "%s", why.msg);
	return http_config_check(ctx, n, &c->http, err);
}

enum err_code api_check_files(const void *config, struct err *err)
{
	const struct api_config *c = config;

	return http_config_check_files(&c->http, err);
}
