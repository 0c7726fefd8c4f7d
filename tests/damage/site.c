#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/damage/damage.h"
#include "web/http/form.h"
#include "web/router/router.h"
#include "web/routes.h"

enum err_code site_open(const struct db_options *o, struct site *s, struct err *err)
{
	struct engine_options e = { .lookback_ns = NS_PER_HOUR };
	enum err_code rc;

	*s = (struct site){ .web = calloc(1, sizeof(*s->web)) };
	if (!s->web || !(s->web->prefix = strdup("")))
		return err_set(err, ERR_NOMEM, "out of memory");
	mutex_init(&s->web->lock);
	cond_init(&s->web->changed);
	if ((rc = web_config_open(NULL, 0, &s->web->config, err)) || (rc = db_open(o, &s->db, err)))
		return rc;
	e.db = s->db;
	if ((rc = engine_open(&e, &s->engine, err)))
		return rc;
	s->web->routes = web_routes;
	s->web->routes_n = web_routes_n;
	s->web->o.db = s->db;
	s->web->o.engine = s->engine;
	atomic_store(&s->web->ready, true);
	return ERR_OK;
}

void site_close(struct site *s)
{
	if (s->engine)
		engine_close(s->engine);
	db_close(s->db);
	if (s->web) {
		web_config_close(s->web->config);
		cond_destroy(&s->web->changed);
		mutex_destroy(&s->web->lock);
		free(s->web->prefix);
		free(s->web);
	}
	*s = (struct site){ 0 };
}

/* ---- requests ---- */

struct asking {
	struct http_in in;
	struct http_param params[HTTP_PARAMS_MAX];
	struct http_out out;
};

static void add_param(struct asking *x, const char *name, struct str value)
{
	x->params[x->in.params_n++] = (struct http_param){ str_of(name), value };
}

static void add_seconds(struct asking *x, const char *name, int64_t seconds)
{
	add_param(x, name, str_of(arena_printf(&x->in.arena, "%lld", (long long)seconds)));
}

static int64_t minute_s(int minute)
{
	return DATA_T0_S + minute * 60;
}

static void add_span(struct asking *x, const struct question *q)
{
	if (!q->to_m)
		return;
	add_seconds(x, "start", minute_s(q->from_m));
	add_seconds(x, "end", minute_s(q->to_m));
}

static void as_query(struct asking *x, const struct question *q, const char *format)
{
	x->in.method = HTTP_GET;
	x->in.path = q->how == STEPS ? STR("/api/v1/query_range") : STR("/api/v1/query");
	add_param(x, "query", str_of(q->text));
	add_param(x, "format", str_of(format));
	if (q->how == AT)
		add_seconds(x, "time", minute_s(q->from_m));
	else
		add_span(x, q);
	if (q->how == STEPS)
		add_seconds(x, "step", q->step_m * 60);
}

static void as_get(struct asking *x, const struct question *q)
{
	size_t path = strcspn(q->text, "?");

	x->in.method = HTTP_GET;
	x->in.path = (struct str){ q->text, path };
	if (q->text[path] && !http_form_parse(&x->in, str_of(q->text + path + 1)))
		abort();
	add_span(x, q);
}

static void as_rpc(struct asking *x, const struct question *q)
{
	size_t method = strcspn(q->text, " ");
	const char *body = q->text + method + 1, *span = strstr(body, "%s");

	x->in.method = HTTP_POST;
	x->in.path = str_of(
		arena_printf(&x->in.arena, "/querier.v1.QuerierService/%.*s", (int)method, q->text));
	x->in.content_type = STR("application/json");
	x->in.body = str_of(arena_printf(&x->in.arena,
		"%.*s\"start\":\"%lld000\",\"end\":\"%lld000\"%s", (int)(span - body), body,
		(long long)minute_s(q->from_m), (long long)minute_s(q->to_m), span + 2));
}

static bool warns(const struct http_out *out)
{
	for (size_t i = 0; i < out->headers_n; i++)
		if (!strcmp(out->headers[i].name, "Warning") &&
			str_find(out->headers[i].value, STR("299 - ")) >= 0) /* 199: an info */
			return true;
	return str_is(str_of(out->content_type), "application/json") &&
		str_find(buf_str(&out->body), STR(",\"warnings\":[\"")) >= 0;
}

static void ask(struct site *s, const struct question *q, const char *format, struct answer *a)
{
	struct asking *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	arena_init(&x->in.arena, HTTP_REQUEST_ARENA_BYTES);
	x->in.params = x->params;
	if (q->how == GET)
		as_get(x, q);
	else if (q->how == RPC)
		as_rpc(x, q);
	else
		as_query(x, q, format);
	router_handle(s->web, &x->in, &x->out);
	*a = (struct answer){ q, format, x->out.status, warns(&x->out), x->out.body };
	http_user_leave(&x->in.user);
	arena_release(&x->in.arena);
	free(x);
}

void site_ask(struct site *s, bool later, struct answers *out)
{
	*out = (struct answers){ calloc(questions_n * formats_n, sizeof(*out->v)), 0 };
	if (!out->v)
		abort();
	for (size_t i = 0; i < questions_n; i++) {
		const struct question *q = &questions[i];

		if (q->later && !later)
			continue;
		for (size_t k = 0; k < (q->all_formats ? formats_n : 1); k++)
			ask(s, q, formats[k], &out->v[out->n++]);
	}
}

void answers_release(struct answers *a)
{
	for (size_t i = 0; i < a->n; i++)
		buf_release(&a->v[i].body);
	free(a->v);
	*a = (struct answers){ 0 };
}

void answer_print_question(const struct answer *a, struct buf *out)
{
	static const char *const how[] = { "at", "span", "steps", "get", "rpc" };
	const struct question *q = a->question;

	buf_printf(
		out, "%s %d..%d min, %s: %.150s", how[q->how], q->from_m, q->to_m, a->format, q->text);
}
