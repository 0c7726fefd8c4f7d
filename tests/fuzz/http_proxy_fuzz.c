/*
 * fuzz: base/net
 *
 * Bytes of others on the way to a target: a token server's answer, as JSON and as a form, gives a
 * header that is one, or an error; a list of no_proxy and the URL of a proxy are read whole; a
 * proxy's answers open a tunnel or do not, in one piece and byte by byte alike.
 */
#include "base/net/http_client_internal.h"
#include "tests/fuzz/fuzz.h"

static void token(const char *type, struct str body)
{
	struct str authorization;
	struct arena a;
	int64_t life_ns;
	struct err err;

	arena_init(&a, 4u << 20);
	if (!http_token_parse(&a, str_of(type), body, &authorization, &life_ns, &err) &&
		(life_ns < 0 || !authorization.len || !http_header_value_valid(authorization)))
		abort();
	arena_release(&a);
}

static void no_proxy(struct str list)
{
	static const char *const hosts[] = { "a.b.c", "10.1.2.3", "fd00::1", "::ffff:10.1.2.3" };

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		if (!http_proxy_is_bypassed(list, str_of(hosts[i]), 80) &&
			(str_is(list, "*") || str_is(list, hosts[i])))
			abort();
	if (!http_proxy_is_bypassed(list, STR("127.0.0.1"), 80))
		abort();
}

static void proxy_url(struct str url)
{
	struct http_proxy p;
	struct arena a;
	struct err err;

	arena_init(&a, 1u << 20);
	for (int loose = 0; loose < 2; loose++)
		if (!http_proxy_parse(&a, url, loose, &p, &err) &&
			(!p.kind || !p.port || !p.host.len || p.host.ptr[p.host.len] != '\0' ||
				strlen(p.host.ptr) != p.host.len))
			abort();
	arena_release(&a);
}

static enum err_code open_tunnel(
	struct str text, enum tunnel_phase phase, size_t step, size_t *left, bool *done)
{
	struct http_proxy p = { .kind = HTTP_PROXY_SOCKS5,
		.has_user = text.len & 1,
		.user = STR("u"), .password = STR("p") };
	struct http_url url = { .host = STR("a.example"), .port = 80 };
	struct tunnel t = { .proxy = &p, .url = &url, .phase = phase };
	enum err_code rc = ERR_OK;
	struct err err;

	*done = false;
	http_parser_init(&t.parser, true, 0);
	while (text.len && !rc && !*done) {
		struct str piece = { text.ptr, text.len < step ? text.len : step };

		text.ptr += piece.len;
		text.len -= piece.len;
		rc = tunnel_feed(&t, &piece, done, &err);
		*left = text.len + piece.len;
	}
	http_parser_release(&t.parser);
	buf_release(&t.out);
	return rc;
}

static void tunnel(struct str text, enum tunnel_phase phase)
{
	size_t left[2] = { 0 };
	enum err_code rc[2];
	bool done[2];

	rc[0] = open_tunnel(text, phase, SIZE_MAX, &left[0], &done[0]);
	rc[1] = open_tunnel(text, phase, 1, &left[1], &done[1]);
	if (rc[0] != rc[1] || done[0] != done[1] || (!rc[0] && left[0] != left[1]))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct buf error = { 0 };

	token("application/json", text);
	token("application/x-www-form-urlencoded", text);
	http_token_print_error(&error, text, STR("secret"));
	if (!http_header_value_valid(buf_str(&error)) || str_find(buf_str(&error), STR("secret")) >= 0)
		abort();
	buf_release(&error);
	no_proxy(text);
	proxy_url(text);
	tunnel(text, TUNNEL_CONNECT);
	tunnel(text, TUNNEL_METHOD);
	return 0;
}
