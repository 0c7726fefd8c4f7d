#include "discovery/sources/file_sd.h"

#include <event2/event.h>
#include <fnmatch.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/net/loop.h"
#include "base/quote.h"
#include "discovery/sources/source.h"
#include "discovery/sources/target_files.h"

#define PATTERNS_MAX 1000u
#define LIST_BYTES_MAX (64u << 20) /* names in the directories */
/* An editor or a ConfigMap changes several files at once: they are read together. */
#define SETTLE_NS (50 * NS_PER_MS)
/* When to try again to watch a directory. */
#define UNWATCHED_RETRY_NS (5 * NS_PER_S)

/* ---- configuration ---- */

struct file_sd_config {
	struct str *files; /* paths or patterns, with the configuration's directory */
	size_t files_n;
	int64_t refresh_interval_ns;
};

static bool file_sd_name_is_valid(struct str path)
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

static enum err_code file_sd_decode_files(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
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
		if (c->kind != YAML_SCALAR || !file_sd_name_is_valid(c->text))
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
	{ "files", YAML_CUSTOM, 0, NULL, file_sd_decode_files,
		"Files of targets in YAML or JSON. The last part of a path may hold a `*`.", 0,
		.takes = "list of paths", .unset = "required", .example = "[\"targets/*.yml\"]" },
	{ "refresh_interval", YAML_DURATION, offsetof(struct file_sd_config, refresh_interval_ns), NULL,
		NULL,
		"How often files are read again even if no change was noticed. A change is usually "
		"noticed at once.", 0 },
};
/* clang-format on */

static void file_sd_defaults(struct yaml_ctx *ctx, void *out)
{
	*(struct file_sd_config *)out = (struct file_sd_config){
		.refresh_interval_ns = FILE_SD_REFRESH_DEFAULT_NS,
	};
}

static enum err_code file_sd_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	const struct file_sd_config *c = out;

	if (c->files_n == 0)
		return yaml_err(n, err, ERR_INVALID,
			"file service discovery config must contain at least one path name");
	if (c->refresh_interval_ns < NS_PER_S)
		return yaml_err(n, err, ERR_INVALID, "refresh_interval of file discovery is under 1s");
	return ERR_OK;
}

const struct yaml_schema file_sd_schema = {
	.name = "file_sd_config",
	.size = sizeof(struct file_sd_config),
	.fields = file_fields,
	.fields_n = sizeof(file_fields) / sizeof(file_fields[0]),
	.defaults = file_sd_defaults,
	.check = file_sd_check,
};

static enum err_code file_sd_check_files(const void *config, struct err *err)
{
	const struct file_sd_config *c = config;
	enum err_code rc;

	for (size_t i = 0; i < c->files_n; i++)
		if (!strpbrk(c->files[i].ptr, "*?[") && (rc = target_file_check(c->files[i].ptr, err)))
			return rc;
	return ERR_OK;
}

/* ---- the source ---- */

struct pattern {
	const char *path; /* all of it */
	const char *last; /* its last element */
	struct dir_watch watch;
};

struct file_sd {
	struct target_files *shared;
	struct sd_source *host;
	struct arena arena;
	struct pattern *patterns;
	size_t patterns_n;
	int64_t refresh_interval_ns;
	struct event *timer;
	bool noticed; /* a change; the timer waits for further ones */
	struct target_file **docs; /* ascending by path */
	size_t docs_n;
	struct groups *published; /* NULL: nothing yet */
};

/* In the order in which they are found. */
struct paths {
	struct arena arena;
	const char **v;
	size_t n;
};

static enum err_code paths_add(struct paths *p, const char *path, struct err *err)
{
	if (!path)
		return arena_fail(&p->arena, "file discovery", err);
	if (p->n == FILE_SD_FILES_MAX)
		return err_set(err, ERR_LIMIT, "more than %u target files", FILE_SD_FILES_MAX);
	p->v[p->n++] = path;
	return ERR_OK;
}

static enum err_code pattern_match(const struct pattern *pat, struct paths *out, struct err *err)
{
	struct str *names = NULL;
	enum err_code rc = ERR_OK;
	size_t n = 0;

	if (!strpbrk(pat->last, "*?["))
		return fs_exists(pat->path) ? paths_add(out, pat->path, err) : ERR_OK;
	if (fs_list(pat->watch.dir, &out->arena, &names, &n, NULL))
		return ERR_OK; /* no such directory yet: no documents */
	for (size_t i = 0; i < n && !rc; i++)
		if (fnmatch(pat->last, names[i].ptr, 0) == 0)
			rc = paths_add(out, path_join(&out->arena, str_of(pat->watch.dir), names[i]), err);
	return rc;
}

static int file_sd_path_cmp(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The documents that exist now, ascending and distinct. */
static enum err_code file_sd_find_documents(
	const struct file_sd *f, struct paths *out, struct err *err)
{
	enum err_code rc = ERR_OK;
	size_t n = 0;

	out->v = arena_array(&out->arena, const char *, FILE_SD_FILES_MAX);
	if (!out->v)
		return arena_fail(&out->arena, "file discovery", err);
	for (size_t i = 0; i < f->patterns_n && !rc; i++)
		rc = pattern_match(&f->patterns[i], out, err);
	if (rc)
		return rc;
	qsort(out->v, out->n, sizeof(*out->v), file_sd_path_cmp);
	for (size_t i = 0; i < out->n; i++)
		if (i == 0 || strcmp(out->v[i], out->v[n - 1]) != 0)
			out->v[n++] = out->v[i];
	out->n = n;
	return ERR_OK;
}

static void file_sd_release_documents(struct target_file **t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		target_file_release(t[i]);
	free(t);
}

/* Acquires the new documents before it releases the old: those in both keep their groups. */
static enum err_code file_sd_take_documents(
	struct file_sd *f, const struct paths *paths, struct err *err)
{
	struct target_file **v = calloc(paths->n ? paths->n : 1, sizeof(struct target_file *));
	enum err_code rc;

	if (!v)
		return err_nomem(err, "target files");
	for (size_t i = 0; i < paths->n; i++)
		if ((rc = target_file_acquire(f->shared, paths->v[i], &v[i], err))) {
			file_sd_release_documents(v, i);
			return rc;
		}
	file_sd_release_documents(f->docs, f->docs_n);
	f->docs = v;
	f->docs_n = paths->n;
	return ERR_OK;
}

struct failure { /* of one document */
	struct failure *next;
	struct err why;
};

static enum err_code file_sd_read_documents(struct file_sd *f, struct arena *a, struct groups **out,
	struct failure **failed, struct err *err)
{
	struct groups **parts = arena_array(a, struct groups *, f->docs_n);
	struct failure *one;
	struct err why;

	if (!parts)
		return arena_fail(a, "file discovery", err);
	for (size_t i = 0; i < f->docs_n; i++) {
		if (target_file_read(f->docs[i], &why)) {
			if (!(one = arena_new(a, struct failure)))
				return arena_fail(a, "file discovery", err);
			*one = (struct failure){ NULL, why };
			*failed = one;
			failed = &one->next;
		}
		parts[i] = f->docs[i]->groups;
	}
	return groups_join(parts, f->docs_n, out, err);
}

/*
 * A publish tells the host that all is well. So with a broken document an equal set is not
 * published, and failures are reported after the publish.
 */
static void file_sd_publish(struct file_sd *f, struct groups *set, const struct failure *failed)
{
	if (failed && f->published && groups_eq(set, f->published)) {
		groups_unref(set);
	} else {
		groups_unref(f->published);
		f->published = groups_ref(set);
		source_publish(f->host, set);
	}
	for (; failed; failed = failed->next)
		source_failed(f->host, &failed->why);
}

/* Watches before it reads, so that no change is missed in between. */
static void file_sd_refresh(struct file_sd *f)
{
	struct paths paths = { 0 };
	struct groups *set;
	int64_t next = f->refresh_interval_ns;
	struct failure *failed = NULL;
	enum err_code rc;
	struct err err;

	f->noticed = false;
	for (size_t i = 0; i < f->patterns_n; i++)
		if (!target_files_watch(f->shared, &f->patterns[i].watch) && next > UNWATCHED_RETRY_NS)
			next = UNWATCHED_RETRY_NS;
	arena_init(&paths.arena, LIST_BYTES_MAX);
	if (!(rc = file_sd_find_documents(f, &paths, &err)) &&
		!(rc = file_sd_take_documents(f, &paths, &err)))
		rc = file_sd_read_documents(f, &paths.arena, &set, &failed, &err);
	if (rc)
		source_failed(f->host, &err);
	else
		file_sd_publish(f, set, failed);
	arena_release(&paths.arena);
	timer_after(f->timer, next);
}

static void file_sd_on_timer(evutil_socket_t fd, short what, void *ctx)
{
	file_sd_refresh(ctx);
}

/* Kubernetes swaps a mounted ConfigMap by renaming "..data", which the documents link through. */
static void file_sd_on_changed(struct dir_watch *w, struct str name)
{
	const struct pattern *pat = (const struct pattern *)(const void *)((char *)w -
		offsetof(struct pattern, watch));
	struct file_sd *f = w->ctx;

	if (f->noticed ||
		(name.len && !str_has_prefix(name, STR("..")) && fnmatch(pat->last, name.ptr, 0) != 0))
		return;
	f->noticed = true;
	timer_after(f->timer, SETTLE_NS);
}

static void file_sd_close(void *provider)
{
	struct file_sd *f = provider;

	if (!f)
		return;
	if (f->timer)
		event_free(f->timer);
	for (size_t i = 0; i < f->patterns_n; i++)
		target_files_unwatch(f->shared, &f->patterns[i].watch);
	file_sd_release_documents(f->docs, f->docs_n);
	groups_unref(f->published);
	arena_release(&f->arena);
	free(f);
}

static enum err_code file_sd_init(
	struct file_sd *f, const struct file_sd_config *c, struct event_base *base, struct err *err)
{
	struct pattern *pat;
	const char *slash;

	f->refresh_interval_ns = c->refresh_interval_ns;
	f->timer = evtimer_new(base, file_sd_on_timer, f);
	f->patterns = arena_array(&f->arena, struct pattern, c->files_n);
	if (!f->timer || !f->patterns)
		return err_nomem(err, "file discovery");
	for (size_t i = 0; i < c->files_n; i++) {
		pat = &f->patterns[f->patterns_n++];
		pat->path = str_dup(&f->arena, c->files[i]).ptr;
		pat->watch = (struct dir_watch){ .changed = file_sd_on_changed, .ctx = f, .wd = -1 };
		pat->watch.dir = str_dup(&f->arena, path_dir(c->files[i])).ptr;
		if (!pat->path || !pat->watch.dir)
			return err_nomem(err, "file discovery");
		slash = strrchr(pat->path, '/');
		pat->last = slash ? slash + 1 : pat->path;
	}
	return ERR_OK;
}

/* Reads at once, so that its groups are in the first delivery. */
static enum err_code file_sd_open(const struct source_env *env, const void *config,
	struct sd_source *host, void **out, struct err *err)
{
	struct file_sd *f = calloc(1, sizeof(*f));
	enum err_code rc;

	if (!f)
		return err_nomem(err, "file discovery");
	f->shared = env->shared;
	f->host = host;
	if ((rc = file_sd_init(f, config, env->base, err))) {
		file_sd_close(f);
		return rc;
	}
	file_sd_refresh(f);
	*out = f;
	return ERR_OK;
}

static enum err_code file_sd_open_shared(const struct source_env *env, void **out, struct err *err)
{
	struct target_files *files;
	enum err_code rc = target_files_open(env->base, &files, err);

	if (!rc)
		*out = files;
	return rc;
}

static void file_sd_close_shared(void *shared)
{
	target_files_close(shared);
}

static const struct source_ops file_sd_ops = {
	.kind = "file",
	.open = file_sd_open,
	.close = file_sd_close,
	.check = file_sd_check_files,
	.open_shared = file_sd_open_shared,
	.close_shared = file_sd_close_shared,
};

enum err_code file_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err)
{
	return source_configs_decode(
		ctx, n, "file_sd_configs", &file_sd_ops, &file_sd_schema, sources, err);
}
