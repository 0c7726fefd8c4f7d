/*
 * The algorithm: the request in one canonical form is hashed; the hash, the time and the scope are
 * the string to sign; a key made of the secret and the scope signs it. A server does the same with
 * what it got.
 */
#include "base/net/sigv4.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <time.h>

#include "base/net/percent.h"

#define ALGORITHM "AWS4-HMAC-SHA256"
#define TIME_LEN 16 /* 20150830T123600Z */
#define DAY_LEN 8
#define YEAR_9999_S INT64_C(253402300799)

static void sigv4_print_hex(const unsigned char *digest, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digits[digest[i] >> 4];
		out[2 * i + 1] = digits[digest[i] & 15];
	}
	out[2 * n] = '\0';
}

void sigv4_hash(struct str bytes, char out[SIGV4_HASH_LEN + 1])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)bytes.ptr, bytes.len, digest);
	sigv4_print_hex(digest, sizeof(digest), out);
}

static enum err_code sigv4_print_time(int64_t time_s, char out[TIME_LEN + 1], struct err *err)
{
	time_t t = (time_t)time_s;
	struct tm tm;

	if (time_s < 0 || time_s > YEAR_9999_S || !gmtime_r(&t, &tm))
		return err_set(err, ERR_INVALID, "the time of a signature is out of range");
	strftime(out, TIME_LEN + 1, "%Y%m%dT%H%M%SZ", &tm);
	return ERR_OK;
}

/* ---- path and query ---- */

static enum err_code sigv4_add_path(struct buf *out, struct str path, struct err *err)
{
	size_t from = 0;

	if (!path.len || path.ptr[0] != '/')
		return err_set(err, ERR_INVALID, "the path of a signed request does not begin with \"/\"");
	for (size_t i = 0; i <= path.len; i++) {
		if (i < path.len && path.ptr[i] != '/')
			continue;
		percent_encode(out, (struct str){ path.ptr + from, i - from }, PERCENT_VALUE);
		if (i < path.len)
			buf_add_char(out, '/');
		from = i + 1;
	}
	return ERR_OK;
}

static struct str sigv4_encoded(struct arena *a, struct str s)
{
	char *p = arena_alloc_raw(a, s.len * 3 + 1, 1);

	return (struct str){ p, p ? percent_encode_to(p, s, PERCENT_VALUE) : 0 };
}

static int sigv4_by_name_and_value(const void *left, const void *right)
{
	const struct label *a = left, *b = right;
	int d = str_cmp(a->name, b->name);

	return d ? d : str_cmp(a->value, b->value);
}

/* Sorted by what is sent, not by what it means: "%2B" comes before "0". */
static enum err_code sigv4_add_query(struct buf *out, struct labels query, struct err *err)
{
	struct arena a;
	struct label *v;

	if (!query.n)
		return ERR_OK;
	arena_init(&a, 0);
	v = arena_array(&a, struct label, query.n);
	for (size_t i = 0; v && i < query.n; i++) {
		v[i] = (struct label){ sigv4_encoded(&a, query.v[i].name),
			sigv4_encoded(&a, query.v[i].value) };
		if (!v[i].name.ptr || !v[i].value.ptr)
			v = NULL;
	}
	if (!v) {
		arena_release(&a);
		return err_nomem(err, "signature");
	}
	qsort(v, query.n, sizeof(*v), sigv4_by_name_and_value);
	for (size_t i = 0; i < query.n; i++) {
		if (i)
			buf_add_char(out, '&');
		buf_add_str(out, v[i].name);
		buf_add_char(out, '=');
		buf_add_str(out, v[i].value);
	}
	arena_release(&a);
	return ERR_OK;
}

enum err_code sigv4_print_target(
	struct buf *out, struct str path, struct labels query, struct err *err)
{
	enum err_code rc;

	if ((rc = sigv4_add_path(out, path, err)))
		return rc;
	if (query.n)
		buf_add_char(out, '?');
	if ((rc = sigv4_add_query(out, query, err)))
		return rc;
	return buf_failed(out) ? err_nomem(err, "signature") : ERR_OK;
}

/* ---- headers ---- */

struct sigv4_header {
	struct str name, value;
	size_t place; /* as given: values of one name stay in this order */
};

static char sigv4_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static int sigv4_name_cmp(struct str a, struct str b)
{
	size_t n = a.len < b.len ? a.len : b.len;

	for (size_t i = 0; i < n; i++) {
		unsigned char x = (unsigned char)sigv4_lower(a.ptr[i]),
					  y = (unsigned char)sigv4_lower(b.ptr[i]);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return a.len < b.len ? -1 : a.len > b.len;
}

static int sigv4_by_name_and_place(const void *left, const void *right)
{
	const struct sigv4_header *a = left, *b = right;
	int d = sigv4_name_cmp(a->name, b->name);

	return d ? d : a->place < b->place ? -1 : 1;
}

static void sigv4_add_name(struct buf *out, struct str name)
{
	for (size_t i = 0; i < name.len; i++)
		buf_add_char(out, sigv4_lower(name.ptr[i]));
}

/* Without spaces at its ends, and with one where there are several. */
static void sigv4_add_value(struct buf *out, struct str value)
{
	value = str_trim(value);
	for (size_t i = 0; i < value.len; i++)
		if (value.ptr[i] != ' ' || value.ptr[i - 1] != ' ')
			buf_add_char(out, value.ptr[i]);
}

static enum err_code sigv4_add_headers(
	struct buf *out, struct buf *names, struct labels headers, struct err *err)
{
	struct sigv4_header *v = calloc(headers.n + 1, sizeof(*v));

	if (!v)
		return err_nomem(err, "signature");
	for (size_t i = 0; i < headers.n; i++)
		v[i] = (struct sigv4_header){ headers.v[i].name, headers.v[i].value, i };
	qsort(v, headers.n, sizeof(*v), sigv4_by_name_and_place);
	for (size_t i = 0; i < headers.n; i++) {
		if (i && sigv4_name_cmp(v[i].name, v[i - 1].name) == 0) {
			if (!buf_failed(out))
				out->len--; /* the line goes on */
			buf_add_char(out, ',');
		} else {
			if (i)
				buf_add_char(names, ';');
			sigv4_add_name(names, v[i].name);
			sigv4_add_name(out, v[i].name);
			buf_add_char(out, ':');
		}
		sigv4_add_value(out, v[i].value);
		buf_add_char(out, '\n');
	}
	free(v);
	return buf_failed(out) || buf_failed(names) ? err_nomem(err, "signature") : ERR_OK;
}

/* ---- the steps ---- */

enum err_code sigv4_canonical_request(
	struct buf *out, struct buf *signed_names, const struct sigv4_request *r, struct err *err)
{
	enum err_code rc;

	buf_add_cstr(out, r->method);
	buf_add_char(out, '\n');
	if ((rc = sigv4_add_path(out, r->path, err)))
		return rc;
	buf_add_char(out, '\n');
	if ((rc = sigv4_add_query(out, r->query, err)))
		return rc;
	buf_add_char(out, '\n');
	if ((rc = sigv4_add_headers(out, signed_names, r->headers, err)))
		return rc;
	buf_add_char(out, '\n');
	buf_add_str(out, buf_str(signed_names));
	buf_add_char(out, '\n');
	buf_add_str(out, r->payload_hash);
	return buf_failed(out) ? err_nomem(err, "signature") : ERR_OK;
}

static void sigv4_add_scope(struct buf *out, const struct sigv4_scope *s, const char *time)
{
	buf_printf(out, "%.*s/" STR_FMT "/" STR_FMT "/aws4_request", DAY_LEN, time, STR_ARG(s->region),
		STR_ARG(s->service));
}

enum err_code sigv4_string_to_sign(
	struct buf *out, const struct sigv4_scope *s, struct str canonical, struct err *err)
{
	char time[TIME_LEN + 1], hash[SIGV4_HASH_LEN + 1];
	enum err_code rc;

	if ((rc = sigv4_print_time(s->time_s, time, err)))
		return rc;
	sigv4_hash(canonical, hash);
	buf_printf(out, ALGORITHM "\n%s\n", time);
	sigv4_add_scope(out, s, time);
	buf_printf(out, "\n%s", hash);
	return buf_failed(out) ? err_nomem(err, "signature") : ERR_OK;
}

static void sigv4_hmac(unsigned char key[SHA256_DIGEST_LENGTH], struct str text)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	unsigned n = sizeof(digest);

	HMAC(EVP_sha256(), key, SHA256_DIGEST_LENGTH, (const unsigned char *)text.ptr, text.len, digest,
		&n);
	memcpy(key, digest, sizeof(digest));
}

/* The time is in range: the string to sign was made before. */
void sigv4_signature(struct str secret_key, const struct sigv4_scope *s, struct str string_to_sign,
	char out[SIGV4_HASH_LEN + 1])
{
	unsigned char key[SHA256_DIGEST_LENGTH];
	struct buf first = { 0 };
	char time[TIME_LEN + 1] = "";
	unsigned n = sizeof(key);

	memset(key, 0, sizeof(key));
	out[0] = '\0';
	buf_add_cstr(&first, "AWS4");
	buf_add_str(&first, secret_key);
	if (!buf_failed(&first) && !sigv4_print_time(s->time_s, time, NULL)) {
		HMAC(
			EVP_sha256(), first.ptr, (int)first.len, (const unsigned char *)time, DAY_LEN, key, &n);
		sigv4_hmac(key, s->region);
		sigv4_hmac(key, s->service);
		sigv4_hmac(key, STR("aws4_request"));
		sigv4_hmac(key, string_to_sign);
		sigv4_print_hex(key, sizeof(key), out);
	}
	OPENSSL_cleanse(key, sizeof(key));
	if (first.ptr)
		OPENSSL_cleanse(first.ptr, first.len);
	buf_release(&first);
}

/* ---- all of it ---- */

static enum err_code sigv4_authorization(struct arena *a, const struct sigv4_credentials *c,
	const struct sigv4_scope *s, const struct sigv4_request *r, const char *time, struct str *out,
	struct err *err)
{
	struct buf canonical = { 0 }, names = { 0 }, text = { 0 };
	char signature[SIGV4_HASH_LEN + 1];
	enum err_code rc;

	if ((rc = sigv4_canonical_request(&canonical, &names, r, err)) ||
		(rc = sigv4_string_to_sign(&text, s, buf_str(&canonical), err)))
		goto end;
	sigv4_signature(c->secret_key, s, buf_str(&text), signature);
	if (!signature[0]) {
		rc = err_nomem(err, "signature");
		goto end;
	}
	buf_clear(&text);
	buf_printf(&text, ALGORITHM " Credential=" STR_FMT "/", STR_ARG(c->access_key));
	sigv4_add_scope(&text, s, time);
	buf_printf(
		&text, ", SignedHeaders=" STR_FMT ", Signature=%s", STR_ARG(buf_str(&names)), signature);
	*out = str_dup(a, buf_str(&text));
	if (buf_failed(&text) || !out->ptr)
		rc = arena_fail(a, "signature", err);
end:
	buf_release(&canonical);
	buf_release(&names);
	buf_release(&text);
	return rc;
}

enum err_code sigv4_sign(struct arena *a, const struct sigv4_credentials *c,
	const struct sigv4_scope *s, const struct sigv4_request *r, struct labels *out, struct err *err)
{
	struct label *all = arena_array(a, struct label, r->headers.n + SIGV4_HEADERS_MAX), *made;
	struct sigv4_request whole = *r;
	char time[TIME_LEN + 1];
	enum err_code rc;
	size_t n = 0;

	if (!all)
		return arena_fail(a, "signature", err);
	if ((rc = sigv4_print_time(s->time_s, time, err)))
		return rc;
	for (size_t i = 0; i < r->headers.n; i++)
		all[i] = r->headers.v[i];
	made = all + r->headers.n;
	made[n].value = str_dup(a, str_of(time));
	made[n++].name = STR("x-amz-date");
	if (!made[0].value.ptr)
		return arena_fail(a, "signature", err);
	if (r->hash_header)
		made[n++] = (struct label){ STR("x-amz-content-sha256"), r->payload_hash };
	if (c->session_token.len)
		made[n++] = (struct label){ STR("x-amz-security-token"), c->session_token };
	whole.headers = (struct labels){ all, r->headers.n + n };
	if ((rc = sigv4_authorization(a, c, s, &whole, time, &made[n].value, err)))
		return rc;
	made[n++].name = STR("authorization");
	*out = (struct labels){ made, n };
	return ERR_OK;
}
