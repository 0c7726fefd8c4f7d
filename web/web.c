#include "web/web.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/quote.h"
#include "base/regex.h"
#include "proto/pprof.h"
#include "scrape/receive/receive.h"
#include "web/debuginfo/uploads.h"
#include "web/grpc/grpc.h"
#include "web/handlers.h"
#include "web/otlp_grpc.h"
#include "web/router/audit.h"
#include "web/router/origin.h"
#include "web/routes.h"

METRIC_GAUGE(connections, "epimetheus_http_connections", "Connections that are open.", NULL);

#define CONNECTIONS_DEFAULT 512
#define CONNECTIONS_MAX (1u << 20)
#define LOOKBACK_DEFAULT_NS (5 * NS_PER_MIN)
#define READ_TIMEOUT_DEFAULT_NS (5 * NS_PER_MIN)
#define BODY_TIMEOUT_DEFAULT_NS NS_PER_MIN
#define BODIES_BYTES_DEFAULT (256u << 20)
#define ADDRESS_BODIES_BYTES_DEFAULT (64u << 20)
#define ADDRESS_CHECKS_MAX 1000u
#define CLOSE_GRACE_NS (5 * NS_PER_S)
#define PREFIX_BYTES_MAX 256u

/* ---- where the server is found ---- */

/* The form in which both prefixes are kept: "a/b/" becomes "/a/b", "/" becomes "". */
static enum err_code web_normalize(struct str path, const char *what, char **out, struct err *err)
{
	while (path.len && path.ptr[path.len - 1] == '/')
		path.len--;
	while (path.len && path.ptr[0] == '/')
		path = (struct str){ path.ptr + 1, path.len - 1 };
	if (path.len > PREFIX_BYTES_MAX)
		return err_set(err, ERR_INVALID, "%s is longer than %u bytes", what, PREFIX_BYTES_MAX);
	for (size_t i = 0; i < path.len; i++) {
		char c = path.ptr[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
				(c && strchr("/-._~", c))))
			return err_set(err, ERR_INVALID,
				"%s %s: only letters, digits and / - . _ ~ are allowed", what, QUOTED(path));
	}
	if (asprintf(out, "%s" STR_FMT, path.len ? "/" : "", STR_ARG(path)) < 0) {
		*out = NULL;
		return err_nomem(err, "web");
	}
	return ERR_OK;
}

/* scheme://host[:port]; *path is what follows. */
static enum err_code web_split_url(
	struct str url, struct str *origin, struct str *path, struct err *err)
{
	size_t n = 0;

	if (str_has_prefix(url, STR("http://")))
		n = 7;
	else if (str_has_prefix(url, STR("https://")))
		n = 8;
	if (!n || url.len == n || url.ptr[n] == '/')
		return err_set(
			err, ERR_INVALID, "external URL %s: not http://HOST or https://HOST", QUOTED(url));
	while (n < url.len && url.ptr[n] != '/')
		n++;
	*origin = (struct str){ url.ptr, n };
	*path = (struct str){ url.ptr + n, url.len - n };
	return ERR_OK;
}

/*
 * The external URL is what a browser sees, the route prefix is what arrives here. They differ
 * behind a proxy that removes its own path. Each is the other's default.
 */
static enum err_code web_set_paths(struct web *w, const struct web_options *o, struct err *err)
{
	struct str url = str_of(o->external_url), origin = STR(""), path = str_of(o->route_prefix);
	enum err_code rc;

	if (url.len && (rc = web_split_url(url, &origin, &path, err)))
		return rc;
	if ((rc = web_normalize(
			 path, url.len ? "the path of the external URL" : "route prefix", &w->base, err)))
		return rc;
	if (o->route_prefix && o->route_prefix[0])
		path = str_of(o->route_prefix);
	if ((rc = web_normalize(path, "route prefix", &w->prefix, err)))
		return rc;
	if (url.len && !(w->own_origin = strndup(origin.ptr, origin.len)))
		return err_nomem(err, "web");
	if (url.len && asprintf(&w->external_url, STR_FMT "%s", STR_ARG(origin), w->base) < 0) {
		w->external_url = NULL;
		return err_nomem(err, "web");
	}
	return ERR_OK;
}

/* Called once the port is known; does nothing if a URL was given. */
static enum err_code web_derive_external_url(struct web *w, struct err *err)
{
	char host[256] = "localhost";

	if (w->external_url)
		return ERR_OK;
	if (gethostname(host, sizeof(host) - 1))
		snprintf(host, sizeof(host), "localhost");
	if (asprintf(&w->external_url, "%s://%s:%u%s", web_scheme(w), host, web_port(w), w->base) < 0) {
		w->external_url = NULL;
		return err_nomem(err, "web");
	}
	return ERR_OK;
}

/* ---- opening and closing ---- */

static void web_collect(void *ctx)
{
	struct web *w = ctx;

	metric_set(&connections, NULL, http_server_connections(w->server));
}

static enum err_code web_open_server(struct web *w, struct err *err)
{
	const struct web_options *o = &w->o;
	const struct http_server_options h = {
		.listen_address = o->listen_address,
		.bound = o->bound,
		.workers = WEB_WORKERS,
		.connections_max = (unsigned)o->connections_max,
		.read_timeout_ns = o->read_timeout_ns,
		.body_timeout_ns = o->body_timeout_ns,
		.body_bytes_max = pprof_limits_default.body_bytes_max,
		.bodies_bytes_max = o->bodies_bytes_max,
		.address_bodies_bytes_max = o->address_bodies_bytes_max,
		.admit = router_admit,
		.handler = router_handle,
		.ctx = w,
		.tls_certificate_fn = web_config_tls(w->config) ? web_config_certificate_fn() : NULL,
		.tls_priorities = web_config_priorities(w->config),
	};

	return http_server_open(&h, &w->server, err);
}

static enum err_code web_open_receiver(struct web *w, struct err *err)
{
	const struct receiver_options r = { w->o.sink, w->o.config, w->o.ctx, w->o.lookback_ns,
		w->o.retention_ns, w->o.senders_path, w->o.put_senders };

	return w->o.sink ? receiver_open(&r, &w->receiver, err) : ERR_OK;
}

/* Of profiles and of symbols, where there is somebody who takes them. */
static enum err_code web_open_intake(struct web *w, struct err *err)
{
	enum err_code rc = web_open_receiver(w, err);

	if (rc || !w->o.debuginfo)
		return rc;
	return debuginfo_uploads_open(&w->uploads, err);
}

static enum err_code web_check_limits(const struct web_options *o, struct err *err)
{
	unsigned long long body = pprof_limits_default.body_bytes_max;

	if (o->connections_max > CONNECTIONS_MAX)
		return err_set(err, ERR_INVALID, "%llu connections at once: %u are the most",
			(unsigned long long)o->connections_max, CONNECTIONS_MAX);
	if (o->address_checks_max > ADDRESS_CHECKS_MAX)
		return err_set(err, ERR_INVALID, "%llu password checks of one address: %u are the most",
			(unsigned long long)o->address_checks_max, ADDRESS_CHECKS_MAX);
	if (o->bodies_bytes_max < body || o->address_bodies_bytes_max < body)
		return err_set(err, ERR_INVALID,
			"%llu bytes for bodies, %llu for those of one address: a body may be %llu "
			"bytes long",
			(unsigned long long)o->bodies_bytes_max,
			(unsigned long long)o->address_bodies_bytes_max, body);
	return ERR_OK;
}

static void web_fill_in(struct web_options *o)
{
	if (!o->connections_max)
		o->connections_max = CONNECTIONS_DEFAULT;
	if (!o->read_timeout_ns)
		o->read_timeout_ns = READ_TIMEOUT_DEFAULT_NS;
	if (!o->lookback_ns)
		o->lookback_ns = LOOKBACK_DEFAULT_NS;
	if (!o->body_timeout_ns)
		o->body_timeout_ns = BODY_TIMEOUT_DEFAULT_NS;
	if (!o->bodies_bytes_max)
		o->bodies_bytes_max = BODIES_BYTES_DEFAULT;
	if (!o->address_bodies_bytes_max)
		o->address_bodies_bytes_max = ADDRESS_BODIES_BYTES_DEFAULT;
}

static enum err_code web_open_all(struct web *w, struct err *err)
{
	struct str cors = str_of(w->o.cors_origin);
	enum err_code rc;

	if ((rc = web_check_limits(&w->o, err)))
		return rc;
	if ((rc = web_set_paths(w, &w->o, err)))
		return rc;
	if (cors.len && (rc = regex_compile(cors, REGEX_ANCHORED, &w->cors_origin, err)))
		return err_wrap(err, rc, "CORS origin");
	if ((rc = origin_check_names(w->o.allowed_hosts, err)))
		return rc;
	if ((rc = page_prepare(w, err)))
		return rc;
	if ((rc = web_config_open(
			 w->o.config_file, (unsigned)w->o.address_checks_max, &w->config, err)))
		return rc;
	if (w->o.enable_rules && !web_config_has_users(w->config))
		return err_set(err, ERR_INVALID,
			"--web.enable-rules needs users: --web.config.file has no basic_auth_users, users or "
			"trusted_proxy");
	if ((rc = audit_open(&w->audit, err)) || (rc = audit_start(w->audit, err)))
		return rc;
	if ((rc = web_open_intake(w, err)))
		return rc;
	if ((rc = web_open_server(w, err)))
		return rc;
	if ((rc = otlp_grpc_open(w, err)))
		return rc;
	if ((rc = web_derive_external_url(w, err)))
		return rc;
	metric_collector_add(web_collect, w);
	return ERR_OK;
}

enum err_code web_open(const struct web_options *o, struct web **out, struct err *err)
{
	struct web *w = calloc(1, sizeof(*w));
	enum err_code rc;

	if (!w)
		return err_nomem(err, "web");
	w->o = *o;
	w->routes = web_routes;
	w->routes_n = web_routes_n;
	for (size_t i = 0; i < web_routes_n; i++)
		assert(web_routes[i].needs != NEEDS_NOT_SAID);
	web_fill_in(&w->o);
	w->started_ns = clock_now_ns();
	mutex_init(&w->lock);
	cond_init(&w->changed);
	rc = web_open_all(w, err);
	if (rc) {
		web_close(w);
		return rc;
	}
	*out = w;
	return ERR_OK;
}

enum err_code web_set_parts(struct web *w, const struct web_options *o, struct err *err)
{
	assert(!atomic_load(&w->ready) && !w->receiver && !w->uploads);
	w->o.db = o->db;
	w->o.sink = o->sink;
	w->o.assignment = o->assignment;
	w->o.shard_sink = o->shard_sink;
	w->o.engine = o->engine;
	w->o.manager = o->manager;
	w->o.debuginfo = o->debuginfo;
	w->o.debuginfod = o->debuginfod;
	w->o.files = o->files;
	w->o.saved_rules = o->saved_rules;
	w->o.notifier = o->notifier;
	w->o.senders_path = o->senders_path;
	w->o.put_senders = o->put_senders;
	w->o.rules_report = o->rules_report;
	return web_open_intake(w, err);
}

void web_set_ready(struct web *w, bool is_ready)
{
	atomic_store_explicit(&w->ready, is_ready, memory_order_release);
}

unsigned web_port(const struct web *w)
{
	return http_server_port(w->server);
}

unsigned web_grpc_port(const struct web *w)
{
	return w->grpc ? grpc_server_port(w->grpc) : 0;
}

const char *web_scheme(const struct web *w)
{
	return web_config_tls(w->config) ? "https" : "http";
}

const char *web_external_url(const struct web *w)
{
	return w->external_url;
}

const char *web_prefix(const struct web *w)
{
	return w->prefix;
}

void web_close(struct web *w)
{
	if (!w)
		return;
	mutex_lock(&w->lock);
	w->closing = true;
	if (w->capture) /* it may run for minutes: do not wait for it */
		atomic_store(&w->capture->canceled, true);
	mutex_unlock(&w->lock);
	if (w->receiver)
		receiver_stop(w->receiver);
	if (w->external_url && w->server)
		metric_collector_remove(web_collect, w);
	grpc_server_close(w->grpc, CLOSE_GRACE_NS);
	http_server_close(w->server, CLOSE_GRACE_NS);
	receiver_close(w->receiver);
	debuginfo_uploads_close(w->uploads);
	web_config_close(w->config);
	audit_close(w->audit);
	regex_free(w->cors_origin);
	buf_release(&w->index);
	cond_destroy(&w->changed);
	mutex_destroy(&w->lock);
	free(w->prefix);
	free(w->base);
	free(w->external_url);
	free(w->own_origin);
	free(w);
}
