/*
 * Bucket: the objects of an S3-compatible store.
 *
 * Calls block. Each has a deadline, in which it is repeated with growing pauses when the store does
 * not answer or says that it is busy. A get that takes longer than 19 of 20 others is sent a second
 * time, and the first answer counts. Bytes that were cut or changed on the way are noticed: by the
 * lengths, and for whole objects by the hash that put stores with them, or by their ETag.
 *
 * A key is relative to the configured prefix: UTF-8, without control characters, with "/" between
 * its parts; none of these is empty, "." or "..".
 *
 * Units:     bytes, nanoseconds.
 * Errors:    ERR_NOT_FOUND: no such object. ERR_EXISTS: the condition of a put does not hold.
 *            ERR_TIMEOUT, ERR_UNAVAILABLE: the store does not answer, is busy, or refuses us; the
 *            message says which, and what to do. ERR_CORRUPT: the bytes are not those that were
 *            put. ERR_LIMIT: the object is larger than allowed, or the bucket is full. ERR_IO: a
 *            file of ours, with credentials or to be put, cannot be read. ERR_INVALID: the key,
 *            the configuration, or an answer that is not S3's. ERR_CANCELED: bucket_cancel.
 *            ERR_UNSUPPORTED. No message holds a secret.
 * Ownership: bucket_open copies the configuration. Buffers are the caller's.
 * Threads:   any; bucket_close when no call is under way. Not on an event loop: calls block.
 * Source:    Amazon S3 API reference, 2006-03-01.
 */
#ifndef TSDB_BUCKET_BUCKET_H
#define TSDB_BUCKET_BUCKET_H

#include "base/net/http_client.h"

#define BUCKET_KEY_BYTES_MAX 512 /* the prefix may have as many */
#define BUCKET_ETAG_BYTES_MAX 128
#define BUCKET_HASH_LEN 64
#define BUCKET_TO_END UINT64_MAX

struct starting;

enum bucket_credentials {
	/* AWS_ACCESS_KEY_ID ..., or AWS_WEB_IDENTITY_TOKEN_FILE ..., or AWS_SHARED_CREDENTIALS_FILE */
	BUCKET_ENVIRONMENT,
	BUCKET_STATIC,
	BUCKET_FILE,
	BUCKET_WEB_IDENTITY,
};

struct bucket_credentials_config {
	enum bucket_credentials kind;
	struct str access_key, secret_key, session_token; /* STATIC */
	/* STATIC: instead of these, files with one line each, read again when they change */
	struct str access_key_file, secret_key_file, session_token_file;
	struct str file, profile; /* FILE: AWS's ini format, read again when it changes; "": default */
	/* WEB_IDENTITY: the file is read each time; endpoint "": AWS's of the region */
	struct str role_arn, session_name, token_file, sts_endpoint;
};

struct bucket_config {
	struct str
		endpoint; /* "https://s3.eu-central-1.amazonaws.com"; a path before the bucket is fine */
	struct str bucket;
	struct str prefix; /* of all keys; "" or "a/b", with or without a "/" at its end */
	struct str region; /* "": us-east-1 */
	bool virtual_host; /* the bucket is part of the host, not of the path */
	struct http_config http; /* TLS, proxy, headers; no authorization, no redirects */
	struct bucket_credentials_config credentials;
	/* 0: the default */
	int64_t timeout_ns; /* of a call, repetitions included: 2 minutes, and a second per MiB */
	int64_t attempt_timeout_ns; /* of a request: 30 s, and a second per MiB */
	int64_t idle_timeout_ns; /* of a get without a byte: 10 s */
	unsigned attempts_max; /* 8 */
	int64_t pause_ns, pause_max_ns; /* before the second attempt, at most: 100 ms; 10 s */
	int64_t hedge_min_ns; /* a get is not sent again earlier: 10 ms; -1: never again */
	size_t connections_max; /* 64 */
	size_t object_bytes_max; /* that get holds in memory: 1 GiB */
	size_t part_bytes; /* larger files are put in parts of this size: 64 MiB */
	/* Each attempt writes its error here, or that it went well (base/self/starting.h). May be NULL.
	 */
	struct starting *waiting;
};

struct bucket;

/* ERR_INVALID: no call takes such a key, and none makes such an object. */
MUST_CHECK enum err_code bucket_check_key(struct str key, struct err *err);

struct bucket_info {
	uint64_t bytes; /* of the whole object */
	int64_t modified_ns; /* 0: not said */
	char etag[BUCKET_ETAG_BYTES_MAX]; /* as the store writes it; "": none */
	char hash[BUCKET_HASH_LEN + 1]; /* SHA-256 of the whole, as put stored it; "": none, a list */
};

MUST_CHECK enum err_code bucket_open(
	const struct bucket_config *c, struct bucket **out, struct err *err);
void bucket_close(struct bucket *b); /* NULL is fine */
/* Checks names and URLs of a configuration without opening anything. */
MUST_CHECK enum err_code bucket_config_check(const struct bucket_config *c, struct err *err);
/*
 * From at_ns on (clock_monotonic_ns) calls end with ERR_CANCELED: those under way, and those that
 * begin later. A time that has passed: at once. INT64_MAX: not any more, as after bucket_open. So a
 * program that ends may cancel everything and then give its last call some seconds. Any thread.
 */
void bucket_cancel(struct bucket *b, int64_t at_ns);
/* "http://127.0.0.1:7480/bucket/prefix"; for messages. Lives as long as the bucket. */
struct str bucket_name(const struct bucket *b);

/*
 * [offset, offset + len) of an object, fewer bytes where it ends before; len BUCKET_TO_END: to its
 * end. Appends to *out. ERR_INVALID where the range begins at the end or behind. info may be NULL.
 */
MUST_CHECK enum err_code bucket_get(struct bucket *b, struct str key, uint64_t offset, uint64_t len,
	struct buf *out, struct bucket_info *info, struct err *err);
MUST_CHECK enum err_code bucket_head(
	struct bucket *b, struct str key, struct bucket_info *out, struct err *err);

enum bucket_condition { BUCKET_ANY, BUCKET_IF_ABSENT, BUCKET_IF_ETAG };

/*
 * All or nothing; other readers see the old object or the new one. With a condition the object is
 * ours if and only if this gives ERR_OK, also when the answer to an attempt was lost; any other
 * error but ERR_EXISTS leaves open whether it was put. if_etag: for BUCKET_IF_ETAG. etag: of the
 * new object, BUCKET_ETAG_BYTES_MAX bytes, or NULL.
 */
MUST_CHECK enum err_code bucket_put(struct bucket *b, struct str key, struct str bytes,
	enum bucket_condition condition, const char *if_etag, char *etag, struct err *err);
/* The file from its start to its end; it does not change meanwhile. In parts where it is large. */
MUST_CHECK enum err_code bucket_put_file(struct bucket *b, struct str key, int fd, struct err *err);
/* The hash that put keeps with the bytes of a file. */
MUST_CHECK enum err_code bucket_file_hash(int fd, char out[BUCKET_HASH_LEN + 1], struct err *err);
MUST_CHECK enum err_code bucket_delete(
	struct bucket *b, struct str key, struct err *err); /* none is fine */

struct bucket_object {
	struct str key; /* relative to the configured prefix */
	bool is_prefix; /* keys that begin so, up to the delimiter; it has no info */
	struct bucket_info info;
};
/* An error ends the list and is its result. The object dies with the call. */
typedef enum err_code (*bucket_visit_fn)(void *ctx, const struct bucket_object *o, struct err *err);
/*
 * The objects whose keys begin with prefix (any bytes), ascending, behind `after` ("": all).
 * delimiter "/": only those directly below, with a prefix for each folder; "": all below.
 */
MUST_CHECK enum err_code bucket_list(struct bucket *b, struct str prefix, struct str delimiter,
	struct str after, bucket_visit_fn visit, void *ctx, struct err *err);

/* What the store counts and bills: requests, repeated and second ones too, and bytes of bodies. */
enum bucket_kind {
	BUCKET_GETS,
	BUCKET_HEADS,
	BUCKET_PUTS, /* also parts of files, and begin and end of an upload in parts */
	BUCKET_LISTS,
	BUCKET_DELETES,
	BUCKET_KINDS,
};
const char *bucket_kind_name(enum bucket_kind k); /* "get", "head", "put", "list", "delete" */
struct bucket_usage { /* since bucket_open */
	struct {
		uint64_t requests, sent_bytes, received_bytes;
	} kinds[BUCKET_KINDS];
};
void bucket_get_usage(const struct bucket *b, struct bucket_usage *out);
struct bucket_prices { /* in the currency of the bill */
	double put_per_million; /* puts and lists; deletes are free */
	double get_per_million; /* gets and heads */
	double storage_per_tb_month; /* TB: 10^12 bytes */
};
double bucket_requests_cost(const struct bucket_usage *u, const struct bucket_prices *p);
double bucket_storage_cost(uint64_t bytes, const struct bucket_prices *p); /* of a month */

/*
 * Once at start: may we put, get, list and delete; do conditional puts hold; do the clocks agree
 * within BUCKET_SKEW_MAX_NS? The message names what is wrong. ERR_UNSUPPORTED: the store ignores a
 * condition, so that several servers must not share the bucket.
 */
#define BUCKET_SKEW_MAX_NS (INT64_C(300) * 1000000000)
MUST_CHECK enum err_code bucket_probe(struct bucket *b, struct err *err);

#endif
