#include "proto/folded/ingest.h"

#include <inttypes.h>

#include "base/array.h"
#include "proto/json_reader.h"

static bool folded_ingest_is_name(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i], lower = (char)(c | 0x20);

		if (!(c >= '0' && c <= '9') && !(lower >= 'a' && lower <= 'z') && c != '_' && c != '.' &&
			c != '-' && c != '/')
			return false;
	}
	return s.len > 0;
}

static struct str folded_ingest_find_char(struct str s, const char *chars)
{
	size_t n = 0;

	while (n < s.len && (!s.ptr[n] || !strchr(chars, s.ptr[n])))
		n++;
	return (struct str){ s.ptr, n };
}

static struct str folded_ingest_after(struct str s, size_t n)
{
	return (struct str){ s.ptr + n, s.len - n };
}

/* "k=v,k=v}" */
static enum err_code folded_ingest_read_labels(
	struct labels_builder *b, struct arena *a, struct str s, struct err *err)
{
	for (unsigned n = 0;; n++) {
		struct str key = folded_ingest_find_char(s, "=}"), value;

		if (key.len < s.len && s.ptr[key.len] == '}' && !str_trim(key).len) {
			s = folded_ingest_after(s, key.len + 1);
			break;
		}
		if (n == INGEST_LABELS_MAX)
			return err_set(
				err, ERR_LIMIT, "name: more than %u labels, the limit", INGEST_LABELS_MAX);
		value = key.len < s.len ?
			folded_ingest_find_char(folded_ingest_after(s, key.len + 1), ",}") :
			STR("");
		if (key.len == s.len || s.ptr[key.len] != '=' || key.len + 1 + value.len == s.len)
			return err_set(
				err, ERR_INVALID, "name: label[%u]: expected \"label=value\" and '}'", n);
		s = folded_ingest_after(s, key.len + 1 + value.len);
		key = str_dup(a, str_trim(key));
		value = str_dup(a, str_trim(value));
		if (!key.ptr || !value.ptr)
			return arena_fail(a, "name", err);
		if (!folded_ingest_is_name(key) || !label_value_valid(value))
			return err_set(err, ERR_INVALID, "name: label[%u]: %s", n,
				folded_ingest_is_name(key) ? "the value is not UTF-8" : "bad label name");
		labels_builder_set(b, key, value);
		if (s.ptr[0] == ',')
			s = folded_ingest_after(s, 1);
	}
	if (str_trim(s).len)
		return err_set(err, ERR_INVALID, "name: %zu bytes after '}'", s.len);
	return ERR_OK;
}

enum err_code ingest_name_parse(
	struct arena *a, struct str name, struct ingest_name *out, struct err *err)
{
	struct str app = folded_ingest_find_char(name, "{");
	struct labels_builder b;
	struct ingest_name parsed;
	enum err_code rc;

	if (name.len > INGEST_NAME_BYTES_MAX)
		return err_set(
			err, ERR_LIMIT, "name is %zu bytes, limit %u", name.len, INGEST_NAME_BYTES_MAX);
	labels_builder_init(&b, a, (struct labels){ 0 });
	if (app.len < name.len &&
		(rc = folded_ingest_read_labels(&b, a, folded_ingest_after(name, app.len + 1), err)))
		return rc;
	app = str_trim(app);
	if (!folded_ingest_is_name(app))
		return err_set(err, ERR_INVALID, app.len ? "name: bad application name" : "name is empty");
	if ((rc = labels_builder_build(&b, &parsed.labels, err)))
		return rc;
	parsed.app = str_dup(a, app);
	if (!parsed.app.ptr)
		return arena_fail(a, "name", err);
	*out = parsed;
	return ERR_OK;
}

/* clang-format off */
static const struct {
	const char *part, *profile, *type, *unit, *timed;
} kinds[] = {
	{ "cpu", "process_cpu", "samples", "count", "cpu" }, /* first: of names without a part */
	{ "itimer", "process_cpu", "samples", "count", "cpu" },
	{ "wall", "wall", "samples", "count", "wall" },
	{ "inuse_objects", "memory", "inuse_objects", "count", "" },
	{ "inuse_space", "memory", "inuse_space", "bytes", "" },
	{ "alloc_objects", "memory", "alloc_objects", "count", "" },
	{ "alloc_space", "memory", "alloc_space", "bytes", "" },
	{ "alloc_in_new_tlab_objects", "memory", "alloc_in_new_tlab_objects", "count", "" },
	{ "alloc_in_new_tlab_bytes", "memory", "alloc_in_new_tlab_bytes", "bytes", "" },
	{ "alloc_outside_tlab_objects", "memory", "alloc_outside_tlab_objects", "count", "" },
	{ "alloc_outside_tlab_bytes", "memory", "alloc_outside_tlab_bytes", "bytes", "" },
	{ "live", "memory", "live", "count", "" },
	{ "live_bytes", "memory", "live_bytes", "bytes", "" },
	{ "goroutines", "goroutine", "goroutines", "count", "" },
	{ "mutex_count", "mutex", "contentions", "count", "" },
	{ "mutex_duration", "mutex", "delay", "nanoseconds", "" },
	{ "block_count", "block", "contentions", "count", "" },
	{ "block_duration", "block", "delay", "nanoseconds", "" },
	{ "lock_count", "block", "contentions", "count", "" },
	{ "lock_duration", "block", "delay", "nanoseconds", "" },
	{ "exceptions", "exceptions", "samples", "count", "" },
};
/* clang-format on */

static void folded_ingest_set_kind(size_t i, struct ingest_kind *out)
{
	out->profile = str_of(kinds[i].profile);
	out->type = str_of(kinds[i].type);
	out->unit = str_of(kinds[i].unit);
	out->timed = str_of(kinds[i].timed);
}

bool ingest_kind_of(struct str *app, struct ingest_kind *out)
{
	size_t dot = app->len;

	while (dot > 0 && app->ptr[dot - 1] != '.')
		dot--;
	folded_ingest_set_kind(0, out);
	if (!dot)
		return true;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!str_is(folded_ingest_after(*app, dot), kinds[i].part))
			continue;
		folded_ingest_set_kind(i, out);
		app->len = dot - 1;
		return true;
	}
	return false;
}

void ingest_meaning(
	const struct ingest_kind *kind, uint32_t sample_rate, struct folded_meaning *out)
{
	*out = (struct folded_meaning){ .type = kind->type,
		.unit = kind->unit,
		.period_type = STR(""), .period_unit = STR(""), .scale = 1 };
	if (!kind->timed.len || !sample_rate || sample_rate > 1000000000)
		return;
	out->period = out->scale = 1000000000 / (int64_t)sample_rate;
	out->period_type = STR("cpu");
	out->type = kind->timed;
	out->unit = out->period_unit = STR("nanoseconds");
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

static enum err_code folded_ingest_read_sample_type(
	struct arena *a, struct json_reader *r, struct ingest_sample_type *t)
{
	const struct {
		const char *name;
		struct str *text;
		bool *flag;
	} known[] = { { "units", &t->units, NULL }, { "aggregation", &t->aggregation, NULL },
		{ "display-name", &t->display_name, NULL }, { "cumulative", NULL, &t->cumulative },
		{ "sampled", NULL, &t->sampled } };
	enum err_code rc = json_reader_open(r, '{');
	struct str key, value;
	bool more = true;

	while (!rc && !(rc = json_reader_member(r, &key, &value, &more)) && more)
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
			struct json_reader at = json_reader_at(r, value);

			if (!json_reader_is(key, known[i].name) || str_is(value, "null"))
				continue;
			if (known[i].text && (rc = json_reader_string(&at, a, known[i].text)))
				return rc;
			if (known[i].flag && !str_is(value, "true") && !str_is(value, "false"))
				return json_reader_expected(r, value.ptr, "true or false");
			if (known[i].flag)
				*known[i].flag = str_is(value, "true");
		}
	return rc;
}

static enum err_code folded_ingest_read_sample_types(struct arena *a, struct str json,
	struct ingest_sample_type **out, uint32_t *out_n, struct err *err)
{
	struct json_reader r = json_reader_of(json, err);
	struct ingest_sample_type *v = NULL;
	struct str key, value;
	uint32_t n = 0, cap = 0;
	enum err_code rc;
	bool more;

	if ((rc = json_reader_whole(&r)) || (rc = json_reader_open(&r, '{')))
		return rc;
	while (!(rc = json_reader_member(&r, &key, &value, &more)) && more) {
		struct json_reader name = json_reader_at(&r, key), at = json_reader_at(&r, value);
		struct ingest_sample_type t = {
			.units = STR(""), .aggregation = STR(""), .display_name = STR("") };

		if (n == INGEST_SAMPLE_TYPES_MAX)
			return err_set(
				err, ERR_LIMIT, "more than %u sample types, the limit", INGEST_SAMPLE_TYPES_MAX);
		if ((rc = json_reader_string(&name, a, &t.type)) ||
			(rc = folded_ingest_read_sample_type(a, &at, &t)))
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
	enum err_code rc = folded_ingest_read_sample_types(a, json, out, n, err);

	return rc ? err_wrap(err, rc, "sample_type_config") : ERR_OK;
}
