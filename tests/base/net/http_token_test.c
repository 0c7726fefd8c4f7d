#include "base/net/http_token.h"

#include "base/clock.h"
#include "tests/check.h"

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

/* "AUTHORIZATION SECONDS", or the error. */
static void describe(struct arena *a, const char *type, struct str body, struct buf *out)
{
	struct str authorization;
	int64_t life_ns;
	struct err err;

	buf_clear(out);
	if (http_token_parse(a, str_of(type), body, &authorization, &life_ns, &err))
		buf_add_cstr(out, err.msg);
	else if (life_ns == INT64_MAX)
		buf_printf(out, STR_FMT " without end", STR_ARG(authorization));
	else
		buf_printf(out, STR_FMT " %lld", STR_ARG(authorization), (long long)(life_ns / 1000000000));
}

TEST(answers)
{
#define FORM "application/x-www-form-urlencoded"
	static const struct {
		const char *type, *body, *want;
	} rows[] = {
		{ "application/json",
			"{\"access_token\":\"t\",\"token_type\":\"bearer\",\"expires_in\":3600}",
			"Bearer t 3590" },
		{ "", "{\"access_token\":\"a.b-c\"}", "Bearer a.b-c without end" },
		{ "application/json; charset=utf-8", "{\"access_token\":\"t\",\"expires_in\":\"120\"}",
			"Bearer t 110" },
		{ "", "{\"access_token\":\"t\",\"expires_in\":4}", "Bearer t 2" },
		{ "", "{\"access_token\":\"t\",\"expires_in\":20}", "Bearer t 10" },
		{ "", "{\"access_token\":\"t\",\"expires_in\":0}", "Bearer t without end" },
		{ "", "{\"access_token\":\"t\",\"expires_in\":null}", "Bearer t without end" },
		{ "", "{\"access_token\":\"t\",\"expires_in\":-5}", "Bearer t 0" },
		{ "", "{\"access_token\":\"t\",\"expires_in\":99999999999}", "Bearer t 2147483637" },
		{ "", "{\"access_token\":\"t\",\"token_type\":\"BEARER\"}", "Bearer t without end" },
		{ "", "{\"access_token\":\"t\",\"token_type\":\"mac\"}", "MAC t without end" },
		{ "", "{\"access_token\":\"t\",\"token_type\":\"DPoP\"}", "DPoP t without end" },
		{ "", "{\"access_token\":\"t\",\"token_type\":null}", "Bearer t without end" },
		{ FORM, "access_token=a%20b%2Bc&scope=x&expires_in=100&token_type=bearer",
			"Bearer a b+c 90" },
		{ "text/plain;charset=x", "&&access_token=t&=", "Bearer t without end" },

		{ "", "", "the answer is not a JSON object" },
		{ "", "[]", "the answer is not a JSON object" },
		{ "", "<html>", "the answer is not a JSON object" },
		{ "", "{}", "the answer has no access_token" },
		{ "", "{\"access_token\":\"\"}", "the answer has no access_token" },
		{ "", "{\"access_token\":7}", "the answer has no access_token" },
		{ "", "{\"access_token\":\"a\\r\\nX: y\"}", "access_token holds control characters" },
		{ "", "{\"access_token\":\"t\",\"token_type\":\"a b\"}",
			"token_type is not the name of a scheme" },
		{ "", "{\"access_token\":\"t\",\"token_type\":[]}", "token_type is not a string" },
		{ "", "{\"access_token\":\"t\",\"expires_in\":1.5}", "expires_in is not a whole number" },
		{ "", "{\"access_token\":\"t\",\"expires_in\":\"soon\"}",
			"expires_in is not a whole "
			"number" },
		{ "", "{\"access_token\":\"t\",\"expires_in\":true}", "expires_in is not a whole number" },
		{ FORM, "access_token=t&expires_in=x", "expires_in is not a whole number" },
		{ FORM, "token=t", "the answer has no access_token" },
		{ FORM, "access_token=a%0d%0aX:y", "access_token holds control characters" },
	};
	struct buf got = { 0 }, large = { 0 };
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		describe(&a, rows[i].type, str_of(rows[i].body), &got);
		if (!str_is(buf_str(&got), rows[i].want))
			CHECK_FAIL("%s gives " STR_FMT ", want %s", rows[i].body, STR_ARG(buf_str(&got)),
				rows[i].want);
	}
	while (large.len <= HTTP_TOKEN_BODY_BYTES_MAX)
		buf_add_char(&large, '[');
	describe(&a, "", buf_str(&large), &got);
	CHECK_STR(buf_str(&got), "the answer is 65537 bytes, limit 65536");
	large.len--;
	describe(&a, "", buf_str(&large), &got); /* nested too deeply for a reader of JSON */
	CHECK_STR(buf_str(&got), "the answer is not a JSON object");
	buf_release(&got);
	buf_release(&large);
	arena_release(&a);
}

TEST(errors_of_servers)
{
	static const struct {
		const char *body, *secret, *want;
	} rows[] = {
		{ "{\"error\":\"invalid_client\",\"error_description\":\"no\"}", "s3", ": invalid_client" },
		{ "{\"error\":\"bad s3 there\"}", "s3", "" },
		{ "{\"error\":\"bad-s3\"}", "s3", "" },
		{ "{\"error\":\"x\\u0000y\"}", "", "" },
		{ "{\"error\":7}", "", "" },
		{ "nothing", "", "" },
		{ "", "", "" },
	};
	struct buf got = { 0 };

	for (size_t i = 0; i < COUNT(rows); i++) {
		buf_clear(&got);
		http_token_print_error(&got, str_of(rows[i].body), str_of(rows[i].secret));
		CHECK_STR(buf_str(&got), rows[i].want);
	}
	buf_release(&got);
}

#define NOW (1000 * NS_PER_S)

static enum http_token_state get(
	struct arena *a, const struct http_token_id *id, struct http_token *out)
{
	struct err err;

	*out = (struct http_token){ 0 };
	return http_token_get(a, id, NOW, out, &err);
}

TEST(one_asks_and_all_get_it)
{
	struct http_token_id id = { "one" };
	struct http_token t;
	struct arena a;
	uint64_t serial;

	arena_init(&a, 0);
	CHECK_INT(get(&a, &id, &t), HTTP_TOKEN_ASK);
	CHECK_INT(t.style, HTTP_TOKEN_UNKNOWN);
	CHECK_INT(get(&a, &id, &t), HTTP_TOKEN_BUSY);
	serial = http_token_put(&id, NOW, STR("Bearer x"), INT64_MAX, HTTP_TOKEN_IN_BODY);
	CHECK_INT(get(&a, &id, &t), HTTP_TOKEN_VALID);
	CHECK_STR(t.authorization, "Bearer x");
	CHECK(t.serial == serial);
	CHECK(!http_token_refused(&id, NOW + NS_PER_S - 1, serial)); /* it has just been made */
	CHECK(http_token_refused(&id, NOW, serial - 1)); /* that one is gone already */
	CHECK_INT(get(&a, &id, &t), HTTP_TOKEN_VALID);
	CHECK(http_token_refused(&id, NOW + NS_PER_S, serial));
	CHECK_INT(get(&a, &id, &t), HTTP_TOKEN_ASK);
	http_token_fail(&id, NOW, ERR_CANCELED, NULL);
	arena_release(&a);
}

TEST(a_token_ends)
{
	struct http_token_id id = { "ends" };
	struct http_token t;
	struct arena a;

	arena_init(&a, 0);
	CHECK_INT(get(&a, &id, &t), HTTP_TOKEN_ASK);
	http_token_put(&id, NOW - 10, STR("Bearer x"), 11, HTTP_TOKEN_IN_HEADER);
	CHECK_INT(get(&a, &id, &t), HTTP_TOKEN_VALID);
	CHECK_INT(http_token_get(&a, &id, NOW + 1, &t, NULL), HTTP_TOKEN_ASK);
	CHECK_INT(t.style, HTTP_TOKEN_IN_HEADER); /* it is known from now on */
	http_token_fail(&id, NOW, ERR_CANCELED, NULL);
	CHECK_INT(http_token_get(&a, &id, NOW + 1, &t, NULL), HTTP_TOKEN_ASK); /* nobody's fault */
	http_token_fail(&id, NOW, ERR_CANCELED, NULL);
	arena_release(&a);
}

TEST(a_failure_holds_for_a_moment)
{
	struct http_token_id id = { "fails" };
	struct http_token t;
	struct err err, got;
	struct arena a;

	arena_init(&a, 0);
	err_set(&err, ERR_UNAVAILABLE, "refused");
	CHECK_INT(get(&a, &id, &t), HTTP_TOKEN_ASK);
	http_token_fail(&id, NOW, ERR_UNAVAILABLE, &err);
	CHECK_INT(http_token_get(&a, &id, NOW + NS_PER_S - 1, &t, &got), HTTP_TOKEN_FAILED);
	CHECK_STR(str_of(got.msg), "refused");
	CHECK_INT(http_token_get(&a, &id, NOW + NS_PER_S, &t, &got), HTTP_TOKEN_ASK);
	http_token_fail(&id, NOW, ERR_CANCELED, NULL);
	arena_release(&a);
}

/* As many as there is room for; those that are asked for stay. */
TEST(the_oldest_go)
{
	struct http_token_id id = { "room" }, asked = { "asked" };
	struct http_token t;
	struct arena a;

	arena_init(&a, 0);
	CHECK_INT(get(&a, &asked, &t), HTTP_TOKEN_ASK);
	for (unsigned i = 0; i < 2 * HTTP_TOKENS_MAX; i++) {
		id.digest[30] = (unsigned char)i;
		id.digest[31] = (unsigned char)(i >> 8);
		CHECK_INT(get(&a, &id, &t), HTTP_TOKEN_ASK);
		http_token_put(&id, NOW, STR("Bearer x"), INT64_MAX, HTTP_TOKEN_IN_BODY);
	}
	CHECK_INT(get(&a, &id, &t), HTTP_TOKEN_VALID);
	id.digest[30] = id.digest[31] = 0;
	CHECK_INT(get(&a, &id, &t), HTTP_TOKEN_ASK); /* it went */
	http_token_fail(&id, NOW, ERR_CANCELED, NULL);
	CHECK_INT(get(&a, &asked, &t), HTTP_TOKEN_BUSY);
	http_token_fail(&asked, NOW, ERR_CANCELED, NULL);
	arena_release(&a);
}
