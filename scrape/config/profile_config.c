/*
 * profiling_config: Parca's map of profiles. The file's fields replace the defaults one by one, so
 * that a changed path keeps `delta`.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/quote.h"
#include "base/yaml/problems.h"
#include "scrape/config/foreign.h"
#include "scrape/config/job_config.h"

struct profile_default {
	const char *name, *path;
	bool enabled, delta;
	bool optional; /* its sample type has its name */
	int64_t interval_least_ns;
};

/* clang-format off */
static const struct profile_default profile_defaults[] = { /* sorted by name */
	{ "block",         "/debug/pprof/block",         true,  false, false, 0 },
	{ "fgprof",        "/debug/fgprof",              false, true,  false, 0 },
	{ "goroutine",     "/debug/pprof/goroutine",     true,  false, false, 0 },
	/* Go 1.27 and later have it. The process collects its garbage for each answer. */
	{ "goroutineleak", "/debug/pprof/goroutineleak", true,  false, true,  2 * NS_PER_MIN },
	{ "memory",        "/debug/pprof/allocs",        true,  false, false, 0 },
	{ "mutex",         "/debug/pprof/mutex",         true,  false, false, 0 },
	{ "process_cpu",   "/debug/pprof/profile",       true,  true,  false, 0 },
	{ "threadcreate",  "/debug/pprof/threadcreate",  false, false, false, 0 },
	{ "wall",          "/debug/pprof/wall",          false, true,  false, 0 },
};
/* clang-format on */
#define DEFAULTS_N (sizeof(profile_defaults) / sizeof(profile_defaults[0]))

struct profile_fields { /* a profile, and which of its fields the file sets */
	struct profile_config profile;
	bool enabled_set, path_set;
};

static enum err_code profile_config_decode_kind(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	struct profile_config *p = field;
	const struct yaml_node *c;
	struct kind_override *k;

	if (n->kind != YAML_MAPPING)
		return yaml_err(n, err, ERR_INVALID, "expected a map of sample types to kinds");
	p->kinds = arena_array(ctx->arena, struct kind_override, n->n);
	if (!p->kinds)
		return arena_fail(ctx->arena, "configuration", err);
	for (c = n->child; c; c = c->next) {
		k = &p->kinds[p->kinds_n++];
		k->sample_type = c->key->text;
		if (c->kind != YAML_SCALAR || !value_kind_parse(c->text, &k->kind))
			return yaml_err(c, err, ERR_INVALID,
				"kind of sample type %s is not gauge, delta or cumulative", QUOTED(k->sample_type));
	}
	return ERR_OK;
}

#define AT(member) offsetof(struct profile_fields, profile.member)
/* clang-format off */
static const struct yaml_field profile_table[] = {
	{ "enabled", YAML_BOOL, AT(enabled), NULL, NULL, "Whether the profile is taken.",
		offsetof(struct profile_fields, enabled_set) + 1,
		.unset = "by its name; `true` with a `path`" },
	{ "path", YAML_STRING, AT(path), NULL, NULL,
		"The path of the endpoint, behind `path_prefix` and without a query.",
		offsetof(struct profile_fields, path_set) + 1, .unset = "by its name" },
	{ "delta", YAML_BOOL, AT(delta), NULL, NULL,
		"The endpoint answers with differences: over `seconds` if that is given, else since it "
		"was asked before.", 0, .unset = "by its name" },
	{ "seconds", YAML_INT, AT(seconds), NULL, NULL,
		"How long the target measures. Only with `delta`.", 0,
		.unset = "the interval less 1 second", .limits = "at most the interval" },
	{ "interval", YAML_DURATION, AT(interval_ns), NULL, NULL, "How often the profile is taken.", 0,
		.unset = "that of the job; at least 2m for `goroutineleak`" },
	{ "optional", YAML_BOOL, AT(optional), NULL, NULL,
		"A target that does not serve the profile has not failed.", 0,
		.unset = "`true` for `goroutineleak`, else `false`" },
	{ "timeout", YAML_DURATION, AT(timeout_ns), NULL, NULL, "How long a scrape may take.", 0,
		.unset = "that of the job", .limits = "at most the interval" },
	{ "params", YAML_CUSTOM, AT(params), NULL, params_decode,
		"Parameters of the URL, instead of the job's of the same name.", 0,
		.takes = "map of names to lists of strings", .example = "{gc: [\"1\"]}" },
	{ "kind", YAML_CUSTOM, offsetof(struct profile_fields, profile), NULL,
		profile_config_decode_kind,
		"What the values of a sample type are: `gauge` (a level), `delta` (what was added), "
		"`cumulative` (since the process began).", 0, .takes = "map of sample types to kinds",
		.unset = "by the profile", .example = "{latency: gauge}" },
};
/* clang-format on */
#undef AT

static void profile_default_fields_from(
	const struct profile_default *d, struct str name, struct profile_fields *out)
{
	*out = (struct profile_fields){ .profile.name = name };
	if (d) {
		out->profile.enabled = d->enabled;
		out->profile.delta = d->delta;
		out->profile.optional = d->optional;
		out->profile.sample_type = d->optional ? name : STR("");
		out->profile.interval_least_ns = d->interval_least_ns;
		out->profile.path = str_of(d->path);
	}
}

static const struct profile_default *profile_config_find_default(struct str name)
{
	for (size_t i = 0; i < DEFAULTS_N; i++)
		if (str_is(name, profile_defaults[i].name))
			return &profile_defaults[i];
	return NULL;
}

static void profile_config_set_defaults(struct yaml_ctx *ctx, void *out)
{
	const struct str *name = ctx->user;

	profile_default_fields_from(profile_config_find_default(*name), *name, out);
}

const struct yaml_schema config_profile_schema = {
	.name = "pprof_config",
	.size = sizeof(struct profile_fields),
	.fields = profile_table,
	.fields_n = sizeof(profile_table) / sizeof(profile_table[0]),
	.defaults = profile_config_set_defaults,
	.foreign = (const struct yaml_foreign *const[]){ profile_foreign, NULL },
};

int64_t profile_interval_ns(const struct scrape_config *job, const struct profile_config *p)
{
	if (p->interval_ns)
		return p->interval_ns;
	return job->scrape_interval_ns < p->interval_least_ns ? p->interval_least_ns :
															job->scrape_interval_ns;
}

const char *profile_path_since_last(struct str path)
{
	static const char *const paths[][2] = { { "/delta_heap", "allocs" },
		{ "/delta_mutex", "mutex" }, { "/delta_block", "block" } };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (str_has_suffix(path, str_of(paths[i][0])))
			return paths[i][1];
	return NULL;
}

/* Values of parameters are secrets, but for these numbers. */
static void profile_config_add_param(struct buf *out, struct str param, bool first)
{
	const char *equals = memchr(param.ptr, '=', param.len);
	size_t n = equals ? (size_t)(equals - param.ptr) : param.len;
	struct str name = { param.ptr, n },
			   value = { param.ptr + n + (equals != NULL), param.len - n - (equals != NULL) };
	int64_t number;
	bool shown = (str_is(name, "debug") || str_is(name, "gc")) && str_to_i64(value, &number);

	buf_printf(out, "%s" STR_FMT ": [" STR_FMT "]", first ? ", params: {" : ", ", STR_ARG(name),
		STR_ARG(shown ? value : STR("...")));
}

/* A path is only a path: a '?' in it would be escaped. Says how its parameters are written. */
static enum err_code profile_config_check_query(struct yaml_ctx *ctx, const struct yaml_node *n,
	const struct profile_config *p, struct err *err)
{
	ptrdiff_t mark = str_find(p->path, STR("?")), end;
	struct str rest, param, seconds = { 0 };
	struct buf params = { 0 }, write = { 0 };
	int64_t number;
	enum err_code rc;

	if (mark < 0)
		return ERR_OK;
	rest = (struct str){ p->path.ptr + mark + 1, p->path.len - (size_t)mark - 1 };
	for (; rest.len; rest.ptr += end, rest.len -= (size_t)end) {
		end = str_find(rest, STR("&"));
		param = (struct str){ rest.ptr, end < 0 ? rest.len : (size_t)end };
		end = (ptrdiff_t)param.len + (end >= 0);
		if (str_has_prefix(param, STR("seconds=")) &&
				str_to_i64((struct str){ param.ptr + 8, param.len - 8 }, &number))
			seconds = (struct str){ param.ptr + 8, param.len - 8 };
		else if (param.len)
			profile_config_add_param(&params, param, !params.len);
	}
	buf_printf(&write, "path: " STR_FMT, STR_ARG(((struct str){ p->path.ptr, (size_t)mark })));
	if (seconds.len)
		buf_printf(
			&write, "%s, seconds: " STR_FMT, p->delta ? "" : ", delta: true", STR_ARG(seconds));
	if (params.len)
		buf_printf(&write, STR_FMT "}", STR_ARG(buf_str(&params)));
	if (buf_failed(&params) || buf_failed(&write))
		rc = err_nomem(err, "configuration");
	else
		rc = yaml_err(yaml_get(n, "path"), err, ERR_INVALID, "path has a query: write " STR_FMT,
			STR_ARG(str_printable(ctx->arena, buf_str(&write))));
	buf_release(&params);
	buf_release(&write);
	return rc;
}

static void profile_config_warn_of_differences(
	struct yaml_ctx *ctx, const struct yaml_node *n, const struct profile_config *p)
{
	const char *totals = p->enabled ? profile_path_since_last(p->path) : NULL;

	if (totals)
		yaml_warn(ctx, n->key,
			"%s gives what was added since anybody asked it, and is stored so: a failed scrape, "
			"or another who asks, leaves a gap. %s beside it has none: there the server makes the "
			"differences",
			QUOTED(p->path), totals);
}

static enum err_code profile_config_decode_profile(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct profile_config *out, struct err *err)
{
	struct str name = n->key->text;
	struct profile_fields f;
	struct yaml_ctx own = *ctx;
	enum err_code rc;

	if (!label_name_valid(name))
		return yaml_err(n->key, err, ERR_INVALID,
			"%s is not a valid profile name: " LABEL_NAME_RULE, QUOTED(name));
	own.user = &name;
	profile_default_fields_from(profile_config_find_default(name), name, &f);
	if (!yaml_is_null(n) && (rc = yaml_decode(&own, &config_profile_schema, n, &f, err)))
		return rc;
	if (f.path_set && !f.enabled_set)
		f.profile.enabled = true; /* a path enables the profile */
	if (f.profile.enabled && !f.profile.path.len)
		return yaml_err(n->key, err, ERR_INVALID, "profile %s has no path", QUOTED(name));
	if ((rc = profile_config_check_query(ctx, n, &f.profile, err)))
		return rc;
	if (f.profile.seconds < 0)
		return yaml_err(yaml_get(n, "seconds"), err, ERR_INVALID, "seconds is negative");
	if (f.profile.seconds && !f.profile.delta)
		return yaml_err(yaml_get(n, "seconds"), err, ERR_INVALID,
			"profile %s has seconds but is not delta: write delta: true", QUOTED(name));
	*out = f.profile;
	out->at = n->key;
	profile_config_warn_of_differences(ctx, n, out);
	return ERR_OK;
}

static int profile_cmp(const void *a, const void *b)
{
	return str_cmp(
		((const struct profile_config *)a)->name, ((const struct profile_config *)b)->name);
}

/* The defaults that the file does not name, then the profiles that it names. */
static enum err_code profile_config_decode_profiles(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	struct scrape_config *job = field;
	size_t before = yaml_errors(ctx);
	struct profile_fields f;
	const struct yaml_node *c;
	enum err_code rc;

	if (n && n->kind != YAML_MAPPING)
		return yaml_err(n, err, ERR_INVALID, "expected a map of profile names to settings");
	if (n && n->n > CONFIG_PROFILES_MAX)
		return yaml_err(n, err, ERR_LIMIT, "more than %u profiles", CONFIG_PROFILES_MAX);
	job->profiles_n = 0;
	job->profiles = arena_array(ctx->arena, struct profile_config, DEFAULTS_N + (n ? n->n : 0));
	if (!job->profiles)
		return arena_fail(ctx->arena, "configuration", err);
	for (size_t i = 0; i < DEFAULTS_N; i++) {
		if (n && yaml_get(n, profile_defaults[i].name))
			continue;
		profile_default_fields_from(&profile_defaults[i], str_of(profile_defaults[i].name), &f);
		job->profiles[job->profiles_n++] = f.profile;
	}
	for (c = n ? n->child : NULL; c; c = c->next)
		if ((rc = profile_config_decode_profile(ctx, c, &job->profiles[job->profiles_n++], err)) &&
			!yaml_goes_on(ctx, rc, err))
			return rc;
	if ((rc = yaml_end(ctx, before, err)))
		return rc;
	assert(job->profiles_n <= DEFAULTS_N + (n ? n->n : 0));
	qsort(job->profiles, job->profiles_n, sizeof(*job->profiles), profile_cmp);
	return ERR_OK;
}

/* clang-format off */
static const struct yaml_field profiling_table[] = {
	{ "path_prefix", YAML_STRING, offsetof(struct scrape_config, path_prefix), NULL, NULL,
		"What stands in front of the path of every profile.", 0, .example = "/internal" },
	{ "symbol_path", YAML_STRING, offsetof(struct scrape_config, symbol_path), NULL, NULL,
		"Where names of addresses are asked for.", 0, .unset = "`symbol` beside the profile" },
	{ "pprof_config", YAML_CUSTOM, 0, &config_profile_schema, profile_config_decode_profiles,
		"Profiles by their names. A field that is left out keeps the default of that name.", 0,
		.takes = "map of names to", .limits = "at most 64" },
};
/* clang-format on */

/* Decodes into a scratch job, because yaml_decode zeroes the struct. */
const struct yaml_schema profiling_config_schema = {
	.name = "profiling_config",
	.size = sizeof(struct scrape_config),
	.fields = profiling_table,
	.fields_n = sizeof(profiling_table) / sizeof(profiling_table[0]),
	.foreign = (const struct yaml_foreign *const[]){ profiling_foreign, NULL },
};

enum err_code profiling_config_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *job, struct err *err)
{
	struct scrape_config *out = job, part;
	enum err_code rc;

	if ((rc = yaml_decode(ctx, &profiling_config_schema, n, &part, err)))
		return rc;
	if (str_find(part.path_prefix, STR("?")) >= 0)
		return yaml_err(
			yaml_get(n, "path_prefix"), err, ERR_INVALID, "path_prefix has a query: write params");
	out->path_prefix = part.path_prefix;
	out->symbol_path = part.symbol_path;
	out->profiles = part.profiles;
	out->profiles_n = part.profiles_n;
	return ERR_OK;
}

enum err_code profiling_config_default(
	struct yaml_ctx *ctx, struct scrape_config *job, struct err *err)
{
	return job->profiles ? ERR_OK : profile_config_decode_profiles(ctx, NULL, job, err);
}

enum err_code profiling_config_check(const struct scrape_config *job, struct err *err)
{
	const struct profile_config *p;
	struct quoted name;
	int64_t interval, timeout;

	for (size_t i = 0; i < job->profiles_n; i++) {
		p = &job->profiles[i];
		if (!p->at)
			continue;
		name = quoted_of(p->name);
		interval = profile_interval_ns(job, p);
		timeout = p->timeout_ns ? p->timeout_ns : 0; /* the job's is cut to the interval */
		if (timeout > interval)
			return yaml_err(p->at, err, ERR_INVALID,
				"scrape timeout greater than scrape interval for profile %s of scrape "
				"config with job name %s",
				name.text, QUOTED(job->job_name));
		if (p->seconds > interval / NS_PER_S && p->seconds > 1)
			return yaml_err(p->at, err, ERR_INVALID,
				"seconds greater than scrape interval for profile %s of scrape config "
				"with job name %s",
				name.text, QUOTED(job->job_name));
	}
	return ERR_OK;
}
