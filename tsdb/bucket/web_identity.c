/*
 * Credentials for a token: AssumeRoleWithWebIdentity of AWS's Security Token Service, which Ceph
 * and MinIO have too. Kubernetes mounts the token as a file and renews it, so it is read each time.
 * The token is sent in the body: URLs are logged by proxies. Source: AWS STS API reference,
 * 2011-06-15.
 */
#include "base/clock.h"
#include "base/fs.h"
#include "base/net/percent.h"
#include "base/xml/xml.h"
#include "tsdb/bucket/internal.h"

#define TOKEN_BYTES_MAX (64u << 10)
#define ANSWER_MAX (256u << 10)

static void web_identity_add_field(struct buf *out, const char *name, struct str value)
{
	buf_printf(out, "&%s=", name);
	percent_encode(out, value, PERCENT_FORM);
}

static enum err_code web_identity_print_form(
	struct buf *out, const struct bucket_credentials_config *c, struct arena *a, struct err *err)
{
	struct buf token = { 0 };
	enum err_code rc;
	char *path = arena_strndup(a, c->token_file.ptr, c->token_file.len);

	if (!path)
		return arena_fail(a, "request", err);
	if ((rc = fs_read_file(path, TOKEN_BYTES_MAX, &token, err))) {
		buf_release(&token);
		return err_wrap(err, rc, "read the web identity token");
	}
	buf_add_cstr(out, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
	web_identity_add_field(out, "RoleArn", c->role_arn);
	web_identity_add_field(
		out, "RoleSessionName", c->session_name.len ? c->session_name : STR("epimetheus"));
	web_identity_add_field(out, "WebIdentityToken", str_trim(buf_str(&token)));
	rc = buf_failed(out) || buf_failed(&token) ? err_nomem(err, "request") : ERR_OK;
	buf_release(&token);
	return rc;
}

static enum err_code web_identity_read_answer(
	struct arena *a, struct str body, struct credentials_got *out, struct err *err)
{
	const struct xml_node *c;
	struct xml_node *root;
	enum err_code rc;

	if ((rc = xml_parse(a, body, &root, err)))
		return rc;
	c = xml_child(xml_child(root, "AssumeRoleWithWebIdentityResult"), "Credentials");
	out->keys.access_key = xml_text(c, "AccessKeyId");
	out->keys.secret_key = xml_text(c, "SecretAccessKey");
	out->keys.session_token = xml_text(c, "SessionToken");
	if (!out->keys.access_key.len || !out->keys.secret_key.len || !out->keys.session_token.len)
		return err_set(err, ERR_INVALID, "the answer has no credentials");
	if (time_parse(xml_text(c, "Expiration"), &out->until_ns, NULL))
		return err_set(err, ERR_INVALID, "the answer does not say when the credentials end");
	return ERR_OK;
}

static enum err_code bucket_set_url(struct bucket *b, const struct bucket_credentials_config *c,
	struct arena *a, struct str *out, struct err *err)
{
	char *url;

	*out = c->sts_endpoint;
	if (out->len)
		return ERR_OK;
	url = arena_printf(a, "https://sts." STR_FMT ".amazonaws.com/", STR_ARG(b->c.region));
	*out = str_of(url);
	return url ? ERR_OK : arena_fail(a, "request", err);
}

enum err_code web_identity_get(struct bucket *b, const struct bucket_credentials_config *c,
	struct arena *a, struct credentials_got *out, struct err *err)
{
	static const struct label headers[] = {
		{ STR("content-type"), STR("application/x-www-form-urlencoded") },
			{ STR("accept"), STR("application/xml") },
		};
	struct bucket_exchange x = { .operation = "assume_role",
		.kind = BUCKET_KINDS,
		.http = &b->c.http,
		.method = "POST",
		.headers = { headers, sizeof(headers) / sizeof(headers[0]) },
		.body_max = ANSWER_MAX,
		.timeout_ns = b->c.attempt_timeout_ns,
		.idle_timeout_ns = b->c.idle_timeout_ns };
	struct bucket_call call = { .operation = "assume_role",
		.right = "sts:AssumeRoleWithWebIdentity" };
	struct buf form = { 0 };
	struct bucket_verdict v = { 0 };

	if (!(v.rc = bucket_set_url(b, c, a, &x.url, err)) &&
		!(v.rc = web_identity_print_form(&form, c, a, err))) {
		x.body = buf_str(&form);
		exchange_run(b, &x, &call.answer);
		v = answer_judge(b, &call, err);
		if (!v.rc)
			v.rc = web_identity_read_answer(a, buf_str(&call.answer.body), out, err);
	}
	if (v.rc && v.rc != ERR_NOMEM)
		v.rc = err_wrap(err, v.rc == ERR_UNAVAILABLE && !v.again ? ERR_INVALID : v.rc,
			"AssumeRoleWithWebIdentity");
	buf_release(&form);
	answer_release(&call.answer);
	return v.rc;
}
