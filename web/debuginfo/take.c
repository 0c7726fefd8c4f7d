#include "web/debuginfo/take.h"

#include "base/clock.h"
#include "tsdb/debuginfo/service/debuginfo.h"
#include "web/debuginfo/debuginfo.h"
#include "web/debuginfo/file.h"
#include "web/debuginfo/uploads.h"

#define RETRY_S "5"
#define UPLOAD_MAX_NS NS_PER_HOUR /* else a few slow senders could hold all turns */

static int take_refuse(struct http_out *out, int status)
{
	if (status == 429 || status == 503)
		http_default_header(out, "Retry-After", STR(RETRY_S));
	return status;
}

static int take_status_of(enum err_code rc)
{
	static const struct {
		enum err_code rc;
		int status;
	} rows[] = { { ERR_OK, 0 }, { ERR_INVALID, 400 }, { ERR_UNSUPPORTED, 400 }, { ERR_EXISTS, 409 },
		{ ERR_CANCELED, 499 }, { ERR_LIMIT, 413 }, { ERR_TIMEOUT, 408 }, { ERR_UNAVAILABLE, 503 },
		{ ERR_IO, 503 }, { ERR_NOMEM, 503 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].rc == rc)
			return rows[i].status;
	return 500;
}

/* Of uploads.h: a limit that was passed is over when another upload ends. */
static int take_status_of_turn(enum err_code rc)
{
	return rc == ERR_LIMIT ? 429 : take_status_of(rc);
}

int debuginfo_take_check(struct web *w, struct http_in *in, struct http_out *out, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (w->o.debuginfo)
		in->body_bytes_max = debuginfo_file_bytes_max(debuginfo_store(w->o.debuginfo));
	if (!w->uploads || !w->o.debuginfo)
		err_set(err, rc = ERR_NOT_FOUND, "this server stores no symbols");
	else if (in->body_announced > in->body_bytes_max)
		err_set(err, rc = ERR_LIMIT, "the file has %llu bytes, limit %zu",
			(unsigned long long)in->body_announced, in->body_bytes_max);
	else if (in->content_encoding.len && !http_type_is(in->content_encoding, "identity"))
		err_set(err, rc = ERR_UNSUPPORTED, "Content-Encoding " STR_FMT ": send files uncompressed",
			STR_ARG(in->content_encoding));
	if (rc)
		return rc == ERR_NOT_FOUND ? 404 : rc == ERR_UNSUPPORTED ? 415 : take_status_of(rc);
	return take_refuse(out, take_status_of_turn(uploads_check(w->uploads, in->client, err)));
}

/* The first MiB, or the whole file. */
static enum err_code take_read_head(struct http_in *in, struct buf *head, struct err *err)
{
	struct str piece = STR(" ");
	enum err_code rc;

	while (piece.len && head->len < FILE_HEAD_BYTES_MAX) {
		if ((rc = http_read(in, &piece, err)))
			return rc;
		buf_add_str(head, piece);
	}
	return buf_failed(head) ? err_nomem(err, "upload") : ERR_OK;
}

/* A limit that the file itself has not passed is that of all uploads: it may come again. */
static enum err_code take_copy(
	struct http_in *in, struct debuginfo_upload *u, struct str head, struct err *err)
{
	int64_t end_ns = clock_monotonic_ns() + UPLOAD_MAX_NS;
	struct str piece = head;
	size_t sent = 0;
	enum err_code rc;

	while (piece.len) {
		sent += piece.len;
		if ((rc = debuginfo_upload_append(u, piece, err)))
			return rc == ERR_LIMIT && sent <= in->body_bytes_max ? ERR_UNAVAILABLE : rc;
		if ((rc = http_read(in, &piece, err)))
			return rc;
		if (clock_monotonic_ns() > end_ns)
			return err_set(err, ERR_TIMEOUT, "the upload took more than an hour");
	}
	return ERR_OK;
}

static enum err_code take_take(
	struct web *w, struct http_in *in, struct take *t, struct buf *head, struct err *err)
{
	struct debuginfo_store *s = debuginfo_store(w->o.debuginfo);
	struct debuginfo_upload *u;
	enum err_code rc;

	if ((rc = take_read_head(in, head, err)))
		return rc;
	if (!head->len)
		return err_set(err, ERR_INVALID, "the body is empty: send the file");
	if ((rc = debuginfo_file_key(
			 buf_str(head), head->len >= FILE_HEAD_BYTES_MAX, t->has_id, &t->id, err)) ||
		(rc = debuginfo_upload_begin(s, &t->id, &t->offer, &u, err)))
		return rc;
	if ((rc = take_copy(in, u, buf_str(head), err))) {
		debuginfo_upload_cancel(u);
		return rc;
	}
	if ((rc = debuginfo_upload_finish(u, err)))
		return rc;
	debuginfo_wake(w->o.debuginfo);
	return ERR_OK;
}

int debuginfo_take(
	struct web *w, struct http_in *in, struct http_out *out, struct take *t, struct err *err)
{
	struct buf head = { 0 };
	enum err_code rc;

	if ((rc = uploads_enter(w->uploads, in->client, err)))
		return take_refuse(out, take_status_of_turn(rc));
	rc = take_take(w, in, t, &head, err);
	uploads_leave(w->uploads, in->client);
	buf_release(&head);
	return take_refuse(out, take_status_of(rc));
}
