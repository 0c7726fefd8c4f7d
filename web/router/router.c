#include "web/router/router.h"

#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/quote.h"
#include "base/regex.h"
#include "web/http/form.h"
#include "web/router/audit.h"
#include "web/router/envelope.h"
#include "web/router/origin.h"
#include "web/router/peers.h"
#include "web/router/refused.h"

METRIC_COUNTER(requests, "epimetheus_http_requests_total", "Requests answered, by status.", "code");
METRIC_HISTOGRAM(request_seconds, "epimetheus_http_request_duration_seconds",
	"Time from a whole request to its answer, by route.", "handler");

#define CODED_BODY_MIN 1024
#define READY_RETRY_S "5"

/* Segment by segment; "*" matches any one that is not empty. */
static bool router_matches(const char *pattern, struct str path)
{
	size_t i = 0;

	for (; *pattern; pattern++) {
		if (*pattern == '*') {
			size_t from = i;

			while (i < path.len && path.ptr[i] != '/')
				i++;
			if (i == from)
				return false;
		} else if (i == path.len || path.ptr[i++] != *pattern) {
			return false;
		}
	}
	return i == path.len || (i > 1 && pattern[-1] == '/');
}

/* A path that takes GET takes HEAD. */
static bool route_takes(const struct route *r, enum http_method method)
{
	return r->methods & (unsigned)(method == HTTP_HEAD ? HTTP_GET | HTTP_HEAD : method);
}

static const struct route *web_find_route(
	const struct web *w, struct str path, enum http_method method, bool *other_method)
{
	*other_method = false;
	for (size_t i = 0; i < w->routes_n; i++) {
		if (!router_matches(w->routes[i].path, path))
			continue;
		if (route_takes(&w->routes[i], method))
			return &w->routes[i];
		if (!(w->routes[i].flags & ROUTE_FILES))
			*other_method = true;
	}
	return NULL;
}

/* Cuts the prefix off; false if the path is outside. */
static bool web_strip_prefix(const struct web *w, struct str *path)
{
	struct str prefix = str_of(w->prefix);

	if (!str_has_prefix(*path, prefix) || (path->len > prefix.len && path->ptr[prefix.len] != '/'))
		return false;
	*path = (struct str){ path->ptr + prefix.len, path->len - prefix.len };
	return true;
}

const struct route *router_find(const struct web *w, struct str path, enum http_method method)
{
	bool other_method;

	return web_strip_prefix(w, &path) ? web_find_route(w, path, method, &other_method) : NULL;
}

static void web_allow_origin(const struct web *w, const struct http_in *in, struct http_out *out)
{
	if (!w->cors_origin)
		return;
	http_add_header(out, "Vary", STR("Origin"));
	/* Any page can make "null" its origin. */
	if (!in->origin.len || str_is(in->origin, "null") || !regex_match(w->cors_origin, in->origin))
		return;
	http_add_header(out, "Access-Control-Allow-Headers",
		STR("Accept, Authorization, Connect-Protocol-Version, Connect-Timeout-Ms, "
		    "Content-Type, Origin"));
	http_add_header(out, "Access-Control-Allow-Methods", STR("GET, POST, OPTIONS"));
	http_add_header(out, "Access-Control-Allow-Origin", in->origin);
	http_add_header(out, "Access-Control-Expose-Headers", STR("Date"));
}

static bool web_has_our_name(
	const struct web *w, const struct route *r, const struct http_in *in, struct http_out *out)
{
	if ((r && (r->flags & ROUTE_ANY_HOST)) ||
		origin_host_allowed(in->host, w->o.allowed_hosts, str_of(w->own_origin)))
		return true;
	http_text(out, 421, "host %s is not a name of this server: allow with --web.allowed-host",
		QUOTED(in->host));
	return false;
}

static void route_refuse_foreign(
	const struct route *r, const struct http_in *in, struct http_out *out)
{
	static const char fmt[] =
		"request of another site's page (%s%s): only this server's pages and programs may change "
		"something; set --web.external-url to the URL of the pages";
	const char *what = in->origin.len ? "origin " : "Sec-Fetch-Site: ";
	const char *from = in->origin.len ? QUOTED(in->origin) : in->fetch_site.ptr;

	if (r->flags & ROUTE_API)
		api_error(out, 403, "forbidden", fmt, what, from);
	else
		http_text(out, 403, fmt, what, from);
}

bool router_user_may(struct http_in *in, struct http_out *out, enum http_needs needs, bool api)
{
	struct buf why = { 0 };

	if (http_user_may(&in->user, needs))
		return true;
	http_user_refuse(&why, &in->user, needs);
	if (api)
		api_error(out, 403, "forbidden", STR_FMT, STR_ARG(buf_str(&why)));
	else
		http_text(out, 403, "Forbidden: " STR_FMT, STR_ARG(buf_str(&why)));
	buf_release(&why);
	return false;
}

bool router_is_ready(struct web *w, struct buf *why)
{
	if (atomic_load_explicit(&w->ready, memory_order_acquire))
		return true;
	if (why) {
		buf_add_cstr(why, "not ready: ");
		if (w->o.waiting)
			w->o.waiting(w->o.ctx, why);
		else
			buf_add_cstr(why, "the server is starting");
	}
	return false;
}

void router_refuse_unready(struct http_out *out, struct str why)
{
	http_text(out, 503, STR_FMT, STR_ARG(why));
	http_add_header(out, "Retry-After", STR(READY_RETRY_S));
}

/* The answer can be read where the one of a server that is ready could be. */
static bool router_admit_ready(
	struct web *w, const struct route *r, const struct http_in *in, struct http_out *out)
{
	struct buf why = { 0 };

	if (router_is_ready(w, &why))
		return true;
	if (r->flags & ROUTE_CONNECT)
		connect_error(out, 503, "unavailable", STR_FMT, STR_ARG(buf_str(&why)));
	else if (r->flags & ROUTE_API)
		api_error(out, 503, "unavailable", STR_FMT, STR_ARG(buf_str(&why)));
	else
		router_refuse_unready(out, buf_str(&why));
	if (r->flags & ROUTE_API) {
		web_allow_origin(w, in, out);
		http_add_header(out, "Retry-After", STR(READY_RETRY_S));
	}
	buf_release(&why);
	return false;
}

/* Who takes what is sent to the route, where this server never does; NULL: it may. */
static const char *web_taken_elsewhere(const struct web *w, const struct route *r)
{
	return r->flags & ROUTE_NO_PROFILES ? w->o.elsewhere.symbols : w->o.elsewhere.profiles;
}

static bool web_enabled(const struct web *w, const struct route *r, struct http_out *out)
{
	if ((r->flags & ROUTE_LIFECYCLE) && !w->o.enable_lifecycle)
		http_text(out, 403, "Lifecycle API is not enabled: start with --web.enable-lifecycle.");
	else if ((r->flags & ROUTE_ADMIN) && w->o.elsewhere.admin)
		api_error(out, 403, "unavailable", "%s", w->o.elsewhere.admin);
	else if ((r->flags & ROUTE_ADMIN) && !w->o.enable_admin_api)
		api_error(
			out, 403, "unavailable", "admin APIs disabled: start with --web.enable-admin-api");
	else if ((r->flags & ROUTE_INGEST) && web_taken_elsewhere(w, r))
		api_error(out, 404, "not_found", "%s", web_taken_elsewhere(w, r));
	else if ((r->flags & ROUTE_INGEST) && !w->o.enable_ingest)
		api_error(out, 404, "not_found", "ingest is disabled: start with --web.enable-ingest");
	else
		return true;
	return false;
}

/* Somebody may have been given a wrong address to send profiles to. */
static void web_not_taken(const struct web *w, struct str path, struct http_out *out)
{
	struct buf paths = { 0 };

	if (w->o.elsewhere.profiles) {
		http_text(
			out, 404, "no profiles accepted at %s: %s", QUOTED(path), w->o.elsewhere.profiles);
		return;
	}
	for (size_t i = 0; i < w->routes_n; i++)
		if ((w->routes[i].flags & (ROUTE_INGEST | ROUTE_NO_PROFILES | ROUTE_MARKS)) == ROUTE_INGEST)
			buf_printf(&paths, "%s %s", paths.len ? "," : "", w->routes[i].path);
	http_text(out, 404, "no profiles accepted at %s; send to" STR_FMT, QUOTED(path),
		STR_ARG(buf_str(&paths)));
	buf_release(&paths);
}

static void router_not_routed(enum http_method method, const struct web *w,
	const struct http_in *in, struct str path, bool other_method, struct http_out *out)
{
	if (method == HTTP_OPTIONS &&
		(str_has_prefix(path, STR("/api/")) || str_has_prefix(path, STR("/querier.v1.")))) {
		web_allow_origin(w, in, out);
		out->status = 204;
	} else if (other_method) {
		http_text(out, 405, "Method Not Allowed");
	} else if (method == HTTP_POST) {
		web_not_taken(w, path, out);
	} else {
		http_text(out, 404, "404 page not found");
	}
}

static void web_redirect_to_prefix(const struct web *w, struct http_in *in, struct http_out *out)
{
	char *to = arena_printf(&in->arena, "%s/", w->base);

	http_text(out, 302, "Found");
	if (to)
		http_add_header(out, "Location", str_of(to));
}

static void router_compress(const struct http_in *in, struct http_out *out)
{
	enum http_coding coding = http_coding_of(in);
	struct buf coded = { 0 };

	if (out->encoded || out->fixed_body || http_is_streaming(out) ||
		out->body.len < CODED_BODY_MIN || coding == HTTP_PLAIN)
		return;
	if (coding_add(coding, buf_str(&out->body), &coded, NULL)) {
		buf_release(&coded);
		return;
	}
	buf_release(&out->body);
	out->body = coded;
	http_add_coding(out, coding);
}

static void router_note(struct web *w, const struct http_in *in, const struct http_out *out,
	const char *handler, enum http_needs needs, int64_t began_ns)
{
	int64_t now_ns = clock_monotonic_ns(), took_ns = now_ns - began_ns;
	char code[16];
	struct buf digits = { 0 };

	buf_add_i64(&digits, out->status);
	memcpy(code, digits.ptr ? digits.ptr : "", digits.len < 15 ? digits.len : 15);
	code[digits.len < 15 ? digits.len : 15] = '\0';
	buf_release(&digits);
	metric_add(&requests, code, 1);
	metric_observe(&request_seconds, handler, (double)took_ns / 1e9);
	log_debug("web", "request", LOG_STR("path", in->path), LOG_STR("remote", in->remote),
		LOG_I("status", out->status), LOG_D("elapsed", took_ns));
	audit_request(w->audit, in, out, needs, now_ns);
	router_tell_refused(w, in, out);
}

static bool route_has_form(const struct route *r, const struct http_in *in)
{
	return !(r->flags & ROUTE_BODY) &&
		str_has_prefix(in->content_type, STR("application/x-www-form-urlencoded"));
}

/* code: Connect's. */
static void PRINTF_LIKE(5, 6) web_refuse(
	const struct route *r, struct http_out *out, int status, const char *code, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (r->flags & ROUTE_CONNECT)
		connect_error(out, status, code, "%s", text);
	else
		http_text(out, status, "%s", text);
}

static void web_refuse_body(
	const struct web *w, const struct route *r, const struct http_in *in, struct http_out *out)
{
	bool own = in->body_refused == 429; /* the share of this address */

	if (in->body_refused == 413 && route_has_form(r, in)) {
		http_text(out, 413, "the form is longer than %u bytes", HTTP_FORM_BYTES_MAX);
	} else if (in->body_refused == 413) {
		web_refuse(r, out, 413, "invalid_argument", "the body is too large");
	} else {
		web_refuse(r, out, in->body_refused, own ? "resource_exhausted" : "unavailable",
			"too many bodies at once%s: try again later (%s is %llu bytes)",
			own ? " from this address" : "",
			own ? "--web.max-body-memory-per-address" : "--web.max-body-memory",
			(unsigned long long)(own ? w->o.address_bodies_bytes_max : w->o.bodies_bytes_max));
		http_add_header(out, "Retry-After", STR("5"));
	}
}

/* Adds the parameters of a form. False: *out says why the body was refused. */
static bool web_take_body(
	const struct web *w, const struct route *r, struct http_in *in, struct http_out *out)
{
	if (in->body_refused) {
		web_refuse_body(w, r, in, out);
		return false;
	}
	if (!route_has_form(r, in) || http_form_parse(in, in->body))
		return true;
	if (in->body.len <= HTTP_FORM_BYTES_MAX) {
		http_text(out, 503, "form: out of memory");
		return false;
	}
	http_text(out, 413, "the form is longer than %u bytes", HTTP_FORM_BYTES_MAX);
	return false;
}

/* Keeps workers free for health, metrics and the page, however many queries wait. */
static bool web_enter_slow(struct web *w, const struct route *r, struct http_out *out)
{
	bool entered;

	mutex_lock(&w->lock);
	entered = w->slow < WEB_WORKERS_SLOW;
	w->slow += entered;
	mutex_unlock(&w->lock);
	if (!entered) {
		if (r->flags & ROUTE_CONNECT)
			connect_error(out, 503, "unavailable", "too many requests at once: try again later");
		else
			api_error(out, 503, "unavailable", "too many requests at once: try again later");
		http_add_header(out, "Retry-After", STR("1"));
	}
	return entered;
}

static void web_leave_slow(struct web *w)
{
	mutex_lock(&w->lock);
	assert(w->slow);
	w->slow--;
	mutex_unlock(&w->lock);
}

static void web_call(struct web *w, const struct route *r, struct http_in *in, struct http_out *out)
{
	bool slow = r->flags & ROUTE_SLOW;

	if (slow && !web_enter_slow(w, r, out))
		return;
	in->handled = true;
	r->fn(w, in, out);
	if (slow)
		web_leave_slow(w);
}

static void web_answer(
	struct web *w, const struct route *r, struct http_in *in, struct http_out *out)
{
	if (!web_take_body(w, r, in, out))
		return;
	if (in->params_over) {
		http_text(out, 413, "more than %u parameters", HTTP_PARAMS_MAX);
		return;
	}
	web_call(w, r, in, out);
	router_compress(in, out);
}

static bool router_has_param(const struct http_in *in, struct str name)
{
	return operation_has_param(in->route->op, name);
}

/*
 * The route of a request, if it may be called; else *out says why not. *needs: of a route that was
 * found.
 */
static const struct route *route_of(
	struct web *w, struct http_in *in, struct http_out *out, enum http_needs *needs)
{
	const struct route *r = NULL;
	struct str path = in->path;
	bool other_method = false;
	bool inside = web_strip_prefix(w, &path);

	if (inside)
		r = web_find_route(w, path, in->method, &other_method);
	if (!web_has_our_name(w, r, in, out))
		return NULL;
	if (w->prefix[0] && (str_is(in->path, "/") || str_is(in->path, w->prefix))) {
		web_redirect_to_prefix(w, in, out);
		return NULL;
	}
	if (!r) {
		router_not_routed(in->method, w, in, inside ? path : STR(""), other_method, out);
		return NULL;
	}
	*needs = r->needs;
	if (!router_user_may(in, out, r->needs, r->flags & ROUTE_API))
		return NULL;
	if ((r->flags & ROUTE_CHANGES) && origin_is_foreign(in, str_of(w->own_origin))) {
		route_refuse_foreign(r, in, out);
		return NULL;
	}
	if (!web_enabled(w, r, out) || ((r->flags & ROUTE_READY) && !router_admit_ready(w, r, in, out)))
		return NULL;
	in->path = path;
	if (r->flags & ROUTE_API)
		web_allow_origin(w, in, out);
	if (!(r->flags & ROUTE_BODY) && in->body_bytes_max > HTTP_FORM_BYTES_MAX)
		in->body_bytes_max = HTTP_FORM_BYTES_MAX;
	in->by_pieces = r->flags & ROUTE_PIECES;
	return !r->admit || r->admit(w, in, out) ? r : NULL;
}

enum http_admission router_admit(void *ctx, struct http_in *in, struct http_out *out, bool may_wait)
{
	struct web *w = ctx;
	int64_t began_ns = clock_monotonic_ns();
	const struct route *r = router_find(w, in->path, in->method);
	bool open = r && (r->flags & ROUTE_OPEN);
	enum http_needs needs = NEEDS_NOT_SAID;
	enum http_admission admission;

	out->status = 200;
	out->headers_n = 0; /* admission may run twice */
	if (in->repeated) {
		http_text(out, 400, "header %s is repeated", in->repeated);
		http_add_header(out, "Connection", STR("close"));
		router_note(w, in, out, "refused", needs, began_ns);
		return HTTP_ANSWERED;
	}
	admission = peers_are_asked(w, in) ? peers_admit(w, in, out) :
										 web_config_admit(w->config, in, out, may_wait, open);
	if (admission == HTTP_ANSWERED)
		router_note(w, in, out, "refused", needs, began_ns);
	if (admission != HTTP_ADMITTED)
		return admission;
	http_default_header(out, "X-Content-Type-Options", STR("nosniff"));
	in->route = route_of(w, in, out, &needs);
	if (in->route) {
		in->has_param = router_has_param;
		return HTTP_ADMITTED;
	}
	router_note(w, in, out, "none", needs, began_ns);
	return HTTP_ANSWERED;
}

void router_handle(void *ctx, struct http_in *in, struct http_out *out)
{
	int64_t began_ns = clock_monotonic_ns();

	if (!in->route && router_admit(ctx, in, out, true) != HTTP_ADMITTED)
		return;
	web_answer(ctx, in->route, in, out);
	router_note(ctx, in, out, in->route->path, in->route->needs, began_ns);
}
