/*
 * push.v1.PusherService/Push: connect's unary call with profiles of several series, each with its
 * labels and one or more pprof bodies. protobuf or JSON; gzip or not, also of each profile.
 *
 * All profiles are decoded before the first is stored, so that half a request stores nothing. Where
 * one is refused the answer is its error; the others are stored, and acknowledged again if the
 * sender repeats them.
 */
#include "base/map.h"
#include "base/quote.h"
#include "proto/legacy/legacy.h"
#include "web/push/forms.h"
#include "web/push/push.h"
#include "web/pyroscope/json.h"
#include "web/pyroscope/pyroscope.h"
#include "web/router/envelope.h"

#define PROFILES_MAX 10000u

typedef Epimetheus__Pyroscope__PushRequest push_request;
typedef Epimetheus__Pyroscope__RawProfileSeries raw_series;

struct push_v1_batch {
	struct receive_turn *t;
	struct received *v;
	size_t n;
};

static enum err_code push_v1_batch_read_labels(
	struct push_v1_batch *b, const raw_series *series, struct received *out, struct err *err)
{
	struct push_labels l;

	push_labels_init(&l, b->t);
	for (size_t i = 0; i < series->n_labels; i++)
		push_labels_add(&l, str_of(series->labels[i]->name), str_of(series->labels[i]->value));
	return push_labels_build(&l, out, err);
}

static enum err_code push_v1_batch_read_profile(struct push_v1_batch *b, ProtobufCBinaryData bytes,
	const struct received *series, struct err *err)
{
	struct arena *a = &b->t->arena;
	struct str raw = { (const char *)bytes.data, bytes.len };
	struct received *p = &b->v[b->n];
	struct legacy_any any;
	enum value_kind *kinds;
	enum err_code rc;

	if (!raw.len)
		return err_set(err, ERR_INVALID, "raw_profile is empty");
	if ((rc = pprof_inflate(a, raw, &pprof_limits_default, &raw, err)) ||
		(rc = legacy_decode_any(a, raw, &pprof_limits_default, &any, err)) ||
		(rc = push_kinds(a, any.profile, labels_get(series->labels, STR(LABEL_NAME)), &kinds, err)))
		return rc;
	*p = *series;
	p->profile = any.profile;
	p->kinds = any.kinds ? any.kinds : kinds;
	p->body = hash_bytes((const char *)bytes.data, bytes.len, 0);
	b->n++;
	return ERR_OK;
}

static enum err_code push_v1_batch_read_all(
	struct push_v1_batch *b, const push_request *request, struct err *err)
{
	size_t n = 0;
	enum err_code rc;

	for (size_t i = 0; i < request->n_series; i++)
		n += request->series[i]->n_samples;
	if (n > PROFILES_MAX)
		return err_set(err, ERR_LIMIT, "%zu profiles in a request, limit %u", n, PROFILES_MAX);
	if (!(b->v = arena_array(&b->t->arena, struct received, n + 1)))
		return arena_fail(&b->t->arena, "request", err);
	for (size_t i = 0; i < request->n_series; i++) {
		const raw_series *s = request->series[i];
		struct received series = { 0 };

		if ((rc = push_v1_batch_read_labels(b, s, &series, err)))
			return err_wrap(err, rc, "series %zu", i);
		for (size_t k = 0; k < s->n_samples; k++)
			if ((rc = push_v1_batch_read_profile(b, s->samples[k]->raw_profile, &series, err)))
				return err_wrap(err, rc, "series %zu, sample %zu", i, k);
	}
	return ERR_OK;
}

/* Senders repeat what is resource_exhausted: too many requests, and not one that is too long. */
static void push_v1_fail(struct http_out *out, int status, const struct err *err)
{
	static const struct {
		int status;
		const char *code;
	} codes[] = { { 400, "invalid_argument" }, { 409, "already_exists" },
		{ 413, "invalid_argument" }, { 415, "unimplemented" }, { 429, "resource_exhausted" },
		{ 503, "unavailable" } };
	const char *code = "internal";

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].status == status)
			code = codes[i].code;
	connect_error(out, status, code, "%s", err->msg);
}

static enum err_code push_v1_take(
	struct http_in *in, bool json, struct push_v1_batch *b, struct err *err)
{
	struct arena *a = &b->t->arena;
	ProtobufCMessage *request;
	struct str body;
	enum err_code rc;

	if ((rc = push_body(in, a, &body, err)) ||
		(rc = pyroscope_decode(
			 a, &epimetheus__pyroscope__push_request__descriptor, json, body, &request, err)) ||
		(rc = push_v1_batch_read_all(b, (const push_request *)request, err)))
		return rc;
	receive_store(b->t, b->v, b->n);
	return ERR_OK;
}

void push_v1_handle(struct web *w, struct http_in *in, struct http_out *out)
{
	bool json;
	struct receive_turn turn;
	struct push_v1_batch b = { .t = &turn };
	const struct received *failed;
	enum err_code rc;
	struct err err;

	if (!pyroscope_takes_type(in, out, &json))
		return;
	if (push_begin(w, in, out, &turn, &err)) {
		push_v1_fail(out, out->status, &err);
		return;
	}
	if ((rc = push_v1_take(in, json, &b, &err))) {
		receive_refuse(&turn, 1, &err);
		push_v1_fail(out, push_status(rc), &err);
	} else if ((failed = push_failed(b.v, b.n))) {
		push_v1_fail(out, push_status(failed->rc), &failed->err);
	} else {
		out->content_type = json ? PYROSCOPE_JSON_TYPE : PYROSCOPE_PROTO_TYPE;
		if (json)
			buf_add_cstr(&out->body, "{}");
	}
	push_add_retry(out);
	receive_end(&turn);
}
