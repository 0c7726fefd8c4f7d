#include "proto/folded/ingest.h"

#include <inttypes.h>

#include "base/array.h"
#include "proto/folded/json_reader.h"

static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i], lower = (char)(c | 0x20);

		if (!(c >= '0' && c <= '9') && !(lower >= 'a' && lower <= 'z') && c != '_' && c != '.' &&
			c != '-' && c != '/')
			return false;
	}
	return s.len > 0;
}

static struct str find_char(struct str s, const char *chars)
{
	size_t n = 0;

	while (n < s.len && (!s.ptr[n] || !strchr(chars, s.ptr[n])))
		n++;
	return (struct str){ s.ptr, n };
}

static struct str after(struct str s, size_t n)
{
	return (struct str){ s.ptr + n, s.len - n };
}

/* "k=v,k=v}" */
static enum err_code read_labels(
	struct labels_builder *b, struct arena *a, struct str s, struct err *err)
{
	for (unsigned n = 0;; n++) {
		struct str key = find_char(s, "=}"), value;

		if (key.len < s.len && s.ptr[key.len] == '}' && !str_trim(key).len) {
			s = after(s, key.len + 1);
			break;
		}
		if (n == INGEST_LABELS_MAX)
			return err_set(
				err, ERR_LIMIT, "name: more than %u labels, the limit", INGEST_LABELS_MAX);
		value = key.len < s.len ? find_char(after(s, key.len + 1), ",}") : STR("");
		if (key.len == s.len || s.ptr[key.len] != '=' || key.len + 1 + value.len == s.len)
			return err_set(
				err, ERR_INVALID, "name: label[%u]: expected \"label=value\" and '}'", n);
		s = after(s, key.len + 1 + value.len);
		key = str_dup(a, str_trim(key));
		value = str_dup(a, str_trim(value));
		if (!key.ptr || !value.ptr)
			return arena_fail(a, "name", err);
		if (!is_name(key) || !label_value_valid(value))
			return err_set(err, ERR_INVALID, "name: label[%u]: %s", n,
				is_name(key) ? "the value is not UTF-8" : "bad label name");
		labels_builder_set(b, key, value);
		if (s.ptr[0] == ',')
			s = after(s, 1);
	}
	if (str_trim(s).len)
		return err_set(err, ERR_INVALID, "name: %zu bytes after '}'", s.len);
	return ERR_OK;
}

enum err_code ingest_name_parse(
	struct arena *a, struct str name, struct ingest_name *out, struct err *err)
{
	struct str app = find_char(name, "{");
	struct labels_builder b;
	struct ingest_name parsed;
	enum err_code rc;

	if (name.len > INGEST_NAME_BYTES_MAX)
		return err_set(
			err, ERR_LIMIT, "name is %zu bytes, limit %u", name.len, INGEST_NAME_BYTES_MAX);
	labels_builder_init(&b, a, (struct labels){ 0 });
	if (app.len < name.len && (rc = read_labels(&b, a, after(name, app.len + 1), err)))
		return rc;
	app = str_trim(app);
	if (!is_name(app))
		return err_set(err, ERR_INVALID, app.len ? "name: bad application name" : "name is empty");
	if ((rc = labels_builder_build(&b, &parsed.labels, err)))
		return rc;
	parsed.app = str_dup(a, app);
	if (!parsed.app.ptr)
		return arena_fail(a, "name", err);
	*out = parsed;
	return ERR_OK;
}

enum err_code ingest_time_parse(struct str text, int64_t *ns, struct err *err)
{
	int64_t unit = text.len <= 10 ? 1000000000 :
		text.len == 13            ? 1000000 :
		text.len == 16            ? 1000 :
		text.len == 19            ? 1 :
									0;
	uint64_t v;

	if (!unit || !str_to_u64(text, &v) || v > (uint64_t)(INT64_MAX / unit))
		return err_set(err, ERR_INVALID,
			"expected a time of 10, 13, 16 or 19 digits, not \"" STR_FMT "\"",
			text.len > 40 ? 40 : (int)text.len, text.len ? text.ptr : "");
	*ns = (int64_t)v * unit;
	return ERR_OK;
}

static enum err_code read_sample_type(struct arena *a, struct str json, struct str span,
	struct ingest_sample_type *t, struct err *err)
{
	const struct {
		const char *name;
		struct str *text;
		bool *flag;
	} known[] = { { "units", &t->units, NULL }, { "aggregation", &t->aggregation, NULL },
		{ "display-name", &t->display_name, NULL }, { "cumulative", NULL, &t->cumulative },
		{ "sampled", NULL, &t->sampled } };
	struct json_members m;
	struct str key, value;
	enum err_code rc;
	bool more;

	if ((rc = json_open(&m, json, span, '{', err)))
		return rc;
	while (!(rc = json_next(&m, &key, &value, &more)) && more)
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
			if (!json_is(key, known[i].name) || str_is(value, "null"))
				continue;
			if (known[i].text && (rc = json_read_string(a, json, value, known[i].text, err)))
				return rc;
			if (known[i].flag && !str_is(value, "true") && !str_is(value, "false"))
				return json_expected(json, value.ptr, "true or false", err);
			if (known[i].flag)
				*known[i].flag = str_is(value, "true");
		}
	return rc;
}

static enum err_code read_sample_types(struct arena *a, struct str json,
	struct ingest_sample_type **out, uint32_t *out_n, struct err *err)
{
	struct ingest_sample_type *v = NULL;
	struct str whole, key, value;
	uint32_t n = 0, cap = 0;
	struct json_members m;
	enum err_code rc;
	bool more;

	if ((rc = json_text(json, &whole, err)) || (rc = json_open(&m, json, whole, '{', err)))
		return rc;
	while (!(rc = json_next(&m, &key, &value, &more)) && more) {
		struct ingest_sample_type t = {
			.units = STR(""), .aggregation = STR(""), .display_name = STR("") };

		if (n == INGEST_SAMPLE_TYPES_MAX)
			return err_set(
				err, ERR_LIMIT, "more than %u sample types, the limit", INGEST_SAMPLE_TYPES_MAX);
		if ((rc = json_read_string(a, json, key, &t.type, err)) ||
			(rc = read_sample_type(a, json, value, &t, err)))
			return rc;
		if (!arena_array_room(a, &v, n, 1, &cap))
			return arena_fail(a, "sample types", err);
		v[n++] = t;
	}
	if (rc)
		return rc;
	*out = v;
	*out_n = n;
	return ERR_OK;
}

enum err_code ingest_sample_types_parse(
	struct arena *a, struct str json, struct ingest_sample_type **out, uint32_t *n, struct err *err)
{
	enum err_code rc = read_sample_types(a, json, out, n, err);

	return rc ? err_wrap(err, rc, "sample_type_config") : ERR_OK;
}
