#include <event2/event.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/net/http_client.h"
#include "tests/base/net/http_server.h"
#include "tests/check.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static struct http_server server;
static struct client client;
static struct result res;
static char url[128], dir[64];

static bool start(void)
{
	snprintf(dir, sizeof(dir), "/tmp/epimetheus-http-XXXXXX");
	if (!mkdtemp(dir) || !http_server_start(&server, script_answers, (void *)(uintptr_t)OK, NULL) ||
		!client_open(&client, 0, NULL))
		return false;
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", server.port);
	return true;
}

static void stop(void)
{
	struct err err;

	client_close(&client);
	http_server_stop(&server);
	result_release(&res);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
}

/* Writes DIR/name with this content. The path is valid until the next call with the slot. */
static struct str file(int slot, const char *content)
{
	static char paths[4][128];
	struct err err;

	snprintf(paths[slot], sizeof(paths[slot]), "%s/%d", dir, slot);
	CHECK_OK(fs_write_file(&fs_posix, paths[slot], str_of(content), &err), &err);
	return str_of(paths[slot]);
}

static void check_sent(const char *header)
{
	mutex_lock(&server.lock);
	if (str_find(buf_str(&server.last), str_of(header)) < 0)
		CHECK_FAIL("no %s in " STR_FMT, header, STR_ARG(buf_str(&server.last)));
	mutex_unlock(&server.lock);
}

TEST(basic_and_bearer)
{
	struct http_config c = {
		.has_basic_auth = true, .username = STR("Aladdin"), .password = STR("open sesame") };

	REQUIRE(start());
	client_get(&client, url, &c, &res);
	CHECK_INT(res.rc, ERR_OK);
	check_sent("\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n");
	c = (struct http_config){ .has_basic_auth = true,
		.username_file = file(0, "Aladdin\n"),
		.password_file = file(1, "open sesame\r\n") };
	client_get(&client, url, &c, &res);
	check_sent("\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n");
	c = (struct http_config){ .has_authorization = true, .credentials = STR("token") };
	client_get(&client, url, &c, &res);
	check_sent("\r\nAuthorization: Bearer token\r\n");
	c = (struct http_config){ .has_authorization = true,
		.auth_type = STR("Custom"), .credentials_file = file(2, " first \n") };
	client_get(&client, url, &c, &res);
	check_sent("\r\nAuthorization: Custom first\r\n");
	file(2, "second"); /* read again per request */
	client_get(&client, url, &c, &res);
	check_sent("\r\nAuthorization: Custom second\r\n");
	stop();
}

TEST(headers_and_overrides)
{
	struct label config_headers[] = { { STR("X-A"), STR("1") } };
	struct label files[] = { { STR("X-File"), STR("") } };
	struct label mine[] = {
		{ STR("Authorization"), STR("Mine") }, { STR("User-Agent"), STR("me") } };
	struct http_config c = { .has_authorization = true,
		.credentials = STR("token"), .headers = { config_headers, 1 },
			.header_files = { files, 1 } };
	struct http_request_options o = { .config = &c,
		.method = "POST",
		.body = STR("body"), .headers = { mine, 2 } };
	char want[256];

	REQUIRE(start());
	files[0].value = file(0, "from a file\n");
	o.url = str_of(url);
	client_run(&client, o, &res);
	CHECK_INT(res.rc, ERR_OK);
	snprintf(want, sizeof(want),
		"POST / HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Length: 4\r\nX-A: 1\r\n"
		"X-File: from a file\r\nAuthorization: Mine\r\nUser-Agent: me\r\n\r\nbody",
		server.port);
	mutex_lock(&server.lock);
	CHECK_STR(buf_str(&server.last), want);
	mutex_unlock(&server.lock);
	stop();
}

static enum err_code send_with(
	const char *to, const struct http_config *c, struct label header, struct err *err)
{
	struct http_request_options o = { .url = str_of(to),
		.config = c,
		.timeout_ns = NS_PER_MIN,
		.headers = { &header, header.name.len != 0 } };

	return http_client_send(client.http, &o, result_done, &res, NULL, err);
}

TEST(what_cannot_be_sent_is_refused_at_once)
{
	struct label none = { STR(""), STR("") };
	struct http_config c = { .has_basic_auth = true };
	char want[256];
	struct buf b = { 0 };
	struct err err;

	REQUIRE(start());
	CHECK_ERR(send_with("gopher://a/", NULL, none, &err), &err, ERR_INVALID,
		"invalid URL \"gopher://a/\": unsupported protocol scheme");
	CHECK_ERR(send_with(url, NULL, (struct label){ STR("X-A"), STR("a\r\nX-B: b") }, &err), &err,
		ERR_INVALID, "value of header \"X-A\" holds control characters");
	CHECK_ERR(send_with(url, NULL, (struct label){ STR("X A"), STR("a") }, &err), &err, ERR_INVALID,
		"header \"X A\" may not be set");
	CHECK_ERR(send_with(url, NULL, (struct label){ STR("content-length"), STR("1") }, &err), &err,
		ERR_INVALID, "header \"content-length\" may not be set");
	snprintf(want, sizeof(want), "%s/none", dir);
	c.password_file = str_of(want);
	CHECK_INT(send_with(url, &c, none, &err), ERR_NOT_FOUND);
	snprintf(want, sizeof(want),
		"unable to read basic auth password file: open %s/none: No such file or directory", dir);
	CHECK_STR(str_of(err.msg), want);
	c.password_file = file(0, "two\nlines");
	CHECK_ERR(send_with(url, &c, none, &err), &err, ERR_INVALID,
		"basic auth password file holds control characters");
	for (int i = 0; i < 7000; i++)
		buf_add_cstr(&b, "0123456789");
	buf_add_char(&b, '\0');
	c.password_file = file(0, b.ptr);
	CHECK_INT(send_with(url, &c, none, &err), ERR_LIMIT);
	buf_release(&b);
	CHECK_INT(server.requests, 0);
	stop();
}

TEST(head_and_own_methods)
{
	struct http_request_options o = { .method = "HEAD" };
	struct err err;

	REQUIRE(start());
	o.url = str_of(url);
	client_run(&client, o, &res);
	CHECK_INT(res.rc, ERR_OK);
	CHECK_INT(res.status, 200);
	CHECK_INT(res.body.len, 0);
	check_sent("HEAD / HTTP/1.1\r\n");
	o.method = "GET / HTTP/1.1\r\nX: ";
	CHECK_ERR(http_client_send(client.http, &o, result_done, &res, NULL, &err), &err, ERR_INVALID,
		"invalid HTTP method");
	stop();
}
