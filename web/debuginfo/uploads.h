/*
 * Uploads of debug data that were announced, and those that are under way: which may begin.
 *
 * A binary runs on many machines, and each of them asks. The server says yes to one, which has some
 * minutes for its upload, and no to the others meanwhile.
 *
 * Errors:  ERR_LIMIT: this address has too many under way; ERR_UNAVAILABLE: there are too many.
 * Threads: any; no call waits.
 */
#ifndef WEB_DEBUGINFO_UPLOADS_H
#define WEB_DEBUGINFO_UPLOADS_H

#include "tsdb/debuginfo/store/store.h"
#include "web/http/http.h"

#define UPLOADS_MAX 10u
#define UPLOADS_ADDRESS_MAX 4u
#define UPLOADS_ANNOUNCED_MAX 1024u /* then the oldest is forgotten */
#define UPLOADS_ANNOUNCED_NS (5 * INT64_C(60000000000))

struct debuginfo_uploads;
MUST_CHECK enum err_code debuginfo_uploads_open(struct debuginfo_uploads **out, struct err *err);
void debuginfo_uploads_close(struct debuginfo_uploads *u); /* NULL is fine */

struct announced {
	struct debuginfo_id id;
	enum debuginfo_kind kind;
	struct http_sender client;
	int64_t since_ns; /* monotonic; 0: this place is free */
	char path[DEBUGINFO_PATH_BYTES_MAX + 1];
};

/* False: another client was told to upload it, and may still do so. */
bool uploads_announce(struct debuginfo_uploads *u, const struct debuginfo_id *id,
	enum debuginfo_kind kind, struct str path, struct http_sender client, int64_t now_ns);
bool uploads_find(struct debuginfo_uploads *u, const struct debuginfo_id *id, int64_t now_ns,
	struct announced *out);
void uploads_forget(struct debuginfo_uploads *u, const struct debuginfo_id *id);

/* May one more begin? Nothing is taken. */
MUST_CHECK enum err_code uploads_check(
	struct debuginfo_uploads *u, struct http_sender client, struct err *err);
MUST_CHECK enum err_code uploads_enter(
	struct debuginfo_uploads *u, struct http_sender client, struct err *err);
void uploads_leave(struct debuginfo_uploads *u, struct http_sender client);

#endif
