#include "base/array.h"
#include "base/net/percent.h"
#include "discovery/apis/api_internal.h"

#define WAIT "120000ms" /* of a blocking query */

void api_param_add(struct api_params *p, struct str name, struct str value)
{
	if (!name.ptr || !value.ptr || !arena_array_room(p->arena, &p->v, p->n, 1, &p->cap)) {
		p->failed = true;
		return;
	}
	p->v[p->n++] = (struct label){ name, value };
}

static void api_request_add_param(
	struct api_params *p, const struct api_param *row, const void *config)
{
	const void *at = (const char *)config + row->at;
	const struct labels *map = at;
	const struct yaml_list *list = at;
	const struct str *text = at, *items;
	struct str name = str_of(row->name);

	switch (row->kind) {
	case API_CONST:
		api_param_add(p, name, str_of(row->value));
		break;
	case API_TEXT:
		if (text->len)
			api_param_add(p, name, *text);
		break;
	case API_FLAG:
		if (*(const bool *)at)
			api_param_add(p, name, STR(""));
		break;
	case API_EACH:
		items = list->v;
		for (size_t i = 0; i < list->n; i++)
			api_param_add(p, name, items[i].ptr ? items[i] : STR(""));
		break;
	case API_MAP:
		for (size_t i = 0; i < map->n; i++)
			api_param_add(p, name,
				str_of(arena_printf(p->arena, STR_FMT ":" STR_FMT, STR_ARG(map->v[i].name),
					STR_ARG(map->v[i].value))));
		break;
	}
}

static enum err_code api_request_collect(const struct api_source *s, const struct api_list *list,
	struct str token, uint64_t index, struct api_params *p, struct err *err)
{
	for (size_t i = 0; i < list->params_n; i++)
		api_request_add_param(p, &list->params[i], s->config);
	if (list->more)
		list->more(s->config, p);
	if (token.len)
		api_param_add(p, str_of(list->next_param), token);
	if (index) {
		api_param_add(
			p, STR("index"), str_of(arena_printf(p->arena, "%llu", (unsigned long long)index)));
		api_param_add(p, STR("wait"), STR(WAIT));
	}
	return p->failed ? arena_fail(p->arena, "request", err) : ERR_OK;
}

/* "a=b&c=d" */
static void api_request_print_params(struct buf *out, const struct api_params *p)
{
	for (size_t i = 0; i < p->n; i++) {
		buf_add_cstr(out, i ? "&" : "");
		percent_encode(out, p->v[i].name, PERCENT_VALUE);
		buf_add_char(out, '=');
		percent_encode(out, p->v[i].value, PERCENT_VALUE);
	}
}

static void api_request_print_path(struct buf *out, const char *path, struct str key)
{
	size_t n = strlen(path);

	if (!n || path[n - 1] != '*') {
		buf_add_cstr(out, path);
		return;
	}
	buf_add(out, path, n - 1);
	percent_encode(out, key, PERCENT_VALUE);
}

static enum err_code api_request_make_url(const struct api_source *s, const struct api_list *list,
	struct str key, struct arena *a, struct buf *out, struct err *err)
{
	struct str url = s->server.url;
	struct aws_config c = { 0 };
	enum err_code rc;

	if (!url.len) {
		s->api->aws(s->config, &c);
		if ((rc = aws_service_url(s->aws, a, c.service, &url, err)))
			return rc;
	}
	buf_add_str(out, url);
	api_request_print_path(out, list->path, key);
	return ERR_OK;
}

static enum err_code api_request_make_headers(const struct api_source *s,
	const struct api_question *q, struct arena *a, struct labels *out, struct err *err)
{
	static const struct label form[] = { { STR("Content-Type"),
		STR("application/x-www-form-urlencoded; charset=utf-8") } };
	struct api_params p = { .arena = a };

	*out = (struct labels){ form, s->api->form };
	if (s->aws)
		return aws_sign(s->aws, a, q->url, q->body, out, err);
	if (!s->api->headers)
		return ERR_OK;
	s->api->headers(s->config, &p);
	*out = (struct labels){ p.v, p.n };
	return p.failed ? arena_fail(a, "request", err) : ERR_OK;
}

enum err_code api_question_make(struct api_source *s, const struct api_list *list, struct str key,
	struct str token, uint64_t index, struct arena *a, struct api_question *out, struct err *err)
{
	struct api_params p = { .arena = a };
	struct buf url = { 0 }, form = { 0 };
	enum err_code rc;

	*out = (struct api_question){ 0 };
	if ((rc = api_request_collect(s, list, token, index, &p, err)) ||
		(rc = api_request_make_url(s, list, key, a, &url, err)))
		goto out;
	if (s->api->form) {
		api_request_print_params(&form, &p);
	} else if (p.n) {
		buf_add_char(&url, '?');
		api_request_print_params(&url, &p);
	}
	out->url = str_dup(a, buf_str(&url));
	out->body = str_dup(a, buf_str(&form));
	if (buf_failed(&url) || buf_failed(&form) || !out->url.ptr || !out->body.ptr)
		rc = arena_fail(a, "request", err);
	else
		rc = api_request_make_headers(s, out, a, &out->headers, err);
out:
	buf_release(&url);
	buf_release(&form);
	return rc;
}
