/*
 * The tables of configuration keys. Each schema has one place: a part, and the chapter that takes
 * the part in, so that a table can link to another one.
 */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/labels.h"
#include "base/net/http_config.h"
#include "base/self/flags.h"
#include "cmd/book/book.h"
#include "cmd/book/config_walk.h"
#include "cmd/book/markdown.h"
#include "promql/rules/rules.h"
#include "scrape/config/config.h"
#include "scrape/config/foreign.h"
#include "web/http/config_file.h"

struct config_place {
	const char *schema, *part, *chapter, *heading;
};

/* clang-format off */
static const struct config_place places[] = {
	{ "config", "config-file", "overview", "Sections of the file" },
	{ "global_config", "config-global", "global", "global" },
	{ "scrape_config", "config-scrape", "jobs", "scrape_configs" },
	{ "profiling_config", "config-pprof", "profiles", "profiling_config" },
	{ "pprof_config", "config-pprof", "profiles", "pprof_config" },
	{ "relabel_config", "config-relabel", "relabelling", "relabel_configs" },
	{ "http_config_file", "config-http-client", "http-clients", "HTTP client settings" },
	{ "basic_auth", "config-http-client", "http-clients", "basic_auth" },
	{ "authorization", "config-http-client", "http-clients", "authorization" },
	{ "oauth2", "config-http-client", "http-clients", "oauth2" },
	{ "tls_config", "config-http-client", "http-clients", "tls_config" },
	{ "header", "config-http-client", "http-clients", "http_headers" },
	{ "sd_configs", "config-discovery", "discovery", "Sources of targets" },
	{ "target group", "config-sd-static", "discovery", "static_configs" },
	{ "file_sd_config", "config-sd-file", "discovery", "file_sd_configs" },
	{ "http_sd_config", "config-sd-http", "discovery", "http_sd_configs" },
	{ "dns_sd_config", "config-sd-dns", "discovery", "dns_sd_configs" },
	{ "kubernetes_sd_config", "config-sd-kubernetes", "kubernetes", "kubernetes_sd_configs" },
	{ "kubernetes.plain", "config-sd-kubernetes", "kubernetes", "namespaces" },
	{ "kubernetes.SelectorConfig", "config-sd-kubernetes", "kubernetes", "selectors" },
	{ "kubernetes.AttachMetadataConfig", "config-sd-kubernetes", "kubernetes", "attach_metadata" },
	{ "consul_sd_config", "config-sd-consul", "registries", "consul_sd_configs" },
	{ "nomad_sd_config", "config-sd-nomad", "registries", "nomad_sd_configs" },
	{ "docker_sd_config", "config-sd-docker", "registries", "docker_sd_configs" },
	{ "ec2_sd_config", "config-sd-ec2", "registries", "ec2_sd_configs" },
	{ "filter", "config-sd-filters", "registries", "filters" },
	{ "push_config", "config-push", "senders", "push_config" },
	{ "debuginfod_config", "config-debuginfod", "native-symbols", "debuginfod" },
	{ "source_link", "config-source-links", "source-links", "source_links" },
	{ "rule_groups", "config-rules", "rules", "A file of rules" },
	{ "rule_group", "config-rules", "rules", "groups" },
	{ "rule", "config-rules", "rules", "rules" },
	{ "alerting_config", "config-alerting", "rules", "alerting" },
	{ "alertmanager_config", "config-alerting", "rules", "alertmanagers" },
	{ "web.Config", "config-web", "web", "The web configuration" },
	{ "web.TLSConfig", "config-web", "web", "tls_server_config" },
	{ "web.HTTPConfig", "config-web", "web", "http_server_config" },
	{ "web.User", "config-web", "web", "users" },
	{ "web.TrustedProxy", "config-web", "web", "trusted_proxy" },
	{ "web.ProxyUser", "config-web", "web", "Users and groups of the proxy" },
	{ "web.ProxyOthers", "config-web", "web", "others" },
	{ "bucket_config", "config-bucket", "object-storage", "bucket" },
	{ "web_identity", "config-bucket", "object-storage", "web_identity" },
	{ "prices", "config-bucket", "object-storage", "prices" },
};
/* clang-format on */
#define PLACES_N (sizeof(places) / sizeof(places[0]))

static const struct config_place *config_place_of(const struct yaml_schema *s)
{
	for (size_t i = 0; i < PLACES_N; i++)
		if (!strcmp(places[i].schema, s->name))
			return &places[i];
	return NULL;
}

/* ---- what is there ---- */

struct config_known {
	struct config *defaults; /* a configuration with one job that says nothing */
	struct config_walk walk;
};

static void config_known_close(struct config_known *k)
{
	config_walk_release(&k->walk);
	config_unref(k->defaults);
}

static enum err_code config_known_open(struct config_known *k, struct err *err)
{
	const struct yaml_schema *const roots[] = { &config_file_schema, &rules_file_schema,
		&web_file_schema };
	enum err_code rc;

	k->defaults = NULL;
	config_walk_init(&k->walk);
	rc = config_load_text(
		"defaults", STR("."), STR("scrape_configs: [{job_name: job}]\n"), &k->defaults, err);
	if (!rc) /* some are filled in after the decoding */
		rc = config_walk_add(&k->walk, &config_global_schema, &k->defaults->global, err);
	for (size_t i = 0; !rc && i < sizeof(roots) / sizeof(roots[0]); i++)
		rc = config_walk_add(&k->walk, roots[i], NULL, err);
	if (rc)
		config_known_close(k);
	return rc;
}

enum err_code config_part_find_problems(const struct config_walk *w, struct err *err)
{
	struct buf found = { 0 };
	enum err_code rc = ERR_OK;

	config_walk_problems(w, &found);
	for (size_t i = 0; i < w->n; i++)
		if (!config_place_of(w->v[i].schema))
			buf_printf(&found, "%s: no part prints this schema\n", w->v[i].schema->name);
	if (found.len || buf_failed(&found))
		rc = err_set(err, ERR_INVALID, "configuration keys:\n" STR_FMT, STR_ARG(buf_str(&found)));
	buf_release(&found);
	return rc;
}

enum err_code config_part_check(struct err *err)
{
	struct config_known k;
	enum err_code rc = config_known_open(&k, err);

	if (rc)
		return rc;
	rc = config_part_find_problems(&k.walk, err);
	config_known_close(&k);
	return rc;
}

/* ---- printing ---- */

static void config_part_print_link(struct buf *out, const struct yaml_schema *s)
{
	const struct config_place *p = config_place_of(s);

	if (!p)
		return;
	buf_printf(out, "[%s](../configure/%s.md#", p->heading, p->chapter);
	for (const char *c = p->heading; *c; c++)
		buf_add_char(out, *c == ' ' ? '-' : *c >= 'A' && *c <= 'Z' ? (char)(*c | 0x20) : *c);
	buf_add_char(out, ')');
}

static void config_part_print_type(struct buf *out, const struct yaml_field *f)
{
	static const char *const names[] = {
		[YAML_STRING] = "string",
		[YAML_SECRET] = "secret",
		[YAML_BOOL] = "boolean",
		[YAML_INT] = "integer",
		[YAML_UINT] = "integer, not negative",
		[YAML_FLOAT] = "number",
		[YAML_DURATION] = "duration",
		[YAML_BYTES] = "size",
		[YAML_LIST] = "list of strings",
		[YAML_STRING_MAP] = "map of strings",
	};

	if (!f->schema) {
		buf_add_cstr(out, f->takes ? f->takes : names[f->type]);
		return;
	}
	if (f->takes || f->type == YAML_LIST)
		buf_printf(out, "%s ", f->takes ? f->takes : "list of");
	config_part_print_link(out, f->schema);
}

static void config_part_print_default(
	struct buf *out, const struct yaml_field *f, const void *values)
{
	const void *at = (const char *)values + f->offset;
	struct buf text = { 0 };

	if (f->unset) {
		markdown_inline(out, f->unset);
		return;
	}
	switch (f->type) {
	case YAML_STRING:
		buf_add_str(&text, *(const struct str *)at);
		break;
	case YAML_BOOL:
		buf_add_cstr(&text, *(const bool *)at ? "true" : "false");
		break;
	case YAML_INT:
		buf_add_i64(&text, *(const int64_t *)at);
		break;
	case YAML_UINT:
		buf_add_u64(&text, *(const uint64_t *)at);
		break;
	case YAML_FLOAT:
		buf_add_double(&text, *(const double *)at);
		break;
	case YAML_DURATION:
		duration_print(&text, *(const int64_t *)at);
		break;
	case YAML_BYTES:
		flags_print_bytes(&text, *(const uint64_t *)at);
		break;
	default: /* secrets, lists and sections: nothing */
		break;
	}
	if (text.len)
		markdown_code(out, buf_str(&text));
	out->failed |= buf_failed(&text);
	buf_release(&text);
}

/* All fields of one home are one row, at the place of the first. */
static bool config_part_print_home(
	struct buf *out, const struct yaml_schema *s, const struct yaml_field *f)
{
	size_t n = 0;

	if (!f->home || f->home == s)
		return false;
	for (const struct yaml_field *before = s->fields; before < f; before++)
		if (before->home == f->home)
			return true;
	buf_add_cstr(out, "| ");
	for (size_t i = 0; i < s->fields_n; i++)
		if (s->fields[i].home == f->home)
			buf_printf(out, "%s`%s`", n++ ? ", " : "", s->fields[i].name);
	buf_add_cstr(out, " | | | See ");
	config_part_print_link(out, f->home);
	buf_add_cstr(out, ". |\n");
	return true;
}

static void config_part_print_field(struct buf *out, const struct yaml_field *f, const void *values)
{
	buf_printf(out, "| `%s` | ", f->name);
	config_part_print_type(out, f);
	buf_add_cstr(out, " | ");
	config_part_print_default(out, f, values);
	buf_add_cstr(out, " | ");
	markdown_inline(out, f->help);
	if (f->limits) {
		buf_add_cstr(out, " Allowed: ");
		markdown_inline(out, f->limits);
		buf_add_char(out, '.');
	}
	if (f->example) {
		buf_add_cstr(out, " Example: ");
		markdown_code(out, str_of(f->example));
	}
	buf_add_cstr(out, " |\n");
}

static void config_part_print(struct buf *out, const struct config_entry *e)
{
	static const char *const columns[] = { "key", "type", "default", "what" };

	buf_printf(out, "%s### %s\n\n", out->len ? "\n" : "", config_place_of(e->schema)->heading);
	markdown_table_begin(out, columns, 4);
	for (size_t i = 0; i < e->schema->fields_n; i++)
		if (!config_part_print_home(out, e->schema, &e->schema->fields[i]))
			config_part_print_field(out, &e->schema->fields[i], e->values);
}

/* The schemata of the part, in the order of the places. */
enum err_code config_part_write(const struct book_part *part, struct buf *out, struct err *err)
{
	struct config_known k;
	enum err_code rc = config_known_open(&k, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < PLACES_N && !rc; i++) {
		size_t at = 0;

		if (strcmp(places[i].part, part->name))
			continue;
		while (at < k.walk.n && strcmp(k.walk.v[at].schema->name, places[i].schema))
			at++;
		if (at < k.walk.n)
			config_part_print(out, &k.walk.v[at]);
		else
			rc = err_set(err, ERR_NOT_FOUND, "no schema %s", places[i].schema);
	}
	if (!rc && !out->len)
		rc = err_set(err, ERR_NOT_FOUND, "no schema is printed by part %s", part->name);
	config_known_close(&k);
	return rc;
}

/* ---- profiles of a job that says nothing ---- */

enum err_code config_part_write_profiles(
	const struct book_part *part, struct buf *out, struct err *err)
{
	static const char *const columns[] = { "profile", "path", "on", "what the endpoint answers" };
	struct config_known k;
	enum err_code rc = config_known_open(&k, err);
	const struct scrape_config *job;

	if (rc)
		return rc;
	job = &k.defaults->scrape[0];
	markdown_table_begin(out, columns, 4);
	for (size_t i = 0; i < job->profiles_n; i++) {
		const struct profile_config *p = &job->profiles[i];
		int64_t every = profile_interval_ns(job, p);

		buf_printf(out, "| `" STR_FMT "` | `" STR_FMT "` | %s", STR_ARG(p->name), STR_ARG(p->path),
			p->enabled ? "yes" : "no");
		if (every > job->scrape_interval_ns) {
			buf_add_cstr(out, ", at most every ");
			duration_print(out, every);
		}
		buf_printf(out, " | %s%s |\n",
			p->delta ? "what it measured over some seconds" : "totals or levels of that time",
			p->optional ? "; a target without it has not failed" : "");
	}
	config_known_close(&k);
	return ERR_OK;
}

/* ---- keys of other programs ---- */

static void config_part_print_foreign(
	struct buf *out, const struct yaml_schema *s, const struct yaml_foreign *f)
{
	static const char *const becomes[] = {
		[YAML_FOREIGN_HINT] = "an error",
		[YAML_FOREIGN_HARMLESS] = "a warning",
		[YAML_FOREIGN_EMPTY] = "a warning if it is empty, else an error",
		[YAML_FOREIGN_SECTION] = "an error; a warning with `--config.ignore-foreign`",
	};

	buf_printf(out, "| `%s` | ", f->name);
	config_part_print_link(out, s);
	buf_printf(out, " | %s | ", becomes[f->kind]);
	markdown_inline(out, f->text);
	buf_add_cstr(out, " |\n");
}

enum err_code config_part_write_foreign(
	const struct book_part *part, struct buf *out, struct err *err)
{
	static const char *const columns[] = { "key", "in", "is", "because, or instead" };
	struct config_known k;
	enum err_code rc = config_known_open(&k, err);

	if (rc)
		return rc;
	markdown_table_begin(out, columns, 4);
	for (size_t i = 0; i < k.walk.n; i++) {
		const struct yaml_schema *s = k.walk.v[i].schema;

		for (const struct yaml_foreign *const *table = s->foreign; table && *table; table++)
			for (const struct yaml_foreign *f = *table; f->name; f++)
				config_part_print_foreign(out, s, f);
	}
	config_known_close(&k);
	return ERR_OK;
}
