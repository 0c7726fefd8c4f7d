/* The table of tools, their list, and a call from its arguments to its answer. */
#include "web/mcp/tool.h"

#include "base/clock.h"
#include "base/quote.h"
#include "web/router/envelope.h"

#define PROFILES_HELP \
	"Which profiles: a selector such as cpu{__service__=\"cart\"}, memory{...}, mutex{...}, " \
	"goroutine{...}; or an expression that gives profiles, such as focus(cpu{...}, \"json\")."
#define PARAM_PROFILES \
	{ \
		"profiles", TOOL_STRING, true, NULL, PROFILES_HELP \
	}
#define PARAMS_WINDOW \
	{ "window", TOOL_DURATION, false, NULL, "How long the window is: 15m unless given." }, \
	{ \
		"end", TOOL_TIME, false, NULL, "When it ends: now unless given." \
	}
#define PARAM_LIMIT(help) \
	{ \
		"limit", TOOL_WHOLE, false, NULL, help \
	}
#define PARAMS(...) \
	(const struct tool_param[]) \
	{ \
		__VA_ARGS__, \
		{ \
			0 \
		} \
	}

/* Every tool has it. */
static const struct tool_param max_bytes = { "max_bytes", TOOL_WHOLE, false, NULL,
	"Bytes of the answer's text: 8192 unless given, 1024 to 65536." };

/* In the order in which an assistant needs them, which clients may rely on. */
const struct tool tools[] = {
	{ "services",
		"What is profiled: services with their CPU cores, memory, goroutines, and the types of "
		"profiles that there are. Begin here.",
		PARAMS(PARAMS_WINDOW,
			{ "by", TOOL_STRING, false, NULL,
				"The label that services are told apart by: __service__ (service_name, or else "
				"job) "
				"unless given; also version, instance, namespace." }),
		tool_services_run },
	{ "top",
		"The most expensive functions, as `go tool pprof -top` has them: flat (in the function "
		"itself), cum (with what it calls), file and line, and what is left out.",
		PARAMS(PARAM_PROFILES, PARAMS_WINDOW,
			{ "sort", TOOL_STRING, false, "flat|cum", "By which cost; flat unless given." },
			PARAM_LIMIT("At most so many functions: 30 unless given.")),
		tool_top_run },
	{ "tree",
		"The call tree from the root, breadth first: who calls whom, for how much. A chain of "
		"single calls is one line.",
		PARAMS(PARAM_PROFILES, PARAMS_WINDOW,
			{ "path", TOOL_STRINGS, false, NULL,
				"Only below this call path: names of functions, the root first." }),
		tool_tree_run },
	{ "function",
		"One function: its costs, who calls it, what it calls, its lines, and where its source is.",
		PARAMS({ "function", TOOL_STRING, true, NULL,
				   "Its whole name, as top prints it. A part of a name lists what has it." },
			PARAM_PROFILES, PARAMS_WINDOW),
		tool_function_run },
	{ "compare",
		"What changed between two windows or two selectors: totals, functions by how far their "
		"share moved, and for each a verdict whether that is more than chance.",
		PARAMS(PARAM_PROFILES, PARAMS_WINDOW,
			{ "base", TOOL_STRING, false, NULL,
				"What to compare with, such as cpu{version=\"v1\"}: the same profiles unless "
				"given." },
			{ "base_window", TOOL_DURATION, false, NULL, "As long as window unless given." },
			{ "base_end", TOOL_TIME, false, NULL,
				"Unless given: where the window begins; with base, where it ends." },
			PARAM_LIMIT("At most so many functions: 25 unless given.")),
		tool_compare_run },
	{ "query",
		"Any query of the language: numbers, profiles or tables. It can also be checked or planned "
		"without being run.",
		PARAMS({ "query", TOOL_STRING, true, NULL,
				   "For example topk(5, flat(merge(cpu{job=\"api\"}[5m])))." },
			{ "mode", TOOL_STRING, false, "run|validate|explain", "run unless given." },
			PARAMS_WINDOW,
			{ "step", TOOL_DURATION, false, NULL,
				"Evaluate at steps over the window, as a chart does; else once, at its end." },
			PARAM_LIMIT("At most so many rows: 50 unless given.")),
		tool_query_run },
	{ "help", "The query language by example, or one of its functions.",
		PARAMS({ "topic", TOOL_STRING, false, NULL,
			"The name of a function such as changed; or functions, for a list of all." }),
		tool_help_run },
};
const size_t tools_n = sizeof(tools) / sizeof(tools[0]);

/* ---- the list ---- */

static void tool_write_values(struct json *j, const char *values)
{
	json_key(j, "enum");
	json_array(j);
	for (const char *at = values; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
		json_str(j, (struct str){ at, strcspn(at, "|") });
	json_array_end(j);
}

static void tool_write_param(struct json *j, const struct tool_param *p)
{
	json_key(j, p->name);
	json_object(j);
	json_key(j, "type");
	if (p->type == TOOL_STRINGS) {
		json_cstr(j, "array");
		json_key(j, "items");
		json_object(j);
		json_key(j, "type");
		json_cstr(j, "string");
		json_object_end(j);
	} else {
		json_cstr(j, p->type == TOOL_WHOLE ? "integer" : "string");
	}
	if (p->values)
		tool_write_values(j, p->values);
	json_key(j, "description");
	json_cstr(j, p->help);
	json_object_end(j);
}

static void tool_write_schema(struct json *j, const struct tool *t)
{
	json_key(j, "inputSchema");
	json_object(j);
	json_key(j, "type");
	json_cstr(j, "object");
	json_key(j, "properties");
	json_object(j);
	for (const struct tool_param *p = t->params; p->name; p++)
		tool_write_param(j, p);
	tool_write_param(j, &max_bytes);
	json_object_end(j);
	json_key(j, "required");
	json_array(j);
	for (const struct tool_param *p = t->params; p->name; p++)
		if (p->required)
			json_cstr(j, p->name);
	json_array_end(j);
	json_key(j, "additionalProperties");
	json_bool(j, false);
	json_object_end(j);
}

void tools_write(struct json *j)
{
	json_array(j);
	for (size_t i = 0; i < tools_n; i++) {
		json_object(j);
		json_key(j, "name");
		json_cstr(j, tools[i].name);
		json_key(j, "description");
		json_cstr(j, tools[i].help);
		tool_write_schema(j, &tools[i]);
		json_key(j, "annotations");
		json_object(j);
		json_key(j, "readOnlyHint");
		json_bool(j, true);
		json_key(j, "openWorldHint");
		json_bool(j, false);
		json_object_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}

/* ---- a call ---- */

static const struct tool_param *tool_find_param(const struct tool *t, struct str name)
{
	for (const struct tool_param *p = t->params; p->name; p++)
		if (str_is(name, p->name))
			return p;
	return str_is(name, max_bytes.name) ? &max_bytes : NULL;
}

static bool tool_has_value(const char *values, struct str value)
{
	for (const char *at = values; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
		if (str_eq(value, (struct str){ at, strcspn(at, "|") }))
			return true;
	return false;
}

static bool tool_are_strings(const json_t *value)
{
	const json_t *member;
	size_t i;

	if (!json_is_array(value))
		return false;
	json_array_foreach (value, i, member) {
		if (!json_is_string(member))
			return false;
	}
	return true;
}

static enum err_code tool_check_argument(
	const struct tool_param *p, const json_t *value, struct err *err)
{
	static const char *const wants[] = {
		[TOOL_STRING] = "a string",
		[TOOL_WHOLE] = "a whole number of 1 or more",
		[TOOL_STRINGS] = "an array of strings",
		[TOOL_DURATION] = "a duration in a string, such as \"15m\"",
		[TOOL_TIME] = "a time in a string, such as \"2026-11-30T14:15:00Z\", or seconds since 1970"
	};
	bool ok = json_is_string(value) || (p->type == TOOL_TIME && json_is_number(value));

	if (p->type == TOOL_WHOLE)
		ok = json_is_integer(value) && json_integer_value(value) > 0;
	else if (p->type == TOOL_STRINGS)
		ok = tool_are_strings(value);
	if (!ok)
		return err_set(err, ERR_INVALID, "argument %s must be %s", p->name, wants[p->type]);
	if (p->values && !tool_has_value(p->values, message_str(value)))
		return err_set(err, ERR_INVALID, "argument %s must be one of %s, not %s", p->name,
			p->values, QUOTED(message_str(value)));
	return ERR_OK;
}

static enum err_code tool_fail_name(const struct tool *t, struct str name, struct err *err)
{
	struct nearest near = nearest_to(name);
	struct buf known = { 0 };

	for (const struct tool_param *p = t->params; p->name; p++) {
		nearest_try(&near, str_of(p->name));
		buf_printf(&known, "%s%s", p == t->params ? "" : ", ", p->name);
	}
	err_set(err, ERR_INVALID, "%s has no argument %s%s; it has " STR_FMT ", max_bytes", t->name,
		QUOTED(name), DID_YOU_MEAN(&near), STR_ARG(buf_str(&known)));
	buf_release(&known);
	return ERR_INVALID;
}

/* An argument that is null or an empty string counts as not given. */
static bool tool_is_empty(const json_t *value)
{
	return json_is_null(value) || (json_is_string(value) && !json_string_length(value));
}

static enum err_code tool_check_arguments(const struct tool_call *c, struct err *err)
{
	const json_t *value;
	const char *key;
	enum err_code rc;

	json_object_foreach ((json_t *)(uintptr_t)c->arguments, key, value) {
		const struct tool_param *p = tool_find_param(c->tool, str_of(key));

		if (!p)
			return tool_fail_name(c->tool, str_of(key), err);
		if (!tool_is_empty(value) && (rc = tool_check_argument(p, value, err)))
			return rc;
	}
	for (const struct tool_param *p = c->tool->params; p->name; p++) {
		value = json_object_get(c->arguments, p->name);
		if (p->required && (!value || tool_is_empty(value)))
			return err_set(
				err, ERR_INVALID, "%s needs the argument %s. %s", c->tool->name, p->name, p->help);
	}
	return ERR_OK;
}

/* What an assistant can do about an error, beyond what its message says. */
static const char *tool_advice(enum err_code rc)
{
	switch (rc) {
	case ERR_INVALID:
		return "help shows the language by example; query with mode validate checks a text";
	case ERR_LIMIT:
	case ERR_TIMEOUT:
		return "take a shorter window or a narrower selector";
	case ERR_NOT_FOUND:
		return "services lists what is profiled; the window may end at another time (end)";
	case ERR_UNAVAILABLE:
		return "the server is busy: try again in a moment";
	default:
		return "the server could not answer; its log may say more";
	}
}

static void tool_write_error(
	struct tool_call *c, enum err_code rc, const struct err *why, struct buf *text, struct json *j)
{
	const char *type;

	(void)api_status(rc, &type);
	buf_add_cstr(text, "error: ");
	buf_add_printable(text, str_of(why->msg));
	buf_add_char(text, '\n');
	for (size_t i = 0; i < c->reply.notes_n; i++)
		buf_printf(text, "note: " STR_FMT "\n", STR_ARG(c->reply.notes[i]));
	buf_printf(text, "hint: %s\n", tool_advice(rc));
	json_object(j);
	json_key(j, "error");
	json_cstr(j, why->msg);
	json_key(j, "errorType");
	json_cstr(j, type);
	json_key(j, "notes");
	json_array(j);
	for (size_t i = 0; i < c->reply.notes_n; i++)
		json_str(j, c->reply.notes[i]);
	json_array_end(j);
	json_object_end(j);
}

/* Writes text and structured content, of the reply or of the error. */
static enum err_code tool_answer(
	struct tool_call *c, enum err_code rc, struct err *err, struct buf *text, struct buf *object)
{
	size_t max = tool_whole(c, "max_bytes", REPLY_BYTES_DEFAULT, REPLY_BYTES_MAX);
	struct json j;

	json_init(&j, object);
	if (!rc)
		rc = reply_write(&c->reply, max < REPLY_BYTES_MIN ? REPLY_BYTES_MIN : max, text, &j, err);
	if (!rc)
		return ERR_OK;
	buf_clear(text);
	buf_clear(object);
	json_init(&j, object);
	tool_write_error(c, rc, err, text, &j);
	return rc;
}

static void tool_run(struct tool_call *c, const struct mcp_message *m, struct http_out *out)
{
	struct buf text = { 0 }, object = { 0 };
	struct err err = { 0 };
	struct json j;
	enum err_code rc = tool_check_arguments(c, &err);

	if (!rc)
		rc = c->tool->fn(c, &err);
	rc = tool_answer(c, rc, &err, &text, &object);
	if (buf_failed(&text) || buf_failed(&object)) {
		http_text(out, 503, "answer: out of memory");
		goto out;
	}
	message_begin(m, out, &j);
	json_key(&j, "content");
	json_array(&j);
	json_object(&j);
	json_key(&j, "type");
	json_cstr(&j, "text");
	json_key(&j, "text");
	json_str(&j, buf_str(&text));
	json_object_end(&j);
	json_array_end(&j);
	json_key(&j, "structuredContent");
	json_raw(&j, buf_str(&object));
	json_key(&j, "isError");
	json_bool(&j, rc != ERR_OK);
	message_end(&j);
out:
	buf_release(&text);
	buf_release(&object);
}

static const struct tool *tool_find(struct str name, struct nearest *near)
{
	*near = nearest_to(name);
	for (size_t i = 0; i < tools_n; i++) {
		if (str_is(name, tools[i].name))
			return &tools[i];
		nearest_try(near, str_of(tools[i].name));
	}
	return NULL;
}

void tools_call(
	struct web *w, struct http_in *in, const struct mcp_message *m, struct http_out *out)
{
	struct str name = message_str(json_object_get(m->params, "name"));
	struct tool_call c = { .w = w, .in = in, .arena = &in->arena, .now_ns = clock_now_ns() };
	struct nearest near;

	c.reply.arena = c.arena;
	c.arguments = json_object_get(m->params, "arguments");
	c.tool = tool_find(name, &near);
	if (!c.tool)
		message_fail(
			m, out, MESSAGE_PARAMS, "there is no tool %s%s", QUOTED(name), DID_YOU_MEAN(&near));
	else if (c.arguments && !json_is_object(c.arguments))
		message_fail(m, out, MESSAGE_PARAMS, "params.arguments must be an object");
	else
		tool_run(&c, m, out);
}
