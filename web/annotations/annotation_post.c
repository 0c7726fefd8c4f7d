/* POST /api/v1/annotations: stores a mark as a profile (proto/annotation.h), by the path of all
 * pushed profiles. */
#include "base/clock.h"
#include "proto/annotation.h"
#include "web/annotations/annotation_mark.h"
#include "web/annotations/annotation_request.h"
#include "web/annotations/annotations.h"
#include "web/http/form.h"
#include "web/push/push.h"
#include "web/router/envelope.h"

bool annotations_admit(struct web *w, struct http_in *in, struct http_out *out)
{
	(void)w;
	(void)out;
	in->body_bytes_max = ANNOTATION_BODY_BYTES_MAX;
	return true;
}

/* A body that begins as an object is JSON, whatever its sender calls it: curl calls it a form. */
static enum err_code annotation_post_read(struct http_in *in, struct receive_turn *t,
	int64_t now_ns, struct annotation_request *out, struct err *err)
{
	struct str body;
	enum err_code rc = push_body(in, &t->arena, &body, err);

	if (rc)
		return rc;
	body = str_trim(body);
	if (body.len && body.ptr[0] == '{')
		return annotation_request_of_json(body, now_ns, &t->arena, out, err);
	if (body.len && !http_type_is(in->content_type, "application/x-www-form-urlencoded"))
		return err_set(err, ERR_INVALID, "the body is neither a JSON object nor a form");
	if (body.len > HTTP_FORM_BYTES_MAX)
		return err_set(
			err, ERR_LIMIT, "the form is %zu bytes, limit %u", body.len, HTTP_FORM_BYTES_MAX);
	if (!http_form_parse(in, body))
		return err_nomem(err, "form");
	return annotation_request_of_params(in, now_ns, out, err);
}

static enum err_code annotation_post_make(struct receive_turn *t,
	const struct annotation_request *r, struct received *out, struct err *err)
{
	struct labels_builder b;
	struct pprof *profile;
	enum err_code rc;

	if ((rc = annotation_profile(
			 &t->arena, r->text, r->time_ns, r->end_ns ? r->end_ns : r->time_ns, &profile, err)))
		return rc;
	labels_builder_init(&b, &t->arena, r->labels);
	labels_builder_set(&b, STR(LABEL_NAME), STR(ANNOTATION_NAME));
	/* The profile's time is when the mark begins, since its end may be in the future. */
	*out = (struct received){
		.profile = profile, .kinds = annotation_kinds, .ts_ns = r->time_ns, .interval_ns = NS_PER_S
	};
	return labels_builder_build(&b, &out->labels, err);
}

/* What is refused of a profile that is well formed, by its time, begins so. */
static enum err_code annotation_post_name_field(enum err_code rc, struct err *err)
{
	if (rc == ERR_INVALID && str_has_prefix(str_of(err->msg), STR("profile of ")))
		return err_wrap(err, rc, "invalid parameter \"time\"");
	return rc;
}

static enum err_code annotation_post_store(struct http_in *in, struct receive_turn *t,
	struct annotation_request *r, struct received *stored, struct err *err)
{
	int64_t now_ns = clock_now_ns();
	enum err_code rc;

	if ((rc = annotation_post_read(in, t, now_ns, r, err))) {
		receive_refuse(t, 1, err);
		return rc;
	}
	receive_tell_labels(t, r->labels);
	if (!r->time_ns)
		r->time_ns = now_ns - now_ns % NS_PER_MS; /* as the answer says it */
	if ((rc = annotation_post_make(t, r, stored, err))) {
		receive_refuse(t, 1, err);
		return rc;
	}
	receive_store(t, stored, 1);
	if ((rc = stored->rc))
		err_copy(err, &stored->err);
	return annotation_post_name_field(rc, err);
}

static void annotation_post_answer(struct http_in *in, struct http_out *out,
	const struct annotation_request *r, const struct received *stored)
{
	const struct str dropped = STR("relabel_configs of push_config drop this mark");
	struct annotation_mark mark = { .time_ns = r->time_ns, .end_ns = r->end_ns, .text = r->text };
	struct json j;

	if (!annotation_mark_labels(&in->arena, stored->labels, &mark.labels)) {
		api_error(out, 503, "unavailable", "annotation: out of memory");
		return;
	}
	api_begin(out, &j);
	annotation_mark_write(&j, &mark);
	api_end(&j, &dropped, stored->dropped, NULL, 0);
}

void annotations_post(struct web *w, struct http_in *in, struct http_out *out)
{
	struct annotation_request request = { 0 };
	struct received stored = { 0 };
	struct receive_turn turn;
	enum err_code rc;
	struct err err;

	if (push_begin(w, in, out, &turn, &err)) {
		api_error(out, out->status, out->status == 429 ? "too_many_requests" : "unavailable", "%s",
			err.msg);
		return;
	}
	rc = annotation_post_store(in, &turn, &request, &stored, &err);
	if (rc == ERR_IO || rc == ERR_NOMEM) /* a commit failed: the same may come again */
		api_error(out, 503, "unavailable", "%s", err.msg);
	else if (rc)
		api_fail(out, rc, &err);
	else
		annotation_post_answer(in, out, &request, &stored);
	push_add_retry(out);
	receive_end(&turn);
}
