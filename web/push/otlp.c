#include "web/push/otlp.h"

#include "base/quote.h"
#include "proto/otlp/otlp.h"
#include "web/push/push.h"

#define RETRY_S 5u

/* As OpenTelemetry's SDKs call a service that has no name. */
#define UNKNOWN_SERVICE STR("unknown_service")

struct export
{
	struct receive_turn *t;
	struct str sender; /* its address */
	struct otlp_request *request;
	struct received *v;
};

/* ---- what it is called ---- */

static struct str push_otlp_attribute(
	const struct otlp_attribute *attributes, uint32_t n, const char *key)
{
	for (uint32_t i = 0; i < n; i++)
		if (str_is(attributes[i].key, key))
			return attributes[i].text;
	return STR("");
}

static struct str otlp_resource_attribute(const struct otlp_resource *r, const char *key)
{
	return push_otlp_attribute(r->attributes, r->attributes_n, key);
}

static struct str otlp_resource_executable(const struct otlp_resource *r)
{
	struct str name = otlp_resource_attribute(r, "process.executable.name"),
			   path = otlp_resource_attribute(r, "process.executable.path");

	for (size_t i = path.len; i-- > 0 && !name.len;)
		if (path.ptr[i] == '/')
			name = (struct str){ path.ptr + i + 1, path.len - i - 1 };
	return name.len ? name : path;
}

/*
 * Which of the processes without a name it is. Not by process.pid: the kernel's threads have no
 * name either, and would be a series each.
 */
static struct str export_find_instance(const struct export *e, const struct otlp_resource *r)
{
	static const char *const keys[] = { "service.instance.id", "k8s.pod.name", "host.name" };
	struct str found = STR("");

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && !found.len; i++)
		found = otlp_resource_attribute(r, keys[i]);
	return found.len ? found : e->sender;
}

static void export_add_names(
	const struct export *e, struct push_labels *l, const struct otlp_profile *p)
{
	const struct otlp_resource *r = &e->request->resources[p->resource];
	const struct labels set = e->t->push->labels;
	struct str service = otlp_resource_attribute(r, "service.name"),
			   space = otlp_resource_attribute(r, "service.namespace"), job = STR("");

	if (!service.len)
		service = push_otlp_attribute(p->attributes, p->attributes_n, "service.name");
	if (!service.len)
		service = otlp_resource_executable(r);
	if (!service.len) { /* what the configuration adds to such goes before our guess */
		service = labels_get(set, STR("service_name"));
		job = labels_get(set, STR("job"));
		service = service.len ? service : job.len ? job : UNKNOWN_SERVICE;
		if (!labels_get(set, STR("instance")).len &&
				!labels_builder_get(&l->b, STR("instance")).len)
			push_labels_add(l, STR("instance"), export_find_instance(e, r));
	}
	push_labels_add(l, STR("service.name"), service);
	if (space.len)
		service = str_of(
			arena_printf(&e->t->arena, STR_FMT "/" STR_FMT, STR_ARG(space), STR_ARG(service)));
	push_labels_add(l, STR("job"), job.len ? job : service);
}

/* Costs of events over the time of the profile, but for what is alive. */
static enum value_kind *push_otlp_kinds_of(struct arena *a, const struct otlp_profile *p)
{
	enum value_kind *kinds = arena_array(a, enum value_kind, p->pprof->types_n);

	for (uint32_t i = 0; kinds && i < p->pprof->types_n; i++) {
		bool level = value_is_level(STR(""), p->pprof->strings[p->pprof->types[i].type]);

		kinds[i] = level                      ? KIND_GAUGE :
			p->temporality == OTLP_CUMULATIVE ? KIND_CUMULATIVE :
												KIND_DELTA;
	}
	return kinds;
}

/* ---- one profile ---- */

static enum err_code export_read_labels(
	struct export *e, const struct otlp_profile *p, struct received *out, struct err *err)
{
	const struct otlp_resource *r = &e->request->resources[p->resource];
	struct str name = push_profile_name(p->pprof);
	struct push_labels l;

	push_labels_init(&l, e->t);
	for (uint32_t i = 0; i < r->attributes_n; i++)
		push_labels_add(&l, r->attributes[i].key, r->attributes[i].text);
	for (uint32_t i = 0; i < p->attributes_n; i++)
		push_labels_add(&l, p->attributes[i].key, p->attributes[i].text);
	export_add_names(e, &l, p);
	push_labels_add(&l, STR(LABEL_NAME), push_label_name(e->t->push, &e->t->arena, name));
	return push_labels_build(&l, out, err);
}

static enum err_code export_read_profile(
	struct export *e, const struct otlp_profile *p, struct received *out, struct err *err)
{
	*out = (struct received){ .profile = p->pprof,
		.kinds = push_otlp_kinds_of(&e->t->arena, p),
		.convert = p->temporality == OTLP_CUMULATIVE };
	if (!p->pprof->time_nanos && p->last_ns > 0)
		out->ts_ns = p->last_ns;
	if (!p->pprof->duration_nanos && p->last_ns > p->first_ns)
		out->interval_ns = p->last_ns - p->first_ns;
	if (!out->kinds)
		return arena_fail(&e->t->arena, "request", err);
	return export_read_labels(e, p, out, err);
}

static bool push_otlp_label_of(void *ctx, struct str *key)
{
	return receive_label(ctx, key);
}

static enum err_code push_otlp_take(
	struct http_in *in, bool json, struct export *e, struct err *err)
{
	const struct otlp_options o = { &otlp_limits_default, push_otlp_label_of, e->t };
	struct arena *a = &e->t->arena;
	struct str body;
	enum err_code rc;

	if ((rc = push_body(in, a, &body, err)) ||
		(rc = (json ? otlp_decode_json : otlp_decode)(a, body, &o, &e->request, err)))
		return rc;
	if (!(e->v = arena_array(a, struct received, e->request->profiles_n + 1)))
		return arena_fail(a, "request", err);
	for (uint32_t i = 0; i < e->request->profiles_n; i++)
		if ((rc = export_read_profile(e, &e->request->profiles[i], &e->v[i], err)))
			return rc;
	if (e->request->rejected_n) {
		if (e->request->resources_n != 1) /* whose they are is not known */
			receive_tell_labels(e->t, (struct labels){ 0 });
		receive_refuse(e->t, e->request->rejected_n, &e->request->rejected);
	}
	receive_store(e->t, e->v, e->request->profiles_n);
	return ERR_OK;
}

/* ---- the result ---- */

static bool push_otlp_is_for_now(enum err_code rc)
{
	return rc == ERR_UNAVAILABLE || rc == ERR_NOMEM || rc == ERR_IO;
}

static void export_judge(const struct export *e, struct otlp_result *r)
{
	const struct err *first = e->request->rejected_n ? &e->request->rejected : NULL;
	uint64_t links = 0, cut = 0;

	r->rejected = e->request->rejected_n;
	for (uint32_t i = 0; i < e->request->profiles_n; i++) {
		const struct received *p = &e->v[i];

		links += p->links_dropped;
		cut += p->rc ? 0 : p->profile->stacks_cut;
		if (!p->rc)
			continue;
		if (push_otlp_is_for_now(p->rc)) {
			*r = (struct otlp_result){ .outcome = OTLP_AGAIN, .retry_s = RETRY_S };
			err_copy(&r->err, &p->err);
			return;
		}
		first = first ? first : &p->err;
		r->rejected++;
	}
	if (first)
		err_copy(&r->err, first);
	else if (links) /* a warning, as nothing is rejected */
		err_set(&r->err, ERR_LIMIT,
			"%llu samples are stored without their links: a profile has too many",
			(unsigned long long)links);
	else if (cut)
		err_set(&r->err, ERR_LIMIT, PPROF_STACKS_CUT, cut);
}

void otlp_store(struct web *w, struct http_in *in, bool json, struct otlp_result *r)
{
	struct http_out ignored = { 0 }; /* the form's answer is its transport's */
	struct receive_turn turn;
	struct export e = { .t = &turn, .sender = http_remote_host(in->remote) };

	*r = (struct otlp_result){ .outcome = OTLP_TAKEN };
	if (push_begin(w, in, &ignored, &turn, &r->err)) {
		r->outcome = OTLP_AGAIN;
		r->retry_s = turn.retry_s;
		return;
	}
	if (push_otlp_take(in, json, &e, &r->err)) {
		receive_refuse(&turn, 1, &r->err);
		r->outcome = OTLP_REFUSED;
	} else {
		export_judge(&e, r);
	}
	receive_end(&turn);
}
