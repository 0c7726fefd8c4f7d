/* What a call is given. Types and names were checked against the table. */
#include "base/clock.h"
#include "base/quote.h"
#include "promql/syntax/check.h"
#include "web/mcp/tool.h"

struct str tool_string(const struct tool_call *c, const char *name)
{
	return message_str(json_object_get(c->arguments, name));
}

size_t tool_whole(const struct tool_call *c, const char *name, size_t fallback, size_t max)
{
	const json_t *value = json_object_get(c->arguments, name);
	json_int_t n = json_is_integer(value) ? json_integer_value(value) : 0;

	if (n <= 0)
		n = (json_int_t)fallback;
	return n < (json_int_t)max ? (size_t)n : max;
}

enum err_code tool_strings(
	const struct tool_call *c, const char *name, struct str **out, size_t *n, struct err *err)
{
	const json_t *list = json_object_get(c->arguments, name);

	*n = json_array_size(list);
	if (!(*out = arena_array(c->arena, struct str, *n + 1)))
		return arena_fail(c->arena, name, err);
	for (size_t i = 0; i < *n; i++)
		(*out)[i] = message_str(json_array_get(list, i));
	return ERR_OK;
}

static enum err_code tool_read_duration(
	const struct tool_call *c, const char *name, int64_t *out, struct err *err)
{
	struct str text = tool_string(c, name);
	enum err_code rc;

	if (!text.len)
		return ERR_OK;
	if ((rc = duration_parse(text, out, err)))
		return err_wrap(err, rc, "argument %s", name);
	if (*out <= 0)
		return err_set(err, ERR_INVALID, "argument %s must be above 0, not %s", name, QUOTED(text));
	return ERR_OK;
}

static enum err_code tool_read_time(
	const struct tool_call *c, const char *name, int64_t *out, struct err *err)
{
	const json_t *value = json_object_get(c->arguments, name);
	struct str text = message_str(value);
	enum err_code rc;
	double seconds;

	if (json_is_number(value)) {
		seconds = json_number_value(value);
		if (!(seconds >= 0 && seconds < (double)TIME_MAX_NS / 1e9))
			return err_set(err, ERR_INVALID, "argument %s must be seconds since 1970", name);
		*out = (int64_t)(seconds * 1e3 + 0.5) * NS_PER_MS;
		return ERR_OK;
	}
	if (!text.len)
		return ERR_OK;
	rc = time_parse(text, out, err);
	return rc ? err_wrap(err, rc, "argument %s", name) : ERR_OK;
}

enum err_code tool_read_window(const struct tool_call *c, const char *window_name,
	const char *end_name, struct tool_window *out, struct err *err)
{
	int64_t length_ns = out->end_ns - out->start_ns;
	enum err_code rc;

	if ((rc = tool_read_duration(c, window_name, &length_ns, err)) ||
		(rc = tool_read_time(c, end_name, &out->end_ns, err)))
		return rc;
	out->start_ns = out->end_ns > length_ns ? out->end_ns - length_ns : 0;
	return ERR_OK;
}

enum err_code tool_read_profiles(
	const struct tool_call *c, const char *name, struct tool_profiles *out, struct err *err)
{
	struct parsed *p = NULL;
	struct buf text = { 0 };
	enum err_code rc;

	if ((rc = parse_query(c->arena, tool_string(c, name), &p, NULL, err)) ||
		(rc = check_query(p, NULL, err)))
		goto out;
	if (!(p->root->types & VALUE_PROFILES)) {
		value_types_print(&text, p->root->types);
		rc = err_set(err, ERR_INVALID,
			"it must give profiles, not " STR_FMT "; the tool query takes any query",
			STR_ARG(buf_str(&text)));
		goto out;
	}
	expr_print(&text, p->root);
	out->text = str_dup(c->arena, buf_str(&text));
	out->is_selector = p->root->kind == EXPR_SELECTOR && !p->root->selector.window_ns &&
		!time_shift_any(&p->root->selector.shift);
	if (buf_failed(&text) || !out->text.ptr)
		rc = arena_fail(c->arena, name, err);
out:
	buf_release(&text);
	parsed_release(p);
	return rc ? err_wrap(err, rc, "argument %s", name) : ERR_OK;
}
