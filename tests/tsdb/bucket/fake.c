#include "tests/tsdb/bucket/fake.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/net/percent.h"

#define ETAG_LEN 34

struct reply {
	int status;
	struct buf headers, body;
	bool head_only;
	uint64_t length; /* of a HEAD's object */
};

static int64_t fake_now_s(const struct fake *f)
{
	return clock_now_ns() / NS_PER_S + f->ahead_s;
}

static bool is(struct str s, const char *text)
{
	return str_is(s, text);
}

static void refuse(struct reply *r, int status, const char *code)
{
	r->status = status;
	buf_clear(&r->body);
	buf_printf(&r->body,
		"<?xml version=\"1.0\"?>\n<Error><Code>%s</Code><Message>a &amp; b</Message></Error>",
		code);
}

/* ---- objects ---- */

static void set_etag(struct fake *f, struct fake_object *o)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned n;

	EVP_Digest(o->bytes.ptr ? o->bytes.ptr : "", o->bytes.len, digest, &n,
		f->other_etags ? EVP_sha1() : EVP_md5(), NULL);
	o->etag[0] = '"';
	for (unsigned i = 0; i < 16; i++)
		snprintf(o->etag + 1 + 2 * i, 3, "%02x", digest[i]);
	memcpy(o->etag + 33, "\"", 2);
}

static struct fake_object *find(struct fake *f, struct str key)
{
	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++)
		if (f->objects[i].used && str_eq(buf_str(&f->objects[i].key), key))
			return &f->objects[i];
	return NULL;
}

struct fake_object *fake_find(struct fake *f, const char *key)
{
	struct fake_object *o;

	mutex_lock(&f->lock);
	o = find(f, str_of(key));
	mutex_unlock(&f->lock);
	return o;
}

static struct fake_object *put(struct fake *f, struct str key, struct str bytes)
{
	struct fake_object *o = find(f, key);

	for (size_t i = 0; !o && i < FAKE_OBJECTS_MAX; i++)
		if (!f->objects[i].used)
			o = &f->objects[i];
	if (!o)
		abort();
	o->used = true;
	o->put[0] = o->hash[0] = '\0';
	buf_clear(&o->key);
	buf_add_str(&o->key, key);
	buf_clear(&o->bytes);
	buf_add_str(&o->bytes, bytes);
	set_etag(f, o);
	return o;
}

void fake_put(struct fake *f, const char *key, struct str bytes)
{
	mutex_lock(&f->lock);
	put(f, str_of(key), bytes);
	mutex_unlock(&f->lock);
}

static void copy_meta(const struct fake *f, const struct fake_request *q, struct fake_object *o)
{
	if (f->no_meta)
		return;
	snprintf(o->put, sizeof(o->put), STR_FMT, STR_ARG(fake_header(q, "x-amz-meta-put")));
	snprintf(o->hash, sizeof(o->hash), STR_FMT, STR_ARG(fake_header(q, "x-amz-meta-sha256")));
}

/* ---- requests on objects ---- */

/* etag: with its quotes */
static bool bare(struct str match, const char *etag)
{
	return match.len == ETAG_LEN - 2 && memcmp(match.ptr, etag + 1, match.len) == 0;
}

static void on_put(struct fake *f, const struct fake_request *q, struct str key, struct reply *r)
{
	struct str absent = fake_header(q, "if-none-match"), match = fake_header(q, "if-match");
	struct fake_object *o = find(f, key);

	if (!f->ignores_conditions && match.len && !o) {
		refuse(r, 404, "NoSuchKey");
	} else if (!f->ignores_conditions &&
		((f->bare_etags && match.len && !bare(match, o->etag)) || (absent.len && o) ||
			(!f->bare_etags && match.len && !is(match, o->etag)))) {
		refuse(r, 412, "PreconditionFailed");
	} else {
		o = put(f, key, q->body);
		copy_meta(f, q, o);
		buf_printf(&r->headers, "ETag: %s\r\n", o->etag);
	}
}

static void on_get(struct fake *f, const struct fake_request *q, struct str key, struct reply *r)
{
	const struct fake_object *o = find(f, key);
	struct str range = fake_header(q, "range");
	unsigned long long from = 0, last;
	char text[64];
	int n;

	r->head_only = is(q->method, "HEAD");
	if (!o) {
		refuse(r, 404, "NoSuchKey");
		return;
	}
	last = o->bytes.len - 1;
	snprintf(text, sizeof(text), STR_FMT, STR_ARG(range));
	n = f->ignores_ranges ? 0 : sscanf(text, "bytes=%llu-%llu", &from, &last);
	if (n > 0 && from >= o->bytes.len) {
		refuse(r, 416, "InvalidRange");
		return;
	}
	if (last >= o->bytes.len)
		last = o->bytes.len - 1;
	buf_printf(
		&r->headers, "ETag: %s\r\nLast-Modified: Mon, 23 Nov 2026 01:02:03 GMT\r\n", o->etag);
	if (o->put[0])
		buf_printf(&r->headers, "x-amz-meta-put: %s\r\n", o->put);
	if (o->hash[0])
		buf_printf(&r->headers, "x-amz-meta-sha256: %s\r\n", o->hash);
	if (n > 0) {
		r->status = 206;
		buf_printf(&r->headers, "Content-Range: bytes %llu-%llu/%zu\r\n", from, last, o->bytes.len);
	}
	buf_add(&r->body, o->bytes.ptr ? o->bytes.ptr + from : "", o->bytes.len ? last - from + 1 : 0);
}

static void on_delete(struct fake *f, struct str key, struct reply *r)
{
	struct fake_object *o = find(f, key);

	if (o)
		o->used = false;
	r->status = 204;
}

/* ---- lists ---- */

static struct str param(const struct fake_request *q, const char *name, char *to, size_t size)
{
	char want[64];
	struct str rest = q->query;

	snprintf(want, sizeof(want), "%s=", name);
	to[0] = '\0';
	while (rest.len) {
		const char *end = memchr(rest.ptr, '&', rest.len);
		struct str pair = { rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len };

		rest.ptr += pair.len + (end != NULL);
		rest.len -= pair.len + (end != NULL);
		if (!str_has_prefix(pair, str_of(want)) || pair.len - strlen(want) >= size)
			continue;
		pair.ptr += strlen(want);
		pair.len -= strlen(want);
		return (struct str){ to, percent_decode(to, pair) };
	}
	return STR("");
}

/* The first key behind `after`; NULL: none. */
static struct fake_object *next_object(struct fake *f, struct str after)
{
	struct fake_object *best = NULL;

	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++) {
		struct fake_object *o = &f->objects[i];

		if (o->used && str_cmp(buf_str(&o->key), after) > 0 &&
			(!best || str_cmp(buf_str(&o->key), buf_str(&best->key)) < 0))
			best = o;
	}
	return best;
}

static void add_escaped(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (strchr("&<>\"", s.ptr[i]))
			buf_printf(out, "&#%d;", s.ptr[i]);
		else
			buf_add_char(out, s.ptr[i]);
}

static void add_prefix(struct reply *r, struct str common)
{
	buf_add_cstr(&r->body, "<CommonPrefixes><Prefix>");
	add_escaped(&r->body, common);
	buf_add_cstr(&r->body, "</Prefix></CommonPrefixes>");
}

static void add_object(struct reply *r, const struct fake_object *o)
{
	buf_add_cstr(&r->body, "<Contents><Key>");
	add_escaped(&r->body, buf_str(&o->key));
	buf_printf(&r->body, "</Key><LastModified>2026-11-23T01:02:03.000Z</LastModified><ETag>");
	add_escaped(&r->body, str_of(o->etag));
	buf_printf(&r->body, "</ETag><Size>%zu</Size></Contents>", o->bytes.len);
}

static void on_list(struct fake *f, const struct fake_request *q, struct reply *r)
{
	char prefix_text[600], delimiter_text[8], after_text[600], token_text[600];
	struct str prefix = param(q, "prefix", prefix_text, sizeof(prefix_text)),
			   delimiter = param(q, "delimiter", delimiter_text, sizeof(delimiter_text)),
			   at = param(q, "continuation-token", token_text, sizeof(token_text));
	unsigned n = 0, max = f->page_objects ? f->page_objects : 1000;
	struct buf last = { 0 };
	struct fake_object *o;

	if (!at.len)
		at = param(q, "start-after", after_text, sizeof(after_text));
	buf_add_str(&last, at);
	buf_add_cstr(&r->body,
		"<?xml version=\"1.0\"?><ListBucketResult "
		"xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>");
	while (n < max && (o = next_object(f, buf_str(&last)))) {
		struct str key = buf_str(&o->key), rest = key;
		ptrdiff_t end = -1;

		buf_clear(&last);
		buf_add_str(&last, key);
		if (!str_has_prefix(key, prefix))
			continue;
		rest.ptr += prefix.len;
		rest.len -= prefix.len;
		if (delimiter.len)
			end = str_find(rest, delimiter);
		if (end >= 0) {
			key.len = prefix.len + (size_t)end + 1;
			add_prefix(r, key);
			last.len = key.len; /* the rest of the folder is behind it */
			buf_add_cstr(&last, "\xf4\x8f\xbf\xbf"); /* U+10FFFF */
		} else {
			add_object(r, o);
		}
		n++;
	}
	o = next_object(f, buf_str(&last));
	buf_printf(&r->body, "<IsTruncated>%s</IsTruncated>", o ? "true" : "false");
	if (o) {
		buf_add_cstr(&r->body, "<NextContinuationToken>");
		add_escaped(&r->body, buf_str(&last));
		buf_add_cstr(&r->body, "</NextContinuationToken>");
	}
	buf_add_cstr(&r->body, "</ListBucketResult>");
	buf_release(&last);
}

/* ---- uploads in parts ---- */

static void clear_parts(struct fake *f)
{
	for (size_t i = 0; i < FAKE_PARTS_MAX; i++) {
		buf_release(&f->parts[i].bytes);
		f->parts[i].used = false;
	}
	f->upload = false;
}

static void on_part(struct fake *f, const struct fake_request *q, unsigned number, struct reply *r)
{
	struct fake_object *o = number < FAKE_PARTS_MAX ? &f->parts[number] : NULL;

	if (!f->upload || !o) {
		refuse(r, 404, "NoSuchUpload");
		return;
	}
	o->used = true;
	buf_clear(&o->bytes);
	buf_add_str(&o->bytes, q->body);
	set_etag(f, o);
	buf_printf(&r->headers, "ETag: %s\r\n", o->etag);
}

static void on_complete(
	struct fake *f, const struct fake_request *q, struct str key, struct reply *r)
{
	struct buf whole = { 0 };
	struct fake_object *o;

	if (!f->upload) {
		refuse(r, 404, "NoSuchUpload");
		return;
	}
	for (unsigned i = 1; i < FAKE_PARTS_MAX && f->parts[i].used; i++) {
		char want[160];

		snprintf(want, sizeof(want),
			"<Part><PartNumber>%u</PartNumber><ETag>&#34;%.32s&#34;</ETag></Part>", i,
			f->parts[i].etag + 1);
		if (str_find(q->body, str_of(want)) < 0)
			refuse(r, 400, "InvalidPart");
		buf_add_str(&whole, buf_str(&f->parts[i].bytes));
	}
	if (r->status == 200) {
		o = put(f, key, buf_str(&whole));
		snprintf(o->put, sizeof(o->put), "%s", f->upload_put);
		snprintf(o->hash, sizeof(o->hash), "%s", f->upload_hash);
		snprintf(o->etag, sizeof(o->etag), "\"0123456789abcdef0123456789abcdef-3\"");
		buf_add_cstr(
			&r->body, "\n<CompleteMultipartUploadResult><Key/></CompleteMultipartUploadResult>");
		clear_parts(f);
	}
	buf_release(&whole);
}

static void on_upload(struct fake *f, const struct fake_request *q, struct str key, struct reply *r)
{
	char number[16];

	if (is(q->method, "POST") && str_find(q->query, STR("uploads")) == 0) {
		clear_parts(f);
		f->upload = true;
		f->uploads++;
		snprintf(f->upload_put, sizeof(f->upload_put), STR_FMT,
			STR_ARG(fake_header(q, "x-amz-meta-put")));
		snprintf(f->upload_hash, sizeof(f->upload_hash), STR_FMT,
			STR_ARG(fake_header(q, "x-amz-meta-sha256")));
		buf_add_cstr(&r->body,
			"<InitiateMultipartUploadResult><UploadId>u+/=1</UploadId>"
			"</InitiateMultipartUploadResult>");
	} else if (str_find(q->query, STR("uploadId=u%2B%2F%3D1")) < 0) {
		refuse(r, 404, "NoSuchUpload");
	} else if (is(q->method, "PUT")) {
		param(q, "partNumber", number, sizeof(number));
		on_part(f, q, (unsigned)strtoul(number, NULL, 10), r);
	} else if (is(q->method, "POST")) {
		on_complete(f, q, key, r);
	} else {
		f->aborts++;
		clear_parts(f);
		r->status = 204;
	}
}

/* ---- who asks ---- */

static void on_token_service(struct fake *f, const struct fake_request *q, struct reply *r)
{
	struct str token = q->body;
	ptrdiff_t at = str_find(token, STR("&WebIdentityToken="));
	struct buf until = { 0 };

	token.ptr += at < 0 ? 0 : at + 18;
	token.len -= at < 0 ? token.len : (size_t)at + 18;
	snprintf(f->web_token, sizeof(f->web_token), STR_FMT, STR_ARG(token));
	f->tokens++;
	time_print_rfc3339(&until, (clock_now_ns() / NS_PER_S + f->token_life_s) * NS_PER_S);
	buf_printf(&r->body,
		"<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
		"<SessionToken>t%u</SessionToken><SecretAccessKey>s%u</SecretAccessKey>"
		"<Expiration>" STR_FMT "</Expiration><AccessKeyId>ASIA%u</AccessKeyId>"
		"</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
		f->tokens, f->tokens, STR_ARG(buf_str(&until)), f->tokens);
	buf_release(&until);
}

static const char *check_keys(struct fake *f, const struct fake_request *q)
{
	char key[64], secret[64] = "SECRET", token[64] = "";
	unsigned n;

	snprintf(key, sizeof(key), STR_FMT, STR_ARG(fake_access_key(q)));
	if (sscanf(key, "ASIA%u", &n) == 1) {
		if (n < f->tokens_valid_from)
			return "ExpiredToken";
		snprintf(secret, sizeof(secret), "s%u", n);
		snprintf(token, sizeof(token), "t%u", n);
	} else if (strcmp(key, "AK") != 0) {
		return "InvalidAccessKeyId";
	}
	return fake_check_signature(q, fake_now_s(f), secret, token);
}

/* ---- requests ---- */

static bool parse(struct str bytes, struct fake_request *q)
{
	ptrdiff_t head = str_find(bytes, STR("\r\n\r\n"));
	const char *space = memchr(bytes.ptr, ' ', bytes.len), *end, *query;

	if (head < 0 || !space ||
		!(end = memchr(space + 1, ' ', bytes.len - (size_t)(space - bytes.ptr) - 1)))
		return false;
	query = memchr(space + 1, '?', (size_t)(end - space) - 1);
	q->method = (struct str){ bytes.ptr, (size_t)(space - bytes.ptr) };
	q->path = (struct str){ space + 1, (size_t)((query ? query : end) - space) - 1 };
	q->query = query ? (struct str){ query + 1, (size_t)(end - query) - 1 } : STR("");
	q->head = (struct str){ bytes.ptr, (size_t)head + 2 };
	q->body = (struct str){ bytes.ptr + head + 4, bytes.len - (size_t)head - 4 };
	return true;
}

static void answer(struct fake *f, const struct fake_request *q, struct reply *r)
{
	char path[2048];
	size_t n = percent_decode(path, q->path.len < sizeof(path) ? q->path : STR("/"));
	struct str key = { path, n };
	const char *problem;

	if (is(q->method, "POST") && str_has_prefix(q->body, STR("Action="))) {
		on_token_service(f, q, r);
		return;
	}
	if ((problem = check_keys(f, q))) {
		f->refused++;
		refuse(r, strcmp(problem, "ExpiredToken") == 0 ? 400 : 403, problem);
		return;
	}
	if (!str_has_prefix(key, STR("/b")) || (key.len > 2 && key.ptr[2] != '/')) {
		refuse(r, 404, "NoSuchBucket");
		return;
	}
	key.ptr += key.len > 2 ? 3 : 2;
	key.len -= key.len > 2 ? 3 : 2;
	if (!key.len)
		on_list(f, q, r);
	else if (str_find(q->query, STR("upload")) >= 0)
		on_upload(f, q, key, r);
	else if (is(q->method, "PUT"))
		on_put(f, q, key, r);
	else if (is(q->method, "DELETE"))
		on_delete(f, key, r);
	else
		on_get(f, q, key, r);
}

static struct fake_fault take_fault(struct fake *f, struct str request)
{
	struct str line = { request.ptr, (size_t)str_find(request, STR("\r\n")) };

	if (f->limited && !f->left)
		return (struct fake_fault){ FAULT_RESET };
	if (f->limited && !--f->left && f->last_is_done)
		return (struct fake_fault){ FAULT_RESET_LATER };
	for (size_t i = 0; i < FAKE_FAULTS_MAX; i++) {
		struct fake_fault *v = &f->faults[i];

		if (v->times && str_find(line, str_of(v->line)) >= 0) {
			v->times--;
			return *v;
		}
	}
	return (struct fake_fault){ FAULT_NONE };
}

static bool send_reply(struct fake *f, struct peer *p, const struct reply *r, struct fake_fault v)
{
	time_t now = (time_t)fake_now_s(f);
	struct buf out = { 0 };
	char date[64];
	struct tm tm;
	bool ok;

	strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
	buf_printf(&out, "HTTP/1.1 %d X\r\nDate: %s\r\n%s", r->status, date, v.header ? v.header : "");
	buf_add_str(&out, buf_str(&r->headers));
	if (r->status != 204)
		buf_printf(&out, "Content-Length: %zu\r\n", r->body.len);
	buf_add_cstr(&out, "\r\n");
	if (!r->head_only && r->status != 204) {
		buf_add_str(&out, buf_str(&r->body));
		if (v.kind == FAULT_CUT)
			out.len -= (r->body.len + 1) / 2;
		if (v.kind == FAULT_DAMAGE)
			out.ptr[out.len - 1] ^= 1;
	}
	ok = peer_write(p, buf_str(&out)) && v.kind != FAULT_CUT;
	buf_release(&out);
	return ok;
}

/* False: the connection ends. */
static bool serve(struct fake *f, struct peer *p)
{
	struct reply r = { .status = 200 };
	struct fake_request q;
	struct fake_fault v;
	bool more;

	if (!parse(buf_str(&p->request), &q))
		return false;
	atomic_fetch_add(&f->requests, 1);
	mutex_lock(&f->lock);
	snprintf(f->last_head, sizeof(f->last_head), STR_FMT, STR_ARG(q.head));
	v = take_fault(f, buf_str(&p->request));
	if (v.kind == FAULT_STATUS)
		refuse(&r, v.status, v.code);
	else if (v.kind != FAULT_RESET && v.kind != FAULT_STALL)
		answer(f, &q, &r);
	r.head_only = is(q.method, "HEAD");
	mutex_unlock(&f->lock);
	while (v.kind == FAULT_STALL && !peer_gone(p) && !atomic_load(&f->server.stopping))
		sleep_ms(1);
	if (v.kind == FAULT_RESET || v.kind == FAULT_RESET_LATER)
		peer_reset(p);
	more = v.kind != FAULT_RESET && v.kind != FAULT_RESET_LATER && v.kind != FAULT_STALL &&
		send_reply(f, p, &r, v);
	buf_release(&r.headers);
	buf_release(&r.body);
	return more;
}

static void run(struct peer *p, void *ctx)
{
	while (peer_read_request(p) && serve(ctx, p))
		;
}

bool fake_start(struct fake *f, SSL_CTX *tls)
{
	memset(f, 0, sizeof(*f));
	mutex_init(&f->lock);
	f->token_life_s = 3600;
	return http_server_start(&f->server, run, f, tls);
}

void fake_stop(struct fake *f)
{
	http_server_stop(&f->server);
	clear_parts(f);
	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++) {
		buf_release(&f->objects[i].key);
		buf_release(&f->objects[i].bytes);
	}
	mutex_destroy(&f->lock);
}

void fake_fault(struct fake *f, struct fake_fault fault)
{
	mutex_lock(&f->lock);
	for (size_t i = 0; i < FAKE_FAULTS_MAX; i++)
		if (!f->faults[i].times) {
			f->faults[i] = fault;
			break;
		}
	mutex_unlock(&f->lock);
}

void fake_forget_faults(struct fake *f)
{
	mutex_lock(&f->lock);
	memset(f->faults, 0, sizeof(f->faults));
	mutex_unlock(&f->lock);
}

struct bucket_config fake_config(const struct fake *f)
{
	static char endpoint[64];

	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", f->server.port);
	return (struct bucket_config){ .endpoint = str_of(endpoint),
		.bucket = STR("b"),
			.prefix = STR("p/q/"),
				.credentials = { .kind = BUCKET_STATIC,
					.access_key = STR("AK"), .secret_key = STR("SECRET") },
					.attempt_timeout_ns = 2 * NS_PER_MIN, .idle_timeout_ns = 2 * NS_PER_MIN,
					.pause_ns = NS_PER_MS, .pause_max_ns = 20 * NS_PER_MS, .hedge_min_ns = -1 };
}
