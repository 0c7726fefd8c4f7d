/*
 * Source code: a file as debuginfod servers have it, and the link to where a person sees it.
 *
 * The first is off unless a server of the section `debuginfod` has `source: true`; the second only
 * fills the templates of `source_links` in. Nothing is changed here, but other servers are asked,
 * so a page of another site is refused as if something were.
 */
#include "scrape/config/config.h"
#include "scrape/debuginfod/debuginfod.h"
#include "web/api/handlers.h"
#include "web/router/envelope.h"
#include "web/router/origin.h"

#define LABEL_PREFIX "label."
#define CACHED "private, max-age=3600" /* of a build: its code stays as it is */

/* ---- /api/v1/source ---- */

static void api_source_write_text(struct http_out *out, const struct debuginfod_text *t)
{
	struct json j;

	http_add_header(out, "Cache-Control", STR(CACHED));
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "server");
	json_str(&j, t->server);
	json_key(&j, "text");
	json_str(&j, t->text);
	json_object_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}

void api_source(struct web *w, struct http_in *in, struct http_out *out)
{
	const struct debuginfod_source wanted = { .build_id = http_param(in, "build_id"),
		.path = http_param(in, "path"),
		.binary = http_param(in, "binary") };
	struct debuginfod_text text;
	struct err err;
	enum err_code rc;

	if (origin_is_foreign(in, str_of(w->own_origin))) {
		api_error(out, 403, "forbidden",
			"request of another site's page: only this server's pages and programs may fetch "
			"source code");
		return;
	}
	if (w->o.debuginfod)
		rc = debuginfod_source(w->o.debuginfod, &wanted, &in->canceled, &in->arena, &text, &err);
	else
		rc = err_set(&err, ERR_NOT_FOUND, "no debuginfod servers configured");
	if (rc)
		api_fail(out, rc, &err);
	else
		api_source_write_text(out, &text);
}

/* ---- /api/v1/source_links ---- */

/* Those that links look at; others do not matter. */
static enum err_code api_source_read_labels(
	struct http_in *in, const struct source_links *links, struct labels *out, struct err *err)
{
	struct labels_builder b;
	struct str value;
	char *name;

	labels_builder_init(&b, &in->arena, (struct labels){ 0 });
	for (size_t i = 0; i < links->labels_n; i++) {
		name = arena_printf(&in->arena, LABEL_PREFIX STR_FMT, STR_ARG(links->labels[i]));
		if (!name)
			return arena_fail(&in->arena, "labels", err);
		value = http_param(in, name);
		if (value.len)
			labels_builder_set(&b, links->labels[i], value);
	}
	return labels_builder_build(&b, out, err);
}

static enum err_code api_read_line(const struct http_in *in, struct str *out, struct err *err)
{
	uint64_t line = 0;

	*out = http_param(in, "line");
	return api_uint(in, "line", &line, err);
}

static void api_write_settings(struct json *j, const struct config *c)
{
	json_key(j, "debuginfod");
	json_bool(j, c && debuginfod_gives_source(&c->debuginfod));
	json_key(j, "links");
	json_u64(j, c ? c->source_links.n : 0);
	json_key(j, "labels");
	json_array(j);
	for (size_t i = 0; c && i < c->source_links.labels_n; i++)
		json_str(j, c->source_links.labels[i]);
	json_array_end(j);
}

static enum err_code api_find_url(
	struct http_in *in, const struct config *c, struct buf *url, struct err *err)
{
	struct str path = http_param(in, "path"), line;
	struct labels labels;
	enum err_code rc;

	if ((rc = api_read_line(in, &line, err)) || !c || !path.len)
		return rc;
	if ((rc = api_source_read_labels(in, &c->source_links, &labels, err)))
		return rc;
	(void)source_links_url(&c->source_links, path, line, labels, url);
	return buf_failed(url) ? err_nomem(err, "link") : ERR_OK;
}

static void api_write_links(struct http_out *out, const struct config *c, const struct buf *url)
{
	struct json j;

	api_begin(out, &j);
	json_object(&j);
	api_write_settings(&j, c);
	if (url->len) {
		json_key(&j, "url");
		json_str(&j, buf_str(url));
	}
	json_object_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}

void api_source_links(struct web *w, struct http_in *in, struct http_out *out)
{
	struct config *c = w->o.config ? w->o.config(w->o.ctx) : NULL;
	struct buf url = { 0 };
	struct err err;
	enum err_code rc = api_find_url(in, c, &url, &err);

	if (rc)
		api_fail(out, rc, &err);
	else
		api_write_links(out, c, &url);
	buf_release(&url);
	config_unref(c);
}
