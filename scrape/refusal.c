#include "scrape/refusal.h"

#include <assert.h>

#include "base/hidden.h"
#include "base/quote.h"

#define REFUSAL_WORDS_WITHIN 4096u /* bytes of a body in which words are looked for */

struct status_name {
	int status;
	const char *name;
};

/* clang-format off */
static const struct status_name status_names[] = { /* that endpoints of profiles may answer */
	{ 201, "Created" }, { 202, "Accepted" }, { 204, "No Content" }, { 206, "Partial Content" },
	{ 301, "Moved Permanently" }, { 302, "Found" }, { 303, "See Other" }, { 304, "Not Modified" },
	{ 307, "Temporary Redirect" }, { 308, "Permanent Redirect" },
	{ 400, "Bad Request" }, { 401, "Unauthorized" }, { 402, "Payment Required" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" }, { 405, "Method Not Allowed" }, { 406, "Not Acceptable" },
	{ 407, "Proxy Authentication Required" }, { 408, "Request Timeout" }, { 409, "Conflict" },
	{ 410, "Gone" }, { 415, "Unsupported Media Type" }, { 418, "I'm a teapot" },
	{ 421, "Misdirected Request" }, { 426, "Upgrade Required" }, { 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" }, { 500, "Internal Server Error" },
	{ 501, "Not Implemented" }, { 502, "Bad Gateway" }, { 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" }, { 505, "HTTP Version Not Supported" },
};
/* clang-format on */

static const char *status_name(int status)
{
	for (size_t i = 0; i < sizeof(status_names) / sizeof(status_names[0]); i++)
		if (status_names[i].status == status)
			return status_names[i].name;
	return "";
}

bool refusal_type_is(struct str content_type, const char *type)
{
	ptrdiff_t semicolon = str_find(content_type, STR(";"));

	if (semicolon >= 0)
		content_type.len = (size_t)semicolon;
	return str_eq_nocase(str_trim(content_type), str_of(type));
}

void refusal_text(char out[REFUSAL_TEXT_BYTES], struct str text)
{
	uint32_t code;
	size_t n = 0, len;

	text = str_trim(text);
	if (text.len > REFUSAL_TEXT_SHOWN)
		text.len = REFUSAL_TEXT_SHOWN;
	while (text.len && n + 4 < REFUSAL_TEXT_BYTES) {
		len = utf8_decode(text, &code);
		if (len == 0 && text.len < 4 && (unsigned char)text.ptr[0] >= 0xc0)
			break; /* a character that was cut in two */
		if (len == 0 || code < ' ' || code == 0x7f) {
			out[n++] = len == 0 ? '?' : ' ';
			len = len ? len : 1;
		} else {
			memcpy(out + n, text.ptr, len);
			n += len;
		}
		text.ptr += len;
		text.len -= len;
	}
	out[n] = '\0';
}

static bool refusal_says_one_of(struct str body, const char *const *words, size_t n)
{
	if (body.len > REFUSAL_WORDS_WITHIN)
		body.len = REFUSAL_WORDS_WITHIN;
	for (size_t i = 0; i < n; i++)
		if (str_find(body, str_of(words[i])) >= 0)
			return true;
	return false;
}

bool refusal_profiler_taken(int status, struct str body)
{
	/* Go; profilers of other languages that speak its protocol */
	static const char *const words[] = { "already in use", "already running", "already started",
		"already in progress" };

	if (body.len > REFUSAL_TEXT_SHOWN)
		body.len = REFUSAL_TEXT_SHOWN;
	return status >= 400 && refusal_says_one_of(body, words, sizeof(words) / sizeof(words[0]));
}

/* ---- wrong schemes ---- */

static bool refusal_is_https(struct str url)
{
	return str_has_prefix_nocase(url, STR("https:"));
}

/* Servers of TLS that know HTTP when they see it. */
static bool refusal_wants_tls(const struct http_response *res, struct str asked)
{
	/* Go and what is written in it; nginx; Apache */
	static const char *const words[] = { "HTTP request to an HTTPS server",
		"plain HTTP request was sent to HTTPS port",
		"speaking plain HTTP to an SSL-enabled server port" };

	return res->status == 400 && !res->redirects && !refusal_is_https(asked) &&
		refusal_says_one_of(res->body, words, sizeof(words) / sizeof(words[0]));
}

/* Without TLS, as in Prometheus, only HTTP/1.1 is spoken. */
#define HTTP2_ONLY "set \"scheme: https\" if it has TLS, else let it serve HTTP/1.1 too"

/* Kestrel. */
static bool refusal_wants_http2(const struct http_response *res, struct str asked)
{
	static const char *const words[] = { "HTTP/2 only endpoint" };

	return res->status == 400 && !res->redirects && !refusal_is_https(asked) &&
		refusal_says_one_of(res->body, words, 1);
}

/* If redirects led elsewhere, it is not the job's scheme that is wrong there. */
void refusal_explain_failure(const struct http_response *res, struct str asked, struct err *err)
{
	static const struct {
		bool https;
		const char *prefix, *said, *hint;
	} hints[] = {
		{ true, "tls ", "wrong version number",
			"the target does not speak TLS, set \"scheme: http\"" },
		{ false, "malformed HTTP ", "the server speaks TLS", "set \"scheme: https\"" },
		{ false, "malformed HTTP ", "the server speaks HTTP/2", HTTP2_ONLY },
		{ true, "malformed HTTP ", "the server speaks HTTP/2",
			"remove \"enable_http2: false\", or let the target offer h2 by ALPN" },
		{ true, "tls ", "no application protocol",
			"the target speaks only HTTP/2, remove \"enable_http2: false\"" },
		{ true, "HTTP/2: ", "HTTP_1_1_REQUIRED", "set \"enable_http2: false\"" },
		{ true, "malformed HTTP/2 ", "does not support HTTP/2", "set \"enable_http2: false\"" },
	};
	struct err why = *err;

	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]) && !res->redirects; i++)
		if (hints[i].https == refusal_is_https(asked) &&
			str_has_prefix(str_of(why.msg), str_of(hints[i].prefix)) &&
			strstr(why.msg, hints[i].said))
			err_set(err, why.code, "%s: %s", why.msg, hints[i].hint);
}

/* ---- redirects ---- */

static void refusal_print_url(struct buf *out, struct str url)
{
	char text[REFUSAL_TEXT_BYTES];
	struct buf shown = { 0 };

	hidden_print_url(&shown, url);
	refusal_text(text, buf_str(&shown));
	buf_add_cstr(out, text);
	if (shown.len > REFUSAL_TEXT_SHOWN)
		buf_add_cstr(out, "...");
	buf_release(&shown);
}

void refusal_print_way(struct buf *out, const struct http_response *res)
{
	if (res->redirects)
		refusal_print_url(out, str_of(res->final_url));
}

void refusal_add_way(struct str led_to, struct err *err)
{
	struct err why = *err;

	if (led_to.len)
		err_set(err, why.code, "%s; the target redirected to " STR_FMT, why.msg, STR_ARG(led_to));
}

/* ---- answers ---- */

/* Behind "302 Found: ": what a redirect that was not followed leads to. */
static void refusal_print_redirect(struct buf *out, const struct http_response *res, bool follows)
{
	if (!res->location.len) {
		buf_add_cstr(out, "it does not say where to");
		return;
	}
	buf_add_cstr(out, "it leads to ");
	refusal_print_url(out, res->location);
	if (!follows)
		buf_add_cstr(out, ", and the job has \"follow_redirects: false\"");
}

static bool refusal_is_redirect(int status)
{
	return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

enum err_code refusal_status(
	const struct http_response *res, struct str asked, bool follows, struct err *err)
{
	const char *name = status_name(res->status);
	char text[REFUSAL_TEXT_BYTES];
	struct buf more = { 0 };

	assert(res->status != 200);
	if (refusal_wants_tls(res, asked)) {
		buf_add_cstr(&more, "the target speaks TLS, set \"scheme: https\"");
	} else if (refusal_wants_http2(res, asked)) {
		buf_add_cstr(&more, "the target speaks only HTTP/2, " HTTP2_ONLY);
	} else if (refusal_is_redirect(res->status)) {
		refusal_print_redirect(&more, res, follows);
	} else if (refusal_type_is(res->content_type, "text/plain")) {
		refusal_text(text, res->body);
		buf_add_cstr(&more, text);
	}
	err_set(err, ERR_UNAVAILABLE, "server returned HTTP status %d%s%s%s" STR_FMT, res->status,
		name[0] ? " " : "", name, more.len ? ": " : "", STR_ARG(buf_str(&more)));
	buf_release(&more);
	return ERR_UNAVAILABLE;
}
