/* The API's chapters: for each tag its operations, and the types of their answers. */
#include <jansson.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/book/book.h"
#include "web/openapi/examples.h"
#include "web/openapi/openapi.h"
#include "web/openapi/operations.h"
#include "web/openapi/schemas.h"
#include "web/routes.h"

#define SERVER "http://127.0.0.1:7272"
#define SCHEMAS_MAX 128u

/* A cell of a table: "|" would end it. */
static void book_api_cell(struct buf *out, const char *text)
{
	for (; *text; text++)
		buf_printf(out, *text == '|' ? "\\%c" : "%c", *text);
}

static const struct route *book_api_route(const struct operation *op)
{
	for (size_t i = 0; i < web_routes_n; i++)
		if (web_routes[i].op == op)
			return &web_routes[i];
	return NULL;
}

/* ---- parameters ---- */

static const char *book_api_type(const struct operation_param *p)
{
	static const char *const names[] = {
		[PARAM_STRING] = "text",
		[PARAM_TIME] = "time",
		[PARAM_DURATION] = "duration",
		[PARAM_UINT] = "number",
		[PARAM_BOOL] = "`true`, `false`",
		[PARAM_QUERY] = "query",
		[PARAM_SELECTOR] = "selector",
	};

	return names[p->type];
}

static void book_api_values(struct buf *out, const char *values)
{
	buf_add_char(out, '`');
	for (; *values; values++)
		buf_printf(out, *values == '|' ? "`, `" : "%c", *values);
	buf_add_char(out, '`');
}

static void book_api_param(struct buf *out, const struct operation_param *p)
{
	buf_printf(out, "| `%s%s` | ", p->name, p->flags & PARAM_PREFIX ? "NAME" : "");
	if (p->values)
		book_api_values(out, p->values);
	else
		buf_add_cstr(out, book_api_type(p));
	buf_printf(out, "%s | ", p->flags & PARAM_REPEATED ? ", may be repeated" : "");
	book_api_cell(out, p->flags & PARAM_REQUIRED ? "required" : p->fallback ? p->fallback : "");
	buf_add_cstr(out, " | ");
	if (p->flags & PARAM_IN_PATH)
		buf_add_cstr(out, "Part of the path. ");
	book_api_cell(out, p->help);
	buf_add_cstr(out, " |\n");
}

static void book_api_params(struct buf *out, const struct operation *op)
{
	if (!op->params)
		return;
	buf_add_cstr(out, "| parameter | type | default | what |\n|---|---|---|---|\n");
	for (const struct operation_param *p = op->params; p->name; p++)
		book_api_param(out, p);
	buf_add_char(out, '\n');
}

/* ---- an example ---- */

static void book_api_example_path(struct buf *out, const struct route *r)
{
	const struct operation_param *p = r->op->params;

	for (const char *c = r->path; *c; c++) {
		if (*c != '*') {
			buf_add_char(out, *c);
			continue;
		}
		while (!(p->flags & PARAM_IN_PATH))
			p++;
		buf_add_cstr(out, p->example);
		p++;
	}
}

static bool book_api_has_bytes(const struct operation *op)
{
	return op->answers[0].media && !strcmp(op->answers[0].media, "application/octet-stream");
}

/* Ids and files of an example are made up, so such a command is shown and not run. */
static bool book_api_runs(const struct route *r)
{
	return (r->methods & HTTP_GET) && (!strchr(r->path, '*') || strstr(r->path, "/label/"));
}

static void book_api_curl(struct buf *out, const struct route *r)
{
	const struct operation *op = r->op;
	bool get = r->methods & HTTP_GET, first = true;

	buf_printf(out, "```sh%s\ncurl -s ", book_api_runs(r) ? "" : " elsewhere");
	if (book_api_has_bytes(op))
		buf_add_cstr(out, "-o profile.pb.gz ");
	if (!get && !op->bodies)
		buf_printf(out, "-X %s ", r->methods & HTTP_DELETE ? "DELETE" : "POST");
	if (op->bodies && !get && !strcmp(op->bodies[0].media, "application/json"))
		buf_add_cstr(out, "-H 'Content-Type: application/json' --data '{}' ");
	else if (op->bodies && !get)
		buf_add_cstr(out, "--data-binary @FILE ");
	if (get || !op->bodies) {
		bool any = false;

		for (const struct operation_param *p = op->params; p && p->name; p++)
			any |= p->example && !(p->flags & PARAM_IN_PATH);
		buf_printf(out, "%s'" SERVER, any && get ? "-G " : "");
		book_api_example_path(out, r);
		buf_add_char(out, '\'');
		for (const struct operation_param *p = op->params; p && p->name; p++)
			if (p->example && !(p->flags & PARAM_IN_PATH))
				buf_printf(out, " \\\n  --data-urlencode '%s%s=%s'", p->name,
					p->flags & PARAM_PREFIX ? "NAME" : "", p->example);
	} else {
		buf_add_cstr(out, "'" SERVER);
		book_api_example_path(out, r);
		for (const struct operation_param *p = op->params; p && p->name; p++) {
			if (!p->example || (p->flags & PARAM_IN_PATH))
				continue;
			buf_printf(out, "%c%s=%s", first ? '?' : '&', p->flags & PARAM_PREFIX ? "job" : p->name,
				p->example);
			first = false;
		}
		buf_add_char(out, '\'');
	}
	buf_add_cstr(out, "\n```\n\n");
}

static void book_api_example(struct buf *out, const struct operation *op)
{
	const struct operation_example *e = example_find(op->id);
	json_t *answer = e ? json_loads(e->answer, JSON_DECODE_ANY, NULL) : NULL;
	char *text = answer ? json_dumps(answer, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : NULL;

	if (text)
		buf_printf(out, "```json\n%s\n```\n\n", text);
	free(text);
	json_decref(answer);
}

/* ---- answers ---- */

static void book_api_type_cell(struct buf *out, const char *type)
{
	buf_add_char(out, '`');
	book_api_cell(out, type);
	buf_add_char(out, '`');
}

static void book_api_answers(struct buf *out, const struct operation *op)
{
	buf_add_cstr(out, "| status | form | what |\n|---|---|---|\n");
	for (const struct operation_answer *a = op->answers; a->status; a++) {
		buf_printf(out, "| %d | ", a->status);
		if (!a->media && a->type) {
			buf_add_cstr(out, "`data` is ");
			book_api_type_cell(out, a->type);
		} else if (a->media) {
			buf_printf(out, "`%s`", a->media);
			if (a->type && strcmp(a->type, "any") != 0) {
				buf_add_cstr(out, ": ");
				book_api_type_cell(out, a->type);
			}
		}
		buf_add_cstr(out, " | ");
		book_api_cell(out, a->help ? a->help : "");
		buf_add_cstr(out, " |\n");
	}
	buf_add_char(out, '\n');
	if (op->errors)
		buf_printf(out, "Errors: %s. [What they mean](overview.md#errors).\n\n", op->errors);
}

static void book_api_methods(struct buf *out, unsigned methods)
{
	static const enum http_method order[] = { HTTP_GET, HTTP_POST, HTTP_PUT, HTTP_DELETE };

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		if (methods & order[i])
			buf_printf(out, "%s ", http_method_name(order[i]));
}

static void book_api_operation(struct buf *out, const struct operation *op)
{
	const struct route *r = book_api_route(op);
	const char *role = openapi_role(r->needs), *flag = openapi_flag(r);
	struct buf path = { 0 };

	openapi_path(&path, r);
	buf_add_cstr(out, "## ");
	book_api_methods(out, r->methods);
	buf_add_str(out, buf_str(&path));
	buf_release(&path);
	buf_printf(out, "\n\n%s.", op->summary);
	if (op->description)
		buf_printf(out, " %s", op->description);
	buf_add_cstr(out, "\n\n");
	if (role || flag) {
		buf_add_cstr(out, "Needs ");
		if (role)
			buf_printf(out, "the role %s%s", role, flag ? " and " : "");
		if (flag)
			buf_printf(out, "the flag `%s`", flag);
		buf_add_cstr(out, ".\n\n");
	}
	book_api_params(out, op);
	for (const struct operation_body *b = op->bodies; b && b->media; b++)
		buf_printf(out, "Body `%s`: %s\n\n", b->media, b->help);
	book_api_curl(out, r);
	book_api_example(out, op);
	book_api_answers(out, op);
}

/* ---- types ---- */

struct book_types {
	const struct schema *v[SCHEMAS_MAX];
	size_t n;
};

static void book_types_add(struct book_types *t, const char *type);

static void book_types_add_name(struct book_types *t, struct str name)
{
	const struct schema *s = schema_find(name);

	for (size_t i = 0; i < t->n && s; i++)
		if (t->v[i] == s)
			return;
	if (!s || t->n == SCHEMAS_MAX)
		return;
	t->v[t->n++] = s;
	for (const struct schema_field *f = s->fields; f && f->name; f++)
		book_types_add(t, f->type);
	if (s->raw)
		book_types_add(t, s->raw);
}

/* The names in a type; words in quotes and those of JSON name none. */
static void book_types_add(struct book_types *t, const char *type)
{
	while (*type) {
		size_t n = 0;

		while (isalnum((unsigned char)type[n]))
			n++;
		if (n && isupper((unsigned char)type[0]))
			book_types_add_name(t, (struct str){ type, n });
		type += n ? n : 1;
	}
}

static void book_types_write(struct buf *out, const struct schema *s)
{
	buf_printf(out, "### %s\n\n", s->name);
	if (s->help)
		buf_printf(out, "%s\n\n", s->help);
	if (!s->fields)
		return;
	buf_add_cstr(out, "| field | type | what |\n|---|---|---|\n");
	for (const struct schema_field *f = s->fields; f->name; f++) {
		size_t len = strlen(f->name);
		bool optional = f->name[len - 1] == '?';

		buf_printf(out, "| `%.*s` | ", (int)(len - optional), f->name);
		book_api_type_cell(out, f->type);
		buf_printf(out, " | %s", optional ? "May be missing. " : "");
		book_api_cell(out, f->help ? f->help : "");
		buf_add_cstr(out, " |\n");
	}
	buf_add_char(out, '\n');
}

static void book_api_tag(struct buf *out, const char *name)
{
	struct book_types types = { .n = 0 };

	for (size_t i = 0; i < operation_tags_n; i++) {
		const struct operation_tag *t = &operation_tags[i];

		if (strcmp(t->name, name) != 0)
			continue;
		for (size_t k = 0; k < t->n; k++) {
			book_api_operation(out, &t->v[k]);
			for (const struct operation_answer *a = t->v[k].answers; a->status; a++)
				if (a->type)
					book_types_add(&types, a->type);
		}
	}
	if (types.n)
		buf_add_cstr(out,
			"## Types of answers\n\n`[]T` is a list of `T`, `{}T` an object of `T` by "
			"name, `A|B` one of both.\n\n");
	for (size_t i = 0; i < types.n; i++)
		book_types_write(out, types.v[i]);
}

enum err_code api_part_write(const struct book_part *part, struct buf *out, struct err *err)
{
	(void)err;
	book_api_tag(out, part->name + strlen(API_PART_PREFIX));
	return ERR_OK;
}
