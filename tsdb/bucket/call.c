/* A call: each attempt is signed anew, since signatures age; pauses grow, with full jitter. */
#include <openssl/rand.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/self/starting.h"
#include "tsdb/bucket/internal.h"

METRIC_COUNTER(retries_total, "epimetheus_bucket_retries_total",
	"Requests to the object store that were sent again.", "operation");

void call_query(struct bucket_call *c, const char *name, struct str value)
{
	c->query[c->query_n++] = (struct label){ str_of(name), value };
}

void call_header(struct bucket_call *c, const char *name, struct str value)
{
	c->headers[c->headers_n++] = (struct label){ str_of(name), value };
}

/* ---- one attempt ---- */

static enum err_code bucket_add_path(struct bucket *b, const struct bucket_call *c, struct buf *out)
{
	buf_add_str(out, b->base);
	if (c->key.len) {
		buf_add_char(out, '/');
		buf_add_str(out, b->prefix);
		buf_add_str(out, c->key);
	} else if (!out->len) {
		buf_add_char(out, '/');
	}
	return buf_failed(out) ? ERR_NOMEM : ERR_OK;
}

/* The URL and all headers of a signed request; *serial: of the credentials. */
static enum err_code bucket_sign(struct bucket *b, struct bucket_call *c, struct arena *a,
	struct bucket_exchange *e, uint64_t *serial, struct err *err)
{
	const struct sigv4_scope scope = { b->c.region, STR("s3"), clock_system_ns() / NS_PER_S };
	char hash[SIGV4_HASH_LEN + 1];
	struct sigv4_credentials keys;
	struct sigv4_request r = {
		.method = c->method, .query = { c->query, c->query_n }, .hash_header = true
	};
	struct buf path = { 0 }, url = { 0 };
	struct label *v = arena_array(a, struct label, c->headers_n + SIGV4_HEADERS_MAX + 1);
	struct labels made;
	enum err_code rc;

	if (!v)
		return arena_fail(a, "request", err);
	if ((rc = credentials_get(b, a, &keys, serial, err)))
		return rc;
	v[0] = (struct label){ STR("host"), b->authority };
	for (size_t i = 0; i < c->headers_n; i++)
		v[i + 1] = c->headers[i];
	r.headers = (struct labels){ v, c->headers_n + 1 };
	sigv4_hash(STR(""), hash);
	r.payload_hash = str_dup(a, str_of(c->payload_hash ? c->payload_hash : hash));
	if (!r.payload_hash.ptr)
		return arena_fail(a, "request", err);
	buf_printf(&url, "http%s://" STR_FMT, b->tls ? "s" : "", STR_ARG(b->authority));
	if (bucket_add_path(b, c, &path)) {
		rc = err_nomem(err, "request");
		goto end;
	}
	r.path = buf_str(&path);
	if ((rc = sigv4_sign(a, &keys, &scope, &r, &made, err)) ||
		(rc = sigv4_print_target(&url, r.path, r.query, err)))
		goto end;
	for (size_t i = 0; i < made.n; i++)
		v[c->headers_n + 1 + i] = made.v[i];
	e->headers = (struct labels){ v + 1, c->headers_n + made.n }; /* the client adds the host */
	e->url = str_dup(a, buf_str(&url));
	if (!e->url.ptr)
		rc = arena_fail(a, "request", err);
end:
	buf_release(&path);
	buf_release(&url);
	return rc;
}

static int64_t bucket_call_with_bytes(int64_t ns, uint64_t bytes)
{
	uint64_t seconds = bytes / BYTES_PER_SECOND_MIN;

	return ns + (int64_t)(seconds < 86400 ? seconds : 86400) * NS_PER_S;
}

static enum bucket_kind bucket_call_kind_of(const struct bucket_call *c)
{
	switch (c->method[0]) {
	case 'G':
		return c->key.len ? BUCKET_GETS : BUCKET_LISTS;
	case 'H':
		return BUCKET_HEADS;
	case 'D':
		return BUCKET_DELETES;
	default: /* PUT, POST */
		return BUCKET_PUTS;
	}
}

/* Fails if nothing could be sent; else c->answer is set. */
static enum err_code bucket_attempt(
	struct bucket *b, struct bucket_call *c, int64_t left_ns, uint64_t *serial, struct err *err)
{
	struct bucket_exchange x = { .operation = c->operation,
		.kind = bucket_call_kind_of(c),
		.http = &b->c.http,
		.method = c->method,
		.source = c->source,
		.body_max = c->body_max ? c->body_max : ANSWER_BYTES_MAX,
		.timeout_ns = bucket_call_with_bytes(b->c.attempt_timeout_ns, c->bytes),
		.idle_timeout_ns = c->source ? 0 : b->c.idle_timeout_ns,
		.hedge = c->hedge,
		.hedge_bytes = c->hedge_bytes };
	struct arena arena;
	enum err_code rc;

	if (x.timeout_ns > left_ns)
		x.timeout_ns = left_ns;
	if (b->cancel_ns <= clock_monotonic_ns())
		return exchange_canceled(err);
	arena_init(&arena, 0);
	if (!(rc = bucket_sign(b, c, &arena, &x, serial, err)))
		exchange_run(b, &x, &c->answer);
	arena_release(&arena);
	return rc;
}

static struct bucket_verdict bucket_try_once(
	struct bucket *b, struct bucket_call *c, int64_t left_ns, uint64_t *serial, struct err *err)
{
	struct bucket_verdict v = { 0 };
	enum err_code rc;

	answer_release(&c->answer);
	c->code[0] = '\0';
	c->attempts++;
	if ((rc = bucket_attempt(b, c, left_ns, serial, err)))
		return (
			struct bucket_verdict){ .rc = rc, .again = rc == ERR_UNAVAILABLE || rc == ERR_TIMEOUT };
	v = answer_judge(b, c, err);
	if (v.rc || !c->check)
		return v;
	v.rc = c->check(b, c, err);
	v.again = v.rc == ERR_CORRUPT || v.rc == ERR_UNAVAILABLE;
	return v;
}

/* ---- all of them ---- */

static int64_t bucket_call_jitter(int64_t max_ns)
{
	uint64_t r;

	if (max_ns <= 0 || RAND_bytes((unsigned char *)&r, sizeof(r)) != 1)
		return max_ns;
	return (int64_t)(r % (uint64_t)max_ns);
}

/* Ends early when calls are canceled. */
static void bucket_pause_for(struct bucket *b, int64_t ns)
{
	int64_t until_ns = clock_monotonic_ns() + ns;

	mutex_lock(&b->lock);
	while (b->cancel_ns > clock_monotonic_ns() && until_ns > clock_monotonic_ns())
		cond_wait_until(&b->canceled, &b->lock, until_ns < b->cancel_ns ? until_ns : b->cancel_ns);
	mutex_unlock(&b->lock);
}

static enum err_code bucket_describe(
	struct bucket *b, const struct bucket_call *c, enum err_code rc, struct err *err)
{
	struct str prefix = c->key.len ? b->prefix : STR("");

	if (c->attempts > 1 && rc != ERR_NOT_FOUND && rc != ERR_EXISTS)
		rc = err_wrap(err, rc, "after %u attempts", c->attempts);
	return err_wrap(err, rc, "bucket " STR_FMT ": %s%s" STR_FMT STR_FMT, STR_ARG(b->c.bucket),
		c->operation, c->key.len ? " " : "", STR_ARG(prefix), STR_ARG(c->key));
}

enum err_code bucket_call(struct bucket *b, struct bucket_call *c, struct err *err)
{
	int64_t until_ns = clock_monotonic_ns() + bucket_call_with_bytes(b->c.timeout_ns, c->bytes),
			left_ns, ns, most_ns = b->c.pause_ns;
	struct err earlier = { .code = ERR_OK };
	bool renewed = false;
	struct bucket_verdict v;
	uint64_t serial;

	for (;;) {
		serial = 0;
		left_ns = until_ns - clock_monotonic_ns();
		v = bucket_try_once(b, c, left_ns, &serial, err);
		if (v.rc == ERR_TIMEOUT && earlier.code && clock_monotonic_ns() >= until_ns)
			v.rc = err_copy(err, &earlier); /* says more than a timeout does */
		starting_say_why(b->c.waiting, v.again ? err : NULL);
		if (v.credentials && !renewed && serial && credentials_refused(b, serial)) {
			renewed = true; /* once, and at once */
			metric_add(&retries_total, c->operation, 1);
			continue;
		}
		if (!v.rc)
			return ERR_OK;
		if (!v.again || c->attempts >= b->c.attempts_max)
			return bucket_describe(b, c, v.rc, err);
		ns = bucket_call_jitter(most_ns);
		if (ns < v.pause_ns)
			ns = v.pause_ns + ns;
		left_ns = until_ns - clock_monotonic_ns();
		if (ns >= left_ns)
			return bucket_describe(b, c, v.rc, err);
		if (err)
			earlier = *err;
		bucket_pause_for(b, ns);
		most_ns = most_ns * 2 < b->c.pause_max_ns ? most_ns * 2 : b->c.pause_max_ns;
		metric_add(&retries_total, c->operation, 1);
	}
}
