/* Where credentials and the region of AWS come from, in which order, and when they are got again.
 */
#include <unistd.h>

#include "base/clock.h"
#include "discovery/apis/aws.h"
#include "tests/discovery/apis/api_check.h"

#define KEYS(a, s, t) \
	"{\"Code\": \"Success\", \"AccessKeyId\": \"" a "\", \"SecretAccessKey\": \"" s \
	"\", \"Token\": \"" t "\", \"Expiration\": \"2100-01-01T00:00:00Z\"}"
#define STS(action, a, s, t, end) \
	"<" action "Response><" action "Result><Credentials><AccessKeyId>" a \
	"</AccessKeyId><SecretAccessKey>" s "</SecretAccessKey><SessionToken>" t \
	"</SessionToken><Expiration>" end "</Expiration></Credentials></" action "Result></" action \
	"Response>"
#define FOREVER "2100-01-01T00:00:00Z"

static const char *const variables[] = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
	"AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME",
	"AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SHARED_CREDENTIALS_FILE",
	"AWS_CONFIG_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
	"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_EC2_METADATA_DISABLED",
	"AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS", "HOME" };

static struct world w;
static char dir[64];

struct outcome {
	bool done;
	enum err_code rc;
	struct err err;
};

static void on_ready(void *ctx, enum err_code rc, const struct err *err)
{
	struct outcome *o = ctx;

	CHECK(!o->done);
	o->done = true;
	o->rc = rc;
	if (rc)
		o->err = *err;
}

static const char *in_dir(const char *name)
{
	return arena_printf(&w.arena, "%s/%s", dir, name);
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(in_dir(name), "w");

	if (!f || fputs(text, f) < 0 || fclose(f))
		CHECK_FAIL("cannot write %s", name);
}

/* "NAME=value" with "@" for the server and "%" for the directory. */
static void set(const char *text)
{
	size_t n = strcspn(text, "=");
	struct buf value = { 0 };
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)n, text);
	for (const char *p = text + n + 1; *p; p++)
		if (*p == '@')
			buf_printf(&value, "http://127.0.0.1:%u", w.port);
		else if (*p == '%')
			buf_add_cstr(&value, dir);
		else
			buf_add_char(&value, *p);
	buf_add_char(&value, '\0');
	setenv(name, value.ptr, 1);
	buf_release(&value);
}

static void begin(void)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	world_open(&w, NULL);
	snprintf(dir, sizeof(dir), "/tmp/epimetheus-aws-XXXXXX");
	if (!mkdtemp(dir))
		abort();
	set("AWS_EC2_METADATA_SERVICE_ENDPOINT=@");
	set("AWS_ENDPOINT_URL_STS=@");
	set("AWS_SHARED_CREDENTIALS_FILE=%/credentials");
	set("AWS_CONFIG_FILE=%/config");
	write_file("credentials",
		"[default]\naws_access_key_id=FILE\naws_secret_access_key=s\n"
		"[p]\naws_access_key_id=PROFILE\naws_secret_access_key=s\naws_session_token=t\n");
	write_file("config",
		"[default]\nregion = from-file\n[profile p]\nregion = of-p\n"
		"[profile q]\nsso_session = x\n");
	write_file("token", " web-token \n");
	world_rule(&w, (struct world_rule){ "PUT /latest/api/token", "metadata-token" });
	world_rule(&w, (struct world_rule){ "/placement/region", "from-instance\n" });
	world_rule(
		&w, (struct world_rule){ "/security-credentials/role-1", KEYS("INSTANCE", "s", "it") });
	world_rule(&w, (struct world_rule){ "/security-credentials/", "role-1\n" });
	world_rule(&w, (struct world_rule){ "GET /container", KEYS("CONTAINER", "s", "ct") });
	world_rule(&w,
		(struct world_rule){ "AssumeRoleWithWebIdentity",
			STS("AssumeRoleWithWebIdentity", "WEB", "s", "wt", FOREVER) });
	world_rule(&w,
		(struct world_rule){ "Action=AssumeRole&", STS("AssumeRole", "ROLE", "s", "rt", FOREVER) });
}

static void end(void)
{
	const char *const names[] = { "credentials", "config", "token" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(in_dir(names[i]));
	rmdir(dir);
	CHECK_INT(w.unexpected, 0);
	world_close(&w);
}

/* False: on a busy machine a question took longer than it may. */
static bool prepare_in_time(struct aws *a, struct outcome *o)
{
	*o = (struct outcome){ 0 };
	aws_prepare(a, on_ready, o);
	CHECK(WORLD_UNTIL(&w, o->done));
	return !o->rc || !strstr(o->err.msg, "deadline exceeded");
}

static void prepare(struct aws *a, struct outcome *o)
{
	CHECK(WAIT_FOR(prepare_in_time(a, o)));
}

/* "REGION ACCESS_KEY TOKEN", out of the headers of a signed form. */
static void shown(const struct aws *a, char *out, size_t size)
{
	const char credential[] = "Credential=";
	struct labels headers;
	const char *at, *key = "", *token = "";
	struct err err;

	if (aws_sign(a, &w.arena, STR("https://ec2.example/"), STR(""), &headers, &err)) {
		snprintf(out, size, "%s", err.msg);
		return;
	}
	for (size_t i = 0; i < headers.n; i++) {
		if (str_is(headers.v[i].name, "x-amz-security-token"))
			token = arena_printf(&w.arena, " " STR_FMT, STR_ARG(headers.v[i].value));
		if (str_is(headers.v[i].name, "authorization") &&
			(at = strstr(str_dup(&w.arena, headers.v[i].value).ptr, credential)))
			key = at + strlen(credential);
	}
	snprintf(
		out, size, STR_FMT " %.*s%s", STR_ARG(aws_region(a)), (int)strcspn(key, "/"), key, token);
}

/* clang-format off */
static const struct row {
	const char *what, *set[5];
	struct aws_config c;
	const char *want;
	enum err_code rc;
} rows[] = {
	{ "the configuration", { "AWS_ACCESS_KEY_ID=ENV", "AWS_SECRET_ACCESS_KEY=s" },
		{ .access_key = STR("CONFIG"), .secret_key = STR("s"), .region = STR("r") }, "r CONFIG" },
	{ "its profile", { "AWS_ACCESS_KEY_ID=ENV", "AWS_SECRET_ACCESS_KEY=s", "AWS_PROFILE=q" },
		{ .profile = STR("p") }, "of-p PROFILE t" },
	{ "a profile that is not there", { NULL }, { .profile = STR("x"), .region = STR("r") },
		"files of AWS: it has no profile [x]", ERR_INVALID },
	{ "a profile that has its keys elsewhere", { "AWS_PROFILE=q" }, { .region = STR("r") },
		"profile [q] of the files of AWS uses sso_session, which is not supported; role_arn of the "
		"discovery assumes a role", ERR_UNSUPPORTED },
	{ "an access key alone", { "AWS_ACCESS_KEY_ID=ENV" }, { .access_key = STR("CONFIG") },
		"from-file FILE" },
	{ "the environment", { "AWS_ACCESS_KEY_ID=ENV", "AWS_SECRET_ACCESS_KEY=s",
		"AWS_SESSION_TOKEN=e",
		"AWS_REGION=a", "AWS_DEFAULT_REGION=b" }, { NULL }, "a ENV e" },
	{ "its web identity", { "AWS_WEB_IDENTITY_TOKEN_FILE=%/token", "AWS_ROLE_ARN=arn:x",
		"AWS_DEFAULT_REGION=b" }, { NULL }, "b WEB wt" },
	{ "a token that is not there", { "AWS_WEB_IDENTITY_TOKEN_FILE=/gone/x", "AWS_ROLE_ARN=arn:x" },
		{ NULL }, "read the web identity token: open /gone/x: No such file or directory", ERR_IO },
	{ "the files", { NULL }, { NULL }, "from-file FILE" },
	{ "AWS_PROFILE", { "AWS_PROFILE=p" }, { NULL }, "of-p PROFILE t" },
	{ "the container", { "AWS_PROFILE=none", "AWS_CONTAINER_CREDENTIALS_FULL_URI=@/container",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN=ca" }, { .region = STR("r") }, "r CONTAINER ct" },
	{ "the instance", { "AWS_PROFILE=none" }, { NULL }, "from-instance INSTANCE it" },
	{ "nothing", { "AWS_PROFILE=none", "AWS_EC2_METADATA_DISABLED=true" }, { .region = STR("r") },
		"no credentials: neither the configuration, the environment nor the files of AWS "
			"have some, "
		"and the instance's metadata are disabled", ERR_INVALID },
	{ "a role", { NULL }, { .role_arn = STR("arn:y"), .external_id = STR("e&1") },
		"from-file ROLE rt" },
	{ "a role with the instance's keys", { "AWS_PROFILE=none" }, { .role_arn = STR("arn:y") },
		"from-instance ROLE rt" },
};
/* clang-format on */

TEST(sources_in_their_order)
{
	struct outcome o;
	char got[1100];
	struct aws *a;
	struct err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct aws_config c = rows[i].c;

		begin();
		for (size_t k = 0; k < 5 && rows[i].set[k]; k++)
			set(rows[i].set[k]);
		c.service = "ec2";
		REQUIRE_OK(aws_open(w.client, &c, &a, &err), &err);
		CHECK(!aws_is_ready(a));
		prepare(a, &o);
		CHECK_INT(o.rc, rows[i].rc);
		CHECK_INT(aws_is_ready(a), !o.rc);
		if (o.rc)
			snprintf(got, sizeof(got), "%s", o.err.msg);
		else
			shown(a, got, sizeof(got));
		if (strcmp(got, rows[i].want) != 0)
			CHECK_FAIL("%s: got \"%s\", want \"%s\"", rows[i].what, got, rows[i].want);
		aws_close(a);
		end();
	}
}

TEST(requests_for_credentials)
{
	struct aws_config c = {
		.service = "ec2", .role_arn = STR("arn:aws:iam::1:role/r"), .external_id = STR("e&1") };
	int64_t until_ns = 0;
	struct outcome o;
	struct aws *a;
	struct err err;

	for (;;) {
		begin();
		set("AWS_PROFILE=none");
		REQUIRE_OK(aws_open(w.client, &c, &a, &err), &err);
		if (prepare_in_time(a, &o) || !wait_more(&until_ns))
			break;
		aws_close(a); /* then all of it again, from the first request on */
		end();
	}
	CHECK_INT(o.rc, 0);
	CHECK_STR(buf_str(&w.log),
		"PUT /latest/api/token\n"
		"GET /latest/meta-data/placement/region\n"
		"GET /latest/meta-data/iam/security-credentials/\n"
		"GET /latest/meta-data/iam/security-credentials/role-1\n"
		"POST / Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr"
		"&RoleSessionName=epimetheus&ExternalId=e%261\n");
	CHECK(str_find(buf_str(&w.headers), STR("/from-instance/sts/aws4_request")) >= 0);
	/* they hold; what the server refuses is got again */
	CHECK(aws_is_ready(a));
	aws_forget(a);
	CHECK(!aws_is_ready(a));
	world_change(&w, "Action=AssumeRole&",
		"<ErrorResponse><Error><Code>AccessDenied</Code><Message>secret</Message></Error>"
		"</ErrorResponse>",
		403);
	prepare(a, &o);
	CHECK_INT(o.rc, ERR_UNAVAILABLE);
	CHECK_STR(
		str_of(o.err.msg), "AssumeRole: server returned HTTP status 403 Refused: AccessDenied");
	aws_close(a);
	end();
}

TEST(credentials_that_end)
{
	struct aws_config c = { .service = "ec2", .role_arn = STR("arn:y"), .region = STR("r") };
	struct buf soon = { 0 };
	struct outcome o;
	struct aws *a;
	struct err err;

	begin();
	world_change(
		&w, "Action=AssumeRole&", STS("AssumeRole", "OLD", "s", "t", "2001-01-01T00:00:00Z"), 200);
	REQUIRE_OK(aws_open(w.client, &c, &a, &err), &err);
	prepare(a, &o);
	CHECK_STR(str_of(o.err.msg), "AssumeRole: the credentials of the answer have ended already");
	world_change(&w, "Action=AssumeRole&", STS("AssumeRole", "NEW", "s", "t", "soon"), 200);
	prepare(a, &o);
	CHECK_STR(str_of(o.err.msg), "AssumeRole: the answer does not say when the credentials end");
	world_change(&w, "Action=AssumeRole&", "<a/>", 200);
	prepare(a, &o);
	CHECK_STR(str_of(o.err.msg), "AssumeRole: the answer has no credentials");
	buf_add_cstr(&soon,
		"<x><AssumeRoleResult><Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>s"
		"</SecretAccessKey><SessionToken>t</SessionToken><Expiration>");
	time_print_rfc3339(&soon, clock_now_ns() + 3600 * NS_PER_S);
	buf_add_cstr(&soon, "</Expiration></Credentials></AssumeRoleResult></x>");
	buf_add_char(&soon, '\0');
	world_change(&w, "Action=AssumeRole&", soon.ptr, 200);
	prepare(a, &o);
	CHECK_INT(o.rc, 0);
	CHECK(aws_is_ready(a));
	aws_close(a);
	buf_release(&soon);
	end();
}

TEST(endpoints)
{
	static const struct {
		const char *region, *service, *set, *want;
	} cases[] = {
		{ "eu-west-2", "ec2", "X=", "https://ec2.eu-west-2.amazonaws.com" },
		{ "cn-north-1", "ec2", "X=", "https://ec2.cn-north-1.amazonaws.com.cn" },
		{ "r", "sts", "AWS_ENDPOINT_URL_STS=http://s/", "http://s" },
		{ "r", "ec2", "AWS_ENDPOINT_URL=http://all", "http://all" },
	};
	struct outcome o;
	struct aws *a;
	struct str url;
	struct err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct aws_config c = { .service = "ec2", .region = str_of(cases[i].region) };

		begin();
		set(cases[i].set);
		REQUIRE_OK(aws_open(w.client, &c, &a, &err), &err);
		prepare(a, &o);
		CHECK_OK(aws_service_url(a, &w.arena, cases[i].service, &url, &err), &err);
		CHECK_STR(url, cases[i].want);
		aws_close(a);
		end();
	}
}
