#include "base/net/http_token.h"

#include <assert.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/net/http_client_internal.h"
#include "base/net/percent.h"
#include "base/thread.h"

/* -------------------------------------------------------------------------------------------- */
/* Answers */

struct http_token_answer { /* NULL: missing */
	struct str token, type;
	int64_t expires_s; /* 0: not said */
};

static enum err_code http_token_set_life(
	struct str text, struct http_token_answer *out, struct err *err)
{
	if (text.len && !str_to_i64(text, &out->expires_s))
		return err_set(err, ERR_INVALID, "expires_in is not a whole number");
	return ERR_OK;
}

static struct str http_token_text_of(const json_t *object, const char *name)
{
	const json_t *v = json_object_get(object, name);

	return (struct str){ json_string_value(v), json_string_length(v) };
}

/* The strings live as long as root. */
static enum err_code http_token_read_json(
	const json_t *root, struct http_token_answer *out, struct err *err)
{
	const json_t *expires = json_object_get(root, "expires_in");
	const json_t *type = json_object_get(root, "token_type");

	if (!json_is_object(root))
		return err_set(err, ERR_INVALID, "the answer is not a JSON object");
	out->token = http_token_text_of(root, "access_token");
	out->type = http_token_text_of(root, "token_type");
	if (type && !json_is_string(type) && !json_is_null(type))
		return err_set(err, ERR_INVALID, "token_type is not a string");
	if (json_is_string(expires))
		return http_token_set_life(http_token_text_of(root, "expires_in"), out, err);
	if (expires && !json_is_integer(expires) && !json_is_null(expires))
		return err_set(err, ERR_INVALID, "expires_in is not a whole number");
	out->expires_s = json_integer_value(expires);
	return ERR_OK;
}

static enum err_code http_token_read_form(
	struct arena *a, struct str body, struct http_token_answer *out, struct err *err)
{
	struct str expires = STR("");
	size_t n, equals;
	char *text;

	while (body.len) {
		for (n = 0; n < body.len && body.ptr[n] != '&'; n++)
			;
		for (equals = 0; equals < n && body.ptr[equals] != '='; equals++)
			;
		struct str name = { body.ptr, equals };
		struct str value = { body.ptr + equals + (equals < n), n - equals - (equals < n) };
		struct str *to = str_is(name, "access_token") ? &out->token :
			str_is(name, "token_type")                ? &out->type :
			str_is(name, "expires_in")                ? &expires :
														NULL;

		if (to) {
			if (!(text = arena_strndup(a, value.ptr, value.len)))
				return arena_fail(a, "token", err);
			*to = (struct str){ text, percent_decode_form(text, value) };
		}
		n += n < body.len;
		body = (struct str){ body.ptr + n, body.len - n };
	}
	return http_token_set_life(expires, out, err);
}

/* The scheme as servers want it. */
static struct str http_token_scheme_of(struct str type)
{
	static const char *const known[] = { "Bearer", "Basic", "MAC" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (str_eq_nocase(type, str_of(known[i])))
			return str_of(known[i]);
	return type.len ? type : STR("Bearer");
}

static enum err_code http_token_use_answer(struct arena *a, const struct http_token_answer *in,
	struct str *authorization, int64_t *life_ns, struct err *err)
{
	int64_t life, margin;
	char *text;

	if (!in->token.len)
		return err_set(err, ERR_INVALID, "the answer has no access_token");
	if (!http_header_value_valid(in->token))
		return err_set(err, ERR_INVALID, "access_token holds control characters");
	if (in->type.len && !http_token_valid(in->type))
		return err_set(err, ERR_INVALID, "token_type is not the name of a scheme");
	text = arena_printf(
		a, STR_FMT " " STR_FMT, STR_ARG(http_token_scheme_of(in->type)), STR_ARG(in->token));
	if (!text)
		return arena_fail(a, "token", err);
	*authorization = str_of(text);
	if (!in->expires_s) {
		*life_ns = INT64_MAX;
		return ERR_OK;
	}
	life = in->expires_s > INT32_MAX ? INT32_MAX : in->expires_s < 0 ? 0 : in->expires_s;
	life *= NS_PER_S;
	margin = life / 2 < HTTP_TOKEN_MARGIN_NS ? life / 2 : HTTP_TOKEN_MARGIN_NS;
	*life_ns = life - margin;
	return ERR_OK;
}

static bool http_token_is_form(struct str content_type)
{
	const char *end = content_type.len ? memchr(content_type.ptr, ';', content_type.len) : NULL;

	if (end)
		content_type.len = (size_t)(end - content_type.ptr);
	content_type = str_trim(content_type);
	return str_eq_nocase(content_type, STR("application/x-www-form-urlencoded")) ||
		str_eq_nocase(content_type, STR("text/plain"));
}

enum err_code http_token_parse(struct arena *a, struct str content_type, struct str body,
	struct str *authorization, int64_t *life_ns, struct err *err)
{
	struct http_token_answer answer = { 0 };
	json_t *root = NULL;
	enum err_code rc;

	if (body.len > HTTP_TOKEN_BODY_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the answer is %zu bytes, limit %u", body.len,
			HTTP_TOKEN_BODY_BYTES_MAX);
	if (http_token_is_form(content_type)) {
		rc = http_token_read_form(a, body, &answer, err);
	} else {
		root = json_loadb(body.len ? body.ptr : "", body.len, 0, NULL);
		rc = http_token_read_json(root, &answer, err);
	}
	if (!rc)
		rc = http_token_use_answer(a, &answer, authorization, life_ns, err);
	json_decref(root);
	return rc;
}

void http_token_print_error(struct buf *out, struct str body, struct str secret)
{
	json_t *root = body.len && body.len <= HTTP_TOKEN_BODY_BYTES_MAX ?
		json_loadb(body.ptr, body.len, 0, NULL) :
		NULL;
	struct str code = http_token_text_of(root, "error");

	if (code.len && code.len <= 64 && http_token_valid(code) &&
		(!secret.len || str_find(code, secret) < 0))
		buf_printf(out, ": " STR_FMT, STR_ARG(code));
	json_decref(root);
}

/* -------------------------------------------------------------------------------------------- */
/* The store */

struct http_token_record {
	TAILQ_ENTRY(http_token_record) link; /* most recently used first */
	struct http_token_id id;
	char *authorization; /* NULL: no token */
	uint64_t serial; /* of the last token */
	int64_t made_ns, until_ns;
	bool asking;
	enum http_token_style style;
	enum err_code failed_rc; /* ERR_OK: did not fail, or long ago */
	int64_t failed_ns;
	struct err failed;
};
TAILQ_HEAD(records, http_token_record);

static struct mutex lock = MUTEX_INIT; /* guards all below */
static struct records records = TAILQ_HEAD_INITIALIZER(records);
static size_t records_n;
static uint64_t last_serial;

static void http_token_forget(struct http_token_record *r)
{
	if (r->authorization)
		OPENSSL_cleanse(r->authorization, strlen(r->authorization));
	free(r->authorization);
	r->authorization = NULL;
}

static struct http_token_record *http_token_id_find(const struct http_token_id *id)
{
	struct http_token_record *r;

	mutex_assert_held(&lock);
	TAILQ_FOREACH (r, &records, link)
		if (memcmp(&r->id, id, sizeof(*id)) == 0)
			return r;
	return NULL;
}

/* Makes room for one more; records that somebody asks for stay. */
static void http_token_evict(void)
{
	struct http_token_record *r = TAILQ_LAST(&records, records);

	mutex_assert_held(&lock);
	while (r && r->asking)
		r = TAILQ_PREV(r, records, link);
	if (records_n < HTTP_TOKENS_MAX || !r)
		return;
	TAILQ_REMOVE(&records, r, link);
	records_n--;
	http_token_forget(r);
	free(r);
}

static struct http_token_record *http_token_id_find_or_add(const struct http_token_id *id)
{
	struct http_token_record *r = http_token_id_find(id);

	if (r) {
		TAILQ_REMOVE(&records, r, link);
	} else {
		http_token_evict();
		if (!(r = calloc(1, sizeof(*r))))
			return NULL;
		r->id = *id;
		records_n++;
	}
	TAILQ_INSERT_HEAD(&records, r, link);
	return r;
}

enum http_token_state http_token_get(struct arena *a, const struct http_token_id *id,
	int64_t now_ns, struct http_token *out, struct err *err)
{
	enum http_token_state state;
	struct http_token_record *r;

	mutex_lock(&lock);
	r = http_token_id_find_or_add(id);
	if (!r) {
		state = HTTP_TOKEN_NOMEM;
	} else if (r->authorization && now_ns < r->until_ns) {
		*out = (struct http_token){ str_dup(a, str_of(r->authorization)), r->serial, r->style };
		state = out->authorization.ptr ? HTTP_TOKEN_VALID : HTTP_TOKEN_NOMEM;
	} else if (r->asking) {
		state = HTTP_TOKEN_BUSY;
	} else if (r->failed_rc && now_ns - r->failed_ns < HTTP_TOKEN_PAUSE_NS) {
		*err = r->failed;
		state = HTTP_TOKEN_FAILED;
	} else {
		*out = (struct http_token){ .style = r->style };
		r->asking = true;
		state = HTTP_TOKEN_ASK;
	}
	mutex_unlock(&lock);
	return state;
}

uint64_t http_token_put(const struct http_token_id *id, int64_t now_ns, struct str authorization,
	int64_t life_ns, enum http_token_style style)
{
	uint64_t serial;
	struct http_token_record *r;

	mutex_lock(&lock);
	serial = ++last_serial;
	r = http_token_id_find(id);
	assert(r && r->asking);
	http_token_forget(r);
	r->authorization = strndup(authorization.ptr, authorization.len);
	r->serial = serial;
	r->made_ns = now_ns;
	r->until_ns = life_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + life_ns;
	r->style = style;
	r->failed_rc = ERR_OK;
	r->asking = false;
	mutex_unlock(&lock);
	return serial;
}

void http_token_fail(
	const struct http_token_id *id, int64_t now_ns, enum err_code rc, const struct err *err)
{
	struct http_token_record *r;

	mutex_lock(&lock);
	r = http_token_id_find(id);
	assert(r && r->asking);
	r->asking = false;
	r->failed_rc = err ? rc : ERR_OK;
	r->failed_ns = now_ns;
	if (err)
		r->failed = *err;
	mutex_unlock(&lock);
}

bool http_token_refused(const struct http_token_id *id, int64_t now_ns, uint64_t serial)
{
	bool dropped = true;
	struct http_token_record *r;

	mutex_lock(&lock);
	r = http_token_id_find(id);
	if (r && r->authorization && r->serial == serial) {
		dropped = now_ns - r->made_ns >= HTTP_TOKEN_PAUSE_NS;
		if (dropped)
			http_token_forget(r);
	}
	mutex_unlock(&lock);
	return dropped;
}
