#include "discovery/sources/http_sd.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hidden.h"
#include "base/map.h"
#include "base/net/http_config.h"
#include "base/net/loop.h"
#include "base/quote.h"
#include "discovery/sources/source.h"

#define GROUPS_BYTES_MAX (512u << 20) /* of an answer's groups while it is read */

/* ---- configuration ---- */

struct http_sd_config {
	struct str url;
	int64_t refresh_interval_ns;
	struct http_config http;
};

#define AT(member) offsetof(struct http_sd_config, member)
/* clang-format off */
static const struct yaml_field http_sd_fields[] = {
	{ "url", YAML_STRING, AT(url), NULL, NULL, "Where the list of targets is.", 0, .takes = "URL",
		.unset = "required" },
	{ "refresh_interval", YAML_DURATION, AT(refresh_interval_ns), NULL, NULL,
		"How often the list is asked for.", 0, .limits = "at least 100ms" },
	HTTP_CONFIG_FIELDS(AT(http)),
};
/* clang-format on */
#undef AT

static void http_sd_defaults(struct yaml_ctx *ctx, void *out)
{
	struct http_sd_config *c = out;

	*c = (struct http_sd_config){ .refresh_interval_ns = HTTP_SD_REFRESH_DEFAULT_NS };
	http_config_defaults(&c->http);
}

static enum err_code http_sd_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	struct http_sd_config *c = out;
	const char *problem = http_config_url_problem(c->url);

	if (problem)
		return yaml_err(c->url.len ? yaml_get(n, "url") : n, err, ERR_INVALID, "%s", problem);
	if (c->refresh_interval_ns < HTTP_SD_REFRESH_MIN_NS)
		return yaml_err(yaml_get(n, "refresh_interval"), err, ERR_INVALID,
			"refresh_interval of HTTP discovery is under 100ms");
	return http_config_check(ctx, n, &c->http, err);
}

const struct yaml_schema http_sd_schema = {
	.name = "http_sd_config",
	.size = sizeof(struct http_sd_config),
	.fields = http_sd_fields,
	.fields_n = sizeof(http_sd_fields) / sizeof(http_sd_fields[0]),
	.defaults = http_sd_defaults,
	.check = http_sd_check,
};

static enum err_code http_sd_check_files(const void *config, struct err *err)
{
	const struct http_sd_config *c = config;

	return http_config_check_files(&c->http, err);
}

/* ---- the source ---- */

struct http_sd {
	struct http_client *client;
	struct sd_source *host;
	struct arena arena;
	struct str url, shown_url;
	struct http_config config;
	struct str refresh_seconds;
	int64_t refresh_interval_ns;
	struct event *timer;
	struct http_request *request; /* under way, or NULL */
	int64_t due_ns; /* of the next request */
};

/* application/json, with or without charset=utf-8, quoted or not. */
static bool http_sd_is_json(struct str type)
{
	const struct str media = STR("application/json");

	if (!str_has_prefix_nocase(type, media))
		return false;
	type = (struct str){ type.ptr + media.len, type.len - media.len };
	if (!type.len)
		return true;
	if (type.ptr[0] != ';')
		return false;
	while (type.len > 1 && (type.ptr[1] == ' ' || type.ptr[1] == '\t'))
		type = (struct str){ type.ptr + 1, type.len - 1 };
	type = (struct str){ type.ptr + 1, type.len - 1 };
	return str_eq_nocase(type, STR("charset=utf-8")) ||
		str_eq_nocase(type, STR("charset=\"utf-8\""));
}

static enum err_code http_sd_read_answer(
	const struct http_sd *h, const struct http_response *res, struct groups **out, struct err *err)
{
	struct str encoding = res->content_encoding;
	struct target_group *v;
	struct arena scratch;
	enum err_code rc;
	size_t n;

	if (res->status != 200)
		return err_set(err, ERR_UNAVAILABLE, "server returned HTTP status %d%s" STR_FMT,
			res->status, res->reason.len ? " " : "", STR_ARG(res->reason));
	if (!http_sd_is_json(str_trim(res->content_type)))
		return err_set(err, ERR_INVALID, "unsupported content type %s", QUOTED(res->content_type));
	if (encoding.len && !str_is(encoding, "identity"))
		return err_set(err, ERR_INVALID, "unsupported content encoding %s", QUOTED(encoding));
	arena_init(&scratch, GROUPS_BYTES_MAX);
	if (!(rc = target_groups_from_json(&scratch, h->shown_url.ptr, res->body, &v, &n, err)) &&
		!(rc = target_groups_label(&scratch, v, n, STR("__meta_url"), h->url, err)))
		rc = groups_pack(v, n, out, err);
	arena_release(&scratch);
	return rc;
}

static void http_sd_report_failure(struct http_sd *h, struct err *err)
{
	if (str_find(str_of(err->msg), h->shown_url) < 0)
		err_wrap(err, err->code, "%s", h->shown_url.ptr);
	source_failed(h->host, err);
}

static void http_sd_wait_for_next(struct http_sd *h)
{
	timer_after(h->timer, h->due_ns - clock_monotonic_ns());
}

static void http_sd_on_done(void *ctx, const struct http_response *res)
{
	struct http_sd *h = ctx;
	struct groups *set;
	struct err err;
	enum err_code rc;

	h->request = NULL;
	err = res->err;
	rc = res->rc ? res->rc : http_sd_read_answer(h, res, &set, &err);
	if (rc)
		http_sd_report_failure(h, &err);
	else
		source_publish(h->host, set);
	http_sd_wait_for_next(h);
}

static void http_sd_ask(struct http_sd *h)
{
	/* clang-format off */
	const struct label headers[] = {
		{ STR("Accept"), STR("application/json") },
		{ STR("X-Prometheus-Refresh-Interval-Seconds"), h->refresh_seconds },
	};
	/* clang-format on */
	const struct http_request_options o = {
		.url = h->url,
		.config = &h->config,
		.headers = { headers, sizeof(headers) / sizeof(headers[0]) },
		.timeout_ns = h->refresh_interval_ns,
		.body_size_max = HTTP_SD_BODY_BYTES_MAX,
	};
	struct err err;

	assert(!h->request);
	h->due_ns = clock_monotonic_ns() + h->refresh_interval_ns;
	if (http_client_send(h->client, &o, http_sd_on_done, h, &h->request, &err)) {
		http_sd_report_failure(h, &err);
		http_sd_wait_for_next(h);
	}
}

static void http_sd_on_timer(evutil_socket_t fd, short what, void *ctx)
{
	http_sd_ask(ctx);
}

static void http_sd_close(void *provider)
{
	struct http_sd *h = provider;

	if (!h)
		return;
	http_request_cancel(h->request);
	if (h->timer)
		event_free(h->timer);
	arena_release(&h->arena);
	free(h);
}

/* "60", "0.5": as Go prints a float without exponent. */
static const char *http_sd_seconds_text(struct arena *a, int64_t ns)
{
	char *text = arena_printf(
		a, "%lld.%09lld", (long long)(ns / NS_PER_S), (long long)(ns % NS_PER_S));
	size_t n = text ? strlen(text) : 0;

	while (n && text[n - 1] == '0')
		text[--n] = '\0';
	if (n && text[n - 1] == '.')
		text[--n] = '\0';
	return text;
}

static enum err_code http_sd_init(struct http_sd *h, const struct source_env *env,
	const struct http_sd_config *c, struct err *err)
{
	enum err_code rc;

	h->client = env->client;
	h->refresh_interval_ns = c->refresh_interval_ns;
	h->refresh_seconds = str_of(http_sd_seconds_text(&h->arena, c->refresh_interval_ns));
	h->url = str_dup(&h->arena, c->url);
	h->shown_url = str_dup(&h->arena, hidden_url(&h->arena, c->url));
	h->timer = evtimer_new(env->base, http_sd_on_timer, h);
	if (!h->refresh_seconds.ptr || !h->url.ptr || !h->shown_url.ptr || !h->timer)
		return err_nomem(err, "HTTP discovery");
	if ((rc = http_config_dup(&h->arena, &c->http, &h->config, err)))
		return rc;
	http_sd_ask(h);
	/* Sources that open together send their first requests together; later ones are spread. */
	h->due_ns -= (int64_t)(hash_bytes(h->url.ptr, h->url.len, (uint64_t)h->due_ns) %
		(uint64_t)(h->refresh_interval_ns / 2));
	return ERR_OK;
}

static enum err_code http_sd_open(const struct source_env *env, const void *config,
	struct sd_source *host, void **out, struct err *err)
{
	struct http_sd *h = calloc(1, sizeof(*h));
	enum err_code rc;

	if (!h)
		return err_nomem(err, "HTTP discovery");
	h->host = host;
	if ((rc = http_sd_init(h, env, config, err))) {
		http_sd_close(h);
		return rc;
	}
	*out = h;
	return ERR_OK;
}

static const struct source_ops http_sd_ops = {
	.kind = "http",
	.open = http_sd_open,
	.close = http_sd_close,
	.check = http_sd_check_files,
};

enum err_code http_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err)
{
	return source_configs_decode(
		ctx, n, "http_sd_configs", &http_sd_ops, &http_sd_schema, sources, err);
}
