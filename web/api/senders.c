/*
 * Senders: who pushes profiles. A query node shows those of all shards, each as the shard wrote its
 * list last, a minute ago at most.
 */
#include "base/clock.h"
#include "scrape/receive/receive.h"
#include "web/api/handlers.h"
#include "web/router/envelope.h"

struct api_senders {
	struct arena *a;
	struct sender_list all;
	struct str *warnings;
	size_t warnings_n;
};

static enum err_code api_senders_add(
	struct api_senders *s, struct str shard, const struct sender_list *l, struct err *err)
{
	struct sender_info *v = arena_array(s->a, struct sender_info, s->all.n + l->n + 1);

	if (!v)
		return arena_fail(s->a, "senders", err);
	if (s->all.n)
		memcpy(v, s->all.v, s->all.n * sizeof(*v));
	for (size_t i = 0; i < l->n; i++) {
		v[s->all.n + i] = l->v[i];
		v[s->all.n + i].shard = shard;
	}
	s->all.v = v;
	s->all.n += l->n;
	s->all.forgotten += l->forgotten;
	if (l->since_ns && (!s->all.since_ns || l->since_ns < s->all.since_ns))
		s->all.since_ns = l->since_ns;
	return ERR_OK;
}

static enum err_code api_senders_add_own(struct api_senders *s, struct web *w, struct err *err)
{
	struct sender_list own;
	enum err_code rc;

	if (!w->receiver)
		return ERR_OK;
	if ((rc = senders_list(receiver_senders(w->receiver), s->a, &own, err)))
		return rc;
	return api_senders_add(s, STR(""), &own, err);
}

/* A shard that cannot be read hides no other. */
static enum err_code api_senders_add_shard(
	struct api_senders *s, const struct shard_list_view *of, struct err *err)
{
	struct str error = of->error;
	struct sender_list l = { 0 };
	struct err why;
	char *text;

	if (!error.len && sender_list_read(of->text, s->a, &l, &why))
		error = str_of(why.msg);
	if (!error.len)
		return api_senders_add(s, of->shard, &l, err);
	if (!(text = arena_printf(s->a, "the senders of shard " STR_FMT " are missing: " STR_FMT,
			  STR_ARG(of->shard), STR_ARG(error))))
		return arena_fail(s->a, "senders", err);
	s->warnings[s->warnings_n++] = str_of(text);
	return ERR_OK;
}

static enum err_code api_senders_add_shards(struct api_senders *s, struct web *w, struct err *err)
{
	struct shard_list_view *v;
	enum err_code rc;
	size_t n;

	if (!w->o.shard_lists)
		return ERR_OK;
	if ((rc = w->o.shard_lists(w->o.ctx, SHARD_SENDERS, s->a, &v, &n, err)))
		return rc;
	if (!(s->warnings = arena_array(s->a, struct str, n + 1)))
		return arena_fail(s->a, "senders", err);
	for (size_t i = 0; i < n; i++)
		if ((rc = api_senders_add_shard(s, &v[i], err)))
			return rc;
	return ERR_OK;
}

void api_senders(struct web *w, struct http_in *in, struct http_out *out)
{
	struct api_senders s = { .a = &in->arena };
	struct json j;
	struct err err;
	enum err_code rc;

	if ((rc = api_senders_add_own(&s, w, &err)) || (rc = api_senders_add_shards(&s, w, &err))) {
		api_fail(out, rc, &err);
		return;
	}
	if (!s.all.since_ns)
		s.all.since_ns = clock_now_ns();
	api_begin(out, &j);
	sender_list_write(&j, &s.all, clock_now_ns());
	api_end(&j, s.warnings, s.warnings_n, NULL, 0);
}
