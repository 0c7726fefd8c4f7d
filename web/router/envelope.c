#include "web/router/envelope.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/labels.h"
#include "base/quote.h"

#define NUMBER_BYTES_MAX 64u

struct envelope_row {
	enum err_code rc;
	int status;
	const char *name;
};

static int envelope_find(
	const struct envelope_row *rows, size_t n, enum err_code rc, const char **name)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].rc == rc) {
			if (name)
				*name = rows[i].name;
			return rows[i].status;
		}
	if (name)
		*name = "internal";
	return 500;
}

int api_status(enum err_code rc, const char **type)
{
	static const struct envelope_row rows[] = {
		{ ERR_INVALID, 400, "bad_data" },
		{ ERR_UNSUPPORTED, 400, "bad_data" },
		{ ERR_LIMIT, 422, "execution" },
		{ ERR_TIMEOUT, 503, "timeout" },
		{ ERR_CANCELED, 499, "canceled" },
		{ ERR_UNAVAILABLE, 503, "unavailable" },
		{ ERR_NOT_FOUND, 404, "not_found" },
		{ ERR_EXISTS, 409, "conflict" },
	};

	return envelope_find(rows, sizeof(rows) / sizeof(rows[0]), rc, type);
}

/* Clients of Connect repeat what is resource_exhausted, so a limit of one call is not. */
int connect_status(enum err_code rc, const char **code)
{
	static const struct envelope_row rows[] = {
		{ ERR_INVALID, 400, "invalid_argument" },
		{ ERR_LIMIT, 400, "invalid_argument" },
		{ ERR_UNSUPPORTED, 501, "unimplemented" },
		{ ERR_TIMEOUT, 504, "deadline_exceeded" },
		{ ERR_CANCELED, 499, "canceled" },
		{ ERR_UNAVAILABLE, 503, "unavailable" },
		{ ERR_NOT_FOUND, 404, "not_found" },
		{ ERR_EXISTS, 409, "already_exists" },
	};

	return envelope_find(rows, sizeof(rows) / sizeof(rows[0]), rc, code);
}

static void envelope_write_error(struct http_out *out, int status, const char *type, struct str msg)
{
	struct json j;

	buf_clear(&out->body);
	out->fixed_body = NULL;
	out->encoded = false;
	out->status = status;
	out->content_type = "application/json";
	json_init(&j, &out->body);
	json_object(&j);
	json_key(&j, "status");
	json_cstr(&j, "error");
	json_key(&j, "errorType");
	json_cstr(&j, type);
	json_key(&j, "error");
	json_str(&j, msg);
	json_object_end(&j);
}

void api_error(struct http_out *out, int status, const char *type, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	envelope_write_error(out, status, type, str_of(text));
}

void api_fail(struct http_out *out, enum err_code rc, const struct err *err)
{
	const char *type;
	int status = api_status(rc, &type);

	envelope_write_error(out, status, type, str_of(err->msg));
}

void connect_error(struct http_out *out, int status, const char *code, const char *fmt, ...)
{
	char text[2048];
	struct json j;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_clear(&out->body);
	out->status = status;
	out->content_type = "application/json";
	json_init(&j, &out->body);
	json_object(&j);
	json_key(&j, "code");
	json_cstr(&j, code);
	json_key(&j, "message");
	json_cstr(&j, text);
	json_object_end(&j);
}

void connect_fail(struct http_out *out, enum err_code rc, const struct err *err)
{
	const char *code;
	int status = connect_status(rc, &code);

	connect_error(out, status, code, "%s", err->msg);
}

void api_begin(struct http_out *out, struct json *j)
{
	out->content_type = "application/json";
	json_init(j, &out->body);
	json_object(j);
	json_key(j, "status");
	json_cstr(j, "success");
	json_key(j, "data");
}

static void envelope_write_strings(struct json *j, const char *key, const struct str *s, size_t n)
{
	if (!n)
		return;
	json_key(j, key);
	json_array(j);
	for (size_t i = 0; i < n; i++)
		json_str(j, s[i]);
	json_array_end(j);
}

void api_end(struct json *j, const struct str *warnings, size_t warnings_n, const struct str *infos,
	size_t infos_n)
{
	envelope_write_strings(j, "warnings", warnings, warnings_n);
	envelope_write_strings(j, "infos", infos, infos_n);
	json_object_end(j);
	buf_add_char(j->out, '\n');
}

/* ---- parameters ---- */

static struct str envelope_param(const struct http_in *in, const char *name, bool *has)
{
	struct str s = http_param(in, name);

	if (has)
		*has = s.len > 0;
	return s;
}

enum err_code api_bool(const struct http_in *in, const char *name, bool *out, struct err *err)
{
	struct str s = http_param(in, name);

	*out = str_is(s, "true");
	if (s.len && !*out && !str_is(s, "false"))
		return err_set(
			err, ERR_INVALID, "invalid parameter \"%s\": must be \"true\" or \"false\"", name);
	return ERR_OK;
}

enum err_code api_time(
	const struct http_in *in, const char *name, int64_t *out, bool *has, struct err *err)
{
	struct str s = envelope_param(in, name, has);
	enum err_code rc;

	if (!s.len)
		return ERR_OK;
	rc = time_parse(s, out, err);
	return rc ? err_wrap(err, rc, "invalid parameter \"%s\"", name) : ERR_OK;
}

/* Plain decimals only: strtod alone takes "inf", "0x1p3" and white space too. */
static bool envelope_float_seconds(struct str s, double *out)
{
	char text[NUMBER_BYTES_MAX + 1], *end;

	if (s.len > NUMBER_BYTES_MAX)
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (!s.ptr[i] || !strchr("0123456789.eE+-", s.ptr[i]))
			return false;
	memcpy(text, s.ptr, s.len);
	text[s.len] = '\0';
	*out = strtod(text, &end);
	return end == text + s.len && isfinite(*out);
}

enum err_code api_duration(
	const struct http_in *in, const char *name, int64_t *out, bool *has, struct err *err)
{
	struct str s = envelope_param(in, name, has);
	double seconds;
	int64_t ns;

	if (!s.len)
		return ERR_OK;
	if (!envelope_float_seconds(s, &seconds)) {
		if (duration_parse(s, &ns, NULL))
			return err_set(err, ERR_INVALID,
				"invalid parameter \"%s\": cannot parse %s to a valid duration; units are ms, s, "
				"m, h, "
				"d, w and y",
				name, QUOTED(s));
		*out = ns;
		return ERR_OK;
	}
	if (seconds * 1e9 >= (double)TIME_MAX_NS)
		return err_set(err, ERR_INVALID,
			"invalid parameter \"%s\": cannot parse %s to a valid duration, it "
			"overflows",
			name, QUOTED(s));
	if (seconds < 0)
		return err_set(
			err, ERR_INVALID, "invalid parameter \"%s\": %s is negative", name, QUOTED(s));
	*out = llrint(seconds * 1e9);
	return ERR_OK;
}

enum err_code api_uint(const struct http_in *in, const char *name, uint64_t *out, struct err *err)
{
	struct str s = http_param(in, name);

	if (s.len && !str_to_u64(s, out))
		return err_set(err, ERR_INVALID, "invalid parameter \"%s\": %s is not a number from 0 on",
			name, QUOTED(s));
	return ERR_OK;
}
