#include "web/router/audit.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/thread.h"

METRIC_COUNTER(audited, "epimetheus_audit_events_total",
	"Requests that the audit log is about: refused ones, and those of admins.", "kind");
METRIC_COUNTER(hidden, "epimetheus_audit_hidden_total",
	"Refused requests that the audit log has in a count only.", NULL);

#define SLOTS 256u
#define TEXT_BYTES_MAX 256u
#define FIELDS_MAX 12u

/* Refusals of an address in a window of time. Addresses that share a slot are counted together. */
struct audit_slot {
	struct http_sender client;
	bool used, several; /* addresses */
	int64_t until_ns;
	unsigned lines;
	uint64_t hidden;
	char address[HTTP_REMOTE_BYTES]; /* of the last one */
};

struct audit {
	struct thread thread;
	struct mutex lock; /* guards the fields below */
	struct cond changed;
	bool closing;
	struct audit_slot slots[SLOTS];
	uint64_t seed;
};

/* ---- lines ---- */

static struct str audit_cut(struct str s)
{
	return (struct str){ s.ptr, s.len < TEXT_BYTES_MAX ? s.len : TEXT_BYTES_MAX };
}

/* What an admin's request was about. */
static void audit_add_params(const struct http_in *in, struct buf *out)
{
	static const char *const shown[] = { "match[]", "start", "end", "loss" };

	for (size_t i = 0; i < in->params_n && out->len < TEXT_BYTES_MAX; i++)
		for (size_t k = 0; k < sizeof(shown) / sizeof(shown[0]); k++)
			if (str_is(in->params[i].name, shown[k]))
				buf_printf(out, "%s%s=" STR_FMT, out->len ? "&" : "", shown[k],
					STR_ARG(audit_cut(in->params[i].value)));
}

static void audit_write(enum log_level level, const char *event, const struct http_in *in,
	const struct http_out *out, enum http_needs needs)
{
	const struct http_user *u = &in->user;
	struct log_field f[FIELDS_MAX];
	struct buf params = { 0 };
	size_t n = 0;

	if (u->name.len)
		f[n++] = LOG_STR("user", audit_cut(u->name));
	if (u->sign_in)
		f[n++] = LOG_S("sign_in", u->sign_in);
	f[n++] = LOG_STR("address", in->remote);
	f[n++] = LOG_S("method", http_method_name(in->method));
	f[n++] = LOG_STR("path", audit_cut(in->path));
	f[n++] = LOG_I("status", out->status);
	if (out->status == 403 && http_needs_name(needs)[0])
		f[n++] = LOG_S("needs", http_needs_name(needs));
	if (out->status == 401 && u->why)
		f[n++] = LOG_S("reason", u->why);
	if (needs == NEEDS_ADMIN)
		audit_add_params(in, &params);
	if (params.len)
		f[n++] = LOG_STR("params", buf_str(&params));
	log_write(level, "audit", event, f, n);
	buf_release(&params);
}

static void audit_write_hidden(const struct audit_slot *s)
{
	metric_add(&hidden, NULL, (double)s->hidden);
	log_warn("audit", "more requests refused", LOG_I("requests", s->hidden),
		LOG_S("address", s->several ? "several" : s->address));
}

/* ---- windows ---- */

static void audit_begin_window(struct audit_slot *s, const struct http_in *in, int64_t now_ns)
{
	*s = (struct audit_slot){
		.client = in->client, .used = true, .until_ns = now_ns + AUDIT_WINDOW_NS
	};
}

/* True if the refusal has a line; else it is counted. *ended: a window whose count is due. */
static bool audit_take_line(
	struct audit *a, const struct http_in *in, int64_t now_ns, struct audit_slot *ended)
{
	uint64_t hash = hash_bytes(in->client.bytes, sizeof(in->client.bytes), a->seed);
	struct audit_slot *s = &a->slots[hash % SLOTS];
	size_t n = in->remote.len < sizeof(s->address) ? in->remote.len : sizeof(s->address) - 1;

	mutex_assert_held(&a->lock);
	if (!s->used || now_ns >= s->until_ns) {
		*ended = *s;
		audit_begin_window(s, in, now_ns);
	}
	s->several |= !http_same_client(s->client, in->client);
	if (s->lines < AUDIT_LINES_MAX) {
		s->lines++;
		return true;
	}
	s->hidden++;
	if (n)
		memcpy(s->address, in->remote.ptr, n);
	s->address[n] = '\0';
	return false;
}

void audit_request(struct audit *a, const struct http_in *in, const struct http_out *out,
	enum http_needs needs, int64_t now_ns)
{
	struct audit_slot ended = { 0 };
	bool shown;

	if (!a)
		return;
	if (out->status != 401 && out->status != 403) {
		if (needs == NEEDS_ADMIN || in->method == HTTP_DELETE) {
			metric_add(&audited, "admin", 1);
			audit_write(LOG_INFO, needs == NEEDS_ADMIN ? "admin request" : "delete request", in,
				out, needs);
		}
		return;
	}
	metric_add(&audited, "refused", 1);
	mutex_lock(&a->lock);
	shown = audit_take_line(a, in, now_ns, &ended);
	mutex_unlock(&a->lock);
	if (ended.hidden)
		audit_write_hidden(&ended);
	if (shown)
		audit_write(LOG_WARN, "request refused", in, out, needs);
}

/* A slot is written without the lock, which requests wait for. */
static void audit_tell_ended(struct audit *a, int64_t now_ns, bool all)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		struct audit_slot ended = { 0 };

		mutex_lock(&a->lock);
		if (a->slots[i].used && (all || now_ns >= a->slots[i].until_ns)) {
			ended = a->slots[i];
			a->slots[i].used = false;
		}
		mutex_unlock(&a->lock);
		if (ended.hidden)
			audit_write_hidden(&ended);
	}
}

void audit_tell_hidden(struct audit *a, int64_t now_ns)
{
	audit_tell_ended(a, now_ns, false);
}

static void audit_run(void *ctx)
{
	struct audit *a = ctx;
	bool closing = false;

	while (!closing) {
		int64_t deadline_ns = clock_monotonic_ns() + AUDIT_WINDOW_NS;

		audit_tell_hidden(a, clock_monotonic_ns());
		mutex_lock(&a->lock);
		closing = cond_wait_flag(&a->changed, &a->lock, &a->closing, deadline_ns);
		mutex_unlock(&a->lock);
	}
}

enum err_code audit_open(struct audit **out, struct err *err)
{
	struct audit *a = calloc(1, sizeof(*a));

	if (!a)
		return err_nomem(err, "audit");
	a->seed = hash_seed();
	mutex_init(&a->lock);
	cond_init(&a->changed);
	*out = a;
	return ERR_OK;
}

enum err_code audit_start(struct audit *a, struct err *err)
{
	return thread_start(&a->thread, "web-audit", audit_run, a, err);
}

void audit_close(struct audit *a)
{
	if (!a)
		return;
	mutex_lock(&a->lock);
	a->closing = true;
	cond_broadcast(&a->changed);
	mutex_unlock(&a->lock);
	thread_join(&a->thread);
	audit_tell_ended(a, 0, true);
	cond_destroy(&a->changed);
	mutex_destroy(&a->lock);
	free(a);
}
