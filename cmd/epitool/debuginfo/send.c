#include <jansson.h>

#include "cmd/epitool/debuginfo/send.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/net/http_client.h"
#include "base/net/percent.h"
#include "base/quote.h"
#include "cmd/epitool/debuginfo/bundle_body.h"
#include "cmd/epitool/progress.h"

#define SERVICE "/debuginfo.v1alpha1.DebuginfoService/"
#define ATTEMPTS_MAX 20
#define BROKEN_MAX 3 /* connections that end in the middle */
#define RETRY_NS NS_PER_S
#define RETRY_MAX_NS NS_PER_MIN

/* ---- requests that are tried again ---- */

/* How long to wait before it is sent again; 0: it is not. */
static int64_t debuginfo_send_pause_ns(
	int status, enum err_code rc, int64_t retry_ns, int attempt, int *broken)
{
	int64_t ns = retry_ns ? retry_ns : RETRY_NS << (attempt < 5 ? attempt : 5);

	if (atomic_load(&interrupted) || attempt + 1 == ATTEMPTS_MAX)
		return 0;
	if (!status && rc == ERR_UNAVAILABLE && ++*broken >= BROKEN_MAX)
		return 0;
	if (status != 429 && status != 503 && (status || rc != ERR_UNAVAILABLE))
		return 0;
	return ns < RETRY_MAX_NS ? ns : RETRY_MAX_NS;
}

/* Appends the answer. *status is the last answer's. */
static enum err_code debuginfo_send_ask(const struct client_options *o, struct client_request r,
	int *status, struct buf *answer, struct err *err)
{
	int64_t retry_ns, ns = 1;
	int broken = 0;
	enum err_code rc = ERR_OK;

	r.status = status;
	r.retry_ns = &retry_ns;
	for (int i = 0; ns; i++) {
		buf_clear(answer);
		rc = client_send(o, &r, answer, err);
		ns = rc ? debuginfo_send_pause_ns(*status, rc, retry_ns, i, &broken) : 0;
		progress_wait(ns);
	}
	return atomic_load(&interrupted) ? err_set(err, ERR_CANCELED, "canceled") : rc;
}

static void debuginfo_send_add_json(struct buf *body, const char *key, struct str value)
{
	struct json j;

	json_init(&j, body);
	json_object_begin(&j);
	json_key(&j, key);
	json_str(&j, value);
	json_object_end(&j);
}

/* ---- the file and what belongs to it as a body ---- */

static enum err_code debuginfo_send_read_body(
	void *ctx, uint64_t at, char *to, size_t n, struct err *err)
{
	struct bundle_body *b = ctx;

	progress_set(at, b->bytes);
	return bundle_body_read(b, at, to, n, err);
}

/* files NULL: the file alone. */
static enum err_code debuginfo_send_post_files(const struct debuginfo_sending *s,
	const struct debug_files *files, const char *path, int *status, struct err *err)
{
	struct bundle_body body;
	struct http_body_source source = { .read = debuginfo_send_read_body, .ctx = &body };
	const struct client_request r = {
		.path = path, .content_type = "application/octet-stream", .source = &source
	};
	struct buf answer = { 0 };
	enum err_code rc;

	*status = 0;
	if ((rc = bundle_body_open(&body, s->file, files, err)))
		return rc;
	source.bytes = body.bytes;
	rc = debuginfo_send_ask(s->client, r, status, &answer, err);
	buf_release(&answer);
	bundle_body_close(&body);
	return rc;
}

static enum err_code debuginfo_send_post(
	const struct debuginfo_sending *s, const char *path, int *status, struct err *err)
{
	struct debug_files files;
	enum err_code rc;

	*status = 0;
	if ((rc = s->find(s->ctx, &files, err)))
		return rc;
	rc = debuginfo_send_post_files(s, &files, path, status, err);
	if (rc && *status == 413 && files.n) {
		s->shrink(s->ctx, err);
		rc = debuginfo_send_post_files(s, NULL, path, status, err);
	}
	debug_files_release(&files);
	return rc;
}

/* ---- Pyroscope's protocol ---- */

static enum err_code debuginfo_send_should_upload(
	const struct debuginfo_sending *s, bool *yes, struct buf *reason, int *status, struct err *err)
{
	const struct native_file *f = s->file;
	struct client_request r = { .path = SERVICE "ShouldInitiateUpload",
		.content_type = "application/json" };
	struct buf body = { 0 }, answer = { 0 };
	enum err_code rc;
	struct json j;
	json_t *root;

	json_init(&j, &body);
	json_object_begin(&j);
	json_key(&j, "file");
	json_object_begin(&j);
	json_key(&j, "gnuBuildId");
	json_str(&j, debuginfo_id_text(&f->ids[DEBUGINFO_GNU]));
	json_key(&j, "goBuildId");
	json_str(&j, debuginfo_id_text(&f->ids[DEBUGINFO_GO]));
	json_key(&j, "otelFileId");
	json_str(&j, debuginfo_id_text(&f->ids[DEBUGINFO_FILE]));
	json_key(&j, "name");
	json_str(&j, str_of(s->path));
	json_key(&j, "type");
	json_cstr(&j, f->kind == DEBUGINFO_FULL ? "TYPE_EXECUTABLE_FULL" : "TYPE_EXECUTABLE_NO_TEXT");
	json_object_end(&j);
	json_object_end(&j);
	r.body = buf_str(&body);
	rc = buf_failed(&body) ? err_nomem(err, "request") :
							 debuginfo_send_ask(s->client, r, status, &answer, err);
	root = rc ? NULL : json_loadb(answer.ptr ? answer.ptr : "", answer.len, 0, NULL);
	if (!rc && !json_is_object(root))
		rc = err_set(err, ERR_INVALID, "the server's answer is not connect's");
	*yes = json_is_true(json_object_get(root, "shouldInitiateUpload"));
	if (!rc && json_string_value(json_object_get(root, "reason")))
		buf_add_cstr(reason, json_string_value(json_object_get(root, "reason")));
	json_decref(root);
	buf_release(&body);
	buf_release(&answer);
	return rc;
}

static enum err_code debuginfo_send_finish(
	const struct debuginfo_sending *s, int *status, struct err *err)
{
	struct client_request r = { .path = SERVICE "UploadFinished",
		.content_type = "application/json" };
	struct buf body = { 0 }, answer = { 0 };
	enum err_code rc;

	debuginfo_send_add_json(&body, "gnuBuildId", debuginfo_id_text(&s->file->ids[DEBUGINFO_GNU]));
	r.body = buf_str(&body);
	rc = buf_failed(&body) ? err_nomem(err, "request") :
							 debuginfo_send_ask(s->client, r, status, &answer, err);
	buf_release(&body);
	buf_release(&answer);
	return rc;
}

static enum sent send_announced(const struct debuginfo_sending *s, struct buf *say, struct err *err)
{
	char to[sizeof(SERVICE) + 8 + DEBUGINFO_ID_BYTES_MAX];
	int status;
	bool yes;

	if (debuginfo_send_should_upload(s, &yes, say, &status, err))
		return status == 400 ? SENT_NOT : SENT_NONE;
	if (!yes)
		return SENT_BEFORE;
	snprintf(to, sizeof(to), SERVICE "Upload/" STR_FMT,
		STR_ARG(debuginfo_id_text(&s->file->ids[DEBUGINFO_GNU])));
	if (debuginfo_send_post(s, to, &status, err)) {
		if (status == 409)
			buf_add_cstr(say, err->msg);
		return status == 409 ? SENT_BEFORE : SENT_NOT;
	}
	return debuginfo_send_finish(s, &status, err) ? SENT_NOT : SENT;
}

/* ---- the API ---- */

static void debuginfo_send_copy(char *to, size_t size, const json_t *from)
{
	struct buf text = { 0 };

	if (json_string_value(from))
		buf_add_printable(&text, str_of(json_string_value(from)));
	snprintf(to, size, STR_FMT, STR_ARG(buf_str(&text)));
	buf_release(&text);
}

enum err_code debuginfo_ask(const struct client_options *o, const struct debuginfo_id *id,
	struct debuginfo_send_named *out, struct err *err)
{
	struct client_request r = { .method = "GET" };
	struct buf path = { 0 }, answer = { 0 };
	int status = 0;
	enum err_code rc;
	json_t *root, *x;
	size_t i;

	*out = (struct debuginfo_send_named){ 0 };
	buf_add_cstr(&path, "/api/v1/symbols?id=");
	percent_encode(&path, debuginfo_id_text(id), PERCENT_VALUE);
	buf_add_char(&path, '\0');
	r.path = path.ptr;
	rc = buf_failed(&path) ? err_nomem(err, "request") :
							 debuginfo_send_ask(o, r, &status, &answer, err);
	root = rc ? NULL : json_loadb(answer.ptr ? answer.ptr : "", answer.len, 0, NULL);
	json_array_foreach (json_object_get(json_object_get(root, "data"), "binaries"), i, x) {
		const char *kind = json_string_value(json_object_get(x, "kind"));

		if (!kind || strcmp(kind, debuginfo_id_kind_name(id->kind)) != 0)
			continue;
		debuginfo_send_copy(out->state, sizeof(out->state), json_object_get(x, "state"));
		debuginfo_send_copy(out->why, sizeof(out->why), json_object_get(x, "why"));
		debuginfo_send_copy(out->quality, sizeof(out->quality), json_object_get(x, "quality"));
		debuginfo_send_copy(out->content, sizeof(out->content), json_object_get(x, "content"));
		out->index_bytes = json_integer_value(json_object_get(x, "indexBytes"));
	}
	json_decref(root);
	buf_release(&path);
	buf_release(&answer);
	return rc && status == 404 ? err->code = ERR_NOT_FOUND : rc;
}

/* The server says no before the file is sent, but only to those who wait for "100 Continue". */
static bool debuginfo_send_named_may_be_wanted(
	const struct debuginfo_send_named *n, enum debuginfo_kind kind)
{
	bool best = !strcmp(n->quality, debuginfo_qualities[DEBUGINFO_DWARF]);

	if (!strcmp(n->state, "named") && !strcmp(n->content, debuginfo_kinds[DEBUGINFO_NO_TEXT]) &&
		kind != DEBUGINFO_NO_TEXT)
		return true; /* the code's places are not known there */
	if (!strcmp(n->state, "named"))
		return kind != DEBUGINFO_STRIPPED && !best;
	return strcmp(n->state, "queued") && strcmp(n->state, "extracting") &&
		strcmp(n->state, "uploading");
}

static enum sent send_by_id(const struct debuginfo_sending *s, struct buf *say, struct err *err)
{
	const struct native_file *f = s->file;
	const struct debuginfo_id *id = native_file_id(f);
	struct buf to = { 0 };
	struct debuginfo_send_named n;
	int status = 0;
	enum sent sent = SENT;

	if (!s->force && debuginfo_ask(s->client, id, &n, err))
		return SENT_NONE;
	if (!s->force && !debuginfo_send_named_may_be_wanted(&n, f->kind))
		return SENT_BEFORE;
	buf_printf(&to,
		"/api/v1/symbols/upload?kind=%s&content=%s&id=", debuginfo_id_kind_name(id->kind),
		debuginfo_kinds[f->kind]);
	percent_encode(&to, debuginfo_id_text(id), PERCENT_VALUE);
	buf_add_cstr(&to, "&name=");
	percent_encode(&to, str_of(s->path), PERCENT_VALUE);
	buf_add_cstr(&to, s->force ? "&force=true" : "");
	buf_add_char(&to, '\0');
	if (buf_failed(&to)) {
		err_nomem(err, "request");
		sent = SENT_NONE;
	} else if (debuginfo_send_post(s, to.ptr, &status, err)) {
		if (status == 409)
			buf_add_cstr(say, err->msg);
		sent = status == 409 ? SENT_BEFORE : status == 404 ? SENT_NONE : SENT_NOT;
	}
	buf_release(&to);
	return sent;
}

enum sent debuginfo_send(const struct debuginfo_sending *s, struct buf *say, struct err *err)
{
	const struct native_file *f = s->file;

	buf_clear(say);
	return !s->force && f->ids[DEBUGINFO_GNU].len && f->kind != DEBUGINFO_STRIPPED ?
		send_announced(s, say, err) :
		send_by_id(s, say, err);
}
