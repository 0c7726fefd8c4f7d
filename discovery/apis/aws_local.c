#include <stdlib.h>

#include "base/fs.h"
#include "base/net/aws_profile.h"
#include "discovery/apis/aws_internal.h"

#define FILE_BYTES_MAX (1u << 20)
#define TOKEN_BYTES_MAX (64u << 10)
#define CONTAINER_HOST "http://169.254.170.2"

struct str aws_environment(const char *name)
{
	const char *value = getenv(name);

	return str_of(value ? value : "");
}

/* A file's text in the arena; "" if there is none, or no path. */
static enum err_code aws_local_read_text(
	struct arena *a, struct str path, size_t max, struct str *out, struct err *err)
{
	struct buf text = { 0 };
	enum err_code rc;

	*out = STR("");
	if (!path.len)
		return ERR_OK;
	rc = fs_read_file(path.ptr, max, &text, err);
	if (!rc) {
		*out = str_dup(a, buf_str(&text));
		rc = out->ptr ? ERR_OK : arena_fail(a, "credentials", err);
	}
	buf_release(&text);
	return rc;
}

/* ~/.aws/NAME, or what the variable has instead. */
static enum err_code aws_local_read_profile(struct arena *a, const char *variable, const char *name,
	struct str profile, struct aws_profile *p, struct err *err)
{
	struct str path = aws_environment(variable), home = aws_environment("HOME"), text;
	enum err_code rc;

	if (!path.len && home.len)
		path = str_of(arena_printf(a, STR_FMT "/.aws/%s", STR_ARG(home), name));
	if (!path.ptr)
		return arena_fail(a, "credentials", err);
	rc = aws_local_read_text(a, path, FILE_BYTES_MAX, &text, err);
	if (rc == ERR_NOT_FOUND)
		return ERR_OK;
	if (!rc)
		aws_profile_read(text, profile, p);
	return rc;
}

/* Keys of the profile, if it has some. wanted: it must. */
static enum err_code aws_local_take_profile(struct arena *a, const struct aws_profile *p,
	struct str profile, bool wanted, struct aws_local *out, bool *taken, struct err *err)
{
	enum err_code rc;

	*taken = false;
	if (p->keys.access_key.len && p->keys.secret_key.len) {
		*taken = true;
		return aws_profile_keys(a, p, profile, &out->keys, err);
	}
	if (p->elsewhere.len)
		return err_set(err, ERR_UNSUPPORTED,
			"profile [" STR_FMT "] of the files of AWS uses " STR_FMT
			", which is not supported; role_arn of the discovery assumes a role",
			STR_ARG(profile), STR_ARG(p->elsewhere));
	if (!wanted)
		return ERR_OK;
	rc = aws_profile_keys(a, p, profile, &out->keys, err);
	return err_wrap(err, rc, "files of AWS");
}

static enum err_code aws_local_take_web_identity(
	struct arena *a, struct str token_file, struct aws_local *out, struct err *err)
{
	enum err_code rc = aws_local_read_text(a, token_file, TOKEN_BYTES_MAX, &out->token, err);

	if (rc)
		return err_wrap(err, rc == ERR_NOT_FOUND ? ERR_IO : rc, "read the web identity token");
	out->token = str_trim(out->token);
	out->role_arn = aws_environment("AWS_ROLE_ARN");
	out->session_name = aws_environment("AWS_ROLE_SESSION_NAME");
	out->source = AWS_WEB_IDENTITY;
	return ERR_OK;
}

/* The container's endpoint, or the instance's. */
static enum err_code aws_local_take_machine(struct arena *a, struct aws_local *out, struct err *err)
{
	struct str path = aws_environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	struct str url = aws_environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
	enum err_code rc;

	if (!path.len && !url.len) {
		if (str_eq_nocase(aws_environment("AWS_EC2_METADATA_DISABLED"), STR("true")))
			return err_set(err, ERR_INVALID,
				"no credentials: neither the configuration, the environment nor the files of AWS "
				"have some, and the instance's metadata are disabled");
		out->source = AWS_INSTANCE;
		return ERR_OK;
	}
	out->source = AWS_CONTAINER;
	out->url = path.len ? str_of(arena_printf(a, CONTAINER_HOST STR_FMT, STR_ARG(path))) : url;
	if (!out->url.ptr)
		return arena_fail(a, "credentials", err);
	rc = aws_local_read_text(a, aws_environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
		TOKEN_BYTES_MAX, &out->authorization, err);
	out->authorization = out->authorization.len ?
		str_trim(out->authorization) :
		aws_environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
	return rc;
}

static enum err_code aws_local_find_keys(const struct aws_config *c, const struct aws_profile *p,
	struct str profile, struct arena *a, struct aws_local *out, struct err *err)
{
	struct str access = aws_environment("AWS_ACCESS_KEY_ID");
	struct str secret = aws_environment("AWS_SECRET_ACCESS_KEY");
	struct str token_file = aws_environment("AWS_WEB_IDENTITY_TOKEN_FILE");
	enum err_code rc;
	bool taken;

	if (c->access_key.len && c->secret_key.len) {
		out->keys = (struct sigv4_credentials){ c->access_key, c->secret_key, STR("") };
		return ERR_OK;
	}
	if (c->profile.len)
		return aws_local_take_profile(a, p, profile, true, out, &taken, err);
	if (access.len && secret.len) {
		out->keys = (struct sigv4_credentials){ access, secret,
			aws_environment("AWS_SESSION_TOKEN") };
		return ERR_OK;
	}
	if (token_file.len && aws_environment("AWS_ROLE_ARN").len)
		return aws_local_take_web_identity(a, token_file, out, err);
	if ((rc = aws_local_take_profile(a, p, profile, false, out, &taken, err)) || taken)
		return rc;
	return aws_local_take_machine(a, out, err);
}

enum err_code aws_local_read(
	const struct aws_config *c, struct arena *a, struct aws_local *out, struct err *err)
{
	const char *const regions[] = { "AWS_REGION", "AWS_DEFAULT_REGION" };
	struct str profile = c->profile.len ? c->profile : aws_environment("AWS_PROFILE");
	struct aws_profile p = { 0 };
	enum err_code rc;

	*out = (struct aws_local){ .source = AWS_KEYS, .region = c->region };
	profile = profile.len ? profile : STR("default");
	if ((rc = aws_local_read_profile(
			 a, "AWS_SHARED_CREDENTIALS_FILE", "credentials", profile, &p, err)) ||
		(rc = aws_local_read_profile(a, "AWS_CONFIG_FILE", "config", profile, &p, err)))
		return rc;
	for (size_t i = 0; !out->region.len && i < sizeof(regions) / sizeof(regions[0]); i++)
		out->region = aws_environment(regions[i]);
	if (!out->region.len && p.region.len)
		out->region = p.region;
	return aws_local_find_keys(c, &p, profile, a, out, err);
}
