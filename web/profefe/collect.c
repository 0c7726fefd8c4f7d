/*
 * POST /api/0/profiles: stores one profile, through the path of all that is pushed.
 *
 * profefe's agents send again what failed with 5xx, and drop what was refused with 4xx. So "too
 * much of this sender" is 503 here.
 */
#include "base/clock.h"
#include "scrape/body.h"
#include "scrape/receive/receive.h"
#include "web/profefe/profefe.h"
#include "web/push/push.h"

struct profefe_collecting {
	struct receive_turn *t;
	struct http_in *in;
	struct profefe_params p;
	struct received profile;
};

static enum err_code profefe_read_labels(struct profefe_collecting *c, struct err *err)
{
	struct str instance = http_param(c->in, "instance_id");
	struct push_labels l;

	push_labels_init(&l, c->t);
	if (instance.len) /* kube-profefe's; agents of old, too */
		push_labels_add(&l, STR("instance"), instance);
	for (size_t i = 0; i < c->p.labels_n; i++)
		push_labels_add(&l, c->p.labels[i].name, c->p.labels[i].value);
	push_labels_add(&l, STR("service_name"), c->p.service);
	push_labels_add(&l, STR(LABEL_NAME), str_of(c->p.profile));
	return push_labels_build(&l, &c->profile, err);
}

static enum err_code profefe_read_profile(struct profefe_collecting *c, struct err *err)
{
	struct str created_at = http_param(c->in, "created_at");
	struct http_in *in = c->in;
	struct arena *a = &c->t->arena;
	struct str raw = in->body;
	struct legacy_any decoded;
	enum err_code rc;

	if (created_at.len && (rc = profefe_time_parse(created_at, &c->profile.ts_ns, err)))
		return err_wrap(err, rc, "bad request: bad \"created_at\"");
	if (!in->body.len)
		return err_set(err, ERR_INVALID, "malformed profile (the body is empty)");
	if ((rc = body_undo_transport(a, in->content_encoding, &pprof_limits_default, &raw, err)) ||
		(rc = pprof_inflate(a, raw, &pprof_limits_default, &raw, err)) ||
		(rc = legacy_decode_any(a, raw, &pprof_limits_default, &decoded, err)))
		return err_wrap(err, rc, "malformed profile");
	c->profile.profile = decoded.profile;
	c->profile.kinds = decoded.kinds;
	return ERR_OK;
}

static void profefe_answer(struct http_out *out, const struct profefe_collecting *c)
{
	struct json j;

	profefe_begin(out, &j);
	profefe_write(&j, c->profile.labels, c->profile.ts_ns, c->p.service, c->p.type);
	profefe_end(&j);
}

void profefe_collect(struct web *w, struct http_in *in, struct http_out *out)
{
	struct receive_turn turn;
	struct profefe_collecting c = { .t = &turn, .in = in };
	enum err_code rc;
	struct err err;

	if ((rc = push_begin(w, in, out, &turn, &err))) {
		out->status = 503;
		profefe_fail(out, rc, &err);
		return;
	}
	if ((rc = profefe_read_params(in, true, &c.p, &err)) || (rc = profefe_read_labels(&c, &err)) ||
		(rc = profefe_read_profile(&c, &err))) {
		receive_refuse(&turn, 1, &err);
		out->status = push_status(rc);
		profefe_fail(out, rc, &err);
	} else {
		receive_store(&turn, &c.profile, 1);
		out->status = push_status(c.profile.rc);
		if (c.profile.rc)
			profefe_fail(out, c.profile.rc, &c.profile.err);
		else
			profefe_answer(out, &c);
	}
	receive_end(&turn);
}
