#include "discovery/file_sd.h"

#include <fnmatch.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/quote.h"

#define PATTERNS_MAX 1000u
#define GROUPS_BYTES_MAX (512u << 20) /* of one document's groups in memory */

METRIC_COUNTER(failures, "epimetheus_discovery_failures_total",
	"Sources of targets that could not be read.", "provider");
METRIC_COUNTER(reads, "epimetheus_discovery_file_reads_total", "Target files read.", NULL);

/* ---- configuration ---- */

static bool name_is_valid(struct str path)
{
	static const char *const endings[] = { ".json", ".yml", ".yaml", ".JSON", ".YML", ".YAML" };
	const char *star = path.len ? memchr(path.ptr, '*', path.len) : NULL;

	if (star && memchr(star, '/', path.len - (size_t)(star - path.ptr)))
		return false;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (str_has_suffix(path, str_of(endings[i])))
			return path.len > strlen(endings[i]);
	return false;
}

static enum err_code decode_files(struct yaml_ctx *ctx, const struct yaml_node *n, void *field,
	struct err *err)
{
	struct file_sd_config *out = field;
	const struct yaml_node *c;

	if (n->kind != YAML_SEQUENCE)
		return yaml_err(n, err, ERR_INVALID, "expected a list of paths");
	if (n->n > PATTERNS_MAX)
		return yaml_err(n, err, ERR_LIMIT, "more than %u paths", PATTERNS_MAX);
	out->files = arena_array(ctx->arena, struct str, n->n);
	if (!out->files)
		return arena_fail(ctx->arena, "configuration", err);
	for (c = n->child; c; c = c->next) {
		if (c->kind != YAML_SCALAR || !name_is_valid(c->text))
			return yaml_err(c, err, ERR_INVALID, "path name %s is not valid for file discovery",
				QUOTED(c->text));
		out->files[out->files_n] = str_of(path_join(ctx->arena, ctx->dir, c->text));
		if (!out->files[out->files_n++].ptr)
			return arena_fail(ctx->arena, "configuration", err);
	}
	return ERR_OK;
}

/* clang-format off */
static const struct yaml_field file_fields[] = {
	{ "files", YAML_CUSTOM, 0, NULL, decode_files, "paths, * in the last element", 0 },
	{ "refresh_interval", YAML_DURATION, offsetof(struct file_sd_config, refresh_interval_ns),
		NULL, NULL, "how often to read again what was not noticed", 0 },
};
/* clang-format on */

static void file_defaults(struct yaml_ctx *ctx, void *out)
{
	*(struct file_sd_config *)out = (struct file_sd_config){
		.refresh_interval_ns = FILE_SD_REFRESH_DEFAULT_NS,
	};
}

static enum err_code file_check(struct yaml_ctx *ctx, const struct yaml_node *n, void *out,
	struct err *err)
{
	const struct file_sd_config *c = out;

	if (c->files_n == 0)
		return yaml_err(n, err, ERR_INVALID,
			"file service discovery config must contain at least one path name");
	if (c->refresh_interval_ns < NS_PER_S)
		return yaml_err(n, err, ERR_INVALID, "refresh_interval of file discovery is under 1s");
	return ERR_OK;
}

static const struct yaml_schema file_schema = {
	.name = "file_sd_config",
	.size = sizeof(struct file_sd_config),
	.fields = file_fields,
	.fields_n = sizeof(file_fields) / sizeof(file_fields[0]),
	.defaults = file_defaults,
	.check = file_check,
};

enum err_code sd_file_decode(struct yaml_ctx *ctx, const struct yaml_node *n, void *field,
	struct err *err)
{
	struct sd_configs *out = field;
	const struct yaml_node *c;
	enum err_code rc;

	if (n->kind != YAML_SEQUENCE)
		return yaml_err(n, err, ERR_INVALID, "expected a list of file_sd_config");
	out->files = arena_array(ctx->arena, struct file_sd_config, n->n);
	if (!out->files)
		return arena_fail(ctx->arena, "configuration", err);
	for (c = n->child; c; c = c->next) {
		if (yaml_is_null(c))
			return yaml_err(c, err, ERR_INVALID, "empty or null section in file_sd_configs");
		if ((rc = yaml_decode(ctx, &file_schema, c, &out->files[out->files_n], err)))
			return rc;
		out->files_n++;
	}
	return ERR_OK;
}

/* ---- documents ---- */

struct document {
	char *path;
	struct groups *groups; /* NULL: never read well */
};

struct documents {
	struct document *v;
	size_t n, cap;
};

struct file_sd {
	struct arena arena;
	const char **dirs; /* of each pattern */
	const char **patterns; /* its last element */
	const char **paths; /* the whole */
	size_t n;
	int64_t refresh_interval_ns;
	struct documents docs;
};

static void documents_release(struct documents *d)
{
	for (size_t i = 0; i < d->n; i++) {
		free(d->v[i].path);
		groups_unref(d->v[i].groups);
	}
	free(d->v);
	*d = (struct documents){ 0 };
}

static const struct document *documents_find(const struct documents *d, const char *path)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->v[i].path, path) == 0)
			return &d->v[i];
	return NULL;
}

/* Takes over groups' reference in any case. */
static enum err_code documents_add(struct documents *d, const char *path, struct groups *groups,
	struct err *err)
{
	size_t cap = d->cap ? d->cap * 2 : 16;
	struct document *v = d->v;

	if (d->n == FILE_SD_FILES_MAX) {
		groups_unref(groups);
		return err_set(err, ERR_LIMIT, "more than %u target files", FILE_SD_FILES_MAX);
	}
	if (d->n == d->cap && (v = reallocarray(d->v, cap, sizeof(*v)))) {
		d->v = v;
		d->cap = cap;
	}
	if (v)
		d->v[d->n].path = strdup(path);
	if (!v || !d->v[d->n].path) {
		groups_unref(groups);
		return err_set(err, ERR_NOMEM, "out of memory for target files");
	}
	d->v[d->n++].groups = groups;
	return ERR_OK;
}

static enum err_code parse(struct arena *a, const char *path, struct str text,
	struct target_group **v, size_t *n, struct err *err)
{
	struct str p = str_of(path);

	if (str_has_suffix(p, STR(".json")) || str_has_suffix(p, STR(".JSON")))
		return target_groups_from_json(a, path, text, v, n, err);
	return target_groups_from_yaml(a, path, text, v, n, err);
}

/*
 * The parser's tree dies with `scratch`; what stays are copies with __meta_filepath among their
 * labels.
 */
static enum err_code keep_groups(struct arena *scratch, const char *path,
	const struct target_group *v, size_t n, struct groups *out, struct err *err)
{
	struct labels_builder b;
	struct target_group g;
	enum err_code rc;

	out->v = arena_array(&out->arena, struct target_group, n);
	if (!out->v)
		return arena_fail(&out->arena, "target groups", err);
	for (size_t i = 0; i < n; i++) {
		g = v[i];
		labels_builder_init(&b, scratch, g.labels);
		labels_builder_set(&b, STR("__meta_filepath"), str_of(path));
		if ((rc = labels_builder_build(&b, &g.labels, err)) ||
		    (rc = target_group_dup(&out->arena, &g, &out->v[out->n++], err)))
			return rc;
	}
	return ERR_OK;
}

static enum err_code read_document(const char *path, struct groups **out, struct err *err)
{
	struct buf text = { 0 };
	struct target_group *v = NULL;
	struct groups *groups = groups_new(GROUPS_BYTES_MAX);
	struct arena scratch;
	enum err_code rc;
	size_t n = 0;

	arena_init(&scratch, GROUPS_BYTES_MAX);
	if (!groups)
		rc = err_set(err, ERR_NOMEM, "out of memory for target files");
	else if (!(rc = fs_read_file(path, FILE_SD_FILE_BYTES_MAX, &text, err)) &&
		 !(rc = parse(&scratch, path, buf_str(&text), &v, &n, err)))
		rc = keep_groups(&scratch, path, v, n, groups, err);
	arena_release(&scratch);
	buf_release(&text);
	if (rc) {
		groups_unref(groups);
		return rc;
	}
	*out = groups;
	return ERR_OK;
}

enum err_code sd_check_files(const struct sd_configs *c, struct err *err)
{
	struct groups *groups;
	struct str path;
	enum err_code rc;

	for (size_t i = 0; i < c->files_n; i++)
		for (size_t j = 0; j < c->files[i].files_n; j++) {
			path = c->files[i].files[j];
			if (strpbrk(path.ptr, "*?["))
				continue;
			if ((rc = read_document(path.ptr, &groups, err)))
				return rc;
			groups_unref(groups);
		}
	return ERR_OK;
}

/* ---- the provider ---- */

enum err_code file_sd_open(const struct file_sd_config *c, struct file_sd **out, struct err *err)
{
	struct file_sd *f = calloc(1, sizeof(*f));
	const char *slash;

	if (!f)
		return err_set(err, ERR_NOMEM, "out of memory for file discovery");
	f->refresh_interval_ns = c->refresh_interval_ns;
	f->dirs = arena_array(&f->arena, const char *, c->files_n);
	f->patterns = arena_array(&f->arena, const char *, c->files_n);
	f->paths = arena_array(&f->arena, const char *, c->files_n);
	if (!f->dirs || !f->patterns || !f->paths)
		goto nomem;
	for (size_t i = 0; i < c->files_n; i++) {
		f->paths[i] = str_dup(&f->arena, c->files[i]).ptr;
		f->dirs[i] = str_dup(&f->arena, path_dir(c->files[i])).ptr;
		if (!f->paths[i] || !f->dirs[i])
			goto nomem;
		slash = strrchr(f->paths[i], '/');
		f->patterns[i] = slash ? slash + 1 : f->paths[i];
	}
	f->n = c->files_n;
	*out = f;
	return ERR_OK;
nomem:
	file_sd_close(f);
	return err_set(err, ERR_NOMEM, "out of memory for file discovery");
}

void file_sd_close(struct file_sd *f)
{
	if (!f)
		return;
	documents_release(&f->docs);
	arena_release(&f->arena);
	free(f);
}

int64_t file_sd_refresh_interval_ns(const struct file_sd *f)
{
	return f->refresh_interval_ns;
}

/* Reads one document into `now`, or takes over what it gave before. */
static enum err_code refresh_one(const struct file_sd *f, const char *path, struct documents *now,
	struct err *err)
{
	const struct document *before = documents_find(&f->docs, path);
	struct groups *groups = NULL;
	struct err why;

	if (documents_find(now, path))
		return ERR_OK;
	if (read_document(path, &groups, &why)) {
		log_warn("discovery", "target file not usable", LOG_S("file", path),
			LOG_S("kept", before && before->groups ? "last targets" : "nothing"), LOG_E(&why));
		metric_add(&failures, "file", 1);
		if (before && before->groups)
			groups = groups_ref(before->groups);
	} else {
		metric_add(&reads, NULL, 1);
	}
	return documents_add(now, path, groups, err);
}

static enum err_code refresh_pattern(const struct file_sd *f, size_t i, struct documents *now,
	struct err *err)
{
	struct arena a;
	struct str *names = NULL;
	size_t n = 0;
	enum err_code rc = ERR_OK;
	char *path;

	if (!strpbrk(f->patterns[i], "*?["))
		return fs_exists(f->paths[i]) ? refresh_one(f, f->paths[i], now, err) : ERR_OK;
	arena_init(&a, GROUPS_BYTES_MAX);
	if (fs_list(f->dirs[i], &a, &names, &n, NULL))
		n = 0; /* no such directory yet: no documents */
	for (size_t k = 0; k < n && !rc; k++) {
		if (fnmatch(f->patterns[i], names[k].ptr, 0) != 0)
			continue;
		path = path_join(&a, str_of(f->dirs[i]), names[k]);
		rc = path ? refresh_one(f, path, now, err) : arena_fail(&a, "file discovery", err);
	}
	arena_release(&a);
	return rc;
}

static int document_cmp(const void *a, const void *b)
{
	return strcmp(((const struct document *)a)->path, ((const struct document *)b)->path);
}

void file_sd_refresh(struct file_sd *f)
{
	struct documents now = { 0 };
	enum err_code rc = ERR_OK;
	struct err err;

	for (size_t i = 0; i < f->n && !rc; i++)
		rc = refresh_pattern(f, i, &now, &err);
	if (rc) {
		log_warn("discovery", "file discovery keeps its last targets", LOG_E(&err));
		metric_add(&failures, "file", 1);
		documents_release(&now);
		return;
	}
	if (now.n)
		qsort(now.v, now.n, sizeof(*now.v), document_cmp);
	documents_release(&f->docs);
	f->docs = now;
}

void file_sd_inherit(struct file_sd *f, const struct file_sd *old)
{
	const struct document *d;

	for (size_t i = 0; i < old->docs.n; i++) {
		d = &old->docs.v[i];
		if (d->groups && !documents_find(&f->docs, d->path) &&
		    documents_add(&f->docs, d->path, groups_ref(d->groups), NULL))
			return; /* out of memory: a fallback less */
	}
}

const struct groups *file_sd_document(const struct file_sd *f, size_t i)
{
	static const struct groups none;

	if (i >= f->docs.n)
		return NULL;
	return f->docs.v[i].groups ? f->docs.v[i].groups : &none;
}

const char *file_sd_dir(const struct file_sd *f, size_t i)
{
	return i < f->n ? f->dirs[i] : NULL;
}

/*
 * Names in ".." are how Kubernetes swaps a mounted ConfigMap: the documents are links through
 * "..data".
 */
bool file_sd_concerns(const struct file_sd *f, size_t i, struct str name)
{
	return str_has_prefix(name, STR("..")) || fnmatch(f->patterns[i], name.ptr, 0) == 0;
}
