#include "web/annotations/annotation_request.h"

#include "base/clock.h"
#include "base/quote.h"
#include "proto/json_reader.h"
#include "scrape/receive/receive.h"
#include "web/router/envelope.h"

static enum err_code annotation_request_add_label(
	struct labels_builder *b, struct str name, struct str value, struct err *err)
{
	if (!label_name_valid(name) || str_has_prefix(name, STR("__")))
		return err_set(err, ERR_INVALID,
			"invalid parameter \"labels\": %s is not a label name: " LABEL_NAME_RULE
			", and no __ first",
			QUOTED(name));
	if (name.len > RECEIVE_NAME_BYTES_MAX)
		return err_set(err, ERR_LIMIT,
			"invalid parameter \"labels\": a name of %zu bytes, limit %u", name.len,
			RECEIVE_NAME_BYTES_MAX);
	if (value.len > RECEIVE_VALUE_BYTES_MAX)
		return err_set(err, ERR_LIMIT,
			"invalid parameter \"labels\": the value of " STR_FMT " is %zu bytes, limit %u",
			STR_ARG(name), value.len, RECEIVE_VALUE_BYTES_MAX);
	if (!label_value_valid(value))
		return err_set(err, ERR_INVALID,
			"invalid parameter \"labels\": the value of " STR_FMT " is not UTF-8", STR_ARG(name));
	if (labels_builder_get(b, name).len)
		return err_set(err, ERR_INVALID, "invalid parameter \"labels\": " STR_FMT " is set twice",
			STR_ARG(name));
	labels_builder_set(b, name, value);
	if (b->n >= RECEIVE_LABELS_MAX) /* the profile's name is one, too */
		return err_set(err, ERR_LIMIT, "invalid parameter \"labels\": more than %u, the limit",
			RECEIVE_LABELS_MAX - 1);
	return ERR_OK;
}

static enum err_code annotation_request_check(
	const struct annotation_request *r, int64_t now_ns, struct err *err)
{
	int64_t time_ns = r->time_ns ? r->time_ns : now_ns;

	if (!r->text.len)
		return err_set(err, ERR_INVALID,
			"invalid parameter \"text\": missing or empty; write what happened, as deploy v41");
	if (r->text.len > ANNOTATION_TEXT_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "invalid parameter \"text\": %zu bytes, limit %u",
			r->text.len, ANNOTATION_TEXT_BYTES_MAX);
	if (!str_is_utf8(r->text))
		return err_set(err, ERR_INVALID, "invalid parameter \"text\": not UTF-8");
	if (r->time_ns < 0)
		return err_set(err, ERR_INVALID, "invalid parameter \"time\": before 1970");
	if (r->end_ns && r->end_ns < time_ns)
		return err_set(err, ERR_INVALID, "invalid parameter \"end\": before the mark's time");
	return ERR_OK;
}

/* ---- JSON ---- */

/* A missing time and null leave *out as it is. 1970 itself is refused as before 1970. */
static enum err_code annotation_request_read_time(const struct json_reader *r, const char *name,
	struct str value, struct arena *a, int64_t *out, struct err *err)
{
	struct json_reader at = json_reader_at(r, value);
	struct str text = value;
	enum err_code rc;

	if (str_is(value, "null"))
		return ERR_OK;
	if (value.len && value.ptr[0] == '"' && (rc = json_reader_string(&at, a, &text)))
		return rc;
	if ((rc = time_parse(text, out, err)))
		return err_wrap(err, rc, "invalid parameter \"%s\"", name);
	*out -= *out == 0;
	return ERR_OK;
}

static enum err_code annotation_request_read_labels(
	struct json_reader *r, struct arena *a, struct labels_builder *b, struct err *err)
{
	struct str key, value, name;
	struct json_reader at;
	enum err_code rc;
	bool more;

	rc = json_reader_open(r, '{');
	while (!rc && !(rc = json_reader_member(r, &key, &value, &more)) && more) {
		at = json_reader_at(r, key);
		if ((rc = json_reader_string(&at, a, &name)))
			return rc;
		at = json_reader_at(r, value);
		if (!(rc = json_reader_string(&at, a, &value)))
			rc = annotation_request_add_label(b, name, value, err);
	}
	return rc;
}

static enum err_code annotation_request_read_member(struct json_reader *r, struct str key,
	struct str value, struct arena *a, struct labels_builder *labels,
	struct annotation_request *out, struct err *err)
{
	struct json_reader at = json_reader_at(r, value);

	if (json_reader_is(key, "time"))
		return annotation_request_read_time(r, "time", value, a, &out->time_ns, err);
	if (json_reader_is(key, "end"))
		return annotation_request_read_time(r, "end", value, a, &out->end_ns, err);
	if (json_reader_is(key, "text")) {
		at.name = "text";
		return json_reader_string(&at, a, &out->text);
	}
	if (!json_reader_is(key, "labels"))
		return err_set(err, ERR_INVALID,
			"unknown field " STR_FMT ": a mark has time, end, text and labels", STR_ARG(key));
	if (str_is(value, "null"))
		return ERR_OK;
	at.name = "labels";
	return annotation_request_read_labels(&at, a, labels, err);
}

enum err_code annotation_request_of_json(struct str body, int64_t now_ns, struct arena *a,
	struct annotation_request *out, struct err *err)
{
	struct json_reader r = json_reader_of(body, err);
	struct labels_builder labels;
	struct str key, value;
	enum err_code rc;
	bool more;

	*out = (struct annotation_request){ 0 };
	labels_builder_init(&labels, a, (struct labels){ 0 });
	rc = json_reader_open(&r, '{');
	while (!rc && !(rc = json_reader_member(&r, &key, &value, &more)) && more)
		rc = annotation_request_read_member(&r, key, value, a, &labels, out, err);
	if (rc || (rc = json_reader_end(&r)) || (rc = labels_builder_build(&labels, &out->labels, err)))
		return rc;
	return annotation_request_check(out, now_ns, err);
}

/* ---- parameters ---- */

static enum err_code annotation_request_param_time(
	const struct http_in *in, const char *name, int64_t *out, struct err *err)
{
	bool has;
	enum err_code rc = api_time(in, name, out, &has, err);

	if (!rc && has)
		*out -= *out == 0;
	return rc;
}

enum err_code annotation_request_of_params(
	struct http_in *in, int64_t now_ns, struct annotation_request *out, struct err *err)
{
	struct labels_builder labels;
	struct str label;
	size_t at = 0;
	enum err_code rc;

	*out = (struct annotation_request){ .text = http_param(in, "text") };
	if ((rc = annotation_request_param_time(in, "time", &out->time_ns, err)) ||
		(rc = annotation_request_param_time(in, "end", &out->end_ns, err)))
		return rc;
	labels_builder_init(&labels, &in->arena, (struct labels){ 0 });
	while (!rc && http_next_param(in, "label[]", &at, &label)) {
		const char *eq = memchr(label.len ? label.ptr : "", '=', label.len);
		size_t len = eq ? (size_t)(eq - label.ptr) : 0;

		if (!eq)
			return err_set(err, ERR_INVALID,
				"invalid parameter \"label[]\": %s is not NAME=VALUE, as job=shop", QUOTED(label));
		rc = annotation_request_add_label(&labels, (struct str){ label.ptr, len },
			(struct str){ eq + 1, label.len - len - 1 }, err);
	}
	if (rc || (rc = labels_builder_build(&labels, &out->labels, err)))
		return rc;
	return annotation_request_check(out, now_ns, err);
}
