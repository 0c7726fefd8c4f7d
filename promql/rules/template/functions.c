/*
 * The functions of Go's text/template.
 */
#include "promql/rules/template/internal.h"

#include <stdio.h>

#include "base/net/percent.h"

enum err_code tv_of_buf(struct rendering *r, struct buf *b, struct tv *out, struct err *err)
{
	enum err_code rc = ERR_OK;

	*out = (struct tv){ TV_STRING, .s = STR("") };
	if (b->len > TEMPLATE_BYTES_MAX)
		rc = err_set(err, ERR_LIMIT, "more than %u bytes", TEMPLATE_BYTES_MAX);
	else if (buf_failed(b))
		rc = err_nomem(err, "template");
	else if (b->len && !(out->s = str_dup(&r->arena, buf_str(b))).ptr)
		rc = arena_fail(&r->arena, "template", err);
	buf_release(b);
	return rc;
}

static enum err_code template_call_not(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	*out = (struct tv){ TV_BOOL, .b = !tv_truth(&args[0]) };
	return ERR_OK;
}

/* ---- comparisons ---- */

static bool template_is_basic(const struct tv *t)
{
	return t->kind >= TV_BOOL && t->kind <= TV_STRING;
}

static enum err_code template_equal(
	const struct tv *a, const struct tv *b, bool *out, struct err *err)
{
	*out = false;
	if ((a->kind != TV_NIL && !template_is_basic(a)) ||
		(b->kind != TV_NIL && !template_is_basic(b)))
		return err_set(err, ERR_INVALID, "non-comparable type %s",
			tv_type_name(a->kind != TV_NIL && !template_is_basic(a) ? a : b));
	if (a->kind != b->kind)
		return a->kind == TV_NIL || b->kind == TV_NIL ?
			ERR_OK :
			err_set(err, ERR_INVALID, "incompatible types for comparison");
	*out = a->kind == TV_NIL ? true :
		a->kind == TV_BOOL   ? a->b == b->b :
		a->kind == TV_INT    ? a->i == b->i :
		a->kind == TV_FLOAT  ? a->f == b->f :
							   str_eq(a->s, b->s);
	return ERR_OK;
}

static enum err_code template_less(
	const struct tv *a, const struct tv *b, bool *out, struct err *err)
{
	*out = false;
	if (!template_is_basic(a) || !template_is_basic(b))
		return err_set(err, ERR_INVALID, "invalid type for comparison");
	if (a->kind != b->kind)
		return err_set(err, ERR_INVALID, "incompatible types for comparison");
	if (a->kind == TV_BOOL)
		return err_set(err, ERR_INVALID, "invalid type for comparison");
	*out = a->kind == TV_INT ? a->i < b->i :
		a->kind == TV_FLOAT  ? a->f < b->f :
							   str_cmp(a->s, b->s) < 0;
	return ERR_OK;
}

enum comparison { IS_EQ, IS_NE, IS_LT, IS_LE, IS_GT, IS_GE };

static enum err_code template_call_compare(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	bool hit = false;
	enum err_code rc = ERR_OK;

	if (fn->variant == IS_EQ && n < 2)
		return err_set(err, ERR_INVALID, "missing argument for comparison");
	switch ((enum comparison)fn->variant) {
	case IS_EQ: /* with any of the others */
		for (size_t i = 1; i < n && !rc && !hit; i++)
			rc = template_equal(&args[0], &args[i], &hit, err);
		break;
	case IS_NE:
		rc = template_equal(&args[0], &args[1], &hit, err);
		hit = !hit;
		break;
	case IS_LT:
	case IS_GE:
		rc = template_less(&args[0], &args[1], &hit, err);
		hit ^= fn->variant == IS_GE;
		break;
	case IS_LE:
	case IS_GT:
		if (!(rc = template_less(&args[0], &args[1], &hit, err)) && !hit)
			rc = template_equal(&args[0], &args[1], &hit, err);
		hit ^= fn->variant == IS_GT;
		break;
	}
	*out = (struct tv){ TV_BOOL, .b = hit };
	return rc;
}

/* ---- index, len ---- */

static enum err_code template_index_list(
	const struct tv *t, const struct tv *key, size_t n, struct err *err)
{
	if (key->kind != TV_INT)
		return key->kind == TV_NIL ?
			err_set(err, ERR_INVALID, "cannot index slice/array with nil") :
			err_set(err, ERR_INVALID, "cannot index slice/array with type %s", tv_type_name(key));
	if (key->i < 0 || (uint64_t)key->i >= n)
		return err_set(err, ERR_INVALID, "index out of range: %lld", (long long)key->i);
	return ERR_OK;
}

static enum err_code template_index_map(const struct tv *key, struct err *err)
{
	if (key->kind == TV_NIL)
		return err_set(err, ERR_INVALID, "value is nil; should be of type string");
	if (key->kind != TV_STRING)
		return err_set(err, ERR_INVALID, "value has type %s; should be string", tv_type_name(key));
	return ERR_OK;
}

static enum err_code template_index_once(struct tv *t, const struct tv *key, struct err *err)
{
	enum err_code rc;

	switch (t->kind) {
	case TV_LABELS:
		if (!(rc = template_index_map(key, err)))
			*t = (struct tv){ TV_STRING, .s = labels_get(t->labels, key->s) };
		return rc;
	case TV_ARGS:
		if (!(rc = template_index_map(key, err)))
			*t = tv_arg(t, key->s);
		return rc;
	case TV_SAMPLES:
		if (!(rc = template_index_list(t, key, t->n, err)))
			*t = (struct tv){ TV_SAMPLE, .sample = &t->samples[key->i] };
		return rc;
	case TV_STRING:
		if (!(rc = template_index_list(t, key, t->s.len, err)))
			*t = (struct tv){ TV_INT, .i = (unsigned char)t->s.ptr[key->i] };
		return rc;
	case TV_NIL:
		return err_set(err, ERR_INVALID, "index of untyped nil");
	default:
		return err_set(err, ERR_INVALID, "can't index item of type %s", tv_type_name(t));
	}
}

static enum err_code template_call_index(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	enum err_code rc = ERR_OK;

	*out = args[0];
	if (out->kind == TV_NIL)
		return err_set(err, ERR_INVALID, "index of untyped nil");
	for (size_t i = 1; i < n && !rc; i++)
		rc = template_index_once(out, &args[i], err);
	return rc;
}

static enum err_code template_call_len(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	size_t len;

	switch (args[0].kind) {
	case TV_STRING:
		len = args[0].s.len;
		break;
	case TV_LABELS:
		len = args[0].labels.n;
		break;
	case TV_ARGS:
	case TV_SAMPLES:
		len = args[0].n;
		break;
	case TV_NIL:
		return err_set(err, ERR_INVALID, "len of nil pointer");
	default:
		return err_set(err, ERR_INVALID, "len of type %s", tv_type_name(&args[0]));
	}
	*out = (struct tv){ TV_INT, .i = (int64_t)len };
	return ERR_OK;
}

/* ---- text ---- */

enum printing { PRINT, PRINTF, PRINTLN };

static enum err_code template_call_print(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	struct buf b = { 0 };

	if (fn->variant == PRINTF)
		tv_printf(&b, args[0].s, args + 1, n - 1);
	else if (fn->variant == PRINTLN)
		tv_sprintln(&b, args, n);
	else
		tv_sprint(&b, args, n);
	return tv_of_buf(r, &b, out, err);
}

static void template_html_escape(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		switch (s.ptr[i]) {
		case '\0':
			buf_add_cstr(out, "\xef\xbf\xbd");
			break;
		case '"':
			buf_add_cstr(out, "&#34;");
			break;
		case '\'':
			buf_add_cstr(out, "&#39;");
			break;
		case '&':
			buf_add_cstr(out, "&amp;");
			break;
		case '<':
			buf_add_cstr(out, "&lt;");
			break;
		case '>':
			buf_add_cstr(out, "&gt;");
			break;
		default:
			buf_add_char(out, s.ptr[i]);
		}
}

enum escaping { ESCAPE_HTML, ESCAPE_URL };

static enum err_code template_call_escape(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err)
{
	struct buf plain = { 0 }, b = { 0 };

	tv_sprint(&plain, args, n);
	if (fn->variant == ESCAPE_HTML)
		template_html_escape(&b, buf_str(&plain));
	else
		percent_encode(&b, buf_str(&plain), PERCENT_FORM);
	b.failed |= plain.failed;
	buf_release(&plain);
	return tv_of_buf(r, &b, out, err);
}

#define MANY TEMPLATE_ARGS_MAX
/* clang-format off */
const struct template_function template_functions_go[] = {
	{ "and", NULL, 1, MANY, { 0 }, false },
	{ "eq", template_call_compare, 1, MANY, { 0 }, IS_EQ },
	{ "ge", template_call_compare, 2, 2, { 0 }, IS_GE },
	{ "gt", template_call_compare, 2, 2, { 0 }, IS_GT },
	{ "html", template_call_escape, 0, MANY, { 0 }, ESCAPE_HTML },
	{ "index", template_call_index, 1, MANY, { 0 }, 0 },
	{ "le", template_call_compare, 2, 2, { 0 }, IS_LE },
	{ "len", template_call_len, 1, 1, { 0 }, 0 },
	{ "lt", template_call_compare, 2, 2, { 0 }, IS_LT },
	{ "ne", template_call_compare, 2, 2, { 0 }, IS_NE },
	{ "not", template_call_not, 1, 1, { 0 }, 0 },
	{ "or", NULL, 1, MANY, { 0 }, true },
	{ "print", template_call_print, 0, MANY, { 0 }, PRINT },
	{ "printf", template_call_print, 1, MANY, { PARAM_STRING, PARAM_ANY, PARAM_ANY }, PRINTF },
	{ "println", template_call_print, 0, MANY, { 0 }, PRINTLN },
	{ "urlquery", template_call_escape, 0, MANY, { 0 }, ESCAPE_URL },
};
/* clang-format on */
const size_t template_functions_go_n = sizeof(template_functions_go) /
	sizeof(template_functions_go[0]);

const struct template_function *template_function_find(struct str name)
{
	for (size_t i = 0; i < template_functions_go_n; i++)
		if (str_is(name, template_functions_go[i].name))
			return &template_functions_go[i];
	for (size_t i = 0; i < template_functions_prometheus_n; i++)
		if (str_is(name, template_functions_prometheus[i].name))
			return &template_functions_prometheus[i];
	return NULL;
}
