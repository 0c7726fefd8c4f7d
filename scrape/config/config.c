#include "scrape/config/config.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/fs.h"
#include "base/net/http_config.h"
#include "base/quote.h"
#include "base/yaml/problems.h"
#include "scrape/config/foreign.h"
#include "scrape/config/global_config.h"
#include "scrape/config/job_config.h"

#define TEXT "configuration"

/* ---- the file ---- */

struct config_file_fields { /* jobs are decoded after `global`, wherever that is in the file */
	struct global_config global;
	bool has_global; /* decoded without an error */
	const struct yaml_node *jobs, *files, *rules, *alerting, *push, *debuginfod, *directories,
		*links, *bucket;
};

static enum err_code config_keep_node(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	if (n->kind != YAML_SEQUENCE)
		return yaml_err(n, err, ERR_INVALID, "expected a list");
	*(const struct yaml_node **)field = n;
	return ERR_OK;
}

static enum err_code config_keep_any(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	*(const struct yaml_node **)field = n;
	return ERR_OK;
}

#define FILE_AT(member) offsetof(struct config_file_fields, member)
/* clang-format off */
static const struct yaml_field file_table[] = {
	{ "global", YAML_STRUCT, FILE_AT(global), &config_global_schema, NULL,
		"Defaults of jobs and of rules.", FILE_AT(has_global) + 1 },
	{ "scrape_configs", YAML_CUSTOM, FILE_AT(jobs), &config_job_schema, config_keep_node,
		"Jobs: what is scraped, how often, and where its targets come from.", 0, .takes = "list of",
		.limits = "at most 100000" },
	{ "scrape_config_files", YAML_CUSTOM, FILE_AT(files), NULL, config_keep_node,
		"Files with more jobs, each below its own `scrape_configs`. The last part of a path may "
		"hold a `*`.", 0, .takes = "list of paths", .example = "[\"jobs/*.yml\"]",
		.limits = "at most 1000" },
	{ "rule_files", YAML_CUSTOM, FILE_AT(rules), NULL, config_keep_node,
		"Files of rules. The last part of a path may hold a `*`.", 0, .takes = "list of paths",
		.example = "[\"rules/*.yml\"]", .limits = "at most 1000" },
	{ "alerting", YAML_CUSTOM, FILE_AT(alerting), &alerting_config_schema, config_keep_any,
		"Alertmanagers, and how labels of alerts are rewritten.", 0 },
	{ "push_config", YAML_CUSTOM, FILE_AT(push), &push_config_schema, config_keep_any,
		"What becomes of profiles that are sent to the server.", 0 },
	{ "debuginfod", YAML_CUSTOM, FILE_AT(debuginfod), &debuginfod_server_schema, config_keep_node,
		"Servers of debug data, asked in this order for what the directories lack.", 0,
		.takes = "list of", .limits = "at most 16" },
	{ "debug_directories", YAML_CUSTOM, FILE_AT(directories), NULL, config_keep_node,
		"Directories with debug data, searched in this order.", 0, .takes = "list of paths",
		.example = "[/usr/lib/debug]", .limits = "at most 64" },
	{ "source_links", YAML_CUSTOM, FILE_AT(links), &source_link_schema, config_keep_node,
		"Links from functions to where their code is kept. The first that fits counts.", 0,
		.takes = "list of", .limits = "at most 256" },
	{ "bucket", YAML_CUSTOM, FILE_AT(bucket), &bucket_section_schema, config_keep_any,
		"The object store that shards publish to and query nodes read.", 0,
		.unset = "no object store" },
};
static const struct yaml_field jobs_file_table[] = {
	{ "scrape_configs", YAML_CUSTOM, FILE_AT(jobs), &config_job_schema, config_keep_node,
		"Jobs, as in the configuration file.", 0, .takes = "list of" },
};
/* clang-format on */

const struct yaml_schema config_file_schema = {
	.name = "config",
	.size = sizeof(struct config_file_fields),
	.fields = file_table,
	.fields_n = sizeof(file_table) / sizeof(file_table[0]),
	.foreign = (const struct yaml_foreign *const[]){ config_foreign, NULL },
};

static const struct yaml_schema jobs_file_schema = {
	.name = "scrape_config_file",
	.size = sizeof(struct config_file_fields),
	.fields = jobs_file_table,
	.fields_n = sizeof(jobs_file_table) / sizeof(jobs_file_table[0]),
};

static enum err_code config_jobs_grow(
	struct config *c, size_t more, const struct yaml_node *n, struct err *err)
{
	if (more > CONFIG_JOBS_MAX || c->scrape_n + more > CONFIG_JOBS_MAX)
		return yaml_err(n, err, ERR_LIMIT, "more than %u scrape configs", CONFIG_JOBS_MAX);
	if (!arena_array_room(&c->arena, &c->scrape, c->scrape_n, more, &c->scrape_cap))
		return arena_fail(&c->arena, TEXT, err);
	return ERR_OK;
}

struct decoding {
	struct config *config;
	struct yaml_ctx ctx;
	const struct global_config *global; /* NULL: it is wrong */
};

static enum err_code config_decode_job(
	struct decoding *d, struct yaml_ctx *ctx, const struct yaml_node *n, struct err *err)
{
	struct config *c = d->config;
	struct scrape_config *job;
	enum err_code rc;

	if (yaml_is_null(n))
		return yaml_err(n, err, ERR_INVALID, "empty or null scrape config section");
	job = &c->scrape[c->scrape_n++]; /* counted first, so that its compiled rules are freed */
	*job = (struct scrape_config){ 0 };
	if ((rc = job_config_decode(ctx, n, d->global, job, err)))
		return rc;
	for (const struct scrape_config *other = c->scrape; other < job; other++)
		if (str_eq(other->job_name, job->job_name))
			return yaml_err(n, err, ERR_INVALID, "found multiple scrape configs with job name %s",
				QUOTED(job->job_name));
	return ERR_OK;
}

/* ctx: of the file that has them */
static enum err_code config_decode_jobs(
	struct decoding *d, struct yaml_ctx *ctx, const struct yaml_node *n, struct err *err)
{
	size_t before = yaml_errors(ctx);
	enum err_code rc;

	if (!n)
		return ERR_OK;
	if ((rc = config_jobs_grow(d->config, n->n, n, err)))
		return rc;
	for (const struct yaml_node *at = n->child; at; at = at->next)
		if ((rc = config_decode_job(d, ctx, at, err)) && !yaml_goes_on(ctx, rc, err))
			return rc;
	return yaml_end(ctx, before, err);
}

static enum err_code config_scrape_config_read_text(
	struct config *c, const char *path, struct str *out, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc;

	rc = fs_read_file(path, YAML_FILE_BYTES_MAX, &b, err);
	if (!rc) {
		*out = str_dup(&c->arena, buf_str(&b));
		if (!out->ptr)
			rc = arena_fail(&c->arena, TEXT, err);
	}
	buf_release(&b);
	return rc;
}

static enum err_code config_load_jobs_file(struct decoding *d, const char *path, struct err *err)
{
	struct config *c = d->config;
	struct yaml_ctx ctx = d->ctx;
	struct yaml_node *root;
	struct config_file_fields f;
	struct str text;
	enum err_code rc;

	ctx.dir = path_dir(str_of(path));
	if ((rc = config_scrape_config_read_text(c, path, &text, err)) ||
		(rc = yaml_parse_all(&c->arena, path, text, ctx.problems, &root, err)) ||
		(rc = yaml_decode(&ctx, &jobs_file_schema, root, &f, err)))
		return rc;
	return config_decode_jobs(d, &ctx, f.jobs, err);
}

/* One '*' at most, in the last segment. */
static bool config_pattern_is_valid(const struct yaml_node *n)
{
	const char *star = n->text.len ? memchr(n->text.ptr, '*', n->text.len) : NULL;
	size_t rest = star ? n->text.len - (size_t)(star - n->text.ptr) : 0;

	return n->kind == YAML_SCALAR && n->text.len && !(star && memchr(star, '/', rest));
}

static enum err_code config_decode_rule_files(
	struct config *c, const struct yaml_ctx *ctx, const struct yaml_node *n, struct err *err)
{
	const struct yaml_node *at;
	const char *path;

	if (!n)
		return ERR_OK;
	if (n->n > CONFIG_FILES_MAX)
		return yaml_err(n, err, ERR_LIMIT, "more than %u rule files", CONFIG_FILES_MAX);
	c->rule_files = arena_array(&c->arena, struct str, n->n);
	if (!c->rule_files)
		return arena_fail(&c->arena, TEXT, err);
	for (at = n->child; at; at = at->next) {
		if (!config_pattern_is_valid(at))
			return yaml_err(at, err, ERR_INVALID, "invalid rule file path %s", QUOTED(at->text));
		if (!(path = path_join(&c->arena, ctx->dir, at->text)))
			return arena_fail(&c->arena, TEXT, err);
		c->rule_files[c->rule_files_n++] = str_of(path);
	}
	return ERR_OK;
}

static enum err_code config_load_pattern(
	struct decoding *d, const struct yaml_node *n, struct err *err)
{
	struct config *c = d->config;
	const char *path;
	struct str dir, last, *names;
	size_t names_n, loaded = 0, before = yaml_errors(&d->ctx);
	enum err_code rc;

	if (!config_pattern_is_valid(n))
		return yaml_err(n, err, ERR_INVALID, "invalid scrape config file path %s", QUOTED(n->text));
	path = path_join(&c->arena, d->ctx.dir, n->text);
	if (!path)
		return arena_fail(&c->arena, TEXT, err);
	if (!strpbrk(path, "*?["))
		return config_load_jobs_file(d, path, err);
	dir = str_dup(&c->arena, path_dir(str_of(path)));
	last = str_base_name(str_of(path));
	if (!dir.ptr || fs_list(dir.ptr, &c->arena, &names, &names_n, NULL))
		return ERR_OK; /* a pattern may match nothing */
	for (size_t i = 0; i < names_n; i++) {
		if (fnmatch(last.ptr, names[i].ptr, 0) != 0)
			continue;
		if (++loaded > CONFIG_FILES_MAX)
			return yaml_err(n, err, ERR_LIMIT, "more than %u files", CONFIG_FILES_MAX);
		path = path_join(&c->arena, dir, names[i]);
		rc = path ? config_load_jobs_file(d, path, err) : arena_fail(&c->arena, TEXT, err);
		if (rc && !yaml_goes_on(&d->ctx, rc, err))
			return rc;
	}
	return yaml_end(&d->ctx, before, err);
}

static enum err_code config_load_patterns(
	struct decoding *d, const struct yaml_node *n, struct err *err)
{
	size_t before = yaml_errors(&d->ctx);
	enum err_code rc;

	if (!n)
		return ERR_OK;
	if (n->n > CONFIG_FILES_MAX)
		return yaml_err(n, err, ERR_LIMIT, "more than %u files", CONFIG_FILES_MAX);
	for (const struct yaml_node *at = n->child; at; at = at->next)
		if ((rc = config_load_pattern(d, at, err)) && !yaml_goes_on(&d->ctx, rc, err))
			return rc;
	return yaml_end(&d->ctx, before, err);
}

/* One section after the other, in the order of this list: each may be wrong. */
static enum err_code config_decode_sections(
	struct decoding *d, const struct config_file_fields *f, bool with_files, struct err *err)
{
	struct config *c = d->config;
	struct yaml_ctx *ctx = &d->ctx;
	size_t before = yaml_errors(ctx);
	enum err_code rc;

	if ((rc = config_decode_rule_files(c, ctx, f->rules, err)) && !yaml_goes_on(ctx, rc, err))
		return rc;
	if (f->alerting && (rc = alerting_config_decode(ctx, f->alerting, &c->alerting, err)) &&
		!yaml_goes_on(ctx, rc, err))
		return rc;
	if ((rc = push_config_decode(ctx, f->push, &c->push, err)) && !yaml_goes_on(ctx, rc, err))
		return rc;
	rc = debuginfod_config_decode(ctx, f->debuginfod, f->directories, &c->debuginfod, err);
	if (rc && !yaml_goes_on(ctx, rc, err))
		return rc;
	if ((rc = source_links_decode(ctx, f->links, &c->source_links, err)) &&
		!yaml_goes_on(ctx, rc, err))
		return rc;
	if ((rc = bucket_section_decode(ctx, f->bucket, &c->bucket, err)) &&
		!yaml_goes_on(ctx, rc, err))
		return rc;
	if ((rc = config_decode_jobs(d, ctx, f->jobs, err)) && !yaml_goes_on(ctx, rc, err))
		return rc;
	if (with_files && (rc = config_load_patterns(d, f->files, err)) && !yaml_goes_on(ctx, rc, err))
		return rc;
	return yaml_end(ctx, before, err);
}

static enum err_code config_decode(struct config *c, const char *name, struct str dir,
	const struct config_reading *how, struct yaml_problems *problems, struct err *err)
{
	struct decoding d = { .config = c,
		.ctx = { .arena = &c->arena,
			.dir = dir,
			.problems = problems,
			.take_foreign = how->ignore_foreign } };
	size_t before = yaml_errors(&d.ctx);
	struct config_file_fields f;
	enum err_code rc;

	if ((rc = yaml_parse_all(&c->arena, name, c->text, problems, &c->root, err)))
		return rc;
	if ((rc = yaml_decode(&d.ctx, &config_file_schema, c->root, &f, err)) &&
		!yaml_goes_on(&d.ctx, rc, err))
		return rc;
	if (f.has_global || yaml_is_null(yaml_get(c->root, "global"))) {
		c->global = f.global;
		global_config_fill(&c->global);
		d.global = &c->global;
	}
	if ((rc = config_decode_sections(&d, &f, !how->syntax_only, err)) &&
		!yaml_goes_on(&d.ctx, rc, err))
		return rc;
	return yaml_end(&d.ctx, before, err);
}

static struct config *config_new(void)
{
	struct config *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	atomic_init(&c->refs, 1);
	arena_init(&c->arena, CONFIG_ARENA_BYTES_MAX);
	return c;
}

static enum err_code config_finish(struct config *c, struct yaml_problems *problems,
	enum err_code rc, struct config **out, struct err *err)
{
	if (rc)
		yaml_problems_add(problems, err);
	yaml_problems_sort(problems);
	if (rc) {
		config_unref(c);
		return rc;
	}
	*out = c;
	return ERR_OK;
}

enum err_code config_read_file(const char *path, const struct config_reading *how,
	struct yaml_problems *problems, struct config **out, struct err *err)
{
	struct config *c = config_new();
	enum err_code rc;

	if (!c)
		return err_nomem(err, "configuration");
	c->path = str_dup(&c->arena, str_of(path));
	if (!c->path.ptr)
		rc = arena_fail(&c->arena, TEXT, err);
	else if (!(rc = config_scrape_config_read_text(c, path, &c->text, err)))
		rc = config_decode(c, path, path_dir(c->path), how, problems, err);
	return config_finish(c, problems, rc, out, err);
}

enum err_code config_read_text(const char *name, struct str dir, struct str text,
	const struct config_reading *how, struct yaml_problems *problems, struct config **out,
	struct err *err)
{
	struct config *c = config_new();
	enum err_code rc;

	if (!c)
		return err_nomem(err, "configuration");
	c->path = STR("");
	c->text = str_dup(&c->arena, text);
	dir = str_dup(&c->arena, dir);
	if (!c->text.ptr || !dir.ptr)
		rc = arena_fail(&c->arena, TEXT, err);
	else
		rc = config_decode(c, name, dir, how, problems, err);
	return config_finish(c, problems, rc, out, err);
}

enum err_code config_first_error(
	const struct yaml_problems *problems, enum err_code rc, struct err *err)
{
	size_t i = 0, more = problems->errors_n - 1;

	while (i < problems->n && !problems->v[i].code)
		i++;
	if (!rc || !problems->errors_n || i == problems->n)
		return rc;
	if (!more)
		return err_set(err, rc, "%s", problems->v[i].text);
	return err_set(err, rc, "%s (and %zu more error%s; `epitool check config` lists them)",
		problems->v[i].text, more, more == 1 ? "" : "s");
}

enum err_code config_load_file(const char *path, struct config **out, struct err *err)
{
	struct yaml_problems problems;
	enum err_code rc;

	yaml_problems_init(&problems);
	rc = config_read_file(path, &(struct config_reading){ 0 }, &problems, out, err);
	rc = config_first_error(&problems, rc, err);
	yaml_problems_release(&problems);
	return rc;
}

enum err_code config_load_text(
	const char *name, struct str dir, struct str text, struct config **out, struct err *err)
{
	struct yaml_problems problems;
	enum err_code rc;

	yaml_problems_init(&problems);
	rc = config_read_text(name, dir, text, &(struct config_reading){ 0 }, &problems, out, err);
	rc = config_first_error(&problems, rc, err);
	yaml_problems_release(&problems);
	return rc;
}

struct config *config_ref(struct config *c)
{
	unsigned before = atomic_fetch_add(&c->refs, 1);

	assert(before > 0);
	return c;
}

void config_unref(struct config *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	for (size_t i = 0; i < c->scrape_n; i++)
		job_config_release(&c->scrape[i]);
	alerting_config_release(&c->alerting);
	push_config_release(&c->push);
	debuginfod_config_release(&c->debuginfod);
	source_links_release(&c->source_links);
	arena_release(&c->arena);
	free(c);
}

enum err_code config_check_files(
	const struct config *c, struct yaml_problems *problems, struct err *err)
{
	struct yaml_ctx ctx = { .problems = problems };
	size_t before = yaml_errors(&ctx);
	const struct scrape_config *job;
	enum err_code rc;
	struct err why;

	for (size_t i = 0; i < 2 * c->scrape_n; i++) {
		job = &c->scrape[i / 2];
		rc = i % 2 ? sd_check_files(&job->sd, &why) : http_config_check_files(&job->http, &why);
		if (!rc)
			continue;
		rc = yaml_err(job->at, err, rc, "job %s: %s", QUOTED(job->job_name), why.msg);
		if (!yaml_goes_on(&ctx, rc, err))
			return rc;
	}
	if ((rc = alerting_config_check_files(&c->alerting, err)) && !yaml_goes_on(&ctx, rc, err))
		return rc;
	if ((rc = debuginfod_config_check_files(&c->debuginfod, err)) && !yaml_goes_on(&ctx, rc, err))
		return rc;
	if ((rc = bucket_section_check_files(&c->bucket, err)) && !yaml_goes_on(&ctx, rc, err))
		return rc;
	return yaml_end(&ctx, before, err);
}
