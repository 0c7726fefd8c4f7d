/* Where credentials come from, that they are renewed, and that nobody sees them. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "tests/tsdb/bucket/world.h"
#include "tsdb/bucket/internal.h"

static char path[64];

static void write_file(const char *text)
{
	if (!path[0]) {
		snprintf(path, sizeof(path), "/tmp/epi-credentials-XXXXXX");
		close(mkstemp(path));
	}
	CHECK_OK(fs_write_file(&fs_posix, path, str_of(text), &err), &err);
}

static void remove_file(void)
{
	unlink(path);
	path[0] = '\0';
}

TEST(file_is_read_again_when_it_changes)
{
	char want[256];

	REQUIRE(world_fake());
	write_file("[default]\naws_access_key_id=AK\naws_secret_access_key=WRONG\n");
	config.credentials = (struct bucket_credentials_config){ .kind = BUCKET_FILE,
		.file = str_of(path) };
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	CHECK_INT(put_text("k", "x"), ERR_UNAVAILABLE);
	write_file("[default]\naws_access_key_id=AK\naws_secret_access_key=SECRET\n");
	CHECK_OK(put_text("k", "x"), &err);
	/* one that cannot be read changes nothing */
	write_file("[defau");
	CHECK_OK(put_text("k", "x"), &err);
	bucket_close(b);
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	snprintf(want, sizeof(want),
		"bucket b: put p/q/k: credentials: %s: it has no profile [default]", path);
	CHECK_ERR(put_text("k", "x"), &err, ERR_INVALID, want);
	remove_file();
	world_stop();
}

/* Each key of a static pair may be in a file of its own. */
TEST(files_with_one_key)
{
	char want[256];

	REQUIRE(world_fake());
	write_file(" WRONG\n");
	config.credentials = (struct bucket_credentials_config){ .kind = BUCKET_STATIC,
		.access_key = STR("AK"), .secret_key_file = str_of(path) };
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	CHECK_INT(put_text("k", "x"), ERR_UNAVAILABLE);
	write_file("SECRET\n");
	CHECK_OK(put_text("k", "x"), &err);
	write_file("SEC RET\n"); /* the old one stays */
	CHECK_OK(put_text("k", "x"), &err);
	bucket_close(b);
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	snprintf(want, sizeof(want), "bucket b: put p/q/k: credentials: %s: not one word", path);
	CHECK_ERR(put_text("k", "x"), &err, ERR_INVALID, want);
	write_file("\n");
	snprintf(want, sizeof(want), "bucket b: put p/q/k: credentials: %s: it is empty", path);
	CHECK_ERR(put_text("k", "x"), &err, ERR_INVALID, want);
	write_file("SECRET");
	CHECK_OK(put_text("k", "x"), &err);
	remove_file();
	world_stop();
}

TEST(environment)
{
	static const char *const names[] = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
		"AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN",
		"AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	REQUIRE(world_fake());
	config.credentials = (struct bucket_credentials_config){ .kind = BUCKET_ENVIRONMENT };
	CHECK_ERR(bucket_open(&config, &b, &err), &err, ERR_INVALID,
		"bucket: credentials: the environment has none (AWS_ACCESS_KEY_ID and "
		"AWS_SECRET_ACCESS_KEY, AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or "
		"AWS_SHARED_CREDENTIALS_FILE)");
	write_file("[x]\naws_access_key_id=AK\naws_secret_access_key=SECRET\n");
	setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
	setenv("AWS_PROFILE", "x", 1);
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	CHECK_OK(put_text("k", "x"), &err);
	bucket_close(b);
	setenv("AWS_ACCESS_KEY_ID", "AK", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "OTHER", 1);
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	CHECK_INT(put_text("k", "x"), ERR_UNAVAILABLE);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	remove_file();
	world_stop();
}

static bool web_identity(void)
{
	static char endpoint[64];

	if (!world_fake())
		return false;
	write_file("web-token-1\n");
	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u/", fake.server.port);
	config.credentials = (struct bucket_credentials_config){ .kind = BUCKET_WEB_IDENTITY,
		.role_arn = STR("arn:aws:iam::1:role/r"), .token_file = str_of(path),
			.sts_endpoint = str_of(endpoint) };
	return bucket_open(&config, &b, &err) == ERR_OK;
}

TEST(web_identity_is_asked_for_once)
{
	REQUIRE(web_identity());
	for (int i = 0; i < 3; i++)
		CHECK_OK(put_text("k", "x"), &err);
	CHECK_INT(fake.tokens, 1);
	CHECK_STR(str_of(fake.web_token), "web-token-1");
	CHECK(strstr(fake.last_head, "\r\nx-amz-security-token: t1\r\n") != NULL);
	/* the store says that they have ended: others, at once */
	write_file("web-token-2\n");
	fake.tokens_valid_from = 2;
	CHECK_OK(put_text("k", "x"), &err);
	CHECK_INT(fake.tokens, 2);
	CHECK_STR(str_of(fake.web_token), "web-token-2");
	/* others that have ended too: once only */
	fake.tokens_valid_from = 9;
	CHECK_ERR(put_text("k", "x"), &err, ERR_UNAVAILABLE,
		"bucket b: put p/q/k: after 2 attempts: the credentials have expired");
	CHECK_INT(fake.tokens, 3);
	remove_file();
	world_stop();
}

TEST(web_identity_that_ends_soon_is_renewed)
{
	REQUIRE(web_identity());
	fake.token_life_s = 5; /* less than a request may take */
	CHECK_OK(put_text("k", "x"), &err);
	CHECK_OK(put_text("k", "x"), &err);
	CHECK_INT(fake.tokens, 2);
	remove_file();
	world_stop();
}

TEST(token_service_that_fails)
{
	REQUIRE(web_identity());
	fake_fault(&fake, (struct fake_fault){ FAULT_STATUS, "POST / ", 2, 503, "ServiceUnavailable" });
	CHECK_OK(put_text("k", "x"), &err);
	CHECK_INT(fake.tokens, 1);
	bucket_close(b);
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	fake_fault(
		&fake, (struct fake_fault){ FAULT_STATUS, "POST / ", 1, 400, "InvalidIdentityToken" });
	CHECK_INT(put_text("k", "x"), ERR_INVALID);
	CHECK(strstr(err.msg,
			  "credentials: AssumeRoleWithWebIdentity: the store answers 400 "
			  "InvalidIdentityToken") != NULL);
	CHECK(!strstr(err.msg, "web-token"));
	remove_file();
	CHECK_INT(put_text("k", "x"), ERR_IO);
	CHECK(strstr(err.msg, "credentials: AssumeRoleWithWebIdentity: read the web identity token: "));
	world_stop();
}
