/*
 * The parts of the client, as they see each other.
 *
 *	bucket.c         opening; keys; get, head, delete
 *	put.c            put, with conditions and hashes
 *	multipart.c      large files
 *	list.c           lists
 *	probe.c          what a store can do
 *	call.c           a call: signing, attempts, pauses (the caller's thread)
 *	answer.c         what an answer means, in words
 *	exchange.c       one attempt, perhaps sent twice (the loop's thread); canceling
 *	usage.c          what the store counts, and what it costs
 *	hedging.c        when it is sent twice
 *	credentials.c    whose requests they are: static, environment, cached ones
 *	web_identity.c   credentials for a token
 */
#ifndef TSDB_BUCKET_INTERNAL_H
#define TSDB_BUCKET_INTERNAL_H

#include "base/net/loop.h"
#include "base/net/sigv4.h"
#include "base/thread.h"
#include "tsdb/bucket/bucket.h"

#define ANSWER_BYTES_MAX (16u << 20) /* of answers that are no object: XML */
#define CALL_QUERY_MAX 8
#define CALL_HEADERS_MAX 8
#define BYTES_PER_SECOND_MIN (1u << 20) /* deadlines grow by a second for so many bytes */

/* ---- hedging.c ---- */

#define HEDGING_CLASSES 5
#define HEDGING_SAMPLES 128
#define HEDGING_GETS 20u /* for a second request */

/*
 * How long gets take, by size; and credit for second requests, which each get brings.
 * Threads: any.
 */
struct hedging {
	struct mutex lock; /* guards what follows */
	unsigned credit; /* in gets; a second request costs HEDGING_GETS of them */
	struct hedging_class {
		int64_t took_ns[HEDGING_SAMPLES]; /* the latest ones */
		unsigned n, at, since; /* since p95_ns was made */
		int64_t p95_ns; /* 0: too few samples */
	} classes[HEDGING_CLASSES];
};
void hedging_init(struct hedging *h);
void hedging_release(struct hedging *h);
/* A get begins. Returns the time after which a second one is worth it; 0: never. */
int64_t hedging_begin(struct hedging *h, uint64_t bytes);
/* Pays for a second request; false: too many were sent lately. */
bool hedging_allow(struct hedging *h);
void hedging_took(struct hedging *h, uint64_t bytes, int64_t took_ns);

/* ---- exchange.c ---- */

struct bucket_answer {
	enum err_code rc; /* ERR_OK: status, head and body are valid */
	struct err err;
	int status;
	struct buf head, body;
	bool hedged; /* a second request was sent */
};
void answer_release(struct bucket_answer *a);
struct str answer_header(const struct bucket_answer *a, const char *name); /* "" if there is none */

struct bucket_exchange {
	const char *operation; /* for metrics */
	enum bucket_kind kind; /* BUCKET_KINDS: not of the store */
	const struct http_config *http;
	const char *method;
	struct str url, body;
	struct labels headers;
	const struct http_body_source *source;
	size_t body_max; /* of the answer */
	int64_t timeout_ns, idle_timeout_ns;
	bool hedge;
	uint64_t hedge_bytes; /* that are asked for; 0: not known */
};
/* Sends one request and waits for its answer. a is released or zero. */
void exchange_run(struct bucket *b, const struct bucket_exchange *e, struct bucket_answer *a);
/* On the loop: follows b->cancel_ns. */
void exchange_cancel(void *bucket);
MUST_CHECK enum err_code exchange_canceled(struct err *err); /* ERR_CANCELED in words */

/* ---- usage.c ---- */

struct usage { /* by any thread */
	struct {
		_Atomic(uint64_t) requests, sent, received;
	} kinds[BUCKET_KINDS];
};

/* ---- credentials.c ---- */

struct credentials;

MUST_CHECK enum err_code credentials_open(
	struct bucket *b, const struct bucket_credentials_config *c, struct err *err);
void credentials_close(struct credentials *c);
/* Copies the current credentials into the arena; *serial names them. May ask a token service. */
MUST_CHECK enum err_code credentials_get(struct bucket *b, struct arena *a,
	struct sigv4_credentials *out, uint64_t *serial, struct err *err);
/* The store says that these have ended. True: the next credentials_get may give others. */
bool credentials_refused(struct bucket *b, uint64_t serial);

/* What a source gives. */
struct credentials_got {
	struct sigv4_credentials keys; /* in the arena */
	int64_t until_ns; /* since 1970; INT64_MAX: no end */
};
/* web_identity.c */
MUST_CHECK enum err_code web_identity_get(struct bucket *b,
	const struct bucket_credentials_config *c, struct arena *a, struct credentials_got *out,
	struct err *err);

/* ---- call.c ---- */

struct bucket_call {
	const char *operation; /* "get": for metrics and messages */
	const char *right; /* "s3:GetObject": what a policy must allow */
	const char *method;
	struct str key; /* as the caller gave it; "": the bucket itself */
	struct label query[CALL_QUERY_MAX];
	struct label headers[CALL_HEADERS_MAX];
	size_t query_n, headers_n;
	const struct http_body_source *source; /* or NULL */
	const char *payload_hash; /* NULL: of no body */
	size_t body_max; /* of the answer; 0: ANSWER_BYTES_MAX */
	uint64_t bytes; /* there and back, as far as known: the deadlines grow by them */
	bool hedge;
	uint64_t hedge_bytes; /* that are asked for; 0: not known */
	/* Of an answer 2xx. ERR_CORRUPT, ERR_UNAVAILABLE: the call is repeated. NULL: it is fine. */
	enum err_code (*check)(struct bucket *b, struct bucket_call *c, struct err *err);
	void *ctx;
	struct bucket_answer answer; /* the last one */
	char code[64]; /* of the store's error, "" if there is none */
	unsigned attempts;
};
void call_query(struct bucket_call *c, const char *name, struct str value);
void call_header(struct bucket_call *c, const char *name, struct str value);
/* An answer 2xx, or the error in words. The caller releases c->answer in any case. */
MUST_CHECK enum err_code bucket_call(struct bucket *b, struct bucket_call *c, struct err *err);

/* ---- answer.c ---- */

struct bucket_verdict {
	enum err_code rc;
	bool again; /* another attempt may succeed */
	bool credentials; /* they have ended or are not known */
	int64_t pause_ns; /* that the store asks for */
};
/* Judges an answer; err: in words. Sets c->code. */
struct bucket_verdict answer_judge(struct bucket *b, struct bucket_call *c, struct err *err);
/* The same of an error of the store in an answer 200: its root element. */
struct bucket_verdict answer_judge_error(
	struct bucket *b, struct bucket_call *c, struct str body, struct err *err);
bool answer_date_ns(const struct bucket_answer *a, int64_t *out); /* of the Date header */
bool answer_time_ns(struct str http_date, int64_t *out);

/* ---- bucket.c ---- */

struct bucket {
	struct bucket_config c; /* with defaults filled in; in the arena */
	struct arena arena;
	bool tls;
	struct str authority; /* of the host that requests go to */
	struct str base; /* path before keys: "/bucket" or "" */
	struct str prefix; /* "" or "a/b/" */
	struct str name;
	struct loop *loop;
	struct http_client *client; /* the loop's */
	struct hedging hedging;
	struct credentials *credentials;
	/* Of objects put in one piece: ETAG_MD5 while all ETags seen were MD5; ETAG_OTHER for good. */
	_Atomic(int) etag_kind;
	_Atomic(bool) bare_etags; /* If-Match wants them without quotes: Ceph's gateway */
	struct usage usage;
	struct waiter *waiters; /* exchanges under way; the loop's */
	struct event *cancel_timer; /* the loop's */
	_Atomic(int64_t) cancel_ns; /* INT64_MAX: never */
	struct mutex lock; /* guards exchanges' ends */
	struct cond canceled; /* cancel_ns has changed: pauses end */
};
enum { ETAG_UNKNOWN, ETAG_MD5, ETAG_OTHER };

void bucket_read_info(const struct bucket_answer *a, struct bucket_info *out);
/* header: as it comes; "\"9e10...\"" */
bool etag_is_md5_of(struct str etag, struct str bytes);

#define META_HASH "x-amz-meta-sha256" /* of a whole object, as hex digits */
#define META_PUT "x-amz-meta-put" /* names one call of put */

/* put.c */
#define PUT_NAME_LEN 32
void put_name(char out[PUT_NAME_LEN + 1]); /* that no other put has */
/* multipart.c: a file larger than part_bytes. */
MUST_CHECK enum err_code multipart_put(
	struct bucket *b, struct str key, int fd, uint64_t bytes, struct err *err);
/* put.c: bytes of a file as a request's body; and their hash. */
struct file_part {
	int fd;
	uint64_t from;
};
enum err_code file_part_read(void *ctx, uint64_t at, char *to, size_t n, struct err *err);
MUST_CHECK enum err_code file_part_hash(
	struct file_part *p, uint64_t bytes, char out[SIGV4_HASH_LEN + 1], struct err *err);

#endif
