#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/version.h"
#include "web/openapi/examples.h"
#include "web/openapi/openapi.h"
#include "web/openapi/operations.h"
#include "web/openapi/parameters.h"
#include "web/openapi/schemas.h"

const char *openapi_role(enum http_needs needs)
{
	static const char *const names[] = {
		[NEEDS_NOT_SAID] = NULL,
		[NEEDS_USER] = NULL,
		[NEEDS_READ] = "read",
		[NEEDS_READ_ALL] = "read, without matchers",
		[NEEDS_INGEST] = "ingest",
		[NEEDS_ADMIN] = "admin",
	};

	return names[needs];
}

const char *openapi_flag(const struct route *r)
{
	return r->flags & ROUTE_LIFECYCLE ? "--web.enable-lifecycle" :
		r->flags & ROUTE_ADMIN        ? "--web.enable-admin-api" :
		r->flags & ROUTE_INGEST       ? "--web.enable-ingest" :
										NULL;
}

void openapi_path(struct buf *out, const struct route *r)
{
	const struct operation_param *p = r->op->params;

	for (const char *c = r->path; *c; c++) {
		if (*c != '*') {
			buf_add_char(out, *c);
			continue;
		}
		while (!(p->flags & PARAM_IN_PATH))
			p++;
		buf_printf(out, "{%s}", p->name);
		p++;
	}
}

/* ---- bodies and answers ---- */

static void openapi_write_media(struct json *j, const char *media, const char *type)
{
	json_key(j, media);
	json_object(j);
	if (type) {
		json_key(j, "schema");
		schema_write_type(j, type);
	}
	json_object_end(j);
}

static void openapi_write_bodies(struct json *j, const struct operation *op, bool as_form)
{
	struct buf help = { 0 };

	if (!op->bodies && !as_form)
		return;
	json_key(j, "requestBody");
	json_object(j);
	for (const struct operation_body *b = op->bodies; b && b->media; b++)
		buf_printf(&help, "%s%s: %s", help.len ? " " : "", b->media, b->help);
	if (help.len) {
		json_key(j, "description");
		json_str(j, buf_str(&help));
	}
	buf_release(&help);
	json_key(j, "required");
	json_bool(j, true);
	json_key(j, "content");
	json_object(j);
	if (as_form)
		parameters_write_form(j, op);
	for (const struct operation_body *b = op->bodies; b && b->media; b++)
		openapi_write_media(j, b->media, b->type);
	json_object_end(j);
	json_object_end(j);
}

static void openapi_write_strings(struct json *j, const char *key, const char *help)
{
	json_key(j, key);
	json_object(j);
	parameter_pair(j, "description", help);
	parameter_pair(j, "type", "array");
	json_key(j, "items");
	schema_write_type(j, "string");
	json_object_end(j);
}

/* The API's envelope. */
static void openapi_write_envelope(
	struct json *j, const struct operation_answer *a, const struct operation *op)
{
	const struct operation_example *e = example_find(op->id);

	json_key(j, "application/json");
	json_object(j);
	json_key(j, "schema");
	json_object(j);
	parameter_pair(j, "type", "object");
	json_key(j, "properties");
	json_object(j);
	json_key(j, "status");
	schema_write_type(j, "'success'");
	json_key(j, "data");
	schema_write_type(j, a->type);
	openapi_write_strings(j, "warnings", "What the answer lacks.");
	openapi_write_strings(j, "infos", "What is worth knowing.");
	json_object_end(j);
	json_key(j, "required");
	json_raw(j, STR("[\"status\",\"data\"]"));
	json_object_end(j);
	if (e) {
		json_key(j, "example");
		json_raw(j, str_of(e->answer));
	}
	json_object_end(j);
}

static void openapi_write_answer(
	struct json *j, const struct operation_answer *a, const struct operation *op)
{
	const struct operation_example *e = a->media && a->type ? example_find(op->id) : NULL;

	if (!a->media && a->type) {
		openapi_write_envelope(j, a, op);
	} else if (e) {
		json_key(j, a->media);
		json_object(j);
		json_key(j, "schema");
		schema_write_type(j, a->type);
		json_key(j, "example");
		json_raw(j, str_of(e->answer));
		json_object_end(j);
	} else if (a->media) {
		openapi_write_media(j, a->media, a->type);
	}
}

/* Writes one response for each status. The table lists answers of one status next to each other. */
static void openapi_write_answers(struct json *j, const struct operation *op)
{
	const struct operation_answer *a = op->answers;

	while (a->status) {
		const struct operation_answer *first = a;
		struct buf text = { 0 };

		buf_printf(&text, "%d", first->status);
		json_key_str(j, buf_str(&text));
		json_object(j);
		buf_clear(&text);
		for (a = first; a->status == first->status; a++)
			if (a->help)
				buf_printf(&text, "%s%s", text.len ? " " : "", a->help);
		json_key(j, "description");
		json_str(j, text.len ? buf_str(&text) : STR("The answer."));
		buf_release(&text);
		if (first->media || first->type) {
			json_key(j, "content");
			json_object(j);
			for (a = first; a->status == first->status; a++)
				openapi_write_answer(j, a, op);
			json_object_end(j);
		}
		json_object_end(j);
	}
}

/* ---- errors ---- */

static const char *openapi_reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} rows[] = {
		{ 400, "A parameter or the body is wrong." },
		{ 404, "There is no such thing, or the server does not offer it." },
		{ 409, "It is there already, or it is not wanted." },
		{ 412, "The upload was not announced." },
		{ 413, "Too large, or too many." },
		{ 415, "This Content-Type or Content-Encoding is not taken." },
		{ 422, "A limit was reached, or the body is not what it should be." },
		{ 429, "This sender has too many requests, or sends too much." },
		{ 499, "The client went away." },
		{ 500, "The server failed." },
		{ 501, "Not implemented." },
		{ 503, "Too busy, not ready, or it took too long: try again later." },
		{ 504, "It took too long." },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].status == status)
			return rows[i].reason;
	return "The request is refused.";
}

static void openapi_write_error(
	struct json *j, int status, const char *reason, enum operation_errors form, bool text_too)
{
	static const char *const types[] = {
		[ERRORS_ENVELOPE] = "Error",
		[ERRORS_BOTH] = "Error",
		[ERRORS_TEXT] = NULL,
		[ERRORS_CONNECT] = "ConnectError",
		[ERRORS_PROFEFE] = "ProfefeError",
	};
	char key[16];

	snprintf(key, sizeof(key), "%d", status);
	json_key(j, key);
	json_object(j);
	parameter_pair(j, "description", reason);
	json_key(j, "content");
	json_object(j);
	if (types[form])
		openapi_write_media(j, "application/json", types[form]);
	if (!types[form] || text_too || form == ERRORS_BOTH)
		openapi_write_media(j, "text/plain", "string");
	json_object_end(j);
	json_object_end(j);
}

static void openapi_write_errors(struct json *j, const struct route *r)
{
	const struct operation *op = r->op;
	const char *p = op->errors ? op->errors : "";
	bool api = r->flags & ROUTE_API;
	char *end;

	openapi_write_error(j, 401,
		r->flags & ROUTE_OPEN ? "The credentials are wrong." : "Nobody signed in.", ERRORS_TEXT,
		false);
	if (openapi_role(r->needs) || openapi_flag(r) || (r->flags & ROUTE_CHANGES))
		openapi_write_error(j, 403, "A role or a flag is missing.",
			api ? ERRORS_ENVELOPE : ERRORS_TEXT, r->flags & ROUTE_LIFECYCLE);
	if ((r->flags & ROUTE_INGEST) && !strstr(p, "404"))
		openapi_write_error(j, 404, "Pushes are disabled.", ERRORS_ENVELOPE, false);
	for (long status = strtol(p, &end, 10); end != p; status = strtol(p, &end, 10)) {
		p = end;
		if (status != 403)
			openapi_write_error(j, (int)status, openapi_reason((int)status), op->error_form,
				status == 413 || status == 415 || status == 429 || status == 503);
	}
}

/* ---- operations ---- */

static void openapi_write_description(struct json *j, const struct route *r)
{
	const char *role = openapi_role(r->needs), *flag = openapi_flag(r);
	struct buf text = { 0 };

	if (r->op->description)
		buf_add_cstr(&text, r->op->description);
	if (role)
		buf_printf(&text, "%sNeeds the role %s.", text.len ? " " : "", role);
	if (flag)
		buf_printf(&text, "%sNeeds the flag `%s`.", text.len ? " " : "", flag);
	if (text.len) {
		json_key(j, "description");
		json_str(j, buf_str(&text));
	}
	buf_release(&text);
}

/* POST where there is a GET too: the parameters are a form. Its id has a suffix. */
static void openapi_write_operation(
	struct json *j, const struct route *r, enum http_method method, const char *key)
{
	const struct operation *op = r->op;
	bool as_form = method == HTTP_POST && (r->methods & HTTP_GET) && op->params;
	struct buf id = { 0 };

	buf_add_cstr(&id, op->id);
	if (method == HTTP_POST && (r->methods & HTTP_GET))
		buf_add_cstr(&id, "ByForm");
	if (method == HTTP_PUT)
		buf_add_cstr(&id, "ByPut");
	json_key(j, key);
	json_object(j);
	json_key(j, "operationId");
	json_str(j, buf_str(&id));
	buf_release(&id);
	json_key(j, "tags");
	json_array(j);
	json_cstr(j, operation_tag_of(op)->name);
	json_array_end(j);
	parameter_pair(j, "summary", op->summary);
	openapi_write_description(j, r);
	parameter_pair(j, "x-role", openapi_role(r->needs));
	parameter_pair(j, "x-flag", openapi_flag(r));
	parameters_write(j, op, as_form);
	if (method != HTTP_GET)
		openapi_write_bodies(j, op, as_form);
	json_key(j, "responses");
	json_object(j);
	openapi_write_answers(j, op);
	openapi_write_errors(j, r);
	json_object_end(j);
	json_object_end(j);
}

static void openapi_write_methods(struct json *j, const struct route *r)
{
	static const struct {
		enum http_method method;
		const char *key;
	} methods[] = {
		{ HTTP_GET, "get" },
		{ HTTP_POST, "post" },
		{ HTTP_PUT, "put" },
		{ HTTP_DELETE, "delete" },
	};

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (r->op && (r->methods & methods[i].method))
			openapi_write_operation(j, r, methods[i].method, methods[i].key);
}

/* Rows of one path are one object, written at the first of them. */
static void openapi_write_paths(struct json *j, const struct route *routes, size_t n)
{
	struct buf path = { 0 };

	json_key(j, "paths");
	json_object(j);
	for (size_t i = 0; i < n; i++) {
		bool is_first = routes[i].op != NULL;

		for (size_t k = 0; k < i && is_first; k++)
			is_first = strcmp(routes[k].path, routes[i].path);
		if (!is_first)
			continue;
		buf_clear(&path);
		openapi_path(&path, &routes[i]);
		json_key_str(j, buf_str(&path));
		json_object(j);
		for (size_t k = i; k < n; k++)
			if (!strcmp(routes[k].path, routes[i].path))
				openapi_write_methods(j, &routes[k]);
		json_object_end(j);
	}
	json_object_end(j);
	buf_release(&path);
}

/* ---- the document ---- */

static void openapi_write_info(struct json *j, const char *server)
{
	parameter_pair(j, "openapi", "3.1.0");
	json_key(j, "info");
	json_object(j);
	parameter_pair(j, "title", "Epimetheus");
	parameter_pair(j, "version", EPI_VERSION);
	parameter_pair(j, "description",
		"Continuous profiling: profiles are stored and queried as Prometheus does with metrics. "
		"Every path that takes GET takes HEAD. Parameters of a POST without a body of its own may "
		"be a form.");
	json_key(j, "license");
	json_object(j);
	parameter_pair(j, "name", "Apache 2.0");
	parameter_pair(j, "identifier", "Apache-2.0");
	json_object_end(j);
	json_object_end(j);
	json_key(j, "servers");
	json_array(j);
	json_object(j);
	parameter_pair(j, "url", server);
	json_object_end(j);
	json_array_end(j);
	/* Without users nobody has to sign in. */
	json_key(j, "security");
	json_raw(j, STR("[{},{\"basic\":[]},{\"bearer\":[]}]"));
}

static void openapi_write_tags(struct json *j)
{
	json_key(j, "tags");
	json_array(j);
	for (size_t i = 0; i < operation_tags_n; i++) {
		json_object(j);
		parameter_pair(j, "name", operation_tags[i].name);
		parameter_pair(j, "description", operation_tags[i].help);
		json_object_end(j);
	}
	json_array_end(j);
}

static void openapi_write_components(struct json *j)
{
	static const struct schema *const tables[] = { query_schemas, server_schemas, other_schemas };

	json_key(j, "components");
	json_object(j);
	json_key(j, "securitySchemes");
	json_raw(j,
		STR("{\"basic\":{\"type\":\"http\",\"scheme\":\"basic\"},"
			"\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"}}"));
	json_key(j, "schemas");
	json_object(j);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct schema *s = tables[i]; s->name; s++) {
			json_key(j, s->name);
			schema_write(j, s);
		}
	json_object_end(j);
	json_object_end(j);
}

void openapi_write(struct buf *out, const struct route *routes, size_t n, const char *server)
{
	struct json j;

	json_init(&j, out);
	json_object(&j);
	openapi_write_info(&j, server);
	openapi_write_tags(&j);
	openapi_write_paths(&j, routes, n);
	openapi_write_components(&j);
	json_object_end(&j);
	buf_add_char(out, '\n');
}

void openapi_handle(struct web *w, struct http_in *in, struct http_out *out)
{
	(void)in;
	out->content_type = "application/json";
	openapi_write(&out->body, w->routes, w->routes_n, w->base[0] ? w->base : "/");
}
