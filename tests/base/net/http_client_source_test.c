/* Bodies that are read while they are sent. */
#include "tests/base/net/http_pair.h"
#include "tests/check.h"

#define BYTES ((size_t)3 << 20)
#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

struct source {
	uint64_t fails_at;
	unsigned begun;
};

static char byte_at(uint64_t at)
{
	return (char)('a' + at * 31 % 26);
}

static enum err_code read_source(void *ctx, uint64_t at, char *to, size_t n, struct err *err)
{
	struct source *s = ctx;

	s->begun += !at;
	if (at >= s->fails_at)
		return err_set(err, ERR_IO, "the file has become shorter");
	for (size_t i = 0; i < n; i++)
		to[i] = byte_at(at + i);
	return ERR_OK;
}

static struct source source;
static struct http_body_source body;
static struct http_config config;
static struct http_request_options o;

static bool start(script_fn script, const char *ctx, uint64_t bytes)
{
	source = (struct source){ .fails_at = UINT64_MAX };
	body = (struct http_body_source){ bytes, read_source, &source };
	config = (struct http_config){ .follow_redirects = true };
	if (!pair_start(script, ctx, NULL, "/x"))
		return false;
	o = (struct http_request_options){
		.method = "POST", .url = str_of(url), .source = &body, .config = &config
	};
	return true;
}

static void check_sent(uint64_t bytes)
{
	struct str got;

	mutex_lock(&server.lock);
	got = buf_str(&server.last);
	REQUIRE(got.len > bytes && str_find(got, STR("\r\n\r\n")) == (ptrdiff_t)(got.len - bytes - 4));
	for (uint64_t i = 0; i < bytes; i++)
		if (got.ptr[got.len - bytes + i] != byte_at(i)) {
			CHECK_FAIL("byte %llu", (unsigned long long)i);
			break;
		}
	mutex_unlock(&server.lock);
}

TEST(all_of_it_is_sent)
{
	static const uint64_t sizes[] = { BYTES, 1, 262144, 262145, 0 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		REQUIRE(start(script_answers, OK, sizes[i]));
		client_run(&client, o, &res);
		CHECK_INT(res.rc, ERR_OK);
		CHECK_INT(res.status, 200);
		check_sent(sizes[i]);
		pair_stop();
	}
}

TEST(a_connection_is_used_again)
{
	REQUIRE(start(script_answers, OK, BYTES));
	for (int i = 0; i < 3; i++)
		client_run(&client, o, &res);
	CHECK_INT(res.status, 200);
	CHECK_INT(http_client_stats(client.http).connects, 1);
	CHECK_INT(source.begun, 3);
	check_sent(BYTES);
	pair_stop();
}

TEST(a_source_that_fails)
{
	REQUIRE(start(script_answers, OK, BYTES));
	source.fails_at = BYTES / 2;
	client_run(&client, o, &res);
	CHECK_INT(res.rc, ERR_IO);
	CHECK_STR(str_of(res.msg), "the file has become shorter");
	pair_stop();
}

/* To the same URL with the whole body, until there were too many. */
TEST(a_redirect_begins_again)
{
	REQUIRE(start(script_answers,
		"HTTP/1.1 307 Temporary Redirect\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n", BYTES));
	client_run(&client, o, &res);
	CHECK_INT(res.rc, ERR_LIMIT);
	CHECK_INT(source.begun, 1 + HTTP_REDIRECTS_MAX);
	check_sent(BYTES);
	pair_stop();
}
