#include "web/push/push.h"

#include "base/gzip/gzip.h"
#include "base/gzip/zstd.h"
#include "base/map.h"
#include "base/quote.h"

#define RAW_BYTES_MAX (64u << 20)
#define RETRY_S "5"

enum err_code push_begin(struct web *w, struct http_in *in, struct http_out *out,
	struct receive_turn *t, struct err *err)
{
	const struct str sender = { (const char *)in->client.bytes, sizeof(in->client.bytes) };
	enum err_code rc;

	if (!w->receiver) {
		*t = (struct receive_turn){ .retry_s = 1 };
		rc = err_set(err, ERR_UNAVAILABLE, "this server stores no profiles");
	} else {
		rc = receive_begin(w->receiver, sender, t, err);
	}
	if (!rc) {
		t->from = router_sender(in);
		t->bytes = in->body.len;
		return ERR_OK;
	}
	router_refuse_profiles(w, in, rc, str_of(err->msg));
	out->status = rc == ERR_LIMIT ? 429 : 503;
	http_add_header(out, "Retry-After", str_of(arena_printf(&in->arena, "%u", t->retry_s)));
	return rc;
}

enum err_code push_body(struct http_in *in, struct arena *a, struct str *out, struct err *err)
{
	struct str coding = str_trim(in->content_encoding);
	bool gzip = http_type_is(coding, "gzip");

	*out = in->body;
	if (http_type_is(coding, "zstd"))
		return zstd_inflate(a, *out, "request", RAW_BYTES_MAX, out, err);
	if (coding.len && !gzip && !http_type_is(coding, "identity"))
		return err_set(err, ERR_UNSUPPORTED,
			"Content-Encoding %s is unknown; use gzip, zstd or identity", QUOTED(coding));
	if (gzip_is(*out)) /* some senders do not say so */
		return gzip_inflate(a, *out, "request", RAW_BYTES_MAX, out, err);
	if (gzip && out->len)
		return err_set(err, ERR_INVALID, "Content-Encoding is gzip, the body is not");
	return ERR_OK;
}

const struct received *push_failed(const struct received *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (r[i].rc)
			return &r[i];
	return NULL;
}

int push_status(enum err_code rc)
{
	switch (rc) {
	case ERR_OK:
		return 200;
	case ERR_INVALID:
		return 400;
	case ERR_LIMIT:
		return 413;
	case ERR_EXISTS:
		return 409;
	case ERR_UNSUPPORTED:
		return 415;
	case ERR_UNAVAILABLE:
	case ERR_IO: /* a commit failed */
	case ERR_NOMEM:
		return 503;
	default:
		return 500;
	}
}

void push_add_retry(struct http_out *out)
{
	if (out->status == 503)
		http_default_header(out, "Retry-After", STR(RETRY_S));
}

static bool push_has_type(const struct pprof *p, const char *type)
{
	for (uint32_t i = 0; i < p->types_n; i++)
		if (str_is(p->strings[p->types[i].type], type))
			return true;
	return false;
}

struct str push_profile_name(const struct pprof *p)
{
	static const struct {
		const char *type, *name;
	} rows[] = { { "wall", "wall" }, { "cpu", "process_cpu" }, { "alloc_objects", "memory" },
		{ "alloc_space", "memory" }, { "inuse_objects", "memory" }, { "inuse_space", "memory" },
		{ "objects", "memory" }, { "space", "memory" }, { "goroutine", "goroutine" },
		{ "goroutines", "goroutine" }, { "goroutineleak", "goroutineleak" },
		{ "contentions", "block" }, { "delay", "block" } };
	struct str type = p->types_n ? p->strings[p->types[0].type] : STR("");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (push_has_type(p, rows[i].type))
			return str_of(rows[i].name);
	return str_is(type, "samples") && str_is(p->strings[p->period_type.type], "cpu") ?
		STR("process_cpu") :
		type;
}

/* ---- labels ---- */

void push_labels_init(struct push_labels *l, struct receive_turn *t)
{
	*l = (struct push_labels){ .t = t };
	labels_builder_init(&l->b, &t->arena, (struct labels){ 0 });
}

static bool push_names_process(struct str label)
{
	static const char *const names[] = { "pid", "process_id", "process.pid", "process_pid",
		"session_id", "__session_id__", "service.instance.id", "service_instance_id", "instance" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_is(label, names[i]))
			return true;
	return false;
}

void push_labels_add(struct push_labels *l, struct str name, struct str value)
{
	if (push_names_process(name)) {
		l->process = hash_bytes(name.ptr, name.len, l->process);
		l->process = hash_bytes(value.ptr, value.len, l->process);
	}
	if (str_is(name, LABEL_NAME) || receive_label(l->t, &name))
		labels_builder_set(&l->b, name, value);
}

enum err_code push_labels_build(struct push_labels *l, struct received *out, struct err *err)
{
	enum err_code rc;

	if (!labels_builder_get(&l->b, STR("job")).len)
		labels_builder_set(&l->b, STR("job"), labels_builder_get(&l->b, STR("service_name")));
	out->process = l->process;
	if (!(rc = labels_builder_build(&l->b, &out->labels, err)))
		receive_tell_labels(l->t, out->labels);
	return rc;
}

/* ---- kinds ---- */

enum err_code push_kinds(
	struct arena *a, const struct pprof *p, struct str name, enum value_kind **out, struct err *err)
{
	enum value_kind *kinds = arena_array(a, enum value_kind, p->types_n + 1);

	if (!kinds)
		return arena_fail(a, "profile", err);
	pprof_kinds(p, name, NULL, kinds);
	*out = kinds;
	return ERR_OK;
}
