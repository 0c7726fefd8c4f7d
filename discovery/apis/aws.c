/*
 * What is missing is got step by step, each with one request: aws_next_step says which is next.
 * What the machine's own files say is read anew whenever credentials are got.
 */
#include "discovery/apis/aws.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/net/percent.h"
#include "discovery/apis/api_internal.h"
#include "discovery/apis/aws_internal.h"

#define MACHINE_TIMEOUT_NS (5 * NS_PER_S) /* of the endpoints of container and instance */
#define STS_TIMEOUT_NS (30 * NS_PER_S)
#define ANSWER_BYTES_MAX (256u << 10)
#define RENEW_BEFORE_NS (5 * NS_PER_MIN) /* at most half of their life */
#define RENEW_PAUSE_NS (10 * NS_PER_S) /* after a failure, while the old ones hold */
#define LAST_MOMENT_NS (10 * NS_PER_S) /* a request takes its time */
#define INSTANCE_HOST "http://169.254.169.254"
#define INSTANCE_KEYS "/latest/meta-data/iam/security-credentials/"

enum step {
	STEP_TOKEN, /* of the instance's metadata */
	STEP_REGION,
	STEP_PROFILE, /* the name of the instance's role */
	STEP_INSTANCE,
	STEP_CONTAINER,
	STEP_WEB_IDENTITY,
	STEP_ASSUME_ROLE,
	STEP_NONE, /* all is there */
};

struct aws_keys {
	struct sigv4_credentials keys; /* in the arena */
	int64_t until_ns, renew_ns; /* since 1970; until_ns 0: there are none */
	struct arena arena;
};

struct aws {
	struct http_client *client;
	struct aws_config c;
	struct arena arena; /* the region */
	struct str region;
	struct aws_keys base, role; /* the role's are used where one is configured */
	/* while something is got */
	aws_ready_fn ready; /* NULL: nothing is */
	void *ctx;
	struct arena scratch;
	struct aws_local local;
	struct str token, profile; /* of the instance's metadata */
	enum step step;
	struct http_request *request;
};

static void aws_advance(struct aws *a);

/* ---- what is there ---- */

static bool aws_keys_is_fresh(const struct aws_keys *k, int64_t now_ns)
{
	return k->until_ns && now_ns < k->renew_ns;
}

static bool aws_keys_is_usable(const struct aws_keys *k, int64_t now_ns)
{
	return k->until_ns && k->until_ns - now_ns > LAST_MOMENT_NS;
}

static const struct aws_keys *aws_used(const struct aws *a)
{
	return a->c.role_arn.len ? &a->role : &a->base;
}

bool aws_is_ready(const struct aws *a)
{
	return a->region.len && aws_keys_is_fresh(aws_used(a), clock_system_ns());
}

struct str aws_region(const struct aws *a)
{
	return a->region;
}

static void aws_keys_forget(struct aws_keys *k)
{
	k->until_ns = 0;
}

void aws_forget(struct aws *a)
{
	aws_keys_forget(&a->base);
	aws_keys_forget(&a->role);
}

static enum err_code aws_keys_keep(
	struct aws_keys *k, struct sigv4_credentials from, int64_t until_ns, struct err *err)
{
	int64_t life_ns = until_ns - clock_system_ns();

	arena_release(&k->arena);
	arena_init(&k->arena, 0);
	k->until_ns = 0;
	k->keys.access_key = str_dup(&k->arena, from.access_key);
	k->keys.secret_key = str_dup(&k->arena, from.secret_key);
	k->keys.session_token = str_dup(&k->arena, from.session_token);
	if (!k->keys.access_key.ptr || !k->keys.secret_key.ptr || !k->keys.session_token.ptr)
		return arena_fail(&k->arena, "credentials", err);
	k->until_ns = until_ns;
	k->renew_ns = until_ns == INT64_MAX ?
		INT64_MAX :
		until_ns - (life_ns / 2 < RENEW_BEFORE_NS ? life_ns / 2 : RENEW_BEFORE_NS);
	return ERR_OK;
}

static enum err_code aws_set_region(struct aws *a, struct str region, struct err *err)
{
	a->region = str_dup(&a->arena, region);
	return a->region.ptr ? ERR_OK : arena_fail(&a->arena, "region", err);
}

/* ---- signing ---- */

/* Host and path of "https://HOST/PATH". */
static enum err_code aws_split_url(
	struct arena *a, struct str url, struct str *host, struct str *path, struct err *err)
{
	ptrdiff_t scheme = str_find(url, STR("://"));
	struct str rest = { url.ptr + scheme + 3, url.len - (size_t)scheme - 3 };
	const char *slash;
	char *name;

	assert(scheme > 0);
	slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
	name = arena_strndup(a, rest.ptr, slash ? (size_t)(slash - rest.ptr) : rest.len);
	if (!name)
		return arena_fail(a, "request", err);
	*path = slash ? (struct str){ slash, rest.len - (size_t)(slash - rest.ptr) } : STR("/");
	for (char *p = name; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	*host = str_of(name);
	return ERR_OK;
}

static enum err_code aws_keys_sign(const struct aws *a, const struct aws_keys *k,
	const char *service, struct arena *arena, struct str url, struct str form, struct labels *out,
	struct err *err)
{
	struct sigv4_scope scope = { a->region, str_of(service), clock_system_ns() / NS_PER_S };
	struct label signed_headers[] = { { STR("host"), STR("") },
		{ STR("content-type"), STR("application/x-www-form-urlencoded; charset=utf-8") } };
	struct sigv4_request r = { .method = "POST", .headers = { signed_headers, 2 } };
	char hash[SIGV4_HASH_LEN + 1];
	struct labels made;
	struct label *v;
	enum err_code rc;

	sigv4_hash(form, hash);
	r.payload_hash = str_of(hash);
	if ((rc = aws_split_url(arena, url, &signed_headers[0].value, &r.path, err)) ||
		(rc = sigv4_sign(arena, &k->keys, &scope, &r, &made, err)))
		return rc;
	v = arena_array(arena, struct label, made.n + 1);
	if (!v)
		return arena_fail(arena, "request", err);
	v[0] = signed_headers[1]; /* the client sends host itself */
	memcpy(v + 1, made.v, made.n * sizeof(*v));
	*out = (struct labels){ v, made.n + 1 };
	return ERR_OK;
}

enum err_code aws_sign(const struct aws *a, struct arena *arena, struct str url, struct str form,
	struct labels *out, struct err *err)
{
	return aws_keys_sign(a, aws_used(a), a->c.service, arena, url, form, out, err);
}

enum err_code aws_service_url(
	const struct aws *a, struct arena *arena, const char *service, struct str *out, struct err *err)
{
	bool china = str_has_prefix(a->region, STR("cn-"));
	char variable[64] = "AWS_ENDPOINT_URL_";
	size_t n = strlen(variable);

	for (const char *p = service; *p && n + 1 < sizeof(variable); p++)
		variable[n++] = (char)toupper((unsigned char)*p);
	*out = aws_environment(variable);
	if (!out->len)
		*out = aws_environment("AWS_ENDPOINT_URL");
	while (out->len && out->ptr[out->len - 1] == '/')
		out->len--;
	if (!out->len)
		*out = str_of(arena_printf(arena, "https://%s." STR_FMT ".amazonaws.com%s", service,
			STR_ARG(a->region), china ? ".cn" : ""));
	return out->ptr ? ERR_OK : arena_fail(arena, "request", err);
}

/* ---- steps ---- */

static enum step aws_instance_step(const struct aws *a, enum step then)
{
	return a->token.len ? then : STEP_TOKEN;
}

static enum step aws_next_step(const struct aws *a)
{
	int64_t now = clock_system_ns();

	if (!a->region.len)
		return aws_instance_step(a, STEP_REGION);
	if (!aws_keys_is_fresh(&a->base, now)) {
		if (a->local.source == AWS_WEB_IDENTITY)
			return STEP_WEB_IDENTITY;
		if (a->local.source == AWS_CONTAINER)
			return STEP_CONTAINER;
		return aws_instance_step(a, a->profile.len ? STEP_INSTANCE : STEP_PROFILE);
	}
	return a->c.role_arn.len && !aws_keys_is_fresh(&a->role, now) ? STEP_ASSUME_ROLE : STEP_NONE;
}

static void aws_add_field(struct buf *out, const char *name, struct str value)
{
	buf_printf(out, "&%s=", name);
	percent_encode(out, value, PERCENT_VALUE);
}

/* A request to the Security Token Service, signed if there are keys to sign it with. */
static enum err_code aws_make_sts(struct aws *a, struct http_request_options *o, struct err *err)
{
	static const struct label unsigned_headers[] = { { STR("Content-Type"),
		STR("application/x-www-form-urlencoded; charset=utf-8") } };
	bool web = a->step == STEP_WEB_IDENTITY;
	struct str session = web && a->local.session_name.len ? a->local.session_name :
															STR("epimetheus");
	struct buf form = { 0 };
	enum err_code rc;

	buf_printf(
		&form, "Action=%s&Version=2011-06-15", web ? "AssumeRoleWithWebIdentity" : "AssumeRole");
	aws_add_field(&form, "RoleArn", web ? a->local.role_arn : a->c.role_arn);
	aws_add_field(&form, "RoleSessionName", session);
	if (web)
		aws_add_field(&form, "WebIdentityToken", a->local.token);
	else if (a->c.external_id.len)
		aws_add_field(&form, "ExternalId", a->c.external_id);
	o->method = "POST";
	o->config = a->c.http;
	o->timeout_ns = STS_TIMEOUT_NS;
	o->body = buf_failed(&form) ? (struct str){ 0 } : str_dup(&a->scratch, buf_str(&form));
	buf_release(&form);
	if (!o->body.ptr)
		return arena_fail(&a->scratch, "request", err);
	if ((rc = aws_service_url(a, &a->scratch, "sts", &o->url, err)))
		return rc;
	o->url = str_of(arena_printf(&a->scratch, STR_FMT "/", STR_ARG(o->url)));
	if (!o->url.ptr)
		return arena_fail(&a->scratch, "request", err);
	o->headers = (struct labels){ unsigned_headers, 1 };
	return web ? ERR_OK :
				 aws_keys_sign(a, &a->base, "sts", &a->scratch, o->url, o->body, &o->headers, err);
}

/* A request to an endpoint of this machine: no proxy, no redirects. */
static enum err_code aws_make_machine(
	struct aws *a, struct label *header, struct http_request_options *o, struct err *err)
{
	struct str host = aws_environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
	const char *path = "";

	o->timeout_ns = MACHINE_TIMEOUT_NS;
	o->headers = (struct labels){ header, 1 };
	if (a->step == STEP_CONTAINER) {
		*header = (struct label){ STR("Authorization"), a->local.authorization };
		o->headers.n = a->local.authorization.len != 0;
		o->url = a->local.url;
		return ERR_OK;
	}
	*header = (struct label){ STR("X-aws-ec2-metadata-token"), a->token };
	switch (a->step) {
	case STEP_TOKEN:
		*header = (struct label){ STR("X-aws-ec2-metadata-token-ttl-seconds"), STR("21600") };
		o->method = "PUT";
		path = "/latest/api/token";
		break;
	case STEP_REGION:
		path = "/latest/meta-data/placement/region";
		break;
	default:
		path = INSTANCE_KEYS;
	}
	while (host.len && host.ptr[host.len - 1] == '/')
		host.len--;
	o->url = str_of(arena_printf(&a->scratch, STR_FMT "%s" STR_FMT,
		STR_ARG(host.len ? host : STR(INSTANCE_HOST)), path,
			STR_ARG(a->step == STEP_INSTANCE ? a->profile : STR(""))));
	return o->url.ptr ? ERR_OK : arena_fail(&a->scratch, "request", err);
}

/* ---- answers ---- */

static struct str aws_text_at(const json_t *value, const char *path)
{
	const json_t *at = json_path_at(value, path);

	return json_is_string(at) ? str_of(json_string_value(at)) : STR("");
}

static enum err_code aws_keys_take(
	struct aws_keys *k, const json_t *value, const char *token, struct err *err)
{
	struct sigv4_credentials got = { aws_text_at(value, "AccessKeyId"),
		aws_text_at(value, "SecretAccessKey"), aws_text_at(value, token) };
	struct str end = aws_text_at(value, "Expiration");
	int64_t until_ns = INT64_MAX;

	if (!got.access_key.len || !got.secret_key.len)
		return err_set(err, ERR_INVALID, "the answer has no credentials");
	if (end.len && time_parse(end, &until_ns, NULL))
		return err_set(err, ERR_INVALID, "the answer does not say when the credentials end");
	if (until_ns - clock_system_ns() <= LAST_MOMENT_NS)
		return err_set(err, ERR_INVALID, "the credentials of the answer have ended already");
	return aws_keys_keep(k, got, until_ns, err);
}

/* One line of text, which becomes part of a header or a URL. */
static enum err_code aws_take_line(struct aws *a, struct str body, struct str *out, struct err *err)
{
	const char *end = body.len ? memchr(body.ptr, '\n', body.len) : NULL;

	*out = str_dup(
		&a->scratch, str_trim((struct str){ body.ptr, end ? (size_t)(end - body.ptr) : body.len }));
	if (!out->ptr)
		return arena_fail(&a->scratch, "answer", err);
	for (size_t i = 0; i < out->len; i++)
		if (out->ptr[i] <= ' ' || out->ptr[i] > '~')
			return err_set(err, ERR_INVALID, "the answer is not one word");
	return out->len ? ERR_OK : err_set(err, ERR_INVALID, "the answer is empty");
}

static enum err_code aws_take_document(struct aws *a, struct str body, struct err *err)
{
	bool sts = a->step == STEP_WEB_IDENTITY || a->step == STEP_ASSUME_ROLE;
	json_t *v;
	enum err_code rc = sts ? api_xml_parse(body, &v, err) : api_json_parse(body, &v, err);

	if (rc)
		return rc;
	if (a->step == STEP_ASSUME_ROLE)
		rc = aws_keys_take(
			&a->role, json_path_at(v, "AssumeRoleResult.Credentials"), "SessionToken", err);
	else if (sts)
		rc = aws_keys_take(&a->base, json_path_at(v, "AssumeRoleWithWebIdentityResult.Credentials"),
			"SessionToken", err);
	else
		rc = aws_keys_take(&a->base, v, "Token", err);
	json_decref(v);
	return rc;
}

static enum err_code aws_take(struct aws *a, struct str body, struct err *err)
{
	struct str region;
	enum err_code rc;

	switch (a->step) {
	case STEP_TOKEN:
		return aws_take_line(a, body, &a->token, err);
	case STEP_REGION:
		rc = aws_take_line(a, body, &region, err);
		return rc ? rc : aws_set_region(a, region, err);
	case STEP_PROFILE:
		return aws_take_line(a, body, &a->profile, err);
	default:
		return aws_take_document(a, body, err);
	}
}

/* Only the code of a refusal: its text may repeat a token. */
static enum err_code aws_refused(const struct http_response *res, struct err *err)
{
	struct buf code = { 0 };
	json_t *v = NULL;
	struct str s;

	if (!api_xml_parse(res->body, &v, NULL) && (s = aws_text_at(v, "Error.Code")).len &&
		s.len <= 64) {
		buf_add_cstr(&code, ": ");
		for (size_t i = 0; i < s.len; i++)
			if (isalnum((unsigned char)s.ptr[i]) || s.ptr[i] == '.')
				buf_add_char(&code, s.ptr[i]);
	}
	json_decref(v);
	err_set(err, ERR_UNAVAILABLE, "server returned HTTP status %d%s" STR_FMT STR_FMT, res->status,
		res->reason.len ? " " : "", STR_ARG(res->reason), STR_ARG(buf_str(&code)));
	buf_release(&code);
	return ERR_UNAVAILABLE;
}

/* ---- going on ---- */

static const char *const names[] = {
	[STEP_TOKEN] = "metadata of the instance: token",
	[STEP_REGION] = "metadata of the instance: region",
	[STEP_PROFILE] = "metadata of the instance: role",
	[STEP_INSTANCE] = "metadata of the instance: credentials",
	[STEP_CONTAINER] = "credentials of the container",
	[STEP_WEB_IDENTITY] = "AssumeRoleWithWebIdentity",
	[STEP_ASSUME_ROLE] = "AssumeRole",
};

static void aws_finish(struct aws *a, enum err_code rc, const struct err *err)
{
	struct aws_keys *k = a->c.role_arn.len ? &a->role : &a->base;
	int64_t now = clock_system_ns();
	aws_ready_fn ready = a->ready;
	void *ctx = a->ctx;

	arena_release(&a->scratch);
	a->ready = NULL;
	if (rc && a->region.len &&
		aws_keys_is_usable(k, now)) { /* they are tried again in the next round */
		log_warn("discovery", "credentials were not renewed", LOG_E(err));
		k->renew_ns = now + RENEW_PAUSE_NS;
		rc = ERR_OK;
	}
	ready(ctx, rc, err);
}

static void aws_on_answer(void *ctx, const struct http_response *res)
{
	struct err err = res->err;
	enum err_code rc = res->rc;
	struct aws *a = ctx;

	a->request = NULL;
	if (!rc)
		rc = res->status == 200 ? aws_take(a, res->body, &err) : aws_refused(res, &err);
	if (rc) {
		err_wrap(&err, rc, "%s", names[a->step]);
		aws_finish(a, rc, &err);
		return;
	}
	aws_advance(a);
}

/* Each step brings something that no later one asks for again, so there is an end. */
static void aws_advance(struct aws *a)
{
	struct http_request_options o = { .body_size_max = ANSWER_BYTES_MAX };
	struct label header;
	enum err_code rc;
	struct err err;

	a->step = aws_next_step(a);
	if (a->step == STEP_NONE) {
		aws_finish(a, ERR_OK, NULL);
		return;
	}
	rc = a->step == STEP_WEB_IDENTITY || a->step == STEP_ASSUME_ROLE ?
		aws_make_sts(a, &o, &err) :
		aws_make_machine(a, &header, &o, &err);
	if (!rc)
		rc = http_client_send(a->client, &o, aws_on_answer, a, &a->request, &err);
	if (rc) {
		err_wrap(&err, rc, "%s", names[a->step]);
		aws_finish(a, rc, &err);
	}
}

void aws_prepare(struct aws *a, aws_ready_fn ready, void *ctx)
{
	enum err_code rc;
	struct err err;

	assert(!a->ready);
	a->ready = ready;
	a->ctx = ctx;
	a->token = a->profile = STR("");
	arena_init(&a->scratch, 0);
	rc = aws_local_read(&a->c, &a->scratch, &a->local, &err);
	if (!rc && !a->region.len && a->local.region.len)
		rc = aws_set_region(a, a->local.region, &err);
	if (!rc && a->local.source == AWS_KEYS && !aws_keys_is_fresh(&a->base, clock_system_ns()))
		rc = aws_keys_keep(&a->base, a->local.keys, INT64_MAX, &err);
	if (rc)
		aws_finish(a, rc, &err);
	else
		aws_advance(a);
}

enum err_code aws_open(
	struct http_client *client, const struct aws_config *c, struct aws **out, struct err *err)
{
	struct aws *a = calloc(1, sizeof(*a));

	if (!a)
		return err_nomem(err, "credentials");
	a->client = client;
	a->c = *c;
	a->region = STR("");
	*out = a;
	return ERR_OK;
}

void aws_close(struct aws *a)
{
	if (!a)
		return;
	http_request_cancel(a->request);
	arena_release(&a->scratch);
	arena_release(&a->arena);
	arena_release(&a->base.arena);
	arena_release(&a->role.arena);
	free(a);
}
