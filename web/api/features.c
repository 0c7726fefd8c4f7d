/*
 * Which features this server has, by Prometheus's categories and names, so that its clients need
 * not guess from a version. What is not listed is not there, as in Prometheus. Lists come from the
 * tables that do the work; syntax is tried with the parser. The last category is what the user who
 * asks may do, so that a page need not ask what would be refused.
 */
#include "discovery/discovery.h"
#include "promql/rules/template/template.h"
#include "promql/syntax/functions.h"
#include "promql/syntax/parse.h"
#include "web/api/handlers.h"
#include "web/router/envelope.h"

static void api_features_begin(struct json *j, const char *category)
{
	json_key(j, category);
	json_object(j);
}

static void api_write(struct json *j, const char *name, bool enabled)
{
	json_key(j, name);
	json_bool(j, enabled);
}

struct feature {
	const char *name;
	bool enabled;
};

static void api_write_all(struct json *j, const char *category, const struct feature *f, size_t n)
{
	api_features_begin(j, category);
	for (size_t i = 0; i < n; i++)
		api_write(j, f[i].name, f[i].enabled);
	json_object_end(j);
}

#define WRITE_ALL(j, category, table) \
	api_write_all(j, category, table, sizeof(table) / sizeof((table)[0]))

static void api_features_write_api(struct json *j, const struct web_options *o)
{
	const struct feature api[] = {
		{ "admin", o->enable_admin_api },
		{ "exclude_alerts", true },
		{ "label_values_match", true },
		{ "lifecycle", o->enable_lifecycle },
		{ "otlp_write_receiver", false }, /* of metrics */
		{ "query_stats", false },
		{ "query_warnings", true },
		{ "remote_write_receiver", false },
		{ "time_range_labels", true },
		{ "time_range_series", true },
	};
	const struct feature own[] = {
		{ "files", o->enable_files }, { "ingest", o->enable_ingest },
		{ "otlp_grpc", o->otlp_grpc_listen_address && *o->otlp_grpc_listen_address },
		{ "saved_rules", o->enable_rules && !o->saved_rules_why_not },
		{ "totals", true }, /* the parameter profiles=totals */
	};

	WRITE_ALL(j, "api", api);
	WRITE_ALL(j, "epimetheus", own);
}

static void api_write_server(struct json *j)
{
	static const struct feature server[] = {
		{ "agent_mode", false },
		{ "auto_reload_config", false },
		{ "server_mode", true },
	};

	WRITE_ALL(j, "prometheus", server);
}

static bool api_parses(struct arena *a, const char *query)
{
	struct parsed *parsed = NULL;
	struct err err;
	enum err_code rc = parse_query(a, str_of(query), &parsed, NULL, &err);

	parsed_release(parsed);
	return rc == ERR_OK;
}

static void api_write_syntax(struct json *j, struct arena *a)
{
	static const struct {
		const char *name, *query;
	} table[] = {
		{ "at_modifier", "x @ 1" },
		{ "bool", "x > bool 1" },
		{ "by", "sum by (a) (x)" },
		{ "duration_expr", "x[1m+1m]" },
		{ "fill", "x + fill(0) x" },
		{ "group_left", "x * on (a) group_left (b) x" },
		{ "group_right", "x * on (a) group_right (b) x" },
		{ "ignoring", "x * ignoring (a) x" },
		{ "negative_offset", "x offset -1m" },
		{ "offset", "x offset 1m" },
		{ "on", "x * on (a) x" },
		{ "subqueries", "x[1m:1s]" },
		{ "without", "sum without (a) (x)" },
	};

	api_features_begin(j, "promql");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		api_write(j, table[i].name, api_parses(a, table[i].query));
	json_object_end(j);
}

static void api_write_functions(struct json *j)
{
	api_features_begin(j, "promql_functions");
	for (size_t i = 0; i < FUNCTIONS; i++)
		if (!(functions[i].flags & FUNCTION_AGGREGATION))
			api_write(j, functions[i].name, true);
	json_object_end(j);
}

/* Operators, matchers, aggregations: one category in Prometheus. */
static void api_write_operators(struct json *j)
{
	api_features_begin(j, "promql_operators");
	for (unsigned i = MATCH_RE; i <= MATCH_NRE; i++) /* = and != are operators of numbers too */
		api_write(j, match_op_name((enum match_op)i), true);
	api_write(j, "@", true);
	for (unsigned i = 0; i <= OP_UNLESS; i++)
		api_write(j, binary_op_name((enum binary_op)i), true);
	for (size_t i = 0; i < FUNCTIONS; i++)
		if (functions[i].flags & FUNCTION_AGGREGATION)
			api_write(j, functions[i].name, true);
	json_object_end(j);
}

static void api_write_rules(struct json *j)
{
	static const struct feature rules[] = {
		{ "concurrent_rule_eval", false },
		{ "keep_firing_for", true },
		{ "query_offset", true },
	};

	WRITE_ALL(j, "rules", rules);
}

/* "static_configs", "file_sd_configs" without what all have behind their names. */
static void api_write_discovery(struct json *j)
{
	static const struct yaml_field fields[] = { SD_CONFIG_FIELDS(0) };

	api_features_begin(j, "service_discovery_providers");
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct str name = str_of(fields[i].name);

		name.len -= strlen(str_has_suffix(name, STR("_sd_configs")) ? "_sd_configs" : "_configs");
		json_key_str(j, name);
		json_bool(j, true);
	}
	json_object_end(j);
}

static void api_write_templates(struct json *j)
{
	const char *name;

	api_features_begin(j, "templating_functions");
	for (size_t i = 0; (name = template_function_name(i)); i++)
		api_write(j, name, true);
	json_object_end(j);
}

static void api_write_tsdb(struct json *j)
{
	static const struct feature tsdb[] = {
		{ "delayed_compaction", false },
		{ "exemplar_storage", false },
		{ "native_histograms", false },
	};

	WRITE_ALL(j, "tsdb", tsdb);
}

static void api_write_user(struct json *j, const struct http_user *u)
{
	const struct feature user[] = {
		{ "admin", http_user_may(u, NEEDS_ADMIN) },
		{ "ingest", http_user_may(u, NEEDS_INGEST) },
		{ "read_all", http_user_may(u, NEEDS_READ_ALL) },
	};

	WRITE_ALL(j, "user", user);
}

void api_features(struct web *w, struct http_in *in, struct http_out *out)
{
	struct json j;

	api_begin(out, &j);
	json_object(&j);
	api_features_write_api(&j, &w->o);
	api_write_server(&j);
	api_write_syntax(&j, &in->arena);
	api_write_functions(&j);
	api_write_operators(&j);
	api_write_rules(&j);
	api_write_discovery(&j);
	api_write_templates(&j);
	api_write_tsdb(&j);
	api_write_user(&j, &in->user);
	json_object_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}
