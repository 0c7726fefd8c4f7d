#include "scrape/config/debuginfod_config.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/net/http_config.h"
#include "base/quote.h"
#include "base/yaml/problems.h"
#include "scrape/config/patterns.h"

/* ---- servers ---- */

#define AT(member) offsetof(struct debuginfod_server, member)
/* clang-format off */
static const struct yaml_field table[] = {
	{ "url", YAML_STRING, AT(url), NULL, NULL, "The server, without `/buildid`.", 0, .takes = "URL",
		.unset = "required", .example = "https://debuginfod.debian.net/" },
	{ "timeout", YAML_DURATION, AT(timeout_ns), NULL, NULL,
		"How long an answer may take until its end.", 0 },
	{ "max_size", YAML_BYTES, AT(max_size), NULL, NULL, "The largest file.", 0 },
	{ "source", YAML_BOOL, AT(source), NULL, NULL,
		"Whether the server is asked for source code too.", 0 },
	{ "allow_paths", YAML_LIST, AT(allow_paths), NULL, NULL, "Binaries to ask for, by their paths.",
		0, .takes = "list of regular expressions", .unset = "with no list at all: every binary",
		.example = "[\"/usr/.*\"]" },
	{ "allow_build_ids", YAML_LIST, AT(allow_build_ids), NULL, NULL,
		"Binaries to ask for, by their build ids.", 0, .takes = "list of regular expressions" },
	HTTP_CONFIG_FIELDS(AT(http)),
};
/* clang-format on */
#undef AT

static void debuginfod_config_set_defaults(struct yaml_ctx *ctx, void *out)
{
	struct debuginfod_server *s = out;

	*s = (struct debuginfod_server){ .timeout_ns = DEBUGINFOD_TIMEOUT_DEFAULT_NS,
		.max_size = DEBUGINFOD_SIZE_DEFAULT };
	http_config_defaults(&s->http);
}

const struct yaml_schema debuginfod_server_schema = {
	.name = "debuginfod_config",
	.size = sizeof(struct debuginfod_server),
	.fields = table,
	.fields_n = sizeof(table) / sizeof(table[0]),
	.defaults = debuginfod_config_set_defaults,
};

static enum err_code debuginfod_config_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct debuginfod_server *s, struct err *err)
{
	const char *problem = http_config_url_problem(s->url);

	if (problem)
		return yaml_err(s->url.len ? yaml_get(n, "url") : n, err, ERR_INVALID, "%s", problem);
	if (memchr(s->url.ptr, '?', s->url.len) || memchr(s->url.ptr, '#', s->url.len))
		return yaml_err(yaml_get(n, "url"), err, ERR_INVALID,
			"URL of a debuginfod server cannot have a query or a fragment");
	while (s->url.len && s->url.ptr[s->url.len - 1] == '/')
		s->url.len--;
	if (!s->timeout_ns)
		return yaml_err(
			yaml_get(n, "timeout"), err, ERR_INVALID, "timeout of a debuginfod server cannot be 0");
	if (!s->max_size)
		return yaml_err(yaml_get(n, "max_size"), err, ERR_INVALID,
			"max_size of a debuginfod server cannot be 0");
	return http_config_check(ctx, n, &s->http, err);
}

static enum err_code debuginfod_config_compile(const struct yaml_node *n, const char *name,
	const struct yaml_list *list, struct regex **out, struct err *err)
{
	struct err why;
	enum err_code rc = patterns_compile(name, list->v, list->n, out, &why);

	return rc ? yaml_err(yaml_get(n, name), err, rc, "%s", why.msg) : ERR_OK;
}

/* The caller releases what is there after a failure too. */
static enum err_code debuginfod_config_decode_server(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct debuginfod_server *out, struct err *err)
{
	enum err_code rc;

	if (yaml_is_null(n))
		return yaml_err(n, err, ERR_INVALID, "empty or null debuginfod config section");
	if ((rc = yaml_decode(ctx, &debuginfod_server_schema, n, out, err)) ||
		(rc = debuginfod_config_check(ctx, n, out, err)) ||
		(rc = debuginfod_config_compile(n, "allow_paths", &out->allow_paths, &out->paths, err)))
		return rc;
	return debuginfod_config_compile(
		n, "allow_build_ids", &out->allow_build_ids, &out->build_ids, err);
}

static enum err_code debuginfod_config_decode_servers(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct debuginfod_config *out, struct err *err)
{
	size_t before = yaml_errors(ctx);
	struct debuginfod_server *s;
	enum err_code rc;

	if (n->n > DEBUGINFOD_SERVERS_MAX)
		return yaml_err(
			n, err, ERR_LIMIT, "more than %u debuginfod servers", DEBUGINFOD_SERVERS_MAX);
	out->v = arena_array(ctx->arena, struct debuginfod_server, n->n);
	if (!out->v)
		return arena_fail(ctx->arena, "configuration", err);
	for (const struct yaml_node *at = n->child; at; at = at->next) {
		s = &out->v[out->n++]; /* counted first, so that what is compiled is freed */
		*s = (struct debuginfod_server){ 0 };
		rc = debuginfod_config_decode_server(ctx, at, s, err);
		for (const struct debuginfod_server *other = out->v; !rc && other < s; other++)
			if (str_eq(other->url, s->url))
				rc = yaml_err(yaml_get(at, "url"), err, ERR_INVALID,
					"found multiple debuginfod servers with URL %s", QUOTED(s->url));
		if (rc && !yaml_goes_on(ctx, rc, err))
			return rc;
	}
	return yaml_end(ctx, before, err);
}

/* ---- directories ---- */

static enum err_code debuginfod_config_decode_directories(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct debuginfod_config *out, struct err *err)
{
	const char *path;

	if (n->n > DEBUGINFOD_DIRECTORIES_MAX)
		return yaml_err(
			n, err, ERR_LIMIT, "more than %u debug_directories", DEBUGINFOD_DIRECTORIES_MAX);
	out->directories = arena_array(ctx->arena, struct str, n->n);
	if (!out->directories)
		return arena_fail(ctx->arena, "configuration", err);
	for (const struct yaml_node *at = n->child; at; at = at->next) {
		if (at->kind != YAML_SCALAR || !at->text.len)
			return yaml_err(at, err, ERR_INVALID, "expected the path of a directory");
		if (!(path = path_join(ctx->arena, ctx->dir, at->text)))
			return arena_fail(ctx->arena, "configuration", err);
		out->directories[out->directories_n++] = str_of(path);
	}
	return ERR_OK;
}

/* ---- both ---- */

enum err_code debuginfod_config_decode(struct yaml_ctx *ctx, const struct yaml_node *servers,
	const struct yaml_node *directories, struct debuginfod_config *out, struct err *err)
{
	enum err_code rc = ERR_OK;

	*out = (struct debuginfod_config){ 0 };
	if (servers)
		rc = debuginfod_config_decode_servers(ctx, servers, out, err);
	if (!rc && directories)
		rc = debuginfod_config_decode_directories(ctx, directories, out, err);
	if (rc)
		debuginfod_config_release(out);
	return rc;
}

void debuginfod_config_release(struct debuginfod_config *c)
{
	for (size_t i = 0; i < c->n; i++) {
		regex_free(c->v[i].paths);
		regex_free(c->v[i].build_ids);
	}
	*c = (struct debuginfod_config){ 0 };
}

bool debuginfod_allows(const struct debuginfod_server *s, struct str path, struct str build_id)
{
	return (!s->paths && !s->build_ids) || (s->paths && regex_match(s->paths, path)) ||
		(s->build_ids && regex_match(s->build_ids, build_id));
}

bool debuginfod_gives_source(const struct debuginfod_config *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].source)
			return true;
	return false;
}

static void debuginfod_config_encode_list(struct buf *out, const struct yaml_list *l)
{
	const struct str *v = l->v;

	buf_printf(out, "%zu ", l->n);
	for (size_t i = 0; i < l->n; i++)
		buf_add_lenstr(out, v[i]);
}

void debuginfod_config_encode(struct buf *out, const struct debuginfod_config *c)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct debuginfod_server *s = &c->v[i];

		buf_add_lenstr(out, s->url);
		buf_printf(out, " %lld %llu %d ", (long long)s->timeout_ns, (unsigned long long)s->max_size,
			s->source);
		debuginfod_config_encode_list(out, &s->allow_paths);
		debuginfod_config_encode_list(out, &s->allow_build_ids);
		http_config_encode(out, &s->http);
	}
}

enum err_code debuginfod_config_check_files(const struct debuginfod_config *c, struct err *err)
{
	enum err_code rc;
	int fd;

	for (size_t i = 0; i < c->n; i++)
		if ((rc = http_config_check_files(&c->v[i].http, err)))
			return err_wrap(err, rc, "debuginfod server " STR_FMT, STR_ARG(c->v[i].url));
	for (size_t i = 0; i < c->directories_n; i++) {
		fd = open(c->directories[i].ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return err_errno(err, errno, "debug directory " STR_FMT, STR_ARG(c->directories[i]));
		close(fd);
	}
	return ERR_OK;
}
