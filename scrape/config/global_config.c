/* The section global: defaults of jobs and rules, and external labels. */
#include "scrape/config/global_config.h"

#include <stdlib.h>

#include "base/quote.h"
#include "base/yaml/problems.h"
#include "scrape/config/foreign.h"

#define TEXT "configuration"

static void config_add_variable(struct buf *out, struct str name)
{
	char key[256];
	const char *v;

	if (name.len == 0 || name.len >= sizeof(key))
		return;
	memcpy(key, name.ptr, name.len);
	key[name.len] = '\0';
	v = getenv(key);
	if (v)
		buf_add_cstr(out, v);
}

static bool config_is_word(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Expands $name and ${name} from the environment ("" if unset), and $$ to a dollar sign. */
static void config_expand(struct buf *out, struct str s)
{
	const char *close;
	size_t n;

	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] != '$' || i + 1 == s.len) {
			buf_add_char(out, s.ptr[i]);
		} else if (s.ptr[i + 1] == '$') {
			buf_add_char(out, '$');
			i++;
		} else if (s.ptr[i + 1] == '{' && (close = memchr(s.ptr + i, '}', s.len - i))) {
			config_add_variable(
				out, (struct str){ s.ptr + i + 2, (size_t)(close - s.ptr) - i - 2 });
			i = (size_t)(close - s.ptr);
		} else {
			for (n = 0; i + 1 + n < s.len && config_is_word(s.ptr[i + 1 + n]); n++)
				;
			if (n == 0)
				buf_add_char(out, '$');
			config_add_variable(out, (struct str){ s.ptr + i + 1, n });
			i += n;
		}
	}
}

static enum err_code config_decode_external(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	struct labels_builder b;
	struct buf expanded = { 0 };
	const struct yaml_node *c;
	struct str value;

	if (n->kind != YAML_MAPPING)
		return yaml_err(n, err, ERR_INVALID, "expected a map of label names to values");
	labels_builder_init(&b, ctx->arena, (struct labels){ 0 });
	for (c = n->child; c; c = c->next) {
		if (!label_name_valid(c->key->text))
			return yaml_err(c->key, err, ERR_INVALID,
				"%s is not a valid label name: " LABEL_NAME_RULE, QUOTED(c->key->text));
		if (c->kind != YAML_SCALAR)
			return yaml_err(
				c, err, ERR_INVALID, "expected the value of label %s", QUOTED(c->key->text));
		config_expand(&expanded, c->text);
		value = str_dup(ctx->arena, buf_str(&expanded));
		if (buf_failed(&expanded) || !value.ptr) {
			buf_release(&expanded);
			return arena_fail(ctx->arena, TEXT, err);
		}
		buf_release(&expanded);
		if (!label_value_valid(value))
			return yaml_err(c, err, ERR_INVALID, "%s is not a valid value for an external label",
				QUOTED(value));
		labels_builder_set(&b, c->key->text, value);
	}
	return labels_builder_build(&b, field, err);
}

#define AT(member) offsetof(struct global_config, member)
/* clang-format off */
static const struct yaml_field global_table[] = {
	{ "scrape_interval", YAML_DURATION, AT(scrape_interval_ns), NULL, NULL,
		"How often each profile of a target is taken, unless its job says otherwise.", 0 },
	{ "scrape_timeout", YAML_DURATION, AT(scrape_timeout_ns), NULL, NULL,
		"How long a scrape may take. A profile that is measured over some seconds has these on "
		"top.", 0, .limits = "at most `scrape_interval`" },
	{ "evaluation_interval", YAML_DURATION, AT(evaluation_interval_ns), NULL, NULL,
		"How often groups of rules are evaluated, unless they say otherwise.", 0 },
	{ "rule_query_offset", YAML_DURATION, AT(rule_query_offset_ns), NULL, NULL,
		"How much earlier than now the queries of rules look, so that late profiles count.", 0 },
	{ "body_size_limit", YAML_BYTES, AT(body_size_limit), NULL, NULL,
		"The largest profile, as it is sent. A larger one makes the scrape fail.", 0 },
	{ "sample_limit", YAML_UINT, AT(sample_limit), NULL, NULL,
		"The most samples of one profile; more make the scrape fail. 0: no limit.", 0 },
	{ "target_limit", YAML_UINT, AT(target_limit), NULL, NULL,
		"The most targets of one job; more make all of them fail. 0: no limit.", 0 },
	{ "label_limit", YAML_UINT, AT(label_limit), NULL, NULL,
		"The most labels of a series or a sample. 0: no limit.", 0 },
	{ "label_name_length_limit", YAML_UINT, AT(label_name_length_limit), NULL, NULL,
		"The longest name of a label, in bytes. 0: no limit.", 0 },
	{ "label_value_length_limit", YAML_UINT, AT(label_value_length_limit), NULL, NULL,
		"The longest value of a label, in bytes. 0: no limit.", 0 },
	{ "keep_dropped_targets", YAML_UINT, AT(keep_dropped_targets), NULL, NULL,
		"How many dropped targets of a job are kept to be shown. 0: all.", 0 },
	{ "external_labels", YAML_CUSTOM, AT(external_labels), NULL, config_decode_external,
		"Labels of what leaves this server: alerts and federation. `$NAME` and `${NAME}` are "
		"taken from the environment; `$$` is a dollar sign.", 0, .takes = "map of strings",
		.example = "{cluster: eu-1}" },
};
/* clang-format on */
#undef AT

static enum err_code config_global_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	const struct global_config *g = out;
	int64_t interval = g->scrape_interval_ns ? g->scrape_interval_ns : CONFIG_INTERVAL_DEFAULT_NS;

	if (g->scrape_timeout_ns > interval)
		return yaml_err(n, err, ERR_INVALID, "global scrape timeout greater than scrape interval");
	return ERR_OK;
}

const struct yaml_schema config_global_schema = {
	.name = "global_config",
	.size = sizeof(struct global_config),
	.fields = global_table,
	.fields_n = sizeof(global_table) / sizeof(global_table[0]),
	.check = config_global_check,
	.foreign = (const struct yaml_foreign *const[]){ global_foreign, NULL },
};

void global_config_fill(struct global_config *g)
{
	if (!g->scrape_interval_ns)
		g->scrape_interval_ns = CONFIG_INTERVAL_DEFAULT_NS;
	if (!g->scrape_timeout_ns)
		g->scrape_timeout_ns = g->scrape_interval_ns < CONFIG_TIMEOUT_DEFAULT_NS ?
			g->scrape_interval_ns :
			CONFIG_TIMEOUT_DEFAULT_NS;
	if (!g->body_size_limit)
		g->body_size_limit = CONFIG_BODY_SIZE_DEFAULT;
	if (!g->evaluation_interval_ns)
		g->evaluation_interval_ns = CONFIG_INTERVAL_DEFAULT_NS;
}
