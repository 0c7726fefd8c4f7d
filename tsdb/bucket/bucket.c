#include "tsdb/bucket/bucket.h"

#include <assert.h>
#include <event2/event.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/net/http_config.h"
#include "tsdb/bucket/internal.h"

#define BUCKET_NAME_BYTES_MAX 255
#define WHOLE_BYTES_GUESS (64u << 20) /* of an object that is got whole: the deadline's */

/* ---- names ---- */

static bool bucket_parts_valid(struct str key)
{
	size_t from = 0;

	for (size_t i = 0; i <= key.len; i++) {
		struct str part = { key.ptr + from, i - from };

		if (i < key.len && key.ptr[i] != '/')
			continue;
		if (!part.len || str_is(part, ".") || str_is(part, ".."))
			return false;
		from = i + 1;
	}
	return true;
}

static enum err_code bucket_check_name(
	struct str key, size_t max, const char *what, struct err *err)
{
	if (key.len > max)
		return err_set(err, ERR_INVALID, "%s of %zu bytes, limit %zu", what, key.len, max);
	for (size_t i = 0; i < key.len; i++)
		if ((unsigned char)key.ptr[i] < ' ' || key.ptr[i] == '\177')
			return err_set(err, ERR_INVALID, "%s with a control character", what);
	if (!str_is_utf8(key))
		return err_set(err, ERR_INVALID, "%s is not UTF-8", what);
	if (!key.len || !bucket_parts_valid(key))
		return err_set(err, ERR_INVALID, "%s \"" STR_FMT "\" has an empty part, or \".\" or \"..\"",
			what, STR_ARG(key));
	return ERR_OK;
}

enum err_code bucket_check_key(struct str key, struct err *err)
{
	return bucket_check_name(key, BUCKET_KEY_BYTES_MAX, "key", err);
}

static enum err_code bucket_check(struct str name, struct err *err)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (!((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && !(c >= '0' && c <= '9') && c != '.' &&
			c != '-' && c != '_')
			return err_set(err, ERR_INVALID, "bucket name with a \"%c\"", c >= ' ' ? c : '?');
	}
	if (!name.len || name.len > BUCKET_NAME_BYTES_MAX || name.ptr[0] == '.')
		return err_set(err, ERR_INVALID, "a bucket name is missing, too long or begins with \".\"");
	return ERR_OK;
}

/* ---- opening ---- */

static char *bucket_lower_dup(struct arena *a, struct str s)
{
	char *p = arena_strndup(a, s.ptr, s.len);

	for (size_t i = 0; p && i < s.len; i++)
		if (p[i] >= 'A' && p[i] <= 'Z')
			p[i] = (char)(p[i] | 0x20);
	return p;
}

/* "https://HOST:PORT/BASE" into the authority, and the path before keys. */
static enum err_code bucket_set_endpoint(struct bucket *b, struct err *err)
{
	const struct bucket_config *c = &b->c;
	const char *problem = http_config_url_problem(c->endpoint);
	struct str rest = c->endpoint, base = STR("");
	char *authority, *slash, *path;

	if (problem || memchr(c->endpoint.ptr, '?', c->endpoint.len) ||
		memchr(c->endpoint.ptr, '#', c->endpoint.len) ||
		memchr(c->endpoint.ptr, '%', c->endpoint.len))
		return err_set(err, ERR_INVALID, "endpoint: %s",
			problem ? problem : "a query, a fragment or a \"%\" cannot be in it");
	b->tls = str_has_prefix_nocase(rest, STR("https://"));
	rest.ptr += b->tls ? 8 : 7;
	rest.len -= b->tls ? 8 : 7;
	while (rest.len && rest.ptr[rest.len - 1] == '/')
		rest.len--;
	slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
	if (slash) {
		base = (struct str){ slash, rest.len - (size_t)(slash - rest.ptr) };
		rest.len -= base.len;
	}
	if (!rest.len || memchr(rest.ptr, '@', rest.len))
		return err_set(err, ERR_INVALID, "endpoint: no host, or a user name in it");
	authority = arena_printf(&b->arena, STR_FMT "%s" STR_FMT,
		STR_ARG(c->virtual_host ? c->bucket : STR("")), c->virtual_host ? "." : "", STR_ARG(rest));
	authority = authority ? bucket_lower_dup(&b->arena, str_of(authority)) : NULL;
	path = arena_printf(&b->arena, STR_FMT "%s" STR_FMT, STR_ARG(base), c->virtual_host ? "" : "/",
		STR_ARG(c->virtual_host ? STR("") : c->bucket));
	if (!authority || !path)
		return arena_fail(&b->arena, "bucket", err);
	b->authority = str_of(authority);
	b->base = str_of(path);
	return ERR_OK;
}

static enum err_code bucket_set_prefix(struct bucket *b, struct err *err)
{
	struct str prefix = b->c.prefix;
	enum err_code rc;
	char *p;

	while (prefix.len && prefix.ptr[prefix.len - 1] == '/')
		prefix.len--;
	if (prefix.len && (rc = bucket_check_name(prefix, BUCKET_KEY_BYTES_MAX - 1, "prefix", err)))
		return rc;
	p = arena_printf(&b->arena, STR_FMT "%s", STR_ARG(prefix), prefix.len ? "/" : "");
	if (p)
		b->prefix = str_of(p);
	p = arena_printf(&b->arena, STR_FMT "/" STR_FMT "%s" STR_FMT, STR_ARG(b->c.endpoint),
		STR_ARG(b->c.bucket), prefix.len ? "/" : "", STR_ARG(prefix));
	if (!p || !b->prefix.ptr)
		return arena_fail(&b->arena, "bucket", err);
	b->name = str_of(p);
	return ERR_OK;
}

static void bucket_config_set_defaults(struct bucket_config *c)
{
	if (!c->region.len)
		c->region = STR("us-east-1");
	c->timeout_ns = c->timeout_ns ? c->timeout_ns : 2 * NS_PER_MIN;
	c->attempt_timeout_ns = c->attempt_timeout_ns ? c->attempt_timeout_ns : 30 * NS_PER_S;
	c->idle_timeout_ns = c->idle_timeout_ns ? c->idle_timeout_ns : 10 * NS_PER_S;
	c->attempts_max = c->attempts_max ? c->attempts_max : 8;
	c->pause_ns = c->pause_ns ? c->pause_ns : 100 * NS_PER_MS;
	c->pause_max_ns = c->pause_max_ns ? c->pause_max_ns : 10 * NS_PER_S;
	c->hedge_min_ns = c->hedge_min_ns ? c->hedge_min_ns : 10 * NS_PER_MS;
	c->connections_max = c->connections_max ? c->connections_max : 64;
	c->object_bytes_max = c->object_bytes_max ? c->object_bytes_max : (size_t)1 << 30;
	c->part_bytes = c->part_bytes ? c->part_bytes : (size_t)64 << 20;
}

static enum err_code bucket_copy_config(
	struct bucket *b, const struct bucket_config *c, struct err *err)
{
	struct bucket_credentials_config *k = &b->c.credentials;
	struct str *const texts[] = { &b->c.endpoint, &b->c.bucket, &b->c.prefix, &b->c.region,
		&k->access_key, &k->secret_key, &k->session_token, &k->access_key_file, &k->secret_key_file,
		&k->session_token_file, &k->file, &k->profile, &k->role_arn, &k->session_name,
		&k->token_file, &k->sts_endpoint };
	enum err_code rc;

	b->c = *c;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		*texts[i] = str_dup(&b->arena, texts[i]->ptr ? *texts[i] : STR(""));
		if (!texts[i]->ptr)
			return arena_fail(&b->arena, "bucket", err);
	}
	if ((rc = http_config_dup(&b->arena, &c->http, &b->c.http, err)))
		return rc;
	b->c.http.follow_redirects = false; /* a signature is for one host */
	bucket_config_set_defaults(&b->c);
	if ((rc = bucket_check(b->c.bucket, err)) || (rc = bucket_set_endpoint(b, err)))
		return rc;
	return bucket_set_prefix(b, err);
}

static void bucket_cancel_later(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd;
	(void)what;
	exchange_cancel(ctx);
}

struct bucket_opening {
	struct bucket *b;
	enum err_code rc;
	struct err *err;
};

static void bucket_open_client(void *ctx)
{
	struct bucket_opening *o = ctx;
	const struct http_client_options options = {
		.base = loop_base(o->b->loop), .connections_max = o->b->c.connections_max, .quick_ack = true
	};

	o->b->cancel_timer = evtimer_new(loop_base(o->b->loop), bucket_cancel_later, o->b);
	o->rc = o->b->cancel_timer ? http_client_open(&options, &o->b->client, o->err) :
								 err_nomem(o->err, "timer");
}

static void bucket_close_client(void *ctx)
{
	struct bucket *b = ctx;

	http_client_close(b->client);
	if (b->cancel_timer)
		event_free(b->cancel_timer);
}

void bucket_close(struct bucket *b)
{
	if (!b)
		return;
	credentials_close(b->credentials);
	if (b->loop)
		loop_call(b->loop, bucket_close_client, b);
	loop_close(b->loop);
	hedging_release(&b->hedging);
	mutex_destroy(&b->lock);
	cond_destroy(&b->canceled);
	arena_release(&b->arena);
	free(b);
}

enum err_code bucket_open(const struct bucket_config *c, struct bucket **out, struct err *err)
{
	struct bucket *b = calloc(1, sizeof(*b));
	struct bucket_opening o = { .b = b, .err = err };
	enum err_code rc;

	if (!b)
		return err_nomem(err, "bucket");
	mutex_init(&b->lock);
	cond_init(&b->canceled);
	b->cancel_ns = INT64_MAX;
	hedging_init(&b->hedging);
	arena_init(&b->arena, 0);
	if ((rc = bucket_copy_config(b, c, err)) || (rc = loop_open("bucket", &b->loop, err)))
		goto fail;
	loop_call(b->loop, bucket_open_client, &o);
	if ((rc = o.rc) || (rc = credentials_open(b, &b->c.credentials, err)))
		goto fail;
	*out = b;
	return ERR_OK;
fail:
	bucket_close(b);
	return err_wrap(err, rc, "bucket");
}

enum err_code bucket_config_check(const struct bucket_config *c, struct err *err)
{
	struct bucket *b = calloc(1, sizeof(*b));
	enum err_code rc;

	if (!b)
		return err_nomem(err, "bucket");
	arena_init(&b->arena, 0);
	rc = bucket_copy_config(b, c, err);
	arena_release(&b->arena);
	free(b);
	return rc;
}

void bucket_cancel(struct bucket *b, int64_t at_ns)
{
	mutex_lock(&b->lock);
	b->cancel_ns = at_ns;
	cond_broadcast(&b->canceled);
	mutex_unlock(&b->lock);
	loop_call(b->loop, exchange_cancel, b);
}

struct str bucket_name(const struct bucket *b)
{
	return b->name;
}

/* ---- what answers say of an object ---- */

static void bucket_copy_etag(struct str etag, char out[BUCKET_ETAG_BYTES_MAX])
{
	size_t n = etag.len < BUCKET_ETAG_BYTES_MAX ? etag.len : 0; /* too long: counts as none */

	memcpy(out, n ? etag.ptr : "", n);
	out[n] = '\0';
}

/* Takes only a hash of the form that put stores. */
static void bucket_copy_hash(struct str hash, char out[BUCKET_HASH_LEN + 1])
{
	bool fine = hash.len == BUCKET_HASH_LEN;

	for (size_t i = 0; i < hash.len && fine; i++)
		fine = (hash.ptr[i] >= '0' && hash.ptr[i] <= '9') ||
			(hash.ptr[i] >= 'a' && hash.ptr[i] <= 'f');
	memcpy(out, fine ? hash.ptr : "", fine ? hash.len : 0);
	out[fine ? hash.len : 0] = '\0';
}

/* "bytes 0-9/120": the first byte, the last one, the whole. */
static bool bucket_read_content_range(struct str s, uint64_t *from, uint64_t *last, uint64_t *whole)
{
	const char *dash, *slash;
	struct str a, b, c;

	if (!str_has_prefix(s, STR("bytes ")))
		return false;
	s.ptr += 6;
	s.len -= 6;
	dash = memchr(s.ptr, '-', s.len);
	slash = memchr(s.ptr, '/', s.len);
	if (!dash || !slash || dash > slash)
		return false;
	a = (struct str){ s.ptr, (size_t)(dash - s.ptr) };
	b = (struct str){ dash + 1, (size_t)(slash - dash) - 1 };
	c = (struct str){ slash + 1, s.len - (size_t)(slash - s.ptr) - 1 };
	return str_to_u64(a, from) && str_to_u64(b, last) && str_to_u64(c, whole) && *from <= *last &&
		*last < *whole;
}

void bucket_read_info(const struct bucket_answer *a, struct bucket_info *out)
{
	uint64_t from, last, whole;

	*out = (struct bucket_info){ 0 };
	bucket_copy_etag(answer_header(a, "etag"), out->etag);
	bucket_copy_hash(answer_header(a, META_HASH), out->hash);
	answer_time_ns(answer_header(a, "last-modified"), &out->modified_ns);
	if (bucket_read_content_range(answer_header(a, "content-range"), &from, &last, &whole))
		out->bytes = whole;
	else if (!str_to_u64(answer_header(a, "content-length"), &out->bytes))
		out->bytes = a->body.len;
}

bool etag_is_md5_of(struct str etag, struct str bytes)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	char want[2 * 16 + 3];
	unsigned n = 0;

	if (EVP_Digest(bytes.ptr, bytes.len, digest, &n, EVP_md5(), NULL) != 1 || n != 16)
		return false;
	for (unsigned i = 0; i < n; i++)
		snprintf(want + 1 + 2 * i, 3, "%02x", digest[i]);
	want[0] = want[33] = '"';
	want[34] = '\0';
	if (etag.len == 32) /* a store that leaves the quotes out */
		return memcmp(etag.ptr, want + 1, 32) == 0;
	return str_is(etag, want);
}

/* ---- get ---- */

struct bucket_range {
	uint64_t offset, len;
};

static bool bucket_range_is_whole(const struct bucket_range *r)
{
	return !r->offset && r->len == BUCKET_TO_END;
}

static enum err_code bucket_check_whole(
	struct bucket *b, const struct bucket_answer *a, struct err *err)
{
	struct str hash = answer_header(a, META_HASH), etag = answer_header(a, "etag");
	struct str sse = answer_header(a, "x-amz-server-side-encryption");
	char got[SIGV4_HASH_LEN + 1];

	if (hash.len) {
		sigv4_hash(buf_str(&a->body), got);
		if (!str_is(hash, got))
			return err_set(err, ERR_CORRUPT, "its SHA-256 is not that of what was put");
		return ERR_OK;
	}
	/* ETags are MD5 if puts have shown it, but not of parts, nor of what a key encrypts. */
	if (b->etag_kind != ETAG_MD5 || (etag.len != 32 && etag.len != 34) ||
		(sse.len && !str_is(sse, "AES256")) ||
		answer_header(a, "x-amz-server-side-encryption-customer-algorithm").len)
		return ERR_OK;
	if (!etag_is_md5_of(etag, buf_str(&a->body)))
		return err_set(err, ERR_CORRUPT, "its MD5 is not its ETag");
	return ERR_OK;
}

static enum err_code bucket_check_range(
	const struct bucket_answer *a, const struct bucket_range *r, struct err *err)
{
	uint64_t from, last, whole, want;

	if (!bucket_read_content_range(answer_header(a, "content-range"), &from, &last, &whole))
		return err_set(err, ERR_CORRUPT, "a range without a Content-Range that is one");
	want = r->len - 1 < whole - from - 1 ? r->len - 1 : whole - from - 1;
	if (from != r->offset || last - from != want || a->body.len != want + 1)
		return err_set(err, ERR_CORRUPT,
			"asked for %" PRIu64 " bytes from %" PRIu64 " on, got %zu of %" PRIu64 "-%" PRIu64
			"/%" PRIu64,
			r->len, r->offset, a->body.len, from, last, whole);
	return ERR_OK;
}

static enum err_code bucket_check_get(struct bucket *b, struct bucket_call *c, struct err *err)
{
	const struct bucket_range *r = c->ctx;
	const struct bucket_answer *a = &c->answer;
	uint64_t said;

	if (a->status == 206 && !bucket_range_is_whole(r))
		return bucket_check_range(a, r, err);
	if (a->status != 200)
		return err_set(err, ERR_INVALID, "the store answers %d to a get", a->status);
	/* Without a length the body ends with the connection, so a cut would not be seen. */
	if (str_to_u64(answer_header(a, "content-length"), &said) ?
			said != a->body.len :
			!answer_header(a, "transfer-encoding").len)
		return err_set(err, ERR_CORRUPT, "its length is not known, or is not %zu", a->body.len);
	if (!bucket_range_is_whole(r))
		return err_set(err, ERR_UNSUPPORTED, "the store ignores ranges");
	return bucket_check_whole(b, a, err);
}

enum err_code bucket_get(struct bucket *b, struct str key, uint64_t offset, uint64_t len,
	struct buf *out, struct bucket_info *info, struct err *err)
{
	struct bucket_range r = { offset, len };
	struct bucket_call c = { .operation = "get",
		.right = "s3:GetObject",
		.method = "GET",
		.key = key,
		.body_max = len < b->c.object_bytes_max ? (size_t)len : b->c.object_bytes_max,
		.bytes = len == BUCKET_TO_END ? WHOLE_BYTES_GUESS : len,
		.hedge = true,
		.hedge_bytes = len == BUCKET_TO_END ? 0 : len,
		.check = bucket_check_get,
		.ctx = &r };
	char range[64];
	enum err_code rc;

	assert(len && (len == BUCKET_TO_END || offset <= UINT64_MAX - len));
	if ((rc = bucket_check_key(key, err)))
		return rc;
	if (len != BUCKET_TO_END && len > b->c.object_bytes_max)
		return err_set(
			err, ERR_LIMIT, "a range of %" PRIu64 " bytes, limit %zu", len, b->c.object_bytes_max);
	if (c.body_max < ANSWER_BYTES_MAX / 256) /* room for an error's text */
		c.body_max = ANSWER_BYTES_MAX / 256;
	if (len != BUCKET_TO_END)
		snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64, offset, offset + len - 1);
	else
		snprintf(range, sizeof(range), "bytes=%" PRIu64 "-", offset);
	if (!bucket_range_is_whole(&r))
		call_header(&c, "range", str_of(range));
	if (!(rc = bucket_call(b, &c, err))) {
		if (info)
			bucket_read_info(&c.answer, info);
		if (!out->len && !out->cap) { /* large ones are not copied */
			*out = c.answer.body;
			c.answer.body = (struct buf){ 0 };
		} else {
			buf_add_str(out, buf_str(&c.answer.body));
		}
		if (buf_failed(out))
			rc = err_nomem(err, "object");
	}
	answer_release(&c.answer);
	return rc;
}

/* ---- head, delete ---- */

enum err_code bucket_head(
	struct bucket *b, struct str key, struct bucket_info *out, struct err *err)
{
	struct bucket_call c = { .operation = "head",
		.right = "s3:GetObject, or s3:ListBucket if there is no such object",
		.method = "HEAD",
		.key = key };
	enum err_code rc;

	if ((rc = bucket_check_key(key, err)))
		return rc;
	if (!(rc = bucket_call(b, &c, err)))
		bucket_read_info(&c.answer, out);
	answer_release(&c.answer);
	return rc;
}

enum err_code bucket_delete(struct bucket *b, struct str key, struct err *err)
{
	struct bucket_call c = {
		.operation = "delete", .right = "s3:DeleteObject", .method = "DELETE", .key = key
	};
	enum err_code rc;

	if ((rc = bucket_check_key(key, err)))
		return rc;
	rc = bucket_call(b, &c, err);
	if (rc == ERR_NOT_FOUND)
		rc = ERR_OK;
	answer_release(&c.answer);
	return rc;
}
