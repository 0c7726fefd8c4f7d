#include "discovery/alerting.h"

#include "base/net/http_config.h"
#include "base/quote.h"
#include "base/yaml/problems.h"
#include "discovery/foreign_sd.h"

#define ALERTMANAGERS_MAX 1000u

/* A list of rules. empty: the message for a null entry, which differs per list. */
static enum err_code alerting_decode_rules(struct yaml_ctx *ctx, const struct yaml_node *n,
	const char *empty, struct relabel_rules *out, struct err *err)
{
	const struct yaml_node *c;

	if (n->kind == YAML_SEQUENCE)
		for (c = n->child; c; c = c->next)
			if (yaml_is_null(c))
				return yaml_err(c, err, ERR_INVALID, "%s", empty);
	return relabel_rules_decode(ctx, n, out, err);
}

/* ---- one entry of alertmanagers ---- */

static enum err_code alerting_decode_target_rules(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	return alerting_decode_rules(
		ctx, n, "empty or null Alertmanager target relabeling rule", field, err);
}

static enum err_code alerting_decode_own_rules(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	return alerting_decode_rules(
		ctx, n, "empty or null Alertmanager alert relabeling rule", field, err);
}

static enum err_code alerting_decode_version(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	(void)ctx;
	(void)field;
	if (n->kind != YAML_SCALAR || !str_is(n->text, "v2"))
		return yaml_err(n, err, ERR_INVALID,
			"expected Alertmanager api version to be one of [v2] but got " STR_FMT,
			STR_ARG(n->text));
	return ERR_OK;
}

static enum err_code alerting_sigv4(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	(void)ctx;
	(void)field;
	return yaml_err(n->key ? n->key : n, err, ERR_INVALID, "sigv4 is not supported");
}

#define AT(member) offsetof(struct alertmanager_config, member)
/* clang-format off */
static const struct yaml_field alertmanager_table[] = {
	{ "scheme", YAML_STRING, AT(scheme), NULL, NULL, "How Alertmanagers are reached.", 0,
		.limits = "`http` or `https`" },
	{ "path_prefix", YAML_STRING, AT(path_prefix), NULL, NULL,
		"What stands in front of `/api/v2/alerts`.", 0 },
	{ "timeout", YAML_DURATION, AT(timeout_ns), NULL, NULL, "How long one request may take.", 0 },
	{ "api_version", YAML_CUSTOM, 0, NULL, alerting_decode_version, "The version of the API.", 0,
		.takes = "string", .unset = "`v2`", .limits = "`v2`" },
	{ "relabel_configs", YAML_CUSTOM, AT(relabel), &relabel_rule_schema,
		alerting_decode_target_rules,
		"Rules that rewrite the labels of Alertmanagers, or drop them.", 0, .takes = "list of" },
	{ "alert_relabel_configs", YAML_CUSTOM, AT(alert_relabel), &relabel_rule_schema,
		alerting_decode_own_rules, "Rules for the alerts that are sent to these.", 0,
		.takes = "list of" },
	{ "sigv4", YAML_CUSTOM, 0, NULL, alerting_sigv4, "Refused: signing for AWS is not supported.",
		0, .takes = "nothing" },
	SD_CONFIG_FIELDS(offsetof(struct alertmanager_config, sd)),
	HTTP_CONFIG_FIELDS(offsetof(struct alertmanager_config, http)),
};
/* clang-format on */
#undef AT

static void alerting_alertmanager_defaults(struct yaml_ctx *ctx, void *out)
{
	struct alertmanager_config *c = out;

	(void)ctx;
	*c = (struct alertmanager_config){
		.scheme = STR("http"),
			.path_prefix = STR("/"), .timeout_ns = ALERTMANAGER_TIMEOUT_DEFAULT_NS };
	http_config_defaults(&c->http);
}

static enum err_code alerting_alertmanager_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct alertmanager_config *c = out;

	if (!str_is(c->scheme, "http") && !str_is(c->scheme, "https"))
		return yaml_err(yaml_get(n, "scheme"), err, ERR_INVALID, "scheme %s is not http or https",
			QUOTED(c->scheme));
	if (c->timeout_ns <= 0)
		return yaml_err(
			yaml_get(n, "timeout"), err, ERR_INVALID, "timeout of an Alertmanager cannot be 0");
	return http_config_check(ctx, n, &c->http, err);
}

static const struct yaml_schema alertmanager_schema = {
	.name = "alertmanager_config",
	.size = sizeof(struct alertmanager_config),
	.fields = alertmanager_table,
	.fields_n = sizeof(alertmanager_table) / sizeof(alertmanager_table[0]),
	.defaults = alerting_alertmanager_defaults,
	.check = alerting_alertmanager_check,
	.foreign = (const struct yaml_foreign *const[]){ sd_foreign, NULL },
};

/* ---- the section ---- */

static enum err_code alerting_decode_alert_rules(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	return alerting_decode_rules(ctx, n, "empty or null alert relabeling rule", field, err);
}

static enum err_code alerting_decode_alertmanagers(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	struct alerting_config *out = field;
	size_t before = yaml_errors(ctx);
	struct alertmanager_config *one;
	const struct yaml_node *c;
	enum err_code rc;

	if (n->kind != YAML_SEQUENCE)
		return yaml_err(n, err, ERR_INVALID, "expected a list of alertmanagers");
	if (n->n > ALERTMANAGERS_MAX)
		return yaml_err(n, err, ERR_LIMIT, "more than %u alertmanagers", ALERTMANAGERS_MAX);
	out->alertmanagers = arena_array(ctx->arena, struct alertmanager_config, n->n);
	if (!out->alertmanagers)
		return arena_fail(ctx->arena, "configuration", err);
	for (c = n->child; c; c = c->next) {
		/* counted first, so that its compiled rules are freed */
		one = &out->alertmanagers[out->alertmanagers_n++];
		if (yaml_is_null(c))
			rc = yaml_err(c, err, ERR_INVALID, "empty or null alertmanager config section");
		else
			rc = yaml_decode(ctx, &alertmanager_schema, c, one, err);
		if (rc && !yaml_goes_on(ctx, rc, err))
			return rc;
	}
	return yaml_end(ctx, before, err);
}

/* clang-format off */
static const struct yaml_field alerting_table[] = {
	{ "alert_relabel_configs", YAML_CUSTOM, offsetof(struct alerting_config, alert_relabel),
		&relabel_rule_schema, alerting_decode_alert_rules,
		"Rules that rewrite the labels of all alerts, or drop alerts.", 0, .takes = "list of" },
	{ "alertmanagers", YAML_CUSTOM, 0, &alertmanager_schema, alerting_decode_alertmanagers,
		"Where alerts are sent.", 0, .takes = "list of" },
};
/* clang-format on */

const struct yaml_schema alerting_config_schema = {
	.name = "alerting_config",
	.size = sizeof(struct alerting_config),
	.fields = alerting_table,
	.fields_n = sizeof(alerting_table) / sizeof(alerting_table[0]),
};

enum err_code alerting_config_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	return yaml_decode(ctx, &alerting_config_schema, n, field, err);
}

void alerting_config_release(struct alerting_config *c)
{
	relabel_rules_release(&c->alert_relabel);
	for (size_t i = 0; i < c->alertmanagers_n; i++) {
		relabel_rules_release(&c->alertmanagers[i].relabel);
		relabel_rules_release(&c->alertmanagers[i].alert_relabel);
	}
}

enum err_code alerting_config_check_files(const struct alerting_config *c, struct err *err)
{
	const struct alertmanager_config *one;
	enum err_code rc;

	for (size_t i = 0; i < c->alertmanagers_n; i++) {
		one = &c->alertmanagers[i];
		if ((rc = http_config_check_files(&one->http, err)) || (rc = sd_check_files(&one->sd, err)))
			return err_wrap(err, rc, "alertmanagers, entry %zu", i + 1);
	}
	return ERR_OK;
}
