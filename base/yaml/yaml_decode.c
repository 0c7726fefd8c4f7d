/*
 * The decoder: schema tables against nodes. Plain scalars mean the same as in Go's yaml.v2, since
 * Prometheus's configurations were written for it: yes/on/y are true, 0x10 is 16, any scalar is a
 * string.
 */
#include "base/yaml/yaml.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/labels.h"
#include "base/quote.h"
#include "base/yaml/problems.h"

#define NUMBER_BYTES_MAX 64 /* longer plain scalars are text */
#define SHOWN_BYTES_MAX 40 /* of a value in a message */

/* -------------------------------------------------------------------------------------------- */
/* Plain scalars */

static bool yaml_bool_of(struct str s, bool *out)
{
	static const char *const words[2][11] = {
		{ "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N" },
		{ "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y" },
	};

	for (int v = 0; v < 2; v++)
		for (size_t i = 0; i < sizeof(words[0]) / sizeof(words[0][0]); i++)
			if (str_is(s, words[v][i])) {
				*out = v;
				return true;
			}
	return false;
}

/* An optional sign; decimal, 0x, 0o or 0 (octal), 0b; underscores between digits do not count. */
static bool yaml_int_of(struct str s, bool *negative, uint64_t *out)
{
	unsigned base = 10, digits = 0;
	uint64_t v = 0;
	size_t i = 0;

	if (s.len > NUMBER_BYTES_MAX)
		return false;
	*negative = s.len && s.ptr[0] == '-';
	if (s.len && (s.ptr[0] == '-' || s.ptr[0] == '+'))
		i++;
	if (s.len - i > 1 && s.ptr[i] == '0') {
		char c = s.ptr[i + 1] | 0x20;

		base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
		i += c == 'x' || c == 'b' || c == 'o' ? 2 : 1;
	}
	for (; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		unsigned d = 99;

		if (c >= '0' && c <= '9')
			d = c - '0';
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			d = (c | 0x20u) - 'a' + 10;

		if (c == '_' && digits)
			continue;
		if (d >= base || __builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
			return false;
		digits++;
	}
	*out = v;
	return digits > 0;
}

static bool yaml_float_of(struct str s, double *out)
{
	char text[NUMBER_BYTES_MAX + 1], *end;
	struct str t = s;

	if (!s.len || s.len > NUMBER_BYTES_MAX)
		return false;
	if (t.ptr[0] == '-' || t.ptr[0] == '+')
		t.ptr++, t.len--;
	if (str_is(t, ".inf") || str_is(t, ".Inf") || str_is(t, ".INF")) {
		*out = s.ptr[0] == '-' ? -INFINITY : INFINITY;
		return true;
	}
	if (str_is(s, ".nan") || str_is(s, ".NaN") || str_is(s, ".NAN")) {
		*out = NAN;
		return true;
	}
	memcpy(text, s.ptr, s.len);
	text[s.len] = '\0';
	if (strspn(text, "+-0123456789.eE") != s.len) /* no hexadecimal, no "inf" */
		return false;
	*out = strtod(text, &end);
	return end == text + s.len;
}

const char *yaml_tag(const struct yaml_node *n)
{
	bool b, negative;
	uint64_t u;
	double d;

	if (yaml_is_null(n))
		return "!!null";
	if (n->kind != YAML_SCALAR)
		return n->kind == YAML_SEQUENCE ? "!!seq" : "!!map";
	if (!n->plain)
		return "!!str";
	if (yaml_bool_of(n->text, &b))
		return "!!bool";
	if (yaml_int_of(n->text, &negative, &u))
		return "!!int";
	return yaml_float_of(n->text, &d) ? "!!float" : "!!str";
}

/* -------------------------------------------------------------------------------------------- */
/* Fields */

static enum err_code yaml_mismatch(const struct yaml_node *n, const char *type, struct err *err)
{
	bool cut = n->text.len > SHOWN_BYTES_MAX;
	struct str shown = { n->text.ptr, cut ? SHOWN_BYTES_MAX : n->text.len };

	if (n->kind != YAML_SCALAR)
		return yaml_err(n, err, ERR_INVALID, "cannot unmarshal %s into %s", yaml_tag(n), type);
	return yaml_err(n, err, ERR_INVALID, "cannot unmarshal %s `" STR_FMT "%s` into %s", yaml_tag(n),
		STR_ARG(shown), cut ? "..." : "", type);
}

static enum err_code decode_string(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct str *out, struct err *err)
{
	if (n->kind != YAML_SCALAR)
		return yaml_mismatch(n, "string", err);
	if (n->text.len &&
		memchr(n->text.ptr, '\0', n->text.len)) /* strings become paths and headers */
		return yaml_err(n, err, ERR_INVALID, "a string may not hold a NUL byte");
	*out = str_dup(ctx->arena, n->text);
	return out->ptr ? ERR_OK : arena_fail(ctx->arena, n->file, err);
}

static enum err_code decode_bool(const struct yaml_node *n, bool *out, struct err *err)
{
	if (n->kind != YAML_SCALAR || !n->plain || !yaml_bool_of(n->text, out))
		return yaml_mismatch(n, "bool", err);
	return ERR_OK;
}

/* 1e3 is an integer too; 1.5 is not. */
static bool yaml_whole_number(const struct yaml_node *n, bool *negative, uint64_t *out)
{
	double d;

	if (n->kind != YAML_SCALAR || !n->plain)
		return false;
	if (yaml_int_of(n->text, negative, out))
		return true;
	if (!yaml_float_of(n->text, &d) || !(fabs(d) <= 9007199254740992.0) || d != floor(d))
		return false;
	*negative = d < 0;
	*out = (uint64_t)fabs(d);
	return true;
}

static enum err_code decode_int(const struct yaml_node *n, int64_t *out, struct err *err)
{
	bool negative;
	uint64_t u;

	if (!yaml_whole_number(n, &negative, &u) || u > (uint64_t)INT64_MAX + negative)
		return yaml_mismatch(n, "int64", err);
	*out = negative ? (int64_t)(0 - u) : (int64_t)u;
	return ERR_OK;
}

static enum err_code decode_uint(const struct yaml_node *n, uint64_t *out, struct err *err)
{
	bool negative;
	uint64_t u;

	if (!yaml_whole_number(n, &negative, &u) || (negative && u))
		return yaml_mismatch(n, "uint64", err);
	*out = u;
	return ERR_OK;
}

static enum err_code decode_float(const struct yaml_node *n, double *out, struct err *err)
{
	bool negative;
	uint64_t u;

	if (n->kind != YAML_SCALAR || !n->plain)
		return yaml_mismatch(n, "float64", err);
	if (yaml_int_of(n->text, &negative, &u)) {
		*out = negative ? -(double)u : (double)u;
		return ERR_OK;
	}
	return yaml_float_of(n->text, out) ? ERR_OK : yaml_mismatch(n, "float64", err);
}

/* Durations and sizes have their own errors; here the place is added. */
static enum err_code decode_duration(const struct yaml_node *n, int64_t *out, struct err *err)
{
	enum err_code rc;
	struct err why;

	if (n->kind != YAML_SCALAR)
		return yaml_mismatch(n, "duration", err);
	if ((rc = duration_parse(n->text, out, &why)))
		return yaml_err(n, err, rc, "%s", why.msg);
	return ERR_OK;
}

static enum err_code decode_bytes(const struct yaml_node *n, uint64_t *out, struct err *err)
{
	enum err_code rc;
	struct err why;

	if (n->kind != YAML_SCALAR)
		return yaml_mismatch(n, "size", err);
	if ((rc = bytes_parse(n->text, out, &why)))
		return yaml_err(n, err, rc, "%s", why.msg);
	return ERR_OK;
}

static int yaml_by_name(const void *a, const void *b)
{
	return str_cmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

static enum err_code decode_string_map(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct labels *out, struct err *err)
{
	const struct yaml_node *c;
	struct label *v;
	enum err_code rc;
	size_t i = 0;

	if (n->kind != YAML_MAPPING)
		return yaml_mismatch(n, "map[string]string", err);
	v = arena_array(ctx->arena, struct label, n->n);
	if (!v)
		return arena_fail(ctx->arena, n->file, err);
	for (c = n->child; c; c = c->next) {
		if ((rc = decode_string(ctx, c->key, &v[i].name, err)))
			return rc;
		if (yaml_is_null(c))
			continue;
		if ((rc = decode_string(ctx, c, &v[i].value, err)))
			return rc;
		i += v[i].value.len != 0; /* in a set of labels empty and missing are the same */
	}
	if (i > 1)
		qsort(v, i, sizeof(*v), yaml_by_name);
	*out = (struct labels){ v, i };
	return ERR_OK;
}

/* -------------------------------------------------------------------------------------------- */
/* Structs and lists */

static void yaml_set_defaults(struct yaml_ctx *ctx, const struct yaml_schema *schema, void *out)
{
	const struct yaml_field *f;

	memset(out, 0, schema->size);
	if (schema->defaults) {
		schema->defaults(ctx, out);
		return;
	}
	for (f = schema->fields; f < schema->fields + schema->fields_n; f++)
		if (f->type == YAML_STRUCT)
			yaml_set_defaults(ctx, f->schema, (char *)out + f->offset);
}

static enum err_code decode_fields(struct yaml_ctx *ctx, const struct yaml_schema *schema,
	const struct yaml_node *n, void *out, struct err *err);

static enum err_code decode_item(struct yaml_ctx *ctx, const struct yaml_schema *schema,
	const struct yaml_node *n, void *at, struct err *err)
{
	char words[128];

	/* "- ~" in a list of strings is the empty string, as in Go */
	if (!schema)
		return yaml_is_null(n) ? ERR_OK : decode_string(ctx, n, at, err);
	if (yaml_is_null(n)) {
		snprintf(words, sizeof(words), "%s", schema->name);
		for (size_t i = 0; words[i]; i++)
			words[i] = words[i] == '_' ? ' ' : words[i];
		return yaml_err(n, err, ERR_INVALID, "empty or null %s section", words);
	}
	yaml_set_defaults(ctx, schema, at);
	return decode_fields(ctx, schema, n, at, err);
}

static enum err_code decode_list(struct yaml_ctx *ctx, const struct yaml_schema *schema,
	const struct yaml_node *n, struct yaml_list *out, struct err *err)
{
	size_t size = schema ? schema->size : sizeof(struct str), before = yaml_errors(ctx);
	const struct yaml_node *c;
	enum err_code rc;
	char *v, *at;

	if (n->kind != YAML_SEQUENCE)
		return yaml_mismatch(n, schema ? "a list" : "[]string", err);
	at = v = arena_calloc(ctx->arena, n->n, size);
	if (!v)
		return arena_fail(ctx->arena, n->file, err);
	for (c = n->child; c; c = c->next, at += size)
		if ((rc = decode_item(ctx, schema, c, at, err)) && !yaml_goes_on(ctx, rc, err))
			return rc;
	if ((rc = yaml_end(ctx, before, err)))
		return rc;
	*out = (struct yaml_list){ v, n->n };
	return ERR_OK;
}

static enum err_code decode_field(struct yaml_ctx *ctx, const struct yaml_field *f,
	const struct yaml_node *n, void *at, struct err *err)
{
	switch (f->type) {
	case YAML_STRING:
	case YAML_SECRET:
		return decode_string(ctx, n, at, err);
	case YAML_BOOL:
		return decode_bool(n, at, err);
	case YAML_INT:
		return decode_int(n, at, err);
	case YAML_UINT:
		return decode_uint(n, at, err);
	case YAML_FLOAT:
		return decode_float(n, at, err);
	case YAML_DURATION:
		return decode_duration(n, at, err);
	case YAML_BYTES:
		return decode_bytes(n, at, err);
	case YAML_STRUCT:
		assert(f->schema);
		if (f->schema->defaults)
			yaml_set_defaults(ctx, f->schema, at);
		return decode_fields(ctx, f->schema, n, at, err);
	case YAML_LIST:
		return decode_list(ctx, f->schema, n, at, err);
	case YAML_STRING_MAP:
		return decode_string_map(ctx, n, at, err);
	case YAML_CUSTOM:
		assert(f->decode);
		return f->decode(ctx, n, at, err);
	}
	return yaml_err(n, err, ERR_UNSUPPORTED, "field %s has an unknown type", f->name);
}

const struct yaml_field *yaml_field_find(const struct yaml_schema *schema, struct str name)
{
	for (size_t i = 0; i < schema->fields_n; i++)
		if (str_is(name, schema->fields[i].name))
			return &schema->fields[i];
	return NULL;
}

const struct yaml_foreign *yaml_foreign_find(const struct yaml_schema *schema, struct str name)
{
	const struct yaml_foreign *const *table, *f;

	for (table = schema->foreign; table && *table; table++)
		for (f = *table; f->name; f++)
			if (str_is(name, f->name))
				return f;
	return NULL;
}

static enum err_code yaml_unknown_field(
	const struct yaml_schema *schema, const struct yaml_node *key, struct err *err)
{
	struct nearest near = nearest_to(key->text);

	for (size_t i = 0; i < schema->fields_n; i++)
		nearest_try(&near, str_of(schema->fields[i].name));
	return yaml_err(key, err, ERR_INVALID, "field %.*s not found in type %s%s",
		(int)(key->text.len < 128 ? key->text.len : 128), key->text.ptr, schema->name,
		DID_YOU_MEAN(&near));
}

static bool yaml_is_empty(const struct yaml_node *n)
{
	return yaml_is_null(n) || (n->kind == YAML_SCALAR ? !n->text.len : !n->n);
}

static enum err_code yaml_foreign_field(struct yaml_ctx *ctx, const struct yaml_schema *schema,
	const struct yaml_foreign *f, const struct yaml_node *n, struct err *err)
{
	if (f->kind == YAML_FOREIGN_HARMLESS || (f->kind == YAML_FOREIGN_EMPTY && yaml_is_empty(n)) ||
		(f->kind == YAML_FOREIGN_SECTION && ctx->take_foreign)) {
		yaml_warn(ctx, n->key, "%s is not used here: %s", f->name, f->text);
		return ERR_OK;
	}
	if (f->kind == YAML_FOREIGN_SECTION)
		return yaml_err(n->key, err, ERR_INVALID,
			"field %s not found in type %s: %s; --config.ignore-foreign skips the field", f->name,
			schema->name, f->text);
	return yaml_err(n->key, err, ERR_INVALID, "field %s not found in type %s: %s", f->name,
		schema->name, f->text);
}

static enum err_code decode_member(struct yaml_ctx *ctx, const struct yaml_schema *schema,
	const struct yaml_node *n, void *out, struct err *err)
{
	const struct yaml_field *f = yaml_field_find(schema, n->key->text);
	const struct yaml_foreign *foreign;
	enum err_code rc;

	if (!f && (foreign = yaml_foreign_find(schema, n->key->text)))
		return yaml_foreign_field(ctx, schema, foreign, n, err);
	if (!f)
		return yaml_unknown_field(schema, n->key, err);
	if (yaml_is_null(n))
		return ERR_OK;
	assert(f->offset < schema->size && f->set_offset <= schema->size);
	if ((rc = decode_field(ctx, f, n, (char *)out + f->offset, err)))
		return rc;
	if (f->set_offset)
		*((bool *)((char *)out + f->set_offset - 1)) = true;
	return ERR_OK;
}

/*
 * The struct holds its defaults already. Recursion ends with the nodes, at most YAML_DEPTH_MAX
 * deep.
 */
static enum err_code decode_fields(struct yaml_ctx *ctx, const struct yaml_schema *schema,
	const struct yaml_node *n, void *out, struct err *err)
{
	size_t before = yaml_errors(ctx);
	const struct yaml_node *c;
	enum err_code rc;

	if (n->kind != YAML_MAPPING)
		return yaml_mismatch(n, schema->name, err);
	for (c = n->child; c; c = c->next)
		if ((rc = decode_member(ctx, schema, c, out, err)) && !yaml_goes_on(ctx, rc, err))
			return rc;
	if ((rc = yaml_end(ctx, before, err)))
		return rc;
	return schema->check ? schema->check(ctx, n, out, err) : ERR_OK;
}

enum err_code yaml_decode(struct yaml_ctx *ctx, const struct yaml_schema *schema,
	const struct yaml_node *n, void *out, struct err *err)
{
	assert(ctx->arena && schema->size);
	yaml_set_defaults(ctx, schema, out);
	return yaml_is_null(n) ? ERR_OK : decode_fields(ctx, schema, n, out, err);
}
