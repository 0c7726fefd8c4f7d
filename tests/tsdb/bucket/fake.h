/*
 * A fake object store on loopback: signatures (checked by an implementation of its own, from the
 * bytes of the request), ranges, conditional puts, lists in pages, uploads in parts, a token
 * service. It can stall, cut, reset, damage, refuse, and have another time.
 *
 * Threads: a thread for each connection; tests change it while no request is under way, or by the
 *          atomic fields.
 */
#ifndef TESTS_TSDB_BUCKET_FAKE_H
#define TESTS_TSDB_BUCKET_FAKE_H

#include "tests/base/net/http_server.h"
#include "tsdb/bucket/bucket.h"

#define FAKE_OBJECTS_MAX 2048
#define FAKE_PARTS_MAX 16
#define FAKE_FAULTS_MAX 8

enum fake_fault_kind {
	FAULT_NONE,
	FAULT_STATUS, /* it answers so: status, code */
	FAULT_RESET, /* before anything is done */
	FAULT_RESET_LATER, /* after it was done, without an answer */
	FAULT_CUT, /* half of the body, then the end */
	FAULT_STALL, /* nothing until the client goes */
	FAULT_DAMAGE, /* a byte of the body is another one */
};

struct fake_fault {
	enum fake_fault_kind kind;
	const char *line; /* in the request line; "GET /b/x" */
	unsigned times;
	int status;
	const char *code, *header; /* header: "Retry-After: 1\r\n", or NULL */
};

struct fake_object {
	struct buf key, bytes;
	char etag[64], put[64], hash[80];
	bool used;
};

struct fake {
	struct http_server server;
	struct mutex lock; /* guards all below but the atomic ones */
	struct fake_object objects[FAKE_OBJECTS_MAX];
	struct fake_fault faults[FAKE_FAULTS_MAX];
	struct fake_object parts[FAKE_PARTS_MAX]; /* of the upload */
	char upload_put[64], upload_hash[80];
	bool upload; /* under way */
	unsigned uploads, aborts, refused; /* refused: signatures */
	unsigned page_objects; /* of a list; 0: 1000 */
	bool ignores_conditions, ignores_ranges, no_meta, other_etags;
	bool bare_etags; /* If-Match is compared without quotes, as Ceph does */
	int64_t ahead_s; /* of its clock */
	struct str bucket; /* "b" */
	unsigned tokens; /* that the token service has given */
	unsigned tokens_valid_from; /* older ones have expired */
	int64_t token_life_s;
	char web_token[64]; /* the last one that it got */
	/* Requests until the store is gone for all: it resets connections. The last one is done, and
	 * its answer lost, if last_is_done. */
	bool limited, last_is_done;
	unsigned left;
	atomic_uint requests;
	char last_head[4096]; /* of the last request */
};

bool fake_start(struct fake *f, SSL_CTX *tls);
void fake_stop(struct fake *f);
void fake_fault(struct fake *f, struct fake_fault fault);
void fake_forget_faults(struct fake *f);
/* Of keys with the bucket's prefix. NULL: none. */
struct fake_object *fake_find(struct fake *f, const char *key);
void fake_put(struct fake *f, const char *key, struct str bytes);

/* A client of the fake: AK, SECRET; short pauses, and minutes for an answer. */
struct bucket_config fake_config(const struct fake *f);

/* fake_sign.c: ERR_OK, or the code of S3's error. access_key: "AK", "ASIA3". */
struct fake_request {
	struct str method, path, query; /* as they came */
	struct str head, body;
};
const char *fake_check_signature(
	const struct fake_request *r, int64_t now_s, const char *secret, const char *session_token);
struct str fake_header(const struct fake_request *r, const char *name);
struct str fake_access_key(const struct fake_request *r);

#endif
