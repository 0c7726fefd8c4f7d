/*
 * Signatures as a store checks them: all comes from the bytes of the request, nothing from the code
 * that signs.
 */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/tsdb/bucket/fake.h"

#define NAMES_MAX 32
#define SKEW_MAX_S 900

struct str fake_header(const struct fake_request *r, const char *name)
{
	struct str v = STR("");
	struct http_response res = { .head = r->head };

	v = http_response_header(&res, name);
	return v;
}

static struct str between(struct str s, const char *from, const char *to)
{
	ptrdiff_t at = str_find(s, str_of(from)), end;

	if (at < 0)
		return STR("");
	s.ptr += (size_t)at + strlen(from);
	s.len -= (size_t)at + strlen(from);
	end = *to ? str_find(s, str_of(to)) : -1;
	return (struct str){ s.ptr, end < 0 ? s.len : (size_t)end };
}

static struct str authorization(const struct fake_request *r)
{
	return fake_header(r, "authorization");
}

struct str fake_access_key(const struct fake_request *r)
{
	return between(authorization(r), "Credential=", "/");
}

static void hex(const unsigned char *p, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", p[i]);
}

static void sha256_hex(struct str s, char out[65])
{
	unsigned char d[32];

	SHA256((const unsigned char *)s.ptr, s.len, d);
	hex(d, 32, out);
}

static int by_text(const void *x, const void *y)
{
	return strcmp(*(char *const *)x, *(char *const *)y);
}

/* "b=2&a=1&c" sorted: "a=1&b=2&c=". */
static void add_query(struct buf *out, struct str query)
{
	char text[4096], *v[NAMES_MAX], *at = text;
	size_t n = 0;

	snprintf(text, sizeof(text), STR_FMT, STR_ARG(query));
	for (char *p; n < NAMES_MAX && (p = strsep(&at, "&"));)
		if (*p)
			v[n++] = p;
	qsort(v, n, sizeof(*v), by_text); /* right for names of which none begins another */
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s%s%s", i ? "&" : "", v[i], strchr(v[i], '=') ? "" : "=");
}

static const char *add_headers(struct buf *out, const struct fake_request *r, struct str names)
{
	char text[1024], *at = text, *name;
	bool host = false, hash = false;

	snprintf(text, sizeof(text), STR_FMT, STR_ARG(names));
	while ((name = strsep(&at, ";"))) {
		struct str value = fake_header(r, name);

		host |= strcmp(name, "host") == 0;
		hash |= strcmp(name, "x-amz-content-sha256") == 0;
		buf_printf(out, "%s:" STR_FMT "\n", name, STR_ARG(value));
	}
	return host && hash ? NULL : "AccessDenied";
}

/* Each x-amz- header must be signed. */
static bool all_signed(const struct fake_request *r, struct str names)
{
	struct str rest = r->head;
	ptrdiff_t at;

	while ((at = str_find(rest, STR("\r\nx-amz-"))) >= 0) {
		struct str name;

		rest.ptr += at + 2;
		rest.len -= (size_t)at + 2;
		name = (struct str){ rest.ptr, (size_t)str_find(rest, STR(":")) };
		if (str_find(names, name) < 0)
			return false;
	}
	return true;
}

static int64_t time_of(struct str s)
{
	char text[32];
	struct tm tm = { 0 };

	snprintf(text, sizeof(text), STR_FMT, STR_ARG(s));
	return strptime(text, "%Y%m%dT%H%M%SZ", &tm) ? (int64_t)timegm(&tm) : 0;
}

static void mac(unsigned char key[32], size_t key_len, const char *text, size_t n)
{
	unsigned len = 32;
	unsigned char out[32];

	HMAC(EVP_sha256(), key, (int)key_len, (const unsigned char *)text, n, out, &len);
	memcpy(key, out, 32);
}

static void sign(const char *secret, struct str scope, const char *text, char out[65])
{
	char parts[256], *at = parts, *p;
	unsigned char key[160];
	size_t n = (size_t)snprintf((char *)key, sizeof(key), "AWS4%s", secret);

	snprintf(parts, sizeof(parts), STR_FMT, STR_ARG(scope));
	for (; (p = strsep(&at, "/")); n = 32)
		mac(key, n, p, strlen(p));
	mac(key, n, text, strlen(text));
	hex(key, 32, out);
}

const char *fake_check_signature(
	const struct fake_request *r, int64_t now_s, const char *secret, const char *session_token)
{
	struct str names = between(authorization(r), "SignedHeaders=", ","),
			   given = between(authorization(r), "Signature=", ""),
			   scope = between(authorization(r), "/", ","), date = fake_header(r, "x-amz-date"),
			   hash = fake_header(r, "x-amz-content-sha256");
	char digest[65], want[65];
	struct buf canonical = { 0 }, text = { 0 };
	const char *problem;

	if (!names.len || !given.len || !all_signed(r, names))
		return "AccessDenied";
	if (llabs(time_of(date) - now_s) > SKEW_MAX_S)
		return "RequestTimeTooSkewed";
	if (!str_is(fake_header(r, "x-amz-security-token"), session_token))
		return "InvalidToken";
	sha256_hex(r->body, digest);
	if (!str_is(hash, "UNSIGNED-PAYLOAD") && !str_is(hash, digest))
		return "XAmzContentSHA256Mismatch";
	buf_printf(&canonical, STR_FMT "\n" STR_FMT "\n", STR_ARG(r->method), STR_ARG(r->path));
	add_query(&canonical, r->query);
	buf_add_char(&canonical, '\n');
	problem = add_headers(&canonical, r, names);
	buf_printf(&canonical, "\n" STR_FMT "\n" STR_FMT, STR_ARG(names), STR_ARG(hash));
	sha256_hex(buf_str(&canonical), digest);
	buf_printf(&text, "AWS4-HMAC-SHA256\n" STR_FMT "\n" STR_FMT "\n%s%c", STR_ARG(date),
		STR_ARG(scope), digest, '\0');
	sign(secret, scope, text.ptr, want);
	if (!problem && !str_is(given, want))
		problem = "SignatureDoesNotMatch";
	buf_release(&canonical);
	buf_release(&text);
	return problem;
}
