/*
 * Uploads: Pyroscope's three requests, and the API's one.
 *
 * A yes of ShouldInitiateUpload is kept with name and kind, so that Upload, whose request has only
 * the id, knows both. UploadFinished has nothing left to do: Upload is answered when the file is
 * durable.
 */
#include "base/clock.h"
#include "base/quote.h"
#include "tsdb/debuginfo/service/debuginfo.h"
#include "web/debuginfo/debuginfo.h"
#include "web/debuginfo/file.h"
#include "web/debuginfo/take.h"
#include "web/debuginfo/uploads.h"
#include "web/push/push.h"
#include "web/pyroscope/pyroscope.h"
#include "web/router/envelope.h"

#define UPLOAD_PREFIX STR(DEBUGINFO_SERVICE "Upload/")
#define SHOULD_REQUEST &epimetheus__pyroscope__should_initiate_upload_request__descriptor
#define FINISHED_REQUEST &epimetheus__pyroscope__upload_finished_request__descriptor

typedef Epimetheus__Pyroscope__FileMetadata file_metadata;

/* ---- connect's unary calls ---- */

static void web_debuginfo_upload_fail(struct http_out *out, enum err_code rc, const struct err *err)
{
	static const struct {
		enum err_code rc;
		int status;
		const char *code;
	} rows[] = { { ERR_INVALID, 400, "invalid_argument" },
		{ ERR_UNSUPPORTED, 415, "unimplemented" }, { ERR_LIMIT, 413, "invalid_argument" },
		{ ERR_NOT_FOUND, 404, "not_found" }, { ERR_UNAVAILABLE, 503, "unavailable" },
		{ ERR_EXISTS, 400, "failed_precondition" } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].rc == rc) {
			connect_error(out, rows[i].status, rows[i].code, "%s", err->msg);
			return;
		}
	connect_error(out, 500, "internal", "%s", err->msg);
}

typedef enum err_code call_fn(struct pyroscope_call *c, const ProtobufCMessage *m, struct err *err);

static void web_debuginfo_upload_answer_call(struct web *w, struct http_in *in,
	struct http_out *out, const ProtobufCMessageDescriptor *descriptor, call_fn *fn)
{
	struct pyroscope_call c = { .w = w, .in = in, .out = out };
	ProtobufCMessage *m;
	struct str body;
	enum err_code rc;
	struct err err;

	if (!pyroscope_takes_type(in, out, &c.json))
		return;
	if (!w->uploads || !w->o.debuginfo)
		rc = err_set(&err, ERR_NOT_FOUND, "this server stores no symbols");
	else if (!(rc = push_body(in, &in->arena, &body, &err)) &&
		!(rc = pyroscope_decode(&in->arena, descriptor, c.json, body, &m, &err)))
		rc = fn(&c, m, &err);
	if (rc)
		web_debuginfo_upload_fail(out, rc, &err);
}

static enum err_code web_debuginfo_upload_kind_of(
	const file_metadata *metadata, enum debuginfo_kind *out, struct err *err)
{
	switch (metadata->type) {
	case EPIMETHEUS__PYROSCOPE__FILE_METADATA__TYPE__TYPE_EXECUTABLE_FULL:
		*out = DEBUGINFO_FULL;
		return ERR_OK;
	case EPIMETHEUS__PYROSCOPE__FILE_METADATA__TYPE__TYPE_EXECUTABLE_NO_TEXT:
		*out = DEBUGINFO_NO_TEXT;
		return ERR_OK;
	default:
		return err_set(err, ERR_INVALID, "file.type is %d, not 1 (full) or 2 (without code)",
			(int)metadata->type);
	}
}

static enum err_code web_debuginfo_upload_should(
	struct pyroscope_call *c, const ProtobufCMessage *message, struct err *err)
{
	const Epimetheus__Pyroscope__ShouldInitiateUploadRequest *r = (const void *)message;
	Epimetheus__Pyroscope__ShouldInitiateUploadResponse answer;
	struct debuginfo_offer offer = { .origin = DEBUGINFO_UPLOAD };
	const char *reason = "it has no GNU build id";
	enum debuginfo_kind kind;
	struct debuginfo_id id;
	enum err_code rc;

	epimetheus__pyroscope__should_initiate_upload_response__init(&answer);
	if (!r->file)
		return err_set(err, ERR_INVALID, "file is missing");
	if ((rc = web_debuginfo_upload_kind_of(r->file, &kind, err)))
		return rc;
	if (r->file->gnu_build_id[0]) {
		if ((rc = debuginfo_id_init(&id, DEBUGINFO_GNU, str_of(r->file->gnu_build_id), err)))
			return err_wrap(err, rc, "file.gnu_build_id");
		offer.kind = kind;
		answer.should_initiate_upload = debuginfo_wants(
			debuginfo_store(c->w->o.debuginfo), &id, &offer, &reason);
	}
	if (answer.should_initiate_upload &&
		!uploads_announce(
			c->w->uploads, &id, kind, str_of(r->file->name), c->in->client, clock_monotonic_ns())) {
		answer.should_initiate_upload = false;
		reason = "another sender uploads this file";
	}
	answer.reason = arena_strndup(&c->in->arena, reason, strlen(reason));
	if (!answer.reason)
		return arena_fail(&c->in->arena, "answer", err);
	return pyroscope_answer(c, &answer.base, err);
}

void debuginfo_should_upload(struct web *w, struct http_in *in, struct http_out *out)
{
	web_debuginfo_upload_answer_call(w, in, out, SHOULD_REQUEST, web_debuginfo_upload_should);
}

static enum err_code upload_finished(
	struct pyroscope_call *c, const ProtobufCMessage *message, struct err *err)
{
	const Epimetheus__Pyroscope__UploadFinishedRequest *r = (const void *)message;
	Epimetheus__Pyroscope__UploadFinishedResponse answer =
		EPIMETHEUS__PYROSCOPE__UPLOAD_FINISHED_RESPONSE__INIT;
	struct debuginfo_id id;
	enum err_code rc;

	if ((rc = debuginfo_id_init(&id, DEBUGINFO_GNU, str_of(r->gnu_build_id), err)))
		return err_wrap(err, rc, "gnu_build_id");
	if (!debuginfo_is_known(debuginfo_store(c->w->o.debuginfo), &id))
		return err_set(
			err, ERR_EXISTS, "nothing was uploaded for " STR_FMT, STR_ARG(debuginfo_id_text(&id)));
	uploads_forget(c->w->uploads, &id);
	return pyroscope_answer(c, &answer.base, err);
}

void debuginfo_upload_finished(struct web *w, struct http_in *in, struct http_out *out)
{
	web_debuginfo_upload_answer_call(w, in, out, FINISHED_REQUEST, upload_finished);
}

/* ---- Upload/{gnu_build_id} ---- */

static int web_debuginfo_upload_read_announced(
	struct web *w, struct http_in *in, struct announced *out, struct err *err)
{
	struct str text = { in->path.ptr + UPLOAD_PREFIX.len, in->path.len - UPLOAD_PREFIX.len };
	struct debuginfo_id id;

	if (debuginfo_id_init(&id, DEBUGINFO_GNU, text, err))
		return 400;
	if (uploads_find(w->uploads, &id, clock_monotonic_ns(), out))
		return 0;
	err_set(err, ERR_NOT_FOUND,
		"no upload of " STR_FMT " was announced: call ShouldInitiateUpload first",
		STR_ARG(debuginfo_id_text(&id)));
	return 412;
}

bool debuginfo_admit_upload(struct web *w, struct http_in *in, struct http_out *out)
{
	struct announced a;
	struct err err;
	int status = debuginfo_take_check(w, in, out, &err);

	if (!status)
		status = web_debuginfo_upload_read_announced(w, in, &a, &err);
	if (status)
		http_text(out, status, "%s", err.msg);
	return !status;
}

void debuginfo_upload(struct web *w, struct http_in *in, struct http_out *out)
{
	struct announced a;
	struct err err;
	int status = web_debuginfo_upload_read_announced(w, in, &a, &err);

	if (!status) {
		struct take t = { .id = a.id,
			.has_id = true,
			.offer = { .kind = a.kind, .origin = DEBUGINFO_UPLOAD, .path = str_of(a.path) } };

		status = debuginfo_take(w, in, out, &t, &err);
	}
	if (status)
		http_text(out, status, "%s", err.msg);
}

/* ---- /api/v1/symbols/upload ---- */

static const char *web_debuginfo_upload_error_type(int status)
{
	return status == 404                                ? "not_found" :
		status == 409                                   ? "conflict" :
		status == 503                                   ? "unavailable" :
		status == 413 || status == 429 || status == 408 ? "execution" :
		status == 499                                   ? "canceled" :
														  "bad_data";
}

static void web_debuginfo_upload_refuse(struct http_out *out, int status, const struct err *err)
{
	api_error(out, status, web_debuginfo_upload_error_type(status), "%s", err->msg);
}

static enum err_code web_debuginfo_upload_read_content(
	const struct http_in *in, enum debuginfo_kind *out, struct err *err)
{
	struct str content = http_param(in, "content");

	*out = DEBUGINFO_FULL;
	if (!content.len)
		return ERR_OK;
	for (int i = 0; i < DEBUGINFO_KINDS; i++)
		if (str_is(content, debuginfo_kinds[i])) {
			*out = (enum debuginfo_kind)i;
			return ERR_OK;
		}
	return err_set(err, ERR_INVALID,
		"invalid parameter \"content\": %s is none of stripped, no_text, full", QUOTED(content));
}

static enum err_code web_debuginfo_upload_read_take(
	const struct http_in *in, struct take *t, struct err *err)
{
	struct str id = http_param(in, "id"), kind = http_param(in, "kind");
	enum debuginfo_id_kind k = DEBUGINFO_GNU;
	enum err_code rc;

	*t = (struct take){ .has_id = id.len > 0,
		.offer = { .origin = DEBUGINFO_UPLOAD, .path = http_param(in, "name") } };
	if ((rc = web_debuginfo_upload_read_content(in, &t->offer.kind, err)) ||
		(rc = api_bool(in, "force", &t->offer.force, err)))
		return rc;
	if (kind.len && !debuginfo_kind_parse(kind, &k))
		return err_set(err, ERR_INVALID, "invalid parameter \"kind\": %s is none of gnu, go, file",
			QUOTED(kind));
	if (id.len && (rc = debuginfo_id_init(&t->id, k, id, err)))
		return err_wrap(err, rc, "invalid parameter \"id\"");
	return ERR_OK;
}

bool debuginfo_admit_put(struct web *w, struct http_in *in, struct http_out *out)
{
	struct take t;
	struct err err;
	const char *reason;
	int status = debuginfo_take_check(w, in, out, &err);

	if (!status && web_debuginfo_upload_read_take(in, &t, &err))
		status = 400;
	if (!status && t.has_id &&
		!debuginfo_wants(debuginfo_store(w->o.debuginfo), &t.id, &t.offer, &reason)) {
		err_set(&err, ERR_EXISTS, "%s", reason);
		status = 409;
	}
	if (status)
		web_debuginfo_upload_refuse(out, status, &err);
	return !status;
}

void debuginfo_put(struct web *w, struct http_in *in, struct http_out *out)
{
	struct take t;
	struct err err;
	struct json j;
	int status = web_debuginfo_upload_read_take(in, &t, &err) ?
		400 :
		debuginfo_take(w, in, out, &t, &err);

	if (status) {
		web_debuginfo_upload_refuse(out, status, &err);
		return;
	}
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "id");
	json_str(&j, debuginfo_id_text(&t.id));
	json_key(&j, "kind");
	json_cstr(&j, debuginfo_id_kind_name(t.id.kind));
	json_key(&j, "state");
	json_cstr(&j, "queued");
	json_object_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}
